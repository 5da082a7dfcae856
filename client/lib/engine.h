/*
 * engine.h - how block bytes are moved between buffers and slab files: the one interface that the
 * data path uses, with one file for each implementation: "posix", "uring" and "usrbio".
 *
 * An engine moves *runs*: a byte range of one file against a list of buffers. It
 * - checks the deadline immediately before it submits anything to the kernel, and submits nothing
 *   after it (a run that was not submitted, or not wholly, ends with SKV_E_TIMEOUT);
 * - returns from read and write only when every submitted request has completed, so that buffers and
 *   slots are quiet when it is back, or says which are not (`in_flight`; memory: skv_engine_retain);
 * - reports what it moved (`done`), never more than that.
 *
 * Callers use the guarded wrappers skv_engine_*, never the table: they check what an engine says
 * and turn nonsense into errors. Threads: any number of threads use one engine at a time; one file
 * is read and written by several threads at a time (always at different offsets).
 */
#ifndef SKV_CLIENT_ENGINE_H
#define SKV_CLIENT_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include <skv/clock.h>
#include <skv/status.h>

/* Submit nothing at or after `at_ms` of `clock`. UINT64_MAX = no bound. */
struct skv_deadline {
	const struct skv_clock *clock;
	uint64_t at_ms;
};

static inline bool skv_deadline_passed(const struct skv_deadline *d)
{
	return d->at_ms != UINT64_MAX && skv_now_ms(d->clock) >= d->at_ms;
}

/* An open slab file. Engines embed it as their first member. */
struct skv_engine_file {
	int fd; /* for stat and the superblock; belongs to the engine */
};

/* Opens a slab file as every engine should: one component below `dirfd`, no link followed, nothing
 * made; on 3FS past the page cache (O_DIRECT, which asks for no alignment there). *fd is the caller's. */
int skv_engine_open_fd(int dirfd, const char *path, bool write, int *fd, struct skv_error *err);

/* In: file, offset, iov, length (sum of iov). Out: the rest. */
struct skv_io_run {
	struct skv_engine_file *file;
	uint64_t offset;
	struct iovec *iov; /* at most SKV_RUN_IOV; the engine may change it */
	int n_iov;
	uint64_t length;
	uint64_t done;     /* leading bytes moved; a read may end short at the end of the file */
	int status;        /* SKV_OK, also when a read is short; else why it stopped at `done` */
	uint64_t ended_ms; /* of the deadline's clock, when the last byte had arrived */
	uint32_t ios;      /* requests made; 0: one for the run */
	bool again;        /* nothing of it was carried out: open the file anew, then try once more */
	bool in_flight;   /* a request was given up that cannot be called back: a slot that it writes is not quiet */
	bool touched; /* the engine's own */
};

#define SKV_RUN_IOV 1024 /* IOV_MAX of Linux */

/* Who knows the callers' memory. A request that an engine gives up while it uses such memory goes on using it: the
 * engine keeps these bytes, and lets go of them once the request is back. Any thread; never under a lock of the
 * engine's. */
struct skv_engine_retain {
	void *ctx;
	void *(*keep)(void *ctx, void *data, size_t length); /* what let_go wants; NULL: nobody knows these bytes */
	void (*let_go)(void *ctx, void *kept, void *data, size_t length);
};

/* Engines embed it as their first member. `retain` is the handle's, all NULL: there is none; it changes only while no
 * call is under way. */
struct skv_engine {
	const struct skv_engine_ops *ops;
	struct skv_engine_retain retain;
};

/* What an engine is made with. */
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
struct skv_engine_options {
	uint32_t depth; /* requests in flight in one call, where the engine has such a thing */
	const struct skv_hf3fs_options *hf3fs;        /* checked; copied. NULL: defaults */
	const struct skv_usrbio_lib *usrbio;      /* for tests, in place of 3FS's library */
};
#define SKV_ENGINE_DEPTH 64u
#define SKV_ENGINE_DEPTH_MAX 1024u

/* Required: all but map, unmap and told. New members go to the end; `size` tells what an engine was built
 * with. */
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
		     const struct skv_deadline *by);
	void (*write)(struct skv_engine *e, struct skv_io_run *runs, uint32_t n,
		      const struct skv_deadline *by);
	/* All completed writes of this file are durable after it. A no-op where they are anyway. */
	int (*sync)(struct skv_engine *e, struct skv_engine_file *f);
	/* Memory that will be moved from and to again and again: the engine may prepare it. Whether
	 * it could is told for a person's sake only; I/O works either way. NULL = no use for it. */
	int (*map)(struct skv_engine *e, void *base, size_t length, struct skv_error *err);
	/* Before the memory goes away. No I/O on it is under way. */
	void (*unmap)(struct skv_engine *e, void *base);
	/* The name of what moves bytes now, and in *why (the engine's) why it is not what was asked for, or
	 * "". NULL: it is always `name`. */
	const char *(*told)(struct skv_engine *e, const char **why);
};

extern const struct skv_engine_ops skv_engine_posix;
extern const struct skv_engine_ops skv_engine_uring;
extern const struct skv_engine_ops skv_engine_usrbio;

/* NULL when there is no engine of that name. */
const struct skv_engine_ops *skv_engine_find(const char *name);
/* Makes the engine `name`; "auto" or NULL: for each file the fastest that works here. One that cannot work
 * here is replaced by "posix"; `why` (never NULL) then says why, else it is empty. SKV_E_INVALID (no
 * such engine, hf3fs_mount_point), SKV_E_NOMEM; usrbio with a mount point: SKV_E_UNAVAILABLE, SKV_E_FOREIGN,
 * SKV_E_NO_SPACE. */
int skv_engine_make(const char *name, const struct skv_engine_options *o, struct skv_engine **out,
		    struct skv_error *why, struct skv_error *err);

/* uring, or posix where that cannot work: what moves bytes of files that are not on 3FS. */
int skv_engine_behind(const struct skv_engine_options *o, struct skv_engine **out, struct skv_error *why,
		      struct skv_error *err);
/* The engine "usrbio". `named`: by its name, else by "auto". */
int skv_usrbio_create(const struct skv_engine_options *o, bool named, struct skv_engine **out, struct skv_error *err);

int skv_engine_open(struct skv_engine *e, int dirfd, const char *path, bool write,
		    struct skv_engine_file **out, struct skv_error *err);
void skv_engine_close(struct skv_engine *e, struct skv_engine_file *f);
void skv_engine_read(struct skv_engine *e, struct skv_io_run *runs, uint32_t n,
		     const struct skv_deadline *by);
void skv_engine_write(struct skv_engine *e, struct skv_io_run *runs, uint32_t n,
		      const struct skv_deadline *by);
int skv_engine_sync(struct skv_engine *e, struct skv_engine_file *f);

/* SKV_OK also for an engine that has no use for it. */
int skv_engine_map(struct skv_engine *e, void *base, size_t length, struct skv_error *err);
void skv_engine_unmap(struct skv_engine *e, void *base);

/* An errno of file I/O as a status: ENOSPC and EDQUOT are SKV_E_NO_SPACE, the rest SKV_E_IO. */
int skv_engine_status(int error);
/* " (what to do)" about an errno of a mount, or "". */
const char *skv_engine_remedy(int error);

#endif
