/* policy.c - the list of policies. */
#include "policies.h"

#include <string.h>

static const struct skv_policy_ops *const all[] = {
	&skv_policy_reuse, &skv_policy_deferred, &skv_policy_selective, &skv_policy_lru,
	&skv_policy_s3fifo, &skv_policy_ttl, NULL,
};

static uint64_t mixed(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

uint64_t skv_policy_space(const char *tenant, const char *instance)
{
	return mixed(skv_hash128(tenant, strlen(tenant)).lo) ^
	       skv_hash128(instance, strlen(instance)).lo;
}

uint64_t skv_policy_hash(uint64_t space, struct skv_key key)
{
	return mixed(mixed(key.hi ^ space) ^ key.lo);
}

const struct skv_policy_ops *const *skv_policy_all(void) { return all; }

const char *skv_policy_names(void) { return "reuse, deferred, selective, lru, s3fifo, ttl"; }

const struct skv_policy_ops *skv_policy_find(const char *name)
{
	if (!*name)
		name = SKV_POLICY_DEFAULT;
	for (size_t i = 0; all[i]; i++)
		if (strcmp(all[i]->name, name) == 0)
			return all[i];
	return NULL;
}
