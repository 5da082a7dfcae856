/*
 * queue.h - where blocks stand until they go: the eviction queues.
 */
#ifndef SKV_CORE_MODEL_QUEUE_H
#define SKV_CORE_MODEL_QUEUE_H

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

#include <skv/heap.h>
#include <skv/policy.h>

struct block;
struct evict_queue;
struct evict_set;
struct group;
struct instance;
struct partition;

/* Eviction order of one instance's blocks with slots of one class in one volume (queue.c). */
enum { EVICT_LEASED, EVICT_SOFT, EVICT_HELD, EVICT_FIRST }; /* heaps: leased; pinned soft; only its slots are leased; those
							       * of the policy's queues follow */
struct evict_queue {
	struct partition *partition;
	struct instance *inst;
	struct evict_set *set; /* NULL: of a retired instance that stays one */
	uint32_t member;       /* of the set; not while the instance is a retired instance */
	uint32_t volume;
	uint32_t class_id;
	uint32_t top[SKV_HEAPS_MAX]; /* places in the set's heaps */
	struct skv_heaps heaps;
};

/* A member of a set, and what its instance has for its share (quota_share.c). */
struct candidate {
	uint64_t over;
	const struct evict_queue *q;
};

/* Those of a group's instances for one class in one volume, and in the same heaps their tops. */
struct evict_set {
	struct group *group;
	uint32_t volume;
	uint32_t class_id;
	struct skv_heaps tops;
	struct evict_queue **member;
	size_t cap;
	uint32_t n;
	uint32_t hidden; /* of retired instances that may come back */
	/* In a group with shares, during one search: members that may have victims, who is most over its share first. */
	struct candidate *candidate;
	size_t cap_candidates;
	uint32_t n_candidates;
	bool candidates_soft;     /* for what is pinned soft */
	uint64_t candidates_of;   /* which search */
	struct evict_set *next; /* of the same space */
};

/* Queues the block where eviction may find it, or nowhere; call whenever it may have become evictable. */
void evict_consider(struct partition *p, struct block *b);
/* The same for one that was committed just now, after the block below it (NULL: none). While that, its only child, stands
 * in the same queues, it is held back: the child goes first anyway, so most inner blocks never stand in a queue. */
void evict_consider_above(struct partition *p, struct block *b, const struct block *child);
/* Nothing hangs below it any more: to a policy that goes for leaves it is one now. */
void evict_leaf(struct partition *p, struct block *b);
bool evict_held_back(const struct block *b);
bool evict_stands_for(const struct block *child, const struct block *b);
/* As it stands at `now`, which is the time of a whole search: a lease that ends during it runs for all of it, or the
 * block would be a candidate that may not be taken. */
void evict_consider_at(struct partition *p, struct block *b, uint64_t lease, uint64_t now);
/* Out of all queues: it is written, removed, or gone. */
void evict_forget(struct block *b);
/* The same for one that stays: what it stood for stands itself. */
void evict_withhold(struct partition *p, struct block *b);
/* What its policy may know of it. */
struct skv_policy_block evict_facts(const struct instance *inst, const struct block *b);
/* It is committed soon: fetches into the cache what its policy looks at then. */
void evict_expect(const struct block *b);
/* It came to be; `how`: SKV_BORN_*. */
void evict_born(struct partition *p, struct block *b, uint32_t how);
/* It was there before its policy: after a restart, or (`own` is false) when the policy has changed. */
void evict_adopt(struct block *b, bool own);
/* What the policy made of it. */
void evict_keep(struct block *b, const struct skv_policy_block *facts);
/* Does a candidate's key tell whether it has live children, if the policy cares? */
bool evict_inner_as(const struct instance *inst, const struct block *b, uint64_t key);
/* The key of one that is pinned soft. */
uint64_t evict_soft_key(const struct block *b);
/* The key of one that a lookup named whose lease keeps nothing but slots, and whose instance has no other leases: end of
 * lease, leaves first. 0: it is none. */
uint64_t evict_held_key(const struct block *b, uint64_t lease, uint64_t now);
static inline uint64_t evict_held_until(uint64_t key) { return key >> 1; }
/* The first of all in this heap of the set's members: the queue that it is in, NULL if there is none; its key and id. */
struct evict_queue *evict_set_top(const struct evict_set *set, uint32_t which, uint64_t *key, uint32_t *id);
/* Room for all entries of the instance in the queue of this class; before slots of the class are taken. */
int evict_reserve(struct partition *p, struct instance *inst, uint32_t volume, uint32_t class_id);
/* The same in all its queues, before there are more entries. */
int evict_reserve_all(struct instance *inst, uint64_t entries);
/* Heaps for so many queues of a policy in all the group has. */
int evict_widen(struct partition *p, const struct group *g, uint32_t n_queues);
/* When the next lease on blocks in this volume ends, by what their queues know; UINT64_MAX = none runs. */
uint64_t evict_next_lease(const struct partition *p, uint32_t volume);
void evict_forget_volume(struct instance *inst, uint32_t volume); /* no block of it has slots there any more */
void evict_destroy_queues(struct instance *inst);
/* The sets of the group (NULL = of all) in this volume, which have no members any more. */
void evict_free_sets(struct partition *p, uint32_t volume, const struct group *g);
/* Evictions do not look into its queues, or do again; or never will. */
void evict_hide(struct instance *inst, bool hidden);
void evict_hide_for_good(struct instance *inst);

#endif
