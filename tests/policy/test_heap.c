/* test_heap.c - the heaps behind eviction and deadlines, against a plain array. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include <skv/heap.h>
#include <skv/mem.h>
#include <skv/status.h>

#define IDS 5000u
#define HEAPS 5u

static struct skv_heaps hp;
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
	assert_int_equal(skv_heap_top(&hp, which, &key, &id), any);
	if (any) {
		assert_true(key == least);
		assert_true(model[id].in && model[id].which == which && model[id].key == key);
	}
}

static void random_steps(void **state)
{
	unsigned seed = 7;

	(void)state;
	skv_heaps_init(&hp, HEAPS, place, NULL);
	assert_int_equal(skv_heaps_reserve(&hp, IDS), SKV_OK);
	for (uint32_t step = 0; step < 200000; step++) {
		uint32_t id = (uint32_t)rand_r(&seed) % IDS;

		if (model[id].in) {
			assert_true(places[id] != 0);
			skv_heap_remove(&hp, id);
			assert_int_equal(places[id], 0);
			model[id].in = false;
		} else {
			model[id].in = true;
			model[id].which = (unsigned)rand_r(&seed) % 7 % HEAPS;
			model[id].key = (uint64_t)rand_r(&seed) % 1000;
			skv_heap_push(&hp, model[id].which, model[id].key, id);
			assert_int_equal(skv_heap_which(places[id]), model[id].which);
			assert_true(skv_heap_key(&hp, places[id]) == model[id].key);
		}
		if (step % 500 == 0) {
			for (unsigned w = 0; w < HEAPS; w++)
				compare_top(w);
		}
	}
	skv_heaps_destroy(&hp);
}

/* The place of an id has 27 bits: what does not fit is refused, and nothing is reserved for it. */
static void too_many(void **state)
{
	struct skv_heaps one;

	(void)state;
	skv_heaps_init(&one, 1, place, NULL);
	assert_int_equal(skv_heaps_reserve(&one, SKV_HEAP_IDS), SKV_E_TOO_MANY);
	assert_int_equal(skv_heaps_reserve(&one, SIZE_MAX), SKV_E_TOO_MANY);
	assert_int_equal(one.chunks, 0);
	assert_int_equal(skv_heaps_reserve(&one, 1), SKV_OK);
	skv_heaps_destroy(&one);
}

/* All ids in one heap, then all in the other: what is reserved is enough for any split. */
static void any_split_fits(void **state)
{
	uint64_t key;
	uint32_t id;

	(void)state;
	skv_heaps_init(&hp, HEAPS, place, NULL);
	for (uint32_t n = 1; n <= IDS; n += 311) {
		assert_int_equal(skv_heaps_reserve(&hp, n), SKV_OK);
		for (uint32_t i = 0; i < n; i++)
			skv_heap_push(&hp, 0, n - i, i);
		for (uint32_t i = 0; i < n; i++) {
			assert_true(skv_heap_top(&hp, 0, &key, &id));
			assert_true(key == i + 1);
			skv_heap_remove(&hp, id);
			skv_heap_push(&hp, 1, key, id);
		}
		for (uint32_t i = n; i-- > 0;)
			skv_heap_remove(&hp, i);
		assert_false(skv_heap_top(&hp, 1, &key, &id));
	}
	skv_heaps_destroy(&hp);
}

/* Without memory there is the room that there was. */
static void no_memory(void **state)
{
	uint64_t key;
	uint32_t id;

	(void)state;
	for (unsigned long nth = 1; nth <= 40; nth++) {
		skv_heaps_init(&hp, 1, place, NULL);
		assert_int_equal(skv_heaps_reserve(&hp, 300), SKV_OK);
		for (uint32_t i = 0; i < 300; i++)
			skv_heap_push(&hp, 0, i, i);
		skv_mem_fail_at(nth);
		if (skv_heaps_widen(&hp, HEAPS) == SKV_OK)
			(void)skv_heaps_reserve(&hp, IDS);
		skv_mem_fail_at(0);
		for (uint32_t i = 0; i < 300; i++) {
			assert_true(skv_heap_top(&hp, 0, &key, &id) && key == i);
			skv_heap_remove(&hp, id);
			skv_heap_push(&hp, hp.n_heaps - 1, key + 1000, id);
		}
		for (uint32_t i = 0; i < 300; i++)
			skv_heap_remove(&hp, i);
		skv_heaps_destroy(&hp);
	}
}

static long resident_pages(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long all = 0, resident = 0;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%ld %ld", &all, &resident), 2);
	fclose(f);
	return resident;
}

/* 12 bytes for each id: most blocks of a chain are never queued, and should not cost that. It
 * grows as a table does, by a chunk's entries at a time. */
static void room_that_is_not_used_takes_no_memory(void **state)
{
	const uint32_t room = 4u << 20;
	const long before = resident_pages(), all = (long)(room * 12ul / 4096);

	(void)state;
	skv_heaps_init(&hp, HEAPS, place, NULL);
	for (uint32_t n = 0; n < room; n += 255)
		assert_int_equal(skv_heaps_reserve(&hp, n + 255), SKV_OK);
	for (uint32_t i = 0; i < IDS; i++)
		skv_heap_push(&hp, i % HEAPS, i, i);
	assert_true(resident_pages() - before < all / 4);
	for (uint32_t i = 0; i < IDS; i++)
		skv_heap_remove(&hp, i);
	skv_heaps_destroy(&hp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_steps),
		cmocka_unit_test(any_split_fits),
		cmocka_unit_test(no_memory),
		cmocka_unit_test(too_many),
		cmocka_unit_test(room_that_is_not_used_takes_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
