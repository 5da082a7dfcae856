/* test_http_places.c - calls and matches on names that are elsewhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <poll.h>

#include <cmocka.h>

#include <skv/asks.h>

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
	fake_core_owner(t.asked->cluster, 0, "lead", t.peer[0]);
	fake_core_owner(t.asked->cluster, 1, "third", t.peer[1]);
	fake_core_owner(t.lead->cluster, 1, "third", t.peer[1]);
	fake_core_owner(t.third->cluster, 0, "lead", t.peer[0]);
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

static uint64_t forwarded(const struct three *t)
{
	return skv_metrics_get(&t->asked->service->metrics, METRIC_calls_forwarded);
}

/* The call goes to the owner of its partition, and to nobody else; it is not decoded here. */
static void test_the_owner_answers(void **state)
{
	const struct three *t = *state;

	fake_core_is_elsewhere(t->asked->cluster, 1, 1);
	assert_int_equal(lookup(t), 200);
	assert_int_equal(fake_core_calls(t->asked->cluster), 0);
	assert_int_equal(fake_core_calls(t->lead->cluster), 0);
	assert_int_equal(fake_core_calls(t->third->cluster), 1);
	/* The third manager looks by itself. */
	assert_int_equal(fake_core_alone(t->third->cluster), 0);
	assert_int_equal(forwarded(t), 1);
}

/* Partition 0's owner is away: calls on names in other partitions do not need it. */
static void test_partition_0_may_be_away(void **state)
{
	const struct three *t = *state;

	fixture_unbind(t->lead);
	fake_core_is_elsewhere(t->asked->cluster, 1, 1);
	assert_int_equal(lookup(t), 200);
	assert_int_equal(fake_core_calls(t->third->cluster), 1);
}

/* The owner of the partition that is remembered does not have it: it is looked up again, at once,
 * and goes to the owner of the partition where it is, which may be this manager. */
static void test_what_is_remembered_may_be_over(void **state)
{
	const struct three *t = *state;

	fake_core_is_elsewhere(t->third->cluster, 0, 0);
	fake_core_is_elsewhere(t->asked->cluster, 1, 0);
	assert_int_equal(lookup(t), 200);
	assert_int_equal(fake_core_calls(t->third->cluster), 0);
	assert_int_equal(fake_core_calls(t->lead->cluster), 1);
	assert_int_equal(forwarded(t), 1);
	fake_core_is_elsewhere(t->asked->cluster, 1, 2);
	assert_int_equal(lookup(t), 200);
	assert_int_equal(fake_core_calls(t->asked->cluster), 1);
	assert_int_equal(fake_core_calls(t->lead->cluster), 1);
	assert_int_equal(forwarded(t), 1);
}

/* A call on blocks is for no partition, whoever says so: its owner finds it by its name. */
static void test_a_call_on_blocks_names_no_partition(void **state)
{
	static const char *const headers[] = { "Slabkv-Forwarded: x\r\nSlabkv-Place: 1\r\n",
					       "Slabkv-Place: 2\r\n" };
	const struct three *t = *state;

	for (size_t i = 0; i < 2; i++) {
		struct answer a = http_call(t->third->port, "POST", LOOKUP, headers[i], KEYS);

		assert_int_equal(a.status, 403);
		answer_free(&a);
	}
	assert_int_equal(fake_core_calls(t->third->cluster), 0);
	assert_int_equal(fake_core_alone(t->third->cluster), 0);
}

