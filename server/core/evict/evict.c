/*
 * evict.c - eviction: finds and removes the committed blocks that their group's policy ranks first.
 *
 * A search is for slots of a class in a storage, or for bytes or blocks of a group. In each set
 * (queue.c) concerned, the policy ranks the tops of its queues; the lowest is examined. The block
 * is taken, unless it has been used, leased or got children since it was queued: then it is
 * requeued and the next lowest is examined. Stale positions are never after the true ones, so the
 * taken block is the lowest of all. Ranks of different groups cannot be compared: between groups
 * the least recently used block goes. Under policies with `leaf_first`, inner blocks are taken only
 * when no leaf is left, so eviction never gets stuck while anything can be evicted.
 *
 * Blocks leased by `slots_only` lookups are candidates in a search for a group's bytes or blocks:
 * they stop counting as used, and their slots wait for the lease. Among them the first to have its
 * lease end is compared with the others by last use.
 *
 * A block that is too old for its group (ttl) goes when its lease ends, even if that was renewed,
 * as if deleted: its slots wait for the last lease.
 *
 * Under the write lock. Victims are marked and journaled here (remove.c); their slots become free
 * when the record is durable.
 *
 * In a group whose instances have shares (quota_share.c), victims come from the instance furthest
 * over its share: a search orders the members of a set by that, and before it by how far their
 * tenants are over theirs (tenant_share.c). Soft-pinned blocks are considered
 * only if the caller allows it, and go last.
 */
#include <evict/evict.h>

#include <assert.h>
#include <string.h>

#include <skv/mem.h>

#include <lock/core.h>
#include <model/block.h>
#include <model/device.h>
#include <model/mark.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/pin.h>
#include <model/queue.h>
#include <model/tenant.h>
#include <model/volume.h>
#include <model/table.h>
#include <storage/growth.h>
#include <evict/clear.h>
#include <evict/reclaim.h>
#include <evict/remove.h>
#include "quota_share.h"
#include "tenant_share.h"
#include <evict/rebalance.h>

bool block_evictable(const struct partition *p, const struct instance *inst, const struct block *b,
		     uint64_t now)
{
	ASSERT_SHARED(p);
	if (inst->retired || b->kept || block_lease(p, inst, b) > now ||
	    pin_kind(b) == SKV_PIN_HARD)
		return false;
	return block_has_committed(inst, b) && !block_has_writing(inst, b);
}

/* ---- the search ------------------------------------------------------------------------------ */

/* The first block of a set, as its queues have it. */
struct first {
	struct evict_set *set; /* NULL: no set */
	uint64_t tenant; /* usage of the tenant's share (tenant_share_ratio); 0: a single tenant */
	uint64_t over; /* usage of the instance's share (quota_share_ratio); 0 without shares */
	uint32_t which;
	uint32_t id;
	uint64_t key; /* with SKV_POLICY_INNER */
	uint64_t rank;
	uint64_t use; /* least possible */
};

/* The unit in which a search counts. */
enum unit { SLOTS, BYTES, BLOCKS };
struct scope {
	enum unit unit;
	const struct group *group; /* NULL = any, in `volume` */
	uint32_t volume;            /* only this volume; ANY_VOLUME = the group's volumes */
	const char *type;          /* of these, only storages of this type; NULL = any */
	uint32_t class_id;         /* SLOTS */
	const struct instance *only; /* this instance only; NULL = any */
	const struct tenant *of;     /* this tenant's only, in all volumes; NULL = any */
	struct evict_for w;
	bool held;                 /* also blocks leased by slots_only lookups */
	uint64_t below;            /* only keys below this */
	uint64_t looks;            /* entries that may be requeued, at most */
	struct picks *picks;
	/* The search stays in this set while its first block ranks before those of all others. */
	struct evict_set *set;
	struct first other;
};

/* Returns true if the search counts blocks in that volume. */
static bool counts_volume(const struct partition *p, const struct scope *c, uint32_t volume)
{
	if (c->volume != ANY_VOLUME && volume != c->volume)
		return false;
	return !c->type || strcmp(p->volume[volume].dev->type, c->type) == 0;
}

