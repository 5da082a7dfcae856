/*
 * test_core_tenants.c - tenants share a storage: what one leaves unused another may have, and gives
 * back block by block; nobody's blocks go for another one below its share.
 */
#include "core_env.h"

#include <stdio.h>
#include <string.h>

#define BLOCK 65536u
#define UNIT (1ull << 20)
#define UNITS 40u
#define ALL (UNITS * 16) /* blocks that fit */

static struct env e;
static uint64_t next_key;

static int setup(void **state)
{
	(void)state;
	env_quiet();
	env_init(&e);
	e.o.free_percent = 0;
	env_open(&e);
	next_key = 0;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	env_check(&e);
	env_destroy(&e);
	return 0;
}

static void make(const char *tenant, const char *id, const char *group, uint64_t block)
{
	const struct skv_spec spec = { "kv", block };

	e.tenant = tenant;
	assert_int_equal(env_instance(&e, id, group, &spec, 1), SKV_OK);
}

static int try_put(const char *tenant, const char *id, uint32_t n)
{
	struct skv_start_res start;
	struct skv_finish_res finish;
	struct skv_key keys[8];
	int rc;

	assert_true(n <= 8);
	env_keys(keys, n, 7, next_key);
	next_key += n;
	e.tenant = tenant;
	rc = env_start(&e, &(struct env_start){ .instance = id, .keys = keys, .n = n,
						.independent = true }, &start);
	return rc == SKV_OK ? env_finish(&e, start.session, NULL, 0, &finish) : rc;
}

static void put(const char *tenant, const char *id, uint32_t n)
{
	for (uint32_t i = 0; i < n; i += 4) {
		assert_int_equal(try_put(tenant, id, 4), SKV_OK);
		env_advance(&e, 1);
	}
}

static uint64_t used(const char *tenant, const char *id)
{
	struct skv_instance_view *v;

	skv_arena_reset(&e.arena);
	assert_int_equal(skv_cluster_instance(e.cluster, tenant, id, &e.arena, &v, &e.err),
			 SKV_OK);
	return v->used_bytes / BLOCK;
}

static void storage_and_group(void)
{
	assert_int_equal(env_storage(&e, "s", UNITS * UNIT, UNIT), SKV_OK);
	assert_int_equal(env_group(&e, "g", 0, "s"), SKV_OK);
}

/* The first one's 300 blocks went to 0 when the second one wrote. */
static void test_one_group(void **state)
{
	(void)state;
	storage_and_group();
	make("a", "i", "g", BLOCK);
	make("b", "i", "g", BLOCK);
	put("a", "i", 300);
	put("b", "i", 4 * ALL);
	assert_int_equal(used("a", "i"), 300); /* below half of it: all there */
	assert_in_range(used("b", "i"), ALL - 300 - 8, ALL - 300);
}

/* Alone it has all; the other one takes its half back, and no more. */
static void test_lent_and_given_back(void **state)
{
	(void)state;
	storage_and_group();
	make("a", "i", "g", BLOCK);
	make("b", "i", "g", BLOCK);
	put("a", "i", 2 * ALL);
	assert_in_range(used("a", "i"), ALL - 8, ALL);
	put("b", "i", ALL / 4);
	assert_int_equal(used("b", "i"), ALL / 4);
	put("b", "i", 2 * ALL);
	assert_in_range(used("a", "i"), ALL / 2 - 8, ALL / 2 + 8);
	assert_in_range(used("b", "i"), ALL / 2 - 8, ALL / 2 + 8);
}

/* Many instances of one tenant do not dilute another's share. */
static void test_many_instances(void **state)
{
	char id[16];

	(void)state;
	storage_and_group();
	make("a", "i", "g", BLOCK);
	put("a", "i", 300);
	for (int i = 0; i < 99; i++) {
		snprintf(id, sizeof id, "m%d", i);
		make("b", id, "g", BLOCK);
		put("b", id, 16);
	}
	assert_int_equal(used("a", "i"), 300);
}

/* The same across groups, and across sizes of blocks. */
static void test_groups_and_sizes(void **state)
{
	(void)state;
	storage_and_group();
	assert_int_equal(env_group(&e, "h", 0, "s"), SKV_OK);
	make("a", "i", "g", BLOCK);
	make("b", "i", "h", BLOCK);
	make("b", "j", "h", BLOCK / 4);
	put("a", "i", 2 * ALL);
	put("b", "j", 2 * ALL);
	assert_in_range(used("a", "i"), ALL / 2 - 16, ALL);
	assert_in_range(used("b", "j"), ALL / 2 - 64, ALL / 2 + 16);
	put("b", "i", ALL);
	assert_in_range(used("a", "i"), ALL / 2 - 16, ALL);
}

