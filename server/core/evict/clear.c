/*
 * clear.c - deletes all blocks of an instance at once: a clear, or a drop (with the instance
 * itself).
 *
 * Prepare: an empty instance replaces the old one, which becomes a *retired instance*: lookups and
 * evictions do not find it, and no later record refers to it. Apply: its open sessions end as
 * deleted; their slots wait for deadline and grace. Then the retired instance is swept chunk by
 * chunk, without further records: slots become free, or are held while leased. The ticker does this
 * in portions, and so does a start that needs room. Undo: the retired instance takes its old
 * position back.
 *
 * The cost of a call is thus proportional to the open sessions of its instance. p->retired has
 * those not yet swept, and those whose record is not durable yet (not `cleared`). Under the write
 * lock unless stated otherwise.
 */
#include <evict/clear.h>

#include <assert.h>
#include <string.h>

#include <lock/core.h>
#include <lock/lock.h>
#include <lock/turn.h>
#include <model/block.h>
#include <model/index.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/queue.h>
#include <model/session.h>
#include <model/volume.h>
#include <model/table.h>
#include <journal/change.h>
#include <journal/record.h>
#include <journal/replay.h>

#define PORTION_BLOCKS 1024u /* bounds the time under the lock */

/* ---- prepare, undo --------------------------------------------------------------------------- */

/* The retired instance and its replacement. */
struct clear {
	struct change change;
	struct instance *fresh, *retired;
};

/* Hides its blocks, or shows them again. */
static void set_retired(struct partition *p, struct instance *inst, bool on)
{
	uint64_t blocks = inst->blocks;

	inst->retired = false;
	blocks_count(p, inst, on ? -(int64_t)blocks : (int64_t)blocks);
	pins_count(inst, on ? -(int64_t)inst->pins.n : (int64_t)inst->pins.n);
	inst->blocks = blocks;
	inst->retired = on;
	evict_hide(inst, on);
}

static void leave_retired(struct partition *p, struct instance *retired)
{
	struct instance **at = &p->retired;

	while (*at != retired)
		at = &(*at)->next_retired;
	*at = retired->next_retired;
}

/* Later changes are undone already, so the fresh one is empty. */
static void clear_undo(struct partition *p, struct change *ch)
{
	const struct clear *t = (struct clear *)ch;
	struct instance *fresh = t->fresh, *retired = t->retired;
	struct skv_instance_spec spec = retired->spec;

	ASSERT_EXCLUSIVE(p);
	assert(fresh->entries == 0 && !fresh->open);
	retired->spec = fresh->spec; /* includes an administrator's changes since */
	fresh->spec = spec;
	leave_retired(p, retired);
	retired->retiring = NULL;
	set_retired(p, retired, false);
	partition_replace_instance(p, fresh, retired);
	table_drop(p, fresh);
	instance_free(fresh);
}

/* ---- apply ----------------------------------------------------------------------------------- */

static void end_sessions(struct partition *p, struct instance *inst)
{
	while (inst->open) {
		struct session *s = inst->open;

		assert(!s->pending && !s->ending);
		for (uint32_t i = s->n_write; i-- > 0;)
			session_release(p, s, i, session_grace_end(p, s));
		s->n_deleted = s->anonymous ? 0 : s->n_write;
		COUNT(p->core, failed_blocks, s->n_left);
		session_end(p, s, SKV_SESSION_DELETED);
	}
}

static void clear_apply(struct partition *p, struct change *ch)
{
	struct clear *t = (struct clear *)ch;

	ASSERT_EXCLUSIVE(p);
	assert(t->fresh->clear == ch);
	t->fresh->clear = NULL;
	end_sessions(p, t->retired);
	t->retired->retiring = NULL;
	t->retired->cleared = true;
	evict_hide_for_good(t->retired);
	COUNT(p->core, deleted_blocks, t->retired->blocks);
}

/* ---- the sweep ------------------------------------------------------------------------------- */

/* Releases a block. The queues are freed as a whole, so the slot's position in them is ignored. */
static void release_block(struct partition *p, struct instance *inst, struct block *b,
			  uint64_t hold_until)
{
	uint64_t lease = block_lease(p, inst, b);

	for (uint32_t s = 0; s < inst->spec.n_specs; s++) {
		if (b->slot[s].state == SLOT_ABSENT)
			continue;
		assert(b->slot[s].state == SLOT_COMMITTED);
		b->slot[s].queued = 0;
		slot_release(p, b, s, lease > hold_until ? lease : hold_until);
	}
}

/* Frees the slots of its newest chunk, or holds them until the lease ends and at least until
 * hold_until. Returns how many entries it had. */
static uint32_t sweep_chunk(struct partition *p, struct instance *inst, uint64_t hold_until)
{
	struct chunk *c = inst->newest;
	uint32_t n = 0;

	ASSERT_EXCLUSIVE(p);
	if (p->snap.active)
		snapshot_touch_chunk(p, c->number);
	for (uint32_t i = 0; i < c->fresh; i++) {
		struct block *b = chunk_place(c, i);

		if (!b->used)
			continue;
		if (block_has_committed(inst, b))
			blocks_count(p, inst, -1);
		release_block(p, inst, b, hold_until);
		b->used = 0;
		inst->entries--;
		n++;
	}
	table_drop_chunk(p, inst);
	return n;
}

