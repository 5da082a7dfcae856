/*
 * reclaim.h - background eviction that a group or storage is configured for: watermarks, steps,
 * idle blocks.
 */
#ifndef SKV_CORE_EVICT_RECLAIM_H
#define SKV_CORE_EVICT_RECLAIM_H

#include <stdbool.h>
#include <stdint.h>

struct group;
struct partition;

/* Applies the group's watermarks and limits. Returns true if more work is due now. */
bool reclaim_group(struct partition *p, struct group *g);
/* The same for the watermarks of a storage. */
bool reclaim_volume(struct partition *p, uint32_t volume);
/* Bytes of the group on storages of a type, without those being removed (*removing returns them;
 * may be NULL). */
uint64_t group_type_bytes(const struct partition *p, const struct group *g, const char *type,
			  uint64_t *removing);

#endif
