/*
 * answer.c - the answer of a request: status, body, headers, the log line, the counters.
 *
 * Always runs on a thread of libmicrohttpd. The only place where errors get their shape and
 * where a request is logged. What a backend says about this host's files goes to the log; the
 * client gets the sentence without the paths. No state, no locks.
 */
#include "internal.h"

#include <inttypes.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

#include <kvb/clock.h>
#include <kvb/log.h>
#include <kvb/mem.h>

void kvb_answer_scrub(char *message)
{
	static const char hidden[] = "(path)";
	static const char ends[] = " \t'\"(),;";
	char out[KVB_MESSAGE_MAX];
	size_t k = 0;
	bool word = true; /* at the beginning of one */

	for (size_t i = 0; message[i] && k + sizeof hidden < sizeof out;) {
		size_t n = word ? strcspn(message + i, ends) : 1;

		if (word && (message[i] == '/' || strncmp(message + i, "./", 2) == 0 ||
			     strncmp(message + i, "../", 3) == 0)) {
			memcpy(out + k, hidden, sizeof hidden - 1);
			k += sizeof hidden - 1;
			i += n;
		}
		if (!message[i])
			break;
		word = strchr(ends, message[i]) != NULL;
		out[k++] = message[i++];
	}
	out[k] = '\0';
	memcpy(message, out, k + 1);
}

/* Seconds after which the same request may succeed; 0 = repeating does not help. */
static unsigned retry_after(int status)
{
	switch (status) {
	case KVB_E_NOT_READY:
	case KVB_E_NOT_OWNER:
	case KVB_E_FENCED:
	case KVB_E_UNKNOWN_OUTCOME:
	case KVB_E_TOO_MANY:
	case KVB_E_NOMEM:
		return 1;
	case KVB_E_JOURNAL_FULL:
	case KVB_E_STORE_IO:
	case KVB_E_UNAVAILABLE:
		return 2;
	case KVB_E_STORE_FULL:
		return 10;
	default:
		return 0;
	}
}

/* ---- log ------------------------------------------------------------------------------------- */

static void client_address(struct kvb_request *r, char *out, size_t size)
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

static void log_answer(struct kvb_request *r, unsigned http, uint64_t us, const char *cause)
{
	bool slow = r->f->o.slow_ms && us / 1000 >= r->f->o.slow_ms;
	enum kvb_log_level level = http == 500	     ? KVB_LOG_ERROR
				   : http > 500 || slow ? KVB_LOG_WARN
				   : r->f->o.log_refused ? KVB_LOG_INFO
							 : KVB_LOG_DEBUG;
	char status[8], ms[32], client[64];

	if (slow)
		kvb_metrics_add(&r->f->metrics, METRIC_http_slow, 1);
	if ((http < 400 && !slow) || !kvb_log_enabled(level))
		return;
	snprintf(status, sizeof status, "%u", http);
	snprintf(ms, sizeof ms, "%" PRIu64 ".%03u", us / 1000, (unsigned)(us % 1000));
	client_address(r, client, sizeof client);

	const struct kvb_log_field fields[] = {
		{ "id", r->id },	   { "method", r->method }, { "path", r->path },
		{ "status", status },	   { "code", kvb_status_name(r->status) },
		{ "ms", ms },		   { "client", client },    { "field", r->err.field },
		{ "cause", cause },
	};

	kvb_log_fields(level, "http", http >= 400 ? "request failed" : "request was slow", fields,
		       sizeof fields / sizeof fields[0] - (http >= 400 ? 0 : 2));
}

/* ---- body ------------------------------------------------------------------------------------ */

/* A manager that lost its ownership meanwhile (it was stopped, say) must not tell what it knew. */
static void check_ownership(struct kvb_request *r)
{
	int rc;

	if (!r->dispatched || !(r->route->flags & ROUTE_CORE) || kvb_status_http(r->status) >= 500)
		return;
	rc = kvb_core_may_answer(r->f->core);
	if (rc != KVB_OK)
		r->status = kvb_fail(&r->err, KVB_E_NOT_OWNER, NULL,
				     "this manager does not own the partition any more: retry");
}

