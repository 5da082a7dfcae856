/*
 * test_faults.c - every system call of open, create, remove and probe fails once, and the process
 * dies at every one of them. Afterwards nothing half is under a real name, nothing is left over,
 * and the same call simply works. Also: every allocation of memory fails once.
 */
#include "bench_dir.h"
#include "steps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <skv/mem.h>

#define MANY 200 /* more steps than any call has */

/* The whole life of a storage: open, make a file, check it, remove another, probe. */
static int scenario(struct bench *b)
{
	struct skv_storage_health h;
	struct skv_storage *s = NULL;
	int rc = skv_storage_open(b->ops, &b->config, &s, &b->err);

	if (rc != SKV_OK)
		return rc;
	rc = skv_storage_create_file(s, 0, LENGTH, &b->err);
	if (rc == SKV_OK)
		rc = skv_storage_check_file(s, 0, LENGTH, &b->err);
	if (rc == SKV_OK)
		rc = skv_storage_create_file(s, 1, LENGTH, &b->err);
	if (rc == SKV_OK)
		rc = skv_storage_remove_file(s, 1, &b->err);
	if (rc == SKV_OK)
		rc = skv_storage_probe(s, SKV_PROBE_WRITE, &h, &b->err);
	skv_storage_close(s);
	return rc;
}

/* A file with a real name is complete: half files exist under temporary names only. */
static void nothing_half(struct bench *b)
{
	struct skv_storage *s;

	if (!bench_has(b, SKV_STORAGE_MARKER))
		return;
	s = bench_open(b);
	for (uint32_t i = 0; i < 2; i++) {
		int rc = skv_storage_check_file(s, i, LENGTH, &b->err);

		assert_true(rc == SKV_OK || rc == SKV_E_NOT_FOUND);
	}
	skv_storage_close(s);
}

/* The same scenario works now, and leaves exactly marker, probe file and one slab file. */
static void all_well(struct bench *b)
{
	if (scenario(b) != SKV_OK)
		fail_msg("afterwards: %s", b->err.message);
	assert_int_equal(bench_entries(b), 3);
}

static void every_step_fails(struct bench *b, int error)
{
	unsigned n = 1;

	for (; n < MANY; n++) {
		int rc;

		steps_fail_at(n, error);
		rc = scenario(b);
		if (steps_stop() < n)
			break;
		if (rc != SKV_OK) {
			assert_int_equal(b->err.status, rc);
			assert_string_not_equal(b->err.message, "");
		}
		nothing_half(b);
		all_well(b);
		assert_int_equal(unlink(bench_path(b, "slab-00000000.kvs")), 0);
		assert_int_equal(unlink(bench_path(b, SKV_STORAGE_MARKER)), 0);
		assert_int_equal(unlink(bench_path(b, ".slabkv-probe")), 0);
	}
	assert_true(n > 20 && n < MANY);
	print_message("failed at each of %u steps with %s\n", n - 1, strerror(error));
}

static void survives_an_error_at_every_step(void **state) { every_step_fails(*state, EIO); }
static void survives_enospc_at_every_step(void **state) { every_step_fails(*state, ENOSPC); }

static void interrupted_calls_are_repeated(void **state)
{
	struct bench *b = *state;

	/* EINTR can come from writes and allocation; those are repeated without a word. */
	for (unsigned n = 1; n < MANY; n++) {
		char step;
		int rc;

		steps_fail_at(n, EINTR);
		rc = scenario(b);
		if (steps_stop() < n)
			break;
		step = steps_trace()[n - 1];
		if (step == 'w' || step == 'a' || step == 't')
			assert_int_equal(rc, SKV_OK);
		all_well(b);
		assert_int_equal(unlink(bench_path(b, "slab-00000000.kvs")), 0);
		assert_int_equal(unlink(bench_path(b, SKV_STORAGE_MARKER)), 0);
		assert_int_equal(unlink(bench_path(b, ".slabkv-probe")), 0);
	}
}

/* Runs the scenario in a child that dies at step n. False when it got through. */
static bool dies_at(struct bench *b, unsigned n)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		steps_fail_at(n, 0);
		_exit(scenario(b) == SKV_OK ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_true(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 99);
	return WEXITSTATUS(status) == 99;
}

