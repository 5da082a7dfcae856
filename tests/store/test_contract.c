/*
 * test_contract.c - what every store must do, as one table of cases run against each kind of store.
 *
 * A case gets a bench with an empty store. Kinds: memory, SQLite in both modes, a fault store without a
 * rule on SQLite. Whatever holds for one backend only is in test_sqlite.c and test_fault.c.
 */
#include <stdatomic.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_store.h"

/* ---- registry --------------------------------------------------------------------------------------- */

static void put(struct bench *b, struct kvb_store *s, const char *key, const char *text)
{
	bench_ok(b, kvb_store_put(s, key, KVB_VERSION_ANY, text, strlen(text), NULL, &b->err));
}

static void registry_compares_and_sets(void **state)
{
	struct bench *b = *state;
	struct kvb_store *s = bench_open(b);
	struct kvb_buf v = { 0 };
	uint64_t version = 7;

	assert_int_equal(kvb_store_get(s, "k", &v, &version, &b->err), KVB_E_NOT_FOUND);
	assert_int_equal(version, 7);
	assert_int_equal(kvb_store_put(s, "k", 1, "a", 1, &version, &b->err), KVB_E_CONFLICT);
	assert_int_equal(kvb_store_put(s, "k", KVB_VERSION_NONE, "a", 1, &version, &b->err), KVB_OK);
	assert_int_equal(version, 1);
	assert_int_equal(kvb_store_put(s, "k", KVB_VERSION_NONE, "b", 1, &version, &b->err), KVB_E_CONFLICT);
	assert_int_equal(kvb_store_put(s, "k", 1, "bb", 2, &version, &b->err), KVB_OK);
	assert_int_equal(version, 2);
	assert_int_equal(kvb_store_put(s, "k", 1, "c", 1, &version, &b->err), KVB_E_CONFLICT);
	assert_int_equal(kvb_store_put(s, "k", KVB_VERSION_ANY, "d\0d", 3, &version, &b->err), KVB_OK);
	assert_int_equal(kvb_store_get(s, "k", &v, &version, &b->err), KVB_OK);
	assert_int_equal(version, 3);
	assert_int_equal(v.len, 3);
	assert_memory_equal(v.data, "d\0d", 3);
	assert_int_equal(kvb_store_del(s, "k", 2, &b->err), KVB_E_CONFLICT);
	assert_int_equal(kvb_store_del(s, "k", 3, &b->err), KVB_OK);
	assert_int_equal(kvb_store_del(s, "k", KVB_VERSION_ANY, &b->err), KVB_E_NOT_FOUND);
	assert_int_equal(kvb_store_get(s, "k", &v, NULL, &b->err), KVB_E_NOT_FOUND);
	kvb_buf_destroy(&v);
	kvb_store_close(s);
}

static void registry_keeps_empty_and_large_documents(void **state)
{
	struct bench *b = *state;
	struct kvb_store *s = bench_open(b);
	struct kvb_buf v = { 0 };
	uint8_t *large = malloc(KVB_STORE_VALUE_MAX);

	bench_fill(1, large, KVB_STORE_VALUE_MAX);
	bench_ok(b, kvb_store_put(s, "empty", KVB_VERSION_NONE, NULL, 0, NULL, &b->err));
	bench_ok(b, kvb_store_put(s, "large", KVB_VERSION_NONE, large, KVB_STORE_VALUE_MAX, NULL, &b->err));
	bench_ok(b, kvb_store_get(s, "empty", &v, NULL, &b->err));
	assert_int_equal(v.len, 0);
	bench_ok(b, kvb_store_get(s, "large", &v, NULL, &b->err));
	assert_int_equal(v.len, KVB_STORE_VALUE_MAX);
	assert_memory_equal(v.data, large, v.len);
	kvb_buf_destroy(&v);
	free(large);
	kvb_store_close(s);
}

struct listed {
	char text[256];
	struct kvb_store *store;
	int stop_after;
};

static int note(void *ctx, const char *key, const void *bytes, size_t n, uint64_t version)
{
	struct listed *l = ctx;

	snprintf(l->text + strlen(l->text), sizeof l->text - strlen(l->text), "%s=%.*s@%llu ", key, (int)n,
		 (const char *)bytes, (unsigned long long)version);
	if (l->store)
		assert_int_equal(kvb_store_put(l->store, "a/new", KVB_VERSION_ANY, "x", 1, NULL, NULL), KVB_OK);
	return --l->stop_after == 0 ? 42 : KVB_OK;
}

