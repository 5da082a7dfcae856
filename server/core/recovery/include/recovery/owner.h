/* owner.h - ownership of the partition: acquiring and renewing the lease, loading, giving up. */
#ifndef SKV_CORE_RECOVERY_OWNER_H
#define SKV_CORE_RECOVERY_OWNER_H

#include <stdbool.h>
#include <stdint.h>

#include <skv/core.h>

struct skv_core;

/* Performs the action that is due. Called repeatedly by the owner thread; returns ms to wait. */
uint32_t owner_step(struct skv_core *c);
/* Loads the owned partition and goes READY. Called by the ticker. False = retry later. */
bool owner_load(struct skv_core *c);
/* Returns true if owner_step must be called now, before that time has passed. */
bool owner_is_due(struct skv_core *c);
/* Discards the partition, which is owned no longer: everything waiting fails with `status`. */
void owner_drop(struct skv_core *c, int status);

#endif
