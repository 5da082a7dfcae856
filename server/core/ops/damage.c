/*
 * damage.c - damaged blocks: reports of readers, findings of movers, and the repair.
 *
 * A slot is hidden at once if it was reported by a caller that may delete it, or by a mover: where
 * its block has a readable copy in the fast tier, lookups return the copy, and movers restore the
 * block from it; else the slot is removed like a deleted one, so its key can be written again. A
 * damaged copy is removed, its block stays. Other reports, and those above HIDES_PER_S, wait for a
 * mover's check: a reader with broken memory must not empty the cache. A report names the slot by
 * its generation, so it has no effect on later writes. Under the write lock.
 */
#include <ops/damage.h>

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <skv/log.h>
#include <skv/mem.h>

#include <lock/core.h>
#include <lock/gate.h>
#include <lock/lock.h>
#include <model/damage.h>
#include <model/device.h>
#include <model/find.h>
#include <model/index.h>
#include <model/move.h>
#include <model/objects.h>
#include <model/rules.h>
#include <model/table.h>
#include <model/tier.h>
#include <model/volume.h>
#include <journal/change.h>
#include <storage/device.h>
#include <evict/remove.h>
#include "move_find.h"

#define HIDES_AT_ONCE 512u /* reports acted on without a check, */
#define HIDES_PER_S 32u    /* and how many more each second */
#define LOOK_MS 1000u
#define CHECK_MS 60000u /* a suspect is given to another mover after this time */

/* ---- hiding ---------------------------------------------------------------------------------- */

static bool has_copy(const struct partition *p, const struct block *b, uint32_t spec)
{
	const struct slot *c = tier_copy(p, tier_copies(p, block_instance(b)), b, spec);

	return c && slot_serves(p, c);
}

/* Blocks hidden by one call, and the data of its log line. */
struct hiding {
	struct partition *p;
	const char *by;
	struct picks picks;
	uint32_t n;
	char first[256];
};

static void describe(struct hiding *h, const struct block *b, uint32_t spec)
{
	const struct instance *inst = block_instance(b);
	const struct volume *v = &h->p->volume[b->slot[spec].volume];
	struct skv_slab_info slab = { 0 };
	char key[SKV_KEY_HEX + 1];

	skv_pool_slab(v->pool, b->slot[spec].slab, &slab);
	skv_key_to_hex(b->key, key);
	snprintf(h->first, sizeof h->first,
		 "block %s of instance %s, spec %s, in slab file %u of storage %s", key,
		 inst->spec.id, inst->spec.specs[spec].name, slab.place.file, v->dev->name);
}

/* Returns false if out of memory; the slot stays, and will be found again. */
static bool hide(struct hiding *h, struct block *b, uint32_t spec)
{
	struct partition *p = h->p;
	const uint64_t generation = b->slot[spec].generation;

	ASSERT_EXCLUSIVE(p);
	assert(b->slot[spec].state == SLOT_COMMITTED);
	if (h->n == 0)
		describe(h, b, spec);
	if (!has_copy(p, b, spec) || damage_add(p, b, spec, true) != SKV_OK) {
		if (remove_mark_specs(p, &h->picks, b, 1u << spec) != SKV_OK)
			return false;
		damage_remove(p, generation);
	}
	h->n++;
	return true;
}

/* Queues the removals; *last is left as it is where there are none. */
static int end_hiding(struct hiding *h, struct change **last)
{
	int rc = h->picks.n ? remove_queue(h->p, &h->picks, last) : SKV_OK;
	uint32_t was;

	skv_free(h->picks.v);
	if (rc != SKV_OK || h->n == 0)
		return rc;
	COUNT(h->p->core, damaged_blocks, h->n);
	was = core_log(h->p->core);
	skv_log(SKV_LOG_WARN, "core", "damaged slots hidden: %u, found by %s: %s%s", h->n, h->by,
		h->first, h->n > 1 ? ", and others" : "");
	skv_log_partition(was);
	return rc;
}

void damages_go_on(struct partition *p, uint64_t now)
{
	struct hiding h = { .p = p, .by = "loss of their copies" };

	ASSERT_EXCLUSIVE(p);
	if (!p->damage.n || now < p->reports.again_at)
		return;
	p->reports.again_at = now + LOOK_MS;
	for (size_t i = p->damage.n; i-- > 0;) {
		const struct damage d = p->damage.v[i];
		struct block *b = damage_block(p, &d);

		if (!b || (d.hidden && !has_copy(p, b, d.spec) &&
			   remove_mark_specs(p, &h.picks, b, 1u << d.spec) == SKV_OK))
			damage_remove(p, d.generation);
	}
	(void)end_hiding(&h, NULL); /* counted already, when they were found */
}

