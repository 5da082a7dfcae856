/*
 * search.c - finds the hits of a lookup: prefix, batch, window, hybrid; or only their number.
 *
 * Runs under the read lock and does not write to blocks: leases and uses are lookup.c's. Index
 * cells and entries are prefetched some keys ahead, in the order in which the mode visits the keys.
 */
#include "search.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <lock/core.h>
#include <lock/gate.h>
#include <lock/one.h>
#include <model/block.h>
#include <model/device.h>
#include <model/files.h>
#include <model/find.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/probe.h>
#include <model/queue.h>
#include <model/rules.h>
#include <model/tier.h>
#include <model/volume.h>
#include <storage/device.h>

bool spec_stands_in(const struct block *b, uint32_t spec, const struct unread *u)
{
	const struct block *copy;

	if (!u->copies || b->slot[spec].state != SLOT_COMMITTED ||
	    !slot_unread(u, &b->slot[spec]))
		return false;
	copy = index_find(u->p, u->copies, b->key);
	return copy && spec_is_copy(copy, b, spec, u->copies_unread);
}

static inline bool spec_readable(const struct block *b, uint32_t spec, const struct unread *u)
{
	return spec_there(b, spec, u) || (u->copies && spec_stands_in(b, spec, u));
}

static inline bool has_all(const struct block *b, uint32_t mask, const struct unread *gone)
{
	for (uint32_t s = 0; specs_left(mask, s); s++)
		if ((mask >> s & 1) && !spec_readable(b, s, gone))
			return false;
	return true;
}

static inline bool has_any(const struct block *b, uint32_t mask, const struct unread *gone)
{
	for (uint32_t s = 0; specs_left(mask, s); s++)
		if ((mask >> s & 1) && spec_readable(b, s, gone))
			return true;
	return false;
}

static bool volume_gone(const struct unread *u, uint32_t volume)
{
	for (uint32_t i = 0; i < u->n_gone; i++)
		if (u->gone[i] == volume)
			return true;
	return false;
}

/* `req` NULL: a match. */
static bool may_read(const struct volume *s, const struct skv_lookup_req *req)
{
	return device_readable(s->dev) && !(req && req->skip_disabled && !s->enabled) &&
	       !(req && req->files_only && s->dev->ops->forgetful);
}

/* Specs on a storage that is down are misses. Decided once for the whole search; the instance has
 * queues for just those volumes where it has had slots. */
static int volumes_gone(const struct partition *p, const struct instance *inst,
			const struct skv_lookup_req *req, struct skv_arena *a, struct unread *gone)
{
	*gone = (struct unread){ .p = p, .any = p->damage.n_hidden != 0 };
	for (size_t i = 0; i < inst->n_queue; i++) {
		const uint32_t at = inst->queue[i]->volume;
		const struct volume *s = &p->volume[at];

		gone->any |= s->n_bad != 0;
		if (may_read(s, req) || volume_gone(gone, at))
			continue;
		if (!gone->gone &&
		    !(gone->gone = skv_arena_alloc(a, inst->n_queue * sizeof *gone->gone)))
			return SKV_E_NOMEM;
		gone->any = true;
		gone->gone[gone->n_gone++] = at;
	}
	return SKV_OK;
}

/* And which copies are read instead. */
static int find_unread(const struct partition *p, const struct instance *inst,
		       const struct skv_lookup_req *req, struct skv_arena *a, struct unread *gone)
{
	int rc = volumes_gone(p, inst, req, a, gone);

	ASSERT_SHARED(p);
	if (rc != SKV_OK || !gone->any)
		return rc;
	gone->copies = tier_copies(p, inst);
	if (!gone->copies)
		return SKV_OK;
	gone->copies_unread = skv_arena_alloc(a, sizeof *gone->copies_unread);
	return gone->copies_unread
		       ? volumes_gone(p, gone->copies, req, a, gone->copies_unread)
		       : SKV_E_NOMEM;
}

bool slot_unread(const struct unread *u, const struct slot *s)
{
	return volume_gone(u, s->volume) || !slot_readable(u->p, s);
}

/* ---- modes ----------------------------------------------------------------------------------- */

static inline bool is_hit(const struct skv_lookup_req *req, const struct search *s,
			  const struct block *b)
{
	return b && (req->partial ? has_any(b, s->mask, &s->gone) : has_all(b, s->mask, &s->gone));
}

