/*
 * key_set.c - the seed of all key sets, and how large they are (key_set.h). State: the seed. Any thread.
 */
#include <kvb/key_set.h>

#include <pthread.h>
#include <string.h>

static pthread_once_t seeded = PTHREAD_ONCE_INIT;
static uint64_t seed[2];

static void make_seed(void) { kvb_random(seed, sizeof seed); }

uint32_t kvb_key_set_cells(uint32_t n)
{
	uint32_t cells = 2;

	while (cells < 2 * n)
		cells *= 2;
	return cells;
}

void kvb_key_set_init(struct kvb_key_set *s, uint32_t *cells, uint32_t n)
{
	pthread_once(&seeded, make_seed);
	s->cell = cells;
	s->mask = kvb_key_set_cells(n) - 1;
	memcpy(s->seed, seed, sizeof seed);
}
