/*
 * end.c - sessions that end without a finish: aborted, or expired.
 *
 * Prepare: the session is marked as ending. Apply: everything it writes is given up; the slots are
 * free after the grace, at once if quiesced. Undo: an expired session is retried a little later.
 * Under the write lock.
 */
#include <ops/end.h>

#include <assert.h>

#include <lock/core.h>
#include <model/partition.h>
#include <model/session.h>
#include <journal/change.h>
#include <journal/record.h>
#include <journal/replay.h>

#define RETRY_MS 1000u /* delay before retrying an end that could not be journaled */
#define NAMED_MS 100u  /* delay of an expiry that has to wait */

struct end {
	struct change change;
	struct session *session;
	enum skv_session_state state;
	uint64_t hold_until; /* of its slots */
};

/* Gives up everything that it writes. */
static void abandon(struct partition *p, struct session *s, enum skv_session_state state,
		    uint64_t hold_until)
{
	ASSERT_EXCLUSIVE(p);
	assert(s->inst && state != SKV_SESSION_OPEN);
	for (uint32_t i = s->n_write; i-- > 0;)
		session_release(p, s, i, hold_until);
	s->failed = s->n_write - s->n_deleted;
	COUNT(p->core, failed_blocks, s->n_left);
	if (state == SKV_SESSION_EXPIRED)
		COUNT(p->core, expired_sessions, 1);
	session_end(p, s, state);
}

static void end_apply(struct partition *p, struct change *ch)
{
	const struct end *e = (struct end *)ch;

	assert(e->session->pending == ch);
	e->session->pending = NULL;
	if (e->session->inst) /* else its instance was dropped first */
		abandon(p, e->session, e->state, e->hold_until);
}

static void end_undo(struct partition *p, struct change *ch)
{
	struct session *s = ((struct end *)ch)->session;

	assert(s->pending == ch);
	s->pending = NULL;
	/* Not if its instance was dropped meanwhile, or if this was an abort before the
	 * deadline. */
	if (s->state == SKV_SESSION_OPEN && !s->due)
		session_set_due(p, s, skv_now_ms(p->core->clock) + RETRY_MS);
}

static int replay_end(struct replay *r, struct skv_rd *in, struct skv_error *err)
{
	struct skv_key id = get_key(in);
	uint8_t state = skv_get_u8(in);
	uint64_t hold = skv_get_varint(in);
	struct session *s = NULL;
	int rc = replay_session(r, id, &s, err);

	if (rc != SKV_OK || !s)
		return rc;
	if (in->failed || (state != SKV_SESSION_ABORTED && state != SKV_SESSION_EXPIRED))
		return corrupt(err, "end: malformed");
	abandon(r->p, s, state, hold ? r->now + hold : 0);
	return SKV_OK;
}

const struct change_ops end_ops = {
	.record = { "end", replay_end },
	.size = sizeof(struct end),
	.apply = end_apply,
	.undo = end_undo,
	.frees_slots = change_frees_slots,
};

struct change *session_queue_end(struct partition *p, struct session *s,
				 enum skv_session_state state, bool quiesced)
{
	struct end *e = (struct end *)change_make(&end_ops);

	ASSERT_EXCLUSIVE(p);
	assert(!s->pending);
	if (!e)
		return NULL;
	e->session = s;
	e->state = state;
	e->hold_until = quiesced ? 0 : session_grace_end(p, s);
	e->change.urgent = true;
	e->change.relaxed = s->relaxed && state == SKV_SESSION_EXPIRED;
	record_end(&e->change.rec, s, state, e->hold_until, skv_now_ms(p->core->clock));
	if (e->change.rec.failed) {
		change_destroy(&e->change);
		return NULL;
	}
	s->pending = &e->change;
	change_queue(p, &e->change);
	return &e->change;
}

/* Expires due sessions with a record each, as long as memory lasts. */
void session_expire_due(struct partition *p, uint64_t now)
{
	struct session *s;

	ASSERT_EXCLUSIVE(p);
	while ((s = session_first_due(p, now)) != NULL) {
		/* A finish or a clear of its instance is in flight, or memory is short: retry a
		 * little later. */
		if (session_is_named(s) || s->inst->retired ||
		    !session_queue_end(p, s, SKV_SESSION_EXPIRED, false))
			session_set_due(p, s, now + NAMED_MS);
		else
			session_drop_due(p, s);
	}
}
