/*
 * quota_share.h - which instances have more than their part of a group, when victims are looked for.
 */
#ifndef SKV_CORE_EVICT_QUOTA_SHARE_H
#define SKV_CORE_EVICT_QUOTA_SHARE_H

#include <stdbool.h>
#include <stdint.h>

struct evict_for;
struct instance;
struct partition;

/* Before a search for victims: rooms of groups that have shares, for the two below. */
void quota_shares_refresh(struct partition *p, uint32_t volume);
/* What the instance has for its share, in 1/QUOTA_SHARE_ONE: above it, it has more. 0 in a group without shares. What is on its
 * way out does not count, what is asked for does. */
#define QUOTA_SHARE_ONE (1u << 20)
uint64_t quota_share_ratio(const struct instance *inst, const struct evict_for *w);
/* May its blocks be evicted for that? */
bool quota_share_allows(const struct evict_for *w, const struct instance *inst);

#endif
