/*
 * ghosts.c - see ghosts.h.
 *
 * A time is counted in ticks, 32 to 64 of which are a life, modulo 128: a ghost whose bucket is not
 * added to for a life after it expired looks young again, which one in thousands does.
 */
#include "ghosts.h"

#include <assert.h>
#include <sys/mman.h>

#include <skv/mem.h>

#define LINE 64u
#define HUGE_FROM (4ul << 20) /* bytes */
#define LOAD 9u /* ghosts in a bucket, where as many are there as fit: few buckets are full then */
#define MOST (1u << 27)
#define LEAST 64u
#define RETRY 1024u
#define TICKS 64u /* of a life, at most */
#define TIMES (2 * TICKS)
#define AGES 64u
#define LOWEST 2048u /* of a life: the least age that is not 0 */

/* The properties of ghosts: class, age, time. */
struct ghosts_bucket {
	uint16_t tag[GHOSTS_BUCKET]; /* 0 = none */
	uint16_t fact[GHOSTS_BUCKET];
};

/* Ghosts added in a tick that have not come back. */
struct ghosts_counts {
	uint32_t n[GHOSTS_CLASSES * AGES];
};

_Static_assert(sizeof(struct ghosts_bucket) == LINE, "a bucket is a cache line");
_Static_assert(GHOSTS_CLASSES * AGES * TIMES == 1u << 16, "facts fit");
_Static_assert(TICKS + 1 < TIMES, "a tick is told before its counts begin anew");

void ghosts_destroy(struct ghosts *g)
{
	skv_free(g->memory);
	skv_free(g->counts);
	*g = (struct ghosts){ 0 };
}

/* ---- a ghost --------------------------------------------------------------------------------- */

static uint16_t tag_of(uint64_t hash) { return hash & 0xffff ? (uint16_t)hash : 1; }

/* 0, or 1 + the quarter octave of an age, of 16 octaves that end at 25 lives or later. */
static uint32_t age_code(const struct ghosts *g, uint64_t age)
{
	const uint64_t coarse = age >> g->low;
	uint32_t octave, code;

	if (!coarse)
		return 0;
	octave = 63 - (uint32_t)__builtin_clzll(coarse);
	code = 1 + 4 * octave + (uint32_t)((coarse << 2 >> octave) & 3);
	return code < AGES ? code : AGES - 1;
}

/* The middle of the ages that have this code. */
static uint64_t age_coded(const struct ghosts *g, uint32_t code)
{
	const uint32_t octave = (code - 1) / 4, quarter = (code - 1) % 4;

	return code ? ((9ull + 2 * quarter) << octave << g->low) / 8 : 0;
}

static uint64_t tick_of(const struct ghosts *g) { return g->added >> g->shift; }

/* For how many ticks it has been there. */
static uint32_t stay(const struct ghosts *g, uint16_t fact)
{
	return ((uint32_t)tick_of(g) - fact) % TIMES;
}

static uint32_t *count_of(const struct ghosts *g, uint16_t fact)
{
	return &g->counts[fact % TIMES].n[fact / TIMES];
}

static struct ghost ghost_of(const struct ghosts *g, uint16_t fact)
{
	const uint64_t stays = ((2ull * stay(g, fact) + 1) << g->shift) / 2;

	return (struct ghost){ fact / (AGES * TIMES), age_coded(g, fact / TIMES % AGES) + stays,
			       stays };
}

/* ---- the table ------------------------------------------------------------------------------- */

/* Asks for huge pages: at random places of a large table a TLB miss costs more than the line. */
static void want_huge(const struct ghosts *g)
{
	const uintptr_t page = 4096, begin = ((uintptr_t)g->bucket + page - 1) & ~(page - 1);
	const size_t bytes = (size_t)g->n_buckets * LINE;

	if (bytes >= HUGE_FROM)
		madvise((void *)begin, (bytes - page) & ~(page - 1), MADV_HUGEPAGE); /* a wish */
}

