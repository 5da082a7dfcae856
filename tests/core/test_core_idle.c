/*
 * test_core_idle.c - instances that nobody uses any more: what a use is, what keeps one, that the
 * time survives a restart, and that many that come and go leave nothing behind.
 */
#include "core_env.h"

#include <malloc.h>
#include <stdio.h>

#include <skv/mem.h>

#define BLOCK 4096u
#define HOUR 3600000ull
#define DAY (24 * HOUR)
#define IDLE (7 * DAY)

static int setup(void **state)
{
	static struct env e;

	env_quiet();
	env_init(&e);
	e.o.instance_idle_ms = IDLE;
	env_open(&e);
	env_make(&e, 64 << 20, 1 << 20, BLOCK);
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

/* The clock goes on by steps that leases of the ownership survive, as a running manager's. */
static void pass(struct env *e, uint64_t ms)
{
	for (uint64_t step; ms; ms -= step) {
		step = ms < HOUR ? ms : HOUR;
		env_advance(e, step);
		env_advance(e, 0);
	}
	assert_int_equal(skv_cluster_wait_ready(e->cluster, 1000), SKV_OK);
}

static bool is_there(struct env *e, const char *id)
{
	struct skv_instance_view *v;

	return skv_cluster_instance(e->cluster, "t", id, &e->arena, &v, &e->err) == SKV_OK;
}

static uint64_t unused(struct env *e, const char *id)
{
	struct skv_instance_view *v;

	assert_int_equal(skv_cluster_instance(e->cluster, "t", id, &e->arena, &v, &e->err),
			 SKV_OK);
	return v[0].unused_ms;
}

static void register_again(struct env *e)
{
	static const struct skv_spec spec = { "kv", BLOCK };

	assert_int_equal(env_instance(e, "i", "g", &spec, 1), SKV_OK);
}

static void an_empty_one_that_nobody_uses_goes(void **state)
{
	struct env *e = *state;

	pass(e, IDLE - DAY);
	assert_true(is_there(e, "i"));
	pass(e, 2 * DAY);
	assert_false(is_there(e, "i"));
	register_again(e); /* the name is free */
	assert_true(is_there(e, "i"));
}

static void registering_looking_up_and_writing_are_uses(void **state)
{
	struct env *e = *state;
	struct skv_lookup_res found;
	struct skv_key key;
	uint32_t n;

	env_keys(&key, 1, 1, 1);
	pass(e, IDLE - DAY);
	register_again(e);
	assert_true(unused(e, "i") < HOUR);
	pass(e, IDLE - DAY);
	assert_int_equal(env_lookup(e, &key, 1, SKV_LOOKUP_PREFIX, 0, &found), SKV_OK); /* a miss */
	assert_true(unused(e, "i") < HOUR);
	pass(e, IDLE - DAY);
	assert_int_equal(env_put(e, &key, 1), 1);
	assert_int_equal(env_delete(e, &key, 1, &n), SKV_OK);
	assert_true(unused(e, "i") < HOUR);
	pass(e, IDLE - DAY);
	assert_true(is_there(e, "i"));
	(void)env_match(e, &key, 1); /* a scheduler that polls keeps none alive */
	assert_true(unused(e, "i") >= IDLE - DAY);
	pass(e, 2 * DAY);
	assert_false(is_there(e, "i"));
}

static void blocks_keep_it(void **state)
{
	struct env *e = *state;
	struct skv_key key;
	uint32_t n;

	env_keys(&key, 1, 1, 1);
	assert_int_equal(env_put(e, &key, 1), 1);
	pass(e, 3 * IDLE);
	assert_true(is_there(e, "i"));
	assert_true(unused(e, "i") >= 3 * IDLE - HOUR);
	assert_int_equal(env_delete(e, &key, 1, &n), SKV_OK);
	pass(e, HOUR);
	assert_false(is_there(e, "i"));
}

static void an_open_session_keeps_it(void **state)
{
	struct env *e = *state;
	struct skv_start_res res;
	struct skv_key key;
	const struct env_start start = { .keys = &key, .n = 1, .deadline_ms = 300000 };

	e->o.instance_idle_ms = 10000;
	e->o.session_max_ms = 600000;
	env_shutdown(e);
	env_open(e);
	env_keys(&key, 1, 1, 1);
	assert_int_equal(env_start(e, &start, &res), SKV_OK);
	for (int i = 0; i < 25; i++)
		env_advance(e, 1000);
	assert_true(is_there(e, "i"));
	assert_int_equal(env_abort(e, res.session, true), SKV_OK);
	for (int i = 0; i < 25; i++)
		env_advance(e, 1000);
	assert_false(is_there(e, "i"));
}

static void a_restart_forgets_an_hour_at_most(void **state)
{
	struct env *e = *state;

	pass(e, IDLE - DAY);
	env_crash(e);
	skv_fake_clock_advance(&e->clock, 30 * DAY); /* switched off: does not count */
	env_open(e);
	env_advance(e, 0);
	assert_in_range(unused(e, "i"), IDLE - DAY - 2 * HOUR, IDLE - DAY + HOUR);
	env_shutdown(e);
	env_open(e);
	env_advance(e, 0);
	assert_in_range(unused(e, "i"), IDLE - DAY - 2 * HOUR, IDLE - DAY + HOUR);
	pass(e, DAY + 3 * HOUR);
	assert_false(is_there(e, "i"));
}

static void off_by_default(void **state)
{
	struct env *e = *state;
	struct skv_core_options o;

	skv_core_options_init(&o);
	assert_int_equal(o.instance_idle_ms, 0);
	e->o.instance_idle_ms = 0;
	env_shutdown(e);
	env_open(e);
	pass(e, 100 * DAY);
	assert_true(is_there(e, "i"));
}

static void deleting_asks_whether_it_was_used(void **state)
{
	struct env *e = *state;
	struct skv_key key;

	env_keys(&key, 1, 1, 1);
	assert_int_equal(env_put(e, &key, 1), 1);
	pass(e, DAY);
	assert_int_equal(skv_cluster_instance_delete(e->cluster, "t", "i",
						     &(struct skv_unused){ 2 * DAY, true },
						     &e->err),
			 SKV_E_IN_USE);
	assert_int_equal(skv_cluster_instance_delete(e->cluster, "t", "i",
						     &(struct skv_unused){ DAY - HOUR, false },
						     &e->err),
			 SKV_E_IN_USE);
	assert_true(is_there(e, "i"));
	assert_int_equal(skv_cluster_instance_delete(e->cluster, "t", "i",
						     &(struct skv_unused){ DAY - HOUR, true },
						     &e->err),
			 SKV_OK);
	assert_false(is_there(e, "i"));
}

/* ---- 10,000 versions of a model -------------------------------------------------------------- */

static int count(void *ctx, const char *key, const void *bytes, size_t n, uint64_t version)
{
	(void)key, (void)bytes, (void)n, (void)version;
	++*(uint64_t *)ctx;
	return SKV_OK;
}

/* A week of versions at a time: each is registered, written to, replaced by its successor; its
 * blocks are deleted, and nobody names it again. */
static void versions(struct env *e, uint32_t from, uint32_t n)
{
	static const struct skv_spec spec = { "kv", BLOCK };
	char id[32];

	for (uint32_t i = from; i < from + n; i++) {
		struct skv_start_res started;
		struct skv_finish_res done;
		struct skv_key key;
		uint64_t cleared;

		snprintf(id, sizeof id, "model-v%u", i);
		assert_int_equal(env_instance(e, id, "g", &spec, 1), SKV_OK);
		env_keys(&key, 1, i, 1);
		assert_int_equal(env_start(e, &(struct env_start){ .instance = id, .keys = &key,
								   .n = 1 }, &started), SKV_OK);
		assert_int_equal(env_finish(e, started.session, NULL, 0, &done), SKV_OK);
		assert_int_equal(env_clear(e, id, &cleared), SKV_OK);
	}
	pass(e, IDLE + DAY);
	for (uint32_t i = 0; i < n / 32 + 4; i++) /* rounds of a second each */
		env_advance(e, 1000);
	for (uint32_t i = from; i < from + n; i++) {
		snprintf(id, sizeof id, "model-v%u", i);
		assert_false(is_there(e, id));
	}
}

static void ten_thousand_versions_leave_nothing(void **state)
{
	struct env *e = *state;
	struct skv_key key;
	uint64_t documents = 0;
	size_t before;

	env_keys(&key, 1, 1, 1);
	assert_int_equal(env_put(e, &key, 1), 1); /* "i" stays */
	versions(e, 0, 1000);
	before = mallinfo2().uordblks;
	for (uint32_t i = 1; i < 10; i++)
		versions(e, 1000 * i, 1000);
	assert_in_range(mallinfo2().uordblks, 0, before + (1 << 20));
	assert_int_equal(skv_store_list(e->store, "instance/", count, &documents, &e->err), SKV_OK);
	assert_int_equal(documents, 1);
	documents = 0;
	assert_int_equal(skv_store_list(e->store, "dropped/", count, &documents, &e->err), SKV_OK);
	assert_in_range(documents, 0, 128); /* until the next checkpoint */
	assert_true(is_there(e, "i"));
}

int main(void)
{
#define SCENE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		SCENE(an_empty_one_that_nobody_uses_goes),
		SCENE(registering_looking_up_and_writing_are_uses),
		SCENE(blocks_keep_it),
		SCENE(an_open_session_keeps_it),
		SCENE(a_restart_forgets_an_hour_at_most),
		SCENE(off_by_default),
		SCENE(deleting_asks_whether_it_was_used),
		SCENE(ten_thousand_versions_leave_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
