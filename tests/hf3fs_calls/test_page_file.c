/*
 * test_page_file.c - where the clients' files lie, what is kept of them, what a look means.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "page_file.h"

static void assert_at(const char *prefix, const char *tenant, int64_t rank, const char *ns,
		      const char *dir, const char *path)
{
	const struct skv_hf3fs_api_files o =
		{ .prefix = prefix, .vllm_path = "/3fs/vllm/{tenant}" };
	struct page_file f;
	struct space s;

	space_init(&s, tenant, rank, ns, strlen(ns));
	assert_true(page_file_of(&o, &s, &f));
	assert_string_equal(f.dir, dir);
	assert_string_equal(f.path, path);
}

static void test_places(void **state)
{
	const struct skv_hf3fs_api_files none = { .prefix = "", .vllm_path = "/v" },
	some = { .prefix = "/p", .vllm_path = "" };
	char longest[SPACE_NS_MAX + 1];
	struct page_file f;
	struct space s;

	(void)state;
	assert_at("/3fs/hicache/m", "default", 0, "kv", "/3fs/hicache", "m.0.bin");
	assert_at("/3fs/hicache/m", "default", 3, "mamba", "/3fs/hicache", "m.3.bin.mamba");
	assert_at("/3fs/{tenant}", "Qwen/A", 7, "kv", "/3fs", "Qwen/A.7.bin");
	assert_at("/3fs/x{tenant}y/{tenant}", "t", 0, "kv", "/3fs", "xty/t.0.bin");
	assert_at("/{tenant}", "t", 0, "kv", "/", "t.0.bin");
	assert_at("/m", "t", 0, "kv", "/", "m.0.bin");
	/* below an fs-master's directory */
	assert_at("sub/{tenant}", "t", 0, "kv", "", "sub/t.0.bin");
	assert_at("sub/m", "t", 0, "kv", "", "sub/m.0.bin");
	assert_at("", "t", 2, "vllm", "/3fs/vllm", "t/hf3fs_vllm_data_file_2");
	assert_at("/m", "..", 0, "kv", "/", "m.0.bin");
	space_init(&s, "t", 0, "kv", 2);
	assert_false(page_file_of(&none, &s, &f));
	space_init(&s, "t", 0, "vllm", 4);
	assert_false(page_file_of(&some, &s, &f));
	space_init(&s, "t", 0, "a/b", 3);
	assert_false(page_file_of(&some, &s, &f));
	space_init(&s, "t", 0, "a\0b", 3);
	assert_false(page_file_of(&some, &s, &f));
	memset(longest, 'x', SPACE_NS_MAX);
	space_init(&s, "t", 0, longest, SPACE_NS_MAX);
	assert_false(page_file_of(&some, &s, &f));
}

static const struct skv_file_look file = { .fs = "fuse.hf3fs", .fs_id = 7, .dir = 2, .inode = 11,
					   .born_ns = 5, .length = 1000 };

static void test_kept(void **state)
{
	struct skv_buf text = { 0 };
	struct skv_file_look got = { .inode = 0 };

	(void)state;
	page_file_put(&file, "a b.0.bin", &text);
	assert_string_equal((char *)text.data, "1 fuse.hf3fs 7 2 11 5 1000 a b.0.bin");
	assert_true(page_file_get((char *)text.data, "a b.0.bin", &got));
	assert_true(strcmp(got.fs, file.fs) == 0 && got.fs_id == 7 && got.dir == 2 &&
		    got.inode == 11 && got.born_ns == 5 && got.length == 1000);
	assert_false(page_file_get((char *)text.data, "b.0.bin", &got));
	assert_false(page_file_get("2 x 1 1 1 1 1 p", "p", &got));
	assert_false(page_file_get("1 x 1 1", "p", &got));
	assert_false(page_file_get("", "", &got));
	skv_buf_destroy(&text);
}

#define SEEN(...)              \
	page_file_judge(&file, \
			&(struct skv_file_look){ .fs = "fuse.hf3fs", .fs_id = 7, __VA_ARGS__ })
#define OTHER_FS(...) \
	page_file_judge(&file, &(struct skv_file_look){ .fs = "ext4", .fs_id = 7, __VA_ARGS__ })

static void test_news(void **state)
{
	const struct skv_file_look nothing = { .inode = 0 };

	(void)state;
	assert_int_equal(page_file_judge(&nothing, &nothing), PAGE_FILE_ABSENT);
	assert_int_equal(page_file_judge(&nothing, &file), PAGE_FILE_LEARN);
	assert_int_equal(page_file_judge(&file, &file), PAGE_FILE_SAME);
	assert_int_equal(SEEN(.dir = 2), PAGE_FILE_GONE);
	/* another directory has that path now */
	assert_int_equal(SEEN(.dir = 3), PAGE_FILE_ABSENT);
	assert_int_equal(OTHER_FS(.dir = 2), PAGE_FILE_ABSENT);
	assert_int_equal(SEEN(.dir = 2, .inode = 12, .born_ns = 5, .length = 1000),
			 PAGE_FILE_REPLACED);
	assert_int_equal(SEEN(.dir = 2, .inode = 11, .born_ns = 6, .length = 1000),
			 PAGE_FILE_REPLACED);
	assert_int_equal(SEEN(.dir = 2, .inode = 11, .length = 1000), PAGE_FILE_SAME);
	assert_int_equal(SEEN(.dir = 2, .inode = 11, .born_ns = 5, .length = 999),
			 PAGE_FILE_SHRANK);
	assert_int_equal(SEEN(.dir = 2, .inode = 11, .born_ns = 5, .length = 1001),
			 PAGE_FILE_LEARN);
	assert_int_equal(SEEN(.dir = 3, .inode = 11, .born_ns = 5, .length = 1000),
			 PAGE_FILE_LEARN);
	assert_int_equal(SEEN(.dir = 3, .inode = 12, .born_ns = 5, .length = 1000),
			 PAGE_FILE_REPLACED);
	assert_int_equal(OTHER_FS(.dir = 2, .inode = 12, .length = 1000), PAGE_FILE_ELSEWHERE);
	/* the mount has another number */
	assert_int_equal(OTHER_FS(.dir = 2, .inode = 11, .length = 1000), PAGE_FILE_LEARN);
}

static void test_another_file_system_must_last(void **state)
{
	uint64_t since = 0;

	(void)state;
	assert_int_equal(page_file_settle(PAGE_FILE_ELSEWHERE, &since, 1000), PAGE_FILE_ELSEWHERE);
	assert_int_equal(
		page_file_settle(PAGE_FILE_ELSEWHERE, &since, 1000 + PAGE_FILE_AWAY_MS - 1),
		PAGE_FILE_ELSEWHERE);
	assert_int_equal(page_file_settle(PAGE_FILE_SAME, &since, 1000 + PAGE_FILE_AWAY_MS),
			 PAGE_FILE_SAME);
	/* from the begin */
	assert_int_equal(page_file_settle(PAGE_FILE_ELSEWHERE, &since, 200000),
			 PAGE_FILE_ELSEWHERE);
	assert_int_equal(page_file_settle(PAGE_FILE_ELSEWHERE, &since, 200000 + PAGE_FILE_AWAY_MS),
			 PAGE_FILE_REPLACED);
	assert_int_equal(since, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_kept),
		cmocka_unit_test(test_news),
		cmocka_unit_test(test_another_file_system_must_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
