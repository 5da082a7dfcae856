/*
 * engine.h - how block bytes are moved between buffers and slab files: the one interface that the
 * data path uses, with one file for each implementation ("posix" now; USRBIO, io_uring later).
 *
 * An engine moves *runs*: a byte range of one file against a list of buffers. It
 * - checks the deadline immediately before it submits anything to the kernel, and submits nothing
 *   after it (a run that was not submitted, or not wholly, ends with KVB_E_TIMEOUT);
 * - returns from read and write only when every submitted request has completed, so that buffers
 * and
 *   slots are quiet when it is back;
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

/* In: file, offset, iov, length (sum of iov). Out: done, status, ended_ms. */
struct kvb_io_run {
	struct kvb_engine_file *file;
	uint64_t offset;
	struct iovec *iov; /* at most KVB_RUN_IOV; the engine may change it */
	int n_iov;
	uint64_t length;
	uint64_t done;     /* leading bytes moved; a read may end short at the end of the file */
	int status;        /* KVB_OK, also when a read is short; else why it stopped at `done` */
	uint64_t ended_ms; /* of the deadline's clock, when the last byte had arrived */
};

#define KVB_RUN_IOV 1024 /* IOV_MAX of Linux */

struct kvb_engine {
	const struct kvb_engine_ops *ops;
};

/* Required: all. New members go to the end; `size` tells what an engine was built with. */
struct kvb_engine_ops {
	size_t size;
	const char *name;
	int (*create)(struct kvb_engine **out, struct kvb_error *err);
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
};

extern const struct kvb_engine_ops kvb_engine_posix;

/* NULL when there is no engine of that name. NULL as name: the default. */
const struct kvb_engine_ops *kvb_engine_find(const char *name);

int kvb_engine_open(struct kvb_engine *e, int dirfd, const char *path, bool write,
		    struct kvb_engine_file **out, struct kvb_error *err);
void kvb_engine_close(struct kvb_engine *e, struct kvb_engine_file *f);
void kvb_engine_read(struct kvb_engine *e, struct kvb_io_run *runs, uint32_t n,
		     const struct kvb_deadline *by);
void kvb_engine_write(struct kvb_engine *e, struct kvb_io_run *runs, uint32_t n,
		      const struct kvb_deadline *by);
int kvb_engine_sync(struct kvb_engine *e, struct kvb_engine_file *f);

/* An errno of file I/O as a status: ENOSPC and EDQUOT are KVB_E_NO_SPACE, the rest KVB_E_IO. */
int kvb_engine_status(int error);

#endif
