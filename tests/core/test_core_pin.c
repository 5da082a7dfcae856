/*
 * test_core_pin.c - pins: what is pinned stays, as long as it is; caps; what ends them; everything
 * pinned; restarts, failing stores, clears and deletes in between.
 */
#include "core_env.h"

#include <stdio.h>
#include <string.h>

#define BLOCK 65536u
#define UNIT (1ull << 20)
#define ROOM 64u /* blocks */

static struct env e;

static int setup(void **state)
{
	(void)state;
	env_quiet();
	env_init(&e);
	e.faulty = true;
	env_open(&e);
	env_make(&e, ROOM * BLOCK, UNIT, BLOCK);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	env_check(&e);
	env_destroy(&e);
	return 0;
}

static struct skv_key keys[4 * ROOM];

/* Chains of their own, so that none keeps another. */
static const struct skv_key *chain(uint64_t hi, uint32_t n)
{
	env_keys(keys, n, hi, 1);
	return keys;
}

static void put(uint64_t hi, uint32_t n) { assert_int_equal(env_put(&e, chain(hi, n), n), n); }
static uint32_t there(uint64_t hi, uint32_t n) { return env_match(&e, chain(hi, n), n); }

static uint32_t pin(uint64_t hi, uint32_t n, enum skv_pin_kind kind, uint64_t ttl_ms)
{
	struct skv_pin_res res;

	assert_int_equal(env_pin(&e, chain(hi, n), n, kind, ttl_ms, &res), SKV_OK);
	return res.pinned;
}

static uint64_t unpin(uint64_t hi, uint32_t n)
{
	uint64_t out;

	assert_int_equal(env_unpin(&e, chain(hi, n), n, &out), SKV_OK);
	return out;
}

static void set_percent(uint32_t percent)
{
	static const char *const one[] = { "s" };
	const struct skv_group_spec g = { .name = "g", .storages = one, .n_storages = 1,
					  .pin_percent = percent };

	assert_int_equal(skv_cluster_group_put(e.cluster, &g, SKV_PUT_ANY, NULL, NULL, &e.err),
			 SKV_OK);
}

/* So much is written that all that may go has gone. */
static void flood(uint64_t hi)
{
	for (uint64_t i = 0; i < 8; i++)
		put(hi + i, 16);
}

static uint32_t listed(struct skv_pins_res *res)
{
	const struct skv_pins_req req = { .tenant = "t", .instance = "i", .max = 4 * ROOM };

	skv_arena_reset(&e.arena);
	assert_int_equal(skv_core_pins(e.core, &req, res, &e.arena, &e.err), SKV_OK);
	assert_int_equal(res->next, 0);
	return res->n;
}

static void test_hard_stays(void **state)
{
	struct skv_pin_res res;

	(void)state;
	put(1, 8);
	put(2, 8);
	assert_int_equal(pin(1, 8, SKV_PIN_HARD, 0), 8);
	flood(100);
	assert_int_equal(there(1, 8), 8);
	assert_int_equal(there(2, 8), 0);
	env_advance(&e, 365ull * 86400000);
	flood(200);
	assert_int_equal(there(1, 8), 8);
	assert_int_equal(unpin(1, 8), 8);
	assert_int_equal(unpin(1, 8), 0);
	flood(300);
	assert_int_equal(there(1, 8), 0);
	/* nothing to pin: told so */
	assert_int_equal(env_pin(&e, chain(1, 8), 8, SKV_PIN_HARD, 0, &res), SKV_OK);
	assert_int_equal(res.pinned, 0);
	assert_true(res.missing[0] && res.missing[7]);
}

static void test_misses_are_told(void **state)
{
	struct skv_pin_res res;

	(void)state;
	put(1, 5);
	assert_int_equal(env_pin(&e, chain(1, 8), 8, SKV_PIN_HARD, 0, &res), SKV_OK);
	assert_int_equal(res.pinned, 5);
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(res.missing[i], i >= 5);
}

static uint64_t wall_set_back(void *self)
{
	(void)self;
	return 1;
}

