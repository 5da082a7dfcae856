/*
 * bytes.h - growing byte buffer and bounded reader for durable formats and wire codecs.
 *
 * All integers are little-endian. One thread at a time.
 */
#ifndef KVB_BYTES_H
#define KVB_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writer. `failed` is sticky: after an allocation failure every put is a no-op and the caller checks
 * once at the end. Zero-initialise or kvb_buf_init; release with kvb_buf_destroy. */
struct kvb_buf {
	uint8_t *data;
	size_t len;
	size_t cap;
	bool failed;
};

void kvb_buf_init(struct kvb_buf *b);
void kvb_buf_destroy(struct kvb_buf *b);
void kvb_buf_clear(struct kvb_buf *b); /* len = 0, failed = false, keeps the memory */
/* Makes room for `more` further bytes. False (and sticky `failed`) when out of memory. */
bool kvb_buf_reserve(struct kvb_buf *b, size_t more);
void kvb_put_bytes(struct kvb_buf *b, const void *p, size_t n);
void kvb_put_u8(struct kvb_buf *b, uint8_t v);
void kvb_put_u16(struct kvb_buf *b, uint16_t v);
void kvb_put_u32(struct kvb_buf *b, uint32_t v);
void kvb_put_u64(struct kvb_buf *b, uint64_t v);
void kvb_put_varint(struct kvb_buf *b, uint64_t v); /* LEB128, 1..10 bytes */
/* varint length, then the bytes. */
void kvb_put_string(struct kvb_buf *b, const char *s, size_t n);
/* Overwrites 4 bytes at `at` (already written), e.g. a length known only at the end. */
void kvb_buf_set_u32(struct kvb_buf *b, size_t at, uint32_t v);
void kvb_buf_printf(struct kvb_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Reader over borrowed bytes. `failed` is sticky; a failed read returns 0 / NULL. */
struct kvb_rd {
	const uint8_t *p;
	const uint8_t *end;
	bool failed;
};

struct kvb_rd kvb_rd_make(const void *p, size_t n);
size_t kvb_rd_left(const struct kvb_rd *r);
const uint8_t *kvb_get_bytes(struct kvb_rd *r, size_t n); /* borrowed */
uint8_t kvb_get_u8(struct kvb_rd *r);
uint16_t kvb_get_u16(struct kvb_rd *r);
uint32_t kvb_get_u32(struct kvb_rd *r);
uint64_t kvb_get_u64(struct kvb_rd *r);
uint64_t kvb_get_varint(struct kvb_rd *r);
/* Borrowed, not NUL-terminated; *n gets the length; fails above `max`. */
const char *kvb_get_string(struct kvb_rd *r, size_t *n, size_t max);

#endif
