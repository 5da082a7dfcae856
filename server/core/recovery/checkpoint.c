/*
 * checkpoint.c - checkpoints: a compact copy of the state, written while calls go on; recovery
 * replays the journal over it.
 *
 * A snapshot (journal/snapshot.c) is cut into slices, which are written without the lock. The
 * checkpoint counts only when everything queued when the snapshot began is durable (barrier); if an
 * append fails meanwhile, it is abandoned.
 */
#include <recovery/checkpoint.h>

#include <assert.h>
#include <string.h>

#include <skv/store.h>

#include <lock/core.h>
#include <lock/lock.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/table.h>
#include <journal/commit.h>
#include <journal/record.h>
#include <journal/registry_write.h>
#include <journal/snapshot.h>

#define CHUNKS_AT_A_TIME 8u

struct writer {
	struct skv_core *c;
	struct partition *p;  /* valid while it is the core's, see ours() */
	uint64_t fence;  /* fence of this checkpoint, which identifies it */
	uint64_t number; /* of the snapshot */
	uint64_t id;     /* of the checkpoint in the store */
	uint32_t slices;
	uint64_t bytes; /* in them */
};

/* Under the write lock: is the partition still the same? Compared by fence, because a reloaded one
 * may have the same address. */
static bool ours(const struct writer *w)
{
	return w->c->partition && w->c->partition->fence == w->fence;
}

/* Returns true if the partition still has this writer's snapshot. */
static bool current(const struct writer *w)
{
	return ours(w) && w->p->snap.active && w->p->snap.number == w->number && !w->p->snap.failed;
}

static int put_slice(struct writer *w, const void *bytes, size_t n, struct skv_error *err)
{
	w->bytes += n;
	COUNT(w->c, checkpoint_bytes, n);
	return skv_store_checkpoint_slice(w->c->store, 0, w->fence, w->id, w->slices++, bytes, n,
					  err);
}

/* Cuts at record boundaries, so that slices stay small. */
static int put_slices(struct writer *w, const struct skv_buf *b, struct skv_error *err)
{
	size_t at = 0;
	int rc = SKV_OK;

	while (rc == SKV_OK && at < b->len) {
		size_t n = 0, next;

		while (at + n < b->len &&
		       (next = record_length(b->data + at + n, b->len - at - n)) != 0 &&
		       (n == 0 || n + next <= SLICE_BYTES))
			n += next;
		assert(n > 0);
		rc = put_slice(w, b->data + at, n, err);
		at += n;
	}
	return rc;
}

/* Copies some chunks and takes out the finished bytes. SKV_PENDING = more to come. */
static int collect(struct writer *w, struct skv_buf *out)
{
	int rc = SKV_E_UNAVAILABLE;

	core_lock(w->c);
	if (current(w))
		rc = snapshot_copy(w->p, CHUNKS_AT_A_TIME, SLICE_BYTES, out);
	core_unlock(w->c);
	return rc;
}

static int write_blocks(struct writer *w, struct skv_error *err)
{
	int rc;

	do {
		struct skv_buf out = { 0 };
		int put;

		rc = collect(w, &out);
		put = rc >= 0 ? put_slices(w, &out, err) : SKV_OK;
		skv_buf_destroy(&out);
		if (put != SKV_OK)
			return put;
	} while (rc == SKV_PENDING);
	return rc == SKV_OK
		       ? SKV_OK
		       : skv_fail(err, rc, NULL, "given up: the state changed or memory is short");
}

static int write_tail(struct writer *w, bool clean, struct skv_error *err)
{
	struct skv_buf leases = { 0 }, tail = { 0 };
	int rc = SKV_OK;

	core_lock(w->c);
	if (current(w)) {
		snapshot_take_tail(w->p, &leases, &tail);
		if (clean)
			record_horizon(&tail, w->p, true);
	}
	core_unlock(w->c);
	if (tail.failed || !tail.data)
		rc = skv_fail(err, SKV_E_NOMEM, NULL,
			      "given up: the state changed or memory is short");
	if (rc == SKV_OK)
		rc = put_slices(w, &leases, err);
	if (rc == SKV_OK)
		rc = put_slices(w, &tail, err);
	skv_buf_destroy(&leases);
	skv_buf_destroy(&tail);
	return rc;
}

/* Everything queued when the snapshot began must be durable. */
static int wait_barrier(struct writer *w, uint64_t barrier, struct skv_error *err)
{
	return commit_wait_appended(w->c, barrier)
		       ? SKV_OK
		       : skv_fail(err, SKV_E_UNAVAILABLE, NULL,
				  "the changes in the snapshot did not become durable");
}

