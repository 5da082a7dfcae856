/*
 * evict.c - which committed blocks go when room is needed: least recently used, tails first.
 *
 * Each instance has, per space, three heaps: `leaf` (no live children) and `inner` (with live
 * children) ordered by last use, `leased` by the end of the lease. A hit only writes the block's
 * marks; the heaps learn of it when the entry comes to the top: an entry whose key is out of date is
 * pushed again with the right one. Only an entry with the block's newest stamp counts, so moving a
 * block means pushing it and forgetting the old entry. A prefix head is an inner block until its last
 * live child is gone, so chains lose their tails first; inner blocks are taken only when no leaf is
 * left, so that nothing ever stops while something may be evicted.
 *
 * All calls under the write lock. Victims are marked and journaled here (remove.c); their slots become
 * free when the record is durable.
 */
#include "internal.h"

#include <string.h>

bool block_evictable(const struct part *p, const struct instance *inst, const struct block *b, uint64_t now)
{
	(void)p;
	if (inst->deleting || atomic_load_explicit(&b->lease_until, memory_order_relaxed) > now)
		return false;
	return block_has_committed(inst, b) && !block_has_writing(inst, b);
}

static uint64_t last_use(const struct block *b)
{
	return atomic_load_explicit(&b->last_use, memory_order_relaxed);
}

int evict_reserve(struct part *p, struct instance *inst, uint32_t space)
{
	struct evict_queue *q = inst->queue[space];
	size_t n = 2 * (inst->entries_made + CHUNK_BLOCKS);

	(void)p;
	if (!q) {
		q = kvb_calloc(1, sizeof *q);
		if (!q)
			return KVB_E_NOMEM;
		inst->queue[space] = q;
	}
	if (heap_reserve(&q->leaf, n) != KVB_OK || heap_reserve(&q->inner, n) != KVB_OK ||
	    heap_reserve(&q->leased, n) != KVB_OK)
		return KVB_E_NOMEM;
	return KVB_OK;
}

void evict_queue_destroy(struct instance *inst)
{
	for (uint32_t i = 0; i < MAX_STORAGES; i++) {
		if (!inst->queue[i])
			continue;
		heap_destroy(&inst->queue[i]->leaf);
		heap_destroy(&inst->queue[i]->inner);
		heap_destroy(&inst->queue[i]->leased);
		kvb_free(inst->queue[i]);
		inst->queue[i] = NULL;
	}
}

static bool is_current(void *ctx, const struct heap_entry *e)
{
	const struct block *b = block_get(ctx, e->id);

	return b->id != NO_BLOCK && b->stamp == e->stamp;
}

/* Room is reserved for twice the entries there can be, so dropping stale ones always makes some. */
static void push(struct part *p, struct heap *h, uint64_t key, struct block *b)
{
	struct heap_entry e = { .key = key, .id = b->id, .stamp = ++b->stamp };

	if (heap_push(h, e))
		return;
	heap_filter(h, is_current, p);
	if (!heap_push(h, e))
		assert(!"the eviction queue was not reserved");
}

/* A block lives in the queue of the space that holds its first committed spec. */
static int queue_space(const struct instance *inst, const struct block *b)
{
	for (uint32_t s = 0; s < inst->spec.n_specs; s++)
		if (b->slot[s].state == SLOT_COMMITTED)
			return b->slot[s].space;
	return -1;
}

void evict_consider(struct part *p, struct block *b)
{
	struct instance *inst = block_instance(p, b->id);
	int space = queue_space(inst, b);
	uint64_t lease = atomic_load_explicit(&b->lease_until, memory_order_relaxed);
	struct evict_queue *q;

	if (space < 0 || block_has_writing(inst, b) || inst->deleting)
		return;
	q = inst->queue[space];
	if (lease > kvb_now_ms(p->core->clock))
		push(p, &q->leased, lease, b);
	else
		push(p, b->live_children ? &q->inner : &q->leaf, last_use(b), b);
}

static void settle_leases(struct part *p, struct evict_queue *q, uint64_t now)
{
	struct heap_entry e;

	while (q->leased.n && q->leased.v[0].key <= now) {
		heap_pop(&q->leased, &e);
		COUNT(p->core, evict_examined, 1);
		if (is_current(p, &e))
			evict_consider(p, block_get(p, e.id));
	}
}

