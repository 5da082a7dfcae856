/* core_env.c - see core_env.h. One thread; the only state is in struct env, and a counter of
 * names. */
#include "core_env.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lock/one.h>

/* The cluster's, or that of a core which has none. */
#define ALL(e, name, ...)                                             \
	((e)->cluster ? skv_cluster_##name((e)->cluster, __VA_ARGS__) \
		      : one_##name((e)->core, __VA_ARGS__))

static void tick(struct env *e)
{
	if (e->cluster)
		skv_cluster_tick(e->cluster);
	else
		one_tick(e->core);
}

void env_quiet(void)
{
	int fd = getenv("SKV_TEST_LOG") ? STDERR_FILENO : open("/dev/null", O_WRONLY | O_CLOEXEC);

	skv_log_setup(fd, false, SKV_LOG_INFO);
}

void env_init(struct env *e)
{
	static char names[64][48];
	static unsigned n;
	char *name = names[n % 64];

	memset(e, 0, sizeof *e);
	snprintf(name, sizeof names[0], "core-test-%d-%u", (int)getpid(), n++);
	skv_fake_clock_init(&e->clock, 1000000);
	skv_arena_init(&e->arena);
	e->ops = &skv_store_memory;
	e->store_options = (struct skv_store_options){ .path = name };
	skv_core_options_init(&e->o);
	e->o.clock = &e->clock.clock;
	e->o.manual = true;
	e->o.owner_lease_ms = 1; /* a crashed owner of this process is over at once */
	e->o.grace_ms = 1000;
	e->o.lease_default_ms = 2000;
	e->o.lease_max_ms = 10000;
	e->o.session_default_ms = 5000;
	e->o.session_max_ms = 20000;
	e->o.leased_percent = 100;
	e->o.open_percent = 100;
	e->o.free_percent = 0;
}

void env_arm(struct env *e)
{
	struct skv_fault rule;

	if (!e->faulty || !e->rule || e->seen >= e->rule->at)
		return;
	rule = *e->rule;
	rule.at -= e->seen;
	skv_fault_store_set(e->store, &rule);
}

void env_create(struct env *e)
{
	assert_int_equal(skv_cluster_create(&e->o, &e->all, &e->cluster, &e->err), SKV_OK);
	e->core = skv_cluster_core(e->cluster, 0);
}

void env_open(struct env *e)
{
	struct skv_store *below;

	assert_int_equal(skv_store_open(e->ops, &e->store_options, &below, &e->err), SKV_OK);
	e->store = below;
	if (e->faulty)
		assert_int_equal(skv_fault_store_open(below, &e->store, &e->err), SKV_OK);
	env_arm(e);
	e->o.store = e->store;
	env_create(e);
	assert_int_equal(skv_cluster_wait_ready(e->cluster, 10000), SKV_OK);
	skv_cluster_tick(e->cluster); /* storages are opened */
}

void env_crash(struct env *e)
{
	skv_cluster_destroy(e->cluster);
	if (e->faulty)
		e->seen += skv_fault_store_seen(e->store);
	skv_store_close(e->store);
	e->cluster = NULL;
	e->core = NULL;
	e->store = NULL;
}

void env_shutdown(struct env *e)
{
	skv_cluster_shutdown(e->cluster);
	env_crash(e);
}

void env_destroy(struct env *e)
{
	if (e->cluster)
		env_crash(e);
	skv_arena_destroy(&e->arena);
}

void env_document(struct env *e, const char *key, const void *bytes, size_t n)
{
	struct skv_buf old = { 0 };
	uint64_t version = SKV_VERSION_NONE;
	int rc = skv_store_get(e->store, key, &old, &version, &e->err);

	assert_true(rc == SKV_OK || rc == SKV_E_NOT_FOUND);
	assert_int_equal(skv_store_put(e->store, NULL, key, version, bytes, n, NULL, &e->err),
			 SKV_OK);
	skv_buf_destroy(&old);
}

void env_advance(struct env *e, uint64_t ms)
{
	skv_fake_clock_advance(&e->clock, ms);
	tick(e);
}

int env_storage(struct env *e, const char *name, uint64_t capacity, uint64_t unit)
{
	struct skv_storage_spec s = { .name = name, .type = "null", .root = "",
				      .capacity = capacity, .unit = unit,
				      .file_size = unit * 16, .enabled = true };

	return ALL(e, storage_put, &s, SKV_PUT_ANY, NULL, &e->err);
}

int env_group(struct env *e, const char *name, uint64_t capacity, const char *storage)
{
	struct skv_group_spec g = { .name = name, .capacity = capacity, .storages = &storage,
				    .n_storages = 1 };

	return ALL(e, group_put, &g, SKV_PUT_ANY, NULL, NULL, &e->err);
}

int env_instance(struct env *e, const char *id, const char *group, const struct skv_spec *specs,
		 uint32_t n)
{
	struct skv_instance_spec i = { .tenant = e->tenant ? e->tenant : "t", .id = id,
				       .group = group, .specs = specs,
				       .n_specs = n, .extra = "" };

	return ALL(e, instance_put, &i, SKV_PUT_ANY, NULL, &e->err);
}

void env_make(struct env *e, uint64_t capacity, uint64_t unit, uint64_t block)
{
	struct skv_spec spec = { "kv", block };

	assert_int_equal(env_storage(e, "s", capacity, unit), SKV_OK);
	assert_int_equal(env_group(e, "g", 0, "s"), SKV_OK);
	assert_int_equal(env_instance(e, "i", "g", &spec, 1), SKV_OK);
}

void env_make_pages(struct env *e, uint64_t pages)
{
	struct skv_storage_spec s = { .name = "s", .type = "external", .root = "",
				      .capacity = pages, .enabled = true };
	struct skv_spec spec = { "page", 1 };

	assert_int_equal(ALL(e, storage_put, &s, SKV_PUT_ANY, NULL, &e->err), SKV_OK);
	assert_int_equal(env_group(e, "g", 0, "s"), SKV_OK);
	assert_int_equal(env_instance(e, "i", "g", &spec, 1), SKV_OK);
}

struct answer {
	bool over;
	int status;
};

static void on_done(void *ctx, int status)
{
	struct answer *a = ctx;

	a->over = true;
	a->status = status;
}

/* Ticks until the answer is there; the clock goes on a little, as it would. */
static int settle(struct env *e, struct answer *a, int rc)
{
	if (rc != SKV_PENDING)
		return rc;
	for (int i = 0; i < 2000 && !a->over; i++) {
		tick(e);
		if (!a->over && i > 2)
			skv_fake_clock_advance(&e->clock, 20);
	}
	assert_true(a->over);
	return a->status;
}

static struct skv_core *found(struct env *e, enum skv_target_kind kind, const char *tenant,
			      const char *name)
{
	const struct skv_target t = { kind, tenant, name, 0 };
	struct skv_door door = { .core = e->core };

	if (e->cluster)
		skv_find(e->cluster, &t, &door);
	return door.core;
}

struct skv_core *env_at(struct env *e, const char *tenant, const char *instance)
{
	return found(e, SKV_TARGET_INSTANCE, tenant, instance);
}

static void begin(struct env *e)
{
	skv_arena_reset(&e->arena);
	skv_error_clear(&e->err);
}

int env_start(struct env *e, const struct env_start *s, struct skv_start_res *res)
{
	struct answer a = { 0 };
	struct skv_done done = { on_done, &a };
	struct skv_start_req req = {
		.tenant = e->tenant ? e->tenant : "t", .instance = s->instance ? s->instance : "i",
		.request_id = s->request_id ? s->request_id : "", .keys = s->keys, .n_keys = s->n,
		.specs = s->specs, .n_specs = s->n_specs, .key_specs = s->key_specs,
		.deadline_ms = s->deadline_ms,
		.has_parent = s->parent != NULL, .names = s->names, .offsets = s->offsets,
		.grace_ms = s->grace_ms, .fit = s->fit,
		.avoid = s->avoid, .n_avoid = s->n_avoid,
		.anonymous = s->anonymous, .want_existing = s->want_existing, .whole = s->whole,
		.relaxed = s->relaxed,
		.independent = s->independent,
		.selective = s->selective,
	};

	if (s->parent)
		req.parent = *s->parent;
	begin(e);
	memset(res, 0, sizeof *res);
	return settle(e, &a,
		      skv_core_start(env_at(e, req.tenant, req.instance), &req, res, &e->arena,
				     &e->err, &done));
}

int env_finish_req(struct env *e, const struct skv_finish_req *req, struct skv_finish_res *res)
{
	struct answer a = { 0 };
	struct skv_done done = { on_done, &a };

	begin(e);
	memset(res, 0, sizeof *res);
	return settle(e, &a,
		      skv_core_finish(found(e, SKV_TARGET_SESSION, NULL, req->session), req, res,
				      &e->arena, &e->err, &done));
}

int env_finish(struct env *e, const char *session, const uint64_t *sums, uint32_t n_sums,
	       struct skv_finish_res *res)
{
	struct skv_finish_req req = { .tenant = e->tenant ? e->tenant : "t", .session = session,
				      .mask_kind = SKV_MASK_ALL, .checksums = sums,
				      .n_checksums = n_sums };

	return env_finish_req(e, &req, res);
}

void env_put_summed(struct env *e, const char *instance, uint32_t n, bool independent)
{
	struct skv_key keys[64];
	uint64_t sums[64];
	struct skv_start_res s;
	struct skv_finish_res f;
	char session[33];

	assert_true(n <= 64);
	env_keys(keys, n, 1, 0);
	for (uint32_t i = 0; i < n; i++)
		sums[i] = 1000 + i;
	assert_int_equal(env_start(e, &(struct env_start){ .instance = instance, .keys = keys,
							   .n = n, .independent = independent },
				   &s),
			 SKV_OK);
	assert_int_equal(s.n_write, n);
	memcpy(session, s.session, sizeof session);
	assert_int_equal(env_finish(e, session, sums, n, &f), SKV_OK);
	assert_int_equal(f.committed, n);
}

int env_finish_mask(struct env *e, const char *session, const bool *mask, uint32_t n, bool quiesced,
		    struct skv_finish_res *res)
{
	struct skv_finish_req req = { .tenant = "t", .session = session, .mask_kind = SKV_MASK_BITS,
				      .mask = mask,
				      .mask_count = n, .quiesced = quiesced };

	return env_finish_req(e, &req, res);
}

int env_abort(struct env *e, const char *session, bool quiesced)
{
	struct answer a = { 0 };
	struct skv_done done = { on_done, &a };
	struct skv_abort_req req = { .tenant = "t", .session = session, .quiesced = quiesced };
	struct skv_finish_res res;

	begin(e);
	return settle(e, &a,
		      skv_core_abort(found(e, SKV_TARGET_SESSION, NULL, req.session), &req, &res,
				     &e->arena, &e->err, &done));
}

int env_partial(struct env *e, const struct skv_partial_req *req, struct skv_partial_res *res)
{
	struct answer a = { 0 };
	struct skv_done done = { on_done, &a };

	begin(e);
	memset(res, 0, sizeof *res);
	return settle(e, &a,
		      skv_core_finish_partial(env_at(e, req->tenant, req->instance), req, res,
					      &e->arena, &e->err, &done));
}

int env_lookup_req(struct env *e, const struct skv_lookup_req *req, struct skv_lookup_res *res)
{
	struct answer a = { 0 };
	struct skv_done done = { on_done, &a };

	begin(e);
	memset(res, 0, sizeof *res);
	return settle(e, &a,
		      skv_core_lookup(env_at(e, req->tenant, req->instance), req, res, &e->arena,
				      &e->err, &done));
}

int env_lookup(struct env *e, const struct skv_key *keys, uint32_t n, enum skv_lookup_mode mode,
	       uint32_t lease_ms, struct skv_lookup_res *res)
{
	struct skv_lookup_req req = { .tenant = "t", .instance = "i", .mode = mode, .keys = keys,
				      .n_keys = n,
				      .lease_ms = lease_ms };

	return env_lookup_req(e, &req, res);
}

int env_delete_req(struct env *e, const struct skv_delete_req *req, struct skv_delete_res *res)
{
	struct answer a = { 0 };
	struct skv_done done = { on_done, &a };

	begin(e);
	*res = (struct skv_delete_res){ 0 };
	return settle(e, &a,
		      skv_core_delete(env_at(e, req->tenant, req->instance), req, res, &e->arena,
				      &e->err, &done));
}

int env_delete(struct env *e, const struct skv_key *keys, uint32_t n, uint32_t *deleted)
{
	struct skv_delete_req req = { .tenant = "t", .instance = "i", .keys = keys, .n_keys = n };
	struct skv_delete_res res;
	int rc = env_delete_req(e, &req, &res);

	*deleted = res.deleted;
	return rc;
}

int env_delete_told(struct env *e, const struct skv_key *keys, uint32_t n,
		       struct skv_delete_res *res)
{
	struct skv_delete_req req = { .tenant = "t", .instance = "i", .keys = keys, .n_keys = n };

	return env_delete_req(e, &req, res);
}

int env_move_take_req(struct env *e, const struct skv_move_take_req *req,
		      struct skv_move_take_res *res)
{
	struct answer a = { 0 };
	struct skv_done done = { on_done, &a };

	begin(e);
	*res = (struct skv_move_take_res){ 0 };
	return settle(e, &a, ALL(e, move_take, req, res, &e->arena, &e->err, &done));
}

int env_move_take(struct env *e, uint32_t max, uint32_t deadline_ms, struct skv_move_take_res *res)
{
	return env_move_take_req(
		e, &(struct skv_move_take_req){ .max = max, .deadline_ms = deadline_ms }, res);
}

static int finish_move(struct env *e, const struct skv_move_finish_req *req,
		       struct skv_move_finish_res *res)
{
	struct answer a = { 0 };
	struct skv_done done = { on_done, &a };

	begin(e);
	*res = (struct skv_move_finish_res){ 0 };
	return settle(e, &a,
		      skv_core_move_finish(found(e, SKV_TARGET_MOVE, NULL, req->move), req, res,
					   &e->arena, &e->err, &done));
}

int env_move_finish(struct env *e, const char *move, const bool *moved, uint32_t n, bool quiesced,
		    struct skv_move_finish_res *res)
{
	return finish_move(e, &(struct skv_move_finish_req){ .move = move, .moved = moved,
							     .n_moved = n, .quiesced = quiesced },
			   res);
}

int env_check_finish(struct env *e, const char *move, const bool *moved, const bool *damaged,
		     uint32_t n, struct skv_move_finish_res *res)
{
	return finish_move(e, &(struct skv_move_finish_req){ .move = move, .moved = moved,
							     .damaged = damaged, .n_moved = n,
							     .quiesced = true }, res);
}

int env_report(struct env *e, const struct skv_report_req *req, struct skv_report_res *res)
{
	struct answer a = { 0 };
	struct skv_done done = { on_done, &a };

	begin(e);
	return settle(e, &a,
		      skv_core_report(env_at(e, req->tenant, req->instance), req, res, &e->arena,
				      &e->err, &done));
}

int env_trim(struct env *e, uint64_t from_ms, uint64_t to_ms, uint64_t *deleted)
{
	struct answer a = { 0 };
	struct skv_done done = { on_done, &a };
	struct skv_trim_req req = { .tenant = "t", .instance = "i", .from_ms = from_ms,
				    .to_ms = to_ms };
	struct skv_trim_res res = { 0 };
	int rc;

	begin(e);
	rc = settle(e, &a,
		    skv_core_trim(env_at(e, req.tenant, req.instance), &req, &res, &e->arena,
				  &e->err, &done));
	*deleted = res.deleted;
	return rc;
}

int env_clear(struct env *e, const char *instance, uint64_t *deleted)
{
	struct answer a = { 0 };
	struct skv_done done = { on_done, &a };
	struct skv_clear_req req = { .tenant = "t", .instance = instance ? instance : "i" };
	struct skv_clear_res res = { 0 };
	int rc;

	begin(e);
	rc = settle(e, &a,
		    skv_core_clear(env_at(e, req.tenant, req.instance), &req, &res, &e->arena,
				   &e->err, &done));
	*deleted = res.deleted;
	return rc;
}

int env_pin(struct env *e, const struct skv_key *keys, uint32_t n, enum skv_pin_kind kind,
	    uint64_t ttl_ms, struct skv_pin_res *res)
{
	struct answer a = { 0 };
	struct skv_done done = { on_done, &a };
	struct skv_pin_req req = { .tenant = e->tenant ? e->tenant : "t", .instance = "i",
				   .keys = keys, .n_keys = n,
				   .hard = kind == SKV_PIN_HARD, .ttl_ms = ttl_ms };

	begin(e);
	memset(res, 0, sizeof *res);
	return settle(e, &a,
		      skv_core_pin(env_at(e, req.tenant, req.instance), &req, res, &e->arena,
				   &e->err, &done));
}

int env_unpin(struct env *e, const struct skv_key *keys, uint32_t n, uint64_t *unpinned)
{
	struct answer a = { 0 };
	struct skv_done done = { on_done, &a };
	struct skv_unpin_req req = { .tenant = "t", .instance = "i", .keys = keys, .n_keys = n,
				     .all = n == 0 };
	struct skv_unpin_res res = { 0 };
	int rc;

	begin(e);
	rc = settle(e, &a,
		    skv_core_unpin(env_at(e, req.tenant, req.instance), &req, &res, &e->arena,
				   &e->err, &done));
	*unpinned = res.unpinned;
	return rc;
}

uint32_t env_match(struct env *e, const struct skv_key *keys, uint32_t n)
{
	const char *id = "i";
	struct skv_match_req req = { .tenant = "t", .instances = &id, .n_instances = 1,
				     .keys = keys, .n_keys = n };
	struct skv_match_res res;

	begin(e);
	assert_int_equal(ALL(e, match, &req, &res, &e->arena, &e->err), SKV_OK);
	return res.matched[0];
}

uint32_t env_put(struct env *e, const struct skv_key *keys, uint32_t n)
{
	struct skv_start_res s;
	struct skv_finish_res f;
	char session[SKV_SESSION_ID_HEX + 1];
	uint32_t n_write;
	int rc = env_start(e, &(struct env_start){ .keys = keys, .n = n }, &s);

	if (rc != SKV_OK)
		print_error("start: %s %s\n", skv_status_name(rc), e->err.message);
	assert_int_equal(rc, SKV_OK);
	n_write = s.n_write;
	if (n_write == 0)
		return 0;
	memcpy(session, s.session, sizeof session);
	assert_int_equal(env_finish(e, session, NULL, 0, &f), SKV_OK);
	assert_int_equal(f.committed, n_write);
	return n_write;
}

void env_stats(struct env *e, struct skv_stats *out)
{
	const struct skv_page page = SKV_PAGE;

	begin(e);
	assert_int_equal(ALL(e, stats, &page, &e->arena, out, &e->err), SKV_OK);
}

void env_keys(struct skv_key *keys, uint32_t n, uint64_t hi, uint64_t first)
{
	for (uint32_t i = 0; i < n; i++)
		keys[i] = (struct skv_key){ hi, first + i };
}

void env_check(struct env *e)
{
	struct skv_error err = { 0 };
	int rc = ALL(e, check, &err);

	if (rc != SKV_OK)
		print_error("check: %s\n", err.message);
	assert_int_equal(rc, SKV_OK);
}

void env_put_pairs(struct env *e, const char *instance, uint32_t first, uint32_t n, uint64_t sum)
{
	struct skv_key keys[ENV_PAIRS];
	uint64_t sums[2 * ENV_PAIRS];
	struct skv_start_res s;
	struct skv_finish_res f;
	char session[33];

	assert_true(n <= ENV_PAIRS);
	env_keys(keys, n, 1, first);
	assert_int_equal(env_start(e, &(struct env_start){ .instance = instance, .keys = keys,
							   .n = n }, &s), SKV_OK);
	assert_int_equal(s.n_write, n);
	memcpy(session, s.session, sizeof session);
	for (uint32_t i = 0; i < 2 * n; i++)
		sums[i] = sum + i % 2;
	assert_int_equal(env_finish(e, session, sums, sum ? 2 * n : 0, &f), SKV_OK);
	assert_int_equal(f.committed, n);
}
