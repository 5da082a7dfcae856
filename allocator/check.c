/*
 * check.c - verifies every invariant of a pool. Used by tests after each step and by fsck.
 *
 * Recounts from the lowest level up: units against slabs, free blocks against units, bitmaps
 * against counts, lists against slabs, holds against held slots. Needs no memory and changes
 * nothing. The caller serialises calls.
 */
#include "internal.h"

#define WRONG(err, ...) skv_fail(err, SKV_E_CORRUPT, NULL, __VA_ARGS__)

/* Each unit is in exactly one of: a slab, a free block, the frozen ones. */
static int check_units(const struct skv_pool *p, const struct pool_file *f, uint64_t *frozen,
		       struct skv_error *err)
{
	uint32_t block_end = 0; /* units before it are in the free block seen last */

	for (uint32_t i = 0; i < f->n_units; i++) {
		const struct pool_unit *u = &f->units[i];
		bool in_slab = u->slab != NO_SLAB;

		if (u->file != f)
			return WRONG(err, "file %u unit %u: belongs to another file", f->id, i);
		if (u->order != NOT_FREE_HEAD) {
			uint32_t len = u->order < ORDERS ? UINT32_C(1) << u->order : 0;

			if (i < block_end || len == 0 || i % len != 0 || len > f->n_units - i)
				return WRONG(err, "file %u unit %u: misplaced free block", f->id,
					     i);
			if ((i ^ len) < f->n_units && f->units[i ^ len].order == u->order)
				return WRONG(err, "file %u unit %u: buddies are not merged", f->id,
					     i);
			block_end = i + len;
		}
		if (in_slab + u->frozen + (i < block_end) != 1)
			return WRONG(err, "file %u unit %u: slab %d, frozen %d, free %d", f->id, i,
				     in_slab, u->frozen, i < block_end);
		if (in_slab && (u->slab >= p->n_slabs || !p->slabs[u->slab]))
			return WRONG(err, "file %u unit %u: its slab is not open", f->id, i);
		*frozen += u->frozen;
	}
	return SKV_OK;
}

static int check_list(const struct pool_unit *u, uint32_t order, bool draining, uint64_t *listed,
		      struct skv_error *err)
{
	for (const struct pool_unit *prev = NULL; u; prev = u, u = u->next) {
		if (u->order != order || u->prev != prev || u->file->draining != draining)
			return WRONG(err, "list of free blocks of order %u is damaged", order);
		++*listed;
	}
	return SKV_OK;
}

static int check_free_lists(const struct skv_pool *p, struct skv_error *err)
{
	uint64_t listed = 0;
	uint64_t heads = 0;

	for (uint32_t o = 0; o < ORDERS; o++)
		if (check_list(p->free_blocks[o], o, false, &listed, err) ||
		    check_list(p->parked_blocks[o], o, true, &listed, err))
			return SKV_E_CORRUPT;
	for (size_t i = 0; i < p->n_files; i++)
		for (uint32_t u = 0; u < p->files[i]->n_units; u++)
			heads += p->files[i]->units[u].order != NOT_FREE_HEAD;
	if (listed != heads)
		return WRONG(err, "%llu free blocks, %llu listed", (unsigned long long)heads,
			     (unsigned long long)listed);
	return SKV_OK;
}

static int check_files(const struct skv_pool *p, struct skv_error *err)
{
	uint64_t frozen = 0;

	for (size_t i = 0; i < p->n_files; i++) {
		if (i > 0 && p->files[i - 1]->id >= p->files[i]->id)
			return WRONG(err, "files are out of order");
		if (check_units(p, p->files[i], &frozen, err))
			return SKV_E_CORRUPT;
	}
	if (frozen != p->frozen_units)
		return WRONG(err, "%llu units are frozen, %llu are counted",
			     (unsigned long long)frozen, (unsigned long long)p->frozen_units);
	return check_free_lists(p, err);
}

/* Each held slot names a hold that covers it. */
static int check_held(const struct skv_pool *p, const struct slab *s, uint64_t *overflow,
		      struct skv_error *err)
{
	for (uint32_t i = 0; i < s->slots; i++) {
		uint32_t id = s->owner[i];

		if (!skv_bits_test(s->held_bits, i))
			continue;
		if (!skv_bits_test(s->busy, i))
			return WRONG(err, "slab %u slot %u: free and held", s->handle, i);
		if (id == NO_HOLD)
			++*overflow;
		else if (id >= p->n_holds || p->holds[id].slab != s->handle ||
			 i - p->holds[id].first >= p->holds[id].count)
			return WRONG(err, "slab %u slot %u: no hold covers it", s->handle, i);
	}
	return SKV_OK;
}

