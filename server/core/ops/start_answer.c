/*
 * start_answer.c - fills the answer of a start: outcomes and locations.
 *
 * Stateless. Under the write lock, when the start's record is durable, or at once if there is
 * nothing to write.
 */
#include "start_answer.h"

#include <string.h>

#include <lock/lock.h>
#include <model/block.h>
#include <model/find.h>
#include <model/index.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/session.h>
#include <model/tier.h>
#include <model/volume.h>
#include <model/table.h>
#include <journal/change.h>
#include "plan.h"

/* The locations of `fill`, in the columns of `specs`. */
static int fill_row(struct file_table *files, const struct partition *p, const struct block *b,
		    uint32_t specs, uint32_t fill, struct skv_location *loc)
{
	const struct instance *inst = block_instance(b);
	int rc = SKV_OK;

	for (uint32_t spec = 0; rc == SKV_OK && specs_left(specs, spec); spec++) {
		if (!(specs >> spec & 1))
			continue;
		if (fill >> spec & 1)
			rc = location_fill(files, p, inst, b, spec, loc);
		loc++;
	}
	return rc;
}

static uint32_t committed_of(const struct block *b, uint32_t specs)
{
	uint32_t mask = 0;

	for (uint32_t spec = 0; b && specs_left(specs, spec); spec++)
		mask |= b->slot[spec].state == SLOT_COMMITTED ? specs & 1u << spec : 0;
	return mask;
}

static int fill_locations(struct waiter *w, struct partition *p, const struct session *s,
			  struct skv_start_res *res)
{
	bool existing = ((const struct skv_start_req *)w->req)->want_existing;
	struct file_table files = { .arena = w->arena, .files = &res->files };
	uint32_t write = 0;
	int rc = SKV_OK;

	for (uint32_t i = 0; rc == SKV_OK && i < s->n_keys; i++) {
		struct skv_location *loc = &res->loc[(size_t)i * res->n_specs];

		core_let_read(p->core, i);
		res->outcome[i] = s->outcome[i];
		if (s->outcome[i] == SKV_START_WRITE) {
			const struct session_write *sw = &s->write[write++];

			if (sw->specs)
				rc = fill_row(&files, p, block_get(p, sw->block), s->specs,
					      sw->specs, loc);
		} else if (s->outcome[i] == SKV_START_EXISTS && existing) {
			const struct block *b = index_find(p, s->inst, s->keys[i]);
			uint32_t there = committed_of(b, s->specs);

			if (there)
				rc = fill_row(&files, p, b, s->specs, there, loc);
			else
				/* evicted while the record was in flight */
				res->outcome[i] = SKV_START_BUSY;
		}
	}
	return rc;
}

/* Where the client writes copies, too. */
static int fill_copy_instance(const struct partition *p, const struct session *s,
			      struct skv_arena *a, struct skv_start_res *res)
{
	const struct group *fast = s->inst->group->fast;
	const struct instance *copies =
		fast && fast->spec.write_through && s->n_write ? tier_copies(p, s->inst) : NULL;

	if (copies)
		res->copy_instance =
			skv_arena_strndup(a, copies->spec.id, strlen(copies->spec.id));
	return copies && !res->copy_instance ? SKV_E_NOMEM : SKV_OK;
}

int start_fill(struct waiter *w, struct partition *p, const struct session *s)
{
	struct skv_start_res *res = w->res;
	uint64_t now = skv_now_ms(p->core->clock);

	ASSERT_EXCLUSIVE(p);
	memset(res, 0, sizeof *res);
	if (!s->anonymous)
		session_id_text(s->id, res->session);
	res->state = s->state;
	res->n_write = s->n_write;
	if (s->state != SKV_SESSION_OPEN)
		return SKV_OK;
	res->deadline_ms = s->deadline_at > now ? (uint32_t)(s->deadline_at - now) : 0;
	res->n_keys = s->n_keys;
	if (specs_names(s->inst, s->specs, w->arena, &res->specs, &res->n_specs) != SKV_OK)
		return SKV_E_NOMEM;
	res->outcome = skv_arena_calloc(w->arena, s->n_keys, 1);
	res->loc = skv_arena_calloc(w->arena, (size_t)s->n_keys * res->n_specs, sizeof *res->loc);
	if (!res->outcome || !res->loc || fill_copy_instance(p, s, w->arena, res) != SKV_OK)
		return SKV_E_NOMEM;
	return fill_locations(w, p, s, res);
}

int start_fill_none(const struct partition *p, struct waiter *w, const struct plan *plan)
{
	const struct skv_start_req *req = w->req;
	struct skv_start_res *res = w->res;
	struct file_table files = { .arena = w->arena, .files = &res->files };
	bool existing = req->want_existing;
	int rc;

	ASSERT_SHARED(p);
	memset(res, 0, sizeof *res);
	res->n_keys = req->n_keys;
	res->outcome = plan->outcome;
	rc = specs_names(plan->inst, plan->specs, w->arena, &res->specs, &res->n_specs);
	if (rc != SKV_OK)
		return rc;
	res->loc = skv_arena_calloc(w->arena, existing ? (size_t)res->n_keys * res->n_specs : 1,
				    sizeof *res->loc);
	if (!res->loc)
		return SKV_E_NOMEM;
	for (uint32_t i = 0; rc == SKV_OK && existing && i < res->n_keys; i++)
		if (plan->outcome[i] == SKV_START_EXISTS)
			rc = fill_row(&files, p, plan->have[i], plan->specs,
				      committed_of(plan->have[i], plan->specs),
				      &res->loc[(size_t)i * res->n_specs]);
	return rc;
}
