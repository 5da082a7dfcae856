/*
 * test_arena.c - pieces are aligned, apart and stable until reset; limits and failures leave the
 * arena usable.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include <skv/arena.h>
#include <skv/mem.h>

static void pieces_are_aligned_and_apart(void **state)
{
	static const size_t sizes[] = { 0, 1, 15, 16, 17, 100, 4096, 16384, 16385, 100000, 3 };
	enum { N = 11 * 20 };
	struct skv_arena a;
	unsigned char *p[N];

	(void)state;
	skv_arena_init(&a);
	for (int i = 0; i < N; i++) {
		p[i] = skv_arena_alloc(&a, sizes[i % 11]);
		assert_non_null(p[i]);
		assert_int_equal((uintptr_t)p[i] % 16, 0);
		memset(p[i], i, sizes[i % 11]);
	}
	for (int i = 0; i < N; i++)
		for (size_t k = 0; k < sizes[i % 11]; k++)
			assert_int_equal(p[i][k], (unsigned char)i);
	skv_arena_destroy(&a);
	assert_int_equal(a.total, 0);
	assert_null(a.head);
}

static void total_covers_what_was_given(void **state)
{
	struct skv_arena a;

	(void)state;
	skv_arena_init(&a);
	for (int i = 1; i <= 100; i++) {
		assert_non_null(skv_arena_alloc(&a, 1000));
		assert_true(a.total >= (size_t)i * 1000);
	}
	assert_true(a.total < 100 * 1000 * 2);
	skv_arena_destroy(&a);
}

static void reset_keeps_one_chunk_at_most(void **state)
{
	struct skv_arena a;

	(void)state;
	skv_arena_init(&a);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 50; i++)
			assert_non_null(skv_arena_alloc(&a, 4000));
		assert_non_null(skv_arena_alloc(&a, 1 << 20));
		assert_true(a.total > 1 << 20);
		skv_arena_reset(&a);
		assert_true(a.total <= 16 * 1024);
	}
	skv_arena_reset(&a);
	skv_arena_destroy(&a);
	skv_arena_destroy(&a); /* harmless */
}

#if !defined(__SANITIZE_ADDRESS__)
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PIECE_PER_CHUNK
#endif
#endif
#else
#define PIECE_PER_CHUNK
#endif

/* The reason for keeping a chunk: a small request after the first allocates nothing. */
static void small_requests_allocate_nothing(void **state)
{
	struct skv_arena a;

	(void)state;
	skv_arena_init(&a);
	assert_non_null(skv_arena_alloc(&a, 100));
	skv_arena_reset(&a);
	skv_mem_fail_at(1);
#ifdef PIECE_PER_CHUNK
	assert_null(skv_arena_alloc(&a, 100)); /* in this build every piece is an allocation */
#else
	for (int i = 0; i < 100; i++)
		assert_non_null(skv_arena_alloc(&a, 100));
#endif
	skv_mem_fail_at(0);
	skv_arena_destroy(&a);
}

static void calloc_is_zero_after_reuse(void **state)
{
	struct skv_arena a;
	unsigned char *p;

	(void)state;
	skv_arena_init(&a);
	p = skv_arena_alloc(&a, 8000);
	assert_non_null(p);
	memset(p, 0xee, 8000);
	skv_arena_reset(&a);
	p = skv_arena_calloc(&a, 1000, 8);
	assert_non_null(p);
	for (int i = 0; i < 8000; i++)
		assert_int_equal(p[i], 0);
	skv_arena_destroy(&a);
}

static void strndup_adds_the_end(void **state)
{
	struct skv_arena a;
	const char raw[3] = { 'a', 'b', 'c' };

	(void)state;
	skv_arena_init(&a);
	assert_string_equal(skv_arena_strndup(&a, raw, 3), "abc");
	assert_string_equal(skv_arena_strndup(&a, raw, 0), "");
	skv_arena_destroy(&a);
}

static void sizes_that_overflow_are_refused(void **state)
{
	struct skv_arena a;

	(void)state;
	skv_arena_init(&a);
	assert_null(skv_arena_alloc(&a, SIZE_MAX));
	assert_null(skv_arena_alloc(&a, SIZE_MAX - 15));
	assert_null(skv_arena_alloc(&a, SIZE_MAX / 2));
	assert_null(skv_arena_calloc(&a, SIZE_MAX / 2, 4));
	assert_null(skv_arena_calloc(&a, (size_t)1 << 32, (size_t)1 << 32));
	assert_null(skv_arena_strndup(&a, "", SIZE_MAX));
	assert_int_equal(a.total, 0);
	assert_non_null(skv_arena_calloc(&a, SIZE_MAX, 0));
	skv_arena_destroy(&a);
}

static void a_failed_allocation_changes_nothing(void **state)
{
	struct skv_arena a;
	char *before;

	(void)state;
	skv_arena_init(&a);
	before = skv_arena_strndup(&a, "stays", 5);
	assert_non_null(before);
	skv_mem_fail_at(1);
	assert_null(skv_arena_alloc(&a, 1 << 20));
	skv_mem_fail_at(0);
	assert_string_equal(before, "stays");
	assert_non_null(skv_arena_alloc(&a, 1 << 20));
	skv_arena_destroy(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_are_aligned_and_apart),
		cmocka_unit_test(total_covers_what_was_given),
		cmocka_unit_test(reset_keeps_one_chunk_at_most),
		cmocka_unit_test(small_requests_allocate_nothing),
		cmocka_unit_test(calloc_is_zero_after_reuse),
		cmocka_unit_test(strndup_adds_the_end),
		cmocka_unit_test(sizes_that_overflow_are_refused),
		cmocka_unit_test(a_failed_allocation_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
