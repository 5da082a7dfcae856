/*
 * move.c - moves: movers copy the bytes of committed blocks to other slots.
 *
 * A *take* gives a mover a portion of the slots to move (move_find.c), with a target for each; a
 * *finish* swaps the copied ones. In between the blocks stay at their old locations for lookups,
 * deletion and eviction: a change in that time only makes the slot fail.
 *
 * Take. Prepare: the targets are taken, without an owner. Its record holds them (HOLD), so that
 * after a restart they are not handed out while the mover may still write. Apply: the mover gets
 * its answer.
 *
 * Finish. Prepare: fixes the slots to swap. Apply: their blocks lie in the targets, the old slots
 * are free, or held while leased. A block may become REMOVING in between: then it is removed at its
 * new location. Removals are recorded by key meanwhile (partition->swapping).
 *
 * Checks. Slots may be given to be verified only (scrub.c, damage.c): nothing of these is durable.
 *
 * Expiry needs no record: the targets are held like those of a failed write. Under the write lock.
 */
#include <ops/move.h>

#include <assert.h>
#include <string.h>

#include <skv/mem.h>

#include <lock/core.h>
#include <lock/gate.h>
#include <lock/lock.h>
#include <lock/one.h>
#include <model/block.h>
#include <model/damage.h>
#include <model/device.h>
#include <model/index.h>
#include <model/move.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/session.h>
#include <model/table.h>
#include <model/tier.h>
#include <model/volume.h>
#include <model/wish.h>
#include <journal/change.h>
#include <journal/record.h>
#include <journal/replay.h>
#include <ops/damage.h>
#include "copy.h"
#include "move_find.h"
#include "scrub.h"

_Static_assert(MAX_MOVE_SLOTS == SKV_MAX_MOVE_SLOTS, "one limit");

/* ---- take ------------------------------------------------------------------------------------ */

struct taking {
	struct change change;
	struct move *move;
};

static void take_apply(struct partition *p, struct change *ch)
{
	struct move *m = ((struct taking *)ch)->move;

	ASSERT_EXCLUSIVE(p);
	assert(m->starting);
	m->starting = false;
	COUNT(p->core, move_starts, m->n);
}

static void give_back(struct partition *p, const struct move_slot *v, uint32_t n)
{
	ASSERT_EXCLUSIVE(p);
	for (uint32_t i = 0; i < n; i++)
		move_give_up(p, &v[i], 0);
}

static void take_undo(struct partition *p, struct change *ch)
{
	struct move *m = ((struct taking *)ch)->move;

	ASSERT_EXCLUSIVE(p);
	assert(m->starting);
	give_back(p, m->v, m->n);
	move_destroy(p, m);
}

static const struct change_ops take_ops = {
	.record = { "take", NULL }, /* the records of a take are HOLDs */
	.size = sizeof(struct taking),
	.apply = take_apply,
	.undo = take_undo,
	.makes_more = true,
};

/* Returns true if the copy is still at its location. */
static bool is_read_there(const struct partition *p, const struct move_slot *m)
{
	const struct instance *inst = instance_by_id(p, m->instance);
	const struct slot *c = tier_copy(p, tier_copies(p, inst), index_find(p, inst, m->key),
					 m->spec);

	return c && c->volume == m->copy.volume && c->slab == m->copy.slab &&
	       c->index == m->copy.index;
}

int move_tell(struct partition *p, const struct move *m, struct skv_arena *a,
	      struct skv_move_take_res *res)
{
	struct file_table files = { .arena = a, .files = &res->files };
	int rc = SKV_OK;

	ASSERT_EXCLUSIVE(p);
	res->checks = m->checks;
	res->from = skv_arena_calloc(a, m->n, sizeof *res->from);
	res->to = m->checks ? NULL : skv_arena_calloc(a, m->n, sizeof *res->to);
	if (!res->from || (!res->to && !m->checks))
		return SKV_E_NOMEM; /* the move expires */
	for (uint32_t i = 0; rc == SKV_OK && i < m->n; i++) {
		const struct move_slot *s = &m->v[i];
		struct slot from = { .generation = s->generation, .checksum = s->checksum,
				     .has_checksum = true, .volume = s->volume, .slab = s->slab,
				     .index = s->index };
		struct slot to = from;

		to.volume = s->to_volume;
		to.slab = s->to_slab;
		to.index = s->to_index;
		if (s->copied) {
			from.volume = s->copy.volume;
			from.slab = s->copy.slab;
			from.index = s->copy.index;
		}
		/* The source was removed meanwhile, perhaps with its slab: nothing to copy. */
		if (!move_source(p, s) || (s->copied && !is_read_there(p, s)))
			continue;
		rc = location_of_slot(&files, p, &from, s->length, &res->from[i]);
		if (rc == SKV_OK && !m->checks)
			rc = location_of_slot(&files, p, &to, s->length, &res->to[i]);
	}
	if (rc != SKV_OK)
		return rc;
	session_id_text(m->id, res->move);
	res->n = m->n;
	return SKV_OK;
}

