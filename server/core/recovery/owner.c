/*
 * owner.c - ownership of the partition: acquiring and renewing the lease, loading, giving up.
 *
 * The owner thread acquires and renews; the ticker loads (which can take long, and the lease must
 * be renewed meanwhile). A manager answers and appends only before `owned_until`, which is counted
 * from before the call that obtained the lease. After losing the lease it discards the partition
 * and is a standby. Before the partition is reloaded it is acquired again: no two loads have the
 * same fence, so decisions made on the old partition cannot reach the store.
 */
#include <recovery/owner.h>

#include <stdio.h>
#include <string.h>

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
#include <journal/record.h>
#include <journal/registry_copy.h>
#include <journal/registry_write.h>
#include <journal/snapshot.h>
#include <journal/sync.h>
#include <storage/claim.h>
#include <storage/device.h>
#include <evict/remove.h>
#include <recovery/recover.h>
#include <recovery/restore.h>
#include <recovery/standby.h>

#define PROBE_WAIT_MS 30000u /* many partitions claim their storages at once */
#define LOOK_MS 50u          /* a standby looks so often whether the partition can be had */
#define LOST_AT_A_TIME 65536u /* removals in one batch */
#define GIVE_WAY_LOADS 10    /* failed loads before another manager may try */
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
#define DEMOTE_WAIT_MS 10000u
#define WHOLE_MS 200u  /* between looks whether the store is there, to give a partition up */
#define LATE_MS 150u   /* a renewal that much later than it should come may never come */
#define SETTLE_MS 400u /* how long a call waits to see one */
#define EXIT_MS 50u    /* a process that is killed has closed its connections before it is gone */

static void set_owned(struct skv_core *c, uint64_t until) { atomic_store(&c->owned_until, until); }

/* Whoever calls it has the partition then, if there is one. */
static struct partition *detach(struct skv_core *c, int status, enum skv_core_state next)
{
	struct partition *p;

	atomic_fetch_add(&c->given_up, 1);
	atomic_store(&c->state, next);
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
	return p;
}

void owner_drop(struct skv_core *c, int status, enum skv_core_state next)
{
	partition_destroy(detach(c, status, next));
}

static void set_holder(struct skv_core *c, const char *holder)
{
	skv_mutex_lock(&c->turn_lock);
	snprintf(c->holder, sizeof c->holder, "%s", holder);
	skv_mutex_unlock(&c->turn_lock);
}

/* It is ours with a new fence, since `now`; load the partition. */
static void begin_with(struct skv_core *c, uint64_t fence, uint64_t now)
{
	atomic_store(&c->fence, fence);
	atomic_store(&c->fenced, false);
	set_owned(c, now + c->o.owner_lease_ms);
	atomic_store(&c->acquired_at, now);
	atomic_store(&c->state, SKV_CORE_RECOVERING);
	/* earlier requests were written before this fence, or not at all */
	atomic_store(&c->reload_asked, false);
}

/* Whoever knows all of a store that may have lost it restores it, whosever the partition is: an
 * engine that comes back empty has lost the list of members, too. */
static bool may_own(const struct skv_core *c)
{
	return (atomic_load(&c->may_own) && !atomic_load(&c->draining)) || restore_knows_all(c);
}

static bool may_claim(const struct skv_core *c)
{
	return may_own(c) && skv_now_ms(c->clock) >= atomic_load(&c->out_until);
}

bool one_comes(const struct skv_core *c)
{
	return atomic_load(&c->state) == SKV_CORE_STANDBY && may_claim(c) &&
	       !atomic_load(&c->has_rival);
}

bool one_takes(const struct skv_core *c)
{
	return atomic_load(&c->state) == SKV_CORE_STANDBY && !atomic_load(&c->draining) &&
	       skv_now_ms(c->clock) >= atomic_load(&c->out_until) &&
	       (c->o.standby_cold || atomic_load(&c->standby_unsupported) ||
		atomic_load(&c->standby_loaded));
}

