/*
 * pb.h - reading and writing protobuf by hand, internal to api/v1: what the hot messages of
 * slabkv.proto are made of.
 *
 * A `struct skv_pbdoc` is a message being read; the first failure sticks to it, later reads return
 * 0 or "" and change nothing. A message is walked field by field (skv_pb_next); repeated fields are
 * counted on the first walk and stored on a second, so nothing is allocated that the bytes do not
 * hold. No state; one thread per document.
 */
#ifndef SKV_V1_PB_PARTS_H
#define SKV_V1_PB_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <skv/bytes.h>
#include <skv/pb.h>
#include <skv/status.h>
#include <skv/v1_pb.h>

#include "columns.h"

#define PB_NUMBER_END (1u << 29) /* field numbers are below this */
#define PB_NO_INDEX UINT32_MAX

/* A place in the message, for errors: "columns[0].runs[5]". Lives on the reader's stack. */
struct skv_pbat {
	const struct skv_pbat *up;
	const char *name;
	uint32_t index; /* PB_NO_INDEX: no repeated field */
};

struct skv_pbdoc {
	const struct skv_v1_in *in;
	struct skv_error *err;
	int status;                /* first failure */
	const struct skv_pbat *at; /* the submessage that is read; NULL: the message itself */
};

/* ---- pb_in.c --------------------------------------------------------------------------------- */

struct skv_pbdoc skv_pb_open(const struct skv_v1_in *in, struct skv_error *err);
static inline bool skv_pb_ok(const struct skv_pbdoc *d) { return d->status == SKV_OK; }
/* Fails the document at field `name` (with PB_NO_INDEX) or element
 * name[index]; NULL: the place d->at. */
void skv_pb_fail(struct skv_pbdoc *d, const char *name, uint32_t index, int status, const char *fmt,
		 ...) __attribute__((format(printf, 5, 6), cold));
/* Memory of the arena, zeroed; fails the document when there is none. */
void *skv_pb_alloc(struct skv_pbdoc *d, size_t n, size_t size);
/* skv_pb_next, below, for every field that there can be. */
bool skv_pb_next_slow(struct skv_pbdoc *d, struct skv_rd *r, struct pb_field *f);
/* Fails, and returns false, unless the field has the wire type. */
bool skv_pb_wire(struct skv_pbdoc *d, const struct pb_field *f, const char *name, unsigned wire);
/* Fails: the field is no number up to `max`. Returns 0. */
uint64_t skv_pb_bad_number(struct skv_pbdoc *d, const struct pb_field *f, const char *name,
			   uint64_t max);
/* Values. They fail the document when the wire type is another or the value out of range. */
static inline uint64_t skv_pb_u64(struct skv_pbdoc *d, const struct pb_field *f, const char *name,
				  uint64_t max)
{
	return f->wire == PB_VARINT && f->v <= max ? f->v : skv_pb_bad_number(d, f, name, max);
}
static inline uint32_t skv_pb_u32(struct skv_pbdoc *d, const struct pb_field *f, const char *name,
				  uint32_t max)
{
	return (uint32_t)skv_pb_u64(d, f, name, max);
}
/* Text of min..max bytes of UTF-8 without NUL, copied into the arena. "" after a failure. */
const char *skv_pb_text(struct skv_pbdoc *d, const struct pb_field *f, const char *name,
			uint32_t index, size_t min, size_t max);
const char *skv_pb_name(struct skv_pbdoc *d, const struct pb_field *f, const char *name,
			uint32_t index);
/* Fails unless min <= n <= max; above that SKV_E_TOO_LARGE. */
void skv_pb_count(struct skv_pbdoc *d, const char *name, size_t n, uint32_t min, uint32_t max);
/* Names in field `num` of a message, of which there are n: checked, none twice. */
const char *const *skv_pb_names(struct skv_pbdoc *d, struct skv_rd message, uint32_t num,
				const char *name, uint32_t n);
/* The same of names of instances (skv_model_name_valid). */
const char *const *skv_pb_model_names(struct skv_pbdoc *d, struct skv_rd message, uint32_t num,
				      const char *name, uint32_t n);
/* How many numbers a field of a repeated number holds, packed or not; `wire`
 * PB_VARINT or PB_FIXED64. */
size_t skv_pb_numbers(struct skv_pbdoc *d, const struct pb_field *f, const char *name,
		      unsigned wire);
/* All numbers in field `num` of a message, of which skv_pb_numbers counted n, in the arena. */
uint64_t *skv_pb_all_numbers(struct skv_pbdoc *d, struct skv_rd message, uint32_t num,
			     const char *name, unsigned wire, size_t n);
/* Returns true for UTF-8 without NUL. */
bool skv_pb_utf8(const uint8_t *s, size_t n);

/* ---- numbers --------------------------------------------------------------------------------- */

static inline uint64_t skv_pb_zigzag(uint64_t v) { return v << 1 ^ (uint64_t)-(v >> 63); }
static inline uint64_t skv_pb_unzigzag(uint64_t v) { return v >> 1 ^ (uint64_t)-(v & 1); }

/* The next field; false at the end or when the bytes are no message (the document has failed).
 * Short tags of numbers and short submessages, which are nearly all, are taken here. */
