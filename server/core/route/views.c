/*
 * views.c - what all partitions together look like: lists joined, storages with slab files added
 * up, counters summed.
 */
#include "route.h"

#include <string.h>

#include <skv/arena.h>

#include <lock/lock.h>
#include <model/partition.h>
#include <model/rules.h>
#include <model/tenant.h>

/* `v` after the *n of *all, in a new array. */
static int join(struct skv_arena *a, void **all, uint32_t *n, const void *v, uint32_t more,
		size_t size)
{
	char *both = skv_arena_alloc(a, ((size_t)*n + more + 1) * size);

	if (!both)
		return SKV_E_NOMEM;
	if (*n)
		memcpy(both, *all, *n * size);
	if (more)
		memcpy(both + *n * size, v, more * size);
	*all = both;
	*n += more;
	return SKV_OK;
}

/* ---- storages -------------------------------------------------------------------------------- */

static struct skv_storage_view *same_name(struct skv_storage_view *v, uint32_t n, const char *name)
{
	for (uint32_t i = 0; i < n; i++)
		if (strcmp(v[i].spec.name, name) == 0)
			return &v[i];
	return NULL;
}

static void add_up(struct skv_storage_view *to, const struct skv_storage_view *v)
{
	if (!*to->problem)
		to->problem = v->problem;
	to->healthy &= v->healthy;
	to->spec.capacity += v->spec.capacity;
	to->files += v->files;
	to->draining_files += v->draining_files;
	to->bad_files += v->bad_files;
	to->file_bytes += v->file_bytes;
	to->assigned_bytes += v->assigned_bytes;
	to->used_bytes += v->used_bytes;
	to->quarantined_bytes += v->quarantined_bytes;
	to->free_bytes += v->free_bytes;
}

static int join_storages(struct skv_arena *a, struct skv_storage_view **all, uint32_t *n,
			 const struct skv_storage_view *v, uint32_t more)
{
	int rc = SKV_OK;

	for (uint32_t i = 0; rc == SKV_OK && i < more; i++) {
		struct skv_storage_view *have = same_name(*all, *n, v[i].spec.name);
		void *list = *all;

		if (have) {
			add_up(have, &v[i]);
			continue;
		}
		rc = join(a, &list, n, &v[i], 1, sizeof *v);
		*all = list;
	}
	return rc;
}

/* Leases that are on their way from one to another are in none. */
static void tell_totals(struct route *r, struct skv_storage_view *v, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		uint64_t total = capacity_total(r, v[i].spec.name);

		if (total)
			v[i].spec.capacity = total;
	}
}

static int all_storages(struct skv_core *c, const char *name, struct skv_arena *a,
			struct skv_storage_view **out, uint32_t *n, struct skv_error *err)
{
	struct route *r = c->route;
	int rc = SKV_OK;

	*out = NULL;
	*n = 0;
	for (uint32_t i = 0; rc == SKV_OK && i < r->n; i++) {
		struct skv_storage_view *v;
		uint32_t more = 0;

		rc = one_storages(r->core[i], name, a, &v, &more, err);
		if (rc == SKV_E_NOT_FOUND && name) {
			skv_error_clear(err);
			rc = SKV_OK;
			continue;
		}
		if (rc == SKV_OK)
			rc = join_storages(a, out, n, v, more);
	}
	if (rc == SKV_OK)
		tell_totals(r, *out, *n);
	return rc;
}

int skv_core_storages(struct skv_core *c, const char *name, struct skv_arena *a,
		      struct skv_storage_view **out, uint32_t *n, struct skv_error *err)
{
	int rc;

	if (!c->route)
		return one_storages(c, name, a, out, n, err);
	rc = all_storages(c, name, a, out, n, err);
	return rc == SKV_OK && *n == 0 ? one_storages(c, name, a, out, n, err) : rc;
}

/* ---- groups and instances -------------------------------------------------------------------- */

int skv_core_groups(struct skv_core *c, const char *name, struct skv_arena *a,
		    struct skv_group_view **out, uint32_t *n, struct skv_error *err)
{
	struct route *r = c->route;
	void *all = NULL;
	int rc = SKV_OK;

	if (!r || name)
		return one_groups(name ? route_group(c, name, err) : c, name, a, out, n, err);
	*n = 0;
	for (uint32_t i = 0; rc == SKV_OK && i < r->n; i++) {
		uint32_t more = 0;

		rc = one_groups(r->core[i], NULL, a, out, &more, err);
		if (rc == SKV_OK)
			rc = join(a, &all, n, *out, more, sizeof **out);
	}
	*out = all;
	return rc;
}

