/* test_http_apis.c - several APIs on a port: whose a path is, planes, an API's own
 * failures, counters of each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <skv/request.h>

#include "fixture.h"

/* ---- a small API ----------------------------------------------------------------------------- */

struct toy_call {
	int runs;
	const char *q;
};

static int toy_head(struct skv_request *c, const struct skv_head *h)
{
	struct toy_call *t = c->state;

	assert_int_equal(t->runs, 0); /* each call begins with zeroes */
	t->q = h->argument(h->ctx, "q");
	return SKV_OK;
}

static int toy_message(struct skv_request *c, const uint8_t *p, size_t n)
{
	(void)p;
	(void)n;
	return skv_fail(&c->err, SKV_E_INTERNAL, NULL, "there is no gRPC here");
}

/* All of its errors but unknown paths are 200. */
static unsigned toy_fail(struct skv_request *c)
{
	if (!c->route)
		return 404;
	if (c->n_body == 9 && memcmp(c->body, "later 503", 9) == 0)
		return 503;
	skv_buf_printf(&c->out, "toy failed: %s", skv_status_name(c->status));
	return c->http ? c->http : 200;
}

static int toy_run(struct skv_request *c)
{
	struct toy_call *t = c->state;

	t->runs++;
	if (c->n_body == 3 && memcmp(c->body, "bad", 3) == 0)
		return skv_fail(&c->err, SKV_E_CONFLICT, NULL, "as asked");
	return SKV_OK;
}

static void toy_write(struct skv_request *c)
{
	struct toy_call *t = c->state;

	c->type = "text/x-toy";
	skv_buf_printf(&c->out, "%s %s %s %d", c->route->name, c->param[0].value, t->q ? t->q : "-",
		       t->runs);
}

/* The body says what the header of the answer has. */
static int toy_send_run(struct skv_request *c)
{
	if (strncmp(c->body, "later", 5) == 0) {
		c->retry_after = 7;
		return skv_fail(&c->err, SKV_E_NOT_READY, NULL, "as asked");
	}
	c->http = 307;
	c->location = skv_arena_strndup(&c->arena, c->body, c->n_body);
	c->close = true;
	return SKV_OK;
}

static void toy_send_write(struct skv_request *c) { (void)c; }

static bool toy_owns(const char *path) { return path[1] >= '0' && path[1] <= '9'; }

static void toy_expose(const struct skv_api *api, struct skv_service *s, struct skv_arena *a,
		       struct skv_buf *out)
{
	struct metric_totals t;

	(void)a;
	skv_metrics_totals(&s->metrics, api->first_op, &t);
	skv_buf_printf(
		out,
		"# HELP toy_calls_total c\n# TYPE toy_calls_total counter\ntoy_calls_total %u/%u\n",
		(unsigned)t.calls, (unsigned)t.failed);
}

static const struct skv_route toy_routes[] = {
	{ .name = "echo", .method = "POST", .pattern = "/toy/{name}/echo", .role = ROLE_READ,
	  .flags = ROUTE_BODY,
	  .planes = SKV_PLANE_META, .run = toy_run, .write = toy_write },
	{ .name = "rule", .method = "POST", .pattern = "/toy/rule", .role = ROLE_ADMIN,
	  .flags = ROUTE_BODY,
	  .planes = SKV_PLANE_ADMIN, .run = toy_run, .write = toy_write },
	{ .name = "raw", .method = "POST", .pattern = "/{x}/raw", .role = ROLE_READ,
	  .flags = ROUTE_BODY | ROUTE_RAW,
	  .planes = SKV_PLANE_META, .run = toy_run, .write = toy_write },
	{ .name = "send", .method = "POST", .pattern = "/toy/send", .role = ROLE_READ,
	  .flags = ROUTE_BODY,
	  .planes = SKV_PLANE_META, .run = toy_send_run, .write = toy_send_write },
	{ .name = "stats", .method = "GET", .pattern = "/v1/stats", .role = ROLE_READ,
	  .planes = SKV_PLANE_ALL, .run = toy_run, .write = toy_write },
};

