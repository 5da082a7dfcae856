/*
 * key_set.h - finds duplicates in a list of keys: open addressing over positions, at most half
 * full.
 *
 * The hash is seeded at random per process, so that outsiders cannot choose keys that make long
 * chains. The caller provides a set's memory; it belongs to one thread at a time.
 */
#ifndef SKV_KEY_SET_H
#define SKV_KEY_SET_H

#include <stdint.h>

#include <skv/hash.h>

struct skv_key_set {
	uint32_t *cell; /* position + 1 in the caller's list, 0 = empty */
	uint32_t mask;
	uint64_t seed[2];
};

/* Cells needed for a list of n keys, 0..2^30. */
uint32_t skv_key_set_cells(uint32_t n);
/* `cells`: skv_key_set_cells(n) of them, all 0; borrowed. */
void skv_key_set_init(struct skv_key_set *s, uint32_t *cells, uint32_t n);

/* The cell of `key` among the keys[] added so far. Contents 0: not in the set; storing its position
 * + 1 there adds it. Valid until the next key is added. */
static inline uint32_t *skv_key_set_find(const struct skv_key_set *s, const struct skv_key *keys,
					 struct skv_key key)
{
	unsigned __int128 m = (unsigned __int128)(key.lo ^ s->seed[0]) * (key.hi ^ s->seed[1]);
	uint32_t i = (uint32_t)((uint64_t)m ^ (uint64_t)(m >> 64)) & s->mask;

	while (s->cell[i] && !skv_key_equal(keys[s->cell[i] - 1], key))
		i = (i + 1) & s->mask;
	return &s->cell[i];
}

/* SKV_E_CONFLICT: keys[*at] equals keys[*first]. SKV_E_NOMEM. */
int skv_keys_duplicate(const struct skv_key *keys, uint32_t n, uint32_t *at, uint32_t *first);

#endif
