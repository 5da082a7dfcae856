/* etcd_proxy.c - see etcd_proxy.h. */
#include "etcd_proxy.h"

#include <arpa/inet.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define PAIRS 32

/* A client and its connection to the server. */
struct pair {
	int client, server; /* -1: none */
	bool doomed;        /* ends with the server's next bytes */
};

static int dial(uint16_t port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (connect(fd, (struct sockaddr *)&at, sizeof at) == 0)
		return fd;
	close(fd);
	return -1;
}

static void end_pair(struct pair *x)
{
	if (x->client >= 0)
		close(x->client);
	if (x->server >= 0)
		close(x->server);
	*x = (struct pair){ -1, -1, false };
}

static void accept_pair(struct etcd_proxy *p, struct pair *all)
{
	const int client = accept(p->listener, NULL, NULL);

	for (int i = 0; client >= 0 && i < PAIRS; i++)
		if (all[i].client < 0) {
			all[i] = (struct pair){ client, dial(p->to), false };
			if (all[i].server < 0)
				end_pair(&all[i]);
			return;
		}
	close(client);
}

static bool pass_on(int to, const char *bytes, size_t n)
{
	while (n > 0) {
		const ssize_t done = send(to, bytes, n, MSG_NOSIGNAL);

		if (done <= 0)
			return false;
		bytes += done;
		n -= (size_t)done;
	}
	return true;
}

/* The rule for what a client says. False: its connection ends. */
static bool judge(struct etcd_proxy *p, struct pair *x, const char *bytes, size_t n)
{
	const int rule = p->rule;
	const char *text = p->text;

	p->asked += n;
	if ((rule != ETCD_PROXY_LOSE_ANSWER && rule != ETCD_PROXY_LOSE_REQUEST) ||
	    !memmem(bytes, n, text, strlen(text)))
		return true;
	if (--p->times == 0)
		p->rule = ETCD_PROXY_PASS;
	p->cuts++;
	x->doomed = rule == ETCD_PROXY_LOSE_ANSWER;
	return x->doomed;
}

static void serve(struct etcd_proxy *p, struct pair *x, bool from_client)
{
	static char bytes[1 << 16];
	const ssize_t n = read(from_client ? x->client : x->server, bytes, sizeof bytes);

	if (n <= 0 || (from_client ? !judge(p, x, bytes, (size_t)n) : x->doomed) ||
	    !pass_on(from_client ? x->server : x->client, bytes, (size_t)n))
		end_pair(x);
}

static void *run(void *arg)
{
	struct etcd_proxy *p = arg;
	struct pair all[PAIRS];

	memset(all, -1, sizeof all);
	for (int i = 0; i < PAIRS; i++)
		all[i].doomed = false;
	while (!p->stop) {
		struct pollfd fd[1 + 2 * PAIRS] = { { .fd = p->listener, .events = POLLIN } };

		for (int i = 0; i < PAIRS; i++) {
			fd[1 + 2 * i] = (struct pollfd){ .fd = all[i].client, .events = POLLIN };
			fd[2 + 2 * i] = (struct pollfd){ .fd = all[i].server, .events = POLLIN };
		}
		if (poll(fd, 1 + 2 * PAIRS, 20) <= 0)
			continue;
		if (fd[0].revents)
			accept_pair(p, all);
		for (int i = 0; i < PAIRS; i++) {
			const bool says = fd[1 + 2 * i].revents && all[i].client >= 0;

			if (says && p->rule == ETCD_PROXY_HOLD)
				p->held = true;
			else if (says)
				serve(p, &all[i], true);
			if (fd[2 + 2 * i].revents && all[i].server >= 0 &&
			    fd[2 + 2 * i].fd == all[i].server)
				serve(p, &all[i], false);
		}
		if (p->rule == ETCD_PROXY_HOLD && p->held)
			poll(NULL, 0, 5);
	}
	for (int i = 0; i < PAIRS; i++)
		end_pair(&all[i]);
	return NULL;
}

void etcd_proxy_start(struct etcd_proxy *p, uint16_t to)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof at;

	*p = (struct etcd_proxy){ .listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
				  .to = to };
	p->text = "";
	assert_int_equal(bind(p->listener, (struct sockaddr *)&at, sizeof at), 0);
	assert_int_equal(listen(p->listener, 16), 0);
	assert_int_equal(getsockname(p->listener, (struct sockaddr *)&at, &n), 0);
	p->port = ntohs(at.sin_port);
	assert_int_equal(pthread_create(&p->thread, NULL, run, p), 0);
}

void etcd_proxy_lose(struct etcd_proxy *p, enum etcd_proxy_rule rule, const char *text, int times)
{
	p->text = text;
	p->times = times;
	p->held = false;
	p->rule = rule;
}

void etcd_proxy_stop(struct etcd_proxy *p)
{
	p->stop = true;
	pthread_join(p->thread, NULL);
	close(p->listener);
}
