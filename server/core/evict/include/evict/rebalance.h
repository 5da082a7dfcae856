/*
 * rebalance.h - eviction by location: frees whole slabs for another size class, and whole segments.
 */
#ifndef SKV_CORE_EVICT_REBALANCE_H
#define SKV_CORE_EVICT_REBALANCE_H

#include <stdbool.h>
#include <stdint.h>

struct block;
struct evict_for;
struct partition;
struct picks;
struct skv_pool;

/* Empties slabs of other classes for `class_id`. True if any are on their way, some perhaps at the
 * end of leases. */
bool evict_rebalance(struct partition *p, uint32_t volume, uint32_t class_id,
		     const struct evict_for *w);
/* Counts a block evicted for slots of the class. `now`, here and below: of a whole search. */
void rebalance_note(struct partition *p, uint32_t volume, uint32_t class_id, const struct block *b,
		    uint64_t now);
/* Called after evictions for slots of the class: takes slabs from other classes if theirs are
 * older. */
void rebalance(struct partition *p, uint32_t volume, uint32_t class_id, const struct evict_for *w);
/* Picks the blocks that share segments with a picked block, because its slots do not become free
 * without them. Returns the number of slots that become free. */
uint64_t rebalance_segments(struct partition *p, struct picks *k, uint32_t volume,
			    uint32_t class_id, const struct block *b, const struct evict_for *w,
			    uint64_t now);
uint64_t block_idle_ms(const struct partition *p, const struct block *b, uint64_t now);
/* Mean idle time of a sample of the slab's blocks. */
uint64_t slab_idle_ms(const struct partition *p, const struct skv_pool *pool, uint32_t slab);

#endif
