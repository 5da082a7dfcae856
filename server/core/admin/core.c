/*
 * core.c - the core as a whole: options, threads, lock, creation and shutdown.
 *
 * Threads: committer (commit.c), owner thread (owner.c), ticker (tick.c, owner_load), checkpointer
 * (checkpoint.c), those of storages (device.c, errand.c). turn_lock only guards their stop and
 * wake flags.
 */
#include <stdio.h>
#include <string.h>

#include <skv/log.h>
#include <skv/mem.h>
#include <skv/store.h>

#include <lock/core.h>
#include <lock/gate.h>
#include <lock/lock.h>
#include <lock/one.h>
#include <lock/turn.h>
#include <model/region.h>
#include <model/tenant.h>
#include <model/partition.h>
#include <journal/change.h>
#include <journal/commit.h>
#include <journal/end.h>
#include <journal/format.h>
#include <journal/registry_write.h>
#include <storage/claim.h>
#include <storage/device.h>
#include <storage/growth.h>
#include <storage/written.h>
#include <evict/clear.h>
#include <evict/remove.h>
#include <ops/damage.h>
#include <ops/end.h>
#include <ops/finish.h>
#include <ops/horizon.h>
#include <ops/move.h>
#include <ops/pin.h>
#include <ops/partial.h>
#include <ops/start.h>
#include <ops/trim.h>
#include <ops/uses.h>
#include <recovery/checkpoint.h>
#include <recovery/owner.h>
#include <recovery/replay.h>
#include <recovery/replay_chunk.h>
#include <recovery/standby.h>
#include "idle.h"
#include "tick.h"

#define NOTE_WAIT_MS 1000u

void skv_core_options_init(struct skv_core_options *o)
{
	*o = (struct skv_core_options){
		.owner_lease_ms = 5000,
		.lease_default_ms = 10000,
		.lease_max_ms = 60000,
		.session_default_ms = 30000,
		.session_max_ms = 600000,
		.grace_ms = 2000,
		.max_sessions = 65536,
		.max_remembered = 262144,
		.leased_percent = 90,
		.open_percent = 50,
		.free_percent = 2,
		.journal_limit = 256ull << 20,
	};
}

/* ---- threads --------------------------------------------------------------------------------- */

static void *owner_thread(void *arg)
{
	struct skv_core *c = arg;
	uint64_t next = 0;

	core_log(c);
	do {
		if (owner_is_due(c) || skv_now_ms(c->clock) >= next)
			next = skv_now_ms(c->clock) + owner_step(c);
	} while (core_wait(c, 50, &c->owner_asked));
	return NULL;
}

static void *ticker(void *arg)
{
	struct skv_core *c = arg;
	uint32_t ms;

	core_log(c);
	do
		ms = tick_once(c);
	while (core_wait(c, ms, NULL));
	return NULL;
}

static void checkpoint_if_asked(struct skv_core *c)
{
	struct skv_error err = { 0 };
	bool asked;

	skv_mutex_lock(&c->turn_lock);
	asked = c->checkpoint_asked;
	c->checkpoint_asked = false;
	skv_mutex_unlock(&c->turn_lock);
	if (asked && owner_state(c) == OWN_OWNING &&
	    checkpoint_run(c, false, &err) != SKV_OK)
		skv_log(SKV_LOG_WARN, "core", "checkpoint: %s", err.message);
}

static void *checkpointer(void *arg)
{
	struct skv_core *c = arg;

	core_log(c);
	while (core_wait(c, 1000, &c->checkpoint_asked)) {
		checkpoint_if_asked(c);
		idle_round(c);
	}
	return NULL;
}

static int start_threads(struct skv_core *c)
{
	static void *(*const run[])(void *) = { owner_thread, ticker, checkpointer };

	if (commit_start_thread(c) != SKV_OK)
		return SKV_E_NOMEM;
	c->committing = true;
	for (; c->n_threads < 3; c->n_threads++)
		if (pthread_create(&c->thread[c->n_threads], NULL, run[c->n_threads], c) != 0)
			return SKV_E_NOMEM;
	return SKV_OK;
}

