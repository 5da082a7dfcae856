/*
 * test_core_standby.c - a standby that has followed all along goes on exactly where the owner was.
 */
#include "core_env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KB 1024ull
#define KEYS 96u

/* Owner and standby, ticked in turn, with clocks that go alike. */
struct pair {
	struct env a, b;
};

static void pair_begin(struct pair *p, uint64_t capacity)
{
	env_init(&p->a);
	p->a.o.owner_lease_ms = 2000;
	env_open(&p->a);
	env_make(&p->a, capacity, 64 * KB, 4 * KB);
	env_init(&p->b);
	p->b.store_options = p->a.store_options;
	skv_fake_clock_advance(&p->b.clock,
			       skv_now_ms(&p->a.clock.clock) - skv_now_ms(&p->b.clock.clock));
	assert_int_equal(skv_store_open(p->b.ops, &p->b.store_options, &p->b.store, &p->b.err),
			 SKV_OK);
	p->b.o.store = p->b.store;
	p->b.o.owner_lease_ms = p->a.o.owner_lease_ms;
	assert_int_equal(skv_core_create(&p->b.o, &p->b.core, &p->b.err), SKV_OK);
	skv_core_tick(p->b.core);
	skv_core_tick(p->b.core);
}

/* The owner's clock is that of the arena's calls, so the standby's follows it. */
static void pass(struct pair *p, uint64_t ms)
{
	env_advance(&p->a, ms);
	skv_fake_clock_advance(&p->b.clock, ms);
	skv_core_tick(p->b.core);
}

static struct skv_core_counters counters(struct env *e)
{
	struct skv_core_counters c;

	skv_core_counters_get(e->core, &c);
	return c;
}

/* The owner stands still; the standby waits its lease out and goes on. */
static void take_over(struct pair *p)
{
	env_crash(&p->a);
	skv_fake_clock_advance(&p->b.clock, 5000);
	assert_int_equal(skv_core_wait_ready(p->b.core, 10000), SKV_OK);
	skv_core_tick(p->b.core);
}

static void pair_end(struct pair *p)
{
	env_destroy(&p->b);
	env_destroy(&p->a);
}

static void what_was_followed_is_there(void **state)
{
	struct skv_start_res s;
	struct skv_finish_res f;
	struct skv_key k[8];
	char session[33];
	struct pair p;

	(void)state;
	pair_begin(&p, 4096 * KB);
	env_keys(k, 8, 1, 1);
	assert_int_equal(env_put(&p.a, k, 4), 4);
	skv_core_tick(p.b.core);
	assert_int_equal(env_put(&p.a, k + 4, 2), 2);
	assert_int_equal(env_start(&p.a, &(struct env_start){ .keys = k + 6, .n = 2 }, &s), SKV_OK);
	memcpy(session, s.session, sizeof session);
	skv_core_tick(p.b.core);
	take_over(&p);
	assert_int_equal(counters(&p.b).warm_takeovers, 1);
	assert_int_equal(counters(&p.b).standby_loads, 1);
	assert_int_equal(env_match(&p.b, k, 8), 6);
	assert_int_equal(env_finish(&p.b, session, NULL, 0, &f), SKV_OK);
	assert_int_equal(env_match(&p.b, k, 8), 8);
	env_check(&p.b);
	pair_end(&p);
}

/* What came since the last look, also a new instance, a new group and slab files,
 * is read at the takeover. */
static void what_came_last_is_read_then(void **state)
{
	const struct skv_spec spec = { "kv", 4 * KB };
	struct skv_lookup_res r;
	struct skv_key k[64];
	struct pair p;

	(void)state;
	pair_begin(&p, 8192 * KB);
	env_keys(k, 64, 1, 1);
	assert_int_equal(env_put(&p.a, k, 2), 2);
	skv_core_tick(p.b.core);
	assert_int_equal(env_group(&p.a, "late", 0, "s"), SKV_OK);
	assert_int_equal(env_instance(&p.a, "late", "late", &spec, 1), SKV_OK);
	for (uint32_t i = 2; i < 64; i++)
		assert_int_equal(env_put(&p.a, k + i, 1), 1);
	take_over(&p);
	assert_int_equal(counters(&p.b).warm_takeovers, 1);
	assert_int_equal(env_match(&p.b, k, 64), 64);
	assert_int_equal(env_lookup(&p.b, k, 64, SKV_LOOKUP_PREFIX, 1000, &r), SKV_OK);
	env_check(&p.b);
	pair_end(&p);
}