static struct skv_api toy = {
	.name = "toy",
	.prefix = "/toy/",
	.routes = toy_routes,
	.n_routes = sizeof toy_routes / sizeof toy_routes[0],
	.state_size = sizeof(struct toy_call),
	.owns = toy_owns,
	.slash_redirect = true,
	.head = toy_head,
	.message = toy_message,
	.fail = toy_fail,
	.expose = toy_expose,
};

static struct skv_api *const apis[] = { &skv_v1_api, &toy };

static void start(struct fixture *x, unsigned planes)
{
	x->so.apis = apis;
	x->so.n_apis = 2;
	x->o.apis = (struct skv_apis){ { &skv_v1_api, &toy }, 2, planes };
	fixture_start(x);
}

static void expect(struct fixture *x, const char *method, const char *path, const char *body,
		   int status, const char *text)
{
	struct answer a = http_call(x->port, method, path, NULL, body);

	assert_int_equal(a.status, status);
	if (text)
		assert_string_equal(a.body, text);
	answer_free(&a);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void test_paths_find_their_api(void **state)
{
	struct fixture *x = *state;

	start(x, SKV_PLANE_ALL);
	expect(x, "POST", "/toy/a/echo?q=7", "", 200, "echo a 7 1");
	expect(x, "POST", "/toy/b/echo", "xyz", 200, "echo b - 1");
	expect(x, "GET", "/healthz", NULL, 200, "{\"status\":\"ok\"}");
	expect(x, "POST", "/toy/none", "", 404, "");
	expect(x, "GET", "/toy/rule", NULL, 404, "");
}

static void test_nobodys_paths(void **state)
{
	struct fixture *x = *state;
	struct answer a;

	start(x, SKV_PLANE_ALL);
	a = http_call(x->port, "GET", "/elsewhere", NULL, NULL);
	assert_error(&a, 404, "not_found"); /* the native API's, whose prefix is / */
	answer_free(&a);
	expect(x, "GET", "/toy/elsewhere", NULL, 404, "");
	/* The first API that has a path serves it. */
	a = http_call(x->port, "GET", "/v1/stats", NULL, NULL);
	assert_int_equal(a.status, 200);
	assert_string_equal(answer_header(&a, "Content-Type"), "application/json");
	answer_free(&a);
}

static void test_raw_parameters(void **state)
{
	struct fixture *x = *state;

	start(x, SKV_PLANE_ALL);
	expect(x, "POST", "/-1/raw", "", 200, "raw -1 - 1");
	expect(x, "POST", "/%2e%2E%2f%20/raw", "", 200, "raw ../  - 1");
	expect(x, "POST", "/a%00b/raw", "", 200, "toy failed: invalid_argument");
	expect(x, "POST", "/%4/raw", "", 200, "toy failed: invalid_argument");
	expect(x, "POST", "//raw", "", 404, NULL); /* no empty ones */
}

static void test_owned_paths(void **state)
{
	struct fixture *x = *state;
	struct answer a;

	start(x, SKV_PLANE_ALL);
	expect(x, "GET", "/0/none", NULL, 404, "");
	a = http_call(x->port, "GET", "/a/none", NULL, NULL);
	assert_error(&a, 404, "not_found");
	answer_free(&a);
}

static void expect_to(struct fixture *x, const char *path, const char *body, int status,
		      const char *location)
{
	struct answer a = http_call(x->port, "POST", path, NULL, body);

	assert_int_equal(a.status, status);
	assert_string_equal(answer_header(&a, "Location"), location);
	answer_free(&a);
}

static void test_trailing_slash(void **state)
{
	struct fixture *x = *state;

	start(x, SKV_PLANE_ALL);
	expect_to(x, "/0/raw/", "some body", 307, "/0/raw");
	expect_to(x, "/a%20b/raw/?q=1", "", 307, "/a%20b/raw");
	expect_to(x, "/v1/lookup/", "", 404, ""); /* the native API does not */
	expect_to(x, "/0/raw//", "", 404, "");
	expect_to(x, "/0/none/", "", 404, "");
	/* Another host to some clients. */
	expect_to(x, "//raw/", "", 404, "");
	expect_to(x, "//0/raw/", "", 404, "");
	expect_to(x, "/\\host/raw/", "", 404, "");
}

static void test_headers_of_an_answer(void **state)
{
	struct fixture *x = *state;
	struct answer a;

	start(x, SKV_PLANE_ALL);
	a = http_call(x->port, "POST", "/toy/send", NULL, "http://127.0.0.1:1/there");
	assert_int_equal(a.status, 307);
	assert_string_equal(answer_header(&a, "Location"), "http://127.0.0.1:1/there");
	assert_string_equal(answer_header(&a, "Connection"), "close");
	answer_free(&a);
	/* This API's failures are 200: nothing to repeat. */
	a = http_call(x->port, "POST", "/toy/send", NULL, "later");
	assert_int_equal(a.status, 200);
	assert_string_equal(answer_header(&a, "Retry-After"), "");
	answer_free(&a);
	a = http_call(x->port, "POST", "/toy/send", NULL, "later 503");
	assert_int_equal(a.status, 503);
	assert_string_equal(answer_header(&a, "Retry-After"), "7");
	answer_free(&a);
}

static void test_planes(void **state)
{
	struct fixture *x = *state;

	start(x, SKV_PLANE_META);
	expect(x, "POST", "/toy/a/echo", "", 200, "echo a - 1");
	expect(x, "POST", "/toy/rule", "", 404, "");
	expect(x, "GET", "/healthz", NULL, 200, NULL); /* native routes are of all planes */
}

static void test_failures_are_the_apis(void **state)
{
	struct fixture *x = *state;

	x->so.body_max = 10;
	start(x, SKV_PLANE_ALL);
	expect(x, "POST", "/toy/a/echo", "bad", 200, "toy failed: conflict");
	expect(x, "POST", "/toy/a/echo", "much too long", 200, "toy failed: too_large");
	expect(x, "POST", "/toy/%2e%2e/echo", "", 200, "toy failed: invalid_argument");
}

static void test_counters(void **state)
{
	struct fixture *x = *state;
	struct answer a;

	start(x, SKV_PLANE_ALL);
	expect(x, "POST", "/toy/a/echo", "bad", 200, NULL);
	expect(x, "POST", "/toy/a/echo", "", 200, NULL);
	a = http_call(x->port, "GET", "/metrics", NULL, NULL);
	assert_non_null(
		strstr(a.body,
		       "\nslabkv_http_requests_total{op=\"echo\",api=\"toy\",status=\"2xx\"} 2\n"));
	assert_non_null(
		strstr(a.body, "\nslabkv_http_failed_requests_total{op=\"echo\",api=\"toy\"} 1\n"));
	/* nobody has called these */
	assert_null(strstr(a.body, "op=\"lookup\""));
	assert_null(strstr(a.body, "op=\"rule\""));
	assert_non_null(strstr(a.body, "\ntoy_calls_total 2/1\n"));
	answer_free(&a);
}

static void test_roles(void **state)
{
	struct fixture *x = *state;
	struct answer a;

	fixture_three_tokens(x);
	start(x, SKV_PLANE_ALL);
	a = http_call(x->port, "POST", "/toy/rule", BEARER(TOKEN_WRITE), "");
	assert_string_equal(a.body, "toy failed: forbidden");
	answer_free(&a);
	a = http_call(x->port, "POST", "/toy/rule", BEARER(TOKEN_ADMIN), "");
	assert_string_equal(a.body, "rule  - 1");
	answer_free(&a);
}

#define T(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_paths_find_their_api), T(test_nobodys_paths), T(test_raw_parameters),
		T(test_owned_paths),
		T(test_trailing_slash), T(test_headers_of_an_answer), T(test_planes),
		T(test_failures_are_the_apis), T(test_counters), T(test_roles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
