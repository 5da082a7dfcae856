/*
 * placement.c - finds slots for a start: free ones, by growing a storage, by evicting, by emptying
 * other classes' slabs.
 *
 * First, for each storage of the group in order of preference: free slots, then a new slab file. If
 * none has either: eviction of blocks of the same size class, then of whole slabs of other classes.
 * Nothing here waits: room that is being made is reported as TRY_WAIT. Under the write lock.
 */
#include "placement.h"

#include <string.h>

#include <model/block.h>
#include <model/device.h>
#include <model/find.h>
#include <model/geometry.h>
#include <model/leases.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/queue.h>
#include <model/quota_share.h>
#include <model/table.h>
#include <model/volume.h>
#include <storage/growth.h>
#include <evict/clear.h>
#include <evict/evict.h>
#include <evict/rebalance.h>
#include <ops/limits.h>
#include "plan.h"
#include <ops/start.h>

#include <assert.h>
#define MAX_SWEEP 16384u       /* blocks swept per attempt */
#define GROW_PATIENCE_MS 1000u /* a storage that has failed to grow for this long evicts instead, */
/* As does one whose new file has been in the making for this long. */
#define MAKING_PATIENCE_MS 5000u

void grants_free(struct partition *p, struct grants *g)
{
	ASSERT_EXCLUSIVE(p);
	for (uint32_t s = 0; s < SKV_MAX_SPECS; s++)
		for (uint32_t i = 0; i < g->n[s]; i++)
			skv_pool_free(p->volume[g->v[s][i].volume].pool,
				      (struct skv_run){ g->v[s][i].slab, g->v[s][i].index, 1 });
	memset(g, 0, sizeof *g);
}

/* Sweeps cleared instances before evicting anything. */
static int alloc_slots(struct partition *p, uint32_t volume, uint32_t class_id, uint32_t n,
		       struct skv_run *runs, uint32_t *n_runs)
{
	struct skv_pool *pool = p->volume[volume].pool;
	int rc = skv_pool_alloc(pool, class_id, n, runs, n_runs);

	for (uint32_t swept, all = 0; rc == SKV_E_NO_SPACE && all < MAX_SWEEP; all += swept) {
		swept = retired_sweep(p, NULL, volume, n);
		if (!swept)
			break;
		rc = skv_pool_alloc(pool, class_id, n, runs, n_runs);
	}
	return rc;
}

static int take_spec(struct partition *p, struct plan *plan, uint32_t volume, uint32_t spec,
		     struct skv_arena *a)
{
	uint32_t n = plan->need[spec], n_runs = 0, at = 0, class_id;
	struct skv_run *runs = skv_arena_alloc(a, n * sizeof *runs);
	struct grant *g = skv_arena_alloc(a, n * sizeof *g);
	int rc = volume_class(p, plan->inst, spec, volume, &class_id);

	ASSERT_EXCLUSIVE(p);
	if (rc == SKV_OK)
		rc = evict_reserve(p, plan->inst, volume, class_id);
	if (rc != SKV_OK)
		return rc;
	if (!runs || !g)
		return SKV_E_NOMEM;
	p->volume[volume].class[class_id].wanted_ms = skv_now_ms(p->core->clock);
	rc = alloc_slots(p, volume, class_id, n, runs, &n_runs);
	if (rc != SKV_OK)
		return rc;
	p->volume[volume].class[class_id].taken += n;
	for (uint32_t r = 0; r < n_runs; r++)
		for (uint32_t i = 0; i < runs[r].count; i++)
			g[at++] = (struct grant){ volume, runs[r].slab, runs[r].first + i };
	plan->grants.v[spec] = g;
	plan->grants.n[spec] = n;
	return SKV_OK;
}

/* Returns true if the instance stays within its share with this plan, so that others must make room
 * for it, in any class. */
static bool below_quota_share(const struct partition *p, const struct plan *plan)
{
	const struct instance *inst = plan->inst;

	return inst->group->spec.share != SKV_SHARE_GROUP &&
	       inst->used_bytes - inst->removing_bytes + plan->bytes <=
		       quota_share_of(inst, group_room(p, inst->group));
}

/* Queues removals that make room for `spec`: blocks of its class, or whole slabs of others. True if
 * some are under way. Called with the slots of earlier specs taken. */