static void test_time_ends_it(void **state)
{
	struct skv_pins_res res;

	(void)state;
	put(1, 8);
	put(2, 8);
	pin(1, 8, SKV_PIN_HARD, 60000);
	pin(2, 4, SKV_PIN_HARD, 5000);
	pin(2, 2, SKV_PIN_HARD, 1000); /* the later end wins */
	assert_int_equal(listed(&res), 12);
	env_advance(&e, 5000);
	assert_int_equal(listed(&res), 8);
	for (uint32_t i = 0; i < res.n; i++)
		assert_true(res.key[i].hi == 1 && res.kind[i] == SKV_PIN_HARD &&
			    res.ttl_ms[i] == 55000);
	pin(1, 8, SKV_PIN_HARD, 3600000);
	e.clock.clock.wall_ms = wall_set_back; /* nothing to pins */
	env_advance(&e, 3599999);
	assert_int_equal(listed(&res), 8);
	env_advance(&e, 3600000); /* a jump: all is due at once */
	assert_int_equal(listed(&res), 0);
	flood(100);
	assert_int_equal(there(1, 8), 0);
}

static void test_harder_wins(void **state)
{
	struct skv_pins_res res;

	(void)state;
	put(1, 4);
	pin(1, 4, SKV_PIN_SOFT, 60000);
	pin(1, 2, SKV_PIN_HARD, 0);
	pin(1, 4, SKV_PIN_SOFT, 90000);
	assert_int_equal(listed(&res), 4);
	for (uint32_t i = 0; i < 4; i++) {
		bool hard = res.key[i].lo <= 2;

		assert_int_equal(res.kind[i], hard ? SKV_PIN_HARD : SKV_PIN_SOFT);
		assert_int_equal(res.ttl_ms[i], hard ? 0 : 90000);
	}
	assert_int_equal(unpin(1, 3), 3);
	assert_int_equal(listed(&res), 1);
}

static void test_cap(void **state)
{
	struct skv_pin_res res;

	(void)state;
	set_percent(25); /* 16 blocks */
	put(1, 12);
	put(2, 12);
	assert_int_equal(pin(1, 12, SKV_PIN_HARD, 0), 12);
	assert_int_equal(pin(1, 12, SKV_PIN_HARD, 0), 12); /* again: no more than before */
	assert_int_equal(env_pin(&e, chain(2, 5), 5, SKV_PIN_HARD, 0, &res), SKV_E_QUOTA);
	assert_string_equal(e.err.field, "pinned_bytes");
	assert_int_equal(pin(2, 4, SKV_PIN_HARD, 0), 4);
	assert_int_equal(pin(2, 12, SKV_PIN_SOFT, 1000), 12); /* not capped: they are no obstacle */
	assert_int_equal(unpin(1, 1), 1);
	assert_int_equal(pin(2, 5, SKV_PIN_HARD, 0), 5);
}

/* A tenant can pin its part at any time, whoever came first. */
static void test_parts_of_tenants(void **state)
{
	const struct skv_spec spec = { "kv", BLOCK };
	struct skv_pin_res res;

	(void)state;
	set_percent(50); /* 32 blocks */
	put(1, 32);
	assert_int_equal(pin(1, 20, SKV_PIN_HARD, 0), 20);
	e.tenant = "u";
	assert_int_equal(env_instance(&e, "i", "g", &spec, 1), SKV_OK);
	put(2, 17);
	assert_int_equal(pin(2, 16, SKV_PIN_HARD, 0), 16);
	assert_int_equal(env_pin(&e, chain(2, 17), 17, SKV_PIN_HARD, 0, &res), SKV_E_QUOTA);
	assert_string_equal(e.err.field, "pinned_bytes");
	e.tenant = "t"; /* the tenant's part is smaller now; existing pins stay */
	assert_int_equal(env_pin(&e, chain(1, 21), 21, SKV_PIN_HARD, 0, &res), SKV_E_QUOTA);
	assert_int_equal(unpin(1, 5), 5);
	assert_int_equal(pin(1, 1, SKV_PIN_HARD, 0), 1);
	e.tenant = NULL;
}

/* Soft-pinned blocks go last, and only when a start needs the room. */
static void test_soft_goes_last(void **state)
{
	struct skv_pins_res res;

	(void)state;
	put(1, 8);
	put(2, 8);
	pin(1, 8, SKV_PIN_SOFT, 3600000);
	flood(100);
	assert_int_equal(there(1, 8), 8);
	assert_int_equal(there(2, 8), 0);
	set_percent(100);
	for (uint64_t i = 200; i < 212; i++) {
		put(i, 4);
		pin(i, 4, SKV_PIN_HARD, 0);
	}
	assert_in_range(there(1, 8), 4, 8);
	put(300, 8); /* beside what is pinned hard there is no other room */
	assert_in_range(there(1, 8), 0, 7);
	assert_int_equal(there(211, 4), 4);
	assert_int_equal(listed(&res), 48 + there(1, 8));
	unpin(200, 4);
	flood(400);
	assert_int_equal(there(211, 4), 4);
}

