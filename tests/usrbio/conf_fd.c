/*
 * conf_fd.c - see conformance.h: mount points and registered descriptors.
 */
#include "conformance.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- is_hf3fs, extract_mount_point ----------------------------------------------------------- */

static void is_hf3fs_tells_files_of_the_mount(void **state)
{
	int fd = fresh_file(NULL, O_RDWR),
	    elsewhere = open("/proc/self/stat", O_RDONLY | O_CLOEXEC), ends[2];
	int dir = open(suite.mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_true(lib.is_hf3fs(fd));
	assert_true(lib.is_hf3fs(dir));
	assert_false(lib.is_hf3fs(elsewhere));
	assert_false(lib.is_hf3fs(ends[0]));
	assert_false(lib.is_hf3fs(-1));
	close(elsewhere);
	assert_false(lib.is_hf3fs(elsewhere));
	close(fd);
	close(dir);
	close(ends[0]);
	close(ends[1]);
}

static void extract_mount_point_returns_length_and_one(void **state)
{
	char out[256];

	(void)state;
	assert_int_equal(lib.extract_mount_point(out, sizeof out, suite.dir),
			 (int)strlen(suite.mount) + 1);
	assert_string_equal(out, suite.mount);
	assert_int_equal(lib.extract_mount_point(out, sizeof out, "/proc"), -1);
}

static void extract_mount_point_copies_only_what_fits(void **state)
{
	char out[256] = "untouched";

	(void)state;
	assert_true(lib.extract_mount_point(out, 2, suite.dir) > 2);
	assert_string_equal(out, "untouched");
}

/* An exception leaves the library through C. */
static int child_extract(const char *arg)
{
	char out[256];

	return lib.extract_mount_point(out, sizeof out, arg) == -1 ? 0 : 1;
}

static void extract_mount_point_of_nothing_ends_the_process(void **state)
{
	int status = run_child("extract", "/no/such/path");

	(void)state;
	assert_true(WIFSIGNALED(status));
}

/* ---- reg_fd, dereg_fd ------------------------------------------------------------------------ */

static void reg_fd_returns_a_negative_duplicate(void **state)
{
	int fd = fresh_file(NULL, O_RDWR), handle, before = open_fds();
	struct stat a, b;

	(void)state;
	handle = lib.reg_fd(fd, 0);
	assert_true(handle <= 0 && -handle != fd);
	assert_int_equal(fstat(fd, &a), 0);
	assert_int_equal(fstat(-handle, &b), 0);
	assert_int_equal(a.st_ino, b.st_ino);
	lib.dereg_fd(fd);
	assert_int_equal(open_fds(), before);
	close(fd);
}

static void reg_fd_fails_with_a_positive_errno(void **state)
{
	int elsewhere = open("/proc/self/stat", O_RDONLY | O_CLOEXEC),
	    fd = fresh_file(NULL, O_RDWR);

	(void)state;
	assert_int_equal(lib.reg_fd(elsewhere, 0), EBADF);
	assert_int_equal(lib.reg_fd(-1, 0), EBADF);
	assert_true(lib.reg_fd(fd, 0) <= 0);
	assert_int_equal(lib.reg_fd(fd, 0), EINVAL);
	lib.dereg_fd(fd);
	assert_true(lib.reg_fd(fd, 0) <= 0);
	lib.dereg_fd(fd);
	close(fd);
	close(elsewhere);
}

/* A registration outlives its descriptor, and then nobody can get rid of it. */
static void reg_fd_of_a_number_closed_without_dereg_is_einval(void **state)
{
	int fd = fresh_file(NULL, O_RDWR), next;

	(void)state;
	assert_true(lib.reg_fd(fd, 0) <= 0);
	close(fd);
	next = fresh_file(NULL, O_RDWR);
	assert_int_equal(next, fd); /* the lowest number that is free */
	assert_int_equal(lib.reg_fd(next, 0), EINVAL);
	lib.dereg_fd(next); /* a file of the mount has that number again: this works */
	assert_true(lib.reg_fd(next, 0) <= 0);
	lib.dereg_fd(next);
	close(next);
}

/* The duplicate gets the number of a file that was closed without dereg. */
static void reg_fd_whose_duplicate_is_taken_is_einval(void **state)
{
	int a = fresh_file(NULL, O_RDWR), b = fresh_file(NULL, O_RDWR), fds, again;

	(void)state;
	assert_true(lib.reg_fd(a, 0) <= 0);
	close(a);
	fds = open_fds();
	assert_int_equal(lib.reg_fd(b, 0), EINVAL);
	assert_int_equal(open_fds(), fds);
	again = fresh_file(NULL, O_RDWR);
	assert_int_equal(again, a);
	lib.dereg_fd(again);
	assert_true(lib.reg_fd(b, 0) <= 0);
	lib.dereg_fd(b);
	close(again);
	close(b);
}

static void prep_accepts_all_forms_of_a_descriptor(void **state)
{
	struct rig g;
	struct hf3fs_cqe cqe[3];
	int dup;

	(void)state;
	rig_open(&g, 0);
	dup = -g.handle;
	assert_true(lib.prep_io(&g.write, &g.iov, false, g.iov.base, g.fd, 0, 4096, NULL) >= 0);
	assert_true(lib.prep_io(&g.write, &g.iov, false, g.iov.base, dup, 4096, 4096, NULL) >= 0);
	assert_true(lib.prep_io(&g.write, &g.iov, false, g.iov.base, -dup, 8192, 4096, NULL) >= 0);
	lib.submit_ios(&g.write);
	wait_all(&g.write, cqe, 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(cqe[i].result, 4096);
	rig_close(&g);
}

/* The duplicate's place in the table is cleared, the descriptor's own is not. */
static void dereg_of_the_duplicate_keeps_the_registration(void **state)
{
	struct rig g;
	struct hf3fs_cqe cqe;
	int dup, fds;

	(void)state;
	rig_open(&g, 0);
	dup = -g.handle;
	fds = open_fds();
	lib.dereg_fd(dup);
	assert_int_equal(lib.prep_io(&g.read, &g.iov, true, g.iov.base, dup, 0, 4096, NULL),
			 -EBADF);
	assert_true(lib.prep_io(&g.read, &g.iov, true, g.iov.base, g.fd, 0, 4096, NULL) >= 0);
	lib.submit_ios(&g.read);
	wait_all(&g.read, &cqe, 1);
	assert_int_equal(lib.reg_fd(g.fd, 0), EINVAL);
	assert_int_equal(open_fds(), fds);
	lib.dereg_fd(g.fd);
	assert_true(open_fds() < fds);
	rig_close(&g);
}

static void prep_knows_how_a_descriptor_was_opened(void **state)
{
	struct rig g;
	int reads, writes;

	(void)state;
	rig_open(&g, 0);
	reads = open(g.path, O_RDONLY | O_CLOEXEC);
	writes = open(g.path, O_WRONLY | O_CLOEXEC);
	assert_true(lib.reg_fd(reads, 0) <= 0 && lib.reg_fd(writes, 0) <= 0);
	assert_int_equal(lib.prep_io(&g.write, &g.iov, false, g.iov.base, reads, 0, 4096, NULL),
			 -EACCES);
	assert_int_equal(lib.prep_io(&g.read, &g.iov, true, g.iov.base, writes, 0, 4096, NULL),
			 -EACCES);
	lib.dereg_fd(reads);
	lib.dereg_fd(writes);
	close(reads);
	close(writes);
	rig_close(&g);
}

static void a_closed_descriptor_is_good_while_registered(void **state)
{
	struct rig g;
	int other;

	(void)state;
	rig_open(&g, 0);
	other = open(g.path, O_RDWR | O_CLOEXEC);
	close(g.fd);
	pattern(g.iov.base, 4096, 1);
	assert_int_equal(rig_write(&g, 0, 0, 4096), 4096);
	assert_int_equal(rig_read(&g, 8192, 0, 4096), 4096);
	assert_true(is_pattern(g.iov.base + 8192, 4096, 1));
	assert_int_equal(dup2(other, g.fd), g.fd); /* so that it can be deregistered */
	close(other);
	rig_close(&g);
}

static void an_unregistered_descriptor_is_ebadf(void **state)
{
	struct rig g;
	int fd = fresh_file(NULL, O_RDWR);

	(void)state;
	rig_open(&g, 0);
	assert_int_equal(lib.prep_io(&g.read, &g.iov, true, g.iov.base, fd, 0, 4096, NULL), -EBADF);
	assert_int_equal(lib.prep_io(&g.read, &g.iov, true, g.iov.base, 0x7ffffff0, 0, 4096, NULL),
			 -EINVAL);
	close(fd);
	rig_close(&g);
}

/* The daemon finds files by what is open when it gets to the request. */
static void a_file_that_nobody_has_open_any_more_is_ebadf(void **state)
{
	struct rig g;
	struct hf3fs_cqe cqe;

	(void)state;
	rig_open(&g, 0);
	rig_prep(&g, true, 0, 0, 4096, 0);
	lib.dereg_fd(g.fd);
	close(g.fd);
	unlink(g.path);
	assert_int_equal(lib.submit_ios(&g.read), 0);
	wait_all(&g.read, &cqe, 1);
	assert_int_equal(cqe.result, -EBADF);
	g.fd = fresh_file(g.path, O_RDWR);
	rig_close(&g);
}

/* ---- hardlink -------------------------------------------------------------------------------- */

static void hardlink_fails_with_a_positive_errno(void **state)
{
	char path[400], name[420];
	int fd = fresh_file(path, O_RDWR);

	(void)state;
	snprintf(name, sizeof name, "%s.link", path);
	assert_int_equal(lib.hardlink(path, name), 0);
	assert_int_equal(access(name, F_OK), 0);
	assert_int_equal(lib.hardlink(path, name), EEXIST);
	assert_int_equal(lib.hardlink("/no/such/path", name), ENOENT);
	unlink(name);
	close(fd);
}

const struct CMUnitTest fd_cases[] = {
	cmocka_unit_test(is_hf3fs_tells_files_of_the_mount),
	cmocka_unit_test(extract_mount_point_returns_length_and_one),
	cmocka_unit_test(extract_mount_point_copies_only_what_fits),
	cmocka_unit_test(extract_mount_point_of_nothing_ends_the_process),
	cmocka_unit_test(reg_fd_returns_a_negative_duplicate),
	cmocka_unit_test(reg_fd_fails_with_a_positive_errno),
	cmocka_unit_test(reg_fd_of_a_number_closed_without_dereg_is_einval),
	cmocka_unit_test(reg_fd_whose_duplicate_is_taken_is_einval),
	cmocka_unit_test(prep_accepts_all_forms_of_a_descriptor),
	cmocka_unit_test(dereg_of_the_duplicate_keeps_the_registration),
	cmocka_unit_test(prep_knows_how_a_descriptor_was_opened),
	cmocka_unit_test(a_closed_descriptor_is_good_while_registered),
	cmocka_unit_test(an_unregistered_descriptor_is_ebadf),
	cmocka_unit_test(a_file_that_nobody_has_open_any_more_is_ebadf),
	cmocka_unit_test(hardlink_fails_with_a_positive_errno),
};
const size_t n_fd_cases = sizeof fd_cases / sizeof fd_cases[0];

const struct child fd_children[] = { { "extract", child_extract }, { NULL, NULL } };