static bool make_room(struct partition *p, struct plan *plan, uint32_t volume, uint32_t spec,
		      bool soft)
{
	const struct evict_for w = { .in = newcomers_of(plan), .whose = plan->inst,
				     .bytes = plan->bytes, .soft = soft },
	over = { .over = true, .whose = plan->inst };
	struct volume *s = &p->volume[volume];
	uint32_t class_id, need = plan->need[spec];
	uint64_t coming, have, got;

	ASSERT_EXCLUSIVE(p);
	if (volume_class(p, plan->inst, spec, volume, &class_id) != SKV_OK)
		return false;
	have = skv_pool_available(s->pool, class_id);
	coming = s->class[class_id].removing;
	if (have + coming >= need && coming > 0)
		return true;
	/* `have` may be shared with other classes: if it did not suffice, do not count on it. */
	plan->newcomers.at = have + coming >= need ? 0 : (uint32_t)(have + coming);
	need -= plan->newcomers.at;
	if ((below_quota_share(p, plan) || evict_below_tenant_share(p, volume, &w)) &&
	    evict_rebalance(p, volume, class_id, &over))
		return true;
	got = evict_slots(p, volume, class_id, need, &w);
	if (got >= need)
		return true;
	if (plan->newcomers.refused)
		return got > 0 || coming > 0;
	return evict_rebalance(p, volume, class_id, &w) || got > 0 || coming > 0;
}

/* Takes the plan's slots in one volume. On failure nothing is taken; *coming tells whether waiting
 * helps. */
static int take_in_volume(struct partition *p, struct plan *plan, uint32_t volume,
			  struct skv_arena *a, enum effort effort, bool *coming)
{
	ASSERT_EXCLUSIVE(p);
	for (uint32_t s = 0; s < plan->inst->spec.n_specs; s++) {
		int rc = plan->need[s] ? take_spec(p, plan, volume, s, a) : SKV_OK;

		if (rc == SKV_OK)
			continue;
		if (rc == SKV_E_NO_SPACE && retired_left(p, NULL, volume))
			*coming = true;
		else if (rc == SKV_E_NO_SPACE && effort != FREE)
			*coming |= make_room(p, plan, volume, s, effort == EVICT_SOFT_PINS);
		grants_free(p, &plan->grants);
		return rc;
	}
	return SKV_OK;
}

/* A failed growth is retried soon. A full file system is a definite answer; other trouble (e.g. the
 * registry) passes. */
static bool may_grow_later(const struct volume *s) { return volume_has_room(s) && !s->grow_full; }

/* Returns true if a new slab file is being made, or its last failure is so recent that it should be
 * retried first. */
static bool grows(struct partition *p, struct volume *s)
{
	uint64_t now;

	if (!s->growing && volume_can_grow(p, s))
		volume_ask_growth(p, s);
	now = skv_now_ms(p->core->clock);
	assert(now >= s->growing_since && now >= s->grow_failing_since);
	if (s->growing && now - s->growing_since < MAKING_PATIENCE_MS)
		return true;
	return s->grow_failing_since && may_grow_later(s) &&
	       now - s->grow_failing_since < GROW_PATIENCE_MS;
}

/* Some volumes of a group. */
struct some_volumes {
	uint32_t n;
	uint32_t at[MAX_GROUP_STORAGES];
};

static bool grows_later(const struct partition *p, const struct some_volumes *volumes)
{
	for (uint32_t i = 0; i < volumes->n; i++)
		if (may_grow_later(&p->volume[volumes->at[i]]))
			return true;
	return false;
}

/* Returns true if a lease or a hold in one of these volumes ends by then. */
static bool frees_soon(const struct partition *p, const struct some_volumes *volumes, uint64_t by)
{
	for (uint32_t i = 0; i < volumes->n; i++)
		if (skv_pool_next_due(p->volume[volumes->at[i]].pool) <= by ||
		    evict_next_lease(p, volumes->at[i]) <= by)
			return true;
	return false;
}

/* Slab files of a storage may be too small for some specs while others of the group are not. */
static bool volume_fits_plan(const struct volume *s, const struct plan *plan)
{
	if (plan->unsummed && s->dev->ops->forgetful)
		return false;
	for (uint32_t i = 0; i < plan->inst->spec.n_specs; i++)
		if (plan->need[i] && !volume_fits(s, &plan->inst->spec, i))
			return false;
	return true;
}

/* How well the plan's slots fit the chunks of a volume: the worst of its specs. */
static enum fit plan_fit(const struct volume *s, const struct plan *plan)
{
	enum fit worst = FIT_WHOLE;

	for (uint32_t i = 0; s->dev->chunk && i < plan->inst->spec.n_specs; i++) {
		enum fit fit =
			plan->need[i] ? volume_geometry(s, &plan->inst->spec, i).fit : FIT_WHOLE;

		worst = fit > worst ? fit : worst;
	}
	return worst;
}

