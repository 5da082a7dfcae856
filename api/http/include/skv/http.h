/*
 * http.h - HTTP requests over a pool of connections (libcurl): what the client library, the command line and the
 * manager's side of fs-masters call others with. One request, one answer; knows neither messages nor retries.
 *
 * No proxy is asked, no redirect followed. Any thread.
 */
#ifndef SKV_HTTP_H
#define SKV_HTTP_H

#include <stddef.h>
#include <stdint.h>

#include <skv/bytes.h>
#include <skv/status.h>

struct skv_http;

/* Of the body and of the wanted answer. GRPC is a unary call, HTTP/2 in clear text from the first byte; its frame of
 * five bytes is the caller's. */
enum skv_http_form { SKV_HTTP_JSON, SKV_HTTP_PROTOBUF, SKV_HTTP_GRPC };
#define SKV_HTTP_FORMS 3

struct skv_http_request {
	const char *method; /* "GET", "PUT", "POST", "DELETE" */
	const char *url;
	const void *body; /* or NULL */
	size_t body_len;
	enum skv_http_form form;
	uint64_t timeout_ms; /* > 0; connecting included */
	uint64_t connect_ms; /* for connecting; 0 = no other bound than timeout_ms */
	size_t answer_max;   /* bytes; 0 = SKV_HTTP_ANSWER_MAX */
	size_t buffer;       /* bytes that are read at a time; 0 = libcurl's choice */
	int *grpc_status;    /* of GRPC: what the trailers said, -1 = nothing */
};

#define SKV_HTTP_ANSWER_MAX ((size_t)512 << 20)

/* `token` (may be NULL) is copied and sent as bearer token. For https the certificates in $SSL_CERT_FILE are trusted, else those
 * where systems have them. */
int skv_http_create(const char *token, struct skv_http **out, struct skv_error *err);
/* Those in `ca_file` (PEM; copied) instead. Before the first request. SKV_E_NOMEM. */
int skv_http_trust(struct skv_http *h, const char *ca_file, struct skv_error *err);
void skv_http_destroy(struct skv_http *h); /* NULL is fine */

/* Does one request. SKV_OK with any HTTP status in *http_status and the answer in `body`
 * (appended); SKV_E_NETWORK (not reached, or broken off), SKV_E_TIMEOUT, SKV_E_TOO_LARGE, SKV_E_INVALID (no http URL),
 * SKV_E_NOMEM. */
int skv_http_do(struct skv_http *h, const struct skv_http_request *r, struct skv_buf *body,
		long *http_status, struct skv_error *err);

#endif
