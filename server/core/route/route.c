/*
 * route.c - which partition has an instance, a session, a group, a storage.
 *
 * The truth is in the partitions: each is asked whether it has it, under its lock for reading. For
 * instances a hint tells whom to ask first; a wrong one costs a few questions.
 */
#include "route.h"

#include <string.h>

#include <skv/hash.h>

#include <lock/gate.h>
#include <lock/lock.h>
#include <model/device.h>
#include <model/find.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/session.h>
#include <model/volume.h>
#include <journal/registry_write.h>

/* ---- does it have it? ------------------------------------------------------------------------ */

bool route_has_instance(struct skv_core *one, const char *tenant, const char *id)
{
	bool has;

	skv_rwlock_read(&one->lock);
	has = one->partition && instance_find(one->partition, tenant, id) != NULL;
	skv_rwlock_read_unlock(&one->lock);
	return has;
}

bool route_has_group(struct skv_core *one, const char *name)
{
	bool has;

	skv_rwlock_read(&one->lock);
	has = one->partition && group_find(one->partition, name) != NULL;
	skv_rwlock_read_unlock(&one->lock);
	return has;
}

bool route_has_storage(struct skv_core *one, const char *name, bool *counted)
{
	int at;

	skv_rwlock_read(&one->lock);
	at = one->partition ? volume_find(one->partition, name) : -1;
	if (counted)
		*counted = at >= 0 && one->partition->volume[at].dev->ops->counted;
	skv_rwlock_read_unlock(&one->lock);
	return at >= 0;
}

static bool has_session(struct skv_core *one, struct skv_key id)
{
	bool has;

	skv_rwlock_read(&one->lock);
	has = one->partition && session_find(one->partition, id) != NULL;
	skv_rwlock_read_unlock(&one->lock);
	return has;
}

/* ---- where is it? ---------------------------------------------------------------------------- */

struct skv_core *route_missing(const struct route *r)
{
	for (uint32_t i = 0; i < r->n; i++)
		if (one_state_get(r->core[i]) != SKV_CORE_READY)
			return r->core[i];
	return r->core[0];
}

/* The one that has it; NULL: none that is here. */
static struct skv_core *find_instance(struct route *r, const char *tenant, const char *id)
{
	_Atomic uint8_t *hint = &r->hint[name_hash(tenant, id) % ROUTE_HINTS];
	const uint32_t first = atomic_load_explicit(hint, memory_order_relaxed);

	for (uint32_t i = 0; i < r->n; i++) {
		uint32_t at = (first + i) % r->n;

		if (!route_has_instance(r->core[at], tenant, id))
			continue;
		if (i)
			atomic_store_explicit(hint, (uint8_t)at, memory_order_relaxed);
		return r->core[at];
	}
	return NULL;
}

struct skv_core *route_instance(struct skv_core *c, const char *tenant, const char *id,
				struct skv_error *err)
{
	struct route *r = c->route;
	struct skv_core *found = r ? find_instance(r, tenant, id) : c;
	char key[PLACE_KEY];

	if (found)
		return found;
	registry_instance_key(key, tenant, id);
	return place_look(r, key, err);
}

uint32_t skv_core_instance_partition(struct skv_core *c, const char *tenant, const char *id)
{
	struct skv_core *found = c->route ? find_instance(c->route, tenant, id) : NULL;

	if (!c->route && route_has_instance(c, tenant, id))
		found = c;
	return found ? found->o.partition : UINT32_MAX;
}

/* Ids from before there were several partitions name any, and are in the first. */
struct skv_core *route_session(struct skv_core *c, const char *id)
{
	struct route *r = c->route;
	struct skv_key key;
	uint32_t first;

	if (!r)
		return c;
	first = skv_session_partition(id);
	if (first == UINT32_MAX || !session_id_parse(id, &key))
		return c;
	for (uint32_t i = 0; i < r->n; i++)
		if (has_session(r->core[(first + i) % r->n], key))
			return r->core[(first + i) % r->n];
	if (first >= r->n)
		first = 0;
	for (uint32_t i = 0; i < r->n && one_state_get(r->core[first]) == SKV_CORE_READY; i++)
		if (one_state_get(r->core[i]) == SKV_CORE_RECOVERING)
			return r->core[i];
	return r->core[first];
}

struct skv_core *route_group(struct skv_core *c, const char *name, struct skv_error *err)
{
	struct route *r = c->route;
	char key[PLACE_KEY];

	for (uint32_t i = 0; r && i < r->n; i++)
		if (route_has_group(r->core[i], name))
			return r->core[i];
	place_group_key(key, name);
	return r ? place_look(r, key, err) : c;
}

struct skv_core *route_storage(struct skv_core *c, const char *name, struct skv_error *err)
{
	struct route *r = c->route;
	char key[PLACE_KEY];

	for (uint32_t i = 0; r && i < r->n; i++)
		if (route_has_storage(r->core[i], name, NULL))
			return r->core[i];
	place_storage_key(key, name);
	return r ? place_look(r, key, err) : c;
}

int route_all(const struct route *r, struct skv_error *err)
{
	int rc = SKV_OK;

	for (uint32_t i = 0; rc == SKV_OK && i < r->n; i++)
		rc = core_gate(r->core[i], err);
	return rc;
}

/* ---- turns ----------------------------------------------------------------------------------- */

bool route_turn_try(struct route *r)
{
	bool got;

	skv_mutex_lock(&r->lock);
	got = !r->busy;
	r->busy = true;
	skv_mutex_unlock(&r->lock);
	return got;
}

void route_turn_take(struct route *r)
{
	skv_mutex_lock(&r->lock);
	while (r->busy)
		skv_cond_wait(&r->wake, &r->lock);
	r->busy = true;
	skv_mutex_unlock(&r->lock);
}

void route_turn_leave(struct route *r)
{
	skv_mutex_lock(&r->lock);
	r->busy = false;
	skv_cond_broadcast(&r->wake);
	skv_mutex_unlock(&r->lock);
}
