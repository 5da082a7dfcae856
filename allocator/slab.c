/*
 * slab.c - a slab: its memory, its bitmaps, and its position in its class's lists.
 *
 * Owns the table of handles and the class lists. A slab with free slots stands in the list
 * [log2(longest free run)][fill]: from there alloc.c finds the fullest slab that has a run of n
 * slots without visiting the others. `longest` is an upper bound: freeing raises it exactly,
 * allocating leaves it, and a search that fails there corrects it.
 *
 * The caller serialises calls.
 */
#include "internal.h"

#include <skv/mem.h>

#include <assert.h>
#include <string.h>

struct slab *skv_slab_get(const struct skv_pool *p, uint32_t handle)
{
	assert(handle < p->n_slabs && p->slabs[handle]);
	return p->slabs[handle];
}

/* Only skv_slab_open takes a handle. This only makes room for one more. */
static int reserve_handle(struct skv_pool *p)
{
	if (p->n_spare)
		return SKV_OK;
	if (p->n_slabs >= SKV_POOL_SLABS)
		return SKV_E_NOMEM;
	if (skv_grow((void **)&p->slabs, &p->cap_slabs, p->n_slabs + 1, sizeof *p->slabs))
		return SKV_E_NOMEM;
	return skv_grow((void **)&p->spare, &p->cap_spare, p->n_slabs + 1, sizeof *p->spare);
}

/* Creates the slab of a window in a file of this length; not listed anywhere yet. */
static struct slab *slab_make(const struct skv_pool *p, struct pool_class *c, struct window w,
			      uint64_t length)
{
	uint64_t offset;
	uint64_t slots = skv_window_slots(p, c, length, w.first, w.units, &offset);
	size_t words = skv_bits_words((uint32_t)slots), maps = c->per_segment ? 3 : 2;
	struct slab *s;

	assert(slots > 0 && slots <= MAX_SLAB_SLOTS);
	/* A single allocation: the slab, its bitmaps, the owners. */
	s = skv_calloc(1, sizeof *s + maps * words * sizeof(uint64_t) + slots * sizeof(uint32_t));
	if (!s)
		return NULL;
	s->class = c;
	s->at = w;
	s->first_offset = offset;
	s->slots = (uint32_t)slots;
	s->longest = s->slots;
	s->busy = (uint64_t *)(s + 1);
	s->held_bits = s->busy + words;
	s->dead_bits = c->per_segment ? s->held_bits + words : NULL;
	s->owner = (uint32_t *)(s->busy + maps * words);
	return s;
}

int skv_slab_new(struct skv_pool *p, struct pool_class *c, struct window w, struct slab **out)
{
	struct slab *s = reserve_handle(p) ? NULL : slab_make(p, c, w, w.file->length);

	if (s)
		*out = s;
	return s ? SKV_OK : SKV_E_NOMEM;
}

int skv_slabs_longer(const struct skv_pool *p, const struct pool_file *f, uint64_t length,
		     struct slab **list)
{
	uint32_t before = NO_SLAB;

	*list = NULL;
	for (uint64_t u = (f->length - p->options.trailer) / p->options.unit; u < f->n_units; u++) {
		uint32_t handle = f->units[u].slab;
		const struct slab *old =
			handle == NO_SLAB || handle == before ? NULL : p->slabs[handle];
		struct slab *s;

		before = handle;
		if (!old || skv_window_slots(p, old->class, length, old->at.first, old->at.units,
					     NULL) == old->slots)
			continue;
		s = slab_make(p, old->class, old->at, length);
		if (!s) {
			skv_slabs_forget(*list);
			return SKV_E_NOMEM;
		}
		s->handle = handle;
		s->opened = *list;
		*list = s;
	}
	return SKV_OK;
}

void skv_slabs_forget(struct slab *list)
{
	while (list) {
		struct slab *next = list->opened;

		skv_free(list);
		list = next;
	}
}

