/* test_guard.c - clients that guess tokens are slowed down, and no others are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <skv/guard.h>

#define BURST 20u
#define T0 1000000u

static const uint8_t bad[SKV_ADDRESS_BYTES] = { 1 }, good[SKV_ADDRESS_BYTES] = { 2 };

static struct skv_guard *guard;

static int setup(void **state)
{
	(void)state;
	guard = calloc(1, sizeof *guard);
	skv_guard_init(guard, BURST);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	skv_guard_destroy(guard);
	free(guard);
	return 0;
}

static bool show(const uint8_t *address, uint64_t token, bool right, uint64_t now)
{
	return skv_guard_pass(guard, &(struct skv_guard_try){ address, token, right }, now);
}

/* Wrong tokens that were told to be wrong, of `n` at one instant. */
static unsigned tried(unsigned n, uint64_t now)
{
	unsigned told = 0;

	for (unsigned i = 0; i < n; i++)
		told += show(bad, 100 + i, false, now);
	return told;
}

static void test_a_burst_and_one_a_second(void **state)
{
	(void)state;
	assert_int_equal(tried(2000, T0), BURST);
	assert_int_equal(tried(2000, T0 + 500), 0);
	assert_int_equal(tried(2000, T0 + 1000), 1);
	assert_int_equal(tried(2000, T0 + 6000), 5);
	assert_int_equal(tried(2000, T0 + 3600000), BURST); /* all is forgotten */
}

/* Else the one that tries would learn it from the answer. */
static void test_a_right_token_is_not_told_to_who_tries(void **state)
{
	(void)state;
	tried(2000, T0);
	assert_false(show(bad, 7, true, T0));
	assert_true(show(bad, 7, true, T0 + 1000));
	tried(2000, T0 + 1000);
	assert_true(show(bad, 7, true, T0 + 1000)); /* the token was right from there before */
	assert_false(show(bad, 8, true, T0 + 1000));
}

static void test_others_go_on(void **state)
{
	(void)state;
	tried(2000, T0);
	assert_true(show(good, 7, true, T0));
	assert_true(show(good, 99, false, T0));
}

/* However many addresses fail or succeed, one that is being slowed down stays so. */
static void test_many_addresses_do_not_push_it_out(void **state)
{
	(void)state;
	tried(2000, T0);
	for (uint32_t i = 0; i < 100000; i++) {
		uint8_t a[SKV_ADDRESS_BYTES] = { 3 };

		memcpy(a + 4, &i, sizeof i);
		assert_true(show(a, i, i % 2, T0));
	}
	assert_int_equal(tried(100, T0), 0);
}

static void test_zero_is_off(void **state)
{
	(void)state;
	guard->burst = 0;
	assert_int_equal(tried(2000, T0), 2000);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_a_burst_and_one_a_second),
		T(test_a_right_token_is_not_told_to_who_tries),
		T(test_others_go_on),
		T(test_many_addresses_do_not_push_it_out),
		T(test_zero_is_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
