/*
 * test_core_drain.c - slab files that go: drained one by one, with their storage, for a smaller
 * capacity; undone, over restarts at every step, with leases and sessions in the way, with each
 * call of the store failing.
 */
#include "core_env.h"

#include <stdio.h>
#include <string.h>

#define BLOCK 65536u
#define UNIT (1ull << 20)
#define SLOTS 15u /* of a file of one unit */
#define FILES 4u
#define ALL (FILES * SLOTS)

static int put_storage(struct env *e, uint64_t files, bool draining)
{
	struct skv_storage_spec s = { .name = "s", .type = "null", .root = "",
				      .capacity = files * UNIT, .unit = UNIT,
				      .file_size = UNIT, .enabled = true, .draining = draining };

	return skv_cluster_storage_put(e->cluster, &s, SKV_PUT_ANY, NULL, &e->err);
}

/* Four files of 15 slots each, all in use: key {1, i} is the i-th. */
static void setup(struct env *e)
{
	struct skv_spec spec = { "kv", BLOCK };
	struct skv_key keys[ALL];

	env_init(e);
	env_open(e);
	assert_int_equal(put_storage(e, FILES, false), SKV_OK);
	assert_int_equal(env_group(e, "g", 0, "s"), SKV_OK);
	assert_int_equal(env_instance(e, "i", "g", &spec, 1), SKV_OK);
	env_keys(keys, ALL, 1, 0);
	for (uint32_t i = 0; i < ALL; i += SLOTS)
		assert_int_equal(env_put(e, keys + i, SLOTS), SLOTS);
}

struct files {
	struct skv_file_view *v;
	uint32_t n;
};

static struct files files_of(struct env *e)
{
	struct files f = { 0 };

	skv_arena_reset(&e->arena);
	assert_int_equal(skv_cluster_files(e->cluster, "s", &e->arena, &f.v, &f.n, &e->err),
			 SKV_OK);
	return f;
}

static const struct skv_file_view *file_view(struct env *e, uint32_t number)
{
	struct files f = files_of(e);

	for (uint32_t i = 0; i < f.n; i++)
		if (f.v[i].file == number)
			return &f.v[i];
	return NULL;
}

static int drain(struct env *e, uint32_t file, bool on)
{
	return env_file_drain(e->cluster, "s", file, on, false, &e->err);
}

/* Until the file is not there any more. */
static void wait_gone(struct env *e, uint32_t file)
{
	for (int i = 0; i < 1000 && file_view(e, file); i++)
		env_advance(e, 50);
	assert_null(file_view(e, file));
	env_check(e);
}

static uint32_t found(struct env *e, uint32_t first, uint32_t n)
{
	struct skv_key keys[ALL];
	uint32_t there = 0;

	env_keys(keys, n, 1, first);
	for (uint32_t i = 0; i < n; i++)
		there += env_match(e, keys + i, 1);
	return there;
}

