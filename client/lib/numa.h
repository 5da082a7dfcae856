/*
 * numa.h - NUMA placement of pages, by system calls: three calls do not justify a library on every
 * machine.
 */
#ifndef SKV_CLIENT_NUMA_H
#define SKV_CLIENT_NUMA_H

#include <stdbool.h>
#include <stddef.h>

/* The highest NUMA node that this process may use; 0 if the kernel does not say. */
int skv_numa_last(void);
/* Returns true if this process may use that node. */
bool skv_numa_has(int node);
/* Prefers the node for pages of [base, base + size); `move`: moves existing pages too. False: see
 * errno. */
bool skv_numa_prefer(void *base, size_t size, int node, bool move);

#endif
