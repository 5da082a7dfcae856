/*
 * proto_codec.h - any protobuf message in either of its two forms, proto3 JSON and binary.
 *
 * A message is a protobuf-c struct and its descriptor; the codecs need nothing else, so an API gets
 * both forms from its .proto file. A caller chooses a codec once for a request and reads and writes
 * through it. Messages that were read live in the arena: never call
 * protobuf_c_message_free_unpacked.
 *
 * Both readers: strings are UTF-8 without NUL; unknown fields are skipped; unknown enum numbers
 * are kept; nesting deeper than SKV_PROTO_DEPTH is refused; a message that would take
 * SKV_PROTO_EXPAND times its own bytes of memory (and SKV_PROTO_SLACK) is refused with
 * SKV_E_TOO_LARGE. A refusal names the field.
 *
 * JSON, reading: field names in snake_case or lowerCamelCase, a name in both or twice is refused,
 * as are two members of a oneof. Integers as numbers or strings, also 1.0 and 1e3, exact or
 * refused. Enums by name (case-sensitive; an unknown name counts as not there), number, or number
 * in a string. null is a field that is not there. Unknown fields are skipped at any depth, but must
 * be JSON that skv/json.h takes. The wrappers of google.protobuf are bare values, maps are objects,
 * bytes are base64. JSON, writing: snake_case in order of number, 64-bit integers and NaN and
 * infinities as strings, enums by name (a number without one as a number). Fields without presence
 * always; submessages and members of a oneof when they are set, whatever their value.
 *
 * Binary: any order of fields, packed and not, submessages in several pieces are merged, a field of
 * another wire type than declared is skipped as an unknown one.
 *
 * Messages have 64 fields at most. Constant data, no state; any thread.
 */
#ifndef SKV_PROTO_CODEC_H
#define SKV_PROTO_CODEC_H

#include <stddef.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

#include <skv/arena.h>
#include <skv/bytes.h>
#include <skv/status.h>

#define SKV_PROTO_DEPTH 100u
#define SKV_PROTO_EXPAND 24u
#define SKV_PROTO_SLACK ((size_t)64 << 10)
#define SKV_PROTO_FIELDS 64u

/* A repeated message field of the outermost message that the writer takes from a callback, because
 * it is long. */
struct skv_proto_splice {
	uint32_t field; /* field number; 0 = none */
	/* the whole array, brackets included */
	void (*json)(const void *ctx, struct skv_buf *out);
	/* tag, length and bytes of each element */
	void (*binary)(const void *ctx, struct skv_buf *out);
	const void *ctx;
	const struct skv_proto_splice *next; /* another one, or NULL */
};

struct skv_proto_codec {
	const char *content_type;
	/* Reads a message. SKV_E_INVALID if malformed (an empty text is not JSON, but is an empty
	 * message in binary), SKV_E_TOO_LARGE, SKV_E_NOMEM; *err says where and why (NULL allowed).
	 * The bytes may be freed afterwards. */
	int (*read)(const ProtobufCMessageDescriptor *d, const void *bytes, size_t n,
		    struct skv_arena *a, ProtobufCMessage **out, struct skv_error *err);
	/* Appends the message. `s` may be NULL; the fields that it names must be empty in the
	 * message. Lack of memory sticks to `out`. Invalid UTF-8 becomes '?' in JSON and stays in
	 * binary. */
	void (*write)(const ProtobufCMessage *m, const struct skv_proto_splice *s,
		      struct skv_buf *out);
};

extern const struct skv_proto_codec skv_proto_json, skv_proto_binary;

/* Another JSON name of a field, used by other versions of an API. */
struct skv_proto_alias {
	const ProtobufCMessageDescriptor *of;
	const char *name;
	const char *field;
};

/* Records what was skipped of a message. Texts are truncated, and contain only letters, digits and
 * "._-[]". */
struct skv_proto_notes {
	const struct skv_proto_alias *aliases; /* terminated by a NULL; may be NULL */
	/* Paths of unknown fields: "a.b, c"; in binary they end in a number, "a.7"; "" = none. */
	char fields[200];
	/* Path of the first unknown enum name; "" = none. Not in binary, where numbers are kept. */
	char value[100];
};

/* skv_proto_json.read that also fills the notes. */
int skv_proto_read_json_noted(const ProtobufCMessageDescriptor *d, const void *bytes, size_t n,
			      struct skv_arena *a, struct skv_proto_notes *notes,
			      ProtobufCMessage **out, struct skv_error *err);
/* The same for skv_proto_binary; aliases do not count. */
int skv_proto_read_binary_noted(const ProtobufCMessageDescriptor *d, const void *bytes, size_t n,
				struct skv_arena *a, struct skv_proto_notes *notes,
				ProtobufCMessage **out, struct skv_error *err);

/* An initialised message in the arena; NULL if out of memory. */
void *skv_proto_make(const ProtobufCMessageDescriptor *d, struct skv_arena *a);

#endif
