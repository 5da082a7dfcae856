/*
 * conf_fault.c - see conformance.h: faults, and the daemon's death. The stand-in alone makes them
 * on demand; that it does what was asked for is what the tests of the engine stand on.
 */
#include "conformance.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define C (suite.chunk)

static int end(void **state)
{
	(void)state;
	if (suite.standin)
		knobs("");
	return 0;
}

static void the_nth_request_fails(void **state)
{
	static const struct {
		const char *rule;
		int result;
	} rules[] = { { "fault=write:EIO:@2", -EIO },
		      { "fault=write:EREMOTEIO:@2", -EREMOTEIO },
		      { "fault=write:ENOSPC:@2", -ENOSPC } };
	struct rig g;

	(void)state;
	only_standin();
	rig_open(&g, 0);
	for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
		size_t off = i * 4 * C;

		knobs(rules[i].rule);
		assert_int_equal(rig_write(&g, 0, off, C), (int64_t)C);
		assert_int_equal(rig_write(&g, 0, off + C, C), rules[i].result);
		assert_int_equal(rig_write(&g, 0, off + 2 * C, C), (int64_t)C);
		assert_int_equal(rig_read(&g, 4 * C, off + C, C), 0); /* nothing was written */
	}
	rig_close(&g);
}

static void a_write_fails_and_was_done(void **state)
{
	struct rig g;

	(void)state;
	only_standin();
	rig_open(&g, 0);
	pattern(g.iov.base, C, 1);
	knobs("fault=write:EIO:1:done");
	assert_int_equal(rig_write(&g, 0, 0, C), -EIO);
	knobs("");
	assert_int_equal(rig_read(&g, C, 0, C), (int64_t)C);
	assert_true(is_pattern(g.iov.base + C, C, 1));
	rig_close(&g);
}

/* Some chunks are new, some are old: each is one or the other. */
static void a_torn_write_tears_between_chunks(void **state)
{
	struct rig g;
	char text[64];
	int old = 0, new = 0;

	(void)state;
	only_standin();
	rig_open(&g, 0);
	for (int round = 0; round < 20; round++) {
		knobs("");
		pattern(g.iov.base, 4 * C, 1);
		assert_int_equal(rig_write(&g, 0, 0, 4 * C), (int64_t)(4 * C));
		pattern(g.iov.base, 4 * C, 2);
		snprintf(text, sizeof text, "fault=write:EIO:1:torn seed=%d", 100 + round);
		knobs(text);
		assert_int_equal(rig_write(&g, 0, 0, 4 * C), -EIO);
		knobs("");
		assert_int_equal(rig_read(&g, 0, 0, 4 * C), (int64_t)(4 * C));
		pattern(g.iov.base + 4 * C, 4 * C, 1);
		for (size_t i = 0; i < 4; i++) {
			bool is_old = memcmp(g.iov.base + i * C, g.iov.base + (4 + i) * C, C) == 0;

			old += is_old;
			if (is_old)
				memset(g.iov.base + i * C, 0, C);
		}
		pattern(g.iov.base + 4 * C, 4 * C, 2);
		for (size_t i = 0; i < 4; i++)
			new += memcmp(g.iov.base + i * C, g.iov.base + (4 + i) * C, C) == 0;
	}
	assert_int_equal(old + new, 80);
	assert_true(old > 0 && new > 0);
	rig_close(&g);
}

static void a_read_comes_back_short(void **state)
{
	struct rig g;
	int64_t n;

	(void)state;
	only_standin();
	rig_open(&g, 0);
	assert_int_equal(rig_write(&g, 0, 0, C), (int64_t)C);
	knobs("fault=read:SHORT:1");
	n = rig_read(&g, C, 0, C);
	assert_true(n >= 0 && n < (int64_t)C);
	rig_close(&g);
}

static void a_whole_batch_fails(void **state)
{
	struct rig g;
	struct hf3fs_cqe cqes[4];

	(void)state;
	only_standin();
	rig_open(&g, 4);
	knobs("fault=read:EREMOTEIO:@3:batch");
	for (uintptr_t i = 0; i < 4; i++)
		rig_prep(&g, true, i * C, 0, C, i);
	lib.submit_ios(&g.read);
	wait_all(&g.read, cqes, 4);
	for (int i = 0; i < 4; i++)
		assert_int_equal(cqes[i].result, -EREMOTEIO);
	rig_close(&g);
}

static void a_chance_is_about_what_it_says(void **state)
{
	struct rig g;
	int failed = 0;

	(void)state;
	only_standin();
	rig_open(&g, 0);
	knobs("fault=write:EIO:0.25 seed=11");
	for (int i = 0; i < 400; i++)
		failed += rig_write(&g, 0, 0, 4096) == -EIO;
	assert_in_range(failed, 60, 140);
	rig_close(&g);
}

