/*
 * evict.c - which committed blocks go when room is needed: those that the policy of their group puts first.
 *
 * A search is for slots of a class in a storage, or for bytes or blocks of a group. In each set (queue.c) that it is about,
 * the policy ranks the tops of its queues as they stand there; the least is looked at. It goes, or it was used, leased or
 * grew children since it was queued: then it is placed again, and the next is least. Places out of date are never behind
 * the right ones, so what goes is the least of all. Ranks of different groups cannot be compared: between groups the least
 * recently used goes. Inner blocks are taken only when no leaf is left (of a policy that cares), so nothing ever stops while
 * something may be evicted.
 *
 * Blocks of which only the slots are leased (skv_lookup_req.slots_only) are candidates of a search for a group's bytes or
 * blocks: what it has does not count them any more then, and their slots wait for the lease. That whose lease ends first
 * is compared with others by last use.
 *
 * A block that is too old for its group (ttl) goes when its lease ends, also if that was renewed, as if it were deleted: its
 * slots wait for the last lease.
 *
 * All calls under the write lock. Victims are marked and journaled here (remove.c); their slots become free when the
 * record is durable.
 *
 * In a group whose instances have shares (quota_share.c) the instance that has most for its share loses blocks first, whichever they
 * are: a search puts the members of a set in that order, and keeps it. What is pinned soft is looked at only when the caller says so, and goes last.
 */
#include <evict/evict.h>

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
#include <model/volume.h>
#include <model/table.h>
#include <storage/growth.h>
#include <evict/clear.h>
#include <evict/reclaim.h>
#include <evict/remove.h>
#include "quota_share.h"
#include <evict/rebalance.h>

#define MAX_AHEAD_PERCENT 10u /* of a storage, for demand */
#define DEMAND_MS 20u
#define AHEAD_PICKS 1024u /* of one class in one call: others wait for the lock */

bool block_evictable(const struct partition *p, const struct instance *inst, const struct block *b, uint64_t now)
{
	ASSERT_SHARED(p);
	if (inst->retired || block_lease(p, inst, b) > now || pin_kind(b) == SKV_PIN_HARD)
		return false;
	return block_has_committed(inst, b) && !block_has_writing(inst, b);
}

/* ---- the search ------------------------------------------------------------------------------------- */

/* The first of a set, as far as its queues know. */
struct first {
	struct evict_set *set; /* NULL: there is none */
	uint64_t over; /* what its instance has for its share (quota_share_ratio); 0 where there are no shares */
	uint32_t which;
	uint32_t id;
	uint64_t key; /* with SKV_POLICY_INNER */
	uint64_t rank;
	uint64_t use; /* least possible */
};

/* What one search is about. */
enum unit { SLOTS, BYTES, BLOCKS };
struct scope {
	enum unit unit;
	const struct group *group; /* NULL = any, in `space` */
	uint32_t volume;            /* this one only; ANY_VOLUME = those of the group */
	const char *type;          /* and of them, those on storages of this type; NULL = any */
	uint32_t class_id;         /* SLOTS */
	const struct instance *only; /* nobody else's; NULL = anybody's */
	struct evict_for w;
	bool held;                 /* also those of which only the slots are leased */
	uint64_t below;            /* keys: no others are looked at */
	uint64_t looks;            /* so many entries are placed again at most */
	struct picks *picks;
	/* The search goes on in this set while its first is before that of all others. */
	struct evict_set *set;
	struct first other;
};

/* Does it count what lies there? */
static bool counts_volume(const struct partition *p, const struct scope *c, uint32_t volume)
{
	if (c->volume != ANY_VOLUME && volume != c->volume)
		return false;
	return !c->type || strcmp(p->volume[volume].dev->type, c->type) == 0;
}

static bool in_scope(const struct scope *c, const struct evict_set *set)
{
	return c->unit == SLOTS ? set->class_id == c->class_id : !c->group || set->group == c->group;
}

