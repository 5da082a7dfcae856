/*
 * binary_read.c - protobuf's binary form into a message, with a parser of our own.
 *
 * protobuf-c's parser has no depth limit, accepts any bytes as text, keeps unknown fields, and
 * fails on a field of another wire type; checking all that in advance would be this parser.
 *
 * Each message is walked twice: first the elements of repeated fields are counted, then everything
 * is stored, so memory is bounded by the input. No length is used before it was compared with what
 * is left. Stateless; any thread.
 */
#include "message.h"

#include <assert.h>
#include <endian.h>
#include <stdio.h>
#include <string.h>

#include <skv/utf8.h>

enum wire { VARINT = 0, FIXED64 = 1, BYTES = 2, GROUP = 3, GROUP_END = 4, FIXED32 = 5 };

struct field {
	uint32_t number;
	enum wire wire;
	uint64_t v;       /* VARINT, FIXED64, FIXED32 */
	const uint8_t *p; /* BYTES */
	size_t n;
};

static bool read_message(struct skv_proto_in *in, struct skv_rd r, ProtobufCMessage *m,
			 unsigned depth);

/* ---- bytes ----------------------------------------------------------------------------------- */

static uint64_t load64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, 8);
	return le64toh(v);
}

static uint32_t load32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, 4);
	return le32toh(v);
}

static inline uint64_t varint(struct skv_rd *r)
{
	const uint8_t *p = r->p, *end = r->end;
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 70 && p < end; shift += 7) {
		uint8_t c = *p++;

		v |= (uint64_t)(c & 0x7f) << shift;
		if (c < 0x80) {
			r->p = p;
			r->failed = r->failed || (shift == 63 && c > 1);
			return v;
		}
	}
	r->failed = true;
	return 0;
}

static bool cut(struct skv_proto_in *in, const char *what)
{
	return skv_proto_fail(in, SKV_E_INVALID, "not a protobuf message: %s", what);
}

static bool next_field(struct skv_proto_in *in, struct skv_rd *r, struct field *f, unsigned depth);

/* Skips to the end of a group. */
static bool skip_group(struct skv_proto_in *in, struct skv_rd *r, uint32_t number, unsigned depth)
{
	struct field f;

	do {
		if (r->p == r->end)
			return cut(in, "a group does not end");
		if (!next_field(in, r, &f, depth))
			return false;
	} while (f.wire != GROUP_END);
	return f.number == number || cut(in, "a group ends that did not begin");
}

/* Reads the next field; there are bytes. */
static bool next_field(struct skv_proto_in *in, struct skv_rd *r, struct field *f, unsigned depth)
{
	uint64_t tag = varint(r), n;
	size_t fixed;

	f->number = (uint32_t)(tag >> 3);
	f->wire = (enum wire)(tag & 7);
	if (r->failed || tag > UINT32_MAX || f->number == 0)
		return cut(in, "a field without a number");
	switch (f->wire) {
	case VARINT:
		f->v = varint(r);
		break;
	case FIXED64:
	case FIXED32:
		fixed = f->wire == FIXED64 ? 8 : 4;
		if (skv_rd_left(r) < fixed)
			return cut(in, "it ends inside a field");
		f->v = fixed == 8 ? load64(r->p) : load32(r->p);
		r->p += fixed;
		break;
	case BYTES:
		n = varint(r);
		if (r->failed || n > skv_rd_left(r))
			return cut(in, "it ends inside a field");
		f->p = r->p;
		f->n = (size_t)n;
		r->p += n;
		break;
	case GROUP:
		if (depth == 0)
			return skv_proto_fail(in, SKV_E_INVALID, "nested too deep");
		return skip_group(in, r, f->number, depth - 1);
	case GROUP_END:
		break;
	default:
		return cut(in, "a wire type that there is not");
	}
	return !r->failed || cut(in, "it ends inside a field");
}

/* ---- fields ---------------------------------------------------------------------------------- */

