/*
 * test_v1_pb_bad.c - bad protobuf: the right status and the name of the field for each, no message
 * that is cut anywhere is taken for another, allocation failures, and the freedoms that protobuf
 * gives a writer (unknown fields, any order, not packed, a scalar twice).
 */
#include "messages.h"
#include "pb_messages.h"
#include "random_answers.h"

#include <skv/mem.h>

struct bad {
	const char *message;
	const char *bytes; /* with its length, below */
	size_t n;
	int status;
	const char *field;
};

#define B(s) s, sizeof(s) - 1
#define K "0123456789abcdef" /* a key */
#define L "fedcba9876543210"
#define I SKV_E_INVALID
#define FILE0                                  \
	"\x0a\x04"                             \
	"file"                                 \
	"\x12\x01"                             \
	"s"                                    \
	"\x1a\x24"                             \
	"00112233-4455-6677-8899-aabbccddeeff" \
	"\x22\x01"                             \
	"p"
#define FOUND "\x08\x02\x10\x02\x22\x02kv\x2a\x32" FILE0 /* two keys, both hit, one file */

static const struct bad documents[] = {
	/* no message at all */
	{ "delete_req", B("\x0a"), I, "" },
	{ "delete_req", B("\x0a\x20" K), I, "" },
	{ "delete_req", B("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" K), I, "" },
	{ "delete_req", B("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02" K), I, "" },
	{ "delete_req", B("\x00\x00"), I, "" },
	{ "delete_req", B("\x0b\x0c"), I, "" }, /* a group */
	{ "delete_req", B("{\"keys\":[\"a\"]}"), I, "" },
	{ "delete_req", B("\x0e"), I, "" },
	{ "delete_req", B("\xff\xff\xff\xff\xff\x01\x00"), I, "" },
	{ "delete_req", B("\x09" "1234"), I, "" },
	{ "delete_req", B("\x0d" "123"), I, "" },
	/* keys */
	{ "delete_req", B(""), I, "keys" },
	{ "delete_req", B("\x0a\x00"), I, "keys" },
	{ "delete_req", B("\x0a\x0f" "0123456789abcde"), I, "keys_raw" },
	{ "delete_req", B("\x08\x01"), I, "keys_raw" },
	{ "delete_req", B("\x0a\x20" K K), I, "keys_raw[1]" },
	{ "delete_req", B("\x0a\x30" K L K), I, "keys_raw[2]" },
	{ "delete_req", B("\x0a\x10" K "\x1a\x01" "a"), I, "keys_raw" },
	{ "delete_req", B("\x12\x08" "12345678" "\x1a\x01" "a"), I, "keys_int" },
	{ "delete_req", B("\x12\x07" "1234567"), I, "keys_int" },
	{ "delete_req", B("\x12\x10" "1234567812345678"), I, "keys_int[1]" },
	{ "delete_req", B("\x10\x01"), I, "keys_int" },
	{ "delete_req", B("\x1a\x00"), I, "keys[0]" },
	{ "delete_req", B("\x1a\x01" "a" "\x1a\x00"), I, "keys[1]" },
	{ "delete_req", B("\x1a\x01" "a" "\x1a\x01" "a"), I, "keys[1]" },
	{ "delete_req", B("\x1a\x01\xff"), I, "keys[0]" },
	{ "delete_req", B("\x1a\x02" "a\0"), I, "keys[0]" },
	{ "delete_req", B("\x18\x01"), I, "keys" },
	/* other fields of requests */
	{ "match_req", B("\x0a\x10" K), I, "instances" },
	{ "match_req", B("\x0a\x10" K "\x22\x01" "-"), I, "instances[0]" },
	{ "match_req", B("\x0a\x10" K "\x22\x01" "a" "\x22\x01" "a"), I, "instances[1]" },
	{ "match_req", B("\x0a\x10" K "\x20\x01"), I, "instances" },
	{ "lookup_req", B("\x0a\x10" K "\x20\x04"), I, "mode" },
	{ "lookup_req", B("\x0a\x10" K "\x40\x81\x80\x01"), I, "window" },
	{ "file_wish", B("\x08\x80\x80\x80\x80\x10\x10\x01"), I, "file" },
	{ "file_wish", B("\x0a\x01\x03"), I, "file" },
	{ "trim_req", B("\x08\x01"), I, "to_ms" },
	{ "trim_req", B("\x10\x80\x80\x80\x80\x80\x80\x80\x10"), I, "to_ms" },
	{ "pin_req", B("\x20\x01"), I, "keys" },
	{ "pin_req", B("\x0a\x10" K "\x20\x02"), I, "kind" },
	{ "pin_req", B("\x0a\x10" K "\x28\x81\x90\xfb\xd3\x09"), I, "ttl_ms" },
	{ "pin_req", B("\x0a\x10" K "\x2a\x00"), I, "ttl_ms" },
	{ "unpin_req", B(""), I, "keys" },
	{ "unpin_req", B("\x20\x02"), I, "all" },
	{ "unpin_req", B("\x0a\x10" K "\x20\x01"), I, "all" },
	{ "pin_res", B("\x08\x02\x1a\x01\x02"), I, "missing[0]" },
	{ "pins_res", B("\x0a\x01" "a"), I, "keys_raw" },
	{ "keys_res", B("\x0a\x01" "a"), I, "keys_raw" },
	{ "pins_res", B("\x0a\x10" K "\x12\x01\x03\x1a\x01\x00"), I, "kinds[0]" },
	{ "pins_res", B("\x0a\x10" K), I, "kinds" },
	{ "lookup_req", B("\x0a\x10" K "\x22\x00"), I, "mode" },
	{ "lookup_req", B("\x0a\x10" K "\x2a\x01 "), I, "specs[0]" },
	{ "lookup_req", B("\x0a\x10" K "\x30\xff\xff\xff\xff\x0f"), I, "lease_ms" },
	{ "lookup_req", B("\x0a\x10" K "\x30\x80\x80\x80\x80\x10"), I, "lease_ms" },
	{ "start_req", B("\x0a\x10" K "\x22\x01\x80"), I, "request_id" },
	{ "start_req", B("\x0a\x10" K "\x30\x80\x80\x80\x80\x10"), I, "deadline_ms" },
	{ "start_req", B("\x0a\x10" K "\x3a\x0f" "0123456789abcde"), I, "parent_raw" },
	{ "start_req", B("\x0a\x10" K "\x40\x01"), I, "parent_int" },
	{ "start_req", B("\x0a\x10" K "\x4a\x00"), I, "parent" },
	{ "finish_req", B(""), I, "success" },
	{ "finish_req", B("\x08\x00"), I, "success" },
	{ "finish_req", B("\x10\x81\x80\x01"), I, "success.count" },
	{ "finish_req", B("\x1a\x02\x01\x02"), I, "success.mask[1]" },
	{ "finish_req", B("\x08\x01\x22\x07" "1234567"), I, "checksums" },
	{ "abort_req", B("\x0a\x00"), I, "quiesced" },
	/* objects */
	{ "storage", B("\x12\x02/d"), I, "capacity" },
	{ "storage", B("\x18\x01"), I, "root" },
	{ "storage", B("\x12\x02" "ab\x18\x01"), I, "root" },
	{ "storage", B("\x0a\x01-\x12\x02/d\x18\x01"), I, "type" },
	{ "storage", B("\x12\x02/d\x18\x06\x28\x03"), I, "unit" },
	{ "storage", B("\x12\x02/d\x18\x06\x28\x04"), I, "capacity" },
	{ "storage", B("\x12\x03/\0d\x18\x01"), I, "root" },
	{ "storage", B("\x1a\x01" "1"), I, "capacity" },
	/* texts and numbers of fields from 32 on, too, and bounds that JSON has */
	{ "storage", B("\x12\x02/d\x18\x01\x92\x02\x01\xff"), I, "fs_master[0]" },
	{ "storage", B("\x12\x02/d\x18\x01\x92\x02\x01" "a\x92\x02\x00"), I, "fs_master[1]" },
	{ "storage", B("\x12\x02/d\x18\x01\x82\x02\x01" "a"), I, "chunk_size" },
	{ "group", B("\x12\x01" "a\x50\x65"), I, "reclaim_step_percent" },
	{ "group", B("\x12\x01" "a\xb8\x01\x03"), I, "share" },
	{ "instance_view", B("\x0a\x01" "i\x1a\x0a\x1a\x08\x0a\x04" "spec\x10\x01"), I, "tenant" },
	{ "group", B(""), I, "storages" },
	{ "group", B("\x12\x01" "a" "\x12\x01" "a"), I, "storages[1]" },
	{ "group", B("\x12\x01" "a" "\x12\x01\xff"), I, "storages[1]" },
	{ "group", B("\x12\x01" "a\x22\x00"), I, "quotas[0].type" },
	{ "group", B("\x12\x01" "a\x22\x03\x0a\x01" "a\x22\x03\x0a\x01/"), I, "quotas[1].type" },
	{ "group", B("\x12\x01" "a\x72\x01\xff"), I, "extra" },
	{ "storage", B("\x12\x02/d\x18\x01\x3a\x01\xff"), I, "client_root" },
	{ "storage", B("\x12\x02/d\x18\x01\x42\x01\0"), I, "client_mount" },
	{ "storage", B("\x12\x02/d\x18\x01\x4a\x01\x80"), I, "extra" },
	{ "instance", B(""), I, "specs" },
	{ "instance", B("\x1a\x03\x0a\x01" "a"), I, "specs[0].size" },
	{ "instance", B("\x1a\x05\x0a\x01" "a\x10\x01" "\x1a\x05\x0a\x01" "a\x10\x01"), I,
	  "specs[1].name" },
	{ "instance", B("\x1a\x05\x0a\x01" "a\x10\x01" "\x1a\x05\x0a\x01" "\xff\x10\x01"), I,
	  "specs[1].name" },
	{ "instance", B("\x10\x80\x80\x80\x80\x10"), I, "block_tokens" },
	{ "instance", B("\x1a\x05\x0a\x09" "a\x10\x01"), I, "specs[0]" },
	/* answers */
	{ "lookup_res", B("\x08\x81\x80\x01"), I, "n_keys" },
	{ "lookup_res", B("\x08\x02\x32\x02\x00\x03"), I, "hit_runs[1]" },
	{ "lookup_res", B("\x08\x02\x10\x02\x32\x02\x00\x01"), I, "matched" },
	{ "lookup_res", B("\x08\x02\x32\x02\x00\xff"), I, "hit_runs" },
	{ "lookup_res", B(FOUND "\x32\x02\x00\x02"), I, "columns" },
	{ "lookup_res", B(FOUND "\x32\x02\x00\x02\x3a\x00"), I, "columns[0].runs" },
	{ "lookup_res", B(FOUND "\x32\x02\x00\x02\x3a\x06\x08\x08\x12\x02\x08\x02"), I,
	  "columns[0].runs[0].more" },
	{ "lookup_res", B(FOUND "\x32\x02\x00\x02\x3a\x04\x12\x02\x08\x01"), I,
	  "columns[0].runs[0].length" },
	{ "lookup_res", B(FOUND "\x32\x02\x00\x02\x3a\x08\x08\x08\x12\x04\x08\x01\x10\x01"), I,
	  "columns[0].runs[0].file" },
	{ "lookup_res", B(FOUND "\x32\x02\x00\x02\x3a\x08\x08\x08\x12\x04\x08\x01\x30\x01"), I,
	  "columns" }, /* a hit without any location */
	{ "lookup_res", B(FOUND "\x32\x02\x00\x02\x3a\x08\x08\x08\x12\x04\x08\x01\x20\x01"), I,
	  "columns[0].runs[0].offset" }, /* stride -1 from 0 */
	{ "lookup_res", B(FOUND "\x32\x02\x00\x02\x3a\x06\x08\x08\x12\x02\x08\x01"), I,
	  "columns[0].generations" },
	{ "lookup_res", B(FOUND "\x32\x02\x00\x02\x3a\x0a\x08\x08\x12\x02\x08\x01\x1a\x02\x18\x02"),
	  I,
	  "columns[0].generations[0]" },
	{ "lookup_res",
	  B(FOUND "\x32\x02\x00\x02\x3a\x14\x08\x08\x12\x02\x08\x01\x1a\x02\x18\x01\x22\x08"
	    "12345678"),
	  I, "columns[0].checksums" },
	{ "lookup_res", /* unsummed, and yet a checksum */
	  B(FOUND "\x32\x02\x00\x02\x3a\x16\x08\x08\x12\x04\x08\x01\x38\x01\x1a\x02\x18\x01"
		  "\x22\x08"
	    "12345678"),
	  I, "columns[0].checksums" },
	{ "lookup_res", B("\x2a\x02\x22\x00"), I, "files[0].type" },
	{ "lookup_res", B("\x2a\x0a\x0a\x04" "file" "\x22\x02.."), I, "files[0].path" },
	{ "lookup_res", B("\x2a\x0d\x0a\x04" "file" "\x22\x05" "../up"), I, "files[0].path" },
	{ "lookup_res", B("\x2a\x13\x0a\x04" "file" "\x22\x0b" "/etc/passwd"), I, "files[0].path" },
	{ "lookup_res", B("\x2a\x0e\x0a\x04" "file" "\x22\x06" "a/../b"), I, "files[0].path" },
	{ "lookup_res", B("\x2a\x0c\x0a\x04" "file" "\x22\x04" "a//b"), I, "files[0].path" },
	{ "lookup_res", B("\x2a\x0a\x0a\x04" "file" "\x22\x02" "a/"), I, "files[0].path" },
	{ "start_res", B("\x0a\x01" "x"), I, "session" },
	{ "start_res", B("\x10\x05"), I, "state" },
	{ "start_res", B("\x20\x01"), I, "outcome_runs" },
	{ "start_res", B("\x20\x01\x42\x01\x0b"), I, "outcome_runs[0]" },
	{ "start_res", B("\x20\x01\x42\x01\x09"), I, "outcome_runs[0]" },
	{ "start_res", B("\x20\x01\x42\x01\x04"), I, "n_write" },
	{ "match_res", B("\x0a\x01" "a"), I, "matched" },
	{ "match_res", B("\x0a\x01" "a\x12\x03\x81\x80\x01"), I, "matched[0]" },
	{ "storage_view", B("\x0a\x01" "a"), I, "spec" },
	{ "group_view", B("\x12\x00"), I, "spec.storages" },
	{ "finish_res", B("\x08\x09"), I, "state" },
	{ "finish_res", B("\x22\x02\x02\x02"), I, "deleted[1]" },
	{ "finish_res", B("\x22\x03\x80\x80\x01"), I, "deleted[0]" },
};

