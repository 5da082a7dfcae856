/*
 * heap.c - sets of min-heaps of (key, id), see skv/heap.h.
 *
 * Four children to a node: half the depth of a binary heap, so half as many places to write. The
 * arrays are chunks that the heaps of a set pass around. They are cut from blocks, one after the
 * other and when they are needed: most blocks of a chain are never in a queue, and a chunk that was
 * not written to takes no memory. A removed root leaves a hole, into which the next entry sinks:
 * the next entry after a victim is mostly its parent, which is as old and stays there.
 */
#include <skv/heap.h>

#include <assert.h>

#include <skv/mem.h>
#include <skv/status.h>

#define CHUNK 256u
#define ARITY 4u
#define INDEX_BITS 27u /* of a place: index + 1; above it which heap */
#define INDEX_MASK ((1u << INDEX_BITS) - 1)

struct skv_heap_chunk {
	union {
		uint64_t key[CHUNK];
		struct skv_heap_chunk *next; /* while spare */
	};
	uint32_t id[CHUNK];
};

struct skv_heap_block {
	struct skv_heap_block *next; /* newer */
	size_t n, used;              /* chunks, and how many of them were cut off */
	struct skv_heap_chunk chunk[];
};
#define BLOCK_SHARE 8u  /* a block has this part of all chunks, */
#define BLOCK_MAX 1024u /* but no more: 3 MiB */

_Static_assert(SKV_HEAP_IDS == 1u << INDEX_BITS && SKV_HEAPS_MAX <= 1u << (32 - INDEX_BITS),
	       "a place is one word");

static uint64_t key_at(const struct skv_heap *h, uint32_t i)
{
	return h->v[i / CHUNK]->key[i % CHUNK];
}

static uint32_t id_at(const struct skv_heap *h, uint32_t i)
{
	return h->v[i / CHUNK]->id[i % CHUNK];
}

static void put(struct skv_heaps *hs, uint32_t which, uint32_t i, uint64_t key, uint32_t id)
{
	struct skv_heap_chunk *c = hs->heap[which].v[i / CHUNK];

	assert(i < INDEX_MASK); /* skv_heaps_reserve saw to that */
	c->key[i % CHUNK] = key;
	c->id[i % CHUNK] = id;
	*hs->place(hs->ctx, id) = which << INDEX_BITS | (i + 1);
}

void skv_heaps_init(struct skv_heaps *hs, uint32_t n_heaps,
		    uint32_t *(*place)(void *ctx, uint32_t id), void *ctx)
{
	assert(n_heaps > 0 && n_heaps <= SKV_HEAPS_MAX);
	*hs = (struct skv_heaps){ .n_heaps = n_heaps, .place = place, .ctx = ctx };
}

void skv_heaps_destroy(struct skv_heaps *hs)
{
	for (uint32_t w = 0; w < hs->n_heaps; w++) {
		skv_free(hs->heap[w].v);
		hs->heap[w] = (struct skv_heap){ 0 };
	}
	while (hs->first) {
		struct skv_heap_block *next = hs->first->next;

		skv_free(hs->first);
		hs->first = next;
	}
	hs->spare = NULL;
	hs->last = hs->cut = NULL;
	hs->chunks = hs->room = 0;
}

/* Adds at least n chunks. */
static int add_block(struct skv_heaps *hs, size_t n)
{
	size_t share = hs->chunks / BLOCK_SHARE < BLOCK_MAX ? hs->chunks / BLOCK_SHARE : BLOCK_MAX;
	struct skv_heap_block *b;

	n = n > share ? n : share;
	b = skv_malloc(sizeof *b + n * sizeof b->chunk[0]);
	if (!b)
		return SKV_E_NOMEM;
	b->next = NULL;
	b->n = n;
	b->used = 0;
	if (hs->last)
		hs->last->next = b;
	else
		hs->first = hs->cut = b;
	hs->last = b;
	hs->chunks += n;
	return SKV_OK;
}

/* Takes a chunk that was used before, or else a piece of a block. */
static struct skv_heap_chunk *take_chunk(struct skv_heaps *hs)
{
	struct skv_heap_chunk *c = hs->spare;

	if (c) {
		hs->spare = c->next;
		return c;
	}
	while (hs->cut->used == hs->cut->n) {
		assert(hs->cut->next); /* reserve first */
		hs->cut = hs->cut->next;
	}
	return &hs->cut->chunk[hs->cut->used++];
}

/* Any of the heaps may hold all n, and each may have begun a chunk. */
static int reserve(struct skv_heaps *hs, uint32_t n_heaps, size_t n)
{
	size_t full = (n + CHUNK - 1) / CHUNK, need = n ? full + n_heaps - 1 : 0;

	for (uint32_t w = 0; w < n_heaps; w++) {
		void *v = hs->heap[w].v;
		int rc = skv_grow(&v, &hs->heap[w].cap, full, sizeof(struct skv_heap_chunk *));

		if (rc != SKV_OK)
			return rc;
		hs->heap[w].v = v;
	}
	return need > hs->chunks ? add_block(hs, need - hs->chunks) : SKV_OK;
}

