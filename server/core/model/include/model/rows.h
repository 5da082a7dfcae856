/*
 * rows.h - tables of the spaces that something has to do with: rows in order of space.
 *
 * There may be very many spaces, and an instance or a group uses few of them. A row is of any size; its first member is
 * the space's number, a uint32_t. Pure; no state.
 */
#ifndef SKV_CORE_MODEL_ROWS_H
#define SKV_CORE_MODEL_ROWS_H

#include <stdint.h>
#include <stddef.h>
#include <string.h>

static inline uint32_t row_space(const void *rows, size_t size, uint32_t at)
{
	uint32_t space;

	memcpy(&space, (const char *)rows + at * size, sizeof space);
	return space;
}

/* Place of the row of this space, or (there is none) where it would be: at most n. */
static inline uint32_t row_place(const void *rows, size_t size, uint32_t n, uint32_t space)
{
	uint32_t first = 0;

	while (n) {
		uint32_t half = n / 2;

		if (row_space(rows, size, first + half) < space) {
			first += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	return first;
}

static inline void *row_find(void *rows, size_t size, uint32_t n, uint32_t space)
{
	uint32_t at = row_place(rows, size, n, space);

	return at < n && row_space(rows, size, at) == space ? (char *)rows + at * size : NULL;
}

/* A new row of zeros but for its space, which has none yet. There is room for one more. */
static inline void *row_insert(void *rows, size_t size, uint32_t *n, uint32_t space)
{
	uint32_t at = row_place(rows, size, *n, space);
	char *row = (char *)rows + at * size;

	memmove(row + size, row, (*n - at) * size);
	memset(row, 0, size);
	memcpy(row, &space, sizeof space);
	++*n;
	return row;
}

static inline void row_remove(void *rows, size_t size, uint32_t *n, void *row)
{
	char *end = (char *)rows + *n * size;

	memmove(row, (char *)row + size, (size_t)(end - (char *)row) - size);
	--*n;
}

#endif
