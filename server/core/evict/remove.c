/*
 * remove.c - removal of blocks, by deletion or eviction.
 *
 * Prepare: the block's committed slots become REMOVING, so no lookup sees them. Apply, when the
 * record is durable: slots become free, or are held until the lease on them ends. Undo: they are
 * COMMITTED again. Under the write lock.
 */
#include <evict/remove.h>

#include <assert.h>
#include <string.h>

#include <skv/mem.h>

#include <lock/lock.h>
#include <model/block.h>
#include <model/index.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/queue.h>
#include <model/volume.h>
#include <model/table.h>
#include <journal/change.h>
#include <journal/format.h>
#include <journal/record.h>
#include <journal/replay.h>

#define EXPECTED 64u /* lookups at a time, while loading */

#define AHEAD 8u /* loop iterations between a prefetch and its use */

static void count_removing(struct partition *p, struct instance *inst, const struct slot *s,
			   uint32_t spec, int sign)
{
	struct volume *volume = &p->volume[s->volume];

	volume->class[class_of(inst, s->volume, spec)].removing += (uint64_t)sign;
	removing_add(p, inst, s->volume, sign * (int64_t)inst->spec.specs[spec].size);
}

/* COMMITTED <-> REMOVING, with all accounting. */
static void set_removing(struct partition *p, struct block *b, uint32_t specs, bool on)
{
	struct instance *inst = block_instance(b);
	uint8_t from = on ? SLOT_COMMITTED : SLOT_REMOVING;
	bool had = block_has_committed(inst, b);

	ASSERT_EXCLUSIVE(p);
	block_touch(p, b);
	for (uint32_t s = 0; s < inst->spec.n_specs; s++) {
		if (!(specs >> s & 1) || b->slot[s].state != from)
			continue;
		slot_set_state(&b->slot[s], on ? SLOT_REMOVING : SLOT_COMMITTED);
		count_removing(p, inst, &b->slot[s], s, on ? 1 : -1);
	}
	if (had != block_has_committed(inst, b))
		blocks_count(p, inst, on ? -1 : 1);
	block_update_live(p, b);
}

static uint32_t committed_specs(const struct instance *inst, const struct block *b)
{
	uint32_t mask = 0;

	for (uint32_t s = 0; s < inst->spec.n_specs; s++)
		mask |= b->slot[s].state == SLOT_COMMITTED ? 1u << s : 0;
	return mask;
}

int remove_mark(struct partition *p, struct picks *k, struct block *b)
{
	return remove_mark_specs(p, k, b, committed_specs(block_instance(b), b));
}

int remove_mark_specs(struct partition *p, struct picks *k, struct block *b, uint32_t specs)
{
	void *v = k->v;
	const struct instance *inst = block_instance(b);
	uint64_t lease = block_lease(p, inst, b);

	ASSERT_EXCLUSIVE(p);
	assert((specs & ~committed_specs(inst, b)) == 0);
	if (skv_grow(&v, &k->cap, k->n + 1, sizeof *k->v) != SKV_OK)
		return SKV_E_NOMEM;
	k->v = v;
	k->v[k->n++] = (struct removal){ .block = block_id(b),
					   .specs = specs,
					   .hold_until = lease && lease > skv_now_ms(p->core->clock)
						   ? lease : 0 };
	evict_forget(b);
	set_removing(p, b, specs, true);
	if (block_has_committed(inst, b))
		evict_consider(p, b);
	return SKV_OK;
}

static void unmark(struct partition *p, const struct removal *v, size_t n)
{
	ASSERT_EXCLUSIVE(p);
	for (size_t i = n; i-- > 0;) {
		struct block *b = block_get(p, v[i].block);
		const struct instance *inst = block_instance(b);

		for (uint32_t s = 0; s < inst->spec.n_specs; s++)
			if (v[i].specs >> s & 1)
				skv_pool_drain(p->volume[b->slot[s].volume].pool, b->slot[s].slab,
					       false);
		set_removing(p, b, v[i].specs, false);
		evict_consider(p, b);
	}
}

