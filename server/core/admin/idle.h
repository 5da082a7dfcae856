/* idle.h - measures how long each instance is unused, and drops empty ones. */
#ifndef SKV_CORE_ADMIN_IDLE_H
#define SKV_CORE_ADMIN_IDLE_H

#include <stdbool.h>
#include <stdint.h>

struct instance;
struct partition;
struct portion;
struct skv_core;

/* How long no call has used it. Under the lock, for reading at least. */
uint64_t idle_ms(const struct partition *p, const struct instance *inst);
/* Returns true if the instance holds no block, pin or session. */
bool idle_is_empty(const struct instance *inst);
/* The ticker's part, under the write lock. */
void idle_look(struct partition *p, struct portion at, uint64_t now);
/* Does the due work that blocks on the store. */
void idle_round(struct skv_core *c);
/* Writes how long each one is unused. Blocks on the store. */
void idle_store(struct skv_core *c);

#endif
