/*
 * store.c - the guarded wrapper around a metadata store backend.
 *
 * Owns the opened handle and its counters. Every call of every backend passes here: arguments and
 * sizes are checked once, the call is counted and timed, a failure always has an error text, and a
 * debug line reports request and result (formatted only when the level is on). This keeps backends
 * small, and the fault backend stacks by calling these same functions.
 *
 * Called from any thread; counters are relaxed atomics. `lock` protects the list of calls that have
 * begun, by which a hanging call is detected. A call blocks as long as the backend does. Nothing is
 * retried here: the caller knows what a repetition would mean.
 */
#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <skv/lock.h>
#include <skv/log.h>
#include <skv/mem.h>

#include "internal.h"

/* A call that has begun. `err` is never NULL inside: the backend may always explain itself. */
struct call {
	struct call *older, *newer;
	const char *what;
	uint64_t begin_us;
	struct skv_error *err;
	struct skv_error unasked;
};

static void call_init(struct call *c, const char *what, struct skv_error *err)
{
	assert(!skv_thread_reads); /* no call of a store with the core's lock */
	c->what = what;
	c->begin_us = skv_now_us();
	c->err = err ? err : &c->unasked;
	skv_error_clear(c->err);
}

static void call_begin(struct skv_store *s, struct call *c, const char *what, struct skv_error *err)
{
	call_init(c, what, err);
	skv_mutex_lock(&s->lock);
	c->newer = NULL;
	c->older = s->newest;
	*(s->newest ? &s->newest->newer : &s->oldest) = c;
	s->newest = c;
	skv_mutex_unlock(&s->lock);
}

static void leave(struct skv_store *s, struct call *c)
{
	skv_mutex_lock(&s->lock);
	assert(c->older ? c->older->newer == c : s->oldest == c);
	*(c->older ? &c->older->newer : &s->oldest) = c->newer;
	*(c->newer ? &c->newer->older : &s->newest) = c->older;
	skv_mutex_unlock(&s->lock);
}

/* Makes sure that a failure comes with a sentence and a success without one, and logs. */
static int call_end(const struct call *c, const char *name, int rc, uint64_t *us)
{
	*us = skv_now_us() - c->begin_us;
	if (rc != SKV_OK && c->err->message[0] == '\0')
		skv_fail(c->err, rc, NULL, "%s: %s", c->what, skv_status_text(rc));
	else if (rc == SKV_OK && c->err->status != SKV_OK)
		skv_error_clear(c->err); /* of a try that was repeated inside */
	if (skv_log_enabled(SKV_LOG_DEBUG))
		skv_log(SKV_LOG_DEBUG, "store", "%s: %s: %s, %llu us%s%s", name, c->what,
			skv_status_name(rc), (unsigned long long)*us, rc == SKV_OK ? "" : ": ",
			rc == SKV_OK ? "" : c->err->message);
	return rc;
}

