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
#include <time.h>
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
	assert_int_equal(bench_has(b, SKV_STORAGE_LINK), b->ops == &skv_storage_file);
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

/* Slab files of another storage whose marker somebody removed are refused, whoever asks. */
static void refuses_slab_files_without_marker(void **state)
{
	struct bench *b = *state;
	struct skv_storage *s = bench_open(b);

	assert_int_equal(skv_storage_create_file(s, 0, LENGTH, &b->err), SKV_OK);
	skv_storage_close(s);
	assert_int_equal(unlink(bench_path(b, SKV_STORAGE_MARKER)), 0);
	b->config.uuid[0] ^= 1;
	bench_refused(b, SKV_E_FOREIGN, "has no marker");
	b->config.may_create = false;
	bench_refused(b, SKV_E_UNAVAILABLE, "lost its marker");
	assert_true(bench_has(b, "slab-00000000.kvs"));
	assert_false(bench_has(b, SKV_STORAGE_MARKER));
}

/* ---- what happens between two looks ---------------------------------------------------------- */

/* Called in place of nanosleep(2) and before renameat(2), by which the storage waits between two
 * looks at a damaged marker and takes it away (CMakeLists.txt). */
static void (*meanwhile)(struct bench *b);
static bool at_rename;
static struct bench *bench;

static void happen(bool renames)
{
	void (*f)(struct bench *b) = renames == at_rename ? meanwhile : NULL;

	if (f) {
		meanwhile = NULL;
		f(bench);
	}
}

int __wrap_nanosleep(const struct timespec *t, struct timespec *rest);
int __wrap_nanosleep(const struct timespec *t, struct timespec *rest)
{
	(void)t;
	(void)rest;
	happen(false);
	return 0;
}

int __real_renameat(int from_dir, const char *from, int to_dir, const char *to);
int __wrap_renameat(int from_dir, const char *from, int to_dir, const char *to);
int __wrap_renameat(int from_dir, const char *from, int to_dir, const char *to)
{
	happen(true);
	return __real_renameat(from_dir, from, to_dir, to);
}

/* ---- a damaged marker ------------------------------------------------------------------------ */

enum damage { MISSING, EMPTY, CUT, FLIPPED, MAGIC, ZEROS, DAMAGES };

static void damage_marker(struct bench *b, enum damage how)
{
	static const uint8_t zeros[SKV_SUPERBLOCK_SIZE];

	switch (how) {
	case MISSING:
		assert_int_equal(unlink(bench_path(b, SKV_STORAGE_MARKER)), 0);
		break;
	case EMPTY:
	case CUT:
		assert_int_equal(truncate(bench_path(b, SKV_STORAGE_MARKER),
					  how == CUT ? SKV_SUPERBLOCK_SIZE - 1 : 0),
				 0);
		break;
	case FLIPPED:
	case MAGIC:
		bench_flip(b, SKV_STORAGE_MARKER, how == MAGIC ? 0 : 16);
		break;
	case ZEROS:
		bench_write(b, SKV_STORAGE_MARKER, zeros, sizeof zeros);
		break;
	case DAMAGES:
		break;
	}
}

/* By the storage while it is open, by its next open, and by one that may create. */
static void repair(struct bench *b, enum damage how)
{
	struct skv_storage_health h;
	struct skv_superblock sb;
	uint8_t raw[SKV_SUPERBLOCK_SIZE];
	struct skv_storage *s = bench_open(b);
	FILE *f;

	damage_marker(b, how);
	assert_int_equal(skv_storage_probe(s, SKV_PROBE_WRITE, &h, &b->err), SKV_OK);
	skv_storage_close(s);
	for (int may = 0; may <= 1; may++) {
		damage_marker(b, how);
		b->config.may_create = may;
		skv_storage_close(bench_open(b));
		f = fopen(bench_path(b, SKV_STORAGE_MARKER), "rb");
		assert_non_null(f);
		assert_int_equal(fread(raw, 1, sizeof raw, f), sizeof raw);
		fclose(f);
		assert_int_equal(skv_superblock_decode(raw, &sb, &b->err), SKV_OK);
		assert_memory_equal(sb.uuid, b->config.uuid, sizeof sb.uuid);
		assert_int_equal(sb.file, SKV_NO_FILE);
	}
}

static void a_slab_file_repairs_the_marker(void **state)
{
	struct bench *b = *state;
	struct skv_storage *s = bench_open(b);

	assert_int_equal(skv_storage_create_file(s, 7, LENGTH, &b->err), SKV_OK);
	skv_storage_close(s);
	for (enum damage how = 0; how < DAMAGES; how++)
		repair(b, how);
}

