/*
 * recover.h - a partition's life as a whole: make, load from the store, check for consistency, destroy.
 */
#ifndef SKV_CORE_RECOVERY_RECOVER_H
#define SKV_CORE_RECOVERY_RECOVER_H

#include <stdint.h>

struct partition;
struct skv_core;
struct skv_error;

struct partition *part_make(struct skv_core *c);
void part_destroy(struct partition *p);
/* Loads registry, checkpoint and journal into a new part. No lock: nobody else sees it yet. */
int part_load(struct skv_core *c, uint64_t fence, struct partition **out, struct skv_error *err);
/* Durably: so much of what this reign tells may be lost with the power. Before it tells anything. */
int part_put_behind(struct partition *p, struct skv_error *err);

#endif
