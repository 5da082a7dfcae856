/*
 * birth.c - when blocks were made, without a time in each of them.
 *
 * Generations grow with time, so a few (generation, time) pairs tell about when any of them was given out. A pair is
 * noted for each millisecond in which one was; when there are MAX_BIRTHS they are thinned so that what is left tells any
 * time to a 150th of its age: two seconds of five minutes, ten minutes of a day. For ten years some 6500 pairs do.
 *
 * The wall clock may be wrong for a while, and is set then. So the times of pairs are those of a clock that nobody sets:
 * what the wall clock said when the partition was loaded, and what has passed since. They are told by the wall clock as it
 * stands (birth_look): when it is set, ages stay what they are. Restarts have nothing but what was written down: of times that go
 * back (START has the wall clock's) the later told are right, and none lies in the future.
 *
 * For people, and for trims by time. Under the partition's write lock; birth_of and birth_after under the read lock.
 */
#include <model/birth.h>

#include <assert.h>

#include <skv/mem.h>

#include <model/partition.h>

#define MAX_BIRTHS 8192u
#define FINENESS 150u
#define SET_MS 1000 /* less is no setting of the clock: what was told of a block stays the same to the millisecond */

/* A pair goes when those around it are near each other, by their age. The first and the newest stay. */
static void thin(struct partition *p)
{
	uint64_t newest = p->birth[p->n_births - 1].wall_ms;
	size_t n = 1;

	for (size_t i = 1; i + 1 < p->n_births; i++)
		if (p->birth[i + 1].wall_ms - p->birth[n - 1].wall_ms > (newest - p->birth[i + 1].wall_ms) / FINENESS)
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
	for (size_t i = 0; i < p->n_births; i += 2) /* times that no clock tells */
		p->birth[n++] = p->birth[i];
	p->n_births = n;
}

void birth_note(struct partition *p, uint64_t generation, uint64_t wall_ms)
{
	void *v = p->birth;
	const struct birth *last = p->n_births ? &p->birth[p->n_births - 1] : NULL;

	ASSERT_EXCLUSIVE(p);
	if (last && generation <= last->generation)
		return; /* replay repeats what a checkpoint holds */
	for (; p->n_births && p->birth[p->n_births - 1].wall_ms > wall_ms; p->n_births--)
		generation = p->birth[p->n_births - 1].generation; /* it was made by now */
	if (p->n_births && wall_ms == p->birth[p->n_births - 1].wall_ms)
		return;
	if (p->n_births == MAX_BIRTHS)
		forget(p);
	if (skv_grow(&v, &p->cap_births, p->n_births + 1, sizeof *p->birth) != SKV_OK)
		return;
	p->birth = v;
	p->birth[p->n_births++] = (struct birth){ generation, wall_ms };
}

/* By the wall clock as it stands; and the other way. */
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
	return shift < 0 && wall_ms > UINT64_MAX - (uint64_t)-shift ? UINT64_MAX : wall_ms - (uint64_t)shift;
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
	int64_t shift = (int64_t)(skv_wall_ms(clock) - now), had = atomic_load_explicit(&p->birth_shift, memory_order_relaxed);

	if (shift - had > SET_MS || had - shift > SET_MS)
		atomic_store_explicit(&p->birth_shift, shift, memory_order_relaxed);
	return now;
}

uint64_t birth_told(const struct partition *p, size_t i)
{
	ASSERT_SHARED(p);
	return told(p, p->birth[i].wall_ms);
}

uint64_t birth_after(const struct partition *p, uint64_t wall_ms)
{
	size_t low = 0, high = p->n_births;

	ASSERT_SHARED(p);
	wall_ms = untold(p, wall_ms);
	while (low < high) { /* the first that is later */
		size_t mid = (low + high) / 2;

		if (p->birth[mid].wall_ms <= wall_ms)
			low = mid + 1;
		else
			high = mid;
	}
	return low < p->n_births ? p->birth[low].generation : p->next_generation;
}

/* How many are not younger. */
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
	if (*at == 0 || generation < p->birth[*at - 1].generation || (*at < p->n_births && generation >= p->birth[*at].generation))
		*at = find(p, generation);
	return *at && generation ? told(p, p->birth[*at - 1].wall_ms) : 0;
}

uint64_t birth_of(const struct partition *p, uint64_t generation) { return birth_next(p, generation, &(size_t){ 0 }); }
