/*
 * data.c - the connections of the data protocol: accepts them over TCP and on the local socket, a
 * thread for each, and knows which of them are writing.
 *
 * Owns the list of connections, under conn_lock. The acceptor also cuts connections that have not
 * said hello (TLS handshake included) within HELLO_MS; when too many of them wait, the one that has
 * waited longest. And it cuts TCP connections whose writer should have ended: the client's deadline
 * has passed. A local writer cannot be cut, since it has mapped the memory: it counts as writing
 * until it reports the end, or until the last process that has its socket is gone.
 */
#include "memnode.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <skv/clock.h>
#include <skv/log.h>
#include <skv/mem.h>

#define LOOK_MS 200
#define STACK (256u << 10)
#define LATE_MS 1000u /* after a TCP writer's deadline, before it is cut */
#define HELLO_MS 10000u
/* Connections that may wait with their hello, whatever the limit of connections. */
#define STRANGERS 16u

/* ---- writers --------------------------------------------------------------------------------- */

uint64_t data_writing_ms(struct memnode *m)
{
	uint64_t oldest = UINT64_MAX, now;

	skv_mutex_lock(&m->conn_lock);
	now = skv_now_ms(&skv_clock_system);
	for (const struct connection *c = m->conns; c; c = c->next) {
		uint64_t begun = atomic_load(&c->begun);

		if (begun && begun < oldest)
			oldest = begun;
	}
	skv_mutex_unlock(&m->conn_lock);
	if (oldest == UINT64_MAX)
		return 0;
	return now > oldest ? now - oldest + 1 : 1; /* rounded up */
}

static void cut_late_writers(struct memnode *m)
{
	skv_mutex_lock(&m->conn_lock);
	for (struct connection *c = m->conns; c; c = c->next)
		if (!c->local && atomic_load(&c->begun) &&
		    skv_now_ms(&skv_clock_system) > atomic_load(&c->until) + LATE_MS)
			shutdown(c->fd, SHUT_RDWR);
	skv_mutex_unlock(&m->conn_lock);
}

/* ---- connections without a hello ------------------------------------------------------------- */

static bool is_stranger(const struct connection *c) { return !c->cut && !atomic_load(&c->greeted); }

/* Cuts a connection: its thread finds the end of the stream, wherever it waits. */
static void cut_locked(struct memnode *m, struct connection *c) SKV_REQUIRES(m->conn_lock)
{
	assert(skv_mutex_held(&m->conn_lock) && !c->cut);
	c->cut = true;
	m->n_cut++;
	shutdown(c->fd, SHUT_RDWR);
}

static void cut_silent(struct memnode *m)
{
	skv_mutex_lock(&m->conn_lock);
	for (struct connection *c = m->conns; c; c = c->next)
		if (is_stranger(c) && skv_now_ms(&skv_clock_system) > c->since_ms + HELLO_MS)
			cut_locked(m, c);
	skv_mutex_unlock(&m->conn_lock);
}

/* Makes way for a new connection, which may be a client that says hello at once. */
static void make_way_locked(struct memnode *m) SKV_REQUIRES(m->conn_lock)
{
	const uint32_t quarter = m->max_connections / 4;
	struct connection *oldest = NULL;
	uint32_t n = 0;

	for (struct connection *c = m->conns; c; c = c->next)
		if (is_stranger(c)) {
			oldest = c;
			n++;
		}
	if (n >= (quarter > STRANGERS ? quarter : STRANGERS))
		cut_locked(m, oldest);
}

uint64_t data_cut(struct memnode *m)
{
	uint64_t n;

	skv_mutex_lock(&m->conn_lock);
	n = m->n_cut;
	skv_mutex_unlock(&m->conn_lock);
	return n;
}

void data_counts(struct memnode *m, uint32_t *tcp, uint32_t *local)
{
	skv_mutex_lock(&m->conn_lock);
	*tcp = m->n_tcp;
	*local = m->n_local;
	skv_mutex_unlock(&m->conn_lock);
}

/* ---- connections ----------------------------------------------------------------------------- */

static bool enlist(struct connection *c)
{
	struct memnode *m = c->node;
	bool room;

	skv_mutex_lock(&m->conn_lock);
	make_way_locked(m);
	room = m->n_tcp + m->n_local < m->max_connections;
	if (room) {
		c->next = m->conns;
		m->conns = c;
		*(c->local ? &m->n_local : &m->n_tcp) += 1;
	}
	skv_mutex_unlock(&m->conn_lock);
	return room;
}