static int write_all(struct writer *w, bool clean, struct skv_error *err)
{
	uint64_t seq = 0, barrier = 0;
	bool ok;
	int rc = write_blocks(w, err);

	if (rc == SKV_OK)
		rc = write_tail(w, clean, err);
	if (rc != SKV_OK)
		return rc;
	core_lock(w->c);
	ok = current(w);
	if (ok) {
		seq = w->p->snap.seq;
		barrier = w->p->snap.barrier;
	}
	core_unlock(w->c);
	if (!ok)
		return skv_fail(err, SKV_E_UNAVAILABLE, NULL,
				"given up: an append failed meanwhile");
	rc = wait_barrier(w, barrier, err);
	core_lock(w->c);
	ok = current(w);
	core_unlock(w->c);
	if (rc == SKV_OK && !ok)
		rc = skv_fail(err, SKV_E_UNAVAILABLE, NULL, "given up: an append failed meanwhile");
	if (rc == SKV_OK)
		rc = skv_store_checkpoint_commit(w->c->store, 0, w->fence, w->id, w->slices, seq,
						 err);
	return rc;
}

/* ---- turns ----------------------------------------------------------------------------------- */

/* Takes the turn: one at a time of the checkpointer, an administrator's call, shutdown. */
static int take_turn(struct skv_core *c, struct skv_error *err)
{
	int rc = SKV_OK;

	skv_mutex_lock(&c->turn_lock);
	while (c->checkpointing && !c->o.manual)
		skv_cond_wait(&c->turn_wake, &c->turn_lock);
	if (c->checkpointing)
		rc = skv_fail(err, SKV_E_IN_USE, NULL, "a checkpoint is being written");
	c->checkpointing = true;
	skv_mutex_unlock(&c->turn_lock);
	return rc;
}

static void give_turn(struct skv_core *c)
{
	skv_mutex_lock(&c->turn_lock);
	c->checkpointing = false;
	skv_cond_broadcast(&c->turn_wake);
	skv_mutex_unlock(&c->turn_lock);
}

static struct partition *begin(struct writer *w)
{
	struct skv_core *c = w->c;

	core_lock(c);
	if (c->partition && c->partition->snap.active)
		/* the checkpoint has no writer: its requester has stopped waiting */
		snapshot_end(c->partition, false);
	core_unlock(c);
	commit_ask_snapshot(c);
	core_lock(c);
	if (c->partition && c->partition->snap.active) {
		w->p = c->partition;
		w->fence = w->p->fence;
		w->number = w->p->snap.number;
	}
	core_unlock(c);
	return w->p;
}

/* The newest instance that was dropped before the snapshot began, or 0. */
static uint32_t next_dropped(struct writer *w, uint64_t *version)
{
	uint32_t id = 0;

	core_lock(w->c);
	for (size_t i = 0; ours(w) && i < w->p->n_inst; i++)
		if (w->p->inst[i]->dropped_before == w->number) {
			id = w->p->inst[i]->id;
			*version = w->p->inst[i]->version;
		}
	core_unlock(w->c);
	return id;
}

/* The journal has no record of them any more. */
static void forget_dropped(struct writer *w)
{
	uint64_t version = 0;
	uint32_t id;

	while ((id = next_dropped(w, &version)) != 0 &&
	       registry_forget_dropped(w->c, w->fence, id, version, NULL) == SKV_OK) {
		core_lock(w->c);
		if (ours(w))
			partition_remove_instance(w->p, instance_by_id(w->p, id));
		core_unlock(w->c);
	}
}

static int write_one(struct writer *w, bool clean, struct skv_error *err)
{
	struct skv_core *c = w->c;
	int rc;

	if (!begin(w))
		return skv_fail(err, SKV_E_NOT_READY, NULL, "no snapshot could be begun");
	rc = skv_store_checkpoint_begin(c->store, 0, w->fence, &w->id, err);
	if (rc == SKV_OK) {
		rc = write_all(w, clean, err);
		if (rc != SKV_OK && rc != SKV_E_UNKNOWN_OUTCOME)
			skv_store_checkpoint_abort(c->store, 0, w->id);
	}
	core_lock(c);
	if (ours(w)) {
		if (rc == SKV_OK) {
			w->p->checkpoint_bytes = w->bytes;
			w->p->checkpoint_blocks = w->p->snap.blocks;
			w->p->checkpointed = w->number;
		}
		snapshot_end(w->p, rc == SKV_OK);
	}
	core_unlock(c);
	if (rc == SKV_OK)
		forget_dropped(w);
	return rc;
}

int checkpoint_run(struct skv_core *c, bool clean, struct skv_error *err)
{
	struct writer w = { .c = c };
	int rc = take_turn(c, err);

	if (rc != SKV_OK)
		return rc;
	rc = write_one(&w, clean, err);
	give_turn(c);
	if (rc == SKV_OK)
		COUNT(c, checkpoints, 1);
	else
		COUNT(c, checkpoint_failures, 1);
	return rc;
}
