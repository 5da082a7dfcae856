/*
 * views.c - what all partitions together look like: lists joined, storages with slab files added
 * up, counters summed.
 */
#include "route.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <skv/arena.h>

#include <lock/gate.h>
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
	if (v->fs_free_bytes < to->fs_free_bytes) /* all lie in one file system */
		to->fs_free_bytes = v->fs_free_bytes;
	to->scrub_unchecked_files += v->scrub_unchecked_files;
	to->scrub_slots += v->scrub_slots;
	to->scrub_unsummed_slots += v->scrub_unsummed_slots;
	if (v->scrub_oldest_ms > to->scrub_oldest_ms)
		to->scrub_oldest_ms = v->scrub_oldest_ms;
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

/* What follows from the sums over its partitions. */
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

/* What follows from the sums over partitions, of which `r` is NULL if there is one. Leases of
 * capacity that are on their way from one to another are in none. */
static int tell_totals(struct route *r, struct skv_arena *a, struct skv_storage_view *v, uint32_t n)
{
	int rc = SKV_OK;

	for (uint32_t i = 0; rc == SKV_OK && i < n; i++) {
		uint64_t total = r ? capacity_total(r, v[i].spec.name) : 0;

		if (total)
			v[i].spec.capacity = total;
		rc = tell_room(a, &v[i]);
	}
	return rc;
}

static int all_storages(struct skv_core *c, const char *name, struct skv_arena *a,
			struct skv_storage_view **out, uint32_t *n, struct skv_error *err)
{
	struct route *r = c->route;
	int rc = route_everywhere(r, err);

	*out = NULL;
	*n = 0;
	for (uint32_t i = 0; rc == SKV_OK && i < r->n; i++) {
		struct skv_ask q = { .what = SKV_ASK_STORAGES, .name = name };
		struct skv_told t;

		rc = route_ask(c, r->core[i], &q, &t, a, err);
		if (rc == SKV_E_NOT_FOUND && name) {
			skv_error_clear(err);
			rc = SKV_OK;
			continue;
		}
		if (rc == SKV_OK)
			rc = join_storages(a, out, n, t.storages, t.n_storages);
	}
	return rc;
}

static int find_storages(struct skv_core *c, const char *name, struct skv_arena *a,
			 struct skv_storage_view **out, uint32_t *n, struct skv_error *err)
{
	struct skv_ask q = { .what = SKV_ASK_STORAGES, .name = name };
	struct skv_core *at = c;
	struct skv_told t;
	bool counted;
	int rc;

	if (!c->route)
		return one_storages(c, name, a, out, n, err);
	if (name)
		at = route_storage(c, name);
	if (!name || (route_has_storage(at, name, &counted) && !counted)) {
		rc = all_storages(c, name, a, out, n, err);
		return rc == SKV_OK && *n == 0 && name ? one_storages(c, name, a, out, n, err) : rc;
	}
	if (!route_asks(c->route, at))
		return one_storages(at, name, a, out, n, err);
	rc = route_ask(c, at, &q, &t, a, err);
	*out = t.storages;
	*n = t.n_storages;
	return rc;
}

int skv_core_storages(struct skv_core *c, const char *name, struct skv_arena *a,
		      struct skv_storage_view **out, uint32_t *n, struct skv_error *err)
{
	int rc = find_storages(c, name, a, out, n, err);

	return rc == SKV_OK ? tell_totals(c->route, a, *out, *n) : rc;
}

/* ---- groups and instances -------------------------------------------------------------------- */

int skv_core_groups(struct skv_core *c, const char *name, struct skv_arena *a,
		    struct skv_group_view **out, uint32_t *n, struct skv_error *err)
{
	struct skv_ask q = { .what = SKV_ASK_GROUPS, .name = name };
	struct skv_core *at = name ? route_group(c, name) : c;
	struct route *r = c->route;
	struct skv_told t = { .n_groups = 0 };
	void *all = NULL;
	int rc;

