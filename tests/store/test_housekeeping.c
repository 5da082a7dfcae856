/*
 * test_housekeeping.c - the SQLite store's housekeeping beside a busy writer: what it must not keep
 * waiting, and what it must not throw away.
 *
 * Runs on the powerloss VFS, whose hook sees every sync.
 */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench_store.h"
#include "powerloss_vfs.h"

#define BATCH (64u << 10)
#define LARGE (4 << 20) /* unsynced bytes of the database: more than a writer may wait for */
#define COPY (1 << 20)  /* of them, at the least, when a copy has just been made */
#define STUCK_MS 5000

struct watch {
	const char *database;
	_Atomic uint64_t appended;
	_Atomic bool done, stuck, fail_next;
	_Atomic unsigned large; /* syncs that a writer must not wait for */
};

/* A large sync of the database takes until somebody has appended meanwhile. */
static bool watch_sync(void *ctx, const char *path, int64_t unsynced)
{
	struct watch *w = ctx;
	uint64_t before = atomic_load(&w->appended);

	if (strcmp(path, w->database) != 0)
		return true;
	if (unsynced >= COPY && atomic_exchange(&w->fail_next, false))
		return false;
	if (unsynced < LARGE || atomic_load(&w->stuck))
		return true;
	atomic_fetch_add(&w->large, 1);
	for (int ms = 0; ms < STUCK_MS; ms += 5) {
		if (atomic_load(&w->appended) != before || atomic_load(&w->done))
			return true;
		poll(NULL, 0, 5);
	}
	atomic_store(&w->stuck, true);
	return true;
}

static struct skv_store *open_watched(struct bench *b, struct watch *w)
{
	powerloss_reset();
	powerloss_on_sync(watch_sync, w);
	b->options.vfs = POWERLOSS_VFS;
	return bench_open(b);
}

static void append_some(struct bench *b, struct skv_store *s, uint64_t fence, uint64_t first,
			uint64_t last, struct watch *w)
{
	uint8_t *bytes = malloc(BATCH);

	assert_non_null(bytes);
	for (uint64_t seq = first; seq <= last; seq++) {
		bench_fill(seq, bytes, BATCH);
		bench_ok(b, skv_store_append(s, 0, fence, seq, bytes, BATCH, 0, &b->err));
		atomic_store(&w->appended, seq);
	}
	free(bytes);
}

/* SQLite's own last copy of a log syncs the database while writers are kept out. What earlier
 * copies wrote must have been synced by then. */
static void appends_go_on_while_the_database_is_synced(void **state)
{
	struct bench *b = *state;
	struct watch w = { .database = b->path };
	struct skv_store *s = open_watched(b, &w);
	uint64_t fence = bench_acquire(b, s, "me", 60000);
	struct stat st;

	append_some(b, s, fence, 1, 2000, &w);
	atomic_store(&w.done, true);
	assert_int_equal(stat(bench_file(b, "-wal"), &st), 0);
	skv_store_close(s);
	powerloss_on_sync(NULL, NULL);
	assert_false(w.stuck);
	assert_true(w.large > 0); /* the test had large logs to wait for */
	assert_true(st.st_size < 100 << 20); /* of 125: the log did begin anew */
}

/* After a sync of the database that failed, a later one proves nothing: only the log has it all. */
static void a_failed_copy_keeps_the_log(void **state)
{
	enum { MANY = 1200 };
	struct bench *b = *state;
	struct watch w = { .database = b->path, .fail_next = true };
	struct skv_store *s = open_watched(b, &w);
	uint64_t fence = bench_acquire(b, s, "me", 60000);
	struct skv_store_stats st;

	append_some(b, s, fence, 1, MANY, &w);
	for (int i = 0; i < 2000 && atomic_load(&w.fail_next); i++)
		poll(NULL, 0, 5);
	assert_false(atomic_load(&w.fail_next));
	append_some(b, s, fence, MANY + 1, MANY + 10, &w);
	atomic_store(&w.done, true);
	skv_store_close(s);
	powerloss_on_sync(NULL, NULL);
	powerloss_apply(POWERLOSS_DROP_ALL, 1);
	s = bench_open(b);
	bench_ok(b, skv_store_stats_get(s, 0, &st, &b->err));
	assert_int_equal(st.last_seq, MANY + 10);
	free(bench_load(b, s, 0));
	skv_store_close(s);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, bench_setup, bench_teardown)

int main(void)
{
	const struct CMUnitTest normal[] = { CASE(appends_go_on_while_the_database_is_synced) };
	const struct CMUnitTest full[] = { CASE(a_failed_copy_keeps_the_log) };
	int failed;

	bench_kind = &bench_kinds[2];
	failed = cmocka_run_group_tests_name("busy writer", normal, NULL, NULL);
	bench_kind = &bench_kinds[1];
	failed += cmocka_run_group_tests_name("failed copy", full, NULL, NULL);
	return failed != 0;
}
