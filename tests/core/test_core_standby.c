/*
 * test_core_standby.c - a standby that has followed all along goes on exactly where the owner was.
 */
#include "core_pair.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KB 1024ull
#define KEYS 96u

static void what_was_followed_is_there(void **state)
{
	struct skv_start_res s;
	struct skv_finish_res f;
	struct skv_key k[8];
	char session[33];
	struct pair p;

	(void)state;
	pair_begin(&p, 4096 * KB, 64 * KB, 4 * KB);
	env_keys(k, 8, 1, 1);
	assert_int_equal(env_put(&p.a, k, 4), 4);
	skv_cluster_tick(p.b.cluster);
	assert_int_equal(env_put(&p.a, k + 4, 2), 2);
	assert_int_equal(env_start(&p.a, &(struct env_start){ .keys = k + 6, .n = 2 }, &s), SKV_OK);
	memcpy(session, s.session, sizeof session);
	skv_cluster_tick(p.b.cluster);
	pair_take_over(&p);
	assert_int_equal(pair_counters(&p.b).warm_takeovers, 1);
	assert_int_equal(pair_counters(&p.b).standby_loads, 1);
	assert_int_equal(env_match(&p.b, k, 8), 6);
	assert_int_equal(env_finish(&p.b, session, NULL, 0, &f), SKV_OK);
	assert_int_equal(env_match(&p.b, k, 8), 8);
	env_check(&p.b);
	pair_end(&p);
}

/* Records since the last look, also a new instance, a new group and slab files, are read at the
 * takeover. */
static void what_came_last_is_read_then(void **state)
{
	const struct skv_spec spec = { "kv", 4 * KB };
	struct skv_lookup_res r;
	struct skv_key k[64];
	struct pair p;

	(void)state;
	pair_begin(&p, 8192 * KB, 64 * KB, 4 * KB);
	env_keys(k, 64, 1, 1);
	assert_int_equal(env_put(&p.a, k, 2), 2);
	skv_cluster_tick(p.b.cluster);
	assert_int_equal(env_group(&p.a, "late", 0, "s"), SKV_OK);
	assert_int_equal(env_instance(&p.a, "late", "late", &spec, 1), SKV_OK);
	for (uint32_t i = 2; i < 64; i++)
		assert_int_equal(env_put(&p.a, k + i, 1), 1);
	pair_take_over(&p);
	assert_int_equal(pair_counters(&p.b).warm_takeovers, 1);
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
	pair_begin(&p, 4096 * KB, 64 * KB, 4 * KB);
	env_keys(k, KEYS, 1, 1);
	env_put(&p.a, k, 2);
	skv_cluster_tick(p.b.cluster);
	env_put(&p.a, k + 2, 2);
	env_shutdown(&p.a); /* a clean stop: a checkpoint of all */
	env_open(&p.a);
	env_put(&p.a, k + 4, 2);
	for (int i = 0; i < 4; i++) {
		skv_fake_clock_advance(&p.b.clock, 100);
		skv_cluster_tick(p.b.cluster);
	}
	assert_int_equal(pair_counters(&p.b).standby_loads, 2);
	env_put(&p.a, k + 6, 2);
	pair_take_over(&p);
	assert_int_equal(pair_counters(&p.b).warm_takeovers, 1);
	assert_int_equal(env_match(&p.b, k, 8), 8);
	env_check(&p.b);
	pair_end(&p);
}

static struct env *late_owner; /* NULL: nothing comes */

