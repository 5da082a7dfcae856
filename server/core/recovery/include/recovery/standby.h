/*
 * standby.h - a manager that does not own the partition keeps it loaded, and
 * applies records as they come.
 */
#ifndef SKV_CORE_RECOVERY_STANDBY_H
#define SKV_CORE_RECOVERY_STANDBY_H

#include <stdbool.h>
#include <stdint.h>

struct partition;
struct skv_core;
struct skv_error;

/* Follows a partition that another manager owns: loads it, and applies the records since the last
 * call. Ticker only. Returns ms to wait. */
uint32_t standby_step(struct skv_core *c);
/* Completes the followed partition after a takeover with this fence: applies the rest of the
 * journal, and leaves *out as partition_load would. Returns false if nothing was followed: load the
 * partition. Ticker only. */
bool standby_take(struct skv_core *c, uint64_t fence, struct partition **out);
/* Forgets what was loaded. By the ticker, or when it has ended. */
void standby_drop(struct skv_core *c);

#endif