void remove_cancel(struct partition *p, struct picks *k)
{
	ASSERT_EXCLUSIVE(p);
	unmark(p, k->v, k->n);
	skv_free(k->v);
	*k = (struct picks){ 0 };
}

/* ---- the change ------------------------------------------------------------------------------ */

struct remove {
	struct change change;
	struct removal *v;
	size_t n;
};

/* Victims are scattered: prefetches the entry, then its index cell, some iterations ahead. */
static void prefetch(const struct partition *p, const struct removal *v, size_t n, size_t i)
{
	if (i + 2 * AHEAD < n)
		__builtin_prefetch(block_get(p, v[i + 2 * AHEAD].block), 1);
	if (i + AHEAD < n) {
		const struct block *b = block_get(p, v[i + AHEAD].block);

		index_prefetch(block_instance(b), index_hash(p, b->key));
	}
}

void removals_apply(struct partition *p, const struct removal *v, size_t n)
{
	ASSERT_EXCLUSIVE(p);
	for (size_t i = 0; i < n; i++) {
		struct block *b = block_get(p, v[i].block);
		struct instance *inst = block_instance(b);

		prefetch(p, v, n, i);
		core_let_read(p->core, i);
		for (uint32_t s = 0; s < inst->spec.n_specs; s++) {
			if (!(v[i].specs >> s & 1))
				continue; /* in another removal, or written again since */
			assert(b->slot[s].state == SLOT_REMOVING);
			count_removing(p, inst, &b->slot[s], s, -1);
			slot_release(p, b, s, v[i].hold_until);
		}
		block_update_live(p, b);
		block_maybe_free(p, b);
	}
}

static void remove_apply(struct partition *p, struct change *ch)
{
	const struct remove *r = (struct remove *)ch;

	removals_apply(p, r->v, r->n);
}

static void remove_undo(struct partition *p, struct change *ch)
{
	const struct remove *r = (struct remove *)ch;

	ASSERT_EXCLUSIVE(p);
	unmark(p, r->v, r->n);
}

static void remove_destroy(struct change *ch) { skv_free(((struct remove *)ch)->v); }

/* Entries of the next removals come into the cache while the first is looked up. */
static void expect(const struct partition *p, const struct instance *inst, struct skv_rd in,
		   uint64_t n)
{
	struct skv_key keys[EXPECTED];
	uint32_t have = 0;

	while (have < n && have < EXPECTED && !in.failed) {
		keys[have++] = get_key(&in);
		skv_get_varint(&in); /* specs, */
		skv_get_varint(&in); /* hold */
	}
	index_expect(p, inst, keys, have);
}

static int replay_remove(struct replay *r, struct skv_rd *in, struct skv_error *err)
{
	struct instance *inst = instance_by_id(r->p, skv_get_u32(in));
	uint64_t n = skv_get_varint(in);

	if (!inst)
		return replay_orphan(r);
	for (uint64_t i = 0; i < n; i++) {
		struct skv_key key;
		uint64_t specs, hold;
		struct block *b;

		if (i % EXPECTED == 0)
			expect(r->p, inst, *in, n - i);
		key = get_key(in);
		specs = skv_get_varint(in);
		hold = skv_get_varint(in);
		b = in->failed ? NULL : index_find(r->p, inst, key);

		if (!b || specs >> inst->spec.n_specs)
			return corrupt(err, "removal of an unknown block");
		if (specs == committed_specs(inst, b))
			evict_followed(r->p, b);
		for (uint32_t s = 0; s < inst->spec.n_specs; s++) {
			if (!(specs >> s & 1))
				continue;
			if (b->slot[s].state != SLOT_COMMITTED)
				return corrupt(err, "removal of a slot that is not committed");
			slot_release(r->p, b, s, hold ? r->now + hold : 0);
		}
		if (!block_has_committed(inst, b))
			blocks_count(r->p, inst, -1);
		block_update_live(r->p, b);
		block_maybe_free(r->p, b);
	}
	return SKV_OK;
}

