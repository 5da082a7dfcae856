/* test_core_heap.c - the pairs of heaps behind eviction and deadlines, against a plain array. */
#include "core_env.h"

#include <stdlib.h>

#include "../../server/core/internal.h"

#define IDS 5000u

static struct heap_pair hp;
static uint32_t places[IDS];
static struct {
	bool in;
	unsigned which;
	uint64_t key;
} model[IDS];

static uint32_t *place(void *ctx, uint32_t id)
{
	(void)ctx;
	return &places[id];
}

static void compare_top(unsigned which)
{
	uint64_t least = UINT64_MAX, key;
	uint32_t id;
	bool any = false;

	for (uint32_t i = 0; i < IDS; i++) {
		if (!model[i].in || model[i].which != which)
			continue;
		any = true;
		least = model[i].key < least ? model[i].key : least;
	}
	assert_int_equal(heap_top(&hp, which, &key, &id), any);
	if (any) {
		assert_true(key == least);
		assert_true(model[id].in && model[id].which == which && model[id].key == key);
	}
}

static void random_steps(void **state)
{
	unsigned seed = 7;

	(void)state;
	heap_pair_init(&hp, place, NULL);
	assert_int_equal(heap_pair_reserve(&hp, IDS), KVB_OK);
	for (uint32_t step = 0; step < 200000; step++) {
		uint32_t id = (uint32_t)rand_r(&seed) % IDS;

		if (model[id].in) {
			assert_true(places[id] != 0);
			heap_remove(&hp, id);
			assert_int_equal(places[id], 0);
			model[id].in = false;
		} else {
			model[id].in = true;
			model[id].which = (unsigned)rand_r(&seed) % 7 == 0;
			model[id].key = (uint64_t)rand_r(&seed) % 1000;
			heap_push(&hp, model[id].which, model[id].key, id);
		}
		if (step % 500 == 0) {
			compare_top(0);
			compare_top(1);
		}
	}
	heap_pair_destroy(&hp);
}

/* All ids in one heap, then all in the other: what is reserved is enough for any split. */
static void any_split_fits(void **state)
{
	uint64_t key;
	uint32_t id;

	(void)state;
	heap_pair_init(&hp, place, NULL);
	for (uint32_t n = 1; n <= IDS; n += 311) {
		assert_int_equal(heap_pair_reserve(&hp, n), KVB_OK);
		for (uint32_t i = 0; i < n; i++)
			heap_push(&hp, 0, n - i, i);
		for (uint32_t i = 0; i < n; i++) {
			assert_true(heap_top(&hp, 0, &key, &id));
			assert_true(key == i + 1);
			heap_remove(&hp, id);
			heap_push(&hp, 1, key, id);
		}
		for (uint32_t i = n; i-- > 0;)
			heap_remove(&hp, i);
		assert_false(heap_top(&hp, 1, &key, &id));
	}
	heap_pair_destroy(&hp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_steps),
		cmocka_unit_test(any_split_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
