/*
 * heap.h - sets of min-heaps of (key, id) that share memory: eviction queues, deadlines.
 *
 * An id is in at most one heap of a set. Its position is stored in a word of the caller's, so it
 * can be removed or moved in O(log n). Room for n ids is reserved for the set, however they are
 * distributed: pushing cannot fail, and growing never copies keys. Room that no id has been in is
 * address space only. No locks: the caller serialises access.
 */
#ifndef SKV_HEAP_H
#define SKV_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SKV_HEAPS_MAX 19u     /* heaps of a set */
#define SKV_HEAP_IDS (1u << 27) /* ids in a heap, less one */

struct skv_heap_chunk;
struct skv_heap_block;
struct skv_heap {
	struct skv_heap_chunk **v;
	size_t cap;
	uint32_t chunks;
	uint32_t n; /* cells in use */
	bool hole;  /* the root is a hole: n is at least 2 then */
};

/* Read the fields freely; change them only by the functions below. */
struct skv_heaps {
	struct skv_heap heap[SKV_HEAPS_MAX];
	uint32_t n_heaps;
	struct skv_heap_chunk *spare; /* used before, and empty now */
	/* The memory of all chunks, oldest first; chunks are cut from the one at `cut`. */
	struct skv_heap_block *first, *last, *cut;
	size_t room;   /* ids reserved for */
	size_t chunks; /* in all blocks */
	/* The word that stores an id's position: 0 = in no heap. Never NULL for an id that is in
	 * one or is being pushed. */
	uint32_t *(*place)(void *ctx, uint32_t id);
	void *ctx;
};

/* A set of 1..SKV_HEAPS_MAX empty heaps; allocates nothing. */
void skv_heaps_init(struct skv_heaps *h, uint32_t n_heaps,
		    uint32_t *(*place)(void *ctx, uint32_t id), void *ctx);
/* Frees its memory; does not touch the position words. */
void skv_heaps_destroy(struct skv_heaps *h);
/* Makes room for n ids in all heaps together. SKV_E_NOMEM and SKV_E_TOO_MANY (SKV_HEAP_IDS of them)
 * have no visible effect. */
int skv_heaps_reserve(struct skv_heaps *h, size_t n);
/* At least n_heaps heaps, sharing the same room. SKV_E_NOMEM has no visible effect. */
int skv_heaps_widen(struct skv_heaps *h, uint32_t n_heaps);
/* Adds to heap `which`; the id must be in none. Room must be reserved. Equal keys come out in an
 * order that depends only on the sequence of calls. */
void skv_heap_push(struct skv_heaps *h, uint32_t which, uint64_t key, uint32_t id);
/* Removes it from its heap. */
void skv_heap_remove(struct skv_heaps *h, uint32_t id);
/* The lowest key and its id; false if the heap is empty. */
bool skv_heap_top(const struct skv_heaps *h, uint32_t which, uint64_t *key, uint32_t *id);
/* Ids in it. */
uint32_t skv_heap_count(const struct skv_heaps *h, uint32_t which);
/* The heap that a position word (not 0) refers to, and the key there. */
uint32_t skv_heap_which(uint32_t place);
uint64_t skv_heap_key(const struct skv_heaps *h, uint32_t place);

#endif