static void what_is_held_comes_later(void **state)
{
	struct rig g;
	struct hf3fs_cqe cqe;

	(void)state;
	only_standin();
	rig_open(&g, 0);
	knobs("hold=1");
	rig_prep(&g, false, 0, 0, C, 1);
	lib.submit_ios(&g.write);
	assert_int_equal(wait_ms(&g.write, &cqe, 1, 1, 50), 0);
	knobs("hold=0");
	wait_all(&g.write, &cqe, 1);
	assert_int_equal(cqe.result, C);
	rig_close(&g);
}

static void a_mount_may_be_read_only(void **state)
{
	struct rig g;

	(void)state;
	only_standin();
	rig_open(&g, 0);
	knobs("readonly=1");
	assert_int_equal(rig_write(&g, 0, 0, C), -EROFS);
	assert_int_equal(rig_read(&g, 0, 0, C), 0);
	rig_close(&g);
}

static void making_things_may_fail(void **state)
{
	struct hf3fs_iov iov;
	struct hf3fs_ior ior;
	int shm = shm_count(suite.mount), links = standin_links(suite.mount),
	    fd = fresh_file(NULL, O_RDWR);

	(void)state;
	only_standin();
	knobs("fault=iov:ENOENT:1 fault=ring:EPERM:1 fault=reg:ENOMEM:1");
	assert_int_equal(lib.iovcreate(&iov, suite.mount, 65536, 0, -1), -ENOENT);
	assert_int_equal(lib.iorcreate(&ior, suite.mount, 16, true, 0, -1), -EPERM);
	assert_int_equal(lib.reg_fd(fd, 0), ENOMEM);
	knobs("fault=shm:EIO:1");
	assert_int_equal(lib.iovcreate(&iov, suite.mount, 65536, 0, -1), -EIO);
	assert_int_equal(shm_count(suite.mount), shm);
	assert_int_equal(standin_links(suite.mount), links);
	/* the link is made before the semaphore is looked for, and stays */
	knobs("fault=sem:ENOENT:1");
	assert_int_equal(lib.iorcreate(&ior, suite.mount, 16, true, 0, -1), -ENOENT);
	assert_int_equal(shm_count(suite.mount), shm);
	assert_int_equal(standin_links(suite.mount), links + 1);
	knobs("negative_depth=0");
	assert_int_equal(lib.iorcreate(&ior, suite.mount, 16, true, -4, -1), -EINVAL);
	close(fd);
}

/* ---- the daemon's death ---------------------------------------------------------------------- */

/* Which semaphores a daemon has; "": there is none. */
static void sem_target(char out[256])
{
	char path[400];
	ssize_t n;

	snprintf(path, sizeof path, "%s/3fs-virt/iovs/submit-ios", suite.mount);
	n = readlink(path, out, 255);
	out[n > 0 ? n : 0] = 0;
}

static void a_daemon_that_died_completes_nothing(void **state)
{
	struct rig g;
	struct hf3fs_cqe cqe;
	char before[256], now[256];

	(void)state;
	only_standin();
	rig_open(&g, 0);
	sem_target(before);
	knobs("hold=1");
	rig_prep(&g, false, 0, 0, C, 1);
	lib.submit_ios(&g.write);
	knobs("down=1");
	sem_target(now);
	assert_string_equal(now, "");
	assert_int_equal(wait_ms(&g.write, &cqe, 1, 1, 50), 0);
	assert_false(lib.is_hf3fs(g.fd));
	assert_int_equal(lib.iovcreate(&g.iov, suite.mount, 65536, 0, -1), -ENOTCONN);
	restart_daemon("");
	sem_target(now);
	assert_string_not_equal(now, "");
	assert_string_not_equal(now, before);
	assert_int_equal(lib.submit_ios(&g.write), 0); /* nobody says so */
	assert_int_equal(wait_ms(&g.write, &cqe, 1, 1, 50), 0);
	rig_close(&g);
}

