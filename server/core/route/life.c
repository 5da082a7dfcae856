/*
 * life.c - the cores of all partitions: made, watched and ended together.
 *
 * Each has an owner of its own; which may be owned here is said by skv_core_may_own. A store has as
 * many partitions as were ever used in it, at least; what this process was asked for may be more.
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

static int make_others(struct skv_core *c, struct skv_error *err)
{
	struct route *r = c->route;
	int rc = SKV_OK;

	for (uint32_t i = 1; rc == SKV_OK && i < r->n; i++) {
		struct skv_core_options o = c->o;

		rc = skv_store_partition(c->store, i, REGISTRY_SECRET, &r->view[i], err);
		o.store = r->view[i];
		o.partition = i;
		o.lead = c;
		if (rc == SKV_OK)
			rc = one_create(&o, &r->core[i], err);
	}
	return rc;
}

static int make_route(struct skv_core *c, uint32_t n, struct skv_error *err)
{
	struct route *r = skv_calloc(1, sizeof *r);
	int rc;

	if (!r)
		return SKV_E_NOMEM;
	r->n = n;
	r->core[0] = c;
	r->places.family = c->o.family;
	skv_mutex_init(&r->lock);
	skv_cond_init(&r->wake);
	c->route = r;
	rc = make_others(c, err);
	if (rc == SKV_OK && !c->o.manual)
		rc = capacity_start(r);
	return rc;
}

int skv_core_create(const struct skv_core_options *o, struct skv_core **out, struct skv_error *err)
{
	struct skv_core_options all;
	uint32_t n = 0;
	int rc = o->partitions ? count(o->store, &n, err) : SKV_OK;

	if (rc == SKV_OK && n > SKV_MAX_PARTITIONS)
		rc = skv_fail(err, SKV_E_UNSUPPORTED, "partitions",
			      "the store has %u partitions: this version can have %u", (unsigned)n,
			      SKV_MAX_PARTITIONS);
	if (rc != SKV_OK)
		return rc;
	if (n < o->partitions)
		n = o->partitions;
	all = *o;
	all.partitions = n;
	rc = one_create(&all, out, err);
	if (rc != SKV_OK || n < 2)
		return rc;
	rc = make_route(*out, n, err);
	if (rc != SKV_OK) {
		skv_core_destroy(*out);
		*out = NULL;
	}
	return rc;
}

void skv_core_change(struct skv_core *c, const struct skv_core_options *o)
{
	struct route *r = c->route;

	one_change(c, o);
	for (uint32_t i = 1; r && i < r->n; i++)
		one_change(r->core[i], o);
}

void skv_core_shutdown(struct skv_core *c)
{
	struct route *r = c->route;

	if (r)
		capacity_stop(r);
	/* All at the same time: a store that is away lets each wait. */
	for (uint32_t i = 1; r && i < r->n; i++)
		one_begin_shutdown(r->core[i]);
	for (uint32_t i = r ? r->n : 0; i-- > 1;)
		one_shutdown(r->core[i]);
	one_shutdown(c);
}

bool skv_core_quiet(struct skv_core *c, uint32_t timeout_ms)
{
	struct route *r = c->route;
	bool quiet = one_quiet(c, timeout_ms);

	for (uint32_t i = 1; r && i < r->n; i++)
		quiet &= one_quiet(r->core[i], timeout_ms);
	return quiet;
}

void skv_core_destroy(struct skv_core *c)
{
	struct route *r = c ? c->route : NULL;

	if (r)
		capacity_stop(r);
	for (uint32_t i = r ? r->n : 0; i-- > 1;) {
		one_destroy(r->core[i]);
		if (r->view[i])
			skv_store_close(r->view[i]);
	}
	one_destroy(c);
	if (!r)
		return;
	skv_cond_destroy(&r->wake);
	skv_mutex_destroy(&r->lock);
	skv_free(r->total);
	places_clear(&r->places);
	skv_free(r);
}