static bool in_scope(const struct scope *c, const struct evict_set *set)
{
	return c->unit == SLOTS ? set->class_id == c->class_id
				: !c->group || set->group == c->group;
}

static bool is_soft(const struct first *f) { return f->which == EVICT_SOFT; }
static bool is_held(const struct first *f) { return f->which == EVICT_HELD; }
static bool is_inner(const struct first *f) { return f->key & (is_held(f) ? 1 : SKV_POLICY_INNER); }

static bool before(const struct first *a, const struct first *b)
{
	if (!a->set || !b->set)
		return a->set != NULL;
	if (a->tenant != b->tenant)
		return a->tenant > b->tenant;
	if (is_soft(a) != is_soft(b))
		return is_soft(b);
	if (a->set->group == b->set->group && a->over != b->over)
		return a->over > b->over;
	if (is_inner(a) != is_inner(b))
		return is_inner(b);
	if (a->set->group == b->set->group && !is_held(a) && !is_held(b) && a->rank != b->rank)
		return a->rank < b->rank;
	return a->use < b->use;
}

static struct skv_policy_place place_of(const struct first *f)
{
	return (struct skv_policy_place){ f->which - EVICT_FIRST, f->key & ~SKV_POLICY_INNER };
}

static void rank(const struct partition *p, struct first *f)
{
	const struct group *g = f->set->group;

	if (is_soft(f)) {
		f->rank = f->use = f->key;
		return;
	}
	f->use = !g->policy->by_use || is_held(f)
			 ? mark_use(atomic_load_explicit(&block_get(p, f->id)->mark,
							 memory_order_relaxed))
		 : g->policy->last_use ? g->policy->last_use(g->policy_state, place_of(f))
				       : place_of(f).key;
	f->rank = is_held(f) ? 0 : g->policy->rank(g->policy_state, place_of(f));
}

/* Of one member of the set, or (NULL) of all: heaps `which` to `end` - 1. */
static struct first first_in(const struct partition *p, const struct scope *c,
			     struct evict_set *set, const struct evict_queue *q, uint32_t which,
			     uint32_t end)
{
	struct first best = { 0 };

	for (uint32_t w = which; w < end; w++) {
		const struct instance *of = q ? q->inst : set->n ? set->member[0]->inst : NULL;
		struct first f = { .set = set, .which = w,
				   .tenant = of ? tenant_share_ratio(p, of, &c->w) : 0,
				   .over = q ? quota_share_ratio(q->inst, &c->w) : 0 };

		if ((is_held(&f) && !c->held) ||
		    !(q ? skv_heap_top(&q->heaps, w, &f.key, &f.id)
			: evict_set_top(set, w, &f.key, &f.id) != NULL) ||
		    f.key >= c->below)
			continue;
		rank(p, &f);
		if (before(&f, &best))
			best = f;
	}
	return best;
}

/* ---- members with shares --------------------------------------------------------------------- */

/* The candidate at i may be less over its share than those below it. */
static void sift_down(struct evict_set *set, uint32_t i)
{
	struct candidate r = set->candidate[i];

	for (uint32_t child; (child = 2 * i + 1) < set->n_candidates; i = child) {
		if (child + 1 < set->n_candidates &&
		    set->candidate[child + 1].over > set->candidate[child].over)
			child++;
		if (set->candidate[child].over <= r.over)
			break;
		set->candidate[i] = set->candidate[child];
	}
	set->candidate[i] = r;
}

/* How far a member is over its share: its tenant over that one's, then the instance. */
static uint64_t standing(const struct partition *p, const struct scope *c,
			 const struct instance *inst)
{
	const uint64_t tenant = tenant_share_ratio(p, inst, &c->w),
		       own = quota_share_ratio(inst, &c->w);

	return (tenant < UINT32_MAX ? tenant : UINT32_MAX) << 32 |
	       (own < UINT32_MAX ? own : UINT32_MAX);
}

static bool may_lose(const struct partition *p, const struct scope *c, const struct instance *inst)
{
	return quota_share_allows(&c->w, inst) && tenant_share_allows(p, inst, &c->w);
}

