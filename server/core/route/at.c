/*
 * at.c - administration of one partition, here or at another manager. See at.h.
 *
 * Only the lead (the owner of partition 0) calls other managers, and a called manager calls no
 * other: so no cycle of waiting managers can form. A call is the ordinary operation of the native
 * API, for that partition alone; skv_cluster_ask_by sets its transport. No lock is held during a
 * call.
 */
#include "at.h"

#include <assert.h>
#include <stdio.h>

#include <skv/arena.h>
#include <skv/clock.h>

#include <lock/gate.h>
#include <lock/turn.h>

#include "route.h"

#define AGAIN_MS 3000u /* an ownership may be moving */
#define PAUSE_MS 50u
/* The call goes to no other manager: the partition is owned here, or by none. */
#define HERE SKV_PENDING

void skv_cluster_ask_by(struct skv_cluster *c, skv_ask_fn *ask, void *ctx)
{
	assert(!atomic_load(&c->route->ask));
	c->route->ask_ctx = ctx;
	atomic_store(&c->route->ask, ask);
}

static bool may_ask(const struct route *r)
{
	return atomic_load(&r->ask) && one_state_get(r->core[0]) == SKV_CORE_READY;
}

bool route_must_wait(const struct route *r)
{
	return !skv_thread_waits && may_ask(r) && place_elsewhere(r);
}

static bool must_ask(const struct route *r, const struct skv_core *at)
{
	return skv_thread_waits && one_state_get(at) == SKV_CORE_STANDBY && may_ask(r);
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

static int tell(const struct skv_peer_call *q, int rc, struct skv_error *err)
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

/* Asks the owner of the partition, or returns HERE. *created may be NULL. */
static int ask(struct skv_cluster *at, struct skv_peer_call *q, bool *created,
	       struct skv_error *err)
{
	const uint64_t until = skv_now_us() + AGAIN_MS * 1000u;
	struct route *r = at->route;
	bool asked = false;
	int rc;

	q->partition = at->core->number;
	while (must_ask(r, at->core)) {
		assert(skv_thread_locks == 0 && at == &r->part[q->partition]);
		asked = true;
		skv_error_clear(err);
		rc = atomic_load(&r->ask)(r->ask_ctx, q, err);
		if (rc == SKV_OK && created)
			*created = q->created;
		if (rc == SKV_OK)
			return rc;
		if (!passes(rc) || skv_now_us() >= until || r->manual ||
		    !core_wait(r->core[0], PAUSE_MS, NULL))
			return tell(q, rc, err);
	}
	if (!asked || may_ask(r))
		return HERE;
	rc = core_gate(r->core[0], err); /* the request is for the current lead */
	return rc == SKV_OK ? SKV_E_NOT_READY : rc;
}

/* ---- views ----------------------------------------------------------------------------------- */

/* A view of an object, and a page of the list. */
#define VIEW(kind, whose)                                                                          \
	struct skv_##kind##_view *v = skv_arena_calloc(a, 1, sizeof *v);                           \
	struct skv_peer_call q = { .op = SKV_OP_##kind##_get, .tenant = whose, .name = name,       \
				   .arena = a, .res = v };                                         \
	const int rc = v ? ask(at, &q, NULL, err) : SKV_E_NOMEM;                                   \
                                                                                                   \
	if (rc == SKV_OK)                                                                          \
		*out = v;
#define PAGE(kind)                                                                                 \
	int at_##kind##_list(struct skv_cluster *at, const struct skv_page *page,                  \
			     struct skv_arena *a, struct skv_##kind##_list *out,                   \
			     struct skv_error *err)                                                \
	{                                                                                          \
		struct skv_peer_call q = { .op = SKV_OP_##kind##_list, .tenant = page->tenant,     \
					   .page = page, .arena = a, .res = out };                 \
		const int rc = ask(at, &q, NULL, err);                                             \
                                                                                                   \
		return rc == HERE ? one_##kind##_list(at->core, page, a, out, err) : rc;           \
	}

PAGE(storage)
PAGE(group)
PAGE(instance)

int at_storage(struct skv_cluster *at, const char *name, struct skv_arena *a,
	       struct skv_storage_view **out, struct skv_error *err)
{
	VIEW(storage, NULL)
	return rc == HERE ? one_storage(at->core, name, a, out, err) : rc;
}

int at_group(struct skv_cluster *at, const char *name, struct skv_arena *a,
	     struct skv_group_view **out, struct skv_error *err)
{
	VIEW(group, NULL)
	return rc == HERE ? one_group(at->core, name, a, out, err) : rc;
}

int at_instance(struct skv_cluster *at, const char *tenant, const char *name, struct skv_arena *a,
		struct skv_instance_view **out, struct skv_error *err)
{
	VIEW(instance, tenant)
	return rc == HERE ? one_instance(at->core, tenant, name, a, out, err) : rc;
}

