/*
 * wire.c - the bytes of one connection of the data protocol: plain, or TLS where the node has a
 * certificate. Local ones are always plain.
 *
 * Plain bytes go from the socket into the slab and back without a copy in between; of TLS GnuTLS
 * makes one. The connection's own thread, which holds no lock while it waits.
 */
#include "memnode.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <skv/lock.h>
#include <skv/log.h>

#define TLS_HANDSHAKE 22 /* the first byte of a TLS client, RFC 8446 5.1; ours say SKV_MN_MAGIC */

bool wire_open(struct connection *c)
{
	struct skv_error err;
	uint8_t first;

	if (c->local || !skv_tls_loaded())
		return true;
	if (recv(c->fd, &first, 1, MSG_PEEK) != 1)
		return false;
	c->clear = first != TLS_HANDSHAKE;
	if (c->clear || skv_tls_accept(c->fd, &c->tls, &err) == SKV_OK)
		return true;
	skv_log(SKV_LOG_INFO, "memory", "a client's TLS handshake failed: %s", err.message);
	return false;
}

void wire_close(struct connection *c)
{
	if (c->tls)
		gnutls_deinit(c->tls);
	close(c->fd);
}

static ssize_t get(struct connection *c, void *to, size_t n)
{
	ssize_t got;

	do
		got = c->tls ? gnutls_record_recv(c->tls, to, n)
			     : recv(c->fd, to, n, MSG_WAITALL);
	while (got < 0 && (c->tls ? !gnutls_error_is_fatal((int)got) : errno == EINTR));
	return got;
}

bool wire_receive(struct connection *c, void *to, size_t n)
{
	assert(skv_thread_locks == 0);
	while (n > 0) {
		ssize_t got = get(c, to, n);

		if (got <= 0)
			return false;
		to = (char *)to + got;
		n -= (size_t)got;
	}
	return true;
}

static bool send_tls(struct connection *c, const void *data, size_t n)
{
	while (n > 0) {
		ssize_t sent = gnutls_record_send(c->tls, data, n);

		if (sent < 0 && !gnutls_error_is_fatal((int)sent))
			continue; /* the same again */
		if (sent <= 0)
			return false;
		data = (const char *)data + sent;
		n -= (size_t)sent;
	}
	return true;
}

bool wire_answer(struct connection *c, const struct skv_mn_frame *f, const void *data, size_t n,
		 int pass)
{
	uint8_t raw[SKV_MN_HEADER];
	struct iovec iov[2] = { { raw, sizeof raw }, { (void *)(uintptr_t)data, n } };
	_Alignas(struct cmsghdr) char room[CMSG_SPACE(sizeof(int))] = { 0 };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = n ? 2 : 1 };

	assert(skv_thread_locks == 0);
	skv_mn_encode(f, raw);
	if (c->tls)
		return send_tls(c, raw, sizeof raw) && send_tls(c, data, n);
	if (pass >= 0) {
		struct cmsghdr *h;

		msg.msg_control = room;
		msg.msg_controllen = sizeof room;
		h = CMSG_FIRSTHDR(&msg);
		h->cmsg_level = SOL_SOCKET;
		h->cmsg_type = SCM_RIGHTS;
		h->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(h), &pass, sizeof pass);
	}
	while (msg.msg_iovlen > 0) {
		ssize_t sent = sendmsg(c->fd, &msg, MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent <= 0)
			return false;
		msg.msg_control = NULL;
		msg.msg_controllen = 0;
		while (msg.msg_iovlen > 0 && (size_t)sent >= msg.msg_iov->iov_len) {
			sent -= (ssize_t)msg.msg_iov->iov_len;
			msg.msg_iov++;
			msg.msg_iovlen--;
		}
		if (msg.msg_iovlen > 0) {
			msg.msg_iov->iov_base = (char *)msg.msg_iov->iov_base + sent;
			msg.msg_iov->iov_len -= (size_t)sent;
		}
	}
	return true;
}
