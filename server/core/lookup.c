/*
 * lookup.c - lookups: what search.c found, leased, marked as used, and told; name resolution.
 *
 * Runs under the read lock. A lookup allocates only its answer and writes only the blocks' atomic
 * marks (last use, end of lease), those of the hits alone; one that peeks writes nothing at all, and one that asks
 * where a prefix may end (TRAILING) writes leases alone.
 *
 * Leases are not journaled one by one. The partition keeps a durable *horizon*: no lease ends later
 * than it, and after a recovery every committed block counts as leased until it. When a lease would
 * pass the horizon, the lookup waits for a longer one to be journaled (rare: tick.c extends ahead).
 */
#include "internal.h"
#include "mark.h"

#include <stdio.h>
#include <string.h>

/* ---- names ----------------------------------------------------------------------------------------- */

struct instance *instance_find(const struct part *p, const char *tenant, const char *id)
{
	uint32_t name = name_hash(tenant, id);

	for (size_t i = 0; i < p->n_inst; i++)
		if (p->inst_name[i] == name && !p->inst[i]->dropped && strcmp(p->inst[i]->spec.id, id) == 0 &&
		    strcmp(p->inst[i]->spec.tenant, tenant) == 0)
			return p->inst[i];
	return NULL;
}

int instance_need(const struct part *p, const char *tenant, const char *id, const char *field,
		  struct instance **out, struct skv_error *err)
{
	struct instance *inst = instance_find(p, tenant, id);

	if (!inst || inst->deleting)
		return skv_fail(err, SKV_E_NOT_FOUND, field, "no instance '%s': register it first", id);
	*out = inst;
	return SKV_OK;
}

int specs_resolve(const struct instance *inst, const char *const *names, uint32_t n, uint32_t *mask,
		  struct skv_error *err)
{
	char field[SKV_FIELD_MAX];

	*mask = n ? 0 : (uint32_t)((1ull << inst->spec.n_specs) - 1);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t s = 0;

		while (s < inst->spec.n_specs && strcmp(inst->spec.specs[s].name, names[i]) != 0)
			s++;
		snprintf(field, sizeof field, "specs[%u]", i);
		if (s == inst->spec.n_specs)
			return skv_fail(err, SKV_E_INVALID, field, "instance '%s' has no spec '%s'",
					inst->spec.id, names[i]);
		if (*mask >> s & 1)
			return skv_fail(err, SKV_E_INVALID, field, "'%s' is named twice", names[i]);
		*mask |= 1u << s;
	}
	return SKV_OK;
}

int specs_names(const struct instance *inst, uint32_t mask, struct skv_arena *a, const char *const **names,
		uint32_t *n)
{
	const char **v = skv_arena_alloc(a, SKV_MAX_SPECS * sizeof *v);
	uint32_t count = 0;

	for (uint32_t s = 0; v && s < inst->spec.n_specs; s++) {
		if (!(mask >> s & 1))
			continue;
		v[count] = skv_arena_strndup(a, inst->spec.specs[s].name, strlen(inst->spec.specs[s].name));
		if (!v[count++])
			return SKV_E_NOMEM;
	}
	*names = v;
	*n = count;
	return v ? SKV_OK : SKV_E_NOMEM;
}

/* ---- leases ----------------------------------------------------------------------------------------- */

/* Upper bound of what is leased now: a lease counts in the window of lease_max_ms in which it ends, so
 * whatever runs now was counted in this window or the next. */
static uint64_t leased_bytes(struct instance *inst, uint64_t now, uint64_t width)
{
	uint64_t no = now / width;
	uint64_t seen = atomic_load_explicit(&inst->lease_window_no, memory_order_relaxed);

	if (seen < no && atomic_compare_exchange_strong(&inst->lease_window_no, &seen, no)) {
		uint64_t first = no - seen > 3 ? no - 2 : seen + 2;

		for (uint64_t w = first; w <= no + 1; w++)
			atomic_store_explicit(&inst->lease_window[w % 4], 0, memory_order_relaxed);
	}
	return atomic_load_explicit(&inst->lease_window[no % 4], memory_order_relaxed) +
	       atomic_load_explicit(&inst->lease_window[(no + 1) % 4], memory_order_relaxed);
}

