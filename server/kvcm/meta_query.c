/*
 * meta_query.c - getCacheLocation, getCacheLocationLen.
 *
 * The peer's query types are modes of the core's lookup. A block is found if it has any spec, for a location of the
 * peer's need not have all; its answer then lacks the others. No state.
 */
#include "meta.h"

#include <string.h>

/* What both requests say. */
struct question {
	const char *instance;
	int type;
	int32_t sw_size;
	struct kvcm_keys keys;
};

struct query {
	struct skv_lookup_req req;
	struct skv_lookup_res res; /* of all portions together, at the end */
	struct kvcm_keys keys;
	struct skv_lookup_res *part[KVCM_MAX_PORTIONS];
	uint32_t n_parts;
	uint32_t at;   /* keys asked for */
	uint32_t rows; /* found so far, by a prefix; asked for, by a batch */
	struct skv_done done;
	struct kvcm_locations locations;
	char **names; /* specs to tell */
	size_t n_names;
};

static int take_type(struct kvcm_call *k, struct question *q)
{
	const KvcmMeta__InstanceInfo *info;
	int rc = SKV_OK;

	if (q->type == KVCM_META__QUERY_TYPE__QT_UNSPECIFIED) {
		rc = kvcm_take_info(k, q->instance, &info);
		if (rc == SKV_OK)
			q->type = (int)info->default_query_type;
	}
	if (rc == SKV_OK && (q->type < KVCM_META__QUERY_TYPE__QT_BATCH_GET ||
			     q->type > KVCM_META__QUERY_TYPE__QT_PREFIX_MATCH_WITH_MAMBA))
		rc = kvcm_missing(k, "query_type");
	return rc;
}

static int take_hybrid(struct kvcm_call *k, const struct question *q, struct skv_lookup_req *req)
{
	const KvcmMeta__InstanceInfo *info;
	int rc = kvcm_take_info(k, q->instance, &info);

	if (rc != SKV_OK)
		return rc;
	if (!kvcm_hybrid_columns(info, &req->full_specs, &req->state_specs))
		return skv_fail(&k->c->err, SKV_E_INVALID, "query_type",
				"instance %s has no group of specs beside those whose name begins with full, or none "
				"of these", q->instance);
	req->mode = SKV_LOOKUP_HYBRID;
	req->partial = false;
	req->drop = info->model_deployment && info->model_deployment->use_eagle_pop ? 1 : 0;
	return SKV_OK;
}

static int take_request(struct kvcm_call *k, const struct question *q, struct skv_lookup_req *req)
{
	*req = (struct skv_lookup_req){
		.tenant = k->c->caller.tenant,
		.instance = q->instance,
		.keys = q->keys.v,
		.n_keys = q->keys.n,
		.partial = true,
		.skip_disabled = true,
		.want_created = true,
	};
	switch (q->type) {
	case KVCM_META__QUERY_TYPE__QT_BATCH_GET:
		req->mode = SKV_LOOKUP_BATCH;
		return SKV_OK;
	case KVCM_META__QUERY_TYPE__QT_PREFIX_MATCH:
		req->mode = SKV_LOOKUP_PREFIX;
		return SKV_OK;
	case KVCM_META__QUERY_TYPE__QT_REVERSE_ROLL_SW_MATCH:
		if (q->sw_size <= 0 || (uint32_t)q->sw_size > q->keys.n)
			return kvcm_missing(k, "sw_size");
		req->mode = SKV_LOOKUP_WINDOW;
		req->window = (uint32_t)q->sw_size;
		return SKV_OK;
	default:
		return take_hybrid(k, q, req);
	}
}

static bool is_prefix(int type)
{
	return type == KVCM_META__QUERY_TYPE__QT_PREFIX_MATCH ||
	       type == KVCM_META__QUERY_TYPE__QT_PREFIX_MATCH_WITH_MAMBA;
}

/* ---- portions ---------------------------------------------------------------------------------- */

/* More keys than the core takes at once: only where each portion means something by itself. */
static int check_portions(struct kvcm_call *k, const struct question *q, bool tokens)
{
	const char *field = tokens ? "token_ids" : "block_keys";

	if (q->keys.n <= SKV_MAX_KEYS || q->type == KVCM_META__QUERY_TYPE__QT_PREFIX_MATCH ||
	    q->type == KVCM_META__QUERY_TYPE__QT_BATCH_GET)
		return SKV_OK;
	return skv_fail(&k->c->err, SKV_E_TOO_LARGE, field, "%s: %u blocks, %u at most with this query_type", field, q->keys.n,
			SKV_MAX_KEYS);
}