static void registry_lists_a_prefix_in_key_order(void **state)
{
	struct bench *b = *state;
	struct kvb_store *s = bench_open(b);
	struct listed l = { "", NULL, 0 };

	put(b, s, "a/2", "two");
	put(b, s, "b", "other");
	put(b, s, "a/10", "ten");
	put(b, s, "a/2", "TWO");
	put(b, s, "a", "short");
	put(b, s, "a0", "after the slash");
	bench_ok(b, kvb_store_list(s, "a/", note, &l, &b->err));
	assert_string_equal(l.text, "a/10=ten@1 a/2=TWO@2 ");
	l = (struct listed){ "", NULL, 0 };
	bench_ok(b, kvb_store_list(s, "", note, &l, &b->err));
	assert_string_equal(l.text, "a=short@1 a/10=ten@1 a/2=TWO@2 a0=after the slash@1 b=other@1 ");
	l = (struct listed){ "", NULL, 0 };
	bench_ok(b, kvb_store_list(s, "c", note, &l, &b->err));
	assert_string_equal(l.text, "");
	kvb_store_close(s);
}

static void a_listing_can_be_ended_and_may_write(void **state)
{
	struct bench *b = *state;
	struct kvb_store *s = bench_open(b);
	struct listed l = { "", NULL, 1 };

	put(b, s, "a/1", "one");
	put(b, s, "a/2", "two");
	assert_int_equal(kvb_store_list(s, "a/", note, &l, &b->err), 42);
	assert_string_equal(l.text, "a/1=one@1 ");
	/* What the function itself writes is not part of the moment that is listed. */
	l = (struct listed){ "", s, 0 };
	bench_ok(b, kvb_store_list(s, "a/", note, &l, &b->err));
	assert_string_equal(l.text, "a/1=one@1 a/2=two@1 ");
	kvb_store_close(s);
}

/* ---- arguments -------------------------------------------------------------------------------------- */

static void bad_arguments_are_refused(void **state)
{
	struct bench *b = *state;
	struct kvb_store *s = bench_open(b);
	uint64_t fence = bench_acquire(b, s, "me", 1000), id;
	char key[KVB_STORE_KEY_MAX + 2], owner[193];
	uint8_t *large = calloc(1, KVB_STORE_BATCH_MAX + 1);

	memset(key, 'k', sizeof key);
	key[sizeof key - 1] = '\0';
	memset(owner, 'o', sizeof owner);
	owner[192] = '\0';
	assert_int_equal(kvb_store_get(s, "", NULL, NULL, &b->err), KVB_E_INVALID);
	assert_string_equal(b->err.field, "key");
	assert_int_equal(kvb_store_put(s, key, KVB_VERSION_ANY, "", 0, NULL, &b->err), KVB_E_INVALID);
	assert_int_equal(kvb_store_put(s, "k", KVB_VERSION_ANY, large, KVB_STORE_VALUE_MAX + 1, NULL, &b->err),
			 KVB_E_TOO_LARGE);
	assert_int_equal(kvb_store_del(s, "k", KVB_VERSION_NONE, &b->err), KVB_E_INVALID);
	assert_int_equal(kvb_store_acquire(s, 1, "", 1, &fence, NULL, 0, &b->err), KVB_E_INVALID);
	assert_int_equal(kvb_store_acquire(s, 1, owner, 1, &fence, NULL, 0, &b->err), KVB_E_INVALID);
	assert_int_equal(kvb_store_acquire(s, 1, "o", 0, &fence, NULL, 0, &b->err), KVB_E_INVALID);
	assert_int_equal(kvb_store_acquire(s, KVB_STORE_PARTITION_MAX + 1, "o", 1, &fence, NULL, 0, &b->err),
			 KVB_E_INVALID);
	assert_int_equal(kvb_store_append(s, 0, fence, 0, "x", 1, 0, &b->err), KVB_E_INVALID);
	assert_int_equal(kvb_store_append(s, 0, fence, KVB_STORE_SEQ_MAX + 1, "x", 1, 0, &b->err), KVB_E_INVALID);
	assert_int_equal(kvb_store_append(s, 0, fence, 1, large, KVB_STORE_BATCH_MAX + 1, 0, &b->err),
			 KVB_E_TOO_LARGE);
	bench_ok(b, kvb_store_checkpoint_begin(s, 0, fence, &id, &b->err));
	assert_int_equal(kvb_store_checkpoint_slice(s, 0, fence, id, 0, large, KVB_STORE_SLICE_MAX + 1, &b->err),
			 KVB_E_TOO_LARGE);
	assert_int_equal(kvb_store_checkpoint_slice(s, 0, fence, id, KVB_STORE_SLICES_MAX, "", 0, &b->err),
			 KVB_E_TOO_LARGE);
	bench_holds(b, s, 0, "0||");
	free(large);
	kvb_store_close(s);
}