/* The capacity of a group is shared, too, and instances with shares keep theirs of it. */
static void test_group_capacity(void **state)
{
	(void)state;
	assert_int_equal(env_storage(&e, "s", UNITS * UNIT, UNIT), SKV_OK);
	assert_int_equal(env_group(&e, "g", 256ull * BLOCK, "s"), SKV_OK);
	make("a", "i", "g", BLOCK);
	make("b", "i", "g", BLOCK);
	put("a", "i", 100);
	put("b", "i", ALL);
	assert_int_equal(used("a", "i"), 100);
	put("a", "i", ALL);
	assert_in_range(used("a", "i"), 128 - 8, 128 + 8);
	assert_in_range(used("b", "i"), 128 - 8, 128 + 8);
}

/* An instance without blocks gets its share, and a restart changes nothing. */
static void test_after_a_restart(void **state)
{
	(void)state;
	storage_and_group();
	make("a", "i", "g", BLOCK);
	put("a", "i", ALL);
	env_crash(&e);
	env_open(&e);
	env_advance(&e, 20000);
	make("b", "i", "g", BLOCK);
	make("c", "i", "g", BLOCK);
	put("b", "i", ALL);
	put("c", "i", ALL);
	assert_in_range(used("a", "i"), ALL / 3 - 8, ALL / 3 + 8);
	assert_in_range(used("b", "i"), ALL / 3 - 8, ALL / 3 + 8);
	assert_in_range(used("c", "i"), ALL / 3 - 8, ALL / 3 + 8);
}

/* ---- limits ---------------------------------------------------------------------------------- */

static void limit(const char *tenant, const struct skv_tenant_spec *spec)
{
	static const struct skv_tenant_spec nothing;
	struct skv_tenant_view v[] = { { .spec = *spec }, { .name = "other" } };

	snprintf(v[0].name, sizeof v[0].name, "%s", tenant);
	assert_int_equal(skv_cluster_tenants_set(e.cluster, v, 2, &nothing), SKV_OK);
}

static struct skv_tenant_use use_of(const char *tenant)
{
	struct skv_tenant_use u;

	skv_cluster_tenant_use(e.cluster, tenant, &u);
	return u;
}

/* At its max_bytes a tenant's own blocks go, of whichever group, however much room there is. */
static void test_max_bytes(void **state)
{
	(void)state;
	storage_and_group();
	assert_int_equal(env_group(&e, "h", 0, "s"), SKV_OK);
	make("a", "i", "g", BLOCK);
	make("a", "j", "h", BLOCK);
	make("b", "i", "g", BLOCK);
	limit("a", &(struct skv_tenant_spec){ .max_bytes = 100ull * BLOCK });
	put("b", "i", 200);
	put("a", "i", 96);
	put("a", "j", 200);
	assert_in_range(used("a", "i") + used("a", "j"), 96, 100);
	assert_in_range(used("a", "j"), 96, 100);
	assert_int_equal(used("b", "i"), 200);
	assert_int_equal(use_of("a").bytes, (used("a", "i") + used("a", "j")) * BLOCK);
	env_crash(&e);
	env_open(&e);
	env_advance(&e, 20000);
	limit("a", &(struct skv_tenant_spec){ .max_bytes = 100ull * BLOCK }); /* by a new process */
	put("a", "i", 40);
	assert_true(use_of("a").bytes <= 100ull * BLOCK);
	limit("a", &(struct skv_tenant_spec){ .max_bytes = 0 });
	put("a", "i", 200);
	assert_true(use_of("a").bytes > 200ull * BLOCK);
}

/* Blocks that may not go stay, and the start is refused, with the limit's name. */
static void test_nothing_may_go(void **state)
{
	struct skv_core_counters counted;

	(void)state;
	storage_and_group();
	make("a", "i", "g", BLOCK);
	make("b", "i", "g", BLOCK);
	limit("a", &(struct skv_tenant_spec){ .max_bytes = 3ull * BLOCK });
	assert_int_equal(try_put("a", "i", 4), SKV_E_QUOTA);
	assert_string_equal(e.err.field, "max_bytes");
	limit("a", &(struct skv_tenant_spec){ .max_blocks = 3 });
	assert_int_equal(try_put("a", "i", 4), SKV_E_QUOTA);
	assert_string_equal(e.err.field, "max_blocks");
	skv_cluster_counters_get(e.cluster, &counted);
	assert_int_equal(counted.tenant_over_bytes, 1);
	assert_int_equal(counted.tenant_over_blocks, 1);
	assert_int_equal(use_of("a").blocks, 0);
	put("b", "i", 4);
}

