/*
 * evict.c - which committed blocks go when room is needed: least recently used, tails first.
 *
 * Each instance has a queue for each size class in each storage that it has blocks in; a block is in the
 * queue of each class of which it holds committed slots, so a search for slots of a class finds only blocks
 * that have some. A queue is a pair of heaps: the candidates, by last use (blocks without live
 * children before those with), and the leased, by the end of the lease. A hit only writes the block's marks;
 * the heaps learn of it when the block comes to the top with a key that is out of date: it is queued again
 * with the right one. A prefix head has live children until its last tail is gone, so chains lose their tails
 * first; inner blocks are taken only when no leaf is left, so that nothing ever stops while something may
 * be evicted.
 *
 * All calls under the write lock. Victims are marked and journaled here (remove.c); their slots become
 * free when the record is durable.
 */
#include "internal.h"
#include "mark.h"

#include <string.h>

enum { CANDIDATES, LEASED };

#define INNER (1ull << 63)  /* in a candidate's key: it has live children */
#define MAX_AHEAD_PERCENT 10u /* of a storage, for demand */
#define DEMAND_MS 20u
#define AHEAD_PICKS 1024u /* of one class in one call: others wait for the lock */
#define MAX_PICKS 16384u    /* in one call: it holds the lock, and a record has bounds */

bool block_evictable(const struct part *p, const struct instance *inst, const struct block *b, uint64_t now)
{
	if (inst->ghost || block_lease(p, inst, b) > now)
		return false;
	return block_has_committed(inst, b) && !block_has_writing(inst, b);
}

static uint64_t candidate_key(const struct block *b)
{
	return (b->live_children ? INNER : 0) | mark_use(atomic_load_explicit(&b->mark, memory_order_relaxed));
}

/* ---- queues ----------------------------------------------------------------------------------------- */

static uint32_t class_of(const struct instance *inst, uint32_t space, uint32_t spec)
{
	return inst->class_of[(size_t)space * inst->spec.n_specs + spec];
}

static struct evict_queue *queue_find(const struct instance *inst, uint32_t space, uint32_t class_id)
{
	for (size_t i = 0; i < inst->n_queue; i++)
		if (inst->queue[i]->space == space && inst->queue[i]->class_id == class_id)
			return inst->queue[i];
	return NULL;
}

/* A block's place in this queue is kept in one of the slots that bring it there. */
static uint32_t *place_in_queue(void *ctx, uint32_t id)
{
	const struct evict_queue *q = ctx;
	struct block *b = block_get(q->part, id);

	for (uint32_t s = 0; s < q->inst->spec.n_specs; s++)
		if (b->slot[s].queued && b->slot[s].space == q->space &&
		    class_of(q->inst, q->space, s) == q->class_id)
			return &b->slot[s].queued;
	assert(!"the block is not in this queue");
	return NULL;
}

/* Into the list of its space, or out of it. */
static void queue_link(struct evict_queue *q)
{
	struct evict_queue **head = &q->part->space[q->space].queues;

	q->prev = NULL;
	q->next = *head;
	if (q->next)
		q->next->prev = q;
	*head = q;
}

static void queue_unlink(struct evict_queue *q)
{
	if (q->prev)
		q->prev->next = q->next;
	else
		q->part->space[q->space].queues = q->next;
	if (q->next)
		q->next->prev = q->prev;
}

void evict_hide(struct instance *inst, bool hidden)
{
	for (size_t i = 0; i < inst->n_queue; i++) {
		if (hidden)
			queue_unlink(inst->queue[i]);
		else
			queue_link(inst->queue[i]);
	}
}

static struct evict_queue *queue_make(struct part *p, struct instance *inst, uint32_t space, uint32_t class_id)
{
	void *v = inst->queue;
	struct evict_queue *q;

	if (kvb_grow(&v, &inst->cap_queue, inst->n_queue + 1, sizeof *inst->queue) != KVB_OK)
		return NULL;
	inst->queue = v;
	q = kvb_calloc(1, sizeof *q);
	if (!q)
		return NULL;
	*q = (struct evict_queue){ .part = p, .inst = inst, .space = space, .class_id = class_id };
	heap_pair_init(&q->heaps, place_in_queue, q);
	inst->queue[inst->n_queue++] = q;
	queue_link(q);
	return q;
}

