/*
 * fault_store.c - a store stacked on another one that fails on demand.
 *
 * Owns the store below and one rule. Every call asks the rule first: go on, fail, wait, call back,
 * or pretend that the outcome is not known (before or after the store below was asked).
 *
 * Any thread; `lock` guards the rule and its count and is never held while the store below works.
 * Nothing is invented here: what comes back is the store's below or the rule's.
 */
#include <assert.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include <skv/lock.h>
#include <skv/mem.h>

#include <internal.h>

#include "fault_store.h"

struct fault {
	struct skv_store *below;
	struct skv_mutex lock;
	struct skv_fault rule; /* lock; `call` points to the copy below or is NULL */
	char call[32];         /* lock */
	uint64_t seen;         /* lock */
};

/* The rule's part for one call, copied, so that it may change meanwhile. */
struct plan {
	enum skv_fault_kind kind;
	int status;
	uint32_t delay_ms;
	void (*fn)(void *ctx, const char *call);
	void *ctx;
};

static struct plan plan_for(struct fault *f, const char *call)
{
	struct plan p = { .kind = SKV_FAULT_NONE };

	skv_mutex_lock(&f->lock);
	if (!f->rule.call || strcmp(f->rule.call, call) == 0) {
		uint64_t n = ++f->seen;
		uint64_t first = f->rule.at ? f->rule.at : 1;

		if (n >= first && (f->rule.times == 0 || n - first < f->rule.times))
			p = (struct plan){ f->rule.kind, f->rule.status, f->rule.delay_ms,
					   f->rule.fn, f->rule.ctx };
	}
	skv_mutex_unlock(&f->lock);
	return p;
}

/* True when the store below is not to be asked; then *rc is the answer. */
static bool stops(const struct plan *p, const char *call, int *rc, struct skv_error *err)
{
	switch (p->kind) {
	case SKV_FAULT_ERROR:
		*rc = skv_fail(err, p->status, NULL, "%s: a simulated failure", call);
		return true;
	case SKV_FAULT_UNKNOWN_BEFORE:
		*rc = skv_fail(err, SKV_E_UNKNOWN_OUTCOME, NULL, "%s: a simulated unknown outcome",
			       call);
		return true;
	case SKV_FAULT_DELAY:
		poll(NULL, 0, (int)p->delay_ms);
		return false;
	case SKV_FAULT_CALL:
		p->fn(p->ctx, call);
		return false;
	default:
		return false;
	}
}

static int result(const struct plan *p, const char *call, int rc, struct skv_error *err)
{
	if (p->kind != SKV_FAULT_UNKNOWN_AFTER)
		return rc;
	return skv_fail(err, SKV_E_UNKNOWN_OUTCOME, NULL, "%s: a simulated unknown outcome", call);
}

static int no_open(const struct skv_store_options *o, void **self, struct skv_error *err)
{
	(void)o;
	(void)self;
	return skv_fail(err, SKV_E_UNSUPPORTED, NULL,
			"a fault store is opened by skv_fault_store_open");
}

static void fault_close(void *self)
{
	struct fault *f = self;

	skv_store_close(f->below);
	skv_mutex_destroy(&f->lock);
	skv_free(f);
}

static int fault_get(void *self, const char *key, struct skv_buf *value, uint64_t *version,
		     struct skv_error *err)
{
	struct fault *f = self;
	struct plan p = plan_for(f, "get");
	int rc;

	if (stops(&p, "get", &rc, err))
		return rc;
	return result(&p, "get", skv_store_get(f->below, key, value, version, err), err);
}

static int fault_put(void *self, const struct skv_fence *fence, const char *key, uint64_t expect,
		     const void *bytes, size_t n, uint64_t *version, struct skv_error *err)
{
	struct fault *f = self;
	struct plan p = plan_for(f, "put");
	int rc;

	if (stops(&p, "put", &rc, err))
		return rc;
	rc = skv_store_put(f->below, fence, key, expect, bytes, n, version, err);
	return result(&p, "put", rc, err);
}

