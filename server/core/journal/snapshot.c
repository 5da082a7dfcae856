/*
 * snapshot.c - a copy of the partition as of the end of a batch, taken while calls go on.
 *
 * Small parts (sessions, holds, counters) are encoded at once; blocks follow chunk by chunk. A
 * chunk about to change before its turn is copied first (snapshot_touch_chunk), so all show the
 * state at the same batch.
 *
 * Changes queued when the snapshot began are in it as prepared: links, and removals that have not
 * happened. Starts are left to the journal, because a clear queued before them must not take their
 * slots.
 */
#include <journal/snapshot.h>

#include <assert.h>

#include <lock/gate.h>
#include <model/block.h>
#include <model/move.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/session.h>
#include <model/table.h>
#include <model/volume.h>
#include <journal/record.h>

static void copy_chunk(struct partition *p, uint32_t no)
{
	struct chunk *c = p->chunk[no];

	c->snapshot = p->snap.number;
	if (!c->inst || c->inst->empty_at == p->snap.number || p->snap.failed)
		return;
	/* Even if the snapshot began before: chunks that records in between refer to were copied
	 * then. */
	if (c->inst->cleared)
		record_chunk_leases(&p->snap.leases, p, c, skv_now_ms(p->core->clock));
	else
		record_chunk(&p->snap.out, p, c);
	if (!c->inst->cleared && p->snap.exact)
		record_leases(&p->snap.leases, p, c, skv_now_ms(p->core->clock));
	if (p->snap.out.failed || p->snap.leases.failed)
		p->snap.failed = true;
}

void snapshot_abort(struct partition *p)
{
	ASSERT_EXCLUSIVE(p);
	if (p->snap.active)
		p->snap.failed = true;
}

struct hold_writer {
	struct skv_buf *out;
	const struct volume *volume;
	uint64_t now;
};

static void put_hold(void *ctx, struct skv_run run, uint64_t until)
{
	struct hold_writer *w = ctx;

	record_hold(w->out, w->volume, run, until > w->now ? until - w->now : 0);
}

/* Targets of open moves. The record of a start in flight has its own. */
static void put_moves(const struct partition *p, struct skv_buf *out, uint64_t now)
{
	for (const struct move *m = p->moves; m; m = m->next)
		for (uint32_t i = 0; i < m->n && !m->starting && !m->checks; i++)
			record_hold(out, &p->volume[m->v[i].to_volume],
				    (struct skv_run){ m->v[i].to_slab, m->v[i].to_index, 1 },
				    m->hold_until > now ? m->hold_until - now : 1);
}

/* Deleted instances: one still registered must stay deleted; one whose registration has moved is
 * not in this snapshot any more. */
static void put_drops(struct partition *p, struct skv_buf *out, uint64_t now)
{
	for (size_t i = 0; i < p->n_inst; i++) {
		struct instance *inst = p->inst[i];

		if (inst->dropped)
			inst->dropped_before = p->snap.number;
		else if (inst->deleting && !inst->clear)
			record_clear(out, inst, true, now);
	}
}

static void put_pins(const struct partition *p, struct skv_buf *out, uint64_t now)
{
	for (size_t i = 0; i < p->n_inst; i++)
		record_pins(out, p, p->inst[i], now);
}

/* Leaves out instances that replace those with a queued clear: all of their blocks are queued after
 * the clear. */
static void leave_out_fresh(struct partition *p)
{
	for (size_t i = 0; i < p->n_inst; i++)
		if (p->inst[i]->clear)
			p->inst[i]->empty_at = p->snap.number;
}

static void put_sessions(struct partition *p, struct skv_buf *out, uint64_t now)
{
	for (const struct session *s = p->ended_head; s; s = s->queue_next)
		record_ended(out, s, now);
	for (size_t i = 0; i < p->n_session; i++)
		if (p->session[i] && p->session[i]->state == SKV_SESSION_OPEN &&
		    !p->session[i]->starting)
			record_start(out, p, p->session[i]);
}

