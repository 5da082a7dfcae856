/*
 * service.h - what all fronts of one manager share: core, tokens, counters, workers, readiness.
 *
 * Made by the HTTP front, which is always there, and lent to the others (kvb_front_service). Fields
 * are set before the fronts serve and then only read, but for atomics and what has a lock of its own.
 */
#ifndef KVB_SERVICE_H
#define KVB_SERVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <kvb/auth.h>
#include <kvb/metrics.h>
#include <kvb/status.h>
#include <kvb/workers.h>

struct kvb_core;

#define KVB_QUEUE_WAIT_MS 30000u /* a blocking call that found no worker by then is given up */

struct kvb_service {
	struct kvb_core *core; /* outlives the fronts */
	struct auth auth;
	struct metrics metrics;
	struct workers workers;
	char url[300];           /* of the HTTP port */
	uint64_t body_max;       /* bytes of one request */
	uint64_t body_total_max; /* bytes of all requests held at a time */
	uint32_t slow_ms;        /* 0 = no call is slow */
	bool log_refused;
	bool metrics_open;
	uint32_t id_prefix; /* of generated request ids */
	atomic_uint_fast32_t id_next;
	atomic_uint_fast64_t body_held;
	atomic_bool draining; /* new calls are refused */
	atomic_bool holding;  /* not ready yet, whatever the core says */
};

/* Reads the tokens. Everything else is the caller's to fill. */
int kvb_service_init(struct kvb_service *s, const char *tokens_file, struct kvb_error *err);
void kvb_service_destroy(struct kvb_service *s);
/* KVB_OK when this manager can do its work now: what /readyz tells. Any thread. */
int kvb_service_ready(struct kvb_service *s, struct kvb_error *err);
/* Counts `n` more bytes of requests; false, and nothing counted, if that is over the bound. Any thread. */
bool kvb_service_hold(struct kvb_service *s, uint64_t n);
void kvb_service_let_go(struct kvb_service *s, uint64_t n);

/* ---- listening ------------------------------------------------------------------------------- */

struct kvb_listen {
	const char *host;
	uint16_t port;          /* 0 = any free one */
	const char *host_param; /* for messages: "http_listen" */
	const char *port_param; /* "http_port" */
	const char *port_option; /* "--http-port" */
};

struct kvb_bound {
	int fd; /* listening, not blocking, close on exec */
	int family;
	uint16_t port;
	char text[280]; /* "127.0.0.1:7333", "[::1]:7333" */
};

/* Without `tokens` only loopback is bound. KVB_E_INVALID, KVB_E_IN_USE, ... with the remedy. */
int kvb_listen(const struct kvb_listen *l, bool tokens, struct kvb_bound *out, struct kvb_error *err);

#endif
