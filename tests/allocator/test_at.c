/* Slots by their offsets: which one it is, and taking just that one if it is free. */
#include "pooltest.h"

/* As the core does with external storages: "bytes" are slots. */
static struct skv_pool *counting_pool(uint64_t slots, uint32_t *class_id)
{
	struct skv_pool *p = make_pool(4096, 0, 0);

	assert_int_equal(skv_pool_add_file(p, 0, slots), SKV_OK);
	*class_id = make_class(p, 1, 1);
	return p;
}

static struct skv_run take_at(struct skv_pool *p, uint32_t c, uint64_t offset)
{
	struct skv_run run;
	uint32_t slab, slot;

	assert_int_equal(skv_pool_alloc_at(p, c, 0, offset, &run), SKV_OK);
	check(p);
	assert_int_equal(run.count, 1);
	assert_int_equal(slab_info(p, run.slab).first_offset +
				 run.first * slab_info(p, run.slab).stride,
			 offset);
	assert_true(skv_pool_at(p, 0, offset, &slab, &slot));
	assert_int_equal(slab, run.slab);
	assert_int_equal(slot, run.first);
	assert_true(skv_pool_is_used(p, slab, slot));
	return run;
}

static void refuse_at(struct skv_pool *p, uint32_t c, uint32_t file, uint64_t offset)
{
	struct skv_pool_stats before = pool_stats(p);
	struct skv_run run;

	assert_int_equal(skv_pool_alloc_at(p, c, file, offset, &run), SKV_E_NO_SPACE);
	check(p);
	assert_int_equal(pool_stats(p).used_bytes, before.used_bytes);
	assert_int_equal(pool_stats(p).held_bytes, before.held_bytes);
	assert_int_equal(pool_stats(p).slabs, before.slabs);
}

static bool is_at(struct skv_pool *p, uint32_t file, uint64_t offset)
{
	uint32_t slab, slot;

	return skv_pool_at(p, file, offset, &slab, &slot);
}

static void any_free_slot_is_taken(void **state)
{
	uint32_t c;
	struct skv_pool *p = counting_pool(10000, &c);
	struct skv_run a = take_at(p, c, 9999);

	(void)state;
	assert_int_equal(slab_info(p, a.slab).slots, 10000 - 8192); /* the last unit is short */
	take_at(p, c, 0);
	take_at(p, c, 4095);
	take_at(p, c, 4096);
	assert_int_equal(pool_stats(p).slabs, 3);
	assert_int_equal(skv_pool_available(p, c), 10000 - 4);
	refuse_at(p, c, 0, 9999);
	refuse_at(p, c, 0, 10000);
	refuse_at(p, c, 0, UINT64_MAX);
	refuse_at(p, c, 1, 0);
	skv_pool_free(p, a);
	assert_false(is_at(p, 0, 9999)); /* the slab is closed */
	take_at(p, c, 9999);
	assert_false(is_at(p, 0, 10000));
	assert_false(is_at(p, 1, 0));
	assert_true(is_at(p, 0, 5)); /* free, in an open slab */
	skv_pool_destroy(p);
}

static void each_slot_once(void **state)
{
	uint32_t c, n = 0;
	struct skv_pool *p = counting_pool(300, &c);
	struct skv_run run, runs[150];

	(void)state;
	for (uint32_t i = 0; i < 300; i += 2)
		take_at(p, c, i);
	assert_int_equal(skv_pool_alloc(p, c, 150, runs, &n), SKV_OK);
	assert_int_equal(n, 150);
	for (uint32_t i = 0; i < 300; i++)
		assert_int_equal(skv_pool_alloc_at(p, c, 0, i, &run), SKV_E_NO_SPACE);
	assert_int_equal(skv_pool_available(p, c), 0);
	skv_pool_destroy(p);
}

static void held_slots_do_not_give_way(void **state)
{
	uint32_t c;
	struct skv_pool *p = counting_pool(100, &c);

	(void)state;
	skv_pool_hold(p, take_at(p, c, 7), 50);
	refuse_at(p, c, 0, 7);
	assert_true(is_at(p, 0, 7));
	assert_int_equal(skv_pool_release_due(p, 50), 1);
	take_at(p, c, 7);
	skv_pool_destroy(p);
}

