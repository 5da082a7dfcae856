/*
 * claim.h - ownership of slab directories: owner files, by which copies of one store detect each
 * other.
 */
#ifndef SKV_CORE_STORAGE_CLAIM_H
#define SKV_CORE_STORAGE_CLAIM_H

#include <stdbool.h>

struct device;
struct skv_core;
struct skv_error;

/* Gives this ownership an incarnation; before the partition is loaded. */
int claims_begin(struct skv_core *c, struct skv_error *err);
/* Must the state be treated as rolled back? */
bool claims_roll_back(struct skv_core *c);
/* Has any directory been found in use by another copy of the store? */
bool claims_refused(struct skv_core *c);
/* Claims the directory for this ownership, or checks the claim. SKV_E_FOREIGN: another copy uses
 * it. Called by the device's thread, or when the storage is created. */
int claim_look(struct device *d, struct skv_error *err);
/* The last check is too old: grant nothing. */
bool claim_overdue(const struct device *d);
/* Removes the owner file of a storage that is removed. */
void claim_give_back(struct device *d);
/* fsck: does the store know all that have used the directory? */
int claim_check(struct device *d, struct skv_error *err);

#endif