static void calls_are_counted(void **state)
{
	struct bench *b = *state;
	struct kvb_store *s = bench_open(b);
	struct kvb_store_counters c;
	uint64_t fence = bench_acquire(b, s, "me", 1000);

	bench_append(b, s, fence, 1, "four");
	bench_append(b, s, fence, 2, "sixsix");
	assert_int_equal(kvb_store_append(s, 0, fence, 2, "x", 1, 0, NULL), KVB_E_CONFLICT);
	kvb_store_counters_get(s, &c);
	assert_int_equal(c.calls, 4);
	assert_int_equal(c.errors, 1);
	assert_int_equal(c.appends, 2);
	assert_int_equal(c.append_bytes, 10);
	assert_true(c.append_max_us <= c.append_us);
	assert_int_equal(kvb_store_durability(s), bench_kind->durability);
	assert_string_equal(kvb_store_name(s), bench_kind->under_fault ? "fault" : bench_kind->ops->name);
	kvb_store_close(s);
}

/* ---- ownership -------------------------------------------------------------------------------------- */

static void ownership_goes_to_one(void **state)
{
	struct bench *b = *state;
	struct kvb_store *s = bench_open(b), *standby = bench_open(b);
	uint64_t first = bench_acquire(b, s, "first", 1000), second = 0;
	char holder[192] = "";

	assert_int_equal(kvb_store_acquire(standby, 0, "second", 1000, &second, holder, sizeof holder, &b->err),
			 KVB_E_NOT_OWNER);
	assert_string_equal(holder, "first");
	assert_int_equal(second, 0);
	/* Another partition is another matter. */
	bench_ok(b, kvb_store_acquire(standby, 1, "second", 1000, &second, NULL, 0, &b->err));
	kvb_fake_clock_advance(&b->clock, 900);
	bench_ok(b, kvb_store_renew(s, 0, first, 1000, &b->err));
	kvb_fake_clock_advance(&b->clock, 999);
	assert_int_equal(kvb_store_acquire(standby, 0, "second", 1000, &second, NULL, 0, &b->err), KVB_E_NOT_OWNER);
	kvb_fake_clock_advance(&b->clock, 1);
	bench_ok(b, kvb_store_acquire(standby, 0, "second", 1000, &second, NULL, 0, &b->err));
	assert_true(second > first);
	assert_int_equal(kvb_store_renew(s, 0, first, 1000, &b->err), KVB_E_FENCED);
	assert_int_equal(kvb_store_release(s, 0, first, &b->err), KVB_E_FENCED);
	bench_ok(b, kvb_store_renew(standby, 0, second, 1000, &b->err));
	kvb_store_close(standby);
	kvb_store_close(s);
}

static void a_release_is_at_once_and_final(void **state)
{
	struct bench *b = *state;
	struct kvb_store *s = bench_open(b);
	uint64_t first = bench_acquire(b, s, "first", 60000), second;

	bench_ok(b, kvb_store_release(s, 0, first, &b->err));
	assert_int_equal(kvb_store_append(s, 0, first, 1, "x", 1, 0, &b->err), KVB_E_FENCED);
	assert_int_equal(kvb_store_renew(s, 0, first, 1000, &b->err), KVB_E_FENCED);
	assert_int_equal(kvb_store_release(s, 0, first, &b->err), KVB_E_FENCED);
	second = bench_acquire(b, s, "second", 60000);
	assert_true(second > first);
	kvb_store_close(s);
}

static void acquiring_again_fences_what_is_in_flight(void **state)
{
	struct bench *b = *state;
	struct kvb_store *s = bench_open(b);
	uint64_t first = bench_acquire(b, s, "me", 60000);
	uint64_t second = bench_acquire(b, s, "me", 60000);

	assert_true(second > first);
	assert_int_equal(kvb_store_append(s, 0, first, 1, "x", 1, 0, &b->err), KVB_E_FENCED);
	bench_append(b, s, second, 1, "y");
	bench_holds(b, s, 0, "0||1:y");
	kvb_store_close(s);
}

static void a_lease_that_ran_out_unseen_can_be_renewed(void **state)
{
	struct bench *b = *state;
	struct kvb_store *s = bench_open(b);
	uint64_t fence = bench_acquire(b, s, "me", 1000);

	kvb_fake_clock_advance(&b->clock, 5000);
	bench_ok(b, kvb_store_renew(s, 0, fence, 1000, &b->err));
	assert_int_equal(kvb_store_acquire(s, 0, "other", 1000, &fence, NULL, 0, &b->err), KVB_E_NOT_OWNER);
	kvb_store_close(s);
}

