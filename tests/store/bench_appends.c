/*
 * bench_appends.c - appends a second of 16 KiB batches: the store in FULL and in NORMAL, against a
 * bare SQLite that inserts the same bytes, one commit each, with the same setting of `synchronous`.
 *
 * Usage: bench_appends [folder [seconds]]. The folder should lie on the disk that is meant; tmpfs
 * has no syncs. Not a test: it prints numbers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sqlite3.h>

#include <skv/store.h>

#include "bench_store.h"

#define BATCH 16384
#define CHECKPOINT_EVERY 4096 /* appends: 64 MiB, like a manager's journal */

static uint8_t bytes[BATCH];
static char path[512];

static void remove_files(void)
{
	static const char *const tails[] = {
		"", "-wal", "-shm", "-checkpoint", "-checkpoint-wal", "-checkpoint-shm", "-reserve"
	};
	char name[600];

	for (size_t i = 0; i < sizeof tails / sizeof tails[0]; i++) {
		snprintf(name, sizeof name, "%s%s", path, tails[i]);
		unlink(name);
	}
}

static void die(const char *what)
{
	fprintf(stderr, "bench_appends: %s\n", what);
	exit(1);
}

static void checkpoint(struct skv_store *s, uint64_t fence, uint64_t upto)
{
	uint64_t id;

	if (skv_store_checkpoint_begin(s, 0, fence, &id, NULL) != SKV_OK ||
	    skv_store_checkpoint_slice(s, 0, fence, id, 0, bytes, BATCH, NULL) != SKV_OK ||
	    skv_store_checkpoint_commit(s, 0, fence, id, 1, upto, NULL) != SKV_OK)
		die("checkpoint");
}

static void run_store(enum skv_durability durability, double seconds)
{
	const struct skv_store_options o = { .path = path, .durability = durability };
	uint64_t fence, seq = 0, begin, end, n = (uint64_t)(seconds * 1e6);
	struct skv_store_counters c;
	struct skv_error err;
	struct skv_store *s;

	remove_files();
	if (skv_store_open(&skv_store_sqlite, &o, &s, &err) != SKV_OK)
		die(err.message);
	if (skv_store_acquire(s, 0, "bench", 600000, &fence, NULL, 0, &err) != SKV_OK)
		die(err.message);
	begin = skv_now_us();
	do {
		bench_fill(++seq, bytes, 64);
		if (skv_store_append(s, 0, fence, seq, bytes, BATCH, 0, &err) != SKV_OK)
			die(err.message);
		if (seq % CHECKPOINT_EVERY == 0)
			checkpoint(s, fence, seq);
		end = skv_now_us();
	} while (end - begin < n);
	skv_store_counters_get(s, &c);
	printf("store %-6s %9.0f appends/s, mean %6.0f us, slowest %7llu us\n",
	       durability == SKV_DURABILITY_FULL ? "FULL" : "NORMAL",
	       (double)seq / ((double)(end - begin) / 1e6), (double)c.append_us / (double)c.appends,
	       (unsigned long long)c.append_max_us);
	skv_store_close(s);
	remove_files();
}

static void exec(sqlite3 *db, const char *sql)
{
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		die(sqlite3_errmsg(db));
}

static void run_bare(const char *synchronous, double seconds)
{
	uint64_t n = 0, begin, end, slowest = 0, last;
	char pragma[64];
	sqlite3_stmt *st;
	sqlite3 *db;

	remove_files();
	if (sqlite3_open(path, &db) != SQLITE_OK)
		die("cannot open");
	snprintf(pragma, sizeof pragma, "PRAGMA synchronous = %s", synchronous);
	exec(db, "PRAGMA journal_mode = WAL");
	exec(db, pragma);
	exec(db, "CREATE TABLE t(id INTEGER PRIMARY KEY, bytes BLOB)");
	if (sqlite3_prepare_v2(db, "INSERT INTO t VALUES(?1, ?2)", -1, &st, NULL) != SQLITE_OK)
		die("prepare");
	begin = last = skv_now_us();
	do {
		bench_fill(++n, bytes, 64);
		sqlite3_bind_int64(st, 1, (sqlite3_int64)n);
		sqlite3_bind_blob(st, 2, bytes, BATCH, SQLITE_STATIC);
		if (sqlite3_step(st) != SQLITE_DONE)
			die("insert");
		sqlite3_reset(st);
		end = skv_now_us();
		slowest = end - last > slowest ? end - last : slowest;
		last = end;
	} while (end - begin < (uint64_t)(seconds * 1e6));
	printf("bare  %-6s %9.0f commits/s, mean %6.0f us, slowest %7llu us\n", synchronous,
	       (double)n / ((double)(end - begin) / 1e6), (double)(end - begin) / (double)n,
	       (unsigned long long)slowest);
	sqlite3_finalize(st);
	sqlite3_close(db);
	remove_files();
}

int main(int argc, char **argv)
{
	double seconds = argc > 2 ? atof(argv[2]) : 3;

	snprintf(path, sizeof path, "%s/bench-%ld.db", argc > 1 ? argv[1] : "/tmp", (long)getpid());
	bench_fill(1, bytes, sizeof bytes);
	run_bare("FULL", seconds);
	run_store(SKV_DURABILITY_FULL, seconds);
	run_bare("NORMAL", seconds);
	run_store(SKV_DURABILITY_NORMAL, seconds);
	return 0;
}