/* An instance is registered and written after the standby has read the registry. */
static int follow_late(void *self, uint32_t partition, struct skv_position *at,
		       const struct skv_load_sink *sink, struct skv_error *err)
{
	const struct skv_spec spec = { "kv", 4 * KB };
	struct env *a = late_owner;
	struct skv_start_res s;
	struct skv_finish_res f;
	char session[SKV_SESSION_ID_HEX + 1];
	struct skv_key k[2];

	late_owner = NULL;
	if (a) {
		env_keys(k, 2, 1, 1);
		assert_int_equal(env_instance(a, "late", "g", &spec, 1), SKV_OK);
		assert_int_equal(env_start(a, &(struct env_start){ .instance = "late", .keys = k,
								    .n = 2 }, &s), SKV_OK);
		memcpy(session, s.session, sizeof session);
		assert_int_equal(env_finish(a, session, NULL, 0, &f), SKV_OK);
	}
	return skv_store_memory.follow(self, partition, at, sink, err);
}

static void what_comes_while_it_loads_is_there(void **state)
{
	struct skv_store_ops ops = skv_store_memory;
	struct skv_stats st;
	struct pair p;

	(void)state;
	pair_begin(&p, 4096 * KB, 64 * KB, 4 * KB);
	env_crash(&p.b);
	ops.follow = follow_late;
	p.b.ops = &ops;
	late_owner = &p.a;
	assert_int_equal(skv_store_open(p.b.ops, &p.b.store_options, &p.b.store, &p.b.err), SKV_OK);
	p.b.o.store = p.b.store;
	env_create(&p.b);
	for (int i = 0; i < 20; i++) {
		skv_fake_clock_advance(&p.b.clock, 50);
		skv_cluster_tick(p.b.cluster);
	}
	assert_null(late_owner);
	assert_int_equal(pair_counters(&p.b).standby_loads, 2);
	pair_take_over(&p);
	assert_int_equal(pair_counters(&p.b).warm_takeovers, 1);
	env_stats(&p.b, &st);
	assert_int_equal(st.blocks, 2);
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

/* The standby has the same state as the owner after any changes in any order, and can go on; so has
 * a manager that loads the state cold. */
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
	pair_begin(&p, 256 * KB, 64 * KB, 4 * KB); /* 60 blocks or so: it evicts */
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
		case 2: pair_pass(&p, roll(3000)); break;
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
			skv_cluster_tick(p.b.cluster);
	}
	for (uint32_t i = 0; i < KEYS; i++)
		there[i] = env_match(&p.a, k + i, 1) == 1;
	env_check(&p.a);
	pair_take_over(&p);
	assert_int_equal(pair_counters(&p.b).warm_takeovers, 1);
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

/* ---- what was used lately ------------------------------------------------------------------- */

#define USED 8u
#define OLD 60u
#define SLOTS 64u

/* As readers do; a match writes nothing. */
static uint32_t look_up(struct env *e, const struct skv_key *keys, uint32_t n)
{
	struct skv_lookup_res r;

	assert_int_equal(env_lookup(e, keys, n, SKV_LOOKUP_PREFIX, 0, &r), SKV_OK);
	return r.matched;
}

/* Puts as many new blocks as there is room for half of the old ones. */
static void fill_up(struct env *e)
{
	struct skv_key fresh[OLD];

	env_keys(fresh, OLD, 2, 1);
	for (uint32_t i = 0; i < OLD / 2; i++)
		assert_int_equal(env_put(e, fresh + i, 1), 1);
}

/* Blocks that were put first, and used since. */
static void put_and_use(struct env *e, const struct skv_key *old)
{
	for (uint32_t i = 0; i < OLD; i++) {
		assert_int_equal(env_put(e, old + i, 1), 1);
		env_advance(e, 10);
	}
	for (uint32_t i = 0; i < USED; i++)
		assert_int_equal(look_up(e, old + i, 1), 1);
}

static void assert_used_are_kept(struct env *e, const struct skv_key *old)
{
	uint32_t others = 0;

	for (uint32_t i = 0; i < USED; i++)
		assert_int_equal(env_match(e, old + i, 1), 1);
	for (uint32_t i = USED; i < OLD; i++)
		others += env_match(e, old + i, 1);
	assert_in_range(others, 1, OLD - USED - 1);
}

