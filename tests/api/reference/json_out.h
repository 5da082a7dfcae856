/*
 * json_out.h - writing JSON straight into a struct skv_buf, the reference.
 *
 * Commas take care of themselves: a value or field that does not follow an opening bracket or a colon
 * is preceded by one (the last byte written tells; a string always ends in a quote). Lack of memory
 * sticks to the buffer. No state; one thread per buffer.
 */
#ifndef TESTS_REF_JSON_OUT_H
#define TESTS_REF_JSON_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <skv/bytes.h>
#include <skv/hash.h>

/* The outermost object, whatever the buffer holds before it. Close with ref_jout_close(b, '}'). */
void ref_jout_begin(struct skv_buf *b);
void ref_jout_open(struct skv_buf *b, char bracket);  /* '{' or '[' as a value */
void ref_jout_close(struct skv_buf *b, char bracket); /* '}' or ']' */
/* The name of a field, plain ASCII without quotes. */
void ref_jout_name(struct skv_buf *b, const char *name);

/* A value: an element of an array, or of a field after ref_jout_name. */
void ref_jout_null(struct skv_buf *b);
void ref_jout_bool(struct skv_buf *b, bool v);
/* JSON integer; above 2^63-1, which many parsers cannot hold, a decimal string. */
void ref_jout_u64(struct skv_buf *b, uint64_t v);
void ref_jout_u64_string(struct skv_buf *b, uint64_t v); /* always a decimal string */
void ref_jout_hex64(struct skv_buf *b, uint64_t v);      /* string of 16 hex digits */
void ref_jout_key(struct skv_buf *b, struct skv_key key);
/* Byte for byte (escaped): what is not UTF-8 stays so and is refused by the reader. */
void ref_jout_string(struct skv_buf *b, const char *s);
/* For texts to people: bytes that are not UTF-8 (a message cut in mid-character) become '?'. */
void ref_jout_text(struct skv_buf *b, const char *s);

/* A field. */
void ref_jout_field_bool(struct skv_buf *b, const char *name, bool v);
void ref_jout_field_u64(struct skv_buf *b, const char *name, uint64_t v);
void ref_jout_field_string(struct skv_buf *b, const char *name, const char *s);
void ref_jout_field_text(struct skv_buf *b, const char *name, const char *s);
void ref_jout_field_strings(struct skv_buf *b, const char *name, const char *const *v, uint32_t n);

#endif