static enum wire wire_of(ProtobufCType type)
{
	switch (type) {
	case PROTOBUF_C_TYPE_STRING:
	case PROTOBUF_C_TYPE_BYTES:
	case PROTOBUF_C_TYPE_MESSAGE:
		return BYTES;
	case PROTOBUF_C_TYPE_FIXED64:
	case PROTOBUF_C_TYPE_SFIXED64:
	case PROTOBUF_C_TYPE_DOUBLE:
		return FIXED64;
	case PROTOBUF_C_TYPE_FIXED32:
	case PROTOBUF_C_TYPE_SFIXED32:
	case PROTOBUF_C_TYPE_FLOAT:
		return FIXED32;
	default:
		return VARINT;
	}
}

static const ProtobufCFieldDescriptor *find(const ProtobufCMessageDescriptor *d, uint32_t number)
{
	if (number <= d->n_fields && d->fields[number - 1].id == number) /* no gaps: the usual */
		return &d->fields[number - 1];
	return protobuf_c_message_descriptor_get_field(d, number);
}

/* Returns true if the wire type matches the declaration, or packed numbers of it. */
static bool wire_fits(const ProtobufCFieldDescriptor *d, const struct field *f, bool *packed)
{
	enum wire wire = wire_of(d->type);

	*packed = f->wire == BYTES && wire != BYTES && skv_proto_repeated(d);
	return f->wire == wire || *packed;
}

/* Counts the varints in these bytes. */
static size_t count_varints(const uint8_t *p, size_t n)
{
	size_t count = 0, i = 0;

	for (; i + 8 <= n; i += 8)
		count += (size_t)__builtin_popcountll(~load64(p + i) & 0x8080808080808080u);
	for (; i < n; i++)
		count += p[i] < 0x80;
	return count;
}

static bool count_packed(struct skv_proto_in *in, const ProtobufCFieldDescriptor *d,
			 const struct field *f, size_t *n)
{
	enum wire wire = wire_of(d->type);
	size_t size = wire == FIXED64 ? 8 : 4;

	if (wire == VARINT) {
		*n += count_varints(f->p, f->n);
		return f->n == 0 || f->p[f->n - 1] < 0x80 ||
		       cut(in, "the last packed number is cut");
	}
	*n += f->n / size;
	return f->n % size == 0 || cut(in, "the last packed number is cut");
}

/* ---- values ---------------------------------------------------------------------------------- */

static bool is_text(const uint8_t *s, size_t n)
{
	const uint64_t ones = 0x0101010101010101u, highs = 0x8080808080808080u;
	uint32_t c;

	for (size_t i = 0; i < n;) {
		uint64_t x = n - i >= 8 ? load64(s + i) : 0;
		size_t k = 1;

		if (n - i >= 8 && !(x & highs) && !((x - ones) & ~x & highs))
			k = 8; /* ASCII without NUL */
		else if (s[i] >= 0x80)
			k = skv_utf8_next((const char *)s + i, n - i, &c);
		else if (s[i] == 0)
			return false;
		if (k == 0)
			return false;
		i += k;
	}
	return true;
}

static bool read_text(struct skv_proto_in *in, const struct field *f, char **out)
{
	if (!is_text(f->p, f->n))
		return skv_proto_fail(in, SKV_E_INVALID, "is not UTF-8 without NUL");
	*out = skv_proto_text(in, f->p, f->n);
	return *out != NULL;
}

static bool read_bytes(struct skv_proto_in *in, const struct field *f, ProtobufCBinaryData *out)
{
	out->data = skv_proto_alloc(in, f->n, 1);
	if (!out->data)
		return false;
	memcpy(out->data, f->p, f->n);
	out->len = f->n;
	return true;
}

static void put_number(ProtobufCType type, uint64_t v, void *out)
{
	switch (type) {
	case PROTOBUF_C_TYPE_SINT32:
		*(uint32_t *)out = (uint32_t)v >> 1 ^ (0 - ((uint32_t)v & 1));
		break;
	case PROTOBUF_C_TYPE_SINT64:
		*(uint64_t *)out = v >> 1 ^ (0 - (v & 1));
		break;
	case PROTOBUF_C_TYPE_BOOL:
		*(protobuf_c_boolean *)out = v != 0;
		break;
	default:
		if (skv_proto_value_size(type) == 8)
			*(uint64_t *)out = v;
		else
			*(uint32_t *)out = (uint32_t)v;
	}
}

