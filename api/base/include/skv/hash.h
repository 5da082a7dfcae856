/*
 * hash.h - checksums, content hashes, keyed key hashes, random bytes.
 *
 * Checksum of block bytes and of durable records: XXH3-64, seed 0 (xxHash 0.8, a frozen format).
 * Keys from strings: SipHash-2-4 with 128-bit output under a secret of the store (libsodium
 * crypto_shorthash_siphashx24), so that no outsider can construct two strings with the same key.
 */
#ifndef SKV_HASH_H
#define SKV_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 128-bit block key. As text: 32 lower-case hex digits, hi first. `keys_int` n is {0, n}. */
struct skv_key {
	uint64_t hi;
	uint64_t lo;
};

struct skv_secret {
	uint8_t bytes[16];
};

uint64_t skv_checksum(const void *p, size_t n);
/* For in-memory tables only (not a durable format): mixes a key with a per-process seed. */
static inline uint64_t skv_key_mix(struct skv_key key, uint64_t seed)
{
	unsigned __int128 m = (unsigned __int128)(key.lo ^ seed ^ 0x9e3779b97f4a7c15u) *
			      (key.hi ^ (seed >> 32 | seed << 32) ^ 0xd6e8feb86659fd93u);
	uint64_t x = (uint64_t)m ^ (uint64_t)(m >> 64) ^ key.lo;

	x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93u;
	return x ^ (x >> 29);
}
struct skv_key skv_key_from_string(const struct skv_secret *secret, const char *s, size_t n);
/* The same for many strings; adjacent strings of equal length cost a fifth. `*out` is set by a
 * later add, or by the end; until then both it and the string must stay where they are. */
#define SKV_KEY_LANES 8
struct skv_key_batch {
	const struct skv_secret *secret;
	const char *s[SKV_KEY_LANES];
	struct skv_key *out[SKV_KEY_LANES];
	size_t n; /* length of each */
	unsigned held;
};
void skv_key_batch_end(struct skv_key_batch *b);
static inline void skv_key_batch_add(struct skv_key_batch *b, const char *s, size_t n,
				     struct skv_key *out)
{
	if (b->held == SKV_KEY_LANES || n != b->n)
		skv_key_batch_end(b);
	b->s[b->held] = s;
	b->out[b->held++] = out;
	b->n = n;
}

/* 128-bit unkeyed content hash (XXH3-128), e.g. of a request body. */
struct skv_key skv_hash128(const void *p, size_t n);

static inline bool skv_key_equal(struct skv_key a, struct skv_key b)
{
	return a.hi == b.hi && a.lo == b.lo;
}

#define SKV_KEY_HEX 32 /* digits, without the NUL */
void skv_key_to_hex(struct skv_key key, char out[SKV_KEY_HEX + 1]);
void skv_hex64(uint64_t v, char out[16]); /* 16 lower-case digits, without a NUL */
/* Returns false unless exactly 32 hex digits (either case). */
bool skv_key_from_hex(const char *s, size_t n, struct skv_key *out);

#define SKV_SHA256 32u /* bytes */
/* Hashes a secret text: a bearer token. */
void skv_sha256(const void *p, size_t n, uint8_t out[SKV_SHA256]);

#define SKV_MAC 32u /* bytes of a key, and of its proof */
/* HMAC-SHA-256: only an owner of the key can make it. */
void skv_mac(const uint8_t key[SKV_MAC], const void *p, size_t n, uint8_t out[SKV_MAC]);

/* Random bytes from the kernel. Aborts only if the kernel has none (libsodium's promise). */
void skv_random(void *p, size_t n);
/* Compares in constant time. */
bool skv_equal_secret(const void *a, const void *b, size_t n);

#endif
