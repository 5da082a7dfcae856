/*
 * message.h - helpers of both codecs: descriptors, and the state of a message being read. Private
 * to api/proto.
 *
 * A `struct skv_proto_in` is a message being read. Functions that fail return false after
 * skv_proto_fail; the first failure is reported. Stateless; one thread per message.
 */
#ifndef SKV_PROTO_MESSAGE_H
#define SKV_PROTO_MESSAGE_H

#include <stdbool.h>
#include <string.h>

#include <skv/proto_codec.h>

#define NO_INDEX UINT32_MAX

/* A place in the message, for errors: "events[3].block_add". Lives on the reader's stack. */
struct skv_proto_at {
	const struct skv_proto_at *up;
	const char *name;
	uint32_t index;
};

struct skv_proto_in {
	struct skv_arena *arena;
	struct skv_error *err;
	int status;
	const struct skv_proto_at *at; /* NULL: the message itself */
	size_t budget;                 /* bytes of memory still available to it */
	struct skv_proto_notes *notes; /* NULL: not requested */
};

struct skv_proto_in skv_proto_open(size_t n, struct skv_arena *a, struct skv_error *err);
/* Always false. */
bool skv_proto_fail(struct skv_proto_in *in, int status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4), cold));
/* NULL after failing the message. Not zeroed. */
void *skv_proto_alloc(struct skv_proto_in *in, size_t n, size_t size);
char *skv_proto_text(struct skv_proto_in *in, const void *s, size_t n); /* a copy with a NUL */
/* Records an unknown field of the message at in->at; an unknown enum name at in->at. */
void skv_proto_note_field(struct skv_proto_in *in, const char *name, size_t n);
void skv_proto_note_value(struct skv_proto_in *in);
ProtobufCMessage *skv_proto_new(struct skv_proto_in *in, const ProtobufCMessageDescriptor *d);
/* bytes of a value of this type in the struct */
size_t skv_proto_value_size(ProtobufCType type);

static inline void *skv_proto_member(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
	return (char *)m + f->offset;
}

/* n_ of a repeated field */
static inline size_t *skv_proto_count(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
	return (size_t *)(void *)((char *)m + f->quantifier_offset);
}

/* number of the member that is set, of the oneof that f is in */
static inline uint32_t *skv_proto_case(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
	return (uint32_t *)(void *)((char *)m + f->quantifier_offset);
}

static inline bool skv_proto_in_oneof(const ProtobufCFieldDescriptor *f)
{
	return f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF;
}

static inline bool skv_proto_repeated(const ProtobufCFieldDescriptor *f)
{
	return f->label == PROTOBUF_C_LABEL_REPEATED;
}

/* Returns true if the field is a map. protobuf-c's descriptors do not tell, but the name of an
 * entry does: hand-written messages are not nested in another one under a field's name plus Entry,
 * with just key and value. */
bool skv_proto_is_map(const ProtobufCMessageDescriptor *d, const ProtobufCFieldDescriptor *f);
/* Is it one of google.protobuf's Int64Value and so on? */
static inline bool skv_proto_is_wrapper(const ProtobufCMessageDescriptor *d)
{
	return d->n_fields == 1 && strcmp(d->package_name, "google.protobuf") == 0 &&
	       strcmp(d->fields[0].name, "value") == 0;
}

/* ---- map.c ----------------------------------------------------------------------------------- */

/* Completes the entries of a map and leaves the last one of each key; false
 * after failing the message. */
bool skv_proto_end_map(struct skv_proto_in *in, ProtobufCMessage *m,
		       const ProtobufCFieldDescriptor *f);

/* ---- json_value.c ---------------------------------------------------------------------------- */

struct skv_json_node;
enum skv_proto_got { GOT, GOT_NOTHING, GOT_FAILED };

/* Reads a value that is not a message into *out, which has the field's type. GOT_NOTHING: an
 * unknown enum name. */
enum skv_proto_got skv_proto_scalar(struct skv_proto_in *in, const ProtobufCFieldDescriptor *f,
				    const struct skv_json_node *v, void *out);
void skv_proto_base64_write(struct skv_buf *out, const uint8_t *p, size_t n); /* quotes included */

/* ---- json_read.c, json_write.c, binary_read.c ------------------------------------------------ */

int skv_proto_read_json(const ProtobufCMessageDescriptor *d, const void *bytes, size_t n,
			struct skv_arena *a, ProtobufCMessage **out, struct skv_error *err);
void skv_proto_write_json(const ProtobufCMessage *m, const struct skv_proto_splice *s,
			  struct skv_buf *out);
int skv_proto_read_binary(const ProtobufCMessageDescriptor *d, const void *bytes, size_t n,
			  struct skv_arena *a, ProtobufCMessage **out, struct skv_error *err);

#endif
