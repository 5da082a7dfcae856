/*
 * table.c - block entries: chunks of 16 KiB, each belonging to one instance.
 *
 * An id is chunk number << 8 | position, so one 32-bit number leads from a slot or a queue to the
 * entry. A chunk is aligned to its size and begins with a header, so a pointer to an entry leads
 * back to id and instance. Chunks are cut from regions of 2 MiB and never move; entries are reused
 * through a free list per instance, chunks of dropped instances by other instances. Under the
 * partition's write lock; reads of entries under the read lock.
 */
#include <model/table.h>

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include <skv/mem.h>

#include <model/block.h>
#include <model/index.h>
#include <model/mark.h>
#include <model/names.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/queue.h>
#include <model/region.h>
#include <model/tenant.h>

#define REGION_CHUNKS (SKV_REGION_BYTES / CHUNK_BYTES)

_Static_assert(sizeof(struct chunk) <= CHUNK_HEAD, "a chunk's header");
_Static_assert(offsetof(struct block, slot) + sizeof(struct slot) == 64,
	       "a block of one spec fills a cache line");
_Static_assert((CHUNK_BYTES - CHUNK_HEAD) / 64 <= CHUNK_CAPACITY, "places of a chunk");

/* ---- chunks ---------------------------------------------------------------------------------- */

static int region_add(struct partition *p)
{
	void *v = p->region;

	if (skv_grow(&v, &p->cap_region, p->n_region + 1, sizeof *p->region) != SKV_OK)
		return SKV_E_NOMEM;
	p->region = v;
	/* a small one does not need huge pages */
	p->region[p->n_region] =
		p->n_region ? region_take(p->core->regions) : skv_region_alloc(false);
	if (!p->region[p->n_region])
		return SKV_E_NOMEM;
	p->n_region++;
	p->region_left = REGION_CHUNKS;
	return SKV_OK;
}

/* A chunk with a number of its own; only `number` is set. */
static struct chunk *chunk_new(struct partition *p)
{
	void *v = p->chunk, *strides = p->chunk_stride;
	struct chunk *c;

	if (p->n_chunk >= UINT32_MAX >> CHUNK_SHIFT ||
	    skv_grow(&v, &p->cap_chunk, p->n_chunk + 1, sizeof *p->chunk) != SKV_OK)
		return NULL;
	p->chunk = v;
	if (skv_grow(&strides, &p->cap_chunk_stride, p->n_chunk + 1, sizeof *p->chunk_stride) !=
	    SKV_OK)
		return NULL;
	p->chunk_stride = strides;
	if (p->region_left == 0 && region_add(p) != SKV_OK)
		return NULL;
	c = (struct chunk *)((char *)p->region[p->n_region - 1] +
			     (size_t)(REGION_CHUNKS - p->region_left) * CHUNK_BYTES);
	p->region_left--;
	c->number = (uint32_t)p->n_chunk;
	p->chunk[p->n_chunk++] = c;
	return c;
}

static int chunk_add(struct partition *p, struct instance *inst)
{
	uint32_t stride = (uint32_t)(offsetof(struct block, slot) +
				     inst->spec.n_specs * sizeof(struct slot) + 7) &
			  ~7u;
	uint32_t capacity = (CHUNK_BYTES - CHUNK_HEAD) / stride, number;
	struct chunk *c = p->spare_chunk;
	struct name **names = NULL;

	if (evict_reserve_all(inst, inst->entries_made + capacity) != SKV_OK ||
	    (inst->spec.named && names_make(capacity, &names) != SKV_OK))
		return SKV_E_NOMEM;
	if (c) {
		p->spare_chunk = c->next;
	} else if (!(c = chunk_new(p))) {
		skv_free(names);
		return SKV_E_NOMEM;
	}
	number = c->number;
	p->chunk_stride[number] = (uint16_t)stride;
	/* Newer than a running snapshot: it does not belong into it. */
	*c = (struct chunk){ .inst = inst, .next = inst->newest, .snapshot = p->snap.number,
			     .number = number,
			     .stride = stride, .capacity = capacity, .names = names };
	inst->newest = c;
	inst->entries_made += capacity;
	return SKV_OK;
}

void table_drop_chunk(struct partition *p, struct instance *inst)
{
	struct chunk *c = inst->newest;

	ASSERT_EXCLUSIVE(p);
	inst->newest = c->next;
	names_drop(c);
	*c = (struct chunk){ .number = c->number, .next = p->spare_chunk };
	p->spare_chunk = c;
}

void table_drop(struct partition *p, struct instance *inst)
{
	ASSERT_EXCLUSIVE(p);
	while (inst->newest)
		table_drop_chunk(p, inst);
	inst->free_block = NO_BLOCK;
	inst->entries = inst->entries_made = 0;
}

void table_destroy(struct partition *p)
{
	ASSERT_EXCLUSIVE(p);
	for (uint32_t no = 1; no < p->n_chunk; no++)
		names_drop(p->chunk[no]);
	for (size_t i = 0; i < p->n_region; i++)
		skv_region_free(p->region[i]);
	skv_free(p->region);
	skv_free(p->chunk);
	skv_free(p->chunk_stride);
}

/* ---- entries --------------------------------------------------------------------------------- */

/* A free entry, not removed from its list yet. */
static struct block *next_free(struct partition *p, struct instance *inst)
{
	if (inst->free_block != NO_BLOCK)
		return block_get(p, inst->free_block);
	if ((!inst->newest || inst->newest->fresh == inst->newest->capacity) &&
	    chunk_add(p, inst) != SKV_OK)
		return NULL;
	return chunk_place(inst->newest, inst->newest->fresh);
}