/* Returns true if the plan may take slots of this storage, as far as the start names some. */
static bool plan_allows(const struct plan *plan, const char *storage)
{
	if (plan->storage && strcmp(storage, plan->storage) != 0)
		return false;
	for (uint32_t i = 0; i < plan->n_avoid; i++)
		if (strcmp(storage, plan->avoid[i]) == 0)
			return false;
	return true;
}

/* The group's existing storages by preference: better fit to chunks first, then the group's
 * order. */
static void preferred_volumes(const struct partition *p, const struct plan *plan,
			      struct some_volumes *out)
{
	const struct skv_group_spec *g = &plan->inst->group->spec;
	enum fit fit[MAX_GROUP_STORAGES];

	out->n = 0;
	for (uint32_t i = 0; i < g->n_storages && out->n < MAX_GROUP_STORAGES; i++) {
		int found = volume_find(p, g->storages[i]);
		enum fit how;
		uint32_t k;

		if (found < 0 || !plan_allows(plan, g->storages[i]))
			continue;
		how = plan_fit(&p->volume[found], plan);
		for (k = out->n++; k > 0 && fit[k - 1] > how; k--) {
			fit[k] = fit[k - 1];
			out->at[k] = out->at[k - 1];
		}
		fit[k] = how;
		out->at[k] = (uint32_t)found;
	}
}

/* Makes a round over the group's storages by preference: for each, free slots, then (FREE) a new
 * slab file, else eviction. SKV_E_NO_SPACE: none; *within returns the volumes that are usable, have
 * large enough files, and are within the quota of their type. */
static int take_somewhere(struct partition *p, struct plan *plan, struct skv_arena *a,
			  enum effort effort, struct some_volumes *within)
{
	struct some_volumes order;
	bool coming = false;

	ASSERT_EXCLUSIVE(p);
	preferred_volumes(p, plan, &order);
	within->n = 0;
	for (uint32_t i = 0; i < order.n; i++) {
		const uint32_t at = order.at[i];
		int rc;

		if (!volume_takes(&p->volume[at]) || !volume_fits_plan(&p->volume[at], plan))
			continue;
		if (!limits_type(p, plan, p->volume[at].dev->type, effort, &coming)) {
			if (coming)
				return TRY_WAIT_QUOTA;
			continue;
		}
		within->at[within->n++] = at;
		rc = take_in_volume(p, plan, at, a, effort, &coming);
		if (rc != SKV_E_NO_SPACE)
			return rc;
		if (coming || (effort == FREE && grows(p, &p->volume[at])))
			return TRY_WAIT;
	}
	return SKV_E_NO_SPACE;
}

/* The reason why no storage qualified. */
static int none_within(const struct partition *p, const struct plan *plan, struct skv_error *err)
{
	const struct group *g = plan->inst->group;
	bool usable = false, fits = false;

	for (uint32_t i = 0; i < g->spec.n_storages; i++) {
		int at = volume_find(p, g->spec.storages[i]);

		if (at < 0 || !volume_takes(&p->volume[at]) ||
		    !plan_allows(plan, g->spec.storages[i]))
			continue;
		usable = true;
		fits |= volume_fits_plan(&p->volume[at], plan);
	}
	if (!usable)
		return skv_fail(err, SKV_E_UNAVAILABLE, NULL,
				"no storage of group '%s' is healthy, enabled and not draining%s",
				g->spec.name, plan->n_avoid ? ", but for those to avoid" : "");
	if (!fits)
		return skv_fail(
			err, SKV_E_NO_SPACE, NULL,
			"no storage of group '%s' that is healthy and enabled has slab files that "
			"are large enough",
			g->spec.name);
	return skv_fail(
		err, SKV_E_QUOTA, "quotas",
		"group '%s' is at the capacity of its quota on each type of storage that it has, "
		"and nothing more may be evicted there",
		g->spec.name);
}

/* Keeps a block from eviction, and those above it. Below a leaf that is a candidate they need no
 * mark: it comes to the top before them, and marks them then (evict.c). */
static void keep_chain(struct partition *p, const struct instance *inst, struct block *b,
		       uint64_t now)
{
	bool first = inst->group->policy->leaf_first && !b->live_children &&
		     block_evictable(p, inst, b, now);

	b->kept = 1;
	while (!first && b->parent != NO_BLOCK && !block_get(p, b->parent)->kept) {
		b = block_get(p, b->parent);
		b->kept = 1;
	}
}

void placement_keep(struct partition *p, const struct plan *plan)
{
	const uint64_t now = skv_now_ms(p->core->clock);

	ASSERT_EXCLUSIVE(p);
	if (plan->parent)
		keep_chain(p, plan->inst, plan->parent, now);
	for (uint32_t i = 0; i < plan->n_keys; i++)
		if (plan->outcome[i] == SKV_START_EXISTS)
			keep_chain(p, plan->inst, plan->have[i], now);
}

