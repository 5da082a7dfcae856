/* Files as a whole: drained, removed, and made anew. */
#include "pooltest.h"

/* Two files of four units; slots of one unit each. */
static struct skv_pool *two_files(uint32_t *class_id)
{
	struct skv_pool *p = make_pool(4096, 0, 0);

	*class_id = make_class(p, 4096, 4096);
	assert_int_equal(skv_pool_add_file(p, 3, 4 * 4096), SKV_OK);
	assert_int_equal(skv_pool_add_file(p, 7, 4 * 4096), SKV_OK);
	return p;
}

static uint32_t file_of(const struct skv_pool *p, struct skv_run run)
{
	return slab_info(p, run.slab).place.file;
}

static void test_nothing_new_in_a_draining_file(void **state)
{
	uint32_t c;
	struct skv_pool *p = two_files(&c);
	struct skv_run run[4], one;
	struct skv_file_info info;
	uint32_t n, first;

	(void)state;
	assert_int_equal(skv_pool_available(p, c), 8);
	assert_int_equal(skv_pool_drain_file(p, 3, true), SKV_OK);
	check(p);
	assert_int_equal(skv_pool_available(p, c), 4);
	assert_int_equal(pool_stats(p).draining_bytes, 4 * 4096);
	assert_int_equal(pool_stats(p).free_unit_bytes, 8 * 4096);
	assert_int_equal(skv_pool_alloc_at(p, c, 3, 0, &one), SKV_E_NO_SPACE);
	assert_int_equal(skv_pool_alloc(p, c, 5, run, &n), SKV_E_NO_SPACE);
	for (uint32_t i = 0; i < 4; i++) {
		run[i] = alloc_run(p, c, 1);
		assert_int_equal(file_of(p, run[i]), 7);
	}
	/* Not any more: */
	assert_int_equal(skv_pool_drain_file(p, 3, false), SKV_OK);
	check(p);
	assert_int_equal(skv_pool_available(p, c), 4);
	assert_int_equal(file_of(p, alloc_run(p, c, 1)), 3);
	/* With slots in use; they stay as they are. */
	assert_int_equal(skv_pool_drain_file(p, 7, true), SKV_OK);
	assert_true(skv_pool_file(p, 7, &info));
	assert_true(info.draining);
	assert_int_equal(info.used_bytes, 4 * 4096);
	for (uint32_t unit = 0, slab; unit < 4; n = unit) {
		assert_true(skv_pool_next_slab(p, 7, &unit, &slab));
		assert_int_equal(slab_info(p, slab).place.unit, unit - 1);
	}
	assert_false(skv_pool_next_slab(p, 7, &n, &first) || skv_pool_next_slab(p, 8, &n, &first));
	assert_int_equal(info.assigned_bytes, 4 * 4096);
	assert_int_equal(skv_pool_remove_file(p, 7), SKV_E_IN_USE);
	skv_pool_free(p, run[0]);
	skv_pool_hold(p, run[1], 50);
	assert_int_equal(skv_pool_available(p, c), 3); /* of file 3 */
	skv_pool_free(p, run[2]);
	skv_pool_free(p, run[3]);
	assert_int_equal(skv_pool_remove_file(p, 7), SKV_E_IN_USE);
	assert_int_equal(skv_pool_release_due(p, 50), 1);
	check(p);
	assert_int_equal(skv_pool_remove_file(p, 7), SKV_OK);
	check(p);
	assert_int_equal(skv_pool_remove_file(p, 7), SKV_E_NOT_FOUND);
	assert_int_equal(pool_stats(p).files, 1);
	skv_pool_destroy(p);
}

static void test_a_slab_of_a_draining_file_takes_no_more(void **state)
{
	struct skv_pool *p = make_pool(4096, 0, 0);
	uint32_t c = make_class(p, 64, 64);
	struct skv_run run;

	(void)state;
	assert_int_equal(skv_pool_add_file(p, 0, 4096), SKV_OK);
	run = alloc_run(p, c, 2);
	assert_int_equal(skv_pool_drain_file(p, 0, true), SKV_OK);
	assert_int_equal(skv_pool_available(p, c), 0);
	skv_pool_drain(p, run.slab, true);
	skv_pool_drain(p, run.slab, false); /* the slab's own flag is not the file's */
	check(p);
	assert_int_equal(skv_pool_available(p, c), 0);
	skv_pool_free(p, sub_run(run, 0, 1));
	check(p);
	assert_int_equal(skv_pool_available(p, c), 0);
	assert_int_equal(skv_pool_drain_file(p, 0, false), SKV_OK);
	assert_int_equal(skv_pool_available(p, c), 63);
	assert_int_equal(alloc_run(p, c, 1).slab, run.slab);
	skv_pool_destroy(p);
}

static void test_recovery_takes_in_a_draining_file(void **state)
{
	uint32_t c;
	struct skv_pool *p = two_files(&c);
	struct skv_run run;

	(void)state;
	assert_int_equal(skv_pool_drain_file(p, 3, true), SKV_OK);
	assert_int_equal(skv_pool_take(p, c, (struct skv_slab_place){ 3, 2, 1 }, 0, 1, &run),
			 SKV_OK);
	check(p);
	skv_pool_free(p, run);
	check(p);
	assert_int_equal(skv_pool_available(p, c), 4);
	skv_pool_destroy(p);
}

static void test_victims_are_not_sought_there(void **state)
{
	struct skv_pool *p = make_pool(4096, 0, 0);
	uint32_t small = make_class(p, 64, 64), big = make_class(p, 4096, 4096), n_runs, *slabs;
	struct skv_run run;
	size_t n;

	(void)state;
	assert_int_equal(skv_pool_add_file(p, 0, 4096), SKV_OK);
	assert_int_equal(skv_pool_alloc(p, small, 64, &run, &n_runs), SKV_OK);
	assert_int_equal(skv_pool_drain_file(p, 0, true), SKV_OK);
	assert_int_equal(skv_pool_find_victims(p, big, &(struct skv_victims){ .ctx = NULL }, &slabs,
					       &n), SKV_E_NO_SPACE);
	skv_pool_destroy(p);
}

static void test_frozen_units_hold_a_file(void **state)
{
	uint32_t c;
	struct skv_pool *p = two_files(&c);
	struct skv_file_info info;

	(void)state;
	assert_int_equal(skv_pool_drain_file(p, 3, true), SKV_OK);
	skv_pool_freeze_free(p, 100);
	check(p);
	assert_int_equal(skv_pool_remove_file(p, 3), SKV_E_IN_USE);
	assert_true(skv_pool_file(p, 3, &info));
	assert_int_equal(info.frozen_bytes, 4 * 4096);
	assert_int_equal(skv_pool_release_due(p, 100), 8);
	check(p);
	assert_int_equal(skv_pool_available(p, c), 4);
	assert_int_equal(skv_pool_remove_file(p, 3), SKV_OK);
	/* The number may come again. */
	assert_int_equal(skv_pool_add_file(p, 3, 2 * 4096), SKV_OK);
	assert_int_equal(skv_pool_available(p, c), 6);
	check(p);
	skv_pool_destroy(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_new_in_a_draining_file),
		cmocka_unit_test(test_a_slab_of_a_draining_file_takes_no_more),
		cmocka_unit_test(test_recovery_takes_in_a_draining_file),
		cmocka_unit_test(test_victims_are_not_sought_there),
		cmocka_unit_test(test_frozen_units_hold_a_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
