/*
 * partial.h - ends of single writes, named by key and place: for protocols whose clients know no sessions.
 */
#ifndef SKV_CORE_OPS_PARTIAL_H
#define SKV_CORE_OPS_PARTIAL_H

#include <stdint.h>

#include <journal/change.h>

struct partition;
struct ended;

/* So many writes, which are marked as SETTLING, are committed or given up. */
struct settle {
	struct change change;
	struct ended *v;
	uint32_t n;
	uint32_t committed; /* once it is applied */
	uint32_t given_up;
};
/* NULL: out of memory. */
struct settle *settle_make(void);
/* Writes its record. SKV_E_NOMEM. */
int settle_record(struct settle *s);
/* It is not queued after all: the marks go, and it is destroyed. NULL is fine. */
void settle_drop(struct partition *p, struct settle *s);

extern const struct change_ops partial_ops;

#endif
