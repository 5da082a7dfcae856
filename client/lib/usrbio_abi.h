/*
 * usrbio_abi.h - the binary interface of 3FS's client library, libhf3fs_api_shared.so: its structs
 * and the types of its functions, in our own words.
 *
 * The library is loaded at run time (usrbio_lib.h), so nothing of it is needed to build. Layouts
 * are those of x86-64 and of every other LP64 machine; the assertions below fail to compile
 * elsewhere. Source: 3FS src/lib/api/hf3fs_usrbio.h. Return values differ from function to
 * function; they stand beside each type, since mixing them up is the commonest error.
 */
#ifndef SKV_CLIENT_USRBIO_ABI_H
#define SKV_CLIENT_USRBIO_ABI_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* A data buffer that the FUSE daemon knows: shared memory, found there by `id`. */
struct skv_hf3fs_iov {
	uint8_t *base; /* of the mapping */
	void *handle;  /* NULL: wrapped, not made by the library */
	uint8_t id[16];
	char mount_point[256];
	size_t size;
	size_t block_size; /* an I/O must not cross a multiple of it; 0 = one piece */
	int numa;
};

/* A ring for reads or for writes. */
struct skv_hf3fs_ior {
	struct skv_hf3fs_iov iov;
	void *handle;
	char mount_point[256];
	bool for_read;
	int io_depth;
	int priority;
	int timeout;
	uint64_t flags;
};

/* A completion. */
struct skv_hf3fs_cqe {
	int32_t index;
	int32_t reserved; /* never set */
	int64_t result;   /* bytes, or a negative errno */
	const void *userdata;
};

static_assert(sizeof(struct skv_hf3fs_iov) == 312, "hf3fs_iov");
static_assert(offsetof(struct skv_hf3fs_iov, base) == 0, "hf3fs_iov.base");
static_assert(offsetof(struct skv_hf3fs_iov, handle) == 8, "hf3fs_iov.iovh");
static_assert(offsetof(struct skv_hf3fs_iov, id) == 16, "hf3fs_iov.id");
static_assert(offsetof(struct skv_hf3fs_iov, mount_point) == 32, "hf3fs_iov.mount_point");
static_assert(offsetof(struct skv_hf3fs_iov, size) == 288, "hf3fs_iov.size");
static_assert(offsetof(struct skv_hf3fs_iov, block_size) == 296, "hf3fs_iov.block_size");
static_assert(offsetof(struct skv_hf3fs_iov, numa) == 304, "hf3fs_iov.numa");
static_assert(sizeof(struct skv_hf3fs_ior) == 600, "hf3fs_ior");
static_assert(offsetof(struct skv_hf3fs_ior, iov) == 0, "hf3fs_ior.iov");
static_assert(offsetof(struct skv_hf3fs_ior, handle) == 312, "hf3fs_ior.iorh");
static_assert(offsetof(struct skv_hf3fs_ior, mount_point) == 320, "hf3fs_ior.mount_point");
static_assert(offsetof(struct skv_hf3fs_ior, for_read) == 576, "hf3fs_ior.for_read");
static_assert(offsetof(struct skv_hf3fs_ior, io_depth) == 580, "hf3fs_ior.io_depth");
static_assert(offsetof(struct skv_hf3fs_ior, priority) == 584, "hf3fs_ior.priority");
static_assert(offsetof(struct skv_hf3fs_ior, timeout) == 588, "hf3fs_ior.timeout");
static_assert(offsetof(struct skv_hf3fs_ior, flags) == 592, "hf3fs_ior.flags");
static_assert(sizeof(struct skv_hf3fs_cqe) == 24, "hf3fs_cqe");
static_assert(offsetof(struct skv_hf3fs_cqe, index) == 0, "hf3fs_cqe.index");
static_assert(offsetof(struct skv_hf3fs_cqe, reserved) == 4, "hf3fs_cqe.reserved");
static_assert(offsetof(struct skv_hf3fs_cqe, result) == 8, "hf3fs_cqe.result");
static_assert(offsetof(struct skv_hf3fs_cqe, userdata) == 16, "hf3fs_cqe.userdata");

/* X(name without "hf3fs_", return type, parameters). */
#define SKV_HF3FS_FUNCTIONS(X)                                                                    \
	/* True: an open file or directory of 3FS. One ioctl, a trip to the daemon. */            \
	X(is_hf3fs, bool, (int fd))                                                               \
	/* 0 or -EINVAL. Fills the struct; memory and symbolic link are the caller's. */          \
	X(iovwrap, int, (struct skv_hf3fs_iov * iov, void *base, const uint8_t id[16],            \
			 const char *mount_point,                                                 \
			 size_t size, size_t block_size, int numa))                               \
	/* Removes the name of the shared memory; it lives on. */                                 \
	X(iovunlink, void, (struct skv_hf3fs_iov * iov))                                          \
	/* Bytes of shared memory of a ring. */                                                   \
	X(ior_size, size_t, (int entries))                                                        \
	/* 0 or -errno. */                                                                        \
	X(iorcreate3, int, (struct skv_hf3fs_ior * ior, const char *mount_point, int entries,     \
			    bool for_read,                                                        \
			    int io_depth, int priority, int timeout, int numa))                   \
	X(iordestroy, void, (struct skv_hf3fs_ior * ior))                                         \
	/* <= 0: registered (minus a second descriptor); > 0: an errno. EBADF: no file of         \
	 * 3FS; EINVAL: registered. */                                                            \
	X(reg_fd, int, (int fd, uint64_t flags))                                                  \
	/* Asks the daemon first: does nothing for a descriptor whose                             \
	 * daemon is gone. Before close. */                                                       \
	X(dereg_fd, void, (int fd))                                                               \
	/* >= 0: the slot; -EAGAIN: ring full; -EBADF, -EACCES, -EINVAL. One                      \
	 * thread at a time on a ring. */                                                         \
	X(prep_io, int, (const struct skv_hf3fs_ior *ior, const struct skv_hf3fs_iov *iov,        \
			 bool read, void *data,                                                   \
			 int fd, size_t offset, uint64_t length, const void *userdata))           \
	/* 0 or -EINVAL. */                                                                       \
	X(submit_ios, int, (const struct skv_hf3fs_ior *ior))                                     \
	/* How many completions, possibly fewer than `min` (time is over,                         \
	 * CLOCK_REALTIME); -EINVAL. */                                                           \
	X(wait_for_ios, int, (const struct skv_hf3fs_ior *ior, struct skv_hf3fs_cqe *cqes, int n, \
			      int min,                                                            \
			      const struct timespec *until))                                      \
	/* 0 or a positive errno. Edges of whole chunks. Overruns its stack with n > 1000. */     \
	X(punchhole, int, (int fd, int n, const size_t *start, const size_t *end, size_t flags))

/* ioctl(fd, SKV_HF3FS_IOC_MAGIC, &uint32_t) says SKV_HF3FS_MAGIC on 3FS (3FS
 * src/lib/api/fuse.h). */
#define SKV_HF3FS_IOC_MAGIC 0x80046802ul
#define SKV_HF3FS_MAGIC 0x8f3f5fffu

#endif
