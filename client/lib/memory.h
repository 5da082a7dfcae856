/*
 * memory.h - buffer pools, memory that a handle knows, and the pins that keep both from going away.
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

/* ---- memory.c: what a handle knows ----------------------------------------------------------- */

struct skv_memory;
struct skv_region;

/* `engine` stays the caller's. */
int skv_memory_create(struct skv_engine *engine, struct skv_memory **out, struct skv_error *err);
/* Unregisters everything. Nothing is pinned any more, but by requests that never came back: their buffers
 * stay away from their pool for good. */
void skv_memory_destroy(struct skv_memory *m);

/* The region that the bytes begin in, pinned, or NULL when the handle does not know them. */
struct skv_region *skv_memory_pin(struct skv_memory *m, const void *data, size_t length);
/* With what skv_memory_pin returned for the same bytes; NULL is allowed. */
void skv_memory_unpin(struct skv_memory *m, struct skv_region *r, const void *data, size_t length);

/* The buffers of one call: pinned at its entry, before anybody may believe that it has begun, until its exit.
 * So another thread may give one back, or try to unregister its memory, at any moment of the call. */
struct skv_pins {
	uint32_t n;
	struct skv_pinned *v;
};
/* Memory from `a`, none where the handle knows no memory. SKV_E_NOMEM: nothing is pinned. */
int skv_pins_take(struct skv_memory *m, struct slabkv_block *blocks, size_t block_size, uint32_t n, struct skv_arena *a,
		  struct skv_pins *out);
void skv_pins_drop(struct skv_memory *m, const struct skv_pins *p);

/* ---- pool.c ---------------------------------------------------------------------------------- */

void skv_buffers_attached(struct slabkv_pool *pool, bool attached);
void skv_buffers_pin(struct slabkv_pool *pool, const void *data, size_t length);
void skv_buffers_unpin(struct slabkv_pool *pool, const void *data, size_t length);
/* Where the pool's memory lies; fixed. */
void skv_buffers_place(const struct slabkv_pool *pool, void **base, size_t *length);

/* ---- shm.c: named shared memory that does not outlive its owner for long --------------------- */

#define SKV_SHM_NAME 200

/* Makes an object of this process, all of it allocated. *fd is the caller's; `full` is the name for
 * shm_open and shm_unlink. */
int skv_shm_make(const char *name, size_t bytes, char full[SKV_SHM_NAME], int *fd,
		 struct skv_error *err);
/* Removes what dead processes have left; how many. */
uint32_t skv_shm_sweep(void);

#endif
