/*
 * bits.h - bitmaps in 64-bit words: ranges and runs, a word at a time.
 *
 * No state of its own. `n` is always the number of bits of the map; ranges lie inside it.
 */
#ifndef SKV_ALLOCATOR_BITS_H
#define SKV_ALLOCATOR_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline size_t skv_bits_words(uint32_t n) { return ((size_t)n + 63) / 64; }

static inline bool skv_bits_test(const uint64_t *w, uint32_t i)
{
	return w[i / 64] >> (i % 64) & 1;
}

/* Sets (value true) or clears `count` bits from `first`. */
void skv_bits_fill(uint64_t *w, uint32_t first, uint32_t count, bool value);
/* Returns true if all `count` bits from `first` have that value. */
bool skv_bits_all(const uint64_t *w, uint32_t first, uint32_t count, bool value);
/* First bit at or after `from` that has that value; n if there is none. */
uint32_t skv_bits_next(const uint64_t *w, uint32_t from, uint32_t n, bool value);
/* How many bits just before `at` are clear. */
uint32_t skv_bits_clear_before(const uint64_t *w, uint32_t at);
uint32_t skv_bits_count(const uint64_t *w, uint32_t n);
/* Bits that are set of `count` bits from `first`. */
uint32_t skv_bits_count_range(const uint64_t *w, uint32_t first, uint32_t count);

#endif
