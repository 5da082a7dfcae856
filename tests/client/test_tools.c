/* test_tools.c - what the command is made of: sizes and keys, histogram, pattern, traces,
 * generator. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <kvb/mem.h>

#include "args.h"
#include "gen.h"
#include "histogram.h"
#include "pattern.h"
#include "trace.h"

static void sizes_are_taken_whole_or_refused(void **state)
{
	static const char *const bad[] = { "",
					   "K",
					   "1KB",
					   "1k",
					   "-1",
					   "1.5M",
					   " 1",
					   "1 ",
					   "18446744073709551616",
					   "99999999999T",
					   "0x10" };
	char text[24];
	uint64_t v;

	(void)state;
	assert_true(kvb_args_size("4096", &v) && v == 4096);
	assert_true(kvb_args_size("64K", &v) && v == 65536);
	assert_true(kvb_args_size("16T", &v) && v == 16ull << 40);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_false(kvb_args_size(bad[i], &v));
	kvb_args_print_size(1536, text);
	assert_string_equal(text, "1.50 KiB");
	kvb_args_print_size(7, text);
	assert_string_equal(text, "7 B");
}

static void numbers_have_bounds(void **state)
{
	uint64_t v;
	double d;

	(void)state;
	assert_true(kvb_args_number("5", 1, 5, &v) && v == 5);
	assert_false(kvb_args_number("6", 1, 5, &v));
	assert_false(kvb_args_number("+5", 1, 5, &v));
	assert_false(kvb_args_number("5x", 1, 5, &v));
	assert_true(kvb_args_factor("0.5", &d) && d == 0.5);
	assert_false(kvb_args_factor("0", &d));
	assert_false(kvb_args_factor("nan", &d));
	assert_false(kvb_args_factor("-1", &d));
	assert_false(kvb_args_factor("1e999", &d));
}

static void keys_are_parsed_in_their_form(void **state)
{
	static const char *const ints[] = { "1", "18446744073709551615" };
	static const char *const hex[] = { "0123456789abcdef0123456789ABCDEF" };
	static const char *const bad[] = { "12x" };
	struct kvb_args_keys k;
	enum kvblock_key_form form;

	(void)state;
	assert_null(kvb_args_keys_parse(&k, KVBLOCK_KEYS_INT, ints, 2));
	assert_true(k.ints[1] == UINT64_MAX);
	kvb_args_keys_free(&k);
	assert_null(kvb_args_keys_parse(&k, KVBLOCK_KEYS_WIDE, hex, 1));
	assert_true(k.wide[0].hi == 0x0123456789abcdef && k.wide[0].lo == 0x0123456789abcdef);
	kvb_args_keys_free(&k);
	assert_non_null(kvb_args_keys_parse(&k, KVBLOCK_KEYS_INT, bad, 1));
	kvb_args_keys_free(&k);
	assert_non_null(kvb_args_keys_parse(&k, KVBLOCK_KEYS_WIDE, bad, 1));
	kvb_args_keys_free(&k);
	assert_non_null(kvb_args_keys_parse(&k, KVBLOCK_KEYS_STRING, bad, 0));
	kvb_args_keys_free(&k);
	assert_true(kvb_args_key_form("hex", &form) && form == KVBLOCK_KEYS_WIDE);
	assert_false(kvb_args_key_form("base64", &form));
}

static void quantiles_are_close(void **state)
{
	struct kvb_histogram *h = calloc(2, sizeof *h);
	uint64_t q;

	(void)state;
	assert_non_null(h);
	assert_int_equal(kvb_histogram_quantile(&h[0], 0.5), 0);
	for (uint64_t v = 1; v <= 100000; v++)
		kvb_histogram_add(&h[v % 2], v);
	kvb_histogram_merge(&h[0], &h[1]);
	assert_int_equal(h[0].count, 100000);
	assert_int_equal(h[0].max, 100000);
	for (int i = 1; i < 100; i++) {
		q = kvb_histogram_quantile(&h[0], i / 100.0);
		assert_true(q >= (uint64_t)i * 1000 &&
			    q <= (uint64_t)i * 1000 + (uint64_t)i * 1000 / 60 + 2);
	}
	assert_int_equal(kvb_histogram_quantile(&h[0], 1), 100000);
	kvb_histogram_add(&h[0], UINT64_MAX); /* beyond the last bucket: counted there */
	assert_int_equal(h[0].max, UINT64_MAX);
	free(h);
}

