/*
 * test_core_snapshot.c - checkpoints whose snapshot began in the middle of clears and drops: on
 * their way, or durable but not swept, or in the time until it is written. Sees the core's insides,
 * to begin a snapshot at a chosen moment.
 */
#include "core_env.h"

#include <string.h>

#include <lock/gate.h>
#include <lock/lock.h>
#include <lock/turn.h>
#include <model/find.h>
#include <model/partition.h>
#include <model/table.h>
#include <journal/change.h>
#include <journal/commit.h>
#include <journal/snapshot.h>
#include <evict/clear.h>
#include <recovery/checkpoint.h>

#define N 600u /* blocks: three chunks */

static struct env e;

static int setup(void **state)
{
	(void)state;
	env_init(&e);
	env_open(&e);
	env_make(&e, 16 << 20, 65536, 4096);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	env_check(&e);
	env_destroy(&e);
	return 0;
}

static void begin_snapshot(void)
{
	core_lock(e.core);
	snapshot_begin(e.core->partition, e.core->commit->queued);
	core_unlock(e.core);
}

/* As checkpoint.c does it; then a restart over it and what the journal had after it. */
static void load_snapshot(void)
{
	struct partition *p = e.core->partition;
	uint64_t id = 0, fence = owner_fence(e.core);

	assert_true(p->snap.active && !p->snap.failed);
	core_lock(e.core);
	for (uint32_t no = 1; no < p->snap.end_chunk; no++)
		snapshot_touch_chunk(p, no);
	core_unlock(e.core);
	assert_int_equal(skv_store_checkpoint_begin(e.store, 0, fence, &id, &e.err), SKV_OK);
	assert_int_equal(skv_store_checkpoint_slice(e.store, 0, fence, id, 0, p->snap.out.data,
						    p->snap.out.len, &e.err),
			 SKV_OK);
	assert_int_equal(skv_store_checkpoint_slice(e.store, 0, fence, id, 1, p->snap.leases.data,
						    p->snap.leases.len, &e.err), SKV_OK);
	assert_int_equal(skv_store_checkpoint_slice(e.store, 0, fence, id, 2, p->snap.tail.data,
						    p->snap.tail.len, &e.err), SKV_OK);
	assert_int_equal(skv_store_checkpoint_commit(e.store, 0, fence, id, 3, p->snap.seq,
						     &e.err), SKV_OK);
	env_crash(&e);
	env_open(&e);
	env_check(&e);
}

struct call {
	int status;
	struct skv_arena arena;
	struct skv_error err;
	union {
		struct skv_clear_res clear;
		struct skv_start_res start;
		struct skv_finish_res finish;
		struct skv_delete_res delete;
	} res;
};

static void on_done(void *ctx, int status) { ((struct call *)ctx)->status = status; }

static struct skv_done begin(struct call *c)
{
	memset(c, 0, sizeof *c);
	skv_arena_init(&c->arena);
	c->status = SKV_PENDING;
	return (struct skv_done){ on_done, c };
}

static void end(struct call *c, int status)
{
	assert_int_equal(c->status, status);
	skv_arena_destroy(&c->arena);
}

static void begin_delete(struct call *c, const struct skv_key *k, uint32_t n)
{
	struct skv_delete_req req = { .tenant = "t", .instance = "i", .keys = k, .n_keys = n };
	struct skv_done done = begin(c);

	assert_int_equal(skv_core_delete(e.core, &req, &c->res.delete, &c->arena, &c->err, &done),
			 SKV_PENDING);
}

static void begin_clear(struct call *c)
{
	struct skv_clear_req req = { .tenant = "t", .instance = "i" };
	struct skv_done done = begin(c);

	assert_int_equal(skv_core_clear(e.core, &req, &c->res.clear, &c->arena, &c->err, &done),
			 SKV_PENDING);
}

static void begin_start(struct call *c, const struct skv_key *k, uint32_t n)
{
	static struct skv_start_req req;
	struct skv_done done = begin(c);

	req = (struct skv_start_req){ .tenant = "t", .instance = "i", .request_id = "", .keys = k,
				      .n_keys = n };
	assert_int_equal(skv_core_start(e.core, &req, &c->res.start, &c->arena, &c->err, &done),
			 SKV_PENDING);
}

static void begin_finish(struct call *c, const char *session)
{
	struct skv_finish_req req = { .tenant = "t", .session = session,
				      .mask_kind = SKV_MASK_ALL };
	struct skv_done done = begin(c);

	assert_int_equal(skv_core_finish(e.core, &req, &c->res.finish, &c->arena, &c->err, &done),
			 SKV_PENDING);
}

static void open_session(const struct skv_key *k, uint32_t n, char session[33])
{
	struct skv_start_res r;

	assert_int_equal(env_start(&e, &(struct env_start){ .keys = k, .n = n }, &r), SKV_OK);
	memcpy(session, r.session, 33);
}

static uint32_t found(const struct skv_key *k, uint32_t n)
{
	struct skv_lookup_res r;

	assert_int_equal(env_lookup(&e, k, n, SKV_LOOKUP_BATCH, 0, &r), SKV_OK);
	return r.matched;
}

