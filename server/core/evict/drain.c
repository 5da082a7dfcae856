/*
 * drain.c - draining slab files: chooses them and empties them block by block;
 * storage/remove_files.c removes them.
 *
 * A file drains because an administrator asked for it, because its storage is retired, or because
 * the capacity was lowered. The allocator places no new blocks there. Its blocks are evicted in
 * portions, in the background: repeated skips its slots take leaves that have not been used for
 * long, then for shorter and shorter times, at last all blocks, leased ones included: those are
 * misses at once and their slots are held until the lease ends, as after a delete. Slots being
 * written are left until their session ends, hard-pinned ones until they are unpinned.
 *
 * An empty file may still be named by older journal records, so a checkpoint is written first. Then
 * it is GOING, which is final. All under the write lock (ticker).
 */
#include <evict/drain.h>

#include <assert.h>
#include <string.h>

#include <skv/mem.h>

#include <lock/core.h>
#include <lock/turn.h>
#include <model/block.h>
#include <model/device.h>
#include <model/files.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/pin.h>
#include <model/volume.h>
#include <model/table.h>
#include <model/tier.h>
#include <storage/device.h>
#include <evict/evict.h>
#include <evict/remove.h>
#include <evict/rebalance.h>

#define LOOKS 4096u     /* slots visited per call */
#define PORTION 512u    /* blocks that it picks */
#define REST_MS 100u    /* pause after a pass that found nothing to pick */
#define ASK_MS 1000u    /* between requests for a checkpoint */
#define SAMPLES 8u      /* slabs sampled to estimate a file's value */
#define MAX_COMPARED 256u /* files compared to find the least valuable */
#define MAX_SHRINKS 2u   /* chosen in one call */
#define MAX_VISITS 256u  /* draining files handled per call */

enum pass { SURVEY, OLD_1, OLD_2, OLD_3, OLD_4, LEAVES, ALL };

/* ---- passes ---------------------------------------------------------------------------------- */

/* Does it live on from its copies, until movers give it another place (ops/heal.c)? */
static bool lives_on(const struct partition *p, const struct block *b)
{
	const struct instance *inst = block_instance(b);
	const struct group *fast = inst->group->fast;
	const struct instance *copies = fast && fast->spec.replicate ? tier_copies(p, inst) : NULL;
	bool all = copies != NULL;

	for (uint32_t s = 0; all && s < inst->spec.n_specs; s++) {
		const struct slot *c = b->slot[s].state == SLOT_COMMITTED
					       ? tier_copy(p, copies, b, s)
					       : NULL;

		all = b->slot[s].state == SLOT_ABSENT || (c && slot_serves(p, c));
	}
	return all;
}

/* Returns true if this pass may take the block. */
static bool goes(const struct partition *p, const struct volume_file *f, const struct block *b,
		 uint64_t now)
{
	const struct instance *inst = block_instance(b);

	ASSERT_SHARED(p);
	if (f->lost)
		return block_has_committed(inst, b) && !block_has_writing(inst, b);
	if (f->pass == SURVEY || !block_has_committed(inst, b) || pin_kind(b) == SKV_PIN_HARD)
		return false;
	if (f->pass == ALL)
		return !block_has_writing(inst, b);
	if (b->live_children || !block_evictable(p, inst, b, now))
		return false;
	return f->pass == LEAVES || block_idle_ms(p, b, now) >= f->oldest >> f->pass;
}

static void note_slot(const struct partition *p, struct volume_file *f, const struct block *b)
{
	const struct instance *inst = block_instance(b);

	if (f->pass == SURVEY) {
		uint64_t idle = block_idle_ms(p, b, skv_now_ms(p->core->clock));

		f->oldest = idle > f->oldest ? idle : f->oldest;
	}
	f->saw_writing += block_has_writing(inst, b);
	f->saw_pinned += pin_kind(b) == SKV_PIN_HARD;
}

static void look_at_slot(struct partition *p, struct volume_file *f, const struct skv_pool *pool,
			 uint32_t slab, uint32_t slot, struct picks *k)
{
	uint64_t now = skv_now_ms(p->core->clock);
	struct block *b;

	ASSERT_EXCLUSIVE(p);
	if (!skv_pool_is_used(pool, slab, slot) || skv_pool_owner(pool, slab, slot) == NO_BLOCK)
		return;
	b = block_get(p, skv_pool_owner(pool, slab, slot));
	if (block_instance(b)->retired)
		return; /* the sweep frees it */
	note_slot(p, f, b);
	if (!goes(p, f, b, now))
		return;
	if (!f->shrink && lives_on(p, b)) /* less capacity is for fewer blocks */
		f->saw_replicated++;
	else if (remove_mark(p, k, b) == SKV_OK)
		f->picked = true;
}

