/* Allocating and freeing: which slots are chosen, all or nothing, slabs that come and go. */
#include "pooltest.h"

/* Returns a pool with one class of 64 slots in each unit, `units` units. */
static struct skv_pool *plain_pool(uint32_t units, uint32_t *c)
{
	struct skv_pool *p = make_pool(4096, 0, 0);

	*c = make_class(p, 64, 64);
	assert_int_equal(skv_pool_add_file(p, 1, 4096 * units), SKV_OK);
	return p;
}

static void test_one_run_in_the_tightest_gap(void **state)
{
	uint32_t c;
	struct skv_pool *p = plain_pool(1, &c);
	struct skv_run all = alloc_run(p, c, 64);

	(void)state;
	skv_pool_free(p, sub_run(all, 4, 10));
	skv_pool_free(p, sub_run(all, 20, 3));
	skv_pool_free(p, sub_run(all, 40, 5));
	check(p);
	assert_int_equal(pool_stats(p).largest_free_run, 10);
	assert_int_equal(alloc_run(p, c, 3).first, 20);
	assert_int_equal(alloc_run(p, c, 4).first, 40);
	assert_int_equal(alloc_run(p, c, 1).first, 44);
	assert_int_equal(alloc_run(p, c, 10).first, 4);
	assert_int_equal(skv_pool_available(p, c), 0);
	skv_pool_destroy(p);
}

static void test_the_fullest_slab_first(void **state)
{
	uint32_t c;
	struct skv_pool *p = plain_pool(3, &c);
	struct skv_run a = alloc_run(p, c, 64);
	struct skv_run b = alloc_run(p, c, 64);
	struct skv_run d = alloc_run(p, c, 64);

	(void)state;
	skv_pool_free(p, sub_run(a, 0, 30));
	skv_pool_free(p, sub_run(b, 0, 4));
	skv_pool_free(p, sub_run(d, 0, 50));
	assert_int_equal(alloc_run(p, c, 2).slab, b.slab);
	assert_int_equal(alloc_run(p, c, 3).slab, a.slab); /* b has 2 left */
	assert_int_equal(alloc_run(p, c, 28).slab, d.slab);
	assert_int_equal(alloc_run(p, c, 2).slab, b.slab);
	skv_pool_destroy(p);
}

/* A run in a sparse slab beats pieces in full ones; pieces beat a new slab. */
static void test_runs_before_fullness_before_new_slabs(void **state)
{
	uint32_t c;
	struct skv_pool *p = plain_pool(4, &c);
	struct skv_run a = alloc_run(p, c, 64);
	struct skv_run b = alloc_run(p, c, 64);
	struct skv_run runs[64];
	uint32_t n;

	(void)state;
	for (uint32_t i = 0; i < 20; i += 2)
		skv_pool_free(p, sub_run(a, i, 1));
	skv_pool_free(p, sub_run(b, 8, 50));
	assert_int_equal(alloc_run(p, c, 5).slab, b.slab);
	/* 45 in a row and 10 single ones: the long run first, then as few more as will do. */
	assert_int_equal(skv_pool_alloc(p, c, 48, runs, &n), SKV_OK);
	assert_int_equal(n, 4);
	assert_int_equal(runs[0].count, 45);
	assert_int_equal(runs[0].slab, b.slab);
	assert_int_equal(runs[1].slab, a.slab);
	assert_int_equal(runs[3].count, 1);
	assert_int_equal(pool_stats(p).slabs, 2);
	check(p);
	/* 7 are left. 8 need a new slab anyway, so they lie there in one run. */
	assert_int_equal(alloc_run(p, c, 8).count, 8);
	assert_int_equal(pool_stats(p).slabs, 3);
	skv_pool_destroy(p);
}

static void test_big_requests_span_slabs(void **state)
{
	uint32_t c;
	struct skv_pool *p = plain_pool(5, &c);
	struct skv_run *runs = skv_malloc(321 * sizeof *runs);
	uint32_t n = 77;

	(void)state;
	assert_int_equal(skv_pool_alloc(p, c, 321, runs, &n), SKV_E_NO_SPACE);
	assert_int_equal(n, 77); /* outputs only on success */
	assert_int_equal(pool_stats(p).slabs, 0);
	check(p);
	assert_int_equal(skv_pool_alloc(p, c, 320, runs, &n), SKV_OK);
	assert_int_equal(n, 5);
	assert_int_equal(pool_stats(p).free_unit_bytes, 0);
	for (uint32_t i = 0; i < n; i++)
		skv_pool_free(p, runs[i]);
	assert_int_equal(pool_stats(p).slabs, 0);
	assert_int_equal(pool_stats(p).free_unit_bytes, pool_stats(p).file_bytes);
	check(p);
	assert_int_equal(skv_pool_alloc(p, c, 0, runs, &n), SKV_OK);
	assert_int_equal(n, 0);
	skv_free(runs);
	skv_pool_destroy(p);
}

