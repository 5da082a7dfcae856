/* test_options.c - options by name: every row of the table by itself, then what they do together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "client.h"

static int set(struct slabkv_options *o, const char *name, const char *value, struct slabkv_error *err)
{
	return slabkv_options_set(o, name, value, err);
}

/* Each row takes its default and the ends of its range, refuses what lies beyond, and says the range. */
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

		slabkv_options_init(&o);
		before = o;
		assert_true(row->meaning[0]);
		if (row->value[0]) {
			assert_int_equal(set(&o, row->name, row->value, &err), SLABKV_OK);
			assert_memory_equal(&o.hf3fs, &before.hf3fs, sizeof o.hf3fs);
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
		assert_int_equal(set(&o, row->name, "99999999999999999999", &err), SLABKV_E_INVALID);
		assert_memory_equal(&o, &before, sizeof o);
	}
	assert_true(ranges >= 15);
}

static void test_meanings(void **state)
{
	struct slabkv_options o;
	struct slabkv_error err;

	(void)state;
	slabkv_options_init(&o);
	assert_int_equal(o.hf3fs.read_iov_size, 200u << 20);
	assert_int_equal(o.hf3fs.io_depth, -8);
	assert_int_equal(o.hf3fs.ior_entries, 256);
	assert_int_equal(o.hf3fs.io_thread_num, 4);
	assert_int_equal(o.hf3fs.numa_id, -1);
	assert_int_equal(o.hf3fs.read_timeout_ms, 65000);
	assert_int_equal(set(&o, "hf3fs_iov_size", "1G", &err), SLABKV_OK);
	assert_int_equal(o.hf3fs.read_iov_size, 1u << 30);
	assert_int_equal(o.hf3fs.write_iov_size, 1u << 30);
	assert_int_equal(set(&o, "threefs_write_iov_size", "4G", &err), SLABKV_OK);
	assert_int_equal(o.hf3fs.read_iov_size, 1u << 30);
	assert_int_equal(o.hf3fs.write_iov_size, 4ull << 30);
	assert_int_equal(set(&o, "hf3fs_io_depth", "-32", &err), SLABKV_OK);
	assert_int_equal(o.hf3fs.io_depth, -32);
	assert_int_equal(set(&o, "timeout_ms", "30000", &err), SLABKV_OK);
	assert_int_equal(o.hf3fs.read_timeout_ms, 30000);
	assert_int_equal(o.hf3fs.write_timeout_ms, 30000);
	assert_int_equal(o.timeout_ms, 10000); /* of calls to the manager */
	assert_int_equal(set(&o, "stream_number", "32", &err), SLABKV_OK);
	assert_int_equal(o.async_threads, 32);
	assert_int_equal(set(&o, "hf3fs_mount_point", "/3fs/stage", &err), SLABKV_OK);
	assert_string_equal(o.hf3fs.mount_point, "/3fs/stage");
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

/* What is set in the struct itself is checked as well, and by the same table. */
static void test_open(void **state)
{
	struct slabkv_options o;
	struct slabkv_error err;
	struct slabkv *kv;

	(void)state;
	slabkv_options_init(&o);
	o.hf3fs.ior_entries = 100;
	expect(&o, "hf3fs_ior_entries", "128..1024");
	slabkv_options_init(&o);
	o.hf3fs.io_depth = -129;
	expect(&o, "hf3fs_io_depth", "-128..128");
	slabkv_options_init(&o);
	o.hf3fs.read_iov_size = 1;
	expect(&o, "threefs_read_iov_size", "1M..64G");
	slabkv_options_init(&o);
	o.hf3fs.numa_id = 1000;
	expect(&o, "hf3fs_numa_id", "on this machine");
	slabkv_options_init(&o);
	o.hf3fs.mount_point = "/3fs/stage/";
	o.hf3fs.base_path = "/3fs/stage/a,/3fs/stager/b";
	expect(&o, "hf3fs_base_path", "/3fs/stager/b does not lie below");
	o.hf3fs.base_path = "/3fs/stage/a,b";
	expect(&o, "hf3fs_base_path", "'b' does not begin with /");
	o.hf3fs.base_path = "/3fs/stage/a,/3fs/stage/b";
	assert_int_equal(slabkv_open(&o, &kv, &err), SLABKV_OK); /* the way is chosen when a file is opened */
	assert_true(skv_mounts_named(kv->mounts));
	slabkv_close(kv);
}

/* A caller that was built before these members were there. */
static void test_older_caller(void **state)
{
	struct slabkv_options o;
	struct slabkv_error err;
	struct slabkv *kv;

	(void)state;
	slabkv_options_init(&o);
	memset(&o.hf3fs, 0xff, sizeof o - offsetof(struct slabkv_options, hf3fs));
	o.size = offsetof(struct slabkv_options, hf3fs);
	assert_int_equal(slabkv_open(&o, &kv, &err), SLABKV_OK);
	slabkv_close(kv);
	o.size = offsetof(struct slabkv_options, codec);
	assert_int_equal(slabkv_open(&o, &kv, &err), SLABKV_OK);
	slabkv_close(kv);
	o.size--;
	assert_int_equal(slabkv_open(&o, &kv, &err), SLABKV_E_INVALID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_meanings),
		cmocka_unit_test(test_open),
		cmocka_unit_test(test_older_caller),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
