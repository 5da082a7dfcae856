/*
 * bytes.c - little-endian writer and reader for durable formats and wire codecs.
 *
 * Stateless, no locks: a buffer or reader belongs to one thread at a time. Both remember the first
 * failure, so that a codec runs straight through and checks once at the end. The reader trusts
 * nothing: every length is compared with what is left before it is used.
 */
#include <skv/bytes.h>
#include <skv/mem.h>
#include <skv/status.h>

#include <endian.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void skv_buf_init(struct skv_buf *b) { memset(b, 0, sizeof *b); }

void skv_buf_destroy(struct skv_buf *b)
{
	skv_free(b->data);
	skv_buf_init(b);
}

void skv_buf_clear(struct skv_buf *b)
{
	b->len = 0;
	b->failed = b->over = false;
}

void skv_buf_trim(struct skv_buf *b)
{
	void *p = b->cap > b->len ? skv_realloc(b->data, b->len) : NULL;

	if (!p)
		return;
	b->data = p;
	b->cap = b->len > 0 ? b->len : 1;
}

bool skv_buf_reserve(struct skv_buf *b, size_t more)
{
	void *p = b->data;

	if (b->failed)
		return false;
	if (more <= b->cap - b->len)
		return true;
	b->over = b->max && more > b->max - (b->len < b->max ? b->len : b->max);
	if (b->over || more > SIZE_MAX - b->len ||
	    skv_grow(&p, &b->cap, b->len + more, 1) != SKV_OK) {
		b->failed = true;
		return false;
	}
	b->data = p;
	return true;
}

void skv_put_bytes(struct skv_buf *b, const void *p, size_t n)
{
	if (n == 0 || !skv_buf_reserve(b, n))
		return;
	memcpy(b->data + b->len, p, n);
	b->len += n;
}

/* Extends the buffer by n bytes and returns where to write them; NULL: out of memory. */
static uint8_t *take(struct skv_buf *b, size_t n)
{
	if (!skv_buf_reserve(b, n))
		return NULL;
	b->len += n;
	return b->data + b->len - n;
}

void skv_put_u8(struct skv_buf *b, uint8_t v)
{
	uint8_t *at = take(b, 1);

	if (at)
		*at = v;
}

void skv_put_u16(struct skv_buf *b, uint16_t v)
{
	uint8_t *at = take(b, sizeof v);

	v = htole16(v);
	if (at)
		memcpy(at, &v, sizeof v);
}

void skv_put_u32(struct skv_buf *b, uint32_t v)
{
	uint8_t *at = take(b, sizeof v);

	v = htole32(v);
	if (at)
		memcpy(at, &v, sizeof v);
}

void skv_put_u64(struct skv_buf *b, uint64_t v)
{
	uint8_t *at = take(b, sizeof v);

	v = htole64(v);
	if (at)
		memcpy(at, &v, sizeof v);
}

void skv_put_varint(struct skv_buf *b, uint64_t v)
{
	uint8_t t[10];
	size_t n = 0;

	if (v < 0x80) {
		skv_put_u8(b, (uint8_t)v);
		return;
	}
	while (v >= 0x80) {
		t[n++] = (uint8_t)(v | 0x80);
		v >>= 7;
	}
	t[n++] = (uint8_t)v;
	skv_put_bytes(b, t, n);
}

void skv_put_string(struct skv_buf *b, const char *s, size_t n)
{
	skv_put_varint(b, n);
	skv_put_bytes(b, s, n);
}

void skv_buf_set_u32(struct skv_buf *b, size_t at, uint32_t v)
{
	if (b->failed || at > b->len || b->len - at < 4)
		return;
	for (size_t i = 0; i < 4; i++)
		b->data[at + i] = (uint8_t)(v >> (8 * i));
}

void skv_buf_printf(struct skv_buf *b, const char *fmt, ...)
{
	va_list ap, again;
	int n;

	va_start(ap, fmt);
	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0) {
		b->failed = true;
	} else if (skv_buf_reserve(b, (size_t)n + 1)) {
		vsnprintf((char *)b->data + b->len, (size_t)n + 1, fmt, again);
		b->len += (size_t)n;
	}
	va_end(again);
}

struct skv_rd skv_rd_make(const void *p, size_t n)
{
	return (struct skv_rd){ .p = p, .end = n ? (const uint8_t *)p + n : p, .failed = false };
}

size_t skv_rd_left(const struct skv_rd *r) { return r->failed ? 0 : (size_t)(r->end - r->p); }

const uint8_t *skv_get_bytes(struct skv_rd *r, size_t n)
{
	const uint8_t *p = r->p;

	if (r->failed || skv_rd_left(r) < n) {
		r->failed = true;
		return NULL;
	}
	if (n) /* an empty reader may hold NULL, and NULL + 0 is undefined */
		r->p += n;
	return p;
}

uint8_t skv_get_u8(struct skv_rd *r)
{
	const uint8_t *p = skv_get_bytes(r, 1);

	return p ? *p : 0;
}

uint16_t skv_get_u16(struct skv_rd *r)
{
	const uint8_t *p = skv_get_bytes(r, sizeof(uint16_t));
	uint16_t v = 0;

	if (p)
		memcpy(&v, p, sizeof v);
	return le16toh(v);
}

uint32_t skv_get_u32(struct skv_rd *r)
{
	const uint8_t *p = skv_get_bytes(r, sizeof(uint32_t));
	uint32_t v = 0;

	if (p)
		memcpy(&v, p, sizeof v);
	return le32toh(v);
}

uint64_t skv_get_u64(struct skv_rd *r)
{
	const uint8_t *p = skv_get_bytes(r, sizeof(uint64_t));
	uint64_t v = 0;

	if (p)
		memcpy(&v, p, sizeof v);
	return le64toh(v);
}

uint64_t skv_get_varint(struct skv_rd *r)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		uint8_t c = skv_get_u8(r);

		if (r->failed)
			return 0;
		if (shift == 63 && c > 1)
			break;
		v |= (uint64_t)(c & 0x7f) << shift;
		if (!(c & 0x80))
			return v;
	}
	r->failed = true;
	return 0;
}

const char *skv_get_string(struct skv_rd *r, size_t *n, size_t max)
{
	uint64_t len = skv_get_varint(r);

	if (r->failed || len > max || len > skv_rd_left(r)) {
		r->failed = true;
		*n = 0;
		return NULL;
	}
	*n = (size_t)len;
	return (const char *)skv_get_bytes(r, (size_t)len);
}
