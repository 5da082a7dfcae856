/* contract_journal.c - cases of the contract: journal, load, checkpoints. See test_contract.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contract.h"

/* ---- journal --------------------------------------------------------------------------------- */

void appends_follow_each_other(void **state)
{
	struct bench *b = *state;
	struct skv_store *s = bench_open(b);
	struct skv_store_stats st;
	uint64_t fence = bench_acquire(b, s, "me", 1000);

	bench_holds(b, s, 0, "0||");
	assert_int_equal(skv_store_append(s, 0, fence, 2, "x", 1, 0, &b->err), SKV_E_CONFLICT);
	bench_append(b, s, fence, 1, "one");
	bench_append(b, s, fence, 2, "two");
	assert_int_equal(skv_store_append(s, 0, fence, 2, "x", 1, 0, &b->err), SKV_E_CONFLICT);
	assert_int_equal(skv_store_append(s, 0, fence, 4, "x", 1, 0, &b->err), SKV_E_CONFLICT);
	bench_append(b, s, fence, 3, "");
	bench_holds(b, s, 0, "0||1:one,2:two,3:");
	bench_ok(b, skv_store_stats_get(s, 0, &st, &b->err));
	assert_int_equal(st.last_seq, 3);
	assert_int_equal(st.journal_bytes, 6);
	assert_true(st.free_bytes > 0);
	bench_ok(b, skv_store_sync(s, 0, &b->err));
	skv_store_close(s);
}

void partitions_are_apart(void **state)
{
	struct bench *b = *state;
	struct skv_store *s = bench_open(b);
	const uint32_t last = SKV_STORE_PARTITION_MAX;
	uint64_t f0 = bench_acquire(b, s, "me", 1000), f1;

	bench_ok(b, skv_store_acquire(s, last, "me", 1000, &f1, NULL, 0, &b->err));
	bench_append(b, s, f0, 1, "zero");
	bench_ok(b, skv_store_append(s, last, f1, 1, "last", 4, 0, &b->err));
	bench_append(b, s, f0, 2, "zero");
	bench_holds(b, s, 0, "0||1:zero,2:zero");
	bench_holds(b, s, last, "0||1:last");
	bench_holds(b, s, 1, "0||");
	skv_store_close(s);
}

void an_append_needs_the_newest_fence(void **state)
{
	struct bench *b = *state;
	struct skv_store *s = bench_open(b), *standby = bench_open(b);
	uint64_t old = bench_acquire(b, s, "old", 100), now;

	assert_int_equal(skv_store_append(s, 0, 0, 1, "x", 1, 0, &b->err), SKV_E_FENCED);
	assert_int_equal(skv_store_append(s, 0, old + 1, 1, "x", 1, 0, &b->err), SKV_E_FENCED);
	assert_int_equal(skv_store_append(s, 3, old, 1, "x", 1, 0, &b->err), SKV_E_FENCED);
	bench_append(b, s, old, 1, "old");
	skv_fake_clock_advance(&b->clock, 100);
	now = bench_acquire(b, standby, "new", 100);
	bench_append(b, standby, now, 2, "new");
	assert_int_equal(skv_store_append(s, 0, old, 3, "late", 4, 0, &b->err), SKV_E_FENCED);
	bench_holds(b, s, 0, "0||1:old,2:new");
	skv_store_close(standby);
	skv_store_close(s);
}

struct one_record {
	const uint8_t *want;
	size_t n;
	int seen;
};

static int no_slice(void *ctx, uint32_t number, const void *bytes, size_t n)
{
	(void)ctx;
	(void)bytes;
	fail_msg("slice %u of %zu bytes", number, n);
	return SKV_OK;
}

static int compare_record(void *ctx, uint64_t seq, const void *bytes, size_t n)
{
	struct one_record *o = ctx;

	assert_int_equal(seq, 1);
	assert_int_equal(n, o->n);
	assert_memory_equal(bytes, o->want, n);
	o->seen++;
	return SKV_OK;
}

void a_batch_of_the_largest_size(void **state)
{
	struct bench *b = *state;
	struct skv_store *s = bench_open(b);
	uint8_t *bytes = malloc(SKV_STORE_BATCH_MAX);
	struct one_record one = { bytes, SKV_STORE_BATCH_MAX, 0 };
	const struct skv_load_sink sink = { no_slice, compare_record, &one };
	uint64_t fence = bench_acquire(b, s, "me", 1000), base;

	bench_fill(3, bytes, SKV_STORE_BATCH_MAX);
	bench_ok(b, skv_store_append(s, 0, fence, 1, bytes, SKV_STORE_BATCH_MAX, 0, &b->err));
	bench_ok(b, skv_store_load(s, 0, &base, &sink, &b->err));
	assert_int_equal(one.seen, 1);
	free(bytes);
	skv_store_close(s);
}

