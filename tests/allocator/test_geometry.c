/* Where slabs and slots lie: expected numbers, slab lengths, file ends, growth, limits. */
#include "pooltest.h"

#define BLOCK 4497408u /* 4,497,408 B: 1098 pages, the real size of a block of one model */

/* Fills one 1 GiB file and returns its slots; *units is the length of the last slab. */
static uint64_t fill_file(uint64_t stride, uint64_t align, uint32_t *units, double *share)
{
	struct skv_pool *p = make_pool(MIB(64), 4096, 4096);
	uint32_t c = make_class(p, stride, align);
	struct skv_pool_stats st;
	struct skv_run run;
	uint64_t slots = 0;
	uint32_t n;

	assert_int_equal(skv_pool_add_file(p, 1, GIB(1)), SKV_OK);
	assert_int_equal(skv_pool_available(p, c), skv_pool_slots_in_file(p, c, GIB(1)));
	while (skv_pool_alloc(p, c, 1, &run, &n) == SKV_OK)
		slots++;
	check(p);
	*units = slab_info(p, run.slab).place.units;
	st = pool_stats(p);
	assert_int_equal(st.used_bytes, slots * stride);
	assert_int_equal(st.slot_bytes, slots * stride);
	assert_int_equal(st.assigned_bytes, GIB(1));
	*share = (double)st.slot_bytes / (double)st.assigned_bytes;
	skv_pool_destroy(p);
	return slots;
}

static void test_numbers_of_real_blocks(void **state)
{
	uint32_t units;
	double share;

	(void)state;
	/* 512 MiB hold 119.4 blocks; 256 MiB would hold 59.7 and waste 1.15 %. Slabs grow: 64, 64,
	 * 128, 256, 512 MiB. */
	assert_int_equal(fill_file(BLOCK, 4096, &units, &share), 14 + 14 + 29 + 59 + 119);
	assert_int_equal(units, 8);
	assert_true(share >= 0.98);
	/* At multiples of its own size. Slot 0 is lost to the header. */
	assert_int_equal(fill_file(BLOCK, BLOCK, &units, &share), 13 + 14 + 29 + 59 + 118);
	assert_int_equal(units, 8);
	assert_true(share >= 0.97);
	/* A unit holds 64 of 1 MiB; the file's first loses one to the header, the last to the
	 * trailer. */
	assert_int_equal(fill_file(MIB(1), 4096, &units, &share), 1022);
	assert_int_equal(units, 1);
	assert_true(share >= 0.99);
	assert_int_equal(fill_file(MIB(1), MIB(1), &units, &share), 1022);
	assert_int_equal(units, 1);
	assert_int_equal(fill_file(KIB(64), KIB(64), &units, &share), 16382);
	assert_int_equal(units, 1);
}

static void test_slots_lie_where_the_header_says(void **state)
{
	struct skv_pool *p = make_pool(4096, 100, 50);
	uint32_t own = make_class(p, 300, 300);
	uint32_t page = make_class(p, 512, 256);
	struct skv_slab_info info;

	(void)state;
	assert_int_equal(skv_pool_add_file(p, 5, 4096 * 2 + 1000), SKV_OK);
	/* The last unit is 1000 bytes long, 950 without the trailer. */
	assert_int_equal(skv_pool_available(p, page), 7 + 8 + 1);
	info = slab_info(p, alloc_run(p, page, 1).slab);
	assert_int_equal(info.place.unit, 2);
	assert_int_equal(info.first_offset, 2 * 4096);
	assert_int_equal(info.slots, 1);
	/* Multiples of 300 from 300 to below 4096; a slab of two units comes later. */
	info = slab_info(p, alloc_run(p, own, 1).slab);
	assert_int_equal(info.place.file, 5);
	assert_int_equal(info.place.unit, 0);
	assert_int_equal(info.place.units, 1);
	assert_int_equal(info.first_offset, 300);
	assert_int_equal(info.slots, 12);
	assert_int_equal(info.stride, 300);
	assert_int_equal(info.class_id, own);
	alloc_run(p, own, 11);
	info = slab_info(p, alloc_run(p, own, 1).slab);
	assert_int_equal(info.first_offset, 4200);
	assert_int_equal(info.slots, 13);
	assert_int_equal(pool_stats(p).assigned_bytes, 4096 * 2 + 1000);
	assert_int_equal(pool_stats(p).free_unit_bytes, 0);
	skv_pool_destroy(p);
}

