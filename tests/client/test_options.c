/* test_options.c - options by name: every row of the table by itself, then what they do
 * together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "client.h"

static int set(struct slabkv_options *o, const char *name, const char *value,
	       struct slabkv_error *err)
{
	return slabkv_options_set(o, name, value, err);
}

/* Each row takes its default and the ends of its range, refuses what lies
 * beyond, and says the range. */
static void test_rows(void **state)
{
	const struct slabkv_option *row;
	struct slabkv_options o, before;
	struct slabkv_error err;
	uint32_t ranges = 0;

	(void)state;
	for (uint32_t i = 0; (row = slabkv_option(i)) != NULL; i++) {
		const char *dots = strstr(row->range, "..");
		char min[32] = "", max[32], beyond[40];

		slabkv_options_init(&o, sizeof o);
		before = o;
		assert_true(row->meaning[0]);
		if (row->value[0] && !strstr(row->range, "separated by commas")) {
			assert_int_equal(set(&o, row->name, row->value, &err), SLABKV_OK);
			if (strncmp(row->name, "hf3fs", 5) == 0)
				assert_memory_equal(
					&o.hf3fs_lib, &before.hf3fs_lib,
					sizeof o - offsetof(struct slabkv_options, hf3fs_lib));
		}
		assert_int_equal(set(&o, row->name, "", &err), SLABKV_E_INVALID);
		if (!dots)
			continue;
		ranges++;
		memcpy(min, row->range, (size_t)(dots - row->range));
		snprintf(max, sizeof max, "%s", dots + 2);
		assert_int_equal(set(&o, row->name, min, &err), SLABKV_OK);
		assert_int_equal(set(&o, row->name, max, &err), SLABKV_OK);
		before = o;
		snprintf(beyond, sizeof beyond, "9%s", max);
		assert_int_equal(set(&o, row->name, beyond, &err), SLABKV_E_INVALID);
		assert_string_equal(err.field, row->name);
		assert_non_null(strstr(err.message, row->range));
		assert_int_equal(set(&o, row->name, "-200", &err), SLABKV_E_INVALID);
		assert_int_equal(set(&o, row->name, "12x", &err), SLABKV_E_INVALID);
		assert_int_equal(set(&o, row->name, " 200", &err), SLABKV_E_INVALID);
		assert_int_equal(set(&o, row->name, "99999999999999999999", &err),
				 SLABKV_E_INVALID);
		assert_memory_equal(&o, &before, sizeof o);
	}
	assert_true(ranges >= 15);
}

static void test_meanings(void **state)
{
	struct slabkv_options o;
	struct slabkv_error err;

	(void)state;
	slabkv_options_init(&o, sizeof o);
	assert_int_equal(o.hf3fs_read_iov_size, 200u << 20);
	assert_int_equal(o.hf3fs_io_depth, -8);
	assert_int_equal(o.hf3fs_ior_entries, 256);
	assert_int_equal(o.hf3fs_io_thread_num, 4);
	assert_int_equal(o.hf3fs_numa_id, -1);
	assert_int_equal(o.hf3fs_read_timeout_ms, 65000);
	assert_int_equal(set(&o, "hf3fs_iov_size", "1G", &err), SLABKV_OK);
	assert_int_equal(o.hf3fs_read_iov_size, 1u << 30);
	assert_int_equal(o.hf3fs_write_iov_size, 1u << 30);
	assert_int_equal(set(&o, "threefs_write_iov_size", "4G", &err), SLABKV_OK);
	assert_int_equal(o.hf3fs_read_iov_size, 1u << 30);
	assert_int_equal(o.hf3fs_write_iov_size, 4ull << 30);
	assert_int_equal(set(&o, "hf3fs_io_depth", "-32", &err), SLABKV_OK);
	assert_int_equal(o.hf3fs_io_depth, -32);
	assert_int_equal(set(&o, "timeout_ms", "30000", &err), SLABKV_OK);
	assert_int_equal(o.hf3fs_read_timeout_ms, 30000);
	assert_int_equal(o.hf3fs_write_timeout_ms, 30000);
	assert_int_equal(o.timeout_ms, 10000); /* of calls to the manager */
	assert_int_equal(set(&o, "stream_number", "32", &err), SLABKV_OK);
	assert_int_equal(o.async_threads, 32);
	assert_int_equal(set(&o, "hf3fs_mount_point", "/3fs/stage", &err), SLABKV_OK);
	assert_string_equal(o.hf3fs_mount_point, "/3fs/stage");
	assert_int_equal(set(&o, "hf3fs_mount_point", "stage", &err), SLABKV_E_INVALID);
	assert_string_equal(err.field, "hf3fs_mount_point");
	assert_int_equal(set(&o, "hf3fs_io_deep", "1", &err), SLABKV_E_INVALID);
	assert_string_equal(err.field, "hf3fs_io_deep");
	o.size = 16;
	assert_int_equal(set(&o, "hf3fs_io_depth", "1", &err), SLABKV_E_INVALID);
}

