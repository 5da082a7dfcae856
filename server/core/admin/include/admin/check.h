/*
 * check.h - verifies that what the partition believes fits together.
 */
#ifndef SKV_CORE_ADMIN_CHECK_H
#define SKV_CORE_ADMIN_CHECK_H

#include <stdint.h>

struct partition;

/* Verifies everything; each problem goes to say(). */
uint64_t partition_check(struct partition *p, void (*say)(void *ctx, const char *text), void *ctx);

#endif
