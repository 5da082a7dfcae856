/*
 * conn.c - an HTTP/2 connection: nghttp2 between the socket and the streams.
 *
 * nghttp2 keeps the protocol (frames, HPACK, flow control) and is handed bytes; this file reads and
 * writes the bytes and bounds clients: control frames by a bucket of tokens, outbound acks and
 * settings by nghttp2's own limits, time by a timer. Runs on the connection's thread. A connection
 * is closed only from conn_event, flush and the timers, never inside a callback of nghttp2.
 */
#include "internal.h"

#include <assert.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <skv/clock.h>
#include <skv/log.h>
#include <skv/mem.h>

#define READ_ROUNDS 8 /* reads before others get their turn */

/* ---- callbacks of nghttp2 -------------------------------------------------------------------- */

static struct grpc_stream *stream_of(nghttp2_session *h2, int32_t id)
{
	return id > 0 ? nghttp2_session_get_stream_user_data(h2, id) : NULL;
}

static int on_begin_headers(nghttp2_session *h2, const nghttp2_frame *frame, void *ctx)
{
	struct grpc_conn *c = ctx;
	struct grpc_stream *st;

	if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	st = skv_grpc_stream_begin(c, frame->hd.stream_id);
	if (!st) {
		skv_metrics_add(&c->loop->g->s->metrics, METRIC_grpc_streams_refused, 1);
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* the stream is reset */
	}
	nghttp2_session_set_stream_user_data(h2, frame->hd.stream_id, st);
	return 0;
}