static void survives_death_at_every_step(void **state)
{
	struct bench *b = *state;
	unsigned n = 1;

	for (; n < MANY && dies_at(b, n); n++) {
		nothing_half(b);
		all_well(b);
		assert_int_equal(unlink(bench_path(b, "slab-00000000.kvs")), 0);
		assert_int_equal(unlink(bench_path(b, SKV_STORAGE_MARKER)), 0);
		assert_int_equal(unlink(bench_path(b, ".slabkv-probe")), 0);
	}
	assert_true(n > 20 && n < MANY);
	print_message("died at each of %u steps\n", n - 1);
}

static void survives_every_failed_allocation(void **state)
{
	struct bench *b = *state;
	unsigned n = 1;

	steps_no_fallocate(EOPNOTSUPP); /* so that the buffer of zeros is one of them */
	for (; n < MANY; n++) {
		int rc;

		skv_mem_fail_at(n);
		rc = scenario(b);
		if (skv_mem_count() < n)
			break;
		skv_mem_fail_at(0);
		assert_int_equal(rc, SKV_E_NOMEM);
		all_well(b);
		assert_int_equal(unlink(bench_path(b, "slab-00000000.kvs")), 0);
	}
	skv_mem_fail_at(0);
	steps_no_fallocate(0);
	assert_true(n > 3 && n < MANY);
}

static void zeros_are_written_where_fallocate_is_missing(void **state)
{
	struct bench *b = *state;
	struct skv_storage *s = bench_open(b);
	const uint64_t odd = 3 * (1 << 20) + 4096 + 17; /* more than one buffer, and a rest */
	const int missing[] = { EOPNOTSUPP, ENOSYS };
	struct stat st;

	for (uint32_t i = 0; i < 2; i++) {
		steps_no_fallocate(missing[i]);
		assert_int_equal(skv_storage_create_file(s, i, odd, &b->err), SKV_OK);
		assert_int_equal(skv_storage_check_file(s, i, odd, &b->err), SKV_OK);
	}
	steps_no_fallocate(0);
	assert_int_equal(stat(bench_path(b, "slab-00000001.kvs"), &st), 0);
	assert_true((uint64_t)st.st_blocks * 512 >= odd);
	skv_storage_close(s);
}

static void allocation_errors_leave_nothing(void **state)
{
	static const struct {
		int error, status;
		const char *words;
	} row[] = {
		{ ENOSPC, SKV_E_NO_SPACE, "no room for a slab file of 262144 bytes" },
		{ EDQUOT, SKV_E_NO_SPACE, "no room for a slab file" },
		{ EFBIG, SKV_E_INVALID, "cannot make the slab file: File too large" },
		{ EIO, SKV_E_IO, "cannot make the slab file: Input/output error" },
		{ ESTALE, SKV_E_UNAVAILABLE, "cannot make the slab file" },
	};
	struct bench *b = *state;
	struct skv_storage *s = bench_open(b);

	for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
		steps_no_fallocate(row[i].error);
		assert_int_equal(skv_storage_create_file(s, 0, LENGTH, &b->err), row[i].status);
		bench_says(b, row[i].words);
		assert_int_equal(bench_entries(b), 2);
	}
	steps_no_fallocate(0);
	assert_int_equal(skv_storage_create_file(s, 0, LENGTH, &b->err), SKV_OK);
	skv_storage_close(s);
}

/* File systems that cannot rename without replacing, or have no flock. */
static void poorer_file_systems_work(void **state)
{
	struct bench *b = *state;
	const int poor[] = { EINVAL, ENOSYS };

	skv_storage_close(bench_open(b));
	for (size_t i = 0; i < 2; i++) {
		for (unsigned n = 1; n < MANY; n++) {
			steps_fail_at(n, poor[i]);
			(void)scenario(b);
			if (steps_stop() < n)
				break;
			nothing_half(b);
			all_well(b);
		}
	}
}

static void write_mine(void *b) { bench_write(b, "slab-00000000.kvs", "mine", 4); }