int evict_reserve(struct part *p, struct instance *inst, uint32_t space, uint32_t class_id)
{
	struct evict_queue *q = queue_find(inst, space, class_id);

	if (!q)
		q = queue_make(p, inst, space, class_id);
	return q ? heap_pair_reserve(&q->heaps, inst->entries_made) : KVB_E_NOMEM;
}

int evict_reserve_all(struct instance *inst, uint64_t entries)
{
	int rc = KVB_OK;

	for (size_t i = 0; rc == KVB_OK && i < inst->n_queue; i++)
		rc = heap_pair_reserve(&inst->queue[i]->heaps, entries);
	return rc;
}

static void queue_free(struct evict_queue *q)
{
	if (!q->inst->ghost)
		queue_unlink(q);
	heap_pair_destroy(&q->heaps);
	kvb_free(q);
}

void evict_forget_space(struct instance *inst, uint32_t space)
{
	size_t first = (size_t)space * inst->spec.n_specs;

	if (first + inst->spec.n_specs <= inst->cap_class_of)
		memset(&inst->class_of[first], 0xff, inst->spec.n_specs * sizeof *inst->class_of);
	for (size_t i = inst->n_queue; i-- > 0;) {
		if (inst->queue[i]->space != space)
			continue;
		queue_free(inst->queue[i]);
		inst->queue[i] = inst->queue[--inst->n_queue];
	}
}

void evict_destroy_queues(struct instance *inst)
{
	for (size_t i = 0; i < inst->n_queue; i++)
		queue_free(inst->queue[i]);
	kvb_free(inst->queue);
	inst->queue = NULL;
	inst->n_queue = inst->cap_queue = 0;
}

void evict_forget(struct block *b)
{
	const struct instance *inst = block_instance(b);

	for (uint32_t s = 0; s < inst->spec.n_specs; s++)
		if (b->slot[s].queued)
			heap_remove(&queue_find(inst, b->slot[s].space, class_of(inst, b->slot[s].space, s))->heaps, block_id(b));
}

/* An earlier spec of the block has brought it into the same queue. */
static bool queued_before(const struct instance *inst, const struct block *b, uint32_t spec)
{
	uint32_t space = b->slot[spec].space, class_id = class_of(inst, space, spec);

	for (uint32_t s = 0; s < spec; s++)
		if (b->slot[s].queued && b->slot[s].space == space && class_of(inst, space, s) == class_id)
			return true;
	return false;
}

/* Queues it as it stands at `now`, which is the time of the whole search: a lease that ends during it runs for all of it,
 * or the block would be a candidate that may not be taken. */
static void consider_at(struct part *p, struct block *b, uint64_t lease, uint64_t now)
{
	struct instance *inst = block_instance(b);
	bool leased = lease > now;

	if (p->loading)
		return;
	evict_forget(b);
	if (block_has_writing(inst, b))
		return;
	for (uint32_t s = 0; s < inst->spec.n_specs; s++) {
		struct slot *slot = &b->slot[s];

		if (slot->state != SLOT_COMMITTED || queued_before(inst, b, s))
			continue;
		slot->queued = 1; /* from here on this slot keeps the place */
		heap_push(&queue_find(inst, slot->space, class_of(inst, slot->space, s))->heaps,
			  leased ? LEASED : CANDIDATES, leased ? lease : candidate_key(b), block_id(b));
	}
}

void evict_consider(struct part *p, struct block *b)
{
	uint64_t lease = block_lease(p, block_instance(b), b);

	consider_at(p, b, lease, lease ? kvb_now_ms(p->core->clock) : 0);
}

/* What one search is about. */
enum unit { SLOTS, BYTES, BLOCKS }; /* of the class; of the group in `spaces`; of the group */
struct scope {
	enum unit unit;
	const struct group *group; /* BYTES, BLOCKS */
	struct space_set spaces;   /* BYTES, BLOCKS: those that count */
	uint32_t space;            /* SLOTS */
	uint32_t class_id;
	uint64_t below;            /* candidates' keys: no others are looked at */
	uint64_t looks;            /* so many entries are queued again at most */
};

