/* test_clock.c - clocks go forward, the boot has a name, the tests' clock moves only when told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ctype.h>
#include <string.h>

#include <skv/clock.h>

static void system_clocks_go_forward(void **state)
{
	uint64_t ms = skv_now_ms(&skv_clock_system);
	uint64_t us = skv_now_us();

	(void)state;
	assert_true(ms > 0 && us > 0);
	for (int i = 0; i < 1000; i++) {
		uint64_t m = skv_now_ms(&skv_clock_system), u = skv_now_us();

		assert_true(m >= ms && u >= us);
		ms = m;
		us = u;
	}
	/* 2023-11-14 .. 2128: milliseconds, not seconds or microseconds. */
	assert_in_range(skv_wall_ms(&skv_clock_system), 1700000000000, 5000000000000);
}

static void a_boot_has_one_name(void **state)
{
	char a[37], b[37];

	(void)state;
	memset(a, 'x', sizeof a);
	skv_boot_id(a);
	skv_boot_id(b);
	assert_string_equal(a, b);
	assert_int_equal(strlen(a), 36);
	for (int i = 0; i < 36; i++)
		assert_true(isxdigit((unsigned char)a[i]) || a[i] == '-');
}

static void the_tests_clock_moves_when_told(void **state)
{
	struct skv_fake_clock f;

	(void)state;
	skv_fake_clock_init(&f, 1000);
	assert_int_equal(skv_now_ms(&f.clock), 1000);
	assert_int_equal(skv_now_ms(&f.clock), 1000);
	skv_fake_clock_advance(&f, 250);
	skv_fake_clock_advance(&f, 0);
	assert_int_equal(skv_now_ms(&f.clock), 1250);
	assert_int_equal(skv_wall_ms(&f.clock), 1250);
}

static void two_clocks_are_two(void **state)
{
	struct skv_fake_clock f, g;

	(void)state;
	skv_fake_clock_init(&f, 1);
	skv_fake_clock_init(&g, 2);
	skv_fake_clock_advance(&f, 10);
	assert_int_equal(skv_now_ms(&f.clock), 11);
	assert_int_equal(skv_now_ms(&g.clock), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(system_clocks_go_forward),
		cmocka_unit_test(a_boot_has_one_name),
		cmocka_unit_test(the_tests_clock_moves_when_told),
		cmocka_unit_test(two_clocks_are_two),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