/* Asks the threads to end, which may last as long as their calls of the store. */
static void ask_threads_to_stop(struct skv_core *c)
{
	skv_mutex_lock(&c->turn_lock);
	c->stop = true;
	skv_cond_broadcast(&c->turn_wake);
	skv_mutex_unlock(&c->turn_lock);
}

static void stop_threads(struct skv_core *c)
{
	ask_threads_to_stop(c);
	/* The checkpointer may wait for the committer: stop the committer last. */
	while (c->n_threads)
		pthread_join(c->thread[--c->n_threads], NULL);
	if (c->committing)
		commit_stop_thread(c);
	c->committing = false;
}

/* ---- events from lower layers ---------------------------------------------------------------- */

static void step_storages(struct skv_core *c)
{
	for (uint32_t i = 0; i < c->n_device; i++)
		device_step(c->device[i]);
}

static void fail_waiting(struct partition *p, int status, const char *text)
{
	start_fail_waiters(p, status, text);
	trim_fail_all(p, status, text);
}

static const struct record_ops *const records[RECORD_TYPES] = {
	[RECORD_START] = &start_ops.record,
	[RECORD_FINISH] = &finish_ops.record,
	[RECORD_END] = &end_ops.record,
	[RECORD_REMOVE] = &remove_ops.record,
	[RECORD_HORIZON] = &horizon_record,
	[RECORD_DROP] = &drop_ops.record,
	[RECORD_PARTIAL] = &partial_ops.record,
	[RECORD_CLEAR] = &clear_ops.record,
	[RECORD_PIN] = &pin_ops.record,
	[RECORD_HORIZONS] = &horizon_ops.record,
	[RECORD_REMOVE_SLOTS] = &remove_slots_record,
	[RECORD_MOVED] = &moved_ops.record,
	[RECORD_CHECKED] = &checked_ops.record,
	[RECORD_LINK] = &link_record,
	[RECORD_ENDED] = &ended_record,
	[RECORD_HOLD] = &hold_record,
	[RECORD_COUNTERS] = &uses_ops.record,
	[RECORD_BIRTHS] = &eras_record,
	[RECORD_LEASES] = &leases_record,
	[RECORD_CHUNK] = &chunk_record,
};

static const struct core_events events = {
	.step = step_storages,
	.volume_freed = start_serve_waiters,
	.fail_waiting = fail_waiting,
	.unlocking = tenants_tell,
};

/* ---- creation and shutdown ------------------------------------------------------------------- */

int one_create(const struct skv_core_options *o, const struct one_place *at, struct skv_core **out,
	       struct skv_error *err)
{
	struct skv_core *c = skv_calloc(1, sizeof *c);

	if (!c)
		return SKV_E_NOMEM;
	c->o = *o;
	if (c->o.lease_max_ms == 0)
		c->o.lease_max_ms = 1;
	if (c->o.max_remembered == 0)
		c->o.max_remembered = 1;
	c->store = o->store;
	c->clock = o->clock ? o->clock : &skv_clock_system;
	c->events = &events;
	c->records = records;
	c->started_ms = skv_now_ms(c->clock);
	skv_owner_name(c->owner);
	if (o->boot_id)
		snprintf(c->boot_id, sizeof c->boot_id, "%s", o->boot_id);
	else
		skv_boot_id(c->boot_id);
	skv_rwlock_init(&c->lock);
	skv_mutex_init(&c->turn_lock);
	skv_cond_init(&c->turn_wake);
	c->gate = gate_create(!o->assigned);
	c->number = at->number;
	c->shares = at->shares;
	c->rules = at->rules;
	c->regions = regions_make(!o->manual);
	c->written = written_create();
	if (!c->gate || !c->regions || !c->written || commit_init(c) != SKV_OK) {
		one_destroy(c);
		return SKV_E_NOMEM;
	}
	if (!o->manual && start_threads(c) != SKV_OK) {
		one_destroy(c);
		return skv_fail(err, SKV_E_NOMEM, NULL, "cannot start threads");
	}
	*out = c;
	return SKV_OK;
}

