/*
 * restore.c - a store that went back in time is restored from this manager's memory (decision
 * 0062).
 *
 * All processes of an engine may end, and come back with an older file or none: then the store has
 * less than was acknowledged. Whoever knows more writes it back, as a checkpoint that is all there
 * is, and the registry; the state is loaded from there as always. The registry may go back alone,
 * since it lies elsewhere; then its marks tell who knows all of it.
 *
 * - The owner whose lease still runs knows all: nobody else can have acknowledged anything since.
 * - A manager that lost the ownership, or followed, may lack the newest. It first gives up the
 *   partition for a while, for one that knows more. What it restores is "rough": free slots wait
 *   for old writers, and blocks without checksum are dropped.
 * - Nobody else touches it.
 *
 * The numbers of records go on far behind all that anybody can know, so one restore is enough: to
 * others the store is whole again, with another history.
 *
 * State: c->kept under the core's lock; the rest is the ticker's.
 */
#include <recovery/restore.h>

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <skv/clock.h>
#include <skv/log.h>
#include <skv/store.h>

#include <lock/core.h>
#include <lock/gate.h>
#include <lock/lock.h>
#include <model/partition.h>
#include <journal/registry_copy.h>
#include <journal/registry_write.h>
#include <storage/claim.h>
#include <recovery/checkpoint.h>
#include <recovery/recover.h>
#include <recovery/standby.h>

#define JUMP (1u << 20)    /* records that nobody has seen, at most */
#define OWNED_LEASES 2u    /* how long an owner of before leaves it to others */
#define FOLLOWED_LEASES 4u /* and who followed */

void restore_keep(struct skv_core *c, struct partition *p, uint64_t until)
{
	struct partition *before = p;

	if (p && skv_store_may_go_back(c->store)) {
		core_lock(c);
		before = c->kept;
		c->kept = p;
		atomic_store(&c->kept_until, p ? until : 0);
		core_unlock(c);
	}
	partition_destroy(before);
}

void restore_forget(struct skv_core *c)
{
	struct partition *p;

	core_lock(c);
	p = c->kept;
	c->kept = NULL;
	atomic_store(&c->kept_until, 0);
	core_unlock(c);
	partition_destroy(p);
}

/* What a standby has read may never have been acknowledged, and is no proof while the processes
 * run that would know. */
static uint64_t known(struct skv_core *c, bool survived)
{
	const uint64_t durable = atomic_load(&c->known_seq);
	uint64_t followed, behind;

	if (survived || !standby_look(c, &followed, &behind))
		return durable;
	return followed > durable ? followed : durable;
}

bool restore_knows_all(const struct skv_core *c)
{
	return skv_now_ms(c->clock) < atomic_load(&c->kept_until);
}

/* Nobody else can have written since this manager owned it: it knows all. */
static bool is_exact(struct skv_core *c)
{
	bool exact;

	core_lock(c);
	exact = c->kept && atomic_load(&c->acquired_at) < atomic_load(&c->kept_until);
	core_unlock(c);
	return exact;
}

int restore_check(struct skv_core *c, struct skv_error *err)
{
	struct skv_store_stats st = { 0 };
	bool survived = true;
	uint64_t least;
	int rc;

	c->rough = false;
	if (!skv_store_may_go_back(c->store))
		return SKV_OK;
	rc = skv_store_stats_get(c->store, 0, &st, err);
	if (rc == SKV_OK)
		rc = skv_store_survived(c->store, 0, &survived, err);
	if (rc != SKV_OK)
		return rc;
	survived &= st.last_seq > 0; /* where nothing is, nobody has said so */
	least = known(c, survived);
	if (st.last_seq >= least) {
		c->let_others = false;
		c->rough = !survived && st.last_seq > 0 && !is_exact(c);
		restore_forget(c);
		return SKV_OK;
	}
	return skv_fail(err, SKV_E_CONFLICT, "store",
			"the store went back in time: record %llu was durable, and its newest is "
			"%llu: bring its data back, or end all managers and start one with --adopt",
			(unsigned long long)least, (unsigned long long)st.last_seq);
}

/* ---- who may --------------------------------------------------------------------------------- */

/* Leases to wait; 0: it is known that nobody knows more. */
static uint32_t waits(struct skv_core *c)
{
	return is_exact(c) ? 0 : c->kept ? OWNED_LEASES : FOLLOWED_LEASES;
}

