/* serve.h - the running manager, as its steps share it. */
#ifndef KVB_SERVE_H
#define KVB_SERVE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "main.h"

struct service {
	const struct kvb_params *p;
	int log_fd;
	struct kvb_store *store;
	struct kvb_core *core;
	struct kvb_service *service; /* what the fronts share */
	struct kvb_front *front;
	struct kvb_grpc *grpc; /* NULL: off */
	struct kvb_compat *compat;
	struct kvb_api *pages; /* NULL: off */
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
