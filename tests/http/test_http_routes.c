/* test_http_routes.c - the route table, the matcher and percent-decoding, without any server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "v1.h"

static const struct skv_apis apis = { { &skv_v1_api }, 1, SKV_PLANE_ALL };

static int find(const char *method, const char *path, const char **name, struct route_param *params)
{
	const struct skv_route *route = NULL;
	const struct skv_api *api = NULL;
	struct skv_error err;
	int rc = skv_route_find(&apis, method, path, &api, &route, params, &err);

	assert_ptr_equal(api, &skv_v1_api);
	*name = route ? route->name : "";
	return rc;
}

static void assert_route(const char *method, const char *path, const char *name, const char *first,
			 const char *second)
{
	struct route_param params[ROUTE_PARAMS] = { 0 };
	const char *found;

	assert_int_equal(find(method, path, &found, params), SKV_OK);
	assert_string_equal(found, name);
	assert_string_equal(params[0].value, first);
	assert_string_equal(params[1].value, second);
}

static void test_every_row_is_found(void **state)
{
	(void)state;
	for (size_t i = 0; i < SKV_OP_COUNT; i++) {
		const struct skv_route *r = &skv_routes[i];
		char path[128] = "";
		const char *found;
		struct route_param params[ROUTE_PARAMS];

		for (const char *p = r->pattern; *p;) {
			if (*p == '{') {
				snprintf(path + strlen(path), sizeof path - strlen(path), "x1");
				p += strcspn(p, "}") + 1;
			} else {
				strncat(path, p++, 1);
			}
		}
		assert_int_equal(find(r->method, path, &found, params), SKV_OK);
		assert_string_equal(found, r->name);
		/* A caller that changes something needs a role for it; a report of one that may not
		 * delete only asks for a check (decision 0076). */
		if (strcmp(r->method, "GET") != 0 && strcmp(r->name, "match") != 0 &&
		    strcmp(r->name, "lookup") != 0 && strcmp(r->name, "report") != 0)
			assert_true(r->role >= ROLE_WRITE);
		assert_true((r->flags & ROUTE_BODY) == 0 || strcmp(r->method, "GET") != 0);
	}
}

static void test_parameters(void **state)
{
	(void)state;
	assert_route("GET", "/", "index", "", "");
	assert_route("GET", "/v1/storages", "storage_list", "", "");
	assert_route("GET", "/v1/storages/a.b_c-1", "storage_get", "a.b_c-1", "");
	assert_route("HEAD", "/v1/storages/a", "storage_get", "a", "");
	assert_route("PUT", "/v1/storages/%61%5F%2d", "storage_put", "a_-", "");
	assert_route("POST", "/v1/instances/m/lookup", "lookup", "m", "");
	assert_route("GET", "/v1/instances/m/blocks/00ff", "block_get", "m", "00ff");
	assert_route("GET", "/v1/instances/m/blocks", "block_find", "m", "");
	assert_route("GET", "/v1/instances/lookup", "instance_get", "lookup", "");
}

static void test_names_that_are_refused(void **state)
{
	static const char *const bad[] = {
		"%2e%2e",   "..",	 ".",	    "-x",	".hidden", "a%2Fb",    "a%2fb",
			"a%5Cb", "a%00b",
		"a%00",	    "%",	 "%4",	    "a%",	"a%4",	   "%zz",      "a%0ab",
		"a b",	 "a*b",
		"a%20b",    "%C3%BC",	 "a;b",	    "%25%32%65", "",	   "a%ff",
		    "~",	"a;b",	 "%2",
	};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct route_param params[ROUTE_PARAMS];
		const char *found;
		char path[128];

		snprintf(path, sizeof path, "/v1/storages/%s", bad[i]);
		if (find("GET", path, &found, params) != SKV_E_INVALID)
			fail_msg("'%s' was let through", bad[i]);
	}
}

