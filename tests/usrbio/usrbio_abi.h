/*
 * usrbio_abi.h - the C interface of libhf3fs_api_shared.so (3FS's USRBIO): for the stand-in of it,
 * and for tests that load the one or the other.
 *
 * Written from the vendor's headers as facts, independently of the client's own declarations, so
 * that a mistake in either shows: layouts of x86-64, asserted below, and the functions with their
 * returns, which differ from one to the next.
 */
#ifndef SKV_TESTS_USRBIO_ABI_H
#define SKV_TESTS_USRBIO_ABI_H

#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define HF3FS_MAGIC 0x8f3f5fffu

/* Flags of hf3fs_iorcreate4. */
#define HF3FS_ALLOW_UNCOMMITTED 1u
#define HF3FS_FORBID_HOLES \
	2u /* a hole with data behind it in the same read is -ENODATA, not zeros */

#define HF3FS_PUNCH_MAX 1000 /* ranges of one call; the vendor's library does not check */

/* Data memory: a file in /dev/shm that the daemon has mapped, too. */
struct hf3fs_iov {
	uint8_t *base;
	void *iovh;
	char id[16];
	char mount_point[256];
	size_t size;
	size_t block_size;
	int numa;
};

/* A ring: reads only, or writes only. */
struct hf3fs_ior {
	struct hf3fs_iov iov;
	void *iorh;
	char mount_point[256];
	bool for_read;
	int io_depth;
	int priority;
	int timeout;
	uint64_t flags;
};

/* A completion: bytes, or a negative errno. */
struct hf3fs_cqe {
	int32_t index;
	int32_t reserved;
	int64_t result;
	const void *userdata;
};

/* The contents of a ring's memory. */
struct ring_args {
	uint8_t buf_id[16];
	uint64_t buf_off;
	uint64_t file_iid;
	uint64_t file_off;
	uint64_t io_len;
	const void *userdata;
};

struct ring_sqe {
	int32_t index;
	const void *userdata;
};

struct ring_cqe {
	int32_t index;
	int32_t reserved;
	int64_t result;
	const void *userdata;
};

