/*
 * test_core_ages.c - how old blocks are, whatever the wall clock does: dates,
 * trims, ttl, over restarts.
 */
#include "core_env.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MB (1024ull * 1024)
#define HOUR 3600000ull
#define DAY (24 * HOUR)

/* A wall clock that can be set, beside one that cannot. */
static struct env env;
static int64_t wrong; /* error of the wall clock, ms */

static uint64_t now_ms(void *self)
{
	(void)self;
	return skv_now_ms(&env.clock.clock);
}

static uint64_t truth(void) { return 1700000000000ull + now_ms(NULL); }

static uint64_t wall_ms(void *self)
{
	(void)self;
	return truth() + (uint64_t)wrong;
}

static const struct skv_clock settable = { now_ms, wall_ms, NULL };

static void begin(uint64_t ttl_ms)
{
	const char *s = "s";
	struct skv_group_spec g = { .name = "g", .storages = &s, .n_storages = 1, .policy = "ttl",
				    .ttl_ms = ttl_ms };

	wrong = 0;
	env_init(&env);
	env.o.clock = &settable;
	env_open(&env);
	env_make(&env, 4 * MB, 65536, 4096);
	if (ttl_ms)
		assert_int_equal(
			skv_cluster_group_put(env.cluster, &g, SKV_PUT_ANY, NULL, NULL, &env.err),
			SKV_OK);
}

static void put(uint64_t n)
{
	struct skv_key k = { 1, n };

	assert_int_equal(env_put(&env, &k, 1), 1);
}

static bool there(uint64_t n)
{
	struct skv_key k = { 1, n };

	return env_match(&env, &k, 1) == 1;
}

static uint64_t made(uint64_t n)
{
	struct skv_key k = { 1, n };
	struct skv_lookup_req q = { .tenant = "t", .instance = "i", .mode = SKV_LOOKUP_BATCH,
				    .keys = &k, .n_keys = 1,
				    .want_created = true };
	struct skv_lookup_res r;

	assert_int_equal(env_lookup_req(&env, &q, &r), SKV_OK);
	assert_true(r.hit[0]);
	return r.created_ms[0];
}

static void pass(uint64_t ms)
{
	for (uint64_t step = 0; step < 4; step++)
		env_advance(&env, ms / 4);
}

static void expect_near(uint64_t told, uint64_t true_ms, uint64_t most)
{
	uint64_t off = told > true_ms ? told - true_ms : true_ms - told;

	if (off > most)
		fail_msg("told %lld s beside the truth", (long long)(told - true_ms) / 1000);
}

enum { NONE, CLEAN, KILL, RESTARTS };

static void restart(int how)
{
	if (how == NONE)
		return;
	if (how == CLEAN)
		env_shutdown(&env);
	else
		env_crash(&env);
	env_open(&env);
}

/* ---- a wall clock that is a day ahead for one write ------------------------------------------ */

static void a_day_ahead_for_one_write(void **state)
{
	(void)state;
	for (int how = NONE; how < RESTARTS; how++) {
		uint64_t at, n;

		begin(0);
		put(1);
		pass(HOUR);
		wrong = (int64_t)DAY;
		put(2);
		wrong = 0;
		pass(60000);
		restart(how);
		put(3);
		at = truth();
		restart(how);
		pass(HOUR);
		expect_near(made(1), at - HOUR - 60000, HOUR / 100);
		expect_near(made(2), at - 60000, 61000);
		expect_near(made(3), at, 1000);
		assert_int_equal(env_trim(&env, at - 1000, truth(), &n), SKV_OK);
		assert_int_equal(n, 1);
		assert_false(there(3));
		assert_true(there(1));
		env_destroy(&env);

		begin(2 * HOUR);
		wrong = (int64_t)DAY;
		put(1);
		wrong = 0;
		pass(60000);
		put(2);
		restart(how);
		pass(HOUR);
		put(3);
		restart(how);
		assert_true(there(1) && there(2) && there(3));
		pass(HOUR);
		pass(60000);
		assert_true(!there(1) && !there(2) && there(3));
		pass(HOUR + 60000);
		assert_false(there(3));
		env_destroy(&env);
	}
}

