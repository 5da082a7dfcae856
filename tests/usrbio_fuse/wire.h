/*
 * wire.h - the shared memory protocol between users of 3FS's USRBIO and its FUSE daemon, as
 * structs: rings and the arguments of ioctls. Written down from the layout of x86-64 builds of 3FS
 * (src/fuse/IoRing.h, src/lib/api/fuse.h) and checked against the numbers at compile time. Named
 * stand-ins for tests use it.
 *
 * A ring of `n` usable entries is a shared memory file of wire_ring_bytes(n): four markers, then
 * arrays of n + 1 (one stays empty, to tell full from empty), then a semaphore that the daemon
 * posts after each job. The client owns sqe_head and cqe_tail, the daemon sqe_tail and cqe_head;
 * all markers are read and written atomically.
 */
#ifndef SKV_TEST_HF3FS_WIRE_H
#define SKV_TEST_HF3FS_WIRE_H

#include <semaphore.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/ioctl.h>

struct wire_args {
	uint8_t buf_id[16];
	uint64_t buf_off;
	uint64_t inode; /* st_ino */
	uint64_t off;
	uint64_t len;
	uint64_t userdata;
};

struct wire_sqe {
	int32_t index; /* into the array of wire_args */
	uint64_t userdata;
};

struct wire_cqe {
	int32_t index;
	int32_t reserved; /* never set */
	int64_t result;   /* bytes, or a negative errno */
	uint64_t userdata;
};

struct wire_markers {
	int32_t sqe_head, sqe_tail, cqe_head, cqe_tail;
};

/* Where the parts of a ring lie in its memory. `slots` counts the empty one. */
struct wire_ring {
	int32_t slots;
	struct wire_markers *m;
	struct wire_args *args;
	struct wire_cqe *cqes;
	struct wire_sqe *sqes;
	sem_t *done;
};

#define WIRE_RING_SLACK 4096u
#define WIRE_PER_SLOT (sizeof(struct wire_args) + sizeof(struct wire_cqe) + sizeof(struct wire_sqe))

static inline size_t wire_ring_bytes(int entries)
{
	return sizeof(struct wire_markers) + sizeof(sem_t) + WIRE_PER_SLOT * ((size_t)entries + 1) +
	       WIRE_RING_SLACK;
}

/* Usable entries of a ring of so many bytes; <= 0: too small for one. */
static inline int wire_ring_entries(size_t bytes)
{
	size_t fixed = sizeof(struct wire_markers) + sizeof(sem_t) + WIRE_RING_SLACK;

	return bytes < fixed ? 0 : (int)((bytes - fixed) / WIRE_PER_SLOT) - 1;
}

static inline struct wire_ring wire_ring_at(void *base, int entries)
{
	struct wire_ring r = { .slots = entries + 1, .m = base };

	r.args = (struct wire_args *)(r.m + 1);
	r.cqes = (struct wire_cqe *)(r.args + r.slots);
	r.sqes = (struct wire_sqe *)(r.cqes + r.slots);
	r.done = (sem_t *)(r.sqes + r.slots);
	return r;
}

static inline int32_t wire_load(const int32_t *marker)
{
	return __atomic_load_n(marker, __ATOMIC_SEQ_CST);
}

static inline void wire_store(int32_t *marker, int32_t v)
{
	__atomic_store_n(marker, v, __ATOMIC_SEQ_CST);
}

#define WIRE_SHM "/dev/shm/"
#define WIRE_IOVS "3fs-virt/iovs"
#define WIRE_MAGIC 0x8f3f5fffu
#define WIRE_PUNCH_MAX 1000

struct wire_mount_name {
	char name[32];
};

struct wire_hardlink {
	uint64_t parent;
	char name[256];
};

struct wire_punch {
	int32_t n;
	uint64_t flags;
	uint64_t start[WIRE_PUNCH_MAX], end[WIRE_PUNCH_MAX];
};

struct wire_move {
	uint64_t from_parent;
	char from_name[256];
	uint64_t to_parent;
	char to_name[256];
	uint8_t to_trash;
};

struct wire_remove {
	uint64_t parent;
	char name[256];
	uint8_t recursive;
};

