/*
 * pb.h - reads and writes protobuf fields of messages whose types the caller knows.
 *
 * Used by api/v1 for its messages and by transports for health and reflection. Messages known only
 * by descriptor use api/proto, which also handles groups and unknown fields. Stateless; any thread.
 */
#ifndef SKV_PB_H
#define SKV_PB_H

#include <skv/bytes.h>

enum { PB_VARINT = 0, PB_FIXED64 = 1, PB_BYTES = 2, PB_FIXED32 = 5 }; /* wire types */

struct pb_field {
	uint32_t number;
	uint32_t wire;
	uint64_t v;       /* PB_VARINT, PB_FIXED64, PB_FIXED32 */
	const uint8_t *p; /* PB_BYTES */
	size_t n;
};

/* LEB128 of at most 64 bits; 0 and r->failed if truncated or longer. */
static inline uint64_t pb_varint(struct skv_rd *r)
{
	const uint8_t *p = r->p;
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 64 && p < r->end; shift += 7) {
		uint8_t c = *p++;

		if (shift == 63 && c > 1)
			break;
		v |= (uint64_t)(c & 0x7f) << shift;
		if (c < 0x80) {
			r->p = p;
			return v;
		}
	}
	r->failed = true;
	return 0;
}

/* The next field; false at the end, and with r->failed if malformed: f->number is 0 if it has none,
 * f->wire is an unknown wire type, or the bytes end inside the field. */
static inline bool pb_next(struct skv_rd *r, struct pb_field *f)
{
	uint64_t tag;

	if (r->p == r->end || r->failed)
		return false;
	tag = pb_varint(r);
	*f = (struct pb_field){ .number = tag >> 32 ? 0 : (uint32_t)(tag >> 3),
				.wire = (uint32_t)(tag & 7) };
	if (f->number == 0)
		r->failed = true;
	else if (f->wire == PB_VARINT)
		f->v = pb_varint(r);
	else if (f->wire == PB_FIXED64)
		f->v = skv_get_u64(r);
	else if (f->wire == PB_FIXED32)
		f->v = skv_get_u32(r);
	else if (f->wire == PB_BYTES) {
		uint64_t n = pb_varint(r);

		r->failed = r->failed || n > (size_t)(r->end - r->p);
		if (!r->failed) {
			f->n = (size_t)n;
			f->p = r->p;
			r->p += n;
		}
	} else {
		r->failed = true;
	}
	return !r->failed;
}

static inline void pb_put_bytes(struct skv_buf *b, uint32_t number, const void *p, size_t n)
{
	skv_put_varint(b, (uint64_t)number << 3 | PB_BYTES);
	skv_put_varint(b, n);
	skv_put_bytes(b, p, n);
}

static inline void pb_put_number(struct skv_buf *b, uint32_t number, uint64_t v)
{
	skv_put_varint(b, (uint64_t)number << 3);
	skv_put_varint(b, v);
}

#endif