/* ---- load ------------------------------------------------------------------------------------ */

struct ender {
	struct bench *b;
	struct skv_store *store;
	int slices, records;
	int end_slice, end_record;
};

static int end_slice(void *ctx, uint32_t number, const void *bytes, size_t n)
{
	struct ender *e = ctx;

	(void)number;
	(void)bytes;
	(void)n;
	return ++e->slices == e->end_slice ? 17 : SKV_OK;
}

static int end_record(void *ctx, uint64_t seq, const void *bytes, size_t n)
{
	struct ender *e = ctx;

	(void)seq;
	(void)bytes;
	(void)n;
	/* The store may be used meanwhile; one in memory may be read. */
	if (!bench_kind->vfs)
		contract_put(e->b, e->store, "k", "v");
	return ++e->records == e->end_record ? SKV_E_CORRUPT : SKV_OK;
}

#define HEARD 256u /* bytes of what a follower was told */

static int refused_at; /* by the next sink */

static int heard_slice(void *ctx, uint32_t number, const void *bytes, size_t n)
{
	char *text = ctx;

	snprintf(text + strlen(text), HEARD - strlen(text), "%u=%.*s;", number, (int)n,
		 (const char *)bytes);
	return SKV_OK;
}

static int heard_record(void *ctx, uint64_t seq, const void *bytes, size_t n)
{
	char *text = ctx;

	if ((int)seq == refused_at)
		return SKV_E_NOT_FOUND;
	snprintf(text + strlen(text), HEARD - strlen(text), "%d:%.*s;", (int)seq, (int)n,
		 (const char *)bytes);
	return SKV_OK;
}

/* Returns the records that a follower reads until it has all. */
static const char *hear(struct bench *b, struct skv_store *s, struct skv_position *at, int want)
{
	static char text[HEARD];
	const struct skv_load_sink sink = { heard_slice, heard_record, text };
	int rc;

	text[0] = '\0';
	at->fresh = true;
	do
		rc = skv_store_follow(s, 0, at, &sink, &b->err);
	while (rc == SKV_OK && at->seq < at->newest);
	assert_int_equal(rc, want);
	return text;
}

void a_follower_gets_what_comes(void **state)
{
	struct bench *b = *state;
	struct skv_store *s = bench_open(b), *other = bench_open(b);
	struct skv_position at = { 0 };
	uint64_t fence = bench_acquire(b, s, "me", 1000);

	bench_append(b, s, fence, 1, "one");
	contract_checkpoint(b, s, fence, 1, (const char *[]){ "a", "b" }, 2);
	bench_append(b, s, fence, 2, "two");
	assert_string_equal(hear(b, other, &at, SKV_OK), "0=a;1=b;2:two;");
	assert_int_equal(at.base, 1);
	assert_string_equal(hear(b, other, &at, SKV_OK), "");
	bench_append(b, s, fence, 3, "three");
	bench_append(b, s, fence, 4, "four");
	bench_append(b, s, fence, 5, "");
	refused_at = 4;
	assert_string_equal(hear(b, other, &at, SKV_E_NOT_FOUND), "3:three;");
	assert_int_equal(at.seq, 3);
	assert_int_equal(at.newest, 5);
	refused_at = 0;
	assert_string_equal(hear(b, other, &at, SKV_OK), "4:four;5:;");
	/* The follower has all of that. */
	contract_checkpoint(b, s, fence, 5, (const char *[]){ "c" }, 1);
	assert_string_equal(hear(b, other, &at, SKV_OK), "");
	assert_int_equal(at.base, 5);
	fence = bench_acquire(b, s, "me", 1000);
	bench_append(b, s, fence, 6, "six");
	assert_string_equal(hear(b, other, &at, SKV_OK), "6:six;");
	skv_store_close(other);
	skv_store_close(s);
}

void a_follower_that_is_left_behind_loads_again(void **state)
{
	struct bench *b = *state;
	struct skv_store *s = bench_open(b), *other = bench_open(b);
	struct skv_position at = { 0 };
	uint64_t fence = bench_acquire(b, s, "me", 1000);

	assert_string_equal(hear(b, other, &at, SKV_OK), ""); /* nothing is there yet */
	bench_append(b, s, fence, 1, "one");
	assert_string_equal(hear(b, other, &at, SKV_OK), "1:one;");
	bench_append(b, s, fence, 2, "two");
	bench_append(b, s, fence, 3, "three");
	contract_checkpoint(b, s, fence, 3, (const char *[]){ "abc" }, 1);
	bench_append(b, s, fence, 4, "four");
	assert_string_equal(hear(b, other, &at, SKV_E_CONFLICT), "");
	at = (struct skv_position){ 0 };
	assert_string_equal(hear(b, other, &at, SKV_OK), "0=abc;4:four;");
	skv_store_close(other);
	skv_store_close(s);
}

