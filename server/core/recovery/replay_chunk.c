/*
 * replay_chunk.c - blocks of a checkpoint, chunk by chunk, decoded and applied.
 *
 * The entries of a chunk keep their places in a chunk of this partition, so an id of then leads to
 * the entry without a lookup. Parents may come later: until all chunks were read, an entry's parent
 * is the id of then (link_parents).
 */
#include <recovery/replay_chunk.h>

#include <skv/mem.h>

#include <model/block.h>
#include <model/index.h>
#include <model/mark.h>
#include <model/names.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/table.h>
#include <model/volume.h>
#include <journal/format.h>
#include <journal/replay.h>

/* Of the entry before, by spec. */
struct before {
	bool any;
	struct place pl;
	uint64_t index, generation;
};

struct reader {
	struct replay *r;
	struct skv_rd *in;
	struct instance *inst;
	struct chunk *chunk;
	uint64_t least_use;
	uint32_t place; /* the one after the entry before */
	struct before before[SKV_MAX_SPECS];
};

/* ---- parents --------------------------------------------------------------------------------- */

static struct chunk *chunk_of(const struct replay *r, uint32_t id)
{
	uint32_t no = id >> CHUNK_SHIFT;

	return no < r->n_chunk && r->chunk[no] ? r->p->chunk[r->chunk[no]] : NULL;
}

static struct block *entry_of(const struct replay *r, uint32_t id)
{
	const struct chunk *c = chunk_of(r, id);
	uint32_t place = id & (CHUNK_CAPACITY - 1);

	return c && place < c->capacity ? chunk_place(c, place) : NULL;
}

static int link_parents(struct replay *r, struct chunk *c, struct skv_error *err)
{
	for (uint32_t i = 0; i < c->fresh; i++) {
		const struct block *b = chunk_place(c, i);

		if (b->used && b->parent != NO_BLOCK)
			__builtin_prefetch(entry_of(r, b->parent), 1);
	}
	for (uint32_t i = 0; i < c->fresh; i++) {
		struct block *b = chunk_place(c, i), *parent;

		if (!b->used || b->parent == NO_BLOCK)
			continue;
		parent = entry_of(r, b->parent);
		if (!parent && !chunk_of(r, b->parent)) {
			b->parent = NO_BLOCK; /* cleared in the journal: its turn came after that */
			continue;
		}
		if (!parent || !parent->used || parent == b || block_instance(parent) != c->inst)
			return corrupt(err, "chunk: a block's parent is missing");
		b->parent = NO_BLOCK;
		block_set_parent(r->p, b, parent);
	}
	return SKV_OK;
}

/* Builds the index of each instance at once: many keys together are faster than one by one. */
static int build_indexes(struct replay *r, struct skv_error *err)
{
	int rc = SKV_OK;

	for (size_t i = 0; i < r->p->n_inst && rc == SKV_OK; i++)
		if (r->p->inst[i]->entries)
			rc = index_build(r->p, r->p->inst[i]);
	return rc == SKV_E_CONFLICT ? corrupt(err, "chunk: a block is there twice") : rc;
}

static int settle(struct replay *r, struct skv_error *err)
{
	int rc = build_indexes(r, err);

	for (size_t i = 0; i < r->n_chunk && rc == SKV_OK; i++)
		if (r->chunk[i])
			rc = link_parents(r, r->p->chunk[r->chunk[i]], err);
	for (size_t i = 0; i < r->n_chunk; i++)
		if (r->chunk[i])
			table_restored(r->p, r->p->chunk[r->chunk[i]]);
	r->n_chunk = 0;
	return rc;
}

/* ---- entries --------------------------------------------------------------------------------- */

static int get_slot(struct reader *rd, struct block *b, uint32_t spec, struct skv_error *err)
{
	struct replay *r = rd->r;
	struct before *before = &rd->before[spec];
	struct slot *s = &b->slot[spec];
	uint8_t flags = skv_get_u8(rd->in);
	struct skv_run run = { .count = 1 };
	int rc = SKV_OK;
	uint64_t sum;

	if (flags & CHUNK_SAME_SLAB ? !before->any : flags & CHUNK_NEXT_SLOT)
		return corrupt(err, "chunk: a slot follows none");
	if (!(flags & CHUNK_SAME_SLAB))
		rc = replay_place(r, rd->in, &before->pl, err);
	if (rc != SKV_OK)
		return rc;
	before->any = true;
	before->index = flags & CHUNK_NEXT_SLOT ? before->index + 1 : skv_get_varint(rd->in);
	before->generation =
		flags & CHUNK_NEXT_GENERATION ? before->generation + 1 : skv_get_varint(rd->in);
	sum = flags & CHUNK_CHECKSUM ? skv_get_u64(rd->in) : 0;
	if (rd->in->failed || before->index > UINT32_MAX || !given(r, before->generation, 1))
		return corrupt(err, "chunk: malformed slot");
	run.first = (uint32_t)before->index;
	rc = replay_take(r, rd->inst, spec, &before->pl, &run, err);
	if (rc != SKV_OK)
		return rc;
	*s = (struct slot){ .slab = run.slab, .index = run.first, .volume = before->pl.volume,
			    .generation = before->generation, .tag = s->tag };
	slot_set_state(s, SLOT_WRITING);
	skv_pool_set_owner(r->p->volume[before->pl.volume].pool, run.slab, run.first, block_id(b));
	used_add(r->p, rd->inst, s->volume, (int64_t)rd->inst->spec.specs[spec].size);
	if (!block_has_committed(rd->inst, b))
		blocks_count(r->p, rd->inst, 1);
	commit_slot(r->p, b, spec, flags & CHUNK_CHECKSUM ? &sum : NULL);
	return SKV_OK;
}

