/*
 * ask.c - administration of one partition as a message: carried out here, or by the manager that
 * owns the partition.
 *
 * Only the manager that leads (it owns partition 0) asks, and whoever is asked does not ask in
 * turn: so nobody waits in a circle. Which calls ask is in objects.c, views.c and capacity.c; how a
 * message travels is what main lends (skv_core_asks). No lock is held while one is under way.
 */
#include "route.h"

#include <assert.h>
#include <stdio.h>

#include <skv/arena.h>
#include <skv/clock.h>

#include <lock/gate.h>
#include <lock/turn.h>

#define AGAIN_MS 3000u /* an ownership may be moving */
#define PAUSE_MS 50u

void skv_core_ask_by(struct skv_core *c, const struct skv_core_asks *by)
{
	if (c->route)
		atomic_store(&c->route->asks, by);
}

/* ---- carried out ----------------------------------------------------------------------------- */

static const char *given(const char *s) { return s && *s ? s : NULL; }

/* What it needs besides. */
static int check(const struct skv_ask *q, struct skv_error *err)
{
	const char *missing = NULL;

	switch (q->what) {
	case SKV_ASK_STORAGE_PUT:
	case SKV_ASK_STORAGE_CREATE:
	case SKV_ASK_STORAGE_CHANGE:
		missing = q->n_storage ? NULL : "storage";
		break;
	case SKV_ASK_GROUP_PUT:
	case SKV_ASK_GROUP_CREATE:
		missing = q->n_group ? NULL : "group";
		break;
	case SKV_ASK_INSTANCE_PUT:
	case SKV_ASK_INSTANCE_CREATE:
		missing = q->n_instance ? NULL : "instance";
		missing = given(q->tenant) ? missing : "tenant";
		break;
	case SKV_ASK_PURGE: return q->n_purge ? SKV_OK
				       : skv_fail(err, SKV_E_INVALID, "purge", "purge is missing");
	case SKV_ASK_INSTANCE_DELETE:
	case SKV_ASK_INSTANCE_DELETE_UNUSED:
		missing = given(q->tenant) ? NULL : "tenant";
		break;
	case SKV_ASK_FILE_DRAIN:
	case SKV_ASK_FILE_FORGET:
		missing = q->n_file ? NULL : "file";
		break;
	case SKV_ASK_STORAGES:
	case SKV_ASK_GROUPS:
	case SKV_ASK_INSTANCES:
	case SKV_ASK_USE:
	case SKV_ASK_STATS:
		return SKV_OK;
	case SKV_ASK_STORAGE_DELETE:
	case SKV_ASK_FILES:
	case SKV_ASK_GROUP_DELETE:
		break;
	}
	if (!missing && !given(q->name))
		missing = "name";
	return missing ? skv_fail(err, SKV_E_INVALID, missing, "%s is missing", missing) : SKV_OK;
}

static int do_storage(struct skv_core *one, const struct skv_ask *q, struct skv_told *t,
		      struct skv_error *err)
{
	struct skv_storage_spec s = *q->storage;
	int rc;

	s.name = q->name;
	switch (q->what) {
	case SKV_ASK_STORAGE_CREATE:
		rc = one_storage_create(one, &s, err);
		t->created = rc == SKV_OK;
		return rc;
	case SKV_ASK_STORAGE_CHANGE: return one_storage_change(one, &s, err);
	default: return one_storage_put(one, &s, &t->created, err);
	}
}

static int do_group(struct skv_core *one, const struct skv_ask *q, struct skv_told *t,
		    struct skv_error *err)
{
	struct skv_group_spec g = *q->group;
	int rc;

	g.name = q->name;
	if (q->what == SKV_ASK_GROUP_PUT)
		return one_group_put(one, &g, q->expects ? &q->expect : NULL, &t->created, err);
	rc = one_group_create(one, &g, err);
	t->created = rc == SKV_OK;
	return rc;
}

static int do_instance(struct skv_core *one, const struct skv_ask *q, struct skv_told *t,
		       struct skv_error *err)
{
	struct skv_instance_spec i = *q->instance;
	int rc;

