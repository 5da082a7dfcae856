/*
 * standby.c - keeps a partition that another manager owns loaded, and applies records as they are
 * appended.
 *
 * A standby is a load that does not end: it reads registry and checkpoint, then each record of the
 * journal as it is appended. No other thread sees the partition, so no lock is needed. Decisions of
 * an owner (which leases and holds to assume) are left to the takeover, which reads the end of the
 * journal, checks the registry for changes, and continues as after any load.
 *
 * Any mismatch (a checkpoint removed records before they were read, the store continued from an
 * older state, a group was changed) discards the partition, and it is loaded again. A takeover then
 * does the same.
 *
 * Before the acquire, records may be read that were not acknowledged to any owner. At each read the
 * store checks that the earlier records are still its history; after the acquire no other manager
 * can write, so the last check is decisive.
 *
 * State: c->standby, used by the ticker alone; other threads read atomics.
 */
#include <recovery/standby.h>

#include <assert.h>
#include <string.h>

#include <skv/log.h>
#include <skv/mem.h>
#include <skv/store.h>

#include <lock/core.h>
#include <lock/gate.h>
#include <lock/turn.h>
#include <model/partition.h>
#include <model/session.h>
#include <model/volume.h>
#include <journal/end.h>
#include <storage/claim.h>
#include <recovery/load.h>
#include <recovery/recover.h>

#define FOLLOW_MS 50u     /* between two looks for records */
#define REGISTRY_MS 1000u /* and for changes of the registry */
#define RETRY_MS 500u     /* after a load that failed */
#define PORTIONS 16u      /* of records in one step */

struct standby {
	struct loading l;
	struct registry_view view;
	struct skv_position at;
	uint64_t registry_at; /* when the registry is looked at again */
};

void standby_drop(struct skv_core *c)
{
	struct standby *s = c->standby;

	if (!s)
		return;
	atomic_store(&c->standby_loaded, false);
	partition_destroy(s->l.r.p);
	registry_view_free(&s->view);
	skv_free(s);
	c->standby = NULL;
}

static int look_at_registry(struct skv_core *c, struct standby *s, struct skv_error *err)
{
	s->registry_at = skv_now_ms(c->clock) + REGISTRY_MS;
	return registry_load_more(s->l.r.p, &s->view, err);
}

/* The next portion of records. One that refers to a document that is not known yet waits until it
 * is: the store may have been told of it already, or it is listed. */
static int follow(struct skv_core *c, struct standby *s, struct skv_error *err)
{
	struct skv_load_sink sink = loading_sink(&s->l, err);
	int rc;

	s->l.r.now = skv_now_ms(c->clock);
	rc = skv_store_follow(c->store, 0, &s->at, &sink, err);
	for (int tries = 0; rc == SKV_E_NOT_FOUND && s->l.r.follows && tries < 2; tries++) {
		if (tries > 0)
			s->view.at = 0;
		rc = look_at_registry(c, s, err);
		if (rc == SKV_OK)
			rc = skv_store_follow(c->store, 0, &s->at, &sink, err);
	}
	return rc == SKV_E_NOT_FOUND || s->l.r.orphans
		       ? skv_fail(err, SKV_E_CONFLICT, NULL,
				  "a record refers to an unregistered object")
		       : rc;
}

static int begin(struct skv_core *c, struct skv_error *err)
{
	struct standby *s = skv_calloc(1, sizeof *s);
	struct partition *p = s ? loading_make(c) : NULL;
	int rc;

	if (!p) {
		skv_free(s);
		return SKV_E_NOMEM;
	}
	c->standby = s;
	s->l.r = (struct replay){ .p = p, .now = skv_now_ms(c->clock) };
	COUNT(c, standby_loads, 1);
	rc = look_at_registry(c, s, err);
	if (rc == SKV_OK)
		rc = follow(c, s, err); /* the checkpoint, and all records until now */
	rc = replay_close(&s->l.r, rc, err);
	s->l.r.follows = p->learning = true;
	if (rc == SKV_OK)
		journal_seq_least(p, s->at.seq);
	return rc;
}

/* Drops state that would otherwise grow without end. A takeover repairs the rest. */
static void let_time_pass(struct partition *p, uint64_t now)
{
	ASSERT_EXCLUSIVE(p);
	session_forget_due(p, now);
	for (uint32_t i = 0; i < p->n_volume; i++)
		if (p->volume[i].pool)
			skv_pool_release_due(p->volume[i].pool,
					     slots_free_by(&p->volume[i], now));
}

