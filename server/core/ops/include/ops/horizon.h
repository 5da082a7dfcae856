/*
 * horizon.h - how late leases may end, kept durable so that a manager after a kill -9 knows it.
 */
#ifndef SKV_CORE_OPS_HORIZON_H
#define SKV_CORE_OPS_HORIZON_H

#include <stdbool.h>
#include <stdint.h>

#include <journal/change.h>

struct instance;
struct partition;

extern const struct change_ops horizon_ops;

/* Under the write lock: a lease of `ms` is asked for that ends after the instance's horizon. Queues a longer one, or
 * finds one on its way; `again`: for one that was too late when it was durable. */
int horizon_extend(struct partition *p, struct instance *inst, uint64_t now, uint32_t ms, bool again, struct change **out);
/* Extends ahead of need those of instances that were asked for leases lately. */
void horizons_keep(struct partition *p, uint64_t now);

#endif
