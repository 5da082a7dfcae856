/*
 * uring_ring.c - one io_uring: making it, its tables of registered files and buffers.
 *
 * Owns nothing beside the ring it is given. Who may call what when: see struct kvb_uring_ring.
 */
#include "uring.h"

#include <errno.h>
#include <string.h>

#include <kvb/mem.h>

/* Why there is no ring, so that the reader knows what to change. */
static int explain(int error, struct kvb_error *err)
{
	switch (error) {
	case EPERM:
	case EACCES:
		return kvb_fail(err, KVB_E_UNSUPPORTED, "engine",
				"io_uring_setup: not permitted (kernel.io_uring_disabled, or the "
				"container's seccomp profile)");
	case ENOSYS:
		return kvb_fail(err, KVB_E_UNSUPPORTED, "engine",
				"io_uring_setup: this kernel has none, or seccomp hides it");
	case ENOMEM:
		return kvb_fail(err, KVB_E_UNSUPPORTED, "engine",
				"io_uring_setup: no memory for a ring (RLIMIT_MEMLOCK)");
	default:
		return kvb_fail(err, KVB_E_UNSUPPORTED, "engine", "io_uring_setup: %s",
				strerror(error));
	}
}

/* Every request that the pump uses; a kernel before 5.6 lacks some. */
static int check_requests(struct io_uring *ring, struct kvb_error *err)
{
	static const int needed[] = { IORING_OP_READ,  IORING_OP_READV,  IORING_OP_READ_FIXED,
				      IORING_OP_WRITE, IORING_OP_WRITEV, IORING_OP_WRITE_FIXED };
	struct io_uring_probe *probe = io_uring_get_probe_ring(ring);
	bool all = probe != NULL;

	for (size_t i = 0; all && i < sizeof needed / sizeof needed[0]; i++)
		all = io_uring_opcode_supported(probe, needed[i]);
	io_uring_free_probe(probe);
	return all ? KVB_OK
		   : kvb_fail(err, KVB_E_UNSUPPORTED, "engine",
			      "io_uring: this kernel does not know every request that is needed");
}

static int make_slots(struct kvb_uring_ring *r)
{
	r->slots = kvb_calloc(r->depth, sizeof *r->slots);
	r->room = kvb_calloc((size_t)r->depth * KVB_URING_IOV, sizeof *r->room);
	r->free = kvb_calloc((size_t)r->depth * 3, sizeof *r->free);
	if (!r->slots || !r->room || !r->free)
		return KVB_E_NOMEM;
	r->ready = r->free + r->depth;
	r->sent = r->ready + r->depth;
	for (uint32_t i = 0; i < r->depth; i++)
		r->slots[i].room = r->room + (size_t)i * KVB_URING_IOV;
	return KVB_OK;
}

static void free_slots(struct kvb_uring_ring *r)
{
	kvb_free(r->slots);
	kvb_free(r->room);
	kvb_free(r->free);
	kvb_free(r);
}

int kvb_uring_ring_make(uint32_t depth, struct kvb_uring_ring **out, struct kvb_error *err)
{
	struct kvb_uring_ring *r = kvb_calloc(1, sizeof *r);
	int rc;

	if (!r)
		return kvb_fail(err, KVB_E_NOMEM, NULL, "out of memory");
	r->depth = depth;
	if (make_slots(r) != KVB_OK) {
		free_slots(r);
		return kvb_fail(err, KVB_E_NOMEM, NULL, "out of memory");
	}
	/* No flag that ties the ring to one thread: calls of any thread use it in turn. */
	rc = io_uring_queue_init(depth, &r->ring, 0);
	if (rc < 0) {
		free_slots(r);
		return explain(-rc, err);
	}
	rc = check_requests(&r->ring, err);
	if (rc != KVB_OK) {
		kvb_uring_ring_free(r);
		return rc;
	}
	*out = r;
	return KVB_OK;
}

void kvb_uring_ring_free(struct kvb_uring_ring *r)
{
	io_uring_queue_exit(&r->ring);
	free_slots(r);
}

int kvb_uring_ring_files(struct kvb_uring_ring *r, const int *fds, uint32_t n)
{
	int rc = io_uring_register_files(&r->ring, fds, n);

	r->fixed_files = rc == 0;
	return rc < 0 ? -rc : 0;
}

int kvb_uring_ring_set_files(struct kvb_uring_ring *r, uint32_t at, const int fds[2])
{
	int rc;

	if (!r->fixed_files)
		return 0; /* a ring without a table uses the descriptors themselves */
	rc = io_uring_register_files_update(&r->ring, at, fds, 2);
	if (rc < 0)
		return -rc;
	return rc == 2 ? 0 : EIO;
}

int kvb_uring_ring_buffers(struct kvb_uring_ring *r)
{
	int rc = io_uring_register_buffers_sparse(&r->ring, KVB_URING_REGIONS);

	r->fixed_buffers = rc == 0;
	return rc < 0 ? -rc : 0;
}

int kvb_uring_ring_set_buffer(struct kvb_uring_ring *r, uint32_t at,
			      const struct kvb_uring_region *region)
{
	const struct iovec iov = { region->base, region->length };
	const __u64 tag = 0;
	int rc;

	if (!r->fixed_buffers || (!region->base && !r->table[at].base))
		return 0;
	rc = io_uring_register_buffers_update_tag(&r->ring, at, &iov, &tag, 1);
	if (rc < 0) {
		r->table[at] = (struct kvb_uring_region){ 0 };
		return -rc;
	}
	r->table[at] = *region;
	return 0;
}
