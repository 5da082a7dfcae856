/* serve.h - the running manager, shared by its steps. */
#ifndef SKV_SERVE_H
#define SKV_SERVE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <skv/store.h>

#include "main.h"

struct service {
	const struct skv_params *p; /* of the start */
	const struct skv_run *run;
	struct skv_params *now; /* as SIGHUP has read them last; NULL: not yet */
	int log_fd;
	struct skv_store *store;
	char store_shown[SKV_STORE_SHOWN_MAX];
	struct skv_cluster *cluster;
	struct skv_service *service; /* shared by the transports */
	struct skv_httpd *httpd;
	struct skv_grpc *grpc; /* NULL: off */
	struct skv_compat *compat;
	struct skv_api *pages; /* NULL: off */
	struct skv_file_looker *looker; /* of page files; NULL: none are watched */
	pthread_t begin; /* begin.c */
	bool has_begin;
	pthread_t watch; /* watch.c */
	bool has_watch;
	atomic_bool unwatched;
	int ready_fd; /* for the process that waits for us to serve; -1 = none, or done */
	atomic_bool stopping;
	atomic_int exit_status;
};

/* Thread that publishes this manager's address, waits for the core to own its partition, creates
 * the first objects and opens KVCM's ports. `arg` is the struct service; ends then, or when
 * `stopping` is set. */
void *serve_begin(void *arg);

/* watch.c: a thread that logs calls of the store that hang, in a file system for example, and ends
 * the process when one keeps it from ending. Without memory for a thread nothing is watched. */
void serve_watch(struct service *s);
void serve_unwatch(struct service *s);

/* reload.c: SIGHUP. */
void serve_reload(struct service *s);
void serve_forget_params(struct service *s);

/* The main thread shuts down in order, with this exit status; the first call counts. Any thread. */
void serve_end(struct service *s, int status);

#endif
