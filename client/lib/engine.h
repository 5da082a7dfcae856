/*
 * engine.h - the interface of engines, which move block bytes between buffers and slab files:
 * "posix", "uring" and "usrbio"; "memory" (node.h), which each storage of that type has of its own.
 *
 * An engine moves *runs*: a byte range of one file against a list of buffers. It
 * - checks the deadline immediately before it submits anything to the kernel, and submits nothing
 *   after it (a run that was not submitted, or not wholly, ends with SKV_E_TIMEOUT);
 * - returns from read and write only when no submitted request can touch the buffers any more, and
 *   reports the slots that are not quiet (`in_flight`);
 * - reports what it moved (`done`), never more than that.
 *
 * Callers use the guarded wrappers skv_engine_*, never the table: they check an engine's results
 * and turn invalid ones into errors. Threads: any number of threads use one engine at a time; one
 * file is read and written by several threads at a time (always at different offsets).
 */
#ifndef SKV_CLIENT_ENGINE_H
#define SKV_CLIENT_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include <skv/clock.h>
#include <skv/status.h>
#include <skv/superblock.h>

/* The arguments of a call besides its runs. */
struct skv_io_call {
	const struct skv_clock *clock;
	uint64_t at_ms; /* submit nothing at or after it; UINT64_MAX = no bound */
	/* An engine that can give up requests gives up those without an answer by then; 0 or
	 * UINT64_MAX = none. */
	uint64_t until_ms;
	/* The caller's work while bytes move, or NULL: does a part of it (one piece's checksum) on
	 * the calling thread; nothing is submitted meanwhile. False: there is none now. An engine
	 * that never waits does not call it. */
	bool (*work)(void *ctx);
	void *ctx;
};

static inline bool skv_deadline_passed(const struct skv_io_call *d)
{
	return d->at_ms != UINT64_MAX && skv_now_ms(d->clock) >= d->at_ms;
}

/* An open slab file. Engines embed it as their first member. */
struct skv_engine_file {
	int fd; /* for stat and the superblock; owned by the engine */
	bool stale; /* goes through a page cache that may be older than the file */
	struct skv_engine *engine; /* owning engine; NULL: the handle's */
};

/* Opens a slab file for any engine: one component below `dirfd`, no symbolic link followed, nothing
 * created; on network file systems with O_DIRECT, which needs no alignment there. Sets f->fd, which
 * the caller owns, and f->stale. */
int skv_engine_open_fd(int dirfd, const char *path, bool write, struct skv_engine_file *f,
		       struct skv_error *err);
/* Returns true for files on a file system whose calls may never return, because other processes
 * serve them. */
bool skv_engine_may_hang(int fd);
/* Drops this machine's cached pages of [offset, offset + length), and some around it: the next read
 * asks the file system. Not for files of an engine of their own. */
void skv_engine_drop_cache(struct skv_engine_file *f, uint64_t offset, uint64_t length);

/* In: file, offset, iov, length (sum of iov). Out: the other members. */
struct skv_io_run {
	struct skv_engine_file *file;
	uint64_t offset;
	struct iovec *iov; /* at most SKV_RUN_IOV; the engine may change it */
	int n_iov;
	uint64_t length;
	uint64_t done;     /* leading bytes moved; a read may be short at the end of the file */
	int status;        /* SKV_OK, also for a short read; else why it stopped at `done` */
	uint64_t arrived;  /* a read, for `work`: leading bytes that are in memory by now */
	uint64_t ended_ms; /* by the deadline's clock, when the last byte arrived */
	uint32_t ios;      /* requests made; 0: one for the run */
	bool again;        /* nothing of it was done: reopen the file, then retry */
	/* An abandoned request cannot be cancelled: a slot that it writes is not quiet. */
	bool in_flight;
	bool touched; /* the engine's own */
};

#define SKV_RUN_IOV 1024 /* IOV_MAX of Linux */

/* For engines whose `done` is where a run stops, its whole length at first: it stops at `at`
 * because of `status`, unless it stops before that. */
void skv_run_stop(struct skv_io_run *run, uint64_t at, int status);
/* Copies the bytes [at, at + length) of a run from a buffer to the caller's memory (`out`), or from
 * there into the buffer. */
void skv_run_copy(const struct skv_io_run *run, uint64_t at, uint8_t *buffer, uint64_t length,
		  bool out);

/* Engines embed it as their first member. */
struct skv_engine {
	const struct skv_engine_ops *ops;
};

/* The engine "usrbio": the members hf3fs_* of struct slabkv_options. */
struct skv_hf3fs_options {
	const char *lib;
	const char *mount_point;
	const char *base_path;
	uint64_t read_iov_size;
	uint64_t write_iov_size;
	uint64_t read_io_size;
	uint64_t write_io_size;
	uint32_t ior_entries;
	int32_t io_depth;
	int32_t numa_id;
	uint32_t io_thread_num;
	uint32_t read_timeout_ms;
	uint32_t write_timeout_ms;
};
struct skv_usrbio_lib;
/* The options of an engine. */
struct skv_engine_options {
	uint32_t depth; /* requests in flight per call, if the engine has such a limit */
	const struct skv_hf3fs_options *hf3fs;        /* checked; copied. NULL: defaults */
	const struct skv_usrbio_lib *usrbio;      /* for tests, in place of 3FS's library */
};
#define SKV_ENGINE_DEPTH 64u
#define SKV_ENGINE_DEPTH_MAX 1024u

