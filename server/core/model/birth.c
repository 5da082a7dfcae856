/*
 * birth.c - the creation times of blocks, derived from generations instead of a timestamp per
 * block.
 *
 * Generations grow with time, so a few (generation, time) pairs give about the time of any
 * generation. A pair is noted for each millisecond that used one; at MAX_BIRTHS they are thinned so
 * that any time is still known to a 150th of its age: two seconds for five minutes, ten minutes for
 * a day. Ten years take about 6500 pairs.
 *
 * The wall clock may be wrong for a while and then be set. So pairs, and the records that they come
 * from, use a clock that is never set, the *birth clock*: boot time plus a base. HORIZON records
 * carry the base, so a restart on the same boot continues with it, and ages do not depend on the
 * wall clock. After a reboot the wall clock, less its greatest lead before, tells how much time has
 * passed; but the birth clock never goes back. So no recorded time is later than the clock, none is
 * earlier than that of an older block, and blocks seem younger than they are, rather than older, if
 * the wall clock was wrong before the reboot.
 *
 * For display, and for the bounds of trims, the current wall clock converts (birth_look).
 *
 * Under the partition's write lock; birth_of, birth_next and birth_after under the read lock.
 */
#include <model/birth.h>

#include <assert.h>

#include <skv/mem.h>

#include <model/partition.h>

#define MAX_BIRTHS 8192u
#define FINENESS 150u
/* Smaller differences are not a clock change: reported times stay stable to the millisecond. */
#define SET_MS 1000

/* Removes pairs whose neighbours are close together for their age. The first and the newest
 * stay. */
static void thin(struct partition *p)
{
	uint64_t newest = p->birth[p->n_births - 1].ms;
	size_t n = 1;

	for (size_t i = 1; i + 1 < p->n_births; i++)
		if (p->birth[i + 1].ms - p->birth[n - 1].ms >
		    (newest - p->birth[i + 1].ms) / FINENESS)
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

void birth_note(struct partition *p, uint64_t generation, uint64_t ms)
{
	void *v = p->birth;
	const struct birth *last = p->n_births ? &p->birth[p->n_births - 1] : NULL;

	ASSERT_EXCLUSIVE(p);
	if (last && (generation <= last->generation || ms <= last->ms))
		return; /* replay repeats records that a checkpoint has */
	if (p->n_births == MAX_BIRTHS)
		forget(p);
	if (skv_grow(&v, &p->cap_births, p->n_births + 1, sizeof *p->birth) != SKV_OK)
		return;
	p->birth = v;
	p->birth[p->n_births++] = (struct birth){ generation, ms };
}

static int64_t lead_of(const struct partition *p)
{
	return atomic_load_explicit(&p->birth_lead, memory_order_relaxed);
}

/* Converts to the current wall clock. */
static uint64_t told(const struct partition *p, uint64_t ms)
{
	int64_t lead = lead_of(p);

	return lead < 0 && ms < (uint64_t)-lead ? 0 : ms + (uint64_t)lead;
}

uint64_t birth_from_wall(const struct partition *p, uint64_t wall_ms)
{
	int64_t lead = lead_of(p);

	ASSERT_SHARED(p);
	if (lead > 0 && wall_ms < (uint64_t)lead)
		return 0;
	return lead < 0 && wall_ms > UINT64_MAX - (uint64_t)-lead ? UINT64_MAX
								  : wall_ms - (uint64_t)lead;
}

uint64_t birth_now(const struct partition *p)
{
	return skv_now_ms(p->core->clock) + (uint64_t)p->birth_base;
}

void birth_begin(struct partition *p, int64_t base, uint64_t lead)
{
	const uint64_t wall = skv_wall_ms(p->core->clock), now = skv_now_ms(p->core->clock),
		       newest = p->n_births ? p->birth[p->n_births - 1].ms : 0;

	ASSERT_EXCLUSIVE(p);
	p->birth_base = base ? base : (int64_t)((wall > lead ? wall - lead : 0) - now);
	p->birth_most_lead = base ? lead : 0;
	if (birth_now(p) < newest)
		p->birth_base = (int64_t)(newest - now);
	birth_look(p);
}

void birth_look(struct partition *p)
{
	int64_t lead = (int64_t)(skv_wall_ms(p->core->clock) - birth_now(p)), had = lead_of(p);

	ASSERT_EXCLUSIVE(p);
	if (lead - had > SET_MS || had - lead > SET_MS)
		atomic_store_explicit(&p->birth_lead, lead, memory_order_relaxed);
	if (lead > 0 && (uint64_t)lead > p->birth_most_lead)
		p->birth_most_lead = (uint64_t)lead;
}

uint64_t birth_after(const struct partition *p, uint64_t ms)
{
	size_t low = 0, high = p->n_births;

	ASSERT_SHARED(p);
	while (low < high) { /* finds the first that is later */
		size_t mid = (low + high) / 2;

		if (p->birth[mid].ms <= ms)
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
	return *at && generation ? told(p, p->birth[*at - 1].ms) : 0;
}

uint64_t birth_of(const struct partition *p, uint64_t generation)
{
	return birth_next(p, generation, &(size_t){ 0 });
}