static void gather_candidates(const struct partition *p, const struct scope *c,
			      struct evict_set *set, bool soft)
{
	ASSERT_EXCLUSIVE(p);
	set->n_candidates = 0;
	set->candidates_soft = soft;
	set->candidates_of = p->searches;
	for (uint32_t i = 0; i < set->n; i++) {
		const struct evict_queue *q = set->member[i];

		if ((!c->only || q->inst == c->only) &&
		    (!c->of || q->inst->tenant == c->of) && may_lose(p, c, q->inst))
			set->candidate[set->n_candidates++] =
				(struct candidate){ standing(p, c, q->inst), q };
	}
	for (uint32_t i = set->n_candidates / 2; i-- > 0;)
		sift_down(set, i);
}

/* The first block of the member furthest over its share that has a candidate. During one search
 * members only lose blocks, so the order is established once and kept by rechecking its first. */
static struct first first_candidate(const struct partition *p, const struct scope *c,
				    struct evict_set *set)
{
	while (set->n_candidates) {
		struct candidate *r = &set->candidate[0];
		const struct evict_queue *q = r->q;
		uint64_t over = standing(p, c, q->inst);
		struct first f = { 0 };

		if (over != r->over) {
			r->over = over;
			sift_down(set, 0);
			continue;
		}
		if (tenant_share_allows(p, q->inst, &c->w))
			f = set->candidates_soft
				    ? first_in(p, c, set, q, EVICT_SOFT, EVICT_FIRST)
				    : first_in(p, c, set, q, EVICT_HELD, q->heaps.n_heaps);
		if (f.set)
			return f;
		*r = set->candidate[--set->n_candidates];
		if (set->n_candidates)
			sift_down(set, 0);
	}
	return (struct first){ 0 };
}

/* Returns true for members of several tenants whose shares count now. */
static bool is_split(const struct partition *p, struct evict_set *set)
{
	if (set->split_of != p->searches) {
		set->split = tenant_share_splits(p, set);
		set->split_of = p->searches;
	}
	return set->split;
}

static struct first first_of(const struct partition *p, const struct scope *c,
			     struct evict_set *set)
{
	struct first f;

	if (!c->only && !c->of && set->group->spec.share == SKV_SHARE_GROUP && !is_split(p, set)) {
		if (set->n && !tenant_share_allows(p, set->member[0]->inst, &c->w))
			return (struct first){ 0 };
		return first_in(p, c, set, NULL, c->w.soft ? EVICT_SOFT : EVICT_HELD,
				set->tops.n_heaps);
	}
	if (set->candidates_of != p->searches)
		gather_candidates(p, c, set, false);
	f = first_candidate(p, c, set);
	if (f.set || !c->w.soft || set->candidates_soft)
		return f;
	gather_candidates(p, c, set, true);
	return first_candidate(p, c, set);
}

/* Returns true if the block's queue position is still right, leases aside. */
static bool as_placed(const struct instance *inst, struct block *b, const struct first *f)
{
	const struct group *g = f->set->group;
	struct skv_policy_block facts = evict_facts(inst, b);
	bool may_go;

	if (is_soft(f))
		return f->key == evict_soft_key(b);
	may_go = evict_inner_as(inst, b, f->key) &&
		 g->policy->look(g->policy_state, &facts, place_of(f));
	evict_keep(b, &facts); /* the block may stay, if nothing is admitted in its place */
	return may_go;
}

void evict_count(struct partition *p, struct instance *inst)
{
	ASSERT_EXCLUSIVE(p);
	COUNT(p->core, evicted_blocks, 1);
	inst->evicted++;
	inst->group->evicted++;
}

/* Leased again but too old: evicted anyway, but frees nothing that is needed now. */
static bool expel(struct partition *p, struct scope *c, struct block *b)
{
	struct instance *inst = block_instance(b);

	ASSERT_EXCLUSIVE(p);
	if (inst->retired || pin_kind(b) != SKV_PIN_NONE || !block_has_committed(inst, b) ||
	    block_has_writing(inst, b) || block_generation(inst, b) >= inst->group->too_old ||
	    c->picks->n >= MAX_PICKS)
		return false;
	if (remove_mark(p, c->picks, b) != SKV_OK)
		return false;
	evict_count(p, inst);
	return true;
}

