/*
 * full.c - full mode: the whole core under the trace's clock, as `slabkv replay`
 * with one client asks it.
 *
 * A core of its own for each run, without threads, on a store that keeps the registry in memory and
 * no journal, because it is never loaded or owned by others, and a storage without bytes, with one
 * group and one instance. Each request looks up its prefix without a lease, then starts and
 * finishes the missing blocks after it; of a request that is larger than the capacity the first
 * blocks are written. Nothing is evicted ahead of need. What is evicted depends on the order of
 * calls alone, so a manager with the same settings that gets the same calls in the same order has
 * the same hits, whatever its clock.
 */
#include "run.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <skv/core.h>
#include <skv/mem.h>
#include <skv/store.h>

#define BEGIN_MS 1000000u
#define OWNER_LEASE_MS 60000u
#define STEP_MS (OWNER_LEASE_MS / 4) /* so that the ownership is renewed in time */
#define PATIENCE_MS 60000u           /* a call that is not over by then is a bug */
#define UNIT (64ull << 20)

struct full {
	struct run *r;
	struct skv_fake_clock clock;
	struct skv_store_ops store_ops;
	struct skv_store *store;
	struct skv_cluster *cluster;
	struct skv_core *core; /* of its only partition */
	struct skv_arena arena;
	struct skv_key *keys; /* [longest request] */
	char instance[SKV_MAX_NAME + 1];
	uint64_t now;         /* of the trace, ms */
};

struct answer {
	bool over;
	int status;
};

static void on_done(void *ctx, int status)
{
	struct answer *a = ctx;

	assert(!a->over && status != SKV_PENDING);
	a->over = true;
	a->status = status;
}

/* Returns the final result of the call. */
static int wait_for(struct full *f, struct answer *a, int rc)
{
	if (rc != SKV_PENDING)
		return rc;
	for (uint32_t i = 0; i < PATIENCE_MS && !a->over; i++) {
		if (i > 2)
			skv_fake_clock_advance(&f->clock, 1);
		skv_cluster_tick(f->cluster);
	}
	return a->over ? a->status
		       : skv_fail(&f->r->err, SKV_E_INTERNAL, NULL,
				  "a call of the core did not end");
}

/* Ends early when the run is to stop: a gap of a year takes a while. */
static void go_to(struct full *f, uint64_t at_ms)
{
	uint64_t at = at_ms > f->now ? at_ms : f->now + 1;

	while (f->now < at && !atomic_load_explicit(&run_stop, memory_order_relaxed)) {
		uint64_t step = at - f->now < STEP_MS ? at - f->now : STEP_MS;

		f->now += step;
		skv_fake_clock_advance(&f->clock, step);
		skv_cluster_tick(f->cluster);
	}
}

/* ---- one request ----------------------------------------------------------------------------- */

static int lookup(struct full *f, uint32_t n, uint32_t *matched)
{
	struct skv_lookup_req req = { .tenant = RUN_TENANT, .instance = f->instance,
				      .mode = SKV_LOOKUP_PREFIX, .keys = f->keys, .n_keys = n };
	struct skv_lookup_res res = { 0 };
	struct answer a = { 0 };
	struct skv_done done = { on_done, &a };
	int rc =
		wait_for(f, &a, skv_core_lookup(f->core, &req, &res, &f->arena, &f->r->err, &done));

	assert(res.matched <= n);
	*matched = res.matched;
	return rc;
}

static int finish(struct full *f, const char *session, uint32_t *committed)
{
	struct skv_finish_req req = { .tenant = RUN_TENANT, .session = session,
				      .mask_kind = SKV_MASK_ALL, .quiesced = true };
	struct skv_finish_res res = { 0 };
	struct answer a = { 0 };
	struct skv_done done = { on_done, &a };
	int rc =
		wait_for(f, &a, skv_core_finish(f->core, &req, &res, &f->arena, &f->r->err, &done));

	*committed = res.committed;
	return rc;
}

