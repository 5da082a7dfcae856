/*
 * answer.c - the answer of a request: status, body, headers, the log line, the counters.
 *
 * Always runs on a thread of libmicrohttpd. The only place where a request is logged; what errors
 * look like is their API's. No state, no locks.
 */
#include "internal.h"

#include <assert.h>
#include <inttypes.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

#include <skv/clock.h>
#include <skv/log.h>
#include <skv/mem.h>
#include <skv/owner.h>

/* ---- log ------------------------------------------------------------------------------------- */

static void client_address(struct skv_httpd_request *r, char *out, size_t size)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(r->mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	const struct sockaddr *sa = info ? info->client_addr : NULL;
	socklen_t len = sa && sa->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
							: sizeof(struct sockaddr_in);
	char port[8];

	if (!sa || getnameinfo(sa, len, out, (socklen_t)size, port, sizeof port,
			       NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		snprintf(out, size, "?");
}

static void log_answer(struct skv_httpd_request *r, unsigned http, uint64_t us, const char *cause)
{
	const uint64_t slow_ms = atomic_load(&r->f->s->slow_ms);
	bool slow = slow_ms && us / 1000 >= slow_ms;
	enum skv_log_level level = http == 500	     ? SKV_LOG_ERROR
				   : http > 500 || slow ? SKV_LOG_WARN
							: SKV_LOG_DEBUG;
	char client[64];

	if (slow)
		skv_metrics_add(&r->f->s->metrics, METRIC_http_slow, 1);
	if ((!r->c.failed && !slow) || !skv_log_enabled(level))
		return;
	client_address(r, client, sizeof client);

	struct skv_trace_ids ids;
	struct skv_log_field fields[9 + SKV_TRACE_FIELDS] = {
		SKV_TEXT("id", r->c.id),
		SKV_TEXT("method", r->method),
		SKV_TEXT("path", r->c.path),
		SKV_NUMBER("status", http),
		SKV_TEXT("code", skv_status_name(r->c.status)),
		SKV_MILLI("ms", us),
		SKV_TEXT("client", client),
		SKV_TEXT("field", r->c.err.field),
		SKV_TEXT("cause", cause),
	};
	size_t n = r->c.failed ? 9 : 7;

	n += skv_trace_fields(r->c.trace, &ids, fields + n);
	assert(n <= sizeof fields / sizeof fields[0]);
	skv_request_log(&r->c, level, "http", r->c.failed ? "request failed" : "request was slow",
			fields, n);
}

/* ---- body ------------------------------------------------------------------------------------ */

static unsigned http_status(const struct skv_httpd_request *r)
{
	if (r->grpc)
		return MHD_HTTP_OK;
	if (r->c.status != SKV_OK)
		return r->c.answer;
	if (r->c.http)
		return r->c.http;
	/* An answer in protobuf may have no bytes: that is a message. */
	if (!r->c.route || strcmp(r->c.route->method, "DELETE") == 0)
		return MHD_HTTP_NO_CONTENT;
	return r->c.created ? MHD_HTTP_CREATED : MHD_HTTP_OK;
}

/* ---- response -------------------------------------------------------------------------------- */

/* Takes the bytes of r->c.out: libmicrohttpd releases them when they are sent. */
static struct MHD_Response *make_response(struct skv_httpd_request *r, uint64_t *bytes)
{
	struct MHD_Response *response;

	if (r->c.fixed || r->c.out.len == 0) {
		const char *text = r->c.fixed ? r->c.fixed : "";

		*bytes = strlen(text);
		return MHD_create_response_from_buffer(*bytes, (void *)text,
						       MHD_RESPMEM_PERSISTENT);
	}
	*bytes = r->c.out.len;
	response = MHD_create_response_from_buffer_with_free_callback(r->c.out.len, r->c.out.data,
								      skv_free);
	if (response)
		skv_buf_init(&r->c.out);
	return response;
}

/* For the manager that sent it on: what will be trailers there. */
static void add_grpc(struct skv_httpd_request *r, struct MHD_Response *response)
{
	char code[12], message[SKV_ENCODED_MAX];

	snprintf(code, sizeof code, "%u", r->c.status == SKV_OK ? 0 : r->c.answer);
	MHD_add_response_header(response, SKV_GRPC_CODE, code);
	if (strcmp(code, "0") == 0)
		return;
	skv_percent_encode(r->c.err.message, message);
	MHD_add_response_header(response, SKV_GRPC_MESSAGE, message);
	if (*r->c.err.field)
		MHD_add_response_header(response, SKV_GRPC_FIELD, r->c.err.field);
}

static void add_headers(struct skv_httpd_request *r, struct MHD_Response *response, unsigned http)
{
	unsigned retry_after =
		r->c.retry_after ? r->c.retry_after : skv_request_retry_after(r->c.status);
	char text[128], note[SKV_NOTE_MAX];

	if (http != MHD_HTTP_NO_CONTENT && r->c.type)
		MHD_add_response_header(response, "Content-Type", r->c.type);
	MHD_add_response_header(response, "X-Request-Id", r->c.id);
	MHD_add_response_header(response, "Cache-Control", "no-store");
	if (http == MHD_HTTP_UNAUTHORIZED)
		MHD_add_response_header(response, "WWW-Authenticate",
					r->c.challenge ? r->c.challenge
						       : "Bearer realm=\"slabkvd\"");
	if (r->c.location)
		MHD_add_response_header(response, "Location", r->c.location);
	if (http >= 400 && retry_after > 0) {
		snprintf(text, sizeof text, "%u", retry_after);
		MHD_add_response_header(response, "Retry-After", text);
	}
	if ((http == MHD_HTTP_METHOD_NOT_ALLOWED || strcmp(r->method, "OPTIONS") == 0) &&
	    skv_route_allow(&r->f->o.apis, r->c.path, text, sizeof text))
		MHD_add_response_header(response, "Allow", text);
	if (r->grpc)
		add_grpc(r, response);
	if (r->c.status != SKV_OK && r->c.forwarding.came)
		MHD_add_response_header(response, SKV_STATUS, skv_status_name(r->c.status));
	if (skv_owner_tell(&r->c, note))
		MHD_add_response_header(response, SKV_OWNER_NOTE, note);
	if (r->c.close || atomic_load(&r->f->s->leaving) || atomic_load(&r->f->s->draining))
		MHD_add_response_header(response, "Connection", "close");
}

enum MHD_Result skv_answer_send(struct skv_httpd_request *r)
{
	char cause[SKV_MESSAGE_MAX] = "";
	struct MHD_Response *response;
	enum MHD_Result queued;
	unsigned http;
	uint64_t bytes, us;
	bool packed;

	assert(r->mhd && !r->answered);
	skv_request_finish(&r->c, cause);
	if (r->grpc && r->c.status != SKV_OK && r->c.answer)
		skv_buf_clear(&r->c.out); /* the headers have the answer */
	http = http_status(r); /* before make_response takes the bytes */
	assert(http >= 200 && http < 600);
	packed = skv_gzip_wanted(r) && skv_gzip(&r->c.out);
	response = make_response(r, &bytes);
	if (!response)
		return MHD_NO;
	if (packed)
		MHD_add_response_header(response, "Content-Encoding", "gzip");
	add_headers(r, response, http);
	skv_conn_phase(r, FLOW_ANSWER);
	skv_conn_deadline(r, bytes);
	queued = MHD_queue_response(r->mhd, http, response);
	MHD_destroy_response(response);
	r->answered = queued == MHD_YES;
	us = skv_request_count(&r->c, !r->grpc ? http : r->c.status == SKV_OK ? 0 : r->c.answer);
	skv_metrics_add(&r->f->s->metrics, METRIC_http_response_bytes, bytes);
	log_answer(r, r->grpc ? (unsigned)skv_status_http(r->c.status) : http, us, cause);
	if (skv_audit_wants(&r->c, r->c.status)) {
		char client[64];

		client_address(r, client, sizeof client);
		skv_audit_call(&r->c, r->c.status, client);
	}
	return queued;
}
