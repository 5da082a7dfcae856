/*
 * test_v1_runs.c - answers in JSON whose locations are runs of neighbours: a plain expansion, as
 * docs/PROTOCOL.md tells it, gives the locations that went in; where runs end; exact bytes; sizes.
 */
#include <jansson.h>

#include <skv/v1_pb.h>

#include "random_answers.h"

static json_t *parse(struct trip *t)
{
	json_error_t e;
	json_t *v = json_loadb(trip_text(t), t->text.len, JSON_REJECT_DUPLICATES, &e);

	if (!v)
		fail_msg("%s at %d: %.*s", e.text, e.position, (int)t->text.len, trip_text(t));
	return v;
}

/* A number, or a decimal string; `otherwise` if there is none. */
static uint64_t number(const json_t *v, const char *name, uint64_t otherwise)
{
	const json_t *n = json_object_get(v, name);

	if (!n)
		return otherwise;
	if (json_is_integer(n))
		return (uint64_t)json_integer_value(n);
	assert_true(json_is_string(n));
	return *json_string_value(n) == '-' ? (uint64_t)strtoll(json_string_value(n), NULL, 10)
					    : strtoull(json_string_value(n), NULL, 10);
}

static uint64_t element(const json_t *list, size_t i)
{
	assert_true(i < json_array_size(list));
	return (uint64_t)json_integer_value(json_array_get(list, i));
}

struct column {
	const json_t *v, *runs, *generations, *checksums;
};

static struct column column_of(const json_t *v)
{
	struct column c = { v, json_object_get(v, "runs"), json_object_get(v, "generations"),
			    json_object_get(v, "checksums") };

	assert_true(json_is_array(c.runs) && json_is_array(c.generations));
	return c;
}

/* Writes the locations of a column into out[rows], in order of the located rows. */
static uint32_t expand_runs(const struct column *c, struct skv_location *out)
{
	uint32_t n = 0;

	for (size_t i = 0; i < json_array_size(c->runs); i++) {
		const json_t *run = json_array_get(c->runs, i);
		uint64_t length = number(run, "length", number(c->v, "length", 0));
		uint64_t more = number(run, "more", 0), stride = number(run, "stride", length);

		for (uint64_t k = 0; k <= more; k++, n++) {
			out[n] = (struct skv_location){ .file = (uint32_t)number(run, "file", 0) };
			out[n].offset = number(run, "offset", 0) + k * stride;
			out[n].length = json_is_true(json_object_get(run, "absent")) ? 0 : length;
			out[n].has_checksum = out[n].length && c->checksums &&
					      !json_object_get(run, "unsummed");
		}
	}
	return n;
}

static void expand_generations(const struct column *c, struct skv_location *out, uint32_t n)
{
	uint32_t at = 0;

	for (size_t i = 0; i < json_array_size(c->generations); i++) {
		const json_t *s = json_array_get(c->generations, i);

		for (uint64_t k = 0; k <= number(s, "more", 0); k++, at++) {
			while (at < n && out[at].length == 0)
				at++;
			assert_true(at < n);
			out[at].generation = number(s, "first", 0) + k * number(s, "step", 0);
		}
	}
	while (at < n && out[at].length == 0)
		at++;
	assert_int_equal(at, n);
}

static void expand_checksums(const struct column *c, struct skv_location *out, uint32_t n)
{
	size_t sum = 0;

	for (uint32_t i = 0; i < n; i++)
		if (out[i].has_checksum)
			out[i].checksum = strtoull(
				json_string_value(json_array_get(c->checksums, sum++)), NULL, 16);
	assert_int_equal(sum, json_array_size(c->checksums));
}

static void same_columns(struct trip *t, const json_t *list, const struct skv_location *loc,
			 uint32_t n_specs, const uint8_t *mark, uint8_t located, uint32_t n_rows)
{
	struct skv_location *out = made(t, n_rows + 1, sizeof *out);

	for (uint32_t s = 0; s < json_array_size(list); s++) {
		struct column c = column_of(json_array_get(list, s));
		uint32_t n = expand_runs(&c, out), at = 0;

		expand_generations(&c, out, n);
		expand_checksums(&c, out, n);
		for (uint32_t r = 0; r < n_rows; r++) {
			const struct skv_location *l = &loc[(size_t)r * n_specs + s];

			if (mark[r] != located)
				continue;
			assert_true(at < n);
			same(l->length, out[at].length);
			if (l->length) {
				same(l->file, out[at].file);
				same(l->offset, out[at].offset);
				same(l->generation, out[at].generation);
				same(l->has_checksum, out[at].has_checksum);
				same(l->has_checksum ? l->checksum : 0, out[at].checksum);
			}
			at++;
		}
		assert_int_equal(at, n);
	}
}

