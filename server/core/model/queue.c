/*
 * queue.c - the eviction queues.
 *
 * Each instance has an evict_queue per size class in each storage where it has blocks: a heap for
 * each queue of its group's policy (skv/policy.h), one for leased blocks by end of lease, one for
 * blocks leased by slots_only lookups, and one for soft-pinned blocks, leaves first and by last
 * use, which are evicted last (hard-pinned blocks are in no queue). A block is in the queue of each
 * class of which it has committed slots, so a search for slots of a class finds only blocks that
 * have some. The evict_queues of a group for one class in one storage form a *set*: heaps of their
 * tops, kept up to date, so that the first of a thousand instances is found at once.
 *
 * Hits touch no heap: a block with a stale position is requeued when it reaches the top (evict.c).
 *
 * Under the write lock, except evict_destroy_queues of a swept retired instance.
 */
#include <model/queue.h>

#include <assert.h>
#include <string.h>

#include <skv/mem.h>

#include <model/block.h>
#include <model/mark.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/pin.h>
#include <model/rows.h>
#include <model/table.h>

static struct evict_queue *queue_find(const struct instance *inst, uint32_t volume,
				      uint32_t class_id)
{
	for (size_t i = 0; i < inst->n_queue; i++)
		if (inst->queue[i]->volume == volume && inst->queue[i]->class_id == class_id)
			return inst->queue[i];
	return NULL;
}

/* A block's position in this queue is stored in one of its slots of this class. */
static uint32_t *place_in_queue(void *ctx, uint32_t id)
{
	const struct evict_queue *q = ctx;
	struct block *b = block_get(q->partition, id);

	for (uint32_t s = 0; s < q->inst->spec.n_specs; s++)
		if (b->slot[s].queued && b->slot[s].volume == q->volume &&
		    class_of(q->inst, q->volume, s) == q->class_id)
			return &b->slot[s].queued;
	assert(!"the block is not in this queue");
	return NULL;
}

/* ---- sets ------------------------------------------------------------------------------------ */

#define WHICH_BITS 5u /* of an id in a set's heaps: the heap; the bits above: the member */

static uint32_t *place_of_top(void *ctx, uint32_t id)
{
	const struct evict_set *set = ctx;

	return &set->member[id >> WHICH_BITS]->top[id & ((1u << WHICH_BITS) - 1)];
}

static uint32_t top_id(const struct evict_queue *q, uint32_t which)
{
	return q->member << WHICH_BITS | which;
}

struct evict_queue *evict_set_top(const struct evict_set *set, uint32_t which, uint64_t *key,
				  uint32_t *id)
{
	struct evict_queue *q;
	uint32_t at;

	if (set->n == 1)
		return skv_heap_top(&set->member[0]->heaps, which, key, id) ? set->member[0] : NULL;
	if (!skv_heap_top(&set->tops, which, key, &at))
		return NULL;
	q = set->member[at >> WHICH_BITS];
	skv_heap_top(&q->heaps, which, key, id);
	return q;
}

/* Call after any change of the queue's heap. Of a single queue no tops are kept. */
static void note_top(struct evict_queue *q, uint32_t which)
{
	struct skv_heaps *tops = &q->set->tops;
	uint32_t place = q->top[which], id;
	uint64_t key;
	bool any;

	assert(q->set->n > 0);
	if (q->set->n == 1)
		return;
	any = skv_heap_top(&q->heaps, which, &key, &id);

	if (place && any && skv_heap_key(tops, place) == key)
		return;
	if (place)
		skv_heap_remove(tops, top_id(q, which));
	if (any)
		skv_heap_push(tops, which, key, top_id(q, which));
}

static struct evict_set *set_find(const struct partition *p, const struct group *g, uint32_t volume,
				  uint32_t class_id)
{
	struct evict_set *set = p->volume[volume].sets;

	while (set && (set->group != g || set->class_id != class_id))
		set = set->next;
	return set;
}

static struct evict_set *set_make(struct partition *p, struct group *g, uint32_t volume,
				  uint32_t class_id)
{
	struct evict_set *set = skv_calloc(1, sizeof *set);

	ASSERT_EXCLUSIVE(p);
	if (!set)
		return NULL;
	*set = (struct evict_set){ .group = g, .volume = volume, .class_id = class_id,
				   .next = p->volume[volume].sets };
	skv_heaps_init(&set->tops, g->n_queues + EVICT_FIRST, place_of_top, set);
	p->volume[volume].sets = set;
	return set;
}

