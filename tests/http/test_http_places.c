/* test_http_places.c - calls and matches on names that are elsewhere: the lead says where. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <poll.h>

#include <cmocka.h>

#include "fixture.h"

#define LOOKUP "/v1/instances/m/lookup"
#define KEYS "{\"keys_int\":[1,2,3]}"

/* The asked one owns partition 2, lead 0, third 1. */
struct three {
	struct fixture *asked, *lead, *third;
	char peer[2][64];
};

static int setup(void **state)
{
	static struct three t;
	struct fixture **each[] = { &t.asked, &t.lead, &t.third };

	for (size_t i = 0; i < 3; i++) {
		void *x;

		assert_int_equal(fixture_setup(&x), 0);
		*each[i] = x;
		(*each[i])->so.forward = i == 0;
		(*each[i])->so.hold_ms = i == 0 ? 10000 : 0;
		if (i)
			fixture_start(*each[i]);
	}
	snprintf(t.peer[0], sizeof t.peer[0], "http://127.0.0.1:%u", (unsigned)t.lead->port);
	snprintf(t.peer[1], sizeof t.peer[1], "http://127.0.0.1:%u", (unsigned)t.third->port);
	fake_core_owner(t.asked->core, 0, "lead", t.peer[0]);
	fake_core_owner(t.asked->core, 1, "third", t.peer[1]);
	fake_core_owner(t.lead->core, 1, "third", t.peer[1]);
	fake_core_owner(t.third->core, 0, "lead", t.peer[0]);
	fixture_start(t.asked);
	*state = &t;
	return 0;
}

static int teardown(void **state)
{
	struct three *t = *state;
	void *each[] = { t->asked, t->lead, t->third };

	for (size_t i = 0; i < 3; i++)
		assert_int_equal(fixture_teardown(&each[i]), 0);
	return 0;
}

static int lookup(const struct three *t)
{
	struct answer a = http_call(t->asked->port, "POST", LOOKUP, NULL, KEYS);
	int status = a.status;

	answer_free(&a);
	return status;
}

static void test_the_lead_says_where_it_is(void **state)
{
	const struct three *t = *state;

	fake_core_is_elsewhere(t->asked->core, 0, false);
	fake_core_is_elsewhere(t->lead->core, 1, true);
	assert_int_equal(lookup(t), 200);
	assert_int_equal(fake_core_calls(t->asked->core), 0); /* it was not even decoded */
	assert_int_equal(fake_core_calls(t->lead->core), 0);
	assert_int_equal(fake_core_calls(t->third->core), 1);
	assert_int_equal(fake_core_alone(t->third->core), 2);
	assert_int_equal(fake_core_learned(t->asked->core), 2);
	assert_int_equal(skv_metrics_get(&t->asked->service->metrics, METRIC_calls_forwarded), 1);
	assert_int_equal(skv_metrics_get(&t->asked->service->metrics, METRIC_calls_forward_failed),
			 0);
}

static void test_what_is_remembered_may_be_over(void **state)
{
	const struct three *t = *state;

	fake_core_is_elsewhere(t->asked->core, 1, false); /* it was there once */
	fake_core_is_elsewhere(t->third->core, 0, false);
	fake_core_is_elsewhere(t->lead->core, 1, true); /* and is not there any more */
	assert_int_equal(lookup(t), 404);
	assert_int_equal(fake_core_calls(t->third->core), 1); /* where the lead says that it is */
	assert_int_equal(fake_core_alone(t->third->core), 2);
}

/* It has the partition: what the lead says, that what is not there does not exist, holds here, too.
 */
static void test_the_lead_says_that_it_is_here(void **state)
{
	const struct three *t = *state;

	fake_core_is_elsewhere(t->asked->core, 0, false);
	fake_core_is_elsewhere(t->lead->core, 2, true);
	assert_int_equal(lookup(t), 404);
	assert_int_equal(fake_core_calls(t->asked->core), 1);
	assert_int_equal(fake_core_alone(t->asked->core), 3);
	assert_int_equal(fake_core_calls(t->lead->core), 1);
}

/* It is its own that knows. */
static void test_the_lead_was_asked(void **state)
{
	const struct three *t = *state;

	fake_core_is_elsewhere(t->asked->core, 1, true);
	assert_int_equal(lookup(t), 200);
	assert_int_equal(fake_core_alone(t->third->core), 2);
	assert_int_equal(fake_core_calls(t->lead->core), 0);
	assert_int_equal(fake_core_learned(t->asked->core), 0);
}

/* This manager did not know yet when it was asked first. */
static void test_who_is_refused_asks_itself_again(void **state)
{
	const struct three *t = *state;
	struct http h;
	struct answer a;

	fake_core_is_elsewhere(t->asked->core, 1, true);
	fake_core_fail(t->third->core, SKV_E_NOT_READY, "it is not here");
	http_open(&h, t->asked->port);
	http_request(&h, "POST", LOOKUP, NULL, KEYS);
	for (int i = 0; i < 5000 && fake_core_calls(t->third->core) == 0; i++)
		poll(NULL, 0, 1);
	fake_core_is_elsewhere(t->asked->core, 0, false);
	a = http_read(&h, false);
	assert_int_equal(a.status, 200);
	answer_free(&a);
	http_close(&h);
	assert_int_equal(fake_core_calls(t->lead->core), 1);
}