static void test_a_drained_file_goes(void **state)
{
	struct skv_key more[SLOTS];
	const struct skv_file_view *v;
	struct skv_stats st;
	struct env e;

	(void)state;
	setup(&e);
	assert_int_equal(files_of(&e).n, FILES);
	assert_string_equal(file_view(&e, 1)->state, "used");
	assert_string_equal(file_view(&e, 1)->why, "");
	assert_int_equal(file_view(&e, 1)->used_bytes, SLOTS * BLOCK);
	assert_int_equal(drain(&e, 1, true), SKV_OK);
	assert_int_equal(drain(&e, 1, true), SKV_OK); /* again */
	v = file_view(&e, 1);
	assert_string_equal(v->state, "draining");
	assert_string_equal(v->why, "asked");
	env_stats(&e, &st);
	assert_int_equal(st.storages[0].draining_files, 1);
	wait_gone(&e, 1);
	assert_int_equal(files_of(&e).n, FILES - 1);
	assert_int_equal(found(&e, 0, SLOTS), SLOTS);
	assert_int_equal(found(&e, SLOTS, SLOTS), 0);
	assert_int_equal(found(&e, 2 * SLOTS, 2 * SLOTS), 2 * SLOTS);
	/* The storage grows again, by a number that nobody had: so newer nodes of
	 * the file system get blocks. */
	env_keys(more, SLOTS, 2, 0);
	assert_int_equal(env_put(&e, more, SLOTS), SLOTS);
	assert_int_equal(found(&e, 0, ALL), ALL - SLOTS);
	assert_non_null(file_view(&e, FILES));
	assert_int_equal(file_view(&e, FILES)->used_bytes, SLOTS * BLOCK);
	assert_int_equal(drain(&e, 1, true), SKV_E_NOT_FOUND);
	assert_string_equal(e.err.field, "file");
	assert_int_equal(drain(&e, 99, false), SKV_E_NOT_FOUND);
	assert_int_equal(env_file_drain(e.cluster, "none", 0, true, false, &e.err),
			 SKV_E_NOT_FOUND);
	/* A restart knows the same. */
	env_crash(&e);
	env_open(&e);
	assert_int_equal(files_of(&e).n, FILES);
	assert_null(file_view(&e, 1));
	assert_int_equal(found(&e, 0, ALL), ALL - SLOTS);
	env_check(&e);
	env_destroy(&e);
}

/* The newest number is not given again, either. */
static void test_numbers_do_not_come_again(void **state)
{
	struct skv_key more[SLOTS];
	struct env e;

	(void)state;
	setup(&e);
	assert_int_equal(drain(&e, FILES - 1, true), SKV_OK);
	wait_gone(&e, FILES - 1);
	env_crash(&e);
	env_open(&e);
	env_keys(more, SLOTS, 2, 0);
	assert_int_equal(env_put(&e, more, SLOTS), SLOTS);
	assert_null(file_view(&e, FILES - 1));
	assert_non_null(file_view(&e, FILES));
	/* All of them, one after the other. */
	for (uint32_t f = 0; f <= FILES; f++) {
		if (f == FILES - 1)
			continue;
		assert_int_equal(drain(&e, f, true), SKV_OK);
		wait_gone(&e, f);
	}
	assert_int_equal(files_of(&e).n, 0);
	env_crash(&e);
	env_open(&e);
	assert_int_equal(files_of(&e).n, 0);
	assert_int_equal(env_put(&e, more, SLOTS), SLOTS);
	assert_non_null(file_view(&e, FILES + 1));
	env_check(&e);
	env_destroy(&e);
}

static void test_undone(void **state)
{
	struct skv_lookup_res r;
	struct skv_key keys[SLOTS];
	struct env e;

	(void)state;
	setup(&e);
	env_keys(keys, SLOTS, 1, SLOTS);
	assert_int_equal(env_lookup(&e, keys, SLOTS, SKV_LOOKUP_BATCH, 5000, &r), SKV_OK);
	assert_int_equal(drain(&e, 1, true), SKV_OK);
	assert_int_equal(drain(&e, 1, false), SKV_OK);
	env_advance(&e, 6000);
	assert_int_equal(found(&e, 0, ALL), ALL);
	assert_string_equal(file_view(&e, 1)->state, "used");
	/* Also when a manager died in between. */
	assert_int_equal(drain(&e, 2, true), SKV_OK);
	env_crash(&e);
	env_open(&e);
	assert_string_equal(file_view(&e, 2)->why, "asked");
	assert_int_equal(drain(&e, 2, false), SKV_OK);
	for (int i = 0; i < 200; i++)
		env_advance(&e, 100);
	assert_int_equal(files_of(&e).n, FILES);
	env_check(&e);
	env_destroy(&e);
}

