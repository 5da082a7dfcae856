/* test_core_uses.c - eviction goes by the order of uses, not by how they fall into milliseconds. */
#include "core_env.h"

#define BLOCK 4096u
#define KEPT 3u

static void look_up(struct env *e, struct skv_key key)
{
	struct skv_lookup_res res;

	assert_int_equal(env_lookup(e, &key, 1, SKV_LOOKUP_PREFIX, 0, &res), SKV_OK);
	assert_int_equal(res.matched, 1);
}

/* Blocks are used in their order, five uses in each millisecond: wherever a counter of uses begins
 * anew, the first one goes. */
static void order_is_kept_within_a_millisecond(void **state)
{
	struct env e;
	struct skv_key key[400];
	struct skv_group_spec g = { .name = "g", .capacity = KEPT * BLOCK,
				    .storages = (const char *[]){ "s" }, .n_storages = 1 };

	(void)state;
	env_init(&e);
	env_open(&e);
	env_make(&e, 1u << 20, 1u << 16, BLOCK);
	assert_int_equal(skv_cluster_group_put(e.cluster, &g, SKV_PUT_ANY, NULL, NULL, &e.err),
			 SKV_OK);
	for (uint32_t i = 0; i < 400; i++) /* no chain: each for itself */
		key[i] = (struct skv_key){ 7, i };
	for (uint32_t i = 0; i < KEPT; i++)
		assert_int_equal(env_put(&e, &key[i], 1), 1);
	for (uint32_t i = 0; i + KEPT < 400; i++) {
		env_advance(&e, 1);
		for (uint32_t k = 0; k < KEPT; k++)
			look_up(&e, key[i + k]);
		look_up(&e, key[i + KEPT - 1]);
		assert_int_equal(env_put(&e, &key[i + KEPT], 1), 1);
		assert_int_equal(env_match(&e, &key[i], 1), 0);
		for (uint32_t k = 1; k <= KEPT; k++)
			assert_int_equal(env_match(&e, &key[i + k], 1), 1);
	}
	env_destroy(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(order_is_kept_within_a_millisecond) };

	env_quiet();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
