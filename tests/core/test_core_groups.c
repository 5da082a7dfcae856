/*
 * test_core_groups.c - limits and settings of a group: bounds, quotas by type, lines, steps, idle
 * blocks; storages that come and go; numbered slots; documents; and all of it after a restart.
 */
#include "core_env.h"

#include <stdio.h>
#include <string.h>

#include <journal/registry.h>

#define BLOCK 65536u
#define UNIT (1ull << 20)

static struct env e;

static int setup(void **state)
{
	(void)state;
	env_quiet();
	env_init(&e);
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

static const char *const one[] = { "s" };

static struct skv_group_spec group(void)
{
	return (struct skv_group_spec){ .name = "g", .storages = one, .n_storages = 1,
					.extra = "x" };
}

static int put_group(const struct skv_group_spec *g)
{
	return skv_cluster_group_put(e.cluster, g, SKV_PUT_ANY, NULL, NULL, &e.err);
}

static int put_instance(const char *id, const char *in, uint64_t size, bool numbered)
{
	const struct skv_spec spec = { "kv", size };
	const struct skv_instance_spec i = { .tenant = "t", .id = id, .group = in, .specs = &spec,
					     .n_specs = 1,
					     .extra = "", .numbered = numbered };

	return skv_cluster_instance_put(e.cluster, &i, SKV_PUT_ANY, NULL, &e.err);
}

static uint64_t blocks(void)
{
	struct skv_group_view *v;

	skv_arena_reset(&e.arena);
	assert_int_equal(skv_cluster_group(e.cluster, "g", &e.arena, &v, &e.err), SKV_OK);
	return v->blocks;
}

/* Starts n fresh blocks and leaves them open. */
static int start(uint64_t first, uint32_t n, struct skv_start_res *res)
{
	static struct skv_key keys[256];

	env_keys(keys, n, 0, first);
	return env_start(&e, &(struct env_start){ .keys = keys, .n = n }, res);
}

static uint32_t put(uint64_t first, uint32_t n)
{
	struct skv_key keys[256];

	env_keys(keys, n, 0, first);
	return env_put(&e, keys, n);
}

static void partial_for(uint64_t ms)
{
	for (uint64_t t = 0; t < ms; t += 100)
		env_advance(&e, 100);
}

static void test_max_blocks(void **state)
{
	struct skv_group_spec g = group();
	struct skv_start_res res;

	(void)state;
	env_make(&e, 16 * UNIT, UNIT, BLOCK);
	g.max_blocks = 16;
	assert_int_equal(put_group(&g), SKV_OK);
	assert_int_equal(put(0, 12), 12);
	assert_int_equal(start(100, 4, &res), SKV_OK); /* being written: they count */
	assert_int_equal(start(200, 1, &res), SKV_E_QUOTA);
	assert_string_equal(e.err.field, "max_blocks");
	assert_int_equal(blocks(), 12);
	g.reclaim_blocks = 2;
	assert_int_equal(put_group(&g), SKV_OK);
	partial_for(500);
	assert_int_equal(blocks(), 2);
	assert_int_equal(start(200, 1, &res), SKV_OK);
	g.max_blocks = 0;
	assert_int_equal(put_group(&g), SKV_OK);
	assert_int_equal(start(300, 64, &res), SKV_OK);
}

static void test_lines_spare_leases(void **state)
{
	struct skv_group_spec g = group();
	struct skv_lookup_res res;
	struct skv_key keys[10];

	(void)state;
	env_make(&e, 16 * UNIT, UNIT, BLOCK);
	assert_int_equal(put(0, 40), 40);
	env_keys(keys, 10, 0, 0);
	assert_int_equal(env_lookup(&e, keys, 10, SKV_LOOKUP_PREFIX, 5000, &res), SKV_OK);
	g.reclaim_bytes = 4 * BLOCK;
	assert_int_equal(put_group(&g), SKV_OK);
	partial_for(1000);
	assert_int_equal(blocks(), 10);
	assert_int_equal(env_match(&e, keys, 10), 10);
	partial_for(6000);
	assert_int_equal(blocks(), 4);
	assert_int_equal(env_match(&e, keys, 10), 4); /* the head of the chain is what stays */
}

static void test_steps(void **state)
{
	struct skv_group_spec g = group();

	(void)state;
	env_make(&e, 16 * UNIT, UNIT, BLOCK);
	assert_int_equal(put(0, 40), 40);
	g.reclaim_bytes = 10 * BLOCK;
	g.reclaim_step_bytes = 5 * BLOCK;
	g.reclaim_period_ms = 2000;
	assert_int_equal(put_group(&g), SKV_OK);
	partial_for(500);
	assert_int_equal(blocks(), 35);
	partial_for(1000);
	assert_int_equal(blocks(), 35);
	partial_for(1000);
	assert_int_equal(blocks(), 30);
	g.reclaim_step_bytes = 0;
	g.reclaim_step_percent = 50;
	assert_int_equal(put_group(&g), SKV_OK); /* a change counts at once */
	partial_for(300);
	assert_int_equal(blocks(), 15);
}

static void test_idle(void **state)
{
	struct skv_group_spec g = group();
	struct skv_lookup_res res;
	struct skv_key keys[8];

	(void)state;
	env_make(&e, 16 * UNIT, UNIT, BLOCK);
	g.max_idle_ms = 10000;
	assert_int_equal(put_group(&g), SKV_OK);
	assert_int_equal(put(0, 20), 20);
	partial_for(6000);
	env_keys(keys, 8, 0, 0);
	assert_int_equal(env_lookup(&e, keys, 8, SKV_LOOKUP_PREFIX, 0, &res), SKV_OK);
	partial_for(5000);
	assert_int_equal(blocks(), 8);
	partial_for(6000);
	assert_int_equal(blocks(), 0);
}

static void test_type_quota(void **state)
{
	const struct skv_type_quota quota = { "null", 8 * BLOCK, 0 },
				    tight = { "null", 8 * BLOCK, 3 * BLOCK };
	struct skv_group_spec g = group();
	struct skv_start_res res;

	(void)state;
	env_make(&e, 16 * UNIT, UNIT, BLOCK);
	g.quotas = &quota;
	g.n_quotas = 1;
	assert_int_equal(put_group(&g), SKV_OK);
	assert_int_equal(put(0, 8), 8);
	assert_int_equal(put(100, 4), 4); /* evicts */
	assert_int_equal(blocks(), 8);
	assert_int_equal(start(200, 9, &res), SKV_E_QUOTA);
	assert_string_equal(e.err.field, "quotas");
	g.quotas = &tight;
	assert_int_equal(put_group(&g), SKV_OK);
	partial_for(500);
	assert_int_equal(blocks(), 3);
}

static void test_max_instances(void **state)
{
	struct skv_group_spec g = group();

	(void)state;
	env_make(&e, 16 * UNIT, UNIT, BLOCK);
	g.max_instances = 2;
	assert_int_equal(put_group(&g), SKV_OK);
	assert_int_equal(put_instance("j", "g", BLOCK, false), SKV_OK);
	assert_int_equal(put_instance("k", "g", BLOCK, false), SKV_E_TOO_MANY);
	assert_int_equal(put_instance("j", "g", BLOCK, false), SKV_OK); /* again */
	assert_int_equal(skv_cluster_instance_delete(e.cluster, "t", "j", NULL, &e.err), SKV_OK);
	assert_int_equal(put_instance("k", "g", BLOCK, false), SKV_OK);
}

static void expect_exists(int rc, const char *field)
{
	assert_int_equal(rc, SKV_E_CONFLICT);
	assert_string_equal(e.err.field, field);
	skv_error_clear(&e.err);
}

/* A put of an existing object changes nothing under "create only", also with equal content; an
 * absent object is not made under "change only". */
static void test_create_only(void **state)
{
	static const struct skv_spec spec = { "kv", BLOCK };
	struct skv_storage_spec s = { .name = "s", .type = "null", .capacity = 4 * UNIT,
				      .unit = UNIT, .file_size = 2 * UNIT,
				      .enabled = true, .extra = "first" };
	struct skv_instance_spec i = { .tenant = "t", .id = "i", .group = "g", .specs = &spec,
				       .n_specs = 1, .extra = "first" };
	struct skv_group_spec g = group();
	struct skv_storage_view *sv;
	struct skv_instance_view *iv;
	struct skv_group_view *gv;

	(void)state;
	assert_int_equal(skv_cluster_storage_put(e.cluster, &s, SKV_PUT_THERE, NULL, &e.err),
			 SKV_E_NOT_FOUND);
	assert_int_equal(skv_cluster_storage_put(e.cluster, &s, SKV_PUT_NEW, NULL, &e.err), SKV_OK);
	assert_int_equal(skv_cluster_group_put(e.cluster, &g, SKV_PUT_NEW, NULL, NULL, &e.err),
			 SKV_OK);
	assert_int_equal(skv_cluster_instance_put(e.cluster, &i, SKV_PUT_NEW, NULL, &e.err),
			 SKV_OK);
	expect_exists(skv_cluster_storage_put(e.cluster, &s, SKV_PUT_NEW, NULL, &e.err), "name");
	expect_exists(skv_cluster_group_put(e.cluster, &g, SKV_PUT_NEW, NULL, NULL, &e.err),
		      "name");
	expect_exists(skv_cluster_instance_put(e.cluster, &i, SKV_PUT_NEW, NULL, &e.err), "id");
	s.extra = i.extra = g.extra = "second";
	s.capacity = 8 * UNIT;
	g.capacity = UNIT;
	expect_exists(skv_cluster_storage_put(e.cluster, &s, SKV_PUT_NEW, NULL, &e.err), "name");
	expect_exists(skv_cluster_group_put(e.cluster, &g, SKV_PUT_NEW, NULL, NULL, &e.err),
		      "name");
	expect_exists(skv_cluster_instance_put(e.cluster, &i, SKV_PUT_NEW, NULL, &e.err), "id");
	for (int round = 0; round < 2; round++) {
		skv_arena_reset(&e.arena);
		assert_int_equal(skv_cluster_storage(e.cluster, "s", &e.arena, &sv, &e.err),
				 SKV_OK);
		assert_string_equal(sv[0].spec.extra, "first");
		assert_int_equal(sv[0].spec.capacity, 4 * UNIT);
		assert_int_equal(skv_cluster_group(e.cluster, "g", &e.arena, &gv, &e.err),
				 SKV_OK);
		assert_string_equal(gv[0].spec.extra, "x");
		assert_int_equal(gv[0].spec.capacity, 0);
		assert_int_equal(
			skv_cluster_instance(e.cluster, "t", "i", &e.arena, &iv, &e.err),
			SKV_OK);
		assert_string_equal(iv[0].spec.extra, "first");
		env_crash(&e);
		env_open(&e);
	}
	assert_int_equal(skv_cluster_storage_put(e.cluster, &s, SKV_PUT_THERE, NULL, &e.err),
			 SKV_OK);
	assert_int_equal(skv_cluster_storage(e.cluster, "s", &e.arena, &sv, &e.err), SKV_OK);
	assert_string_equal(sv[0].spec.extra, "second");
}

static void test_version(void **state)
{
	struct skv_group_spec g = group();
	uint64_t is = 1;

	(void)state;
	env_make(&e, 16 * UNIT, UNIT, BLOCK);
	g.version = 1;
	assert_int_equal(put_group(&g), SKV_OK);
	g.version = 2;
	assert_int_equal(skv_cluster_group_put(e.cluster, &g, SKV_PUT_ANY, &is, NULL, &e.err),
			 SKV_OK);
	g.version = 3;
	assert_int_equal(skv_cluster_group_put(e.cluster, &g, SKV_PUT_ANY, &is, NULL, &e.err),
			 SKV_E_CONFLICT);
	assert_string_equal(e.err.field, "version");
	env_crash(&e);
	env_open(&e);
	is = 2;
	assert_int_equal(skv_cluster_group_put(e.cluster, &g, SKV_PUT_ANY, &is, NULL, &e.err),
			 SKV_OK);
}

static void test_loose_storages(void **state)
{
	static const char *const two[] = { "later", "s" };
	struct skv_group_spec g = { .name = "g", .storages = two, .n_storages = 2 };
	struct skv_start_res res;

	(void)state;
	assert_int_equal(put_group(&g), SKV_E_NOT_FOUND);
	g.loose_storages = true;
	assert_int_equal(put_group(&g), SKV_OK);
	assert_int_equal(put_instance("i", "g", BLOCK, false), SKV_OK);
	assert_int_equal(start(0, 1, &res), SKV_E_UNAVAILABLE);
	assert_int_equal(env_storage(&e, "s", 16 * UNIT, UNIT), SKV_OK);
	env_advance(&e, 100);
	assert_int_equal(put(0, 4), 4);
	/* blocks are in it */
	assert_int_equal(skv_cluster_storage_delete(e.cluster, "s", &e.err), SKV_E_IN_USE);
	env_crash(&e);
	env_open(&e);
	assert_int_equal(blocks(), 4);
	assert_int_equal(skv_cluster_instance_delete(e.cluster, "t", "i", NULL, &e.err), SKV_OK);
	partial_for(2000);
	assert_int_equal(skv_cluster_storage_delete(e.cluster, "s", &e.err), SKV_OK);
}

/* Slots of an odd size: offset / length is whole, also of what a restart has
 * read back, and none overlap. */
static void test_numbered(void **state)
{
	const uint32_t size = 69633;
	struct skv_lookup_res res;
	struct skv_key keys[40];
	uint64_t seen[40];
	uint32_t deleted;

	(void)state;
	assert_int_equal(env_storage(&e, "s", 64 * UNIT, UNIT), SKV_OK);
	assert_int_equal(env_group(&e, "g", 0, "s"), SKV_OK);
	assert_int_equal(put_instance("i", "g", size, true), SKV_OK);
	assert_int_equal(put_instance("i", "g", size, false), SKV_E_CONFLICT);
	assert_string_equal(e.err.field, "numbered");
	assert_int_equal(put_instance("other", "g", size, false), SKV_OK);
	env_advance(&e, 100);
	assert_int_equal(put(0, 40), 40);
	env_keys(keys, 40, 0, 0);
	for (int round = 0; round < 2; round++) {
		assert_int_equal(env_lookup(&e, keys, 40, SKV_LOOKUP_PREFIX, 1000, &res), SKV_OK);
		assert_int_equal(res.matched, 40);
		for (uint32_t i = 0; i < 40; i++) {
			assert_int_equal(res.loc[i].length, size);
			assert_int_equal(res.loc[i].offset % size, 0);
			if (round)
				assert_int_equal(res.loc[i].offset, seen[i]);
			seen[i] = res.loc[i].offset;
		}
		env_shutdown(&e); /* with held slots in the checkpoint */
		env_open(&e);
	}
	/* Held slots are of the numbered class after a restart as before: nobody
	 * is given them meanwhile. */
	assert_int_equal(env_lookup(&e, keys, 40, SKV_LOOKUP_PREFIX, 9000, &res), SKV_OK);
	assert_int_equal(env_delete(&e, keys, 40, &deleted), SKV_OK);
	env_shutdown(&e);
	env_open(&e);
	env_check(&e);
	assert_int_equal(put(1000, 40), 40);
	env_keys(keys, 40, 0, 1000);
	assert_int_equal(env_lookup(&e, keys, 40, SKV_LOOKUP_PREFIX, 0, &res), SKV_OK);
	for (uint32_t i = 0; i < 40; i++)
		for (uint32_t j = 0; j < 40; j++)
			assert_int_not_equal(res.loc[i].offset, seen[j]);
}

static void test_storage_description(void **state)
{
	struct skv_storage_spec s = { .name = "s", .type = "null", .root = "", .capacity = UNIT,
				      .file_size = UNIT,
				      .unit = UNIT, .enabled = true, .client_root = "/mnt/kv/a",
				      .client_mount = "/mnt/kv/",
				      .extra = "{}" };
	struct skv_storage_view *v;

	(void)state;
	assert_int_equal(skv_cluster_storage_put(e.cluster, &s, SKV_PUT_ANY, NULL, &e.err), SKV_OK);
	s.client_mount = "/mnt/k";
	assert_int_equal(skv_cluster_storage_put(e.cluster, &s, SKV_PUT_ANY, NULL, &e.err),
			 SKV_E_INVALID);
	assert_string_equal(e.err.field, "client_mount");
	s.client_mount = "/mnt";
	s.extra = "changed";
	assert_int_equal(skv_cluster_storage_put(e.cluster, &s, SKV_PUT_ANY, NULL, &e.err), SKV_OK);
	for (int round = 0; round < 2; round++) {
		assert_int_equal(skv_cluster_storage(e.cluster, "s", &e.arena, &v, &e.err),
				 SKV_OK);
		assert_string_equal(v->spec.client_root, "/mnt/kv/a");
		assert_string_equal(v->spec.client_mount, "/mnt");
		assert_string_equal(v->spec.extra, "changed");
		env_crash(&e);
		env_open(&e);
	}
}

/* A document that no manager of this version has written is refused. */
static void test_foreign_documents(void **state)
{
	static const struct {
		const char *key, *bytes;
		size_t n;
	} bad[] = { { "group/g", "\x02\x01g", 3 },		/* another version */
		    { "group/g", "\x01\x05g", 3 },		/* cut */
		    { "group/g", "\x01\x01g\x0a\x09x", 6 },	/* no protobuf */
		    { "group/g", "\x01\x01g\xb8\x01\x07", 6 }, /* a share that there is not */
		    { "storage/s", "\x01\x01\x00\x00\x00", 5 },
		    { "instance/t/i", "\x01\x02\x00\x00\x00\x01t\x01i", 9 } }; /* without specs */

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct skv_instance_spec inst;
		struct skv_group_spec group;
		struct storage_doc storage;
		uint32_t id;
		const char *key = bad[i].key, *v = bad[i].bytes;
		const size_t n = bad[i].n;
		int rc;

		if (key[0] == 'g')
			rc = registry_get_group(&e.arena, key, v, n, &group, &e.err);
		else if (key[0] == 's')
			rc = registry_get_storage(&e.arena, key, v, n, &storage, &e.err);
		else
			rc = registry_get_instance(&e.arena, key, v, n, &inst, &id, &e.err);
		assert_int_equal(rc, SKV_E_CORRUPT);
		assert_non_null(strstr(e.err.message, bad[i].key));
	}
}