static void random_lookups(void **state)
{
	(void)state;
	for (uint64_t round = 0; round < ROUNDS; round++) {
		struct skv_lookup_res r;
		const json_t *runs, *copies;
		struct trip t;
		uint32_t at = 0;
		json_t *v;

		trip_begin(&t, round);
		r = any_lookup(&t, (int)(round % 4));
		r.runs = true;
		skv_v1_write_lookup_res(&t.text, &r);
		v = parse(&t);
		assert_null(json_object_get(v, "blocks"));
		same(number(v, "matched", 0), r.matched);
		assert_int_equal(json_array_size(json_object_get(v, "files")), r.files.n);
		runs = json_object_get(v, "hit_runs");
		for (size_t i = 0; i < json_array_size(runs); i++)
			for (uint64_t k = 0; k < element(runs, i); k++)
				assert_int_equal(r.hit[at++], i % 2);
		while (at < r.n_keys)
			assert_false(r.hit[at++]);
		assert_int_equal(json_array_size(json_object_get(v, "columns")),
				 r.matched ? r.n_specs : 0);
		same_columns(&t, json_object_get(v, "columns"), r.loc, r.n_specs,
			     (const uint8_t *)r.hit, true, r.n_keys);
		copies = json_object_get(v, "copies");
		assert_int_equal(copies != NULL, r.copy != NULL);
		assert_int_equal(json_array_size(copies), r.copy && r.matched ? r.n_specs : 0);
		same_columns(&t, copies, r.copy, r.n_specs, (const uint8_t *)r.hit, true, r.n_keys);
		json_decref(v);
		trip_end(&t);
	}
}

static void random_starts(void **state)
{
	(void)state;
	for (uint64_t round = 0; round < ROUNDS; round++) {
		struct skv_start_res r;
		const json_t *runs;
		bool open;
		struct trip t;
		uint32_t at = 0;
		json_t *v;

		trip_begin(&t, round);
		r = any_start(&t);
		r.runs = true;
		open = r.state == SKV_SESSION_OPEN;
		skv_v1_write_start_res(&t.text, &r);
		v = parse(&t);
		assert_null(json_object_get(v, "blocks"));
		same(number(v, "n_write", 0), r.n_write);
		runs = json_object_get(v, "outcome_runs");
		assert_int_equal(open, runs != NULL);
		for (size_t i = 0; i < json_array_size(runs); i++)
			for (uint64_t k = 0; k < element(runs, i) / 4; k++)
				assert_int_equal(r.outcome[at++], element(runs, i) % 4);
		assert_int_equal(at, open ? r.n_keys : 0);
		assert_int_equal(json_array_size(json_object_get(v, "columns")),
				 open && r.n_write ? r.n_specs : 0);
		same_columns(&t, json_object_get(v, "columns"), r.loc, r.n_specs, r.outcome,
			     SKV_START_WRITE, r.n_keys);
		json_decref(v);
		trip_end(&t);
	}
}

/* ---- where runs end -------------------------------------------------------------------------- */

enum { N = 512 };

static struct skv_lookup_res neighbours(struct trip *t)
{
	static const char *const specs[] = { "kv" };
	struct skv_lookup_res r = { .n_keys = N, .matched = N, .n_specs = 1, .specs = specs,
				    .lease_ms = 10000, .files = any_files(t, 2), .runs = true };

	r.hit = made(t, N, sizeof *r.hit);
	r.loc = made(t, N, sizeof *r.loc);
	for (uint32_t i = 0; i < N; i++) {
		r.hit[i] = true;
		r.loc[i] = (struct skv_location){ .offset = (64 << 20) + 1310720 * (uint64_t)i,
						  .length = 1310720, .generation = 123456 + i,
						  .has_checksum = true, .checksum = rnd(t) };
	}
	return r;
}

/* Sizes of the column's lists. */
static void expect_lists(struct trip *t, const struct skv_lookup_res *r, size_t runs,
			 size_t generations, size_t checksums)
{
	struct column c;
	json_t *v;

	skv_buf_clear(&t->text);
	skv_v1_write_lookup_res(&t->text, r);
	v = parse(t);
	c = column_of(json_array_get(json_object_get(v, "columns"), 0));
	assert_int_equal(json_array_size(c.runs), runs);
	assert_int_equal(json_array_size(c.generations), generations);
	assert_int_equal(json_array_size(c.checksums), checksums);
	same_columns(t, json_object_get(v, "columns"), r->loc, 1, (const uint8_t *)r->hit, true,
		     r->n_keys);
	json_decref(v);
}

