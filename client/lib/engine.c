/*
 * engine.c - the table of engines and the guarded wrappers around their calls.
 *
 * Owns nothing. Any thread. The wrappers are where a result that cannot be true (more bytes than
 * asked for, a write that ends short without a reason) becomes an error instead of a wrong "done".
 */
#include "engine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <skv/check.h>
#include <skv/log.h>

#include "usrbio_lib.h"

#define CACHE_UNIT (2u << 20) /* no page of the page cache is larger */

static const struct skv_engine_ops *const engines[] = { &skv_engine_posix, &skv_engine_uring,
						      &skv_engine_usrbio };

const struct skv_engine_ops *skv_engine_find(const char *name)
{
	for (size_t i = 0; i < sizeof engines / sizeof engines[0]; i++)
		if (strcmp(engines[i]->name, name) == 0)
			return engines[i];
	return NULL;
}

static int make(const struct skv_engine_ops *ops, bool any, const struct skv_engine_options *o,
		struct skv_engine **out, struct skv_error *why, struct skv_error *err)
{
	int rc = ops->create(o, out, why);

	if (rc == SKV_OK || rc != SKV_E_UNSUPPORTED) {
		if (rc != SKV_OK && err)
			*err = *why;
		skv_error_clear(why);
		return rc;
	}
	/* A caller that named the engine gets a warning; others learn it from slabkv_engine. */
	skv_log(any ? SKV_LOG_DEBUG : SKV_LOG_WARN, "client", "engine %s: %s; using posix",
		ops->name, why->message);
	return skv_engine_posix.create(o, out, err);
}

int skv_engine_behind(const struct skv_engine_options *o, struct skv_engine **out,
		      struct skv_error *why, struct skv_error *err)
{
	skv_error_clear(why);
	return make(&skv_engine_uring, true, o, out, why, err);
}

int skv_engine_make(const char *name, const struct skv_engine_options *o, struct skv_engine **out,
		    struct skv_error *why, struct skv_error *err)
{
	const struct skv_engine_ops *ops;

	skv_error_clear(why);
	if (!name || strcmp(name, "auto") == 0)
		return skv_usrbio_create(o, false, out, err);
	ops = skv_engine_find(name);
	if (!ops)
		return skv_fail(err, SKV_E_INVALID, "engine",
				"there is no engine of that name: auto, posix, uring, usrbio");
	return make(ops, false, o, out, why, err);
}

const char *skv_engine_remedy(int error)
{
	if (error == ENOTCONN)
		return " (its FUSE daemon has died: unmount it and mount it again)";
	if (error == ESTALE)
		return " (the mount is stale: mount it again)";
	return error == EROFS ? " (it is mounted read-only here)" : "";
}

/* Network file systems. Each machine caches their files on its own, so that pages may be older than
 * the file, too. */
bool skv_engine_may_hang(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) != 0)
		return false;
	switch ((unsigned long)fs.f_type) {
	case NFS_SUPER_MAGIC:
	case FUSE_SUPER_MAGIC: /* 3FS, too */
	case SMB2_SUPER_MAGIC:
	case CIFS_SUPER_MAGIC:
	case V9FS_MAGIC:
		return true;
	default:
		return false;
	}
}

/* Opens the file with O_DIRECT where its cache may be stale: reads would return old bytes, a write
 * of a part of a page may put the page's old bytes back over a neighbour's slot, and on 3FS the
 * kernel takes a hole for the end of the file. Network file systems need no alignment for that; a
 * file that does, as the probe shows, stays buffered, and *stale says so. */
static int open_one(int dirfd, const char *path, int flags, bool *stale)
{
	int fd = openat(dirfd, path, flags), direct;
	struct stat st;
	char odd[3];

	*stale = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && skv_engine_may_hang(fd);
	if (!*stale)
		return fd;
	direct = openat(dirfd, path, flags | O_DIRECT);
	if (direct >= 0 && (skv_usrbio_is_3fs(direct) || pread(direct, odd + 1, 1, 1) >= 0)) {
		*stale = false;
		close(fd);
		return direct;
	}
	if (direct >= 0)
		close(direct);
	return fd;
}

int skv_engine_open_fd(int dirfd, const char *path, bool write, struct skv_engine_file *f,
		       struct skv_error *err)
{
	const int flags = (write ? O_RDWR : O_RDONLY) | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
	int error;

	f->fd = open_one(dirfd, path, flags, &f->stale);
	if (f->fd >= 0) {
		/* O_NONBLOCK was only for the open (a pipe must not block us): io_uring would
		 * answer EAGAIN instead of waiting for the disk. Callers refuse pipes. */
		(void)fcntl(f->fd, F_SETFL, fcntl(f->fd, F_GETFL) & ~O_NONBLOCK);
		return SKV_OK;
	}
	error = errno;
	if (error == ELOOP)
		return skv_fail(err, SKV_E_FOREIGN, NULL, "slab file %s is a symbolic link", path);
	if (error == ENOENT || error == ENOTDIR)
		return skv_fail(err, SKV_E_UNAVAILABLE, NULL, "slab file %s is not there", path);
	return skv_fail(err, SKV_E_IO, NULL, "slab file %s: %s%s", path, strerror(error),
			skv_engine_remedy(error));
}

