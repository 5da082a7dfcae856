/*
 * usrbio_lib.h - the functions of 3FS's client library as a table, loaded at run time. Those
 * that throw through C are left out.
 *
 * Tests put a table of their own in its place. Any thread.
 */
#ifndef SKV_CLIENT_USRBIO_LIB_H
#define SKV_CLIENT_USRBIO_LIB_H

#include <skv/status.h>

#include "usrbio_abi.h"

#define SKV_USRBIO_LIB "libhf3fs_api_shared.so"
#define SKV_USRBIO_LIB_ENV "HF3FS_LIB"
#define SKV_USRBIO_VIRT \
	"3fs-virt/iovs" /* below a mount point: where buffers and rings are made known */

struct skv_usrbio_lib {
#define SKV_USRBIO_MEMBER(name, type, parameters) type(*name) parameters;
	SKV_HF3FS_FUNCTIONS(SKV_USRBIO_MEMBER)
#undef SKV_USRBIO_MEMBER
};

/* Loads the library: `path`, else what the environment says in HF3FS_LIB, else SKV_USRBIO_LIB as
 * the dynamic linker finds it. It stays loaded until the process ends: it has threads of its own.
 * The hard limit of open files is lowered before, where it is beyond SKV_USRBIO_NOFILE: the library
 * makes a table with 8 bytes or more for each possible descriptor, gigabytes with the limits that
 * containers have. SKV_E_UNSUPPORTED with the reason, SKV_E_NOMEM. */
#define SKV_USRBIO_NOFILE (1u << 20)
int skv_usrbio_load(const char *path, const struct skv_usrbio_lib **out, struct skv_error *err);

/* Returns true if the daemon of this open file reports 3FS. Needs no library. */
bool skv_usrbio_is_3fs(int fd);

/* Lowers the hard limit of open files to `most`, where it is beyond: it cannot be raised again. */
void skv_usrbio_bound_files(uint64_t most);

/* The mount point of 3FS that `path` lies below (`size` bytes of room): the nearest directory with
 * SKV_USRBIO_VIRT. The library's hf3fs_extract_mount_point is never called: when the path or the
 * daemon vanishes meanwhile, it throws, which ends the process. SKV_E_UNAVAILABLE: no such path;
 * SKV_E_FOREIGN: not on 3FS. */
int skv_usrbio_mount_point(const struct skv_usrbio_lib *lib, const char *path, char *out,
			   size_t size, struct skv_error *err);

#endif
