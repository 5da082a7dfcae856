/* Recovery: exact slots by place; what gives way and what never does. */
#include "pooltest.h"

static struct skv_slab_place at(uint32_t file, uint32_t unit, uint32_t units)
{
	return (struct skv_slab_place){ .file = file, .unit = unit, .units = units };
}

static struct skv_pool *plain_pool(uint32_t units)
{
	struct skv_pool *p = make_pool(4096, 0, 0);

	assert_int_equal(skv_pool_add_file(p, 1, 4096 * units), SKV_OK);
	return p;
}

static struct skv_run take(struct skv_pool *p, uint32_t c, struct skv_slab_place place,
			   uint32_t first, uint32_t count)
{
	struct skv_run run;

	assert_int_equal(skv_pool_take(p, c, place, first, count, &run), SKV_OK);
	assert_int_equal(run.first, first);
	assert_int_equal(run.count, count);
	check(p);
	return run;
}

static void refuse(struct skv_pool *p, uint32_t c, struct skv_slab_place place, uint32_t first,
		   uint32_t count)
{
	struct skv_pool_stats before = pool_stats(p);
	struct skv_run run;

	assert_int_equal(skv_pool_take(p, c, place, first, count, &run), SKV_E_CORRUPT);
	check(p);
	assert_int_equal(pool_stats(p).used_bytes, before.used_bytes);
	assert_int_equal(pool_stats(p).held_bytes, before.held_bytes);
	assert_int_equal(pool_stats(p).slabs, before.slabs);
}

static void test_take_opens_the_slab(void **state)
{
	struct skv_pool *p = plain_pool(8);
	uint32_t c = make_class(p, 64, 64);
	struct skv_run a = take(p, c, at(1, 5, 1), 10, 4);
	struct skv_run b = take(p, c, at(1, 5, 1), 20, 1);
	struct skv_slab_info info = slab_info(p, a.slab);

	(void)state;
	assert_int_equal(a.slab, b.slab);
	assert_int_equal(info.place.unit, 5);
	assert_int_equal(info.first_offset, 5 * 4096);
	assert_int_equal(info.used, 5);
	assert_int_equal(skv_pool_owner(p, a.slab, 10), 0);
	/* A length that is not the preferred one: the fallback of an earlier life. */
	a = take(p, c, at(1, 0, 4), 200, 56);
	assert_int_equal(slab_info(p, a.slab).slots, 256);
	skv_pool_free(p, a);
	skv_pool_free(p, b);
	check(p);
	skv_pool_destroy(p);
}

static void test_take_refuses_what_does_not_fit(void **state)
{
	struct skv_pool *p = plain_pool(6);
	uint32_t c = make_class(p, 64, 64);
	uint32_t other = make_class(p, 100, 4);

	(void)state;
	take(p, c, at(1, 2, 1), 0, 8);
	refuse(p, c, at(2, 0, 1), 0, 1);                   /* no such file */
	refuse(p, c, at(1, 0, 0), 0, 1);                   /* no units */
	refuse(p, c, at(1, 0, 3), 0, 1);                   /* no power of two */
	refuse(p, c, at(1, 3, 2), 0, 1);                   /* not aligned */
	refuse(p, c, at(1, 4, 4), 0, 1);                   /* beyond the end */
	refuse(p, c, at(1, 6, 1), 0, 1);
	refuse(p, c, at(1, UINT32_MAX, 1), 0, 1);
	refuse(p, c, at(1, 0, UINT32_C(1) << 31), 0, 1);
	refuse(p, c, at(1, 0, 1), 64, 1);                  /* no such slot */
	refuse(p, c, at(1, 0, 1), 60, 5);
	refuse(p, c, at(1, 0, 1), UINT32_MAX, UINT32_MAX);
	refuse(p, c, at(1, 0, 1), 0, 0);
	refuse(p, c, at(1, 2, 1), 7, 2);                   /* used */
	refuse(p, other, at(1, 2, 1), 20, 1);              /* another class uses the slab */
	refuse(p, c, at(1, 2, 2), 0, 1);                   /* the same class, another length */
	refuse(p, c, at(1, 0, 4), 0, 1);
	skv_pool_destroy(p);
}

static void test_held_slots_give_way(void **state)
{
	struct skv_pool *p = plain_pool(2);
	uint32_t c = make_class(p, 64, 64);
	struct skv_run a = take(p, c, at(1, 0, 1), 0, 10);

	(void)state;
	skv_pool_hold(p, a, 100);
	take(p, c, at(1, 0, 1), 3, 4);
	assert_int_equal(slab_info(p, a.slab).used, 4);
	assert_int_equal(slab_info(p, a.slab).held, 6);
	skv_pool_set_owner(p, a.slab, 3, 0); /* the index of the hold: still not its slot */
	skv_pool_hold(p, sub_run(a, 6, 1), 200);
	check(p);
	assert_int_equal(skv_pool_release_due(p, 100), 6);
	assert_true(skv_pool_is_used(p, a.slab, 3));
	assert_int_equal(slab_info(p, a.slab).used, 3);
	assert_int_equal(skv_pool_release_due(p, 199), 0);
	assert_int_equal(skv_pool_release_due(p, 200), 1);
	check(p);
	skv_pool_destroy(p);
}

