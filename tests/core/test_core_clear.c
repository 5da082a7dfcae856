/*
 * test_core_clear.c - all blocks of an instance at once: what a clear hides and gives
 * back, with leases, sessions, checkpoints, restarts and failures around it; random
 * operations against a model.
 */
#include "core_env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 4096u
#define SLOTS 254u /* of a file: of 16 units of 16 slots, less the header and the trailer */

static int put_instance(struct env *e, const char *id, const char *group)
{
	static const struct skv_spec spec = { "kv", BLOCK };
	const struct skv_instance_spec i = { .tenant = "t", .id = id, .group = group,
					     .specs = &spec, .n_specs = 1,
					     .extra = "", .named = true };

	return skv_cluster_instance_put(e->cluster, &i, SKV_PUT_ANY, NULL, &e->err);
}

static void make(struct env *e, uint64_t files)
{
	env_open(e);
	assert_int_equal(env_storage(e, "s", files * 256 * BLOCK, 16 * BLOCK), SKV_OK);
	assert_int_equal(env_group(e, "g", 0, "s"), SKV_OK);
	assert_int_equal(put_instance(e, "i", "g"), SKV_OK);
}

static int setup(void **state)
{
	static struct env e;

	env_init(&e);
	e.faulty = true;
	make(&e, 1);
	*state = &e;
	return 0;
}

static int teardown(void **state)
{
	struct env *e = *state;

	env_check(e);
	env_destroy(e);
	return 0;
}

enum restart { NONE, CRASH, CLEAN, RESTARTS };

static void reopen(struct env *e, enum restart how)
{
	if (how == NONE)
		return;
	if (how == CLEAN)
		env_shutdown(e);
	else
		env_crash(e);
	env_open(e);
	env_check(e);
}

/* Counts the slots of the storage: those of blocks, and those that wait. */
static void count(struct env *e, uint64_t *used, uint64_t *held)
{
	struct skv_stats st;

	env_stats(e, &st);
	*used = st.storages[0].used_bytes / BLOCK;
	*held = st.storages[0].quarantined_bytes / BLOCK;
}

static void expect_slots(struct env *e, uint64_t used, uint64_t held)
{
	uint64_t u, h;

	count(e, &u, &h);
	assert_int_equal(u, used);
	assert_int_equal(h, held);
}

static uint32_t found(struct env *e, const struct skv_key *k, uint32_t n)
{
	struct skv_lookup_res r;

	assert_int_equal(env_lookup(e, k, n, SKV_LOOKUP_BATCH, 0, &r), SKV_OK);
	return r.matched;
}

static void lease(struct env *e, const struct skv_key *k, uint32_t n, uint32_t ms)
{
	struct skv_lookup_res r;

	assert_int_equal(env_lookup(e, k, n, SKV_LOOKUP_BATCH, ms, &r), SKV_OK);
	assert_int_equal(r.matched, n);
	assert_int_equal(r.lease_ms, ms);
}

static uint64_t clear(struct env *e)
{
	uint64_t n;

	assert_int_equal(env_clear(e, NULL, &n), SKV_OK);
	return n;
}

static void open_session(struct env *e, const struct skv_key *k, uint32_t n, const char *id,
			 char session[33])
{
	struct skv_start_res r;

	assert_int_equal(env_start(e, &(struct env_start){ .request_id = id, .keys = k, .n = n },
				   &r), SKV_OK);
	assert_int_equal(r.n_write, n);
	memcpy(session, r.session, 33);
}

/* Calls that do not wait. */
struct call {
	struct skv_arena arena;
	struct skv_error err;
	bool over;
	int status;
	union {
		struct skv_clear_res clear;
		struct skv_start_res start;
		struct skv_finish_res finish;
	} res;
	struct skv_clear_req clear;
	struct skv_start_req start;
	struct skv_finish_req finish;
};

static void on_done(void *ctx, int status)
{
	struct call *c = ctx;

	c->over = true;
	c->status = status;
}

static struct skv_done begin(struct call *c)
{
	memset(c, 0, sizeof *c);
	skv_arena_init(&c->arena);
	return (struct skv_done){ on_done, c };
}

static void began(struct call *c, int rc)
{
	if (rc != SKV_PENDING)
		on_done(c, rc);
}

static void begin_clear(struct env *e, struct call *c)
{
	struct skv_done done = begin(c);

	c->clear = (struct skv_clear_req){ .tenant = "t", .instance = "i" };
	began(c, skv_core_clear(e->core, &c->clear, &c->res.clear, &c->arena, &c->err, &done));
}