static int let_others(struct skv_core *c, uint32_t leases, struct skv_error *err)
{
	const uint64_t ms = (uint64_t)leases * c->o.owner_lease_ms;
	uint64_t none = DEMOTE_NONE;

	c->let_others = true;
	atomic_compare_exchange_strong(&c->demote_ms, &none, ms);
	return skv_fail(err, SKV_E_CONFLICT, "store",
			"the store went back in time: a manager that may know more has %llu ms to "
			"restore it",
			(unsigned long long)ms);
}

/* ---- writing it ------------------------------------------------------------------------------ */

static int mark(struct skv_core *c, uint64_t fence, uint64_t upto, bool exact,
		struct skv_error *err)
{
	struct skv_buf doc = { 0 };
	uint64_t version = SKV_VERSION_NONE;
	char text[64];
	int rc = skv_store_get(c->store, SKV_STORE_RESTORING, &doc, &version, err);

	if (rc == SKV_E_NOT_FOUND) {
		skv_error_clear(err);
		version = SKV_VERSION_NONE;
		rc = SKV_OK;
	}
	skv_buf_clear(&doc);
	snprintf(text, sizeof text, "%" PRIu64 " %s", upto, exact ? "exact" : "rough");
	skv_put_bytes(&doc, text, strlen(text));
	if (rc == SKV_OK)
		rc = registry_put_lost(c, fence, SKV_STORE_RESTORING, version, &doc, err);
	skv_buf_destroy(&doc);
	return rc;
}

/* A registry that is known to have what this manager knows may have more, and stays. */
static int write_registry(struct skv_core *c, uint64_t fence, struct skv_error *err)
{
	struct skv_registry_marks m;
	int rc = skv_store_marks(c->store, 0, &m, err);

	if (rc != SKV_OK || (m.is[0] && registry_copy_judge(c->registry, &m) < REGISTRY_LOST))
		return rc;
	return registry_copy_write(c->registry, c, fence, &m, err);
}

static int write_back(struct skv_core *c, uint64_t fence, bool exact, struct skv_error *err)
{
	struct skv_store_stats st = { 0 };
	struct partition *p = c->kept; /* only this thread takes it away now */
	uint64_t upto = atomic_load(&c->known_seq);
	int rc = skv_store_stats_get(c->store, 0, &st, err);

	assert(p && p != c->partition);
	upto = upto > p->seq ? upto : p->seq;
	upto = (upto > st.last_seq ? upto : st.last_seq) + JUMP;
	if (rc == SKV_OK)
		rc = mark(c, fence, upto, exact, err);
	if (rc == SKV_OK)
		rc = write_registry(c, fence, err);
	if (rc == SKV_OK)
		rc = checkpoint_restore(p, fence, upto, err);
	if (rc != SKV_OK)
		return rc;
	skv_log(SKV_LOG_WARN, "core",
		"the store went back in time, to record %llu of %llu: restored from memory, %llu "
		"blocks%s",
		(unsigned long long)st.last_seq, (unsigned long long)p->seq,
		(unsigned long long)p->blocks,
		exact ? "" : "; what was written last may be missing");
	COUNT(c, restores, 1);
	return SKV_OK;
}

/* This manager knows only that the store had more, since it owned the partition before. Others may
 * know what: it is their turn, again and again. *err says what went back, and the remedy. */
static int leave_it(struct skv_core *c, struct skv_error *err)
{
	struct skv_error ignored = { 0 };

	let_others(c, FOLLOWED_LEASES, &ignored);
	return err->status;
}

int restore_lost(struct skv_core *c, uint64_t fence, struct skv_error *err)
{
	struct partition *p = NULL;
	uint32_t leases;
	int rc = SKV_OK;

	if (!c->kept && !c->standby)
		return leave_it(c, err);
	leases = waits(c);
	if (leases && !c->let_others)
		return let_others(c, leases, err);
	skv_error_clear(err);
	if (!c->kept) {
		rc = standby_give(c, fence, &p, err);
		if (rc == SKV_OK)
			restore_keep(c, p, 0);
	}
	if (rc == SKV_OK)
		rc = write_back(c, fence, leases == 0, err);
	if (rc == SKV_OK) {
		c->let_others = c->rough = false; /* the document says it */
		restore_forget(c);
	}
	return rc;
}