/* Begins the life of a block, whose key is set. */
static void begin_life(struct instance *inst, struct block *b)
{
	inst->entries++;
	b->parent = NO_BLOCK;
	b->children = 0;
	b->pinned = 0;
	b->used = 1;
	b->live_children = 0;
	b->kept = 0;
	b->live = 0;
	atomic_init(&b->mark, 0);
	memset(b->slot, 0, inst->spec.n_specs * sizeof b->slot[0]);
}

static void add_free(struct instance *inst, struct block *b)
{
	b->used = 0;
	b->parent = inst->free_block;
	inst->free_block = block_id(b);
}

struct chunk *table_restore(struct partition *p, struct instance *inst)
{
	struct chunk *c = inst->newest;

	ASSERT_EXCLUSIVE(p);
	while (c && c->fresh < c->capacity) /* only the newest chunk has fresh places */
		add_free(inst, chunk_place(c, c->fresh++));
	if (chunk_add(p, inst) != SKV_OK)
		return NULL;
	c = inst->newest;
	for (; c->fresh < c->capacity; c->fresh++)
		chunk_place(c, c->fresh)->used = 0;
	return c;
}

struct block *block_restore(struct chunk *c, uint32_t place, struct skv_key key)
{
	struct block *b = chunk_place(c, place);

	assert(place < c->capacity && !b->used);
	b->key = key;
	begin_life(c->inst, b);
	return b;
}

void table_restored(struct partition *p, struct chunk *c)
{
	ASSERT_EXCLUSIVE(p);
	for (uint32_t i = c->capacity; i-- > 0;)
		if (!chunk_place(c, i)->used)
			add_free(c->inst, chunk_place(c, i));
}

struct block *block_make(struct partition *p, struct instance *inst, struct skv_key key)
{
	struct block *b = next_free(p, inst);
	uint32_t next;

	ASSERT_EXCLUSIVE(p);
	if (!b)
		return NULL;
	block_touch(p, b);
	next = b->parent;
	if (inst->free_block != NO_BLOCK && next != NO_BLOCK)
		/* for the next call: free entries are scattered */
		__builtin_prefetch(block_get(p, next), 1);
	b->key = key;
	if (index_insert(p, inst, b) != SKV_OK)
		return NULL;
	if (inst->free_block != NO_BLOCK)
		inst->free_block = next;
	else
		inst->newest->fresh++;
	begin_life(inst, b);
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

uint64_t block_generation(const struct instance *inst, const struct block *b)
{
	uint64_t least = 0;

	for (uint32_t s = 0; s < inst->spec.n_specs; s++)
		if (b->slot[s].state != SLOT_ABSENT && (!least || b->slot[s].generation < least))
			least = b->slot[s].generation;
	return least;
}

uint64_t block_own_lease(const struct partition *p, const struct block *b)
{
	uint64_t end = mark_lease_end(atomic_load_explicit(&b->mark, memory_order_relaxed));

	return end ? use_clock_at(p, end) : 0;
}

uint64_t block_lease(const struct partition *p, const struct instance *inst, const struct block *b)
{
	uint64_t until = block_own_lease(p, b);

	if (until < inst->loaded_lease && block_generation(inst, b) < p->loaded_generation)
		return inst->loaded_lease;
	return until;
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

void block_maybe_free(struct partition *p, struct block *b)
{
	struct instance *inst = block_instance(b);

	ASSERT_EXCLUSIVE(p);
	while (b && !needed(inst, b)) {
		struct block *parent = b->parent == NO_BLOCK ? NULL : block_get(p, b->parent);

		assert(b->used && !b->live && !b->pinned);
		block_touch(p, b);
		index_remove(p, inst, b);
		block_drop_name(b);
		b->used = 0;
		b->parent = inst->free_block;
		inst->free_block = block_id(b);
		inst->entries--;
		if (parent) {
			block_touch(p, parent);
			assert(parent->children > 0);
			parent->children--;
		}
		b = parent;
	}
}

void block_set_parent(struct partition *p, struct block *b, struct block *parent)
{
	assert(b->parent == NO_BLOCK && b != parent);
	block_touch(p, b);
	block_touch(p, parent);
	b->parent = block_id(parent);
	parent->children++;
	assert(parent->children); /* 2^30 of them: 64 GiB of entries */
	if (b->live)
		parent->live_children++;
}

void block_update_live(struct partition *p, struct block *b)
{
	const struct instance *inst = block_instance(b);
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
		evict_leaf(p, parent);
}

void block_each(const struct partition *p, const struct instance *only,
		void (*fn)(void *ctx, struct partition *p, struct block *b), void *ctx)
{
	ASSERT_SHARED(p);
	for (uint32_t no = 1; no < p->n_chunk; no++) {
		const struct chunk *c = p->chunk[no];

		for (uint32_t i = 0; (!only || c->inst == only) && i < c->fresh; i++)
			if (chunk_place(c, i)->used)
				fn(ctx, (struct partition *)p, chunk_place(c, i));
	}
}

void blocks_count(struct partition *p, struct instance *inst, int64_t by)
{
	inst->blocks += (uint64_t)by;
	if (inst->retired)
		return;
	inst->group->count.blocks += (uint64_t)by;
	inst->tenant->blocks += (uint64_t)by;
	tenant_touch(inst->tenant);
	p->blocks += (uint64_t)by;
}

void snapshot_touch_chunk(struct partition *p, uint32_t no)
{
	ASSERT_EXCLUSIVE(p);
	if (p->snap.active && p->chunk[no]->snapshot != p->snap.number)
		p->snap.copy(p, no);
}
