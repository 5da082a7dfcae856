/*
 * test_wrapper.c - the guarded wrapper and the `null` storage: arguments are checked
 * before a backend sees them, odd answers of a backend become a status with a
 * sentence, and calls are counted.
 */
#include "bench_dir.h"

#include <string.h>

#include <skv/mem.h>

static struct skv_storage_config config(void)
{
	return (struct skv_storage_config){ .name = "n", .root = "", .uuid = { 1 }, .unit = UNIT };
}

static void types_are_found_by_name(void **state)
{
	(void)state;
	assert_ptr_equal(skv_storage_find("file"), &skv_storage_file);
	assert_ptr_equal(skv_storage_find("hf3fs"), &skv_storage_hf3fs);
	assert_ptr_equal(skv_storage_find("null"), &skv_storage_null);
	assert_ptr_equal(skv_storage_find("external"), &skv_storage_external);
	assert_null(skv_storage_find("HF3FS"));
	assert_null(skv_storage_find(""));
}

static void null_has_everything_and_nothing(void **state)
{
	struct skv_storage_config c = config();
	struct skv_storage_health h;
	struct skv_error err;
	struct skv_storage *s;

	(void)state;
	assert_int_equal(skv_storage_open(&skv_storage_null, &c, &s, &err), SKV_OK);
	assert_ptr_equal(skv_storage_ops_of(s), &skv_storage_null);
	assert_int_equal(skv_storage_create_file(s, 5, LENGTH, &err), SKV_OK);
	assert_int_equal(skv_storage_check_file(s, 6, LENGTH, NULL), SKV_OK);
	assert_int_equal(skv_storage_remove_file(s, 5, &err), SKV_OK);
	assert_int_equal(skv_storage_probe(s, SKV_PROBE_WRITE, &h, &err), SKV_OK);
	assert_true(h.free_bytes == UINT64_MAX);
	skv_storage_close(s);
	/* The same requests get the same offsets on both. */
	assert_int_equal(skv_storage_null.edge, skv_storage_file.edge);
}

static void bad_configurations_are_refused(void **state)
{
	struct skv_storage_config c;
	struct skv_error err;
	struct skv_storage *s = NULL;

	(void)state;
	c = config();
	c.name = "";
	assert_int_equal(skv_storage_open(&skv_storage_null, &c, &s, &err), SKV_E_INVALID);
	assert_string_equal(err.field, "name");
	c.name = NULL;
	assert_int_equal(skv_storage_open(&skv_storage_null, &c, &s, &err), SKV_E_INVALID);
	c = config();
	c.uuid[0] = 0;
	assert_int_equal(skv_storage_open(&skv_storage_null, &c, &s, &err), SKV_E_INVALID);
	assert_string_equal(err.field, "uuid");
	c = config();
	c.unit = 0;
	assert_int_equal(skv_storage_open(&skv_storage_null, &c, &s, &err), SKV_E_INVALID);
	c.unit = 3 * UNIT;
	assert_int_equal(skv_storage_open(&skv_storage_null, &c, &s, &err), SKV_E_INVALID);
	assert_string_equal(err.field, "unit");
	assert_null(s);
	skv_storage_close(NULL);
}

/* A backend that answers what the test says. */
static int answer;
static int odd_open(const struct skv_storage_config *c, void **self, struct skv_error *err)
{
	(void)c;
	(void)err;
	*self = &answer;
	return answer;
}
static void odd_close(void *self) { assert_ptr_equal(self, &answer); }
static int odd_file(void *self, uint32_t file, uint64_t length, struct skv_error *err)
{
	(void)file;
	(void)length;
	assert_non_null(err); /* also when the caller gave none */
	return *(int *)self;
}

static int odd_remove(void *self, uint32_t file, struct skv_error *err)
{
	return odd_file(self, file, 0, err);
}

static int odd_probe(void *self, enum skv_probe what, struct skv_storage_health *out,
		     struct skv_error *err)
{
	(void)what;
	(void)out;
	return odd_file(self, 0, 0, err);
}
static const struct skv_storage_ops odd = {
	.size = sizeof odd, .type = "odd", .edge = 4096, .open = odd_open, .close = odd_close,
	.create_file = odd_file, .check_file = odd_file, .remove_file = odd_remove,
	.probe = odd_probe,
};

