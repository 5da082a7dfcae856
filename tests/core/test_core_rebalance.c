/*
 * test_core_rebalance.c - space moves between size classes: from what nobody uses to what is
 * written, not from what is used, and no start is refused while something may be evicted.
 */
#include "core_env.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define UNIT (1ull << 20)
#define UNITS 12u
#define SMALL 65536u
#define LARGE 196608u
#define BYTES (UNITS * UNIT)

static void setup(struct env *e)
{
	struct skv_spec small = { "kv", SMALL }, large = { "kv", LARGE };

	env_init(e);
	env_open(e);
	assert_int_equal(env_storage(e, "s", BYTES, UNIT), SKV_OK);
	assert_int_equal(env_group(e, "g", 0, "s"), SKV_OK);
	assert_int_equal(env_instance(e, "i", "g", &small, 1), SKV_OK);
	assert_int_equal(env_instance(e, "l", "g", &large, 1), SKV_OK);
}

static int put_to(struct env *e, const char *instance, uint64_t number)
{
	struct skv_key key = { 1, number };
	struct skv_start_res s;
	struct skv_finish_res f;
	char session[SKV_SESSION_ID_HEX + 1];
	int rc = env_start(e, &(struct env_start){ .instance = instance, .keys = &key, .n = 1 },
			   &s);

	if (rc != SKV_OK)
		return rc;
	memcpy(session, s.session, sizeof session);
	return env_finish(e, session, NULL, 0, &f);
}

static void put(struct env *e, const char *instance, uint64_t number)
{
	int rc = put_to(e, instance, number);

	if (rc != SKV_OK)
		fail_msg("put %llu of %s: %s %s", (unsigned long long)number, instance,
			 skv_status_name(rc), e->err.message);
	env_advance(e, 10);
}

static uint64_t used(struct env *e, const char *instance)
{
	struct skv_stats st;

	env_stats(e, &st);
	for (uint32_t i = 0; i < st.n_instances; i++)
		if (strcmp(st.instances[i].spec.id, instance) == 0)
			return st.instances[i].used_bytes;
	fail();
	return 0;
}

/* The small ones have all of it, and nobody asks for them any more. */
static void test_idle_space_goes_to_who_writes(void **state)
{
	struct skv_core_counters n;
	struct env e;

	(void)state;
	setup(&e);
	for (uint32_t i = 0; i < BYTES / SMALL; i++)
		put(&e, "i", i);
	assert_true(used(&e, "i") > BYTES * 8 / 10);
	env_advance(&e, 600000);
	for (uint32_t i = 0; i < 300; i++)
		put(&e, "l", i);
	assert_true(used(&e, "l") > BYTES * 7 / 10);
	skv_cluster_counters_get(e.cluster, &n);
	assert_true(n.steered_windows > 0);
	/* And back. */
	env_advance(&e, 3600000);
	for (uint32_t i = 0; i < 1000; i++)
		put(&e, "i", 10000 + i);
	assert_true(used(&e, "i") > BYTES * 7 / 10);
	env_check(&e);
	env_destroy(&e);
}

/* Both write and read alike: neither takes all of the other's. */
static void test_nobody_starves(void **state)
{
	uint64_t least[2] = { BYTES, BYTES };
	struct env e;

	(void)state;
	setup(&e);
	for (uint32_t i = 0; i < 1500; i++) {
		for (uint32_t k = 0; k < LARGE / SMALL; k++)
			put(&e, "i", i * (LARGE / SMALL) + k);
		put(&e, "l", i);
		if (i < 500 || i % 20)
			continue;
		least[0] = used(&e, "i") < least[0] ? used(&e, "i") : least[0];
		least[1] = used(&e, "l") < least[1] ? used(&e, "l") : least[1];
	}
	assert_true(least[0] > BYTES / 5);
	assert_true(least[1] > BYTES / 5);
	env_check(&e);
	env_destroy(&e);
}

/* Long stretches of one size, then of the other, while readers hold leases here and there. */
static void test_no_start_is_refused(void **state)
{
	uint64_t number = 0;
	struct env e;

	(void)state;
	setup(&e);
	for (uint32_t turn = 0; turn < 12; turn++) {
		const char *instance = turn % 2 ? "l" : "i";

		for (uint32_t i = 0; i < 150; i++, number++) {
			struct skv_key key = { 1, number };
			struct skv_lookup_res r;

			put(&e, instance, number);
			if (i % 16 == 0 && turn % 2 == 0) /* "i" only: env_lookup asks for it */
				assert_int_equal(env_lookup(&e, &key, 1, SKV_LOOKUP_BATCH, 200, &r),
						 SKV_OK);
		}
	}
	env_check(&e);
	env_destroy(&e);
}

