/*
 * The n-th allocation fails, for n = 1, 2, 3... until the scenario needs no more. Each call that
 * says SKV_E_NOMEM has changed nothing and succeeds when repeated; in the end every slot is back.
 */
#include "pooltest.h"

#define SLOTS 64 /* of a small slab */

/* Asserts that a refused call has changed nothing. */
static void same(const struct skv_pool *p, const struct skv_pool_stats *before)
{
	struct skv_pool_stats now = pool_stats(p);

	check(p);
	assert_int_equal(now.files, before->files);
	assert_int_equal(now.file_bytes, before->file_bytes);
	assert_int_equal(now.slabs, before->slabs);
	assert_int_equal(now.assigned_bytes, before->assigned_bytes);
	assert_int_equal(now.used_bytes, before->used_bytes);
	assert_int_equal(now.held_bytes, before->held_bytes);
}

/* Runs `call` twice at most: only one allocation fails. */
#define AGAIN(p, call)                                                                             \
	do {                                                                                       \
		struct skv_pool_stats before = pool_stats(p);                                      \
		int status = (call);                                                               \
		if (status == SKV_E_NOMEM) {                                                       \
			same((p), &before);                                                        \
			status = (call);                                                           \
		}                                                                                  \
		assert_int_equal(status, SKV_OK);                                                  \
		check(p);                                                                          \
	} while (0)

static struct skv_pool *create(void)
{
	struct skv_pool_options o = { .unit = 4096 };
	struct skv_pool *p = skv_pool_create(&o);

	return p ? p : skv_pool_create(&o);
}

static uint32_t waits(void *ctx, uint32_t slab)
{
	(void)ctx;
	(void)slab;
	return 0;
}

static void scenario(void)
{
	static struct skv_run runs[40 * SLOTS];
	struct skv_slab_place place = { .file = 3, .unit = 0, .units = 4 };
	struct skv_pool *p = create();
	struct skv_run taken;
	uint32_t *slabs;
	uint32_t small;
	uint32_t big;
	uint32_t n;
	size_t n_slabs;

	assert_non_null(p);
	AGAIN(p, skv_pool_add_file(p, 3, 4096 * 32));
	AGAIN(p, skv_pool_add_file(p, 1, 4096 * 4));
	AGAIN(p, skv_pool_class(p, 64, 64, &small));
	AGAIN(p, skv_pool_class(p, 4096 * 4, 4096, &big));
	AGAIN(p, skv_pool_add_file(p, 1, 4096 * 8));
	/* Many slabs in one call: all or nothing, wherever in it memory ends. */
	AGAIN(p, skv_pool_alloc(p, small, 40 * SLOTS - 5, runs, &n));
	assert_int_equal(n, 40);
	assert_int_equal(skv_pool_available(p, small), 5);
	AGAIN(p, skv_pool_find_victims(p, big, &(struct skv_victims){ .waits = waits },
				       &slabs, &n_slabs));
	assert_int_equal(n_slabs, 4);
	skv_free(slabs);
	for (uint32_t i = 0; i < n; i++)
		skv_pool_hold(p, runs[i], 100 + i % 7);
	check(p);
	/* A big slab over held small ones. */
	AGAIN(p, skv_pool_take(p, big, place, 0, 1, &taken));
	skv_pool_freeze_free(p, 500);
	check(p);
	assert_int_equal(skv_pool_available(p, small), 0);
	assert_int_equal(skv_pool_release_due(p, 99), 0);
	skv_pool_release_due(p, 499); /* if memory was short, some are held until 500 */
	skv_pool_release_due(p, 500);
	assert_int_equal(pool_stats(p).slabs, 1);
	assert_int_equal(pool_stats(p).held_bytes, 0);
	skv_pool_free(p, taken);
	check(p);
	assert_int_equal(skv_pool_available(p, small), 40 * SLOTS);
	assert_int_equal(skv_pool_available(p, big), 10);
	skv_pool_destroy(p);
}

static void test_every_allocation_fails_once(void **state)
{
	unsigned long at = 0;

	(void)state;
	do {
		skv_mem_fail_at(++at);
		scenario();
	} while (skv_mem_count() >= at);
	skv_mem_fail_at(0);
	assert_true(at > 50); /* 40 slabs alone */
	print_message("%lu allocations\n", at - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_allocation_fails_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