static bool in_scope(const struct scope *c, const struct evict_queue *q)
{
	return c->unit == SLOTS ? q->class_id == c->class_id : q->inst->group == c->group;
}

/* Brings a victim to the top of the candidates; false when there is none. A key out of date is never above the right
 * one, but for a block that has lost its last live child: that is queued again at once. */
static bool settle(struct part *p, struct evict_queue *q, struct scope *c, uint64_t now, uint64_t *key, uint32_t *id)
{
	struct block *b;

	while (heap_top(&q->heaps, LEASED, key, id) && *key <= now && c->looks) {
		COUNT(p->core, evict_examined, 1);
		c->looks--;
		b = block_get(p, *id);
		consider_at(p, b, block_lease(p, q->inst, b), now);
	}
	while (heap_top(&q->heaps, CANDIDATES, key, id) && *key < c->below && c->looks) {
		COUNT(p->core, evict_examined, 1);
		b = block_get(p, *id);
		if (block_evictable(p, q->inst, b, now) && *key == candidate_key(b))
			return true;
		consider_at(p, b, block_lease(p, q->inst, b), now); /* where it belongs */
		c->looks--;
	}
	return false;
}

static struct block *pick(struct part *p, struct scope *c)
{
	uint64_t now = kvb_now_ms(p->core->clock), key, best_key = UINT64_MAX;
	uint32_t first = c->unit == SLOTS ? c->space : 0, end = c->unit == SLOTS ? first + 1 : p->n_space;
	uint32_t id, best = NO_BLOCK;

	for (uint32_t i = first; i < end; i++) {
		if (c->unit != SLOTS && !(c->group->space_used[i] && space_set_has(&c->spaces, i)))
			continue;
		for (struct evict_queue *q = p->space[i].queues; q; q = q->next) {
			if (!in_scope(c, q) || !settle(p, q, c, now, &key, &id) || key >= best_key)
				continue;
			best_key = key;
			best = id;
		}
	}
	return best == NO_BLOCK ? NULL : block_get(p, best);
}

/* What comes free with the block, in the scope's unit. */
static uint64_t gain(const struct instance *inst, const struct block *b, const struct scope *c)
{
	uint64_t n = 0;

	if (c->unit == BLOCKS)
		return 1;
	for (uint32_t s = 0; s < inst->spec.n_specs; s++) {
		if (b->slot[s].state != SLOT_COMMITTED)
			continue;
		if (c->unit == BYTES)
			n += space_set_has(&c->spaces, b->slot[s].space) ? inst->spec.specs[s].size : 0;
		else
			n += b->slot[s].space == c->space && class_of(inst, c->space, s) == c->class_id;
	}
	return n;
}

/* Picks until `need` is reached, nothing is left, or it is enough for one call. Returns what will come free. */
static uint64_t evict(struct part *p, struct scope *c, uint64_t need)
{
	struct picks k = { 0 };
	uint64_t got = 0;

	while (got < need && k.n < MAX_PICKS) {
		struct block *b = pick(p, c);
		uint64_t n;

		if (!b)
			break;
		n = gain(block_instance(b), b, c);
		if (remove_mark(p, &k, b) != KVB_OK)
			break;
		got += n;
	}
	if (k.n == 0) {
		kvb_free(k.v);
		return 0;
	}
	COUNT(p->core, evicted_blocks, k.n);
	return remove_queue(p, &k, NULL) == KVB_OK ? got : 0;
}

uint64_t evict_slots(struct part *p, uint32_t space, uint32_t class_id, uint64_t slots)
{
	struct scope c = { .unit = SLOTS, .space = space, .class_id = class_id, .below = UINT64_MAX, .looks = UINT64_MAX };

	return evict(p, &c, slots);
}

uint64_t evict_group_bytes(struct part *p, struct group *g, const struct space_set *spaces, uint64_t bytes)
{
	struct scope c = { .unit = BYTES, .group = g, .spaces = *spaces, .below = UINT64_MAX, .looks = UINT64_MAX };

	return evict(p, &c, bytes);
}