#define LIES_AT(type, field, offset, bytes)                          \
	_Static_assert(offsetof(struct type, field) == (offset) &&   \
		       sizeof(((struct type *)0)->field) == (bytes), \
		       #type "." #field " lies elsewhere in the vendor's library")
#define HAS_SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), #type " has another size")

HAS_SIZE(struct hf3fs_iov, 312);
LIES_AT(hf3fs_iov, base, 0, 8);
LIES_AT(hf3fs_iov, iovh, 8, 8);
LIES_AT(hf3fs_iov, id, 16, 16);
LIES_AT(hf3fs_iov, mount_point, 32, 256);
LIES_AT(hf3fs_iov, size, 288, 8);
LIES_AT(hf3fs_iov, block_size, 296, 8);
LIES_AT(hf3fs_iov, numa, 304, 4);
HAS_SIZE(struct hf3fs_ior, 600);
LIES_AT(hf3fs_ior, iov, 0, 312);
LIES_AT(hf3fs_ior, iorh, 312, 8);
LIES_AT(hf3fs_ior, mount_point, 320, 256);
LIES_AT(hf3fs_ior, for_read, 576, 1);
LIES_AT(hf3fs_ior, io_depth, 580, 4);
LIES_AT(hf3fs_ior, priority, 584, 4);
LIES_AT(hf3fs_ior, timeout, 588, 4);
LIES_AT(hf3fs_ior, flags, 592, 8);
HAS_SIZE(struct hf3fs_cqe, 24);
LIES_AT(hf3fs_cqe, index, 0, 4);
LIES_AT(hf3fs_cqe, reserved, 4, 4);
LIES_AT(hf3fs_cqe, result, 8, 8);
LIES_AT(hf3fs_cqe, userdata, 16, 8);
HAS_SIZE(struct ring_args, 56);
LIES_AT(ring_args, buf_id, 0, 16);
LIES_AT(ring_args, buf_off, 16, 8);
LIES_AT(ring_args, file_iid, 24, 8);
LIES_AT(ring_args, file_off, 32, 8);
LIES_AT(ring_args, io_len, 40, 8);
LIES_AT(ring_args, userdata, 48, 8);
HAS_SIZE(struct ring_sqe, 16);
LIES_AT(ring_sqe, index, 0, 4);
LIES_AT(ring_sqe, userdata, 8, 8);
HAS_SIZE(struct ring_cqe, 24);
LIES_AT(ring_cqe, index, 0, 4);
LIES_AT(ring_cqe, reserved, 4, 4);
LIES_AT(ring_cqe, result, 8, 8);
LIES_AT(ring_cqe, userdata, 16, 8);
HAS_SIZE(sem_t, 32); /* glibc's; it lies in a ring, shared with the daemon */

/* Memory of a ring of n entries: sqe head, sqe tail, cqe head, cqe tail (int32 each), args[n + 1],
 * cqe[n + 1], sqe[n + 1], the semaphore of completions, and a page to spare. */
#define RING_ARGS_AT 16u
#define RING_CQE_AT(n) (RING_ARGS_AT + 56u * ((size_t)(n) + 1))
#define RING_SQE_AT(n) (RING_ARGS_AT + 80u * ((size_t)(n) + 1))
#define RING_SEM_AT(n) (RING_ARGS_AT + 96u * ((size_t)(n) + 1))
#define RING_BYTES(n) (RING_SEM_AT(n) + 32u + 4096u)

/* A row for each function: name, return, parameters. */
#define USRBIO_FUNCTIONS(F)                                                                        \
	F(is_hf3fs, bool, (int fd))                                                                \
	F(extract_mount_point, int, (char *mount_point, int size, const char *path))               \
	F(iovcreate, int, (struct hf3fs_iov * iov, const char *mount_point, size_t size,           \
			   size_t block_size, int numa))                                           \
	F(iovopen, int,                                                                            \
	  (struct hf3fs_iov * iov, const uint8_t id[16], const char *mount_point, size_t size,     \
	    size_t block_size,                                                                     \
	   int numa))                                                                              \
	F(iovunlink, void, (struct hf3fs_iov * iov))                                               \
	F(iovdestroy, void, (struct hf3fs_iov * iov))                                              \
	F(iovwrap, int,                                                                            \
	  (struct hf3fs_iov * iov, void *base, const uint8_t id[16], const char *mount_point,      \
	    size_t size,                                                                           \
	   size_t block_size, int numa))                                                           \
	F(ior_size, size_t, (int entries))                                                         \
	F(iorcreate, int,                                                                          \
	  (struct hf3fs_ior * ior, const char *mount_point, int entries, bool for_read,            \
	    int io_depth, int numa))                                                               \
	F(iorcreate2, int,                                                                         \
	  (struct hf3fs_ior * ior, const char *mount_point, int entries, bool for_read,            \
	    int io_depth, int priority,                                                            \
	   int numa))                                                                              \
	F(iorcreate3, int,                                                                         \
	  (struct hf3fs_ior * ior, const char *mount_point, int entries, bool for_read,            \
	    int io_depth, int priority,                                                            \
	   int timeout, int numa))                                                                 \
	F(iorcreate4, int,                                                                         \
	  (struct hf3fs_ior * ior, const char *mount_point, int entries, bool for_read,            \
	    int io_depth, int timeout,                                                             \
	   int numa, uint64_t flags))                                                              \
	F(iordestroy, void, (struct hf3fs_ior * ior))                                              \
	F(reg_fd, int, (int fd, uint64_t flags))                                                   \
	F(dereg_fd, void, (int fd))                                                                \
	F(io_entries, int, (const struct hf3fs_ior *ior))                                          \
	F(prep_io, int,                                                                            \
	  (const struct hf3fs_ior *ior, const struct hf3fs_iov *iov, bool read, void *ptr, int fd, \
	    size_t off,                                                                            \
	   uint64_t len, const void *userdata))                                                    \
	F(submit_ios, int, (const struct hf3fs_ior *ior))                                          \
	F(wait_for_ios, int,                                                                       \
	  (const struct hf3fs_ior *ior, struct hf3fs_cqe *cqes, int cqec, int min_results,         \
	   const struct timespec *abs_timeout))                                                    \
	F(hardlink, int, (const char *target, const char *link_name))                              \
	F(punchhole, int, (int fd, int n, const size_t *start, const size_t *end, size_t flags))

#define USRBIO_DECLARE(name, type, params) \
	__attribute__((visibility("default"))) type hf3fs_##name params;
USRBIO_FUNCTIONS(USRBIO_DECLARE)
#undef USRBIO_DECLARE

#endif
