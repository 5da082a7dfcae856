/*
 * turn.h - the core's threads wait and are woken, and take turns: administrators one by one.
 */
#ifndef SKV_CORE_LOCK_TURN_H
#define SKV_CORE_LOCK_TURN_H

#include <stdbool.h>
#include <stdint.h>

struct skv_core;

/* Sleeps until ms have passed or somebody wakes all, or not at all if *wake (may be NULL). False = stop. */
bool core_wait(struct skv_core *c, uint32_t ms, const bool *wake);
/* The same within a call that waits for others: in manual mode it does what their threads would (core_events). */
bool core_pause(struct skv_core *c, uint32_t ms);
/* Administrators one by one. `try`: false if it is not free. */
void turn_take(struct skv_core *c);
bool turn_try(struct skv_core *c);
void turn_leave(struct skv_core *c);
/* Has the checkpointer write a checkpoint soon. */
void checkpoint_ask(struct skv_core *c);

#endif
