/*
 * pause.h - calls that wait while the ownership moves to another manager or the store is
 * unreachable: clients see a failover as a pause.
 *
 * A call of a HELD route that ends with such an error is kept, and run again as soon as this
 * manager can answer for its partition; after hold_ms, or as long as its API says, it fails with
 * the error. No thread waits for it, its body counts as held (skv/hold.h). One thread checks all
 * waiting calls.
 */
#ifndef SKV_PAUSE_H
#define SKV_PAUSE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <skv/core.h>
#include <skv/lock.h>

struct skv_request;

/* Of a call, in it. */
struct skv_wait {
	struct skv_done done; /* the transport's */
	int (*run)(struct skv_request *c); /* runs it once more */
	struct skv_request *next;
	uint64_t since_ms, until_ms, again_ms; /* 0: it has not waited yet */
	int status;                            /* result of the wait */
};

struct skv_pause {
	bool started; /* set once */
	pthread_t thread;
	struct skv_mutex lock; /* protects the following members */
	struct skv_cond wake;
	struct skv_request *waiting;
	bool stopping;
	uint64_t begun_ms; /* arrival of the first waiting call; 0: none waits */
	uint64_t held, failed; /* since then */
	/* ms, when a call for the partition was last given up; 0: never */
	atomic_uint_fast64_t gave_up_ms[SKV_MAX_PARTITIONS];
};

int skv_pause_start(struct skv_pause *p, struct skv_error *err);
/* No call waits any more, and none comes. Nothing if it was not started. */
void skv_pause_stop(struct skv_pause *p);
/* Takes a call that has ended with `status` if it helps to wait: then it completes later. */
bool skv_pause_call(struct skv_request *c, int status);
/* Returns true if a call that waited and failed has waited as long as it may, or without an owner
 * to wait for. False: its result could not be returned, because the ownership was lost just
 * then. */
bool skv_pause_was_vain(struct skv_request *c);
/* For an API that answers a call though it failed: for a moment others for the same partition need
 * not wait. */
void skv_pause_give_up(struct skv_request *c);
bool skv_pause_is_hopeless(struct skv_request *c);

#endif
