/* test_http_basics.c - errors, methods, request ids, bodies and headers at their limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sched.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"

#define LOOKUP "/v1/instances/m/lookup"
#define KEYS "{\"keys_int\":[1,2,3]}"

static char *spaces(size_t n)
{
	char *s = malloc(n + 1);

	assert_non_null(s);
	memset(s, ' ', n);
	s[n] = '\0';
	return s;
}

static void test_errors_have_one_shape(void **state)
{
	struct fixture *x = *state;
	struct answer a;

	fixture_start(x);
	assert_call_error(x->port, "GET", "/nowhere", NULL, NULL, 404, "not_found");
	assert_call_error(x->port, "GET", "/v1/storages/..", NULL, NULL, 400, "invalid_argument");
	assert_call_error(x->port, "GET", "/v1/storages/a%2f..%2fb", NULL, NULL, 400,
			  "invalid_argument");
	assert_call_error(x->port, "POST", LOOKUP, NULL, "not json", 400, "invalid_argument");
	assert_call_error(x->port, "POST", LOOKUP, NULL, NULL, 400, "invalid_argument");
	assert_call_error(x->port, "POST", "/v1/instances/gone/lookup", NULL, KEYS, 404,
			  "not_found");
	assert_call_error(x->port, "POST", "/v1/sessions/xyz/finish", NULL, "{}", 400,
			  "invalid_argument");
	assert_call_error(x->port, "BREW", "/v1/match", NULL, NULL, 405, "method_not_allowed");
	a = http_call(x->port, "DELETE", "/v1/match", NULL, NULL);
	assert_error(&a, 405, "method_not_allowed");
	assert_string_equal(answer_header(&a, "Allow"), "POST, OPTIONS");
	answer_free(&a);
}

static void test_head_and_options(void **state)
{
	struct fixture *x = *state;
	struct http h;
	struct answer a, get;

	fixture_start(x);
	http_open(&h, x->port);
	http_request(&h, "GET", "/healthz", NULL, NULL);
	get = http_read(&h, false);
	http_request(&h, "HEAD", "/healthz", NULL, NULL);
	a = http_read(&h, true);
	assert_int_equal(a.status, 200);
	assert_int_equal(strtoul(answer_header(&a, "Content-Length"), NULL, 10), get.body_len);
	answer_free(&a);
	answer_free(&get);
	http_request(&h, "OPTIONS", "/v1/groups/g", NULL, NULL);
	a = http_read(&h, false);
	assert_int_equal(a.status, 204);
	assert_string_equal(answer_header(&a, "Allow"), "GET, HEAD, PUT, DELETE, OPTIONS");
	answer_free(&a);
	http_request(&h, "OPTIONS", "*", NULL, NULL);
	a = http_read(&h, false);
	assert_int_equal(a.status, 204);
	answer_free(&a);
	http_request(&h, "OPTIONS", "/nowhere", NULL, NULL);
	a = http_read(&h, false);
	assert_error(&a, 404, "not_found");
	answer_free(&a);
	http_close(&h);
}

static void test_request_ids(void **state)
{
	struct fixture *x = *state;
	struct answer a, b;

	fixture_start(x);
	a = http_call(x->port, "GET", "/nowhere", "X-Request-Id: Abc.1_2-3:4\r\n", NULL);
	assert_error(&a, 404, "not_found");
	assert_string_equal(answer_header(&a, "X-Request-Id"), "Abc.1_2-3:4");
	answer_free(&a);
	/* An id that could break a log line or a header is replaced. */
	a = http_call(x->port, "GET", "/nowhere", "X-Request-Id: a\"b c\r\n", NULL);
	assert_error(&a, 404, "not_found");
	assert_int_equal(strlen(answer_header(&a, "X-Request-Id")), 17);
	b = http_call(x->port, "GET", "/healthz", NULL, NULL);
	assert_int_equal(b.status, 200);
	assert_string_not_equal(strchr(a.head, 'X'), strchr(b.head, 'X'));
	answer_free(&a);
	answer_free(&b);
}

/* ---- bodies ---------------------------------------------------------------------------------- */

static void test_declared_body_over_the_limit(void **state)
{
	struct fixture *x = *state;
	struct http h;
	struct answer a;
	char *body = spaces(5000);

	x->so.body_max = 4096;
	fixture_start(x);
	/* Short enough to be read: the connection lives on. */
	http_open(&h, x->port);
	http_request(&h, "POST", LOOKUP, NULL, body);
	a = http_read(&h, false);
	assert_error(&a, 413, "too_large");
	answer_free(&a);
	http_request(&h, "POST", LOOKUP, NULL, KEYS);
	a = http_read(&h, false);
	assert_int_equal(a.status, 200);
	answer_free(&a);
	http_close(&h);
	/* Long: answered without reading a byte of it. */
	http_open(&h, x->port);
	http_request(&h, "POST", LOOKUP, "Content-Length: 100000000000\r\n", NULL);
	a = http_read(&h, false);
	assert_error(&a, 413, "too_large");
	answer_free(&a);
	assert_true(http_ended(&h));
	http_close(&h);
	/* The first to ask is the first to be answered. */
	http_open(&h, x->port);
	http_request(&h, "POST", LOOKUP, "Content-Length: 5000\r\nExpect: 100-continue\r\n", NULL);
	a = http_read(&h, false);
	assert_error(&a, 413, "too_large");
	answer_free(&a);
	http_close(&h);
	free(body);
}

