/*
 * unserved.c - operations that this manager does not support: answers so, and does nothing.
 *
 * Copies between storages, and the quarantine of those that hang; replication; and what engines
 * report of their own caches, which would be a second index of blocks that nothing here could
 * check or evict. No state.
 */
#include "op_list.h"

static int refuse(struct kvcm_request *k, const char *what)
{
	return skv_fail(&k->c->err, SKV_E_UNSUPPORTED, NULL, "%s is not supported: %s", k->op->name,
			what);
}

int kvcm_run_admin_migrateCache(struct kvcm_request *k)
{
	return refuse(k, "movers prove blocks by checksums, which its blocks do not have");
}

int kvcm_run_admin_listAsyncCopyQuarantine(struct kvcm_request *k)
{
	return refuse(k, "there are no copies");
}

int kvcm_run_admin_breakGlassReleaseAsyncCopy(struct kvcm_request *k)
{
	return refuse(k, "there are no copies");
}

int kvcm_run_meta_replicateCache(struct kvcm_request *k)
{
	return refuse(k, "copies are proven by checksums, which its blocks do not have");
}

int kvcm_run_meta_reportEvent(struct kvcm_request *k)
{
	return refuse(k, "engines' own caches are not supported");
}

int kvcm_run_meta_getHostCacheState(struct kvcm_request *k)
{
	return refuse(k, "engines' own caches are not supported");
}
