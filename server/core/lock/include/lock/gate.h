/*
 * gate.h - may this manager answer: the ownership of a core's partition. Any thread.
 */
#ifndef SKV_CORE_LOCK_GATE_H
#define SKV_CORE_LOCK_GATE_H

#include <stdbool.h>
#include <stdint.h>

#include <skv/core.h>

#include <lock/ownership.h>

struct gate;
struct skv_core;
struct skv_error;

/* Checks state and ownership, for every block call. */
int core_gate(const struct skv_core *c, struct skv_error *err);
/* Reports a partition that was lost after core_gate. */
int gate_recovering(struct skv_error *err);
/* The lease runs: answers need that, looked at again just before they leave. Appends are judged by
 * the store. */
bool owner_valid(const struct skv_core *c);
/* Loaded, and changes end here: OWNING or CLOSING. */
bool owner_ready(const struct skv_core *c);
enum own_state owner_state(const struct skv_core *c);
uint64_t owner_fence(const struct skv_core *c);
/* How often a loaded partition was given up. A caller that reads it before it looks, and again when
 * it answers, knows whether what it saw is still true. */
uint64_t owner_given_up(const struct skv_core *c);
struct ownership owner_view(const struct skv_core *c);
/* Another owner of the partition, as the store named it; "": unknown, or none. */
void owner_set_holder(struct skv_core *c, const char *name);
void owner_holder(const struct skv_core *c, char out[SKV_OWNER_NAME]);

struct gate *gate_create(bool may_own); /* NULL: out of memory */
void gate_destroy(struct gate *g);
/* Reports an event of `fence` (0: of none) that happened now; returns what the owner thread is to
 * do next. */
enum own_action owner_event(struct skv_core *c, enum own_event event, uint64_t fence);
/* ACQUIRED or RENEWED by a call that began at `since`. */
void owner_leased(struct skv_core *c, enum own_event event, uint64_t fence, uint64_t since);
/* The ownership is to be given up, for ms. False: there is none, or it is being given up. */
bool owner_demote(struct skv_core *c, uint64_t ms);
/* MAY_OWN or DRAIN. */
void owner_switch(struct skv_core *c, enum own_event event, bool on);
/* The store rejected this fence. True: it was current, so another manager has taken over. False: it
 * belonged to a partition that this manager has given up itself. */
bool owner_lost(struct skv_core *c, uint64_t fence);
/* Has the partition of this fence loaded again, because memory no longer matches the store. */
void owner_ask_reload(struct skv_core *c, uint64_t fence);

#endif