/* A manager that dies after each step: the next one goes on. */
static void test_restarts_at_every_step(void **state)
{
	(void)state;
	for (int steps = 0; steps < 40; steps++) {
		struct env e;

		setup(&e);
		env_advance(&e, 20000);
		assert_int_equal(drain(&e, 1, true), SKV_OK);
		for (int i = 0; i < steps && file_view(&e, 1); i++)
			env_advance(&e, 20);
		env_crash(&e);
		env_open(&e);
		env_check(&e);
		wait_gone(&e, 1);
		assert_int_equal(found(&e, 0, SLOTS), SLOTS);
		env_shutdown(&e);
		env_open(&e);
		assert_int_equal(files_of(&e).n, FILES - 1);
		env_check(&e);
		env_destroy(&e);
	}
}

static void test_leases_are_kept(void **state)
{
	struct skv_lookup_res r;
	struct skv_key keys[SLOTS];
	struct env e;

	(void)state;
	setup(&e);
	env_advance(&e, 15000);
	env_keys(keys, SLOTS, 1, SLOTS);
	assert_int_equal(env_lookup(&e, keys, SLOTS, SKV_LOOKUP_BATCH, 8000, &r), SKV_OK);
	assert_int_equal(r.matched, SLOTS);
	assert_int_equal(drain(&e, 1, true), SKV_OK);
	for (int i = 0; i < 100 && found(&e, SLOTS, SLOTS); i++)
		env_advance(&e, 20);
	assert_int_equal(found(&e, SLOTS, SLOTS), 0); /* nobody gets a lease on them any more */
	assert_int_equal(file_view(&e, 1)->quarantined_bytes, SLOTS * BLOCK);
	assert_string_equal(file_view(&e, 1)->waits_for, "leases and grace times");
	env_advance(&e, 1000);
	assert_non_null(file_view(&e, 1));
	env_advance(&e, 7000);
	wait_gone(&e, 1);
	env_destroy(&e);
}

static void test_sessions_end_first(void **state)
{
	struct skv_key keys[SLOTS];
	struct skv_start_res s;
	struct skv_finish_res f;
	char session[SKV_SESSION_ID_HEX + 1];
	uint32_t n;
	struct env e;

	(void)state;
	setup(&e);
	env_keys(keys, SLOTS, 1, 0);
	assert_int_equal(env_delete(&e, keys, SLOTS, &n), SKV_OK);
	env_keys(keys, SLOTS, 3, 0);
	assert_int_equal(env_start(&e,
				   &(struct env_start){ .keys = keys, .n = SLOTS,
							.deadline_ms = 15000 }, &s), SKV_OK);
	memcpy(session, s.session, sizeof session);
	assert_int_equal(drain(&e, 0, true), SKV_OK);
	for (int i = 0; i < 100; i++)
		env_advance(&e, 50);
	assert_int_equal(file_view(&e, 0)->used_bytes, SLOTS * BLOCK);
	assert_string_equal(file_view(&e, 0)->waits_for, "open sessions");
	/* as if nothing was; then they are evicted */
	assert_int_equal(env_finish(&e, session, NULL, 0, &f), SKV_OK);
	assert_int_equal(f.committed, SLOTS);
	wait_gone(&e, 0);
	/* A block whose end is not reported keeps the file until its grace time is over. */
	env_keys(keys, SLOTS, 1, SLOTS);
	assert_int_equal(env_delete(&e, keys, SLOTS, &n), SKV_OK);
	env_keys(keys, SLOTS, 4, 0);
	assert_int_equal(env_start(&e,
				   &(struct env_start){ .keys = keys, .n = SLOTS,
							.deadline_ms = 2000 }, &s), SKV_OK);
	assert_int_equal(file_view(&e, 1)->used_bytes +
				 (file_view(&e, FILES) ? file_view(&e, FILES)->used_bytes : 0),
			 SLOTS * BLOCK);
	n = file_view(&e, 1)->used_bytes ? 1 : FILES;
	assert_int_equal(drain(&e, n, true), SKV_OK);
	env_advance(&e, 2100); /* expired; the grace time is 1000 ms */
	env_advance(&e, 500);
	assert_non_null(file_view(&e, n));
	env_advance(&e, 600);
	wait_gone(&e, n);
	env_destroy(&e);
}

