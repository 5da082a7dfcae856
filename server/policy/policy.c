/* policy.c - the list of policies. */
#include "policies.h"

#include <string.h>

static const struct kvb_policy_ops *const all[] = {
	&kvb_policy_odds, &kvb_policy_lru, &kvb_policy_lru_plain, &kvb_policy_lfu, &kvb_policy_fifo,
	&kvb_policy_sieve, &kvb_policy_s3fifo, &kvb_policy_ttl, NULL,
};

const struct kvb_policy_ops *const *kvb_policy_all(void) { return all; }

const char *kvb_policy_names(void) { return "odds, lru, lru-plain, lfu, fifo, sieve, s3fifo, ttl"; }

const struct kvb_policy_ops *kvb_policy_find(const char *name)
{
	if (!*name)
		name = KVB_POLICY_DEFAULT;
	for (size_t i = 0; all[i]; i++)
		if (strcmp(all[i]->name, name) == 0)
			return all[i];
	return NULL;
}
