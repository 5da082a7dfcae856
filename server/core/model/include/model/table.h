/*
 * table.h - the entries of blocks: chunks of 16 KiB, each belonging to one instance.
 */
#ifndef SKV_CORE_MODEL_TABLE_H
#define SKV_CORE_MODEL_TABLE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

#include <skv/hash.h>

#include <model/block.h>
#include <model/partition.h>

static inline struct block *block_get(const struct partition *p, uint32_t id)
{
	const uint32_t no = id >> CHUNK_SHIFT;

	assert(no > 0 && no < p->n_chunk);
	return (struct block *)((char *)p->chunk[no] + CHUNK_HEAD + (size_t)p->chunk_stride[no] * (id & (CHUNK_CAPACITY - 1)));
}
/* A fresh, indexed entry without slots, or NULL (out of memory). Room in the eviction queues is
 * reserved, so that queueing it later cannot fail. */
struct block *block_make(struct partition *p, struct instance *inst, struct skv_key key);
/* Frees the entry, and upward its parents, where nothing needs them any more. */
void block_maybe_free(struct partition *p, struct block *b);
void block_set_parent(struct partition *p, struct block *b, struct block *parent);
/* After any change of slot states: keeps the parent's count of live children. */
void block_update_live(struct partition *p, struct block *b);
void snapshot_touch_chunk(struct partition *p, uint32_t chunk);
/* Before any change of an entry that a checkpoint stores: copies its chunk out if one is running. */
static inline void block_touch(struct partition *p, const struct block *b)
{
	if (p->snap.active)
		snapshot_touch_chunk(p, block_chunk(b)->number);
}
bool block_has_committed(const struct instance *inst, const struct block *b);
bool block_has_writing(const struct instance *inst, const struct block *b);
/* Calls fn for each entry in use. */
void block_each(const struct partition *p, const struct instance *only,
		void (*fn)(void *ctx, struct partition *p, struct block *b), void *ctx);
void table_drop(struct partition *p, struct instance *inst); /* all chunks of the instance are spare */
void table_drop_chunk(struct partition *p, struct instance *inst); /* its newest chunk is spare */
void table_destroy(struct partition *p);
/* End of its lease (boot time ms), 0 or in the past if none runs. */
uint64_t block_lease(const struct partition *p, const struct instance *inst, const struct block *b);
/* The same, but of what lookups gave to it alone: not what is reckoned with after a recovery. */
uint64_t block_own_lease(const struct partition *p, const struct block *b);
/* The least generation of its slots, 0 if it has none. */
uint64_t block_generation(const struct instance *inst, const struct block *b);
/* Blocks with a committed slot; those of a retired instance are nobody else's. */
void blocks_count(struct partition *p, struct instance *inst, int64_t by);

#endif
