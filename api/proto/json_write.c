/*
 * json_write.c - a message as proto3 JSON: fields in order of number, without intermediate tree.
 *
 * Stateless; any thread.
 */
#include "message.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <skv/json_out.h>

static void write_fields(const ProtobufCMessage *m, const struct skv_proto_splice *splices,
			 struct skv_buf *out);

/* The shortest text by printf that reads back exactly. */
static void write_real(struct skv_buf *out, double v, bool single)
{
	char text[40];
	int n;

	if (!isfinite(v)) {
		skv_jout_string(out, isnan(v) ? "NaN" : v > 0 ? "Infinity" : "-Infinity");
		return;
	}
	if (v == 0 && signbit(v)) { /* -0 alone is the integer 0 */
		skv_jout_plain(out, "-0.0", 4);
		return;
	}
	n = snprintf(text, sizeof text, "%.*g", single ? FLT_DIG : DBL_DIG, v);
	if (single ? strtof(text, NULL) != (float)v : strtod(text, NULL) != v)
		n = snprintf(text, sizeof text, "%.*g", single ? FLT_DECIMAL_DIG : DBL_DECIMAL_DIG,
			     v);
	skv_jout_plain(out, text, (size_t)n);
}

/* The binary form omits -0.0 in a field without presence, as the default, so it is 0 here too. */
static double as_kept(const ProtobufCFieldDescriptor *f, double v)
{
	return f->label == PROTOBUF_C_LABEL_NONE && !skv_proto_in_oneof(f) && v == 0 ? 0 : v;
}

/* protobuf-c's own search misses the largest number. */
static void write_enum(struct skv_buf *out, const ProtobufCEnumDescriptor *d, int32_t v)
{
	unsigned low = 0, high = d->n_values;

	while (low < high) {
		unsigned middle = (low + high) / 2;

		if (d->values[middle].value < v)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < d->n_values && d->values[low].value == v)
		skv_jout_string(out, d->values[low].name);
	else
		skv_jout_i64(out, v);
}

static void write_bytes(struct skv_buf *out, const ProtobufCBinaryData *v)
{
	skv_jout_plain(out, "", 0); /* a comma, if needed */
	skv_proto_base64_write(out, v->data, v->len);
}

static void write_value(struct skv_buf *out, const ProtobufCFieldDescriptor *f, const void *v)
{
	const ProtobufCMessage *m;

	switch (f->type) {
	case PROTOBUF_C_TYPE_INT32:
	case PROTOBUF_C_TYPE_SINT32:
	case PROTOBUF_C_TYPE_SFIXED32:
		skv_jout_i64(out, *(const int32_t *)v);
		break;
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_SINT64:
	case PROTOBUF_C_TYPE_SFIXED64:
		skv_jout_i64_string(out, *(const int64_t *)v);
		break;
	case PROTOBUF_C_TYPE_UINT32:
	case PROTOBUF_C_TYPE_FIXED32:
		skv_jout_u64(out, *(const uint32_t *)v);
		break;
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_FIXED64:
		skv_jout_u64_string(out, *(const uint64_t *)v);
		break;
	case PROTOBUF_C_TYPE_FLOAT:
		write_real(out, as_kept(f, *(const float *)v), true);
		break;
	case PROTOBUF_C_TYPE_DOUBLE:
		write_real(out, as_kept(f, *(const double *)v), false);
		break;
	case PROTOBUF_C_TYPE_BOOL:
		skv_jout_bool(out, *(const protobuf_c_boolean *)v);
		break;
	case PROTOBUF_C_TYPE_ENUM:
		write_enum(out, f->descriptor, *(const int32_t *)v);
		break;
	case PROTOBUF_C_TYPE_STRING:
		skv_jout_text(out, *(char *const *)v ? *(char *const *)v : "");
		break;
	case PROTOBUF_C_TYPE_BYTES:
		write_bytes(out, v);
		break;
	case PROTOBUF_C_TYPE_MESSAGE:
		m = *(ProtobufCMessage *const *)v;
		if (!m) { /* of a map, made by hand and incomplete */
			skv_jout_plain(out, "{}", 2);
		} else if (skv_proto_is_wrapper(m->descriptor)) {
			write_value(out, m->descriptor->fields,
				    skv_proto_member(m, m->descriptor->fields));
		} else {
			skv_jout_open(out, '{');
			write_fields(m, NULL, out);
		}
	}
}

