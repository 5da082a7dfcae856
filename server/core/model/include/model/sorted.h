/*
 * sorted.h - the place of a number in an array that is sorted by it. No state.
 */
#ifndef SKV_CORE_MODEL_SORTED_H
#define SKV_CORE_MODEL_SORTED_H

#include <stddef.h>
#include <stdint.h>

/* Returns the index of the first of the n elements, each `size` bytes, whose number is at least
 * `number`; n: none is. */
static inline size_t sorted_place(const void *v, size_t n, size_t size, uint64_t number,
				  uint64_t (*number_of)(const void *element))
{
	size_t lo = 0;

	while (lo < n) {
		size_t mid = (lo + n) / 2;

		if (number_of((const char *)v + mid * size) < number)
			lo = mid + 1;
		else
			n = mid;
	}
	return lo;
}

#endif