uint64_t contract_checkpoint(struct bench *b, struct skv_store *s, uint64_t fence, uint64_t upto,
			     const char *const *slices, uint32_t n)
{
	uint64_t id;

	bench_ok(b, skv_store_checkpoint_begin(s, 0, fence, &id, &b->err));
	for (uint32_t i = 0; i < n; i++)
		bench_ok(b, skv_store_checkpoint_slice(s, 0, fence, id, i, slices[i],
						       strlen(slices[i]), &b->err));
	bench_ok(b, skv_store_checkpoint_commit(s, 0, fence, id, n, upto, &b->err));
	return id;
}

void a_sink_can_end_the_load(void **state)
{
	struct bench *b = *state;
	struct skv_store *s = bench_open(b);
	struct ender e = { .b = b, .store = s, .end_slice = 2 };
	const struct skv_load_sink sink = { end_slice, end_record, &e };
	uint64_t fence = bench_acquire(b, s, "me", 1000), base;

	bench_append(b, s, fence, 1, "one");
	contract_checkpoint(b, s, fence, 1, (const char *[]){ "a", "b", "c" }, 3);
	bench_append(b, s, fence, 2, "two");
	bench_append(b, s, fence, 3, "three");
	assert_int_equal(skv_store_load(s, 0, &base, &sink, &b->err), 17);
	assert_int_equal(base, 1);
	assert_int_equal(e.slices, 2);
	assert_int_equal(e.records, 0);
	e = (struct ender){ .b = b, .store = s, .end_record = 1 };
	assert_int_equal(skv_store_load(s, 0, &base, &sink, &b->err), SKV_E_CORRUPT);
	assert_int_equal(e.slices, 3);
	assert_int_equal(e.records, 1);
	skv_store_close(s);
}

/* ---- checkpoints ----------------------------------------------------------------------------- */

void a_checkpoint_replaces_the_journal(void **state)
{
	struct bench *b = *state;
	struct skv_store *s = bench_open(b);
	struct skv_store_stats st;
	uint64_t fence = bench_acquire(b, s, "me", 1000), id;

	for (uint64_t seq = 1; seq <= 5; seq++)
		bench_append(b, s, fence, seq, "record");
	id = contract_checkpoint(b, s, fence, 3, (const char *[]){ "A", "B" }, 2);
	bench_holds(b, s, 0, "3|A,B|4:record,5:record");
	bench_ok(b, skv_store_stats_get(s, 0, &st, &b->err));
	assert_int_equal(st.journal_bytes, 12);
	assert_int_equal(st.last_seq, 5);
	assert_true(contract_checkpoint(b, s, fence, 5, (const char *[]){ "C" }, 1) > id);
	bench_holds(b, s, 0, "5|C|");
	bench_ok(b, skv_store_stats_get(s, 0, &st, &b->err));
	assert_int_equal(st.journal_bytes, 0);
	assert_int_equal(st.last_seq, 5);
	bench_append(b, s, fence, 6, "six");
	bench_holds(b, s, 0, "5|C|6:six");
	/* Another checkpoint at the same place, and one without slices. */
	contract_checkpoint(b, s, fence, 5, (const char *[]){ "D", "E" }, 2);
	bench_holds(b, s, 0, "5|D,E|6:six");
	contract_checkpoint(b, s, fence, 6, NULL, 0);
	bench_holds(b, s, 0, "6||");
	skv_store_close(s);
}

void an_unfinished_checkpoint_is_invisible(void **state)
{
	struct bench *b = *state;
	struct skv_store *s = bench_open(b);
	uint64_t fence = bench_acquire(b, s, "me", 1000), first, second;

	bench_append(b, s, fence, 1, "one");
	contract_checkpoint(b, s, fence, 1, (const char *[]){ "good" }, 1);
	bench_ok(b, skv_store_checkpoint_begin(s, 0, fence, &first, &b->err));
	bench_ok(b, skv_store_checkpoint_slice(s, 0, fence, first, 0, "half", 4, &b->err));
	bench_holds(b, s, 0, "1|good|");
	bench_ok(b, skv_store_checkpoint_abort(s, 0, first));
	assert_int_equal(skv_store_checkpoint_slice(s, 0, fence, first, 1, "x", 1, &b->err),
			 SKV_E_CONFLICT);
	assert_int_equal(skv_store_checkpoint_commit(s, 0, fence, first, 1, 1, &b->err),
			 SKV_E_CONFLICT);
	bench_ok(b, skv_store_checkpoint_abort(s, 0, first));

	/* A new begin ends the one before. */
	bench_ok(b, skv_store_checkpoint_begin(s, 0, fence, &first, &b->err));
	bench_ok(b, skv_store_checkpoint_begin(s, 0, fence, &second, &b->err));
	assert_true(second > first);
	assert_int_equal(skv_store_checkpoint_slice(s, 0, fence, first, 0, "x", 1, &b->err),
			 SKV_E_CONFLICT);
	bench_ok(b, skv_store_checkpoint_abort(s, 0, first)); /* not the newest: no effect */
	bench_ok(b, skv_store_checkpoint_slice(s, 0, fence, second, 0, "new", 3, &b->err));
	bench_ok(b, skv_store_checkpoint_commit(s, 0, fence, second, 1, 1, &b->err));
	bench_holds(b, s, 0, "1|new|");
	assert_int_equal(skv_store_checkpoint_commit(s, 0, fence, second, 1, 1, &b->err),
			 SKV_E_CONFLICT);
	skv_store_close(s);
}