static void encode_error(struct kvb_request *r, char cause[KVB_MESSAGE_MAX])
{
	if (r->err.status != r->status || !*r->err.message)
		kvb_fail(&r->err, r->status, NULL, "%s", kvb_status_text(r->status));
	memcpy(cause, r->err.message, KVB_MESSAGE_MAX);
	if (kvb_status_http(r->status) >= 500 || r->status == KVB_E_FOREIGN)
		kvb_answer_scrub(r->err.message);
	r->fixed = NULL;
	r->type = r->codec->content_type;
	kvb_buf_clear(&r->out);
	r->codec->write_error(&r->out, &r->err, r->id);
	if (r->out.failed)
		r->fixed = r->codec->no_memory;
}

static void encode(struct kvb_request *r, char cause[KVB_MESSAGE_MAX])
{
	check_ownership(r);
	if (r->status == KVB_OK && r->route) {
		r->route->write(r);
		if (r->out.failed)
			r->status = kvb_fail(&r->err, KVB_E_NOMEM, NULL, "out of memory");
	}
	if (r->status != KVB_OK)
		encode_error(r, cause);
	if (!r->type)
		r->type = r->fixed ? "application/json" : r->codec->content_type;
}

static unsigned http_status(const struct kvb_request *r)
{
	if (r->status != KVB_OK)
		return r->http ? r->http : (unsigned)kvb_status_http(r->status);
	/* An answer in protobuf may have no bytes: that is a message. */
	if (!r->route || strcmp(r->route->method, "DELETE") == 0)
		return MHD_HTTP_NO_CONTENT;
	return r->created ? MHD_HTTP_CREATED : MHD_HTTP_OK;
}

/* ---- response -------------------------------------------------------------------------------- */

/* Takes the bytes of r->out: libmicrohttpd releases them when they are sent. */
static struct MHD_Response *make_response(struct kvb_request *r, uint64_t *bytes)
{
	struct MHD_Response *response;

	if (r->fixed || r->out.len == 0) {
		const char *text = r->fixed ? r->fixed : "";

		*bytes = strlen(text);
		return MHD_create_response_from_buffer(*bytes, (void *)text,
						       MHD_RESPMEM_PERSISTENT);
	}
	*bytes = r->out.len;
	response = MHD_create_response_from_buffer_with_free_callback(r->out.len, r->out.data,
								      kvb_free);
	if (response)
		kvb_buf_init(&r->out);
	return response;
}

static void add_headers(struct kvb_request *r, struct MHD_Response *response, unsigned http)
{
	char text[128];

	if (http != MHD_HTTP_NO_CONTENT)
		MHD_add_response_header(response, "Content-Type", r->type);
	MHD_add_response_header(response, "X-Request-Id", r->id);
	MHD_add_response_header(response, "Cache-Control", "no-store");
	if (r->status == KVB_E_UNAUTHENTICATED)
		MHD_add_response_header(response, "WWW-Authenticate", "Bearer realm=\"kvblockd\"");
	if (retry_after(r->status)) {
		snprintf(text, sizeof text, "%u", retry_after(r->status));
		MHD_add_response_header(response, "Retry-After", text);
	}
	if ((r->status == KVB_E_METHOD || strcmp(r->method, "OPTIONS") == 0) &&
	    kvb_route_allow(r->path, text, sizeof text))
		MHD_add_response_header(response, "Allow", text);
	if (atomic_load(&r->f->draining))
		MHD_add_response_header(response, "Connection", "close");
}

enum MHD_Result kvb_answer_send(struct kvb_request *r)
{
	char cause[KVB_MESSAGE_MAX] = "";
	struct MHD_Response *response;
	enum MHD_Result queued;
	unsigned http;
	uint64_t bytes, us;

	encode(r, cause);
	http = http_status(r); /* before make_response takes the bytes */
	response = make_response(r, &bytes);
	if (!response)
		return MHD_NO;
	add_headers(r, response, http);
	kvb_conn_phase(r);
	kvb_conn_deadline(r, bytes);
	queued = MHD_queue_response(r->mhd, http, response);
	MHD_destroy_response(response);
	r->answered = queued == MHD_YES;
	us = kvb_now_us() - r->begin_us;
	kvb_metrics_add(&r->f->metrics, METRIC_http_response_bytes, bytes);
	kvb_metrics_request(&r->f->metrics, r->route ? r->route->id : ROUTE_COUNT, http, us);
	log_answer(r, http, us, cause);
	return queued;
}
