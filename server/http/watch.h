/*
 * watch.h - the open connections and their deadlines.
 */
#ifndef SKV_HTTPD_WATCH_H
#define SKV_HTTPD_WATCH_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <skv/lock.h>
#include <skv/pace.h>
#include <skv/status.h>

/* The data flow of a connection that has to keep the minimum rate. */
enum flow { FLOW_NONE, FLOW_BODY, FLOW_ANSWER, FLOWS };

/* A connection as the watch sees it; part of struct conn. */
struct watched {
	struct watched *prev; /* both protected by watch.lock */
	struct watched *next;
	int fd; /* valid while linked */
	atomic_uint_fast64_t deadline_ms; /* 0 = none: the request is with the core or a worker */
	_Atomic uint32_t phase;           /* number of the connection's phase * FLOWS + its flow */
	uint32_t seen; /* the phase that `pace` is about; protected by watch.lock */
	struct skv_pace pace;             /* the same */
};

struct watch {
	struct skv_mutex lock;
	struct skv_cond wake;
	struct watched head; /* ring, protected by lock */
	bool stopping;       /* protected by lock */
	atomic_uint_fast64_t open;
	uint32_t interval_ms;
	struct skv_pace_limit limit;
	void (*tick)(void *ctx, uint64_t now_ms,
		     uint32_t dropped); /* after each round, without lock */
	void *ctx;
	pthread_t thread;
};

/* Starts the thread: every interval_ms it shuts down connections that are past their deadline,
 * or slower than the limit. */
int skv_watch_start(struct watch *w, uint32_t interval_ms, const struct skv_pace_limit *limit,
		    void (*tick)(void *ctx, uint64_t now_ms, uint32_t dropped), void *ctx,
		    struct skv_error *err);
void skv_watch_stop(struct watch *w); /* joins; no connection may be left */
void skv_watch_add(struct watch *w, struct watched *c);
/* Must return before the connection's descriptor is closed. */
void skv_watch_remove(struct watch *w, struct watched *c);

#endif
