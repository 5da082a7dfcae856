/*
 * tick.c - periodic work: expiry, holds, background eviction, lease horizons, checkpoints.
 *
 * The ticker thread runs it every TICK_MS; in manual mode the test does. Works in short pieces
 * under the write lock; nothing here blocks.
 */
#include "idle.h"
#include "tick.h"

#include <skv/mem.h>

#include <lock/core.h>
#include <lock/gate.h>
#include <lock/lock.h>
#include <lock/turn.h>
#include <model/birth.h>
#include <model/move.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/policy.h>
#include <model/session.h>
#include <journal/snapshot.h>
#include <storage/claim.h>
#include <storage/device.h>
#include <evict/clear.h>
#include <evict/drain.h>
#include <evict/evict.h>
#include <ops/damage.h>
#include <ops/end.h>
#include <ops/horizon.h>
#include <ops/limits.h>
#include <ops/pin.h>
#include <ops/start.h>
#include <ops/trim.h>
#include <ops/uses.h>
#include <recovery/owner.h>
#include <recovery/standby.h>

#define TICK_MS 20u
/* Storages, groups, instances per tick: the rest follows in later ticks, and the lock is held
 * briefly. */
#define TICK_PORTION 512u
#define LOAD_RETRY_MS 500u
#define MAX_DETACHED 64u /* dropped instances that cause a checkpoint by themselves */

/* The next portion, wrapping around at the end. */
static struct portion next_portion(size_t *at, size_t n)
{
	struct portion now = { *at < n ? *at : 0, n };

	if (now.to - now.from > TICK_PORTION)
		now.to = now.from + TICK_PORTION;
	*at = now.to < n ? now.to : 0;
	return now;
}

/* When memory is full there may be as many blocks as there are. */
static void look_at_memory(struct partition *p)
{
	ASSERT_EXCLUSIVE(p);
	if (skv_mem_level() == SKV_MEM_FREE)
		p->most_blocks = 0;
	else if (!p->most_blocks)
		p->most_blocks = limits_blocks(p) + 1;
}

/* Returns ms to wait. */
static uint32_t tick_partition(struct partition *p)
{
	struct skv_core *c = p->core;
	uint64_t now = skv_now_ms(c->clock);
	struct portion volumes = next_portion(&p->tick_volume, p->n_volume),
		       groups = next_portion(&p->tick_group, p->n_group);
	struct portion instances = next_portion(&p->tick_inst, p->n_inst);
	bool more;

	birth_look(p);
	look_at_memory(p);
	session_expire_due(p, now);
	moves_expire(p, now);
	damages_go_on(p, now);
	session_forget_due(p, now);
	for (size_t i = volumes.from; i < volumes.to; i++)
		if (p->volume[i].pool)
			skv_pool_release_due(p->volume[i].pool,
					     slots_free_by(&p->volume[i], now));
	more = retired_go_on(p);
	more |= drains_go_on(p, volumes);
	more |= evict_ahead(p, volumes, groups);
	more |= trim_go_on(p);
	more |= policy_go_on(p, groups);
	more |= pins_expire(p, instances);
	idle_look(p, instances, now);
	horizons_keep(p, now);
	claims_keep(p, now);
	uses_tell(p, now);
	start_serve_waiters(p);
	if ((p->journal_bytes > journal_due(p) || p->detached.n_instances > MAX_DETACHED) &&
	    !p->snap.active)
		checkpoint_ask(c);
	return more ? 0 : TICK_MS;
}

uint32_t tick_once(struct skv_core *c)
{
	struct instance *swept = NULL;
	uint32_t ms = TICK_MS;

	if (!owner_load(c))
		return LOAD_RETRY_MS;
	if (owner_state(c) == OWN_STANDBY)
		return standby_step(c);
	if (owner_state(c) != OWN_OWNING)
		return TICK_MS; /* CLOSING: nothing may follow the clean checkpoint */
	devices_watch(c);
	skv_rwlock_read(&c->lock);
	if (c->partition)
		uses_look(c->partition, skv_now_ms(c->clock));
	skv_rwlock_read_unlock(&c->lock);
	core_lock(c);
	if (c->partition && owner_valid(c))
		ms = tick_partition(c->partition);
	else if (c->partition) {
		/* the store is unreachable: fail waiters whose change may never become durable */
		start_fail_waiters(c->partition, SKV_E_NOT_OWNER,
				   "the ownership could not be renewed");
		trim_fail_all(c->partition, SKV_E_NOT_OWNER, "the ownership could not be renewed");
	}
	if (c->partition)
		swept = retired_take_swept(c->partition);
	core_unlock(c);
	retired_free(swept);
	return ms;
}
