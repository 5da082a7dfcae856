/*
 * loop.c - the event threads of the gRPC server: epoll, accepting, the inbox, timers.
 *
 * Each thread owns its connections from their first byte to their last. Thread 0 accepts and deals
 * the sockets out in turn: with one shared listening socket the thread that wakes first would take
 * most. Input from other threads (sockets, completed calls) goes through an inbox under loop.lock,
 * held to link and unlink only, and an eventfd that is written under it: so a completing thread
 * touches nothing of the transport after the event thread has seen the call.
 */
#include "internal.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <skv/clock.h>
#include <skv/log.h>
#include <skv/mem.h>

#define EVENTS 64
#define ACCEPT_ROUND 64   /* sockets accepted before others get their turn */
#define ACCEPT_PAUSE 100u /* ms without accepting when descriptors ran out */

static void wake_locked(struct grpc_loop *l) SKV_REQUIRES(l->lock)
{
	const uint64_t one = 1;

	assert(skv_mutex_held(&l->lock));
	/* The write can only fail when the counter is full: then the thread is awake anyway. */
	if (write(l->wake, &one, sizeof one) < 0)
		return;
}

void skv_grpc_loop_wake(struct grpc_loop *l)
{
	skv_mutex_lock(&l->lock);
	wake_locked(l);
	skv_mutex_unlock(&l->lock);
}

void skv_grpc_completed(void *ctx, int status)
{
	struct grpc_stream *st = ctx;
	struct grpc_loop *l = st->loop;

	assert(st->pending && status != SKV_PENDING);
	st->c.status = status;
	skv_mutex_lock(&l->lock);
	st->completed_next = l->completed;
	l->completed = st;
	if (!st->completed_next)
		wake_locked(l);
	skv_mutex_unlock(&l->lock); /* last touch */
}

/* ---- accepting ------------------------------------------------------------------------------- */

void skv_grpc_socket_left(struct skv_grpc *g, const uint8_t address[SKV_ADDRESS_BYTES])
{
	skv_peers_leave(&g->peers, address);
	skv_gauge_move(&g->s->metrics, GAUGE_grpc_open_connections, -1);
	skv_service_disconnect(g->s);
}

static void deal(struct skv_grpc *g, const struct grpc_socket *s)
{
	struct grpc_loop *l = &g->loops[g->next_loop++ % g->n_loops];
	void *sockets;
	bool taken;

	ASSERT_LOOP_THREAD(&g->loops[0]);
	if (l == &g->loops[0]) {
		skv_grpc_conn_open(l, s);
		return;
	}
	skv_mutex_lock(&l->lock);
	sockets = l->sockets;
	taken = skv_grow(&sockets, &l->cap_sockets, l->n_sockets + 1, sizeof *l->sockets) == SKV_OK;
	l->sockets = sockets;
	if (taken) {
		l->sockets[l->n_sockets++] = *s;
		wake_locked(l);
	}
	skv_mutex_unlock(&l->lock);
	if (!taken) {
		close(s->fd);
		skv_grpc_socket_left(g, s->address);
	}
}

static bool listen_events(struct grpc_loop *l, int op)
{
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = l->g };

	return l->g->bound.fd >= 0 && epoll_ctl(l->epoll, op, l->g->bound.fd, &e) == 0;
}

static void accept_again(struct timer *t, uint64_t now_ms)
{
	struct grpc_loop *l =
		(struct grpc_loop *)((char *)t - offsetof(struct grpc_loop, accept_timer));

	(void)now_ms;
	listen_events(l, EPOLL_CTL_ADD);
}

