/*
 * json_out.h - writing JSON straight into a struct kvb_buf; the reader is kvb/json.h.
 *
 * Commas take care of themselves: a value or field that does not follow an opening bracket or a colon
 * is preceded by one (the last byte written tells; a string always ends in a quote). Lack of memory
 * sticks to the buffer. Nothing is checked: that brackets match and names are plain is the caller's.
 * What repeats thousands of times is written by the raw part instead: one reserve, then plain stores.
 *
 * No state; one thread per buffer.
 */
#ifndef KVB_JSON_OUT_H
#define KVB_JSON_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <kvb/bytes.h>
#include <kvb/hash.h>

/* The outermost object, whatever the buffer holds before it. Close with kvb_jout_close(b, '}'). */
void kvb_jout_begin(struct kvb_buf *b);
void kvb_jout_open(struct kvb_buf *b, char bracket);  /* '{' or '[' as a value */
void kvb_jout_close(struct kvb_buf *b, char bracket); /* '}' or ']' */
/* The name of a field, plain ASCII without quotes. */
void kvb_jout_name(struct kvb_buf *b, const char *name);

/* A value: an element of an array, or of a field after kvb_jout_name. */
void kvb_jout_null(struct kvb_buf *b);
void kvb_jout_bool(struct kvb_buf *b, bool v);
/* JSON integer; above 2^63-1, which many parsers cannot hold, a decimal string. */
void kvb_jout_u64(struct kvb_buf *b, uint64_t v);
void kvb_jout_u64_string(struct kvb_buf *b, uint64_t v); /* always a decimal string */
void kvb_jout_i64(struct kvb_buf *b, int64_t v);
void kvb_jout_i64_string(struct kvb_buf *b, int64_t v);  /* a decimal string */
void kvb_jout_hex64(struct kvb_buf *b, uint64_t v);      /* string of 16 hex digits */
void kvb_jout_plain(struct kvb_buf *b, const char *s, size_t n); /* text that is JSON already, or begins it */
void kvb_jout_key(struct kvb_buf *b, struct kvb_key key);
/* Byte for byte (escaped): what is not UTF-8 stays so and is refused by the reader. */
void kvb_jout_string(struct kvb_buf *b, const char *s);
void kvb_jout_string_n(struct kvb_buf *b, const char *s, size_t n); /* the same; NUL bytes may be in it */
/* For texts to people: bytes that are not UTF-8 (a message cut in mid-character) become '?'. */
void kvb_jout_text(struct kvb_buf *b, const char *s);

/* A field. */
void kvb_jout_field_bool(struct kvb_buf *b, const char *name, bool v);
void kvb_jout_field_u64(struct kvb_buf *b, const char *name, uint64_t v);
void kvb_jout_field_string(struct kvb_buf *b, const char *name, const char *s);
void kvb_jout_field_text(struct kvb_buf *b, const char *name, const char *s);
void kvb_jout_field_strings(struct kvb_buf *b, const char *name, const char *const *v, uint32_t n);

/* ---- raw: the caller counts bytes and commas ------------------------------------------------------ */

/* Most bytes that these functions write, quotes included. */
#define KVB_JRAW_U64 22
#define KVB_JRAW_KEY 34

/* Where at least n bytes may be stored; NULL when there is no memory (b->failed). What is stored counts
 * from kvb_jraw_end on, which gets the position behind it. */
static inline char *kvb_jraw_begin(struct kvb_buf *b, size_t n)
{
	return kvb_buf_reserve(b, n) ? (char *)b->data + b->len : NULL;
}

static inline void kvb_jraw_end(struct kvb_buf *b, const char *p)
{
	b->len = (size_t)(p - (const char *)b->data);
}

/* Each returns the position behind what it stored. The text is a literal. */
#define kvb_jraw_text(p, literal) kvb_jraw_bytes((p), (literal), sizeof(literal) - 1)
static inline char *kvb_jraw_bytes(char *p, const char *s, size_t n)
{
	memcpy(p, s, n);
	return p + n;
}

char *kvb_jraw_digits(char *p, uint64_t v);     /* decimal, no quotes */
char *kvb_jraw_u64(char *p, uint64_t v);        /* as kvb_jout_u64 */
char *kvb_jraw_u64_string(char *p, uint64_t v); /* as kvb_jout_u64_string */
char *kvb_jraw_hex64(char *p, uint64_t v);      /* as kvb_jout_hex64 */
char *kvb_jraw_key(char *p, struct kvb_key key);

#endif
