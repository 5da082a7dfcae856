/*
 * remove.c - blocks on their way out, by deletion or eviction.
 *
 * Prepare: the block's committed slots become REMOVING, so no lookup sees them. Apply, when the
 * record is durable: slots become free, or are held until the lease that runs on them ends. Undo: they
 * are COMMITTED again. All calls under the write lock.
 */
#include <evict/remove.h>

#include <assert.h>
#include <string.h>

#include <skv/mem.h>

#include <model/block.h>
#include <model/index.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/queue.h>
#include <model/volume.h>
#include <model/table.h>
#include <journal/change.h>
#include <journal/record.h>
#include <journal/replay.h>

#define AHEAD 8u /* turns of a loop between a prefetch and its use */

static void count_removing(struct partition *p, struct instance *inst, const struct slot *s, uint32_t spec,
			   int sign)
{
	struct volume *volume = &p->volume[s->volume];

	volume->class[class_of(inst, s->volume, spec)].removing += (uint64_t)sign;
	removing_add(p, inst, s->volume, sign * (int64_t)inst->spec.specs[spec].size);
}

/* COMMITTED <-> REMOVING, with the counts that hang on it. */
static void set_removing(struct partition *p, struct block *b, uint32_t specs, bool on)
{
	struct instance *inst = block_instance(b);
	uint8_t from = on ? SLOT_COMMITTED : SLOT_REMOVING;
	bool had = block_has_committed(inst, b);

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
	void *v = k->v;
	const struct instance *inst = block_instance(b);
	uint64_t lease = block_lease(p, inst, b);

	ASSERT_EXCLUSIVE(p);
	if (skv_grow(&v, &k->cap, k->n + 1, sizeof *k->v) != SKV_OK)
		return SKV_E_NOMEM;
	k->v = v;
	k->v[k->n++] = (struct removal){ .block = block_id(b),
					   .specs = committed_specs(inst, b),
					   .hold_until = lease && lease > skv_now_ms(p->core->clock) ? lease : 0 };
	evict_forget(b);
	set_removing(p, b, k->v[k->n - 1].specs, true);
	return SKV_OK;
}

static void unmark(struct partition *p, const struct removal *v, size_t n)
{
	for (size_t i = n; i-- > 0;) {
		struct block *b = block_get(p, v[i].block);
		const struct instance *inst = block_instance(b);

		for (uint32_t s = 0; s < inst->spec.n_specs; s++)
			if (v[i].specs >> s & 1)
				skv_pool_drain(p->volume[b->slot[s].volume].pool, b->slot[s].slab, false);
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

/* ---- the change -------------------------------------------------------------------------------------- */

struct remove {
	struct change change;
	struct removal *v;
	size_t n;
};

/* Victims lie anywhere: the entry some turns ahead, then its cell in the index. */
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
		for (uint32_t s = 0; s < inst->spec.n_specs; s++) {
			if (!(v[i].specs >> s & 1))
				continue; /* another removal's, or written since */
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

static int replay_remove(struct replay *r, struct skv_rd *in, struct skv_error *err)
{
	struct instance *inst = instance_by_id(r->p, skv_get_u32(in));
	uint64_t n = skv_get_varint(in);

	if (!inst)
		r->orphans = true;
	for (uint64_t i = 0; inst && i < n; i++) {
		struct skv_key key = get_key(in);
		uint64_t specs = skv_get_varint(in), hold = skv_get_varint(in);
		struct block *b = in->failed ? NULL : index_find(r->p, inst, key);

		if (!b || specs >> inst->spec.n_specs)
			return corrupt(err, "removal of an unknown block");
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
	for (size_t i = 0; r && i < k->n;) /* one record per stretch of one instance */
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
