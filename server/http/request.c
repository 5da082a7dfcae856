/*
 * request.c - a request from its header to its end, as libmicrohttpd's callbacks.
 *
 * Header: admit.c decides (route, caller, length). Body: gathered within its bounds, or thrown away
 * when the request is refused already. Then the operation runs: on this thread, on a worker if it
 * blocks, or it returns SKV_PENDING and the core calls back. While the operation waits the
 * connection is suspended; the completing thread only stores the status and resumes: the answer is
 * always encoded on a thread of libmicrohttpd. A connection has one request at a time, kept inside
 * struct conn. No locks; the hand-over between the two threads is the atomic `parking`.
 */
#include "internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <skv/clock.h>
#include <skv/mem.h>

static void begin_flow(struct conn *c, enum flow flow)
{
	assert(flow < FLOWS);
	atomic_store_explicit(&c->watched.phase, ++c->phases * FLOWS + flow, memory_order_relaxed);
}

void skv_conn_phase(struct skv_httpd_request *r, enum flow flow)
{
	r->conn->phase_ms = skv_now_ms(&skv_clock_system);
	begin_flow(r->conn, flow);
}

void skv_conn_deadline(struct skv_httpd_request *r, uint64_t bytes)
{
	atomic_store(&r->conn->watched.deadline_ms,
		     r->conn->phase_ms + r->f->o.idle_timeout_ms + bytes / SLOW_BYTES_PER_MS);
}

/* Clears the deadline: the next step is this manager's. */
static void no_deadline(struct skv_httpd_request *r)
{
	begin_flow(r->conn, FLOW_NONE);
	atomic_store(&r->conn->watched.deadline_ms, 0);
}

/* ---- connections ----------------------------------------------------------------------------- */

static struct conn *conn_create(struct skv_httpd *f, struct MHD_Connection *mhd)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
	const union MHD_ConnectionInfo *from =
		MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	struct conn *c = info ? skv_calloc(1, sizeof *c) : NULL;

	if (!c)
		return NULL; /* serve() closes a connection without one */
	c->watched.fd = info->connect_fd;
	c->r.f = f;
	c->r.conn = c;
	skv_request_init(&c->r.c, f->s, WIRE_HTTP);
	skv_hold_address(from ? from->client_addr : NULL, c->r.c.hold.address);
	skv_buf_init(&c->r.body);
	skv_conn_phase(&c->r, FLOW_NONE);
	skv_conn_deadline(&c->r, 0);
	skv_watch_add(&f->watch, &c->watched);
	skv_metrics_add(&f->s->metrics, METRIC_http_connections, 1);
	skv_gauge_move(&f->s->metrics, GAUGE_http_open_connections, 1);
	return c;
}

static void conn_destroy(struct skv_httpd *f, struct conn *c)
{
	assert(!c->r.mhd);
	skv_watch_remove(&f->watch, &c->watched);
	skv_gauge_move(&f->s->metrics, GAUGE_http_open_connections, -1);
	skv_buf_destroy(&c->r.body);
	skv_request_destroy(&c->r.c);
	skv_free(c->peer);
	skv_free(c);
}

void skv_conn_notify(void *cls, struct MHD_Connection *mhd, void **state,
		     enum MHD_ConnectionNotificationCode what)
{
	struct skv_httpd *f = cls;

	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		*state = conn_create(f, mhd);
		return;
	}
	skv_accept_closed(f);
	if (*state) {
		conn_destroy(f, *state);
		*state = NULL;
	}
}

/* ---- begin and end of a request -------------------------------------------------------------- */

static struct skv_httpd_request *request_begin(struct skv_httpd *f, struct MHD_Connection *mhd,
					 const char *path, const char *method)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct conn *c = info ? info->socket_context : NULL;
	struct skv_httpd_request *r;

	if (!c)
		return NULL;
	r = &c->r;
	assert(!r->mhd);
	skv_gauge_move(&f->s->metrics, GAUGE_http_in_flight, 1);
	r->mhd = mhd;
	r->c.path = skv_framing_path(path);
	r->c.wire = WIRE_HTTP; /* the connection's last one may have been gRPC's */
	r->c.forwarding.origin = &skv_http_origin;
	r->method = method;
	r->c.begin_us = skv_now_us();
	skv_conn_phase(r, FLOW_NONE);
	skv_conn_deadline(r, 0);
	return r;
}

static void drop_body(struct skv_httpd_request *r)
{
	if (r->body.cap > KEEP_BODY)
		skv_buf_destroy(&r->body);
	skv_buf_clear(&r->body);
}

void skv_httpd_request_completed(void *cls, struct MHD_Connection *mhd, void **state,
			   enum MHD_RequestTerminationCode why)
{
	struct skv_httpd *f = cls;
	struct skv_httpd_request *r = *state;
	struct conn *c;

	(void)mhd;
	(void)why;
	if (!r || r == &skv_framing_bad_line)
		return;
	c = r->conn;
	assert(r->mhd == mhd && atomic_load(&r->parking) != PARK_PARKED);
	if (!r->answered)
		skv_metrics_add(&f->s->metrics, METRIC_http_aborted, 1);
	drop_body(r);
	skv_request_reset(&r->c);
	/* The buffers stay with the connection, everything else begins anew. */
	*r = (struct skv_httpd_request){ .c = r->c, .f = f, .conn = c, .body = r->body };
	*state = NULL;
	skv_conn_phase(r, FLOW_NONE);
	skv_conn_deadline(r, 0);
	skv_gauge_move(&f->s->metrics, GAUGE_http_in_flight, -1);
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* Called once by the core or a worker when a handed-over request is complete. */
static void complete(void *ctx, int status)
{
	struct skv_httpd_request *r = ctx;
	struct MHD_Connection *mhd = r->mhd;
	struct skv_httpd *f = r->f;
	enum parking was;

	r->c.status = status;
	was = atomic_exchange(&r->parking, PARK_DONE);
	assert(was != PARK_DONE); /* completed once */
	/* The connection's thread has not suspended the request yet, and continues with it. */
	if (was != PARK_PARKED)
		return;
	MHD_resume_connection(mhd);
	/* last touch: after it the transport may be destroyed */
	skv_gauge_move(&f->s->metrics, GAUGE_http_parked, -1);
}

/* Suspends the connection until complete() has been called. */
static enum MHD_Result park(struct skv_httpd_request *r)
{
	enum parking expected = PARK_RUNNING;

