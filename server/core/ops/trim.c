/*
 * trim.c - deletes an instance's blocks by creation time.
 *
 * A trim visits the instance's entries chunk by chunk, a portion at a time under the write lock,
 * and deletes committed blocks and those being written (erase.c). A portion that found blocks waits
 * for its record; one that found none continues at the next tick. A chunk with blocks about which a
 * record in flight decides is visited again after it. While it waits for a record only that record
 * knows the trim, so the record's end continues or ends it; otherwise it is in partition->trims.
 * Blocks started after the call are not visited, so it terminates.
 */
#include <ops/trim.h>

#include <assert.h>
#include <skv/mem.h>

#include <lock/core.h>
#include <lock/gate.h>
#include <lock/lock.h>
#include <model/block.h>
#include <model/birth.h>
#include <model/find.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/table.h>
#include <journal/change.h>
#include "erase.h"
#include <ops/start.h>

#define PORTION_ENTRIES 32768u /* visited per portion: well below a millisecond */
#define OTHER_CHUNK 8u         /* cost of a chunk of another instance, in entries */
#define PORTION_BLOCKS 1024u   /* picked per portion: bounds the time under the lock */
#define HURRY_MS 100u /* the ticker runs more often while the last portion is this recent */

struct trim_op {
	struct waiter w; /* req, res, arena, err, done */
	struct trim_op *next;
	uint32_t inst;       /* durable number */
	uint32_t chunk;      /* the next one */
	uint32_t end_chunk;
	uint64_t from, end; /* generations of the range; no newer ones than the call */
	uint64_t before;    /* slots of this generation, and later ones, are newer than the call */
	struct skv_trim_res done;
};

static const struct skv_trim_req *req_of(const struct trim_op *op) { return op->w.req; }

static void join_list(struct partition *p, struct trim_op *op)
{
	op->next = p->trims;
	p->trims = op;
}

static bool matches(const struct instance *inst, const struct trim_op *op, const struct block *b)
{
	uint64_t generation = block_generation(inst, b);

	return generation && generation >= op->from && generation < op->end;
}

static int pick_chunk(struct partition *p, const struct instance *inst, const struct trim_op *op,
		      struct erasure *e)
{
	const struct chunk *c = p->chunk[op->chunk];

	ASSERT_EXCLUSIVE(p);
	for (uint32_t i = 0; i < c->fresh; i++) {
		struct block *b = chunk_place(c, i);

		if (b->used && matches(inst, op, b) && erase_block(p, e, b) != SKV_OK)
			return SKV_E_NOMEM;
	}
	return SKV_OK;
}

/* *next: the chunk to continue with. */
static int pick(struct partition *p, const struct instance *inst, struct trim_op *op,
		struct erasure *e, uint32_t *next)
{
	uint32_t looked = 0;
	int rc = SKV_OK;

	*next = 0;
	for (; op->chunk < op->end_chunk && looked < PORTION_ENTRIES &&
	       e->picks.n + erase_writes(e) < PORTION_BLOCKS; op->chunk++) {
		bool ours = p->chunk[op->chunk]->inst == inst;

		looked += ours ? p->chunk[op->chunk]->fresh : OTHER_CHUNK;
		rc = ours ? pick_chunk(p, inst, op, e) : SKV_OK;
		if (rc != SKV_OK) {
			erase_cancel(p, e);
			return rc;
		}
		if (e->busy && !*next)
			*next = op->chunk;
	}
	if (!*next)
		*next = op->chunk;
	return SKV_OK;
}

static int end(const struct trim_op *op)
{
	*(struct skv_trim_res *)op->w.res = op->done;
	return SKV_OK;
}

/* Trims a portion. SKV_PENDING: the operation waits for its record, or (in the list again) for the
 * next tick. */
