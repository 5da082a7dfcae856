/* message.c - messages in the arena, their limits, and the location of errors in them. */
#include "message.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

struct skv_proto_in skv_proto_open(size_t n, struct skv_arena *a, struct skv_error *err)
{
	size_t budget =
		n < (SIZE_MAX >> 8) ? n * SKV_PROTO_EXPAND + SKV_PROTO_SLACK : SIZE_MAX >> 2;

	return (struct skv_proto_in){ .arena = a, .err = err, .status = SKV_OK, .budget = budget };
}

/* Writes the path; a long one keeps its end, where the fault is. */
static size_t render(const struct skv_proto_at *at, char *out, size_t size)
{
	size_t n = at->up ? render(at->up, out, size) : 0;
	char step[SKV_FIELD_MAX];
	int more;

	if (at->index == NO_INDEX)
		more = snprintf(step, sizeof step, "%s%s", n ? "." : "", at->name);
	else
		more = snprintf(step, sizeof step, "%s%s[%u]", n ? "." : "", at->name, at->index);
	if (more < 0 || n + (size_t)more >= size)
		return n;
	assert(n + (size_t)more < size);
	memcpy(out + n, step, (size_t)more + 1);
	return n + (size_t)more;
}

bool skv_proto_fail(struct skv_proto_in *in, int status, const char *fmt, ...)
{
	char field[SKV_FIELD_MAX] = "";
	char message[SKV_MESSAGE_MAX];
	va_list ap;

	if (in->status != SKV_OK)
		return false;
	va_start(ap, fmt);
	vsnprintf(message, sizeof message, fmt, ap);
	va_end(ap);
	if (in->at)
		render(in->at, field, sizeof field);
	in->status = skv_fail(in->err, status, field, "%s", message);
	return false;
}

/* Replaces everything in a client's text that could do harm in a log line. */
static void make_plain(char *s)
{
	for (; *s; s++)
		if (!(*s >= 'a' && *s <= 'z') && !(*s >= 'A' && *s <= 'Z') &&
		    !(*s >= '0' && *s <= '9') && !strchr("._-[]", *s))
			*s = '?';
}

void skv_proto_note_field(struct skv_proto_in *in, const char *name, size_t n)
{
	char path[SKV_FIELD_MAX] = "", *all;
	size_t at, len;

	if (!in->notes)
		return;
	all = in->notes->fields;
	len = strlen(all);
	at = in->at ? render(in->at, path, sizeof path) : 0;
	snprintf(path + at, sizeof path - at, "%s%.*s", at ? "." : "", (int)(n < 40 ? n : 40),
		 name);
	make_plain(path);
	if (len + strlen(path) + 3 < sizeof in->notes->fields)
		snprintf(all + len, sizeof in->notes->fields - len, "%s%s", len ? ", " : "", path);
}

void skv_proto_note_value(struct skv_proto_in *in)
{
	char path[SKV_FIELD_MAX] = "";

	if (!in->notes || *in->notes->value || !in->at)
		return;
	render(in->at, path, sizeof path);
	snprintf(in->notes->value, sizeof in->notes->value, "%.*s",
		 (int)sizeof in->notes->value - 1, path);
}

static bool charge(struct skv_proto_in *in, size_t bytes)
{
	size_t whole = (bytes + 15) & ~(size_t)15;

	assert(whole >= bytes);
	if (whole > in->budget)
		return skv_proto_fail(in, SKV_E_TOO_LARGE,
				      "would take far more memory than it has bytes");
	in->budget -= whole;
	return true;
}

void *skv_proto_alloc(struct skv_proto_in *in, size_t n, size_t size)
{
	void *p = NULL;

	if (n > in->budget / (size ? size : 1)) {
		charge(in, in->budget + 1);
		return NULL;
	}
	if (charge(in, n * size)) {
		p = skv_arena_alloc(in->arena, n * size);
		if (!p)
			skv_proto_fail(in, SKV_E_NOMEM, "out of memory");
	}
	return p;
}

char *skv_proto_text(struct skv_proto_in *in, const void *s, size_t n)
{
	char *copy = skv_proto_alloc(in, n + 1, 1);

	if (!copy)
		return NULL;
	memcpy(copy, s, n);
	copy[n] = '\0';
	return copy;
}

ProtobufCMessage *skv_proto_new(struct skv_proto_in *in, const ProtobufCMessageDescriptor *d)
{
	ProtobufCMessage *m = skv_proto_alloc(in, 1, d->sizeof_message);

	assert(d->n_fields <= SKV_PROTO_FIELDS);
	if (m)
		protobuf_c_message_init(d, m);
	return m;
}

void *skv_proto_make(const ProtobufCMessageDescriptor *d, struct skv_arena *a)
{
	void *m = skv_arena_alloc(a, d->sizeof_message);

	if (m)
		protobuf_c_message_init(d, m);
	return m;
}

size_t skv_proto_value_size(ProtobufCType type)
{
	switch (type) {
	case PROTOBUF_C_TYPE_INT32:
	case PROTOBUF_C_TYPE_SINT32:
	case PROTOBUF_C_TYPE_SFIXED32:
	case PROTOBUF_C_TYPE_UINT32:
	case PROTOBUF_C_TYPE_FIXED32:
	case PROTOBUF_C_TYPE_FLOAT:
	case PROTOBUF_C_TYPE_ENUM:
		return 4;
	case PROTOBUF_C_TYPE_BOOL:
		return sizeof(protobuf_c_boolean);
	case PROTOBUF_C_TYPE_BYTES:
		return sizeof(ProtobufCBinaryData);
	case PROTOBUF_C_TYPE_STRING:
	case PROTOBUF_C_TYPE_MESSAGE:
		return sizeof(void *);
	default:
		return 8;
	}
}

bool skv_proto_is_map(const ProtobufCMessageDescriptor *d, const ProtobufCFieldDescriptor *f)
{
	const ProtobufCMessageDescriptor *entry = f->descriptor;
	bool up = true;
	const char *s;
	size_t n;

	if (f->type != PROTOBUF_C_TYPE_MESSAGE || !skv_proto_repeated(f) || entry->n_fields != 2 ||
	    strcmp(entry->fields[0].name, "key") != 0 ||
	    strcmp(entry->fields[1].name, "value") != 0)
		return false;
	n = strlen(d->name);
	if (strncmp(entry->name, d->name, n) != 0 || entry->name[n] != '.')
		return false;
	assert(strlen(entry->name) > n);
	s = entry->name + n + 1; /* the field's name in CamelCase, then Entry */
	for (const char *p = f->name; *p; p++) {
		if (*p == '_') {
			up = true;
			continue;
		}
		if (*s++ != (up && *p >= 'a' && *p <= 'z' ? *p - 'a' + 'A' : *p))
			return false;
		up = false;
	}
	return strcmp(s, "Entry") == 0;
}
