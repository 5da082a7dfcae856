/*
 * move_find.c - finds slots to move and their targets: the slots of files that drain with `move`,
 * in order, and pinned blocks of slabs that another class needs (evict/rebalance.c); free slots
 * elsewhere in the storages of their groups.
 *
 * Each draining file remembers where the last search in it ended. Under the write lock.
 */
#include "move_find.h"

#include <assert.h>

#include <lock/core.h>
#include <lock/lock.h>
#include <model/block.h>
#include <model/device.h>
#include <model/find.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/pin.h>
#include <model/queue.h>
#include <model/table.h>
#include <model/tier.h>
#include <model/volume.h>
#include <storage/device.h>
#include <storage/growth.h>
#include <evict/evict.h>
#include <evict/rebalance.h>

#define REST_MS 200u /* pause after a pass over a file that found nothing to move */

/* Would the block be the next to go where it is moved to? Of a full storage, where each that comes
 * costs another one: then it stays. */
static bool worth_less(const struct found *f, const struct volume *to, uint32_t class_id,
		       const struct block *b)
{
	const uint64_t idle = to->class[class_id].idle_ms;

	return idle && (!volume_has_room(to) || to->grow_full) &&
	       block_idle_ms(f->p, b, f->now) > idle;
}

static enum room take_in(struct found *f, const struct block *b, uint32_t spec, uint32_t at,
			 struct move_slot *out)
{
	struct partition *p = f->p;
	struct instance *inst = block_instance(b);
	struct volume *v = &p->volume[at];
	uint32_t class_id, n_runs;
	struct skv_run run;
	int rc;

	if (!volume_takes(v) || v->dev->ops->counted || !volume_fits(v, &inst->spec, spec))
		return NO_ROOM;
	if (volume_class(p, inst, spec, at, &class_id) != SKV_OK ||
	    evict_reserve(p, inst, at, class_id) != SKV_OK)
		return LATER;
	if (pin_kind(b) != SKV_PIN_HARD && worth_less(f, v, class_id, b))
		return NO_ROOM;
	rc = skv_pool_alloc(v->pool, class_id, 1, &run, &n_runs);
	if (rc == SKV_E_NO_SPACE && volume_can_grow(p, v)) {
		volume_ask_growth(p, v);
		return LATER;
	}
	if (rc != SKV_OK)
		return v->growing || v->class[class_id].removing ? LATER : NO_ROOM;
	v->class[class_id].taken++;
	v->class[class_id].wanted_ms = f->now;
	out->to_volume = at;
	out->to_slab = run.slab;
	out->to_index = run.first;
	if (v->dev->ops->least_grace_ms > f->least_grace)
		f->least_grace = v->dev->ops->least_grace_ms;
	return MAY_MOVE;
}

/* A slot in the first storage of the group that has room. */
static enum room take_target(struct found *f, const struct block *b, uint32_t spec,
			     struct move_slot *out)
{
	const struct group *g = block_instance(b)->group;
	enum room best = NO_ROOM;

	for (uint32_t i = 0; i < g->spec.n_storages; i++) {
		int at = volume_find(f->p, g->spec.storages[i]);
		enum room room = at < 0 ? NO_ROOM : take_in(f, b, spec, (uint32_t)at, out);

		if (room == MAY_MOVE)
			return room;
		if (room == LATER)
			best = LATER;
	}
	return best;
}

struct move_slot move_source_of(const struct block *b, uint32_t spec)
{
	const struct instance *inst = block_instance(b);
	const struct slot *s = &b->slot[spec];

	assert(s->state == SLOT_COMMITTED && s->has_checksum);
	return (struct move_slot){ .key = b->key, .generation = s->generation,
				   .length = inst->spec.specs[spec].size,
				   .checksum = s->checksum, .instance = inst->id, .spec = spec,
				   .volume = s->volume, .slab = s->slab, .index = s->index };
}

bool move_target(struct found *f, const struct block *b, uint32_t spec, struct move_slot *m)
{
	return take_target(f, b, spec, m) == MAY_MOVE;
}

