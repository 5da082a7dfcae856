/*
 * delete.c - deletes blocks by key, or all blocks of an instance.
 *
 * Blocks being written are deleted, too (erase.c, purge.c). Deleted blocks are misses at once; the
 * call is answered when the deletion is durable.
 */
#include <skv/mem.h>

#include <assert.h>
#include <lock/core.h>
#include <lock/gate.h>
#include <lock/lock.h>
#include <model/block.h>
#include <model/find.h>
#include <model/index.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/table.h>
#include <model/tier.h>
#include <journal/change.h>
#include <evict/clear.h>
#include "erase.h"
#include <ops/purge.h>
#include <ops/start.h>

struct delete_op {
	struct waiter w;
	uint64_t before;            /* generation of the first start after the call */
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

static int erase_keys(struct partition *p, const struct instance *inst,
		      const struct skv_delete_req *req, struct erasure *e, uint32_t *pinned)
{
	int rc = SKV_OK;

	ASSERT_EXCLUSIVE(p);
	for (uint32_t i = 0; rc == SKV_OK && i < req->n_keys; i++) {
		struct block *b = index_find(p, inst, req->keys[i]);

		if (!b)
			continue;
		*pinned += b->pinned && block_has_committed(inst, b);
		rc = erase_block(p, e, b);
	}
	return rc;
}

static int delete_again(struct waiter *w, struct partition *p, const struct change *ch, int status);

static int delete_locked(struct partition *p, struct delete_op *op)
{
	const struct skv_delete_req *req = op->w.req;
	struct instance *inst, *copies;
	struct erasure e = { .before = op->before };
	struct change *last = NULL;
	uint32_t ignored = 0, deleted = 0;
	int rc = instance_need(p, req->tenant, req->instance, "instance", &inst, op->w.err);

	ASSERT_EXCLUSIVE(p);
	if (rc != SKV_OK)
		return rc;
	rc = erase_keys(p, inst, req, &e, &op->done.pinned);
	deleted = (uint32_t)e.picks.n;
	op->done.deleted += deleted;
	op->done.writing += erase_writes(&e);
	copies = tier_copies(p, inst);
	if (rc == SKV_OK && copies) /* for their room: they count no more anyway */
		rc = erase_keys(p, copies, req, &e, &ignored);
	if (rc == SKV_OK)
		rc = erase_queue(p, &e, &last);
	else
		erase_cancel(p, &e);
	if (rc != SKV_OK)
		return rc;
	COUNT(p->core, deleted_blocks, deleted);
	op->w.fill = e.busy ? delete_again : fill_delete;
	if (!last)
		return fill_delete(&op->w, p, NULL, SKV_OK);
	change_wait(last, &op->w);
	return SKV_PENDING;
}

/* Erases the remaining blocks, once the records in flight have ended. */
static int delete_again(struct waiter *w, struct partition *p, const struct change *ch, int status)
{
	(void)ch;
	return status == SKV_OK ? delete_locked(p, (struct delete_op *)w) : status;
}

/* Starts that wait for room were begun before the call, too. */
static int begin_delete(struct partition *p, struct delete_op *op)
{
	const struct skv_delete_req *req = op->w.req;
	const struct waiting_of of = { .tenant = req->tenant, .instance = req->instance,
				       .keys = req->keys, .n_keys = req->n_keys };
	int rc = start_end_waiting(p, &of);

	op->before = p->next_generation;
	return rc == SKV_OK ? delete_locked(p, op) : rc;
}

int skv_core_delete(struct skv_core *c, const struct skv_delete_req *req,
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
	rc = c->partition ? begin_delete(c->partition, op) : gate_recovering(err);
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

static int clear_locked(struct partition *p, const struct skv_clear_req *req, struct waiter *w)
{
	struct instance *inst;
	struct change *ch;
	int rc = instance_need(p, req->tenant, req->instance, "instance", &inst, w->err);

	ASSERT_EXCLUSIVE(p);
	if (rc != SKV_OK)
		return rc;
	w->fill = inst->entries > 0 ? fill_clear : NULL;
	rc = purge_queue(p, inst, false, &ch);
	if (rc != SKV_OK || !ch)
		return rc;
	change_wait(ch, w);
	return SKV_PENDING;
}

int skv_core_clear(struct skv_core *c, const struct skv_clear_req *req, struct skv_clear_res *res,
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
			  : gate_recovering(err);
	core_unlock(c);
	return rc;
}
