/*
 * admit.c - what the header of a request alone decides: its id, its route, who calls.
 *
 * Runs on a thread of libmicrohttpd before any of the body is read. No state.
 */
#include "internal.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char *header(struct kvb_request *r, const char *name)
{
	return MHD_lookup_connection_value(r->mhd, MHD_HEADER_KIND, name);
}

/* The caller's id if it can stand in a log line and a header, else one of ours. */
static void take_id(struct kvb_request *r)
{
	const char *given = header(r, "X-Request-Id");
	size_t n = given ? strlen(given) : 0;
	bool good = n > 0 && n <= REQUEST_ID_MAX;

	for (size_t i = 0; good && i < n; i++)
		good = isalnum((unsigned char)given[i]) || strchr("._-:", given[i]);
	if (good)
		memcpy(r->id, given, n + 1);
	else
		snprintf(r->id, sizeof r->id, "%08" PRIx32 "-%08" PRIxFAST32, r->f->id_prefix,
			 atomic_fetch_add(&r->f->id_next, 1));
}

/* The forms of body and answer. A GET has no body and is answered as it accepts; otherwise the body's
 * type decides, and without one what is accepted. NULL body_codec: a type that nobody reads. */
static void take_codecs(struct kvb_request *r)
{
	bool body = strcmp(r->method, "POST") == 0 || strcmp(r->method, "PUT") == 0;
	const char *type = body ? header(r, "Content-Type") : NULL;
	const struct kvb_v1_codec *accepted = kvb_v1_codec_of_accept(header(r, "Accept"));

	r->body_codec = kvb_v1_codec_of_type(type);
	r->codec = type && r->body_codec ? r->body_codec : accepted ? accepted : &kvb_v1_json;
}

static int check_type(struct kvb_request *r)
{
	if (r->body_codec || !(r->route->flags & ROUTE_BODY))
		return KVB_OK;
	r->http = MHD_HTTP_UNSUPPORTED_MEDIA_TYPE;
	return kvb_fail(&r->err, KVB_E_UNSUPPORTED, "Content-Type", "a body is one of: %s",
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

	if (r->f->auth.path)
		return KVB_OK;
	if (host && !is_local_name(host, host_length(host)))
		return kvb_fail(&r->err, KVB_E_FORBIDDEN, NULL,
				"without tokens only the host name localhost or an address is "
				"answered");
	if (origin && (!from || !host || strcasecmp(from + 3, host) != 0))
		return kvb_fail(&r->err, KVB_E_FORBIDDEN, NULL,
				"without tokens requests from web pages elsewhere are refused");
	return KVB_OK;
}

static int check_caller(struct kvb_request *r)
{
	enum role need = r->route->role;
	int rc;

	if (need == ROLE_OPEN || (r->route->id == ROUTE_ID_metrics && r->f->o.metrics_open))
		return KVB_OK;
	rc = kvb_auth_check(&r->f->auth, header(r, "Authorization"), &r->caller, &r->err);
	if (rc != KVB_OK) {
		kvb_metrics_add(&r->f->metrics, METRIC_http_unauthenticated, 1);
		return rc;
	}
	if (r->caller.role < need)
		return kvb_fail(&r->err, KVB_E_FORBIDDEN, NULL, "this call needs the role %s",
				need == ROLE_ADMIN ? "admin" : "write");
	return KVB_OK;
}

static int check_options(struct kvb_request *r)
{
	char allow[128];

	if (strcmp(r->path, "*") == 0 || kvb_route_allow(r->path, allow, sizeof allow))
		return KVB_OK;
	return kvb_fail(&r->err, KVB_E_NOT_FOUND, NULL, "no such path; GET / lists them");
}

int kvb_request_admit(struct kvb_request *r)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(r->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
	int rc;

	take_id(r);
	take_codecs(r);
	if (atomic_load(&r->f->draining))
		return kvb_fail(&r->err, KVB_E_NOT_READY, NULL, "this manager is shutting down");
	if (info && info->header_size > HEADER_MAX) {
		r->http = 431;
		return kvb_fail(&r->err, KVB_E_TOO_LARGE, NULL, "the header is over %u bytes",
				HEADER_MAX);
	}
	rc = check_browser(r);
	if (rc != KVB_OK)
		return rc;
	if (strcmp(r->method, "OPTIONS") == 0)
		return check_options(r);
	rc = kvb_route_find(r->method, r->path, &r->route, r->param, &r->err);
	if (rc == KVB_OK)
		rc = check_caller(r);
	return rc == KVB_OK ? check_type(r) : rc;
}