static int catch_up(struct skv_core *c, struct standby *s, uint32_t portions, struct skv_error *err)
{
	int rc = SKV_OK;

	do
		rc = follow(c, s, err);
	while (rc == SKV_OK && s->at.seq < s->at.newest && --portions > 0);
	assert(rc != SKV_OK || s->l.r.p->seq == s->at.seq);
	if (rc == SKV_OK && skv_now_ms(c->clock) >= s->registry_at)
		rc = look_at_registry(c, s, err);
	return rc;
}

/* Returns true if the error is temporary: an unreachable store is asked again; after a mismatch the
 * partition is loaded again. */
static bool stays(int rc)
{
	return rc == SKV_E_STORE_IO || rc == SKV_E_UNKNOWN_OUTCOME || rc == SKV_E_STORE_FULL;
}

static void tell(struct skv_core *c)
{
	const struct standby *s = c->standby;

	atomic_store(&c->standby_seq, s->at.seq);
	atomic_store(&c->standby_behind, s->at.newest - s->at.seq);
	atomic_store(&c->standby_loaded, true);
}

uint32_t standby_step(struct skv_core *c)
{
	struct skv_error err = { 0 };
	bool fresh = !c->standby;
	int rc;

	if (c->o.standby_cold || atomic_load(&c->standby_unsupported) ||
	    !owner_view(c).rival)
		return FOLLOW_MS;
	rc = fresh ? begin(c, &err) : catch_up(c, c->standby, PORTIONS, &err);
	if (rc == SKV_OK) {
		c->standby_failure.n = 0;
		let_time_pass(c->standby->l.r.p, skv_now_ms(c->clock));
		tell(c);
		if (fresh)
			skv_log(SKV_LOG_INFO, "core",
				"standby: blocks loaded: %llu, following from record %llu",
				(unsigned long long)c->standby->l.r.p->blocks,
				(unsigned long long)c->standby->at.seq);
		return FOLLOW_MS;
	}
	if (!fresh && stays(rc))
		return FOLLOW_MS;
	standby_drop(c);
	atomic_store(&c->standby_unsupported, rc == SKV_E_UNSUPPORTED);
	COUNT(c, corrupt_loads, rc == SKV_E_CORRUPT);
	if (core_failure_is_news(&c->standby_failure, rc, skv_now_ms(c->clock)))
		skv_log(fresh && !stays(rc) ? SKV_LOG_WARN : SKV_LOG_INFO, "core",
			"standby: loading again: %s",
			err.message[0] ? err.message : skv_status_text(rc));
	return RETRY_MS;
}

/* As after any load: whoever writes has found nobody to finish with for a while. */
static void begin_sessions_again(struct partition *p, uint64_t now)
{
	ASSERT_EXCLUSIVE(p);
	for (size_t i = 0; i < p->n_session; i++) {
		struct session *s = p->session[i];

		if (!s || s->state != SKV_SESSION_OPEN)
			continue;
		s->deadline_at = now + s->deadline_ms;
		session_set_due(p, s, s->deadline_at);
	}
}

/* The last stop may have been a clean one of another host, which only its checkpoint tells. */
static bool may_be_clean(const struct skv_core *c, const struct standby *s)
{
	return strcmp(s->l.r.boot_id, c->boot_id) != 0 && s->at.base == s->at.seq;
}

bool standby_take(struct skv_core *c, uint64_t fence, struct partition **out)
{
	struct standby *s = c->standby;
	struct skv_error err = { 0 };
	int rc;

	if (!s)
		return false;
	s->registry_at = UINT64_MAX; /* the registry is read below */
	s->at.fresh = true;
	s->view.at = 0;
	rc = claims_roll_back(c) ? SKV_E_CONFLICT : catch_up(c, s, UINT32_MAX, &err);
	if (rc == SKV_OK)
		rc = look_at_registry(c, s, &err);
	if (rc == SKV_OK && may_be_clean(c, s))
		rc = SKV_E_CONFLICT;
	if (rc == SKV_OK) {
		begin_sessions_again(s->l.r.p, skv_now_ms(c->clock));
		rc = partition_finish(&s->l, fence, out, &err);
	}
	if (rc != SKV_OK && err.message[0])
		skv_log(SKV_LOG_INFO, "core", "standby: %s: loading instead of going on",
			err.message);
	standby_drop(c);
	if (rc == SKV_OK)
		COUNT(c, warm_takeovers, 1);
	return rc == SKV_OK;
}
