/*
 * ghosts.h - keys of recently evicted blocks, so that a returning block is recognised.
 *
 * A table of buckets of a cache line each, which a key's hash chooses: finding, adding and expiring
 * touch that line only. A ghost has 32 bits: 16 of its hash, its class, its age, and the time when
 * it was added. It expires when `want` later ones were added, to within a thirty-second. If a
 * bucket is full its oldest ghost is forgotten early: one in two hundred. Two keys are confused
 * once in 7,000 times. All follows from the order of calls alone.
 *
 * Expired ghosts are only counted: counts per class and age of the ghosts that were added in a tick
 * and did not come back need no search. The caller gets them when the last ghost of the tick
 * expires.
 *
 * 8 bytes for each that is wanted, 1 GiB at most, and 256 KiB for the counts. When the table must
 * grow by a quarter or shrink to one, all are forgotten; without memory there are fewer ghosts.
 * Zeroed = empty. No locks: the caller serialises access.
 */
#ifndef SKV_GHOSTS_H
#define SKV_GHOSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GHOSTS_BUCKET 16u /* ghosts in a bucket */
#define GHOSTS_CLASSES 8u

struct ghosts_bucket;
struct ghosts_counts;
struct ghosts {
	void *memory; /* of the buckets */
	struct ghosts_bucket *bucket; /* [n_buckets] */
	struct ghosts_counts *counts; /* by tick, class and age */
	uint32_t n_buckets;
	uint64_t fits;     /* as many as may be wanted */
	uint64_t added;
	uint64_t told;     /* the oldest tick that is not reported yet */
	uint32_t life;     /* of a ghost, in ticks: of the last call that added one */
	uint32_t shift;    /* log2 of the length of a tick, */
	uint32_t low;      /* and of the least age that is not taken for 0 */
	uint32_t retry_in; /* after a lack of memory: not before so many more */
};

struct ghost {
	uint32_t class; /* 0..GHOSTS_CLASSES - 1 */
	/* As the caller says, in its own unit, and 1 more for each ghost added since; to within an
	 * eighth, 25 times as many as fit at most. */
	uint64_t age;
	uint64_t stay;  /* result: for how many later ones it has been there, about */
};

/* `n` ghosts of this class and age expired. */
typedef void ghosts_expired_fn(void *ctx, struct ghost ghost, uint32_t n);

void ghosts_destroy(struct ghosts *g);
/* This key is asked for or added soon: prefetches its bucket. */
void ghosts_prefetch(const struct ghosts *g, uint64_t hash);
/* Returns true if there is a ghost of this key. Fills *out if so. */
bool ghosts_find(const struct ghosts *g, uint64_t hash, struct ghost *out);
/* The same, and removes it. */
bool ghosts_take(struct ghosts *g, uint64_t hash, struct ghost *out);
/* Adds a ghost. `want`: limit of ghosts, including those that came back. */
void ghosts_add(struct ghosts *g, uint64_t hash, struct ghost ghost, uint64_t want,
		ghosts_expired_fn *expired, void *ctx);

#endif