static void begin_start(struct env *e, struct call *c, const struct skv_key *k, uint32_t n)
{
	struct skv_done done = begin(c);

	c->start = (struct skv_start_req){ .tenant = "t", .instance = "i", .request_id = "",
					   .keys = k, .n_keys = n };
	began(c, skv_core_start(e->core, &c->start, &c->res.start, &c->arena, &c->err, &done));
}

static void begin_finish(struct env *e, struct call *c, const char *session)
{
	struct skv_done done = begin(c);

	c->finish = (struct skv_finish_req){ .tenant = "t", .session = session,
					     .mask_kind = SKV_MASK_ALL };
	began(c, skv_core_finish(e->core, &c->finish, &c->res.finish, &c->arena, &c->err, &done));
}

static int end_call(struct call *c)
{
	int status = c->status;

	assert_true(c->over);
	skv_arena_destroy(&c->arena);
	return status;
}

/* ---- scenes ---------------------------------------------------------------------------------- */

static void test_clear(void **state)
{
	struct env *e = *state;
	struct skv_key k[SLOTS];
	struct skv_stats st;

	env_keys(k, SLOTS, 1, 1);
	for (int how = NONE; how < RESTARTS; how++) {
		assert_int_equal(clear(e), 0); /* nothing there */
		assert_int_equal(env_put(e, k, SLOTS), SLOTS);
		assert_int_equal(clear(e), SLOTS);
		assert_int_equal(found(e, k, SLOTS), 0);
		env_stats(e, &st);
		assert_int_equal(st.blocks, 0);
		assert_int_equal(st.instances[0].blocks + st.instances[0].used_bytes +
					 st.groups[0].blocks,
				 0);
		reopen(e, how);
		assert_int_equal(found(e, k, SLOTS), 0);
		env_advance(e, 20);
		expect_slots(e, 0, 0);
		assert_int_equal(env_put(e, k, SLOTS), SLOTS);
		reopen(e, how);
		assert_int_equal(found(e, k, SLOTS), SLOTS);
		env_advance(e, 60000); /* no lease runs after any restart */
		assert_int_equal(clear(e), SLOTS);
		env_advance(e, 20);
	}
	{
		uint64_t n;

		assert_int_equal(env_clear(e, "none", &n), SKV_E_NOT_FOUND);
	}
}

/* A start right behind the clear finds the slots, though nobody has swept them yet; of an instance
 * of another size of blocks, too. */
static void test_room_at_once(void **state)
{
	static struct skv_key k[64 * SLOTS];
	const struct skv_spec spec = { "kv", 3 * BLOCK };
	struct skv_core_counters n, before;
	struct skv_start_res r;
	struct env e;

	(void)state;
	env_init(&e);
	make(&e, 64);
	env_keys(k, 64 * SLOTS, 1, 0);
	assert_int_equal(env_put(&e, k, 64 * SLOTS), 64 * SLOTS);
	assert_int_equal(clear(&e), 64 * SLOTS);
	skv_cluster_counters_get(e.cluster, &before);
	assert_int_equal(env_put(&e, k, 64 * SLOTS), 64 * SLOTS);
	skv_cluster_counters_get(e.cluster, &n);
	assert_int_equal(n.start_waits, before.start_waits);
	assert_int_equal(env_instance(&e, "wide", "g", &spec, 1), SKV_OK);
	assert_int_equal(clear(&e), 64 * SLOTS);
	assert_int_equal(env_start(&e,
				   &(struct env_start){ .instance = "wide", .keys = k, .n = 4096 },
				   &r), SKV_OK);
	assert_int_equal(r.n_write, 4096);
	skv_cluster_counters_get(e.cluster, &n);
	assert_int_equal(n.evicted_blocks, 0);
	env_check(&e);
	env_destroy(&e);
}

/* While the record is on its way a start waits for its slots; it neither fails nor evicts. */
static void test_start_behind_clear(void **state)
{
	struct env *e = *state;
	struct skv_key k[SLOTS], j[10];
	struct skv_core_counters n;
	struct call c, s;

	env_keys(k, SLOTS, 1, 1);
	env_keys(j, 10, 2, 1);
	assert_int_equal(put_instance(e, "j", "g"), SKV_OK);
	assert_int_equal(env_put(e, k, SLOTS), SLOTS);
	begin_clear(e, &c);
	assert_false(c.over);
	begin_start(e, &s, k, SLOTS);
	assert_false(s.over);
	for (int i = 0; i < 4; i++)
		skv_cluster_tick(e->cluster);
	assert_int_equal(end_call(&c), SKV_OK);
	assert_int_equal(s.res.start.n_write, SLOTS);
	assert_int_equal(end_call(&s), SKV_OK);
	skv_cluster_counters_get(e->cluster, &n);
	assert_int_equal(n.evicted_blocks, 0);
}

