/*
 * index.c - key -> block entry of one instance.
 *
 * INDEX_SEGMENTS open-addressing tables per instance, chosen by the hash's top bits, each growing on
 * its own, so that growth never stalls the partition for long. A cell is (32-bit tag, 32-bit id): the
 * tag gives the home cell, so growing and removing touch no entry. Removal shifts back; there are no
 * tombstones. Readers hold the partition's lock for reading, writers for writing.
 */
#include "internal.h"

#include <string.h>

static uint64_t hash_of(const struct part *p, struct kvb_key key) { return kvb_key_mix(key, p->mix_seed); }

static struct segment *segment_of(const struct instance *inst, uint64_t h)
{
	return (struct segment *)&inst->index[h >> 58 & (INDEX_SEGMENTS - 1)];
}

static uint32_t cell_tag(uint64_t cell) { return (uint32_t)(cell >> 32); }
static uint32_t cell_id(uint64_t cell) { return (uint32_t)cell; }

struct block *index_find(const struct part *p, const struct instance *inst, struct kvb_key key)
{
	uint64_t h = hash_of(p, key);
	const struct segment *s = segment_of(inst, h);
	uint32_t tag = (uint32_t)h;

	if (!s->cells)
		return NULL;
	for (uint32_t i = tag & s->mask; s->cells[i]; i = (i + 1) & s->mask) {
		if (cell_tag(s->cells[i]) == tag) {
			struct block *b = block_get(p, cell_id(s->cells[i]));

			if (kvb_key_equal(b->key, key))
				return b;
		}
	}
	return NULL;
}

void index_prefetch(const struct part *p, const struct instance *inst, struct kvb_key key)
{
	uint64_t h = hash_of(p, key);
	const struct segment *s = segment_of(inst, h);

	if (s->cells)
		__builtin_prefetch(&s->cells[(uint32_t)h & s->mask]);
}

static void place(struct segment *s, uint64_t cell)
{
	uint32_t i = cell_tag(cell) & s->mask;

	while (s->cells[i])
		i = (i + 1) & s->mask;
	s->cells[i] = cell;
}

static int grow(struct segment *s)
{
	uint32_t n = s->cells ? (s->mask + 1) * 2 : 8;
	struct segment next = { .cells = kvb_calloc(n, sizeof(uint64_t)), .mask = n - 1, .count = s->count };

	if (!next.cells)
		return KVB_E_NOMEM;
	for (uint32_t i = 0; s->cells && i <= s->mask; i++)
		if (s->cells[i])
			place(&next, s->cells[i]);
	kvb_free(s->cells);
	*s = next;
	return KVB_OK;
}

int index_insert(struct part *p, struct instance *inst, const struct block *b)
{
	uint64_t h = hash_of(p, b->key);
	struct segment *s = segment_of(inst, h);

	if (!s->cells || s->count + 1 > (uint64_t)(s->mask + 1) * 4 / 5)
		if (grow(s) != KVB_OK)
			return KVB_E_NOMEM;
	place(s, (uint64_t)(uint32_t)h << 32 | b->id);
	s->count++;
	return KVB_OK;
}

/* Fills the hole at `i` with later cells of the same run that may move up. */
static void shift_back(struct segment *s, uint32_t i)
{
	uint32_t j = i;

	for (;;) {
		uint32_t home;

		j = (j + 1) & s->mask;
		if (!s->cells[j])
			break;
		home = cell_tag(s->cells[j]) & s->mask;
		if (((j - home) & s->mask) < ((j - i) & s->mask))
			continue;
		s->cells[i] = s->cells[j];
		i = j;
	}
	s->cells[i] = 0;
}

void index_remove(struct part *p, struct instance *inst, const struct block *b)
{
	uint64_t h = hash_of(p, b->key);
	struct segment *s = segment_of(inst, h);
	uint64_t cell = (uint64_t)(uint32_t)h << 32 | b->id;
	uint32_t i = (uint32_t)h & s->mask;

	while (s->cells[i] != cell) {
		assert(s->cells[i] != 0); /* every entry in use is indexed */
		i = (i + 1) & s->mask;
	}
	shift_back(s, i);
	s->count--;
}

void index_destroy(struct instance *inst)
{
	for (uint32_t i = 0; i < INDEX_SEGMENTS; i++)
		kvb_free(inst->index[i].cells);
	memset(inst->index, 0, sizeof inst->index);
}
