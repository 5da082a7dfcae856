/*
 * http.h - HTTP requests over a pool of connections (libcurl), for the client library, the command
 * line and the manager's calls to fs-masters. One request, one answer; no knowledge of messages or
 * retries.
 *
 * Ignores proxies and redirects. Any thread.
 */
#ifndef SKV_HTTP_H
#define SKV_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <skv/bytes.h>
#include <skv/status.h>

struct skv_http;

/* Form of the body and of the expected answer. GRPC is a unary call, HTTP/2 in clear text from the
 * first byte; the caller provides the five-byte frame header. */
enum skv_http_form { SKV_HTTP_JSON, SKV_HTTP_PROTOBUF, SKV_HTTP_GRPC };
#define SKV_HTTP_FORMS 3

struct skv_http_request {
	const char *method; /* "GET", "PUT", "POST", "DELETE" */
	const char *url;
	const void *body; /* or NULL */
	size_t body_len;
	enum skv_http_form form;
	const char *trace;   /* sent as header traceparent; NULL or "": none */
	uint64_t timeout_ms; /* > 0; connecting included */
	uint64_t connect_ms; /* for connecting; 0 = only timeout_ms */
	size_t answer_max;   /* bytes; 0 = SKV_HTTP_ANSWER_MAX */
	size_t buffer;       /* bytes read at a time; 0 = libcurl's choice */
	int *grpc_status;    /* GRPC: status from the trailers, -1 = none */
	/* Hedging, not for GRPC: if no answer has arrived after hedge_ms, the request is also sent
	 * to hedge_url, without hedging of its own; NULL: never. The first answer below 500 counts,
	 * and the other request is given up. *hedged: the answer came from hedge_url. */
	const char *hedge_url;
	uint64_t hedge_ms;
	bool *hedged;
	bool plain; /* without the line of skv_http_add_line */
	/* A header of the answer that is wanted, and room for SKV_HTTP_WANTED_MAX bytes of its
	 * value: "" = it has none, or a longer one. NULL: none is; not for GRPC. */
	const char *wanted;
	char *got;
};

#define SKV_HTTP_WANTED_MAX 400u

#define SKV_HTTP_ANSWER_MAX ((size_t)512 << 20)

/* For https; PEM files, read with each new connection. */
struct skv_http_tls {
	/* Certificates to trust. NULL or "": $SSL_CERT_FILE, else the system's usual places. */
	const char *ca_file;
	const char *cert_file; /* shown when a server asks for one; NULL or "": none */
	const char *key_file;  /* private key of cert_file */
};

/* Sets the TLS options of requests for which `tls` of skv_http_create is NULL. `ca_param` is the
 * parameter of this process that names ca_file, for errors ("ca_file" until this is called).
 * Borrowed; main calls this before it starts threads. */
void skv_http_default_tls(const struct skv_http_tls *tls, const char *ca_param);

/* Strings are copied. `token` (may be NULL) is sent as bearer token. `tls` NULL: the process's
 * default. SKV_E_NOMEM. */
int skv_http_create(const char *token, const struct skv_http_tls *tls, struct skv_http **out,
		    struct skv_error *err);
void skv_http_destroy(struct skv_http *h); /* NULL is fine */
/* Sends "Name: value" with each request that is not plain. Once, before the first one.
 * SKV_E_NOMEM. */
int skv_http_add_line(struct skv_http *h, const char *line);

/* Does one request. SKV_OK with any HTTP status in *http_status and the answer in `body`
 * (appended); SKV_E_NETWORK (not reached, or connection lost), SKV_E_TIMEOUT, SKV_E_TOO_LARGE,
 * SKV_E_INVALID (not an http URL), SKV_E_NOMEM. */
int skv_http_do(struct skv_http *h, const struct skv_http_request *r, struct skv_buf *body,
		long *http_status, struct skv_error *err);

/* ---- TLS without HTTP ------------------------------------------------------------------------ */

/* A TLS connection that carries anything, with the certificates of `h`. One thread at a time. */
struct skv_http_pipe;
/* To "https://host:port". The server's certificate is checked. SKV_E_NETWORK, SKV_E_TIMEOUT,
 * SKV_E_NOMEM. */
int skv_http_pipe_open(const struct skv_http *h, const char *url, uint64_t connect_ms,
		       struct skv_http_pipe **out, struct skv_error *err);
void skv_http_pipe_close(struct skv_http_pipe *p); /* NULL is fine */
/* To wait for; it is read and written by the pipe only. */
int skv_http_pipe_fd(const struct skv_http_pipe *p);
/* Bytes moved, at least 1; 0: wait for the socket, then the same again; -1: it is broken, or the
 * other end has closed it. */
ssize_t skv_http_pipe_send(struct skv_http_pipe *p, const void *bytes, size_t n);
ssize_t skv_http_pipe_receive(struct skv_http_pipe *p, void *bytes, size_t n);

#endif
