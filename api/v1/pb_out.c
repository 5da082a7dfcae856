/*
 * pb_out.c - protobuf fields written into a struct kvb_buf. No state; one thread per buffer.
 */
#include "pb.h"

#define LENGTH_BYTES 3 /* left for the length of a submessage; moved when it needs fewer or more */

void kvb_pb_put_present(struct kvb_buf *b, uint32_t num, uint64_t v)
{
	kvb_put_varint(b, num << 3 | PB_VARINT);
	kvb_put_varint(b, v);
}

void kvb_pb_put_uint(struct kvb_buf *b, uint32_t num, uint64_t v)
{
	if (v)
		kvb_pb_put_present(b, num, v);
}

void kvb_pb_put_bytes(struct kvb_buf *b, uint32_t num, const void *p, size_t n)
{
	kvb_put_varint(b, num << 3 | PB_BYTES);
	kvb_put_varint(b, n);
	kvb_put_bytes(b, p, n);
}

void kvb_pb_put_text(struct kvb_buf *b, uint32_t num, const char *s)
{
	size_t n = strlen(s);

	if (n)
		kvb_pb_put_bytes(b, num, s, n);
}

void kvb_pb_put_texts(struct kvb_buf *b, uint32_t num, const char *const *v, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		kvb_pb_put_bytes(b, num, v[i], strlen(v[i]));
}

size_t kvb_pb_put_begin(struct kvb_buf *b, uint32_t num, size_t max)
{
	kvb_put_varint(b, num << 3 | PB_BYTES);
	if (!kvb_buf_reserve(b, max + 16))
		return 0;
	b->len += LENGTH_BYTES;
	return b->len;
}

void kvb_pb_put_end(struct kvb_buf *b, size_t begin)
{
	size_t n = b->len - begin;
	uint8_t length[10];
	size_t k = (size_t)(kvb_pb_raw_varint(length, n) - length);
	uint8_t *at;

	if (b->failed || !kvb_buf_reserve(b, sizeof length))
		return;
	at = b->data + begin - LENGTH_BYTES;
	if (k != LENGTH_BYTES)
		memmove(at + k, at + LENGTH_BYTES, n);
	memcpy(at, length, k);
	b->len = begin - LENGTH_BYTES + k + n;
}
