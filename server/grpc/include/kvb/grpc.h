/*
 * grpc.h - the gRPC front: the operations of some APIs, health and reflection over HTTP/2.
 *
 * Life: create (binds) - start (serves) - drain (GOAWAY, lets calls end) - quiet - destroy. The service is
 * shared with other fronts and must live longer. The core must be shut down before destroy if drain left calls running: their completion comes from it.
 */
#ifndef KVB_GRPC_H
#define KVB_GRPC_H

#include <stdbool.h>
#include <stdint.h>

#include <kvb/status.h>

#include <kvb/api.h>

struct kvb_grpc;
struct kvb_service; /* kvb/service.h */

struct kvb_grpc_options {
	struct kvb_apis apis; /* what it serves; each is one of the service's */
	const char *listen; /* address or host name */
	uint16_t port;      /* 0 = any free one */
	bool open;               /* any address, with tokens or without */
	const char *host_param;  /* for messages: "grpc_listen" */
	const char *port_param;  /* "grpc_port" */
	const char *port_option; /* "--grpc-port" */
	const char *socket_name; /* of a socket that may have been handed over: "grpc" */
	uint32_t threads;   /* 0 = one per core */
	uint32_t max_connections;
	uint32_t max_streams;     /* calls at a time on one connection */
	uint32_t idle_timeout_ms; /* idle or too slow connections and calls are closed after this */
};

/* Fills *o with the defaults; the APIs are the caller's to name. */
void kvb_grpc_options_init(struct kvb_grpc_options *o);

/* Binds the address; nobody is answered yet. Without tokens only loopback. As kvb_front_create. */
int kvb_grpc_create(const struct kvb_grpc_options *o, struct kvb_service *s, struct kvb_grpc **out,
		    struct kvb_error *err);
/* Begins to serve; the service must have its core and its workers. */
int kvb_grpc_start(struct kvb_grpc *g, struct kvb_error *err);
uint16_t kvb_grpc_port(const struct kvb_grpc *g);
/* "127.0.0.1:7334"; borrowed. */
const char *kvb_grpc_address(const struct kvb_grpc *g);
/* Takes no new connections and calls, tells every client so, waits at most `timeout_ms` until the running calls
 * have ended. Returns how many still run. May be called again. */
uint32_t kvb_grpc_drain(struct kvb_grpc *g, uint32_t timeout_ms);
/* Waits at most `timeout_ms` until no call waits for the core or a worker; true if so. Only then destroy. */
bool kvb_grpc_quiet(struct kvb_grpc *g, uint32_t timeout_ms);
/* Closes all connections and releases everything; NULL is allowed. */
void kvb_grpc_destroy(struct kvb_grpc *g);

#endif
