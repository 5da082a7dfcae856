/*
 * drain.c - slab files that go: which ones, and emptied block by block. storage/remove_files.c does the rest.
 *
 * A file drains because an administrator asked for it, because its storage is retired, or because the capacity was lowered
 * below what was made. Nothing new is placed there (allocator). What is there is evicted in portions, in the background:
 * a walk goes through the file's slots again and again, first for leaves that nobody used for long, then for shorter and
 * shorter times, at last for all, leased blocks included: those are a miss at once, and their slots are held until the
 * lease ends, as after a deletion. What is being written is left alone until its session ends, what is pinned hard until
 * somebody unpins it.
 *
 * An empty file is still named by older records of the journal, so a checkpoint is written first. Then it is GOING, from
 * where there is no way back. All of it runs under the write lock (ticker).
 */
#include <evict/drain.h>

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
#include <storage/device.h>
#include <evict/evict.h>
#include <evict/remove.h>
#include <evict/rebalance.h>

#define LOOKS 4096u     /* slots that one call looks at */
#define PORTION 512u    /* blocks that it picks */
#define REST_MS 100u    /* after a walk that found nothing to pick */
#define ASK_MS 1000u    /* until a checkpoint is asked for again */
#define SAMPLES 8u      /* slabs looked at to tell what a file is worth */
#define MAX_COMPARED 256u /* files, to find the one that is worth least */
#define MAX_SHRINKS 2u   /* chosen in one call */
#define MAX_VISITS 256u  /* draining files that one call looks after */

enum pass { SURVEY, OLD_1, OLD_2, OLD_3, OLD_4, LEAVES, ALL };

/* ---- the walk --------------------------------------------------------------------------------------- */

/* May the block go in this pass? */
static bool goes(const struct partition *p, const struct volume_file *f, const struct block *b, uint64_t now)
{
	const struct instance *inst = block_instance(b);

	if (f->lost)
		return block_has_committed(inst, b) && !block_has_writing(inst, b);
	if (f->pass == SURVEY || !block_has_committed(inst, b) || pin_kind(b) == SKV_PIN_HARD)
		return false;
	if (f->pass == ALL)
		return !block_has_writing(inst, b);
	if (b->live_children || !block_evictable(p, inst, b, now))
		return false;
	return f->pass == LEAVES || block_idle_ms(p, b) >= f->oldest >> f->pass;
}

static void note_slot(const struct partition *p, struct volume_file *f, const struct block *b)
{
	const struct instance *inst = block_instance(b);

	if (f->pass == SURVEY && block_idle_ms(p, b) > f->oldest)
		f->oldest = block_idle_ms(p, b);
	f->saw_writing += block_has_writing(inst, b);
	f->saw_pinned += pin_kind(b) == SKV_PIN_HARD;
}

static void look_at_slot(struct partition *p, struct volume_file *f, const struct skv_pool *pool, uint32_t slab, uint32_t slot,
			 struct picks *k)
{
	uint64_t now = skv_now_ms(p->core->clock);
	struct block *b;

	if (!skv_pool_is_used(pool, slab, slot) || skv_pool_owner(pool, slab, slot) == NO_BLOCK)
		return;
	b = block_get(p, skv_pool_owner(pool, slab, slot));
	if (block_instance(b)->retired)
		return; /* the sweep frees it */
	note_slot(p, f, b);
	if (goes(p, f, b, now) && remove_mark(p, k, b) == SKV_OK)
		f->picked = true;
}

/* The walk came through. After the last kind of pass it goes on with that one, and rests if it finds nothing. */
static void end_pass(struct partition *p, struct volume_file *f)
{
	f->unit = f->slot = 0;
	f->writing = f->saw_writing;
	f->pinned = f->saw_pinned;
	f->saw_writing = f->saw_pinned = 0;
	if (f->pass == ALL && !f->picked)
		f->again_at = skv_now_ms(p->core->clock) + REST_MS;
	if (f->pass < ALL)
		f->pass++;
	f->picked = false;
}

