/*
 * era.c - when blocks were made, without a time in each of them.
 *
 * Generations grow with time, so a few (generation, time) pairs tell about when any of them was given out. One
 * pair a second at most; when there are MAX_ERAS, every other one is forgotten, the older half as well as the
 * newer, so the list covers all time ever more coarsely. For people only. Under the partition's write lock;
 * era_of under the read lock.
 */
#include "internal.h"

#define ERA_MS 1000u
#define MAX_ERAS 4096u

static void forget_half(struct part *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n_era; i += 2)
		p->era[n++] = p->era[i];
	p->n_era = n;
}

void era_note(struct part *p, uint64_t generation, uint64_t wall_ms)
{
	void *v = p->era;
	const struct era *last = p->n_era ? &p->era[p->n_era - 1] : NULL;

	/* Replay repeats what a checkpoint holds; a clock that was set back tells nothing. */
	if (last && (generation <= last->generation || wall_ms < last->wall_ms + ERA_MS))
		return;
	if (p->n_era == MAX_ERAS)
		forget_half(p);
	if (kvb_grow(&v, &p->cap_era, p->n_era + 1, sizeof *p->era) != KVB_OK)
		return;
	p->era = v;
	p->era[p->n_era++] = (struct era){ generation, wall_ms };
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
