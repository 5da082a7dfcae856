/*
 * test_core_tiers.c - groups that have copies of another one's blocks: what a lookup tells of them,
 * what hides them, who registers and drops them, which groups may be tiers.
 */
#include "core_env.h"

#include <stdio.h>
#include <string.h>

#define BLOCK 65536u
#define UNIT (1ull << 20)
#define COPIES "i@fast"

static int put_tier(struct env *e, const char *name, const char *tier_of, bool write_through,
		    const char *storage)
{
	struct skv_group_spec g = { .name = name, .storages = &storage, .n_storages = 1,
				    .tier_of = tier_of, .write_through = write_through };

	memset(&e->err, 0, sizeof e->err);
	return skv_cluster_group_put(e->cluster, &g, SKV_PUT_ANY, NULL, NULL, &e->err);
}

/* "g" on storage "s" with instance "i" of two specs, and "fast" on "m". */
static void setup(struct env *e)
{
	const struct skv_spec specs[] = { { "a", BLOCK }, { "b", BLOCK } };

	env_init(e);
	env_open(e);
	assert_int_equal(env_storage(e, "s", 32 * UNIT, UNIT), SKV_OK);
	assert_int_equal(env_storage(e, "m", 16 * UNIT, UNIT), SKV_OK);
	assert_int_equal(env_group(e, "g", 0, "s"), SKV_OK);
	assert_int_equal(env_instance(e, "i", "g", specs, 2), SKV_OK);
	assert_int_equal(put_tier(e, "fast", "g", true, "m"), SKV_OK);
}

/* Both specs of the keys {1, first}..., with checksums sum, sum + 1 (0: without any). Returns what
 * start told of copies. */
static bool put(struct env *e, const char *instance, uint32_t first, uint32_t n, uint64_t sum)
{
	struct skv_key keys[64];
	uint64_t sums[128];
	struct skv_start_res s;
	struct skv_finish_res f;
	char session[33];
	bool through;

	env_keys(keys, n, 1, first);
	assert_int_equal(env_start(e, &(struct env_start){ .instance = instance, .keys = keys,
							   .n = n }, &s), SKV_OK);
	assert_int_equal(s.n_write, n);
	through = s.copy_instance != NULL;
	if (through)
		assert_string_equal(s.copy_instance, COPIES);
	memcpy(session, s.session, sizeof session);
	for (uint32_t i = 0; i < 2 * n; i++)
		sums[i] = sum + i % 2;
	assert_int_equal(env_finish(e, session, sums, sum ? 2 * n : 0, &f), SKV_OK);
	assert_int_equal(f.committed, n);
	return through;
}

static int look(struct env *e, const struct skv_lookup_req *more, uint32_t n, uint32_t lease_ms,
		struct skv_lookup_res *r)
{
	static struct skv_key keys[64];
	struct skv_lookup_req q = *more;

	env_keys(keys, n, 1, 0);
	q.tenant = "t";
	q.instance = q.instance ? q.instance : "i";
	q.mode = SKV_LOOKUP_BATCH;
	q.keys = keys;
	q.n_keys = n;
	q.lease_ms = lease_ms;
	return env_lookup_req(e, &q, r);
}

static const struct skv_lookup_req with_copies = { .want_copies = true };

/* Of key {1, 0}: "" a miss; else "s" for each spec, and "m" for each of its copies, e.g. "ssmm". */
static const char *told(struct env *e)
{
	static char text[8];
	struct skv_lookup_res r;
	char *at = text;

	assert_int_equal(look(e, &with_copies, 1, 0, &r), SKV_OK);
	for (uint32_t c = 0; r.hit[0] && c < 2; c++)
		*at++ = r.files.v[r.loc[c].file].storage[0];
	for (uint32_t c = 0; r.hit[0] && r.copy && c < 2; c++) {
		if (!r.copy[c].length)
			continue;
		assert_true(r.copy[c].has_checksum && r.copy[c].checksum == r.loc[c].checksum);
		assert_int_equal(r.copy[c].length, r.loc[c].length);
		*at++ = r.files.v[r.copy[c].file].storage[0];
	}
	*at = '\0';
	return text;
}

