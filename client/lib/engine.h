/*
 * engine.h - how block bytes are moved between buffers and slab files: the one interface that the
 * data path uses, with one file for each implementation: "posix", "uring" and "usrbio".
 *
 * An engine moves *runs*: a byte range of one file against a list of buffers. It
 * - checks the deadline immediately before it submits anything to the kernel, and submits nothing
 *   after it (a run that was not submitted, or not wholly, ends with KVB_E_TIMEOUT);
 * - returns from read and write only when every submitted request has completed, so that buffers and
 *   slots are quiet when it is back, or says which are not (`loose`; memory: kvb_engine_keeper);
 * - reports what it moved (`done`), never more than that.
 *
 * Callers use the guarded wrappers kvb_engine_*, never the table: they check what an engine says
 * and turn nonsense into errors. Threads: any number of threads use one engine at a time; one file
 * is read and written by several threads at a time (always at different offsets).
 */
#ifndef KVB_CLIENT_ENGINE_H
#define KVB_CLIENT_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include <kvb/clock.h>
#include <kvb/status.h>

/* Submit nothing at or after `at_ms` of `clock`. UINT64_MAX = no bound. */
struct kvb_deadline {
	const struct kvb_clock *clock;
	uint64_t at_ms;
};

static inline bool kvb_deadline_passed(const struct kvb_deadline *d)
{
	return d->at_ms != UINT64_MAX && kvb_now_ms(d->clock) >= d->at_ms;
}

/* An open slab file. Engines embed it as their first member. */
struct kvb_engine_file {
	int fd; /* for stat and the superblock; belongs to the engine */
};

/* Opens a slab file as every engine should: one component below `dirfd`, no link followed, nothing
 * made; on 3FS past the page cache (O_DIRECT, which asks for no alignment there). *fd is the caller's. */
int kvb_engine_open_fd(int dirfd, const char *path, bool write, int *fd, struct kvb_error *err);

/* In: file, offset, iov, length (sum of iov). Out: the rest. */
struct kvb_io_run {
	struct kvb_engine_file *file;
	uint64_t offset;
	struct iovec *iov; /* at most KVB_RUN_IOV; the engine may change it */
	int n_iov;
	uint64_t length;
	uint64_t done;     /* leading bytes moved; a read may end short at the end of the file */
	int status;        /* KVB_OK, also when a read is short; else why it stopped at `done` */
	uint64_t ended_ms; /* of the deadline's clock, when the last byte had arrived */
	uint32_t ios;      /* requests made; 0: one for the run */
	bool again;        /* nothing of it was carried out: open the file anew, then try once more */
	bool loose;   /* a request was given up that cannot be called back: a slot that it writes is not quiet */
	bool touched; /* the engine's own */
};

#define KVB_RUN_IOV 1024 /* IOV_MAX of Linux */

/* Who knows the callers' memory. A request that an engine gives up while it uses such memory goes on using it: the
 * engine keeps these bytes, and lets go of them once the request is back. Any thread; never under a lock of the
 * engine's. */
struct kvb_engine_keeper {
	void *ctx;
	void *(*keep)(void *ctx, void *data, size_t length); /* what let_go wants; NULL: nobody knows these bytes */
	void (*let_go)(void *ctx, void *kept, void *data, size_t length);
};

/* Engines embed it as their first member. `keeper` is the handle's, all NULL: there is none; it changes only while no
 * call is under way. */
struct kvb_engine {
	const struct kvb_engine_ops *ops;
	struct kvb_engine_keeper keeper;
};

/* What an engine is made with. */
struct kvblock_hf3fs;
struct kvb_usrbio_lib;
struct kvb_engine_options {
	uint32_t depth; /* requests in flight in one call, where the engine has such a thing */
	const struct kvblock_hf3fs *hf3fs;        /* checked; copied. NULL: defaults */
	const struct kvb_usrbio_lib *usrbio;      /* for tests, in place of 3FS's library */
};
#define KVB_ENGINE_DEPTH 64u
#define KVB_ENGINE_DEPTH_MAX 1024u

/* Required: all but map, unmap and told. New members go to the end; `size` tells what an engine was built
 * with. */
