/*
 * test_sqlite_files.c - the SQLite store's files: whose they are, what is refused and left alone,
 * what damage is noticed, what housekeeping removes.
 *
 * statfs(2) is wrapped by the linker, so that a folder can claim to lie on a network.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench_store.h"

static long claimed_type; /* 0 = the truth */

int __real_statfs(const char *path, struct statfs *out);
int __wrap_statfs(const char *path, struct statfs *out);

int __wrap_statfs(const char *path, struct statfs *out)
{
	int rc = __real_statfs(path, out);

	if (rc == 0 && claimed_type)
		out->f_type = claimed_type;
	return rc;
}

static void write_file(struct bench *b, const char *tail, const void *bytes, size_t n)
{
	FILE *f = fopen(bench_file(b, tail), "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	fclose(f);
}

/* A whole file; to be freed. */
static char *read_file(struct bench *b, const char *tail, size_t *n)
{
	FILE *f = fopen(bench_file(b, tail), "rb");
	char *out;

	assert_non_null(f);
	fseek(f, 0, SEEK_END);
	*n = (size_t)ftell(f);
	rewind(f);
	out = malloc(*n + 1);
	assert_int_equal(fread(out, 1, *n, f), *n);
	fclose(f);
	return out;
}

static bool exists(struct bench *b, const char *tail)
{
	return access(bench_file(b, tail), F_OK) == 0;
}

/* Opening fails with `status` and these words, and leaves `tail` as it is, to the byte. */
static void refused(struct bench *b, const char *tail, int status, const char *words)
{
	struct skv_store *s;
	size_t n, n_after;
	char *before = read_file(b, tail, &n), *after;

	assert_int_equal(skv_store_open(&skv_store_sqlite, &b->options, &s, &b->err), status);
	if (!strstr(b->err.message, words))
		fail_msg("'%s' does not say '%s'", b->err.message, words);
	after = read_file(b, tail, &n_after);
	assert_int_equal(n, n_after);
	assert_memory_equal(before, after, n);
	free(before);
	free(after);
}

/* ---- whose file ------------------------------------------------------------------------------ */

static void files_are_private(void **state)
{
	static const char *const tails[] = {
		"", "-wal", "-shm", "-checkpoint", "-checkpoint-wal", "-reserve"
	};
	struct bench *b = *state;
	struct skv_store *s;
	struct stat st;

	b->options.reserve_bytes = 65536;
	s = bench_open(b);
	for (size_t i = 0; i < sizeof tails / sizeof tails[0]; i++) {
		assert_int_equal(stat(bench_file(b, tails[i]), &st), 0);
		assert_int_equal(st.st_mode & 0777, 0600);
	}
	skv_store_close(s);
	assert_int_equal(bench_ask(b, "", "PRAGMA user_version"), 1);
	assert_int_equal(bench_ask(b, "", "PRAGMA application_id"), 0x534b566d);
}

static void a_foreign_file_is_left_alone(void **state)
{
	static const char text[] =
		"These are my notes. They are longer than a hundred bytes, so that nobody can say "
		"they were too short to tell.\n";
	struct bench *b = *state;

	write_file(b, "", text, sizeof text);
	refused(b, "", SKV_E_FOREIGN, "is not a store of slabkv");
	write_file(b, "", "short", 5);
	refused(b, "", SKV_E_FOREIGN, "is not a store of slabkv");
	write_file(b, "", (char[8192]){ 0 }, 8192);
	refused(b, "", SKV_E_FOREIGN, "is not a store of slabkv");
	assert_false(exists(b, "-checkpoint"));
}

static void a_foreign_database_is_left_alone(void **state)
{
	struct bench *b = *state;

	bench_sql(b, "", "CREATE TABLE recipes(name TEXT); INSERT INTO recipes VALUES('bread')");
	refused(b, "", SKV_E_FOREIGN, "is not a store of slabkv");
	bench_sql(b, "", "PRAGMA application_id = 77");
	refused(b, "", SKV_E_FOREIGN, "is not a store of slabkv");
	bench_sql(b, "", "PRAGMA application_id = 0; PRAGMA journal_mode = WAL");
	refused(b, "", SKV_E_FOREIGN, "is not a store of slabkv");
	assert_int_equal(bench_ask(b, "", "SELECT count(*) FROM recipes"), 1);
	assert_false(exists(b, "-checkpoint"));
}

static void a_newer_schema_is_left_alone(void **state)
{
	struct bench *b = *state;

	skv_store_close(bench_open(b));
	bench_sql(b, "", "PRAGMA user_version = 2; PRAGMA wal_checkpoint(TRUNCATE)");
	refused(b, "", SKV_E_UNSUPPORTED,
		"has schema 2, this version knows 1: use the version of slabkvd");
	bench_sql(b, "", "PRAGMA user_version = 1");
	bench_sql(b, "-checkpoint", "PRAGMA user_version = 9");
	refused(b, "-checkpoint", SKV_E_UNSUPPORTED, "has schema 9");
}

static void the_second_file_must_be_the_stores_own(void **state)
{
	struct bench *b = *state;

	write_file(b, "-checkpoint", (char[200]){ "not a database" }, 200);
	refused(b, "-checkpoint", SKV_E_FOREIGN, "-checkpoint is not a store");
	unlink(bench_file(b, "-checkpoint"));
	skv_store_close(bench_open(b));
	bench_sql(b, "-checkpoint", "UPDATE store SET id = id + 1");
	refused(b, "-checkpoint", SKV_E_FOREIGN, "belongs to another store");
	/* A file in the other's place. */
	unlink(bench_file(b, ""));
	assert_int_equal(link(bench_file(b, "-checkpoint"), b->path), 0);
	refused(b, "", SKV_E_FOREIGN, "is not a store of slabkv");
}

static void an_empty_database_becomes_a_store(void **state)
{
	struct bench *b = *state;
	struct skv_store *s;

	write_file(b, "", "", 0);
	s = bench_open(b);
	bench_acquire(b, s, "me", 1000);
	skv_store_close(s);
	unlink(b->path);
	unlink(bench_file(b, "-checkpoint"));
	/* Made, then crashed before the schema. */
	bench_sql(b, "", "PRAGMA journal_mode = WAL");
	s = bench_open(b);
	bench_acquire(b, s, "me", 1000);
	skv_store_close(s);
}

static void paths_are_only_paths(void **state)
{
	struct bench *b = *state;
	char here[512];
	struct skv_store *s;

	assert_non_null(getcwd(here, sizeof here));
	assert_int_equal(chdir(b->dir), 0);
	b->options.path = "file:x?mode=memory";
	s = bench_open(b);
	skv_store_close(s);
	assert_int_equal(access("file:x?mode=memory", F_OK), 0);
	assert_int_equal(access("file:x?mode=memory-checkpoint", F_OK), 0);
	assert_int_equal(chdir(here), 0);
	b->options.path = "";
	assert_int_equal(skv_store_open(&skv_store_sqlite, &b->options, &s, &b->err),
			 SKV_E_INVALID);
	b->options.path = "/nowhere/at/all/store.db";
	assert_int_equal(skv_store_open(&skv_store_sqlite, &b->options, &s, &b->err),
			 SKV_E_STORE_IO);
	assert_non_null(strstr(b->err.message, "/nowhere/at/all"));
	b->options.path = b->dir;
	assert_int_not_equal(skv_store_open(&skv_store_sqlite, &b->options, &s, &b->err), SKV_OK);
	b->options.path = b->path;
	b->options.vfs = "no such vfs";
	assert_int_equal(skv_store_open(&skv_store_sqlite, &b->options, &s, &b->err),
			 SKV_E_STORE_IO);
}

static void a_network_file_system_is_refused(void **state)
{
	static const long shared[] = { 0x6969,     0x517b,     (long)0xff534d42, (long)0xfe534d42,
				       0x65735546, 0x01021997, 0x0bd00bd0,       0x00c36400,
				       0x01161970, 0x7461636f };
	static const long local[] = { 0xef53 /* ext4 */, 0x58465342 /* XFS */,
				      (long)0x9123683e /* btrfs */, 0x01021994 /* tmpfs */ };
	struct bench *b = *state;
	struct skv_store *s;

	for (size_t i = 0; i < sizeof shared / sizeof shared[0]; i++) {
		claimed_type = shared[i];
		assert_int_equal(skv_store_open(&skv_store_sqlite, &b->options, &s, &b->err),
				 SKV_E_UNSUPPORTED);
		assert_non_null(strstr(b->err.message, "put the store on a local disk"));
		assert_false(exists(b, ""));
	}
	for (size_t i = 0; i < sizeof local / sizeof local[0]; i++) {
		claimed_type = local[i];
		skv_store_close(bench_open(b));
	}
	claimed_type = 0;
}

static void a_crowd_of_processes_makes_one_store(void **state)
{
	enum { CROWD = 6 };
	struct bench *b = *state;
	pid_t pid[CROWD];
	int status;

	for (int i = 0; i < CROWD; i++) {
		pid[i] = fork();
		assert_true(pid[i] >= 0);
		if (pid[i] == 0) {
			struct skv_store *s;
			char key[2] = { (char)('a' + i), 0 };
			int rc = skv_store_open(&skv_store_sqlite, &b->options, &s, &b->err);

			if (rc == SKV_OK)
				rc = skv_store_put(s, NULL, key, SKV_VERSION_NONE, "x", 1, NULL,
						   &b->err);
			if (rc != SKV_OK)
				dprintf(2, "%s\n", b->err.message);
			_exit(rc == SKV_OK ? 0 : 1);
		}
	}
	for (int i = 0; i < CROWD; i++) {
		assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
		assert_int_equal(status, 0);
	}
	assert_int_equal(bench_ask(b, "", "SELECT count(*) FROM registry"), CROWD);
	assert_int_equal(bench_ask(b, "", "SELECT count(*) FROM store"), 1);
}

/* ---- damage ---------------------------------------------------------------------------------- */

static int any_slice(void *ctx, uint32_t number, const void *bytes, size_t n)
{
	(void)ctx;
	(void)number;
	(void)bytes;
	(void)n;
	return SKV_OK;
}

static int any_record(void *ctx, uint64_t seq, const void *bytes, size_t n)
{
	(void)ctx;
	(void)seq;
	(void)bytes;
	(void)n;
	return SKV_OK;
}

static void damage_is_noticed(struct bench *b, const char *tail, const char *sql, const char *words)
{
	const struct skv_load_sink sink = { any_slice, any_record, NULL };
	struct skv_store *s;
	uint64_t base;

	bench_sql(b, tail, sql);
	s = bench_open(b);
	assert_int_equal(skv_store_load(s, 0, &base, &sink, &b->err), SKV_E_CORRUPT);
	if (!strstr(b->err.message, words))
		fail_msg("'%s' does not say '%s'", b->err.message, words);
	skv_store_close(s);
}

static void make_state(struct bench *b)
{
	struct skv_store *s = bench_open(b);
	uint64_t fence = bench_acquire(b, s, "me", 1000), id;

	for (uint64_t seq = 1; seq <= 6; seq++)
		bench_append(b, s, fence, seq, "same bytes");
	bench_ok(b, skv_store_checkpoint_begin(s, 0, fence, &id, &b->err));
	for (uint32_t i = 0; i < 3; i++)
		bench_ok(b,
			 skv_store_checkpoint_slice(s, 0, fence, id, i, "same bytes", 10, &b->err));
	bench_ok(b, skv_store_checkpoint_commit(s, 0, fence, id, 3, 2, &b->err));
	skv_store_close(s);
	bench_sql(b, "", "CREATE TABLE saved AS SELECT * FROM journal WHERE id > 2");
	bench_sql(b, "-checkpoint", "CREATE TABLE saved AS SELECT * FROM slice");
}

static void repair(struct bench *b)
{
	bench_sql(b, "", "DELETE FROM journal; INSERT INTO journal SELECT * FROM saved");
	bench_sql(b, "-checkpoint", "DELETE FROM slice; INSERT INTO slice SELECT * FROM saved");
}

static void damaged_rows_are_corrupt(void **state)
{
	static const struct {
		const char *tail, *sql, *words;
	} damages[] = {
		{ "", "UPDATE journal SET bytes = CAST('Same bytes' AS BLOB) WHERE id = 4",
		  "record 4 does not match" },
		{ "", "UPDATE journal SET sum = sum + 1 WHERE id = 3", "record 3 does not match" },
		{ "", "UPDATE journal SET total = total + 1 WHERE id = 6",
		  "record 6 does not match" },
		{ "", "DELETE FROM journal WHERE id = 3", "record 3 is missing" },
		{ "", "DELETE FROM journal WHERE id = 5", "record 5 is missing" },
		{ "", "UPDATE journal SET id = 7 WHERE id = 6", "record 6 is missing" },
		/* Right bytes and sum, in the wrong place. */
		{ "",
		  "DELETE FROM journal WHERE id = 6; UPDATE journal SET id = 6 WHERE id = 5;"
		  " INSERT INTO journal SELECT 5, total, sum, bytes FROM saved WHERE id = 6",
		  "record 5 does not match" },
		{ "-checkpoint",
		  "UPDATE slice SET bytes = CAST('Same bytes' AS BLOB) WHERE number = 1",
		  "slice 1 does not match" },
		{ "-checkpoint", "DELETE FROM slice WHERE number = 0", "slice 0 of 3 is missing" },
		{ "-checkpoint", "DELETE FROM slice WHERE number = 2", "slice 2 of 3 is missing" },
		{ "-checkpoint",
		  "UPDATE slice SET number = 9 WHERE number = 0;"
		  " UPDATE slice SET number = 0 WHERE number = 1;"
		  " UPDATE slice SET number = 1 WHERE number = 9",
		  "slice 0 does not match" },
	};
	struct bench *b = *state;
	struct skv_store *s;

	make_state(b);
	for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
		damage_is_noticed(b, damages[i].tail, damages[i].sql, damages[i].words);
		repair(b);
	}
	s = bench_open(b);
	bench_holds(b, s, 0,
		    "2|same bytes,same bytes,same bytes|3:same bytes,4:same bytes,5:same "
		    "bytes,6:same bytes");
	skv_store_close(s);
	/* The second file is gone: it is made anew, and the checkpoint is missed. */
	unlink(bench_file(b, "-checkpoint"));
	damage_is_noticed(b, "", "SELECT 1", "slice 0 of 3 is missing");
}