/* Required members: all but map, unmap, told, superblock, still_there and ready. New members go to
 * the end; `size` tells the version that an engine was built with. */
struct skv_engine_ops {
	size_t size;
	const char *name;
	/* SKV_E_UNSUPPORTED with the reason when it cannot work in this process. */
	int (*create)(const struct skv_engine_options *o, struct skv_engine **out,
		      struct skv_error *err);
	void (*destroy)(struct skv_engine *e);
	/* Opens `path` below `dirfd`: one component, no symbolic link. */
	int (*open)(struct skv_engine *e, int dirfd, const char *path, bool write,
		    struct skv_engine_file **out, struct skv_error *err);
	void (*close)(struct skv_engine *e, struct skv_engine_file *f);
	void (*read)(struct skv_engine *e, struct skv_io_run *runs, uint32_t n,
		     const struct skv_io_call *by);
	void (*write)(struct skv_engine *e, struct skv_io_run *runs, uint32_t n,
		      const struct skv_io_call *by);
	/* All completed writes of this file are durable after it. A no-op where they are anyway. */
	int (*sync)(struct skv_engine *e, struct skv_engine_file *f);
	/* Memory that will be moved from and to again and again: the engine may prepare it. Whether
	 * it could is told for a person's sake only; I/O works either way. NULL = no use for it. */
	int (*map)(struct skv_engine *e, void *base, size_t length, struct skv_error *err);
	/* Before the memory is freed. No I/O on it may be running. */
	void (*unmap)(struct skv_engine *e, void *base);
	/* The name of the engine that moves bytes now, and in *why (owned by the engine) why it is
	 * not the requested one, or "". NULL: it is always `name`. */
	const char *(*told)(struct skv_engine *e, const char **why);
	/* Both or none, of engines whose files are not files: superblock and length as of opening;
	 * is it still the same, or must it be opened again? */
	int (*superblock)(struct skv_engine *e, struct skv_engine_file *f,
			  uint8_t raw[SKV_SUPERBLOCK_SIZE], uint64_t *length);
	bool (*still_there)(struct skv_engine *e, struct skv_engine_file *f);
	/* So many calls may move bytes at a time: what they need is made now, not within the first
	 * of them. Where it cannot be, they do with less. NULL: they need nothing. */
	void (*ready)(struct skv_engine *e, uint32_t calls);
};

extern const struct skv_engine_ops skv_engine_posix;
extern const struct skv_engine_ops skv_engine_uring;
extern const struct skv_engine_ops skv_engine_usrbio;

/* Returns NULL for an unknown name. */
const struct skv_engine_ops *skv_engine_find(const char *name);
/* Creates the engine `name`; "auto" or NULL: for each file the fastest that works here. One that
 * does not work here is replaced by "posix"; `why` (never NULL) then says why, else it is empty.
 * SKV_E_INVALID (no such engine, hf3fs_mount_point), SKV_E_NOMEM; usrbio with a mount point:
 * SKV_E_UNAVAILABLE, SKV_E_FOREIGN, SKV_E_NO_SPACE. */
int skv_engine_make(const char *name, const struct skv_engine_options *o, struct skv_engine **out,
		    struct skv_error *why, struct skv_error *err);

/* uring, or posix if it does not work: the engine for files not on 3FS. */
int skv_engine_behind(const struct skv_engine_options *o, struct skv_engine **out,
		      struct skv_error *why, struct skv_error *err);
/* The engine "usrbio". `named`: requested by name, else by "auto". */
int skv_usrbio_create(const struct skv_engine_options *o, bool named, struct skv_engine **out,
		      struct skv_error *err);

int skv_engine_open(struct skv_engine *e, int dirfd, const char *path, bool write,
		    struct skv_engine_file **out, struct skv_error *err);
void skv_engine_close(struct skv_engine *e, struct skv_engine_file *f);
void skv_engine_read(struct skv_engine *e, struct skv_io_run *runs, uint32_t n,
		     const struct skv_io_call *by);
void skv_engine_write(struct skv_engine *e, struct skv_io_run *runs, uint32_t n,
		      const struct skv_io_call *by);
int skv_engine_sync(struct skv_engine *e, struct skv_engine_file *f);

/* SKV_OK also for an engine without use for it. */
int skv_engine_map(struct skv_engine *e, void *base, size_t length, struct skv_error *err);
void skv_engine_unmap(struct skv_engine *e, void *base);
void skv_engine_ready(struct skv_engine *e, uint32_t calls);

/* Maps an errno of file I/O: ENOSPC and EDQUOT are SKV_E_NO_SPACE, others SKV_E_IO. */
int skv_engine_status(int error);
/* " (remedy)" for an errno of a mount, or "". */
const char *skv_engine_remedy(int error);

#endif
