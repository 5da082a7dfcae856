/*
 * checkpoint.h - checkpoints: a compact copy of the state, written while calls go on; recovery
 * replays the journal over it.
 */
#ifndef SKV_CORE_RECOVERY_CHECKPOINT_H
#define SKV_CORE_RECOVERY_CHECKPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct skv_core;
struct skv_error;

#define SLICE_BYTES ((size_t)1 << 20)
/* Writes a checkpoint of the current partition. `clean`: the last one of an orderly shutdown. */
int checkpoint_run(struct skv_core *c, bool clean, struct skv_error *err);

#endif
