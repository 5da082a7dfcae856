/*
 * expire.c - sessions that end as a whole and commit nothing: aborted, or past their deadline.
 */
#include "internal.h"

struct txn *session_queue_end(struct partition *p, struct session *s, enum skv_session_state state, bool quiesced)
{
	struct txn *t = txn_make(TXN_END);

	ASSERT_EXCLUSIVE(p);
	if (!t)
		return NULL;
	t->session = s;
	t->urgent = true;
	t->end_state = state;
	t->hold_until = quiesced ? 0 : session_grace_end(p, s);
	t->relaxed = s->relaxed && state == SKV_SESSION_EXPIRED;
	record_end(&t->rec, s, t, skv_now_ms(p->core->clock));
	if (t->rec.failed) {
		txn_destroy(t);
		return NULL;
	}
	s->pending = t;
	commit_queue(p, t);
	return t;
}

void end_apply(struct partition *p, struct txn *t)
{
	struct session *s = t->session;

	ASSERT_EXCLUSIVE(p);
	s->pending = NULL;
	if (!s->inst)
		return; /* its instance was dropped first */
	for (uint32_t i = s->n_write; i-- > 0;)
		session_release(p, s, i, t->hold_until);
	s->failed = s->n_write;
	COUNT(p->core, failed_blocks, s->n_left);
	if (t->end_state == SKV_SESSION_EXPIRED)
		COUNT(p->core, expired_sessions, 1);
	session_end(p, s, t->end_state);
}

void session_retry_expiry(struct partition *p, struct session *s)
{
	ASSERT_EXCLUSIVE(p);
	/* Not if its instance was dropped meanwhile, or it was an abort and the deadline is still to come. */
	if (s->state == SKV_SESSION_OPEN && !s->due)
		session_set_due(p, s, skv_now_ms(p->core->clock) + 1000);
}

/* Sessions whose deadline has passed: one record each, as long as memory lasts. */
void session_expire_due(struct partition *p, uint64_t now)
{
	uint64_t key;
	uint32_t number;

	ASSERT_EXCLUSIVE(p);
	while (skv_heap_top(&p->deadlines, 0, &key, &number) && key <= now) {
		struct session *s = p->session[number];

		/* A finish is on its way, or the end of all of its instance, or no memory: look again a little later. */
		if (session_is_named(s) || s->inst->ghost || !session_queue_end(p, s, SKV_SESSION_EXPIRED, false))
			session_set_due(p, s, now + 100);
		else
			skv_heap_remove(&p->deadlines, number);
	}
}
