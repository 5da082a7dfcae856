/*
 * accept.c - accepts connections and hands them to libmicrohttpd's threads.
 *
 * libmicrohttpd does not listen itself: it cannot stop listening while its threads serve (0.9.75's
 * MHD_quiesce_daemon races with them for the socket), and a manager whose socket outlives it must
 * leave new connections to the next manager as soon as it ends. From such a socket no connection is
 * accepted before the manager can answer, either: clients that wait in the kernel need not connect
 * again. Owns one thread and the count of connections. Connections over the limit are closed at
 * once: a client that waits in the kernel for a free place would take the manager for hanging.
 */
#include "internal.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define PAUSE_MS 20 /* out of descriptors */

static bool admit(struct skv_httpd *f)
{
	if (!skv_service_connect(f->s))
		return false;
	if (atomic_fetch_add(&f->acceptor.open, 1) < f->o.max_connections)
		return true;
	skv_accept_closed(f);
	return false;
}

/* Returns false if the process lacks a resource for a while. */
static bool accept_one(struct skv_httpd *f)
{
	struct sockaddr_storage from;
	socklen_t n = sizeof from;
	int fd = accept4(f->bound.fd, (struct sockaddr *)&from, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0)
		return errno == EAGAIN || errno == EINTR || errno == ECONNABORTED;
	if (!admit(f)) {
		/* a refused operator can look up the reason */
		skv_metrics_add(&f->s->metrics, METRIC_http_connections_refused, 1);
		close(fd);
		return true;
	}
	/* has closed it */
	if (MHD_add_connection(f->daemon, fd, (struct sockaddr *)&from, n) != MHD_YES)
		skv_accept_closed(f);
	return true;
}

static void *run(void *arg)
{
	struct skv_httpd *f = arg;
	struct pollfd wait[2] = { { .fd = f->acceptor.wake, .events = POLLIN },
				  { .fd = f->bound.fd, .events = POLLIN } };
	bool pause = false;

	if (f->bound.inherited)
		poll(wait, 1, (int)f->o.hold_ms);
	while (!atomic_load(&f->acceptor.stopping)) {
		eventfd_t ignored;
		int n;

		n = poll(wait, pause ? 1 : 2, pause ? PAUSE_MS : -1);
		if (n > 0 && wait[0].revents)
			eventfd_read(f->acceptor.wake, &ignored);
		pause = !pause && n > 0 && wait[1].revents && !accept_one(f);
	}
	return NULL;
}

int skv_accept_start(struct skv_httpd *f, struct skv_error *err)
{
	struct acceptor *a = &f->acceptor;

	assert(!a->running && f->daemon);
	a->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	a->running = a->wake >= 0 && pthread_create(&a->thread, NULL, run, f) == 0;
	if (a->running)
		return SKV_OK;
	if (a->wake >= 0)
		close(a->wake);
	return skv_fail(err, SKV_E_NOMEM, NULL, "cannot start a thread");
}

void skv_accept_stop(struct skv_httpd *f)
{
	if (!f->acceptor.running)
		return;
	atomic_store(&f->acceptor.stopping, true);
	eventfd_write(f->acceptor.wake, 1);
	pthread_join(f->acceptor.thread, NULL);
	close(f->acceptor.wake);
	f->acceptor.running = false;
}

void skv_httpd_open(struct skv_httpd *f)
{
	if (f->acceptor.running)
		eventfd_write(f->acceptor.wake, 1);
}

void skv_accept_closed(struct skv_httpd *f)
{
	const unsigned open = atomic_fetch_sub(&f->acceptor.open, 1);

	assert(open > 0);
	skv_service_disconnect(f->s);
}
