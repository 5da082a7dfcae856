/*
 * meta_query.c - getCacheLocation, getCacheLocationLen.
 *
 * KVCM's query types are modes of the core's lookup. A block is found if it has any spec, because a
 * location of KVCM need not have all; its answer then lacks the others. Long requests: ask.c. No
 * state.
 */
#include "meta.h"

#include <assert.h>
#include <string.h>

/* The common fields of both requests. */
struct question {
	const char *instance;
	int type;
	int32_t sw_size;
	struct kvcm_keys keys;
};

struct query {
	struct kvcm_ask ask;
	uint32_t n;    /* keys of the request; of a window, one portion is requested, */
	uint32_t at;   /* from here on */
	struct kvcm_locations locations;
	char **names; /* specs to report */
	size_t n_names;
};

static int take_type(struct kvcm_request *k, struct question *q)
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

static int take_hybrid(struct kvcm_request *k, const struct question *q, struct skv_lookup_req *req)
{
	const KvcmMeta__InstanceInfo *info;
	int rc = kvcm_take_info(k, q->instance, &info);

	if (rc != SKV_OK)
		return rc;
	if (!kvcm_hybrid_columns(info, &req->full_specs, &req->state_specs))
		return skv_fail(
			&k->c->err, SKV_E_INVALID, "query_type",
			"instance %s has no group of specs beside those whose name begins with "
			"full, or none of these",
			q->instance);
	req->mode = SKV_LOOKUP_HYBRID;
	req->partial = false;
	req->drop = info->model_deployment && info->model_deployment->use_eagle_pop ? 1 : 0;
	return SKV_OK;
}