static void test_long_names(void **state)
{
	char path[600] = "/v1/storages/";
	struct route_param params[ROUTE_PARAMS];
	const char *found;

	(void)state;
	memset(path + 13, 'a', SKV_MAX_NAME);
	assert_int_equal(find("GET", path, &found, params), SKV_OK);
	assert_int_equal(strlen(params[0].value), SKV_MAX_NAME);
	memset(path + 13, 'a', SKV_MAX_NAME + 1);
	assert_int_equal(find("GET", path, &found, params), SKV_E_INVALID);
	/* The limit is on the decoded name. */
	for (unsigned i = 0; i < SKV_MAX_NAME; i++)
		memcpy(path + 13 + i * 3, "%61", 3);
	assert_int_equal(find("GET", path, &found, params), SKV_OK);
	assert_int_equal(strlen(params[0].value), SKV_MAX_NAME);
}

/* A model's name has a slash: fixed paths go before it, then the route with the most fixed
 * words. */
static void test_names_of_models(void **state)
{
	static const struct {
		const char *path, *route, *id;
	} cases[] = {
		{ "/v1/instances/Qwen/Qwen3-32B", "instance_get", "Qwen/Qwen3-32B" },
		{ "/v1/instances/Qwen%2FQwen3-32B", "instance_get", "Qwen/Qwen3-32B" },
		{ "/v1/instances/a/b/c/pins", "pins", "a/b/c" },
		{ "/v1/instances/a%2Fpins", "instance_get", "a/pins" },
		{ "/v1/instances/a/pins", "pins", "a" },
		{ "/v1/instances/a/b/blocks/k", "block_get", "a/b" },
		{ "/v1/instances/a/b/blocks", "block_find", "a/b" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct route_param params[ROUTE_PARAMS] = { 0 };
		const char *found;

		if (find("GET", cases[i].path, &found, params) != SKV_OK)
			fail_msg("'%s' was not found", cases[i].path);
		assert_string_equal(found, cases[i].route);
		assert_string_equal(params[0].value, cases[i].id);
	}
	for (size_t i = 0; i < 2; i++) {
		struct route_param params[ROUTE_PARAMS] = { 0 };
		const char *found;

		assert_int_equal(find("POST",
				      i ? "/v1/instances/m/lookupp" : "/v1/instances/a//b/lookup",
				      &found, params),
				 i ? SKV_E_NOT_FOUND : SKV_E_INVALID);
	}
}

static void test_paths_that_do_not_exist(void **state)
{
	static const char *const none[] = {
		"",	       "v1",		 "*",		"//",		   "/v1",
			     "/v1/",
		"/V1/stats",   "/v1//stats",	 "/v1/stats/",	"//v1/stats",	   "/v1/%73tats",
		"/v1/../healthz", "/healthz/..", "/v1/storages/a/b", "/v1/pages/a/b",
		"http://localhost/v1/stats",
	};

	(void)state;
	for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
		struct route_param params[ROUTE_PARAMS];
		const char *found;

		if (find("GET", none[i], &found, params) != SKV_E_NOT_FOUND)
			fail_msg("'%s' was found", none[i]);
	}
}

static void test_methods(void **state)
{
	struct route_param params[ROUTE_PARAMS];
	const char *found;
	char allow[128];

	(void)state;
	assert_int_equal(find("POST", "/v1/storages/a", &found, params), SKV_E_METHOD);
	assert_int_equal(find("get", "/healthz", &found, params), SKV_E_METHOD);
	assert_int_equal(find("GET", "/v1/match", &found, params), SKV_E_METHOD);
	assert_int_equal(find("HEAD", "/v1/match", &found, params), SKV_E_METHOD);
	assert_true(skv_route_allow(&apis, "/v1/storages/a", allow, sizeof allow));
	assert_string_equal(allow, "GET, HEAD, PUT, DELETE, OPTIONS");
	assert_true(skv_route_allow(&apis, "/v1/match", allow, sizeof allow));
	assert_string_equal(allow, "POST, OPTIONS");
	assert_false(skv_route_allow(&apis, "/nowhere", allow, sizeof allow));
}