static int fill_take(struct waiter *w, struct partition *p, const struct change *ch, int status)
{
	const uint64_t now = skv_now_ms(p->core->clock);
	struct skv_move_take_res *res = w->res;
	const struct move *m;

	if (status != SKV_OK)
		return status;
	m = ((const struct taking *)ch)->move;
	status = move_tell(p, m, w->arena, res);
	res->deadline_ms = m->deadline_at > now ? (uint32_t)(m->deadline_at - now) : 0;
	return status;
}

static struct move *make_move(const struct found *f, uint32_t deadline_ms)
{
	const struct skv_core_options *o = &f->p->core->o;
	struct move *m = skv_malloc(sizeof *m + f->n * sizeof *m->v);

	if (!m)
		return NULL;
	*m = (struct move){ .id = session_new_id(f->p->core->number), .starting = true, .n = f->n };
	m->deadline_ms = deadline_ms ? deadline_ms : o->session_default_ms;
	if (m->deadline_ms > o->session_max_ms)
		m->deadline_ms = o->session_max_ms;
	m->deadline_at = f->now + m->deadline_ms;
	m->hold_until = m->deadline_at +
			(o->grace_ms > f->least_grace ? o->grace_ms : f->least_grace);
	memcpy(m->v, f->v, f->n * sizeof *m->v);
	return m;
}

/* In memory alone: nothing is written. */
static int give_checks(struct found *f, uint32_t deadline_ms, struct waiter *w)
{
	struct skv_move_take_res *res = w->res;
	struct move *m = make_move(f, deadline_ms);

	ASSERT_EXCLUSIVE(f->p);
	if (!m)
		return SKV_E_NOMEM; /* suspects and portions of a scrub are given out again */
	m->starting = false;
	m->checks = true;
	if (f->file_known) {
		m->portion.volume = f->volume;
		m->portion.device = f->p->volume[f->volume].dev->id;
		m->portion.file = f->file;
		m->portion.unit = f->unit;
		m->portion.slot = f->slot;
	}
	move_add(f->p, m);
	res->deadline_ms = m->deadline_ms;
	return move_tell(f->p, m, w->arena, res);
}

static int queue_take(struct found *f, uint32_t deadline_ms, struct waiter *w)
{
	struct partition *p = f->p;
	struct move *m = make_move(f, deadline_ms);
	struct change *ch = change_make(&take_ops);

	ASSERT_EXCLUSIVE(p);
	for (uint32_t i = 0; ch && m && i < m->n; i++)
		record_hold(&ch->rec, &p->volume[m->v[i].to_volume],
			    (struct skv_run){ m->v[i].to_slab, m->v[i].to_index, 1 },
			    m->hold_until - f->now);
	if (!ch || !m || ch->rec.failed) {
		give_back(p, f->v, f->n);
		skv_free(m);
		change_destroy(ch);
		return SKV_E_NOMEM;
	}
	((struct taking *)ch)->move = m;
	move_add(p, m);
	w->fill = fill_take;
	change_wait(ch, w);
	change_queue(p, ch);
	move_evict_behind(p, m);
	return SKV_PENDING;
}

/* *copies: nothing is to be moved, but this copied. */
static int take_locked(struct skv_core *c, const struct skv_move_take_req *req, struct waiter *w,
		       struct copying **copies) SKV_REQUIRES(c->lock)
{
	struct partition *p = c->partition;
	struct found *f;
	int rc = SKV_OK;

