/* test_http_framing.c - headers that two readers could understand in two ways: 400,
 * and the connection closes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"

#define HOST "Host: localhost\r\n"
#define POST "POST /v1/instances/m/lookup HTTP/1.1\r\n"
#define GET "GET /healthz HTTP/1.1\r\n"
#define KEYS "{\"keys_int\":[1,2,3]}" /* 20 bytes */
#define CHUNKED "14\r\n" KEYS "\r\n0\r\n\r\n"
#define TEXT(s) s, sizeof(s) - 1

struct row {
	const char *name;
	const char *bytes;
	size_t n;
};

static const struct row refused[] = {
	{ "both lengths",
	  TEXT(POST HOST "Content-Length: 20\r\nTransfer-Encoding: chunked\r\n\r\n" CHUNKED) },
	{ "the other way round",
	  TEXT(POST HOST "Transfer-Encoding: chunked\r\nContent-Length: 20\r\n\r\n" CHUNKED) },
	{ "lengths that differ",
	  TEXT(POST HOST "Content-Length: 20\r\nContent-Length: 21\r\n\r\n" KEYS) },
	{ "a length twice",
	  TEXT(POST HOST "Content-Length: 20\r\nContent-Length: 20\r\n\r\n" KEYS) },
	{ "a list of lengths", TEXT(POST HOST "Content-Length: 20, 20\r\n\r\n" KEYS) },
	{ "a space behind the name", TEXT(POST HOST "Content-Length : 20\r\n\r\n" KEYS) },
	{ "a tab behind the name", TEXT(POST HOST "Content-Length\t: 20\r\n\r\n" KEYS) },
	{ "a space in the length", TEXT(POST HOST "Content-Length: 2 0\r\n\r\n" KEYS) },
	{ "a space behind the length", TEXT(POST HOST "Content-Length: 20 \r\n\r\n" KEYS) },
	{ "a sign", TEXT(POST HOST "Content-Length: +20\r\n\r\n" KEYS) },
	{ "a negative length", TEXT(POST HOST "Content-Length: -20\r\n\r\n" KEYS) },
	{ "a length in hex", TEXT(POST HOST "Content-Length: 0x14\r\n\r\n" KEYS) },
	{ "a length in two lines", TEXT(POST HOST "Content-Length: 2\r\n 0\r\n\r\n" KEYS) },
	{ "NUL in a value", TEXT(POST HOST "X: a\0b\r\nContent-Length: 20\r\n\r\n" KEYS) },
	{ "NUL in the last value", TEXT(POST HOST "Content-Length: 20\r\nX: a\0b\r\n\r\n" KEYS) },
	{ "NUL in the length", TEXT(POST HOST "Content-Length: 20\0 1\r\n\r\n" KEYS) },
	{ "NUL in a name", TEXT(POST HOST "X\0Y: b\r\nContent-Length: 20\r\n\r\n" KEYS) },
	{ "NUL in the path", TEXT("GET /heal\0thz HTTP/1.1\r\n" HOST "\r\n") },
	{ "NUL behind the path", TEXT("GET /healthz\0 HTTP/1.1\r\n" HOST "\r\n") },
	{ "NUL in the query", TEXT("GET /healthz?a=b\0c HTTP/1.1\r\n" HOST "\r\n") },
	{ "an unknown coding", TEXT(POST HOST "Transfer-Encoding: gzip\r\n\r\n" KEYS) },
	{ "two codings", TEXT(POST HOST "Transfer-Encoding: gzip, chunked\r\n\r\n" CHUNKED) },
	{ "chunked twice",
	  TEXT(POST HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"
	       CHUNKED) },
	{ "no coding", TEXT(POST HOST "Transfer-Encoding: identity\r\n\r\n" KEYS) },
	{ "chunks in HTTP/1.0",
	  TEXT("POST /v1/instances/m/lookup HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
	       CHUNKED) },
	{ "a compressed body",
	  TEXT(POST HOST "Content-Encoding: gzip\r\nContent-Length: 20\r\n\r\n" KEYS) },
	{ "an unknown encoding",
	  TEXT(POST HOST "Content-Encoding: x\r\nContent-Length: 20\r\n\r\n" KEYS) },
	{ "no host", TEXT(GET "\r\n") },
	{ "two hosts", TEXT(GET HOST HOST "\r\n") },
	{ "two credentials", TEXT(GET HOST BEARER("a") BEARER("b") "\r\n") },
	{ "a value in two lines", TEXT(GET HOST "X: a\r\n b\r\n\r\n") },
	{ "a line that begins with a space", TEXT(GET " X: a\r\n" HOST "\r\n") },
	{ "CR in a value", TEXT(GET HOST "X: a\rY: b\r\n\r\n") },
	{ "no colon", TEXT(GET HOST "X\r\n\r\n") },
};