static void frozen_units_do_not_give_way(void **state)
{
	uint32_t c;
	struct skv_pool *p = counting_pool(10000, &c);

	(void)state;
	take_at(p, c, 1);
	skv_pool_freeze_free(p, 50);
	refuse_at(p, c, 0, 2);    /* free in an open slab: held now */
	refuse_at(p, c, 0, 5000); /* in no slab */
	assert_true(skv_pool_release_due(p, 50) > 0);
	take_at(p, c, 2);
	take_at(p, c, 5000);
	skv_pool_destroy(p);
}

static void a_draining_slab_gives_none(void **state)
{
	uint32_t c;
	struct skv_pool *p = counting_pool(100, &c);
	struct skv_run a = take_at(p, c, 7);

	(void)state;
	skv_pool_drain(p, a.slab, true);
	refuse_at(p, c, 0, 8);
	skv_pool_drain(p, a.slab, false);
	take_at(p, c, 8);
	skv_pool_destroy(p);
}

static void classes_keep_to_their_slabs(void **state)
{
	struct skv_pool *p = make_pool(4096, 0, 0);
	uint32_t small = make_class(p, 64, 64), big = make_class(p, 6144, 6144);

	(void)state;
	assert_int_equal(skv_pool_add_file(p, 0, 4096 * 10), SKV_OK);
	take_at(p, small, 4096 + 64);
	refuse_at(p, small, 0, 4096 + 65); /* within a slot */
	refuse_at(p, big, 0, 6144);        /* in a slab of the other class */
	/* a shorter slab than the class's own: no other window is free */
	take_at(p, big, 6144 * 3);
	refuse_at(p, small, 0, 6144 * 3);
	skv_pool_destroy(p);
}

static void slabs_grow_with_the_file(void **state)
{
	uint32_t c;
	struct skv_pool *p = counting_pool(10, &c);
	struct skv_run a = take_at(p, c, 0), b = take_at(p, c, 9);

	(void)state;
	skv_pool_set_owner(p, a.slab, 0, 77);
	skv_pool_hold(p, b, 50);
	refuse_at(p, c, 0, 10);
	skv_mem_fail_at(1);
	assert_int_equal(skv_pool_add_file(p, 0, 5000), SKV_E_NOMEM);
	skv_mem_fail_at(2);
	assert_int_equal(skv_pool_add_file(p, 0, 5000), SKV_E_NOMEM);
	skv_mem_fail_at(0);
	check(p);
	assert_int_equal(skv_pool_available(p, c), 8);
	assert_int_equal(skv_pool_add_file(p, 0, 100), SKV_OK);
	check(p);
	assert_int_equal(slab_info(p, a.slab).slots, 100);
	take_at(p, c, 10);
	take_at(p, c, 99);
	assert_int_equal(skv_pool_add_file(p, 0, 5000), SKV_OK);
	check(p);
	assert_int_equal(slab_info(p, a.slab).slots, 4096);
	assert_int_equal(skv_pool_available(p, c), 5000 - 4);
	assert_int_equal(skv_pool_owner(p, a.slab, 0), 77);
	refuse_at(p, c, 0, 9);
	assert_int_equal(skv_pool_release_due(p, 50), 1);
	take_at(p, c, 9);
	skv_pool_drain(p, a.slab, true);
	take_at(p, c, 4096);
	assert_int_equal(skv_pool_add_file(p, 0, 9000), SKV_OK);
	check(p);
	skv_pool_drain(p, a.slab, false);
	assert_int_equal(skv_pool_available(p, c), 9000 - 5);
	skv_pool_destroy(p);
}

static void no_memory_changes_nothing(void **state)
{
	uint32_t c;
	struct skv_pool *p = counting_pool(100, &c);
	struct skv_run run;

	(void)state;
	skv_mem_fail_at(1);
	assert_int_equal(skv_pool_alloc_at(p, c, 0, 7, &run), SKV_E_NOMEM);
	skv_mem_fail_at(0);
	check(p);
	assert_int_equal(pool_stats(p).slabs, 0);
	take_at(p, c, 7);
	skv_pool_destroy(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_free_slot_is_taken),
		cmocka_unit_test(each_slot_once),
		cmocka_unit_test(held_slots_do_not_give_way),
		cmocka_unit_test(frozen_units_do_not_give_way),
		cmocka_unit_test(a_draining_slab_gives_none),
		cmocka_unit_test(classes_keep_to_their_slabs),
		cmocka_unit_test(slabs_grow_with_the_file),
		cmocka_unit_test(no_memory_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
