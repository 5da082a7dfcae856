/*
 * snapshot.c - a copy of the partition as it is between two batches, taken while everything goes on.
 *
 * What is small (sessions, holds, counters) is encoded at once; the blocks follow chunk by chunk. A chunk that is about to
 * change before its turn is copied out first (snapshot_touch_chunk), so all of them show the state at the same batch.
 *
 * What was queued when the snapshot began has its prepare step in it, as links and removals that are none yet; but starts
 * are left to the journal, for a clear that is queued before them takes nothing of theirs.
 */
#include <journal/snapshot.h>

#include <assert.h>

#include <model/block.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/session.h>
#include <model/volume.h>
#include <journal/record.h>

static void copy_chunk(struct partition *p, uint32_t no)
{
	struct chunk *c = p->chunk[no];

	c->snapshot = p->snap.number;
	if (!c->inst || p->snap.failed)
		return;
	if (c->inst->cleared) /* also if the snapshot began before that: chunks that records in between name were copied then */
		record_chunk_leases(&p->snap.out, p, c, skv_now_ms(p->core->clock));
	else
		record_chunk(&p->snap.out, p, c);
	if (!c->inst->cleared && p->snap.exact)
		record_leases(&p->snap.out, p, c, skv_now_ms(p->core->clock));
	if (p->snap.out.failed)
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

/* Deleted instances: one whose registration still stands must stay deleted; of one whose registration has
 * moved, this snapshot says nothing any more. */
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

static void put_sessions(struct partition *p, struct skv_buf *out, uint64_t now)
{
	for (const struct session *s = p->ended_head; s; s = s->queue_next)
		record_ended(out, s, now);
	for (size_t i = 0; i < p->n_session; i++)
		if (p->session[i] && p->session[i]->state == SKV_SESSION_OPEN && !p->session[i]->starting)
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
	s->exact = atomic_load(&p->core->closing); /* a lookup that comes later sees it, too */
	s->number++;
	s->seq = p->seq;
	s->barrier = barrier;
	s->journal_bytes = p->journal_bytes;
	s->next_chunk = 1;
	s->end_chunk = (uint32_t)p->n_chunk;
	skv_buf_clear(&s->out);
	skv_buf_clear(&s->tail);
	if (s->exact)
		record_horizon(&s->out, p, false); /* whose boot the leases are told by */
	record_counters(&s->tail, p);
	record_births(&s->tail, p);
	for (uint32_t i = 0; i < p->n_volume; i++) {
		struct hold_writer w = { &s->tail, &p->volume[i], now };

		if (p->volume[i].pool)
			skv_pool_each_hold(p->volume[i].pool, put_hold, &w);
	}
	put_sessions(p, &s->tail, now);
	put_pins(p, &s->tail, now);
	put_drops(p, &s->tail, now);
	record_horizon(&s->tail, p, false);
	horizons_put(&s->tail, p, s->exact);
	if (s->tail.failed)
		s->failed = true;
}

void snapshot_end(struct partition *p)
{
	ASSERT_EXCLUSIVE(p);
	assert(p->snap.active);
	p->snap.active = false;
	skv_buf_destroy(&p->snap.out);
	skv_buf_destroy(&p->snap.tail);
}

void horizons_put(struct skv_buf *out, struct partition *p, bool exact)
{
	uint64_t now = skv_now_ms(p->core->clock);

	ASSERT_EXCLUSIVE(p);
	for (size_t i = 0; i < p->n_inst; i++) {
		struct instance *inst = p->inst[i];
		struct horizon h = { inst, exact ? inst->reign_lease : inst->horizon };

		if (!inst->deleting && h.until > now)
			record_horizons(out, &h, 1, now);
	}
}
