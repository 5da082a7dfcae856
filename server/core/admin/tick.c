/*
 * tick.c - what time makes due: expiry, holds, eviction ahead of need, lease horizons, checkpoints.
 *
 * The ticker thread runs it every TICK_MS; in manual mode the test does. Short pieces under the write
 * lock, nothing that blocks.
 */
#include "tick.h"

#include <lock/core.h>
#include <lock/gate.h>
#include <lock/lock.h>
#include <lock/turn.h>
#include <model/birth.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/policy.h>
#include <model/session.h>
#include <evict/clear.h>
#include <evict/drain.h>
#include <evict/evict.h>
#include <ops/end.h>
#include <ops/horizon.h>
#include <ops/pin.h>
#include <ops/start.h>
#include <ops/trim.h>
#include <recovery/owner.h>

#define TICK_MS 20u
#define TICK_PORTION 512u /* storages, groups, instances: others have their turn at the next ticks, and wait for the lock */
#define LOAD_RETRY_MS 500u
#define CHECKPOINT_BLOCK_BYTES 76u /* of a block of one spec in a checkpoint */
#define MAX_DETACHED 64u /* dropped instances before a checkpoint is written for their sake */

/* A checkpoint of many blocks costs much, so it comes less often; but half of the journal is left for what is written
 * meanwhile. */
static uint64_t checkpoint_due(const struct partition *p)
{
	uint64_t limit = p->core->o.journal_limit, quarter = p->blocks * CHECKPOINT_BLOCK_BYTES / 4;

	return quarter < limit / 4 ? limit / 4 : quarter < limit / 2 ? quarter : limit / 2;
}

/* The next ones, behind the last from the begin. */
static struct portion next_portion(size_t *at, size_t n)
{
	struct portion now = { *at < n ? *at : 0, n };

	if (now.to - now.from > TICK_PORTION)
		now.to = now.from + TICK_PORTION;
	*at = now.to < n ? now.to : 0;
	return now;
}

/* Returns ms to wait. */
static uint32_t tick_partition(struct partition *p)
{
	struct skv_core *c = p->core;
	uint64_t now = skv_now_ms(c->clock);
	struct portion volumes = next_portion(&p->tick_volume, p->n_volume), groups = next_portion(&p->tick_group, p->n_group);
	struct portion instances = next_portion(&p->tick_inst, p->n_inst);
	bool more;

	birth_look(p);
	session_expire_due(p, now);
	session_forget_due(p, now);
	for (size_t i = volumes.from; i < volumes.to; i++)
		if (p->volume[i].pool)
			skv_pool_release_due(p->volume[i].pool, now);
	more = retired_go_on(p);
	more |= drains_go_on(p, volumes);
	more |= evict_ahead(p, volumes, groups);
	more |= trim_go_on(p);
	more |= policy_go_on(p, groups);
	more |= pins_expire(p, instances);
	horizons_keep(p, now);
	start_serve_waiters(p);
	if ((p->journal_bytes > checkpoint_due(p) || p->detached.n_instances > MAX_DETACHED) && !p->snap.active)
		checkpoint_ask(c);
	return more ? 0 : TICK_MS;
}

uint32_t tick_once(struct skv_core *c)
{
	struct instance *swept = NULL;
	uint32_t ms = TICK_MS;

	if (!owner_load(c))
		return LOAD_RETRY_MS;
	if (atomic_load(&c->state) != SKV_CORE_READY || atomic_load(&c->closing))
		return TICK_MS; /* closing: nothing may follow the clean checkpoint */
	core_lock(c);
	if (c->partition && owner_valid(c))
		ms = tick_partition(c->partition);
	else if (c->partition) { /* the store cannot be reached: nobody waits for what may never come */
		start_fail_waiters(c->partition, SKV_E_NOT_OWNER, "the ownership could not be renewed");
		trim_fail_all(c->partition, SKV_E_NOT_OWNER, "the ownership could not be renewed");
	}
	if (c->partition)
		swept = retired_take_swept(c->partition);
	core_unlock(c);
	retired_free(swept);
	return ms;
}
