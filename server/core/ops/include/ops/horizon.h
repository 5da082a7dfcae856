/*
 * horizon.h - lease horizons: the latest possible end of leases, durable so that recovery after a
 * kill -9 knows it.
 */
#ifndef SKV_CORE_OPS_HORIZON_H
#define SKV_CORE_OPS_HORIZON_H

#include <stdbool.h>
#include <stdint.h>

#include <journal/change.h>

struct instance;
struct partition;

extern const struct change_ops horizon_ops;

/* Under the write lock: a lease of `ms` would end after the instance's horizon. Queues a later
 * horizon, or finds one in flight; `again`: for one that came too late. */
int horizon_extend(struct partition *p, struct instance *inst, uint64_t now, uint32_t ms,
		   bool again, struct change **out);
/* Extends the horizons of recently leased instances ahead of need. */
void horizons_keep(struct partition *p, uint64_t now);

#endif
