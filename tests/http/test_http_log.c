/* test_http_log.c - the one line for a failed or slow request. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <skv/clock.h>
#include <skv/log.h>

#include "fixture.h"

#define START "/v1/instances/m/start"
#define KEYS "{\"keys_int\":[1]}"

/* Lines written so far; what the transport logs before it answers is there when the answer is. */
static json_t *lines(int fd)
{
	json_t *all = json_array();
	char *text = calloc(1, 65536), *rest = NULL;

	assert_true(pread(fd, text, 65535, 0) >= 0);
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		json_t *j = json_loads(line, 0, NULL);

		assert_non_null(j);
		json_array_append_new(all, j);
	}
	free(text);
	return all;
}

static const char *text(const json_t *line, const char *name)
{
	const char *s = json_string_value(json_object_get(line, name));

	return s ? s : "";
}

/* A log file that is gone when it is closed. */
static int capture(enum skv_log_level level)
{
	char path[] = "/tmp/skv-log-XXXXXX";
	int fd = mkostemp(path, O_CLOEXEC | O_APPEND);

	assert_true(fd >= 0);
	unlink(path);
	skv_log_setup(fd, true, level);
	return fd;
}

static void release(int fd)
{
	skv_log_setup(STDERR_FILENO, false, SKV_LOG_ERROR);
	close(fd);
}

/* The log line is written after the answer is queued: wait until there are n. */
static json_t *await_lines(int fd, size_t n)
{
	uint64_t end = skv_now_us() + HTTP_WAIT_MS * 1000ull;

	for (;;) {
		json_t *all = lines(fd);

		if (json_array_size(all) >= n || skv_now_us() > end)
			return all;
		json_decref(all);
	}
}

static void test_failures(void **state)
{
	struct fixture *x = *state;
	int fd = capture(SKV_LOG_INFO);
	json_t *all;
	const json_t *line;
	struct answer a;

	fixture_start(x);
	fake_core_fail(x->cluster, SKV_E_IO, "pread of /srv/slab: Input/output error");
	a = http_call(x->port, "POST", START, "X-Request-Id: abc\r\n", KEYS);
	assert_error(&a, 500, "io");
	assert_null(strstr(a.body, "/srv"));
	answer_free(&a);
	fake_core_fail(x->cluster, SKV_E_NO_SPACE, "full");
	assert_call_error(x->port, "POST", START, NULL, KEYS, 507, "no_space");
	all = await_lines(fd, 2);
	assert_int_equal(json_array_size(all), 2);
	line = json_array_get(all, 0);
	assert_string_equal(text(line, "level"), "error");
	assert_string_equal(text(line, "id"), "abc");
	assert_string_equal(text(line, "method"), "POST");
	assert_string_equal(text(line, "path"), START);
	assert_int_equal(json_integer_value(json_object_get(line, "status")), 500);
	assert_string_equal(text(line, "code"), "io");
	assert_string_equal(text(line, "client"), "127.0.0.1");
	assert_string_equal(text(line, "cause"), "pread of /srv/slab: Input/output error");
	assert_true(json_real_value(json_object_get(line, "ms")) > 0);
	assert_string_equal(text(json_array_get(all, 1), "level"), "warn");
	json_decref(all);
	release(fd);
}

static void refused_requests(struct fixture *x, enum skv_log_level level, size_t expected)
{
	int fd = capture(level);
	json_t *all;

	fixture_start(x);
	assert_call_error(x->port, "GET", "/nowhere", NULL, NULL, 404, "not_found");
	assert_call_error(x->port, "POST", START, NULL, "{\"keys_int\":[-1]}", 400,
			  "invalid_argument");
	/* A failure comes last, so that nothing can still be on its way. */
	fake_core_fail(x->cluster, SKV_E_INTERNAL, "x");
	assert_call_error(x->port, "POST", START, NULL, KEYS, 500, "internal");
	all = await_lines(fd, expected);
	assert_int_equal(json_array_size(all), expected);
	json_decref(all);
	release(fd);
}

static void test_refusals_are_quiet(void **state) { refused_requests(*state, SKV_LOG_INFO, 1); }
static void test_refusals_on_request(void **state) { refused_requests(*state, SKV_LOG_DEBUG, 3); }

static void test_slow_requests(void **state)
{
	struct fixture *x = *state;
	int fd = capture(SKV_LOG_INFO);
	uint64_t begin;
	struct http h;
	struct answer a;
	json_t *all;

	x->so.slow_ms = 20;
	fixture_start(x);
	fake_core_mode(x->cluster, FAKE_HOLD);
	http_open(&h, x->port);
	http_request(&h, "POST", START, NULL, KEYS);
	fake_core_await_held(x->cluster, 1);
	for (begin = skv_now_us(); skv_now_us() < begin + 25000;) {
		a = http_call(x->port, "GET", "/healthz", NULL, NULL);
		answer_free(&a);
	}
	fake_core_release(x->cluster);
	a = http_read(&h, false);
	assert_int_equal(a.status, 200);
	answer_free(&a);
	http_close(&h);
	all = await_lines(fd, 1);
	assert_string_equal(text(json_array_get(all, 0), "message"), "request was slow");
	assert_string_equal(text(json_array_get(all, 0), "level"), "warn");
	assert_true(json_real_value(json_object_get(json_array_get(all, 0), "ms")) >= 20);
	json_decref(all);
	release(fd);
}

/* A stranger's text cannot forge a line. */
static void test_no_forged_lines(void **state)
{
	struct fixture *x = *state;
	int fd = capture(SKV_LOG_DEBUG);
	json_t *all;

	fixture_start(x);
	assert_call_error(x->port, "GET", "/a%0a{\"level\":\"error\"}%22,\"", NULL, NULL, 404,
			  "not_found");
	all = await_lines(fd, 1);
	assert_true(json_array_size(all) >= 1);
	for (size_t i = 0; i < json_array_size(all); i++)
		assert_string_equal(text(json_array_get(all, i), "level"), "debug");
	json_decref(all);
	release(fd);
}

#define T(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_failures),
		T(test_refusals_are_quiet),
		T(test_refusals_on_request),
		T(test_slow_requests),
		T(test_no_forged_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