static void test_max_blocks(void **state)
{
	(void)state;
	storage_and_group();
	make("a", "i", "g", BLOCK);
	make("a", "j", "g", BLOCK / 4);
	limit("a", &(struct skv_tenant_spec){ .max_blocks = 40 });
	put("a", "i", 40);
	put("a", "j", 100);
	assert_int_equal(use_of("a").blocks, 40);
	assert_int_equal(use_of("a").bytes, 40ull * BLOCK / 4);
}

static int start_one(const char *tenant, const char *id, struct skv_start_res *res)
{
	struct skv_key key;

	env_keys(&key, 1, 9, next_key++);
	e.tenant = tenant;
	return env_start(&e, &(struct env_start){ .instance = id, .keys = &key, .n = 1 }, res);
}

/* Open sessions of all its instances; one that ends makes room for another. */
static void test_max_sessions(void **state)
{
	struct skv_start_res first, res;
	struct skv_finish_res finish;

	(void)state;
	storage_and_group();
	make("a", "i", "g", BLOCK);
	make("a", "j", "g", BLOCK);
	make("b", "i", "g", BLOCK);
	limit("a", &(struct skv_tenant_spec){ .max_sessions = 2 });
	assert_int_equal(start_one("a", "i", &first), SKV_OK);
	assert_int_equal(start_one("a", "j", &res), SKV_OK);
	assert_int_equal(start_one("a", "j", &res), SKV_E_TOO_MANY);
	assert_string_equal(e.err.field, "max_sessions");
	assert_int_equal(start_one("b", "i", &res), SKV_OK);
	assert_int_equal(use_of("a").sessions, 2);
	e.tenant = "a";
	assert_int_equal(env_finish(&e, first.session, NULL, 0, &finish), SKV_OK);
	assert_int_equal(start_one("a", "j", &res), SKV_OK);
	env_advance(&e, 700000); /* the sessions expire */
	assert_int_equal(use_of("a").sessions, 0);
	assert_int_equal(use_of("a").blocks, 1);
}

/* Blocks pinned before do not count twice. */
static void test_max_pins(void **state)
{
	struct skv_pin_res res;
	struct skv_key keys[8];

	(void)state;
	storage_and_group();
	make("t", "i", "g", BLOCK);
	put("t", "i", 8);
	env_keys(keys, 8, 7, 0);
	limit("t", &(struct skv_tenant_spec){ .max_pins = 5 });
	assert_int_equal(env_pin(&e, keys, 4, SKV_PIN_HARD, 0, &res), SKV_OK);
	assert_int_equal(env_pin(&e, keys, 5, SKV_PIN_SOFT, 9000, &res), SKV_OK);
	assert_int_equal(env_pin(&e, keys, 6, SKV_PIN_HARD, 0, &res), SKV_E_QUOTA);
	assert_string_equal(e.err.field, "max_pins");
	assert_int_equal(use_of("t").pins, 5);
}

static int look_up(const char *tenant, const struct skv_key *keys, uint32_t n)
{
	const struct skv_lookup_req req = { .tenant = tenant, .instance = "i", .keys = keys,
					    .n_keys = n };
	struct skv_lookup_res res;

	return env_lookup_req(&e, &req, &res);
}

/* More than a second's pass at once while nothing is owed; then none before they are paid for. */
static void test_blocks_per_s(void **state)
{
	struct skv_start_res start;
	struct skv_key keys[64];

	(void)state;
	storage_and_group();
	make("a", "i", "g", BLOCK);
	make("b", "i", "g", BLOCK);
	env_keys(keys, 64, 7, 0);
	limit("a", &(struct skv_tenant_spec){ .blocks_per_s = 1 });
	assert_int_equal(look_up("a", keys, 64), SKV_OK);
	for (int i = 0; i < 9; i++)
		assert_int_equal(look_up("a", keys, 1), SKV_E_TOO_MANY);
	assert_string_equal(e.err.field, SKV_BLOCKS_PER_S);
	assert_in_range(skv_cluster_tenant_wait(e.cluster, "a"), 2, 64);
	assert_int_equal(skv_cluster_tenant_check(e.cluster, "a", &e.err), SKV_E_TOO_MANY);
	assert_string_equal(e.err.field, SKV_BLOCKS_PER_S);
	assert_int_equal(skv_cluster_tenant_check(e.cluster, "b", &e.err), SKV_OK);
	assert_int_equal(start_one("a", "i", &start), SKV_E_TOO_MANY);
	assert_int_equal(look_up("b", keys, 64), SKV_OK);
	assert_int_equal(skv_cluster_tenant_wait(e.cluster, "b"), 0);
	limit("a", &(struct skv_tenant_spec){ .blocks_per_s = 0 });
	assert_int_equal(skv_cluster_tenant_check(e.cluster, "a", &e.err), SKV_OK);
	assert_int_equal(look_up("a", keys, 64), SKV_OK);
}