void a_checkpoint_must_be_whole(void **state)
{
	struct bench *b = *state;
	struct skv_store *s = bench_open(b);
	uint64_t fence = bench_acquire(b, s, "me", 1000), id;

	bench_append(b, s, fence, 1, "one");
	bench_append(b, s, fence, 2, "two");
	contract_checkpoint(b, s, fence, 1, (const char *[]){ "good" }, 1);
	bench_ok(b, skv_store_checkpoint_begin(s, 0, fence, &id, &b->err));
	bench_ok(b, skv_store_checkpoint_slice(s, 0, fence, id, 2, "c", 1, &b->err));
	bench_ok(b, skv_store_checkpoint_slice(s, 0, fence, id, 0, "a", 1, &b->err));
	assert_int_equal(skv_store_checkpoint_commit(s, 0, fence, id, 3, 2, &b->err),
			 SKV_E_CONFLICT);
	bench_ok(b, skv_store_checkpoint_slice(s, 0, fence, id, 1, "b", 1, &b->err));
	bench_ok(b, skv_store_checkpoint_slice(s, 0, fence, id, 0, "again", 5, &b->err));
	assert_int_equal(skv_store_checkpoint_commit(s, 0, fence, id, 3, 0, &b->err),
			 SKV_E_CONFLICT);
	assert_int_equal(skv_store_checkpoint_commit(s, 0, fence, id, 3, 3, &b->err),
			 SKV_E_CONFLICT);
	bench_holds(b, s, 0, "1|good|2:two");
	bench_ok(b, skv_store_checkpoint_commit(s, 0, fence, id, 3, 2, &b->err));
	bench_holds(b, s, 0, "2|again,b,c|");
	skv_store_close(s);
}

void a_new_owner_ends_the_old_ones_checkpoint(void **state)
{
	struct bench *b = *state;
	struct skv_store *s = bench_open(b), *standby = bench_open(b);
	uint64_t old = bench_acquire(b, s, "old", 100), now, id, mine;

	bench_append(b, s, old, 1, "one");
	bench_ok(b, skv_store_checkpoint_begin(s, 0, old, &id, &b->err));
	bench_ok(b, skv_store_checkpoint_slice(s, 0, old, id, 0, "old", 3, &b->err));
	skv_fake_clock_advance(&b->clock, 100);
	now = bench_acquire(b, standby, "new", 100);
	assert_int_equal(skv_store_checkpoint_slice(s, 0, old, id, 1, "x", 1, &b->err),
			 SKV_E_FENCED);
	assert_int_equal(skv_store_checkpoint_commit(s, 0, old, id, 1, 1, &b->err), SKV_E_FENCED);
	assert_int_equal(skv_store_checkpoint_begin(s, 0, old, &mine, &b->err), SKV_E_FENCED);
	assert_int_equal(skv_store_checkpoint_commit(standby, 0, now, id, 1, 1, &b->err),
			 SKV_E_CONFLICT);
	bench_ok(b, skv_store_checkpoint_begin(standby, 0, now, &mine, &b->err));
	assert_true(mine > id);
	bench_holds(b, standby, 0, "0||1:one");
	skv_store_close(standby);
	skv_store_close(s);
}

void a_slice_of_the_largest_size(void **state)
{
	struct bench *b = *state;
	struct skv_store *s = bench_open(b);
	char *slice = malloc(SKV_STORE_SLICE_MAX + 1), *got;
	uint64_t fence = bench_acquire(b, s, "me", 1000);

	memset(slice, 's', SKV_STORE_SLICE_MAX);
	slice[SKV_STORE_SLICE_MAX] = '\0';
	contract_checkpoint(b, s, fence, 0, (const char *[]){ slice, "x", slice }, 3);
	got = bench_load(b, s, 0);
	assert_int_equal(strlen(got), 2 * (size_t)SKV_STORE_SLICE_MAX + strlen("0|,x,|"));
	assert_memory_equal(got + 2, slice, SKV_STORE_SLICE_MAX);
	free(got);
	free(slice);
	skv_store_close(s);
}