static void what_was_used_lately_stays_after_a_takeover(void **state)
{
	struct skv_key old[OLD];
	struct pair p;

	(void)state;
	pair_begin(&p, SLOTS * 4 * KB, 64 * KB, 4 * KB);
	env_keys(old, OLD, 1, 1);
	put_and_use(&p.a, old);
	for (int i = 0; i < 60; i++)
		pair_pass(&p, 200); /* until the ticker has come by, and told */
	pair_take_over(&p);
	assert_int_equal(pair_counters(&p.b).warm_takeovers, 1);
	fill_up(&p.b);
	assert_used_are_kept(&p.b, old);
	env_check(&p.b);
	pair_end(&p);
}

static void what_was_used_lately_stays_after_a_kill(void **state)
{
	struct skv_key old[OLD];
	struct env e;

	(void)state;
	env_init(&e);
	env_open(&e);
	env_make(&e, SLOTS * 4 * KB, 64 * KB, 4 * KB);
	env_keys(old, OLD, 1, 1);
	put_and_use(&e, old);
	for (int i = 0; i < 60; i++)
		env_advance(&e, 200);
	env_crash(&e);
	env_open(&e);
	env_advance(&e, 60000); /* leases of old are over */
	fill_up(&e);
	assert_used_are_kept(&e, old);
	env_check(&e);
	env_destroy(&e);
}

#define CHATS 600u
#define TURNS 24u /* blocks of a chat, or a few more */
#define ROOM 2000u /* blocks */
#define ASKED 8000u
#define AFTER 1500u

/* Chats that go on, some much more often than others, or are asked again: the part of the requested
 * blocks that are hits, in a while after the middle. The owner goes there, if it is to. */
static double chats_hit(const char *policy, bool owner_goes)
{
	static uint32_t length[CHATS];
	uint64_t hits = 0, asked = 0;
	struct skv_key k[TURNS + 4];
	struct pair p;
	struct env *e;

	dice = 4711;
	pair_begin(&p, ROOM * 4 * KB, 64 * KB, 4 * KB);
	e = &p.a;
	pair_policy(&p, policy);
	memset(length, 0, sizeof length);
	for (uint32_t i = 0; i < ASKED; i++) {
		uint32_t chat = roll(CHATS) * roll(CHATS) / CHATS;
		uint32_t had;

		if (i == ASKED / 2 && owner_goes) {
			pair_take_over(&p);
			assert_int_equal(pair_counters(&p.b).warm_takeovers, 1);
			e = &p.b;
		}
		if (roll(4) == 0 || !length[chat])
			length[chat] = length[chat] < TURNS ? length[chat] + 1 + roll(4) : 1;
		env_keys(k, length[chat], chat, 1);
		had = look_up(e, k, length[chat]);
		if (i >= ASKED / 2 && i < ASKED / 2 + AFTER) {
			hits += had;
			asked += length[chat];
		}
		env_put(e, k, length[chat]);
		if (e == &p.a)
			pair_pass(&p, 40);
		else
			env_advance(e, 40);
	}
	env_check(e);
	pair_end(&p);
	return (double)hits / (double)asked;
}

static void a_takeover_costs_no_hits(void **state)
{
	static const char *const policies[] = { "deferred", "reuse", "lru", "s3fifo" };

	(void)state;
	for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
		double with = chats_hit(policies[i], true), without = chats_hit(policies[i], false);

		print_message("%s: %.4f of the blocks hit after a takeover, %.4f without one\n",
			      policies[i], with, without);
		assert_true(with > without - 0.01);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_followed_is_there),
		cmocka_unit_test(what_came_last_is_read_then),
		cmocka_unit_test(a_standby_that_was_left_behind_loads_again),
		cmocka_unit_test(what_comes_while_it_loads_is_there),
		cmocka_unit_test(whatever_the_owner_does),
		cmocka_unit_test(what_was_used_lately_stays_after_a_takeover),
		cmocka_unit_test(what_was_used_lately_stays_after_a_kill),
		cmocka_unit_test(a_takeover_costs_no_hits),
	};

	env_quiet();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
