/* bits.c - see bits.h. Pure functions over the caller's words; no state, no locks. */
#include "bits.h"

/* Bits lo..hi-1 of one word, 0 <= lo < hi <= 64. */
static uint64_t mask(uint32_t lo, uint32_t hi)
{
	return (~UINT64_C(0) >> (64 - (hi - lo))) << lo;
}

/* The part of [at, end) that lies in the word of `at`; *next is where the following word begins. */
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
	uint64_t flip = value ? 0 : ~UINT64_C(0);

	for (uint32_t at = from, next; at < n; at = next) {
		uint64_t found = (w[at / 64] ^ flip) & part(at, n, &next);

		if (found)
			return at / 64 * 64 + (uint32_t)__builtin_ctzll(found);
	}
	return n;
}

uint32_t skv_bits_clear_before(const uint64_t *w, uint32_t at)
{
	uint32_t i = at;

	while (i > 0) {
		uint32_t lo = (i - 1) / 64 * 64;
		uint64_t set = w[lo / 64] & mask(0, i - lo);

		if (set)
			return at - (lo + 64 - (uint32_t)__builtin_clzll(set));
		i = lo;
	}
	return at;
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
