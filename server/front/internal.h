/*
 * internal.h - the front's objects: the front, a connection, the request on it.
 */
#ifndef KVB_FRONT_INTERNAL_H
#define KVB_FRONT_INTERNAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <microhttpd.h>

#include <kvb/arena.h>
#include <kvb/bytes.h>
#include <kvb/core.h>
#include <kvb/front.h>
#include <kvb/ops.h>
#include <kvb/v1_codec.h>

#include "auth.h"
#include "metrics.h"
#include "routes.h"
#include "watch.h"
#include "workers.h"

#define HEADER_MAX (16u * 1024)     /* bytes of a request's header: 431 above it */
#define CONNECTION_POOL (64u * 1024) /* libmicrohttpd's memory per connection: its own 431 */
#define DRAIN_NOW (1u << 20)        /* longer bodies of refused requests are not waited for */
#define KEEP_BODY (64u * 1024)      /* a body buffer up to this is kept for the next request */
#define SLOW_BYTES_PER_MS 64u       /* each so many bytes moved buy a connection 1 ms more */
#define QUEUE_WAIT_MS 30000u        /* a blocking call that found no worker by then is given up */
#define REQUEST_ID_MAX 64

struct kvb_front {
	struct kvb_front_options o; /* strings owned */
	struct kvb_core *core;
	struct auth auth;
	struct metrics metrics;
	struct watch watch;
	struct workers workers;
	struct MHD_Daemon *daemon;
	int listen_fd; /* -1 once it is the daemon's */
	int family;
	bool loopback;
	uint16_t port;
	char url[300];
	uint32_t id_prefix; /* of generated request ids */
	atomic_uint_fast32_t id_next;
	atomic_uint_fast32_t in_flight;
	atomic_uint_fast32_t parked;
	atomic_uint_fast64_t body_held;
	atomic_bool draining;
	atomic_bool holding; /* /readyz */
};

/* A request that waits: its thread of libmicrohttpd goes on with others meanwhile. */
enum parking {
	PARK_RUNNING, /* handed over; the HTTP thread has not suspended the connection yet */
	PARK_PARKED,  /* suspended: who completes the request resumes it */
	PARK_DONE,    /* completed: status is set */
};

struct kvb_request {
	struct kvb_front *f;
	struct conn *conn;
	struct MHD_Connection *mhd; /* NULL between requests */
	const char *method;         /* these two are libmicrohttpd's, until the request ends */
	const char *path;           /* as it came, not decoded, without the query */
	const struct route *route;  /* NULL: none */
	struct route_param param[ROUTE_PARAMS];
	struct caller caller;
	const struct kvb_v1_codec *body_codec; /* of the body */
	const struct kvb_v1_codec *codec;      /* of the answer, errors included */
	char id[REQUEST_ID_MAX + 1];
	uint64_t begin_us;

	struct kvb_buf body;
	uint64_t held;    /* bytes of body counted in front.body_held */
	uint64_t dropped; /* bytes of an unwanted body read and thrown away */

	bool refused;    /* decided before the core: status and err are set */
	bool dispatched; /* the operation ran or runs */
	bool answered;
	int status;          /* result */
	unsigned http;       /* HTTP status, 0 = that of `status` */
	struct kvb_error err;
	_Atomic enum parking parking;
	struct kvb_done done;
	struct job job;

	struct kvb_arena arena;
	struct kvb_buf out;
	const char *fixed; /* static answer instead of out */
	const char *type;  /* content type; NULL: the codec's, or JSON when fixed */
	bool created;      /* a put made a new object: 201 */
	union {
		struct {
			struct kvb_storage_view *v;
			uint32_t n;
		} storages;
		struct {
			struct kvb_group_view *v;
			uint32_t n;
		} groups;
		struct {
			struct kvb_instance_view *v;
			uint32_t n;
		} instances;
		struct {
			struct kvb_match_req req;
			struct kvb_match_res res;
		} match;
		struct {
			struct kvb_lookup_req req;
			struct kvb_lookup_res res;
		} lookup;
		struct {
			struct kvb_start_req req;
			struct kvb_start_res res;
		} start;
		struct {
			struct kvb_finish_req req;
			struct kvb_abort_req abort;
			struct kvb_finish_res res;
		} finish;
		struct {
			struct kvb_delete_req req;
			struct kvb_delete_res res;
		} del;
		struct kvb_block_view block;
		struct kvb_stats stats;
	} u;
};

/* One connection; it has at most one request at a time. */
struct conn {
	struct watched watched;
	uint64_t phase_ms; /* when the phase of the connection began, see kvb_conn_phase */
	struct kvb_request r;
};

/* ---- listen.c -------------------------------------------------------------------------------- */

/* Binds o.listen:o.port into f->listen_fd, port, url, loopback. */
int kvb_front_bind(struct kvb_front *f, struct kvb_error *err);

/* ---- request.c: callbacks of libmicrohttpd, cls = struct kvb_front --------------------------- */

enum MHD_Result kvb_request_serve(void *cls, struct MHD_Connection *mhd, const char *path,
				  const char *method, const char *version, const char *data,
				  size_t *size, void **state);
void kvb_request_completed(void *cls, struct MHD_Connection *mhd, void **state,
			   enum MHD_RequestTerminationCode why);
void kvb_conn_notify(void *cls, struct MHD_Connection *mhd, void **state,
		     enum MHD_ConnectionNotificationCode what);
/* A phase of the connection begins: waiting, sending a request, or taking the answer. */
void kvb_conn_phase(struct kvb_request *r);
/* The phase may last idle_timeout_ms and the time that moving `bytes` takes. */
void kvb_conn_deadline(struct kvb_request *r, uint64_t bytes);

/* ---- admit.c: what is decided from the header alone ------------------------------------------ */

/* Finds id, route and caller. KVB_OK, or the refusal in r->err (and r->http). */
int kvb_request_admit(struct kvb_request *r);

/* ---- answer.c -------------------------------------------------------------------------------- */

/* Encodes r->status and the result, queues the answer, counts and logs it. */
enum MHD_Result kvb_answer_send(struct kvb_request *r);
/* Replaces words that look like paths of this host by "(path)". */
void kvb_answer_scrub(char *message);

/* ---- helpers of the operations --------------------------------------------------------------- */

/* What the decoders need to know; the core must have been ready. */
struct kvb_v1_in kvb_request_input(struct kvb_request *r);
/* The body, r->body.len bytes; never NULL. */
const char *kvb_request_body(const struct kvb_request *r);

#endif
