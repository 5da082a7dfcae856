/* start_answer.h - fills the answer of a start: outcomes and locations. */
#ifndef SKV_CORE_OPS_START_ANSWER_H
#define SKV_CORE_OPS_START_ANSWER_H

struct partition;
struct plan;
struct session;
struct waiter;

/* The answer of a session in its present state, or of a start with nothing to write.
 * SKV_E_NOMEM. */
int start_fill(struct waiter *w, struct partition *p, const struct session *s);
int start_fill_none(const struct partition *p, struct waiter *w, const struct plan *plan);

#endif
