/*
 * numa.h - on which memory node pages lie. By system calls: three of them do not need a library on every machine.
 */
#ifndef SKV_CLIENT_NUMA_H
#define SKV_CLIENT_NUMA_H

#include <stdbool.h>
#include <stddef.h>

/* The highest memory node that this process may use; 0 where the kernel does not tell. */
int skv_numa_last(void);
/* Whether it may use that one. */
bool skv_numa_has(int node);
/* Prefers the node for pages of [base, base + size); `move`: also for those that are there. False: see errno. */
bool skv_numa_prefer(void *base, size_t size, int node, bool move);

#endif