static void an_owner_file_repairs_the_marker(void **state)
{
	const struct skv_storage_owner o = { .incarnation = 3, .nonce = { 1 } };
	struct bench *b = *state;
	struct skv_storage *s = bench_open(b);

	assert_int_equal(skv_storage_claim(s, &o, &b->err), SKV_OK);
	skv_storage_close(s);
	for (enum damage how = 0; how < DAMAGES; how++)
		repair(b, how);
}

static void foreign_marker(struct bench *b, uint8_t raw[SKV_SUPERBLOCK_SIZE])
{
	struct skv_superblock sb = { .file = SKV_NO_FILE, .uuid = { 9 }, .unit = UNIT,
				     .header = b->ops->edge, .trailer = b->ops->edge };

	skv_superblock_encode(&sb, raw);
}

/* Whole, and another storage's: that it holds files of ours as well proves nothing. */
static void another_storages_marker_stays(void **state)
{
	struct bench *b = *state;
	struct skv_storage *s = bench_open(b);
	uint8_t raw[SKV_SUPERBLOCK_SIZE], after[SKV_SUPERBLOCK_SIZE];
	FILE *f;

	assert_int_equal(skv_storage_create_file(s, 0, LENGTH, &b->err), SKV_OK);
	skv_storage_close(s);
	foreign_marker(b, raw);
	bench_write(b, SKV_STORAGE_MARKER, raw, sizeof raw);
	bench_refused(b, SKV_E_FOREIGN, "wrong mount");
	f = fopen(bench_path(b, SKV_STORAGE_MARKER), "rb");
	assert_non_null(f);
	assert_int_equal(fread(after, 1, sizeof after, f), sizeof after);
	fclose(f);
	assert_memory_equal(raw, after, sizeof raw);
}

/* Copies another storage's marker here, as cp does: the same file, or as rsync does: a new one. */
static void copy_foreign(struct bench *b)
{
	uint8_t raw[SKV_SUPERBLOCK_SIZE];

	foreign_marker(b, raw);
	if (at_rename)
		assert_int_equal(unlink(bench_path(b, SKV_STORAGE_MARKER)), 0);
	bench_write(b, SKV_STORAGE_MARKER, raw, sizeof raw);
}

static void copy_more(struct bench *b)
{
	bench_write(b, SKV_STORAGE_MARKER, "part", 4);
}

/* A marker that changes between two looks, or after them, is being written: it stays. */
static void a_marker_that_is_being_copied_stays(void **state)
{
	struct bench *b = bench = *state;
	struct skv_storage *s = bench_open(b);

	assert_int_equal(skv_storage_create_file(s, 0, LENGTH, &b->err), SKV_OK);
	skv_storage_close(s);
	for (int renames = 0; renames <= 1; renames++) {
		damage_marker(b, EMPTY);
		at_rename = renames;
		meanwhile = copy_foreign;
		bench_refused(b, SKV_E_FOREIGN, "wrong mount");
		assert_null(meanwhile);
		bench_refused(b, SKV_E_FOREIGN, "wrong mount");
	}
	at_rename = false;
	damage_marker(b, EMPTY);
	meanwhile = copy_more;
	bench_refused(b, SKV_E_CORRUPT, "too short");
	skv_storage_close(bench_open(b)); /* the file is unchanged */
}