static int fault_del(void *self, const struct skv_fence *fence, const char *key, uint64_t expect,
		     struct skv_error *err)
{
	struct fault *f = self;
	struct plan p = plan_for(f, "del");
	int rc;

	if (stops(&p, "del", &rc, err))
		return rc;
	return result(&p, "del", skv_store_del(f->below, fence, key, expect, err), err);
}

static int fault_list(void *self, const char *prefix, skv_registry_fn fn, void *ctx,
		      struct skv_error *err)
{
	struct fault *f = self;
	struct plan p = plan_for(f, "list");
	int rc;

	if (stops(&p, "list", &rc, err))
		return rc;
	return result(&p, "list", skv_store_list(f->below, prefix, fn, ctx, err), err);
}

static int fault_acquire(void *self, uint32_t partition, const char *owner, uint32_t ttl_ms,
			 uint64_t *fence, char *holder, size_t holder_size, struct skv_error *err)
{
	struct fault *f = self;
	struct plan p = plan_for(f, "acquire");
	int rc;

	if (stops(&p, "acquire", &rc, err))
		return rc;
	rc = skv_store_acquire(f->below, partition, owner, ttl_ms, fence, holder, holder_size, err);
	return result(&p, "acquire", rc, err);
}

static int fault_renew(void *self, uint32_t partition, uint64_t fence, uint32_t ttl_ms,
		       struct skv_error *err)
{
	struct fault *f = self;
	struct plan p = plan_for(f, "renew");
	int rc;

	if (stops(&p, "renew", &rc, err))
		return rc;
	return result(&p, "renew", skv_store_renew(f->below, partition, fence, ttl_ms, err), err);
}

static int fault_release(void *self, uint32_t partition, uint64_t fence, struct skv_error *err)
{
	struct fault *f = self;
	struct plan p = plan_for(f, "release");
	int rc;

	if (stops(&p, "release", &rc, err))
		return rc;
	return result(&p, "release", skv_store_release(f->below, partition, fence, err), err);
}

static int fault_append(void *self, uint32_t partition, uint64_t fence, uint64_t seq,
			const void *bytes, size_t n, unsigned flags, struct skv_error *err)
{
	struct fault *f = self;
	struct plan p = plan_for(f, "append");
	int rc;

	if (stops(&p, "append", &rc, err))
		return rc;
	rc = skv_store_append(f->below, partition, fence, seq, bytes, n, flags, err);
	return result(&p, "append", rc, err);
}

static int fault_sync(void *self, uint32_t partition, struct skv_error *err)
{
	struct fault *f = self;
	struct plan p = plan_for(f, "sync");
	int rc;

	if (stops(&p, "sync", &rc, err))
		return rc;
	return result(&p, "sync", skv_store_sync(f->below, partition, err), err);
}

static int fault_begin(void *self, uint32_t partition, uint64_t fence, uint64_t *id,
		       struct skv_error *err)
{
	struct fault *f = self;
	struct plan p = plan_for(f, "checkpoint_begin");
	int rc;

	if (stops(&p, "checkpoint_begin", &rc, err))
		return rc;
	rc = skv_store_checkpoint_begin(f->below, partition, fence, id, err);
	return result(&p, "checkpoint_begin", rc, err);
}

static int fault_slice(void *self, uint32_t partition, uint64_t fence, uint64_t id, uint32_t number,
		       const void *bytes, size_t n, struct skv_error *err)
{
	struct fault *f = self;
	struct plan p = plan_for(f, "checkpoint_slice");
	int rc;

	if (stops(&p, "checkpoint_slice", &rc, err))
		return rc;
	rc = skv_store_checkpoint_slice(f->below, partition, fence, id, number, bytes, n, err);
	return result(&p, "checkpoint_slice", rc, err);
}

static int fault_commit(void *self, uint32_t partition, uint64_t fence, uint64_t id,
			uint32_t slices, uint64_t upto_seq, struct skv_error *err)
{
	struct fault *f = self;
	struct plan p = plan_for(f, "checkpoint_commit");
	int rc;

	if (stops(&p, "checkpoint_commit", &rc, err))
		return rc;
	rc = skv_store_checkpoint_commit(f->below, partition, fence, id, slices, upto_seq, err);
	return result(&p, "checkpoint_commit", rc, err);
}

