/*
 * heap.c - binary min-heap of (key, id, stamp), used for eviction order and deadlines.
 *
 * Owns only its array. Called under the partition's write lock. Entries are never searched or moved by
 * id: their owner invalidates them by raising its stamp and pushes anew; whoever pops drops stale ones.
 */
#include "internal.h"

int heap_reserve(struct heap *h, size_t n)
{
	void *v = h->v;
	int rc = kvb_grow(&v, &h->cap, n, sizeof *h->v);

	if (rc == KVB_OK)
		h->v = v;
	return rc;
}

static void sift_up(struct heap *h, size_t i, struct heap_entry e)
{
	while (i > 0) {
		size_t up = (i - 1) / 2;

		if (h->v[up].key <= e.key)
			break;
		h->v[i] = h->v[up];
		i = up;
	}
	h->v[i] = e;
}

static void sift_down(struct heap *h, size_t i, struct heap_entry e)
{
	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= h->n)
			break;
		if (child + 1 < h->n && h->v[child + 1].key < h->v[child].key)
			child++;
		if (e.key <= h->v[child].key)
			break;
		h->v[i] = h->v[child];
		i = child;
	}
	h->v[i] = e;
}

bool heap_push(struct heap *h, struct heap_entry e)
{
	if (h->n == h->cap)
		return false;
	sift_up(h, h->n++, e);
	return true;
}

bool heap_pop(struct heap *h, struct heap_entry *out)
{
	struct heap_entry last;

	if (h->n == 0)
		return false;
	*out = h->v[0];
	last = h->v[--h->n];
	if (h->n > 0)
		sift_down(h, 0, last);
	return true;
}

void heap_filter(struct heap *h, bool (*keep)(void *ctx, const struct heap_entry *e), void *ctx)
{
	size_t n = 0;

	for (size_t i = 0; i < h->n; i++)
		if (keep(ctx, &h->v[i]))
			h->v[n++] = h->v[i];
	h->n = n;
	for (size_t i = n / 2; i-- > 0;)
		sift_down(h, i, h->v[i]);
}

void heap_destroy(struct heap *h)
{
	kvb_free(h->v);
	*h = (struct heap){ 0 };
}