static uint64_t lease_cap(const struct part *p, const struct instance *inst)
{
	uint64_t sum = group_room(p, inst->group);

	if (inst->group->spec.share == SKV_SHARE_FIXED)
		sum = share_of(inst, sum);
	return sum / 100 * p->core->o.leased_percent + (sum % 100 * p->core->o.leased_percent + 99) / 100;
}

/* Least possible end of the lease that lookups of this reign gave, by what the mark has, which is rounded up. */
static uint64_t given_end(const struct part *p, uint64_t end)
{
	return end > p->use_base + MARK_LEASE_UNIT - 1 ? end - p->use_base - MARK_LEASE_UNIT + 1 : 0;
}

static uint64_t given_until(const struct part *p, const struct block *b)
{
	return given_end(p, mark_lease_end(atomic_load_explicit(&b->mark, memory_order_relaxed)));
}

/* Readers race for the mark: none takes a lease or a later use away from another. `use` 0: it is leased, not used. */
static void mark(const struct part *p, const struct search *s, struct block *b, uint64_t use)
{
	const uint64_t width = p->core->o.lease_max_ms, end = s->lease_until ? s->lease_until + p->use_base : 0;
	const uint64_t least = use ? use : mark_least_use(end);
	uint64_t old = atomic_load_explicit(&b->mark, memory_order_relaxed), before, next;

	do {
		before = mark_lease_end(old);
		next = mark_make(mark_use(old) > least ? mark_use(old) : least, mark_freq(old) + (use != 0),
				 before > end ? before : end);
	} while (!atomic_compare_exchange_weak_explicit(&b->mark, &old, next, memory_order_relaxed,
							memory_order_relaxed));
	if (given_end(p, before) < s->lease_window)
		atomic_fetch_add_explicit(&s->inst->lease_window[s->lease_window / width % 4], s->inst->block_bytes,
					  memory_order_relaxed);
}

static void note_lease(struct instance *inst, uint64_t until)
{
	uint64_t seen = atomic_load_explicit(&inst->leased_until, memory_order_relaxed);

	while (seen < until && !atomic_compare_exchange_weak_explicit(&inst->leased_until, &seen, until, memory_order_relaxed,
								      memory_order_relaxed))
		;
}

/* ---- lookup ------------------------------------------------------------------------------------------- */

static uint32_t lease_ms_of(const struct part *p, const struct skv_lookup_req *req)
{
	const struct skv_core_options *o = &p->core->o;
	uint32_t ms = req->lease_ms == SKV_LEASE_DEFAULT ? o->lease_default_ms : req->lease_ms;

	return req->peek ? 0 : ms > o->lease_max_ms ? o->lease_max_ms : ms;
}

static void set_lease(const struct part *p, struct search *s, uint64_t until)
{
	s->lease_until = until;
	s->lease_window = until - until % p->core->o.lease_max_ms;
}

/* Bytes that the lease of hit i adds to what is leased: it is not in that window yet. */
static uint64_t lease_adds(const struct part *p, const struct search *s, uint32_t i)
{
	return s->hit[i] && given_until(p, s->hit[i]) < s->lease_window ? s->inst->block_bytes : 0;
}

static void forget_hits(const struct part *p, struct search *s)
{
	s->n_seen = s->matched = 0;
	set_lease(p, s, 0);
}

/* Makes misses of the hits that the cap leaves no room for: of a prefix all from the first such one on, of a window
 * or a hybrid all, of what is read from its end the first ones. */
