/*
 * check.c - checks whether a directory is suitable for blocks, for `slabkv doctor`. The checks,
 * each with its remedy: type of the mount, whether 3FS answers, chunk size, its client library,
 * limits, shared memory, rings, and bytes there and back in a file that is removed again.
 *
 * One thread. Owns the temporary file while it runs.
 */
#include "client.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <skv/hash.h>
#include <skv/mem.h>

#include "usrbio.h"

#define LEAST_CHUNK (32u << 10)
#define MOST_CHUNK (64u << 20)
#define PROBE_IOV \
	(8u << 20) /* enough for the probe; the sizes in the options are checked, not used */

struct check {
	const struct slabkv_options *o;
	void (*tell)(void *ctx, const struct slabkv_check *c);
	void *ctx;
	char dir[PATH_MAX];
	char name[64]; /* of the temporary file */
	int dirfd, fd;
	bool promised; /* the user declared it to be 3FS */
	bool is_3fs;
	char type[64], mount_point[256];
	uint64_t chunk;
	const struct skv_usrbio_lib *lib;
};

static void say(struct check *c, enum slabkv_verdict verdict, const char *name, const char *remedy,
		const char *fmt, ...) __attribute__((format(printf, 5, 6)));

static void say(struct check *c, enum slabkv_verdict verdict, const char *name, const char *remedy,
		const char *fmt, ...)
{
	char text[SKV_MESSAGE_MAX + 64];
	struct slabkv_check one = { name, verdict, text, verdict == SLABKV_GOOD ? "" : remedy };
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	c->tell(c->ctx, &one);
}

/* ---- properties of the directory ------------------------------------------------------------- */

/* The mount that contains `dir`: the last one in the list with the longest mount point. */
static bool find_mount(struct check *c, bool *readonly)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char line[4096], at[256], options[256], type[64];
	size_t best = 0;

	while (f && fgets(line, sizeof line, f)) {
		const char *dash = strstr(line, " - ");
		size_t n;

		if (!dash || sscanf(line, "%*s %*s %*s %*s %255s %255s", at, options) != 2 ||
		    sscanf(dash, " - %63s", type) != 1)
			continue;
		n = strcmp(at, "/") == 0 ? 0 : strlen(at);
		if (strncmp(c->dir, at, n) != 0 || (c->dir[n] != '/' && c->dir[n] != '\0') ||
		    n < best)
			continue;
		best = n;
		memcpy(c->type, type, sizeof type);
		memcpy(c->mount_point, at, sizeof at);
		*readonly =
			strncmp(options, "ro", 2) == 0 && (options[2] == ',' || options[2] == '\0');
	}
	if (f)
		fclose(f);
	return c->type[0] != '\0';
}