/* Somebody reads a small block in each unit, again and again: a large one
 * gets a window all the same. */
static void test_leases_everywhere(void **state)
{
	struct skv_lookup_res r;
	struct skv_key key = { 1, 0 };
	uint32_t leased = 0;
	struct env e;

	(void)state;
	setup(&e);
	for (uint32_t i = 0; i < BYTES / SMALL; i++)
		put(&e, "i", i);
	for (key.lo = 0; key.lo < BYTES / SMALL; key.lo += 5) {
		assert_int_equal(env_lookup(&e, &key, 1, SKV_LOOKUP_BATCH, 8000, &r), SKV_OK);
		leased += r.matched;
	}
	assert_true(leased >= 2 * UNITS);
	put(&e, "l", 1);
	env_check(&e);
	/* A single window went, eight units of the twelve for this size; the others' leases
	 * stand. */
	for (key.lo = 0; key.lo < BYTES / SMALL; key.lo += 5) {
		const struct skv_key one = key;

		leased -= env_match(&e, &one, 1);
	}
	assert_in_range(leased, 1, 8 * 3 + 3);
	env_destroy(&e);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	(void)st, (void)type, (void)walk;
	return remove(path);
}

static char root[sizeof "/tmp/skv-rebalance-XXXXXX"];

static int make_root(void **state)
{
	(void)state;
	snprintf(root, sizeof root, "/tmp/skv-rebalance-XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
	(void)state;
	return nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Chunks of 1 MiB and blocks of 100 KiB: ten slots in a segment, which become free together. */
static void test_segments_come_free(void **state)
{
	enum { PUTS = 600 };
	struct skv_storage_spec s = { .name = "s", .type = "hf3fs", .root = root,
				      .capacity = 32 * UNIT, .unit = 4 * UNIT,
				      .file_size = 16 * UNIT, .chunk_size = UNIT, .any_mount = true,
				      .enabled = true };
	struct skv_spec spec = { "kv", 100 << 10 };
	struct skv_core_counters before, after;
	struct skv_stats st;
	struct env e;
	uint64_t most;

	(void)state;
	env_init(&e);
	env_open(&e);
	assert_int_equal(skv_cluster_storage_put(e.cluster, &s, SKV_PUT_ANY, NULL, &e.err), SKV_OK);
	assert_int_equal(env_group(&e, "g", 0, "s"), SKV_OK);
	assert_int_equal(env_instance(&e, "i", "g", &spec, 1), SKV_OK);
	for (uint32_t i = 0; i < PUTS; i++)
		put(&e, "i", i);
	most = used(&e, "i");
	assert_true(most > 20 * UNIT);
	skv_cluster_counters_get(e.cluster, &before);
	for (uint32_t i = 0; i < PUTS; i++) {
		struct skv_key key = { 1, PUTS + i };
		struct skv_lookup_res r;

		put(&e, "i", PUTS + i);
		if (i % 32 == 0) /* somebody reads one of them: its segment waits, others go */
			assert_int_equal(env_lookup(&e, &key, 1, SKV_LOOKUP_BATCH, 500, &r),
					 SKV_OK);
	}
	skv_cluster_counters_get(e.cluster, &after);
	/* A block goes for each that comes, and not many more. */
	assert_in_range(after.evicted_blocks - before.evicted_blocks, PUTS / 2, PUTS + PUTS / 2);
	assert_true(used(&e, "i") > most / 10 * 8);
	env_check(&e);
	env_crash(&e);
	env_open(&e);
	env_check(&e);
	env_advance(&e, 30000); /* until then all of it counts as leased */
	for (uint32_t i = 0; i < PUTS / 4; i++)
		put(&e, "i", 3 * PUTS + i);
	env_stats(&e, &st);
	assert_true(st.storages[0].used_bytes > most / 10 * 7);
	env_check(&e);
	env_destroy(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_idle_space_goes_to_who_writes),
		cmocka_unit_test(test_nobody_starves),
		cmocka_unit_test(test_no_start_is_refused),
		cmocka_unit_test(test_leases_everywhere),
		cmocka_unit_test_setup_teardown(test_segments_come_free, make_root, remove_root),
	};

	env_quiet();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