static void a_copy_counts_beside_its_block(void **state)
{
	struct skv_lookup_res r;
	struct skv_key key;
	uint64_t cleared;
	uint32_t deleted;
	struct env e;

	(void)state;
	setup(&e);
	env_keys(&key, 1, 1, 0);
	put(&e, COPIES, 0, 1, 100);
	assert_string_equal(told(&e), ""); /* a copy of nothing */
	assert_true(put(&e, "i", 0, 1, 100));
	assert_string_equal(told(&e), "ssmm");
	assert_int_equal(look(&e, &(struct skv_lookup_req){ 0 }, 1, 0, &r), SKV_OK);
	assert_true(r.hit[0] && !r.copy); /* not asked for */

	/* A deletion reaches both; the same key with other bytes has no copy. */
	assert_int_equal(env_delete(&e, &key, 1, &deleted), SKV_OK);
	assert_int_equal(deleted, 1);
	assert_string_equal(told(&e), "");
	assert_int_equal(look(&e, &(struct skv_lookup_req){ .instance = COPIES }, 1, 0, &r),
			 SKV_OK);
	assert_false(r.hit[0]);
	put(&e, COPIES, 0, 1, 100);
	put(&e, "i", 0, 1, 200);
	assert_string_equal(told(&e), "ss");

	/* So does a clear. Of two specs one may be a copy. */
	assert_int_equal(env_clear(&e, NULL, &cleared), SKV_OK);
	assert_string_equal(told(&e), "");
	put(&e, "i", 0, 1, 100);
	assert_string_equal(told(&e), "ss");
	put(&e, COPIES, 0, 1, 99); /* 99, 100: not 100, 101 */
	assert_string_equal(told(&e), "ss");
	env_clear(&e, NULL, &cleared);
	put(&e, "i", 0, 1, 0); /* without checksums nothing is proven */
	put(&e, COPIES, 0, 1, 0);
	assert_string_equal(told(&e), "ss");
	env_destroy(&e);
}

static void both_are_leased(void **state)
{
	struct skv_lookup_res r;
	struct skv_stats st;
	struct env e;
	uint64_t cleared;

	(void)state;
	setup(&e);
	put(&e, "i", 0, 4, 100);
	put(&e, COPIES, 1, 2, 100);
	env_crash(&e); /* copies are as durable as blocks */
	env_open(&e);
	assert_int_equal(look(&e, &with_copies, 5, 3000, &r), SKV_OK);
	assert_int_equal(r.matched, 4);
	assert_in_range(r.lease_ms, 2900, 3000);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(r.copy[2 * i].length, i == 1 || i == 2 ? BLOCK : 0);
	/* The slots of copies rest until the lease ends, also after a kill. */
	assert_int_equal(env_clear(&e, COPIES, &cleared), SKV_OK);
	assert_int_equal(cleared, 2);
	env_advance(&e, 100);
	env_stats(&e, &st);
	for (uint32_t i = 0; i < st.n_storages; i++)
		if (st.storages[i].spec.name[0] == 'm')
			assert_int_equal(st.storages[i].quarantined_bytes, 4 * BLOCK);
	for (uint32_t i = 0; i < st.n_groups; i++) /* hits of a tier are its group's */
		assert_int_equal(st.groups[i].hits, st.groups[i].spec.name[0] == 'f' ? 2 : 4);
	env_crash(&e);
	env_open(&e);
	put(&e, COPIES, 1, 2, 100);
	env_stats(&e, &st);
	for (uint32_t i = 0; i < st.n_storages; i++)
		if (st.storages[i].spec.name[0] == 'm')
			assert_int_equal(st.storages[i].quarantined_bytes, 4 * BLOCK);
	env_advance(&e, 30000);
	env_stats(&e, &st);
	for (uint32_t i = 0; i < st.n_storages; i++)
		assert_int_equal(st.storages[i].quarantined_bytes, 0);
	env_destroy(&e);
}

static void eviction_of_copies_costs_no_hit(void **state)
{
	struct skv_lookup_res r;
	uint32_t copies = 0;
	struct env e;

	(void)state;
	setup(&e);
	for (uint32_t i = 0; i < 60; i++) { /* 240 slots are "m"'s most: 120 blocks */
		put(&e, "i", i, 1, 100);
		put(&e, COPIES, i, 1, 100);
	}
	for (uint32_t i = 1000; i < 1100; i++)
		put(&e, COPIES, i, 1, 7);
	assert_int_equal(look(&e, &with_copies, 60, 0, &r), SKV_OK);
	assert_int_equal(r.matched, 60);
	for (uint32_t i = 0; i < 60; i++)
		copies += r.copy && r.copy[2 * i].length != 0;
	assert_in_range(copies, 0, 40);
	env_check(&e);
	env_destroy(&e);
}

static void refused(struct env *e, int rc, int status, const char *field)
{
	assert_int_equal(rc, status);
	assert_string_equal(e->err.field, field);
	assert_true(*e->err.message);
}

