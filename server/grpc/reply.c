/*
 * reply.c - answers: response headers, framed messages, trailers; metrics and the log line.
 *
 * A successful call is headers, one message, trailers; a failed one trailers only. Beside
 * grpc-status and grpc-message a failure has our own wire code (slabkv-code, for gRPC's codes are
 * fewer) and the field at fault. The message's bytes are not copied into the answer: nghttp2 asks
 * for them frame by frame. Runs on the connection's thread.
 */
#include "internal.h"

#include <assert.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <skv/clock.h>
#include <skv/log.h>

#define NV_MAX 8

struct headers {
	nghttp2_nv v[NV_MAX];
	size_t n;
};

/* Names are constants; values are copied by nghttp2. */
static void add(struct headers *h, const char *name, const char *value)
{
	assert(h->n < NV_MAX);
	h->v[h->n++] = (nghttp2_nv){ (uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value),
				     NGHTTP2_NV_FLAG_NO_COPY_NAME };
}

static void add_trailers(struct grpc_stream *st, struct headers *h, char number[4])
{
	assert(st->answered);
	if (st->code == GRPC_OK)
		memcpy(number, "0", 2);
	else
		snprintf(number, 4, "%u", st->code);
	add(h, "grpc-status", number);
	if (st->trailer_message)
		add(h, "grpc-message", st->trailer_message);
	if (st->trailer_code)
		add(h, "slabkv-code", st->trailer_code);
	if (st->trailer_field)
		add(h, "slabkv-field", st->trailer_field);
}

static void add_begin(struct grpc_stream *st, struct headers *h)
{
	add(h, ":status", "200");
	add(h, "content-type", "application/grpc");
	add(h, "x-request-id", st->c.id);
	add(h, "grpc-accept-encoding", "identity"); /* no compression */
}

/* ---- bytes of the answer --------------------------------------------------------------------- */

static ssize_t give(nghttp2_session *h2, int32_t id, uint8_t *out, size_t size, uint32_t *flags,
		    nghttp2_data_source *source, void *ctx)
{
	struct grpc_stream *st = source->ptr;
	size_t n = 0;

	(void)ctx;
	assert(st->head_at <= PREFIX && st->data_at <= st->n_data);
	if (st->head_at < PREFIX) {
		n = (size_t)(PREFIX - st->head_at) < size ? (size_t)(PREFIX - st->head_at) : size;
		memcpy(out, st->head + st->head_at, n);
		st->head_at = (uint8_t)(st->head_at + n);
	}
	if (n < size && st->data_at < st->n_data) {
		size_t k =
			st->n_data - st->data_at < size - n ? st->n_data - st->data_at : size - n;

		memcpy(out + n, st->data + st->data_at, k);
		st->data_at += k;
		n += k;
	}
	if (st->data_at < st->n_data || st->head_at < PREFIX)
		return (ssize_t)n;
	if (st->answered) {
		struct headers h = { .n = 0 };
		char number[4];

		add_trailers(st, &h, number);
		*flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
		if (nghttp2_submit_trailer(h2, id, h.v, h.n) != 0)
			return NGHTTP2_ERR_CALLBACK_FAILURE;
		return (ssize_t)n;
	}
	if (n > 0)
		return (ssize_t)n;
	st->deferred = true;
	return NGHTTP2_ERR_DEFERRED;
}

static void begin_answer(struct grpc_stream *st)
{
	struct headers h = { .n = 0 };
	nghttp2_data_provider provider = { .source.ptr = st, .read_callback = give };

	assert(!st->begun);
	st->begun = true;
	add_begin(st, &h);
	nghttp2_submit_response(st->conn->h2, st->id, h.v, h.n, &provider);
}

static void trailers_only(struct grpc_stream *st)
{
	struct headers h = { .n = 0 };
	char number[4];

	assert(!st->begun);
	st->begun = true;
	add_begin(st, &h);
	add_trailers(st, &h, number);
	nghttp2_submit_response(st->conn->h2, st->id, h.v, h.n, NULL);
}

static void go_on(struct grpc_stream *st)
{
	if (!st->deferred)
		return;
	st->deferred = false;
	nghttp2_session_resume_data(st->conn->h2, st->id);
}

/* ---- log and counters ------------------------------------------------------------------------ */

