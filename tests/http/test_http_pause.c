/* test_http_pause.c - calls wait while ownership or the store moves, instead of failing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <poll.h>

#include <cmocka.h>

#include <skv/clock.h>

#include "fixture.h"

#define START "/v1/instances/m/start"
#define LOOKUP "/v1/instances/m/lookup"
#define KEYS "{\"keys_int\":[1,2,3]}"
#define STORAGE "{\"type\":\"file\",\"root\":\"/data\",\"capacity\":1073741824}"
#define HOLD_MS 300

static void start(struct fixture *x, uint32_t hold_ms)
{
	x->so.hold_ms = hold_ms;
	fixture_start(x);
}

static uint64_t counter(struct fixture *x, enum metric which)
{
	return skv_metrics_get(&x->service->metrics, which);
}

static uint64_t waiting(struct fixture *x)
{
	return skv_gauge_get(&x->service->metrics, GAUGE_calls_waiting);
}

static void await_waiting(struct fixture *x, uint64_t n)
{
	for (int i = 0; i < 5000 && waiting(x) != n; i++)
		poll(NULL, 0, 1);
	assert_int_equal(waiting(x), n);
}

/* Nobody owns the partition, or this manager is about to. */
static void moves(struct fixture *x)
{
	fake_core_may_answer(x->cluster, SKV_E_NOT_OWNER);
	fake_core_state(x->cluster, SKV_CORE_STANDBY);
}

static void is_back(struct fixture *x)
{
	fake_core_state(x->cluster, SKV_CORE_READY);
	fake_core_may_answer(x->cluster, SKV_OK);
}

static int status_of(struct http *h)
{
	struct answer a = http_read(h, false);
	int status = a.status;

	answer_free(&a);
	return status;
}

/* A manager of a new store has not made its default objects yet: a call must not find that there
 * are none. */
static void test_calls_wait_for_default_objects(void **state)
{
	struct fixture *x = *state;
	struct http h;

	x->so.hold_ready = true;
	start(x, 30000);
	is_back(x);
	http_open(&h, x->port);
	http_request(&h, "POST", START, NULL, KEYS);
	await_waiting(x, 1);
	assert_call_error(x->port, "GET", "/readyz", NULL, NULL, 503, "not_ready");
	assert_int_equal(fake_core_calls(x->cluster), 0);
	skv_service_release_ready(x->service);
	assert_int_equal(status_of(&h), 200);
	http_close(&h);
}

/* Many calls, of more connections than there are threads. */
static void test_calls_wait_for_the_owner(void **state)
{
	enum { N = 100 };
	struct fixture *x = *state;
	struct http h[N];

	start(x, 30000);
	moves(x);
	for (int i = 0; i < N; i++) {
		http_open(&h[i], x->port);
		http_request(&h[i], "POST", i % 2 ? START : LOOKUP, NULL, KEYS);
	}
	await_waiting(x, N);
	assert_int_equal(fake_core_calls(x->cluster), 0);
	is_back(x);
	for (int i = 0; i < N; i++) {
		assert_int_equal(status_of(&h[i]), 200);
		http_close(&h[i]);
	}
	assert_int_equal(waiting(x), 0);
	assert_int_equal(counter(x, METRIC_calls_held), N);
	assert_int_equal(counter(x, METRIC_calls_held_failed), 0);
}

/* A start that was carried out, whose owner gave the partition up before it was answered, is run
 * again, and is the same start: the core knows it by its request id. */
static void test_a_start_that_runs_again_is_the_same(void **state)
{
	char first[SKV_MAX_REQUEST_ID + 1], again[SKV_MAX_REQUEST_ID + 1], other[sizeof again];
	struct fixture *x = *state;
	struct http h;

	start(x, 30000);
	fake_core_mode(x->cluster, FAKE_HOLD);
	http_open(&h, x->port);
	http_request(&h, "POST", START, NULL, KEYS);
	fake_core_await_held(x->cluster, 1);
	fake_core_start_id(x->cluster, first);
	moves(x);
	fake_core_mode(x->cluster, FAKE_NOW);
	fake_core_release(x->cluster);
	await_waiting(x, 1);
	is_back(x);
	assert_int_equal(status_of(&h), 200);
	assert_int_equal(fake_core_calls(x->cluster), 2);
	fake_core_start_id(x->cluster, again);
	assert_true(*first);
	assert_string_equal(first, again);
	http_request(&h, "POST", START, NULL, KEYS);
	assert_int_equal(status_of(&h), 200);
	fake_core_start_id(x->cluster, other);
	assert_string_not_equal(other, again);
	http_close(&h);
}

static void test_a_call_fails_after_hold_ms(void **state)
{
	struct fixture *x = *state;
	uint64_t begin = skv_now_us();
	struct answer a;

	start(x, HOLD_MS);
	moves(x);
	a = http_call(x->port, "POST", LOOKUP, NULL, KEYS);
	assert_int_equal(a.status, 503);
	assert_non_null(strstr(a.body, "not_owner"));
	assert_true(skv_now_us() - begin >= HOLD_MS * 1000u);
	answer_free(&a);
	assert_int_equal(counter(x, METRIC_calls_held_failed), 1);
	assert_int_equal(waiting(x), 0);
}