struct kvb_engine_ops {
	size_t size;
	const char *name;
	/* KVB_E_UNSUPPORTED with the reason when it cannot work in this process. */
	int (*create)(const struct kvb_engine_options *o, struct kvb_engine **out,
		      struct kvb_error *err);
	void (*destroy)(struct kvb_engine *e);
	/* Opens `path` below `dirfd`: one component, no symbolic link. */
	int (*open)(struct kvb_engine *e, int dirfd, const char *path, bool write,
		    struct kvb_engine_file **out, struct kvb_error *err);
	void (*close)(struct kvb_engine *e, struct kvb_engine_file *f);
	void (*read)(struct kvb_engine *e, struct kvb_io_run *runs, uint32_t n,
		     const struct kvb_deadline *by);
	void (*write)(struct kvb_engine *e, struct kvb_io_run *runs, uint32_t n,
		      const struct kvb_deadline *by);
	/* All completed writes of this file are durable after it. A no-op where they are anyway. */
	int (*sync)(struct kvb_engine *e, struct kvb_engine_file *f);
	/* Memory that will be moved from and to again and again: the engine may prepare it. Whether
	 * it could is told for a person's sake only; I/O works either way. NULL = no use for it. */
	int (*map)(struct kvb_engine *e, void *base, size_t length, struct kvb_error *err);
	/* Before the memory goes away. No I/O on it is under way. */
	void (*unmap)(struct kvb_engine *e, void *base);
	/* The name of what moves bytes now, and in *why (the engine's) why it is not what was asked for, or
	 * "". NULL: it is always `name`. */
	const char *(*told)(struct kvb_engine *e, const char **why);
};

extern const struct kvb_engine_ops kvb_engine_posix;
extern const struct kvb_engine_ops kvb_engine_uring;
extern const struct kvb_engine_ops kvb_engine_usrbio;

/* NULL when there is no engine of that name. */
const struct kvb_engine_ops *kvb_engine_find(const char *name);
/* Makes the engine `name`; "auto" or NULL: for each file the fastest that works here. One that cannot work
 * here is replaced by "posix"; `why` (never NULL) then says why, else it is empty. KVB_E_INVALID (no
 * such engine, hf3fs_mount_point), KVB_E_NOMEM; usrbio with a mount point: KVB_E_UNAVAILABLE, KVB_E_FOREIGN,
 * KVB_E_NO_SPACE. */
int kvb_engine_make(const char *name, const struct kvb_engine_options *o, struct kvb_engine **out,
		    struct kvb_error *why, struct kvb_error *err);

/* uring, or posix where that cannot work: what moves bytes of files that are not on 3FS. */
int kvb_engine_behind(const struct kvb_engine_options *o, struct kvb_engine **out, struct kvb_error *why,
		      struct kvb_error *err);
/* The engine "usrbio". `named`: by its name, else by "auto". */
int kvb_usrbio_create(const struct kvb_engine_options *o, bool named, struct kvb_engine **out, struct kvb_error *err);

int kvb_engine_open(struct kvb_engine *e, int dirfd, const char *path, bool write,
		    struct kvb_engine_file **out, struct kvb_error *err);
void kvb_engine_close(struct kvb_engine *e, struct kvb_engine_file *f);
void kvb_engine_read(struct kvb_engine *e, struct kvb_io_run *runs, uint32_t n,
		     const struct kvb_deadline *by);
void kvb_engine_write(struct kvb_engine *e, struct kvb_io_run *runs, uint32_t n,
		      const struct kvb_deadline *by);
int kvb_engine_sync(struct kvb_engine *e, struct kvb_engine_file *f);

/* KVB_OK also for an engine that has no use for it. */
int kvb_engine_map(struct kvb_engine *e, void *base, size_t length, struct kvb_error *err);
void kvb_engine_unmap(struct kvb_engine *e, void *base);

/* An errno of file I/O as a status: ENOSPC and EDQUOT are KVB_E_NO_SPACE, the rest KVB_E_IO. */
int kvb_engine_status(int error);
/* " (what to do)" about an errno of a mount, or "". */
const char *kvb_engine_remedy(int error);

#endif
