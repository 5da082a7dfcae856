/* limits.h - the limits of a start: checked, evicted for, reported. */
#ifndef SKV_CORE_OPS_LIMITS_H
#define SKV_CORE_OPS_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

struct partition;
struct plan;
struct skv_error;

/* The means of an attempt: free slots only; eviction; eviction of soft-pinned blocks too. */
enum effort { FREE, EVICT, EVICT_SOFT_PINS };

/* Checks the limits that evict nothing: the tenant's sessions, the group's blocks. SKV_OK,
 * SKV_E_TOO_MANY ("max_sessions"), SKV_E_QUOTA ("max_blocks"). */
int limits_fixed(struct partition *p, struct plan *plan, struct skv_error *err);
/* Checks the other limits, and evicts for the first that is reached: SKV_OK, TRY_WAIT_QUOTA,
 * TRY_WAIT_TENANT (counted blocks are being removed), SKV_E_QUOTA. */
int limits_check(struct partition *p, struct plan *plan, struct skv_error *err);
/* Checks whether the plan's bytes may go to storages of this type. If not, makes room; *coming:
 * room is being made. */
bool limits_type(struct partition *p, struct plan *plan, const char *type, enum effort effort,
		 bool *coming);
/* Returns the number of all blocks of the partition's groups, including those being written. */
uint64_t limits_blocks(const struct partition *p);
/* For plans of one spec: how many blocks may be written if all that may go goes; */
uint64_t limits_bound(const struct partition *p, const struct plan *plan);
/* how many without eviction, */
uint64_t limits_now(const struct partition *p, const struct plan *plan);
/* and to storages of this type. */
uint64_t limits_now_of_type(const struct partition *p, const struct plan *plan, const char *type);

#endif
