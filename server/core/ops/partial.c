/*
 * partial.c - ends single writes, named by key and slot: for protocols without sessions.
 *
 * Calls refer only to writes of anonymous sessions, which otherwise end only by their deadline: a
 * write that a call finds open stays open until the call's record is durable. Writes of any session
 * whose blocks are deleted (erase.c) are given up in the same way.
 *
 * Prepare: the named writes are marked, so that each is in one record only and its session does not
 * expire meanwhile. Apply: they are committed or given up. Undo: clears the marks. A repeated call
 * waits for the first one with an empty record. Under the write lock.
 */
#include <ops/partial.h>

#include <assert.h>

#include <skv/mem.h>

#include <lock/core.h>
#include <lock/gate.h>
#include <lock/lock.h>
#include <model/block.h>
#include <model/find.h>
#include <model/mark.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/session.h>
#include <model/volume.h>
#include <model/table.h>
#include <journal/change.h>
#include <journal/record.h>
#include <journal/replay.h>

#define AHEAD 16u /* entries prefetched */

/* Returns the slot that shows whether the write is ENDING. */
static struct slot *marked_slot(struct partition *p, const struct session_write *w)
{
	ASSERT_EXCLUSIVE(p);
	return &block_get(p, w->block)->slot[__builtin_ctz(w->specs)];
}

int partial_add(struct partition *p, struct partial *t, struct session *s, uint32_t write,
		bool success)
{
	struct slot *slot = marked_slot(p, &s->write[write]);
	void *v = t->v;

	assert(!s->pending && !(slot->checksum & ENDING));
	if (skv_grow(&v, &t->cap, t->n + 1u, sizeof *t->v) != SKV_OK)
		return SKV_E_NOMEM;
	t->v = v;
	t->v[t->n++] = (struct ended){ s, write, success };
	slot->checksum |= ENDING;
	s->ending++;
	return SKV_OK;
}

/* ---- apply ----------------------------------------------------------------------------------- */

static void partial_apply(struct partition *p, struct change *ch)
{
	struct partial *t = (struct partial *)ch;
	uint64_t use = use_now(p, skv_now_ms(p->core->clock));

	ASSERT_EXCLUSIVE(p);
	for (uint32_t i = 0; i < t->n; i++) {
		const struct ended *e = &t->v[i];
		struct session *s = e->session;

		assert(s->ending > 0);
		s->ending--;
		if (!s->inst)
			continue; /* the instance was dropped first */
		t->committed += e->success;
		t->given_up += !e->success;
		session_partial(p, s, e->write, e->success, use);
	}
	COUNT(p->core, committed_blocks, t->committed);
	COUNT(p->core, failed_blocks, t->given_up);
}

static void partial_undo(struct partition *p, struct change *ch)
{
	const struct partial *t = (struct partial *)ch;

	ASSERT_EXCLUSIVE(p);
	for (uint32_t i = 0; i < t->n; i++) {
		struct session *s = t->v[i].session;

		assert(s->ending > 0);
		s->ending--;
		if (s->inst)
			marked_slot(p, &s->write[t->v[i].write])->checksum &= ~ENDING;
	}
}

static void partial_destroy(struct change *ch) { skv_free(((struct partial *)ch)->v); }

static bool partial_frees_slots(const struct change *ch)
{
	const struct partial *t = (const struct partial *)ch;

	for (uint32_t i = 0; i < t->n; i++)
		if (!t->v[i].success)
			return true;
	return t->n == 0; /* an empty change waits for one that may free slots */
}

/* Ends a run of a session's writes; *s is NULL once the session has ended. */
static int partial_run(struct replay *r, struct session **s, uint64_t first, uint64_t n,
		       bool success, uint64_t use, struct skv_error *err)
{
	for (uint64_t i = first; i < first + n; i++) {
		bool last;

		if (!*s || i >= (*s)->n_write || !(*s)->write[i].specs)
			return corrupt(err, "partial: no such write");
		last = (*s)->n_left == 1 && (*s)->anonymous;
		session_partial(r->p, *s, (uint32_t)i, success, use);
		*s = last ? NULL : *s;
	}
	return SKV_OK;
}

static int replay_partial(struct replay *r, struct skv_rd *in, struct skv_error *err)
{
	uint64_t use = use_now(r->p, r->now);
	bool skip = false;
	struct session *s = NULL;
	int rc = SKV_OK;

	while (rc == SKV_OK && skv_rd_left(in)) {
		uint64_t what = skv_get_varint(in), n = skv_get_varint(in);
		bool same = what >> 1 & 1;

		if (!same)
			rc = replay_session(r, get_key(in), &s, err);
		if (rc == SKV_OK &&
		    (in->failed || n == 0 || n > SKV_MAX_KEYS || what >> 2 > SKV_MAX_KEYS))
			rc = corrupt(err, "partial: malformed");
		if (rc != SKV_OK)
			return rc;
		skip = same ? skip : !s; /* of an unknown instance */
		/* other sessions end single writes only by giving them up */
		if (s && !s->anonymous && what & 1)
			return corrupt(err, "partial: not such a session");
		rc = skip ? SKV_OK : partial_run(r, &s, what >> 2, n, what & 1, use, err);
	}
	return rc;
}

const struct change_ops partial_ops = {
	.record = { "partial", replay_partial },
	.size = sizeof(struct partial),
	.apply = partial_apply,
	.undo = partial_undo,
	.destroy = partial_destroy,
	.frees_slots = partial_frees_slots,
};

struct partial *partial_make(void) { return (struct partial *)change_make(&partial_ops); }

int partial_record(struct partial *t)
{
	t->change.urgent = true;
	record_partial(&t->change.rec, t->v, t->n);
	return t->change.rec.failed ? SKV_E_NOMEM : SKV_OK;
}

