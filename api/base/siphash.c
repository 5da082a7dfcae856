/*
 * siphash.c - SipHash-2-4 with 128 bits of eight strings of equal length at a time, using vector
 * registers.
 *
 * The same function as libsodium's, which hash.c uses for single strings. A round is a chain of
 * dependent steps, so eight strings take little more time than one. Stateless; any thread.
 */
#include <skv/hash.h>

#include <string.h>

typedef uint64_t lanes __attribute__((vector_size(8 * SKV_KEY_LANES)));

#define FEW 3u /* strings that are hashed faster one after the other */

struct sip {
	lanes v[4];
};

#define ROTATE(x, bits) ((x) << (bits) | (x) >> (64 - (bits)))

static inline __attribute__((always_inline)) void rounds(struct sip *s, int n)
{
	for (int i = 0; i < n; i++) {
		s->v[0] += s->v[1];
		s->v[1] = ROTATE(s->v[1], 13) ^ s->v[0];
		s->v[0] = ROTATE(s->v[0], 32);
		s->v[2] += s->v[3];
		s->v[3] = ROTATE(s->v[3], 16) ^ s->v[2];
		s->v[0] += s->v[3];
		s->v[3] = ROTATE(s->v[3], 21) ^ s->v[0];
		s->v[2] += s->v[1];
		s->v[1] = ROTATE(s->v[1], 17) ^ s->v[2];
		s->v[2] = ROTATE(s->v[2], 32);
	}
}

static inline __attribute__((always_inline)) void word(struct sip *s, const lanes *m)
{
	s->v[3] ^= *m;
	rounds(s, 2);
	s->v[0] ^= *m;
}

/* Up to 8 bytes as a little-endian number. */
static inline uint64_t load(const void *p, size_t n)
{
	uint64_t x = 0;

	memcpy(&x, p, n);
	return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? x : __builtin_bswap64(x);
}

static inline __attribute__((always_inline)) void hash(const struct skv_key_batch *b)
{
	const uint64_t k0 = load(b->secret->bytes, 8), k1 = load(b->secret->bytes + 8, 8);
	const lanes zero = { 0 };
	struct sip s = { { zero + (0x736f6d6570736575u ^ k0), zero + (0x646f72616e646f83u ^ k1),
			   zero + (0x6c7967656e657261u ^ k0), zero + (0x7465646279746573u ^ k1) } };
	lanes m = zero, hi, lo;
	size_t at = 0;

	for (; at + 8 <= b->n; at += 8) {
		for (int i = 0; i < SKV_KEY_LANES; i++)
			m[i] = load(b->s[i] + at, 8);
		word(&s, &m);
	}
	for (int i = 0; i < SKV_KEY_LANES; i++)
		m[i] = load(b->s[i] + at, b->n - at) | (uint64_t)b->n << 56;
	word(&s, &m);
	s.v[2] ^= zero + 0xee;
	rounds(&s, 4);
	hi = s.v[0] ^ s.v[1] ^ s.v[2] ^ s.v[3];
	s.v[1] ^= zero + 0xdd;
	rounds(&s, 4);
	lo = s.v[0] ^ s.v[1] ^ s.v[2] ^ s.v[3];
	for (int i = 0; i < SKV_KEY_LANES; i++)
		*b->out[i] = (struct skv_key){ __builtin_bswap64(hi[i]), __builtin_bswap64(lo[i]) };
}

static void hash_any(const struct skv_key_batch *b) { hash(b); }

#ifdef __x86_64__
__attribute__((target("avx2"))) static void hash_avx2(const struct skv_key_batch *b) { hash(b); }

__attribute__((target("avx512f,avx512vl"))) static void hash_avx512(const struct skv_key_batch *b)
{
	hash(b);
}
#endif

static void hash_lanes(const struct skv_key_batch *b)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx512vl")) {
		hash_avx512(b);
		return;
	}
	if (__builtin_cpu_supports("avx2")) {
		hash_avx2(b);
		return;
	}
#endif
	hash_any(b);
}

void skv_key_batch_end(struct skv_key_batch *b)
{
	struct skv_key unused;

	for (unsigned i = 0; b->held < FEW && i < b->held; i++)
		*b->out[i] = skv_key_from_string(b->secret, b->s[i], b->n);
	if (b->held >= FEW) {
		for (; b->held < SKV_KEY_LANES; b->held++) {
			b->s[b->held] = b->s[0];
			b->out[b->held] = &unused;
		}
		hash_lanes(b);
	}
	b->held = 0;
}