static int take_request(struct kvcm_request *k, const struct question *q,
			struct skv_lookup_req *req)
{
	*req = (struct skv_lookup_req){
		.tenant = k->c->caller.tenant,
		.instance = q->instance,
		.keys = q->keys.v,
		.n_keys = q->keys.n,
		.partial = true,
		.skip_disabled = true,
		.files_only = true,
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

/* ---- long requests --------------------------------------------------------------------------- */

/* A window is looked for in portions that overlap by it. */
static int check_window(struct kvcm_request *k, const struct question *q)
{
	const bool window = q->type == KVCM_META__QUERY_TYPE__QT_REVERSE_ROLL_SW_MATCH;

	if (!window || q->keys.n <= SKV_MAX_KEYS || q->sw_size <= (int32_t)SKV_MAX_KEYS / 2)
		return SKV_OK;
	return skv_fail(&k->c->err, SKV_E_TOO_LARGE, "sw_size",
			"sw_size: %d, %u at most for more than %u blocks", q->sw_size,
			SKV_MAX_KEYS / 2, SKV_MAX_KEYS);
}

/* Finds the keys to look up for a long request that counts from its end: *keys is reduced to
 * them. */
static int narrow(struct kvcm_request *k, struct query *own, struct kvcm_keys *keys)
{
	struct skv_lookup_req *req = &own->ask.req;
	uint32_t n = 0;
	int rc = SKV_OK;

	own->n = keys->n;
	if (keys->n <= SKV_MAX_KEYS)
		return SKV_OK;
	if (req->mode == SKV_LOOKUP_WINDOW) {
		rc = kvcm_find_window(k, keys, req, &own->at, &n);
		assert(rc != SKV_OK || (own->at <= keys->n && n <= keys->n - own->at));
		*keys = (struct kvcm_keys){ keys->v + own->at, n };
	} else if (req->mode == SKV_LOOKUP_HYBRID) {
		rc = kvcm_find_states(k, keys, req, &n);
		keys->n = n ? n : skv_portion(keys->n);
		req->drop = n ? 0 : req->drop;
		if (n > SKV_MAX_KEYS) {
			req->mode = SKV_LOOKUP_PREFIX; /* with the states at its end: keep_states */
			req->partial = true;
		}
	}
	return rc;
}

static bool row_has(const struct skv_lookup_res *res, uint32_t row, uint32_t specs)
{
	assert(row < res->n_keys);
	for (uint32_t s = 0; s < res->n_specs; s++)
		if (specs >> s & 1 && !res->loc[(size_t)row * res->n_specs + s].length)
			return false;
	return true;
}

/* The prefix as far as it ends with states: some may have gone, or the answer
 * may be full before its end. */
static void keep_states(const struct query *own, struct skv_lookup_res *res)
{
	uint32_t n = 0;

	while (n < res->matched && row_has(res, n, own->ask.req.full_specs))
		n++;
	while (n && !row_has(res, n - 1, own->ask.req.state_specs))
		n--;
	res->matched = n;
}

/* ---- getCacheLocation ------------------------------------------------------------------------ */

int kvcm_run_meta_getCacheLocation(struct kvcm_request *k)
{
	const KvcmMeta__GetCacheLocationRequest *req = k->req;
	struct query *own = k->own = skv_arena_calloc(&k->c->arena, 1, sizeof *own);
	struct question q = { req->instance_id, (int)req->query_type, req->sw_size, { 0 } };
	int rc;

	if (!own)
		return kvcm_nomem(k);
	own->names = req->location_spec_names;
	own->n_names = req->n_location_spec_names;
	rc = kvcm_take_keys(k, q.instance, req->block_keys, req->n_block_keys, req->token_ids,
			    req->n_token_ids, KVCM_MAX_KEYS, &q.keys);
	if (rc == SKV_OK)
		rc = take_type(k, &q);
	if (rc == SKV_OK && is_prefix(q.type))
		rc = kvcm_take_unmasked(k, (const ProtobufCMessage *)req->block_mask, &q.keys,
					NULL);
	if (rc == SKV_OK && !is_prefix(q.type)) /* all keys are answered */
		rc = kvcm_check_places(k, q.instance, q.keys.n, 0, req->n_block_keys == 0);
	if (rc == SKV_OK)
		rc = check_window(k, &q);
	if (rc == SKV_OK)
		rc = take_request(k, &q, &own->ask.req);
	if (rc == SKV_OK)
		rc = narrow(k, own, &q.keys);
	if (rc != SKV_OK)
		return rc;
	own->ask.req.lease_ms = kvcm_lease_ms(k, q.instance);
	own->ask.req.only_leased = true; /* the answer cannot mark a location without a lease */
	/* clients read the location directly, without another lookup */
	own->ask.req.slots_only = true;
	return kvcm_ask(k, &q.keys, &own->ask);
}

int kvcm_write_locations(struct kvcm_request *k)
{
	struct query *own = k->own;
	struct skv_lookup_res *res = &own->ask.res;
	bool leading =
		own->ask.req.mode == SKV_LOOKUP_PREFIX || own->ask.req.mode == SKV_LOOKUP_HYBRID;
	int rc = kvcm_ask_join(&own->ask);

	if (rc == SKV_OK && own->n > res->n_keys && own->ask.req.mode == SKV_LOOKUP_WINDOW)
		rc = kvcm_ask_place(&own->ask, own->at, own->n);
	if (rc != SKV_OK)
		return rc;
	if (own->ask.req.mode == SKV_LOOKUP_PREFIX && own->ask.req.state_specs)
		keep_states(own, res);
	own->locations = (struct kvcm_locations){
		.field = 2,
		.miss = KVCM_MISS_PLACEHOLDER,
		.files = &res->files,
		.roots = kvcm_roots(k, &res->files, true),
		.n_specs = res->n_specs,
		.specs = res->specs,
		.loc = res->loc,
		.columns = kvcm_columns((const char *const *)own->names, own->n_names, res->specs,
					res->n_specs),
		.n = leading ? res->matched : res->n_keys,
		.hit = res->hit,
		.status = KVCM_SERVING,
		.row_created_ms = res->created_ms,
	};
	if (!own->locations.roots)
		return kvcm_nomem(k);
	assert(own->locations.n <= res->n_keys);
	kvcm_splice(k, 0, &own->locations);
	return SKV_OK;
}

/* ---- getCacheLocationLen --------------------------------------------------------------------- */

/* As the query would find it. */
static int take_length(struct kvcm_request *k, const struct kvcm_keys *keys,
		       struct skv_lookup_req *req, uint32_t *out)
{
	struct kvcm_keys all = *keys;
	uint32_t at;
	int rc;

	if (keys->n > SKV_MAX_KEYS && req->mode == SKV_LOOKUP_HYBRID)
		return kvcm_find_states(k, keys, req, out);
	if (keys->n > SKV_MAX_KEYS && req->mode == SKV_LOOKUP_WINDOW) {
		rc = kvcm_find_window(k, keys, req, &at, &all.n);
		if (rc != SKV_OK)
			return rc;
		all.v = keys->v + at;
	}
	return kvcm_lengths(k, &all, req, out);
}

int kvcm_run_meta_getCacheLocationLen(struct kvcm_request *k)
{
	const KvcmMeta__GetCacheLocationLenRequest *req = k->req;
	struct question q = { req->instance_id, (int)req->query_type, req->sw_size, { 0 } };
	KvcmMeta__GetCacheLocationLenResponse *res = k->res;
	struct skv_lookup_req lookup;
	uint32_t n = 0;
	int rc = kvcm_take_keys(k, q.instance, req->block_keys, req->n_block_keys, req->token_ids,
				req->n_token_ids, KVCM_MAX_KEYS, &q.keys);

	if (rc == SKV_OK)
		rc = take_type(k, &q);
	if (rc == SKV_OK)
		rc = check_window(k, &q);
	if (rc == SKV_OK)
		rc = take_request(k, &q, &lookup);
	if (rc == SKV_OK)
		rc = take_length(k, &q.keys, &lookup, &n);
	res->cache_location_len = n;
	return rc;
}