static bool is_soft(const struct first *f) { return f->which == EVICT_SOFT; }
static bool is_held(const struct first *f) { return f->which == EVICT_HELD; }
static bool is_inner(const struct first *f) { return f->key & (is_held(f) ? 1 : SKV_POLICY_INNER); }

static bool before(const struct first *a, const struct first *b)
{
	if (!a->set || !b->set)
		return a->set != NULL;
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
	f->use = g->policy->by_use && !is_held(f)
			 ? place_of(f).key
			 : mark_use(atomic_load_explicit(&block_get(p, f->id)->mark, memory_order_relaxed));
	f->rank = is_held(f) ? 0 : g->policy->rank(g->policy_state, place_of(f));
}

/* Of one member of the set, or (NULL) of all: the heaps from `which` to below `end`. */
static struct first first_in(const struct partition *p, const struct scope *c, struct evict_set *set,
			     const struct evict_queue *q, uint32_t which, uint32_t end)
{
	struct first best = { 0 };

	for (uint32_t w = which; w < end; w++) {
		struct first f = { .set = set, .which = w, .over = q ? quota_share_ratio(q->inst, &c->w) : 0 };

		if ((is_held(&f) && !c->held) ||
		    !(q ? skv_heap_top(&q->heaps, w, &f.key, &f.id) : evict_set_top(set, w, &f.key, &f.id) != NULL) ||
		    f.key >= c->below)
			continue;
		rank(p, &f);
		if (before(&f, &best))
			best = f;
	}
	return best;
}

/* ---- members with parts ----------------------------------------------------------------------------- */

/* The candidate at i may have less than those below it. */
static void sift_down(struct evict_set *set, uint32_t i)
{
	struct candidate r = set->candidate[i];

	for (uint32_t child; (child = 2 * i + 1) < set->n_candidates; i = child) {
		if (child + 1 < set->n_candidates && set->candidate[child + 1].over > set->candidate[child].over)
			child++;
		if (set->candidate[child].over <= r.over)
			break;
		set->candidate[i] = set->candidate[child];
	}
	set->candidate[i] = r;
}

static void gather_candidates(const struct partition *p, const struct scope *c, struct evict_set *set, bool soft)
{
	set->n_candidates = 0;
	set->candidates_soft = soft;
	set->candidates_of = p->searches;
	for (uint32_t i = 0; i < set->n; i++) {
		const struct evict_queue *q = set->member[i];

		if ((!c->only || q->inst == c->only) && quota_share_allows(&c->w, q->inst))
			set->candidate[set->n_candidates++] = (struct candidate){ quota_share_ratio(q->inst, &c->w), q };
	}
	for (uint32_t i = set->n_candidates / 2; i-- > 0;)
		sift_down(set, i);
}

/* Of the member that is most over its share and has a candidate. During one search members only lose, so the order is made
 * once, and kept by looking at the first of it. */
static struct first first_candidate(const struct partition *p, const struct scope *c, struct evict_set *set)
{
	while (set->n_candidates) {
		struct candidate *r = &set->candidate[0];
		const struct evict_queue *q = r->q;
		uint64_t over = quota_share_ratio(q->inst, &c->w);
		struct first f;

		if (over != r->over) {
			r->over = over;
			sift_down(set, 0);
			continue;
		}
		f = set->candidates_soft ? first_in(p, c, set, q, EVICT_SOFT, EVICT_FIRST)
				     : first_in(p, c, set, q, EVICT_HELD, q->heaps.n_heaps);
		if (f.set)
			return f;
		*r = set->candidate[--set->n_candidates];
		if (set->n_candidates)
			sift_down(set, 0);
	}
	return (struct first){ 0 };
}

static struct first first_of(const struct partition *p, const struct scope *c, struct evict_set *set)
{
	struct first f;

	if (!c->only && set->group->spec.share == SKV_SHARE_GROUP)
		return first_in(p, c, set, NULL, c->w.soft ? EVICT_SOFT : EVICT_HELD, set->tops.n_heaps);
	if (set->candidates_of != p->searches)
		gather_candidates(p, c, set, false);
	f = first_candidate(p, c, set);
	if (f.set || !c->w.soft || set->candidates_soft)
		return f;
	gather_candidates(p, c, set, true);
	return first_candidate(p, c, set);
}

