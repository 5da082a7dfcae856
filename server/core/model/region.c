/*
 * region.c - memory for chunks of entries, made before it is needed.
 *
 * The kernel clears a region when it is first touched: in 0.1 ms, and in several where the host of
 * a virtual machine has to find memory for it. Whoever holds the write lock would wait for that,
 * and a restart would spend a third of its time so. A thread keeps a few that are touched, while
 * they are taken; REST_MS after the last one was, or when memory is full, it gives them back.
 *
 * `lock` is taken inside core->lock; nothing is called while it is held.
 */
#include <model/region.h>

#include <assert.h>
#include <pthread.h>
#include <stdint.h>

#include <skv/lock.h>
#include <skv/mem.h>

#define SPARES 4u
#define REST_MS 1000u
#define PAGE_BYTES 4096u /* the smallest page size */

struct regions {
	struct skv_mutex lock;
	struct skv_cond wake;
	void *spare[SPARES];
	uint32_t n;
	bool taken; /* since the thread looked last */
	bool ahead, running, ending;
	pthread_t thread;
};

static void *make_touched(void)
{
	volatile char *region = skv_region_alloc(true);

	for (size_t at = 0; region && at < SKV_REGION_BYTES; at += PAGE_BYTES)
		region[at] = 0;
	return (void *)region;
}

/* Makes one more. */
static void add(struct regions *r) SKV_REQUIRES(r->lock)
{
	void *region;

	skv_mutex_unlock(&r->lock);
	region = make_touched();
	skv_mutex_lock(&r->lock);
	assert(r->n < SPARES); /* no other thread adds any */
	if (region)
		r->spare[r->n++] = region;
	else
		skv_cond_wait_ms(&r->wake, &r->lock, REST_MS);
}

static void give_back(struct regions *r)
{
	while (r->n)
		skv_region_free(r->spare[--r->n]);
}

static uint32_t wanted(void)
{
	return skv_mem_level() == SKV_MEM_FREE && !skv_mem_is_small() ? SPARES : 0;
}

static void *keep(void *arg)
{
	struct regions *r = arg;

	skv_mutex_lock(&r->lock);
	while (!r->ending) {
		r->taken = false;
		if (r->n < wanted()) {
			add(r);
			continue;
		}
		skv_cond_wait_ms(&r->wake, &r->lock, REST_MS);
		if (r->ending || (r->taken && wanted()))
			continue;
		give_back(r);
		while (!r->taken && !r->ending)
			skv_cond_wait(&r->wake, &r->lock);
	}
	skv_mutex_unlock(&r->lock);
	return NULL;
}

struct regions *regions_make(bool ahead)
{
	struct regions *r = skv_calloc(1, sizeof *r);

	if (!r)
		return NULL;
	r->ahead = ahead;
	skv_mutex_init(&r->lock);
	skv_cond_init(&r->wake);
	return r;
}

void regions_free(struct regions *r)
{
	if (!r)
		return;
	skv_mutex_lock(&r->lock);
	r->ending = true;
	skv_cond_broadcast(&r->wake);
	skv_mutex_unlock(&r->lock);
	if (r->running)
		pthread_join(r->thread, NULL);
	give_back(r);
	skv_cond_destroy(&r->wake);
	skv_mutex_destroy(&r->lock);
	skv_free(r);
}

void *region_take(struct regions *r)
{
	void *region = NULL;

	skv_mutex_lock(&r->lock);
	assert(!r->ending);
	if (r->ahead && !r->running) /* without it none is made before */
		r->running = pthread_create(&r->thread, NULL, keep, r) == 0;
	if (r->n)
		region = r->spare[--r->n];
	r->taken = true;
	skv_cond_signal(&r->wake);
	skv_mutex_unlock(&r->lock);
	return region ? region : skv_region_alloc(true);
}
