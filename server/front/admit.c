/*
 * admit.c - what the header of a request alone decides: its id, its route, who calls.
 *
 * Runs on a thread of libmicrohttpd before any of the body is read. No state.
 */
#include "internal.h"

#include <string.h>
#include <strings.h>

static const char *header(struct kvb_request *r, const char *name)
{
	return MHD_lookup_connection_value(r->mhd, MHD_HEADER_KIND, name);
}

/* The forms of body and answer. A GET has no body and is answered as it accepts; otherwise the body's
 * type decides, and without one what is accepted. NULL body_codec: a type that nobody reads. */
static void take_codecs(struct kvb_request *r)
{
	bool body = strcmp(r->method, "POST") == 0 || strcmp(r->method, "PUT") == 0;
	const char *type = body ? header(r, "Content-Type") : NULL;
	const struct kvb_v1_codec *accepted = kvb_v1_codec_of_accept(header(r, "Accept"));

	r->c.body_codec = kvb_v1_codec_of_type(type);
	r->c.codec = type && r->c.body_codec ? r->c.body_codec : accepted ? accepted : &kvb_v1_json;
}

static int check_type(struct kvb_request *r)
{
	if (r->c.body_codec || !(r->c.route->flags & ROUTE_BODY))
		return KVB_OK;
	r->http = MHD_HTTP_UNSUPPORTED_MEDIA_TYPE;
	return kvb_fail(&r->c.err, KVB_E_UNSUPPORTED, "Content-Type", "a body is one of: %s",
			kvb_v1_codec_types());
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
 * sends an Origin of its own, or a host name that was pointed at loopback. */
static int check_browser(struct kvb_request *r)
{
	const char *origin = header(r, "Origin");
	const char *host = header(r, "Host");
	const char *from = origin ? strstr(origin, "://") : NULL;

	if (r->f->s.auth.path)
		return KVB_OK;
	if (host && !is_local_name(host, host_length(host)))
		return kvb_fail(&r->c.err, KVB_E_FORBIDDEN, NULL,
				"without tokens only the host name localhost or an address is "
				"answered");
	if (origin && (!from || !host || strcasecmp(from + 3, host) != 0))
		return kvb_fail(&r->c.err, KVB_E_FORBIDDEN, NULL,
				"without tokens requests from web pages elsewhere are refused");
	return KVB_OK;
}

static int check_caller(struct kvb_request *r)
{
	int rc = kvb_call_authorize(&r->c, header(r, "Authorization"));

	if (rc == KVB_E_UNAUTHENTICATED)
		kvb_metrics_add(&r->f->s.metrics, METRIC_http_unauthenticated, 1);
	return rc;
}

static int check_options(struct kvb_request *r)
{
	char allow[128];

	if (strcmp(r->path, "*") == 0 || kvb_route_allow(r->path, allow, sizeof allow))
		return KVB_OK;
	return kvb_fail(&r->c.err, KVB_E_NOT_FOUND, NULL, "no such path; GET / lists them");
}

int kvb_request_admit(struct kvb_request *r)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(r->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
	const char *id = header(r, "X-Request-Id");
	int rc;

	kvb_call_take_id(&r->c, id, id ? strlen(id) : 0);
	take_codecs(r);
	if (atomic_load(&r->f->s.draining))
		return kvb_fail(&r->c.err, KVB_E_NOT_READY, NULL, "this manager is shutting down");
	if (info && info->header_size > HEADER_MAX) {
		r->http = 431;
		return kvb_fail(&r->c.err, KVB_E_TOO_LARGE, NULL, "the header is over %u bytes",
				HEADER_MAX);
	}
	rc = check_browser(r);
	if (rc != KVB_OK)
		return rc;
	if (strcmp(r->method, "OPTIONS") == 0)
		return check_options(r);
	rc = kvb_route_find(r->method, r->path, &r->c.route, r->c.param, &r->c.err);
	if (rc == KVB_OK)
		rc = check_caller(r);
	return rc == KVB_OK ? check_type(r) : rc;
}
