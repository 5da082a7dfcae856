/*
 * owner.c - who may answer: the ownership lease of the partition, loading it, giving it up.
 *
 * The owner thread acquires and renews; the ticker loads (that can take long, and the lease must be
 * renewed meanwhile). A manager answers and appends only while `owned_until`, counted from before the
 * call that obtained it, lies ahead. After losing the lease it forgets the partition and is a standby.
 * Before the partition is loaded again it is acquired again: no two loads have the same fence, so nothing that was decided
 * on the partition before can reach the store.
 */
#include <recovery/owner.h>

#include <stdio.h>
#include <string.h>

#include <skv/log.h>
#include <skv/store.h>

#include <lock/core.h>
#include <lock/gate.h>
#include <lock/lock.h>
#include <lock/turn.h>
#include <model/device.h>
#include <model/partition.h>
#include <journal/commit.h>
#include <journal/record.h>
#include <journal/registry_write.h>
#include <journal/snapshot.h>
#include <journal/sync.h>
#include <storage/claim.h>
#include <storage/device.h>
#include <evict/remove.h>
#include <recovery/recover.h>

#define PROBE_WAIT_MS 2000u
#define LOST_AT_A_TIME 65536u /* removals in one batch */
#define GIVE_WAY_LOADS 10    /* failed ones, before another manager may try */
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
#define DEMOTE_WAIT_MS 10000u

static void set_owned(struct skv_core *c, uint64_t until) { atomic_store(&c->owned_until, until); }

void owner_drop(struct skv_core *c, int status, enum skv_core_state next)
{
	struct partition *p;

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
	c->partition = NULL;
	core_unlock(c);
	partition_destroy(p);
}

static void set_holder(struct skv_core *c, const char *holder)
{
	skv_mutex_lock(&c->turn_lock);
	snprintf(c->holder, sizeof c->holder, "%s", holder);
	skv_mutex_unlock(&c->turn_lock);
}

/* It is ours by a new fence, since `now`; the partition is to be loaded. */
static void begin_with(struct skv_core *c, uint64_t fence, uint64_t now)
{
	atomic_store(&c->fence, fence);
	atomic_store(&c->fenced, false);
	set_owned(c, now + c->o.owner_lease_ms);
	atomic_store(&c->state, SKV_CORE_RECOVERING);
	atomic_store(&c->reload_asked, false); /* whoever asked has written before this fence, or not at all */
}

/* Who stays out still looks who has it. */
static uint32_t try_acquire(struct skv_core *c)
{
	uint64_t now = skv_now_ms(c->clock), fence = 0;
	uint32_t ttl = now < c->out_until ? 0 : c->o.owner_lease_ms;
	char holder[192] = "";
	struct skv_error err = { 0 };
	int rc = skv_store_acquire(c->store, 0, c->owner, ttl, &fence, holder, sizeof holder, &err);

	set_holder(c, holder);
	if (rc == SKV_OK && ttl == 0)
		return 200;
	if (rc == SKV_OK) {
		c->gave_up = false;
		begin_with(c, fence, now);
		COUNT(c, takeovers, 1);
		return c->o.owner_lease_ms / 3;
	}
	if (rc != SKV_E_NOT_OWNER)
		skv_log(SKV_LOG_WARN, "core", "cannot acquire the partition: %s", err.message);
	else if (!c->standby_told)
		skv_log(SKV_LOG_INFO, "core", "standby: '%s' owns the partition", holder);
	c->standby_told = true;
	return 200;
}

