/*
 * admit.c - what the header of a request alone decides: its id, its route, who calls.
 *
 * Runs on a thread of libmicrohttpd before any of the body is read. No state.
 */
#include "internal.h"

#include <string.h>
#include <strings.h>

static const char *header(struct skv_httpd_request *r, const char *name)
{
	return MHD_lookup_connection_value(r->mhd, MHD_HEADER_KIND, name);
}

static const char *argument(void *ctx, const char *name)
{
	return MHD_lookup_connection_value(ctx, MHD_GET_ARGUMENT_KIND, name);
}

/* Whose request it is. SKV_OK, or what its API says about the header. */
static int open_call(struct skv_httpd_request *r, const struct skv_api *api)
{
	const struct skv_head head = { header(r, "Content-Type"), header(r, "Accept"), argument, r->mhd };

	return skv_request_open(&r->c, api, &head);
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
 * sends an Origin of its own, or a host name that was pointed at loopback. A port that is open to other hosts is called
 * by any name. */
static int check_browser(struct skv_httpd_request *r)
{
	const char *origin = header(r, "Origin");
	const char *host = header(r, "Host");
	const char *from = origin ? strstr(origin, "://") : NULL;

	if (r->f->s->auth.path)
		return SKV_OK;
	if (host && !r->f->o.open && !is_local_name(host, host_length(host)))
		return skv_fail(&r->c.err, SKV_E_FORBIDDEN, NULL,
				"without tokens only the host name localhost or an address is "
				"answered");
	if (origin && (!from || !host || strcasecmp(from + 3, host) != 0))
		return skv_fail(&r->c.err, SKV_E_FORBIDDEN, NULL,
				"without tokens requests from web pages elsewhere are refused");
	return SKV_OK;
}

static int check_caller(struct skv_httpd_request *r)
{
	int rc = skv_request_authorize(&r->c, header(r, "Authorization"));

	if (rc == SKV_E_UNAUTHENTICATED)
		skv_metrics_add(&r->f->s->metrics, METRIC_http_unauthenticated, 1);
	return rc;
}

static int check_options(struct skv_httpd_request *r)
{
	char allow[128];

	if (strcmp(r->c.path, "*") == 0 || skv_route_allow(&r->f->o.apis, r->c.path, allow, sizeof allow))
		return SKV_OK;
	return skv_fail(&r->c.err, SKV_E_NOT_FOUND, NULL, "no such path; GET / lists them");
}

/* True: the client is told to go to the path without its trailing slash. */
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

/* What is decided before it matters what the request is for. */
static int check_request(struct skv_httpd_request *r)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(r->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);

	int rc = skv_framing_check(r);

	if (rc != SKV_OK)
		return rc;
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
	const char *id = header(r, "X-Request-Id");
	const struct skv_api *api;
	struct skv_error nowhere;
	int found, form, rc;

	skv_request_take_id(&r->c, id, id ? strlen(id) : 0);
	found = skv_route_find(&r->f->o.apis, r->method, r->c.path, &api, &r->c.route, r->c.param, &nowhere);
	form = open_call(r, api);
	rc = check_request(r);
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
	return rc == SKV_OK ? form : rc; /* whose message still stands in r->c.err */
}
