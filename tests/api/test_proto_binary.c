/*
 * test_proto_binary.c - the binary reader: against protobuf-c's, on random messages of all types
 * and in pieces, and on bytes that are none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <skv/mem.h>
#include <kvcm/admin.pb-c.h>
#include <kvcm/meta.pb-c.h>

#include "all_types.pb-c.h"
#include "proto_tools.h"
#include "random_message.h"

#define ALL (&skv__test__all__descriptor)

static const ProtobufCMessageDescriptor *const types[] = {
	&skv__test__all__descriptor,
	&skv__test__sparse__descriptor,
	&kvcm_meta__report_event_request__descriptor,
	&kvcm_meta__get_cache_meta_response__descriptor,
	&kvcm_admin__list_instance_group_response__descriptor,
	&kvcm_admin__list_storage_response__descriptor,
	&kvcm_admin__get_metrics_response__descriptor,
};
#define N_TYPES (sizeof types / sizeof types[0])

/* Both forms read back give the same bytes. */
static void round_trip(struct tools *t, const ProtobufCMessage *m, uint64_t seed)
{
	size_t n, again;
	char *bytes, *text;
	ProtobufCMessage *read;

	bytes = (char *)tools_write_binary(t, m, &n);
	bytes = memcpy(malloc(n + 1), bytes, n);
	read = tools_read(t, &skv_proto_binary, m->descriptor, bytes, n);
	assert_non_null(read);
	if (memcmp(bytes, tools_write_binary(t, read, &again), n) != 0 || n != again)
		fail_msg("%s, seed %llu: binary differs", m->descriptor->name,
			 (unsigned long long)seed);
	text = strdup(tools_write_json(t, m, NULL));
	read = tools_read_json(t, m->descriptor, text);
	if (!read)
		fail_msg("%s, seed %llu: %s refused: %s %s", m->descriptor->name,
			 (unsigned long long)seed, text, t->err.field, t->err.message);
	assert_string_equal(tools_write_json(t, read, NULL), text);
	if (memcmp(bytes, tools_write_binary(t, read, &again), n) != 0 || n != again)
		fail_msg("%s, seed %llu: %s differs", m->descriptor->name, (unsigned long long)seed,
			 text);
	free(text);
	free(bytes);
}

static void test_round_trips(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 3000; seed++) {
		struct tools t;
		struct dice d = { seed, &t.arena };

		tools_open(&t);
		round_trip(&t, dice_message(&d, types[seed % N_TYPES], 3), seed);
		tools_close(&t);
	}
}

/* Is there what protobuf-c 1.4 reads wrongly? A submessage of proto3 in pieces loses
 * fields that the second does not have; a bool is read from bytes of any wire type. Ends
 * at what it does not understand. */
static bool is_misread(const ProtobufCMessageDescriptor *type, const uint8_t *bytes, size_t size)
{
	struct skv_rd r = skv_rd_make(bytes, size);
	bool seen[SKV_PROTO_FIELDS] = { false };

	while (r.p < r.end && !r.failed) {
		uint64_t tag = skv_get_varint(&r), n = 0;
		const ProtobufCFieldDescriptor *f =
			protobuf_c_message_descriptor_get_field(type, (unsigned)(tag >> 3));
		const uint8_t *p;

		if (f && f->type == PROTOBUF_C_TYPE_BOOL && (tag & 7) != 0)
			return true;
		switch (tag & 7) {
		case 0:
			skv_get_varint(&r);
			continue;
		case 1:
			skv_get_u64(&r);
			continue;
		case 5:
			skv_get_u32(&r);
			continue;
		case 2:
			n = skv_get_varint(&r);
			break;
		default:
			return false;
		}
		p = skv_get_bytes(&r, n);
		if (!p || !f || f->type != PROTOBUF_C_TYPE_MESSAGE)
			continue;
		if (f->label != PROTOBUF_C_LABEL_REPEATED && seen[f - type->fields])
			return true;
		seen[f - type->fields] = true;
		if (is_misread(f->descriptor, p, n))
			return true;
	}
	return false;
}