/* A batch answers every key. */
static int check_places(struct kvcm_call *k, const struct question *q, bool tokens)
{
	const char *field = tokens ? "token_ids" : "block_keys";
	const struct skv_instance_spec *spec;
	int rc;

	if (q->keys.n <= SKV_MAX_KEYS || q->type != KVCM_META__QUERY_TYPE__QT_BATCH_GET)
		return SKV_OK;
	rc = kvcm_take_instance(k, q->instance, &spec);
	if (rc == SKV_OK && (uint64_t)q->keys.n * spec->n_specs > KVCM_MAX_PLACES)
		return skv_fail(&k->c->err, SKV_E_TOO_LARGE, field, "%s: %u blocks of %u specs, %u at most in an answer", field,
				q->keys.n, spec->n_specs, KVCM_MAX_PLACES / spec->n_specs);
	return rc;
}

/* Is there more to ask for behind the newest portion? A prefix ends with its first miss, or when the answer is long enough:
 * a shorter prefix is as true. */
static bool goes_on(struct query *own)
{
	const struct skv_lookup_res *res = own->part[own->n_parts - 1];
	bool prefix = own->req.mode == SKV_LOOKUP_PREFIX;

	own->rows += prefix ? res->matched : res->n_keys;
	if (own->at == own->keys.n || (prefix && res->matched < res->n_keys))
		return false;
	return !prefix || (uint64_t)(own->rows + kvcm_portion(own->keys.n - own->at)) * res->n_specs <= KVCM_MAX_PLACES;
}

static int ask_on(struct kvcm_call *k)
{
	struct query *own = k->own;
	struct skv_lookup_res *res;
	int rc;

	do {
		res = skv_arena_calloc(&k->c->arena, 1, sizeof *res);
		if (!res)
			return kvcm_nomem(k);
		own->part[own->n_parts++] = res;
		own->req.keys = own->keys.v + own->at;
		own->req.n_keys = kvcm_portion(own->keys.n - own->at);
		own->at += own->req.n_keys;
		rc = skv_core_lookup(kvcm_core(k), &own->req, res, &k->c->arena, &k->c->err, &own->done);
	} while (rc == SKV_OK && goes_on(own));
	return rc;
}

static void asked(void *ctx, int status)
{
	struct kvcm_call *k = ctx;

	if (status == SKV_OK && goes_on(k->own))
		status = ask_on(k);
	if (status != SKV_PENDING)
		k->c->done.fn(k->c->done.ctx, status);
}

static bool room_for_all(struct kvcm_call *k, const struct query *own, struct skv_lookup_res *all)
{
	uint32_t files = 0;

	for (uint32_t i = 0; i < own->n_parts; i++)
		files += own->part[i]->files.n;
	all->loc = skv_arena_alloc(&k->c->arena, (own->rows * (size_t)all->n_specs + 1) * sizeof *all->loc);
	all->hit = skv_arena_alloc(&k->c->arena, own->rows + 1u);
	all->created_ms = skv_arena_calloc(&k->c->arena, own->rows + 1u, sizeof *all->created_ms);
	all->files.v = skv_arena_alloc(&k->c->arena, (files + 1u) * sizeof *all->files.v);
	return all->loc && all->hit && all->created_ms && all->files.v;
}

/* The rows of a portion behind those that are there; its files get numbers behind theirs. */
static void append_rows(struct skv_lookup_res *all, const struct skv_lookup_res *part, uint32_t n)
{
	struct skv_location *loc = all->loc + (size_t)all->n_keys * all->n_specs;

	for (uint32_t f = 0; f < part->files.n; f++)
		all->files.v[all->files.n + f] = part->files.v[f];
	for (size_t i = 0; i < (size_t)n * all->n_specs; i++) {
		loc[i] = part->loc[i];
		loc[i].file += all->files.n;
	}
	memcpy(all->hit + all->n_keys, part->hit, n * sizeof *all->hit);
	if (part->created_ms)
		memcpy(all->created_ms + all->n_keys, part->created_ms, n * sizeof *all->created_ms);
	all->files.n += part->files.n;
	all->n_keys += n;
	all->matched += part->matched;
}

/* own->res becomes what all portions have found. */
static int join(struct kvcm_call *k, struct query *own)
{
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

		if (part->n_specs != own->res.n_specs) /* registered anew in between */
			return skv_fail(&k->c->err, SKV_E_CONFLICT, NULL, "the instance was registered anew meanwhile");
		append_rows(&own->res, part, prefix ? part->matched : part->n_keys);
	}
	return SKV_OK;
}

