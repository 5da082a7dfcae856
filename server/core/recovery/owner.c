/*
 * owner.c - ownership of the partition: performs the actions of the state machine in
 * lock/ownership.h.
 *
 * The owner thread acquires, renews, drops and releases; the ticker loads (which can take long, and
 * the lease must be renewed meanwhile). Both report results as events; other threads report
 * demotions, losses and reloads. ownership.c determines the next state.
 */
#include <recovery/owner.h>

#include <stdio.h>
#include <string.h>

#include <skv/hash.h>
#include <skv/log.h>
#include <skv/store.h>

#include <lock/core.h>
#include <lock/gate.h>
#include <lock/lock.h>
#include <lock/one.h>
#include <lock/turn.h>
#include <model/device.h>
#include <model/partition.h>
#include <journal/commit.h>
#include <journal/end.h>
#include <journal/record.h>
#include <journal/registry_write.h>
#include <journal/snapshot.h>
#include <journal/sync.h>
#include <storage/claim.h>
#include <storage/device.h>
#include <evict/remove.h>
#include <recovery/recover.h>
#include <recovery/standby.h>

#define PROBE_WAIT_MS 5000u /* without any storage that was probed meanwhile */
#define LOOK_MS 50u          /* a standby looks so often whether the partition can be had */
#define LOST_AT_A_TIME 65536u /* removals in one batch */
#define DEMOTE_WAIT_MS 10000u
#define RETRY_MS 200u  /* after a call that the store did not answer */
#define LATE_MS 150u   /* a renewal later than this may never arrive */
#define SETTLE_MS 400u /* how long a call waits to see one */
#define BARRED_MS 500u /* after a call that the store refuses permanently */
#define EXIT_MS 50u    /* a process that is killed has closed its connections before it is gone */

void owner_drop(struct skv_core *c, int status)
{
	struct partition *p;

	core_lock(c);
	if (c->partition) {
		snapshot_abort(c->partition);
		commit_drain(c, status);
	}
	core_unlock(c);
	commit_wait_idle(c);
	core_lock(c);
	p = c->partition;
	if (p)
		commit_drain(c, status);
	sync_forget(c, status);
	if (p) /* else one may be loading, whose asserts read this without the lock */
		c->partition = NULL;
	core_unlock(c);
	partition_destroy(p);
}

/* ---- requests of other threads --------------------------------------------------------------- */

bool one_comes(const struct skv_core *c)
{
	const struct ownership o = owner_view(c);

	return (o.state == OWN_STANDBY || o.state == OWN_GIVING_UP) && !o.rival &&
	       ownership_may_claim(&o, skv_now_ms(c->clock));
}

bool one_takes(const struct skv_core *c)
{
	const struct ownership o = owner_view(c);

	return o.state == OWN_STANDBY && !o.draining && skv_now_ms(c->clock) >= o.out_until &&
	       (c->o.standby_cold || atomic_load(&c->standby_unsupported) ||
		atomic_load(&c->standby_loaded));
}

static void wake(struct skv_core *c)
{
	skv_mutex_lock(&c->turn_lock);
	c->owner_asked = true;
	skv_cond_broadcast(&c->turn_wake);
	skv_mutex_unlock(&c->turn_lock);
}

void one_may_own(struct skv_core *c, bool on)
{
	if (owner_view(c).may_own == on)
		return;
	owner_switch(c, OWN_ON_MAY_OWN, on);
	wake(c);
}

void one_drain(struct skv_core *c, bool on)
{
	owner_switch(c, OWN_ON_DRAIN, on);
	wake(c);
}

bool owner_is_due(struct skv_core *c)
{
	const enum own_state s = owner_state(c);
	bool asked;

	skv_mutex_lock(&c->turn_lock);
	asked = c->owner_asked;
	c->owner_asked = false;
	skv_mutex_unlock(&c->turn_lock);
	return asked || (s == OWN_CLAIMING && !c->lease_failure.n) || s == OWN_GIVING_UP;
}

/* ---- actions --------------------------------------------------------------------------------- */

/* Neither time nor another manager changes these: somebody has to repair something. */
static bool is_lasting(int status)
{
	return status == SKV_E_CORRUPT || status == SKV_E_UNAVAILABLE ||
	       status == SKV_E_FORBIDDEN || status == SKV_E_FOREIGN ||
	       status == SKV_E_UNSUPPORTED || status == SKV_E_INVALID;
}

