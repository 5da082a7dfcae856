/*
 * memory.h - buffer pools, memory known to a handle, and the pins that keep both in place.
 *
 * A pin says "an operation uses these bytes". While a region has pins it stays registered; while a
 * buffer of a pool has pins it is not handed out again.
 */
#ifndef SKV_CLIENT_MEMORY_H
#define SKV_CLIENT_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <skv/arena.h>
#include <skv/status.h>

#include <slabkv.h>

#include "engine.h"

/* ---- memory.c: memory known to a handle ------------------------------------------------------ */

struct skv_memory;
struct skv_rdma;
struct skv_region;

/* `engine` and `rdma` are borrowed, and informed of all memory. */
int skv_memory_create(struct skv_engine *engine, struct skv_rdma *rdma, struct skv_memory **out,
		      struct skv_error *err);
/* Unregisters everything. Nothing may be pinned any more, except by requests that never completed:
 * their buffers are never returned to their pool. */
void skv_memory_destroy(struct skv_memory *m);

/* The region that contains the first byte, pinned, or NULL if the handle does not know it. */
struct skv_region *skv_memory_pin(struct skv_memory *m, const void *data, size_t length);
/* With skv_memory_pin's result for the same bytes; NULL is allowed. */
void skv_memory_unpin(struct skv_memory *m, struct skv_region *r, const void *data, size_t length);

/* The buffers of one call, pinned from before it can be seen to have started until it returns. So
 * another thread may return one, or try to unregister its memory, at any moment of the call. */
struct skv_pins {
	uint32_t n;
	struct skv_pinned *v;
};
/* Allocates from `a`, or nothing if the handle knows no memory. SKV_E_NOMEM: nothing is pinned. */
int skv_pins_take(struct skv_memory *m, struct slabkv_block *blocks, size_t block_size, uint32_t n,
		  struct skv_arena *a, struct skv_pins *out);
void skv_pins_drop(struct skv_memory *m, const struct skv_pins *p);

/* ---- pool.c ---------------------------------------------------------------------------------- */

void skv_buffers_attached(struct slabkv_pool *pool, bool attached);
void skv_buffers_pin(struct slabkv_pool *pool, const void *data, size_t length);
void skv_buffers_unpin(struct slabkv_pool *pool, const void *data, size_t length);
/* Address and size of the pool's memory; constant. */
void skv_buffers_place(const struct slabkv_pool *pool, void **base, size_t *length);

/* ---- shm.c: named shared memory that does not outlive its owner for long --------------------- */

#define SKV_SHM_NAME 200

/* Creates an object of this process, fully allocated. The caller owns *fd; `full` is the name for
 * shm_open and shm_unlink. */
int skv_shm_make(const char *name, size_t bytes, char full[SKV_SHM_NAME], int *fd,
		 struct skv_error *err);
/* Removes objects of dead processes; returns their number. */
uint32_t skv_shm_sweep(void);

#endif
