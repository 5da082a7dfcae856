/* test_mem.c - the fault point hits exactly the n-th allocation, and arrays
 * grow or stay as they were. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <limits.h>
#include <string.h>

#include <skv/mem.h>
#include <skv/status.h>

static int off(void **state)
{
	(void)state;
	skv_mem_fail_at(0);
	return 0;
}

static void size_zero_is_not_out_of_memory(void **state)
{
	void *p[3];

	(void)state;
	p[0] = skv_malloc(0);
	p[1] = skv_calloc(0, 8);
	p[2] = skv_realloc(NULL, 0);
	for (int i = 0; i < 3; i++) {
		assert_non_null(p[i]);
		skv_free(p[i]);
	}
	skv_free(NULL);
}

static void the_nth_fails_once(void **state)
{
	(void)state;
	for (unsigned long at = 1; at <= 5; at++) {
		skv_mem_fail_at(at);
		for (unsigned long i = 1; i <= 6; i++) {
			void *p = skv_malloc(8);

			assert_int_equal(p == NULL, i == at);
			skv_free(p);
		}
		assert_int_equal(skv_mem_count(), 6);
	}
}

static void every_kind_can_fail(void **state)
{
	char *kept;

	(void)state;
	skv_mem_fail_at(1);
	assert_null(skv_calloc(1, 8));
	skv_mem_fail_at(1);
	assert_null(skv_strdup("x"));
	skv_mem_fail_at(0);
	kept = skv_strdup("kept");
	skv_mem_fail_at(1);
	assert_null(skv_realloc(kept, 100));
	assert_string_equal(kept, "kept");
	skv_free(kept);
}

static void switched_off_nothing_fails_or_counts(void **state)
{
	(void)state;
	skv_mem_fail_at(0);
	for (int i = 0; i < 100; i++)
		skv_free(skv_malloc(1));
	assert_int_equal(skv_mem_count(), 0);
	skv_mem_fail_at(ULONG_MAX); /* only to count */
	for (int i = 0; i < 100; i++)
		skv_free(skv_malloc(1));
	assert_int_equal(skv_mem_count(), 100);
}

static void arrays_grow_by_doubling(void **state)
{
	uint32_t *a = NULL;
	void *p = NULL;
	size_t cap = 0;

	(void)state;
	skv_mem_fail_at(ULONG_MAX);
	for (uint32_t n = 0; n < 100000; n++) {
		assert_int_equal(skv_grow(&p, &cap, n + 1, sizeof *a), SKV_OK);
		assert_true(cap > n);
		a = p;
		a[n] = n;
	}
	assert_true(skv_mem_count() < 20);
	for (uint32_t n = 0; n < 100000; n++)
		assert_int_equal(a[n], n);
	skv_free(p);
}

static void failed_growth_changes_nothing(void **state)
{
	void *p = NULL;
	size_t cap = 0;

	(void)state;
	assert_int_equal(skv_grow(&p, &cap, 4, 8), SKV_OK);
	memset(p, 0x5a, 32);
	skv_mem_fail_at(1);
	assert_int_equal(skv_grow(&p, &cap, 1000, 8), SKV_E_NOMEM);
	assert_true(cap < 1000);
	assert_int_equal(((uint8_t *)p)[31], 0x5a);
	skv_mem_fail_at(0);
	assert_int_equal(skv_grow(&p, &cap, SIZE_MAX, 8), SKV_E_NOMEM);
	assert_int_equal(skv_grow(&p, &cap, SIZE_MAX / 4, 8), SKV_E_NOMEM);
	assert_int_equal(((uint8_t *)p)[0], 0x5a);
	skv_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(size_zero_is_not_out_of_memory, off),
		cmocka_unit_test_teardown(the_nth_fails_once, off),
		cmocka_unit_test_teardown(every_kind_can_fail, off),
		cmocka_unit_test_teardown(switched_off_nothing_fails_or_counts, off),
		cmocka_unit_test_teardown(arrays_grow_by_doubling, off),
		cmocka_unit_test_teardown(failed_growth_changes_nothing, off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
