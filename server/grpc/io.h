/*
 * io.h - transport of a connection's bytes: plain TCP or TLS.
 *
 * Nothing else of the gRPC server touches a connection's descriptor but epoll and shutdown. TLS may
 * have to read in order to write, so each result names what to wait for.
 */
#ifndef SKV_GRPC_IO_H
#define SKV_GRPC_IO_H

#include <stddef.h>
#include <sys/types.h>

#include <skv/status.h>

enum { IO_END = 0, IO_FAILED = -1, IO_WANTS_READ = -2, IO_WANTS_WRITE = -3 };

struct grpc_io;
struct skv_tls_peer;

struct grpc_io_ops {
	/* Bytes moved, or one of the above; they never block. What a read leaves behind is in the
	 * socket, where epoll sees it. */
	ssize_t (*read)(struct grpc_io *io, void *p, size_t n);
	ssize_t (*write)(struct grpc_io *io, const void *p, size_t n);
	void (*close)(struct grpc_io *io); /* and releases it */
	/* As skv_tls_peer_of, once something was read. NULL: no certificates here. */
	int (*peer)(struct grpc_io *io, struct skv_tls_peer **known, struct skv_error *err);
};

struct grpc_io {
	const struct grpc_io_ops *ops;
	int fd; /* for epoll */
};

/* Plain TCP over an accepted socket, which must not block. NULL: out of memory,
 * the socket is still open. */
struct grpc_io *skv_grpc_io_plain(int fd);
/* The same over TLS with the process's certificates (skv/tls.h). */
struct grpc_io *skv_grpc_io_tls(int fd);

#endif