/* Room is being made for the rest of its request: the blocks above it, which have come no nearer to
 * the top, are kept, too. */
static void spare(struct partition *p, const struct scope *c, struct block *b)
{
	ASSERT_EXCLUSIVE(p);
	if (c->w.in)
		c->w.in->full = true;
	while (b->parent != NO_BLOCK && !block_get(p, b->parent)->kept) {
		b = block_get(p, b->parent);
		b->kept = 1;
	}
}

/* Returns true if the block may be evicted; otherwise requeues it. */
static bool settle(struct partition *p, struct scope *c, const struct first *f, uint64_t now)
{
	struct block *b = block_get(p, f->id);
	struct instance *inst = block_instance(b);
	uint64_t lease = block_lease(p, inst, b);

	ASSERT_EXCLUSIVE(p);
	COUNT(p->core, evict_examined, 1);
	if (is_held(f) ? !b->kept && evict_held_key(b, lease, now) == f->key
		       : block_evictable(p, inst, b, now) && as_placed(inst, b, f))
		return true;
	if (b->kept)
		spare(p, c, b);
	evict_consider_at(p, b, lease, now);
	c->looks--;
	return false;
}

/* The first block of the set whose lease has ended according to its queue; NULL: none. */
static struct block *first_unleased(const struct partition *p, const struct evict_set *set,
				    uint64_t now)
{
	uint64_t key;
	uint32_t id;

	if ((evict_set_top(set, EVICT_LEASED, &key, &id) && key <= now) ||
	    (evict_set_top(set, EVICT_HELD, &key, &id) && evict_held_until(key) <= now))
		return block_get(p, id);
	return NULL;
}

/* Makes blocks of the set candidates again when their leases have ended. */
static void end_leases(struct partition *p, struct scope *c, struct evict_set *set, uint64_t now)
{
	struct block *b;

	ASSERT_EXCLUSIVE(p);
	while (c->looks && (b = first_unleased(p, set, now)) != NULL) {
		COUNT(p->core, evict_examined, 1);
		c->looks--;
		if (block_lease(p, block_instance(b), b) <= now || !expel(p, c, b))
			evict_consider_at(p, b, block_lease(p, block_instance(b), b), now);
	}
}

/* Groups are compared by the last use of their candidates; where keys do not bound it, it is looked
 * up. */
static struct first first_sure(struct partition *p, struct scope *c, struct evict_set *set,
			       uint64_t now)
{
	struct first f = first_of(p, c, set);

	while (!c->group && !set->group->policy->by_use && f.set && c->looks &&
	       !settle(p, c, &f, now))
		f = first_of(p, c, set);
	return f;
}

static void choose_in(struct partition *p, struct scope *c, uint32_t volume, uint64_t now,
		      struct first *best)
{
	ASSERT_EXCLUSIVE(p);
	for (struct evict_set *set = p->volume[volume].sets; set; set = set->next) {
		struct first f;

		if (!in_scope(c, set))
			continue;
		end_leases(p, c, set, now);
		f = first_sure(p, c, set, now);
		if (before(&f, best)) {
			c->other = *best;
			*best = f;
		} else if (before(&f, &c->other)) {
			c->other = f;
		}
	}
}

static void choose_set(struct partition *p, struct scope *c, uint64_t now)
{
	struct first best = { 0 };

	c->set = NULL;
	c->other = (struct first){ 0 };
	if (c->volume != ANY_VOLUME)
		choose_in(p, c, c->volume, now, &best);
	for (uint32_t i = 0; c->of && i < c->of->n_in; i++)
		if (c->of->in[i].used_bytes)
			choose_in(p, c, c->of->in[i].volume, now, &best);
	for (uint32_t i = 0; !c->of && c->volume == ANY_VOLUME && i < c->group->n_in; i++)
		if (c->group->in[i].used_bytes && counts_volume(p, c, c->group->in[i].volume))
			choose_in(p, c, c->group->in[i].volume, now, &best);
	c->set = best.set;
}

