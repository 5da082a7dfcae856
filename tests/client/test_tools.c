/* test_tools.c - the parts of the command: sizes and keys, histogram, pattern. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <skv/mem.h>

#include "args.h"
#include "histogram.h"
#include "pattern.h"

static void sizes_are_taken_whole_or_refused(void **state)
{
	static const char *const bad[] = { "",
					   "K",
					   "1KB",
					   "1k",
					   "-1",
					   "1.5M",
					   " 1",
					   "1 ",
					   "18446744073709551616",
					   "99999999999T",
					   "0x10" };
	char text[24];
	uint64_t v;

	(void)state;
	assert_true(skv_args_size("4096", &v) && v == 4096);
	assert_true(skv_args_size("64K", &v) && v == 65536);
	assert_true(skv_args_size("16T", &v) && v == 16ull << 40);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_false(skv_args_size(bad[i], &v));
	skv_args_print_size(1536, text);
	assert_string_equal(text, "1.50 KiB");
	skv_args_print_size(7, text);
	assert_string_equal(text, "7 B");
}

static void numbers_have_bounds(void **state)
{
	uint64_t v;
	double d;

	(void)state;
	assert_true(skv_args_number("5", 1, 5, &v) && v == 5);
	assert_false(skv_args_number("6", 1, 5, &v));
	assert_false(skv_args_number("+5", 1, 5, &v));
	assert_false(skv_args_number("5x", 1, 5, &v));
	assert_true(skv_args_factor("0.5", &d) && d == 0.5);
	assert_false(skv_args_factor("0", &d));
	assert_false(skv_args_factor("nan", &d));
	assert_false(skv_args_factor("-1", &d));
	assert_false(skv_args_factor("1e999", &d));
}

static void keys_are_parsed_in_their_form(void **state)
{
	static const char *const ints[] = { "1", "18446744073709551615" };
	static const char *const hex[] = { "0123456789abcdef0123456789ABCDEF" };
	static const char *const bad[] = { "12x" };
	struct skv_args_keys k;
	enum slabkv_key_form form;

	(void)state;
	assert_null(skv_args_keys_parse(&k, SLABKV_KEYS_INT, ints, 2));
	assert_true(k.ints[1] == UINT64_MAX);
	skv_args_keys_free(&k);
	assert_null(skv_args_keys_parse(&k, SLABKV_KEYS_WIDE, hex, 1));
	assert_true(k.wide[0].hi == 0x0123456789abcdef && k.wide[0].lo == 0x0123456789abcdef);
	skv_args_keys_free(&k);
	assert_non_null(skv_args_keys_parse(&k, SLABKV_KEYS_INT, bad, 1));
	skv_args_keys_free(&k);
	assert_non_null(skv_args_keys_parse(&k, SLABKV_KEYS_WIDE, bad, 1));
	skv_args_keys_free(&k);
	assert_non_null(skv_args_keys_parse(&k, SLABKV_KEYS_STRING, bad, 0));
	skv_args_keys_free(&k);
	assert_true(skv_args_key_form("hex", &form) && form == SLABKV_KEYS_WIDE);
	assert_false(skv_args_key_form("base64", &form));
}

static void quantiles_are_close(void **state)
{
	struct skv_histogram *h = calloc(2, sizeof *h);
	uint64_t q;

	(void)state;
	assert_non_null(h);
	assert_int_equal(skv_histogram_quantile(&h[0], 0.5), 0);
	for (uint64_t v = 1; v <= 100000; v++)
		skv_histogram_add(&h[v % 2], v);
	skv_histogram_merge(&h[0], &h[1]);
	assert_int_equal(h[0].count, 100000);
	assert_int_equal(h[0].max, 100000);
	for (int i = 1; i < 100; i++) {
		q = skv_histogram_quantile(&h[0], i / 100.0);
		assert_true(q >= (uint64_t)i * 1000 &&
			    q <= (uint64_t)i * 1000 + (uint64_t)i * 1000 / 60 + 2);
	}
	assert_int_equal(skv_histogram_quantile(&h[0], 1), 100000);
	skv_histogram_add(&h[0], UINT64_MAX); /* beyond the last bucket: counted there */
	assert_int_equal(h[0].max, UINT64_MAX);
	free(h);
}

static void small_values_are_exact(void **state)
{
	struct skv_histogram *h = calloc(1, sizeof *h);

	(void)state;
	assert_non_null(h);
	for (uint64_t v = 0; v < 128; v++) {
		memset(h, 0, sizeof *h);
		skv_histogram_add(h, v);
		skv_histogram_add(h, UINT32_MAX);
		assert_int_equal(skv_histogram_quantile(h, 0), v);
	}
	free(h);
}

static void patterns_tell_every_byte(void **state)
{
	uint8_t a[1003], b[1003];
	uint64_t seed = skv_pattern_seed("m", 0, 7);

	(void)state;
	assert_true(seed != skv_pattern_seed("m", 1, 7) && seed != skv_pattern_seed("n", 0, 7) &&
		    seed != skv_pattern_seed("m", 0, 8));
	for (size_t n = 1; n <= sizeof a; n += 7) {
		skv_pattern_fill(a, n, seed);
		assert_true(skv_pattern_check(a, n, seed));
		for (size_t i = 0; i < n; i += 31) {
			memcpy(b, a, n);
			b[i] ^= 0x10;
			assert_false(skv_pattern_check(b, n, seed));
		}
		b[n - 1] = (uint8_t)~a[n - 1];
		memcpy(b, a, n - 1);
		assert_false(skv_pattern_check(b, n, seed));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_are_taken_whole_or_refused),
		cmocka_unit_test(numbers_have_bounds),
		cmocka_unit_test(keys_are_parsed_in_their_form),
		cmocka_unit_test(quantiles_are_close),
		cmocka_unit_test(small_values_are_exact),
		cmocka_unit_test(patterns_tell_every_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
