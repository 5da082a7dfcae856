/* pin.h - pins blocks, unpins them, lists pins, and expires them. */
#ifndef SKV_CORE_OPS_PIN_H
#define SKV_CORE_OPS_PIN_H

#include <stdbool.h>

#include <model/partition.h>
#include <journal/change.h>

/* ops/pin.c: removes expired pins, a portion at a time. Returns true if more work is due now. */
bool pins_expire(struct partition *p, struct portion instances);

extern const struct change_ops pin_ops;

#endif
