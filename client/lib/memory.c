/*
 * memory.c - the memory that a handle knows: attached pools and registered regions.
 *
 * Owns the list of regions. A region is found by address, pinned while an operation uses it, and
 * not forgotten before the last pin is gone. The engine is told of it outside the lock, since that
 * may take long (pages are pinned); a region counts as known from then on.
 *
 * Lock: kvb_memory.lock, before the lock of a pool.
 */
#include "client.h"

#include <assert.h>

#include <kvb/lock.h>
#include <kvb/mem.h>

struct kvb_region {
	char *base;
	size_t length;
	struct kvblock_pool *pool; /* or NULL */
	uint64_t pins;
	bool leaving; /* being unregistered: not found any more */
	struct kvb_region *next;
};

struct kvb_memory {
	struct kvb_engine *engine;
	atomic_uint n; /* regions; without any nothing is locked */
	struct kvb_mutex lock;
	struct kvb_region *list;
};

static void *keep(void *ctx, void *data, size_t length) { return kvb_memory_pin(ctx, data, length); }

static void let_go(void *ctx, void *kept, void *data, size_t length) { kvb_memory_unpin(ctx, kept, data, length); }

int kvb_memory_create(struct kvb_engine *engine, struct kvb_memory **out, struct kvb_error *err)
{
	struct kvb_memory *m = kvb_calloc(1, sizeof *m);

	if (!m)
		return kvb_fail(err, KVB_E_NOMEM, NULL, "out of memory");
	m->engine = engine;
	kvb_mutex_init(&m->lock);
	engine->keeper = (struct kvb_engine_keeper){ m, keep, let_go };
	*out = m;
	return KVB_OK;
}

void kvb_memory_destroy(struct kvb_memory *m)
{
	if (!m)
		return;
	m->engine->keeper = (struct kvb_engine_keeper){ 0 };
	while (m->list) {
		struct kvb_region *r = m->list;

		m->list = r->next; /* pins that are left: memory of requests that never came back */
		kvb_engine_unmap(m->engine, r->base);
		if (r->pool)
			kvb_buffers_attached(r->pool, false);
		kvb_free(r);
	}
	kvb_mutex_destroy(&m->lock);
	kvb_free(m);
}

struct kvb_region *kvb_memory_pin(struct kvb_memory *m, const void *data, size_t length)
{
	struct kvb_region *r;

	if (atomic_load_explicit(&m->n, memory_order_acquire) == 0)
		return NULL;
	kvb_mutex_lock(&m->lock);
	for (r = m->list; r; r = r->next)
		if (!r->leaving && (const char *)data >= r->base &&
		    (const char *)data < r->base + r->length)
			break;
	if (r)
		r->pins++;
	kvb_mutex_unlock(&m->lock);
	if (r && r->pool)
		kvb_buffers_pin(r->pool, data, length);
	return r;
}

void kvb_memory_unpin(struct kvb_memory *m, struct kvb_region *r, const void *data, size_t length)
{
	if (!r)
		return;
	if (r->pool)
		kvb_buffers_unpin(r->pool, data, length);
	kvb_mutex_lock(&m->lock);
	assert(r->pins > 0);
	r->pins--;
	kvb_mutex_unlock(&m->lock);
}

static int add(struct kvb_memory *m, void *base, size_t length, struct kvblock_pool *pool,
	       struct kvb_error *err)
{
	struct kvb_region *r = kvb_calloc(1, sizeof *r);
	bool overlaps = false;

	if (!r)
		return kvb_fail(err, KVB_E_NOMEM, NULL, "out of memory");
	*r = (struct kvb_region){ .base = base, .length = length, .pool = pool };
	kvb_mutex_lock(&m->lock);
	for (const struct kvb_region *o = m->list; o && !overlaps; o = o->next)
		overlaps = o->base < r->base + length && r->base < o->base + o->length;
	if (!overlaps) {
		r->next = m->list;
		m->list = r;
		atomic_fetch_add(&m->n, 1);
		if (pool)
			kvb_buffers_attached(pool, true);
	}
	kvb_mutex_unlock(&m->lock);
	if (overlaps) {
		kvb_free(r);
		return kvb_fail(err, KVB_E_CONFLICT, "base", "this memory is registered already");
	}
	(void)kvb_engine_map(m->engine, base, length, err); /* *err tells, and that is all */
	return KVB_OK;
}

/* By pool, or by the begin of a region that is no pool's. */
static int drop(struct kvb_memory *m, const void *base, const struct kvblock_pool *pool)
{
	struct kvb_region **at, *r = NULL;
	int rc = KVB_E_NOT_FOUND;

	kvb_mutex_lock(&m->lock);
	for (at = &m->list; *at; at = &(*at)->next)
		if (!(*at)->leaving && (*at)->pool == pool && (pool || (*at)->base == base))
			break;
	if (*at)
		rc = (*at)->pins > 0 ? KVB_E_IN_USE : KVB_OK;
	if (rc == KVB_OK) {
		r = *at;
		r->leaving = true; /* others see it until the engine has let go: no overlap */
	}
	kvb_mutex_unlock(&m->lock);
	if (!r)
		return rc;
	kvb_engine_unmap(m->engine, r->base);
	kvb_mutex_lock(&m->lock);
	for (at = &m->list; *at != r; at = &(*at)->next)
		;
	*at = r->next;
	atomic_fetch_sub(&m->n, 1);
	kvb_mutex_unlock(&m->lock);
	if (r->pool)
		kvb_buffers_attached(r->pool, false);
	kvb_free(r);
	return KVB_OK;
}

int kvblock_pool_attach(struct kvblock *kv, struct kvblock_pool *pool, struct kvblock_error *err)
{
	struct kvb_error e = { 0 };
	size_t length;
	void *base;

	kvb_buffers_place(pool, &base, &length);
	return kvb_result_finish(err, &e, add(kv->memory, base, length, pool, &e));
}

int kvblock_pool_detach(struct kvblock *kv, struct kvblock_pool *pool)
{
	return pool ? drop(kv->memory, NULL, pool) : KVBLOCK_E_NOT_FOUND;
}

int kvblock_memory_register(struct kvblock *kv, void *base, uint64_t bytes,
			    enum kvblock_memory kind, struct kvblock_error *err)
{
	struct kvb_error e = { 0 };
	int rc;

	if (kind == KVBLOCK_MEMORY_DEVICE)
		rc = kvb_fail(&e, KVB_E_UNSUPPORTED, "kind", "no memory of accelerators yet");
	else if (!base || bytes < 1 || bytes > SIZE_MAX - (uintptr_t)base)
		rc = kvb_fail(&e, KVB_E_INVALID, base ? "bytes" : "base", "no memory");
	else if (kind != KVBLOCK_MEMORY_HOST && kind != KVBLOCK_MEMORY_SHARED)
		rc = kvb_fail(&e, KVB_E_INVALID, "kind", "host or shared");
	else
		rc = add(kv->memory, base, bytes, NULL, &e);
	return kvb_result_finish(err, &e, rc);
}

int kvblock_memory_unregister(struct kvblock *kv, void *base)
{
	return drop(kv->memory, base, NULL);
}
