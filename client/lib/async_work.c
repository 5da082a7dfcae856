/*
 * async_work.c - worker threads of the asynchronous queue: choose operations that share a call, and
 * make the calls.
 *
 * A worker takes the oldest operation and, for a get, exists or delete, others of the same kind,
 * instance and form of keys wherever they stand in the queue; for a put the ones that follow it in
 * its chain. Puts of different chains never share a call: a start is one chain, and the blocks of a
 * chain are evicted in that order.
 *
 * State: the operations that the worker has taken. The calls are the public ones (slabkv_get and so
 * on).
 */
#include "async.h"

#include <string.h>

/* ---- choosing operations that share a call --------------------------------------------------- */

static bool same_key(const struct skv_async_op *a, const struct skv_async_op *b)
{
	if (a->hash != b->hash)
		return false;
	if (a->key.form == SLABKV_KEYS_STRING)
		return strcmp(a->key.v.strings[0], b->key.v.strings[0]) == 0;
	return a->key.v.wide[0].hi == b->key.v.wide[0].hi &&
	       a->key.v.wide[0].lo == b->key.v.wide[0].lo;
}

/* A call takes no key twice; the second one waits for another call. */
static bool is_new(const struct skv_async_worker *w, const struct skv_async_op *op)
{
	for (uint32_t i = 0; i < w->n; i++)
		if (same_key(w->ops[i], op))
			return false;
	return true;
}

static bool may_join(const struct skv_async_worker *w, const struct skv_async_op *op)
{
	const struct skv_async_op *first = w->ops[0];

	if (op->many || first->many || op->kind != first->kind || op->key.form != first->key.form ||
	    strcmp(op->instance, first->instance) != 0 ||
	    strcmp(op->batch->trace, first->batch->trace) != 0)
		return false;
	if (op->kind == SLABKV_OP_PUT)
		return op->after == w->ops[w->n - 1] && is_new(w, op);
	return is_new(w, op);
}

/* Takes operations for one call out of the queue. */
static void take_locked(struct slabkv_async *a, struct skv_async_worker *w) SKV_REQUIRES(a->lock)
{
	struct skv_async_op *op = a->queue.head, *next;
	uint32_t share = a->queue.n / a->n_workers + 1, looked_at = 0;
	uint32_t most = share < SKV_ASYNC_SHARE ? SKV_ASYNC_SHARE : share;

	SKV_CHECK(skv_mutex_held(&a->lock) && op);
	if (most > a->batch)
		most = a->batch;
	w->n = 0;
	for (; op && w->n < most && looked_at < 4 * a->batch; op = next, looked_at++) {
		next = op->next;
		if (w->n > 0 && !may_join(w, op)) {
			if (w->ops[0]->kind == SLABKV_OP_PUT)
				break; /* a chain must be contiguous */
			continue;
		}
		skv_async_remove(&a->queue, op);
		w->ops[w->n++] = op;
	}
}

/* ---- the calls ------------------------------------------------------------------------------- */

static struct slabkv_keys keys_of(struct skv_async_worker *w)
{
	bool strings = w->ops[0]->key.form == SLABKV_KEYS_STRING;
	struct slabkv_keys keys;

	SKV_CHECK(w->n > 0 && w->n <= w->async->batch && !w->ops[0]->many);
	for (uint32_t i = 0; i < w->n; i++) {
		if (strings)
			w->keys.strings[i] = w->ops[i]->key.v.strings[0];
		else
			w->keys.wide[i] = w->ops[i]->key.v.wide[0];
	}
	keys = strings ? slabkv_keys_strings(w->keys.strings, w->n)
		       : slabkv_keys_wide(w->keys.wide, w->n);
	keys.parent = w->ops[0]->key.parent;
	return keys;
}

static void set_all(struct skv_async_worker *w, enum slabkv_result result, int why)
{
	for (uint32_t i = 0; i < w->n; i++) {
		w->ops[i]->result = result;
		w->ops[i]->why = why;
	}
}

static void set_blocks(struct skv_async_worker *w)
{
	for (uint32_t i = 0; i < w->n; i++)
		w->blocks[i] = (struct slabkv_block){ .bufs = w->ops[i]->bufs,
						       .n_bufs = w->ops[i]->n_bufs };
}

static void take_results(struct skv_async_worker *w)
{
	for (uint32_t i = 0; i < w->n; i++) {
		SKV_CHECK((w->blocks[i].result <= SLABKV_FAILED ||
			   w->blocks[i].result == SLABKV_DELETED) &&
			  w->blocks[i].bufs == w->ops[i]->bufs);
		w->ops[i]->result = w->blocks[i].result;
		w->ops[i]->why = w->blocks[i].why;
	}
}