/* ---- journal ---------------------------------------------------------------------------------------- */

static void appends_follow_each_other(void **state)
{
	struct bench *b = *state;
	struct kvb_store *s = bench_open(b);
	struct kvb_store_stats st;
	uint64_t fence = bench_acquire(b, s, "me", 1000);

	bench_holds(b, s, 0, "0||");
	assert_int_equal(kvb_store_append(s, 0, fence, 2, "x", 1, 0, &b->err), KVB_E_CONFLICT);
	bench_append(b, s, fence, 1, "one");
	bench_append(b, s, fence, 2, "two");
	assert_int_equal(kvb_store_append(s, 0, fence, 2, "x", 1, 0, &b->err), KVB_E_CONFLICT);
	assert_int_equal(kvb_store_append(s, 0, fence, 4, "x", 1, 0, &b->err), KVB_E_CONFLICT);
	bench_append(b, s, fence, 3, "");
	bench_holds(b, s, 0, "0||1:one,2:two,3:");
	bench_ok(b, kvb_store_stats_get(s, 0, &st, &b->err));
	assert_int_equal(st.last_seq, 3);
	assert_int_equal(st.journal_bytes, 6);
	assert_true(st.free_bytes > 0);
	bench_ok(b, kvb_store_sync(s, &b->err));
	kvb_store_close(s);
}

static void partitions_are_apart(void **state)
{
	struct bench *b = *state;
	struct kvb_store *s = bench_open(b);
	const uint32_t last = KVB_STORE_PARTITION_MAX;
	uint64_t f0 = bench_acquire(b, s, "me", 1000), f1;

	bench_ok(b, kvb_store_acquire(s, last, "me", 1000, &f1, NULL, 0, &b->err));
	bench_append(b, s, f0, 1, "zero");
	bench_ok(b, kvb_store_append(s, last, f1, 1, "last", 4, 0, &b->err));
	bench_append(b, s, f0, 2, "zero");
	bench_holds(b, s, 0, "0||1:zero,2:zero");
	bench_holds(b, s, last, "0||1:last");
	bench_holds(b, s, 1, "0||");
	kvb_store_close(s);
}

static void an_append_needs_the_newest_fence(void **state)
{
	struct bench *b = *state;
	struct kvb_store *s = bench_open(b), *standby = bench_open(b);
	uint64_t old = bench_acquire(b, s, "old", 100), now;

	assert_int_equal(kvb_store_append(s, 0, 0, 1, "x", 1, 0, &b->err), KVB_E_FENCED);
	assert_int_equal(kvb_store_append(s, 0, old + 1, 1, "x", 1, 0, &b->err), KVB_E_FENCED);
	assert_int_equal(kvb_store_append(s, 3, old, 1, "x", 1, 0, &b->err), KVB_E_FENCED);
	bench_append(b, s, old, 1, "old");
	kvb_fake_clock_advance(&b->clock, 100);
	now = bench_acquire(b, standby, "new", 100);
	bench_append(b, standby, now, 2, "new");
	assert_int_equal(kvb_store_append(s, 0, old, 3, "late", 4, 0, &b->err), KVB_E_FENCED);
	bench_holds(b, s, 0, "0||1:old,2:new");
	kvb_store_close(standby);
	kvb_store_close(s);
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
	return KVB_OK;
}

static int compare_record(void *ctx, uint64_t seq, const void *bytes, size_t n)
{
	struct one_record *o = ctx;

	assert_int_equal(seq, 1);
	assert_int_equal(n, o->n);
	assert_memory_equal(bytes, o->want, n);
	o->seen++;
	return KVB_OK;
}

static void a_batch_of_the_largest_size(void **state)
{
	struct bench *b = *state;
	struct kvb_store *s = bench_open(b);
	uint8_t *bytes = malloc(KVB_STORE_BATCH_MAX);
	struct one_record one = { bytes, KVB_STORE_BATCH_MAX, 0 };
	const struct kvb_load_sink sink = { no_slice, compare_record, &one };
	uint64_t fence = bench_acquire(b, s, "me", 1000), base;

	bench_fill(3, bytes, KVB_STORE_BATCH_MAX);
	bench_ok(b, kvb_store_append(s, 0, fence, 1, bytes, KVB_STORE_BATCH_MAX, 0, &b->err));
	bench_ok(b, kvb_store_load(s, 0, &base, &sink, &b->err));
	assert_int_equal(one.seen, 1);
	free(bytes);
	kvb_store_close(s);
}

