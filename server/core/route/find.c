/*
 * find.c - where a call belongs: see skv/find.h. No state of its own.
 *
 * The order is that of the truth: a partition that is here and has the object; the places that this
 * manager knows; the store.
 */
#include <skv/find.h>

#include <assert.h>

#include <lock/gate.h>

#include "route.h"

static enum skv_where state_of(const struct skv_core *one)
{
	if (core_gate(one, NULL) == SKV_OK)
		return SKV_HERE;
	return one_state_get(one) == SKV_CORE_STANDBY ? SKV_THERE : SKV_SOON;
}

/* *has: it is known to be there; of sessions and moves their owner says. */
static struct skv_core *find_core(struct skv_core *c, const struct skv_target *t, bool *has,
				  struct skv_error *err)
{
	struct skv_core *found;

	assert(t->kind != SKV_TARGET_NONE && t->name);
	*has = true;
	if (!c->route)
		return c;
	if (t->kind == SKV_TARGET_SESSION)
		return route_session(c, t->name);
	if (t->kind == SKV_TARGET_MOVE)
		return route_move(c, t->name);
	found = route_here(c->route, t);
	*has = found != NULL;
	return found ? found : route_elsewhere(c->route, t, err);
}

enum skv_where skv_find(struct skv_core *cluster, const struct skv_target *t, struct skv_door *door)
{
	struct skv_error why = { 0 };
	bool has;
	struct skv_core *one = find_core(cluster, t, &has, &why);

	*door = (struct skv_door){ .where = state_of(one), .partition = one->o.partition,
				   .unknown = why.asks, .core = one };
	door->given_up = (uint32_t)owner_given_up(one);
	if (door->unknown)
		door->where = SKV_SOON;
	else if (door->where == SKV_HERE && !has)
		door->where = SKV_NOWHERE;
	return door->where;
}
