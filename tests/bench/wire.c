/*
 * wire.c - one connection with KVCM's API, over HTTP/1.1 or gRPC (see wire.h).
 *
 * A gRPC message is one byte 0 (not compressed), its length as four bytes, big-endian, then
 * protobuf; the call's status comes in the trailers.
 */
#include "wire.h"

#include "cli.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <skv/http.h>
#include <skv/mem.h>

#define GRPC_HEAD 5u
_Static_assert(GRPC_HEAD == sizeof(uint8_t) + sizeof(uint32_t), "a flag and a length");
#define BUFFER ((size_t)256 << 10) /* answers are long */

struct skv_wire {
	struct skv_http *http; /* one call at a time, so one connection */
	char *base;
	bool grpc;
	uint32_t timeout_ms;
	struct skv_buf url, request, framed, answer;
};

struct skv_wire *skv_wire_open(const char *base, bool grpc, const struct skv_cli *cli)
{
	const struct slabkv_options *o = &cli->library;
	const struct skv_http_tls tls = { o->ca_file, o->cert_file, o->key_file };
	struct skv_wire *w = skv_calloc(1, sizeof *w);

	if (!w)
		return NULL;
	w->grpc = grpc;
	w->timeout_ms = cli->timeout_ms;
	w->base = skv_strdup(base);
	if (!w->base || skv_http_create(cli->token, &tls, &w->http, NULL) != SKV_OK) {
		skv_wire_close(w);
		return NULL;
	}
	return w;
}

void skv_wire_close(struct skv_wire *w)
{
	if (!w)
		return;
	skv_http_destroy(w->http);
	skv_buf_destroy(&w->url);
	skv_buf_destroy(&w->request);
	skv_buf_destroy(&w->framed);
	skv_buf_destroy(&w->answer);
	skv_free(w->base);
	skv_free(w);
}

struct skv_buf *skv_wire_request(struct skv_wire *w)
{
	skv_buf_clear(&w->request);
	return &w->request;
}

static int fail(struct slabkv_error *err, int code, const char *method, const char *why)
{
	assert(code != SLABKV_OK);
	err->code = code;
	snprintf(err->message, sizeof err->message, "%s: %.*s", method, SKV_MESSAGE_MAX - 64, why);
	return code;
}

static const struct skv_buf *frame(struct skv_wire *w)
{
	uint32_t n = (uint32_t)w->request.len;

	assert(w->request.len <= UINT32_MAX); /* SLABKV_MAX_KEYS keys and some words */
	if (!w->grpc)
		return &w->request;
	skv_buf_clear(&w->framed);
	skv_put_u8(&w->framed, 0);
	for (int shift = 24; shift >= 0; shift -= 8)
		skv_put_u8(&w->framed, (uint8_t)(n >> shift));
	skv_put_bytes(&w->framed, w->request.data, w->request.len);
	return &w->framed;
}

/* The answer without its protocol framing. */
static int unframe(const struct skv_wire *w, const char *method, long http, int grpc_status,
		   const char **answer, size_t *n, struct slabkv_error *err)
{
	const size_t head = w->grpc ? GRPC_HEAD : 0;
	char why[64];

	snprintf(why, sizeof why, "HTTP status %ld, gRPC status %d", http, grpc_status);
	if (http != 200 || (w->grpc && grpc_status != 0) || w->answer.len < head)
		return fail(err, SLABKV_E_INTERNAL, method, why);
	*answer = (const char *)w->answer.data + head;
	*n = w->answer.len - head;
	return SLABKV_OK;
}

int skv_wire_call(struct skv_wire *w, const char *method, const char **answer, size_t *n,
		  struct slabkv_error *err)
{
	const struct skv_buf *body = frame(w);
	int grpc_status = -1, rc;
	struct skv_http_request r = {
		.method = "POST", .body = body->data, .body_len = body->len,
		.form = w->grpc ? SKV_HTTP_GRPC : SKV_HTTP_JSON,
		.timeout_ms = w->timeout_ms, .buffer = BUFFER, .grpc_status = &grpc_status,
	};
	struct skv_error why;
	long http = 0;

	skv_buf_clear(&w->url);
	skv_buf_printf(&w->url, "%s%s", w->base, method);
	skv_put_u8(&w->url, 0);
	skv_buf_clear(&w->answer);
	if (w->url.failed || body->failed)
		return fail(err, SLABKV_E_NOMEM, method, "out of memory");
	assert(!w->grpc || body->len == w->request.len + GRPC_HEAD);
	r.url = (const char *)w->url.data;
	rc = skv_http_do(w->http, &r, &w->answer, &http, &why);
	return rc == SKV_OK ? unframe(w, method, http, grpc_status, answer, n, err)
			    : fail(err, rc, method, why.message);
}