/* ---- load ------------------------------------------------------------------------------------------- */

struct ender {
	struct kvb_store *store;
	int slices, records;
	int end_slice, end_record;
};

static int end_slice(void *ctx, uint32_t number, const void *bytes, size_t n)
{
	struct ender *e = ctx;

	(void)number;
	(void)bytes;
	(void)n;
	return ++e->slices == e->end_slice ? 17 : KVB_OK;
}

static int end_record(void *ctx, uint64_t seq, const void *bytes, size_t n)
{
	struct ender *e = ctx;

	(void)seq;
	(void)bytes;
	(void)n;
	/* The store may be used meanwhile. */
	assert_int_equal(kvb_store_put(e->store, "k", KVB_VERSION_ANY, "v", 1, NULL, NULL), KVB_OK);
	return ++e->records == e->end_record ? KVB_E_CORRUPT : KVB_OK;
}

static uint64_t checkpoint(struct bench *b, struct kvb_store *s, uint64_t fence, uint64_t upto,
			   const char *const *slices, uint32_t n)
{
	uint64_t id;

	bench_ok(b, kvb_store_checkpoint_begin(s, 0, fence, &id, &b->err));
	for (uint32_t i = 0; i < n; i++)
		bench_ok(b, kvb_store_checkpoint_slice(s, 0, fence, id, i, slices[i], strlen(slices[i]), &b->err));
	bench_ok(b, kvb_store_checkpoint_commit(s, 0, fence, id, n, upto, &b->err));
	return id;
}

static void a_sink_can_end_the_load(void **state)
{
	struct bench *b = *state;
	struct kvb_store *s = bench_open(b);
	struct ender e = { .store = s, .end_slice = 2 };
	const struct kvb_load_sink sink = { end_slice, end_record, &e };
	uint64_t fence = bench_acquire(b, s, "me", 1000), base;

	bench_append(b, s, fence, 1, "one");
	checkpoint(b, s, fence, 1, (const char *[]){ "a", "b", "c" }, 3);
	bench_append(b, s, fence, 2, "two");
	bench_append(b, s, fence, 3, "three");
	assert_int_equal(kvb_store_load(s, 0, &base, &sink, &b->err), 17);
	assert_int_equal(base, 1);
	assert_int_equal(e.slices, 2);
	assert_int_equal(e.records, 0);
	e = (struct ender){ .store = s, .end_record = 1 };
	assert_int_equal(kvb_store_load(s, 0, &base, &sink, &b->err), KVB_E_CORRUPT);
	assert_int_equal(e.slices, 3);
	assert_int_equal(e.records, 1);
	kvb_store_close(s);
}

/* ---- checkpoints ------------------------------------------------------------------------------------ */

static void a_checkpoint_replaces_the_journal(void **state)
{
	struct bench *b = *state;
	struct kvb_store *s = bench_open(b);
	struct kvb_store_stats st;
	uint64_t fence = bench_acquire(b, s, "me", 1000), id;

	for (uint64_t seq = 1; seq <= 5; seq++)
		bench_append(b, s, fence, seq, "record");
	id = checkpoint(b, s, fence, 3, (const char *[]){ "A", "B" }, 2);
	bench_holds(b, s, 0, "3|A,B|4:record,5:record");
	bench_ok(b, kvb_store_stats_get(s, 0, &st, &b->err));
	assert_int_equal(st.journal_bytes, 12);
	assert_int_equal(st.last_seq, 5);
	assert_true(checkpoint(b, s, fence, 5, (const char *[]){ "C" }, 1) > id);
	bench_holds(b, s, 0, "5|C|");
	bench_ok(b, kvb_store_stats_get(s, 0, &st, &b->err));
	assert_int_equal(st.journal_bytes, 0);
	assert_int_equal(st.last_seq, 5);
	bench_append(b, s, fence, 6, "six");
	bench_holds(b, s, 0, "5|C|6:six");
	/* One more at the same place, and one without slices. */
	checkpoint(b, s, fence, 5, (const char *[]){ "D", "E" }, 2);
	bench_holds(b, s, 0, "5|D,E|6:six");
	checkpoint(b, s, fence, 6, NULL, 0);
	bench_holds(b, s, 0, "6||");
	kvb_store_close(s);
}

