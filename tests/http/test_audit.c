/* test_audit.c - the audit log of a served front, line by line, and what 2,000 wrong tokens get. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "fixture.h"

static char path[128];

static void start(struct fixture *x)
{
	snprintf(path, sizeof path, "%s/audit", x->dir);
	x->so.audit_file = path;
	fixture_three_tokens(x);
	fixture_start(x);
}

/* The lines of a file, each one JSON; the caller releases. */
static json_t *lines_of(const char *name)
{
	json_t *all = json_array();
	char line[4096];
	FILE *f = fopen(name, "re");

	assert_non_null(f);
	while (fgets(line, sizeof line, f)) {
		json_t *one = json_loads(line, 0, NULL);

		if (!one)
			fail_msg("not JSON: %s", line);
		json_array_append_new(all, one);
	}
	fclose(f);
	return all;
}

static void assert_field(const json_t *line, const char *name, const char *value)
{
	const char *is = json_string_value(json_object_get(line, name));

	if (!is || strcmp(is, value) != 0)
		fail_msg("%s is %s, not %s", name, is ? is : "absent", value);
}

static void call(struct fixture *x, const char *method, const char *target, const char *headers,
		 const char *body, int status)
{
	struct answer a = http_call(x->port, method, target, headers, body);

	if (a.status != status)
		fail_msg("%s %s: %d %s", method, target, a.status, a.body);
	answer_free(&a);
}

static void test_acts_and_refusals(void **state)
{
	struct fixture *x = *state;
	struct stat st;
	json_t *lines;

	start(x);
	call(x, "PUT", "/v1/storages/s", BEARER(TOKEN_ADMIN) "X-Request-Id: one\r\n",
	     "{\"type\":\"null\",\"capacity\":1073741824}", 200);
	call(x, "GET", "/v1/storages", BEARER(TOKEN_ADMIN), NULL, 200);
	call(x, "DELETE", "/v1/groups/g", BEARER(TOKEN_WRITE), NULL, 403);
	call(x, "GET", "/v1/stats", NULL, NULL, 401);
	call(x, "GET", "/v1/stats", BEARER("wrong-token-\"0123456789"), NULL, 401);
	lines = lines_of(path);
	assert_int_equal(json_array_size(lines), 4);
	assert_field(json_array_get(lines, 0), "who", "line-5");
	assert_field(json_array_get(lines, 0), "tenant", "default");
	assert_field(json_array_get(lines, 0), "role", "admin");
	assert_field(json_array_get(lines, 0), "what", "storage_put");
	assert_field(json_array_get(lines, 0), "on", "s");
	assert_field(json_array_get(lines, 0), "result", "ok");
	assert_field(json_array_get(lines, 0), "id", "one");
	assert_memory_equal(json_string_value(json_object_get(json_array_get(lines, 0), "from")),
			    "127.0.0.1", 9);
	assert_field(json_array_get(lines, 1), "who", "line-4");
	assert_field(json_array_get(lines, 1), "what", "group_delete");
	assert_field(json_array_get(lines, 1), "on", "g");
	assert_field(json_array_get(lines, 1), "result", "forbidden");
	assert_field(json_array_get(lines, 2), "who", "-");
	assert_field(json_array_get(lines, 2), "result", "unauthenticated");
	assert_field(json_array_get(lines, 3), "what", "stats");
	json_decref(lines);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

static void test_rotation(void **state)
{
	struct fixture *x = *state;
	char old[160];
	struct skv_error err;
	json_t *lines;

	start(x);
	call(x, "DELETE", "/v1/groups/a", BEARER(TOKEN_WRITE), NULL, 403);
	snprintf(old, sizeof old, "%s.1", path);
	assert_int_equal(rename(path, old), 0);
	call(x, "DELETE", "/v1/groups/b", BEARER(TOKEN_WRITE), NULL, 403);
	assert_int_equal(skv_service_reload(x->service, &err), SKV_OK);
	call(x, "DELETE", "/v1/groups/c", BEARER(TOKEN_WRITE), NULL, 403);
	lines = lines_of(old);
	assert_int_equal(json_array_size(lines), 2);
	json_decref(lines);
	lines = lines_of(path);
	assert_int_equal(json_array_size(lines), 2);
	assert_field(json_array_get(lines, 0), "what", "reload");
	assert_field(json_array_get(lines, 1), "on", "c");
	json_decref(lines);
	unlink(old);
}

static void test_a_full_disk_fails_no_call(void **state)
{
	struct fixture *x = *state;

	x->so.audit_file = "/dev/full";
	fixture_three_tokens(x);
	fixture_start(x);
	call(x, "DELETE", "/v1/groups/a", BEARER(TOKEN_WRITE), NULL, 403);
	call(x, "DELETE", "/v1/groups/a", BEARER(TOKEN_WRITE), NULL, 403);
	assert_int_equal(skv_metrics_get(&x->service->metrics, METRIC_audit_failures), 2);
}

static void test_a_log_that_cannot_be_opened(void **state)
{
	struct fixture *x = *state;
	struct skv_error err;

	x->so.audit_file = "/nonexistent/audit";
	assert_int_equal(fixture_bind(x, &err), SKV_E_IO);
	assert_string_equal(err.field, "audit_file");
}

/* 2,000 took half a second, and all were told to be wrong. */
static void test_wrong_tokens_are_throttled(void **state)
{
	struct fixture *x = *state;
	unsigned told = 0, throttled = 0, seconds;
	time_t begin = time(NULL);
	struct http h;
	struct answer a;
	json_t *lines;

	start(x);
	call(x, "GET", "/v1/stats", BEARER(TOKEN_READ), NULL, 200);
	http_open(&h, x->port);
	for (int i = 0; i < 2000; i++) {
		char header[80];

		snprintf(header, sizeof header, "Authorization: Bearer wrong-token-%010d\r\n", i);
		http_request(&h, "GET", "/v1/stats", header, NULL);
		a = http_read(&h, false);
		told += a.status == 401;
		throttled += a.status == 429;
		answer_free(&a);
	}
	http_close(&h);
	assert_int_equal(told + throttled, 2000);
	seconds = (unsigned)(time(NULL) - begin) + 1;
	assert_in_range(told, 20, 20 + seconds); /* another one each second */
	/* A token that worked from there before still does; a new one is refused. */
	call(x, "GET", "/v1/stats", BEARER(TOKEN_READ), NULL, 200);
	a = http_call(x->port, "GET", "/v1/stats", BEARER(TOKEN_ADMIN), NULL);
	assert_error(&a, 429, "too_many");
	assert_string_equal(answer_header(&a, "Retry-After"), "1");
	answer_free(&a);
	call(x, "GET", "/v1/stats", NULL, NULL, 401); /* no token is no guess */
	assert_true(skv_metrics_get(&x->service->metrics, METRIC_auth_throttled) > 1900);
	lines = lines_of(path);
	seconds = (unsigned)(time(NULL) - begin) + 2;
	assert_in_range(json_array_size(lines), 50, 50 * seconds); /* SKV_AUDIT_REFUSED */
	json_decref(lines);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		T(test_acts_and_refusals),
		T(test_rotation),
		T(test_a_full_disk_fails_no_call),
		T(test_a_log_that_cannot_be_opened),
		T(test_wrong_tokens_are_throttled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
