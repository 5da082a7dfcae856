/*
 * uring.c - the engine "uring": block bytes through io_uring, past the page cache where buffers and
 * places are aligned.
 *
 * Owns the open files, the rings and the tables that all rings share (registered descriptors and
 * memory). A call takes a ring for itself, so any number of threads work side by side; more than
 * SKV_URING_RINGS wait for one another. Registration happens under the lock: it is rare (a file is
 * opened, a pool is attached, a ring is made), and a table must not change half.
 *
 * Lock: skv_uring.lock. It protects the tables, the lists of rings and their marked fields; it is
 * never held while bytes are moved.
 */
#include "uring.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <skv/check.h>
#include <skv/log.h>
#include <skv/mem.h>

static struct skv_uring *uring_of(struct skv_engine *e) { return (struct skv_uring *)e; }

/* ---- rings ----------------------------------------------------------------------------------- */

/* Once for an engine: everything works without registration, only slower. */
static void tell_locked(struct skv_uring *u, const char *what, int error) SKV_REQUIRES(u->lock)
{
	if (!u->told)
		skv_log(SKV_LOG_WARN, "client", "engine uring: %s cannot be registered: %s%s", what,
			strerror(error), error == ENOMEM ? " (RLIMIT_MEMLOCK)" : "");
	u->told = true;
}

/* Registers an entry of a ring's table of memory, sharing the pinned memory of another ring if
 * there is one. */
static int set_buffer_locked(struct skv_uring *u, struct skv_uring_ring *r, uint32_t at)
	SKV_REQUIRES(u->lock)
{
	const struct skv_uring_region *region = &u->regions[at];
	const struct skv_uring_ring *from = region->base ? u->all : NULL;

	SKV_CHECK(skv_mutex_held(&u->lock) && at < SKV_URING_REGIONS);
	while (from && (from == r || from->table[at].base != region->base ||
			from->table[at].length != region->length))
		from = from->next;
	return skv_uring_ring_set_buffer(r, at, region, from);
}

/* Gives a new ring the tables of the others and makes it known. */
static void adopt_locked(struct skv_uring *u, struct skv_uring_ring *r) SKV_REQUIRES(u->lock)
{
	int error = skv_uring_ring_files(r, u->fds, 2 * u->max_files);

	SKV_CHECK(skv_mutex_held(&u->lock) && u->n_rings > 0);
	if (error)
		tell_locked(u, "files", error);
	if (skv_uring_ring_buffers(r) == 0) {
		for (uint32_t i = 0; i < SKV_URING_REGIONS; i++) {
			error = u->regions[i].base ? set_buffer_locked(u, r, i) : 0;
			if (error)
				tell_locked(u, "memory", error);
		}
	}
	r->next = u->all;
	u->all = r;
}

/* A ring that was counted is none: each waiter looks anew, for it may have been
 * the last one to wait for. */
static void lost_locked(struct skv_uring *u) SKV_REQUIRES(u->lock)
{
	SKV_CHECK(skv_mutex_held(&u->lock));
	if (SKV_CHECK(u->n_rings > 0))
		u->n_rings--;
	skv_cond_broadcast(&u->returned);
}

static int add_ring(struct skv_uring *u, struct skv_uring_ring **out, struct skv_error *err)
{
	int rc = skv_uring_ring_make(u->depth, out, err);

	skv_mutex_lock(&u->lock);
	if (rc == SKV_OK)
		adopt_locked(u, *out);
	else
		lost_locked(u);
	skv_mutex_unlock(&u->lock);
	return rc;
}

/* A ring for one call; NULL when there is none and none can be made. */
static struct skv_uring_ring *take(struct skv_uring *u)
{
	struct skv_uring_ring *r = NULL;
	bool make = false, full = false;

