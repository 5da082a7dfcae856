/*
 * victims.h - what the files that choose victims call of each other (evict.c, reclaim.c, steer.c, share.c).
 */
#ifndef SKV_CORE_VICTIMS_H
#define SKV_CORE_VICTIMS_H

#include "evict.h"

/* As evict_group_bytes: of a storage, whoever's; */
uint64_t evict_space_bytes(struct partition *p, uint32_t space, uint64_t bytes);
/* of a group, by blocks. */
uint64_t evict_group_blocks(struct partition *p, struct group *g, uint64_t blocks);
/* What the background owes the group's lines (reclaim.c). True: there is more to do at once. */
bool reclaim_group(struct partition *p, struct group *g);
/* The same for the watermarks of a storage. */
bool reclaim_space(struct partition *p, uint32_t space);
/* At most so many blocks of the group that were not used since then (a time as marks have it), nor any that hang below
 * them. True: there may be more. */
bool evict_idle(struct partition *p, struct group *g, uint64_t since, uint64_t blocks);
/* The same for blocks whose generation is below this one, of a policy that goes by birth. */
bool evict_older(struct partition *p, struct group *g, uint64_t generation, uint64_t blocks);
bool block_evictable(const struct partition *p, const struct instance *inst, const struct block *b, uint64_t now);
/* One more that was evicted, of this instance. */
void evict_count(struct partition *p, struct instance *inst);

/* ---- steer.c ---------------------------------------------------------------------------------------- */

/* A block was evicted for slots of the class. */
void steer_note(struct partition *p, uint32_t space, uint32_t class_id, const struct block *b);
/* After evictions for slots of the class: perhaps others should give it space. */
void steer(struct partition *p, uint32_t space, uint32_t class_id, const struct evict_for *w);
/* The block was picked: so are those without which its slots of the class do not come free. Returns how many come free. */
uint64_t steer_segments(struct partition *p, struct picks *k, uint32_t space, uint32_t class_id, const struct block *b,
			const struct evict_for *w);
uint64_t block_idle_ms(const struct partition *p, const struct block *b);
/* The mean of some blocks of the slab. */
uint64_t slab_idle_ms(const struct partition *p, const struct skv_pool *pool, uint32_t slab);

/* ---- share.c ---------------------------------------------------------------------------------------- */

/* Before a search for victims: rooms of groups that have parts, for the two below. */
void shares_refresh(struct partition *p, uint32_t space);
/* What the instance has for its part, in 1/SHARE_PART: above it, it has more. 0 in a group without parts. What is on its
 * way out does not count, what is asked for does. */
#define SHARE_PART (1u << 20)
uint64_t share_ratio(const struct instance *inst, const struct evict_for *w);
/* May its blocks be evicted for that? */
bool share_allows(const struct evict_for *w, const struct instance *inst);

#endif
