/*
 * test_snapshot.c - configuration snapshots over a real core on a memory store: round trip, what is
 * refused and changes nothing, what exists and stays.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core_env.h"
#include "snapshot.h"

static const struct kvcm_model model = { .storage_capacity = 1 << 20, .storage_unit = 1 << 16,
					 .mounts = "" };
static struct env env;
static struct skv_arena arena;

static int open_env(void **state)
{
	(void)state;
	env_quiet();
	env_init(&env);
	env_open(&env);
	skv_arena_init(&arena);
	return 0;
}

static int close_env(void **state)
{
	(void)state;
	skv_arena_destroy(&arena);
	env_shutdown(&env);
	env_destroy(&env);
	return 0;
}

static char *take(void)
{
	struct kvcm_snapshot s;
	struct skv_buf text;
	char *out;

	skv_buf_init(&text);
	assert_int_equal(kvcm_snapshot_take(env.core, &arena, &s, &env.err), SKV_OK);
	kvcm_snapshot_write(&s, &text);
	out = skv_arena_strndup(&arena, (const char *)text.data, text.len);
	skv_buf_destroy(&text);
	return out;
}

static int load(const char *text)
{
	struct kvcm_snapshot s;
	int rc = kvcm_snapshot_read(text, strlen(text), &arena, &s, &env.err);

	return rc == SKV_OK ? kvcm_snapshot_load(env.core, &model, &s, &arena, &env.err) : rc;
}

/* Refused, the field named, nothing changed. */
static void refused(const char *text, const char *field)
{
	char *before = take();

	assert_int_equal(load(text), SKV_E_INVALID);
	assert_string_equal(env.err.field, field);
	assert_string_equal(take(), before);
}

#define HEAD "{\"format\":\"slabkvd.config\",\"version\":1"
#define STORAGE(name, capacity)                                                     \
	"{\"name\":\"" name "\",\"spec\":{\"type\":\"null\",\"capacity\":" capacity \
	",\"unit\":65536}}"
#define GROUP(name, storage) "{\"name\":\"" name "\",\"spec\":{\"storages\":[\"" storage "\"]}}"
#define INSTANCE(tenant, id, group, size)                                           \
	"{\"tenant\":\"" tenant "\",\"id\":\"" id "\",\"spec\":{\"group\":\"" group \
	"\",\"specs\":[{\"name\":\"tp0\",\"size\":" size "}]}}"

static void an_empty_one_is_empty(void **state)
{
	(void)state;
	assert_string_equal(take(), HEAD
			    ",\"storages\":[],\"groups\":[],\"instances\":[],\"accounts\":[]}");
	assert_int_equal(load(take()), SKV_OK);
	assert_int_equal(load(HEAD "}"), SKV_OK);
}

static void what_is_no_snapshot_is_refused(void **state)
{
	(void)state;
	refused("", "");
	refused("[]", "format");
	refused("{\"format\":\"slabkvd.config\",\"version\":1", "");
	refused("{\"format\":\"else\",\"version\":1}", "format");
	refused("{\"format\":\"slabkvd.config\"}", "version");
	refused("{\"format\":\"slabkvd.config\",\"version\":2}", "version");
	refused(HEAD ",\"storages\":{}}", "storages");
	refused(HEAD ",\"storages\":[1]}", "storages[0]");
	refused(HEAD ",\"storages\":[{\"spec\":{}}]}", "storages[0].name");
	refused(HEAD ",\"storages\":[{\"name\":\"../x\",\"spec\":{}}]}", "storages[0].name");
	refused(HEAD ",\"storages\":[{\"name\":\"s\"}]}", "storages[0].spec");
	refused(HEAD ",\"storages\":[" STORAGE("s", "131072") "," STORAGE("t", "\"many\"") "]}",
		"storages[1].spec.capacity");
	refused(HEAD ",\"storages\":[" STORAGE("s", "1.5") "]}", "storages[0].spec.capacity");
	refused(HEAD ",\"accounts\":[{\"user_name\":\"u\",\"role\":0,\"password\":\"plain\"}]}",
		"accounts[0].password");
	refused(HEAD
		",\"accounts\":[{\"user_name\":\"u\",\"role\":7,\"password\":\"$argon2id$x\"}]}",
		"accounts[0].role");
}

static void what_does_not_fit_together_is_refused(void **state)
{
	(void)state;
	refused(HEAD ",\"storages\":[" STORAGE("s", "131072") "," STORAGE("s", "131072") "]}",
		"storages[1].name");
	refused(HEAD ",\"storages\":[" STORAGE("s", "131072") "],\"groups\":[" GROUP("g", "t") "]}",
		"groups[0].spec.storages[0]");
	refused(HEAD ",\"storages\":[" STORAGE("s", "131072") "],\"groups\":[" GROUP(
			"g", "s") "," GROUP("g", "s") "]}",
		"groups[1].name");
	refused(HEAD ",\"storages\":[" STORAGE("s", "131072") "],\"instances\":[" INSTANCE(
			"acme", "i", "g", "4096") "]}",
		"instances[0].spec.group");
}