/* Is it what its place says, but for leases? */
static bool as_placed(const struct instance *inst, struct block *b, const struct first *f)
{
	const struct group *g = f->set->group;
	struct skv_policy_block facts = evict_facts(inst, b);

	if (is_soft(f))
		return f->key == evict_soft_key(b);
	if (evict_inner_as(inst, b, f->key) && g->policy->look(g->policy_state, &facts, place_of(f)))
		return true;
	evict_keep(b, &facts);
	return false;
}

void evict_count(struct partition *p, struct instance *inst)
{
	ASSERT_EXCLUSIVE(p);
	COUNT(p->core, evicted_blocks, 1);
	inst->evicted++;
	inst->group->evicted++;
}

/* It was leased on and is too old: it goes all the same, and counts for nothing that is needed now. */
static bool expel(struct partition *p, struct scope *c, struct block *b)
{
	struct instance *inst = block_instance(b);

	if (inst->retired || pin_kind(b) != SKV_PIN_NONE || !block_has_committed(inst, b) || block_has_writing(inst, b) ||
	    block_generation(inst, b) >= inst->group->too_old || c->picks->n >= MAX_PICKS)
		return false;
	if (remove_mark(p, c->picks, b) != SKV_OK)
		return false;
	evict_count(p, inst);
	return true;
}

/* May it go? If not, it is placed where it belongs. */
static bool settle(struct partition *p, struct scope *c, const struct first *f, uint64_t now)
{
	struct block *b = block_get(p, f->id);
	struct instance *inst = block_instance(b);
	uint64_t lease = block_lease(p, inst, b);

	COUNT(p->core, evict_examined, 1);
	if (is_held(f) ? evict_held_key(b, lease, now) == f->key : block_evictable(p, inst, b, now) && as_placed(inst, b, f))
		return true;
	evict_consider_at(p, b, lease, now);
	c->looks--;
	return false;
}

/* The first block of the set whose lease, as its queue knows it, has ended; NULL: there is none. */
static struct block *first_unleased(const struct partition *p, const struct evict_set *set, uint64_t now)
{
	uint64_t key;
	uint32_t id;

	if ((evict_set_top(set, EVICT_LEASED, &key, &id) && key <= now) ||
	    (evict_set_top(set, EVICT_HELD, &key, &id) && evict_held_until(key) <= now))
		return block_get(p, id);
	return NULL;
}

/* Blocks of the set whose leases have ended are candidates again. */
static void end_leases(struct partition *p, struct scope *c, struct evict_set *set, uint64_t now)
{
	struct block *b;

	while (c->looks && (b = first_unleased(p, set, now)) != NULL) {
		COUNT(p->core, evict_examined, 1);
		c->looks--;
		if (block_lease(p, block_instance(b), b) <= now || !expel(p, c, b))
			evict_consider_at(p, b, block_lease(p, block_instance(b), b), now);
	}
}

/* What groups are compared by is the last use of what may go: where keys do not bound it, that must be known. */
static struct first first_sure(struct partition *p, struct scope *c, struct evict_set *set, uint64_t now)
{
	struct first f = first_of(p, c, set);

	while (!c->group && !set->group->policy->by_use && f.set && c->looks && !settle(p, c, &f, now))
		f = first_of(p, c, set);
	return f;
}

static void choose_in(struct partition *p, struct scope *c, uint32_t volume, uint64_t now, struct first *best)
{
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
	for (uint32_t i = 0; c->volume == ANY_VOLUME && i < c->group->n_in; i++)
		if (c->group->in[i].used_bytes && counts_volume(p, c, c->group->in[i].volume))
			choose_in(p, c, c->group->in[i].volume, now, &best);
	c->set = best.set;
}

