/*
 * test_core_spread.c - partitions of one store with several managers: which may be owned where
 * (skv_cluster_may_own), and that they go from one to another.
 */
#include "core_env.h"

#include <string.h>

#include <skv/find.h>

#include <lock/core.h>

#define N 3u
#define UNIT (1ull << 20)

static const char *const names[] = { "a", "b", "c" };

static int setup(void **state)
{
	struct env *e = test_calloc(1, sizeof *e);

	env_quiet();
	env_init(e);
	e->all.partitions = N;
	e->store_options.clock = &e->clock.clock;
	*state = e;
	return 0;
}

static int teardown(void **state)
{
	struct env *e = *state;

	env_destroy(e);
	test_free(e);
	return 0;
}

/* Groups and instances a, b, c, in partitions 0, 1, 2, of five blocks each. */
static void make_three(struct env *e)
{
	const struct skv_spec spec = { "kv", 65536 };

	env_open(e);
	assert_int_equal(env_storage(e, "s", 48 * UNIT, UNIT), SKV_OK);
	for (uint32_t i = 0; i < N; i++) {
		struct skv_finish_res f = { 0 };
		struct skv_start_res s;
		struct skv_key k[5];
		char session[SKV_SESSION_ID_HEX + 1];

		assert_int_equal(env_group(e, names[i], 0, "s"), SKV_OK);
		assert_int_equal(env_instance(e, names[i], names[i], &spec, 1), SKV_OK);
		env_keys(k, 5, 7, 0);
		assert_int_equal(env_start(e, &(struct env_start){ .instance = names[i],
								   .keys = k, .n = 5 }, &s),
				 SKV_OK);
		assert_int_equal(skv_session_partition(s.session), i);
		memcpy(session, s.session, sizeof session);
		assert_int_equal(env_finish(e, session, NULL, 0, &f), SKV_OK);
		assert_int_equal(f.committed, 5);
	}
}

/* How many of its blocks are found, or the status. */
static int match_one(struct env *e, const char *instance)
{
	struct skv_match_res r;
	struct skv_key k[5];
	const struct skv_match_req q = { .tenant = "t", .instances = &instance, .n_instances = 1,
					 .keys = k, .n_keys = 5 };
	int rc;

	env_keys(k, 5, 7, 0);
	skv_error_clear(&e->err);
	rc = skv_cluster_match(e->cluster, &q, &r, &e->arena, &e->err);
	return rc == SKV_OK ? (int)r.matched[0] : rc;
}

/* Groups get places before partitions may be shared. */
static void placed_is_told(void **state)
{
	struct env *e = *state;
	bool placed = true;

	e->o.assigned = true;
	assert_int_equal(skv_store_open(e->ops, &e->store_options, &e->store, &e->err), SKV_OK);
	e->o.store = e->store;
	env_create(e);
	for (int i = 0; i < 20; i++)
		env_advance(e, 20);
	assert_int_equal(skv_cluster_placed(e->cluster, &placed, &e->err), SKV_OK);
	assert_false(placed);
	skv_cluster_may_own(e->cluster, 3); /* the objects of the third partition are unknown */
	for (int i = 0; i < 20; i++)
		env_advance(e, 20);
	assert_int_equal(skv_cluster_placed(e->cluster, &placed, &e->err), SKV_OK);
	assert_false(placed);
	skv_cluster_may_own(e->cluster, 7);
	for (int i = 0; i < 20; i++)
		env_advance(e, 20);
	assert_int_equal(skv_cluster_placed(e->cluster, &placed, &e->err), SKV_OK);
	assert_true(placed);
}

/* A second manager of the same store, which owns nothing yet. */
static void open_second(const struct env *e, struct env *b)
{
	*b = *e;
	memset(&b->arena, 0, sizeof b->arena);
	skv_arena_init(&b->arena);
	b->o.assigned = true;
	assert_int_equal(skv_store_open(b->ops, &b->store_options, &b->store, &b->err), SKV_OK);
	b->o.store = b->store;
	b->o.clock = &((struct env *)e)->clock.clock;
	env_create(b);
}

static void pass(struct env *a, struct env *b, int n)
{
	for (int i = 0; i < n; i++) {
		skv_fake_clock_advance(&a->clock, 20);
		skv_cluster_tick(a->cluster);
		skv_cluster_tick(b->cluster);
	}
}

static uint32_t ready(const struct env *e)
{
	uint32_t bits = 0;

	for (uint32_t i = 0; i < N; i++)
		bits |= (uint32_t)(skv_cluster_partition_state(e->cluster, i) == SKV_CORE_READY)
			<< i;
	return bits;
}

