/*
 * test_v1_pb.c - the protobuf codec against the JSON codec: every message of messages.h, and random
 * ones, comes out of protobuf as it went in, by the text that JSON makes of it.
 */
#include "messages.h"
#include "trip.h"

#include <kvb/v1_codec.h>

/* ---- JSON -> struct -> protobuf -> struct -> JSON ------------------------------------------------ */

/* Protobuf of a JSON document, then JSON of that protobuf: both appended. */
typedef int convert_fn(const struct kvb_v1_in *in, const char *text, size_t n, struct kvb_buf *pb,
		       struct kvb_buf *json, struct kvb_error *err);

#define CONVERT(message, type, WRITE)                                                                \
	static int convert_##message(const struct kvb_v1_in *in, const char *text, size_t n,         \
				     struct kvb_buf *pb, struct kvb_buf *json, struct kvb_error *err) \
	{                                                                                            \
		struct type m;                                                                       \
		int rc = kvb_v1_json.read_##message(in, text, n, &m, err);                           \
                                                                                                     \
		if (rc != KVB_OK)                                                                    \
			return rc;                                                                   \
		WRITE(kvb_v1_pb, pb, message);                                                       \
		memset(&m, 0x5a, sizeof m);                                                          \
		rc = kvb_v1_pb.read_##message(in, (const char *)pb->data, pb->len, &m, err);         \
		if (rc == KVB_OK)                                                                    \
			WRITE(kvb_v1_json, json, message);                                           \
		return rc;                                                                           \
	}
#define HEX(array, count) &(struct kvb_key_input){ .form = KVB_KEYS_HEX, .n = (count), .keys = (array) }
#define PLAIN(codec, out, message) (codec).write_##message(out, &m)
#define KEYS(codec, out, message) (codec).write_##message(out, &m, HEX(m.keys, m.n_keys))
#define START(codec, out, message)                                                                   \
	(codec).write_##message(out, &m, HEX(m.keys, m.n_keys), m.has_parent ? HEX(&m.parent, 1) : NULL)

CONVERT(storage, kvb_storage_spec, PLAIN)
CONVERT(group, kvb_group_spec, PLAIN)
CONVERT(instance, kvb_instance_spec, PLAIN)
CONVERT(storage_view, kvb_storage_view, PLAIN)
CONVERT(group_view, kvb_group_view, PLAIN)
CONVERT(instance_view, kvb_instance_view, PLAIN)
CONVERT(match_req, kvb_match_req, KEYS)
CONVERT(lookup_req, kvb_lookup_req, KEYS)
CONVERT(delete_req, kvb_delete_req, KEYS)
CONVERT(start_req, kvb_start_req, START)
CONVERT(finish_req, kvb_finish_req, PLAIN)
CONVERT(abort_req, kvb_abort_req, PLAIN)
CONVERT(match_res, kvb_match_res, PLAIN)
CONVERT(lookup_res, kvb_lookup_res, PLAIN)
CONVERT(start_res, kvb_start_res, PLAIN)
CONVERT(finish_res, kvb_finish_res, PLAIN)
CONVERT(delete_res, kvb_delete_res, PLAIN)

/* The reader of errors returns the status that it read. */
static int convert_error(const struct kvb_v1_in *in, const char *text, size_t n, struct kvb_buf *pb,
			 struct kvb_buf *json, struct kvb_error *err)
{
	struct kvb_error e;
	int rc = kvb_v1_json.read_error(in, text, n, &e);

	kvb_v1_pb.write_error(pb, &e, "r-1");
	assert_int_equal(kvb_v1_pb.read_error(in, (const char *)pb->data, pb->len, &e), rc);
	kvb_v1_json.write_error(json, &e, "r-1");
	(void)err;
	return KVB_OK;
}

static const struct {
	const char *name;
	convert_fn *convert;
} converts[] = {
#define ROW(message, type) { #message, convert_##message },
	KVB_V1_READS(ROW)
	{ "error", convert_error },
};

static void samples_pass_through(void **state)
{
	(void)state;
	assert_int_equal(sizeof converts / sizeof converts[0], n_messages);
	for (size_t i = 0; i < n_messages; i++) {
		const struct message *m = message_find(converts[i].name);
		struct kvb_buf json = { 0 }, expected = { 0 };
		struct trip t;
		int rc;

		trip_begin(&t, 1);
		t.in.secret = &test_secret;
		m->echo(&t.in, m->sample, strlen(m->sample), &expected, &t.err);
		rc = converts[i].convert(&t.in, m->sample, strlen(m->sample), &t.text, &json, &t.err);
		if (rc != KVB_OK)
			fail_msg("%s: %s at '%s'", m->name, t.err.message, t.err.field);
		assert_int_equal(json.len, expected.len);
		assert_memory_equal(json.data, expected.data, json.len);
		kvb_buf_destroy(&json);
		kvb_buf_destroy(&expected);
		trip_end(&t);
	}
}