/* Whether a client continues with its next request after this error. */
static bool goes_on_after(int status)
{
	return status == SKV_E_TOO_LARGE || status == SKV_E_NO_SPACE || status == SKV_E_QUOTA;
}

/* Keys first..n-1. */
static int write_rest(struct full *f, uint32_t first, uint32_t n, struct request_hits *h)
{
	struct skv_start_req req = { .tenant = RUN_TENANT, .instance = f->instance,
				     .request_id = "", .keys = f->keys + first,
				     .n_keys = n - first, .has_parent = first > 0,
				     .selective = true };
	struct skv_start_res res = { 0 };
	struct answer a = { 0 };
	struct skv_done done = { on_done, &a };
	int rc;

	assert(first < n);
	if (first)
		req.parent = f->keys[first - 1];
	rc = wait_for(f, &a, skv_core_start(f->core, &req, &res, &f->arena, &f->r->err, &done));
	for (uint32_t i = 0; rc == SKV_OK && i < res.n_keys; i++)
		h->behind += res.outcome[i] == SKV_START_EXISTS;
	if (goes_on_after(rc)) {
		skv_error_clear(&f->r->err);
		return SKV_OK;
	}
	assert(res.n_write <= res.n_keys && h->behind + res.n_write <= n - first);
	return rc == SKV_OK && res.n_write ? finish(f, res.session, &h->written) : rc;
}

static int request(struct full *f, uint32_t q)
{
	const struct refs *t = f->r->refs;
	uint32_t n = t->first[q + 1] - t->first[q];
	struct request_hits h = { 0 };
	int rc = SKV_OK;

	go_to(f, t->at_ms[q]);
	skv_arena_reset(&f->arena);
	for (uint32_t i = 0; i < n; i++)
		f->keys[i] = (struct skv_key){ 0, t->id[t->ref[t->first[q] + i]] };
	if (n)
		rc = lookup(f, n, &h.prefix);
	if (rc == SKV_OK && h.prefix < n)
		rc = write_rest(f, h.prefix, n, &h);
	if (rc != SKV_OK)
		return skv_fail(&f->r->err, rc, NULL, "%s: line %u, %llu blocks: %.150s", t->name,
				q + 1, (unsigned long long)f->r->blocks,
				f->r->err.message[0] ? f->r->err.message : skv_status_text(rc));
	run_note(f->r, q, h);
	return SKV_OK;
}

/* ---- the core -------------------------------------------------------------------------------- */

static int make_objects(struct full *f)
{
	struct run *r = f->r;
	const uint64_t need = 2 * r->blocks * r->block_bytes +
			      4 * (r->storage_unit ? r->storage_unit : UNIT);
	const char *const storages[] = { "default" };
	struct skv_storage_spec s = { .name = "default", .type = "null", .root = "",
				      .unit = r->storage_unit, .file_size = r->storage_file,
				      .enabled = true,
				      .capacity = r->storage_bytes ? r->storage_bytes : need };
	struct skv_group_spec g = { .name = "default", .storages = storages, .n_storages = 1,
				    .policy = r->policy,
				    .ttl_ms = strcmp(r->policy, "ttl") == 0 ? r->ttl_ms : 0,
				    .capacity = r->storage_bytes ? 0 : r->blocks * r->block_bytes };
	struct skv_spec spec = { "kv", r->block_bytes };
	struct skv_instance_spec i = { .tenant = RUN_TENANT, .id = f->instance, .group = "default",
				       .specs = &spec, .n_specs = 1,
				       .extra = "" };
	int rc = skv_cluster_storage_put(f->cluster, &s, SKV_PUT_ANY, NULL, &r->err);

	if (rc == SKV_OK)
		rc = skv_cluster_group_put(f->cluster, &g, SKV_PUT_ANY, NULL, NULL, &r->err);
	return rc == SKV_OK ? skv_cluster_instance_put(f->cluster, &i, SKV_PUT_ANY, NULL, &r->err)
			    : rc;
}

static int keep_lease(void *self, uint32_t partition, uint64_t fence, uint32_t ttl_ms,
		      struct skv_error *err)
{
	(void)self, (void)partition, (void)fence, (void)ttl_ms, (void)err;
	return SKV_OK;
}

