/* Quarantine: nothing comes back early, everything comes back, freezing after an unclean boot. */
#include "pooltest.h"

static struct skv_pool *plain_pool(uint32_t units, uint32_t *c)
{
	struct skv_pool *p = make_pool(4096, 0, 0);

	*c = make_class(p, 64, 64);
	assert_int_equal(skv_pool_add_file(p, 1, 4096 * units), SKV_OK);
	return p;
}

struct seen {
	uint32_t n;
	struct skv_run runs[16];
	uint64_t until[16];
};

static void see(void *ctx, struct skv_run run, uint64_t until_ms)
{
	struct seen *s = ctx;

	assert_true(s->n < 16);
	s->runs[s->n] = run;
	s->until[s->n++] = until_ms;
}

static struct seen holds(const struct skv_pool *p)
{
	struct seen s = { 0 };

	skv_pool_each_hold(p, see, &s);
	return s;
}

static void test_held_until_its_time(void **state)
{
	uint32_t c;
	struct skv_pool *p = plain_pool(1, &c);
	struct skv_run a = alloc_run(p, c, 64);
	struct skv_run run;
	uint32_t n;

	(void)state;
	assert_int_equal(skv_pool_next_due(p), UINT64_MAX);
	skv_pool_hold(p, sub_run(a, 0, 10), 500);
	skv_pool_hold(p, sub_run(a, 20, 5), 300);
	skv_pool_hold(p, sub_run(a, 30, 1), 400);
	check(p);
	assert_false(skv_pool_is_used(p, a.slab, 0));
	assert_int_equal(skv_pool_next_due(p), 300);
	assert_int_equal(skv_pool_alloc(p, c, 1, &run, &n), SKV_E_NO_SPACE);
	assert_int_equal(skv_pool_release_due(p, 299), 0);
	assert_int_equal(skv_pool_alloc(p, c, 1, &run, &n), SKV_E_NO_SPACE);
	assert_int_equal(skv_pool_release_due(p, 300), 5);
	assert_int_equal(skv_pool_next_due(p), 400);
	assert_int_equal(alloc_run(p, c, 5).first, 20);
	assert_int_equal(skv_pool_release_due(p, 10000), 11);
	assert_int_equal(skv_pool_next_due(p), UINT64_MAX);
	assert_int_equal(skv_pool_available(p, c), 11);
	check(p);
	skv_pool_destroy(p);
}

static void test_a_slab_closes_with_its_last_hold(void **state)
{
	uint32_t c;
	struct skv_pool *p = plain_pool(1, &c);
	struct skv_run a = alloc_run(p, c, 3);

	(void)state;
	skv_pool_hold(p, sub_run(a, 1, 1), 10);
	skv_pool_hold(p, sub_run(a, 0, 1), 20);
	skv_pool_free(p, sub_run(a, 2, 1));
	assert_int_equal(pool_stats(p).slabs, 1);
	assert_int_equal(skv_pool_release_due(p, 10), 1);
	assert_int_equal(pool_stats(p).slabs, 1);
	assert_int_equal(skv_pool_release_due(p, 20), 1);
	assert_int_equal(pool_stats(p).slabs, 0);
	check(p);
	skv_pool_destroy(p);
}

/* Slot by slot with one time: one hold. Another time, or a gap: another one. */
static void test_neighbours_share_a_hold(void **state)
{
	uint32_t c;
	struct skv_pool *p = plain_pool(1, &c);
	struct skv_run a = alloc_run(p, c, 64);
	struct seen s;

	(void)state;
	for (uint32_t i = 0; i < 8; i++)
		skv_pool_hold(p, sub_run(a, i, 1), 50);
	skv_pool_hold(p, sub_run(a, 8, 2), 60);
	skv_pool_hold(p, sub_run(a, 11, 2), 60);
	skv_pool_hold(p, sub_run(a, 13, 0), 60);
	check(p);
	s = holds(p);
	assert_int_equal(s.n, 3);
	assert_int_equal(s.runs[0].first, 0);
	assert_int_equal(s.runs[0].count, 8);
	assert_int_equal(s.until[0], 50);
	assert_int_equal(s.runs[1].first, 8);
	assert_int_equal(s.runs[1].count, 2);
	assert_int_equal(s.runs[2].first, 11);
	assert_int_equal(s.until[2], 60);
	assert_int_equal(skv_pool_release_due(p, 50), 8);
	/* The index of the ended hold is used again and must not be extended. */
	skv_pool_hold(p, sub_run(a, 13, 1), 60);
	skv_pool_hold(p, sub_run(a, 40, 1), 50);
	check(p);
	assert_int_equal(skv_pool_release_due(p, 59), 1);
	assert_int_equal(skv_pool_release_due(p, 60), 5);
	check(p);
	skv_pool_destroy(p);
}

