/*
 * redis_conn.h - a connection to one Redis server, plain or TLS. hiredis finds the server, writes
 * commands as bytes and parses answers; the bytes travel here, because its own TLS wants OpenSSL.
 *
 * One thread at a time.
 */
#ifndef SKV_STORE_REDIS_CONN_H
#define SKV_STORE_REDIS_CONN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <hiredis/hiredis.h>

#include <skv/status.h>

#define REDIS_PATH_MAX 1023u
#define REDIS_HOST_MAX 255u

/* PEM files, read for each connection: new ones need no restart. "" = none. */
struct redis_tls {
	bool on;
	char ca_file[REDIS_PATH_MAX + 1];     /* who signs servers; "": the system's CAs */
	char cert_file[REDIS_PATH_MAX + 1];   /* shown to servers that ask */
	char key_file[REDIS_PATH_MAX + 1];    /* its key */
	char server_name[REDIS_HOST_MAX + 1]; /* in every server's certificate; "": its host */
};

struct redis_conn;

struct redis_node {
	char host[REDIS_HOST_MAX + 1];
	uint16_t port;
};

/* Connects, and shakes hands. NULL: SKV_E_STORE_IO or SKV_E_NOMEM, and `err` says why. */
struct redis_conn *redis_conn_open(const struct redis_node *at, const struct redis_tls *tls,
				   struct skv_error *err);
void redis_conn_close(struct redis_conn *c); /* may be NULL */
/* Silence that ends a call. */
void redis_conn_limit(struct redis_conn *c, uint32_t ms);
/* What is done while an answer is late: first after REDIS_LATE_MS, then again and again. */
#define REDIS_LATE_MS 100u
void redis_conn_late(struct redis_conn *c, void (*late)(void *ctx), void *ctx);
/* Why the connection is broken. */
const char *redis_conn_error(const struct redis_conn *c);

/* A command, as redisCommand formats it, and its answer (freeReplyObject). NULL: the connection is
 * broken. */
redisReply *redis_command(struct redis_conn *c, const char *format, ...);
redisReply *redis_command_argv(struct redis_conn *c, int n, const char **v, const size_t *len);
/* The same in two steps, for several commands at once. */
bool redis_send(struct redis_conn *c, const char *format, ...);
redisReply *redis_receive(struct redis_conn *c);

/* ---- redis_tls.c ----------------------------------------------------------------------------- */

/* A session over a socket that does not block. */
struct redis_session;
struct redis_session *redis_session_new(int fd, const char *host, const struct redis_tls *tls,
					struct skv_error *err);
void redis_session_free(struct redis_session *s); /* may be NULL */

/* Bytes moved (a handshake: 1, it is done), 0: the other end has closed, or what stopped it. */
enum { REDIS_WANTS_READ = -1, REDIS_WANTS_WRITE = -2, REDIS_BROKEN = -3 };
ssize_t redis_session_handshake(struct redis_session *s);
ssize_t redis_session_receive(struct redis_session *s, void *p, size_t n);
/* What wanted to wait is sent again, the same bytes. */
ssize_t redis_session_send(struct redis_session *s, const void *p, size_t n);
/* Why it is broken, for people. */
const char *redis_session_error(const struct redis_session *s);

#endif
