/*
 * sqlite_append.c - the floor of durability: bare SQLite in WAL mode that inserts the
 * same bytes in one commit after the other, with synchronous FULL or NORMAL. No journal
 * format, no fencing, no threads.
 *
 * Usage: sqlite_append FOLDER BYTES FULL|NORMAL SECONDS. One JSON object on stdout: commits_per_s,
 * p50_us, p99_us, max_us. Not a test.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sqlite3.h>

#include "bench_util.h"

static void exec(sqlite3 *db, const char *sql)
{
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		bench_die(sqlite3_errmsg(db));
}

static void remove_files(const char *path)
{
	static const char *const tails[] = { "", "-wal", "-shm" };
	char name[600];

	for (size_t i = 0; i < 3; i++) {
		snprintf(name, sizeof name, "%s%s", path, tails[i]);
		unlink(name);
	}
}

static void run(sqlite3 *db, const void *bytes, int n_bytes, double seconds, struct bench_times *t)
{
	uint64_t begin = bench_now_us(), now = begin;
	sqlite3_stmt *st;

	if (sqlite3_prepare_v2(db, "INSERT INTO t VALUES(NULL, ?1)", -1, &st, NULL) != SQLITE_OK)
		bench_die(sqlite3_errmsg(db));
	do {
		uint64_t last = now;

		sqlite3_bind_blob(st, 1, bytes, n_bytes, SQLITE_STATIC);
		if (sqlite3_step(st) != SQLITE_DONE)
			bench_die(sqlite3_errmsg(db));
		sqlite3_reset(st);
		now = bench_now_us();
		bench_times_add(t, now - last);
	} while (now - begin < (uint64_t)(seconds * 1e6));
	sqlite3_finalize(st);
	printf("{\"bytes\": %d, \"commits_per_s\": %.1f, \"p50_us\": %" PRIu64
	       ", \"p99_us\": %" PRIu64 ", \"max_us\": %" PRIu64 "}\n",
	       n_bytes, (double)t->n * 1e6 / (double)(now - begin), bench_quantile(t, 0.5),
	       bench_quantile(t, 0.99), bench_quantile(t, 1));
}

int main(int argc, char **argv)
{
	struct bench_times times = { 0 };
	char path[512], pragma[64];
	sqlite3 *db;
	void *data;
	int bytes;

	if (argc < 5 || (strcmp(argv[3], "FULL") != 0 && strcmp(argv[3], "NORMAL") != 0))
		bench_die("usage: sqlite_append FOLDER BYTES FULL|NORMAL SECONDS");
	bytes = atoi(argv[2]);
	snprintf(path, sizeof path, "%s/floor-%ld.db", argv[1], (long)getpid());
	remove_files(path);
	if (bytes < 1 || sqlite3_open(path, &db) != SQLITE_OK)
		bench_die("cannot open the database");
	snprintf(pragma, sizeof pragma, "PRAGMA synchronous = %s", argv[3]);
	exec(db, "PRAGMA journal_mode = WAL");
	exec(db, pragma);
	exec(db, "CREATE TABLE t(id INTEGER PRIMARY KEY, bytes BLOB)");
	data = bench_memory((size_t)bytes);
	run(db, data, bytes, strtod(argv[4], NULL), &times);
	sqlite3_close(db);
	free(data);
	bench_times_free(&times);
	remove_files(path);
	return 0;
}
