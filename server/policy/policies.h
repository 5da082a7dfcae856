/* policies.h - declares the policies listed by policy.c. */
#ifndef SKV_POLICIES_H
#define SKV_POLICIES_H

#include <skv/policy.h>

extern const struct skv_policy_ops skv_policy_reuse;
extern const struct skv_policy_ops skv_policy_deferred;
extern const struct skv_policy_ops skv_policy_selective;
extern const struct skv_policy_ops skv_policy_lru;
extern const struct skv_policy_ops skv_policy_s3fifo;
extern const struct skv_policy_ops skv_policy_ttl;

#endif
