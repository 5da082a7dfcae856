/*
 * ghosts.h - keys of blocks that went lately, so that one that comes back is known again: 8 bytes each, in lines of a
 * cache line.
 *
 * A ghost ends after as many later ones as the caller says, earlier when its line is full. Two keys of 16 million in a
 * line look the same. Memory follows the number wanted (12 bytes for each, 512 MiB at most); when it must grow or shrink,
 * all are forgotten, and when there is none, there are fewer ghosts. Zeroed = empty.
 */
#ifndef SKV_GHOSTS_H
#define SKV_GHOSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GHOSTS_LINE 8u

struct ghosts {
	uint64_t *cell; /* [n_lines * GHOSTS_LINE], 0 = empty */
	void *memory;
	uint32_t n_lines;
	uint32_t number;   /* of the newest */
	uint64_t want;     /* as told last */
	uint32_t retry_at; /* after a lack of memory: not before this number */
};

void ghosts_destroy(struct ghosts *g);
/* Is there one of this key? Then it is none any more, and *class (0..31) as it was given. */
bool ghosts_take(struct ghosts *g, uint64_t hash, uint32_t *class);
/* A new one. `want`: how many there may be. Returns how many ended by it; ended[i]: their classes. */
uint32_t ghosts_add(struct ghosts *g, uint64_t hash, uint32_t class, uint64_t want, uint32_t ended[GHOSTS_LINE]);

#endif
