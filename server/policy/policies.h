/* policies.h - the policies that policy.c lists. */
#ifndef SKV_POLICIES_H
#define SKV_POLICIES_H

#include <skv/policy.h>

extern const struct skv_policy_ops skv_policy_odds;
extern const struct skv_policy_ops skv_policy_lru;
extern const struct skv_policy_ops skv_policy_lru_plain;
extern const struct skv_policy_ops skv_policy_lfu;
extern const struct skv_policy_ops skv_policy_fifo;
extern const struct skv_policy_ops skv_policy_sieve;
extern const struct skv_policy_ops skv_policy_s3fifo;
extern const struct skv_policy_ops skv_policy_ttl;

/* Blocks in all queues. */
static inline uint64_t policy_blocks(const uint64_t *queued)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < SKV_POLICY_QUEUES; i++)
		n += queued[i];
	return n;
}

#endif
