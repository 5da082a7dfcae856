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

/* *has: the object exists in that part; for sessions and moves only their owner knows. */
static struct skv_cluster *find_part(struct skv_cluster *c, const struct skv_target *t, bool *has,
				     struct skv_door *door)
{
	struct route *r = c->route;
	struct skv_cluster *found;

	assert(t->kind == SKV_TARGET_NONE || t->name);
	*has = true;
	if (c->core || r->n == 1)
		return c->core ? c : &r->part[0];
	door->unknown = t->kind == SKV_TARGET_NONE && route_must_wait(r);
	if (t->kind == SKV_TARGET_NONE)
		return route_missing(r);
	if (t->kind == SKV_TARGET_SESSION || t->kind == SKV_TARGET_MOVE)
		return route_by_id(r, t->name);
	found = route_here(r, t);
	*has = found != NULL;
	return found ? found : route_elsewhere(r, t, &door->unknown);
}

/* Returns how many ownerships behind the door were given up, of one partition or of all. */
static uint64_t given_up(const struct route *r, const struct skv_door *door)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < r->n; i++)
		if (!door->alone || r->core[i] == door->core)
			sum += owner_given_up(r->core[i]);
	return sum;
}

enum skv_where skv_find(struct skv_cluster *c, const struct skv_target *t, struct skv_door *door)
{
	bool has;

	*door = (struct skv_door){ .where = SKV_SOON };
	door->part = find_part(c, t, &has, door);
	door->core = door->part->core;
	door->partition = door->core->number;
	door->where = state_of(door->core);
	if (door->unknown)
		door->where = SKV_SOON;
	else if (door->where == SKV_HERE && !has)
		door->where = SKV_NOWHERE;
	door->alone = door->where == SKV_HERE && (skv_target_is_of_one(t->kind) || c->core);
	door->given_up = given_up(c->route, door);
	return door->where;
}

/* Checks the door. A partition that is no longer READY was counted before. */
int skv_door_check(const struct skv_door *door)
{
	const struct route *r = door->part->route;
	uint32_t ready = 0;
	bool valid = true;

	for (uint32_t i = 0; i < r->n; i++)
		if (!door->alone || r->core[i] == door->core)
			valid &= one_may_tell(r->core[i], &ready);
	return valid && ready && given_up(r, door) == door->given_up ? SKV_OK : SKV_E_NOT_OWNER;
}
