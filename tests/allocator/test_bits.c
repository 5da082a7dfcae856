/* Bitmaps word by word against one bit at a time. */
#include "pooltest.h"

#include <bits.h>
#include <string.h>

#define N 200

static uint32_t rnd(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

static void check_all(const uint64_t *w, const bool *model)
{
	uint32_t ones = 0;

	for (uint32_t i = 0; i < N; i++) {
		uint32_t next[2] = { i, i };
		uint32_t before = 0;

		assert_int_equal(skv_bits_test(w, i), model[i]);
		ones += model[i];
		for (int v = 0; v < 2; v++) {
			while (next[v] < N && model[next[v]] != v)
				next[v]++;
			assert_int_equal(skv_bits_next(w, i, N, v), next[v]);
		}
		while (before < i && !model[i - 1 - before])
			before++;
		assert_int_equal(skv_bits_clear_before(w, i), before);
		/* A run of equal bits, and one more, which breaks it. */
		assert_true(skv_bits_all(w, i, next[!model[i]] - i, model[i]));
		if (next[!model[i]] < N)
			assert_false(skv_bits_all(w, i, next[!model[i]] - i + 1, model[i]));
	}
	assert_int_equal(skv_bits_count(w, N), ones);
}

static void test_random_ranges(void **state)
{
	uint64_t w[4] = { 0 };
	bool model[N] = { false };
	uint32_t seed = 7;

	(void)state;
	for (int step = 0; step < 300; step++) {
		uint32_t first = rnd(&seed) % N;
		uint32_t count = rnd(&seed) % (N - first + 1);
		bool value = rnd(&seed) & 1;

		if (step % 3 == 0 && count > 3)
			count = 3;
		skv_bits_fill(w, first, count, value);
		memset(model + first, value, count);
		check_all(w, model);
	}
	assert_int_equal(w[3] >> (N - 192), 0); /* never beyond n */
}

static void test_word_edges(void **state)
{
	uint64_t w[3] = { 0 };

	(void)state;
	assert_int_equal(skv_bits_words(1), 1);
	assert_int_equal(skv_bits_words(64), 1);
	assert_int_equal(skv_bits_words(65), 2);
	skv_bits_fill(w, 64, 64, true);
	assert_true(w[0] == 0 && w[1] == UINT64_MAX && w[2] == 0);
	skv_bits_fill(w, 63, 66, true);
	assert_true(w[0] == UINT64_C(1) << 63 && w[2] == 1);
	assert_int_equal(skv_bits_next(w, 0, 192, true), 63);
	assert_int_equal(skv_bits_next(w, 63, 192, false), 129);
	assert_int_equal(skv_bits_next(w, 129, 192, true), 192);
	assert_int_equal(skv_bits_clear_before(w, 63), 63);
	assert_int_equal(skv_bits_clear_before(w, 192), 63);
	assert_int_equal(skv_bits_clear_before(w, 0), 0);
	assert_true(skv_bits_all(w, 5, 0, true));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_ranges),
		cmocka_unit_test(test_word_edges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