static uint64_t held(void)
{
	struct skv_stats st;

	env_stats(&e, &st);
	return st.storages[0].quarantined_bytes / 4096;
}

/* The snapshot began before all of it. */
static void test_before(void **state)
{
	struct skv_key k[N], more[20];
	struct skv_lookup_res r;
	struct skv_finish_res f;
	char session[33];
	struct call c;
	uint32_t n;

	(void)state;
	env_keys(k, N, 1, 1);
	env_keys(more, 20, 2, 1);
	assert_int_equal(env_put(&e, k, N), N);
	assert_int_equal(env_lookup(&e, k, 50, SKV_LOOKUP_BATCH, 5000, &r), SKV_OK);
	open_session(more, 20, session);
	begin_snapshot();
	assert_int_equal(env_delete(&e, k + 100, 300, &n), SKV_OK);
	assert_int_equal(env_finish(&e, session, NULL, 0, &f), SKV_OK);
	begin_clear(&c);
	skv_cluster_tick(e.cluster); /* durable, */
	skv_cluster_tick(e.cluster); /* and swept */
	end(&c, SKV_OK);
	assert_int_equal(env_put(&e, k + 550, 50), 50); /* in chunks that were swept */
	load_snapshot();
	assert_true(held() >= 50);
	assert_int_equal(found(k, 550) + found(more, 20), 0);
	assert_int_equal(found(k + 550, 50), 50);
}

/* The snapshot begins while the record is on its way: removals and ends before it, starts of the
 * same keys after it. */
static void on_its_way(bool drop)
{
	struct skv_key k[N], more[20];
	char session[33];
	struct call del, fin, clear, start;
	struct change *ch;
	struct skv_finish_res f;

	env_keys(k, N, 1, 1);
	env_keys(more, 20, 2, 1);
	assert_int_equal(env_put(&e, k, N), N);
	open_session(more, 20, session);
	begin_delete(&del, k, 100);
	begin_finish(&fin, session);
	if (drop) {
		core_lock(e.core);
		assert_int_equal(clear_queue(e.core->partition,
					     instance_find(e.core->partition, "t", "i"), true, &ch),
				 SKV_OK);
		core_unlock(e.core);
	} else {
		begin_clear(&clear);
		begin_start(&start, k + 90, 20);
	}
	begin_snapshot();
	skv_cluster_tick(e.cluster);
	end(&del, SKV_OK);
	end(&fin, SKV_OK);
	if (!drop) {
		end(&clear, SKV_OK);
		memcpy(session, start.res.start.session, 33);
		assert_int_equal(start.res.start.n_write, 20);
		end(&start, SKV_OK);
		assert_int_equal(env_finish(&e, session, NULL, 0, &f), SKV_OK);
	}
	load_snapshot();
}

static void test_clear_on_its_way(void **state)
{
	struct skv_key k[N];

	(void)state;
	on_its_way(false);
	env_keys(k, N, 1, 1);
	assert_int_equal(found(k, N), 20);
	assert_int_equal(found(k + 90, 20), 20);
}

static void test_drop_on_its_way(void **state)
{
	struct skv_instance_view *v;

	(void)state;
	on_its_way(true);
	assert_int_equal(skv_cluster_instance(e.cluster, "t", "i", &e.arena, &v, &e.err),
			 SKV_E_NOT_FOUND);
}

/* The snapshot begins when the record is durable, and nothing is swept: leases are reported, blocks
 * are not. */
static void test_not_swept(void **state)
{
	struct skv_key k[N];
	struct skv_lookup_res r;
	struct call c;

	(void)state;
	env_keys(k, N, 1, 1);
	assert_int_equal(env_put(&e, k, N), N);
	assert_int_equal(env_lookup(&e, k + 10, 50, SKV_LOOKUP_BATCH, 5000, &r), SKV_OK);
	begin_clear(&c);
	while (c.status == SKV_PENDING)
		assert_true(commit_round(e.core));
	end(&c, SKV_OK);
	assert_true(e.core->partition->retired && e.core->partition->retired->newest);
	begin_snapshot();
	assert_int_equal(env_put(&e, k, N), N); /* some of it in swept slots */
	load_snapshot();
	assert_int_equal(found(k, N), N);
	assert_int_equal(held(), 50);
	env_advance(&e, 5100);
	assert_int_equal(held(), 0);
}

/* A start and a finish in one batch that the store has no room for: the start fails, the finish
 * waits for the next round. Until then no checkpoint may count on it. */
