/*
 * region.h - memory for chunks of entries, made before it is needed (region.c).
 *
 * A core has one of these; its partitions take regions from it. Any thread.
 */
#ifndef SKV_CORE_MODEL_REGION_H
#define SKV_CORE_MODEL_REGION_H

#include <stdbool.h>

struct regions;

/* `ahead`: with a thread that makes them, from the first one that is taken on; else none is made
 * before it is taken. NULL: out of memory. */
struct regions *regions_make(bool ahead);
void regions_free(struct regions *r); /* NULL is allowed; all that were taken stay */
/* As skv_region_alloc in huge pages, but mostly touched already. Locks of the core may be held. */
void *region_take(struct regions *r);

#endif
