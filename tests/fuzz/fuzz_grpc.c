/*
 * fuzz_grpc.c - any bytes into the gRPC port, behind its sockets and threads:
 * HTTP/2, headers, messages.
 *
 * First byte 0: the rest comes as it is behind the client's preface. Else it chooses a method, and
 * the rest is the message of one call of it, properly framed. A core that has no state answers.
 * Afterwards nothing may be counted as open, running or held.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <skv/clock.h>
#include <skv/log.h>
#include <skv/mem.h>
#include <skv/v1_api.h>

#include "fake_core.h"
#include "internal.h"

#define PIECE 4096u /* bytes that arrive at a time */

/* And empty SETTINGS: nine bytes, the last one the string's own. */
static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "%s\n", what);
	abort();
}

/* ---- a transport without threads ------------------------------------------------------------- */

static struct skv_service *service;
static struct skv_grpc httpd;
static struct grpc_loop loop;

static void look(struct timer *t, uint64_t now_ms)
{
	(void)t;
	(void)now_ms;
	skv_grpc_health_look(&loop);
}

static void prepare(void)
{
	static struct skv_api *const apis[] = { &skv_v1_api };
	struct skv_service_options so;
	struct skv_error err;

	if (httpd.s)
		return;
	skv_log_setup(STDERR_FILENO, false, SKV_LOG_ERROR);
	skv_service_options_init(&so);
	so.apis = apis;
	so.n_apis = 1;
	so.body_max = 1 << 20;
	so.body_total_max = 4 << 20;
	must(skv_service_create(&so, &service, &err) == SKV_OK, "no service");
	service->cluster = fake_core_create();
	skv_grpc_options_init(&httpd.o);
	httpd.o.max_streams = 8;
	httpd.o.apis = (struct skv_apis){ { &skv_v1_api }, 1, SKV_PLANE_ALL };
	httpd.s = service;
	httpd.loops = &loop;
	httpd.n_loops = 1;
	must(skv_grpc_methods_init(&httpd, &err) == SKV_OK &&
		     skv_grpc_h2_init(&httpd, &err) == SKV_OK,
	     "no front");
	loop.g = &httpd;
	loop.owner = skv_thread();
	loop.watch_timer.fire = look;
	skv_mutex_init(&loop.lock);
	skv_workers_init(&service->workers, WORKERS_QUEUE);
	loop.epoll = epoll_create1(EPOLL_CLOEXEC);
	loop.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	loop.input = skv_malloc(READ_BYTES);
	loop.now_ms = skv_now_ms(&skv_clock_system);
	skv_wheel_init(&loop.wheel, loop.now_ms);
	must(loop.epoll >= 0 && loop.wake >= 0 && loop.input, "no loop");
}

/* Does the work of the workers and the loop's inbox. */
static void work_off(void)
{
	while (skv_workers_run_next(&service->workers))
		;
	while (loop.completed) {
		struct grpc_stream *st = loop.completed;

		loop.completed = st->completed_next;
		skv_grpc_stream_done(st);
	}
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static void put_frame(struct skv_buf *b, uint8_t type, uint8_t flags, const void *p, size_t n)
{
	const uint8_t head[9] = {
		(uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n, type, flags, 0, 0, 0, 1
	};

	skv_put_bytes(b, head, sizeof head);
	skv_put_bytes(b, p, n);
}

/* A literal that enters no table; name and value are short. */
static void put_field(struct skv_buf *b, const char *name, const char *value)
{
	skv_put_u8(b, 0);
	skv_put_u8(b, (uint8_t)strlen(name));
	skv_put_bytes(b, name, strlen(name));
	skv_put_u8(b, (uint8_t)strlen(value));
	skv_put_bytes(b, value, strlen(value));
}

static void put_call(struct skv_buf *b, const struct grpc_method *m, const uint8_t *p, size_t n)
{
	struct skv_buf head, message;

	skv_buf_init(&head);
	skv_buf_init(&message);
	put_field(&head, ":method", "POST");
	put_field(&head, ":scheme", "http");
	put_field(&head, ":path", m->path);
	put_field(&head, "content-type", "application/grpc");
	put_frame(b, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, head.data, head.len);
	skv_put_u8(&message, 0);
	for (int shift = 24; shift >= 0; shift -= 8)
		skv_put_u8(&message, (uint8_t)(n >> shift));
	skv_put_bytes(&message, p, n);
	for (size_t at = 0; at < message.len; at += 16384) {
		size_t left = message.len - at;

		put_frame(b, NGHTTP2_DATA, left <= 16384 ? NGHTTP2_FLAG_END_STREAM : 0,
			  message.data + at, left < 16384 ? left : 16384);
	}
	skv_buf_destroy(&head);
	skv_buf_destroy(&message);
}

static void take_answers(int fd)
{
	static char ignored[1 << 16];

	while (recv(fd, ignored, sizeof ignored, MSG_DONTWAIT) > 0)
		continue;
}

/* ---- one connection -------------------------------------------------------------------------- */

/* `late`: what waits completes when the client is gone. */
static void serve(const struct skv_buf *b, bool late)
{
	int fd[2];

	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd) == 0,
	     "no sockets");
	skv_gauge_move(&service->metrics, GAUGE_grpc_open_connections, 1);
	must(skv_service_connect(service), "connections are bounded");
	skv_grpc_conn_open(&loop, &(struct grpc_socket){ .fd = fd[0] });
	for (size_t at = 0; at < b->len && loop.conns;) {
		size_t n = b->len - at < PIECE ? b->len - at : PIECE;
		ssize_t sent = send(fd[1], b->data + at, n, MSG_NOSIGNAL);

		if (sent <= 0)
			break;
		at += (size_t)sent;
		skv_grpc_conn_event(loop.conns, EPOLLIN);
		take_answers(fd[1]);
		if (loop.conns && loop.conns->events & EPOLLOUT)
			skv_grpc_conn_event(loop.conns, EPOLLOUT);
	}
	if (!late)
		work_off();
	/* Time passes: calls that wait for the client are given up. */
	loop.now_ms += httpd.o.idle_timeout_ms * 3;
	skv_wheel_run(&loop.wheel, loop.now_ms);
	close(fd[1]);
	if (loop.conns)
		skv_grpc_conn_event(loop.conns, EPOLLIN | EPOLLHUP);
	if (loop.conns)
		skv_grpc_conn_close(loop.conns);
	work_off();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct skv_buf b;

	if (size == 0)
		return 0;
	prepare();
	skv_buf_init(&b);
	skv_put_bytes(&b, preface, sizeof preface);
	if (data[0] == 0)
		skv_put_bytes(&b, data + 1, size - 1);
	else
		put_call(&b, &httpd.methods[data[0] % httpd.n_methods], data + 1, size - 1);
	must(!b.failed, "out of memory");
	serve(&b, size & 1);
	skv_buf_destroy(&b);
	must(!loop.conns && loop.watchers == NULL, "a connection or a watcher is left");
	must(skv_gauge_get(&service->metrics, GAUGE_grpc_open_connections) == 0,
	     "an open connection is counted");
	must(skv_gauge_get(&service->metrics, GAUGE_grpc_in_flight) == 0,
	     "a running call is counted");
	must(skv_gauge_get(&service->metrics, GAUGE_grpc_parked) == 0, "a waiting call is counted");
	must(atomic_load(&service->holds.bytes) == 0, "held bytes are counted");
	return 0;
}
