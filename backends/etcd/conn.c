/*
 * conn.c - the client's connection: socket or TLS session, and nghttp2 between it and the calls.
 *
 * Runs on the client's thread alone; the lock is taken where a call's caller may look (`sent`).
 * nghttp2 bounds what a server may make it do (acks, settings, continuations); answers are bounded
 * here. The connection is closed by loop.c only, never inside a callback.
 */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <skv/clock.h>
#include <skv/mem.h>

#include "internal.h"

#define CONNECT_MS 1000u
#define READ_BYTES ((size_t)64 << 10)
#define OUT_BYTES ((size_t)256 << 10)     /* frames made ahead of the socket */
#define CONNECTION_WINDOW (16u << 20)     /* bytes of all answers on their way */
#define STREAM_WINDOW (1u << 20)
#define READ_ROUNDS 16                    /* reads before callers get their turn */

void etcd_broken(struct skv_etcd *c, const char *fmt, ...)
{
	const struct skv_net_node *at = &c->node[c->at];
	struct etcd_conn *n = &c->conn;
	char why[200];
	va_list ap;

	if (*n->why)
		return;
	va_start(ap, fmt);
	vsnprintf(why, sizeof why, fmt, ap);
	va_end(ap);
	snprintf(n->why, sizeof n->why, "%.80s:%u: %s", at->host, at->port, why);
}

/* ---- callbacks of nghttp2 -------------------------------------------------------------------- */

static int on_header(nghttp2_session *h2, const nghttp2_frame *frame, const uint8_t *name,
		     size_t n_name, const uint8_t *value, size_t n_value, uint8_t flags, void *ctx)
{
	struct etcd_call *call = nghttp2_session_get_stream_user_data(h2, frame->hd.stream_id);
	const struct pb_field text = { .p = value, .n = n_value };
	char number[8];

	(void)flags;
	(void)ctx;
	if (!call)
		return 0;
	etcd_get_text(&text, number, sizeof number);
	if (n_name == 7 && memcmp(name, ":status", 7) == 0)
		call->http = (unsigned)strtoul(number, NULL, 10);
	else if (n_name == 11 && memcmp(name, "grpc-status", 11) == 0)
		call->grpc = (int)(strtoul(number, NULL, 10) & 0xff);
	else if (n_name == 12 && memcmp(name, "grpc-message", 12) == 0)
		etcd_get_text(&text, call->message, sizeof call->message);
	return 0;
}

