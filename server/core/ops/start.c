/*
 * start.c - opens write sessions: hands out slots for blocks about to be written.
 *
 * A start classifies its keys, takes slots, creates the blocks' entries and queues its journal
 * record; the client gets its slots when the record is durable. If there is no room, it queues the
 * removal of enough blocks (or the creation of a slab file) and waits in its group's queue until
 * slots become free: first come, first served, also between groups that share a storage; groups
 * without a shared storage do not wait for each other. Under the write lock; no I/O here.
 */
#include <ops/start.h>

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <skv/key_set.h>
#include <skv/mem.h>

#include <lock/core.h>
#include <lock/gate.h>
#include <lock/lock.h>
#include <model/block.h>
#include <model/device.h>
#include <model/birth.h>
#include <model/find.h>
#include <model/index.h>
#include <model/mark.h>
#include <model/names.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/rules.h>
#include <model/queue.h>
#include <model/session.h>
#include <model/volume.h>
#include <model/table.h>
#include <model/tenant.h>
#include <journal/change.h>
#include <journal/record.h>
#include <journal/snapshot.h>
#include <ops/limits.h>
#include "plan.h"
#include "placement.h"
#include "start_answer.h"
#include "start_line.h"
#include "start_replay.h"

#define MAX_WAIT_MS 15000u  /* longest wait of a start for room */

/* A session whose start is in flight to the journal. */
struct opening {
	struct change change;
	struct session *session;
};

static const struct skv_start_req *req_of(const struct start_op *op) { return op->w.req; }

/* ---- its session ----------------------------------------------------------------------------- */

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

static struct session *session_of_plan(struct partition *p, const struct start_op *op,
				       const struct plan *plan)
{
	const struct skv_start_req *req = req_of(op);
	const struct skv_core_options *o = &p->core->o;
	struct session *s = session_make(req->n_keys, plan->n_write);
	uint32_t write = 0;

	ASSERT_EXCLUSIVE(p);
	if (!s)
		return NULL;
	s->id = session_new_id(p->core->number);
	s->tenant = tenant_hash(req->tenant);
	s->request = op->request;
	s->body = op->body;
	s->anonymous = req->anonymous;
	s->independent = req->independent;
	s->inst = plan->inst;
	s->instance = plan->inst->id;
	s->state = SKV_SESSION_OPEN;
	s->starting = true;
	s->deadline_ms = req->deadline_ms ? req->deadline_ms : o->session_default_ms;
	if (s->deadline_ms > o->session_max_ms)
		s->deadline_ms = o->session_max_ms;
	s->deadline_at = skv_now_ms(p->core->clock) + s->deadline_ms;
	s->grace_ms = least(req->grace_ms, o->grace_max_ms);
	s->created_ms = birth_now(p);
	s->n_left = plan->n_write;
	s->generation = p->next_generation;
	s->specs = plan->specs;
	s->bytes = plan->bytes;
	s->has_parent = req->has_parent;
	s->parent = req->parent;
	memcpy(s->keys, req->keys, req->n_keys * sizeof *s->keys);
	memcpy(s->outcome, plan->outcome, req->n_keys);
	for (uint32_t i = 0; i < req->n_keys; i++)
		if (plan->outcome[i] == SKV_START_WRITE)
			s->write[write++].specs = plan->missing[i];
	return s;
}

/* The shortest allowed grace: writes to the granted slots may arrive this long after the
 * deadline. */
static uint32_t least_grace(const struct partition *p, const struct grants *g)
{
	uint32_t most = 0;

	for (uint32_t s = 0; s < SKV_MAX_SPECS; s++)
		/* a plan's slots are all in one storage */
		if (g->n[s] && p->volume[g->v[s][0].volume].dev->ops->least_grace_ms > most)
			most = p->volume[g->v[s][0].volume].dev->ops->least_grace_ms;
	return most;
}

/* A relaxed writer must be done before slots, free again after a power loss that lost its start,
 * may be reused. */
