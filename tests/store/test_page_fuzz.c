/*
 * test_page_fuzz.c - the SQLite store's files damaged page by page: zeros and random bytes at every
 * place in turn. A store that opens and loads holds exactly what it held; else it is refused, and
 * it ends in time either way.
 *
 * usage: test_page_fuzz [all]   without `all` some places of each page.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <skv/hash.h>
#include <skv/log.h>
#include <skv/mem.h>

#include "bench_store.h"

#define PAGE 4096u
#define SECONDS 60 /* for one that should take milliseconds */

static bool all;

enum { SAME = 0, REFUSED = 1, OTHER = 2 };

/* ---- what is in it --------------------------------------------------------------------------- */

static int note_doc(void *ctx, const char *key, const void *bytes, size_t n, uint64_t version)
{
	struct skv_buf *out = ctx;

	skv_put_bytes(out, key, strlen(key) + 1);
	skv_put_u64(out, version);
	skv_put_bytes(out, bytes, n);
	return SKV_OK;
}

static int note_slice(void *ctx, uint32_t number, const void *bytes, size_t n)
{
	skv_put_u32(ctx, number);
	skv_put_bytes(ctx, bytes, n);
	return SKV_OK;
}

static int note_record(void *ctx, uint64_t seq, const void *bytes, size_t n)
{
	skv_put_u64(ctx, seq);
	skv_put_bytes(ctx, bytes, n);
	return SKV_OK;
}

/* As a manager begins: acquires, lists, loads. */
static int take_in(const struct skv_store_options *o, struct skv_buf *out)
{
	const struct skv_load_sink sink = { note_slice, note_record, out };
	struct skv_error err = { 0 };
	struct skv_store *s;
	char holder[192];
	uint64_t fence, base = 0;
	int rc = skv_store_open(&skv_store_sqlite, o, &s, &err);

	if (rc != SKV_OK)
		return rc;
	rc = skv_store_acquire(s, 0, "fuzz:1:1", 1000, &fence, holder, sizeof holder, &err);
	if (rc == SKV_OK)
		rc = skv_store_list(s, "", note_doc, out, &err);
	if (rc == SKV_OK)
		rc = skv_store_load(s, 0, &base, &sink, &err);
	skv_put_u64(out, base);
	skv_put_u64(out, fence);
	if (rc == SKV_OK)
		skv_store_release(s, 0, fence, NULL);
	skv_store_close(s);
	return rc;
}

/* A clean stop: a checkpoint of all, housekeeping done or not. */
static void fill(struct bench *b)
{
	struct skv_store *s = bench_open(b);
	uint64_t fence = bench_acquire(b, s, "fuzz:1:1", 1000), id;
	const struct skv_fence f = { .number = fence };
	uint8_t bytes[3000];
	char key[32];

	for (uint32_t i = 0; i < 40; i++) {
		snprintf(key, sizeof key, "instance/t/%02u", i);
		bench_fill(i, bytes, 200);
		bench_ok(b, skv_store_put(s, &f, key, SKV_VERSION_NONE, bytes, 200, NULL, &b->err));
	}
	for (uint64_t seq = 1; seq <= 12; seq++) {
		bench_fill(seq, bytes, sizeof bytes);
		bench_ok(b, skv_store_append(s, 0, fence, seq, bytes, sizeof bytes, 0, &b->err));
	}
	bench_ok(b, skv_store_checkpoint_begin(s, 0, fence, &id, &b->err));
	for (uint32_t i = 0; i < 4; i++) {
		bench_fill(100 + i, bytes, sizeof bytes);
		bench_ok(b, skv_store_checkpoint_slice(s, 0, fence, id, i, bytes, sizeof bytes,
						       &b->err));
	}
	bench_ok(b, skv_store_checkpoint_commit(s, 0, fence, id, 4, 12, &b->err));
	bench_ok(b, skv_store_release(s, 0, fence, &b->err));
	skv_store_close(s);
	/* as housekeeping leaves it in the end */
	bench_sql(b, "", "DELETE FROM journal; PRAGMA wal_checkpoint(TRUNCATE)");
	bench_sql(b, "-checkpoint", "PRAGMA wal_checkpoint(TRUNCATE)");
}

