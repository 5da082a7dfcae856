/* test_http_metrics.c - /metrics is valid Prometheus text and counts what happened. */
#include <ctype.h>
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
#include <skv/metrics.h>

/* ---- a small checker of the text format 0.0.4 ------------------------------------------------ */

struct checker {
	char family[128]; /* of the last TYPE line */
	char type[16];
	char *seen; /* "\nname\n" of each family */
	char labels[256]; /* of the running histogram, without le */
	double last_le;
	uint64_t last_bucket;
	bool in_buckets;
};

static bool is_name(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)s[i]) && s[i] != '_' && s[i] != ':')
			return false;
	return n > 0 && !isdigit((unsigned char)s[0]);
}

static void check_type(struct checker *c, const char *line)
{
	char needle[160];
	size_t len = strlen(c->seen);

	assert_false(c->in_buckets); /* a histogram ended with its count */
	assert_int_equal(sscanf(line, "# TYPE %127s %15s", c->family, c->type), 2);
	assert_true(is_name(c->family, strlen(c->family)));
	assert_true(!strcmp(c->type, "counter") || !strcmp(c->type, "gauge") ||
		    !strcmp(c->type, "histogram"));
	snprintf(needle, sizeof needle, "\n%s\n", c->family);
	if (strstr(c->seen, needle))
		fail_msg("%s comes twice", c->family);
	c->seen = realloc(c->seen, len + strlen(needle) + 1);
	memcpy(c->seen + len, needle, strlen(needle) + 1);
	if (strcmp(c->type, "counter") == 0)
		assert_string_equal(c->family + strlen(c->family) - 6, "_total");
}

static void check_bucket(struct checker *c, const char *line, uint64_t value)
{
	const char *le = strstr(line, ",le=\"");
	double bound;
	char labels[256];

	assert_non_null(le);
	snprintf(labels, sizeof labels, "%.*s", (int)(le - strchr(line, '{') - 1),
		 strchr(line, '{') + 1);
	bound = strncmp(le + 5, "+Inf", 4) == 0 ? 1e300 : strtod(le + 5, NULL);
	if (c->in_buckets) {
		assert_string_equal(labels, c->labels);
		assert_true(bound > c->last_le);
		assert_true(value >= c->last_bucket);
	}
	c->in_buckets = true;
	snprintf(c->labels, sizeof c->labels, "%s", labels);
	c->last_le = bound;
	c->last_bucket = value;
}

static void check_sample(struct checker *c, const char *line)
{
	size_t n = strcspn(line, "{ ");
	const char *suffix = line + strlen(c->family);
	const char *value = strrchr(line, ' ');
	char *end;

	if (strncmp(line, c->family, strlen(c->family)) != 0 || !is_name(line, n))
		fail_msg("'%s' does not follow its TYPE line (%s)", line, c->family);
	assert_non_null(value);
	strtod(value + 1, &end);
	if (end == value + 1 || *end)
		fail_msg("no number: %s", line);
	if (line[n] == '{')
		assert_true(value[-1] == '}');
	if (strcmp(c->type, "histogram") != 0) {
		assert_true(*suffix == '{' || *suffix == ' ');
		return;
	}
	if (strncmp(suffix, "_bucket{", 8) == 0) {
		check_bucket(c, line, strtoull(value + 1, NULL, 10));
	} else if (strncmp(suffix, "_count{", 7) == 0) {
		assert_true(c->last_le == 1e300);
		assert_true(strtoull(value + 1, NULL, 10) == c->last_bucket);
		c->in_buckets = false;
	} else {
		assert_true(strncmp(suffix, "_sum{", 5) == 0);
	}
}