static void damaged_pages_are_corrupt(void **state)
{
	const struct skv_load_sink sink = { any_slice, any_record, NULL };
	struct bench *b = *state;
	struct skv_store *s;
	uint64_t base;
	char page[4096];
	long at;
	FILE *f;

	make_state(b);
	at = (long)bench_ask(b, "", "SELECT rootpage FROM sqlite_schema WHERE name = 'journal'");
	f = fopen(b->path, "r+b");
	memset(page, 0x5a, sizeof page);
	fseek(f, (at - 1) * 4096, SEEK_SET);
	assert_int_equal(fwrite(page, 1, sizeof page, f), sizeof page);
	fclose(f);
	s = bench_open(b);
	assert_int_equal(skv_store_load(s, 0, &base, &sink, &b->err), SKV_E_CORRUPT);
	skv_store_close(s);
}

/* ---- housekeeping ---------------------------------------------------------------------------- */

static void wait_for(struct bench *b, const char *tail, const char *sql, int64_t want)
{
	uint64_t deadline = skv_now_us() + 20000000;
	int64_t got;

	while ((got = bench_ask(b, tail, sql)) != want && skv_now_us() < deadline)
		poll(NULL, 0, 5);
	assert_int_equal(got, want);
}

static void checkpoint(struct bench *b, struct skv_store *s, uint64_t fence, uint64_t upto)
{
	uint64_t id;

	bench_ok(b, skv_store_checkpoint_begin(s, 0, fence, &id, &b->err));
	for (uint32_t i = 0; i < 4; i++)
		bench_ok(b, skv_store_checkpoint_slice(s, 0, fence, id, i, "slice", 5, &b->err));
	bench_ok(b, skv_store_checkpoint_commit(s, 0, fence, id, 4, upto, &b->err));
}