/* Leased slots are held until their lease ends, and not longer; after a restart
 * until the horizon at most. */
static void test_leases(void **state)
{
	struct env *e = *state;
	struct skv_key k[100], other[SLOTS];

	env_keys(k, 100, 1, 1);
	env_keys(other, SLOTS, 2, 1);
	for (int how = NONE; how < RESTARTS; how++) {
		assert_int_equal(env_put(e, k, 100), 100);
		env_advance(e, 60000);
		lease(e, k, 30, 5000);
		lease(e, k + 30, 10, 8000);
		assert_int_equal(clear(e), 100);
		env_advance(e, 20); /* swept */
		expect_slots(e, 0, 40);
		reopen(e, how);
		/* the record does not name them: all, till the last lease ends */
		expect_slots(e, 0, how == CRASH ? 100 : 40);
		env_advance(e, 4900);
		expect_slots(e, 0, how == CRASH ? 100 : 40);
		env_advance(e, 88); /* marks round leases up to 8 ms */
		expect_slots(e, 0, how == CRASH ? 100 : 10);
		env_advance(e, 2900);
		expect_slots(e, 0, how == CRASH ? 100 : 10);
		env_advance(e, 100);
		expect_slots(e, 0, 0);
		assert_int_equal(env_put(e, other, SLOTS), SLOTS);
		assert_int_equal(clear(e), SLOTS);
		env_advance(e, 20);
		expect_slots(e, 0, 0);
	}
	/* Where nothing was leased a restart holds nothing. */
	env_advance(e, 60000);
	assert_int_equal(env_put(e, k, 100), 100);
	assert_int_equal(clear(e), 100);
	reopen(e, CRASH);
	expect_slots(e, 0, 0);
	/* On another boot nobody knows how long ago it was. */
	reopen(e, CLEAN);
	env_advance(e, 60000);
	assert_int_equal(env_put(e, k, 100), 100);
	lease(e, k, 1, 5000);
	env_advance(e, 2000);
	assert_int_equal(clear(e), 100);
	env_crash(e);
	skv_fake_clock_advance(&e->clock, 2000);
	e->o.boot_id = "bbbbbbbb-0000-4000-8000-000000000002";
	env_open(e);
	expect_slots(e, 0, 100);
	env_advance(e, 2900);
	expect_slots(e, 0, 100);
	env_advance(e, 200);
	expect_slots(e, 0, 0);
	/* Blocks from before a restart count as leased as long as any earlier lease may run. */
	assert_int_equal(env_put(e, k, 100), 100);
	lease(e, k, 1, 5000);
	reopen(e, CRASH);
	assert_int_equal(clear(e), 100);
	reopen(e, CRASH);
	env_advance(e, 5000);
	expect_slots(e, 0, 100);
	env_advance(e, 20000);
	expect_slots(e, 0, 0);
}

/* A checkpoint between the clear and the sweep knows the leases that run, and nothing else. */
static void test_checkpoint_before_sweep(void **state)
{
	struct env *e = *state;
	struct skv_key k[100];

	env_keys(k, 100, 1, 1);
	assert_int_equal(env_put(e, k, 100), 100);
	lease(e, k + 20, 30, 5000);
	for (int i = 0; i < 2; i++) {
		struct call c;

		begin_clear(e, &c);
		/* The first time it is on its way when the shutdown begins to write; the
		 * second time nothing is there. */
		env_shutdown(e);
		assert_true(c.over);
		end_call(&c);
		env_open(e);
		env_check(e);
		assert_int_equal(found(e, k, 100), 0);
		expect_slots(e, 0, 30);
	}
	env_advance(e, 5100);
	expect_slots(e, 0, 0);
}

/* Blocks being written go with the rest: their session is over, their slots wait for the deadline
 * and the grace. */