static const struct row taken[] = {
	{ "a length", TEXT(POST HOST "Content-Length: 20\r\n\r\n" KEYS) },
	{ "chunks", TEXT(POST HOST "Transfer-Encoding: chunked\r\n\r\n" CHUNKED) },
	{ "chunks in capitals", TEXT(POST HOST "TRANSFER-ENCODING: Chunked\r\n\r\n" CHUNKED) },
	{ "identity",
	  TEXT(POST HOST "Content-Encoding: identity\r\nContent-Length: 20\r\n\r\n" KEYS) },
	{ "an empty host", TEXT(GET "Host:\r\n\r\n") },
	{ "an empty value", TEXT(GET HOST "X:\r\nY: \r\n\r\n") },
	{ "spaces before a value", TEXT(GET "Host:   localhost\r\n\r\n") },
	{ "a query", TEXT("GET /healthz?a=b&c HTTP/1.1\r\n" HOST "\r\n") },
	{ "an empty query", TEXT("GET /healthz? HTTP/1.1\r\n" HOST "\r\n") },
	{ "other alphabets", TEXT(GET HOST "X: \xc3\xa4\ty\r\n\r\n") },
	{ "a whole URL", TEXT("GET http://localhost/healthz HTTP/1.1\r\n" HOST "\r\n") },
	{ "a whole URL in capitals",
	  TEXT("POST HTTPS://localhost:7333/v1/instances/m/lookup HTTP/1.1\r\n" HOST
	       "Content-Length: 20\r\n\r\n" KEYS) },
	{ "lines ended by LF", TEXT("GET /healthz HTTP/1.1\nHost: localhost\nX: y\n\n") },
};

static void test_13_24_framing_that_is_refused(void **state)
{
	struct fixture *x = *state;

	fixture_start(x);
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
		const struct row *row = &refused[i];
		struct http h;
		struct answer a;

		http_open(&h, x->port);
		http_send(&h, row->bytes, row->n);
		/* must not be taken for another request */
		http_send(&h, TEXT("GET /v1/stats HTTP/1.1\r\n" HOST "\r\n"));
		a = http_read(&h, false);
		if (a.status != 400 || !strstr(a.head, "Connection: close"))
			fail_msg("%s: %d\n%s", row->name, a.status, a.head ? a.head : "");
		answer_free(&a);
		while ((a = http_read(&h, true)).status != 0) {
			/* libmicrohttpd sends the head of its own refusals twice */
			if (a.status != 400)
				fail_msg("%s: then %d", row->name, a.status);
			answer_free(&a);
		}
		answer_free(&a);
		http_close(&h);
	}
	assert_int_equal(fake_core_calls(x->cluster), 0);
}

/* Each on a connection that serves on, in one piece and byte by byte. */
static void test_13_24_framing_that_is_taken(void **state)
{
	struct fixture *x = *state;
	struct http h;

	fixture_start(x);
	http_open(&h, x->port);
	for (size_t i = 0; i < 2 * sizeof taken / sizeof *taken; i++) {
		const struct row *row = &taken[i / 2];
		struct answer a;

		for (size_t k = 0; k < row->n; k += i % 2 ? 1 : row->n)
			http_send(&h, row->bytes + k, i % 2 ? 1 : row->n);
		a = http_read(&h, false);
		if (a.status != 200 || strstr(a.head, "Connection: close"))
			fail_msg("%s: %d\n%s%s", row->name, a.status, a.head ? a.head : "",
				 a.body ? a.body : "");
		answer_free(&a);
	}
	http_close(&h);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		T(test_13_24_framing_that_is_refused),
		T(test_13_24_framing_that_is_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
