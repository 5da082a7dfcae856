/* test_http_api.c - each operation's way through the transport: what reaches the core, what comes
 * back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "v1.h"
#include <skv/request.h>

#define SESSION "000102030405060708090a0b0c0d0e0f"
#define STORAGE "{\"type\":\"file\",\"root\":\"/data\",\"capacity\":1073741824}"

static json_t *call(struct fixture *x, const char *method, const char *path, const char *body,
		    int status)
{
	struct answer a = http_call(x->port, method, path, NULL, body);
	json_t *j;

	if (a.status != status)
		fail_msg("%s %s: %d, not %d: %s", method, path, a.status, status,
			 a.body ? a.body : "");
	j = a.body_len ? answer_json(&a) : NULL;
	answer_free(&a);
	return j;
}

static json_int_t integer(const json_t *j, const char *name)
{
	const json_t *v = json_object_get(j, name);

	assert_true(json_is_integer(v));
	return json_integer_value(v);
}

static void test_objects(void **state)
{
	struct fixture *x = *state;
	json_t *j;

	fixture_start(x);
	j = call(x, "PUT", "/v1/storages/new1", STORAGE, 201);
	assert_string_equal(json_string_value(json_object_get(j, "name")), "new1");
	json_decref(j);
	j = call(x, "PUT", "/v1/storages/old1", STORAGE, 200);
	json_decref(j);
	j = call(x, "GET", "/v1/storages", NULL, 200);
	assert_int_equal(json_array_size(json_object_get(j, "storages")), 1);
	json_decref(j);
	assert_null(call(x, "DELETE", "/v1/storages/old1", NULL, 204));
	j = call(x, "PUT", "/v1/groups/new2", "{\"storages\":[\"default\"]}", 201);
	json_decref(j);
	j = call(x, "GET", "/v1/groups/g", NULL, 200);
	assert_string_equal(json_string_value(json_object_get(j, "name")), "g");
	json_decref(j);
	json_decref(call(x, "GET", "/v1/groups", NULL, 200));
	assert_null(call(x, "DELETE", "/v1/groups/g", NULL, 204));
	j = call(x, "PUT", "/v1/instances/new3",
		 "{\"group\":\"default\",\"specs\":[{\"name\":\"tp0\",\"size\":4096}]}", 201);
	json_decref(j);
	assert_string_equal(fake_core_tenant(x->cluster), "default");
	json_decref(call(x, "GET", "/v1/instances/m", NULL, 200));
	json_decref(call(x, "GET", "/v1/instances", NULL, 200));
	assert_null(call(x, "DELETE", "/v1/instances/m", NULL, 204));
	assert_call_error(x->port, "PUT", "/v1/storages/s", NULL, "{\"type\":7}", 400,
			  "invalid_argument");
	assert_call_error(x->port, "PUT", "/v1/groups/g", NULL, "[]", 400, "invalid_argument");
	assert_call_error(x->port, "GET", "/v1/instances/gone", NULL, NULL, 404, "not_found");
	assert_call_error(x->port, "DELETE", "/v1/instances/gone", NULL, NULL, 404, "not_found");
}

/* The fake core's locations are neighbours: one run. */
static void runs_once(struct fixture *x, const char *path)
{
	json_t *j = call(x, "POST", path, "{\"keys\":[\"x\",\"y\",\"z\"],\"runs\":true}", 200);
	const json_t *column = json_array_get(json_object_get(j, "columns"), 0);

	assert_null(json_object_get(j, "blocks"));
	assert_int_equal(integer(column, "length"), 4096);
	assert_int_equal(json_array_size(json_object_get(column, "runs")), 1);
	assert_int_equal(integer(json_array_get(json_object_get(column, "runs"), 0), "more"), 2);
	json_decref(j);
}

