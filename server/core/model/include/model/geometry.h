/*
 * geometry.h - layout of slots of one size in slab files, chunk-aligned where a storage has chunks,
 * and its cost.
 *
 * The only place that decides this. It must give the same answer for ever, because journal and
 * checkpoints refer to slots by number. Pure; no state.
 */
#ifndef SKV_CORE_MODEL_GEOMETRY_H
#define SKV_CORE_MODEL_GEOMETRY_H

#include <stdbool.h>
#include <stdint.h>

#include <skv/ops.h>

/* Best first. */
enum fit {
#define FIT_ENUM(name, text) FIT_##name,
	SKV_FITS(FIT_ENUM)
#undef FIT_ENUM
};

struct geometry {
	enum fit fit;
	uint64_t stride;  /* distance between slots, bytes */
	uint64_t align;   /* slots begin at multiples of this; unused in segmented classes */
	uint64_t segment; /* bytes of a segment, 0 = the class is not segmented */
	uint64_t wasted;  /* unused bytes of each slot, on average */
	uint64_t copied;  /* bytes that a write reads and rewrites, on average */
};

/* Layout of slots of `size` bytes on chunks of `chunk` bytes (0 = none) in slab units of `unit`:
 *	- numbered slots are at multiples of their size, whatever that costs;
 *	- sizes of whole chunks are aligned to chunks;
 *	- sizes that waste at most an eighth by it are rounded up to whole chunks;
 *	- others are packed into segments: the shortest that waste at most a sixteenth, else the
 *	  least wasteful. */
struct geometry geometry_of(uint64_t size, bool numbered, uint64_t chunk, uint64_t unit);
const char *fit_text(enum fit fit);

#endif