/* Damage, or a backup that --adopt has to confirm: the next process would meet it, too. */
static bool bars_loads(int status)
{
	return status == SKV_E_CORRUPT || status == SKV_E_CONFLICT;
}

/* Logs why the store did not grant the lease: the first time, when the reason changes, and now and
 * then. Returns ms to wait. */
static uint32_t lease_failed(struct skv_core *c, const char *what, const struct skv_error *why)
{
	const bool lasting = is_lasting(why->status);

	COUNT(c, lease_failures, 1);
	COUNT(c, store_refusals, lasting);
	if (core_failure_is_news(&c->lease_failure, why->status, skv_now_ms(c->clock)))
		skv_log(lasting ? SKV_LOG_ERROR : SKV_LOG_WARN, "core",
			"cannot %s the ownership, try %u: %s", what, (unsigned)c->lease_failure.n,
			why->message[0] ? why->message : skv_status_text(why->status));
	return lasting ? BARRED_MS : RETRY_MS;
}

/* Acquires the lease; `look`: only checks whether it is available. Returns ms to wait. */
static uint32_t acquire(struct skv_core *c, bool look)
{
	const bool rival = owner_view(c).rival;
	const uint32_t ttl = look ? 0 : c->o.owner_lease_ms;
	uint64_t since = skv_now_ms(c->clock), fence = 0;
	char holder[SKV_OWNER_NAME] = "";
	struct skv_error err = { 0 };
	int rc = skv_store_acquire(c->store, 0, c->owner, ttl, &fence, holder, sizeof holder, &err);

	owner_set_holder(c, holder);
	if (rc != SKV_OK && rc != SKV_E_NOT_OWNER) {
		if (!look && is_lasting(rc))
			owner_event(c, OWN_ON_BARRED, 0);
		return lease_failed(c, "acquire", &err);
	}
	c->lease_failure.n = 0;
	if (rc == SKV_OK && !look) {
		owner_leased(c, OWN_ON_ACQUIRED, fence, since);
		return c->o.owner_lease_ms / 3;
	}
	if (rc == SKV_OK)
		owner_event(c, OWN_ON_FREE, 0);
	else
		owner_event(c, OWN_ON_REFUSED, 0);
	if (rc == SKV_E_NOT_OWNER && !rival)
		skv_log(SKV_LOG_INFO, "core", "standby: '%s' owns the partition", holder);
	return LOOK_MS;
}

static uint32_t claim(struct skv_core *c)
{
	const uint32_t ms = acquire(c, false);

	if (owner_state(c) == OWN_LOADING)
		COUNT(c, takeovers, 1);
	return ms;
}

/* Loads the partition again: with a new fence, so that no decision on the old one reaches the
 * store. */
static uint32_t reclaim(struct skv_core *c)
{
	const bool loaded = owner_view(c).failed_loads == 0;
	uint32_t ms;

	owner_drop(c, SKV_E_UNKNOWN_OUTCOME);
	ms = acquire(c, false);
	if (owner_state(c) != OWN_LOADING)
		return ms > RETRY_MS ? ms : RETRY_MS;
	if (loaded)
		COUNT(c, reloads, 1);
	return ms;
}

/* Once for each time that it runs out, or goes to another manager before. */
static void count_lost_lease(struct skv_core *c)
{
	COUNT(c, leases_lost, !c->lease_ran_out);
	c->lease_ran_out = true;
}

static uint32_t renew(struct skv_core *c)
{
	const uint64_t since = skv_now_ms(c->clock), fence = owner_fence(c);
	struct skv_error err = { 0 };
	int rc = skv_store_renew(c->store, 0, fence, c->o.owner_lease_ms, &err);

	if (!owner_valid(c))
		count_lost_lease(c);
	if (rc == SKV_OK) {
		c->lease_failure.n = 0;
		c->lease_ran_out = false;
		owner_leased(c, OWN_ON_RENEWED, fence, since);
		return c->o.owner_lease_ms / 3;
	}
	if (rc == SKV_E_FENCED) {
		owner_lost(c, fence);
		return 0;
	}
	return lease_failed(c, "renew", &err);
}

