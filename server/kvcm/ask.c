/*
 * ask.c - lookups of more keys than the core takes at once: the answers of all portions
 * (skv/portions.h) become one.
 *
 * Only for modes in which each portion is meaningful by itself: a prefix, which ends with its first
 * miss, or keys one by one. Modes that count from the end (windows, states) first find their
 * position by lengths, which lease and use nothing, and then look the blocks up. No consistency is
 * guaranteed between two portions: a block that is removed meanwhile is a miss. No state.
 */
#include "meta.h"

#include <assert.h>
#include <string.h>

/* ---- lookups --------------------------------------------------------------------------------- */

/* Returns true if another portion is needed. A prefix ends with its first miss, or when the answer
 * is long enough: a shorter prefix is as true. */
static bool take_portion(void *ctx, int *status)
{
	struct kvcm_ask *own = ctx;
	const struct skv_lookup_res *res = own->part[own->n_parts - 1];
	const bool prefix = own->req.mode == SKV_LOOKUP_PREFIX;
	const uint32_t left = own->list.total - own->list.at - own->list.n;

	if (*status != SKV_OK)
		return false;
	assert(res->n_keys <= own->list.n && res->matched <= res->n_keys);
	own->rows += prefix ? res->matched : res->n_keys;
	if (!prefix)
		return true;
	return res->matched == res->n_keys &&
	       (uint64_t)(own->rows + skv_portion(left)) * res->n_specs <= KVCM_MAX_PLACES;
}

static int ask_portion(void *ctx)
{
	struct kvcm_ask *own = ctx;
	struct skv_arena *a = &own->k->c->arena;
	struct skv_lookup_res *res = skv_arena_calloc(a, 1, sizeof *res);

	if (!res)
		return kvcm_nomem(own->k);
	assert(own->n_parts < sizeof own->part / sizeof own->part[0]);
	own->part[own->n_parts++] = res;
	own->req.keys = own->keys.v + own->list.at;
	own->req.n_keys = own->list.n;
	return skv_core_lookup(kvcm_core(own->k), &own->req, res, a, &own->k->c->err,
			       &own->list.done);
}

int kvcm_ask(struct kvcm_request *k, const struct kvcm_keys *keys, struct kvcm_ask *ask)
{
	ask->k = k;
	ask->keys = *keys;
	ask->list = (struct skv_portions){ .total = keys->n,
					   .ask = ask_portion,
					   .take = take_portion,
					   .ctx = ask,
					   .end = &k->c->done };
	return skv_portions_run(&ask->list);
}

static bool room_for_all(struct kvcm_request *k, const struct kvcm_ask *own,
			 struct skv_lookup_res *all)
{
	uint32_t files = 0;

	for (uint32_t i = 0; i < own->n_parts; i++)
		files += own->part[i]->files.n;
	all->loc = skv_arena_alloc(&k->c->arena,
				   (own->rows * (size_t)all->n_specs + 1) * sizeof *all->loc);
	all->hit = skv_arena_alloc(&k->c->arena, own->rows + 1u);
	all->created_ms = skv_arena_calloc(&k->c->arena, own->rows + 1u, sizeof *all->created_ms);
	all->files.v = skv_arena_alloc(&k->c->arena, (files + 1u) * sizeof *all->files.v);
	return all->loc && all->hit && all->created_ms && all->files.v;
}

static void append_rows(struct skv_lookup_res *all, const struct skv_lookup_res *part, uint32_t n)
{
	assert(part->n_specs == all->n_specs && n <= part->n_keys);
	kvcm_append_places(&all->files, all->loc + (size_t)all->n_keys * all->n_specs,
			   &part->files, part->loc, (size_t)n * all->n_specs);
	memcpy(all->hit + all->n_keys, part->hit, n * sizeof *all->hit);
	if (part->created_ms)
		memcpy(all->created_ms + all->n_keys, part->created_ms,
		       n * sizeof *all->created_ms);
	all->n_keys += n;
	all->matched += part->matched;
}

