/*
 * rebalance.c - eviction by location: frees whole slabs for another size class, and whole segments.
 *
 * A class without slots and without blocks of its own to evict takes a window of other classes'
 * slabs (evict_rebalance). A class that keeps evicting its own blocks while others keep blocks
 * unused for longer would never grow. So the class remembers how idle its victims were, and each
 * time it has evicted a slab's worth it looks for a window that has been idle IDLE_RATIO times as
 * long, and takes it: slabs move as fast as the class writes.
 *
 * Held slots do not protect a window. A window is chosen among those with the fewest used bytes, by
 * last use, and of these the one whose leases end first. From then on it hands out no slot. Its
 * leased blocks are hidden, as if deleted: current readers continue, and the slots become free when
 * the leases end. Leases that are renewed all the time would otherwise never end. Windows that wait
 * have at most 1 / WAITING_SHARE of the storage, or are one. Hard-pinned blocks and those being
 * written keep their slab. If all windows have pinned ones and there are movers, one window at a
 * time is closed, and movers copy these blocks elsewhere (ops/move_find.c).
 *
 * A slot of a segmented class (skv/pool.h) is useless before its whole segment is free: with a
 * victim the other blocks of its segment are evicted, too, as far as they may be.
 *
 * Under the write lock.
 */
#include <evict/rebalance.h>

#include <assert.h>
#include <string.h>

#include <skv/mem.h>

#include <lock/core.h>
#include <model/block.h>
#include <model/device.h>
#include <model/leases.h>
#include <model/mark.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/pin.h>
#include <model/volume.h>
#include <model/table.h>
#include <evict/evict.h>
#include <evict/remove.h>
#include "quota_share.h"
#include "tenant_share.h"

#define SAMPLES 32u /* slots sampled for a slab's idle time */
#define IDLE_RATIO 2u
#define WAITING_SHARE 16u /* of a storage, the part that may wait for leases for other classes */
/* A mover that asked within that time counts as present; also the time that it has. */
#define MOVER_MS 60000u
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

/* A search for a window. */
struct rebalance {
	struct partition *p;
	uint32_t volume;
	uint64_t now;
	const struct evict_for *w;
	bool may_wait; /* may take slabs with slots that become free only later, */
	bool may_move; /* or when a mover has copied their pinned blocks */
};

/* Returns true if the block may be evicted for another class. `by`: blocks leased until then at
 * most. */
static bool may_go_along(const struct rebalance *st, const struct instance *inst,
			 const struct block *b, uint64_t by)
{
	if (!block_evictable(st->p, inst, b, by) || (b->pinned && !st->w->soft))
		return false;
	if (st->w->over)
		return quota_share_ratio(inst, st->w) > QUOTA_SHARE_ONE ||
		       tenant_share_ratio(st->p, inst, st->w) > QUOTA_SHARE_ONE;
	return quota_share_allows(st->w, inst) && tenant_share_allows(st->p, inst, st->w);
}

static bool is_going(const struct instance *inst, const struct block *b)
{
	bool going = false;

	for (uint32_t s = 0; s < inst->spec.n_specs; s++)
		going |= b->slot[s].state == SLOT_REMOVING;
	return going;
}

/* Could a mover copy it elsewhere? */
static bool may_move(const struct instance *inst, const struct block *b)
{
	bool all = pin_kind(b) == SKV_PIN_HARD && !inst->retired && !block_has_writing(inst, b);

	for (uint32_t s = 0; s < inst->spec.n_specs; s++)
		all &= b->slot[s].state == SLOT_ABSENT || b->slot[s].has_checksum;
	return all;
}

