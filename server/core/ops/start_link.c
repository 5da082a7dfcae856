/*
 * start_link.c - gives the blocks of a start their entries and their slots, and takes both back.
 *
 * Under the write lock; no I/O. Used by start and by replay.
 */
#include <ops/start.h>

#include <assert.h>

#include <lock/core.h>
#include <lock/lock.h>
#include <model/block.h>
#include <model/index.h>
#include <model/names.h>
#include <model/partition.h>
#include <model/queue.h>
#include <model/session.h>
#include <model/table.h>
#include <model/volume.h>
#include "placement.h"
#include "start_answer.h"

static void give_slot(struct partition *p, struct session *s, struct block *b, uint32_t spec,
		      const struct grant *g)
{
	struct instance *inst = s->inst;
	struct slot *slot = &b->slot[spec];

	assert(spec < inst->spec.n_specs && g->volume < p->n_volume);
	slot->volume = g->volume;
	slot->slab = g->slab;
	slot->index = g->index;
	slot_set_state(slot, SLOT_WRITING);
	skv_pool_set_owner(p->volume[g->volume].pool, g->slab, g->index, block_id(b));
	used_add(p, inst, slot->volume, (int64_t)inst->spec.specs[spec].size);
}

/* The entry of key i. `have` may have it, unless it was created as the parent. */
static struct block *entry_of(const struct partition *p, const struct session *s, uint32_t i,
			      struct block *const *have)
{
	const bool is_parent = s->has_parent && skv_key_equal(s->parent, s->keys[i]);

	return is_parent ? index_find(p, s->inst, s->keys[i]) : have[i];
}

/* Creates it, if new, and links it to its predecessor. */
static struct block *entry_for(struct partition *p, struct session *s, uint32_t i, struct block *b,
			       struct block *before)
{
	ASSERT_EXCLUSIVE(p);
	if (!b)
		b = block_make(p, s->inst, s->keys[i]);
	if (!b)
		return NULL;
	/* An entry with children may be an ancestor of `before`: never close a cycle. */
	if (before && b != before && b->parent == NO_BLOCK && b->children == 0)
		block_set_parent(p, b, before);
	return b;
}

static struct block *parent_entry(struct partition *p, const struct session *s)
{
	struct block *b = index_find(p, s->inst, s->parent);

	return b ? b : block_make(p, s->inst, s->parent);
}

void start_unlink(struct partition *p, struct session *s)
{
	ASSERT_EXCLUSIVE(p);
	for (uint32_t i = s->n_write; i-- > 0;)
		session_release(p, s, i, 0);
	if (s->has_parent) {
		struct block *b = index_find(p, s->inst, s->parent);

		if (b)
			block_maybe_free(p, b);
	}
}

int start_link(struct partition *p, struct session *s, struct grants *g,
	       const struct skv_bytes *names, struct block *const *have)
{
	uint32_t used[SKV_MAX_SPECS] = { 0 };
	uint32_t done = 0, n_write = s->n_write;
	struct block *before = NULL;

	ASSERT_EXCLUSIVE(p);
	if (s->has_parent && !(before = parent_entry(p, s)))
		n_write = UINT32_MAX; /* nothing is linked, everything is freed */
	for (uint32_t i = 0; i < s->n_keys && n_write != UINT32_MAX; i++) {
		struct block *b = entry_of(p, s, i, have);
		struct session_write *w = &s->write[done];

		core_let_read(p->core, i);

		if (s->outcome[i] != SKV_START_WRITE || !w->specs) {
			before = b ? b : before;
			/* ended: when a checkpoint is replayed */
			done += s->outcome[i] == SKV_START_WRITE;
			continue;
		}
		b = entry_for(p, s, i, b, s->independent ? NULL : before);
		if (!b)
			break;
		block_touch(p, b);
		if (names && block_generation(s->inst, b) == 0 &&
		    block_set_name(b, names[i]) != SKV_OK) {
			block_maybe_free(p, b);
			break;
		}
		w->block = block_id(b);
		for (uint32_t spec = 0; specs_left(w->specs, spec); spec++) {
			if (!(w->specs >> spec & 1))
				continue;
			give_slot(p, s, b, spec, &g->v[spec][used[spec]++]);
			b->slot[spec].generation = s->generation + done;
		}
		evict_withhold(p, b); /* not while it is written */
		block_update_live(p, b);
		before = b;
		done++;
	}
	if (done == n_write) {
		if (s->has_parent)
			block_maybe_free(p, index_find(p, s->inst, s->parent));
		return SKV_OK;
	}
	for (uint32_t spec = 0; spec < SKV_MAX_SPECS; spec++) {
		if (g->n[spec])
			g->v[spec] += used[spec];
		g->n[spec] -= used[spec];
	}
	grants_free(p, g);
	s->n_write = done;
	start_unlink(p, s);
	return SKV_E_NOMEM;
}
