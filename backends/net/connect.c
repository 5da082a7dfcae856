/*
 * connect.c - parses addresses of servers and connects to them.
 *
 * Stateless; any thread.
 */
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <skv/clock.h>
#include <skv/net.h>

static bool parse_port(const char *text, size_t n, uint16_t *out)
{
	uint32_t v = 0;

	for (size_t i = 0; i < n; i++) {
		if (!isdigit((unsigned char)text[i]))
			return false;
		v = v * 10 + (uint32_t)(text[i] - '0');
		if (v > UINT16_MAX)
			return false;
	}
	*out = (uint16_t)v;
	return v > 0;
}

bool skv_net_node_parse(const char *text, size_t n, uint16_t default_port, struct skv_net_node *out)
{
	const bool v6 = n > 0 && *text == '[';
	const char *host = text + v6, *end = text + n;
	const char *stop = memchr(host, v6 ? ']' : ':', n - v6);
	const char *after = !stop ? (v6 ? NULL : end) : stop + v6;
	const size_t host_n = (size_t)((stop ? stop : end) - host);

	if (!after || host_n == 0 || host_n > SKV_NET_HOST_MAX)
		return false;
	out->port = default_port;
	if (after < end &&
	    (*after != ':' || !parse_port(after + 1, (size_t)(end - after - 1), &out->port)))
		return false;
	memcpy(out->host, host, host_n);
	out->host[host_n] = '\0';
	return true;
}

/* 0, or the errno of a connect that does not complete before `end_ms`. */
static int wait_connected(int fd, uint64_t end_ms)
{
	struct pollfd p = { fd, POLLOUT, 0 };
	int rc, e = 0;
	socklen_t n = sizeof e;

	do {
		const uint64_t now = skv_now_us() / 1000;

		rc = poll(&p, 1, now < end_ms ? (int)(end_ms - now) : 0);
	} while (rc < 0 && errno == EINTR);
	if (rc == 0)
		return ETIMEDOUT;
	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &n) == 0 ? e : errno;
}

/* The socket, or -1 with errno. */
static int connect_one(const struct addrinfo *a, uint64_t end_ms)
{
	const int one = 1;
	int fd = socket(a->ai_family, a->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int e;

	if (fd < 0)
		return -1;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	e = connect(fd, a->ai_addr, a->ai_addrlen) == 0 ? 0 : errno;
	if (e == EINPROGRESS)
		e = wait_connected(fd, end_ms);
	if (e == 0)
		return fd;
	close(fd);
	errno = e;
	return -1;
}

int skv_net_connect(const struct skv_net_node *at, uint32_t ms, struct skv_error *err)
{
	const struct addrinfo hint = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG };
	struct addrinfo *all = NULL;
	uint64_t end_ms;
	char port[8];
	int fd = -1, rc;

	assert(at->port != 0);
	snprintf(port, sizeof port, "%u", at->port);
	rc = getaddrinfo(at->host, port, &hint, &all);
	if (rc != 0) {
		skv_fail(err, SKV_E_STORE_IO, "store", "cannot connect to %.120s:%u: %.100s",
			 at->host, at->port, gai_strerror(rc));
		return -1;
	}
	end_ms = skv_now_us() / 1000 + ms;
	for (const struct addrinfo *a = all; a && fd < 0; a = a->ai_next)
		fd = connect_one(a, end_ms);
	if (fd < 0)
		skv_fail(err, SKV_E_STORE_IO, "store", "cannot connect to %.120s:%u: %.100s",
			 at->host, at->port, strerror(errno));
	freeaddrinfo(all);
	return fd;
}
