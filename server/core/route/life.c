/*
 * life.c - the cores of all partitions: made, watched and ended together.
 *
 * Each partition has an owner of its own; skv_cluster_may_own sets which may be owned here. A store
 * has at least as many partitions as were ever used in it; this process may be configured for more.
 */
#include "route.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <skv/log.h>
#include <skv/mem.h>
#include <skv/store.h>

#include <lock/gate.h>
#include <lock/turn.h>
#include <model/rules.h>
#include <journal/registry_write.h>

#define PREFIX "partition/"
#define DRAIN_WAIT_MS 10000u

static const struct skv_secret no_secret;

static int see_number(void *ctx, const char *key, const void *bytes, size_t n, uint64_t version)
{
	uint32_t *most = ctx;
	unsigned number;

	(void)bytes;
	(void)n;
	(void)version;
	if (sscanf(key, PREFIX "%u/", &number) == 1 && number >= *most)
		*most = number + 1;
	return SKV_OK;
}

/* How many the store has. */
static int count(struct skv_store *s, uint32_t *n, struct skv_error *err)
{
	*n = 1;
	return skv_store_list(s, PREFIX, see_number, n, err);
}

static int make_core(struct route *r, uint32_t i, const struct skv_core_options *o,
		     struct skv_error *err)
{
	const struct one_place at = { .number = i, .rules = r->rules, .shares = r->n > 1 };
	struct skv_core_options own = *o;
	int rc = SKV_OK;

	if (i > 0)
		rc = skv_store_partition(o->store, i, REGISTRY_SECRET, &r->view[i], err);
	own.store = i > 0 ? r->view[i] : o->store;
	if (rc == SKV_OK)
		rc = one_create(&own, &at, &r->core[i], err);
	r->part[i] = (struct skv_cluster){ r, r->core[i] };
	return rc;
}

static struct route *make_route(bool manual, skv_family_fn *family, uint32_t n)
{
	struct route *r = skv_calloc(1, sizeof *r);

	if (!r)
		return NULL;
	r->n = n;
	r->all.route = r;
	r->manual = manual;
	r->rules = rules_make();
	r->family_of = r->places.family = family;
	skv_mutex_init(&r->lock);
	skv_cond_init(&r->wake);
	return r;
}

int skv_cluster_create(const struct skv_core_options *o, const struct skv_cluster_options *all,
		       struct skv_cluster **out, struct skv_error *err)
{
	const uint32_t least = all ? all->partitions : 0;
	uint32_t n = 1;
	int rc = least ? count(o->store, &n, err) : SKV_OK;
	struct route *r;

	if (rc == SKV_OK && n > SKV_MAX_PARTITIONS)
		rc = skv_fail(err, SKV_E_UNSUPPORTED, "partitions",
			      "the store has %u partitions: this version can have %u", (unsigned)n,
			      SKV_MAX_PARTITIONS);
	if (rc != SKV_OK)
		return rc;
	r = make_route(o->manual, all ? all->family : NULL, n < least ? least : n);
	rc = r && r->rules ? SKV_OK : SKV_E_NOMEM;
	for (uint32_t i = 0; rc == SKV_OK && i < r->n; i++)
		rc = make_core(r, i, o, err);
	if (rc == SKV_OK && r->n > 1 && !r->manual)
		rc = capacity_start(r);
	*out = rc == SKV_OK ? &r->all : NULL;
	if (rc != SKV_OK && r)
		skv_cluster_destroy(&r->all);
	return rc;
}

void skv_cluster_change(struct skv_cluster *c, const struct skv_core_options *o)
{
	for (uint32_t i = 0; i < c->route->n; i++)
		one_change(c->route->core[i], o);
}

void skv_cluster_shutdown(struct skv_cluster *c)
{
	struct route *r = c->route;

	capacity_stop(r);
	/* All at the same time: a store that is away lets each wait. */
	for (uint32_t i = 1; i < r->n; i++)
		one_begin_shutdown(r->core[i]);
	for (uint32_t i = r->n; i-- > 0;)
		one_shutdown(r->core[i]);
}

bool skv_cluster_quiet(struct skv_cluster *c, uint32_t timeout_ms)
{
	bool quiet = true;

	for (uint32_t i = 0; i < c->route->n; i++)
		quiet &= one_quiet(c->route->core[i], timeout_ms);
	return quiet;
}

void skv_cluster_destroy(struct skv_cluster *c)
{
	struct route *r = c ? c->route : NULL;

	if (!r)
		return;
	capacity_stop(r);
	for (uint32_t i = r->n; i-- > 0;) {
		one_destroy(r->core[i]);
		if (r->view[i])
			skv_store_close(r->view[i]);
	}
	rules_free(r->rules);
	skv_cond_destroy(&r->wake);
	skv_mutex_destroy(&r->lock);
	skv_free(r->total);
	places_clear(&r->places);
	skv_free(r);
}

