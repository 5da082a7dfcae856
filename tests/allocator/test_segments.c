/* Classes whose slots are handed out in order, segment by segment. */
#include "pooltest.h"

/* A file of two units, four segments of 1024 bytes a unit, three slots of 300 bytes a segment. */
static struct skv_pool *two_units(uint32_t *class_id)
{
	struct skv_pool *p = make_pool(4096, 0, 0);

	assert_int_equal(skv_pool_class_segmented(p, 300, 1024, class_id), SKV_OK);
	assert_int_equal(skv_pool_add_file(p, 0, 2 * 4096), SKV_OK);
	return p;
}

static uint64_t offset(const struct skv_pool *p, struct skv_run run)
{
	struct skv_slab_info info = slab_info(p, run.slab);

	return skv_slot_offset(&info, run.first);
}

static void test_geometry(void **state)
{
	uint32_t c, again, slab, slot;
	struct skv_pool *p = two_units(&c);
	struct skv_run run = alloc_run(p, c, 12);
	struct skv_slab_info info = slab_info(p, run.slab);

	(void)state;
	assert_int_equal(info.slots, 12);
	assert_int_equal(info.per_segment, 3);
	for (uint32_t i = 0; i < 12; i++) {
		assert_int_equal(skv_slot_offset(&info, i) % 4096, i / 3 * 1024 + i % 3 * 300);
		assert_true(skv_pool_at(p, 0, skv_slot_offset(&info, i), &slab, &slot));
		assert_int_equal(slot, i);
	}
	/* rest of the segment */
	assert_false(skv_pool_at(p, 0, skv_slot_offset(&info, 2) + 300, &slab, &slot));
	assert_int_equal(skv_pool_slots_in_file(p, c, 2 * 4096), 24);
	assert_int_equal(skv_pool_available(p, c), 12);
	assert_int_equal(skv_pool_class_segmented(p, 300, 1024, &again), SKV_OK);
	assert_int_equal(again, c);
	assert_int_equal(skv_pool_alloc_at(p, c, 0, 4096, &run), SKV_E_NO_SPACE);
	assert_int_equal(skv_pool_class_segmented(p, 300, 1000, &again), SKV_E_INVALID);
	assert_int_equal(skv_pool_class_segmented(p, 300, 256, &again), SKV_E_INVALID);
	assert_int_equal(skv_pool_class_segmented(p, 300, 8192, &again), SKV_E_INVALID);
	assert_int_equal(skv_pool_class_segmented(p, 0, 1024, &again), SKV_E_INVALID);
	/* Whole segments: a class of its own beside the one that is not segmented. */
	assert_int_equal(skv_pool_class_segmented(p, 1024, 1024, &again), SKV_OK);
	assert_int_not_equal(again, make_class(p, 1024, 1024));
	skv_pool_destroy(p);
}

static void test_not_again_before_the_segment_is_free(void **state)
{
	uint32_t c, first, count;
	struct skv_pool *p = two_units(&c);
	struct skv_run run = alloc_run(p, c, 5), next;

	(void)state;
	skv_pool_free(p, sub_run(run, 0, 2));
	check(p);
	assert_int_equal(slab_info(p, run.slab).dead, 2);
	assert_int_equal(pool_stats(p).dead_bytes, 600);
	assert_int_equal(skv_pool_available(p, c), 7 + 12);
	next = alloc_run(p, c, 1);
	assert_int_equal(next.first, 5); /* behind the others */
	skv_pool_segment(p, run.slab, 1, &first, &count);
	assert_true(first == 0 && count == 3);
	skv_pool_free(p, sub_run(run, 2, 1)); /* the last of the segment */
	check(p);
	assert_int_equal(slab_info(p, run.slab).dead, 0);
	assert_int_equal(skv_pool_available(p, c), 9 + 12);
	next = alloc_run(p, c, 3);
	assert_int_equal(offset(p, next) % 1024, 0);
	skv_pool_destroy(p);
}

/* A segment that was not filled is free when what was handed out of it is. */
static void test_held_slots_keep_a_segment(void **state)
{
	uint32_t c;
	struct skv_pool *p = two_units(&c);
	struct skv_run run = alloc_run(p, c, 5);

	(void)state;
	skv_pool_hold(p, sub_run(run, 4, 1), 100);
	skv_pool_free(p, sub_run(run, 3, 1));
	check(p);
	assert_int_equal(slab_info(p, run.slab).dead, 1);
	assert_int_equal(skv_pool_release_due(p, 100), 1);
	check(p);
	assert_int_equal(slab_info(p, run.slab).dead, 0);
	skv_pool_free(p, sub_run(run, 0, 1));
	skv_pool_hold(p, sub_run(run, 1, 2), 200);
	assert_int_equal(skv_pool_release_due(p, 200), 2);
	assert_int_equal(pool_stats(p).slabs, 0); /* the dead do not keep a slab */
	assert_int_equal(skv_pool_available(p, c), 24);
	check(p);
	skv_pool_destroy(p);
}

static void test_recovery_in_any_order(void **state)
{
	uint32_t c;
	struct skv_pool *p = two_units(&c);
	struct skv_slab_place place = { 0, 1, 1 };
	struct skv_run run;

	(void)state;
	assert_int_equal(skv_pool_take(p, c, place, 7, 1, &run), SKV_OK);
	check(p);
	assert_int_equal(slab_info(p, run.slab).dead, 1); /* slot 6 */
	assert_int_equal(skv_pool_take(p, c, place, 6, 1, &run), SKV_OK);
	check(p);
	assert_int_equal(slab_info(p, run.slab).dead, 0);
	assert_int_equal(skv_pool_take(p, c, place, 6, 1, &run), SKV_E_CORRUPT);
	/* over the end of a segment */
	assert_int_equal(skv_pool_take(p, c, place, 2, 3, &run), SKV_OK);
	check(p);
	assert_int_equal(slab_info(p, run.slab).dead, 2);
	assert_int_equal(slab_info(p, run.slab).used, 5);
	assert_int_equal(skv_pool_available(p, c), 12 + 12 - 7);
	assert_int_equal(skv_pool_take(p, c, place, 11, 2, &run), SKV_E_CORRUPT);
	skv_pool_destroy(p);
}

static void test_a_longer_file_keeps_the_dead(void **state)
{
	struct skv_pool *p = make_pool(4096, 0, 128);
	struct skv_run run;
	uint32_t c;

	(void)state;
	assert_int_equal(skv_pool_class_segmented(p, 300, 1024, &c), SKV_OK);
	assert_int_equal(skv_pool_add_file(p, 0, 4096), SKV_OK);
	run = alloc_run(p, c, 9);
	skv_pool_free(p, sub_run(run, 3, 1));
	assert_int_equal(skv_pool_available(p, c), 0);
	assert_int_equal(skv_pool_add_file(p, 0, 8192), SKV_OK);
	check(p);
	assert_int_equal(slab_info(p, run.slab).dead, 1);
	assert_int_equal(slab_info(p, run.slab).slots, 12);
	assert_int_equal(skv_pool_available(p, c), 3 + 9);
	skv_pool_destroy(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_geometry),
		cmocka_unit_test(test_not_again_before_the_segment_is_free),
		cmocka_unit_test(test_held_slots_keep_a_segment),
		cmocka_unit_test(test_recovery_in_any_order),
		cmocka_unit_test(test_a_longer_file_keeps_the_dead),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
