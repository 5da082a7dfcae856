/*
 * table.h - a message as a table of its fields, from which its JSON and its protobuf are read and
 * written. Internal to api/v1.
 *
 * For messages that are rare (storages, groups, instances, lists, numbers of the manager); lookup,
 * start, finish and match, whose speed counts, are written by hand. A row has the field's place in
 * the struct of skv/ops.h, its name in JSON, its number in slabkv.proto, and its permitted values.
 * JSON is written in the order of the rows, protobuf in that of the numbers.
 *
 * Constant data, no state; any thread.
 */
#ifndef SKV_V1_TABLE_H
#define SKV_V1_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "json_in.h"
#include "pb.h"

enum skv_kind {
	SKV_KIND_BOOL,       /* bool */
	SKV_KIND_NUMBER,     /* uint32_t or uint64_t */
	SKV_KIND_WORD,       /* enum or bool: a number in protobuf, in JSON one of `words` */
	SKV_KIND_TEXT,       /* const char *, as the five below */
	SKV_KIND_NAME,       /* skv_name_valid */
	SKV_KIND_MODEL_NAME, /* skv_model_name_valid */
	SKV_KIND_CHARS,      /* char [width] */
	SKV_KIND_UUID,       /* char [37] */
	SKV_KIND_RAW_UUID,   /* uint8_t [16], as a UUID; this one and the next in JSON only */
	SKV_KIND_HEX,        /* uint64_t, as 16 hex digits */
	SKV_KIND_TEXTS,      /* const char *const *, and how many in `count_at` */
	SKV_KIND_NAMES,      /* the same of names, none twice */
	SKV_KIND_MESSAGES,   /* an array of structs of table `of`, and how many in `count_at` */
	SKV_KIND_PART, /* a struct of table `of`: in JSON its fields stand among ours; required */
	/* Of a request: const struct skv_key *, and how many in `count_at`. Number 1: has the next
	 * two. */
	SKV_KIND_KEYS,
	SKV_KIND_ALL,        /* bool: true in place of KEYS */
	/* Of an answer: struct skv_key *, and how many in `count_at`; in protobuf raw, number 1. */
	SKV_KIND_KEY_LIST,
	/* Bool *, and how many in `count_at`, a row of its own before: numbers of the true ones. */
	SKV_KIND_MARKS,
	SKV_KIND_TENANT,     /* const char *: the caller's, on no wire */
};

enum {
	/* Must be there; protobuf can tell of parts and of PRESENT fields. */
	SKV_FIELD_REQUIRED = 1,
	SKV_FIELD_SIZE = 2,     /* JSON takes "64M", too */
	/* JSON leaves it out where it says nothing: false, 0, "", no element. */
	SKV_FIELD_SHORT = 4,
	/* In a oneof of its own: 0 is written, and another thing than absence. */
	SKV_FIELD_PRESENT = 8,
	SKV_FIELD_MEND = 16,    /* human-readable text: JSON has '?' for bytes that are not UTF-8 */
	SKV_FIELD_UNIQUE = 32,  /* no two elements have the same first field, a name */
	SKV_FIELD_FIRST = 64,   /* is read before the other fields ... */
	SKV_FIELD_BYTES = 256,  /* a SIZE that counts bytes, for the OpenAPI document */
	SKV_FIELD_NOT = 512,    /* a bool, of which protobuf has the opposite */
	/* ... or after them: `may_be_empty` or `check` needs the other fields. */
	SKV_FIELD_LAST = 128,
};

#define SKV_TABLE_FIELDS 32u   /* of one table, at most */
#define SKV_TABLE_NUMBERS 64u  /* field numbers are below this */
#define SKV_TABLE_ALL SIZE_MAX /* no upper bound but that of the type */

struct skv_table;

