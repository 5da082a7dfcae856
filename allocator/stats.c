/*
 * stats.c - reads a pool: slabs, owners, totals. Changes nothing but owners.
 *
 * The caller serialises calls.
 */
#include "internal.h"

#include <assert.h>

static struct slab *slab_with(const struct skv_pool *p, uint32_t handle, uint32_t slot)
{
	struct slab *s = skv_slab_get(p, handle);

	assert(slot < s->slots);
	return s;
}

void skv_pool_set_owner(struct skv_pool *p, uint32_t slab, uint32_t slot, uint32_t owner)
{
	struct slab *s = slab_with(p, slab, slot);

	assert(slot_used(s, slot));
	s->owner[slot] = owner;
}

uint32_t skv_pool_owner(const struct skv_pool *p, uint32_t slab, uint32_t slot)
{
	struct slab *s = slab_with(p, slab, slot);

	assert(slot_used(s, slot));
	return s->owner[slot];
}

bool skv_pool_is_used(const struct skv_pool *p, uint32_t slab, uint32_t slot)
{
	if (slab >= p->n_slabs || !p->slabs[slab] || slot >= p->slabs[slab]->slots)
		return false;
	return slot_used(p->slabs[slab], slot);
}

void skv_pool_segment(const struct skv_pool *p, uint32_t slab, uint32_t slot, uint32_t *first,
		      uint32_t *count)
{
	const struct slab *s = slab_with(p, slab, slot);
	uint32_t per = s->class->per_segment ? s->class->per_segment : 1;

	*first = slot / per * per;
	*count = per;
}

bool skv_pool_slab(const struct skv_pool *p, uint32_t slab, struct skv_slab_info *out)
{
	const struct slab *s = slab < p->n_slabs ? p->slabs[slab] : NULL;

	if (!s)
		return false;
	*out = (struct skv_slab_info){
		.place = { s->at.file->id, s->at.first, s->at.units },
		.class_id = s->class->id,
		.stride = s->class->stride,
		.align = s->class->align,
		.first_offset = s->first_offset,
		.per_segment = s->class->per_segment,
		.slots = s->slots,
		.used = s->used,
		.held = s->held,
		.dead = s->dead,
		.draining = s->draining,
	};
	return true;
}

void skv_pool_each_slab(const struct skv_pool *p, void (*fn)(void *ctx, uint32_t slab), void *ctx)
{
	for (size_t i = 0; i < p->n_slabs; i++)
		if (p->slabs[i])
			fn(ctx, (uint32_t)i);
}

void skv_pool_stats(const struct skv_pool *p, struct skv_pool_stats *out)
{
	struct skv_pool_stats st = { .files = (uint32_t)p->n_files };

	for (size_t i = 0; i < p->n_files; i++) {
		st.file_bytes += p->files[i]->length;
		st.draining_bytes += p->files[i]->draining ? p->files[i]->length : 0;
	}
	for (size_t i = 0; i < p->n_slabs; i++) {
		const struct slab *s = p->slabs[i];

		if (!s)
			continue;
		st.slabs++;
		st.assigned_bytes += skv_window_bytes(p, s->at);
		st.slot_bytes += s->slots * s->class->stride;
		st.used_bytes += s->used * s->class->stride;
		st.held_bytes += s->held * s->class->stride;
		st.dead_bytes += s->dead * s->class->stride;
		/* The bound identifies slabs that can be skipped. */
		if (s->longest > st.largest_free_run)
			st.largest_free_run = u64_max(st.largest_free_run, skv_slab_longest(s));
	}
	st.free_unit_bytes = st.file_bytes - st.assigned_bytes;
	*out = st;
}
