/*
 * pool.c - pools of equal buffers.
 *
 * Owns one mapping and a record for each buffer: free, out, or leaving (given back while an
 * operation still uses it). The records live beside the memory, not in it: a process that maps a
 * shared pool, or a stray write, cannot break the bookkeeping.
 *
 * Lock: slabkv_pool.lock, the last one taken: nothing is called under it.
 */
#include "client.h"
#include "numa.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <skv/lock.h>
#include <skv/log.h>
#include <skv/mem.h>

enum state { FREE, OUT, LEAVING };

struct buffer {
	enum state state;
	uint32_t pins;
};

struct slabkv_pool {
	struct slabkv_pool_info fixed; /* all but free and leaving */
	pid_t pid;                      /* process that made the pool; fixed */
	size_t length;                  /* of the mapping */
	struct skv_mutex lock;          /* protects the following members */
	struct skv_cond freed;
	struct buffer *buffers; /* [n_buffers] */
	uint32_t *stack;        /* [n_buffers]: free buffers, last in, first out */
	uint32_t n_free;
	uint32_t n_leaving;
	uint32_t attached; /* handles */
};

void slabkv_pool_options_init(struct slabkv_pool_options *o, size_t size)
{
	const struct slabkv_pool_options own = { .size = size, .numa_node = -1 };

	memset(o, 0, size);
	memcpy(o, &own, size < sizeof own ? size : sizeof own);
}

/* ---- making ---------------------------------------------------------------------------------- */

static int check(const struct slabkv_pool_options *o, uint64_t stride, struct skv_error *err)
{
	if (o->kind == SLABKV_MEMORY_DEVICE)
		return skv_fail(err, SKV_E_UNSUPPORTED, "kind",
				"accelerator memory is not supported yet");
	if (o->kind != SLABKV_MEMORY_HOST && o->kind != SLABKV_MEMORY_SHARED)
		return skv_fail(err, SKV_E_INVALID, "kind", "host or shared");
	if (o->buffer_bytes < 1 || stride < o->buffer_bytes)
		return skv_fail(err, SKV_E_INVALID, "buffer_bytes", "at least one byte");
	if (o->bytes < stride || o->bytes / stride > 1u << 24 || o->bytes > SIZE_MAX / 2)
		return skv_fail(err, SKV_E_INVALID, "bytes",
				"room for 1 to 16777216 buffers of %llu bytes (whole pages)",
				(unsigned long long)stride);
	if (o->numa_node != -1 && !skv_numa_has(o->numa_node))
		return skv_fail(err, SKV_E_INVALID, "numa_node", "this machine has no such node");
	if (o->kind == SLABKV_MEMORY_SHARED)
		return skv_name_check(o->shm_name, "shm_name", err);
	if (o->shm_name)
		return skv_fail(err, SKV_E_INVALID, "shm_name", "only for shared memory");
	return SKV_OK;
}

