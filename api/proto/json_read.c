/*
 * json_read.c - proto3 JSON into a message: one pass over the text (skv/json.h), then one over its
 * values.
 *
 * The first pass bounds the depth, so the second may recurse. Stateless; any thread.
 */
#include "message.h"

#include <assert.h>

#include <skv/json.h>

static bool read_message(struct skv_proto_in *in, const struct skv_json_node *v,
			 ProtobufCMessage *m);

/* ---- names ----------------------------------------------------------------------------------- */

/* Returns true if the text is the field's name, as declared or in lowerCamelCase. */
static bool is_name(const struct skv_json_node *name, const char *declared)
{
	const char *s = name->s, *end = s + name->n, *d = declared;
	bool up = false;

	while (s < end && *d && *s == *d) {
		s++;
		d++;
	}
	if (s == end && !*d)
		return true;
	if (*d != '_')
		return false;
	for (; *d; d++) {
		char c = up && *d >= 'a' && *d <= 'z' ? (char)(*d - 'a' + 'A') : *d;

		up = *d == '_';
		if (!up && (s == end || *s++ != c))
			return false;
	}
	return s == end;
}

/* `next`: the field to try first, since names usually come in order. */
static const ProtobufCFieldDescriptor *find(const ProtobufCMessageDescriptor *d,
					    const struct skv_json_node *name, unsigned *next)
{
	for (unsigned i = 0; i < d->n_fields; i++) {
		unsigned at = *next + i < d->n_fields ? *next + i : *next + i - d->n_fields;

		assert(at < d->n_fields);
		if (is_name(name, d->fields[at].name)) {
			*next = at + 1 < d->n_fields ? at + 1 : 0;
			return &d->fields[at];
		}
	}
	return NULL;
}

/* The field that another version calls by this name. */
static const ProtobufCFieldDescriptor *find_alias(const struct skv_proto_in *in,
						  const ProtobufCMessageDescriptor *d,
						  const struct skv_json_node *name)
{
	const struct skv_proto_alias *a = in->notes ? in->notes->aliases : NULL;

	for (; a && a->of; a++)
		if (a->of == d && is_name(name, a->name))
			return protobuf_c_message_descriptor_get_field_by_name(d, a->field);
	return NULL;
}

/* ---- values ---------------------------------------------------------------------------------- */

static const struct skv_json_node *next_value(const struct skv_json_node *v)
{
	return skv_json_next(v);
}

static enum skv_proto_got read_submessage(struct skv_proto_in *in,
					  const ProtobufCFieldDescriptor *f,
					  const struct skv_json_node *v, void *out)
{
	const ProtobufCMessageDescriptor *d = f->descriptor;
	ProtobufCMessage *m = skv_proto_new(in, d);
	enum skv_proto_got got = GOT;

	if (!m)
		return GOT_FAILED;
	if (skv_proto_is_wrapper(d))
		got = skv_proto_scalar(in, d->fields, v, skv_proto_member(m, d->fields));
	else if (!read_message(in, v, m))
		got = GOT_FAILED;
	if (got == GOT)
		*(ProtobufCMessage **)out = m;
	return got;
}

static enum skv_proto_got read_value(struct skv_proto_in *in, const ProtobufCFieldDescriptor *f,
				     const struct skv_json_node *v, void *out)
{
	if (f->type == PROTOBUF_C_TYPE_MESSAGE)
		return read_submessage(in, f, v, out);
	return skv_proto_scalar(in, f, v, out);
}

/* Reads the leading elements of an int64 field that are plain numbers; returns how many. */
static size_t plain_int64(const struct skv_json_node **v, size_t n, int64_t *out)
{
	size_t i;

	for (i = 0; i < n && (*v)->type == SKV_JSON_INTEGER; i++, (*v)++)
		out[i] = (*v)->i;
	return i;
}

static bool read_array(struct skv_proto_in *in, ProtobufCMessage *m,
		       const ProtobufCFieldDescriptor *f, const struct skv_json_node *array,
		       struct skv_proto_at *at)
{
	size_t size = skv_proto_value_size(f->type), n = 0, i = 0;
	const struct skv_json_node *v = skv_json_first(array);
	char *all;

	if (array->type != SKV_JSON_ARRAY)
		return skv_proto_fail(in, SKV_E_INVALID, "must be an array");
	if (array->n == 0)
		return true;
	all = skv_proto_alloc(in, array->n, size);
	if (!all)
		return false;
	if (f->type == PROTOBUF_C_TYPE_INT64)
		n = i = plain_int64(&v, array->n, (int64_t *)(void *)all);
	for (; i < array->n; i++, v = next_value(v)) {
		assert(n <= i);
		at->index = (uint32_t)i;
		if (v->type == SKV_JSON_NULL)
			return skv_proto_fail(in, SKV_E_INVALID, "null is not allowed in an array");
		switch (read_value(in, f, v, all + n * size)) {
		case GOT_FAILED:
			return false;
		case GOT_NOTHING:
			skv_proto_note_value(in);
			break;
		case GOT:
			n++;
		}
	}
	at->index = NO_INDEX;
	*(void **)skv_proto_member(m, f) = all;
	*skv_proto_count(m, f) = n;
	return true;
}

static bool read_map(struct skv_proto_in *in, ProtobufCMessage *m,
		     const ProtobufCFieldDescriptor *f, const struct skv_json_node *object,
		     struct skv_proto_at *at)
{
	const ProtobufCMessageDescriptor *d = f->descriptor;
	const struct skv_json_node *key = skv_json_first(object);
	ProtobufCMessage **all;
	size_t n = 0;