static void test_without_memory_holds_are_only_longer(void **state)
{
	uint32_t c;
	struct skv_pool *p = plain_pool(2, &c);
	struct skv_run a = alloc_run(p, c, 64);
	struct skv_run b = alloc_run(p, c, 64);

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		skv_mem_fail_at(1);
		skv_pool_hold(p, sub_run(a, i, 1), 100 + i);
		assert_int_equal(skv_mem_count(), 1);
	}
	skv_mem_fail_at(1);
	skv_pool_hold(p, b, 50);
	skv_mem_fail_at(0);
	check(p);
	assert_int_equal(pool_stats(p).held_bytes, 67 * 64);
	assert_int_equal(holds(p).until[0], 102);
	assert_int_equal(skv_pool_next_due(p), 102);
	assert_int_equal(skv_pool_release_due(p, 101), 0);
	assert_int_equal(skv_pool_release_due(p, 102), 67);
	assert_int_equal(skv_pool_next_due(p), UINT64_MAX);
	assert_int_equal(pool_stats(p).slabs, 1);
	check(p);
	skv_pool_destroy(p);
}

static void test_freeze(void **state)
{
	uint32_t c;
	struct skv_pool *p = plain_pool(3, &c);
	struct skv_run a = alloc_run(p, c, 10);
	struct skv_run run;
	uint32_t n;

	(void)state;
	skv_pool_hold(p, sub_run(a, 0, 2), 50);
	skv_pool_freeze_free(p, 1000);
	check(p);
	assert_int_equal(skv_pool_available(p, c), 0);
	assert_int_equal(skv_pool_alloc(p, c, 1, &run, &n), SKV_E_NO_SPACE);
	assert_int_equal(pool_stats(p).held_bytes, 56 * 64);
	/* Held slots have an earlier user to wait for as well: they may have been given away
	 * since. */
	assert_int_equal(skv_pool_release_due(p, 50), 0);
	/* Slots freed later, and files added later, are not concerned. */
	skv_pool_free(p, sub_run(a, 9, 1));
	assert_int_equal(skv_pool_available(p, c), 1);
	assert_int_equal(skv_pool_add_file(p, 2, 4096), SKV_OK);
	assert_int_equal(skv_pool_add_file(p, 1, 4 * 4096), SKV_OK); /* grows while frozen */
	assert_int_equal(skv_pool_available(p, c), 1 + 2 * 64);
	check(p);
	assert_int_equal(skv_pool_next_due(p), 1000);
	assert_int_equal(skv_pool_release_due(p, 999), 0);
	/* 2 + 54 slots and 2 units. */
	assert_int_equal(skv_pool_release_due(p, 1000), 58);
	assert_int_equal(skv_pool_available(p, c), 1 + 56 + 4 * 64);
	assert_int_equal(skv_pool_next_due(p), UINT64_MAX);
	skv_pool_free(p, sub_run(a, 2, 7));
	assert_int_equal(pool_stats(p).slabs, 0);
	check(p);
	skv_pool_destroy(p);
}

static void test_freeze_twice_and_without_memory(void **state)
{
	uint32_t c;
	struct skv_pool *p = plain_pool(4, &c);
	struct skv_run a = alloc_run(p, c, 1);

	(void)state;
	skv_pool_freeze_free(p, 1000);
	skv_pool_freeze_free(p, 500); /* nothing is free: changes nothing */
	assert_int_equal(skv_pool_next_due(p), 1000);
	assert_int_equal(skv_pool_release_due(p, 1000), 63 + 3);
	skv_mem_fail_at(1);
	skv_pool_hold(p, a, 1200);
	skv_mem_fail_at(0);
	assert_int_equal(skv_pool_release_due(p, 1200), 1);
	a = alloc_run(p, c, 1);
	skv_pool_freeze_free(p, 2000);
	check(p);
	assert_int_equal(skv_pool_available(p, c), 0);
	assert_int_equal(skv_pool_release_due(p, 2000), 66);
	skv_pool_free(p, a);
	assert_int_equal(skv_pool_available(p, c), 256);
	check(p);
	skv_pool_destroy(p);
}

/* Many holds with random times come back in order. */
static void test_heap_order(void **state)
{
	uint32_t c;
	struct skv_pool *p = plain_pool(32, &c);
	uint32_t due[100] = { 0 };
	uint32_t seed = 3;

	(void)state;
	for (uint32_t i = 0; i < 32 * 64 / 2; i++) {
		struct skv_run a = alloc_run(p, c, 2);

		for (uint32_t k = 0; k < 2; k++) {
			uint32_t at;

			seed = seed * 1664525u + 1013904223u;
			at = (seed >> 8) % 100;
			due[at]++;
			skv_pool_hold(p, sub_run(a, k, 1), at);
		}
	}
	for (uint32_t t = 0; t < 100; t++) {
		assert_int_equal(skv_pool_release_due(p, t), due[t]);
		check(p);
	}
	assert_int_equal(pool_stats(p).slabs, 0);
	skv_pool_destroy(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_held_until_its_time),
		cmocka_unit_test(test_a_slab_closes_with_its_last_hold),
		cmocka_unit_test(test_neighbours_share_a_hold),
		cmocka_unit_test(test_without_memory_holds_are_only_longer),
		cmocka_unit_test(test_freeze),
		cmocka_unit_test(test_freeze_twice_and_without_memory),
		cmocka_unit_test(test_heap_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
