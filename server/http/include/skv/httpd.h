/*
 * httpd.h - the HTTP server: some APIs of the manager on one port.
 *
 * It turns requests into calls of operations and their results into answers. Life: create (binds) - start
 * (serves) - drain (refuses new requests, lets requests end) - quiet - destroy. The service is shared with other
 * transports and must live longer; the core must be shut down before destroy if drain left requests running: their
 * completion comes from it.
 */
#ifndef SKV_HTTPD_H
#define SKV_HTTPD_H

#include <stdbool.h>
#include <stdint.h>

#include <skv/api.h>
#include <skv/status.h>

struct skv_httpd;
struct skv_service; /* skv/service.h */

struct skv_httpd_options {
	struct skv_apis apis;       /* what it serves; each is one of the service's */
	const char *listen;         /* address or host name; default "127.0.0.1" */
	uint16_t port;              /* 0 = any free one */
	bool open;                  /* any address and any Host, with tokens or without */
	const char *host_param;     /* for messages: "http_listen" */
	const char *port_param;     /* "http_port" */
	const char *port_option;    /* "--http-port" */
	const char *socket_name;    /* of a socket that may have been handed over: "http" */
	uint32_t threads;           /* 0 = one per core */
	uint32_t max_connections;
	uint32_t max_connections_per_ip; /* 0 = no bound of its own */
	uint32_t hold_ms;           /* a socket that was handed over: until skv_httpd_open, but at most so long */
	uint32_t idle_timeout_ms;   /* idle or too slow connections are closed after this */
};

/* Fills *o with the defaults; the APIs are the caller's to name. */
void skv_httpd_options_init(struct skv_httpd_options *o);

/* Binds the address; nobody is answered yet. `o`'s strings are copied. SKV_E_INVALID: address not resolvable, or
 * not loopback without tokens; SKV_E_IN_USE: port taken. Each message tells the remedy. */
int skv_httpd_create(const struct skv_httpd_options *o, struct skv_service *s, struct skv_httpd **out,
		     struct skv_error *err);
/* Begins to serve; the service is started. */
int skv_httpd_start(struct skv_httpd *f, struct skv_error *err);
/* Who waits at a socket that was handed over is taken from now on: there is something to answer. Any thread. */
void skv_httpd_open(struct skv_httpd *f);
/* The bound port. */
uint16_t skv_httpd_port(const struct skv_httpd *f);
/* "http://127.0.0.1:7333"; borrowed. */
const char *skv_httpd_url(const struct skv_httpd *f);
/* If the socket was handed over: nobody is taken from it any more, and each answer of an HTTP server ends its connection;
 * requests are answered for `ms` more. Else nothing. */
void skv_httpd_leave(struct skv_httpd *f, uint32_t ms);
/* From now on new requests of all transports are refused (not_ready) and their connections closed; waits until the
 * running ones of the HTTP transports have ended, at most `timeout_ms`. Returns how many still run. */
uint32_t skv_httpd_drain(struct skv_httpd *f, uint32_t timeout_ms);
/* Waits at most `timeout_ms` until no request of the HTTP transports is parked on the core or a worker; true if so.
 * Only then may skv_httpd_destroy be called. */
bool skv_httpd_quiet(struct skv_httpd *f, uint32_t timeout_ms);
/* Closes all connections and releases everything; NULL is allowed. */
void skv_httpd_destroy(struct skv_httpd *f);

#endif
