/*
 * async_work.c - the worker threads of the asynchronous queue: which operations share a call, and
 * the calls.
 *
 * A worker takes the oldest operation and, for a get, exists or delete, others of the same kind,
 * instance and form of keys wherever they stand in the queue; for a put the ones that follow it in
 * its chain. Puts of different chains never share a call: a start is one chain, and what is chained
 * there is evicted in that order.
 *
 * State: what the worker has taken. The calls are those that everybody uses (slabkv_get and so on).
 */
#include "async.h"

#include <string.h>

/* ---- which operations share a call ----------------------------------------------------------- */

static bool same_key(const struct skv_async_op *a, const struct skv_async_op *b)
{
	if (a->hash != b->hash)
		return false;
	if (a->form == SLABKV_KEYS_STRING)
		return strcmp(a->key.string, b->key.string) == 0;
	if (a->form == SLABKV_KEYS_INT)
		return a->key.number == b->key.number;
	return a->key.wide.hi == b->key.wide.hi && a->key.wide.lo == b->key.wide.lo;
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

	if (op->kind != first->kind || op->form != first->form ||
	    strcmp(op->instance, first->instance) != 0)
		return false;
	if (op->kind == SLABKV_OP_PUT)
		return op->after == w->ops[w->n - 1] && is_new(w, op);
	return is_new(w, op);
}

/* Takes operations for one call out of the queue. */
static void take_locked(struct slabkv_async *a, struct skv_async_worker *w)
{
	struct skv_async_op *op = a->queue.head, *next;
	uint32_t share = a->queue.n / a->n_workers + 1, looked_at = 0;
	uint32_t most = share < SKV_ASYNC_SHARE ? SKV_ASYNC_SHARE : share;

	if (most > a->batch)
		most = a->batch;
	w->n = 0;
	for (; op && w->n < most && looked_at < 4 * a->batch; op = next, looked_at++) {
		next = op->next;
		if (w->n > 0 && !may_join(w, op)) {
			if (w->ops[0]->kind == SLABKV_OP_PUT)
				break; /* a chain stands side by side */
			continue;
		}
		skv_async_remove(&a->queue, op);
		w->ops[w->n++] = op;
	}
}

/* ---- the calls ------------------------------------------------------------------------------- */

static struct slabkv_keys keys_of(struct skv_async_worker *w)
{
	enum slabkv_key_form form = w->ops[0]->form;

	for (uint32_t i = 0; i < w->n; i++) {
		if (form == SLABKV_KEYS_STRING)
			w->keys.strings[i] = w->ops[i]->key.string;
		else if (form == SLABKV_KEYS_INT)
			w->keys.ints[i] = w->ops[i]->key.number;
		else
			w->keys.wide[i] = w->ops[i]->key.wide;
	}
	if (form == SLABKV_KEYS_STRING)
		return slabkv_keys_strings(w->keys.strings, w->n);
	if (form == SLABKV_KEYS_INT)
		return slabkv_keys_ints(w->keys.ints, w->n);
	return slabkv_keys_wide(w->keys.wide, w->n);
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
		w->ops[i]->result = w->blocks[i].result;
		w->ops[i]->why = w->blocks[i].why;
	}
}

static void do_get(struct skv_async_worker *w, const struct slabkv_keys *keys)
{
	static const struct slabkv_lookup_options each = { .mode = SLABKV_BATCH,
							    .lease_ms = SLABKV_LEASE_DEFAULT };
	int rc;

	set_blocks(w);
	rc = slabkv_get(w->async->kv, w->ops[0]->instance, keys, &each, w->blocks, NULL, NULL);
	if (rc == SLABKV_OK)
		take_results(w);
	else
		set_all(w, SLABKV_ERROR, rc);
}

static void do_put(struct skv_async_worker *w, const struct slabkv_keys *keys)
{
	const struct skv_async_op *first = w->ops[0];
	struct slabkv_put_options o = { 0 };
	struct slabkv_keys parent = { .form = first->form, .n = 1 };

	if (first->form == SLABKV_KEYS_STRING)
		parent.v.strings = &first->parent.string;
	else if (first->form == SLABKV_KEYS_INT)
		parent.v.ints = &first->parent.number;
	else
		parent.v.wide = &first->parent.wide;
	o.parent = first->has_parent ? &parent : NULL;
	set_blocks(w);
	/* An error of the call stands in every block that it failed for. */
	(void)slabkv_put(w->async->kv, first->instance, keys, &o, w->blocks, NULL, NULL);
	take_results(w);
}

/* A lookup without a lease: it holds nothing back from eviction. */
static void do_exists(struct skv_async_worker *w, const struct slabkv_keys *keys)
{
	static const struct slabkv_lookup_options each = { .mode = SLABKV_BATCH };
	const struct slabkv_locations *l;
	int rc = slabkv_lookup(w->async->kv, w->ops[0]->instance, keys, &each, &l, NULL);

	if (rc != SLABKV_OK) {
		set_all(w, SLABKV_ERROR, rc);
		return;
	}
	for (uint32_t i = 0; i < w->n; i++) {
		w->ops[i]->result = l->hit[i] ? SLABKV_HIT : SLABKV_MISS;
		w->ops[i]->why = SLABKV_OK;
	}
	slabkv_free(l);
}

static void do_delete(struct skv_async_worker *w, const struct slabkv_keys *keys)
{
	int rc = slabkv_delete(w->async->kv, w->ops[0]->instance, keys, NULL, NULL);

	set_all(w, rc == SLABKV_OK ? SLABKV_GONE : SLABKV_FAILED, rc);
}

static void work(struct skv_async_worker *w)
{
	struct slabkv_keys keys = keys_of(w);

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