static void test_put_back_is_not_appended(void **state)
{
	struct skv_fault full = { .kind = SKV_FAULT_ERROR, .call = "append", .at = 1, .times = 1,
				  .status = SKV_E_STORE_FULL };
	struct skv_finish_req finish = { .tenant = "t", .mask_kind = SKV_MASK_ALL };
	struct skv_start_res started, refused;
	struct skv_finish_res finished;
	struct call one = { .status = SKV_PENDING }, two = { .status = SKV_PENDING };
	struct skv_arena a;
	struct skv_key k[2];
	struct skv_start_req start = { .tenant = "t", .instance = "i", .request_id = "",
				       .keys = k + 1, .n_keys = 1 };
	char session[SKV_SESSION_ID_HEX + 1];
	struct commit *q;

	(void)state;
	env_crash(&e);
	e.faulty = true;
	env_open(&e);
	q = e.core->commit;
	env_keys(k, 2, 77, 1);
	assert_int_equal(env_start(&e, &(struct env_start){ .keys = k, .n = 1 }, &started), SKV_OK);
	memcpy(session, started.session, sizeof session);
	finish.session = session;
	skv_arena_init(&a);
	while (commit_round(e.core))
		;
	assert_int_equal(commit_appended(e.core), q->queued);
	skv_fault_store_set(e.store, &full);
	assert_int_equal(skv_core_finish(e.core, &finish, &finished, &a, &e.err,
					 &(struct skv_done){ on_done, &one }),
			 SKV_PENDING);
	assert_int_equal(skv_core_start(e.core, &start, &refused, &a, &e.err,
					&(struct skv_done){ on_done, &two }),
			 SKV_PENDING);
	assert_true(commit_round(e.core));
	assert_int_equal(two.status, SKV_E_STORE_FULL);
	assert_int_equal(one.status, SKV_PENDING);
	assert_true(commit_appended(e.core) < q->head->number);
	assert_true(commit_round(e.core));
	assert_int_equal(one.status, SKV_OK);
	assert_int_equal(commit_appended(e.core), q->queued);
	skv_arena_destroy(&a);
}

/* A change that was queued when the ownership ended is over: a checkpoint of the next ownership,
 * with nothing appended in between, does not wait for it. */
static void test_given_up_is_not_awaited(void **state)
{
	struct skv_key k[2];
	struct call c;

	(void)state;
	env_crash(&e);
	e.o.owner_lease_ms = 2000;
	env_open(&e);
	env_keys(k, 2, 78, 1);
	assert_int_equal(env_put(&e, k, 1), 1);
	begin_start(&c, k + 1, 1);
	assert_true(commit_appended(e.core) < e.core->commit->queued);
	assert_int_equal(skv_cluster_demote(e.cluster, 10, &e.err), SKV_OK);
	end(&c, SKV_E_NOT_OWNER);
	env_advance(&e, 10);
	assert_int_equal(skv_cluster_wait_ready(e.cluster, 10000), SKV_OK);
	assert_int_equal(commit_appended(e.core), e.core->commit->queued);
	assert_int_equal(checkpoint_run(e.core, false, &e.err), SKV_OK);
}

/* Of a store that is full: each checkpoint waits for half as many bytes of journal as it writes. */
static void test_cost(void **state)
{
	struct skv_core_store_counters store;
	struct skv_core_counters n;
	struct skv_key k[500];

	(void)state;
	env_destroy(&e);
	env_init(&e);
	e.o.journal_limit = 64 << 10;
	env_open(&e);
	env_make(&e, 64 << 20, 1 << 20, 4096); /* 16,384 blocks */
	for (uint32_t i = 1; i <= 120; i++) {
		env_keys(k, 500, i, 1);
		assert_int_equal(env_put(&e, k, 500), 500); /* the journal is never full */
		skv_cluster_tick(e.cluster);
	}
	skv_cluster_counters_get(e.cluster, &n);
	skv_cluster_store_counters_get(e.cluster, &store);
	assert_true(n.evicted_blocks > 40000 && n.checkpoints > 3 && n.checkpoint_failures == 0);
	assert_true(n.checkpoint_bytes <= 2 * store.append_bytes);
	env_crash(&e);
	env_open(&e);
	env_check(&e);
}

static uint64_t checkpoints(void)
{
	struct skv_core_counters c;

	skv_cluster_counters_get(e.cluster, &c);
	return c.checkpoints;
}

/* The ticker asks at each tick until the snapshot has begun, which takes the checkpointer a
 * while. */
static void one_that_was_asked_for_twice_is_written_once(void **state)
{
	const uint64_t before = checkpoints();

	(void)state;
	checkpoint_ask(e.core); /* when the checkpointer had taken up the first */
	assert_int_equal(checkpoint_run(e.core, false, &e.err), SKV_OK);
	skv_cluster_tick(e.cluster);
	assert_int_equal(checkpoints(), before + 1);
	checkpoint_ask(e.core); /* a checkpoint of changes after the snapshot */
	skv_cluster_tick(e.cluster);
	assert_int_equal(checkpoints(), before + 2);
}

int main(void)
{
#define SCENE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		SCENE(one_that_was_asked_for_twice_is_written_once),
		SCENE(test_before),
		SCENE(test_clear_on_its_way),
		SCENE(test_drop_on_its_way),
		SCENE(test_not_swept),
		SCENE(test_put_back_is_not_appended),
		SCENE(test_given_up_is_not_awaited),
		SCENE(test_cost),
	};

	env_quiet();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
