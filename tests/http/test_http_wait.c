/* test_http_wait.c - requests that wait: suspend and resume, hanging workers, drain. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <skv/mem.h>

#include "fixture.h"
#include <skv/workers.h>

#define START "/v1/instances/m/start"
#define KEYS "{\"keys_int\":[1,2,3]}"
#define STORAGE "{\"type\":\"file\",\"root\":\"/data\",\"capacity\":1073741824}"

static void assert_ok(struct http *h)
{
	struct answer a = http_read(h, false);

	if (a.status / 100 != 2)
		fail_msg("%d %s", a.status, a.body ? a.body : "(no answer)");
	answer_free(&a);
}

/* Far more requests wait than there are threads, and others are served meanwhile. */
static void test_many_waiting(void **state)
{
	enum { N = 200 };
	struct fixture *x = *state;
	struct http h[N];

	fixture_start(x);
	fake_core_mode(x->cluster, FAKE_HOLD);
	for (int i = 0; i < N; i++) {
		http_open(&h[i], x->port);
		http_request(&h[i], "POST", START, NULL, KEYS);
	}
	fake_core_await_held(x->cluster, N);
	for (int i = 0; i < 20; i++) {
		struct answer a = http_call(x->port, "GET", "/v1/instances", NULL, NULL);

		assert_int_equal(a.status, 200);
		answer_free(&a);
	}
	fake_core_release(x->cluster);
	for (int i = 0; i < N; i++) {
		assert_ok(&h[i]);
		http_close(&h[i]);
	}
}

struct client {
	pthread_t thread;
	uint16_t port;
	int good;
};

static void *hammer(void *arg)
{
	struct client *c = arg;
	struct http h;

	http_open(&h, c->port);
	for (int i = 0; i < 300; i++) {
		struct answer a;

		http_request(&h, "POST", START, NULL, KEYS);
		a = http_read(&h, false);
		c->good += a.status == 200;
		answer_free(&a);
	}
	http_close(&h);
	return NULL;
}

/* The completion races with the suspension: both orders happen in here. */
static void test_completion_races_with_suspension(void **state)
{
	struct fixture *x = *state;
	struct client c[6] = { 0 };

	x->o.threads = 4;
	fixture_start(x);
	fake_core_mode(x->cluster, FAKE_THREAD);
	for (int i = 0; i < 6; i++) {
		c[i].port = x->port;
		assert_int_equal(pthread_create(&c[i].thread, NULL, hammer, &c[i]), 0);
	}
	for (int i = 0; i < 6; i++) {
		pthread_join(c[i].thread, NULL);
		assert_int_equal(c[i].good, 300);
	}
}

/* Deadlines of connections do not run while the core has the request. */
static void test_waiting_is_not_idle(void **state)
{
	struct fixture *x = *state;
	struct http waiting, idle;

	x->o.idle_timeout_ms = 50;
	fixture_start(x);
	fake_core_mode(x->cluster, FAKE_HOLD);
	http_open(&waiting, x->port);
	http_request(&waiting, "POST", START, NULL, KEYS);
	fake_core_await_held(x->cluster, 1);
	for (int i = 0; i < 3; i++) { /* three idle timeouts pass */
		http_open(&idle, x->port);
		assert_true(http_ended(&idle));
		http_close(&idle);
	}
	fake_core_release(x->cluster);
	assert_ok(&waiting);
	http_close(&waiting);
}

static void test_client_leaves_while_it_waits(void **state)
{
	struct fixture *x = *state;

	fixture_start(x);
	fake_core_mode(x->cluster, FAKE_HOLD);
	for (int i = 0; i < 20; i++) {
		struct http h;

		http_open(&h, x->port);
		http_request(&h, "POST", START, NULL, KEYS);
		fake_core_await_held(x->cluster, (unsigned)i + 1);
		http_close(&h);
	}
	fake_core_release(x->cluster);
	assert_int_equal(skv_httpd_drain(x->httpd, HTTP_WAIT_MS), 0);
}

/* Out of memory at any point of a request: an honest error or a closed connection, nothing lost. */
static void out_of_memory(struct fixture *x, const char *method, const char *path, const char *body)
{
	int status = 0;

	for (unsigned long n = 1; status / 100 != 2; n++) {
		struct http h;
		struct answer a;

		assert_true(n < 1000);
		skv_mem_fail_at(n);
		http_open(&h, x->port);
		http_request(&h, method, path, NULL, body);
		a = http_read(&h, false);
		skv_mem_fail_at(0);
		status = a.status;
		if (status / 100 != 2 && status != 0 && status != 503)
			fail_msg("%s with allocation %lu failing: %d %s", path, n, status, a.body);
		answer_free(&a);
		http_close(&h);
	}
}

static void test_every_allocation_failing(void **state)
{
	struct fixture *x = *state;

	fixture_start(x);
	for (int round = 0; round < 2; round++) {
		out_of_memory(x, "POST", START, KEYS);
		out_of_memory(x, "POST", "/v1/instances/m/lookup", KEYS);
		out_of_memory(x, "POST", "/v1/match", "{\"instances\":[\"m\"],\"keys_int\":[1]}");
		out_of_memory(x, "PUT", "/v1/storages/s", STORAGE);
		out_of_memory(x, "GET", "/v1/instances/m/blocks?key=a", NULL);
		out_of_memory(x, "GET", "/", NULL);
		fake_core_mode(x->cluster, FAKE_THREAD);
	}
}

/* ---- blocking calls -------------------------------------------------------------------------- */