static int map_pages(struct slabkv_pool *pool, const char *name, struct skv_error *err)
{
	int fd = -1, rc, flags = MAP_PRIVATE | MAP_ANONYMOUS;

	if (pool->fixed.kind == SLABKV_MEMORY_SHARED) {
		rc = skv_shm_make(name, pool->length, pool->fixed.shm, &fd, err);
		if (rc != SKV_OK) {
			pool->fixed.shm[0] = '\0'; /* nothing to remove */
			return rc;
		}
		flags = MAP_SHARED;
	}
	pool->fixed.base = mmap(NULL, pool->length, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (fd >= 0)
		close(fd);
	if (pool->fixed.base != MAP_FAILED)
		return SKV_OK;
	pool->fixed.base = NULL;
	return skv_fail(err, SKV_E_NOMEM, "bytes", "%zu bytes: %s", pool->length, strerror(errno));
}

/* Prefers the node: where it is full, memory of another one is better than none. */
static void place(struct slabkv_pool *pool)
{
	if (pool->fixed.numa_node < 0 ||
	    skv_numa_prefer(pool->fixed.base, pool->length, pool->fixed.numa_node,
			    pool->fixed.kind == SLABKV_MEMORY_SHARED))
		return;
	skv_log(SKV_LOG_WARN, "client", "pool: NUMA node %d cannot be chosen: %s",
		pool->fixed.numa_node, strerror(errno));
	pool->fixed.numa_node = -1;
}

/* Takes every page from the machine now, not in the middle of a transfer. */
static int touch(struct slabkv_pool *pool, struct skv_error *err)
{
#ifdef MADV_POPULATE_WRITE
	if (madvise(pool->fixed.base, pool->length, MADV_POPULATE_WRITE) == 0)
		return SKV_OK;
	if (errno != EINVAL)
		return skv_fail(err, SKV_E_NOMEM, "bytes", "%zu bytes: %s", pool->length,
				strerror(errno));
#endif
	memset(pool->fixed.base, 0, pool->length);
	(void)err;
	return SKV_OK;
}

static int make_records(struct slabkv_pool *pool)
{
	uint32_t n = pool->fixed.n_buffers;

	pool->buffers = skv_calloc(n, sizeof *pool->buffers);
	pool->stack = skv_calloc(n, sizeof *pool->stack);
	if (!pool->buffers || !pool->stack)
		return SKV_E_NOMEM;
	for (uint32_t i = 0; i < n; i++)
		pool->stack[i] = n - 1 - i;
	pool->n_free = n;
	return SKV_OK;
}

static void release(struct slabkv_pool *pool)
{
	if (pool->fixed.base)
		munmap(pool->fixed.base, pool->length);
	if (pool->fixed.shm[0])
		shm_unlink(pool->fixed.shm);
	skv_free(pool->buffers);
	skv_free(pool->stack);
	skv_cond_destroy(&pool->freed);
	skv_mutex_destroy(&pool->lock);
	skv_free(pool);
}

static int make(const struct slabkv_pool_options *o, uint64_t stride, struct slabkv_pool **out,
		struct skv_error *err)
{
	struct slabkv_pool *pool = skv_calloc(1, sizeof *pool);
	int rc;

	if (!pool)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	skv_mutex_init(&pool->lock);
	skv_cond_init(&pool->freed);
	pool->pid = getpid();
	pool->fixed.n_buffers = (uint32_t)(o->bytes / stride);
	pool->fixed.bytes = pool->length = pool->fixed.n_buffers * stride;
	pool->fixed.buffer_bytes = o->buffer_bytes;
	pool->fixed.stride = stride;
	pool->fixed.numa_node = o->numa_node;
	pool->fixed.kind = o->kind;
	rc = make_records(pool);
	if (rc != SKV_OK)
		skv_fail(err, rc, NULL, "out of memory");
	if (rc == SKV_OK)
		rc = map_pages(pool, o->shm_name, err);
	if (rc == SKV_OK) {
		place(pool);
		rc = touch(pool, err);
	}
	if (rc == SKV_OK)
		*out = pool;
	else
		release(pool);
	return rc;
}

int slabkv_pool_create(const struct slabkv_pool_options *o, struct slabkv_pool **out,
			struct slabkv_error *err)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), stride;
	struct skv_error e = { 0 };
	int rc;

	if (!o || !SKV_HAS(o, shm_name))
		return skv_result_fail(err, &e, skv_size_refuse(&e, "slabkv_pool_options_init"));
	stride = (o->buffer_bytes + page - 1) / page * page;
	rc = check(o, stride, &e);
	if (rc == SKV_OK)
		rc = make(o, stride, out, &e);
	return skv_result_fail(err, &e, rc);
}

int slabkv_pool_destroy(struct slabkv_pool *pool)
{
	bool used;

	if (!pool)
		return SLABKV_OK;
	if (skv_is_foreign(pool->pid, NULL))
		return SLABKV_E_INVALID;
	skv_mutex_lock(&pool->lock);
	used = pool->attached > 0 || pool->n_free < pool->fixed.n_buffers;
	skv_mutex_unlock(&pool->lock);
	if (used)
		return SLABKV_E_IN_USE;
	release(pool);
	return SLABKV_OK;
}

uint32_t slabkv_pool_sweep(void) { return skv_shm_sweep(); }

/* ---- buffers --------------------------------------------------------------------------------- */

int slabkv_pool_get(struct slabkv_pool *pool, uint32_t timeout_ms, struct slabkv_buf *buf)
{
	uint64_t end_us = skv_now_us() + (uint64_t)timeout_ms * 1000;
	int rc = SLABKV_E_TOO_MANY;

	if (skv_is_foreign(pool->pid, NULL))
		return SLABKV_E_INVALID;
	skv_mutex_lock(&pool->lock);
	while (pool->n_free == 0) {
		uint64_t now = skv_now_us();

		if (now >= end_us)
			break;
		skv_cond_wait_ms(&pool->freed, &pool->lock, (end_us - now) / 1000 + 1);
	}
	if (pool->n_free > 0) {
		uint32_t i = pool->stack[--pool->n_free];

		SKV_CHECK(i < pool->fixed.n_buffers && pool->buffers[i].state == FREE &&
			  pool->buffers[i].pins == 0);
		pool->buffers[i].state = OUT;
		buf->data = (char *)pool->fixed.base + (size_t)i * pool->fixed.stride;
		buf->size = pool->fixed.buffer_bytes;
		rc = SLABKV_OK;
	}
	skv_mutex_unlock(&pool->lock);
	return rc;
}

