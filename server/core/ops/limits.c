/*
 * limits.c - the limits of a start: one list of limits, each of blocks, bytes or sessions that a
 * tenant, group or instance may have.
 *
 * A limit that is reached evicts blocks of the tenant, group or instance that has the limit, least
 * valuable first, soft-pinned blocks last. The start waits until the blocks are gone, and is
 * refused if no block may be evicted. Cleared instances are swept before anything is evicted. A
 * tenant's blocks in other partitions count, too, and reduce the room in this one; they are not
 * evicted from here, because that would take those partitions' locks. Where the policy admits, it
 * is asked about what a group or a type of storage would evict. A request's own blocks are evicted
 * last, and only for callers that need space for the whole request. Under the write lock.
 */
#include <ops/limits.h>

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <lock/core.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/quota_share.h>
#include <model/rules.h>
#include <model/tenant.h>
#include <evict/clear.h>
#include <evict/evict.h>
#include <evict/reclaim.h>
#include "placement.h"
#include "plan.h"

enum which {
	TENANT_OPEN, /* this one and the next evict nothing */
	GROUP_BLOCKS,
	MEMORY,	       /* of the process, when it is full */
	INSTANCE_MOST, /* more than its eviction queues hold */
	TENANT_MOST_BLOCKS,
	TENANT_MOST_BYTES,
	INSTANCE_SHARE,
	GROUP_BYTES,
	ALL_LIMITS,
	TYPE = ALL_LIMITS, /* and those after it: of the group's quotas */
};

static const struct rule {
	const char *its, *field, *hint;
	int wait;
	bool retired; /* cleared instances count until they are swept */
} rules[] = {
	[TENANT_OPEN] = { .its = "max_sessions", .field = "max_sessions",
			  .hint = ": finish some first" },
	[GROUP_BLOCKS] = { .its = "max_blocks", .field = "max_blocks",
			   .hint = ": delete some, or let them be evicted" },
	[MEMORY] = { .its = "blocks, for which there is memory (memory_max)", .field = NULL,
		     .hint = "", .wait = TRY_WAIT_QUOTA },
	[INSTANCE_MOST] = { .its = "blocks, which is the most that an instance has",
			    .field = "instance", .hint = "; use another instance beside it",
			    .wait = TRY_WAIT_QUOTA },
	[TENANT_MOST_BLOCKS] = { .its = "max_blocks", .field = "max_blocks", .hint = "",
				 .wait = TRY_WAIT_TENANT },
	[TENANT_MOST_BYTES] = { .its = "max_bytes", .field = "max_bytes", .hint = "",
				.wait = TRY_WAIT_TENANT, .retired = true },
	[INSTANCE_SHARE] = { .its = "share of its group, in bytes",
			     .hint = ", or the share is too small", .wait = TRY_WAIT_QUOTA },
	[GROUP_BYTES] = { .its = "capacity, in bytes", .hint = "", .wait = TRY_WAIT_QUOTA,
			  .retired = true },
};

/* The current state of a limit. */
struct limit {
	const char *of, *name; /* "tenant", and its name */
	uint64_t all, elsewhere; /* of all partitions, and of the others */
	uint64_t most;  /* of this one; UINT64_MAX: any number */
	uint64_t have;  /* including blocks being removed */
	uint64_t going; /* of it, until their removal is durable */
	uint64_t stays; /* part that stays after any eviction */
	uint64_t needs; /* the plan */
	uint64_t each;  /* a block */
	struct evict_what whose;
	bool admits; /* the policy may prefer to keep the victims */
};

static uint64_t less(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }
static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }
static uint64_t or_none(uint64_t most) { return most ? most : UINT64_MAX; }

static struct limit of_tenant(const struct plan *plan, enum which which)
{
	const struct tenant *t = plan->inst->tenant;
	const enum tenant_thing what = which == TENANT_OPEN	     ? TENANT_SESSIONS
				       : which == TENANT_MOST_BLOCKS ? TENANT_BLOCKS
								     : TENANT_BYTES;
	struct limit l = { .of = "tenant", .name = t->name, .most = rule_most(t->rule, what),
			   .elsewhere = tenant_elsewhere(t, what), .have = tenant_has(t, what),
			   .needs = 1, .each = 1,
			   .whose = { .of = t, .blocks = which == TENANT_MOST_BLOCKS } };

	l.all = l.most;
	if (l.most != UINT64_MAX)
		l.most = less(l.most, l.elsewhere);
	if (which == TENANT_OPEN) {
		l.stays = l.have;
	} else if (which == TENANT_MOST_BLOCKS) {
		l.stays = t->open_blocks;
		l.needs = plan->n_write;
	} else {
		l.going = t->removing_bytes;
		l.needs = plan->bytes;
		l.each = plan->inst->block_bytes;
	}
	return l;
}

