/* tenant_quota.h - what a tenant may have, checked before a start takes slots. */
#ifndef SKV_CORE_OPS_TENANT_QUOTA_H
#define SKV_CORE_OPS_TENANT_QUOTA_H

#include <stdint.h>

struct instance;
struct partition;
struct plan;
struct skv_error;
struct tenant;

/* One more session. SKV_E_TOO_MANY ("max_sessions"). */
int tenant_check_sessions(const struct partition *p, const struct tenant *t, struct skv_error *err);
/* The plan's writes. SKV_OK, TRY_WAIT_TENANT (blocks of its own are on their way out), SKV_E_QUOTA
 * ("max_bytes", "max_blocks"). */
int tenant_quota(struct partition *p, const struct plan *plan, struct skv_error *err);
/* For plans of one spec: how many blocks may be written if all others go; */
uint64_t tenant_bound(const struct instance *inst);
/* how many without eviction. */
uint64_t tenant_now(const struct instance *inst);

#endif
