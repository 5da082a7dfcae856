/*
 * hash.c - checksums, key hashes, hexadecimal and random bytes: a thin layer over xxHash and
 * libsodium, so that the choice of each function is made in one place.
 *
 * xxHash is compiled in from its header, as its authors advise for speed: Debian's library uses
 * SSE2 alone, checksum_avx2.c sums 1.4 to 3.7 times as many bytes a second.
 *
 * No state of its own beside libsodium's one-time set-up, which random numbers need before several
 * threads ask for them. Any thread, no locks. XXH3 is used for bytes, never against an attacker;
 * SipHash with the store's secret is used where somebody could choose the input.
 */
#include <skv/hash.h>

#include <skv/check.h>

#include "checksum.h"

#include <pthread.h>
#include <sodium.h>
#include <stdlib.h>
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

void skv_key_to_hex(struct skv_key key, char out[SKV_KEY_HEX + 1])
{
	static const char digit[] = "0123456789abcdef";

	for (int i = 0; i < 16; i++) {
		out[i] = digit[key.hi >> (60 - 4 * i) & 15];
		out[16 + i] = digit[key.lo >> (60 - 4 * i) & 15];
	}
	out[SKV_KEY_HEX] = '\0';
}

/* Value of a digit + 1; 0 = no digit. */
static const uint8_t hex_value[256] = {
	['0'] = 1, ['1'] = 2, ['2'] = 3, ['3'] = 4,
	['4'] = 5, ['5'] = 6, ['6'] = 7, ['7'] = 8,
	['8'] = 9, ['9'] = 10, ['a'] = 11, ['b'] = 12,
	['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16,
	['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14,
	['E'] = 15, ['F'] = 16,
};

static uint64_t hex64(const char *s, bool *bad)
{
	uint64_t v = 0;

	for (size_t i = 0; i < 16; i++) {
		unsigned digit = hex_value[(uint8_t)s[i]];

		*bad |= digit == 0;
		v = v << 4 | ((digit - 1) & 15);
	}
	return v;
}

bool skv_key_from_hex(const char *s, size_t n, struct skv_key *out)
{
	struct skv_key key;
	bool bad = false;

	if (n != SKV_KEY_HEX)
		return false;
	key.hi = hex64(s, &bad);
	key.lo = hex64(s + 16, &bad);
	if (!bad)
		*out = key;
	return !bad;
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