static void blocks_once(struct fixture *x)
{
	json_t *j = call(x, "POST", "/v1/match", "{\"instances\":[\"a\",\"b\"],\"keys_int\":[1,2]}",
			 200);

	assert_string_equal(fake_core_name(x->cluster), "a");
	json_decref(j);
	j = call(x, "POST", "/v1/instances/m/lookup", "{\"keys\":[\"x\",\"y\",\"z\"]}", 200);
	assert_int_equal(integer(j, "matched"), 3);
	assert_string_equal(fake_core_name(x->cluster), "m");
	assert_null(json_object_get(j, "columns"));
	json_decref(j);
	runs_once(x, "/v1/instances/m/lookup");
	runs_once(x, "/v1/instances/m/start");
	j = call(x, "POST", "/v1/instances/m/start", "{\"keys_int\":[5]}", 200);
	assert_string_equal(json_string_value(json_object_get(j, "session")), SESSION);
	assert_true(fake_core_key(x->cluster).lo == 5);
	json_decref(j);
	j = call(x, "POST", "/v1/sessions/" SESSION "/finish", "{\"success\":true}", 200);
	assert_int_equal(integer(j, "committed"), 3);
	assert_string_equal(fake_core_name(x->cluster), SESSION);
	json_decref(j);
	j = call(x, "POST", "/v1/sessions/" SESSION "/abort", "{}", 200);
	assert_int_equal(integer(j, "failed"), 4);
	json_decref(j);
	j = call(x, "POST", "/v1/instances/m/delete", "{\"keys_int\":[1,2,3,4]}", 200);
	assert_int_equal(integer(j, "deleted"), 4);
	json_decref(j);
	j = call(x, "POST", "/v1/instances/m/pin",
		 "{\"keys_int\":[1,2,3],\"kind\":\"soft\",\"ttl_ms\":5}", 200);
	assert_int_equal(integer(j, "pinned"), 2);
	assert_int_equal(json_integer_value(json_array_get(json_object_get(j, "missing"), 0)), 2);
	json_decref(j);
	j = call(x, "POST", "/v1/instances/m/unpin", "{\"all\":true}", 200);
	assert_int_equal(integer(j, "unpinned"), 77);
	json_decref(j);
	j = call(x, "GET", "/v1/instances/m/pins?cursor=4&max=9", NULL, 200);
	assert_int_equal(integer(j, "next"), 13);
	json_decref(j);
	j = call(x, "GET", "/v1/instances/m/keys?cursor=4&max=9", NULL, 200);
	assert_int_equal(integer(j, "next"), 13);
	assert_string_equal(json_string_value(json_array_get(json_object_get(j, "keys_hex"), 0)),
			    "00000000000000010000000000000001");
	json_decref(j);
	j = call(x, "POST", "/v1/instances/m/trim", "{\"from_ms\":1,\"to_ms\":5000000001}", 200);
	assert_int_equal(integer(j, "deleted"), 5000000000);
	assert_string_equal(fake_core_name(x->cluster), "m");
	json_decref(j);
}

/* The same answers whether the core is done at once or later. */
static void test_block_operations(void **state)
{
	struct fixture *x = *state;

	fixture_start(x);
	blocks_once(x);
	fake_core_mode(x->cluster, FAKE_THREAD);
	blocks_once(x);
}

static void test_bad_lists(void **state)
{
	static const char *const bad[] = { "cursor=", "cursor=-1", "cursor=1x", "max=x",
					   "max=18446744073709551616" };
	struct fixture *x = *state;
	char path[80];

	fixture_start(x);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		snprintf(path, sizeof path, "/v1/instances/m/pins?%s", bad[i]);
		assert_call_error(x->port, "GET", path, NULL, NULL, 400, "invalid_argument");
		snprintf(path, sizeof path, "/v1/instances/m/keys?%s", bad[i]);
		assert_call_error(x->port, "GET", path, NULL, NULL, 400, "invalid_argument");
	}
}

static void test_one_block(void **state)
{
	static const char *const bad[] = {
		"/v1/instances/m/blocks", "/v1/instances/m/blocks?key=",
			"/v1/instances/m/blocks?key_int=",
		"/v1/instances/m/blocks?key_int=-1", "/v1/instances/m/blocks?key_int=1x",
		"/v1/instances/m/blocks?key_int=18446744073709551616",
		"/v1/instances/m/blocks?key=a&key_int=1",
		"/v1/instances/m/blocks?key=a%00b", "/v1/instances/m/blocks?key=%4",
		"/v1/instances/m/blocks/12",
		"/v1/instances/m/blocks/0123456789abcdef0123456789abcdeg",
	};
	struct fixture *x = *state;
	struct skv_secret secret;
	struct skv_key key;

	fixture_start(x);
	json_decref(call(x, "GET", "/v1/instances/m/blocks/0123456789ABCDEF0000000000000001", NULL,
			 200));
	assert_true(fake_core_key(x->cluster).hi == 0x0123456789abcdef &&
		    fake_core_key(x->cluster).lo == 1);
	json_decref(call(x, "GET", "/v1/instances/m/blocks?key_int=18446744073709551615", NULL,
			 200));
	assert_true(fake_core_key(x->cluster).hi == 0 &&
		    fake_core_key(x->cluster).lo == UINT64_MAX);
	json_decref(call(x, "GET", "/v1/instances/m/blocks?key=a%20%2F%C3%BC%26b%25", NULL, 200));
	memset(&secret, 7, sizeof secret);
	key = skv_key_from_string(&secret, "a /\xc3\xbc&b%", 8);
	assert_true(skv_key_equal(fake_core_key(x->cluster), key));
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_call_error(x->port, "GET", bad[i], NULL, NULL, 400, "invalid_argument");
}