static int put_rest(struct env *e, uint64_t rest)
{
	struct skv_storage_spec s = { .name = "s", .type = "null", .root = "",
				      .capacity = 2 * UNIT + rest, .unit = 4096,
				      .file_size = UNIT, .enabled = true };

	return skv_cluster_storage_put(e->cluster, &s, SKV_PUT_ANY, NULL, &e->err);
}

/* A rest of the capacity no longer than header and trailer of a slab file is no room. */
static void test_a_rest_without_a_slot(void **state)
{
	struct skv_spec spec = { "kv", BLOCK };
	struct skv_key keys[ALL];
	struct skv_stats st;
	struct env e;
	uint64_t begin;

	(void)state;
	env_init(&e);
	e.o.free_percent = 10;
	env_open(&e);
	assert_int_equal(put_rest(&e, 8192), SKV_OK);
	assert_int_equal(env_group(&e, "g", 0, "s"), SKV_OK);
	assert_int_equal(env_instance(&e, "i", "g", &spec, 1), SKV_OK);
	env_keys(keys, ALL, 1, 0);
	for (uint32_t i = 0; i < 2 * SLOTS; i += SLOTS)
		assert_int_equal(env_put(&e, keys + i, SLOTS), SLOTS);
	for (int i = 0; i < 100; i++)
		env_advance(&e, 20);
	env_stats(&e, &st); /* free_percent works: some is free ahead of need */
	assert_true(st.storages[0].used_bytes < 2ull * SLOTS * BLOCK);
	begin = skv_now_ms(&e.clock.clock);
	for (uint32_t i = 2 * SLOTS; i < 4 * SLOTS; i += SLOTS) /* evicts, and waits for no file */
		assert_int_equal(env_put(&e, keys + i, SLOTS), SLOTS);
	assert_true(skv_now_ms(&e.clock.clock) - begin < 500);
	assert_int_equal(files_of(&e).n, 2);
	/* Another unit makes a file, if a small one. */
	assert_int_equal(put_rest(&e, 8192 + 2 * BLOCK), SKV_OK);
	assert_int_equal(env_put(&e, keys, SLOTS), SLOTS);
	assert_int_equal(files_of(&e).n, 3);
	env_check(&e);
	env_destroy(&e);
}

static int count_file(void *ctx, const char *key, const void *bytes, size_t n, uint64_t version)
{
	(void)key;
	(void)bytes;
	(void)n;
	(void)version;
	++*(uint32_t *)ctx;
	return SKV_OK;
}

/* The only file that is left is a claim behind numbers that are gone: it goes with its storage,
 * and so does its document. */
static void test_a_storage_with_holes_is_deleted(void **state)
{
	struct skv_key keys[2 * SLOTS];
	uint32_t n, documents = 0;
	struct env e;

	(void)state;
	setup(&e);
	for (uint32_t i = 0; i < FILES; i++)
		assert_int_equal(drain(&e, i, true), SKV_OK);
	for (uint32_t i = 0; i < FILES; i++)
		wait_gone(&e, i);
	env_keys(keys, 2 * SLOTS, 2, 0);
	assert_int_equal(env_put(&e, keys, SLOTS), SLOTS); /* in file 4 */
	env_advance(&e, 20);
	assert_int_equal(env_delete(&e, keys, SLOTS, &n), SKV_OK);
	env_advance(&e, 20);
	assert_int_equal(skv_cluster_instance_delete(e.cluster, "t", "i", NULL, &e.err), SKV_OK);
	assert_int_equal(skv_cluster_group_delete(e.cluster, "g", &e.err), SKV_OK);
	env_shutdown(&e); /* nothing in its checkpoint names the file */
	env_open(&e);
	assert_int_equal(skv_store_list(e.store, "file/", count_file, &documents, &e.err), SKV_OK);
	assert_int_equal(documents, 1);
	assert_int_equal(skv_cluster_storage_delete(e.cluster, "s", &e.err), SKV_OK);
	documents = 0;
	assert_int_equal(skv_store_list(e.store, "file/", count_file, &documents, &e.err), SKV_OK);
	assert_int_equal(documents, 0);
	env_destroy(&e);
}