/* A pass has ended. The last kind of pass is repeated, with a pause if it found nothing. */
static void end_pass(struct partition *p, struct volume_file *f)
{
	ASSERT_EXCLUSIVE(p);
	f->unit = f->slot = 0;
	f->writing = f->saw_writing;
	f->pinned = f->saw_pinned;
	f->replicated = f->saw_replicated;
	f->saw_writing = f->saw_pinned = f->saw_replicated = 0;
	if (f->pass == ALL && !f->picked)
		f->again_at = skv_now_ms(p->core->clock) + REST_MS;
	if (f->pass < ALL)
		f->pass++;
	f->picked = false;
}

/* Visits some more slots. Returns how many; fewer than `looks`: the pass ended, or a portion is
 * picked. */
static uint32_t walk(struct partition *p, struct volume *s, struct volume_file *f, struct picks *k,
		     uint32_t looks)
{
	uint32_t left = looks;

	ASSERT_EXCLUSIVE(p);
	while (left && k->n < PORTION) {
		struct skv_slab_info info;
		uint32_t next = f->unit, slab;

		if (!skv_pool_next_slab(s->pool, f->number, &next, &slab)) {
			end_pass(p, f);
			break;
		}
		skv_pool_slab(s->pool, slab, &info);
		if (info.place.unit != f->unit) { /* the slab no longer exists here */
			f->unit = info.place.unit;
			f->slot = 0;
		}
		for (; f->slot < info.slots && left && k->n < PORTION; left--)
			look_at_slot(p, f, s->pool, slab, f->slot++, k);
		if (f->slot == info.slots) {
			f->unit = next;
			f->slot = 0;
		}
	}
	return looks - left;
}

/* ---- empty files ----------------------------------------------------------------------------- */

/* Nothing is left in the file: once a checkpoint begun later is durable, no record refers to it. */
static void wait_for_checkpoint(struct partition *p, struct volume *s, struct volume_file *f)
{
	uint64_t now = skv_now_ms(p->core->clock);

	ASSERT_EXCLUSIVE(p);
	if (!f->empty) {
		f->empty = true;
		f->snapshot = p->snap.number;
		f->again_at = 0;
	}
	if (p->checkpointed > f->snapshot) {
		file_going(s, f);
		device_ask(s->dev);
	} else if (now >= f->again_at) {
		checkpoint_ask(p->core);
		f->again_at = now + ASK_MS;
	}
}

/* Returns how many slots were visited. */
static uint32_t drain_file(struct partition *p, struct volume *s, struct volume_file *f,
			   struct picks *k, uint32_t looks)
{
	if (f->lost)
		f->pass = ALL;
	if (skv_pool_file_is_empty(s->pool, f->number)) {
		wait_for_checkpoint(p, s, f);
		return 0;
	}
	if (file_moves(s, f))
		return 0; /* movers empty it (ops/move.c) */
	return skv_now_ms(p->core->clock) < f->again_at ? 0 : walk(p, s, f, k, looks);
}

/* ---- capacity -------------------------------------------------------------------------------- */

/* The file's value: its blocks' bytes, weighted by how recently they were used. */
static uint64_t worth(const struct partition *p, const struct volume *s,
		      const struct volume_file *f)
{
	uint64_t idle = 0;
	uint32_t unit = 0, slab, seen = 0;

	for (; seen < SAMPLES && skv_pool_next_slab(s->pool, f->number, &unit, &slab); seen++)
		idle += slab_idle_ms(p, s->pool, slab);
	return skv_pool_file_used(s->pool, f->number) / (1 + (seen ? idle / seen : 0) / 1024);
}

/* Compares some of the files, different ones at each call. */
static struct volume_file *cheapest(const struct partition *p, struct volume *s)
{
	size_t step = s->n_file / MAX_COMPARED + 1;
	struct volume_file *best = NULL;
	uint64_t least = UINT64_MAX;