void skv_engine_drop_cache(struct skv_engine_file *f, uint64_t offset, uint64_t length)
{
	const uint64_t from = offset / CACHE_UNIT * CACHE_UNIT;
	const uint64_t to = (offset + length + CACHE_UNIT - 1) / CACHE_UNIT * CACHE_UNIT;

	SKV_CHECK(f->fd >= 0 && !f->engine && length > 0);
	(void)fdatasync(f->fd); /* a dirty page, a neighbour's, would stay */
	(void)posix_fadvise(f->fd, (off_t)from, (off_t)(to - from), POSIX_FADV_DONTNEED);
}

int skv_engine_status(int error)
{
	return error == ENOSPC || error == EDQUOT ? SKV_E_NO_SPACE : SKV_E_IO;
}

int skv_engine_open(struct skv_engine *e, int dirfd, const char *path, bool write,
		    struct skv_engine_file **out, struct skv_error *err)
{
	if (!SKV_CHECK(path[0] && !strchr(path, '/')))
		return skv_fail(err, SKV_E_INTERNAL, NULL, "not the name of a slab file");
	return e->ops->open(e, dirfd, path, write, out, err);
}

void skv_engine_close(struct skv_engine *e, struct skv_engine_file *f)
{
	SKV_CHECK(!f || f->fd >= 0 || f->engine);
	if (f)
		(f->engine ? f->engine : e)->ops->close(f->engine ? f->engine : e, f);
}

/* Returns false for runs that an engine must not see. */
static bool prepare(struct skv_io_run *runs, uint32_t n)
{
	bool sound = true;

	for (uint32_t i = 0; i < n; i++) {
		sound &= SKV_CHECK(runs[i].n_iov > 0 && runs[i].n_iov <= SKV_RUN_IOV);
		runs[i].done = 0;
		runs[i].status = SKV_OK;
		runs[i].ended_ms = UINT64_MAX;
		runs[i].ios = 0;
		runs[i].again = runs[i].in_flight = runs[i].touched = false;
	}
	for (uint32_t i = 0; i < n && !sound; i++)
		runs[i].status = SKV_E_INTERNAL;
	return sound;
}

static void distrust(struct skv_io_run *runs, uint32_t n, bool short_ok)
{
	for (uint32_t i = 0; i < n; i++) {
		struct skv_io_run *r = &runs[i];

		if (r->done > r->length || r->status > 0) {
			r->done = 0;
			r->status = SKV_E_INTERNAL;
		} else if (r->status == SKV_OK && r->done < r->length && !short_ok) {
			r->status = SKV_E_IO;
		}
	}
}

static struct skv_engine *engine_of(const struct skv_io_run *r, struct skv_engine *e)
{
	return r->file && r->file->engine ? r->file->engine : e;
}

/* Neighbouring runs of one engine, the handle's or a file's own, in one call of it. */
static void each_engine(struct skv_engine *e, struct skv_io_run *runs, uint32_t n, bool write,
			const struct skv_io_call *by)
{
	for (uint32_t from = 0, to; from < n; from = to) {
		struct skv_engine *who = engine_of(&runs[from], e);

		for (to = from + 1; to < n && engine_of(&runs[to], e) == who;)
			to++;
		(write ? who->ops->write : who->ops->read)(who, runs + from, to - from, by);
	}
}

void skv_engine_read(struct skv_engine *e, struct skv_io_run *runs, uint32_t n,
		     const struct skv_io_call *by)
{
	if (prepare(runs, n))
		each_engine(e, runs, n, false, by);
	distrust(runs, n, true);
}

void skv_engine_write(struct skv_engine *e, struct skv_io_run *runs, uint32_t n,
		      const struct skv_io_call *by)
{
	if (prepare(runs, n))
		each_engine(e, runs, n, true, by);
	distrust(runs, n, false);
}

int skv_engine_sync(struct skv_engine *e, struct skv_engine_file *f)
{
	if (!SKV_CHECK(f && (f->fd >= 0 || f->engine)))
		return SKV_E_INTERNAL;
	e = f->engine ? f->engine : e;
	return e->ops->sync(e, f);
}

int skv_engine_map(struct skv_engine *e, void *base, size_t length, struct skv_error *err)
{
	return e->ops->map ? e->ops->map(e, base, length, err) : SKV_OK;
}

void skv_engine_ready(struct skv_engine *e, uint32_t calls)
{
	if (e->ops->ready)
		e->ops->ready(e, calls);
}

void skv_engine_unmap(struct skv_engine *e, void *base)
{
	if (e->ops->unmap)
		e->ops->unmap(e, base);
}

void skv_run_stop(struct skv_io_run *run, uint64_t at, int status)
{
	if (at < run->done) {
		run->done = at;
		run->status = status;
	}
}

void skv_run_copy(const struct skv_io_run *run, uint64_t at, uint8_t *buffer, uint64_t length,
		  bool out)
{
	for (int i = 0; i < run->n_iov && length > 0; i++) {
		uint64_t some = run->iov[i].iov_len;
		uint8_t *user = run->iov[i].iov_base;

		if (at >= some) {
			at -= some;
			continue;
		}
		some = some - at < length ? some - at : length;
		if (out)
			memcpy(user + at, buffer, some);
		else
			memcpy(buffer, user + at, some);
		buffer += some;
		length -= some;
		at = 0;
	}
}
