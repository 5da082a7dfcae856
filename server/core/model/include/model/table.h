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
	return (struct block *)((char *)p->chunk[no] + CHUNK_HEAD +
				(size_t)p->chunk_stride[no] * (id & (CHUNK_CAPACITY - 1)));
}
/* A new, indexed entry without slots, or NULL (out of memory). Reserves room in the eviction
 * queues, so that queueing it later cannot fail. */
struct block *block_make(struct partition *p, struct instance *inst, struct skv_key key);
/* Returns, while loading, a chunk with unassigned places for block_restore; table_restored gives
 * the remaining places to block_make. NULL: out of memory. */
struct chunk *table_restore(struct partition *p, struct instance *inst);
void table_restored(struct partition *p, struct chunk *c);
/* As block_make, at that place, which nobody has; not indexed before index_build. */
struct block *block_restore(struct chunk *c, uint32_t place, struct skv_key key);
/* Frees the entry if nothing needs it any more, then its parents likewise. */
void block_maybe_free(struct partition *p, struct block *b);
void block_set_parent(struct partition *p, struct block *b, struct block *parent);
/* After any change of slot states: keeps the parent's count of live children. */
void block_update_live(struct partition *p, struct block *b);
void snapshot_touch_chunk(struct partition *p, uint32_t chunk);
/* Before any change of an entry that a checkpoint stores: copies its chunk if a snapshot is
 * running. */
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
/* makes all chunks of the instance spare */
void table_drop(struct partition *p, struct instance *inst);
/* makes its newest chunk spare */
void table_drop_chunk(struct partition *p, struct instance *inst);
void table_destroy(struct partition *p);
/* End of its lease (boot time ms); 0 or in the past if it has none. */
uint64_t block_lease(const struct partition *p, const struct instance *inst, const struct block *b);
/* The same for leases granted by lookups only, without what a recovery assumes. */
uint64_t block_own_lease(const struct partition *p, const struct block *b);
/* The lowest generation of its slots, 0 if it has none. */
uint64_t block_generation(const struct instance *inst, const struct block *b);
/* Adds to the count of blocks with a committed slot; blocks of a retired instance are not
 * counted. */
void blocks_count(struct partition *p, struct instance *inst, int64_t by);

#endif
