/*
 * device_node.h - reads a memory node's report when the node is probed.
 */
#ifndef SKV_CORE_STORAGE_DEVICE_NODE_H
#define SKV_CORE_STORAGE_DEVICE_NODE_H

#include <stdint.h>

struct device;
struct skv_error;
struct skv_storage_health;

/* Takes over the answer of a probe that was sent at `asked`; it counts as of then. Types with
 * files: nothing to do. SKV_E_CONFLICT: two nodes answer in turn; SKV_E_NETWORK: it is an
 * fs-master. */
int device_heard(struct device *d, uint64_t asked, const struct skv_storage_health *h,
		 struct skv_error *err);

#endif
