/*
 * test_core_load.c - memory of what is loaded: tables of indexes, and regions of entries that are
 * made before they are needed. Sees the core's insides: neither has an outside.
 */
#include "core_env.h"

#include <pthread.h>
#include <string.h>

#include <skv/mem.h>

#include <lock/lock.h>
#include <model/index.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/region.h>
#include <recovery/checkpoint.h>

#define N 40000u /* blocks: more than a region has */
#define BATCH 512u

static struct env e;

static int setup(void **state)
{
	(void)state;
	env_init(&e);
	env_open(&e);
	env_make(&e, 1ull << 30, 1 << 20, 4096);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	env_destroy(&e);
	return 0;
}

static void put(uint32_t from, uint32_t to)
{
	struct skv_key k[BATCH];

	for (uint32_t at = from, n; at < to; at += n) {
		n = to - at < BATCH ? to - at : BATCH;
		env_keys(k, n, 1, at);
		assert_int_equal(env_put(&e, k, n), n);
	}
}

static void all_are_found(uint32_t blocks)
{
	struct skv_key k[BATCH];

	for (uint32_t at = 0, n; at < blocks; at += n) {
		n = blocks - at < BATCH ? blocks - at : BATCH;
		env_keys(k, n, 1, at);
		assert_int_equal(env_match(&e, k, n), n);
	}
}

/* Of all tables of the instance, the fullest and the emptiest one in percent. */
static void fill_of_tables(uint32_t *most, uint32_t *least)
{
	const struct instance *inst;
	uint64_t count = 0;

	core_lock(e.core);
	assert_int_equal(e.core->partition->n_inst, 1);
	inst = e.core->partition->inst[0];
	*most = 0;
	*least = 100;
	for (uint32_t i = 0; i < INDEX_SEGMENTS; i++) {
		const struct segment *s = &inst->index[i];
		const uint32_t fill = s->homes ? (uint32_t)(100ull * s->count / s->homes) : 0;

		count += s->count;
		*most = fill > *most ? fill : *most;
		*least = fill < *least ? fill : *least;
	}
	assert_int_equal(count, inst->entries);
	core_unlock(e.core);
}

static void load_again(void)
{
	env_crash(&e);
	env_open(&e);
}

/* Tables double while a journal is replayed, and take no more room than others afterwards. */
static void tables_fit_after_a_load(void **state)
{
	uint32_t most, least;

	(void)state;
	put(0, N);
	load_again(); /* of the journal alone */
	fill_of_tables(&most, &least);
	assert_true(least >= 80 && most <= 90);
	all_are_found(N);
	env_check(&e);
	assert_int_equal(checkpoint_run(e.core, false, &e.err), SKV_OK);
	put(N, 2 * N);
	load_again(); /* of a checkpoint, and a journal behind it */
	fill_of_tables(&most, &least);
	assert_true(least >= 80 && most <= 90);
	all_are_found(2 * N);
	env_check(&e);
	assert_false(e.core->partition->roomy);
	put(2 * N, 3 * N); /* by a quarter again */
	fill_of_tables(&most, &least);
	assert_true(least >= 65);
}

/* ---- regions --------------------------------------------------------------------------------- */

#define TAKEN 24u

static void is_a_region(const unsigned char *region)
{
	assert_non_null(region);
	assert_int_equal((uintptr_t)region % SKV_REGION_BYTES, 0);
	for (size_t at = 0; at < SKV_REGION_BYTES; at += 511)
		assert_int_equal(region[at], 0);
}

static void *take_some(void *arg)
{
	void **taken = arg;

	for (uint32_t i = 1; i <= TAKEN; i++) {
		taken[i] = region_take(taken[0]);
		is_a_region(taken[i]);
		memset(taken[i], 0xff, SKV_REGION_BYTES); /* nobody else has it */
	}
	return NULL;
}

static void regions_belong_to_who_took_them(void **state)
{
	(void)state;
	for (int ahead = 0; ahead < 2; ahead++) {
		struct regions *r = regions_make(ahead);
		void *a[TAKEN + 1] = { r }, *b[TAKEN + 1] = { r };
		pthread_t thread;

		assert_non_null(r);
		assert_int_equal(pthread_create(&thread, NULL, take_some, a), 0);
		take_some(b);
		pthread_join(thread, NULL);
		regions_free(r); /* in the middle of making more */
		for (uint32_t i = 1; i <= TAKEN; i++) {
			for (uint32_t j = 1; j <= TAKEN; j++)
				assert_ptr_not_equal(a[i], b[j]);
			skv_region_free(a[i]);
			skv_region_free(b[i]);
		}
	}
	regions_free(regions_make(true)); /* nothing was taken */
}

/* Out of memory is told to who takes, and ends nothing. */
static void none_is_left(void **state)
{
	struct regions *r = regions_make(false);
	void *region;

	(void)state;
	assert_non_null(r);
	skv_mem_fail_at(1);
	assert_null(region_take(r));
	skv_mem_fail_at(0);
	region = region_take(r);
	is_a_region(region);
	skv_region_free(region);
	regions_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(tables_fit_after_a_load, setup, teardown),
		cmocka_unit_test(regions_belong_to_who_took_them),
		cmocka_unit_test(none_is_left),
	};

	env_quiet();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