void move_from_copy(struct found *f, const struct block *b, uint32_t spec,
		    const struct instance *copies)
{
	const struct slot *s = &b->slot[spec];
	const struct slot *copy = slot_serves(f->p, s) ? NULL : tier_copy(f->p, copies, b, spec);
	struct move_slot *m = &f->v[f->n];

	if (!slot_serves(f->p, s) && (!copy || !slot_serves(f->p, copy)))
		return;
	assert(f->n < f->max && f->max <= MAX_MOVE_SLOTS);
	*m = move_source_of(b, spec);
	if (copy) {
		m->copied = true;
		m->copy.volume = copy->volume;
		m->copy.slab = copy->slab;
		m->copy.index = copy->index;
	}
	f->n += move_target(f, b, spec, m);
}

enum room move_to(struct found *f, const struct block *b, uint32_t volume)
{
	const uint32_t n = block_instance(b)->spec.n_specs;
	enum room room = MAY_MOVE;

	ASSERT_EXCLUSIVE(f->p);
	for (uint32_t spec = 0; spec < n && room == MAY_MOVE; spec++) {
		const struct slot *s = &b->slot[spec];

		if (s->state != SLOT_COMMITTED || !s->has_checksum || s->volume == volume ||
		    !slot_serves(f->p, s) || move_has(f->p, b, spec))
			continue;
		if (f->n == f->max)
			return MORE;
		f->v[f->n] = move_source_of(b, spec);
		room = take_in(f, b, spec, volume, &f->v[f->n]);
		f->n += room == MAY_MOVE;
	}
	return room;
}

static void pick_slot(struct found *f, struct volume_file *file, const struct block *b,
		      uint32_t spec)
{
	const struct slot *s = &b->slot[spec];
	struct move_slot *m = &f->v[f->n];
	enum room room;

	if (s->state == SLOT_WRITING)
		file->saw_writing++;
	else if (s->state == SLOT_COMMITTED && !s->has_checksum)
		file->saw_unsummed++;
	if (s->state != SLOT_COMMITTED || !s->has_checksum || move_has(f->p, b, spec))
		return;
	*m = move_source_of(b, spec);
	room = take_target(f, b, spec, m);
	file->picked |= room != NO_ROOM;
	file->saw_roomless += room == NO_ROOM;
	f->n += room == MAY_MOVE;
}

typedef void pick_fn(struct found *f, struct volume_file *file, const struct block *b,
		     uint32_t spec);

static void look_at(struct found *f, const struct volume *v, struct volume_file *file,
		    uint32_t slab, uint32_t index, pick_fn *pick)
{
	const struct block *b;
	uint32_t owner;

	if (!skv_pool_is_used(v->pool, slab, index))
		return;
	owner = skv_pool_owner(v->pool, slab, index);
	if (owner == NO_BLOCK)
		return;
	b = block_get(f->p, owner);
	if (block_instance(b)->retired)
		return;
	for (uint32_t spec = 0; spec < block_instance(b)->spec.n_specs; spec++) {
		const struct slot *s = &b->slot[spec];

		if (s->state != SLOT_ABSENT && &f->p->volume[s->volume] == v && s->slab == slab &&
		    s->index == index)
			pick(f, file, b, spec);
	}
}

static void end_pass(const struct found *f, struct volume_file *file)
{
	file->unit = file->slot = 0;
	file->pass = 1; /* a mover was here */
	file->writing = file->saw_writing;
	file->unsummed = file->saw_unsummed;
	file->roomless = file->saw_roomless;
	file->saw_writing = file->saw_unsummed = file->saw_roomless = 0;
	file->again_at = file->picked ? 0 : f->now + REST_MS;
	file->picked = false;
}