static void everything_comes_back(void **state)
{
	char *text, *again;

	(void)state;
	assert_int_equal(
		load(HEAD ",\"storages\":[" STORAGE("s", "131072") "],\"groups\":[" GROUP(
			"g",
			"s") "],"
			     "\"instances\":[" INSTANCE("default", "i", "g", "4096") "," INSTANCE(
				     "acme", "i", "g",
				     "512") "],"
					    "\"accounts\":[{\"user_name\":\"u\",\"role\":1,"
					    "\"password\":\"$argon2id$v=19$x\"}]}"),
		SKV_OK);
	text = take();
	assert_non_null(strstr(text, "\"tenant\":\"acme\""));
	assert_non_null(
		strstr(text, "{\"user_name\":\"u\",\"role\":1,\"password\":\"$argon2id$v=19$x\"}"));
	assert_int_equal(load(text), SKV_OK); /* over itself */
	again = take();
	assert_string_equal(again, text);
	env_shutdown(&env);
	env_destroy(&env);
	env_init(&env); /* another store */
	env_open(&env);
	assert_null(strstr(take(), "acme"));
	assert_int_equal(load(text), SKV_OK);
	assert_string_equal(take(), text);
}

/* Every field of a group, and what only some storages and instances have. */
static void no_field_is_lost(void **state)
{
	static const char *const storages[] = { "s", "not-there-yet" };
	static const struct skv_type_quota quotas[] = { { "file", 1000, 800 },
							{ "null", 65536, 0 } };
	const struct skv_group_spec g = {
		.name = "all", .capacity = 1 << 20, .storages = storages, .n_storages = 2,
		.loose_storages = true,
		.quotas = quotas, .n_quotas = 2, .max_blocks = 11, .max_instances = 12,
		.reclaim_bytes = 13,
		.reclaim_blocks = 7, .reclaim_step_bytes = 15, .reclaim_step_percent = 16,
		.reclaim_period_ms = 17,
		.max_idle_ms = 18, .version = 19, .extra = "{\"name\":\"\xe2\x82\xac \\\"x\\\"\"}",
	};
	const struct skv_storage_spec st = { .name = "n", .type = "null", .root = "",
					     .capacity = 131072, .unit = 65536,
					     .extra = "other", .client_root = "",
					     .client_mount = "" };
	const struct skv_spec spec = { "tp0", 4096 };
	const struct skv_instance_spec i = { .tenant = "default", .id = "numbered", .group = "all",
					     .block_tokens = 64,
					     .specs = &spec, .n_specs = 1, .extra = "{}",
					     .numbered = true };
	char *text;

	(void)state;
	assert_int_equal(skv_core_storage_put(env.core, &st, NULL, &env.err), SKV_OK);
	assert_int_equal(skv_core_group_put(env.core, &g, NULL, NULL, &env.err), SKV_OK);
	assert_int_equal(skv_core_instance_put(env.core, &i, NULL, &env.err), SKV_OK);
	text = take();
	assert_non_null(strstr(text, "not-there-yet"));
	env_shutdown(&env);
	env_destroy(&env);
	env_init(&env);
	env_open(&env);
	assert_int_equal(load(text), SKV_OK);
	assert_string_equal(take(), text);
	for (uint64_t v = 11; v < 20; v++) { /* each of the numbers above */
		char number[32];

		snprintf(number, sizeof number, ":%d", v == 14 ? 7 : (int)v);
		assert_non_null(strstr(text, number));
	}
	assert_non_null(strstr(text, "\"enabled\":false"));
	assert_non_null(strstr(text, "\"numbered\":true"));
}

static void what_is_there_may_grow_and_not_change(void **state)
{
	(void)state;
	refused(HEAD ",\"storages\":[" STORAGE("s", "65536") "]}", "storages[0].spec.capacity");
	refused(HEAD
		",\"storages\":[{\"name\":\"s\",\"spec\":{\"type\":\"file\",\"root\":\"/x\","
		"\"capacity\":131072}}]}",
		"storages[0].spec.type");
	refused(HEAD ",\"instances\":[" INSTANCE("acme", "i", "g", "1024") "]}",
		"instances[0].spec.specs");
	assert_int_equal(load(HEAD ",\"storages\":[" STORAGE("s", "262144") "]}"), SKV_OK);
	assert_non_null(strstr(take(), "\"capacity\":262144"));
	assert_non_null(strstr(take(), "acme")); /* what is not named stays */
}

/* The second storage cannot be opened: the first goes again. */
static void storages_are_undone(void **state)
{
	char *before = take();
	int rc;

	(void)state;
	rc = load(HEAD ",\"storages\":[" STORAGE(
		"new", "131072") ",{\"name\":\"far\",\"spec\":{\"type\":\"file\","
				 "\"root\":\"/nonexistent/deep/root\",\"capacity\":67108864}}]}");
	assert_int_not_equal(rc, SKV_OK);
	assert_memory_equal(env.err.field, "storages[1]", 11);
	assert_string_equal(take(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_one_is_empty),
		cmocka_unit_test(what_is_no_snapshot_is_refused),
		cmocka_unit_test(what_does_not_fit_together_is_refused),
		cmocka_unit_test(everything_comes_back),
		cmocka_unit_test(no_field_is_lost),
		cmocka_unit_test(what_is_there_may_grow_and_not_change),
		cmocka_unit_test(storages_are_undone),
	};

	return cmocka_run_group_tests(tests, open_env, close_env);
}
