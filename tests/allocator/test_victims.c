/* Which slabs are named when a class has no room. */
#include "pooltest.h"

/* Eight units; the small class fills one each, the big one needs four. */
struct fixture {
	struct skv_pool *p;
	uint32_t small;
	uint32_t big;
	struct skv_run runs[8]; /* by unit */
	uint64_t (*cost)(void *ctx, uint32_t slab);
	uint32_t cheap; /* unit whose slab costs nothing */
	uint32_t deny;          /* slab that may not be emptied, or UINT32_MAX */
	uint32_t only;          /* nor any but this one, unless it is UINT32_MAX */
};

static void fill(struct fixture *f)
{
	struct skv_slab_place place = { .file = 1, .units = 1 };

	f->p = make_pool(4096, 0, 0);
	f->deny = UINT32_MAX;
	f->only = UINT32_MAX;
	f->cost = NULL;
	f->small = make_class(f->p, 64, 64);
	f->big = make_class(f->p, 4096 * 4, 4096);
	assert_int_equal(skv_pool_add_file(f->p, 1, 4096 * 8), SKV_OK);
	for (place.unit = 0; place.unit < 8; place.unit++)
		assert_int_equal(skv_pool_take(f->p, f->small, place, 0, 64, &f->runs[place.unit]),
				 SKV_OK);
}

static uint32_t waits(void *ctx, uint32_t slab)
{
	struct fixture *f = ctx;

	if (slab == f->deny || (f->only != UINT32_MAX && slab != f->only))
		return SKV_SLAB_STAYS;
	return slab_info(f->p, slab).held; /* as many ms */
}

static int find(struct fixture *f, uint32_t class_id, uint32_t **slabs, size_t *n)
{
	int status = skv_pool_find_victims(
		f->p, class_id, &(struct skv_victims){ waits, f->cost, f }, slabs, n);

	check(f->p);
	return status;
}

static void test_the_window_with_the_fewest(void **state)
{
	struct fixture f;
	uint32_t *slabs;
	struct skv_run run;
	size_t n;
	uint32_t k;

	(void)state;
	fill(&f);
	skv_pool_free(f.p, sub_run(f.runs[5], 0, 30));
	skv_pool_free(f.p, sub_run(f.runs[1], 0, 20));
	assert_int_equal(find(&f, f.big, &slabs, &n), SKV_OK);
	assert_int_equal(n, 4);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(slab_info(f.p, slabs[i]).place.unit, 4 + i);
	/* Not allowed there: the other window. Nowhere: no space. */
	f.deny = slabs[2];
	skv_free(slabs);
	assert_int_equal(find(&f, f.big, &slabs, &n), SKV_OK);
	assert_int_equal(slab_info(f.p, slabs[0]).place.unit, 0);
	/* Emptying them makes room. */
	assert_int_equal(skv_pool_alloc(f.p, f.big, 1, &run, &k), SKV_E_NO_SPACE);
	for (uint32_t i = 0; i < 4; i++)
		skv_pool_free(f.p, i == 1 ? sub_run(f.runs[1], 20, 44) : f.runs[i]);
	skv_free(slabs);
	assert_int_equal(skv_pool_alloc(f.p, f.big, 1, &run, &k), SKV_OK);
	skv_pool_destroy(f.p);
}

static void test_the_window_that_is_free_first(void **state)
{
	struct fixture f;
	uint32_t *slabs;
	size_t n;

	(void)state;
	fill(&f);
	skv_pool_hold(f.p, sub_run(f.runs[6], 0, 1), 100);
	assert_int_equal(find(&f, f.big, &slabs, &n), SKV_OK);
	assert_int_equal(slab_info(f.p, slabs[0]).place.unit, 0);
	skv_free(slabs);
	/* Both wait. The second one waits less, so it is taken although the first one has fewer
	 * slots in use. */
	skv_pool_hold(f.p, sub_run(f.runs[3], 0, 2), 100);
	assert_int_equal(find(&f, f.big, &slabs, &n), SKV_OK);
	assert_int_equal(slab_info(f.p, slabs[0]).place.unit, 4);
	skv_free(slabs);
	/* Slabs of the class itself are no help to it. */
	assert_int_equal(find(&f, f.small, &slabs, &n), SKV_E_NO_SPACE);
	/* Nothing is left to do in the second one: its slabs are closed, and wait. */
	for (uint32_t i = 4; i < 8; i++) {
		skv_pool_hold(f.p, i == 6 ? sub_run(f.runs[6], 1, 63) : f.runs[i], 100);
		skv_pool_drain(f.p, f.runs[i].slab, true);
	}
	assert_int_equal(find(&f, f.big, &slabs, &n), SKV_OK);
	assert_int_equal(slab_info(f.p, slabs[0]).place.unit, 0);
	skv_free(slabs);
	skv_pool_destroy(f.p);
}