int kvcm_ask_join(struct kvcm_ask *own)
{
	struct kvcm_request *k = own->k;
	bool prefix = own->req.mode == SKV_LOOKUP_PREFIX;

	own->res = *own->part[0];
	if (own->n_parts == 1)
		return SKV_OK;
	own->res.n_keys = own->res.matched = 0;
	own->res.files = (struct skv_files){ 0 };
	if (!room_for_all(k, own, &own->res))
		return kvcm_nomem(k);
	for (uint32_t i = 0; i < own->n_parts; i++) {
		const struct skv_lookup_res *part = own->part[i];

		if (part->n_specs != own->res.n_specs) /* registered again meanwhile */
			return skv_fail(&k->c->err, SKV_E_CONFLICT, NULL,
					"the instance was registered again meanwhile");
		assert(own->res.n_keys + (prefix ? part->matched : part->n_keys) <= own->rows);
		append_rows(&own->res, part, prefix ? part->matched : part->n_keys);
	}
	return SKV_OK;
}

int kvcm_ask_place(struct kvcm_ask *own, uint32_t at, uint32_t n)
{
	struct skv_lookup_res part = own->res;
	struct skv_lookup_res *all = &own->res;

	assert(at <= n && part.n_keys <= n - at);
	own->rows = n;
	if (!room_for_all(own->k, own, all))
		return kvcm_nomem(own->k);
	memset(all->hit, 0, n);
	memcpy(all->hit + at, part.hit, part.n_keys);
	memcpy(all->loc + (size_t)at * all->n_specs, part.loc,
	       (size_t)part.n_keys * all->n_specs * sizeof *all->loc);
	if (part.created_ms)
		memcpy(all->created_ms + at, part.created_ms,
		       part.n_keys * sizeof *all->created_ms);
	all->files = part.files;
	all->n_keys = n;
	return SKV_OK;
}

/* ---- lengths --------------------------------------------------------------------------------- */

static int length(struct kvcm_request *k, const struct kvcm_keys *keys, struct skv_lookup_req *req,
		  uint32_t begin, uint32_t end, uint32_t *matched)
{
	int rc;

	assert(begin <= end && end <= keys->n);
	*matched = 0;
	req->keys = keys->v + begin;
	req->n_keys = end - begin;
	rc = skv_core_lookup_length(kvcm_core(k), req, matched, &k->c->arena, &k->c->err);
	assert(*matched <= end - begin);
	return rc;
}

int kvcm_lengths(struct kvcm_request *k, const struct kvcm_keys *keys,
		 const struct skv_lookup_req *how, uint32_t *sum)
{
	const bool each = how->mode == SKV_LOOKUP_BATCH;
	struct skv_lookup_req req = *how;
	uint32_t matched, at = 0, n;
	int rc;

	*sum = 0;
	do {
		n = skv_portion(keys->n - at);
		rc = length(k, keys, &req, at, at + n, &matched);
		at += n;
		*sum += matched;
	} while (rc == SKV_OK && at < keys->n && (each || matched == n));
	return rc;
}

/* From the end on, each portion with all but one key of a window of the one behind it. */
int kvcm_find_window(struct kvcm_request *k, const struct kvcm_keys *keys,
		     const struct skv_lookup_req *how, uint32_t *begin, uint32_t *n)
{
	struct skv_lookup_req req = *how;
	uint32_t end = keys->n, matched;
	int rc;

	assert(req.window > 0);
	do {
		*begin = end - skv_portion(end);
		*n = end - *begin;
		rc = length(k, keys, &req, *begin, end, &matched);
		end = *begin + req.window - 1;
	} while (rc == SKV_OK && !matched && *begin > 0);
	return rc;
}

/* How long the prefix with all specs of full attention is; then the last block
 * in it that has the states. */
int kvcm_find_states(struct kvcm_request *k, const struct kvcm_keys *keys,
		     const struct skv_lookup_req *how, uint32_t *out)
{
	struct skv_lookup_req req = *how;
	uint32_t at, n, matched;
	int rc;

	req.drop = 0;
	req.state_specs = how->full_specs;
	rc = kvcm_lengths(k, keys, &req, &at);
	req.state_specs = how->state_specs;
	at -= how->drop < at ? how->drop : at;
	for (*out = 0; rc == SKV_OK && at > 0 && *out == 0; at -= n) {
		n = skv_portion(at);
		rc = length(k, keys, &req, at - n, at, &matched);
		*out = matched ? at - n + matched : 0;
	}
	return rc;
}