static void test_sessions(void **state)
{
	struct env *e = *state;
	struct skv_key k[60];
	struct skv_finish_res f;
	struct skv_start_res r;
	char session[33], id[16];

	env_keys(k, 60, 1, 1);
	for (int how = NONE; how < RESTARTS; how++) {
		snprintf(id, sizeof id, "r%d", how);
		open_session(e, k, 60, id, session);
		assert_int_equal(clear(e), 0);
		env_advance(e, 20);
		expect_slots(e, 0, 60);
		reopen(e, how);
		assert_int_equal(env_finish(e, session, NULL, 0, &f), SKV_OK);
		assert_int_equal(f.state, SKV_SESSION_DELETED);
		assert_int_equal(f.committed + f.failed, 0);
		assert_int_equal(f.n_deleted, 60);
		assert_int_equal(f.deleted[59], 59);
		assert_int_equal(env_abort(e, session, true), SKV_OK);
		assert_int_equal(env_start(e,
					   &(struct env_start){ .request_id = id, .keys = k,
								.n = 60 }, &r), SKV_OK);
		assert_int_equal(r.state, SKV_SESSION_DELETED);
		expect_slots(e, 0, 60);
		env_advance(e, 5800); /* deadline 5 s, grace 1 s */
		expect_slots(e, 0, 60);
		env_advance(e, 300);
		expect_slots(e, 0, 0);
	}
}

/* Ends on both sides of the record, all on their way at once. */
static void test_ends_around(void **state)
{
	struct env *e = *state;
	struct skv_key a[20], b[20], d[20];
	char first[33], second[33];
	struct call f1, c, f2, s;

	env_keys(a, 20, 1, 1);
	env_keys(b, 20, 2, 1);
	env_keys(d, 20, 3, 1);
	for (int how = NONE; how < RESTARTS; how++) {
		open_session(e, a, 20, "", first);
		open_session(e, b, 20, "", second);
		begin_finish(e, &f1, first);
		begin_clear(e, &c);
		begin_finish(e, &f2, second);
		begin_start(e, &s, d, 20);
		env_advance(e, how == CLEAN ? 5000 : 20); /* both deadlines, too */
		skv_cluster_tick(e->cluster);
		assert_int_equal(f1.res.finish.committed, 20);
		assert_int_equal(end_call(&f1), SKV_OK);
		assert_int_equal(c.res.clear.deleted, 20);
		assert_int_equal(end_call(&c), SKV_OK);
		assert_int_equal(f2.res.finish.n_deleted, 20);
		assert_int_equal(end_call(&f2), SKV_OK);
		memcpy(first, s.res.start.session, 33);
		assert_int_equal(end_call(&s), SKV_OK);
		begin_finish(e, &f1, first);
		skv_cluster_tick(e->cluster);
		reopen(e, how);
		assert_int_equal(end_call(&f1), how == CLEAN ? SKV_E_SESSION_EXPIRED : SKV_OK);
		assert_int_equal(found(e, a, 20) + found(e, b, 20), 0);
		assert_int_equal(found(e, d, 20), how == CLEAN ? 0 : 20);
		clear(e);
		env_advance(e, 60000);
	}
}

/* The append fails: all is as before, with what was queued behind it undone, and
 * blocks may be evicted again. */
static void test_undo(void **state)
{
	static const int statuses[] = { SKV_E_STORE_IO, SKV_E_STORE_FULL };
	struct env *e = *state;
	struct skv_key k[SLOTS], b[20], d[20];
	struct skv_finish_res f;
	char session[33];

	env_keys(k, SLOTS, 1, 1);
	env_keys(b, 20, 2, 1);
	env_keys(d, 20, 3, 1);
	for (int i = 0; i < 4; i++) {
		struct skv_fault rule = { .kind = SKV_FAULT_ERROR, .call = "append", .times = 2,
					  .at = 1, .status = statuses[i % 2] };
		struct call f1, c1, c2, s;
		char done[33];

		assert_int_equal(env_put(e, k, 100), 100);
		open_session(e, b, 20, "", session);
		open_session(e, d, 20, "", done);
		if (i < 2)
			begin_finish(e, &f1, done);
		skv_fault_store_set(e->store, &rule);
		begin_clear(e, &c1);
		begin_start(e, &s, k, 20);
		begin_clear(e, &c2);
		assert_false(c1.over || c2.over || s.over);
		for (int t = 0; t < 3; t++)
			skv_cluster_tick(e->cluster);
		assert_int_equal(end_call(&c1), statuses[i % 2]);
		assert_int_equal(end_call(&c2), statuses[i % 2]);
		assert_int_equal(end_call(&s), statuses[i % 2]);
		if (i < 2)
			assert_int_equal(end_call(&f1), statuses[i % 2]);
		skv_fault_store_set(e->store, &(struct skv_fault){ 0 });
		env_check(e);
		assert_int_equal(found(e, k, 100), 100);
		env_advance(e, 1100); /* starts are allowed again */
		assert_int_equal(env_finish(e, session, NULL, 0, &f), SKV_OK);
		assert_int_equal(env_finish(e, done, NULL, 0, &f), SKV_OK);
		assert_int_equal(found(e, b, 20) + found(e, d, 20), 40);
		reopen(e, i == 1 ? CRASH : i == 3 ? CLEAN : NONE);
		env_advance(e, 60000);
		/* 40 more than there is room for */
		assert_int_equal(env_put(e, k + 100, SLOTS - 100), SLOTS - 100);
		assert_int_equal(env_put(e, k, SLOTS) < SLOTS, true);
		assert_true(clear(e) > 0);
		env_advance(e, 20);
		expect_slots(e, 0, 0);
	}
}