static void an_unfinished_checkpoint_is_invisible(void **state)
{
	struct bench *b = *state;
	struct kvb_store *s = bench_open(b);
	uint64_t fence = bench_acquire(b, s, "me", 1000), first, second;

	bench_append(b, s, fence, 1, "one");
	checkpoint(b, s, fence, 1, (const char *[]){ "good" }, 1);
	bench_ok(b, kvb_store_checkpoint_begin(s, 0, fence, &first, &b->err));
	bench_ok(b, kvb_store_checkpoint_slice(s, 0, fence, first, 0, "half", 4, &b->err));
	bench_holds(b, s, 0, "1|good|");
	bench_ok(b, kvb_store_checkpoint_abort(s, 0, first));
	assert_int_equal(kvb_store_checkpoint_slice(s, 0, fence, first, 1, "x", 1, &b->err), KVB_E_CONFLICT);
	assert_int_equal(kvb_store_checkpoint_commit(s, 0, fence, first, 1, 1, &b->err), KVB_E_CONFLICT);
	bench_ok(b, kvb_store_checkpoint_abort(s, 0, first));

	/* A new begin ends the one before. */
	bench_ok(b, kvb_store_checkpoint_begin(s, 0, fence, &first, &b->err));
	bench_ok(b, kvb_store_checkpoint_begin(s, 0, fence, &second, &b->err));
	assert_true(second > first);
	assert_int_equal(kvb_store_checkpoint_slice(s, 0, fence, first, 0, "x", 1, &b->err), KVB_E_CONFLICT);
	bench_ok(b, kvb_store_checkpoint_abort(s, 0, first)); /* not the newest: no effect */
	bench_ok(b, kvb_store_checkpoint_slice(s, 0, fence, second, 0, "new", 3, &b->err));
	bench_ok(b, kvb_store_checkpoint_commit(s, 0, fence, second, 1, 1, &b->err));
	bench_holds(b, s, 0, "1|new|");
	assert_int_equal(kvb_store_checkpoint_commit(s, 0, fence, second, 1, 1, &b->err), KVB_E_CONFLICT);
	kvb_store_close(s);
}

static void a_checkpoint_must_be_whole(void **state)
{
	struct bench *b = *state;
	struct kvb_store *s = bench_open(b);
	uint64_t fence = bench_acquire(b, s, "me", 1000), id;

	bench_append(b, s, fence, 1, "one");
	bench_append(b, s, fence, 2, "two");
	checkpoint(b, s, fence, 1, (const char *[]){ "good" }, 1);
	bench_ok(b, kvb_store_checkpoint_begin(s, 0, fence, &id, &b->err));
	bench_ok(b, kvb_store_checkpoint_slice(s, 0, fence, id, 2, "c", 1, &b->err));
	bench_ok(b, kvb_store_checkpoint_slice(s, 0, fence, id, 0, "a", 1, &b->err));
	assert_int_equal(kvb_store_checkpoint_commit(s, 0, fence, id, 3, 2, &b->err), KVB_E_CONFLICT);
	bench_ok(b, kvb_store_checkpoint_slice(s, 0, fence, id, 1, "b", 1, &b->err));
	bench_ok(b, kvb_store_checkpoint_slice(s, 0, fence, id, 0, "again", 5, &b->err));
	assert_int_equal(kvb_store_checkpoint_commit(s, 0, fence, id, 3, 0, &b->err), KVB_E_CONFLICT);
	assert_int_equal(kvb_store_checkpoint_commit(s, 0, fence, id, 3, 3, &b->err), KVB_E_CONFLICT);
	bench_holds(b, s, 0, "1|good|2:two");
	bench_ok(b, kvb_store_checkpoint_commit(s, 0, fence, id, 3, 2, &b->err));
	bench_holds(b, s, 0, "2|again,b,c|");
	kvb_store_close(s);
}

static void a_new_owner_ends_the_old_ones_checkpoint(void **state)
{
	struct bench *b = *state;
	struct kvb_store *s = bench_open(b), *standby = bench_open(b);
	uint64_t old = bench_acquire(b, s, "old", 100), now, id, mine;

	bench_append(b, s, old, 1, "one");
	bench_ok(b, kvb_store_checkpoint_begin(s, 0, old, &id, &b->err));
	bench_ok(b, kvb_store_checkpoint_slice(s, 0, old, id, 0, "old", 3, &b->err));
	kvb_fake_clock_advance(&b->clock, 100);
	now = bench_acquire(b, standby, "new", 100);
	assert_int_equal(kvb_store_checkpoint_slice(s, 0, old, id, 1, "x", 1, &b->err), KVB_E_FENCED);
	assert_int_equal(kvb_store_checkpoint_commit(s, 0, old, id, 1, 1, &b->err), KVB_E_FENCED);
	assert_int_equal(kvb_store_checkpoint_begin(s, 0, old, &mine, &b->err), KVB_E_FENCED);
	assert_int_equal(kvb_store_checkpoint_commit(standby, 0, now, id, 1, 1, &b->err), KVB_E_CONFLICT);
	bench_ok(b, kvb_store_checkpoint_begin(standby, 0, now, &mine, &b->err));
	assert_true(mine > id);
	bench_holds(b, standby, 0, "0||1:one");
	kvb_store_close(standby);
	kvb_store_close(s);
}