void skv_cluster_tick(struct skv_cluster *c)
{
	struct route *r = c->route;

	for (uint32_t i = 0; i < r->n; i++)
		one_tick(r->core[i]);
	if (r->n > 1) {
		capacity_step(r);
		places_step(r);
	}
}

/* ---- state ----------------------------------------------------------------------------------- */

enum skv_core_state skv_cluster_state_get(const struct skv_cluster *c)
{
	const struct route *r = c->route;
	enum skv_core_state first = one_state_get(r->core[0]);
	bool ready = false, coming = false;

	if (r->n == 1 || first == SKV_CORE_STOPPED)
		return first;
	for (uint32_t i = 0; i < r->n; i++) {
		enum skv_core_state state = one_state_get(r->core[i]);

		ready |= state == SKV_CORE_READY;
		coming |= state == SKV_CORE_RECOVERING || one_comes(r->core[i]);
	}
	return coming ? SKV_CORE_RECOVERING : ready ? SKV_CORE_READY : SKV_CORE_STANDBY;
}

void skv_cluster_may_own(struct skv_cluster *c, uint32_t partitions)
{
	for (uint32_t i = 0; i < c->route->n; i++)
		one_may_own(c->route->core[i], partitions >> i & 1);
}

int skv_cluster_may_answer(const struct skv_cluster *c)
{
	int rc = SKV_OK;

	for (uint32_t i = 0; rc == SKV_OK && i < c->route->n; i++)
		rc = one_may_answer(c->route->core[i]);
	return rc;
}

static bool has_storages(struct skv_core *one)
{
	bool has;

	skv_rwlock_read(&one->lock);
	has = one->n_device > 0;
	skv_rwlock_read_unlock(&one->lock);
	return has;
}

bool skv_cluster_has_storages(struct skv_cluster *c)
{
	bool has = false;

	for (uint32_t i = 0; !has && i < c->route->n; i++)
		has = has_storages(c->route->core[i]);
	return has;
}

enum skv_core_state skv_cluster_partition_state(const struct skv_cluster *c, uint32_t number)
{
	return one_state_get(route_core(c, number));
}

int skv_cluster_partition_may_answer(const struct skv_cluster *c, uint32_t number)
{
	return one_may_answer(route_core(c, number));
}

bool skv_cluster_may_begin(const struct skv_cluster *c)
{
	uint32_t i = 0;

	while (i < c->route->n && one_state_get(c->route->core[i]) != SKV_CORE_READY)
		i++;
	return i < c->route->n;
}

void skv_cluster_leader(struct skv_cluster *c, char self[SKV_OWNER_NAME],
			char leader[SKV_OWNER_NAME], uint64_t *remaining_ms)
{
	one_leader(c->route->core[0], self, leader, remaining_ms);
}

void skv_cluster_partition_leader(struct skv_cluster *c, uint32_t number, char self[SKV_OWNER_NAME],
				  char leader[SKV_OWNER_NAME], uint64_t *remaining_ms)
{
	one_leader(route_core(c, number), self, leader, remaining_ms);
}

bool skv_cluster_owned_elsewhere(struct skv_cluster *c, uint32_t number, uint64_t since_ms)
{
	return one_owned_elsewhere(route_core(c, number), since_ms);
}

uint64_t skv_cluster_owner_seen_ms(const struct skv_cluster *c)
{
	return one_owner_seen_ms(c->route->core[0]);
}

bool skv_cluster_load_fails(const struct skv_cluster *c)
{
	return one_load_fails(c->route->core[0]);
}

void skv_cluster_store_counters_get(const struct skv_cluster *c,
				    struct skv_core_store_counters *out)
{
	one_store_counters_get(c->route->core[0], out);
}

int skv_cluster_root_allowed(const struct skv_cluster *c, const char *root, struct skv_error *err)
{
	return one_root_allowed(c->route->core[0], root, err);
}

uint64_t skv_cluster_partition_epoch(const struct skv_cluster *c, uint32_t number)
{
	const struct skv_core *one = route_core(c, number);

	return one_state_get(one) == SKV_CORE_READY ? owner_fence(one) : 0;
}

/* All know the same one; the first may not have read it yet. */
static const struct skv_secret *find_secret(const struct route *r)
{
	const struct skv_secret *found = NULL;

	for (uint32_t i = 0; i < r->n && !found; i++)
		found = one_secret(r->core[i]);
	return found;
}

const struct skv_secret *skv_cluster_secret(const struct skv_cluster *c)
{
	const struct skv_secret *found = find_secret(c->route);

	return found ? found : &no_secret;
}

int skv_cluster_read_secret(struct skv_cluster *c, struct skv_error *err)
{
	if (find_secret(c->route))
		return SKV_OK;
	return skv_thread_waits ? registry_read_secret(c->route->core[0], err) : SKV_E_NOT_READY;
}

