/*
 * node.c - finds a memory node, connects to it, moves whole frames (see node.h).
 *
 * Owns the list of idle connections. No lock is held while the network is waited for.
 */
#include "node.h"
#include "rdma.h"

#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <skv/check.h>
#include <skv/http.h>
#include <skv/log.h>
#include <skv/mem.h>
#include <skv/superblock.h>

#define ABOUT_MS 3000u
#define CONNECT_MS 1000
#define WAIT_MS 5000u  /* for an answer, where no deadline is nearer */
#define LOOK_MS 100    /* between two looks at the deadline */
#define AGAIN_MS 5000u /* without RDMA, before the next try */
#define ABOUT_MAX (64u << 10)

/* ---- whole frames ---------------------------------------------------------------------------- */

/* Drops the first `n` bytes; true: some are left. */
static bool advance(struct iovec **iov, int *n_iov, size_t n)
{
	while (*n_iov > 0 && n >= (*iov)->iov_len) {
		n -= (*iov)->iov_len;
		(*iov)++;
		(*n_iov)--;
	}
	if (*n_iov > 0) {
		(*iov)->iov_base = (char *)(*iov)->iov_base + n;
		(*iov)->iov_len -= n;
	}
	return *n_iov > 0;
}

/* Nothing moves: works, or waits a little. False: too late. */
static bool bide(const struct skv_node_conn *c, short events, uint64_t end,
		 const struct skv_io_call *by, bool *late)
{
	struct pollfd p = { .fd = c->fd, .events = events };
	const struct skv_clock *clock = by ? by->clock : &skv_clock_system;

	if (by && by->work && by->work(by->ctx))
		return true;
	if (poll(&p, 1, LOOK_MS) != 0)
		return true;
	*late = skv_now_ms(clock) >= end;
	return !*late;
}

static uint64_t end_of(const struct skv_io_call *by)
{
	if (by && by->at_ms != UINT64_MAX)
		return by->at_ms;
	return skv_now_ms(by ? by->clock : &skv_clock_system) + WAIT_MS;
}

/* Bytes moved, 0: none for now, -1: the connection is of no use any more. */
static ssize_t move_some(struct skv_node_conn *c, bool out, struct iovec *iov, int n_iov)
{
	const int flags = MSG_DONTWAIT | MSG_NOSIGNAL;
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = (size_t)n_iov };
	ssize_t n;

	if (c->tls)
		return out ? skv_http_pipe_send(c->tls, iov->iov_base, iov->iov_len)
			   : skv_http_pipe_receive(c->tls, iov->iov_base, iov->iov_len);
	do
		n = out ? sendmsg(c->fd, &msg, flags) : recvmsg(c->fd, &msg, flags);
	while (n < 0 && errno == EINTR);
	if (n > 0)
		return n;
	return n < 0 && errno == EAGAIN ? 0 : -1;
}

static bool move(struct skv_node_conn *c, bool out, struct iovec *iov, int n_iov,
		 const struct skv_io_call *by, bool *late)
{
	uint64_t end = end_of(by);
	bool unused = false;

	late = late ? late : &unused;
	while (n_iov > 0) {
		ssize_t n = move_some(c, out, iov, n_iov);

		if (n > 0) {
			if (!advance(&iov, &n_iov, (size_t)n))
				break;
			if (!by || by->at_ms == UINT64_MAX)
				end = end_of(by); /* the transfer makes progress */
			continue;
		}
		if (n < 0 || !bide(c, out ? POLLOUT : POLLIN, end, by, late))
			return false;
	}
	return true;
}

bool skv_node_send(struct skv_node_conn *c, struct iovec *iov, int n_iov,
		   const struct skv_io_call *by, bool *late)
{
	return move(c, true, iov, n_iov, by, late);
}

bool skv_node_receive(struct skv_node_conn *c, struct iovec *iov, int n_iov,
		      const struct skv_io_call *by, bool *late)
{
	return move(c, false, iov, n_iov, by, late);
}

