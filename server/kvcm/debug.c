/*
 * debug.c - KVCM's debug service: injected faults (faults.h).
 *
 * Its operations are found only where the manager was started with the debug service. No state.
 */
#include "op_list.h"

#include <stdio.h>
#include <string.h>

#include <kvcm/debug.pb-c.h>
#include "faults.h"

/* Injects a fault. There is a single type of fault; names and numbers of other types select it,
 * too. */
int kvcm_run_debug_injectFault(struct kvcm_request *k)
{
	const KvcmDebug__InjectFaultRequest *req = k->req;
	struct kvcm_fault fault = { .at = req->trigger_at_call };

	if (!*req->api_name || strlen(req->api_name) >= sizeof fault.api)
		return kvcm_missing(k, "api_name");
	if (req->fault_trigger_strategy != KVCM_DEBUG__FAULT_TRIGGER_STRATEGY__ALWAYS &&
	    req->fault_trigger_strategy != KVCM_DEBUG__FAULT_TRIGGER_STRATEGY__ONCE)
		return kvcm_missing(k, "fault_trigger_strategy");
	snprintf(fault.api, sizeof fault.api, "%s", req->api_name);
	fault.once = req->fault_trigger_strategy == KVCM_DEBUG__FAULT_TRIGGER_STRATEGY__ONCE;
	return kvcm_faults_inject(&kvcm_of(k)->faults, &fault, &k->c->err);
}

int kvcm_run_debug_removeFault(struct kvcm_request *k)
{
	const KvcmDebug__RemoveFaultRequest *req = k->req;

	if (!kvcm_faults_remove(&kvcm_of(k)->faults, req->api_name))
		return skv_fail(&k->c->err, SKV_E_INVALID, "api_name",
				"api_name: no fault is set for '%.64s'", req->api_name);
	return SKV_OK;
}

int kvcm_run_debug_clearFaults(struct kvcm_request *k)
{
	kvcm_faults_clear(&kvcm_of(k)->faults);
	return SKV_OK;
}
