/* policy.c - the list of policies. */
#include "policies.h"

#include <string.h>

static const struct skv_policy_ops *const all[] = {
	&skv_policy_reuse, &skv_policy_selective, &skv_policy_lru, &skv_policy_s3fifo,
	&skv_policy_ttl, NULL,
};

const struct skv_policy_ops *const *skv_policy_all(void) { return all; }

const char *skv_policy_names(void) { return "reuse, selective, lru, s3fifo, ttl"; }

const struct skv_policy_ops *skv_policy_find(const char *name)
{
	if (!*name)
		name = SKV_POLICY_DEFAULT;
	for (size_t i = 0; all[i]; i++)
		if (strcmp(all[i]->name, name) == 0)
			return all[i];
	return NULL;
}
