/*
 * ops.h - what clients ask for is in skv/core.h; here is what the ticker, the core's events and the loader call. All under
 * the write lock.
 */
#ifndef SKV_CORE_OPS_H
#define SKV_CORE_OPS_H

#include "change.h"

/* ---- start.c ---------------------------------------------------------------------------------------- */

/* Serves the lines of waiting starts as far as space goes. */
void start_serve_waiters(struct partition *p);
void start_fail_line(struct partition *p, struct group *g, int status, const char *text);
void start_fail_waiters(struct partition *p, int status, const char *text);

/* ---- in time ---------------------------------------------------------------------------------------- */

void session_expire_due(struct partition *p, uint64_t now);
/* Ends pins whose time is over, a portion of them at a time. True when there is more to do at once. */
bool pins_expire(struct partition *p, struct portion instances);
/* A portion of each trim that waits for no record. True when there is more to do at once. */
bool trim_go_on(struct partition *p);
/* Those that wait for no record fail; the others with their records. */
void trim_fail_all(struct partition *p, int status, const char *text);
/* Extends ahead of need those of instances that were asked for leases lately. */
void horizons_keep(struct partition *p, uint64_t now);

extern const struct change_ops start_ops, finish_ops, end_ops, settle_ops, horizon_ops, pin_ops;

#endif