	i.tenant = q->tenant;
	i.id = q->name;
	if (q->what == SKV_ASK_INSTANCE_PUT)
		return one_instance_put(one, &i, &t->created, err);
	rc = one_instance_create(one, &i, err);
	t->created = rc == SKV_OK;
	return rc;
}

static int do_purge(struct skv_core *one, const struct skv_ask *q, struct skv_told *t,
		    struct skv_arena *a, struct skv_error *err)
{
	struct skv_purge_req req = *q->purge;

	req.tenant = given(q->tenant) ? q->tenant : "";
	t->purged = skv_arena_calloc(a, 1, sizeof *t->purged);
	t->n_purged = t->purged ? 1 : 0;
	return t->purged ? one_purge(one, &req, t->purged, a, err) : SKV_E_NOMEM;
}

static int do_use(struct skv_core *one, struct skv_told *t, struct skv_arena *a,
		  struct skv_error *err)
{
	struct skv_group_view *groups;
	uint32_t n = 0;
	int rc = one_storages(one, NULL, a, &t->storages, &t->n_storages, err);

	if (rc == SKV_OK)
		rc = one_groups(one, NULL, a, &groups, &n, err);
	t->used = n > 0;
	return rc;
}

static int do_stats(struct skv_core *one, struct skv_told *t, struct skv_arena *a,
		    struct skv_error *err)
{
	struct skv_stats s;
	int rc = core_gate(one, err);

	if (rc == SKV_OK)
		rc = one_stats(one, a, &s, err);
	if (rc != SKV_OK)
		return rc;
	*t = (struct skv_told){
		.storages = s.storages, .n_storages = s.n_storages, .groups = s.groups,
		.n_groups = s.n_groups, .instances = s.instances, .n_instances = s.n_instances,
		.blocks = s.blocks, .sessions = s.sessions, .journal_bytes = s.journal_bytes,
		.journal_limit = s.journal_limit, .evicted_blocks = s.evicted_blocks,
		.expired_sessions = s.expired_sessions,
	};
	return SKV_OK;
}

static int carry_out(struct skv_core *one, const struct skv_ask *q, struct skv_told *t,
		     struct skv_arena *a, struct skv_error *err)
{
	switch (q->what) {
	case SKV_ASK_STORAGES:
		return one_storages(one, given(q->name), a, &t->storages, &t->n_storages, err);
	case SKV_ASK_STORAGE_PUT:
	case SKV_ASK_STORAGE_CREATE:
	case SKV_ASK_STORAGE_CHANGE: return do_storage(one, q, t, err);
	case SKV_ASK_STORAGE_DELETE: return one_storage_delete(one, q->name, err);
	case SKV_ASK_FILES: return one_files(one, q->name, a, &t->files, &t->n_files, err);
	case SKV_ASK_FILE_DRAIN:
		return one_file_drain(one, q->name, q->file->file, q->file->draining,
				      q->file->move, err);
	case SKV_ASK_FILE_FORGET: return one_file_forget(one, q->name, q->file->file, err);
	case SKV_ASK_GROUPS:
		return one_groups(one, given(q->name), a, &t->groups, &t->n_groups, err);
	case SKV_ASK_GROUP_PUT:
	case SKV_ASK_GROUP_CREATE: return do_group(one, q, t, err);
	case SKV_ASK_GROUP_DELETE: return one_group_delete(one, q->name, err);
	case SKV_ASK_INSTANCES:
		return one_instances(one, given(q->tenant), given(q->name), a, &t->instances,
				     &t->n_instances, err);
	case SKV_ASK_INSTANCE_PUT:
	case SKV_ASK_INSTANCE_CREATE: return do_instance(one, q, t, err);
	case SKV_ASK_INSTANCE_DELETE:
		return one_instance_delete(one, q->tenant, q->name, err);
	case SKV_ASK_INSTANCE_DELETE_UNUSED:
		return one_instance_delete_unused(one, q->tenant, q->name, q->unused_ms,
						  q->with_blocks, err);
	case SKV_ASK_PURGE: return do_purge(one, q, t, a, err);
	case SKV_ASK_USE: return do_use(one, t, a, err);
	case SKV_ASK_STATS: return do_stats(one, t, a, err);
	}
	return skv_fail(err, SKV_E_INVALID, "what", "this manager does not know it");
}

