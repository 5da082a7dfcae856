/*
 * geometry.h - how slots of one size lie in slab files: on chunks where a storage has them, and what it costs.
 *
 * The one place where this is decided. It must give the same answer for ever: journal and checkpoints name slots by their
 * numbers. Pure; no state.
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
	uint64_t stride;  /* bytes from one slot to the next */
	uint64_t align;   /* slots begin at multiples of it; of a segmented class unused */
	uint64_t segment; /* bytes of a segment, 0 = the class is not segmented */
	uint64_t wasted;  /* bytes of each slot that hold nothing, in the mean */
	uint64_t copied;  /* that a write reads and writes again, in the mean */
};

/* For `size` bytes on chunks of `chunk` (0 = there are none) in slab units of `unit`:
 *  - numbered slots lie at multiples of their size, whatever that costs;
 *  - whole chunks lie on chunks;
 *  - what a slot of whole chunks would waste an eighth of its size for at most is rounded up to one;
 *  - the rest is packed into segments: the shortest that waste a sixteenth at most, else the one that wastes least. */
struct geometry geometry_of(uint64_t size, bool numbered, uint64_t chunk, uint64_t unit);
const char *fit_text(enum fit fit);

#endif
