/*
 * rebalance.c - eviction that looks at where blocks lie: space moves between size classes, and segments come free as a whole.
 *
 * A class that has no slots and nothing of its own to evict takes a window of others' slabs (evict_rebalance): of those with the
 * fewest slots in use the one whose blocks were used longest ago. Where leases run in all of them, it takes one all the
 * same, and waits until they end: those of blocks that are always read would never. A class that evicts its own blocks
 * while others keep what nobody has used for long would never grow; so it remembers how long what it evicts had been
 * idle, and each time it has evicted as much as a slab holds, it looks for a window of others that has been idle for
 * STEER_RATIO times as long, and takes that. One window at a time, so that space moves as fast as the class writes, and
 * no faster.
 *
 * A slot of a segmented class (skv/pool.h) is of no use before its segment is free: a victim takes the others of its
 * segment along, as far as they may go.
 *
 * All calls under the write lock.
 */
#include <evict/rebalance.h>

#include <string.h>

#include <skv/mem.h>

#include <lock/core.h>
#include <model/block.h>
#include <model/mark.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/volume.h>
#include <model/table.h>
#include <evict/evict.h>
#include <evict/remove.h>
#include "quota_share.h"

#define SAMPLES 32u /* slots looked at to tell how long a slab has been idle */
#define STEER_RATIO 2u
#define SMOOTH 16 /* evictions or so that the idle time of a class's victims is the mean of */

uint64_t block_idle_ms(const struct partition *p, const struct block *b)
{
	uint64_t now = skv_now_ms(p->core->clock) + p->use_base;
	uint64_t use = use_ms(mark_use(atomic_load_explicit(&b->mark, memory_order_relaxed)));

	ASSERT_SHARED(p);
	return now > use ? now - use : 0;
}

uint64_t slab_idle_ms(const struct partition *p, const struct skv_pool *pool, uint32_t slab)
{
	struct skv_slab_info info;
	uint64_t sum = 0, seen = 0;

	ASSERT_SHARED(p);
	if (!skv_pool_slab(pool, slab, &info))
		return 0;
	for (uint32_t i = 0; i < info.slots; i += info.slots / SAMPLES + 1) {
		if (!skv_pool_is_used(pool, slab, i) || skv_pool_owner(pool, slab, i) == NO_BLOCK)
			continue;
		sum += block_idle_ms(p, block_get(p, skv_pool_owner(pool, slab, i)));
		seen++;
	}
	return seen ? sum / seen : 0;
}

/* ---- windows ---------------------------------------------------------------------------------------- */

/* What one search for a window is about. */
struct rebalance {
	struct partition *p;
	uint32_t volume;
	uint64_t now;
	const struct evict_for *w;
	bool leased; /* blocks under a lease, too: nobody finds them any more, and their slots wait for its end */
};

/* May it go for the sake of another class? */
static bool may_go_along(const struct rebalance *st, const struct instance *inst, const struct block *b)
{
	uint64_t now = st->leased ? UINT64_MAX : st->now;

	if (!block_evictable(st->p, inst, b, now) || (b->pinned && !st->w->soft))
		return false;
	return st->w->over ? quota_share_ratio(inst, st->w) > QUOTA_SHARE_ONE : quota_share_allows(st->w, inst);
}

static bool slab_may_go(void *ctx, uint32_t slab)
{
	struct rebalance *st = ctx;
	struct partition *p = st->p;
	const struct skv_pool *pool = p->volume[st->volume].pool;
	struct skv_slab_info info;

	if (!skv_pool_slab(pool, slab, &info))
		return false;
	for (uint32_t i = 0; i < info.slots; i++) {
		const struct block *b;
		const struct instance *inst;
		bool going = false;

		if (!skv_pool_is_used(pool, slab, i))
			continue;
		if (skv_pool_owner(pool, slab, i) == NO_BLOCK)
			return false; /* the start that makes room took it for another spec (placement.c) */
		b = block_get(p, skv_pool_owner(pool, slab, i));
		inst = block_instance(b);
		for (uint32_t s = 0; s < inst->spec.n_specs; s++)
			going |= b->slot[s].state == SLOT_REMOVING;
		if (!going && !may_go_along(st, inst, b))
			return false;
	}
	return true;
}

static void mark_slab(struct partition *p, uint32_t volume, uint32_t slab, struct picks *k)
{
	struct skv_pool *pool = p->volume[volume].pool;
	struct skv_slab_info info;

	skv_pool_slab(pool, slab, &info);
	skv_pool_drain(pool, slab, true);
	for (uint32_t i = 0; i < info.slots; i++) {
		struct block *b;

		if (k->n == MAX_PICKS)
			return; /* the next call goes on: what is drained stays drained */
		if (!skv_pool_is_used(pool, slab, i))
			continue;
		b = block_get(p, skv_pool_owner(pool, slab, i));
		if (!block_has_committed(block_instance(b), b))
			continue;
		if (remove_mark(p, k, b) != SKV_OK)
			return;
		evict_count(p, block_instance(b));
	}
}

/* Its blocks, by how long ago they were used. */
static uint64_t slab_cost(void *ctx, uint32_t slab)
{
	const struct rebalance *st = ctx;
	const struct skv_pool *pool = st->p->volume[st->volume].pool;
	struct skv_slab_info info;

	if (!skv_pool_slab(pool, slab, &info))
		return 0;
	return info.used * info.stride / (1 + slab_idle_ms(st->p, pool, slab) / 1024);
}