static int fault_abort(void *self, uint32_t partition, uint64_t id)
{
	struct fault *f = self;
	struct plan p = plan_for(f, "checkpoint_abort");
	int rc;

	if (stops(&p, "checkpoint_abort", &rc, NULL))
		return rc;
	return result(&p, "checkpoint_abort", skv_store_checkpoint_abort(f->below, partition, id),
		      NULL);
}

static int fault_load(void *self, uint32_t partition, uint64_t *base_seq,
		      const struct skv_load_sink *sink, struct skv_error *err)
{
	struct fault *f = self;
	struct plan p = plan_for(f, "load");
	int rc;

	if (stops(&p, "load", &rc, err))
		return rc;
	return result(&p, "load", skv_store_load(f->below, partition, base_seq, sink, err), err);
}

static int fault_stats(void *self, uint32_t partition, struct skv_store_stats *out,
		       struct skv_error *err)
{
	struct fault *f = self;
	struct plan p = plan_for(f, "stats");
	int rc;

	if (stops(&p, "stats", &rc, err))
		return rc;
	return result(&p, "stats", skv_store_stats_get(f->below, partition, out, err), err);
}

static int fault_follow(void *self, uint32_t partition, struct skv_position *at,
			const struct skv_load_sink *sink, struct skv_error *err)
{
	struct fault *f = self;
	struct plan p = plan_for(f, "follow");
	int rc;

	if (stops(&p, "follow", &rc, err))
		return rc;
	return result(&p, "follow", skv_store_follow(f->below, partition, at, sink, err), err);
}

static uint64_t fault_renewed(void *self, uint32_t partition)
{
	return skv_store_renewed_ms(((struct fault *)self)->below, partition);
}

static const struct skv_store_ops fault_ops = {
	.size = sizeof fault_ops,
	.name = "fault",
	.open = no_open,
	.close = fault_close,
	.get = fault_get,
	.put = fault_put,
	.del = fault_del,
	.list = fault_list,
	.acquire = fault_acquire,
	.renew = fault_renew,
	.release = fault_release,
	.append = fault_append,
	.sync = fault_sync,
	.checkpoint_begin = fault_begin,
	.checkpoint_slice = fault_slice,
	.checkpoint_commit = fault_commit,
	.checkpoint_abort = fault_abort,
	.load = fault_load,
	.stats = fault_stats,
	.follow = fault_follow,
	.renewed = fault_renewed,
};

int skv_fault_store_open(struct skv_store *below, struct skv_store **out, struct skv_error *err)
{
	struct fault *f = skv_calloc(1, sizeof *f);
	int rc;

	if (!f)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	rc = store_wrap(&fault_ops, f, skv_store_durability(below), out, err);
	if (rc != SKV_OK) {
		skv_free(f);
		return rc;
	}
	f->below = below;
	skv_mutex_init(&f->lock);
	return SKV_OK;
}

static struct fault *fault_of(const struct skv_store *s)
{
	return s->ops == &fault_ops ? s->self : NULL;
}

void skv_fault_store_set(struct skv_store *s, const struct skv_fault *rule)
{
	struct fault *f = fault_of(s);

	if (!f)
		return;
	skv_mutex_lock(&f->lock);
	f->rule = *rule;
	if (rule->call) {
		snprintf(f->call, sizeof f->call, "%s", rule->call);
		assert(strcmp(f->call, rule->call) == 0);
		f->rule.call = f->call;
	}
	f->seen = 0;
	skv_mutex_unlock(&f->lock);
}

uint64_t skv_fault_store_seen(const struct skv_store *s)
{
	struct fault *f = fault_of(s);
	uint64_t seen;

	if (!f)
		return 0;
	skv_mutex_lock(&f->lock);
	seen = f->seen;
	skv_mutex_unlock(&f->lock);
	return seen;
}
