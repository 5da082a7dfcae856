/*
 * names.c - names of blocks in `named` instances: an API's own text for each, for exports.
 *
 * Names are kept in an array of the chunk, so that entries stay one cache line and lookups never
 * touch them. A name is set when a start gives a block its first slot, and is freed with the entry.
 * Under the write lock; reads under the read lock.
 */
#include <model/names.h>

#include <string.h>

#include <skv/mem.h>

#include <model/block.h>

/* Allocated in exactly its size. */
struct name {
	uint16_t n;
	uint8_t bytes[];
};

_Static_assert(SKV_MAX_BLOCK_NAME <= UINT16_MAX, "the length of a name");

static uint32_t place_of(const struct block *b) { return block_id(b) & (CHUNK_CAPACITY - 1); }

int names_make(uint32_t capacity, struct name ***out)
{
	*out = skv_calloc(capacity, sizeof **out);
	return *out ? SKV_OK : SKV_E_NOMEM;
}

void names_drop(struct chunk *c)
{
	for (uint32_t i = 0; c->names && i < c->fresh; i++)
		skv_free(c->names[i]);
	skv_free(c->names);
	c->names = NULL;
}

int block_set_name(struct block *b, struct skv_bytes name)
{
	struct chunk *c = block_chunk(b);
	struct name *copy;

	if (!c->names)
		return SKV_OK;
	block_drop_name(b);
	if (name.n == 0)
		return SKV_OK;
	copy = skv_malloc(sizeof *copy + name.n);
	if (!copy)
		return SKV_E_NOMEM;
	copy->n = (uint16_t)name.n;
	memcpy(copy->bytes, name.p, name.n);
	c->names[place_of(b)] = copy;
	return SKV_OK;
}

void block_drop_name(struct block *b)
{
	struct chunk *c = block_chunk(b);

	if (!c->names)
		return;
	skv_free(c->names[place_of(b)]);
	c->names[place_of(b)] = NULL;
}

struct skv_bytes block_name(const struct block *b)
{
	const struct chunk *c = block_chunk(b);
	const struct name *name = c->names ? c->names[place_of(b)] : NULL;

	return name ? (struct skv_bytes){ name->bytes, name->n } : (struct skv_bytes){ "", 0 };
}
