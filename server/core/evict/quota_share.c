/* quota_share.c - which instances are over their quota share, when choosing victims. */
#include "quota_share.h"

#include <model/objects.h>
#include <model/partition.h>
#include <model/queue.h>
#include <model/quota_share.h>
#include <evict/evict.h>

void quota_shares_refresh(struct partition *p, uint32_t volume)
{
	ASSERT_EXCLUSIVE(p);
	for (const struct evict_set *set = p->volume[volume].sets; set; set = set->next)
		if (set->group->spec.share != SKV_SHARE_GROUP)
			set->group->room = group_room(p, set->group);
}

uint64_t quota_share_ratio(const struct instance *inst, const struct evict_for *w)
{
	uint64_t share,
		have = inst->used_bytes - inst->removing_bytes + (w->whose == inst ? w->bytes : 0);
	unsigned __int128 ratio;

	if (inst->group->spec.share == SKV_SHARE_GROUP)
		return 0;
	share = quota_share_of(inst, inst->group->room);
	ratio = share ? (unsigned __int128)have * QUOTA_SHARE_ONE / share : have ? UINT64_MAX : 0;
	if (ratio == QUOTA_SHARE_ONE && have > share)
		ratio++; /* over by less than the ratio's resolution */
	return ratio < UINT64_MAX ? (uint64_t)ratio : UINT64_MAX;
}

bool quota_share_allows(const struct evict_for *w, const struct instance *inst)
{
	if (inst->group->spec.share != SKV_SHARE_FIXED || !w->whose || w->whose == inst)
		return true;
	if (w->whose->group != inst->group)
		return true; /* storages shared by groups do not respect shares */
	return quota_share_ratio(inst, w) > QUOTA_SHARE_ONE;
}