static void set_free(struct evict_set *set)
{
	skv_heaps_destroy(&set->tops);
	skv_free(set->member);
	skv_free(set->candidate);
	skv_free(set);
}

void evict_free_sets(struct partition *p, uint32_t volume, const struct group *g)
{
	struct evict_set **at = &p->volume[volume].sets;

	ASSERT_EXCLUSIVE(p);
	while (*at) {
		struct evict_set *set = *at;

		if (g && set->group != g) {
			at = &set->next;
			continue;
		}
		assert(set->n == 0);
		*at = set->next;
		set_free(set);
	}
}

/* Makes room for one more member, and for hidden members that may come back. */
static int set_reserve(struct evict_set *set)
{
	void *v = set->member;
	int rc = skv_grow(&v, &set->cap, set->n + set->hidden + 1, sizeof *set->member);

	set->member = v;
	v = set->candidate;
	if (rc == SKV_OK)
		rc = skv_grow(&v, &set->cap_candidates, set->n + set->hidden + 1,
			      sizeof *set->candidate);
	set->candidate = v;
	if (rc == SKV_OK)
		rc = skv_heaps_widen(&set->tops, set->group->n_queues + EVICT_FIRST);
	return rc == SKV_OK ? skv_heaps_reserve(&set->tops, set->cap * SKV_HEAPS_MAX) : rc;
}

/* Room must be reserved. */
static void join_set(struct evict_queue *q)
{
	q->member = q->set->n++;
	q->set->member[q->member] = q;
	for (uint32_t w = 0; q->set->n == 2 && w < q->set->member[0]->heaps.n_heaps; w++)
		note_top(q->set->member[0], w);
	for (uint32_t w = 0; w < q->heaps.n_heaps; w++) {
		note_top(q, w);
		if (w >= EVICT_FIRST)
			q->set->group->count.queued[w - EVICT_FIRST] +=
				skv_heap_count(&q->heaps, w);
	}
}

static void withdraw_tops(struct evict_queue *q)
{
	for (uint32_t w = 0; w < q->heaps.n_heaps; w++)
		if (q->top[w])
			skv_heap_remove(&q->set->tops, top_id(q, w));
}

static void leave_set(struct evict_queue *q)
{
	struct evict_queue *last = q->set->member[q->set->n - 1];

	withdraw_tops(q);
	for (uint32_t w = EVICT_FIRST; w < q->heaps.n_heaps; w++)
		q->set->group->count.queued[w - EVICT_FIRST] -= skv_heap_count(&q->heaps, w);
	q->set->n--;
	if (last != q) {
		withdraw_tops(last);
		last->member = q->member;
		q->set->member[q->member] = last;
		for (uint32_t w = 0; w < last->heaps.n_heaps; w++)
			note_top(last, w);
	}
	if (q->set->n == 1)
		withdraw_tops(q->set->member[0]);
}

void evict_hide(struct instance *inst, bool hidden)
{
	for (size_t i = 0; i < inst->n_queue; i++) {
		struct evict_set *set = inst->queue[i]->set;

		if (hidden) {
			leave_set(inst->queue[i]);
			set->hidden++;
		} else {
			set->hidden--;
			join_set(inst->queue[i]);
		}
	}
}

void evict_hide_for_good(struct instance *inst)
{
	for (size_t i = 0; i < inst->n_queue; i++) {
		inst->queue[i]->set->hidden--;
		inst->queue[i]->set = NULL;
	}
}

/* ---- queues ---------------------------------------------------------------------------------- */

static struct evict_queue *queue_make(struct partition *p, struct instance *inst, uint32_t volume,
				      uint32_t class_id)
{
	struct evict_set *set = set_find(p, inst->group, volume, class_id);
	void *v = inst->queue;
	struct evict_queue *q;

	ASSERT_EXCLUSIVE(p);
	if (!set)
		set = set_make(p, inst->group, volume, class_id);
	if (!set || set_reserve(set) != SKV_OK ||
	    skv_grow(&v, &inst->cap_queue, inst->n_queue + 1, sizeof *inst->queue) != SKV_OK)
		return NULL;
	inst->queue = v;
	q = skv_calloc(1, sizeof *q);
	if (!q)
		return NULL;
	*q = (struct evict_queue){ .partition = p, .inst = inst, .set = set, .volume = volume,
				   .class_id = class_id };
	skv_heaps_init(&q->heaps, inst->group->n_queues + EVICT_FIRST, place_in_queue, q);
	inst->queue[inst->n_queue++] = q;
	join_set(q);
	return q;
}

