/* test_fault.c - the fault store: each kind of rule, its counting, and that outcomes are what they
 * say. */
#include <stdio.h>
#include <string.h>

#include "bench_store.h"

static struct skv_store *open_faulty(struct bench *b, struct skv_store **side)
{
	struct skv_store *below, *s;

	bench_ok(b, skv_store_open(&skv_store_memory, &b->options, &below, &b->err));
	bench_ok(b, skv_store_open(&skv_store_memory, &b->options, side, &b->err));
	bench_ok(b, skv_fault_store_open(below, &s, &b->err));
	return s;
}

static void an_error_comes_without_asking(void **state)
{
	struct bench *b = *state;
	struct skv_store *side, *s = open_faulty(b, &side);
	const struct skv_fault rule = { .kind = SKV_FAULT_ERROR,
					.call = "append",
					.at = 2,
					.times = 2,
					.status = SKV_E_STORE_FULL };
	uint64_t fence = bench_acquire(b, s, "me", 1000);

	skv_fault_store_set(s, &rule);
	bench_append(b, s, fence, 1, "one");
	assert_int_equal(skv_store_append(s, 0, fence, 2, "x", 1, 0, &b->err), SKV_E_STORE_FULL);
	assert_string_equal(b->err.message, "append: a simulated failure");
	bench_ok(b,
		 skv_store_put(s, NULL, "k", SKV_VERSION_NONE, "v", 1, NULL, &b->err));
		 /* another call */
	assert_int_equal(skv_store_append(s, 0, fence, 2, "x", 1, 0, &b->err), SKV_E_STORE_FULL);
	bench_append(b, s, fence, 2, "two");
	assert_int_equal(skv_fault_store_seen(s), 4);
	bench_holds(b, side, 0, "0||1:one,2:two");
	skv_store_close(side);
	skv_store_close(s);
}

static void unknown_outcomes_are_before_or_after(void **state)
{
	struct bench *b = *state;
	struct skv_store *side, *s = open_faulty(b, &side);
	struct skv_fault rule = {
		.kind = SKV_FAULT_UNKNOWN_BEFORE, .call = "append", .at = 1, .times = 1
	};
	uint64_t fence = bench_acquire(b, s, "me", 1000);

	skv_fault_store_set(s, &rule);
	assert_int_equal(skv_store_append(s, 0, fence, 1, "a", 1, 0, &b->err),
			 SKV_E_UNKNOWN_OUTCOME);
	bench_holds(b, side, 0, "0||");
	rule.kind = SKV_FAULT_UNKNOWN_AFTER;
	skv_fault_store_set(s, &rule);
	assert_int_equal(skv_store_append(s, 0, fence, 1, "b", 1, 0, &b->err),
			 SKV_E_UNKNOWN_OUTCOME);
	bench_holds(b, side, 0, "0||1:b");
	bench_append(b, s, fence, 2, "c");
	skv_store_close(side);
	skv_store_close(s);
}

struct during {
	struct skv_store *store, *side;
	unsigned calls;
	char call[16];
	int seen;
};

static void look_aside(void *ctx, const char *call)
{
	struct during *d = ctx;
	struct skv_buf v = { 0 };

	d->calls++;
	snprintf(d->call, sizeof d->call, "%s", call);
	d->seen = skv_store_get(d->side, "k", &v, NULL, NULL);
	skv_buf_destroy(&v);
	skv_fault_store_set(d->store, &(struct skv_fault){ .kind = SKV_FAULT_NONE });
}

static void something_happens_while_a_call_is_on_its_way(void **state)
{
	struct bench *b = *state;
	struct skv_store *side, *s = open_faulty(b, &side);
	struct during d = { .store = s, .side = side };
	struct skv_fault rule = { .kind = SKV_FAULT_CALL, .at = 2, .fn = look_aside, .ctx = &d };

	skv_fault_store_set(s, &rule);
	bench_acquire(b, s, "me", 1000);
	bench_ok(b, skv_store_put(s, NULL, "k", SKV_VERSION_NONE, "v", 1, NULL, &b->err));
	assert_int_equal(d.calls, 1);
	assert_string_equal(d.call, "put");
	assert_int_equal(d.seen, SKV_E_NOT_FOUND); /* the document was absent, and exists now */
	look_aside(&d, "");
	assert_int_equal(d.seen, SKV_OK);
	skv_store_close(side);
	skv_store_close(s);
}

static int unasked_slice(void *ctx, uint32_t number, const void *bytes, size_t n)
{
	(void)ctx;
	(void)bytes;
	fail_msg("slice %u of %zu bytes", number, n);
	return SKV_OK;
}