/* ---- getCacheLocation -------------------------------------------------------------------------- */

int kvcm_run_meta_getCacheLocation(struct kvcm_call *k)
{
	const KvcmMeta__GetCacheLocationRequest *req = k->req;
	struct query *own = k->own = skv_arena_calloc(&k->c->arena, 1, sizeof *own);
	struct question q = { req->instance_id, (int)req->query_type, req->sw_size, { 0 } };
	int rc;

	if (!own)
		return kvcm_nomem(k);
	own->names = req->location_spec_names;
	own->n_names = req->n_location_spec_names;
	rc = kvcm_take_keys(k, q.instance, req->block_keys, req->n_block_keys, req->token_ids, req->n_token_ids,
			    KVCM_MAX_KEYS, &q.keys);
	if (rc == SKV_OK)
		rc = take_type(k, &q);
	if (rc == SKV_OK && is_prefix(q.type))
		rc = kvcm_take_unmasked(k, (const ProtobufCMessage *)req->block_mask, &q.keys);
	if (rc == SKV_OK)
		rc = check_portions(k, &q, req->n_block_keys == 0);
	if (rc == SKV_OK)
		rc = check_places(k, &q, req->n_block_keys == 0);
	if (rc == SKV_OK)
		rc = take_request(k, &q, &own->req);
	if (rc != SKV_OK)
		return rc;
	own->req.lease_ms = kvcm_lease_ms(k, q.instance);
	own->req.only_leased = true; /* the answer cannot say that what it names has no lease */
	own->req.slots_only = true;  /* it is read at its place, never asked for again in between */
	own->keys = q.keys;
	own->done = (struct skv_done){ asked, k };
	return ask_on(k);
}

int kvcm_write_locations(struct kvcm_call *k)
{
	struct query *own = k->own;
	const struct skv_lookup_res *res = &own->res;
	bool leading = own->req.mode == SKV_LOOKUP_PREFIX || own->req.mode == SKV_LOOKUP_HYBRID;
	int rc = join(k, own);

	if (rc != SKV_OK)
		return rc;
	own->locations = (struct kvcm_locations){
		.field = 2,
		.miss = KVCM_MISS_PLACEHOLDER,
		.files = &res->files,
		.roots = kvcm_roots(k, &res->files),
		.n_specs = res->n_specs,
		.specs = res->specs,
		.loc = res->loc,
		.columns = kvcm_columns((const char *const *)own->names, own->n_names, res->specs, res->n_specs),
		.n = leading ? res->matched : res->n_keys,
		.hit = res->hit,
		.status = KVCM_SERVING,
		.row_created_ms = res->created_ms,
	};
	if (!own->locations.roots)
		return kvcm_nomem(k);
	kvcm_splice(k, 0, &own->locations);
	return SKV_OK;
}

/* ---- getCacheLocationLen ----------------------------------------------------------------------- */

int kvcm_lengths(struct kvcm_call *k, const struct kvcm_keys *keys, struct skv_lookup_req *req, int64_t *sum)
{
	uint32_t matched, at = 0;
	int rc;

	do {
		matched = 0;
		req->keys = keys->v + at;
		req->n_keys = kvcm_portion(keys->n - at);
		at += req->n_keys;
		rc = skv_core_lookup_length(kvcm_core(k), req, &matched, &k->c->arena, &k->c->err);
		*sum += matched;
	} while (rc == SKV_OK && at < keys->n && (req->mode != SKV_LOOKUP_PREFIX || matched == req->n_keys));
	return rc;
}

int kvcm_run_meta_getCacheLocationLen(struct kvcm_call *k)
{
	const KvcmMeta__GetCacheLocationLenRequest *req = k->req;
	struct question q = { req->instance_id, (int)req->query_type, req->sw_size, { 0 } };
	KvcmMeta__GetCacheLocationLenResponse *res = k->res;
	struct skv_lookup_req lookup;
	int rc = kvcm_take_keys(k, q.instance, req->block_keys, req->n_block_keys, req->token_ids, req->n_token_ids,
				KVCM_MAX_KEYS, &q.keys);

	if (rc == SKV_OK)
		rc = take_type(k, &q);
	if (rc == SKV_OK)
		rc = check_portions(k, &q, req->n_block_keys == 0);
	if (rc == SKV_OK)
		rc = take_request(k, &q, &lookup);
	if (rc == SKV_OK)
		rc = kvcm_lengths(k, &q.keys, &lookup, &res->cache_location_len);
	return rc;
}
