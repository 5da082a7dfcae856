/* serve.h - the running manager, as its steps share it. */
#ifndef SKV_SERVE_H
#define SKV_SERVE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <skv/store.h>

#include "main.h"

struct service {
	const struct skv_params *p;
	int log_fd;
	struct skv_store *store;
	char store_shown[SKV_STORE_SHOWN_MAX];
	struct skv_core *core;
	struct skv_service *service; /* what the transports share */
	struct skv_httpd *httpd;
	struct skv_grpc *grpc; /* NULL: off */
	struct skv_compat *compat;
	struct skv_api *pages; /* NULL: off */
	struct skv_file_looker *looker; /* of page files; NULL: they are not looked at */
	pthread_t begin; /* begin.c */
	bool has_begin;
	bool has_port_file;
	bool has_grpc_port_file;
	int ready_fd; /* the process that waits for us to serve; -1 = none, or told */
	atomic_bool stopping;
	atomic_int exit_status;
};

/* The thread that tells other managers where this one is, waits for the core to own its partition, makes the first
 * objects and opens the peer's ports. `arg` is the struct service; it ends then, or when `stopping` is set. */
void *serve_begin(void *arg);

/* Main's thread ends everything in order; who started us starts us again. Any thread. */
void serve_end_with_problem(struct service *s);

#endif
