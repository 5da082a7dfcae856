/*
 * device_node.c - reads a memory node's report when the node is probed: its epoch, its writers.
 *
 * On the device's thread, which owns the list of epochs.
 */
#include "device_node.h"

#include <assert.h>
#include <string.h>

#include <skv/clock.h>
#include <skv/log.h>

#include <lock/core.h>
#include <model/device.h>

/* A node that comes back with an epoch that another has followed is one of two. */
static int check_epoch(struct device *d, uint64_t epoch, struct skv_error *err)
{
	const size_t n = sizeof d->epoch / sizeof d->epoch[0];

	if (epoch == 0)
		return skv_fail(err, SKV_E_NETWORK, "fs_master",
				"its URL leads to an fs-master, and not to a memory node");
	if (d->epoch[0] == epoch)
		return SKV_OK;
	for (size_t i = 1; i < n; i++)
		if (d->epoch[i] == epoch)
			return skv_fail(err, SKV_E_CONFLICT, "fs_master",
					"two memory nodes answered for this storage in turn, and "
					"one is back with its old memory: give each its own "
					"address, --memory-name and storage, or restart this one");
	memmove(d->epoch + 1, d->epoch, (n - 1) * sizeof *d->epoch);
	d->epoch[0] = epoch;
	if (d->epoch[1])
		skv_log(SKV_LOG_WARN, "storage",
			"'%s': its memory node was started anew: its blocks are gone", d->name);
	return SKV_OK;
}

int device_heard(struct device *d, uint64_t asked, const struct skv_storage_health *h,
		 struct skv_error *err)
{
	int rc;

	assert(asked <= skv_now_ms(d->core->clock));
	if (!d->ops->forgetful)
		return SKV_OK;
	rc = check_epoch(d, h->epoch, err);
	if (rc != SKV_OK)
		return rc;
	atomic_store(&d->writing_ms, h->writing_ms);
	atomic_store(&d->quiet, asked > h->writing_ms ? asked - h->writing_ms : 1);
	return SKV_OK;
}