void skv_core_tick(struct skv_core *c)
{
	struct route *r = c->route;

	one_tick(c);
	for (uint32_t i = 1; r && i < r->n; i++)
		one_tick(r->core[i]);
	if (r) {
		capacity_step(r);
		places_step(r);
	}
}

/* ---- state ----------------------------------------------------------------------------------- */

enum skv_core_state skv_core_state_get(const struct skv_core *c)
{
	const struct route *r = c->route;
	enum skv_core_state first = one_state_get(c);
	bool ready = false, coming = false;

	if (!r || first == SKV_CORE_STOPPED)
		return first;
	for (uint32_t i = 0; i < r->n; i++) {
		enum skv_core_state state = one_state_get(r->core[i]);

		ready |= state == SKV_CORE_READY;
		coming |= state == SKV_CORE_RECOVERING || one_comes(r->core[i]);
	}
	return coming ? SKV_CORE_RECOVERING : ready ? SKV_CORE_READY : SKV_CORE_STANDBY;
}

void skv_core_may_own(struct skv_core *c, uint32_t partitions)
{
	struct route *r = c->route;

	for (uint32_t i = 0; i < (r ? r->n : 1); i++)
		one_may_own(r ? r->core[i] : c, partitions >> i & 1);
}

int skv_core_may_answer(const struct skv_core *c)
{
	const struct route *r = c->route;
	int rc = one_may_answer(c);

	for (uint32_t i = 1; r && rc == SKV_OK && i < r->n; i++)
		rc = one_may_answer(r->core[i]);
	return rc;
}

static bool has_storages(struct skv_core *c)
{
	bool has;

	skv_rwlock_read(&c->lock);
	has = c->n_device > 0;
	skv_rwlock_read_unlock(&c->lock);
	return has;
}

bool skv_core_has_storages(struct skv_core *c)
{
	const struct route *r = c->route;
	bool has = false;

	for (uint32_t i = 0; !has && i < (r ? r->n : 1); i++)
		has = has_storages(r ? r->core[i] : c);
	return has;
}

static struct skv_core *numbered(const struct skv_core *c, uint32_t number)
{
	assert(number < skv_core_partitions(c));
	return c->route ? c->route->core[number] : (struct skv_core *)c;
}

enum skv_core_state skv_core_partition_state(const struct skv_core *c, uint32_t number)
{
	return one_state_get(numbered(c, number));
}

int skv_core_partition_may_answer(const struct skv_core *c, uint32_t number)
{
	return one_may_answer(numbered(c, number));
}

struct skv_core *skv_core_alone(struct skv_core *c, uint32_t number) { return numbered(c, number); }

void skv_core_learn(struct skv_core *c, const uint64_t name[2], uint32_t number)
{
	if (c->route && number < c->route->n)
		place_learn(c->route, (struct skv_key){ .hi = name[0], .lo = name[1] }, number);
}

bool skv_core_may_begin(const struct skv_core *c)
{
	const uint32_t n = skv_core_partitions(c);
	uint32_t i = 0;

	while (i < n && one_state_get(numbered(c, i)) != SKV_CORE_READY)
		i++;
	return i < n;
}

void skv_core_leader(struct skv_core *c, char self[SKV_OWNER_NAME], char leader[SKV_OWNER_NAME],
		     uint64_t *remaining_ms)
{
	one_leader(c, self, leader, remaining_ms);
}

void skv_core_partition_leader(struct skv_core *c, uint32_t number, char self[SKV_OWNER_NAME],
			       char leader[SKV_OWNER_NAME], uint64_t *remaining_ms)
{
	one_leader(numbered(c, number), self, leader, remaining_ms);
}

bool skv_core_owned_elsewhere(struct skv_core *c, uint32_t number, uint64_t since_ms)
{
	return one_owned_elsewhere(numbered(c, number), since_ms);
}

uint64_t skv_core_partition_epoch(const struct skv_core *c, uint32_t number)
{
	const struct skv_core *one = numbered(c, number);

	return one_state_get(one) == SKV_CORE_READY ? owner_fence(one) : 0;
}