/* Checks each segment: free slots come last, and none is dead unless some slot is in use. */
static int check_segments(const struct slab *s, struct skv_error *err)
{
	uint32_t per = s->class->per_segment, dead = 0;

	if (!per != !s->dead_bits || (per && s->slots % per != 0))
		return WRONG(err, "slab %u: its segments are wrong", s->handle);
	for (uint32_t at = 0; per && at < s->slots; at += per) {
		uint32_t n = skv_bits_count_range(s->dead_bits, at, per),
			 busy = skv_bits_count_range(s->busy, at, per);

		if (!skv_bits_all(s->busy, at, busy, true))
			return WRONG(err, "slab %u: a segment was not filled in order", s->handle);
		if (n > 0 && n == busy)
			return WRONG(err, "slab %u: a segment has dead slots only", s->handle);
		for (uint32_t i = at; i < at + per; i++)
			if (slot_dead(s, i) &&
			    (!skv_bits_test(s->busy, i) || skv_bits_test(s->held_bits, i)))
				return WRONG(err, "slab %u slot %u: dead, and free or held",
					     s->handle, i);
		dead += n;
	}
	return dead == s->dead ? SKV_OK
			       : WRONG(err, "slab %u: %u dead slots, its bitmap says %u", s->handle,
				       s->dead, dead);
}

static uint64_t slots_end(const struct slab *s)
{
	const struct pool_class *c = s->class;

	return s->first_offset +
	       (c->per_segment ? s->slots / c->per_segment * c->align : s->slots * c->stride);
}

static int check_slab(const struct skv_pool *p, const struct slab *s, struct skv_error *err)
{
	uint32_t busy = skv_bits_count(s->busy, s->slots);
	uint32_t held = skv_bits_count(s->held_bits, s->slots);
	const struct skv_pool_options *o = &p->options;
	uint64_t end = slots_end(s);

	if (busy != s->used + s->held + s->dead || held != s->held || s->used + s->held == 0)
		return WRONG(err, "slab %u: %u used, %u held, %u dead; its bitmaps say %u and %u",
			     s->handle, s->used, s->held, s->dead, busy - held - s->dead, held);
	for (uint32_t i = s->at.first; i < s->at.first + s->at.units; i++)
		if (i >= s->at.file->n_units || s->at.file->units[i].slab != s->handle)
			return WRONG(err, "slab %u: unit %u is not its own", s->handle, i);
	if (s->first_offset % s->class->align != 0 || s->first_offset < o->header ||
	    s->first_offset < s->at.first * o->unit || end > s->at.file->length - o->trailer ||
	    end > (s->at.first + (uint64_t)s->at.units) * o->unit)
		return WRONG(err, "slab %u: slots reach out of it", s->handle);
	if (check_segments(s, err))
		return SKV_E_CORRUPT;
	if (s->longest < skv_slab_longest(s))
		return WRONG(err, "slab %u: longest run %u, bound %u", s->handle,
			     skv_slab_longest(s), s->longest);
	if (s->listed != (slab_free(s) > 0 && !s->draining && !s->at.file->draining))
		return WRONG(err, "slab %u: listed %d with %u free slots, draining %d", s->handle,
			     s->listed, slab_free(s), s->draining);
	return SKV_OK;
}

/* Recounts the counters kept for each file. */
static int check_sums(const struct skv_pool *p, struct skv_error *err)
{
	for (size_t i = 0; i < p->n_files; i++) {
		const struct pool_file *f = p->files[i];
		uint32_t slabs = 0, frozen = 0, unit = 0;
		uint64_t used = 0;

		for (const struct slab *s;
		     (s = skv_file_next_slab(p, f, f->n_units, &unit)) != NULL; slabs++)
			used += s->used * s->class->stride;
		for (uint32_t u = 0; u < f->n_units; u++)
			frozen += f->units[u].frozen;
		if (slabs != f->n_slabs || frozen != f->n_frozen || used != f->used_bytes)
			return WRONG(
				err,
				"file %u: its slabs, frozen units or used bytes are counted wrong",
				f->id);
	}
	return SKV_OK;
}