	for (;;) {
		skv_mutex_lock(&u->lock);
		while (!u->idle && u->n_rings > 0 && (full || u->n_rings == SKV_URING_RINGS))
			skv_cond_wait(&u->returned, &u->lock);
		r = u->idle;
		make = !r && !full;
		SKV_CHECK(u->n_rings <= SKV_URING_RINGS);
		if (r)
			u->idle = r->next_idle;
		else if (make)
			u->n_rings++;
		skv_mutex_unlock(&u->lock);
		if (!make || add_ring(u, &r, NULL) == SKV_OK)
			break;
		full = true; /* descriptors or memory are short: share the rings that there are */
	}
	if (!r)
		return NULL;
	skv_mutex_lock(&u->lock);
	r->n_view = 0;
	for (uint32_t i = 0; i < SKV_URING_REGIONS; i++) {
		r->view[i] = r->table[i];
		if (r->table[i].base)
			r->n_view = i + 1;
	}
	skv_mutex_unlock(&u->lock);
	return r;
}

static void give(struct skv_uring *u, struct skv_uring_ring *r)
{
	bool broken = r->broken;

	skv_mutex_lock(&u->lock);
	SKV_CHECK(r != u->idle);
	if (broken) {
		struct skv_uring_ring **at = &u->all;

		while (*at && *at != r)
			at = &(*at)->next;
		if (SKV_CHECK(*at == r))
			*at = r->next;
		lost_locked(u);
	} else {
		r->next_idle = u->idle;
		u->idle = r;
		skv_cond_signal(&u->returned);
	}
	skv_mutex_unlock(&u->lock);
	if (broken)
		skv_uring_ring_free(r);
}

/* A ring takes its time: memory that is registered is pinned for each anew. */
static void ready(struct skv_engine *e, uint32_t calls)
{
	struct skv_uring *u = uring_of(e);

	for (bool more = true; more;) {
		struct skv_uring_ring *r;

		skv_mutex_lock(&u->lock);
		more = u->n_rings < calls && u->n_rings < SKV_URING_RINGS;
		u->n_rings += more;
		skv_mutex_unlock(&u->lock);
		more = more && add_ring(u, &r, NULL) == SKV_OK;
		if (more)
			give(u, r);
	}
}

/* ---- the engine ------------------------------------------------------------------------------ */

/* Derived from the bound on open files: the kernel refuses a larger table, and second descriptors
 * must not use up those that the first ones need. */
static void set_bounds(struct skv_uring *u)
{
	struct rlimit l = { 0, 0 };

	u->max_files = SKV_URING_FILES;
	u->max_fd = INT_MAX;
	if (getrlimit(RLIMIT_NOFILE, &l) != 0)
		return;
	if (l.rlim_cur / 2 < u->max_files)
		u->max_files = (uint32_t)(l.rlim_cur / 2);
	if (l.rlim_cur / 2 < INT_MAX)
		u->max_fd = (int)(l.rlim_cur / 2);
}

static void destroy(struct skv_engine *e)
{
	struct skv_uring *u = uring_of(e);

	while (u->all) {
		struct skv_uring_ring *r = u->all;

		u->all = r->next;
		skv_uring_ring_free(r);
	}
	skv_cond_destroy(&u->returned);
	skv_mutex_destroy(&u->lock);
	skv_free(u);
}

static int create(const struct skv_engine_options *o, struct skv_engine **out,
		  struct skv_error *err)
{
	struct skv_uring *u = skv_calloc(1, sizeof *u);
	struct skv_uring_ring *first;
	int rc;

