/* test_trace.c - traces read and written, and the generator. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <skv/limits.h>
#include <skv/mem.h>
#include <skv/trace_gen.h>

/* ---- traces ---------------------------------------------------------------------------------- */

static int read_text(const char *text, size_t limit, struct skv_trace *t, char *why)
{
	FILE *f = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
	int rc;

	assert_non_null(f);
	rc = skv_trace_read(f, limit, t, why);
	fclose(f);
	return rc;
}

#define LINE(ids)                                                                                  \
	"{\"timestamp\": 5, \"input_length\": 600, \"output_length\": 7, \"hash_ids\": " ids "}\n"

static void times_have_fractions_and_ids_64_bits(void **state)
{
	static const char *const times[] = { "12.75", "1e3", "0.0", "-0.0", "9007199254740990.5" };
	static const uint64_t ms[] = { 12, 1000, 0, 0, 9007199254740990 };
	struct skv_trace t;
	char why[256], text[256];

	(void)state;
	for (size_t i = 0; i < sizeof ms / sizeof *ms; i++) {
		snprintf(
			text, sizeof text,
			"{\"timestamp\": %s, \"input_length\": 1, \"output_length\": 1, "
			"\"hash_ids\": [18446744073709551615, 9223372036854775808]}\n",
			times[i]);
		assert_int_equal(read_text(text, 0, &t, why), 0);
		assert_int_equal(t.v[0].timestamp_ms, ms[i]);
		assert_true(t.v[0].ids[0] == UINT64_MAX && t.v[0].ids[1] == 1ull << 63);
		skv_trace_free(&t);
	}
}

static void traces_are_read(void **state)
{
	struct skv_trace t;
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
	skv_trace_free(&t);
	assert_int_equal(read_text(LINE("[0]") LINE("[1]") "rubbish", 2, &t, why), 0);
	assert_int_equal(t.n, 2);
	skv_trace_free(&t);
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
		{ "{\"timestamp\": -0.5, \"input_length\": 1, \"output_length\": 1, "
		  "\"hash_ids\": []}", "timestamp" },
		{ "{\"timestamp\": 1e300, \"input_length\": 1, \"output_length\": 1, "
		  "\"hash_ids\": []}", "timestamp" },
		{ "{\"timestamp\": "
		  "0.0000000000000000000000000000000000000000000000000000000000000000001, "
		  "\"input_length\": 1, "
		  "\"output_length\": 1, \"hash_ids\": []}",
		  "timestamp" },
		{ "{\"timestamp\": 1, \"timestamp\": 1}", "line 1" },
		{ "{\"timestamp\": 1", "line 1" },
	};
	struct skv_trace t;
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
	size_t n = SKV_MAX_KEYS + 1;
	char *text = malloc(n * 8 + 200), *at = text;
	struct skv_trace t;
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
	struct skv_trace t;
	char why[256];
	int rc = -1;

	(void)state;
	for (unsigned long n = 1; n < 50 && rc != 0; n++) {
		skv_mem_fail_at(n);
		rc = read_text(LINE("[0, 1]") LINE("[2]"), 0, &t, why);
		skv_mem_fail_at(0);
		assert_true(rc == 0 || strstr(why, "memory"));
	}
	assert_int_equal(rc, 0);
	skv_trace_free(&t);
}

/* ---- generator ------------------------------------------------------------------------------- */

static char *generate(const struct skv_gen_options *o, size_t *n)
{
	char *text = NULL;
	FILE *f = open_memstream(&text, n);
	struct skv_trace t;

	assert_non_null(f);
	assert_int_equal(skv_gen_make(o, &t), 0);
	assert_int_equal(skv_trace_write(&t, f), 0);
	fclose(f);
	skv_trace_free(&t);
	return text;
}