static bool may_be_relaxed(const struct partition *p, const struct skv_start_req *req,
			   const struct session *s)
{
	return req->relaxed && s->anonymous &&
	       session_grace_end(p, s) - s->deadline_at + s->deadline_ms <= p->core->o.relaxed_ms;
}

/* ---- the change ------------------------------------------------------------------------------ */

static void start_apply(struct partition *p, struct change *ch)
{
	struct session *s = ((struct opening *)ch)->session;

	ASSERT_EXCLUSIVE(p);
	assert(s->starting && s->pending == ch);
	s->starting = false;
	s->pending = NULL;
	COUNT(p->core, start_writes, s->n_write);
}

static void start_undo(struct partition *p, struct change *ch)
{
	struct session *s = ((struct opening *)ch)->session;

	ASSERT_EXCLUSIVE(p);
	assert(s->starting && s->pending == ch);
	start_unlink(p, s);
	session_destroy(p, s);
}

const struct change_ops start_ops = {
	.record = { "start", replay_start },
	.size = sizeof(struct opening),
	.apply = start_apply,
	.undo = start_undo,
	.makes_more = true,
};

static int fill_applied(struct waiter *w, struct partition *p, const struct change *ch, int status)
{
	ASSERT_EXCLUSIVE(p);
	assert(ch->ops == &start_ops);
	if (status != SKV_OK)
		return status;
	/* If memory is short the session stays open; a retry with the same request id gets the
	 * answer. */
	return start_fill(w, p, ((const struct opening *)ch)->session);
}

/* Slots are taken: creates session, entries, record. Undoes everything on failure. */
static int open_session(struct partition *p, struct start_op *op, struct plan *plan)
{
	struct session *s = session_of_plan(p, op, plan);
	struct change *ch = change_make(&start_ops);
	uint32_t grace = least_grace(p, &plan->grants);

	ASSERT_EXCLUSIVE(p);
	if (s && s->grace_ms < grace)
		s->grace_ms = grace;
	if (!s || !ch)
		grants_free(p, &plan->grants);
	if (!s || !ch || start_link(p, s, &plan->grants, req_of(op)->names, plan->have) != SKV_OK) {
		session_free(s);
		change_destroy(ch);
		return SKV_E_NOMEM;
	}
	s->relaxed = ch->relaxed = may_be_relaxed(p, req_of(op), s);
	record_start(&ch->rec, p, s);
	if (ch->rec.failed || session_add(p, s) != SKV_OK) {
		start_unlink(p, s);
		session_free(s);
		change_destroy(ch);
		return SKV_E_NOMEM;
	}
	birth_note(p, s->generation, s->created_ms);
	generation_least(p, p->next_generation + s->n_write);
	((struct opening *)ch)->session = s;
	s->pending = ch;
	op->w.fill = fill_applied;
	change_wait(ch, &op->w);
	change_queue(p, ch);
	placement_taken(p, plan);
	return SKV_PENDING;
}

/* ---- one attempt ----------------------------------------------------------------------------- */

static bool too_late(const struct partition *p, const struct start_op *op)
{
	return skv_now_ms(p->core->clock) - op->since > MAX_WAIT_MS;
}

static bool is_wait(int rc)
{
	return rc == TRY_WAIT || rc == TRY_WAIT_QUOTA || rc == TRY_WAIT_TENANT;
}

static int give_up(struct start_op *op)
{
	return skv_fail(op->w.err, SKV_E_NO_SPACE, NULL, "eviction did not free room in time");
}

static int find_placement(struct partition *p, struct start_op *op, struct plan *plan,
			  bool may_take)
{
	const struct skv_start_req *req = req_of(op);
	int rc = plan->n_write ? placement_limits(p, plan, op->w.err) : SKV_OK;

	if (rc != SKV_OK || plan->n_write == 0)
		return rc;
	if (!may_take)
		return TRY_WAIT;
	rc = limits_check(p, plan, op->w.err);
	if (rc != SKV_OK)
		return rc;
	return req->offsets ? placement_take_offsets(p, req, plan, op->w.arena, op->w.err)
			   : placement_take(p, plan, op->w.arena, op->w.err);
}

