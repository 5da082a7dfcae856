/*
 * test_v1_pb.c - the protobuf codec against the JSON codec: every message of messages.h, and random
 * ones, comes out of protobuf as it went in, by the text that JSON makes of it.
 */
#include "messages.h"
#include "pb_messages.h"
#include "random_answers.h"

/* ---- samples: JSON -> struct -> protobuf -> struct -> JSON ----------------------------------- */

static void samples_pass_through(void **state)
{
	(void)state;
	assert_int_equal(n_pb_messages, n_messages);
	for (size_t i = 0; i < n_pb_messages; i++) {
		const struct message *m = message_find(pb_messages[i].name);
		size_t n = strlen(m->sample);
		struct skv_buf json = { 0 }, expected = { 0 };
		struct trip t;
		int rc;

		trip_begin(&t, 1);
		t.in.secret = &test_secret;
		m->echo(&t.in, m->sample, n, &expected, &t.err);
		rc = pb_messages[i].convert(&t.in, m->sample, n, &t.text, &json, &t.err);
		if (rc != SKV_OK)
			fail_msg("%s: %s at '%s'", m->name, t.err.message, t.err.field);
		assert_int_equal(json.len, expected.len);
		assert_memory_equal(json.data, expected.data, json.len);
		skv_buf_destroy(&json);
		skv_buf_destroy(&expected);
		trip_end(&t);
	}
}

/* ---- random answers -------------------------------------------------------------------------- */

/* Both texts that JSON makes must be one. */
#define SAME_TEXT(t, message, a, b)                                  \
	do {                                                         \
		struct skv_buf one_ = { 0 }, two_ = { 0 };           \
                                                                     \
		skv_v1_json.write_##message(&one_, a);               \
		skv_v1_json.write_##message(&two_, b);               \
		assert_int_equal(one_.len, two_.len);                \
		assert_memory_equal(one_.data, two_.data, one_.len); \
		skv_buf_destroy(&one_);                              \
		skv_buf_destroy(&two_);                              \
	} while (0)

static void random_lookups(void **state)
{
	(void)state;
	for (uint64_t round = 0; round < 2 * ROUNDS; round++) {
		struct skv_lookup_res r, got;
		struct trip t;

		trip_begin(&t, round);
		r = any_lookup(&t, (int)(round % 4));
		skv_v1_pb.write_lookup_res(&t.text, &r);
		read_back(&t, skv_v1_pb.read_lookup_res, &got);
		SAME_TEXT(&t, lookup_res, &r, &got);
		trip_end(&t);
	}
}

static void random_starts(void **state)
{
	(void)state;
	for (uint64_t round = 0; round < 2 * ROUNDS; round++) {
		struct skv_start_res r, got;
		struct trip t;

		trip_begin(&t, round);
		r = any_start(&t);
		skv_v1_pb.write_start_res(&t.text, &r);
		read_back(&t, skv_v1_pb.read_start_res, &got);
		SAME_TEXT(&t, start_res, &r, &got);
		trip_end(&t);
	}
}

/* ---- random requests: what JSON reads is what protobuf reads --------------------------------- */

static void same_keys(const struct skv_key *a, uint32_t na, const struct skv_key *b, uint32_t nb)
{
	assert_int_equal(na, nb);
	assert_memory_equal(a, b, na * sizeof *a);
}

