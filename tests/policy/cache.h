/*
 * cache.h - a cache of blocks in chains over one policy, for tests: what policy.h asks of whoever
 * holds the blocks, and nothing else. One insertion at a time; a use has a stamp of its own.
 */
#ifndef CACHE_H
#define CACHE_H

#include <skv/heap.h>
#include <skv/policy.h>

struct cache_block {
	struct skv_policy_block facts;
	uint32_t parent; /* 0 = none */
	uint32_t kids;   /* children in the cache */
	uint32_t place;
	bool in;
	bool absent; /* when the request came */
};

struct cache {
	const struct skv_policy_ops *ops;
	void *state;
	struct skv_heaps heaps;
	struct skv_policy_counts n;
	struct cache_block *block; /* [n_ids], 1.. */
	uint32_t n_ids;
	uint32_t cap;
	uint64_t stamp, births, evictions, looks, last_evicted;
	uint64_t stamp_step; /* stamps grow by so much: tells time from order */
};

void cache_make(struct cache *c, const char *policy, uint32_t cap, uint32_t n_ids);
void cache_destroy(struct cache *c);
/* Uses of a block that is in. */
void cache_use(struct cache *c, uint32_t id);
/* In, below `parent` (0 = nobody); evicts one if it is full. */
void cache_insert(struct cache *c, uint32_t id, uint32_t parent, bool last);
/* Evicts one: its id, 0 = there is none. */
uint32_t cache_evict(struct cache *c);
/* Out, not by the policy. */
void cache_remove(struct cache *c, uint32_t id);
/* Placed again, as after a lease. */
void cache_replace(struct cache *c, uint32_t id);
/* From now on by another policy; `own`: by a fresh state of the same one, as after a restart. */
void cache_change(struct cache *c, const char *policy, bool own);
/* A request for the chain ids[0..n-1]: what is in is used, what is not inserted.
 * Returns how many were in. */
uint32_t cache_request(struct cache *c, const uint32_t *ids, uint32_t n, uint32_t *prefix);

#endif
