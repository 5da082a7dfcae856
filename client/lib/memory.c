/*
 * memory.c - memory known to a handle: attached pools and registered regions.
 *
 * Owns the list of regions. A region is found by address, pinned while an operation uses it, and
 * not forgotten before the last pin is gone. The engine registers a region outside the lock, since
 * that may take long (pages are pinned); a region counts as known from then on.
 *
 * Lock: skv_memory.lock, before the lock of a pool.
 */
#include "client.h"
#include "rdma.h"

#include <skv/lock.h>
#include <skv/mem.h>

struct skv_region {
	char *base;
	size_t length;
	struct slabkv_pool *pool; /* or NULL */
	uint64_t pins;
	bool leaving; /* being unregistered: not found any more */
	struct skv_region *next;
};

struct skv_memory {
	struct skv_engine *engine;
	struct skv_rdma *rdma;
	atomic_uint n; /* regions; without any nothing is locked */
	struct skv_mutex lock;
	struct skv_region *list;
};

int skv_memory_create(struct skv_engine *engine, struct skv_rdma *rdma, struct skv_memory **out,
		      struct skv_error *err)
{
	struct skv_memory *m = skv_calloc(1, sizeof *m);

	if (!m)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	m->engine = engine;
	m->rdma = rdma;
	skv_mutex_init(&m->lock);
	*out = m;
	return SKV_OK;
}

static void forget(struct skv_memory *m, const struct skv_region *r)
{
	skv_engine_unmap(m->engine, r->base);
	skv_rdma_unmap(m->rdma, r->base);
}

void skv_memory_destroy(struct skv_memory *m)
{
	if (!m)
		return;
	while (m->list) {
		struct skv_region *r = m->list;

		SKV_CHECK(r->pins == 0); /* no call runs, and no request was left behind */
		m->list = r->next;
		forget(m, r);
		if (r->pool)
			skv_buffers_attached(r->pool, false);
		skv_free(r);
	}
	skv_mutex_destroy(&m->lock);
	skv_free(m);
}

struct skv_region *skv_memory_pin(struct skv_memory *m, const void *data, size_t length)
{
	struct skv_region *r;

	if (atomic_load_explicit(&m->n, memory_order_acquire) == 0)
		return NULL;
	skv_mutex_lock(&m->lock);
	for (r = m->list; r; r = r->next)
		if (!r->leaving && (const char *)data >= r->base &&
		    (const char *)data < r->base + r->length)
			break;
	if (r)
		r->pins++;
	skv_mutex_unlock(&m->lock);
	if (r && r->pool)
		skv_buffers_pin(r->pool, data, length);
	return r;
}

void skv_memory_unpin(struct skv_memory *m, struct skv_region *r, const void *data, size_t length)
{
	if (!r)
		return;
	if (r->pool)
		skv_buffers_unpin(r->pool, data, length);
	skv_mutex_lock(&m->lock);
	if (SKV_CHECK(r->pins > 0))
		r->pins--;
	skv_mutex_unlock(&m->lock);
}

struct skv_pinned {
	struct skv_region *region;
	const void *data;
	size_t length;
};

static uint32_t n_buffers(const struct slabkv_block *b)
{
	return !b->bufs ? 0 : b->n_bufs < SKV_MAX_SPECS ? b->n_bufs : SKV_MAX_SPECS;
}

int skv_pins_take(struct skv_memory *m, struct slabkv_block *blocks, size_t block_size, uint32_t n,
		  struct skv_arena *a, struct skv_pins *out)
{
	size_t most = 0;

	*out = (struct skv_pins){ 0 };
	if (atomic_load_explicit(&m->n, memory_order_acquire) == 0)
		return SKV_OK;
	for (uint32_t i = 0; i < n; i++)
		most += n_buffers(skv_block_at(blocks, block_size, i));
	out->v = skv_arena_calloc(a, most + 1, sizeof *out->v);
	if (!out->v)
		return SKV_E_NOMEM;
	for (uint32_t i = 0; i < n; i++) {
		const struct slabkv_block *block = skv_block_at(blocks, block_size, i);

		for (uint32_t k = 0; k < n_buffers(block); k++) {
			const struct slabkv_buf *b = &block->bufs[k];
			struct skv_region *r = skv_memory_pin(m, b->data, b->size);

			SKV_CHECK(out->n < most);
			if (r)
				out->v[out->n++] = (struct skv_pinned){ r, b->data, b->size };
		}
	}
	return SKV_OK;
}

void skv_pins_drop(struct skv_memory *m, const struct skv_pins *p)
{
	for (uint32_t i = 0; i < p->n; i++)
		skv_memory_unpin(m, p->v[i].region, p->v[i].data, p->v[i].length);
}

