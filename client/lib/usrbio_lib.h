/*
 * usrbio_lib.h - the functions of 3FS's client library as a table, loaded at run time, and guards in
 * front of those that misbehave.
 *
 * Tests put a table of their own in its place. Any thread.
 */
#ifndef KVB_CLIENT_USRBIO_LIB_H
#define KVB_CLIENT_USRBIO_LIB_H

#include <kvb/status.h>

#include "usrbio_abi.h"

#define KVB_USRBIO_LIB "libhf3fs_api_shared.so"
#define KVB_USRBIO_LIB_ENV "HF3FS_LIB"
#define KVB_USRBIO_VIRT "3fs-virt/iovs" /* below a mount point: where buffers and rings are made known */

struct kvb_usrbio_lib {
#define KVB_USRBIO_MEMBER(name, type, parameters) type(*name) parameters;
	KVB_HF3FS_FUNCTIONS(KVB_USRBIO_MEMBER)
#undef KVB_USRBIO_MEMBER
};

/* Loads the library: `path`, else what the environment says in HF3FS_LIB, else KVB_USRBIO_LIB as the
 * dynamic linker finds it. It stays loaded until the process ends: it has threads of its own. The hard
 * limit of open files is lowered before, where it is beyond KVB_USRBIO_NOFILE: the library makes a table
 * with 8 bytes or more for each possible descriptor, gigabytes with the limits that containers have. KVB_E_UNSUPPORTED with the reason, KVB_E_NOMEM. */
#define KVB_USRBIO_NOFILE (1u << 20)
int kvb_usrbio_load(const char *path, const struct kvb_usrbio_lib **out, struct kvb_error *err);

/* Does the daemon of this open file say that it is 3FS's? Needs no library. */
bool kvb_usrbio_is_3fs(int fd);

/* Lowers the hard limit of open files to `most`, where it is beyond: it cannot be raised again. */
void kvb_usrbio_bound_files(uint64_t most);

/* The mount point of 3FS that `path` lies below (`size` bytes of room). KVB_E_UNAVAILABLE: no such
 * path; KVB_E_FOREIGN: not on 3FS. */
int kvb_usrbio_mount_point(const struct kvb_usrbio_lib *lib, const char *path, char *out, size_t size,
			   struct kvb_error *err);

/* Gives back the space of ranges [start, end) of an open file, as many as one likes. Every edge must be a
 * multiple of `chunk` (st_blksize of the file): else KVB_E_INVALID, and nothing is done. The last chunk
 * of a file must not be punched: it holds its length. KVB_E_IO. */
int kvb_usrbio_punch(const struct kvb_usrbio_lib *lib, int fd, size_t chunk, size_t n, const size_t *start,
		     const size_t *end, struct kvb_error *err);

#endif
