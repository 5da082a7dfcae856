/*
 * kvcm_api.h - the API of Tair KVCache Manager (KVCM), over the same core.
 *
 * Planes: META for connectors, ADMIN, DEBUG; a port serves those of its mask. See KVCM.md.
 */
#ifndef SKV_KVCM_API_H
#define SKV_KVCM_API_H

#include <skv/api.h>

struct kvcm_model;
struct KvcmAdmin__NodeEndpoint;

/* Default of transfer_ms: the longest read timeout of a current client (15 s: RTP-LLM's broadcast,
 * the connectors of SGLang and TensorRT-LLM) and a margin; CLIENTS.md lists them all. */
#define KVCM_TRANSFER_MS 20000u

/* The API's state; one per manager. */
struct kvcm;

struct kvcm_options {
	/* Settings of storages that it creates; copied, its strings borrowed; NULL: defaults. */
	const struct kvcm_model *model;
	uint32_t transfer_ms; /* longest transfer of a client (lease.c); 0 = KVCM_TRANSFER_MS */
	bool check_writes; /* finishes look whether what they commit was written (meta_finish.c) */
	const struct KvcmAdmin__NodeEndpoint *own; /* this manager, for getClusterInfo; borrowed */
};

/* SKV_E_NOMEM. */
int kvcm_create(const struct kvcm_options *o, struct kvcm **out, struct skv_error *err);
/* For skv_service_options.apis and for transports; lives as long as `m`. */
struct skv_api *kvcm_api(struct kvcm *m);
/* After all transports. NULL is allowed. */
void kvcm_destroy(struct kvcm *m);

#endif
