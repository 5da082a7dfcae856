/*
 * faults.h - faults that a tester injects into operations, by their names in KVCM's API
 * ("StartWriteCache").
 *
 * Any thread. While none is ordered, asking costs one load of an atomic.
 */
#ifndef KVCM_FAULTS_H
#define KVCM_FAULTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <skv/lock.h>
#include <skv/status.h>

#define KVCM_FAULTS_MAX 64
#define KVCM_FAULT_NAME 64 /* bytes, NUL included */

struct kvcm_fault {
	char api[KVCM_FAULT_NAME];
	bool once;  /* only for the call whose trace id ends in _<at>; else for every call */
	int32_t at;
};

struct kvcm_faults {
	struct skv_mutex lock;
	struct kvcm_fault v[KVCM_FAULTS_MAX]; /* protected by lock */
	atomic_uint n;                        /* changed under lock */
};

void kvcm_faults_init(struct kvcm_faults *f);
void kvcm_faults_destroy(struct kvcm_faults *f);
/* Replaces what was ordered for the same operation. SKV_E_INVALID (field
 * "api_name"), SKV_E_TOO_MANY. */
int kvcm_faults_inject(struct kvcm_faults *f, const struct kvcm_fault *fault,
		       struct skv_error *err);
/* Returns false if no fault was injected for the call. */
bool kvcm_faults_remove(struct kvcm_faults *f, const char *api);
void kvcm_faults_clear(struct kvcm_faults *f);
/* Returns true if this call must fail. */
bool kvcm_faults_hit(struct kvcm_faults *f, const char *api, const char *trace_id);

#endif
