/*
 * posix.c - the engine "posix": preadv and pwritev on the calling thread, fdatasync.
 *
 * Works on every mount. Owns no state beside the open files. Since each call is synchronous,
 * nothing is in flight when read and write return. It never creates, truncates or extends a
 * file.
 */
#include "engine.h"

#include <errno.h>
#include <unistd.h>

#include <skv/mem.h>

typedef ssize_t (*vector_fn)(int fd, const struct iovec *iov, int n, off_t offset);

static int create(const struct skv_engine_options *o, struct skv_engine **out,
		  struct skv_error *err)
{
	struct skv_engine *e = skv_calloc(1, sizeof *e);

	(void)o;
	if (!e)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	e->ops = &skv_engine_posix;
	*out = e;
	return SKV_OK;
}

static void destroy(struct skv_engine *e) { skv_free(e); }

static int open_file(struct skv_engine *e, int dirfd, const char *path, bool write,
		     struct skv_engine_file **out, struct skv_error *err)
{
	struct skv_engine_file *f = skv_calloc(1, sizeof *f);
	int rc;

	(void)e;
	if (!f)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	rc = skv_engine_open_fd(dirfd, path, write, f, err);
	if (rc == SKV_OK)
		*out = f;
	else
		skv_free(f);
	return rc;
}

static void close_file(struct skv_engine *e, struct skv_engine_file *f)
{
	(void)e;
	close(f->fd);
	skv_free(f);
}

/* Drops the first `n` bytes from the vector. */
static void advance(struct iovec **iov, int *n_iov, uint64_t n)
{
	while (*n_iov > 0 && n >= (*iov)->iov_len) {
		n -= (*iov)->iov_len;
		(*iov)++;
		(*n_iov)--;
	}
	if (n > 0) {
		(*iov)->iov_base = (char *)(*iov)->iov_base + n;
		(*iov)->iov_len -= n;
	}
}

static void move(struct skv_io_run *r, vector_fn fn, const struct skv_io_call *by)
{
	struct iovec *iov = r->iov;
	int n_iov = r->n_iov;

	while (r->done < r->length) {
		ssize_t n;

		if (skv_deadline_passed(by)) {
			r->status = SKV_E_TIMEOUT;
			return;
		}
		n = fn(r->file->fd, iov, n_iov, (off_t)(r->offset + r->done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			r->status = skv_engine_status(errno);
		if (n <= 0)
			break;
		r->done += (uint64_t)n;
		advance(&iov, &n_iov, (uint64_t)n);
	}
	r->ended_ms = skv_now_ms(by->clock);
}

static void read_runs(struct skv_engine *e, struct skv_io_run *runs, uint32_t n,
		      const struct skv_io_call *by)
{
	(void)e;
	for (uint32_t i = 0; i < n; i++)
		move(&runs[i], preadv, by);
}

static void write_runs(struct skv_engine *e, struct skv_io_run *runs, uint32_t n,
		       const struct skv_io_call *by)
{
	(void)e;
	for (uint32_t i = 0; i < n; i++)
		move(&runs[i], pwritev, by);
}

static int sync_file(struct skv_engine *e, struct skv_engine_file *f)
{
	(void)e;
	while (fdatasync(f->fd) != 0)
		if (errno != EINTR)
			return skv_engine_status(errno);
	return SKV_OK;
}

const struct skv_engine_ops skv_engine_posix = {
	.size = sizeof skv_engine_posix,
	.name = "posix",
	.create = create,
	.destroy = destroy,
	.open = open_file,
	.close = close_file,
	.read = read_runs,
	.write = write_runs,
	.sync = sync_file,
};