bool skv_node_ask(struct skv_node_conn *c, const struct skv_mn_frame *q, const void *payload,
		  struct skv_mn_frame *answer, const struct skv_io_call *by, bool *late)
{
	uint8_t raw[SKV_MN_HEADER];
	struct iovec out[2] = { { raw, sizeof raw },
				{ (void *)(uintptr_t)payload, payload ? q->extra : 0 } };
	struct iovec in = { raw, sizeof raw };

	skv_mn_encode(q, raw);
	return skv_node_send(c, out, payload ? 2 : 1, by, late) &&
	       skv_node_receive(c, &in, 1, by, late) && skv_mn_decode(raw, answer) &&
	       answer->op == q->op;
}

int skv_node_refused(struct skv_node_conn *c, const struct skv_mn_frame *answer,
		     struct skv_error *err)
{
	char text[SKV_MN_TEXT_MAX];
	struct iovec in = { text, answer->extra };

	if (!SKV_CHECK(answer->status != SKV_OK) || answer->extra >= sizeof text ||
	    !skv_node_receive(c, &in, 1, NULL, NULL))
		return skv_fail(err, SKV_E_NETWORK, NULL, "the memory node ended the connection");
	text[answer->extra] = '\0';
	return skv_fail(err, answer->status, NULL, "%s", text);
}

/* Returns true if `way` is the only permitted way: for tests, and for users that do not want
 * foreign memory mapped. */
static bool only(const char *way)
{
	const char *named = getenv("SLABKV_MEMORY_TRANSPORT");

	return named && strcmp(named, way) == 0;
}

/* ---- connections ----------------------------------------------------------------------------- */

static int connect_local(const struct skv_node *n)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	char name[SKV_MN_LOCAL_MAX];
	socklen_t length;
	int fd;

	skv_mn_local_name(n->name, n->epoch, name);
	memcpy(at.sun_path + 1, name, strlen(name));
	length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (const struct sockaddr *)&at, length) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static int connect_one(const struct addrinfo *a)
{
	const struct timeval wait = { .tv_sec = CONNECT_MS / 1000 };
	int one = 1, fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait); /* connect's, too */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	if (connect(fd, a->ai_addr, a->ai_addrlen) == 0)
		return fd;
	close(fd);
	return -1;
}

static int connect_tcp(const struct skv_node *n)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
	struct addrinfo *list = NULL;
	char port[8];
	int fd = -1;

	snprintf(port, sizeof port, "%u", n->port);
	if (getaddrinfo(n->host, port, &hints, &list) != 0)
		return -1;
	for (const struct addrinfo *a = list; a && fd < 0; a = a->ai_next)
		fd = connect_one(a);
	freeaddrinfo(list);
	return fd;
}

/* `uuid` gets that of the node's storage. */
static int greet(struct skv_node *n, struct skv_node_conn *c, uint8_t uuid[16],
		 struct skv_error *err)
{
	char text[SKV_MN_HELLO_MAX];
	struct skv_mn_frame q = { .op = SKV_MN_HELLO, .file = SKV_MN_VERSION,
				  .offset = n->epoch }, answer;
	struct iovec in = { uuid, 16 };
	int length = snprintf(text, sizeof text, "%s%c%s", n->name, '\0', n->token);
	int rc;

	if (length < 0 || (size_t)length >= sizeof text)
		return skv_fail(err, SKV_E_INVALID, "token", "too long for a memory node");
	q.extra = (uint32_t)length + 1;
	if (!skv_node_ask(c, &q, text, &answer, NULL, NULL))
		return skv_fail(err, SKV_E_UNAVAILABLE, NULL, "memory node %s does not answer",
				n->name);
	if (answer.status != SKV_OK) {
		rc = skv_node_refused(c, &answer, err);
		if (rc == SKV_E_FENCED || rc == SKV_E_FOREIGN)
			atomic_store(&n->dead, true);
		return rc == SKV_E_FENCED ? err->status = SKV_E_UNAVAILABLE : rc;
	}
	if (answer.extra != 16 || !skv_node_receive(c, &in, 1, NULL, NULL))
		return skv_fail(err, SKV_E_NETWORK, NULL, "not a memory node's answer");
	return SKV_OK;
}

/* Proves that the listener is the node that gave the pass. The proof is useless to another
 * listener. */
