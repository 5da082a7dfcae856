/*
 * table.c - the entries of blocks: chunks of 256, each belonging to one instance.
 *
 * An id is chunk << 8 | place, so one 32-bit number leads from a slot or a queue to the entry and its
 * instance. Chunks never move; entries are reused through a free list per instance. All calls under
 * the partition's write lock, reads of entries under the read lock.
 */
#include "internal.h"

#include <string.h>

struct block *block_get(const struct part *p, uint32_t id)
{
	const struct chunk *c = &p->chunk[id >> CHUNK_SHIFT];

	assert(id >> CHUNK_SHIFT > 0 && id >> CHUNK_SHIFT < p->n_chunk && c->entries);
	return (struct block *)(c->entries + c->stride * (id & (CHUNK_BLOCKS - 1)));
}

struct instance *block_instance(const struct part *p, uint32_t id) { return p->chunk[id >> CHUNK_SHIFT].inst; }

void block_touch(struct part *p, const struct block *b)
{
	if (p->snap.active)
		snapshot_touch_chunk(p, b->id >> CHUNK_SHIFT);
}

static uint32_t take_chunk_number(struct part *p)
{
	uint32_t no = 1;

	if (p->n_dropped_chunk == 0)
		return (uint32_t)p->n_chunk++;
	while (p->chunk[no].entries)
		no++;
	p->n_dropped_chunk--;
	return no;
}

static int chunk_add(struct part *p, struct instance *inst)
{
	size_t stride = sizeof(struct block) + inst->spec.n_specs * sizeof(struct slot);
	void *chunks = p->chunk;
	uint8_t *entries;
	uint32_t no;

	if (p->n_chunk == 0)
		p->n_chunk = 1; /* chunk 0 stays empty: id 0 is "none" */
	if (p->n_chunk >= UINT32_MAX >> CHUNK_SHIFT || evict_reserve_all(inst, inst->entries_made + CHUNK_BLOCKS) != KVB_OK)
		return KVB_E_NOMEM;
	if (kvb_grow(&chunks, &p->cap_chunk, p->n_chunk + 1, sizeof *p->chunk) != KVB_OK)
		return KVB_E_NOMEM;
	p->chunk = chunks;
	entries = kvb_calloc(CHUNK_BLOCKS, stride);
	if (!entries)
		return KVB_E_NOMEM;
	no = take_chunk_number(p);
	/* Younger than a running snapshot: nothing in it belongs there. */
	p->chunk[no] = (struct chunk){ .inst = inst, .snapshot = p->snap.number, .stride = stride, .entries = entries };
	for (uint32_t i = CHUNK_BLOCKS; i-- > 0;) {
		struct block *b = (struct block *)(entries + stride * i);

		b->parent = inst->free_block;
		inst->free_block = no << CHUNK_SHIFT | i;
	}
	inst->entries_made += CHUNK_BLOCKS;
	return KVB_OK;
}

struct block *block_make(struct part *p, struct instance *inst, struct kvb_key key)
{
	struct block *b;
	uint32_t id;

	if (inst->free_block == NO_BLOCK && chunk_add(p, inst) != KVB_OK)
		return NULL;
	id = inst->free_block;
	b = block_get(p, id);
	if (p->snap.active)
		snapshot_touch_chunk(p, id >> CHUNK_SHIFT);
	b->id = id;
	b->key = key;
	if (index_insert(p, inst, b) != KVB_OK) {
		b->id = NO_BLOCK;
		return NULL;
	}
	inst->free_block = b->parent;
	inst->entries++;
	b->parent = NO_BLOCK;
	b->children = 0;
	b->live_children = 0;
	b->live = false;
	b->created_ms = 0;
	atomic_init(&b->last_use, 0);
	atomic_init(&b->lease_until, 0);
	memset(b->slot, 0, inst->spec.n_specs * sizeof b->slot[0]);
	return b;
}

bool block_has_committed(const struct instance *inst, const struct block *b)
{
	for (uint32_t s = 0; s < inst->spec.n_specs; s++)
		if (b->slot[s].state == SLOT_COMMITTED)
			return true;
	return false;
}

bool block_has_writing(const struct instance *inst, const struct block *b)
{
	for (uint32_t s = 0; s < inst->spec.n_specs; s++)
		if (b->slot[s].state == SLOT_WRITING)
			return true;
	return false;
}

static bool needed(const struct instance *inst, const struct block *b)
{
	if (b->children)
		return true;
	for (uint32_t s = 0; s < inst->spec.n_specs; s++)
		if (b->slot[s].state != SLOT_ABSENT)
			return true;
	return false;
}

void block_maybe_free(struct part *p, struct block *b)
{
	struct instance *inst = block_instance(p, b->id);

	while (b && !needed(inst, b)) {
		assert(!b->live);
		struct block *parent = b->parent == NO_BLOCK ? NULL : block_get(p, b->parent);
		uint32_t id = b->id;

		block_touch(p, b);
		index_remove(p, inst, b);
		b->id = NO_BLOCK;
		b->parent = inst->free_block;
		inst->free_block = id;
		inst->entries--;
		if (parent) {
			block_touch(p, parent);
			assert(parent->children > 0);
			parent->children--;
		}
		b = parent;
	}
}

void block_set_parent(struct part *p, struct block *b, struct block *parent)
{
	assert(b->parent == NO_BLOCK && b != parent);
	block_touch(p, b);
	block_touch(p, parent);
	b->parent = parent->id;
	parent->children++;
	if (b->live)
		parent->live_children++;
}

void block_update_live(struct part *p, struct block *b)
{
	const struct instance *inst = block_instance(p, b->id);
	bool live = block_has_committed(inst, b) || block_has_writing(inst, b);
	struct block *parent;

	if (live == b->live)
		return;
	b->live = live;
	if (b->parent == NO_BLOCK)
		return;
	parent = block_get(p, b->parent);
	if (live) {
		parent->live_children++;
		return;
	}
	assert(parent->live_children > 0);
	if (--parent->live_children == 0)
		evict_consider(p, parent);
}

void block_each(const struct part *p, const struct instance *only,
		void (*fn)(void *ctx, struct part *p, struct block *b), void *ctx)
{
	for (uint32_t no = 1; no < p->n_chunk; no++) {
		const struct chunk *c = &p->chunk[no];

		if (!c->entries || (only && c->inst != only))
			continue;
		for (uint32_t i = 0; i < CHUNK_BLOCKS; i++) {
			struct block *b = (struct block *)(c->entries + c->stride * i);

			if (b->id != NO_BLOCK)
				fn(ctx, (struct part *)p, b);
		}
	}
}

void table_drop(struct part *p, struct instance *inst)
{
	for (uint32_t no = 1; no < p->n_chunk; no++) {
		if (p->chunk[no].inst == inst) {
			kvb_free(p->chunk[no].entries);
			p->chunk[no] = (struct chunk){ 0 };
			p->n_dropped_chunk++;
		}
	}
	inst->free_block = NO_BLOCK;
	inst->entries = inst->entries_made = 0;
}