int evict_reserve(struct partition *p, struct instance *inst, uint32_t volume, uint32_t class_id)
{
	struct evict_queue *q = queue_find(inst, volume, class_id);

	ASSERT_EXCLUSIVE(p);
	if (!q)
		q = queue_make(p, inst, volume, class_id);
	return q ? skv_heaps_reserve(&q->heaps, inst->entries_made) : SKV_E_NOMEM;
}

int evict_reserve_all(struct instance *inst, uint64_t entries)
{
	int rc = SKV_OK;

	for (size_t i = 0; rc == SKV_OK && i < inst->n_queue; i++)
		rc = skv_heaps_reserve(&inst->queue[i]->heaps, entries);
	return rc;
}

static int widen_queues(const struct instance *inst, uint32_t n_queues)
{
	int rc = SKV_OK;

	for (size_t i = 0; rc == SKV_OK && i < inst->n_queue; i++)
		rc = skv_heaps_widen(&inst->queue[i]->heaps, n_queues + EVICT_FIRST);
	return rc;
}

int evict_widen(struct partition *p, const struct group *g, uint32_t n_queues)
{
	int rc = SKV_OK;

	ASSERT_EXCLUSIVE(p);
	for (uint32_t i = 0; i < p->n_volume; i++)
		for (struct evict_set *set = p->volume[i].sets; set && rc == SKV_OK;
		     set = set->next)
			if (set->group == g)
				rc = skv_heaps_widen(&set->tops, n_queues + EVICT_FIRST);
	for (struct instance *inst = g->members; inst && rc == SKV_OK; inst = inst->next_member)
		rc = widen_queues(inst, n_queues);
	for (const struct instance *retired = p->retired; retired && rc == SKV_OK;
	     retired = retired->next_retired)
		if (retired->group == g && !retired->cleared) /* a retired instance may come back */
			rc = widen_queues(retired, n_queues);
	return rc;
}

/* Frees a queue. Queues of a retired instance are in no set. */
static void queue_free(struct evict_queue *q)
{
	if (!q->inst->retired)
		leave_set(q);
	skv_heaps_destroy(&q->heaps);
	skv_free(q);
}

void evict_forget_volume(struct instance *inst, uint32_t volume)
{
	uint32_t *classes = instance_classes(inst, volume);

	if (classes)
		row_remove(inst->classes, (1 + inst->spec.n_specs) * sizeof *classes,
			   &inst->n_classes, classes - 1);
	for (size_t i = inst->n_queue; i-- > 0;) {
		if (inst->queue[i]->volume != volume)
			continue;
		queue_free(inst->queue[i]);
		inst->queue[i] = inst->queue[--inst->n_queue];
	}
}