static int prove_local(const struct skv_node *n, struct skv_node_conn *c,
		       const struct skv_mn_pass *pass, struct skv_error *err)
{
	struct skv_mn_frame q = { .op = SKV_MN_LOCAL, .extra = SKV_MN_TICKET + SKV_MN_NONCE };
	uint8_t said[SKV_MN_TICKET + SKV_MN_NONCE], nonces[2 * SKV_MN_NONCE];
	uint8_t proof[SKV_MAC], right[SKV_MAC];
	struct iovec in[2] = { { nonces + SKV_MN_NONCE, SKV_MN_NONCE }, { proof, sizeof proof } };
	struct skv_mn_frame answer;

	skv_random(nonces, SKV_MN_NONCE);
	memcpy(said, pass->ticket, SKV_MN_TICKET);
	memcpy(said + SKV_MN_TICKET, nonces, SKV_MN_NONCE);
	if (!skv_node_ask(c, &q, said, &answer, NULL, NULL) || answer.status != SKV_OK ||
	    answer.extra != SKV_MN_NONCE + SKV_MAC || !skv_node_receive(c, in, 2, NULL, NULL))
		return skv_fail(err, SKV_E_FOREIGN, NULL, "not a memory node's answer");
	skv_mn_prove(pass->key, true, nonces, right);
	if (!skv_equal_secret(proof, right, sizeof right))
		return skv_fail(err, SKV_E_FOREIGN, NULL, "another process has taken its name");
	q = (struct skv_mn_frame){ .op = SKV_MN_PROVE, .extra = sizeof right };
	skv_mn_prove(pass->key, false, nonces, right);
	if (!skv_node_ask(c, &q, right, &answer, NULL, NULL))
		return skv_fail(err, SKV_E_NETWORK, NULL, "memory node %s does not answer",
				n->name);
	return answer.status == SKV_OK ? SKV_OK : skv_node_refused(c, &answer, err);
}

/* The local connection that the pass is for. SKV_E_UNSUPPORTED: the node is elsewhere. */
static int use_pass(const struct skv_node *n, const struct skv_mn_pass *pass, int *out,
		    struct skv_error *err)
{
	uint8_t here[SKV_MN_PLACE];
	struct skv_node_conn c = { 0 };
	int rc;

	if (!skv_mn_place(here) || memcmp(here, pass->place, sizeof here) != 0)
		return skv_fail(err, SKV_E_UNSUPPORTED, NULL, "it is on another host");
	c.fd = connect_local(n);
	if (c.fd < 0)
		return skv_fail(err, SKV_E_NETWORK, NULL, "it does not listen there");
	rc = prove_local(n, &c, pass, err);
	if (rc == SKV_OK)
		*out = c.fd;
	else
		close(c.fd);
	return rc;
}

static void close_socket(struct skv_node_conn *c)
{
	if (c->tls)
		skv_http_pipe_close(c->tls);
	else
		close(c->fd);
	c->tls = NULL;
}

/* Replaces the greeted TCP connection by a local one. SKV_E_UNAVAILABLE: there is none. */
static int go_local(struct skv_node *n, struct skv_node_conn *c, struct skv_error *err)
{
	const struct skv_mn_frame q = { .op = SKV_MN_LOCAL };
	struct skv_mn_pass pass;
	struct iovec in = { &pass, sizeof pass };
	struct skv_mn_frame answer;
	struct skv_error why = { 0 };
	int fd = -1, rc;

	if (!skv_node_ask(c, &q, NULL, &answer, NULL, NULL) ||
	    (answer.status == SKV_OK &&
	     (answer.extra != sizeof pass || !skv_node_receive(c, &in, 1, NULL, NULL))))
		return skv_fail(err, SKV_E_UNAVAILABLE, NULL, "memory node %s does not answer",
				n->name);
	rc = answer.status == SKV_OK ? use_pass(n, &pass, &fd, &why)
				     : skv_node_refused(c, &answer, &why);
	memset(&pass, 0, sizeof pass);
	if (rc == SKV_OK) {
		close_socket(c);
		c->fd = fd;
		return SKV_OK;
	}
	skv_log(rc == SKV_E_UNSUPPORTED ? SKV_LOG_DEBUG : SKV_LOG_WARN, "client",
		"memory node %s: its local socket is not used: %s", n->name, why.message);
	return skv_fail(err, SKV_E_UNAVAILABLE, NULL, "memory node %s has no local socket here: "
			"%.200s", n->name, why.message);
}