void partial_drop(struct partition *p, struct partial *t)
{
	if (!t)
		return;
	partial_undo(p, &t->change);
	change_destroy(&t->change);
}

static int fill_partial(struct waiter *w, struct partition *p, const struct change *ch, int status)
{
	const struct partial *t = (const struct partial *)ch;
	struct skv_partial_res *res = w->res;
	const struct skv_partial_req *req = w->req;

	(void)p;
	if (status != SKV_OK)
		return status;
	*res = (struct skv_partial_res){ .committed = t->committed, .given_up = t->given_up,
					.ignored_commits = req->n_commit - t->committed,
					.ignored_give_ups = req->n_give_up - t->given_up };
	return SKV_OK;
}

/* ---- prepare --------------------------------------------------------------------------------- */

struct search_for {
	struct partition *p;
	struct instance *inst;
	uint32_t volume;
	struct partial *t;
	bool on_its_way; /* a named write is ENDING already */
};

/* The block with the slot at this offset. NULL: none of the instance's. */
static struct block *block_at(const struct search_for *f, uint64_t offset)
{
	const struct skv_pool *pool = f->p->volume[f->volume].pool;
	struct block *b;
	uint32_t slab, slot;

	if (!skv_pool_at(pool, 0, offset, &slab, &slot) || !skv_pool_is_used(pool, slab, slot))
		return NULL;
	b = block_get(f->p, skv_pool_owner(pool, slab, slot));
	__builtin_prefetch(b, 1);
	return b;
}

static void choose(struct search_for *f, struct block *b, const struct skv_key *key)
{
	struct slot *slot = b ? &b->slot[0] : NULL;
	struct session *s;

	if (!b || block_instance(b) != f->inst || (key && !skv_key_equal(b->key, *key)) ||
	    slot->state != SLOT_WRITING)
		return;
	s = f->p->session[(uint32_t)slot->checksum - 1];
	if (!s->anonymous || s->pending) /* the session is starting or expiring */
		return;
	if (slot->checksum & ENDING)
		f->on_its_way = true;
	else
		(void)partial_add(f->p, f->t, s, (uint32_t)(slot->generation - s->generation),
				  key != NULL); /* space is reserved */
}

static void choose_all(struct search_for *f, const struct skv_key *keys, const uint64_t *offsets,
		       uint32_t n)
{
	struct block *b[AHEAD];

	for (uint32_t i = 0; i < n + AHEAD; i++) {
		if (i >= AHEAD && i - AHEAD < n)
			choose(f, b[i % AHEAD], keys ? &keys[i - AHEAD] : NULL);
		if (i < n)
			b[i % AHEAD] = block_at(f, offsets[i]);
	}
}

static int queue(struct partition *p, struct partial *t, struct waiter *w)
{
	ASSERT_EXCLUSIVE(p);
	if (partial_record(t) != SKV_OK) {
		partial_drop(p, t);
		return SKV_E_NOMEM;
	}
	t->change.relaxed =
		((const struct skv_partial_req *)w->req)->relaxed && p->core->o.relaxed_ms > 0;
	change_wait(&t->change, w);
	change_queue(p, &t->change);
	return SKV_PENDING;
}

static int partial_locked(struct partition *p, const struct skv_partial_req *req, struct waiter *w)
{
	struct search_for f = { .p = p };
	struct partial none = { 0 };
	int at, rc = instance_need(p, req->tenant, req->instance, "instance", &f.inst, w->err);

	ASSERT_EXCLUSIVE(p);
	if (rc != SKV_OK)
		return rc;
	at = volume_of_offsets(p, f.inst);
	if (at < 0)
		return skv_fail(w->err, SKV_E_UNSUPPORTED, "instance",
				"instance '%s' does not lie on one external storage",
				req->instance);
	f.volume = (uint32_t)at;
	f.t = partial_make();
	if (!f.t)
		return SKV_E_NOMEM;
	f.t->cap = req->n_commit + req->n_give_up + 1;
	f.t->v = skv_malloc(f.t->cap * sizeof *f.t->v);
	if (!f.t->v) {
		change_destroy(&f.t->change);
		return SKV_E_NOMEM;
	}
	choose_all(&f, req->keys, req->offsets, req->n_commit);
	choose_all(&f, NULL, req->give_up, req->n_give_up);
	if (f.t->n || f.on_its_way)
		return queue(p, f.t, w);
	change_destroy(&f.t->change);
	return fill_partial(w, p, &none.change, SKV_OK);
}

int skv_core_finish_partial(struct skv_core *c, const struct skv_partial_req *req,
			    struct skv_partial_res *res, struct skv_arena *a, struct skv_error *err,
			    const struct skv_done *done)
{
	struct waiter *w = skv_arena_calloc(a, 1, sizeof *w);
	int rc = core_gate(c, err);

	if (rc != SKV_OK)
		return rc;
	if (req->n_commit > SKV_MAX_KEYS)
		return skv_fail(err, SKV_E_TOO_LARGE, "keys", "at most %u", SKV_MAX_KEYS);
	if (req->n_give_up > SKV_MAX_KEYS)
		return skv_fail(err, SKV_E_TOO_LARGE, "give_up", "at most %u", SKV_MAX_KEYS);
	if (!w)
		return SKV_E_NOMEM;
	*w = (struct waiter){ .completion.done = *done, .fill = fill_partial, .req = req,
			      .res = res, .arena = a, .err = err };
	core_lock(c);
	rc = c->partition ? partial_locked(c->partition, req, w)
			  : gate_recovering(err);
	core_unlock(c);
	return rc;
}