/* The owner thread has something to do. */
static void wake(struct skv_core *c)
{
	skv_mutex_lock(&c->turn_lock);
	atomic_store(&c->step_asked, true);
	skv_cond_broadcast(&c->turn_wake);
	skv_mutex_unlock(&c->turn_lock);
}

void one_may_own(struct skv_core *c, bool on)
{
	if (atomic_exchange(&c->may_own, on) != on)
		wake(c);
}

void one_drain(struct skv_core *c, bool on)
{
	atomic_store(&c->draining, on);
	wake(c);
}

/* A manager that stays out still looks who the owner is. */
static uint32_t try_acquire(struct skv_core *c)
{
	uint64_t now = skv_now_ms(c->clock), fence = 0;
	uint32_t ttl = may_claim(c) ? c->o.owner_lease_ms : 0;
	char holder[192] = "";
	struct skv_error err = { 0 };
	int rc = skv_store_acquire(c->store, 0, c->owner, ttl, &fence, holder, sizeof holder, &err);

	set_holder(c, holder);
	atomic_store(&c->has_rival, rc == SKV_E_NOT_OWNER);
	if (rc == SKV_OK && ttl == 0)
		return LOOK_MS;
	if (rc == SKV_OK) {
		c->gave_up = false;
		begin_with(c, fence, now);
		COUNT(c, takeovers, 1);
		return c->o.owner_lease_ms / 3;
	}
	if (rc != SKV_E_NOT_OWNER)
		skv_log(SKV_LOG_WARN, "core", "cannot acquire the partition: %s", err.message);
	else if (!c->standby_logged)
		skv_log(SKV_LOG_INFO, "core", "standby: '%s' owns the partition", holder);
	c->standby_logged = true;
	return LOOK_MS;
}

/* Reloads the partition, with a new fence. */
static uint32_t begin_anew(struct skv_core *c)
{
	uint64_t now = skv_now_ms(c->clock), fence = 0;
	char holder[192] = "";
	struct skv_error err = { 0 };
	int rc;

	restore_keep(c, detach(c, SKV_E_UNKNOWN_OUTCOME, SKV_CORE_RECOVERING),
		     atomic_load(&c->owned_until));
	rc = skv_store_acquire(c->store, 0, c->owner, c->o.owner_lease_ms, &fence, holder,
			       sizeof holder, &err);
	if (rc == SKV_OK) {
		begin_with(c, fence, now);
		COUNT(c, reloads, 1);
		return c->o.owner_lease_ms / 3;
	}
	if (rc == SKV_E_NOT_OWNER) { /* our lease had run out */
		atomic_store(&c->fenced, true);
		return 0;
	}
	skv_log(SKV_LOG_WARN, "core", "cannot acquire the partition again: %s", err.message);
	return 200;
}

/* If it fails, the next owner takes more care than it must. */
void owner_vouch(struct skv_core *c)
{
	struct skv_error err = { 0 };

	if (atomic_load(&c->state) == SKV_CORE_READY && skv_store_may_go_back(c->store) &&
	    skv_store_vouch(c->store, 0, atomic_load(&c->fence), &err) != SKV_OK)
		skv_log(SKV_LOG_DEBUG, "core", "the engine's processes are not noted: %s",
			err.message);
}

static uint32_t renew(struct skv_core *c)
{
	uint64_t now = skv_now_ms(c->clock);
	struct skv_error err = { 0 };
	int rc = skv_store_renew(c->store, 0, atomic_load(&c->fence), c->o.owner_lease_ms, &err);

	if (rc == SKV_OK) {
		set_owned(c, now + c->o.owner_lease_ms);
		return c->o.owner_lease_ms / 3;
	}
	if (rc == SKV_E_FENCED) {
		owner_lost(c, atomic_load(&c->fence));
		return 0;
	}
	skv_log(SKV_LOG_WARN, "core", "cannot renew the ownership: %s", err.message);
	return 200;
}

