/*
 * test_powerloss.c - a scenario whose power is cut at the n-th write or sync, for n = 1, 2, 3...
 * until it survives; then the files are what a disk would have, and the store must open and hold:
 *   FULL    everything that was acknowledged; of what was appended with SKV_APPEND_LATER, what a
 *           sync or an append without it followed
 *   NORMAL  everything that a sync covered
 *   both    a journal without gaps, right bytes, registry entries and checkpoints that were
 *           acknowledged, a sound database, and room for the next append
 * Each n is tried with all unsynced writes dropped and with random sectors of them left.
 *
 * The short scenario is tried at every n, at some with a sanitizer. The long one writes enough for
 * housekeeping to move the log into the database meanwhile; it is tried at some n here, at fewer
 * with a sanitizer, and at many with the argument "all" (label long).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include <skv/log.h>

#include "bench_store.h"
#include "powerloss_vfs.h"

static bool all;

struct script {
	uint64_t appends;
	size_t batch;
	uint64_t sync_every, checkpoint_every;
	uint32_t slices;
	uint64_t full_every; /* other appends may be synced later; 1 = none may */
};

/* Writes of the longest log: 36 batches are 9 MiB, housekeeping wakes at 4. */
static const struct script short_script = { 12, 700, 3, 5, 2, 1 };
static const struct script long_script = { 36, 256 << 10, 5, 12, 2, 1 };
static const struct script short_later = { 16, 700, 7, 6, 2, 3 };
static const struct script long_later = { 36, 256 << 10, 16, 12, 2, 5 };

/* The answers that the scenario got, and the calls that it made. */
struct ledger {
	uint64_t tried_seq, told_seq, synced_seq;
	uint64_t tried_version, told_version;
	uint64_t tried_upto, told_upto;
};

static int append_one(struct skv_store *s, uint64_t fence, const struct script *p, struct ledger *l,
		      uint8_t *bytes)
{
	uint64_t seq = l->told_seq + 1;
	bool later = seq % p->full_every != 0;
	int rc;

	bench_fill(seq, bytes, p->batch);
	l->tried_seq = seq;
	rc = skv_store_append(s, 0, fence, seq, bytes, p->batch, later ? SKV_APPEND_LATER : 0,
			      NULL);
	if (rc == SKV_OK)
		l->told_seq = seq;
	if (rc == SKV_OK && !later && skv_store_durability(s) == SKV_DURABILITY_FULL)
		l->synced_seq = seq;
	return rc;
}

static int put_one(struct skv_store *s, struct ledger *l)
{
	uint64_t version;
	int rc;

	l->tried_version = l->told_version + 1;
	rc = skv_store_put(s, NULL, "k", l->told_version, &l->tried_version, 8, &version, NULL);
	if (rc == SKV_OK)
		l->told_version = version;
	return rc;
}

static int checkpoint_one(struct skv_store *s, uint64_t fence, const struct script *p,
			  struct ledger *l, uint8_t *bytes)
{
	uint64_t id;
	int rc = skv_store_checkpoint_begin(s, 0, fence, &id, NULL);

	l->tried_upto = l->told_seq;
	for (uint32_t i = 0; rc == SKV_OK && i < p->slices; i++) {
		bench_fill(l->tried_upto * 100 + i, bytes, p->batch);
		rc = skv_store_checkpoint_slice(s, 0, fence, id, i, bytes, p->batch, NULL);
	}
	if (rc == SKV_OK)
		rc = skv_store_checkpoint_commit(s, 0, fence, id, p->slices, l->tried_upto, NULL);
	if (rc == SKV_OK)
		l->told_upto = l->tried_upto;
	return rc;
}

static int sync_all(struct skv_store *s, struct ledger *l)
{
	int rc = skv_store_sync(s, 0, NULL);

	if (rc == SKV_OK)
		l->synced_seq = l->told_seq;
	return rc;
}

/* Ends with the first failure. */
static int play(struct skv_store *s, const struct script *p, struct ledger *l, uint8_t *bytes)
{
	uint64_t fence;
	int rc = skv_store_acquire(s, 0, "me", 60000, &fence, NULL, 0, NULL);

	for (uint64_t i = 1; rc == SKV_OK && i <= p->appends; i++) {
		rc = append_one(s, fence, p, l, bytes);
		if (rc == SKV_OK && i % p->sync_every == 0)
			rc = sync_all(s, l);
		if (rc == SKV_OK && i % p->sync_every == 1)
			rc = put_one(s, l);
		if (rc == SKV_OK && i % p->checkpoint_every == 0)
			rc = checkpoint_one(s, fence, p, l, bytes);
	}
	return rc;
}

