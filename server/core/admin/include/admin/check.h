/* check.h - consistency check of a partition's state in memory. */
#ifndef SKV_CORE_ADMIN_CHECK_H
#define SKV_CORE_ADMIN_CHECK_H

#include <stdint.h>

struct partition;

/* Verifies everything; reports each problem to say() and returns their number. */
uint64_t partition_check(struct partition *p, void (*say)(void *ctx, const char *text), void *ctx);

#endif