static bool check_directory(struct check *c, const char *dir)
{
	bool readonly = false;

	if (!realpath(dir, c->dir)) {
		say(c, SLABKV_BAD, "directory",
		    errno == ENOTCONN
			    ? "its FUSE daemon has died: unmount it (umount -l) and mount it again"
			    : "mount the file system, or name another directory",
		    "%s: %s", dir, strerror(errno));
		return false;
	}
	c->dirfd = open(c->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (c->dirfd < 0) {
		say(c, SLABKV_BAD, "directory", "name a directory that this user may open",
		    "%s: %s", c->dir, strerror(errno));
		return false;
	}
	if (!find_mount(c, &readonly)) { /* inside a chroot the root need not be a mount */
		say(c, SLABKV_WARNING, "mount",
		    "is /proc mounted? In a chroot this is as it should be",
		    "/proc tells of no mount that %s lies on", c->dir);
		return true;
	}
	say(c, readonly ? SLABKV_BAD : SLABKV_GOOD, "mount", "mount it for writing (remount,rw)",
	    "%s, mounted at %s%s", c->type, c->mount_point, readonly ? ", read-only" : "");
	return !readonly;
}

static bool check_create(struct check *c)
{
	uint64_t number;

	skv_random(&number, sizeof number);
	snprintf(c->name, sizeof c->name, ".slabkv-doctor-%d-%08" PRIx64, (int)getpid(),
		 number & 0xffffffff);
	c->fd = openat(c->dirfd, c->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (c->fd >= 0)
		return true;
	say(c, SLABKV_BAD, "create",
	    errno == EROFS ? "mount it for writing"
	    : errno == EIO && strcmp(c->type, "fuse.hf3fs") == 0
		    ? "is the directory's stripe larger than its chain table? make it anew with a "
		      "smaller --stripe-size"
		    : "may this user write there? is it full?",
	    "no file can be made in %s: %s", c->dir, strerror(errno));
	return false;
}

/* Whether it is 3FS: by its ioctl, or by its library if the user wants that. */
static void check_magic(struct check *c)
{
	const char *env = getenv(SKV_USRBIO_LIB_ENV);
	bool wanted = c->promised || c->o->hf3fs_lib || (env && env[0]);

	c->is_3fs = skv_usrbio_is_3fs(c->fd);
	if (!c->is_3fs && wanted && skv_usrbio_load(c->o->hf3fs_lib, &c->lib, NULL) == SKV_OK)
		c->is_3fs = c->lib->is_hf3fs(c->fd);
	if (c->is_3fs && strcmp(c->type, "fuse.hf3fs") != 0)
		say(c, SLABKV_WARNING, "3fs",
		    "mount it as type fuse.hf3fs: the client library looks for that",
		    "it answers as 3FS, mounted as %s", c->type);
	else if (c->is_3fs)
		say(c, SLABKV_GOOD, "3fs", "", "it answers as 3FS");
	else if (c->promised || strcmp(c->type, "fuse.hf3fs") == 0)
		say(c, SLABKV_BAD, "3fs",
		    "is the right daemon (hf3fs_fuse_main) mounted there, and alive?",
		    "%s does not answer as 3FS", c->dir);
	else
		say(c, SLABKV_GOOD, "3fs", "",
		    "no 3FS: bytes are moved by io_uring or through the page cache");
}

static void check_chunk(struct check *c)
{
	struct stat st;

	if (fstat(c->fd, &st) != 0)
		st.st_blksize = 0;
	c->chunk = (uint64_t)st.st_blksize;
	if (!c->is_3fs)
		return;
	if (c->chunk >= LEAST_CHUNK && c->chunk <= MOST_CHUNK && (c->chunk & (c->chunk - 1)) == 0)
		say(c, SLABKV_GOOD, "chunk", "", "chunks of %" PRIu64 " bytes", c->chunk);
	else
		say(c, SLABKV_WARNING, "chunk",
		    "set the directory's layout with admin_cli (docs/operate/3FS.md)",
		    "st_blksize is %" PRIu64 ", not a chunk size of 3FS", c->chunk);
}

static void check_room(struct check *c)
{
	struct statvfs st;
	double percent;

	if (fstatvfs(c->dirfd, &st) != 0) {
		say(c, SLABKV_BAD, "space", "is the file system alive?", "%s", strerror(errno));
		return;
	}
	percent = st.f_blocks ? 100.0 * (double)st.f_bavail / (double)st.f_blocks : 0;
	say(c, percent < 5 ? SLABKV_WARNING : SLABKV_GOOD, "space",
	    "give it room: writes fail when it is full", "%.1f GiB free (%.0f %%)",
	    (double)st.f_bavail * (double)st.f_frsize / (1 << 30), percent);
}

/* ---- requirements of the native interface ---------------------------------------------------- */

static void check_library(struct check *c)
{
	struct skv_error err;
	Dl_info where;
	void *p;

	if (!c->lib && skv_usrbio_load(c->o->hf3fs_lib, &c->lib, &err) != SKV_OK) {
		say(c, SLABKV_BAD, "library",
		    "install 3FS's client library, or name it with -o hf3fs_lib= or HF3FS_LIB",
		    "%s", err.message);
		return;
	}
	memcpy(&p, &c->lib->prep_io, sizeof p);
	say(c, SLABKV_GOOD, "library", "", "%s",
	    dladdr(p, &where) && where.dli_fname ? where.dli_fname : SKV_USRBIO_LIB);
}

/* Before the library is loaded: that lowers it. */
static void check_limit(struct check *c)
{
	struct rlimit l = { 0, 0 };

	(void)getrlimit(RLIMIT_NOFILE, &l);
	if (l.rlim_max > SKV_USRBIO_NOFILE)
		say(c, SLABKV_WARNING, "open files",
		    "set a hard limit of 1048576 or less (ulimit -Hn, LimitNOFILE=)",
		    "the hard limit is %s%.0f: 3FS's library takes memory for each, so it is "
		    "lowered before loading",
		    l.rlim_max == RLIM_INFINITY ? "unlimited, " : "", (double)l.rlim_max);
	else
		say(c, l.rlim_cur < 1024 ? SLABKV_WARNING : SLABKV_GOOD, "open files",
		    "raise it: ulimit -n", "limit %llu, hard limit %llu",
		    (unsigned long long)l.rlim_cur, (unsigned long long)l.rlim_max);
}

static void check_shm(struct check *c)
{
	struct skv_hf3fs_options h;
	struct skv_error err;
	int rc;

	skv_hf3fs_of(c->o, &h);
	rc = skv_usrbio_room(&h, skv_usrbio_conn_rings(c->lib, &h), &err);
	say(c, rc == SKV_OK ? SLABKV_GOOD : SLABKV_BAD, "/dev/shm",
	    "make /dev/shm larger (in a container --shm-size), or hf3fs_iov_size smaller", "%s",
	    err.message);
}

/* ---- bytes there and back -------------------------------------------------------------------- */

/* The engine that moves this directory's bytes, or NULL after saying why there is none. */
static struct skv_engine *make_engine(struct check *c)
{
	struct skv_hf3fs_options h;
	const struct skv_engine_options with = { .depth = SKV_ENGINE_DEPTH, .hf3fs = &h };
	char mount_point[256];
	struct skv_engine *e;
	struct skv_error err;
	const char *why;
	int rc = SKV_OK;

	if (!c->is_3fs)
		return skv_engine_posix.create(&with, &e, &err) == SKV_OK ? e : NULL;
	if (!c->lib)
		return NULL; /* reported already */
	skv_hf3fs_of(c->o, &h);
	h.read_iov_size = h.write_iov_size = PROBE_IOV;
	if (!h.mount_point) {
		rc = skv_usrbio_mount_point(c->lib, c->dir, mount_point, sizeof mount_point, &err);
		h.mount_point = mount_point;
	}
	if (rc == SKV_OK)
		rc = skv_engine_usrbio.create(&with, &e, &err);
	if (rc != SKV_OK) {
		say(c, SLABKV_BAD, "rings",
		    "see the daemon's log; does it see the same /dev/shm as this process?", "%s",
		    err.message);
		return NULL;
	}
	(void)e->ops->told(e, &why);
	say(c, why[0] ? SLABKV_BAD : SLABKV_GOOD, "rings", "see above", "%s",
	    why[0] ? why : "rings and memory were accepted by the daemon");
	return e;
}

static int move(struct skv_engine *e, bool write, struct skv_engine_file *f, uint64_t offset,
		uint8_t *data, size_t n, uint64_t *done)
{
	const struct skv_io_call by = { .clock = &skv_clock_system, .at_ms = UINT64_MAX };
	struct iovec iov = { data, n };
	struct skv_io_run run = { .file = f, .offset = offset, .iov = &iov, .n_iov = 1,
				  .length = n };

	if (write)
		skv_engine_write(e, &run, 1, &by);
	else
		skv_engine_read(e, &run, 1, &by);
	*done = run.done;
	return run.status;
}

static void check_bytes(struct check *c, struct skv_engine *e, struct skv_engine_file *f, size_t n,
			uint8_t *out, uint8_t *in)
{
	const uint64_t chunk = c->is_3fs ? c->chunk : 4096;
	uint64_t done;
	int rc = move(e, true, f, chunk, out, n, &done);

	if (rc != SKV_OK) {
		say(c, SLABKV_BAD, "write",
		    c->is_3fs ? "is there space? were the targets made with create-target "
				"--use-new-chunk-engine? others take chunks of 512K, 1M, 2M, 4M, "
				"16M and 64M only; see the daemon's log"
			      : "is there space? see the kernel's log",
		    "%zu bytes: %s", n, skv_status_text(rc));
		return;
	}
	rc = move(e, false, f, chunk, in, n, &done);
	if (rc != SKV_OK || done < n)
		say(c, SLABKV_BAD, "read", "see the daemon's log",
		    "%" PRIu64 " of %zu bytes came back: %s", done, n,
		    rc == SKV_OK ? "the read was short" : skv_status_text(rc));
	else if (memcmp(in, out, n) != 0)
		say(c, SLABKV_BAD, "read", "do not use this mount",
		    "other bytes came back than were written");
	else
		say(c, SLABKV_GOOD, "round trip", "", "%zu bytes were written and read back", n);
	if (!c->is_3fs)
		return;
	rc = move(e, false, f, chunk + 2 * chunk, in, chunk, &done);
	if (rc == SKV_OK && done == 0)
		say(c, SLABKV_GOOD, "hole", "", "a chunk that was never written reads as nothing");
	else
		say(c, SLABKV_WARNING, "hole", "keep checksums on (they are by default)",
		    "a chunk that was never written gave %" PRIu64 " bytes: %s", done,
		    skv_status_text(rc));
}

static void check_punch(struct check *c)
{
	const size_t start = c->chunk, end = 2 * c->chunk;
	const int error = c->lib->punchhole(c->fd, 1, &start, &end, 0);

	if (error == 0)
		say(c, SLABKV_GOOD, "punch", "", "space can be given back");
	else
		say(c, SLABKV_WARNING, "punch", "only shrinking a storage needs it",
		    "punching: %s", strerror(error));
}

static void check_round_trip(struct check *c)
{
	const uint64_t chunk = c->is_3fs ? c->chunk : 4096;
	const size_t n = (size_t)chunk + 4096; /* a whole chunk, and a part of the next */
	struct skv_engine *e = make_engine(c);
	uint8_t *out = skv_malloc(n), *in = skv_calloc(2, n);
	struct skv_engine_file *f = NULL;
	struct skv_error err;

	if (e && (!out || !in || chunk > MOST_CHUNK || chunk < 512))
		say(c, SLABKV_BAD, "round trip", "free some memory", "no buffers of %zu bytes", n);
	else if (e && ftruncate(c->fd, (off_t)(5 * chunk)) != 0)
		say(c, SLABKV_BAD, "length", "is there space?", "a file cannot be made longer: %s",
		    strerror(errno));
	else if (e && skv_engine_open(e, c->dirfd, c->name, true, &f, &err) != SKV_OK)
		say(c, SLABKV_BAD, "open", "see above", "%s", err.message);
	if (f) {
		skv_random(out, 4096);
		for (size_t at = 4096; at < n; at++)
			out[at] = (uint8_t)(out[at - 4096] + 1);
		check_bytes(c, e, f, n, out, in);
		skv_engine_close(e, f);
		if (c->is_3fs)
			check_punch(c);
	}
	if (e)
		e->ops->destroy(e);
	skv_free(out);
	skv_free(in);
}

int slabkv_mount_check(const struct slabkv_options *o, const char *dir,
		       void (*tell)(void *ctx, const struct slabkv_check *c), void *ctx,
		       struct slabkv_error *err)
{
	struct check c = { .o = o, .tell = tell, .ctx = ctx, .dirfd = -1, .fd = -1 };
	struct skv_error e = { 0 };
	int rc = o && SKV_HAS(o, hf3fs_write_timeout_ms) && dir && tell
			 ? skv_options_check(o, &e)
			 : skv_size_refuse(&e, "slabkv_options_init");

	if (rc != SKV_OK)
		return skv_result_fail(err, &e, rc);
	c.promised = o->hf3fs_mount_point || (o->engine && strcmp(o->engine, "usrbio") == 0);
	if (check_directory(&c, dir) && check_create(&c)) {
		check_limit(&c);
		check_magic(&c);
		check_chunk(&c);
		check_room(&c);
		if (c.is_3fs)
			check_library(&c);
		if (c.lib)
			check_shm(&c);
		check_round_trip(&c);
		(void)unlinkat(c.dirfd, c.name, 0);
		close(c.fd);
	}
	if (c.dirfd >= 0)
		close(c.dirfd);
	return skv_result_fail(err, &e, SKV_OK);
}