#define MANY 700u /* files: more than the ticker compares, or looks after, in one call */

static uint32_t draining(struct env *e)
{
	struct files f = files_of(e);
	uint32_t n = 0;

	for (uint32_t i = 0; i < f.n; i++)
		n += strcmp(f.v[i].state, "draining") == 0;
	return n;
}

/* Work is done in portions, and all of it: chosen, let be when the capacity is
 * raised again, emptied, gone. */
static void test_many_files(void **state)
{
	struct skv_spec spec = { "kv", BLOCK };
	struct skv_key keys[SLOTS];
	struct skv_stats st;
	struct env e;

	(void)state;
	env_init(&e);
	env_open(&e);
	assert_int_equal(put_storage(&e, MANY, false), SKV_OK);
	assert_int_equal(env_group(&e, "g", 0, "s"), SKV_OK);
	assert_int_equal(env_instance(&e, "i", "g", &spec, 1), SKV_OK);
	for (uint32_t i = 0; i < MANY; i++) {
		env_keys(keys, SLOTS, i + 1, 0);
		assert_int_equal(env_put(&e, keys, SLOTS), SLOTS);
	}
	assert_int_equal(files_of(&e).n, MANY);
	assert_int_equal(put_storage(&e, 50, false), SKV_OK);
	for (int i = 0; i < 1000 && draining(&e) < 20; i++)
		env_advance(&e, 20);
	assert_true(draining(&e) >= 20);
	assert_int_equal(put_storage(&e, MANY, false), SKV_OK);
	for (int i = 0; i < 1000 && draining(&e) > 0; i++)
		env_advance(&e, 20);
	assert_int_equal(draining(&e), 0);
	env_check(&e);
	assert_int_equal(put_storage(&e, MANY, true), SKV_OK);
	env_advance(&e, 20);
	assert_true(draining(&e) > MANY / 2);
	assert_int_equal(put_storage(&e, MANY, false), SKV_OK);
	assert_int_equal(draining(&e), 0);
	env_check(&e);
	assert_int_equal(put_storage(&e, 50, false), SKV_OK);
	for (int i = 0; i < 10000 && files_of(&e).n > 50; i++)
		env_advance(&e, 20);
	assert_int_equal(files_of(&e).n, 50);
	env_stats(&e, &st);
	assert_int_equal(st.storages[0].file_bytes, 50 * UNIT);
	env_keys(keys, SLOTS, 9999, 0);
	assert_int_equal(env_put(&e, keys, SLOTS), SLOTS); /* by eviction */
	env_check(&e);
	env_crash(&e);
	env_open(&e);
	env_advance(&e, 20);
	assert_int_equal(files_of(&e).n, 50);
	assert_int_equal(draining(&e), 0);
	env_check(&e);
	env_destroy(&e);
}

