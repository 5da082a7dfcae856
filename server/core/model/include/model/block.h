/* block.h - blocks, their slots, and the chunks of memory that hold them. */
#ifndef SKV_CORE_MODEL_BLOCK_H
#define SKV_CORE_MODEL_BLOCK_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

#include <skv/hash.h>
#include <skv/heap.h>
#include <skv/limits.h>
#include <skv/pool.h>

struct instance;
struct name;

#define NO_BLOCK 0u

enum slot_state { SLOT_ABSENT, SLOT_WRITING, SLOT_COMMITTED, SLOT_REMOVING };

/* A spec of a block: 28 bytes, so that a block with a single spec fills a cache line. */
struct slot {
	uint64_t checksum; /* while WRITING: its session's number + 1, and ENDING */
	uint64_t generation : 47; /* MAX_GENERATION */
	uint64_t volume : 17;      /* index into partition->volume: MAX_VOLUMES */
	uint32_t slab : 26;       /* handle in the volume's pool: SKV_POOL_SLABS */
	/* First slot only, in any state: the policy's tag of the block (skv/policy.h). */
	uint32_t tag : 5;
	uint32_t has_checksum : 1;
	uint32_t index : 30; /* SKV_SLAB_SLOTS */
	uint32_t state : 2;  /* enum slot_state */
	/* Position in its class's eviction queue (queue.c); 0 = none, or another slot has it. */
	uint32_t queued;
} __attribute__((packed, aligned(4)));
_Static_assert(sizeof(struct slot) == 28, "a block of one spec fills a cache line");
_Static_assert(SKV_POOL_SLABS <= 1u << 26 && SKV_SLAB_SLOTS <= 1u << 30, "a slot names its place");

#define MAX_VOLUMES (1u << 17)

#define ENDING (1ull << 32) /* a record in flight commits the slot or gives it up */

#define MAX_GENERATION (1ull << 47) /* at a million blocks a second, four years */

/* An entry stays while any of its slots is not ABSENT or another block names it as parent (then it
 * is a miss, but keeps the chain linked). */
struct block {
	struct skv_key key;
	/* Last use and end of lease (mark.h); the only field that readers write. */
	_Atomic uint64_t mark;
	uint32_t parent;       /* id; while free: next free entry */
	uint32_t children : 30; /* number of entries with this parent */
	uint32_t pinned : 1;    /* is in the instance's pins (pin.c) */
	uint32_t used : 1;      /* 0 = the entry is free */
	uint32_t live_children : 30; /* children with a WRITING or COMMITTED slot */
	uint32_t live : 1;           /* counted in the parent's live_children */
	uint32_t kept : 1; /* hidden from eviction while room is made for the rest of its start */
	struct slot slot[];          /* a slot per spec of the instance */
};

/* Entries are kept in aligned chunks, so that a pointer to one leads to its id and instance
 * (table.c). An id is chunk number << CHUNK_SHIFT | position. */
#define CHUNK_SHIFT 8u
#define CHUNK_CAPACITY (1u << CHUNK_SHIFT)
#define CHUNK_BYTES 16384u
#define CHUNK_HEAD 64u
/* of an instance, bounded by its eviction queues */
#define MAX_ENTRIES (SKV_HEAP_IDS - CHUNK_CAPACITY)

struct chunk {
	struct instance *inst;
	/* [capacity] names of a `named` instance's blocks, NULL = none, or an empty one
	 * (names.c). */
	struct name **names;
	struct chunk *next; /* of the same instance, or unowned */
	uint64_t snapshot;  /* number of the newest snapshot that already has this chunk */
	uint32_t number;
	uint32_t stride; /* bytes of one entry */
	uint32_t capacity; /* entries that fit */
	uint32_t fresh;  /* positions from here on were never used */
	/* Ms of the clock of uses: earlier uses of its blocks are recorded; 0 = by an earlier owner
	 * (ops/uses.c). The ticker's. */
	uint64_t told;
};

static inline struct chunk *block_chunk(const struct block *b)
{
	return (struct chunk *)((uintptr_t)b & ~(uintptr_t)(CHUNK_BYTES - 1));
}

static inline struct block *chunk_place(const struct chunk *c, uint32_t place)
{
	return (struct block *)((char *)c + CHUNK_HEAD + (size_t)c->stride * place);
}

static inline struct instance *block_instance(const struct block *b)
{
	return block_chunk(b)->inst;
}

static inline uint32_t block_id(const struct block *b)
{
	const struct chunk *c = block_chunk(b);

	return c->number << CHUNK_SHIFT |
	       (uint32_t)((uintptr_t)b - (uintptr_t)c - CHUNK_HEAD) / c->stride;
}

/* Returns true if the mask has a spec at `spec` or above. For loops over a mask: a mask of 32
 * cannot be shifted by 32. */
static inline bool specs_left(uint32_t mask, uint32_t spec)
{
	return spec < SKV_MAX_SPECS && mask >> spec;
}

/* The only function that changes a slot's state; asserts that the transition is legal. Does no
 * accounting. COMMITTED to ABSENT is for cleared blocks, and for replay, which sees a removal only
 * when it is durable. */
static inline void slot_set_state(struct slot *s, enum slot_state to)
{
#define CHANGE(from, to) (1u << ((from) * 4 + (to)))
	const uint32_t legal =
		CHANGE(SLOT_ABSENT, SLOT_WRITING) | CHANGE(SLOT_WRITING, SLOT_COMMITTED) |
		CHANGE(SLOT_WRITING, SLOT_ABSENT) | CHANGE(SLOT_COMMITTED, SLOT_REMOVING) |
		CHANGE(SLOT_COMMITTED, SLOT_ABSENT) | CHANGE(SLOT_REMOVING, SLOT_COMMITTED) |
		CHANGE(SLOT_REMOVING, SLOT_ABSENT);

	assert(legal & CHANGE(s->state, to));
	s->state = to;
#undef CHANGE
}

#endif
