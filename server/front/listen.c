/*
 * listen.c - binds the HTTP port.
 *
 * Done before anything else starts, so that a taken port or a forbidden address is told before the
 * store is touched. Only a loopback address may be bound when there are no tokens. No state.
 */
#include "internal.h"

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

static int resolve(const struct kvb_front *f, struct addrinfo **out, struct kvb_error *err)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
				 .ai_flags = AI_PASSIVE | AI_NUMERICSERV };
	char port[8];
	int rc;

	snprintf(port, sizeof port, "%u", f->o.port);
	rc = getaddrinfo(f->o.listen, port, &hints, out);
	if (rc != 0)
		return kvb_fail(err, KVB_E_INVALID, "http_listen",
				"http_listen: cannot resolve '%.100s': %s; give an address of "
				"this host", f->o.listen, gai_strerror(rc));
	return KVB_OK;
}

static int open_socket(const struct addrinfo *ai, const struct kvb_front *f, int *out,
		       struct kvb_error *err)
{
	int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int one = 1;

	if (fd < 0)
		return kvb_fail(err, KVB_E_IO, "http_listen", "cannot make a socket: %s",
				strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (bind(fd, ai->ai_addr, ai->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0) {
		*out = fd;
		return KVB_OK;
	}
	if (errno == EADDRINUSE)
		kvb_fail(err, KVB_E_IN_USE, "http_port",
			 "port %u on %.100s is taken: another kvblockd? Choose another one with "
			 "--http-port (0 = any free one)", f->o.port, f->o.listen);
	else if (errno == EACCES)
		kvb_fail(err, KVB_E_FORBIDDEN, "http_port",
			 "port %u needs privileges: choose one above 1023 with --http-port",
			 f->o.port);
	else
		kvb_fail(err, KVB_E_INVALID, "http_listen",
			 "cannot bind %.100s port %u: %s; give an address of this host with "
			 "--http-listen", f->o.listen, f->o.port, strerror(errno));
	close(fd);
	return err->status;
}

static void note_address(struct kvb_front *f, int fd)
{
	struct sockaddr_storage bound;
	socklen_t len = sizeof bound;
	char host[200] = "?", port[8] = "0";

	memset(&bound, 0, sizeof bound);
	getsockname(fd, (struct sockaddr *)&bound, &len);
	getnameinfo((struct sockaddr *)&bound, len, host, sizeof host, port, sizeof port,
		    NI_NUMERICHOST | NI_NUMERICSERV);
	f->family = bound.ss_family;
	f->port = ntohs(f->family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port
					      : ((struct sockaddr_in *)&bound)->sin_port);
	f->loopback = is_loopback((struct sockaddr *)&bound);
	snprintf(f->url, sizeof f->url, f->family == AF_INET6 ? "http://[%s]:%s" : "http://%s:%s",
		 host, port);
}

int kvb_front_bind(struct kvb_front *f, struct kvb_error *err)
{
	struct kvb_error local;
	struct addrinfo *ai = NULL;
	int rc;

	if (!err)
		err = &local;
	rc = resolve(f, &ai, err);
	if (rc != KVB_OK)
		return rc;
	if (!f->auth.path && !is_loopback(ai->ai_addr))
		rc = kvb_fail(err, KVB_E_INVALID, "http_listen",
			      "http_listen %.100s is not loopback, and without tokens everybody "
			      "who reaches it would be admin: name a tokens_file with lines 'role "
			      "tenant token', or listen on 127.0.0.1", f->o.listen);
	else
		rc = open_socket(ai, f, &f->listen_fd, err);
	freeaddrinfo(ai);
	if (rc == KVB_OK)
		note_address(f, f->listen_fd);
	return rc;
}
