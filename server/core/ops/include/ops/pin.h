/*
 * pin.h - blocks are pinned, unpinned and listed by request, and unpinned in time.
 */
#ifndef SKV_CORE_OPS_PIN_H
#define SKV_CORE_OPS_PIN_H

#include <stdbool.h>

#include <model/partition.h>
#include <journal/change.h>

/* ops/pin.c: ends those whose time is over, a portion of them at a time. True when there is more to do at once. */
bool pins_expire(struct partition *p, struct portion instances);

extern const struct change_ops pin_ops;

#endif