/* Our partition cannot be loaded, or may not be continued here: perhaps another manager can. */
static uint32_t give_way(struct skv_core *c, const char *why)
{
	skv_log(SKV_LOG_ERROR, "core", "%s: giving up the ownership", why);
	set_owned(c, 0);
	owner_drop(c, SKV_E_NOT_OWNER, SKV_CORE_STANDBY);
	skv_store_release(c->store, 0, atomic_load(&c->fence), NULL);
	atomic_store(&c->failed_loads, 0);
	c->gave_up = atomic_exchange(&c->turned_away, false);
	c->standby_logged = false;
	if (c->o.hopeless) {
		c->o.hopeless(c->o.hopeless_ctx);
		c->o.hopeless = NULL;
	}
	return 2 * c->o.owner_lease_ms;
}

/* The store has our fence still, so it has not gone back. If it has, or that is not known, what is
 * owned is not given up: nobody else has all of it. */
static bool is_whole(struct skv_core *c)
{
	struct skv_error err = { 0 };
	int rc;

	if (atomic_load(&c->state) != SKV_CORE_READY || !skv_store_may_go_back(c->store))
		return true;
	rc = skv_store_renew(c->store, 0, atomic_load(&c->fence), c->o.owner_lease_ms, &err);
	if (rc == SKV_E_FENCED)
		owner_lost(c, atomic_load(&c->fence));
	return rc == SKV_OK;
}

/* A requested demotion. Answers stop first, the lease ends last, so that an append in progress is
 * still within it. What is not durable yet fails; the next owner finds the rest. */
static uint32_t step_down(struct skv_core *c)
{
	uint64_t ms = atomic_load(&c->demote_ms);

	if (!is_whole(c))
		return atomic_load(&c->fenced) ? 0 : WHOLE_MS;
	if (atomic_load(&c->state) != SKV_CORE_STANDBY) {
		skv_log(SKV_LOG_INFO, "core", "giving up partition %u on request, for %llu ms",
			(unsigned)c->o.partition, (unsigned long long)ms);
		owner_drop(c, SKV_E_NOT_OWNER, SKV_CORE_STANDBY);
		set_owned(c, 0);
		skv_store_release(c->store, 0, atomic_load(&c->fence), NULL);
		atomic_store(&c->out_until, skv_now_ms(c->clock) + ms);
		c->standby_logged = false;
	}
	skv_mutex_lock(&c->turn_lock);
	atomic_store(&c->demote_ms, DEMOTE_NONE);
	skv_cond_broadcast(&c->turn_wake);
	skv_mutex_unlock(&c->turn_lock);
	return 200;
}

uint32_t owner_step(struct skv_core *c)
{
	uint64_t until;

	atomic_store(&c->seen_ms, skv_wall_ms(c->clock));
	if (atomic_load(&c->state) == SKV_CORE_STOPPED)
		return 1000;
	if (atomic_load(&c->fenced)) {
		skv_log(SKV_LOG_WARN, "core", "lost the ownership: now a standby");
		until = atomic_load(&c->owned_until);
		set_owned(c, 0);
		restore_keep(c, detach(c, SKV_E_NOT_OWNER, SKV_CORE_STANDBY), until);
		atomic_store(&c->fenced, false);
		c->standby_logged = false;
		return 200;
	}
	if (atomic_load(&c->demote_ms) != DEMOTE_NONE)
		return step_down(c);
	if (atomic_load(&c->state) == SKV_CORE_STANDBY)
		return try_acquire(c);
	if (!may_own(c) && !atomic_load(&c->reload_asked)) {
		atomic_store(&c->demote_ms, 0);
		return step_down(c);
	}
	if (atomic_load(&c->reload_asked))
		return begin_anew(c);
	if (atomic_load(&c->turned_away))
		return give_way(c, "another copy of this store goes on in its slab directories");
	if (atomic_load(&c->failed_loads) >= GIVE_WAY_LOADS)
		return give_way(c,
				"the partition could not be loaded " TEXT(GIVE_WAY_LOADS) " times");
	return renew(c);
}

