/* move_find.h - what there is to move, and where to. */
#ifndef SKV_CORE_MOVE_FIND_H
#define SKV_CORE_MOVE_FIND_H

#include <stdint.h>

#include <model/move.h>

struct block;
struct copying;
struct picks;

/* MORE: the take is full. */
enum room { MAY_MOVE, NO_ROOM, LATER, MORE };

/* What a take has found so far. */
struct found {
	struct partition *p;
	uint64_t now;
	uint32_t max, looks;
	uint32_t least_grace;
	uint32_t n;
	struct move_slot v[MAX_MOVE_SLOTS];
};

/* Takes a target for each slot that it finds, up to f->max: f->n of f->v. Goes on where the last
 * one ended, each time with another volume. p, now and max are given. */
void move_find_all(struct found *f);
/* What a mover is given of that spec of the block, but for the target. */
struct move_slot move_source_of(const struct block *b, uint32_t spec);
/* Takes a target for it; false: there is none now. */
bool move_target(struct found *f, const struct block *b, uint32_t spec, struct move_slot *m);
/* Moves of the block's slots that lie elsewhere to the volume. LATER: there may be room soon. */
enum room move_to(struct found *f, const struct block *b, uint32_t volume);
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
