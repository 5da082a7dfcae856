/* utf8.h - minimal UTF-8 for messages. Stateless, any thread. */
#ifndef SKV_UTF8_H
#define SKV_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Decodes the character at `s`, with `n` > 0 bytes available. Returns its length, 1..4, or 0 if the
 * bytes are not valid UTF-8 (overlong forms, surrogates and numbers above 0x10ffff are not). */
size_t skv_utf8_next(const char *s, size_t n, uint32_t *c);

/* Length of the longest prefix of `s` (`n` bytes) of at most `max` bytes that ends between
 * characters. */
size_t skv_utf8_cut(const char *s, size_t n, size_t max);

#endif
