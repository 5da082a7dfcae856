/*
 * tick.h - what time makes due: expiry, holds, eviction ahead of need, lease horizons, checkpoints.
 */
#ifndef SKV_CORE_ADMIN_TICK_H
#define SKV_CORE_ADMIN_TICK_H

#include <stdint.h>

struct skv_core;

/* Whatever time has made due. Returns ms to wait until the next one. */
uint32_t tick_once(struct skv_core *c);

#endif
