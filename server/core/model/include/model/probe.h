/*
 * probe.h - finds the entries of many keys, prefetching index cells and entries some keys ahead.
 *
 * Under the partition's lock, at least for reading; the index must not change meanwhile.
 */
#ifndef SKV_CORE_MODEL_PROBE_H
#define SKV_CORE_MODEL_PROBE_H

#include <stdint.h>

#include <skv/hash.h>

#include <model/block.h>
#include <model/index.h>

struct instance;
struct partition;

#define AHEAD_CELLS 16u  /* keys whose index cells are prefetched */
#define AHEAD_ENTRIES 8u /* and, once the cells are cached, their entries */

struct probe {
	const struct partition *p;
	const struct instance *inst;
	const struct skv_key *keys;
	uint32_t n;
	uint64_t hash[32]; /* of keys[i] at i % 32 */
	struct block *near[16]; /* prefetched for keys[i], at i % 16; NULL: not in the index */
};

static inline void probe_ahead(struct probe *pr, uint32_t i)
{
	uint64_t h;

	if (i >= pr->n)
		return;
	h = index_hash(pr->p, pr->keys[i]);
	pr->hash[i % 32] = h;
	index_prefetch(pr->inst, h);
}

static inline void probe_entry(struct probe *pr, uint32_t i)
{
	if (i < pr->n)
		pr->near[i % 16] = index_fetch_entry(pr->p, pr->inst, pr->hash[i % 32]);
}

static inline void probe_begin(struct probe *pr, const struct partition *p,
			       const struct instance *inst, const struct skv_key *keys, uint32_t n)
{
	pr->p = p;
	pr->inst = inst;
	pr->keys = keys;
	pr->n = n;
	for (uint32_t i = 0; i < AHEAD_CELLS; i++)
		probe_ahead(pr, i);
	for (uint32_t i = 0; i < AHEAD_ENTRIES; i++)
		probe_entry(pr, i);
}

/* The entry of keys[i], or NULL; call for i = 0, 1, 2... */
static inline struct block *probe_block(struct probe *pr, uint32_t i)
{
	struct block *b;

	probe_ahead(pr, i + AHEAD_CELLS);
	probe_entry(pr, i + AHEAD_ENTRIES);
	b = pr->near[i % 16];
	if (!b || skv_key_equal(b->key, pr->keys[i]))
		return b;
	return index_find_hashed(pr->p, pr->inst, pr->hash[i % 32], pr->keys[i]);
}

#endif
