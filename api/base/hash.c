/*
 * hash.c - checksums, key hashes, hexadecimal and random bytes: a thin layer over xxHash and
 * libsodium, so that the choice of each function is made in one place.
 *
 * xxHash is compiled in from its header, as its authors advise for speed: Debian's library uses
 * SSE2 alone, checksum_avx2.c sums 1.4 to 3.7 times as many bytes a second.
 *
 * No state of its own beside libsodium's one-time set-up, which random numbers need before several
 * threads use them. Any thread, no locks. XXH3 is used for bytes, never against an attacker;
 * SipHash with the store's secret is used where an attacker could choose the input.
 */
#include <skv/hash.h>

#include <skv/check.h>

#include "checksum.h"

#include <pthread.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#define BULK 1024u /* bytes from which wider registers pay off */

uint64_t skv_checksum(const void *p, size_t n)
{
#if SKV_CHECKSUM_AVX2
	if (n >= BULK && __builtin_cpu_supports("avx2"))
		return skv_checksum_avx2(p, n);
#endif
	return XXH3_64bits(p, n);
}

struct skv_key skv_key_from_string(const struct skv_secret *secret, const char *s, size_t n)
{
	uint8_t out[crypto_shorthash_siphashx24_BYTES];
	struct skv_key key = { 0, 0 };

	_Static_assert(crypto_shorthash_siphashx24_KEYBYTES == sizeof secret->bytes, "secret size");
	crypto_shorthash_siphashx24(out, (const unsigned char *)s, n, secret->bytes);
	for (int i = 0; i < 8; i++) {
		key.hi = key.hi << 8 | out[i];
		key.lo = key.lo << 8 | out[8 + i];
	}
	return key;
}

struct skv_key skv_hash128(const void *p, size_t n)
{
	XXH128_hash_t h = XXH3_128bits(p, n);

	return (struct skv_key){ .hi = h.high64, .lo = h.low64 };
}

/* Hex digits are handled eight at a time: a byte for each, the first one in the lowest. */
#define EACH(byte) (0x0101010101010101u * (byte))
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define LITTLE(x) __builtin_bswap64(x)
#else
#define LITTLE(x) (x)
#endif

static inline uint64_t digits_of(uint64_t v)
{
	return v + EACH('0') + ((v + EACH(6)) >> 4 & EACH(1)) * ('a' - '9' - 1);
}

void skv_hex64(uint64_t v, char out[16])
{
	for (int half = 0; half < 2; half++, v <<= 32) {
		uint64_t x = __builtin_bswap32((uint32_t)(v >> 32));

		x = (x | x << 16) & 0x0000ffff0000ffffu;
		x = (x | x << 8) & 0x00ff00ff00ff00ffu;
		x = LITTLE(digits_of((x >> 4 | x << 8) & EACH(0x0f)));
		memcpy(out + 8 * half, &x, sizeof x);
	}
}

void skv_key_to_hex(struct skv_key key, char out[SKV_KEY_HEX + 1])
{
	skv_hex64(key.hi, out);
	skv_hex64(key.lo, out + 16);
	out[SKV_KEY_HEX] = '\0';
}

/* Returns false unless these are 16 hex digits. */
static bool hex64(const char *s, uint64_t *out)
{
	uint64_t all = 0, bad = 0;

	for (int half = 0; half < 2; half++, s += 8) {
		uint64_t x, v, lower;

		memcpy(&x, s, sizeof x);
		x = LITTLE(x);
		lower = x | EACH(0x20);
		v = (lower & EACH(0x0f)) + (lower >> 6 & EACH(1)) * 9;
		/* Other bytes are no digit, or not the one that their value has. */
		bad |= (~(x | x >> 1) & EACH(0x20)) | (v & EACH(0xf0)) | (digits_of(v) ^ lower);
		v = (v << 4 | v >> 8) & 0x00ff00ff00ff00ffu;
		v = (v | v >> 8) & 0x0000ffff0000ffffu;
		all = all << 32 | __builtin_bswap32((uint32_t)(v | v >> 16));
	}
	*out = all;
	return bad == 0;
}

bool skv_key_from_hex(const char *s, size_t n, struct skv_key *out)
{
	struct skv_key key;

	if (n != SKV_KEY_HEX || !hex64(s, &key.hi) || !hex64(s + 16, &key.lo))
		return false;
	*out = key;
	return true;
}

void skv_sha256(const void *p, size_t n, uint8_t out[SKV_SHA256])
{
	_Static_assert(SKV_SHA256 == crypto_hash_sha256_BYTES, "as libsodium's");
	(void)SKV_CHECK(crypto_hash_sha256(out, p, n) == 0);
}

void skv_mac(const uint8_t key[SKV_MAC], const void *p, size_t n, uint8_t out[SKV_MAC])
{
	_Static_assert(SKV_MAC == crypto_auth_hmacsha256_BYTES &&
			       SKV_MAC == crypto_auth_hmacsha256_KEYBYTES,
		       "as libsodium's");
	(void)SKV_CHECK(crypto_auth_hmacsha256(out, p, n, key) == 0);
}

static void set_up_sodium(void)
{
	/* fails only when the kernel has no random numbers at all */
	(void)SKV_CHECK(sodium_init() >= 0);
}

void skv_random(void *p, size_t n)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, set_up_sodium);
	randombytes_buf(p, n);
}

bool skv_equal_secret(const void *a, const void *b, size_t n)
{
	return sodium_memcmp(a, b, n) == 0;
}