static void test_pages(void **state)
{
	struct fixture *x = *state;
	struct answer a;
	json_t *j;

	fixture_start(x);
	a = http_call(x->port, "GET", "/", NULL, NULL);
	assert_int_equal(a.status, 200);
	for (size_t i = 0; i < SKV_OP_COUNT; i++)
		assert_non_null(strstr(a.body, skv_routes[i].pattern));
	answer_free(&a);
	json_decref(call(x, "GET", "/healthz", NULL, 200));
	json_decref(call(x, "GET", "/readyz", NULL, 200));
	j = call(x, "GET", "/v1/stats", NULL, 200);
	assert_int_equal(integer(j, "blocks"), 11);
	json_decref(j);
}

/* Every row of the route table is described, and nothing else is. */
static void test_openapi_names_every_route(void **state)
{
	struct fixture *x = *state;
	json_t *j, *paths, *path;
	const char *name;
	size_t described = 0;

	fixture_start(x);
	j = call(x, "GET", "/openapi.json", NULL, 200);
	paths = json_object_get(j, "paths");
	for (size_t i = 0; i < SKV_OP_COUNT; i++) {
		char method[16] = "";

		for (size_t k = 0; skv_routes[i].method[k]; k++)
			method[k] = (char)(skv_routes[i].method[k] | 0x20);
		if (!json_object_get(json_object_get(paths, skv_routes[i].pattern), method))
			fail_msg("%s %s is not described", method, skv_routes[i].pattern);
	}
	json_object_foreach(paths, name, path) {
		static const char *const methods[] = { "get", "put", "post", "delete" };

		for (size_t m = 0; m < 4; m++)
			described += json_object_get(path, methods[m]) != NULL;
	}
	assert_int_equal(described, SKV_OP_COUNT);
	json_decref(j);
}

/* ---- states of the core ---------------------------------------------------------------------- */

/* The core is ready, but what the manager must make before others use it is not. */
static void test_ready_is_held(void **state)
{
	struct fixture *x = *state;

	x->so.hold_ready = true;
	fixture_start(x);
	fake_core_storages(x->cluster, true);
	assert_call_error(x->port, "GET", "/readyz", NULL, NULL, 503, "not_ready");
	json_decref(call(x, "GET", "/v1/groups", NULL, 200)); /* the store is not new */
	skv_service_hold_calls(x->service);
	assert_call_error(x->port, "GET", "/v1/groups", NULL, NULL, 503, "not_ready");
	skv_service_release_ready(x->service);
	json_decref(call(x, "GET", "/v1/groups", NULL, 200));
	json_decref(call(x, "GET", "/readyz", NULL, 200));
}

static void test_before_it_is_ready(void **state)
{
	struct fixture *x = *state;
	struct answer a;

	fixture_start(x);
	fake_core_state(x->cluster, SKV_CORE_RECOVERING);
	a = http_call(x->port, "POST", "/v1/instances/m/lookup", NULL, "{\"keys\":[\"a\"]}");
	assert_error(&a, 503, "not_ready");
	assert_string_equal(answer_header(&a, "Retry-After"), "1");
	answer_free(&a);
	json_decref(call(x, "GET", "/healthz", NULL, 200));
	assert_call_error(x->port, "GET", "/readyz", NULL, NULL, 503, "not_ready");
	assert_call_error(x->port, "PUT", "/v1/storages/s", NULL, STORAGE, 503, "not_ready");
	fake_core_state(x->cluster, SKV_CORE_STANDBY);
	assert_call_error(x->port, "POST", "/v1/match", NULL, "{}", 503, "not_owner");
	fake_core_state(x->cluster, SKV_CORE_STOPPED);
	assert_call_error(x->port, "GET", "/healthz", NULL, NULL, 503, "not_ready");
	assert_call_error(x->port, "GET", "/v1/groups", NULL, NULL, 503, "not_ready");
	assert_int_equal(fake_core_calls(x->cluster), 0);
}

