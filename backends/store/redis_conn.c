/*
 * redis_conn.c - a connection to one Redis server: its socket or TLS session, and hiredis for the
 * protocol.
 *
 * The socket does not block; waits are polls, each at most as long as the limit. So a large answer
 * may take its time, and silence ends a call.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <skv/bytes.h>
#include <skv/clock.h>
#include <skv/mem.h>

#include "redis_conn.h"

#define CONNECT_MS 300u
#define ANSWER_MS 500u
#define LATE_AGAIN_MS 30u
#define PIECE ((size_t)64 << 10) /* bytes received at once */

struct redis_conn {
	int fd;
	uint32_t limit_ms;
	struct redis_session *tls; /* NULL: plain */
	redisReader *reader;
	struct skv_buf out; /* not sent yet */
	char *piece;
	bool heard; /* it has said something */
	void (*late)(void *ctx); /* NULL: nothing is done meanwhile */
	void *late_ctx;
	char error[320];
};

const char *redis_conn_error(const struct redis_conn *c) { return c->error; }

void redis_conn_limit(struct redis_conn *c, uint32_t ms)
{
	assert(ms > 0);
	c->limit_ms = ms;
}

void redis_conn_close(struct redis_conn *c)
{
	if (!c)
		return;
	redis_session_free(c->tls);
	if (c->reader)
		redisReaderFree(c->reader);
	if (c->fd >= 0)
		close(c->fd);
	skv_buf_destroy(&c->out);
	skv_free(c->piece);
	skv_free(c);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static bool broken(struct redis_conn *c, const char *why)
{
	snprintf(c->error, sizeof c->error, "%s", why);
	return false;
}

/* By the other end. One that speaks TLS does that to who does not. */
static bool closed(struct redis_conn *c, const char *why)
{
	snprintf(c->error, sizeof c->error, "%s%s", why,
		 c->tls || c->heard ? "" : " (if this port speaks TLS, the URL begins with "
					   "rediss://)");
	return false;
}

static bool no_redis(struct redis_conn *c)
{
	snprintf(c->error, sizeof c->error, "it is not Redis: %s", c->reader->errstr);
	return false;
}

void redis_conn_late(struct redis_conn *c, void (*late)(void *ctx), void *ctx)
{
	c->late = late;
	c->late_ctx = ctx;
}

static bool is_ready(const struct redis_conn *c, ssize_t wants, uint64_t ms)
{
	struct pollfd p = { c->fd, wants == REDIS_WANTS_WRITE ? POLLOUT : POLLIN, 0 };
	int rc;

	do
		rc = poll(&p, 1, (int)ms);
	while (rc < 0 && errno == EINTR);
	return rc > 0;
}

/* REDIS_WANTS_...; false: nothing came in time. */
static bool wait_for(struct redis_conn *c, ssize_t wants)
{
	const uint64_t end = skv_now_us() / 1000 + c->limit_ms;
	uint64_t now = end - c->limit_ms, next = REDIS_LATE_MS;

	for (; c->late && now + next < end; now = skv_now_us() / 1000, next = LATE_AGAIN_MS) {
		if (is_ready(c, wants, next))
			return true;
		c->late(c->late_ctx);
	}
	if (is_ready(c, wants, now < end ? end - now : 0))
		return true;
	snprintf(c->error, sizeof c->error, "no answer within %u ms", c->limit_ms);
	return false;
}

static ssize_t plain(struct redis_conn *c, ssize_t n, ssize_t wants)
{
	if (n >= 0)
		return n;
	if (errno == EAGAIN || errno == EINTR)
		return wants;
	closed(c, strerror(errno));
	return REDIS_BROKEN;
}

static ssize_t take(struct redis_conn *c)
{
	return c->tls ? redis_session_receive(c->tls, c->piece, PIECE)
		      : plain(c, recv(c->fd, c->piece, PIECE, 0), REDIS_WANTS_READ);
}

static ssize_t give(struct redis_conn *c, const uint8_t *p, size_t n)
{
	return c->tls ? redis_session_send(c->tls, p, n)
		      : plain(c, send(c->fd, p, n, MSG_NOSIGNAL), REDIS_WANTS_WRITE);
}

/* May `rc` be tried again? */
static bool go_on(struct redis_conn *c, ssize_t rc)
{
	assert(rc < 0);
	if (rc != REDIS_BROKEN)
		return wait_for(c, rc);
	if (c->tls)
		broken(c, redis_session_error(c->tls));
	return false;
}

static bool flush(struct redis_conn *c)
{
	size_t sent = 0;

	while (sent < c->out.len) {
		ssize_t rc = give(c, c->out.data + sent, c->out.len - sent);

		if (rc >= 0)
			sent += (size_t)rc;
		else if (!go_on(c, rc))
			return false;
	}
	skv_buf_clear(&c->out);
	if (c->out.cap > PIECE) /* a large batch is rare */
		skv_buf_trim(&c->out);
	return true;
}

static bool receive_more(struct redis_conn *c)
{
	ssize_t rc = take(c);

	if (rc < 0)
		return go_on(c, rc);
	if (rc == 0)
		return closed(c, "the server closed the connection");
	c->heard = true;
	if (redisReaderFeed(c->reader, c->piece, (size_t)rc) == REDIS_OK)
		return true;
	return no_redis(c);
}

/* ---- commands -------------------------------------------------------------------------------- */

/* Takes the text of a command; `n` < 0: there is none. */
static bool queue(struct redis_conn *c, char *text, int n)
{
	if (n < 0)
		return broken(c, "out of memory");
	skv_put_bytes(&c->out, text, (size_t)n);
	redisFreeCommand(text);
	return !c->out.failed || broken(c, "out of memory");
}

static bool send_list(struct redis_conn *c, const char *format, va_list ap)
{
	char *text = NULL;
	int n = redisvFormatCommand(&text, format, ap);

	return queue(c, text, n);
}

bool redis_send(struct redis_conn *c, const char *format, ...)
{
	va_list ap;
	bool well;

	va_start(ap, format);
	well = send_list(c, format, ap);
	va_end(ap);
	return well;
}

redisReply *redis_receive(struct redis_conn *c)
{
	void *r = NULL;

	if (c->out.len > 0 && !flush(c))
		return NULL;
	do
		if (redisReaderGetReply(c->reader, &r) != REDIS_OK) {
			no_redis(c);
			return NULL;
		}
	while (!r && receive_more(c));
	return r;
}

redisReply *redis_command(struct redis_conn *c, const char *format, ...)
{
	va_list ap;
	bool well;

	va_start(ap, format);
	well = send_list(c, format, ap);
	va_end(ap);
	return well ? redis_receive(c) : NULL;
}

redisReply *redis_command_argv(struct redis_conn *c, int n, const char **v, const size_t *len)
{
	char *text = NULL;
	int bytes = redisFormatCommandArgv(&text, n, v, len);

	return queue(c, text, bytes) ? redis_receive(c) : NULL;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* The socket, or -1. hiredis knows how to look a name up and to give up in time. */
static int reach(const struct redis_node *at, struct skv_error *err)
{
	const struct timeval limit = { .tv_usec = CONNECT_MS * 1000 };
	redisContext *h = redisConnectWithTimeout(at->host, at->port, limit);
	int fd = -1;

	if (!h)
		skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	else if (h->err)
		skv_fail(err, SKV_E_STORE_IO, "store", "cannot connect to %.120s:%u: %.100s",
			 at->host, at->port, h->errstr);
	else
		return redisFreeKeepFd(h);
	if (h)
		redisFree(h);
	return fd;
}

static bool shake_hands(struct redis_conn *c)
{
	ssize_t rc;

	do
		rc = redis_session_handshake(c->tls);
	while (rc < 0 && rc != REDIS_BROKEN && wait_for(c, rc));
	if (rc == REDIS_BROKEN)
		broken(c, redis_session_error(c->tls));
	else if (rc < 0)
		broken(c, "no TLS handshake in time (is this a plain port? redis:// is for these)");
	return rc == 1;
}

struct redis_conn *redis_conn_open(const struct redis_node *at, const struct redis_tls *tls,
				   struct skv_error *err)
{
	struct redis_conn *c = skv_calloc(1, sizeof *c);

	if (!c) {
		skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
		return NULL;
	}
	skv_buf_init(&c->out);
	c->limit_ms = ANSWER_MS;
	c->fd = reach(at, err);
	if (c->fd < 0)
		goto failed;
	c->reader = redisReaderCreate();
	c->piece = skv_malloc(PIECE);
	if (!c->reader || !c->piece || fcntl(c->fd, F_SETFL, O_NONBLOCK) != 0) {
		skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
		goto failed;
	}
	c->tls = tls->on ? redis_session_new(c->fd, at->host, tls, err) : NULL;
	if (!tls->on || (c->tls && shake_hands(c)))
		return c;
	if (c->tls)
		skv_fail(err, SKV_E_STORE_IO, "store", "cannot connect to %.120s:%u: %s", at->host,
			 at->port, c->error);
failed:
	redis_conn_close(c);
	return NULL;
}
