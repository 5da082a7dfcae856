/* cache.c - see cache.h. */
#include "cache.h"

#include "../../server/simulate/textbook.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static uint32_t *place_of(void *ctx, uint32_t id)
{
	return &((struct cache *)ctx)->block[id].place;
}

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static void begin(struct cache *c, const char *policy)
{
	c->ops = simulated_policy(policy);
	assert(c->ops);
	memset(c->n.queued, 0, sizeof c->n.queued);
	c->state = c->ops->create ? c->ops->create(&c->n) : NULL;
	skv_heaps_init(&c->heaps, c->ops->n_queues, place_of, c);
	if (skv_heaps_reserve(&c->heaps, c->n_ids) != 0)
		abort();
}

void cache_make(struct cache *c, const char *policy, uint32_t cap, uint32_t n_ids)
{
	*c = (struct cache){ .cap = cap, .n_ids = n_ids, .stamp_step = 1 };
	c->block = calloc(n_ids + 1, sizeof *c->block);
	begin(c, policy);
}

void cache_destroy(struct cache *c)
{
	skv_heaps_destroy(&c->heaps);
	if (c->ops->destroy)
		c->ops->destroy(c->state);
	free(c->block);
}

static void take_out(struct cache *c, uint32_t id)
{
	c->n.queued[skv_heap_which(c->block[id].place)]--;
	skv_heap_remove(&c->heaps, id);
}

static void put(struct cache *c, uint32_t id)
{
	struct cache_block *b = &c->block[id];
	struct skv_policy_place at = c->ops->place(c->state, &b->facts);

	assert(at.queue < c->ops->n_queues && at.key < SKV_POLICY_INNER &&
	       b->facts.tag < SKV_POLICY_TAGS);
	c->n.queued[at.queue]++;
	skv_heap_push(&c->heaps, at.queue,
		      at.key | (c->ops->leaf_first && b->kids ? SKV_POLICY_INNER : 0), id);
}

void cache_replace(struct cache *c, uint32_t id)
{
	take_out(c, id);
	put(c, id);
}

void cache_use(struct cache *c, uint32_t id)
{
	struct skv_policy_block *f = &c->block[id].facts;

	f->use = c->stamp += c->stamp_step;
	f->freq += f->freq < SKV_POLICY_FREQ;
}

void cache_insert(struct cache *c, uint32_t id, uint32_t parent, bool last)
{
	struct cache_block *b = &c->block[id];

	if (c->n.blocks >= c->cap)
		cache_evict(c);
	b->facts = (struct skv_policy_block){ .hash = mix(id), .use = c->stamp += c->stamp_step,
					      .born = ++c->births };
	b->in = true;
	b->parent = parent;
	c->n.blocks++;
	if (parent) {
		c->block[parent].kids++;
		if (c->block[parent].in && c->ops->leaf_first)
			cache_replace(c, parent);
	}
	if (c->ops->born)
		c->ops->born(c->state, &b->facts, last);
	put(c, id);
}

void cache_remove(struct cache *c, uint32_t id)
{
	struct cache_block *b = &c->block[id], *parent = &c->block[b->parent];

	take_out(c, id);
	b->in = false;
	c->n.blocks--;
	if (b->parent && --parent->kids == 0 && parent->in && c->ops->leaf_first)
		cache_replace(c, b->parent);
}

/* The least of the tops as they stand. */
static uint32_t first(struct cache *c, struct skv_policy_place *out)
{
	uint64_t best_rank = 0, best_key = 0;
	uint32_t best = 0;

	for (uint32_t q = 0; q < c->ops->n_queues; q++) {
		struct skv_policy_place at = { .queue = q };
		uint64_t key, rank;
		uint32_t id;

		if (!skv_heap_top(&c->heaps, q, &key, &id))
			continue;
		at.key = key & ~SKV_POLICY_INNER;
		rank = c->ops->rank(c->state, at);
		if (best && ((key ^ best_key) & SKV_POLICY_INNER ? key & SKV_POLICY_INNER
								 : rank >= best_rank))
			continue;
		best = id;
		best_rank = rank;
		best_key = key;
		*out = at;
	}
	return best;
}

uint32_t cache_evict(struct cache *c)
{
	struct skv_policy_place at;
	uint32_t id;

	while ((id = first(c, &at)) != 0) {
		struct skv_policy_block facts = c->block[id].facts;

		c->looks++;
		if (c->ops->look(c->state, &c->block[id].facts, at)) {
			cache_remove(c, id);
			if (c->ops->evicted)
				c->ops->evicted(c->state, &facts, at);
			c->evictions++;
			c->last_evicted = id;
			return id;
		}
		cache_replace(c, id);
	}
	return 0;
}

void cache_change(struct cache *c, const char *policy, bool own)
{
	for (uint32_t id = 1; id <= c->n_ids; id++)
		if (c->block[id].in)
			take_out(c, id);
	skv_heaps_destroy(&c->heaps);
	if (c->ops->destroy)
		c->ops->destroy(c->state);
	begin(c, policy);
	for (uint32_t id = 1; id <= c->n_ids; id++) {
		if (!c->block[id].in)
			continue;
		if (c->ops->adopt)
			c->ops->adopt(c->state, &c->block[id].facts, own);
		put(c, id);
	}
}

/* Tail first where the policy goes for leaves, so that a head is younger than its tail. */
uint32_t cache_request(struct cache *c, const uint32_t *ids, uint32_t n, uint32_t *prefix)
{
	uint32_t hits = 0, head = 0;

	while (head < n && c->block[ids[head]].in)
		head++;
	*prefix = head;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t id = ids[c->ops->leaf_first ? n - 1 - i : i];

		hits += c->block[id].in;
		c->block[id].absent = !c->block[id].in;
		if (c->block[id].in)
			cache_use(c, id);
	}
	for (uint32_t i = 0; i < n; i++)
		if (c->block[ids[i]].absent)
			cache_insert(c, ids[i], i ? ids[i - 1] : 0,
				     i + 1 == n);
	return hits;
}