	if (!p)
		return gate_recovering(w->err);
	if (!req->check)
		p->mover_at = skv_now_ms(c->clock);
	if (p->n_moves == MAX_MOVES) { /* others have enough to do */
		((struct skv_move_take_res *)w->res)->scrub.more = req->check;
		return SKV_OK;
	}
	f = skv_arena_calloc(w->arena, 1, sizeof *f);
	if (!f)
		return SKV_E_NOMEM;
	f->p = p;
	f->now = skv_now_ms(c->clock);
	f->max = req->max && req->max < MAX_MOVE_SLOTS ? req->max : MAX_MOVE_SLOTS;
	f->looks = MOVE_LOOKS;
	damages_find(f);
	if (!f->n && req->check)
		scrub_find(f, req->check_before_ms,
			   &((struct skv_move_take_res *)w->res)->scrub);
	else if (!f->n)
		move_find_all(f);
	if (!f->n && !req->check)
		*copies = copies_find(f, req->deadline_ms, w->arena);
	if (f->n)
		rc = f->checks ? give_checks(f, req->deadline_ms, w)
			       : queue_take(f, req->deadline_ms, w);
	return rc;
}

static struct waiter *make_waiter(const void *req, void *res, struct skv_arena *a,
				  struct skv_error *err, const struct skv_done *done)
{
	struct waiter *w = skv_arena_calloc(a, 1, sizeof *w);

	if (w)
		*w = (struct waiter){ .completion.done = *done, .req = req, .res = res,
				      .arena = a, .err = err };
	return w;
}

bool one_move_due(struct skv_core *c, const struct skv_move_take_req *req)
{
	const uint64_t now = skv_now_ms(c->clock);
	const struct partition *p;
	bool due;

	skv_rwlock_read(&c->lock);
	p = c->partition;
	due = p && damages_due(p, now, !req->check);
	if (p && req->check)
		due |= scrub_due(p, req->check_before_ms);
	else if (p)
		due |= wishes_waiting(p, WISH_ASKED) || wishes_waiting(p, WISH_NOTED) ||
		       heal_due(p, now) || move_drain_due(p, now);
	skv_rwlock_read_unlock(&c->lock);
	return due;
}

int one_move_take(struct skv_core *c, const struct skv_move_take_req *req,
		  struct skv_move_take_res *res, struct skv_arena *a, struct skv_error *err,
		  const struct skv_done *done)
{
	struct waiter *w = make_waiter(req, res, a, err, done);
	struct copying *copies = NULL;
	int rc = core_gate(c, err);

	*res = (struct skv_move_take_res){ 0 };
	if (rc != SKV_OK)
		return rc;
	if (!w)
		return SKV_E_NOMEM;
	core_lock(c);
	rc = take_locked(c, req, w, &copies);
	core_unlock(c);
	return copies ? copies_start(c, copies, res, err, done) : rc;
}

/* ---- finish ---------------------------------------------------------------------------------- */

struct finishing {
	struct change change;
	struct move *move;
	bool quiesced;
	uint32_t n; /* slots to swap, */
	struct move_slot *v;
	uint32_t *block; /* of these blocks */
	uint32_t *at;    /* and where they are in the move */
};

static void give_up_others(struct partition *p, const struct finishing *f)
{
	const struct move *m = f->move;

	for (uint32_t i = 0, done = 0; i < m->n; i++) {
		if (done < f->n && f->at[done] == i)
			done++;
		else
			move_give_up(p, &m->v[i], f->quiesced ? 0 : m->hold_until);
	}
}

static void swap(struct partition *p, const struct move_slot *m, uint32_t id)
{
	struct block *b = block_get(p, id);
	uint64_t lease = block_lease(p, block_instance(b), b);

	ASSERT_EXCLUSIVE(p);
	assert(b->slot[m->spec].generation == m->generation &&
	       b->slot[m->spec].volume == m->volume && b->slot[m->spec].slab == m->slab &&
	       b->slot[m->spec].index == m->index);
	move_swap(p, b, m->spec, m->to_volume, m->to_slab, m->to_index,
		  lease > skv_now_ms(p->core->clock) ? lease : 0);
	if (damage_hides(p, &b->slot[m->spec]))
		COUNT(p->core, damage_healed, 1);
	damage_remove(p, m->generation);
	COUNT(p->core, moved_blocks, 1);
	COUNT(p->core, moved_bytes, m->length);
}

static void finish_apply(struct partition *p, struct change *ch)
{
	const struct finishing *f = (struct finishing *)ch;

	ASSERT_EXCLUSIVE(p);
	assert(f->move->ending == ch && p->swapping > 0);
	p->swapping--;
	for (uint32_t i = 0; i < f->n; i++)
		swap(p, &f->v[i], f->block[i]);
	give_up_others(p, f);
	COUNT(p->core, move_failures, f->move->n - f->n);
	move_destroy(p, f->move);
}