/* Changes the options, under the lock that their readers hold. */
void one_change(struct skv_core *c, const struct skv_core_options *o)
{
	core_lock(c);
	c->o.lease_default_ms = o->lease_default_ms;
	c->o.session_default_ms = o->session_default_ms;
	c->o.max_sessions = o->max_sessions;
	c->o.leased_percent = o->leased_percent;
	c->o.open_percent = o->open_percent;
	c->o.free_percent = o->free_percent;
	c->o.journal_limit = o->journal_limit;
	c->o.instance_idle_ms = o->instance_idle_ms;
	core_unlock(c);
}

void one_tick(struct skv_core *c)
{
	const uint32_t was = core_log(c);

	owner_step(c);
	tick_once(c);
	step_storages(c);
	while (commit_round(c))
		;
	checkpoint_if_asked(c);
	idle_round(c);
	while (commit_round(c))
		;
	skv_log_partition(was);
}

/* Waits until queued changes are durable, for a bounded time: a hanging store must not block the
 * shutdown. */
static void drain(struct skv_core *c)
{
	uint64_t until = skv_now_us() + 5000000;

	while (!commit_is_done(c) && skv_now_us() < until) {
		if (c->o.manual) {
			if (!commit_round(c))
				return;
			continue;
		}
		commit_wait_round(c, 10);
	}
}

/* Has the slab directories note the end of the journal, for a bounded time. */
static void note_end(struct skv_core *c)
{
	uint64_t until = skv_now_us() + NOTE_WAIT_MS * 1000u;

	core_lock(c);
	if (c->partition)
		journal_is_durable(c->partition);
	core_unlock(c);
	claims_ask(c);
	while (!claims_noted(c) && skv_now_us() < until && core_pause(c, 2))
		;
}

/* Returns true while no other manager can own the partition. Then the store need not be asked: it
 * may be unreachable, and a call of it lasts seconds. */
static bool lease_runs(struct skv_core *c)
{
	return skv_now_ms(c->clock) < owner_view(c).owned_until;
}

void one_begin_shutdown(struct skv_core *c)
{
	owner_event(c, OWN_ON_CLOSE, 0);
	if (owner_state(c) != OWN_CLOSING || !lease_runs(c))
		ask_threads_to_stop(c);
	if (owner_state(c) != OWN_CLOSING)
		return;
	core_lock(c);
	if (c->partition)
		fail_waiting(c->partition, SKV_E_NOT_READY, "this manager is shutting down");
	core_unlock(c);
}

void one_shutdown(struct skv_core *c)
{
	const uint32_t was = core_log(c);
	struct skv_error err = { 0 };

	one_begin_shutdown(c);
	if (owner_state(c) == OWN_CLOSING) {
		if (lease_runs(c))
			drain(c);
		if (lease_runs(c))
			idle_store(c);
		if (!lease_runs(c))
			skv_log(SKV_LOG_WARN, "core",
				"no checkpoint at shutdown: the lease has ended");
		else if (checkpoint_run(c, true, &err) != SKV_OK)
			skv_log(SKV_LOG_WARN, "core", "no checkpoint at shutdown: %s", err.message);
		if (lease_runs(c) && skv_store_sync(c->store, 0, NULL) == SKV_OK)
			note_end(c);
	}
	stop_threads(c);
	if (c->partition && lease_runs(c))
		skv_store_release(c->store, 0, owner_fence(c), NULL);
	owner_event(c, OWN_ON_STOP, 0);
	owner_drop(c, SKV_E_NOT_READY);
	standby_drop(c);
	skv_log_partition(was);
}

bool one_quiet(struct skv_core *c, uint32_t timeout_ms)
{
	uint64_t until = skv_now_us() + (uint64_t)timeout_ms * 1000;
	uint32_t stopped = 0;

	for (uint32_t i = 0; i < c->n_device; i++)
		device_ask_stop(c->device[i]);
	skv_mutex_lock(&c->turn_lock);
	for (;;) {
		for (stopped = 0; stopped < c->n_device && device_stopped(c->device[stopped]);
		     stopped++)
			;
		if (stopped == c->n_device || skv_now_us() >= until)
			break;
		skv_cond_wait_ms(&c->turn_wake, &c->turn_lock, 5);
	}
	skv_mutex_unlock(&c->turn_lock);
	return stopped == c->n_device;
}