/* ---- damage ---------------------------------------------------------------------------------- */

struct image {
	uint8_t *bytes;
	size_t n;
};

static struct image read_image(const char *path)
{
	struct image i = { 0 };
	FILE *f = fopen(path, "rb");

	assert_non_null(f);
	fseek(f, 0, SEEK_END);
	i.n = (size_t)ftell(f);
	rewind(f);
	i.bytes = malloc(i.n);
	assert_int_equal(fread(i.bytes, 1, i.n, f), i.n);
	fclose(f);
	return i;
}

static void write_image(const char *path, const struct image *i)
{
	FILE *f = fopen(path, "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(i->bytes, 1, i->n, f), i->n);
	fclose(f);
}

struct truth {
	struct bench *b;
	struct image file[2];
	struct skv_buf content;
};
static const char *const tails[2] = { "", "-checkpoint" };

static void restore(struct truth *t)
{
	static const char *const logs[] = { "-wal", "-shm", "-checkpoint-wal", "-checkpoint-shm" };

	for (int i = 0; i < 2; i++)
		write_image(bench_file(t->b, tails[i]), &t->file[i]);
	for (size_t i = 0; i < sizeof logs / sizeof logs[0]; i++)
		unlink(bench_file(t->b, logs[i]));
}

static int outcome(struct truth *t)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		struct skv_buf now = { 0 };

		alarm(SECONDS);
		skv_log_setup(2, false, SKV_LOG_ERROR + 1);
		if (take_in(&t->b->options, &now) != SKV_OK)
			_exit(REFUSED);
		_exit(now.len == t->content.len && memcmp(now.data, t->content.data, now.len) == 0
			      ? SAME
			      : OTHER);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status))
		return -WTERMSIG(status);
	return WEXITSTATUS(status);
}

/* n bytes at `at` of a file become zeros, or random ones. */
static int try(struct truth *t, int file, size_t at, size_t n, bool zeros)
{
	struct image *i = &t->file[file];
	uint8_t was[PAGE];
	int rc;

	memcpy(was, i->bytes + at, n);
	if (zeros)
		memset(i->bytes + at, 0, n);
	else
		skv_random(i->bytes + at, n);
	restore(t);
	rc = outcome(t);
	if (rc != SAME && rc != REFUSED) {
		fprintf(stderr, "%s%s, %zu %s bytes at %zu (page %zu): %s\n", t->b->path,
			tails[file], n, zeros ? "zero" : "random", at, at / PAGE + 1,
			rc == OTHER ? "opens as another store" : "ended by a signal");
		for (size_t k = 0; !zeros && k < n && n <= 64; k++)
			fprintf(stderr, "%02x", i->bytes[at + k]);
	}
	memcpy(i->bytes + at, was, n);
	return rc;
}

static void each_page_damaged(void **state)
{
	struct truth t = { .b = *state };
	unsigned tries = 0, same = 0, bad = 0;

	fill(t.b);
	for (int i = 0; i < 2; i++)
		t.file[i] = read_image(bench_file(t.b, tails[i]));
	/* Each case begins with these images, whatever the first take_in left. */
	assert_int_equal(take_in(&t.b->options, &t.content), SKV_OK);
	restore(&t);
	assert_int_equal(outcome(&t), SAME);
	for (int file = 0; file < 2; file++) {
		for (size_t page = 0; page < t.file[file].n; page += PAGE) {
			for (size_t at = 0; at < PAGE; at += all ? 8 : 584) {
				int rc = try(&t, file, page + at, 8, true);

				tries++;
				same += rc == SAME;
				bad += rc != SAME && rc != REFUSED;
			}
			for (size_t n = 16; n <= PAGE; n *= all ? 2 : 16) {
				/* the end of the page */
				int rc = try(&t, file, page + PAGE - n, n, false);

				tries++;
				same += rc == SAME;
				bad += rc != SAME && rc != REFUSED;
			}
		}
	}
	fprintf(stderr, "%u damages: %u changed nothing that counts, %u were refused, %u wrong\n",
		tries, same, tries - same - bad, bad);
	skv_buf_destroy(&t.content);
	free(t.file[0].bytes);
	free(t.file[1].bytes);
	assert_int_equal(bad, 0);
}