/* All know the same one; the first may not have read it yet. */
const struct skv_secret *skv_core_secret(const struct skv_core *c)
{
	const uint32_t n = skv_core_partitions(c);
	const struct skv_secret *found = NULL;

	for (uint32_t i = 0; i < n && !found; i++)
		found = one_secret(numbered(c, i));
	return found ? found : &no_secret;
}

/* One that is owned, loaded and has a healthy storage is enough: other managers have the others, or
 * they come. Else one that is here, or soon will be, tells why not. */
int skv_core_ready(struct skv_core *c, struct skv_error *err)
{
	const struct route *r = c->route;
	int rc = one_ready(c, err);

	for (uint32_t i = 1; r && rc != SKV_OK && i < r->n; i++) {
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

int skv_core_wait_ready(struct skv_core *c, uint32_t timeout_ms)
{
	uint64_t until = skv_now_us() + (uint64_t)timeout_ms * 1000;

	if (!c->route)
		return one_wait_ready(c, timeout_ms);
	while (skv_core_state_get(c) != SKV_CORE_READY) {
		if (skv_now_us() >= until)
			return SKV_E_TIMEOUT;
		if (c->o.manual)
			skv_core_tick(c);
		else if (!core_wait(c, 5, NULL))
			return SKV_E_TIMEOUT;
	}
	return SKV_OK;
}

/* All that it has; but only of who has the first one, and is the leader to others. */
int skv_core_demote(struct skv_core *c, uint32_t stay_out_ms, struct skv_error *err)
{
	struct route *r = c->route;
	struct skv_error ignored = { 0 };
	int rc = one_demote(c, stay_out_ms, err);

	for (uint32_t i = 1; rc == SKV_OK && r && i < r->n; i++)
		one_demote(r->core[i], stay_out_ms, &ignored);
	return rc;
}

bool skv_core_draining(const struct skv_core *c) { return owner_view(c).draining; }

static bool owns_none(const struct skv_core *c)
{
	const struct route *r = c->route;
	bool none = true;

	for (uint32_t i = 0; i < (r ? r->n : 1); i++) {
		enum skv_core_state state = one_state_get(r ? r->core[i] : c);

		none &= state == SKV_CORE_STANDBY || state == SKV_CORE_STOPPED;
	}
	return none;
}

int skv_core_drain(struct skv_core *c, bool on, struct skv_error *err)
{
	struct route *r = c->route;
	const uint64_t until = skv_now_us() + DRAIN_WAIT_MS * 1000u;

	for (uint32_t i = r ? r->n : 0; i-- > 1;)
		one_drain(r->core[i], on);
	one_drain(c, on);
	while (on && !owns_none(c)) {
		if (skv_now_us() >= until)
			return skv_fail(err, SKV_E_TIMEOUT, NULL,
					"the ownership is not given up yet; it will be");
		if (c->o.manual)
			skv_core_tick(c);
		else if (!core_wait(c, 5, NULL))
			break;
	}
	return SKV_OK;
}

int skv_core_check(struct skv_core *c, struct skv_error *err)
{
	struct route *r = c->route;
	int rc = one_check(c, err);

	for (uint32_t i = 1; r && rc == SKV_OK && i < r->n; i++)
		rc = one_check(r->core[i], err);
	return rc;
}

/* ---- offline --------------------------------------------------------------------------------- */

int skv_core_fsck(struct skv_store *store, bool files, const char *fs_master_token_file,
		  void (*say)(void *ctx, const char *text), void *ctx, struct skv_fsck_report *out,
		  struct skv_error *err)
{
	uint32_t n = 1;
	int rc = count(store, &n, err);

	*out = (struct skv_fsck_report){ 0 };
	for (uint32_t i = 0; rc == SKV_OK && i < n; i++) {
		struct skv_store *view = store;
		struct skv_fsck_report one;

		if (i)
			rc = skv_store_partition(store, i, REGISTRY_SECRET, &view, err);
		if (rc == SKV_OK)
			rc = fsck_one(view, i, files, fs_master_token_file, say, ctx, &one, err);
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
	return rc;
}