/* A manager that was stopped while it worked says nothing of what it knew. */
static void test_ownership_is_checked_before_the_answer(void **state)
{
	struct fixture *x = *state;

	fixture_start(x);
	fake_core_may_answer(x->cluster, SKV_E_NOT_OWNER);
	assert_call_error(x->port, "POST", "/v1/match", NULL,
			  "{\"instances\":[\"a\"],\"keys_int\":[1]}", 503,
			  "not_owner");
	assert_call_error(x->port, "POST", "/v1/instances/gone/lookup", NULL, "{\"keys_int\":[1]}",
			  503,
			  "not_owner");
	fake_core_mode(x->cluster, FAKE_THREAD);
	assert_call_error(x->port, "POST", "/v1/instances/m/start", NULL, "{\"keys_int\":[1]}", 503,
			  "not_owner");
	assert_call_error(x->port, "PUT", "/v1/storages/s", NULL, STORAGE, 503, "not_owner");
	json_decref(call(x, "GET", "/healthz", NULL, 200));
	json_decref(call(x, "GET", "/v1/stats", NULL, 200));
}

/* The manager was stopped between the result and the bytes of the answer: the bytes do not
 * leave. */
static void test_ownership_is_checked_after_the_answer_is_built(void **state)
{
	static const char match[] = "{\"instances\":[\"a\"],\"keys_int\":[1]}";
	struct fixture *x = *state;

	fixture_start(x);
	fake_core_loses_ownership_after(x->cluster, 1);
	assert_call_error(x->port, "POST", "/v1/match", NULL, match, 503, "not_owner");
	fake_core_loses_ownership_after(x->cluster, 2);
	json_decref(call(x, "POST", "/v1/match", match, 200));
}

/* ---- errors of the core ---------------------------------------------------------------------- */

static void test_every_status(void **state)
{
	static const struct {
		int status;
		int http;
		const char *code;
	} statuses[] = {
#define STATUS(name, number, code, http, grpc, text) { number, http, code },
		SKV_STATUS_MAP(STATUS)
#undef STATUS
	};
	struct fixture *x = *state;

	fixture_start(x);
	fake_core_mode(x->cluster, FAKE_THREAD);
	for (size_t i = 1; i < sizeof statuses / sizeof statuses[0]; i++) {
		struct answer a;

		fake_core_fail(x->cluster, statuses[i].status, "words of the core");
		a = http_call(x->port, "POST", "/v1/instances/m/start", NULL, "{\"keys_int\":[1]}");
		assert_error(&a, statuses[i].http, statuses[i].code);
		assert_non_null(strstr(a.body, "words of the core"));
		if (statuses[i].http == 503 && statuses[i].status != SKV_E_NETWORK)
			assert_string_not_equal(answer_header(&a, "Retry-After"), "");
		answer_free(&a);
	}
}

static void test_paths_stay_inside(void **state)
{
	struct fixture *x = *state;
	struct answer a;

	fixture_start(x);
	fake_core_fail(x->cluster, SKV_E_UNAVAILABLE,
		       "cannot open '/srv/kv/slab-1.kvs': read-only, see ./x.db (/y)");
	a = http_call(x->port, "PUT", "/v1/storages/s", NULL, STORAGE);
	assert_error(&a, 503, "unavailable");
	assert_non_null(strstr(a.body, "cannot open '(path)': read-only, see (path) ((path))"));
	answer_free(&a);
}

static void test_scrub(void **state)
{
	static const struct {
		const char *in;
		const char *out;
	} cases[] = {
		{ "", "" },
		{ "plain words, 3/4 of them and/or more", "plain words, 3/4 of them and/or more" },
		{ "/", "(path)" },
		{ "/a/b: no", "(path) no" },
		{ "open /a/b failed", "open (path) failed" },
		{ "open \"/a/b\" and (/c), ../d;", "open \"(path)\" and ((path)), (path);" },
		{ "a. b ... c", "a. b ... c" },
	};
	char text[SKV_MESSAGE_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		snprintf(text, sizeof text, "%s", cases[i].in);
		skv_request_scrub(text);
		assert_string_equal(text, cases[i].out);
	}
	/* A text that escaping makes too long is cut to fit. */
	for (size_t i = 0; i + 1 < sizeof text; i++)
		text[i] = i % 2 ? ' ' : '/';
	text[sizeof text - 1] = '\0';
	skv_request_scrub(text);
	assert_true(strlen(text) < sizeof text && !strchr(text, '/'));
}

#define T(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_objects),
		T(test_block_operations),
		T(test_bad_lists),
		T(test_one_block),
		T(test_pages),
		T(test_openapi_names_every_route),
		T(test_ready_is_held),
		T(test_before_it_is_ready),
		T(test_ownership_is_checked_before_the_answer),
		T(test_ownership_is_checked_after_the_answer_is_built),
		T(test_every_status),
		T(test_paths_stay_inside),
		cmocka_unit_test(test_scrub),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
