/*
 * test_core_names.c - names that blocks keep, and exports, which tell them: right after restarts
 * over journal and checkpoint, with sessions open, in blocks of several specs, when memory is
 * short, and at their bounds.
 */
#include "core_env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <skv/mem.h>

#define MANY 700u /* blocks: several chunks */

static int put_instance(struct env *e, const char *id, uint32_t n_specs, bool named)
{
	static const struct skv_spec specs[] = { { "a", 4096 }, { "b", 8192 } };
	const struct skv_instance_spec i = { .tenant = "t", .id = id, .group = "g", .specs = specs,
					     .n_specs = n_specs,
					     .extra = "", .named = named };

	return skv_cluster_instance_put(e->cluster, &i, SKV_PUT_ANY, NULL, &e->err);
}

static int setup(void **state)
{
	static struct env e;

	env_init(&e);
	env_open(&e);
	assert_int_equal(env_storage(&e, "s", 64 << 20, 65536), SKV_OK);
	assert_int_equal(env_group(&e, "g", 0, "s"), SKV_OK);
	assert_int_equal(put_instance(&e, "i", 1, true), SKV_OK);
	*state = &e;
	return 0;
}

static int teardown(void **state)
{
	struct env *e = *state;

	env_check(e);
	env_destroy(e);
	return 0;
}

static void reopen(struct env *e, bool checkpoint)
{
	if (checkpoint)
		env_shutdown(e);
	else
		env_crash(e);
	env_open(e);
	env_check(e);
}

/* The name of key {hi, lo}: of any length, of any bytes; of some none. */
static size_t name_of(struct skv_key k, uint8_t out[SKV_MAX_BLOCK_NAME])
{
	size_t n = k.lo % 7 == 0 ? 0 : k.lo % 50 == 1 ? SKV_MAX_BLOCK_NAME : 1 + k.lo % 66;

	for (size_t i = 0; i < n; i++)
		out[i] = (uint8_t)(k.hi * 31 + k.lo + i);
	return n;
}

static int put(struct env *e, const char *instance, const struct skv_key *k, uint32_t n,
	       bool finish)
{
	uint8_t(*bytes)[SKV_MAX_BLOCK_NAME] = calloc(n, sizeof *bytes);
	struct skv_bytes *names = calloc(n, sizeof *names);
	struct skv_start_res r;
	struct skv_finish_res f;
	char session[SKV_SESSION_ID_HEX + 1];
	int rc;

	for (uint32_t i = 0; i < n; i++)
		names[i] = (struct skv_bytes){ bytes[i], name_of(k[i], bytes[i]) };
	rc =
		env_start(e, &(struct env_start){ .instance = instance, .keys = k, .n = n,
						  .names = names }, &r);
	free(bytes);
	free(names);
	memcpy(session, r.session, sizeof session);
	if (rc == SKV_OK && finish && r.n_write)
		rc = env_finish(e, session, NULL, 0, &f);
	return rc;
}

static int export(struct env *e, const char *instance, uint64_t cursor, uint32_t max,
		  struct skv_export_res *res)
{
	struct skv_export_req q = { .tenant = "t", .instance = instance, .cursor = cursor,
				    .max = max };

	skv_arena_reset(&e->arena);
	skv_error_clear(&e->err);
	return skv_core_export(e->core, &q, res, &e->arena, &e->err);
}

static int list(struct env *e, const char *instance, uint64_t cursor, uint32_t max,
		struct skv_export_res *res)
{
	struct skv_export_req q = { .tenant = "t", .instance = instance, .cursor = cursor,
				    .max = max, .keys_only = true };

	skv_arena_reset(&e->arena);
	skv_error_clear(&e->err);
	return skv_core_export(e->core, &q, res, &e->arena, &e->err);
}

/* All blocks with key {hi, 1..n} are told exactly once, with their names and
 * places, and nothing else is. */