int skv_core_asked(struct skv_core *c, const struct skv_ask *q, struct skv_told *out,
		   struct skv_arena *a, struct skv_error *err)
{
	const struct route *r = c->route;
	struct skv_core *one = c;
	int rc = check(q, err);

	*out = (struct skv_told){ .created = false };
	if (rc == SKV_OK && (r ? q->partition >= r->n : q->partition != c->o.partition))
		rc = skv_fail(err, SKV_E_INVALID, "partition", "there is no partition %u here",
			      (unsigned)q->partition);
	if (rc != SKV_OK)
		return rc;
	if (r)
		one = r->core[q->partition];
	rc = core_gate(one, err);
	return rc == SKV_OK ? carry_out(one, q, out, a, err) : rc;
}

/* ---- asked ----------------------------------------------------------------------------------- */

static bool may_ask(const struct route *r)
{
	return atomic_load(&r->asks) && one_state_get(r->core[0]) == SKV_CORE_READY;
}

bool route_must_wait(const struct route *r)
{
	return !skv_thread_waits && may_ask(r) && place_elsewhere(r);
}

bool route_asks(const struct route *r, const struct skv_core *one)
{
	return r && skv_thread_waits && one_state_get(one) == SKV_CORE_STANDBY && may_ask(r);
}

int route_everywhere(const struct route *r, struct skv_error *err)
{
	bool there = false;
	int rc;

	for (uint32_t i = 0; i < r->n; i++) {
		rc = core_gate(r->core[i], err);
		if (rc == SKV_OK)
			continue;
		if (one_state_get(r->core[i]) != SKV_CORE_STANDBY || !may_ask(r))
			return rc;
		there = true;
	}
	skv_error_clear(err);
	if (!there || skv_thread_waits)
		return SKV_OK;
	return skv_fail(err, SKV_E_NOT_OWNER, NULL, "another manager has a partition");
}

/* Nothing was done, and the next moment may be better. */
static bool passes(int rc)
{
	return rc == SKV_E_NOT_OWNER || rc == SKV_E_NOT_READY || rc == SKV_E_NETWORK;
}

static int tell(const struct skv_ask *q, int rc, struct skv_error *err)
{
	char why[SKV_MESSAGE_MAX];

	assert(rc != SKV_OK);
	if (!passes(rc) && rc != SKV_E_UNKNOWN_OUTCOME)
		return rc;
	snprintf(why, sizeof why, "%s", err && *err->message ? err->message : skv_status_text(rc));
	return skv_fail(err, passes(rc) ? SKV_E_UNAVAILABLE : rc, NULL,
			"partition %u cannot be asked now, %.200s: retry", (unsigned)q->partition,
			why);
}

int route_ask(struct skv_core *c, struct skv_core *at, struct skv_ask *q, struct skv_told *out,
	      struct skv_arena *a, struct skv_error *err)
{
	const uint64_t until = skv_now_us() + AGAIN_MS * 1000u;
	struct route *r = c->route;
	bool asked = false;
	int rc;

	assert(r ? at->o.partition < r->n && r->core[at->o.partition] == at : at == c);
	q->partition = at->o.partition;
	while (route_asks(r, at)) {
		const struct skv_core_asks *by = atomic_load(&r->asks);

		assert(skv_thread_locks == 0);
		asked = true;
		*out = (struct skv_told){ .created = false };
		skv_error_clear(err);
		rc = by->ask(by->ctx, q, out, a, err);
		if (rc == SKV_OK)
			return rc;
		if (!passes(rc) || skv_now_us() >= until || c->o.manual ||
		    !core_wait(c, PAUSE_MS, NULL))
			return tell(q, rc, err);
	}
	if (asked && !may_ask(r)) { /* it is for who leads now */
		rc = core_gate(c, err);
		return rc == SKV_OK ? SKV_E_NOT_READY : rc;
	}
	return skv_core_asked(c, q, out, a, err);
}