/* ---- random answers ------------------------------------------------------------------------------ */

static struct kvb_files any_files(struct trip *t, uint32_t n)
{
	struct kvb_files f = { .v = made(t, n ? n : 1, sizeof *f.v), .n = n };

	for (uint32_t i = 0; i < n; i++) {
		f.v[i].storage = any_name(t, i);
		f.v[i].type = "file";
		any_uuid(t, f.v[i].uuid);
		snprintf(f.v[i].path, sizeof f.v[i].path, "slab-%08x.kvs", i);
	}
	return f;
}

/* Locations of all shapes: runs with several strides, lengths that change, generations of all kinds,
 * checksums here and there. `absent`: some are not there. */
static struct kvb_location *any_locations(struct trip *t, uint32_t n, uint32_t n_specs,
					  uint32_t n_files, bool absent)
{
	struct kvb_location *loc = made(t, (size_t)n * n_specs + 1, sizeof *loc);
	uint32_t wild = below(t, 4); /* 0: all in one run */
	int sums = (int)below(t, 3);

	for (uint32_t s = 0; s < n_specs; s++) {
		struct kvb_location at = { .file = below(t, n_files), .offset = rnd(t) >> 24,
					   .length = 1 + (rnd(t) >> 44), .generation = any64(t) };
		int64_t stride = (int64_t)at.length, step = 1;

		for (uint32_t i = 0; i < n; i++) {
			struct kvb_location *l = &loc[(size_t)i * n_specs + s];

			if (wild && below(t, 2 + 8 * wild) == 0)
				stride = (int64_t)(rnd(t) >> 50) - 8192;
			if (wild && below(t, 2 + 8 * wild) == 0)
				at.file = below(t, n_files);
			if (wild == 3 && below(t, 8) == 0)
				at.length = 1 + (any64(t) >> 2);
			if (wild && below(t, 2 + 8 * wild) == 0)
				step = (int64_t)(any64(t) >> below(t, 60));
			if ((int64_t)at.offset + stride < 0 || at.offset + at.length > INT64_MAX)
				at.offset = rnd(t) >> 30;
			if (at.offset + at.length > INT64_MAX)
				at.length = 7;
			*l = at;
			l->has_checksum = sums == 1 || (sums == 2 && below(t, 3));
			if (l->has_checksum)
				l->checksum = any64(t);
			if (absent && below(t, 5) == 0)
				*l = (struct kvb_location){ 0 };
			at.offset += (uint64_t)stride;
			at.generation += (uint64_t)step;
		}
	}
	return loc;
}

static uint32_t any_count(struct trip *t, uint32_t max)
{
	return below(t, 30) ? 1 + below(t, 40) : max;
}

/* Both texts that JSON makes must be one. */
#define SAME_TEXT(t, message, a, b)                                                                  \
	do {                                                                                         \
		struct kvb_buf one_ = { 0 }, two_ = { 0 };                                           \
                                                                                                     \
		kvb_v1_json.write_##message(&one_, a);                                               \
		kvb_v1_json.write_##message(&two_, b);                                               \
		assert_int_equal(one_.len, two_.len);                                                \
		assert_memory_equal(one_.data, two_.data, one_.len);                                 \
		kvb_buf_destroy(&one_);                                                              \
		kvb_buf_destroy(&two_);                                                              \
	} while (0)

static void random_lookups(void **state)
{
	(void)state;
	for (uint64_t round = 0; round < 2 * ROUNDS; round++) {
		struct kvb_lookup_res r = { .n_keys = 0 }, got;
		struct trip t;

		trip_begin(&t, round);
		r.n_keys = any_count(&t, below(&t, 4) ? 2000 : KVB_MAX_KEYS);
		r.n_specs = below(&t, 20) ? 1 + below(&t, 3) : r.n_keys > 2000 ? 1 : KVB_MAX_SPECS;
		r.specs = any_names(&t, r.n_specs);
		r.lease_ms = any32(&t);
		r.files = any_files(&t, 1 + below(&t, 5));
		r.hit = made(&t, r.n_keys, sizeof *r.hit);
		r.loc = any_locations(&t, r.n_keys, r.n_specs, r.files.n, false);
		for (uint32_t i = 0; i < r.n_keys; i++) {
			r.hit[i] = round % 3 == 0 || (round % 3 == 1 ? below(&t, 2) : i < r.n_keys / 2);
			r.matched += r.hit[i];
		}
		kvb_v1_pb.write_lookup_res(&t.text, &r);
		read_back(&t, kvb_v1_pb.read_lookup_res, &got);
		SAME_TEXT(&t, lookup_res, &r, &got);
		trip_end(&t);
	}
}