int at_files(struct skv_cluster *at, const char *storage, struct skv_arena *a,
	     struct skv_file_view **out, uint32_t *n, struct skv_error *err)
{
	struct skv_file_list list = { .n_files = 0 };
	struct skv_page page = SKV_PAGE;
	struct skv_peer_call q = { .op = SKV_OP_file_list, .name = storage, .page = &page,
				   .arena = a, .res = &list };
	struct route_joined all = { .size = sizeof **out };
	int rc;

	do {
		rc = ask(at, &q, NULL, err);
		if (rc == HERE)
			return one_files(at->core, storage, a, out, n, err);
		if (rc == SKV_OK)
			rc = route_join(a, &all, list.files, list.n_files);
	} while (rc == SKV_OK && skv_page_next(&page, list.next));
	*out = all.v;
	*n = all.n;
	return rc;
}

int at_stats(struct skv_cluster *at, const struct skv_page *page, struct skv_arena *a,
	     struct skv_stats *out, struct skv_error *err)
{
	struct skv_peer_call q = { .op = SKV_OP_stats, .tenant = page->tenant, .arena = a,
				   .res = out };
	int rc = ask(at, &q, NULL, err);

	if (rc != HERE)
		return rc;
	rc = core_gate(at->core, err);
	return rc == SKV_OK ? one_stats(at->core, page, a, out, err) : rc;
}

/* ---- changes --------------------------------------------------------------------------------- */

int at_storage_put(struct skv_cluster *at, const struct skv_storage_spec *s, enum skv_put how,
		   bool *created, struct skv_error *err)
{
	struct skv_peer_call q = { .op = SKV_OP_storage_put, .name = s->name, .how = how,
				   .req = s };
	const int rc = ask(at, &q, created, err);

	return rc == HERE ? one_storage_put(at->core, s, how, created, err) : rc;
}

int at_storage_delete(struct skv_cluster *at, const char *name, struct skv_error *err)
{
	struct skv_peer_call q = { .op = SKV_OP_storage_delete, .name = name };
	const int rc = ask(at, &q, NULL, err);

	return rc == HERE ? one_storage_delete(at->core, name, err) : rc;
}

int at_file_put(struct skv_cluster *at, const char *storage, const struct skv_file_wish *wish,
		struct skv_error *err)
{
	struct skv_peer_call q = { .op = SKV_OP_file_put, .name = storage, .req = wish };
	const int rc = ask(at, &q, NULL, err);

	return rc == HERE ? one_file_put(at->core, storage, wish, err) : rc;
}

int at_group_put(struct skv_cluster *at, const struct skv_group_spec *g, enum skv_put how,
		 const uint64_t *expect, bool *created, struct skv_error *err)
{
	struct skv_peer_call q = { .op = SKV_OP_group_put, .name = g->name, .how = how,
				   .version = expect, .req = g };
	const int rc = ask(at, &q, created, err);

	return rc == HERE ? one_group_put(at->core, g, how, expect, created, err) : rc;
}

int at_group_delete(struct skv_cluster *at, const char *name, struct skv_error *err)
{
	struct skv_peer_call q = { .op = SKV_OP_group_delete, .name = name };
	const int rc = ask(at, &q, NULL, err);

	return rc == HERE ? one_group_delete(at->core, name, err) : rc;
}

int at_instance_put(struct skv_cluster *at, const struct skv_instance_spec *i, enum skv_put how,
		    bool *created, struct skv_error *err)
{
	struct skv_peer_call q = { .op = SKV_OP_instance_put, .tenant = i->tenant, .name = i->id,
				   .how = how, .req = i };
	const int rc = ask(at, &q, created, err);

	return rc == HERE ? one_instance_put(at->core, i, how, created, err) : rc;
}

int at_instance_delete(struct skv_cluster *at, const char *tenant, const char *id,
		       const struct skv_unused *unused, struct skv_error *err)
{
	struct skv_peer_call q = { .op = SKV_OP_instance_delete, .tenant = tenant, .name = id,
				   .unused = unused };
	const int rc = ask(at, &q, NULL, err);

	return rc == HERE ? one_instance_delete(at->core, tenant, id, unused, err) : rc;
}

int at_purge(struct skv_cluster *at, const struct skv_purge_req *req, struct skv_purge_res *res,
	     struct skv_arena *a, struct skv_error *err)
{
	struct skv_peer_call q = { .op = SKV_OP_purge, .tenant = req->tenant, .req = req,
				   .res = res, .arena = a };
	const int rc = ask(at, &q, NULL, err);

	return rc == HERE ? one_purge(at->core, req, res, a, err) : rc;
}