static int match_by(const struct three *t, const char *headers, const char *instances, char *text,
		    size_t size)
{
	char body[128];
	struct answer a;
	int status;

	snprintf(body, sizeof body, "{\"instances\":[%s],\"keys_int\":[1,2,3]}", instances);
	a = http_call(t->asked->port, "POST", "/v1/match", headers, body);
	status = a.status;
	snprintf(text, size, "%s", a.body);
	answer_free(&a);
	return status;
}

static int match(const struct three *t, const char *instances, char *text, size_t size)
{
	return match_by(t, NULL, instances, text, size);
}

/* A match over several instances that are not all here: each is asked for alone. */
static void test_a_match_is_split(void **state)
{
	const struct three *t = *state;
	struct metrics *m = &t->asked->service->metrics;
	char text[512];

	fake_core_is_elsewhere(t->asked->core, 0, false);
	assert_int_equal(match(t, "\"a\",\"b\"", text, sizeof text), 200);
	assert_int_equal(fake_core_calls(t->lead->core), 1); /* it has no address: as it came */
	snprintf(t->asked->service->peer, sizeof t->asked->service->peer, "http://127.0.0.1:%u",
		 (unsigned)t->asked->port);
	assert_int_equal(match(t, "\"a\",\"b\",\"c\"", text, sizeof text), 200);
	assert_string_equal(text, "{\"results\":[{\"instance\":\"a\",\"matched\":3},"
				  "{\"instance\":\"b\",\"matched\":3},"
				  "{\"instance\":\"c\",\"matched\":3}]}");
	assert_int_equal(fake_core_calls(t->asked->core), 5);
	assert_int_equal(fake_core_calls(t->lead->core), 4);
	assert_int_equal(fake_core_key(t->lead->core).lo, 1);
	assert_int_equal(skv_metrics_get(m, METRIC_matches_split), 1);
	/* one that is nowhere */
	assert_int_equal(match(t, "\"a\",\"gone\"", text, sizeof text), 404);
	assert_non_null(strstr(text, "instances[1]"));
	assert_non_null(strstr(text, "no such instance"));
	/* one that is asked for alone goes on as it came */
	assert_int_equal(match(t, "\"a\"", text, sizeof text), 200);
	assert_int_equal(skv_metrics_get(m, METRIC_matches_split), 2);
}

/* A client that finds the owner itself looks for one that has some of them. */
static void test_a_match_is_split_where_some_are(void **state)
{
	static const char direct[] = "Slabkv-Route: direct\r\n";
	const struct three *t = *state;
	struct metrics *m = &t->asked->service->metrics;
	char text[512];

	snprintf(t->asked->service->peer, sizeof t->asked->service->peer, "http://127.0.0.1:%u",
		 (unsigned)t->asked->port);
	fake_core_is_elsewhere(t->asked->core, 0, false);
	assert_int_equal(match_by(t, direct, "\"gone\",\"gone-too\"", text, sizeof text), 503);
	assert_int_equal(skv_metrics_get(m, METRIC_matches_split), 0);
	assert_int_equal(match_by(t, direct, "\"gone\",\"own\"", text, sizeof text), 404);
	assert_int_equal(match_by(t, direct, "\"b\",\"own\"", text, sizeof text), 200);
	assert_int_equal(skv_metrics_get(m, METRIC_matches_split), 2);
	assert_int_equal(match_by(t, direct, "\"a\"", text, sizeof text), 503);
}

/* ---- administration between managers --------------------------------------------------------- */

/* The lead, and the owner of partition 1, which wants tokens. */
struct two {
	struct fixture *lead, *owner;
	struct skv_core_asks asks;
	char peer[64];
};

static int setup_two(void **state)
{
	static struct two t;
	void *x;

	assert_int_equal(fixture_setup(&x), 0);
	t.lead = x;
	assert_int_equal(fixture_setup(&x), 0);
	t.owner = x;
	fixture_three_tokens(t.owner);
	fixture_start(t.owner);
	snprintf(t.peer, sizeof t.peer, "http://127.0.0.1:%u", (unsigned)t.owner->port);
	fake_core_owner(t.lead->core, 1, "owner", t.peer);
	fake_core_owner(t.owner->core, 0, "lead", "");
	t.lead->so.forward = true;
	t.lead->so.hold_ms = 1000;
	fixture_start(t.lead);
	fake_core_token(t.lead->core, 1, skv_auth_manager_token(&t.owner->service->auth));
	skv_v1_asks(t.lead->service, &t.asks);
	skv_thread_waits = true;
	*state = &t;
	return 0;
}

