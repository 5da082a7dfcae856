/*
 * io.h - how the bytes of a connection travel: the seam where TLS would go.
 *
 * Nothing else of the gRPC server touches a connection's descriptor but epoll and shutdown. A TLS
 * transport has the same three functions over its own session object that begins with a struct grpc_io;
 * it may have to read in order to write, so each result names what to wait for.
 */
#ifndef SKV_GRPC_IO_H
#define SKV_GRPC_IO_H

#include <stddef.h>
#include <sys/types.h>

enum { IO_END = 0, IO_FAILED = -1, IO_WANTS_READ = -2, IO_WANTS_WRITE = -3 };

struct grpc_io;

struct grpc_io_ops {
	/* Bytes moved, or one of the above; they never block. A read that gives less than n has nothing left. */
	ssize_t (*read)(struct grpc_io *io, void *p, size_t n);
	ssize_t (*write)(struct grpc_io *io, const void *p, size_t n);
	void (*close)(struct grpc_io *io); /* and releases it */
};

struct grpc_io {
	const struct grpc_io_ops *ops;
	int fd; /* for epoll */
};

/* Plain TCP over an accepted socket, which must not block. NULL: out of memory, the socket is still open. */
struct grpc_io *skv_grpc_io_plain(int fd);

#endif