static void every_failure_has_a_sentence(void **state)
{
	struct skv_storage_config c = config();
	struct skv_storage_health h;
	struct skv_error err;
	struct skv_storage *s = NULL;

	(void)state;
	answer = SKV_E_IO;
	assert_int_equal(skv_storage_open(&odd, &c, &s, &err), SKV_E_IO);
	assert_string_equal(err.message, "open: an input/output error");
	answer = SKV_OK;
	assert_int_equal(skv_storage_open(&odd, &c, &s, &err), SKV_OK);
	answer = SKV_E_CORRUPT;
	assert_int_equal(skv_storage_create_file(s, 0, LENGTH, &err), SKV_E_CORRUPT);
	assert_int_equal(err.status, SKV_E_CORRUPT);
	assert_int_equal(strncmp(err.message, "create_file: ", 13), 0);
	assert_int_equal(skv_storage_check_file(s, 0, LENGTH, NULL), SKV_E_CORRUPT);
	for (answer = 1; answer != 0; answer = answer == 1 ? -5000 : 0) { /* not in our list */
		assert_int_equal(skv_storage_probe(s, SKV_PROBE_WRITE, &h, &err), SKV_E_INTERNAL);
		assert_int_equal(skv_storage_remove_file(s, 0, &err), SKV_E_INTERNAL);
		assert_non_null(strstr(err.message, "the backend answered"));
	}
	skv_storage_close(s);
}

static void incomplete_backends_are_refused(void **state)
{
	struct skv_storage_config c = config();
	struct skv_storage_ops less = odd;
	struct skv_error err;
	struct skv_storage *s = NULL;

	(void)state;
	answer = SKV_OK;
	less.probe = NULL;
	assert_int_equal(skv_storage_open(&less, &c, &s, &err), SKV_E_UNSUPPORTED);
	less = odd;
	less.size = sizeof less - 8; /* compiled against an older table */
	assert_int_equal(skv_storage_open(&less, &c, &s, &err), SKV_E_UNSUPPORTED);
	assert_null(s);
}

static void bad_arguments_never_reach_the_backend(void **state)
{
	struct skv_storage_config c = config();
	struct skv_error err;
	struct skv_storage *s = NULL;

	(void)state;
	answer = SKV_OK;
	assert_int_equal(skv_storage_open(&odd, &c, &s, &err), SKV_OK);
	answer = SKV_E_IO;
	assert_int_equal(skv_storage_create_file(s, SKV_NO_FILE, LENGTH, &err), SKV_E_INVALID);
	assert_int_equal(skv_storage_remove_file(s, SKV_NO_FILE, &err), SKV_E_INVALID);
	assert_int_equal(skv_storage_create_file(s, 0, 0, &err), SKV_E_INVALID);
	/* only header, trailer */
	assert_int_equal(skv_storage_create_file(s, 0, 8192, &err), SKV_E_INVALID);
	assert_string_equal(err.field, "file_size");
	assert_int_equal(skv_storage_check_file(s, 0, (uint64_t)INT64_MAX + 1, &err),
			 SKV_E_INVALID);
	skv_storage_close(s);
}

static void open_survives_every_failed_allocation(void **state)
{
	struct skv_storage_config c = config();
	struct skv_storage *s = NULL;

	(void)state;
	answer = SKV_OK;
	for (unsigned n = 1;; n++) {
		int rc;

		skv_mem_fail_at(n);
		rc = skv_storage_open(&odd, &c, &s, NULL);
		if (skv_mem_count() < n)
			break;
		assert_int_equal(rc, SKV_E_NOMEM);
		assert_null(s);
	}
	skv_mem_fail_at(0);
	skv_storage_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(types_are_found_by_name),
		cmocka_unit_test(null_has_everything_and_nothing),
		cmocka_unit_test(bad_configurations_are_refused),
		cmocka_unit_test(every_failure_has_a_sentence),
		cmocka_unit_test(incomplete_backends_are_refused),
		cmocka_unit_test(bad_arguments_never_reach_the_backend),
		cmocka_unit_test(open_survives_every_failed_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