/* Empty slabs go back, so that another class can have their units. */
static void test_space_moves_between_classes(void **state)
{
	uint32_t c;
	struct skv_pool *p = plain_pool(4, &c);
	uint32_t big = make_class(p, 4096 * 4, 4096);
	struct skv_run runs[256];
	struct skv_run one;
	uint32_t n;

	(void)state;
	assert_int_equal(skv_pool_alloc(p, c, 256, runs, &n), SKV_OK);
	assert_int_equal(skv_pool_alloc(p, big, 1, &one, &n), SKV_E_NO_SPACE);
	for (uint32_t i = 0; i < 3; i++)
		skv_pool_free(p, runs[i]);
	assert_int_equal(skv_pool_alloc(p, big, 1, &one, &n), SKV_E_NO_SPACE);
	skv_pool_free(p, sub_run(runs[3], 0, 63));
	assert_int_equal(skv_pool_alloc(p, big, 1, &one, &n), SKV_E_NO_SPACE);
	skv_pool_free(p, sub_run(runs[3], 63, 1));
	assert_int_equal(skv_pool_alloc(p, big, 1, &one, &n), SKV_OK);
	assert_int_equal(slab_info(p, one.slab).place.units, 4);
	assert_int_equal(skv_pool_available(p, c), 0);
	check(p);
	skv_pool_destroy(p);
}

/* Small slabs are cut from what is broken already, so that a long window is left. */
static void test_long_windows_survive(void **state)
{
	uint32_t c;
	struct skv_pool *p = plain_pool(8, &c);
	uint32_t big = make_class(p, 4096 * 4, 4096);
	struct skv_run a = alloc_run(p, c, 64);
	struct skv_run b = alloc_run(p, c, 64);
	struct skv_run d = alloc_run(p, c, 64);

	(void)state;
	assert_int_equal(skv_pool_available(p, big), 1);
	skv_pool_free(p, b);
	d = alloc_run(p, c, 64); /* the hole, or beside it: never in the other half */
	assert_true(slab_info(p, d.slab).place.unit < 4);
	assert_int_equal(skv_pool_add_file(p, 2, 4096), SKV_OK);
	d = alloc_run(p, c, 64); /* not the long window either */
	assert_int_equal(skv_pool_available(p, big), 1);
	assert_true(slab_info(p, a.slab).place.unit < 4);
	check(p);
	skv_pool_destroy(p);
}

static void test_owners(void **state)
{
	uint32_t c;
	struct skv_pool *p = plain_pool(1, &c);
	struct skv_run a = alloc_run(p, c, 2);

	(void)state;
	assert_int_equal(skv_pool_owner(p, a.slab, 1), 0);
	skv_pool_set_owner(p, a.slab, a.first, 7);
	skv_pool_set_owner(p, a.slab, a.first + 1, UINT32_MAX);
	assert_int_equal(skv_pool_owner(p, a.slab, a.first), 7);
	assert_int_equal(skv_pool_owner(p, a.slab, a.first + 1), UINT32_MAX);
	check(p); /* any owner is the caller's business */
	assert_true(skv_pool_is_used(p, a.slab, a.first));
	assert_false(skv_pool_is_used(p, a.slab, a.first + 2));
	assert_false(skv_pool_is_used(p, a.slab, 64));
	assert_false(skv_pool_is_used(p, 9, 0));
	skv_pool_free(p, sub_run(a, 1, 1));
	assert_int_equal(alloc_run(p, c, 1).first, a.first + 1);
	assert_int_equal(skv_pool_owner(p, a.slab, a.first + 1), 0); /* not the old one */
	skv_pool_destroy(p);
}

static void count_slab(void *ctx, uint32_t slab)
{
	(void)slab;
	++*(uint32_t *)ctx;
}