/* A queue pair beside the connection. SKV_E_NETWORK: the connection is of no use either. */
static int make_qp(struct skv_node *n, struct skv_node_conn *c, struct skv_error *err)
{
	const struct skv_mn_frame q = { .op = SKV_MN_RDMA };
	struct sockaddr_storage at;
	socklen_t length = sizeof at;
	struct skv_mn_frame answer;
	struct skv_qp_to to;

	if (!skv_node_ask(c, &q, NULL, &answer, NULL, NULL) ||
	    getpeername(c->fd, (struct sockaddr *)&at, &length) != 0)
		return skv_fail(err, SKV_E_NETWORK, NULL, "memory node %s does not answer",
				n->name);
	if (answer.status != SKV_OK)
		return skv_node_refused(c, &answer, err);
	to = (struct skv_qp_to){ (struct sockaddr *)&at, (uint16_t)answer.file, n->epoch,
				 answer.offset, c->fd };
	if (answer.offset == 0)
		return skv_fail(err, SKV_E_NETWORK, NULL, "not a memory node's answer");
	return skv_qp_connect(n->rdma, &to, &c->qp, err);
}

static bool wants_qp(struct skv_node *n)
{
	bool yes;

	skv_mutex_lock(&n->lock);
	yes = n->rdma && n->rdma_port && !n->local &&
	      (only("rdma") || skv_now_ms(&skv_clock_system) >= n->again_ms);
	skv_mutex_unlock(&n->lock);
	return yes;
}

/* Adds a queue pair. Without RDMA the connection stays TCP, and another try follows after some
 * seconds. */
static int upgrade(struct skv_node *n, struct skv_node_conn *c, struct skv_error *err)
{
	struct skv_error why = { 0 };
	int rc = make_qp(n, c, &why);

	skv_mutex_lock(&n->lock);
	if (rc == SKV_OK)
		snprintf(n->device, sizeof n->device, "%s", skv_qp_device(c->qp));
	else
		n->again_ms = skv_now_ms(&skv_clock_system) + AGAIN_MS;
	snprintf(n->no_rdma, sizeof n->no_rdma, "%s", rc == SKV_OK ? "" : why.message);
	skv_mutex_unlock(&n->lock);
	if (rc == SKV_OK)
		return rc;
	skv_log(SKV_LOG_WARN, "client", "memory node %s: no RDMA: %s", n->name, why.message);
	if (rc != SKV_E_NETWORK && !only("rdma"))
		return SKV_OK;
	return skv_fail(err, SKV_E_UNAVAILABLE, NULL, "memory node %s: no RDMA: %.300s", n->name,
			why.message);
}

static int connect_tls(struct skv_node *n, struct skv_node_conn *c, struct skv_error *err)
{
	const bool v6 = strchr(n->host, ':') != NULL;
	char url[sizeof n->host + 32];

	snprintf(url, sizeof url, v6 ? "https://[%s]:%u" : "https://%s:%u", n->host, n->port);
	if (skv_http_pipe_open(n->http, url, CONNECT_MS, &c->tls, err) != SKV_OK)
		return -1;
	return skv_http_pipe_fd(c->tls);
}

static int make_conn(struct skv_node *n, uint8_t uuid[16], struct skv_node_conn **out,
		     struct skv_error *err)
{
	struct skv_node_conn *c = skv_calloc(1, sizeof *c);
	struct skv_error why;
	int rc;

