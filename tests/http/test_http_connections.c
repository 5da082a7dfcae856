/* test_http_connections.c - keep-alive, pipelining, slow and idle clients, limits, garbage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "fixture.h"

#define LOOKUP "/v1/instances/m/lookup"
#define KEYS "{\"keys_int\":[1,2,3]}"

static void test_keep_alive_and_pipelining(void **state)
{
	static const char all[] =
		"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: one\r\n\r\n"
		"POST " LOOKUP " HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: two\r\n"
		"Content-Length: 20\r\n\r\n" KEYS
		"GET /nowhere HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: three\r\n\r\n";
	static const int status[] = { 200, 200, 404 };
	static const char *const id[] = { "one", "two", "three" };
	struct fixture *x = *state;
	struct http h;

	fixture_start(x);
	fake_core_mode(x->cluster, FAKE_THREAD);
	http_open(&h, x->port);
	for (int round = 0; round < 50; round++) {
		assert_true(http_send(&h, all, sizeof all - 1));
		for (int i = 0; i < 3; i++) {
			struct answer a = http_read(&h, false);

			assert_int_equal(a.status, status[i]);
			assert_string_equal(answer_header(&a, "X-Request-Id"), id[i]);
			answer_free(&a);
		}
	}
	http_close(&h);
}

/* Drips a byte now and then, which would restart a timeout that only looks at the last byte. */
static void test_slow_header(void **state)
{
	struct fixture *x = *state;
	struct http h;
	bool open = true;

	x->o.idle_timeout_ms = 100;
	fixture_start(x);
	http_open(&h, x->port);
	http_send(&h, "GET /healthz HTTP/1.1\r\nX-Slow: ", 31);
	while (open) {
		struct answer a;

		/* The client's own pace: one byte for each request of another client (which a
		 * slow machine may cut, too). */
		a = http_call(x->port, "GET", "/healthz", NULL, NULL);
		answer_free(&a);
		open = http_send(&h, "a", 1);
	}
	http_close(&h);
}

static void test_slow_body(void **state)
{
	struct fixture *x = *state;
	struct http h;
	bool open = true;

	x->o.idle_timeout_ms = 100;
	fixture_start(x);
	http_open(&h, x->port);
	http_request(&h, "POST", LOOKUP, "Content-Length: 1000000\r\n", NULL);
	while (open) {
		struct answer a = http_call(x->port, "GET", "/healthz", NULL, NULL);

		answer_free(&a);
		open = http_send(&h, " ", 1);
	}
	http_close(&h);
}

static void test_idle_connections_are_closed(void **state)
{
	struct fixture *x = *state;
	struct http fresh, used;
	struct answer a;

	x->o.idle_timeout_ms = 100;
	fixture_start(x);
	http_open(&fresh, x->port);
	http_open(&used, x->port);
	http_request(&used, "GET", "/healthz", NULL, NULL);
	a = http_read(&used, false);
	assert_int_equal(a.status, 200);
	answer_free(&a);
	assert_true(http_ended(&fresh));
	assert_true(http_ended(&used));
	http_close(&fresh);
	http_close(&used);
}