/* Makes a table for an eighth more than wanted, if its size is too small or far too large. */
static void fit(struct ghosts *g, uint64_t want)
{
	struct ghosts fresh = { 0 };

	want = want < LEAST ? LEAST : want > MOST / 9 * 8 ? MOST / 9 * 8 : want;
	if (want <= g->fits + g->fits / 8 && g->fits / 4 <= want)
		return;
	if (g->retry_in && --g->retry_in)
		return;
	fresh.fits = want + want / 8;
	fresh.n_buckets = (uint32_t)(fresh.fits / LOAD) + 1;
	while (fresh.fits >> fresh.shift > TICKS)
		fresh.shift++;
	while (fresh.fits >> fresh.low > LOWEST)
		fresh.low++;
	fresh.memory = skv_calloc(fresh.n_buckets + 1ul, LINE);
	fresh.counts = skv_calloc(TIMES, sizeof *fresh.counts);
	if (!fresh.memory || !fresh.counts) {
		ghosts_destroy(&fresh);
		g->retry_in = RETRY;
		return;
	}
	fresh.bucket = (struct ghosts_bucket *)((char *)fresh.memory + LINE -
						(uintptr_t)fresh.memory % LINE);
	want_huge(&fresh);
	ghosts_destroy(g);
	*g = fresh;
}

static struct ghosts_bucket *bucket_of(const struct ghosts *g, uint64_t hash)
{
	return &g->bucket[(hash >> 32) * g->n_buckets >> 32];
}

void ghosts_prefetch(const struct ghosts *g, uint64_t hash)
{
	if (g->n_buckets)
		__builtin_prefetch(bucket_of(g, hash), 1);
}

/* Returns the ghost's place in the bucket, or GHOSTS_BUCKET. */
static uint32_t place_of(const struct ghosts *g, const struct ghosts_bucket *b, uint64_t hash)
{
	const uint16_t tag = tag_of(hash);
	uint32_t i = 0;

	while (i < GHOSTS_BUCKET && (b->tag[i] != tag || stay(g, b->fact[i]) > g->life))
		i++;
	return i;
}

bool ghosts_find(const struct ghosts *g, uint64_t hash, struct ghost *out)
{
	const struct ghosts_bucket *b = g->n_buckets ? bucket_of(g, hash) : NULL;
	uint32_t i = b ? place_of(g, b, hash) : GHOSTS_BUCKET;

	if (i == GHOSTS_BUCKET)
		return false;
	*out = ghost_of(g, b->fact[i]);
	return true;
}

bool ghosts_take(struct ghosts *g, uint64_t hash, struct ghost *out)
{
	struct ghosts_bucket *b;
	uint32_t i, *count;

	if (!ghosts_find(g, hash, out))
		return false;
	b = bucket_of(g, hash);
	i = place_of(g, b, hash);
	b->tag[i] = 0;
	count = count_of(g, b->fact[i]);
	*count -= *count > 0; /* 0: it looks young again */
	return true;
}

/* Reports the ticks whose last ghosts have expired. */
static void tell(struct ghosts *g, ghosts_expired_fn *expired, void *ctx)
{
	const uint64_t stays = (uint64_t)g->life << g->shift;

	for (; g->told + 1 + g->life <= tick_of(g); g->told++) {
		struct ghosts_counts *c = &g->counts[g->told % TIMES];

		for (uint32_t i = 0; i < GHOSTS_CLASSES * AGES; i++) {
			struct ghost all = { i / AGES, age_coded(g, i % AGES) + stays, stays };

			if (c->n[i])
				expired(ctx, all, c->n[i]);
			c->n[i] = 0;
		}
	}
}

/* A free place of a bucket, or that of its oldest ghost. Clears those of expired ones. */
static uint32_t place_for(const struct ghosts *g, struct ghosts_bucket *b)
{
	uint32_t at = 0, longest = 0;

	for (uint32_t i = 0; i < GHOSTS_BUCKET; i++) {
		const uint32_t stays = b->tag[i] ? stay(g, b->fact[i]) : TIMES;

		b->tag[i] = stays > g->life ? 0 : b->tag[i];
		at = stays > longest ? i : at;
		longest = stays > longest ? stays : longest;
	}
	return at;
}

void ghosts_add(struct ghosts *g, uint64_t hash, struct ghost ghost, uint64_t want,
		ghosts_expired_fn *expired, void *ctx)
{
	struct ghosts_bucket *b;
	uint32_t at;

	assert(ghost.class < GHOSTS_CLASSES);
	fit(g, want);
	if (!g->n_buckets)
		return;
	g->life = (uint32_t)((want < g->fits ? want : g->fits) >> g->shift);
	tell(g, expired, ctx);
	b = bucket_of(g, hash);
	at = place_for(g, b);
	b->tag[at] = tag_of(hash);
	b->fact[at] = (uint16_t)((ghost.class * AGES + age_code(g, ghost.age)) * TIMES +
				 tick_of(g) % TIMES);
	++*count_of(g, b->fact[at]);
	g->added++;
}