/* The group that has most of them gives its own. */
static struct limit of_memory(const struct partition *p, const struct plan *plan)
{
	struct limit l = { .of = "manager's partition of", .name = plan->inst->group->spec.name,
			   .most = or_none(p->most_blocks), .needs = plan->n_write, .each = 1,
			   .whose = { .group = plan->inst->group, .blocks = true } };

	for (size_t i = 0; l.most != UINT64_MAX && i < p->n_group; i++) {
		const struct group *g = p->group[i];

		l.have += g->count.blocks + g->open_blocks;
		l.stays += g->open_blocks;
		if (g->count.blocks > l.whose.group->count.blocks)
			l.whose.group = g;
	}
	return l;
}

uint64_t limits_blocks(const struct partition *p)
{
	uint64_t n = 0;

	ASSERT_SHARED(p);
	for (size_t i = 0; i < p->n_group; i++)
		n += p->group[i]->count.blocks + p->group[i]->open_blocks;
	return n;
}

static struct limit of_instance(const struct partition *p, const struct plan *plan,
				enum which which)
{
	const struct instance *inst = plan->inst;
	const uint64_t each = inst->block_bytes;
	struct limit l = { .of = "instance", .name = inst->spec.id, .have = inst->used_bytes,
			   .going = inst->removing_bytes, .needs = plan->bytes, .each = each,
			   .most = UINT64_MAX, .whose = { .group = inst->group, .only = inst } };

	if (which == INSTANCE_MOST) {
		l.most = MAX_ENTRIES;
		l.have = inst->entries;
		l.going = least((l.going + each - 1) / each, l.have);
		l.needs = plan->n_write;
		l.each = 1;
		l.whose.blocks = true;
	} else if (inst->group->spec.share == SKV_SHARE_FIXED) {
		l.most = quota_share_of(inst, group_room(p, inst->group));
	}
	return l;
}

static struct limit of_group(const struct partition *p, const struct plan *plan, uint32_t which)
{
	const struct group *g = plan->inst->group;
	struct limit l = { .of = "group", .name = g->spec.name, .most = or_none(g->spec.capacity),
			   .have = g->used_bytes, .going = g->removing_bytes, .needs = plan->bytes,
			   .each = plan->inst->block_bytes, .whose.group = g, .admits = true };

	if (which == GROUP_BLOCKS) {
		l.most = or_none(g->spec.max_blocks);
		l.have = l.stays = g->count.blocks + g->open_blocks;
		l.needs = plan->n_write;
		l.each = 1;
	} else if (which >= TYPE) {
		l.whose.type = g->spec.quotas[which - TYPE].type;
		l.most = or_none(g->spec.quotas[which - TYPE].capacity);
		l.have = group_type_bytes(p, g, l.whose.type, &l.going);
		l.have += l.going;
	}
	return l;
}

static struct limit limit_of(const struct partition *p, const struct plan *plan, uint32_t which)
{
	if (which == MEMORY)
		return of_memory(p, plan);
	if (which == INSTANCE_MOST || which == INSTANCE_SHARE)
		return of_instance(p, plan, (enum which)which);
	return which >= TYPE || which == GROUP_BYTES || which == GROUP_BLOCKS
		       ? of_group(p, plan, which)
		       : of_tenant(plan, (enum which)which);
}

static bool fits(const struct limit *l)
{
	return l->most == UINT64_MAX || l->have + l->needs <= l->most;
}

/* ---- eviction -------------------------------------------------------------------------------- */

/* Evicts the excess over the limit, with soft-pinned blocks or without, from `first` on until a
 * block is evicted. */
static uint64_t make_room(struct partition *p, struct plan *plan, const struct limit *l, int first,
			  int last)
{
	const uint64_t staying = l->have - l->going, over = less(staying + l->needs, l->most);
	uint64_t got = 0;

	assert(l->have >= l->going);
	if (over == 0 || l->stays + l->needs > l->most)
		return 0;
	if (l->admits)
		plan->newcomers.at = (uint32_t)least(less(l->most, staying) / l->each,
						     plan->n_write);
	for (int soft = first; got == 0 && soft <= last && !plan->newcomers.refused; soft++) {
		const struct evict_for w = { .in = l->admits ? newcomers_of(plan) : NULL,
					     .whose = plan->inst, .bytes = plan->bytes,
					     .soft = soft };

		got = evict_some(p, &l->whose, over, &w);
	}
	return got;
}

/* Returns true if cleared instances of the group have something that counts. Sweeps some. */
static bool sweeps(struct partition *p, const struct plan *plan)
{
	retired_sweep(p, plan->inst->group, ANY_VOLUME, plan->n_write);
	return retired_left(p, plan->inst->group, ANY_VOLUME);
}