static void generated_traces_are_chained_conversations(void **state)
{
	struct skv_gen_options o;
	struct skv_trace t;
	size_t n, refs = 0, repeated = 0;
	char *text, *seen, why[256];

	(void)state;
	skv_gen_options_init(&o, SKV_GEN_CHAT);
	text = generate(&o, &n);
	assert_int_equal(read_text(text, 0, &t, why), 0);
	assert_true(t.n >= o.conversations);
	seen = calloc(1, 1u << 20);
	assert_non_null(seen);
	for (size_t i = 0; i < t.n; i++) {
		const struct skv_trace_request *r = &t.v[i];
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
	assert_true(repeated > refs / 4); /* the trace has something to hit */
	free(seen);
	skv_trace_free(&t);
	free(text);
}

static void the_seed_decides(void **state)
{
	struct skv_gen_options o;
	size_t n1, n2, n3;
	char *one, *two, *three;

	(void)state;
	skv_gen_options_init(&o, SKV_GEN_CHAT);
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

/* Each kind serves its purpose: the share of repeated blocks, and the length of requests. */
static void kinds_are_what_they_say(void **state)
{
	static const struct {
		const char *name;
		double least, most; /* part of the references that repeat one before */
		uint32_t longest;   /* some request has so many blocks at least */
	} kinds[] = { { "chat", 0.5, 0.9, 16 },
		      { "agents", 0.8, 0.99, 40 },
		      { "rag", 0.3, 0.9, 12 },
		      { "scan", 0, 0.1, 32 },
		      { "mix", 0.4, 0.95, 40 } };

	(void)state;
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
		struct skv_gen_options o;
		enum skv_gen_kind kind;
		uint64_t refs = 0, again = 0, *seen, *parent, cells = 1u << 20;
		uint32_t longest = 0;
		struct skv_trace t;

		assert_true(skv_gen_kind_parse(kinds[i].name, &kind));
		assert_string_equal(skv_gen_kind_name(kind), kinds[i].name);
		skv_gen_options_init(&o, kind);
		assert_int_equal(skv_gen_make(&o, &t), 0);
		seen = calloc(2 * cells, sizeof *seen);
		assert_non_null(seen);
		parent = seen + cells;
		for (size_t r = 0; r < t.n; r++) {
			uint64_t before = 0;

			longest = t.v[r].n_ids > longest ? t.v[r].n_ids : longest;
			for (uint32_t k = 0; k < t.v[r].n_ids; k++, refs++) {
				uint64_t id = t.v[r].ids[k] + 1,
					 at = id * 0x9e3779b97f4a7c15u >> 44;

				while (seen[at] && seen[at] != id)
					at = (at + 1) % cells;
				again += seen[at] != 0;
				if (!seen[at])
					parent[at] = before;
				seen[at] = id;
				/* an id stands for all before it */
				assert_true(parent[at] == before);
				before = id;
			}
		}
		if (!(again >= kinds[i].least * (double)refs &&
		      again <= kinds[i].most * (double)refs && longest >= kinds[i].longest))
			fail_msg("%s: %f of %d come again, longest %u", kinds[i].name,
				 (double)again / (double)refs, (int)refs, longest);
		free(seen);
		skv_trace_free(&t);
	}
	assert_false(skv_gen_kind_parse("chatter", &(enum skv_gen_kind){ 0 }));
}

static void generating_survives_lack_of_memory(void **state)
{
	struct skv_gen_options o;
	struct skv_trace t;
	int rc = -1;

	(void)state;
	skv_gen_options_init(&o, SKV_GEN_RAG);
	o.conversations = 2;
	for (unsigned long n = 1; n < 200 && rc != 0; n++) {
		skv_mem_fail_at(n);
		rc = skv_gen_make(&o, &t);
		skv_mem_fail_at(0);
		assert_true(rc == 0 || t.n == 0);
	}
	assert_int_equal(rc, 0);
	skv_trace_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(traces_are_read),
		cmocka_unit_test(times_have_fractions_and_ids_64_bits),
		cmocka_unit_test(bad_lines_are_named),
		cmocka_unit_test(too_many_ids_are_refused),
		cmocka_unit_test(traces_survive_lack_of_memory),
		cmocka_unit_test(generated_traces_are_chained_conversations),
		cmocka_unit_test(the_seed_decides),
		cmocka_unit_test(kinds_are_what_they_say),
		cmocka_unit_test(generating_survives_lack_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
