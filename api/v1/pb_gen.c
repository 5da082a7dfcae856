/*
 * pb_gen.c - between protobuf-c and the codec: checked parsing into an arena, packing into a buffer.
 *
 * No state; any thread.
 */
#include "pb_gen.h"

#include <skv/utf8.h>

#define DEPTH 8u       /* of our own messages, with room */
#define NUMBERS_MAX 32u /* field numbers of the cold messages lie below */

/* ---- reading ------------------------------------------------------------------------------------ */

static unsigned wire_of(ProtobufCType type)
{
	switch (type) {
	case PROTOBUF_C_TYPE_STRING:
	case PROTOBUF_C_TYPE_BYTES:
	case PROTOBUF_C_TYPE_MESSAGE:
		return PB_BYTES;
	case PROTOBUF_C_TYPE_FIXED64:
	case PROTOBUF_C_TYPE_SFIXED64:
	case PROTOBUF_C_TYPE_DOUBLE:
		return PB_FIXED64;
	case PROTOBUF_C_TYPE_FIXED32:
	case PROTOBUF_C_TYPE_SFIXED32:
	case PROTOBUF_C_TYPE_FLOAT:
		return PB_FIXED32;
	default:
		return PB_VARINT;
	}
}

static void check(struct skv_pbdoc *d, const ProtobufCMessageDescriptor *type, struct skv_rd r,
		  unsigned depth, size_t *fields);

static void check_field(struct skv_pbdoc *d, const ProtobufCFieldDescriptor *field,
			const struct skv_pbf *f, uint32_t index, unsigned depth, size_t *fields)
{
	struct skv_pbat here = { d->at, field->name, index };

	if (!skv_pb_wire(d, f, field->name, wire_of(field->type)))
		return;
	if (field->type == PROTOBUF_C_TYPE_UINT32 && f->v > UINT32_MAX)
		skv_pb_u32(d, f, field->name, UINT32_MAX); /* says so */
	if (field->type == PROTOBUF_C_TYPE_STRING && !skv_pb_utf8(f->p, f->n))
		skv_pb_fail(d, field->name, index, SKV_E_INVALID, "is not UTF-8 without NUL");
	if (field->type != PROTOBUF_C_TYPE_MESSAGE)
		return;
	if (depth == 0)
		skv_pb_fail(d, field->name, index, SKV_E_INVALID, "nested too deep");
	d->at = &here;
	check(d, field->descriptor, skv_rd_make(f->p, f->n), depth ? depth - 1 : 0, fields);
	d->at = here.up;
}

static void check(struct skv_pbdoc *d, const ProtobufCMessageDescriptor *type, struct skv_rd r,
		  unsigned depth, size_t *fields)
{
	uint32_t seen[NUMBERS_MAX] = { 0 };
	struct skv_pbf f;

	while (skv_pb_next(d, &r, &f)) {
		const ProtobufCFieldDescriptor *field =
			f.num < NUMBERS_MAX ? protobuf_c_message_descriptor_get_field(type, f.num)
					    : NULL;
		bool many = field && field->label == PROTOBUF_C_LABEL_REPEATED;

		if (++*fields > SKV_PB_FIELDS)
			skv_pb_fail(d, NULL, 0, SKV_E_TOO_LARGE, "more than %u fields in one message",
				    SKV_PB_FIELDS);
		if (field)
			check_field(d, field, &f, many ? seen[f.num]++ : PB_NO_INDEX, depth, fields);
	}
}

struct memory {
	struct skv_arena *arena;
	bool failed;
};

static void *arena_alloc(void *data, size_t size)
{
	struct memory *m = data;
	void *p = skv_arena_alloc(m->arena, size);

	m->failed = m->failed || !p;
	return p;
}

static void arena_free(void *data, void *p)
{
	(void)data;
	(void)p;
}

void *skv_pb_unpack(struct skv_pbdoc *d, const ProtobufCMessageDescriptor *type, const char *text,
		    size_t n)
{
	struct memory memory = { d->in->arena, false };
	ProtobufCAllocator allocator = { arena_alloc, arena_free, &memory };
	size_t fields = 0;
	void *m;

	check(d, type, skv_rd_make(text, n), DEPTH, &fields);
	if (!skv_pb_ok(d))
		return NULL;
	m = protobuf_c_message_unpack(type, &allocator, n, (const uint8_t *)text);
	if (!m && memory.failed)
		skv_pb_fail(d, NULL, 0, SKV_E_NOMEM, "out of memory");
	else if (!m)
		skv_pb_fail(d, NULL, 0, SKV_E_INVALID, "not a protobuf message");
	return m;
}

const char *skv_pb_check_name(struct skv_pbdoc *d, const char *s, const char *name, uint32_t index)
{
	if (skv_name_valid(s, strlen(s)))
		return s;
	skv_pb_fail(d, name, index, SKV_E_INVALID,
		    "a name is 1 to %u of A-Z a-z 0-9 . _ - : = @ + , and begins with a letter, digit or _",
		    SKV_MAX_NAME);
	return "";
}

const char *skv_pb_check_model_name(struct skv_pbdoc *d, const char *s, const char *name, uint32_t index)
{
	if (skv_model_name_valid(s, strlen(s)))
		return s;
	skv_pb_fail(d, name, index, SKV_E_INVALID,
		    "a name is 1 to %u of A-Z a-z 0-9 . _ - : = @ + , in parts with a / between them that begin with a letter, digit or _",
		    SKV_MAX_NAME);
	return "";
}

const char *skv_pb_check_text(struct skv_pbdoc *d, const char *s, const char *name, size_t max)
{
	if (strlen(s) <= max)
		return s;
	skv_pb_fail(d, name, PB_NO_INDEX, SKV_E_INVALID, "must be a string of 0 to %zu bytes, not %zu",
		    max, strlen(s));
	return "";
}

/* ---- writing ------------------------------------------------------------------------------------ */

void *skv_pb_make(struct skv_pbmake *m, size_t n, size_t size)
{
	void *p = m->failed ? NULL : skv_arena_calloc(&m->arena, n, size);

	if (!p)
		m->failed = true;
	return p;
}

char *skv_pb_make_text(struct skv_pbmake *m, const char *s)
{
	static char none[] = "";
	size_t n = strlen(s);
	char *copy = m->failed ? NULL : skv_arena_strndup(&m->arena, s, n);
	uint32_t c;

	if (!copy) {
		m->failed = true;
		return none;
	}
	for (size_t i = 0; i < n;) {
		size_t k = skv_utf8_next(copy + i, n - i, &c);

		if (k == 0)
			copy[i] = '?';
		i += k ? k : 1;
	}
	return copy;
}

void **skv_pb_make_messages(struct skv_pbmake *m, size_t n, size_t size, void (*init)(void *))
{
	void **all = skv_pb_make(m, n, sizeof *all);

	for (size_t i = 0; all && i < n; i++) {
		all[i] = skv_pb_make(m, 1, size);
		if (!all[i])
			return NULL;
		init(all[i]);
	}
	return all;
}

void skv_pb_pack(struct skv_pbmake *m, struct skv_buf *out, const void *message)
{
	size_t n;

	if (m->failed || !message) {
		out->failed = true;
	} else {
		n = protobuf_c_message_get_packed_size(message);
		if (skv_buf_reserve(out, n + 1))
			out->len += protobuf_c_message_pack(message, out->data + out->len);
	}
	skv_arena_destroy(&m->arena);
}