static void keep_leasable(const struct part *p, enum skv_lookup_mode mode, struct search *s, uint64_t left)
{
	const bool trailing = mode == SKV_LOOKUP_TRAILING;

	for (uint32_t turn = 0; turn < s->n_seen; turn++) {
		const uint32_t i = trailing ? s->n_seen - 1 - turn : turn;
		uint64_t adds = lease_adds(p, s, i);

		if (adds <= left) {
			left -= adds;
		} else if (mode == SKV_LOOKUP_BATCH || trailing) {
			s->hit[i] = NULL;
			s->matched--;
		} else if (mode == SKV_LOOKUP_PREFIX) {
			s->n_seen = s->matched = i;
		} else {
			forget_hits(p, s);
		}
	}
	if (s->matched == 0)
		set_lease(p, s, 0);
}

static void decide_lease(struct part *p, const struct skv_lookup_req *req, struct search *s, uint64_t now)
{
	uint32_t ms = lease_ms_of(p, req);
	uint64_t bytes = 0, cap, have;

	if (ms == 0 || s->matched == 0)
		return;
	set_lease(p, s, now + ms);
	for (uint32_t i = 0; i < s->n_seen; i++)
		bytes += lease_adds(p, s, i);
	if (bytes == 0)
		return;
	cap = lease_cap(p, s->inst);
	have = leased_bytes(s->inst, now, p->core->o.lease_max_ms);
	if (have + bytes <= cap || ms <= SOON_MS)
		return;
	COUNT(p->core, lease_denied, 1);
	if (req->only_leased)
		keep_leasable(p, req->mode, s, cap > have ? cap - have : 0);
	else
		set_lease(p, s, 0);
}

static int fill_hit(struct part *p, struct skv_lookup_res *res, struct file_table *files, const struct search *s, uint32_t i)
{
	struct skv_location *loc = &res->loc[(size_t)i * res->n_specs];
	const struct block *b = s->hit[i];

	res->hit[i] = true;
	if (res->created_ms)
		res->created_ms[i] = era_of(p, block_generation(s->inst, b));
	for (uint32_t spec = 0; spec < s->inst->spec.n_specs; spec++) {
		if (!(s->mask >> spec & 1))
			continue;
		if (!spec_there(b, spec, &s->gone))
			memset(loc, 0, sizeof *loc);
		else if (location_fill(files, p, s->inst, b, spec, loc) != SKV_OK)
			return SKV_E_NOMEM;
		loc++;
	}
	return SKV_OK;
}

static int fill_lookup(struct part *p, const struct skv_lookup_req *req, struct skv_lookup_res *res,
		       struct skv_arena *a, const struct search *s)
{
	struct file_table files = { .arena = a, .files = &res->files };

	res->matched = s->matched;
	for (uint32_t i = 0; i < s->n_seen; i++)
		if (s->hit[i] && fill_hit(p, res, &files, s, i) != SKV_OK)
			return SKV_E_NOMEM;
	COUNT(p->core, lookup_keys, req->n_keys);
	COUNT(p->core, lookup_hits, res->matched);
	if (res->matched)
		atomic_fetch_add_explicit(&s->inst->hits, res->matched, memory_order_relaxed);
	return SKV_OK;
}

static int prepare(const struct skv_lookup_req *req, struct skv_lookup_res *res, struct skv_arena *a,
		   const struct search *s)
{
	memset(res, 0, sizeof *res);
	res->n_keys = req->n_keys;
	if (specs_names(s->inst, s->mask, a, &res->specs, &res->n_specs) != SKV_OK)
		return SKV_E_NOMEM;
	res->hit = skv_arena_calloc(a, req->n_keys, sizeof *res->hit);
	res->loc = skv_arena_alloc(a, (size_t)req->n_keys * res->n_specs * sizeof *res->loc);
	if (req->want_created)
		res->created_ms = skv_arena_calloc(a, req->n_keys, sizeof *res->created_ms);
	return res->hit && res->loc && (res->created_ms || !req->want_created) ? SKV_OK : SKV_E_NOMEM;
}