/* The wall clock was a day ahead when the manager last stopped, and is right now. */
static void a_day_ahead_before_the_restart(void **state)
{
	(void)state;
	for (int how = CLEAN; how < RESTARTS; how++) {
		begin(2 * HOUR);
		wrong = (int64_t)DAY;
		put(1);
		if (how == CLEAN)
			env_shutdown(&env);
		else
			env_crash(&env);
		wrong = 0;
		env_open(&env);
		put(2);
		expect_near(made(1), truth(), 1000);
		expect_near(made(2), truth(), 1000);
		pass(2 * HOUR - 60000);
		assert_true(there(1) && there(2));
		pass(120000);
		assert_true(!there(1) && !there(2));
		env_destroy(&env);
	}
}

static void a_clock_that_goes_back_dates_nothing_ahead(void **state)
{
	(void)state;
	for (int how = NONE; how < RESTARTS; how++) {
		begin(2 * HOUR);
		put(1);
		pass(60000);
		wrong = -(int64_t)DAY;
		put(2);
		expect_near(made(2), wall_ms(NULL), 1000);
		assert_true(made(1) <= wall_ms(NULL));
		restart(how);
		assert_true(made(1) <= wall_ms(NULL) && made(2) <= wall_ms(NULL));
		pass(2 * HOUR);
		assert_true(!there(1) && !there(2));
		env_destroy(&env);
	}
}

/* ---- a wall clock that is two hours behind for a second -------------------------------------- */

/* The event in that second. */
enum { WRITE, CHECKPOINT, RESTART, REBOOT, DURINGS };

static void write_checkpoint(void)
{
	struct skv_core_counters before, c;

	skv_cluster_counters_get(env.cluster, &before);
	for (uint64_t i = 0;; i++) {
		skv_cluster_counters_get(env.cluster, &c);
		if (c.checkpoints > before.checkpoints)
			return;
		assert_true(i < 10000);
		put(1000 + i % 20);
		assert_int_equal(env_delete(&env, &(struct skv_key){ 1, 1000 + i % 20 }, 1,
					    &(uint32_t){ 0 }), SKV_OK);
		env_advance(&env, 1);
	}
}

static void have_a_second_behind(int during, int how)
{
	wrong = -2 * (int64_t)HOUR;
	env_advance(&env, 100);
	put(2);
	if (during == CHECKPOINT)
		write_checkpoint();
	if (during == REBOOT)
		env.o.boot_id = "bbbbbbbb-0000-4000-8000-000000000002";
	if (during == RESTART || during == REBOOT)
		restart(how);
	put(3);
	env_advance(&env, 900);
	wrong = 0;
	env_advance(&env, 100);
}

/* No block seems older than it is, in any order of the second, checkpoints and restarts. */
static void two_hours_behind_for_a_second(void **state)
{
	(void)state;
	for (int during = WRITE; during < DURINGS; during++)
		for (int how = NONE; how < RESTARTS; how++) {
			uint64_t at, n;

			begin(HOUR);
			env.o.journal_limit = 8192;
			restart(CLEAN);
			put(1);
			at = truth();
			pass(HOUR / 2);
			have_a_second_behind(during, how);
			restart(how);
			restart(how); /* over what the first one has written */
			/* after a reboot what passed since the newest write is not known */
			if (during != REBOOT || how == NONE)
				expect_near(made(1), at, 1000);
			assert_true(made(1) + 1000 >= at);
			expect_near(made(2), truth(), 5000);
			assert_int_equal(env_trim(&env, 0, at - 60000, &n), SKV_OK);
			assert_int_equal(n, 0);
			pass(HOUR / 4);
			assert_true(there(1) && there(2) && there(3));
			pass(HOUR / 4 + 60000);
			assert_true((during == REBOOT || !there(1)) && there(2));
			pass(HOUR / 2 + 60000);
			assert_true(!there(1) && !there(2) && !there(3));
			env_check(&env);
			env_destroy(&env);
		}
}

#define STEPS 200u

