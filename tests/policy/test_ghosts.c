/* test_ghosts.c - what policies remember of blocks that went: exactly the newest, ended in order,
 * bounded, without memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <skv/mem.h>

#include "ghosts.h"

static uint64_t hash_of(uint64_t n)
{
	n = (n ^ n >> 30) * 0xbf58476d1ce4e5b9ull;
	n = (n ^ n >> 27) * 0x94d049bb133111ebull;
	return n ^ n >> 31;
}

/* Of key i: every third falls on the end of the table. */
static uint64_t crowded(uint64_t i) { return hash_of(i) | (i % 3 ? 0 : 0xf000000000000000ull); }

/* The plainest thing that does the same, oldest first; 0 = came back. */
#define ADDS 30000u
struct plain {
	uint64_t hash[ADDS];
	uint32_t class[ADDS];
	uint32_t oldest, next;
};

static int plain_take(struct plain *p, uint64_t hash)
{
	for (uint32_t i = p->oldest; i < p->next; i++) {
		if (p->hash[i] != hash)
			continue;
		p->hash[i] = 0;
		return (int)p->class[i];
	}
	return -1;
}

/* Notes follow from the class. */
static struct ghost ghost_of(uint32_t class) { return (struct ghost){ class, class * 1001 }; }

static uint32_t plain_add(struct plain *p, uint64_t hash, uint32_t class, uint32_t want,
			  struct ghost *ended)
{
	uint32_t n = 0;

	for (uint32_t left = GHOSTS_END; left && p->next - p->oldest >= want; left--, p->oldest++)
		if (p->hash[p->oldest])
			ended[n++] = ghost_of(p->class[p->oldest]);
	p->hash[p->next] = hash;
	p->class[p->next++] = class;
	return n;
}

/* However keys fall, and whichever come back. */
static void test_first_in_first_out(void **state)
{
	static struct plain p;
	struct ghosts g = { .notes = true };
	unsigned seed = 5;

	(void)state;
	for (uint32_t i = 0; i < ADDS; i++) {
		uint64_t hash = crowded(i), old = crowded(i - (uint32_t)rand_r(&seed) % 1500);
		uint32_t want = i < 20000 ? 1000 : 700;
		struct ghost ended[GHOSTS_END], right[GHOSTS_END], found = { 99, 0 };
		uint32_t n = ghosts_add(&g, hash, ghost_of(i % 32), want, ended);

		assert_int_equal(n, plain_add(&p, hash, i % 32, want, right));
		assert_memory_equal(ended, right, n * sizeof *ended);
		if (rand_r(&seed) % 3 == 0) {
			int taken = plain_take(&p, old);

			assert_int_equal(ghosts_find(&g, old, &found), taken >= 0);
			assert_int_equal(ghosts_take(&g, old, &found), taken >= 0);
			assert_true(taken < 0 || ((uint32_t)taken == found.class &&
						  found.note == ghost_of(found.class).note));
			assert_false(ghosts_find(&g, old, &found));
			assert_false(ghosts_take(&g, old, &found)); /* once */
		}
	}
	assert_int_equal(g.used, p.next - p.oldest);
	ghosts_destroy(&g);
}

static void test_bounded(void **state)
{
	struct ghosts g = { 0 };
	struct ghost ended[GHOSTS_END];

	(void)state;
	for (uint64_t want = 0; want < 100000; want += 997) {
		for (uint64_t i = 0; i < 50; i++)
			ghosts_add(&g, hash_of(want * 100 + i), ghost_of(0), want, ended);
		assert_true((uint64_t)g.cap * sizeof *g.ring +
				    (uint64_t)g.n_cells * sizeof *g.cell <=
			    want * 17 + 4096);
		assert_true((uint64_t)g.cap * 9 / 8 + 1 >= want && g.n_cells > g.cap);
	}
	for (uint64_t want = 100000; want > 100; want /= 2) { /* and given back */
		ghosts_add(&g, hash_of(want), ghost_of(0), want, ended);
		assert_true(g.cap <= want * 4 + 100);
	}
	ghosts_destroy(&g);
}

static void test_no_memory(void **state)
{
	struct ghost ended[GHOSTS_END], found;

	(void)state;
	for (unsigned long n = 1; n <= 3; n++) {
		struct ghosts g = { .notes = true };

		skv_mem_fail_at(n);
		assert_int_equal(ghosts_add(&g, hash_of(1), ghost_of(0), 1000, ended), 0);
		skv_mem_fail_at(0);
		assert_false(ghosts_take(&g, hash_of(1), &found));
		for (uint64_t i = 2; i < 3000 && !g.cap; i++)
			ghosts_add(&g, hash_of(i), ghost_of(0), 1000, ended);
		assert_true(g.cap > 0); /* asked again after a while */
		skv_mem_fail_at(n);
		/* more are wanted: as many as there were */
		for (uint64_t i = 0; i < 500; i++)
			ghosts_add(&g, hash_of(i + 5000), ghost_of(3), 50000, ended);
		skv_mem_fail_at(0);
		assert_true(ghosts_take(&g, hash_of(5499), &found) && found.class == 3);
		ghosts_destroy(&g);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_in_first_out),
		cmocka_unit_test(test_bounded),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
