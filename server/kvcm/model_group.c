/*
 * model_group.c - KVCM's InstanceGroup as a group of the core.
 *
 * A strategy (CPS_*) selects the kinds of storages that are used, or used first: it becomes the
 * order of the group's storages, which is recomputed when a storage is added (kvcm_groups_refit),
 * because candidates may be named before they exist. No state. kvcm_groups_refit blocks, the rest
 * does not.
 */
#include "model_internal.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <skv/core.h>
#include <skv/kvcm.h>
#include <skv/lock.h>
#include <skv/log.h>

typedef KvcmAdmin__InstanceGroup group;
typedef KvcmAdmin__CacheReclaimStrategy reclaim;

#define DEFAULT_QUOTA_GROUP "default_quota_group"
#define DAY_MS 86400000ull

static int unsupported(const char *field, const char *what, struct skv_error *err)
{
	return skv_fail(err, SKV_E_UNSUPPORTED, field, "%s: this server has no %s", field, what);
}

static int invalid(const char *field, const char *what, struct skv_error *err)
{
	return skv_fail(err, SKV_E_INVALID, field, "%s: %s", field, what);
}

const char *kvcm_group_missing(const group *m)
{
	const KvcmAdmin__CacheConfig *c = m->cache_config;

	if (!*m->name)
		return "name";
	if (m->n_storage_candidates == 0)
		return "storage_candidates";
	if (!*m->global_quota_group_name)
		return "global_quota_group_name";
	if (!c)
		return "cache_config";
	if (!c->reclaim_strategy)
		return "reclaim_strategy";
	if (!*c->reclaim_strategy->storage_unique_name)
		return "storage_unique_name";
	if (c->data_storage_strategy == KVCM_ADMIN__CACHE_PREFER_STRATEGY__CPS_UNSPECIFIED)
		return "data_storage_strategy";
	return NULL;
}

/* ---- unsupported features -------------------------------------------------------------------- */

static int check_index(const KvcmAdmin__MetaIndexerConfig *x, struct skv_error *err)
{
	/* KVCM's own places for an index; ours is always in memory and in the store. */
	static const char *const known[] = { "", "local", "redis", "async_redis", "dummy" };
	const KvcmAdmin__MetaStorageBackendConfig *b = x ? x->meta_storage_backend_config : NULL;
	const char *type = b ? b->storage_type : "";
	size_t i = 0;

	if (x && x->max_key_count < 0)
		return invalid("meta_indexer_config.max_key_count", "not negative", err);
	while (i < sizeof known / sizeof known[0] && strcmp(type, known[i]) != 0)
		i++;
	if (i == sizeof known / sizeof known[0])
		return unsupported("meta_indexer_config.meta_storage_backend_config.storage_type",
				   "index of this type: its own takes the place of 'local', "
				   "'redis', 'async_redis' and 'dummy'", err);
	if (i > 1)
		skv_log(SKV_LOG_WARN, "kvcm",
			"an index of type '%s' was asked for: this server's own takes its place, "
			"and nothing is kept elsewhere", type);
	return SKV_OK;
}

