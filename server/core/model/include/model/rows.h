/*
 * rows.h - tables of the volumes that something has to do with: rows in order of volume.
 *
 * There may be very many volumes, and an instance or a group uses few of them. A row is of any size; its first member is
 * the volume's number, a uint32_t. Pure; no state.
 */
#ifndef SKV_CORE_MODEL_ROWS_H
#define SKV_CORE_MODEL_ROWS_H

#include <stdint.h>
#include <stddef.h>
#include <string.h>

static inline uint32_t row_volume(const void *rows, size_t size, uint32_t at)
{
	uint32_t volume;

	memcpy(&volume, (const char *)rows + at * size, sizeof volume);
	return volume;
}

/* Place of the row of this volume, or (there is none) where it would be: at most n. */
static inline uint32_t row_place(const void *rows, size_t size, uint32_t n, uint32_t volume)
{
	uint32_t first = 0;

	while (n) {
		uint32_t half = n / 2;

		if (row_volume(rows, size, first + half) < volume) {
			first += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	return first;
}

static inline void *row_find(void *rows, size_t size, uint32_t n, uint32_t volume)
{
	uint32_t at = row_place(rows, size, n, volume);

	return at < n && row_volume(rows, size, at) == volume ? (char *)rows + at * size : NULL;
}

/* A new row of zeros but for its volume, which has none yet. There is room for one more. */
static inline void *row_insert(void *rows, size_t size, uint32_t *n, uint32_t volume)
{
	uint32_t at = row_place(rows, size, *n, volume);
	char *row = (char *)rows + at * size;

	memmove(row + size, row, (*n - at) * size);
	memset(row, 0, size);
	memcpy(row, &volume, sizeof volume);
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
