/* key_set.c - the seed and the sizes of key sets (key_set.h). State: the seed. Any thread. */
#include <skv/key_set.h>

#include <pthread.h>
#include <string.h>

#include <skv/mem.h>
#include <skv/status.h>

static pthread_once_t seeded = PTHREAD_ONCE_INIT;
static uint64_t seed[2];

static void make_seed(void) { skv_random(seed, sizeof seed); }

uint32_t skv_key_set_cells(uint32_t n)
{
	uint32_t cells = 2;

	while (cells < 2 * n)
		cells *= 2;
	return cells;
}

void skv_key_set_init(struct skv_key_set *s, uint32_t *cells, uint32_t n)
{
	pthread_once(&seeded, make_seed);
	s->cell = cells;
	s->mask = skv_key_set_cells(n) - 1;
	memcpy(s->seed, seed, sizeof seed);
}

int skv_keys_duplicate(const struct skv_key *keys, uint32_t n, uint32_t *at, uint32_t *first)
{
	uint32_t *cells = skv_calloc(skv_key_set_cells(n), sizeof *cells);
	struct skv_key_set set;
	int rc = SKV_OK;

	if (!cells)
		return SKV_E_NOMEM;
	skv_key_set_init(&set, cells, n);
	for (uint32_t i = 0; i < n && rc == SKV_OK; i++) {
		uint32_t *cell = skv_key_set_find(&set, keys, keys[i]);

		if (*cell) {
			*at = i;
			*first = *cell - 1;
			rc = SKV_E_CONFLICT;
		}
		*cell = i + 1;
	}
	skv_free(cells);
	return rc;
}