	if (!u)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	u->base.ops = &skv_engine_uring;
	u->depth = o && o->depth ? o->depth : SKV_ENGINE_DEPTH;
	if (u->depth > SKV_ENGINE_DEPTH_MAX)
		u->depth = SKV_ENGINE_DEPTH_MAX;
	set_bounds(u);
	for (uint32_t i = 0; i < 2 * SKV_URING_FILES; i++)
		u->fds[i] = -1;
	skv_mutex_init(&u->lock);
	skv_cond_init(&u->returned);
	u->n_rings = 1;
	rc = add_ring(u, &first, err); /* shows whether it works here at all */
	if (rc != SKV_OK) {
		destroy(&u->base);
		return rc;
	}
	give(u, first);
	*out = &u->base;
	return SKV_OK;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* The alignment that O_DIRECT needs, if the kernel reports it; else a page. */
static void read_alignment(struct skv_uring_file *f)
{
	long page = sysconf(_SC_PAGESIZE);

	f->align = page > 4096 ? (uint32_t)page : 4096;
	f->memory_align = f->align;
#ifdef STATX_DIOALIGN
	struct statx sx;

	if (statx(f->direct, "", AT_EMPTY_PATH, STATX_DIOALIGN, &sx) != 0 ||
	    !(sx.stx_mask & STATX_DIOALIGN))
		return;
	if (sx.stx_dio_offset_align == 0 || sx.stx_dio_mem_align == 0) {
		close(f->direct);
		f->direct = -1;
		return;
	}
	/* Never below a page: direct and buffered requests must not share one. */
	if (sx.stx_dio_offset_align > f->align)
		f->align = sx.stx_dio_offset_align;
	f->memory_align = sx.stx_dio_mem_align;
#endif
}

/* The same file once more, with O_DIRECT. Without it everything is buffered. */
static void open_direct(struct skv_uring_file *f, int dirfd, const char *path, bool write)
{
	struct stat a, b;

	f->direct = openat(dirfd, path,
			   (write ? O_RDWR : O_RDONLY) | O_NOFOLLOW | O_CLOEXEC | O_DIRECT);
	if (f->direct < 0)
		return;
	/* The name may have got another file between the two opens. */
	if (fstat(f->base.fd, &a) == 0 && fstat(f->direct, &b) == 0 && a.st_dev == b.st_dev &&
	    a.st_ino == b.st_ino) {
		read_alignment(f);
		return;
	}
	close(f->direct);
	f->direct = -1;
}

/* Puts two descriptors into the table of every ring; all or none. */
static bool set_everywhere_locked(struct skv_uring *u, uint32_t index, int fd, int direct)
	SKV_REQUIRES(u->lock)
{
	static const int none[2] = { -1, -1 };
	const int fds[2] = { fd, direct };
	bool all = true;

	SKV_CHECK(skv_mutex_held(&u->lock));
	for (struct skv_uring_ring *r = u->all; r && all; r = r->next) {
		int error = skv_uring_ring_set_files(r, 2 * index, fds);

		if (error)
			tell_locked(u, "a file", error);
		all = error == 0;
	}
	for (struct skv_uring_ring *r = u->all; r && !all; r = r->next)
		(void)skv_uring_ring_set_files(r, 2 * index, none);
	u->fds[2 * index] = all ? fd : -1;
	u->fds[2 * index + 1] = all ? direct : -1;
	return all;
}

static void register_file(struct skv_uring *u, struct skv_uring_file *f)
{
	skv_mutex_lock(&u->lock);
	for (uint32_t i = 0; i < u->max_files; i++) {
		if (u->fds[2 * i] >= 0)
			continue;
		if (set_everywhere_locked(u, i, f->base.fd, f->direct))
			f->index = i;
		break;
	}
	skv_mutex_unlock(&u->lock);
}

static int open_file(struct skv_engine *e, int dirfd, const char *path, bool write,
		     struct skv_engine_file **out, struct skv_error *err)
{
	struct skv_uring_file *f = skv_calloc(1, sizeof *f);
	struct stat st;
	int rc;