	if (object->type != SKV_JSON_OBJECT)
		return skv_proto_fail(in, SKV_E_INVALID, "must be an object");
	if (object->n == 0)
		return true;
	all = skv_proto_alloc(in, object->n, sizeof *all);
	if (!all)
		return false;
	for (uint32_t i = 0; i < object->n; i++, key = skv_json_next(key + 1)) {
		enum skv_proto_got got;

		assert(n <= i);
		at->index = i;
		all[n] = skv_proto_new(in, d);
		if (!all[n])
			return false;
		if (key[1].type == SKV_JSON_NULL)
			return skv_proto_fail(in, SKV_E_INVALID,
					      "null is not allowed as a map value");
		got = skv_proto_scalar(in, &d->fields[0], key,
				       skv_proto_member(all[n], &d->fields[0]));
		if (got == GOT)
			got = read_value(in, &d->fields[1], key + 1,
					 skv_proto_member(all[n], &d->fields[1]));
		if (got == GOT_FAILED)
			return false;
		n += got == GOT;
	}
	at->index = NO_INDEX;
	*(void **)skv_proto_member(m, f) = all;
	*skv_proto_count(m, f) = n;
	return true;
}

static bool read_single(struct skv_proto_in *in, ProtobufCMessage *m,
			const ProtobufCFieldDescriptor *f, const struct skv_json_node *v)
{
	union {
		uint64_t u;
		void *p;
		ProtobufCBinaryData bytes;
	} value;
	enum skv_proto_got got;

	if (skv_proto_in_oneof(f) && *skv_proto_case(m, f) != 0)
		return skv_proto_fail(in, SKV_E_INVALID,
				      "another member of its oneof is given too");
	got = read_value(in, f, v, &value);
	if (got == GOT) {
		memcpy(skv_proto_member(m, f), &value, skv_proto_value_size(f->type));
		if (skv_proto_in_oneof(f))
			*skv_proto_case(m, f) = f->id;
	}
	if (got == GOT_NOTHING)
		skv_proto_note_value(in);
	return got != GOT_FAILED;
}

/* ---- messages -------------------------------------------------------------------------------- */

static bool read_message(struct skv_proto_in *in, const struct skv_json_node *v,
			 ProtobufCMessage *m)
{
	const ProtobufCMessageDescriptor *d = m->descriptor;
	const struct skv_json_node *name = skv_json_first(v);
	struct skv_proto_at at = { .up = in->at, .index = NO_INDEX };
	uint64_t seen = 0;
	unsigned next = 0;
	bool ok = true;

	if (v->type != SKV_JSON_OBJECT)
		return skv_proto_fail(in, SKV_E_INVALID, "must be an object");
	for (uint32_t i = 0; i < v->n && ok; i++, name = skv_json_next(name + 1)) {
		const ProtobufCFieldDescriptor *f = find(d, name, &next);
		uint64_t bit;

		if (!f)
			f = find_alias(in, d, name);
		if (!f)
			skv_proto_note_field(in, name->s, name->n);
		assert(!f || f - d->fields < SKV_PROTO_FIELDS);
		bit = f ? (uint64_t)1 << (f - d->fields) : 0;
		if (!f || name[1].type == SKV_JSON_NULL)
			continue;
		at.name = f->name;
		in->at = &at;
		if (seen & bit)
			ok = skv_proto_fail(in, SKV_E_INVALID, "is given twice");
		else if (skv_proto_is_map(d, f))
			ok = read_map(in, m, f, name + 1, &at);
		else if (skv_proto_repeated(f))
			ok = read_array(in, m, f, name + 1, &at);
		else
			ok = read_single(in, m, f, name + 1);
		seen |= bit;
		assert(in->at == &at);
		in->at = at.up;
	}
	return ok;
}

static bool parse_failed(struct skv_proto_in *in, const struct skv_json_doc *doc)
{
	static const char *const why[] = {
		[SKV_JSON_UTF8] = "not UTF-8",
		[SKV_JSON_NUL] = "\\u0000 in a string",
		[SKV_JSON_NUMBER] = "too large a number",
		[SKV_JSON_TWICE] = "a name is given twice",
		[SKV_JSON_LIMIT] = "nested too deep, or too long",
	};

	if (doc->fault == SKV_JSON_NOMEM)
		return skv_proto_fail(in, SKV_E_NOMEM, "out of memory");
	return skv_proto_fail(in, SKV_E_INVALID, "not JSON at byte %zu: %s", doc->at,
			      doc->fault == SKV_JSON_SYNTAX ? doc->what : why[doc->fault]);
}

int skv_proto_read_json(const ProtobufCMessageDescriptor *d, const void *bytes, size_t n,
			struct skv_arena *a, ProtobufCMessage **out, struct skv_error *err)
{
	return skv_proto_read_json_noted(d, bytes, n, a, NULL, out, err);
}

int skv_proto_read_json_noted(const ProtobufCMessageDescriptor *d, const void *bytes, size_t n,
			      struct skv_arena *a, struct skv_proto_notes *notes,
			      ProtobufCMessage **out, struct skv_error *err)
{
	const struct skv_json_limits limits = { .depth = SKV_PROTO_DEPTH, .values = SIZE_MAX,
						.wide = true };
	struct skv_proto_in in = skv_proto_open(n, a, err);
	struct skv_json_doc doc;
	ProtobufCMessage *m;

	in.notes = notes;
	if (notes)
		notes->fields[0] = notes->value[0] = '\0';
	if (!skv_json_parse(&doc, a, bytes, n, &limits)) {
		parse_failed(&in, &doc);
		return in.status;
	}
	m = skv_proto_new(&in, d);
	if (m && read_message(&in, doc.root, m))
		*out = m;
	return in.status;
}
