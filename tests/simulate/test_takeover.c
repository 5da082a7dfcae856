/*
 * test_takeover.c TRACES - a takeover in the middle of a published trace costs no hits: a standby
 * that followed knows what was used, by the core's own clock and journal. Prefix hit rates of the
 * requests behind it, beside those of an owner that stays.
 */
#include "core_pair.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <skv/limits.h>
#include <skv/trace.h>

#define BLOCK 4096u
#define UNIT (256u * BLOCK)
#define BEHIND 1500u  /* requests that are judged */
#define STEP_MS 1000u /* ownership is renewed in time */

static const char *folder;

struct rate {
	uint64_t hits, asked;
};

static uint32_t ask(struct env *e, const struct skv_trace_request *q)
{
	static struct skv_key k[SKV_MAX_KEYS];
	struct skv_lookup_res r;
	uint32_t had;

	for (uint32_t i = 0; i < q->n_ids; i++)
		k[i] = (struct skv_key){ 7, q->ids[i] };
	assert_int_equal(env_lookup(e, k, q->n_ids, SKV_LOOKUP_PREFIX, 0, &r), SKV_OK);
	had = r.matched;
	env_put(e, k, q->n_ids);
	return had;
}

/* The trace's time goes by, in steps. */
static void wait_until(struct pair *p, struct env *e, uint64_t *now, uint64_t at)
{
	while (*now < at) {
		uint64_t step = at - *now < STEP_MS ? at - *now : STEP_MS;

		if (e == &p->a)
			pair_pass(p, step);
		else
			env_advance(e, step);
		*now += step;
	}
}

static double run(const struct skv_trace *t, uint64_t blocks, const char *policy, bool owner_goes)
{
	const size_t middle = t->n / 2;
	struct rate rate = { 0 };
	uint64_t now = t->v[0].timestamp_ms;
	struct pair p;
	struct env *e;

	pair_begin(&p, blocks / (UNIT / BLOCK) * UNIT, UNIT, BLOCK);
	pair_policy(&p, policy);
	e = &p.a;
	for (size_t i = 0; i < t->n && i < middle + BEHIND; i++) {
		const struct skv_trace_request *q = &t->v[i];
		uint32_t had;

		wait_until(&p, e, &now, q->timestamp_ms);
		if (i == middle && owner_goes) {
			pair_take_over(&p);
			assert_int_equal(pair_counters(&p.b).warm_takeovers, 1);
			e = &p.b;
		}
		had = q->n_ids ? ask(e, q) : 0;
		rate.hits += i >= middle ? had : 0;
		rate.asked += i >= middle ? q->n_ids : 0;
	}
	env_check(e);
	pair_end(&p);
	return (double)rate.hits / (double)rate.asked;
}

static void compare(const char *name, uint64_t blocks)
{
	static const char *const policies[] = { "reuse", "deferred", "lru" };
	struct skv_trace t = { 0 };
	char path[600], why[256];
	FILE *in;

	snprintf(path, sizeof path, "%s/%s.jsonl", folder, name);
	in = fopen(path, "r");
	if (!in || skv_trace_read(in, 0, &t, why) != 0)
		fail_msg("%s: %s", path, in ? why : "missing");
	fclose(in);
	for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
		double with = run(&t, blocks, policies[i], true),
		       without = run(&t, blocks, policies[i], false);

		print_message("%s, %u blocks, %s: %.4f after a takeover, %.4f without one\n", name,
			      (unsigned)blocks, policies[i], with, without);
		assert_true(with > without - 0.01);
	}
	skv_trace_free(&t);
}

static void conversation(void **state)
{
	(void)state;
	compare("conversation_trace", 10000);
}

static void synthetic(void **state)
{
	(void)state;
	compare("synthetic_trace", 4608);
}

static void agents(void **state)
{
	(void)state;
	compare("claude_code_mix", 4608);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(conversation),
		cmocka_unit_test(synthetic),
		cmocka_unit_test(agents),
	};
	char path[600];
	FILE *in;

	folder = argc > 1 ? argv[1] : "";
	snprintf(path, sizeof path, "%s/conversation_trace.jsonl", folder);
	in = fopen(path, "r");
	if (!in) {
		printf("skipped: no traces in '%s'\n", folder);
		return 77;
	}
	fclose(in);
	env_quiet();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
