/* contract_registry.c - cases of the contract: registry, arguments, ownership. See test_contract.c.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contract.h"

/* ---- registry -------------------------------------------------------------------------------- */

void contract_put(struct bench *b, struct skv_store *s, const char *key, const char *text)
{
	struct skv_buf old = { 0 };
	uint64_t version = SKV_VERSION_NONE;
	int rc = skv_store_get(s, key, &old, &version, &b->err);

	assert_true(rc == SKV_OK || rc == SKV_E_NOT_FOUND);
	bench_ok(b, skv_store_put(s, NULL, key, version, text, strlen(text), NULL, &b->err));
	skv_buf_destroy(&old);
}

void registry_compares_and_sets(void **state)
{
	struct bench *b = *state;
	struct skv_store *s = bench_open(b);
	struct skv_buf v = { 0 };
	uint64_t version = 7;

	assert_int_equal(skv_store_get(s, "k", &v, &version, &b->err), SKV_E_NOT_FOUND);
	assert_int_equal(version, 7);
	assert_int_equal(skv_store_put(s, NULL, "k", 1, "a", 1, &version, &b->err), SKV_E_CONFLICT);
	assert_int_equal(skv_store_put(s, NULL, "k", SKV_VERSION_NONE, "a", 1, &version, &b->err),
			 SKV_OK);
	assert_int_equal(version, 1);
	assert_int_equal(skv_store_put(s, NULL, "k", SKV_VERSION_NONE, "b", 1, &version, &b->err),
			 SKV_E_CONFLICT);
	assert_int_equal(skv_store_put(s, NULL, "k", 1, "bb", 2, &version, &b->err), SKV_OK);
	assert_int_equal(version, 2);
	assert_int_equal(skv_store_put(s, NULL, "k", 1, "c", 1, &version, &b->err), SKV_E_CONFLICT);
	assert_int_equal(skv_store_put(s, NULL, "k", 2, "d\0d", 3, &version, &b->err),
			 SKV_OK);
	assert_int_equal(skv_store_get(s, "k", &v, &version, &b->err), SKV_OK);
	assert_int_equal(version, 3);
	assert_int_equal(v.len, 3);
	assert_memory_equal(v.data, "d\0d", 3);
	assert_int_equal(skv_store_del(s, NULL, "k", 2, &b->err), SKV_E_CONFLICT);
	assert_int_equal(skv_store_del(s, NULL, "k", 3, &b->err), SKV_OK);
	assert_int_equal(skv_store_del(s, NULL, "k", 3, &b->err), SKV_E_NOT_FOUND);
	assert_int_equal(skv_store_get(s, "k", &v, NULL, &b->err), SKV_E_NOT_FOUND);
	skv_buf_destroy(&v);
	skv_store_close(s);
}

void registry_keeps_empty_and_large_documents(void **state)
{
	struct bench *b = *state;
	struct skv_store *s = bench_open(b);
	struct skv_buf v = { 0 };
	uint8_t *large = malloc(SKV_STORE_VALUE_MAX);

	bench_fill(1, large, SKV_STORE_VALUE_MAX);
	bench_ok(b, skv_store_put(s, NULL, "empty", SKV_VERSION_NONE, NULL, 0, NULL, &b->err));
	bench_ok(b, skv_store_put(s, NULL, "large", SKV_VERSION_NONE, large, SKV_STORE_VALUE_MAX,
				  NULL, &b->err));
	bench_ok(b, skv_store_get(s, "empty", &v, NULL, &b->err));
	assert_int_equal(v.len, 0);
	bench_ok(b, skv_store_get(s, "large", &v, NULL, &b->err));
	assert_int_equal(v.len, SKV_STORE_VALUE_MAX);
	assert_memory_equal(v.data, large, v.len);
	skv_buf_destroy(&v);
	free(large);
	skv_store_close(s);
}

struct listed {
	char text[256];
	struct skv_store *store;
	int stop_after;
	struct bench *b;
};