static void test_counting_slots(void **state)
{
	struct skv_pool *p = make_pool(4096, 0, 0);
	uint32_t c = make_class(p, 1, 1);
	struct skv_run runs[3];
	uint32_t n;

	(void)state;
	assert_int_equal(skv_pool_add_file(p, 0, 10000), SKV_OK);
	assert_int_equal(skv_pool_slots_in_file(p, c, 10000), 10000);
	assert_int_equal(skv_pool_alloc(p, c, 1, runs, &n), SKV_OK);
	assert_int_equal(slab_info(p, runs[0].slab).place.units, 1);
	skv_pool_free(p, runs[0]);
	struct skv_run *all = skv_malloc(10000 * sizeof *all);

	assert_int_equal(skv_pool_alloc(p, c, 10000, all, &n), SKV_OK);
	assert_int_equal(n, 3); /* 4096 + 4096 + 1808 */
	assert_int_equal(skv_pool_alloc(p, c, 1, runs, &n), SKV_E_NO_SPACE);
	check(p);
	skv_free(all);
	skv_pool_destroy(p);
}

/* A class begins with short slabs. Each further one is as long as all together, up to the length
 * that wastes less than 1 %; when its slabs go, new ones are short again. */
static void test_slabs_grow_with_their_class(void **state)
{
	static const uint32_t units[] = { 1, 1, 2, 4, 8, 8, 8 };
	struct skv_pool *p = make_pool(MIB(64), 0, 0);
	uint32_t big = make_class(p, BLOCK, 4096), n;
	struct skv_run run[7];

	(void)state;
	assert_int_equal(skv_pool_add_file(p, 1, GIB(4)), SKV_OK);
	assert_int_equal(skv_pool_class_bytes(p, big), 0);
	for (uint32_t i = 0; i < 7; i++) {
		assert_int_equal(skv_pool_alloc(p, big, 1, &run[i], &n), SKV_OK);
		assert_int_equal(slab_info(p, run[i].slab).place.units, units[i]);
		if (slab_info(p, run[i].slab).slots > 1)
			alloc_run(p, big, slab_info(p, run[i].slab).slots - 1);
		check(p);
	}
	assert_int_equal(skv_pool_class_bytes(p, big), MIB(64) * 32);
	for (uint32_t i = 7; i-- > 0;) {
		skv_pool_free(p, (struct skv_run){ run[i].slab, 0,
						   slab_info(p, run[i].slab).slots });
		check(p);
	}
	assert_int_equal(skv_pool_slab_bytes(p, big), MIB(64));
	skv_pool_destroy(p);
}

/* No window of the length is left: shorter ones serve, none is left unused. */
static void test_shorter_slabs_when_nothing_else_is_left(void **state)
{
	struct skv_pool *p = make_pool(MIB(64), 4096, 4096);
	uint32_t big = make_class(p, BLOCK, 4096);
	uint32_t small = make_class(p, MIB(1), MIB(1));
	uint64_t slots = 0;
	struct skv_run run;
	uint32_t n;

	(void)state;
	assert_int_equal(skv_pool_add_file(p, 1, MIB(64) * 12), SKV_OK); /* 8 + 4 units */
	run = alloc_run(p, small, 1);
	assert_int_equal(slab_info(p, run.slab).place.unit, 8); /* from the shorter block */
	while (skv_pool_alloc(p, big, 1, &run, &n) == SKV_OK)
		slots++;
	/* Units 9; 10; 0 and 1; 4 to 7; and then what is left: 2 and 3; 11. */
	assert_int_equal(slots, 14 + 14 + 29 + 59 + 29 + 14);
	assert_int_equal(slab_info(p, run.slab).place.unit, 11);
	assert_int_equal(skv_pool_available(p, big), 0);
	check(p);
	skv_pool_destroy(p);
}

/* A window whose only slot the header takes is no use, and is skipped. */
static void test_windows_without_a_slot(void **state)
{
	struct skv_pool *p = make_pool(4096, 1, 1);
	uint32_t c = make_class(p, 4096, 4096);

	(void)state;
	assert_int_equal(skv_pool_add_file(p, 1, 4096 * 4), SKV_OK);
	assert_int_equal(skv_pool_available(p, c), 2);
	assert_int_equal(skv_pool_slots_in_file(p, c, 4096 * 2), 0);
	assert_int_equal(skv_pool_slots_in_file(p, c, 2), 0);
	assert_int_equal(skv_pool_slots_in_file(p, c, 0), 0);
	assert_int_equal(slab_info(p, alloc_run(p, c, 1).slab).place.unit, 1);
	assert_int_equal(slab_info(p, alloc_run(p, c, 1).slab).place.unit, 2);
	assert_int_equal(skv_pool_available(p, c), 0);
	skv_pool_destroy(p);
}