static void bad_messages_name_the_field(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof documents / sizeof documents[0]; i++) {
		const struct bad *b = &documents[i];
		struct skv_buf out = { 0 };
		struct trip t;
		int rc;

		trip_begin(&t, 1);
		skv_put_bytes(&t.text, b->bytes, b->n);
		rc = pb_message_find(b->message)
			     ->echo(&t.in, (char *)t.text.data, b->n, &out, &t.err);
		if (rc != b->status || strcmp(t.err.field, b->field) != 0)
			fail_msg("%zu, %s: %d at '%s', not %d at '%s': %s", i, b->message, rc,
				 rc ? t.err.field : "", b->status, b->field,
				 rc ? t.err.message : "");
		skv_buf_destroy(&out);
		trip_end(&t);
	}
}

/* ---- too much -------------------------------------------------------------------------------- */

static void expect(struct trip *t, const char *message, int status, const char *field)
{
	struct skv_buf out = { 0 };

	assert_false(t->text.failed);
	assert_int_equal(
		pb_message_find(message)
			->echo(&t->in, (char *)t->text.data, t->text.len, &out, &t->err),
		status);
	assert_string_equal(t->err.field, field);
	skv_buf_destroy(&out);
	trip_end(t);
}

static void repeat(struct skv_buf *b, const char *bytes, size_t n, uint32_t times)
{
	while (times--)
		skv_put_bytes(b, bytes, n);
}

