/* test_ghosts.c - what policies remember of blocks that went: found, ended, counted, bounded, without memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include <skv/mem.h>

#include "ghosts.h"

static uint64_t hash_of(uint64_t n)
{
	n = (n ^ n >> 30) * 0xbf58476d1ce4e5b9ull;
	n = (n ^ n >> 27) * 0x94d049bb133111ebull;
	return n ^ n >> 31;
}

/* Of n newest nearly all are found, with their classes; of those before, none. */
static void test_found(void **state)
{
	enum { WANT = 10000 };
	struct ghosts g = { 0 };
	uint32_t ended[GHOSTS_LINE], class, found = 0, n_ended = 0;

	(void)state;
	for (uint64_t i = 1; i <= 5 * WANT; i++) {
		uint32_t n = ghosts_add(&g, hash_of(i), (uint32_t)(i % 32), WANT, ended);

		assert_true(n <= GHOSTS_LINE);
		for (uint32_t k = 0; k < n; k++)
			assert_true(ended[k] < 32);
		n_ended += n;
	}
	assert_true(n_ended >= 4 * WANT - WANT / 2 && n_ended <= 4 * WANT + WANT / 5); /* told when somebody passes by */
	for (uint64_t i = 4 * WANT + 1; i <= 5 * WANT; i++) {
		if (!ghosts_take(&g, hash_of(i), &class))
			continue;
		found++;
		assert_true(class == i % 32 || found > WANT / 2); /* two of a line may look the same, hardly ever */
		assert_false(ghosts_take(&g, hash_of(i), &class)); /* once */
	}
	assert_true(found >= WANT * 95 / 100);
	found = 0;
	for (uint64_t i = 1; i <= 3 * WANT; i++)
		found += ghosts_take(&g, hash_of(i), &class);
	assert_true(found < 10);
	ghosts_destroy(&g);
}

static void test_bounded(void **state)
{
	struct ghosts g = { 0 };
	uint32_t ended[GHOSTS_LINE];

	(void)state;
	for (uint64_t want = 0; want < 100000; want += 997) {
		for (uint64_t i = 0; i < 50; i++)
			ghosts_add(&g, hash_of(want * 100 + i), 0, want, ended);
		assert_true((uint64_t)g.n_lines * sizeof(uint64_t[GHOSTS_LINE]) <= want * 14 + 1024);
		assert_true((uint64_t)g.n_lines * GHOSTS_LINE >= want);
	}
	for (uint64_t want = 100000; want > 100; want /= 2) { /* and given back */
		ghosts_add(&g, hash_of(want), 0, want, ended);
		assert_true((uint64_t)g.n_lines <= want / GHOSTS_LINE * 6 + 32);
	}
	ghosts_destroy(&g);
}

static void test_no_memory(void **state)
{
	struct ghosts g = { 0 };
	uint32_t ended[GHOSTS_LINE], class;

	(void)state;
	skv_mem_fail_at(1);
	assert_int_equal(ghosts_add(&g, hash_of(1), 0, 1000, ended), 0);
	skv_mem_fail_at(0);
	assert_false(ghosts_take(&g, hash_of(1), &class));
	for (uint64_t i = 2; i < 3000 && !g.n_lines; i++)
		ghosts_add(&g, hash_of(i), 0, 1000, ended);
	assert_true(g.n_lines > 0); /* asked again after a while */
	skv_mem_fail_at(1);
	for (uint64_t i = 0; i < 500; i++)
		ghosts_add(&g, hash_of(i + 5000), 3, 50000, ended); /* more are wanted: as many as there were */
	skv_mem_fail_at(0);
	assert_true(ghosts_take(&g, hash_of(5499), &class) && class == 3);
	ghosts_destroy(&g);
}

/* Numbers of ghosts begin anew after 2^32: nothing ends because of that, nothing is kept. */
static void test_wrap(void **state)
{
	struct ghosts g = { 0 };
	uint32_t ended[GHOSTS_LINE], class, found = 0;

	(void)state;
	ghosts_add(&g, hash_of(0), 0, 1000, ended);
	g.number = UINT32_MAX - 500;
	for (uint64_t i = 1; i <= 1000; i++)
		ghosts_add(&g, hash_of(i), 7, 1000, ended);
	for (uint64_t i = 1; i <= 1000; i++)
		found += ghosts_take(&g, hash_of(i), &class);
	assert_true(found >= 950);
	ghosts_destroy(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_found),
		cmocka_unit_test(test_bounded),
		cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_wrap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
