/*
 * rows.h - sparse tables by volume: rows sorted by volume number.
 *
 * There may be very many volumes, of which an instance or group uses few. Rows may be of any size;
 * the first member is the volume's number, a uint32_t. Pure; no state.
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

/* Position of this volume's row, or where it would be inserted: at most n. */
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

/* Inserts a zeroed row for a volume that has none. There must be room for it. */
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
