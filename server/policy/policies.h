/* policies.h - the policies that policy.c lists. */
#ifndef KVB_POLICIES_H
#define KVB_POLICIES_H

#include <kvb/policy.h>

extern const struct kvb_policy_ops kvb_policy_odds;
extern const struct kvb_policy_ops kvb_policy_lru;
extern const struct kvb_policy_ops kvb_policy_lru_plain;
extern const struct kvb_policy_ops kvb_policy_lfu;
extern const struct kvb_policy_ops kvb_policy_fifo;
extern const struct kvb_policy_ops kvb_policy_sieve;
extern const struct kvb_policy_ops kvb_policy_s3fifo;
extern const struct kvb_policy_ops kvb_policy_ttl;

/* Blocks in all queues. */
static inline uint64_t policy_blocks(const uint64_t *queued)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < KVB_POLICY_QUEUES; i++)
		n += queued[i];
	return n;
}

#endif
