/*
 * test_core_policy.c - policies of groups in the core: what is refused, what goes first,
 * changes of policy, age, restarts, what an eviction costs. That policies themselves are
 * right is tests/policy's.
 */
#include "core_env.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <skv/mem.h>

#include <model/mark.h>

#define BLOCK 65536u
#define UNIT (1ull << 20)

static struct env e;

static int setup(void **state)
{
	(void)state;
	env_quiet();
	env_init(&e);
	e.o.grace_ms = 0;
	env_open(&e);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	env_check(&e);
	env_destroy(&e);
	return 0;
}

static const char *const storages[] = { "s" };

static int put_group(const char *name, const char *policy, uint64_t ttl_ms, uint64_t max_idle_ms)
{
	const struct skv_group_spec g = { .name = name, .storages = storages, .n_storages = 1,
					  .policy = policy,
					  .ttl_ms = ttl_ms, .max_idle_ms = max_idle_ms };

	return skv_cluster_group_put(e.cluster, &g, SKV_PUT_ANY, NULL, NULL, &e.err);
}

#define NEVER_MS (1ull << 40)

/* Of ttl, which needs one. */
static uint64_t age_of(const char *policy) { return strcmp(policy, "ttl") == 0 ? NEVER_MS : 0; }

/* Room for about so many blocks; for 15 exactly. */
static void make(uint64_t blocks, const char *policy)
{
	env_make(&e, (blocks + 1) * BLOCK, UNIT, BLOCK); /* the superblock takes one */
	assert_int_equal(put_group("g", policy, age_of(policy), 0), SKV_OK);
}

static void refused(int rc, const char *field, const char *says)
{
	assert_int_equal(rc, SKV_E_INVALID);
	assert_string_equal(e.err.field, field);
	assert_non_null(strstr(e.err.message, says));
	skv_error_clear(&e.err);
}

/* Each a chain of its own, one start and finish. */
static void put_one(uint64_t n)
{
	struct skv_key key;

	env_keys(&key, 1, 0, n);
	assert_int_equal(env_put(&e, &key, 1), 1);
}

static void put_each(uint64_t first, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		put_one(first + i);
}

static void use(uint64_t n, uint32_t lease_ms)
{
	struct skv_lookup_res r;
	struct skv_key key;

	env_keys(&key, 1, 0, n);
	assert_int_equal(env_lookup(&e, &key, 1, SKV_LOOKUP_PREFIX, lease_ms, &r), SKV_OK);
	assert_int_equal(r.matched, 1);
}

static bool there(uint64_t n)
{
	struct skv_key key;

	env_keys(&key, 1, 0, n);
	return env_match(&e, &key, 1) == 1;
}

static struct skv_core_counters counters(void)
{
	struct skv_core_counters c;

	skv_cluster_counters_get(e.cluster, &c);
	return c;
}

/* ---- groups ---------------------------------------------------------------------------------- */

static void test_refused(void **state)
{
	struct skv_group_view *v;

	(void)state;
	make(15, "");
	refused(put_group("g", "mru", 0, 0), "policy",
		"there are reuse, deferred, selective, lru, s3fifo, ttl");
	/* of simulations */
	refused(put_group("g", "sieve", 0, 0), "policy", "no policy 'sieve'");
	refused(put_group("g", "ttl", 0, 0), "ttl_ms", "needs");
	refused(put_group("g", "lru", 5, 0), "ttl_ms", "only policy 'ttl'");
	refused(put_group("g", "", 5, 0), "ttl_ms", "not 'reuse'");
	refused(put_group("g", "s3fifo", 0, 5), "max_idle_ms", "'s3fifo'");
	assert_int_equal(put_group("g", "selective", 0, 5), SKV_OK);
	assert_int_equal(put_group("g", "ttl", 5, 0), SKV_OK);
	assert_int_equal(put_group("other", NULL, 0, 0), SKV_OK);
	env_shutdown(&e);
	env_open(&e);
	skv_arena_reset(&e.arena);
	assert_int_equal(skv_cluster_group(e.cluster, "g", &e.arena, &v, &e.err), SKV_OK);
	assert_string_equal(v->spec.policy, "ttl");
	assert_int_equal(v->spec.ttl_ms, 5);
	skv_arena_reset(&e.arena);
	assert_int_equal(skv_cluster_group(e.cluster, "other", &e.arena, &v, &e.err), SKV_OK);
	assert_string_equal(v->spec.policy, "");
}

/* ---- what goes first ------------------------------------------------------------------------- */

