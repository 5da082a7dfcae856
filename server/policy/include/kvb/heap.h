/*
 * heap.h - sets of min-heaps of (key, id) that share memory: eviction queues, deadlines.
 *
 * An id is in at most one heap of a set. Where it stands is kept in a word of the caller's, so it is taken out or
 * moved from anywhere in O(log n). Room for n ids is reserved for the set, whatever their split: pushing cannot fail,
 * and growing never copies keys. No locks: the caller lets one thread in at a time.
 */
#ifndef KVB_HEAP_H
#define KVB_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KVB_HEAPS_MAX 18u     /* heaps of a set */
#define KVB_HEAP_IDS (1u << 27) /* ids in a heap, less one */

struct kvb_heap_chunk;
struct kvb_heap {
	struct kvb_heap_chunk **v;
	size_t cap;
	uint32_t chunks;
	uint32_t n; /* cells in use */
	bool hole;  /* the first is not: n is 2 or more then */
};

/* The fields are read by all, changed by the functions below only. */
struct kvb_heaps {
	struct kvb_heap heap[KVB_HEAPS_MAX];
	uint32_t n_heaps;
	struct kvb_heap_chunk *spare;
	size_t room;   /* ids that were reserved for */
	size_t chunks; /* in all heaps and spare */
	/* The word where the place of an id is kept: 0 = in no heap. Never NULL for an id that is in one, or is being
	 * pushed. */
	uint32_t *(*place)(void *ctx, uint32_t id);
	void *ctx;
};

/* A set of 1..KVB_HEAPS_MAX empty heaps; allocates nothing. */
void kvb_heaps_init(struct kvb_heaps *h, uint32_t n_heaps, uint32_t *(*place)(void *ctx, uint32_t id), void *ctx);
/* Frees its memory; words of places are not looked at. */
void kvb_heaps_destroy(struct kvb_heaps *h);
/* Room for n ids in all heaps together. KVB_E_NOMEM changes nothing that can be seen. */
int kvb_heaps_reserve(struct kvb_heaps *h, size_t n);
/* At least so many heaps, with the room that there is. KVB_E_NOMEM changes nothing that can be seen. */
int kvb_heaps_widen(struct kvb_heaps *h, uint32_t n_heaps);
/* Into heap `which`; the id is in none. Room must be reserved. Equal keys come out in an order that depends on nothing
 * but that of the calls. */
void kvb_heap_push(struct kvb_heaps *h, uint32_t which, uint64_t key, uint32_t id);
/* Out of the heap that it is in. */
void kvb_heap_remove(struct kvb_heaps *h, uint32_t id);
/* The least key and its id; false when the heap is empty. */
bool kvb_heap_top(const struct kvb_heaps *h, uint32_t which, uint64_t *key, uint32_t *id);
/* Ids in it. */
uint32_t kvb_heap_count(const struct kvb_heaps *h, uint32_t which);
/* Which heap a word of a place (not 0) means, and the key there. */
uint32_t kvb_heap_which(uint32_t place);
uint64_t kvb_heap_key(const struct kvb_heaps *h, uint32_t place);

#endif
