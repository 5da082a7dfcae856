/*
 * reclaim.c - eviction that a group asks for, in the background: its lines, steps, and idle blocks.
 *
 * A line is a number of bytes or blocks that the group should not have more of; its capacity is one too,
 * less the share that is kept free ahead of need. What is on its way out counts as gone. A group with steps
 * evicts one step in each period, others all at once, in portions, for others wait for the lock. All calls under
 * the write lock; evict.c picks the victims.
 */
#include "internal.h"

#include <string.h>

#define PORTION_BLOCKS 1024u /* in one call */

uint64_t group_type_bytes(const struct part *p, const struct group *g, const char *type, struct space_set *spaces,
			  uint64_t *removing)
{
	uint64_t used = 0, going = 0;

	*spaces = (struct space_set){ 0 };
	for (uint32_t i = 0; i < p->n_space; i++) {
		if (!p->space[i].pool || strcmp(p->space[i].dev->type, type) != 0)
			continue;
		space_set_add(spaces, i);
		used += g->space_used[i];
		going += g->space_removing[i];
	}
	if (removing)
		*removing = going;
	return used - going;
}

static uint64_t over(uint64_t have, uint64_t line) { return line && have > line ? have - line : 0; }

/* Bytes that must go, and in which spaces: those over the group's line, else over that of a type. */
static uint64_t bytes_owed(const struct part *p, const struct group *g, struct space_set *spaces)
{
	const struct kvb_group_spec *s = &g->spec;
	uint64_t have = g->used_bytes - g->removing_bytes;
	uint64_t owed = over(have, s->capacity - s->capacity / 100 * p->core->o.free_percent);
	uint64_t line = over(have, s->reclaim_bytes);

	*spaces = space_set_all();
	owed = line > owed ? line : owed;
	for (uint32_t i = 0; owed == 0 && i < s->n_quotas; i++)
		owed = over(group_type_bytes(p, g, s->quotas[i].type, spaces, NULL), s->quotas[i].reclaim);
	return owed;
}

static uint64_t step_bytes(const struct group *g)
{
	uint64_t percent = g->used_bytes / 100 * g->spec.reclaim_step_percent;

	if (g->spec.reclaim_step_percent && percent == 0)
		percent = 1; /* of little: a block at a time */
	return percent > g->spec.reclaim_step_bytes ? percent : g->spec.reclaim_step_bytes;
}

static uint64_t portion_bytes(const struct group *g)
{
	return g->blocks ? (g->used_bytes / g->blocks + 1) * PORTION_BLOCKS : UINT64_MAX;
}

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* True: there is more to do at once. */
static bool reclaim_idle(struct part *p, struct group *g)
{
	uint64_t now = kvb_now_ms(p->core->clock) + p->use_base;

	if (!g->spec.max_idle_ms || g->spec.max_idle_ms > now)
		return false;
	return evict_idle(p, g, now - g->spec.max_idle_ms, PORTION_BLOCKS);
}

bool reclaim_group(struct part *p, struct group *g)
{
	uint64_t now = kvb_now_ms(p->core->clock), bytes, blocks, step = step_bytes(g), got;
	struct space_set spaces;
	bool more = reclaim_idle(p, g);

	bytes = bytes_owed(p, g, &spaces);
	blocks = over(g->blocks, g->spec.reclaim_blocks);
	if ((bytes == 0 && blocks == 0) || now < g->reclaim_at)
		return more;
	if (step) {
		g->reclaim_at = now + g->spec.reclaim_period_ms;
		if (bytes)
			evict_group_bytes(p, g, &spaces, least(bytes, step));
		else
			evict_group_blocks(p, g, least(blocks, step * g->blocks / (g->used_bytes + 1) + 1));
		return more;
	}
	if (bytes) {
		got = evict_group_bytes(p, g, &spaces, least(bytes, portion_bytes(g)));
		return more || (got > 0 && got < bytes);
	}
	got = evict_group_blocks(p, g, least(blocks, PORTION_BLOCKS));
	return more || (got > 0 && got < blocks);
}