static void test_order(void **state)
{
	static const struct {
		const char *policy;
		uint64_t victims[3]; /* of 0..14, where 0 was used three times, 2 twice, 1 last */
	} cases[] = {
		{ "deferred", { 3, 4, 5 } }, { "reuse", { 3, 4, 5 } }, { "lru", { 3, 4, 5 } },
		{ "ttl", { 0, 1, 2 } }, { "s3fifo", { 1, 3, 4 } },
	};

	(void)state;
	make(15, "");
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		uint64_t first = 100 * i, n;

		assert_int_equal(env_clear(&e, NULL, &n), SKV_OK);
		env_advance(&e, 10);
		assert_int_equal(put_group("g", cases[i].policy, age_of(cases[i].policy), 0),
				 SKV_OK);
		put_each(first, 15);
		for (int u = 0; u < 3; u++)
			use(first, 0);
		use(first + 2, 0);
		use(first + 2, 0);
		use(first + 1, 0);
		for (uint32_t k = 0; k < 3; k++) {
			put_one(first + 15 + k);
			for (uint64_t b = 0; b < 15; b++)
				assert_int_equal(there(first + b),
						 b != cases[i].victims[0] &&
							 (k < 1 || b != cases[i].victims[1]) &&
							 (k < 2 || b != cases[i].victims[2]));
		}
	}
}

/* A chain loses its tail first, and what a policy that knows no chains takes of
 * it is a prefix of nobody. */
static void test_chains(void **state)
{
	struct skv_key keys[16], more[4];

	(void)state;
	make(15, "reuse");
	env_keys(keys, 11, 7, 0);
	env_keys(more, 4, 8, 0);
	assert_int_equal(env_put(&e, keys, 11), 11);
	assert_int_equal(env_put(&e, more, 4), 4);
	put_each(0, 3);
	assert_int_equal(env_match(&e, keys, 11), 8);
	assert_int_equal(env_match(&e, more, 4), 4);
	assert_int_equal(put_group("g", "ttl", NEVER_MS, 0), SKV_OK);
	env_advance(&e, 10);
	put_one(50);
	assert_int_equal(env_match(&e, keys, 11), 0);
}

/* Between groups of one storage the least recently used goes, whatever their policies. */
static void test_groups_compared(void **state)
{
	static const char *const policies[] = { "ttl", "lru", "reuse", "s3fifo" };
	const struct skv_spec spec = { "kv", BLOCK };
	struct skv_key key;
	struct skv_start_res s;
	struct skv_finish_res f;
	char session[SKV_SESSION_ID_HEX + 1], id[8];

	(void)state;
	make(15, "lru");
	for (uint32_t g = 0; g < 4; g++) {
		snprintf(id, sizeof id, "g%u", g);
		assert_int_equal(put_group(id, policies[g], age_of(policies[g]), 0), SKV_OK);
		assert_int_equal(env_instance(&e, id, id, &spec, 1), SKV_OK);
	}
	for (uint32_t i = 0; i < 48; i++) {
		/* round and round: the oldest is always the same group's */
		snprintf(id, sizeof id, "g%u", i % 4);
		env_keys(&key, 1, 0, i);
		assert_int_equal(env_start(&e,
					   &(struct env_start){ .instance = id, .keys = &key,
								.n = 1 }, &s), SKV_OK);
		memcpy(session, s.session, sizeof session);
		assert_int_equal(env_finish(&e, session, NULL, 0, &f), SKV_OK);
		env_advance(&e, 1);
	}
	for (uint32_t g = 0; g < 4; g++) {
		struct skv_group_view *v;

		snprintf(id, sizeof id, "g%u", g);
		skv_arena_reset(&e.arena);
		assert_int_equal(skv_cluster_group(e.cluster, id, &e.arena, &v, &e.err),
				 SKV_OK);
		assert_int_equal(v->blocks, g ? 4 : 3); /* the newest 15 */
	}
}

/* ---- change ---------------------------------------------------------------------------------- */

/* By the new policy, at once and when all is queued again; in portions, with
 * others' calls in between. */
static void test_change(void **state)
{
	(void)state;
	make(3071, "lru");
	for (uint64_t first = 0; first < 3072; first += 256) {
		struct skv_key keys[256];

		env_keys(keys, 256, first, 0);
		for (uint32_t i = 0; i < 256; i++) /* each its own chain */
			keys[i].hi += (uint64_t)i << 32;
		for (uint32_t i = 0; i < 256; i++)
			assert_int_equal(env_put(&e, &keys[i], 1), 1);
	}
	for (uint32_t round = 0; round < 3; round++) {
		static const char *const policies[] = { "s3fifo", "ttl", "reuse" };

		assert_int_equal(put_group("g", policies[round], age_of(policies[round]), 0),
				 SKV_OK);
		put_one(1000 + round);
		for (uint32_t i = 0; i < 8; i++) { /* 1024 blocks at a time */
			env_advance(&e, 1);
			put_one(2000 + round * 10 + i);
			env_check(&e);
		}
	}
	assert_true(counters().evict_examined < 4 * 3072);
}