	if (!f)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	f->index = SKV_URING_NONE;
	f->direct = -1;
	rc = skv_engine_open_fd(dirfd, path, write, &f->base, err);
	if (rc != SKV_OK) {
		skv_free(f);
		return rc;
	}
	if (fstat(f->base.fd, &st) == 0 && S_ISREG(st.st_mode)) {
		if (f->base.fd <= uring_of(e)->max_fd)
			open_direct(f, dirfd, path, write);
		register_file(uring_of(e), f);
	}
	*out = &f->base;
	return SKV_OK;
}

static void close_file(struct skv_engine *e, struct skv_engine_file *file)
{
	struct skv_uring_file *f = (struct skv_uring_file *)file;
	struct skv_uring *u = uring_of(e);

	if (f->index != SKV_URING_NONE) {
		/* A table keeps its files open, and so the space of deleted ones allocated. */
		skv_mutex_lock(&u->lock);
		(void)set_everywhere_locked(u, f->index, -1, -1);
		skv_mutex_unlock(&u->lock);
	}
	if (f->direct >= 0)
		close(f->direct);
	close(f->base.fd);
	skv_free(f);
}

static int sync_file(struct skv_engine *e, struct skv_engine_file *f)
{
	return skv_engine_posix.sync(e, f); /* of the file, however it was written */
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void unmap_locked(struct skv_uring *u, void *owner) SKV_REQUIRES(u->lock)
{
	static const struct skv_uring_region none;

	SKV_CHECK(skv_mutex_held(&u->lock));
	for (uint32_t i = 0; i < SKV_URING_REGIONS; i++) {
		if (!u->regions[i].base || u->regions[i].owner != owner)
			continue;
		u->regions[i] = none;
		for (struct skv_uring_ring *r = u->all; r; r = r->next)
			(void)set_buffer_locked(u, r, i);
	}
}

/* Registers one part with every ring. An errno, or 0. */
static int map_part_locked(struct skv_uring *u, const struct skv_uring_region *part)
	SKV_REQUIRES(u->lock)
{
	uint32_t at = 0;

	SKV_CHECK(skv_mutex_held(&u->lock));
	while (at < SKV_URING_REGIONS && u->regions[at].base)
		at++;
	if (at == SKV_URING_REGIONS)
		return ENOSPC;
	u->regions[at] = *part;
	for (struct skv_uring_ring *r = u->all; r; r = r->next) {
		int error = r->fixed_buffers ? set_buffer_locked(u, r, at) : ENOSYS;

		if (error)
			return error;
	}
	return 0;
}

static int map_memory(struct skv_engine *e, void *base, size_t length, struct skv_error *err)
{
	struct skv_uring *u = uring_of(e);
	int error = 0;

	skv_mutex_lock(&u->lock);
	for (size_t at = 0; at < length && error == 0; at += SKV_URING_PART) {
		struct skv_uring_region part = { .base = (char *)base + at,
						 .length = length - at,
						 .owner = base };

		if (part.length > SKV_URING_PART)
			part.length = SKV_URING_PART;
		error = map_part_locked(u, &part);
	}
	if (error)
		unmap_locked(u, base);
	skv_mutex_unlock(&u->lock);
	if (!error)
		return SKV_OK;
	return skv_fail(err, SKV_E_UNSUPPORTED, NULL, "memory cannot be registered: %s%s",
			strerror(error), error == ENOMEM ? " (RLIMIT_MEMLOCK)" : "");
}

static void unmap_memory(struct skv_engine *e, void *base)
{
	struct skv_uring *u = uring_of(e);

	skv_mutex_lock(&u->lock);
	unmap_locked(u, base);
	skv_mutex_unlock(&u->lock);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static void read_runs(struct skv_engine *e, struct skv_io_run *runs, uint32_t n,
		      const struct skv_io_call *by)
{
	struct skv_uring_ring *r = take(uring_of(e));

	if (!r) {
		skv_engine_posix.read(e, runs, n, by); /* works on the same descriptors */
		return;
	}
	skv_uring_pump(r, false, runs, n, by);
	give(uring_of(e), r);
}

static void write_runs(struct skv_engine *e, struct skv_io_run *runs, uint32_t n,
		       const struct skv_io_call *by)
{
	struct skv_uring_ring *r = take(uring_of(e));

	if (!r) {
		skv_engine_posix.write(e, runs, n, by);
		return;
	}
	skv_uring_pump(r, true, runs, n, by);
	give(uring_of(e), r);
}

const struct skv_engine_ops skv_engine_uring = {
	.size = sizeof skv_engine_uring,
	.name = "uring",
	.create = create,
	.destroy = destroy,
	.open = open_file,
	.close = close_file,
	.read = read_runs,
	.write = write_runs,
	.sync = sync_file,
	.map = map_memory,
	.unmap = unmap_memory,
	.ready = ready,
};