/* Brings a victim to the top of the heap, or empties it. NULL when it is empty. */
static struct block *settle_top(struct part *p, struct heap *h, bool leaf, uint64_t now)
{
	struct heap_entry e;

	while (h->n) {
		struct block *b = block_get(p, h->v[0].id);

		COUNT(p->core, evict_examined, 1);
		if (is_current(p, &h->v[0])) {
			const struct instance *inst = block_instance(p, b->id);

			if (block_evictable(p, inst, b, now) && h->v[0].key == last_use(b) &&
			    (b->live_children == 0) == leaf)
				return b;
			heap_pop(h, &e);
			evict_consider(p, b); /* where it belongs now; nowhere if it is not committed */
			continue;
		}
		heap_pop(h, &e);
	}
	return NULL;
}

/* The scope of one search: instances of one group, or all with a spec of one class in one space. */
struct scope {
	struct group *group; /* or NULL */
	uint32_t space;
	uint32_t class_id;
};

static bool in_scope(const struct scope *c, const struct instance *inst, uint32_t space)
{
	if (!inst->queue[space] || inst->deleting)
		return false;
	if (c->group)
		return inst->group == c->group;
	if (space != c->space)
		return false;
	for (uint32_t s = 0; s < inst->spec.n_specs; s++)
		if (inst->class_of[space * inst->spec.n_specs + s] == c->class_id)
			return true;
	return false;
}

static struct heap *oldest_of(struct part *p, const struct scope *c, bool leaf, uint64_t now)
{
	struct heap *best = NULL;

	for (size_t i = 0; i < p->n_inst; i++) {
		struct instance *inst = p->inst[i];

		for (uint32_t s = 0; s < p->n_space; s++) {
			struct heap *h;

			if (!in_scope(c, inst, s))
				continue;
			settle_leases(p, inst->queue[s], now);
			h = leaf ? &inst->queue[s]->leaf : &inst->queue[s]->inner;
			if (settle_top(p, h, leaf, now) && (!best || h->v[0].key < best->v[0].key))
				best = h;
		}
	}
	return best;
}

static struct block *pick(struct part *p, const struct scope *c)
{
	uint64_t now = kvb_now_ms(p->core->clock);
	struct heap *h = oldest_of(p, c, true, now);
	struct heap_entry e;

	if (!h) {
		h = oldest_of(p, c, false, now);
		/* Looking at inner ones may have found blocks that are leaves by now. */
		if (h && oldest_of(p, c, true, now))
			h = oldest_of(p, c, true, now);
	}
	if (!h)
		return NULL;
	heap_pop(h, &e);
	return block_get(p, e.id);
}

static uint64_t slots_in_class(const struct instance *inst, const struct block *b, const struct scope *c)
{
	uint64_t n = 0;

	for (uint32_t s = 0; s < inst->spec.n_specs; s++)
		n += b->slot[s].state != SLOT_ABSENT && b->slot[s].space == c->space &&
		     inst->class_of[c->space * inst->spec.n_specs + s] == c->class_id;
	return n;
}

static uint64_t bytes_of(const struct instance *inst, const struct block *b)
{
	uint64_t n = 0;

	for (uint32_t s = 0; s < inst->spec.n_specs; s++)
		if (b->slot[s].state != SLOT_ABSENT)
			n += inst->spec.specs[s].size;
	return n;
}

/* Picks until `need` (slots of the class, or bytes of the group) is reached or nothing is left. */
static uint64_t evict(struct part *p, const struct scope *c, uint64_t need)
{
	struct picks k = { 0 };
	uint64_t got = 0;

	while (got < need) {
		struct block *b = pick(p, c);
		const struct instance *inst;
		uint64_t gain;

		if (!b)
			break;
		inst = block_instance(p, b->id);
		gain = c->group ? bytes_of(inst, b) : slots_in_class(inst, b, c);
		if (remove_mark(p, &k, b) != KVB_OK) {
			evict_consider(p, b);
			break;
		}
		got += gain;
	}
	if (k.n == 0)
		return 0;
	COUNT(p->core, evicted_blocks, k.n);
	return remove_queue(p, &k, NULL) == KVB_OK ? got : 0;
}

