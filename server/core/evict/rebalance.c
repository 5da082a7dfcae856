/*
 * rebalance.c - eviction by location: frees whole slabs for another size class, and whole segments.
 *
 * A class without slots and without blocks of its own to evict takes a window of other classes'
 * slabs (evict_rebalance): among those with the fewest used slots, the one whose blocks were used
 * longest ago. If leases cover every window it takes one anyway and waits for their end, since
 * blocks that are read all the time would stay leased for ever. A class that keeps evicting its own
 * blocks while others keep blocks unused for longer would never grow. So it remembers how idle its
 * victims were, and each time it has evicted a slab's worth it looks for a window that has been
 * idle IDLE_RATIO times as long, and takes it. One window at a time, so that slabs move only as
 * fast as the class writes.
 *
 * A slot of a segmented class (skv/pool.h) is useless before its whole segment is free: a victim
 * takes the others of its segment along, as far as they may be evicted.
 *
 * Under the write lock.
 */
#include <evict/rebalance.h>

#include <assert.h>
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
#include "tenant_share.h"

#define SAMPLES 32u /* slots sampled for a slab's idle time */
#define IDLE_RATIO 2u
#define SMOOTH 16 /* victims, roughly, over which a class's idle time is averaged */

uint64_t block_idle_ms(const struct partition *p, const struct block *b, uint64_t now)
{
	uint64_t use = use_ms(mark_use(atomic_load_explicit(&b->mark, memory_order_relaxed)));

	ASSERT_SHARED(p);
	return use_clock(p, now) > use ? use_clock(p, now) - use : 0;
}

uint64_t slab_idle_ms(const struct partition *p, const struct skv_pool *pool, uint32_t slab)
{
	struct skv_slab_info info;
	uint64_t now = skv_now_ms(p->core->clock), sum = 0, seen = 0;

	ASSERT_SHARED(p);
	if (!skv_pool_slab(pool, slab, &info))
		return 0;
	for (uint32_t i = 0; i < info.slots; i += info.slots / SAMPLES + 1) {
		if (!skv_pool_is_used(pool, slab, i) || skv_pool_owner(pool, slab, i) == NO_BLOCK)
			continue;
		sum += block_idle_ms(p, block_get(p, skv_pool_owner(pool, slab, i)), now);
		seen++;
	}
	return seen ? sum / seen : 0;
}

/* ---- windows --------------------------------------------------------------------------------- */

/* One search for a window. */
struct rebalance {
	struct partition *p;
	uint32_t volume;
	uint64_t now;
	const struct evict_for *w;
	bool leased; /* includes leased blocks: they are hidden, and their slots wait for the
		      * lease */
};

/* May it be evicted for another class? */
static bool may_go_along(const struct rebalance *st, const struct instance *inst,
			 const struct block *b)
{
	uint64_t now = st->leased ? UINT64_MAX : st->now;

	if (!block_evictable(st->p, inst, b, now) || (b->pinned && !st->w->soft))
		return false;
	if (st->w->over)
		return quota_share_ratio(inst, st->w) > QUOTA_SHARE_ONE ||
		       tenant_share_ratio(st->p, inst, st->w) > QUOTA_SHARE_ONE;
	return quota_share_allows(st->w, inst) && tenant_share_allows(st->p, inst, st->w);
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
			return false; /* taken for another spec by the start that needs room
				       * (placement.c) */
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

	ASSERT_EXCLUSIVE(p);
	skv_pool_slab(pool, slab, &info);
	skv_pool_drain(pool, slab, true);
	for (uint32_t i = 0; i < info.slots; i++) {
		struct block *b;

		if (k->n == MAX_PICKS)
			return; /* the next call continues: closed slabs stay closed */
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

/* A slab's blocks, weighted by how recently they were used. */
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
	tenant_shares_refresh(st->p, NULL, st->volume, st->w);
	return skv_pool_find_victims(st->p->volume[st->volume].pool, class_id, &v, slabs, n);
}

static bool take_window(struct partition *p, uint32_t volume, const uint32_t *slabs, size_t n)
{
	struct picks k = { 0 };

	for (size_t i = 0; i < n; i++)
		mark_slab(p, volume, slabs[i], &k);
	if (k.n == 0)
		return n > 0; /* all of it is being removed already */
	return remove_queue(p, &k, NULL) == SKV_OK;
}

bool evict_rebalance(struct partition *p, uint32_t volume, uint32_t class_id,
		     const struct evict_for *w)
{
	struct rebalance st = { .p = p, .volume = volume, .now = skv_now_ms(p->core->clock),
				.w = w };
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

bool evict_rebalance_leased(struct partition *p, uint32_t volume, uint32_t class_id,
			    const struct evict_for *w)
{
	struct volume *s = &p->volume[volume];
	struct rebalance st = { .p = p, .volume = volume, .now = skv_now_ms(p->core->clock), .w = w,
				.leased = true };
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

/* ---- a class that only evicts its own blocks
 * ------------------------------------------------------------- */

void rebalance_note(struct partition *p, uint32_t volume, uint32_t class_id, const struct block *b,
		    uint64_t now)
{
	struct volume_class *c = &p->volume[volume].class[class_id];
	uint64_t idle = block_idle_ms(p, b, now);

	ASSERT_EXCLUSIVE(p);
	c->evicted++;
	c->idle_ms = c->idle_ms ? c->idle_ms + idle / SMOOTH - c->idle_ms / SMOOTH : idle;
}

void rebalance(struct partition *p, uint32_t volume, uint32_t class_id, const struct evict_for *w)
{
	struct volume *s = &p->volume[volume];
	struct volume_class *c = &s->class[class_id];
	struct rebalance st = { .p = p, .volume = volume, .now = skv_now_ms(p->core->clock),
				.w = w };
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
	if (idle / IDLE_RATIO > c->idle_ms && take_window(p, volume, slabs, n))
		COUNT(p->core, steered_windows, 1);
	skv_free(slabs);
}

/* ---- segments -------------------------------------------------------------------------------- */

/* Evicts the rest of a slot's segment. Returns the slots that come free with it. */
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
		if (k->n == MAX_PICKS || !may_go_along(st, block_instance(b), b) ||
		    remove_mark(p, k, b) != SKV_OK)
			stay++;
		else
			evict_count(p, block_instance(b));
	}
	return stay ? 0 : count;
}

uint64_t rebalance_segments(struct partition *p, struct picks *k, uint32_t volume,
			    uint32_t class_id, const struct block *b, const struct evict_for *w,
			    uint64_t now)
{
	struct rebalance st = { .p = p, .volume = volume, .now = now, .w = w };
	const struct instance *inst = block_instance(b);
	uint64_t n = 0;

	ASSERT_EXCLUSIVE(p);
	for (uint32_t s = 0; s < inst->spec.n_specs; s++)
		if (b->slot[s].state == SLOT_REMOVING && b->slot[s].volume == volume &&
		    class_of(inst, volume, s) == class_id)
			n += take_segment(&st, &b->slot[s], k);
	return n;
}
