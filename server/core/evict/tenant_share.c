/*
 * tenant_share.c - computes which tenants exceed their share, for the choice of victims.
 *
 * The tenants with blocks in the searched storages, and the tenant that needs room, share the room
 * by their weights. Other tenants may use an unused share; it returns block by block, from the
 * tenant furthest over its share. No tenant below its share loses blocks to another. If a single
 * tenant has blocks, as in stores without tenants, nothing is computed.
 *
 * The sums are made at the start of a search and go down with each victim (model/tenant.c). Under
 * the write lock.
 */
#include "tenant_share.h"

#include <assert.h>

#include <model/objects.h>
#include <model/partition.h>
#include <model/queue.h>
#include <model/quota_share.h>
#include <model/rules.h>
#include <model/tenant.h>
#include <model/volume.h>
#include <evict/clear.h>
#include <evict/evict.h>

#include "quota_share.h"

static uint64_t staying(uint64_t used, uint64_t removing)
{
	return used > removing ? used - removing : 0;
}

static void sum_volume(struct partition *p, uint32_t volume)
{
	for (size_t i = 0; i < p->n_tenant; i++) {
		const struct tenant_volume *in = tenant_in(p->tenant[i], volume);

		p->tenant[i]->used = in ? staying(in->used_bytes, in->removing_bytes) : 0;
	}
}

static void sum_group(struct partition *p, const struct group *g)
{
	for (size_t i = 0; i < p->n_tenant; i++)
		p->tenant[i]->used = 0;
	for (const struct instance *inst = g->members; inst; inst = inst->next_member)
		inst->tenant->used += staying(inst->used_bytes, inst->removing_bytes);
}

void tenant_shares_refresh(struct partition *p, const struct group *g, uint32_t volume,
			   const struct evict_for *w)
{
	const struct tenant *whose = w->whose ? w->whose->tenant : NULL;
	uint64_t room, n = 0, weights = 0;

	ASSERT_EXCLUSIVE(p);
	p->tenants_counted = 0;
	if (p->n_tenant < 2)
		return;
	if (volume != ANY_VOLUME)
		sum_volume(p, volume);
	else
		sum_group(p, g);
	for (size_t i = 0; i < p->n_tenant; i++) {
		const bool counts = p->tenant[i]->used > 0 || p->tenant[i] == whose;

		n += counts;
		weights += counts ? rule_weight(p->tenant[i]->rule) : 0;
	}
	room = volume != ANY_VOLUME ? p->volume[volume].capacity : group_room(p, g);
	for (size_t i = 0; n > 1 && i < p->n_tenant; i++)
		p->tenant[i]->share = rule_part(room, rule_weight(p->tenant[i]->rule), weights);
	p->tenants_counted = n > 1 ? (uint32_t)n : 0;
}

uint64_t tenant_share_ratio(const struct partition *p, const struct instance *inst,
			    const struct evict_for *w)
{
	const struct tenant *t = inst->tenant;
	const uint64_t have = t->used + (w->whose && w->whose->tenant == t ? w->bytes : 0);
	unsigned __int128 ratio;

	ASSERT_SHARED(p);
	if (!p->tenants_counted)
		return 0;
	if (!t->share)
		return have ? UINT64_MAX : 0;
	ratio = (unsigned __int128)have * QUOTA_SHARE_ONE / t->share;
	if (ratio == QUOTA_SHARE_ONE && have > t->share)
		ratio++; /* over by less than the ratio's resolution */
	return ratio < UINT64_MAX ? (uint64_t)ratio : UINT64_MAX;
}

bool tenant_share_allows(const struct partition *p, const struct instance *inst,
			 const struct evict_for *w)
{
	if (!p->tenants_counted || !w->whose || w->whose->tenant == inst->tenant)
		return true;
	return tenant_share_ratio(p, inst, w) > QUOTA_SHARE_ONE;
}

bool tenant_share_splits(const struct partition *p, const struct evict_set *set)
{
	for (uint32_t i = 1; p->tenants_counted && i < set->n; i++)
		if (set->member[i]->inst->tenant != set->member[0]->inst->tenant)
			return true;
	return false;
}

bool evict_below_tenant_share(struct partition *p, uint32_t volume, const struct evict_for *w)
{
	ASSERT_EXCLUSIVE(p);
	assert(w->whose);
	tenant_shares_refresh(p, NULL, volume, w);
	return p->tenants_counted && tenant_share_ratio(p, w->whose, w) <= QUOTA_SHARE_ONE;
}
