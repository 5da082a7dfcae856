/*
 * exact_ghosts.h - ghost list: keys of recently evicted blocks, first in first out: exactly the
 * newest so many that have not come back. More expensive than ghosts.h (24 bytes each, and 4 for
 * the table), for policies whose published form depends on it.
 *
 * Nothing is ever copied at once: nodes come in chunks, and the table grows by one bucket at a time
 * (linear hashing). Keys are told apart by 64 bits of hash. Zeroed = empty.
 */
#ifndef SKV_EXACT_GHOSTS_H
#define SKV_EXACT_GHOSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct exact_ghost;
struct exact_ghosts {
	struct exact_ghost **node; /* chunks; node 0 is never used */
	uint32_t **bucket;         /* chunks of heads of chains */
	size_t node_chunks, cap_node, bucket_chunks, cap_bucket;
	uint32_t n_nodes;   /* nodes that were ever used */
	uint32_t n_buckets; /* 0, or 2^level + split */
	uint32_t level, split;
	uint32_t free, oldest, newest; /* 0 = none */
	uint32_t n;
};

void exact_ghosts_destroy(struct exact_ghosts *g);
/* Returns true if there is a ghost of this key, and removes it. */
bool exact_ghosts_take(struct exact_ghosts *g, uint64_t hash);
/* A new one; of more than `want` (16 million at most) the oldest end, a few at a time.
 * Without memory there are fewer. */
void exact_ghosts_add(struct exact_ghosts *g, uint64_t hash, uint64_t want);

#endif
