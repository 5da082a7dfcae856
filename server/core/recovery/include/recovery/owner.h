/*
 * owner.h - who may answer: the ownership lease of the partition, loading it, giving it up.
 */
#ifndef SKV_CORE_RECOVERY_OWNER_H
#define SKV_CORE_RECOVERY_OWNER_H

#include <stdbool.h>
#include <stdint.h>

#include <skv/core.h>

struct skv_core;

/* Ownership: acquire, renew, give up; acquire anew, when the partition is to be loaded again. Called again and again by the
 * owner thread; returns ms to wait. */
uint32_t owner_step(struct skv_core *c);
/* The partition is owned but not loaded: load it and go READY. Called by the ticker. False = try later. */
bool owner_load(struct skv_core *c);
/* Forgets the partition: everything waiting fails with `status`. */
void owner_drop(struct skv_core *c, int status, enum skv_core_state next);

#endif