static void test_hanging_administration(void **state)
{
	enum { ALL = WORKERS + WORKERS_QUEUE };
	struct fixture *x = *state;
	struct http h[ALL];
	struct answer a;

	fixture_start(x);
	fake_core_hang(x->cluster, true);
	for (int i = 0; i < WORKERS; i++) {
		http_open(&h[i], x->port);
		http_request(&h[i], "PUT", "/v1/storages/s", NULL, STORAGE);
	}
	fake_core_await_hanging(x->cluster, WORKERS);
	/* Everybody else is served. */
	a = http_call(x->port, "POST", START, NULL, KEYS);
	assert_int_equal(a.status, 200);
	answer_free(&a);
	/* The queue is bounded. Its requests race in, so the first refusals tell when it is
	 * full. */
	for (int i = WORKERS; i < ALL; i++) {
		http_open(&h[i], x->port);
		http_request(&h[i], "DELETE", "/v1/groups/g", NULL, NULL);
	}
	for (;;) {
		struct http extra;

		a = http_call(x->port, "GET", "/metrics", NULL, NULL);
		if (strstr(a.body, "slabkv_http_parked 68\n")) {
			answer_free(&a);
			http_open(&extra, x->port);
			http_request(&extra, "PUT", "/v1/storages/s", NULL, STORAGE);
			a = http_read(&extra, false);
			http_close(&extra);
			break;
		}
		answer_free(&a);
	}
	assert_error(&a, 429, "too_many");
	answer_free(&a);
	fake_core_hang(x->cluster, false);
	for (int i = 0; i < ALL; i++) {
		assert_ok(&h[i]);
		http_close(&h[i]);
	}
}

struct counted {
	struct job job;
	struct skv_mutex *lock;
	struct skv_cond *changed;
	bool *hold;
	int ran;
	int expired;
};

static void count(struct job *job, bool expired)
{
	struct counted *c = (struct counted *)job;

	skv_mutex_lock(c->lock);
	*(expired ? &c->expired : &c->ran) += 1;
	skv_cond_broadcast(c->changed);
	while (!expired && *c->hold)
		skv_cond_wait(c->changed, c->lock);
	skv_mutex_unlock(c->lock);
}

/* With all workers hanging, old jobs are given up, young ones stay; stop ends the rest. */
static void test_workers_expire(void **state)
{
	struct skv_mutex lock;
	struct skv_cond changed;
	bool hold = true;
	struct counted c[WORKERS + 3];
	struct skv_error err;
	struct workers w;

	(void)state;
	skv_mutex_init(&lock);
	skv_cond_init(&changed);
	assert_int_equal(skv_workers_start(&w, WORKERS_QUEUE, &err), SKV_OK);
	for (int i = 0; i < WORKERS + 3; i++) {
		c[i] = (struct counted){ { count, NULL, 0 }, &lock, &changed, &hold, 0, 0 };
		assert_true(skv_workers_submit(&w, &c[i].job, 100 + (uint64_t)i));
		skv_mutex_lock(&lock);
		while (i < WORKERS && c[i].ran == 0)
			skv_cond_wait(&changed, &lock);
		skv_mutex_unlock(&lock);
	}
	skv_workers_expire(&w, 100 + WORKERS + 1);
	assert_int_equal(c[WORKERS].expired, 1);
	assert_int_equal(c[WORKERS + 1].expired, 1);
	assert_int_equal(c[WORKERS + 2].expired, 0);
	skv_mutex_lock(&lock);
	hold = false;
	skv_cond_broadcast(&changed);
	skv_mutex_unlock(&lock);
	skv_workers_stop(&w);
	assert_int_equal(c[WORKERS + 2].expired + c[WORKERS + 2].ran, 1);
	skv_cond_destroy(&changed);
	skv_mutex_destroy(&lock);
}

/* ---- drain ----------------------------------------------------------------------------------- */

static void *drain(void *arg)
{
	return (void *)(uintptr_t)skv_httpd_drain(arg, HTTP_WAIT_MS);
}

/* Told to go elsewhere, and closed. */
static void assert_sent_away(struct http *h)
{
	struct answer a;

	http_request(h, "GET", "/v1/stats", NULL, NULL);
	a = http_read(h, false);
	assert_error(&a, 503, "not_ready");
	assert_string_equal(answer_header(&a, "Connection"), "close");
	answer_free(&a);
	assert_true(http_ended(h));
	http_close(h);
}

static void test_drain(void **state)
{
	struct fixture *x = *state;
	struct http waiting, kept, fresh;
	pthread_t thread;
	void *left;

	fixture_start(x);
	http_open(&kept, x->port);
	http_request(&kept, "GET", "/healthz", NULL, NULL);
	assert_ok(&kept);
	fake_core_mode(x->cluster, FAKE_HOLD);
	http_open(&waiting, x->port);
	http_request(&waiting, "POST", START, NULL, KEYS);
	fake_core_await_held(x->cluster, 1);
	assert_int_equal(skv_httpd_drain(x->httpd, 0), 1);
	assert_int_equal(pthread_create(&thread, NULL, drain, x->httpd), 0);
	assert_sent_away(&kept);
	http_open(&fresh, x->port);
	assert_sent_away(&fresh);
	/* The running request ends as if nothing were. */
	fake_core_release(x->cluster);
	assert_ok(&waiting);
	http_close(&waiting);
	pthread_join(thread, &left);
	assert_int_equal((uintptr_t)left, 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_many_waiting),
		T(test_completion_races_with_suspension),
		T(test_waiting_is_not_idle),
		T(test_client_leaves_while_it_waits),
		T(test_every_allocation_failing),
		T(test_hanging_administration),
		cmocka_unit_test(test_workers_expire),
		T(test_drain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