	if (!r || (name && !route_asks(r, at)))
		return one_groups(at, name, a, out, n, err);
	*n = 0;
	rc = name ? SKV_OK : route_everywhere(r, err);
	for (uint32_t i = 0; rc == SKV_OK && i < r->n; i++) {
		if (name && i != at->o.partition)
			continue;
		rc = route_ask(c, r->core[i], &q, &t, a, err);
		if (rc == SKV_OK)
			rc = join(a, &all, n, t.groups, t.n_groups, sizeof **out);
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

/* Of all tenants, in what is here. */
static int instances_here(struct route *r, struct skv_arena *a, struct skv_instance_view **out,
			  uint32_t *n, struct skv_error *err)
{
	void *all = NULL;
	bool here = false;
	int rc = SKV_OK;

	*n = 0;
	for (uint32_t i = 0; rc == SKV_OK && i < r->n; i++) {
		uint32_t more = 0;

		if (one_state_get(r->core[i]) == SKV_CORE_STANDBY)
			continue;
		here = true;
		rc = one_instances(r->core[i], NULL, NULL, a, out, &more, err);
		if (rc == SKV_OK)
			rc = join(a, &all, n, *out, more, sizeof **out);
	}
	*out = all;
	return here ? rc : core_gate(r->core[0], err);
}

int skv_core_instances(struct skv_core *c, const char *tenant, const char *id, struct skv_arena *a,
		       struct skv_instance_view **out, uint32_t *n, struct skv_error *err)
{
	struct skv_ask q = { .what = SKV_ASK_INSTANCES, .tenant = tenant, .name = id };
	struct skv_core *at = c;
	struct route *r = c->route;
	struct skv_told t = { .n_instances = 0 };
	void *all = NULL;
	int rc;

	assert(tenant || !id);
	if (r && !tenant)
		return instances_here(r, a, out, n, err);
	if (r && id)
		at = route_instance(c, tenant, id);
	if (!r || (id && !route_asks(r, at)))
		return one_instances(at, tenant, id, a, out, n, err);
	*n = 0;
	rc = id ? SKV_OK : route_everywhere(r, err);
	for (uint32_t i = 0; rc == SKV_OK && i < r->n; i++) {
		if (id && i != at->o.partition)
			continue;
		rc = route_ask(c, r->core[i], &q, &t, a, err);
		if (rc == SKV_OK)
			rc = join(a, &all, n, t.instances, t.n_instances, sizeof **out);
	}
	*out = all;
	return rc;
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
	if (rc == SKV_OK && r)
		out->state = states[skv_core_state_get(c)];
	return rc == SKV_OK ? tell_totals(r, a, out->storages, out->n_storages) : rc;
}

/* Those of each partition, wherever it is. */
static int add_asked(struct route *r, uint32_t number, struct skv_arena *a, struct skv_stats *to,
		     struct skv_error *err)
{
	struct skv_ask q = { .what = SKV_ASK_STATS };
	struct skv_told t;
	int rc = route_ask(r->core[0], r->core[number], &q, &t, a, err);

	if (rc != SKV_OK)
		return rc;
	return add_stats(a, to,
			 &(struct skv_stats){
				 .storages = t.storages, .n_storages = t.n_storages,
				 .groups = t.groups, .n_groups = t.n_groups,
				 .instances = t.instances, .n_instances = t.n_instances,
				 .blocks = t.blocks, .sessions = t.sessions,
				 .journal_bytes = t.journal_bytes, .journal_limit = t.journal_limit,
				 .evicted_blocks = t.evicted_blocks,
				 .expired_sessions = t.expired_sessions });
}

static uint32_t count_in(const struct route *r, enum skv_core_state state)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < r->n; i++)
		n += one_state_get(r->core[i]) == state;
	return n;
}

int skv_core_stats_all(struct skv_core *c, struct skv_arena *a, struct skv_stats *out,
		       struct skv_error *err)
{
	struct route *r = c->route;
	struct skv_stats own;
	int rc;

	if (!r || count_in(r, SKV_CORE_STANDBY) == 0 || count_in(r, SKV_CORE_READY) == 0)
		return skv_core_stats(c, a, out, err);
	rc = route_everywhere(r, err);
	if (rc == SKV_OK)
		rc = one_stats(c, a, &own, err);
	if (rc != SKV_OK)
		return rc;
	*out = (struct skv_stats){ .state = "ready", .uptime_ms = own.uptime_ms };
	memcpy(out->version, own.version, sizeof out->version);
	memcpy(out->owner, own.owner, sizeof out->owner);
	for (uint32_t i = 0; rc == SKV_OK && i < r->n; i++)
		rc = add_asked(r, i, a, out, err);
	return rc == SKV_OK ? tell_totals(r, a, out->storages, out->n_storages) : rc;
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
