/*
 * gate.h - may this manager answer: its state, and whether it owns the partition.
 */
#ifndef SKV_CORE_LOCK_GATE_H
#define SKV_CORE_LOCK_GATE_H

#include <stdbool.h>
#include <stdint.h>

struct skv_core;
struct skv_error;

/* Common gate of all block calls: state and ownership. */
int core_gate(const struct skv_core *c, struct skv_error *err);
bool owner_valid(const struct skv_core *c);
/* The store says that this fence is not the newest. True: it was ours until now, so another manager has taken over. False:
 * it was of a partition that this manager has given up itself. */
bool owner_lost(struct skv_core *c, uint64_t fence);
/* Has the partition loaded again: what is in memory is not the truth any more. */
void owner_ask_reload(struct skv_core *c);

#endif
