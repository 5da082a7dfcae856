/*
 * lookup.c - lookups: leases the hits that search.c found, marks them as used, and returns their
 * locations.
 *
 * Runs under the read lock. A lookup allocates only its answer and writes only the atomic marks of
 * its hits (last use, end of lease); a peek writes nothing, and a TRAILING lookup writes leases but
 * no uses.
 *
 * A lease that would end after the instance's durable horizon (horizon.c) waits for a longer
 * horizon.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <lock/core.h>
#include <lock/gate.h>
#include <lock/lock.h>
#include <model/block.h>
#include <model/birth.h>
#include <model/find.h>
#include <model/leases.h>
#include <model/mark.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/quota_share.h>
#include <model/rules.h>
#include <model/volume.h>
#include <model/table.h>
#include <model/wish.h>
#include <journal/change.h>
#include <ops/horizon.h>
#include "search.h"

/* ---- leases ---------------------------------------------------------------------------------- */

/* Limit of leased bytes: a percentage of the instance's capacity, or (`slots_only`) of the
 * storages'. */
static uint64_t lease_cap(const struct partition *p, const struct instance *inst, bool slots_only)
{
	uint64_t sum =
		slots_only ? group_storages_room(p, inst->group) : group_room(p, inst->group);

	if (inst->group->spec.share == SKV_SHARE_FIXED && !slots_only)
		sum = quota_share_of(inst, sum);
	return sum / 100 * p->core->o.leased_percent +
	       (sum % 100 * p->core->o.leased_percent + 99) / 100;
}

/* Readers race for the mark: none removes another's lease or later use. `use` 0: leased, not
 * used. */
static void mark(const struct partition *p, const struct search *s, struct block *b, uint64_t use,
		 struct lease_tally *t)
{
	const uint64_t end = s->lease_until ? use_clock(p, s->lease_until) : 0;
	const uint64_t least = use ? use : mark_least_use(end);
	uint64_t old = atomic_load_explicit(&b->mark, memory_order_relaxed), before, next;

	do {
		before = mark_lease_end(old);
		next = mark_make(mark_use(old) > least ? mark_use(old) : least,
				 mark_freq(old) + (use != 0), before > end ? before : end);
	} while (!atomic_compare_exchange_weak_explicit(&b->mark, &old, next, memory_order_relaxed,
							memory_order_relaxed));
	lease_note(p, s->inst, t, before, mark_lease_end(next));
}

/* Marks the hits as used and leased. */
static void mark_hits(struct partition *p, const struct skv_lookup_req *req, const struct search *s,
		      uint64_t now)
{
	const uint64_t use = req->mode == SKV_LOOKUP_TRAILING ? 0 : use_now(p, now);
	struct lease_tally t = lease_tally_begin(p, s->inst, now);

	for (uint32_t i = 0; i < s->n_seen; i++)
		if (s->hit[i])
			mark(p, s, s->hit[i], use, &t);
	lease_tally_end(s->inst, &t);
}

static void raise(_Atomic uint64_t *latest, uint64_t until)
{
	uint64_t seen = atomic_load_explicit(latest, memory_order_relaxed);

	while (seen < until &&
	       !atomic_compare_exchange_weak_explicit(latest, &seen, until, memory_order_relaxed,
						      memory_order_relaxed))
		;
}

static void note_lease(struct instance *inst, uint64_t until, bool slots_only)
{
	raise(&inst->leased_until, until);
	if (!slots_only)
		raise(&inst->found_until, until);
}

/* ---- lookup ---------------------------------------------------------------------------------- */

static uint32_t lease_ms_of(const struct partition *p, const struct skv_lookup_req *req)
{
	const struct skv_core_options *o = &p->core->o;
	uint32_t ms = req->lease_ms == SKV_LEASE_DEFAULT ? o->lease_default_ms : req->lease_ms;

	return req->peek ? 0 : ms > o->lease_max_ms ? o->lease_max_ms : ms;
}

