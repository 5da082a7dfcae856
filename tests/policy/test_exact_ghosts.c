/* test_exact_ghosts.c - ghosts first in first out, against a plain list;
 * without memory there are fewer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <skv/mem.h>

#include "../../server/policy/exact_ghosts.h"

#define MOST 700u

struct plain {
	uint64_t hash[MOST + 1]; /* oldest first */
	uint32_t n;
};

static bool plain_take(struct plain *p, uint64_t hash)
{
	for (uint32_t i = 0; i < p->n; i++) {
		if (p->hash[i] != hash)
			continue;
		memmove(&p->hash[i], &p->hash[i + 1], (--p->n - i) * sizeof *p->hash);
		return true;
	}
	return false;
}

static void plain_add(struct plain *p, uint64_t hash, uint32_t want)
{
	plain_take(p, hash);
	for (uint32_t i = 0; i < 8 && p->n && p->n >= want; i++) /* no more by one */
		plain_take(p, p->hash[0]);
	if (want)
		p->hash[p->n++] = hash;
}

static uint64_t hash_of(uint32_t key) { return (key + 1) * 0x9e3779b97f4a7c15ull; }

static void the_newest_that_have_not_come_back(void **state)
{
	struct exact_ghosts g = { 0 };
	struct plain p = { .n = 0 };
	unsigned seed = 5;

	(void)state;
	for (uint32_t i = 0; i < 40000; i++) {
		uint64_t hash = hash_of((uint32_t)rand_r(&seed) % 1500);
		uint32_t want = i % 10000 < 6000 ? MOST : i % 10000 / 20;

		if (rand_r(&seed) % 3) {
			exact_ghosts_add(&g, hash, want);
			plain_add(&p, hash, want);
		} else {
			assert_int_equal(exact_ghosts_take(&g, hash), plain_take(&p, hash));
		}
		assert_int_equal(g.n, p.n);
	}
	while (p.n)
		assert_true(exact_ghosts_take(&g, p.hash[0]) && plain_take(&p, p.hash[0]));
	assert_int_equal(g.n, 0);
	exact_ghosts_destroy(&g);
}

static void many_are_found(void **state)
{
	struct exact_ghosts g = { 0 };

	(void)state;
	for (uint32_t i = 0; i < 100000; i++)
		exact_ghosts_add(&g, hash_of(i), 60000);
	assert_int_equal(g.n, 60000);
	for (uint32_t i = 0; i < 100000; i++)
		assert_int_equal(exact_ghosts_take(&g, hash_of(i)), i >= 40000);
	exact_ghosts_destroy(&g);
}

/* The existing ghosts are right, whatever allocation fails, and later ones are kept. */
static void without_memory_there_are_fewer(void **state)
{
	(void)state;
	for (unsigned long n = 1; n < 14; n++) {
		struct exact_ghosts g = { 0 };
		uint32_t found = 0;

		skv_mem_fail_at(n);
		for (uint32_t i = 0; i < 9000; i++)
			exact_ghosts_add(&g, hash_of(i), 8500);
		skv_mem_fail_at(0);
		exact_ghosts_add(&g, hash_of(9000), 8500);
		assert_true(exact_ghosts_take(&g, hash_of(9000)));
		for (uint32_t i = 0; i < 9000; i++)
			found += exact_ghosts_take(&g, hash_of(i));
		assert_true(found > 0 && g.n == 0);
		exact_ghosts_destroy(&g);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_newest_that_have_not_come_back),
		cmocka_unit_test(many_are_found),
		cmocka_unit_test(without_memory_there_are_fewer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