uint64_t evict_group_blocks(struct part *p, struct group *g, uint64_t blocks)
{
	struct scope c = { .unit = BLOCKS, .group = g, .spaces = space_set_all(), .below = UINT64_MAX,
			   .looks = UINT64_MAX };

	return evict(p, &c, blocks);
}

/* Inner blocks stay: whose children are not idle is in use, too. The keys of those begin with INNER, above all uses. */
bool evict_idle(struct part *p, struct group *g, uint64_t since, uint64_t blocks)
{
	struct scope c = { .unit = BLOCKS, .group = g, .spaces = space_set_all(), .below = use_make(since, 0),
			   .looks = 4 * blocks };

	return evict(p, &c, blocks) >= blocks || !c.looks;
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
		if (kvb_pool_owner(pool, slab, i) == NO_BLOCK)
			return false; /* the start that makes room took it for another spec (room.c) */
		b = block_get(p, kvb_pool_owner(pool, slab, i));
		inst = block_instance(b);
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

		if (k->n == MAX_PICKS)
			return; /* the next call goes on: what is drained stays drained */
		if (!kvb_pool_is_used(pool, slab, i))
			continue;
		b = block_get(p, kvb_pool_owner(pool, slab, i));
		if (block_has_committed(block_instance(b), b) && remove_mark(p, k, b) != KVB_OK)
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

uint64_t evict_next_lease(const struct part *p, uint32_t space)
{
	uint64_t next = UINT64_MAX, key;
	uint32_t id;

	for (const struct evict_queue *q = p->space[space].queues; q; q = q->next)
		if (heap_top(&q->heaps, LEASED, &key, &id) && key < next)
			next = key;
	return next;
}

/* Free slots to keep for a class: a share of the storage, or what was taken lately if that is more (freed slots
 * come back only with the next commit, or sync). */
static uint64_t free_target(const struct part *p, const struct space *s, const struct space_class *c)
{
	uint64_t slots = s->file_bytes / (c->stride ? c->stride : 1);
	uint64_t share = slots / 100 * p->core->o.free_percent, most = slots / 100 * MAX_AHEAD_PERCENT;

	if (p->core->o.free_percent == 0)
		return 0;
	if (s->dev->ops->counted)
		return share; /* that all of it may be full is what its clients reckon with */
	most = c->demand < most ? c->demand : most;
	return most > share ? most : share;
}

/* What was taken since the last time counts for the next eight times or so. */
static void note_demand(struct part *p, uint64_t now)
{
	if (now - p->demand_at < DEMAND_MS)
		return;
	p->demand_at = now;
	for (uint32_t i = 0; i < p->n_space; i++) {
		for (uint32_t c = 0; c < p->space[i].n_class; c++) {
			struct space_class *k = &p->space[i].class[c];

			k->demand += k->taken - k->demand / 8;
			k->taken = 0;
		}
	}
}

bool evict_ahead(struct part *p)
{
	uint64_t now = kvb_now_ms(p->core->clock);
	bool more = false;

	note_demand(p, now);

	for (uint32_t i = 0; i < p->n_space; i++) {
		struct space *s = &p->space[i];

		if (!s->pool || !space_usable(s) || space_can_grow(p, s) || ghosts_left(p, NULL, i))
			continue;
		for (uint32_t c = 0; c < s->n_class; c++) {
			uint64_t target = free_target(p, s, &s->class[c]);
			uint64_t have = kvb_pool_available(s->pool, c) + s->class[c].removing;

			uint64_t need = have < target ? target - have : 0;

			if (!need || !s->class[c].wanted_ms || now - s->class[c].wanted_ms >= 60000)
				continue;
			more |= evict_slots(p, i, c, need < AHEAD_PICKS ? need : AHEAD_PICKS) >= AHEAD_PICKS;
		}
	}
	for (size_t i = 0; i < p->n_group; i++)
		more |= !ghosts_left(p, p->group[i], ANY_SPACE) && reclaim_group(p, p->group[i]);
	return more;
}
