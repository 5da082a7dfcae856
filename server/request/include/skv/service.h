/*
 * service.h - shared by all transports of a manager: core, APIs, tokens, counters, workers,
 * readiness.
 *
 * Created by main and lent to every transport. Life cycle: create (reads tokens) - transports are
 * created - start (with the core, workers run) - transports serve, drain and are destroyed -
 * destroy. Fields are set before the transports serve and then only read, except atomics and what
 * has its own lock.
 */
#ifndef SKV_SERVICE_H
#define SKV_SERVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <skv/api.h>
#include <skv/audit.h>
#include <skv/auth.h>
#include <skv/forward.h>
#include <skv/guard.h>
#include <skv/hold.h>
#include <skv/inherit.h>
#include <skv/leader.h>
#include <skv/members.h>
#include <skv/metrics.h>
#include <skv/pace.h>
#include <skv/pause.h>
#include <skv/spread.h>
#include <skv/status.h>
#include <skv/tenants.h>
#include <skv/tokens.h>
#include <skv/workers.h>

struct skv_cluster;

#define SKV_QUEUE_WAIT_MS 30000u /* a blocking call that gets no worker within this time fails */

struct skv_service_options {
	/* All APIs of any transport; the first one also serves the manager's own pages. */
	struct skv_api *const *apis;
	size_t n_apis;
	const char *tokens_file; /* "" = no tokens: callers are admin of tenant "default" */
	const char *audit_file;  /* "" = none: skv/audit.h */
	uint32_t token_failures; /* wrong tokens of one address at once; 0 = any: skv/guard.h */
	uint64_t body_max;       /* bytes of one request */
	uint64_t body_total_max; /* bytes held by all calls: see skv/hold.h */
	/* of it: skv_hold_options */
	unsigned body_reserve_percent, body_tenant_percent, body_address_percent;
	uint64_t answer_max;     /* bytes of one answer */
	struct skv_pace_limit pace; /* of requests' bodies, and of answers */
	bool forward;     /* forward calls of other managers' partitions: skv/forward.h */
	uint32_t hold_ms; /* how long calls wait while ownership or the store moves; 0 = not */
	uint32_t slow_ms;        /* calls at least this long are logged; 0 = none */
	bool hold_ready; /* not ready until skv_service_release_ready */
	bool metrics_open;       /* /metrics without token */
	/* Connections of all ports together; 0 = each port has its own limit only. */
	uint32_t connections_max;
};

struct skv_service {
	/* Outlives the transports; NULL before start, and for an fs-master. */
	struct skv_cluster *cluster;
	struct auth auth;
	struct skv_tokens tokens; /* in the store */
	struct skv_tenants tenants;
	struct skv_guard guard;
	struct skv_audit audit;
	struct metrics metrics;
	struct workers workers; /* for administration */
	struct workers lookers; /* for clients' calls that look at a slab file */
	struct leader leader;
	struct skv_members members; /* main starts and stops it */
	struct skv_spread spread; /* the same */
	struct skv_pause pause;
	struct skv_forward forward;
	struct skv_inherited inherited; /* sockets not taken by a transport yet */
	struct skv_service_options o; /* without the strings */
	/* of them, what skv_service_change may change */
	atomic_uint_fast32_t slow_ms;
	atomic_bool metrics_open;
	atomic_uint connections; /* of all ports */
	atomic_bool connections_told; /* connections_max was reached and logged */
	const struct skv_api *apis[SKV_APIS_MAX];
	size_t n_apis;
	char url[SKV_URL_MAX]; /* of the first HTTP port */
	/* The same for clients of other managers; "" = not published. */
	char advertised[SKV_URL_MAX];
	char peer[SKV_URL_MAX]; /* where other managers send calls on to; "" = nowhere */
	uint32_t id_prefix; /* of generated request ids */
	atomic_uint_fast32_t id_next;
	struct skv_holds holds; /* bytes held by calls */
	atomic_bool leaving;  /* every HTTP answer closes its connection */
	atomic_bool draining; /* new calls are refused */
	/* Not ready yet, even if the core is. */
	_Atomic enum { HOLDING_NOT, HOLDING, HOLDING_CALLS } holding;
	bool started;
};

/* Returns true while the service shuts down: then no call should wait for anything to become ready.
 * Any thread. */
static inline bool skv_service_ends(struct skv_service *s)
{
	return atomic_load(&s->leaving) || atomic_load(&s->draining);
}

/* Fills *o with the defaults; the caller sets the APIs. */
void skv_service_options_init(struct skv_service_options *o);
/* Reads the tokens and numbers the operations of the APIs, which outlive it.
 * SKV_E_INVALID with the remedy. */
int skv_service_create(const struct skv_service_options *o, struct skv_service **out,
		       struct skv_error *err);
/* Calls may come from now on. The core may still be recovering or a standby; NULL: none, and no API
 * may have routes that need one. */
int skv_service_start(struct skv_service *s, struct skv_cluster *cluster, struct skv_error *err);
/* Blocks as long as a call on a worker does. After all transports. NULL is allowed. */
void skv_service_destroy(struct skv_service *s);
/* Rereads the tokens file and opens the audit log again; where one fails the old stays. One thread
 * at a time. */
int skv_service_reload(struct skv_service *s, struct skv_error *err);
/* Takes over slow_ms and metrics_open, for calls that end, or begin, from now on. Any
 * thread. */
void skv_service_change(struct skv_service *s, const struct skv_service_options *o);
/* Ends the wait of hold_ready, when the default objects are made, or are another manager's task.
 * Any thread. */
void skv_service_release_ready(struct skv_service *s);
/* A new store: until then, calls wait, too. */
void skv_service_hold_calls(struct skv_service *s);
/* SKV_E_NOT_READY while calls wait: no storage exists yet, or the first ones are being made. */
int skv_service_begun(struct skv_service *s, struct skv_error *err);
/* SKV_OK if this manager can work now, as in /readyz. Any thread. */
int skv_service_ready(struct skv_service *s, struct skv_error *err);

/* A page for metrics: of as many objects as answer_max has room for. expose.c. */
struct skv_page skv_metrics_page(const struct skv_service *s);

/* Counts a new connection of any port. False, and nothing counted: connections_max are open. Any
 * thread. */
bool skv_service_connect(struct skv_service *s);
/* Uncounts one that was closed. Any thread. */
void skv_service_disconnect(struct skv_service *s);

/* ---- listening ------------------------------------------------------------------------------- */

struct skv_listen {
	const char *host;
	uint16_t port;          /* 0 = any free port */
	const char *host_param; /* for messages: "http_listen" */
	const char *port_param; /* "http_port" */
	const char *port_option; /* "--http-port" */
	const char *name;        /* of an inherited socket: "http" */
	struct skv_inherited *inherited; /* the inherited sockets; NULL = none */
};

struct skv_bound {
	int fd; /* listening, not blocking, close on exec */
	bool inherited; /* the socket outlives the process */
	int family;
	uint16_t port;
	char text[280]; /* "127.0.0.1:7333", "[::1]:7333" */
};

/* Takes the inherited socket for this port, or binds one. Unless `any`, only loopback is accepted.
 * SKV_E_INVALID, SKV_E_IN_USE, ... with the remedy. */
int skv_listen(const struct skv_listen *l, bool any, struct skv_bound *out, struct skv_error *err);

#endif
