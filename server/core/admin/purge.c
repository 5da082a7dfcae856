/*
 * purge.c - removes everything that is stored or being written for some instances of a partition: a
 * clear for each (ops/purge.c), answered when all are durable.
 *
 * No registration changes, so no turn is taken. No state; the calls block.
 */
#include <string.h>

#include <skv/arena.h>

#include <lock/core.h>
#include <lock/gate.h>
#include <lock/lock.h>
#include <lock/one.h>
#include <model/find.h>
#include <model/objects.h>
#include <model/partition.h>
#include <journal/change.h>
#include <ops/purge.h>
#include "admin.h"

static bool is_named(const struct skv_purge_req *q, const char *id)
{
	for (uint32_t i = 0; i < q->n_instances; i++)
		if (strcmp(q->instances[i], id) == 0)
			return true;
	return false;
}

/* Copies in fast tiers go with what they are copies of. */
static bool is_meant(const struct skv_purge_req *q, const struct instance *inst)
{
	const struct skv_instance_spec *s = &inst->spec;

	if (inst->dropped || *inst->group->spec.tier_of ||
	    (*q->tenant && strcmp(s->tenant, q->tenant) != 0))
		return false;
	return q->n_instances ? is_named(q, s->id)
	       : *q->prefix   ? strncmp(s->id, q->prefix, strlen(q->prefix)) == 0
	       : *q->group    ? strcmp(inst->group->spec.name, q->group) == 0
			      : strcmp(s->tenant, q->whose) == 0;
}

static int purge_one(struct partition *p, struct instance *inst, struct skv_purge_res *res,
		     struct skv_arena *a, struct change **last)
{
	const char *name = skv_arena_strndup(a, inst->spec.id, strlen(inst->spec.id));
	struct change *ch = inst->clear; /* of one that is being deleted: its end is waited for */
	int rc = name ? SKV_OK : SKV_E_NOMEM;

	ASSERT_EXCLUSIVE(p);
	if (rc == SKV_OK && !inst->deleting) {
		((const char **)res->instances)[res->n_instances++] = name;
		res->blocks += inst->blocks;
		res->sessions += inst->open_sessions;
		rc = purge_queue(p, inst, false, &ch);
	}
	if (rc == SKV_OK && ch && (!*last || (*last)->number < ch->number))
		*last = ch;
	return rc;
}

/* SKV_PENDING: `w` waits for the last of the records, which are durable in order. */
static int purge_all(struct partition *p, const struct skv_purge_req *q, struct skv_purge_res *res,
		     struct waiter *w)
{
	const char **names = skv_arena_calloc(w->arena, p->n_inst + 1, sizeof *names);
	struct change *last = NULL;
	int rc = names ? SKV_OK : SKV_E_NOMEM;

	ASSERT_EXCLUSIVE(p);
	res->instances = names;
	for (size_t i = 0; rc == SKV_OK && i < p->n_inst; i++) {
		core_let_read(p->core, i);
		if (is_meant(q, p->inst[i]))
			rc = purge_one(p, p->inst[i], res, w->arena, &last);
	}
	if (rc != SKV_OK || !last)
		return rc;
	change_wait(last, w);
	return SKV_PENDING;
}

int one_purge(struct skv_core *c, const struct skv_purge_req *req, struct skv_purge_res *res,
	      struct skv_arena *a, struct skv_error *err)
{
	struct latch latch;
	struct waiter w = { .completion.done = { latch_open, &latch }, .arena = a, .err = err };
	int rc = core_gate(c, err);

	if (rc != SKV_OK)
		return rc;
	*res = (struct skv_purge_res){ .blocks = 0 };
	latch_init(&latch);
	core_lock(c);
	rc = c->partition ? purge_all(c->partition, req, res, &w) : gate_recovering(err);
	core_unlock(c);
	if (rc == SKV_PENDING)
		rc = latch_wait(c, &latch);
	latch_destroy(&latch);
	return rc;
}