static void on_done(void *ctx, int status) { *(int *)ctx = status; }

/* A start waits for blocks of its own tenant to be gone, durably; others' starts do not wait behind
 * it. */
static void test_others_do_not_wait(void **state)
{
	struct skv_start_req of_a = { .tenant = "a", .instance = "i", .request_id = "",
				      .n_keys = 4, .independent = true },
			     of_b = of_a;
	struct skv_start_res res[2] = { { .n_keys = 0 }, { .n_keys = 0 } };
	struct skv_core_counters before, counted;
	struct skv_arena arena;
	struct skv_error err;
	struct skv_key keys[8];
	int status[2] = { SKV_PENDING, SKV_PENDING };
	struct skv_done done[2] = { { on_done, &status[0] }, { on_done, &status[1] } };

	(void)state;
	storage_and_group();
	make("a", "i", "g", BLOCK);
	make("b", "i", "g", BLOCK);
	limit("a", &(struct skv_tenant_spec){ .max_bytes = 4ull * BLOCK });
	put("a", "i", 4);
	env_keys(keys, 8, 8, 0);
	of_a.keys = keys;
	of_b.keys = keys + 4;
	of_b.tenant = "b";
	skv_arena_init(&arena);
	skv_cluster_counters_get(e.cluster, &before);
	assert_int_equal(skv_core_start(e.core, &of_a, &res[0], &arena, &err, &done[0]),
			 SKV_PENDING);
	assert_int_equal(skv_core_start(e.core, &of_b, &res[1], &arena, &err, &done[1]),
			 SKV_PENDING);
	skv_cluster_counters_get(e.cluster, &counted);
	/* b's is on its way to the journal */
	assert_int_equal(counted.start_waits, before.start_waits + 1);
	env_advance(&e, 10);
	env_advance(&e, 10);
	assert_int_equal(status[0], SKV_OK);
	assert_int_equal(status[1], SKV_OK);
	assert_int_equal(use_of("a").bytes, 4ull * BLOCK);
	skv_arena_destroy(&arena);
}

/* By weight, and by less when there are more of them. */
static void test_weights(void **state)
{
	(void)state;
	storage_and_group();
	make("a", "i", "g", BLOCK);
	make("b", "i", "g", BLOCK);
	limit("a", &(struct skv_tenant_spec){ .weight = 3 });
	put("b", "i", 2 * ALL);
	put("a", "i", 2 * ALL);
	put("b", "i", 2 * ALL);
	assert_in_range(used("a", "i"), 3 * ALL / 4 - 8, 3 * ALL / 4 + 8);
	assert_in_range(used("b", "i"), ALL / 4 - 8, ALL / 4 + 8);
	make("c", "i", "g", BLOCK);
	put("c", "i", 2 * ALL);
	assert_in_range(used("a", "i"), 3 * ALL / 5 - 8, 3 * ALL / 5 + 8);
	assert_in_range(used("c", "i"), ALL / 5 - 8, ALL / 5 + 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_one_group, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lent_and_given_back, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_instances, setup, teardown),
		cmocka_unit_test_setup_teardown(test_groups_and_sizes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_group_capacity, setup, teardown),
		cmocka_unit_test_setup_teardown(test_after_a_restart, setup, teardown),
		cmocka_unit_test_setup_teardown(test_max_bytes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nothing_may_go, setup, teardown),
		cmocka_unit_test_setup_teardown(test_max_blocks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_max_sessions, setup, teardown),
		cmocka_unit_test_setup_teardown(test_max_pins, setup, teardown),
		cmocka_unit_test_setup_teardown(test_blocks_per_s, setup, teardown),
		cmocka_unit_test_setup_teardown(test_others_do_not_wait, setup, teardown),
		cmocka_unit_test_setup_teardown(test_weights, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
