/*
 * kvcm_api.h - the API that clients of Tair KVCache Manager (KVCM) speak, over the same core.
 *
 * Planes: META what connectors call, ADMIN, DEBUG; a port serves those of its mask. Docs: docs/KVCM.md.
 */
#ifndef SKV_KVCM_API_H
#define SKV_KVCM_API_H

#include <skv/api.h>

struct kvcm_model;
struct KvcmAdmin__NodeEndpoint;

#define KVCM_TRANSFER_MS 10000u

/* Its state; one for a manager. */
struct kvcm;

struct kvcm_options {
	const struct kvcm_model *model; /* what storages that it makes are like; copied, its strings borrowed; NULL: defaults */
	uint32_t transfer_ms; /* how long a client's transfer may take (lease.c); 0 = KVCM_TRANSFER_MS */
	const struct KvcmAdmin__NodeEndpoint *own; /* this manager, for getClusterInfo; borrowed */
};

/* SKV_E_NOMEM. */
int kvcm_create(const struct kvcm_options *o, struct kvcm **out, struct skv_error *err);
/* For skv_service_options.apis and for transports; as long as it lives. */
struct skv_api *kvcm_api(struct kvcm *m);
/* The transports are gone. NULL is allowed. */
void kvcm_destroy(struct kvcm *m);

#endif
