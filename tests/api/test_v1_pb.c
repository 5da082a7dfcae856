/*
 * test_v1_pb.c - the protobuf codec against the JSON codec: what JSON reads of a request protobuf
 * reads, and what protobuf reads of an answer is what JSON writes; samples and random ones.
 */
#include "json_requests.h"
#include "messages.h"
#include "pb_messages.h"
#include "random_answers.h"

#include <skv/v1_codec.h>

/* ---- samples --------------------------------------------------------------------------------- */

static void samples_pass_through(void **state)
{
	(void)state;
	assert_int_equal(n_pb_messages, n_messages);
	for (size_t i = 0; i < n_pb_messages; i++) {
		const struct message *m = message_find(pb_messages[i].name);
		struct skv_buf pb = { 0 }, again = { 0 };
		struct trip t;

		trip_begin(&t, 1);
		t.in.secret = &test_secret;
		pb_sample(&pb_messages[i], &pb);
		pb_messages[i].echo(&t.in, (char *)pb.data, pb.len, &again, &t.err);
		if (again.len != pb.len || memcmp(again.data, pb.data, pb.len) != 0)
			fail_msg("%s: %s at '%s'", m->name, t.err.message, t.err.field);
		if (m->written) {
			m->echo(&t.in, m->sample, m->n_sample, &t.text, &t.err);
			assert_int_equal(t.text.len, strlen(m->written));
			assert_memory_equal(t.text.data, m->written, t.text.len);
		}
		skv_buf_destroy(&pb);
		skv_buf_destroy(&again);
		trip_end(&t);
	}
}

/* ---- random answers -------------------------------------------------------------------------- */

/* Both texts that JSON makes must be one. */
#define SAME_TEXT(t, message, a, b)                                  \
	do {                                                         \
		struct skv_buf one_ = { 0 }, two_ = { 0 };           \
                                                                     \
		skv_v1_write_##message(&one_, a);                  \
		skv_v1_write_##message(&two_, b);                  \
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
		skv_pb_write_lookup_res(&t.text, &r);
		read_back(&t, skv_pb_read_lookup_res, &got);
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
		skv_pb_write_start_res(&t.text, &r);
		read_back(&t, skv_pb_read_start_res, &got);
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
		json_##message write_args;                           \
		read_back(t, skv_v1_read_##message, from_json); \
		skv_buf_clear(&(t)->text);                           \
		skv_pb_write_##message write_args;                \
		read_back(t, skv_pb_read_##message, from_pb);     \
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
			rc = skv_pb_read_match_req(&t.in, (char *)t.text.data, t.text.len, &r,
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
		struct skv_finish_req r = { .session = NULL }, json, pb;
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
		READ_BOTH(&t, finish_req, (&t.text, &r), &json, &pb);
		same(json.mask_kind, pb.mask_kind);
		same(json.mask_count, pb.mask_count);
		if (r.mask_kind == SKV_MASK_BITS)
			assert_memory_equal(json.mask, pb.mask, pb.mask_count * sizeof *mask);
		same(json.n_checksums, pb.n_checksums);
		assert_memory_equal(json.checksums, pb.checksums, pb.n_checksums * sizeof *sums);
		same(json.quiesced, pb.quiesced);
		trip_end(&t);
	}
}

/* ---- codecs by type ----------------------------------------------------------------- */

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
}

static void no_memory_is_an_error_answer(void **state)
{
	const char *json = skv_v1_json.no_memory, *pb = skv_v1_pb.no_memory;
	struct trip t;

	(void)state;
	trip_begin(&t, 1);
	assert_int_equal(skv_v1_read_error(&t.in, json, strlen(json), &t.err), SKV_E_NOMEM);
	assert_int_equal(skv_pb_read_error(&t.in, pb, strlen(pb), &t.err), SKV_E_NOMEM);
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
