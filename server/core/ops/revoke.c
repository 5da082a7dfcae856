/*
 * revoke.c - gives up writes of open sessions whose blocks are removed.
 *
 * A delete of every copy of a block includes copies being written. Their slots are held until the
 * session's deadline and grace, because the writer is not told and goes on. The session stays open
 * for its other blocks; its finish counts the revoked ones as failed, whatever it reports. The
 * record is a PARTIAL (partial.c), with the same prepare, apply and undo. Under the write lock.
 */
#include "revoke.h"

#include <skv/key_set.h>
#include <skv/mem.h>

#include <assert.h>
#include <model/block.h>
#include <model/index.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/session.h>
#include <model/table.h>
#include <journal/change.h>
#include <journal/record.h>
#include <ops/partial.h>

/* Keys of the request whose blocks are being written. */
struct wanted {
	const struct skv_key *keys;
	struct skv_key_set set;
	uint32_t *cells;
	uint32_t n;
};

static bool is_written(const struct instance *inst, const struct block *b)
{
	for (uint32_t s = 0; b && s < inst->spec.n_specs; s++)
		if (b->slot[s].state == SLOT_WRITING)
			return true;
	return false;
}

static int find_wanted(struct partition *p, const struct instance *inst, const struct skv_key *keys,
		       uint32_t n, struct wanted *out)
{
	*out = (struct wanted){ .keys = keys };
	for (uint32_t i = 0; i < n && inst->open; i++) {
		if (!is_written(inst, index_find(p, inst, keys[i])))
			continue;
		if (!out->cells) {
			out->cells = skv_calloc(skv_key_set_cells(n), sizeof *out->cells);
			if (!out->cells)
				return SKV_E_NOMEM;
			skv_key_set_init(&out->set, out->cells, n);
		}
		*skv_key_set_find(&out->set, keys, keys[i]) = i + 1;
		out->n++;
	}
	return SKV_OK;
}

/* The slot that says whether the write is ENDING. */
static struct slot *marked_slot(struct partition *p, const struct session_write *w)
{
	return &block_get(p, w->block)->slot[__builtin_ctz(w->specs)];
}

/* Is a record in flight that ends this write? */
static bool is_ending(struct partition *p, const struct session_write *w)
{
	ASSERT_EXCLUSIVE(p);
	return marked_slot(p, w)->checksum & ENDING;
}

void revoke_unmark(struct partition *p, const struct session_write *w)
{
	ASSERT_EXCLUSIVE(p);
	marked_slot(p, w)->checksum &= ~ENDING;
}

static int take_write(struct partition *p, struct session *s, uint32_t write, struct partial *t,
		      size_t *cap)
{
	void *v = t->v;

	ASSERT_EXCLUSIVE(p);
	if (skv_grow(&v, cap, t->n + 1u, sizeof *t->v) != SKV_OK)
		return SKV_E_NOMEM;
	t->v = v;
	t->v[t->n++] = (struct ended){ s, write, false };
	marked_slot(p, &s->write[write])->checksum |= ENDING;
	s->ending++;
	return SKV_OK;
}

/* Collects the session's writes that are wanted. SKV_PENDING with *behind: a change of the session
 * is in flight that decides what there is to revoke. */
static int take_session(struct partition *p, struct session *s, const struct wanted *q,
			struct partial *t, size_t *cap, struct change **behind)
{
	uint32_t write = 0;
	int rc = SKV_OK;

	ASSERT_EXCLUSIVE(p);
	for (uint32_t i = 0; rc == SKV_OK && i < s->n_keys; i++) {
		uint32_t at = write;

		if (s->outcome[i] != SKV_START_WRITE)
			continue;
		write++;
		if (!s->write[at].specs || !*skv_key_set_find(&q->set, q->keys, s->keys[i]) ||
		    is_ending(p, &s->write[at]))
			continue;
		if (s->pending) {
			*behind = s->pending;
			return SKV_PENDING;
		}
		rc = take_write(p, s, at, t, cap);
	}
	return rc;
}

int revoke_make(struct partition *p, struct instance *inst, const struct skv_key *keys, uint32_t n,
		struct partial **out, struct change **behind)
{
	struct wanted q;
	struct partial *t = NULL;
	size_t cap = 0;
	int rc = find_wanted(p, inst, keys, n, &q);

	ASSERT_EXCLUSIVE(p);
	*out = NULL;
	*behind = NULL;
	if (rc != SKV_OK || q.n == 0)
		return rc;
	t = partial_make();
	rc = t ? SKV_OK : SKV_E_NOMEM;
	for (struct session *s = inst->open; s && rc == SKV_OK; s = s->open_next)
		if (!s->anonymous)
			rc = take_session(p, s, &q, t, &cap, behind);
	skv_free(q.cells);
	if (rc == SKV_OK && t->n)
		rc = partial_record(t);
	if (rc == SKV_OK && t->n) {
		*out = t;
		return SKV_OK;
	}
	partial_drop(p, t);
	return rc == SKV_PENDING ? SKV_OK : rc;
}