static void counts_are_bounded(void **state)
{
	uint8_t *zeros = calloc(SKV_MAX_KEYS * SKV_MAX_SPECS + 1, 16);
	struct trip t;

	(void)state;
	assert_non_null(zeros);
	for (uint64_t i = 0; i <= SKV_MAX_KEYS; i++)
		memcpy(zeros + 16 * i, &i, sizeof i);
	trip_begin(&t, 1);
	skv_put_u8(&t.text, 1 << 3 | 2);
	skv_put_string(&t.text, (char *)zeros, 16 * (SKV_MAX_KEYS + 1));
	expect(&t, "lookup_req", SKV_E_TOO_LARGE, "keys_raw");
	trip_begin(&t, 1);
	skv_put_u8(&t.text, 2 << 3 | 2);
	skv_put_string(&t.text, (char *)zeros, 8 * (SKV_MAX_KEYS + 1));
	expect(&t, "lookup_req", SKV_E_TOO_LARGE, "keys_int");
	trip_begin(&t, 1);
	repeat(&t.text, "\x1a\x01" "a", 3, SKV_MAX_KEYS + 1);
	expect(&t, "lookup_req", SKV_E_TOO_LARGE, "keys");
	trip_begin(&t, 1);
	repeat(&t.text, "\x22\x01" "a", 3, SKV_MAX_INSTANCES_PER_MATCH + 1);
	expect(&t, "match_req", SKV_E_TOO_LARGE, "instances");
	trip_begin(&t, 1);
	repeat(&t.text, "\x0a\x10" K "\x2a\x01" "a", 21, SKV_MAX_SPECS + 1);
	expect(&t, "lookup_req", SKV_E_TOO_LARGE, "specs");
	trip_begin(&t, 1);
	repeat(&t.text, "\x1a\x01" "a", 3, SKV_MAX_SPECS + 1);
	expect(&t, "instance", SKV_E_INVALID, "specs[0]"); /* no message */
	trip_begin(&t, 1);
	repeat(&t.text, "\x1a\x00", 2, SKV_MAX_SPECS + 1);
	expect(&t, "instance", SKV_E_TOO_LARGE, "specs");
	trip_begin(&t, 1);
	repeat(&t.text, "\x12\x00", 2, 100000);
	expect(&t, "group", SKV_E_TOO_LARGE, "");
	trip_begin(&t, 1);
	skv_put_bytes(&t.text, "\x08\x01\x22", 3);
	skv_put_string(&t.text, (char *)zeros, 8 * (SKV_MAX_KEYS * SKV_MAX_SPECS + 1));
	expect(&t, "finish_req", SKV_E_TOO_LARGE, "checksums");
	trip_begin(&t, 1);
	skv_put_u8(&t.text, 3 << 3 | 2);
	skv_put_string(&t.text, (char *)zeros, SKV_MAX_KEYS + 1);
	expect(&t, "finish_req", SKV_E_TOO_LARGE, "success.mask");
	trip_begin(&t, 1);
	skv_put_u8(&t.text, 3 << 3 | 2);
	memset(zeros, 'a', SKV_MAX_KEY_STRING + 1);
	skv_put_string(&t.text, (char *)zeros, SKV_MAX_KEY_STRING + 1);
	expect(&t, "lookup_req", SKV_E_INVALID, "keys[0]");
	free(zeros);
}