/* A block that became visible while a clear was on its way is in the line of
 * eviction once that has failed. */
static void test_undo_after_finish(void **state)
{
	struct env *e = *state;
	struct skv_fault rule = { .kind = SKV_FAULT_ERROR, .call = "append", .times = 1, .at = 1,
				  .status = SKV_E_STORE_IO };
	struct skv_key k[SLOTS], b[SLOTS];
	struct call c;

	env_keys(k, SLOTS, 1, 1);
	env_keys(b, SLOTS, 2, 1);
	assert_int_equal(env_put(e, k, SLOTS), SLOTS);
	skv_fault_store_set(e->store, &rule);
	begin_clear(e, &c);
	skv_cluster_tick(e->cluster);
	assert_int_equal(end_call(&c), SKV_E_STORE_IO);
	env_advance(e, 1100);
	assert_int_equal(env_put(e, b, SLOTS), SLOTS); /* evicts them all */
	assert_int_equal(found(e, k, SLOTS), 0);
}

static void test_two_at_once(void **state)
{
	struct env *e = *state;
	struct skv_key k[50];
	struct call c1, c2, s, c3;

	env_keys(k, 50, 1, 1);
	assert_int_equal(env_put(e, k, 50), 50);
	begin_clear(e, &c1);
	begin_clear(e, &c2); /* nothing left to do, but not before the first is durable */
	assert_false(c1.over || c2.over);
	begin_start(e, &s, k, 50);
	begin_clear(e, &c3);
	skv_cluster_tick(e->cluster);
	skv_cluster_tick(e->cluster);
	assert_true(c1.res.clear.deleted == 50 && c2.res.clear.deleted == 0 &&
		    c3.res.clear.deleted == 0);
	assert_int_equal(end_call(&c1), SKV_OK);
	assert_int_equal(end_call(&c2), SKV_OK);
	assert_int_equal(end_call(&s), SKV_OK);
	assert_int_equal(end_call(&c3), SKV_OK);
	reopen(e, CRASH);
	assert_int_equal(found(e, k, 50), 0);
	env_advance(e, 60000);
	expect_slots(e, 0, 0);
}

/* Instance, group and storage go while a retired instance is there. */
static void test_deletions(void **state)
{
	struct env *e = *state;
	struct skv_key k[100];

	env_keys(k, 100, 1, 1);
	for (int how = NONE; how < RESTARTS; how++) {
		struct skv_stats st;

		assert_int_equal(env_storage(e, "s2", 64 * BLOCK * 4, 16 * BLOCK), SKV_OK);
		assert_int_equal(env_group(e, "g2", 0, "s2"), SKV_OK);
		assert_int_equal(put_instance(e, "j", "g2"), SKV_OK);
		{
			struct skv_start_res r;
			struct skv_finish_res f;
			struct skv_lookup_req q = { .tenant = "t", .instance = "j",
						    .mode = SKV_LOOKUP_BATCH, .keys = k,
						    .n_keys = 20, .lease_ms = 5000 };
			struct skv_lookup_res l;
			char session[33];
			uint64_t n;

			assert_int_equal(env_start(e,
						   &(struct env_start){ .instance = "j", .keys = k,
						     .n = 100 }, &r), SKV_OK);
			memcpy(session, r.session, 33);
			assert_int_equal(env_finish(e, session, NULL, 0, &f), SKV_OK);
			assert_int_equal(env_lookup_req(e, &q, &l), SKV_OK);
			assert_int_equal(env_clear(e, "j", &n), SKV_OK);
			assert_int_equal(n, 100);
		}
		env_check(e);
		assert_int_equal(skv_cluster_instance_delete(e->cluster, "t", "j", NULL, &e->err),
				 SKV_OK);
		reopen(e, how);
		assert_int_equal(skv_cluster_group_delete(e->cluster, "g2", &e->err), SKV_OK);
		env_check(e);
		assert_int_equal(skv_cluster_storage_delete(e->cluster, "s2", &e->err), SKV_OK);
		env_check(e);
		env_stats(e, &st);
		assert_int_equal(st.n_storages, 1);
	}
}

