/*
 * unserved.c - what this manager does not have: it says so, and does nothing.
 *
 * Copies between storages, and the quarantine of those that hang. No state.
 */
#include "op_list.h"

static int refuse(struct kvcm_call *k, const char *what)
{
	return kvb_fail(&k->c->err, KVB_E_UNSUPPORTED, NULL, "%s is not supported: %s", k->op->name, what);
}

int kvcm_run_admin_migrateCache(struct kvcm_call *k) { return refuse(k, "blocks stay on their storage"); }

int kvcm_run_admin_listAsyncCopyQuarantine(struct kvcm_call *k) { return refuse(k, "there are no copies"); }

int kvcm_run_admin_breakGlassReleaseAsyncCopy(struct kvcm_call *k) { return refuse(k, "there are no copies"); }
