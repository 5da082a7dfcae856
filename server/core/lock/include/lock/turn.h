/* turn.h - waiting and waking of the core's threads, and the administrators' turn. */
#ifndef SKV_CORE_LOCK_TURN_H
#define SKV_CORE_LOCK_TURN_H

#include <stdbool.h>
#include <stdint.h>

struct skv_core;

/* Sleeps until ms have passed or everyone is woken, or not at all if *wake (may be NULL). False =
 * stop. */
bool core_wait(struct skv_core *c, uint32_t ms, const bool *wake);
/* The same within a call that waits for other threads; in manual mode it does their work
 * (core_events). */
bool core_pause(struct skv_core *c, uint32_t ms);
/* Administrators run one at a time. `try`: false if the turn is taken. */
void turn_take(struct skv_core *c);
bool turn_try(struct skv_core *c);
void turn_leave(struct skv_core *c);
/* Has the checkpointer write a checkpoint soon. */
void checkpoint_ask(struct skv_core *c);
/* Marks all checkpoints requested until now as covered by the next one, whose snapshot has begun.
 * Under the core's lock. */
void checkpoint_begun(struct skv_core *c);

#endif