void skv_slabs_replace(struct skv_pool *p, struct slab *list)
{
	while (list) {
		struct slab *s = list, *old = p->slabs[s->handle];
		size_t words = skv_bits_words(old->slots);

		assert(s->class == old->class && s->slots > old->slots);
		list = s->opened;
		s->opened = NULL;
		skv_slab_unlist(old);
		memcpy(s->busy, old->busy, words * sizeof *s->busy);
		memcpy(s->held_bits, old->held_bits, words * sizeof *s->held_bits);
		memcpy(s->owner, old->owner, old->slots * sizeof *s->owner);
		if (s->dead_bits)
			memcpy(s->dead_bits, old->dead_bits, words * sizeof *s->dead_bits);
		s->used = old->used;
		s->held = old->held;
		s->dead = old->dead;
		s->longest = old->longest + s->slots - old->slots;
		s->draining = old->draining;
		p->slabs[s->handle] = s;
		skv_slab_list(s);
		skv_free(old);
	}
}

void skv_slab_open(struct skv_pool *p, struct slab *s)
{
	assert(s->used == 0 && s->held == 0 && s->dead == 0);
	s->handle = p->n_spare ? p->spare[--p->n_spare] : (uint32_t)p->n_slabs++;
	p->slabs[s->handle] = s;
	skv_units_claim(p, s->at, s->handle);
	skv_class_resize(p, s->class, s->at.units);
	skv_slab_list(s);
}

void skv_slab_close(struct skv_pool *p, struct slab *s)
{
	assert(s->used == 0 && s->held == 0 && p->slabs[s->handle] == s);
	skv_slab_unlist(s);
	skv_units_release(p, s->at);
	skv_class_resize(p, s->class, -(int64_t)s->at.units);
	p->slabs[s->handle] = NULL;
	p->spare[p->n_spare++] = s->handle;
	skv_free(s);
}

void skv_slab_settle(struct skv_pool *p, struct slab *s)
{
	if (s->used == 0 && s->held == 0)
		skv_slab_close(p, s);
}

/*
 * How full, as one of 64: the free part in 1/65536 of the slab, on a scale with four steps for each
 * power of two. Fine near full, where in a busy pool nearly all slabs are.
 */
uint32_t skv_slab_fill_bucket(const struct slab *s)
{
	assert(slab_free(s) > 0 && slab_free(s) <= s->slots);
	uint32_t part = (uint32_t)(((uint64_t)slab_free(s) * 65536 + s->slots - 1) / s->slots);
	uint32_t log = log2_floor(part);

	return log < 2 ? part : 4 * (log - 2) + (part >> (log - 2));
}

void skv_slab_unlist(struct slab *s)
{
	struct pool_class *c = s->class;
	struct slab **head = &c->lists[s->run_bucket][s->fill_bucket];

	if (!s->listed)
		return;
	assert(c->free >= slab_free(s) && (s->prev || *head == s));
	s->listed = false;
	c->free -= slab_free(s);
	if (s->next)
		s->next->prev = s->prev;
	if (s->prev) {
		s->prev->next = s->next;
		return;
	}
	*head = s->next;
	if (!*head)
		c->fill_mask[s->run_bucket] &= ~(UINT64_C(1) << s->fill_bucket);
	if (!c->fill_mask[s->run_bucket])
		c->run_mask &= ~(UINT32_C(1) << s->run_bucket);
}

void skv_slab_list(struct slab *s)
{
	struct pool_class *c = s->class;
	struct slab **head;

	assert(!s->listed);
	assert((uint64_t)s->used + s->held + s->dead <= s->slots);
	if (s->longest > slab_free(s))
		s->longest = slab_free(s);
	if (slab_free(s) == 0 || s->draining || s->at.file->draining)
		return;
	s->run_bucket = (uint8_t)log2_floor(s->longest);
	s->fill_bucket = (uint8_t)skv_slab_fill_bucket(s);
	head = &c->lists[s->run_bucket][s->fill_bucket];
	s->prev = NULL;
	s->next = *head;
	if (*head)
		(*head)->prev = s;
	*head = s;
	c->fill_mask[s->run_bucket] |= UINT64_C(1) << s->fill_bucket;
	c->run_mask |= UINT32_C(1) << s->run_bucket;
	c->free += slab_free(s);
	s->listed = true;
}