static int teardown_two(void **state)
{
	struct two *t = *state;
	void *each[] = { t->lead, t->owner };

	skv_thread_waits = false;
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(fixture_teardown(&each[i]), 0);
	return 0;
}

static int ask(const struct two *t, uint32_t partition, enum skv_ask_what what, const char *name,
	       struct skv_told *told, struct skv_arena *a, struct skv_error *err)
{
	const struct skv_ask q = { .partition = partition, .what = what, .tenant = "t",
				   .name = name };

	skv_error_clear(err);
	return t->asks.ask(t->asks.ctx, &q, told, a, err);
}

static void test_the_owner_is_asked(void **state)
{
	const struct two *t = *state;
	struct skv_told told;
	struct skv_error err;
	struct skv_arena a;

	skv_arena_init(&a);
	assert_int_equal(ask(t, 1, SKV_ASK_GROUPS, "g", &told, &a, &err), SKV_OK);
	assert_int_equal(told.n_groups, 1);
	assert_string_equal(told.groups[0].spec.name, "g");
	assert_true(told.created);
	assert_string_equal(fake_core_tenant(t->owner->core), "");
	assert_int_equal(ask(t, 1, SKV_ASK_INSTANCES, NULL, &told, &a, &err), SKV_OK);
	assert_int_equal(told.n_instances, 1);
	assert_string_equal(fake_core_tenant(t->owner->core), "t");
	/* what it found out is its answer */
	assert_int_equal(ask(t, 1, SKV_ASK_GROUPS, "gone", &told, &a, &err), SKV_E_NOT_FOUND);
	assert_string_equal(err.field, "instance");
	assert_string_equal(err.message, "no such instance");
	skv_arena_destroy(&a);
}

static void test_who_does_not_answer_is_named(void **state)
{
	const struct two *t = *state;
	struct skv_told told;
	struct skv_error err;
	struct skv_arena a;

	skv_arena_init(&a);
	fake_core_owner(t->owner->core, 1, "third", "");
	assert_int_equal(ask(t, 1, SKV_ASK_GROUPS, NULL, &told, &a, &err), SKV_E_NOT_OWNER);
	assert_non_null(strstr(err.message, "owner"));
	assert_int_equal(ask(t, 2, SKV_ASK_GROUPS, NULL, &told, &a, &err), SKV_E_NOT_OWNER);
	assert_string_equal(err.message, "nobody owns it");
	fixture_unbind(t->owner);
	assert_int_equal(ask(t, 1, SKV_ASK_GROUPS, NULL, &told, &a, &err), SKV_E_NETWORK);
	assert_non_null(strstr(err.message, "its owner owner does not answer"));
	assert_int_equal(ask(t, 1, SKV_ASK_GROUP_DELETE, "g", &told, &a, &err), SKV_E_NETWORK);
	skv_arena_destroy(&a);
}

static void test_only_managers_may_ask(void **state)
{
	const struct two *t = *state;
	struct skv_told told;
	struct skv_error err;
	struct skv_arena a;

	skv_arena_init(&a);
	fake_core_token(t->lead->core, 1, "00000000000000000000000000000000");
	assert_int_equal(ask(t, 1, SKV_ASK_GROUPS, NULL, &told, &a, &err), SKV_E_UNAVAILABLE);
	assert_non_null(strstr(err.message, "refuses (401)"));
	skv_arena_destroy(&a);
}

/* A list that needs others is made by a thread that may wait; what the store has to be asked about
 * begins there. */
static void test_lists_wait_on_workers(void **state)
{
	const struct two *t = *state;
	struct answer a;

	fake_core_asks(t->lead->core);
	a = http_call(t->lead->port, "GET", "/v1/groups", NULL, NULL);
	assert_int_equal(a.status, 200);
	answer_free(&a);
	assert_int_equal(fake_core_calls(t->lead->core), 2);
	a = http_call(t->lead->port, "POST", LOOKUP, NULL, KEYS);
	assert_int_equal(a.status, 200);
	answer_free(&a);
	assert_int_equal(fake_core_calls(t->lead->core), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_the_lead_says_where_it_is, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_is_remembered_may_be_over, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_the_lead_says_that_it_is_here, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_the_lead_was_asked, setup, teardown),
		cmocka_unit_test_setup_teardown(test_who_is_refused_asks_itself_again, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_the_owner_is_asked, setup_two, teardown_two),
		cmocka_unit_test_setup_teardown(test_who_does_not_answer_is_named, setup_two,
						teardown_two),
		cmocka_unit_test_setup_teardown(test_only_managers_may_ask, setup_two,
						teardown_two),
		cmocka_unit_test_setup_teardown(test_lists_wait_on_workers, setup_two,
						teardown_two),
		cmocka_unit_test_setup_teardown(test_a_match_is_split, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_match_is_split_where_some_are, setup,
						teardown),
	};

	return cmocka_run_group_tests_name("http_places", tests, NULL, NULL);
}
