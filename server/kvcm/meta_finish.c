/*
 * meta_finish.c - finishWriteCache.
 *
 * A session belongs to its instance, may be finished twice in the same way, and a mask that does
 * not fit leaves it open: KVCM's own server does neither. A different finish of an ended session
 * fails, as in KVCM, and so does one that names removed blocks as written; its other blocks are
 * committed.
 *
 * Its writers give no checksums. So before a finish commits, the manager checks the slots, as far
 * as it can (storage/written.c): blocks that have not arrived are not stored, and the call is an
 * error. A check that may block runs on the service's lookers. No state.
 */
#include "meta.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include <skv/clock.h>
#include <skv/log.h>
#include <skv/service.h>

struct finish {
	struct skv_finish_req req; /* as the client sent it; if it is refused, that all failed */
	struct kvcm_request *k;
	struct job look;
	struct skv_written_res written; /* where to look */
	bool refused;
	struct skv_error why;
	struct skv_finish_res res;
	uint32_t committed;
	/* The parts of a session that is several (sessions.c); n_parts 0: a single session. Each
	 * part is finished, whatever the result of earlier parts. */
	struct kvcm_session part[KVCM_MAX_PORTIONS];
	uint32_t n_parts;
	struct skv_portions list; /* the sessions, one by one */
	uint32_t at;              /* offset in the blocks of the request */
	struct skv_finish_req part_req;
	struct skv_error err; /* of the first that failed, and */
	int status;           /* status of that part */
};

/* A session in which there was nothing to write. */
static int finish_empty(struct kvcm_request *k, enum kvcm_empty state,
			const struct skv_finish_req *req)
{
	const struct skv_instance_spec *spec;
	int rc = kvcm_take_instance(k, req->instance, &spec);

	if (rc != SKV_OK)
		return rc;
	if (state == KVCM_EMPTY_OVER)
		return skv_fail(&k->c->err, SKV_E_SESSION_EXPIRED, NULL,
				"the session's deadline has passed");
	if (req->mask_count > 0)
		return skv_fail(&k->c->err, SKV_E_INVALID, "success_blocks",
				"success_blocks: the session has no blocks to write");
	return SKV_OK;
}

/* ---- a session that is several --------------------------------------------------------------- */

static int check_mask(struct kvcm_request *k, const struct finish *own)
{
	const struct skv_finish_req *req = &own->req;
	uint32_t n = 0;

	for (uint32_t i = 0; i < own->n_parts; i++)
		n += own->part[i].n_blocks;
	if (req->mask_kind == SKV_MASK_BITS ? req->mask_count == n : req->mask_count <= n)
		return SKV_OK;
	return skv_fail(&k->c->err, SKV_E_INVALID, "success_blocks",
			"success_blocks: %u told, the session writes %u blocks", req->mask_count,
			n);
}

/* Finishes one, with the part of the mask that is about it. */
static int finish_part(void *ctx)
{
	struct kvcm_request *k = ctx;
	struct finish *own = k->own;
	const struct kvcm_session *part = &own->part[own->list.at];
	const struct skv_finish_req *req = &own->req;
	uint32_t left = req->mask_count > own->at ? req->mask_count - own->at : 0;

	assert(req->mask_kind != SKV_MASK_BITS || part->n_blocks <= left);
	own->part_req = *req;
	own->part_req.session = part->id;
	own->part_req.mask_count =
		req->mask_kind == SKV_MASK_BITS || left > part->n_blocks ? part->n_blocks : left;
	own->part_req.mask = req->mask_kind == SKV_MASK_BITS ? req->mask + own->at : NULL;
	own->at += part->n_blocks;
	return skv_core_finish(kvcm_core(k), &own->part_req, &own->res, &k->c->arena, &k->c->err,
			       &own->list.done);
}

static bool take_part(void *ctx, int *status)
{
	struct kvcm_request *k = ctx;
	struct finish *own = k->own;

	if (*status == SKV_OK) {
		own->committed += own->res.committed;
	} else if (own->status == SKV_OK) {
		own->status = *status;
		own->err = k->c->err;
	}
	if (own->status != SKV_OK)
		k->c->err = own->err;
	*status = own->status;
	return true;
}

