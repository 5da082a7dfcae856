/*
 * seen.c - open addressing over positions of keys (seen.h). No state of its own.
 */
#include "seen.h"

bool seen_init(struct seen *s, struct kvb_arena *a, uint32_t n)
{
	uint32_t size = 8;

	while (size < 2 * n)
		size *= 2;
	s->mask = size - 1;
	s->at = kvb_arena_calloc(a, size, sizeof *s->at);
	return s->at != NULL;
}

uint32_t *seen_find(const struct seen *s, const struct kvb_key *keys, struct kvb_key key)
{
	uint32_t i = (uint32_t)kvb_key_mix(key, 0) & s->mask;

	while (s->at[i] && !kvb_key_equal(keys[s->at[i] - 1], key))
		i = (i + 1) & s->mask;
	return &s->at[i];
}
