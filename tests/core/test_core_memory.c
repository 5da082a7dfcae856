/*
 * test_core_memory.c - when memory is full, new blocks replace old ones, in whichever group has
 * most; when it is used up, starts and instances are refused, and all else goes on.
 */
#include "core_env.h"

#include <string.h>

#include <skv/mem.h>

#define BLOCK 4096u
#define MANY 2000u /* far less than the storage has room for */
#define AT_ONCE 100u

static struct env e;

static int setup(void **state)
{
	(void)state;
	env_quiet();
	env_init(&e);
	env_open(&e);
	env_make(&e, 64u << 20, 1u << 20, BLOCK);
	assert_int_equal(env_group(&e, "h", 0, "s"), SKV_OK);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	skv_mem_note(0, 0);
	env_check(&e);
	env_destroy(&e);
	return 0;
}

static void use(uint64_t percent)
{
	skv_mem_note(8 * percent, 800);
	env_advance(&e, 100);
}

static uint64_t blocks(void)
{
	struct skv_stats st;

	env_stats(&e, &st);
	return st.blocks;
}

/* Writes {hi, first}... of an instance; all are stored. */
static void write_in(const char *instance, uint64_t hi, uint32_t first, uint32_t n)
{
	struct skv_key k[AT_ONCE];
	struct skv_start_res res;
	struct skv_finish_res done;
	char session[SKV_SESSION_ID_HEX + 1];

	for (uint32_t at = first; at < first + n; at += AT_ONCE) {
		env_keys(k, AT_ONCE, hi, at);
		assert_int_equal(env_start(&e, &(struct env_start){ .instance = instance, .keys = k,
								    .n = AT_ONCE,
								    .independent = true }, &res),
				 SKV_OK);
		assert_int_equal(res.n_write, AT_ONCE);
		memcpy(session, res.session, sizeof session);
		assert_int_equal(env_finish(&e, session, NULL, 0, &done), SKV_OK);
	}
}

static uint32_t found(uint64_t hi, uint32_t first, uint32_t n)
{
	struct skv_key k[AT_ONCE];
	struct skv_lookup_res res;
	uint32_t hits = 0;

	for (uint32_t at = first; at < first + n; at += AT_ONCE) {
		env_keys(k, AT_ONCE, hi, at);
		assert_int_equal(env_lookup(&e, k, AT_ONCE, SKV_LOOKUP_BATCH, 1, &res), SKV_OK);
		for (uint32_t i = 0; i < AT_ONCE; i++)
			hits += res.hit[i];
	}
	return hits;
}

static void new_blocks_replace_old_ones(void **state)
{
	(void)state;
	write_in("i", 1, 0, MANY);
	use(75);
	write_in("i", 1, MANY, 3 * MANY);
	assert_true(blocks() <= MANY + AT_ONCE);
	assert_true(found(1, 3 * MANY, MANY) >= MANY - 2 * AT_ONCE);
	use(71); /* not yet */
	write_in("i", 2, 0, MANY);
	assert_true(blocks() <= MANY + AT_ONCE);
	use(69);
	write_in("i", 3, 0, MANY);
	assert_true(blocks() >= 2 * MANY - AT_ONCE);
}

/* A newcomer gets in at the cost of the group that has most. */
static void nobody_is_locked_out(void **state)
{
	const struct skv_spec spec = { "kv", BLOCK };

	(void)state;
	assert_int_equal(env_instance(&e, "late", "h", &spec, 1), SKV_OK);
	write_in("i", 1, 0, MANY);
	use(80);
	write_in("late", 2, 0, MANY / 2);
	assert_true(blocks() <= MANY + AT_ONCE);
	assert_in_range(found(1, 0, MANY), MANY / 2 - 2 * AT_ONCE, MANY / 2 + 2 * AT_ONCE);
}

static void what_stays_is_not_replaced(void **state)
{
	struct skv_pin_res pinned;
	struct skv_key k[AT_ONCE];
	struct skv_start_res res;

	(void)state;
	write_in("i", 1, 0, AT_ONCE);
	env_keys(k, AT_ONCE, 1, 0);
	assert_int_equal(env_pin(&e, k, AT_ONCE, SKV_PIN_HARD, 0, &pinned), SKV_OK);
	use(75);
	env_keys(k, AT_ONCE, 2, 0);
	assert_int_equal(env_start(&e, &(struct env_start){ .keys = k, .n = AT_ONCE }, &res),
			 SKV_E_QUOTA);
	assert_non_null(strstr(e.err.message, "memory_max"));
	assert_int_equal(found(1, 0, AT_ONCE), AT_ONCE);
}

static void what_is_used_up_refuses(void **state)
{
	const struct skv_spec spec = { "kv", BLOCK };
	struct skv_key k[1];
	struct skv_start_res res;

	(void)state;
	write_in("i", 1, 0, MANY);
	use(88);
	env_keys(k, 1, 2, 0);
	assert_int_equal(env_start(&e, &(struct env_start){ .keys = k, .n = 1 }, &res),
			 SKV_E_NOMEM);
	assert_non_null(strstr(e.err.message, "memory_max"));
	assert_int_equal(env_instance(&e, "more", "g", &spec, 1), SKV_E_NOMEM);
	assert_int_equal(found(1, 0, MANY), MANY);
	use(87);
	write_in("i", 2, 0, AT_ONCE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(new_blocks_replace_old_ones, setup, teardown),
		cmocka_unit_test_setup_teardown(nobody_is_locked_out, setup, teardown),
		cmocka_unit_test_setup_teardown(what_stays_is_not_replaced, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_used_up_refuses, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
