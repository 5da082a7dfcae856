/*
 * victims.c - which slabs to empty when a class has no room and no window is free.
 *
 * Reads the unit map, window by window; changes nothing. Costs O(units) and is called only when an
 * allocation has failed. The caller serialises calls.
 */
#include "internal.h"

#include <kvb/mem.h>

#include <assert.h>
#include <stdlib.h>

struct candidate {
	struct window at;
	uint64_t used; /* slots, in all slabs that reach into the window */
	uint32_t slabs;
};

struct search {
	const struct kvb_pool *p;
	const struct pool_class *c;
	struct candidate *v;
	size_t n;
	size_t cap;
};

/* Calls for each slab of the window in turn: start with i = w.first. Returns NULL at the end. */
static struct slab *next_slab(const struct kvb_pool *p, struct window w, uint32_t *i)
{
	return kvb_file_next_slab(p, w.file, w.first + w.units, i);
}

/* False when emptying cannot make this window ours: a slab of the class itself, held slots, frozen
 * units, no slot, or nothing there to empty. */
static bool weigh(const struct search *f, struct window w, struct candidate *out)
{
	struct candidate c = { .at = w };
	struct slab *s;

	if (kvb_window_slots(f->p, f->c, w.file->length, w.first, w.units, NULL) == 0)
		return false;
	for (uint32_t i = w.first; i < w.first + w.units; i++)
		if (w.file->units[i].frozen)
			return false;
	for (uint32_t i = w.first; (s = next_slab(f->p, w, &i)) != NULL;) {
		if (s->class == f->c || s->held > 0)
			return false;
		c.used += s->used;
		c.slabs++;
	}
	*out = c;
	return c.slabs > 0;
}

static int collect(struct search *f, uint32_t order)
{
	uint32_t units = UINT32_C(1) << order;

	f->n = 0;
	for (size_t i = 0; i < f->p->n_files; i++) {
		struct pool_file *file = f->p->files[i];

		for (uint64_t at = 0; !file->draining && at + units <= file->n_units; at += units) {
			struct window w = { file, (uint32_t)at, units };
			struct candidate c;

			if (!weigh(f, w, &c))
				continue;
			if (kvb_grow((void **)&f->v, &f->cap, f->n + 1, sizeof *f->v))
				return KVB_E_NOMEM;
			f->v[f->n++] = c;
		}
	}
	return KVB_OK;
}

static int by_used(const void *a, const void *b)
{
	const struct candidate *x = a;
	const struct candidate *y = b;

	return (x->used > y->used) - (x->used < y->used);
}

static bool all_may_empty(const struct search *f, struct window w,
			  bool (*may_empty)(void *ctx, uint32_t slab), void *ctx)
{
	struct slab *s;

	for (uint32_t i = w.first; (s = next_slab(f->p, w, &i)) != NULL;)
		if (!may_empty(ctx, s->handle))
			return false;
	return true;
}

static int answer(const struct search *f, const struct candidate *c, uint32_t **slabs,
		  size_t *n_slabs)
{
	uint32_t *v = kvb_malloc(c->slabs * sizeof *v);
	struct slab *s;
	size_t n = 0;

	if (!v)
		return KVB_E_NOMEM;
	for (uint32_t i = c->at.first; (s = next_slab(f->p, c->at, &i)) != NULL;)
		v[n++] = s->handle;
	*slabs = v;
	*n_slabs = n;
	return KVB_OK;
}

int kvb_pool_find_victims(const struct kvb_pool *p, uint32_t class_id,
			  bool (*may_empty)(void *ctx, uint32_t slab), void *ctx, uint32_t **slabs,
			  size_t *n_slabs)
{
	struct search f = { .p = p };
	int status = KVB_E_NO_SPACE;

	assert(class_id < p->n_classes);
	f.c = p->classes[class_id];
	for (uint32_t order = f.c->order + 1; order-- > 0 && status == KVB_E_NO_SPACE;) {
		if (collect(&f, order)) {
			status = KVB_E_NOMEM;
			break;
		}
		if (f.n)
			qsort(f.v, f.n, sizeof *f.v, by_used);
		for (size_t i = 0; i < f.n; i++) {
			if (all_may_empty(&f, f.v[i].at, may_empty, ctx)) {
				status = answer(&f, &f.v[i], slabs, n_slabs);
				break;
			}
		}
	}
	kvb_free(f.v);
	return status;
}