static struct block *pick(struct partition *p, struct scope *c, uint64_t now, struct first *out)
{
	struct first f = { 0 };

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

/* What comes free with the block, in the scope's unit. */
static uint64_t gain(const struct partition *p, const struct instance *inst, const struct block *b, const struct scope *c)
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
			n += b->slot[s].volume == c->volume && class_of(inst, c->volume, s) == c->class_id;
	}
	return n;
}

/* It is to go, by its group's policy. */
static int let_go(struct partition *p, struct picks *k, struct block *b, const struct first *f)
{
	const struct group *g = f->set->group;
	struct skv_policy_block facts = evict_facts(block_instance(b), b);
	struct skv_policy_place at = place_of(f);
	int rc;

	if (g->policy->prefetch)
		g->policy->prefetch(g->policy_state, facts.hash);
	rc = remove_mark(p, k, b);
	if (rc == SKV_OK)
		evict_count(p, block_instance(b));
	if (rc == SKV_OK && g->policy->evicted && f->which >= EVICT_FIRST)
		g->policy->evicted(g->policy_state, &facts, at);
	return rc;
}

/* Nobody is told of an eviction. Where relaxed starts make it necessary, it is not to cost them a sync. */
static bool is_relaxed(const struct partition *p, const struct picks *k)
{
	bool all = p->core->o.relaxed_ms > 0;

	for (size_t i = 0; all && i < k->n; i++) {
		const struct block *b = block_get(p, k->v[i].block);

		all = block_instance(b)->spec.n_specs == 1 && p->volume[b->slot[0].volume].dev->ops->counted;
	}
	return all;
}

static void refresh_quota_shares(struct partition *p, const struct scope *c)
{
	if (c->volume != ANY_VOLUME)
		quota_shares_refresh(p, c->volume);
	for (uint32_t i = 0; c->volume == ANY_VOLUME && i < c->group->n_in; i++)
		quota_shares_refresh(p, c->group->in[i].volume);
}