static int append(struct skv_core *c, struct partition *p, struct skv_buf *b, struct skv_error *err)
{
	int rc = SKV_E_NOMEM;

	if (!b->failed)
		rc = skv_store_append(c->store, 0, p->fence, p->seq + 1, b->data, b->len,
				      SKV_APPEND_URGENT, err);
	if (rc == SKV_OK) {
		p->seq++;
		p->journal_bytes += b->len;
	}
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
		rc = partition_put_behind(p, err);
	if (rc == SKV_OK)
		rc = registry_finish_drops(p, err);
	if (rc == SKV_OK)
		rc = skv_store_vouch(c->store, 0, p->fence, err);
	return rc;
}

/* Only storages of this partition; one that hangs is not waited for. */
static bool all_probed(struct skv_core *c)
{
	bool all = true;

	core_lock(c);
	for (uint32_t i = 0; i < c->n_device; i++) {
		const struct device *d = c->device[i];

		all &= !device_volume(c->partition, d) || atomic_load(&d->probed) ||
		       device_hangs(d);
	}
	core_unlock(c);
	return all;
}

/* Lets each storage's thread probe once: a storage not looked at yet would make calls fail. */
static void first_probes(struct skv_core *c)
{
	uint64_t until = skv_now_us() + PROBE_WAIT_MS * 1000u;

	core_lock(c);
	for (uint32_t i = 0; i < c->n_device; i++)
		device_ask(c->device[i]);
	core_unlock(c);
	while (!all_probed(c) && skv_now_us() < until)
		if (!core_pause(c, 2))
			return;
}

/* Under the write lock: is the ownership that p was loaded for still current? The owner thread
 * changes these without the lock, but takes it afterwards to drop the partition. */
