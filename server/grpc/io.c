/*
 * io.c - plain TCP as the transport of a gRPC connection.
 *
 * Owns the socket. One thread.
 */
#include "io.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include <skv/mem.h>

static ssize_t result(ssize_t n, int again)
{
	if (n >= 0)
		return n;
	return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? again : IO_FAILED;
}

static ssize_t plain_read(struct grpc_io *io, void *p, size_t n)
{
	return result(recv(io->fd, p, n, 0), IO_WANTS_READ);
}

static ssize_t plain_write(struct grpc_io *io, const void *p, size_t n)
{
	return result(send(io->fd, p, n, MSG_NOSIGNAL), IO_WANTS_WRITE);
}

static void plain_close(struct grpc_io *io)
{
	close(io->fd);
	skv_free(io);
}

static const struct grpc_io_ops plain = { plain_read, plain_write, plain_close, NULL };

struct grpc_io *skv_grpc_io_plain(int fd)
{
	struct grpc_io *io = skv_calloc(1, sizeof *io);

	if (io)
		*io = (struct grpc_io){ &plain, fd };
	return io;
}
