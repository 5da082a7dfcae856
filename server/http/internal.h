/*
 * internal.h - internal objects of the HTTP server: the transport, a connection, its request.
 */
#ifndef SKV_HTTPD_INTERNAL_H
#define SKV_HTTPD_INTERNAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <microhttpd.h>

#include <skv/bytes.h>
#include <skv/request.h>
#include <skv/httpd.h>
#include <skv/service.h>

#include "watch.h"

#define HEADER_MAX (16u * 1024)     /* bytes of a request's header: 431 above it */
#define CONNECTION_POOL \
	(32u * 1024) /* libmicrohttpd's of a connection, cleared once and a half for each request */
#define DRAIN_NOW (1u << 20)        /* longer bodies of refused requests are not waited for */
#define KEEP_BODY (64u * 1024)      /* a body buffer up to this is kept for the next request */
#define SLOW_BYTES_PER_MS 64u       /* each so many bytes moved buy a connection 1 ms more */

/* The thread that takes connections from the port. */
struct acceptor {
	pthread_t thread;
	int wake; /* eventfd: it need not wait, or must end */
	bool running;
	atomic_bool stopping;
	atomic_uint open; /* connections given to libmicrohttpd and not closed yet */
};

struct skv_httpd {
	struct skv_port_options o; /* strings owned */
	struct skv_service *s; /* shared with other transports */
	struct watch watch;
	struct MHD_Daemon *daemon;
	struct skv_bound bound; /* fd -1: not bound */
	struct acceptor acceptor;
	char url[SKV_URL_MAX];
};

/* A request that waits: its thread of libmicrohttpd goes on with others meanwhile. */
enum parking {
	PARK_RUNNING, /* handed over; the HTTP thread has not suspended the connection yet */
	PARK_PARKED,  /* suspended: the completing thread resumes it */
	PARK_DONE,    /* completed: status is set */
};

/* Header fields that are looked at in every request, found in one walk (framing.c). */
enum header {
	HEADER_CONTENT_LENGTH,
	HEADER_TRANSFER_ENCODING,
	HEADER_CONTENT_ENCODING,
	HEADER_HOST,
	HEADER_AUTHORIZATION,
	HEADER_CONTENT_TYPE,
	HEADER_ACCEPT,
	HEADER_ORIGIN,
	HEADER_REQUEST_ID,
	HEADER_TRACEPARENT,
	HEADER_FORWARDED,
	HEADERS,
	HEADER_OTHER = HEADERS,
};

struct skv_httpd_request {
	struct skv_request c; /* the operation: the part independent of HTTP */
	struct skv_httpd *f;
	struct conn *conn;
	struct MHD_Connection *mhd; /* NULL between requests */
	/* libmicrohttpd's, as c.path, until the request ends; the same for the next. */
	const char *method;
	const char *version;
	const char *header[HEADERS]; /* the first of each name; NULL: none */

	struct skv_buf body;
	uint64_t dropped; /* bytes of an unwanted body read and thrown away */

	bool grpc; /* a gRPC call of another manager's client: skv/forward.h */
	bool bad_line; /* skv_framing_line has found so */
	bool refused; /* decided before the core: status and err are set */
	bool answered;
	_Atomic enum parking parking;
};

/* A connection, with at most one request at a time. */
struct conn {
	struct watched watched;
	uint64_t phase_ms; /* when the phase of the connection began, see skv_conn_phase */
	uint32_t phases;   /* how many there have been */
	struct skv_tls_peer *peer; /* NULL: not looked at yet, or no TLS */
	struct skv_route_memo memo;
	struct skv_httpd_request r;
};

/* ---- request.c: callbacks of libmicrohttpd, cls = struct skv_httpd --------------------------- */

enum MHD_Result skv_httpd_request_serve(void *cls, struct MHD_Connection *mhd, const char *path,
				  const char *method, const char *version, const char *data,
				  size_t *size, void **state);
void skv_httpd_request_completed(void *cls, struct MHD_Connection *mhd, void **state,
			   enum MHD_RequestTerminationCode why);
void skv_conn_notify(void *cls, struct MHD_Connection *mhd, void **state,
		     enum MHD_ConnectionNotificationCode what);
/* A phase of the connection begins, whose bytes the watch looks at. */
void skv_conn_phase(struct skv_httpd_request *r, enum flow flow);

/* ---- gzip.c ---------------------------------------------------------------------------------- */

/* Returns true if the encoded answer should be compressed for this client. */
bool skv_gzip_wanted(const struct skv_httpd_request *r);
/* Replaces the bytes by compressed ones; false: they stay unchanged. */
bool skv_gzip(struct skv_buf *b);

/* The phase may last idle_timeout_ms and the time that moving `bytes` takes. */
void skv_conn_deadline(struct skv_httpd_request *r, uint64_t bytes);

/* ---- accept.c -------------------------------------------------------------------------------- */

/* Connections are taken from now on. */
int skv_accept_start(struct skv_httpd *f, struct skv_error *err);
/* None is taken any more; whoever connects waits in the kernel. Again is harmless. */
void skv_accept_stop(struct skv_httpd *f);
/* A connection is closed. */
void skv_accept_closed(struct skv_httpd *f);

/* ---- events.c -------------------------------------------------------------------------------- */

/* libmicrohttpd waits for events with the bound that it needs. */
bool skv_events_bounded(void);

/* ---- framing.c ------------------------------------------------------------------------------- */

extern struct skv_httpd_request skv_framing_bad_line;
/* MHD_OPTION_URI_LOG_CALLBACK: NULL, or skv_framing_bad_line for the state of the request. */
void *skv_framing_line(void *cls, const char *uri, struct MHD_Connection *mhd);
/* Fills r->header. NULL, or why the header could be read in two ways. */
const char *skv_framing_read(struct skv_httpd_request *r);
/* The path of a request's target, inside it; "/" if it has none. */
const char *skv_framing_path(const char *target);

/* ---- admit.c: decisions by the header alone -------------------------------------------------- */

extern const struct skv_origin skv_http_origin;
/* Returns true if the operation reads the body. */
static inline bool skv_reads_body(const struct skv_httpd_request *r)
{
	return r->grpc || (r->c.route && r->c.route->flags & ROUTE_BODY);
}
/* Finds id, API, route and caller. SKV_OK, or the refusal in r->c.err (and r->c.http). */
int skv_httpd_request_admit(struct skv_httpd_request *r);

/* ---- answer.c -------------------------------------------------------------------------------- */

/* Encodes r->status and the result, queues the answer, counts and logs it. */
enum MHD_Result skv_answer_send(struct skv_httpd_request *r);

#endif