void snapshot_begin(struct partition *p, uint64_t barrier)
{
	uint64_t now = skv_now_ms(p->core->clock);
	struct snapshot *s = &p->snap;

	ASSERT_EXCLUSIVE(p);
	assert(!s->active);
	s->active = true;
	s->copy = copy_chunk;
	s->failed = false;
	s->exact = owner_state(p->core) == OWN_CLOSING; /* a later lookup sees it too */
	s->number++;
	s->seq = p->seq;
	s->barrier = barrier;
	s->journal_bytes = p->journal_bytes;
	s->blocks = p->blocks;
	s->next_chunk = 1;
	s->end_chunk = (uint32_t)p->n_chunk;
	skv_buf_clear(&s->out);
	skv_buf_clear(&s->leases);
	skv_buf_clear(&s->tail);
	if (s->exact)
		record_horizon(&s->leases, p, false); /* the boot whose clock the leases use */
	record_link(&s->tail, p, p->end.number);
	record_counters(&s->tail, p);
	record_births(&s->tail, p);
	for (uint32_t i = 0; i < p->n_volume; i++) {
		struct hold_writer w = { &s->tail, &p->volume[i], now };

		if (p->volume[i].pool)
			skv_pool_each_hold(p->volume[i].pool, put_hold, &w);
		for (size_t j = 0; j < p->volume[i].n_file; j++)
			record_checked(&s->tail, p, &p->volume[i], &p->volume[i].file[j]);
	}
	put_moves(p, &s->tail, now);
	put_sessions(p, &s->tail, now);
	put_pins(p, &s->tail, now);
	put_drops(p, &s->tail, now);
	leave_out_fresh(p);
	record_horizon(&s->tail, p, false);
	horizons_put(&s->tail, p, s->exact);
	if (s->leases.failed || s->tail.failed)
		s->failed = true;
}

int snapshot_copy(struct partition *p, uint32_t most, size_t slice, struct skv_buf *out)
{
	struct snapshot *s = &p->snap;
	bool all;

	ASSERT_EXCLUSIVE(p);
	assert(s->active && most > 0);
	for (uint32_t i = 0; i < most && s->next_chunk < s->end_chunk; i++)
		snapshot_touch_chunk(p, s->next_chunk++);
	all = s->next_chunk >= s->end_chunk;
	if (s->out.len >= slice || all) {
		*out = s->out;
		skv_buf_init(&s->out);
	}
	return s->failed ? SKV_E_NOMEM : all ? SKV_OK : SKV_PENDING;
}

void snapshot_take_tail(struct partition *p, struct skv_buf *leases, struct skv_buf *tail)
{
	ASSERT_EXCLUSIVE(p);
	assert(p->snap.active && p->snap.next_chunk >= p->snap.end_chunk);
	*leases = p->snap.leases;
	*tail = p->snap.tail;
	skv_buf_init(&p->snap.leases);
	skv_buf_init(&p->snap.tail);
}

void snapshot_free(struct partition *p)
{
	skv_buf_destroy(&p->snap.out);
	skv_buf_destroy(&p->snap.leases);
	skv_buf_destroy(&p->snap.tail);
}

void snapshot_end(struct partition *p, bool stored)
{
	ASSERT_EXCLUSIVE(p);
	assert(p->snap.active && p->journal_bytes >= p->snap.journal_bytes);
	if (stored)
		p->journal_bytes -= p->snap.journal_bytes;
	p->snap.active = false;
	snapshot_free(p);
}

#define NEW_BLOCK_BYTES 48u /* of a block of one spec, added since */

/* Bytes of the next checkpoint. */
static uint64_t expected_size(const struct partition *p)
{
	uint64_t more = p->blocks > p->checkpoint_blocks ? p->blocks - p->checkpoint_blocks : 0;

	return p->checkpoint_bytes + more * NEW_BLOCK_BYTES;
}

/* So that at most two bytes of checkpoints are written for one of journal: they are a little longer
 * than expected, the less blocks of a chain lie side by side. */
uint64_t journal_due(const struct partition *p)
{
	uint64_t quarter = p->core->o.journal_limit / 4, due = expected_size(p) / 16 * 9;

	ASSERT_SHARED(p);
	return due > quarter ? due : quarter;
}

uint64_t journal_bound(const struct partition *p)
{
	uint64_t limit = p->core->o.journal_limit, twice = 2 * journal_due(p);

	ASSERT_SHARED(p);
	return twice > limit ? twice : limit;
}

void horizons_put(struct skv_buf *out, struct partition *p, bool exact)
{
	uint64_t now = skv_now_ms(p->core->clock);

	ASSERT_EXCLUSIVE(p);
	for (size_t i = 0; i < p->n_inst; i++) {
		struct instance *inst = p->inst[i];
		struct horizon h = { inst, exact ? inst->loaded_lease : inst->horizon };

		if (!inst->deleting && h.until > now)
			record_horizons(out, &h, 1, now);
	}
}