/* A quota counts what is not swept as room that comes. */
static void test_quota(void **state)
{
	struct env *e = *state;
	struct skv_key k[100], j[50];
	struct skv_core_counters n;
	struct skv_start_res r;
	struct skv_finish_res f;
	char session[33];

	env_keys(k, 100, 1, 1);
	env_keys(j, 50, 2, 1);
	assert_int_equal(env_group(e, "g", 150 * BLOCK, "s"), SKV_OK);
	assert_int_equal(put_instance(e, "j", "g"), SKV_OK);
	assert_int_equal(env_start(e, &(struct env_start){ .instance = "j", .keys = j, .n = 50 },
				   &r), SKV_OK);
	memcpy(session, r.session, 33);
	assert_int_equal(env_finish(e, session, NULL, 0, &f), SKV_OK);
	for (int i = 0; i < 5; i++) {
		struct call c, s;

		assert_int_equal(env_put(e, k, 100), 100);
		begin_clear(e, &c);
		begin_start(e, &s, k, 100);
		for (int t = 0; t < 4; t++)
			skv_cluster_tick(e->cluster);
		memcpy(session, s.res.start.session, 33);
		assert_int_equal(end_call(&c), SKV_OK);
		assert_int_equal(end_call(&s), SKV_OK);
		assert_int_equal(env_abort(e, session, true), SKV_OK);
	}
	skv_cluster_counters_get(e->cluster, &n);
	assert_int_equal(n.evicted_blocks, 0);
}

/* ---- the model ------------------------------------------------------------------------------- */

#define KEYS 300u
#define SESSIONS 6u

struct model {
	struct env e;
	uint64_t seed;
	bool small; /* blocks may be evicted */
	bool there[KEYS];       /* committed, and not removed since */
	uint64_t offset[KEYS];  /* where */
	struct open {
		char id[33];
		uint32_t key[8], n;
		bool gone[8]; /* deleted while it was written */
		uint64_t offset[8];
		uint64_t deadline;
	} open[SESSIONS];
	uint64_t leased[16 * 256];  /* a reader may be there until then, */
	uint64_t written[16 * 256]; /* a writer */
};

static uint32_t below(struct model *m, uint32_t n)
{
	m->seed = m->seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(m->seed >> 33) % n;
}

static struct skv_key key_of(uint32_t i) { return (struct skv_key){ 1, i + 1 }; }

static struct skv_bytes model_name(uint32_t i)
{
	static char names[KEYS][16];

	return (struct skv_bytes){ names[i],
				   (size_t)snprintf(names[i], sizeof names[i], "key%u", i * 7919) };
}

static uint64_t now_of(const struct model *m) { return skv_now_ms(m->e.o.clock); }

/* A file of the storage has 16 units, each of 16 slots. */
static uint64_t slot_number(const struct skv_files *files, const struct skv_location *loc)
{
	uint64_t slot =
		strtoull(files->v[loc->file].path + 5, NULL, 16) * 256 + loc->offset / BLOCK;

	assert_true(slot < 16 * 256);
	return slot;
}

static void model_start(struct model *m)
{
	struct skv_key k[8];
	struct skv_bytes names[8];
	struct skv_start_res r;
	struct open *o = m->open;
	uint32_t n = 1 + below(m, 8), first = below(m, KEYS);
	uint64_t now;
	int rc;

	while (o < m->open + SESSIONS && o->id[0])
		o++;
	if (o == m->open + SESSIONS)
		return;
	for (uint32_t i = 0; i < n; i++) {
		k[i] = key_of((first + i) % KEYS);
		names[i] = model_name((first + i) % KEYS);
	}
	rc = env_start(&m->e, &(struct env_start){ .keys = k, .n = n, .names = names }, &r);
	if (m->small && rc == SKV_E_NO_SPACE)
		return;
	if (rc != SKV_OK)
		fail_msg("start: %s", m->e.err.message);
	now = now_of(m);
	if (!r.n_write)
		return;
	memcpy(o->id, r.session, 33);
	o->deadline = now + r.deadline_ms;
	o->n = 0;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t key = (first + i) % KEYS;
		uint64_t slot;

		if (r.outcome[i] != SKV_START_WRITE) {
			assert_true(r.outcome[i] != SKV_START_EXISTS || m->there[key]);
			continue;
		}
		slot = slot_number(&r.files, &r.loc[i]);
		if (m->leased[slot] > now || m->written[slot] > now)
			fail_msg("slot %llu is handed out %llu ms too early",
				 (unsigned long long)slot,
				 (unsigned long long)((m->leased[slot] > now ? m->leased[slot]
									     : m->written[slot]) -
						      now));
		assert_true(m->small || !m->there[key]);
		m->there[key] = false; /* evicted */
		m->written[slot] = o->deadline + m->e.o.grace_ms;
		o->gone[o->n] = false;
		o->key[o->n] = key;
		o->offset[o->n++] = slot;
	}
}

