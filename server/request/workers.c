/*
 * workers.c - worker threads for calls that wait for a file system, or for the store.
 *
 * A dead mount can hold a call for ever; these threads take it, so that the threads that serve HTTP
 * never do. Owns the queue (intrusive list, oldest first) and the threads. One lock, held only to
 * link and unlink jobs, never while a job runs. A job that waited too long because all workers hang
 * is ended by skv_workers_expire, called from the transport's watch thread.
 */
#include <skv/workers.h>

#include <assert.h>
#include <string.h>

/* Unlinks the oldest job if it was queued before `since_ms` (UINT64_MAX: any). */
static struct job *pop_locked(struct workers *w, uint64_t since_ms) SKV_REQUIRES(w->lock)
{
	struct job *job = w->head;

	assert(skv_mutex_held(&w->lock));
	if (!job || job->queued_ms > since_ms)
		return NULL;
	assert(w->queued > 0);
	w->head = job->next;
	if (!w->head)
		w->tail = &w->head;
	w->queued--;
	return job;
}

/* Runs the oldest job without the lock. False: there is none. */
static bool run_next_locked(struct workers *w) SKV_REQUIRES(w->lock)
{
	struct job *job = pop_locked(w, UINT64_MAX);

	if (!job)
		return false;
	skv_mutex_unlock(&w->lock);
	job->run(job, false);
	skv_mutex_lock(&w->lock);
	return true;
}

bool skv_workers_run_next(struct workers *w)
{
	bool ran;

	skv_mutex_lock(&w->lock);
	ran = run_next_locked(w);
	skv_mutex_unlock(&w->lock);
	return ran;
}

static void *work(void *arg)
{
	struct workers *w = arg;

	skv_thread_waits = true;
	skv_mutex_lock(&w->lock);
	while (!w->stopping)
		if (!run_next_locked(w))
			skv_cond_wait(&w->wake, &w->lock);
	skv_mutex_unlock(&w->lock);
	return NULL;
}

void skv_workers_init(struct workers *w, uint32_t queue_max)
{
	assert(queue_max > 0);
	memset(w, 0, sizeof *w);
	skv_mutex_init(&w->lock);
	skv_cond_init(&w->wake);
	w->tail = &w->head;
	w->queue_max = queue_max;
}

int skv_workers_start(struct workers *w, uint32_t queue_max, struct skv_error *err)
{
	skv_workers_init(w, queue_max);
	for (; w->n_threads < WORKERS; w->n_threads++) {
		if (pthread_create(&w->threads[w->n_threads], NULL, work, w) != 0) {
			skv_workers_stop(w);
			return skv_fail(err, SKV_E_NOMEM, NULL, "cannot start a thread");
		}
	}
	return SKV_OK;
}

bool skv_workers_submit(struct workers *w, struct job *job, uint64_t now_ms)
{
	bool room;

	skv_mutex_lock(&w->lock);
	room = w->queued < w->queue_max && !w->stopping;
	if (room) {
		job->next = NULL;
		job->queued_ms = now_ms;
		assert(!*w->tail);
		*w->tail = job;
		w->tail = &job->next;
		w->queued++;
		skv_cond_signal(&w->wake);
	}
	skv_mutex_unlock(&w->lock);
	return room;
}

void skv_workers_expire(struct workers *w, uint64_t since_ms)
{
	for (;;) {
		struct job *job;

		skv_mutex_lock(&w->lock);
		job = pop_locked(w, since_ms);
		skv_mutex_unlock(&w->lock);
		if (!job)
			return;
		job->run(job, true);
	}
}

void skv_workers_stop(struct workers *w)
{
	skv_mutex_lock(&w->lock);
	w->stopping = true;
	skv_cond_broadcast(&w->wake);
	skv_mutex_unlock(&w->lock);
	for (uint32_t i = 0; i < w->n_threads; i++)
		pthread_join(w->threads[i], NULL);
	skv_workers_expire(w, UINT64_MAX);
	assert(!w->head && w->queued == 0);
	skv_cond_destroy(&w->wake);
	skv_mutex_destroy(&w->lock);
}
