/* replay_blocks.c - decodes and applies a checkpoint's blocks. */
#include <recovery/replay_blocks.h>

#include <string.h>

#include <model/block.h>
#include <model/index.h>
#include <model/mark.h>
#include <model/names.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/volume.h>
#include <model/table.h>
#include <journal/change.h>
#include <journal/replay.h>

static int replay_slot(struct replay *r, struct skv_rd *in, struct block *b, uint32_t spec,
		       struct skv_error *err)
{
	struct instance *inst = block_instance(b);
	struct slot *s = &b->slot[spec];
	struct place pl;
	struct skv_run run = { .count = 1 };
	int rc = replay_place(r, in, &pl, err);
	uint64_t index = skv_get_varint(in), generation = skv_get_varint(in);
	bool has_sum = skv_get_u8(in) != 0;
	uint64_t sum = has_sum ? skv_get_u64(in) : 0;

	if (rc == SKV_OK && (in->failed || index > UINT32_MAX || s->state != SLOT_ABSENT ||
			     !given(r, generation, 1)))
		rc = corrupt(err, "block: malformed slot");
	if (rc != SKV_OK)
		return rc;
	run.first = (uint32_t)index;
	rc = replay_take(r, inst, spec, &pl, &run, err);
	if (rc != SKV_OK)
		return rc;
	*s = (struct slot){ .slab = run.slab, .index = run.first, .volume = pl.volume,
			    .generation = generation, .tag = s->tag };
	slot_set_state(s, SLOT_WRITING);
	skv_pool_set_owner(r->p->volume[pl.volume].pool, run.slab, run.first, block_id(b));
	used_add(r->p, inst, s->volume, (int64_t)inst->spec.specs[spec].size);
	commit_slot(r->p, b, spec, has_sum ? &sum : NULL);
	return SKV_OK;
}

static struct block *find_or_make(struct partition *p, struct instance *inst, struct skv_key key)
{
	struct block *b = index_find(p, inst, key);

	return b ? b : block_make(p, inst, key);
}

static int replay_block(struct replay *r, struct skv_rd *in, struct instance *inst, bool named,
			struct skv_error *err)
{
	struct skv_key key = get_key(in);
	bool has_parent = skv_get_u8(in) != 0;
	struct skv_key parent_key = has_parent ? get_key(in) : (struct skv_key){ 0, 0 };
	uint64_t stored = skv_get_u64(in), mask = skv_get_varint(in);
	struct block *b, *parent = NULL;
	struct skv_bytes name;

	if (in->failed || mask == 0 || mask >> inst->spec.n_specs ||
	    stored_tag(stored) >= SKV_POLICY_TAGS || (has_parent && skv_key_equal(key, parent_key)))
		return corrupt(err, "block: malformed");
	b = find_or_make(r->p, inst, key);
	if (b && has_parent)
		parent = find_or_make(r->p, inst, parent_key);
	if (!b || (has_parent && !parent))
		return SKV_E_NOMEM;
	atomic_store(&b->mark, stored_mark(stored));
	if (mark_use(stored_mark(stored)) > atomic_load(&r->p->last_use))
		atomic_store(&r->p->last_use, mark_use(stored_mark(stored)));
	for (uint32_t s = 0; s < inst->spec.n_specs; s++) {
		int rc = mask >> s & 1 ? replay_slot(r, in, b, s, err) : SKV_OK;

		if (rc != SKV_OK)
			return rc;
	}
	if (named && !get_name(in, &name))
		return corrupt(err, "block: name");
	if (named && block_set_name(b, name) != SKV_OK)
		return SKV_E_NOMEM;
	b->slot[0].tag = stored_tag(stored);
	block_update_live(r->p, b);
	if (parent && b->parent == NO_BLOCK)
		block_set_parent(r->p, b, parent);
	return SKV_OK;
}

static int blocks(struct replay *r, struct skv_rd *in, bool named, struct skv_error *err)
{
	struct instance *inst = instance_by_id(r->p, skv_get_u32(in));
	uint32_t n = skv_get_u32(in);

	if (!inst)
		return replay_orphan(r);
	for (uint32_t i = 0; i < n; i++) {
		int rc = replay_block(r, in, inst, named, err);

		if (rc != SKV_OK)
			return rc;
	}
	return SKV_OK;
}

static int replay_blocks(struct replay *r, struct skv_rd *in, struct skv_error *err)
{
	return blocks(r, in, false, err);
}

static int replay_named_blocks(struct replay *r, struct skv_rd *in, struct skv_error *err)
{
	return blocks(r, in, true, err);
}

const struct record_ops blocks_record = { "blocks", replay_blocks };
const struct record_ops named_blocks_record = { "named blocks", replay_named_blocks };