static void log_end(enum own_end end)
{
	switch (end) {
	case OWN_END_LOST:
		skv_log(SKV_LOG_WARN, "core", "lost the ownership: now a standby");
		break;
	case OWN_END_UNLOADABLE:
		skv_log(SKV_LOG_ERROR, "core",
			"the partition could not be loaded %u times: giving up the ownership",
			OWN_FAILED_LOADS);
		break;
	case OWN_END_BARRED:
		skv_log(SKV_LOG_ERROR, "core",
			"the store refuses to let the partition be acquired, as said before");
		break;
	case OWN_END_TURNED_AWAY:
		skv_log(SKV_LOG_ERROR, "core",
			"a slab directory refuses this store, as said before: giving up the "
			"ownership");
		break;
	default:
		skv_log(SKV_LOG_INFO, "core", "giving up the partition on request");
	}
}

/* As skv_core_options.hopeless wants it. */
static int cause_of(const struct skv_core *c, enum own_end end)
{
	if (end == OWN_END_TURNED_AWAY)
		return SKV_E_FOREIGN;
	return end == OWN_END_BARRED || bars_loads(atomic_load(&c->load_result))
		       ? SKV_E_UNAVAILABLE
		       : SKV_E_NOT_READY;
}

/* Answers have stopped; the lease ends last, so that an append in progress is still within it. What
 * is not durable yet fails; the next owner finds the rest. */
static uint32_t give_up(struct skv_core *c)
{
	const struct ownership o = owner_view(c);

	log_end(o.end);
	if (o.end == OWN_END_LOST)
		count_lost_lease(c);
	c->lease_ran_out = false;
	owner_drop(c, SKV_E_NOT_OWNER);
	if (o.end != OWN_END_LOST && o.end != OWN_END_BARRED)
		skv_store_release(c->store, 0, owner_fence(c), NULL);
	owner_event(c, OWN_ON_GIVEN_UP, 0);
	skv_mutex_lock(&c->turn_lock); /* one_demote may be waiting */
	skv_cond_broadcast(&c->turn_wake);
	skv_mutex_unlock(&c->turn_lock);
	if (ownership_is_hopeless(&o) && c->o.hopeless)
		c->o.hopeless(c->o.hopeless_ctx, cause_of(c, o.end));
	return RETRY_MS;
}

uint32_t owner_step(struct skv_core *c)
{
	atomic_store(&c->seen_ms, skv_wall_ms(c->clock));
	switch (owner_event(c, OWN_ON_TICK, 0)) {
	case OWN_DO_LOOK: return acquire(c, true);
	case OWN_DO_ACQUIRE: return claim(c);
	case OWN_DO_RECLAIM: return reclaim(c);
	case OWN_DO_RENEW: return renew(c);
	case OWN_DO_GIVE_UP: return give_up(c);
	default: return 1000;
	}
}

/* ---- loading --------------------------------------------------------------------------------- */

static int append(struct skv_core *c, struct partition *p, struct skv_buf *b, struct skv_error *err)
{
	struct skv_buf batch = { 0 };
	int rc = SKV_E_NOMEM;

	record_link(&batch, p, p->end.number);
	skv_put_bytes(&batch, b->data, b->len);
	if (!b->failed && !batch.failed)
		rc = skv_store_append(c->store, 0, p->fence, p->seq + 1, batch.data, batch.len,
				      SKV_APPEND_URGENT, err);
	if (rc == SKV_OK)
		journal_appended(p, journal_end_of(p, p->end.number, &batch), batch.len);
	skv_buf_destroy(&batch);
	skv_buf_destroy(b);
	return rc;
}

/* Removes blocks whose bytes a power loss may have destroyed. Every load finds them again until the
 * ownership's first record, so they are removed before that, and before anything is answered. */
static int remove_lost(struct skv_core *c, struct partition *p, struct skv_error *err)
{
	const struct picks *lost = &p->lost;
	uint64_t now = skv_now_ms(c->clock);
	int rc = SKV_OK;

	for (size_t i = 0; rc == SKV_OK && i < lost->n;) {
		struct skv_buf b = { 0 };

		for (size_t end = i + LOST_AT_A_TIME; i < lost->n && i < end;) {
			size_t n = lost->n < end ? lost->n - i : end - i;

			i += record_remove(&b, p, lost->v + i, n, now);
		}
		rc = append(c, p, &b, err);
	}
	if (rc == SKV_OK)
		removals_apply(p, lost->v, lost->n);
	return rc;
}

/* The first record of an ownership: the boot whose clock horizons use from here on, the clock of
 * uses, and a mark that the last stop is not clean any more. Durable before anything is answered,
 * in NORMAL too. */
