/*
 * meta_remove.c - removeCache.
 *
 * What the mask leaves out stays, which the peer's own server has yet to learn. No state.
 */
#include "meta.h"

struct removal {
	struct kvb_delete_req req;
	struct kvb_delete_res res;
};

int kvcm_run_meta_removeCache(struct kvcm_call *k)
{
	const KvcmMeta__RemoveCacheRequest *req = k->req;
	struct removal *r = k->own = kvb_arena_calloc(&k->c->arena, 1, sizeof *r);
	struct kvcm_keys keys;
	int rc;

	if (!r)
		return kvcm_nomem(k);
	rc = kvcm_take_keys(k, req->instance_id, req->block_keys, req->n_block_keys, req->token_ids, req->n_token_ids,
			    &keys);
	if (rc == KVB_OK)
		rc = kvcm_take_unmasked(k, (const ProtobufCMessage *)req->block_mask, &keys);
	if (rc != KVB_OK)
		return rc;
	r->req = (struct kvb_delete_req){ k->c->caller.tenant, req->instance_id, keys.v, keys.n };
	return kvb_core_delete(kvcm_core(k), &r->req, &r->res, &k->c->arena, &k->c->err, &k->c->done);
}