static void free_locked(struct slabkv_pool *pool, uint32_t i) SKV_REQUIRES(pool->lock)
{
	if (!SKV_CHECK(skv_mutex_held(&pool->lock)) ||
	    !SKV_CHECK(pool->buffers[i].state != FREE && pool->buffers[i].pins == 0) ||
	    !SKV_CHECK(pool->n_free < pool->fixed.n_buffers))
		return; /* better lost than handed out twice */
	pool->buffers[i].state = FREE;
	pool->stack[pool->n_free++] = i;
	skv_cond_signal(&pool->freed);
}

int slabkv_pool_put(struct slabkv_pool *pool, void *data)
{
	uint64_t at = (uint64_t)((uintptr_t)data - (uintptr_t)pool->fixed.base);
	uint32_t i = (uint32_t)(at / pool->fixed.stride);
	int rc = SLABKV_E_INVALID;

	if (skv_is_foreign(pool->pid, NULL) || (uintptr_t)data < (uintptr_t)pool->fixed.base ||
	    at >= pool->length || at % pool->fixed.stride)
		return rc;
	skv_mutex_lock(&pool->lock);
	if (pool->buffers[i].state == OUT) {
		rc = SLABKV_OK;
		if (pool->buffers[i].pins == 0) {
			free_locked(pool, i);
		} else {
			pool->buffers[i].state = LEAVING;
			pool->n_leaving++;
		}
	}
	skv_mutex_unlock(&pool->lock);
	return rc;
}

/* Which buffers the bytes lie in. They lie in the pool: the region that was found is the pool's. */
static void range(const struct slabkv_pool *pool, const void *data, size_t length, uint32_t *first,
		  uint32_t *last)
{
	uint64_t at = (uint64_t)((const char *)data - (const char *)pool->fixed.base);
	uint64_t end = at + (length ? length - 1 : 0);

	SKV_CHECK(at < pool->length && end >= at);
	if (end >= pool->length)
		end = pool->length - 1;
	*first = (uint32_t)(at / pool->fixed.stride);
	*last = (uint32_t)(end / pool->fixed.stride);
}

void skv_buffers_pin(struct slabkv_pool *pool, const void *data, size_t length)
{
	uint32_t i, last;

	range(pool, data, length, &i, &last);
	skv_mutex_lock(&pool->lock);
	SKV_CHECK(i <= last && last < pool->fixed.n_buffers);
	for (; i <= last; i++)
		pool->buffers[i].pins++;
	skv_mutex_unlock(&pool->lock);
}

void skv_buffers_unpin(struct slabkv_pool *pool, const void *data, size_t length)
{
	uint32_t i, last;

	range(pool, data, length, &i, &last);
	skv_mutex_lock(&pool->lock);
	SKV_CHECK(i <= last && last < pool->fixed.n_buffers);
	for (; i <= last; i++) {
		if (!SKV_CHECK(pool->buffers[i].pins > 0))
			continue;
		if (--pool->buffers[i].pins == 0 && pool->buffers[i].state == LEAVING) {
			SKV_CHECK(pool->n_leaving > 0);
			pool->n_leaving--;
			free_locked(pool, i);
		}
	}
	skv_mutex_unlock(&pool->lock);
}

void skv_buffers_attached(struct slabkv_pool *pool, bool attached)
{
	skv_mutex_lock(&pool->lock);
	SKV_CHECK(attached || pool->attached > 0);
	pool->attached += attached ? 1 : (uint32_t)-1;
	skv_mutex_unlock(&pool->lock);
}

void skv_buffers_place(const struct slabkv_pool *pool, void **base, size_t *length)
{
	*base = pool->fixed.base;
	*length = pool->length;
}

int slabkv_pool_info(struct slabkv_pool *pool, struct slabkv_pool_info *out)
{
	struct slabkv_pool_info now = pool->fixed;

	if (skv_is_foreign(pool->pid, NULL) || !SKV_HAS(out, shm))
		return SLABKV_E_INVALID;
	now.size = out->size;
	skv_mutex_lock(&pool->lock);
	now.free = pool->n_free;
	now.leaving = pool->n_leaving;
	skv_mutex_unlock(&pool->lock);
	memcpy(out, &now, now.size < sizeof now ? now.size : sizeof now);
	return SLABKV_OK;
}
