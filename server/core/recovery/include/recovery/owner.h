/* owner.h - ownership of the partition: acquiring and renewing the lease, loading, giving up. */
#ifndef SKV_CORE_RECOVERY_OWNER_H
#define SKV_CORE_RECOVERY_OWNER_H

#include <stdbool.h>
#include <stdint.h>

#include <skv/core.h>

struct skv_core;

/* Acquires, renews or gives up ownership; acquires it anew if the partition is to be reloaded.
 * Called repeatedly by the owner thread; returns ms to wait. */
uint32_t owner_step(struct skv_core *c);
/* Loads the owned partition and goes READY. Called by the ticker. False = retry later. */
bool owner_load(struct skv_core *c);
/* Says, now and then, which processes of the engine have all that is acknowledged. May block, so it
 * is not for the owner thread, whose renewals must not wait. */
void owner_vouch(struct skv_core *c);
/* Discards the partition: everything waiting fails with `status`. */
void owner_drop(struct skv_core *c, int status, enum skv_core_state next);

#endif
