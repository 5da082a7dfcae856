/*
 * start.c - hands out slots for blocks that are about to be written.
 *
 * A start classifies its keys, takes slots, makes the blocks' entries and queues its journal record;
 * slots are named to the client when the record is durable. When there is no room, it queues the
 * removal of enough blocks (or the making of a slab file) and waits in its group's line until slots come
 * free: first come, first served, also between groups that share a storage; groups that do not share one
 * do not wait for each other. All work under the write lock; no I/O here.
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
#include <model/queue.h>
#include <model/session.h>
#include <model/volume.h>
#include <model/table.h>
#include <journal/change.h>
#include <journal/record.h>
#include "plan.h"
#include "placement.h"
#include "start_answer.h"
#include "start_replay.h"

#define MAX_WAIT_MS 15000u  /* before a start that waits for room gives up */

struct start_op {
	struct waiter w; /* req, res, arena, err, done */
	struct start_op *next;
	struct skv_key request;
	struct skv_key body;
	uint64_t since;
};

/* A session whose start is on its way to the journal. */
struct opening {
	struct change change;
	struct session *session;
};

static const struct skv_start_req *req_of(const struct start_op *op) { return op->w.req; }

/* ---- linking ---------------------------------------------------------------------------------- */

static void give_slot(struct partition *p, struct session *s, struct block *b, uint32_t spec, const struct grant *g)
{
	struct instance *inst = s->inst;
	struct slot *slot = &b->slot[spec];

	slot->volume = g->volume;
	slot->slab = g->slab;
	slot->index = g->index;
	slot_set_state(slot, SLOT_WRITING);
	skv_pool_set_owner(p->volume[g->volume].pool, g->slab, g->index, block_id(b));
	used_add(p, inst, slot->volume, (int64_t)inst->spec.specs[spec].size);
}

/* The entry of key i. `have` may tell it, but for one that was made as the parent. */
static struct block *entry_of(const struct partition *p, const struct session *s, uint32_t i, struct block *const *have)
{
	if (have && !(s->has_parent && skv_key_equal(s->parent, s->keys[i])))
		return have[i];
	return index_find(p, s->inst, s->keys[i]);
}

/* Makes it, and hangs it below its predecessor, if it is new. */
static struct block *entry_for(struct partition *p, struct session *s, uint32_t i, struct block *b, struct block *before)
{
	if (!b)
		b = block_make(p, s->inst, s->keys[i]);
	if (!b)
		return NULL;
	/* An entry with children may be an ancestor of `before`: never close a circle. */
	if (before && b != before && b->parent == NO_BLOCK && b->children == 0)
		block_set_parent(p, b, before);
	return b;
}

static struct block *parent_entry(struct partition *p, const struct session *s)
{
	struct block *b = index_find(p, s->inst, s->parent);

	return b ? b : block_make(p, s->inst, s->parent);
}

/* The reverse of start_link, for a start that never became durable: slots are free at once. */
static void unlink_session(struct partition *p, struct session *s)
{
	ASSERT_EXCLUSIVE(p);
	for (uint32_t i = s->n_write; i-- > 0;)
		session_release(p, s, i, 0);
	if (s->has_parent) {
		struct block *b = index_find(p, s->inst, s->parent);

		if (b)
			block_maybe_free(p, b);
	}
}

int start_link(struct partition *p, struct session *s, struct grants *g, const struct skv_bytes *names,
	       struct block *const *have)
{
	uint32_t used[SKV_MAX_SPECS] = { 0 };
	uint32_t done = 0, n_write = s->n_write;
	struct block *before = NULL;