/* `old`: the message read so far, to be merged with this piece; or NULL. */
static bool read_submessage(struct skv_proto_in *in, const ProtobufCFieldDescriptor *d,
			    const struct field *f, ProtobufCMessage *old, void *out, unsigned depth)
{
	ProtobufCMessage *m = old;

	if (depth == 0)
		return skv_proto_fail(in, SKV_E_INVALID, "nested too deep");
	if (!m)
		m = skv_proto_new(in, d->descriptor);
	if (!m || !read_message(in, skv_rd_make(f->p, f->n), m, depth - 1))
		return false;
	*(ProtobufCMessage **)out = m;
	return true;
}

static bool read_value(struct skv_proto_in *in, const ProtobufCFieldDescriptor *d,
		       const struct field *f, ProtobufCMessage *old, void *out, unsigned depth)
{
	switch (d->type) {
	case PROTOBUF_C_TYPE_STRING:
		return read_text(in, f, out);
	case PROTOBUF_C_TYPE_BYTES:
		return read_bytes(in, f, out);
	case PROTOBUF_C_TYPE_MESSAGE:
		return read_submessage(in, d, f, old, out, depth);
	default:
		put_number(d->type, f->v, out);
		return true;
	}
}

static bool read_packed(struct skv_proto_in *in, const ProtobufCFieldDescriptor *d,
			const struct field *f, char *out, size_t *n)
{
	struct skv_rd r = skv_rd_make(f->p, f->n);
	size_t size = skv_proto_value_size(d->type);
	enum wire wire = wire_of(d->type);

	assert(wire != BYTES && (wire != FIXED64 || f->n % 8 == 0) &&
	       (wire != FIXED32 || f->n % 4 == 0));
	if (wire == VARINT &&
	    (d->type == PROTOBUF_C_TYPE_INT64 || d->type == PROTOBUF_C_TYPE_UINT64)) {
		uint64_t *numbers = (uint64_t *)(void *)out;

		while (r.p < r.end && !r.failed)
			numbers[(*n)++] = varint(&r);
		return !r.failed || cut(in, "a packed number of more than 64 bits");
	}
	while (r.p < r.end && !r.failed) {
		uint64_t v = wire == VARINT    ? varint(&r)
			     : wire == FIXED64 ? load64(r.p)
					       : load32(r.p);

		if (wire != VARINT)
			r.p += wire == FIXED64 ? 8 : 4;
		put_number(d->type, v, out + (*n)++ * size);
	}
	return !r.failed || cut(in, "a packed number of more than 64 bits");
}

static bool store_repeated(struct skv_proto_in *in, const ProtobufCFieldDescriptor *d,
			   const struct field *f, ProtobufCMessage *m, struct skv_proto_at *at,
			   bool packed, unsigned depth)
{
	size_t *n = skv_proto_count(m, d), size = skv_proto_value_size(d->type);
	char *all = *(char **)skv_proto_member(m, d);

	assert(skv_proto_repeated(d));
	if (packed)
		return read_packed(in, d, f, all, n);
	assert(all);
	at->index = (uint32_t)*n;
	if (!read_value(in, d, f, NULL, all + *n * size, depth))
		return false;
	++*n;
	return true;
}

static bool store_single(struct skv_proto_in *in, const ProtobufCFieldDescriptor *d,
			 const struct field *f, ProtobufCMessage *m, unsigned depth)
{
	bool in_oneof = skv_proto_in_oneof(d), same = !in_oneof || *skv_proto_case(m, d) == d->id;
	ProtobufCMessage *old = NULL;

	assert(!skv_proto_repeated(d));
	if (d->type == PROTOBUF_C_TYPE_MESSAGE && same)
		old = *(ProtobufCMessage **)skv_proto_member(m, d);
	if (!read_value(in, d, f, old, skv_proto_member(m, d), depth))
		return false;
	if (in_oneof)
		*skv_proto_case(m, d) = d->id;
	return true;
}

/* ---- messages -------------------------------------------------------------------------------- */

static bool has_repeated(const ProtobufCMessageDescriptor *d)
{
	for (unsigned i = 0; i < d->n_fields; i++)
		if (skv_proto_repeated(&d->fields[i]))
			return true;
	return false;
}