/* The committed block in a slot, if the instance, of one spec, has one there. */
static struct block *block_in(const struct partition *p, const struct instance *inst,
			      uint32_t volume, uint32_t slab, uint64_t index)
{
	struct block *b = slot_block(p, volume, slab, index);

	return b && block_instance(b) == inst && b->slot[0].state == SLOT_COMMITTED ? b : NULL;
}

/* The same for blocks in n slots, one `step` after the other: entries first, then their cells. */
static void expect_slots(const struct partition *p, const struct instance *inst, uint32_t volume,
			 uint32_t slab, uint64_t at, uint64_t step, uint64_t n)
{
	for (uint64_t i = 0; i < n && i < EXPECTED; i++) {
		const struct block *b = slot_block(p, volume, slab, at + i * step);

		if (b)
			__builtin_prefetch(b, 1);
	}
	for (uint64_t i = 0; i < n && i < EXPECTED; i++) {
		const struct block *b = block_in(p, inst, volume, slab, at + i * step);

		if (b)
			index_prefetch(inst, index_hash(p, b->key));
	}
}

static int replay_remove_slots(struct replay *r, struct skv_rd *in, struct skv_error *err)
{
	struct instance *inst = instance_by_id(r->p, skv_get_u32(in));
	struct place pl = { 0 };
	uint32_t slab = 0;
	bool any = false;

	if (!inst)
		return replay_orphan(r);
	if (in->failed || inst->spec.n_specs != 1)
		return corrupt(err, "removal of slots: malformed");
	while (skv_rd_left(in)) {
		uint64_t run = skv_get_varint(in), count = (run >> REMOVE_COUNT_SHIFT) + 1, at;
		/* A step back: the addition wraps. */
		const uint64_t step = run & REMOVE_DOWN ? UINT64_MAX : 1;

		if (!(run & REMOVE_SAME_SLAB))
			any = replay_get_place(r, in, &pl, err) == SKV_OK &&
			      place_slab(r->p, pl.volume, pl.slab, &slab);
		at = skv_get_varint(in);
		if (!any || in->failed || count > SKV_SLAB_SLOTS)
			return corrupt(err, "removal of slots that are not in use");
		for (uint64_t i = 0; i < count; i++, at += step) {
			struct block *b;

			if (i % EXPECTED == 0)
				expect_slots(r->p, inst, pl.volume, slab, at, step, count - i);
			b = block_in(r->p, inst, pl.volume, slab, at);
			if (!b)
				return corrupt(err, "removal of a slot that is not committed");
			evict_followed(r->p, b);
			slot_release(r->p, b, 0, 0);
			blocks_count(r->p, inst, -1);
			block_update_live(r->p, b);
			block_maybe_free(r->p, b);
		}
	}
	return SKV_OK;
}

const struct record_ops remove_slots_record = { "remove slots", replay_remove_slots };

const struct change_ops remove_ops = {
	.record = { "remove", replay_remove },
	.size = sizeof(struct remove),
	.apply = remove_apply,
	.undo = remove_undo,
	.destroy = remove_destroy,
	.frees_slots = change_frees_slots,
};

int remove_queue(struct partition *p, struct picks *k, struct change **out)
{
	struct remove *r = (struct remove *)change_make(&remove_ops);
	uint64_t now = skv_now_ms(p->core->clock);

	ASSERT_EXCLUSIVE(p);
	for (size_t i = 0; r && i < k->n;) /* a record per run of an instance */
		i += record_remove(&r->change.rec, p, k->v + i, k->n - i, now);
	if (!r || r->change.rec.failed) {
		change_destroy(r ? &r->change : NULL);
		remove_cancel(p, k);
		return SKV_E_NOMEM;
	}
	r->v = k->v;
	r->n = k->n;
	r->change.blocks = k->n;
	r->change.urgent = true;
	r->change.relaxed = k->relaxed;
	*k = (struct picks){ 0 };
	change_queue(p, &r->change);
	if (out)
		*out = &r->change;
	return SKV_OK;
}