static int check_reclaim(const reclaim *r, struct skv_error *err)
{
	if ((int)r->reclaim_policy < 0 ||
	    r->reclaim_policy > KVCM_ADMIN__RECLAIM_POLICY__POLICY_TTL)
		return invalid("reclaim_strategy.reclaim_policy", "no such policy", err);
	if (r->reclaim_policy == KVCM_ADMIN__RECLAIM_POLICY__POLICY_TTL &&
	    r->trigger_period_seconds == 0)
		return invalid("reclaim_strategy.trigger_period_seconds",
			       "POLICY_TTL needs the seconds after which an unused block goes",
			       err);
	if (r->trigger_period_seconds < 0)
		return invalid("reclaim_strategy.trigger_period_seconds", "not negative", err);
	if (r->reclaim_step_size < 0)
		return invalid("reclaim_strategy.reclaim_step_size", "not negative", err);
	if (r->reclaim_step_percentage < 0 || r->reclaim_step_percentage > 100)
		return invalid("reclaim_strategy.reclaim_step_percentage", "0 to 100", err);
	if (r->delay_before_delete_ms < 0 || r->delay_before_delete_ms > (int32_t)SKV_MAX_LEASE_MS)
		return invalid("reclaim_strategy.delay_before_delete_ms", "0 to 600000", err);
	/* The oneof's number is the field's; 0 = not given. */
	if (r->instance_reclaim_budget_policy_presence_case != 0 &&
	    r->instance_reclaim_budget_policy !=
		    KVCM_ADMIN__INSTANCE_RECLAIM_BUDGET_POLICY__GROUP_LRU)
		return unsupported("reclaim_strategy.instance_reclaim_budget_policy",
				   "policy but GROUP_LRU", err);
	if (r->trigger_strategy && r->trigger_strategy->used_size < 0)
		return invalid("reclaim_strategy.trigger_strategy.used_size", "not negative", err);
	if (r->trigger_strategy && !(r->trigger_strategy->used_percentage >= 0))
		return invalid("reclaim_strategy.trigger_strategy.used_percentage",
			       "a number, not negative", err);
	return SKV_OK;
}

static int check_strategy(KvcmAdmin__CachePreferStrategy s, struct skv_error *err)
{
	switch (s) {
	case KVCM_ADMIN__CACHE_PREFER_STRATEGY__CPS_ALWAYS_3FS:
	case KVCM_ADMIN__CACHE_PREFER_STRATEGY__CPS_PREFER_3FS:
	/* Prefers what no storage here can be: the first candidate then, as without a
	 * preference. */
	case KVCM_ADMIN__CACHE_PREFER_STRATEGY__CPS_PREFER_MOONCAKE:
	case KVCM_ADMIN__CACHE_PREFER_STRATEGY__CPS_PREFER_TAIR_MEMPOOL:
	case KVCM_ADMIN__CACHE_PREFER_STRATEGY__CPS_PREFER_VCNS_3FS:
	case KVCM_ADMIN__CACHE_PREFER_STRATEGY__CPS_PREFER_TAIR_MEMPOOL_SSD:
		return SKV_OK;
	case KVCM_ADMIN__CACHE_PREFER_STRATEGY__CPS_ALWAYS_MOONCAKE:
	case KVCM_ADMIN__CACHE_PREFER_STRATEGY__CPS_ALWAYS_TAIR_MEMPOOL:
	case KVCM_ADMIN__CACHE_PREFER_STRATEGY__CPS_ALWAYS_VCNS_3FS:
	case KVCM_ADMIN__CACHE_PREFER_STRATEGY__CPS_ALWAYS_TAIR_MEMPOOL_SSD:
		return unsupported("cache_config.data_storage_strategy", "storage of that kind",
				   err);
	default:
		return invalid("cache_config.data_storage_strategy", "no such strategy", err);
	}
}

static int check(const group *m, struct skv_error *err)
{
	const KvcmAdmin__CacheConfig *c = m->cache_config;
	int rc = kvcm_model_name(m->name, "name", err);

	for (size_t i = 0; rc == SKV_OK && i < m->n_storage_candidates; i++)
		rc = kvcm_model_name(m->storage_candidates[i], "storage_candidates", err);
	if (rc != SKV_OK)
		return rc;
	if (m->n_storage_candidates == 0)
		return invalid("storage_candidates", "at least one is required", err);
	if (!c)
		return invalid("cache_config", "it is required", err);
	if (m->max_instance_count < 0 || m->max_instance_count > UINT32_MAX)
		return invalid("max_instance_count", "0 (no bound) to 4294967295", err);
	if (m->version < 0)
		return invalid("version", "not negative", err);
	if (m->n_event_report_storage_candidates > 0)
		return unsupported("event_report_storage_candidates", "storages that report events",
				   err);
	if (*m->affinity_strategy_json)
		return unsupported("affinity_strategy_json", "affinity", err);
	if (c->migration_config && c->migration_config->n_strategies > 0)
		return unsupported("cache_config.migration_config", "migration between storages",
				   err);
	rc = check_strategy(c->data_storage_strategy, err);
	if (rc == SKV_OK && c->reclaim_strategy)
		rc = check_reclaim(c->reclaim_strategy, err);
	return rc == SKV_OK ? check_index(c->meta_indexer_config, err) : rc;
}

