/*
 * geometry.c - see geometry.h. Facts of 3FS behind it: a write of a part of a chunk copies all of it, but one that begins
 * where the chunk's bytes end is written behind them.
 */
#include <model/geometry.h>

#define PAGE 4096u
#define ROUNDING 8u  /* a slot may waste so much of its size: 1 / ROUNDING */
#define PACKING 16u  /* and a segment of its own: 1 / PACKING */

const char *fit_text(enum fit fit)
{
	static const char *const text[] = {
#define FIT_TEXT(name, s) s,
		SKV_FITS(FIT_TEXT)
#undef FIT_TEXT
	};

	return text[fit];
}

static uint64_t divisor(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* Slots begin at all multiples of the greatest common divisor within a chunk, equally often: the chunks that a slot lies
 * in have size + chunk - divisor bytes in the mean. */
static struct geometry copied(uint64_t size, uint64_t align, uint64_t chunk)
{
	return (struct geometry){ .fit = FIT_COPIED, .stride = size, .align = align, .copied = chunk - divisor(size, chunk) };
}

static struct geometry segmented(uint64_t size, uint64_t chunk, uint64_t unit)
{
	uint64_t best = 0;

	for (uint64_t s = chunk; s <= unit; s *= 2) {
		if (s < size || (best && s % size >= best % size * (s / best)))
			continue;
		best = s;
		if (s % size <= s / PACKING)
			break;
	}
	if (!best)
		return copied(size, size % PAGE ? 1 : PAGE, chunk);
	return (struct geometry){ .fit = FIT_SEGMENTS, .stride = size, .align = best, .segment = best,
				  .wasted = best % size / (best / size) };
}

struct geometry geometry_of(uint64_t size, bool numbered, uint64_t chunk, uint64_t unit)
{
	uint64_t whole = chunk ? (size + chunk - 1) / chunk * chunk : size;

	if (numbered && size != whole)
		return copied(size, size, chunk);
	if (numbered)
		return (struct geometry){ .fit = FIT_WHOLE, .stride = size, .align = size };
	if (!chunk)
		return (struct geometry){ .fit = FIT_WHOLE, .stride = size, .align = size % PAGE ? 1 : PAGE };
	if (whole - size <= size / ROUNDING)
		return (struct geometry){ .fit = whole == size ? FIT_WHOLE : FIT_ROUNDED, .stride = whole, .align = chunk,
					  .wasted = whole - size };
	return segmented(size, chunk, unit);
}
