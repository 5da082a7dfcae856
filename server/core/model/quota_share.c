/*
 * quota_share.c - an instance's share of its group's capacity.
 *
 * Owns the sums that shares are computed from: weights, and capacities of instances with their own.
 * Shares are in bytes and matter only if group->spec.share says so: placement.c limits starts by
 * them, evict.c picks victims by them, reclaim.c evicts the excess over a lowered share. Under the
 * partition's lock, for writing where something changes.
 */
#include <model/quota_share.h>

#include <assert.h>

#include <model/find.h>
#include <model/objects.h>
#include <model/partition.h>

uint64_t spec_block_bytes(const struct skv_instance_spec *i)
{
	uint64_t sum = 0;

	for (uint32_t s = 0; s < i->n_specs; s++)
		sum += i->specs[s].size;
	return sum;
}

/* Adds its contribution to the group's sums. */
static void count(struct group *g, const struct skv_instance_spec *i, int sign)
{
	uint64_t weight = i->capacity ? 0 : i->weight ? i->weight : 1;

	g->weights += (uint64_t)sign * weight;
	g->capacities += (uint64_t)sign * i->capacity;
}

void group_join(struct group *g, struct instance *inst)
{
	inst->group = g;
	inst->next_member = g->members;
	inst->member_link = &g->members;
	if (g->members)
		g->members->member_link = &inst->next_member;
	g->members = inst;
	g->n_instances++;
	count(g, &inst->spec, 1);
}

void group_leave(struct instance *inst)
{
	assert(*inst->member_link == inst);
	*inst->member_link = inst->next_member;
	if (inst->next_member)
		inst->next_member->member_link = inst->member_link;
	inst->group->n_instances--;
	count(inst->group, &inst->spec, -1);
}

void group_replace(struct instance *of, struct instance *by)
{
	assert(*of->member_link == of);
	by->next_member = of->next_member;
	by->member_link = of->member_link;
	*by->member_link = by;
	if (by->next_member)
		by->next_member->member_link = &by->next_member;
}

void quota_share_change(struct instance *inst, const struct skv_instance_spec *to)
{
	count(inst->group, &inst->spec, -1);
	inst->spec.weight = to->weight;
	inst->spec.capacity = to->capacity;
	count(inst->group, &inst->spec, 1);
}

uint64_t group_storages_room(const struct partition *p, const struct group *g)
{
	uint64_t sum = 0;

	ASSERT_SHARED(p);
	for (uint32_t i = 0; i < g->spec.n_storages; i++) {
		int at = volume_find(p, g->spec.storages[i]);

		sum += at < 0 ? 0 : p->volume[at].capacity;
	}
	return sum;
}

uint64_t group_room(const struct partition *p, const struct group *g)
{
	uint64_t sum = group_storages_room(p, g);

	return g->spec.capacity && g->spec.capacity < sum ? g->spec.capacity : sum;
}

uint64_t quota_share_of(const struct instance *inst, uint64_t room)
{
	const struct group *g = inst->group;
	uint64_t rest = room > g->capacities ? room - g->capacities : 0;

	if (g->spec.share == SKV_SHARE_GROUP)
		return room;
	if (inst->spec.capacity)
		return inst->spec.capacity < room ? inst->spec.capacity : room;
	return (uint64_t)((unsigned __int128)rest * (inst->spec.weight ? inst->spec.weight : 1) /
			  g->weights);
}
