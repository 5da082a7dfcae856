/*
 * families.c - in which partition all instances of a family are: for calls on all of them.
 *
 * A part of them must never be taken for all. What partition 0's owner says holds, by its places.
 * The partition's owner remembers it, for as long as the same manager leads: whatever is made then
 * is made beside what is there. When nothing is there any more the family may begin anew elsewhere,
 * so an empty list is asked about. No state of its own.
 */
#include "route.h"

#include <assert.h>
#include <string.h>

#include <lock/gate.h>
#include <lock/lock.h>
#include <model/partition.h>

static bool leads(const struct route *r) { return one_state_get(r->core[0]) == SKV_CORE_READY; }

/* As partition 0's owner, which has read all places: PLACE_NONE, PLACE_SEVERAL, or where. */
static bool is_known(struct route *r, struct skv_key name, uint32_t *at)
{
	const uint64_t fence = owner_fence(r->core[0]);
	bool known;

	skv_mutex_lock(&r->lock);
	known = r->places.complete && r->places.fence == fence;
	*at = places_family(&r->places, name);
	skv_mutex_unlock(&r->lock);
	return known && leads(r);
}

static bool is_told(struct route *r, struct skv_key name, uint32_t *at)
{
	const uint64_t lead = place_lead(r);
	const struct place *p;
	bool told;

	skv_mutex_lock(&r->lock);
	p = places_find(&r->places, name);
	told = p && !p->members && p->teller == lead;
	if (told)
		*at = p->partition;
	skv_mutex_unlock(&r->lock);
	return told;
}

/* It is for this one's owner, who may be here by now. */
static int ask(const struct skv_core *one, struct skv_family *out, struct skv_error *err)
{
	const int rc = core_gate(one, err);

	out->partition = one->o.partition;
	return rc == SKV_OK ? SKV_E_NOT_READY : rc;
}

static int find_as_lead(struct route *r, struct skv_key name, struct skv_family *out,
			struct skv_error *err)
{
	uint32_t at;

	if (!is_known(r, name, &at))
		return ask(route_missing(r), out, err);
	if (at == PLACE_NONE)
		return SKV_E_NOT_FOUND;
	if (at >= r->n) /* PLACE_SEVERAL */
		return skv_fail(err, SKV_E_UNSUPPORTED, NULL,
				"they are in several partitions, which several managers have");
	out->partition = at;
	out->sure = true;
	return core_gate(r->core[at], err);
}

static int find_as_other(struct route *r, struct skv_key name, uint32_t refused,
			 struct skv_family *out, struct skv_error *err)
{
	if (!is_told(r, name, &out->partition) || refused >> out->partition & 1)
		return ask(r->core[0], out, err);
	out->remembered = true;
	return core_gate(r->core[out->partition], err);
}

/* Each load of a partition begins anew to count: how often it was given up comes first. */
static uint64_t turn_of_one(struct skv_core *one)
{
	uint64_t turn = owner_given_up(one) << 32;

	skv_rwlock_read(&one->lock);
	if (one->partition)
		turn += one->partition->inst_turn;
	skv_rwlock_read_unlock(&one->lock);
	return turn;
}

static uint64_t turn_of(struct skv_core *c, uint32_t partition)
{
	const struct route *r = c->route;
	uint64_t turn = 0;

	if (!r)
		return turn_of_one(c);
	for (uint32_t i = 0; i < r->n; i++)
		if (partition == i || partition == SKV_MAX_PARTITIONS)
			turn += turn_of_one(r->core[i]);
	return turn;
}

static int find_family(struct skv_core *c, const char *family, uint32_t refused,
		       struct skv_family *out, struct skv_error *err)
{
	const struct skv_key name = place_family_name(family);
	struct route *r = c->route, *all = whole(c)->route;
	int rc = SKV_OK;

	*out = (struct skv_family){ .partition = SKV_MAX_PARTITIONS, .name = { name.hi, name.lo } };
	if (!r) {
		out->partition = c->o.partition;
		if (all) /* it was sent here for this one */
			place_learn(all, name, out->partition);
	} else if (!place_elsewhere(r)) {
		out->partition = SKV_MAX_PARTITIONS;
	} else if (leads(r)) {
		rc = find_as_lead(r, name, out, err);
	} else {
		rc = find_as_other(r, name, refused, out, err);
	}
	return rc;
}

struct skv_core *family_look(struct skv_core *c, const struct skv_target *t, bool *has,
			     struct skv_door *door)
{
	struct skv_error ignored;
	struct skv_family f;

	*has = find_family(c, t->name, t->refused, &f, &ignored) != SKV_E_NOT_FOUND;
	door->sure = f.sure;
	if (f.partition == SKV_MAX_PARTITIONS || !c->route)
		return c->route ? route_missing(c->route) : c;
	memcpy(door->name, f.name, sizeof door->name);
	return c->route->core[f.partition];
}

int skv_core_family(struct skv_core *c, const char *family, struct skv_family *out,
		    struct skv_error *err)
{
	const int rc = find_family(c, family, 0, out, err);

	if (rc == SKV_OK)
		out->turn = turn_of(c, out->partition);
	return rc;
}

int skv_core_family_instances(struct skv_core *c, const struct skv_family *f, const char *tenant,
			      struct skv_arena *a, struct skv_instance_view **out, uint32_t *n,
			      struct skv_error *err)
{
	struct route *r = c->route;
	int rc;

	if (f->partition == SKV_MAX_PARTITIONS)
		return skv_core_instances(c, tenant, NULL, a, out, n, err);
	assert(r ? f->partition < r->n : f->partition == c->o.partition);
	rc = one_instances(r ? r->core[f->partition] : c, tenant, NULL, a, out, n, err);
	if (rc != SKV_OK || *n > 0 || !f->remembered)
		return rc;
	rc = core_gate(r->core[0], err);
	return rc == SKV_OK ? SKV_E_NOT_READY : rc;
}