int skv_heaps_reserve(struct skv_heaps *hs, size_t n)
{
	int rc;

	if (n >= SKV_HEAP_IDS)
		return SKV_E_TOO_MANY; /* a position has no more bits */
	rc = n > hs->room ? reserve(hs, hs->n_heaps, n) : SKV_OK;
	if (rc == SKV_OK && n > hs->room)
		hs->room = n;
	return rc;
}

int skv_heaps_widen(struct skv_heaps *hs, uint32_t n_heaps)
{
	int rc;

	assert(n_heaps <= SKV_HEAPS_MAX);
	if (n_heaps <= hs->n_heaps)
		return SKV_OK;
	rc = reserve(hs, n_heaps, hs->room);
	if (rc == SKV_OK) {
		hs->n_heaps = n_heaps;
		return rc;
	}
	for (uint32_t w = hs->n_heaps; w < n_heaps; w++) {
		skv_free(hs->heap[w].v);
		hs->heap[w] = (struct skv_heap){ 0 };
	}
	return rc;
}

static void sift_up(struct skv_heaps *hs, uint32_t which, uint32_t i, uint64_t key, uint32_t id)
{
	const struct skv_heap *h = &hs->heap[which];

	while (i > 0) {
		uint32_t up = (i - 1) / ARITY;

		if (key_at(h, up) <= key)
			break;
		put(hs, which, i, key_at(h, up), id_at(h, up));
		i = up;
	}
	put(hs, which, i, key, id);
}

static void sift_down(struct skv_heaps *hs, uint32_t which, uint32_t i, uint64_t key, uint32_t id)
{
	const struct skv_heap *h = &hs->heap[which];

	for (;;) {
		uint32_t first = ARITY * i + 1, least = first;

		if (first >= h->n)
			break;
		for (uint32_t c = first + 1; c < first + ARITY && c < h->n; c++)
			if (key_at(h, c) < key_at(h, least))
				least = c;
		if (key <= key_at(h, least))
			break;
		put(hs, which, i, key_at(h, least), id_at(h, least));
		i = least;
	}
	put(hs, which, i, key, id);
}

/* The last entry, out of its cell. */
static void take_last(struct skv_heaps *hs, struct skv_heap *h, uint64_t *key, uint32_t *id)
{
	h->n--;
	*key = key_at(h, h->n);
	*id = id_at(h, h->n);
	if (h->n == (h->chunks - 1) * CHUNK) {
		struct skv_heap_chunk *c = h->v[--h->chunks];

		c->next = hs->spare;
		hs->spare = c;
	}
}

static void fill_hole(struct skv_heaps *hs, uint32_t which)
{
	struct skv_heap *h = &hs->heap[which];
	uint64_t key;
	uint32_t id;

	h->hole = false;
	take_last(hs, h, &key, &id);
	sift_down(hs, which, 0, key, id);
}

void skv_heap_push(struct skv_heaps *hs, uint32_t which, uint64_t key, uint32_t id)
{
	struct skv_heap *h = &hs->heap[which];

	assert(which < hs->n_heaps);
	if (h->hole) {
		h->hole = false;
		sift_down(hs, which, 0, key, id);
		return;
	}
	if (h->n == h->chunks * CHUNK) {
		assert(hs->cut && h->chunks < h->cap); /* reserve first */
		h->v[h->chunks++] = take_chunk(hs);
	}
	h->n++;
	sift_up(hs, which, h->n - 1, key, id);
}

void skv_heap_remove(struct skv_heaps *hs, uint32_t id)
{
	uint32_t *place = hs->place(hs->ctx, id);
	uint32_t which = *place >> INDEX_BITS, i, moved;
	struct skv_heap *h = &hs->heap[which];
	uint64_t key;

	assert(*place);
	if (h->hole)
		fill_hole(hs, which); /* which may move it */
	i = (*place & INDEX_MASK) - 1;
	assert(i < h->n && id_at(h, i) == id);
	*place = 0;
	if (i == 0 && h->n > 1) {
		h->hole = true;
		return;
	}
	take_last(hs, h, &key, &moved);
	if (i == h->n)
		return; /* the removed entry was the last */
	if (key < key_at(h, (i - 1) / ARITY))
		sift_up(hs, which, i, key, moved);
	else
		sift_down(hs, which, i, key, moved);
}

bool skv_heap_top(const struct skv_heaps *hs, uint32_t which, uint64_t *key, uint32_t *id)
{
	const struct skv_heap *h = &hs->heap[which];
	uint32_t least = h->hole;

	if (h->n == 0)
		return false;
	for (uint32_t c = least + 1; h->hole && c <= ARITY && c < h->n; c++)
		if (key_at(h, c) < key_at(h, least))
			least = c;
	*key = key_at(h, least);
	*id = id_at(h, least);
	return true;
}

uint32_t skv_heap_count(const struct skv_heaps *hs, uint32_t which)
{
	return hs->heap[which].n - hs->heap[which].hole;
}

uint32_t skv_heap_which(uint32_t place) { return place >> INDEX_BITS; }

uint64_t skv_heap_key(const struct skv_heaps *hs, uint32_t place)
{
	return key_at(&hs->heap[place >> INDEX_BITS], (place & INDEX_MASK) - 1);
}
