/*
 * policy.h - eviction policies, behind one small interface, chosen per group.
 *
 * A policy spreads a group's blocks over a few queues, each ordered by a key (lowest goes first),
 * and ranks the tops. The holder of the blocks (the core, the simulator) also holds the queues, as
 * heaps (skv/heap.h):
 *
 *	  birth born() of all blocks that are written together, head first; then place() use no
 *	  call: the block's `use` and `freq` change, its position does not eviction of the tops of
 *	  all queues, as they stand, the lowest-ranked one is examined: look() either lets it go,
 *	  and evicted() follows, or it is placed again, with what the policy wrote into it, and the
 *	  search starts over removal no call: the block leaves its queue and the counts admission of
 *	  each new block that needs another's room: admit() is asked about the block that would go
 *	  next; where it says no, neither the block nor those after it in its chain are stored, and
 *	  refused() is called for each
 *
 * So a hit costs two stores and no lock, and an eviction O(blocks used since they were queued),
 * each once. A block may leave its queue and be placed again at any time (leased, written to,
 * pinned): place() derives its position from the block and the state, never from its previous
 * position.
 *
 * With `leaf_first`, blocks with children go only when nothing else is left: the holder of the
 * queues adds SKV_POLICY_INNER to their keys. Keys are below it.
 *
 * The outcome depends only on the sequence of calls and uses: no clock, no randomness. A state
 * belongs to one group and is used by one thread at a time.
 */
#ifndef SKV_POLICY_H
#define SKV_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <skv/hash.h>

#define SKV_POLICY_QUEUES 16u /* limit per policy */
#define SKV_POLICY_INNER (1ull << 63)
#define SKV_POLICY_FREQ 15u /* uses that are counted */
#define SKV_POLICY_TAGS 32u
#define SKV_POLICY_DEFAULT "reuse"

/* A block as a policy sees it. `freq` and `tag` are stored with the block as the policy leaves
 * them. */
struct skv_policy_block {
	uint64_t hash; /* skv_policy_hash(): the same when it is written again */
	/* Last use: a stamp below 2^44, never decreasing; equal for blocks of one call. */
	uint64_t use;
	uint64_t born; /* sequence number of its birth, below 2^47 */
	uint32_t freq; /* uses since birth, 0..SKV_POLICY_FREQ, saturating */
	uint32_t tag;  /* the policy's own, 0..SKV_POLICY_TAGS - 1; 0 before birth */
};

struct skv_policy_place {
	uint32_t queue; /* below n_queues */
	uint64_t key;   /* below SKV_POLICY_INNER */
};

/* Counts of a group. */
struct skv_policy_counts {
	/* All blocks, queued or not: including one being born, without one evicted. */
	uint64_t blocks;
	/* In each queue: only candidates, and with `leaf_first` not every block with children. One
	 * in several heaps (one per size class) counts in each. */
	uint64_t queued[SKV_POLICY_QUEUES];
};

struct skv_policy_ops {
	const char *name;
	uint32_t n_queues;
	bool leaf_first;
	bool by_use;   /* keys are times of last use, as far as known */
	bool by_birth; /* keys are births */
	/* The caller keeps both up to date while the state lives. NULL: out of memory. A policy
	 * without a state has neither function, and NULL as state. */
	void *(*create)(const struct skv_policy_counts *n);
	void (*destroy)(void *state);
	/* born() or evicted() of a block with this hash follows soon: prefetches what they read.
	 * NULL: nothing. */
	void (*prefetch)(const void *state, uint64_t hash);
	/* A block was created; `last`: the last of the blocks written together. May set freq and
	 * tag. NULL: nothing to do. */
	void (*born)(void *state, struct skv_policy_block *b, bool last);
	/* Returns the tag that born() gives a block without a known key: a block that was born
	 * while there was no state. NULL: 0. */
	uint32_t (*tag_born)(bool last);
	/* A block that is older than the state: after a restart (`own`: the tag is this policy's),
	 * or after a change of policy. Once per block, before it is placed; `hash` is not valid.
	 * NULL: nothing to do. */
	void (*adopt)(void *state, struct skv_policy_block *b, bool own);
	/* Returns the block's queue and key. May set freq and tag. */
	struct skv_policy_place (*place)(void *state, struct skv_policy_block *b);
	/* Called when the block is the top there (key without SKV_POLICY_INNER; queue and key may
	 * be another policy's). Returns true if the block may be evicted. False: the block is
	 * placed again; freq and tag may have changed. An unused block must reach the top only
	 * finitely often before it may go. */
	bool (*look)(void *state, struct skv_policy_block *b, struct skv_policy_place at);
	/* Ranks the tops of the group's queues, as they stand: the lowest is examined first; equal:
	 * least recently used. Constant between calls of functions other than place(), look() and
	 * evicted(). */
	uint64_t (*rank)(void *state, struct skv_policy_place at);
	/* The last use by which the top there is compared with blocks of other groups. NULL: its
	 * own. */
	uint64_t (*last_use)(void *state, struct skv_policy_place at);
	/* Called when the block was chosen as above and is evicted from there. NULL: nothing to
	 * do. */
	void (*evicted)(void *state, const struct skv_policy_block *b, struct skv_policy_place at);
	/* Returns true if a block about to be born (only `hash` is valid) is worth more than the
	 * one at the top there, which would be evicted for it. NULL: always. */
	bool (*admit)(void *state, const struct skv_policy_block *b, bool last,
		      struct skv_policy_place at);
	/* A block (only `hash` and `use`, now, are valid) was not admitted. NULL if and only if
	 * `admit` is. */
	void (*refused)(void *state, const struct skv_policy_block *b, bool last);
};

/* The hash by which policies recognise a block: of its key, and of the name of its instance, which
 * skv_policy_space() returns as a number. Both are pure. */
uint64_t skv_policy_space(const char *tenant, const char *instance);
uint64_t skv_policy_hash(uint64_t space, struct skv_key key);
/* NULL: unknown policy. "" = SKV_POLICY_DEFAULT. */
const struct skv_policy_ops *skv_policy_find(const char *name);
/* All policies, the default first; NULL at the end. */
const struct skv_policy_ops *const *skv_policy_all(void);
/* "reuse, lru, ...": for messages. */
const char *skv_policy_names(void);

#endif