static void test_slab_handles(void **state)
{
	uint32_t c;
	struct skv_pool *p = plain_pool(2, &c);
	struct skv_run a = alloc_run(p, c, 64);
	struct skv_run b = alloc_run(p, c, 1);
	struct skv_slab_info info;
	uint32_t n = 0;

	(void)state;
	skv_pool_each_slab(p, count_slab, &n);
	assert_int_equal(n, 2);
	skv_pool_free(p, a);
	assert_false(skv_pool_slab(p, a.slab, &info));
	assert_false(skv_pool_slab(p, 1000, &info));
	info = slab_info(p, b.slab);
	assert_int_equal(info.used, 1);
	assert_int_equal(info.held, 0);
	n = 0;
	skv_pool_each_slab(p, count_slab, &n);
	assert_int_equal(n, 1);
	skv_pool_destroy(p);
}

static void test_drain(void **state)
{
	uint32_t c;
	struct skv_pool *p = plain_pool(2, &c);
	struct skv_run a = alloc_run(p, c, 60);

	(void)state;
	skv_pool_drain(p, a.slab, true);
	check(p);
	assert_true(slab_info(p, a.slab).draining);
	assert_int_equal(skv_pool_available(p, c), 64);
	assert_int_not_equal(alloc_run(p, c, 1).slab, a.slab);
	skv_pool_free(p, sub_run(a, 0, 30));
	check(p);
	assert_int_equal(skv_pool_available(p, c), 63);
	skv_pool_drain(p, a.slab, false);
	check(p);
	assert_int_equal(skv_pool_available(p, c), 63 + 34);
	skv_pool_drain(p, a.slab, true);
	skv_pool_free(p, sub_run(a, 30, 30));
	assert_int_equal(pool_stats(p).slabs, 1);
	check(p);
	skv_pool_destroy(p);
}

/* Many slabs whose hints promise more than there is: the run is found all the same, or the request
 * comes in pieces, but it never fails while there is room. */
static void test_stale_hints(void **state)
{
	uint32_t c;
	struct skv_pool *p = plain_pool(40, &c);
	struct skv_run slabs[40];
	struct skv_run runs[64];
	uint32_t n;

	(void)state;
	for (uint32_t i = 0; i < 40; i++)
		slabs[i] = alloc_run(p, c, 64);
	for (uint32_t i = 0; i < 40; i++)
		skv_pool_free(p, sub_run(slabs[i], 0, 40));
	for (uint32_t i = 0; i < 40; i++) /* breaks the runs of 40; the bounds stay too high */
		assert_int_equal(skv_pool_alloc(p, c, 20, runs, &n), SKV_OK);
	for (uint32_t want = 30; want > 0; want--) {
		assert_int_equal(skv_pool_alloc(p, c, want, runs, &n), SKV_OK);
		check(p);
	}
	skv_pool_destroy(p);
}

static void test_stats(void **state)
{
	uint32_t c;
	struct skv_pool *p = plain_pool(3, &c);
	uint32_t odd = make_class(p, 136, 8);
	struct skv_run a = alloc_run(p, c, 10);
	struct skv_pool_stats st;

	(void)state;
	alloc_run(p, odd, 5);
	skv_pool_hold(p, sub_run(a, 0, 3), 100);
	st = pool_stats(p);
	assert_int_equal(st.files, 1);
	assert_int_equal(st.file_bytes, 3 * 4096);
	assert_int_equal(st.slabs, 2);
	assert_int_equal(st.assigned_bytes, 2 * 4096);
	assert_int_equal(st.slot_bytes, 4096 + 30 * 136);
	assert_int_equal(st.used_bytes, 7 * 64 + 5 * 136);
	assert_int_equal(st.held_bytes, 3 * 64);
	assert_int_equal(st.free_unit_bytes, 4096);
	assert_int_equal(st.largest_free_run, 54);
	skv_pool_destroy(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_run_in_the_tightest_gap),
		cmocka_unit_test(test_the_fullest_slab_first),
		cmocka_unit_test(test_runs_before_fullness_before_new_slabs),
		cmocka_unit_test(test_big_requests_span_slabs),
		cmocka_unit_test(test_space_moves_between_classes),
		cmocka_unit_test(test_long_windows_survive),
		cmocka_unit_test(test_owners),
		cmocka_unit_test(test_slab_handles),
		cmocka_unit_test(test_drain),
		cmocka_unit_test(test_stale_hints),
		cmocka_unit_test(test_stats),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
