/*
 * words.c - rewords the core's errors in terms of KVCM's configuration.
 *
 * The core speaks of its own fields (max_blocks, draining, deadline_ms), which clients and
 * operators of KVCM do not have. No state.
 */
#include "op.h"

#include <string.h>

/* A group's bound, by the field that the core names. */
static const char *of_quota(const char *field)
{
	if (strcmp(field, "max_blocks") == 0)
		return "meta_indexer_config.max_key_count of the instance group is reached";
	if (strcmp(field, "quotas") == 0)
		return "quota.quota_config of the instance group is reached on each of its "
		       "storages, and nothing may be reclaimed there now";
	if (!*field)
		return "quota.capacity of the instance group is reached, and nothing of it may be "
		       "reclaimed now";
	return NULL; /* parts of groups are the native API's: its words */
}

static const char *of_write(int status, const char *field)
{
	switch (status) {
	case SKV_E_SESSION_EXPIRED:
		return "the write session is over: its write_timeout_seconds have passed";
	case SKV_E_NO_SPACE:
		return "the storages of the instance group have no room: what is there is being "
		       "written, or was named to readers a moment ago";
	case SKV_E_UNAVAILABLE:
		return "no storage of storage_candidates is available";
	case SKV_E_TOO_MANY:
		return "there are too many open write sessions, or they hold all that they may of "
		       "the instance group: finish some first";
	case SKV_E_QUOTA:
		return of_quota(field);
	default:
		return NULL;
	}
}

const char *kvcm_words(const struct kvcm_request *k, int status)
{
	const char *words = k->op->flags & KVCM_INSTANCE ? of_write(status, k->c->err.field) : NULL;

	return words ? words : k->c->err.message;
}
