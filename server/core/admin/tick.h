/* tick.h - periodic work: expiry, holds, background eviction, lease horizons, checkpoints. */
#ifndef SKV_CORE_ADMIN_TICK_H
#define SKV_CORE_ADMIN_TICK_H

#include <stdint.h>

struct skv_core;

/* Does all work that is due. Returns ms until the next is. */
uint32_t tick_once(struct skv_core *c);

#endif
