/*
 * scrub.c - scrubs: movers read committed slots and verify their checksums, slab file by slab file.
 *
 * The file whose last whole pass began longest ago comes first. A take hands out a portion of it,
 * from where the last one ended, so several movers share a file; a finish reports the sound slots.
 * A pass ends with the last of its portions; an unfinished portion is handed out again
 * (model/move.c). Progress is a few numbers for each file (struct file_check), journaled with each
 * portion and kept in checkpoints: a pass continues after a restart. Slots without a checksum
 * cannot be checked; they are counted. Under the write lock.
 */
#include "scrub.h"

#include <assert.h>

#include <lock/core.h>
#include <lock/lock.h>
#include <model/block.h>
#include <model/device.h>
#include <model/files.h>
#include <model/move.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/volume.h>
#include <journal/change.h>
#include <journal/record.h>
#include <journal/replay.h>
#include <storage/device.h>
#include <ops/damage.h>
#include "move_find.h"

static bool is_due(const struct volume *v, const struct volume_file *f, uint64_t before_ms)
{
	return f->state == FILE_IN_USE && !f->bad && !f->lost &&
	       (f->check.began_ms || f->check.checked_ms < before_ms) &&
	       !skv_pool_file_is_empty(v->pool, f->number);
}

/* Calls fn for each file that is due; stops where it returns false. */
static void each_due(const struct partition *p, uint64_t before_ms,
		     bool (*fn)(void *ctx, struct volume *v, struct volume_file *f), void *ctx)
{
	for (uint32_t i = 0; i < p->n_volume; i++) {
		struct volume *v = &p->volume[i];

		if (!v->pool || v->dev->ops->counted || !device_readable(v->dev))
			continue;
		for (size_t j = 0; j < v->n_file; j++)
			if (is_due(v, &v->file[j], before_ms) && !fn(ctx, v, &v->file[j]))
				return;
	}
}

static bool say_due(void *ctx, struct volume *v, struct volume_file *f)
{
	(void)v;
	(void)f;
	*(bool *)ctx = true;
	return false;
}

bool scrub_due(const struct partition *p, uint64_t before_ms)
{
	bool due = false;

	ASSERT_SHARED(p);
	each_due(p, before_ms ? before_ms : UINT64_MAX, say_due, &due);
	return due;
}

/* ---- take ------------------------------------------------------------------------------------ */

struct oldest {
	struct volume *v;
	struct volume_file *f;
	struct skv_scrub_progress *out;
};

static bool add_due(void *ctx, struct volume *v, struct volume_file *f)
{
	struct oldest *o = ctx;

	o->out->more = true;
	o->out->left_bytes += skv_pool_file_used(v->pool, f->number);
	if (!f->check.handed_out && (!o->f || f->check.checked_ms < o->f->check.checked_ms)) {
		o->v = v;
		o->f = f;
	}
	return true;
}

static void add_slot(struct found *f, struct volume_file *file, const struct block *b,
		     uint32_t spec)
{
	const struct slot *s = &b->slot[spec];

	if (s->state != SLOT_COMMITTED)
		return;
	file->check.saw_slots++;
	file->check.saw_unsummed += !s->has_checksum;
	if (s->has_checksum)
		f->v[f->n++] = move_source_of(b, spec);
}

static void end_pass(const struct partition *p, struct volume_file *f)
{
	struct file_check *c = &f->check;

	assert(c->began_ms);
	for (const struct move *m = p->moves; m; m = m->next)
		if (move_checks_file(p, m) == f)
			return;
	if (c->handed_out)
		*c = (struct file_check){ .checked_ms = c->began_ms, .slots = c->saw_slots,
					  .unsummed = c->saw_unsummed };
}

/* Takes a portion of the file, or its end. */
static void take(struct found *f, struct volume *v, struct volume_file *file)
{
	struct file_check *c = &file->check;

	if (!c->began_ms)
		c->began_ms = skv_wall_ms(f->p->core->clock);
	f->file = file->number;
	f->volume = (uint32_t)(v - f->p->volume);
	f->unit = c->unit;
	f->slot = c->slot;
	c->handed_out = move_walk(f, v, file, UINT32_MAX, &c->unit, &c->slot, add_slot);
	if (f->n == 0)
		end_pass(f->p, file);
}

void scrub_find(struct found *f, uint64_t before_ms, struct skv_scrub_progress *out)
{
	const uint64_t now_ms = skv_wall_ms(f->p->core->clock);
	struct oldest o;

	ASSERT_EXCLUSIVE(f->p);
	assert(f->n == 0);
	do {
		o = (struct oldest){ .out = out };
		*out = (struct skv_scrub_progress){ .now_ms = now_ms };
		each_due(f->p, before_ms ? before_ms : now_ms, add_due, &o);
		if (o.f)
			take(f, o.v, o.f);
	} while (o.f && f->n == 0 && f->looks);
	f->checks = f->file_known = f->n > 0;
}

/* ---- finish ---------------------------------------------------------------------------------- */

static int replay_checked(struct replay *r, struct skv_rd *in, struct skv_error *err)
{
	const uint64_t storage = skv_get_varint(in), number = skv_get_varint(in);
	struct file_check c = { .checked_ms = skv_get_varint(in), .began_ms = skv_get_varint(in) };
	const uint64_t unit = skv_get_varint(in), slot = skv_get_varint(in);

	c.slots = skv_get_varint(in);
	c.unsummed = skv_get_varint(in);
	c.saw_slots = skv_get_varint(in);
	c.saw_unsummed = skv_get_varint(in);
	if (in->failed || number > UINT32_MAX || unit > UINT32_MAX || slot > UINT32_MAX)
		return corrupt(err, "malformed progress of a scrub");
	c.unit = (uint32_t)unit;
	c.slot = (uint32_t)slot;
	for (uint32_t i = 0; i < r->p->n_volume; i++) {
		struct volume *v = &r->p->volume[i];
		struct volume_file *f;

		if (!v->pool || v->dev->id != storage)
			continue;
		if (number == v->claim.number && file_add_claim(v) != SKV_OK)
			return corrupt(err, "a file that cannot be");
		f = file_find(v, (uint32_t)number);
		if (f) /* else it is gone: nothing to remember */
			f->check = c;
	}
	return SKV_OK;
}

const struct change_ops checked_ops = {
	.record = { "checked", replay_checked },
	.size = sizeof(struct change),
	.makes_more = true, /* no reserve for it: lost progress costs a repeat */
};

void scrub_finish(struct partition *p, struct move *m)
{
	struct volume_file *f = move_checks_file(p, m);
	struct change *ch = f ? change_make(&checked_ops) : NULL;

	ASSERT_EXCLUSIVE(p);
	m->portion.device = 0;
	if (f && f->check.began_ms)
		end_pass(p, f);
	if (!ch)
		return;
	record_checked(&ch->rec, p, &p->volume[m->portion.volume], f);
	if (ch->rec.failed || !ch->rec.len)
		change_destroy(ch);
	else
		change_queue(p, ch);
}