static void leave(struct connection *c)
{
	struct memnode *m = c->node;
	struct connection **at = &m->conns;

	assert(atomic_load(&c->begun) == 0);
	skv_mutex_lock(&m->conn_lock);
	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	*(c->local ? &m->n_local : &m->n_tcp) -= 1;
	wire_close(c);
	skv_cond_broadcast(&m->conn_gone);
	skv_mutex_unlock(&m->conn_lock);
	skv_free(c);
}

static void *run(void *arg)
{
	connection_serve(arg);
	leave(arg);
	return NULL;
}

static bool start_thread(struct connection *c)
{
	pthread_attr_t a;
	pthread_t id;
	bool good;

	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, STACK);
	pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED);
	good = pthread_create(&id, &a, run, c) == 0;
	pthread_attr_destroy(&a);
	return good;
}

static void take_one(struct memnode *m, int listening, bool local)
{
	int one = 1, fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
	struct connection *c;

	if (fd < 0)
		return;
	c = skv_calloc(1, sizeof *c);
	if (c)
		*c = (struct connection){ .node = m,
					  .fd = fd,
					  .local = local,
					  .since_ms = skv_now_ms(&skv_clock_system) };
	if (!c || !enlist(c)) {
		close(fd);
		skv_free(c);
		skv_log(SKV_LOG_WARN, "memory",
			"a connection was refused: %u are open, or no memory", m->max_connections);
		return;
	}
	if (!local) {
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
		setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
	}
	if (!start_thread(c))
		leave(c);
}

static void *accept_all(void *arg)
{
	struct memnode *m = arg;
	struct pollfd p[3] = { { .fd = m->stop_fd, .events = POLLIN },
			       { .fd = m->tcp_fd, .events = POLLIN },
			       { .fd = m->local_fd, .events = POLLIN } };

	while (!(p[0].revents & POLLIN)) {
		if (poll(p, 3, LOOK_MS) < 0 && errno != EINTR)
			break;
		if (p[1].revents)
			take_one(m, m->tcp_fd, false);
		if (p[2].revents)
			take_one(m, m->local_fd, true);
		cut_late_writers(m);
		cut_silent(m);
	}
	return NULL;
}

/* ---- life ------------------------------------------------------------------------------------ */

static int bind_local(struct memnode *m, struct skv_error *err)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	char name[SKV_MN_LOCAL_MAX];
	socklen_t n;

	skv_mn_local_name(m->name, m->epoch, name);
	memcpy(at.sun_path + 1, name, strlen(name));
	n = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
	m->local_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (m->local_fd >= 0 && bind(m->local_fd, (const struct sockaddr *)&at, n) == 0 &&
	    listen(m->local_fd, 128) == 0)
		return SKV_OK;
	return skv_fail(err, SKV_E_IO, NULL, "cannot open the local socket @%s: %s", name,
			strerror(errno));
}

int data_bind(struct memnode *m, struct skv_error *err)
{
	const struct skv_listen l = { .host = m->listen, .port = m->port,
				      .host_param = "http_listen", .port_param = "memory_port",
				      .port_option = "--memory-port", .name = "memory" };
	struct skv_bound bound = { .fd = -1 };
	int rc = skv_listen(&l, m->service->auth.path != NULL, &bound, err);

	if (rc != SKV_OK)
		return rc;
	m->tcp_fd = bound.fd;
	m->port = bound.port;
	rc = bind_local(m, err);
	return rc == SKV_OK ? mem_rdma_bind(m, err) : rc;
}

int data_start(struct memnode *m, struct skv_error *err)
{
	m->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (m->stop_fd < 0 || pthread_create(&m->acceptor, NULL, accept_all, m) != 0)
		return skv_fail(err, SKV_E_NOMEM, NULL, "cannot start the data port's thread");
	m->accepting = true;
	return mem_rdma_start(m, err);
}

static void close_if(int fd)
{
	if (fd >= 0)
		close(fd);
}

void data_stop(struct memnode *m)
{
	const uint64_t one = 1;

	if (m->accepting) {
		if (write(m->stop_fd, &one, sizeof one) != sizeof one)
			skv_log(SKV_LOG_ERROR, "memory", "cannot stop the data port");
		pthread_join(m->acceptor, NULL);
	}
	skv_mutex_lock(&m->conn_lock);
	for (struct connection *c = m->conns; c; c = c->next)
		shutdown(c->fd, SHUT_RDWR);
	while (m->conns)
		skv_cond_wait(&m->conn_gone, &m->conn_lock);
	skv_mutex_unlock(&m->conn_lock);
	mem_rdma_stop(m);
	close_if(m->tcp_fd);
	close_if(m->local_fd);
	close_if(m->stop_fd);
}
