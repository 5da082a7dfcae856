/* tenant_share.h - which tenants are over their share, when choosing victims. */
#ifndef SKV_CORE_EVICT_TENANT_SHARE_H
#define SKV_CORE_EVICT_TENANT_SHARE_H

#include <stdbool.h>
#include <stdint.h>

struct evict_for;
struct evict_set;
struct group;
struct instance;
struct partition;

/* Reckons what each tenant has, and its share, of a volume, or (`volume` ANY_VOLUME) of a group;
 * for the functions below, before each search for victims. */
void tenant_shares_refresh(struct partition *p, const struct group *g, uint32_t volume,
			   const struct evict_for *w);
/* Usage of the instance's tenant relative to its share, in 1/QUOTA_SHARE_ONE. 0 where only one has
 * something, or the newest search is not known. */
uint64_t tenant_share_ratio(const struct partition *p, const struct instance *inst,
			    const struct evict_for *w);
/* Returns true if the tenant's blocks may be evicted for `w`: its own, or the tenant is over its
 * share. */
bool tenant_share_allows(const struct partition *p, const struct instance *inst,
			 const struct evict_for *w);
/* Returns true if the set has instances of several tenants, and that counts now. */
bool tenant_share_splits(const struct partition *p, const struct evict_set *set);

#endif