static void the_next_daemon_knows_nothing(void **state)
{
	struct rig g, next;
	struct hf3fs_cqe cqe;

	(void)state;
	only_standin();
	rig_open(&g, 0);
	assert_int_equal(rig_write(&g, 0, 0, C), (int64_t)C);
	restart_daemon("");
	assert_false(lib.is_hf3fs(g.fd));
	rig_open(&next, 0);
	/* Memory of the last daemon. */
	assert_true(lib.prep_io(&next.read, &g.iov, true, g.iov.base, next.handle, 0, C, NULL) >=
		    0);
	lib.submit_ios(&next.read);
	wait_all(&next.read, &cqe, 1);
	assert_int_equal(cqe.result, -EINVAL);
	/* A descriptor of the last daemon. */
	assert_true(lib.prep_io(&next.read, &next.iov, true, next.iov.base, g.handle, 0, C, NULL) >=
		    0);
	lib.submit_ios(&next.read);
	wait_all(&next.read, &cqe, 1);
	assert_int_equal(cqe.result, -EBADF);
	/* The written bytes are there. */
	lib.dereg_fd(next.fd);
	close(next.fd);
	next.fd = open(g.path, O_RDWR | O_CLOEXEC);
	next.handle = lib.reg_fd(next.fd, 0);
	assert_true(next.handle <= 0);
	assert_int_equal(rig_read(&next, 0, 0, C), (int64_t)C);
	rig_close(&g);
	rig_close(&next);
}

/* Deregistering asks the daemon about the descriptor first; the last
 * daemon's are none of the next's. */
static void a_stale_descriptor_cannot_be_deregistered(void **state)
{
	struct rig g;
	int fd, other;

	(void)state;
	only_standin();
	rig_open(&g, 0);
	restart_daemon("");
	lib.dereg_fd(g.fd);
	other = open(g.path, O_RDWR | O_CLOEXEC);
	close(g.fd);
	fd = open(g.path, O_RDWR | O_CLOEXEC);
	assert_int_equal(fd, g.fd);
	assert_int_equal(lib.reg_fd(fd, 0), EINVAL);
	assert_int_equal(lib.reg_fd(other, 0) <= 0, true);
	lib.dereg_fd(other);
	close(other);
	lib.dereg_fd(fd); /* now the number is a file of the mount again */
	g.handle = lib.reg_fd(fd, 0);
	assert_true(g.handle <= 0);
	rig_close(&g);
}

/* ---- traps ----------------------------------------------------------------------------------- */

static int exit_status_of(const char *variable, const char *value)
{
	int status;

	assert_int_equal(setenv(variable, value, 1), 0);
	status = run_child("block0", "");
	unsetenv(variable);
	return status;
}

static void loading_with_a_huge_limit_of_files_ends_the_process(void **state)
{
	(void)state;
	only_standin();
	assert_true(WIFSIGNALED(exit_status_of("HF3FS_STANDIN_NOFILE_MAX", "100")));
	assert_true(WIFEXITED(exit_status_of("HF3FS_STANDIN_NOFILE_MAX", "4294967295")));
}

/* The trap that a trailer is for: the length of a file is what its last chunk says. */
static void a_file_whose_last_chunk_is_punched_becomes_shorter(void **state)
{
	struct rig g;
	size_t start = 3 * C, stop = 4 * C;

	(void)state;
	only_standin();
	rig_open(&g, 0);
	assert_int_equal(ftruncate(g.fd, 0), 0);
	assert_int_equal(rig_write(&g, 0, 0, 4 * C), (int64_t)(4 * C));
	standin_settle(g.path, C);
	assert_int_equal(lseek(g.fd, 0, SEEK_END), 4 * C);
	assert_int_equal(lib.punchhole(g.fd, 1, &start, &stop, 0), 0);
	assert_int_equal(lseek(g.fd, 0, SEEK_END), 4 * C);
	standin_settle(g.path, C);
	assert_int_equal(lseek(g.fd, 0, SEEK_END), 3 * C);
	rig_close(&g);
}

#define FAULT_CASE(name) cmocka_unit_test_teardown(name, end)

const struct CMUnitTest fault_cases[] = {
	FAULT_CASE(the_nth_request_fails),
	FAULT_CASE(a_write_fails_and_was_done),
	FAULT_CASE(a_torn_write_tears_between_chunks),
	FAULT_CASE(a_read_comes_back_short),
	FAULT_CASE(a_whole_batch_fails),
	FAULT_CASE(a_chance_is_about_what_it_says),
	FAULT_CASE(what_is_held_comes_later),
	FAULT_CASE(a_mount_may_be_read_only),
	FAULT_CASE(making_things_may_fail),
	FAULT_CASE(a_daemon_that_died_completes_nothing),
	FAULT_CASE(the_next_daemon_knows_nothing),
	FAULT_CASE(a_stale_descriptor_cannot_be_deregistered),
	FAULT_CASE(loading_with_a_huge_limit_of_files_ends_the_process),
	FAULT_CASE(a_file_whose_last_chunk_is_punched_becomes_shorter),
};
const size_t n_fault_cases = sizeof fault_cases / sizeof fault_cases[0];