static void test_held_slabs_of_other_classes_give_way(void **state)
{
	struct skv_pool *p = plain_pool(8);
	uint32_t small = make_class(p, 64, 64);
	uint32_t big = make_class(p, 4096 * 4, 4096);
	struct skv_run a = take(p, small, at(1, 1, 1), 0, 10);
	struct skv_run b = take(p, small, at(1, 3, 1), 0, 64);
	struct skv_run d;

	(void)state;
	skv_pool_hold(p, a, 100);
	skv_pool_hold(p, sub_run(b, 0, 63), 100);
	refuse(p, big, at(1, 0, 4), 0, 1); /* b has a used slot */
	skv_pool_free(p, sub_run(b, 63, 1));
	d = take(p, big, at(1, 0, 4), 0, 1);
	assert_int_equal(pool_stats(p).slabs, 1);
	assert_int_equal(pool_stats(p).held_bytes, 0);
	/* The holds are gone with their slabs, whose handles may name others now. */
	a = take(p, small, at(1, 4, 1), 0, 64);
	skv_pool_hold(p, sub_run(a, 0, 20), 300);
	check(p);
	assert_int_equal(skv_pool_release_due(p, 100), 0);
	assert_int_equal(slab_info(p, a.slab).held, 20);
	/* And back: a small slab where the big one is held, then other small ones beside it. */
	skv_pool_hold(p, d, 400);
	take(p, small, at(1, 2, 1), 7, 1);
	take(p, small, at(1, 0, 1), 7, 1);
	assert_int_equal(skv_pool_release_due(p, 1000), 20);
	check(p);
	skv_pool_destroy(p);
}

/* A hold that lost its slab is continued, by handle and slot, in the next slab of that handle. */
static void test_a_hold_without_slots_is_continued(void **state)
{
	struct skv_pool *p = plain_pool(1);
	uint32_t small = make_class(p, 64, 64);
	uint32_t large = make_class(p, 128, 128);
	struct skv_run a = take(p, small, at(1, 0, 1), 0, 10);
	struct skv_run b;

	(void)state;
	skv_pool_hold(p, a, 100);
	b = take(p, large, at(1, 0, 1), 8, 6);
	assert_int_equal(a.slab, b.slab);
	skv_pool_hold(p, sub_run(b, 2, 3), 100);
	check(p);
	assert_int_equal(slab_info(p, b.slab).held, 3);
	assert_int_equal(skv_pool_release_due(p, 100), 3);
	assert_int_equal(slab_info(p, b.slab).used, 3);
	check(p);
	skv_pool_destroy(p);
}

static void test_overflow_gives_way(void **state)
{
	struct skv_pool *p = plain_pool(1);
	uint32_t c = make_class(p, 64, 64);
	struct skv_run a = take(p, c, at(1, 0, 1), 0, 10);

	(void)state;
	skv_mem_fail_at(1);
	skv_pool_hold(p, a, 100);
	skv_mem_fail_at(0);
	take(p, c, at(1, 0, 1), 9, 1);
	assert_int_equal(skv_pool_release_due(p, 100), 9);
	take(p, c, at(1, 0, 1), 0, 9);
	skv_pool_destroy(p);
}

static void test_frozen_units_give_way(void **state)
{
	struct skv_pool *p = plain_pool(4);
	uint32_t c = make_class(p, 64, 64);
	struct skv_run a;

	(void)state;
	skv_pool_freeze_free(p, 1000);
	a = take(p, c, at(1, 0, 2), 5, 2);
	/* The slots that were not taken stay frozen. */
	assert_int_equal(slab_info(p, a.slab).used, 2);
	assert_int_equal(slab_info(p, a.slab).held, 126);
	assert_int_equal(skv_pool_available(p, c), 0);
	assert_int_equal(skv_pool_release_due(p, 999), 0);
	assert_int_equal(skv_pool_release_due(p, 1000), 126 + 2);
	assert_int_equal(skv_pool_available(p, c), 254);
	skv_pool_free(p, a);
	check(p);
	skv_pool_destroy(p);
}

/* An open slab at the old end of a file has more slots once the file is longer. */
static void test_take_after_growth(void **state)
{
	struct skv_pool *p = make_pool(4096, 0, 64);
	uint32_t c = make_class(p, 64, 64);
	struct skv_run a;

	(void)state;
	assert_int_equal(skv_pool_add_file(p, 1, 1024), SKV_OK);
	a = take(p, c, at(1, 0, 1), 0, 15);
	assert_int_equal(skv_pool_add_file(p, 1, 8192), SKV_OK);
	refuse(p, c, at(1, 0, 1), 14, 2);
	take(p, c, at(1, 0, 1), 40, 1);
	assert_int_equal(slab_info(p, a.slab).slots, 64);
	assert_int_equal(slab_info(p, a.slab).used, 16);
	skv_pool_destroy(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_take_opens_the_slab),
		cmocka_unit_test(test_take_refuses_what_does_not_fit),
		cmocka_unit_test(test_held_slots_give_way),
		cmocka_unit_test(test_held_slabs_of_other_classes_give_way),
		cmocka_unit_test(test_a_hold_without_slots_is_continued),
		cmocka_unit_test(test_overflow_gives_way),
		cmocka_unit_test(test_frozen_units_give_way),
		cmocka_unit_test(test_take_after_growth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
