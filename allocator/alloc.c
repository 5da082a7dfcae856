/*
 * alloc.c - allocates and frees slots.
 *
 * Placement of `count` slots, in this order of preference:
 *   1. one run, in the fullest slab that has one, in the tightest gap there;
 *   2. few runs: long ones first, fullest slab first;
 *   3. when all listed slabs together have too few free slots, so many new slabs as are missing,
 *      of the class's length; shorter ones only when no window of that length is free.
 * Filling full slabs first lets sparse ones run empty, and an empty slab returns to the common
 * units. All memory is allocated before the first slot: from there on nothing can fail.
 *
 * The caller serialises calls.
 */
#include "internal.h"

#include <assert.h>

/* Slabs looked at in lists of which not every member need have the run that is sought. */
#define LOOKS 16

/* Tightest free run of at least `count`. False: there is none, and *longest is exact. */
static bool tightest_run(const struct slab *s, uint32_t count, uint32_t *run, uint32_t *longest)
{
	uint32_t best = UINT32_MAX;
	uint32_t first;
	uint32_t n;

	*longest = 0;
	for (uint32_t at = 0; (n = skv_slab_next_free(s, at, &first)) > 0; at = first + n) {
		if (n > *longest)
			*longest = n;
		if (n < count || n >= best)
			continue;
		best = n;
		*run = first;
		if (n == count)
			break;
	}
	return best != UINT32_MAX;
}

/* Fullest slab of one run bucket in which the longest run may be `count` or more. */
static struct slab *fullest_in(const struct pool_class *c, uint32_t bucket, uint32_t count)
{
	uint32_t looks = 0;

	for (uint64_t fills = c->fill_mask[bucket]; fills; fills &= fills - 1) {
		struct slab *s = c->lists[bucket][__builtin_ctzll(fills)];

		for (; s; s = s->next) {
			if (s->longest >= count)
				return s;
			if (++looks == LOOKS)
				return NULL;
		}
	}
	return NULL;
}

static struct slab *fullest(const struct pool_class *c, uint32_t count)
{
	struct slab *best = NULL;
	uint32_t from = log2_floor(count);

	for (uint32_t runs = c->run_mask >> from << from; runs; runs &= runs - 1) {
		struct slab *s = fullest_in(c, (uint32_t)__builtin_ctz(runs), count);

		if (s && (!best || s->fill_bucket < best->fill_bucket))
			best = s;
	}
	return best;
}

static void set_longest(struct slab *s, uint32_t longest)
{
	assert(longest <= s->longest); /* a bound from above */
	skv_slab_unlist(s);
	s->longest = longest;
	skv_slab_list(s);
}

/* All of `count` in one run, if some slab has one. Each failed search makes a hint exact. */
static bool place_one(struct pool_class *c, uint32_t count, struct skv_run *out)
{
	struct slab *s;
	uint32_t longest;
	uint32_t first;

	while ((s = fullest(c, count)) != NULL) {
		if (tightest_run(s, count, &first, &longest)) {
			skv_slab_use(s, first, count);
			*out = (struct skv_run){ s->handle, first, count };
			return true;
		}
		set_longest(s, longest);
	}
	return false;
}

/* Takes runs of the longest kind that the hints promise, all from one slab. Returns how many. */
static uint32_t place_long(struct pool_class *c, uint32_t *count, struct skv_run *runs)
{
	uint32_t bucket = log2_floor(c->run_mask);
	uint32_t least = UINT32_C(1) << bucket;
	struct slab *s = fullest_in(c, bucket, 1);
	uint32_t taken = 0;
	uint32_t first;
	uint32_t n;

	for (uint32_t at = 0; *count > 0; at = first + n) {
		n = skv_slab_next_free(s, at, &first);
		if (n == 0)
			break;
		if (n < least)
			continue;
		if (n > *count)
			n = *count;
		skv_slab_use(s, first, n);
		runs[taken++] = (struct skv_run){ s->handle, first, n };
		*count -= n;
	}
	if (*count)
		set_longest(s, skv_slab_longest(s));
	return taken;
}

/* Opens one more slab: of the preferred length, else of the longest that is left. */
static int open_one(struct skv_pool *p, struct pool_class *c, struct slab **opened)
{
	struct window w;
	struct slab *s;

	for (uint32_t order = c->order + 1; order-- > 0;) {
		if (!skv_units_find(p, c, order, &w))
			continue;
		if (skv_slab_new(p, c, w, &s))
			return SKV_E_NOMEM;
		skv_slab_open(p, s);
		s->opened = *opened;
		*opened = s;
		return SKV_OK;
	}
	return SKV_E_NO_SPACE;
}

static void close_empty(struct skv_pool *p, struct slab *opened)
{
	while (opened) {
		struct slab *next = opened->opened;

		opened->opened = NULL;
		skv_slab_settle(p, opened);
		opened = next;
	}
}

int skv_pool_alloc(struct skv_pool *p, uint32_t class_id, uint32_t count, struct skv_run *runs,
		   uint32_t *n_runs)
{
	struct pool_class *c;
	struct slab *opened = NULL;
	uint32_t n = 0;
	int status = SKV_OK;

	assert(class_id < p->n_classes);
	c = p->classes[class_id];
	if (c->free < count && c->unit_slots < count - c->free)
		return SKV_E_NO_SPACE;
	while (c->free < count && status == SKV_OK)
		status = open_one(p, c, &opened);
	if (status == SKV_OK) {
		while (count > 0) {
			if (place_one(c, count, runs + n)) {
				n++;
				break;
			}
			n += place_long(c, &count, runs + n);
		}
		*n_runs = n;
	}
	close_empty(p, opened);
	return status;
}

void skv_pool_free(struct skv_pool *p, struct skv_run run)
{
	struct slab *s = skv_slab_get(p, run.slab);

	assert(run.first < s->slots && run.count <= s->slots - run.first);
	assert(skv_bits_all(s->busy, run.first, run.count, true));
	assert(skv_bits_all(s->held_bits, run.first, run.count, false));
	assert(!s->dead_bits || skv_bits_all(s->dead_bits, run.first, run.count, false));
	skv_slab_unuse(s, run.first, run.count, false);
	skv_slab_settle(p, s);
}

void skv_pool_drain(struct skv_pool *p, uint32_t slab, bool on)
{
	struct slab *s = skv_slab_get(p, slab);

	skv_slab_unlist(s);
	s->draining = on;
	skv_slab_list(s);
}