static void check_text(const char *text)
{
	struct checker c = { .seen = calloc(1, 1) };
	char *copy = strdup(text), *rest = NULL;
	char help[128] = "";

	assert_int_equal(text[strlen(text) - 1], '\n');
	for (char *line = strtok_r(copy, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		if (strncmp(line, "# HELP ", 7) == 0) {
			assert_int_equal(sscanf(line, "# HELP %127s", help), 1);
			assert_non_null(strchr(line + 7, ' '));
		} else if (strncmp(line, "# TYPE ", 7) == 0) {
			check_type(&c, line);
			assert_string_equal(c.family, help);
		} else {
			check_sample(&c, line);
		}
	}
	assert_false(c.in_buckets);
	free(c.seen);
	free(copy);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static char *scrape(struct fixture *x)
{
	struct answer a = http_call(x->port, "GET", "/metrics", NULL, NULL);
	char *text;

	assert_int_equal(a.status, 200);
	assert_string_equal(answer_header(&a, "Content-Type"),
			    "text/plain; version=0.0.4; charset=utf-8");
	text = strdup(a.body);
	answer_free(&a);
	return text;
}

static uint64_t value(const char *text, const char *name)
{
	char line[200];
	const char *at;

	snprintf(line, sizeof line, "\n%s ", name);
	at = strstr(text, line);
	if (!at)
		fail_msg("there is no %s", name);
	return strtoull(at + strlen(line), NULL, 10);
}

static void test_text_is_valid(void **state)
{
	struct fixture *x = *state;
	char *text;

	fixture_start(x);
	text = scrape(x);
	check_text(text);
	assert_int_equal(value(text, "slabkv_lookup_keys_total"), 42);
	assert_int_equal(value(text, "slabkv_blocks"), 11);
	assert_int_equal(value(text, "slabkv_storage_healthy{storage=\"default\"}"), 1);
	assert_int_equal(value(text, "slabkv_state{state=\"ready\"}"), 1);
	assert_int_equal(value(text, "slabkv_state{state=\"standby\"}"), 0);
	assert_int_equal(value(text, "slabkv_http_in_flight"), 1);
	free(text);
	/* A standby has no statistics, but is scraped like any other. */
	fake_core_state(x->cluster, SKV_CORE_STANDBY);
	text = scrape(x);
	check_text(text);
	assert_null(strstr(text, "slabkv_blocks "));
	assert_int_equal(value(text, "slabkv_state{state=\"standby\"}"), 1);
	free(text);
}

static void test_requests_are_counted(void **state)
{
	struct fixture *x = *state;
	char *text;

	fixture_start(x);
	for (int i = 0; i < 7; i++) {
		struct answer a = http_call(x->port, "POST", "/v1/instances/m/lookup", NULL,
					    "{\"keys_int\":[1]}");

		assert_int_equal(a.status, 200);
		answer_free(&a);
	}
	for (int i = 0; i < 3; i++)
		assert_call_error(x->port, "POST", "/v1/instances/m/lookup", NULL, "{}", 400,
				  "invalid_argument");
	assert_call_error(x->port, "GET", "/nowhere", NULL, NULL, 404, "not_found");
	fake_core_fail(x->cluster, SKV_E_STORE_IO, "x");
	assert_call_error(x->port, "POST", "/v1/instances/m/start", NULL, "{\"keys_int\":[1]}", 503,
			  "store_io");
	text = scrape(x);
	assert_int_equal(
		value(text, "slabkv_http_requests_total{op=\"lookup\",api=\"v1\",status=\"2xx\"}"),
		7);
	assert_int_equal(
		value(text, "slabkv_http_requests_total{op=\"lookup\",api=\"v1\",status=\"4xx\"}"),
		3);
	assert_int_equal(
		value(text, "slabkv_http_requests_total{op=\"none\",api=\"\",status=\"4xx\"}"), 1);
	assert_int_equal(
		value(text, "slabkv_http_requests_total{op=\"start\",api=\"v1\",status=\"5xx\"}"),
		1);
	assert_int_equal(value(text, "slabkv_http_request_seconds_count{op=\"lookup\",api=\"v1\"}"),
			 10);
	assert_int_equal(value(text, "slabkv_http_request_bytes_total"), 16 * 7 + 2 * 3 + 16);
	assert_int_equal(value(text, "slabkv_http_connections_total"), 13);
	free(text);
}

static void test_store_counters(void **state)
{
	struct fixture *x = *state;
	char *text;

	fixture_start(x);
	text = scrape(x);
	check_text(text);
	assert_int_equal(value(text, "slabkv_store_appends_total"), 3);
	assert_non_null(strstr(text, "\nslabkv_store_append_max_seconds 0.000050\n"));
	free(text);
}

static void test_buckets(void **state)
{
	static const struct {
		uint64_t us;
		const char *le;
	} cases[] = { { 0, "0.00005" },  { 50, "0.00005" },	  { 51, "0.0001" },
		      { 1000, "0.001" }, { 10000000, "10" }, { 10000001, "+Inf" } };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct metrics *m = aligned_alloc(64, sizeof *m);
		struct metric_request r = { WIRE_HTTP, 0, 200, false, cases[i].us };
		const struct skv_api *api = &skv_v1_api;
		struct skv_buf out = { 0 };
		char needle[128], *first;

		memset(m, 0, sizeof *m);
		assert_int_equal(skv_metrics_init(m, 1 + SKV_OP_COUNT, NULL), SKV_OK);
		skv_v1_api.first_op = 1;
		r.op = 1 + SKV_OP_match;
		skv_metrics_request(m, &r);
		skv_metrics_write(m, &api, 1, &out);
		skv_put_u8(&out, 0);
		assert_false(out.failed);
		check_text((char *)out.data);
		/* The first bucket that has it. */
		first = strstr((char *)out.data, "_bucket{op=\"match\",api=\"v1\"");
		while (first && strncmp(strchr(first, '}'), "} 1\n", 4) != 0)
			first = strstr(first + 1, "_bucket{op=\"match\",api=\"v1\"");
		snprintf(needle, sizeof needle, "_bucket{op=\"match\",api=\"v1\",le=\"%s\"} 1\n",
			 cases[i].le);
		assert_non_null(first);
		assert_memory_equal(first, needle, strlen(needle));
		skv_buf_destroy(&out);
		skv_metrics_destroy(m);
		free(m);
	}
}

#define T(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_text_is_valid),
		T(test_requests_are_counted),
		T(test_store_counters),
		cmocka_unit_test(test_buckets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
