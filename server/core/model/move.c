/*
 * move.c - moves of committed blocks from slot to slot: which are open, and what they change.
 *
 * Until a move is finished the block stays where it is, and may be read, deleted, evicted as ever:
 * then the move has no effect. Under the partition's write lock.
 */
#include <model/move.h>

#include <assert.h>

#include <skv/mem.h>

#include <lock/core.h>
#include <model/block.h>
#include <model/device.h>
#include <model/find.h>
#include <model/index.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/queue.h>
#include <model/table.h>
#include <model/tenant.h>
#include <model/volume.h>

struct move *move_find(const struct partition *p, struct skv_key id)
{
	struct move *m = p->moves;

	ASSERT_SHARED(p);
	while (m && !skv_key_equal(m->id, id))
		m = m->next;
	return m;
}

bool move_has(const struct partition *p, const struct block *b, uint32_t spec)
{
	const struct slot *s = &b->slot[spec];

	for (const struct move *m = p->moves; m; m = m->next)
		for (uint32_t i = 0; i < m->n; i++)
			if (m->v[i].generation == s->generation && m->v[i].index == s->index &&
			    m->v[i].slab == s->slab && m->v[i].volume == s->volume)
				return true;
	return false;
}

struct block *move_source(const struct partition *p, const struct move_slot *m)
{
	const struct instance *inst = instance_by_id(p, m->instance);
	struct block *b = inst ? index_find(p, inst, m->key) : NULL;
	const struct slot *s = b ? &b->slot[m->spec] : NULL;

	ASSERT_SHARED(p);
	return s && s->state == SLOT_COMMITTED && s->generation == m->generation &&
			       s->volume == m->volume && s->slab == m->slab && s->index == m->index
		       ? b
		       : NULL;
}

void move_add(struct partition *p, struct move *m)
{
	ASSERT_EXCLUSIVE(p);
	assert(p->n_moves < MAX_MOVES && m->n > 0 && m->n <= MAX_MOVE_SLOTS);
	m->next = p->moves;
	p->moves = m;
	p->n_moves++;
}

void move_give_up(struct partition *p, const struct move_slot *m, uint64_t hold_until)
{
	struct volume *v = &p->volume[m->to_volume];
	struct skv_run run = { m->to_slab, m->to_index, 1 };

	ASSERT_EXCLUSIVE(p);
	assert(skv_pool_is_used(v->pool, m->to_slab, m->to_index) &&
	       skv_pool_owner(v->pool, m->to_slab, m->to_index) == NO_BLOCK);
	if (hold_until)
		skv_pool_hold(v->pool, run, hold_until);
	else
		skv_pool_free(v->pool, run);
}

void move_destroy(struct partition *p, struct move *m)
{
	struct move **at = &p->moves;

	ASSERT_EXCLUSIVE(p);
	while (*at != m)
		at = &(*at)->next;
	*at = m->next;
	p->n_moves--;
	skv_free(m);
}

struct volume_file *move_checks_file(const struct partition *p, const struct move *m)
{
	const struct volume *v = &p->volume[m->portion.volume];

	return m->checks && m->portion.device && v->pool && v->dev->id == m->portion.device
		       ? file_find(v, m->portion.file)
		       : NULL;
}

/* The portion was not verified: the next one begins where it did. */
static void hand_out_again(const struct partition *p, const struct move *m)
{
	struct volume_file *f = move_checks_file(p, m);

	if (!f || !f->check.began_ms)
		return;
	f->check.handed_out = false;
	if (m->portion.unit < f->check.unit ||
	    (m->portion.unit == f->check.unit && m->portion.slot < f->check.slot)) {
		f->check.unit = m->portion.unit;
		f->check.slot = m->portion.slot;
	}
}

void moves_expire(struct partition *p, uint64_t now)
{
	ASSERT_EXCLUSIVE(p);
	for (struct move *m = p->moves, *next; m; m = next) {
		next = m->next;
		if (m->starting || m->ending || m->deadline_at > now)
			continue;
		hand_out_again(p, m);
		for (uint32_t i = 0; i < m->n && !m->copies && !m->checks; i++)
			move_give_up(p, &m->v[i], m->hold_until);
		COUNT(p->core, moves_expired, m->n);
		move_destroy(p, m);
	}
}

void moves_free(struct partition *p)
{
	while (p->moves) {
		struct move *m = p->moves;

		p->moves = m->next;
		skv_free(m);
	}
	p->n_moves = 0;
}

/* Adds the slot to the counts of its volume, by the slot's state. */
static void count(struct partition *p, struct instance *inst, uint32_t spec, const struct slot *s,
		  int sign)
{
	int64_t bytes = sign * (int64_t)inst->spec.specs[spec].size;

	used_add(p, inst, s->volume, bytes);
	if (s->state != SLOT_REMOVING)
		return;
	p->volume[s->volume].class[class_of(inst, s->volume, spec)].removing += (uint64_t)sign;
	removing_add(p, inst, s->volume, bytes);
}

void move_swap(struct partition *p, struct block *b, uint32_t spec, uint32_t volume, uint32_t slab,
	       uint32_t index, uint64_t hold_until)
{
	struct instance *inst = block_instance(b);
	struct slot *s = &b->slot[spec];
	struct skv_pool *pool = p->volume[s->volume].pool;
	struct skv_run old = { s->slab, s->index, 1 };

	ASSERT_EXCLUSIVE(p);
	assert(s->state == SLOT_COMMITTED || s->state == SLOT_REMOVING);
	assert(skv_pool_is_used(p->volume[volume].pool, slab, index) &&
	       skv_pool_owner(p->volume[volume].pool, slab, index) == NO_BLOCK);
	evict_withhold(p, b); /* from the queues of where it was */
	block_touch(p, b);
	count(p, inst, spec, s, -1);
	if (hold_until > slots_free_by(&p->volume[s->volume], skv_now_ms(p->core->clock)))
		skv_pool_hold(pool, old, hold_until);
	else
		skv_pool_free(pool, old);
	s->volume = volume;
	s->slab = slab;
	s->index = index;
	count(p, inst, spec, s, 1);
	skv_pool_set_owner(p->volume[volume].pool, slab, index, block_id(b));
	if (block_has_committed(inst, b))
		evict_consider(p, b);
}
