/* recover.h - a partition's life cycle: create, load from the store, check, destroy. */
#ifndef SKV_CORE_RECOVERY_RECOVER_H
#define SKV_CORE_RECOVERY_RECOVER_H

#include <stddef.h>
#include <stdint.h>

#include <skv/store.h>

#include <journal/replay.h>

struct partition;
struct skv_core;
struct skv_error;

/* A load in progress; a standby's may continue for long. No other thread sees the partition. */
struct loading {
	struct replay r;
	struct skv_error *err;
	uint64_t half_seq; /* the record that was left in its middle; 0: none was */
	size_t half;       /* bytes of it that are applied */
};
/* Where the store delivers to it; `err` as long as that is used. */
struct skv_load_sink loading_sink(struct loading *l, struct skv_error *err);
/* Decides what only the owner may decide about a loaded partition: the leases, holds and losses to
 * assume. Moves the partition to *out; on failure the caller still has the partition, to destroy
 * it. */
int partition_finish(struct loading *l, uint64_t fence, struct partition **out,
		     struct skv_error *err);

/* A partition that is to be loaded; NULL: out of memory. */
struct partition *loading_make(struct skv_core *c);
void partition_destroy(struct partition *p);
/* Loads registry, checkpoint and journal into a new partition. Needs no lock: the partition is not
 * shared yet. */
int partition_load(struct skv_core *c, uint64_t fence, struct partition **out,
		   struct skv_error *err);
/* Records durably how long starts of this ownership, lost with the power, may last. Before the
 * first answer. */
int partition_put_behind(struct partition *p, struct skv_error *err);

#endif
