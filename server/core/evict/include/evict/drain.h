/*
 * drain.h - slab files that go: which ones, and emptied block by block.
 */
#ifndef SKV_CORE_EVICT_DRAIN_H
#define SKV_CORE_EVICT_DRAIN_H

#include <stdbool.h>

#include <model/partition.h>

struct skv_file_info;

/* A portion of what draining files still hold is on its way out, and files are chosen for a capacity that is less than
 * what was made. True when there is more to do at once. */
bool drains_go_on(struct partition *p, struct portion volumes);
/* What a file waits for, for people; "" = nothing. */
const char *drain_waits_for(const struct volume *s, const struct volume_file *f, const struct skv_file_info *info);

#endif
