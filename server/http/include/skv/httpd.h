/*
 * httpd.h - the HTTP server: some APIs of the manager on one port.
 *
 * Turns requests into operations and results into answers. Life cycle: create (binds) - start
 * (serves) - drain (refuses new requests, lets running ones end) - quiet - destroy. The service is
 * shared with other transports and must live longer. If drain left requests running, shut down the
 * core before destroy: their completion comes from it.
 */
#ifndef SKV_HTTPD_H
#define SKV_HTTPD_H

#include <stdbool.h>
#include <stdint.h>

#include <skv/port.h>
#include <skv/status.h>

struct skv_httpd;
struct skv_service; /* skv/service.h */

/* Fills *o with the defaults; the caller sets the APIs. */
void skv_httpd_options_init(struct skv_port_options *o);

/* Binds the address; serves nobody yet. `o`'s strings are copied. SKV_E_INVALID: address does not
 * resolve, or is not loopback without tokens; SKV_E_IN_USE: port taken. The message names the
 * remedy. */
int skv_httpd_create(const struct skv_port_options *o, struct skv_service *s,
		     struct skv_httpd **out, struct skv_error *err);
/* Starts serving; the service must be started. */
int skv_httpd_start(struct skv_httpd *f, struct skv_error *err);
/* Accepts the clients waiting at an inherited socket, now that there is something to answer. Any
 * thread. */
void skv_httpd_open(struct skv_httpd *f);
/* The bound port. */
uint16_t skv_httpd_port(const struct skv_httpd *f);
/* "http://127.0.0.1:7333"; borrowed. */
const char *skv_httpd_url(const struct skv_httpd *f);
/* Inherited socket: accepts no more connections, and every HTTP answer closes its connection;
 * requests are still answered for `ms`. Otherwise no effect. */
void skv_httpd_leave(struct skv_httpd *f, uint32_t ms);
/* Refuses new requests of all transports (not_ready) and closes their connections; waits at most
 * `timeout_ms` for running ones of the HTTP transports. Returns how many still run. */
uint32_t skv_httpd_drain(struct skv_httpd *f, uint32_t timeout_ms);
/* Waits at most `timeout_ms` until no request of the HTTP transports waits for the core or a
 * worker; true if so. Required before skv_httpd_destroy. */
bool skv_httpd_quiet(struct skv_httpd *f, uint32_t timeout_ms);
/* Closes all connections and releases everything; NULL is allowed. */
void skv_httpd_destroy(struct skv_httpd *f);

#endif