static void check_export(struct env *e, uint64_t hi, uint32_t n, uint32_t max)
{
	uint8_t *seen = calloc(n + 1, 1), want[SKV_MAX_BLOCK_NAME];
	struct skv_export_res r = { 0 };
	uint32_t told = 0;

	do {
		assert_int_equal(export(e, "i", r.next, max, &r), SKV_OK);
		assert_true(r.n <= max);
		told += r.n;
		for (uint32_t i = 0; i < r.n; i++) {
			assert_true(r.key[i].hi == hi && r.key[i].lo >= 1 && r.key[i].lo <= n);
			assert_int_equal(seen[r.key[i].lo]++, 0);
			assert_int_equal(r.name[i].n, name_of(r.key[i], want));
			assert_memory_equal(r.name[i].p, want, r.name[i].n);
			assert_int_equal(r.n_specs, 1);
			assert_int_equal(r.loc[i].length, 4096);
			assert_true(r.loc[i].file < r.files.n && r.use[i] > 0 &&
				    r.next < 1ull << 53);
		}
	} while (r.next);
	assert_int_equal(told, n);
	do { /* the same keys alone: each of them once more */
		assert_int_equal(list(e, "i", r.next, max, &r), SKV_OK);
		assert_true(r.n <= max && r.n_specs == 0 && !r.name && !r.loc);
		for (uint32_t i = 0; i < r.n; i++, told--)
			assert_int_equal(seen[r.key[i].lo]++, 1);
	} while (r.next);
	assert_int_equal(told, 0);
	free(seen);
}

static void test_restarts(void **state)
{
	struct env *e = *state;
	static struct skv_key k[MANY];

	env_keys(k, MANY, 1, 1);
	assert_int_equal(put(e, "i", k, MANY, true), SKV_OK);
	check_export(e, 1, MANY, 64);
	reopen(e, false); /* over the journal, */
	check_export(e, 1, MANY, SKV_MAX_KEYS);
	reopen(e, true); /* over a checkpoint, */
	check_export(e, 1, MANY, 1);
	reopen(e, false); /* over both */
	check_export(e, 1, MANY, 1000);
}

/* A session that is open at the restart: the names are there once it is finished. */
static void test_open_session(void **state)
{
	struct env *e = *state;
	struct skv_key k[20];
	struct skv_start_res r;
	struct skv_finish_res f;
	uint8_t bytes[20][SKV_MAX_BLOCK_NAME];
	struct skv_bytes names[20];
	struct env_start s = { .request_id = "r", .keys = k, .n = 20, .names = names };
	char session[SKV_SESSION_ID_HEX + 1];

	env_keys(k, 20, 3, 1);
	for (uint32_t i = 0; i < 20; i++)
		names[i] = (struct skv_bytes){ bytes[i], name_of(k[i], bytes[i]) };
	for (int checkpoint = 0; checkpoint < 2; checkpoint++) {
		uint32_t deleted;

		assert_int_equal(env_start(e, &s, &r), SKV_OK);
		memcpy(session, r.session, sizeof session);
		reopen(e, checkpoint);
		check_export(e, 3, 0, 10); /* not yet */
		assert_int_equal(env_start(e, &s, &r), SKV_OK); /* the same again */
		assert_string_equal(r.session, session);
		assert_int_equal(env_finish(e, session, NULL, 0, &f), SKV_OK);
		check_export(e, 3, 20, 7);
		assert_int_equal(env_delete(e, k, 20, &deleted), SKV_OK);
		assert_int_equal(deleted, 20);
		s.request_id = "r2";
	}
	s.request_id = "r";
	names[3].n--; /* another body */
	assert_int_equal(env_start(e, &s, &r), SKV_E_CONFLICT);
	assert_string_equal(e->err.field, "request_id");
}

