/*
 * remove.c - blocks on their way out, by deletion or eviction.
 *
 * Early half: the block's committed slots become REMOVING, so no lookup sees them. Late half, when the
 * record is durable: slots become free, or are held until the lease that runs on them ends. Undo: they
 * are COMMITTED again. All calls under the write lock.
 */
#include "internal.h"

#include <string.h>

#define AHEAD 8u /* turns of a loop between a prefetch and its use */

static void count_removing(struct partition *p, struct instance *inst, const struct slot *s, uint32_t spec,
			   int sign)
{
	struct space *space = &p->space[s->space];

	space->class[class_of(inst, s->space, spec)].removing += (uint64_t)sign;
	removing_add(p, inst, s->space, sign * (int64_t)inst->spec.specs[spec].size);
}

/* COMMITTED <-> REMOVING, with the counts that hang on it. */
static void set_removing(struct partition *p, struct block *b, uint32_t specs, bool on)
{
	struct instance *inst = block_instance(b);
	uint8_t from = on ? SLOT_COMMITTED : SLOT_REMOVING;
	bool had = block_has_committed(inst, b);

	block_touch(p, b);
	for (uint32_t s = 0; s < inst->spec.n_specs; s++) {
		if (!(specs >> s & 1) || b->slot[s].state != from)
			continue;
		slot_set_state(&b->slot[s], on ? SLOT_REMOVING : SLOT_COMMITTED);
		count_removing(p, inst, &b->slot[s], s, on ? 1 : -1);
	}
	if (had != block_has_committed(inst, b))
		blocks_count(p, inst, on ? -1 : 1);
	block_update_live(p, b);
}

static uint32_t committed_specs(const struct instance *inst, const struct block *b)
{
	uint32_t mask = 0;

	for (uint32_t s = 0; s < inst->spec.n_specs; s++)
		mask |= b->slot[s].state == SLOT_COMMITTED ? 1u << s : 0;
	return mask;
}

int remove_mark(struct partition *p, struct picks *k, struct block *b)
{
	void *v = k->v;
	const struct instance *inst = block_instance(b);
	uint64_t lease = block_lease(p, inst, b);

	ASSERT_EXCLUSIVE(p);
	if (skv_grow(&v, &k->cap, k->n + 1, sizeof *k->v) != SKV_OK)
		return SKV_E_NOMEM;
	k->v = v;
	k->v[k->n++] = (struct removal){ .block = block_id(b),
					   .specs = committed_specs(inst, b),
					   .hold_until = lease && lease > skv_now_ms(p->core->clock) ? lease : 0 };
	evict_forget(b);
	set_removing(p, b, k->v[k->n - 1].specs, true);
	return SKV_OK;
}

static void unmark(struct partition *p, const struct removal *v, size_t n)
{
	for (size_t i = n; i-- > 0;) {
		struct block *b = block_get(p, v[i].block);
		const struct instance *inst = block_instance(b);

		for (uint32_t s = 0; s < inst->spec.n_specs; s++)
			if (v[i].specs >> s & 1)
				skv_pool_drain(p->space[b->slot[s].space].pool, b->slot[s].slab, false);
		set_removing(p, b, v[i].specs, false);
		evict_consider(p, b);
	}
}

void remove_cancel(struct partition *p, struct picks *k)
{
	ASSERT_EXCLUSIVE(p);
	unmark(p, k->v, k->n);
	skv_free(k->v);
	*k = (struct picks){ 0 };
}

int remove_queue(struct partition *p, struct picks *k, struct txn **out)
{
	struct txn *t = txn_make(TXN_REMOVE);
	uint64_t now = skv_now_ms(p->core->clock);

	ASSERT_EXCLUSIVE(p);
	if (t) {
		t->removal = k->v;
		t->n_removal = k->n;
		t->urgent = true;
		t->relaxed = k->relaxed;
		for (size_t i = 0; i < k->n;) /* one record per stretch of one instance */
			i += record_remove(&t->rec, p, k->v + i, k->n - i, now);
	}
	if (!t || t->rec.failed) {
		if (t)
			t->removal = NULL;
		txn_destroy(t);
		remove_cancel(p, k);
		return SKV_E_NOMEM;
	}
	*k = (struct picks){ 0 };
	commit_queue(p, t);
	if (out)
		*out = t;
	return SKV_OK;
}

/* Victims lie anywhere: the entry some turns ahead, then its cell in the index. */
static void prefetch(const struct partition *p, const struct txn *t, size_t i)
{
	if (i + 2 * AHEAD < t->n_removal)
		__builtin_prefetch(block_get(p, t->removal[i + 2 * AHEAD].block), 1);
	if (i + AHEAD < t->n_removal) {
		const struct block *b = block_get(p, t->removal[i + AHEAD].block);

		index_prefetch(block_instance(b), index_hash(p, b->key));
	}
}