/* Leaves out all blocks after the first n writes, and reports the refused ones to the policy. */
static void cut(struct partition *p, struct plan *plan, uint64_t n, bool whole)
{
	const struct group *g = plan->inst->group;
	const uint32_t before = plan->n_write;
	uint64_t use = plan->newcomers.refused ? use_now(p, skv_now_ms(p->core->clock)) : 0;

	plan_cut(plan, n, whole);
	if (plan_leaves_out(plan))
		COUNT(p->core, start_not_admitted, before - plan->n_write);
	for (uint32_t i = plan->n_write; plan->newcomers.refused && i < plan->newcomers.n; i++) {
		struct skv_policy_block b = { .hash = plan->newcomers.hash[i],
					      .use = use };

		g->policy->refused(g->policy_state, &b, i + 1 == plan->newcomers.n);
	}
}

/* The same, without the blocks that the policy does not admit, and of a request that is larger than
 * the store without those behind its first ones, if the caller can do without. */
static int find_admitted_placement(struct partition *p, struct start_op *op, struct plan *plan,
				   bool may_take)
{
	const uint64_t most = placement_most(p, plan);
	int rc;

	if (most && plan->newcomers.n > most) {
		plan->newcomers.full = true;
		cut(p, plan, most, false);
		plan->newcomers.full = false;
	}
	rc = find_placement(p, op, plan, may_take);
	if (!plan_leaves_out(plan) ||
	    (rc != SKV_E_NO_SPACE && rc != SKV_E_QUOTA &&
	     !(is_wait(rc) && too_late(p, op))))
		return rc;
	skv_error_clear(op->w.err);
	cut(p, plan, placement_now(p, plan), false);
	return find_placement(p, op, plan, true);
}

/* The same for as many blocks as there is room for, possibly none. */
static int find_some_placement(struct partition *p, struct start_op *op, struct plan *plan,
			       bool may_take)
{
	int rc;

	plan->no_wait = true;
	plan_cut(plan, placement_bound(p, plan), req_of(op)->whole);
	rc = find_placement(p, op, plan, may_take);
	if (rc == SKV_E_NO_SPACE || rc == SKV_E_QUOTA ||
	    (is_wait(rc) && too_late(p, op))) {
		skv_error_clear(op->w.err);
		cut(p, plan, placement_now(p, plan), req_of(op)->whole);
		rc = find_placement(p, op, plan, true);
	}
	return rc;
}

/* Existing blocks count as used, and stay while room is made for the others. */
static void use_existing(struct partition *p, struct plan *plan)
{
	uint64_t use = use_now(p, skv_now_ms(p->core->clock));

	plan->keeps = true;
	for (uint32_t i = 0; i < plan->n_keys; i++)
		if (plan->outcome[i] == SKV_START_EXISTS)
			block_use(plan->have[i], use);
}

