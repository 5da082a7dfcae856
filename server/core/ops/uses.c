/*
 * uses.c - reports recently used blocks to followers of the journal (decision 0069).
 *
 * Lookups write a block's last use into its mark, and nothing else. A standby, or a restart after a
 * kill, must know which blocks to keep. So the ticker scans all blocks, a portion at a time, and
 * records the blocks used since its last scan: with the clock of uses, the time and number of uses,
 * and the policy's tag. The record is a hint: replay finds a block by its slot, and skips it if the
 * slot has another block. The hints are part of the counters' record; older builds read the
 * counters and ignore the rest.
 *
 * Births are not recorded: replay dates them by the clock of the newest such record.
 */
#include <ops/uses.h>

#include <assert.h>

#include <skv/policy.h>
#include <skv/store.h>

#include <model/block.h>
#include <model/mark.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/table.h>
#include <model/volume.h>
#include <journal/change.h>
#include <journal/format.h>
#include <journal/record.h>
#include <journal/replay.h>

#define PASS_MS 10000u /* from the beginning of a pass to that of the next, at least */
#define LOOKS 8192u    /* entries looked at in one tick */
#define DUE_MS 1000u   /* noted uses are recorded after this time, */
#define DUE 512u       /* or when this many are noted */
#define OVERLAP_MS 100u /* a lookup's use may be older than the look that misses it */

/* ---- looking --------------------------------------------------------------------------------- */

static void look_at_chunk(struct partition *p, struct chunk *c, uint64_t clock)
{
	const uint64_t since = c->told ? c->told : p->loaded_at;

	ASSERT_SHARED(p);
	assert(p->uses.n + c->fresh <= USES_NOTED);
	for (uint32_t i = 0; i < c->fresh; i++) {
		const struct block *b = chunk_place(c, i);
		uint64_t mark = atomic_load_explicit(&b->mark, memory_order_relaxed);

		if (b->used && mark_freq(mark) && use_ms(mark_use(mark)) >= since)
			p->uses.id[p->uses.n++] = block_id(b);
	}
	c->told = clock > OVERLAP_MS ? clock - OVERLAP_MS : 1;
}

void uses_look(struct partition *p, uint64_t now)
{
	uint32_t looked = 0;

	ASSERT_SHARED(p);
	if (!p->uses.at && now < p->uses.next_at)
		return;
	if (!p->uses.at) {
		p->uses.at = 1; /* chunk 0 is unused */
		p->uses.next_at = now + PASS_MS;
	}
	while (p->uses.at < p->n_chunk && looked < LOOKS &&
	       p->uses.n + CHUNK_CAPACITY <= USES_NOTED) {
		struct chunk *c = p->chunk[p->uses.at++];

		if (c->inst && !c->inst->retired)
			look_at_chunk(p, c, use_clock(p, now));
		looked += c->fresh + 1;
	}
	if (p->uses.at >= p->n_chunk)
		p->uses.at = 0;
}

/* ---- reporting: noted uses, and the time, while blocks are born ------------------------------ */

static bool is_due(const struct partition *p, uint64_t now)
{
	return p->uses.n >= DUE ||
	       (now >= p->uses.told_at + DUE_MS &&
		(p->uses.n || p->next_generation != p->uses.generation));
}

void uses_tell(struct partition *p, uint64_t now)
{
	struct change *ch;

	ASSERT_EXCLUSIVE(p);
	if (p->swapping || p->store_full_until > now || !is_due(p, now))
		return;
	ch = change_make(&uses_ops);
	if (ch)
		record_uses(&ch->rec, p, p->uses.id, p->uses.n);
	p->uses.n = 0;
	p->uses.told_at = now;
	p->uses.generation = p->next_generation;
	if (!ch || ch->rec.failed) {
		change_destroy(ch); /* the next pass finds what is used then */
		return;
	}
	ch->relaxed = true; /* no disk is waited for */
	change_queue(p, ch);
}

/* ---- replay ---------------------------------------------------------------------------------- */

static uint64_t age_of(uint64_t what) { return what >> USES_AGE_SHIFT; }
static uint32_t freq_of(uint64_t what) { return what >> STORED_TAG_BITS & MARK_FREQ_MAX; }
static uint32_t tag_of(uint64_t what) { return what & (SKV_POLICY_TAGS - 1); }

static void use_again(struct partition *p, struct block *b, uint64_t use, uint64_t what)
{
	const uint64_t mark = atomic_load(&b->mark);

	ASSERT_EXCLUSIVE(p);
	if (mark_use(mark) < use)
		atomic_store(&b->mark, mark_make(use, freq_of(what), mark_lease_end(mark)));
	b->slot[0].tag = tag_of(what);
}

static int replay_runs(struct replay *r, struct skv_rd *in, uint64_t clock, struct skv_error *err)
{
	struct partition *p = r->p;
	uint64_t what = 0, use = 0;
	struct place pl = { 0 };
	uint32_t slab = 0;
	bool any = false;

	while (skv_rd_left(in)) {
		uint64_t run = skv_get_varint(in), n = (run >> USES_COUNT_SHIFT) + 1, at;
		int rc;

		if (!(run & USES_SAME_SLAB)) {
			rc = replay_get_place(r, in, &pl, err);
			if (rc != SKV_OK && rc != SKV_E_NOT_FOUND) /* a storage that was deleted */
				return rc;
			any = rc == SKV_OK && place_slab(p, pl.volume, pl.slab, &slab);
		}
		at = skv_get_varint(in);
		if (!(run & USES_SAME)) {
			what = skv_get_varint(in);
			use = age_of(what) < clock ? use_make(clock - age_of(what), 0) : 0;
		}
		if (in->failed || n > USES_NOTED || at > SKV_SLAB_SLOTS)
			return corrupt(err, "uses: malformed");
		for (; any && n > 0; n--, at++) {
			struct block *b = slot_block(p, pl.volume, slab, at);

			if (b)
				use_again(p, b, use, what);
		}
	}
	return SKV_OK;
}

static int replay_counters(struct replay *r, struct skv_rd *in, struct skv_error *err)
{
	uint64_t generation = skv_get_u64(in), clock;

	if (in->failed || !given(r, generation, 0))
		return corrupt(err, "counters: malformed");
	clock = skv_get_varint(in);
	if (in->failed || clock > USE_MS_MAX)
		return corrupt(err, "counters: malformed");
	use_clock_set(r->p, r->now, clock);
	use_now(r->p, r->now); /* as late as it is, whatever was used */
	return replay_runs(r, in, clock, err);
}

const struct change_ops uses_ops = {
	.record = { "counters", replay_counters },
	.size = sizeof(struct change),
	.makes_more = true,
};