static int check_slabs(const struct skv_pool *p, struct skv_error *err)
{
	uint64_t overflow = 0;
	uint64_t units = 0;
	size_t unused = 0;

	for (size_t i = 0; i < p->n_slabs; i++) {
		const struct slab *s = p->slabs[i];

		if (!s) {
			unused++;
			continue;
		}
		if (s->handle != i)
			return WRONG(err, "slab %zu has handle %u", i, s->handle);
		if (check_slab(p, s, err) || check_held(p, s, &overflow, err))
			return SKV_E_CORRUPT;
		units += s->at.units;
	}
	for (size_t i = 0; i < p->n_files; i++)
		for (uint32_t u = 0; u < p->files[i]->n_units; u++)
			units -= p->files[i]->units[u].slab != NO_SLAB;
	if (units != 0 || unused != p->n_spare || overflow != p->overflow_slots)
		return WRONG(err, "slabs and units, handles or overflow do not agree");
	return SKV_OK;
}

/* Lists and masks of one class. */
static int check_class(const struct skv_pool *p, const struct pool_class *c, struct skv_error *err)
{
	uint64_t free_listed = 0;
	uint64_t units = 0;
	size_t listed = 0;

	for (uint32_t r = 0; r < ORDERS; r++) {
		if ((c->fill_mask[r] != 0) != (c->run_mask >> r & 1))
			return WRONG(err, "class %u: run mask is wrong at %u", c->id, r);
		for (uint32_t b = 0; b < FILL_BUCKETS; b++) {
			const struct slab *prev = NULL;

			if ((c->lists[r][b] != NULL) != (c->fill_mask[r] >> b & 1))
				return WRONG(err, "class %u: fill mask is wrong at %u,%u", c->id, r,
					     b);
			for (const struct slab *s = c->lists[r][b]; s; prev = s, s = s->next) {
				if (s->class != c || s->prev != prev || !s->listed ||
				    log2_floor(s->longest) != r || skv_slab_fill_bucket(s) != b)
					return WRONG(err, "slab %u: in the wrong list", s->handle);
				free_listed += slab_free(s);
				listed++;
			}
		}
	}
	for (size_t i = 0; i < p->n_slabs; i++) {
		if (!p->slabs[i] || p->slabs[i]->class != c)
			continue;
		listed -= p->slabs[i]->listed;
		units += p->slabs[i]->at.units;
	}
	if (units != c->units || c->order < c->least || c->order > c->most)
		return WRONG(err, "class %u: its units are counted wrong", c->id);
	if (listed != 0 || free_listed != c->free)
		return WRONG(err, "class %u: lists and free slots do not agree", c->id);
	if (c->unit_slots != skv_units_slots(p, c))
		return WRONG(err, "class %u: slots in free units are counted wrong", c->id);
	return SKV_OK;
}

static int check_hold(const struct skv_pool *p, size_t id, struct skv_error *err)
{
	const struct hold *h = &p->holds[id];
	const struct slab *s;
	uint32_t live = 0;

	if (h->slab == NO_SLAB || h->live == 0)
		return SKV_OK;
	s = h->slab < p->n_slabs ? p->slabs[h->slab] : NULL;
	if (!s || h->first > s->slots || h->count > s->slots - h->first)
		return WRONG(err, "hold %zu reaches out of its slab", id);
	for (uint32_t i = h->first; i < h->first + h->count; i++)
		live += skv_bits_test(s->held_bits, i) && s->owner[i] == id;
	if (live != h->live)
		return WRONG(err, "hold %zu: %u live slots, %u counted", id, live, h->live);
	return SKV_OK;
}

static int check_holds(const struct skv_pool *p, struct skv_error *err)
{
	size_t spare = 0;

	for (size_t i = 0; i < p->n_holds; i++)
		if (check_hold(p, i, err))
			return SKV_E_CORRUPT;
	for (uint32_t id = p->spare_hold; id != NO_HOLD && spare <= p->n_holds; spare++) {
		if (id >= p->n_holds || p->holds[id].slab != NO_SLAB)
			return WRONG(err, "list of unused holds is damaged");
		id = p->holds[id].first;
	}
	if (spare + p->n_heap != p->n_holds)
		return WRONG(err, "%zu holds, %zu unused, %zu in the heap", p->n_holds, spare,
			     p->n_heap);
	for (size_t i = 1; i < p->n_heap; i++)
		if (p->holds[p->heap[i]].until < p->holds[p->heap[(i - 1) / 2]].until)
			return WRONG(err, "heap of holds is out of order at %zu", i);
	return SKV_OK;
}

int skv_pool_check(const struct skv_pool *p, struct skv_error *err)
{
	if (check_files(p, err) || check_slabs(p, err) || check_sums(p, err) || check_holds(p, err))
		return SKV_E_CORRUPT;
	for (size_t i = 0; i < p->n_classes; i++)
		if (check_class(p, p->classes[i], err))
			return SKV_E_CORRUPT;
	return SKV_OK;
}
