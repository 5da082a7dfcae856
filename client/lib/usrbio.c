/*
 * usrbio.c - the engine "usrbio": block bytes over 3FS's native interface, and everything else
 * through the engine behind it.
 *
 * Owns the open files, the current connection and the list of memory that callers have registered.
 * The way is chosen for each file when it is opened: on 3FS natively; on 3FS without its library
 * through the mount, past the page cache; elsewhere with the engine behind. If the engine was
 * selected by name, it reports an error instead of using another way on 3FS, unless the library is
 * missing.
 *
 * Lock: skv_usrbio.lock. It protects the connection, the list of memory and the descriptors that
 * wait. A connection is made outside of it, by one thread at a time.
 */
#include "client.h"
#include "usrbio.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <skv/log.h>
#include <skv/mem.h>

#define STALE 4096u
#define OPENS 3 /* tries to open a file while daemons come and go */

struct region {
	void *base; /* NULL = free */
	size_t length;
};

struct reason {
	struct reason *next;
	char text[SKV_MESSAGE_MAX];
};

struct skv_usrbio {
	struct skv_engine base;
	struct skv_engine *plain;    /* the fallback engine */
	struct skv_hf3fs_options o;      /* fixed; texts are ours */
	const struct skv_usrbio_lib *functions; /* a test's, or NULL */
	bool named;                  /* requested by name */
	atomic_bool warned;
	struct skv_mutex lock;       /* protects the following members */
	struct skv_cond made;
	struct skv_usrbio_conn *conn; /* NULL: none yet */
	char mount_point[256];            /* of the last connection, "" before the first */
	bool making;
	uint64_t retry_ms;     /* after a failure: not before (skv_now_us / 1000) */
	struct skv_error why;  /* of the last failure; SKV_OK: none */
	struct region regions[SKV_USRBIO_MAPPED];
	struct reason *reasons; /* reported by slabkv_engine */
	int stale[STALE]; /* descriptors of lost daemons, still in the library's table */
	uint32_t n_stale;
};

static struct skv_usrbio *usrbio_of(struct skv_engine *e) { return (struct skv_usrbio *)e; }

/* ---- the connection -------------------------------------------------------------------------- */

static int load(struct skv_usrbio *u, const struct skv_usrbio_lib **lib, struct skv_error *err)
{
	int rc = SKV_OK;

	if (u->functions)
		*lib = u->functions;
	else
		rc = skv_usrbio_load(u->o.lib, lib, err);
	return rc;
}

/* Without the lock. `path`: something on the mount, unless that is among the options. */
static int make_conn(struct skv_usrbio *u, const char *path, struct skv_usrbio_conn **out,
		     struct skv_error *err)
{
	char found[256];
	const struct skv_usrbio_lib *lib;
	int rc = load(u, &lib, err);

	if (rc == SKV_OK)
		rc = skv_usrbio_mount_point(lib, u->o.mount_point ? u->o.mount_point : path, found,
					    sizeof found, err);
	if (rc == SKV_OK && u->o.mount_point && strcmp(found, u->o.mount_point) != 0)
		rc = skv_fail(err, SKV_E_INVALID, "hf3fs_mount_point",
			      "%s is not a mount point of 3FS: that is %s", u->o.mount_point,
			      found);
	return rc == SKV_OK ? skv_usrbio_conn_make(lib, &u->o, found, out, err) : rc;
}

static void map_all(struct skv_usrbio *u, struct skv_usrbio_conn *g)
{
	for (uint32_t i = 0; i < SKV_USRBIO_MAPPED; i++) {
		struct region r;

		skv_mutex_lock(&u->lock);
		r = u->regions[i];
		skv_mutex_unlock(&u->lock);
		if (r.base)
			(void)skv_usrbio_conn_map(g, r.base, r.length, NULL);
	}
}

/* Releases the engine's references to a connection. */
static void drop(struct skv_usrbio_conn *g)
{
	if (g)
		skv_usrbio_conn_leave(g);
	skv_usrbio_conn_unref(g);
}