/* ---- afterwards ------------------------------------------------------------------------------ */

struct found {
	const struct script *p;
	uint64_t base, last;
	uint32_t slices;
	uint8_t *want;
};

static int check_slice(void *ctx, uint32_t number, const void *bytes, size_t n)
{
	struct found *f = ctx;

	bench_fill(f->base * 100 + number, f->want, f->p->batch);
	assert_int_equal(n, f->p->batch);
	assert_memory_equal(bytes, f->want, n);
	f->slices++;
	return SKV_OK;
}

static int check_record(void *ctx, uint64_t seq, const void *bytes, size_t n)
{
	struct found *f = ctx;

	assert_int_equal(seq, (f->last ? f->last : f->base) + 1);
	bench_fill(seq, f->want, f->p->batch);
	assert_int_equal(n, f->p->batch);
	assert_memory_equal(bytes, f->want, n);
	f->last = seq;
	return SKV_OK;
}

static void check_sound(struct bench *b, const char *tail)
{
	sqlite3_stmt *st;
	sqlite3 *db;

	assert_int_equal(sqlite3_open(bench_file(b, tail), &db), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &st, NULL),
			 SQLITE_OK);
	assert_int_equal(sqlite3_step(st), SQLITE_ROW);
	assert_string_equal((const char *)sqlite3_column_text(st, 0), "ok");
	sqlite3_finalize(st);
	sqlite3_close(db);
}

static void check_registry(struct skv_store *s, const struct ledger *l)
{
	struct skv_buf v = { 0 };
	uint64_t version = 0;
	int rc = skv_store_get(s, "k", &v, &version, NULL);

	if (rc == SKV_OK) {
		assert_memory_equal(v.data, &version, 8);
		assert_true(version <= l->tried_version);
	} else {
		assert_int_equal(rc, SKV_E_NOT_FOUND);
	}
	assert_true(version >= l->told_version);
	skv_buf_destroy(&v);
}

static void check_after(struct bench *b, const struct script *p, const struct ledger *l,
			uint8_t *bytes)
{
	struct skv_store *s = bench_open(b);
	struct found f = { .p = p, .want = bytes };
	const struct skv_load_sink sink = { check_slice, check_record, &f };
	uint64_t fence, last;

	check_registry(s, l);
	bench_ok(b, skv_store_load(s, 0, &f.base, &sink, &b->err));
	assert_int_equal(f.slices, f.base ? p->slices : 0);
	assert_true(f.base >= l->told_upto && f.base <= l->tried_upto);
	last = f.last ? f.last : f.base;
	if (last < l->synced_seq || last > l->tried_seq)
		fail_msg("the journal ends at %llu; saved %llu, asked %llu",
			 (unsigned long long)last, (unsigned long long)l->synced_seq,
			 (unsigned long long)l->tried_seq);
	skv_fake_clock_advance(&b->clock, 60000);
	fence = bench_acquire(b, s, "next", 60000);
	bench_fill(last + 1, bytes, p->batch);
	bench_ok(b, skv_store_append(s, 0, fence, last + 1, bytes, p->batch, 0, &b->err));
	skv_store_close(s);
	check_sound(b, "");
	check_sound(b, "-checkpoint");
}

/* ---- loops ----------------------------------------------------------------------------------- */

static void fresh_files(struct bench *b)
{
	static const char *const tails[] = { "",
					     "-wal",
					     "-shm",
					     "-journal",
					     "-checkpoint",
					     "-checkpoint-wal",
					     "-checkpoint-shm",
					     "-checkpoint-journal" };

	for (size_t i = 0; i < sizeof tails / sizeof tails[0]; i++)
		remove(bench_file(b, tails[i]));
	powerloss_reset();
}

