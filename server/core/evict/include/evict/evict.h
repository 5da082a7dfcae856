/*
 * evict.h - which committed blocks go when room is needed: those that the policy of their group puts first.
 */
#ifndef SKV_CORE_EVICT_EVICT_H
#define SKV_CORE_EVICT_EVICT_H

#include <stdbool.h>
#include <stdint.h>

#include <model/partition.h>

/* For whom something is evicted. */
struct evict_for {
	const struct instance *whose; /* its start asks for it; NULL = nobody's: ahead of need */
	uint64_t bytes; /* that the start brings: they count for it already */
	bool soft; /* also what is pinned soft, when nothing else is left */
	bool over; /* evict_rebalance only: nothing but of instances that have more than their share */
};
/* Queues the removal of blocks so that `slots` of (space, class) become free; returns how many slots
 * are on their way because of this call (it bounds the blocks of one call: fewer is no end). */
uint64_t evict_slots(struct partition *p, uint32_t volume, uint32_t class_id, uint64_t slots, const struct evict_for *w);
/* Same for a group, by bytes; on storages of this type only (NULL = any). */
uint64_t evict_group_bytes(struct partition *p, struct group *g, const char *type, uint64_t bytes, const struct evict_for *w);
/* Same of one instance; of a storage, whoever's. */
uint64_t evict_instance_bytes(struct partition *p, struct instance *inst, uint64_t bytes, bool soft);
uint64_t evict_volume_bytes(struct partition *p, uint32_t volume, uint64_t bytes);
/* Same for a group, by blocks. */
uint64_t evict_group_blocks(struct partition *p, struct group *g, uint64_t blocks);
/* At most so many blocks of the group that were not used since then (a time as marks have it), nor any that hang below
 * them. True: there may be more. */
bool evict_idle(struct partition *p, struct group *g, uint64_t since, uint64_t blocks);
/* The same for blocks whose generation is below this one, of a policy that goes by birth. */
bool evict_older(struct partition *p, struct group *g, uint64_t generation, uint64_t blocks);
/* Keeps a little free in every class that somebody used lately, so that starts rarely wait, and so that a start
 * just after a recovery finds slots that no lease horizon covers. True when there is more to do at once. */
bool evict_ahead(struct partition *p, struct portion volumes, struct portion groups);
bool block_evictable(const struct partition *p, const struct instance *inst, const struct block *b, uint64_t now);

/* One more that was evicted, of this instance. */
void evict_count(struct partition *p, struct instance *inst);

#endif