static void model_finish(struct model *m)
{
	struct open *o = &m->open[below(m, SESSIONS)];
	struct skv_finish_res f;
	int rc;

	if (!o->id[0])
		return;
	rc = env_finish(&m->e, o->id, NULL, 0, &f);
	if (rc == SKV_OK) {
		uint32_t deleted = 0;

		for (uint32_t i = 0; i < o->n; i++) {
			if (o->gone[i]) {
				assert_true(deleted < f.n_deleted);
				assert_int_equal(f.deleted[deleted++], i);
				continue;
			}
			m->there[o->key[i]] = true;
			m->offset[o->key[i]] = o->offset[i];
			m->written[o->offset[i]] = 0;
		}
		assert_int_equal(f.n_deleted, deleted);
	} else {
		assert_int_equal(rc, SKV_E_SESSION_EXPIRED);
		assert_true(now_of(m) >= o->deadline);
	}
	o->id[0] = '\0';
}

static void model_abort(struct model *m)
{
	struct open *o = &m->open[below(m, SESSIONS)];
	bool quiesced = below(m, 2);

	if (!o->id[0])
		return;
	if (env_abort(&m->e, o->id, quiesced) == SKV_OK && quiesced)
		for (uint32_t i = 0; i < o->n; i++)
			if (!o->gone[i])
				m->written[o->offset[i]] = 0;
	o->id[0] = '\0';
}

static void model_lookup(struct model *m)
{
	struct skv_key k[16];
	struct skv_lookup_res r;
	uint32_t n = 1 + below(m, 16), first = below(m, KEYS);
	uint64_t now;

	for (uint32_t i = 0; i < n; i++)
		k[i] = key_of((first + i) % KEYS);
	assert_int_equal(
		env_lookup(&m->e, k, n, SKV_LOOKUP_BATCH, below(m, 2) ? 0 : 1 + below(m, 9000), &r),
		SKV_OK);
	now = now_of(m);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t key = (first + i) % KEYS;
		uint64_t slot;

		if (!r.hit[i]) {
			assert_true(m->small || !m->there[key]);
			continue;
		}
		slot = slot_number(&r.files, &r.loc[i]);
		assert_true(m->there[key]);
		assert_int_equal(slot, m->offset[key]);
		if (m->leased[slot] < now + r.lease_ms)
			m->leased[slot] = now + r.lease_ms;
	}
}

static void forget_writes(struct model *m, uint32_t key)
{
	for (struct open *o = m->open; o < m->open + SESSIONS; o++)
		for (uint32_t i = 0; o->id[0] && i < o->n; i++)
			o->gone[i] |= o->key[i] == key;
}

static void model_delete(struct model *m)
{
	struct skv_key k[4];
	uint32_t n = 1 + below(m, 4), first = below(m, KEYS), deleted;

	for (uint32_t i = 0; i < n; i++) {
		k[i] = key_of((first + i) % KEYS);
		m->there[(first + i) % KEYS] = false;
		forget_writes(m, (first + i) % KEYS);
	}
	assert_int_equal(env_delete(&m->e, k, n, &deleted), SKV_OK);
}

static void forget_all(struct model *m)
{
	memset(m->there, 0, sizeof m->there);
	for (uint32_t i = 0; i < SESSIONS; i++) {
		struct skv_finish_res f;

		if (m->open[i].id[0] &&
		    env_finish(&m->e, m->open[i].id, NULL, 0, &f) == SKV_OK) {
			assert_int_equal(f.state, SKV_SESSION_DELETED);
			assert_int_equal(f.n_deleted, m->open[i].n);
		}
		m->open[i].id[0] = '\0';
	}
}