static int unasked_record(void *ctx, uint64_t seq, const void *bytes, size_t n)
{
	(void)ctx;
	(void)bytes;
	fail_msg("record %llu of %zu bytes", (unsigned long long)seq, n);
	return SKV_OK;
}

static void a_rule_without_numbers_holds_for_ever(void **state)
{
	struct bench *b = *state;
	struct skv_store *side, *s = open_faulty(b, &side);
	struct skv_fault rule = { .kind = SKV_FAULT_ERROR, .status = SKV_E_STORE_IO };
	struct skv_store_stats st;
	struct skv_buf v = { 0 };
	uint64_t n;
	const struct skv_load_sink sink = { unasked_slice, unasked_record, NULL };

	skv_fault_store_set(s, &rule);
	assert_int_equal(skv_store_get(s, "k", &v, NULL, NULL), SKV_E_STORE_IO);
	assert_int_equal(skv_store_put(s, NULL, "k", SKV_VERSION_NONE, "v", 1, NULL, NULL),
			 SKV_E_STORE_IO);
	assert_int_equal(skv_store_del(s, NULL, "k", 1, NULL), SKV_E_STORE_IO);
	assert_int_equal(skv_store_acquire(s, 0, "me", 1, &n, NULL, 0, NULL), SKV_E_STORE_IO);
	assert_int_equal(skv_store_renew(s, 0, 1, 1, NULL), SKV_E_STORE_IO);
	assert_int_equal(skv_store_release(s, 0, 1, NULL), SKV_E_STORE_IO);
	assert_int_equal(skv_store_append(s, 0, 1, 1, "x", 1, 0, NULL), SKV_E_STORE_IO);
	assert_int_equal(skv_store_sync(s, 0, NULL), SKV_E_STORE_IO);
	assert_int_equal(skv_store_checkpoint_begin(s, 0, 1, &n, NULL), SKV_E_STORE_IO);
	assert_int_equal(skv_store_checkpoint_slice(s, 0, 1, 1, 0, "x", 1, NULL), SKV_E_STORE_IO);
	assert_int_equal(skv_store_checkpoint_commit(s, 0, 1, 1, 0, 0, NULL), SKV_E_STORE_IO);
	assert_int_equal(skv_store_checkpoint_abort(s, 0, 1), SKV_E_STORE_IO);
	assert_int_equal(skv_store_load(s, 0, &n, &sink, NULL), SKV_E_STORE_IO);
	assert_int_equal(skv_store_stats_get(s, 0, &st, NULL), SKV_E_STORE_IO);
	assert_int_equal(skv_fault_store_seen(s), 14);
	rule.kind = SKV_FAULT_NONE;
	skv_fault_store_set(s, &rule);
	bench_acquire(b, s, "me", 1);
	assert_int_equal(skv_fault_store_seen(s), 1);
	skv_buf_destroy(&v);
	skv_store_close(side);
	skv_store_close(s);
}

static void a_delay_delays(void **state)
{
	struct bench *b = *state;
	struct skv_store *side, *s = open_faulty(b, &side);
	const struct skv_fault rule = { .kind = SKV_FAULT_DELAY, .call = "put", .delay_ms = 20 };
	uint64_t begin = skv_now_us();

	skv_fault_store_set(s, &rule);
	bench_ok(b, skv_store_put(s, NULL, "k", SKV_VERSION_NONE, "v", 1, NULL, &b->err));
	assert_true(skv_now_us() - begin >= 20000);
	skv_store_close(side);
	skv_store_close(s);
}

static void only_a_fault_store_takes_rules(void **state)
{
	struct bench *b = *state;
	struct skv_store *side, *s = open_faulty(b, &side);
	const struct skv_fault rule = { .kind = SKV_FAULT_ERROR, .status = SKV_E_STORE_IO };

	skv_fault_store_set(side, &rule);
	bench_acquire(b, side, "me", 1000);
	assert_int_equal(skv_fault_store_seen(side), 0);
	skv_store_close(side);
	skv_store_close(s);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, bench_setup, bench_teardown)

int main(void)
{
	const struct CMUnitTest cases[] = {
		CASE(an_error_comes_without_asking),
		CASE(unknown_outcomes_are_before_or_after),
		CASE(something_happens_while_a_call_is_on_its_way),
		CASE(a_rule_without_numbers_holds_for_ever),
		CASE(a_delay_delays),
		CASE(only_a_fault_store_takes_rules),
	};

	return cmocka_run_group_tests_name("fault", cases, NULL, NULL);
}
