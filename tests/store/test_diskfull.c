/*
 * test_diskfull.c - the disk of the store is full: a small tmpfs in a mount namespace of this
 * process, which vanishes with it. Needs root (CAP_SYS_ADMIN); without it every test is skipped and
 * the reason printed.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench_store.h"

#define KIB ((size_t)1024)
#define BATCH (16 * KIB)
#define RESERVE (1024 * KIB)

static const char *why_not; /* NULL when mounting is possible */

static int enter_namespace(void **state)
{
	(void)state;
	if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		why_not = strerror(errno);
	return 0;
}

static void mount_or_skip(struct bench *b)
{
	if (!why_not && mount("none", b->dir, "tmpfs", 0, "size=16m") != 0)
		why_not = strerror(errno);
	if (why_not) {
		print_message("skipped: cannot mount a small tmpfs: %s\n", why_not);
		skip();
	}
	b->options.reserve_bytes = RESERVE;
}

static int unmount(void **state)
{
	struct bench *b = *state;

	umount2(b->dir, MNT_DETACH);
	return bench_teardown(state);
}

static void fill_up(struct bench *b)
{
	static const char block[4096];
	int fd = open(bench_file(b, "-filler"), O_WRONLY | O_CREAT, 0600);

	assert_true(fd >= 0);
	while (write(fd, block, sizeof block) > 0)
		;
	assert_int_equal(errno, ENOSPC);
	close(fd);
}

static int append(struct bench *b, struct skv_store *s, uint64_t fence, uint64_t seq,
		  unsigned flags)
{
	uint8_t bytes[BATCH];

	bench_fill(seq, bytes, sizeof bytes);
	return skv_store_append(s, 0, fence, seq, bytes, sizeof bytes, flags, &b->err);
}

/* Appends until the disk is full; returns the last seq that was taken. */
static uint64_t append_until_full(struct bench *b, struct skv_store *s, uint64_t fence,
				  uint64_t seq)
{
	int rc;

	do {
		assert_true(seq < 10000);
		rc = append(b, s, fence, ++seq, 0);
	} while (rc == SKV_OK);
	assert_int_equal(rc, SKV_E_STORE_FULL);
	return seq - 1;
}

struct seen {
	uint64_t last;
};

static int no_slice(void *ctx, uint32_t number, const void *bytes, size_t n)
{
	(void)ctx;
	(void)bytes;
	fail_msg("slice %u of %zu bytes", number, n);
	return SKV_OK;
}

static int check_record(void *ctx, uint64_t seq, const void *bytes, size_t n)
{
	struct seen *l = ctx;
	uint8_t want[BATCH];

	assert_int_equal(seq, l->last + 1);
	bench_fill(seq, want, sizeof want);
	assert_int_equal(n, sizeof want);
	assert_memory_equal(bytes, want, n);
	l->last = seq;
	return SKV_OK;
}

static void check_journal(struct bench *b, struct skv_store *s, uint64_t last)
{
	struct seen l = { 0 };
	const struct skv_load_sink sink = { no_slice, check_record, &l };
	uint64_t base;

	bench_ok(b, skv_store_load(s, 0, &base, &sink, &b->err));
	assert_int_equal(l.last, last);
}

static void a_full_disk_takes_urgent_appends_only(void **state)
{
	struct bench *b = *state;
	struct skv_store *s;
	struct skv_store_stats st;
	struct skv_buf v = { 0 };
	uint64_t fence, last;

	mount_or_skip(b);
	s = bench_open(b);
	fence = bench_acquire(b, s, "me", 60000);
	bench_ok(b, skv_store_put(s, NULL, "k", SKV_VERSION_NONE, "value", 5, NULL, &b->err));
	bench_ok(b, append(b, s, fence, 1, 0));
	fill_up(b);
	last = append_until_full(b, s, fence, 1);
	check_journal(b, s, last);

	/* A megabyte is reserved: a good part of it can be used, in appends of 16 KiB. */
	for (int i = 0; i < 20; i++)
		bench_ok(b, append(b, s, fence, ++last, SKV_APPEND_URGENT));
	check_journal(b, s, last);

	/* Until that is used up too. Reads go on. */
	last = append_until_full(b, s, fence, last);
	bench_ok(b, skv_store_get(s, "k", &v, NULL, &b->err));
	assert_memory_equal(v.data, "value", 5);
	bench_ok(b, skv_store_stats_get(s, 0, &st, &b->err));
	assert_int_equal(st.last_seq, last);
	assert_true(st.free_bytes < RESERVE);
	check_journal(b, s, last);

	assert_int_equal(unlink(bench_file(b, "-filler")), 0);
	bench_ok(b, append(b, s, fence, ++last, 0));
	check_journal(b, s, last);
	skv_buf_destroy(&v);
	skv_store_close(s);
}

static void a_full_disk_survives_a_restart(void **state)
{
	struct bench *b = *state;
	struct skv_store *s;
	uint64_t fence, last;

	mount_or_skip(b);
	s = bench_open(b);
	fence = bench_acquire(b, s, "me", 60000);
	fill_up(b);
	last = append_until_full(b, s, fence, 0);
	skv_store_close(s);
	s = bench_open(b);
	check_journal(b, s, last);
	assert_int_equal(unlink(bench_file(b, "-filler")), 0);
	bench_ok(b, append(b, s, fence, last + 1, 0));
	check_journal(b, s, last + 1);
	skv_store_close(s);
}

/* Housekeeping looks once a second. */
static void the_reserve_comes_back(void **state)
{
	struct bench *b = *state;
	struct skv_store *s;
	struct stat st = { 0 };
	uint64_t fence, last, deadline;

	mount_or_skip(b);
	s = bench_open(b);
	assert_int_equal(stat(bench_file(b, "-reserve"), &st), 0);
	assert_int_equal(st.st_size, RESERVE);
	assert_true((uint64_t)st.st_blocks * 512 >= RESERVE);
	fence = bench_acquire(b, s, "me", 60000);
	fill_up(b);
	last = append_until_full(b, s, fence, 0);
	bench_ok(b, append(b, s, fence, last + 1, SKV_APPEND_URGENT));
	assert_int_equal(unlink(bench_file(b, "-filler")), 0);
	deadline = skv_now_us() + 20000000;
	do
		assert_int_equal(stat(bench_file(b, "-reserve"), &st), 0);
	while ((uint64_t)st.st_size != RESERVE && skv_now_us() < deadline &&
	       poll(NULL, 0, 10) == 0);
	assert_int_equal(st.st_size, RESERVE);
	skv_store_close(s);
}

static void no_room_for_a_new_store(void **state)
{
	struct bench *b = *state;
	struct skv_store *s;

	mount_or_skip(b);
	fill_up(b);
	assert_int_equal(skv_store_open(&skv_store_sqlite, &b->options, &s, &b->err),
			 SKV_E_STORE_FULL);
	assert_int_equal(unlink(bench_file(b, "-filler")), 0);
	s = bench_open(b);
	bench_acquire(b, s, "me", 1000);
	skv_store_close(s);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, bench_setup, unmount)

int main(void)
{
	const struct CMUnitTest cases[] = {
		CASE(a_full_disk_takes_urgent_appends_only),
		CASE(a_full_disk_survives_a_restart),
		CASE(the_reserve_comes_back),
		CASE(no_room_for_a_new_store),
	};
	int failed = 0;

	for (int i = 1; i <= 2; i++) {
		bench_kind = &bench_kinds[i];
		failed += cmocka_run_group_tests_name(bench_kind->name, cases, enter_namespace,
						      NULL);
	}
	return failed != 0;
}
