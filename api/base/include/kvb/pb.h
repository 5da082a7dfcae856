/*
 * pb.h - just enough protobuf to walk the fields of a message, and to write some.
 *
 * Whole messages are the codecs' (api/v1, api/proto); this finds what a transport needs of one, and
 * serves health and reflection. No state; any thread.
 */
#ifndef KVB_PB_H
#define KVB_PB_H

#include <kvb/bytes.h>

struct pb_field {
	uint32_t number;
	uint32_t wire;
	uint64_t v;       /* of a number */
	const uint8_t *p; /* of bytes (wire type 2) */
	size_t n;
};

/* The next field; false at the end, and with r->failed when it is no protobuf. */
static inline bool pb_next(struct kvb_rd *r, struct pb_field *f)
{
	uint64_t tag;

	if (kvb_rd_left(r) == 0 || r->failed)
		return false;
	tag = kvb_get_varint(r);
	*f = (struct pb_field){ .number = (uint32_t)(tag >> 3), .wire = (uint32_t)(tag & 7) };
	if (tag >> 32 || f->number == 0)
		r->failed = true;
	else if (f->wire == 0)
		f->v = kvb_get_varint(r);
	else if (f->wire == 1)
		f->v = kvb_get_u64(r);
	else if (f->wire == 5)
		f->v = kvb_get_u32(r);
	else if (f->wire == 2) {
		uint64_t n = kvb_get_varint(r);

		if (n > kvb_rd_left(r))
			r->failed = true;
		else
			f->n = (size_t)n, f->p = kvb_get_bytes(r, (size_t)n);
	} else {
		r->failed = true;
	}
	return !r->failed;
}

static inline void pb_put_bytes(struct kvb_buf *b, uint32_t number, const void *p, size_t n)
{
	kvb_put_varint(b, (uint64_t)number << 3 | 2);
	kvb_put_varint(b, n);
	kvb_put_bytes(b, p, n);
}

static inline void pb_put_number(struct kvb_buf *b, uint32_t number, uint64_t v)
{
	kvb_put_varint(b, (uint64_t)number << 3);
	kvb_put_varint(b, v);
}

#endif