/* ---- cut and changed ------------------------------------------------------------------------- */

/* A cut message is refused with a sentence, or is one that ends there. A
 * sanitizer sees reads behind it. */
static void cut_anywhere(void **state)
{
	(void)state;
	for (size_t i = 0; i < n_pb_messages; i++) {
		struct skv_buf b = { 0 };

		pb_sample(&pb_messages[i], &b);
		for (size_t n = 0; n < b.len; n++) {
			char *exact = malloc(n + 1);
			struct skv_buf out = { 0 };
			struct trip t;
			int rc;

			assert_non_null(exact);
			memcpy(exact, b.data, n);
			exact = realloc(exact, n ? n : 1);
			trip_begin(&t, 1);
			rc = pb_messages[i].echo(&t.in, exact, n, &out, &t.err);
			if (rc != SKV_OK && strcmp(pb_messages[i].name, "error") != 0)
				assert_true(t.err.status == rc && t.err.message[0]);
			skv_buf_destroy(&out);
			trip_end(&t);
			free(exact);
		}
		skv_buf_destroy(&b);
	}
}

/* ---- what a writer may do -------------------------------------------------------------------- */

static void read_req(const char *bytes, size_t n, struct skv_lookup_req *out, struct trip *t)
{
	trip_begin(t, 1);
	if (skv_pb_read_lookup_req(&t->in, bytes, n, out, &t->err) != SKV_OK)
		fail_msg("%s at '%s'", t->err.message, t->err.field);
}