/* An owned, loaded partition with a healthy storage suffices: other managers have the others, or
 * will. Otherwise a partition that is here, or soon will be, gives the reason. */
int skv_cluster_ready(struct skv_cluster *c, struct skv_error *err)
{
	const struct route *r = c->route;
	int rc = one_ready(r->core[0], err);

	for (uint32_t i = 1; rc != SKV_OK && i < r->n; i++) {
		struct skv_error why = { 0 };
		int next = one_ready(r->core[i], &why);

		if (next == SKV_OK)
			skv_error_clear(err);
		else if (rc == SKV_E_NOT_OWNER && next != rc)
			skv_fail(err, next, NULL, "partition %u: %s", (unsigned)i,
				 why.message[0] ? why.message : skv_status_text(next));
		if (next == SKV_OK || rc == SKV_E_NOT_OWNER)
			rc = next;
	}
	return rc;
}

/* Until the next look at what others do. False: the end has begun. */
static bool wait_a_moment(struct skv_cluster *c)
{
	if (!c->route->manual)
		return core_wait(c->route->core[0], 5, NULL);
	skv_cluster_tick(c);
	return true;
}

int skv_cluster_wait_ready(struct skv_cluster *c, uint32_t timeout_ms)
{
	uint64_t until = skv_now_us() + (uint64_t)timeout_ms * 1000;

	while (skv_cluster_state_get(c) != SKV_CORE_READY)
		if (skv_now_us() >= until || !wait_a_moment(c))
			return SKV_E_TIMEOUT;
	return SKV_OK;
}

/* All that it has; but only of who has the first one, and is the leader to others. */
int skv_cluster_demote(struct skv_cluster *c, uint32_t stay_out_ms, struct skv_error *err)
{
	struct route *r = c->route;
	struct skv_error ignored = { 0 };
	int rc = one_demote(c->core ? c->core : r->core[0], stay_out_ms, err);

	for (uint32_t i = 1; rc == SKV_OK && !c->core && i < r->n; i++)
		one_demote(r->core[i], stay_out_ms, &ignored);
	return rc;
}

bool skv_cluster_draining(const struct skv_cluster *c)
{
	return owner_view(c->route->core[0]).draining;
}

static bool owns_none(const struct route *r)
{
	bool none = true;

	for (uint32_t i = 0; i < r->n; i++) {
		enum skv_core_state state = one_state_get(r->core[i]);

		none &= state == SKV_CORE_STANDBY || state == SKV_CORE_STOPPED;
	}
	return none;
}

int skv_cluster_drain(struct skv_cluster *c, bool on, struct skv_error *err)
{
	struct route *r = c->route;
	const uint64_t until = skv_now_us() + DRAIN_WAIT_MS * 1000u;

	for (uint32_t i = r->n; i-- > 0;)
		one_drain(r->core[i], on);
	while (on && !owns_none(r)) {
		if (skv_now_us() >= until)
			return skv_fail(err, SKV_E_TIMEOUT, NULL,
					"the ownership is not given up yet; it will be");
		if (!wait_a_moment(c))
			break;
	}
	return SKV_OK;
}

int skv_cluster_check(struct skv_cluster *c, struct skv_error *err)
{
	int rc = SKV_OK;

	for (uint32_t i = 0; rc == SKV_OK && i < c->route->n; i++)
		rc = one_check(c->route->core[i], err);
	return rc;
}

/* ---- offline --------------------------------------------------------------------------------- */

int skv_cluster_fsck(struct skv_store *store, bool files, const char *fs_master_token_file,
		     void (*say)(void *ctx, const char *text), void *ctx,
		     struct skv_fsck_report *out, struct skv_error *err)
{
	struct tenant_rules *rules = rules_make();
	uint32_t n = 1;
	int rc = rules ? count(store, &n, err) : SKV_E_NOMEM;

	*out = (struct skv_fsck_report){ 0 };
	for (uint32_t i = 0; rc == SKV_OK && i < n; i++) {
		const struct one_place at = { .number = i, .rules = rules, .shares = n > 1 };
		struct skv_store *view = store;
		struct skv_fsck_report one;

		if (i)
			rc = skv_store_partition(store, i, REGISTRY_SECRET, &view, err);
		if (rc == SKV_OK)
			rc = fsck_one(view, &at, files, fs_master_token_file, say, ctx, &one, err);
		if (i && view != store)
			skv_store_close(view);
		if (rc != SKV_OK)
			break;
		out->blocks += one.blocks;
		out->sessions += one.sessions;
		out->used_slots += one.used_slots;
		out->held_slots += one.held_slots;
		out->problems += one.problems;
	}
	rules_free(rules);
	return rc;
}
