/*
 * meta_query.c - getCacheLocation, getCacheLocationLen.
 *
 * The peer's query types are modes of the core's lookup. A block is found if it has any spec, for a location of the
 * peer's need not have all; its answer then lacks the others. No state.
 */
#include "meta.h"

/* What both requests say. */
struct question {
	const char *instance;
	int type;
	int32_t sw_size;
	struct kvcm_keys keys;
};

struct query {
	struct skv_lookup_req req;
	struct skv_lookup_res res;
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
			    &q.keys);
	if (rc == SKV_OK)
		rc = take_type(k, &q);
	if (rc == SKV_OK && is_prefix(q.type))
		rc = kvcm_take_unmasked(k, (const ProtobufCMessage *)req->block_mask, &q.keys);
	if (rc == SKV_OK)
		rc = take_request(k, &q, &own->req);
	if (rc != SKV_OK)
		return rc;
	own->req.lease_ms = kvcm_lease_ms(k, q.instance);
	own->req.only_leased = true; /* the answer cannot say that what it names has no lease */
	return skv_core_lookup(kvcm_core(k), &own->req, &own->res, &k->c->arena, &k->c->err, &k->c->done);
}

int kvcm_write_locations(struct kvcm_call *k)
{
	struct query *own = k->own;
	const struct skv_lookup_res *res = &own->res;
	bool leading = own->req.mode == SKV_LOOKUP_PREFIX || own->req.mode == SKV_LOOKUP_HYBRID;

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

int kvcm_run_meta_getCacheLocationLen(struct kvcm_call *k)
{
	const KvcmMeta__GetCacheLocationLenRequest *req = k->req;
	struct question q = { req->instance_id, (int)req->query_type, req->sw_size, { 0 } };
	KvcmMeta__GetCacheLocationLenResponse *res = k->res;
	struct skv_lookup_req lookup;
	uint32_t matched = 0;
	int rc = kvcm_take_keys(k, q.instance, req->block_keys, req->n_block_keys, req->token_ids, req->n_token_ids,
				&q.keys);

	if (rc == SKV_OK)
		rc = take_type(k, &q);
	if (rc == SKV_OK)
		rc = take_request(k, &q, &lookup);
	if (rc == SKV_OK)
		rc = skv_core_lookup_length(kvcm_core(k), &lookup, &matched, &k->c->arena, &k->c->err);
	res->cache_location_len = matched;
	return rc;
}