static void random_starts(void **state)
{
	(void)state;
	for (uint64_t round = 0; round < 2 * ROUNDS; round++) {
		struct kvb_start_res r = { .n_keys = 0 }, got;
		struct trip t;

		trip_begin(&t, round);
		r.state = below(&t, 5) ? KVB_SESSION_OPEN : (enum kvb_session_state)below(&t, 4);
		r.deadline_ms = any32(&t);
		r.n_keys = any_count(&t, below(&t, 4) ? 2000 : KVB_MAX_KEYS);
		r.n_specs = below(&t, 20) ? 1 + below(&t, 3) : r.n_keys > 2000 ? 1 : KVB_MAX_SPECS;
		r.specs = any_names(&t, r.n_specs);
		r.files = any_files(&t, 1 + below(&t, 5));
		r.outcome = made(&t, r.n_keys, sizeof *r.outcome);
		r.loc = any_locations(&t, r.n_keys, r.n_specs, r.files.n, true);
		for (uint32_t i = 0; i < r.n_keys; i++) {
			r.outcome[i] = (uint8_t)(below(&t, 2) ? 0 : below(&t, 3));
			r.n_write += r.outcome[i] == KVB_START_WRITE;
		}
		if (r.n_write)
			snprintf(r.session, sizeof r.session, "%016llx%016llx",
				 (unsigned long long)rnd(&t), (unsigned long long)rnd(&t));
		kvb_v1_pb.write_start_res(&t.text, &r);
		read_back(&t, kvb_v1_pb.read_start_res, &got);
		SAME_TEXT(&t, start_res, &r, &got);
		trip_end(&t);
	}
}

/* ---- random requests: what JSON reads is what protobuf reads -------------------------------------- */

static struct kvb_key_input any_keys(struct trip *t, enum kvb_key_form form, uint32_t n)
{
	const char **strings = made(t, n, sizeof *strings);
	struct kvb_key *keys = made(t, n, sizeof *keys);
	uint64_t base = any64(t);

	for (uint32_t i = 0; i < n; i++) {
		char *s = made(t, 1, 80);

		snprintf(s, 80, "%u %s", i, any_text(t, 40));
		strings[i] = s;
		keys[i] = (struct kvb_key){ .hi = form == KVB_KEYS_HEX ? any64(t) : 0, .lo = base + i };
	}
	return (struct kvb_key_input){ .form = form, .n = n, .strings = strings, .keys = keys };
}

static void same_keys(const struct kvb_key *a, uint32_t na, const struct kvb_key *b, uint32_t nb)
{
	assert_int_equal(na, nb);
	assert_memory_equal(a, b, na * sizeof *a);
}