static void test_files_grow(void **state)
{
	struct skv_pool *p = make_pool(4096, 0, 96);
	uint32_t c = make_class(p, 1000, 8);
	struct skv_run run;
	uint32_t n;

	(void)state;
	assert_int_equal(skv_pool_add_file(p, 9, 4096 + 2096), SKV_OK);
	assert_int_equal(skv_pool_available(p, c), 4 + 2);
	alloc_run(p, c, 4);
	alloc_run(p, c, 2);
	assert_int_equal(skv_pool_alloc(p, c, 1, &run, &n), SKV_E_NO_SPACE);
	/* The short unit becomes whole, and its slab with it. Two new units. */
	assert_int_equal(skv_pool_add_file(p, 9, 4096 * 4), SKV_OK);
	check(p);
	assert_int_equal(skv_pool_available(p, c), 10);
	assert_int_equal(skv_pool_add_file(p, 9, 4096 * 4), SKV_OK); /* again: harmless */
	assert_int_equal(skv_pool_add_file(p, 9, 4096 * 3), SKV_E_INVALID);
	assert_int_equal(skv_pool_available(p, c), 10);
	assert_int_equal(skv_pool_add_file(p, 2, 4096 * 5), SKV_OK); /* an id below the first */
	check(p);
	assert_int_equal(pool_stats(p).files, 2);
	assert_int_equal(pool_stats(p).file_bytes, 4096 * 9);
	skv_pool_destroy(p);
}

static void test_bad_arguments(void **state)
{
	struct skv_pool_options o = { .unit = 4096 };
	struct skv_pool *p;
	uint32_t id;

	(void)state;
	o.unit = 0;
	assert_null(skv_pool_create(&o));
	o.unit = 4097;
	assert_null(skv_pool_create(&o));
	p = make_pool(4096, 100, 100);
	assert_int_equal(skv_pool_add_file(p, 1, 0), SKV_E_INVALID);
	assert_int_equal(skv_pool_add_file(p, 1, 200), SKV_E_INVALID);
	assert_int_equal(skv_pool_add_file(p, 1, UINT64_MAX), SKV_E_INVALID);
	assert_int_equal(skv_pool_add_file(p, 1, UINT64_C(4096) << 33), SKV_E_INVALID);
	assert_int_equal(skv_pool_class(p, 0, 1, &id), SKV_E_INVALID);
	assert_int_equal(skv_pool_class(p, 1, 0, &id), SKV_E_INVALID);
	/* Slot 1 would not be aligned. */
	assert_int_equal(skv_pool_class(p, 100, 64, &id), SKV_E_INVALID);
	assert_int_equal(skv_pool_class(p, UINT64_MAX, 1, &id), SKV_E_INVALID);
	assert_int_equal(pool_stats(p).files, 0);
	/* Never fits any file, yet is a class: files may come. */
	assert_int_equal(skv_pool_class(p, UINT64_C(1) << 60, 1, &id), SKV_OK);
	assert_int_equal(skv_pool_add_file(p, 1, 4096 * 64), SKV_OK);
	assert_int_equal(skv_pool_available(p, id), 0);
	skv_pool_destroy(p);
	skv_pool_destroy(NULL);

	o.unit = UINT64_C(1) << 40; /* too many slots for one slab */
	p = skv_pool_create(&o);
	assert_int_equal(skv_pool_class(p, 1, 1, &id), SKV_E_INVALID);
	skv_pool_destroy(p);
}

static void test_classes_are_found_again(void **state)
{
	struct skv_pool *p = make_pool(4096, 0, 0);
	uint32_t a = make_class(p, 512, 512);

	(void)state;
	assert_int_not_equal(make_class(p, 512, 256), a);
	assert_int_not_equal(make_class(p, 1024, 512), a);
	assert_int_equal(make_class(p, 512, 512), a);
	skv_pool_destroy(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers_of_real_blocks),
		cmocka_unit_test(test_slots_lie_where_the_header_says),
		cmocka_unit_test(test_counting_slots),
		cmocka_unit_test(test_slabs_grow_with_their_class),
		cmocka_unit_test(test_shorter_slabs_when_nothing_else_is_left),
		cmocka_unit_test(test_windows_without_a_slot),
		cmocka_unit_test(test_files_grow),
		cmocka_unit_test(test_bad_arguments),
		cmocka_unit_test(test_classes_are_found_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