/* Somebody puts a file under the name between our check and our rename: it stays. */
static void a_rename_never_replaces(void **state)
{
	struct bench *b = *state;
	struct skv_storage *s = bench_open(b);
	struct stat st;
	unsigned at;

	steps_fail_at(0, 0);
	assert_int_equal(skv_storage_create_file(s, 5, LENGTH, &b->err), SKV_OK);
	at = (unsigned)(strchr(steps_trace(), 'r') - steps_trace()) + 1;
	assert_int_equal(skv_storage_remove_file(s, 5, &b->err), SKV_OK);
	for (int poor = 0; poor < 2; poor++) {
		steps_before_rename(write_mine, b);
		/* The second time the file system cannot rename without replacing. */
		steps_fail_at(poor ? at : 0, EINVAL);
		assert_int_equal(skv_storage_create_file(s, 0, LENGTH, &b->err), SKV_E_IN_USE);
		(void)steps_stop();
		assert_int_equal(stat(bench_path(b, "slab-00000000.kvs"), &st), 0);
		assert_int_equal(st.st_size, 4);
		assert_int_equal(bench_entries(b), 3); /* and nothing is left of ours */
		assert_int_equal(unlink(bench_path(b, "slab-00000000.kvs")), 0);
	}
	skv_storage_close(s);
}

/* Over quota the file system still tells of free space; we cannot have it. */
static void over_quota_means_full(void **state)
{
	struct bench *b = *state;
	struct skv_storage *s = bench_open(b);
	struct skv_storage_health h;
	unsigned n;

	steps_fail_at(0, 0);
	assert_int_equal(skv_storage_probe(s, SKV_PROBE_WRITE, &h, &b->err), SKV_OK);
	assert_true(h.free_bytes > 0);
	n = (unsigned)(strchr(steps_trace(), 'w') - steps_trace()) + 1;
	steps_fail_at(n, EDQUOT);
	assert_int_equal(skv_storage_probe(s, SKV_PROBE_WRITE, &h, &b->err), SKV_OK);
	assert_int_equal(h.free_bytes, 0);
	assert_int_equal(b->err.status, SKV_OK);
	(void)steps_stop();
	skv_storage_close(s);
}

/* Durable before told: the file is synced before it gets its name, the directory after. */
static void the_order_of_steps_is_durable(void **state)
{
	struct bench *b = *state;
	/* 3FS allocates nothing */
	const char *made = b->ops == &skv_storage_hf3fs ? "oltwwsrd" : "olawwsrd";
	struct skv_storage *s;

	steps_fail_at(0, 0);
	s = bench_open(b);
	/* Parent synced; marker: looked for, written, synced, named,
	 * directory synced; then the probe. */
	assert_non_null(strstr(steps_trace(), "d"));
	assert_non_null(strstr(steps_trace(), "wsrd"));
	steps_fail_at(0, 0);
	assert_int_equal(skv_storage_create_file(s, 0, LENGTH, &b->err), SKV_OK);
	assert_non_null(strstr(steps_trace(), made));
	assert_string_equal(strstr(steps_trace(), made), made);
	steps_fail_at(0, 0);
	assert_int_equal(skv_storage_create_file(s, 0, LENGTH, &b->err), SKV_OK);
	/* the first call may have failed right before */
	assert_non_null(strchr(steps_trace(), 'd'));
	assert_null(strchr(steps_trace(), 'w'));
	steps_fail_at(0, 0);
	assert_int_equal(skv_storage_remove_file(s, 0, &b->err), SKV_OK);
	assert_int_equal(steps_trace()[strlen(steps_trace()) - 1], 'd');
	skv_storage_close(s);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, bench_setup, bench_teardown)
#define T3FS(f) cmocka_unit_test_setup_teardown(f, bench_setup_hf3fs, bench_teardown)
	const struct CMUnitTest tests[] = {
		T(survives_an_error_at_every_step),
		T(survives_enospc_at_every_step),
		T(interrupted_calls_are_repeated),
		T(survives_death_at_every_step),
		T(survives_every_failed_allocation),
		T(zeros_are_written_where_fallocate_is_missing),
		T(allocation_errors_leave_nothing),
		T(poorer_file_systems_work),
		T(a_rename_never_replaces),
		T(over_quota_means_full),
		T(the_order_of_steps_is_durable),
		T3FS(survives_an_error_at_every_step),
		T3FS(survives_enospc_at_every_step),
		T3FS(interrupted_calls_are_repeated),
		T3FS(survives_death_at_every_step),
		T3FS(survives_every_failed_allocation),
		T3FS(poorer_file_systems_work),
		T3FS(the_order_of_steps_is_durable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