static bool in_volume(const struct instance *inst, uint32_t volume)
{
	return volume == ANY_VOLUME || instance_classes(inst, volume);
}

static bool matters(const struct instance *retired, const struct group *g, uint32_t volume)
{
	return (!retired->cleared || retired->newest) && (!g || retired->group == g) &&
	       in_volume(retired, volume);
}

uint32_t retired_sweep(struct partition *p, const struct group *g, uint32_t volume, uint32_t blocks)
{
	uint32_t n = 0;

	ASSERT_EXCLUSIVE(p);
	for (struct instance *retired = p->retired; retired && n < blocks;
	     retired = retired->next_retired)
		while (n < blocks && retired->cleared && retired->newest &&
		       matters(retired, g, volume))
			n += sweep_chunk(p, retired, 0) + 1;
	return n;
}

bool retired_left(const struct partition *p, const struct group *g, uint32_t volume)
{
	ASSERT_SHARED(p);
	for (const struct instance *retired = p->retired; retired; retired = retired->next_retired)
		if (matters(retired, g, volume))
			return true;
	return false;
}

bool retired_go_on(struct partition *p)
{
	ASSERT_EXCLUSIVE(p);
	return retired_sweep(p, NULL, ANY_VOLUME, PORTION_BLOCKS) >= PORTION_BLOCKS;
}

struct instance *retired_take_swept(struct partition *p)
{
	struct instance **at = &p->retired, *swept = NULL;

	ASSERT_EXCLUSIVE(p);
	while (*at) {
		struct instance *retired = *at;

		if (!retired->cleared || retired->newest) {
			at = &retired->next_retired;
			continue;
		}
		*at = retired->next_retired;
		retired->next_retired = swept;
		swept = retired;
	}
	return swept;
}

void retired_free(struct instance *retired)
{
	while (retired) {
		struct instance *next = retired->next_retired;

		instance_free(retired);
		retired = next;
	}
}

void retired_finish(struct skv_core *c)
{
	bool more = true;

	while (more && (c->o.manual || core_pause(c, 1))) {
		struct instance *swept = NULL;

		core_lock(c);
		more = c->partition && retired_go_on(c->partition);
		if (c->partition)
			swept = retired_take_swept(c->partition);
		core_unlock(c);
		retired_free(swept);
	}
}

/* ---- the change ------------------------------------------------------------------------------ */

/* Replay: contains only sessions and blocks that were journaled before, and there are no retired
 * instances yet. */
static void apply_at_once(struct partition *p, struct instance *inst, uint64_t hold_until)
{
	ASSERT_EXCLUSIVE(p);
	end_sessions(p, inst);
	while (inst->newest)
		sweep_chunk(p, inst, hold_until);
	table_drop(p, inst);
	index_destroy(inst);
	evict_destroy_queues(inst);
}

static int replay_both(struct replay *r, struct skv_rd *in, bool drop, struct skv_error *err)
{
	struct instance *inst = instance_by_id(r->p, skv_get_u32(in));
	uint64_t until = replay_get_end(r, in);

	if (in->failed)
		return corrupt(err, "clear: too short");
	if (!inst)
		return replay_orphan(r);
	inst->deleting |= drop; /* then its registration is removed: registry_finish_drops */
	apply_at_once(r->p, inst, until);
	return SKV_OK;
}

static int replay_clear(struct replay *r, struct skv_rd *in, struct skv_error *err)
{
	return replay_both(r, in, false, err);
}

static int replay_drop(struct replay *r, struct skv_rd *in, struct skv_error *err)
{
	return replay_both(r, in, true, err);
}

const struct change_ops clear_ops = {
	.record = { "clear", replay_clear },
	.size = sizeof(struct clear),
	.apply = clear_apply,
	.undo = clear_undo,
	.frees_slots = change_frees_slots,
};

const struct change_ops drop_ops = {
	.record = { "drop", replay_drop },
	.size = sizeof(struct clear),
	.apply = clear_apply,
	.undo = clear_undo,
	.frees_slots = change_frees_slots,
};

int clear_queue(struct partition *p, struct instance *inst, bool drop, struct change **out)
{
	struct clear *t = (struct clear *)change_make(drop ? &drop_ops : &clear_ops);
	struct instance *fresh = instance_again(inst);

	ASSERT_EXCLUSIVE(p);
	assert(!inst->retired);
	if (t)
		record_clear(&t->change.rec, inst, drop, skv_now_ms(p->core->clock));
	if (!t || t->change.rec.failed || !fresh) {
		change_destroy(t ? &t->change : NULL);
		instance_free(fresh);
		return SKV_E_NOMEM;
	}
	t->change.urgent = true;
	t->fresh = fresh;
	t->retired = inst;
	inst->retiring = &t->change;
	fresh->clear = &t->change;
	fresh->deleting = drop;
	partition_replace_instance(p, inst, fresh);
	set_retired(p, inst, true);
	inst->next_retired = p->retired;
	p->retired = inst;
	change_queue(p, &t->change);
	*out = &t->change;
	return SKV_OK;
}

uint64_t clear_blocks(const struct change *ch)
{
	assert(ch->ops == &clear_ops || ch->ops == &drop_ops);
	return ((const struct clear *)ch)->retired->blocks;
}