/* A checkpoint took away what the standby had not read: it loads again, and so does a
 * takeover right behind it. */
static void a_standby_that_was_left_behind_loads_again(void **state)
{
	struct skv_key k[KEYS];
	struct pair p;

	(void)state;
	pair_begin(&p, 4096 * KB);
	env_keys(k, KEYS, 1, 1);
	env_put(&p.a, k, 2);
	skv_core_tick(p.b.core);
	env_put(&p.a, k + 2, 2);
	env_shutdown(&p.a); /* a clean stop: a checkpoint of all */
	env_open(&p.a);
	env_put(&p.a, k + 4, 2);
	for (int i = 0; i < 4; i++) {
		skv_fake_clock_advance(&p.b.clock, 100);
		skv_core_tick(p.b.core);
	}
	assert_int_equal(counters(&p.b).standby_loads, 2);
	env_put(&p.a, k + 6, 2);
	take_over(&p);
	assert_int_equal(counters(&p.b).warm_takeovers, 1);
	assert_int_equal(env_match(&p.b, k, 8), 8);
	env_check(&p.b);
	pair_end(&p);
}

static uint32_t dice; /* of the run, so that it can be repeated */

static uint32_t roll(uint32_t n)
{
	dice ^= dice << 13;
	dice ^= dice >> 17;
	dice ^= dice << 5;
	return dice % n;
}

/* Whatever the owner does, in any order: the standby has the same, and can go on; and so
 * has who loads it cold then. */
static void random_changes(uint32_t seed)
{
	struct skv_key k[KEYS];
	struct skv_start_res s;
	struct skv_finish_res f;
	struct skv_pin_res pin;
	struct pair p;
	uint32_t deleted;
	uint64_t n;
	bool there[KEYS];

	dice = seed * 2654435761u;
	pair_begin(&p, 256 * KB); /* 60 blocks or so: it evicts */
	env_keys(k, KEYS, seed, 1);
	for (int i = 0; i < 200; i++) {
		uint32_t at = roll(KEYS - 4);

		switch (roll(12)) {
		case 0: env_delete(&p.a, k + at, 3, &deleted); break;
		case 1:
			if (env_start(&p.a, &(struct env_start){ .keys = k + at, .n = 2 }, &s) ==
			  SKV_OK && roll(2))
				env_abort(&p.a, s.session, roll(2));
			break;
		case 2: pass(&p, roll(3000)); break;
		case 3:
			env_pin(&p.a, k + at, 2, roll(2) ? SKV_PIN_SOFT : SKV_PIN_HARD, 500, &pin);
			break;
		case 4:
			if (roll(8) == 0)
				env_clear(&p.a, NULL, &n);
			break;
		case 5:
			if (env_start(&p.a, &(struct env_start){ .keys = k + at, .n = 3 }, &s) ==
			  SKV_OK && s.session[0])
				env_finish_mask(&p.a, s.session,
						(const bool[]){ true, false, true }, 3, roll(2),
						&f);
			break;
		case 6: env_match(&p.a, k + at, 4); break;
		default: env_put(&p.a, k + at, 1 + roll(4)); break;
		}
		if (roll(3) == 0)
			skv_core_tick(p.b.core);
	}
	for (uint32_t i = 0; i < KEYS; i++)
		there[i] = env_match(&p.a, k + i, 1) == 1;
	env_check(&p.a);
	take_over(&p);
	assert_int_equal(counters(&p.b).warm_takeovers, 1);
	for (uint32_t i = 0; i < KEYS; i++)
		assert_int_equal(env_match(&p.b, k + i, 1), there[i]);
	env_check(&p.b);
	/* holds, sessions and leases are over: all room is there again */
	env_advance(&p.b, 700000);
	env_check(&p.b);
	env_put(&p.b, k, 4);
	env_crash(&p.b);
	env_open(&p.b);
	for (uint32_t i = 4; i < KEYS; i++)
		assert_int_equal(env_match(&p.b, k + i, 1), there[i]);
	env_check(&p.b);
	pair_end(&p);
}

static void whatever_the_owner_does(void **state)
{
	(void)state;
	for (uint32_t seed = 1; seed <= 4; seed++)
		random_changes(seed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_followed_is_there),
		cmocka_unit_test(what_came_last_is_read_then),
		cmocka_unit_test(a_standby_that_was_left_behind_loads_again),
		cmocka_unit_test(whatever_the_owner_does),
	};

	env_quiet();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