bool move_walk(struct found *f, struct volume *v, struct volume_file *file, uint32_t end,
	       uint32_t *unit, uint32_t *slot, pick_fn *pick)
{
	while (f->looks && f->n < f->max) {
		struct skv_slab_info info;
		uint32_t next = *unit, slab;

		if (!skv_pool_next_slab(v->pool, file->number, &next, &slab))
			return true;
		skv_pool_slab(v->pool, slab, &info);
		if (info.place.unit >= end)
			return true;
		if (info.place.unit != *unit) {
			*unit = info.place.unit;
			*slot = 0;
		}
		for (; *slot < info.slots && f->looks && f->n < f->max; f->looks--)
			look_at(f, v, file, slab, (*slot)++, pick);
		if (*slot == info.slots) {
			*unit = next;
			*slot = 0;
		}
	}
	return false;
}

/* A pinned block in slabs that another class needs. */
static void pick_pinned(struct found *f, struct volume_file *file, const struct block *b,
			uint32_t spec)
{
	const struct slot *s = &b->slot[spec];

	(void)file;
	if (s->state != SLOT_COMMITTED || !s->has_checksum || pin_kind(b) != SKV_PIN_HARD ||
	    move_has(f->p, b, spec))
		return;
	f->v[f->n] = move_source_of(b, spec);
	f->n += move_target(f, b, spec, &f->v[f->n]);
}

static bool has_vacated(const struct volume *v, uint64_t now)
{
	return v->vacated.end && now >= v->vacated.again_at;
}

static void find_in_vacated(struct found *f, struct volume *v)
{
	struct volume_file *file = file_find(v, v->vacated.file);

	if (!has_vacated(v, f->now) || !file ||
	    !move_walk(f, v, file, v->vacated.end, &v->vacated.unit, &v->vacated.slot,
		       pick_pinned))
		return;
	v->vacated.unit = v->vacated.from;
	v->vacated.slot = 0;
	v->vacated.again_at = f->now + REST_MS;
}

/* Returns true if a mover has work in this file now. */
static bool is_due(const struct volume *v, const struct volume_file *file, uint64_t now)
{
	return file_moves(v, file) && !file->bad && now >= file->again_at &&
	       !skv_pool_file_is_empty(v->pool, file->number);
}

static void find_in(struct found *f, struct volume *v)
{
	for (size_t i = 0; i < v->n_drain && f->looks && f->n < f->max; i++) {
		struct volume_file *file = file_find(v, v->drain[i]);

		if (is_due(v, file, f->now))
			if (move_walk(f, v, file, UINT32_MAX, &file->unit, &file->slot, pick_slot))
				end_pass(f, file);
	}
}

void move_find_all(struct found *f)
{
	struct partition *p = f->p;
	uint32_t from = p->move_volume < p->n_volume ? p->move_volume : 0;

	ASSERT_EXCLUSIVE(p);
	for (uint32_t i = 0; i < p->n_volume && f->looks && f->n < f->max; i++) {
		uint32_t at = (from + i) % p->n_volume;

		if (!p->volume[at].pool || !device_readable(p->volume[at].dev) ||
		    !(p->volume[at].n_drain || p->volume[at].vacated.end))
			continue;
		find_in(f, &p->volume[at]);
		find_in_vacated(f, &p->volume[at]);
		p->move_volume = at + 1;
	}
}

void move_evict_behind(struct partition *p, const struct move *m)
{
	ASSERT_EXCLUSIVE(p);
	for (uint32_t i = 0, n; i < m->n; i += n) {
		const struct move_slot *t = &m->v[i];
		const struct instance *inst = instance_by_id(p, t->instance);

		for (n = 1; i + n < m->n && t[n].to_volume == t->to_volume &&
			    t[n].instance == t->instance && t[n].spec == t->spec; n++)
			;
		evict_behind(p, t->to_volume, class_of(inst, t->to_volume, t->spec), n);
	}
}

bool move_drain_due(const struct partition *p, uint64_t now)
{
	bool due = false;

	ASSERT_SHARED(p);
	for (uint32_t i = 0; i < p->n_volume && !due; i++) {
		due = p->volume[i].pool && has_vacated(&p->volume[i], now);
		for (size_t j = 0; p->volume[i].pool && j < p->volume[i].n_drain && !due; j++)
			due = is_due(&p->volume[i],
				     file_find(&p->volume[i], p->volume[i].drain[j]), now);
	}
	return due;
}