	ASSERT_SHARED(p);
	for (size_t i = s->fit_turn++ % step; i < s->n_file; i += step) {
		struct volume_file *f = &s->file[i];
		uint64_t w;

		if (f->state != FILE_IN_USE || file_drains(s, f))
			continue;
		w = worth(p, s, f);
		if (w >= least)
			continue;
		least = w;
		best = f;
	}
	return best;
}

/* Stops draining some of the files chosen for the capacity, as far as all fit. True: this check is
 * complete. */
static bool let_be(struct volume *s)
{
	for (uint32_t looks = 0; looks < MAX_VISITS && s->fit_at < s->n_drain; looks++) {
		struct volume_file *f = file_find(s, s->drain[s->fit_at]);

		if (!f->shrink || f->asked || s->stays + f->length > s->capacity) {
			s->fit_at++;
			continue;
		}
		f->shrink = false;
		file_settle(s, f); /* the next one has moved to this position */
	}
	if (s->fit_at < s->n_drain)
		return false;
	s->fit_at = 0;
	return true;
}

/* Chooses files to drain until the others fit the capacity, or stops draining those that fit; in
 * portions, and only when something has changed. */
static void fit_capacity(struct partition *p, struct volume *s)
{
	struct volume_file *f;

	ASSERT_EXCLUSIVE(p);
	if (!s->fit_due || s->dev->ops->counted || s->draining || !let_be(s))
		return;
	for (uint32_t n = 0;
	     n < MAX_SHRINKS && s->stays > s->capacity && (f = cheapest(p, s)) != NULL; n++) {
		f->shrink = true;
		file_settle(s, f);
	}
	s->fit_due = s->stays > s->capacity;
}

/* ---- the ticker ------------------------------------------------------------------------------ */

/* Handles some of the draining files; the next call continues after them. */
static uint32_t drain_files(struct partition *p, struct volume *s, struct picks *k, uint32_t looks)
{
	uint32_t visits = MAX_VISITS;

	ASSERT_EXCLUSIVE(p);
	if (s->drain_at >= s->n_drain)
		s->drain_at = 0;
	while (visits-- && s->drain_at < s->n_drain && looks && k->n < PORTION) {
		uint32_t number = s->drain[s->drain_at];

		looks -= drain_file(p, s, file_find(s, number), k, looks);
		if (looks && k->n < PORTION && s->drain_at < s->n_drain &&
		    s->drain[s->drain_at] == number)
			s->drain_at++;
	}
	return looks;
}

bool drains_go_on(struct partition *p, struct portion volumes)
{
	struct picks k = { 0 };
	uint32_t looks = LOOKS;

	ASSERT_EXCLUSIVE(p);
	for (size_t i = volumes.from; i < volumes.to; i++) {
		struct volume *s = &p->volume[i];

		if (!s->pool)
			continue;
		fit_capacity(p, s);
		looks = drain_files(p, s, &k, looks);
	}
	if (k.n == 0) {
		skv_free(k.v);
		return false;
	}
	COUNT(p->core, evicted_blocks, k.n);
	COUNT(p->core, drained_blocks, k.n);
	return remove_queue(p, &k, NULL) == SKV_OK;
}

static const char *drain_waits_for_moves(const struct volume *s, const struct volume_file *f)
{
	if (f->bad || !device_readable(s->dev))
		return "its file system";
	if (!f->pass)
		return "a mover: slabkv mover";
	if (f->roomless)
		return "room in other storages of its blocks' groups; drained without move they go";
	if (f->unsummed)
		return "blocks without checksum, which cannot be moved; drained without move they "
		       "go";
	return f->writing ? "open sessions" : "";
}

const char *drain_waits_for(const struct volume *s, const struct volume_file *f,
			    const struct skv_file_info *info)
{
	if (f->state != FILE_IN_USE)
		return device_healthy(s->dev) ? "" : "its file system";
	if (!file_drains(s, f))
		return "";
	if (f->empty)
		return "a checkpoint";
	if (info->used_bytes && file_moves(s, f))
		return drain_waits_for_moves(s, f);
	if (info->used_bytes && f->pass == ALL && f->pinned)
		return "blocks that are pinned hard: unpin them";
	if (info->used_bytes && f->pass == ALL && f->replicated)
		return "a mover, and room in other storages: slabkv mover; its blocks have "
		       "replicas";
	if (info->used_bytes)
		return f->pass == ALL && f->writing ? "open sessions" : "";
	return info->held_bytes || info->frozen_bytes ? "leases and grace times" : "";
}