static void finish_undo(struct partition *p, struct change *ch)
{
	struct finishing *f = (struct finishing *)ch;

	ASSERT_EXCLUSIVE(p);
	assert(f->move->ending == ch && p->swapping > 0);
	p->swapping--;
	f->move->ending = NULL;
}

static void finish_destroy(struct change *ch)
{
	struct finishing *f = (struct finishing *)ch;

	skv_free(f->v);
	skv_free(f->block);
	skv_free(f->at);
}

static int replay_moved(struct replay *r, struct skv_rd *in, struct skv_error *err)
{
	struct instance *inst = instance_by_id(r->p, skv_get_u32(in));
	uint64_t leased_ms = skv_get_varint(in);

	if (!inst)
		return replay_orphan(r);
	while (skv_rd_left(in)) {
		struct skv_key key = get_key(in);
		uint64_t spec = skv_get_varint(in), slot;
		struct place pl;
		struct skv_run run = { 0 };
		struct block *b = in->failed ? NULL : index_find(r->p, inst, key);
		int rc = replay_get_place(r, in, &pl, err);

		slot = skv_get_varint(in);
		if (rc == SKV_E_NOMEM)
			return rc;
		if (rc != SKV_OK || in->failed || slot >= SKV_SLAB_SLOTS || !b ||
		    spec >= inst->spec.n_specs || b->slot[spec].state != SLOT_COMMITTED)
			return corrupt(err, "a move of a slot that is not committed");
		run.first = (uint32_t)slot;
		run.count = 1;
		rc = replay_take(r, inst, (uint32_t)spec, &pl, &run, err);
		if (rc != SKV_OK)
			return rc;
		move_swap(r->p, b, (uint32_t)spec, pl.volume, run.slab, run.first,
			  r->now + leased_ms);
	}
	return in->failed ? corrupt(err, "moved: too short") : SKV_OK;
}

const struct change_ops moved_ops = {
	.record = { "moved", replay_moved },
	.size = sizeof(struct finishing),
	.apply = finish_apply,
	.undo = finish_undo,
	.destroy = finish_destroy,
	.frees_slots = change_frees_slots,
};

/* Returns true if the bytes may stay at the target. */
static bool target_stays(const struct partition *p, const struct move_slot *m)
{
	const struct slot to = { .volume = m->to_volume, .slab = m->to_slab };

	return slot_readable(p, &to);
}

/* The slots that were copied, of blocks that are as they were. */
static struct finishing *make_finish(struct partition *p, struct move *m,
				     const struct skv_move_finish_req *req)
{
	struct finishing *f = (struct finishing *)change_make(&moved_ops);

	ASSERT_EXCLUSIVE(p);
	if (!f)
		return NULL;
	f->move = m;
	f->quiesced = req->quiesced;
	f->change.urgent = true;
	f->change.blocks = m->n;
	f->v = skv_calloc(m->n, sizeof *f->v);
	f->block = skv_calloc(m->n, sizeof *f->block);
	f->at = skv_calloc(m->n, sizeof *f->at);
	for (uint32_t i = 0; f->v && f->block && f->at && i < m->n; i++) {
		const struct block *b = req->moved[i] ? move_source(p, &m->v[i]) : NULL;

		if (!b || !target_stays(p, &m->v[i]))
			continue;
		f->block[f->n] = block_id(b);
		f->at[f->n] = i;
		f->v[f->n++] = m->v[i];
	}
	if (f->v && f->block && f->at)
		return f;
	change_destroy(&f->change);
	return NULL;
}

static int fill_finish(struct waiter *w, struct partition *p, const struct change *ch, int status)
{
	const struct finishing *f = (const struct finishing *)ch;
	struct skv_move_finish_res *res = w->res;

	(void)p;
	if (status == SKV_OK)
		*res = (struct skv_move_finish_res){
			f->n, ((const struct skv_move_finish_req *)w->req)->n_moved - f->n,
			res->hidden
		};
	return status;
}

/* Answers when damage that was found is durably removed, if there was any. */
static int wait_for(struct change *ch, struct waiter *w)
{
	if (!ch)
		return SKV_OK;
	w->fill = NULL; /* *w->res is filled */
	change_wait(ch, w);
	return SKV_PENDING;
}

/* Journals nothing: the holds of the targets exist already. */
static int end_move(struct partition *p, struct finishing *f, struct waiter *w,
		    struct change *behind)
{
	struct skv_move_finish_res *res = w->res;

