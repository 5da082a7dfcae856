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
				  struct skv_door *door)
{
	struct skv_core *found;

	assert(t->kind == SKV_TARGET_NONE || t->name);
	*has = true;
	if (t->kind == SKV_TARGET_FAMILY)
		return family_look(c, t, has, door);
	if (!c->route)
		return c;
	door->unknown = t->kind == SKV_TARGET_NONE && route_must_wait(c->route);
	if (t->kind == SKV_TARGET_NONE)
		return route_missing(c->route);
	if (t->kind == SKV_TARGET_SESSION)
		return route_session(c, t->name);
	if (t->kind == SKV_TARGET_MOVE)
		return route_move(c, t->name);
	found = route_here(c->route, t);
	*has = found != NULL;
	return found ? found : route_elsewhere(c->route, t, door);
}

static uint64_t given_up_by_all(struct skv_core *c)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < skv_core_partitions(c); i++)
		sum += owner_given_up(skv_core_alone(c, i));
	return sum;
}

enum skv_where skv_find(struct skv_core *cluster, const struct skv_target *t, struct skv_door *door)
{
	bool has;

	*door = (struct skv_door){ .where = SKV_SOON };
	door->core = find_core(cluster, t, &has, door);
	door->partition = door->core->o.partition;
	door->where = state_of(door->core);
	if (door->unknown)
		door->where = SKV_SOON;
	else if (door->where == SKV_HERE && !has)
		door->where = SKV_NOWHERE;
	door->alone = door->where == SKV_HERE && skv_target_is_of_one(t->kind);
	door->given_up = door->alone ? owner_given_up(door->core) : given_up_by_all(whole(cluster));
	return door->where;
}

/* One that is seen not to be READY any more was counted before. */
int skv_door_check(const struct skv_door *door)
{
	struct skv_core *all = whole(door->core);
	const uint32_t n = door->alone ? 1 : skv_core_partitions(all);
	uint64_t given_up = 0;
	uint32_t ready = 0;
	bool valid = true;

	for (uint32_t i = 0; i < n; i++) {
		const struct skv_core *one = door->alone ? door->core : skv_core_alone(all, i);

		valid &= one_may_tell(one, &ready);
		given_up += owner_given_up(one);
	}
	return valid && ready && given_up == door->given_up ? SKV_OK : SKV_E_NOT_OWNER;
}