	ASSERT_EXCLUSIVE(p);
	if (s->has_parent && !(before = parent_entry(p, s)))
		n_write = UINT32_MAX; /* nothing is linked, everything given back */
	for (uint32_t i = 0; i < s->n_keys && n_write != UINT32_MAX; i++) {
		struct block *b = entry_of(p, s, i, have);
		struct session_write *w = &s->write[done];

		if (s->outcome[i] != SKV_START_WRITE || !w->specs) {
			before = b ? b : before;
			done += s->outcome[i] == SKV_START_WRITE; /* settled: by replay of a checkpoint */
			continue;
		}
		b = entry_for(p, s, i, b, s->independent ? NULL : before);
		if (!b)
			break;
		block_touch(p, b);
		if (names && block_generation(s->inst, b) == 0 && block_set_name(b, names[i]) != SKV_OK) {
			block_maybe_free(p, b);
			break;
		}
		w->block = block_id(b);
		for (uint32_t spec = 0; specs_left(w->specs, spec); spec++) {
			if (!(w->specs >> spec & 1))
				continue;
			give_slot(p, s, b, spec, &g->v[spec][used[spec]++]);
			b->slot[spec].generation = s->generation + done;
		}
		evict_withhold(p, b); /* not while it is written */
		block_update_live(p, b);
		before = b;
		done++;
	}
	if (done == n_write) {
		if (s->has_parent)
			block_maybe_free(p, index_find(p, s->inst, s->parent));
		return SKV_OK;
	}
	for (uint32_t spec = 0; spec < SKV_MAX_SPECS; spec++) {
		if (g->n[spec])
			g->v[spec] += used[spec];
		g->n[spec] -= used[spec];
	}
	grants_free(p, g);
	s->n_write = done;
	unlink_session(p, s);
	return SKV_E_NOMEM;
}

/* ---- its session ------------------------------------------------------------------------------- */

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

static struct session *session_of_plan(struct partition *p, const struct start_op *op, const struct plan *plan)
{
	const struct skv_start_req *req = req_of(op);
	const struct skv_core_options *o = &p->core->o;
	struct session *s = session_make(req->n_keys, plan->n_write);
	uint32_t write = 0;

	if (!s)
		return NULL;
	skv_random(&s->id, sizeof s->id);
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
	s->created_ms = skv_wall_ms(p->core->clock);
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

/* Writes to what was granted may land so long after the deadline, whatever the manager's own grace is. */
static uint32_t least_grace(const struct partition *p, const struct grants *g)
{
	uint32_t most = 0;

	for (uint32_t s = 0; s < SKV_MAX_SPECS; s++)
		if (g->n[s] && p->volume[g->v[s][0].volume].dev->ops->least_grace_ms > most) /* all of a plan lie in one storage */
			most = p->volume[g->v[s][0].volume].dev->ops->least_grace_ms;
	return most;
}

/* Nobody may write to its slots for longer than free slots rest after a power loss that took the start along. */
static bool may_be_relaxed(const struct partition *p, const struct skv_start_req *req, const struct session *s)
{
	return req->relaxed && s->anonymous && session_grace_end(p, s) - s->deadline_at + s->deadline_ms <= p->core->o.relaxed_ms;
}

/* ---- the change ---------------------------------------------------------------------------------- */

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
	unlink_session(p, s);
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
	/* Out of memory now leaves the session open; the same request id asks again. */
	return start_fill(w, p, ((const struct opening *)ch)->session);
}

/* Slots are taken: session, entries, record. Undoes everything on failure. */
static int open_session(struct partition *p, struct start_op *op, struct plan *plan)
{
	struct session *s = session_of_plan(p, op, plan);
	struct change *ch = change_make(&start_ops);
	uint32_t grace = least_grace(p, &plan->grants);

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
		unlink_session(p, s);
		session_free(s);
		change_destroy(ch);
		return SKV_E_NOMEM;
	}
	birth_note(p, s->generation, birth_look(p));
	p->next_generation += s->n_write;
	((struct opening *)ch)->session = s;
	s->pending = ch;
	op->w.fill = fill_applied;
	change_wait(ch, &op->w);
	change_queue(p, ch);
	return SKV_PENDING;
}

