/*
 * stream.c - a gRPC call: header, messages, running it, cancelling it.
 *
 * The header decides method, caller and deadline; messages are put together within their bounds;
 * when the client has half-closed, the operation runs on this thread or on a worker, or completes
 * through loop.c's inbox. A deadline that passes meanwhile answers the client at once; the
 * operation continues and its result is dropped, as for a client that disconnected. Runs on the
 * connection's thread.
 */
#include "internal.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include <skv/clock.h>
#include <skv/mem.h>

#define SPARE_MAX 256u
#define PATH_MAX_BYTES 255u
#define PARKED_MAX 65536u /* calls that wait, orphans of reset streams included */

/* ---- time ------------------------------------------------------------------------------------ */

static uint64_t earlier(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* When the client's turn, or the call's deadline, is over: UINT64_MAX = never. */
static uint64_t end_of_turn(const struct grpc_stream *st)
{
	uint64_t idle = st->loop->g->o.idle_timeout_ms;
	uint64_t at = UINT64_MAX;

	if (st->answered)
		at = st->since_ms + idle + st->n_data / SLOW_BYTES_PER_MS;
	else if (!st->ended_in)
		at = st->since_ms + idle + st->body.len / SLOW_BYTES_PER_MS;
	if (st->deadline_ms && st->has_head && !st->answered)
		at = earlier(at, st->deadline_ms);
	return at;
}

/* Part of a message has arrived, or part of the answer is unread: the client must make progress. */
static bool is_moving(const struct grpc_stream *st)
{
	return st->answered ? st->data_at < st->n_data || st->head_at < PREFIX : st->n_prefix > 0;
}

static uint64_t moved(const struct grpc_stream *st)
{
	return st->answered ? st->head_at + st->data_at : st->body.len;
}

/* The calls of a connection share its rate. */
static struct skv_pace_limit pace_limit(const struct grpc_stream *st)
{
	struct skv_pace_limit l = st->loop->g->s->o.pace;

	if (st->conn->n_streams > 1 && l.bytes_per_s)
		l.bytes_per_s = 1 + l.bytes_per_s / st->conn->n_streams;
	return l;
}

/* The next thing that time does to the call. */
static void arm(struct grpc_stream *st)
{
	uint64_t at = end_of_turn(st);

	if (is_moving(st))
		at = earlier(at, skv_pace_due(&st->pace, &st->loop->g->s->o.pace));
	if (at == UINT64_MAX)
		skv_wheel_clear(&st->loop->wheel, &st->timer);
	else
		skv_wheel_set(&st->loop->wheel, &st->timer, at);
}

void skv_grpc_client_turn(struct grpc_stream *st)
{
	st->since_ms = st->loop->now_ms;
	st->pace = (struct skv_pace){ st->since_ms, moved(st), true };
	arm(st);
}

/* Returns true if the stream is not over and its message or answer moves fast enough. */
static bool goes_on(struct grpc_stream *st, uint64_t now_ms)
{
	const struct skv_pace_limit l = pace_limit(st);

	return now_ms < end_of_turn(st) &&
	       (!is_moving(st) || skv_pace_keeps(&st->pace, &l, now_ms, moved(st)));
}

static void on_timer(struct timer *t, uint64_t now_ms)
{
	struct grpc_stream *st =
		(struct grpc_stream *)((char *)t - offsetof(struct grpc_stream, timer));
	struct grpc_conn *c = st->conn;
	struct metrics *m = &st->loop->g->s->metrics;

	if (goes_on(st, now_ms)) {
		arm(st);
		return;
	}
	if (st->answered || !st->has_head) {
		skv_metrics_add(m, METRIC_grpc_streams_refused, 1);
		nghttp2_submit_rst_stream(c->h2, NGHTTP2_FLAG_NONE, st->id, NGHTTP2_CANCEL);
	} else if (st->deadline_ms && now_ms >= st->deadline_ms) {
		skv_metrics_add(m, METRIC_grpc_deadlines, 1);
		skv_grpc_fail(st, GRPC_DEADLINE_EXCEEDED, SKV_E_TIMEOUT,
			      "the call's deadline has passed");
	} else {
		skv_metrics_add(m, METRIC_grpc_streams_refused, 1);
		skv_grpc_fail(st, GRPC_CANCELLED, SKV_E_TIMEOUT, "the request came too slowly");
	}
	skv_grpc_conn_flush(c);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct grpc_stream *skv_grpc_stream_begin(struct grpc_conn *c, int32_t id)
{
	struct grpc_loop *l = c->loop;
	struct grpc_stream *st = l->spare;

	ASSERT_LOOP_THREAD(l);
	assert(!st == (l->n_spare == 0));
	if (st) {
		l->spare = st->next;
		l->n_spare--;
	} else {
		st = skv_calloc(1, sizeof *st);
		if (!st)
			return NULL;
		skv_request_init(&st->c, l->g->s, WIRE_GRPC);
	}
	st->loop = l;
	st->conn = c;
	st->id = id;
	memcpy(st->c.hold.address, c->address, sizeof c->address);
	st->prev = NULL;
	st->next = c->streams;
	if (st->next)
		st->next->prev = st;
	c->streams = st;
	c->n_streams++;
	st->timer.fire = on_timer;
	st->since_ms = l->now_ms;
	st->c.begin_us = skv_now_us();
	skv_gauge_move(&l->g->s->metrics, GAUGE_grpc_in_flight, 1);
	skv_grpc_client_turn(st); /* to send the rest of its header */
	return st;
}

static void trim(struct skv_buf *b)
{
	if (b->cap > KEEP_BYTES)
		skv_buf_destroy(b);
	skv_buf_clear(b);
}

void skv_grpc_stream_free(struct grpc_stream *st)
{
	struct grpc_loop *l = st->loop;

	ASSERT_LOOP_THREAD(l);
	assert(!st->pending && !st->conn && !st->timer.next);
	/* a reader that sees no call in flight sees nothing held */
	skv_hold_release(&l->g->s->holds, &st->c.hold);
	skv_gauge_move(&l->g->s->metrics, GAUGE_grpc_in_flight, -1);
	trim(&st->c.out);
	trim(&st->body);
	trim(&st->wire);
	skv_request_reset(&st->c);
	if (l->n_spare >= SPARE_MAX) {
		skv_request_destroy(&st->c);
		skv_buf_destroy(&st->body);
		skv_buf_destroy(&st->wire);
		skv_free(st);
		return;
	}
	*st = (struct grpc_stream){ .c = st->c, .body = st->body, .wire = st->wire,
				    .next = l->spare };
	l->spare = st;
	l->n_spare++;
}

void skv_grpc_stream_closed(struct grpc_stream *st)
{
	struct grpc_conn *c = st->conn;

	if (!st->answered)
		skv_metrics_add(&st->loop->g->s->metrics, METRIC_grpc_cancelled, 1);
	if (st->method && st->method->closed)
		st->method->closed(st);
	skv_wheel_clear(&st->loop->wheel, &st->timer);
	nghttp2_session_set_stream_user_data(c->h2, st->id, NULL);
	if (st->prev)
		st->prev->next = st->next;
	else
		c->streams = st->next;
	if (st->next)
		st->next->prev = st->prev;
	st->prev = st->next = NULL;
	st->conn = NULL;
	assert(c->n_streams > 0 && c->own_bytes >= st->wire.len);
	c->own_bytes -= st->wire.len;
	if (--c->n_streams == 0) {
		c->since_ms = c->loop->now_ms;
		c->moved = 0;
	}
	if (!st->pending)
		skv_grpc_stream_free(st);
}

/* ---- header ---------------------------------------------------------------------------------- */

static void set_problem(struct grpc_stream *st, enum grpc_code code, const char *text)
{
	if (st->problem != GRPC_OK)
		return;
	st->problem = (uint8_t)code;
	st->problem_text = text;
}

static bool is(const uint8_t *name, size_t n, const char *word)
{
	return n == strlen(word) && memcmp(name, word, n) == 0;
}

static const char *keep(struct grpc_stream *st, const uint8_t *value, size_t n)
{
	const char *copy = skv_arena_strndup(&st->c.arena, (const char *)value, n);

	if (!copy)
		set_problem(st, GRPC_RESOURCE_EXHAUSTED, "out of memory");
	return copy;
}

/* "application/grpc", then nothing, +proto, or parameters. */
static bool is_grpc_type(const uint8_t *value, size_t n)
{
	static const char type[] = "application/grpc";
	size_t k = sizeof type - 1;

	if (n < k || strncasecmp((const char *)value, type, k) != 0)
		return false;
	if (n - k >= 6 && strncasecmp((const char *)value + k, "+proto", 6) == 0)
		k += 6;
	return n == k || value[k] == ';';
}

bool skv_grpc_stream_header(struct grpc_stream *st, const uint8_t *name, size_t n_name,
			    const uint8_t *value, size_t n_value)
{
	uint64_t ms;

	/* as SETTINGS_MAX_HEADER_LIST_SIZE counts */
	st->head_bytes += (uint32_t)(n_name + n_value + 32);
	if (st->head_bytes > HEADER_LIST_CUT)
		return false;
	if (st->head_bytes > HEADER_LIST_MAX) {
		set_problem(st, GRPC_RESOURCE_EXHAUSTED, "the header is over 16384 bytes");
		return true;
	}
	if (is(name, n_name, ":method")) {
		st->is_post = is(value, n_value, "POST");
	} else if (is(name, n_name, ":path")) {
		if (n_value > PATH_MAX_BYTES)
			set_problem(st, GRPC_UNIMPLEMENTED, "no such method");
		else
			st->path = keep(st, value, n_value);
	} else if (is(name, n_name, "content-type")) {
		st->is_grpc = is_grpc_type(value, n_value);
	} else if (is(name, n_name, "authorization")) {
		st->authorization = keep(st, value, n_value);
	} else if (is(name, n_name, "slabkv-forwarded")) {
		st->c.forwarding.came = keep(st, value, n_value);
	} else if (is(name, n_name, "slabkv-route")) {
		st->route_wish = keep(st, value, n_value);
	} else if (is(name, n_name, "x-request-id")) {
		skv_request_take_id(&st->c, (const char *)value, n_value);
	} else if (is(name, n_name, "traceparent")) {
		skv_trace_take((const char *)value, n_value, st->c.trace);
	} else if (is(name, n_name, "grpc-timeout")) {
		if (skv_grpc_timeout((const char *)value, n_value, &ms))
			st->deadline_ms = st->loop->now_ms + ms;
		else
			set_problem(st, GRPC_INVALID_ARGUMENT, "grpc-timeout is not a duration");
	}
	return true;
}

/* ---- for the manager that it goes on to ------------------------------------------------------ */

static struct grpc_stream *stream_of(struct skv_request *c)
{
	return (struct grpc_stream *)((char *)c - offsetof(struct grpc_stream, c));
}

static const char *origin_header(struct skv_request *c, const char *name)
{
	const struct grpc_stream *st = stream_of(c);

	if (strcmp(name, "Authorization") == 0)
		return st->authorization;
	if (strcmp(name, SKV_ROUTE) == 0)
		return st->route_wish;
	return strcmp(name, "Content-Type") == 0 ? SKV_GRPC_TYPE : NULL;
}

static void origin_target(struct skv_request *c, struct skv_buf *out)
{
	skv_put_bytes(out, stream_of(c)->path, strlen(stream_of(c)->path));
}

static const void *origin_message(struct skv_request *c, size_t *n)
{
	*n = stream_of(c)->body.len;
	return stream_of(c)->body.data;
}

static const struct skv_origin origin = { origin_header, origin_target, origin_message };

/* ---- method and caller ----------------------------------------------------------------------- */

static void refuse(struct grpc_stream *st, int status)
{
	st->c.status = status;
	skv_grpc_reply(st);
}

/* Authorizes the call. A client without a token is asked for a certificate. */
static int authorize(struct grpc_stream *st)
{
	struct grpc_conn *c = st->conn;

	if (!st->authorization && c->io->ops->peer) {
		int rc = c->io->ops->peer(c->io, &c->peer, &st->c.err);

		if (rc != SKV_OK)
			return rc;
	}
	return skv_request_authorize(&st->c, st->authorization, c->peer);
}

static void admit(struct grpc_stream *st)
{
	struct skv_grpc *g = st->loop->g;
	int rc;

	if (!st->is_post || !st->is_grpc) {
		skv_grpc_not_grpc(st, st->is_post ? 415 : 405);
		return;
	}
	if (st->problem != GRPC_OK) {
		if (st->problem == GRPC_RESOURCE_EXHAUSTED)
			skv_metrics_add(&g->s->metrics, METRIC_grpc_streams_refused, 1);
		skv_grpc_fail(st, st->problem,
			      st->problem == GRPC_INVALID_ARGUMENT ? SKV_E_INVALID
			      : st->problem == GRPC_UNIMPLEMENTED  ? SKV_E_UNSUPPORTED
								   : SKV_E_TOO_LARGE,
			      st->problem_text);
		return;
	}
	st->method = skv_grpc_method_find(g, st->path);
	if (!st->method) {
		skv_grpc_fail(st, GRPC_UNIMPLEMENTED, SKV_E_UNSUPPORTED,
			      "no such method; reflection lists them");
		return;
	}
	if (atomic_load(&g->draining)) {
		skv_grpc_fail(st, GRPC_UNAVAILABLE, SKV_E_NOT_READY,
			      "this manager is shutting down");
		return;
	}
	if (!st->method->route)
		return;
	st->c.route = st->method->route;
	rc = skv_request_open(&st->c, st->method->api, &(struct skv_head){ .content_type = NULL });
	if (rc == SKV_OK)
		rc = authorize(st);
	if (rc == SKV_E_UNAUTHENTICATED)
		skv_metrics_add(&g->s->metrics, METRIC_grpc_unauthenticated, 1);
	if (rc != SKV_OK)
		refuse(st, rc);
}

void skv_grpc_stream_head(struct grpc_stream *st)
{
	assert(!st->has_head);
	st->has_head = true;
	st->c.forwarding.origin = &origin;
	if (!*st->c.id)
		skv_request_take_id(&st->c, NULL, 0);
	admit(st);
	skv_grpc_client_turn(st);
}

/* ---- messages -------------------------------------------------------------------------------- */

/* The five bytes before a message: a flag for compression and the length. */
static void take_prefix(struct grpc_stream *st)
{
	uint64_t max = st->method->route ? st->loop->g->s->o.body_max : OWN_MESSAGE_MAX;

	st->want = (uint32_t)st->prefix[1] << 24 | (uint32_t)st->prefix[2] << 16 |
		   (uint32_t)st->prefix[3] << 8 | st->prefix[4];
	if (st->prefix[0] > 1)
		skv_grpc_fail(st, GRPC_INTERNAL, SKV_E_INVALID, "this is not a gRPC message");
	else if (st->prefix[0] == 1)
		skv_grpc_fail(st, GRPC_UNIMPLEMENTED, SKV_E_UNSUPPORTED,
			      "compressed messages are not supported: send them uncompressed");
	else if (st->got_message)
		skv_grpc_fail(st, GRPC_INTERNAL, SKV_E_INVALID, "this method takes one message");
	else if (st->want > max)
		skv_grpc_fail(st, GRPC_RESOURCE_EXHAUSTED, SKV_E_TOO_LARGE,
			      "the message is too long");
}

static void take_body(struct grpc_stream *st, const uint8_t *p, size_t n)
{
	struct skv_service *s = st->loop->g->s;

	assert(st->n_prefix == PREFIX && n <= st->want - st->body.len);
	if (skv_request_hold_body(&st->c, n) != SKV_OK) {
		skv_grpc_fail(st, GRPC_RESOURCE_EXHAUSTED, SKV_E_TOO_MANY, st->c.err.message);
		return;
	}
	skv_metrics_add(&s->metrics, METRIC_grpc_request_bytes, n);
	skv_put_bytes(&st->body, p, n);
	if (st->body.failed) {
		skv_grpc_fail(st, GRPC_RESOURCE_EXHAUSTED, SKV_E_NOMEM, "out of memory");
		return;
	}
	if (st->body.len < st->want)
		return;
	if (st->method->route) {
		st->got_message = true;
	} else {
		st->method->message(st, st->body.data, st->body.len);
		skv_hold_release(&s->holds, &st->c.hold);
		skv_buf_clear(&st->body);
	}
	st->n_prefix = 0;
	skv_grpc_client_turn(st);
}

void skv_grpc_stream_data(struct grpc_stream *st, const uint8_t *p, size_t n)
{
	while (n > 0 && !st->answered) {
		size_t k;

		if (st->n_prefix < PREFIX) {
			k = (size_t)(PREFIX - st->n_prefix);
			k = k < n ? k : n;
			memcpy(st->prefix + st->n_prefix, p, k);
			st->n_prefix = (uint8_t)(st->n_prefix + k);
			if (st->n_prefix == PREFIX)
				take_prefix(st);
			if (st->n_prefix == PREFIX && st->want == 0 && !st->answered)
				take_body(st, NULL, 0);
		} else {
			assert(st->body.len < st->want);
			k = st->want - st->body.len < n ? st->want - st->body.len : n;
			take_body(st, p, k);
		}
		p += k;
		n -= k;
	}
}

/* ---- running --------------------------------------------------------------------------------- */

static void run(struct grpc_stream *st)
{
	struct metrics *m = &st->loop->g->s->metrics;
	int rc;

	assert(st->ended_in && st->got_message && !st->pending);
	if (st->deadline_ms && st->loop->now_ms >= st->deadline_ms) {
		skv_metrics_add(m, METRIC_grpc_deadlines, 1);
		skv_grpc_fail(st, GRPC_DEADLINE_EXCEEDED, SKV_E_TIMEOUT,
			      "the call's deadline has passed");
		return;
	}
	if (skv_gauge_get(m, GAUGE_grpc_parked) >= PARKED_MAX) {
		skv_metrics_add(m, METRIC_grpc_streams_refused, 1);
		skv_grpc_fail(st, GRPC_RESOURCE_EXHAUSTED, SKV_E_TOO_MANY,
			      "too many calls are waiting");
		return;
	}
	rc = st->c.api->message(&st->c, st->body.data, st->body.len);
	if (rc == SKV_OK) {
		/* Counted before it may wait: a caller that sees none waiting may destroy the
		 * transport. */
		st->pending = true;
		skv_gauge_move(m, GAUGE_grpc_parked, 1);
		st->c.done = (struct skv_done){ skv_grpc_completed, st };
		rc = skv_request_run(&st->c);
		if (rc == SKV_PENDING)
			return;
		st->pending = false;
		skv_gauge_move(m, GAUGE_grpc_parked, -1);
	}
	st->c.status = rc;
	skv_grpc_reply(st);
}

void skv_grpc_stream_half_closed(struct grpc_stream *st)
{
	st->ended_in = true;
	if (!st->answered && st->n_prefix > 0)
		skv_grpc_fail(st, GRPC_INTERNAL, SKV_E_INVALID, "the message is truncated");
	else if (!st->answered && st->method->route && !st->got_message)
		skv_grpc_fail(st, GRPC_INTERNAL, SKV_E_INVALID, "there is no message");
	else if (!st->answered && st->method->route)
		run(st);
	else if (!st->answered && st->method->half_closed)
		st->method->half_closed(st);
	skv_grpc_client_turn(st); /* turn of this manager, or of the client to take the answer */
}

void skv_grpc_stream_done(struct grpc_stream *st)
{
	struct grpc_conn *c = st->conn;

	ASSERT_LOOP_THREAD(st->loop);
	assert(st->pending);
	st->pending = false;
	skv_gauge_move(&st->loop->g->s->metrics, GAUGE_grpc_parked, -1);
	if (!c) {
		skv_grpc_stream_free(st);
		return;
	}
	if (st->answered)
		return; /* the deadline had passed */
	skv_grpc_reply(st);
	skv_grpc_conn_flush(c);
}
