/*
 * delete.c - deletes blocks by key, including those being written, or all blocks of an instance.
 *
 * Deleted blocks are misses at once (remove.c, clear.c); the call is answered when that is durable.
 */
#include <skv/mem.h>

#include <assert.h>
#include <lock/core.h>
#include <lock/gate.h>
#include <lock/lock.h>
#include <lock/one.h>
#include <model/block.h>
#include <model/find.h>
#include <model/index.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/table.h>
#include <model/tier.h>
#include <journal/change.h>
#include <evict/clear.h>
#include <evict/remove.h>
#include "revoke.h"
#include <ops/partial.h>

struct delete_op {
	struct waiter w;
	struct skv_delete_res done; /* once it is durable */
};

static int fill_delete(struct waiter *w, struct partition *p, const struct change *ch, int status)
{
	(void)p;
	(void)ch;
	if (status == SKV_OK)
		*(struct skv_delete_res *)w->res = ((struct delete_op *)w)->done;
	return status;
}

static int pick_keys(struct partition *p, const struct instance *inst,
		     const struct skv_delete_req *req, struct picks *k, struct skv_delete_res *res)
{
	ASSERT_EXCLUSIVE(p);
	for (uint32_t i = 0; i < req->n_keys; i++) {
		struct block *b = index_find(p, inst, req->keys[i]);

		if (!b || !block_has_committed(inst, b))
			continue;
		res->pinned += b->pinned;
		if (remove_mark(p, k, b) != SKV_OK) {
			remove_cancel(p, k);
			return SKV_E_NOMEM;
		}
	}
	return SKV_OK;
}

/* Queues both; *last is the change to wait for, NULL = nothing to do. */
static int queue_delete(struct partition *p, struct picks *k, struct partial *revoked,
			struct change **last)
{
	int rc = SKV_OK;

	ASSERT_EXCLUSIVE(p);
	*last = NULL;
	if (k->n)
		rc = remove_queue(p, k, last);
	if (rc != SKV_OK)
		return rc;
	if (revoked) {
		change_queue(p, &revoked->change);
		*last = &revoked->change;
	}
	return SKV_OK;
}

static int delete_again(struct waiter *w, struct partition *p, const struct change *ch, int status);

static int delete_locked(struct partition *p, struct delete_op *op)
{
	const struct skv_delete_req *req = op->w.req;
	struct instance *inst, *copies;
	struct skv_delete_res of_copies = { 0 };
	struct picks k = { 0 };
	struct partial *revoked = NULL;
	struct change *behind = NULL, *last;
	int rc = instance_need(p, req->tenant, req->instance, "instance", &inst, op->w.err);

	ASSERT_EXCLUSIVE(p);
	op->done = (struct skv_delete_res){ 0 };
	if (rc == SKV_OK && req->writing)
		rc = revoke_make(p, inst, req->keys, req->n_keys, &revoked, &behind);
	if (rc != SKV_OK)
		return rc;
	if (behind) {
		op->w.fill = delete_again;
		change_wait(behind, &op->w);
		return SKV_PENDING;
	}
	op->w.fill = fill_delete;
	rc = pick_keys(p, inst, req, &k, &op->done);
	op->done.deleted = (uint32_t)k.n;
	copies = tier_copies(p, inst);
	if (rc == SKV_OK && copies) /* for their room: they count no more anyway */
		rc = pick_keys(p, copies, req, &k, &of_copies);
	op->done.revoked = revoked ? revoked->n : 0;
	if (rc == SKV_OK)
		rc = queue_delete(p, &k, revoked, &last);
	if (rc != SKV_OK) {
		partial_drop(p, revoked);
		return rc;
	}
	COUNT(p->core, deleted_blocks, op->done.deleted);
	skv_free(k.v);
	if (!last)
		return SKV_OK;
	change_wait(last, &op->w);
	return SKV_PENDING;
}

/* The change it waited for is durable: re-evaluates the request's blocks. */
static int delete_again(struct waiter *w, struct partition *p, const struct change *ch, int status)
{
	(void)ch;
	return status == SKV_OK ? delete_locked(p, (struct delete_op *)w) : status;
}

int one_delete(struct skv_core *c, const struct skv_delete_req *req,
	       struct skv_delete_res *res, struct skv_arena *a, struct skv_error *err,
	       const struct skv_done *done)
{
	struct delete_op *op = skv_arena_calloc(a, 1, sizeof *op);
	int rc = core_gate(c, err);

	if (rc != SKV_OK)
		return rc;
	if (!op)
		return SKV_E_NOMEM;
	*res = (struct skv_delete_res){ 0 };
	op->w = (struct waiter){ .completion.done = *done, .fill = fill_delete, .req = req,
				 .res = res, .arena = a, .err = err };
	core_lock(c);
	rc = c->partition ? delete_locked(c->partition, op)
			  : gate_recovering(c, err);
	core_unlock(c);
	return rc;
}

/* ---- all of an instance ---------------------------------------------------------------------- */

static int fill_clear(struct waiter *w, struct partition *p, const struct change *ch, int status)
{
	(void)p;
	if (status == SKV_OK)
		((struct skv_clear_res *)w->res)->deleted = clear_blocks(ch);
	return status;
}

/* Its copies, for their room; nobody waits for that. */
static void clear_copies(struct partition *p, const struct instance *inst)
{
	struct instance *copies = tier_copies(p, inst);
	struct change *ignored;

	ASSERT_EXCLUSIVE(p);
	if (copies && copies->entries > 0)
		(void)clear_queue(p, copies, false, &ignored);
}

static int clear_locked(struct partition *p, const struct skv_clear_req *req, struct waiter *w)
{
	struct instance *inst;
	struct change *ch;
	int rc = instance_need(p, req->tenant, req->instance, "instance", &inst, w->err);

	ASSERT_EXCLUSIVE(p);
	if (rc != SKV_OK)
		return rc;
	ch = inst->clear; /* if it is empty, that is durable together with this */
	if (inst->entries == 0 && !ch)
		return SKV_OK;
	if (inst->entries > 0) {
		clear_copies(p, inst);
		rc = clear_queue(p, inst, false, &ch);
		w->fill = fill_clear;
	}
	if (rc != SKV_OK)
		return rc;
	change_wait(ch, w);
	return SKV_PENDING;
}

int one_clear(struct skv_core *c, const struct skv_clear_req *req, struct skv_clear_res *res,
	      struct skv_arena *a, struct skv_error *err, const struct skv_done *done)
{
	struct waiter *w = skv_arena_calloc(a, 1, sizeof *w);
	int rc = core_gate(c, err);

	if (rc != SKV_OK)
		return rc;
	if (!w)
		return SKV_E_NOMEM;
	*res = (struct skv_clear_res){ 0 };
	*w = (struct waiter){ .completion.done = *done, .res = res, .arena = a, .err = err };
	core_lock(c);
	rc = c->partition ? clear_locked(c->partition, req, w)
			  : gate_recovering(c, err);
	core_unlock(c);
	return rc;
}