/* Random bytes changed in random messages: what both readers take, they read the same. */
static void test_against_protobuf_c(void **state)
{
	(void)state;
	unsigned both = 0;

	for (uint64_t seed = 0; seed < 6000; seed++) {
		const ProtobufCMessageDescriptor *type = types[seed % N_TYPES];
		ProtobufCMessage *ours, *theirs;
		struct tools t;
		struct dice d = { seed, &t.arena };
		uint8_t *bytes, *packed;
		size_t n, n_packed, n_ours;

		tools_open(&t);
		bytes = (uint8_t *)tools_write_binary(&t, dice_message(&d, type, 3), &n);
		bytes = memcpy(malloc(n + 1), bytes, n);
		for (unsigned i = dice_below(&d, 3); n > 0 && i > 0; i--)
			bytes[dice_below(&d, (uint32_t)n)] = (uint8_t)dice_roll(&d);
		ours = tools_read(&t, &skv_proto_binary, type, bytes, n);
		theirs = protobuf_c_message_unpack(type, NULL, n, bytes);
		if (ours && theirs && !is_misread(type, bytes, n)) {
			/* Theirs keeps unknown fields, ours drops them: compare what JSON says. */
			char *text = strdup(tools_write_json(&t, ours, NULL));

			both++;
			if (strcmp(text, tools_write_json(&t, theirs, NULL)) != 0)
				fail_msg("%s, seed %llu: read as\n%s\nnot\n%s", type->name,
					 (unsigned long long)seed, text,
					 tools_write_json(&t, theirs, NULL));
			free(text);
			n_packed = protobuf_c_message_get_packed_size(ours);
			packed = malloc(n_packed + 1);
			protobuf_c_message_pack(ours, packed);
			assert_memory_equal(packed, tools_write_binary(&t, ours, &n_ours),
					    n_packed);
			assert_int_equal(n_ours, n_packed);
			free(packed);
		}
		if (theirs)
			protobuf_c_message_free_unpacked(theirs, NULL);
		free(bytes);
		tools_close(&t);
	}
	print_message("%u messages read by both\n", both);
	assert_true(both > 2000);
}

/* Every message cut anywhere is refused or a shorter message; the sanitizers watch. */
static void test_cut(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 40; seed++) {
		struct tools t;
		struct dice d = { seed, &t.arena };
		uint8_t *bytes;
		size_t n;

		tools_open(&t);
		bytes = (uint8_t *)tools_write_binary(
			&t, dice_message(&d, types[seed % N_TYPES], 2), &n);
		bytes = memcpy(malloc(n + 1), bytes, n);
		for (size_t i = 0; i < n; i++)
			tools_read(&t, &skv_proto_binary, types[seed % N_TYPES], bytes, i);
		free(bytes);
		tools_close(&t);
	}
}