static int begin_ownership(struct skv_core *c, struct partition *p, struct skv_error *err)
{
	struct skv_buf b = { 0 };
	int rc = remove_lost(c, p, err);

	if (rc == SKV_OK) {
		record_horizon(&b, p, false);
		record_counters(&b, p);
		horizons_put(&b, p, false);
		rc = append(c, p, &b, err);
	}
	if (rc == SKV_OK)
		rc = skv_store_sync(c->store, 0, err);
	if (rc == SKV_OK)
		journal_is_durable(p);
	if (rc == SKV_OK)
		rc = partition_put_behind(p, err);
	if (rc == SKV_OK)
		rc = registry_finish_drops(p, err);
	return rc;
}

/* Storages of this partition that were not probed yet, without those that hang. */
static uint32_t count_unprobed(struct skv_core *c)
{
	uint32_t n = 0;

	core_lock(c);
	for (uint32_t i = 0; i < c->n_device; i++) {
		const struct device *d = c->device[i];

		n += !d->ops->counted && device_volume(c->partition, d) &&
		     atomic_load(&d->probed) != owner_fence(c) && !device_hangs(d);
	}
	core_unlock(c);
	return n;
}

/* Lets each storage's thread probe once: a storage not looked at yet would make calls fail. One
 * that is slow does not hold up the others. */
static void first_probes(struct skv_core *c)
{
	uint64_t until = skv_now_us() + PROBE_WAIT_MS * 1000u;
	uint32_t left = UINT32_MAX, n;

	core_lock(c);
	for (uint32_t i = 0; i < c->n_device; i++)
		device_ask(c->device[i]);
	core_unlock(c);
	while ((n = count_unprobed(c)) > 0 && skv_now_us() < until) {
		until = n < left ? skv_now_us() + PROBE_WAIT_MS * 1000u : until;
		left = n;
		if (!core_pause(c, 2))
			return;
	}
}

/* Under the write lock: is the ownership that p was loaded for still current? It may end without
 * the lock, but the owner thread takes the lock afterwards to drop the partition. */
static bool still_ours(const struct skv_core *c, const struct partition *p)
{
	const struct ownership o = owner_view(c);

	return o.state == OWN_LOADING && o.fence == p->fence;
}

static int check_finished(struct skv_core *c, struct skv_error *err)
{
	struct skv_buf b = { 0 };
	int rc = skv_store_get(c->store, SKV_STORE_UNFINISHED, &b, NULL, err);

	skv_buf_destroy(&b);
	if (rc == SKV_OK)
		return skv_fail(err, SKV_E_CORRUPT, "store",
				"the store was copied to in part only: throw it away and run "
				"slabkvd migrate again");
	if (rc == SKV_E_NOT_FOUND) {
		skv_error_clear(err);
		rc = SKV_OK;
	}
	return rc;
}

/* A backup is of some time ago: it is loaded as such, or not at all. *version: of its document, to
 * be deleted once it is; SKV_VERSION_NONE: it is none. */
static int check_backup(struct skv_core *c, uint64_t *version, struct skv_error *err)
{
	struct skv_buf b = { 0 };
	int rc = skv_store_get(c->store, SKV_STORE_BACKUP, &b, version, err);

	skv_buf_destroy(&b);
	if (rc == SKV_OK && !claims_roll_back(c))
		return skv_fail(err, SKV_E_CONFLICT, "store",
				"the store is a backup, or was restored from one: make sure that "
				"no manager goes on with the original, then start this one once "
				"with --adopt");
	if (rc == SKV_E_NOT_FOUND) {
		*version = SKV_VERSION_NONE;
		skv_error_clear(err);
		rc = SKV_OK;
	}
	return rc;
}

static int load(struct skv_core *c, uint64_t fence, struct partition **out, struct skv_error *err)
{
	uint64_t backup = SKV_VERSION_NONE;
	int rc = check_finished(c, err);

	if (rc == SKV_OK)
		rc = check_backup(c, &backup, err);
	if (rc == SKV_OK)
		rc = registry_secret(c, fence, err);
	if (rc == SKV_OK)
		rc = claims_begin(c, err);
	if (rc == SKV_OK && !standby_take(c, fence, out))
		rc = partition_load(c, fence, out, err);
	if (rc == SKV_OK)
		rc = begin_ownership(c, *out, err);
	if (rc == SKV_OK && backup != SKV_VERSION_NONE)
		rc = registry_del(c, fence, SKV_STORE_BACKUP, backup, err);
	if (rc == SKV_E_FENCED)
		owner_lost(c, fence);
	if (rc == SKV_OK) {
		c->rolled_back |= claims_roll_back(c);
		return rc;
	}
	atomic_store(&c->load_result, rc);
	COUNT(c, corrupt_loads, rc == SKV_E_CORRUPT);
	COUNT(c, store_refusals, bars_loads(rc));
	partition_destroy(*out);
	/* A manager that loses the race for a partition is a standby again: nothing to repair. */
	skv_log(rc == SKV_E_FENCED || rc == SKV_E_NOT_OWNER ? SKV_LOG_WARN : SKV_LOG_ERROR, "core",
		"cannot load the partition: %s",
		err->message[0] ? err->message : skv_status_text(rc));
	return rc;
}