static int note(void *ctx, const char *key, const void *bytes, size_t n, uint64_t version)
{
	struct listed *l = ctx;

	snprintf(l->text + strlen(l->text), sizeof l->text - strlen(l->text), "%s=%.*s@%llu ", key,
		 (int)n, (const char *)bytes, (unsigned long long)version);
	if (l->store)
		contract_put(l->b, l->store, "a/new", "x");
	return --l->stop_after == 0 ? 42 : SKV_OK;
}

void registry_lists_a_prefix_in_key_order(void **state)
{
	struct bench *b = *state;
	struct skv_store *s = bench_open(b);
	struct listed l = { "", NULL, 0, b };

	contract_put(b, s, "a/2", "two");
	contract_put(b, s, "b", "other");
	contract_put(b, s, "a/10", "ten");
	contract_put(b, s, "a/2", "TWO");
	contract_put(b, s, "a", "short");
	contract_put(b, s, "a0", "after the slash");
	bench_ok(b, skv_store_list(s, "a/", note, &l, &b->err));
	assert_string_equal(l.text, "a/10=ten@1 a/2=TWO@2 ");
	l = (struct listed){ "", NULL, 0, b };
	bench_ok(b, skv_store_list(s, "", note, &l, &b->err));
	assert_string_equal(l.text,
			    "a=short@1 a/10=ten@1 a/2=TWO@2 a0=after the slash@1 b=other@1 ");
	l = (struct listed){ "", NULL, 0, b };
	bench_ok(b, skv_store_list(s, "c", note, &l, &b->err));
	assert_string_equal(l.text, "");
	skv_store_close(s);
}

void a_listing_can_be_ended_and_may_write(void **state)
{
	struct bench *b = *state;
	struct skv_store *s = bench_open(b);
	struct listed l = { "", NULL, 1, b };

	contract_put(b, s, "a/1", "one");
	contract_put(b, s, "a/2", "two");
	assert_int_equal(skv_store_list(s, "a/", note, &l, &b->err), 42);
	assert_string_equal(l.text, "a/1=one@1 ");
	/* A document that the function itself writes is not part of the moment that is listed. */
	l = (struct listed){ "", s, 0, b };
	bench_ok(b, skv_store_list(s, "a/", note, &l, &b->err));
	assert_string_equal(l.text, "a/1=one@1 a/2=two@1 ");
	skv_store_close(s);
}

/* ---- arguments ------------------------------------------------------------------------------- */

void bad_arguments_are_refused(void **state)
{
	struct bench *b = *state;
	struct skv_store *s = bench_open(b);
	uint64_t fence = bench_acquire(b, s, "me", 1000), id;
	char key[SKV_STORE_KEY_MAX + 2], owner[193];
	uint8_t *large = calloc(1, SKV_STORE_BATCH_MAX + 1);

	memset(key, 'k', sizeof key);
	key[sizeof key - 1] = '\0';
	memset(owner, 'o', sizeof owner);
	owner[192] = '\0';
	assert_int_equal(skv_store_get(s, "", NULL, NULL, &b->err), SKV_E_INVALID);
	assert_string_equal(b->err.field, "key");
	assert_int_equal(skv_store_put(s, NULL, key, SKV_VERSION_NONE, "", 0, NULL, &b->err),
			 SKV_E_INVALID);
	assert_int_equal(skv_store_put(s, NULL, "k", SKV_VERSION_NONE, large,
				       SKV_STORE_VALUE_MAX + 1, NULL, &b->err),
			 SKV_E_TOO_LARGE);
	assert_int_equal(skv_store_del(s, NULL, "k", SKV_VERSION_NONE, &b->err), SKV_E_INVALID);
	assert_int_equal(skv_store_acquire(s, 1, "", 1, &fence, NULL, 0, &b->err), SKV_E_INVALID);
	assert_int_equal(skv_store_acquire(s, 1, owner, 1, &fence, NULL, 0, &b->err),
			 SKV_E_INVALID);
	assert_int_equal(
		skv_store_acquire(s, SKV_STORE_PARTITION_MAX + 1, "o", 1, &fence, NULL, 0, &b->err),
		SKV_E_INVALID);
	assert_int_equal(skv_store_append(s, 0, fence, 0, "x", 1, 0, &b->err), SKV_E_INVALID);
	assert_int_equal(skv_store_append(s, 0, fence, SKV_STORE_SEQ_MAX + 1, "x", 1, 0, &b->err),
			 SKV_E_INVALID);
	assert_int_equal(
		skv_store_append(s, 0, fence, 1, large, SKV_STORE_BATCH_MAX + 1, 0, &b->err),
		SKV_E_TOO_LARGE);
	bench_ok(b, skv_store_checkpoint_begin(s, 0, fence, &id, &b->err));
	assert_int_equal(skv_store_checkpoint_slice(s, 0, fence, id, 0, large,
						    SKV_STORE_SLICE_MAX + 1, &b->err),
			 SKV_E_TOO_LARGE);
	assert_int_equal(
		skv_store_checkpoint_slice(s, 0, fence, id, SKV_STORE_SLICES_MAX, "", 0, &b->err),
		SKV_E_TOO_LARGE);
	bench_holds(b, s, 0, "0||");
	free(large);
	skv_store_close(s);
}