static int add(struct skv_memory *m, void *base, size_t length, struct slabkv_pool *pool,
	       struct skv_error *err)
{
	struct skv_region *r = skv_calloc(1, sizeof *r);
	bool overlaps = false;

	if (!r)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	*r = (struct skv_region){ .base = base, .length = length, .pool = pool };
	skv_mutex_lock(&m->lock);
	for (const struct skv_region *o = m->list; o && !overlaps; o = o->next)
		overlaps = o->base < r->base + length && r->base < o->base + o->length;
	if (!overlaps) {
		r->next = m->list;
		m->list = r;
		atomic_fetch_add(&m->n, 1);
		if (pool)
			skv_buffers_attached(pool, true);
	}
	skv_mutex_unlock(&m->lock);
	if (overlaps) {
		skv_free(r);
		return skv_fail(err, SKV_E_CONFLICT, "base", "this memory is registered already");
	}
	(void)skv_engine_map(m->engine, base, length, err); /* the error is only reported */
	skv_rdma_map(m->rdma, base, length);
	return SKV_OK;
}

/* By pool, or by the begin of a region that is no pool's. */
static int drop(struct skv_memory *m, const void *base, const struct slabkv_pool *pool)
{
	struct skv_region **at, *r = NULL;
	int rc = SKV_E_NOT_FOUND;

	skv_mutex_lock(&m->lock);
	for (at = &m->list; *at; at = &(*at)->next)
		if (!(*at)->leaving && (*at)->pool == pool && (pool || (*at)->base == base))
			break;
	if (*at)
		rc = (*at)->pins > 0 ? SKV_E_IN_USE : SKV_OK;
	SKV_CHECK(rc != SKV_OK || atomic_load(&m->n) > 0);
	if (rc == SKV_OK) {
		r = *at;
		r->leaving = true; /* listed until the engine has released it: no overlap */
	}
	skv_mutex_unlock(&m->lock);
	if (!r)
		return rc;
	forget(m, r);
	skv_mutex_lock(&m->lock);
	for (at = &m->list; *at && *at != r; at = &(*at)->next)
		;
	if (SKV_CHECK(*at == r && r->pins == 0 && r->leaving))
		*at = r->next;
	atomic_fetch_sub(&m->n, 1);
	skv_mutex_unlock(&m->lock);
	if (r->pool)
		skv_buffers_attached(r->pool, false);
	skv_free(r);
	return SKV_OK;
}

int slabkv_pool_attach(struct slabkv *kv, struct slabkv_pool *pool, struct slabkv_error *err)
{
	struct skv_error e = { 0 };
	int rc = skv_enter(kv, &e);
	size_t length;
	void *base;

	if (rc == SKV_OK && !pool)
		rc = skv_fail(&e, SKV_E_INVALID, "pool", "there is none");
	if (rc != SKV_OK)
		return skv_result_fail(err, &e, rc);
	skv_buffers_place(pool, &base, &length);
	return skv_result_finish(err, &e, add(kv->memory, base, length, pool, &e));
}

int slabkv_pool_detach(struct slabkv *kv, struct slabkv_pool *pool)
{
	int rc = skv_enter(kv, NULL);

	if (rc == SKV_OK)
		rc = pool ? drop(kv->memory, NULL, pool) : SKV_E_NOT_FOUND;
	return skv_result_fail(NULL, NULL, rc);
}

int slabkv_memory_register(struct slabkv *kv, void *base, uint64_t bytes,
			    enum slabkv_memory kind, struct slabkv_error *err)
{
	struct skv_error e = { 0 };
	int rc = skv_enter(kv, &e);

	if (rc != SKV_OK)
		;
	else if (kind == SLABKV_MEMORY_DEVICE)
		rc = skv_fail(&e, SKV_E_UNSUPPORTED, "kind",
			      "accelerator memory is not supported yet");
	else if (!base || bytes < 1 || bytes > SIZE_MAX - (uintptr_t)base)
		rc = skv_fail(&e, SKV_E_INVALID, base ? "bytes" : "base", "no memory");
	else if (kind != SLABKV_MEMORY_HOST && kind != SLABKV_MEMORY_SHARED)
		rc = skv_fail(&e, SKV_E_INVALID, "kind", "host or shared");
	else
		rc = add(kv->memory, base, bytes, NULL, &e);
	return skv_result_finish(err, &e, rc);
}

int slabkv_memory_unregister(struct slabkv *kv, void *base)
{
	int rc = skv_enter(kv, NULL);

	return skv_result_fail(NULL, NULL, rc == SKV_OK ? drop(kv->memory, base, NULL) : rc);
}
