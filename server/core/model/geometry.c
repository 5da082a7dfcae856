/*
 * geometry.c - see geometry.h. Based on 3FS: writing part of a chunk copies all of it, unless the
 * write begins exactly at the chunk's current end (an append).
 */
#include <model/geometry.h>

#define PAGE 4096u
#define ROUNDING 8u  /* largest waste by rounding, as a fraction of the slot: 1 / ROUNDING */
#define PACKING 16u  /* and by packing, of a segment: 1 / PACKING */

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

/* Within a chunk, slots begin at all multiples of the greatest common divisor equally often: the
 * chunks that a slot touches have size + chunk - divisor bytes on average. */
static struct geometry copied(uint64_t size, uint64_t align, uint64_t chunk)
{
	return (struct geometry){ .fit = FIT_COPIED, .stride = size, .align = align,
				  .copied = chunk - divisor(size, chunk) };
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
	return (struct geometry){ .fit = FIT_SEGMENTS, .stride = size, .align = best,
				  .segment = best,
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
		return (struct geometry){ .fit = FIT_WHOLE, .stride = size, .align = size % PAGE ? 1
						  : PAGE };
	if (whole - size <= size / ROUNDING)
		return (struct geometry){ .fit = whole == size ? FIT_WHOLE : FIT_ROUNDED,
					  .stride = whole, .align = chunk,
					  .wasted = whole - size };
	return segmented(size, chunk, unit);
}