static void test_another_owner_is_told_at_once(void **state)
{
	struct fixture *x = *state;
	struct answer a;

	start(x, 30000);
	moves(x);
	fake_core_elsewhere(x->cluster, true);
	a = http_call(x->port, "POST", LOOKUP, NULL, KEYS);
	assert_int_equal(a.status, 503);
	answer_free(&a);
	assert_int_equal(counter(x, METRIC_calls_held), 0);
}

/* A call that had begun when the ownership went runs again, on whatever thread it ended. */
static void ends_with(struct fixture *x, enum fake_mode mode, int status)
{
	const unsigned before = fake_core_calls(x->cluster);
	struct http h;

	fake_core_mode(x->cluster, mode);
	fake_core_fail(x->cluster, status, "it moves");
	http_open(&h, x->port);
	http_request(&h, "POST", START, NULL, KEYS);
	await_waiting(x, 1);
	fake_core_fail(x->cluster, SKV_OK, "");
	assert_int_equal(status_of(&h), 200);
	http_close(&h);
	assert_true(fake_core_calls(x->cluster) >= before + 2);
}

static void test_what_ended_runs_again(void **state)
{
	static const int passing[] = { SKV_E_NOT_OWNER,  SKV_E_NOT_READY,       SKV_E_FENCED,
				       SKV_E_STORE_FULL, SKV_E_UNKNOWN_OUTCOME, SKV_E_STORE_IO };
	struct fixture *x = *state;

	start(x, 30000);
	for (size_t i = 0; i < sizeof passing / sizeof passing[0]; i++) {
		ends_with(x, FAKE_NOW, passing[i]);
		ends_with(x, FAKE_THREAD, passing[i]);
	}
}

/* The write may have been done, and a repetition could find a conflict with itself. */
static void test_an_administrators_write_is_not_repeated(void **state)
{
	struct fixture *x = *state;
	struct answer a;

	start(x, 30000);
	fake_core_fail(x->cluster, SKV_E_UNKNOWN_OUTCOME, "who knows");
	a = http_call(x->port, "PUT", "/v1/storages/s", NULL, STORAGE);
	assert_int_equal(a.status, 503);
	answer_free(&a);
	assert_int_equal(fake_core_calls(x->cluster), 1);
	assert_int_equal(counter(x, METRIC_calls_held), 0);
}

/* Errors that waiting does not change. */
static void test_other_errors_are_told_at_once(void **state)
{
	struct fixture *x = *state;
	struct answer a;

	start(x, 30000);
	fake_core_fail(x->cluster, SKV_E_NO_SPACE, "full");
	a = http_call(x->port, "POST", START, NULL, KEYS);
	assert_int_equal(a.status, 507);
	answer_free(&a);
	assert_int_equal(counter(x, METRIC_calls_held), 0);
}

/* Nobody waits for a manager that ends; the others are asked instead. */
static void test_shutdown_ends_the_wait(void **state)
{
	struct fixture *x = *state;
	struct http h;

	start(x, 30000);
	moves(x);
	http_open(&h, x->port);
	http_request(&h, "POST", LOOKUP, NULL, KEYS);
	await_waiting(x, 1);
	skv_httpd_drain(x->httpd, 5000);
	assert_int_equal(status_of(&h), 503);
	http_close(&h);
	assert_int_equal(waiting(x), 0);
}

/* Waiting calls count as held: their bodies are within body_total_max. */
static void test_what_waits_is_bounded(void **state)
{
	enum { N = 8, BIG = 200 << 10 };
	static char body[BIG + 64];
	struct fixture *x = *state;
	struct http h[N];
	int refused = 0, held = 0;

	x->so.body_max = 1 << 20;
	x->so.body_total_max = 1 << 20;
	x->so.body_reserve_percent = 0;
	x->so.body_address_percent = x->so.body_tenant_percent = 100;
	start(x, HOLD_MS);
	moves(x);
	snprintf(body, sizeof body, "{\"keys_int\":[1,2,3]%*s}", BIG, "");
	for (int i = 0; i < N; i++) {
		http_open(&h[i], x->port);
		http_request(&h[i], "POST", LOOKUP, NULL, body);
	}
	for (int i = 0; i < N; i++) {
		int status = status_of(&h[i]);

		refused += status == 429;
		held += status == 503;
		http_close(&h[i]);
	}
	assert_int_equal(refused + held, N);
	assert_true(held >= 1 && held <= 5 && refused >= 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
		TEST(test_calls_wait_for_default_objects),
		TEST(test_calls_wait_for_the_owner),
		TEST(test_a_start_that_runs_again_is_the_same),
		TEST(test_a_call_fails_after_hold_ms),
		TEST(test_another_owner_is_told_at_once),
		TEST(test_what_ended_runs_again),
		TEST(test_an_administrators_write_is_not_repeated),
		TEST(test_other_errors_are_told_at_once),
		TEST(test_shutdown_ends_the_wait),
		TEST(test_what_waits_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