static int on_data(nghttp2_session *h2, uint8_t flags, int32_t id, const uint8_t *p, size_t n,
		   void *ctx)
{
	struct etcd_call *call = nghttp2_session_get_stream_user_data(h2, id);
	struct skv_etcd *c = ctx;

	(void)flags;
	nghttp2_session_consume_connection(h2, n);
	if (!call || call->too_long)
		return 0;
	if (call->in.len + n > SKV_ETCD_ANSWER_MAX + ETCD_PREFIX) {
		call->too_long = true;
		nghttp2_submit_rst_stream(h2, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
		return 0;
	}
	skv_put_bytes(&call->in, p, n);
	if (call->is_watch && !etcd_watch_take(c, call))
		nghttp2_submit_rst_stream(h2, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
	n = call->is_watch ? etcd_watch_credit(c, call, n) : n;
	if (n > 0)
		nghttp2_session_consume_stream(h2, id, n);
	return 0;
}

static int on_frame_recv(nghttp2_session *h2, const nghttp2_frame *frame, void *ctx)
{
	const struct etcd_call *call;
	struct skv_etcd *c = ctx;

	c->conn.heard = true;
	if (frame->hd.type == NGHTTP2_GOAWAY)
		c->conn.draining = true;
	if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
		return 0;
	c->conn.may_ping = true;
	/* All was said before the request had: a watch that is over. */
	call = nghttp2_session_get_stream_user_data(h2, frame->hd.stream_id);
	if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM && call &&
	    (call->is_watch || call->out_at < call->out.len))
		nghttp2_submit_rst_stream(h2, NGHTTP2_FLAG_NONE, frame->hd.stream_id,
					  NGHTTP2_NO_ERROR);
	return 0;
}

static int on_stream_close(nghttp2_session *h2, int32_t id, uint32_t code, void *ctx)
{
	struct etcd_call *call = nghttp2_session_get_stream_user_data(h2, id);

	if (!call)
		return 0;
	nghttp2_session_set_stream_user_data(h2, id, NULL);
	call->h2_error = code;
	call->stream = 0;
	etcd_call_ended(ctx, call);
	return 0;
}

int etcd_h2_init(struct skv_etcd *c)
{
	if (nghttp2_session_callbacks_new(&c->callbacks) != 0 ||
	    nghttp2_option_new(&c->option) != 0)
		return SKV_E_NOMEM;
	nghttp2_session_callbacks_set_on_header_callback(c->callbacks, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(c->callbacks, on_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(c->callbacks, on_frame_recv);
	nghttp2_session_callbacks_set_on_stream_close_callback(c->callbacks, on_stream_close);
	nghttp2_option_set_no_auto_window_update(c->option, 1);
	nghttp2_option_set_max_outbound_ack(c->option, 1000);
	nghttp2_option_set_max_settings(c->option, 32);
	nghttp2_option_set_max_continuations(c->option, 8);
	nghttp2_option_set_no_closed_streams(c->option, 1);
	c->input = skv_malloc(READ_BYTES);
	return c->input ? SKV_OK : SKV_E_NOMEM;
}

/* ---- requests -------------------------------------------------------------------------------- */

/* A caller that has given up before the whole request was handed over was told that it was not
 * executed: so the rest is never sent. */
static bool may_complete(struct skv_etcd *c, struct etcd_call *call)
{
	bool yes;

	skv_mutex_lock(&c->lock);
	yes = !call->abandoned;
	call->sent |= yes;
	skv_mutex_unlock(&c->lock);
	return yes;
}

static ssize_t on_read(nghttp2_session *h2, int32_t id, uint8_t *to, size_t room, uint32_t *flags,
		       nghttp2_data_source *source, void *ctx)
{
	struct etcd_call *call = source->ptr;
	const size_t left = call->out.len - call->out_at;
	const size_t n = left < room ? left : room;

	(void)h2;
	(void)id;
	if (call->is_watch && n == 0)
		return NGHTTP2_ERR_DEFERRED;
	if (n == left && !call->is_watch) {
		if (!may_complete(ctx, call))
			return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	}
	memcpy(to, call->out.data + call->out_at, n);
	call->out_at += n;
	return (ssize_t)n;
}

static nghttp2_nv field(const char *name, const char *value)
{
	return (nghttp2_nv){ (uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name),
			     strlen(value), NGHTTP2_NV_FLAG_NONE };
}

void etcd_submit(struct skv_etcd *c, struct etcd_call *call)
{
	const struct skv_net_node *at = &c->node[c->at];
	char authority[SKV_NET_HOST_MAX + 16] = "";
	nghttp2_nv head[9] = {
		field(":method", "POST"),
		field(":scheme", c->tls.on ? "https" : "http"),
		field(":path", call->method->path),
		field(":authority", authority),
		field("te", "trailers"),
		field("content-type", "application/grpc"),
		field("user-agent", "slabkv/" SKV_VERSION),
	};
	size_t n = 7;
	const nghttp2_data_provider data = { .source.ptr = call, .read_callback = on_read };

	ASSERT_ETCD_THREAD(c);
	assert(call->stream == 0 && c->conn.h2);
	snprintf(authority, sizeof authority, strchr(at->host, ':') ? "[%s]:%u" : "%s:%u", at->host,
		 at->port);
	head[3].valuelen = strlen(authority);
	if (!call->method->local) /* a member that has lost its leader reports this at once */
		head[n++] = field("hasleader", "true");
	if (*c->token && !call->method->login)
		head[n++] = field("token", c->token);
	call->token = c->token_number;
	call->stream = nghttp2_submit_request(c->conn.h2, NULL, head, n, &data, call);
	if (call->stream > 0)
		return;
	call->stream = 0;
	c->conn.draining = true; /* stream ids ran out, or memory did */
	call->h2_error = NGHTTP2_REFUSED_STREAM;
	etcd_call_ended(c, call);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static ssize_t plain(struct skv_etcd *c, ssize_t n, ssize_t wants)
{
	if (n >= 0)
		return n;
	if (errno == EAGAIN || errno == EINTR)
		return wants;
	etcd_broken(c, "%s", strerror(errno));
	return SKV_NET_BROKEN;
}

static ssize_t receive(struct skv_etcd *c)
{
	struct etcd_conn *n = &c->conn;
	ssize_t rc = n->tls ? skv_net_session_receive(n->tls, c->input, READ_BYTES)
			    : plain(c, recv(n->fd, c->input, READ_BYTES, 0), SKV_NET_WANTS_READ);

	if (rc == SKV_NET_BROKEN && n->tls)
		etcd_broken(c, "%s", skv_net_session_error(n->tls));
	if (rc == 0)
		etcd_broken(c, "the server closed the connection%s", n->heard || n->tls ? "" :
			    " (if its port speaks TLS, TLS must be on here)");
	return rc;
}

static ssize_t transmit(struct skv_etcd *c, const uint8_t *p, size_t len)
{
	struct etcd_conn *n = &c->conn;
	ssize_t rc = n->tls ? skv_net_session_send(n->tls, p, len < (16u << 10) ? len : 16u << 10)
			    : plain(c, send(n->fd, p, len, MSG_NOSIGNAL), SKV_NET_WANTS_WRITE);

	if (rc == SKV_NET_BROKEN && n->tls)
		etcd_broken(c, "%s", skv_net_session_error(n->tls));
	return rc;
}

/* Frames that nghttp2 has to send, up to a bound. */
static void fill(struct skv_etcd *c)
{
	struct etcd_conn *n = &c->conn;

	if (n->out_at == n->out.len) {
		skv_buf_clear(&n->out);
		n->out_at = 0;
	}
	while (n->out.len < OUT_BYTES) {
		const uint8_t *p;
		ssize_t len = nghttp2_session_mem_send(n->h2, &p);

		if (len > 0)
			skv_put_bytes(&n->out, p, (size_t)len);
		if (len < 0 || n->out.failed)
			etcd_broken(c, "%s",
				    len < 0 ? nghttp2_strerror((int)len) : "out of memory");
		if (len <= 0 || *n->why)
			return;
	}
}

void etcd_send(struct skv_etcd *c)
{
	struct etcd_conn *n = &c->conn;

	ASSERT_ETCD_THREAD(c);
	n->wants_write = false;
	for (;;) {
		ssize_t rc;

		fill(c);
		if (*n->why || n->out_at == n->out.len)
			break;
		rc = transmit(c, n->out.data + n->out_at, n->out.len - n->out_at);
		if (rc < 0) {
			n->wants_write = rc == SKV_NET_WANTS_WRITE;
			return;
		}
		n->out_at += (size_t)rc;
	}
	if (!*n->why && !nghttp2_session_want_read(n->h2) && !nghttp2_session_want_write(n->h2))
		etcd_broken(c, n->draining ? "the server ended the connection"
					   : "it does not speak gRPC");
}

void etcd_receive(struct skv_etcd *c)
{
	struct etcd_conn *n = &c->conn;

	ASSERT_ETCD_THREAD(c);
	for (int i = 0; i < READ_ROUNDS && !*n->why; i++) {
		const ssize_t rc = receive(c);
		ssize_t taken;

		if (rc <= 0)
			return;
		taken = nghttp2_session_mem_recv(n->h2, c->input, (size_t)rc);
		if (taken < 0)
			etcd_broken(c, "it does not speak gRPC: %s", nghttp2_strerror((int)taken));
		n->heard_us = skv_now_us();
		n->waits_us = 0;
	}
}

/* ---- opening --------------------------------------------------------------------------------- */

static bool shake_hands(struct skv_etcd *c, uint64_t end_us)
{
	struct etcd_conn *n = &c->conn;

	for (;;) {
		const ssize_t rc = skv_net_session_handshake(n->tls);
		const uint64_t now = skv_now_us();
		struct pollfd p = { n->fd, rc == SKV_NET_WANTS_WRITE ? POLLOUT : POLLIN, 0 };

		if (rc == 1)
			return true;
		if (rc == SKV_NET_BROKEN)
			etcd_broken(c, "%s", skv_net_session_error(n->tls));
		else if (now >= end_us)
			etcd_broken(c, "no TLS handshake in time (is this a plain port?)");
		else
			poll(&p, 1, (int)((end_us - now) / 1000 + 1));
		if (*n->why)
			return false;
	}
}

static bool begin_h2(struct skv_etcd *c)
{
	const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_ENABLE_PUSH, 0 },
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW },
	};
	struct etcd_conn *n = &c->conn;

	return nghttp2_session_client_new2(&n->h2, c->callbacks, c, c->option) == 0 &&
	       nghttp2_submit_settings(n->h2, NGHTTP2_FLAG_NONE, settings, 2) == 0 &&
	       nghttp2_session_set_local_window_size(n->h2, NGHTTP2_FLAG_NONE, 0,
						     CONNECTION_WINDOW) == 0;
}

bool etcd_connect(struct skv_etcd *c)
{
	const uint64_t end = skv_now_us() + CONNECT_MS * 1000;
	struct etcd_conn *n = &c->conn;
	struct skv_error err = { 0 };

	ASSERT_ETCD_THREAD(c);
	assert(n->fd < 0 && !n->h2 && !n->tls);
	*n = (struct etcd_conn){ .fd = skv_net_connect(&c->node[c->at], CONNECT_MS, &err) };
	if (n->fd >= 0 && c->tls.on)
		n->tls = skv_net_session_new(n->fd, c->node[c->at].host, &c->tls, "h2", NULL, &err);
	if (n->fd < 0 || (c->tls.on && !n->tls)) {
		snprintf(n->why, sizeof n->why, "%s", err.message);
		return false;
	}
	if (n->tls && !shake_hands(c, end))
		return false;
	if (!begin_h2(c)) {
		etcd_broken(c, "out of memory");
		return false;
	}
	/* A server begins with its settings: silence is not one. */
	n->heard_us = n->waits_us = skv_now_us();
	return true;
}

void etcd_disconnect(struct skv_etcd *c)
{
	struct etcd_conn *n = &c->conn;

	ASSERT_ETCD_THREAD(c);
	for (struct etcd_call *call = c->running; call; call = call->next)
		if (call->stream > 0 && n->h2)
			nghttp2_session_set_stream_user_data(n->h2, call->stream, NULL);
	nghttp2_session_del(n->h2);
	skv_net_session_free(n->tls);
	if (n->fd >= 0)
		close(n->fd);
	skv_buf_destroy(&n->out);
	*n = (struct etcd_conn){ .fd = -1 };
}
