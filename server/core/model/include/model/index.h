/*
 * index.h - key -> block entry of one instance.
 */
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
	uint64_t *cells; /* tag << 32 | id, 0 = empty; in order of tags */
	uint32_t homes;  /* places that tags are spread over; a few cells more */
	uint32_t count;
};

struct block *index_find(const struct partition *p, const struct instance *inst, struct skv_key key);
/* For a batch: the hash once, then the cell into the cache, some keys later the entry, then the answer. */
uint64_t index_hash(const struct partition *p, struct skv_key key);
void index_prefetch(const struct instance *inst, uint64_t hash);
/* The first entry that the hash fits; NULL: there is none, and so none of the key. */
struct block *index_fetch_entry(const struct partition *p, const struct instance *inst, uint64_t hash);
struct block *index_find_hashed(const struct partition *p, const struct instance *inst, uint64_t hash, struct skv_key key);
int index_insert(struct partition *p, struct instance *inst, const struct block *b);
void index_remove(struct partition *p, struct instance *inst, const struct block *b);
void index_destroy(struct instance *inst);

#endif