/* ---- reports --------------------------------------------------------------------------------- */

struct report_op {
	struct waiter w;
	struct skv_report_res done; /* once it is durable */
};

static bool may_hide(struct partition *p, uint64_t now)
{
	const uint64_t more = (now - p->reports.paced_at) * HIDES_PER_S / 1000;

	ASSERT_EXCLUSIVE(p);
	if (more) {
		p->reports.allowed = more > HIDES_AT_ONCE - p->reports.allowed
					     ? HIDES_AT_ONCE
					     : p->reports.allowed + (uint32_t)more;
		p->reports.paced_at = now;
	}
	assert(p->reports.allowed <= HIDES_AT_ONCE);
	return p->reports.allowed && p->reports.allowed--;
}

/* Returns the spec's number; n_specs: no spec has that name. */
static uint32_t find_spec(const struct skv_instance_spec *s, const char *name)
{
	uint32_t i = 0;

	if (!name || !*name)
		return s->n_specs == 1 ? 0 : s->n_specs;
	while (i < s->n_specs && strcmp(s->specs[i].name, name) != 0)
		i++;
	return i;
}

/* The block of the instance, or its copy, that has the slot of this generation. */
static struct block *find_slot(const struct partition *p, const struct instance *inst,
			       struct skv_key key, uint32_t spec, uint64_t generation)
{
	for (; inst; inst = tier_copies(p, inst)) {
		struct block *b = index_find(p, inst, key);
		const struct slot *s = b ? &b->slot[spec] : NULL;

		if (s && s->state == SLOT_COMMITTED && s->has_checksum &&
		    s->generation == generation)
			return b;
	}
	return NULL;
}

static void judge(struct hiding *h, struct block *b, uint32_t spec, bool may_delete,
		  struct skv_report_res *res)
{
	struct partition *p = h->p;
	const struct damage *known = damage_find(p, b->slot[spec].generation);
	int rc;

	if (known && known->hidden) {
		res->hidden++;
	} else if (may_delete && may_hide(p, skv_now_ms(p->core->clock))) {
		const bool hidden = hide(h, b, spec);

		res->hidden += hidden;
		res->refused += !hidden;
	} else {
		rc = damage_add(p, b, spec, false);
		res->queued += rc == SKV_OK;
		res->refused += rc != SKV_OK;
	}
}

static int check(const struct instance *inst, const struct skv_report_req *req,
		 struct skv_error *err)
{
	char field[SKV_FIELD_MAX];

	for (uint32_t i = 0; i < req->n_damaged; i++) {
		const struct skv_damage *d = &req->damaged[i];

		snprintf(field, sizeof field, "damaged[%u].%s", i,
			 d->key >= req->n_keys ? "key" : "spec");
		if (d->key >= req->n_keys)
			return skv_fail(err, SKV_E_INVALID, field, "must be below %u, the keys",
					req->n_keys);
		if (find_spec(&inst->spec, d->spec) == inst->spec.n_specs)
			return skv_fail(err, SKV_E_INVALID, field, "no such spec of the instance");
	}
	return SKV_OK;
}

static int fill_report(struct waiter *w, struct partition *p, const struct change *ch, int status)
{
	(void)p;
	(void)ch;
	if (status == SKV_OK)
		*(struct skv_report_res *)w->res = ((struct report_op *)w)->done;
	return status;
}

static int report_locked(struct partition *p, struct report_op *op)
{
	const struct skv_report_req *req = op->w.req;
	struct hiding h = { .p = p, .by = "readers" };
	struct change *last = NULL;
	struct instance *inst;
	int rc = instance_need(p, req->tenant, req->instance, "instance", &inst, op->w.err);

	ASSERT_EXCLUSIVE(p);
	if (rc == SKV_OK)
		rc = check(inst, req, op->w.err);
	if (rc != SKV_OK)
		return rc;
	for (uint32_t i = 0; i < req->n_damaged; i++) {
		const struct skv_damage *d = &req->damaged[i];
		const uint32_t spec = find_spec(&inst->spec, d->spec);
		struct block *b = find_slot(p, inst, req->keys[d->key], spec, d->generation);

		if (b)
			judge(&h, b, spec, req->may_delete, &op->done);
		else
			op->done.stale++;
	}
	rc = end_hiding(&h, &last);
	if (rc != SKV_OK)
		return rc;
	COUNT(p->core, damage_reports, req->n_damaged);
	COUNT(p->core, damage_queued, op->done.queued);
	COUNT(p->core, damage_stale, op->done.stale);
	COUNT(p->core, damage_refused, op->done.refused);
	if (!last)
		return fill_report(&op->w, p, NULL, SKV_OK);
	change_wait(last, &op->w);
	return SKV_PENDING;
}

