/*
 * views.c - an object in any partition, storages with slab files added up; tenants, counters.
 */
#include "at.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <skv/arena.h>
#include <skv/clock.h>

#include <lock/gate.h>
#include <lock/lock.h>
#include <model/find.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/rules.h>
#include <model/tenant.h>

#include "route.h"

/* ---- storages -------------------------------------------------------------------------------- */

void route_add_storage(struct skv_storage_view *to, const struct skv_storage_view *v)
{
	if (!*to->problem)
		to->problem = v->problem;
	to->healthy &= v->healthy;
	to->spec.capacity += v->spec.capacity;
	to->groups += v->groups;
	to->files += v->files;
	to->draining_files += v->draining_files;
	to->bad_files += v->bad_files;
	to->file_bytes += v->file_bytes;
	to->assigned_bytes += v->assigned_bytes;
	to->used_bytes += v->used_bytes;
	to->quarantined_bytes += v->quarantined_bytes;
	to->free_bytes += v->free_bytes;
	if (v->fs_free_bytes < to->fs_free_bytes) /* all lie in one file system */
		to->fs_free_bytes = v->fs_free_bytes;
	to->scrub_unchecked_files += v->scrub_unchecked_files;
	to->scrub_slots += v->scrub_slots;
	to->scrub_unsummed_slots += v->scrub_unsummed_slots;
	if (v->scrub_oldest_ms > to->scrub_oldest_ms)
		to->scrub_oldest_ms = v->scrub_oldest_ms;
}

static const char *small_disk(struct skv_arena *a, uint64_t room, uint64_t capacity)
{
	char text[SKV_MESSAGE_MAX];
	int n = snprintf(text, sizeof text,
			 "its file system or memory node has room for %llu of the capacity's %llu "
			 "bytes: make space there, or lower the capacity",
			 (unsigned long long)room, (unsigned long long)capacity);

	assert(n > 0 && (size_t)n < sizeof text);
	return skv_arena_strndup(a, text, (size_t)n);
}

/* Computes the values that follow from the sums over the storage's partitions. */
static int tell_room(struct skv_arena *a, struct skv_storage_view *v)
{
	const uint64_t capacity = v->spec.capacity, fs_free = v->fs_free_bytes;
	const uint64_t room = capacity > v->file_bytes ? capacity - v->file_bytes : 0;

	v->available_bytes = room > fs_free ? v->file_bytes + fs_free : capacity;
	if (v->available_bytes < v->assigned_bytes + v->free_bytes)
		v->free_bytes = v->available_bytes > v->assigned_bytes
					? v->available_bytes - v->assigned_bytes
					: 0;
	if (v->available_bytes < capacity && !*v->problem)
		v->problem = small_disk(a, v->available_bytes, capacity);
	return v->problem ? SKV_OK : SKV_E_NOMEM;
}

/* Computes the values that follow from the sums over partitions. Values of one of several managers
 * are left to the manager that adds up. Leases of capacity that are in transit are in none of the
 * sums. */
int route_tell_totals(struct skv_cluster *c, struct skv_arena *a, struct skv_storage_view *v,
		      uint32_t n)
{
	const bool one_of_several = c->core && c->route->n > 1;
	int rc = SKV_OK;

	for (uint32_t i = 0; rc == SKV_OK && !one_of_several && i < n; i++) {
		uint64_t total = capacity_total(c->route, v[i].spec.name);

		if (total)
			v[i].spec.capacity = total;
		rc = tell_room(a, &v[i]);
	}
	return rc;
}

/* Adds up the storage's views of all partitions. */
static int sum_storage(struct route *r, const char *name, struct skv_arena *a,
		       struct skv_storage_view **out, struct skv_error *err)
{
	int rc = route_everywhere(r, err);

	*out = NULL;
	for (uint32_t i = 0; rc == SKV_OK && i < r->n; i++) {
		struct skv_storage_view *v;

		rc = at_storage(&r->part[i], name, a, &v, err);
		if (rc == SKV_E_NOT_FOUND) {
			skv_error_clear(err);
			rc = SKV_OK;
		} else if (rc == SKV_OK && *out) {
			route_add_storage(*out, v);
		} else if (rc == SKV_OK) {
			*out = v;
		}
	}
	return rc == SKV_OK && !*out ? one_storage(r->core[0], name, a, out, err) : rc;
}

int skv_cluster_storage(struct skv_cluster *c, const char *name, struct skv_arena *a,
			struct skv_storage_view **out, struct skv_error *err)
{
	struct skv_cluster *at = c->core ? c : route_storage(c->route, name);
	bool counted;
	int rc;

	if (c->core)
		rc = one_storage(c->core, name, a, out, err);
	else if (!route_has_storage(at->core, name, &counted) || counted)
		rc = at_storage(at, name, a, out, err);
	else
		rc = sum_storage(c->route, name, a, out, err);
	return rc == SKV_OK ? route_tell_totals(c, a, *out, 1) : rc;
}

/* ---- groups and instances -------------------------------------------------------------------- */

int skv_cluster_group(struct skv_cluster *c, const char *name, struct skv_arena *a,
		      struct skv_group_view **out, struct skv_error *err)
{
	return c->core ? one_group(c->core, name, a, out, err)
		       : at_group(route_group(c->route, name), name, a, out, err);
}

/* ---- is it there? ---------------------------------------------------------------------------- */

