/*
 * uring_ring.c - an io_uring: creation, and its tables of registered files and buffers.
 *
 * Owns nothing beside the ring it is given. For which thread may call each function, see struct
 * skv_uring_ring.
 */
#include "uring.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <skv/mem.h>

/* Explains why there is no ring, with a hint what to change. */
static int explain(int error, struct skv_error *err)
{
	switch (error) {
	case EPERM:
	case EACCES:
		return skv_fail(err, SKV_E_UNSUPPORTED, "engine",
				"io_uring_setup: not permitted (kernel.io_uring_disabled, or the "
				"container's seccomp profile)");
	case ENOSYS:
		return skv_fail(err, SKV_E_UNSUPPORTED, "engine",
				"io_uring_setup: missing in this kernel, or blocked by seccomp");
	case ENOMEM:
		return skv_fail(err, SKV_E_UNSUPPORTED, "engine",
				"io_uring_setup: no memory for a ring (RLIMIT_MEMLOCK)");
	default:
		return skv_fail(err, SKV_E_UNSUPPORTED, "engine", "io_uring_setup: %s",
				strerror(error));
	}
}

/* Every request that the pump uses; a kernel before 5.6 lacks some. */
static int check_requests(struct io_uring *ring, struct skv_error *err)
{
	static const int needed[] = { IORING_OP_READ,  IORING_OP_READV,  IORING_OP_READ_FIXED,
				      IORING_OP_WRITE, IORING_OP_WRITEV, IORING_OP_WRITE_FIXED };
	struct io_uring_probe *probe = io_uring_get_probe_ring(ring);
	bool all = probe != NULL;

	for (size_t i = 0; all && i < sizeof needed / sizeof needed[0]; i++)
		all = io_uring_opcode_supported(probe, needed[i]);
	io_uring_free_probe(probe);
	return all ? SKV_OK
		   : skv_fail(
			     err, SKV_E_UNSUPPORTED, "engine",
			     "io_uring: this kernel lacks an operation that is needed: use a newer "
			     "one, or engine posix");
}

static int make_slots(struct skv_uring_ring *r)
{
	r->slots = skv_calloc(r->depth, sizeof *r->slots);
	r->room = skv_calloc((size_t)r->depth * SKV_URING_IOV, sizeof *r->room);
	r->free = skv_calloc((size_t)r->depth * 3, sizeof *r->free);
	if (!r->slots || !r->room || !r->free)
		return SKV_E_NOMEM;
	r->ready = r->free + r->depth;
	r->sent = r->ready + r->depth;
	for (uint32_t i = 0; i < r->depth; i++)
		r->slots[i].room = r->room + (size_t)i * SKV_URING_IOV;
	return SKV_OK;
}

static void free_slots(struct skv_uring_ring *r)
{
	skv_free(r->slots);
	skv_free(r->room);
	skv_free(r->free);
	skv_free(r);
}

int skv_uring_ring_make(uint32_t depth, struct skv_uring_ring **out, struct skv_error *err)
{
	struct skv_uring_ring *r = skv_calloc(1, sizeof *r);
	int rc;

	if (!r)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	r->depth = depth;
	if (make_slots(r) != SKV_OK) {
		free_slots(r);
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	}
	/* No flag that ties the ring to one thread: calls of any thread use it in turn. */
	rc = io_uring_queue_init(depth, &r->ring, 0);
	if (rc < 0) {
		free_slots(r);
		return explain(-rc, err);
	}
	rc = check_requests(&r->ring, err);
	if (rc != SKV_OK) {
		skv_uring_ring_free(r);
		return rc;
	}
	*out = r;
	return SKV_OK;
}

void skv_uring_ring_free(struct skv_uring_ring *r)
{
	io_uring_queue_exit(&r->ring);
	free_slots(r);
}

int skv_uring_ring_files(struct skv_uring_ring *r, const int *fds, uint32_t n)
{
	int rc = io_uring_register_files(&r->ring, fds, n);

	r->fixed_files = rc == 0;
	return rc < 0 ? -rc : 0;
}

int skv_uring_ring_set_files(struct skv_uring_ring *r, uint32_t at, const int fds[2])
{
	int rc;

	if (!r->fixed_files)
		return 0; /* a ring without a table uses the descriptors themselves */
	rc = io_uring_register_files_update(&r->ring, at, fds, 2);
	if (rc < 0)
		return -rc;
	return rc == 2 ? 0 : EIO;
}

int skv_uring_ring_buffers(struct skv_uring_ring *r)
{
	int rc = io_uring_register_buffers_sparse(&r->ring, SKV_URING_REGIONS);

	r->fixed_buffers = rc == 0;
	return rc < 0 ? -rc : 0;
}

/* Of liburing 2.8; by kernels before 6.13 it is refused. */
#define CLONE_BUFFERS 30
#define CLONE_REPLACE 2u
struct clone_buffers {
	__u32 from_fd, flags, from, to, n, pad[3];
};

/* The entry of another ring's table once more: its pages are not pinned again. */
static bool clone_buffer(struct skv_uring_ring *r, uint32_t at, const struct skv_uring_ring *from)
{
	const struct clone_buffers c = { .from_fd = (__u32)from->ring.ring_fd,
					 .flags = CLONE_REPLACE,
					 .from = at,
					 .to = at,
					 .n = 1 };

	return syscall(__NR_io_uring_register, r->ring.ring_fd, CLONE_BUFFERS, &c, 1) == 0;
}

int skv_uring_ring_set_buffer(struct skv_uring_ring *r, uint32_t at,
			      const struct skv_uring_region *region,
			      const struct skv_uring_ring *from)
{
	const struct iovec iov = { region->base, region->length };
	const __u64 tag = 0;
	int rc;

	if (!r->fixed_buffers || (!region->base && !r->table[at].base))
		return 0;
	if (from && clone_buffer(r, at, from)) {
		r->table[at] = *region;
		return 0;
	}
	rc = io_uring_register_buffers_update_tag(&r->ring, at, &iov, &tag, 1);
	if (rc < 0) {
		r->table[at] = (struct skv_uring_region){ 0 };
		return -rc;
	}
	r->table[at] = *region;
	return 0;
}
