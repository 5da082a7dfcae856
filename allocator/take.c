/*
 * take.c - takes exact slots: how recovery rebuilds a pool from durable records.
 *
 * A record that hands slots out proves that they were free then, so slots that this pool still
 * holds there (its holds were restarted with their full duration) are overridden, whole slabs
 * included. Used slots are never overridden: two records that claim one slot mean a corrupt
 * journal.
 *
 * The caller serialises calls. Everything is checked, and all memory taken, before anything
 * changes.
 */
#include "internal.h"

#include <assert.h>

static bool place_fits(const struct pool_file *f, struct skv_slab_place place)
{
	if (place.units == 0 || (place.units & (place.units - 1)) != 0)
		return false;
	return place.unit % place.units == 0 && place.unit < f->n_units &&
	       place.units <= f->n_units - place.unit;
}

/* The slab that has the slots already. */
static struct slab *slab_there(const struct skv_pool *p, const struct pool_class *c,
			       struct window w)
{
	uint32_t handle = w.file->units[w.first].slab;
	struct slab *s = handle == NO_SLAB ? NULL : p->slabs[handle];

	if (!s || s->class != c)
		return NULL;
	return s->at.first == w.first && s->at.units == w.units ? s : NULL;
}

static bool window_is_unused(const struct skv_pool *p, struct window w)
{
	for (uint32_t i = w.first; i < w.first + w.units; i++) {
		uint32_t handle = w.file->units[i].slab;

		if (handle != NO_SLAB && p->slabs[handle]->used > 0)
			return false;
	}
	return true;
}

static void clear_window(struct skv_pool *p, struct window w)
{
	for (uint32_t i = w.first; i < w.first + w.units; i++) {
		uint32_t handle = w.file->units[i].slab;
		struct slab *s;

		if (handle == NO_SLAB)
			continue;
		s = p->slabs[handle];
		skv_hold_drop(p, s, 0, s->slots);
		skv_slab_close(p, s);
	}
}

static int open_there(struct skv_pool *p, struct pool_class *c, struct window w, struct slab **out)
{
	uint64_t until = p->frozen_until;
	struct slab *s;

	if (!window_is_unused(p, w))
		return SKV_E_CORRUPT;
	if (skv_slab_new(p, c, w, &s))
		return SKV_E_NOMEM;
	clear_window(p, w);
	if (skv_units_thaw(p, w)) {
		/* The slots that this call does not take stay frozen. */
		skv_slab_open(p, s);
		skv_hold_free_slots(p, s, until);
	} else {
		skv_slab_open(p, s);
	}
	*out = s;
	return SKV_OK;
}

/* Returns true if no slot of the range is used. */
static bool range_is_unused(const struct slab *s, uint32_t first, uint32_t count)
{
	for (uint32_t i = first; i < first + count; i++)
		if (slot_used(s, i))
			return false;
	return true;
}

int skv_pool_take(struct skv_pool *p, uint32_t class_id, struct skv_slab_place place,
		  uint32_t first, uint32_t count, struct skv_run *run)
{
	struct pool_file *f = skv_file_find(p, place.file);
	uint64_t end = (uint64_t)first + count;
	struct pool_class *c;
	struct window w;
	struct slab *s;
	uint64_t slots;
	int status;

	assert(class_id < p->n_classes);
	c = p->classes[class_id];
	if (!f || !place_fits(f, place))
		return SKV_E_CORRUPT;
	w = (struct window){ f, place.unit, place.units };
	slots = skv_window_slots(p, c, f->length, w.first, w.units, NULL);
	if (slots > MAX_SLAB_SLOTS || count == 0 || end > slots)
		return SKV_E_CORRUPT;
	s = slab_there(p, c, w);
	if (s && !range_is_unused(s, first, count))
		return SKV_E_CORRUPT;
	if (!s) {
		status = open_there(p, c, w, &s);
		if (status)
			return status;
	}
	skv_hold_drop(p, s, first, count);
	skv_slab_make_way(s, first, count);
	skv_slab_use(s, first, count);
	*run = (struct skv_run){ s->handle, first, count };
	return SKV_OK;
}