/* The partition is loaded again, with a fence of its own. */
static uint32_t begin_anew(struct skv_core *c)
{
	uint64_t now = skv_now_ms(c->clock), fence = 0;
	char holder[192] = "";
	struct skv_error err = { 0 };
	int rc;

	owner_drop(c, SKV_E_UNKNOWN_OUTCOME, SKV_CORE_RECOVERING);
	rc = skv_store_acquire(c->store, 0, c->owner, c->o.owner_lease_ms, &fence, holder, sizeof holder, &err);
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

/* What we own cannot be loaded, or is not ours to go on from: perhaps another manager can. */
static uint32_t give_way(struct skv_core *c, const char *why)
{
	skv_log(SKV_LOG_ERROR, "core", "%s: giving up the ownership", why);
	set_owned(c, 0);
	owner_drop(c, SKV_E_NOT_OWNER, SKV_CORE_STANDBY);
	skv_store_release(c->store, 0, atomic_load(&c->fence), NULL);
	atomic_store(&c->failed_loads, 0);
	c->gave_up = atomic_exchange(&c->turned_away, false);
	c->standby_told = false;
	if (c->o.hopeless) {
		c->o.hopeless(c->o.hopeless_ctx);
		c->o.hopeless = NULL;
	}
	return 2 * c->o.owner_lease_ms;
}

/* Somebody asked for it. Answers end first, the lease last: an append that is under way is still inside it. What is
 * not durable yet fails; whoever takes over finds the rest. */
static uint32_t step_down(struct skv_core *c)
{
	uint64_t ms = atomic_load(&c->demote_ms);

	if (atomic_load(&c->state) != SKV_CORE_STANDBY) {
		skv_log(SKV_LOG_INFO, "core", "giving up the ownership on request, for %llu ms",
			(unsigned long long)ms);
		owner_drop(c, SKV_E_NOT_OWNER, SKV_CORE_STANDBY);
		set_owned(c, 0);
		skv_store_release(c->store, 0, atomic_load(&c->fence), NULL);
		c->out_until = skv_now_ms(c->clock) + ms;
		c->standby_told = false;
	}
	skv_mutex_lock(&c->turn_lock);
	atomic_store(&c->demote_ms, DEMOTE_NONE);
	skv_cond_broadcast(&c->turn_wake);
	skv_mutex_unlock(&c->turn_lock);
	return 200;
}

uint32_t owner_step(struct skv_core *c)
{
	atomic_store(&c->seen_ms, skv_wall_ms(c->clock));
	if (atomic_load(&c->state) == SKV_CORE_STOPPED)
		return 1000;
	if (atomic_load(&c->fenced)) {
		skv_log(SKV_LOG_WARN, "core", "lost the ownership: now a standby");
		set_owned(c, 0);
		owner_drop(c, SKV_E_NOT_OWNER, SKV_CORE_STANDBY);
		atomic_store(&c->fenced, false);
		c->standby_told = false;
		return 200;
	}
	if (atomic_load(&c->demote_ms) != DEMOTE_NONE)
		return step_down(c);
	if (atomic_load(&c->state) == SKV_CORE_STANDBY)
		return try_acquire(c);
	if (atomic_load(&c->reload_asked))
		return begin_anew(c);
	if (atomic_load(&c->turned_away))
		return give_way(c, "another copy of this store goes on in its slab directories");
	if (atomic_load(&c->failed_loads) >= GIVE_WAY_LOADS)
		return give_way(c, "the partition could not be loaded " TEXT(GIVE_WAY_LOADS) " times");
	return renew(c);
}

static int append(struct skv_core *c, struct partition *p, struct skv_buf *b, struct skv_error *err)
{
	int rc = SKV_E_NOMEM;

	if (!b->failed)
		rc = skv_store_append(c->store, 0, p->fence, p->seq + 1, b->data, b->len, SKV_APPEND_URGENT, err);
	if (rc == SKV_OK) {
		p->seq++;
		p->journal_bytes += b->len;
	}
	skv_buf_destroy(b);
	return rc;
}

/* Blocks whose bytes a power loss may have taken. Until the reign's own record every load finds them
 * again, so they are gone before it, and before anything is answered. */
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

/* The first record of a reign: the boot that horizons are told by from here on, and the mark that the last stop is not
 * clean any more. Durable before anything is answered, in NORMAL too. */
static int begin_reign(struct skv_core *c, struct partition *p, struct skv_error *err)
{
	struct skv_buf b = { 0 };
	int rc = remove_lost(c, p, err);

	if (rc == SKV_OK) {
		record_horizon(&b, p, false);
		horizons_put(&b, p, false);
		rc = append(c, p, &b, err);
	}
	if (rc == SKV_OK)
		rc = skv_store_sync(c->store, err);
	if (rc == SKV_OK)
		rc = partition_put_behind(p, err);
	if (rc == SKV_OK)
		rc = registry_finish_drops(p, err);
	return rc;
}

/* Of the partition's storages; those of others are nobody's. */
static bool all_probed(struct skv_core *c)
{
	bool all = true;

	core_lock(c);
	for (uint32_t i = 0; i < c->n_device; i++)
		all &= !device_volume(c->partition, c->device[i]) || atomic_load(&c->device[i]->probed);
	core_unlock(c);
	return all;
}

/* Lets each storage's thread look at it once; one that hangs is not waited for long. */
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

/* Under the write lock: the reign that p was loaded for goes on. The owner thread changes these without it, but
 * takes the lock to drop the partition afterwards. */
static bool still_ours(const struct skv_core *c, const struct partition *p)
{
	return atomic_load(&c->state) == SKV_CORE_RECOVERING && !atomic_load(&c->fenced) &&
	       !atomic_load(&c->reload_asked) && atomic_load(&c->fence) == p->fence;
}

static int load(struct skv_core *c, struct partition **out, struct skv_error *err)
{
	uint64_t fence = atomic_load(&c->fence);
	int rc = registry_secret(c, fence, err);

	if (rc == SKV_OK)
		rc = claims_begin(c, err);
	if (rc == SKV_OK)
		rc = partition_load(c, fence, out, err);
	if (rc == SKV_OK)
		rc = begin_reign(c, *out, err);
	if (rc == SKV_E_FENCED)
		owner_lost(c, fence);
	if (rc == SKV_OK) {
		c->rolled_back |= claims_roll_back(c);
		return rc;
	}
	partition_destroy(*out);
	skv_log(SKV_LOG_ERROR, "core", "cannot load the partition: %s",
		err->message[0] ? err->message : skv_status_text(rc));
	return rc;
}

/* READY, unless the ownership was lost meanwhile. */
static void open_up(struct skv_core *c, struct partition *p)
{
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
	first_probes(c); /* until then every block of theirs would be a miss */
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

	if (atomic_load(&c->state) != SKV_CORE_RECOVERING || atomic_load(&c->fenced) || atomic_load(&c->reload_asked) ||
	    atomic_load(&c->turned_away))
		return true; /* nothing to load, or the owner thread's turn comes first */
	if (load(c, &p, &err) != SKV_OK) {
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

/* ---- for administrators ---------------------------------------------------------------------------------- */

int skv_core_demote(struct skv_core *c, uint32_t stay_out_ms, struct skv_error *err)
{
	uint64_t until = skv_now_us() + DEMOTE_WAIT_MS * 1000u, none = DEMOTE_NONE;
	bool done;

	if (atomic_load(&c->state) == SKV_CORE_STOPPED || !owner_valid(c))
		return skv_fail(err, SKV_E_NOT_OWNER, NULL, "this manager is not the owner");
	if (!atomic_compare_exchange_strong(&c->demote_ms, &none, stay_out_ms))
		return skv_fail(err, SKV_E_NOT_OWNER, NULL, "this manager is already giving up the ownership");
	if (c->o.manual)
		owner_step(c);
	skv_mutex_lock(&c->turn_lock);
	while (atomic_load(&c->demote_ms) != DEMOTE_NONE && !c->stop && skv_now_us() < until)
		skv_cond_wait_ms(&c->turn_wake, &c->turn_lock, 50);
	done = atomic_load(&c->demote_ms) == DEMOTE_NONE;
	skv_mutex_unlock(&c->turn_lock);
	return done ? SKV_OK : skv_fail(err, SKV_E_TIMEOUT, NULL, "the ownership is not given up yet; it will be");
}

void skv_core_leader(struct skv_core *c, char self[SKV_OWNER_NAME], char leader[SKV_OWNER_NAME], uint64_t *remaining_ms)
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

uint64_t skv_core_owner_seen_ms(const struct skv_core *c) { return atomic_load(&c->seen_ms); }

bool skv_core_load_fails(const struct skv_core *c) { return atomic_load(&c->failed_loads) > 0; }