/* Bytes that leasing hit i adds to the leased bytes. */
static uint64_t lease_adds(const struct partition *p, const struct search *s, uint32_t i,
			   uint64_t now)
{
	uint64_t end = s->hit[i] ? mark_lease_end(atomic_load_explicit(&s->hit[i]->mark,
								       memory_order_relaxed))
				 : 0;

	return s->hit[i] && !lease_counts(p, end, now) ? s->inst->block_bytes : 0;
}

static void forget_hits(struct search *s)
{
	s->n_seen = s->matched = 0;
	s->lease_until = 0;
}

/* Turns the i-th hit into a miss: of a prefix everything from it on; of a window or hybrid
 * everything. */
static void miss(struct search *s, enum skv_lookup_mode mode, uint32_t i)
{
	if (mode == SKV_LOOKUP_BATCH || mode == SKV_LOOKUP_TRAILING) {
		s->hit[i] = NULL;
		s->matched--;
	} else if (mode == SKV_LOOKUP_PREFIX) {
		s->n_seen = s->matched = i;
	} else {
		forget_hits(s);
	}
	if (s->matched == 0)
		s->lease_until = 0;
}

/* Turns hits that exceed the lease limit into misses; of keys read from their end the first
 * ones. */
static void keep_leasable(const struct partition *p, enum skv_lookup_mode mode, struct search *s,
			  uint64_t left, uint64_t now)
{
	const bool trailing = mode == SKV_LOOKUP_TRAILING;

	ASSERT_SHARED(p);
	for (uint32_t turn = 0; turn < s->n_seen; turn++) {
		const uint32_t i = trailing ? s->n_seen - 1 - turn : turn;
		uint64_t adds = lease_adds(p, s, i, now);

		if (adds <= left)
			left -= adds;
		else
			miss(s, mode, i);
	}
}

static void decide_lease(struct partition *p, const struct skv_lookup_req *req, struct search *s,
			 uint64_t now)
{
	uint32_t ms = lease_ms_of(p, req);
	uint64_t bytes = 0, cap, have;
	uint32_t found = s->matched;

	ASSERT_SHARED(p);
	s->denied = false;
	if (ms == 0 || found == 0)
		return;
	s->lease_until = now + ms;
	if (ms <= SOON_MS)
		return;
	cap = lease_cap(p, s->inst, req->slots_only);
	have = leased_bytes(p, s->inst, now);
	if (have + found * s->inst->block_bytes <= cap)
		return; /* whether already leased or not */
	for (uint32_t i = 0; i < s->n_seen; i++)
		bytes += lease_adds(p, s, i, now);
	if (bytes == 0 || have + bytes <= cap)
		return;
	s->denied = true;
	if (req->only_leased || req->mode == SKV_LOOKUP_TRAILING)
		keep_leasable(p, req->mode, s, cap > have ? cap - have : 0, now);
	else
		s->lease_until = 0;
	s->hidden = found - s->matched;
}

/* The ticker keeps the horizon ahead of leases of this length. */
static void note_asked(struct instance *inst, uint32_t ms)
{
	if (atomic_load_explicit(&inst->lease_asked, memory_order_relaxed) < ms)
		atomic_store_explicit(&inst->lease_asked, ms, memory_order_relaxed);
}

/* Copies that cannot be leased as long as their blocks are left out: these are found without. */
static void keep_leasable_copies(const struct partition *p, const struct skv_lookup_req *req,
				 const struct search *s, struct search *c, uint64_t now)
{
	uint64_t cap, have, left;

	ASSERT_SHARED(p);
	c->lease_until = s->lease_until;
	if (!c->lease_until)
		return;
	cap = lease_cap(p, c->inst, req->slots_only);
	have = leased_bytes(p, c->inst, now);
	left = cap > have ? cap - have : 0;
	for (uint32_t i = 0; i < c->n_seen; i++) {
		uint64_t adds = s->hit[i] ? lease_adds(p, c, i, now) : 0;

		if (!c->hit[i])
			continue;
		if (s->hit[i] && adds <= left) {
			left -= adds;
			continue;
		}
		c->hit[i] = NULL;
		c->matched--;
	}
}