static int on_header(nghttp2_session *h2, const nghttp2_frame *frame, const uint8_t *name,
		     size_t n_name, const uint8_t *value, size_t n_value, uint8_t flags, void *ctx)
{
	struct grpc_conn *c = ctx;
	struct grpc_stream *st = stream_of(h2, frame->hd.stream_id);

	(void)flags;
	if (!st || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	if (skv_grpc_stream_header(st, name, n_name, value, n_value))
		return 0;
	skv_metrics_add(&c->loop->g->s->metrics, METRIC_grpc_streams_refused, 1);
	return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

/* Frames that cost the client nothing and us something. False: too many of them. */
static bool control_allowed(struct grpc_conn *c)
{
	uint64_t now = c->loop->now_ms;
	uint64_t more = (now - c->control_ms) * CONTROL_PER_S / 1000;

	if (more > 0) {
		c->control = c->control + more < CONTROL_BURST ? c->control + (uint32_t)more
							       : CONTROL_BURST;
		c->control_ms = now;
	}
	if (c->control == 0)
		return false;
	c->control--;
	assert(c->control < CONTROL_BURST);
	return true;
}

static bool is_control(nghttp2_session *h2, const nghttp2_frame *frame)
{
	switch (frame->hd.type) {
	case NGHTTP2_PING:
	case NGHTTP2_SETTINGS:
	case NGHTTP2_PRIORITY:
		return true;
	case NGHTTP2_RST_STREAM:
		/* libcurl sends one after each answer: that stream is gone, and it costs nothing */
		return stream_of(h2, frame->hd.stream_id) != NULL;
	case NGHTTP2_DATA:
		return frame->hd.length == 0 && !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM);
	default:
		return false;
	}
}

static int on_frame_recv(nghttp2_session *h2, const nghttp2_frame *frame, void *ctx)
{
	struct grpc_conn *c = ctx;
	struct grpc_stream *st;

	if (is_control(h2, frame) && !control_allowed(c)) {
		nghttp2_session_terminate_session(h2, NGHTTP2_ENHANCE_YOUR_CALM);
		return 0;
	}
	if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
		return 0;
	st = stream_of(h2, frame->hd.stream_id);
	if (st && frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
		skv_grpc_stream_head(st);
	if (st && frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
		skv_grpc_stream_half_closed(st);
	return 0;
}

static int on_data(nghttp2_session *h2, uint8_t flags, int32_t id, const uint8_t *p, size_t n,
		   void *ctx)
{
	struct grpc_stream *st = stream_of(h2, id);

	(void)flags;
	(void)ctx;
	if (st)
		skv_grpc_stream_data(st, p, n);
	return 0;
}

static int on_frame_send(nghttp2_session *h2, const nghttp2_frame *frame, void *ctx)
{
	struct grpc_conn *c = ctx;
	struct grpc_stream *st;

	/* Over max_streams: nghttp2's own answer. */
	if (frame->hd.type == NGHTTP2_RST_STREAM &&
	    frame->rst_stream.error_code == NGHTTP2_REFUSED_STREAM)
		skv_metrics_add(&c->loop->g->s->metrics, METRIC_grpc_streams_refused, 1);
	if (frame->hd.type == NGHTTP2_GOAWAY && frame->goaway.error_code != NGHTTP2_NO_ERROR)
		skv_metrics_add(&c->loop->g->s->metrics, METRIC_grpc_connections_abused, 1);
	if (frame->hd.type != NGHTTP2_HEADERS || !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
		return 0;
	/* The answer was complete before the client's request: its rest is not waited for. */
	st = stream_of(h2, frame->hd.stream_id);
	if (st && !st->ended_in)
		nghttp2_submit_rst_stream(h2, NGHTTP2_FLAG_NONE, frame->hd.stream_id,
					  NGHTTP2_NO_ERROR);
	return 0;
}

static int on_stream_close(nghttp2_session *h2, int32_t id, uint32_t code, void *ctx)
{
	struct grpc_stream *st = stream_of(h2, id);

	(void)code;
	(void)ctx;
	if (st)
		skv_grpc_stream_closed(st);
	return 0;
}

int skv_grpc_h2_init(struct skv_grpc *g, struct skv_error *err)
{
	if (nghttp2_session_callbacks_new(&g->callbacks) != 0 ||
	    nghttp2_option_new(&g->option) != 0)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	nghttp2_session_callbacks_set_on_begin_headers_callback(g->callbacks, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(g->callbacks, on_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(g->callbacks, on_frame_recv);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(g->callbacks, on_data);
	nghttp2_session_callbacks_set_on_frame_send_callback(g->callbacks, on_frame_send);
	nghttp2_session_callbacks_set_on_stream_close_callback(g->callbacks, on_stream_close);
	nghttp2_option_set_max_outbound_ack(g->option, 1000);
	nghttp2_option_set_max_settings(g->option, 32);
	/* is_control limits these */
	nghttp2_option_set_stream_reset_rate_limit(g->option, UINT32_MAX, UINT32_MAX);
	nghttp2_option_set_max_continuations(g->option, 8);
	nghttp2_option_set_no_closed_streams(g->option, 1);
	return SKV_OK;
}

/* ---- time ------------------------------------------------------------------------------------ */

static bool is_blocked(const struct grpc_conn *c) { return c->events & EPOLLOUT; }

static uint64_t limit_of(const struct grpc_conn *c)
{
	return c->since_ms + c->loop->g->o.idle_timeout_ms + c->moved / SLOW_BYTES_PER_MS;
}

/* The socket is full or empty from now on. */
static void begin_wait(struct grpc_conn *c)
{
	c->since_ms = c->loop->now_ms;
	c->moved = 0;
	c->pace = (struct skv_pace){ 0 };
}

/* Calls have timers of their own: the connection's runs while there are
 * none, or the socket is full. */
static void arm(struct grpc_conn *c)
{
	uint64_t at = limit_of(c);

	if (is_blocked(c)) {
		const uint64_t due = skv_pace_due(&c->pace, &c->loop->g->s->o.pace);

		at = due < at ? due : at;
	}
	if (c->n_streams == 0 || is_blocked(c))
		skv_wheel_set(&c->loop->wheel, &c->timer, at);
	else
		skv_wheel_clear(&c->loop->wheel, &c->timer);
}

/* The client takes what fills the socket, at the rate that it has to keep. */
static bool keeps_pace(struct grpc_conn *c, uint64_t now_ms)
{
	uint64_t received, taken;

	if (!skv_pace_socket(c->io->fd, &received, &taken))
		taken = c->moved;
	return skv_pace_keeps(&c->pace, &c->loop->g->s->o.pace, now_ms, taken);
}

static void on_timer(struct timer *t, uint64_t now_ms)
{
	struct grpc_conn *c = (struct grpc_conn *)((char *)t - offsetof(struct grpc_conn, timer));

	if (is_blocked(c) && now_ms < limit_of(c) && keeps_pace(c, now_ms)) {
		arm(c);
		return;
	}
	skv_metrics_add(&c->loop->g->s->metrics, METRIC_grpc_connections_dropped, 1);
	if (is_blocked(c) || c->leaving)
		skv_grpc_conn_close(c);
	/* Sends GOAWAY, so that the client loses no call in flight. */
	else
		skv_grpc_conn_leave(c);
}

/* ---- life ------------------------------------------------------------------------------------ */

static int begin_h2(struct grpc_conn *c)
{
	const struct skv_grpc *g = c->loop->g;
	const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, g->o.max_streams },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HEADER_LIST_MAX },
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW },
	};

	if (nghttp2_session_server_new2(&c->h2, g->callbacks, c, g->option) != 0 ||
	    nghttp2_submit_settings(c->h2, NGHTTP2_FLAG_NONE, settings,
				    sizeof settings / sizeof settings[0]) != 0 ||
	    nghttp2_session_set_local_window_size(c->h2, NGHTTP2_FLAG_NONE, 0, CONNECTION_WINDOW) !=
		    0)
		return SKV_E_NOMEM;
	return SKV_OK;
}

static struct grpc_io *open_io(const struct skv_grpc *g, int fd)
{
	return g->o.tls ? skv_grpc_io_tls(fd) : skv_grpc_io_plain(fd);
}

void skv_grpc_conn_open(struct grpc_loop *l, const struct grpc_socket *s)
{
	struct grpc_conn *c = skv_calloc(1, sizeof *c);
	struct grpc_io *io = c && !l->drained ? open_io(l->g, s->fd) : NULL;
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = c };

	ASSERT_LOOP_THREAD(l);
	if (!io) {
		close(s->fd);
		skv_free(c);
		skv_grpc_socket_left(l->g, s->address);
		return;
	}
	c->loop = l;
	c->io = io;
	memcpy(c->address, s->address, sizeof c->address);
	skv_buf_init(&c->out);
	c->since_ms = c->control_ms = l->now_ms;
	c->control = CONTROL_BURST;
	c->timer.fire = on_timer;
	c->events = EPOLLIN;
	c->next = l->conns;
	if (c->next)
		c->next->prev = c;
	l->conns = c;
	skv_metrics_add(&l->g->s->metrics, METRIC_grpc_connections, 1);
	if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, s->fd, &e) != 0 || begin_h2(c) != SKV_OK)
		skv_grpc_conn_close(c);
	else
		skv_grpc_conn_flush(c);
}