	ASSERT_EXCLUSIVE(p);
	res->failed = f->move->n;
	give_up_others(p, f);
	COUNT(p->core, move_failures, f->move->n);
	move_destroy(p, f->move);
	change_destroy(&f->change);
	return wait_for(behind, w);
}

/* The slots were to be verified only. */
static int end_checks(struct partition *p, struct move *m, const struct skv_move_finish_req *req,
		      struct waiter *w, struct change *behind)
{
	struct skv_move_finish_res *res = w->res;

	ASSERT_EXCLUSIVE(p);
	assert(m->checks);
	for (uint32_t i = 0; i < m->n; i++) {
		const bool there = move_source(p, &m->v[i]), right = req->moved[i] && there;

		res->moved += right;
		COUNT(p->core, scrubbed_blocks, right);
		COUNT(p->core, scrubbed_bytes, right ? m->v[i].length : 0);
		COUNT(p->core, scrub_unread,
		      there && !req->moved[i] && !(req->damaged && req->damaged[i]));
	}
	res->failed = m->n - res->moved;
	scrub_finish(p, m);
	move_destroy(p, m);
	return wait_for(behind, w);
}

/* Lookups go on leasing the old slots until the record is applied: no lease is longer than that. */
static uint64_t leased_ms(const struct partition *p)
{
	return (uint64_t)p->core->o.lease_max_ms + HORIZON_AHEAD_MS;
}

static int queue_finish(struct partition *p, struct move *m, const struct skv_move_finish_req *req,
			struct waiter *w, struct change *behind)
{
	struct finishing *f = make_finish(p, m, req);

	ASSERT_EXCLUSIVE(p);
	if (!f)
		return SKV_E_NOMEM;
	if (f->n == 0)
		return end_move(p, f, w, behind);
	for (uint32_t i = 0; i < f->n;)
		i += (uint32_t)record_moved(&f->change.rec, p, &f->v[i], f->n - i, leased_ms(p));
	if (f->change.rec.failed) {
		change_destroy(&f->change);
		return SKV_E_NOMEM;
	}
	m->ending = &f->change;
	p->swapping++;
	w->fill = fill_finish;
	change_wait(&f->change, w);
	change_queue(p, &f->change);
	return SKV_PENDING;
}

/* *copies: it was a move of copies, which ends in this way. */
static int finish_locked(struct skv_core *c, const struct skv_move_finish_req *req,
			 struct waiter *w, struct copied **copies) SKV_REQUIRES(c->lock)
{
	struct partition *p = c->partition;
	struct change *behind = NULL;
	struct skv_key id;
	struct move *m;

	if (!p)
		return gate_recovering(w->err);
	if (!session_id_parse(req->move, &id))
		return skv_fail(w->err, SKV_E_INVALID, "move", "a move's id has %d hex digits",
				SKV_SESSION_ID_HEX);
	m = move_find(p, id);
	if (!m || m->starting)
		return skv_fail(w->err, SKV_E_NOT_FOUND, "move", "no such move, or it has ended");
	if (req->n_moved != m->n)
		return skv_fail(w->err, SKV_E_INVALID, "moved",
				"%u values, but the move has %u slots", req->n_moved, m->n);
	if (m->ending) { /* repeated */
		w->fill = fill_finish;
		change_wait(m->ending, w);
		return SKV_PENDING;
	}
	if (m->deadline_at <= skv_now_ms(c->clock))
		return skv_fail(w->err, SKV_E_SESSION_EXPIRED, "move",
				"its deadline has just passed");
	((struct skv_move_finish_res *)w->res)->hidden = damages_settle(p, m, req, &behind);
	if (m->checks)
		return end_checks(p, m, req, w, behind);
	if (!m->copies)
		return queue_finish(p, m, req, w, behind);
	return copies_settle(p, m, req, w->arena, copies, w->err);
}

int skv_core_move_finish(struct skv_core *c, const struct skv_move_finish_req *req,
			 struct skv_move_finish_res *res, struct skv_arena *a,
			 struct skv_error *err, const struct skv_done *done)
{
	struct waiter *w = make_waiter(req, res, a, err, done);
	struct copied *copies = NULL;
	int rc = core_gate(c, err);

	*res = (struct skv_move_finish_res){ 0 };
	if (rc != SKV_OK)
		return rc;
	if (!w)
		return SKV_E_NOMEM;
	core_lock(c);
	rc = finish_locked(c, req, w, &copies);
	core_unlock(c);
	return copies ? copies_finish(c, copies, a, res, err, done) : rc;
}