/* Releases the chain of blocks. Blocks that eviction has reached are in no queue. */
static void let_chain_go(struct partition *p, struct block *b)
{
	while (b && b->kept) {
		b->kept = 0;
		if (evict_held_back(b))
			evict_consider(p, b);
		b = b->parent != NO_BLOCK ? block_get(p, b->parent) : NULL;
	}
}

void placement_let_go(struct partition *p, const struct plan *plan)
{
	ASSERT_EXCLUSIVE(p);
	for (uint32_t i = plan->n_keys; i-- > 0;)
		if (plan->outcome[i] == SKV_START_EXISTS)
			let_chain_go(p, plan->have[i]);
	let_chain_go(p, plan->parent);
}

/* Why there is no slot: too few there can be, or something is in all of them. */
static int no_room(const struct partition *p, const struct plan *plan,
		   const struct some_volumes *within, struct skv_error *err)
{
	const uint64_t bytes = plan->inst->block_bytes;
	uint64_t most = 0;

	for (uint32_t i = 0; i < within->n; i++) {
		const struct volume *s = &p->volume[within->at[i]];

		most += may_grow_later(s) ? s->capacity : s->file_bytes;
	}
	if (bytes && most / bytes < plan->n_write)
		return skv_fail(err, SKV_E_NO_SPACE, NULL,
				"no room for %u blocks of %llu bytes in slab files of %llu bytes, "
				"the most that capacity and file system allow: fewer blocks in a "
				"call, or more space",
				plan->n_write, (unsigned long long)bytes,
				(unsigned long long)most);
	return skv_fail(err, SKV_E_NO_SPACE, NULL,
			"no room for %u blocks: everything is pinned, leased, being written, "
			"or in its grace time",
			plan->n_write);
}

/* Evicts for the plan, soft-pinned blocks when nothing else may go. As take_somewhere. */
static int take_evicting(struct partition *p, struct plan *plan, struct skv_arena *a,
			 struct some_volumes *within)
{
	int rc = SKV_E_NO_SPACE;

	for (enum effort effort = EVICT; rc == SKV_E_NO_SPACE && effort <= EVICT_SOFT_PINS &&
					 !plan->newcomers.refused;
	     effort++)
		rc = take_somewhere(p, plan, a, effort, within);
	return rc;
}

bool placement_eats_own(const struct plan *plan)
{
	return !plan->newcomers.n && !plan->keeps && !plan->no_wait;
}

int placement_take(struct partition *p, struct plan *plan, struct skv_arena *a,
		   struct skv_error *err)
{
	uint64_t now = skv_now_ms(p->core->clock);
	struct some_volumes within;
	int rc = take_somewhere(p, plan, a, FREE, &within);

	ASSERT_EXCLUSIVE(p);
	if (rc == SKV_E_NO_SPACE) {
		placement_keep(p, plan);
		rc = take_evicting(p, plan, a, &within);
		placement_let_go(p, plan);
	}
	if (rc == SKV_E_NO_SPACE && placement_eats_own(plan))
		rc = take_evicting(p, plan, a, &within);
	if (rc != SKV_E_NO_SPACE)
		return rc;
	if (plan->newcomers.refused)
		return skv_fail(err, SKV_E_NO_SPACE, NULL, "what is stored is worth more");
	if (!within.n)
		return none_within(p, plan, err);
	if (grows_later(p, &within) || (!plan->no_wait && now - plan->since < SOON_MS &&
					frees_soon(p, &within, now + SOON_MS)))
		return TRY_WAIT;
	plan->newcomers.full |= plan->newcomers.n && placement_now(p, plan) > 0;
	return no_room(p, plan, &within, err);
}

void placement_taken(struct partition *p, const struct plan *plan)
{
	const struct instance *inst = plan->inst;

	ASSERT_EXCLUSIVE(p);
	for (uint32_t s = 0; s < inst->spec.n_specs; s++) {
		uint32_t volume = plan->grants.n[s] ? plan->grants.v[s][0].volume : 0;

		if (plan->grants.n[s])
			evict_behind(p, volume, class_of(inst, volume, s), plan->grants.n[s]);
	}
}

int placement_take_offsets(struct partition *p, const struct skv_start_req *req, struct plan *plan,
			   struct skv_arena *a, struct skv_error *err)
{
	int at = volume_of_offsets(p, plan->inst);
	struct volume *s = &p->volume[at];
	struct grant *g = skv_arena_alloc(a, plan->n_write * sizeof *g);
	uint32_t n = 0, class_id;
	int rc = volume_class(p, plan->inst, 0, (uint32_t)at, &class_id);