/* ---- one try ----------------------------------------------------------------------------------- */

static bool too_late(const struct partition *p, const struct start_op *op)
{
	return skv_now_ms(p->core->clock) - op->since > MAX_WAIT_MS;
}

static int give_up(struct start_op *op)
{
	return skv_fail(op->w.err, SKV_E_NO_SPACE, NULL, "eviction did not free room in time");
}

static int find_placement(struct partition *p, struct start_op *op, struct plan *plan, bool may_take)
{
	const struct skv_start_req *req = req_of(op);
	int rc = plan->n_write ? placement_limits(p, plan, op->w.err) : SKV_OK;

	if (rc != SKV_OK || plan->n_write == 0)
		return rc;
	if (!may_take)
		return TRY_WAIT;
	rc = placement_quota(p, plan, op->w.err);
	if (rc != SKV_OK)
		return rc;
	return req->offsets ? placement_take_offsets(p, req, plan, op->w.arena, op->w.err)
			   : placement_take(p, plan, op->w.arena, op->w.err);
}

/* The same for as many blocks as there is room for, be it none. */
static int find_some_placement(struct partition *p, struct start_op *op, struct plan *plan, bool may_take)
{
	int rc;

	plan->no_wait = true;
	plan_cut(plan, placement_bound(p, plan), req_of(op)->whole);
	rc = find_placement(p, op, plan, may_take);
	if (rc == SKV_E_NO_SPACE || rc == SKV_E_QUOTA || ((rc == TRY_WAIT || rc == TRY_WAIT_QUOTA) && too_late(p, op))) {
		skv_error_clear(op->w.err);
		plan_cut(plan, placement_now(p, plan), req_of(op)->whole);
		rc = find_placement(p, op, plan, true);
	}
	return rc;
}

/* What exists is used by this, and stays while room is made for the others. */
static void use_existing(struct partition *p, struct plan *plan)
{
	uint64_t use = use_now(p, skv_now_ms(p->core->clock));

	plan->keeps = true;
	for (uint32_t i = 0; i < plan->n_keys; i++)
		if (plan->outcome[i] == SKV_START_EXISTS)
			block_use(plan->have[i], use);
}

/* TRY_WAIT, TRY_WAIT_QUOTA: not now. SKV_PENDING: the record is queued. */
static int start_try(struct partition *p, struct start_op *op, bool may_take)
{
	const struct skv_start_req *req = req_of(op);
	struct plan plan = { .since = op->since };
	int rc = instance_need(p, req->tenant, req->instance, "instance", &plan.inst, op->w.err);

	if (rc == SKV_OK)
		rc = plan_make(p, req, op->w.arena, &plan, op->w.err);
	if (rc != SKV_OK)
		return rc;
	if (req->want_existing)
		use_existing(p, &plan);
	rc = req->fit ? find_some_placement(p, op, &plan, may_take) : find_placement(p, op, &plan, may_take);
	if (rc == SKV_OK && plan.n_write == 0)
		return start_fill_none(p, &op->w, &plan);
	if (rc == SKV_OK)
		rc = open_session(p, op, &plan);
	if ((rc == TRY_WAIT || rc == TRY_WAIT_QUOTA) && too_late(p, op))
		return give_up(op);
	assert(rc != SKV_OK); /* open_session answers later */
	return rc;
}

/* ---- waiting ----------------------------------------------------------------------------------- */

static void wait_in_line(struct partition *p, struct group *g, struct start_op *op)
{
	op->next = NULL;
	if (g->wait_tail)
		g->wait_tail->next = op;
	else
		g->wait_head = op;
	g->wait_tail = op;
	p->n_waiting++;
	COUNT(p->core, start_waits, 1);
}

static struct start_op *leave_line(struct partition *p, struct group *g)
{
	struct start_op *op = g->wait_head;

	g->wait_head = op->next;
	if (!g->wait_head)
		g->wait_tail = NULL;
	p->n_waiting--;
	return op;
}