static void a_slice_of_the_largest_size(void **state)
{
	struct bench *b = *state;
	struct kvb_store *s = bench_open(b);
	char *slice = malloc(KVB_STORE_SLICE_MAX + 1), *got;
	uint64_t fence = bench_acquire(b, s, "me", 1000);

	memset(slice, 's', KVB_STORE_SLICE_MAX);
	slice[KVB_STORE_SLICE_MAX] = '\0';
	checkpoint(b, s, fence, 0, (const char *[]){ slice, "x", slice }, 3);
	got = bench_load(b, s, 0);
	assert_int_equal(strlen(got), 2 * (size_t)KVB_STORE_SLICE_MAX + strlen("0|,x,|"));
	assert_memory_equal(got + 2, slice, KVB_STORE_SLICE_MAX);
	free(got);
	free(slice);
	kvb_store_close(s);
}

/* ---- persistence and concurrency -------------------------------------------------------------------- */

static void a_reopened_store_has_everything(void **state)
{
	struct bench *b = *state;
	struct kvb_store *s = bench_open(b);
	uint64_t fence = bench_acquire(b, s, "me", 1000), other;
	struct kvb_buf v = { 0 };

	put(b, s, "k", "value");
	bench_append(b, s, fence, 1, "one");
	bench_append(b, s, fence, 2, "two");
	checkpoint(b, s, fence, 1, (const char *[]){ "slice" }, 1);
	kvb_store_close(s);
	s = bench_open(b);
	bench_ok(b, kvb_store_get(s, "k", &v, NULL, &b->err));
	assert_memory_equal(v.data, "value", 5);
	bench_holds(b, s, 0, "1|slice|2:two");
	assert_int_equal(kvb_store_acquire(s, 0, "other", 1000, &other, NULL, 0, &b->err), KVB_E_NOT_OWNER);
	bench_append(b, s, fence, 3, "three");
	bench_holds(b, s, 0, "1|slice|2:two,3:three");
	kvb_buf_destroy(&v);
	kvb_store_close(s);
}

static void two_openers_see_each_other(void **state)
{
	struct bench *b = *state;
	struct kvb_store *s = bench_open(b), *other = bench_open(b);
	uint64_t fence = bench_acquire(b, s, "me", 1000);
	struct kvb_buf v = { 0 };

	put(b, s, "k", "value");
	bench_ok(b, kvb_store_get(other, "k", &v, NULL, &b->err));
	bench_append(b, s, fence, 1, "one");
	bench_holds(b, other, 0, "0||1:one");
	checkpoint(b, s, fence, 1, (const char *[]){ "slice" }, 1);
	bench_holds(b, other, 0, "1|slice|");
	kvb_buf_destroy(&v);
	kvb_store_close(s);
	bench_holds(b, other, 0, "1|slice|");
	kvb_store_close(other);
}

enum { LOAD_APPENDS = 300, LOAD_BYTES = 3000 };

struct crowd {
	struct kvb_store *store;
	uint64_t fence;
	_Atomic uint64_t appended;
	_Atomic bool done;
	_Atomic int failures;
};

static void *append_many(void *ctx)
{
	struct crowd *c = ctx;
	uint8_t bytes[LOAD_BYTES];

	for (uint64_t seq = 1; seq <= LOAD_APPENDS; seq++) {
		bench_fill(seq, bytes, sizeof bytes);
		if (kvb_store_append(c->store, 0, c->fence, seq, bytes, sizeof bytes, 0, NULL) != KVB_OK)
			c->failures++;
		c->appended = seq;
	}
	c->done = true;
	return NULL;
}

static void *checkpoint_many(void *ctx)
{
	struct crowd *c = ctx;
	uint8_t bytes[LOAD_BYTES];

	while (!c->done) {
		uint64_t upto = c->appended, id = 0;
		int rc = kvb_store_checkpoint_begin(c->store, 0, c->fence, &id, NULL);

		bench_fill(upto, bytes, sizeof bytes);
		for (uint32_t i = 0; rc == KVB_OK && i < 3; i++)
			rc = kvb_store_checkpoint_slice(c->store, 0, c->fence, id, i, bytes, sizeof bytes, NULL);
		if (rc == KVB_OK)
			rc = kvb_store_checkpoint_commit(c->store, 0, c->fence, id, 3, upto, NULL);
		if (rc != KVB_OK)
			c->failures++;
	}
	return NULL;
}

