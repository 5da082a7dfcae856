/*
 * admin_blocks.c - block calls of the admin service: the meta service's, with messages of its own.
 *
 * The messages have the same fields, so the meta operations work on both: the
 * asserts below say so. No state.
 */
#include "meta.h"

#define SAME(type, field)                                                                         \
	_Static_assert(offsetof(KvcmAdmin__##type, field) == offsetof(KvcmMeta__##type, field) && \
			       sizeof(KvcmAdmin__##type) == sizeof(KvcmMeta__##type),             \
		       #type "." #field)

SAME(RemoveCacheRequest, instance_id);
SAME(RemoveCacheRequest, block_keys);
SAME(RemoveCacheRequest, token_ids);
SAME(RemoveCacheRequest, block_mask);

int kvcm_run_admin_removeCache(struct kvcm_request *k) { return kvcm_run_meta_removeCache(k); }

SAME(GetCacheMetaRequest, instance_id);
SAME(GetCacheMetaRequest, block_keys);
SAME(GetCacheMetaRequest, token_ids);
SAME(GetCacheMetaRequest, block_mask);
SAME(GetCacheMetaResponse, metas);

int kvcm_run_admin_getCacheMeta(struct kvcm_request *k) { return kvcm_run_meta_getCacheMeta(k); }

int kvcm_run_admin_registerInstance(struct kvcm_request *k)
{
	const KvcmMeta__RegisterInstanceRequest *req =
		kvcm_register_from_admin(k->req, &k->c->arena);

	return req ? kvcm_register(k, req, NULL) : kvcm_nomem(k);
}