static void which_groups_may_be_tiers(void **state)
{
	const struct skv_spec spec = { "kv", BLOCK };
	struct env e;

	(void)state;
	setup(&e);
	refused(&e, put_tier(&e, "x", "x", false, "m"), SKV_E_INVALID, "tier_of");
	refused(&e, put_tier(&e, "x", "none", false, "m"), SKV_E_NOT_FOUND, "tier_of");
	refused(&e, put_tier(&e, "x", "g", false, "m"), SKV_E_CONFLICT, "tier_of");
	refused(&e, put_tier(&e, "x", "fast", false, "m"), SKV_E_INVALID, "tier_of");
	refused(&e, put_tier(&e, "fast", "", false, "m"), SKV_E_CONFLICT, "tier_of");
	refused(&e, put_tier(&e, "g", "fast", false, "s"), SKV_E_CONFLICT, "tier_of");
	refused(&e, put_tier(&e, "g", "", true, "s"), SKV_E_INVALID, "write_through");
	assert_int_equal(put_tier(&e, "fast", "g", false, "m"), SKV_OK);
	assert_false(put(&e, "i", 0, 1, 100)); /* no write_through any more */
	assert_int_equal(put_tier(&e, "fast", "g", true, "m"), SKV_OK);
	refused(&e, env_instance(&e, "j", "fast", &spec, 1), SKV_E_INVALID, "group");
	refused(&e, skv_cluster_group_delete(e.cluster, "g", &e.err), SKV_E_IN_USE, "name");
	env_destroy(&e);
}

static bool is_there(struct env *e, const char *id)
{
	struct skv_instance_view *v;

	return skv_cluster_instance(e->cluster, "t", id, &e->arena, &v, &e->err) == SKV_OK;
}

static void copy_instances_come_and_go_with_theirs(void **state)
{
	const struct skv_spec spec = { "kv", BLOCK };
	struct env e;

	(void)state;
	setup(&e);
	assert_true(is_there(&e, COPIES)); /* made with the group */
	assert_int_equal(env_instance(&e, "Org/j", "g", &spec, 1), SKV_OK);
	assert_true(is_there(&e, "Org/j@fast"));
	env_crash(&e);
	env_open(&e);
	put(&e, "i", 0, 1, 100);
	put(&e, COPIES, 0, 1, 100);
	assert_string_equal(told(&e), "ssmm");
	assert_int_equal(skv_cluster_instance_delete(e.cluster, "t", "Org/j", NULL, &e.err),
			 SKV_OK);
	assert_false(is_there(&e, "Org/j@fast"));
	/* The tier goes as a whole, and nothing is missing. */
	assert_int_equal(skv_cluster_group_delete(e.cluster, "fast", &e.err), SKV_OK);
	assert_false(is_there(&e, COPIES));
	assert_string_equal(told(&e), "ss");
	assert_int_equal(put_tier(&e, "fast", "g", false, "m"), SKV_OK);
	assert_true(is_there(&e, COPIES));
	assert_string_equal(told(&e), "ss");
	assert_int_equal(skv_cluster_instance_delete(e.cluster, "t", "i", NULL, &e.err), SKV_OK);
	assert_int_equal(skv_cluster_group_delete(e.cluster, "fast", &e.err), SKV_OK);
	assert_int_equal(skv_cluster_group_delete(e.cluster, "g", &e.err), SKV_OK);
	env_destroy(&e);
}

/* Of several partitions the fast tier is in that of its group, with all copies. */
static void a_tier_is_in_its_groups_partition(void **state)
{
	const struct skv_spec spec = { "kv", BLOCK };
	char name[16], fast[16], copies[40], id[16];
	struct env e;

	(void)state;
	env_init(&e);
	e.all.partitions = 4;
	env_open(&e);
	assert_int_equal(env_storage(&e, "s", 64 * UNIT, UNIT), SKV_OK);
	for (int i = 0; i < 6; i++) {
		snprintf(name, sizeof name, "g%d", i);
		snprintf(fast, sizeof fast, "f%d", i);
		snprintf(id, sizeof id, "i%d", i);
		snprintf(copies, sizeof copies, "%s@%s", id, fast);
		assert_int_equal(env_group(&e, name, 0, "s"), SKV_OK);
		assert_int_equal(put_tier(&e, fast, name, true, "s"), SKV_OK);
		assert_int_equal(env_instance(&e, id, name, &spec, 1), SKV_OK);
		assert_true(is_there(&e, copies));
	}
	env_destroy(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_copy_counts_beside_its_block),
		cmocka_unit_test(both_are_leased),
		cmocka_unit_test(eviction_of_copies_costs_no_hit),
		cmocka_unit_test(which_groups_may_be_tiers),
		cmocka_unit_test(a_tier_is_in_its_groups_partition),
		cmocka_unit_test(copy_instances_come_and_go_with_theirs),
	};

	env_quiet();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
