/* tier.c - which group is the fast tier of which, and which instance has another's copies. No state
 * of its own; see tier.h. */
#include <model/tier.h>

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <lock/core.h>
#include <model/block.h>
#include <model/find.h>
#include <model/index.h>
#include <model/objects.h>
#include <model/partition.h>

void tier_name(char out[TIER_NAME], const char *id, const char *group)
{
	int n = snprintf(out, TIER_NAME, "%s@%s", id, group);

	assert(n > 0 && n < (int)TIER_NAME);
}

static bool is_tier_of(const struct group *fast, const struct group *slow)
{
	return strcmp(fast->spec.tier_of, slow->spec.name) == 0;
}

void tier_link(struct partition *p, struct group *g)
{
	struct group *slow = *g->spec.tier_of ? group_find(p, g->spec.tier_of) : NULL;

	ASSERT_EXCLUSIVE(p);
	if (slow)
		slow->fast = g;
	/* Groups are loaded in any order. */
	for (size_t i = 0; p->n_tiers && i < p->n_group && !g->fast; i++)
		if (is_tier_of(p->group[i], g))
			g->fast = p->group[i];
}

void tier_unlink(struct partition *p, struct group *g)
{
	struct group *slow = *g->spec.tier_of ? group_find(p, g->spec.tier_of) : NULL;

	ASSERT_EXCLUSIVE(p);
	assert(!slow || slow->fast == g);
	if (slow)
		slow->fast = NULL;
}

static bool same_specs(const struct skv_instance_spec *a, const struct skv_instance_spec *b)
{
	if (a->n_specs != b->n_specs)
		return false;
	for (uint32_t s = 0; s < a->n_specs; s++)
		if (a->specs[s].size != b->specs[s].size ||
		    strcmp(a->specs[s].name, b->specs[s].name) != 0)
			return false;
	return true;
}

struct instance *tier_copies(const struct partition *p, const struct instance *inst)
{
	const struct group *fast = inst->group->fast;
	char name[TIER_NAME];
	struct instance *copies;

	ASSERT_SHARED(p);
	if (!fast)
		return NULL;
	assert(fast != inst->group && !fast->fast);
	tier_name(name, inst->spec.id, fast->spec.name);
	copies = instance_find(p, inst->spec.tenant, name);
	return copies && copies->group == fast && !copies->deleting &&
			       same_specs(&copies->spec, &inst->spec)
		       ? copies
		       : NULL;
}

const struct slot *tier_copy(const struct partition *p, const struct instance *copies,
			     const struct block *b, uint32_t spec)
{
	const struct block *copy = copies ? index_find(p, copies, b->key) : NULL;
	const struct slot *is = &b->slot[spec], *c = copy ? &copy->slot[spec] : NULL;

	ASSERT_SHARED(p);
	return c && c->state == SLOT_COMMITTED && c->has_checksum && is->has_checksum &&
			       c->checksum == is->checksum
		       ? c
		       : NULL;
}
