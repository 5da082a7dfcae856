/*
 * mark.h - a block's mark: when it was last used, how often, and how long it is
 * leased, in one atomic word.
 *
 *	63           27 26      21 20       17 16               0
 *	| use: ms (37) | order (6) | freq (4) | lease: 8 ms (17) |
 *
 * The use counts milliseconds of the store's life (use_clock() in partition.h), then
 * an order among the uses of one millisecond. freq counts uses since birth, and stays at its
 * maximum. The lease is what was left of it at that use, from one multiple of 8 ms to another,
 * rounded up: the same end again is the same end. Pure; no state.
 */
#ifndef SKV_CORE_MODEL_MARK_H
#define SKV_CORE_MODEL_MARK_H

#include <stdint.h>

struct block;
struct partition;

/* The use of a block now: grows with each call. */
uint64_t use_now(struct partition *p, uint64_t now);
/* A use that was stored. */
void use_seen(struct partition *p, uint64_t use);
/* The clock of uses shows `ms` at boot time `now`; or, after a load: the newest use, all of which
 * became younger by so many ms, is not ahead of it. */
void use_clock_set(struct partition *p, uint64_t now, uint64_t ms);
void use_clock_load(struct partition *p, uint64_t now, uint64_t older_by);
/* Notes a use without a lease; a current lease continues. */
void block_use(struct block *b, uint64_t use);

#define MARK_LEASE_BITS 17u
#define MARK_LEASE_UNIT 8u /* ms */
#define MARK_FREQ_BITS 4u
#define MARK_FREQ_MAX ((1u << MARK_FREQ_BITS) - 1)
#define MARK_ORDER_BITS 6u
#define MARK_LEASE_MAX \
	((1ull << MARK_LEASE_BITS) - 1) /* units: 17 minutes; above SKV_MAX_LEASE_MS */
#define USE_MS_MAX ((1ull << 37) - 1)   /* four years; recover.c begins anew at a half */
#define USE_ORDER_MAX ((1u << MARK_ORDER_BITS) - 1)

/* A use, ordered by time: what eviction sorts by and checkpoints store. */
static inline uint64_t use_make(uint64_t ms, uint64_t order)
{
	return (ms < USE_MS_MAX ? ms : USE_MS_MAX) << MARK_ORDER_BITS | (order & USE_ORDER_MAX);
}

static inline uint64_t use_ms(uint64_t use) { return use >> MARK_ORDER_BITS; }

static inline uint64_t use_younger(uint64_t use, uint64_t ms)
{
	return use_ms(use) > ms ? use_make(use_ms(use) - ms, use) : 0;
}

static inline uint64_t mark_use(uint64_t mark)
{
	return mark >> (MARK_LEASE_BITS + MARK_FREQ_BITS);
}

static inline uint32_t mark_freq(uint64_t mark) { return mark >> MARK_LEASE_BITS & MARK_FREQ_MAX; }

/* lease_end: in the milliseconds of uses; not after the use = none. */
static inline uint64_t mark_make(uint64_t use, uint32_t freq, uint64_t lease_end)
{
	uint64_t first = use_ms(use) / MARK_LEASE_UNIT,
		 last = (lease_end + MARK_LEASE_UNIT - 1) / MARK_LEASE_UNIT;
	uint64_t lease = lease_end <= use_ms(use)        ? 0
			 : last - first < MARK_LEASE_MAX ? last - first
							 : MARK_LEASE_MAX;

	return (use << MARK_FREQ_BITS | (freq < MARK_FREQ_MAX ? freq : MARK_FREQ_MAX))
		       << MARK_LEASE_BITS |
	       lease;
}

/* Returns the earliest use that a mark can hold beside a lease with this end: at most a quarter of
 * an hour before the end. */
static inline uint64_t mark_least_use(uint64_t lease_end)
{
	const uint64_t span = (MARK_LEASE_MAX - 1) * MARK_LEASE_UNIT;

	return lease_end > span ? use_make(lease_end - span, 0) : 0;
}

/* End of the lease, in the milliseconds of uses; 0 = none was given at that use. */
static inline uint64_t mark_lease_end(uint64_t mark)
{
	uint64_t lease = mark & MARK_LEASE_MAX;

	return lease ? (use_ms(mark_use(mark)) / MARK_LEASE_UNIT + lease) * MARK_LEASE_UNIT : 0;
}

static inline uint64_t mark_with_freq(uint64_t mark, uint32_t freq)
{
	return (mark & ~((uint64_t)MARK_FREQ_MAX << MARK_LEASE_BITS)) | (uint64_t)freq
										<< MARK_LEASE_BITS;
}

#define STORED_TAG_BITS 5u /* of the policy's tag, where a use is stored */

#endif
