/*
 * bytes.h - growing byte buffer and bounded reader for durable formats and wire codecs.
 *
 * All integers are little-endian. One thread at a time.
 */
#ifndef SKV_BYTES_H
#define SKV_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writer. `failed` is sticky: after an allocation failure every put is a no-op and the caller
 * checks once at the end. `max`, if not 0, limits its length (the memory may be up to twice that):
 * beyond it every put fails as well, and `over` is set. Zero-initialise or skv_buf_init; release
 * with skv_buf_destroy. */
struct skv_buf {
	uint8_t *data;
	size_t len;
	size_t cap;
	size_t max;
	bool failed;
	bool over;
};

void skv_buf_init(struct skv_buf *b);
void skv_buf_destroy(struct skv_buf *b);
void skv_buf_clear(struct skv_buf *b); /* len = 0, failed = over = false, keeps memory and max */
/* Frees unused memory, if possible. */
void skv_buf_trim(struct skv_buf *b);
/* Makes room for `more` additional bytes. False (and sticky `failed`) if out of memory. */
bool skv_buf_reserve(struct skv_buf *b, size_t more);
void skv_put_bytes(struct skv_buf *b, const void *p, size_t n);
void skv_put_u8(struct skv_buf *b, uint8_t v);
void skv_put_u16(struct skv_buf *b, uint16_t v);
void skv_put_u32(struct skv_buf *b, uint32_t v);
void skv_put_u64(struct skv_buf *b, uint64_t v);
void skv_put_varint(struct skv_buf *b, uint64_t v); /* LEB128, 1..10 bytes */
/* varint length, then the bytes. */
void skv_put_string(struct skv_buf *b, const char *s, size_t n);
/* Overwrites 4 bytes at `at` (already written), e.g. a length known only at the end. */
void skv_buf_set_u32(struct skv_buf *b, size_t at, uint32_t v);
void skv_buf_printf(struct skv_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Reader over borrowed bytes. `failed` is sticky; a failed read returns 0 / NULL. */
struct skv_rd {
	const uint8_t *p;
	const uint8_t *end;
	bool failed;
};

struct skv_rd skv_rd_make(const void *p, size_t n);
/* Unread bytes; 0 once a read has failed, so that `while (skv_rd_left(r))` ends on any input. */
size_t skv_rd_left(const struct skv_rd *r);
const uint8_t *skv_get_bytes(struct skv_rd *r, size_t n); /* borrowed */
uint8_t skv_get_u8(struct skv_rd *r);
uint16_t skv_get_u16(struct skv_rd *r);
uint32_t skv_get_u32(struct skv_rd *r);
uint64_t skv_get_u64(struct skv_rd *r);
uint64_t skv_get_varint(struct skv_rd *r);
/* Borrowed, not NUL-terminated; *n is the length; fails above `max`. */
const char *skv_get_string(struct skv_rd *r, size_t *n, size_t max);

#endif
