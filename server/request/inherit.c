/*
 * inherit.c - inherits sockets by systemd's protocol. See inherit.h.
 */
#include <skv/inherit.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FIRST_FD 3

static bool is_known(const char *name)
{
	return strcmp(name, "http") == 0 || strcmp(name, "grpc") == 0;
}

static int get_int(int fd, int option)
{
	int v = -1;
	socklen_t n = sizeof v;

	return getsockopt(fd, SOL_SOCKET, option, &v, &n) == 0 ? v : -1;
}

/* Returns the socket's port; 0: no listening socket of TCP. */
static uint16_t port_of(int fd)
{
	struct sockaddr_storage at = { 0 };
	socklen_t n = sizeof at;

	if (get_int(fd, SO_TYPE) != SOCK_STREAM || get_int(fd, SO_ACCEPTCONN) != 1 ||
	    getsockname(fd, (struct sockaddr *)&at, &n) != 0)
		return 0;
	if (at.ss_family == AF_INET)
		return ntohs(((const struct sockaddr_in *)&at)->sin_port);
	return at.ss_family == AF_INET6 ? ntohs(((const struct sockaddr_in6 *)&at)->sin6_port) : 0;
}

static int take_over(struct skv_inherited *in, int fd, const char *name, size_t n,
		     struct skv_error *err)
{
	const int flags = fcntl(fd, F_GETFD), status = fcntl(fd, F_GETFL);
	const size_t i = in->n;

	assert(i < SKV_INHERITED_MAX);
	if (flags < 0 || status < 0 || fcntl(fd, F_SETFD, flags | FD_CLOEXEC) != 0 ||
	    fcntl(fd, F_SETFL, status | O_NONBLOCK) != 0)
		return skv_fail(err, SKV_E_INVALID, "LISTEN_FDS", "LISTEN_FDS: descriptor %d: %s",
				fd, strerror(errno));
	in->v[i].fd = fd;
	in->v[i].port = port_of(fd);
	snprintf(in->v[i].name, sizeof in->v[i].name, "%.*s", (int)(n < 31 ? n : 31), name);
	in->n++;
	if (in->v[i].port)
		return SKV_OK;
	return skv_fail(
		err, SKV_E_INVALID, "LISTEN_FDS",
		"LISTEN_FDS: descriptor %d ('%s') is not a listening TCP socket: in its .socket "
		"file, use ListenStream with a port",
		fd, in->v[i].name);
}

static int read_all(struct skv_inherited *in, const char *pid, const char *fds, const char *names,
		    struct skv_error *err)
{
	char *end;
	unsigned long n;
	int rc = SKV_OK;

	if (!pid || !fds || strtoul(pid, NULL, 10) != (unsigned long)getpid())
		return SKV_OK; /* none, or another process's */
	n = strtoul(fds, &end, 10);
	if (end == fds || *end || n > SKV_INHERITED_MAX)
		return skv_fail(err, SKV_E_INVALID, "LISTEN_FDS",
				"LISTEN_FDS='%.32s' is not a number of at most %d", fds,
				SKV_INHERITED_MAX);
	for (unsigned long i = 0; i < n && rc == SKV_OK; i++) {
		const size_t length = names ? strcspn(names, ":") : 0;

		rc = take_over(in, FIRST_FD + (int)i, names ? names : "", length, err);
		names = names && names[length] ? names + length + 1 : NULL;
	}
	return rc;
}

int skv_inherit(struct skv_inherited *in, struct skv_error *err)
{
	int rc;

	memset(in, 0, sizeof *in);
	rc = read_all(in, getenv("LISTEN_PID"), getenv("LISTEN_FDS"), getenv("LISTEN_FDNAMES"),
		      err);
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	return rc;
}

int skv_inherit_take(struct skv_inherited *in, const char *name, uint16_t port)
{
	size_t found = in->n;
	int fd;

	for (size_t i = in->n; i-- > 0;)
		if (in->v[i].fd >= 0 && port && in->v[i].port == port && !is_known(in->v[i].name))
			found = i;
	for (size_t i = in->n; i-- > 0;)
		if (in->v[i].fd >= 0 && strcmp(in->v[i].name, name) == 0)
			found = i;
	if (found == in->n)
		return -1;
	fd = in->v[found].fd;
	in->v[found].fd = -1;
	return fd;
}

int skv_inherit_check(const struct skv_inherited *in, struct skv_error *err)
{
	for (size_t i = 0; i < in->n; i++)
		if (in->v[i].fd >= 0)
			return skv_fail(
				err, SKV_E_INVALID, "LISTEN_FDS",
				"the socket '%s' of port %u that was handed over belongs to no "
				"port of this manager: call it http or grpc (FileDescriptorName=), "
				"or name its port as a parameter",
				in->v[i].name, in->v[i].port);
	return SKV_OK;
}

void skv_inherit_drop(struct skv_inherited *in)
{
	for (size_t i = 0; i < in->n; i++)
		if (in->v[i].fd >= 0)
			close(in->v[i].fd);
	in->n = 0;
}