uint64_t evict_slots(struct part *p, uint32_t space, uint32_t class_id, uint64_t slots)
{
	struct scope c = { .space = space, .class_id = class_id };

	return evict(p, &c, slots);
}

uint64_t evict_group_bytes(struct part *p, struct group *g, uint64_t bytes)
{
	struct scope c = { .group = g };

	return evict(p, &c, bytes);
}

struct steal {
	struct part *p;
	uint32_t space;
	uint64_t now;
};

static bool slab_may_go(void *ctx, uint32_t slab)
{
	struct steal *st = ctx;
	struct part *p = st->p;
	const struct kvb_pool *pool = p->space[st->space].pool;
	struct kvb_slab_info info;

	if (!kvb_pool_slab(pool, slab, &info))
		return false;
	for (uint32_t i = 0; i < info.slots; i++) {
		const struct block *b;
		const struct instance *inst;
		bool going = false;

		if (!kvb_pool_is_used(pool, slab, i))
			continue;
		b = block_get(p, kvb_pool_owner(pool, slab, i));
		inst = block_instance(p, b->id);
		for (uint32_t s = 0; s < inst->spec.n_specs; s++)
			going |= b->slot[s].state == SLOT_REMOVING;
		if (!going && !block_evictable(p, inst, b, st->now))
			return false;
	}
	return true;
}

static void mark_slab(struct part *p, uint32_t space, uint32_t slab, struct picks *k)
{
	struct kvb_pool *pool = p->space[space].pool;
	struct kvb_slab_info info;

	kvb_pool_slab(pool, slab, &info);
	kvb_pool_drain(pool, slab, true);
	for (uint32_t i = 0; i < info.slots; i++) {
		struct block *b;

		if (!kvb_pool_is_used(pool, slab, i))
			continue;
		b = block_get(p, kvb_pool_owner(pool, slab, i));
		if (block_has_committed(block_instance(p, b->id), b) && remove_mark(p, k, b) != KVB_OK)
			return;
	}
}

bool evict_steal(struct part *p, uint32_t space, uint32_t class_id)
{
	struct steal st = { .p = p, .space = space, .now = kvb_now_ms(p->core->clock) };
	struct picks k = { 0 };
	uint32_t *slabs = NULL;
	size_t n = 0;

	if (kvb_pool_find_victims(p->space[space].pool, class_id, slab_may_go, &st, &slabs, &n) != KVB_OK)
		return false;
	for (size_t i = 0; i < n; i++)
		mark_slab(p, space, slabs[i], &k);
	kvb_free(slabs);
	if (k.n == 0)
		return n > 0; /* all of it is on its way already */
	COUNT(p->core, evicted_blocks, k.n);
	return remove_queue(p, &k, NULL) == KVB_OK;
}

/* Keeps a little free in every class that somebody used lately, so that starts rarely wait, and so
 * that a start just after a recovery finds slots that no lease horizon covers. */
void evict_ahead(struct part *p)
{
	uint64_t now = kvb_now_ms(p->core->clock);
	uint32_t percent = p->core->o.free_percent;

	for (uint32_t i = 0; i < p->n_space; i++) {
		struct space *s = &p->space[i];

		if (!s->pool || !space_usable(s) || space_can_grow(p, s))
			continue;
		for (uint32_t c = 0; c < s->n_class; c++) {
			uint64_t target = s->file_bytes / 100 * percent / (s->class[c].stride ? s->class[c].stride : 1);
			uint64_t have = kvb_pool_available(s->pool, c) + s->class[c].removing;

			if (s->class[c].wanted_ms && now - s->class[c].wanted_ms < 60000 && have < target)
				evict_slots(p, i, c, target - have);
		}
	}
	for (size_t i = 0; i < p->n_group; i++) {
		struct group *g = p->group[i];
		uint64_t line = g->spec.capacity - g->spec.capacity / 100 * percent;

		if (g->spec.capacity && g->used_bytes - g->removing_bytes > line)
			evict_group_bytes(p, g, g->used_bytes - g->removing_bytes - line);
	}
}
