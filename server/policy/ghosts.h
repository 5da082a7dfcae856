/*
 * ghosts.h - keys of blocks that went lately, so that one that comes back is known
 * again: first in first out.
 *
 * Which there are follows from the order of calls alone, never from how keys fall: a ghost ends
 * when as many later ones were added as the caller says, and the caller is told then. Keys are
 * told apart by 32 bits of hash. About 17 bytes for each that is wanted (with notes 21.5), 1 GiB
 * at most; when that must grow by a quarter or shrink, all are forgotten, and when there is no
 * memory, there are fewer ghosts. Zeroed = empty.
 */
#ifndef SKV_GHOSTS_H
#define SKV_GHOSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GHOSTS_END 8u /* by one new ghost at most: somebody holds a lock */

struct ghosts {
	uint32_t *ring; /* [cap], oldest to newest: tags; 0 = it came back */
	uint32_t *note; /* [cap] of the same ghosts, if `notes` */
	uint64_t *cell; /* [n_cells]: tag, place in the ring, class, near
			   where the tag says; 0 = empty */
	uint32_t cap, n_cells;
	uint32_t next;     /* place in the ring */
	uint32_t used;     /* places, from the oldest on */
	uint32_t retry_in; /* after a lack of memory: not before so many more */
	bool notes;        /* set before the first call: ghosts have notes */
};

/* What is known of a ghost. */
struct ghost {
	uint32_t class; /* 0..31 */
	uint32_t note;  /* the caller's own, 0 without `notes` */
};

void ghosts_destroy(struct ghosts *g);
/* Of this key something is asked or added soon: fetches ahead where that will look. */
void ghosts_prefetch(const struct ghosts *g, uint64_t hash);
/* Is there one of this key? */
bool ghosts_find(const struct ghosts *g, uint64_t hash, struct ghost *out);
/* The same, and it is none any more. */
bool ghosts_take(struct ghosts *g, uint64_t hash, struct ghost *out);
/* A new one. `want`: how many there may be, those that came back included. Returns how many ended
 * by it, and which. */
uint32_t ghosts_add(struct ghosts *g, uint64_t hash, struct ghost ghost, uint64_t want,
		    struct ghost ended[GHOSTS_END]);

#endif