static void freedoms_of_protobuf(void **state)
{
	struct skv_lookup_req r;
	struct skv_finish_req f;
	struct trip t;

	(void)state;
	/* unknown fields of every wire type, and a scalar twice */
	read_req(B("\x0a\x10" L "\x0a\x10" K "\x50\x05\x59"
		   "12345678"
		   "\x62\x02zz\x6d"
		   "1234"
		   "\x20\x01\x20\x00"),
		 &r, &t);
	assert_int_equal(r.n_keys, 1);
	assert_int_equal(r.keys[0].hi >> 56, '0');
	assert_int_equal(r.mode, SKV_LOOKUP_PREFIX);
	same(r.lease_ms, SKV_LEASE_DEFAULT);
	trip_end(&t);
	/* not packed, packed in pieces, in between other fields */
	read_req(B("\x11"
		   "12345678"
		   "\x30\x00\x12\x08"
		   "abcdefgh"
		   "\x2a\x01s\x11"
		   "ABCDEFGH"
		   "\x12\x00"),
		 &r, &t);
	assert_int_equal(r.n_keys, 3);
	assert_int_equal(r.keys[1].lo & 0xff, 'a');
	assert_int_equal(r.keys[2].lo & 0xff, 'A');
	assert_int_equal(r.n_specs, 1);
	same(r.lease_ms, 0);
	trip_end(&t);
	/* a oneof: the last one */
	trip_begin(&t, 1);
	assert_int_equal(skv_pb_read_finish_req(&t.in, B("\x08\x01\x10\x03\x1a\x01\x01\x10\x02"),
						   &f, NULL),
			 SKV_OK);
	assert_int_equal(f.mask_kind, SKV_MASK_COUNT);
	assert_int_equal(f.mask_count, 2);
	trip_end(&t);
}