	ASSERT_EXCLUSIVE(p);
	if (!volume_usable(s))
		return skv_fail(err, SKV_E_UNAVAILABLE, NULL, "storage '%s' is not enabled",
				s->dev->name);
	retired_sweep(p, NULL, (uint32_t)at, MAX_SWEEP);
	if (retired_left(p, NULL, (uint32_t)at))
		return TRY_WAIT;
	if (rc == SKV_OK)
		rc = evict_reserve(p, plan->inst, (uint32_t)at, class_id);
	if (rc == SKV_OK && !g)
		rc = SKV_E_NOMEM;
	plan->grants.v[0] = g;
	for (uint32_t i = 0; i < req->n_keys && rc == SKV_OK; i++) {
		struct skv_run run;

		if (plan->outcome[i] != SKV_START_WRITE)
			continue;
		rc = skv_pool_alloc_at(s->pool, class_id, 0, req->offsets[i], &run);
		if (rc == SKV_OK)
			g[n++] = (struct grant){ (uint32_t)at, run.slab, run.first };
		else if (rc == SKV_E_NO_SPACE)
			plan->outcome[i] = SKV_START_NO_ROOM;
		plan->grants.n[0] = n;
		rc = rc == SKV_E_NO_SPACE ? SKV_OK : rc;
	}
	if (rc != SKV_OK)
		grants_free(p, &plan->grants);
	plan_count(plan);
	return rc;
}

/* Limit of bytes in the group's open sessions. */
static uint64_t may_open(const struct partition *p, const struct group *g)
{
	uint64_t room = group_room(p, g), percent = p->core->o.open_percent;

	return room / 100 * percent + (room % 100 * percent + 99) / 100;
}

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }
static uint64_t less(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

uint64_t placement_bound(const struct partition *p, const struct plan *plan)
{
	const uint64_t most = may_open(p, plan->inst->group);

	ASSERT_SHARED(p);
	return least(less(most, plan->inst->open_bytes) / plan->inst->block_bytes,
		     limits_bound(p, plan));
}

uint64_t placement_now(struct partition *p, const struct plan *plan)
{
	const struct group *g = plan->inst->group;
	uint64_t most = 0;
	uint32_t class_id;

	ASSERT_EXCLUSIVE(p);
	for (uint32_t i = 0; i < g->spec.n_storages; i++) {
		int at = volume_find(p, g->spec.storages[i]);
		uint64_t n;

		if (at < 0 || !volume_takes(&p->volume[at]) ||
		    !volume_fits_plan(&p->volume[at], plan) ||
		    volume_class(p, plan->inst, 0, (uint32_t)at, &class_id) != SKV_OK)
			continue;
		n = least(skv_pool_available(p->volume[at].pool, class_id),
			  limits_now_of_type(p, plan, p->volume[at].dev->type));
		most = n > most ? n : most;
	}
	return least(most, limits_now(p, plan));
}

static bool any_volume(const struct partition *p, const struct group *g)
{
	for (uint32_t i = 0; i < g->spec.n_storages; i++)
		if (volume_find(p, g->spec.storages[i]) >= 0)
			return true;
	return false;
}

uint64_t placement_most(const struct partition *p, const struct plan *plan)
{
	ASSERT_SHARED(p);
	return may_open(p, plan->inst->group) / plan->inst->block_bytes;
}

int placement_limits(struct partition *p, struct plan *plan, struct skv_error *err)
{
	int rc = limits_fixed(p, plan, err);
	uint64_t most = may_open(p, plan->inst->group);

	ASSERT_SHARED(p);
	if (rc != SKV_OK)
		return rc;
	if (!any_volume(p, plan->inst->group))
		return skv_fail(err, SKV_E_UNAVAILABLE, NULL,
				"no storage that group '%s' names exists",
				plan->inst->group->spec.name);
	if (plan->bytes > most)
		return skv_fail(
			err, SKV_E_TOO_LARGE, "keys",
			"%llu bytes in one session; this group allows %llu at a time: "
			"write fewer blocks",
			(unsigned long long)plan->bytes, (unsigned long long)most);
	if (plan->inst->open_bytes + plan->bytes > most)
		return skv_fail(
			err, SKV_E_TOO_MANY, NULL,
			"open sessions of this instance hold %llu of %llu bytes: finish some first",
			(unsigned long long)plan->inst->open_bytes, (unsigned long long)most);
	return SKV_OK;
}
