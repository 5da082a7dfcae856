/*
 * meta_finish.c - finishWriteCache.
 *
 * A session belongs to its instance, may be finished twice in the same way, and a mask that does not fit leaves it open:
 * the peer's does neither. Another finish of a session that is over fails, as the peer's does, and so does one that names
 * blocks as written which were removed meanwhile; the others of it are committed. No state.
 */
#include "meta.h"

#include <string.h>

struct finish {
	struct skv_finish_req req;
	struct skv_finish_res res;
};

/* A session in which there was nothing to write. */
static int finish_empty(struct kvcm_call *k, enum kvcm_empty state, const struct skv_finish_req *req)
{
	const struct skv_instance_spec *spec;
	int rc = kvcm_take_instance(k, req->instance, &spec);

	if (rc != SKV_OK)
		return rc;
	if (state == KVCM_EMPTY_OVER)
		return skv_fail(&k->c->err, SKV_E_SESSION_EXPIRED, NULL, "the session's deadline has passed");
	if (req->mask_count > 0)
		return skv_fail(&k->c->err, SKV_E_INVALID, "success_blocks",
				"success_blocks: the session has no blocks to write");
	return SKV_OK;
}

int kvcm_run_meta_finishWriteCache(struct kvcm_call *k)
{
	const KvcmMeta__FinishWriteCacheRequest *req = k->req;
	struct finish *own = k->own = skv_arena_calloc(&k->c->arena, 1, sizeof *own);
	struct skv_key ignored;
	struct kvcm_mask mask;
	enum kvcm_empty empty;
	int rc;

	if (!own)
		return kvcm_nomem(k);
	if (!*req->write_session_id)
		return kvcm_missing(k, "write_session_id");
	if (!req->success_blocks)
		return kvcm_missing(k, "success_blocks");
	own->req = (struct skv_finish_req){
		.tenant = k->c->caller.tenant,
		.instance = req->instance_id,
		.session = req->write_session_id,
	};
	mask = kvcm_mask_of((const ProtobufCMessage *)req->success_blocks);
	rc = kvcm_mask_finish(&mask, &k->c->arena, &own->req, &k->c->err);
	if (rc != SKV_OK)
		return rc;
	empty = kvcm_empty_check(k, req->instance_id, req->write_session_id);
	if (empty != KVCM_EMPTY_NONE)
		return finish_empty(k, empty, &own->req);
	if (!skv_key_from_hex(req->write_session_id, strlen(req->write_session_id), &ignored))
		return skv_fail(&k->c->err, SKV_E_NOT_FOUND, "write_session_id", "no such session, or it is over");
	return skv_core_finish(kvcm_core(k), &own->req, &own->res, &k->c->arena, &k->c->err, &k->c->done);
}

static uint32_t told(const struct skv_finish_req *req)
{
	uint32_t n = req->mask_kind == SKV_MASK_COUNT ? req->mask_count : 0;

	for (uint32_t i = 0; req->mask_kind == SKV_MASK_BITS && i < req->mask_count; i++)
		n += req->mask[i];
	return n;
}

int kvcm_write_finish(struct kvcm_call *k)
{
	const struct finish *own = k->own;
	uint32_t n = told(&own->req);

	if (own->res.committed >= n)
		return SKV_OK;
	return skv_fail(&k->c->err, SKV_E_SESSION_ENDED, NULL, "%u of the blocks were removed while they were being written",
			n - own->res.committed);
}
