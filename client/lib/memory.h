/*
 * memory.h - buffer pools, memory that a handle knows, and the pins that keep both from going away.
 *
 * A pin says "an operation uses these bytes". While a region has pins it stays registered; while a
 * buffer of a pool has pins it is not handed out again.
 */
#ifndef KVB_CLIENT_MEMORY_H
#define KVB_CLIENT_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kvb/status.h>

#include <kvblock.h>

#include "engine.h"

/* ---- memory.c: what a handle knows ----------------------------------------------------------- */

struct kvb_memory;
struct kvb_region;

/* `engine` stays the caller's. */
int kvb_memory_create(struct kvb_engine *engine, struct kvb_memory **out, struct kvb_error *err);
/* Unregisters everything. Nothing is pinned any more, but by requests that never came back: their buffers
 * stay away from their pool for good. */
void kvb_memory_destroy(struct kvb_memory *m);

/* The region that the bytes begin in, pinned, or NULL when the handle does not know them. */
struct kvb_region *kvb_memory_pin(struct kvb_memory *m, const void *data, size_t length);
/* With what kvb_memory_pin returned for the same bytes; NULL is allowed. */
void kvb_memory_unpin(struct kvb_memory *m, struct kvb_region *r, const void *data, size_t length);

/* ---- pool.c ---------------------------------------------------------------------------------- */

void kvb_buffers_attached(struct kvblock_pool *pool, bool attached);
void kvb_buffers_pin(struct kvblock_pool *pool, const void *data, size_t length);
void kvb_buffers_unpin(struct kvblock_pool *pool, const void *data, size_t length);
/* Where the pool's memory lies; fixed. */
void kvb_buffers_place(const struct kvblock_pool *pool, void **base, size_t *length);

/* ---- shm.c: named shared memory that does not outlive its owner for long --------------------- */

#define KVB_SHM_NAME 200

/* Makes an object of this process, all of it allocated. *fd is the caller's; `full` is the name for
 * shm_open and shm_unlink. */
int kvb_shm_make(const char *name, size_t bytes, char full[KVB_SHM_NAME], int *fd,
		 struct kvb_error *err);
/* Removes what dead processes have left; how many. */
uint32_t kvb_shm_sweep(void);

#endif
