/* queue.h - the eviction queues. */
#ifndef SKV_CORE_MODEL_QUEUE_H
#define SKV_CORE_MODEL_QUEUE_H

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

#include <skv/heap.h>
#include <skv/ops.h>
#include <skv/policy.h>

struct block;
struct evict_queue;
struct evict_set;
struct group;
struct instance;
struct partition;

/* Eviction order of one instance's blocks with slots of one class in one volume (queue.c). */
/* heaps: leased; soft-pinned; leased by `slots_only` lookups; then the policy's queues */
enum { EVICT_LEASED, EVICT_SOFT, EVICT_HELD, EVICT_FIRST };
struct evict_queue {
	struct partition *partition;
	struct instance *inst;
	struct evict_set *set; /* NULL: of an instance retired permanently */
	uint32_t member;       /* of the set; not while the instance is retired */
	uint32_t volume;
	uint32_t class_id;
	uint32_t top[SKV_HEAPS_MAX]; /* positions in the set's heaps */
	struct skv_heaps heaps;
};

/* A member of a set, and its instance's usage of its share (quota_share.c). */
struct candidate {
	uint64_t over;
	const struct evict_queue *q;
};

/* The queues of a group's instances for one class in one volume; its heaps hold the tops of
 * theirs. */
struct evict_set {
	struct group *group;
	uint32_t volume;
	uint32_t class_id;
	struct skv_heaps tops;
	struct evict_queue **member;
	size_t cap;
	uint32_t n;
	uint32_t hidden; /* queues of retired instances, which may come back */
	/* In a group with shares, during one search: members that may have victims, furthest over
	 * its share first. */
	struct candidate *candidate;
	size_t cap_candidates;
	uint32_t n_candidates;
	bool candidates_soft;     /* includes soft-pinned blocks */
	uint64_t candidates_of;   /* which search */
	bool split;               /* in that search, members of several tenants */
	uint64_t split_of;        /* which search */
	struct evict_set *next; /* of the same volume */
};

/* Puts the block into the right eviction queue, or none; call whenever it may have become
 * evictable. */
void evict_consider(struct partition *p, struct block *b);
/* The same for a block committed just now, after its child (NULL: none). While that, its only
 * child, is in the same queues, the block is kept out: the child goes first anyway, so most inner
 * blocks are never queued. */
void evict_consider_above(struct partition *p, struct block *b, const struct block *child);
/* Queues, after a load, each of n blocks, 0..EVICT_CHAINS, and the blocks above it as long as they
 * have no other live child. Pass each block with no live child, or with several, exactly once; so
 * each block is seen once. A chain may lie scattered in memory: several chains are climbed in turn,
 * while the next block of each is prefetched. */
#define EVICT_CHAINS 16u
void evict_load_chains(struct partition *p, struct block *const *first, uint32_t n);
/* The block has no live children any more: for policies that evict leaves. */
void evict_leaf(struct partition *p, struct block *b);
bool evict_held_back(const struct block *b);
bool evict_stands_for(const struct block *child, const struct block *b);
/* As of `now`, the time of a whole search: a lease that ends during the search counts as running,
 * or the block would be a candidate that may not be taken. */
void evict_consider_at(struct partition *p, struct block *b, uint64_t lease, uint64_t now);
/* Removes it from all queues: it is being written or removed, or is gone. */
void evict_forget(struct block *b);
/* The same for a block that stays: blocks kept out because of it are queued. */
void evict_withhold(struct partition *p, struct block *b);
/* The hash of a block's key that its policy sees. */
uint64_t evict_hash(const struct instance *inst, struct skv_key key);
/* The block as its policy sees it. */
struct skv_policy_block evict_facts(const struct instance *inst, const struct block *b);
/* Prefetches the policy's data of a block that will be committed soon. */
void evict_expect(const struct block *b);
/* Counts a block that is committed at once, and reports it to its policy. `last`: the last one of
 * its chain that is written together. */
void evict_born(struct partition *p, struct block *b, bool last);
/* Called when a record removes the block, so that a standby's policy learns of it. The record does
 * not distinguish eviction from deletion. */
void evict_followed(const struct partition *p, struct block *b);
/* Hands an existing block to its policy: after a restart, or (`own` false) after a change of
 * policy. */
void evict_adopt(struct block *b, bool own);
/* Stores the policy's changes of a block. */
void evict_keep(struct block *b, const struct skv_policy_block *facts);
/* Returns true if a queue's key still agrees with whether the block has live children, if the
 * policy uses that. */
bool evict_inner_as(const struct instance *inst, const struct block *b, uint64_t key);
/* The key of a soft-pinned block. */
uint64_t evict_soft_key(const struct block *b);
/* The key of an unpinned leased block whose instance has only leases that protect nothing but slots
 * (`slots_only` lookups): end of lease, leaves first. 0: it is not one. */
uint64_t evict_held_key(const struct block *b, uint64_t lease, uint64_t now);
static inline uint64_t evict_held_until(uint64_t key) { return key >> 1; }
/* The first in this heap of the set's members: its queue, NULL if there is none; its key and id. */
struct evict_queue *evict_set_top(const struct evict_set *set, uint32_t which, uint64_t *key,
				  uint32_t *id);
/* Reserves room for all entries of the instance in the queue of this class; before slots of the
 * class are taken. */
int evict_reserve(struct partition *p, struct instance *inst, uint32_t volume, uint32_t class_id);
/* The same in all its queues, before entries are added. */
int evict_reserve_all(struct instance *inst, uint64_t entries);
/* Makes heaps for `n_queues` policy queues in everything that the group has. */
int evict_widen(struct partition *p, const struct group *g, uint32_t n_queues);
/* When the next lease on blocks in this volume ends, as far as their queues know; UINT64_MAX =
 * none. */
uint64_t evict_next_lease(const struct partition *p, uint32_t volume);
/* none of its blocks has slots there any more */
void evict_forget_volume(struct instance *inst, uint32_t volume);
void evict_destroy_queues(struct instance *inst);
/* Frees the sets of the group (NULL = all) in this volume, which have no members any more. */
void evict_free_sets(struct partition *p, uint32_t volume, const struct group *g);
/* Hides the instance's queues from evictions, or shows them again. */
void evict_hide(struct instance *inst, bool hidden);
void evict_hide_for_good(struct instance *inst);

#endif