static bool still_ours(const struct skv_core *c, const struct partition *p)
{
	return atomic_load(&c->state) == SKV_CORE_RECOVERING && !atomic_load(&c->fenced) &&
	       !atomic_load(&c->reload_asked) && atomic_load(&c->fence) == p->fence;
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

static int load(struct skv_core *c, struct partition **out, struct skv_error *err)
{
	uint64_t fence = atomic_load(&c->fence), backup = SKV_VERSION_NONE, restored;
	int rc = restore_check(c, err);

	c->went_back = rc == SKV_E_CONFLICT;
	if (c->went_back)
		rc = restore_lost(c, fence, err);
	if (rc == SKV_OK)
		rc = restore_registry(c, fence, err);
	if (rc == SKV_OK)
		rc = restore_found(c, &restored, err);
	if (rc == SKV_OK && skv_store_may_go_back(c->store))
		rc = registry_copy_read(c->registry, c, err);
	if (rc == SKV_OK)
		rc = check_finished(c, err);
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
	if (rc == SKV_OK && restored != SKV_VERSION_NONE)
		rc = restore_done(c, fence, restored, err);
	if (rc == SKV_E_FENCED)
		owner_lost(c, fence);
	if (rc == SKV_OK) {
		c->rolled_back |= claims_roll_back(c);
		return rc;
	}
	partition_destroy(*out);
	/* Whoever loses the race for a partition is a standby again: nothing to mend. */
	skv_log(rc == SKV_E_FENCED || rc == SKV_E_NOT_OWNER ? SKV_LOG_WARN : SKV_LOG_ERROR, "core",
		"cannot load the partition: %s",
		err->message[0] ? err->message : skv_status_text(rc));
	return rc;
}

/* Goes READY, unless the ownership was lost meanwhile. */
static void open_up(struct skv_core *c, struct partition *p)
{
	bool ours;

	core_lock(c);
	ours = still_ours(c, p);
	if (ours) {
		c->partition = p;
		/* what was loaded is acknowledged, like this reign's first record */
		atomic_store(&c->known_seq, p->seq);
	}
	core_unlock(c);
	if (!ours) {
		partition_destroy(p);
		return;
	}
	devices_sweep(c);
	first_probes(c); /* until then every block there would be a miss */
	if (claims_refused(c)) {
		atomic_store(&c->turned_away, true);
		return;
	}
	core_lock(c);
	if (c->partition == p && still_ours(c, p)) {
		int recovering = SKV_CORE_RECOVERING;

		atomic_compare_exchange_strong(&c->state, &recovering, SKV_CORE_READY);
	}
	core_unlock(c);
}

bool owner_load(struct skv_core *c)
{
	struct partition *p = NULL;
	struct skv_error err = { 0 };
	uint64_t t0 = skv_now_ms(c->clock);

	if (atomic_load(&c->state) != SKV_CORE_RECOVERING || atomic_load(&c->fenced) ||
	    atomic_load(&c->reload_asked) || atomic_load(&c->turned_away))
		return true; /* nothing to load, or the owner thread must act first */
	if (load(c, &p, &err) != SKV_OK) {
		/* one that ends itself would come back without knowing better */
		if (!c->went_back || !atomic_load(&c->failed_loads))
			atomic_fetch_add(&c->failed_loads, 1);
		return false;
	}
	atomic_store(&c->failed_loads, 0);
	skv_log(SKV_LOG_INFO, "core", "recovered %llu blocks and %llu open sessions in %llu ms",
		(unsigned long long)p->blocks, (unsigned long long)p->open_sessions,
		(unsigned long long)(skv_now_ms(c->clock) - t0));
	open_up(c, p);
	return true;
}

/* ---- administration
 * -------------------------------------------------------------------------------------- */

int one_demote(struct skv_core *c, uint32_t stay_out_ms, struct skv_error *err)
{
	uint64_t until = skv_now_us() + DEMOTE_WAIT_MS * 1000u, none = DEMOTE_NONE;
	bool done;

	if (atomic_load(&c->state) == SKV_CORE_STOPPED || !owner_valid(c))
		return skv_fail(err, SKV_E_NOT_OWNER, NULL, "this manager is not the owner");
	if (!atomic_compare_exchange_strong(&c->demote_ms, &none, stay_out_ms))
		return skv_fail(err, SKV_E_NOT_OWNER, NULL,
				"this manager is already giving up the ownership");
	if (c->o.manual)
		owner_step(c);
	skv_mutex_lock(&c->turn_lock);
	while (atomic_load(&c->demote_ms) != DEMOTE_NONE && !c->stop && skv_now_us() < until)
		skv_cond_wait_ms(&c->turn_wake, &c->turn_lock, 50);
	done = atomic_load(&c->demote_ms) == DEMOTE_NONE;
	skv_mutex_unlock(&c->turn_lock);
	return done ? SKV_OK
		    : skv_fail(err, SKV_E_TIMEOUT, NULL,
			       "the ownership is not given up yet; it will be");
}

void one_leader(struct skv_core *c, char self[SKV_OWNER_NAME], char leader[SKV_OWNER_NAME],
		uint64_t *remaining_ms)
{
	uint64_t now = skv_now_ms(c->clock), until = atomic_load(&c->owned_until);

	memcpy(self, c->owner, SKV_OWNER_NAME);
	*remaining_ms = until > now ? until - now : 0;
	if (*remaining_ms > 0) {
		memcpy(leader, c->owner, SKV_OWNER_NAME);
		return;
	}
	skv_mutex_lock(&c->turn_lock);
	memcpy(leader, c->holder, SKV_OWNER_NAME);
	skv_mutex_unlock(&c->turn_lock);
}

bool one_owned_elsewhere(struct skv_core *c, uint64_t since_ms)
{
	const uint64_t now = skv_now_ms(c->clock), renewed = skv_store_renewed_ms(c->store, 0);
	char holder[SKV_OWNER_NAME];

	if (atomic_load(&c->state) != SKV_CORE_STANDBY)
		return false;
	skv_mutex_lock(&c->turn_lock);
	memcpy(holder, c->holder, SKV_OWNER_NAME);
	skv_mutex_unlock(&c->turn_lock);
	if (!holder[0] || skv_owner_is_dead(holder))
		return false;
	if (renewed && now - renewed > c->o.owner_lease_ms / 3 + LATE_MS)
		return false;
	return renewed > since_ms ||
	       now - since_ms > (strstr(holder, c->boot_id) ? EXIT_MS : SETTLE_MS);
}

uint64_t skv_core_owner_seen_ms(const struct skv_core *c) { return atomic_load(&c->seen_ms); }

bool skv_core_load_fails(const struct skv_core *c) { return atomic_load(&c->failed_loads) > 0; }