/* The owner of its partition refuses it for now: it is asked again, and the call is not lost. */
static void test_who_is_refused_asks_again(void **state)
{
	const struct three *t = *state;
	struct http h;
	struct answer a;

	fake_core_is_elsewhere(t->asked->cluster, 1, 1);
	fake_core_fail(t->third->cluster, SKV_E_NOT_READY, "it is not here");
	http_open(&h, t->asked->port);
	http_request(&h, "POST", LOOKUP, NULL, KEYS);
	for (int i = 0; i < 5000 && fake_core_calls(t->third->cluster) < 2; i++)
		poll(NULL, 0, 1);
	fake_core_fail(t->third->cluster, SKV_OK, NULL);
	a = http_read(&h, false);
	assert_int_equal(a.status, 200);
	answer_free(&a);
	http_close(&h);
	assert_int_equal(fake_core_calls(t->lead->cluster), 0);
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

static const char all_matched[] = "{\"results\":[{\"instance\":\"a\",\"matched\":3},"
				  "{\"instance\":\"own\",\"matched\":3},"
				  "{\"instance\":\"1\",\"matched\":3},"
				  "{\"instance\":\"b\",\"matched\":3},"
				  "{\"instance\":\"1b\",\"matched\":3}]}";
#define THREE_OWNERS "\"a\",\"own\",\"1\",\"b\",\"1b\""

/* Each owner is asked once for all that it has, and this manager is not called. */
static void test_a_match_goes_once_to_each_owner(void **state)
{
	const struct three *t = *state;
	struct metrics *m = &t->asked->service->metrics;
	char text[512];

	fake_core_is_elsewhere(t->asked->cluster, 0, 0);
	assert_int_equal(match(t, THREE_OWNERS, text, sizeof text), 200);
	assert_string_equal(text, all_matched);
	assert_int_equal(fake_core_calls(t->asked->cluster), 1);
	assert_int_equal(fake_core_calls(t->lead->cluster), 1);
	assert_int_equal(fake_core_calls(t->third->cluster), 1);
	assert_int_equal(fake_core_key(t->lead->cluster).lo, 1);
	assert_int_equal(skv_metrics_get(m, METRIC_matches_split), 1);
	/* all are one other manager's: it goes on as it came */
	assert_int_equal(match(t, "\"a\",\"b\"", text, sizeof text), 200);
	assert_int_equal(fake_core_calls(t->lead->cluster), 2);
	assert_int_equal(forwarded(t), 1);
	assert_int_equal(match(t, "\"own\",\"own-too\"", text, sizeof text), 200);
	assert_int_equal(fake_core_calls(t->asked->cluster), 2);
	assert_int_equal(skv_metrics_get(m, METRIC_matches_split), 1);
}

/* The manager needs no partition of its own for that, and does not ask for instances of a third
 * manager. */
static void test_a_manager_without_partitions_parts_a_match(void **state)
{
	const struct three *t = *state;
	struct metrics *m = &t->asked->service->metrics;
	char text[512];

	fake_core_is_elsewhere(t->asked->cluster, 0, 0);
	fake_core_owner(t->asked->cluster, 2, "third", t->peer[1]);
	fake_core_state(t->asked->cluster, SKV_CORE_STANDBY);
	for (uint32_t i = 1; i < 3; i++) {
		assert_int_equal(match(t, THREE_OWNERS, text, sizeof text), 200);
		assert_string_equal(text, all_matched);
		assert_int_equal(fake_core_calls(t->lead->cluster), i);
		assert_int_equal(fake_core_calls(t->third->cluster), i);
		assert_int_equal(skv_metrics_get(m, METRIC_matches_split), i);
	}
	assert_int_equal(match(t, "\"own\",\"1\"", text, sizeof text), 200);
	assert_int_equal(fake_core_calls(t->third->cluster), 3);
	assert_int_equal(fake_core_calls(t->lead->cluster), 2);
	assert_int_equal(fake_core_calls(t->asked->cluster), 0);
	assert_int_equal(forwarded(t), 1);
}

static void test_a_failure_of_a_part_names_the_instance(void **state)
{
	const struct three *t = *state;
	char text[512];

	fake_core_is_elsewhere(t->asked->cluster, 0, 0);
	/* The instance exists nowhere. */
	assert_int_equal(match(t, "\"a\",\"gone\"", text, sizeof text), 404);
	assert_non_null(strstr(text, "instances[1]"));
	assert_non_null(strstr(text, "no such instance"));
	fake_core_fail(t->third->cluster, SKV_E_NOT_FOUND, "there is none");
	assert_int_equal(match(t, "\"own\",\"a\",\"1\"", text, sizeof text), 404);
	assert_non_null(strstr(text, "instances[2]"));
	assert_non_null(strstr(text, "there is none"));
}

/* The owner of a part is refused just now: the match waits, and all of it runs again. */
static void test_a_part_that_is_refused_runs_again(void **state)
{
	const struct three *t = *state;
	struct http h;
	struct answer a;

	fake_core_is_elsewhere(t->asked->cluster, 0, 0);
	fake_core_fail(t->third->cluster, SKV_E_NOT_OWNER, "it is not here");
	http_open(&h, t->asked->port);
	http_request(&h, "POST", "/v1/match", NULL,
		     "{\"instances\":[" THREE_OWNERS "],\"keys_int\":[1,2,3]}");
	for (int i = 0; i < 5000 && fake_core_calls(t->third->cluster) < 3; i++)
		poll(NULL, 0, 1);
	fake_core_fail(t->third->cluster, SKV_OK, NULL);
	a = http_read(&h, false);
	assert_int_equal(a.status, 200);
	assert_string_equal(a.body, all_matched);
	answer_free(&a);
	http_close(&h);
}

/* A part is not parted again; a call that a manager without partitions has sent is. */
static void test_a_part_is_not_parted(void **state)
{
	const struct three *t = *state;
	char text[512];

	fake_core_is_elsewhere(t->asked->cluster, 0, 0);
	assert_int_equal(match_by(t, "Slabkv-Forwarded: x\r\nSlabkv-Part: 1\r\n", THREE_OWNERS,
				  text, sizeof text),
			 503);
	assert_int_equal(fake_core_calls(t->lead->cluster), 0);
	assert_int_equal(match_by(t, "Slabkv-Forwarded: x\r\n", THREE_OWNERS, text, sizeof text),
			 200);
	assert_string_equal(text, all_matched);
	assert_int_equal(match_by(t, "Slabkv-Forwarded: x\r\n", "\"a\",\"b\"", text,
				  sizeof text),
			 200);
}

/* A client that finds the owner itself looks for one that has some of them. */
static void test_a_match_is_split_where_some_are(void **state)
{
	static const char direct[] = "Slabkv-Route: direct\r\n";
	const struct three *t = *state;
	struct metrics *m = &t->asked->service->metrics;
	char text[512];

	fake_core_is_elsewhere(t->asked->cluster, 0, 0);
	assert_int_equal(match_by(t, direct, "\"a\",\"1\"", text, sizeof text), 503);
	assert_int_equal(match_by(t, direct, "\"a\"", text, sizeof text), 503);
	assert_int_equal(skv_metrics_get(m, METRIC_matches_split), 0);
	assert_int_equal(match_by(t, direct, "\"b\",\"own\"", text, sizeof text), 200);
	assert_int_equal(skv_metrics_get(m, METRIC_matches_split), 1);
}

/* ---- administration between managers --------------------------------------------------------- */

/* The lead, and the owner of partition 1, which wants tokens. */
struct two {
	struct fixture *lead, *owner;
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
	fake_core_owner(t.lead->cluster, 1, "owner", t.peer);
	fake_core_owner(t.owner->cluster, 0, "lead", "");
	t.lead->so.forward = true;
	t.lead->so.hold_ms = 1000;
	fixture_start(t.lead);
	fake_core_token(t.lead->cluster, 1, skv_auth_manager_token(&t.owner->service->auth));
	skv_v1_ask_others(t.lead->service);
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

static int ask(const struct two *t, struct skv_peer_call q, struct skv_error *err)
{
	skv_error_clear(err);
	return fake_core_ask(t->lead->cluster, &q, err);
}

static void test_the_owner_is_asked(void **state)
{
	static const struct skv_spec spec = { "kv", 4096 };
	static const struct skv_instance_spec made = { .group = "g", .specs = &spec, .n_specs = 1,
						       .extra = "" };
	const struct skv_unused unused = { .ms = 5001 };
	const uint64_t version = 7;
	const struct two *t = *state;
	struct skv_group_view group = { .blocks = 1 };
	struct skv_instance_list list = { .n_instances = 0 };
	struct skv_peer_call q = { .partition = 1 };
	struct skv_error err;
	struct skv_arena a;

	skv_arena_init(&a);
	q.arena = &a;
	q.op = SKV_OP_group_get;
	q.name = "g";
	q.res = &group;
	assert_int_equal(ask(t, q, &err), SKV_OK);
	assert_string_equal(group.spec.name, "g");
	assert_string_equal(fake_core_tenant(t->owner->cluster), "");
	assert_int_equal(fake_core_alone(t->owner->cluster), 2);
	/* the finding of the owner is the answer */
	q.name = "gone";
	assert_int_equal(ask(t, q, &err), SKV_E_NOT_FOUND);
	assert_string_equal(err.field, "instance");
	assert_string_equal(err.message, "no such instance");
	q = (struct skv_peer_call){ .op = SKV_OP_instance_list, .partition = 1, .tenant = "t",
				    .arena = &a, .res = &list };
	assert_int_equal(ask(t, q, &err), SKV_OK);
	assert_int_equal(list.n_instances, 1);
	assert_string_equal(fake_core_tenant(t->owner->cluster), "t");
	q = (struct skv_peer_call){ .op = SKV_OP_instance_put, .partition = 1, .tenant = "t/u",
				    .name = "new/m", .how = SKV_PUT_NEW, .req = &made };
	assert_int_equal(fake_core_ask(t->lead->cluster, &q, &err), SKV_OK);
	assert_true(q.created);
	assert_string_equal(fake_core_tenant(t->owner->cluster), "t/u");
	assert_string_equal(fake_core_name(t->owner->cluster), "new/m");
	q = (struct skv_peer_call){ .op = SKV_OP_instance_delete, .partition = 1, .tenant = "t",
				    .name = "m", .unused = &unused };
	assert_int_equal(ask(t, q, &err), SKV_E_IN_USE);
	assert_string_equal(err.field, "unused_s");
	q = (struct skv_peer_call){ .op = SKV_OP_group_put, .partition = 1, .name = "g",
				    .how = SKV_PUT_THERE, .version = &version,
				    .req = &group.spec };
	assert_int_equal(ask(t, q, &err), SKV_OK);
	assert_int_equal(fake_core_put(t->owner->cluster), SKV_PUT_THERE);
	assert_int_equal(fake_core_version(t->owner->cluster), 7);
	skv_arena_destroy(&a);
}

static void test_who_does_not_answer_is_named(void **state)
{
	const struct two *t = *state;
	struct skv_group_list list;
	struct skv_error err;
	struct skv_arena a;
	struct skv_peer_call q = { .op = SKV_OP_group_list, .partition = 1, .arena = &a,
				   .res = &list };

	skv_arena_init(&a);
	fake_core_owner(t->owner->cluster, 1, "third", "");
	assert_int_equal(ask(t, q, &err), SKV_E_NOT_OWNER);
	assert_non_null(strstr(err.message, "owner"));
	q.partition = 2;
	assert_int_equal(ask(t, q, &err), SKV_E_NOT_OWNER);
	assert_string_equal(err.message, "nobody owns it");
	fixture_unbind(t->owner);
	q.partition = 1;
	assert_int_equal(ask(t, q, &err), SKV_E_NETWORK);
	assert_non_null(strstr(err.message, "its owner owner does not answer"));
	q = (struct skv_peer_call){ .op = SKV_OP_group_delete, .partition = 1, .name = "g" };
	assert_int_equal(ask(t, q, &err), SKV_E_NETWORK);
	skv_arena_destroy(&a);
}

static int call_owner(const struct two *t, const char *method, const char *path,
		      const char *headers)
{
	struct answer a = http_call(t->owner->port, method, path, headers, NULL);
	const int status = a.status;

	answer_free(&a);
	return status;
}

/* Nobody else names a partition, and managers do nothing else. */
static void test_only_managers_may_ask(void **state)
{
	static const char *const paths[] = { "/v1/groups", "/v1/stats", "/v1/match",
					     "/v1/tokens/t", "/v1/cluster" };
	static const char *const methods[] = { "GET", "GET", "POST", "PUT", "PUT" };
	const struct two *t = *state;
	const char *token = skv_auth_manager_token(&t->owner->service->auth);
	struct skv_group_list list;
	char headers[256];
	struct skv_error err;
	struct skv_arena a;
	struct skv_peer_call q = { .op = SKV_OP_group_list, .partition = 1, .arena = &a,
				   .res = &list };

	skv_arena_init(&a);
	for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
		assert_int_equal(call_owner(t, methods[i], paths[i],
					    "Slabkv-Place: 1\r\n" BEARER(TOKEN_ADMIN)), 403);
		assert_int_equal(call_owner(t, methods[i], paths[i], "Slabkv-Place: 1\r\n"), 401);
		snprintf(headers, sizeof headers, "Authorization: Bearer %s\r\n", token);
		assert_int_equal(call_owner(t, methods[i], paths[i], headers), 401);
		snprintf(headers, sizeof headers,
			 "Slabkv-Place: 1\r\nAuthorization: Bearer %s\r\n", token);
		assert_int_equal(call_owner(t, methods[i], paths[i], headers), i < 2 ? 200 : 401);
	}
	/* not the first one, none that is not there, and no tenant that is no name */
	for (int i = 0; i < 3; i++) {
		snprintf(headers, sizeof headers,
			 "Slabkv-Place: %s\r\n%sAuthorization: Bearer %s\r\n",
			 i == 0 ? "0" : i == 1 ? "99" : "1",
			 i == 2 ? "Slabkv-Tenant: ../t\r\n" : "", token);
		assert_int_equal(call_owner(t, "GET", "/v1/groups", headers), 400);
	}
	fake_core_token(t->lead->cluster, 1, "00000000000000000000000000000000");
	assert_int_equal(ask(t, q, &err), SKV_E_UNAVAILABLE);
	assert_non_null(strstr(err.message, "refuses (401)"));
	skv_arena_destroy(&a);
}

/* A list that needs others is made by a thread that may wait; what the store has to be asked about
 * begins there. */
static void test_lists_wait_on_workers(void **state)
{
	const struct two *t = *state;
	struct answer a;

	fake_core_asks(t->lead->cluster);
	a = http_call(t->lead->port, "GET", "/v1/groups", NULL, NULL);
	assert_int_equal(a.status, 200);
	answer_free(&a);
	assert_int_equal(fake_core_calls(t->lead->cluster), 2);
	a = http_call(t->lead->port, "POST", LOOKUP, NULL, KEYS);
	assert_int_equal(a.status, 200);
	answer_free(&a);
	assert_int_equal(fake_core_calls(t->lead->cluster), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_the_owner_answers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_partition_0_may_be_away, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_is_remembered_may_be_over, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_a_call_on_blocks_names_no_partition, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_who_is_refused_asks_again, setup, teardown),
		cmocka_unit_test_setup_teardown(test_the_owner_is_asked, setup_two, teardown_two),
		cmocka_unit_test_setup_teardown(test_who_does_not_answer_is_named, setup_two,
						teardown_two),
		cmocka_unit_test_setup_teardown(test_only_managers_may_ask, setup_two,
						teardown_two),
		cmocka_unit_test_setup_teardown(test_lists_wait_on_workers, setup_two,
						teardown_two),
		cmocka_unit_test_setup_teardown(test_a_manager_without_partitions_parts_a_match,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_match_goes_once_to_each_owner, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_a_failure_of_a_part_names_the_instance, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_a_part_that_is_refused_runs_again, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_a_part_is_not_parted, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_match_is_split_where_some_are, setup,
						teardown),
	};

	return cmocka_run_group_tests_name("http_places", tests, NULL, NULL);
}