/* False when the scenario came to its end before the cut. */
static bool cut_once(struct bench *b, const struct script *p, uint64_t n, enum powerloss_kind kind,
		     uint8_t *bytes)
{
	struct ledger l = { 0 };
	struct skv_store *s;
	bool survived;
	int rc;

	fresh_files(b);
	powerloss_cut_at(n);
	rc = skv_store_open(bench_kind->ops, &b->options, &s, &b->err);
	if (rc == SKV_OK) {
		rc = play(s, p, &l, bytes);
		/* Power is lost now if not before: closing would save everything. */
		survived = !powerloss_is_cut();
		powerloss_cut_at(1);
		skv_store_close(s);
	} else {
		survived = false;
		powerloss_cut_at(1);
	}
	if (survived)
		bench_ok(b, rc);
	powerloss_apply(kind, n);
	check_after(b, p, &l, bytes);
	return !survived;
}

static void cut_everywhere(struct bench *b, const struct script *p, uint64_t step, uint64_t percent)
{
	uint8_t *bytes = malloc(p->batch);
	uint64_t runs = 0, n;

	b->options.vfs = POWERLOSS_VFS;
	for (int kind = POWERLOSS_DROP_ALL; kind <= POWERLOSS_DROP_SOME; kind++)
		for (n = 1; cut_once(b, p, n, kind, bytes); n += step + n * percent / 100)
			runs++;
	print_message("%s: power cut %llu times, up to step %llu\n", bench_kind->name,
		      (unsigned long long)runs, (unsigned long long)n);
	assert_true(runs > 40);
	free(bytes);
}

/* With a sanitizer some steps do: what is left after a cut is the other builds' business. */
static uint64_t percent(uint64_t of_other_builds, uint64_t with_sanitizer)
{
	return getenv("SKV_SANITIZED") ? with_sanitizer : of_other_builds;
}

static void cut_short(struct bench *b, const struct script *p)
{
	cut_everywhere(b, p, 1, percent(0, 7));
}

static void cut_long(struct bench *b, const struct script *p)
{
	if (all)
		cut_everywhere(b, p, 7, 0);
	else
		cut_everywhere(b, p, 1, percent(13, 30));
}

static void power_is_cut_at_every_step(void **state) { cut_short(*state, &short_script); }

static void power_is_cut_while_the_log_is_moved(void **state) { cut_long(*state, &long_script); }

static void power_is_cut_between_appends_of_both_kinds(void **state)
{
	cut_short(*state, &short_later);
	cut_long(*state, &long_later);
}

/* NORMAL, or later, without a sync: the test itself must be able to see a loss. */
static void without_a_sync_something_is_lost(void **state)
{
	struct bench *b = *state;
	struct skv_store *s;
	struct skv_store_stats st;
	uint64_t fence;

	fresh_files(b);
	b->options.vfs = POWERLOSS_VFS;
	s = bench_open(b);
	fence = bench_acquire(b, s, "me", 60000);
	bench_ok(b, skv_store_append(s, 0, fence, 1, "one", 3, SKV_APPEND_LATER, &b->err));
	bench_ok(b, skv_store_sync(s, 0, &b->err));
	bench_ok(b, skv_store_append(s, 0, fence, 2, "two", 3, SKV_APPEND_LATER, &b->err));
	powerloss_cut_at(1);
	skv_store_close(s);
	powerloss_apply(POWERLOSS_DROP_ALL, 0);
	s = bench_open(b);
	bench_holds(b, s, 0, "0||1:one");
	bench_ok(b, skv_store_stats_get(s, 0, &st, &b->err));
	assert_int_equal(st.last_seq, 1);
	skv_store_close(s);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, bench_setup, bench_teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest cases[] = {
		CASE(power_is_cut_at_every_step),
		CASE(power_is_cut_while_the_log_is_moved),
		CASE(power_is_cut_between_appends_of_both_kinds),
		CASE(without_a_sync_something_is_lost),
	};
	int failed = 0;

	skv_log_setup(2, false, SKV_LOG_ERROR); /* housekeeping warns of each cut */
	bench_base = "/dev/shm"; /* the shim decides what a disk keeps, so a fast disk suffices */
	all = argc > 1 && strcmp(argv[1], "all") == 0;
	for (int i = 1; i <= 2; i++) {
		bench_kind = &bench_kinds[i];
		failed += cmocka_run_group_tests_name(bench_kind->name, cases, NULL, NULL);
	}
	return failed != 0;
}
