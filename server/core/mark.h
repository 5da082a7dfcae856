/*
 * mark.h - a block's mark: when it was last used, and how long it is leased, in one atomic word.
 *
 *	63           27 26      20 19                0
 *	| use: ms (37) | order (7) | lease: ms (20) |
 *
 * The use counts milliseconds of the store's life (part->use_base is added to the clock), then an order among the
 * uses of one millisecond. The lease is what was left of it at that use. Pure; no state.
 */
#ifndef KVB_CORE_MARK_H
#define KVB_CORE_MARK_H

#include <stdint.h>

#define MARK_LEASE_BITS 20u
#define MARK_ORDER_BITS 7u
#define MARK_LEASE_MAX ((1u << MARK_LEASE_BITS) - 1) /* ms; above KVB_MAX_LEASE_MS */
#define USE_MS_MAX ((1ull << 37) - 1)                /* four years; recover.c begins anew at a half */

/* A use, ordered by time: what eviction sorts by and checkpoints store. */
static inline uint64_t use_make(uint64_t ms, uint64_t order)
{
	return (ms < USE_MS_MAX ? ms : USE_MS_MAX) << MARK_ORDER_BITS | (order & ((1u << MARK_ORDER_BITS) - 1));
}

static inline uint64_t use_ms(uint64_t use) { return use >> MARK_ORDER_BITS; }

static inline uint64_t mark_make(uint64_t use, uint64_t lease_ms)
{
	return use << MARK_LEASE_BITS | (lease_ms < MARK_LEASE_MAX ? lease_ms : MARK_LEASE_MAX);
}

static inline uint64_t mark_use(uint64_t mark) { return mark >> MARK_LEASE_BITS; }

/* End of the lease, in the milliseconds of uses; 0 = none was given at that use. */
static inline uint64_t mark_lease_end(uint64_t mark)
{
	uint64_t ms = mark & MARK_LEASE_MAX;

	return ms ? use_ms(mark_use(mark)) + ms : 0;
}

#endif
