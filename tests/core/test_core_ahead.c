/*
 * test_core_ahead.c - room made ahead of need: starts evict behind themselves, more is kept free
 * while more is written, never more than free_percent, and what was not needed is written to
 * first. Sees the core's insides: whose turn it was has no outside.
 */
#include "core_env.h"

#include <lock/lock.h>
#include <model/partition.h>
#include <model/volume.h>

#define BLOCK 4096u
#define UNIT (1ull << 20)
#define CAPACITY (8ull * UNIT)
#define BATCH 16u
#define PERCENT 2u

static struct env e;
static uint64_t written;

/* Slots of the storage, and of these the free ones, now and when removals under way are durable. */
struct room {
	uint64_t all, free, soon;
};

static struct room room(void)
{
	const struct volume *v;
	struct room r;

	core_lock(e.core);
	v = &e.core->partition->volume[0];
	r.all = v->file_bytes / v->class[0].stride;
	r.free = skv_pool_available(v->pool, 0);
	r.soon = r.free + v->class[0].removing;
	core_unlock(e.core);
	return r;
}

static uint64_t share(void) { return room().all / 100 * PERCENT; }

static uint64_t evicted(void)
{
	struct skv_core_counters c;

	skv_cluster_counters_get(e.cluster, &c);
	return c.evicted_blocks;
}

static void put(void)
{
	struct skv_key k[BATCH];

	env_keys(k, BATCH, 1, written);
	assert_int_equal(env_put(&e, k, BATCH), BATCH);
	written += BATCH;
}

static int setup(void **state)
{
	(void)state;
	env_init(&e);
	e.o.free_percent = PERCENT;
	env_open(&e);
	env_make(&e, CAPACITY, UNIT, BLOCK);
	while (written < 2 * CAPACITY / BLOCK)
		put();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	env_check(&e);
	env_destroy(&e);
	written = 0;
	return 0;
}

static void ignore(void *ctx, int status)
{
	(void)ctx;
	assert_int_equal(status, SKV_OK);
}

/* The call alone, before any tick: what it took is on its way back. */
static void a_start_evicts_behind_itself(void **state)
{
	const struct skv_done done = { ignore, NULL };
	struct skv_key k[BATCH];
	struct skv_start_req req = { .tenant = "t", .instance = "i", .request_id = "", .keys = k,
				     .n_keys = BATCH };
	struct skv_start_res res = { 0 };
	struct room before, after;

	(void)state;
	env_keys(k, BATCH, 2, 0);
	for (unsigned i = 0; i < 10; i++) {
		put();
		env_advance(&e, 20);
	}
	before = room();
	assert_in_range(before.free, BATCH, share());
	assert_int_equal(skv_core_start(e.core, &req, &res, &e.arena, &e.err, &done), SKV_PENDING);
	after = room();
	assert_true(after.soon > before.soon - BATCH);
	assert_true(after.soon >= share() / 4);
	env_advance(&e, 1);
}

static void no_more_than_its_share_at_any_rate(void **state)
{
	static const unsigned puts[] = { 1, 40, 3, 100, 0, 60 }; /* in a tick */

	(void)state;
	for (unsigned i = 0; i < 30 * sizeof puts / sizeof puts[0]; i++) {
		for (unsigned n = 0; n < puts[i / 30]; n++) {
			put();
			assert_true(room().free <= share() + BATCH);
		}
		env_advance(&e, 20);
		assert_true(room().soon <= share() + BATCH);
	}
}

/* After a burst as much is free as it needed; calm writers take that before anything goes. */
static void what_was_not_needed_is_used(void **state)
{
	uint64_t before;
	struct room r;

	(void)state;
	for (unsigned i = 0; i < 20; i++) {
		for (unsigned n = 0; n < 20; n++)
			put();
		env_advance(&e, 20);
	}
	assert_true(room().soon >= share() - BATCH);
	for (unsigned i = 0; i < 100; i++)
		env_advance(&e, 20);
	r = room();
	before = evicted();
	put();
	assert_int_equal(evicted(), before);
	assert_int_equal(room().free, r.free - BATCH);
}

int main(void)
{
#define SCENE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		SCENE(a_start_evicts_behind_itself),
		SCENE(no_more_than_its_share_at_any_rate),
		SCENE(what_was_not_needed_is_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
