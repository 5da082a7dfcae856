/*
 * test_mounts.c - a `file` storage on file systems that are full, read-only, without fallocate,
 * unmounted, or mounted over. Mounts live in a mount namespace of this process and vanish with it.
 * Needs root (CAP_SYS_ADMIN); without it every test is skipped and the reason printed.
 */
#include "bench_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB ((uint64_t)1 << 20)

static const char *why_not; /* NULL when mounting is possible */

static int enter_namespace(void **state)
{
	(void)state;
	if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		why_not = strerror(errno);
	return 0;
}

static void mount_or_skip(struct bench *b, const char *type, const char *options)
{
	if (why_not) {
		print_message("skipped: no mount namespace: %s\n", why_not);
		skip();
	}
	assert_int_equal(mkdir(b->root, 0700), 0);
	if (mount("none", b->root, type, 0, options) != 0) {
		print_message("skipped: cannot mount %s: %s\n", type, strerror(errno));
		skip();
	}
}

static int unmount(void **state)
{
	struct bench *b = *state;

	while (umount2(b->root, MNT_DETACH) == 0)
		;
	return bench_teardown(state);
}

/* Fills the file system to the last block. */
static void fill_up(struct bench *b, const char *name)
{
	static const char block[4096];
	int fd = open(bench_path(b, name), O_WRONLY | O_CREAT, 0600);

	assert_true(fd >= 0);
	while (write(fd, block, sizeof block) > 0)
		;
	assert_int_equal(errno, ENOSPC);
	close(fd);
}

static void no_space_leaves_nothing_behind(void **state)
{
	struct bench *b = *state;
	struct skv_storage_health before, after;
	struct skv_storage *s;

	mount_or_skip(b, "tmpfs", "size=4m");
	s = bench_open(b);
	assert_int_equal(skv_storage_create_file(s, 0, 2 * MIB, &b->err), SKV_OK);
	assert_int_equal(skv_storage_probe(s, SKV_PROBE_WRITE, &before, &b->err), SKV_OK);
	assert_int_equal(skv_storage_create_file(s, 1, 3 * MIB, &b->err), SKV_E_NO_SPACE);
	bench_says(b, "no room for a slab file of 3145728 bytes");
	assert_int_equal(skv_storage_probe(s, SKV_PROBE_WRITE, &after, &b->err), SKV_OK);
	assert_int_equal(before.free_bytes, after.free_bytes);
	assert_int_equal(bench_entries(b), 3);
	assert_int_equal(skv_storage_check_file(s, 0, 2 * MIB, &b->err), SKV_OK);
	assert_int_equal(skv_storage_check_file(s, 1, 3 * MIB, &b->err), SKV_E_NOT_FOUND);
	assert_int_equal(skv_storage_create_file(s, 1, MIB, &b->err), SKV_OK);
	skv_storage_close(s);
}

static void a_full_file_system_is_full_not_broken(void **state)
{
	struct bench *b = *state;
	struct skv_storage_health h;
	struct skv_storage *s;

	mount_or_skip(b, "tmpfs", "size=2m");
	s = bench_open(b);
	assert_int_equal(skv_storage_create_file(s, 0, MIB, &b->err), SKV_OK);
	fill_up(b, "filler");
	assert_int_equal(skv_storage_probe(s, SKV_PROBE_WRITE, &h, &b->err), SKV_OK);
	assert_int_equal(h.free_bytes, 0);
	assert_int_equal(h.total_bytes, 2 * MIB);
	assert_int_equal(skv_storage_check_file(s, 0, MIB, &b->err), SKV_OK);
	assert_int_equal(skv_storage_create_file(s, 1, MIB, &b->err), SKV_E_NO_SPACE);
	skv_storage_close(s);

	/* After a restart its blocks are still there to be read. */
	b->config.may_create = false;
	assert_int_equal(unlink(bench_path(b, ".slabkv-probe")), 0);
	fill_up(b, "filler");
	s = bench_open(b);
	assert_int_equal(skv_storage_check_file(s, 0, MIB, &b->err), SKV_OK);
	assert_int_equal(unlink(bench_path(b, "filler")), 0);
	assert_int_equal(skv_storage_probe(s, SKV_PROBE_WRITE, &h, &b->err), SKV_OK);
	assert_true(h.free_bytes > 0);
	skv_storage_close(s);
}

