/* partial.h - ends single writes, named by key and slot: for protocols without sessions. */
#ifndef SKV_CORE_OPS_PARTIAL_H
#define SKV_CORE_OPS_PARTIAL_H

#include <stdint.h>

#include <journal/change.h>

struct partition;
struct ended;
struct session;

/* Writes marked ENDING, to be committed or given up together. */
struct partial {
	struct change change;
	struct ended *v;
	uint32_t n;
	size_t cap;
	uint32_t committed; /* set when applied */
	uint32_t given_up;
};
/* NULL: out of memory. */
struct partial *partial_make(void);
/* Marks a write that is not ENDING, of a session without a change in flight. SKV_E_NOMEM. */
int partial_add(struct partition *p, struct partial *t, struct session *s, uint32_t write,
		bool success);
/* Writes its record. SKV_E_NOMEM. */
int partial_record(struct partial *s);
/* Drops it unqueued: clears the marks and destroys it. NULL is allowed. */
void partial_drop(struct partition *p, struct partial *s);

extern const struct change_ops partial_ops;

#endif