/* From use to birth and back: the first of all goes, then the least used. */
static void test_change_of_order(void **state)
{
	(void)state;
	make(15, "lru");
	put_each(0, 15);
	use(0, 0);
	assert_int_equal(put_group("g", "ttl", NEVER_MS, 0), SKV_OK);
	env_advance(&e, 10);
	put_one(20);
	assert_false(there(0));
	use(1, 0);
	assert_int_equal(put_group("g", "lru", 0, 0), SKV_OK);
	env_advance(&e, 10);
	put_one(21);
	assert_true(there(1) && !there(2));
	assert_int_equal(put_group("g", "reuse", 0, 0), SKV_OK);
	put_one(22); /* nothing was queued again yet */
	assert_true(there(1) && !there(3));
}

/* Without memory the policy stays, or the partition is loaded anew; nothing is lost. */
static void test_change_without_memory(void **state)
{
	int rc = SKV_E_NOMEM;

	(void)state;
	make(15, "lru");
	put_each(0, 15);
	for (unsigned long nth = 1; rc != SKV_OK; nth++) {
		assert_true(nth < 300);
		skv_mem_fail_at(nth);
		rc = put_group("g", nth % 2 ? "reuse" : "s3fifo", 0, 0);
		skv_mem_fail_at(0);
		skv_error_clear(&e.err);
		for (int i = 0; i < 5; i++)
			env_advance(&e, 700);
		env_check(&e);
	}
	for (uint64_t i = 0; i < 15; i++)
		assert_true(there(i));
}

/* ---- age ------------------------------------------------------------------------------------- */

static void test_ttl(void **state)
{
	(void)state;
	make(63, "");
	assert_int_equal(put_group("g", "ttl", 60000, 0), SKV_OK);
	put_each(0, 10);
	env_advance(&e, 30000);
	put_each(10, 10);
	for (uint64_t i = 0; i < 20; i++)
		use(i, 0); /* says nothing */
	env_advance(&e, 29000);
	env_advance(&e, 10);
	assert_true(there(0) && there(19));
	use(3, 5000);
	env_advance(&e, 1000);
	env_advance(&e, 10);
	for (uint64_t i = 0; i < 20; i++)
		assert_int_equal(there(i), i >= 10 || i == 3); /* leased */
	env_advance(&e, 5000);
	env_advance(&e, 10);
	assert_false(there(3));
	env_shutdown(&e);
	env_open(&e);
	env_advance(&e, 30000);
	env_advance(&e, 10);
	for (uint64_t i = 0; i < 20; i++)
		assert_false(there(i));
	put_each(100, 70); /* full: the oldest go */
	assert_true(!there(106));
	for (uint64_t i = 120; i < 170; i++)
		assert_true(there(i));
}

/* ---- restarts -------------------------------------------------------------------------------- */

/* The policy's state survives a clean stop, and a kill after a checkpoint, also one of an earlier
 * boot; blocks written since the checkpoint count as newer. */
static void test_order_survives(void **state)
{
	static const char *const policies[] = { "reuse", "lru", "s3fifo", "ttl" };

	(void)state;
	for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
		for (int how = 0; how < 3; how++) {
			if (i || how) {
				env_destroy(&e);
				env_init(&e);
				e.o.grace_ms = 0;
				env_open(&e);
			}
			make(15, policies[i]);
			put_each(0, 8);
			for (uint64_t b = 0; b < 3; b++) {
				use(b, 0);
				use(b, 0);
			}
			if (how) {
				env_shutdown(&e);
				if (how == 2) { /* a boot: its clock begins anew */
					e.o.boot_id = "bbbbbbbb-0000-4000-8000-000000000002";
					atomic_store(&e.clock.now, 5000);
				}
				env_open(&e);
			}
			put_each(8, 7);
			if (how == 0)
				env_shutdown(&e);
			else
				env_crash(&e);
			env_open(&e);
			env_advance(&e, 20000); /* all counts as leased until the horizon */
			put_each(15, 5);
			for (uint64_t b = 0; b < 20; b++) {
				bool oldest =
					strcmp(policies[i], "ttl") == 0 ? b < 5 : b >= 3 && b < 8;

				assert_int_equal(there(b), !oldest);
			}
		}
	}
}

