/*
 * reclaim.c - background eviction that a group or storage is configured for: limits, watermarks,
 * steps, idle blocks.
 *
 * A group has limits in bytes or blocks; its capacity is one too, less the percentage kept free.
 * Blocks being removed count as gone. A group with steps evicts one step per period, others all
 * that is due, in portions to keep the lock short. Watermarks of a group or storage replace that
 * percentage: nothing is evicted up to the high one; above it, everything down to the low one.
 * Soft-pinned blocks stay. Under the write lock; evict.c picks the victims.
 */
#include <evict/reclaim.h>

#include <assert.h>
#include <string.h>

#include <model/device.h>
#include <model/birth.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/quota_share.h>
#include <model/volume.h>
#include <evict/evict.h>

#define PORTION_BLOCKS 1024u /* in one call */

uint64_t group_type_bytes(const struct partition *p, const struct group *g, const char *type,
			  uint64_t *removing)
{
	uint64_t used = 0, going = 0;

	ASSERT_SHARED(p);
	for (uint32_t i = 0; i < g->n_in; i++) {
		const struct volume *s = &p->volume[g->in[i].volume];

		if (!s->pool || strcmp(s->dev->type, type) != 0)
			continue;
		used += g->in[i].used_bytes;
		going += g->in[i].removing_bytes;
	}
	if (removing)
		*removing = going;
	return used - going;
}

static const struct evict_for nobody = { .whose = NULL };

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }
static uint64_t less(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

static uint64_t over(uint64_t have, uint64_t line) { return line && have > line ? have - line : 0; }

/* Bytes over the watermarks: none below `high`; above it everything down to `low`, which *falling
 * remembers. */
static uint64_t over_marks(uint64_t have, uint64_t room, uint32_t high, uint32_t low, bool *falling)
{
	uint64_t line = percent_of(room, *falling ? low : high);

	if (high == 0 || high == 100 || have <= line) {
		*falling = false;
		return 0;
	}
	*falling = true;
	return have - percent_of(room, low);
}

/* Bytes over the group's capacity, less the percentage kept free. */
static uint64_t over_room(const struct partition *p, struct group *g, uint64_t have)
{
	const struct skv_group_spec *s = &g->spec;

	if (s->high_percent)
		return over_marks(have, group_room(p, g), s->high_percent, s->low_percent,
				  &g->falling);
	return over(have, s->capacity - s->capacity / 100 * p->core->o.free_percent);
}

/* Bytes that must go: over the group's limit, else over the limit of a storage type, which is
 * returned. */
static uint64_t bytes_owed(const struct partition *p, struct group *g, const char **type)
{
	const struct skv_group_spec *s = &g->spec;
	uint64_t have = g->used_bytes - g->removing_bytes, owed = over_room(p, g, have);
	uint64_t line = over(have, s->reclaim_bytes);

	ASSERT_SHARED(p);
	*type = NULL;
	owed = line > owed ? line : owed;
	for (uint32_t i = 0; owed == 0 && i < s->n_quotas; i++) {
		*type = s->quotas[i].type;
		owed = over(group_type_bytes(p, g, *type, NULL), s->quotas[i].reclaim);
	}
	return owed;
}

static uint64_t step_bytes(const struct group *g)
{
	uint64_t percent = g->used_bytes / 100 * g->spec.reclaim_step_percent;

	if (g->spec.reclaim_step_percent && percent == 0)
		percent = 1; /* small groups: one block at a time */
	return percent > g->spec.reclaim_step_bytes ? percent : g->spec.reclaim_step_bytes;
}

static uint64_t portion_bytes(const struct group *g)
{
	return g->count.blocks ? (g->used_bytes / g->count.blocks + 1) * PORTION_BLOCKS
			       : UINT64_MAX;
}

/* Returns true if more work is due now. */
static bool reclaim_idle(struct partition *p, struct group *g)
{
	uint64_t now = use_clock(p, skv_now_ms(p->core->clock));

	if (!g->spec.max_idle_ms || g->spec.max_idle_ms > now)
		return false;
	return evict_idle(p, g, now - g->spec.max_idle_ms, PORTION_BLOCKS);
}

/* Brings an instance down that exceeds its fixed share (lowered since), or nearly fills it: as
 * over_room does for groups. */
static bool reclaim_quota_shares(struct partition *p, const struct group *g)
{
	uint64_t room = g->spec.share == SKV_SHARE_FIXED ? group_room(p, g) : 0, share, owed;
	uint32_t keep = g->spec.high_percent ? 0 : p->core->o.free_percent;
	bool more = false;

	ASSERT_EXCLUSIVE(p);
	for (struct instance *inst = g->members; room && inst; inst = inst->next_member) {
		share = quota_share_of(inst, room);
		owed = less(inst->used_bytes - inst->removing_bytes,
			    share - percent_of(share, keep));
		if (owed)
			more |= evict_some(p, &(struct evict_what){ .group = g, .only = inst },
					   least(owed, PORTION_BLOCKS * inst->block_bytes),
					   &(struct evict_for){ .whose = inst }) >=
				PORTION_BLOCKS * inst->block_bytes;
	}
	return more;
}

bool reclaim_volume(struct partition *p, uint32_t volume)
{
	struct volume *s = &p->volume[volume];
	uint64_t used = s->used_bytes - s->removing_bytes, blocks = 0, owed;

	ASSERT_EXCLUSIVE(p);
	owed = over_marks(used, s->capacity, s->high_percent, s->low_percent, &s->falling);
	if (owed == 0)
		return false;
	for (size_t i = 0; i < p->n_group; i++) {
		const struct group_volume *in = group_in(p->group[i], volume);

		blocks += in && in->used_bytes ? p->group[i]->count.blocks : 0;
	}
	used = (used / (blocks + 1) + 1) * PORTION_BLOCKS;
	return evict_volume_bytes(p, volume, least(owed, used)) >= used;
}

/* The same for blocks that are too old, if the policy has a limit. */
static bool reclaim_old(struct partition *p, struct group *g)
{
	const uint64_t now = birth_now(p);

	g->too_old = 0;
	if (!g->spec.ttl_ms || g->spec.ttl_ms > now)
		return false;
	g->too_old = birth_after(p, now - g->spec.ttl_ms);
	return evict_older(p, g, g->too_old, PORTION_BLOCKS);
}

bool reclaim_group(struct partition *p, struct group *g)
{
	const uint64_t now = skv_now_ms(p->core->clock), step = step_bytes(g);
	struct evict_what what = { .group = g };
	uint64_t owed, most, got;
	bool more = reclaim_idle(p, g);

	ASSERT_EXCLUSIVE(p);
	more |= reclaim_old(p, g);
	more |= reclaim_quota_shares(p, g);
	owed = bytes_owed(p, g, &what.type);
	most = step ? step : portion_bytes(g);
	if (owed == 0) {
		what = (struct evict_what){ .group = g, .blocks = true };
		owed = over(g->count.blocks, g->spec.reclaim_blocks);
		most = step ? step * g->count.blocks / (g->used_bytes + 1) + 1 : PORTION_BLOCKS;
	}
	if (owed == 0 || now < g->reclaim_at)
		return more;
	got = evict_some(p, &what, least(owed, most), &nobody);
	if (!step)
		return more || (got > 0 && got < owed);
	g->reclaim_at = now + g->spec.reclaim_period_ms;
	return more;
}