#define WIRE_IOC_MOUNT_NAME _IOR('h', 0, struct wire_mount_name)
#define WIRE_IOC_PATH_OFFSET _IOR('h', 1, uint32_t)
#define WIRE_IOC_MAGIC _IOR('h', 2, uint32_t)
#define WIRE_IOC_VERSION _IOR('h', 3, uint32_t)
#define WIRE_IOC_RECURSIVE_RM _IOR('h', 10, uint32_t)
#define WIRE_IOC_FSYNC _IOR('h', 11, uint32_t)
#define WIRE_IOC_HARDLINK _IOW('h', 12, struct wire_hardlink)
#define WIRE_IOC_PUNCH _IOW('h', 13, struct wire_punch)
#define WIRE_IOC_MOVE _IOW('h', 14, struct wire_move)
#define WIRE_IOC_REMOVE _IOW('h', 15, struct wire_remove)

#define WIRE_AT(s, f, o) _Static_assert(offsetof(struct s, f) == (o), #s "." #f)
#define WIRE_SIZE(s, n) _Static_assert(sizeof(s) == (n), #s)
WIRE_SIZE(sem_t, 32);
WIRE_SIZE(struct wire_args, 56);
WIRE_AT(wire_args, buf_id, 0);
WIRE_AT(wire_args, buf_off, 16);
WIRE_AT(wire_args, inode, 24);
WIRE_AT(wire_args, off, 32);
WIRE_AT(wire_args, len, 40);
WIRE_AT(wire_args, userdata, 48);
WIRE_SIZE(struct wire_sqe, 16);
WIRE_AT(wire_sqe, index, 0);
WIRE_AT(wire_sqe, userdata, 8);
WIRE_SIZE(struct wire_cqe, 24);
WIRE_AT(wire_cqe, index, 0);
WIRE_AT(wire_cqe, reserved, 4);
WIRE_AT(wire_cqe, result, 8);
WIRE_AT(wire_cqe, userdata, 16);
WIRE_SIZE(struct wire_markers, 16);
WIRE_AT(wire_markers, sqe_head, 0);
WIRE_AT(wire_markers, sqe_tail, 4);
WIRE_AT(wire_markers, cqe_head, 8);
WIRE_AT(wire_markers, cqe_tail, 12);
WIRE_SIZE(struct wire_mount_name, 32);
WIRE_SIZE(struct wire_hardlink, 264);
WIRE_AT(wire_hardlink, name, 8);
WIRE_SIZE(struct wire_punch, 16016);
WIRE_AT(wire_punch, flags, 8);
WIRE_AT(wire_punch, start, 16);
WIRE_AT(wire_punch, end, 8016);
WIRE_SIZE(struct wire_move, 536);
WIRE_AT(wire_move, to_parent, 264);
WIRE_AT(wire_move, to_name, 272);
WIRE_AT(wire_move, to_trash, 528);
WIRE_SIZE(struct wire_remove, 272);
WIRE_AT(wire_remove, name, 8);
WIRE_AT(wire_remove, recursive, 264);
_Static_assert(WIRE_IOC_MOUNT_NAME == 0x80206800u, "GET_MOUNT_NAME");
_Static_assert(WIRE_IOC_PATH_OFFSET == 0x80046801u, "GET_PATH_OFFSET");
_Static_assert(WIRE_IOC_MAGIC == 0x80046802u, "GET_MAGIC_NUM");
_Static_assert(WIRE_IOC_VERSION == 0x80046803u, "GET_IOCTL_VERSION");
_Static_assert(WIRE_IOC_RECURSIVE_RM == 0x8004680au, "RECURSIVE_RM");
_Static_assert(WIRE_IOC_FSYNC == 0x8004680bu, "FSYNC");
_Static_assert(WIRE_IOC_HARDLINK == 0x4108680cu, "HARDLINK");
_Static_assert(WIRE_IOC_PUNCH == 0x7e90680du, "PUNCH_HOLE");
_Static_assert(WIRE_IOC_MOVE == 0x4218680eu, "MOVE");
_Static_assert(WIRE_IOC_REMOVE == 0x4110680fu, "REMOVE");

#endif