void calls_are_counted(void **state)
{
	struct bench *b = *state;
	struct skv_store *s = bench_open(b);
	struct skv_store_counters c;
	uint64_t fence = bench_acquire(b, s, "me", 1000);

	bench_append(b, s, fence, 1, "four");
	bench_append(b, s, fence, 2, "sixsix");
	assert_int_equal(skv_store_append(s, 0, fence, 2, "x", 1, 0, NULL), SKV_E_CONFLICT);
	skv_store_counters_get(s, &c);
	assert_int_equal(c.calls, 4);
	assert_int_equal(c.errors, 1);
	assert_int_equal(c.appends, 2);
	assert_int_equal(c.append_bytes, 10);
	assert_true(c.append_max_us <= c.append_us);
	assert_int_equal(skv_store_durability(s), bench_kind->durability);
	assert_string_equal(skv_store_name(s),
			    bench_kind->under_fault ? "fault" : bench_kind->ops->name);
	skv_store_close(s);
}

/* ---- ownership ------------------------------------------------------------------------------- */

void ownership_goes_to_one(void **state)
{
	struct bench *b = *state;
	struct skv_store *s = bench_open(b), *standby = bench_open(b);
	uint64_t first = bench_acquire(b, s, "first", 1000), second = 0;
	char holder[192] = "";

	assert_int_equal(skv_store_acquire(standby, 0, "second", 1000, &second, holder,
					   sizeof holder, &b->err),
			 SKV_E_NOT_OWNER);
	assert_string_equal(holder, "first");
	assert_int_equal(second, 0);
	holder[0] = '\0'; /* an acquire that only looks gets nothing, and takes nothing */
	assert_int_equal(
		skv_store_acquire(standby, 0, "second", 0, &second, holder, sizeof holder, &b->err),
		SKV_E_NOT_OWNER);
	assert_string_equal(holder, "first");
	bench_ok(b, skv_store_acquire(standby, 2, "second", 0, &second, NULL, 0, &b->err));
	bench_ok(b, skv_store_acquire(s, 2, "first", 1000, &second, NULL, 0, &b->err));
	second = 0;
	/* Another partition is another matter. */
	bench_ok(b, skv_store_acquire(standby, 1, "second", 1000, &second, NULL, 0, &b->err));
	skv_fake_clock_advance(&b->clock, 900);
	bench_ok(b, skv_store_renew(s, 0, first, 1000, &b->err));
	skv_fake_clock_advance(&b->clock, 999);
	assert_int_equal(skv_store_acquire(standby, 0, "second", 1000, &second, NULL, 0, &b->err),
			 SKV_E_NOT_OWNER);
	skv_fake_clock_advance(&b->clock, 1);
	bench_ok(b, skv_store_acquire(standby, 0, "second", 1000, &second, NULL, 0, &b->err));
	assert_true(second > first);
	assert_int_equal(skv_store_renew(s, 0, first, 1000, &b->err), SKV_E_FENCED);
	assert_int_equal(skv_store_release(s, 0, first, &b->err), SKV_E_FENCED);
	bench_ok(b, skv_store_renew(standby, 0, second, 1000, &b->err));
	skv_store_close(standby);
	skv_store_close(s);
}