/* Under the read lock (or the write lock). SKV_PENDING: the horizon must be extended first, and the
 * caller may wait; otherwise the lease is cut at the horizon. */
static int lookup_locked(struct part *p, const struct skv_lookup_req *req, struct skv_lookup_res *res,
			 struct skv_arena *a, struct skv_error *err, bool may_wait)
{
	struct search s;
	uint64_t now = skv_now_ms(p->core->clock), use;
	int rc = search_run(p, req, a, &s, err);

	if (rc == SKV_OK)
		rc = prepare(req, res, a, &s);
	if (rc != SKV_OK)
		return rc;
	decide_lease(p, req, &s, now);
	if (s.lease_until > p->horizon_durable) {
		if (may_wait)
			return SKV_PENDING;
		set_lease(p, &s, p->horizon_durable > now ? p->horizon_durable : 0);
		if (req->only_leased && s.lease_until < now + lease_ms_of(p, req))
			forget_hits(p, &s);
	}
	if (s.lease_until && !atomic_load_explicit(&p->horizon_used, memory_order_relaxed))
		atomic_store_explicit(&p->horizon_used, true, memory_order_relaxed);
	res->lease_ms = s.lease_until ? (uint32_t)(s.lease_until - now) : 0;
	note_lease(s.inst, s.lease_until);
	use = req->peek || req->mode == SKV_LOOKUP_TRAILING ? 0 : use_now(p, now);
	for (uint32_t i = 0; i < s.n_seen && !req->peek; i++)
		if (s.hit[i])
			mark(p, &s, s.hit[i], use);
	return fill_lookup(p, req, res, a, &s);
}

static int fill_after_horizon(struct waiter *w, struct part *p, const struct txn *t, int status)
{
	(void)t;
	(void)status; /* failed: the store is in trouble; answer with what lease there is */
	return lookup_locked(p, w->req, w->res, w->arena, w->err, false);
}

static int wait_for_horizon(struct part *p, const struct skv_lookup_req *req, struct skv_lookup_res *res,
			    struct waiter *w)
{
	struct txn *t = NULL;
	int rc = lookup_locked(p, req, res, w->arena, w->err, true);

	if (rc != SKV_PENDING)
		return rc; /* somebody else extended it meanwhile */
	if (p->store_full_until > skv_now_ms(p->core->clock) ||
	    horizon_extend(p, skv_now_ms(p->core->clock), &t) != SKV_OK)
		return lookup_locked(p, req, res, w->arena, w->err, false);
	txn_wait(t, w);
	return SKV_PENDING;
}

int skv_core_lookup(struct skv_core *c, const struct skv_lookup_req *req, struct skv_lookup_res *res,
		    struct skv_arena *a, struct skv_error *err, const struct skv_done *done)
{
	struct waiter *w;
	int rc = core_gate(c, err);

	if (rc != SKV_OK)
		return rc;
	if (req->n_keys > SKV_MAX_KEYS)
		return skv_fail(err, SKV_E_TOO_LARGE, "keys", "at most %u keys", SKV_MAX_KEYS);
	skv_rwlock_read(&c->lock);
	rc = c->part ? lookup_locked(c->part, req, res, a, err, true)
		     : skv_fail(err, SKV_E_NOT_READY, NULL, "recovering");
	skv_rwlock_read_unlock(&c->lock);
	if (rc != SKV_PENDING)
		return rc;
	w = skv_arena_calloc(a, 1, sizeof *w);
	if (!w)
		return SKV_E_NOMEM;
	*w = (struct waiter){ .done = *done, .fill = fill_after_horizon, .req = req, .res = res, .arena = a, .err = err };
	core_lock(c);
	rc = c->part ? wait_for_horizon(c->part, req, res, w) : skv_fail(err, SKV_E_NOT_READY, NULL, "recovering");
	core_unlock(c);
	return rc;
}