/* ---- order of storages ----------------------------------------------------------------------- */

static bool is_3fs(const char *name, const struct skv_storage_view *storages, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (strcmp(storages[i].spec.name, name) == 0)
			return strcmp(storages[i].spec.type, "hf3fs") == 0;
	return false;
}

static bool is_named(const char *const *names, uint32_t n, const char *name)
{
	for (uint32_t i = 0; i < n; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

static int order_storages(const group *m, const struct skv_storage_view *storages, uint32_t n,
			  struct skv_arena *a, struct skv_group_spec *s, struct skv_error *err)
{
	const KvcmAdmin__CachePreferStrategy by = m->cache_config->data_storage_strategy;
	const bool always = by == KVCM_ADMIN__CACHE_PREFER_STRATEGY__CPS_ALWAYS_3FS;
	const bool first = always || by == KVCM_ADMIN__CACHE_PREFER_STRATEGY__CPS_PREFER_3FS;
	const char **names = skv_arena_calloc(a, m->n_storage_candidates, sizeof *names);

	if (!names)
		return kvcm_model_nomem(err);
	s->storages = names;
	for (int pass = first ? 0 : 1; pass < (always ? 1 : 2); pass++) {
		for (size_t i = 0; i < m->n_storage_candidates; i++) {
			const char *name = m->storage_candidates[i];

			if (first && is_3fs(name, storages, n) != (pass == 0))
				continue;
			if (!is_named(names, s->n_storages, name))
				names[s->n_storages++] = name;
		}
	}
	assert(s->n_storages <= m->n_storage_candidates);
	return SKV_OK;
}

/* ---- capacity -------------------------------------------------------------------------------- */

/* The line at `share` of `bound`; 0 = none: no bound, no share, or one that the bound itself
 * keeps. */
static uint64_t line(uint64_t bound, double share)
{
	if (bound == 0 || share <= 0 || share >= 1)
		return 0;
	/* A line below one byte or block still is one: everything goes. */
	return (double)bound * share < 1 ? 1 : (uint64_t)((double)bound * share);
}

static int set_quotas(const KvcmAdmin__InstanceGroupQuota *q, double share, struct skv_arena *a,
		      struct skv_group_spec *s, struct skv_error *err)
{
	struct skv_type_quota *out = skv_arena_calloc(a, q->n_quota_config + 1, sizeof *out);

	if (!out)
		return kvcm_model_nomem(err);
	s->quotas = out;
	for (size_t i = 0; i < q->n_quota_config; i++) {
		const KvcmAdmin__QuotaConfig *c = q->quota_config[i];
		const char *type = kvcm_core_type(c->storage_type); /* NULL: only stored */

		if (c->capacity < 0)
			return invalid("quota.quota_config.capacity", "not negative", err);
		for (uint32_t k = 0; type && k < s->n_quotas; k++)
			if (strcmp(out[k].type, type) == 0)
				return invalid("quota.quota_config.storage_type", "named twice",
					       err);
		if (!type)
			continue;
		/* A quota of 0 lets nothing in; 0 in the core would mean none. */
		out[s->n_quotas++] = (struct skv_type_quota){
			.type = type,
			.capacity = c->capacity ? (uint64_t)c->capacity : 1,
			.reclaim = line((uint64_t)c->capacity, share),
		};
	}
	assert(s->n_quotas <= q->n_quota_config);
	return SKV_OK;
}

/* POLICY_TTL is about use: any that keeps the order of uses will do. POLICY_LFU: the default
 * counts uses. */
static const char *policy_of(const reclaim *r)
{
	return r->reclaim_policy == KVCM_ADMIN__RECLAIM_POLICY__POLICY_LRU ? "lru" : "";
}

static void set_steps(const reclaim *r, struct skv_group_spec *s)
{
	if (r->reclaim_policy == KVCM_ADMIN__RECLAIM_POLICY__POLICY_TTL) {
		s->max_idle_ms = (uint64_t)r->trigger_period_seconds * 1000;
		return;
	}
	s->reclaim_step_bytes = (uint64_t)r->reclaim_step_size;
	s->reclaim_step_percent = (uint32_t)r->reclaim_step_percentage;
	if (s->reclaim_step_bytes == 0 && s->reclaim_step_percent == 0)
		return; /* a period without a step bounds nothing */
	s->reclaim_period_ms = (uint64_t)r->trigger_period_seconds * 1000 < DAY_MS
				       ? (uint32_t)r->trigger_period_seconds * 1000
				       : (uint32_t)DAY_MS;
}

static int set_lines(const group *m, struct skv_arena *a, struct skv_group_spec *s,
		     struct skv_error *err)
{
	const reclaim *r = m->cache_config->reclaim_strategy;
	const KvcmAdmin__TriggerStrategy *t = r ? r->trigger_strategy : NULL;
	const KvcmAdmin__MetaIndexerConfig *x = m->cache_config->meta_indexer_config;
	const double share = t ? t->used_percentage : 0;
	uint64_t used = t ? (uint64_t)t->used_size : 0;

	if (m->quota && m->quota->capacity < 0)
		return invalid("quota.capacity", "not negative", err);
	s->capacity = m->quota ? (uint64_t)m->quota->capacity : 0;
	s->max_blocks = x ? (uint64_t)x->max_key_count : 0;
	s->reclaim_bytes = line(s->capacity, share);
	if (used > 0 && (s->reclaim_bytes == 0 || used < s->reclaim_bytes))
		s->reclaim_bytes = used;
	s->reclaim_blocks = line(s->max_blocks, share);
	s->policy = r ? policy_of(r) : "";
	if (r)
		set_steps(r, s);
	return m->quota ? set_quotas(m->quota, share, a, s, err) : SKV_OK;
}

int kvcm_group_spec(const group *m, const struct skv_storage_view *storages, uint32_t n_storages,
		    struct skv_arena *a, struct skv_group_spec *out, struct skv_error *err)
{
	struct skv_group_spec s = {
		.name = m->name,
		.loose_storages = true,
		.max_instances = (uint32_t)m->max_instance_count,
		.version = (uint64_t)m->version,
	};
	int rc = check(m, err);

	if (rc == SKV_OK)
		rc = order_storages(m, storages, n_storages, a, &s, err);
	if (rc == SKV_OK)
		rc = set_lines(m, a, &s, err);
	if (rc != SKV_OK)
		return rc;
	s.extra = kvcm_model_text(&m->base, a);
	if (!s.extra)
		return kvcm_model_nomem(err);
	*out = s;
	return SKV_OK;
}

uint32_t kvcm_group_lease_ms(const group *m)
{
	const reclaim *r = m->cache_config ? m->cache_config->reclaim_strategy : NULL;

	return r && r->delay_before_delete_ms > 0 ? (uint32_t)r->delay_before_delete_ms : 0;
}

/* ---- back ------------------------------------------------------------------------------------ */

static int64_t whole(uint64_t v)
{
	return v > INT64_MAX ? INT64_MAX : (int64_t)v;
}

/* The KVCM message for a group that another API made. */
static group *made_up(const struct skv_group_spec *g, struct skv_arena *a)
{
	group *m = skv_arena_alloc(a, sizeof *m);
	KvcmAdmin__CacheConfig *c = skv_arena_alloc(a, sizeof *c);
	KvcmAdmin__InstanceGroupQuota *q = skv_arena_alloc(a, sizeof *q);
	reclaim *r = skv_arena_alloc(a, sizeof *r);
	KvcmAdmin__MetaIndexerConfig *x = skv_arena_alloc(a, sizeof *x);

	if (!m || !c || !q || !r || !x)
		return NULL;
	kvcm_admin__instance_group__init(m);
	kvcm_admin__cache_config__init(c);
	kvcm_admin__instance_group_quota__init(q);
	kvcm_admin__cache_reclaim_strategy__init(r);
	kvcm_admin__meta_indexer_config__init(x);
	m->name = (char *)g->name;
	m->storage_candidates = (char **)g->storages;
	m->n_storage_candidates = g->n_storages;
	m->global_quota_group_name = DEFAULT_QUOTA_GROUP;
	m->max_instance_count = g->max_instances;
	m->quota = q;
	q->capacity = whole(g->capacity);
	m->cache_config = c;
	c->reclaim_strategy = r;
	c->meta_indexer_config = x;
	c->data_storage_strategy = KVCM_ADMIN__CACHE_PREFER_STRATEGY__CPS_PREFER_3FS;
	r->storage_unique_name = g->n_storages ? (char *)g->storages[0] : "";
	r->reclaim_policy = KVCM_ADMIN__RECLAIM_POLICY__POLICY_LRU;
	x->max_key_count = whole(g->max_blocks);
	return m;
}

group *kvcm_group_message(const struct skv_group_spec *g, struct skv_arena *a)
{
	group *m =
		(group *)kvcm_model_message(&kvcm_admin__instance_group__descriptor, g->extra, a);

	if (!m)
		m = made_up(g, a);
	if (m)
		m->version = whole(g->version);
	return m;
}

static bool same_storages(const struct skv_group_spec *a, const struct skv_group_spec *b)
{
	if (a->n_storages != b->n_storages)
		return false;
	for (uint32_t i = 0; i < a->n_storages; i++)
		if (strcmp(a->storages[i], b->storages[i]) != 0)
			return false;
	return true;
}

/* Updates a group. SKV_OK also if another caller changed or removed the group meanwhile: that
 * caller has seen the current storages. */
static int refit(struct skv_cluster *cluster, const struct skv_group_spec *have,
		 const struct skv_storage_view *storages, uint32_t n, struct skv_arena *a,
		 struct skv_error *err)
{
	ProtobufCMessage *m =
		kvcm_model_message(&kvcm_admin__instance_group__descriptor, have->extra, a);
	struct skv_group_spec s, old = *have;
	const uint64_t version = have->version;
	int rc;

	if (!m || kvcm_group_spec((group *)m, storages, n, a, &s, err) != SKV_OK ||
	    same_storages(have, &s))
		return SKV_OK;
	old.storages = s.storages; /* the order only */
	old.n_storages = s.n_storages;
	rc = skv_cluster_group_put(cluster, &old, SKV_PUT_ANY, &version, NULL, err);
	return rc == SKV_E_CONFLICT || rc == SKV_E_NOT_FOUND ? SKV_OK : rc;
}

int kvcm_groups_refit(struct skv_cluster *cluster, struct skv_error *err)
{
	struct skv_storage_view *storages;
	struct skv_group_view *groups;
	uint32_t n_storages, n_groups;
	struct skv_arena a;
	int rc;

	assert(skv_thread_locks == 0);
	skv_arena_init(&a);
	rc = skv_cluster_every_storage(cluster, "", &a, &storages, &n_storages, err);
	if (rc == SKV_OK)
		rc = skv_cluster_every_group(cluster, "", &a, &groups, &n_groups, err);
	for (uint32_t i = 0; rc == SKV_OK && i < n_groups; i++)
		rc = refit(cluster, &groups[i].spec, storages, n_storages, &a, err);
	skv_arena_destroy(&a);
	return rc;
}
