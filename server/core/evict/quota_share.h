/* quota_share.h - which instances are over their quota share, when choosing victims. */
#ifndef SKV_CORE_EVICT_QUOTA_SHARE_H
#define SKV_CORE_EVICT_QUOTA_SHARE_H

#include <stdbool.h>
#include <stdint.h>

struct evict_for;
struct instance;
struct partition;

/* Updates the capacities of groups with shares, for the two functions below; call before each
 * search for victims. */
void quota_shares_refresh(struct partition *p, uint32_t volume);
/* Usage of the instance relative to its share, in 1/QUOTA_SHARE_ONE: above QUOTA_SHARE_ONE it is
 * over. 0 in a group without shares. Blocks being removed do not count, requested bytes do. */
#define QUOTA_SHARE_ONE (1u << 20)
uint64_t quota_share_ratio(const struct instance *inst, const struct evict_for *w);
/* Returns true if the instance's blocks may be evicted for `w`. */
bool quota_share_allows(const struct evict_for *w, const struct instance *inst);

#endif