/* `group` NULL: any. */
static bool is_in(struct skv_core *one, const char *tenant, const char *id, const char *group)
{
	const struct instance *inst;
	bool is;

	skv_rwlock_read(&one->lock);
	inst = one->partition ? instance_find(one->partition, tenant, id) : NULL;
	is = inst && !inst->deleting && (!group || strcmp(inst->spec.group, group) == 0);
	skv_rwlock_read_unlock(&one->lock);
	return is;
}

/* Looks up objects that are not here by a view: another manager may have them, or their place is
 * unknown. */
int skv_cluster_has_instance(struct skv_cluster *c, const char *tenant, const char *id,
			     const char *group)
{
	struct skv_cluster *at = c->core ? c : route_instance(c->route, tenant, id);
	struct skv_instance_view *v;
	struct skv_error ignored;
	struct skv_arena a;
	int rc;

	if (is_in(at->core, tenant, id, group))
		return SKV_OK;
	skv_arena_init(&a);
	rc = skv_cluster_instance(c, tenant, id, &a, &v, &ignored);
	if (rc == SKV_OK && group && strcmp(v->spec.group, group) != 0)
		rc = SKV_E_NOT_FOUND;
	skv_arena_destroy(&a);
	return rc;
}

int skv_cluster_has_group(struct skv_cluster *c, const char *name)
{
	struct skv_cluster *at = c->core ? c : route_group(c->route, name);
	struct skv_group_view *v;
	struct skv_error ignored;
	struct skv_arena a;
	int rc;

	if (route_has_group(at->core, name))
		return SKV_OK;
	skv_arena_init(&a);
	rc = skv_cluster_group(c, name, &a, &v, &ignored);
	skv_arena_destroy(&a);
	return rc;
}

int skv_cluster_has_storage(struct skv_cluster *c, const char *name)
{
	struct skv_cluster *at = c->core ? c : route_storage(c->route, name);
	struct skv_storage_view *v;
	struct skv_error ignored;
	struct skv_arena a;
	int rc;

	if (route_has_storage(at->core, name, NULL))
		return SKV_OK;
	skv_arena_init(&a);
	rc = skv_cluster_storage(c, name, &a, &v, &ignored);
	skv_arena_destroy(&a);
	return rc;
}

/* ---- tenants --------------------------------------------------------------------------------- */

int skv_cluster_tenants_set(struct skv_cluster *c, const struct skv_tenant_view *v, uint32_t n,
			    const struct skv_tenant_spec *others)
{
	return rules_set(c->route->rules, v, n, others);
}

int skv_cluster_tenant_room(struct skv_cluster *c, const char *tenant, bool space,
			    struct skv_error *err)
{
	return rules_room(c->route->rules, tenant, space, err);
}

int skv_cluster_tenant_check(struct skv_cluster *c, const char *tenant, struct skv_error *err)
{
	return rules_check(c->route->core[0], tenant, err);
}

unsigned skv_cluster_tenant_wait(struct skv_cluster *c, const char *tenant)
{
	return (unsigned)((rules_owed(c->route->rules, tenant, skv_now_us()) + 999999) / 1000000);
}

void skv_cluster_tenant_use(struct skv_cluster *c, const char *tenant, struct skv_tenant_use *out)
{
	const struct tenant_rule *r = rules_find(c->route->rules, tenant);

	*out = (struct skv_tenant_use){ .bytes = 0 };
	if (!r)
		return;
	out->bytes = rule_sum(r, TENANT_BYTES);
	out->blocks = rule_sum(r, TENANT_BLOCKS);
	out->sessions = rule_sum(r, TENANT_SESSIONS);
	out->pins = rule_sum(r, TENANT_PINS);
	out->instances = rule_sum(r, TENANT_INSTANCES);
	out->spaces = rule_sum(r, TENANT_SPACES);
}

int skv_cluster_instance(struct skv_cluster *c, const char *tenant, const char *id,
			 struct skv_arena *a, struct skv_instance_view **out,
			 struct skv_error *err)
{
	return c->core ? one_instance(c->core, tenant, id, a, out, err)
		       : at_instance(route_instance(c->route, tenant, id), tenant, id, a, out,
				     err);
}

/* ---- counters -------------------------------------------------------------------------------- */

void skv_cluster_counters_get(const struct skv_cluster *c, struct skv_core_counters *out)
{
	const struct route *r = c->route;

	one_counters_get(r->core[0], out);
	for (uint32_t i = 1; i < r->n; i++) {
		struct skv_core_counters more;

		one_counters_get(r->core[i], &more);
#define ADD(name, help) out->name += more.name;
		SKV_CORE_COUNTERS(ADD)
#undef ADD
	}
}

uint32_t skv_cluster_partitions(const struct skv_cluster *c) { return c->route->n; }

void skv_cluster_partition_get(struct skv_cluster *c, uint32_t number,
			       struct skv_partition_view *out)
{
	struct skv_core *one = route_core(c, number);
	char self[SKV_OWNER_NAME];
	uint64_t left;

	*out = (struct skv_partition_view){ .state = one_state_get(one) };
	out->takes = one_takes(one);
	out->loaded = atomic_load(&one->standby_loaded);
	out->seq = atomic_load(&one->standby_seq);
	out->behind = atomic_load(&one->standby_behind);
	one_leader(one, self, out->owner, &left);
	skv_rwlock_read(&one->lock);
	if (one->partition) {
		out->blocks = one->partition->blocks;
		out->sessions = one->partition->open_sessions;
		out->journal_bytes = one->partition->journal_bytes;
		out->groups = (uint32_t)one->partition->n_group;
		out->seq = one->partition->seq;
		out->epoch = one->partition->fence;
		out->behind = 0;
		out->loaded = true;
	}
	skv_rwlock_read_unlock(&one->lock);
}