void a_release_is_at_once_and_final(void **state)
{
	struct bench *b = *state;
	struct skv_store *s = bench_open(b);
	uint64_t first = bench_acquire(b, s, "first", 60000), second;

	bench_ok(b, skv_store_release(s, 0, first, &b->err));
	assert_int_equal(skv_store_append(s, 0, first, 1, "x", 1, 0, &b->err), SKV_E_FENCED);
	assert_int_equal(skv_store_renew(s, 0, first, 1000, &b->err), SKV_E_FENCED);
	assert_int_equal(skv_store_release(s, 0, first, &b->err), SKV_E_FENCED);
	second = bench_acquire(b, s, "second", 60000);
	assert_true(second > first);
	skv_store_close(s);
}

void a_registry_write_needs_the_newest_fence(void **state)
{
	struct bench *b = *state;
	struct skv_store *s = bench_open(b);
	struct skv_fence old = { .number = bench_acquire(b, s, "first", 60000) }, fence,
			 other = { .partition = 1 };
	struct skv_buf v = { 0 };
	uint64_t version;

	bench_ok(b, skv_store_put(s, &old, "k", SKV_VERSION_NONE, "a", 1, &version, &b->err));
	bench_ok(b, skv_store_release(s, 0, old.number, &b->err));
	assert_int_equal(skv_store_put(s, &old, "k", version, "b", 1, NULL, &b->err), SKV_E_FENCED);
	assert_int_equal(skv_store_del(s, &old, "k", version, &b->err), SKV_E_FENCED);
	fence = (struct skv_fence){ .number = bench_acquire(b, s, "second", 60000) };
	other.number = fence.number; /* of a partition that nobody owns */
	assert_int_equal(skv_store_put(s, &other, "k", version, "b", 1, NULL, &b->err),
			 SKV_E_FENCED);
	/* Before versions, or whether there is such a document at all. */
	assert_int_equal(skv_store_put(s, &old, "k", 99, "b", 1, NULL, &b->err), SKV_E_FENCED);
	assert_int_equal(skv_store_put(s, &old, "new", SKV_VERSION_NONE, "b", 1, NULL, &b->err),
			 SKV_E_FENCED);
	assert_int_equal(skv_store_del(s, &old, "none", 1, &b->err), SKV_E_FENCED);
	assert_int_equal(skv_store_get(s, "new", &v, NULL, &b->err), SKV_E_NOT_FOUND);
	bench_ok(b, skv_store_get(s, "k", &v, &version, &b->err));
	assert_int_equal(version, 1);
	assert_memory_equal(v.data, "a", 1);
	/* The same version again, of another document: what only compares versions is taken in. */
	bench_ok(b, skv_store_del(s, &fence, "k", version, &b->err));
	bench_ok(b, skv_store_put(s, &fence, "k", SKV_VERSION_NONE, "c", 1, &version, &b->err));
	assert_int_equal(version, 1);
	assert_int_equal(skv_store_del(s, &old, "k", version, &b->err), SKV_E_FENCED);
	bench_ok(b, skv_store_put(s, NULL, "mine", SKV_VERSION_NONE, "x", 1, &version, &b->err));
	bench_ok(b, skv_store_del(s, NULL, "mine", version, &b->err));
	other.partition = SKV_STORE_PARTITION_MAX + 1;
	assert_int_equal(skv_store_put(s, &other, "k", 1, "x", 1, NULL, &b->err), SKV_E_INVALID);
	skv_buf_destroy(&v);
	skv_store_close(s);
}

