/*
 * faults.c - the table of injected faults.
 *
 * A handful of entries under a mutex; the count is an atomic, so that calls pass by without it.
 */
#include "faults.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

void kvcm_faults_init(struct kvcm_faults *f)
{
	memset(f, 0, sizeof *f);
	skv_mutex_init(&f->lock);
}

void kvcm_faults_destroy(struct kvcm_faults *f) { skv_mutex_destroy(&f->lock); }

static struct kvcm_fault *find_locked(struct kvcm_faults *f, const char *api) SKV_REQUIRES(f->lock)
{
	assert(skv_mutex_held(&f->lock) && atomic_load(&f->n) <= KVCM_FAULTS_MAX);
	for (unsigned i = 0; i < atomic_load(&f->n); i++)
		if (strcmp(f->v[i].api, api) == 0)
			return &f->v[i];
	return NULL;
}

int kvcm_faults_inject(struct kvcm_faults *f, const struct kvcm_fault *fault, struct skv_error *err)
{
	struct kvcm_fault *at;
	int rc = SKV_OK;

	if (!*fault->api)
		return skv_fail(err, SKV_E_INVALID, "api_name",
				"the name of an operation is expected");
	skv_mutex_lock(&f->lock);
	at = find_locked(f, fault->api);
	if (!at && atomic_load(&f->n) < KVCM_FAULTS_MAX)
		at = &f->v[atomic_fetch_add(&f->n, 1)];
	assert(!at || (at >= f->v && at < f->v + KVCM_FAULTS_MAX));
	if (at)
		*at = *fault;
	else
		rc = skv_fail(err, SKV_E_TOO_MANY, "api_name", "%d faults at most",
			      KVCM_FAULTS_MAX);
	skv_mutex_unlock(&f->lock);
	return rc;
}

bool kvcm_faults_remove(struct kvcm_faults *f, const char *api)
{
	struct kvcm_fault *at;

	skv_mutex_lock(&f->lock);
	at = find_locked(f, api);
	if (at)
		*at = f->v[atomic_fetch_sub(&f->n, 1) - 1];
	skv_mutex_unlock(&f->lock);
	return at != NULL;
}

void kvcm_faults_clear(struct kvcm_faults *f)
{
	skv_mutex_lock(&f->lock);
	atomic_store(&f->n, 0);
	skv_mutex_unlock(&f->lock);
}

/* The number after the last '_' of the trace id. */
static bool call_number(const char *trace_id, int64_t *out)
{
	const char *tail = strrchr(trace_id, '_');
	char *end;

	if (!tail || (tail[1] != '-' && (tail[1] < '0' || tail[1] > '9')))
		return false;
	errno = 0;
	*out = strtoll(tail + 1, &end, 10);
	return errno == 0 && end != tail + 1 && *end == '\0';
}

bool kvcm_faults_hit(struct kvcm_faults *f, const char *api, const char *trace_id)
{
	const struct kvcm_fault *at;
	int64_t number;
	bool hit = false;

	if (atomic_load_explicit(&f->n, memory_order_relaxed) == 0)
		return false;
	skv_mutex_lock(&f->lock);
	at = find_locked(f, api);
	if (at)
		hit = !at->once || (call_number(trace_id, &number) && number == at->at);
	skv_mutex_unlock(&f->lock);
	return hit;
}