/* A class of its own is needed: slabs with soft pins are the last that are emptied for it. */
static void test_soft_and_slabs(void **state)
{
	const struct skv_spec spec = { "kv", 2 * BLOCK };
	struct skv_start_res res;

	(void)state;
	for (uint64_t i = 0; i < 15; i++)
		put(i, 4);
	for (uint64_t i = 0; i < 15; i++)
		pin(i, 4, i % 2 ? SKV_PIN_SOFT : SKV_PIN_HARD, 100000);
	assert_int_equal(env_instance(&e, "big", "g", &spec, 1), SKV_OK);
	assert_int_equal(env_start(&e, &(struct env_start){ .instance = "big", .keys = chain(1, 1),
							    .n = 1 }, &res), SKV_E_NO_SPACE);
	for (uint64_t i = 0; i < 15; i++)
		assert_int_equal(there(i, 4), 4);
	for (uint64_t i = 0; i < 15; i += 2)
		unpin(i, 4);
	for (uint64_t i = 0; i < 15; i += 2)
		pin(i, 4, SKV_PIN_SOFT, 100000);
	assert_int_equal(env_start(&e, &(struct env_start){ .instance = "big", .keys = chain(1, 1),
							    .n = 1 }, &res), SKV_OK);
}

/* Everything pinned: a clear error, nothing lost, and room as soon as something is unpinned. */
static void test_everything_pinned(void **state)
{
	struct skv_start_res res;
	uint64_t n, all = 0;

	(void)state;
	set_percent(100);
	while (env_start(&e, &(struct env_start){ .keys = chain(all, 1), .n = 1 }, &res) ==
		SKV_OK) {
		char session[SKV_SESSION_ID_HEX + 1];
		struct skv_finish_res f;

		memcpy(session, res.session, sizeof session);
		assert_int_equal(env_finish(&e, session, NULL, 0, &f), SKV_OK);
		assert_int_equal(pin(all++, 1, SKV_PIN_HARD, 0), 1);
	}
	assert_int_equal(e.err.status, SKV_E_NO_SPACE);
	assert_non_null(strstr(e.err.message, "pinned"));
	assert_in_range(all, ROOM - 4, ROOM);
	for (uint64_t i = 0; i < all; i++)
		assert_int_equal(there(i, 1), 1);
	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(unpin(i, 1), 1);
	put(500, 4);
	assert_int_equal(there(4, 1), 1);
	assert_int_equal(env_unpin(&e, NULL, 0, &n), SKV_OK);
	assert_int_equal(n, all - 4);
	flood(1000);
}

static void test_deleted_all_the_same(void **state)
{
	struct skv_pins_res res;
	uint64_t cleared;
	uint32_t n;

	(void)state;
	put(1, 8);
	pin(1, 4, SKV_PIN_HARD, 0);
	assert_int_equal(env_delete(&e, chain(1, 3), 3, &n), SKV_OK);
	assert_int_equal(n, 3);
	assert_int_equal(listed(&res), 1);
	put(1, 3); /* written anew: not pinned */
	assert_int_equal(listed(&res), 1);
	assert_int_equal(env_clear(&e, NULL, &cleared), SKV_OK);
	assert_int_equal(listed(&res), 0);
	put(2, 4);
	pin(2, 4, SKV_PIN_HARD, 0);
	env_advance(&e, 100);
	env_crash(&e);
	env_open(&e);
	assert_int_equal(listed(&res), 4);
	assert_int_equal(env_trim(&e, 0, UINT64_MAX, &cleared), SKV_OK);
	assert_int_equal(cleared, 4);
	assert_int_equal(listed(&res), 0);
	env_crash(&e);
	env_open(&e);
	assert_int_equal(listed(&res), 0);
}