static void write_map_key(struct skv_buf *out, const ProtobufCFieldDescriptor *f, const void *v)
{
	size_t at = out->len;

	if (f->type == PROTOBUF_C_TYPE_STRING) {
		write_value(out, f, v);
	} else { /* numbers and booleans: always in quotes */
		struct skv_buf plain = { 0 };

		skv_put_u8(&plain, ':'); /* so that no comma comes first */
		write_value(&plain, f, v);
		skv_jout_plain(out, "\"", 1);
		at = plain.len > 1 && plain.data[1] == '"' ? 2 : 1;
		if (plain.failed)
			out->failed = true;
		else
			skv_put_bytes(out, plain.data + at, plain.len - 2 * at + 1);
		skv_put_u8(out, '"');
		skv_buf_destroy(&plain);
	}
	skv_put_u8(out, ':');
}

static void write_map(struct skv_buf *out, const ProtobufCMessage *m,
		      const ProtobufCFieldDescriptor *f)
{
	ProtobufCMessage *const *all = *(ProtobufCMessage *const **)skv_proto_member(m, f);
	const ProtobufCFieldDescriptor *parts =
		((const ProtobufCMessageDescriptor *)f->descriptor)->fields;
	size_t n = *skv_proto_count(m, f);

	skv_jout_open(out, '{');
	for (size_t i = 0; i < n; i++) {
		write_map_key(out, &parts[0], skv_proto_member(all[i], &parts[0]));
		write_value(out, &parts[1], skv_proto_member(all[i], &parts[1]));
	}
	skv_jout_close(out, '}');
}

static void write_array(struct skv_buf *out, const ProtobufCMessage *m,
			const ProtobufCFieldDescriptor *f)
{
	const char *all = *(char *const *)skv_proto_member(m, f);
	size_t n = *skv_proto_count(m, f), size = skv_proto_value_size(f->type);

	skv_jout_open(out, '[');
	for (size_t i = 0; i < n; i++)
		write_value(out, f, all + i * size);
	skv_jout_close(out, ']');
}

static const struct skv_proto_splice *find_splice(const struct skv_proto_splice *s, uint32_t field)
{
	while (s && s->field != field)
		s = s->next;
	return s;
}

/* From after the opening bracket. */
static void write_fields(const ProtobufCMessage *m, const struct skv_proto_splice *splices,
			 struct skv_buf *out)
{
	const ProtobufCMessageDescriptor *d = m->descriptor;

	for (unsigned i = 0; i < d->n_fields; i++) {
		const ProtobufCFieldDescriptor *f = &d->fields[i];
		const struct skv_proto_splice *s = find_splice(splices, f->id);
		bool single = !skv_proto_repeated(f);

		if (single && skv_proto_in_oneof(f) && *skv_proto_case(m, f) != f->id)
			continue;
		if (single && f->type == PROTOBUF_C_TYPE_MESSAGE &&
		    !*(void **)skv_proto_member(m, f))
			continue;
		skv_jout_name(out, f->name);
		if (s)
			s->json(s->ctx, out);
		else if (single)
			write_value(out, f, skv_proto_member(m, f));
		else if (skv_proto_is_map(d, f))
			write_map(out, m, f);
		else
			write_array(out, m, f);
	}
	skv_jout_close(out, '}');
}

void skv_proto_write_json(const ProtobufCMessage *m, const struct skv_proto_splice *s,
			  struct skv_buf *out)
{
	skv_jout_begin(out);
	write_fields(m, s, out);
}