/* Bytes of ALL, and what of them is written as JSON; NULL: refused at `where`. */
static void test_bytes(void **state)
{
	(void)state;
#define BYTES(s) s, sizeof(s) - 1
	static const struct {
		const char *bytes;
		size_t n;
		const char *want, *where;
	} cases[] = {
		{ BYTES(""), "{\"i32\":0", NULL },
		{ BYTES("\x08\x07"), "\"i32\":7,", NULL },
		{ BYTES("\x08\x07\x08\x08"), "\"i32\":8,", NULL }, /* the last one wins */
		{ BYTES("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), "\"i32\":-1,", NULL },
		{ BYTES("\x08\xff\xff\xff\xff\x0f"), "\"i32\":-1,", NULL },
		/* over 64 bits */
		{ BYTES("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"), NULL, "" },
		{ BYTES("\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00"), NULL, "" },
		{ BYTES("\x08"), NULL, "" },
		{ BYTES("\x00\x00"), NULL, "" }, /* no number */
		{ BYTES("\x80\x80\x80\x80\x80\x01\x00"), NULL, "" },
		{ BYTES("\x0a\x01x\x08\x07"), "\"i32\":7,", NULL }, /* i32 as bytes: skipped */
		{ BYTES("\x7a\x02\xc3\xa9"), "\"text\":\"\xc3\xa9\"", NULL },
		{ BYTES("\x7a\x01\xff"), NULL, "text" },
		{ BYTES("\x7a\x01\0"), NULL, "text" },
		{ BYTES("\x7a\x09\x31" "2345678\0"), NULL, "text" },
		{ BYTES("\x7a\x09\x31" "2345\000" "789"), NULL, "text" },
		{ BYTES("\x7a\x05xxxx"), NULL, "" },
		{ BYTES("\x78\x01"), "\"text\":\"\"", NULL },
		/* many_i32 (21) packed, not packed, both, and cut */
		{ BYTES("\xaa\x01\x03\x01\x02\x03"), "\"many_i32\":[1,2,3]", NULL },
		{ BYTES("\xa8\x01\x01\xaa\x01\x02\x02\x03\xa8\x01\x04"), "\"many_i32\":[1,2,3,4]",
		  NULL },
		{ BYTES("\xaa\x01\x02\x01\x80"), NULL, "" },
		{ BYTES("\xaa\x01\x00"), "\"many_i32\":[]", NULL },
		/* many_sf32 (23): not a whole number */
		{ BYTES("\xba\x01\x05\x01\x02\x03\x04\x05"), NULL, "" },
		{ BYTES("\xba\x01\x04\xff\xff\xff\xff"), "\"many_sf32\":[-1]", NULL },
		/* more (17) in pieces: merged, also what is repeated in it */
		{ BYTES("\x8a\x01\x05\x08\x07\xa8\x01\x01\x8a\x01\x05\xa8\x01\x02\x10\x04"),
		  "\"more\":{\"i32\":7,\"s32\":2,", NULL },
		{ BYTES("\x8a\x01\x03\xa8\x01\x01\x8a\x01\x03\xa8\x01\x02"), "\"many_i32\":[1,2]",
		  NULL },
		/* oneof: the last member, merged only with itself */
		{ BYTES("\xc0\x02\x05\xca\x02\x01x"), "\"one_text\":\"x\"", NULL },
		{ BYTES("\xd2\x02\x02\x08\x07\xd2\x02\x02\x10\x04"),
		  "\"one_more\":{\"i32\":7,\"s32\":2,", NULL },
		{ BYTES("\xd2\x02\x02\x08\x07\xc0\x02\x00"), "\"one_i32\":0", NULL },
		{ BYTES("\xc0\x02\x05\xd2\x02\x02\x10\x04"), "\"one_more\":{\"i32\":0,\"s32\":2,",
		  NULL },
		/* unknown groups (1000), nested and not closed */
		{ BYTES("\xc3\x3e\x08\x01\xc4\x3e\x08\x07"), "\"i32\":7,", NULL },
		{ BYTES("\xc3\x3e\xc3\x3e\xc4\x3e\xc4\x3e\x08\x07"), "\"i32\":7,", NULL },
		{ BYTES("\xc3\x3e\x08\x01"), NULL, "" },
		{ BYTES("\xc3\x3e\xcc\x3e"), NULL, "" },
		{ BYTES("\xc4\x3e"), NULL, "" },
		{ BYTES("\x0e\x00"), NULL, "" }, /* wire types 6, 7 */
		{ BYTES("\x0f\x00"), NULL, "" },
		{ BYTES("\x59\x00\x00\x00\x00\x00\x00\x00"), NULL, "" }, /* 7 of 8 bytes */
		{ BYTES("\xaa\x02\x04\x7a\x02\xff\xff"), NULL, "many_more[0].text" },
		/* map entries: key and value left out */
		{ BYTES("\x92\x03\x00"), "\"text_of_text\":{\"\":\"\"}", NULL },
		{ BYTES("\x92\x03\x06\x0a\x01k\x12\x01"
			"a\x92\x03\x03\x0a\x01x\x92\x03\x06\x0a\x01k\x12\x01"
			"b"),
		  "\"text_of_text\":{\"x\":\"\",\"k\":\"b\"}", NULL }, /* the last of a key */
		{ BYTES("\x9a\x03\x03\x0a\x01k"), "\"all_of_text\":{\"k\":{\"i32\":0,", NULL },
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct tools t;
		ProtobufCMessage *m;
		const char *text;

		tools_open(&t);
		m = tools_read(&t, &skv_proto_binary, ALL, cases[i].bytes, cases[i].n);
		if (m && cases[i].want) {
			text = tools_write_json(&t, m, NULL);
			if (!strstr(text, cases[i].want))
				fail_msg("case %zu: %s, without %s", i, text, cases[i].want);
		} else if (m || cases[i].want) {
			fail_msg("case %zu: %s (%s: %s)", i, m ? "taken" : "refused", t.err.field,
				 t.err.message);
		} else if (strcmp(t.err.field, cases[i].where) != 0) {
			fail_msg("case %zu: refused at '%s' (%s)", i, t.err.field, t.err.message);
		}
		tools_close(&t);
	}
}

static void wrap(struct skv_buf *b, bool group)
{
	struct skv_buf out = { 0 };

	skv_put_varint(&out, group ? 1000 << 3 | 3 : 17 << 3 | 2);
	if (!group)
		skv_put_varint(&out, b->len);
	skv_put_bytes(&out, b->data, b->len);
	if (group)
		skv_put_varint(&out, 1000 << 3 | 4);
	skv_buf_destroy(b);
	*b = out;
}

static void test_depth(void **state)
{
	(void)state;
	for (unsigned group = 0; group < 2; group++) {
		struct skv_buf b = { 0 };

		for (unsigned depth = 0; depth <= SKV_PROTO_DEPTH + 1; depth++) {
			struct tools t;

			tools_open(&t);
			assert_true((tools_read(&t, &skv_proto_binary, ALL, b.data, b.len) !=
				     NULL) == (depth <= SKV_PROTO_DEPTH));
			tools_close(&t);
			wrap(&b, group);
		}
		skv_buf_destroy(&b);
	}
}

/* Submessages of two bytes each do not take hundreds, in a row or in pieces that grow an array. */
static void test_expansion(void **state)
{
	(void)state;
	static const struct {
		const char *piece;
		size_t n;
	} pieces[] = { { "\xaa\x02\x00", 3 }, { "\x8a\x01\x03\xa8\x01\x01", 6 } };

	for (size_t i = 0; i < 2; i++) {
		struct skv_buf b = { 0 };
		struct tools t;

		tools_open(&t);
		for (unsigned n = 0; n < 100000; n++)
			skv_put_bytes(&b, pieces[i].piece, pieces[i].n);
		assert_null(tools_read(&t, &skv_proto_binary, ALL, b.data, b.len));
		assert_int_equal(t.err.status, SKV_E_TOO_LARGE);
		assert_true(t.arena.total < 60 * b.len);
		skv_buf_destroy(&b);
		tools_close(&t);
	}
}

/* The n-th allocation fails, for all n, in both forms. */
static void test_no_memory(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 12; seed++) {
		const struct skv_proto_codec *codec =
			seed % 2 ? &skv_proto_json : &skv_proto_binary;
		const ProtobufCMessageDescriptor *type = types[seed / 2 % N_TYPES];
		struct skv_buf b = { 0 };
		struct tools made;
		struct dice d = { seed, &made.arena };
		unsigned long n = 0;
		int status;

		tools_open(&made);
		codec->write(dice_message(&d, type, 3), NULL, &b);
		do {
			ProtobufCMessage *m = NULL;
			struct tools t;

			tools_open(&t);
			skv_mem_fail_at(++n);
			status = codec->read(type, b.data, b.len, &t.arena, &m, &t.err);
			if (status == SKV_OK)
				codec->write(m, NULL, &t.out);
			skv_mem_fail_at(0);
			assert_true(status == SKV_OK || status == SKV_E_NOMEM);
			if (status == SKV_OK && t.out.failed)
				status = SKV_E_NOMEM;
			else if (status == SKV_OK)
				assert_memory_equal(t.out.data, b.data, b.len);
			tools_close(&t);
		} while (status != SKV_OK);
		skv_buf_destroy(&b);
		tools_close(&made);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trips), cmocka_unit_test(test_against_protobuf_c),
		cmocka_unit_test(test_cut),	    cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_depth),	    cmocka_unit_test(test_expansion),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
