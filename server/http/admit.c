/*
 * admit.c - decisions from a request's header alone: id, route, caller.
 *
 * Runs on a thread of libmicrohttpd before any of the body is read. No state.
 */
#include "internal.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include <skv/tls.h>

static const char *argument(void *ctx, const char *name)
{
	return MHD_lookup_connection_value(ctx, MHD_GET_ARGUMENT_KIND, name);
}

/* ---- for forwarding the call to another manager --------------------------------------------- */

static struct skv_httpd_request *request_of(struct skv_request *c)
{
	return (struct skv_httpd_request *)((char *)c - offsetof(struct skv_httpd_request, c));
}

static const char *origin_header(struct skv_request *c, const char *name)
{
	return MHD_lookup_connection_value(request_of(c)->mhd, MHD_HEADER_KIND, name);
}

struct query {
	struct skv_buf *out;
	char before;
};

/* Names and values are as received, but for what libmicrohttpd makes of '+'. */
static void put_part(struct skv_buf *out, const char *text)
{
	for (; *text; text++)
		if (*text == ' ')
			skv_put_bytes(out, "%20", 3);
		else
			skv_put_u8(out, (uint8_t)*text);
}

static enum MHD_Result add_argument(void *ctx, enum MHD_ValueKind kind, const char *name,
				    const char *value)
{
	struct query *q = ctx;

	(void)kind;
	skv_put_u8(q->out, (uint8_t)q->before);
	q->before = '&';
	put_part(q->out, name);
	if (value) {
		skv_put_u8(q->out, '=');
		put_part(q->out, value);
	}
	return MHD_YES;
}

static void origin_target(struct skv_request *c, struct skv_buf *out)
{
	struct query q = { out, '?' };

	skv_put_bytes(out, c->path, strlen(c->path));
	MHD_get_connection_values(request_of(c)->mhd, MHD_GET_ARGUMENT_KIND, add_argument, &q);
}

const struct skv_origin skv_http_origin = { origin_header, origin_target, NULL };

/* Identifies the caller. SKV_OK, or the error that its API reports about the header. */
static int open_call(struct skv_httpd_request *r, const struct skv_api *api)
{
	const struct skv_head none = { .content_type = NULL };
	const struct skv_head head = { r->header[HEADER_CONTENT_TYPE], r->header[HEADER_ACCEPT],
				       argument, r->mhd };

	return skv_request_open(&r->c, api, r->grpc ? &none : &head);
}

/* Another manager's client sent it over gRPC. */
static bool is_grpc(struct skv_httpd_request *r)
{
	const char *type = r->header[HEADER_CONTENT_TYPE];

	return type && strcmp(type, SKV_GRPC_TYPE) == 0 && strcmp(r->method, "POST") == 0 &&
	       r->c.forwarding.came;
}

/* Host part of "name:port" or "[v6]:port". */
static size_t host_length(const char *s)
{
	return *s == '[' ? strcspn(s, "]") + 1 : strcspn(s, ":");
}

/* A name that no DNS server of somebody else can answer for. */
static bool is_local_name(const char *host, size_t n)
{
	if (n == 9 && strncasecmp(host, "localhost", 9) == 0)
		return true;
	return *host == '[' || strspn(host, "0123456789.") >= n;
}

/* Without tokens every process of this host is trusted, but a web page in a browser is not: it
 * sends an Origin of its own, or a host name that was pointed at loopback. A port that is open to
 * other hosts is called by any name. */
static int check_browser(struct skv_httpd_request *r)
{
	const char *origin = r->header[HEADER_ORIGIN];
	const char *host = r->header[HEADER_HOST];
	const char *from = origin ? strstr(origin, "://") : NULL;

	if (r->f->s->auth.path)
		return SKV_OK;
	if (host && !r->f->o.open && !is_local_name(host, host_length(host)))
		return skv_fail(&r->c.err, SKV_E_FORBIDDEN, NULL,
				"without tokens only requests to localhost or an IP "
				"address are served");
	if (origin && (!from || !host || strcasecmp(from + 3, host) != 0))
		return skv_fail(&r->c.err, SKV_E_FORBIDDEN, NULL,
				"without tokens requests from other sites' web pages are refused");
	return SKV_OK;
}