static void small_values_are_exact(void **state)
{
	struct kvb_histogram *h = calloc(1, sizeof *h);

	(void)state;
	assert_non_null(h);
	for (uint64_t v = 0; v < 128; v++) {
		memset(h, 0, sizeof *h);
		kvb_histogram_add(h, v);
		kvb_histogram_add(h, UINT32_MAX);
		assert_int_equal(kvb_histogram_quantile(h, 0), v);
	}
	free(h);
}

static void patterns_tell_every_byte(void **state)
{
	uint8_t a[1003], b[1003];
	uint64_t seed = kvb_pattern_seed("m", 0, 7);

	(void)state;
	assert_true(seed != kvb_pattern_seed("m", 1, 7) && seed != kvb_pattern_seed("n", 0, 7) &&
		    seed != kvb_pattern_seed("m", 0, 8));
	for (size_t n = 1; n <= sizeof a; n += 7) {
		kvb_pattern_fill(a, n, seed);
		assert_true(kvb_pattern_check(a, n, seed));
		for (size_t i = 0; i < n; i += 31) {
			memcpy(b, a, n);
			b[i] ^= 0x10;
			assert_false(kvb_pattern_check(b, n, seed));
		}
		b[n - 1] = (uint8_t)~a[n - 1];
		memcpy(b, a, n - 1);
		assert_false(kvb_pattern_check(b, n, seed));
	}
}

/* ---- traces ---------------------------------------------------------------------------------- */

static int read_text(const char *text, size_t limit, struct kvb_trace *t, char *why)
{
	FILE *f = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
	int rc;

	assert_non_null(f);
	rc = kvb_trace_read(f, limit, t, why);
	fclose(f);
	return rc;
}

#define LINE(ids)                                                                                  \
	"{\"timestamp\": 5, \"input_length\": 600, \"output_length\": 7, \"hash_ids\": " ids "}\n"

static void traces_are_read(void **state)
{
	struct kvb_trace t;
	char why[256];

	(void)state;
	assert_int_equal(
		read_text(LINE("[0, 1]") LINE("[]") LINE("[9223372036854775807]"), 0, &t, why), 0);
	assert_int_equal(t.n, 3);
	assert_int_equal(t.v[0].timestamp_ms, 5);
	assert_int_equal(t.v[0].input_length, 600);
	assert_int_equal(t.v[0].output_length, 7);
	assert_int_equal(t.v[0].n_ids, 2);
	assert_int_equal(t.v[0].ids[1], 1);
	assert_int_equal(t.v[1].n_ids, 0);
	assert_true(t.v[2].ids[0] == INT64_MAX);
	kvb_trace_free(&t);
	assert_int_equal(read_text(LINE("[0]") LINE("[1]") "rubbish", 2, &t, why), 0);
	assert_int_equal(t.n, 2);
	kvb_trace_free(&t);
}

static void bad_lines_are_named(void **state)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{ LINE("[0]") "rubbish\n", "line 2" },
		{ LINE("[0]") "\n", "line 2" },
		{ "[1]\n", "not a JSON object" },
		{ LINE("[0, 0]"), "hash_ids holds an id twice" },
		{ LINE("[0, 1, 2, 0]"), "hash_ids holds an id twice" },
		{ LINE("[-1]"), "hash_ids" },
		{ LINE("[1.5]"), "hash_ids" },
		{ LINE("[\"a\"]"), "hash_ids" },
		{ LINE("7"), "hash_ids is missing or not a list" },
		{ LINE("[18446744073709551616]"), "line 1" },
		{ "{\"input_length\": 1, \"output_length\": 1, \"hash_ids\": []}", "timestamp" },
		{ "{\"timestamp\": -1, \"input_length\": 1, \"output_length\": 1, \"hash_ids\": "
		  "[]}",
		  "timestamp" },
		{ "{\"timestamp\": 1, \"input_length\": \"x\", \"output_length\": 1, \"hash_ids\": "
		  "[]}",
		  "input_length" },
		{ "{\"timestamp\": 1, \"input_length\": 1, \"hash_ids\": []}", "output_length" },
		{ "{\"timestamp\": 1, \"timestamp\": 1}", "line 1" },
		{ "{\"timestamp\": 1", "line 1" },
	};
	struct kvb_trace t;
	char why[256];

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		why[0] = '\0';
		assert_int_equal(read_text(bad[i].text, 0, &t, why), -1);
		assert_non_null(strstr(why, bad[i].says));
		assert_int_equal(t.n, 0);
	}
}