/* A slab file that is damaged itself, or cut, proves nothing. */
static void a_damaged_slab_file_proves_nothing(void **state)
{
	struct bench *b = *state;
	struct skv_storage *s = bench_open(b);

	assert_int_equal(skv_storage_create_file(s, 0, LENGTH, &b->err), SKV_OK);
	skv_storage_close(s);
	damage_marker(b, FLIPPED);
	bench_flip(b, "slab-00000000.kvs", 40);
	bench_refused(b, SKV_E_CORRUPT, "checksum is wrong");
	bench_flip(b, "slab-00000000.kvs", 40);
	assert_int_equal(truncate(bench_path(b, "slab-00000000.kvs"), LENGTH / 2), 0);
	bench_refused(b, SKV_E_CORRUPT, "checksum is wrong");
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

/* A storage that leaves takes its marker, unless the directory holds anything else: then another
 * storage may be made there. */
static void leaves_a_directory_that_holds_nothing_else(void **state)
{
	const struct skv_storage_owner o = { .incarnation = 7, .nonce = { 1 } };
	struct bench *b = *state;
	struct skv_storage_health h;
	struct skv_storage *s = bench_open(b);

	assert_int_equal(skv_storage_probe(s, SKV_PROBE_WRITE, &h, &b->err), SKV_OK);
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
	unlink(bench_path(b, SKV_STORAGE_LINK));
	bench_write(b, SKV_STORAGE_LINK, "my work", 7);
	assert_int_equal(skv_storage_leave(s, &b->err), SKV_E_IN_USE);
	assert_true(bench_has(b, SKV_STORAGE_LINK) && bench_has(b, SKV_STORAGE_MARKER));
	assert_int_equal(unlink(bench_path(b, SKV_STORAGE_LINK)), 0);
	assert_int_equal(symlink(".", bench_path(b, SKV_STORAGE_LINK)), 0);
	assert_int_equal(skv_storage_leave(s, &b->err), SKV_OK);
	assert_int_equal(bench_entries(b), 0);
	assert_false(bench_has(b, SKV_STORAGE_LINK));
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

/* The link is made again, and nothing else may have its name. */
static void makes_the_link_to_itself(void **state)
{
	struct bench *b = *state;
	struct skv_storage_health h;
	struct skv_storage *s = bench_open(b);
	struct stat root, through;

	if (b->ops != &skv_storage_file) {
		skv_storage_close(s);
		return;
	}
	assert_int_equal(unlink(bench_path(b, SKV_STORAGE_LINK)), 0);
	assert_int_equal(skv_storage_probe(s, SKV_PROBE_WRITE, &h, &b->err), SKV_OK);
	assert_int_equal(stat(b->root, &root), 0);
	assert_int_equal(stat(bench_path(b, SKV_STORAGE_LINK), &through), 0);
	assert_int_equal(root.st_ino, through.st_ino);
	assert_int_equal(unlink(bench_path(b, SKV_STORAGE_LINK)), 0);
	assert_int_equal(symlink("/", bench_path(b, SKV_STORAGE_LINK)), 0);
	assert_int_equal(skv_storage_probe(s, SKV_PROBE_WRITE, &h, &b->err), SKV_E_FOREIGN);
	bench_says(b, "must be a symbolic link to '.'");
	assert_int_equal(unlink(bench_path(b, SKV_STORAGE_LINK)), 0);
	assert_int_equal(mkdir(bench_path(b, SKV_STORAGE_LINK), 0700), 0);
	skv_storage_close(s);
	bench_refused(b, SKV_E_FOREIGN, "must be a symbolic link to '.'");
}

/* A link to the directory itself is left over from a storage; anything else of that name is not. */
static void accepts_the_link_of_a_former_storage(void **state)
{
	struct bench *b = *state;

	assert_int_equal(mkdir(b->root, 0700), 0);
	bench_write(b, SKV_STORAGE_LINK, "my work", 7);
	bench_refused(b, SKV_E_FOREIGN, "it holds 'mounted'");
	assert_int_equal(unlink(bench_path(b, SKV_STORAGE_LINK)), 0);
	assert_int_equal(symlink("./", bench_path(b, SKV_STORAGE_LINK)), 0);
	bench_refused(b, SKV_E_FOREIGN, "it holds 'mounted'");
	assert_int_equal(unlink(bench_path(b, SKV_STORAGE_LINK)), 0);
	assert_int_equal(symlink(".", bench_path(b, SKV_STORAGE_LINK)), 0);
	skv_storage_close(bench_open(b));
	assert_int_equal(bench_entries(b), 2); /* marker and probe file */
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
	assert_int_equal(skv_storage_probe(s, SKV_PROBE_WRITE, &h, &b->err), SKV_OK);
	assert_true(h.total_bytes > h.free_bytes);
	snprintf(aside, sizeof aside, "%s/aside", b->top);
	assert_int_equal(rename(b->root, aside), 0);

	h = (struct skv_storage_health){ .free_bytes = 7, .total_bytes = 7 };
	assert_int_equal(skv_storage_probe(s, SKV_PROBE_WRITE, &h, &b->err), SKV_E_UNAVAILABLE);
	bench_says(b, "is the file system mounted?");
	assert_int_equal(h.free_bytes, 7); /* outputs are set on success only */
	assert_int_equal(skv_storage_check_file(s, 0, LENGTH, &b->err), SKV_E_UNAVAILABLE);
	assert_int_equal(skv_storage_create_file(s, 1, LENGTH, &b->err), SKV_E_UNAVAILABLE);
	assert_int_equal(skv_storage_remove_file(s, 0, &b->err), SKV_E_UNAVAILABLE);

	/* The empty mount point below an unmounted file system. */
	assert_int_equal(mkdir(b->root, 0700), 0);
	assert_int_equal(skv_storage_probe(s, SKV_PROBE_WRITE, &h, &b->err), SKV_E_UNAVAILABLE);
	assert_int_equal(skv_storage_create_file(s, 1, LENGTH, &b->err), SKV_E_UNAVAILABLE);
	assert_int_equal(bench_entries(b), 0);

	assert_int_equal(rmdir(b->root), 0);
	assert_int_equal(rename(aside, b->root), 0);
	assert_int_equal(skv_storage_probe(s, SKV_PROBE_WRITE, &h, &b->err), SKV_OK);
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
	assert_int_equal(skv_storage_probe(s, SKV_PROBE_WRITE, &h, &b->err), SKV_E_FOREIGN);
	bench_says(b, "wrong mount");
	skv_storage_close(s);
}

/* ---- looks at what clients wrote ------------------------------------------------------------- */

static int look(struct bench *b, uint64_t at, struct skv_file_bytes *out)
{
	return skv_file_look_at(b->root, "slab-1", at, 4096, out, &b->err);
}

static int glance(struct bench *b, uint64_t at, struct skv_file_bytes *out)
{
	return skv_file_glance_at(b->root, "slab-1", at, 4096, out, &b->err);
}

/* A glance reports what a look does, or that the bytes are not in memory; it never waits for a
 * disk. Neither changes the time of access. */
static void a_glance_sees_what_a_look_does(void **state)
{
	struct bench *b = *state;
	struct skv_file_bytes a, g;
	const struct timespec never_read[2] = { { .tv_sec = 0 }, { .tv_nsec = UTIME_OMIT } };
	char bytes[8192] = { 0 };
	struct stat st;
	int fd;

	assert_int_equal(mkdir(b->root, 0700), 0);
	assert_int_equal(glance(b, 0, &g), SKV_E_UNAVAILABLE);
	bytes[4096 + 17] = 1;
	bench_write(b, "slab-1", bytes, sizeof bytes);
	assert_int_equal(utimensat(AT_FDCWD, bench_path(b, "slab-1"), never_read, 0), 0);
	for (uint64_t at = 0; at <= sizeof bytes; at += 4096) {
		assert_int_equal(look(b, at, &a), SKV_OK);
		assert_int_equal(a.zero, at != 4096);
		if (!a.local) {
			print_message("skipped: no local file system below %s\n", b->top);
			skip();
		}
		assert_int_equal(glance(b, at, &g), SKV_OK);
		assert_true(g.zero == a.zero && g.changed_ns == a.changed_ns && g.local);
	}
	assert_int_equal(stat(bench_path(b, "slab-1"), &st), 0);
	assert_true(st.st_atim.tv_sec == 0);
	fd = open(bench_path(b, "slab-1"), O_RDONLY);
	assert_true(fd >= 0 && fsync(fd) == 0);
	assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
	close(fd);
	if (glance(b, 4096, &g) == SKV_OK) /* tmpfs */
		assert_false(g.zero);
	else
		assert_int_equal(b->err.status, SKV_E_UNAVAILABLE);
	assert_int_equal(look(b, 4096, &a), SKV_OK);
	assert_false(a.zero);
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
		T(a_slab_file_repairs_the_marker), \
		T(an_owner_file_repairs_the_marker), \
		T(another_storages_marker_stays), \
		T(a_marker_that_is_being_copied_stays), \
		T(a_damaged_slab_file_proves_nothing), \
		T(refuses_another_storages_root), \
		T(leaves_a_directory_that_holds_nothing_else), \
		T(refuses_a_missing_root_that_must_exist), \
		T(refuses_a_missing_parent), \
		T(refuses_what_is_no_directory), \
		T(refuses_odd_paths), \
		T(accepts_a_trailing_slash), \
		T(refuses_a_damaged_marker), \
		T(refuses_a_marker_of_another_program), \
		T(refuses_a_slab_superblock_as_marker), \
		T(refuses_another_unit), \
		T(refuses_a_marker_that_is_no_file), \
		T(makes_the_link_to_itself), \
		T(accepts_the_link_of_a_former_storage), \
		T(never_writes_through_a_link), \
		T(a_link_to_the_root_is_the_operators_choice), \
		T(probe_notices_a_root_that_goes_and_comes), \
		T(probe_notices_another_storage_in_its_place), \
		T(a_glance_sees_what_a_look_does)
#define T(f) cmocka_unit_test_setup_teardown(f, bench_setup, bench_teardown)
#define T3FS(f) cmocka_unit_test_setup_teardown(f, bench_setup_hf3fs, bench_teardown)
	const struct CMUnitTest file[] = { ALL(T) }, hf3fs[] = { ALL(T3FS) };
	int failed = cmocka_run_group_tests_name("file", file, NULL, NULL);

	return failed + cmocka_run_group_tests_name("hf3fs", hf3fs, NULL, NULL);
}
