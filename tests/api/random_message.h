/*
 * random_message.h - messages of any type with random contents, by their descriptor.
 *
 * What there is of a message: each field or not, numbers at the ends of their ranges and small
 * ones, enums with and without a name, texts with what JSON escapes, one member of a oneof at most.
 * From mem.h's malloc by way of an arena. No state but the seed.
 */
#ifndef TESTS_API_RANDOM_MESSAGE_H
#define TESTS_API_RANDOM_MESSAGE_H

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <skv/proto_codec.h>

struct dice {
	uint64_t seed;
	struct skv_arena *arena;
};

static inline uint64_t dice_roll(struct dice *d)
{
	d->seed += 0x9e3779b97f4a7c15u;
	uint64_t x = d->seed;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

static inline uint32_t dice_below(struct dice *d, uint32_t n)
{
	return (uint32_t)(dice_roll(d) >> 33) % n;
}

static inline uint64_t dice_number(struct dice *d)
{
	static const uint64_t ends[] = { 0,
					 1,
					 127,
					 128,
					 INT32_MAX,
					 UINT32_MAX,
					 INT64_MAX,
					 UINT64_MAX,
					 (uint64_t)1 << 63,
					 9007199254740993u,
					 (uint64_t)INT32_MIN };

	if (dice_below(d, 3) == 0)
		return ends[dice_below(d, sizeof ends / sizeof ends[0])];
	return dice_roll(d) >> dice_below(d, 64);
}

static inline double dice_real(struct dice *d)
{
	static const double ends[] = { 0,        -0.0,      1,
				       -1,       0.1,       1e300,
				       -5e-324,  DBL_MAX,   3.0000000000000004,
				       INFINITY, -INFINITY, NAN };
	uint64_t bits = dice_roll(d);
	double v;

	if (dice_below(d, 2))
		return ends[dice_below(d, sizeof ends / sizeof ends[0])];
	memcpy(&v, &bits, sizeof v);
	return isfinite(v) ? v : 0.5;
}

static inline char *dice_text(struct dice *d)
{
	static const char *const parts[] = { "a",	 "tp0", "\"",	   "\\",   "/",
					     "\n",       "\x01", "\xc3\xa9", "\xe4\xb8\xad",
					     "\xf0\x9f\x98\x80",
					     "file://x", " ",	 "<&>",	   "0" };
	char text[64] = "";
	uint32_t n = dice_below(d, 5);

	for (uint32_t i = 0; i < n; i++)
		strncat(text, parts[dice_below(d, sizeof parts / sizeof parts[0])], 12);
	return skv_arena_strndup(d->arena, text, strlen(text));
}

static inline void *dice_message(struct dice *d, const ProtobufCMessageDescriptor *type,
				 unsigned depth);

static inline size_t dice_value(struct dice *d, const ProtobufCFieldDescriptor *f, void *out,
				unsigned depth)
{
	const ProtobufCEnumDescriptor *e = f->descriptor;
	uint64_t v = dice_number(d);
	ProtobufCBinaryData *blob;

	switch (f->type) {
	case PROTOBUF_C_TYPE_BOOL:
		*(protobuf_c_boolean *)out = v & 1;
		return sizeof(protobuf_c_boolean);
	case PROTOBUF_C_TYPE_ENUM:
		*(int32_t *)out = dice_below(d, 3) ? e->values[v % e->n_values].value : (int32_t)v;
		return 4;
	case PROTOBUF_C_TYPE_FLOAT:
		*(float *)out = (float)dice_real(d);
		return 4;
	case PROTOBUF_C_TYPE_DOUBLE:
		*(double *)out = dice_real(d);
		return 8;
	case PROTOBUF_C_TYPE_STRING:
		*(char **)out = dice_text(d);
		return sizeof(char *);
	case PROTOBUF_C_TYPE_BYTES:
		blob = out;
		blob->len = dice_below(d, 7);
		blob->data = skv_arena_alloc(d->arena, blob->len);
		for (size_t i = 0; i < blob->len; i++)
			blob->data[i] = (uint8_t)dice_roll(d);
		return sizeof *blob;
	case PROTOBUF_C_TYPE_MESSAGE:
		*(void **)out = dice_message(d, f->descriptor, depth);
		return sizeof(void *);
	case PROTOBUF_C_TYPE_INT32:
	case PROTOBUF_C_TYPE_SINT32:
	case PROTOBUF_C_TYPE_SFIXED32:
	case PROTOBUF_C_TYPE_UINT32:
	case PROTOBUF_C_TYPE_FIXED32:
		*(uint32_t *)out = (uint32_t)v;
		return 4;
	default:
		*(uint64_t *)out = v;
		return 8;
	}
}

static inline void dice_field(struct dice *d, ProtobufCMessage *m,
			      const ProtobufCFieldDescriptor *f, unsigned depth)
{
	char *base = (char *)m, *values;
	size_t n = dice_below(d, 4), at = 0;

	if (f->type == PROTOBUF_C_TYPE_MESSAGE && depth == 0)
		return;
	if (f->label != PROTOBUF_C_LABEL_REPEATED) {
		if (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
			*(uint32_t *)(void *)(base + f->quantifier_offset) = f->id;
		dice_value(d, f, base + f->offset, depth - 1);
		return;
	}
	if (n == 0)
		return;
	/* A map's keys must differ: one entry. */
	if (f->type == PROTOBUF_C_TYPE_MESSAGE &&
	    strstr(((const ProtobufCMessageDescriptor *)f->descriptor)->short_name, "Entry"))
		n = 1;
	values = skv_arena_calloc(d->arena, n, 16);
	for (size_t i = 0; i < n; i++)
		at += dice_value(d, f, values + at, depth - 1);
	*(void **)(void *)(base + f->offset) = values;
	*(size_t *)(void *)(base + f->quantifier_offset) = n;
}

static inline void *dice_message(struct dice *d, const ProtobufCMessageDescriptor *type,
				 unsigned depth)
{
	ProtobufCMessage *m = skv_proto_make(type, d->arena);
	bool entry = strstr(type->short_name, "Entry") != NULL;
	bool choice = false;

	for (unsigned i = 0; i < type->n_fields; i++) {
		const ProtobufCFieldDescriptor *f = &type->fields[i];
		bool of_choice = f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF;

		if (!entry &&
		    (dice_below(d, 3) == 0 || (of_choice && (choice || dice_below(d, 3)))))
			continue;
		if (of_choice && f->type == PROTOBUF_C_TYPE_MESSAGE && depth == 0)
			continue;
		choice = choice || of_choice;
		dice_field(d, m, f, entry && depth == 0 ? 1 : depth);
	}
	return m;
}

#endif