void remove_apply(struct partition *p, struct txn *t)
{
	ASSERT_EXCLUSIVE(p);
	for (size_t i = 0; i < t->n_removal; i++) {
		struct block *b = block_get(p, t->removal[i].block);
		struct instance *inst = block_instance(b);

		prefetch(p, t, i);
		for (uint32_t s = 0; s < inst->spec.n_specs; s++) {
			if (!(t->removal[i].specs >> s & 1))
				continue; /* another removal's, or written since */
			assert(b->slot[s].state == SLOT_REMOVING);
			count_removing(p, inst, &b->slot[s], s, -1);
			slot_release(p, b, s, t->removal[i].hold_until);
		}
		block_update_live(p, b);
		block_maybe_free(p, b);
	}
}

void remove_undo(struct partition *p, struct txn *t)
{
	ASSERT_EXCLUSIVE(p);
	unmark(p, t->removal, t->n_removal);
}

/* ---- deletion by request ---------------------------------------------------------------------------- */

struct delete_op {
	struct waiter w;
	struct skv_delete_res done; /* once it is durable */
};

static int fill_delete(struct waiter *w, struct partition *p, const struct txn *t, int status)
{
	(void)p;
	(void)t;
	if (status == SKV_OK)
		*(struct skv_delete_res *)w->res = ((struct delete_op *)w)->done;
	return status;
}

static int pick_keys(struct partition *p, const struct instance *inst, const struct skv_delete_req *req, struct picks *k,
		     struct skv_delete_res *res)
{
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

/* Queues both; *last is the one to wait for, NULL = there is nothing to do. */
static int queue_delete(struct partition *p, struct picks *k, struct txn *revoked, struct txn **last)
{
	int rc = SKV_OK;

	*last = NULL;
	if (k->n)
		rc = remove_queue(p, k, last);
	if (rc != SKV_OK)
		return rc;
	if (revoked) {
		commit_queue(p, revoked);
		*last = revoked;
	}
	return SKV_OK;
}

static int delete_again(struct waiter *w, struct partition *p, const struct txn *t, int status);

static int delete_locked(struct partition *p, struct delete_op *op)
{
	const struct skv_delete_req *req = op->w.req;
	struct instance *inst;
	struct picks k = { 0 };
	struct txn *revoked = NULL, *behind = NULL, *last;
	int rc = instance_need(p, req->tenant, req->instance, "instance", &inst, op->w.err);

	ASSERT_EXCLUSIVE(p);
	op->done = (struct skv_delete_res){ 0 };
	if (rc == SKV_OK && req->writing)
		rc = revoke_make(p, inst, req->keys, req->n_keys, &revoked, &behind);
	if (rc != SKV_OK)
		return rc;
	if (behind) {
		op->w.fill = delete_again;
		txn_wait(behind, &op->w);
		return SKV_PENDING;
	}
	op->w.fill = fill_delete;
	rc = pick_keys(p, inst, req, &k, &op->done);
	op->done.deleted = (uint32_t)k.n;
	op->done.revoked = revoked ? revoked->n_settled : 0;
	if (rc == SKV_OK)
		rc = queue_delete(p, &k, revoked, &last);
	if (rc != SKV_OK) {
		revoke_drop(p, revoked);
		return rc;
	}
	COUNT(p->core, deleted_blocks, op->done.deleted);
	skv_free(k.v);
	if (!last)
		return SKV_OK;
	txn_wait(last, &op->w);
	return SKV_PENDING;
}

/* What it waited for is durable, and all of the blocks are what they are now. */
static int delete_again(struct waiter *w, struct partition *p, const struct txn *t, int status)
{
	(void)t;
	return status == SKV_OK ? delete_locked(p, (struct delete_op *)w) : status;
}

int skv_core_delete(struct skv_core *c, const struct skv_delete_req *req, struct skv_delete_res *res,
		    struct skv_arena *a, struct skv_error *err, const struct skv_done *done)
{
	struct delete_op *op = skv_arena_calloc(a, 1, sizeof *op);
	int rc = core_gate(c, err);

	if (rc != SKV_OK)
		return rc;
	if (!op)
		return SKV_E_NOMEM;
	*res = (struct skv_delete_res){ 0 };
	op->w = (struct waiter){ .done = *done, .fill = fill_delete, .req = req, .res = res, .arena = a, .err = err };
	core_lock(c);
	rc = c->part ? delete_locked(c->part, op) : skv_fail(err, SKV_E_NOT_READY, NULL, "recovering");
	core_unlock(c);
	return rc;
}
