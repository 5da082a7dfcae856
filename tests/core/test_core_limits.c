/*
 * test_core_limits.c - the limits of a group where they meet: types of storages side by side,
 * growth, chains that are idle in part, restarts with sessions open; numbered slots in runs, in
 * fsck and in files too small for them; bad input; as many blocks as one instance holds. Sees the
 * core's insides for the last of these: 2^27 blocks are 8 GiB of entries.
 */
#include "core_env.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <skv/bytes.h>

#include <lock/core.h>
#include <lock/lock.h>
#include <model/block.h>
#include <model/find.h>
#include <model/objects.h>

#define BLOCK 65536u
#define UNIT (1ull << 20)

static struct env e;
static char dir[64];

static int setup(void **state)
{
	(void)state;
	env_quiet();
	env_init(&e);
	env_open(&e);
	/* Each tick proves the storage with a sync: not on a disk. */
	snprintf(dir, sizeof dir, "%s/skv-core-XXXXXX",
		 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st;
	(void)type;
	(void)where;
	return remove(path);
}

static int teardown(void **state)
{
	(void)state;
	env_check(&e);
	env_destroy(&e);
	return nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

static const char *const two[] = { "s", "files" };

static struct skv_group_spec group(uint32_t storages)
{
	return (struct skv_group_spec){ .name = "g", .storages = two, .n_storages = storages };
}

static int put_group(const struct skv_group_spec *g)
{
	return skv_cluster_group_put(e.cluster, g, SKV_PUT_ANY, NULL, NULL, &e.err);
}

static void refused(int rc, int status, const char *field)
{
	assert_int_equal(rc, status);
	assert_string_equal(e.err.field, field);
	skv_error_clear(&e.err);
}

/* `file_size` 0: one file that holds all. */
static int put_files(const char *type, uint64_t file_size)
{
	uint64_t capacity = file_size ? 16 * UNIT : 64 * UNIT;
	struct skv_storage_spec s = { .name = "files", .type = type, .root = dir,
				      .capacity = capacity, .unit = UNIT,
				      .file_size = file_size ? file_size : capacity,
				      .enabled = true,
				      .any_mount = strcmp(type, "hf3fs") == 0 };

	return skv_cluster_storage_put(e.cluster, &s, SKV_PUT_ANY, NULL, &e.err);
}

static int put_instance(const char *id, uint64_t size, bool numbered)
{
	const struct skv_spec spec = { "kv", size };
	const struct skv_instance_spec i = { .tenant = "t", .id = id, .group = "g", .specs = &spec,
					     .n_specs = 1,
					     .extra = "", .numbered = numbered };

	return skv_cluster_instance_put(e.cluster, &i, SKV_PUT_ANY, NULL, &e.err);
}

static struct skv_group_view *view(void)
{
	struct skv_group_view *v;

	skv_arena_reset(&e.arena);
	assert_int_equal(skv_cluster_group(e.cluster, "g", &e.arena, &v, &e.err), SKV_OK);
	return v;
}

static int start(uint64_t first, uint32_t n, const struct skv_key *parent,
		 struct skv_start_res *res)
{
	static struct skv_key keys[256];

	env_keys(keys, n, 0, first);
	return env_start(&e, &(struct env_start){ .keys = keys, .n = n, .parent = parent }, res);
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

static void lookup(uint64_t first, uint32_t n, uint32_t lease_ms, struct skv_lookup_res *res)
{
	struct skv_key keys[256];

	env_keys(keys, n, 0, first);
	assert_int_equal(env_lookup(&e, keys, n, SKV_LOOKUP_BATCH, lease_ms, res), SKV_OK);
}

/* A storage whose type's quota is reached does not grow for it, and nobody waits for that. */
static void test_quota_spares_growth(void **state)
{
	const struct skv_type_quota quota = { "null", 8 * BLOCK, 0 };
	struct skv_group_spec g = group(1);
	struct skv_storage_view *v;
	struct skv_start_res res;
	uint64_t began;

	(void)state;
	env_make(&e, 160 * UNIT, UNIT, BLOCK);
	g.quotas = &quota;
	g.n_quotas = 1;
	assert_int_equal(put_group(&g), SKV_OK);
	for (uint32_t i = 0; i < 50; i++)
		assert_int_equal(put(4 * i, 4), 4);
	assert_int_equal(view()->blocks, 8);
	assert_int_equal(start(1000, 8, NULL, &res), SKV_OK);
	began = skv_now_ms(e.o.clock);
	refused(start(2000, 1, NULL, &res), SKV_E_QUOTA, "quotas");
	refused(start(2000, 9, NULL, &res), SKV_E_QUOTA, "quotas");
	assert_true(skv_now_ms(e.o.clock) - began < 1000);
	assert_int_equal(skv_cluster_storage(e.cluster, "s", &e.arena, &v, &e.err), SKV_OK);
	assert_int_equal(v->files, 1);
}

/* As when the thread is stopped between any two of them. */
static uint64_t later_at_each_reading(void *self)
{
	return atomic_fetch_add(&((struct skv_fake_clock *)self)->now, 1);
}

/* While a new file is being made nothing is evicted for lack of it, however late a start reads the
 * clock. */
static void test_growth_spares_blocks(void **state)
{
	struct skv_storage_view *v;

	(void)state;
	env_crash(&e);
	e.o.owner_lease_ms = 10000000;
	env_open(&e);
	env_make(&e, 160 * UNIT, UNIT, BLOCK);
	e.clock.clock.now_ms = later_at_each_reading;
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(put(4 * i, 4), 4);
	assert_int_equal(skv_cluster_storage(e.cluster, "s", &e.arena, &v, &e.err), SKV_OK);
	assert_in_range(v->files, 2, 10);
	assert_int_equal(view()->blocks, 400);
}

/* Blocks go to the next type when the first one's quota is reached; nothing is evicted
 * as long as one has room. */
static void test_types_side_by_side(void **state)
{
	const struct skv_type_quota quotas[] = { { "null", 4 * BLOCK, 0 },
						 { "hf3fs", 6 * BLOCK, 3 * BLOCK } };
	struct skv_group_spec g = group(2);
	struct skv_start_res res;
	struct skv_lookup_res found;

	(void)state;
	env_make(&e, 16 * UNIT, UNIT, BLOCK);
	assert_int_equal(put_files("hf3fs", 4 * UNIT), SKV_OK);
	env_advance(&e, 100);
	g.quotas = quotas;
	g.n_quotas = 1;
	assert_int_equal(put_group(&g), SKV_OK);
	assert_int_equal(put(0, 4), 4);
	assert_int_equal(put(100, 6), 6);
	lookup(100, 6, 0, &found);
	assert_int_equal(found.matched, 6);
	assert_string_equal(found.files.v[found.loc[0].file].type, "hf3fs");
	assert_string_equal(found.files.v[found.loc[0].file].client_root, dir);
	lookup(0, 4, 0, &found);
	assert_string_equal(found.files.v[found.loc[0].file].type, "null");
	assert_int_equal(view()->blocks, 10);
	g.n_quotas = 2;
	assert_int_equal(put_group(&g), SKV_OK);
	partial_for(500);
	lookup(100, 6, 0, &found);
	assert_int_equal(found.matched, 3); /* over the line of its type only */
	lookup(0, 4, 0, &found);
	assert_int_equal(found.matched, 4);
	assert_int_equal(start(200, 3, NULL, &res), SKV_OK);
	env_crash(&e);
	env_open(&e);
	env_check(&e);
	assert_int_equal(start(300, 7, NULL, &res), SKV_E_QUOTA);
}

static void test_sessions_count_after_a_restart(void **state)
{
	struct skv_group_spec g = group(1);
	struct skv_start_res res;
	struct skv_finish_res done;
	char session[SKV_SESSION_ID_HEX + 1];

	(void)state;
	env_make(&e, 16 * UNIT, UNIT, BLOCK);
	g.max_blocks = 10;
	assert_int_equal(put_group(&g), SKV_OK);
	assert_int_equal(put(0, 6), 6);
	assert_int_equal(start(100, 4, NULL, &res), SKV_OK);
	memcpy(session, res.session, sizeof session);
	env_crash(&e);
	env_open(&e);
	refused(start(200, 1, NULL, &res), SKV_E_QUOTA, "max_blocks");
	assert_int_equal(env_finish_mask(&e, session, (const bool[]){ true, false, true, false }, 4,
					 true, &done),
			 SKV_OK);
	refused(start(200, 3, NULL, &res), SKV_E_QUOTA, "max_blocks");
	assert_int_equal(start(200, 2, NULL, &res), SKV_OK);
	assert_int_equal(env_abort(&e, res.session, true), SKV_OK);
	assert_int_equal(put(0, 8), 2); /* existing blocks do not count again */
}

/* A block above one that is used, leased or written is in use with it. */
static void test_idle_chains(void **state)
{
	struct skv_group_spec g = group(1);
	struct skv_lookup_res found;
	struct skv_start_res res;

	(void)state;
	env_make(&e, 16 * UNIT, UNIT, BLOCK);
	g.max_idle_ms = 10000;
	assert_int_equal(put_group(&g), SKV_OK);
	assert_int_equal(put(0, 10), 10);
	assert_int_equal(put(100, 10), 10);
	for (int i = 0; i < 5; i++) {
		partial_for(4000);
		lookup(9, 1, 5000, &found);
		assert_int_equal(found.matched, 1);
	}
	assert_int_equal(view()->blocks, 10);
	partial_for(9000);
	assert_int_equal(start(10, 2, &(struct skv_key){ 0, 9 }, &res), SKV_OK);
	partial_for(4000);
	assert_int_equal(view()->blocks, 10); /* a child is being written */
	partial_for(3000);                     /* the child's session ends */
	assert_int_equal(view()->blocks, 0);
}

static void test_idle_over_restarts(void **state)
{
	struct skv_group_spec g = group(1);

	(void)state;
	env_make(&e, 16 * UNIT, UNIT, BLOCK);
	g.max_idle_ms = 20000;
	assert_int_equal(put_group(&g), SKV_OK);
	assert_int_equal(put(0, 10), 10);
	partial_for(15000);
	assert_int_equal(put(100, 5), 5);
	env_shutdown(&e);
	env_open(&e);
	assert_int_equal(view()->blocks, 15);
	partial_for(6000);
	assert_int_equal(view()->blocks, 5);
	partial_for(7000);
	env_crash(&e);
	env_open(&e);
	partial_for(30000); /* a restart's lease on all of them, too */
	assert_int_equal(view()->blocks, 0);
}

/* Many blocks that were used since they were queued: looked at in portions, and none of them
 * goes. */
static void test_idle_in_portions(void **state)
{
	struct skv_group_spec g = group(1);
	struct skv_lookup_res found;

	(void)state;
	env_make(&e, 16 * UNIT, UNIT, 1024);
	g.max_idle_ms = 10000;
	assert_int_equal(put_group(&g), SKV_OK);
	for (uint32_t i = 0; i < 40; i++)
		assert_int_equal(put(1000 * i, 250), 250);
	partial_for(8000);
	for (uint32_t i = 0; i < 20; i++)
		lookup(2000 * i, 250, 0, &found);
	partial_for(3000);
	assert_int_equal(view()->blocks, 5000);
	partial_for(10000);
	assert_int_equal(view()->blocks, 0);
}

static void test_all_of_a_group_is_kept(void **state)
{
	const struct skv_type_quota quotas[] = { { "null", 1ull << 40, 7 },
						 { "elsewhere", 0, 1ull << 50 } };
	struct skv_group_spec g = group(1), is;

	(void)state;
	env_make(&e, 16 * UNIT, UNIT, BLOCK);
	g.loose_storages = true;
	g.n_storages = 2;
	g.capacity = 1;
	g.quotas = quotas;
	g.n_quotas = 2;
	g.max_blocks = 2;
	g.max_instances = 3;
	g.reclaim_bytes = 4;
	g.reclaim_blocks = 5;
	g.reclaim_step_bytes = 6;
	g.reclaim_step_percent = 7;
	g.reclaim_period_ms = 8;
	g.max_idle_ms = 9;
	g.version = UINT64_MAX;
	g.extra = "{\"a\":1}";
	assert_int_equal(put_group(&g), SKV_OK);
	env_crash(&e);
	env_open(&e);
	is = view()->spec;
	assert_int_equal(is.n_quotas, 2);
	for (int i = 0; i < 2; i++) {
		assert_string_equal(is.quotas[i].type, quotas[i].type);
		assert_true(is.quotas[i].capacity == quotas[i].capacity &&
			    is.quotas[i].reclaim == quotas[i].reclaim);
	}
	assert_int_equal(is.n_storages, 2);
	assert_string_equal(is.storages[1], "files");
	assert_string_equal(is.extra, g.extra);
	assert_true(is.loose_storages && is.capacity == 1 && is.max_blocks == 2 &&
		    is.max_instances == 3);
	assert_true(is.reclaim_bytes == 4 && is.reclaim_blocks == 5 && is.reclaim_step_bytes == 6);
	assert_true(is.reclaim_step_percent == 7 && is.reclaim_period_ms == 8 &&
		    is.max_idle_ms == 9);
	assert_true(is.version == UINT64_MAX);
}

/* A document of a version that is not known. */
static void test_newer_documents_are_refused(void **state)
{
	struct skv_buf b = { 0 };
	struct skv_fsck_report r;

	(void)state;
	env_make(&e, 16 * UNIT, UNIT, BLOCK);
	assert_int_equal(skv_store_get(e.store, "group/g", &b, NULL, &e.err), SKV_OK);
	b.data[0]++;
	env_document(&e, "group/g", b.data, b.len);
	env_shutdown(&e);
	assert_int_equal(skv_store_open(e.ops, &e.store_options, &e.store, &e.err), SKV_OK);
	assert_int_equal(skv_cluster_fsck(e.store, false, NULL, NULL, NULL, &r, &e.err), SKV_OK);
	assert_int_equal(r.problems, 1);
	b.data[0]--;
	env_document(&e, "group/g", b.data, b.len);
	skv_store_close(e.store);
	env_open(&e);
	skv_buf_destroy(&b);
}

/* In a run of free space numbers follow each other; fsck finds nothing wrong, with sessions
 * and holds of both kinds. */
static void test_numbered_runs(void **state)
{
	const uint32_t size = 3 * 4096 + 512;
	struct skv_start_res res;
	struct skv_fsck_report r;
	uint32_t breaks = 0;

	(void)state;
	assert_int_equal(env_storage(&e, "s", 64 * UNIT, UNIT), SKV_OK);
	assert_int_equal(env_group(&e, "g", 0, "s"), SKV_OK);
	assert_int_equal(put_instance("i", size, true), SKV_OK);
	env_advance(&e, 100);
	assert_int_equal(start(0, 250, NULL, &res), SKV_OK);
	for (uint32_t i = 0; i < 250; i++) {
		assert_int_equal(res.loc[i].offset % size, 0);
		breaks += i > 0 && res.loc[i].offset != res.loc[i - 1].offset + size;
	}
	assert_true(breaks <= 4); /* between slabs only */
	assert_int_equal(put(500, 100), 100);
	assert_int_equal(env_abort(&e, res.session, false), SKV_OK); /* held for the grace */
	env_shutdown(&e);
	assert_int_equal(skv_store_open(e.ops, &e.store_options, &e.store, &e.err), SKV_OK);
	assert_int_equal(skv_cluster_fsck(e.store, false, NULL, NULL, NULL, &r, &e.err), SKV_OK);
	assert_int_equal(r.problems, 0);
	assert_int_equal(r.held_slots, 250);
	skv_store_close(e.store);
	env_open(&e);
	assert_int_equal(start(1000, 250, NULL, &res), SKV_OK);
}

/* A slot that fits at any place need not fit at a multiple of its size. */
static void test_fit(void **state)
{
	const uint64_t file = 4 * UNIT, most = file - 3 * 4096;
	struct skv_start_res res;
	struct skv_group_spec g = group(2);

	(void)state;
	assert_int_equal(put_files("file", file), SKV_OK);
	g.loose_storages = true;
	assert_int_equal(put_group(&g), SKV_OK);
	assert_int_equal(put_instance("i", most, false), SKV_OK);
	assert_int_equal(skv_cluster_instance_delete(e.cluster, "t", "i", NULL, &e.err), SKV_OK);
	refused(put_instance("i", most, true), SKV_E_INVALID, "specs[0].size");
	refused(put_instance("i", file / 2, true), SKV_E_INVALID, "specs[0].size");
	assert_int_equal(put_instance("i", file / 2 - 4096, true), SKV_OK);
	env_advance(&e, 100);
	assert_int_equal(start(0, 1, NULL, &res), SKV_OK);
	assert_int_equal(res.loc[0].offset, file / 2 - 4096);
	assert_int_equal(env_abort(&e, res.session, true), SKV_OK);
}

static uint32_t files_of(const char *storage)
{
	struct skv_storage_view *v;

	skv_arena_reset(&e.arena);
	assert_int_equal(skv_cluster_storage(e.cluster, storage, &e.arena, &v, &e.err),
			 SKV_OK);
	return v->files;
}

/* A storage has files too small for the blocks: it is skipped, and does not grow for them. */
static void test_too_small_a_storage(void **state)
{
	struct skv_start_res res;
	struct skv_group_spec g = group(1);

	(void)state;
	g.loose_storages = true;
	assert_int_equal(put_group(&g), SKV_OK);
	assert_int_equal(put_instance("i", 10 * UNIT, true), SKV_OK);
	assert_int_equal(env_storage(&e, "s", 160 * UNIT, UNIT), SKV_OK); /* files of 16 units */
	env_advance(&e, 100);
	assert_int_equal(start(0, 1, NULL, &res), SKV_E_NO_SPACE);
	assert_int_equal(files_of("s"), 0);
	g.n_storages = 2;
	assert_int_equal(put_group(&g), SKV_OK);
	assert_int_equal(start(0, 1, NULL, &res), SKV_E_NO_SPACE);
	assert_int_equal(put_files("file", 0), SKV_OK);
	env_advance(&e, 100);
	assert_int_equal(start(0, 1, NULL, &res), SKV_OK);
	assert_string_equal(res.files.v[res.loc[0].file].storage, "files");
	assert_int_equal(files_of("s"), 0);
}

static void test_bad_groups(void **state)
{
	struct skv_type_quota quotas[SKV_MAX_QUOTAS + 1] = { { "null", 1, 0 },
							     { "file", 1, 0 },
							     { "null", 2, 0 } };
	struct skv_group_spec g = group(1);
	char *extra = malloc(SKV_MAX_EXTRA + 2);
	uint64_t none = 0;

	(void)state;
	assert_non_null(extra);
	memset(extra, 'x', SKV_MAX_EXTRA + 1);
	extra[SKV_MAX_EXTRA + 1] = '\0';
	env_make(&e, 16 * UNIT, UNIT, BLOCK);
	g.quotas = quotas;
	g.n_quotas = 3;
	refused(put_group(&g), SKV_E_INVALID, "quotas[2].type");
	g.n_quotas = SKV_MAX_QUOTAS + 1;
	refused(put_group(&g), SKV_E_INVALID, "quotas");
	g.n_quotas = 0;
	g.reclaim_step_percent = 101;
	refused(put_group(&g), SKV_E_INVALID, "reclaim_step_percent");
	g.reclaim_step_percent = 100;
	g.extra = extra;
	refused(put_group(&g), SKV_E_TOO_LARGE, "extra");
	extra[SKV_MAX_EXTRA] = '\0';
	assert_int_equal(put_group(&g), SKV_OK);
	g.name = "new";
	/* 0: it is not there */
	assert_int_equal(skv_cluster_group_put(e.cluster, &g, SKV_PUT_ANY, &none, NULL, &e.err),
			 SKV_OK);
	free(extra);
}

/* ---- as many blocks as an instance holds ----------------------------------------------------- */

/* Makes the entries count n blocks more than there are. */
static void more_entries(int64_t n)
{
	core_lock(e.core);
	instance_find(e.core->partition, "t", "i")->entries += (uint64_t)n;
	core_unlock(e.core);
}

static uint32_t there(uint64_t first, uint32_t n)
{
	struct skv_key keys[256];

	env_keys(keys, n, 0, first);
	return env_match(&e, keys, n);
}

/* D8. Beyond the bound an index of its eviction queues would run into the queue's number. */
static void test_a_full_instance(void **state)
{
	const int64_t others = MAX_ENTRIES - 16;
	struct skv_start_res res;
	struct skv_lookup_res found;
	struct skv_key keys[24];
	int rc;

	(void)state;
	env_make(&e, 64 * UNIT, UNIT, BLOCK);
	more_entries(others);
	assert_int_equal(put(100, 8), 8);
	env_advance(&e, 100);
	assert_int_equal(put(200, 8), 8);
	env_advance(&e, 100);
	assert_int_equal(there(100, 8) + there(200, 8), 16);

	/* space suffices for the bytes, but not for the blocks: the group's oldest blocks go */
	assert_int_equal(put(300, 4), 4);
	assert_int_equal(there(100, 8), 4);
	assert_int_equal(there(200, 8) + there(300, 4), 12);

	lookup(100, 4, 5000, &found);
	assert_int_equal(found.matched, 4);
	lookup(200, 8, 5000, &found);
	assert_int_equal(found.matched, 8);
	lookup(300, 4, 5000, &found);
	assert_int_equal(found.matched, 4);
	rc = start(400, 1, NULL, &res);
	assert_string_equal(
		e.err.message,
		"instance 'i' has 134217472 of the 134217472 of its blocks, which is the most "
		"that an instance has, and not enough of its own may be evicted: it is pinned, "
		"leased or being written; use another instance beside it");
	refused(rc, SKV_E_QUOTA, "instance");
	env_keys(keys, 24, 0, 400); /* as many as fit: none */
	assert_int_equal(env_start(&e, &(struct env_start){ .keys = keys, .n = 24, .fit = true },
				   &res), SKV_OK);
	assert_int_equal(res.n_write, 0);
	assert_int_equal(res.outcome[0], SKV_START_NO_ROOM);
	partial_for(5100);

	assert_int_equal(env_start(&e, &(struct env_start){ .keys = keys, .n = 3, .fit = true },
				   &res), SKV_OK);
	assert_int_equal(res.n_write, 3);
	assert_int_equal(env_abort(&e, res.session, true), SKV_OK);
	assert_int_equal(put(500, 16), 16);
	assert_int_equal(there(500, 16), 16);
	more_entries(-others);
}

/* ---- anything at any time -------------------------------------------------------------------- */

static unsigned seed;
static uint32_t rnd(uint32_t n) { return (uint32_t)rand_r(&seed) % n; }

static void any_limits(struct skv_group_spec *g, struct skv_type_quota quotas[2])
{
	*g = group(2);
	g->loose_storages = rnd(2);
	g->capacity = rnd(2) ? 0 : (1 + rnd(60)) * BLOCK;
	quotas[0] = (struct skv_type_quota){ "null", rnd(40) * BLOCK, rnd(40) * BLOCK };
	quotas[1] = (struct skv_type_quota){ "file", rnd(40) * BLOCK, rnd(40) * BLOCK };
	g->quotas = quotas;
	g->n_quotas = rnd(3);
	g->max_blocks = rnd(2) ? 0 : 1 + rnd(60);
	g->reclaim_bytes = rnd(3) ? 0 : (1 + rnd(50)) * BLOCK;
	g->reclaim_blocks = rnd(3) ? 0 : 1 + rnd(50);
	g->reclaim_step_bytes = rnd(2) ? 0 : rnd(5) * BLOCK;
	g->reclaim_step_percent = rnd(2) ? 0 : rnd(101);
	g->reclaim_period_ms = rnd(2000);
	g->max_idle_ms = rnd(2) ? 0 : 1 + rnd(20000);
}

static void any_write(const struct skv_group_spec *g)
{
	struct skv_start_res res;
	struct skv_finish_res done;
	uint64_t before = view()->blocks;
	int rc = start(rnd(150), 1 + rnd(10), NULL, &res);

	if (rc != SKV_OK) {
		assert_true(rc == SKV_E_QUOTA || rc == SKV_E_NO_SPACE || rc == SKV_E_TOO_MANY ||
			    rc == SKV_E_TOO_LARGE);
		return;
	}
	if (g->max_blocks && res.n_write && before <= g->max_blocks)
		assert_true(view()->blocks + res.n_write <= g->max_blocks);
	if (!res.n_write || rnd(8) == 0)
		return; /* left open */
	if (rnd(6) == 0)
		assert_int_equal(env_abort(&e, res.session, rnd(2)), SKV_OK);
	else
		assert_int_equal(env_finish(&e, res.session, NULL, 0, &done), SKV_OK);
}

static void test_anything(void **state)
{
	struct skv_type_quota quotas[2];
	struct skv_lookup_res found;
	struct skv_group_spec g;
	struct skv_key keys[8];
	uint32_t deleted;

	(void)state;
	seed = 1;
	assert_int_equal(env_storage(&e, "s", 4 * UNIT, UNIT), SKV_OK);
	assert_int_equal(put_files("file", 2 * UNIT), SKV_OK);
	any_limits(&g, quotas);
	assert_int_equal(put_group(&g), SKV_OK);
	assert_int_equal(put_instance("i", BLOCK - 3, true), SKV_OK);
	for (int i = 0; i < 1000; i++) {
		if (i % 40 == 0) {
			any_limits(&g, quotas);
			assert_int_equal(put_group(&g), SKV_OK);
		}
		any_write(&g);
		if (rnd(2))
			lookup(rnd(150), 1 + rnd(10), rnd(2) ? 0 : rnd(3000), &found);
		env_keys(keys, 8, 0, rnd(150));
		if (rnd(10) == 0)
			assert_int_equal(env_delete(&e, keys, 8, &deleted), SKV_OK);
		if (rnd(60) == 0) {
			rnd(2) ? env_crash(&e) : env_shutdown(&e);
			env_open(&e);
		}
		env_advance(&e, rnd(500));
		env_check(&e);
	}
	/* Leases, sessions and graces are over: what the lines ask for has been done. */
	partial_for(60000);
	assert_true(!g.reclaim_blocks || g.reclaim_step_bytes || g.reclaim_step_percent ||
		    view()->blocks <= g.reclaim_blocks);
	assert_true(!g.max_idle_ms || view()->blocks == 0);
}

#define SCENE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCENE(test_quota_spares_growth), SCENE(test_growth_spares_blocks),
		SCENE(test_types_side_by_side),
		SCENE(test_sessions_count_after_a_restart),
		SCENE(test_idle_chains),         SCENE(test_idle_over_restarts),
		SCENE(test_idle_in_portions),
		SCENE(test_all_of_a_group_is_kept),
		SCENE(test_newer_documents_are_refused), SCENE(test_numbered_runs), SCENE(test_fit),
		SCENE(test_too_small_a_storage), SCENE(test_bad_groups),
		SCENE(test_a_full_instance), SCENE(test_anything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
