/*
 * victims.c - chooses slabs to empty when a class has no slot and no window is free.
 *
 * Reads the unit map, window by window; changes nothing. Costs O(units), and the caller's looks
 * into slabs, until LOOKS slots of windows that may be emptied were seen. The caller serialises
 * calls.
 */
#include "internal.h"

#include <skv/mem.h>

#include <assert.h>
#include <stdlib.h>

#define COMPARED 16u /* candidates whose costs are compared */
#define LOOKS 8192u  /* used slots in candidates of which the one that is free first is taken */

struct candidate {
	struct window at;
	uint64_t used; /* bytes, in all slabs that reach into the window */
	uint64_t cost;
	uint32_t slabs;
	uint32_t tie; /* orders those with as many used bytes, anew in each call */
};

struct search {
	const struct skv_pool *p;
	const struct pool_class *c;
	struct candidate *v;
	size_t n;
	size_t cap;
	uint32_t turn;
};

/* Calls for each slab of the window in turn: start with i = w.first. Returns NULL at the end. */
static struct slab *next_slab(const struct skv_pool *p, struct window w, uint32_t *i)
{
	return skv_file_next_slab(p, w.file, w.first + w.units, i);
}

/* Returns false if emptying cannot free this window: a slab of the class itself, frozen units, no
 * slot, or nothing to empty (all of it is closed, and waits). */
static bool weigh(const struct search *f, struct window w, struct candidate *out)
{
	struct candidate c =
		{ .at = w, .tie = (w.first / w.units + f->turn) * 2654435761u +
			  w.file->id * 40503u };
	struct slab *s;
	bool open = false;

	if (skv_window_slots(f->p, f->c, w.file->length, w.first, w.units, NULL) == 0)
		return false;
	for (uint32_t i = w.first; i < w.first + w.units; i++)
		if (w.file->units[i].frozen)
			return false;
	for (uint32_t i = w.first; (s = next_slab(f->p, w, &i)) != NULL;) {
		if (s->class == f->c)
			return false;
		open |= s->used > 0 || !s->draining;
		c.used += s->used * s->class->stride;
		c.slabs++;
	}
	*out = c;
	return open;
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
			if (skv_grow((void **)&f->v, &f->cap, f->n + 1, sizeof *f->v))
				return SKV_E_NOMEM;
			f->v[f->n++] = c;
		}
	}
	return SKV_OK;
}

static int by_used(const void *a, const void *b)
{
	const struct candidate *x = a;
	const struct candidate *y = b;

	if (x->used != y->used)
		return x->used > y->used ? 1 : -1;
	return (x->tie > y->tie) - (x->tie < y->tie);
}

static int by_cost(const void *a, const void *b)
{
	const struct candidate *x = a;
	const struct candidate *y = b;

	return (x->cost > y->cost) - (x->cost < y->cost);
}

/* Fewest used bytes first; of the first ones, the cheapest first. */
static void order(const struct search *f, const struct skv_victims *v)
{
	size_t n = f->n < COMPARED ? f->n : COMPARED;

	if (f->n == 0)
		return;
	qsort(f->v, f->n, sizeof *f->v, by_used);
	if (!v->cost)
		return;
	for (size_t i = 0; i < n; i++) {
		struct candidate *c = &f->v[i];
		struct slab *s;

		for (uint32_t at = c->at.first; (s = next_slab(f->p, c->at, &at)) != NULL;)
			c->cost += v->cost(v->ctx, s->handle);
	}
	qsort(f->v, n, sizeof *f->v, by_cost);
}

/* How long until the window is free; SKV_SLAB_STAYS: it cannot be emptied. *slots grows by those in
 * use. */
static uint32_t waits_for(const struct search *f, struct window w, const struct skv_victims *v,
			  uint64_t *slots)
{
	uint32_t longest = 0;
	struct slab *s;

	for (uint32_t i = w.first; (s = next_slab(f->p, w, &i)) != NULL;) {
		uint32_t ms = v->waits(v->ctx, s->handle);

		if (ms == SKV_SLAB_STAYS)
			return ms;
		longest = ms > longest ? ms : longest;
		*slots += s->used;
	}
	return longest;
}

/* NULL: none can be emptied. */
static const struct candidate *choose(const struct search *f, const struct skv_victims *v)
{
	const struct candidate *best = NULL;
	uint32_t least = SKV_SLAB_STAYS;
	uint64_t slots = 0;

	for (size_t i = 0; i < f->n && least > 0 && !(best && slots >= LOOKS); i++) {
		uint32_t ms = waits_for(f, f->v[i].at, v, &slots);

		if (ms < least) {
			least = ms;
			best = &f->v[i];
		}
	}
	return best;
}

static int answer(const struct search *f, const struct candidate *c, uint32_t **slabs,
		  size_t *n_slabs)
{
	uint32_t *v = skv_malloc(c->slabs * sizeof *v);
	struct slab *s;
	size_t n = 0;

	if (!v)
		return SKV_E_NOMEM;
	for (uint32_t i = c->at.first; (s = next_slab(f->p, c->at, &i)) != NULL;)
		v[n++] = s->handle;
	assert(n == c->slabs);
	*slabs = v;
	*n_slabs = n;
	return SKV_OK;
}

int skv_pool_find_victims(struct skv_pool *p, uint32_t class_id, const struct skv_victims *v,
			  uint32_t **slabs, size_t *n_slabs)
{
	struct search f = { .p = p, .turn = ++p->victim_turn };
	const struct candidate *c;
	int status = SKV_E_NO_SPACE;

	assert(class_id < p->n_classes);
	f.c = p->classes[class_id];
	for (uint32_t o = f.c->order + 1; o-- > 0 && status == SKV_E_NO_SPACE;) {
		if (collect(&f, o)) {
			status = SKV_E_NOMEM;
			break;
		}
		order(&f, v);
		c = choose(&f, v);
		if (c)
			status = answer(&f, c, slabs, n_slabs);
	}
	skv_free(f.v);
	return status;
}