/* The scene of the report: the row of the checkpoint reads as none. */
static void a_lost_checkpoint_row_is_no_empty_store(void **state)
{
	static const char *const how[] = {
		"UPDATE checkpoint SET id = 0, slices = 0, upto_seq = 0, upto_total = 0",
		"DELETE FROM checkpoint",
		"UPDATE checkpoint SET slices = 0",
		"DELETE FROM registry WHERE key = 'instance/t/07'",
		"UPDATE registry SET value = x'00' WHERE key = 'instance/t/07'",
		"UPDATE owner SET fence = 1"
	};
	struct bench *b = *state;

	fill(b);
	for (size_t i = 0; i < sizeof how / sizeof how[0]; i++) {
		struct image whole = read_image(bench_file(b, ""));
		struct skv_buf out = { 0 };
		char text[300];

		/* Past the triggers, as damage is. */
		snprintf(
			text, sizeof text,
			"DROP TRIGGER copy_checkpoint_changed; DROP TRIGGER copy_checkpoint_gone; "
			"DROP TRIGGER copy_registry_changed;DROP TRIGGER copy_registry_gone; DROP "
			"TRIGGER copy_owner_changed; %s",
			how[i]);
		bench_sql(b, "", text);
		assert_int_equal(take_in(&b->options, &out), SKV_E_CORRUPT);
		/* nobody has written over it */
		assert_int_equal(take_in(&b->options, &out), SKV_E_CORRUPT);
		skv_buf_destroy(&out);
		unlink(bench_file(b, "-wal"));
		unlink(bench_file(b, "-shm"));
		write_image(bench_file(b, ""), &whole);
		free(whole.bytes);
	}
}

static void a_store_without_copies_is_damaged(void **state)
{
	struct bench *b = *state;
	struct skv_buf out = { 0 };

	fill(b);
	bench_sql(
		b, "",
		"DROP TABLE copy_registry; DROP TABLE copy_owner; DROP TABLE copy_checkpoint;"
		"DROP TRIGGER copy_registry_made; DROP TRIGGER copy_registry_changed; DROP TRIGGER "
		"copy_registry_gone;DROP TRIGGER copy_owner_made; DROP TRIGGER copy_owner_changed; "
		"DROP TRIGGER copy_owner_gone;DROP TRIGGER copy_checkpoint_made; DROP TRIGGER "
		"copy_checkpoint_changed; DROP TRIGGER copy_checkpoint_gone");
	assert_int_equal(take_in(&b->options, &out), SKV_E_CORRUPT);
	skv_buf_destroy(&out);
}

/* Housekeeping once asked for the next partition for ever, and nobody could stop it. */
static void a_partition_that_cannot_be_ends_the_round(void **state)
{
	struct bench *b = *state;
	struct skv_buf out = { 0 };

	fill(b);
	bench_sql(b, "", "INSERT INTO checkpoint(partition) VALUES(9000000000)");
	alarm(SECONDS);
	for (int i = 0; i < 20; i++)
		assert_int_equal(take_in(&b->options, &out), SKV_OK);
	alarm(0);
	skv_buf_destroy(&out);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test_setup_teardown(a_lost_checkpoint_row_is_no_empty_store,
						bench_setup, bench_teardown),
		cmocka_unit_test_setup_teardown(a_store_without_copies_is_damaged,
						bench_setup, bench_teardown),
		cmocka_unit_test_setup_teardown(a_partition_that_cannot_be_ends_the_round,
						bench_setup, bench_teardown),
		cmocka_unit_test_setup_teardown(each_page_damaged, bench_setup, bench_teardown),
	};

	all = argc > 1 && strcmp(argv[1], "all") == 0;
	skv_log_setup(2, false, SKV_LOG_ERROR);
	bench_kind = &bench_kinds[1];
	bench_base = "/dev/shm";
	return cmocka_run_group_tests(cases, NULL, NULL);
}
