/*
 * route.c - finds the partition of an instance, a session, a group, a storage.
 *
 * The truth is in the partitions: each is searched for the object, under its lock for reading. For
 * instances a hint selects the first partition to search; a wrong hint costs a few more searches.
 */
#include "route.h"

#include <assert.h>
#include <string.h>

#include <skv/hash.h>

#include <lock/gate.h>
#include <lock/lock.h>
#include <model/device.h>
#include <model/find.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/volume.h>
#include <journal/registry_write.h>

struct skv_cluster *skv_cluster_part(struct skv_cluster *c, uint32_t number)
{
	assert(number < c->route->n);
	return &c->route->part[number];
}

struct skv_core *skv_cluster_core(const struct skv_cluster *c, uint32_t number)
{
	return route_core(c, number);
}

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

/* ---- where is it? ---------------------------------------------------------------------------- */

struct skv_cluster *route_missing(struct route *r)
{
	for (uint32_t i = 0; i < r->n; i++)
		if (one_state_get(r->core[i]) != SKV_CORE_READY)
			return &r->part[i];
	return &r->part[0];
}

static bool has(struct skv_core *one, const struct skv_target *t)
{
	switch (t->kind) {
	case SKV_TARGET_INSTANCE:
		return route_has_instance(one, t->tenant, t->name);
	case SKV_TARGET_GROUP:
		return route_has_group(one, t->name);
	default:
		assert(t->kind == SKV_TARGET_STORAGE);
		return route_has_storage(one, t->name, NULL);
	}
}

struct skv_cluster *route_here(struct route *r, const struct skv_target *t)
{
	const bool hinted = t->kind == SKV_TARGET_INSTANCE;
	_Atomic uint8_t *hint =
		hinted ? &r->hint[name_hash(t->tenant, t->name) % ROUTE_HINTS] : NULL;
	const uint32_t first = hint ? atomic_load_explicit(hint, memory_order_relaxed) : 0;

	if (t->kind == SKV_TARGET_FAMILY)
		return family_here(r, t->name);
	for (uint32_t i = 0; i < r->n; i++) {
		uint32_t at = (first + i) % r->n;

		if (!has(r->core[at], t))
			continue;
		if (hint && i)
			atomic_store_explicit(hint, (uint8_t)at, memory_order_relaxed);
		return &r->part[at];
	}
	return NULL;
}

struct skv_cluster *route_elsewhere(struct route *r, const struct skv_target *t, bool *unknown)
{
	char key[PLACE_KEY];

	if (t->kind == SKV_TARGET_INSTANCE)
		registry_instance_key(key, t->tenant, t->name);
	else if (t->kind == SKV_TARGET_GROUP)
		place_group_key(key, t->name);
	else if (t->kind == SKV_TARGET_FAMILY)
		place_family_key(key, t->name);
	else
		place_storage_key(key, t->name);
	return place_look(r, key, t->refused, unknown);
}

static struct skv_cluster *route_of(struct route *r, const struct skv_target *t)
{
	struct skv_cluster *found = r->n > 1 ? route_here(r, t) : &r->part[0];

	return found ? found : route_elsewhere(r, t, NULL);
}

struct skv_cluster *route_instance(struct route *r, const char *tenant, const char *id)
{
	return route_of(r, &(struct skv_target){ SKV_TARGET_INSTANCE, tenant, id, 0 });
}

struct skv_cluster *route_group(struct route *r, const char *name)
{
	return route_of(r, &(struct skv_target){ .kind = SKV_TARGET_GROUP, .name = name });
}

struct skv_cluster *route_storage(struct route *r, const char *name)
{
	return route_of(r, &(struct skv_target){ .kind = SKV_TARGET_STORAGE, .name = name });
}

struct skv_cluster *route_by_id(struct route *r, const char *id)
{
	const uint32_t at = skv_session_partition(id);

	return &r->part[at < r->n ? at : 0];
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
