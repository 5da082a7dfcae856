/* textbook.h - policies of simulations: the product's, and published ones to compare with. */
#ifndef SKV_SIMULATE_TEXTBOOK_H
#define SKV_SIMULATE_TEXTBOOK_H

#include <skv/policy.h>

#define TEXTBOOK_POLICIES 4u
#define TEXTBOOK_NAMES "lru-plain, lfu, fifo, sieve"

/* Number i of those that no manager has; NULL at the end. Pure. */
const struct skv_policy_ops *textbook_policy(uint32_t i);
/* Returns one of these policies or of the product's. NULL: unknown policy. Pure. */
const struct skv_policy_ops *simulated_policy(const char *name);

#endif