static int find_window(struct rebalance *st, uint32_t class_id, uint32_t **slabs, size_t *n)
{
	struct skv_victims v = { slab_may_go, slab_cost, st };

	quota_shares_refresh(st->p, st->volume);
	return skv_pool_find_victims(st->p->volume[st->volume].pool, class_id, &v, slabs, n);
}

static bool take_window(struct partition *p, uint32_t volume, const uint32_t *slabs, size_t n)
{
	struct picks k = { 0 };

	for (size_t i = 0; i < n; i++)
		mark_slab(p, volume, slabs[i], &k);
	if (k.n == 0)
		return n > 0; /* all of it is on its way already */
	return remove_queue(p, &k, NULL) == SKV_OK;
}

bool evict_rebalance(struct partition *p, uint32_t volume, uint32_t class_id, const struct evict_for *w)
{
	struct rebalance st = { .p = p, .volume = volume, .now = skv_now_ms(p->core->clock), .w = w };
	uint32_t *slabs = NULL;
	size_t n = 0;
	bool coming;

	ASSERT_EXCLUSIVE(p);
	if (find_window(&st, class_id, &slabs, &n) != SKV_OK)
		return false;
	coming = take_window(p, volume, slabs, n);
	skv_free(slabs);
	return coming;
}

bool evict_rebalance_leased(struct partition *p, uint32_t volume, uint32_t class_id, const struct evict_for *w)
{
	struct volume *s = &p->volume[volume];
	struct rebalance st = { .p = p, .volume = volume, .now = skv_now_ms(p->core->clock), .w = w, .leased = true };
	uint32_t *slabs = NULL;
	size_t n = 0;

	ASSERT_EXCLUSIVE(p);
	if (st.now < s->rebalanced_until)
		return true;
	if (find_window(&st, class_id, &slabs, &n) != SKV_OK)
		return false;
	if (take_window(p, volume, slabs, n))
		s->rebalanced_until = st.now + p->core->o.lease_max_ms;
	skv_free(slabs);
	return s->rebalanced_until > st.now;
}

/* ---- a class that only ever evicts its own ------------------------------------------------------------ */

void rebalance_note(struct partition *p, uint32_t volume, uint32_t class_id, const struct block *b)
{
	struct volume_class *c = &p->volume[volume].class[class_id];
	uint64_t idle = block_idle_ms(p, b);

	ASSERT_EXCLUSIVE(p);
	c->evicted++;
	c->idle_ms = c->idle_ms ? c->idle_ms + idle / SMOOTH - c->idle_ms / SMOOTH : idle;
}

void rebalance(struct partition *p, uint32_t volume, uint32_t class_id, const struct evict_for *w)
{
	struct volume *s = &p->volume[volume];
	struct volume_class *c = &s->class[class_id];
	struct rebalance st = { .p = p, .volume = volume, .now = skv_now_ms(p->core->clock), .w = w };
	uint32_t *slabs = NULL;
	uint64_t idle = UINT64_MAX;
	size_t n = 0;

	ASSERT_EXCLUSIVE(p);
	if (s->n_class < 2 || c->evicted * c->stride < skv_pool_slab_bytes(s->pool, class_id))
		return;
	c->evicted = 0;
	if (find_window(&st, class_id, &slabs, &n) != SKV_OK)
		return;
	for (size_t i = 0; i < n; i++) {
		uint64_t of_slab = slab_idle_ms(p, s->pool, slabs[i]);

		idle = of_slab < idle ? of_slab : idle;
	}
	if (idle / STEER_RATIO > c->idle_ms && take_window(p, volume, slabs, n))
		COUNT(p->core, steered_windows, 1);
	skv_free(slabs);
}

/* ---- segments ------------------------------------------------------------------------------------------- */

/* The rest of a slot's segment goes along. Returns the slots that come free with it. */
static uint64_t take_segment(const struct rebalance *st, const struct slot *slot, struct picks *k)
{
	struct partition *p = st->p;
	const struct skv_pool *pool = p->volume[st->volume].pool;
	uint32_t first, count, stay = 0;

	skv_pool_segment(pool, slot->slab, slot->index, &first, &count);
	for (uint32_t i = first; count > 1 && i < first + count; i++) {
		struct block *b;

		if (!skv_pool_is_used(pool, slot->slab, i))
			continue;
		if (skv_pool_owner(pool, slot->slab, i) == NO_BLOCK) {
			stay++;
			continue;
		}
		b = block_get(p, skv_pool_owner(pool, slot->slab, i));
		if (!block_has_committed(block_instance(b), b))
			continue; /* going */
		if (k->n == MAX_PICKS || !may_go_along(st, block_instance(b), b) || remove_mark(p, k, b) != SKV_OK)
			stay++;
		else
			evict_count(p, block_instance(b));
	}
	return stay ? 0 : count;
}

uint64_t rebalance_segments(struct partition *p, struct picks *k, uint32_t volume, uint32_t class_id, const struct block *b,
			const struct evict_for *w)
{
	struct rebalance st = { .p = p, .volume = volume, .now = skv_now_ms(p->core->clock), .w = w };
	const struct instance *inst = block_instance(b);
	uint64_t n = 0;

	ASSERT_EXCLUSIVE(p);
	for (uint32_t s = 0; s < inst->spec.n_specs; s++)
		if (b->slot[s].state == SLOT_REMOVING && b->slot[s].volume == volume &&
		    class_of(inst, volume, s) == class_id)
			n += take_segment(&st, &b->slot[s], k);
	return n;
}
