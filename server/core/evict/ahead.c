/*
 * ahead.c - eviction ahead of need: how much stays free, behind each start and in the background.
 *
 * Under the write lock; evict.c picks the victims.
 */
#include <evict/evict.h>

#include <model/device.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/volume.h>
#include <storage/growth.h>
#include <evict/clear.h>
#include <evict/reclaim.h>

#define REST_SHARE 4u /* part of free_percent's slots that is kept free at rest, too */
#define DEMAND_MS 20u
#define AHEAD_PICKS 128u /* blocks of one class per call: bounds the time under the lock */

/* Free slots to keep for a class: recent demand (freed slots come back only with the next commit,
 * or sync), at most a share of what the class has, and a part of that at rest. More was of no use:
 * starts evict behind themselves, and a sync is asked for when few of the slots are free already.
 */
static uint64_t free_target(const struct partition *p, const struct volume *s,
			    uint32_t class_id)
{
	const struct volume_class *c = &s->class[class_id];
	uint64_t has = skv_pool_class_bytes(s->pool, class_id);
	uint64_t bytes = has < s->file_bytes ? has : s->file_bytes;
	uint64_t slots = bytes / (c->stride ? c->stride : 1);
	uint64_t share = slots / 100 * p->core->o.free_percent, rest = share / REST_SHARE;

	ASSERT_SHARED(p);
	if (s->high_percent ? s->high_percent == 100 : p->core->o.free_percent == 0)
		return 0;
	if (s->high_percent)
		share = 0; /* watermarks replace it (reclaim.c) */
	if (s->dev->ops->counted)
		return share; /* clients of such storages expect that all of it can be used */
	if (c->demand < share)
		return c->demand > rest ? c->demand : rest;
	return share;
}

/* Slots taken since the last call count for about the next eight calls. */
static void note_demand(struct volume *s, uint64_t now)
{
	if (now - s->demand_at < DEMAND_MS)
		return;
	s->demand_at = now;
	for (uint32_t c = 0; c < s->n_class; c++) {
		struct volume_class *k = &s->class[c];

		k->demand += k->taken - k->demand / 8;
		k->taken = 0;
	}
}

/* Returns true if the storage evicts ahead of need. Not while it can grow, clears, or takes no
 * blocks. */
static bool keeps_free(const struct partition *p, uint32_t volume)
{
	const struct volume *s = &p->volume[volume];

	return s->pool && volume_takes(s) && (!volume_has_room(s) || s->grow_full) &&
	       !retired_left(p, NULL, volume);
}

/* Evicts towards the free slots to keep of a class. Returns how many become free. */
static uint64_t keep_free(struct partition *p, uint32_t volume, uint32_t class_id, uint64_t most)
{
	struct volume *s = &p->volume[volume];
	uint64_t target = free_target(p, s, class_id);
	uint64_t free = skv_pool_available(s->pool, class_id);
	uint64_t have = free + s->class[class_id].removing;
	uint64_t need = have < target ? target - have : 0;
	struct newcomers anyone = { .n = 0 };
	const struct evict_for nobody = { .in = &anyone };

	ASSERT_EXCLUSIVE(p);
	room_note(p, p->room_is_low || free < target / 2);
	return need ? evict_slots(p, volume, class_id, need < most ? need : most, &nobody) : 0;
}

void evict_behind(struct partition *p, uint32_t volume, uint32_t class_id, uint64_t taken)
{
	if (keeps_free(p, volume))
		keep_free(p, volume, class_id, taken + taken / 4);
}

bool evict_ahead(struct partition *p, struct portion volumes, struct portion groups)
{
	uint64_t now = skv_now_ms(p->core->clock);
	bool more = false;

	ASSERT_EXCLUSIVE(p);
	for (uint32_t i = (uint32_t)volumes.from; i < volumes.to; i++) {
		struct volume *s = &p->volume[i];

		note_demand(s, now);
		for (uint32_t c = 0; keeps_free(p, i) && c < s->n_class; c++)
			if (s->class[c].wanted_ms && now - s->class[c].wanted_ms < 60000)
				more |= keep_free(p, i, c, AHEAD_PICKS) >= AHEAD_PICKS;
	}
	for (uint32_t i = (uint32_t)volumes.from; i < volumes.to; i++)
		more |= p->volume[i].high_percent && !retired_left(p, NULL, i) &&
			reclaim_volume(p, i);
	for (size_t i = groups.from; i < groups.to; i++)
		more |= !retired_left(p, p->group[i], ANY_VOLUME) && reclaim_group(p, p->group[i]);
	return more;
}