static uint64_t later(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* For skv_pool_find_victims. */
static uint32_t slab_waits(void *ctx, uint32_t slab)
{
	const struct rebalance *st = ctx;
	const struct skv_pool *pool = st->p->volume[st->volume].pool;
	struct skv_slab_info info;
	uint64_t free_at = st->now;

	if (!skv_pool_slab(pool, slab, &info) || (info.held && !st->may_wait))
		return SKV_SLAB_STAYS;
	if (info.held) /* how long is not known */
		free_at += st->p->core->o.lease_default_ms;
	for (uint32_t i = 0; i < info.slots; i++) {
		const struct block *b;
		const struct instance *inst;

		if (!skv_pool_is_used(pool, slab, i))
			continue;
		/* Taken by a start for another spec (placement.c), or by a move. */
		if (skv_pool_owner(pool, slab, i) == NO_BLOCK)
			return SKV_SLAB_STAYS;
		b = block_get(st->p, skv_pool_owner(pool, slab, i));
		inst = block_instance(b);
		if (is_going(inst, b) || may_go_along(st, inst, b, st->now))
			continue;
		if (st->may_wait && may_go_along(st, inst, b, UINT64_MAX))
			free_at = later(free_at, block_lease(st->p, inst, b));
		else if (st->may_move && may_move(inst, b))
			free_at = later(free_at + 1, st->now + MOVER_MS); /* the fewest */
		else
			return SKV_SLAB_STAYS;
	}
	return (uint32_t)(free_at - st->now);
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
		if (!block_has_committed(block_instance(b), b) || pin_kind(b) == SKV_PIN_HARD)
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

/* Returns true if a window is waiting for movers. A window that has waited too long is opened
 * again. */
static bool is_vacated(struct volume *s, uint64_t now)
{
	uint32_t unit = s->vacated.from, slab;
	struct skv_slab_info info;
	bool waits = false;

	while (s->vacated.end && skv_pool_next_slab(s->pool, s->vacated.file, &unit, &slab) &&
	       skv_pool_slab(s->pool, slab, &info) && info.place.unit < s->vacated.end) {
		if (!info.draining)
			continue; /* another class has it */
		waits = true;
		if (now >= s->vacated.until)
			skv_pool_drain(s->pool, slab, false);
	}
	if (!waits || now >= s->vacated.until)
		s->vacated.end = 0;
	return s->vacated.end != 0;
}

static bool has_mover(const struct partition *p, uint64_t now)
{
	ASSERT_SHARED(p);
	return p->mover_at && now - p->mover_at < MOVER_MS;
}

/* First without movers; with them, one window at a time. */
static int find_window(struct rebalance *st, uint32_t class_id, uint32_t **slabs, size_t *n)
{
	struct skv_victims v = { slab_waits, slab_cost, st };
	struct volume *s = &st->p->volume[st->volume];
	int rc;

	st->now = skv_now_ms(st->p->core->clock);
	if (st->now >= s->waiting_until)
		s->waiting_bytes = 0;
	st->may_wait = s->waiting_bytes <= s->file_bytes / WAITING_SHARE;
	quota_shares_refresh(st->p, st->volume);
	tenant_shares_refresh(st->p, NULL, st->volume, st->w);
	rc = skv_pool_find_victims(s->pool, class_id, &v, slabs, n);
	if (rc != SKV_E_NO_SPACE || !has_mover(st->p, st->now) || is_vacated(s, st->now))
		return rc;
	st->may_move = true;
	return skv_pool_find_victims(s->pool, class_id, &v, slabs, n);
}

static void note_vacated(struct volume *s, const struct skv_slab_place *v, uint64_t now)
{
	const uint32_t end = v->unit + v->units;

	if (!s->vacated.end) {
		s->vacated.file = v->file;
		s->vacated.from = s->vacated.unit = v->unit;
		s->vacated.slot = 0;
		s->vacated.again_at = now;
		s->vacated.until = now + MOVER_MS;
	}
	assert(v->file == s->vacated.file && v->unit >= s->vacated.from);
	s->vacated.end = end > s->vacated.end ? end : s->vacated.end;
}

static void note_waiting(struct volume *s, const struct picks *k, uint64_t bytes, uint64_t now)
{
	s->waiting_bytes += bytes;
	s->waiting_until = later(s->waiting_until, now + SOON_MS);
	for (size_t i = 0; i < k->n; i++)
		s->waiting_until = later(s->waiting_until, k->v[i].hold_until);
}

static bool take_window(struct rebalance *st, const uint32_t *slabs, size_t n)
{
	struct volume *s = &st->p->volume[st->volume];
	struct picks k = { 0 };
	uint64_t bytes = 0;
	bool waits = false;

	for (size_t i = 0; i < n; i++) {
		struct skv_slab_info info;

		skv_pool_slab(s->pool, slabs[i], &info);
		bytes += info.place.units * s->dev->unit;
		waits |= slab_waits(st, slabs[i]) > 0;
		if (st->may_move)
			note_vacated(s, &info.place, st->now);
		mark_slab(st->p, st->volume, slabs[i], &k);
	}
	if (waits)
		note_waiting(s, &k, bytes, st->now);
	if (k.n == 0)
		return n > 0; /* all of it is being removed already, or held */
	return remove_queue(st->p, &k, NULL) == SKV_OK;
}

bool evict_rebalance(struct partition *p, uint32_t volume, uint32_t class_id,
		     const struct evict_for *w)
{
	struct volume *s = &p->volume[volume];
	struct rebalance st = { .p = p, .volume = volume, .w = w };
	uint32_t *slabs = NULL;
	size_t n = 0;
	bool coming;

	ASSERT_EXCLUSIVE(p);
	if (find_window(&st, class_id, &slabs, &n) != SKV_OK)
		return s->waiting_bytes > 0 || is_vacated(s, st.now);
	coming = take_window(&st, slabs, n);
	skv_free(slabs);
	return coming;
}

/* ---- a class that only evicts its own blocks ------------------------------------------------- */

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
	struct rebalance st = { .p = p, .volume = volume, .w = w };
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
	if (idle / IDLE_RATIO > c->idle_ms && take_window(&st, slabs, n))
		COUNT(p->core, steered_windows, 1);
	skv_free(slabs);
}

/* ---- segments -------------------------------------------------------------------------------- */

/* Evicts the rest of a slot's segment. Returns the slots that become free with it. */
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
		if (k->n == MAX_PICKS || !may_go_along(st, block_instance(b), b, st->now) ||
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