void skv_slab_use(struct slab *s, uint32_t first, uint32_t count)
{
	assert(first < s->slots && count <= s->slots - first &&
	       skv_bits_all(s->busy, first, count, false));
	skv_slab_unlist(s);
	skv_bits_fill(s->busy, first, count, true);
	memset(s->owner + first, 0, count * sizeof *s->owner);
	s->used += count;
	s->at.file->used_bytes += count * s->class->stride;
	skv_slab_list(s);
}

/* These slots are free from now on; no list has the slab meanwhile. */
static void set_free(struct slab *s, uint32_t first, uint32_t count)
{
	uint32_t run;

	skv_bits_fill(s->busy, first, count, false);
	run = skv_bits_next(s->busy, first + count, s->slots, true) - first +
	      skv_bits_clear_before(s->busy, first);
	if (run > s->longest)
		s->longest = run;
}

/* The slots become dead, and each of their segments free if nothing else is left in it. */
static void bury(struct slab *s, uint32_t first, uint32_t count)
{
	uint32_t per = s->class->per_segment;

	assert(skv_bits_all(s->dead_bits, first, count, false) &&
	       skv_bits_all(s->busy, first, count, true));
	skv_bits_fill(s->dead_bits, first, count, true);
	s->dead += count;
	for (uint32_t at = first / per * per; at < first + count; at += per) {
		uint32_t dead = skv_bits_count_range(s->dead_bits, at, per);

		if (skv_bits_count_range(s->busy, at, per) > dead)
			continue;
		skv_bits_fill(s->dead_bits, at, per, false);
		s->dead -= dead;
		set_free(s, at, per);
	}
}

void skv_slab_unuse(struct slab *s, uint32_t first, uint32_t count, bool held)
{
	assert(first < s->slots && count <= s->slots - first);
	assert(held ? s->held >= count
		    : s->used >= count && s->at.file->used_bytes >= count * s->class->stride);
	skv_slab_unlist(s);
	if (held) {
		skv_bits_fill(s->held_bits, first, count, false);
		s->held -= count;
	} else {
		s->used -= count;
		s->at.file->used_bytes -= count * s->class->stride;
	}
	if (s->dead_bits)
		bury(s, first, count);
	else
		set_free(s, first, count);
	skv_slab_list(s);
}

void skv_slab_make_way(struct slab *s, uint32_t first, uint32_t count)
{
	uint32_t begin;

	if (!s->dead_bits)
		return;
	begin = first / s->class->per_segment * s->class->per_segment;
	skv_slab_unlist(s);
	for (uint32_t i = first; i < first + count; i++) {
		if (!slot_dead(s, i))
			continue;
		skv_bits_fill(s->dead_bits, i, 1, false);
		s->dead--;
		set_free(s, i, 1);
	}
	for (uint32_t i = begin; i < first; i++) {
		if (skv_bits_test(s->busy, i))
			continue;
		skv_bits_fill(s->busy, i, 1, true);
		skv_bits_fill(s->dead_bits, i, 1, true);
		s->dead++;
	}
	skv_slab_list(s);
}

uint32_t skv_slab_next_free(const struct slab *s, uint32_t from, uint32_t *first)
{
	*first = skv_bits_next(s->busy, from, s->slots, false);
	return skv_bits_next(s->busy, *first, s->slots, true) - *first;
}

uint32_t skv_slab_longest(const struct slab *s)
{
	uint32_t longest = 0;
	uint32_t first;
	uint32_t n;

	for (uint32_t at = 0; (n = skv_slab_next_free(s, at, &first)) > 0; at = first + n)
		if (n > longest)
			longest = n;
	return longest;
}
