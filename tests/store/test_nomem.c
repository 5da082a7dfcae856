/*
 * test_nomem.c - every allocation of our own code fails once, at each place of a scenario, until
 * the scenario passes: an error that says so, nothing half done, and the same call succeeds
 * afterwards.
 */
#include <stdlib.h>
#include <string.h>

#include <skv/mem.h>

#include "bench_store.h"

static int count_entry(void *ctx, const char *key, const void *bytes, size_t n, uint64_t version)
{
	(void)key;
	(void)bytes;
	(void)n;
	(void)version;
	++*(int *)ctx;
	return SKV_OK;
}

static int take_slice(void *ctx, uint32_t number, const void *bytes, size_t n)
{
	(void)bytes;
	(void)n;
	*(uint64_t *)ctx += number + 1;
	return SKV_OK;
}

static int take_record(void *ctx, uint64_t seq, const void *bytes, size_t n)
{
	(void)bytes;
	(void)n;
	*(uint64_t *)ctx += seq;
	return SKV_OK;
}

/* Calls until it works; only "out of memory" may come between, and only once: one allocation fails.
 */
#define INSIST(call)                                                                               \
	do {                                                                                       \
		int rc_ = (call);                                                                  \
		if (rc_ == SKV_E_NOMEM)                                                            \
			rc_ = (call);                                                              \
		bench_ok(b, rc_);                                                                  \
	} while (0)

static void play(struct bench *b)
{
	uint64_t fence, id, base, sum = 0, version = SKV_VERSION_NONE;
	const struct skv_load_sink sink = { take_slice, take_record, &sum };
	struct skv_store *s, *faulty;
	struct skv_store_stats st;
	struct skv_buf v = { 0 };
	int entries = 0;

	INSIST(skv_store_open(bench_kind->ops, &b->options, &s, &b->err));
	INSIST(skv_fault_store_open(s, &faulty, &b->err));
	s = faulty;
	INSIST(skv_store_put(s, NULL, "a", SKV_VERSION_NONE, "x", 1, &version, &b->err));
	INSIST(skv_store_put(s, NULL, "a", version, "y", 1, &version, &b->err));
	INSIST(skv_store_put(s, NULL, "b", SKV_VERSION_NONE, "z", 1, NULL, &b->err));
	INSIST((skv_buf_clear(&v), skv_store_get(s, "a", &v, NULL, &b->err)));
	INSIST((entries = 0, skv_store_list(s, "", count_entry, &entries, &b->err)));
	assert_int_equal(entries, 2);
	INSIST(skv_store_acquire(s, 0, "me", 1000, &fence, NULL, 0, &b->err));
	for (uint64_t seq = 1; seq <= 20; seq++)
		INSIST(skv_store_append(s, 0, fence, seq, "record", 6, 0, &b->err));
	INSIST(skv_store_checkpoint_begin(s, 0, fence, &id, &b->err));
	for (uint32_t i = 0; i < 10; i++)
		INSIST(skv_store_checkpoint_slice(s, 0, fence, id, i, "slice", 5, &b->err));
	INSIST(skv_store_checkpoint_commit(s, 0, fence, id, 10, 18, &b->err));
	INSIST((sum = 0, skv_store_load(s, 0, &base, &sink, &b->err)));
	assert_int_equal(base, 18);
	assert_int_equal(sum, 55 + 19 + 20);
	INSIST(skv_store_stats_get(s, 0, &st, &b->err));
	assert_int_equal(st.journal_bytes, 12);
	INSIST(skv_store_del(s, NULL, "b", 1, &b->err));
	skv_buf_destroy(&v);
	skv_store_close(s);
}

static void every_allocation_fails_once(void **state)
{
	unsigned long n = 0, asked;

	do {
		void *fresh;

		assert_int_equal(bench_setup(&fresh), 0);
		skv_mem_fail_at(++n);
		play(fresh);
		asked = skv_mem_count();
		skv_mem_fail_at(0);
		bench_teardown(&fresh);
	} while (asked >= n);
	print_message("%s: %lu allocations failed\n", bench_kind->name, n - 1);
	assert_true(n > 5);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest cases[] = { cmocka_unit_test(every_allocation_fails_once) };
	int failed = 0;

	for (int i = 0; i < 2; i++) {
		bench_kind = &bench_kinds[i];
		failed += cmocka_run_group_tests_name(bench_kind->name, cases, NULL, NULL);
	}
	return failed != 0;
}