/* Writes with both codecs and reads both back. */
#define READ_BOTH(t, message, write_args, from_json, from_pb)        \
	do {                                                         \
		skv_v1_json.write_##message write_args;              \
		read_back(t, skv_v1_json.read_##message, from_json); \
		skv_buf_clear(&(t)->text);                           \
		skv_v1_pb.write_##message write_args;                \
		read_back(t, skv_v1_pb.read_##message, from_pb);     \
	} while (0)

static void random_lookup_requests(void **state)
{
	(void)state;
	for (uint64_t round = 0; round < ROUNDS; round++) {
		struct skv_lookup_req r = { .n_keys = 0 }, json, pb;
		struct skv_key_input keys;
		struct trip t;

		trip_begin(&t, round);
		r.mode = (enum skv_lookup_mode)below(&t, SKV_LOOKUP_TRAILING + 1);
		r.partial = below(&t, 2);
		r.window = below(&t, SKV_MAX_KEYS + 1);
		r.n_specs = below(&t, 3) ? 0 : any_count(&t, SKV_MAX_SPECS) % SKV_MAX_SPECS;
		r.specs = any_names(&t, r.n_specs);
		r.lease_ms = any32(&t);
		keys = any_keys(&t, round % 3, any_count(&t, SKV_MAX_KEYS));
		READ_BOTH(&t, lookup_req, (&t.text, &r, &keys), &json, &pb);
		same_keys(json.keys, json.n_keys, pb.keys, pb.n_keys);
		same_names(json.specs, json.n_specs, pb.specs, pb.n_specs);
		same(json.mode, pb.mode);
		same(json.partial, pb.partial);
		same(json.window, pb.window);
		same(json.lease_ms, pb.lease_ms);
		assert_string_equal(json.tenant, pb.tenant);
		trip_end(&t);
	}
}

static void random_start_requests(void **state)
{
	(void)state;
	for (uint64_t round = 0; round < ROUNDS; round++) {
		struct skv_start_req r = { .n_keys = 0 }, json, pb;
		struct skv_key_input keys, parent;
		struct trip t;

		trip_begin(&t, round);
		r.request_id = below(&t, 2) ? "" : any_text(&t, SKV_MAX_REQUEST_ID);
		r.n_specs = below(&t, 3) ? 0 : 1 + below(&t, SKV_MAX_SPECS);
		r.specs = any_names(&t, r.n_specs);
		r.deadline_ms = any32(&t);
		r.independent = below(&t, 2);
		r.selective = below(&t, 2);
		keys = any_keys(&t, round % 3, any_count(&t, SKV_MAX_KEYS));
		parent = any_keys(&t, round % 3, 1);
		keys.parent = below(&t, 2) ? &parent : NULL;
		READ_BOTH(&t, start_req, (&t.text, &r, &keys), &json, &pb);
		same_keys(json.keys, json.n_keys, pb.keys, pb.n_keys);
		same_names(json.specs, json.n_specs, pb.specs, pb.n_specs);
		same(json.deadline_ms, pb.deadline_ms);
		same(json.independent, pb.independent);
		same(r.independent, pb.independent);
		same(r.selective, pb.selective);
		assert_string_equal(json.request_id, pb.request_id);
		trip_end(&t);
	}
}

/* Texts are looked at by the word and hashed by the bunch: an odd byte is seen wherever it is, and
 * each key is that of its text alone. */
static void odd_bytes_in_texts(void **state)
{
	enum { MANY = 9, LONGEST = 40 };
	static const char odd[] = { 'x', 1, 0x7f, 0, (char)0x80, (char)0xff };
	char text[MANY][LONGEST];

	(void)state;
	for (size_t n = 1; n <= LONGEST; n++) {
		for (size_t at = 0; at < n * sizeof odd; at++) {
			struct skv_match_req r;
			struct trip t;
			int rc;

			trip_begin(&t, 1);
			skv_put_bytes(&t.text, "\x22\x01i", 3); /* instances */
			for (int i = 0; i < MANY; i++) {
				memset(text[i], 'a' + i, n);
				if (i == MANY / 2)
					text[i][at / sizeof odd] = odd[at % sizeof odd];
				skv_put_u8(&t.text, 0x1a); /* keys */
				skv_put_u8(&t.text, (uint8_t)n);
				skv_put_bytes(&t.text, text[i], n);
			}
			rc = skv_v1_pb.read_match_req(&t.in, (char *)t.text.data, t.text.len, &r,
						      &t.err);
			assert_int_equal(rc, at % sizeof odd < 3 ? SKV_OK : SKV_E_INVALID);
			for (uint32_t i = 0; rc == SKV_OK && i < MANY; i++)
				assert_true(skv_key_equal(
					r.keys[i], skv_key_from_string(&t.secret, text[i], n)));
			if (rc != SKV_OK)
				assert_string_equal(t.err.field, "keys[4]");
			trip_end(&t);
		}
	}
}

static void parents_come_through(void **state)
{
	(void)state;
	for (uint64_t round = 0; round < 60; round++) {
		struct skv_start_req r = { .request_id = "" }, json, pb;
		struct skv_key_input keys, parent;
		struct trip t;

		trip_begin(&t, round);
		keys = any_keys(&t, round % 3, 2);
		parent = any_keys(&t, round % 3, 1);
		keys.parent = &parent;
		READ_BOTH(&t, start_req, (&t.text, &r, &keys), &json, &pb);
		assert_true(json.has_parent && pb.has_parent);
		assert_true(skv_key_equal(json.parent, pb.parent));
		trip_end(&t);
	}
}

static void random_finish_requests(void **state)
{
	(void)state;
	for (uint64_t round = 0; round < ROUNDS; round++) {
		struct skv_finish_req r = { .session = NULL }, got;
		uint64_t *sums;
		bool *mask;
		struct trip t;

		trip_begin(&t, round);
		r.mask_kind = (enum skv_mask_kind)(round % 3);
		r.mask_count = r.mask_kind == SKV_MASK_ALL ? 0
			       : below(&t, 30)             ? below(&t, 9)
							   : SKV_MAX_KEYS;
		r.mask = mask = made(&t, SKV_MAX_KEYS, sizeof *mask);
		for (uint32_t i = 0; i < r.mask_count; i++)
			mask[i] = below(&t, 2);
		r.n_checksums = below(&t, 100) ? below(&t, 9) : SKV_MAX_KEYS * SKV_MAX_SPECS;
		r.checksums = sums = made(&t, (size_t)r.n_checksums + 1, sizeof *sums);
		for (uint32_t i = 0; i < r.n_checksums; i++)
			sums[i] = any64(&t);
		r.quiesced = below(&t, 2);
		skv_v1_pb.write_finish_req(&t.text, &r);
		read_back(&t, skv_v1_pb.read_finish_req, &got);
		SAME_TEXT(&t, finish_req, &r, &got);
		trip_end(&t);
	}
}

/* ---- codecs by name and type ----------------------------------------------------------------- */

static void codecs_are_found(void **state)
{
	(void)state;
	assert_ptr_equal(skv_v1_codec_of_type(NULL), &skv_v1_json);
	assert_ptr_equal(skv_v1_codec_of_type("application/json"), &skv_v1_json);
	assert_ptr_equal(skv_v1_codec_of_type("Application/JSON; charset=utf-8"), &skv_v1_json);
	assert_ptr_equal(skv_v1_codec_of_type("application/x-www-form-urlencoded"), &skv_v1_json);
	assert_ptr_equal(skv_v1_codec_of_type("application/x-protobuf"), &skv_v1_pb);
	assert_ptr_equal(skv_v1_codec_of_type("application/protobuf;x=y"), &skv_v1_pb);
	assert_null(skv_v1_codec_of_type("text/html"));
	assert_null(skv_v1_codec_of_type("application/jsonx"));
	assert_null(skv_v1_codec_of_accept(NULL));
	assert_null(skv_v1_codec_of_accept("*/*"));
	assert_null(skv_v1_codec_of_accept(",;,"));
	assert_ptr_equal(skv_v1_codec_of_accept("text/html, application/x-protobuf;q=0.9"),
			 &skv_v1_pb);
	assert_ptr_equal(skv_v1_codec_of_accept("application/json,application/x-protobuf"),
			 &skv_v1_json);
	assert_ptr_equal(skv_v1_codec_named("protobuf"), &skv_v1_pb);
	assert_ptr_equal(skv_v1_codec_named("json"), &skv_v1_json);
	assert_null(skv_v1_codec_named("xml"));
}

static void no_memory_is_an_error_answer(void **state)
{
	const struct skv_v1_codec *const codecs[] = { &skv_v1_json, &skv_v1_pb };
	struct trip t;

	(void)state;
	trip_begin(&t, 1);
	for (int i = 0; i < 2; i++)
		assert_int_equal(codecs[i]->read_error(&t.in, codecs[i]->no_memory,
						       strlen(codecs[i]->no_memory), &t.err),
				 SKV_E_NOMEM);
	trip_end(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_pass_through),	  cmocka_unit_test(random_lookups),
		cmocka_unit_test(random_starts),	  cmocka_unit_test(random_lookup_requests),
		cmocka_unit_test(random_start_requests),  cmocka_unit_test(parents_come_through),
		cmocka_unit_test(random_finish_requests), cmocka_unit_test(codecs_are_found),
		cmocka_unit_test(no_memory_is_an_error_answer),
		cmocka_unit_test(odd_bytes_in_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
