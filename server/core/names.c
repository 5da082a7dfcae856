/*
 * names.c - names that blocks of `named` instances keep: whatever an API calls them, for exports.
 *
 * A name lies beside its entry: the chunk has an array of them, so that entries stay one cache line and lookups never
 * see them. It is set when a start gives a block its first slot, and goes with the entry. Under the write lock; reads
 * under the read lock.
 */
#include "internal.h"

#include <string.h>

/* An allocation of its own, of just that size. */
struct name {
	uint16_t n;
	uint8_t bytes[];
};

_Static_assert(KVB_MAX_BLOCK_NAME <= UINT16_MAX, "the length of a name");

static uint32_t place_of(const struct block *b) { return block_id(b) & (CHUNK_PLACES - 1); }

int names_make(uint32_t places, struct name ***out)
{
	*out = kvb_calloc(places, sizeof **out);
	return *out ? KVB_OK : KVB_E_NOMEM;
}

void names_drop(struct chunk *c)
{
	for (uint32_t i = 0; c->names && i < c->fresh; i++)
		kvb_free(c->names[i]);
	kvb_free(c->names);
	c->names = NULL;
}

int block_set_name(struct block *b, struct kvb_bytes name)
{
	struct chunk *c = block_chunk(b);
	struct name *copy;

	if (!c->names)
		return KVB_OK;
	block_drop_name(b);
	if (name.n == 0)
		return KVB_OK;
	copy = kvb_malloc(sizeof *copy + name.n);
	if (!copy)
		return KVB_E_NOMEM;
	copy->n = (uint16_t)name.n;
	memcpy(copy->bytes, name.p, name.n);
	c->names[place_of(b)] = copy;
	return KVB_OK;
}

void block_drop_name(struct block *b)
{
	struct chunk *c = block_chunk(b);

	if (!c->names)
		return;
	kvb_free(c->names[place_of(b)]);
	c->names[place_of(b)] = NULL;
}

struct kvb_bytes block_name(const struct block *b)
{
	const struct chunk *c = block_chunk(b);
	const struct name *name = c->names ? c->names[place_of(b)] : NULL;

	return name ? (struct kvb_bytes){ name->bytes, name->n } : (struct kvb_bytes){ "", 0 };
}