	if (!c)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	why.message[0] = '\0';
	c->fd = n->tls ? connect_tls(n, c, &why) : connect_tcp(n);
	if (c->fd < 0) {
		skv_free(c);
		if (n->local) /* mapped slabs need it: to be found anew */
			atomic_store(&n->dead, true);
		return skv_fail(err, SKV_E_UNAVAILABLE, NULL,
				"memory node %s cannot be reached at %s, port %u: is it running, "
				"and may this host connect there?%s%.250s",
				n->name, n->host, n->port, why.message[0] ? " " : "",
				why.message);
	}
	rc = greet(n, c, uuid, err);
	if (rc == SKV_OK && n->local) {
		rc = go_local(n, c, err);
		if (rc != SKV_OK)
			atomic_store(&n->dead, true);
	}
	if (rc == SKV_OK && wants_qp(n))
		rc = upgrade(n, c, err);
	if (rc == SKV_OK)
		*out = c;
	else
		skv_node_give(n, c, false);
	return rc;
}

bool skv_node_conn_lives(const struct skv_node_conn *c)
{
	char byte;
	ssize_t n = recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	return n < 0 && (errno == EAGAIN || errno == EINTR);
}

int skv_node_take(struct skv_node *n, struct skv_node_conn **out, struct skv_error *err)
{
	uint8_t uuid[16];

	for (;;) {
		struct skv_node_conn *c;

		skv_mutex_lock(&n->lock);
		c = n->idle;
		if (c)
			n->idle = c->next;
		skv_mutex_unlock(&n->lock);
		if (!c)
			return make_conn(n, uuid, out, err);
		if (skv_node_conn_lives(c) && (c->qp || !wants_qp(n))) {
			*out = c;
			return SKV_OK;
		}
		skv_node_give(n, c, false);
	}
}

void skv_node_give(struct skv_node *n, struct skv_node_conn *c, bool good)
{
	if (!good) {
		skv_qp_destroy(c->qp); /* before the buffers are the caller's again */
		close_socket(c);
		skv_free(c);
		return;
	}
	skv_mutex_lock(&n->lock);
	c->next = n->idle;
	n->idle = c;
	skv_mutex_unlock(&n->lock);
}

/* ---- life ------------------------------------------------------------------------------------ */

/* "http://host:port/NAME" in parts; the manager has checked its form. */
static int parse_url(struct skv_node *n, const char *url, char base[SKV_MAX_URL + 1],
		     struct skv_error *err)
{
	const char *host = strstr(url, "://"), *name = strrchr(url, '/');
	const char *end;

	if (!host || !name || name < host + 3 || strlen(url) > SKV_MAX_URL ||
	    strlen(name + 1) >= sizeof n->name)
		return skv_fail(err, SKV_E_INVALID, "fs_master", "'%.100s' names no memory node",
				url);
	n->tls = strncmp(url, "https://", 8) == 0;
	host += 3;
	snprintf(base, SKV_MAX_URL + 1, "%.*s/", (int)(name - url), url);
	snprintf(n->name, sizeof n->name, "%s", name + 1);
	end = *host == '[' ? strchr(host, ']') : host + strcspn(host, ":/");
	host += *host == '[';
	snprintf(n->host, sizeof n->host, "%.*s", end ? (int)(end - host) : 0, host);
	return SKV_OK;
}

/* Asks the node for its identity. */
static int learn(struct skv_node *n, struct skv_http *http, const char *base, struct skv_error *err)
{
	const struct skv_http_request q = { .method = "GET", .url = base, .form = SKV_HTTP_JSON,
					    .timeout_ms = ABOUT_MS, .connect_ms = CONNECT_MS,
					    .answer_max = ABOUT_MAX };
	struct skv_memory_node about;
	struct skv_buf text = { 0 };
	struct skv_error why = { 0 };
	struct skv_arena a;
	long status = 0;
	int rc;

	skv_arena_init(&a);
	rc = skv_http_do(http, &q, &text, &status, &why);
	if (rc == SKV_OK && status == 200)
		rc = skv_mn_read_about(&a, (const char *)text.data, text.len, &about, &why);
	if (rc != SKV_OK || status != 200) {
		rc = skv_fail(err, rc == SKV_E_NOMEM ? rc : SKV_E_UNAVAILABLE, NULL,
			      "no memory node answers at %.120s: %s", base,
			      rc != SKV_OK ? why.message : "it is something else");
	} else if (strcmp(about.name, n->name) != 0) {
		rc = skv_fail(err, SKV_E_FOREIGN, NULL,
			      "the memory node at %.120s is '%s', not '%s': check the storage's "
			      "URL",
			      base, about.name, n->name);
	} else {
		n->epoch = about.epoch;
		n->port = (uint16_t)about.port;
		n->rdma_port = only("tcp") || only("local") ? 0 : (uint16_t)about.rdma_port;
	}
	skv_buf_destroy(&text);
	skv_arena_destroy(&a);
	return rc;
}