static void client_address(const struct grpc_stream *st, char *out, size_t size)
{
	struct sockaddr_storage sa;
	socklen_t len = sizeof sa;
	char port[8];

	if (getpeername(st->conn->io->fd, (struct sockaddr *)&sa, &len) != 0 ||
	    getnameinfo((struct sockaddr *)&sa, len, out, (socklen_t)size, port, sizeof port,
			NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		snprintf(out, size, "?");
}

/* Returns the log level: failures caused by the client or its short deadline are no fault of this
 * manager. */
static enum skv_log_level level_of(const struct grpc_stream *st, int status, bool slow)
{
	int http = skv_status_http(status);

	if (slow)
		return SKV_LOG_WARN;
	if (http < 500 || st->code == GRPC_DEADLINE_EXCEEDED || st->code == GRPC_CANCELLED)
		return SKV_LOG_DEBUG;
	return http == 500 ? SKV_LOG_ERROR : SKV_LOG_WARN;
}

static void note(struct grpc_stream *st, int status, const char *cause)
{
	struct skv_service *s = st->loop->g->s;
	const uint64_t slow_ms = atomic_load(&s->slow_ms);
	bool failed = status != SKV_OK, slow;
	uint64_t us;
	enum skv_log_level level;
	char client[64];

	st->c.failed = failed;
	us = skv_request_count(&st->c, st->code);
	slow = slow_ms && us / 1000 >= slow_ms && st->c.route;
	level = level_of(st, status, slow);
	if (slow)
		skv_metrics_add(&s->metrics, METRIC_grpc_slow, 1);
	if (skv_audit_wants(&st->c, status)) {
		client_address(st, client, sizeof client);
		skv_audit_call(&st->c, status, client);
	}
	if ((!failed && !slow) || !skv_log_enabled(level))
		return;
	client_address(st, client, sizeof client);

	struct skv_trace_ids ids;
	struct skv_log_field fields[8 + SKV_TRACE_FIELDS] = {
		SKV_TEXT("id", st->c.id),
		SKV_TEXT("method", st->path ? st->path : ""),
		SKV_NUMBER("status", st->code),
		SKV_TEXT("code", skv_status_name(status)),
		SKV_MILLI("ms", us),
		SKV_TEXT("client", client),
		SKV_TEXT("field", st->field),
		SKV_TEXT("cause", cause),
	};

	size_t n = failed ? 8 : 6;

	n += skv_trace_fields(st->c.trace, &ids, fields + n);
	assert(n <= sizeof fields / sizeof fields[0]);
	skv_request_log(&st->c, level, "grpc", failed ? "call failed" : "call was slow", fields, n);
}

/* ---- ends ------------------------------------------------------------------------------------ */

static void end_with(struct grpc_stream *st, unsigned code, int status, const char *message,
		     const char *field, const char *cause)
{
	ASSERT_LOOP_THREAD(st->loop);
	assert(st->conn && !st->answered);
	st->answered = true;
	st->code = (uint8_t)code;
	if (code != GRPC_OK) {
		snprintf(st->field, sizeof st->field, "%s", field);
		skv_percent_encode(message, st->text);
		st->trailer_message = st->text;
		st->trailer_code = skv_status_name(status);
		st->trailer_field = *st->field ? st->field : NULL;
	}
	note(st, status, cause);
	if (st->begun)
		go_on(st);
	else if (code == GRPC_OK && st->head_at < PREFIX)
		begin_answer(st);
	else
		trailers_only(st);
	skv_grpc_client_turn(st); /* to take it */
}

void skv_grpc_fail(struct grpc_stream *st, enum grpc_code code, int status, const char *message)
{
	if (!st->answered)
		end_with(st, code, status, message, "", message);
}

void skv_grpc_reply(struct grpc_stream *st)
{
	struct skv_service *s = st->loop->g->s;
	char cause[SKV_MESSAGE_MAX] = "";
	int status = skv_request_finish(&st->c, cause);
	size_t n;

	if (status != SKV_OK && st->c.answer != GRPC_OK) {
		/* The answer of a failed call is its trailers. */
		end_with(st, st->c.answer, status, st->c.err.message, st->c.err.field, cause);
		return;
	}
	if (st->c.fixed)
		skv_put_bytes(&st->c.out, st->c.fixed, strlen(st->c.fixed));
	n = st->c.out.len;
	assert(n <= UINT32_MAX); /* the prefix of a message has four bytes for it */
	st->data = st->c.out.data;
	st->n_data = n;
	st->head[0] = 0;
	for (int i = 0; i < 4; i++)
		st->head[1 + i] = (uint8_t)(n >> (24 - 8 * i));
	skv_metrics_add(&s->metrics, METRIC_grpc_response_bytes, n);
	/* A failure at API level (its code is in the answer) is a normal answer here. */
	end_with(st, GRPC_OK, status, "", status == SKV_OK ? "" : st->c.err.field, cause);
}

void skv_grpc_send(struct grpc_stream *st, const void *p, size_t n)
{
	const uint8_t head[PREFIX] = { 0, (uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8),
				       (uint8_t)n };

	assert(st->conn->own_bytes >= st->wire.len);
	if (st->answered)
		return;
	if (st->data_at == st->n_data) {
		st->conn->own_bytes -= st->wire.len;
		skv_buf_clear(&st->wire);
		st->n_data = st->data_at = 0;
	}
	/* Stops a client that sends requests and never reads; these calls need no token. */
	if (st->conn->own_bytes + n > OWN_BYTES) {
		skv_metrics_add(&st->loop->g->s->metrics, METRIC_grpc_streams_refused, 1);
		skv_grpc_fail(st, GRPC_RESOURCE_EXHAUSTED, SKV_E_TOO_MANY,
			      "too many answers wait for the client to read them");
		return;
	}
	st->conn->own_bytes -= st->wire.len;
	skv_put_bytes(&st->wire, head, sizeof head);
	skv_put_bytes(&st->wire, p, n);
	st->conn->own_bytes += st->wire.len;
	if (st->wire.failed) {
		st->n_data = st->data_at = 0;
		skv_grpc_fail(st, GRPC_RESOURCE_EXHAUSTED, SKV_E_NOMEM, "out of memory");
		return;
	}
	st->head_at = PREFIX; /* the messages have theirs */
	st->data = st->wire.data;
	st->n_data = st->wire.len;
	if (st->begun)
		go_on(st);
	else
		begin_answer(st);
}

void skv_grpc_end(struct grpc_stream *st)
{
	if (st->answered)
		return;
	st->head_at = PREFIX;
	end_with(st, GRPC_OK, SKV_OK, "", "", "");
}

void skv_grpc_not_grpc(struct grpc_stream *st, unsigned http)
{
	struct headers h = { .n = 0 };

	assert(!st->answered && !st->begun);
	st->answered = st->begun = true;
	st->code = GRPC_UNKNOWN;
	note(st, SKV_E_INVALID,
	     http == 405 ? "the HTTP method is not POST" : "the content type is not gRPC's");
	add(&h, ":status", http == 405 ? "405" : "415");
	nghttp2_submit_response(st->conn->h2, st->id, h.v, h.n, NULL);
}