/* Makes room for the coming elements of repeated fields, after the present ones. */
static bool make_room(struct skv_proto_in *in, struct skv_rd r, ProtobufCMessage *m, unsigned depth)
{
	const ProtobufCMessageDescriptor *d = m->descriptor;
	size_t more[SKV_PROTO_FIELDS] = { 0 };
	struct field f;
	bool packed;

	while (r.p < r.end) {
		const ProtobufCFieldDescriptor *field;
		size_t *n;

		if (!next_field(in, &r, &f, depth))
			return false;
		field = f.wire == GROUP_END ? NULL : find(d, f.number);
		if (!field || !skv_proto_repeated(field) || !wire_fits(field, &f, &packed))
			continue;
		assert(field - d->fields < SKV_PROTO_FIELDS);
		n = &more[field - d->fields];
		if (!packed)
			++*n;
		else if (!count_packed(in, field, &f, n))
			return false;
	}
	for (unsigned i = 0; i < d->n_fields; i++) {
		const ProtobufCFieldDescriptor *field = &d->fields[i];
		size_t size = skv_proto_value_size(field->type), have;
		void **all = skv_proto_member(m, field);
		void *grown;

		if (more[i] == 0)
			continue;
		have = *skv_proto_count(m, field);
		grown = skv_proto_alloc(in, have + more[i], size);
		if (!grown)
			return false;
		if (have > 0)
			memcpy(grown, *all, have * size);
		*all = grown;
	}
	return true;
}

/* A skipped field has only a number, unless it is known here with another type. */
static void note(struct skv_proto_in *in, const ProtobufCFieldDescriptor *d, const struct field *f)
{
	char number[16];

	if (!in->notes)
		return;
	snprintf(number, sizeof number, "%u", f->number);
	skv_proto_note_field(in, d ? d->name : number, strlen(d ? d->name : number));
}

static bool read_message(struct skv_proto_in *in, struct skv_rd r, ProtobufCMessage *m,
			 unsigned depth)
{
	const ProtobufCMessageDescriptor *d = m->descriptor;
	struct skv_proto_at at = { .up = in->at };
	bool packed, ok = true;
	struct field f;

	if (has_repeated(d) && !make_room(in, r, m, depth))
		return false;
	while (ok && r.p < r.end) {
		const ProtobufCFieldDescriptor *field;

		if (!next_field(in, &r, &f, depth))
			return false;
		if (f.wire == GROUP_END)
			return cut(in, "a group ends that did not begin");
		field = find(d, f.number);
		if (!field || !wire_fits(field, &f, &packed)) {
			note(in, field, &f);
			continue;
		}
		at.name = field->name;
		at.index = NO_INDEX;
		in->at = &at;
		if (skv_proto_repeated(field))
			ok = store_repeated(in, field, &f, m, &at, packed, depth);
		else
			ok = store_single(in, field, &f, m, depth);
		assert(in->at == &at);
		in->at = at.up;
	}
	for (unsigned i = 0; ok && i < d->n_fields; i++)
		if (skv_proto_is_map(d, &d->fields[i]))
			ok = skv_proto_end_map(in, m, &d->fields[i]);
	return ok;
}

int skv_proto_read_binary(const ProtobufCMessageDescriptor *d, const void *bytes, size_t n,
			  struct skv_arena *a, ProtobufCMessage **out, struct skv_error *err)
{
	return skv_proto_read_binary_noted(d, bytes, n, a, NULL, out, err);
}

int skv_proto_read_binary_noted(const ProtobufCMessageDescriptor *d, const void *bytes, size_t n,
				struct skv_arena *a, struct skv_proto_notes *notes,
				ProtobufCMessage **out, struct skv_error *err)
{
	struct skv_proto_in in = skv_proto_open(n, a, err);
	ProtobufCMessage *m = skv_proto_new(&in, d);

	in.notes = notes;
	if (notes)
		notes->fields[0] = notes->value[0] = '\0';
	if (m && read_message(&in, skv_rd_make(bytes, n), m, SKV_PROTO_DEPTH))
		*out = m;
	return in.status;
}