static int portion(struct partition *p, struct trim_op *op)
{
	const struct skv_trim_req *req = req_of(op);
	struct instance *inst = NULL;
	struct erasure e = { .before = op->before };
	struct change *ch = NULL;
	uint32_t next;
	size_t n;
	int rc = instance_need(p, req->tenant, req->instance, "instance", &inst, op->w.err);

	ASSERT_EXCLUSIVE(p);
	/* another instance of that name: nothing of the old one is left */
	if (rc == SKV_OK && inst->id != op->inst)
		return end(op);
	if (rc == SKV_OK)
		rc = pick(p, inst, op, &e, &next);
	n = e.picks.n;
	if (rc == SKV_OK)
		rc = erase_queue(p, &e, &ch);
	if (rc != SKV_OK)
		return rc;
	op->chunk = next;
	if (!ch) {
		if (op->chunk >= op->end_chunk)
			return end(op);
		join_list(p, op);
		return SKV_PENDING;
	}
	op->done.deleted += n;
	op->done.writing += erase_writes(&e);
	COUNT(p->core, deleted_blocks, n);
	change_wait(ch, &op->w);
	return SKV_PENDING;
}

/* A portion's record is durable. The next portion waits for the ticker, because this is the
 * committer's thread. */
static int go_on_later(struct waiter *w, struct partition *p, const struct change *ch, int status)
{
	struct trim_op *op = (struct trim_op *)w;

	(void)ch;
	if (status != SKV_OK)
		return status;
	if (op->chunk >= op->end_chunk)
		return end(op);
	join_list(p, op);
	return SKV_PENDING;
}

bool trim_go_on(struct partition *p)
{
	struct trim_op *op = p->trims;
	uint64_t now = skv_now_ms(p->core->clock);

	ASSERT_EXCLUSIVE(p);
	p->trims = NULL;
	if (op)
		p->trimmed_at = now;
	while (op) {
		struct trim_op *next = op->next;
		int rc = portion(p, op);

		if (rc != SKV_OK && rc != SKV_PENDING && op->w.err->status == SKV_OK)
			skv_fail(op->w.err, rc, NULL, "%s", skv_status_text(rc));
		if (rc != SKV_PENDING)
			core_complete(p->core, &op->w.completion, rc);
		op = next;
	}
	return p->trimmed_at && now - p->trimmed_at < HURRY_MS;
}

void trim_fail_all(struct partition *p, int status, const char *text)
{
	struct trim_op *op = p->trims;

	ASSERT_EXCLUSIVE(p);
	p->trims = NULL;
	while (op) {
		struct trim_op *next = op->next;

		core_complete(p->core, &op->w.completion,
			      skv_fail(op->w.err, status, NULL, "%s", text));
		op = next;
	}
}

static int begin(struct partition *p, struct trim_op *op)
{
	const struct skv_trim_req *req = req_of(op);
	struct instance *inst;
	int rc = instance_need(p, req->tenant, req->instance, "instance", &inst, op->w.err);

	if (rc != SKV_OK)
		return rc;
	rc = start_end_waiting(p, &(struct waiting_of){ req->tenant, req->instance,
							.from_ms = req->from_ms,
							.to_ms = req->to_ms });
	if (rc != SKV_OK)
		return rc;
	op->inst = inst->id;
	op->chunk = 1;
	op->end_chunk = (uint32_t)p->n_chunk;
	birth_look(p);
	op->from = req->from_ms ? birth_after(p, birth_from_wall(p, req->from_ms - 1)) : 0;
	op->end = birth_after(p, birth_from_wall(p, req->to_ms));
	op->before = p->next_generation;
	p->trimmed_at = skv_now_ms(p->core->clock);
	return portion(p, op);
}

int skv_core_trim(struct skv_core *c, const struct skv_trim_req *req, struct skv_trim_res *res,
		  struct skv_arena *a, struct skv_error *err, const struct skv_done *done)
{
	struct trim_op *op = skv_arena_calloc(a, 1, sizeof *op);
	int rc = core_gate(c, err);

	if (rc != SKV_OK)
		return rc;
	if (!op)
		return SKV_E_NOMEM;
	if (req->from_ms > req->to_ms)
		return skv_fail(err, SKV_E_INVALID, "from_ms", "it lies after to_ms");
	op->w = (struct waiter){ .completion.done = *done, .fill = go_on_later, .req = req,
				 .res = res, .arena = a, .err = err };
	core_lock(c);
	rc = c->partition ? begin(c->partition, op)
			  : gate_recovering(err);
	core_unlock(c);
	return rc;
}