void skv_grpc_conn_close(struct grpc_conn *c)
{
	struct grpc_loop *l = c->loop;

	ASSERT_LOOP_THREAD(l);
	assert(!c->in_nghttp2);
	while (c->streams)
		skv_grpc_stream_closed(c->streams);
	assert(c->n_streams == 0 && c->own_bytes == 0);
	skv_wheel_clear(&l->wheel, &c->timer);
	nghttp2_session_del(c->h2);
	skv_buf_destroy(&c->out);
	c->io->ops->close(c->io); /* and leaves epoll with it */
	skv_free(c->peer);
	assert(c->prev ? c->prev->next == c : l->conns == c);
	if (c->prev)
		c->prev->next = c->next;
	else
		l->conns = c->next;
	if (c->next)
		c->next->prev = c->prev;
	skv_grpc_socket_left(l->g, c->address);
	skv_free(c);
}

void skv_grpc_conn_leave(struct grpc_conn *c)
{
	c->leaving = true;
	c->since_ms = c->loop->now_ms;
	nghttp2_submit_goaway(c->h2, NGHTTP2_FLAG_NONE,
			      nghttp2_session_get_last_proc_stream_id(c->h2), NGHTTP2_NO_ERROR,
			      NULL, 0);
	skv_grpc_conn_flush(c);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

/* Drops the written part once that is most of the buffer, which must not grow while the socket
 * lags. */
static void drop_written(struct grpc_conn *c)
{
	size_t left;

	assert(c->out_at <= c->out.len);
	left = c->out.len - c->out_at;
	if (c->out_at == 0 || c->out_at < left)
		return;
	memmove(c->out.data, c->out.data + c->out_at, left);
	c->out.len = left;
	c->out_at = 0;
}

/* Frames that nghttp2 has to send, up to a bound. */
static void fill(struct grpc_conn *c)
{
	drop_written(c);
	while (c->out.len - c->out_at < OUT_BYTES) {
		const uint8_t *p;
		ssize_t n;

		c->in_nghttp2 = true;
		n = nghttp2_session_mem_send(c->h2, &p);
		c->in_nghttp2 = false;
		if (n < 0 || c->out.failed)
			c->broken = true;
		if (n <= 0 || c->broken)
			return;
		skv_put_bytes(&c->out, p, (size_t)n);
	}
}

static void set_events(struct grpc_conn *c, unsigned events)
{
	struct epoll_event e = { .events = events, .data.ptr = c };

	if (events == c->events)
		return;
	if (epoll_ctl(c->loop->epoll, EPOLL_CTL_MOD, c->io->fd, &e) != 0)
		c->broken = true;
	c->events = events;
}

/* Writes until nothing is left or the socket is full; then reading stops too, so that a client that
 * takes no answers cannot make more of them. */
static void write_out(struct grpc_conn *c)
{
	for (;;) {
		ssize_t n;

		fill(c);
		if (c->broken || c->out.len == c->out_at)
			break;
		n = c->io->ops->write(c->io, c->out.data + c->out_at, c->out.len - c->out_at);
		if (n == IO_WANTS_WRITE || n == IO_WANTS_READ) {
			if (!is_blocked(c))
				begin_wait(c);
			set_events(c, n == IO_WANTS_WRITE ? EPOLLOUT : EPOLLIN);
			return;
		}
		if (n < 0) {
			c->broken = true;
			return;
		}
		c->moved += (uint64_t)n;
		c->out_at += (size_t)n;
	}
	if (is_blocked(c))
		begin_wait(c);
	set_events(c, EPOLLIN);
	if (c->out.cap > KEEP_BYTES && c->n_streams == 0)
		skv_buf_destroy(&c->out);
}

void skv_grpc_conn_flush(struct grpc_conn *c)
{
	bool left;

	ASSERT_LOOP_THREAD(c->loop);
	assert(!c->in_nghttp2);
	write_out(c);
	left = is_blocked(c);
	if (c->broken || (!left && ((c->leaving && c->n_streams == 0) ||
				   (!nghttp2_session_want_read(c->h2) &&
				    !nghttp2_session_want_write(c->h2)))))
		skv_grpc_conn_close(c);
	else
		arm(c);
}

static void read_in(struct grpc_conn *c)
{
	for (int i = 0; i < READ_ROUNDS && !c->broken; i++) {
		ssize_t n = c->io->ops->read(c->io, c->loop->input, READ_BYTES);
		ssize_t used;

		if (n == IO_WANTS_READ || n == IO_WANTS_WRITE)
			return;
		if (n == IO_END || n == IO_FAILED) {
			c->broken = true;
			return;
		}
		c->in_nghttp2 = true;
		used = nghttp2_session_mem_recv(c->h2, c->loop->input, (size_t)n);
		c->in_nghttp2 = false;
		assert(used < 0 || used == n); /* no callback pauses it */
		if (used < 0) {
			/* Not HTTP/2 at all, a flood, or no memory: nghttp2 has sent its last
			 * frames. */
			skv_metrics_add(&c->loop->g->s->metrics, METRIC_grpc_connections_abused, 1);
			skv_log(SKV_LOG_DEBUG, "grpc", "connection closed: %s",
				nghttp2_strerror((int)used));
			c->broken = true;
		}
		if (n < (ssize_t)READ_BYTES)
			return; /* epoll reports further input */
	}
}

void skv_grpc_conn_event(struct grpc_conn *c, unsigned events)
{
	ASSERT_LOOP_THREAD(c->loop);
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR) && c->events & EPOLLIN)
		read_in(c);
	else if (events & (EPOLLHUP | EPOLLERR))
		c->broken = true;
	if (c->broken)
		skv_grpc_conn_close(c);
	else
		skv_grpc_conn_flush(c);
}