static int drop_batch(void *self, uint32_t partition, uint64_t fence, uint64_t seq,
		      const void *bytes, size_t n, unsigned flags, struct skv_error *err)
{
	(void)self, (void)partition, (void)fence, (void)seq, (void)bytes, (void)n, (void)flags;
	(void)err;
	return SKV_OK;
}

static int drop_slice(void *self, uint32_t partition, uint64_t fence, uint64_t id, uint32_t number,
		      const void *bytes, size_t n, struct skv_error *err)
{
	(void)self, (void)partition, (void)fence, (void)id, (void)number, (void)bytes, (void)n;
	(void)err;
	return SKV_OK;
}

static int drop_checkpoint(void *self, uint32_t partition, uint64_t fence, uint64_t id,
			   uint32_t slices, uint64_t upto_seq, struct skv_error *err)
{
	(void)self, (void)partition, (void)fence, (void)id, (void)slices, (void)upto_seq;
	(void)err;
	return SKV_OK;
}

static int open_store(struct full *f)
{
	static const struct skv_store_options options = { .path = SKV_STORE_IN_MEMORY };

	f->store_ops = skv_store_sqlite;
	f->store_ops.renew = keep_lease;
	f->store_ops.append = drop_batch;
	f->store_ops.checkpoint_slice = drop_slice;
	f->store_ops.checkpoint_commit = drop_checkpoint;
	return skv_store_open(&f->store_ops, &options, &f->store, &f->r->err);
}

static int open_core(struct full *f)
{
	struct skv_core_options o;
	int rc = open_store(f);

	if (rc != SKV_OK)
		return rc;
	skv_core_options_init(&o);
	o.store = f->store;
	o.clock = &f->clock.clock;
	o.owner_lease_ms = OWNER_LEASE_MS;
	o.open_percent = 100;
	o.free_percent = 0;
	o.manual = true;
	rc = skv_cluster_create(&o, NULL, &f->cluster, &f->r->err);
	f->core = rc == SKV_OK ? skv_cluster_core(f->cluster, 0) : NULL;
	if (rc == SKV_OK && skv_cluster_wait_ready(f->cluster, PATIENCE_MS) != SKV_OK)
		rc = skv_fail(&f->r->err, SKV_E_INTERNAL, NULL, "the core did not get ready");
	if (rc == SKV_OK)
		rc = make_objects(f);
	if (rc == SKV_OK)
		skv_cluster_tick(f->cluster);
	return rc;
}

static struct skv_key *placement_for_keys(const struct refs *t)
{
	uint32_t longest = 1;

	for (uint32_t q = 0; q < t->n_requests; q++)
		if (t->first[q + 1] - t->first[q] > longest)
			longest = t->first[q + 1] - t->first[q];
	return skv_calloc(longest, sizeof(struct skv_key));
}

int run_full(struct run *r)
{
	struct full f = { .r = r, .keys = placement_for_keys(r->refs) };
	struct skv_core_counters counters;
	int rc = f.keys ? SKV_OK
			: skv_fail(&r->err, SKV_E_NOMEM, NULL, "%s: out of memory", r->refs->name);

	run_instance(r, f.instance);
	skv_fake_clock_init(&f.clock, BEGIN_MS);
	skv_arena_init(&f.arena);
	if (rc == SKV_OK)
		rc = open_core(&f);
	for (uint32_t q = 0; rc == SKV_OK && q < r->refs->n_requests; q++) {
		rc = request(&f, q);
		if (rc == SKV_OK && !run_goes_on(r))
			rc = r->err.status;
	}
	if (f.cluster) {
		skv_cluster_counters_get(f.cluster, &counters);
		r->counts.evicted = counters.evicted_blocks;
		r->counts.examined = counters.evict_examined;
		skv_cluster_destroy(f.cluster);
	}
	if (f.store)
		skv_store_close(f.store);
	skv_arena_destroy(&f.arena);
	skv_free(f.keys);
	return rc;
}