/* Writes with both codecs and reads both back. */
#define READ_BOTH(t, message, write_args, from_json, from_pb)                                        \
	do {                                                                                         \
		kvb_v1_json.write_##message write_args;                                              \
		read_back(t, kvb_v1_json.read_##message, from_json);                                 \
		kvb_buf_clear(&(t)->text);                                                           \
		kvb_v1_pb.write_##message write_args;                                                \
		read_back(t, kvb_v1_pb.read_##message, from_pb);                                     \
	} while (0)

static void random_lookup_requests(void **state)
{
	(void)state;
	for (uint64_t round = 0; round < ROUNDS; round++) {
		struct kvb_lookup_req r = { .n_keys = 0 }, json, pb;
		struct kvb_key_input keys;
		struct trip t;

		trip_begin(&t, round);
		r.mode = (enum kvb_lookup_mode)below(&t, 2);
		r.n_specs = below(&t, 3) ? 0 : any_count(&t, KVB_MAX_SPECS) % KVB_MAX_SPECS;
		r.specs = any_names(&t, r.n_specs);
		r.lease_ms = any32(&t);
		keys = any_keys(&t, round % 3, any_count(&t, KVB_MAX_KEYS));
		READ_BOTH(&t, lookup_req, (&t.text, &r, &keys), &json, &pb);
		same_keys(json.keys, json.n_keys, pb.keys, pb.n_keys);
		same_names(json.specs, json.n_specs, pb.specs, pb.n_specs);
		same(json.mode, pb.mode);
		same(json.lease_ms, pb.lease_ms);
		assert_string_equal(json.tenant, pb.tenant);
		trip_end(&t);
	}
}

static void random_start_requests(void **state)
{
	(void)state;
	for (uint64_t round = 0; round < ROUNDS; round++) {
		struct kvb_start_req r = { .n_keys = 0 }, json, pb;
		struct kvb_key_input keys, parent;
		struct trip t;

		trip_begin(&t, round);
		r.request_id = below(&t, 2) ? "" : any_text(&t, KVB_MAX_REQUEST_ID);
		r.n_specs = below(&t, 3) ? 0 : 1 + below(&t, KVB_MAX_SPECS);
		r.specs = any_names(&t, r.n_specs);
		r.deadline_ms = any32(&t);
		keys = any_keys(&t, round % 3, any_count(&t, KVB_MAX_KEYS));
		parent = any_keys(&t, round % 3, 1);
		READ_BOTH(&t, start_req, (&t.text, &r, &keys, below(&t, 2) ? &parent : NULL), &json, &pb);
		same_keys(json.keys, json.n_keys, pb.keys, pb.n_keys);
		same_names(json.specs, json.n_specs, pb.specs, pb.n_specs);
		same(json.deadline_ms, pb.deadline_ms);
		assert_string_equal(json.request_id, pb.request_id);
		trip_end(&t);
	}
}

static void parents_come_through(void **state)
{
	(void)state;
	for (uint64_t round = 0; round < 60; round++) {
		struct kvb_start_req r = { .request_id = "" }, json, pb;
		struct kvb_key_input keys, parent;
		struct trip t;

		trip_begin(&t, round);
		keys = any_keys(&t, round % 3, 2);
		parent = any_keys(&t, round % 3, 1);
		READ_BOTH(&t, start_req, (&t.text, &r, &keys, &parent), &json, &pb);
		assert_true(json.has_parent && pb.has_parent);
		assert_true(kvb_key_equal(json.parent, pb.parent));
		trip_end(&t);
	}
}

static void random_finish_requests(void **state)
{
	(void)state;
	for (uint64_t round = 0; round < ROUNDS; round++) {
		struct kvb_finish_req r = { .session = NULL }, got;
		uint64_t *sums;
		bool *mask;
		struct trip t;

		trip_begin(&t, round);
		r.mask_kind = (enum kvb_mask_kind)(round % 3);
		r.mask_count = r.mask_kind == KVB_MASK_ALL ? 0 : below(&t, 30) ? below(&t, 9) : KVB_MAX_KEYS;
		r.mask = mask = made(&t, KVB_MAX_KEYS, sizeof *mask);
		for (uint32_t i = 0; i < r.mask_count; i++)
			mask[i] = below(&t, 2);
		r.n_checksums = below(&t, 100) ? below(&t, 9) : KVB_MAX_KEYS * KVB_MAX_SPECS;
		r.checksums = sums = made(&t, (size_t)r.n_checksums + 1, sizeof *sums);
		for (uint32_t i = 0; i < r.n_checksums; i++)
			sums[i] = any64(&t);
		r.quiesced = below(&t, 2);
		kvb_v1_pb.write_finish_req(&t.text, &r);
		read_back(&t, kvb_v1_pb.read_finish_req, &got);
		SAME_TEXT(&t, finish_req, &r, &got);
		trip_end(&t);
	}
}

/* ---- codecs by name and type --------------------------------------------------------------------- */

static void codecs_are_found(void **state)
{
	(void)state;
	assert_ptr_equal(kvb_v1_codec_of_type(NULL), &kvb_v1_json);
	assert_ptr_equal(kvb_v1_codec_of_type("application/json"), &kvb_v1_json);
	assert_ptr_equal(kvb_v1_codec_of_type("Application/JSON; charset=utf-8"), &kvb_v1_json);
	assert_ptr_equal(kvb_v1_codec_of_type("application/x-www-form-urlencoded"), &kvb_v1_json);
	assert_ptr_equal(kvb_v1_codec_of_type("application/x-protobuf"), &kvb_v1_pb);
	assert_ptr_equal(kvb_v1_codec_of_type("application/protobuf;x=y"), &kvb_v1_pb);
	assert_null(kvb_v1_codec_of_type("text/html"));
	assert_null(kvb_v1_codec_of_type("application/jsonx"));
	assert_null(kvb_v1_codec_of_accept(NULL));
	assert_null(kvb_v1_codec_of_accept("*/*"));
	assert_null(kvb_v1_codec_of_accept(",;,"));
	assert_ptr_equal(kvb_v1_codec_of_accept("text/html, application/x-protobuf;q=0.9"), &kvb_v1_pb);
	assert_ptr_equal(kvb_v1_codec_of_accept("application/json,application/x-protobuf"), &kvb_v1_json);
	assert_ptr_equal(kvb_v1_codec_named("protobuf"), &kvb_v1_pb);
	assert_ptr_equal(kvb_v1_codec_named("json"), &kvb_v1_json);
	assert_null(kvb_v1_codec_named("xml"));
}

static void no_memory_is_an_error_answer(void **state)
{
	const struct kvb_v1_codec *const codecs[] = { &kvb_v1_json, &kvb_v1_pb };
	struct trip t;

	(void)state;
	trip_begin(&t, 1);
	for (int i = 0; i < 2; i++)
		assert_int_equal(codecs[i]->read_error(&t.in, codecs[i]->no_memory,
						       strlen(codecs[i]->no_memory), &t.err),
				 KVB_E_NOMEM);
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
