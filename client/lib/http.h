/*
 * http.h - HTTP/1.1 requests over a pool of connections (libcurl). One request, one answer; knows
 * neither messages nor retries. Any thread.
 */
#ifndef KVB_CLIENT_HTTP_H
#define KVB_CLIENT_HTTP_H

#include <stdbool.h>
#include <stdint.h>

#include <kvb/bytes.h>
#include <kvb/status.h>

struct kvb_http;

struct kvb_http_request {
	const char *method; /* "GET", "PUT", "POST", "DELETE" */
	const char *url;
	const void *body; /* or NULL */
	size_t body_len;
	bool protobuf; /* body and wanted answer; else JSON */
	uint64_t timeout_ms; /* > 0; connecting included */
};

#define KVB_HTTP_ANSWER_MAX (512u << 20) /* bytes of one answer */

/* `token` (may be NULL) is copied and sent as bearer token. */
int kvb_http_create(const char *token, struct kvb_http **out, struct kvb_error *err);
void kvb_http_destroy(struct kvb_http *h);

/* Does one request. KVB_OK with any HTTP status in *http_status and the answer in `body`
 * (appended); KVB_E_NETWORK (not reached, or broken off), KVB_E_TIMEOUT, KVB_E_TOO_LARGE,
 * KVB_E_NOMEM. */
int kvb_http_do(struct kvb_http *h, const struct kvb_http_request *r, struct kvb_buf *body,
		long *http_status, struct kvb_error *err);

#endif
