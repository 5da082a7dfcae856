/*
 * test_open.c - which directories a `file` storage accepts as its root, which it refuses and with
 * what sentence, and that it never touches what is not its own. No mounts, any user.
 */
#include "bench_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void makes_root_and_marker(void **state)
{
	struct bench *b = *state;
	struct skv_superblock sb;
	uint8_t raw[SKV_SUPERBLOCK_SIZE + 1];
	FILE *f;

	skv_storage_close(bench_open(b));
	f = fopen(bench_path(b, SKV_STORAGE_MARKER), "rb");
	assert_non_null(f);
	assert_int_equal(fread(raw, 1, sizeof raw, f), SKV_SUPERBLOCK_SIZE);
	fclose(f);
	assert_int_equal(skv_superblock_decode(raw, &sb, &b->err), SKV_OK);
	assert_memory_equal(sb.uuid, b->config.uuid, 16);
	assert_int_equal(sb.file, SKV_NO_FILE);
	assert_int_equal(sb.length, 0);
	assert_int_equal(sb.unit, UNIT);
	assert_int_equal(sb.header, b->ops->edge);
	assert_int_equal(sb.trailer, b->ops->edge);
	assert_true(sb.created_ms > 0);
}

static void opens_again_without_a_change(void **state)
{
	struct bench *b = *state;
	struct stat before, after;

	skv_storage_close(bench_open(b));
	assert_int_equal(stat(bench_path(b, SKV_STORAGE_MARKER), &before), 0);
	b->config.may_create = false;
	skv_storage_close(bench_open(b));
	b->config.may_create = true;
	skv_storage_close(bench_open(b));
	assert_int_equal(stat(bench_path(b, SKV_STORAGE_MARKER), &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	assert_int_equal(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
	assert_int_equal(bench_entries(b), 2); /* marker and probe file */
}

static void accepts_an_empty_directory_and_lost_found(void **state)
{
	struct bench *b = *state;

	assert_int_equal(mkdir(b->root, 0700), 0);
	assert_int_equal(mkdir(bench_path(b, "lost+found"), 0700), 0);
	skv_storage_close(bench_open(b));
	assert_true(bench_has(b, SKV_STORAGE_MARKER));
}

static void accepts_a_leftover_of_its_own_crash(void **state)
{
	struct bench *b = *state;

	assert_int_equal(mkdir(b->root, 0700), 0);
	bench_write(b, ".slabkv-tmp-" SKV_STORAGE_MARKER, "half", 4);
	skv_storage_close(bench_open(b));
	assert_false(bench_has(b, ".slabkv-tmp-" SKV_STORAGE_MARKER));
}

static void refuses_foreign_files(void **state)
{
	struct bench *b = *state;
	char text[8] = { 0 };
	FILE *f;

	assert_int_equal(mkdir(b->root, 0700), 0);
	bench_write(b, "thesis.tex", "my work", 7);
	bench_refused(b, SKV_E_FOREIGN, "not empty (it holds 'thesis.tex') and has no marker");
	assert_string_equal(b->err.field, "root");
	assert_int_equal(bench_entries(b), 1);
	f = fopen(bench_path(b, "thesis.tex"), "rb");
	assert_non_null(f);
	assert_int_equal(fread(text, 1, 7, f), 7);
	fclose(f);
	assert_string_equal(text, "my work");
}

/* Slab files whose marker somebody removed are refused too, whoever asks. */
static void refuses_slab_files_without_marker(void **state)
{
	struct bench *b = *state;
	struct skv_storage *s = bench_open(b);

	assert_int_equal(skv_storage_create_file(s, 0, LENGTH, &b->err), SKV_OK);
	skv_storage_close(s);
	assert_int_equal(unlink(bench_path(b, SKV_STORAGE_MARKER)), 0);
	bench_refused(b, SKV_E_FOREIGN, "has no marker");
	b->config.may_create = false;
	bench_refused(b, SKV_E_UNAVAILABLE, "lost its marker");
	assert_true(bench_has(b, "slab-00000000.kvs"));
}

static void refuses_another_storages_root(void **state)
{
	struct bench *b = *state;

	skv_storage_close(bench_open(b));
	b->config.uuid[0] = 9;
	bench_refused(
		b, SKV_E_FOREIGN,
		"belongs to storage 01020304-0000-0000-0000-000000000000, this one is 09020304-");
	b->config.may_create = false;
	bench_refused(b, SKV_E_FOREIGN, "wrong mount");
	b->config.uuid[0] = 1;
	skv_storage_close(bench_open(b));
}

/* Who leaves takes its marker, unless there is anything else: then another
 * storage may be made there. */
static void leaves_a_directory_that_holds_nothing_else(void **state)
{
	const struct skv_storage_owner o = { .incarnation = 7, .nonce = { 1 } };
	struct bench *b = *state;
	struct skv_storage_health h;
	struct skv_storage *s = bench_open(b);

	assert_int_equal(skv_storage_probe(s, &h, &b->err), SKV_OK);
	assert_int_equal(skv_storage_create_file(s, 3, LENGTH, &b->err), SKV_OK);
	assert_int_equal(skv_storage_claim(s, &o, &b->err), SKV_OK);
	for (int n = 3; n > 0; n--) { /* a slab file, an owner, somebody's */
		assert_int_equal(skv_storage_leave(s, &b->err), SKV_E_IN_USE);
		assert_non_null(strstr(b->err.message, "still holds"));
		assert_true(bench_has(b, SKV_STORAGE_MARKER));
		if (n == 3)
			assert_int_equal(skv_storage_remove_file(s, 3, &b->err), SKV_OK);
		else if (n == 2)
			assert_int_equal(skv_storage_disown(s, &o, &b->err), SKV_OK);
		if (n == 2)
			bench_write(b, "thesis.tex", "my work", 7);
	}
	assert_int_equal(unlink(bench_path(b, "thesis.tex")), 0);
	assert_int_equal(skv_storage_leave(s, &b->err), SKV_OK);
	assert_int_equal(bench_entries(b), 0);
	assert_int_equal(skv_storage_leave(s, &b->err), SKV_E_UNAVAILABLE);
	skv_storage_close(s);
	b->config.may_create = false;
	bench_refused(b, SKV_E_UNAVAILABLE, "lost its marker");
	b->config.may_create = true;
	b->config.uuid[0] = 9;
	skv_storage_close(bench_open(b));
	b->config.uuid[0] = 1;
	bench_refused(b, SKV_E_FOREIGN, "belongs to storage");
}

static void refuses_a_missing_root_that_must_exist(void **state)
{
	struct bench *b = *state;

	b->config.may_create = false;
	bench_refused(b, SKV_E_UNAVAILABLE, "does not exist: is the file system mounted?");
	assert_int_equal(bench_entries(b), -1);
	assert_int_equal(mkdir(b->root, 0700), 0);
	bench_refused(b, SKV_E_UNAVAILABLE, "is the file system mounted?");
	assert_int_equal(bench_entries(b), 0);
}

static void refuses_a_missing_parent(void **state)
{
	struct bench *b = *state;
	char deep[128];

	snprintf(deep, sizeof deep, "%s/not/there", b->top);
	b->config.root = deep;
	bench_refused(b, SKV_E_UNAVAILABLE, "the parent of the root directory does not exist");
}

static void refuses_what_is_no_directory(void **state)
{
	struct bench *b = *state;
	int fd = open(b->root, O_CREAT | O_WRONLY, 0600);

	assert_true(fd >= 0);
	close(fd);
	bench_refused(b, SKV_E_FOREIGN, "not a directory");
}

static void refuses_odd_paths(void **state)
{
	struct bench *b = *state;

	b->config.root = "relative/path";
	bench_refused(b, SKV_E_INVALID, "absolute path");
	assert_string_equal(b->err.field, "root");
	b->config.root = "";
	bench_refused(b, SKV_E_INVALID, "absolute path");
	b->config.root = NULL;
	bench_refused(b, SKV_E_INVALID, "absolute path");
}

static void accepts_a_trailing_slash(void **state)
{
	struct bench *b = *state;
	char slashes[128];

	snprintf(slashes, sizeof slashes, "%s//", b->root);
	b->config.root = slashes;
	skv_storage_close(bench_open(b));
	assert_true(bench_has(b, SKV_STORAGE_MARKER));
}

static void refuses_a_damaged_marker(void **state)
{
	struct bench *b = *state;

	skv_storage_close(bench_open(b));
	bench_flip(b, SKV_STORAGE_MARKER, 16);
	bench_refused(b, SKV_E_CORRUPT, "checksum is wrong");
	bench_flip(b, SKV_STORAGE_MARKER, 16);
	assert_int_equal(truncate(bench_path(b, SKV_STORAGE_MARKER), 4095), 0);
	bench_refused(b, SKV_E_CORRUPT, "too short");
	assert_int_equal(truncate(bench_path(b, SKV_STORAGE_MARKER), 0), 0);
	bench_refused(b, SKV_E_CORRUPT, "too short");
}

static void refuses_a_marker_of_another_program(void **state)
{
	struct bench *b = *state;
	static const char other[SKV_SUPERBLOCK_SIZE] = "something else";

	assert_int_equal(mkdir(b->root, 0700), 0);
	bench_write(b, SKV_STORAGE_MARKER, other, sizeof other);
	bench_refused(b, SKV_E_FOREIGN, "not a slabkv file");
}

/* Its marker and its slab files have other names, so it is a directory of somebody else
 * that holds files like ours. */
static void refuses_a_directory_of_before_the_name(void **state)
{
	struct bench *b = *state;
	static const char other[SKV_SUPERBLOCK_SIZE] = "KVBSLAB\n";

	assert_int_equal(mkdir(b->root, 0700), 0);
	bench_write(b, "storage", other, sizeof other);
	bench_refused(b, SKV_E_FOREIGN, "before the product was named slabkv");
}

static void refuses_a_slab_superblock_as_marker(void **state)
{
	struct bench *b = *state;
	struct skv_superblock sb = { .file = 3, .uuid = { 1, 2, 3, 4 }, .length = LENGTH,
				     .unit = UNIT };
	uint8_t raw[SKV_SUPERBLOCK_SIZE];

	skv_superblock_encode(&sb, raw);
	assert_int_equal(mkdir(b->root, 0700), 0);
	bench_write(b, SKV_STORAGE_MARKER, raw, sizeof raw);
	bench_refused(b, SKV_E_FOREIGN, "superblock of slab file 3");
}

static void refuses_another_unit(void **state)
{
	struct bench *b = *state;

	skv_storage_close(bench_open(b));
	b->config.unit = 2 * UNIT;
	bench_refused(b, SKV_E_CORRUPT,
		      "geometry (unit 65536) differs from the registry's (unit 131072)");
}

static void refuses_a_marker_that_is_no_file(void **state)
{
	struct bench *b = *state;
	char copy[128];

	skv_storage_close(bench_open(b));
	snprintf(copy, sizeof copy, "%s/marker", b->top);
	assert_int_equal(rename(bench_path(b, SKV_STORAGE_MARKER), copy), 0);
	assert_int_equal(symlink(copy, bench_path(b, SKV_STORAGE_MARKER)), 0);
	bench_refused(b, SKV_E_FOREIGN, "symbolic link: refused");
	assert_int_equal(unlink(bench_path(b, SKV_STORAGE_MARKER)), 0);
	assert_int_equal(mkfifo(bench_path(b, SKV_STORAGE_MARKER), 0600), 0);
	bench_refused(b, SKV_E_FOREIGN, "not a regular file");
	assert_int_equal(unlink(bench_path(b, SKV_STORAGE_MARKER)), 0);
	assert_int_equal(mkdir(bench_path(b, SKV_STORAGE_MARKER), 0700), 0);
	bench_refused(b, SKV_E_FOREIGN, "not a regular file");
}

/* The probe file is opened for writing: it must not lead elsewhere. */
static void never_writes_through_a_link(void **state)
{
	struct bench *b = *state;
	char victim[128];
	struct stat st;

	skv_storage_close(bench_open(b));
	snprintf(victim, sizeof victim, "%s/victim", b->top);
	assert_int_equal(close(open(victim, O_CREAT | O_WRONLY, 0600)), 0);
	assert_int_equal(unlink(bench_path(b, ".slabkv-probe")), 0);
	assert_int_equal(symlink(victim, bench_path(b, ".slabkv-probe")), 0);
	bench_refused(b, SKV_E_FOREIGN, "cannot write into the root");
	assert_int_equal(stat(victim, &st), 0);
	assert_int_equal(st.st_size, 0);
}

static void a_link_to_the_root_is_the_operators_choice(void **state)
{
	struct bench *b = *state;
	char link[128];

	assert_int_equal(mkdir(b->root, 0700), 0);
	snprintf(link, sizeof link, "%s/link", b->top);
	assert_int_equal(symlink(b->root, link), 0);
	b->config.root = link;
	skv_storage_close(bench_open(b));
	assert_true(bench_has(b, SKV_STORAGE_MARKER));
}

static void probe_notices_a_root_that_goes_and_comes(void **state)
{
	struct bench *b = *state;
	struct skv_storage *s = bench_open(b);
	struct skv_storage_health h = { .free_bytes = 7, .total_bytes = 7 };
	char aside[128];

	assert_int_equal(skv_storage_create_file(s, 0, LENGTH, &b->err), SKV_OK);
	assert_int_equal(skv_storage_probe(s, &h, &b->err), SKV_OK);
	assert_true(h.total_bytes > h.free_bytes);
	snprintf(aside, sizeof aside, "%s/aside", b->top);
	assert_int_equal(rename(b->root, aside), 0);

	h = (struct skv_storage_health){ .free_bytes = 7, .total_bytes = 7 };
	assert_int_equal(skv_storage_probe(s, &h, &b->err), SKV_E_UNAVAILABLE);
	bench_says(b, "is the file system mounted?");
	assert_int_equal(h.free_bytes, 7); /* outputs are set on success only */
	assert_int_equal(skv_storage_check_file(s, 0, LENGTH, &b->err), SKV_E_UNAVAILABLE);
	assert_int_equal(skv_storage_create_file(s, 1, LENGTH, &b->err), SKV_E_UNAVAILABLE);
	assert_int_equal(skv_storage_remove_file(s, 0, &b->err), SKV_E_UNAVAILABLE);

	/* The empty mount point below an unmounted file system. */
	assert_int_equal(mkdir(b->root, 0700), 0);
	assert_int_equal(skv_storage_probe(s, &h, &b->err), SKV_E_UNAVAILABLE);
	assert_int_equal(skv_storage_create_file(s, 1, LENGTH, &b->err), SKV_E_UNAVAILABLE);
	assert_int_equal(bench_entries(b), 0);

	assert_int_equal(rmdir(b->root), 0);
	assert_int_equal(rename(aside, b->root), 0);
	assert_int_equal(skv_storage_probe(s, &h, &b->err), SKV_OK);
	assert_int_equal(skv_storage_check_file(s, 0, LENGTH, &b->err), SKV_OK);
	skv_storage_close(s);
}

static void probe_notices_another_storage_in_its_place(void **state)
{
	struct bench *b = *state;
	struct skv_storage *s = bench_open(b);
	struct skv_storage_health h;
	char aside[128];

	snprintf(aside, sizeof aside, "%s/aside", b->top);
	assert_int_equal(rename(b->root, aside), 0);
	b->config.uuid[0] = 9;
	skv_storage_close(bench_open(b));
	assert_int_equal(skv_storage_probe(s, &h, &b->err), SKV_E_FOREIGN);
	bench_says(b, "wrong mount");
	skv_storage_close(s);
}

int main(void)
{
#define ALL(T) \
		T(makes_root_and_marker), \
		T(opens_again_without_a_change), \
		T(accepts_an_empty_directory_and_lost_found), \
		T(accepts_a_leftover_of_its_own_crash), \
		T(refuses_foreign_files), \
		T(refuses_slab_files_without_marker), \
		T(refuses_another_storages_root), \
		T(leaves_a_directory_that_holds_nothing_else), \
		T(refuses_a_missing_root_that_must_exist), \
		T(refuses_a_missing_parent), \
		T(refuses_what_is_no_directory), \
		T(refuses_odd_paths), \
		T(accepts_a_trailing_slash), \
		T(refuses_a_damaged_marker), \
		T(refuses_a_marker_of_another_program), \
		T(refuses_a_directory_of_before_the_name), \
		T(refuses_a_slab_superblock_as_marker), \
		T(refuses_another_unit), \
		T(refuses_a_marker_that_is_no_file), \
		T(never_writes_through_a_link), \
		T(a_link_to_the_root_is_the_operators_choice), \
		T(probe_notices_a_root_that_goes_and_comes), \
		T(probe_notices_another_storage_in_its_place)
#define T(f) cmocka_unit_test_setup_teardown(f, bench_setup, bench_teardown)
#define T3FS(f) cmocka_unit_test_setup_teardown(f, bench_setup_hf3fs, bench_teardown)
	const struct CMUnitTest file[] = { ALL(T) }, hf3fs[] = { ALL(T3FS) };
	int failed = cmocka_run_group_tests_name("file", file, NULL, NULL);

	return failed + cmocka_run_group_tests_name("hf3fs", hf3fs, NULL, NULL);
}
