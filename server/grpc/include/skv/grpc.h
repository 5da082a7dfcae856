/*
 * grpc.h - the gRPC server: the operations of some APIs, health and reflection over HTTP/2.
 *
 * Life: create (binds) - start (serves) - drain (GOAWAY, lets calls end) - quiet - destroy. The service is
 * shared with other transports and must live longer. The core must be shut down before destroy if drain left calls running: their completion comes from it.
 */
#ifndef SKV_GRPC_H
#define SKV_GRPC_H

#include <stdbool.h>
#include <stdint.h>

#include <skv/status.h>

#include <skv/api.h>

struct skv_grpc;
struct skv_service; /* skv/service.h */

struct skv_grpc_options {
	struct skv_apis apis; /* what it serves; each is one of the service's */
	const char *listen; /* address or host name */
	uint16_t port;      /* 0 = any free one */
	bool open;               /* any address, with tokens or without */
	const char *host_param;  /* for messages: "grpc_listen" */
	const char *port_param;  /* "grpc_port" */
	const char *port_option; /* "--grpc-port" */
	const char *socket_name; /* of a socket that may have been handed over: "grpc" */
	uint32_t threads;   /* 0 = one per core */
	uint32_t max_connections;
	uint32_t max_connections_per_ip; /* 0 = no bound of its own */
	uint32_t max_streams;     /* calls at a time on one connection */
	uint32_t idle_timeout_ms; /* idle or too slow connections and calls are closed after this */
};

/* Fills *o with the defaults; the APIs are the caller's to name. */
void skv_grpc_options_init(struct skv_grpc_options *o);

/* Binds the address; nobody is answered yet. Without tokens only loopback. As skv_httpd_create. */
int skv_grpc_create(const struct skv_grpc_options *o, struct skv_service *s, struct skv_grpc **out,
		    struct skv_error *err);
/* Begins to serve; the service must have its core and its workers. */
int skv_grpc_start(struct skv_grpc *g, struct skv_error *err);
uint16_t skv_grpc_port(const struct skv_grpc *g);
/* "127.0.0.1:7334"; borrowed. */
const char *skv_grpc_address(const struct skv_grpc *g);
/* Takes no new connections and calls, tells every client so, waits at most `timeout_ms` until the running calls
 * have ended. Returns how many still run. May be called again. */
uint32_t skv_grpc_drain(struct skv_grpc *g, uint32_t timeout_ms);
/* Waits at most `timeout_ms` until no call waits for the core or a worker; true if so. Only then destroy. */
bool skv_grpc_quiet(struct skv_grpc *g, uint32_t timeout_ms);
/* Closes all connections and releases everything; NULL is allowed. */
void skv_grpc_destroy(struct skv_grpc *g);

#endif