static void test_marks(void **state)
{
	unsigned seed = 1;

	(void)state;
	for (uint32_t i = 0; i < 10000; i++) {
		uint64_t ms = ((uint64_t)rand_r(&seed) << 6 ^ (uint64_t)rand_r(&seed)) & USE_MS_MAX;
		uint64_t mark = mark_make(use_make(ms, 0), 0, 0),
			 lease = ms + (uint64_t)rand_r(&seed) % SKV_MAX_LEASE_MS, end;
		uint32_t freq = (uint32_t)rand_r(&seed) % 16;

		assert_int_equal(use_ms(mark_use(mark)), ms);
		assert_int_equal(mark_freq(mark), 0);
		assert_int_equal(mark_lease_end(mark), 0);
		mark = mark_make(mark_use(mark), freq, lease);
		end = mark_lease_end(mark);
		assert_true(lease == ms ? end == 0 : end >= lease && end < lease + MARK_LEASE_UNIT);
		/* The same end again, from another use, is the same end. */
		if (end > ms + 1)
			assert_int_equal(mark_lease_end(mark_make(use_make(ms + 1, 0), freq, end)),
					 end);
		assert_int_equal(mark_freq(mark), freq);
		assert_int_equal(mark_freq(mark_with_freq(mark, 15 - freq)), 15 - freq);
		assert_int_equal(mark_lease_end(mark_with_freq(mark, 15 - freq)), end);
	}
	assert_int_equal(mark_freq(mark_make(1, 16, 0)), 15);
}

/* ---- cost ------------------------------------------------------------------------------------ */

#define INSTANCES 100u
#define CHAINS 10u /* of an instance */

/* A full store of many instances, looked up at random with leases: an eviction looks at few
 * entries, be there a start of one block or of many, and leased ones are not among them. Returns a
 * sum over what is there in the end. */
static uint64_t churn(const char *policy, uint32_t step_ms, uint32_t lease_ms)
{
	const struct skv_spec spec = { "kv", BLOCK };
	struct skv_core_counters before = { 0 }, after;
	struct skv_key keys[16];
	struct skv_start_res s;
	struct skv_finish_res f;
	struct skv_lookup_res r;
	uint64_t sum = 0;
	unsigned seed = 9;
	char id[8];

	make(4095, policy);
	for (uint32_t i = 0; i < INSTANCES; i++) {
		snprintf(id, sizeof id, "i%u", i);
		assert_int_equal(env_instance(&e, id, "g", &spec, 1), SKV_OK);
	}
	for (uint32_t round = 0; round < 2400; round++) {
		uint32_t n = 1 + (uint32_t)rand_r(&seed) % 16,
			 inst = (uint32_t)rand_r(&seed) % INSTANCES;
		uint32_t chain = (uint32_t)rand_r(&seed) % CHAINS;

		if (round == 1200)
			before = counters();
		env_keys(keys, n, chain, 0);
		snprintf(id, sizeof id, "i%u", inst);
		skv_arena_reset(&e.arena);
		assert_int_equal(env_lookup_req(&e,
						&(struct skv_lookup_req){ .tenant = "t",
						  .instance = id, .keys = keys,
					.n_keys = n, .mode = SKV_LOOKUP_PREFIX,
					.lease_ms = lease_ms }, &r), SKV_OK);
		if (r.matched < n) {
			char session[SKV_SESSION_ID_HEX + 1];

			assert_int_equal(env_start(&e,
						   &(struct env_start){ .instance = id,
						     .keys = keys, .n = n }, &s), SKV_OK);
			memcpy(session, s.session, sizeof session);
			assert_int_equal(env_finish(&e, session, NULL, 0, &f), SKV_OK);
		}
		sum = sum * 31 + r.matched;
		env_advance(&e, step_ms);
	}
	after = counters();
	assert_true(after.evicted_blocks > before.evicted_blocks + 800);
	if (after.evict_examined - before.evict_examined >=
	    4 * (after.evicted_blocks - before.evicted_blocks))
		fail_msg("%s: %llu examined for %llu", policy,
			 (unsigned long long)(after.evict_examined - before.evict_examined),
			 (unsigned long long)(after.evicted_blocks - before.evicted_blocks));
	return sum;
}

static void test_cost(void **state)
{
	static const char *const policies[] = { "reuse", "lru", "ttl", "s3fifo" };

	(void)state;
	for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
		uint64_t sum = 0;

		for (uint32_t run = 0; run < (i % 3 ? 1 : 3); run++) {
			/* of two, whether time is nothing */
			uint64_t got;

			if (i || run) {
				teardown(NULL);
				setup(NULL);
			}
			got = churn(policies[i], run == 2 ? 137 : 3, run ? 0 : 400);
			if (run == 2) /* without leases */
				assert_true(got == sum);
			sum = got;
		}
	}
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_refused),
		T(test_order),
		T(test_chains),
		T(test_groups_compared),
		T(test_change),
		T(test_change_of_order),
		T(test_change_without_memory),
		T(test_ttl),
		T(test_order_survives),
		T(test_marks),
		T(test_cost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