int skv_core_report(struct skv_core *c, const struct skv_report_req *req,
		    struct skv_report_res *res, struct skv_arena *a, struct skv_error *err,
		    const struct skv_done *done)
{
	struct report_op *op = skv_arena_calloc(a, 1, sizeof *op);
	int rc = rules_gate(c, req->tenant, req->n_damaged, err);

	*res = (struct skv_report_res){ 0 };
	if (rc != SKV_OK)
		return rc;
	if (!op)
		return SKV_E_NOMEM;
	op->w = (struct waiter){ .completion.done = *done, .fill = fill_report, .req = req,
				 .res = res, .arena = a, .err = err };
	core_lock(c);
	rc = c->partition ? report_locked(c->partition, op) : gate_recovering(err);
	core_unlock(c);
	return rc;
}

/* ---- movers ---------------------------------------------------------------------------------- */

/* Applies a mover's finding about slot i of the move. */
static void settle_slot(struct hiding *h, const struct move *m, uint32_t i, bool right)
{
	struct partition *p = h->p;
	const struct move_slot *v = &m->v[i];
	struct block *b = move_source(p, v);
	const struct damage *known;

	if (b && v->copied) { /* the mover read the block's copy */
		b = index_find(p, tier_copies(p, block_instance(b)), v->key);
		if (!b || b->slot[v->spec].state != SLOT_COMMITTED ||
		    b->slot[v->spec].volume != v->copy.volume ||
		    b->slot[v->spec].slab != v->copy.slab ||
		    b->slot[v->spec].index != v->copy.index)
			return;
	}
	known = b ? damage_find(p, b->slot[v->spec].generation) : NULL;
	if (b && !right)
		(void)hide(h, b, v->spec);
	else if (known && !known->hidden) {
		COUNT(p->core, damage_refuted, 1);
		damage_remove(p, known->generation);
	}
}

uint32_t damages_settle(struct partition *p, const struct move *m,
			const struct skv_move_finish_req *req, struct change **last)
{
	struct hiding h = { .p = p, .by = "movers" };

	ASSERT_EXCLUSIVE(p);
	assert(req->n_moved == m->n);
	for (uint32_t i = 0; i < m->n; i++)
		if (req->moved[i] || (req->damaged && req->damaged[i]))
			settle_slot(&h, m, i, req->moved[i]);
	return end_hiding(&h, last) == SKV_OK ? h.n : 0;
}

bool damages_due(const struct partition *p, uint64_t now, bool moves)
{
	bool due = moves && p->damage.n_hidden;

	ASSERT_SHARED(p);
	for (size_t i = 0; i < p->damage.n && !due; i++)
		due = !p->damage.v[i].hidden && p->damage.v[i].asked_until <= now;
	return due;
}

/* Moves of hidden blocks, whose bytes are read from their copies, else suspects to check. */
void damages_find(struct found *f)
{
	struct partition *p = f->p;

	ASSERT_EXCLUSIVE(p);
	for (size_t i = 0; p->damage.n_hidden && i < p->damage.n && f->n < f->max; i++) {
		const struct damage *d = &p->damage.v[i];
		const struct block *b = d->hidden ? damage_block(p, d) : NULL;

		if (b && !move_has(p, b, d->spec))
			move_from_copy(f, b, d->spec, tier_copies(p, block_instance(b)));
	}
	f->checks = f->n == 0;
	for (size_t i = 0; f->checks && i < p->damage.n && f->n < f->max; i++) {
		const struct damage *d = &p->damage.v[i];
		const struct block *b = d->hidden ? NULL : damage_block(p, d);

		if (d->hidden || d->asked_until > f->now)
			continue;
		damage_ask(p, i, f->now + CHECK_MS);
		if (b && slot_serves(p, &b->slot[d->spec]))
			f->v[f->n++] = move_source_of(b, d->spec);
	}
	f->checks = f->checks && f->n;
}
