/*
 * heal.c - restores what is missing in replicated groups (decision 0061): copies of blocks that
 * have none, and new locations for blocks whose own is lost.
 *
 * A group is replicated if its fast tier says `replicate`. Each take of a mover examines a few
 * thousand blocks of such groups, in order of their entries, from where the last take ended. After
 * a pass without a finding the search rests ten times as long as the pass took. A copy is made if
 * the tier has space without evicting. A block whose slab file drains or is bad, or whose storage
 * cannot be read for HEAL_AFTER_MS, is moved like other blocks (move.c). Its bytes are read there
 * or from its copy. Under the write lock.
 */
#include "move_find.h"

#include <assert.h>

#include <lock/core.h>
#include <lock/lock.h>
#include <model/block.h>
#include <model/device.h>
#include <model/files.h>
#include <model/move.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/quota_share.h>
#include <model/table.h>
#include <model/tier.h>
#include <model/volume.h>
#include <model/wish.h>
#include <storage/device.h>
#include "copy.h"

#define LOOKS 4096u         /* entries looked at by one take */
#define HEAL_AFTER_MS 10000u /* a storage that does not answer for so long is given up, for now */
#define REST_TIMES 10u
#define REST_LEAST_MS 1000u

static bool is_replicated(const struct group *g)
{
	return g->fast && g->fast->spec.replicate;
}

bool heal_due(const struct partition *p, uint64_t now)
{
	bool any = false;

	ASSERT_SHARED(p);
	for (size_t i = 0; p->n_tiers && i < p->n_group && !any; i++)
		any = is_replicated(p->group[i]);
	return any && now >= p->heal.again_at;
}

static void note_unread(struct partition *p, uint64_t now)
{
	ASSERT_EXCLUSIVE(p);
	for (uint32_t i = 0; i < p->n_volume; i++) {
		struct volume *v = &p->volume[i];

		if (!v->pool || device_readable(v->dev))
			v->unread_since = 0;
		else if (!v->unread_since)
			v->unread_since = now;
	}
}

/* Returns true if the block must be moved, unless a drain moves it by itself. */
static bool is_going(const struct found *f, const struct slot *s)
{
	const struct volume *v = &f->p->volume[s->volume];
	const struct volume_file *file;
	struct skv_slab_info info;

	if (v->unread_since)
		return f->now - v->unread_since >= HEAL_AFTER_MS;
	if ((!v->n_drain && !v->n_bad) || !skv_pool_slab(v->pool, s->slab, &info))
		return false;
	file = file_find(v, info.place.file);
	return file && (file->bad || (file->drains && !file_moves(v, file)));
}

/* Returns true if the tier has space for this many blocks without evicting. */
static bool has_room(const struct partition *p, const struct instance *copies, uint32_t n)
{
	const uint64_t room = group_room(p, copies->group);
	const uint32_t keep = p->core->o.free_percent + 2; /* room that is kept free is none */

	return keep < 100 &&
	       copies->group->used_bytes + n * copies->block_bytes <= percent_of(room, 100 - keep);
}

static void look_at(struct found *f, struct copying *k, struct picks *stale, struct block *b,
		    struct instance *copies)
{
	struct partition *p = f->p;
	const struct instance *inst = block_instance(b);
	const uint32_t before = f->n;
	bool going = false;

	ASSERT_EXCLUSIVE(p);
	for (uint32_t spec = 0; spec < inst->spec.n_specs && f->n < f->max; spec++) {
		const struct slot *s = &b->slot[spec];

		if (s->state != SLOT_COMMITTED || !s->has_checksum || !is_going(f, s))
			continue;
		going = true;
		if (copies_n(k))
			p->heal.found = true; /* the next pass has it */
		else if (!move_has(p, b, spec))
			move_from_copy(f, b, spec, copies);
	}
	p->heal.found |= f->n > before;
	if (!going && !f->n && has_room(p, copies, copies_n(k) + 1)) {
		const enum copy_state state = copies_consider(p, k, b, copies, stale);

		p->heal.found |= state == COPY_WANTED || state == COPY_STALE;
	}
}

static void end_pass(struct partition *p, uint64_t now)
{
	const uint64_t rest = REST_TIMES * (now - p->heal.began);

	ASSERT_EXCLUSIVE(p);
	p->heal.again_at = now;
	if (!p->heal.found)
		p->heal.again_at += rest > REST_LEAST_MS ? rest : REST_LEAST_MS;
	p->heal.at = 0;
	p->heal.found = false;
}

/* A portion has moves, or copies for one instance, not both: the next pass handles the others. */
void heal_find(struct found *f, struct copying *k, struct picks *stale)
{
	struct partition *p = f->p;
	uint32_t looks = LOOKS;

	ASSERT_EXCLUSIVE(p);
	assert(f->n == 0 && copies_n(k) == 0);
	note_unread(p, f->now);
	if (!heal_due(p, f->now))
		return;
	if (p->heal.at == 0)
		p->heal.began = f->now;
	while (looks) {
		const uint32_t no = p->heal.at >> CHUNK_SHIFT;
		const uint32_t place = p->heal.at & (CHUNK_CAPACITY - 1);
		const struct chunk *c = no && no < p->n_chunk ? p->chunk[no] : NULL;
		struct instance *copies;

		if (no >= p->n_chunk) {
			end_pass(p, f->now);
			return;
		}
		looks--;
		p->heal.at = (no + 1) << CHUNK_SHIFT;
		/* the group link of a dropped instance is NULL */
		if (!c || !c->inst || c->inst->retired || !is_replicated(c->inst->group))
			continue;
		copies = tier_copies(p, c->inst);
		if (!copies || !copies_begin(k, c->inst, copies, WISH_ANYWHERE))
			continue;
		for (uint32_t i = place; i < c->fresh; i++, looks -= looks != 0) {
			struct block *b = chunk_place(c, i);

			if (!looks || f->n == f->max || copies_full(k)) {
				p->heal.at = no << CHUNK_SHIFT | i;
				return;
			}
			if (b->used)
				look_at(f, k, stale, b, copies);
		}
	}
}
