/*
 * recover.h - a partition's life as a whole: make, load from the store, check for consistency, destroy.
 */
#ifndef SKV_CORE_RECOVERY_RECOVER_H
#define SKV_CORE_RECOVERY_RECOVER_H

#include <stdint.h>

struct partition;
struct skv_core;
struct skv_error;

struct partition *partition_make(struct skv_core *c);
void partition_destroy(struct partition *p);
/* Loads registry, checkpoint and journal into a new partition. No lock: nobody else sees it yet. */
int partition_load(struct skv_core *c, uint64_t fence, struct partition **out, struct skv_error *err);
/* Durably: so much of what this reign tells may be lost with the power. Before it tells anything. */
int partition_put_behind(struct partition *p, struct skv_error *err);

#endif