/* The connection with a reference, made if there is none or it is lost. */
static int take_conn(struct skv_usrbio *u, const char *path, struct skv_usrbio_conn **out,
		     struct skv_error *err)
{
	struct skv_usrbio_conn *old = NULL, *fresh = NULL;
	struct skv_error e = { 0 };
	int rc = SKV_OK;

	skv_mutex_lock(&u->lock);
	while (u->making)
		skv_cond_wait(&u->made, &u->lock);
	if (u->conn && atomic_load(&u->conn->lost)) {
		old = u->conn;
		u->conn = NULL;
	}
	if (u->conn) {
		skv_usrbio_conn_ref(u->conn);
		*out = u->conn;
	} else if (u->why.status != SKV_OK && skv_now_us() / 1000 < u->retry_ms) {
		rc = u->why.status;
		if (err)
			*err = u->why;
	} else {
		u->making = true;
		skv_mutex_unlock(&u->lock);
		drop(old); /* free the old memory first: there may be no space for both */
		old = NULL;
		rc = make_conn(u, path, &fresh, &e);
		if (rc == SKV_OK)
			map_all(u, fresh);
		skv_mutex_lock(&u->lock);
		u->making = false;
		u->why = e;
		u->why.status = rc;
		u->retry_ms = skv_now_us() / 1000 + SKV_USRBIO_REBUILD_MS;
		if (rc == SKV_OK) {
			u->conn = fresh;
			memcpy(u->mount_point, fresh->mount_point, sizeof u->mount_point);
			skv_usrbio_conn_ref(fresh);
			*out = fresh;
		} else if (err) {
			*err = e;
		}
		skv_cond_broadcast(&u->made);
	}
	skv_mutex_unlock(&u->lock);
	drop(old);
	return rc;
}

/* ---- descriptors of lost daemons ------------------------------------------------------------- */

/* Descriptors of a lost daemon cannot be removed from the library's table: it asks the daemon
 * first. So they stay open, for their numbers must not be reused; once a file of the new daemon is
 * open, each is made a duplicate of it for a moment, removed, and closed. */
static void clear_stale(struct skv_usrbio *u, const struct skv_usrbio_lib *lib, int alive)
{
	for (;;) {
		int fd = -1;

		skv_mutex_lock(&u->lock);
		if (u->n_stale > 0)
			fd = u->stale[--u->n_stale];
		skv_mutex_unlock(&u->lock);
		if (fd < 0)
			return;
		if (dup3(alive, fd, O_CLOEXEC) == fd)
			lib->dereg_fd(fd);
		close(fd);
	}
}