/* A location in the middle differs in one field; locations on either side stay in one run. */
static void a_run_ends_where_a_field_differs(void **state)
{
	struct skv_lookup_res r;
	struct skv_location *odd, was;
	struct trip t;

	(void)state;
	trip_begin(&t, 1);
	r = neighbours(&t);
	odd = &r.loc[N / 2];
	was = *odd;
	expect_lists(&t, &r, 1, 1, N);
	odd->file = 1;
	expect_lists(&t, &r, 3, 1, N);
	*odd = was;
	odd->offset += 1;
	expect_lists(&t, &r, 3, 1, N);
	*odd = was;
	odd->length -= 1;
	expect_lists(&t, &r, 3, 1, N);
	*odd = was;
	odd->generation = 7;
	expect_lists(&t, &r, 1, 3, N);
	*odd = was;
	odd->has_checksum = false;
	expect_lists(&t, &r, 3, 1, N - 1);
	*odd = (struct skv_location){ 0 };
	expect_lists(&t, &r, 3, 2, N - 1);
	*odd = was;
	r.hit[N / 2] = false; /* not located: its neighbours are two runs, as it lies between */
	expect_lists(&t, &r, 2, 2, N - 1);
	r.hit[N / 2] = true;
	for (uint32_t i = 0; i < N; i++) { /* slots with something between, from the last on */
		r.loc[i].offset = (N - i) * (uint64_t)(2 << 20);
		r.loc[i].has_checksum = false;
		r.loc[i].generation = UINT64_MAX - i;
	}
	expect_lists(&t, &r, 1, 1, 0);
	trip_end(&t);
}

/* ---- exact bytes, and how many --------------------------------------------------------------- */

static void exact_bytes(void **state)
{
	static const char *const specs[] = { "tp0", "tp1" };
	static bool hit[] = { false, true, true, true, false };
	static const char expected[] =
		"{\"n_keys\":5,\"matched\":3,\"lease_ms\":10000,\"specs\":[\"tp0\",\"tp1\"],"
		"\"files\":[],\"hit_runs\":[1,3],\"columns\":[{\"length\":4096,\"runs\":["
		"{\"offset\":8192,\"unsummed\":true},{},{\"file\":1,\"offset\":1}],"
		"\"generations\":[{\"first\":\"18446744073709551615\",\"step\":\"1\",\"more\":1},"
		"{\"first\":\"7\"}],\"checksums\":[\"0123456789abcdef\",\"0000000000000000\"]},"
		"{\"length\":512,\"runs\":[{\"more\":1,\"absent\":true},{}],"
		"\"generations\":[{\"first\":\"1\"}]}]}";
	struct skv_location loc[10] = {
		[2] = { .offset = 8192, .length = 4096, .generation = UINT64_MAX },
		[4] = { .length = 4096, .has_checksum = true, .checksum = 0x123456789abcdef },
		[6] = { .file = 1, .offset = 1, .length = 4096, .generation = 7,
			.has_checksum = true },
		[7] = { .length = 512, .generation = 1 },
	};
	const struct skv_lookup_res r = { .n_keys = 5, .matched = 3, .n_specs = 2, .specs = specs,
					  .lease_ms = 10000, .hit = hit, .loc = loc,
					  .runs = true };
	struct trip t;

	(void)state;
	trip_begin(&t, 1);
	skv_v1_write_lookup_res(&t.text, &r);
	skv_put_u8(&t.text, 0);
	assert_string_equal(trip_text(&t), expected);
	trip_end(&t);
}

static size_t bytes_of(struct trip *t, struct skv_lookup_res *r, bool runs)
{
	r->runs = runs;
	skv_buf_clear(&t->text);
	skv_v1_write_lookup_res(&t->text, r);
	return t->text.len;
}

/* In runs at most 0.35 of the bytes of single blocks; where no two are neighbours not more. */
static void fewer_bytes(void **state)
{
	struct skv_lookup_res r;
	struct trip t;

	(void)state;
	trip_begin(&t, 1);
	r = neighbours(&t);
	assert_true(bytes_of(&t, &r, true) * 100 <= bytes_of(&t, &r, false) * 35);
	for (uint32_t i = 0; i < N; i++) {
		r.loc[i].offset = i * 7919ull % 16384 * 1310720 * (i % 2 + 1);
		r.loc[i].generation += rnd(&t) >> 40;
	}
	assert_true(bytes_of(&t, &r, true) <= bytes_of(&t, &r, false));
	trip_end(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_lookups),
		cmocka_unit_test(random_starts),
		cmocka_unit_test(a_run_ends_where_a_field_differs),
		cmocka_unit_test(exact_bytes),
		cmocka_unit_test(fewer_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