static void test_a_smaller_capacity(void **state)
{
	struct skv_key keys[ALL];
	struct skv_stats st;
	struct env e;

	(void)state;
	setup(&e);
	env_keys(keys, ALL, 1, 0);
	/* File 2 is worth least: nobody has used it for longest. */
	env_advance(&e, 60000);
	for (uint32_t i = 0; i < ALL; i++) {
		struct skv_lookup_res r;

		if (i / SLOTS != 2)
			assert_int_equal(env_lookup(&e, keys + i, 1, SKV_LOOKUP_BATCH, 1, &r),
					 SKV_OK);
	}
	assert_int_equal(put_storage(&e, 3, false), SKV_OK);
	env_advance(&e, 20);
	assert_string_equal(file_view(&e, 2)->why, "capacity");
	/* Raised again before it is empty: it stays. */
	assert_int_equal(put_storage(&e, FILES, false), SKV_OK);
	env_advance(&e, 20);
	assert_string_equal(file_view(&e, 2)->state, "used");
	assert_int_equal(put_storage(&e, 3, false), SKV_OK);
	wait_gone(&e, 2);
	env_stats(&e, &st);
	assert_int_equal(st.storages[0].files, 3);
	assert_int_equal(st.storages[0].file_bytes, 3 * UNIT);
	assert_int_equal(found(&e, 0, ALL), ALL - SLOTS);
	/* Nothing grows beyond it, and starts find room by eviction. */
	env_keys(keys, SLOTS, 5, 0);
	assert_int_equal(env_put(&e, keys, SLOTS), SLOTS);
	assert_int_equal(files_of(&e).n, 3);
	/* By two at once, over a restart in between. */
	assert_int_equal(put_storage(&e, 1, false), SKV_OK);
	env_crash(&e);
	env_open(&e);
	for (int i = 0; i < 1000 && files_of(&e).n > 1; i++)
		env_advance(&e, 50);
	assert_int_equal(files_of(&e).n, 1);
	env_keys(keys, SLOTS, 6, 0);
	assert_int_equal(env_put(&e, keys, SLOTS), SLOTS);
	assert_int_equal(put_storage(&e, 2, false), SKV_OK);
	env_keys(keys, SLOTS, 7, 0);
	assert_int_equal(env_put(&e, keys, SLOTS), SLOTS);
	assert_int_equal(files_of(&e).n, 2);
	env_check(&e);
	env_destroy(&e);
}

static void test_a_storage_that_is_retired(void **state)
{
	struct skv_key keys[SLOTS];
	struct skv_start_res s;
	struct env e;

	(void)state;
	setup(&e);
	env_keys(keys, SLOTS, 2, 0);
	assert_int_equal(skv_cluster_storage_delete(e.cluster, "s", &e.err), SKV_E_IN_USE);
	assert_int_equal(put_storage(&e, FILES, true), SKV_OK);
	env_advance(&e, 20);
	assert_int_equal(env_start(&e, &(struct env_start){ .keys = keys, .n = SLOTS }, &s),
			 SKV_E_UNAVAILABLE);
	assert_string_equal(file_view(&e, 3)->why, "storage");
	/* Not after all: */
	assert_int_equal(put_storage(&e, FILES, false), SKV_OK);
	assert_int_equal(env_put(&e, keys, SLOTS), SLOTS);
	assert_int_equal(put_storage(&e, FILES, true), SKV_OK);
	env_crash(&e);
	env_open(&e);
	for (int i = 0; i < 1000 && files_of(&e).n; i++)
		env_advance(&e, 50);
	assert_int_equal(files_of(&e).n, 0);
	env_check(&e);
	/* A group that may name a storage that is not there lets it go. */
	assert_int_equal(skv_cluster_storage_delete(e.cluster, "s", &e.err), SKV_E_IN_USE);
	assert_int_equal(skv_cluster_instance_delete(e.cluster, "t", "i", NULL, &e.err), SKV_OK);
	assert_int_equal(skv_cluster_group_delete(e.cluster, "g", &e.err), SKV_OK);
	assert_int_equal(skv_cluster_storage_delete(e.cluster, "s", &e.err), SKV_OK);
	env_crash(&e);
	env_open(&e);
	env_check(&e);
	env_destroy(&e);
}

static void test_pages_are_not_drained(void **state)
{
	struct skv_storage_spec s = { .name = "s", .type = "external", .root = "", .capacity = 100,
				      .enabled = true };
	struct files f;
	struct env e;

	(void)state;
	env_init(&e);
	env_open(&e);
	env_make_pages(&e, 100);
	f = files_of(&e);
	assert_int_equal(f.n, 0);
	assert_int_equal(drain(&e, 0, true), SKV_E_NOT_FOUND);
	s.draining = true;
	assert_int_equal(skv_cluster_storage_put(e.cluster, &s, SKV_PUT_ANY, NULL, &e.err),
			 SKV_E_INVALID);
	assert_string_equal(e.err.field, "draining");
	s.draining = false;
	s.capacity = 50;
	assert_int_equal(skv_cluster_storage_put(e.cluster, &s, SKV_PUT_ANY, NULL, &e.err),
			 SKV_E_CONFLICT);
	assert_string_equal(e.err.field, "capacity");
	env_destroy(&e);
}

