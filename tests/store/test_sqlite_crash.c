/*
 * test_sqlite_crash.c - the SQLite store after kill -9, and after commits and syncs that failed.
 *
 * "A kill -9 now" is shown by copying the files while the store is open: a process that dies leaves
 * just what was written. Real kills are tried too.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench_store.h"
#include "powerloss_vfs.h"

static void copy_file(const char *from, const char *to)
{
	char buffer[65536];
	FILE *in = fopen(from, "rb"), *out;
	size_t n;

	if (!in)
		return;
	out = fopen(to, "wb");
	assert_non_null(out);
	while ((n = fread(buffer, 1, sizeof buffer, in)) > 0)
		assert_int_equal(fwrite(buffer, 1, n, out), n);
	fclose(in);
	fclose(out);
}

/* Asserts the content that another process would load if this one were killed now. */
static void would_hold(struct bench *b, const char *want)
{
	static const char *const tails[] = { "", "-wal", "-checkpoint", "-checkpoint-wal" };
	struct skv_store_options o = { .path = b->options.path };
	char path[128], to[160];
	struct skv_store *s;

	snprintf(path, sizeof path, "%s/copy.db", b->dir);
	for (size_t i = 0; i < sizeof tails / sizeof tails[0]; i++) {
		snprintf(to, sizeof to, "%s%s", path, tails[i]);
		unlink(to);
		copy_file(bench_file(b, tails[i]), to);
	}
	o.path = path;
	bench_ok(b, skv_store_open(&skv_store_sqlite, &o, &s, &b->err));
	bench_holds(b, s, 0, want);
	skv_store_close(s);
}

static void open_on_shim(struct bench *b)
{
	powerloss_reset();
	b->options.vfs = POWERLOSS_VFS;
}

/* Acquires through a store that is closed again: one that never acquired does no housekeeping,
 * whose own transactions would take part in the counting of syncs and settle things before the test
 * looks. */
static uint64_t acquire_aside(struct bench *b)
{
	struct skv_store *s = bench_open(b);
	uint64_t fence = bench_acquire(b, s, "me", 1000);

	skv_store_close(s);
	return fence;
}

/* The sync inside COMMIT fails: the batch is whole in the log, and nobody sees it. */
static void an_unknown_outcome_is_settled_before_it_is_asked(void **state)
{
	struct bench *b = *state;
	struct skv_store *s;
	uint64_t fence;

	if (bench_kind->durability != SKV_DURABILITY_FULL)
		return;
	open_on_shim(b);
	fence = acquire_aside(b);
	s = bench_open(b);
	bench_append(b, s, fence, 1, "one");
	powerloss_fail_sync_at(1);
	assert_int_equal(skv_store_append(s, 0, fence, 2, "ghost", 5, 0, &b->err),
			 SKV_E_UNKNOWN_OUTCOME);
	assert_int_equal(b->err.status, SKV_E_UNKNOWN_OUTCOME);
	/* The danger that this test is about is real: */
	would_hold(b, "0||1:one,2:ghost");
	/* A reader gets an answer that stays true. */
	bench_holds(b, s, 0, "0||1:one");
	would_hold(b, "0||1:one");
	bench_append(b, s, fence, 2, "two");
	would_hold(b, "0||1:one,2:two");
	skv_store_close(s);
}

static void an_unknown_outcome_of_a_put_is_settled_too(void **state)
{
	struct bench *b = *state;
	struct skv_buf v = { 0 };
	struct skv_store *s;
	uint64_t version = 0, fence;

	open_on_shim(b);
	fence = acquire_aside(b);
	s = bench_open(b);
	bench_ok(b, skv_store_put(s, NULL, "k", SKV_VERSION_NONE, "old", 3, NULL, &b->err));
	powerloss_fail_sync_at(1);
	assert_int_equal(skv_store_put(s, NULL, "k", 1, "new", 3, NULL, &b->err),
			 SKV_E_UNKNOWN_OUTCOME);
	bench_append(b, s, fence, 1, "one"); /* another connection's turn */
	would_hold(b, "0||1:one");
	bench_ok(b, skv_store_get(s, "k", &v, &version, &b->err));
	assert_int_equal(version, 1);
	assert_memory_equal(v.data, "old", 3);
	bench_ok(b, skv_store_put(s, NULL, "k", 1, "new", 3, &version, &b->err));
	assert_int_equal(version, 2);
	skv_buf_destroy(&v);
	skv_store_close(s);
}

/* When not even that can be written, nothing is answered that might not stay true. */
static void an_unknown_outcome_that_cannot_be_settled(void **state)
{
	struct bench *b = *state;
	struct skv_store_stats st;
	struct skv_store *s;
	uint64_t fence;

	open_on_shim(b);
	fence = acquire_aside(b);
	s = bench_open(b);
	powerloss_fail_sync_at(1);
	assert_int_equal(skv_store_put(s, NULL, "k", SKV_VERSION_NONE, "x", 1, NULL, &b->err),
			 SKV_E_UNKNOWN_OUTCOME);
	powerloss_fail_sync_at(1);
	assert_int_equal(skv_store_append(s, 0, fence, 1, "one", 3, 0, &b->err), SKV_E_STORE_IO);
	powerloss_fail_sync_at(1);
	assert_int_equal(skv_store_stats_get(s, 0, &st, &b->err), SKV_E_STORE_IO);
	bench_append(b, s, fence, 1, "one");
	bench_holds(b, s, 0, "0||1:one");
	skv_store_close(s);
}

