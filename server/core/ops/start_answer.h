/*
 * start_answer.h - what a start is answered: outcomes, and where its blocks lie.
 */
#ifndef SKV_CORE_OPS_START_ANSWER_H
#define SKV_CORE_OPS_START_ANSWER_H

struct partition;
struct plan;
struct session;
struct waiter;

/* The answer of a session as it is now; of a start that has nothing to write. SKV_E_NOMEM. */
int start_fill(struct waiter *w, struct partition *p, const struct session *s);
int start_fill_none(const struct partition *p, struct waiter *w, const struct plan *plan);

#endif
