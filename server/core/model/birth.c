/*
 * birth.c - when blocks were created, derived from generations instead of a timestamp per block.
 *
 * Generations grow with time, so a few (generation, time) pairs give about the time of any
 * generation. A pair is noted for each millisecond that used one; at MAX_BIRTHS they are thinned so
 * that any time is still known to a 150th of its age: two seconds for five minutes, ten minutes for
 * a day. Ten years take about 6500 pairs.
 *
 * The wall clock may be wrong for a while and then be set. So pairs use a clock that is never set:
 * the wall time at load plus the time since. They are converted with the current wall clock
 * (birth_look): when it is set, ages stay the same. After a restart only the recorded times exist:
 * where times go back (START has the wall clock's) the later ones are right, and none is in the
 * future.
 *
 * For display and for trims by time. Under the partition's write lock; birth_of and birth_after
 * under the read lock.
 */
#include <model/birth.h>

#include <assert.h>

#include <skv/mem.h>

#include <model/partition.h>

#define MAX_BIRTHS 8192u
#define FINENESS 150u
#define SET_MS 1000 /* smaller differences are not a clock change: reported times stay stable to the
		     * millisecond */

/* Removes pairs whose neighbours are close together for their age. The first and the newest
 * stay. */
static void thin(struct partition *p)
{
	uint64_t newest = p->birth[p->n_births - 1].wall_ms;
	size_t n = 1;

	for (size_t i = 1; i + 1 < p->n_births; i++)
		if (p->birth[i + 1].wall_ms - p->birth[n - 1].wall_ms >
		    (newest - p->birth[i + 1].wall_ms) / FINENESS)
			p->birth[n++] = p->birth[i];
	p->birth[n++] = p->birth[p->n_births - 1];
	p->n_births = n;
}

static void forget(struct partition *p)
{
	size_t n = 0;

	thin(p);
	if (p->n_births <= MAX_BIRTHS - MAX_BIRTHS / 16)
		return;
	for (size_t i = 0; i < p->n_births; i += 2) /* impossible times */
		p->birth[n++] = p->birth[i];
	p->n_births = n;
}

void birth_note(struct partition *p, uint64_t generation, uint64_t wall_ms)
{
	void *v = p->birth;
	const struct birth *last = p->n_births ? &p->birth[p->n_births - 1] : NULL;

	ASSERT_EXCLUSIVE(p);
	if (last && generation <= last->generation)
		return; /* replay repeats what a checkpoint has */
	for (; p->n_births && p->birth[p->n_births - 1].wall_ms > wall_ms; p->n_births--)
		generation = p->birth[p->n_births - 1].generation; /* it was created by now */
	if (p->n_births && wall_ms == p->birth[p->n_births - 1].wall_ms)
		return;
	if (p->n_births == MAX_BIRTHS)
		forget(p);
	if (skv_grow(&v, &p->cap_births, p->n_births + 1, sizeof *p->birth) != SKV_OK)
		return;
	p->birth = v;
	p->birth[p->n_births++] = (struct birth){ generation, wall_ms };
}

/* Converts to the current wall clock; and back. */
static uint64_t told(const struct partition *p, uint64_t ms)
{
	int64_t shift = atomic_load_explicit(&p->birth_shift, memory_order_relaxed);

	return shift < 0 && ms < (uint64_t)-shift ? 0 : ms + (uint64_t)shift;
}

static uint64_t untold(const struct partition *p, uint64_t wall_ms)
{
	int64_t shift = atomic_load_explicit(&p->birth_shift, memory_order_relaxed);

	if (shift > 0 && wall_ms < (uint64_t)shift)
		return 0;
	return shift < 0 && wall_ms > UINT64_MAX - (uint64_t)-shift ? UINT64_MAX
								    : wall_ms - (uint64_t)shift;
}

void birth_begin(struct partition *p)
{
	const struct skv_clock *clock = p->core->clock;
	uint64_t wall = skv_wall_ms(clock);

	ASSERT_EXCLUSIVE(p);
	p->birth_base = (int64_t)(wall - skv_now_ms(clock));
	if (p->n_births && p->birth[p->n_births - 1].wall_ms > wall)
		birth_note(p, p->next_generation, wall);
}

uint64_t birth_look(struct partition *p)
{
	const struct skv_clock *clock = p->core->clock;
	uint64_t now = skv_now_ms(clock) + (uint64_t)p->birth_base;

	ASSERT_EXCLUSIVE(p);
	int64_t shift = (int64_t)(skv_wall_ms(clock) - now),
		had = atomic_load_explicit(&p->birth_shift, memory_order_relaxed);

	if (shift - had > SET_MS || had - shift > SET_MS)
		atomic_store_explicit(&p->birth_shift, shift, memory_order_relaxed);
	return now;
}

uint64_t birth_wall_ms(const struct partition *p, size_t i)
{
	ASSERT_SHARED(p);
	return told(p, p->birth[i].wall_ms);
}

uint64_t birth_after(const struct partition *p, uint64_t wall_ms)
{
	size_t low = 0, high = p->n_births;

	ASSERT_SHARED(p);
	wall_ms = untold(p, wall_ms);
	while (low < high) { /* finds the first that is later */
		size_t mid = (low + high) / 2;

		if (p->birth[mid].wall_ms <= wall_ms)
			low = mid + 1;
		else
			high = mid;
	}
	return low < p->n_births ? p->birth[low].generation : p->next_generation;
}

/* How many pairs are at or before it. */
static size_t find(const struct partition *p, uint64_t generation)
{
	size_t low = 0, high = p->n_births;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (p->birth[mid].generation <= generation)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

uint64_t birth_next(const struct partition *p, uint64_t generation, size_t *at)
{
	assert(*at <= p->n_births);
	if (*at == 0 || generation < p->birth[*at - 1].generation ||
	    (*at < p->n_births && generation >= p->birth[*at].generation))
		*at = find(p, generation);
	return *at && generation ? told(p, p->birth[*at - 1].wall_ms) : 0;
}

uint64_t birth_of(const struct partition *p, uint64_t generation)
{
	return birth_next(p, generation, &(size_t){ 0 });
}
