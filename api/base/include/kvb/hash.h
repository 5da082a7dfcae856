/*
 * hash.h - checksums, content hashes, keyed key hashes, random bytes.
 *
 * Checksum of block bytes and of durable records: XXH3-64, seed 0 (xxHash 0.8, a frozen format).
 * Keys from strings: SipHash-2-4 with 128-bit output under a secret of the store (libsodium
 * crypto_shorthash_siphashx24), so that nobody outside can construct two strings with one key.
 */
#ifndef KVB_HASH_H
#define KVB_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 128-bit block key. As text: 32 lower-case hex digits, hi first. `keys_int` n is {0, n}. */
struct kvb_key {
	uint64_t hi;
	uint64_t lo;
};

struct kvb_secret {
	uint8_t bytes[16];
};

uint64_t kvb_checksum(const void *p, size_t n);
/* For in-memory tables only (not a durable format): mixes a key with a per-process seed. */
uint64_t kvb_key_mix(struct kvb_key key, uint64_t seed);
struct kvb_key kvb_key_from_string(const struct kvb_secret *secret, const char *s, size_t n);
/* The same for many strings; neighbours of one length cost a third. `*out` is set by a later add, or by the end; until
 * then both it and the string stay where they are. */
#define KVB_KEY_LANES 4
struct kvb_key_batch {
	const struct kvb_secret *secret;
	const char *s[KVB_KEY_LANES];
	struct kvb_key *out[KVB_KEY_LANES];
	size_t n; /* length of each */
	unsigned held;
};
void kvb_key_batch_end(struct kvb_key_batch *b);
static inline void kvb_key_batch_add(struct kvb_key_batch *b, const char *s, size_t n, struct kvb_key *out)
{
	if (b->held == KVB_KEY_LANES || n != b->n)
		kvb_key_batch_end(b);
	b->s[b->held] = s;
	b->out[b->held++] = out;
	b->n = n;
}

/* 128-bit unkeyed content hash (XXH3-128), e.g. of a request body. */
struct kvb_key kvb_hash128(const void *p, size_t n);

static inline bool kvb_key_equal(struct kvb_key a, struct kvb_key b)
{
	return a.hi == b.hi && a.lo == b.lo;
}

#define KVB_KEY_HEX 32 /* digits, without the NUL */
void kvb_key_to_hex(struct kvb_key key, char out[KVB_KEY_HEX + 1]);
/* False unless exactly 32 hex digits (either case). */
bool kvb_key_from_hex(const char *s, size_t n, struct kvb_key *out);

/* Random bytes from the kernel. Aborts only if the kernel has none (libsodium's promise). */
void kvb_random(void *p, size_t n);
/* Equal contents in constant time. */
bool kvb_equal_secret(const void *a, const void *b, size_t n);

#endif