/* A request id seen before: the same answer, or what became of it. */
static int repeat(struct partition *p, struct start_op *op, struct session *s)
{
	if (!skv_key_equal(s->body, op->body))
		return skv_fail(op->w.err, SKV_E_CONFLICT, "request_id", "used before with another body");
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

/* Serves a line until its first one must go on waiting: TRY_WAIT (for slots), TRY_WAIT_QUOTA, or SKV_OK. */
static int serve_line(struct partition *p, struct group *g)
{
	while (g->wait_head) {
		struct start_op *op = g->wait_head;
		struct session *s = seen_before(p, op); /* by one that stood before it in line */
		int rc = s ? repeat(p, op, s) : start_try(p, op, true);

		if (rc == TRY_WAIT || rc == TRY_WAIT_QUOTA)
			return rc;
		leave_line(p, g);
		if (rc != SKV_PENDING)
			core_complete(p->core, &op->w.completion, rc);
		COUNT(p->core, quota_refused, rc == SKV_E_QUOTA);
	}
	return SKV_OK;
}

/* The line whose first one came first, of those not looked at in this round. */
static struct group *next_line(const struct partition *p)
{
	struct group *best = NULL;

	for (size_t i = 0; i < p->n_group; i++) {
		struct group *g = p->group[i];

		if (g->wait_head && g->turn != p->wait_turn && (!best || g->wait_head->since < best->wait_head->since))
			best = g;
	}
	return best;
}

static void expire_line(struct partition *p, struct group *g)
{
	while (g->wait_head && too_late(p, g->wait_head)) {
		struct start_op *op = leave_line(p, g);

		core_complete(p->core, &op->w.completion, give_up(op));
	}
}

/* The first of an older line waits for slots in one of the group's volumes. */
static bool is_behind(const struct partition *p, const struct group *g)
{
	for (uint32_t i = 0; p->n_waiting && i < g->spec.n_storages; i++) {
		int at = volume_find(p, g->spec.storages[i]);

		if (at >= 0 && p->volume[at].wait_turn == p->wait_turn)
			return true;
	}
	return false;
}

/* The first of the group's line waits for slots in its volumes: those of younger lines wait behind it. */
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

void start_fail_line(struct partition *p, struct group *g, int status, const char *text)
{
	ASSERT_EXCLUSIVE(p);
	while (g->wait_head) {
		struct start_op *op = leave_line(p, g);

		core_complete(p->core, &op->w.completion, skv_fail(op->w.err, status, NULL, "%s", text));
	}
}

void start_fail_waiters(struct partition *p, int status, const char *text)
{
	ASSERT_EXCLUSIVE(p);
	for (size_t i = 0; i < p->n_group; i++)
		start_fail_line(p, p->group[i], status, text);
}

/* ---- entry ---------------------------------------------------------------------------------------- */

int keys_duplicate(const struct skv_key *keys, uint32_t n, uint32_t *at, uint32_t *first)
{
	uint32_t *cells = skv_calloc(skv_key_set_cells(n), sizeof *cells);
	struct skv_key_set set;
	int rc = SKV_OK;

	if (!cells)
		return SKV_E_NOMEM;
	skv_key_set_init(&set, cells, n);
	for (uint32_t i = 0; i < n && rc == SKV_OK; i++) {
		uint32_t *cell = skv_key_set_find(&set, keys, keys[i]);

		if (*cell) {
			*at = i;
			*first = *cell - 1;
			rc = SKV_E_CONFLICT;
		}
		*cell = i + 1;
	}
	skv_free(cells);
	return rc;
}

static int refuse_duplicate(const struct skv_start_req *req, struct skv_error *err)
{
	uint32_t at = 0, first = 0;
	char field[SKV_FIELD_MAX];
	int rc = keys_duplicate(req->keys, req->n_keys, &at, &first);

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
		return skv_fail(err, SKV_E_INVALID, field, "%zu bytes, %u at most", req->names[i].n, SKV_MAX_BLOCK_NAME);
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
	if (req->key_specs) /* else as it was before there were any: hashes outlive an update */
		skv_put_bytes(&b, req->key_specs, req->n_keys * sizeof *req->key_specs);
	if (req->grace_ms || req->fit || req->want_existing || req->independent) {
		skv_put_varint(&b, req->grace_ms);
		skv_put_u8(&b, (uint8_t)(req->fit | req->want_existing << 1 | req->whole << 2 | req->independent << 3));
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

	if (s)
		return repeat(p, op, s);
	if (p->open_sessions >= o->max_sessions)
		return skv_fail(op->w.err, SKV_E_TOO_MANY, NULL, "%u sessions are open, the most there may be",
				o->max_sessions);
	if (p->journal_bytes >= o->journal_limit)
		return skv_fail(op->w.err, SKV_E_JOURNAL_FULL, NULL,
				"the journal is at its bound; a checkpoint must finish first");
	if (p->store_full_until > skv_now_ms(p->core->clock))
		return skv_fail(op->w.err, SKV_E_STORE_FULL, NULL,
				"the disk of the metadata store is full; lookups and deletes go on");
	rc = instance_need(p, req->tenant, req->instance, "instance", &inst, op->w.err);
	if (rc != SKV_OK)
		return rc;
	if (req->names && !inst->spec.named)
		return skv_fail(op->w.err, SKV_E_INVALID, "names", "instance '%s' keeps none", req->instance);
	g = inst->group;
	rc = start_try(p, op, !g->wait_head && !is_behind(p, g));
	if (rc != TRY_WAIT && rc != TRY_WAIT_QUOTA)
		return rc;
	if (rc == TRY_WAIT)
		goes_before(p, g);
	wait_in_line(p, g, op);
	return SKV_PENDING;
}

static void count_outcome(struct skv_core *c, const struct skv_start_req *req, const struct skv_start_res *res)
{
	COUNT(c, start_keys, req->n_keys);
	for (uint32_t i = 0; i < res->n_keys; i++) {
		if (res->outcome[i] == SKV_START_EXISTS)
			COUNT(c, start_exists, 1);
		else if (res->outcome[i] == SKV_START_BUSY)
			COUNT(c, start_busy, 1);
	}
}

int skv_core_start(struct skv_core *c, const struct skv_start_req *req, struct skv_start_res *res,
		   struct skv_arena *a, struct skv_error *err, const struct skv_done *done)
{
	struct start_op *op = skv_arena_calloc(a, 1, sizeof *op);
	int rc = core_gate(c, err);

	if (rc != SKV_OK)
		return rc;
	if (!op)
		return SKV_E_NOMEM;
	if (req->n_keys == 0 || req->n_keys > SKV_MAX_KEYS)
		return skv_fail(err, SKV_E_INVALID, "keys", "1..%u keys, not %u", SKV_MAX_KEYS, req->n_keys);
	if (req->independent && req->has_parent)
		return skv_fail(err, SKV_E_INVALID, "parent", "independent blocks have none");
	rc = refuse_duplicate(req, err);
	if (rc == SKV_OK)
		rc = refuse_long_name(req, err);
	if (rc != SKV_OK)
		return rc;
	op->w = (struct waiter){ .completion.done = *done, .req = req, .res = res, .arena = a, .err = err };
	op->since = skv_now_ms(c->clock);
	hash_request(op);
	core_lock(c);
	rc = c->partition ? admit(c->partition, op) : skv_fail(err, SKV_E_NOT_READY, NULL, "recovering");
	COUNT(c, quota_refused, rc == SKV_E_QUOTA);
	if (rc == SKV_OK)
		count_outcome(c, req, res);
	else if (rc == SKV_PENDING)
		COUNT(c, start_keys, req->n_keys);
	core_unlock(c);
	return rc;
}
