/* test_mount.c - which directory is which storage, and which file is which: wrong uuid, links,
 * short files, foreign files, files that change below us. No HTTP here. */
#include "fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shell.h"

struct bench {
	struct fixture *f;
	struct skv_mounts *mounts;
	struct skv_files_cache *files;
	struct skv_mount *mount;
};

static int setup(void **state)
{
	struct bench *b = calloc(1, sizeof *b);
	const char *dir;

	assert_non_null(b);
	fixture_setup((void **)&b->f);
	dir = b->f->s.root;
	assert_int_equal(skv_mounts_create(&dir, 1, &b->mounts, NULL), SKV_OK);
	assert_int_equal(skv_files_create(b->f->kv->engine, b->mounts, &b->files, NULL), SKV_OK);
	assert_int_equal(skv_mount_acquire(b->mounts, b->f->s.uuid, NULL, &b->mount, NULL), SKV_OK);
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bench *b = *state;

	if (b->mount)
		skv_mount_release(b->mounts, b->mount);
	skv_files_destroy(b->files);
	skv_mounts_destroy(b->mounts);
	fixture_teardown((void **)&b->f);
	free(b);
	return 0;
}

static void the_marker_decides(void **state)
{
	struct bench *b = *state;
	struct skv_mount *m;
	struct skv_error err;
	uint8_t other[16] = { 1 };

	assert_string_equal(b->mount->path, b->f->s.root);
	assert_int_equal(skv_mount_acquire(b->mounts, other, NULL, &m, &err), SKV_E_FOREIGN);
	assert_non_null(strstr(err.message, "another storage"));
	assert_int_equal(skv_mount_acquire(b->mounts, other, "/nonexistent", &m, &err),
			 SKV_E_UNAVAILABLE);
	/* a second acquire is the same mount */
	assert_int_equal(skv_mount_acquire(b->mounts, b->f->s.uuid, NULL, &m, &err), SKV_OK);
	assert_ptr_equal(m, b->mount);
	skv_mount_release(b->mounts, m);
}

static void damaged_markers_are_refused(void **state)
{
	struct bench *b = *state;
	struct skv_mount *m;
	struct skv_error err;
	char path[200], away[200];
	int fd;

	skv_mount_forget(b->mounts, b->mount);
	snprintf(path, sizeof path, "%s/%s", b->f->s.root, SKV_STORAGE_MARKER);
	snprintf(away, sizeof away, "%s/real", b->f->s.root);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_int_equal(pwrite(fd, "x", 1, 100), 1);
	close(fd);
	assert_int_equal(skv_mount_acquire(b->mounts, b->f->s.uuid, NULL, &m, &err), SKV_E_CORRUPT);
	assert_int_equal(truncate(path, 100), 0);
	assert_int_equal(skv_mount_acquire(b->mounts, b->f->s.uuid, NULL, &m, &err), SKV_E_CORRUPT);
	assert_int_equal(rename(path, away), 0);
	assert_int_equal(skv_mount_acquire(b->mounts, b->f->s.uuid, NULL, &m, &err), SKV_E_FOREIGN);
	assert_int_equal(symlink("real", path), 0);
	assert_int_not_equal(skv_mount_acquire(b->mounts, b->f->s.uuid, NULL, &m, &err), SKV_OK);
}

static int open_path(struct bench *b, const char *path, bool write, struct skv_slab_file **out)
{
	struct skv_error err;

	return skv_files_open(b->files, b->mount, path, write, out, &err);
}

static void only_names_of_slab_files_are_opened(void **state)
{
	static const char *const bad[] = {
		"",
		"slabkv-storage",
		"../slab-00000000.kvs",
		"slab-00000000.kvs/x",
		"slab-0.kvs",
		"slab-+0000000.kvs",
		"slab- 0000000.kvs",
		"/etc/passwd",
		"slab-00000000.kvsx",
		"slab-0x000000.kvs",
		"slab-4294967295.kvs",
	};
	struct bench *b = *state;
	struct skv_slab_file *f;

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_int_equal(open_path(b, bad[i], false, &f), SKV_E_INVALID);
	assert_int_equal(open_path(b, "slab-00000007.kvs", false, &f), SKV_E_UNAVAILABLE);
}