/* The fields of an answer, and of its columns, in reverse: as good as in order. */
static void any_order(void **state)
{
	static const char reversed[] =
		"\x3a\x0c\x1a\x04\x08\x07\x18\x01\x12\x02\x08\x01\x08\x08"
		/* column: generations, runs, length */
		"\x32\x02\x00\x02\x2a\x32" FILE0 "\x22\x02kv\x10\x02\x08\x02";
	struct skv_lookup_res r;
	struct trip t;

	(void)state;
	trip_begin(&t, 1);
	if (skv_pb_read_lookup_res(&t.in, B(reversed), &r, &t.err) != SKV_OK)
		fail_msg("%s at '%s'", t.err.message, t.err.field);
	assert_int_equal(r.matched, 2);
	assert_int_equal(r.loc[1].offset, 8);
	assert_int_equal(r.loc[1].length, 8);
	assert_int_equal(r.loc[1].generation, 7);
	assert_false(r.loc[1].has_checksum);
	trip_end(&t);
}

/* ---- texts of one length, one after the other ------------------------------------------------ */

enum { RUN = 21 }; /* more than are hashed at once, and not a multiple of that */

/* RUN texts of `length` bytes; element `odd`, if there is one, ends with `with`. */
static void put_run(struct skv_buf *b, size_t length, uint32_t odd, const char *with)
{
	for (uint32_t i = 0; i < RUN; i++) {
		char text[100];
		size_t n = i == odd ? strlen(with) + (*with == 0) : 0;

		memset(text, 'a' + (int)i, length);
		memcpy(text + length - n, with, n);
		skv_put_u8(b, 3 << 3 | 2);
		skv_put_string(b, text, length);
	}
}