/* Through the journal, through a checkpoint, and both. */
static void test_restart(void **state)
{
	struct skv_pins_res res;

	(void)state;
	for (int round = 0; round < 4; round++) {
		uint64_t hi = 10 * (uint64_t)round;

		put(hi + 1, 4);
		put(hi + 2, 4);
		pin(hi + 1, 4, SKV_PIN_HARD, 0);
		pin(hi + 2, 4, SKV_PIN_SOFT, 100000);
		unpin(hi + 1, 1);
		if (round % 2)
			env_shutdown(&e);
		else
			env_crash(&e);
		env_open(&e);
		assert_int_equal(listed(&res), 7);
		for (uint32_t i = 0; i < 7; i++) {
			assert_int_equal(res.kind[i],
					 res.key[i].hi == hi + 1 ? SKV_PIN_HARD : SKV_PIN_SOFT);
			assert_true(res.key[i].hi != hi + 1
					    ? res.ttl_ms[i] > 90000
					    : res.ttl_ms[i] == 0 && res.key[i].lo > 1);
		}
		flood(1000 + 100 * hi);
		assert_int_equal(env_match(&e, &(struct skv_key){ hi + 1, 4 }, 1), 1);
		env_advance(&e, 100000);
		assert_int_equal(listed(&res), 3);
		env_crash(&e); /* ended pins do not come back */
		env_open(&e);
		assert_int_equal(listed(&res), 3);
		assert_int_equal(unpin(hi + 1, 4), 3);
	}
}

/* The store fails under each of them: as before, then it works. */
static void test_store_fails(void **state)
{
	const struct skv_fault f = { .kind = SKV_FAULT_ERROR, .call = "append", .at = 1, .times = 1,
				     .status = SKV_E_STORE_IO };
	struct skv_pin_res pinned;
	struct skv_pins_res res;
	uint64_t n;

	(void)state;
	put(1, 8);
	skv_fault_store_set(e.store, &f);
	assert_int_equal(env_pin(&e, chain(1, 8), 8, SKV_PIN_HARD, 0, &pinned), SKV_E_STORE_IO);
	assert_int_equal(listed(&res), 0);
	pin(1, 8, SKV_PIN_SOFT, 5000);
	skv_fault_store_set(e.store, &f);
	assert_int_equal(env_pin(&e, chain(1, 4), 4, SKV_PIN_HARD, 0, &pinned), SKV_E_STORE_IO);
	assert_int_equal(listed(&res), 8);
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(res.kind[i], SKV_PIN_SOFT);
	skv_fault_store_set(e.store, &f);
	assert_int_equal(env_unpin(&e, chain(1, 8), 8, &n), SKV_E_STORE_IO);
	assert_int_equal(listed(&res), 8);
	env_check(&e);
	skv_fault_store_set(e.store, &f);
	/* The end of the pins cannot be journaled: the next tick ends them. */
	env_advance(&e, 5000);
	env_advance(&e, 20);
	env_advance(&e, 20);
	assert_int_equal(listed(&res), 0);
}

static void test_bad_input(void **state)
{
	struct skv_pins_req list = { .tenant = "t", .instance = "i", .max = 0 };
	struct skv_pin_res res;
	struct skv_pins_res pins;

	(void)state;
	put(1, 1);
	assert_int_equal(env_pin(&e, keys, 0, SKV_PIN_HARD, 0, &res), SKV_E_INVALID);
	assert_string_equal(e.err.field, "keys");
	assert_int_equal(env_pin(&e, keys, 1, SKV_PIN_SOFT, 0, &res), SKV_E_INVALID);
	assert_string_equal(e.err.field, "ttl_ms");
	assert_int_equal(env_pin(&e, keys, 1, SKV_PIN_HARD, SKV_MAX_PIN_MS + 1, &res),
			 SKV_E_INVALID);
	assert_string_equal(e.err.field, "ttl_ms");
	assert_int_equal(skv_core_pins(e.core, &list, &pins, &e.arena, &e.err), SKV_E_INVALID);
	list.max = 1;
	list.instance = "nobody";
	assert_int_equal(skv_core_pins(e.core, &list, &pins, &e.arena, &e.err), SKV_E_NOT_FOUND);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_hard_stays, setup, teardown),
		cmocka_unit_test_setup_teardown(test_misses_are_told, setup, teardown),
		cmocka_unit_test_setup_teardown(test_time_ends_it, setup, teardown),
		cmocka_unit_test_setup_teardown(test_harder_wins, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cap, setup, teardown),
		cmocka_unit_test_setup_teardown(test_parts_of_tenants, setup, teardown),
		cmocka_unit_test_setup_teardown(test_soft_goes_last, setup, teardown),
		cmocka_unit_test_setup_teardown(test_soft_and_slabs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_everything_pinned, setup, teardown),
		cmocka_unit_test_setup_teardown(test_deleted_all_the_same, setup, teardown),
		cmocka_unit_test_setup_teardown(test_restart, setup, teardown),
		cmocka_unit_test_setup_teardown(test_store_fails, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_input, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