static void count(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

static void count_max(_Atomic uint64_t *counter, uint64_t n)
{
	uint64_t max = atomic_load_explicit(counter, memory_order_relaxed);

	while (n > max && !atomic_compare_exchange_weak_explicit(
				  counter, &max, n, memory_order_relaxed, memory_order_relaxed))
		;
}

/* The end of a call that may carry the result of a caller's function. */
static int finish_any(struct skv_store *s, struct call *c, int rc)
{
	uint64_t us;

	leave(s, c);
	rc = call_end(c, s->ops->name, rc, &us);
	count(&s->calls, 1);
	if (rc != SKV_OK)
		count(&s->errors, 1);
	return rc;
}

static int finish(struct skv_store *s, struct call *c, int rc)
{
	if (rc > 0 || (rc < 0 && skv_status_from_name(skv_status_name(rc)) != rc))
		rc = skv_fail(c->err, SKV_E_INTERNAL, NULL, "%s: the backend answered %d", c->what,
			      rc);
	return finish_any(s, c, rc);
}

/* ---- choice of a backend --------------------------------------------------------------------- */

/* A text with a scheme is not a file name: an unknown scheme is refused. */
static bool is_url(const char *text)
{
	const size_t n = strcspn(text, ":/.");

	return strncmp(text, "etcd:", 5) == 0 || (n > 0 && strncmp(text + n, "://", 3) == 0);
}

const struct skv_store_ops *skv_store_backend(const char *text)
{
	if (strncmp(text, "etcd:", 5) == 0)
		return &skv_store_etcd;
	return is_url(text) ? NULL : &skv_store_sqlite;
}

bool skv_store_is_file(const char *text)
{
	return skv_store_backend(text) == &skv_store_sqlite &&
	       strcmp(text, SKV_STORE_IN_MEMORY) != 0;
}

void skv_store_shown(const char *text, char out[SKV_STORE_SHOWN_MAX])
{
	const char *after = strstr(text, "//");
	const char *at =
		is_url(text) && after ? memrchr(after, '@', strcspn(after + 2, "/?") + 2) : NULL;

	if (at)
		snprintf(out, SKV_STORE_SHOWN_MAX, "%.*s%s", (int)(after + 2 - text), text, at + 1);
	else
		snprintf(out, SKV_STORE_SHOWN_MAX, "%s", text);
}

/* ---- open and close -------------------------------------------------------------------------- */

static bool is_complete(const struct skv_store_ops *o)
{
	return o->size >= sizeof *o && o->name && o->open && o->close && o->get && o->put &&
	       o->del && o->list && o->acquire && o->renew && o->release && o->append && o->sync &&
	       o->checkpoint_begin && o->checkpoint_slice && o->checkpoint_commit &&
	       o->checkpoint_abort && o->load && o->stats;
}

int store_wrap(const struct skv_store_ops *ops, void *self, enum skv_durability durability,
	       struct skv_store **out, struct skv_error *err)
{
	struct skv_store *s = skv_calloc(1, sizeof *s);

	if (!s)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	s->ops = ops;
	s->self = self;
	s->durability = durability;
	skv_mutex_init(&s->lock);
	*out = s;
	return SKV_OK;
}

static int open_backend(const struct skv_store_ops *ops, const struct skv_store_options *o,
			struct skv_store **out, struct skv_error *err)
{
	void *self;
	int rc;

	if (!ops)
		return skv_fail(err, SKV_E_UNSUPPORTED, "store",
				"the store's scheme is unknown (stores on Redis are no longer "
				"supported): name a database file, or etcd://...");
	if (!is_complete(ops))
		return skv_fail(err, SKV_E_UNSUPPORTED, NULL, "the store backend lacks a function");
	if (!o->path)
		return skv_fail(err, SKV_E_INVALID, "path", "a store needs a path");
	if (o->durability != SKV_DURABILITY_FULL && o->durability != SKV_DURABILITY_NORMAL)
		return skv_fail(err, SKV_E_INVALID, "durability",
				"the durability must be full or normal");
	rc = ops->open(o, &self, err);
	if (rc != SKV_OK)
		return rc;
	rc = store_wrap(ops, self, o->durability, out, err);
	if (rc != SKV_OK)
		ops->close(self);
	return rc;
}

int skv_store_open(const struct skv_store_ops *ops, const struct skv_store_options *o,
		   struct skv_store **out, struct skv_error *err)
{
	struct call c;
	uint64_t us;

	call_init(&c, "open", err);
	return call_end(&c, ops && ops->name ? ops->name : "?", open_backend(ops, o, out, c.err),
			&us);
}

void skv_store_close(struct skv_store *s)
{
	if (!s)
		return;
	assert(!s->oldest);
	s->ops->close(s->self);
	skv_mutex_destroy(&s->lock);
	skv_free(s);
}

const char *skv_store_name(const struct skv_store *s) { return s->ops->name; }

enum skv_durability skv_store_durability(const struct skv_store *s) { return s->durability; }

/* ---- registry -------------------------------------------------------------------------------- */

static int check_key(const char *key, bool may_be_empty, struct skv_error *err)
{
	size_t n = key ? strnlen(key, SKV_STORE_KEY_MAX + 1) : 0;

	if (!key || (n == 0 && !may_be_empty))
		return skv_fail(err, SKV_E_INVALID, "key", "a registry key must not be empty");
	if (n > SKV_STORE_KEY_MAX)
		return skv_fail(err, SKV_E_INVALID, "key", "a registry key has at most %u bytes",
				SKV_STORE_KEY_MAX);
	return SKV_OK;
}

static int check_partition(uint32_t partition, struct skv_error *err)
{
	if (partition > SKV_STORE_PARTITION_MAX)
		return skv_fail(err, SKV_E_INVALID, "partition", "partition %u is over %u",
				partition, SKV_STORE_PARTITION_MAX);
	return SKV_OK;
}

static int check_size(size_t n, size_t max, const char *what, struct skv_error *err)
{
	if (n > max)
		return skv_fail(err, SKV_E_TOO_LARGE, NULL,
				"%s of %zu bytes is over the limit of %zu", what, n, max);
	return SKV_OK;
}

int skv_store_get(struct skv_store *s, const char *key, struct skv_buf *value, uint64_t *version,
		  struct skv_error *err)
{
	struct call c;
	uint64_t unasked;
	int rc;

	call_begin(s, &c, "get", err);
	rc = check_key(key, false, c.err);
	if (rc == SKV_OK)
		rc = s->ops->get(s->self, key, value, version ? version : &unasked, c.err);
	return finish(s, &c, rc);
}

int skv_store_put(struct skv_store *s, const struct skv_fence *fence, const char *key,
		  uint64_t expect, const void *bytes, size_t n, uint64_t *version,
		  struct skv_error *err)
{
	struct call c;
	uint64_t unasked;
	int rc;

	call_begin(s, &c, "put", err);
	rc = check_key(key, false, c.err);
	if (rc == SKV_OK && fence)
		rc = check_partition(fence->partition, c.err);
	if (rc == SKV_OK)
		rc = check_size(n, SKV_STORE_VALUE_MAX, "a registry document", c.err);
	if (rc == SKV_OK)
		rc = s->ops->put(s->self, fence, key, expect, n ? bytes : "", n,
				 version ? version : &unasked, c.err);
	return finish(s, &c, rc);
}

int skv_store_del(struct skv_store *s, const struct skv_fence *fence, const char *key,
		  uint64_t expect, struct skv_error *err)
{
	struct call c;
	int rc;

	call_begin(s, &c, "del", err);
	rc = check_key(key, false, c.err);
	if (rc == SKV_OK && fence)
		rc = check_partition(fence->partition, c.err);
	if (rc == SKV_OK && expect == SKV_VERSION_NONE)
		rc = skv_fail(c.err, SKV_E_INVALID, "expect",
			      "what does not exist cannot be deleted");
	if (rc == SKV_OK)
		rc = s->ops->del(s->self, fence, key, expect, c.err);
	return finish(s, &c, rc);
}

int skv_store_list(struct skv_store *s, const char *prefix, skv_registry_fn fn, void *ctx,
		   struct skv_error *err)
{
	struct call c;
	int rc;

	assert(fn);
	call_begin(s, &c, "list", err);
	rc = check_key(prefix, true, c.err);
	if (rc == SKV_OK)
		rc = s->ops->list(s->self, prefix, fn, ctx, c.err);
	return finish_any(s, &c, rc);
}

int skv_store_changes(struct skv_store *s, const char *const *prefixes, size_t n, uint64_t *at,
		      bool *all, skv_registry_fn fn, void *ctx, struct skv_error *err)
{
	struct call c;
	int rc = SKV_OK;

	if (s->ops->changes) {
		call_begin(s, &c, "changes", err);
		return finish_any(s, &c, s->ops->changes(s->self, prefixes, n, at, all, fn, ctx,
							 c.err));
	}
	*all = true;
	for (size_t i = 0; rc == SKV_OK && i < n; i++)
		rc = skv_store_list(s, prefixes[i], fn, ctx, err);
	return rc;
}

/* ---- ownership ------------------------------------------------------------------------------- */

static int check_lease(uint32_t partition, uint32_t ttl_ms, struct skv_error *err)
{
	if (ttl_ms == 0)
		return skv_fail(err, SKV_E_INVALID, "ttl_ms", "an ownership lease needs a length");
	return check_partition(partition, err);
}

int skv_store_acquire(struct skv_store *s, uint32_t partition, const char *owner, uint32_t ttl_ms,
		      uint64_t *fence, char *holder, size_t holder_size, struct skv_error *err)
{
	char unasked[192];
	struct call c;
	int rc;

	assert(fence);
	call_begin(s, &c, "acquire", err);
	rc = check_partition(partition, c.err);
	if (rc == SKV_OK && (!owner || !*owner || strlen(owner) >= sizeof unasked))
		rc = skv_fail(c.err, SKV_E_INVALID, "owner", "an owner's name has 1 to %zu bytes",
			      sizeof unasked - 1);
	if (rc == SKV_OK && (!holder || holder_size == 0)) {
		holder = unasked;
		holder_size = sizeof unasked;
	}
	if (rc == SKV_OK)
		rc = s->ops->acquire(s->self, partition, owner, ttl_ms, fence, holder, holder_size,
				     c.err);
	return finish(s, &c, rc);
}

int skv_store_renew(struct skv_store *s, uint32_t partition, uint64_t fence, uint32_t ttl_ms,
		    struct skv_error *err)
{
	struct call c;
	int rc;

	call_begin(s, &c, "renew", err);
	rc = check_lease(partition, ttl_ms, c.err);
	if (rc == SKV_OK)
		rc = s->ops->renew(s->self, partition, fence, ttl_ms, c.err);
	return finish(s, &c, rc);
}

int skv_store_release(struct skv_store *s, uint32_t partition, uint64_t fence,
		      struct skv_error *err)
{
	struct call c;
	int rc;

	call_begin(s, &c, "release", err);
	rc = check_partition(partition, c.err);
	if (rc == SKV_OK)
		rc = s->ops->release(s->self, partition, fence, c.err);
	return finish(s, &c, rc);
}

/* ---- journal --------------------------------------------------------------------------------- */

int skv_store_append(struct skv_store *s, uint32_t partition, uint64_t fence, uint64_t seq,
		     const void *bytes, size_t n, unsigned flags, struct skv_error *err)
{
	struct call c;
	int rc;

	call_begin(s, &c, "append", err);
	rc = check_partition(partition, c.err);
	if (rc == SKV_OK && (seq == 0 || seq > SKV_STORE_SEQ_MAX))
		rc = skv_fail(c.err, SKV_E_INVALID, "seq", "%llu is not a sequence number",
			      (unsigned long long)seq);
	if (rc == SKV_OK)
		rc = check_size(n, SKV_STORE_BATCH_MAX, "a batch", c.err);
	if (rc == SKV_OK)
		rc = s->ops->append(s->self, partition, fence, seq, n ? bytes : "", n, flags,
				    c.err);
	if (rc == SKV_OK) {
		uint64_t us = skv_now_us() - c.begin_us;

		count(&s->appends, 1);
		count(&s->append_bytes, n);
		count(&s->append_us, us);
		count_max(&s->append_max_us, us);
	}
	return finish(s, &c, rc);
}

int skv_store_sync(struct skv_store *s, uint32_t partition, struct skv_error *err)
{
	struct call c;

	call_begin(s, &c, "sync", err);
	return finish(s, &c, s->ops->sync(s->self, partition, c.err));
}

/* ---- checkpoints and load -------------------------------------------------------------------- */

int skv_store_checkpoint_begin(struct skv_store *s, uint32_t partition, uint64_t fence,
			       uint64_t *id, struct skv_error *err)
{
	struct call c;
	int rc;

	assert(id);
	call_begin(s, &c, "checkpoint_begin", err);
	rc = check_partition(partition, c.err);
	if (rc == SKV_OK)
		rc = s->ops->checkpoint_begin(s->self, partition, fence, id, c.err);
	return finish(s, &c, rc);
}

int skv_store_checkpoint_slice(struct skv_store *s, uint32_t partition, uint64_t fence, uint64_t id,
			       uint32_t number, const void *bytes, size_t n, struct skv_error *err)
{
	struct call c;
	int rc;

	call_begin(s, &c, "checkpoint_slice", err);
	rc = check_partition(partition, c.err);
	if (rc == SKV_OK)
		rc = check_size(n, SKV_STORE_SLICE_MAX, "a slice", c.err);
	if (rc == SKV_OK && number >= SKV_STORE_SLICES_MAX)
		rc = skv_fail(c.err, SKV_E_TOO_LARGE, "number",
			      "a checkpoint has at most %u slices", SKV_STORE_SLICES_MAX);
	if (rc == SKV_OK)
		rc = s->ops->checkpoint_slice(s->self, partition, fence, id, number, n ? bytes : "",
					      n, c.err);
	return finish(s, &c, rc);
}

int skv_store_checkpoint_commit(struct skv_store *s, uint32_t partition, uint64_t fence,
				uint64_t id, uint32_t slices, uint64_t upto_seq,
				struct skv_error *err)
{
	struct call c;
	int rc;

	call_begin(s, &c, "checkpoint_commit", err);
	rc = check_partition(partition, c.err);
	if (rc == SKV_OK && upto_seq > SKV_STORE_SEQ_MAX)
		rc = skv_fail(c.err, SKV_E_INVALID, "upto_seq", "%llu is not a sequence number",
			      (unsigned long long)upto_seq);
	if (rc == SKV_OK)
		rc = s->ops->checkpoint_commit(s->self, partition, fence, id, slices, upto_seq,
					       c.err);
	return finish(s, &c, rc);
}

int skv_store_checkpoint_abort(struct skv_store *s, uint32_t partition, uint64_t id)
{
	struct call c;
	int rc;

	call_begin(s, &c, "checkpoint_abort", NULL);
	rc = check_partition(partition, c.err);
	if (rc == SKV_OK)
		rc = s->ops->checkpoint_abort(s->self, partition, id);
	return finish(s, &c, rc);
}

int skv_store_load(struct skv_store *s, uint32_t partition, uint64_t *base_seq,
		   const struct skv_load_sink *sink, struct skv_error *err)
{
	struct call c;
	int rc;

	assert(base_seq && sink && sink->slice && sink->record);
	call_begin(s, &c, "load", err);
	rc = check_partition(partition, c.err);
	if (rc == SKV_OK)
		rc = s->ops->load(s->self, partition, base_seq, sink, c.err);
	return finish_any(s, &c, rc);
}

int skv_store_follow(struct skv_store *s, uint32_t partition, struct skv_position *at,
		     const struct skv_load_sink *sink, struct skv_error *err)
{
	struct call c;
	int rc;

	assert(at && sink && sink->slice && sink->record);
	assert(at->known || at->seq == 0);
	call_begin(s, &c, "follow", err);
	rc = check_partition(partition, c.err);
	if (rc == SKV_OK)
		rc = s->ops->follow ? s->ops->follow(s->self, partition, at, sink, c.err)
				    : SKV_E_UNSUPPORTED;
	assert(rc != SKV_OK || (at->known && at->seq <= at->newest));
	return finish_any(s, &c, rc);
}

uint64_t skv_store_renewed_ms(struct skv_store *s, uint32_t partition)
{
	return s->ops->renewed ? s->ops->renewed(s->self, partition) : 0;
}

int skv_store_stats_get(struct skv_store *s, uint32_t partition, struct skv_store_stats *out,
			struct skv_error *err)
{
	struct call c;
	int rc;

	call_begin(s, &c, "stats", err);
	rc = check_partition(partition, c.err);
	if (rc == SKV_OK)
		rc = s->ops->stats(s->self, partition, out, c.err);
	return finish(s, &c, rc);
}

void skv_store_counters_get(const struct skv_store *s, struct skv_store_counters *out)
{
	*out = (struct skv_store_counters){
		.calls = atomic_load_explicit(&s->calls, memory_order_relaxed),
		.errors = atomic_load_explicit(&s->errors, memory_order_relaxed),
		.appends = atomic_load_explicit(&s->appends, memory_order_relaxed),
		.append_bytes = atomic_load_explicit(&s->append_bytes, memory_order_relaxed),
		.append_us = atomic_load_explicit(&s->append_us, memory_order_relaxed),
		.append_max_us = atomic_load_explicit(&s->append_max_us, memory_order_relaxed),
	};
}

uint64_t skv_store_wait_us(struct skv_store *s, const char **what)
{
	uint64_t begin_us = UINT64_MAX;
	const uint64_t now = skv_now_us();

	*what = "";
	skv_mutex_lock(&s->lock);
	if (s->oldest) {
		*what = s->oldest->what;
		begin_us = s->oldest->begin_us;
	}
	skv_mutex_unlock(&s->lock);
	return begin_us < now ? now - begin_us : 0;
}