struct skv_field {
	const char *name;
	enum skv_kind kind;
	unsigned flags;
	uint32_t number; /* in slabkv.proto */
	size_t at, width; /* in the struct */
	size_t count_at;  /* uint32_t, of TEXTS, NAMES, MESSAGES, KEYS, KEY_LIST and MARKS */
	/* Of a number, of the length of a text or of each of TEXTS; max 0 = what the type holds. */
	uint64_t min, max;
	uint32_t least, most; /* of these: how many */
	uint64_t otherwise;   /* value of a number or bool that is not there */
	/* Value of a text or name that is not there, in protobuf of an empty one; NULL = "". */
	const char *text;
	const char *const *words;   /* of WORD, ends with NULL */
	const struct skv_table *of; /* of MESSAGES and PART */
	/* When true of the message, `min` and `least` are 0, and it need not be
	 * there, unless it is REQUIRED. */
	bool (*may_be_empty)(const void *message);
	/* Called when the field has been read. Returns NULL, or the name of the field at fault and
	 * the reason in `text`. */
	const char *(*check)(const void *message, char text[SKV_MESSAGE_MAX]);
	const char *doc;           /* for the OpenAPI document, as the next one */
	/* Of a TEXT or NAME that is one of these, ends with NULL; not checked. */
	const char *const *texts;
};

struct skv_table {
	const char *name; /* of its schema in the OpenAPI document */
	size_t size;      /* of the struct */
	const struct skv_field *fields;
	uint32_t n;
	bool no_body; /* a request of no bytes is one without fields */
	bool strict;  /* of a request: other fields are refused */
	bool open;    /* of an answer that is read from JSON: other fields are skipped */
	bool long_answer; /* as long as lists of a manager get */
	const char *doc;
};

/* Rows. `T` is the struct; further members are given as initializers. */
#define SKV_ROW(T, member, json_name, row_kind, row_number, ...)                  \
	{ .name = json_name, .kind = SKV_KIND_##row_kind, .number = (row_number), \
	  .at = offsetof(T, member),                                              \
	  .width = sizeof((T *)0)->member, __VA_ARGS__ }
#define SKV_BOOL(T, member, number, ...) SKV_ROW(T, member, #member, BOOL, number, __VA_ARGS__)
#define SKV_NUMBER(T, member, number, ...) SKV_ROW(T, member, #member, NUMBER, number, __VA_ARGS__)
#define SKV_WORD(T, member, number, ...) SKV_ROW(T, member, #member, WORD, number, __VA_ARGS__)
#define SKV_TEXT(T, member, number, ...) SKV_ROW(T, member, #member, TEXT, number, __VA_ARGS__)
#define SKV_NAME(T, member, number, ...) SKV_ROW(T, member, #member, NAME, number, __VA_ARGS__)
#define SKV_CHARS(T, member, number, ...) SKV_ROW(T, member, #member, CHARS, number, __VA_ARGS__)
#define SKV_LIST(T, member, row_kind, number, ...)                                         \
	SKV_ROW(T, member, #member, row_kind, number, .count_at = offsetof(T, n_##member), \
		__VA_ARGS__)
#define SKV_PART(T, member, number, table)                        \
	SKV_ROW(T, member, #member, PART, number, .of = &(table), \
		.flags = SKV_FIELD_FIRST | SKV_FIELD_REQUIRED)
#define SKV_KEYS(T)                                                                                \
	SKV_ROW(T, keys, "keys", KEYS, 1, .count_at = offsetof(T, n_keys), .most = SKV_MAX_KEYS)
#define SKV_TENANT(T) SKV_ROW(T, tenant, "tenant", TENANT, 0, .flags = SKV_FIELD_FIRST)

#define SKV_TABLE(title, T, rows, ...)                                                         \
	{ .name = title, .size = sizeof(T), .fields = rows, .n = sizeof rows / sizeof rows[0], \
	  __VA_ARGS__ }

/* ---- table.c --------------------------------------------------------------------------------- */

/* Checks the rows: inside the struct, of a width that the kind has, no name and no number twice.
 * For asserts. */
bool skv_table_sound(const struct skv_table *t);
/* Default values of absent fields. */
void skv_table_defaults(const struct skv_table *t, const struct skv_v1_in *in, void *message);

static inline unsigned skv_field_turn(const struct skv_field *f)
{
	return f->flags & SKV_FIELD_FIRST ? 0 : f->flags & SKV_FIELD_LAST ? 2 : 1;
}
#define SKV_TABLE_TURNS 3u