static void too_many_ids_are_refused(void **state)
{
	size_t n = KVBLOCK_MAX_KEYS + 1;
	char *text = malloc(n * 8 + 200), *at = text;
	struct kvb_trace t;
	char why[256];

	(void)state;
	assert_non_null(text);
	at += snprintf(at, 200,
		       "{\"timestamp\":0,\"input_length\":0,\"output_length\":0,\"hash_ids\":[0");
	for (size_t i = 1; i < n; i++)
		at += snprintf(at, 9, ",%zu", i);
	snprintf(at, 3, "]}");
	assert_int_equal(read_text(text, 0, &t, why), -1);
	assert_non_null(strstr(why, "16384"));
	free(text);
}

static void traces_survive_lack_of_memory(void **state)
{
	struct kvb_trace t;
	char why[256];
	int rc = -1;

	(void)state;
	for (unsigned long n = 1; n < 50 && rc != 0; n++) {
		kvb_mem_fail_at(n);
		rc = read_text(LINE("[0, 1]") LINE("[2]"), 0, &t, why);
		kvb_mem_fail_at(0);
		assert_true(rc == 0 || strstr(why, "memory"));
	}
	assert_int_equal(rc, 0);
	kvb_trace_free(&t);
}

/* ---- generator ------------------------------------------------------------------------------- */

static char *generate(const struct kvb_gen_options *o, size_t *n)
{
	char *text = NULL;
	FILE *f = open_memstream(&text, n);

	assert_non_null(f);
	assert_int_equal(kvb_gen_write(o, f), 0);
	fclose(f);
	return text;
}

static void generated_traces_are_chained_conversations(void **state)
{
	struct kvb_gen_options o;
	struct kvb_trace t;
	size_t n, refs = 0, repeated = 0;
	char *text, *seen, why[256];

	(void)state;
	kvb_gen_options_init(&o);
	text = generate(&o, &n);
	assert_int_equal(read_text(text, 0, &t, why), 0);
	assert_true(t.n >= o.conversations);
	seen = calloc(1, 1u << 20);
	assert_non_null(seen);
	for (size_t i = 0; i < t.n; i++) {
		const struct kvb_trace_request *r = &t.v[i];
		bool old = true;

		assert_true(i == 0 || r->timestamp_ms >= t.v[i - 1].timestamp_ms);
		assert_int_equal(r->n_ids, (r->input_length + 511) / 512);
		for (uint32_t k = 0; k < r->n_ids; k++) {
			assert_true(r->ids[k] < 1u << 20);
			/* chained: after a new block nothing old follows */
			assert_true(old || !seen[r->ids[k]]);
			old = seen[r->ids[k]];
			repeated += old;
			refs++;
		}
		for (uint32_t k = 0; k < r->n_ids; k++)
			seen[r->ids[k]] = 1;
	}
	assert_true(repeated > refs / 4); /* there is something to hit */
	free(seen);
	kvb_trace_free(&t);
	free(text);
}

static void the_seed_decides(void **state)
{
	struct kvb_gen_options o;
	size_t n1, n2, n3;
	char *one, *two, *three;

	(void)state;
	kvb_gen_options_init(&o);
	o.conversations = 10;
	one = generate(&o, &n1);
	two = generate(&o, &n2);
	o.seed = 2;
	three = generate(&o, &n3);
	assert_string_equal(one, two);
	assert_string_not_equal(one, three);
	free(one);
	free(two);
	free(three);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_are_taken_whole_or_refused),
		cmocka_unit_test(numbers_have_bounds),
		cmocka_unit_test(keys_are_parsed_in_their_form),
		cmocka_unit_test(quantiles_are_close),
		cmocka_unit_test(small_values_are_exact),
		cmocka_unit_test(patterns_tell_every_byte),
		cmocka_unit_test(traces_are_read),
		cmocka_unit_test(bad_lines_are_named),
		cmocka_unit_test(too_many_ids_are_refused),
		cmocka_unit_test(traces_survive_lack_of_memory),
		cmocka_unit_test(generated_traces_are_chained_conversations),
		cmocka_unit_test(the_seed_decides),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
