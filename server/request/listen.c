/*
 * listen.c - binds a port of a transport, or takes its inherited socket.
 *
 * Done before anything else starts, so that a taken port or a forbidden address is told before the
 * store is touched. Only a loopback address will do unless the caller allows any. No state.
 */
#include <skv/service.h>

#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 1024

static bool is_loopback(const struct sockaddr *sa)
{
	if (sa->sa_family == AF_INET) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)sa;

		return ntohl(in->sin_addr.s_addr) >> 24 == 127;
	}
	if (sa->sa_family == AF_INET6) {
		const struct in6_addr *a = &((const struct sockaddr_in6 *)sa)->sin6_addr;

		return IN6_IS_ADDR_LOOPBACK(a) ||
			(IN6_IS_ADDR_V4MAPPED(a) && a->s6_addr[12] == 127);
	}
	return false;
}

static int resolve(const struct skv_listen *l, struct addrinfo **out, struct skv_error *err)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
				 .ai_flags = AI_PASSIVE | AI_NUMERICSERV };
	char port[8];
	int rc;

	snprintf(port, sizeof port, "%u", l->port);
	rc = getaddrinfo(l->host, port, &hints, out);
	if (rc != 0)
		return skv_fail(err, SKV_E_INVALID, l->host_param,
				"%s: cannot resolve '%.100s': %s; give an address of this host",
				l->host_param, l->host, gai_strerror(rc));
	return SKV_OK;
}

static int open_socket(const struct addrinfo *ai, const struct skv_listen *l, int *out,
		       struct skv_error *err)
{
	int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int one = 1;

	if (fd < 0)
		return skv_fail(err, SKV_E_IO, l->host_param, "cannot make a socket: %s",
				strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (bind(fd, ai->ai_addr, ai->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0) {
		*out = fd;
		return SKV_OK;
	}
	if (errno == EADDRINUSE)
		skv_fail(err, SKV_E_IN_USE, l->port_param,
			 "port %u on %.100s is taken: another slabkvd? Choose another one with "
			 "%s (0 = any free one)", l->port, l->host, l->port_option);
	else if (errno == EACCES)
		skv_fail(err, SKV_E_FORBIDDEN, l->port_param,
			 "port %u needs privileges: choose one above 1023 with %s", l->port,
			 l->port_option);
	else
		skv_fail(err, SKV_E_INVALID, l->host_param,
			 "cannot bind %.100s port %u: %s; give an address of this host as %s",
			 l->host, l->port, strerror(errno), l->host_param);
	close(fd);
	return err->status;
}

static void note_address(struct skv_bound *b)
{
	struct sockaddr_storage bound;
	socklen_t len = sizeof bound;
	char host[200] = "?", port[8] = "0";

	memset(&bound, 0, sizeof bound);
	getsockname(b->fd, (struct sockaddr *)&bound, &len);
	getnameinfo((struct sockaddr *)&bound, len, host, sizeof host, port, sizeof port,
		    NI_NUMERICHOST | NI_NUMERICSERV);
	b->family = bound.ss_family;
	b->port = ntohs(b->family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port
					      : ((struct sockaddr_in *)&bound)->sin_port);
	snprintf(b->text, sizeof b->text, b->family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
}

static int check_address(const struct sockaddr *sa, const struct skv_listen *l, bool any,
			 struct skv_error *err)
{
	if (any || is_loopback(sa))
		return SKV_OK;
	return skv_fail(
		err, SKV_E_INVALID, l->host_param,
		"%s %.100s is not loopback, and without tokens everybody who reaches it would be "
		"admin: name a tokens_file with lines 'role tenant token', or listen on 127.0.0.1",
		l->host_param, l->host);
}

static int bind_new(const struct skv_listen *l, bool any, int *out, struct skv_error *err)
{
	struct addrinfo *ai = NULL;
	int rc = resolve(l, &ai, err);

	if (rc != SKV_OK)
		return rc;
	rc = check_address(ai->ai_addr, l, any, err);
	if (rc == SKV_OK)
		rc = open_socket(ai, l, out, err);
	freeaddrinfo(ai);
	return rc;
}

static int check_inherited(const struct skv_listen *l, int fd, bool any, struct skv_error *err)
{
	struct skv_listen given = *l;
	struct sockaddr_storage at = { 0 };
	socklen_t n = sizeof at;

	getsockname(fd, (struct sockaddr *)&at, &n);
	given.host_param = "the socket that was handed over";
	given.host = l->name;
	return check_address((const struct sockaddr *)&at, &given, any, err);
}

int skv_listen(const struct skv_listen *l, bool any, struct skv_bound *out, struct skv_error *err)
{
	int fd = l->inherited ? skv_inherit_take(l->inherited, l->name, l->port) : -1;
	struct skv_error local;
	bool inherited = fd >= 0;
	int rc;

	if (!err)
		err = &local;
	rc = inherited ? check_inherited(l, fd, any, err) : bind_new(l, any, &fd, err);
	if (rc != SKV_OK) {
		if (inherited)
			close(fd);
		return rc;
	}
	assert(fd >= 0);
	*out = (struct skv_bound){ .fd = fd, .inherited = inherited };
	note_address(out);
	return SKV_OK;
}
