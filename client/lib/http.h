/*
 * http.h - HTTP/1.1 requests over a pool of connections (libcurl). One request, one answer; knows
 * neither messages nor retries. Any thread.
 */
#ifndef SKV_CLIENT_HTTP_H
#define SKV_CLIENT_HTTP_H

#include <stdbool.h>
#include <stdint.h>

#include <skv/bytes.h>
#include <skv/status.h>

struct skv_http;

struct skv_http_request {
	const char *method; /* "GET", "PUT", "POST", "DELETE" */
	const char *url;
	const void *body; /* or NULL */
	size_t body_len;
	bool protobuf; /* body and wanted answer; else JSON */
	uint64_t timeout_ms; /* > 0; connecting included */
};

#define SKV_HTTP_ANSWER_MAX (512u << 20) /* bytes of one answer */

/* `token` (may be NULL) is copied and sent as bearer token. */
int skv_http_create(const char *token, struct skv_http **out, struct skv_error *err);
void skv_http_destroy(struct skv_http *h);

/* Does one request. SKV_OK with any HTTP status in *http_status and the answer in `body`
 * (appended); SKV_E_NETWORK (not reached, or broken off), SKV_E_TIMEOUT, SKV_E_TOO_LARGE,
 * SKV_E_NOMEM. */
int skv_http_do(struct skv_http *h, const struct skv_http_request *r, struct skv_buf *body,
		long *http_status, struct skv_error *err);

#endif
