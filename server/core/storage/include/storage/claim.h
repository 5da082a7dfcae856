/*
 * claim.h - ownership of slab directories: owner files, by which copies of one store detect each
 * other.
 */
#ifndef SKV_CORE_STORAGE_CLAIM_H
#define SKV_CORE_STORAGE_CLAIM_H

#include <stdbool.h>
#include <stdint.h>

struct device;
struct journal_end;
struct partition;
struct skv_core;
struct skv_error;
struct skv_storage;

/* Gives this ownership an incarnation; before the partition is loaded. */
int claims_begin(struct skv_core *c, struct skv_error *err);
/* Returns true if the state must be treated as rolled back. */
bool claims_roll_back(struct skv_core *c);
/* Returns true if any directory has been found in use by another copy of the store. */
bool claims_refused(struct skv_core *c);
/* Claims the directory for this ownership, or checks the claim, which writes nothing.
 * SKV_E_FOREIGN: another copy uses it. Called by the device's thread, or when the storage is
 * created. */
int claim_look(struct device *d, struct skv_error *err);
/* The last check is too old: grant nothing. */
bool claim_overdue(const struct device *d);
/* Makes our owner file again where it is lost or damaged, and notes the newest durable end of the
 * journal in it. By an errand: its bytes may wait. */
int claim_keep(struct device *d, struct skv_storage *s, struct skv_error *err);
/* Removes the owner file of a storage that is removed. */
void claim_give_back(struct device *d);
/* fsck: does the store know all that have used the directory? */
int claim_check(struct device *d, const struct journal_end *end, struct skv_error *err);
/* Has the directories note the newest durable end of the journal: now; or once a second while it
 * moves, and soon after it has stood still. By the ticker. */
void claims_ask(struct skv_core *c);
void claims_keep(struct partition *p, uint64_t now);
/* All that can be written have noted it. */
bool claims_noted(struct skv_core *c);
/* An adopted directory has seen generations that the store does not know: they are not given
 * again. By the ticker, before calls are answered. */
void claims_skip_generations(struct skv_core *c);

#endif