/* Finds and leases the copies of the hits. SKV_PENDING: their horizon must be extended first. */
static int find_copies(struct partition *p, const struct skv_lookup_req *req,
		       const struct search *s, struct search *c, struct skv_arena *a, uint64_t now,
		       bool may_wait)
{
	int rc = search_copies(p, req, s, a, c);

	if (rc != SKV_OK || !c->inst)
		return rc;
	assert(c->n_seen == s->n_seen && c->matched <= s->n_seen);
	if (!req->peek)
		instance_use(c->inst);
	if (s->lease_until)
		note_asked(c->inst, (uint32_t)(s->lease_until - now));
	if (s->lease_until > c->inst->horizon && c->matched) {
		if (may_wait)
			return SKV_PENDING;
		c->inst = NULL; /* the blocks alone */
		return SKV_OK;
	}
	keep_leasable_copies(p, req, s, c, now);
	return SKV_OK;
}

static bool is_copied(const struct search *s, const struct search *c, uint32_t i, uint32_t spec)
{
	return c->inst && c->hit[i] && spec_is_copy(c->hit[i], s->hit[i], spec, &c->gone);
}

/* Returns true if the hit needs a copy that could not be leased with it. */
static bool lacks_copy(const struct search *s, const struct search *c, uint32_t i)
{
	for (uint32_t spec = 0; specs_left(s->mask, spec); spec++)
		if ((s->mask >> spec & 1) && spec_stands_in(s->hit[i], spec, &s->gone) &&
		    !is_copied(s, c, i, spec))
			return true;
	return false;
}

/* Hits that are read from copies alone are hits with these. */
static void keep_copied(const struct skv_lookup_req *req, struct search *s, struct search *c)
{
	for (uint32_t i = 0; i < s->n_seen; i++)
		if (s->hit[i] && lacks_copy(s, c, i))
			miss(s, req->mode, i);
	c->n_seen = s->n_seen;
	c->matched = 0;
	for (uint32_t i = 0; c->inst && i < c->n_seen; i++) {
		if (!s->hit[i])
			c->hit[i] = NULL;
		c->matched += c->hit[i] != NULL;
	}
}

/* Fills in the copies of found blocks. Blocks are used, and found, as blocks of their instance. */
static int fill_copies(struct partition *p, struct skv_lookup_res *res, struct file_table *files,
		       const struct search *s, const struct search *c)
{
	uint32_t column = 0;

	res->copy = skv_arena_calloc(files->arena, (size_t)res->n_keys * res->n_specs,
				     sizeof *res->copy);
	if (!res->copy)
		return SKV_E_NOMEM;
	for (uint32_t spec = 0; specs_left(s->mask, spec); spec++) {
		if (!(s->mask >> spec & 1))
			continue;
		for (uint32_t i = 0; i < c->n_seen; i++)
			if (is_copied(s, c, i, spec) && spec_there(s->hit[i], spec, &s->gone) &&
			    location_fill(files, p, c->inst, c->hit[i], spec,
					  &res->copy[(size_t)i * res->n_specs + column]) != SKV_OK)
				return SKV_E_NOMEM;
		column++;
	}
	return SKV_OK;
}

/* Hits that were used so often are to have copies. */
static void wish_copies(const struct partition *p, const struct search *s, const struct search *c,
			uint64_t now)
{
	const uint32_t after = c->inst->group->spec.promote_after;

	assert(after <= MARK_FREQ_MAX && c->n_seen == s->n_seen);
	for (uint32_t i = 0; after && i < s->n_seen; i++)
		if (s->hit[i] && !c->hit[i] && s->hit[i]->slot[0].has_checksum &&
		    mark_freq(atomic_load_explicit(&s->hit[i]->mark, memory_order_relaxed)) >=
			    after)
			wish_note(p, s->hit[i], now);
}