/* ---- was it written? ------------------------------------------------------------------------- */

static int finish_now(struct kvcm_request *k)
{
	struct finish *own = k->own;

	if (own->n_parts > 0)
		return skv_portions_run(&own->list);
	return skv_core_finish(kvcm_core(k), &own->req, &own->res, &k->c->arena, &k->c->err,
			       &k->c->done);
}

/* On a thread that may block. A refused session ends without blocks: it would be refused again. */
static void look(struct job *job, bool expired)
{
	struct finish *own = (struct finish *)((char *)job - offsetof(struct finish, look));
	struct kvcm_request *k = own->k;
	int rc;

	if (expired) {
		rc = skv_fail(&k->c->err, SKV_E_TIMEOUT, NULL,
			      "earlier looks at slab files hang; this session was not finished");
	} else {
		own->refused = skv_core_written_check(kvcm_core(k), &own->written, &own->why) !=
			       SKV_OK;
		if (own->refused) {
			own->req.mask_kind = SKV_MASK_COUNT;
			own->req.mask_count = 0;
			skv_log(SKV_LOG_WARN, "kvcm", "finishWriteCache: %s", own->why.message);
		}
		rc = finish_now(k);
	}
	if (rc != SKV_PENDING)
		k->c->done.fn(k->c->done.ctx, rc);
}

/* Finishes after a look, if there is something to look at: of several sessions in one at the
 * first, whose blocks the same hosts have written. */
static int finish_after_look(struct kvcm_request *k)
{
	struct finish *own = k->own;
	struct skv_finish_req first = own->req;
	struct skv_error ignored;

	own->k = k;
	if (own->n_parts > 0) {
		first.session = own->part[0].id;
		if (first.mask_count > own->part[0].n_blocks)
			first.mask_count = own->part[0].n_blocks;
	}
	if (!kvcm_of(k)->check_writes ||
	    skv_core_written(kvcm_core(k), &first, &own->written, &k->c->arena, &ignored) !=
		    SKV_OK ||
	    skv_core_written_glance(kvcm_core(k), &own->written))
		return finish_now(k);
	own->look.run = look;
	if (skv_workers_submit(&k->c->s->lookers, &own->look, skv_now_ms(&skv_clock_system)))
		return SKV_PENDING;
	return skv_fail(&k->c->err, SKV_E_TOO_MANY, NULL,
			"too many finishes wait for a look at their slab files");
}

/* ---- the operation --------------------------------------------------------------------------- */

int kvcm_run_meta_finishWriteCache(struct kvcm_request *k)
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
	own->n_parts = kvcm_sessions_read(req->write_session_id, own->part);
	if (own->n_parts > 0) {
		own->list = (struct skv_portions){ .total = own->n_parts,
						   .most = 1,
						   .ask = finish_part,
						   .take = take_part,
						   .ctx = k,
						   .end = &k->c->done };
		rc = check_mask(k, own);
		return rc == SKV_OK ? finish_after_look(k) : rc;
	}
	if (!skv_key_from_hex(req->write_session_id, strlen(req->write_session_id), &ignored))
		return skv_fail(&k->c->err, SKV_E_NOT_FOUND, "write_session_id",
				"no such session, or it is over");
	return finish_after_look(k);
}

static uint32_t told(const struct skv_finish_req *req)
{
	uint32_t n = req->mask_kind == SKV_MASK_COUNT ? req->mask_count : 0;

	for (uint32_t i = 0; req->mask_kind == SKV_MASK_BITS && i < req->mask_count; i++)
		n += req->mask[i];
	return n;
}

int kvcm_write_finish(struct kvcm_request *k)
{
	const struct finish *own = k->own;
	uint32_t n = told(&own->req),
		 committed = own->n_parts ? own->committed : own->res.committed;

	if (own->refused) {
		k->c->err = own->why;
		return own->why.status;
	}
	if (committed >= n)
		return SKV_OK;
	return skv_fail(&k->c->err, SKV_E_SESSION_ENDED, NULL,
			"%u of the blocks were removed while they were being written",
			n - committed);
}