/* A client that does not read its answer does not hold the connection for ever. */
static void test_answers_that_are_not_read(void **state)
{
	struct fixture *x = *state;
	struct http h;
	int small = 4096;
	char path[] = "GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n";
	bool open = true;

	x->o.idle_timeout_ms = 100;
	fixture_start(x);
	http_open(&h, x->port);
	setsockopt(h.fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
	for (int i = 0; i < 1000 && open; i++)
		open = send(h.fd, path, sizeof path - 1, MSG_NOSIGNAL | MSG_DONTWAIT) > 0;
	open = true;
	while (open) {
		struct answer a = http_call(x->port, "GET", "/healthz", NULL, NULL);
		int error = 0;
		socklen_t len = sizeof error;

		answer_free(&a);
		getsockopt(h.fd, SOL_SOCKET, SO_ERROR, &error, &len);
		open = error == 0 && send(h.fd, "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT) != -1;
		if (!open || error)
			break;
		/* A full send buffer tells nothing: look whether the stream has ended instead. */
		open = recv(h.fd, &error, 1, MSG_PEEK | MSG_DONTWAIT) != 0;
	}
	http_close(&h);
}

static void test_connection_limit(void **state)
{
	struct fixture *x = *state;
	struct http held[4];
	struct http extra;
	struct answer a;

	x->o.max_connections = 4;
	fixture_start(x);
	for (int i = 0; i < 4; i++) {
		http_open(&held[i], x->port);
		http_request(&held[i], "GET", "/healthz", NULL, NULL);
	}
	for (int i = 0; i < 4; i++) {
		a = http_read(&held[i], false);
		assert_int_equal(a.status, 200);
		answer_free(&a);
	}
	/* Another connection is refused, not left waiting. */
	http_open(&extra, x->port);
	assert_true(http_ended(&extra));
	http_close(&extra);
	http_request(&held[0], "GET", "/metrics", NULL, NULL);
	a = http_read(&held[0], false);
	assert_non_null(strstr(a.body, "\nslabkv_http_connections_refused_total 1\n"));
	answer_free(&a);
	for (int i = 0; i < 4; i++)
		http_close(&held[i]);
	for (bool ended = true; ended; http_close(&extra)) {
		/* until it has been noticed that they left */
		http_open(&extra, x->port);
		http_request(&extra, "GET", "/healthz", NULL, NULL);
		ended = http_ended(&extra);
		if (ended)
			continue;
		a = http_read(&extra, false);
		assert_int_equal(a.status, 200);
		answer_free(&a);
	}
}

static void test_limit_per_address(void **state)
{
	struct fixture *x = *state;
	struct http held[2], extra;
	struct answer a;

	x->o.max_connections_per_ip = 2;
	fixture_start(x);
	for (int i = 0; i < 2; i++) {
		http_open(&held[i], x->port);
		http_request(&held[i], "GET", "/healthz", NULL, NULL);
		a = http_read(&held[i], false);
		assert_int_equal(a.status, 200);
		answer_free(&a);
	}
	http_open(&extra, x->port);
	assert_true(http_ended(&extra));
	http_close(&extra);
	for (int i = 0; i < 2; i++)
		http_close(&held[i]);
}

static void test_not_http(void **state)
{
	static const char *const garbage[] = {
		"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
		"GET\r\n\r\n",
		"GET /healthz HTTP/9.9\r\n\r\n",
		"GET /healthz HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
		"POST " LOOKUP " HTTP/1.1\r\nHost: a\r\nContent-Length: "
		"99999999999999999999999\r\n\r\n",
		"\r\n\r\n\r\n\r\n",
	};
	struct fixture *x = *state;
	struct answer a;

	/* libmicrohttpd waits for the rest of a line even after the client's end of stream. */
	x->o.idle_timeout_ms = 200;
	fixture_start(x);
	for (size_t i = 0; i < sizeof garbage / sizeof garbage[0]; i++) {
		struct http h;

		http_open(&h, x->port);
		http_send(&h, garbage[i], strlen(garbage[i]));
		shutdown(h.fd, SHUT_WR);
		a = http_read(&h, false);
		assert_true(a.status == 0 || a.status >= 400);
		answer_free(&a);
		http_close(&h);
	}
	a = http_call(x->port, "GET", "/healthz", NULL, NULL);
	assert_int_equal(a.status, 200);
	answer_free(&a);
}

static void test_clients_that_leave(void **state)
{
	struct fixture *x = *state;
	struct answer a;

	fixture_start(x);
	for (int i = 0; i < 100; i++) {
		struct http h;

		http_open(&h, x->port);
		if (i % 4 == 0)
			http_send(&h, "POST " LOOKUP " HTT", 30);
		else if (i % 4 == 1)
			http_request(&h, "POST", LOOKUP, "Content-Length: 500\r\n", NULL);
		else if (i % 4 == 2)
			http_request(&h, "POST", LOOKUP, NULL, KEYS);
		http_close(&h);
	}
	a = http_call(x->port, "GET", "/healthz", NULL, NULL);
	assert_int_equal(a.status, 200);
	answer_free(&a);
}

#define T(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_keep_alive_and_pipelining),
		T(test_slow_header),
		T(test_slow_body),
		T(test_idle_connections_are_closed),
		T(test_answers_that_are_not_read),
		T(test_connection_limit),
		T(test_limit_per_address),
		T(test_not_http),
		T(test_clients_that_leave),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