static void do_get(struct skv_async_worker *w, const struct slabkv_keys *keys)
{
	static const struct slabkv_lookup_options each = { .size = sizeof each,
							    .mode = SLABKV_BATCH,
							    .lease_ms = SLABKV_LEASE_DEFAULT };
	struct slabkv_io io = { .size = sizeof io };
	struct skv_error e = { 0 };
	int rc;

	set_blocks(w);
	rc = skv_get_blocks(w->async->kv, w->ops[0]->instance, keys, &each, w->blocks,
			    sizeof *w->blocks, &io, &e);
	if (rc == SLABKV_OK)
		take_results(w);
	else
		set_all(w, SLABKV_ERROR, rc);
}

static void do_put(struct skv_async_worker *w, const struct slabkv_keys *keys)
{
	struct slabkv_io io = { .size = sizeof io };
	struct skv_error e = { 0 };

	set_blocks(w);
	/* An error of the call is recorded for every block that it failed. */
	(void)skv_put_blocks(w->async->kv, w->ops[0]->instance, keys, NULL, w->blocks,
			     sizeof *w->blocks, &io, &e);
	take_results(w);
}

/* A lookup without a lease: it holds nothing back from eviction. */
static void do_exists(struct skv_async_worker *w, const struct slabkv_keys *keys)
{
	struct skv_error e = { 0 };
	struct skv_arena arena;
	const bool *hit;
	int rc;

	skv_arena_init(&arena);
	rc = skv_blocks_exist(w->async->kv, w->ops[0]->instance, keys, &arena, &hit, &e);
	if (rc != SLABKV_OK)
		set_all(w, SLABKV_ERROR, rc);
	for (uint32_t i = 0; rc == SLABKV_OK && i < w->n; i++) {
		w->ops[i]->result = hit[i] ? SLABKV_HIT : SLABKV_MISS;
		w->ops[i]->why = SLABKV_OK;
	}
	skv_arena_destroy(&arena);
}

static void do_delete(struct skv_async_worker *w, const struct slabkv_keys *keys)
{
	struct skv_error e = { 0 };
	int rc = skv_delete_blocks(w->async->kv, w->ops[0]->instance, keys, NULL, &e);

	set_all(w, rc == SLABKV_OK ? SLABKV_GONE : SLABKV_FAILED, rc);
}

static enum slabkv_result success_of(enum slabkv_op_kind kind)
{
	return kind == SLABKV_OP_PUT      ? SLABKV_WRITTEN
	       : kind == SLABKV_OP_DELETE ? SLABKV_GONE
					  : SLABKV_HIT;
}

static void do_many(struct skv_async_worker *w)
{
	const struct slabkv_batch *b = w->ops[0]->many;
	struct skv_error e = { 0 };
	int rc = skv_batch_do(w->async->kv, b, &e);

	set_all(w, rc == SLABKV_OK ? success_of(b->kind) : SLABKV_ERROR, rc);
}

static void fail(struct skv_async_worker *w, int rc)
{
	enum slabkv_op_kind kind = w->ops[0]->kind;
	enum slabkv_result result =
		kind == SLABKV_OP_PUT || kind == SLABKV_OP_DELETE ? SLABKV_FAILED : SLABKV_ERROR;

	if (w->ops[0]->many)
		skv_batch_tell(w->ops[0]->many, result, rc);
	set_all(w, result, rc);
}

static void work(struct skv_async_worker *w)
{
	struct slabkv_keys keys;
	int rc = skv_enter(w->async->kv, NULL);

	if (rc != SKV_OK) {
		fail(w, rc);
		return;
	}
	slabkv_trace(*w->ops[0]->batch->trace ? w->ops[0]->batch->trace : NULL);
	if (w->ops[0]->many) {
		do_many(w);
		return;
	}
	keys = keys_of(w);
	switch (w->ops[0]->kind) {
	case SLABKV_OP_GET:
		do_get(w, &keys);
		break;
	case SLABKV_OP_PUT:
		do_put(w, &keys);
		break;
	case SLABKV_OP_EXISTS:
		do_exists(w, &keys);
		break;
	case SLABKV_OP_DELETE:
		do_delete(w, &keys);
		break;
	}
}

void *skv_async_work(void *worker)
{
	struct skv_async_worker *w = worker;
	struct slabkv_async *a = w->async;

	skv_mutex_lock(&a->lock);
	for (;;) {
		while (!a->queue.head && !a->stopping)
			skv_cond_wait(&a->work, &a->lock);
		if (!a->queue.head)
			break;
		take_locked(a, w);
		skv_mutex_unlock(&a->lock);
		work(w);
		skv_mutex_lock(&a->lock);
		for (uint32_t i = 0; i < w->n; i++)
			skv_async_complete_locked(a, w->ops[i]);
	}
	skv_mutex_unlock(&a->lock);
	return NULL;
}
