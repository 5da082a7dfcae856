/*
 * json_out.h - writes JSON into a struct skv_buf; the reader is skv/json.h.
 *
 * Commas are automatic: a value or field that does not follow an opening bracket or a colon is
 * preceded by one (decided by the last byte written; a string always ends in a quote). Lack of
 * memory sticks to the buffer. Nothing is checked: the caller must match brackets and use plain
 * names. Values repeated thousands of times use the raw part: one reserve, then plain stores.
 *
 * Stateless; one thread per buffer.
 */
#ifndef SKV_JSON_OUT_H
#define SKV_JSON_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <skv/bytes.h>
#include <skv/hash.h>

/* Opens the outermost object, whatever the buffer holds before it. Close with skv_jout_close(b,
 * '}'). */
void skv_jout_begin(struct skv_buf *b);
void skv_jout_open(struct skv_buf *b, char bracket);  /* '{' or '[' as a value */
void skv_jout_close(struct skv_buf *b, char bracket); /* '}' or ']' */
/* The name of a field, plain ASCII without quotes. */
void skv_jout_name(struct skv_buf *b, const char *name);

/* A value: an element of an array, or of a field after skv_jout_name. */
void skv_jout_null(struct skv_buf *b);
void skv_jout_bool(struct skv_buf *b, bool v);
/* JSON integer; above 2^63-1, which many parsers cannot hold, a decimal string. */
void skv_jout_u64(struct skv_buf *b, uint64_t v);
void skv_jout_u64_string(struct skv_buf *b, uint64_t v); /* always a decimal string */
void skv_jout_i64(struct skv_buf *b, int64_t v);
void skv_jout_i64_string(struct skv_buf *b, int64_t v);  /* a decimal string */
void skv_jout_hex64(struct skv_buf *b, uint64_t v);      /* string of 16 hex digits */
/* text that is JSON already, or the start of it */
void skv_jout_plain(struct skv_buf *b, const char *s, size_t n);
void skv_jout_key(struct skv_buf *b, struct skv_key key);
/* Byte for byte (escaped): invalid UTF-8 stays, and the reader refuses it. */
void skv_jout_string(struct skv_buf *b, const char *s);
/* the same; NUL bytes may be in it */
void skv_jout_string_n(struct skv_buf *b, const char *s, size_t n);
/* For messages: invalid UTF-8 (e.g. a message cut in mid-character) becomes '?'. */
void skv_jout_text(struct skv_buf *b, const char *s);

/* A field. */
void skv_jout_field_bool(struct skv_buf *b, const char *name, bool v);
void skv_jout_field_u64(struct skv_buf *b, const char *name, uint64_t v);
void skv_jout_field_string(struct skv_buf *b, const char *name, const char *s);
void skv_jout_field_text(struct skv_buf *b, const char *name, const char *s);
void skv_jout_field_strings(struct skv_buf *b, const char *name, const char *const *v, uint32_t n);

/* ---- raw: the caller counts bytes and commas ------------------------------------------------- */

/* Maximum bytes that these functions write, quotes included. */
#define SKV_JRAW_U64 22
#define SKV_JRAW_KEY 34

/* Where at least n bytes may be stored; NULL if out of memory (b->failed). skv_jraw_end, given the
 * end position, makes them count. */
static inline char *skv_jraw_begin(struct skv_buf *b, size_t n)
{
	return skv_buf_reserve(b, n) ? (char *)b->data + b->len : NULL;
}

static inline void skv_jraw_end(struct skv_buf *b, const char *p)
{
	b->len = (size_t)(p - (const char *)b->data);
}

/* Each returns the position after what it stored. The text is a literal. */
#define skv_jraw_text(p, literal) skv_jraw_bytes((p), (literal), sizeof(literal) - 1)
static inline char *skv_jraw_bytes(char *p, const char *s, size_t n)
{
	memcpy(p, s, n);
	return p + n;
}

char *skv_jraw_digits(char *p, uint64_t v);     /* decimal, no quotes */
char *skv_jraw_u64(char *p, uint64_t v);        /* as skv_jout_u64 */
char *skv_jraw_u64_string(char *p, uint64_t v); /* as skv_jout_u64_string */
char *skv_jraw_hex64(char *p, uint64_t v);      /* as skv_jout_hex64 */
char *skv_jraw_key(char *p, struct skv_key key);

#endif