/* The last chance: any descriptor of the mount will do. Without a daemon they are only closed. */
static void drop_stale(struct skv_usrbio *u)
{
	const struct skv_usrbio_lib *lib;
	int alive = u->n_stale ? open(u->mount_point, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	if (alive >= 0 && load(u, &lib, NULL) == SKV_OK && lib->is_hf3fs(alive))
		clear_stale(u, lib, alive);
	if (alive >= 0)
		close(alive);
	while (u->n_stale > 0)
		close(u->stale[--u->n_stale]);
}

/* ---- making ---------------------------------------------------------------------------------- */

static void destroy(struct skv_engine *e)
{
	struct skv_usrbio *u = usrbio_of(e);

	drop(u->conn);
	if (u->plain)
		u->plain->ops->destroy(u->plain);
	drop_stale(u);
	while (u->reasons) {
		struct reason *r = u->reasons;

		u->reasons = r->next;
		skv_free(r);
	}
	skv_free((char *)(uintptr_t)u->o.lib);
	skv_free((char *)(uintptr_t)u->o.mount_point);
	skv_cond_destroy(&u->made);
	skv_mutex_destroy(&u->lock);
	skv_free(u);
}

static int copy_options(struct skv_usrbio *u, const struct skv_hf3fs_options *from)
{
	char *lib = from->lib ? skv_strdup(from->lib) : NULL;
	char *mount_point = from->mount_point ? skv_strdup(from->mount_point) : NULL;
	size_t n = mount_point ? strlen(mount_point) : 0;

	while (n > 1 && mount_point[n - 1] == '/')
		mount_point[--n] = '\0';
	u->o = *from;
	u->o.lib = lib;
	u->o.mount_point = mount_point;
	u->o.base_path = NULL; /* open.c's */
	return (from->lib && !lib) || (from->mount_point && !mount_point) ? SKV_E_NOMEM : SKV_OK;
}

/* A caller that named the native way is warned, once, that there is none. */
static void warn(struct skv_usrbio *u)
{
	struct skv_error why;

	if (!u->named || atomic_exchange(&u->warned, true))
		return;
	skv_mutex_lock(&u->lock);
	why = u->why;
	skv_mutex_unlock(&u->lock);
	skv_log(SKV_LOG_WARN, "client",
		"engine usrbio: %s; files on 3FS are moved through the mount", why.message);
}

/* If a mount point is among the options, its problems are reported now. */
static int begin(struct skv_usrbio *u, struct skv_error *err)
{
	struct skv_usrbio_conn *g = NULL;
	int rc;

	if (!u->named || !u->o.mount_point)
		return SKV_OK;
	rc = take_conn(u, NULL, &g, err);
	skv_usrbio_conn_unref(g);
	if (rc != SKV_E_UNSUPPORTED)
		return rc;
	warn(u);
	return SKV_OK;
}

int skv_usrbio_create(const struct skv_engine_options *o, bool named, struct skv_engine **out,
		      struct skv_error *err)
{
	struct skv_usrbio *u = skv_calloc(1, sizeof *u);
	struct skv_hf3fs_options defaults;
	struct skv_error why;
	int rc;

	if (!u)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	u->base.ops = &skv_engine_usrbio;
	u->named = named;
	u->functions = o ? o->usrbio : NULL;
	skv_mutex_init(&u->lock);
	skv_cond_init(&u->made);
	skv_hf3fs_init(&defaults);
	rc = copy_options(u, o && o->hf3fs ? o->hf3fs : &defaults);
	if (rc != SKV_OK)
		skv_fail(err, rc, NULL, "out of memory");
	if (rc == SKV_OK)
		rc = skv_engine_behind(o, &u->plain, &why, err);
	if (rc == SKV_OK) {
		u->why = why; /* of the fallback engine, until there is one of our own */
		u->why.status = SKV_OK; /* not a failure of this one */
		rc = begin(u, err);
	}
	if (rc == SKV_OK)
		*out = &u->base;
	else
		destroy(&u->base);
	return rc;
}

static int create(const struct skv_engine_options *o, struct skv_engine **out,
		  struct skv_error *err)
{
	return skv_usrbio_create(o, true, out, err);
}

/* Texts already returned to callers are kept until the end: they are few. */
static const char *keep_locked(struct skv_usrbio *u, const char *text) SKV_REQUIRES(u->lock)
{
	struct reason *r;

	SKV_CHECK(skv_mutex_held(&u->lock));
	for (r = u->reasons; r; r = r->next)
		if (strcmp(r->text, text) == 0)
			return r->text;
	r = skv_calloc(1, sizeof *r);
	if (!r)
		return "out of memory";
	snprintf(r->text, sizeof r->text, "%s", text);
	r->next = u->reasons;
	u->reasons = r;
	return r->text;
}

static const char *told(struct skv_engine *e, const char **why)
{
	struct skv_usrbio *u = usrbio_of(e);
	bool native;

	skv_mutex_lock(&u->lock);
	native = u->conn ? !atomic_load(&u->conn->lost) : u->named && u->why.status == SKV_OK;
	*why = native ? "" : keep_locked(u, u->why.message);
	skv_mutex_unlock(&u->lock);
	return native ? "usrbio" : u->plain->ops->name;
}

/* ---- files ----------------------------------------------------------------------------------- */

static void close_native(struct skv_usrbio *u, struct skv_usrbio_file *f)
{
	const struct skv_usrbio_lib *lib = f->conn->lib;
	bool kept = false;

	if (lib->is_hf3fs(f->base.fd)) {
		lib->dereg_fd(f->base.fd);
	} else {
		skv_mutex_lock(&u->lock);
		kept = u->n_stale < STALE;
		if (kept)
			u->stale[u->n_stale++] = f->base.fd;
		skv_mutex_unlock(&u->lock);
	}
	if (!kept)
		close(f->base.fd);
	skv_usrbio_conn_unref(f->conn);
}

/* Registers the file; its number may be one that the library holds for a file long closed. */
static int register_file(struct skv_usrbio *u, struct skv_usrbio_file *f, const char *path,
			 struct skv_error *err)
{
	const struct skv_usrbio_lib *lib = f->conn->lib;
	int rc;

	clear_stale(u, lib, f->base.fd);
	rc = lib->reg_fd(f->base.fd, 0);
	for (int tries = 0; rc == EINVAL && tries < 16; tries++) {
		int other = fcntl(f->base.fd, F_DUPFD_CLOEXEC, f->base.fd + 1);

		if (other < 0)
			break;
		close(f->base.fd);
		f->base.fd = other;
		rc = lib->reg_fd(other, 0);
	}
	if (rc > 0)
		return skv_fail(err, SKV_E_IO, NULL,
				"slab file %s cannot be registered with 3FS: %s", path,
				strerror(rc));
	f->registered = f->base.fd;
	return SKV_OK;
}

/* The path of an open file. False: not available from the kernel. */
static bool path_of(int fd, char out[PATH_MAX])
{
	char link[64];
	ssize_t n;

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	n = readlink(link, out, PATH_MAX - 1);
	if (n > 0)
		out[n] = '\0';
	return n > 0;
}

static bool lies_below(const char *path, const char *mount_point)
{
	size_t n = strlen(mount_point);

	return n > 0 && strncmp(path, mount_point, n) == 0 && path[n] == '/';
}

/* On failure f->base.fd is still open, but for *restarted: another daemon has taken the place of
 * the connection's, and the file may be that one's. Whether a connection's daemon has ended is
 * asked of its files, so none of another daemon may be among them. */
static int go_native(struct skv_usrbio *u, struct skv_usrbio_file *f, const char *path,
		     bool *restarted, struct skv_error *err)
{
	char where[PATH_MAX];
	struct stat st;
	int rc;

	if (!path_of(f->base.fd, where) || fstat(f->base.fd, &st) != 0)
		return skv_fail(err, SKV_E_IO, NULL, "slab file %s: %s", path, strerror(errno));
	rc = take_conn(u, where, &f->conn, err);
	if (rc != SKV_OK)
		return rc;
	f->chunk = st.st_blksize > 0 && (st.st_blksize & (st.st_blksize - 1)) == 0
			   ? (uint64_t)st.st_blksize
			   : 4096;
	rc = lies_below(where, f->conn->mount_point)
		     ? register_file(u, f, path, err)
		     : skv_fail(err, SKV_E_FOREIGN, "hf3fs_mount_point",
				"slab file %s lies on another 3FS than %s", path,
				f->conn->mount_point);
	if (rc != SKV_OK) {
		skv_usrbio_conn_unref(f->conn);
		return rc;
	}
	skv_usrbio_conn_check(f->conn, f->base.fd);
	if (atomic_load(&f->conn->lost)) {
		close_native(u, f);
		f->base.fd = -1;
		*restarted = true;
		return skv_fail(err, SKV_E_UNAVAILABLE, "hf3fs_mount_point",
				"slab file %s: the FUSE daemon was restarted while it was opened",
				path);
	}
	f->kind = SKV_USRBIO_NATIVE;
	return SKV_OK;
}

static int go_plain(struct skv_usrbio *u, struct skv_usrbio_file *f, int dirfd, const char *path,
		    bool write, struct skv_error *err)
{
	char where[PATH_MAX], mount_point[256];
	int rc;

	/* The result would stay in the cache of open files, so a restarting daemon is waited
	 * for. */
	skv_mutex_lock(&u->lock);
	snprintf(mount_point, sizeof mount_point, "%s",
		 u->o.mount_point ? u->o.mount_point : u->mount_point);
	skv_mutex_unlock(&u->lock);
	if (path_of(f->base.fd, where) && lies_below(where, mount_point))
		return skv_fail(err, SKV_E_UNAVAILABLE, "hf3fs_mount_point",
				"slab file %s lies below %s, but 3FS does not answer "
				"for it: is its FUSE daemon mounted there?",
				path, mount_point);
	close(f->base.fd);
	f->base.fd = -1;
	f->kind = SKV_USRBIO_PLAIN;
	rc = u->plain->ops->open(u->plain, dirfd, path, write, &f->plain, err);
	if (rc == SKV_OK)
		f->base.fd = f->plain->fd;
	return rc;
}

/* Returns true if this engine takes the file for 3FS. Does not load the library to find out, unless
 * the user wants it. */
static bool is_ours(struct skv_usrbio *u, int fd)
{
	const char *env = getenv(SKV_USRBIO_LIB_ENV);
	const struct skv_usrbio_lib *lib;
	struct stat st;

	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		return false;
	if (skv_usrbio_is_3fs(fd))
		return true;
	if (!u->named && !u->o.lib && !u->o.mount_point && !(env && env[0]))
		return false;
	return load(u, &lib, NULL) == SKV_OK && lib->is_hf3fs(fd);
}

static bool worked(struct skv_usrbio *u)
{
	bool has;

	skv_mutex_lock(&u->lock);
	has = u->mount_point[0] != '\0';
	skv_mutex_unlock(&u->lock);
	return has;
}

static int open_once(struct skv_usrbio *u, struct skv_usrbio_file *f, int dirfd, const char *path,
		     bool write, bool *restarted, struct skv_error *err)
{
	int rc = skv_engine_open_fd(dirfd, path, write, &f->base, err);

	if (rc != SKV_OK)
		return rc;
	if (!is_ours(u, f->base.fd))
		return go_plain(u, f, dirfd, path, write, err);
	rc = go_native(u, f, path, restarted, err);
	/* "auto" uses the fallback where the native way has never worked; a restarting
	 * daemon is waited for. */
	if (rc == SKV_E_UNSUPPORTED ||
	    (rc != SKV_OK && rc != SKV_E_NOMEM && !u->named && !worked(u))) {
		f->kind = SKV_USRBIO_MOUNT;
		warn(u);
		rc = SKV_OK;
	}
	return rc;
}

static int open_file(struct skv_engine *e, int dirfd, const char *path, bool write,
		     struct skv_engine_file **out, struct skv_error *err)
{
	struct skv_usrbio_file *f = skv_calloc(1, sizeof *f);
	struct skv_usrbio *u = usrbio_of(e);
	bool restarted = true;
	int rc = SKV_OK;

	if (!f)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	for (int tries = 0; restarted && tries < OPENS; tries++) {
		restarted = false;
		rc = open_once(u, f, dirfd, path, write, &restarted, err);
	}
	if (rc == SKV_OK) {
		*out = &f->base;
		return SKV_OK;
	}
	if (f->base.fd >= 0)
		close(f->base.fd);
	skv_free(f);
	return rc;
}

static void close_file(struct skv_engine *e, struct skv_engine_file *file)
{
	struct skv_usrbio_file *f = (struct skv_usrbio_file *)file;
	struct skv_usrbio *u = usrbio_of(e);

	if (f->kind == SKV_USRBIO_PLAIN)
		skv_engine_close(u->plain, f->plain);
	else if (f->kind == SKV_USRBIO_NATIVE)
		close_native(u, f);
	else
		close(f->base.fd);
	skv_free(f);
}

static int sync_file(struct skv_engine *e, struct skv_engine_file *file)
{
	struct skv_usrbio_file *f = (struct skv_usrbio_file *)file;

	/* On 3FS a write is durable when it completes; a sync would only ask
	 * every chain for the length. */
	return f->kind == SKV_USRBIO_PLAIN ? skv_engine_sync(usrbio_of(e)->plain, f->plain)
					   : SKV_OK;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* The connection with a reference and its memory; NULL: none is up. */
static struct skv_usrbio_conn *enter_locked(struct skv_usrbio *u) SKV_REQUIRES(u->lock)
{
	SKV_CHECK(skv_mutex_held(&u->lock));
	if (!u->conn || !skv_usrbio_conn_enter(u->conn))
		return NULL;
	skv_usrbio_conn_ref(u->conn);
	return u->conn;
}

static int map_memory(struct skv_engine *e, void *base, size_t length, struct skv_error *err)
{
	struct skv_usrbio *u = usrbio_of(e);
	int rc = skv_engine_map(u->plain, base, length, err);
	struct skv_usrbio_conn *g;

	skv_mutex_lock(&u->lock);
	while (u->making)
		skv_cond_wait(&u->made, &u->lock);
	for (uint32_t i = 0; i < SKV_USRBIO_MAPPED; i++) {
		if (u->regions[i].base)
			continue;
		u->regions[i] = (struct region){ base, length };
		break;
	}
	g = enter_locked(u);
	skv_mutex_unlock(&u->lock);
	if (g)
		rc = skv_usrbio_conn_map(g, base, length, err);
	drop(g);
	return rc;
}

static void ready(struct skv_engine *e, uint32_t calls)
{
	skv_engine_ready(usrbio_of(e)->plain, calls);
}

static void unmap_memory(struct skv_engine *e, void *base)
{
	struct skv_usrbio *u = usrbio_of(e);
	struct skv_usrbio_conn *g;

	skv_engine_unmap(u->plain, base);
	skv_mutex_lock(&u->lock);
	while (u->making)
		skv_cond_wait(&u->made, &u->lock);
	for (uint32_t i = 0; i < SKV_USRBIO_MAPPED; i++)
		if (u->regions[i].base == base)
			u->regions[i].base = NULL;
	g = enter_locked(u);
	skv_mutex_unlock(&u->lock);
	if (g)
		skv_usrbio_conn_unmap(g, base);
	drop(g);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

/* Runs of one kind of file, by the engine that moves it. */
static void move_others(struct skv_engine *e, bool write, struct skv_io_run *runs, uint32_t n,
			const struct skv_io_call *by)
{
	const struct skv_engine_ops *ops = e ? e->ops : &skv_engine_posix;
	struct skv_usrbio_file *f = (struct skv_usrbio_file *)runs->file;

	for (uint32_t i = 0; e && i < n; i++)
		runs[i].file = f->plain;
	if (write)
		ops->write(e, runs, n, by);
	else
		ops->read(e, runs, n, by);
	for (uint32_t i = 0; e && i < n; i++)
		runs[i].file = &f->base;
}

static void move(struct skv_engine *e, bool write, struct skv_io_run *runs, uint32_t n,
		 const struct skv_io_call *by)
{
	uint32_t first = 0;

	while (first < n) {
		struct skv_usrbio_file *f = (struct skv_usrbio_file *)runs[first].file, *next = f;
		uint32_t end = first;

		/* Files of one connection are transferred together; others one after the other. */
		while (end < n &&
		       (next == f || (f->kind == SKV_USRBIO_NATIVE &&
				      next->kind == SKV_USRBIO_NATIVE && next->conn == f->conn)))
			if (++end < n)
				next = (struct skv_usrbio_file *)runs[end].file;
		if (f->kind == SKV_USRBIO_NATIVE)
			skv_usrbio_pump(f->conn, write ? SKV_USRBIO_WRITE : SKV_USRBIO_READ,
					runs + first, end - first, by);
		else
			move_others(f->kind == SKV_USRBIO_PLAIN ? usrbio_of(e)->plain : NULL, write,
				    runs + first, end - first, by);
		first = end;
	}
}

static void read_runs(struct skv_engine *e, struct skv_io_run *runs, uint32_t n,
		      const struct skv_io_call *by)
{
	move(e, false, runs, n, by);
}

static void write_runs(struct skv_engine *e, struct skv_io_run *runs, uint32_t n,
		       const struct skv_io_call *by)
{
	move(e, true, runs, n, by);
}

const struct skv_engine_ops skv_engine_usrbio = {
	.size = sizeof skv_engine_usrbio,
	.name = "usrbio",
	.create = create,
	.destroy = destroy,
	.open = open_file,
	.close = close_file,
	.read = read_runs,
	.write = write_runs,
	.sync = sync_file,
	.map = map_memory,
	.unmap = unmap_memory,
	.told = told,
	.ready = ready,
};