void evict_destroy_queues(struct instance *inst)
{
	for (size_t i = 0; i < inst->n_queue; i++)
		queue_free(inst->queue[i]);
	skv_free(inst->queue);
	inst->queue = NULL;
	inst->n_queue = inst->cap_queue = 0;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static void push(struct evict_queue *q, uint32_t which, uint64_t key, uint32_t id)
{
	skv_heap_push(&q->heaps, which, key, id);
	if (q->inst->retired)
		return;
	if (which >= EVICT_FIRST)
		q->set->group->count.queued[which - EVICT_FIRST]++;
	note_top(q, which);
}

static void take_out(struct evict_queue *q, const struct slot *slot, uint32_t id)
{
	uint32_t which = skv_heap_which(slot->queued);

	skv_heap_remove(&q->heaps, id);
	if (q->inst->retired)
		return;
	if (which >= EVICT_FIRST)
		q->set->group->count.queued[which - EVICT_FIRST]--;
	note_top(q, which);
}

void evict_forget(struct block *b)
{
	const struct instance *inst = block_instance(b);

	for (uint32_t s = 0; s < inst->spec.n_specs; s++)
		if (b->slot[s].queued)
			take_out(queue_find(inst, b->slot[s].volume,
					    class_of(inst, b->slot[s].volume, s)),
				 &b->slot[s], block_id(b));
}

/* An earlier spec of the block has put it into the same queue. */
static bool queued_before(const struct instance *inst, const struct block *b, uint32_t spec)
{
	uint32_t volume = b->slot[spec].volume, class_id = class_of(inst, volume, spec);

	for (uint32_t s = 0; s < spec; s++)
		if (b->slot[s].queued && b->slot[s].volume == volume &&
		    class_of(inst, volume, s) == class_id)
			return true;
	return false;
}

static uint64_t inner(const struct skv_policy_ops *policy, const struct block *b)
{
	return policy->leaf_first && b->live_children ? SKV_POLICY_INNER : 0;
}

bool evict_inner_as(const struct instance *inst, const struct block *b, uint64_t key)
{
	return (key & SKV_POLICY_INNER) == inner(inst->group->policy, b);
}

uint64_t evict_soft_key(const struct block *b)
{
	return (b->live_children ? SKV_POLICY_INNER : 0) |
	       mark_use(atomic_load_explicit(&b->mark, memory_order_relaxed));
}

/* Computes the block's position among the candidates. */
static void place(struct instance *inst, struct block *b, uint32_t *which, uint64_t *key)
{
	struct group *g = inst->group;
	struct skv_policy_block facts = evict_facts(inst, b);
	struct skv_policy_place at = g->policy->place(g->policy_state, &facts);

	evict_keep(b, &facts);
	*which = at.queue + EVICT_FIRST;
	*key = at.key | inner(g->policy, b);
}

/* The field that stores its position in one of its queues; 0 = it is in none. */
static uint32_t any_place(const struct instance *inst, const struct block *b)
{
	for (uint32_t s = 0; s < inst->spec.n_specs; s++)
		if (b->slot[s].queued)
			return b->slot[s].queued;
	return 0;
}

/* Returns true if the block may be in a queue at all. */
static bool may_stand(const struct instance *inst, const struct block *b)
{
	bool committed = false;

	if (b->kept || pin_kind(b) == SKV_PIN_HARD)
		return false;
	for (uint32_t s = 0; s < inst->spec.n_specs; s++) {
		if (b->slot[s].state == SLOT_WRITING)
			return false;
		committed |= b->slot[s].state == SLOT_COMMITTED;
	}
	return committed;
}

bool evict_held_back(const struct block *b)
{
	return !any_place(block_instance(b), b) && may_stand(block_instance(b), b);
}

uint64_t evict_held_key(const struct block *b, uint64_t lease, uint64_t now)
{
	const struct instance *inst = block_instance(b);

	if (lease <= now || pin_kind(b) != SKV_PIN_NONE ||
	    atomic_load_explicit(&inst->found_until, memory_order_relaxed) > now)
		return 0;
	return lease << 1 | (inner(inst->group->policy, b) != 0);
}

/* Key of a leased block: it is no candidate until it is examined again at this time. */
static uint64_t leased_key(const struct block *b, uint64_t lease, uint64_t now)
{
	uint64_t found =
		atomic_load_explicit(&block_instance(b)->found_until, memory_order_relaxed);

	return pin_kind(b) == SKV_PIN_NONE && found > now && found < lease ? found : lease;
}

/* The queue where it belongs, regardless of its children. False: not a candidate. */
static bool stand(struct block *b, uint64_t lease, uint64_t now)
{
	struct instance *inst = block_instance(b);
	uint32_t which = EVICT_HELD;
	uint64_t key = evict_held_key(b, lease, now);

	evict_forget(b);
	if (!may_stand(inst, b))
		return false;
	if (lease > now && !key) {
		which = EVICT_LEASED;
		key = leased_key(b, lease, now);
	} else if (lease <= now && pin_kind(b) == SKV_PIN_SOFT) {
		which = EVICT_SOFT;
		key = evict_soft_key(b);
	} else if (lease <= now) {
		place(inst, b, &which, &key);
	}
	for (uint32_t s = 0; s < inst->spec.n_specs; s++) {
		struct slot *slot = &b->slot[s];

		if (slot->state != SLOT_COMMITTED || queued_before(inst, b, s))
			continue;
		slot->queued = 1; /* this slot stores the position from here on */
		push(queue_find(inst, slot->volume, class_of(inst, slot->volume, s)), which, key,
		     block_id(b));
	}
	return which >= EVICT_FIRST;
}

/* Returns true if the block waits for the end of the lease that all loaded blocks are assumed to
 * have. The block above it was loaded too, is a candidate no sooner, and will be examined then. */
static bool waits_as_loaded(const struct block *b)
{
	const struct instance *inst = block_instance(b);
	const uint32_t place_word = any_place(inst, b);
	const struct evict_queue *q;
	uint32_t s = 0;

	if (!place_word || skv_heap_which(place_word) != EVICT_LEASED || b->parent == NO_BLOCK)
		return false;
	while (b->slot[s].queued != place_word)
		s++;
	q = queue_find(inst, b->slot[s].volume, class_of(inst, b->slot[s].volume, s));
	return skv_heap_key(&q->heaps, place_word) <= inst->loaded_lease &&
	       block_generation(inst, block_get(q->partition, b->parent)) <
		       q->partition->loaded_generation;
}

/* Blocks kept out because of it are queued themselves. */
static void expose(struct partition *p, const struct block *b)
{
	while (b->parent != NO_BLOCK) {
		struct block *parent = block_get(p, b->parent);
		uint64_t lease;

		if (!evict_held_back(parent))
			return;
		lease = block_lease(p, block_instance(b), parent);
		if (stand(parent, lease, lease ? skv_now_ms(p->core->clock) : 0))
			return;
		b = parent;
	}
}

void evict_consider_at(struct partition *p, struct block *b, uint64_t lease, uint64_t now)
{
	if (!p->loading && !stand(b, lease, now) && !waits_as_loaded(b))
		expose(p, b);
}

void evict_withhold(struct partition *p, struct block *b)
{
	evict_forget(b);
	if (!p->loading)
		expose(p, b);
}

static bool same_queues(const struct instance *inst, const struct block *a, const struct block *b)
{
	for (uint32_t s = 0; s < inst->spec.n_specs; s++)
		if (a->slot[s].state != b->slot[s].state || a->slot[s].volume != b->slot[s].volume)
			return false;
	return true;
}

bool evict_stands_for(const struct block *child, const struct block *b)
{
	const struct instance *inst = block_instance(b);
	uint32_t place_word = any_place(inst, child);

	return child->parent == block_id(b) && b->live_children == 1 &&
	       same_queues(inst, b, child) && may_stand(inst, child) &&
	       (!place_word || skv_heap_which(place_word) >= EVICT_FIRST || waits_as_loaded(child));
}

static bool may_be_held_back(const struct block *b, const struct block *child)
{
	const struct instance *inst = block_instance(b);

	return evict_stands_for(child, b) && inst->group->policy->leaf_first &&
	       may_stand(inst, b) && pin_kind(b) == SKV_PIN_NONE;
}

void evict_consider_above(struct partition *p, struct block *b, const struct block *child)
{
	const struct instance *inst = block_instance(b);

	if (p->loading || !child || !may_be_held_back(b, child) || block_lease(p, inst, b))
		evict_consider(p, b);
	else
		evict_forget(b);
}

/* A block that a walk up a chain has reached, and the previous one. */
struct climb {
	struct block *b;
	const struct block *child; /* NULL: it begins here */
};

/* Returns false at the end of the climb. */
static bool climb_on(struct partition *p, struct climb *c)
{
	struct block *b = c->b;

	if (c->child && b->live_children != 1)
		return false;
	if (block_has_committed(block_instance(b), b) &&
	    (!c->child || !may_be_held_back(b, c->child)))
		evict_consider(p, b);
	if (!b->live || b->parent == NO_BLOCK)
		return false;
	*c = (struct climb){ block_get(p, b->parent), b };
	__builtin_prefetch(c->b, 1); /* the block is loaded while the other climbs continue */
	return true;
}

void evict_load_chains(struct partition *p, struct block *const *first, uint32_t n)
{
	struct climb c[EVICT_CHAINS];

	ASSERT_EXCLUSIVE(p);
	assert(!p->loading && n <= EVICT_CHAINS);
	for (uint32_t i = 0; i < n; i++)
		c[i] = (struct climb){ .b = first[i] };
	while (n)
		for (uint32_t i = n; i-- > 0;)
			if (!climb_on(p, &c[i]))
				c[i] = c[--n];
}

void evict_consider(struct partition *p, struct block *b)
{
	uint64_t lease = block_lease(p, block_instance(b), b);

	ASSERT_EXCLUSIVE(p);
	evict_consider_at(p, b, lease, lease ? skv_now_ms(p->core->clock) : 0);
}

void evict_leaf(struct partition *p, struct block *b)
{
	if (block_instance(b)->group->policy->leaf_first || pin_kind(b) != SKV_PIN_NONE ||
	    evict_held_back(b))
		evict_consider(p, b);
}

uint64_t evict_next_lease(const struct partition *p, uint32_t volume)
{
	uint64_t next = UINT64_MAX, key;
	uint32_t id;

	ASSERT_SHARED(p);
	for (const struct evict_set *set = p->volume[volume].sets; set; set = set->next) {
		if (evict_set_top(set, EVICT_LEASED, &key, &id) && key < next)
			next = key;
		if (evict_set_top(set, EVICT_HELD, &key, &id) && evict_held_until(key) < next)
			next = evict_held_until(key);
	}
	return next;
}