static void test_documents(void **state)
{
	struct skv_doc doc, *all;
	uint32_t n;

	(void)state;
	assert_int_equal(skv_cluster_doc_get(e.cluster, "a/b", &e.arena, &doc, &e.err),
			 SKV_E_NOT_FOUND);
	assert_int_equal(skv_cluster_doc_put(e.cluster, "a/b", SKV_PUT_NEW, "text", &e.err),
			 SKV_OK);
	assert_int_equal(skv_cluster_doc_put(e.cluster, "a/b", SKV_PUT_NEW, "other", &e.err),
			 SKV_E_CONFLICT);
	assert_int_equal(skv_cluster_doc_put(e.cluster, "a/b", SKV_PUT_ANY, "newer", &e.err),
			 SKV_OK);
	assert_int_equal(skv_cluster_doc_put(e.cluster, "a/c", SKV_PUT_ANY, "", &e.err),
			 SKV_OK);
	assert_int_equal(skv_cluster_doc_put(e.cluster, "b", SKV_PUT_ANY, "", &e.err),
			 SKV_OK);
	assert_int_equal(skv_cluster_doc_put(e.cluster, "a b", SKV_PUT_ANY, "", &e.err),
			 SKV_E_INVALID);
	assert_int_equal(skv_cluster_doc_put(e.cluster, "", SKV_PUT_ANY, "", &e.err),
			 SKV_E_INVALID);
	env_crash(&e);
	env_open(&e);
	assert_int_equal(skv_cluster_doc_get(e.cluster, "a/b", &e.arena, &doc, &e.err), SKV_OK);
	assert_string_equal(doc.text, "newer");
	assert_int_equal(skv_cluster_doc_list(e.cluster, "a/", &e.arena, &all, &n, &e.err), SKV_OK);
	assert_int_equal(n, 2);
	assert_string_equal(all[0].name, "a/b");
	assert_string_equal(all[1].text, "");
	assert_int_equal(skv_cluster_doc_delete(e.cluster, "a/b", &e.err), SKV_OK);
	assert_int_equal(skv_cluster_doc_get(e.cluster, "a/b", &e.arena, &doc, &e.err),
			 SKV_E_NOT_FOUND);
}

#define SCENE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCENE(test_max_blocks),	     SCENE(test_lines_spare_leases), SCENE(test_steps),
		SCENE(test_idle),            SCENE(test_type_quota),
		SCENE(test_max_instances),
		SCENE(test_create_only),             SCENE(test_loose_storages),
		SCENE(test_numbered),
		SCENE(test_version),	     SCENE(test_loose_storages),     SCENE(test_numbered),
		SCENE(test_storage_description), SCENE(test_foreign_documents),
		SCENE(test_documents),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