static void test_percent_decode(void **state)
{
	char out[8];

	(void)state;
	assert_true(skv_percent_decode("", 0, out, sizeof out));
	assert_string_equal(out, "");
	assert_true(skv_percent_decode("%41", 3, out, sizeof out));
	assert_string_equal(out, "A");
	assert_true(skv_percent_decode("%2525", 5, out, sizeof out));
	assert_string_equal(out, "%25");
	assert_true(skv_percent_decode("1234567", 7, out, sizeof out));
	assert_false(skv_percent_decode("12345678", 8, out, sizeof out));
	assert_false(skv_percent_decode("%41", 2, out, sizeof out));
	assert_false(skv_percent_decode("%", 1, out, sizeof out));
	assert_false(skv_percent_decode("%0", 2, out, sizeof out));
	assert_false(skv_percent_decode("%00", 3, out, sizeof out));
	assert_false(skv_percent_decode("%g1", 3, out, sizeof out));
	assert_false(skv_percent_decode("a", 1, out, 0));
}

/* A single memo answers as the table does, whatever is asked, and so does the last route without
 * it. */
static void a_memo_answers_as_the_table(void **state)
{
	static const char *const asked[][2] = {
		{ "POST", "/v1/instances/llama/start" }, { "POST", "/v1/instances/llama/start" },
		{ "PUT", "/v1/instances/llama" },	 { "GET", "/v1/instances/llama" },
		{ "GET", "/v1/instances/llama%2Fx" },	 { "BREW", "/v1/instances/llama" },
		{ "PROPPATCH", "/v1/stats" },		 { "GET", "/v1/instances/.hidden" },
		{ "GET", "/v1/stats" },			 { "GET", "/nothing" },
	};
	struct skv_route_memo memo = { .route = NULL };
	char name[3 * SKV_MAX_NAME + 1] = "", path[4 * SKV_MAX_NAME];

	(void)state;
	for (size_t i = 0; i < SKV_MAX_NAME; i++)
		memcpy(name + 3 * i, "%6e", 4);
	snprintf(path, sizeof path, "/v1/instances/%s/start", name);
	for (size_t i = 0; i <= sizeof asked / sizeof *asked; i++) {
		const bool last = i == sizeof asked / sizeof *asked;
		const char *how = last ? "POST" : asked[i][0], *what = last ? path : asked[i][1];

		for (int again = 0; again < 2; again++) {
			struct route_param want[ROUTE_PARAMS] = { 0 }, got[ROUTE_PARAMS] = { 0 };
			const struct skv_route *a = NULL, *b = NULL;
			const struct skv_api *api[2];
			struct skv_error err;
			int rc = skv_route_find(&apis, how, what, &api[0], &a, want, &err);

			assert_int_equal(rc, skv_route_find_again(&memo, &apis, how, what, &api[1],
								  &b, got, &err));
			assert_true(a == b && api[0] == api[1]);
			for (int k = 0; rc == SKV_OK && k < ROUTE_PARAMS; k++)
				assert_string_equal(want[k].value, got[k].value);
			assert_true(rc != SKV_OK || strlen(what) >= sizeof memo.path ||
				    (memo.route == a && strcmp(memo.path, what) == 0));
		}
	}
	assert_string_equal(memo.path, "/v1/stats");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_row_is_found),
		cmocka_unit_test(test_parameters),
		cmocka_unit_test(test_names_that_are_refused),
		cmocka_unit_test(test_long_names),
		cmocka_unit_test(test_names_of_models),
		cmocka_unit_test(test_paths_that_do_not_exist),
		cmocka_unit_test(test_methods),
		cmocka_unit_test(a_memo_answers_as_the_table),
		cmocka_unit_test(test_percent_decode),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