static inline bool skv_pb_next(struct skv_pbdoc *d, struct skv_rd *r, struct pb_field *f)
{
	const uint8_t *p = r->p;
	size_t left = (size_t)(r->end - p);

	if (left < 2 || !skv_pb_ok(d) || p[0] < 8 || p[0] >= 0x80 || p[1] >= 0x80)
		return skv_pb_next_slow(d, r, f);
	f->number = p[0] >> 3;
	f->wire = p[0] & 7;
	if (f->wire == PB_VARINT) {
		f->v = p[1];
		f->p = NULL;
		f->n = 0;
		r->p = p + 2;
		return true;
	}
	if (f->wire != PB_BYTES || p[1] > left - 2)
		return skv_pb_next_slow(d, r, f);
	f->v = 0;
	f->p = p + 2;
	f->n = p[1];
	r->p = p + 2 + f->n;
	return true;
}

/* Skips fields that follow with the number, the type and the (short) length of this one, and
 * returns how many: the bytes of the i-th, from 1 on, begin at f->p + i * (f->n + 2). */
static inline size_t skv_pb_alike(struct skv_rd *r, const struct pb_field *f)
{
	const uint8_t *p = r->p;
	const size_t step = f->n + 2;

	if (f->wire != PB_BYTES || f->number >= 16 || f->n >= 0x80 || p != f->p + f->n)
		return 0;
	while ((size_t)(r->end - p) >= step && p[0] == (uint8_t)(f->number << 3 | PB_BYTES) &&
	       p[1] == (uint8_t)f->n)
		p += step;
	r->p = p;
	return (size_t)(p - f->p - f->n) / step;
}

static inline uint64_t skv_pb_load64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof v);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	v = __builtin_bswap64(v);
#endif
	return v;
}

/* 16 bytes, as in keys_raw. */
static inline struct skv_key skv_pb_load_key(const uint8_t *p)
{
	return (struct skv_key){ __builtin_bswap64(skv_pb_load64(p)),
				 __builtin_bswap64(skv_pb_load64(p + 8)) };
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Writes directly into reserved memory: returns the position after the written bytes. */
static inline uint8_t *skv_pb_raw_varint(uint8_t *p, uint64_t v)
{
	while (v >= 0x80) {
		*p++ = (uint8_t)(v | 0x80);
		v >>= 7;
	}
	*p++ = (uint8_t)v;
	return p;
}

/* A varint field below number 16, left out when 0, as proto3 has it. */
static inline uint8_t *skv_pb_raw_uint(uint8_t *p, uint32_t num, uint64_t v)
{
	if (v == 0)
		return p;
	*p++ = (uint8_t)(num << 3 | PB_VARINT);
	return skv_pb_raw_varint(p, v);
}

static inline uint8_t *skv_pb_raw_64(uint8_t *p, uint64_t v)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	v = __builtin_bswap64(v);
#endif
	memcpy(p, &v, sizeof v);
	return p + sizeof v;
}

/* pb_out.c: fields into a buffer; numbers 0 and empty texts are left out. */
void skv_pb_put_uint(struct skv_buf *b, uint32_t num, uint64_t v);
/* Also when 0: members of a oneof. */
void skv_pb_put_present(struct skv_buf *b, uint32_t num, uint64_t v);
void skv_pb_put_bytes(struct skv_buf *b, uint32_t num, const void *p, size_t n);
void skv_pb_put_text(struct skv_buf *b, uint32_t num, const char *s);
void skv_pb_put_texts(struct skv_buf *b, uint32_t num, const char *const *v, uint32_t n);
/* A submessage or packed field of unknown length, up to `max` bytes: room for all of it is
 * reserved. Returns the position for the end, which takes it. */
size_t skv_pb_put_begin(struct skv_buf *b, uint32_t num, size_t max);
void skv_pb_put_end(struct skv_buf *b, size_t begin);
/* A packed field, left out when it is empty. */
void skv_pb_put_numbers(struct skv_buf *b, uint32_t num, const uint32_t *v, uint32_t n);

/* ---- pb_keys.c: fields 1 to 3 of every request with keys ------------------------------------- */

struct skv_pbkeys {
	const uint8_t *raw;
	size_t raw_len;
	size_t n_ints;
	size_t n_strings;
};
/* Takes note of the field if it is one of keys. */
void skv_pb_keys_field(struct skv_pbdoc *d, struct skv_pbkeys *k, const struct pb_field *f);
/* The same, and of those that follow it (skv_pb_alike), which are skipped. */
void skv_pb_keys_fields(struct skv_pbdoc *d, struct skv_pbkeys *k, struct skv_rd *r,
			const struct pb_field *f);
/* After the walk: the keys, checked. */
const struct skv_key *skv_pb_keys(struct skv_pbdoc *d, const struct skv_pbkeys *k,
				  struct skv_rd message, uint32_t *n);
/* Field 7, 8 or 9 of a StartRequest. */
struct skv_key skv_pb_parent(struct skv_pbdoc *d, const struct pb_field *f);
void skv_pb_put_keys(struct skv_buf *b, const struct skv_key_input *keys);
void skv_pb_put_key(struct skv_buf *b, uint32_t num, struct skv_key key);
void skv_pb_put_parent(struct skv_buf *b, const struct skv_key_input *parent);

/* ---- pb_columns.c: files and locations of answers -------------------------------------------- */

void skv_pb_put_files(struct skv_buf *b, uint32_t num, const struct skv_files *files);
/* Field `num` of a message, `n` of them. */
void skv_pb_files(struct skv_pbdoc *d, struct skv_rd message, uint32_t num, uint32_t n,
		  struct skv_files *out);

/* Reads the columns of an answer, field `num`: `n` is how many came, which must be n_specs. A
 * location may be absent (length 0). columns.c writes them. */
void skv_pb_columns(struct skv_pbdoc *d, struct skv_rd message, uint32_t num, uint32_t n,
		    const struct skv_col_rows *rows, uint32_t n_files,
		    struct skv_location *loc);

#endif
