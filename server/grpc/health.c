/*
 * health.c - grpc.health.v1.Health: Check, and Watch as a stream of changes.
 *
 * The manager as a whole ("") and its services are serving when /readyz says ready; gRPC's own
 * (health, reflection) always are. An unknown watched service is SERVICE_UNKNOWN, as the protocol
 * demands. Each event thread checks its watchers a few times a second.
 */
#include "internal.h"

#include <assert.h>
#include <string.h>

#include <skv/pb.h>

enum { SERVING = 1, NOT_SERVING = 2, SERVICE_UNKNOWN = 3 };

static bool is_always_there(const char *name, size_t n)
{
	return n > 5 && memcmp(name, "grpc.", 5) == 0;
}

static int state_of(struct skv_grpc *g, const char *name, size_t n)
{
	struct skv_error ignored;

	if (n > 0 && !skv_grpc_service_known(&g->o.apis, name, n))
		return SERVICE_UNKNOWN;
	if (atomic_load(&g->draining))
		return NOT_SERVING;
	if (is_always_there(name, n))
		return SERVING;
	return skv_service_ready(g->s, &ignored) == SKV_OK ? SERVING : NOT_SERVING;
}

/* Field 1 of a HealthCheckRequest. False: no protobuf. */
static bool read_request(const uint8_t *p, size_t n, const char **name, size_t *n_name)
{
	struct skv_rd r = skv_rd_make(p, n);
	struct pb_field f;

	*name = "";
	*n_name = 0;
	while (pb_next(&r, &f)) {
		if (f.number == 1 && f.wire == 2) {
			*name = (const char *)f.p;
			*n_name = f.n;
		}
	}
	return !r.failed;
}

static void send_state(struct grpc_stream *st, int state)
{
	const uint8_t message[2] = { 1 << 3, (uint8_t)state };

	skv_grpc_send(st, message, sizeof message);
}

static void check(struct grpc_stream *st, const uint8_t *p, size_t n)
{
	const char *name;
	size_t n_name;
	int state;

	if (!read_request(p, n, &name, &n_name)) {
		skv_grpc_fail(st, GRPC_INVALID_ARGUMENT, SKV_E_INVALID,
			      "the message is not valid protobuf");
		return;
	}
	state = state_of(st->loop->g, name, n_name);
	if (state == SERVICE_UNKNOWN) {
		skv_grpc_fail(st, GRPC_NOT_FOUND, SKV_E_NOT_FOUND, "no such service");
		return;
	}
	send_state(st, state);
	skv_grpc_end(st);
}

/* ---- watch ----------------------------------------------------------------------------------- */

static void watch(struct grpc_stream *st, const uint8_t *p, size_t n)
{
	struct grpc_loop *l = st->loop;
	const char *name;
	size_t n_name;

	if (st->watching || !read_request(p, n, &name, &n_name)) {
		skv_grpc_fail(st, GRPC_INVALID_ARGUMENT, SKV_E_INVALID,
			      "Watch takes one valid message");
		return;
	}
	st->watching = true;
	st->watch_last = state_of(l->g, name, n_name);
	/* The state of an unknown service, or of one that is always there, never changes. */
	st->watch_known = st->watch_last != SERVICE_UNKNOWN && !is_always_there(name, n_name);
	send_state(st, st->watch_last);
	st->watch_next = l->watchers;
	if (st->watch_next)
		st->watch_next->watch_prev = st;
	l->watchers = st;
	if (!l->watch_timer.next)
		skv_wheel_set(&l->wheel, &l->watch_timer, l->now_ms + WATCH_MS);
}

static void watch_closed(struct grpc_stream *st)
{
	if (!st->watching)
		return;
	st->watching = false;
	assert(st->watch_prev ? st->watch_prev->watch_next == st : st->loop->watchers == st);
	if (st->watch_prev)
		st->watch_prev->watch_next = st->watch_next;
	else
		st->loop->watchers = st->watch_next;
	if (st->watch_next)
		st->watch_next->watch_prev = st->watch_prev;
	st->watch_prev = st->watch_next = NULL;
}

void skv_grpc_health_look(struct grpc_loop *l)
{
	bool draining = atomic_load(&l->g->draining);
	int state = l->watchers ? state_of(l->g, "", 0) : NOT_SERVING;
	struct grpc_conn *next;

	ASSERT_LOOP_THREAD(l);
	for (struct grpc_stream *st = l->watchers; st; st = st->watch_next) {
		if (st->watch_known && st->watch_last != state) {
			st->watch_last = state;
			send_state(st, state);
		}
		if (draining)
			skv_grpc_fail(st, GRPC_UNAVAILABLE, SKV_E_NOT_READY,
				      "this manager is shutting down");
	}
	/* Written in a second pass: it may close connections, and with them
	 * watchers of the list above. */
	for (struct grpc_conn *c = l->watchers ? l->conns : NULL; c; c = next) {
		next = c->next;
		if (nghttp2_session_want_write(c->h2))
			skv_grpc_conn_flush(c);
	}
}

const struct grpc_method skv_grpc_health_methods[2] = {
	{ .path = "/grpc.health.v1.Health/Check", .message = check },
	{ .path = "/grpc.health.v1.Health/Watch", .message = watch, .closed = watch_closed },
};