/* Authorizes the request. A client without a token is asked for a certificate. */
static int authorize(struct skv_httpd_request *r)
{
	const char *token = r->header[HEADER_AUTHORIZATION];

	if (!token && r->f->o.tls) {
		const union MHD_ConnectionInfo *info =
			MHD_get_connection_info(r->mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);
		int rc;

		assert(info);
		rc = skv_tls_peer_of(info->tls_session, &r->conn->peer, &r->c.err);
		if (rc != SKV_OK)
			return rc;
	}
	return skv_request_authorize(&r->c, token, r->conn->peer);
}

static int check_caller(struct skv_httpd_request *r)
{
	int rc = authorize(r);

	if (rc == SKV_E_UNAUTHENTICATED)
		skv_metrics_add(&r->f->s->metrics, METRIC_http_unauthenticated, 1);
	return rc;
}

static int check_options(struct skv_httpd_request *r)
{
	char allow[128];

	if (strcmp(r->c.path, "*") == 0 ||
	    skv_route_allow(&r->f->o.apis, r->c.path, allow, sizeof allow))
		return SKV_OK;
	return skv_fail(&r->c.err, SKV_E_NOT_FOUND, NULL, "no such path; GET / lists them");
}

/* Returns true if the client is redirected to the path without its trailing slash. */
static bool redirect(struct skv_httpd_request *r)
{
	const size_t n = strlen(r->c.path) + 1;
	char *to = skv_arena_alloc(&r->c.arena, n);

	if (!to || !skv_route_without_slash(&r->f->o.apis, r->c.path, to, n))
		return false;
	r->c.http = MHD_HTTP_TEMPORARY_REDIRECT;
	r->c.location = to;
	return true;
}

/* Checks that do not depend on the kind of request. `fault`: of its header, or NULL. */
static int check_request(struct skv_httpd_request *r, const char *fault)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(r->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);

	if (fault) {
		r->c.close = true;
		r->c.http = MHD_HTTP_BAD_REQUEST;
		return skv_fail(&r->c.err, SKV_E_INVALID, NULL, "%s", fault);
	}
	if (atomic_load(&r->f->s->draining))
		return skv_fail(&r->c.err, SKV_E_NOT_READY, NULL, "this manager is shutting down");
	if (info && info->header_size > HEADER_MAX) {
		r->c.http = 431;
		return skv_fail(&r->c.err, SKV_E_TOO_LARGE, NULL, "the header is over %u bytes",
				HEADER_MAX);
	}
	return check_browser(r);
}

int skv_httpd_request_admit(struct skv_httpd_request *r)
{
	const char *fault = skv_framing_read(r);
	const char *id = r->header[HEADER_REQUEST_ID];
	const char *trace = r->header[HEADER_TRACEPARENT];
	const struct skv_api *api;
	struct skv_error nowhere;
	int found, form, rc;

	skv_request_take_id(&r->c, id, id ? strlen(id) : 0);
	skv_trace_take(trace, trace ? strlen(trace) : 0, r->c.trace);
	r->c.forwarding.came = r->header[HEADER_FORWARDED];
	r->grpc = is_grpc(r);
	if (r->grpc) {
		r->c.wire = WIRE_GRPC;
		found = skv_route_find_grpc(&r->f->o.apis, r->c.path, &api, &r->c.route, &nowhere);
	} else {
		found = skv_route_find_again(&r->conn->memo, &r->f->o.apis, r->method, r->c.path,
					     &api, &r->c.route, r->c.param, &nowhere);
	}
	form = open_call(r, api);
	rc = check_request(r, fault);
	if (rc != SKV_OK)
		return rc;
	if (strcmp(r->method, "OPTIONS") == 0)
		return check_options(r);
	if (found == SKV_E_NOT_FOUND && redirect(r))
		return SKV_OK;
	if (found != SKV_OK) {
		r->c.err = nowhere;
		return found;
	}
	rc = check_caller(r);
	return rc == SKV_OK ? form : rc; /* the message of `form` is still in r->c.err */
}