static struct block *pick(struct partition *p, struct scope *c, uint64_t now, struct first *out)
{
	struct first f = { 0 };

	ASSERT_EXCLUSIVE(p);
	while (c->looks) {
		if (c->set)
			f = first_of(p, c, c->set);
		if (!c->set || !f.set || before(&c->other, &f)) {
			choose_set(p, c, now);
			if (!c->set)
				return NULL;
			f = first_of(p, c, c->set);
		}
		if (!f.set || !settle(p, c, &f, now))
			continue;
		*out = f;
		return block_get(p, f.id);
	}
	return NULL;
}

/* Returns what evicting the block frees, in the search's unit. */
static uint64_t gain(const struct partition *p, const struct instance *inst, const struct block *b,
		     const struct scope *c)
{
	uint64_t n = 0;

	if (c->unit == BLOCKS)
		return 1;
	for (uint32_t s = 0; s < inst->spec.n_specs; s++) {
		if (b->slot[s].state != SLOT_COMMITTED)
			continue;
		if (c->unit == BYTES)
			n += counts_volume(p, c, b->slot[s].volume) ? inst->spec.specs[s].size : 0;
		else
			n += b->slot[s].volume == c->volume &&
			     class_of(inst, c->volume, s) == c->class_id;
	}
	return n;
}

/* The next to go is mostly the parent of the last one, and then its parent. */
static void expect_next(const struct partition *p, const struct block *b)
{
	evict_expect(b);
	if (b->parent != NO_BLOCK)
		__builtin_prefetch(block_get(p, b->parent), 1);
}

/* Picks the block and reports it to its policy. */
static int let_go(struct partition *p, struct picks *k, struct block *b, const struct first *f)
{
	const struct group *g = f->set->group;
	struct skv_policy_block facts = evict_facts(block_instance(b), b);
	struct skv_policy_place at = place_of(f);
	int rc;

	ASSERT_EXCLUSIVE(p);
	if (g->policy->prefetch)
		g->policy->prefetch(g->policy_state, facts.hash);
	rc = remove_mark(p, k, b);
	if (rc == SKV_OK)
		evict_count(p, block_instance(b));
	if (rc == SKV_OK && g->policy->evicted && f->which >= EVICT_FIRST)
		g->policy->evicted(g->policy_state, &facts, at);
	if (b->parent != NO_BLOCK)
		expect_next(p, block_get(p, b->parent));
	return rc;
}

/* No caller waits for an eviction. Made for relaxed starts only, it should not cost them a sync. */
static bool is_relaxed(const struct partition *p, const struct picks *k)
{
	bool all = p->core->o.relaxed_ms > 0;

	for (size_t i = 0; all && i < k->n; i++) {
		const struct block *b = block_get(p, k->v[i].block);

		all = block_instance(b)->spec.n_specs == 1 &&
		      p->volume[b->slot[0].volume].dev->ops->counted;
	}
	return all;
}

/* Would the policy rather have the next newcomer than the victim at `f`? `got`: what has been
 * evicted for those before it. */
static bool admitted(const struct scope *c, const struct block *victim, const struct first *f,
		     uint64_t got)
{
	const struct group *g = f->set->group;
	struct newcomers *in = c->w.in;
	struct skv_policy_block b = { .hash = 0 };
	bool last = false;

	if (!in || !g->policy->admit || f->which < EVICT_FIRST || (in->group && in->group != g))
		return true;
	if (f->tenant && c->w.whose && block_instance(victim)->tenant != c->w.whose->tenant)
		return true; /* a tenant's share does not depend on worth */
	if (in->n > 0) {
		uint64_t at = in->at + (c->unit == BYTES ? got / c->w.whose->block_bytes : got);

		at = at < in->n ? at : in->n - 1;
		b.hash = in->hash[at];
		last = at + 1 == in->n;
	}
	in->refused = !g->policy->admit(g->policy_state, &b, last, place_of(f));
	return !in->refused;
}

