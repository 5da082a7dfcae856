/*
 * test_status.c - the one list of results: numbers and codes are unique and stable (they are part
 * of the wire), and explanations fit and stay text.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include <skv/status.h>

static const struct {
	int status;
	const char *code;
	int http, grpc;
} rows[] = {
#define ROW(name, number, code, http, grpc, text) { number, code, http, grpc },
	SKV_STATUS_MAP(ROW)
#undef ROW
};
enum { N = sizeof rows / sizeof rows[0] };

static void numbers_and_codes_are_unique(void **state)
{
	(void)state;
	for (int i = 0; i < N; i++) {
		for (int k = 0; k < i; k++) {
			assert_int_not_equal(rows[i].status, rows[k].status);
			assert_string_not_equal(rows[i].code, rows[k].code);
		}
		assert_true(rows[i].status < 0 || i == 0);
		for (const char *p = rows[i].code; *p; p++)
			assert_true(islower((unsigned char)*p) || *p == '_');
	}
	assert_int_equal(SKV_OK, 0);
	assert_true(SKV_PENDING > 0);
}

static void codes_of_the_wire_make_sense(void **state)
{
	(void)state;
	assert_int_equal(skv_status_http(SKV_OK), 200);
	assert_int_equal(skv_status_grpc(SKV_OK), 0);
	for (int i = 1; i < N; i++) {
		assert_in_range(skv_status_http(rows[i].status), 400, 599);
		assert_in_range(skv_status_grpc(rows[i].status), 1, 16);
		assert_true(strlen(skv_status_text(rows[i].status)) > 3);
	}
	/* Spot checks against RFC 9110 and the gRPC code list. */
	assert_int_equal(skv_status_http(SKV_E_NOT_FOUND), 404);
	assert_int_equal(skv_status_grpc(SKV_E_NOT_FOUND), 5);
	assert_int_equal(skv_status_http(SKV_E_UNAUTHENTICATED), 401);
	assert_int_equal(skv_status_grpc(SKV_E_UNAUTHENTICATED), 16);
	assert_int_equal(skv_status_http(SKV_E_TOO_LARGE), 413);
	assert_int_equal(skv_status_http(SKV_E_NO_SPACE), 507);
	assert_int_equal(skv_status_grpc(SKV_E_NO_SPACE), 8);
	assert_int_equal(skv_status_http(SKV_E_SESSION_EXPIRED), 410);
}

static void names_go_both_ways(void **state)
{
	(void)state;
	for (int i = 0; i < N; i++) {
		assert_string_equal(skv_status_name(rows[i].status), rows[i].code);
		assert_int_equal(skv_status_from_name(rows[i].code), rows[i].status);
	}
	assert_int_equal(skv_status_from_name("no_such_code"), SKV_E_INTERNAL);
	assert_int_equal(skv_status_from_name(""), SKV_E_INTERNAL);
}

static void unknown_numbers_are_internal_errors(void **state)
{
	static const int odd[] = { 1, 2, -1000, 2147483647, -2147483647 - 1 };

	(void)state;
	for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
		assert_string_equal(skv_status_name(odd[i]), "internal");
		assert_int_equal(skv_status_http(odd[i]), 500);
		assert_int_equal(skv_status_grpc(odd[i]), 13);
		assert_string_equal(skv_status_text(odd[i]), "a bug of the server");
	}
}

static void failing_explains(void **state)
{
	struct skv_error err;

	(void)state;
	assert_int_equal(skv_fail(&err, SKV_E_INVALID, "keys[3]", "bad key %d", 7), SKV_E_INVALID);
	assert_int_equal(err.status, SKV_E_INVALID);
	assert_string_equal(err.field, "keys[3]");
	assert_string_equal(err.message, "bad key 7");
	assert_int_equal(skv_fail(&err, SKV_E_IO, NULL, "x"), SKV_E_IO);
	assert_string_equal(err.field, "");
	assert_int_equal(skv_fail(NULL, SKV_E_IO, "f", "x"), SKV_E_IO);
	skv_error_clear(&err);
	assert_int_equal(err.status, SKV_OK);
	assert_string_equal(err.message, "");
	skv_error_clear(NULL);
}

static void an_explanation_can_be_extended(void **state)
{
	struct skv_error err;

	(void)state;
	skv_fail(&err, SKV_E_IO, "root", "disk gone");
	skv_fail(&err, SKV_E_UNAVAILABLE, err.field, "storage 'a': %s (again: %s)", err.message,
		 err.message);
	assert_string_equal(err.field, "root");
	assert_string_equal(err.message, "storage 'a': disk gone (again: disk gone)");
}

static void long_texts_are_cut(void **state)
{
	struct skv_error err;
	char text[1000];

	(void)state;
	memset(text, 'x', sizeof text);
	text[sizeof text - 1] = '\0';
	skv_fail(&err, SKV_E_IO, text, "%s", text);
	assert_int_equal(strlen(err.field), SKV_FIELD_MAX - 1);
	assert_int_equal(strlen(err.message), SKV_MESSAGE_MAX - 1);
	text[SKV_MESSAGE_MAX - 1] = '\0'; /* just fits */
	skv_fail(&err, SKV_E_IO, NULL, "%s", text);
	assert_int_equal(strlen(err.message), SKV_MESSAGE_MAX - 1);
}

/* Answers are JSON: a cut inside a character would make them invalid. */
static void cuts_fall_between_characters(void **state)
{
	static const char *const chars[] = { "\xc3\xbc", "\xe4\xbd\xa0", "\xf0\x9f\x98\x80" };
	struct skv_error err;
	char text[1000];

	(void)state;
	for (size_t kind = 0; kind < 3; kind++) {
		size_t n = strlen(chars[kind]);

		for (size_t shift = 0; shift < 4; shift++) {
			size_t at = shift;
			json_t *j;

			memset(text, 'a', shift);
			for (; at + n < sizeof text; at += n)
				memcpy(text + at, chars[kind], n);
			text[at] = '\0';
			skv_fail(&err, SKV_E_IO, text, "%s", text);
			assert_true(strlen(err.message) > SKV_MESSAGE_MAX - 1 - n);
			assert_true(strlen(err.field) > SKV_FIELD_MAX - 1 - n);
			j = json_pack("{s:s,s:s}", "m", err.message, "f", err.field);
			assert_non_null(j);
			json_decref(j);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_and_codes_are_unique),
		cmocka_unit_test(codes_of_the_wire_make_sense),
		cmocka_unit_test(names_go_both_ways),
		cmocka_unit_test(unknown_numbers_are_internal_errors),
		cmocka_unit_test(failing_explains),
		cmocka_unit_test(an_explanation_can_be_extended),
		cmocka_unit_test(long_texts_are_cut),
		cmocka_unit_test(cuts_fall_between_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