/* ---- the registry alone ---------------------------------------------------------------------- */

static int settle(struct skv_core *c, uint64_t fence, const struct skv_registry_marks *m,
		  struct skv_error *err)
{
	skv_log(SKV_LOG_WARN, "core",
		"the registry went back in time, to mark '%s' of '%s': --adopt takes it as it is",
		m->is, m->least);
	return registry_copy_settle(c->registry, c, fence, m, err);
}

/* Whoever owns the partition cannot go on without it: it is another's turn, again and again. */
static int let_others_have_it(struct skv_core *c, struct skv_error *err)
{
	struct skv_error ignored = { 0 };

	let_others(c, FOLLOWED_LEASES, &ignored);
	return skv_fail(err, SKV_E_CONFLICT, "store",
			"the registry went back in time, and nobody here knows all that it had: "
			"bring the data of its shard back (key {PREFIX.registry}:meta), or end all "
			"managers and start one with --adopt");
}

int restore_registry(struct skv_core *c, uint64_t fence, struct skv_error *err)
{
	struct skv_registry_marks m;
	enum registry_state state;
	int rc = skv_store_marks(c->store, 0, &m, err);

	if (rc != SKV_OK)
		return rc;
	state = registry_copy_judge(c->registry, &m);
	if (state < REGISTRY_LOST)
		return SKV_OK;
	c->went_back = true;
	if (claims_roll_back(c))
		return settle(c, fence, &m, err);
	if (state == REGISTRY_GONE)
		return let_others_have_it(c, err);
	rc = registry_copy_write(c->registry, c, fence, &m, err);
	if (rc == SKV_OK) {
		skv_log(SKV_LOG_WARN, "core",
			"the registry went back in time, to mark '%s': restored from memory", m.is);
		COUNT(c, restores, 1);
	}
	return rc;
}

void restore_look(struct skv_core *c)
{
	const uint64_t fence = atomic_load(&c->fence);
	struct skv_registry_marks m;
	struct skv_error err = { 0 };

	if (atomic_load(&c->state) != SKV_CORE_READY || !skv_store_may_go_back(c->store) ||
	    skv_store_marks(c->store, 0, &m, &err) != SKV_OK ||
	    registry_copy_judge(c->registry, &m) < REGISTRY_LOST ||
	    fence != atomic_load(&c->fence))
		return;
	skv_log(SKV_LOG_WARN, "core", "the registry went back in time: loading again");
	owner_ask_reload(c);
}

/* ---- what a load finds ----------------------------------------------------------------------- */

static int judge(struct skv_core *c, const char *text, struct skv_error *err)
{
	struct skv_store_stats st = { 0 };
	uint64_t upto = 0;
	char how[8] = "";
	int rc = skv_store_stats_get(c->store, 0, &st, err);

	if (rc != SKV_OK)
		return rc;
	if (sscanf(text, "%" SCNu64 " %7s", &upto, how) != 2)
		return skv_fail(err, SKV_E_CORRUPT, "store", "registry document '%s' is malformed",
				SKV_STORE_RESTORING);
	c->rough |= strcmp(how, "exact") != 0 || st.last_seq < upto;
	if (st.last_seq >= upto || claims_roll_back(c))
		return SKV_OK;
	return skv_fail(err, SKV_E_CONFLICT, "store",
			"the store went back in time and was restored in part only: end all "
			"managers and start one with --adopt");
}

int restore_found(struct skv_core *c, uint64_t *version, struct skv_error *err)
{
	struct skv_buf b = { 0 };
	int rc = SKV_OK;

	*version = SKV_VERSION_NONE;
	if (!skv_store_may_go_back(c->store))
		return SKV_OK;
	rc = skv_store_get(c->store, SKV_STORE_RESTORING, &b, version, err);
	if (rc == SKV_OK) {
		skv_put_u8(&b, 0);
		rc = b.failed ? SKV_E_NOMEM : judge(c, (const char *)b.data, err);
	} else if (rc == SKV_E_NOT_FOUND) {
		*version = SKV_VERSION_NONE;
		skv_error_clear(err);
		rc = SKV_OK;
	}
	skv_buf_destroy(&b);
	return rc;
}

int restore_done(struct skv_core *c, uint64_t fence, uint64_t version, struct skv_error *err)
{
	return registry_del(c, fence, SKV_STORE_RESTORING, version, err);
}
