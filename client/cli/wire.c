/*
 * wire.c - one libcurl handle for each connection (see wire.h).
 *
 * A gRPC message is one byte 0 (not compressed), its length as four bytes, big-endian, then protobuf; the call's
 * status comes in the trailers. libcurl does HTTP/2 with prior knowledge, as a gRPC client without TLS does.
 */
#include "wire.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <skv/mem.h>

#define GRPC_HEAD 5u

struct skv_wire {
	CURL *curl;
	struct curl_slist *headers;
	char *base;
	bool grpc;
	bool connected; /* of gRPC: the last call went well */
	uint32_t timeout_ms;
	int grpc_status; /* -1: none came */
	struct skv_buf url, request, framed, answer;
};

static size_t on_body(char *data, size_t one, size_t n, void *ctx)
{
	struct skv_wire *w = ctx;

	(void)one;
	skv_put_bytes(&w->answer, data, n);
	return w->answer.failed ? 0 : n;
}

/* Trailers come this way too. */
static size_t on_header(char *line, size_t one, size_t n, void *ctx)
{
	static const char name[] = "grpc-status:";
	struct skv_wire *w = ctx;

	(void)one;
	if (n > sizeof name && strncasecmp(line, name, sizeof name - 1) == 0)
		w->grpc_status = atoi(line + sizeof name - 1);
	return n;
}

static bool add_header(struct skv_wire *w, const char *line)
{
	struct curl_slist *more = curl_slist_append(w->headers, line);

	if (more)
		w->headers = more;
	return more != NULL;
}

static bool add_headers(struct skv_wire *w, const char *token)
{
	struct skv_buf line = { 0 };
	bool ok = add_header(w, w->grpc ? "Content-Type: application/grpc" : "Content-Type: application/json") &&
		  add_header(w, "Expect:") && (!w->grpc || add_header(w, "TE: trailers"));

	if (ok && token) {
		skv_buf_printf(&line, "Authorization: Bearer %s", token);
		skv_put_u8(&line, 0);
		ok = !line.failed && add_header(w, (const char *)line.data);
	}
	skv_buf_destroy(&line);
	return ok;
}

static void set_options(struct skv_wire *w)
{
	curl_easy_setopt(w->curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(w->curl, CURLOPT_TCP_NODELAY, 1L);
	curl_easy_setopt(w->curl, CURLOPT_POST, 1L);
	curl_easy_setopt(w->curl, CURLOPT_HTTPHEADER, w->headers);
	curl_easy_setopt(w->curl, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(w->curl, CURLOPT_WRITEDATA, w);
	curl_easy_setopt(w->curl, CURLOPT_BUFFERSIZE, 256L << 10);
	curl_easy_setopt(w->curl, CURLOPT_TIMEOUT_MS, (long)w->timeout_ms);
	curl_easy_setopt(w->curl, CURLOPT_PROXY, "");
	if (!w->grpc)
		return;
	curl_easy_setopt(w->curl, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(w->curl, CURLOPT_HEADERDATA, w);
}

struct skv_wire *skv_wire_open(const char *base, bool grpc, const char *token, uint32_t timeout_ms)
{
	struct skv_wire *w = skv_calloc(1, sizeof *w);

	if (!w)
		return NULL;
	w->grpc = grpc;
	w->timeout_ms = timeout_ms;
	w->base = skv_strdup(base);
	w->curl = curl_easy_init();
	if (!w->base || !w->curl || !add_headers(w, token)) {
		skv_wire_close(w);
		return NULL;
	}
	set_options(w);
	return w;
}

void skv_wire_close(struct skv_wire *w)
{
	if (!w)
		return;
	if (w->curl)
		curl_easy_cleanup(w->curl);
	curl_slist_free_all(w->headers);
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
	err->code = code;
	snprintf(err->message, sizeof err->message, "%s: %s", method, why);
	return code;
}

static const struct skv_buf *frame(struct skv_wire *w)
{
	uint32_t n = (uint32_t)w->request.len;

	if (!w->grpc)
		return &w->request;
	skv_buf_clear(&w->framed);
	skv_put_u8(&w->framed, 0);
	for (int shift = 24; shift >= 0; shift -= 8)
		skv_put_u8(&w->framed, (uint8_t)(n >> shift));
	skv_put_bytes(&w->framed, w->request.data, w->request.len);
	return &w->framed;
}

/* The answer without what its protocol puts around it. */
static int unframe(const struct skv_wire *w, const char *method, const char **answer, size_t *n,
		   struct slabkv_error *err)
{
	char why[64];
	long http = 0;

	curl_easy_getinfo(w->curl, CURLINFO_RESPONSE_CODE, &http);
	snprintf(why, sizeof why, "HTTP status %ld, gRPC status %d", http, w->grpc_status);
	if (http != 200 || (w->grpc && (w->grpc_status != 0 || w->answer.len < GRPC_HEAD)))
		return fail(err, SLABKV_E_INTERNAL, method, why);
	*answer = (const char *)w->answer.data + (w->grpc ? GRPC_HEAD : 0);
	*n = w->answer.len - (w->grpc ? GRPC_HEAD : 0);
	return SLABKV_OK;
}

int skv_wire_call(struct skv_wire *w, const char *method, const char **answer, size_t *n, struct slabkv_error *err)
{
	const struct skv_buf *body = frame(w);
	CURLcode rc;

	skv_buf_clear(&w->url);
	skv_buf_printf(&w->url, "%s%s", w->base, method);
	skv_put_u8(&w->url, 0);
	skv_buf_clear(&w->answer);
	if (w->url.failed || body->failed)
		return fail(err, SLABKV_E_NOMEM, method, "out of memory");
	w->grpc_status = -1;
	curl_easy_setopt(w->curl, CURLOPT_URL, (const char *)w->url.data);
	curl_easy_setopt(w->curl, CURLOPT_POSTFIELDS, body->data ? (const char *)body->data : "");
	curl_easy_setopt(w->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body->len);
	/* Asked for twice on one connection, libcurl 7.88 (Debian 12) refuses it: "error in the framing layer". */
	if (w->grpc)
		curl_easy_setopt(w->curl, CURLOPT_HTTP_VERSION,
				 (long)(w->connected ? CURL_HTTP_VERSION_NONE : CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE));
	rc = curl_easy_perform(w->curl);
	w->connected = rc == CURLE_OK;
	if (rc == CURLE_OPERATION_TIMEDOUT)
		return fail(err, SLABKV_E_TIMEOUT, method, "no answer in time");
	if (rc != CURLE_OK)
		return fail(err, SLABKV_E_NETWORK, method, curl_easy_strerror(rc));
	return unframe(w, method, answer, n, err);
}