static void a_new_storage_needs_room_for_its_marker(void **state)
{
	struct bench *b = *state;

	mount_or_skip(b, "tmpfs", "size=1m");
	assert_int_equal(mkdir(bench_path(b, "lost+found"), 0700), 0);
	fill_up(b, "lost+found/filler");
	bench_refused(b, SKV_E_NO_SPACE,
		      "cannot write the marker into the root directory: No space left");
	assert_int_equal(bench_entries(b), 1);
	assert_int_equal(unlink(bench_path(b, "lost+found/filler")), 0);
	skv_storage_close(bench_open(b));
}

static void slack_is_left_free(void **state)
{
	struct bench *b = *state;
	struct skv_storage_health h;
	struct skv_storage *s;

	mount_or_skip(b, "tmpfs", "size=16m");
	s = bench_open(b);
	assert_int_equal(skv_storage_probe(s, SKV_PROBE_WRITE, &h, &b->err), SKV_OK);
	assert_int_equal(h.total_bytes, 16 * MIB);
	/* Tiny: a sixteenth. The marker and the probe file take a page each. */
	assert_true(h.free_bytes <= 15 * MIB && h.free_bytes >= 15 * MIB - 16 * 4096);
	skv_storage_close(s);
	assert_int_equal(mount("none", b->root, NULL, MS_REMOUNT, "size=4g"), 0);
	s = bench_open(b);
	assert_int_equal(skv_storage_probe(s, SKV_PROBE_WRITE, &h, &b->err), SKV_OK);
	/* 64 MiB, for 1 % of 4 GiB is less. */
	assert_true(h.free_bytes <= 4096 * MIB - 64 * MIB && h.free_bytes > 4096 * MIB - 65 * MIB);
	skv_storage_close(s);
	assert_int_equal(mount("none", b->root, NULL, MS_REMOUNT, "size=100g"), 0);
	s = bench_open(b);
	assert_int_equal(skv_storage_probe(s, SKV_PROBE_WRITE, &h, &b->err), SKV_OK);
	/* 1 % */
	assert_true(h.free_bytes <= 99 * 1024 * MIB && h.free_bytes > 99 * 1024 * MIB - MIB);
	skv_storage_close(s);
}

static void read_only_is_refused_and_noticed(void **state)
{
	struct bench *b = *state;
	struct skv_storage_health h;
	struct skv_storage *s;

	mount_or_skip(b, "tmpfs", "size=4m");
	s = bench_open(b);
	assert_int_equal(skv_storage_create_file(s, 0, MIB, &b->err), SKV_OK);
	assert_int_equal(mount("none", b->root, NULL, MS_REMOUNT | MS_RDONLY, NULL), 0);
	assert_int_equal(skv_storage_probe(s, SKV_PROBE_WRITE, &h, &b->err), SKV_E_UNAVAILABLE);
	bench_says(b, "is mounted read-only: mount it writable");
	assert_int_equal(skv_storage_check_file(s, 0, MIB, &b->err), SKV_OK);
	assert_int_equal(skv_storage_create_file(s, 1, MIB, &b->err), SKV_E_UNAVAILABLE);
	bench_says(b, "Read-only file system");
	assert_int_equal(skv_storage_remove_file(s, 0, &b->err), SKV_E_UNAVAILABLE);
	bench_refused(b, SKV_E_UNAVAILABLE, "mounted read-only");
	assert_int_equal(mount("none", b->root, NULL, MS_REMOUNT, NULL), 0);
	assert_int_equal(skv_storage_probe(s, SKV_PROBE_WRITE, &h, &b->err), SKV_OK);
	skv_storage_close(s);
}

