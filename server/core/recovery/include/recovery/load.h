/*
 * load.h - documents of the registry, made into the objects of a partition.
 */
#ifndef SKV_CORE_RECOVERY_LOAD_H
#define SKV_CORE_RECOVERY_LOAD_H

struct partition;
struct skv_error;

int registry_load(struct partition *p, struct skv_error *err);

#endif
