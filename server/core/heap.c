/*
 * heap.c - pairs of min-heaps of (key, id), used for eviction order and deadlines.
 *
 * Each id is in at most one heap of a pair, and its place is written where the owner of the pair says
 * (place()), so it can be taken out or moved from anywhere in O(log n). Four children to a node: half the
 * depth of a binary heap, so half as many places to write. The arrays are chunks shared by both heaps:
 * room for n ids is reserved for the pair, pushing cannot fail, and growing never copies.
 *
 * Called under the partition's write lock.
 */
#include "internal.h"

#define CHUNK 1024u
#define ARITY 4u
#define SECOND 0x80000000u /* in a place: the second heap; the rest is the index + 1 */

struct heap_chunk {
	union {
		uint64_t key[CHUNK];
		struct heap_chunk *next; /* while spare */
	};
	uint32_t id[CHUNK];
};

static uint64_t key_at(const struct heap *h, uint32_t i) { return h->v[i / CHUNK]->key[i % CHUNK]; }
static uint32_t id_at(const struct heap *h, uint32_t i) { return h->v[i / CHUNK]->id[i % CHUNK]; }

static void put(struct heap_pair *hp, unsigned which, uint32_t i, uint64_t key, uint32_t id)
{
	struct heap_chunk *c = hp->heap[which].v[i / CHUNK];

	c->key[i % CHUNK] = key;
	c->id[i % CHUNK] = id;
	*hp->place(hp->ctx, id) = (i + 1) | (which ? SECOND : 0);
}

void heap_pair_init(struct heap_pair *hp, uint32_t *(*place)(void *ctx, uint32_t id), void *ctx)
{
	*hp = (struct heap_pair){ .place = place, .ctx = ctx };
}

void heap_pair_destroy(struct heap_pair *hp)
{
	for (unsigned w = 0; w < 2; w++) {
		struct heap *h = &hp->heap[w];

		for (uint32_t i = 0; i < h->chunks; i++)
			kvb_free(h->v[i]);
		kvb_free(h->v);
		*h = (struct heap){ 0 };
	}
	while (hp->spare) {
		struct heap_chunk *next = hp->spare->next;

		kvb_free(hp->spare);
		hp->spare = next;
	}
	hp->chunks = 0;
}

int heap_pair_reserve(struct heap_pair *hp, size_t n)
{
	size_t need = (n + CHUNK - 1) / CHUNK + 1; /* split over two heaps, one more may be begun */

	for (unsigned w = 0; w < 2; w++) {
		void *v = hp->heap[w].v;
		int rc = kvb_grow(&v, &hp->heap[w].cap, need, sizeof(struct heap_chunk *));

		if (rc != KVB_OK)
			return rc;
		hp->heap[w].v = v;
	}
	while (hp->chunks < need) {
		struct heap_chunk *c = kvb_malloc(sizeof *c);

		if (!c)
			return KVB_E_NOMEM;
		c->next = hp->spare;
		hp->spare = c;
		hp->chunks++;
	}
	return KVB_OK;
}

static void sift_up(struct heap_pair *hp, unsigned which, uint32_t i, uint64_t key, uint32_t id)
{
	const struct heap *h = &hp->heap[which];

	while (i > 0) {
		uint32_t up = (i - 1) / ARITY;

		if (key_at(h, up) <= key)
			break;
		put(hp, which, i, key_at(h, up), id_at(h, up));
		i = up;
	}
	put(hp, which, i, key, id);
}

static void sift_down(struct heap_pair *hp, unsigned which, uint32_t i, uint64_t key, uint32_t id)
{
	const struct heap *h = &hp->heap[which];

	for (;;) {
		uint32_t first = ARITY * i + 1, least = first;

		if (first >= h->n)
			break;
		for (uint32_t c = first + 1; c < first + ARITY && c < h->n; c++)
			if (key_at(h, c) < key_at(h, least))
				least = c;
		if (key <= key_at(h, least))
			break;
		put(hp, which, i, key_at(h, least), id_at(h, least));
		i = least;
	}
	put(hp, which, i, key, id);
}

void heap_push(struct heap_pair *hp, unsigned which, uint64_t key, uint32_t id)
{
	struct heap *h = &hp->heap[which];

	if (h->n == h->chunks * CHUNK) {
		assert(hp->spare && h->chunks < h->cap); /* reserve first */
		h->v[h->chunks] = hp->spare;
		hp->spare = hp->spare->next;
		h->chunks++;
	}
	h->n++;
	sift_up(hp, which, h->n - 1, key, id);
}

void heap_remove(struct heap_pair *hp, uint32_t id)
{
	uint32_t *place = hp->place(hp->ctx, id);
	unsigned which = (*place & SECOND) != 0;
	struct heap *h = &hp->heap[which];
	uint32_t i = (*place & ~SECOND) - 1, last = h->n - 1;
	uint64_t key = key_at(h, last);
	uint32_t moved = id_at(h, last);

	assert(*place && i < h->n && id_at(h, i) == id);
	*place = 0;
	h->n--;
	if (i < last && i > 0 && key < key_at(h, (i - 1) / ARITY))
		sift_up(hp, which, i, key, moved);
	else if (i < last)
		sift_down(hp, which, i, key, moved);
	if (h->n == (h->chunks - 1) * CHUNK) {
		struct heap_chunk *c = h->v[--h->chunks];

		c->next = hp->spare;
		hp->spare = c;
	}
}

bool heap_top(const struct heap_pair *hp, unsigned which, uint64_t *key, uint32_t *id)
{
	const struct heap *h = &hp->heap[which];

	if (h->n == 0)
		return false;
	*key = key_at(h, 0);
	*id = id_at(h, 0);
	return true;
}
