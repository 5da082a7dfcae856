/*
 * finish.h - ends of sessions by their clients: finish (all or part succeeded) and abort.
 */
#ifndef SKV_CORE_OPS_FINISH_H
#define SKV_CORE_OPS_FINISH_H

#include <stdint.h>

#include <journal/change.h>

struct partition;
struct session;

/* Ends it: what was written becomes visible, or is given up; these slots are free when hold_until has passed. `sums`: as
 * record_finish. Used by finish and by replay. */
void session_finish(struct partition *p, struct session *s, const uint8_t *success, const uint64_t *sums,
		    uint64_t hold_until);

extern const struct change_ops finish_ops;

#endif
