/*
 * hold.c - quarantine: slots (and, after an unclean boot, free units) that must wait.
 *
 * Owns the table of holds and the heap that orders them by time. A held slot carries the index of
 * its hold where a used one carries its owner, so a hold releases exactly the slots that are still
 * its own: skv_pool_take may take some of them earlier, and those may be used or held anew by then.
 *
 * Nothing here may fail. Without memory for another hold, slots are held by the overflow: one time
 * for all of them, the latest, found again by visiting all slabs.
 *
 * The caller serialises calls.
 */
#include "internal.h"

#include <skv/mem.h>

#include <assert.h>

static bool earlier(const struct skv_pool *p, uint32_t a, uint32_t b)
{
	return p->holds[a].until < p->holds[b].until;
}

static void heap_push(struct skv_pool *p, uint32_t id)
{
	size_t i = p->n_heap++;

	assert(i < p->cap_heap && p->holds[id].slab != NO_SLAB);
	while (i > 0 && earlier(p, id, p->heap[(i - 1) / 2])) {
		p->heap[i] = p->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	p->heap[i] = id;
}

static uint32_t heap_pop(struct skv_pool *p)
{
	uint32_t top = p->heap[0];
	uint32_t id;
	size_t i = 0;

	assert(p->n_heap > 0);
	id = p->heap[--p->n_heap];

	for (size_t child; (child = 2 * i + 1) < p->n_heap; i = child) {
		if (child + 1 < p->n_heap && earlier(p, p->heap[child + 1], p->heap[child]))
			child++;
		if (!earlier(p, p->heap[child], id))
			break;
		p->heap[i] = p->heap[child];
	}
	p->heap[i] = id;
	return top;
}

/* An entry for the range, or NO_HOLD (the overflow) when memory is short. */
static uint32_t hold_new(struct skv_pool *p, uint32_t slab, uint32_t first, uint32_t count,
			 uint64_t until)
{
	uint32_t id = p->spare_hold;

	if (skv_grow((void **)&p->heap, &p->cap_heap, p->n_heap + 1, sizeof *p->heap))
		return NO_HOLD;
	if (id == NO_HOLD) {
		if (p->n_holds >= NO_HOLD ||
		    skv_grow((void **)&p->holds, &p->cap_holds, p->n_holds + 1, sizeof *p->holds))
			return NO_HOLD;
		id = (uint32_t)p->n_holds++;
	} else {
		assert(p->holds[id].slab == NO_SLAB && p->holds[id].live == 0);
		p->spare_hold = p->holds[id].first;
	}
	p->holds[id] = (struct hold){ until, slab, first, count, .live = 0 };
	heap_push(p, id);
	return id;
}

/* The hold for a range of slots: the newest one if the range continues it, as when the blocks of a
 * session are held one after another, else a new one. A newest one that has ended matches no slab;
 * one without live slots may be extended like any other. */
static uint32_t hold_for(struct skv_pool *p, const struct slab *s, uint32_t first, uint32_t count,
			 uint64_t until)
{
	struct hold *last = p->last_hold == NO_HOLD ? NULL : &p->holds[p->last_hold];

	if (last && last->slab == s->handle && last->until == until &&
	    last->first + last->count == first)
		last->count += count;
	else
		p->last_hold = hold_new(p, s->handle, first, count, until);
	return p->last_hold;
}

/* Marks busy slots as those of hold `id`. The caller keeps the count of used ones. */
static void mark(struct skv_pool *p, struct slab *s, struct skv_run run, uint32_t id,
		 uint64_t until)
{
	skv_bits_fill(s->held_bits, run.first, run.count, true);
	for (uint32_t i = run.first; i < run.first + run.count; i++)
		s->owner[i] = id;
	s->held += run.count;
	assert(s->held <= s->slots);
	if (id == NO_HOLD) {
		p->overflow_slots += run.count;
		p->overflow_until = u64_max(p->overflow_until, until);
	} else {
		p->holds[id].live += run.count;
	}
}

/* Slots of hold `id` become free. */
static void unmark(struct skv_pool *p, struct slab *s, struct skv_run run, uint32_t id)
{
	skv_slab_unuse(s, run.first, run.count, true);
	if (id != NO_HOLD) {
		assert(p->holds[id].slab == s->handle && p->holds[id].live >= run.count);
		p->holds[id].live -= run.count;
		return;
	}
	assert(p->overflow_slots >= run.count);
	p->overflow_slots -= run.count;
	if (p->overflow_slots == 0)
		p->overflow_until = 0;
}

void skv_pool_hold(struct skv_pool *p, struct skv_run run, uint64_t until_ms)
{
	struct slab *s = skv_slab_get(p, run.slab);

	assert(run.first < s->slots && run.count <= s->slots - run.first);
	assert(skv_bits_all(s->busy, run.first, run.count, true));
	assert(skv_bits_all(s->held_bits, run.first, run.count, false));
	assert(!s->dead_bits || skv_bits_all(s->dead_bits, run.first, run.count, false));
	if (run.count == 0)
		return;
	/* Used to held changes no free slot: the lists stay as they are. */
	s->used -= run.count;
	s->at.file->used_bytes -= run.count * s->class->stride;
	mark(p, s, run, hold_for(p, s, run.first, run.count, until_ms), until_ms);
}

void skv_hold_free_slots(struct skv_pool *p, struct slab *s, uint64_t until)
{
	uint32_t first;
	uint32_t n;
	uint32_t id;

	if (slab_free(s) == 0)
		return;
	/* A single hold covers the whole slab: only slots with its index belong to the hold. */
	id = hold_new(p, s->handle, 0, s->slots, until);
	skv_slab_unlist(s);
	for (uint32_t at = 0; (n = skv_slab_next_free(s, at, &first)) > 0; at = first + n) {
		skv_bits_fill(s->busy, first, n, true);
		mark(p, s, (struct skv_run){ s->handle, first, n }, id, until);
	}
	skv_slab_list(s);
}

/* Raising the earliest ones to the same time keeps the heap ordered. */
static void outlast(struct skv_pool *p, uint64_t until)
{
	for (size_t i = 0; i < p->n_heap; i++)
		p->holds[p->heap[i]].until = u64_max(p->holds[p->heap[i]].until, until);
	if (p->overflow_slots)
		p->overflow_until = u64_max(p->overflow_until, until);
}

void skv_pool_freeze_free(struct skv_pool *p, uint64_t until_ms)
{
	outlast(p, until_ms);
	for (size_t i = 0; i < p->n_slabs; i++)
		if (p->slabs[i])
			skv_hold_free_slots(p, p->slabs[i], until_ms);
	skv_units_freeze(p, until_ms);
}

/* The next run at or after `from` and before `end` of held slots with one owner: sets *first,
 * returns its length, 0 if there is none. */
static uint32_t next_held(const struct slab *s, uint32_t from, uint32_t end, uint32_t *first)
{
	uint32_t i = skv_bits_next(s->held_bits, from, end, true);

	*first = i;
	while (i < end && skv_bits_test(s->held_bits, i) && s->owner[i] == s->owner[*first])
		i++;
	return i - *first;
}

void skv_hold_drop(struct skv_pool *p, struct slab *s, uint32_t first, uint32_t count)
{
	uint32_t end = first + count;
	uint32_t run;
	uint32_t n;

	for (uint32_t at = first; (n = next_held(s, at, end, &run)) > 0; at = run + n) {
		unmark(p, s, (struct skv_run){ s->handle, run, n }, s->owner[run]);
	}
}

/* Frees the slots of the range that hold `id` still has; the slab may close. Returns how many. */
static uint64_t release_range(struct skv_pool *p, struct slab *s, uint32_t id, uint32_t first,
			      uint32_t count)
{
	uint32_t end = first + count;
	uint64_t freed = 0;
	uint32_t run;
	uint32_t n;

	for (uint32_t at = first; (n = next_held(s, at, end, &run)) > 0; at = run + n) {
		if (s->owner[run] != id)
			continue;
		unmark(p, s, (struct skv_run){ s->handle, run, n }, id);
		freed += n;
	}
	skv_slab_settle(p, s);
	return freed;
}

static uint64_t release_overflow(struct skv_pool *p)
{
	uint64_t freed = 0;

	for (size_t i = 0; i < p->n_slabs; i++)
		if (p->slabs[i])
			freed += release_range(p, p->slabs[i], NO_HOLD, 0, p->slabs[i]->slots);
	return freed;
}

static uint64_t release_hold(struct skv_pool *p, uint32_t id)
{
	struct hold *h = &p->holds[id];
	uint64_t freed = 0;

	/* Without live slots the handle may name another slab by now. */
	if (h->live)
		freed = release_range(p, skv_slab_get(p, h->slab), id, h->first, h->count);
	assert(h->live == 0);
	*h = (struct hold){ .slab = NO_SLAB, .first = p->spare_hold };
	p->spare_hold = id;
	return freed;
}

uint64_t skv_pool_release_due(struct skv_pool *p, uint64_t now_ms)
{
	uint64_t freed = 0;

	while (p->n_heap && p->holds[p->heap[0]].until <= now_ms)
		freed += release_hold(p, heap_pop(p));
	if (p->overflow_slots && p->overflow_until <= now_ms)
		freed += release_overflow(p);
	if (p->frozen_units && p->frozen_until <= now_ms)
		freed += skv_units_thaw_some(p);
	return freed;
}

uint64_t skv_pool_next_due(const struct skv_pool *p)
{
	uint64_t due = UINT64_MAX;

	if (p->n_heap)
		due = p->holds[p->heap[0]].until;
	if (p->overflow_slots)
		due = u64_min(due, p->overflow_until);
	if (p->frozen_units)
		due = u64_min(due, p->frozen_until);
	return due;
}

static void each_hold_of(const struct skv_pool *p, const struct slab *s,
			 void (*fn)(void *ctx, struct skv_run run, uint64_t until_ms), void *ctx)
{
	uint32_t first;
	uint32_t n;

	for (uint32_t at = 0; (n = next_held(s, at, s->slots, &first)) > 0; at = first + n) {
		uint32_t id = s->owner[first];
		uint64_t until = id == NO_HOLD ? p->overflow_until : p->holds[id].until;

		fn(ctx, (struct skv_run){ s->handle, first, n }, until);
	}
}

void skv_pool_each_hold(const struct skv_pool *p,
			void (*fn)(void *ctx, struct skv_run run, uint64_t until_ms), void *ctx)
{
	for (size_t i = 0; i < p->n_slabs; i++)
		if (p->slabs[i])
			each_hold_of(p, p->slabs[i], fn, ctx);
}