static void *register_many(void *ctx)
{
	struct crowd *c = ctx;
	uint64_t version = KVB_VERSION_NONE;

	while (!c->done) {
		if (kvb_store_put(c->store, "crowd", version, "x", 1, &version, NULL) != KVB_OK)
			c->failures++;
		if (kvb_store_renew(c->store, 0, c->fence, 60000, NULL) != KVB_OK)
			c->failures++;
		if (kvb_store_sync(c->store, NULL) != KVB_OK)
			c->failures++;
	}
	return NULL;
}

struct crowd_load {
	uint64_t base, next;
	int slices, wrong;
};

static int crowd_slice(void *ctx, uint32_t number, const void *bytes, size_t n)
{
	struct crowd_load *l = ctx;
	uint8_t want[LOAD_BYTES];

	bench_fill(l->base, want, sizeof want);
	if (number != (uint32_t)l->slices++ || n != sizeof want || memcmp(bytes, want, n) != 0)
		l->wrong++;
	l->next = l->base + 1;
	return KVB_OK;
}

static int crowd_record(void *ctx, uint64_t seq, const void *bytes, size_t n)
{
	struct crowd_load *l = ctx;
	uint8_t want[LOAD_BYTES];

	bench_fill(seq, want, sizeof want);
	if (seq != (l->next ? l->next : 1) || n != sizeof want || memcmp(bytes, want, n) != 0)
		l->wrong++;
	l->next = seq + 1;
	return KVB_OK;
}

static void load_once(struct crowd *c, struct crowd_load *l)
{
	const struct kvb_load_sink sink = { crowd_slice, crowd_record, l };

	*l = (struct crowd_load){ 0 };
	if (kvb_store_load(c->store, 0, &l->base, &sink, NULL) != KVB_OK || l->wrong)
		c->failures++;
}

static void *load_many(void *ctx)
{
	struct crowd *c = ctx;
	struct crowd_load l;

	while (!c->done)
		load_once(c, &l);
	return NULL;
}

static void a_crowd_of_threads(void **state)
{
	struct bench *b = *state;
	struct crowd c = { .store = bench_open(b) };
	void *(*const work[])(void *) = { append_many, checkpoint_many, register_many, load_many };
	struct crowd_load l;
	pthread_t t[4];

	c.fence = bench_acquire(b, c.store, "me", 60000);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&t[i], NULL, work[i], &c), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(c.failures, 0);
	load_once(&c, &l);
	assert_int_equal(c.failures, 0);
	assert_int_equal(l.next, LOAD_APPENDS + 1);
	kvb_store_close(c.store);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, bench_setup, bench_teardown)

int main(void)
{
	const struct CMUnitTest cases[] = {
		CASE(registry_compares_and_sets),
		CASE(registry_keeps_empty_and_large_documents),
		CASE(registry_lists_a_prefix_in_key_order),
		CASE(a_listing_can_be_ended_and_may_write),
		CASE(bad_arguments_are_refused),
		CASE(calls_are_counted),
		CASE(ownership_goes_to_one),
		CASE(a_release_is_at_once_and_final),
		CASE(acquiring_again_fences_what_is_in_flight),
		CASE(a_lease_that_ran_out_unseen_can_be_renewed),
		CASE(appends_follow_each_other),
		CASE(partitions_are_apart),
		CASE(an_append_needs_the_newest_fence),
		CASE(a_batch_of_the_largest_size),
		CASE(a_sink_can_end_the_load),
		CASE(a_checkpoint_replaces_the_journal),
		CASE(an_unfinished_checkpoint_is_invisible),
		CASE(a_checkpoint_must_be_whole),
		CASE(a_new_owner_ends_the_old_ones_checkpoint),
		CASE(a_slice_of_the_largest_size),
		CASE(a_reopened_store_has_everything),
		CASE(two_openers_see_each_other),
		CASE(a_crowd_of_threads),
	};
	int failed = 0;

	for (size_t i = 0; i < sizeof bench_kinds / sizeof bench_kinds[0]; i++) {
		bench_kind = &bench_kinds[i];
		failed += cmocka_run_group_tests_name(bench_kind->name, cases, NULL, NULL);
	}
	return failed != 0;
}