/* Some slots further. Returns how many it looked at; fewer than `looks`: it came through, or has a portion. */
static uint32_t walk(struct partition *p, struct volume *s, struct volume_file *f, struct picks *k, uint32_t looks)
{
	uint32_t left = looks;

	while (left && k->n < PORTION) {
		struct skv_slab_info info;
		uint32_t next = f->unit, slab;

		if (!skv_pool_next_slab(s->pool, f->number, &next, &slab)) {
			end_pass(p, f);
			break;
		}
		skv_pool_slab(s->pool, slab, &info);
		if (info.place.unit != f->unit) { /* where it was there is none any more */
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

/* ---- empty files -------------------------------------------------------------------------------------- */

/* Nothing is left in the file: once a checkpoint that began later is durable, no record names it. */
static void wait_for_checkpoint(struct partition *p, struct volume *s, struct volume_file *f)
{
	uint64_t now = skv_now_ms(p->core->clock);

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

/* Returns how many slots it looked at. */
static uint32_t drain_file(struct partition *p, struct volume *s, struct volume_file *f, struct picks *k, uint32_t looks)
{
	if (f->lost)
		f->pass = ALL;
	if (skv_pool_file_is_empty(s->pool, f->number)) {
		wait_for_checkpoint(p, s, f);
		return 0;
	}
	return skv_now_ms(p->core->clock) < f->again_at ? 0 : walk(p, s, f, k, looks);
}

/* ---- capacity ----------------------------------------------------------------------------------------- */

/* Bytes by how long ago they were used: what the file's blocks are worth. */
static uint64_t worth(const struct partition *p, const struct volume *s, const struct volume_file *f)
{
	uint64_t idle = 0;
	uint32_t unit = 0, slab, seen = 0;

	for (; seen < SAMPLES && skv_pool_next_slab(s->pool, f->number, &unit, &slab); seen++)
		idle += slab_idle_ms(p, s->pool, slab);
	return skv_pool_file_used(s->pool, f->number) / (1 + (seen ? idle / seen : 0) / 1024);
}

/* Of some of them, of others each time. */
static struct volume_file *cheapest(const struct partition *p, struct volume *s)
{
	size_t step = s->n_file / MAX_COMPARED + 1;
	struct volume_file *best = NULL;
	uint64_t least = UINT64_MAX;

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

/* A portion of those that were to go is let be, as far as all fit. True: that look came through. */
static bool let_be(struct volume *s)
{
	for (uint32_t looks = 0; looks < MAX_VISITS && s->fit_at < s->n_drain; looks++) {
		struct volume_file *f = file_find(s, s->drain[s->fit_at]);

		if (!f->shrink || f->asked || s->stays + f->length > s->capacity) {
			s->fit_at++;
			continue;
		}
		f->shrink = false;
		file_settle(s, f); /* the next one is in its place now */
	}
	if (s->fit_at < s->n_drain)
		return false;
	s->fit_at = 0;
	return true;
}

/* Files are chosen to drain until the others fit the capacity, or let be as far as all of them fit; in portions, and only
 * when something has changed. */
static void fit_capacity(struct partition *p, struct volume *s)
{
	struct volume_file *f;

	if (!s->fit_due || s->dev->ops->counted || s->draining || !let_be(s))
		return;
	for (uint32_t n = 0; n < MAX_SHRINKS && s->stays > s->capacity && (f = cheapest(p, s)) != NULL; n++) {
		f->shrink = true;
		file_settle(s, f);
	}
	s->fit_due = s->stays > s->capacity;
}

/* ---- the ticker ----------------------------------------------------------------------------------------- */

/* Some of the draining files, and next time those behind them. */
static uint32_t drain_files(struct partition *p, struct volume *s, struct picks *k, uint32_t looks)
{
	uint32_t visits = MAX_VISITS;

	if (s->drain_at >= s->n_drain)
		s->drain_at = 0;
	while (visits-- && s->drain_at < s->n_drain && looks && k->n < PORTION) {
		uint32_t number = s->drain[s->drain_at];

		looks -= drain_file(p, s, file_find(s, number), k, looks);
		if (looks && k->n < PORTION && s->drain_at < s->n_drain && s->drain[s->drain_at] == number)
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

const char *drain_waits_for(const struct volume *s, const struct volume_file *f, const struct skv_file_info *info)
{
	if (f->state != FILE_IN_USE)
		return device_healthy(s->dev) ? "" : "its file system";
	if (!file_drains(s, f))
		return "";
	if (f->empty)
		return "a checkpoint";
	if (info->used_bytes && f->pass == ALL && f->pinned)
		return "blocks that are pinned hard: unpin them";
	if (info->used_bytes)
		return f->pass == ALL && f->writing ? "open sessions" : "";
	return info->held_bytes || info->frozen_bytes ? "leases and grace times" : "";
}