static void refresh_quota_shares(struct partition *p, const struct scope *c)
{
	if (c->volume != ANY_VOLUME)
		quota_shares_refresh(p, c->volume);
	for (uint32_t i = 0; c->of && i < c->of->n_in; i++)
		quota_shares_refresh(p, c->of->in[i].volume);
	for (uint32_t i = 0; !c->of && c->volume == ANY_VOLUME && i < c->group->n_in; i++)
		quota_shares_refresh(p, c->group->in[i].volume);
}

/* Picks blocks until `need` is reached, nothing is left, or a call's limit is hit. Returns what
 * will become free. */
static uint64_t evict(struct partition *p, struct scope *c, uint64_t need)
{
	uint64_t now = skv_now_ms(p->core->clock), got = 0;
	struct picks k = { 0 };
	struct first f;

	ASSERT_EXCLUSIVE(p);
	p->searches++;
	c->picks = &k;
	refresh_quota_shares(p, c);
	if (c->of)
		p->tenants_counted = 0; /* a search for one tenant compares no tenants */
	else
		tenant_shares_refresh(p, c->group, c->volume, &c->w);
	while (got < need && k.n < MAX_PICKS) {
		struct block *b = pick(p, c, now, &f);
		uint64_t n;

		if (!b || !admitted(c, b, &f, got))
			break;
		n = gain(p, block_instance(b), b, c);
		if (let_go(p, &k, b, &f) != SKV_OK)
			break;
		if (c->unit == SLOTS) {
			rebalance_note(p, c->volume, c->class_id, b, now);
			n = rebalance_segments(p, &k, c->volume, c->class_id, b, &c->w, now);
		}
		got += n;
	}
	if (k.n == 0) {
		skv_free(k.v);
		return 0;
	}
	k.relaxed = is_relaxed(p, &k);
	return remove_queue(p, &k, NULL) == SKV_OK ? got : 0;
}

uint64_t evict_slots(struct partition *p, uint32_t volume, uint32_t class_id, uint64_t slots,
		     const struct evict_for *w)
{
	struct scope c = { .unit = SLOTS, .volume = volume, .class_id = class_id, .w = *w,
			   .below = UINT64_MAX, .looks = UINT64_MAX };
	uint64_t got = evict(p, &c, slots);

	ASSERT_EXCLUSIVE(p);
	if (!w->in || !w->in->refused)
		rebalance(p, volume, class_id, w);
	return got;
}

uint64_t evict_some(struct partition *p, const struct evict_what *what, uint64_t need,
		    const struct evict_for *w)
{
	struct scope c = { .unit = what->blocks ? BLOCKS : BYTES, .group = what->group,
			   .volume = ANY_VOLUME, .type = what->type, .only = what->only,
			   .of = what->of, .w = *w, .held = true, .below = UINT64_MAX,
			   .looks = UINT64_MAX };

	ASSERT_EXCLUSIVE(p);
	return evict(p, &c, need);
}

uint64_t evict_volume_bytes(struct partition *p, uint32_t volume, uint64_t bytes)
{
	struct scope c = { .unit = BYTES, .volume = volume, .below = UINT64_MAX,
			   .looks = UINT64_MAX };

	ASSERT_EXCLUSIVE(p);
	return evict(p, &c, bytes);
}

/* Inner blocks stay: a block with children in use is in use too. Their keys are above all uses. */
bool evict_idle(struct partition *p, struct group *g, uint64_t since, uint64_t blocks)
{
	struct scope c = { .unit = BLOCKS, .group = g, .volume = ANY_VOLUME,
			   .below = use_make(since, 0),
			   .looks = 4 * blocks };

	ASSERT_EXCLUSIVE(p);
	return evict(p, &c, blocks) >= blocks || !c.looks;
}

bool evict_older(struct partition *p, struct group *g, uint64_t generation, uint64_t blocks)
{
	struct scope c = { .unit = BLOCKS, .group = g, .volume = ANY_VOLUME, .below = generation,
			   .looks = 4 * blocks };

	ASSERT_EXCLUSIVE(p);
	return evict(p, &c, blocks) >= blocks || !c.looks;
}
