/*
 * at.c - finds and takes slots by offset, for storages whose clients name slots themselves.
 *
 * Unlike recovery (take.c), these functions never override held or frozen slots.
 *
 * The caller serialises calls.
 */
#include "internal.h"

#include <assert.h>

/* Number of the slot that begins at `offset`, of the slots that begin at `first`. */
static bool slot_at(const struct pool_class *c, uint64_t first, uint64_t slots, uint64_t offset,
		    uint32_t *slot)
{
	uint64_t at = offset - first, segment = c->per_segment ? at / c->align : 0, i;

	at -= segment * c->align;
	i = segment * c->per_segment + at / c->stride;
	if (offset < first || at % c->stride != 0 || i >= slots ||
	    (c->per_segment && at / c->stride >= c->per_segment))
		return false;
	*slot = (uint32_t)i;
	return true;
}

static struct slab *slab_over(const struct skv_pool *p, const struct pool_file *f, uint64_t offset)
{
	uint32_t handle =
		f && offset < f->length ? f->units[offset / p->options.unit].slab : NO_SLAB;

	return handle == NO_SLAB ? NULL : p->slabs[handle];
}

bool skv_pool_at(const struct skv_pool *p, uint32_t file, uint64_t offset, uint32_t *slab,
		 uint32_t *slot)
{
	const struct slab *s = slab_over(p, skv_file_find(p, file), offset);

	if (!s || !slot_at(s->class, s->first_offset, s->slots, offset, slot))
		return false;
	*slab = s->handle;
	return true;
}

static bool window_is_free(struct window w)
{
	for (uint32_t i = w.first; i < w.first + w.units; i++)
		if (w.file->units[i].slab != NO_SLAB || w.file->units[i].frozen)
			return false;
	return true;
}

/* Opens the longest slab, no longer than the class's, that has the slot. */
static int open_over(struct skv_pool *p, struct pool_class *c, struct pool_file *f, uint64_t offset,
		     struct slab **out, uint32_t *slot)
{
	uint32_t unit = (uint32_t)(offset / p->options.unit);

	for (uint32_t order = c->order + 1; order-- > 0;) {
		struct window w = { f, unit >> order << order, UINT32_C(1) << order };
		uint64_t first, slots;

		if (w.units > f->n_units - w.first || !window_is_free(w))
			continue;
		slots = skv_window_slots(p, c, f->length, w.first, w.units, &first);
		if (slots > MAX_SLAB_SLOTS || !slot_at(c, first, slots, offset, slot))
			continue;
		if (skv_slab_new(p, c, w, out))
			return SKV_E_NOMEM;
		skv_slab_open(p, *out);
		return SKV_OK;
	}
	return SKV_E_NO_SPACE;
}

int skv_pool_alloc_at(struct skv_pool *p, uint32_t class_id, uint32_t file, uint64_t offset,
		      struct skv_run *run)
{
	struct pool_file *f = skv_file_find(p, file);
	struct slab *s = slab_over(p, f, offset);
	uint32_t slot;
	int status;

	assert(class_id < p->n_classes);
	if (!f || f->draining || offset >= f->length || p->classes[class_id]->per_segment)
		return SKV_E_NO_SPACE;
	if (s && (s->class != p->classes[class_id] || s->draining ||
		  !slot_at(s->class, s->first_offset, s->slots, offset, &slot) ||
		  skv_bits_test(s->busy, slot)))
		return SKV_E_NO_SPACE;
	if (!s) {
		status = open_over(p, p->classes[class_id], f, offset, &s, &slot);
		if (status)
			return status;
	}
	skv_slab_use(s, slot, 1);
	*run = (struct skv_run){ s->handle, slot, 1 };
	return SKV_OK;
}
