/*
 * device_hand.h - a storage's second thread: it makes and removes slab files.
 */
#ifndef SKV_CORE_STORAGE_DEVICE_HAND_H
#define SKV_CORE_STORAGE_DEVICE_HAND_H

#include <stdbool.h>

struct device;

/* device_hand.c: has the second thread make a file, and remove those that go, unless it is at work. By the first one. */
void hand_ask(struct device *d, bool grow, bool drain);
/* Waits until it is out of the file system. */
void hand_join(struct device *d);

#endif