bool limits_type(struct partition *p, struct plan *plan, const char *type, enum effort effort,
		 bool *coming)
{
	const struct skv_group_spec *g = &plan->inst->group->spec;
	const int soft = effort == EVICT_SOFT_PINS;

	ASSERT_EXCLUSIVE(p);
	for (uint32_t i = 0; i < g->n_quotas; i++) {
		struct limit l = limit_of(p, plan, TYPE + i);

		if (strcmp(l.whose.type, type) != 0 || fits(&l))
			continue;
		if (retired_left(p, plan->inst->group, ANY_VOLUME)) {
			(void)sweeps(p, plan);
			*coming = true;
		} else if (effort != FREE && l.needs <= l.most) {
			*coming |= make_room(p, plan, &l, soft, soft) > 0 || l.going > 0;
		}
		return false;
	}
	return true;
}

/* ---- checks ---------------------------------------------------------------------------------- */

static void count_refused(struct partition *p, enum which which)
{
	COUNT(p->core, tenant_over_sessions, which == TENANT_OPEN);
	COUNT(p->core, tenant_over_blocks, which == TENANT_MOST_BLOCKS);
	COUNT(p->core, tenant_over_bytes, which == TENANT_MOST_BYTES);
}

static int refuse(struct partition *p, const struct plan *plan, enum which which,
		  struct skv_error *err)
{
	const struct rule *r = &rules[which];
	const struct limit l = limit_of(p, plan, which);
	const char *field = r->field;
	char others[96] = "";

	if (which == INSTANCE_SHARE)
		field = plan->inst->spec.capacity ? "capacity" : "weight";
	if (l.elsewhere && r->wait)
		snprintf(others, sizeof others,
			 ", or in another partition (%llu), whose blocks only its own starts evict",
			 (unsigned long long)l.elsewhere);
	count_refused(p, which);
	return skv_fail(err, which == TENANT_OPEN ? SKV_E_TOO_MANY : SKV_E_QUOTA, field,
			"%s '%s' has %llu of the %llu of its %s%s%s%s", l.of, l.name,
			(unsigned long long)(l.have + l.elsewhere),
			(unsigned long long)(l.elsewhere ? l.all : l.most), r->its,
			!r->wait ? ""
				 : ", and not enough of its own may be evicted: it is pinned, "
				   "leased or being written",
			others, r->hint);
}

static int check(struct partition *p, struct plan *plan, enum which which, struct skv_error *err)
{
	const struct rule *r = &rules[which];
	struct limit l = limit_of(p, plan, which);
	bool coming;

	if (fits(&l))
		return SKV_OK;
	if (!r->wait)
		return refuse(p, plan, which, err);
	coming = r->retired && sweeps(p, plan);
	l = limit_of(p, plan, which);
	if (!coming && !fits(&l)) {
		placement_keep(p, plan);
		coming = make_room(p, plan, &l, false, true) > 0 || l.going > 0;
		placement_let_go(p, plan);
		if (!coming && placement_eats_own(plan))
			coming = make_room(p, plan, &l, false, true) > 0;
		l = limit_of(p, plan, which); /* evicted blocks do not count, their bytes do */
	}
	if (fits(&l))
		return SKV_OK;
	if (!coming)
		return refuse(p, plan, which, err);
	if (r->wait == TRY_WAIT_TENANT)
		plan->inst->tenant->turn = p->wait_turn;
	return r->wait;
}

int limits_fixed(struct partition *p, struct plan *plan, struct skv_error *err)
{
	int rc = check(p, plan, GROUP_BLOCKS, err);

	return rc == SKV_OK ? check(p, plan, TENANT_OPEN, err) : rc;
}

int limits_check(struct partition *p, struct plan *plan, struct skv_error *err)
{
	int rc = SKV_OK;

	ASSERT_EXCLUSIVE(p);
	for (uint32_t i = MEMORY; rc == SKV_OK && i < ALL_LIMITS; i++)
		rc = check(p, plan, (enum which)i, err);
	return rc;
}

/* ---- how many -------------------------------------------------------------------------------- */

/* Blocks that limits from..to-1 let a plan have: of those for `type`, unless it is NULL. */
static uint64_t most_blocks(const struct partition *p, const struct plan *plan, uint32_t from,
			    uint32_t to, const char *type, bool evicting)
{
	uint64_t n = UINT64_MAX;

	for (uint32_t i = from; i < to; i++) {
		const struct limit l = limit_of(p, plan, i);

		if (!type || strcmp(l.whose.type, type) == 0)
			n = least(n, less(l.most, evicting ? l.stays : l.have) / l.each);
	}
	return n;
}

uint64_t limits_bound(const struct partition *p, const struct plan *plan)
{
	return most_blocks(p, plan, GROUP_BLOCKS, ALL_LIMITS, NULL, true);
}

uint64_t limits_now(const struct partition *p, const struct plan *plan)
{
	return most_blocks(p, plan, MEMORY, ALL_LIMITS, NULL, false);
}

uint64_t limits_now_of_type(const struct partition *p, const struct plan *plan, const char *type)
{
	return most_blocks(p, plan, TYPE, TYPE + plan->inst->group->spec.n_quotas, type, false);
}