static void a_read_only_place_gets_no_storage(void **state)
{
	struct bench *b = *state;
	char below[128];

	mount_or_skip(b, "tmpfs", "size=1m,ro");
	bench_refused(b, SKV_E_UNAVAILABLE, "cannot write the marker");
	snprintf(below, sizeof below, "%s/below", b->root);
	b->config.root = below;
	bench_refused(b, SKV_E_UNAVAILABLE,
		      "cannot make the root directory: Read-only file system");
}

static void no_fallocate_means_zeros(void **state)
{
	struct bench *b = *state;
	struct skv_storage_health h;
	struct skv_storage *s;
	struct stat st;

	mount_or_skip(b, "ramfs", NULL);
	s = bench_open(b);
	assert_int_equal(skv_storage_create_file(s, 0, 2 * MIB + 4096, &b->err), SKV_OK);
	assert_int_equal(skv_storage_check_file(s, 0, 2 * MIB + 4096, &b->err), SKV_OK);
	assert_int_equal(stat(bench_path(b, "slab-00000000.kvs"), &st), 0);
	assert_int_equal(st.st_size, 2 * MIB + 4096);
	assert_int_equal(skv_storage_probe(s, SKV_PROBE_WRITE, &h, &b->err), SKV_OK);
	/* ramfs has no bound */
	assert_true(h.free_bytes == UINT64_MAX && h.total_bytes == UINT64_MAX);
	skv_storage_close(s);
}

static void unmounting_is_noticed_and_not_hindered(void **state)
{
	struct bench *b = *state;
	struct skv_storage_health h;
	struct skv_storage *s;
	char other[128];

	mount_or_skip(b, "tmpfs", "size=4m");
	s = bench_open(b);
	assert_int_equal(skv_storage_create_file(s, 0, MIB, &b->err), SKV_OK);
	snprintf(other, sizeof other, "%s/other", b->top);
	assert_int_equal(mkdir(other, 0700), 0);
	assert_int_equal(mount(b->root, other, NULL, MS_BIND, NULL), 0);
	assert_int_equal(umount(b->root), 0); /* the storage holds nothing open */
	assert_int_equal(skv_storage_probe(s, SKV_PROBE_WRITE, &h, &b->err), SKV_E_UNAVAILABLE);
	bench_says(b, "lost its marker");
	bench_says(b, "is the file system mounted?");
	assert_int_equal(skv_storage_create_file(s, 1, MIB, &b->err), SKV_E_UNAVAILABLE);
	assert_int_equal(bench_entries(b), 0);

	/* The mount comes back: used again without a word from anybody. */
	assert_int_equal(mount(other, b->root, NULL, MS_BIND, NULL), 0);
	assert_int_equal(skv_storage_probe(s, SKV_PROBE_WRITE, &h, &b->err), SKV_OK);
	assert_int_equal(skv_storage_check_file(s, 0, MIB, &b->err), SKV_OK);

	/* Something else is mounted over it. */
	assert_int_equal(mount("none", b->root, "tmpfs", 0, "size=1m"), 0);
	assert_int_equal(skv_storage_probe(s, SKV_PROBE_WRITE, &h, &b->err), SKV_E_UNAVAILABLE);
	assert_int_equal(bench_entries(b), 0);
	skv_storage_close(s);
	assert_int_equal(umount2(b->root, MNT_DETACH), 0);
	assert_int_equal(umount2(b->root, MNT_DETACH), 0);
	assert_int_equal(umount2(other, MNT_DETACH), 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, bench_setup, unmount)
	const struct CMUnitTest tests[] = {
		T(no_space_leaves_nothing_behind),
		T(a_full_file_system_is_full_not_broken),
		T(a_new_storage_needs_room_for_its_marker),
		T(slack_is_left_free),
		T(read_only_is_refused_and_noticed),
		T(a_read_only_place_gets_no_storage),
		T(no_fallocate_means_zeros),
		T(unmounting_is_noticed_and_not_hindered),
	};

	return cmocka_run_group_tests(tests, enter_namespace, NULL);
}