static void model_clear(struct model *m)
{
	uint64_t most = 0, n;

	for (uint32_t i = 0; i < KEYS; i++)
		most += m->there[i];
	if (below(m, 4) == 0) { /* the instance itself goes, and comes back */
		assert_int_equal(
			skv_cluster_instance_delete(m->e.cluster, "t", "i", NULL, &m->e.err),
			SKV_OK);
		assert_int_equal(put_instance(&m->e, "i", "g"), SKV_OK);
	} else {
		n = clear(&m->e);
		assert_true(m->small ? n <= most : n == most);
	}
	forget_all(m);
}

static void model_export(struct model *m)
{
	struct skv_export_req q = { .tenant = "t", .instance = "i", .max = 1 + below(m, KEYS) };
	struct skv_export_res r;
	uint32_t told = 0, want = 0;

	for (uint32_t i = 0; i < KEYS; i++)
		want += m->there[i];
	do {
		skv_arena_reset(&m->e.arena);
		assert_int_equal(skv_core_export(m->e.core, &q, &r, &m->e.arena, &m->e.err),
				 SKV_OK);
		for (uint32_t i = 0; i < r.n; i++) {
			uint32_t key = (uint32_t)r.key[i].lo - 1;
			struct skv_bytes name = model_name(key);

			assert_true(m->there[key]);
			assert_int_equal(slot_number(&r.files, &r.loc[i]), m->offset[key]);
			assert_int_equal(r.name[i].n, name.n);
			assert_memory_equal(r.name[i].p, name.p, name.n);
		}
		told += r.n;
		q.cursor = r.next;
	} while (r.next);
	assert_true(m->small ? told <= want : told == want);
}

static void model_step(struct model *m)
{
	switch (below(m, 24)) {
	case 0: case 1: case 2: case 3: case 4: case 5: model_start(m); break;
	case 6: case 7: case 8: case 9: case 10: case 11: model_finish(m); break;
	case 12: model_abort(m); break;
	case 13: case 14: case 15: case 16: model_lookup(m); break;
	case 17: model_delete(m); break;
	case 18: case 19: model_clear(m); break;
	case 20: model_export(m); break;
	case 21: env_advance(&m->e, below(m, 400)); break;
	case 22: env_advance(&m->e, below(m, 5) ? 1 : below(m, 9000)); break;
	default:
		if (below(m, 3) == 0)
			reopen(&m->e, below(m, 2) ? CLEAN : CRASH);
	}
}

static void run_model(uint64_t seed, bool small, enum skv_durability durability)
{
	static struct model m;
	struct skv_key k[SLOTS];
	uint64_t n;

	memset(&m, 0, sizeof m);
	m.seed = seed;
	m.small = small;
	env_init(&m.e);
	m.e.o.journal_limit = below(&m, 2) ? 4096 : 1 << 20; /* checkpoints all the time */
	m.e.o.max_remembered = below(&m, 2) ? 100 : 10000;
	m.e.store_options.durability = durability;
	make(&m.e, small ? 1 : 16);
	for (uint32_t i = 0; i < 1500; i++) {
		model_step(&m);
		if (i % 50 == 0)
			env_check(&m.e);
	}
	assert_int_equal(env_clear(&m.e, NULL, &n), SKV_OK);
	reopen(&m.e, seed % 2 ? CLEAN : CRASH);
	env_advance(&m.e, 60000);
	env_advance(&m.e, 60000);
	env_check(&m.e);
	expect_slots(&m.e, 0, 0);
	env_keys(k, SLOTS, 9, 1);
	assert_int_equal(env_put(&m.e, k, SLOTS), SLOTS);
	env_destroy(&m.e);
}

static void test_model(void **state)
{
	const char *from = getenv("SKV_SEED");
	uint64_t seed = from ? strtoull(from, NULL, 10) : 1;

	(void)state;
	for (uint64_t i = 0; i < (from ? 1 : 40); i++)
		run_model(seed + i, (seed + i) % 2,
			  (seed + i) % 3 ? SKV_DURABILITY_FULL : SKV_DURABILITY_NORMAL);
}

int main(void)
{
#define SCENE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		SCENE(test_clear),	 cmocka_unit_test(test_room_at_once),
		SCENE(test_leases),	 SCENE(test_checkpoint_before_sweep),
		SCENE(test_sessions),	 SCENE(test_start_behind_clear),
		SCENE(test_ends_around), SCENE(test_undo),
		SCENE(test_two_at_once), SCENE(test_undo_after_finish),
		SCENE(test_deletions),	 SCENE(test_quota),
		cmocka_unit_test(test_model),
	};

	env_quiet();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
