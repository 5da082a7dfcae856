/*
 * workers.h - a few threads for calls that may block, with a bounded queue.
 */
#ifndef SKV_WORKERS_H
#define SKV_WORKERS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <skv/lock.h>
#include <skv/status.h>

#define WORKERS 4
#define WORKERS_QUEUE 64    /* of calls of administration */
#define LOOKERS_QUEUE 4096u /* of clients' calls */

/* A call, embedded in its request. `expired`: the call waited too long and must not run. */
struct job {
	void (*run)(struct job *job, bool expired);
	struct job *next;
	uint64_t queued_ms;
};

struct workers {
	struct skv_mutex lock;
	struct skv_cond wake;
	struct job *head; /* all below protected by lock */
	struct job **tail;
	uint32_t queued, queue_max;
	bool stopping;
	pthread_t threads[WORKERS]; /* set once */
	uint32_t n_threads;
};

/* Makes a queue without threads. `queue_max`: calls that may wait. */
void skv_workers_init(struct workers *w, uint32_t queue_max);
/* Makes a queue and starts its threads. */
int skv_workers_start(struct workers *w, uint32_t queue_max, struct skv_error *err);
/* Returns false if the queue is full: the job was not taken. Any thread. */
bool skv_workers_submit(struct workers *w, struct job *job, uint64_t now_ms);
/* Runs the oldest job on the calling thread. False: there is none. */
bool skv_workers_run_next(struct workers *w);
/* Expires jobs queued before `since_ms`. */
void skv_workers_expire(struct workers *w, uint64_t since_ms);
/* Ends queued jobs as expired and joins the threads; blocks as long as a running call does. */
void skv_workers_stop(struct workers *w);

#endif