/* A big slab that reaches beyond the window must go as a whole, and is named once. */
static void test_a_longer_slab_is_named_once(void **state)
{
	struct fixture f;
	struct skv_slab_place place = { .file = 1, .unit = 4, .units = 4 };
	struct skv_run run;
	uint32_t *slabs;
	size_t n;

	(void)state;
	fill(&f);
	for (uint32_t i = 4; i < 8; i++)
		skv_pool_free(f.p, f.runs[i]);
	assert_int_equal(skv_pool_take(f.p, f.big, place, 0, 1, &run), SKV_OK);
	assert_int_equal(find(&f, f.small, &slabs, &n), SKV_OK);
	assert_int_equal(n, 1);
	assert_int_equal(slabs[0], run.slab);
	skv_free(slabs);
	skv_pool_destroy(f.p);
}

/* Windows that are free already are no answer: the caller would wait for nothing to change. */
static void test_free_and_frozen_windows(void **state)
{
	struct fixture f;
	uint32_t *slabs;
	size_t n;

	(void)state;
	fill(&f);
	for (uint32_t i = 0; i < 4; i++)
		skv_pool_free(f.p, f.runs[i]);
	assert_int_equal(find(&f, f.big, &slabs, &n), SKV_OK);
	assert_int_equal(n, 4);
	skv_free(slabs);
	skv_pool_free(f.p, f.runs[7]);
	skv_pool_freeze_free(f.p, 100); /* unit 7 cannot be had, whatever is emptied */
	assert_int_equal(find(&f, f.big, &slabs, &n), SKV_E_NO_SPACE);
	skv_pool_destroy(f.p);
}

/* Slots of 1025 bytes like windows of two units or more. When none of these can be emptied, one
 * unit with three slots is better than none. */
static void test_shorter_windows_when_nothing_else_is_left(void **state)
{
	struct fixture f;
	uint32_t odd;
	uint32_t *slabs;
	size_t n;

	(void)state;
	fill(&f);
	odd = make_class(f.p, 1025, 1);
	f.only = f.runs[5].slab;
	assert_int_equal(find(&f, odd, &slabs, &n), SKV_OK);
	assert_int_equal(n, 1);
	assert_int_equal(slabs[0], f.runs[5].slab);
	skv_free(slabs);
	skv_pool_free(f.p, f.runs[5]);
	assert_int_equal(alloc_run(f.p, odd, 3).count, 3);
	skv_pool_destroy(f.p);
}

static void test_out_of_memory(void **state)
{
	struct fixture f;
	uint32_t *slabs = NULL;
	size_t n;
	int status = SKV_E_NOMEM;

	(void)state;
	fill(&f);
	for (unsigned long at = 1; status == SKV_E_NOMEM; at++) {
		assert_true(at < 10);
		skv_mem_fail_at(at);
		status = find(&f, f.big, &slabs, &n);
	}
	skv_mem_fail_at(0);
	assert_int_equal(status, SKV_OK);
	skv_free(slabs);
	skv_pool_destroy(f.p);
}

static uint64_t cost(void *ctx, uint32_t slab)
{
	struct fixture *f = ctx;

	return slab_info(f->p, slab).place.unit == f->cheap ? 0 : 10;
}

static void test_the_cheapest_of_those_that_are_alike(void **state)
{
	struct fixture f;
	uint32_t *slabs;
	size_t n;

	(void)state;
	fill(&f);
	f.cost = cost;
	for (f.cheap = 0; f.cheap < 8; f.cheap++) {
		assert_int_equal(find(&f, f.big, &slabs, &n), SKV_OK);
		assert_int_equal(slab_info(f.p, slabs[0]).place.unit, f.cheap / 4 * 4);
		skv_free(slabs);
	}
	/* Not if it may not go. */
	f.cheap = 1;
	f.deny = f.runs[2].slab;
	assert_int_equal(find(&f, f.big, &slabs, &n), SKV_OK);
	assert_int_equal(slab_info(f.p, slabs[0]).place.unit, 4);
	skv_free(slabs);
	skv_pool_destroy(f.p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_window_with_the_fewest),
		cmocka_unit_test(test_the_window_that_is_free_first),
		cmocka_unit_test(test_a_longer_slab_is_named_once),
		cmocka_unit_test(test_free_and_frozen_windows),
		cmocka_unit_test(test_shorter_windows_when_nothing_else_is_left),
		cmocka_unit_test(test_the_cheapest_of_those_that_are_alike),
		cmocka_unit_test(test_out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
