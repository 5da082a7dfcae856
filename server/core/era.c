/*
 * era.c - when blocks were made, without a time in each of them.
 *
 * Generations grow with time, so a few (generation, time) pairs tell about when any of them was given out. A pair is
 * noted for each millisecond in which one was; when there are MAX_ERAS they are thinned so that what is left tells any
 * time to a 150th of its age: two seconds of five minutes, ten minutes of a day. For ten years some 6500 pairs do.
 * For people, and for trims by time. Under the partition's write lock; era_of under the read lock.
 */
#include "internal.h"

#define MAX_ERAS 8192u
#define FINENESS 150u

/* A pair goes when those around it are near each other, by their age. The first and the newest stay. */
static void thin(struct part *p)
{
	uint64_t newest = p->era[p->n_era - 1].wall_ms;
	size_t n = 1;

	for (size_t i = 1; i + 1 < p->n_era; i++)
		if (p->era[i + 1].wall_ms - p->era[n - 1].wall_ms > (newest - p->era[i + 1].wall_ms) / FINENESS)
			p->era[n++] = p->era[i];
	p->era[n++] = p->era[p->n_era - 1];
	p->n_era = n;
}

static void forget(struct part *p)
{
	size_t n = 0;

	thin(p);
	if (p->n_era <= MAX_ERAS - MAX_ERAS / 16)
		return;
	for (size_t i = 0; i < p->n_era; i += 2) /* times that no clock tells */
		p->era[n++] = p->era[i];
	p->n_era = n;
}

void era_note(struct part *p, uint64_t generation, uint64_t wall_ms)
{
	void *v = p->era;
	const struct era *last = p->n_era ? &p->era[p->n_era - 1] : NULL;

	/* Replay repeats what a checkpoint holds; a clock that was set back tells nothing. */
	if (last && (generation <= last->generation || wall_ms <= last->wall_ms))
		return;
	if (p->n_era == MAX_ERAS)
		forget(p);
	if (skv_grow(&v, &p->cap_era, p->n_era + 1, sizeof *p->era) != SKV_OK)
		return;
	p->era = v;
	p->era[p->n_era++] = (struct era){ generation, wall_ms };
}

uint64_t era_after(const struct part *p, uint64_t wall_ms)
{
	size_t low = 0, high = p->n_era;

	while (low < high) { /* the first that is later */
		size_t mid = (low + high) / 2;

		if (p->era[mid].wall_ms <= wall_ms)
			low = mid + 1;
		else
			high = mid;
	}
	return low < p->n_era ? p->era[low].generation : p->next_generation;
}

uint64_t era_of(const struct part *p, uint64_t generation)
{
	size_t low = 0, high = p->n_era;

	while (low < high) { /* the newest that is not younger */
		size_t mid = (low + high) / 2;

		if (p->era[mid].generation <= generation)
			low = mid + 1;
		else
			high = mid;
	}
	return low && generation ? p->era[low - 1].wall_ms : 0;
}