static int fill_hit(struct partition *p, struct skv_lookup_res *res, struct file_table *files,
		    struct search *s, const struct search *c, uint32_t i)
{
	struct skv_location *loc = &res->loc[(size_t)i * res->n_specs];
	const struct block *b = s->hit[i];

	res->hit[i] = true;
	if (res->created_ms)
		res->created_ms[i] = birth_next(p, block_generation(s->inst, b), &s->birth);
	for (uint32_t spec = 0; spec < s->inst->spec.n_specs; spec++) {
		if (!(s->mask >> spec & 1))
			continue;
		const struct block *at = spec_there(b, spec, &s->gone) ? b
					 : is_copied(s, c, i, spec)    ? c->hit[i]
								       : NULL;

		if (!at)
			memset(loc, 0, sizeof *loc);
		else if (location_fill(files, p, s->inst, at, spec, loc) != SKV_OK)
			return SKV_E_NOMEM;
		loc++;
	}
	return SKV_OK;
}

static int fill_lookup(struct partition *p, const struct skv_lookup_req *req,
		       struct skv_lookup_res *res, struct skv_arena *a, struct search *s,
		       struct search *copies)
{
	struct file_table files = { .arena = a, .files = &res->files };

	res->matched = s->matched;
	for (uint32_t i = 0; i < s->n_seen; i++)
		if (s->hit[i] && fill_hit(p, res, &files, s, copies, i) != SKV_OK)
			return SKV_E_NOMEM;
	if (copies->inst && !req->peek)
		atomic_fetch_add_explicit(&copies->inst->hits, copies->matched,
					  memory_order_relaxed);
	if (req->want_copies && copies->inst && copies->matched &&
	    fill_copies(p, res, &files, s, copies) != SKV_OK)
		return SKV_E_NOMEM;
	COUNT(p->core, lookup_keys, req->n_keys);
	COUNT(p->core, lookup_hits, res->matched);
	if (res->matched)
		atomic_fetch_add_explicit(&s->inst->hits, res->matched, memory_order_relaxed);
	return SKV_OK;
}

static int prepare(const struct skv_lookup_req *req, struct skv_lookup_res *res,
		   struct skv_arena *a, const struct search *s)
{
	memset(res, 0, sizeof *res);
	res->n_keys = req->n_keys;
	if (specs_names(s->inst, s->mask, a, &res->specs, &res->n_specs) != SKV_OK)
		return SKV_E_NOMEM;
	res->hit = skv_arena_calloc(a, req->n_keys, sizeof *res->hit);
	res->loc = skv_arena_alloc(a, (size_t)req->n_keys * res->n_specs * sizeof *res->loc);
	if (req->want_created)
		res->created_ms = skv_arena_calloc(a, req->n_keys, sizeof *res->created_ms);
	return res->hit && res->loc && (res->created_ms || !req->want_created) ? SKV_OK
									       : SKV_E_NOMEM;
}

/* Under the read lock (or the write lock). SKV_PENDING: the horizon must be extended first, and the
 * caller may wait; otherwise the lease is cut at the horizon. */