static void the_dead_are_removed(void **state)
{
	struct bench *b = *state;
	struct skv_store *s = bench_open(b);
	uint64_t fence = bench_acquire(b, s, "me", 1000), id;

	for (uint64_t seq = 1; seq <= 200; seq++)
		bench_append(b, s, fence, seq, "record");
	checkpoint(b, s, fence, 150);
	wait_for(b, "", "SELECT count(*) FROM journal", 50);
	checkpoint(b, s, fence, 180);
	wait_for(b, "", "SELECT count(*) FROM journal", 20);
	wait_for(b, "-checkpoint", "SELECT count(*) FROM slice", 4);
	/* An aborted checkpoint, and one that a crash left unfinished. */
	bench_ok(b, skv_store_checkpoint_begin(s, 0, fence, &id, &b->err));
	bench_ok(b, skv_store_checkpoint_slice(s, 0, fence, id, 0, "half", 4, &b->err));
	bench_ok(b, skv_store_checkpoint_abort(s, 0, id));
	wait_for(b, "-checkpoint", "SELECT count(*) FROM slice", 4);
	bench_ok(b, skv_store_checkpoint_begin(s, 0, fence, &id, &b->err));
	bench_ok(b, skv_store_checkpoint_slice(s, 0, fence, id, 0, "half", 4, &b->err));
	skv_store_close(s);
	assert_int_equal(bench_ask(b, "-checkpoint", "SELECT count(*) FROM slice"), 5);
	s = bench_open(b);
	skv_fake_clock_advance(&b->clock, 1000);
	bench_acquire(b, s, "next", 1000);
	wait_for(b, "-checkpoint", "SELECT count(*) FROM slice", 4);
	skv_store_close(s);
}

