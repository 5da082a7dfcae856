/*
 * policy.h - which block goes when room is needed: policies behind one small interface, chosen per group.
 *
 * A policy spreads the blocks of a group over a few queues, each in order of a key (least goes first), and ranks the
 * tops of them. Whoever holds the blocks (the core, the simulator) holds the queues, too, as heaps (skv/heap.h):
 *
 *   birth     born(), then place()
 *   use       nothing is called: the block's `use` and `freq` change, its place does not
 *   eviction  of the tops of all queues, as they stand, the one of the least rank is looked at: look() lets it go, then
 *             it is evicted(), or it is placed again, with what the policy wrote into it, and the search begins anew
 *   removal   nothing is called: it leaves its queue, and the counts
 *
 * So a hit costs two stores and no lock, and an eviction O(blocks that were used since they were queued), each once.
 * A block may leave its queue and be placed again at any time (it was leased, written to, pinned): place() tells its
 * place from what the block itself carries and from the state, never from where it stood.
 *
 * With `leaf_first`, blocks that others hang below go only when nothing else is left: whoever holds the queues adds
 * SKV_POLICY_INNER to their keys. Keys are below it.
 *
 * The outcome depends on the order of calls and of uses alone: no clock, no chance. A state belongs to one group and is
 * used by one thread at a time.
 */
#ifndef SKV_POLICY_H
#define SKV_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SKV_POLICY_QUEUES 16u /* of one policy, at most */
#define SKV_POLICY_INNER (1ull << 63)
#define SKV_POLICY_FREQ 15u /* uses that are counted */
#define SKV_POLICY_TAGS 32u
#define SKV_POLICY_DEFAULT "reuse"

/* What a policy may know of a block. `freq` and `tag` are kept with the block as the policy leaves them. */
struct skv_policy_block {
	uint64_t hash; /* of its key, well mixed: the same when it comes back */
	uint64_t use;  /* last use: a stamp below 2^44, never less than an earlier use's; equal for blocks of one call */
	uint64_t born; /* number of its birth, below 2^47: grows from birth to birth */
	uint32_t freq; /* uses since birth, 0..SKV_POLICY_FREQ; stays there */
	uint32_t tag;  /* the policy's own, 0..SKV_POLICY_TAGS - 1; 0 before birth */
};

/* Of a birth. */
#define SKV_BORN_LAST 1u  /* the last block of those written together */
#define SKV_BORN_BELOW 2u /* what is written together continues a chain that was there */

struct skv_policy_place {
	uint32_t queue; /* below n_queues */
	uint64_t key;   /* below SKV_POLICY_INNER */
};

/* Of a group. */
struct skv_policy_counts {
	uint64_t blocks; /* that are there, wherever they stand: with one that is born now, without one that was evicted */
	/* In each queue: only what may go, and with `leaf_first` not every block that others hang below. One that stands in
	 * several heaps (a size class each) counts in each. */
	uint64_t queued[SKV_POLICY_QUEUES];
};

struct skv_policy_ops {
	const char *name;
	uint32_t n_queues;
	bool leaf_first;
	bool by_use;   /* keys are last uses, as far as known */
	bool by_birth; /* keys are births */
	/* The caller keeps both up to date, as long as the state lives. NULL: out of memory. A policy without a state has
	 * neither of the two functions, and NULL as state. */
	void *(*create)(const struct skv_policy_counts *n);
	void (*destroy)(void *state);
	/* born() or evicted() of a block with this hash comes soon: fetches into the cache what they look at. NULL: nothing. */
	void (*prefetch)(const void *state, uint64_t hash);
	/* A block came to be; `how`: SKV_BORN_*. May set freq and tag. NULL: nothing to do. */
	void (*born)(void *state, struct skv_policy_block *b, uint32_t how);
	/* A block that was there before the state: after a restart (`own`: the tag is this policy's), or when the policy
	 * of the group is changed. Each once, before it is placed. NULL: nothing to do. */
	void (*adopt)(void *state, struct skv_policy_block *b, bool own);
	/* Where it belongs. May set freq and tag. */
	struct skv_policy_place (*place)(void *state, struct skv_policy_block *b);
	/* It is the top there (key without SKV_POLICY_INNER; queue and key may be another policy's). True: it may go.
	 * False: it is placed again; freq and tag may have changed. A block that is not used in between comes to the top
	 * finitely often before it may go. */
	bool (*look)(void *state, struct skv_policy_block *b, struct skv_policy_place at);
	/* Compares tops of different queues of the group, as they stand: the least is looked at first; equal: least last
	 * use. Constant between two calls of the others but place(), look() and evicted(). */
	uint64_t (*rank)(void *state, struct skv_policy_place at);
	/* It goes, chosen by the above, from there. NULL: nothing to do. */
	void (*evicted)(void *state, const struct skv_policy_block *b, struct skv_policy_place at);
};

/* NULL: there is no such policy. "" = SKV_POLICY_DEFAULT. */
const struct skv_policy_ops *skv_policy_find(const char *name);
/* All policies, the default first; NULL at the end. */
const struct skv_policy_ops *const *skv_policy_all(void);
/* "reuse, lru, ...": for messages. "odds", the older name of "reuse", is found, too, and not listed. */
const char *skv_policy_names(void);

#endif