static unsigned playing; /* the seed of the sequence that is under way */

static uint64_t setting(const char *name, uint64_t or)
{
	return getenv(name) ? strtoull(getenv(name), NULL, 0) : or;
}

static int tell_seed(void **state)
{
	(void)state;
	if (playing)
		print_error("SKV_SEED=%u SKV_CASES=1 does it again\n", playing);
	return 0;
}

static void all_ages_are_true(const uint64_t *when, uint64_t n)
{
	for (uint64_t k = 0; k < n; k++) {
		uint64_t age = truth() - when[k];

		if (age < 4 * HOUR * 98 / 100)
			assert_true(there(k));
		else if (age > 4 * HOUR * 102 / 100 + 600000)
			assert_false(there(k));
		if (there(k) && k % 7 == 0)
			expect_near(made(k) - (uint64_t)wrong, when[k], age / 100 + 1000);
	}
}

/* Any steps: while a manager lives, ages are what they are; dates are right as soon as the
 * clock is. Random sequences, from SKV_SEED on, SKV_CASES of them; by itself the same twenty,
 * and one that nobody has seen. */
static void a_clock_that_is_set_at_will(void **state)
{
	uint64_t cases = setting("SKV_CASES", 20), first = setting("SKV_SEED", 1),
		 fresh = 1000 + (uint64_t)time(NULL) % 1000000000;

	(void)state;
	for (uint64_t n = 0; n < cases + !getenv("SKV_SEED"); n++) {
		uint64_t when[STEPS];
		unsigned s = playing = (unsigned)(n < cases ? first + n : fresh);

		begin(4 * HOUR);
		for (uint64_t i = 0; i < STEPS; i++) {
			switch (rand_r(&s) % 8) {
			case 0: wrong = (int64_t)(rand_r(&s) % DAY); break;
			case 1: wrong = -(int64_t)(rand_r(&s) % DAY); break;
			case 2: wrong = 0; break;
			default: break;
			}
			put(i);
			when[i] = truth();
			env_advance(&env, (uint64_t)rand_r(&s) % 600000);
			all_ages_are_true(when, i + 1);
		}
		env_destroy(&env);
	}
	print_message("the last seed was %u\n", playing);
	playing = 0;
}

/* ---- ttl and readers ------------------------------------------------------------------------- */

static uint64_t look(uint64_t n, uint32_t ms)
{
	struct skv_key k = { 1, n };
	struct skv_lookup_res r;

	assert_int_equal(env_lookup(&env, &k, 1, SKV_LOOKUP_BATCH, ms, &r), SKV_OK);
	return r.hit[0] ? r.loc[0].offset + 1 : 0;
}

/* EVICTION.md: "data that must not stay". Its slot does, until its last reader is done. */
static void ttl_takes_what_is_read_all_the_time(void **state)
{
	uint64_t last = 0, was = 0, left;
	struct skv_stats st;

	(void)state;
	for (int busy = 0; busy < 2; busy++) {
		begin(60000);
		put(1);
		left = truth() + 60000;
		for (uint64_t i = 2; truth() < left + 30000; i++) {
			uint64_t at = look(1, 8000);

			if (at) {
				was = at;
				last = truth();
			} else if (truth() < last + 7000) {
				env_stats(&env, &st);
				assert_true(st.storages[0].quarantined_bytes >= 4096);
			}
			if (busy) /* other searches find it, too */
				put(i);
			env_advance(&env, 500);
		}
		assert_true(was && last >= left - 1000);
		assert_true(last <= left + 8500); /* when the lease that ran then has ended */
		assert_int_equal(look(1, 0), 0);
		env_check(&env);
		env_destroy(&env);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_day_ahead_for_one_write),
		cmocka_unit_test(a_day_ahead_before_the_restart),
		cmocka_unit_test(a_clock_that_goes_back_dates_nothing_ahead),
		cmocka_unit_test(two_hours_behind_for_a_second),
		cmocka_unit_test_teardown(a_clock_that_is_set_at_will, tell_seed),
		cmocka_unit_test(ttl_takes_what_is_read_all_the_time),
	};

	env_quiet();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