/* A log and a database that only grew would be 64 MiB each here. */
static void files_stay_small(void **state)
{
	enum { BATCH = 256 << 10, BATCHES = 256 };
	struct bench *b = *state;
	struct skv_store *s = bench_open(b);
	uint64_t fence = bench_acquire(b, s, "me", 60000);
	uint8_t *bytes = malloc(BATCH);
	struct stat st;

	for (uint64_t seq = 1; seq <= BATCHES; seq++) {
		bench_fill(seq, bytes, BATCH);
		bench_ok(b, skv_store_append(s, 0, fence, seq, bytes, BATCH, 0, &b->err));
		if (seq % 16 == 0) {
			checkpoint(b, s, fence, seq);
			wait_for(b, "", "SELECT count(*) FROM journal", 0);
		}
	}
	assert_int_equal(stat(bench_file(b, "-wal"), &st), 0);
	assert_true(st.st_size < 32 << 20);
	assert_int_equal(stat(b->path, &st), 0);
	assert_true(st.st_size < 24 << 20);
	free(bytes);
	skv_store_close(s);
}

/* A URL never becomes a file name, and its password is not in the text that logs show. */
static void urls_of_unknown_schemes_are_refused(void **state)
{
	struct bench *b = *state;
	char shown[SKV_STORE_SHOWN_MAX];
	struct skv_store *s;

	assert_null(skv_store_backend("redis://u:secret@h:6379/slabkv"));
	assert_null(skv_store_backend("postgres://h/db"));
	assert_ptr_equal(skv_store_backend("a/b.db"), &skv_store_sqlite);
	assert_true(skv_store_is_file("a/b.db"));
	assert_false(skv_store_is_file(SKV_STORE_IN_MEMORY));
	assert_false(skv_store_is_file("etcd://h"));
	skv_store_shown("redis://u:secret@h:6379/slabkv", shown);
	assert_string_equal(shown, "redis://h:6379/slabkv");
	assert_int_equal(skv_store_open(NULL, &(struct skv_store_options){ .path = "redis://h" },
					&s, &b->err),
			 SKV_E_UNSUPPORTED);
	assert_non_null(strstr(b->err.message, "Redis"));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, bench_setup, bench_teardown)

int main(void)
{
	const struct CMUnitTest cases[] = {
		CASE(files_are_private),
		CASE(a_foreign_file_is_left_alone),
		CASE(a_foreign_database_is_left_alone),
		CASE(a_newer_schema_is_left_alone),
		CASE(the_second_file_must_be_the_stores_own),
		CASE(an_empty_database_becomes_a_store),
		CASE(paths_are_only_paths),
		CASE(a_network_file_system_is_refused),
		CASE(a_crowd_of_processes_makes_one_store),
		CASE(damaged_rows_are_corrupt),
		CASE(damaged_pages_are_corrupt),
		CASE(the_dead_are_removed),
		CASE(files_stay_small),
		CASE(urls_of_unknown_schemes_are_refused),
	};

	bench_kind = &bench_kinds[2];
	return cmocka_run_group_tests_name("sqlite files", cases, NULL, NULL);
}
