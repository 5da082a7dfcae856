/* test_plan.c - merging of pieces into runs, and giving results back to pieces. Pure. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include <skv/mem.h>

#include "plan.h"

static struct skv_engine_file file_a, file_b;

static struct skv_piece piece(uint32_t file, uint64_t offset, uint64_t length)
{
	return (struct skv_piece){ .file_index = file,
				   .file = file ? &file_b : &file_a,
				   .offset = offset,
				   .length = length };
}

static void neighbours_become_one_run(void **state)
{
	struct skv_piece p[] = { piece(0, 300, 100), piece(0, 100, 100), piece(0, 200, 100) };
	struct skv_arena a;
	struct skv_plan plan;

	(void)state;
	skv_arena_init(&a);
	assert_int_equal(skv_plan_make(p, 3, &a, &plan), SKV_OK);
	assert_int_equal(plan.n_runs, 1);
	assert_int_equal(plan.runs[0].offset, 100);
	assert_int_equal(plan.runs[0].length, 300);
	assert_int_equal(plan.runs[0].n_iov, 3);
	assert_int_equal(p[0].run_at, 200);
	assert_int_equal(p[1].run_at, 0);
	skv_arena_destroy(&a);
}

static void gaps_and_files_separate(void **state)
{
	struct skv_piece p[] = { piece(0, 0, 100), piece(0, 101, 100), piece(1, 201, 100),
				 piece(1, 301, 5) };
	struct skv_arena a;
	struct skv_plan plan;

	(void)state;
	skv_arena_init(&a);
	assert_int_equal(skv_plan_make(p, 4, &a, &plan), SKV_OK);
	assert_int_equal(plan.n_runs, 3);
	assert_int_equal(plan.runs[2].n_iov, 2);
	assert_ptr_equal(plan.runs[2].file, &file_b);
	skv_arena_destroy(&a);
}

static void runs_end_at_the_iov_limit(void **state)
{
	enum { N = 2 * SKV_RUN_IOV + 1 };
	struct skv_piece *p = calloc(N, sizeof *p);
	struct skv_arena a;
	struct skv_plan plan;

	(void)state;
	assert_non_null(p);
	for (uint32_t i = 0; i < N; i++)
		p[i] = piece(0, 8ull * i, 8);
	skv_arena_init(&a);
	assert_int_equal(skv_plan_make(p, N, &a, &plan), SKV_OK);
	assert_int_equal(plan.n_runs, 3);
	assert_int_equal(plan.runs[0].n_iov, SKV_RUN_IOV);
	assert_int_equal(plan.runs[2].n_iov, 1);
	skv_arena_destroy(&a);
	free(p);
}

static void overlaps_are_refused(void **state)
{
	struct skv_piece p[] = { piece(0, 0, 100), piece(0, 50, 100), piece(0, 100, 10),
				 piece(0, 100, 10) };
	struct skv_arena a;
	struct skv_plan plan;

	(void)state;
	skv_arena_init(&a);
	assert_int_equal(skv_plan_make(p, 4, &a, &plan), SKV_OK);
	assert_int_equal(p[0].status, SKV_OK);
	assert_int_equal(p[1].status, SKV_E_CORRUPT);
	/* of two at the same place, one is refused */
	assert_int_equal((p[2].status == SKV_OK) + (p[3].status == SKV_OK), 1);
	assert_int_equal(plan.n_order, 2);
	skv_arena_destroy(&a);
}

static void pieces_with_an_error_stay_out(void **state)
{
	struct skv_piece p[] = { piece(0, 0, 10), piece(0, 10, 10), piece(0, 20, 10) };
	struct skv_arena a;
	struct skv_plan plan;

	(void)state;
	p[1].status = SKV_E_IO;
	skv_arena_init(&a);
	assert_int_equal(skv_plan_make(p, 3, &a, &plan), SKV_OK);
	assert_int_equal(plan.n_runs, 2);
	skv_arena_destroy(&a);
}

static void short_runs_are_shared_out(void **state)
{
	struct skv_piece p[] = { piece(0, 0, 10), piece(0, 10, 10), piece(0, 20, 10) };
	struct skv_arena a;
	struct skv_plan plan;

	(void)state;
	skv_arena_init(&a);
	assert_int_equal(skv_plan_make(p, 3, &a, &plan), SKV_OK);
	plan.runs[0].done = 15;
	plan.runs[0].status = SKV_E_NO_SPACE;
	plan.runs[0].ended_ms = 7;
	skv_plan_settle(&plan);
	assert_int_equal(p[0].done, 10);
	assert_int_equal(p[0].status, SKV_OK);
	assert_int_equal(p[1].done, 5);
	assert_int_equal(p[1].status, SKV_E_NO_SPACE);
	assert_int_equal(p[2].done, 0);
	assert_int_equal(p[2].status, SKV_E_NO_SPACE);
	assert_int_equal(p[2].ended_ms, 7);
	skv_arena_destroy(&a);
}

static void nothing_to_do_is_fine(void **state)
{
	struct skv_arena a;
	struct skv_plan plan;
	struct skv_piece none;

	(void)state;
	skv_arena_init(&a);
	assert_int_equal(skv_plan_make(&none, 0, &a, &plan), SKV_OK);
	assert_int_equal(plan.n_runs, 0);
	skv_plan_settle(&plan);
	skv_arena_destroy(&a);
}

static void memory_may_run_out(void **state)
{
	struct skv_piece p[] = { piece(0, 0, 10) };
	struct skv_plan plan;
	struct skv_arena a;

	(void)state;
	skv_arena_init(&a);
	skv_mem_fail_at(1);
	assert_int_equal(skv_plan_make(p, 1, &a, &plan), SKV_E_NOMEM);
	skv_mem_fail_at(0);
	skv_arena_destroy(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(neighbours_become_one_run),
		cmocka_unit_test(gaps_and_files_separate),
		cmocka_unit_test(runs_end_at_the_iov_limit),
		cmocka_unit_test(overlaps_are_refused),
		cmocka_unit_test(pieces_with_an_error_stay_out),
		cmocka_unit_test(short_runs_are_shared_out),
		cmocka_unit_test(nothing_to_do_is_fine),
		cmocka_unit_test(memory_may_run_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
