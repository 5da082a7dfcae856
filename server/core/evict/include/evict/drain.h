/* drain.h - draining slab files: chooses them and empties them block by block. */
#ifndef SKV_CORE_EVICT_DRAIN_H
#define SKV_CORE_EVICT_DRAIN_H

#include <stdbool.h>

#include <model/partition.h>

struct skv_file_info;

/* Evicts a portion of what draining files still hold, and chooses files to drain if the capacity is
 * less than the files' sizes. True if there is more to do at once. */
bool drains_go_on(struct partition *p, struct portion volumes);
/* Returns the reason why a file's drain waits, for display; "" = none. */
const char *drain_waits_for(const struct volume *s, const struct volume_file *f,
			    const struct skv_file_info *info);

#endif