void one_destroy(struct skv_core *c)
{
	if (!c)
		return;
	if (c->gate)
		owner_event(c, OWN_ON_STOP, 0);
	stop_threads(c);
	standby_drop(c);
	if (c->partition) /* before its devices: appended changes are still applied */
		owner_drop(c, SKV_E_NOT_READY);
	for (uint32_t i = 0; i < c->n_device; i++)
		device_destroy(c->device[i]);
	commit_destroy(c);
	written_destroy(c->written);
	regions_free(c->regions);
	gate_destroy(c->gate);
	skv_cond_destroy(&c->turn_wake);
	skv_mutex_destroy(&c->turn_lock);
	skv_rwlock_destroy(&c->lock);
	skv_free(c->device);
	skv_free(c);
}

/* ---- state ----------------------------------------------------------------------------------- */

enum skv_core_state one_state_get(const struct skv_core *c)
{
	static const enum skv_core_state shown[OWN_STATE_COUNT] = {
		[OWN_STANDBY] = SKV_CORE_STANDBY,     [OWN_GIVING_UP] = SKV_CORE_STANDBY,
		[OWN_CLAIMING] = SKV_CORE_RECOVERING, [OWN_LOADING] = SKV_CORE_RECOVERING,
		[OWN_OWNING] = SKV_CORE_READY,        [OWN_CLOSING] = SKV_CORE_READY,
		[OWN_STOPPED] = SKV_CORE_STOPPED,
	};

	return shown[owner_state(c)];
}

int one_may_answer(const struct skv_core *c)
{
	return owner_ready(c) && owner_valid(c) ? SKV_OK : SKV_E_NOT_OWNER;
}

bool one_may_tell(const struct skv_core *c, uint32_t *ready)
{
	const enum skv_core_state state = one_state_get(c);

	*ready += state == SKV_CORE_READY;
	return state == SKV_CORE_READY ? owner_valid(c) : state != SKV_CORE_STOPPED;
}

int one_ready(struct skv_core *c, struct skv_error *err)
{
	int rc = core_gate(c, err);
	bool any = false, loaded;

	if (rc != SKV_OK)
		return rc;
	skv_rwlock_read(&c->lock);
	loaded = c->partition != NULL;
	for (uint32_t i = 0; loaded && i < c->partition->n_volume; i++)
		any |= c->partition->volume[i].pool && volume_usable(&c->partition->volume[i]);
	skv_rwlock_read_unlock(&c->lock);
	if (!loaded)
		return gate_recovering(err);
	return any ? SKV_OK : skv_fail(err, SKV_E_UNAVAILABLE, NULL, "no storage is healthy");
}

const struct skv_secret *one_secret(const struct skv_core *c)
{
	return atomic_load_explicit(&c->has_secret, memory_order_acquire) ? &c->secret : NULL;
}

void one_counters_get(const struct skv_core *c, struct skv_core_counters *out)
{
#define READ(name, help) out->name = atomic_load_explicit(&c->count.name, memory_order_relaxed);
	SKV_CORE_COUNTERS(READ)
#undef READ
	out->lock_waits = atomic_load_explicit(&c->lock.waits, memory_order_relaxed);
	out->lock_wait_us = atomic_load_explicit(&c->lock.waited_us, memory_order_relaxed);
}

void one_store_counters_get(const struct skv_core *c, struct skv_core_store_counters *out)
{
	struct skv_store_counters s;
	const char *what;

	skv_store_counters_get(c->store, &s);
	*out = (struct skv_core_store_counters){ s.calls,
						 s.errors,
						 s.appends,
						 s.append_bytes,
						 s.append_us,
						 s.append_max_us,
						 skv_store_wait_us(c->store, &what) };
}
