/*
 * pb_out.c - protobuf fields written into a struct skv_buf. No state; one thread per buffer.
 */
#include "pb.h"

#include <skv/check.h>

#define LENGTH_BYTES 3 /* left for the length of a submessage; moved when it needs fewer or more */

void skv_pb_put_present(struct skv_buf *b, uint32_t num, uint64_t v)
{
	SKV_CHECK(num > 0 && num < PB_NUMBER_END);
	skv_put_varint(b, num << 3 | PB_VARINT);
	skv_put_varint(b, v);
}

void skv_pb_put_uint(struct skv_buf *b, uint32_t num, uint64_t v)
{
	if (v)
		skv_pb_put_present(b, num, v);
}

void skv_pb_put_bytes(struct skv_buf *b, uint32_t num, const void *p, size_t n)
{
	SKV_CHECK(num > 0 && num < PB_NUMBER_END);
	skv_put_varint(b, num << 3 | PB_BYTES);
	skv_put_varint(b, n);
	skv_put_bytes(b, p, n);
}

void skv_pb_put_text(struct skv_buf *b, uint32_t num, const char *s)
{
	size_t n = strlen(s);

	if (n)
		skv_pb_put_bytes(b, num, s, n);
}

void skv_pb_put_texts(struct skv_buf *b, uint32_t num, const char *const *v, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		skv_pb_put_bytes(b, num, v[i], strlen(v[i]));
}

size_t skv_pb_put_begin(struct skv_buf *b, uint32_t num, size_t max)
{
	skv_put_varint(b, num << 3 | PB_BYTES);
	if (!skv_buf_reserve(b, max + 16))
		return 0;
	b->len += LENGTH_BYTES;
	SKV_CHECK(b->len + max <= b->cap);
	return b->len;
}

void skv_pb_put_end(struct skv_buf *b, size_t begin)
{
	size_t n = b->len - begin;
	uint8_t length[10];
	size_t k = (size_t)(skv_pb_raw_varint(length, n) - length);
	uint8_t *at;

	if (b->failed || !skv_buf_reserve(b, sizeof length))
		return;
	SKV_CHECK(begin >= LENGTH_BYTES && begin <= b->len);
	SKV_CHECK(b->len + k <= b->cap);
	at = b->data + begin - LENGTH_BYTES;
	if (k != LENGTH_BYTES)
		memmove(at + k, at + LENGTH_BYTES, n);
	memcpy(at, length, k);
	b->len = begin - LENGTH_BYTES + k + n;
}

void skv_pb_put_numbers(struct skv_buf *b, uint32_t num, const uint32_t *v, uint32_t n)
{
	size_t begin = n ? skv_pb_put_begin(b, num, 0) : 0;

	for (uint32_t i = 0; i < n; i++)
		skv_put_varint(b, v[i]);
	if (n)
		skv_pb_put_end(b, begin);
}
