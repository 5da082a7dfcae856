/*
 * siphash.c - SipHash-2-4 with 128 bits of eight strings of equal length at a time, using vector
 * registers.
 *
 * The same function as libsodium's, which hash.c uses for single strings. A round is a chain of
 * dependent steps, so eight strings take little more time than one. Stateless; any thread.
 */
#include <skv/hash.h>

#include <string.h>

/* Two vectors of four, whose rounds run side by side: one of eight is kept in memory where vectors
 * have 256 bits. */
#define WIDTH 4u
#define GROUPS (SKV_KEY_LANES / WIDTH)
typedef uint64_t lanes __attribute__((vector_size(8 * WIDTH)));

#define FEW 3u /* strings that are hashed faster one by one */

struct sip {
	lanes v[4];
};

#define UNROLLED _Pragma("GCC unroll 4") /* so that vectors stay in registers */
#define ROTATE(x, bits) ((x) << (bits) | (x) >> (64 - (bits)))

static inline __attribute__((always_inline)) void round_of(struct sip *s)
{
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

static inline __attribute__((always_inline)) void rounds(struct sip *s, int n)
{
	UNROLLED
	for (int i = 0; i < n; i++)
		UNROLLED
		for (unsigned g = 0; g < GROUPS; g++)
			round_of(&s[g]);
}

static inline __attribute__((always_inline)) void word(struct sip *s, const lanes *m)
{
	UNROLLED
	for (unsigned g = 0; g < GROUPS; g++)
		s[g].v[3] ^= m[g];
	rounds(s, 2);
	UNROLLED
	for (unsigned g = 0; g < GROUPS; g++)
		s[g].v[0] ^= m[g];
}

static inline uint64_t load(const void *p)
{
	uint64_t x;

	memcpy(&x, p, 8);
	return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? x : __builtin_bswap64(x);
}

/* Returns the bytes of a string of n bytes after its last whole word, with the length. */
static inline uint64_t load_end(const char *s, size_t n)
{
	const unsigned bits = n % 8 * 8;
	uint64_t x = 0;

	if (bits && n > 8) /* the last 8 bytes of the string, without those of the previous word */
		x = load(s + n - 8) >> (64 - bits);
	else if (bits)
		for (unsigned i = 0; i < n; i++)
			x |= (uint64_t)(uint8_t)s[i] << 8 * i;
	return x | (uint64_t)n << 56;
}

static inline __attribute__((always_inline)) void mix(const struct sip *s, lanes *out)
{
	*out = s->v[0] ^ s->v[1] ^ s->v[2] ^ s->v[3];
}

static inline __attribute__((always_inline)) void hash(const struct skv_key_batch *b)
{
	const uint64_t k0 = load(b->secret->bytes), k1 = load(b->secret->bytes + 8);
	const lanes zero = { 0 };
	struct sip s[GROUPS];
	lanes m[GROUPS] = { { 0 } }, hi[GROUPS], lo[GROUPS];

	UNROLLED
	for (unsigned g = 0; g < GROUPS; g++)
		s[g] = (struct sip){ { zero + (0x736f6d6570736575u ^ k0),
				       zero + (0x646f72616e646f83u ^ k1),
				       zero + (0x6c7967656e657261u ^ k0),
				       zero + (0x7465646279746573u ^ k1) } };
	for (size_t at = 0; at + 8 <= b->n; at += 8) {
		UNROLLED
		for (unsigned g = 0; g < GROUPS; g++) {
			const char *const *p = b->s + g * WIDTH;

			m[g] = (lanes){ load(p[0] + at), load(p[1] + at), load(p[2] + at),
					load(p[3] + at) };
		}
		word(s, m);
	}
	UNROLLED
	for (unsigned g = 0; g < GROUPS; g++) {
		const char *const *p = b->s + g * WIDTH;

		m[g] = (lanes){ load_end(p[0], b->n), load_end(p[1], b->n), load_end(p[2], b->n),
				load_end(p[3], b->n) };
	}
	word(s, m);
	UNROLLED
	for (unsigned g = 0; g < GROUPS; g++)
		s[g].v[2] ^= zero + 0xee;
	rounds(s, 4);
	UNROLLED
	for (unsigned g = 0; g < GROUPS; g++) {
		mix(&s[g], &hi[g]);
		s[g].v[1] ^= zero + 0xdd;
	}
	rounds(s, 4);
	UNROLLED
	for (unsigned g = 0; g < GROUPS; g++)
		mix(&s[g], &lo[g]);
	for (unsigned i = 0; i < SKV_KEY_LANES; i++)
		*b->out[i] = (struct skv_key){ __builtin_bswap64(hi[i / WIDTH][i % WIDTH]),
					       __builtin_bswap64(lo[i / WIDTH][i % WIDTH]) };
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
