/*
 * heap.h - sets of min-heaps of (key, id) that share memory: eviction queues, deadlines.
 *
 * An id is in at most one heap of a set. Where it stands is kept in a word of the caller's, so it is taken out or
 * moved from anywhere in O(log n). Room for n ids is reserved for the set, whatever their split: pushing cannot fail,
 * and growing never copies keys. No locks: the caller lets one thread in at a time.
 */
#ifndef SKV_HEAP_H
#define SKV_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SKV_HEAPS_MAX 19u     /* heaps of a set */
#define SKV_HEAP_IDS (1u << 27) /* ids in a heap, less one */

struct skv_heap_chunk;
struct skv_heap {
	struct skv_heap_chunk **v;
	size_t cap;
	uint32_t chunks;
	uint32_t n; /* cells in use */
	bool hole;  /* the first is not: n is 2 or more then */
};

/* The fields are read by all, changed by the functions below only. */
struct skv_heaps {
	struct skv_heap heap[SKV_HEAPS_MAX];
	uint32_t n_heaps;
	struct skv_heap_chunk *spare;
	size_t room;   /* ids that were reserved for */
	size_t chunks; /* in all heaps and spare */
	/* The word where the place of an id is kept: 0 = in no heap. Never NULL for an id that is in one, or is being
	 * pushed. */
	uint32_t *(*place)(void *ctx, uint32_t id);
	void *ctx;
};

/* A set of 1..SKV_HEAPS_MAX empty heaps; allocates nothing. */
void skv_heaps_init(struct skv_heaps *h, uint32_t n_heaps, uint32_t *(*place)(void *ctx, uint32_t id), void *ctx);
/* Frees its memory; words of places are not looked at. */
void skv_heaps_destroy(struct skv_heaps *h);
/* Room for n ids in all heaps together. SKV_E_NOMEM, and SKV_E_TOO_MANY (SKV_HEAP_IDS of them), change nothing that can be
 * seen. */
int skv_heaps_reserve(struct skv_heaps *h, size_t n);
/* At least so many heaps, with the room that there is. SKV_E_NOMEM changes nothing that can be seen. */
int skv_heaps_widen(struct skv_heaps *h, uint32_t n_heaps);
/* Into heap `which`; the id is in none. Room must be reserved. Equal keys come out in an order that depends on nothing
 * but that of the calls. */
void skv_heap_push(struct skv_heaps *h, uint32_t which, uint64_t key, uint32_t id);
/* Out of the heap that it is in. */
void skv_heap_remove(struct skv_heaps *h, uint32_t id);
/* The least key and its id; false when the heap is empty. */
bool skv_heap_top(const struct skv_heaps *h, uint32_t which, uint64_t *key, uint32_t *id);
/* Ids in it. */
uint32_t skv_heap_count(const struct skv_heaps *h, uint32_t which);
/* Which heap a word of a place (not 0) means, and the key there. */
uint32_t skv_heap_which(uint32_t place);
uint64_t skv_heap_key(const struct skv_heaps *h, uint32_t place);

#endif
