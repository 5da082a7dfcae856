/* policies.h - the policies that policy.c lists, each in a file of its own. */
#ifndef KVB_POLICIES_H
#define KVB_POLICIES_H

#include <kvb/policy.h>

extern const struct kvb_policy_ops kvb_policy_lru;
extern const struct kvb_policy_ops kvb_policy_lru_plain;

#endif
