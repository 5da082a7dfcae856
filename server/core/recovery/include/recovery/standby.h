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

/* While another manager owns the partition: loads it, and applies what has come since the last
 * call. By the ticker. Returns ms to wait. */
uint32_t standby_step(struct skv_core *c);
/* Owned by this fence now: the rest of the journal, and *out is as partition_load would leave it.
 * False: there is nothing to go on from, so it is to be loaded. By the ticker. */
bool standby_take(struct skv_core *c, uint64_t fence, struct partition **out);
/* Forgets what was loaded. By the ticker, or when it has ended. */
void standby_drop(struct skv_core *c);

#endif
