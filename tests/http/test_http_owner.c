/* test_http_owner.c - the header Slabkv-Owner: clients that ask for it are told who owns what. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <poll.h>

#include <cmocka.h>

#include <skv/owner_note.h>

#include "fixture.h"

#define LOOKUP "/v1/instances/m/lookup"
#define KEYS "{\"keys_int\":[1,2,3]}"
#define MATCH "{\"instances\":[\"m\"],\"keys_int\":[1,2,3]}"
#define FINISH(partition) "/v1/sessions/" partition "00000000000000000000000000000e/finish"
#define DIRECT "Slabkv-Route: direct\r\n"
#define THIRD "http://10.0.0.3:7333"

/* The header of the answer, whose status is `expected`. */
static const char *told(const struct fixture *x, const char *path, const char *headers,
			const char *body, int expected)
{
	static char text[SKV_NOTE_MAX];
	struct answer a = http_call(x->port, body ? "POST" : "GET", path, headers, body);

	assert_int_equal(a.status, expected);
	snprintf(text, sizeof text, "%s", answer_header(&a, SKV_OWNER_NOTE));
	answer_free(&a);
	return text;
}

static void test_the_owner_tells_what_it_owns(void **state)
{
	struct fixture *x = *state;

	fake_core_owner(x->cluster, 0, "lead", THIRD);
	fixture_start(x);
	assert_string_equal(told(x, LOOKUP, DIRECT, KEYS, 200), "2 7");
	assert_string_equal(told(x, "/v1/match", DIRECT, MATCH, 200), "2 7");
	assert_string_equal(told(x, FINISH("01"), DIRECT, "{\"success\":true}", 200), "1 7");
}

static void test_nothing_is_told_without_being_asked(void **state)
{
	struct fixture *x = *state;

	fixture_start(x);
	assert_string_equal(told(x, LOOKUP, DIRECT, KEYS, 200), "0 7");
	assert_string_equal(told(x, LOOKUP, NULL, KEYS, 200), "");
	assert_string_equal(told(x, LOOKUP, "Slabkv-Route: redirect\r\n", KEYS, 200), "");
}

/* Of what is in no partition, or not known to be owned here, nothing is said. */
static void test_only_what_is_here_is_told(void **state)
{
	struct fixture *x = *state;

	fake_core_owner(x->cluster, 0, "lead", THIRD);
	fixture_start(x);
	assert_string_equal(told(x, "/v1/groups/g", DIRECT, NULL, 200), "");
	assert_string_equal(told(x, "/healthz", DIRECT, NULL, 200), "");
	assert_string_equal(told(x, "/v1/instances/gone", DIRECT, NULL, 404), "");
	/* an answer that is not the owner's */
	fake_core_may_answer(x->cluster, SKV_E_NOT_OWNER);
	assert_string_equal(told(x, LOOKUP, DIRECT, KEYS, 503), "");
	told(x, FINISH("00"), DIRECT, "{\"success\":true}", 503);
}

static void test_another_owner_is_told_with_its_address(void **state)
{
	struct fixture *x = *state;

	fake_core_owner(x->cluster, 1, "third", THIRD);
	fixture_start(x);
	fake_core_is_elsewhere(x->cluster, 1, false);
	/* a worker reads its address first */
	for (int i = 0; i < 5000 && !*told(x, LOOKUP, DIRECT, KEYS, 503); i++)
		poll(NULL, 0, 1);
	assert_string_equal(told(x, LOOKUP, DIRECT, KEYS, 503), "1 0 " THIRD);
	assert_string_equal(told(x, LOOKUP, NULL, KEYS, 503), "");
	assert_string_equal(told(x, LOOKUP, "Slabkv-Route: redirect\r\n", KEYS, 503), "");
}

static void test_an_owner_without_an_address_is_not_told(void **state)
{
	struct fixture *x = *state;

	fake_core_owner(x->cluster, 1, "third", "");
	fixture_start(x);
	fake_core_is_elsewhere(x->cluster, 1, false);
	for (int i = 0; i < 50; i++)
		assert_string_equal(told(x, LOOKUP, DIRECT, KEYS, 503), "");
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		T(test_the_owner_tells_what_it_owns),
		T(test_nothing_is_told_without_being_asked),
		T(test_only_what_is_here_is_told),
		T(test_another_owner_is_told_with_its_address),
		T(test_an_owner_without_an_address_is_not_told),
	};
#undef T

	return cmocka_run_group_tests(tests, NULL, NULL);
}
