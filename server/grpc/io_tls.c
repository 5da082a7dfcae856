/*
 * io_tls.c - TLS as the transport of a gRPC connection.
 *
 * The handshake continues inside read and write. Owns session and socket. One thread.
 *
 * GnuTLS keeps a record that was not read whole, which epoll does not report: so a record is only
 * read when all of it fits.
 */
#include "io.h"

#include <assert.h>
#include <sys/socket.h>
#include <unistd.h>

#include <skv/mem.h>
#include <skv/tls.h>

#define RECORD_MAX (16u * 1024) /* bytes of plain text in a record, RFC 8446 5.1 */

struct tls_io {
	struct grpc_io io;
	gnutls_session_t session;
	bool ready;   /* the handshake is over */
	bool pending; /* a record that GnuTLS has taken is not wholly sent yet */
};

/* Returns the events to wait for, or IO_FAILED. */
static ssize_t stopped(const struct tls_io *t, int rc)
{
	if (rc != GNUTLS_E_AGAIN && rc != GNUTLS_E_INTERRUPTED)
		return IO_FAILED;
	return gnutls_record_get_direction(t->session) ? IO_WANTS_WRITE : IO_WANTS_READ;
}

/* 1: it is over. */
static ssize_t shake_hands(struct tls_io *t)
{
	int rc;

	if (t->ready)
		return 1;
	do
		rc = gnutls_handshake(t->session);
	while (rc < 0 && rc != GNUTLS_E_AGAIN && rc != GNUTLS_E_INTERRUPTED &&
	       !gnutls_error_is_fatal(rc));
	if (rc < 0) {
		if (gnutls_error_is_fatal(rc))
			gnutls_alert_send_appropriate(t->session, rc);
		return stopped(t, rc);
	}
	t->ready = true;
	return 1;
}

static ssize_t tls_read(struct grpc_io *io, void *p, size_t n)
{
	struct tls_io *t = (struct tls_io *)io;
	ssize_t rc = shake_hands(t);
	size_t have = 0;

	assert(n >= RECORD_MAX);
	if (rc != 1)
		return rc;
	while (n - have >= RECORD_MAX) {
		rc = gnutls_record_recv(t->session, (char *)p + have, n - have);
		if (rc <= 0)
			break;
		have += (size_t)rc;
		assert(gnutls_record_check_pending(t->session) == 0);
	}
	if (have > 0)
		return (ssize_t)have; /* an end or failure shows again */
	return rc == 0 ? IO_END : stopped(t, (int)rc);
}

static ssize_t tls_write(struct grpc_io *io, const void *p, size_t n)
{
	struct tls_io *t = (struct tls_io *)io;
	ssize_t rc = shake_hands(t);

	if (rc != 1)
		return rc;
	/* Of a pending record GnuTLS has its own copy, and knows the length that it was given. */
	rc = t->pending ? gnutls_record_send(t->session, NULL, 0)
			: gnutls_record_send(t->session, p, n < RECORD_MAX ? n : RECORD_MAX);
	t->pending = rc == GNUTLS_E_AGAIN || rc == GNUTLS_E_INTERRUPTED;
	assert(rc < 0 || (size_t)rc <= n);
	return rc >= 0 ? rc : stopped(t, (int)rc);
}

static void tls_close(struct grpc_io *io)
{
	struct tls_io *t = (struct tls_io *)io;

	if (t->ready && !t->pending)
		gnutls_bye(t->session, GNUTLS_SHUT_WR); /* if the socket takes it */
	gnutls_deinit(t->session);
	close(io->fd);
	skv_free(t);
}

static int tls_peer(struct grpc_io *io, struct skv_tls_peer **known, struct skv_error *err)
{
	const struct tls_io *t = (struct tls_io *)io;

	assert(t->ready);
	return skv_tls_peer_of(t->session, known, err);
}

static const struct grpc_io_ops tls = { tls_read, tls_write, tls_close, tls_peer };

struct grpc_io *skv_grpc_io_tls(int fd)
{
	struct tls_io *t = skv_calloc(1, sizeof *t);
	struct skv_error ignored;

	if (!t)
		return NULL;
	t->io = (struct grpc_io){ &tls, fd };
	if (skv_tls_session(fd, "h2", &t->session, &ignored) == SKV_OK)
		return &t->io;
	skv_free(t);
	return NULL;
}