/* Each partition has an owner of its own, and goes from one to another that follows it. */
static void each_has_an_owner_of_its_own(void **state)
{
	struct skv_partition_view v;
	struct skv_core_counters n;
	struct env *a = *state, b;
	struct skv_error err;

	make_three(a);
	open_second(a, &b);
	pass(a, &b, 50);
	assert_int_equal(ready(a), 7);
	assert_int_equal(skv_cluster_state_get(b.cluster), SKV_CORE_STANDBY);
	skv_cluster_partition_get(b.cluster, 1, &v);
	assert_true(v.takes && v.loaded);
	skv_cluster_partition_get(a->cluster, 1, &v);
	assert_false(v.takes);
	assert_int_equal(skv_cluster_ready(b.cluster, &err), SKV_E_NOT_OWNER);
	skv_cluster_may_own(b.cluster, 2); /* waits for its owner to let go */
	pass(a, &b, 50);
	assert_int_equal(ready(a), 7);
	assert_int_equal(skv_cluster_state_get(b.cluster), SKV_CORE_STANDBY);
	for (uint32_t i = 0; i < 4; i++) { /* from a to b and back */
		bool there = i % 2 == 0;

		skv_cluster_may_own(a->cluster, there ? 5 : 7);
		pass(a, &b, 20);
		skv_cluster_may_own(b.cluster, there ? 2 : 0);
		pass(a, &b, 20);
		assert_int_equal(ready(a), there ? 5 : 7);
		assert_int_equal(ready(&b), there ? 2 : 0);
		assert_int_equal(skv_cluster_state_get(a->cluster), SKV_CORE_READY);
		assert_int_equal(skv_cluster_state_get(b.cluster),
				 there ? SKV_CORE_READY : SKV_CORE_STANDBY);
		assert_int_equal(skv_cluster_ready(a->cluster, &err), SKV_OK);
		assert_int_equal(match_one(there ? &b : a, names[1]), 5);
		assert_int_equal(match_one(a, names[1]), there ? SKV_E_NOT_OWNER : 5);
		assert_int_equal(match_one(a, names[2]), 5);
	}
	skv_cluster_counters_get(b.cluster, &n);
	assert_int_equal(n.warm_takeovers, 2);
	/* the owner ends without a word */
	skv_cluster_may_own(a->cluster, 6);
	skv_cluster_may_own(b.cluster, 1);
	pass(a, &b, 50);
	assert_int_equal(ready(a), 6);
	assert_int_equal(ready(&b), 1);
	skv_cluster_may_own(b.cluster, 7);
	env_crash(a);
	for (int i = 0; i < 40 && ready(&b) != 7; i++) {
		skv_fake_clock_advance(&a->clock, 500);
		skv_cluster_tick(b.cluster);
	}
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(match_one(&b, names[i]), 5);
	env_check(&b);
	env_shutdown(&b);
	skv_arena_destroy(&b.arena);
	env_open(a);
}

/* As on a thread that may wait: the partition that the call is for, plus 1, or the status. */
static int asked(struct env *e, const char *instance)
{
	const struct skv_target t = { SKV_TARGET_INSTANCE, "t", instance, 0 };
	struct skv_door door;
	int rc;

	skv_thread_waits = true;
	rc = match_one(e, instance);
	skv_find(e->cluster, &t, &door);
	skv_thread_waits = false;
	return rc == SKV_E_NOT_OWNER ? (int)door.partition + 1 : rc;
}

/* Where a name is, and that it is nowhere, is known without the owner of partition 0. */
static void the_store_says_where_names_are(void **state)
{
	const struct skv_target third = { SKV_TARGET_INSTANCE, "t", names[2], 0 };
	struct env *a = *state, b;
	struct skv_door door;

	make_three(a);
	open_second(a, &b);
	pass(a, &b, 50);
	skv_cluster_may_own(a->cluster, 5);
	pass(a, &b, 20);
	skv_cluster_may_own(b.cluster, 2);
	pass(a, &b, 20);
	assert_int_equal(ready(&b), 2);
	assert_int_equal(match_one(&b, names[2]), SKV_E_NOT_OWNER);
	assert_int_equal(skv_find(b.cluster, &third, &door), SKV_SOON);
	assert_true(door.unknown); /* this thread may not wait for the store */
	for (int alone = 0; alone < 2; alone++) {
		assert_int_equal(asked(&b, names[0]), 1);
		assert_int_equal(asked(&b, names[1]), 5); /* five blocks, here */
		assert_int_equal(asked(&b, names[2]), 3);
		assert_int_equal(asked(&b, "nowhere"), SKV_E_NOT_FOUND);
		assert_int_equal(match_one(&b, names[2]), SKV_E_NOT_OWNER);
		assert_int_equal(skv_find(b.cluster, &third, &door),
				 SKV_THERE); /* the place is remembered */
		assert_int_equal(door.partition, 2);
		if (!alone)
			env_crash(a);
	}
	env_shutdown(&b);
	skv_arena_destroy(&b.arena);
	env_open(a);
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test_setup_teardown(placed_is_told, setup, teardown),
		cmocka_unit_test_setup_teardown(each_has_an_owner_of_its_own, setup, teardown),
		cmocka_unit_test_setup_teardown(the_store_says_where_names_are, setup, teardown),
	};

	return cmocka_run_group_tests_name("spread", cases, NULL, NULL);
}
