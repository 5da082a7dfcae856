/* drain.h - draining slab files: chooses them and empties them block by block. */
#ifndef SKV_CORE_EVICT_DRAIN_H
#define SKV_CORE_EVICT_DRAIN_H

#include <stdbool.h>

#include <model/partition.h>

struct skv_file_info;

/* Evicts a portion of the blocks left in draining files, and chooses files to drain if the capacity
 * is less than the files' sizes. Returns true if more work is due now. */
bool drains_go_on(struct partition *p, struct portion volumes);
/* Returns the reason why a file's drain waits, for display; "" = none. */
const char *drain_waits_for(const struct volume *s, const struct volume_file *f,
			    const struct skv_file_info *info);

#endif