/* Changes to READY, unless the ownership was lost meanwhile. */
static void open_up(struct skv_core *c, struct partition *p)
{
	const uint64_t fence = p->fence; /* p may be dropped meanwhile */
	bool ours;

	core_lock(c);
	ours = still_ours(c, p);
	if (ours)
		c->partition = p;
	core_unlock(c);
	if (!ours) {
		partition_destroy(p);
		return;
	}
	devices_sweep(c);
	first_probes(c); /* until then every block there would be a miss */
	claims_skip_generations(c);
	owner_event(c, claims_refused(c) ? OWN_ON_TURNED_AWAY : OWN_ON_LOADED, fence);
}

bool owner_load(struct skv_core *c)
{
	struct partition *p = NULL;
	struct skv_error err = { 0 };
	uint64_t t0 = skv_now_ms(c->clock);

	const struct ownership o = owner_view(c);

	if (o.state != OWN_LOADING)
		return true;
	if (load(c, o.fence, &p, &err) != SKV_OK) {
		owner_event(c, OWN_ON_LOAD_FAILED, o.fence);
		return false;
	}
	skv_log(SKV_LOG_INFO, "core", "recovered in %llu ms, blocks: %llu, open sessions: %llu",
		(unsigned long long)(skv_now_ms(c->clock) - t0), (unsigned long long)p->blocks,
		(unsigned long long)p->open_sessions);
	open_up(c, p);
	return true;
}

/* ---- administration -------------------------------------------------------------------------- */

int one_demote(struct skv_core *c, uint32_t stay_out_ms, struct skv_error *err)
{
	uint64_t until = skv_now_us() + DEMOTE_WAIT_MS * 1000u;
	bool done;

	if (!owner_valid(c) || !owner_demote(c, stay_out_ms))
		return skv_fail(err, SKV_E_NOT_OWNER, NULL,
				"this manager is not the owner, or is giving up the ownership");
	if (c->o.manual)
		owner_step(c);
	wake(c);
	skv_mutex_lock(&c->turn_lock);
	while (owner_state(c) == OWN_GIVING_UP && !c->stop && skv_now_us() < until)
		skv_cond_wait_ms(&c->turn_wake, &c->turn_lock, 50);
	done = owner_state(c) != OWN_GIVING_UP;
	skv_mutex_unlock(&c->turn_lock);
	return done ? SKV_OK
		    : skv_fail(err, SKV_E_TIMEOUT, NULL,
			       "the ownership is not given up yet; it will be");
}

void one_leader(struct skv_core *c, char self[SKV_OWNER_NAME], char leader[SKV_OWNER_NAME],
		uint64_t *remaining_ms)
{
	uint64_t now = skv_now_ms(c->clock), until = owner_view(c).owned_until;

	memcpy(self, c->owner, SKV_OWNER_NAME);
	*remaining_ms = until > now ? until - now : 0;
	if (*remaining_ms > 0) {
		memcpy(leader, c->owner, SKV_OWNER_NAME);
		return;
	}
	owner_holder(c, leader);
}

bool one_owned_elsewhere(struct skv_core *c, uint64_t since_ms)
{
	const uint64_t now = skv_now_ms(c->clock), renewed = skv_store_renewed_ms(c->store, 0);
	char holder[SKV_OWNER_NAME];

	if (owner_state(c) != OWN_STANDBY)
		return false;
	owner_holder(c, holder);
	if (!holder[0] || skv_owner_is_dead(holder))
		return false;
	if (renewed && now - renewed > c->o.owner_lease_ms / 3 + LATE_MS)
		return false;
	return renewed > since_ms ||
	       now - since_ms > (strstr(holder, c->boot_id) ? EXIT_MS : SETTLE_MS);
}

uint64_t one_owner_seen_ms(const struct skv_core *c) { return atomic_load(&c->seen_ms); }

bool one_load_fails(const struct skv_core *c) { return owner_view(c).failed_loads > 0; }