static inline bool skv_field_is_chars(const struct skv_field *f)
{
	return f->kind == SKV_KIND_CHARS || f->kind == SKV_KIND_UUID;
}
static inline bool skv_field_repeated(const struct skv_field *f)
{
	return f->kind == SKV_KIND_TEXTS || f->kind == SKV_KIND_NAMES ||
	       f->kind == SKV_KIND_MESSAGES;
}
static inline bool skv_field_numeric(const struct skv_field *f)
{
	return f->kind == SKV_KIND_BOOL || f->kind == SKV_KIND_NUMBER || f->kind == SKV_KIND_WORD ||
	       f->kind == SKV_KIND_ALL;
}
static inline bool skv_field_counted(const struct skv_field *f)
{
	return skv_field_repeated(f) || f->kind == SKV_KIND_KEYS || f->kind == SKV_KIND_KEY_LIST ||
	       f->kind == SKV_KIND_MARKS;
}
static inline const void *skv_field_in(const struct skv_field *f, const void *message)
{
	return (const char *)message + f->at;
}
/* Returns true if the message has `all` in place of keys. */
bool skv_table_all(const struct skv_table *t, const void *message);
/* How many JSON values it may have. */
size_t skv_table_values(const struct skv_table *t);
uint64_t skv_field_number(const struct skv_field *f, const void *message);
/* The value as written: limited to the bound. */
uint64_t skv_field_told(const struct skv_field *f, const void *message);
void skv_field_set_number(const struct skv_field *f, void *message, uint64_t v);
/* A text or CHARS; never NULL. */
const char *skv_field_text(const struct skv_field *f, const void *message);
void skv_field_set_text(const struct skv_field *f, void *message, const char *s);
uint32_t skv_field_count(const struct skv_field *f, const void *message);
void skv_field_set_count(const struct skv_field *f, void *message, uint32_t n);
/* Element i of MESSAGES. */
const void *skv_field_element(const struct skv_field *f, const void *message, uint32_t i);
/* Element i of TEXTS or NAMES. */
const char *skv_field_item(const struct skv_field *f, const void *message, uint32_t i);
/* Returns true if an element before i has the same name. */
bool skv_field_twice(const struct skv_field *f, const void *message, uint32_t i);
/* The word of a number, and how many words there are. */
const char *skv_field_word(const struct skv_field *f, uint64_t v);
uint32_t skv_field_words(const struct skv_field *f);
uint64_t skv_field_max(const struct skv_field *f);
static inline bool skv_field_lax(const struct skv_field *f, const void *message)
{
	return f->may_be_empty && f->may_be_empty(message);
}

/* ---- table_schema.c, messages.c -------------------------------------------------------------- */

/* The table's schema as a field of an object. */
void skv_table_write_schema(const struct skv_table *t, struct skv_buf *out);
/* Writes the schemas of all tables. */
void skv_table_write_schemas(struct skv_buf *out);
/* The table of that schema, or NULL. */
const struct skv_table *skv_table_named(const char *name);

/* The parts of the OpenAPI document that no table describes: openapi_base.json, embedded in the
 * program at build time. */
const char *skv_v1_openapi_base(void);

/* ---- table_json.c, table_pb.c ---------------------------------------------------------------- */

/* A request as one JSON object, or one protobuf message, into *out, which is a struct of the table
 * and changes on success only. */
int skv_table_read_json(const struct skv_table *t, const struct skv_v1_in *in, const char *text,
			size_t n, void *out, struct skv_error *err);
/* Reads one JSON object over a message that has values: fields that the text does not have keep
 * theirs. After an error the message is worth nothing. */
int skv_table_lay_json(const struct skv_table *t, const struct skv_v1_in *in, const char *text,
		       size_t n, void *message, struct skv_error *err);
int skv_table_read_pb(const struct skv_table *t, const struct skv_v1_in *in, const char *text,
		      size_t n, void *out, struct skv_error *err);
/* Limit of fields, including those of messages inside. */
#define SKV_TABLE_PB_FIELDS 4096u
void skv_table_write_json(const struct skv_table *t, struct skv_buf *out, const void *message);
/* Writes a message; `keys`: the values of its KEYS, in the caller's form; NULL if there are
 * none. */
void skv_table_write_pb(const struct skv_table *t, struct skv_buf *out, const void *message,
			const struct skv_key_input *keys);

#endif
