/*
 * move.h - moves: committed blocks whose bytes a mover copies to other slots.
 *
 * A move is not durable. Its targets are: taken slots without an owner, which the journal has as
 * holds (ops/move.c). So a restart forgets the move, and holds its targets as long as its mover may
 * still write. Under the write lock; finds under the read lock.
 */
#ifndef SKV_CORE_MODEL_MOVE_H
#define SKV_CORE_MODEL_MOVE_H

#include <stdbool.h>
#include <stdint.h>

#include <skv/hash.h>
#include <skv/pool.h>

struct block;
struct change;
struct partition;

#define MAX_MOVES 32u       /* open moves of a partition */
#define MAX_MOVE_SLOTS 128u /* of one */

/* A slot of a block: the current location, and the location to copy its bytes to. */
struct move_slot {
	struct skv_key key;
	uint64_t generation; /* of the source */
	uint64_t length, checksum; /* of its bytes */
	uint32_t instance;   /* durable number of the instance */
	uint32_t spec;
	uint32_t write; /* of a copy: which of its session's blocks it is of */
	uint32_t volume, slab, index;             /* the source */
	/* And where its bytes are read, if `copied`: a copy of it in the fast tier. */
	struct { uint32_t volume, slab, index; } copy;
	bool copied;
	uint32_t to_volume, to_slab, to_index;    /* the target: 1 slot, without owner */
};

struct move {
	struct move *next;
	struct skv_key id;
	/* The move's blocks stay, and get copies in a fast tier: the targets are those of the
	 * session with this id, which begins and ends as others do (ops/copy.c). */
	bool copies;
	/* The move's slots are only read and verified: no targets, no record (ops/scrub.c). The
	 * slots are a portion of a slab file from that place on, or, device 0, slots that were
	 * reported. */
	bool checks;
	struct { uint32_t volume, device, file, unit, slot; } portion;
	bool starting; /* the move's record is in flight; */
	struct change *ending; /* or that of its finish: this one */
	uint64_t deadline_at; /* boot time ms: its mover writes no more, */
	uint32_t deadline_ms; /* the full duration, */
	uint64_t hold_until;  /* and no write of its arrives any more */
	uint32_t n;
	struct move_slot v[];
};

struct move *move_find(const struct partition *p, struct skv_key id);
/* Returns true if a move of that slot of the block is open. */
bool move_has(const struct partition *p, const struct block *b, uint32_t spec);
/* Returns the block if its slot is still the committed one that the move began with, else NULL.
 * Then nobody has written there since, and the mover has read the committed bytes. */
struct block *move_source(const struct partition *p, const struct move_slot *m);
void move_add(struct partition *p, struct move *m); /* takes ownership */
/* Gives up a target, free after hold_until (0 = now). */
void move_give_up(struct partition *p, const struct move_slot *m, uint64_t hold_until);
/* Forgets the move, whose targets are given up or have owners. */
void move_destroy(struct partition *p, struct move *m);
/* Returns the file whose portion the move verifies; NULL: none, or gone. */
struct volume_file *move_checks_file(const struct partition *p, const struct move *m);
/* Ends moves whose deadline has passed: their targets are held. */
void moves_expire(struct partition *p, uint64_t now);
void moves_free(struct partition *p); /* with the partition */
/* The slot of the block lies there from now on. The old one is free after hold_until (0 = now). Its
 * generation stays: that is of the bytes, which are the same. */
void move_swap(struct partition *p, struct block *b, uint32_t spec, uint32_t volume, uint32_t slab,
	       uint32_t index, uint64_t hold_until);

#endif
