/* move_find.h - finds slots to move and their targets. */
#ifndef SKV_CORE_MOVE_FIND_H
#define SKV_CORE_MOVE_FIND_H

#include <stdint.h>

#include <model/move.h>

struct block;
struct copying;
struct instance;
struct picks;
struct volume;
struct volume_file;

/* MORE: the take is full. */
enum room { MAY_MOVE, NO_ROOM, LATER, MORE };

#define MOVE_LOOKS 16384u /* slots visited by one take */

/* The findings of a take so far. */
struct found {
	struct partition *p;
	uint64_t now;
	uint32_t max, looks;
	uint32_t least_grace;
	uint32_t n;
	struct move_slot v[MAX_MOVE_SLOTS];
	bool checks; /* slots are to be verified only, and have no targets */
	bool file_known; /* of a scrub: */
	uint32_t volume, file, unit, slot; /* a portion of this file from there on */
};

/* Takes a target for each slot that it finds, up to f->max: f->n of f->v. Goes on where the last
 * one ended, each time with another volume. p, now and max are given. */
void move_find_all(struct found *f);
/* Returns the source of a move for that spec of the block, without the target. */
struct move_slot move_source_of(const struct block *b, uint32_t spec);
/* Takes a target for the slot; false: none is free now. */
bool move_target(struct found *f, const struct block *b, uint32_t spec, struct move_slot *m);
/* Moves of the block's slots that lie elsewhere to the volume. LATER: there may be room soon. */
enum room move_to(struct found *f, const struct block *b, uint32_t volume);
/* Calls pick for slots in use of the file, from *unit, *slot to the unit `end`, which are moved, as
 * long as there are looks and room. True: the end was reached. */
bool move_walk(struct found *f, struct volume *v, struct volume_file *file, uint32_t end,
	       uint32_t *unit, uint32_t *slot,
	       void (*pick)(struct found *f, struct volume_file *file, const struct block *b,
			    uint32_t spec));
/* Returns true if a draining file, or a closed slab, has blocks to move. Under the read lock. */
bool move_drain_due(const struct partition *p, uint64_t now);
/* A move of that spec, read where that can be done, there or in its copy, if there is a
 * place for it. */
void move_from_copy(struct found *f, const struct block *b, uint32_t spec,
		    const struct instance *copies);
/* damage.c: moves of hidden blocks, or reported slots to check. */
void damages_find(struct found *f);
/* Returns true if there may be slots to verify. Of a mover that only verifies: `moves` false. */
bool damages_due(const struct partition *p, uint64_t now, bool moves);
/* A full storage keeps its free slots: as many of its blocks go as came. */
void move_evict_behind(struct partition *p, const struct move *m);

/* want.c: what is wanted elsewhere: moves, to f, or blocks to be copied, to k; copies that are in
 * the way. */
void wanted_find(struct found *f, struct copying *k, struct picks *stale);
/* heal.c: may something be missing in replicated groups? Under the read lock. */
bool heal_due(const struct partition *p, uint64_t now);
/* Looks for it: moves, to f, or blocks to be copied, to k; copies that are in the way. */
void heal_find(struct found *f, struct copying *k, struct picks *stale);

#endif
