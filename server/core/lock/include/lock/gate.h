/*
 * gate.h - may this manager answer: its state, and whether it owns the partition.
 */
#ifndef SKV_CORE_LOCK_GATE_H
#define SKV_CORE_LOCK_GATE_H

#include <stdbool.h>
#include <stdint.h>

struct skv_core;
struct skv_error;

/* Checks state and ownership, for every block call. */
int core_gate(const struct skv_core *c, struct skv_error *err);
/* As skv_fail, of a call on this partition, which is named: the call waits for it, or goes to its
 * owner. */
int gate_fail(const struct skv_core *c, struct skv_error *err, int status, const char *text);
/* The partition went after core_gate. */
int gate_recovering(const struct skv_core *c, struct skv_error *err);
bool owner_valid(const struct skv_core *c);
/* The store rejected this fence. True: it was current, so another manager has taken over. False: it
 * belonged to a partition that this manager has given up itself. */
bool owner_lost(struct skv_core *c, uint64_t fence);
/* Has the partition reloaded, because memory no longer matches the store. */
void owner_ask_reload(struct skv_core *c);

#endif