static int get_slots(struct reader *rd, struct block *b, uint8_t flags, struct skv_error *err)
{
	uint32_t n_specs = rd->inst->spec.n_specs;
	uint64_t all = (1ull << n_specs) - 1;
	uint64_t mask = flags & CHUNK_ALL_SPECS ? all : skv_get_varint(rd->in),
		 mark = skv_get_varint(rd->in);
	uint64_t use = rd->least_use + (mark >> CHUNK_USE_SHIFT);
	uint32_t tag = mark & ((1u << STORED_TAG_BITS) - 1);
	struct skv_bytes name;
	int rc = SKV_OK;

	if (rd->in->failed || mask == 0 || mask > all || tag >= SKV_POLICY_TAGS ||
	    use_ms(use) > USE_MS_MAX || use < rd->least_use)
		return corrupt(err, "chunk: malformed block");
	atomic_store(&b->mark, mark_make(use, mark >> STORED_TAG_BITS & MARK_FREQ_MAX, 0));
	use_seen(rd->r->p, use);
	b->slot[0].tag = tag;
	for (uint32_t s = 0; s < n_specs && rc == SKV_OK; s++)
		if (mask >> s & 1)
			rc = get_slot(rd, b, s, err);
	if (rc == SKV_OK && rd->inst->spec.named && !get_name(rd->in, &name))
		rc = corrupt(err, "chunk: name");
	else if (rc == SKV_OK && rd->inst->spec.named)
		rc = block_set_name(b, name);
	block_update_live(rd->r->p, b);
	return rc;
}

static int get_entry(struct reader *rd, struct skv_key key, struct skv_error *err)
{
	uint8_t flags = skv_get_u8(rd->in);
	uint64_t place = flags & CHUNK_NEXT_PLACE ? rd->place : skv_get_varint(rd->in);
	uint32_t parent = flags & CHUNK_PARENT ? skv_get_u32(rd->in) : NO_BLOCK;
	struct block *b;
	int rc = SKV_OK;

	if (rd->in->failed || place < rd->place || place >= rd->chunk->capacity ||
	    (flags & CHUNK_PARENT && parent == NO_BLOCK))
		return corrupt(err, "chunk: malformed entry");
	rd->place = (uint32_t)place + 1;
	b = block_restore(rd->chunk, (uint32_t)place, key);
	if (flags & CHUNK_SLOTS)
		rc = get_slots(rd, b, flags, err);
	if (rc == SKV_OK)
		b->parent = parent;
	return rc;
}

/* A chunk in place of that of the checkpoint. Without entries it would cost more than its
 * record. */
static int make_chunk(struct reader *rd, uint32_t number, struct skv_error *err)
{
	struct replay *r = rd->r;
	void *v = r->chunk;

	if (number == 0 || number >= UINT32_MAX >> CHUNK_SHIFT ||
	    (number < r->n_chunk && r->chunk[number]))
		return corrupt(err, "chunk: malformed number");
	if (skv_grow(&v, &r->cap_chunk, (size_t)number + 1, sizeof *r->chunk) != SKV_OK)
		return SKV_E_NOMEM;
	r->chunk = v;
	while (r->n_chunk <= number)
		r->chunk[r->n_chunk++] = 0;
	rd->chunk = table_restore(r->p, rd->inst);
	if (!rd->chunk)
		return SKV_E_NOMEM;
	r->chunk[number] = rd->chunk->number;
	return SKV_OK;
}

static int replay_chunk(struct replay *r, struct skv_rd *in, struct skv_error *err)
{
	struct reader rd = { .r = r, .in = in, .inst = instance_by_id(r->p, skv_get_u32(in)) };
	uint32_t number = skv_get_u32(in);
	uint64_t n = skv_get_varint(in);
	const uint8_t *keys;
	struct skv_rd key;
	int rc;

	rd.least_use = skv_get_varint(in);
	keys = n <= CHUNK_CAPACITY ? skv_get_bytes(in, n * sizeof(struct skv_key)) : NULL;
	if (in->failed || !keys || n == 0 || use_ms(rd.least_use) > USE_MS_MAX)
		return corrupt(err, "chunk: malformed");
	if (!rd.inst)
		return replay_orphan(r);
	r->settles = RECORD_CHUNK;
	r->settle = settle;
	rc = make_chunk(&rd, number, err);
	key = skv_rd_make(keys, n * sizeof(struct skv_key));
	for (uint64_t i = 0; i < n && rc == SKV_OK; i++)
		rc = get_entry(&rd, get_key(&key), err);
	return rc;
}

const struct record_ops chunk_record = { "chunk", replay_chunk };