/* The kernel detects a peer that vanished silently (power, network), even while a Watch waits. */
static void set_socket(const struct skv_grpc *g, int fd)
{
	const int one = 1, probes = 3, interval_s = 10;
	const int idle_s = g->o.idle_timeout_ms / 1000 ? (int)(g->o.idle_timeout_ms / 1000) : 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

/* Counts another connection, unless that exceeds the limit in all or of one address. */
static bool admit(struct skv_grpc *g, const struct grpc_socket *s)
{
	struct metrics *m = &g->s->metrics;

	if (skv_gauge_move(m, GAUGE_grpc_open_connections, 1) < g->o.max_connections &&
	    skv_service_connect(g->s)) {
		if (skv_peers_enter(&g->peers, s->address))
			return true;
		skv_service_disconnect(g->s);
	}
	skv_gauge_move(m, GAUGE_grpc_open_connections, -1);
	skv_metrics_add(m, METRIC_grpc_connections_refused, 1);
	return false;
}

static void accept_some(struct grpc_loop *l)
{
	struct skv_grpc *g = l->g;

	assert(l == &g->loops[0]);
	for (int i = 0; i < ACCEPT_ROUND; i++) {
		struct sockaddr_storage from;
		socklen_t n = sizeof from;
		int fd = accept4(g->bound.fd, (struct sockaddr *)&from, &n,
				 SOCK_NONBLOCK | SOCK_CLOEXEC);
		struct grpc_socket s = { .fd = fd };

		if (fd < 0 &&
		    (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) {
			/* Else epoll would report it again immediately. */
			listen_events(l, EPOLL_CTL_DEL);
			skv_wheel_set(&l->wheel, &l->accept_timer, l->now_ms + ACCEPT_PAUSE);
			return;
		}
		if (fd < 0)
			return;
		skv_hold_address((struct sockaddr *)&from, s.address);
		if (!admit(g, &s)) {
			close(fd);
			continue;
		}
		set_socket(g, fd);
		deal(g, &s);
	}
}

/* ---- the inbox ------------------------------------------------------------------------------- */

static void take_sockets(struct grpc_loop *l, struct grpc_socket *sockets, size_t n)
{
	for (size_t i = 0; i < n; i++)
		skv_grpc_conn_open(l, &sockets[i]);
	skv_free(sockets);
}

static void take_inbox(struct grpc_loop *l)
{
	struct grpc_stream *completed, *oldest = NULL;
	uint64_t ignored;
	struct grpc_socket *sockets;
	size_t n;

	ASSERT_LOOP_THREAD(l);
	skv_mutex_lock(&l->lock);
	if (read(l->wake, &ignored, sizeof ignored) < 0)
		ignored = 0; /* woken twice for one thing */
	completed = l->completed;
	l->completed = NULL;
	sockets = l->sockets;
	n = l->n_sockets;
	l->sockets = NULL;
	l->n_sockets = l->cap_sockets = 0;
	skv_mutex_unlock(&l->lock);

	while (completed) {
		struct grpc_stream *next = completed->completed_next;

		completed->completed_next = oldest;
		oldest = completed;
		completed = next;
	}
	while (oldest) {
		struct grpc_stream *next = oldest->completed_next;

		skv_grpc_stream_done(oldest);
		oldest = next;
	}
	take_sockets(l, sockets, n);
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static void drain(struct grpc_loop *l)
{
	struct grpc_conn *next;

	assert(!l->drained);
	l->drained = true;
	if (l == &l->g->loops[0]) {
		skv_wheel_clear(&l->wheel, &l->accept_timer);
		/* closing does not, if another process has the socket too */
		listen_events(l, EPOLL_CTL_DEL);
		close(l->g->bound.fd);
		l->g->bound.fd = -1;
	}
	skv_grpc_health_look(l); /* tells the watchers, and ends their streams */
	for (struct grpc_conn *c = l->conns; c; c = next) {
		next = c->next;
		skv_grpc_conn_leave(c);
	}
}

static void look_at_health(struct timer *t, uint64_t now_ms)
{
	struct grpc_loop *l =
		(struct grpc_loop *)((char *)t - offsetof(struct grpc_loop, watch_timer));

	skv_grpc_health_look(l);
	if (l->watchers)
		skv_wheel_set(&l->wheel, t, now_ms + WATCH_MS);
}

static void *run(void *arg)
{
	struct grpc_loop *l = arg;
	struct epoll_event e[EVENTS];

	l->owner = skv_thread();
	while (!atomic_load(&l->g->stopping)) {
		int n = epoll_wait(l->epoll, e, EVENTS,
				   skv_wheel_wait(&l->wheel, skv_now_ms(&skv_clock_system)));
		bool inbox = false;

		l->now_ms = skv_now_ms(&skv_clock_system);
		for (int i = 0; i < n; i++) {
			/* later: it may close connections that have events here */
			if (!e[i].data.ptr)
				inbox = true;
			else if (e[i].data.ptr != l->g)
				skv_grpc_conn_event(e[i].data.ptr, e[i].events);
		}
		for (int i = 0; i < n; i++)
			if (e[i].data.ptr == l->g)
				accept_some(l);
		if (inbox)
			take_inbox(l);
		if (atomic_load(&l->g->draining) && !l->drained)
			drain(l);
		skv_wheel_run(&l->wheel, l->now_ms);
	}
	while (l->conns)
		skv_grpc_conn_close(l->conns);
	return NULL;
}

/* ---- begin and end --------------------------------------------------------------------------- */

static int loop_init(struct grpc_loop *l, struct skv_grpc *g)
{
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = NULL };

	l->g = g;
	skv_mutex_init(&l->lock);
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	l->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	l->input = skv_malloc(READ_BYTES);
	l->now_ms = skv_now_ms(&skv_clock_system);
	skv_wheel_init(&l->wheel, l->now_ms);
	l->watch_timer.fire = look_at_health;
	l->accept_timer.fire = accept_again;
	if (l->epoll < 0 || l->wake < 0 || !l->input ||
	    epoll_ctl(l->epoll, EPOLL_CTL_ADD, l->wake, &e) != 0)
		return SKV_E_NOMEM;
	return SKV_OK;
}

static void loop_destroy(struct grpc_loop *l)
{
	l->owner = skv_thread();
	if (l->epoll >= 0) /* sockets that arrived after the thread had ended */
		take_inbox(l);
	while (l->conns)
		skv_grpc_conn_close(l->conns);
	assert(!l->watchers && !l->completed && l->n_sockets == 0);
	while (l->spare) {
		struct grpc_stream *st = l->spare;

		l->spare = st->next;
		skv_request_destroy(&st->c);
		skv_buf_destroy(&st->body);
		skv_buf_destroy(&st->wire);
		skv_free(st);
	}
	if (l->epoll >= 0)
		close(l->epoll);
	if (l->wake >= 0)
		close(l->wake);
	skv_free(l->input);
	skv_free(l->sockets);
	skv_mutex_destroy(&l->lock);
}

int skv_grpc_loops_start(struct skv_grpc *g, struct skv_error *err)
{
	uint32_t ready = 0;
	int rc = SKV_OK;

	g->loops = skv_calloc(g->n_loops, sizeof *g->loops);
	if (!g->loops)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	for (uint32_t i = 0; rc == SKV_OK && i < g->n_loops; i++, ready++)
		rc = loop_init(&g->loops[i], g);
	if (rc == SKV_OK && !listen_events(&g->loops[0], EPOLL_CTL_ADD))
		rc = SKV_E_NOMEM;
	for (uint32_t i = 0; rc == SKV_OK && i < ready; i++) {
		if (pthread_create(&g->loops[i].thread, NULL, run, &g->loops[i]) == 0)
			continue;
		/* Threads that run are ended and joined here; the others never started. */
		atomic_store(&g->stopping, true);
		for (uint32_t k = 0; k < i; k++) {
			skv_grpc_loop_wake(&g->loops[k]);
			pthread_join(g->loops[k].thread, NULL);
		}
		rc = SKV_E_NOMEM;
	}
	if (rc == SKV_OK)
		return SKV_OK;
	for (uint32_t i = 0; i < ready; i++)
		loop_destroy(&g->loops[i]);
	skv_free(g->loops);
	g->loops = NULL;
	return skv_fail(err, rc, NULL, "cannot start the threads of the gRPC port");
}

void skv_grpc_loops_stop(struct skv_grpc *g)
{
	atomic_store(&g->stopping, true);
	for (uint32_t i = 0; i < g->n_loops; i++)
		skv_grpc_loop_wake(&g->loops[i]);
	for (uint32_t i = 0; i < g->n_loops; i++)
		pthread_join(g->loops[i].thread, NULL);
	for (uint32_t i = 0; i < g->n_loops; i++)
		loop_destroy(&g->loops[i]);
	skv_free(g->loops);
	g->loops = NULL;
}
