/*
 * grpc.h - the gRPC server: the operations of some APIs, health and reflection over HTTP/2.
 *
 * Life cycle: create (binds) - start (serves) - drain (GOAWAY, lets calls end) - quiet - destroy.
 * The service is shared with other transports and must live longer. If drain left calls running,
 * shut down the core before destroy: their completion comes from it.
 */
#ifndef SKV_GRPC_H
#define SKV_GRPC_H

#include <stdbool.h>
#include <stdint.h>

#include <skv/port.h>
#include <skv/status.h>

struct skv_grpc;
struct skv_service; /* skv/service.h */

/* Fills *o with the defaults; the caller sets the APIs. */
void skv_grpc_options_init(struct skv_port_options *o);

/* Binds the address; serves nobody yet. Without tokens only loopback. As skv_httpd_create. */
int skv_grpc_create(const struct skv_port_options *o, struct skv_service *s, struct skv_grpc **out,
		    struct skv_error *err);
/* Starts serving; the service must have its core and its workers. */
int skv_grpc_start(struct skv_grpc *g, struct skv_error *err);
uint16_t skv_grpc_port(const struct skv_grpc *g);
/* "127.0.0.1:7334"; borrowed. */
const char *skv_grpc_address(const struct skv_grpc *g);
/* Refuses new connections and calls, tells every client, and waits at most `timeout_ms` for running
 * calls. Returns how many still run. May be called again. */
uint32_t skv_grpc_drain(struct skv_grpc *g, uint32_t timeout_ms);
/* Waits at most `timeout_ms` until no call waits for the core or a worker; true if so. Required
 * before destroy. */
bool skv_grpc_quiet(struct skv_grpc *g, uint32_t timeout_ms);
/* Closes all connections and releases everything; NULL is allowed. */
void skv_grpc_destroy(struct skv_grpc *g);

#endif
