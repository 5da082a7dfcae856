/*
 * service.h - what all transports of one manager share: core, APIs, tokens, counters, workers, readiness.
 *
 * Made by main and lent to every transport. Life: create (reads tokens) - transports are created - start (the core is
 * there, workers run) - transports serve, drain and are destroyed - destroy. Fields are set before the transports serve
 * and then only read, but for atomics and what has a lock of its own.
 */
#ifndef SKV_SERVICE_H
#define SKV_SERVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <skv/api.h>
#include <skv/auth.h>
#include <skv/hold.h>
#include <skv/inherit.h>
#include <skv/leader.h>
#include <skv/metrics.h>
#include <skv/pace.h>
#include <skv/status.h>
#include <skv/workers.h>

struct skv_core;

#define SKV_QUEUE_WAIT_MS 30000u /* a blocking call that found no worker by then is given up */

struct skv_service_options {
	struct skv_api *const *apis; /* all that any transport serves; the first one's pages are the manager's */
	size_t n_apis;
	const char *tokens_file; /* "" = no tokens: callers are admin of tenant "default" */
	uint64_t body_max;       /* bytes of one request */
	uint64_t body_total_max; /* bytes that all calls hold at a time: see skv/hold.h */
	unsigned body_reserve_percent, body_tenant_percent, body_address_percent; /* of it: skv_hold_options */
	uint64_t answer_max;     /* bytes of one answer */
	struct skv_pace_limit pace; /* of requests' bodies, and of answers */
	uint32_t slow_ms;        /* calls at least this long are logged; 0 = none */
	bool hold_ready;         /* not ready until skv_service_release_ready */
	bool log_refused;        /* 4xx at level info, else debug */
	bool metrics_open;       /* /metrics without token */
};

struct skv_service {
	struct skv_core *core; /* outlives the transports; NULL before start, and of an fs-master */
	struct auth auth;
	struct metrics metrics;
	struct workers workers;
	struct leader leader;
	struct skv_inherited inherited; /* sockets that no front has taken yet */
	struct skv_service_options o; /* without the strings */
	const struct skv_api *apis[SKV_APIS_MAX];
	size_t n_apis;
	char url[SKV_URL_MAX]; /* of the first HTTP port */
	char advertised[SKV_URL_MAX]; /* the same for clients of other managers; "" = they are told none */
	uint32_t id_prefix; /* of generated request ids */
	atomic_uint_fast32_t id_next;
	struct skv_holds holds; /* what calls hold */
	atomic_bool leaving;  /* each answer over HTTP ends its connection */
	atomic_bool draining; /* new calls are refused */
	atomic_bool holding;  /* not ready yet, whatever the core says */
	bool started;
};

/* It was told to end: who waits for something to become ready waits for nothing. Any thread. */
static inline bool skv_service_ends(struct skv_service *s) { return atomic_load(&s->leaving) || atomic_load(&s->draining); }

/* Fills *o with the defaults; the APIs are the caller's to name. */
void skv_service_options_init(struct skv_service_options *o);
/* Reads the tokens and numbers the operations of the APIs, which outlive it. SKV_E_INVALID with the remedy. */
int skv_service_create(const struct skv_service_options *o, struct skv_service **out, struct skv_error *err);
/* Calls may come from now on. The core may still be recovering or a standby; NULL: there is none, and no API may have
 * routes that need one. */
int skv_service_start(struct skv_service *s, struct skv_core *core, struct skv_error *err);
/* Blocks as long as a call on a worker does. The transports are gone. NULL is allowed. */
void skv_service_destroy(struct skv_service *s);
/* Reads the tokens file again; on failure the old tokens stay in force. Any thread. */
int skv_service_reload(struct skv_service *s, struct skv_error *err);
/* What hold_ready waited for (default objects) is done. Any thread. */
void skv_service_release_ready(struct skv_service *s);
/* SKV_OK when this manager can do its work now: what /readyz tells. Any thread. */
int skv_service_ready(struct skv_service *s, struct skv_error *err);
/* All families of /metrics; `a` is the caller's scratch. Any thread. */
void skv_service_expose(struct skv_service *s, struct skv_arena *a, struct skv_buf *out);

/* ---- listening ------------------------------------------------------------------------------- */

struct skv_listen {
	const char *host;
	uint16_t port;          /* 0 = any free one */
	const char *host_param; /* for messages: "http_listen" */
	const char *port_param; /* "http_port" */
	const char *port_option; /* "--http-port" */
	const char *name;        /* of a socket that was handed over: "http" */
	struct skv_inherited *inherited; /* those; NULL = none */
};

struct skv_bound {
	int fd; /* listening, not blocking, close on exec */
	bool inherited; /* it outlives the process */
	int family;
	uint16_t port;
	char text[280]; /* "127.0.0.1:7333", "[::1]:7333" */
};

/* Takes the socket that was handed over for this port, or binds one. Unless `any` only loopback will do. SKV_E_INVALID, SKV_E_IN_USE, ... with the remedy. */
int skv_listen(const struct skv_listen *l, bool any, struct skv_bound *out, struct skv_error *err);

#endif
