/* index.h - key -> block entry, for one instance. */
#ifndef SKV_CORE_MODEL_INDEX_H
#define SKV_CORE_MODEL_INDEX_H

#include <stdint.h>

#include <skv/hash.h>

struct block;
struct instance;
struct partition;

/* Key -> block id, open addressing in independently growing segments (index.c). */
#define INDEX_SEGMENTS 64u
struct segment {
	uint64_t *cells; /* tag << 32 | id, 0 = empty; sorted by tag */
	uint32_t homes;  /* home positions of tags; there are a few more cells */
	uint32_t count;
};

struct block *index_find(const struct partition *p, const struct instance *inst,
			 struct skv_key key);
/* For a batch: compute the hash once, prefetch the cell, some keys later the entry, then find the
 * block. */
uint64_t index_hash(const struct partition *p, struct skv_key key);
void index_prefetch(const struct instance *inst, uint64_t hash);
/* The first entry whose hash matches; NULL: none, so the key is absent. */
struct block *index_fetch_entry(const struct partition *p, const struct instance *inst,
				uint64_t hash);
struct block *index_find_hashed(const struct partition *p, const struct instance *inst,
				uint64_t hash, struct skv_key key);
/* Prefetches the cells that lookups of these keys read. */
void index_expect(const struct partition *p, const struct instance *inst,
		  const struct skv_key *keys, uint32_t n);
/* Tables grow by a quarter; by doubling while the partition is `roomy`, for many keys at once. */
int index_insert(struct partition *p, struct instance *inst, const struct block *b);
/* Indexes all entries in use of the instance's chunks anew: many at once for a quarter of
 * index_insert's time. Tables are six sevenths full; of a roomy partition four, so that inserted
 * and removed keys move few others. SKV_E_CONFLICT: two entries have the same key; SKV_E_NOMEM:
 * nothing is indexed. */
int index_build(struct partition *p, struct instance *inst);
/* The partition is not roomy any more: tables are made six sevenths full. Out of memory: they
 * stay. */
void index_fit(struct partition *p);
void index_remove(struct partition *p, struct instance *inst, const struct block *b);
void index_destroy(struct instance *inst);

#endif
