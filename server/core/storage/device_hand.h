/* device_hand.h - a storage's second thread, which creates and removes slab files. */
#ifndef SKV_CORE_STORAGE_DEVICE_HAND_H
#define SKV_CORE_STORAGE_DEVICE_HAND_H

#include <stdbool.h>

struct device;

/* device_hand.c: has the second thread create a file and remove drained ones, unless it is busy.
 * First thread only. */
void hand_ask(struct device *d, bool grow, bool drain);
/* Waits until it has left the file system. */
void hand_join(struct device *d);

#endif