/* Picks until `need` is reached, nothing is left, or it is enough for one call. Returns what will come free. */
static uint64_t evict(struct partition *p, struct scope *c, uint64_t need)
{
	uint64_t now = skv_now_ms(p->core->clock), got = 0;
	struct picks k = { 0 };
	struct first f;

	p->searches++;
	c->picks = &k;
	refresh_quota_shares(p, c);
	while (got < need && k.n < MAX_PICKS) {
		struct block *b = pick(p, c, now, &f);
		uint64_t n;

		if (!b)
			break;
		n = gain(p, block_instance(b), b, c);
		if (let_go(p, &k, b, &f) != SKV_OK)
			break;
		if (c->unit == SLOTS) {
			rebalance_note(p, c->volume, c->class_id, b);
			n = rebalance_segments(p, &k, c->volume, c->class_id, b, &c->w);
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

uint64_t evict_slots(struct partition *p, uint32_t volume, uint32_t class_id, uint64_t slots, const struct evict_for *w)
{
	struct scope c = { .unit = SLOTS, .volume = volume, .class_id = class_id, .w = *w,
			   .below = UINT64_MAX, .looks = UINT64_MAX };
	uint64_t got = evict(p, &c, slots);

	ASSERT_EXCLUSIVE(p);
	rebalance(p, volume, class_id, w);
	return got;
}

uint64_t evict_group_bytes(struct partition *p, struct group *g, const char *type, uint64_t bytes, const struct evict_for *w)
{
	struct scope c = { .unit = BYTES, .group = g, .volume = ANY_VOLUME, .type = type, .w = *w, .held = true,
			   .below = UINT64_MAX, .looks = UINT64_MAX };

	ASSERT_EXCLUSIVE(p);
	return evict(p, &c, bytes);
}

uint64_t evict_instance_bytes(struct partition *p, struct instance *inst, uint64_t bytes, bool soft)
{
	struct scope c = { .unit = BYTES, .group = inst->group, .volume = ANY_VOLUME, .only = inst,
			   .w = { .whose = inst, .soft = soft }, .held = true, .below = UINT64_MAX, .looks = UINT64_MAX };

	ASSERT_EXCLUSIVE(p);
	return evict(p, &c, bytes);
}

uint64_t evict_volume_bytes(struct partition *p, uint32_t volume, uint64_t bytes)
{
	struct scope c = { .unit = BYTES, .volume = volume, .below = UINT64_MAX, .looks = UINT64_MAX };

	ASSERT_EXCLUSIVE(p);
	return evict(p, &c, bytes);
}

uint64_t evict_group_blocks(struct partition *p, struct group *g, uint64_t blocks)
{
	struct scope c = { .unit = BLOCKS, .group = g, .volume = ANY_VOLUME, .held = true,
			   .below = UINT64_MAX, .looks = UINT64_MAX };

	ASSERT_EXCLUSIVE(p);
	return evict(p, &c, blocks);
}

/* Inner blocks stay: whose children are not idle is in use, too. The keys of those are above all uses. */
bool evict_idle(struct partition *p, struct group *g, uint64_t since, uint64_t blocks)
{
	struct scope c = { .unit = BLOCKS, .group = g, .volume = ANY_VOLUME, .below = use_make(since, 0),
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

/* Free slots to keep for a class: a share of the storage, or what was taken lately if that is more (freed slots
 * come back only with the next commit, or sync). */
static uint64_t free_target(const struct partition *p, const struct volume *s, const struct volume_class *c)
{
	uint64_t slots = s->file_bytes / (c->stride ? c->stride : 1);
	uint64_t share = slots / 100 * p->core->o.free_percent, most = slots / 100 * MAX_AHEAD_PERCENT;

	if (s->high_percent ? s->high_percent == 100 : p->core->o.free_percent == 0)
		return 0;
	if (s->high_percent)
		share = 0; /* watermarks take its place (reclaim.c) */
	if (s->dev->ops->counted)
		return share; /* that all of it may be full is what its clients reckon with */
	most = c->demand < most ? c->demand : most;
	return most > share ? most : share;
}

/* What was taken since the last time counts for the next eight times or so. */
static void note_demand(struct volume *s, uint64_t now)
{
	if (now - s->demand_at < DEMAND_MS)
		return;
	s->demand_at = now;
	for (uint32_t c = 0; c < s->n_class; c++) {
		struct volume_class *k = &s->class[c];

		k->demand += k->taken - k->demand / 8;
		k->taken = 0;
	}
}

bool evict_ahead(struct partition *p, struct portion volumes, struct portion groups)
{
	static const struct evict_for nobody = { .whose = NULL };
	uint64_t now = skv_now_ms(p->core->clock);
	bool more = false;

	ASSERT_EXCLUSIVE(p);
	for (uint32_t i = (uint32_t)volumes.from; i < volumes.to; i++) {
		struct volume *s = &p->volume[i];

		note_demand(s, now);
		if (!s->pool || !volume_usable(s) || (volume_has_room(s) && !s->grow_full) || retired_left(p, NULL, i))
			continue;
		for (uint32_t c = 0; c < s->n_class; c++) {
			uint64_t target = free_target(p, s, &s->class[c]);
			uint64_t have = skv_pool_available(s->pool, c) + s->class[c].removing;
			uint64_t need = have < target ? target - have : 0;

			if (!need || !s->class[c].wanted_ms || now - s->class[c].wanted_ms >= 60000)
				continue;
			more |= evict_slots(p, i, c, need < AHEAD_PICKS ? need : AHEAD_PICKS, &nobody) >= AHEAD_PICKS;
		}
	}
	for (uint32_t i = (uint32_t)volumes.from; i < volumes.to; i++)
		more |= p->volume[i].high_percent && !retired_left(p, NULL, i) && reclaim_volume(p, i);
	for (size_t i = groups.from; i < groups.to; i++)
		more |= !retired_left(p, p->group[i], ANY_VOLUME) && reclaim_group(p, p->group[i]);
	return more;
}
