/*
 * purge.c - removes all blocks of an instance, also those being written: a clear (evict/clear.c),
 * for every way of selecting the instance.
 *
 * No state. Under the write lock.
 */
#include <ops/purge.h>

#include <stdint.h>

#include <lock/lock.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/tier.h>
#include <evict/clear.h>
#include <ops/start.h>

int purge_queue(struct partition *p, struct instance *inst, bool drop, struct change **last)
{
	const struct waiting_of of = { inst->spec.tenant, inst->spec.id, .to_ms = UINT64_MAX };
	struct instance *copies = tier_copies(p, inst);
	int rc = start_end_waiting(p, &of);

	ASSERT_EXCLUSIVE(p);
	*last = inst->clear; /* if it is empty, that is durable together with this */
	if (rc == SKV_OK && copies && copies->entries > 0)
		rc = clear_queue(p, copies, false, last);
	if (rc == SKV_OK && (inst->entries > 0 || drop))
		rc = clear_queue(p, inst, drop, last);
	return rc;
}
