/*
 * run.c - runs simulations on several threads, in order.
 *
 * run_stop and run_done are the only state; atomics, any thread.
 */
#include "run.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <skv/lock.h>
#include <skv/mem.h>

#define PROGRESS_MS 200u

atomic_bool run_stop;
atomic_ullong run_done;

struct crew {
	struct run *runs;
	uint32_t n;
	atomic_uint next;
	struct skv_mutex lock; /* protects working */
	struct skv_cond ended;
	uint32_t working;
};

void run_instance(const struct run *r, char name[SKV_MAX_NAME + 1])
{
	if (r->instance)
		snprintf(name, SKV_MAX_NAME + 1, "%s", r->instance);
	else
		snprintf(name, SKV_MAX_NAME + 1, "replay-%llux1",
			 (unsigned long long)r->block_bytes);
}

bool run_goes_on(struct run *r)
{
	atomic_fetch_add_explicit(&run_done, 1, memory_order_relaxed);
	if (!atomic_load_explicit(&run_stop, memory_order_relaxed))
		return true;
	skv_fail(&r->err, SKV_E_TIMEOUT, NULL, "interrupted");
	return false;
}

void run_note(struct run *r, uint32_t request, struct request_hits hits)
{
	assert(request < r->refs->n_requests);
	assert(hits.prefix + hits.behind <= r->refs->first[request + 1] - r->refs->first[request]);
	r->counts.prefix_hits += hits.prefix;
	r->counts.block_hits += (uint64_t)hits.prefix + hits.behind;
	r->counts.inserted += hits.written;
	if (r->hits)
		r->hits[request] = hits;
}

static void run_one(struct run *r)
{
	assert(!r->full || !r->one_by_one);
	if (r->full)
		r->status = run_full(r);
	else
		r->status = strcmp(r->policy, "belady") == 0 ? run_belady(r) : run_policy(r);
}

static void *work(void *arg)
{
	struct crew *c = arg;

	for (;;) {
		uint32_t i = atomic_fetch_add(&c->next, 1);

		if (i >= c->n)
			break;
		run_one(&c->runs[i]);
		if (c->runs[i].status != SKV_OK)
			atomic_store(&run_stop, true);
	}
	skv_mutex_lock(&c->lock);
	assert(c->working > 0);
	c->working--;
	skv_cond_signal(&c->ended);
	skv_mutex_unlock(&c->lock);
	return NULL;
}

static void watch(struct crew *c, void (*progress)(uint64_t done, uint64_t all))
{
	uint64_t all = 0;

	for (uint32_t i = 0; i < c->n; i++)
		all += c->runs[i].refs->n_requests;
	skv_mutex_lock(&c->lock);
	while (c->working) {
		skv_cond_wait_ms(&c->ended, &c->lock, PROGRESS_MS);
		if (progress)
			progress(atomic_load(&run_done), all);
	}
	skv_mutex_unlock(&c->lock);
}

/* A worker interrupted because another one failed has the less useful error. */
static int first_failure(const struct crew *c, struct skv_error *err)
{
	int rc = SKV_OK;

	for (uint32_t i = 0; i < c->n; i++) {
		if (c->runs[i].status == SKV_OK ||
		    (rc != SKV_OK && c->runs[i].status == SKV_E_TIMEOUT))
			continue;
		*err = c->runs[i].err;
		rc = c->runs[i].status;
		if (rc != SKV_E_TIMEOUT)
			break;
	}
	return rc;
}

int run_all(struct run *runs, uint32_t n, uint32_t threads,
	    void (*progress)(uint64_t done, uint64_t all), struct skv_error *err)
{
	struct crew c = { .runs = runs, .n = n };
	pthread_t *thread;
	uint32_t started = 0;

	threads = threads < n ? threads : n;
	thread = skv_calloc(threads, sizeof *thread);
	if (!thread)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	skv_mutex_init(&c.lock);
	skv_cond_init(&c.ended);
	c.working = threads;
	while (started < threads && pthread_create(&thread[started], NULL, work, &c) == 0)
		started++;
	skv_mutex_lock(&c.lock);
	c.working -= threads - started;
	skv_mutex_unlock(&c.lock);
	watch(&c, progress);
	for (uint32_t i = 0; i < started; i++)
		pthread_join(thread[i], NULL);
	skv_cond_destroy(&c.ended);
	skv_mutex_destroy(&c.lock);
	skv_free(thread);
	return started || !n ? first_failure(&c, err)
			     : skv_fail(err, SKV_E_NOMEM, NULL, "no thread could be started");
}
