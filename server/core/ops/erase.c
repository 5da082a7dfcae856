/*
 * erase.c - deletes single blocks: committed ones, and those that open sessions are writing.
 *
 * Committed slots go by a REMOVE (remove.c). Writes are given up by a PARTIAL (partial.c), of which
 * their writers are not informed: their slots are held until the session's deadline and grace. The
 * session stays open for its other blocks; its finish reports these as deleted, even if it lists
 * them as written.
 *
 * A record in flight may publish a block, or give it up: a finish, a start, the end of a single
 * write, another removal. Such a block is left alone, and the caller erases again once the records
 * that were queued by then are durable: an empty PARTIAL, if need be, ends after all of them. Under
 * the write lock.
 */
#include "erase.h"

#include <assert.h>

#include <skv/mem.h>

#include <model/block.h>
#include <model/objects.h>
#include <model/session.h>
#include <model/table.h>
#include <journal/change.h>
#include <evict/remove.h>
#include <ops/partial.h>

static int erase_write(struct partition *p, struct erasure *e, const struct block *b, uint32_t spec)
{
	const struct slot *slot = &b->slot[spec];
	struct session *s = p->session[(uint32_t)slot->checksum - 1];
	const uint32_t write = (uint32_t)(slot->generation - s->generation);

	ASSERT_EXCLUSIVE(p);
	assert(write < s->n_write && s->write[write].specs >> spec & 1);
	if (spec != (uint32_t)__builtin_ctz(s->write[write].specs))
		return SKV_OK; /* with the first of them */
	if (s->pending || slot->checksum & ENDING) {
		e->busy = true;
		return SKV_OK;
	}
	if (!e->writes)
		e->writes = partial_make();
	return e->writes ? partial_add(p, e->writes, s, write, false) : SKV_E_NOMEM;
}

int erase_block(struct partition *p, struct erasure *e, struct block *b)
{
	const struct instance *inst = block_instance(b);
	bool committed = false;
	int rc = SKV_OK;

	ASSERT_EXCLUSIVE(p);
	for (uint32_t s = 0; rc == SKV_OK && s < inst->spec.n_specs; s++) {
		const struct slot *slot = &b->slot[s];

		if (slot->state == SLOT_ABSENT || slot->generation >= e->before)
			continue;
		if (slot->state == SLOT_WRITING)
			rc = erase_write(p, e, b, s);
		committed |= slot->state == SLOT_COMMITTED;
		e->busy |= slot->state == SLOT_REMOVING;
	}
	return rc == SKV_OK && committed ? remove_mark(p, &e->picks, b) : rc;
}

int erase_queue(struct partition *p, struct erasure *e, struct change **last)
{
	int rc = SKV_OK;

	ASSERT_EXCLUSIVE(p);
	*last = NULL;
	if (e->busy && !e->writes) {
		e->writes = partial_make();
		rc = e->writes ? SKV_OK : SKV_E_NOMEM;
	}
	if (rc == SKV_OK && e->writes)
		rc = partial_record(e->writes);
	if (rc == SKV_OK && e->picks.n)
		rc = remove_queue(p, &e->picks, last);
	if (rc != SKV_OK) {
		erase_cancel(p, e);
		return rc;
	}
	if (e->writes) {
		change_queue(p, &e->writes->change);
		*last = &e->writes->change;
	}
	skv_free(e->picks.v);
	return SKV_OK;
}

void erase_cancel(struct partition *p, struct erasure *e)
{
	partial_drop(p, e->writes);
	remove_cancel(p, &e->picks);
}

uint32_t erase_writes(const struct erasure *e) { return e->writes ? e->writes->n : 0; }