static void find_each(struct probe *pr, const struct skv_lookup_req *req, struct search *s)
{
	const bool prefix = req->mode == SKV_LOOKUP_PREFIX;
	const uint32_t n = req->n_keys;
	struct block **hit = s->hit;
	uint32_t i, matched = 0;

	for (i = 0; i < n; i++) {
		struct block *b = probe_block(pr, i);

		if (is_hit(req, s, b)) {
			hit[i] = b;
			matched++;
		} else if (prefix) {
			break;
		}
	}
	s->n_seen = i;
	s->matched = matched;
}

/* Backwards over the keys: the first run that is long enough. */
static void find_window(struct probe *pr, const struct skv_lookup_req *req, struct search *s)
{
	uint32_t run = 0, n = req->n_keys;

	s->n_seen = n;
	for (uint32_t i = 0; i < n && run < req->window; i++) {
		struct block *b = probe_block(pr, i);

		if (is_hit(req, s, b)) {
			s->hit[n - 1 - i] = b;
			run++;
			continue;
		}
		memset(&s->hit[n - i], 0, run * sizeof *s->hit);
		run = 0;
	}
	if (run == req->window)
		s->matched = run;
	else
		memset(s->hit, 0, run * sizeof *s->hit); /* a shorter run at the start */
}

static void find_hybrid(struct probe *pr, const struct skv_lookup_req *req, struct search *s)
{
	uint32_t n = 0;

	for (; n < req->n_keys; n++) {
		s->hit[n] = probe_block(pr, n);
		if (!s->hit[n] || !has_all(s->hit[n], req->full_specs, &s->gone))
			break;
	}
	n -= req->drop < n ? req->drop : n;
	while (n && !has_all(s->hit[n - 1], req->state_specs, &s->gone))
		n--;
	s->n_seen = s->matched = n;
}

static struct skv_key *reversed(const struct skv_key *keys, uint32_t n, struct skv_arena *a)
{
	struct skv_key *out = skv_arena_alloc(a, n * sizeof *out);

	for (uint32_t i = 0; out && i < n; i++)
		out[i] = keys[n - 1 - i];
	return out;
}

static int check_mode(const struct skv_lookup_req *req, const struct instance *inst,
		      struct skv_error *err)
{
	if (req->mode == SKV_LOOKUP_WINDOW && (req->window == 0 || req->window > req->n_keys))
		return skv_fail(err, SKV_E_INVALID, "window",
				"1 to the number of keys (%u), not %u", req->n_keys, req->window);
	if (req->mode != SKV_LOOKUP_HYBRID)
		return SKV_OK;
	if (req->full_specs == 0 || (uint64_t)req->full_specs >> inst->spec.n_specs)
		return skv_fail(err, SKV_E_INVALID, "full_specs",
				"one or more of the instance's %u specs", inst->spec.n_specs);
	if (req->state_specs == 0 || (uint64_t)req->state_specs >> inst->spec.n_specs)
		return skv_fail(err, SKV_E_INVALID, "state_specs",
				"one or more of the instance's %u specs", inst->spec.n_specs);
	return SKV_OK;
}

int search_run(struct partition *p, const struct skv_lookup_req *req, struct skv_arena *a,
	       struct search *s, struct skv_error *err)
{
	const struct skv_key *keys = req->keys;
	struct probe pr;
	int rc;

	ASSERT_SHARED(p);
	*s = (struct search){ 0 };
	rc = instance_need(p, req->tenant, req->instance, "instance", &s->inst, err);
	if (rc == SKV_OK)
		rc = specs_resolve(s->inst, req->specs, req->n_specs, &s->mask, err);
	if (rc == SKV_OK)
		rc = check_mode(req, s->inst, err);
	if (rc != SKV_OK)
		return rc;
	s->hit = skv_arena_calloc(a, req->n_keys, sizeof *s->hit);
	if (!s->hit)
		return SKV_E_NOMEM;
	if (req->mode == SKV_LOOKUP_WINDOW && !(keys = reversed(keys, req->n_keys, a)))
		return SKV_E_NOMEM;
	rc = find_unread(p, s->inst, req, a, &s->gone);
	if (rc != SKV_OK)
		return rc;
	probe_begin(&pr, p, s->inst, keys, req->n_keys);
	if (req->mode == SKV_LOOKUP_WINDOW)
		find_window(&pr, req, s);
	else if (req->mode == SKV_LOOKUP_HYBRID)
		find_hybrid(&pr, req, s);
	else
		find_each(&pr, req, s);
	return SKV_OK;
}