/* TRY_WAIT...: not now. SKV_PENDING: the record is queued. */
static int start_try(struct partition *p, struct start_op *op, bool may_take)
{
	const struct skv_start_req *req = req_of(op);
	struct plan plan = { .since = op->since, .unsummed = req->unsummed,
			     .storage = req->storage, .avoid = req->avoid,
			     .n_avoid = req->n_avoid };
	int rc = instance_need(p, req->tenant, req->instance, "instance", &plan.inst, op->w.err);

	if (rc == SKV_OK)
		rc = plan_make(p, req, op->w.arena, &plan, op->w.err);
	if (rc != SKV_OK)
		return rc;
	if (req->want_existing)
		use_existing(p, &plan);
	rc = req->fit ? find_some_placement(p, op, &plan, may_take)
		      : find_admitted_placement(p, op, &plan, may_take);
	if (rc == SKV_OK && plan.n_write == 0)
		return start_fill_none(p, &op->w, &plan);
	if (rc == SKV_OK)
		rc = open_session(p, op, &plan);
	if (is_wait(rc) && too_late(p, op))
		return give_up(op);
	assert(rc != SKV_OK); /* open_session answers later */
	return rc;
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* A request id seen before: the same answer, or the session's outcome. */
static int repeat(struct partition *p, struct start_op *op, struct session *s)
{
	ASSERT_EXCLUSIVE(p);
	if (!skv_key_equal(s->body, op->body))
		return skv_fail(op->w.err, SKV_E_CONFLICT, "request_id",
				"used before with another body");
	if (s->starting) {
		op->w.fill = fill_applied;
		change_wait(s->pending, &op->w);
		return SKV_PENDING;
	}
	return start_fill(&op->w, p, s);
}

static struct session *seen_before(const struct partition *p, const struct start_op *op)
{
	return op->request.hi || op->request.lo ? session_by_request(p, op->request) : NULL;
}

/* Returns true if a start of the same tenant that waits for the tenant's own limit was seen in this
 * round. */
static bool waits_for_own(const struct partition *p, const struct start_op *op)
{
	for (size_t i = 0; i < p->n_tenant; i++)
		if (strcmp(p->tenant[i]->name, req_of(op)->tenant) == 0)
			return p->tenant[i]->turn == p->wait_turn;
	return false;
}

static int serve(struct partition *p, struct start_op *op)
{
	struct session *s = seen_before(p, op); /* by an earlier one in the queue */

	return s ? repeat(p, op, s) : start_try(p, op, true);
}

/* Serves a queue until a start must continue to wait: TRY_WAIT (for slots), TRY_WAIT_QUOTA, or
 * SKV_OK. Starts of tenants at their own limits let starts of others pass. */
static int serve_line(struct partition *p, struct group *g)
{
	struct start_op *before = NULL, *op;

	ASSERT_EXCLUSIVE(p);
	while ((op = before ? before->next : g->wait_head) != NULL) {
		int rc = before && waits_for_own(p, op) ? TRY_WAIT_TENANT : serve(p, op);

		op->own = rc == TRY_WAIT_TENANT;
		if (rc == TRY_WAIT || rc == TRY_WAIT_QUOTA)
			return rc;
		if (op->own) {
			before = op;
			continue;
		}
		start_leave_line(p, g, before);
		if (rc != SKV_PENDING)
			core_complete(p->core, &op->w.completion, rc);
		COUNT(p->core, quota_refused, rc == SKV_E_QUOTA);
	}
	return SKV_OK;
}

/* Returns true if a start in the queue makes others wait. */
static bool has_line(const struct group *g)
{
	const struct start_op *op = g->wait_head;

	while (op && op->own)
		op = op->next;
	return op != NULL;
}

/* The queue with the oldest head, of those not visited in this round. */
static struct group *next_line(const struct partition *p)
{
	struct group *best = NULL;

	for (size_t i = 0; i < p->n_group; i++) {
		struct group *g = p->group[i];

		if (g->wait_head && g->turn != p->wait_turn &&
		    (!best || g->wait_head->since < best->wait_head->since))
			best = g;
	}
	return best;
}

static void expire_line(struct partition *p, struct group *g)
{
	while (g->wait_head && too_late(p, g->wait_head)) {
		struct start_op *op = start_leave_line(p, g, NULL);

		core_complete(p->core, &op->w.completion, give_up(op));
	}
}

/* Returns true if the head of an older queue waits for slots in one of the group's volumes. */
static bool is_behind(const struct partition *p, const struct group *g)
{
	for (uint32_t i = 0; p->n_waiting && i < g->spec.n_storages; i++) {
		int at = volume_find(p, g->spec.storages[i]);

		if (at >= 0 && p->volume[at].wait_turn == p->wait_turn)
			return true;
	}
	return false;
}

/* The queue's head waits for slots in its volumes: younger queues wait behind it there. */
static void goes_before(struct partition *p, const struct group *g)
{
	for (uint32_t i = 0; i < g->spec.n_storages; i++) {
		int at = volume_find(p, g->spec.storages[i]);

		if (at >= 0)
			p->volume[at].wait_turn = p->wait_turn;
	}
}

void start_serve_waiters(struct partition *p)
{
	struct group *g;

	ASSERT_EXCLUSIVE(p);
	p->wait_turn++;
	while (p->n_waiting && (g = next_line(p)) != NULL) {
		g->turn = p->wait_turn;
		if (is_behind(p, g))
			expire_line(p, g);
		else if (serve_line(p, g) == TRY_WAIT)
			goes_before(p, g);
	}
}

/* ---- entry ----------------------------------------------------------------------------------- */

static int refuse_duplicate(const struct skv_start_req *req, struct skv_error *err)
{
	uint32_t at = 0, first = 0;
	char field[SKV_FIELD_MAX];
	int rc = skv_keys_duplicate(req->keys, req->n_keys, &at, &first);

	if (rc != SKV_E_CONFLICT)
		return rc;
	snprintf(field, sizeof field, "keys[%u]", at);
	return skv_fail(err, SKV_E_INVALID, field, "the same key as keys[%u]", first);
}

static int refuse_long_name(const struct skv_start_req *req, struct skv_error *err)
{
	char field[SKV_FIELD_MAX];

	for (uint32_t i = 0; req->names && i < req->n_keys; i++) {
		if (req->names[i].n <= SKV_MAX_BLOCK_NAME)
			continue;
		snprintf(field, sizeof field, "names[%u]", i);
		return skv_fail(err, SKV_E_INVALID, field, "%zu bytes, %u at most", req->names[i].n,
				SKV_MAX_BLOCK_NAME);
	}
	return SKV_OK;
}

static void hash_request(struct start_op *op)
{
	const struct skv_start_req *req = req_of(op);
	struct skv_buf b = { 0 };

	if (!*req->request_id)
		return;
	skv_put_string(&b, req->tenant, strlen(req->tenant));
	skv_put_string(&b, req->instance, strlen(req->instance));
	skv_put_string(&b, req->request_id, strlen(req->request_id));
	if (!b.failed)
		op->request = skv_hash128(b.data, b.len);
	skv_put_varint(&b, req->deadline_ms);
	skv_put_u8(&b, req->has_parent);
	skv_put_bytes(&b, &req->parent, sizeof req->parent);
	for (uint32_t i = 0; i < req->n_specs; i++)
		skv_put_string(&b, req->specs[i], strlen(req->specs[i]));
	skv_put_bytes(&b, req->keys, req->n_keys * sizeof *req->keys);
	/* The hash from before they existed, so that it stays valid across updates. */
	if (req->key_specs)
		skv_put_bytes(&b, req->key_specs, req->n_keys * sizeof *req->key_specs);
	if (req->grace_ms || req->fit || req->want_existing || req->independent ||
	    req->selective) {
		skv_put_varint(&b, req->grace_ms);
		skv_put_u8(&b, (uint8_t)(req->fit | req->want_existing << 1 | req->whole << 2 |
					 req->independent << 3 | req->selective << 4));
	}
	if (req->offsets)
		skv_put_bytes(&b, req->offsets, req->n_keys * sizeof *req->offsets);
	for (uint32_t i = 0; req->names && i < req->n_keys; i++)
		skv_put_string(&b, req->names[i].p, req->names[i].n);
	if (!b.failed)
		op->body = skv_hash128(b.data, b.len);
	else
		op->request = (struct skv_key){ 0, 0 };
	skv_buf_destroy(&b);
}

static int admit(struct partition *p, struct start_op *op)
{
	const struct skv_core_options *o = &p->core->o;
	const struct skv_start_req *req = req_of(op);
	struct session *s = seen_before(p, op);
	struct instance *inst;
	struct group *g;
	int rc;

	ASSERT_EXCLUSIVE(p);
	if (s)
		return repeat(p, op, s);
	if (p->open_sessions >= o->max_sessions)
		return skv_fail(op->w.err, SKV_E_TOO_MANY, NULL,
				"%u sessions are open, the most there may be", o->max_sessions);
	if (skv_mem_level() == SKV_MEM_TIGHT)
		return skv_fail(op->w.err, SKV_E_NOMEM, NULL, "the manager's memory is used up: "
				"give it more (memory_max)");
	if (p->journal_bytes >= journal_bound(p))
		return skv_fail(op->w.err, SKV_E_JOURNAL_FULL, NULL,
				"the journal is full: retry when the checkpoint is written");
	if (p->store_full_until > skv_now_ms(p->core->clock))
		return skv_fail(
			op->w.err, SKV_E_STORE_FULL, NULL,
			"the metadata store is full; lookups and deletes go on");
	rc = instance_need(p, req->tenant, req->instance, "instance", &inst, op->w.err);
	if (rc != SKV_OK)
		return rc;
	instance_use(inst);
	if (req->names && !inst->spec.named)
		return skv_fail(op->w.err, SKV_E_INVALID, "names", "instance '%s' keeps none",
				req->instance);
	g = inst->group;
	rc = start_try(p, op, !has_line(g) && !is_behind(p, g));
	if (!is_wait(rc))
		return rc;
	op->own = rc == TRY_WAIT_TENANT;
	if (rc == TRY_WAIT)
		goes_before(p, g);
	start_join_line(p, g, op);
	return SKV_PENDING;
}

static void count_outcome(struct skv_core *c, const struct skv_start_req *req,
			  const struct skv_start_res *res)
{
	COUNT(c, start_keys, req->n_keys);
	for (uint32_t i = 0; i < res->n_keys; i++) {
		if (res->outcome[i] == SKV_START_EXISTS)
			COUNT(c, start_exists, 1);
		else if (res->outcome[i] == SKV_START_BUSY)
			COUNT(c, start_busy, 1);
	}
}

int start_begin(struct skv_core *c, const struct skv_start_req *req, struct skv_start_res *res,
		struct skv_arena *a, struct skv_error *err, const struct skv_done *done)
{
	struct start_op *op = skv_arena_calloc(a, 1, sizeof *op);
	int rc = core_gate(c, err);

	if (rc != SKV_OK)
		return rc;
	if (!op)
		return SKV_E_NOMEM;
	if (req->n_keys == 0 || req->n_keys > SKV_MAX_KEYS)
		return skv_fail(err, SKV_E_INVALID, "keys", "1..%u keys, not %u", SKV_MAX_KEYS,
				req->n_keys);
	if (req->independent && req->has_parent)
		return skv_fail(err, SKV_E_INVALID, "parent", "independent blocks have none");
	rc = refuse_duplicate(req, err);
	if (rc == SKV_OK)
		rc = refuse_long_name(req, err);
	if (rc != SKV_OK)
		return rc;
	op->w = (struct waiter){ .completion.done = *done, .req = req, .res = res, .arena = a,
				 .err = err };
	op->since = skv_now_ms(c->clock);
	hash_request(op);
	core_lock(c);
	rc = c->partition ? admit(c->partition, op)
			  : gate_recovering(err);
	COUNT(c, quota_refused, rc == SKV_E_QUOTA);
	if (rc == SKV_OK)
		count_outcome(c, req, res);
	else if (rc == SKV_PENDING)
		COUNT(c, start_keys, req->n_keys);
	core_unlock(c);
	return rc;
}

int skv_core_start(struct skv_core *c, const struct skv_start_req *req, struct skv_start_res *res,
		   struct skv_arena *a, struct skv_error *err, const struct skv_done *done)
{
	const int rc = rules_pace(c, req->tenant, req->n_keys, err);

	return rc == SKV_OK ? start_begin(c, req, res, a, err, done) : rc;
}
