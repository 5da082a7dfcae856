/*
 * rebalance.h - eviction that looks at where blocks lie: space moves between size classes, and segments come free as a whole.
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

/* Empties slabs of other classes for `class_id`. True when something is on its way. */
bool evict_rebalance(struct partition *p, uint32_t volume, uint32_t class_id, const struct evict_for *w);
/* The same where leases run in every window: its slots come free when they end. One window at a time: true while that is
 * waited for. */
bool evict_rebalance_leased(struct partition *p, uint32_t volume, uint32_t class_id, const struct evict_for *w);
/* A block was evicted for slots of the class. */
void rebalance_note(struct partition *p, uint32_t volume, uint32_t class_id, const struct block *b);
/* After evictions for slots of the class: perhaps others should give it space. */
void rebalance(struct partition *p, uint32_t volume, uint32_t class_id, const struct evict_for *w);
/* The block was picked: so are those without which its slots of the class do not come free. Returns how many come free. */
uint64_t rebalance_segments(struct partition *p, struct picks *k, uint32_t volume, uint32_t class_id, const struct block *b,
			const struct evict_for *w);
uint64_t block_idle_ms(const struct partition *p, const struct block *b);
/* The mean of some blocks of the slab. */
uint64_t slab_idle_ms(const struct partition *p, const struct skv_pool *pool, uint32_t slab);

#endif