	if (atomic_load(&r->parking) == PARK_DONE)
		return skv_answer_send(r);
	skv_gauge_move(&r->f->s->metrics, GAUGE_http_parked, 1);
	MHD_suspend_connection(r->mhd);
	if (!atomic_compare_exchange_strong(&r->parking, &expected, PARK_PARKED)) {
		MHD_resume_connection(r->mhd);
		skv_gauge_move(&r->f->s->metrics, GAUGE_http_parked, -1);
	}
	return MHD_YES;
}

static enum MHD_Result dispatch(struct skv_httpd_request *r)
{
	int rc;

	no_deadline(r);
	if (r->refused)
		return skv_answer_send(r);
	r->c.done = (struct skv_done){ complete, r };
	r->c.body = r->body.len ? (const char *)r->body.data : "";
	r->c.n_body = r->body.len;
	atomic_store(&r->parking, PARK_RUNNING);
	rc = r->grpc ? r->c.api->message(&r->c, r->body.data, r->body.len) : SKV_OK;
	if (rc == SKV_OK)
		rc = skv_request_run(&r->c);
	if (rc == SKV_PENDING)
		return park(r);
	r->c.status = rc;
	return skv_answer_send(r);
}

/* ---- the body -------------------------------------------------------------------------------- */

static void refuse(struct skv_httpd_request *r, int status)
{
	r->refused = true;
	r->c.status = status;
	drop_body(r);
	skv_hold_release(&r->f->s->holds, &r->c.hold);
}

/* An unwanted body is read and dropped, so that the connection stays open, up to a limit. */
static enum MHD_Result throw_away(struct skv_httpd_request *r, size_t n)
{
	r->dropped += n;
	return r->dropped <= r->f->s->o.body_max + DRAIN_NOW ? MHD_YES : MHD_NO;
}

static enum MHD_Result take(struct skv_httpd_request *r, const char *data, size_t n)
{
	struct skv_httpd *f = r->f;
	int rc;

	skv_metrics_add(&f->s->metrics, METRIC_http_request_bytes, n);
	skv_conn_deadline(r, r->body.len + r->dropped + n);
	if (r->refused || !skv_reads_body(r))
		return throw_away(r, n);
	if (r->body.len + n > f->s->o.body_max) {
		refuse(r, skv_fail(&r->c.err, SKV_E_TOO_LARGE, NULL, "the body is over %llu bytes",
				   (unsigned long long)f->s->o.body_max));
		return throw_away(r, n);
	}
	rc = skv_request_hold_body(&r->c, n);
	if (rc != SKV_OK) {
		refuse(r, rc);
		return throw_away(r, n);
	}
	skv_put_bytes(&r->body, data, n);
	if (r->body.failed)
		refuse(r, skv_fail(&r->c.err, SKV_E_NOMEM, NULL, "out of memory"));
	return MHD_YES;
}

/* Declared bytes of the body; UINT64_MAX when it does not say (chunked). */
static uint64_t declared_length(struct skv_httpd_request *r)
{
	const char *length = r->header[HEADER_CONTENT_LENGTH];

	if (r->header[HEADER_TRANSFER_ENCODING])
		return UINT64_MAX;
	return length ? strtoull(length, NULL, 10) : 0;
}

/* Header complete. Refused requests with a short body wait for it, so that the connection can stay
 * open; the others are answered immediately, which closes it. */
static enum MHD_Result head(struct skv_httpd_request *r)
{
	int rc = skv_httpd_request_admit(r);
	uint64_t length = declared_length(r);

	if (length > 0)
		begin_flow(r->conn, FLOW_BODY);
	if (rc == SKV_OK && skv_reads_body(r) && length != UINT64_MAX &&
	    length > r->f->s->o.body_max)
		rc = skv_fail(&r->c.err, SKV_E_TOO_LARGE, NULL, "the body is over %llu bytes",
			      (unsigned long long)r->f->s->o.body_max);
	if (rc == SKV_OK && r->c.route)
		return MHD_YES;
	r->refused = true; /* or answered without an operation: OPTIONS, a redirect */
	r->c.status = rc;
	if (length == 0 || (!r->c.close && length <= DRAIN_NOW &&
			    !MHD_lookup_connection_value(r->mhd, MHD_HEADER_KIND, "Expect")))
		return MHD_YES;
	no_deadline(r);
	return skv_answer_send(r);
}

enum MHD_Result skv_httpd_request_serve(void *cls, struct MHD_Connection *mhd, const char *path,
				  const char *method, const char *version, const char *data,
				  size_t *size, void **state)
{
	struct skv_httpd_request *r = *state;
	size_t n = *size;

	if (!r || r == &skv_framing_bad_line) {
		const bool bad_line = r;

		r = request_begin(cls, mhd, path, method);
		*state = r;
		if (!r)
			return MHD_NO;
		r->version = version;
		r->bad_line = bad_line;
		return head(r);
	}
	*size = 0;
	if (n > 0)
		return take(r, data, n);
	if (r->c.dispatched)
		return skv_answer_send(r); /* resumed */
	return dispatch(r);
}
