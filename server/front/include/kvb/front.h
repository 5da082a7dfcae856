/*
 * front.h - the HTTP front: every API of the manager on one port.
 *
 * It decodes requests into the structs of kvb/ops.h, calls the core, encodes the answers. Life:
 * create (reads tokens, binds) - start (serves) - drain (stops accepting, lets requests end) -
 * destroy. The core must outlive the front, and must be shut down before destroy if drain left
 * requests running: their completion comes from it.
 */
#ifndef KVB_FRONT_H
#define KVB_FRONT_H

#include <stdbool.h>
#include <stdint.h>

#include <kvb/status.h>

struct kvb_core;
struct kvb_front;
struct kvb_service; /* kvb/service.h */

struct kvb_front_options {
	const char *listen;         /* address or host name; default "127.0.0.1" */
	uint16_t port;              /* 0 = any free one */
	uint32_t threads;           /* 0 = one per core */
	const char *tokens_file;    /* "" = no tokens: callers are admin of tenant "default" */
	uint64_t body_max;          /* bytes of one request body */
	uint64_t body_total_max;    /* bytes of all bodies held at a time */
	uint32_t max_connections;
	uint32_t max_connections_per_ip; /* 0 = no bound of its own */
	uint32_t idle_timeout_ms;   /* idle or too slow connections are closed after this */
	bool hold_ready;            /* /readyz is 503 until kvb_front_release_ready */
	uint32_t slow_ms;           /* requests at least this long are logged; 0 = none */
	bool log_refused;           /* 4xx at level info, else debug */
	bool metrics_open;          /* /metrics without token */
};

/* Fills *o with the defaults. */
void kvb_front_options_init(struct kvb_front_options *o);

/* Reads the tokens and binds the address; nobody is answered yet. `o`'s strings are copied.
 * KVB_E_INVALID: tokens file unreadable or open to everybody, address not resolvable, address not
 * loopback without tokens; KVB_E_IN_USE: port taken. Each message tells the remedy. */
int kvb_front_create(const struct kvb_front_options *o, struct kvb_front **out,
		     struct kvb_error *err);
/* Begins to serve. The core may still be recovering or a standby. */
int kvb_front_start(struct kvb_front *f, struct kvb_core *core, struct kvb_error *err);
/* What other fronts of this manager share with it, from create on. They must be destroyed first. */
struct kvb_service *kvb_front_service(struct kvb_front *f);
/* The bound port. */
uint16_t kvb_front_port(const struct kvb_front *f);
/* "http://127.0.0.1:7333"; borrowed. */
const char *kvb_front_url(const struct kvb_front *f);
/* Reads the tokens file again; on failure the old tokens stay in force. Any thread. */
int kvb_front_reload(struct kvb_front *f, struct kvb_error *err);
/* What /readyz was held for (default objects) is done. Any thread. */
void kvb_front_release_ready(struct kvb_front *f);
/* From now on new requests are answered 503 not_ready and their connections closed; waits until the
 * running ones have ended, at most `timeout_ms`. Returns how many still run. */
uint32_t kvb_front_drain(struct kvb_front *f, uint32_t timeout_ms);
/* Waits at most `timeout_ms` until no request is parked on the core or a worker; true if so. Only
 * then may kvb_front_destroy be called. */
bool kvb_front_quiet(struct kvb_front *f, uint32_t timeout_ms);
/* Closes all connections and releases everything. */
void kvb_front_destroy(struct kvb_front *f);

#endif