static void a_failed_sync_is_not_forgotten(void **state)
{
	struct bench *b = *state;
	struct skv_store *s;
	uint64_t fence;

	if (bench_kind->durability != SKV_DURABILITY_NORMAL)
		return;
	open_on_shim(b);
	fence = acquire_aside(b);
	s = bench_open(b);
	bench_append(b, s, fence, 1, "one");
	powerloss_fail_sync_at(1);
	assert_int_equal(skv_store_sync(s, 0, &b->err), SKV_E_STORE_IO);
	assert_int_equal(skv_store_sync(s, 0, &b->err), SKV_E_STORE_IO);
	assert_non_null(strstr(b->err.message, "restart the manager"));
	bench_append(b, s, fence, 2, "two"); /* the promise of an append is another one */
	skv_store_close(s);
	s = bench_open(b);
	bench_ok(b, skv_store_sync(s, 0, &b->err));
	bench_holds(b, s, 0, "0||1:one,2:two");
	skv_store_close(s);
}

static void a_failed_slice_fails_its_checkpoint_only(void **state)
{
	struct bench *b = *state;
	struct skv_store *s;
	uint64_t fence, id;

	open_on_shim(b);
	fence = acquire_aside(b);
	s = bench_open(b);
	bench_append(b, s, fence, 1, "one");
	bench_ok(b, skv_store_checkpoint_begin(s, 0, fence, &id, &b->err));
	powerloss_fail_sync_at(1);
	assert_int_not_equal(skv_store_checkpoint_slice(s, 0, fence, id, 0, "x", 1, &b->err),
			     SKV_OK);
	bench_append(b, s, fence, 2, "two");
	assert_int_equal(skv_store_checkpoint_commit(s, 0, fence, id, 1, 2, &b->err),
			 SKV_E_CONFLICT);
	bench_ok(b, skv_store_checkpoint_slice(s, 0, fence, id, 0, "slice", 5, &b->err));
	bench_ok(b, skv_store_checkpoint_commit(s, 0, fence, id, 1, 2, &b->err));
	bench_holds(b, s, 0, "2|slice|");
	skv_store_close(s);
}

/* Each acknowledged append is told through a pipe before the next one begins. */
static void kill_9_loses_nothing(void **state)
{
	struct bench *b = *state;

	for (int round = 0; round < 5; round++) {
		uint64_t told = 0, seq;
		struct skv_store_stats st;
		struct skv_store *s;
		int p[2];
		pid_t pid;

		assert_int_equal(pipe(p), 0);
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0) {
			uint64_t fence = 0;
			int rc = skv_store_open(bench_kind->ops, &b->options, &s, &b->err);

			if (rc == SKV_OK)
				rc = skv_store_acquire(s, 0, "child", 1000, &fence, NULL, 0,
						       &b->err);
			if (rc == SKV_OK)
				rc = skv_store_stats_get(s, 0, &st, &b->err);
			for (seq = st.last_seq + 1; rc == SKV_OK; seq++) {
				rc = skv_store_append(s, 0, fence, seq, "child", 5, 0, &b->err);
				if (rc == SKV_OK &&
				    write(p[1], &seq, sizeof seq) != (ssize_t)sizeof seq)
					rc = SKV_E_IO;
			}
			_exit(1);
		}
		close(p[1]);
		for (int i = 0; i < 50 + round * 37; i++)
			assert_int_equal(read(p[0], &told, sizeof told), sizeof told);
		kill(pid, SIGKILL);
		while (read(p[0], &seq, sizeof seq) == (ssize_t)sizeof seq)
			told = seq;
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		close(p[0]);
		s = bench_open(b);
		bench_ok(b, skv_store_stats_get(s, 0, &st, &b->err));
		assert_true(st.last_seq == told || st.last_seq == told + 1);
		free(bench_load(b, s, 0));
		skv_store_close(s);
	}
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, bench_setup, bench_teardown)

int main(void)
{
	const struct CMUnitTest cases[] = {
		CASE(an_unknown_outcome_is_settled_before_it_is_asked),
		CASE(an_unknown_outcome_of_a_put_is_settled_too),
		CASE(an_unknown_outcome_that_cannot_be_settled),
		CASE(a_failed_sync_is_not_forgotten),
		CASE(a_failed_slice_fails_its_checkpoint_only),
		CASE(kill_9_loses_nothing),
	};
	int failed = 0;

	for (int i = 1; i <= 2; i++) {
		bench_kind = &bench_kinds[i];
		failed += cmocka_run_group_tests_name(bench_kind->name, cases, NULL, NULL);
	}
	return failed != 0;
}
