/* pattern.c - a counter through a mixing function (splitmix64): word i depends on the seed and i,
 * so that a shifted, swapped or partly stale block never matches. */
#include "pattern.h"

#include <string.h>

#include <skv/hash.h>

static inline uint64_t word(uint64_t seed, uint64_t i)
{
	uint64_t x = seed + (i + 1) * 0x9e3779b97f4a7c15u;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

uint64_t skv_pattern_seed(const char *instance, uint32_t spec, uint64_t key)
{
	uint64_t parts[3] = { skv_checksum(instance, strlen(instance)), spec, key };

	return skv_checksum(parts, sizeof parts);
}

void skv_pattern_fill(void *data, size_t size, uint64_t seed)
{
	unsigned char *p = data;
	uint64_t i = 0, w;

	for (; size >= sizeof w; size -= sizeof w, p += sizeof w) {
		w = word(seed, i++);
		memcpy(p, &w, sizeof w);
	}
	w = word(seed, i);
	memcpy(p, &w, size);
}

bool skv_pattern_check(const void *data, size_t size, uint64_t seed)
{
	const unsigned char *p = data;
	uint64_t i = 0, w, wrong = 0;

	for (; size >= sizeof w; size -= sizeof w, p += sizeof w) {
		memcpy(&w, p, sizeof w);
		wrong |= w ^ word(seed, i++);
	}
	w = word(seed, i);
	return wrong == 0 && memcmp(p, &w, size) == 0;
}
