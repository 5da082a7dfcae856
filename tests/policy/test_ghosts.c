/* test_ghosts.c - the ghosts of evicted blocks: nearly all of the newest, each told once when it
 * expires, bounded, without memory. */
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

static struct ghost ghost_of(uint64_t i)
{
	return (struct ghost){ .class = i % GHOSTS_CLASSES, .age = i % 5000 };
}

#define WANT 20000u
#define ADDS (10u * WANT)
#define SLACK (WANT / 32)

/* The expired ghosts. */
struct told {
	uint64_t n, of_class[GHOSTS_CLASSES], age_sum;
};

static void note(void *ctx, struct ghost ghost, uint32_t n)
{
	struct told *t = ctx;

	assert_true(ghost.class < GHOSTS_CLASSES && n > 0);
	t->n += n;
	t->of_class[ghost.class] += n;
	t->age_sum += ghost.age * n;
}

static void add(struct ghosts *g, uint64_t i, uint64_t want, struct told *t)
{
	ghosts_add(g, hash_of(i), ghost_of(i), want, note, t);
}

/* How ghosts of a random age are found. */
struct finds {
	uint64_t young, missing, late, wrong, twice, takes;
};

/* Looks for the ghost that was added `back` before the last one, number i. Takes every second. */
static void look_back(struct ghosts *g, uint64_t i, uint64_t back, uint8_t *came_back,
		      struct finds *f)
{
	const uint64_t old = i - back, age = old % 5000;
	struct ghost found;

	f->young += back < WANT - SLACK;
	if (!ghosts_find(g, hash_of(old), &found)) {
		f->missing += back < WANT - SLACK;
		return;
	}
	f->late += back > WANT + SLACK;
	if (hash_of(i) % 2)
		return;
	f->wrong += found.class != old % GHOSTS_CLASSES ||
		    found.age > age * 5 / 4 + back + SLACK ||
		    found.age + SLACK < age * 3 / 4 + back;
	assert_true(ghosts_take(g, hash_of(old), &found));
	came_back[old] = 1;
	f->takes++;
	f->twice += ghosts_find(g, hash_of(old), &found);
}

/* Ghosts younger than a life are found, older ones are not; found and expired ghosts are ones that
 * were added. Some come back, and are ghosts no more. */
static void test_the_newest(void **state)
{
	static uint8_t came_back[ADDS];
	struct ghosts g = { 0 };
	struct finds f = { 0 };
	struct told t = { 0 };
	unsigned seed = 5;

	(void)state;
	for (uint64_t i = 0; i < ADDS; i++) {
		uint64_t back = (uint64_t)rand_r(&seed) % (WANT * 3 / 2);

		add(&g, i, WANT, &t);
		if (back <= i && !came_back[i - back])
			look_back(&g, i, back, came_back, &f);
	}
	assert_true(f.takes > ADDS / 10 && f.young > ADDS / 3);
	assert_true(f.missing < f.young / 500 && f.late < f.young / 500);
	assert_true(f.wrong < f.takes / 500 && f.twice < f.takes / 500); /* a tag of two keys */
	/* Each was told or came back, but those of the last life. */
	assert_true(t.n + f.takes <= ADDS - WANT * 3 / 4 && t.n + f.takes + WANT * 5 / 4 > ADDS);
	for (uint32_t c = 0; c < GHOSTS_CLASSES; c++)
		assert_true(t.of_class[c] > t.n / 10);
	assert_true(t.age_sum / t.n > WANT + 2300 && t.age_sum / t.n < WANT + 2700);
	ghosts_destroy(&g);
}

/* A life is as long as the last call says. */
static void test_shorter_lives(void **state)
{
	struct ghosts g = { 0 };
	struct told t = { 0 };
	struct ghost found;

	(void)state;
	for (uint64_t i = 0; i < WANT; i++)
		add(&g, i, WANT, &t);
	assert_int_equal(t.n, 0);
	add(&g, WANT, WANT / 2, &t);
	assert_true(t.n > WANT / 2 - 4 * SLACK && t.n < WANT / 2 + SLACK);
	assert_false(ghosts_find(&g, hash_of(WANT / 4), &found));
	assert_true(ghosts_find(&g, hash_of(WANT - 1), &found));
	ghosts_destroy(&g);
}

/* All in one bucket: the newest one is kept, and each is told once all the same. */
static void test_crowded(void **state)
{
	struct ghosts g = { 0 };
	struct told t = { 0 };
	struct ghost found;

	(void)state;
	for (uint64_t i = 1; i <= 4 * WANT; i++) {
		ghosts_add(&g, i % 65535 + 1, ghost_of(i), WANT, note, &t);
		assert_true(ghosts_find(&g, i % 65535 + 1, &found));
	}
	assert_true(t.n < 3 * WANT && t.n > 3 * WANT - 4 * SLACK);
	ghosts_destroy(&g);
}

static void test_bounded(void **state)
{
	struct ghosts g = { 0 };
	struct told t = { 0 };

	(void)state;
	for (uint64_t want = 0; want < 100000; want += 997) {
		for (uint64_t i = 0; i < 50; i++)
			add(&g, want * 100 + i, want, &t);
		assert_true((uint64_t)g.n_buckets * 64 <= want * 8 + 4096);
		assert_true(g.fits * 9 / 8 + 1 >= want);
	}
	for (uint64_t want = 100000; want > 100; want /= 2) { /* and given back */
		add(&g, want, want, &t);
		assert_true(g.fits <= want * 4 + 100);
	}
	ghosts_destroy(&g);
}

static void test_no_memory(void **state)
{
	struct told t = { 0 };
	struct ghost found;

	(void)state;
	for (unsigned long n = 1; n <= 2; n++) {
		struct ghosts g = { 0 };

		skv_mem_fail_at(n);
		add(&g, 1, 1000, &t);
		skv_mem_fail_at(0);
		assert_false(ghosts_take(&g, hash_of(1), &found));
		for (uint64_t i = 2; i < 3000 && !g.n_buckets; i++)
			add(&g, i, 1000, &t);
		assert_true(g.n_buckets > 0); /* asked again after a while */
		skv_mem_fail_at(n);
		/* more are wanted: as many as there were */
		for (uint64_t i = 0; i < 500; i++)
			add(&g, i + 5000, 50000, &t);
		skv_mem_fail_at(0);
		assert_true(ghosts_take(&g, hash_of(5499), &found) &&
			    found.class == 5499 % GHOSTS_CLASSES);
		ghosts_destroy(&g);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_newest),
		cmocka_unit_test(test_shorter_lives),
		cmocka_unit_test(test_crowded),
		cmocka_unit_test(test_bounded),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
