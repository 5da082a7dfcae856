/* bits.c - see bits.h. Pure functions over the caller's words; no state, no locks. */
#include "bits.h"

#include <assert.h>

/* Bits lo..hi-1 of one 64-bit word, 0 <= lo < hi <= 64. */
static uint64_t mask(uint32_t lo, uint32_t hi)
{
	assert(lo < hi && hi <= 64);
	return (~UINT64_C(0) >> (64 - (hi - lo))) << lo;
}

/* The part of [at, end) within the 64-bit word of `at`; *next is where the next word begins. */
static uint64_t part(uint32_t at, uint32_t end, uint32_t *next)
{
	uint32_t left = 64 - at % 64;
	uint32_t n = end - at < left ? end - at : left;

	*next = at + n;
	return mask(at % 64, at % 64 + n);
}

void skv_bits_fill(uint64_t *w, uint32_t first, uint32_t count, bool value)
{
	uint32_t end = first + count;

	for (uint32_t at = first, next; at < end; at = next) {
		uint64_t m = part(at, end, &next);

		if (value)
			w[at / 64] |= m;
		else
			w[at / 64] &= ~m;
	}
}

bool skv_bits_all(const uint64_t *w, uint32_t first, uint32_t count, bool value)
{
	uint32_t end = first + count;

	for (uint32_t at = first, next; at < end; at = next) {
		uint64_t m = part(at, end, &next);

		if ((w[at / 64] & m) != (value ? m : 0))
			return false;
	}
	return true;
}

uint32_t skv_bits_next(const uint64_t *w, uint32_t from, uint32_t n, bool value)
{
	const uint64_t flip = value ? 0 : ~UINT64_C(0);
	uint32_t word = from / 64, at;
	uint64_t found;

	if (from >= n)
		return n;
	found = (w[word] ^ flip) & mask(from % 64, 64);
	while (!found && ++word * 64 < n)
		found = w[word] ^ flip;
	at = found ? word * 64 + (uint32_t)__builtin_ctzll(found) : n;
	return at < n ? at : n;
}

uint32_t skv_bits_clear_before(const uint64_t *w, uint32_t at)
{
	uint32_t word = at / 64;
	uint64_t set = at % 64 ? w[word] & mask(0, at % 64) : 0;

	while (!set && word > 0)
		set = w[--word];
	return set ? at - (word * 64 + 64 - (uint32_t)__builtin_clzll(set)) : at;
}

uint32_t skv_bits_count(const uint64_t *w, uint32_t n) { return skv_bits_count_range(w, 0, n); }

uint32_t skv_bits_count_range(const uint64_t *w, uint32_t first, uint32_t count)
{
	uint32_t sum = 0, end = first + count;

	for (uint32_t at = first, next; at < end; at = next) {
		uint64_t m = part(at, end, &next);

		sum += (uint32_t)__builtin_popcountll(w[at / 64] & m);
	}
	return sum;
}