/* The first connection proves that the node is the storage's, and finds out which way is open. */
static int prove(struct skv_node *n, const uint8_t uuid[16], struct skv_error *err)
{
	struct skv_node_conn *c = NULL;
	uint8_t theirs[16];
	int rc;

	n->local = !only("tcp") && !only("rdma");
	if (only("rdma") && !n->rdma_port)
		return skv_fail(err, SKV_E_UNSUPPORTED, NULL,
				"memory node %s offers no RDMA: start it with --memory-rdma auto "
				"on a host with an RDMA device that has a link, or clients "
				"without SLABKV_MEMORY_TRANSPORT=rdma",
				n->name);
	rc = make_conn(n, theirs, &c, err);
	if (rc == SKV_E_UNAVAILABLE && n->local && !only("local")) {
		n->local = false;
		atomic_store(&n->dead, false);
		rc = make_conn(n, theirs, &c, err);
	}
	if (rc != SKV_OK)
		return rc;
	if (memcmp(theirs, uuid, 16) != 0)
		rc = skv_fail(err, SKV_E_UNAVAILABLE, NULL,
			      "memory node %s has nothing of this storage (any more)", n->name);
	skv_node_give(n, c, rc == SKV_OK);
	return rc;
}

int skv_node_open(const struct skv_node_at *at, const uint8_t uuid[16], struct skv_node **out,
		  struct skv_error *err)
{
	struct skv_node *n = skv_calloc(1, sizeof *n);
	char base[SKV_MAX_URL + 1];
	int rc;

	if (!n)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	n->engine.ops = &skv_engine_memory;
	n->refs = 1;
	n->rdma = at->rdma;
	n->http = at->http;
	skv_mutex_init(&n->lock);
	n->token = skv_strdup(at->token ? at->token : "");
	rc = n->token ? parse_url(n, at->url, base, err)
		      : skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	if (rc == SKV_OK)
		rc = learn(n, at->http, base, err);
	if (rc == SKV_OK)
		rc = prove(n, uuid, err);
	if (rc == SKV_OK)
		*out = n;
	else
		skv_node_release(n);
	return rc;
}

void skv_node_keep(struct skv_node *n)
{
	skv_mutex_lock(&n->lock);
	SKV_CHECK(n->refs > 0);
	n->refs++;
	skv_mutex_unlock(&n->lock);
}

void skv_node_release(struct skv_node *n)
{
	bool last;

	skv_mutex_lock(&n->lock);
	last = SKV_CHECK(n->refs > 0) && --n->refs == 0;
	skv_mutex_unlock(&n->lock);
	if (!last)
		return;
	while (n->idle) {
		struct skv_node_conn *c = n->idle;

		n->idle = c->next;
		skv_node_give(n, c, false);
	}
	if (n->token)
		memset(n->token, 0, strlen(n->token));
	skv_free(n->token);
	skv_mutex_destroy(&n->lock);
	skv_free(n);
}

void skv_node_describe(struct skv_node *n, char out[SKV_NODE_TEXT])
{
	skv_mutex_lock(&n->lock);
	if (n->local)
		snprintf(out, SKV_NODE_TEXT, "memory node %s on this host: its slabs are mapped",
			 n->name);
	else if (n->rdma_port && !n->no_rdma[0])
		snprintf(out, SKV_NODE_TEXT, "memory node %s: RDMA to %s over %s%s", n->name,
			 n->host, n->device, n->tls ? ", which TLS does not protect" : "");
	else
		snprintf(out, SKV_NODE_TEXT, "memory node %s: %s to %s, port %u%s%s", n->name,
			 n->tls ? "TLS" : "TCP", n->host, n->port,
			 n->no_rdma[0] ? "; no RDMA: " : "", n->no_rdma);
	skv_mutex_unlock(&n->lock);
}