static bool send_chunk(struct http *h, const char *data, size_t n)
{
	char head[32];

	snprintf(head, sizeof head, "%zx\r\n", n);
	return http_send(h, head, strlen(head)) && http_send(h, data, n) && http_send(h, "\r\n", 2);
}

static void test_chunked_body_over_the_limit(void **state)
{
	struct fixture *x = *state;
	struct http h;
	struct answer a;
	char *body = spaces(3000);

	x->so.body_max = 4096;
	fixture_start(x);
	http_open(&h, x->port);
	http_request(&h, "POST", LOOKUP, "Transfer-Encoding: chunked\r\n", NULL);
	assert_true(send_chunk(&h, body, 3000));
	assert_true(send_chunk(&h, body, 3000));
	assert_true(http_send(&h, "0\r\n\r\n", 5));
	a = http_read(&h, false);
	assert_error(&a, 413, "too_large");
	answer_free(&a);
	/* And one within it is taken. */
	http_request(&h, "POST", LOOKUP, "Transfer-Encoding: chunked\r\n", NULL);
	assert_true(send_chunk(&h, KEYS, 10));
	assert_true(send_chunk(&h, &KEYS[10], strlen(KEYS) - 10));
	assert_true(http_send(&h, "0\r\n\r\n", 5));
	a = http_read(&h, false);
	assert_int_equal(a.status, 200);
	answer_free(&a);
	http_close(&h);
	free(body);
}

/* A body that never ends is not read for ever. */
static void test_endless_body(void **state)
{
	struct fixture *x = *state;
	struct http h;
	char *body = spaces(65536);
	bool open = true;

	x->so.body_max = 4096;
	fixture_start(x);
	http_open(&h, x->port);
	http_request(&h, "POST", LOOKUP, "Transfer-Encoding: chunked\r\n", NULL);
	for (int i = 0; i < 4096 && open; i++)
		open = send_chunk(&h, body, 65536);
	assert_false(open);
	http_close(&h);
	free(body);
}

static void test_all_bodies_together(void **state)
{
	struct fixture *x = *state;
	char *body = spaces(6000);
	struct http first;
	struct answer a;

	x->so.body_max = 8192;
	x->so.body_total_max = 10000;
	fixture_start(x);
	http_open(&first, x->port);
	http_request(&first, "POST", LOOKUP, "Content-Length: 6020\r\n", NULL);
	assert_true(http_send(&first, body, 6000));
	/* or one of the first one's pieces may be what is refused */
	while (atomic_load(&x->service->holds.bytes) < 6000)
		sched_yield();
	a = http_call(x->port, "POST", LOOKUP, NULL, body);
	assert_error(&a, 429, "too_many");
	assert_string_equal(answer_header(&a, "Retry-After"), "1");
	answer_free(&a);
	assert_true(http_send(&first, KEYS, 20));
	a = http_read(&first, false);
	assert_int_equal(a.status, 200);
	answer_free(&a);
	http_close(&first);
	free(body);
}

static void test_long_headers(void **state)
{
	struct fixture *x = *state;
	char *headers = malloc(100000);
	struct answer a;
	size_t n = 0;

	fixture_start(x);
	for (int i = 0; i < 31; i++)
		n += (size_t)snprintf(headers + n, 100000 - n, "X-%d: %0500d\r\n", i, i);
	a = http_call(x->port, "POST", LOOKUP, headers, KEYS);
	assert_int_equal(a.status, 200); /* 16 KiB have room, and a body behind them */
	answer_free(&a);
	for (int i = 31; i < 40; i++)
		n += (size_t)snprintf(headers + n, 100000 - n, "X-%d: %0500d\r\n", i, i);
	a = http_call(x->port, "GET", "/healthz", headers, NULL);
	assert_error(&a, 431, "too_large");
	answer_free(&a);
	/* Beyond the connection's memory libmicrohttpd itself refuses. */
	for (int i = 40; i < 160; i++)
		n += (size_t)snprintf(headers + n, 100000 - n, "X-%d: %0500d\r\n", i, i);
	a = http_call(x->port, "GET", "/healthz", headers, NULL);
	assert_true(a.status == 431 || a.status == 413 || a.status == 0);
	answer_free(&a);
	free(headers);
}

#define T(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_errors_have_one_shape),
		T(test_head_and_options),
		T(test_request_ids),
		T(test_declared_body_over_the_limit),
		T(test_chunked_body_over_the_limit),
		T(test_endless_body),
		T(test_all_bodies_together),
		T(test_long_headers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
