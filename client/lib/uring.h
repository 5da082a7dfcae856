/*
 * uring.h - shared by the files of the engine "uring": rings, slots, registered files and memory.
 *
 * uring.c is the engine (files, memory, the choice of a ring), uring_ring.c one ring and its
 * tables, uring_pump.c what happens between the first submission and the last completion of a call.
 */
#ifndef SKV_CLIENT_URING_H
#define SKV_CLIENT_URING_H

#include <liburing.h>
#include <stdatomic.h>

#include <skv/lock.h>

#include "engine.h"

#define SKV_URING_IOV 256u      /* buffers of one request */
#define SKV_URING_READ (1u << 20) /* bytes per request: summed one while others arrive */
/* Each write to a place that was never written costs the file system a change of its extents: fewer
 * and larger ones. */
#define SKV_URING_WRITE (4u << 20)
#define SKV_URING_RINGS 16u     /* concurrent calls that move bytes; more wait for a ring */
#define SKV_URING_FILES 1024u   /* files in the tables; others work too, unregistered */
#define SKV_URING_REGIONS 64u   /* registered memory, in parts of at most SKV_URING_PART */
#define SKV_URING_PART (1ull << 30) /* the kernel's limit for one registered buffer */
#define SKV_URING_NONE UINT32_MAX

struct skv_uring_file {
	struct skv_engine_file base; /* buffered */
	int direct;                  /* a second descriptor with O_DIRECT, or -1 */
	uint32_t align;              /* of offsets and lengths for `direct`; at least a page */
	uint32_t memory_align;       /* of buffers for `direct` */
	atomic_bool refused;         /* the file system refused `direct` after all */
	uint32_t index; /* fds at 2 * index and 2 * index + 1 of the tables, or NONE */
};

/* Registered memory. Its index is its position in the rings' buffer tables. */
struct skv_uring_region {
	char *base; /* NULL = free */
	size_t length;
	void *owner; /* `base` as passed to map: a large one has several parts */
};

/* A request: part of a run, and what is left of it. */
struct skv_uring_slot {
	uint32_t run;
	uint32_t again;    /* number of retries that the kernel requested */
	uint64_t at;       /* offset of the rest in the run */
	uint64_t length;   /* bytes of the rest */
	struct iovec *iov; /* of the rest, inside `room` */
	uint32_t n_iov;
	bool direct;
	bool cut;           /* not all of it has moved, and nobody gave it up */
	struct iovec *room; /* [SKV_URING_IOV] */
};

/* A ring belongs to one call at a time; its tables are changed under the engine's lock, even while
 * a call uses it (the kernel allows that). */
struct skv_uring_ring {
	struct io_uring ring;
	struct skv_uring_ring *next_idle; /* engine lock */
	struct skv_uring_ring *next;      /* engine lock */
	bool broken;                      /* not usable for another call */
	bool fixed_files;
	bool fixed_buffers;
	uint32_t depth;
	struct skv_uring_slot *slots; /* [depth] */
	struct iovec *room;           /* [depth * SKV_URING_IOV] */
	uint32_t *free, *ready, *sent; /* [depth] numbers of slots */
	/* This ring's buffer table (engine lock), and a copy from the start of the running call,
	 * which ignores memory added or removed since. */
	struct skv_uring_region table[SKV_URING_REGIONS];
	struct skv_uring_region view[SKV_URING_REGIONS];
	uint32_t n_view;
};

struct skv_uring {
	struct skv_engine base;
	uint32_t depth;
	uint32_t max_files;
	int max_fd; /* descriptors above this get no second one with O_DIRECT */
	struct skv_mutex lock;
	struct skv_cond returned; /* a ring is idle, or may be created */
	struct skv_uring_ring *idle;
	struct skv_uring_ring *all;
	uint32_t n_rings; /* rings in `all` and rings being created */
	int fds[2 * SKV_URING_FILES]; /* the table of files of every ring; -1 = free */
	struct skv_uring_region regions[SKV_URING_REGIONS];
	bool told; /* logged: memory cannot be registered */
};

/* ---- uring_ring.c ---------------------------------------------------------------------------- */

/* Creates a ring without tables. SKV_E_UNSUPPORTED with the reason; SKV_E_NOMEM. */
int skv_uring_ring_make(uint32_t depth, struct skv_uring_ring **out, struct skv_error *err);
void skv_uring_ring_free(struct skv_uring_ring *r);
/* The table of files: all of it once, then two at a time. An errno, or 0. */
int skv_uring_ring_files(struct skv_uring_ring *r, const int *fds, uint32_t n);
int skv_uring_ring_set_files(struct skv_uring_ring *r, uint32_t at, const int fds[2]);
/* The table of buffers: made empty, then one at a time (base NULL = none). `from`, or NULL, is a
 * ring that has it: where the kernel can, pages are pinned once for both. An errno, or 0. */
int skv_uring_ring_buffers(struct skv_uring_ring *r);
int skv_uring_ring_set_buffer(struct skv_uring_ring *r, uint32_t at,
			      const struct skv_uring_region *region,
			      const struct skv_uring_ring *from);

/* ---- uring_pump.c ---------------------------------------------------------------------------- */

/* Moves all runs; returns when nothing is in flight. May leave r->broken. */
void skv_uring_pump(struct skv_uring_ring *r, bool write, struct skv_io_run *runs, uint32_t n,
		    const struct skv_io_call *by);

#endif
