/*
 * unserved.c - operations that this manager does not support: answers so, and does nothing.
 *
 * The quarantine of copies that hang, because copies have deadlines here; what engines report of
 * their own caches, which would be a second index of blocks that nothing here could check or evict;
 * and configuration snapshots, which no known client requests and the peer does not serve.
 * No state.
 */
#include "op_list.h"

static int refuse(struct kvcm_request *k, const char *what)
{
	return skv_fail(&k->c->err, SKV_E_UNSUPPORTED, NULL, "%s is not supported: %s", k->op->name,
			what);
}

int kvcm_run_admin_listAsyncCopyQuarantine(struct kvcm_request *k)
{
	return refuse(k, "copies that hang end by themselves");
}

int kvcm_run_admin_breakGlassReleaseAsyncCopy(struct kvcm_request *k)
{
	return refuse(k, "copies that hang end by themselves");
}

int kvcm_run_meta_reportEvent(struct kvcm_request *k)
{
	return refuse(k, "engines' own caches are not supported");
}

int kvcm_run_meta_getHostCacheState(struct kvcm_request *k)
{
	return refuse(k, "engines' own caches are not supported");
}

int kvcm_run_admin_genConfigSnapshot(struct kvcm_request *k)
{
	return refuse(k, "read storages, groups and instances with the list operations");
}

int kvcm_run_admin_loadConfigSnapshot(struct kvcm_request *k)
{
	return refuse(k, "create storages, groups and instances with the add operations");
}