static bool any_copy(const struct search *copies, const struct block *copy, const struct block *b)
{
	for (uint32_t s = 0; specs_left(copies->mask, s); s++)
		if ((copies->mask >> s & 1) && spec_is_copy(copy, b, s, &copies->gone))
			return true;
	return false;
}

int search_copies(const struct partition *p, const struct skv_lookup_req *req,
		  const struct search *s, struct skv_arena *a, struct search *copies)
{
	struct probe pr;
	int rc;

	ASSERT_SHARED(p);
	*copies = (struct search){ .inst = tier_copies(p, s->inst), .mask = s->mask,
				   .n_seen = s->n_seen };
	if (!copies->inst || !s->matched) {
		copies->inst = NULL;
		return SKV_OK;
	}
	assert(copies->inst != s->inst && copies->inst->spec.n_specs == s->inst->spec.n_specs);
	copies->hit = skv_arena_calloc(a, s->n_seen, sizeof *copies->hit);
	rc = copies->hit ? volumes_gone(p, copies->inst, req, a, &copies->gone)
			 : SKV_E_NOMEM;
	if (rc != SKV_OK)
		return rc;
	probe_begin(&pr, p, copies->inst, req->keys, s->n_seen);
	for (uint32_t i = 0; i < s->n_seen; i++) {
		struct block *b = probe_block(&pr, i);

		if (!b || !s->hit[i] || !any_copy(copies, b, s->hit[i]))
			continue;
		copies->hit[i] = b;
		copies->matched++;
	}
	return SKV_OK;
}

/* ---- lengths --------------------------------------------------------------------------------- */

int skv_core_lookup_length(struct skv_core *c, const struct skv_lookup_req *req, uint32_t *matched,
			   struct skv_arena *a, struct skv_error *err)
{
	struct search s;
	int rc = rules_gate(c, req->tenant, req->n_keys, err);

	if (rc != SKV_OK)
		return rc;
	if (req->n_keys > SKV_MAX_KEYS)
		return skv_fail(err, SKV_E_TOO_LARGE, "keys", "at most %u keys", SKV_MAX_KEYS);
	skv_rwlock_read(&c->lock);
	rc = c->partition ? search_run(c->partition, req, a, &s, err)
			  : gate_recovering(err);
	skv_rwlock_read_unlock(&c->lock);
	if (rc != SKV_OK)
		return rc;
	COUNT(c, match_keys, req->n_keys);
	*matched = s.matched;
	return SKV_OK;
}

int one_match(struct skv_core *c, const struct skv_match_req *req, struct skv_match_res *res,
	      struct skv_arena *a, struct skv_error *err)
{
	uint32_t *matched = skv_arena_calloc(a, req->n_instances, sizeof *matched);
	int rc = core_gate(c, err);

	if (rc == SKV_OK && !matched)
		rc = SKV_E_NOMEM;
	if (rc != SKV_OK)
		return rc;
	skv_rwlock_read(&c->lock);
	if (!c->partition)
		rc = gate_recovering(err);
	for (uint32_t i = 0; rc == SKV_OK && i < req->n_instances; i++) {
		struct instance *inst = NULL;
		char field[SKV_FIELD_MAX];
		struct unread gone;

		snprintf(field, sizeof field, "instances[%u]", i);
		rc = instance_need(c->partition, req->tenant, req->instances[i], field, &inst, err);
		if (rc == SKV_OK)
			rc = find_unread(c->partition, inst, NULL, a, &gone);
		if (rc == SKV_OK) {
			uint32_t mask = (uint32_t)((1ull << inst->spec.n_specs) - 1);
			const struct block *b;
			struct probe pr;

			probe_begin(&pr, c->partition, inst, req->keys, req->n_keys);
			while (matched[i] < req->n_keys && (b = probe_block(&pr, matched[i])) &&
			       has_all(b, mask, &gone))
				matched[i]++;
		}
	}
	skv_rwlock_read_unlock(&c->lock);
	if (rc != SKV_OK)
		return rc;
	COUNT(c, match_keys, (uint64_t)req->n_keys * req->n_instances);
	*res = (struct skv_match_res){ req->n_instances, req->instances, matched };
	return SKV_OK;
}