/* Another name may come with another life, not with another spec. */
static void test_new_lives(void **state)
{
	struct env *e = *state;
	static const char *const a[] = { "a" }, *const b[] = { "b" };
	struct skv_key k[2] = { { 5, 1 }, { 5, 2 } };
	struct skv_bytes one[2] = { { "one", 3 }, { "uno", 3 } },
			 two[2] = { { "two2", 4 }, { "due", 3 } };
	struct env_start s = { .instance = "j", .keys = k, .n = 2, .specs = a, .n_specs = 1,
			       .names = one };
	struct skv_export_res x;
	struct skv_start_res r;
	struct skv_finish_res f;
	char session[SKV_SESSION_ID_HEX + 1];

	assert_int_equal(put_instance(e, "j", 2, true), SKV_OK);
	assert_int_equal(env_start(e, &s, &r), SKV_OK);
	memcpy(session, r.session, sizeof session);
	assert_int_equal(env_abort(e, session, true), SKV_OK);
	s.names = two;
	assert_int_equal(env_start(e, &s, &r), SKV_OK);
	memcpy(session, r.session, sizeof session);
	assert_int_equal(env_finish(e, session, NULL, 0, &f), SKV_OK);
	s.names = one;
	s.specs = b;
	assert_int_equal(env_start(e, &s, &r), SKV_OK);
	memcpy(session, r.session, sizeof session);
	assert_int_equal(env_finish(e, session, NULL, 0, &f), SKV_OK);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(export(e, "j", 0, 10, &x), SKV_OK);
		assert_int_equal(x.n, 2);
		assert_memory_equal(x.name[0].p, "two2", 4);
		assert_memory_equal(x.name[1].p, "due", 3);
		assert_true(x.name[0].n == 4 && x.name[1].n == 3 && x.loc[1].length == 8192 &&
			    x.loc[2].length == 4096);
		reopen(e, i == 1);
	}
}

/* Each export goes on where it was, whatever comes and goes; a block that stays is told once. */
static void test_export_while_things_change(void **state)
{
	struct env *e = *state;
	static struct skv_key stay[MANY], go[MANY], come[MANY];
	static uint8_t seen[MANY + 1];
	struct skv_export_res r = { 0 };
	uint32_t deleted, told = 0;
	uint64_t cursor;

	for (uint32_t i = 0; i < MANY; i += 70) {
		env_keys(stay + i, 70, 1, 1 + i);
		env_keys(go + i, 70, 2, 1 + i);
		env_keys(come + i, 70, 4, 1 + i);
		assert_int_equal(put(e, "i", stay + i, 70, true), SKV_OK);
		assert_int_equal(put(e, "i", go + i, 70, true), SKV_OK);
	}
	memset(seen, 0, sizeof seen);
	for (uint32_t i = 0; i < MANY; i += 70) {
		assert_int_equal(export(e, "i", r.next, 140, &r), SKV_OK);
		cursor = r.next;
		for (uint32_t j = 0; j < r.n; j++) {
			assert_true(r.key[j].hi != 1 || !seen[r.key[j].lo]++);
			told += r.key[j].hi == 1;
		}
		assert_int_equal(env_delete(e, go + MANY - 70 - i, 70, &deleted), SKV_OK);
		assert_int_equal(put(e, "i", come + i, 70, true), SKV_OK);
		r.next = cursor;
		if (!cursor)
			break;
	}
	assert_int_equal(told, MANY);
	assert_int_equal(export(e, "i", 0, 10, &r), SKV_OK);
	cursor = r.next;
	reopen(e, false);
	assert_int_equal(export(e, "i", cursor, 10, &r), SKV_E_INVALID);
	assert_string_equal(e->err.field, "cursor");
}

static void test_bad(void **state)
{
	struct env *e = *state;
	static uint8_t bytes[SKV_MAX_BLOCK_NAME + 1];
	struct skv_bytes names[2] = { { bytes, 1 }, { bytes, sizeof bytes } };
	struct skv_key k[2] = { { 7, 1 }, { 7, 2 } };
	struct env_start s = { .keys = k, .n = 2, .names = names };
	struct skv_export_res x;
	struct skv_start_res r;

	assert_int_equal(env_start(e, &s, &r), SKV_E_INVALID);
	assert_string_equal(e->err.field, "names[1]");
	assert_int_equal(put_instance(e, "plain", 1, false), SKV_OK);
	names[1].n--;
	s.instance = "plain";
	assert_int_equal(env_start(e, &s, &r), SKV_E_INVALID);
	assert_string_equal(e->err.field, "names");
	assert_int_equal(put_instance(e, "plain", 1, true), SKV_E_CONFLICT);
	assert_string_equal(e->err.field, "named");
	reopen(e, false);
	assert_int_equal(put_instance(e, "plain", 1, true), SKV_E_CONFLICT);
	assert_int_equal(put_instance(e, "i", 1, true), SKV_OK);
	assert_int_equal(export(e, "i", 0, 0, &x), SKV_E_INVALID);
	assert_int_equal(export(e, "i", 0, SKV_MAX_KEYS + 1, &x), SKV_E_INVALID);
	assert_string_equal(e->err.field, "max");
	assert_int_equal(export(e, "i", 300, 5, &x), SKV_E_INVALID);
	assert_int_equal(export(e, "none", 0, 5, &x), SKV_E_NOT_FOUND);
	assert_int_equal(export(e, "plain", 0, 5, &x), SKV_OK);
	assert_true(x.n == 0 && x.next == 0);
}

