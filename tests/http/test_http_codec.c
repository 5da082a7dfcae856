/* test_http_codec.c - which form a body is read in and an answer comes in, errors included. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <skv/v1_pb.h>

#include "fixture.h"

#define PB "application/x-protobuf"
#define JSON "application/json"
#define TYPE(t) "Content-Type: " t "\r\n"
#define ACCEPT(t) "Accept: " t "\r\n"
/* A raw key in a LookupRequest; no zero bytes, for the test client takes a string. */
#define LOOKUP_PB "\x0a\x10" "0123456789abcdef"
#define LOOKUP_JSON "{\"keys\":[\"a\"]}"
#define LOOKUP "/v1/instances/m/lookup"

struct expected {
	const char *method, *path, *headers, *body;
	int status;
	const char *type; /* "": no body */
};

static void check(struct fixture *x, const struct expected *e)
{
	struct answer a = http_call(x->port, e->method, e->path, e->headers, e->body);

	if (a.status != e->status || strcmp(answer_header(&a, "Content-Type"), e->type) != 0)
		fail_msg("%s %s, %s: %d in %s, not %d in %s", e->method, e->path, e->headers,
			 a.status, answer_header(&a, "Content-Type"), e->status, e->type);
	answer_free(&a);
}

static void forms_are_chosen(void **state)
{
	static const struct expected all[] = {
		/* the body's type decides */
		{ "POST", LOOKUP, TYPE(PB), LOOKUP_PB, 200, PB },
		{ "POST", LOOKUP, TYPE("application/protobuf"), LOOKUP_PB, 200, PB },
		{ "POST", LOOKUP, TYPE(PB) ACCEPT(JSON), LOOKUP_PB, 200, PB },
		{ "POST", LOOKUP, TYPE(JSON), LOOKUP_JSON, 200, JSON },
		{ "POST", LOOKUP, TYPE("application/json; charset=utf-8"), LOOKUP_JSON, 200, JSON },
		{ "POST", LOOKUP, TYPE(JSON) ACCEPT(PB), LOOKUP_JSON, 200, JSON },
		{ "POST", LOOKUP, NULL, LOOKUP_JSON, 200, JSON },
		{ "POST", LOOKUP, TYPE("application/x-www-form-urlencoded"), LOOKUP_JSON, 200,
		  JSON },
		/* without a type: JSON in, out as accepted */
		{ "POST", LOOKUP, ACCEPT(PB), LOOKUP_JSON, 200, PB },
		/* without a body: as accepted */
		{ "GET", "/v1/instances", ACCEPT(PB), NULL, 200, PB },
		{ "GET", "/v1/instances", ACCEPT("text/html, " PB ";q=0.5, */*"), NULL, 200, PB },
		{ "GET", "/v1/instances", ACCEPT("*/*"), NULL, 200, JSON },
		{ "GET", "/v1/instances", TYPE(PB), NULL, 200, JSON },
		{ "GET", "/v1/instances", NULL, NULL, 200, JSON },
		{ "GET", "/v1/storages", ACCEPT(PB), NULL, 200, PB },
		{ "GET", "/v1/groups", ACCEPT(PB), NULL, 200, PB },
		{ "GET", "/v1/stats", ACCEPT(PB), NULL, 200, PB },
		{ "GET", "/v1/instances/m/blocks?key=a", ACCEPT(PB), NULL, 200, PB },
		{ "DELETE", "/v1/instances/m", ACCEPT(PB), NULL, 204, "" },
		/* an abort has no fields that must be there, in either form */
		{ "POST", "/v1/sessions/000102030405060708090a0b0c0d0e0f/abort", TYPE(PB), "", 200,
		  PB },
		{ "POST", "/v1/sessions/000102030405060708090a0b0c0d0e0f/abort", NULL, NULL, 200,
		  JSON },
		/* errors in the same form */
		{ "POST", LOOKUP, TYPE(PB), "\x0a\x0f" "0123456789abcde", 400, PB },
		{ "POST", LOOKUP, TYPE(PB), LOOKUP_JSON, 400, PB },
		{ "POST", LOOKUP, TYPE(JSON), LOOKUP_PB, 400, JSON },
		{ "GET", "/v1/instances/gone", ACCEPT(PB), NULL, 404, PB },
		{ "GET", "/nowhere", ACCEPT(PB), NULL, 404, PB },
		{ "POST", "/v1/stats", TYPE(PB), "", 405, PB },
		/* pages are what they are */
		{ "GET", "/healthz", ACCEPT(PB), NULL, 200, JSON },
		{ "GET", "/openapi.json", ACCEPT(PB), NULL, 200, JSON },
		{ "GET", "/", ACCEPT(PB), NULL, 200, "text/plain; charset=utf-8" },
		/* types that no codec reads */
		{ "POST", LOOKUP, TYPE("text/xml"), LOOKUP_JSON, 415, JSON },
		{ "POST", LOOKUP, TYPE("text/xml") ACCEPT(PB), LOOKUP_JSON, 415, PB },
		{ "PUT", "/v1/groups/g", TYPE("application/jsonx"), "{}", 415, JSON },
		{ "POST", "/nowhere", TYPE("text/xml"), "x", 404, JSON },
	};
	struct fixture *x = *state;

	fixture_start(x);
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		check(x, &all[i]);
}

static void the_list_is_told(void **state)
{
	struct fixture *x = *state;
	struct answer a;
	json_t *j;

	fixture_start(x);
	a = http_call(x->port, "POST", LOOKUP, TYPE("text/xml"), LOOKUP_JSON);
	assert_error(&a, 415, "unsupported");
	j = answer_json(&a);
	assert_non_null(strstr(a.body, PB));
	assert_non_null(strstr(a.body, JSON));
	json_decref(j);
	answer_free(&a);
}

static void errors_are_messages(void **state)
{
	struct fixture *x = *state;
	struct skv_arena arena;
	struct skv_v1_in in = { .arena = &arena };
	struct skv_error err;
	struct answer a;

	fixture_start(x);
	skv_arena_init(&arena);
	a = http_call(x->port, "POST", LOOKUP, TYPE(PB), "\x0a\x0f" "0123456789abcde");
	assert_int_equal(skv_pb_read_error(&in, a.body, a.body_len, &err), SKV_E_INVALID);
	assert_string_equal(err.field, "keys_raw");
	answer_free(&a);
	skv_arena_destroy(&arena);
}

static void answers_are_messages(void **state)
{
	struct fixture *x = *state;
	struct skv_arena arena;
	struct skv_v1_in in = { .arena = &arena };
	struct skv_lookup_res res;
	struct skv_key expected;
	struct answer a;

	fixture_start(x);
	skv_arena_init(&arena);
	a = http_call(x->port, "POST", LOOKUP, TYPE(PB), LOOKUP_PB);
	assert_int_equal(skv_pb_read_lookup_res(&in, a.body, a.body_len, &res, NULL), SKV_OK);
	assert_int_equal(res.n_keys, 1);
	assert_true(skv_key_from_hex("30313233343536373839616263646566", 32, &expected));
	assert_true(skv_key_equal(fake_core_key(x->cluster), expected));
	answer_free(&a);
	skv_arena_destroy(&arena);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		T(forms_are_chosen),
		T(the_list_is_told),
		T(errors_are_messages),
		T(answers_are_messages),
	};
#undef T

	return cmocka_run_group_tests(tests, NULL, NULL);
}