struct writer {
	struct skv_store *store;
	struct skv_fence fence;
	int end;
};

/* Reads between its writes: a store is locked for writing most of the time otherwise, and another
 * process's patience ends. */
static void *write_until_refused(void *arg)
{
	struct writer *w = arg;
	uint64_t version = SKV_VERSION_NONE;
	struct skv_buf v = { 0 };

	do {
		w->end = skv_store_put(w->store, &w->fence, "k", version, "x", 1, &version, NULL);
		for (int i = 0; w->end == SKV_OK && i < 100; i++)
			skv_store_get(w->store, "k", &v, NULL, NULL);
	} while (w->end == SKV_OK);
	skv_buf_destroy(&v);
	return NULL;
}

/* On a busy machine its patience may end before the writer lets it in: then it tries
 * again, as a manager does. */
static void acquire_from_a_writer(struct bench *b, struct skv_store *s)
{
	uint64_t fence = 0;
	int rc = SKV_E_STORE_IO;

	for (int tries = 0; tries < 30 && rc == SKV_E_STORE_IO; tries++)
		rc = skv_store_acquire(s, 0, "first", 60000, &fence, NULL, 0, &b->err);
	bench_ok(b, rc);
	assert_int_not_equal(fence, 0);
}

/* Another process's writer, in the middle of it: from the moment on when the ownership is
 * another's, nothing of it counts. */
void nothing_is_written_after_the_next_acquire(void **state)
{
	struct bench *b = *state;
	struct skv_store *s = bench_open(b), *next = bench_open(b);

	for (int round = 0; round < 20; round++) {
		struct writer w = { s, { .number = bench_acquire(b, s, "first", 60000) }, SKV_OK };
		uint64_t at_acquire = 0, at_end = 0;
		struct skv_buf v = { 0 };
		pthread_t thread;

		assert_int_equal(pthread_create(&thread, NULL, write_until_refused, &w), 0);
		while (skv_store_get(next, "k", &v, NULL, &b->err) == SKV_E_NOT_FOUND)
			;
		acquire_from_a_writer(b, next);
		bench_ok(b, skv_store_get(next, "k", &v, &at_acquire, &b->err));
		pthread_join(thread, NULL);
		assert_int_equal(w.end, SKV_E_FENCED);
		bench_ok(b, skv_store_get(next, "k", &v, &at_end, &b->err));
		assert_int_equal(at_end, at_acquire);
		bench_ok(b, skv_store_del(next, NULL, "k", at_end, &b->err));
		skv_buf_destroy(&v);
	}
	skv_store_close(next);
	skv_store_close(s);
}

void acquiring_again_fences_what_is_in_flight(void **state)
{
	struct bench *b = *state;
	struct skv_store *s = bench_open(b);
	uint64_t first = bench_acquire(b, s, "me", 60000);
	uint64_t second = bench_acquire(b, s, "me", 60000);

	assert_true(second > first);
	assert_int_equal(skv_store_append(s, 0, first, 1, "x", 1, 0, &b->err), SKV_E_FENCED);
	bench_append(b, s, second, 1, "y");
	bench_holds(b, s, 0, "0||1:y");
	skv_store_close(s);
}

void a_lease_that_ran_out_unseen_can_be_renewed(void **state)
{
	struct bench *b = *state;
	struct skv_store *s = bench_open(b);
	uint64_t fence = bench_acquire(b, s, "me", 1000);

	skv_fake_clock_advance(&b->clock, 5000);
	bench_ok(b, skv_store_renew(s, 0, fence, 1000, &b->err));
	assert_int_equal(skv_store_acquire(s, 0, "other", 1000, &fence, NULL, 0, &b->err),
			 SKV_E_NOT_OWNER);
	skv_store_close(s);
}
