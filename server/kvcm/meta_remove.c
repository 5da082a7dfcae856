/*
 * meta_remove.c - removeCache, trimCache.
 *
 * Locations that the mask of a removal omits stay, unlike in KVCM's own server. Both operations
 * apply to every location of a block, also those being written: the writer's finish then fails for
 * the block. No state.
 */
#include "meta.h"

#include <assert.h>

struct removal {
	struct skv_delete_req req;
	struct skv_delete_res res;
	struct kvcm_keys keys;
	struct skv_portions list;
};

/* Each portion is durable before the next. Even without keys the core is called: it checks the
 * instance. */
static int remove_portion(void *ctx)
{
	struct kvcm_request *k = ctx;
	struct removal *r = k->own;

	assert(r->list.at <= r->keys.n);
	r->req.keys = r->keys.v + r->list.at;
	r->req.n_keys = r->list.n;
	return skv_core_delete(kvcm_core(k), &r->req, &r->res, &k->c->arena, &k->c->err,
			       &r->list.done);
}

int kvcm_run_meta_removeCache(struct kvcm_request *k)
{
	const KvcmMeta__RemoveCacheRequest *req = k->req;
	struct removal *r = k->own = skv_arena_calloc(&k->c->arena, 1, sizeof *r);
	int rc;

	if (!r)
		return kvcm_nomem(k);
	rc = kvcm_take_keys(k, req->instance_id, req->block_keys, req->n_block_keys, req->token_ids,
			    req->n_token_ids, KVCM_MAX_KEYS, &r->keys);
	if (rc == SKV_OK)
		rc = kvcm_take_unmasked(k, (const ProtobufCMessage *)req->block_mask, &r->keys,
					NULL);
	if (rc != SKV_OK)
		return rc;
	r->req = (struct skv_delete_req){ .tenant = k->c->caller.tenant,
					  .instance = req->instance_id };
	r->list = (struct skv_portions){
		.total = r->keys.n, .ask = remove_portion, .ctx = k, .end = &k->c->done
	};
	return skv_portions_run(&r->list);
}

/* ---- trimCache ------------------------------------------------------------------------------- */

struct trim {
	union {
		struct skv_trim_req trim;
		struct skv_clear_req clear;
	} req;
	union {
		struct skv_trim_res trim;
		struct skv_clear_res clear;
	} res;
};

/* The whole instance is removed together, its open sessions too. */
static int remove_all(struct kvcm_request *k, struct trim *own, const char *instance)
{
	own->req.clear = (struct skv_clear_req){ .tenant = k->c->caller.tenant,
						 .instance = instance };
	return skv_core_clear(kvcm_core(k), &own->req.clear, &own->res.clear, &k->c->arena,
			      &k->c->err, &k->c->done);
}

static int remove_span(struct kvcm_request *k, struct trim *own,
		       const KvcmMeta__TrimCacheRequest *req)
{
	if (req->begin_timestamp < 0)
		return kvcm_missing(k, "begin_timestamp");
	if (req->end_timestamp < req->begin_timestamp)
		return kvcm_missing(k, "end_timestamp");
	own->req.trim = (struct skv_trim_req){
		.tenant = k->c->caller.tenant,
		.instance = req->instance_id,
		.from_ms = 1000u * (uint64_t)req->begin_timestamp,
		.to_ms = 1000u * (uint64_t)req->end_timestamp + 999,
	};
	return skv_core_trim(kvcm_core(k), &own->req.trim, &own->res.trim, &k->c->arena, &k->c->err,
			     &k->c->done);
}

int kvcm_run_meta_trimCache(struct kvcm_request *k)
{
	const KvcmMeta__TrimCacheRequest *req = k->req;
	struct trim *own = k->own = skv_arena_calloc(&k->c->arena, 1, sizeof *own);

	if (!own)
		return kvcm_nomem(k);
	switch (req->strategy) {
	case KVCM_META__TRIM_STRATEGY__TS_REMOVE_ALL_CACHE:
	case KVCM_META__TRIM_STRATEGY__TS_REMOVE_ALL_META:
		/* here there is no metadata without its cache */
		return remove_all(k, own, req->instance_id);
	case KVCM_META__TRIM_STRATEGY__TS_TIMESTAMP:
		return remove_span(k, own, req);
	default:
		return kvcm_missing(k, "strategy");
	}
}
