/*
 * pb.h - just enough protobuf to walk the fields of a message, and to write some.
 *
 * Whole messages are the codecs' (api/v1, api/proto); this finds what a transport needs of one, and
 * serves health and reflection. No state; any thread.
 */
#ifndef SKV_PB_H
#define SKV_PB_H

#include <skv/bytes.h>

struct pb_field {
	uint32_t number;
	uint32_t wire;
	uint64_t v;       /* of a number */
	const uint8_t *p; /* of bytes (wire type 2) */
	size_t n;
};

/* The next field; false at the end, and with r->failed when it is no protobuf. */
static inline bool pb_next(struct skv_rd *r, struct pb_field *f)
{
	uint64_t tag;

	if (skv_rd_left(r) == 0 || r->failed)
		return false;
	tag = skv_get_varint(r);
	*f = (struct pb_field){ .number = (uint32_t)(tag >> 3), .wire = (uint32_t)(tag & 7) };
	if (tag >> 32 || f->number == 0)
		r->failed = true;
	else if (f->wire == 0)
		f->v = skv_get_varint(r);
	else if (f->wire == 1)
		f->v = skv_get_u64(r);
	else if (f->wire == 5)
		f->v = skv_get_u32(r);
	else if (f->wire == 2) {
		uint64_t n = skv_get_varint(r);

		if (n > skv_rd_left(r))
			r->failed = true;
		else
			f->n = (size_t)n, f->p = skv_get_bytes(r, (size_t)n);
	} else {
		r->failed = true;
	}
	return !r->failed;
}

static inline void pb_put_bytes(struct skv_buf *b, uint32_t number, const void *p, size_t n)
{
	skv_put_varint(b, (uint64_t)number << 3 | 2);
	skv_put_varint(b, n);
	skv_put_bytes(b, p, n);
}

static inline void pb_put_number(struct skv_buf *b, uint32_t number, uint64_t v)
{
	skv_put_varint(b, (uint64_t)number << 3);
	skv_put_varint(b, v);
}

#endif
