/*
 * owner.c - the header Slabkv-Owner of an answer. See skv/owner.h. No state, no locks.
 *
 * Only a valid answer (skv_door_check) names this manager as the owner.
 */
#include <skv/owner.h>

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <skv/request.h>

static bool is_direct(struct skv_request *c)
{
	const struct skv_origin *origin = c->route ? c->forwarding.origin : NULL;
	const char *wish = origin ? origin->header(c, SKV_ROUTE) : NULL;

	return wish && strcmp(wish, "direct") == 0;
}

static bool tell_self(struct skv_request *c, struct skv_owner_note *n)
{
	const enum skv_target_kind kind = c->target.kind;

	if (kind == SKV_TARGET_NONE || kind == SKV_TARGET_GROUP || kind == SKV_TARGET_STORAGE)
		return false;
	if (!c->door.alone) /* an instance was made meanwhile, say */
		skv_find(c->s->cluster, &c->target, &c->door);
	if (c->door.where != SKV_HERE)
		return false;
	n->partition = c->door.partition;
	n->epoch = skv_cluster_partition_epoch(c->s->cluster, n->partition);
	return n->epoch > 0;
}

/* Of a call for a partition that is not known, or all, the first one's owner knows more. */
static bool tell_other(struct skv_request *c, struct skv_owner_note *n)
{
	char url[SKV_URL_MAX];

	_Static_assert(SKV_NOTE_URL == SKV_URL_MAX, "room for any that is published");
	n->partition = skv_request_partition(c);
	if (skv_service_owner_url(c->s, n->partition, url) != SKV_OK)
		return false;
	memcpy(n->url, url, sizeof n->url);
	return true;
}

bool skv_owner_tell(struct skv_request *c, char out[SKV_NOTE_MAX])
{
	struct skv_owner_note n = { .epoch = 0 };
	bool known = false;

	assert(c->status != SKV_PENDING);
	if (!is_direct(c))
		return false;
	if (c->status == SKV_OK && c->route->flags & ROUTE_OWNED)
		known = tell_self(c, &n);
	else if (c->status == SKV_E_NOT_OWNER)
		known = tell_other(c, &n);
	if (known)
		skv_owner_note_write(&n, out);
	return known;
}