/* ---- the n-th call of the store fails -------------------------------------------------------- */

static void partial_state(struct env *e)
{
	for (int i = 0; i < 20 && skv_cluster_may_answer(e->cluster) != SKV_OK; i++)
		env_advance(e, 700);
	assert_int_equal(skv_cluster_may_answer(e->cluster), SKV_OK);
}

/* True: the fault was met. */
static bool with_fault(enum skv_fault_kind kind, int status, uint64_t at)
{
	struct skv_fault rule = { .kind = kind, .at = at, .times = 1, .status = status };
	struct skv_key more[SLOTS];
	bool met;
	struct env e;
	int rc = SKV_E_STORE_IO;

	env_init(&e);
	e.faulty = true;
	env_open(&e);
	{
		struct skv_spec spec = { "kv", BLOCK };
		struct skv_key keys[ALL];

		assert_int_equal(put_storage(&e, FILES, false), SKV_OK);
		assert_int_equal(env_group(&e, "g", 0, "s"), SKV_OK);
		assert_int_equal(env_instance(&e, "i", "g", &spec, 1), SKV_OK);
		env_keys(keys, ALL, 1, 0);
		for (uint32_t i = 0; i < ALL; i += SLOTS)
			assert_int_equal(env_put(&e, keys + i, SLOTS), SLOTS);
	}
	skv_fault_store_set(e.store, &rule);
	for (int i = 0; i < 20 && rc != SKV_OK && rc != SKV_E_NOT_FOUND; i++) {
		rc = drain(&e, 3, true);
		partial_state(&e);
	}
	assert_true(rc == SKV_OK || rc == SKV_E_NOT_FOUND);
	for (int i = 0; i < 400; i++) {
		partial_state(&e);
		if (!file_view(&e, 3))
			break;
		env_advance(&e, 100);
	}
	partial_state(&e);
	assert_null(file_view(&e, 3));
	env_advance(&e, 2000);
	partial_state(&e);
	met = skv_fault_store_seen(e.store) >= at;
	env_check(&e);
	env_crash(&e);
	env_open(&e);
	env_check(&e);
	assert_int_equal(files_of(&e).n, FILES - 1);
	assert_int_equal(found(&e, 0, 3 * SLOTS), 3 * SLOTS);
	env_keys(more, SLOTS, 2, 0);
	assert_int_equal(env_put(&e, more, SLOTS), SLOTS);
	assert_null(file_view(&e, 3));
	env_destroy(&e);
	return met;
}

static void test_every_store_call_fails_once(void **state)
{
	static const enum skv_fault_kind kinds[] = { SKV_FAULT_ERROR, SKV_FAULT_UNKNOWN_BEFORE,
						     SKV_FAULT_UNKNOWN_AFTER };
	uint64_t n;

	(void)state;
	for (size_t k = 0; k < 3; k++) {
		for (n = 1; with_fault(kinds[k], SKV_E_STORE_IO, n); n++)
			;
		assert_true(n > 5);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_drained_file_goes),
		cmocka_unit_test(test_numbers_do_not_come_again),
		cmocka_unit_test(test_undone),
		cmocka_unit_test(test_restarts_at_every_step),
		cmocka_unit_test(test_leases_are_kept),
		cmocka_unit_test(test_sessions_end_first),
		cmocka_unit_test(test_a_smaller_capacity),
		cmocka_unit_test(test_many_files),
		cmocka_unit_test(test_a_rest_without_a_slot),
		cmocka_unit_test(test_a_storage_with_holes_is_deleted),
		cmocka_unit_test(test_a_storage_that_is_retired),
		cmocka_unit_test(test_pages_are_not_drained),
		cmocka_unit_test(test_every_store_call_fails_once),
	};

	env_quiet();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