static void superblocks_prove_files(void **state)
{
	struct bench *b = *state;
	struct skv_slab_file *f;
	char zero[160], one[160];

	standin_path(&b->f->s, 0, zero);
	standin_path(&b->f->s, 1, one);
	assert_int_equal(open_path(b, "slab-00000000.kvs", false, &f), SKV_OK);
	assert_int_equal(f->sb.length, b->f->s.file_length);
	assert_true(skv_files_in_bounds(f, STANDIN_HEADER, 1));
	assert_false(skv_files_in_bounds(f, STANDIN_HEADER - 1, 1));
	assert_true(skv_files_in_bounds(f, f->sb.length - STANDIN_TRAILER - 1, 1));
	assert_false(skv_files_in_bounds(f, f->sb.length - STANDIN_TRAILER - 1, 2));
	assert_false(skv_files_in_bounds(f, UINT64_MAX, UINT64_MAX));
	skv_files_release(b->files, f);
	/* the other file under this name */
	assert_int_equal(rename(zero, one), 0);
	assert_int_equal(open_path(b, "slab-00000001.kvs", false, &f), SKV_E_FOREIGN);
	assert_int_equal(symlink("slab-00000001.kvs", zero), 0);
	assert_int_equal(open_path(b, "slab-00000000.kvs", false, &f), SKV_E_FOREIGN);
}

static void short_and_empty_files_are_refused(void **state)
{
	struct bench *b = *state;
	struct skv_slab_file *f;
	char path[160];

	standin_path(&b->f->s, 0, path);
	assert_int_equal(truncate(path, 8192), 0);
	assert_int_equal(open_path(b, "slab-00000000.kvs", false, &f), SKV_E_CORRUPT);
	assert_int_equal(truncate(path, 10), 0);
	assert_int_equal(open_path(b, "slab-00000000.kvs", false, &f), SKV_E_CORRUPT);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_not_equal(open_path(b, "slab-00000000.kvs", false, &f), SKV_OK);
}

static void files_stay_open_and_are_checked_for_writing(void **state)
{
	struct bench *b = *state;
	struct skv_slab_file *f, *again;
	char path[160];

	standin_path(&b->f->s, 0, path);
	assert_null(skv_files_find(b->files, b->f->s.uuid, "slab-00000000.kvs", true));
	assert_int_equal(open_path(b, "slab-00000000.kvs", true, &f), SKV_OK);
	again = skv_files_find(b->files, b->f->s.uuid, "slab-00000000.kvs", true);
	assert_ptr_equal(f, again);
	skv_files_release(b->files, again);
	/* reading and writing are different descriptors */
	assert_null(skv_files_find(b->files, b->f->s.uuid, "slab-00000000.kvs", false));
	/* a deleted file is not written to */
	assert_int_equal(unlink(path), 0);
	assert_null(skv_files_find(b->files, b->f->s.uuid, "slab-00000000.kvs", true));
	skv_files_release(b->files, f);
}

static void forgotten_files_live_until_released(void **state)
{
	struct bench *b = *state;
	struct skv_slab_file *f;
	char byte;

	assert_int_equal(open_path(b, "slab-00000000.kvs", false, &f), SKV_OK);
	skv_files_forget(b->files, f);
	skv_files_forget(b->files, f);
	assert_null(skv_files_find(b->files, b->f->s.uuid, "slab-00000000.kvs", false));
	assert_int_equal(pread(f->file->fd, &byte, 1, 0), 1);
	skv_files_release(b->files, f);
}

/* The manager has removed a slab file; its space comes back when the clients have closed it. */
static void removed_files_are_closed(void **state)
{
	struct bench *b = *state;
	struct skv_slab_file *f, *other;
	char path[160], away[160], command[700];
	int fd;

	standin_path(&b->f->s, 0, path);
	standin_path(&b->f->s, 1, away);
	assert_int_equal(open_path(b, "slab-00000000.kvs", false, &f), SKV_OK);
	fd = f->file->fd;
	snprintf(command, sizeof command, "cp %s %s && mv %s %s", path, away, away, path);
	assert_int_equal(test_shell(command), 0);
	/* in use: not yet */
	assert_int_equal(open_path(b, "slab-00000000.kvs", true, &other), SKV_OK);
	assert_int_not_equal(fcntl(fd, F_GETFD), -1);
	skv_files_release(b->files, f);
	skv_files_forget(b->files, other);
	skv_files_release(b->files, other);
	assert_int_equal(open_path(b, "slab-00000000.kvs", true, &other), SKV_OK);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	assert_null(skv_files_find(b->files, b->f->s.uuid, "slab-00000000.kvs", false));
	skv_files_release(b->files, other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_marker_decides, setup, teardown),
		cmocka_unit_test_setup_teardown(damaged_markers_are_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(only_names_of_slab_files_are_opened, setup,
						teardown),
		cmocka_unit_test_setup_teardown(superblocks_prove_files, setup, teardown),
		cmocka_unit_test_setup_teardown(short_and_empty_files_are_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(files_stay_open_and_are_checked_for_writing, setup,
						teardown),
		cmocka_unit_test_setup_teardown(forgotten_files_live_until_released, setup,
						teardown),
		cmocka_unit_test_setup_teardown(removed_files_are_closed, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