static int lookup_locked(struct partition *p, const struct skv_lookup_req *req,
			 struct skv_lookup_res *res, struct skv_arena *a, struct skv_error *err,
			 bool may_wait)
{
	struct search s, copies = { 0 };
	uint64_t now = skv_now_ms(p->core->clock);
	/* A clean stop that has begun has already looked for the last lease. */
	int rc = core_gate(p->core, err);

	ASSERT_SHARED(p);
	if (rc == SKV_OK)
		rc = search_run(p, req, a, &s, err);
	if (rc == SKV_OK)
		rc = prepare(req, res, a, &s);
	if (rc != SKV_OK)
		return rc;
	if (!req->peek)
		instance_use(s.inst);
	decide_lease(p, req, &s, now);
	if (s.lease_until)
		note_asked(s.inst, (uint32_t)(s.lease_until - now));
	if (s.lease_until > s.inst->horizon) {
		if (may_wait)
			return SKV_PENDING;
		s.lease_until = s.inst->horizon > now ? s.inst->horizon : 0;
		if (req->only_leased && s.lease_until < now + lease_ms_of(p, req))
			forget_hits(&s);
	}
	if (req->want_copies || s.gone.copies)
		rc = find_copies(p, req, &s, &copies, a, now, may_wait);
	if (rc != SKV_OK)
		return rc;
	if (s.gone.copies)
		keep_copied(req, &s, &copies);
	if (s.denied) {
		COUNT(p->core, lease_denied, 1);
		COUNT(p->core, lease_hidden, s.hidden);
	}
	res->lease_ms = s.lease_until ? (uint32_t)(s.lease_until - now) : 0;
	note_lease(s.inst, s.lease_until, req->slots_only);
	if (copies.inst)
		note_lease(copies.inst, copies.lease_until, req->slots_only);
	if (!req->peek)
		mark_hits(p, req, &s, now);
	if (!req->peek && copies.inst) {
		mark_hits(p, req, &copies, now);
		wish_copies(p, &s, &copies, now);
	}
	return fill_lookup(p, req, res, a, &s, &copies);
}

static int wait_for_horizon(struct partition *p, struct waiter *w, bool again);

static int fill_applied(struct waiter *w, struct partition *p, const struct change *ch, int status)
{
	(void)ch;
	(void)status; /* failed: the store is in trouble; answer with the lease that is possible */
	return lookup_locked(p, w->req, w->res, w->arena, w->err, false);
}

static int fill_after_horizon(struct waiter *w, struct partition *p, const struct change *ch,
			      int status)
{
	return status == SKV_OK ? wait_for_horizon(p, w, true) : fill_applied(w, p, ch, status);
}

/* `again`: the last attempt, with a horizon long enough for a slow store. */
static int wait_for_horizon(struct partition *p, struct waiter *w, bool again)
{
	const struct skv_lookup_req *req = w->req;
	uint64_t now = skv_now_ms(p->core->clock);
	struct instance *inst = instance_find(p, req->tenant, req->instance);
	struct change *ch = NULL;
	int rc = lookup_locked(p, req, w->res, w->arena, w->err, true);

	if (rc != SKV_PENDING)
		return rc; /* long enough by now */
	if (p->store_full_until > now ||
	    horizon_extend(p, inst, now, lease_ms_of(p, req), again, &ch) != SKV_OK)
		return lookup_locked(p, req, w->res, w->arena, w->err, false);
	w->fill = again ? fill_applied : fill_after_horizon;
	change_wait(ch, w);
	return SKV_PENDING;
}

int skv_core_lookup(struct skv_core *c, const struct skv_lookup_req *req,
		    struct skv_lookup_res *res, struct skv_arena *a, struct skv_error *err,
		    const struct skv_done *done)
{
	struct waiter *w;
	int rc = rules_gate(c, req->tenant, req->n_keys, err);

	if (rc != SKV_OK)
		return rc;
	if (req->n_keys > SKV_MAX_KEYS)
		return skv_fail(err, SKV_E_TOO_LARGE, "keys", "at most %u keys", SKV_MAX_KEYS);
	skv_rwlock_read(&c->lock);
	rc = c->partition ? lookup_locked(c->partition, req, res, a, err, true)
		     : gate_recovering(err);
	skv_rwlock_read_unlock(&c->lock);
	if (rc != SKV_PENDING)
		return rc;
	w = skv_arena_calloc(a, 1, sizeof *w);
	if (!w)
		return SKV_E_NOMEM;
	*w = (struct waiter){ .completion.done = *done, .fill = fill_after_horizon, .req = req,
			      .res = res, .arena = a, .err = err };
	core_lock(c);
	rc = c->partition ? wait_for_horizon(c->partition, w, false)
			  : gate_recovering(err);
	core_unlock(c);
	return rc;
}