static void texts_of_one_length(void **state)
{
	static const size_t length[] = { 3, 8, 31, 34, 64, 65 };
	enum { RUNS = sizeof length / sizeof length[0] };
	struct skv_lookup_req r;
	struct trip t;

	(void)state;
	/* Runs with an umlaut somewhere, with other fields between. */
	trip_begin(&t, 1);
	for (uint32_t i = 0; i < RUNS; i++) {
		put_run(&t.text, length[i], i * 3, "\xc3\xa4");
		skv_put_bytes(&t.text, "\x20\x01", i % 2 ? 2 : 0);
	}
	if (skv_pb_read_lookup_req(&t.in, trip_text(&t), t.text.len, &r, &t.err) != SKV_OK)
		fail_msg("%s at '%s'", t.err.message, t.err.field);
	same(r.n_keys, RUN * RUNS);
	for (uint32_t i = 0; i < r.n_keys; i++) {
		char text[100];
		const size_t n = length[i / RUN];

		memset(text, 'a' + (int)(i % RUN), n);
		if (i % RUN == i / RUN * 3)
			memcpy(text + n - 2, "\xc3\xa4", 2);
		assert_true(skv_key_equal(r.keys[i], skv_key_from_string(&t.secret, text, n)));
	}
	trip_end(&t);
	/* An invalid element at the beginning, in the middle and at the end of a run. */
	for (uint32_t odd = 0; odd < RUN; odd += 10) {
		static const char *const with[] = { "", "\xc3", "\xff" "a", "\xed\xa0\x80" };
		char field[20];

		snprintf(field, sizeof field, "keys[%u]", odd);
		for (int i = 0; i < 4; i++) {
			trip_begin(&t, 1);
			put_run(&t.text, 64, odd, with[i]);
			expect(&t, "lookup_req", SKV_E_INVALID, field);
		}
	}
}

/* ---- no memory ------------------------------------------------------------------------------- */

static void every_allocation_may_fail(void **state)
{
	(void)state;
	for (size_t i = 0; i < n_pb_messages; i++) {
		struct skv_buf b = { 0 };
		unsigned long n = 0, asked;

		pb_sample(&pb_messages[i], &b);
		do {
			struct skv_buf out = { 0 };
			struct trip t;
			int rc;

			trip_begin(&t, 1);
			skv_mem_fail_at(++n);
			rc = pb_messages[i].echo(&t.in, (char *)b.data, b.len, &out, &t.err);
			asked = skv_mem_count();
			skv_mem_fail_at(0);
			if (rc == SKV_OK && !out.failed) {
				assert_int_equal(out.len, b.len);
				assert_memory_equal(out.data, b.data, b.len);
			} else if (!out.failed && strcmp(pb_messages[i].name, "error") != 0) {
				assert_int_equal(rc, SKV_E_NOMEM);
			}
			skv_buf_destroy(&out);
			trip_end(&t);
		} while (asked >= n);
		assert_true(n > 1);
		skv_buf_destroy(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_messages_name_the_field), cmocka_unit_test(counts_are_bounded),
		cmocka_unit_test(cut_anywhere),
		cmocka_unit_test(freedoms_of_protobuf),
		cmocka_unit_test(any_order),
		cmocka_unit_test(texts_of_one_length),
		cmocka_unit_test(every_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