/* ---- tenants --------------------------------------------------------------------------------- */

int skv_core_tenants_set(struct skv_core *c, const struct skv_tenant_view *v, uint32_t n)
{
	return rules_set(c->rules, v, n);
}

void skv_core_tenant_use(struct skv_core *c, const char *tenant, struct skv_tenant_use *out)
{
	const struct tenant_rule *r = rules_find(c->rules, tenant);

	*out = (struct skv_tenant_use){ .bytes = 0 };
	if (!r)
		return;
	out->bytes = rule_sum(r, TENANT_BYTES);
	out->blocks = rule_sum(r, TENANT_BLOCKS);
	out->sessions = rule_sum(r, TENANT_SESSIONS);
	out->pins = rule_sum(r, TENANT_PINS);
}

int skv_core_instances(struct skv_core *c, const char *tenant, const char *id, struct skv_arena *a,
		       struct skv_instance_view **out, uint32_t *n, struct skv_error *err)
{
	struct route *r = c->route;
	void *all = NULL;
	int rc = SKV_OK;

	if (!r || (tenant && id))
		return one_instances(r ? route_instance(c, tenant, id, err) : c, tenant, id, a, out,
				     n, err);
	*n = 0;
	for (uint32_t i = 0; rc == SKV_OK && i < r->n; i++) {
		uint32_t more = 0;

		rc = one_instances(r->core[i], tenant, id, a, out, &more, err);
		if (rc == SKV_E_NOT_FOUND && id) {
			skv_error_clear(err);
			rc = SKV_OK;
			more = 0;
		}
		if (rc == SKV_OK)
			rc = join(a, &all, n, *out, more, sizeof **out);
	}
	*out = all;
	return rc == SKV_OK && id && *n == 0 ? one_instances(c, tenant, id, a, out, n, err) : rc;
}

/* ---- statistics ------------------------------------------------------------------------------ */

static int add_stats(struct skv_arena *a, struct skv_stats *to, const struct skv_stats *s)
{
	void *groups = to->groups, *instances = to->instances;
	int rc = join_storages(a, &to->storages, &to->n_storages, s->storages, s->n_storages);

	if (rc == SKV_OK)
		rc = join(a, &groups, &to->n_groups, s->groups, s->n_groups, sizeof *s->groups);
	to->groups = groups;
	if (rc == SKV_OK)
		rc = join(a, &instances, &to->n_instances, s->instances, s->n_instances,
			  sizeof *s->instances);
	to->instances = instances;
	to->blocks += s->blocks;
	to->sessions += s->sessions;
	to->journal_bytes += s->journal_bytes;
	to->journal_limit += s->journal_limit;
	to->evicted_blocks += s->evicted_blocks;
	to->expired_sessions += s->expired_sessions;
	return rc;
}

int skv_core_stats(struct skv_core *c, struct skv_arena *a, struct skv_stats *out,
		   struct skv_error *err)
{
	static const char *const states[] = { "standby", "recovering", "ready", "stopped" };
	struct route *r = c->route;
	int rc = one_stats(c, a, out, err);

	for (uint32_t i = 1; rc == SKV_OK && r && i < r->n; i++) {
		struct skv_stats s;

		rc = one_stats(r->core[i], a, &s, err);
		if (rc == SKV_OK)
			rc = add_stats(a, out, &s);
	}
	if (rc == SKV_OK && r) {
		out->state = states[skv_core_state_get(c)];
		tell_totals(r, out->storages, out->n_storages);
	}
	return rc;
}

void skv_core_counters_get(const struct skv_core *c, struct skv_core_counters *out)
{
	const struct route *r = c->route;

	one_counters_get(c, out);
	for (uint32_t i = 1; r && i < r->n; i++) {
		struct skv_core_counters more;

		one_counters_get(r->core[i], &more);
#define ADD(name, help) out->name += more.name;
		SKV_CORE_COUNTERS(ADD)
#undef ADD
	}
}

uint32_t skv_core_partitions(const struct skv_core *c) { return c->route ? c->route->n : 1; }

void skv_core_partition_get(struct skv_core *c, uint32_t number, struct skv_partition_view *out)
{
	struct skv_core *one = c->route ? c->route->core[number] : c;
	char self[SKV_OWNER_NAME];
	uint64_t left;

	*out = (struct skv_partition_view){ .state = one_state_get(one) };
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