/* The largest start there may be, open while a checkpoint is written. */
static void test_largest(void **state)
{
	struct env *e = *state;
	static struct skv_key k[SKV_MAX_KEYS];
	static uint8_t bytes[SKV_MAX_KEYS][SKV_MAX_BLOCK_NAME];
	static struct skv_bytes names[SKV_MAX_KEYS];
	struct env_start s = { .keys = k, .n = SKV_MAX_KEYS, .names = names, .deadline_ms = 20000 };
	struct skv_export_res x = { 0 };
	struct skv_core_counters n;
	struct skv_start_res r;
	struct skv_finish_res f;
	char session[SKV_SESSION_ID_HEX + 1];
	uint32_t told = 0;

	env_keys(k, SKV_MAX_KEYS, 9, 0);
	for (uint32_t i = 0; i < SKV_MAX_KEYS; i++) {
		memset(bytes[i], (int)(i % 251), SKV_MAX_BLOCK_NAME);
		names[i] = (struct skv_bytes){ bytes[i], SKV_MAX_BLOCK_NAME };
	}
	e->o.journal_limit = 32 << 20; /* a quarter of it is enough */
	reopen(e, false);
	assert_int_equal(env_storage(e, "s", 128 << 20, 65536), SKV_OK);
	assert_int_equal(env_start(e, &s, &r), SKV_OK);
	assert_int_equal(r.n_write, SKV_MAX_KEYS);
	memcpy(session, r.session, sizeof session);
	env_advance(e, 20);
	skv_cluster_counters_get(e->cluster, &n);
	assert_true(n.checkpoints > 0 && n.checkpoint_failures == 0);
	reopen(e, false);
	assert_int_equal(env_finish(e, session, NULL, 0, &f), SKV_OK);
	reopen(e, true);
	do {
		assert_int_equal(export(e, "i", x.next, 5000, &x), SKV_OK);
		for (uint32_t i = 0; i < x.n; i++)
			assert_true(x.name[i].n == SKV_MAX_BLOCK_NAME &&
				    memcmp(x.name[i].p, bytes[x.key[i].lo], SKV_MAX_BLOCK_NAME) ==
					    0);
		told += x.n;
	} while (x.next);
	assert_int_equal(told, SKV_MAX_KEYS);
}

/* A failed start has left nothing, and a successful one has all names, whichever allocation
 * fails. */
static void test_no_memory(void **state)
{
	struct env *e = *state;
	struct skv_key k[40];
	bool failed = true;

	for (unsigned long n = 1; failed && n < 3000; n++) {
		uint32_t deleted;
		int rc;

		env_keys(k, 40, 1, 1);
		skv_mem_fail_at(n);
		rc = put(e, "i", k, 40, true);
		failed = skv_mem_count() >= n;
		skv_mem_fail_at(0);
		env_advance(e, 30000);
		if (skv_cluster_state_get(e->cluster) != SKV_CORE_READY || rc != SKV_OK) {
			assert_int_equal(rc == SKV_OK, false);
			for (int i = 0;
			     i < 100 && skv_cluster_state_get(e->cluster) != SKV_CORE_READY; i++)
				env_advance(e, 100);
		}
		env_check(e);
		assert_int_equal(put(e, "i", k, 40, true), SKV_OK);
		check_export(e, 1, 40, 100);
		if (n % 16 == 0) {
			reopen(e, false);
			check_export(e, 1, 40, 100);
		}
		assert_int_equal(env_delete(e, k, 40, &deleted), SKV_OK);
		env_advance(e, 30000);
	}
	assert_false(failed);
}

int main(void)
{
#define SCENE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		SCENE(test_restarts),	   SCENE(test_open_session),
		SCENE(test_new_lives),	   SCENE(test_export_while_things_change),
		SCENE(test_bad),	   SCENE(test_largest),
		SCENE(test_no_memory),
	};

	env_quiet();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