static void expect(const struct slabkv_options *o, const char *field, const char *word)
{
	struct slabkv_error err;
	struct slabkv *kv;

	assert_int_equal(slabkv_open(o, &kv, &err), SLABKV_E_INVALID);
	assert_string_equal(err.field, field);
	if (!strstr(err.message, word))
		fail_msg("'%s' is not in: %s", word, err.message);
}

/* Options set in the struct itself are checked as well, and by the same table. */
static void test_open(void **state)
{
	struct slabkv_options o;
	struct slabkv_error err;
	struct slabkv *kv;

	(void)state;
	slabkv_options_init(&o, sizeof o);
	o.hf3fs_ior_entries = 100;
	expect(&o, "hf3fs_ior_entries", "128..1024");
	slabkv_options_init(&o, sizeof o);
	o.hf3fs_io_depth = -129;
	expect(&o, "hf3fs_io_depth", "-128..128");
	slabkv_options_init(&o, sizeof o);
	o.hf3fs_read_iov_size = 1;
	expect(&o, "threefs_read_iov_size", "1M..64G");
	slabkv_options_init(&o, sizeof o);
	o.hf3fs_numa_id = 1000;
	expect(&o, "hf3fs_numa_id", "on this machine");
	slabkv_options_init(&o, sizeof o);
	o.hf3fs_mount_point = "/3fs/stage/";
	o.hf3fs_base_path = "/3fs/stage/a,/3fs/stager/b";
	expect(&o, "hf3fs_base_path", "/3fs/stager/b does not lie below");
	o.hf3fs_base_path = "/3fs/stage/a,b";
	expect(&o, "hf3fs_base_path", "'b' does not begin with /");
	o.hf3fs_base_path = "/3fs/stage/a,/3fs/stage/b";
	/* the way is chosen when a file is opened */
	assert_int_equal(slabkv_open(&o, &kv, &err), SLABKV_OK);
	assert_true(skv_mounts_named(kv->mounts));
	slabkv_close(kv);
}

/* A caller that was built with another form of the struct. */
static void test_other_callers(void **state)
{
	struct {
		struct slabkv_options o;
		char later[64];
	} newer;
	struct slabkv_options o;
	struct slabkv_error err;
	struct slabkv *kv;

	(void)state;
	memset(&newer, 0xff, sizeof newer);
	slabkv_options_init(&newer.o, sizeof newer);
	assert_int_equal(newer.o.size, sizeof newer);
	assert_int_equal(newer.later[0], 0);
	assert_int_equal(slabkv_open(&newer.o, &kv, &err), SLABKV_OK);
	slabkv_close(kv);
	assert_int_equal(slabkv_open(NULL, &kv, &err), SLABKV_OK);
	slabkv_close(kv);
	slabkv_options_init(&o, sizeof o);
	o.size = offsetof(struct slabkv_options, hf3fs_write_timeout_ms);
	assert_int_equal(slabkv_open(&o, &kv, &err), SLABKV_E_INVALID);
	assert_string_equal(err.field, "size");
}

/* All by name, as a language does that does not know the struct; its texts may go at once. */
static void test_by_name(void **state)
{
	static const char *const wrong[][2] = {
		{ "urls", "" }, { "depth", "1025" }, { "verify", "maybe" }, { "no_such", "1" }
	};
	struct slabkv_options *o = slabkv_options_new(), plain;
	struct slabkv_error err;
	struct slabkv *kv;
	char text[64];

	(void)state;
	assert_non_null(o);
	snprintf(text, sizeof text, "one:1,http://two:2,");
	assert_int_equal(set(o, "urls", text, &err), SLABKV_OK);
	memset(text, 'x', sizeof text - 1);
	assert_int_equal(set(o, "mounts", "/a,/b", &err), SLABKV_OK);
	assert_int_equal(set(o, "token", "secret", &err), SLABKV_OK);
	assert_int_equal(set(o, "engine", "posix", &err), SLABKV_OK);
	assert_int_equal(set(o, "verify", "false", &err), SLABKV_OK);
	assert_int_equal(set(o, "call_timeout_ms", "1234", &err), SLABKV_OK);
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		assert_int_equal(set(o, wrong[i][0], wrong[i][1], &err), SLABKV_E_INVALID);
		assert_string_equal(err.field, wrong[i][0]);
	}
	assert_int_equal(slabkv_open(o, &kv, &err), SLABKV_OK);
	slabkv_options_free(o);
	assert_int_equal(kv->n_urls, 2);
	assert_string_equal(kv->urls[0], "http://one:1");
	assert_string_equal(kv->urls[1], "http://two:2");
	assert_int_equal(kv->timeout_ms, 1234);
	assert_true(!kv->verify);
	assert_true(skv_mounts_named(kv->mounts));
	slabkv_close(kv);
	slabkv_options_init(&plain, sizeof plain);
	/* the struct has no memory for the list */
	assert_int_equal(set(&plain, "urls", "one", &err), SLABKV_E_INVALID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),          cmocka_unit_test(test_meanings),
		cmocka_unit_test(test_open),
		cmocka_unit_test(test_other_callers), cmocka_unit_test(test_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
