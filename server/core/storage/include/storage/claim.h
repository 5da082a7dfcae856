/*
 * claim.h - whose slab directories are: owner files, by which copies of one store know of each other.
 */
#ifndef SKV_CORE_STORAGE_CLAIM_H
#define SKV_CORE_STORAGE_CLAIM_H

#include <stdbool.h>

struct device;
struct skv_core;
struct skv_error;

/* The reign has an incarnation; before its share is loaded. */
int claims_begin(struct skv_core *c, struct skv_error *err);
/* Is the state to be taken for one that went back in time? */
bool claims_roll_back(struct skv_core *c);
/* Has a look at some directory found that another copy of the store goes on there? */
bool claims_refused(struct skv_core *c);
/* Claims the directory in this reign, or looks again. SKV_E_FOREIGN: another copy goes on there. By the device's thread, or
 * whoever makes one. */
int claim_look(struct device *d, struct skv_error *err);
/* The newest look is too long ago: nothing may be granted. */
bool claim_overdue(const struct device *d);
/* The storage goes, and so does its owner file. */
void claim_give_back(struct device *d);
/* fsck: does the store know all who went on there? */
int claim_check(struct device *d, struct skv_error *err);

#endif
