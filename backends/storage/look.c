/*
 * look.c - stats files of clients, on a mount here or through fs-masters.
 *
 * A looker owns its connections to fs-masters; without fs-masters it holds nothing. No locks;
 * blocks with the file system.
 */
#include "fs.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include <skv/limits.h>
#include <skv/mem.h>

#include "remote.h"

struct skv_file_looker {
	void *remote; /* NULL: mounts here */
};

/* Cuts the next component off; NULL: the path has none that is allowed. */
static char *next_component(char **rest)
{
	char *name = *rest, *slash = strchr(name, '/');

	if (slash)
		*slash = '\0';
	*rest = slash ? slash + 1 : NULL;
	return skv_fs_is_component(name) ? name : NULL;
}

static int no_path(const char *path, struct skv_error *err)
{
	return skv_fail(err, SKV_E_INVALID, "path",
			"'%.120s' is not a path of names below a directory", path);
}

/* Opens the directory of the file; *dir is replaced, or closed. *name points into `text`. */
static int walk(int *dir, char *text, const char *path, const char **name, struct skv_error *err)
{
	char *rest = text;

	for (;;) {
		char *part = next_component(&rest);
		int next, error;

		if (part && !rest) {
			*name = part;
			return SKV_OK;
		}
		error = part ? skv_fs_open_dir(*dir, part, &next) : 0;
		close(*dir);
		if (!part)
			return no_path(path, err);
		if (error != 0)
			return skv_fs_fail(err, error, "cannot open the directory of the file",
					   path);
		*dir = next;
	}
}

static int look_at_directory(int dir, struct skv_file_look *out)
{
	struct skv_fs_mount m;
	struct statfs v;
	struct stat st;
	int error = fstat(dir, &st) == 0 && fstatfs(dir, &v) == 0 ? 0 : errno;

	if (error == 0)
		error = skv_fs_look(dir, &m);
	if (error != 0)
		return error;
	_Static_assert(sizeof v.f_fsid == sizeof out->fs_id && sizeof m.type == sizeof out->fs,
		       "copied as they are");
	memcpy(out->fs, m.type, sizeof out->fs);
	memcpy(&out->fs_id, &v.f_fsid, sizeof out->fs_id);
	out->dir = st.st_ino;
	return 0;
}

/* 0 or an errno; ENOENT is no error. */
static int look_at_file(int dir, const char *name, struct skv_file_look *out, bool *regular)
{
	struct statx st;

	*regular = true;
	if (statx(dir, name, AT_SYMLINK_NOFOLLOW | AT_STATX_FORCE_SYNC,
		  STATX_BASIC_STATS | STATX_BTIME, &st) != 0)
		return errno == ENOENT ? 0 : errno;
	*regular = S_ISREG(st.stx_mode);
	out->inode = st.stx_ino;
	out->length = st.stx_size;
	if (st.stx_mask & STATX_BTIME)
		out->born_ns = (uint64_t)st.stx_btime.tv_sec * 1000000000u + st.stx_btime.tv_nsec;
	return 0;
}

static int look(int dir, const char *name, const char *path, struct skv_file_look *out,
		struct skv_error *err)
{
	struct skv_file_look l = { .inode = 0 };
	bool regular = true;
	int error = look_at_directory(dir, &l);

	if (error == 0)
		error = look_at_file(dir, name, &l, &regular);
	if (error != 0)
		return skv_fs_fail(err, error, "cannot stat the file", path);
	if (!regular)
		return skv_fail(err, SKV_E_FOREIGN, NULL, "%s is not a regular file", path);
	*out = l;
	return SKV_OK;
}

int skv_file_look(int below, const char *dir, const char *path, struct skv_file_look *out,
		  struct skv_error *err)
{
	char text[SKV_FILE_PATH_MAX + 1];
	const char *name = NULL;
	int fd, error, rc;

	if (strlen(path) > SKV_FILE_PATH_MAX || (below >= 0 && !skv_fs_is_component(dir)))
		return no_path(path, err);
	memcpy(text, path, strlen(path) + 1);
	error = skv_fs_open_dir(below, dir, &fd);
	if (error != 0)
		return skv_fs_fail(err, error, "cannot open the directory", dir);
	rc = walk(&fd, text, path, &name, err);
	if (rc != SKV_OK)
		return rc;
	assert(name >= text && name < text + sizeof text && skv_fs_is_component(name));
	rc = look(fd, name, path, out, err);
	close(fd);
	return rc;
}

/* Of the length that is left, the bytes that one read looks at: a slot that was written is mostly
 * told from the first ones. */
static uint64_t next_read(uint64_t done, uint64_t left, size_t room)
{
	const uint64_t n = done ? room : 4096;

	return n < left ? n : left;
}

static const uint8_t zeros[65536];

/* 0 or an errno. A file that ends before has no bytes there. */
static int read_zeros(int fd, uint64_t at, uint64_t length, bool *zero)
{
	uint8_t bytes[sizeof zeros];
	int error = 0;
	size_t got;

	*zero = true;
	for (uint64_t done = 0; error == 0 && *zero && done < length; done += got) {
		error = skv_fs_read(fd, at + done, bytes,
				    next_read(done, length - done, sizeof bytes), &got);
		if (error != 0 || got == 0)
			break;
		*zero = memcmp(bytes, zeros, got) == 0;
	}
	return error;
}

/* 0 or an errno. The path is `root`, whose symbolic links are followed, and a name. The time of
 * access is left alone where this process may do so (its own files): it would be written at every
 * look. */
static int open_slab(const char *root, const char *name, int *fd)
{
	const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	char path[PATH_MAX];
	int n = snprintf(path, sizeof path, "%s/%s", root, name);

	assert(skv_fs_is_component(name));
	if (n < 0 || (size_t)n >= sizeof path)
		return ENAMETOOLONG;
	*fd = open(path, flags | O_NOATIME);
	if (*fd < 0 && errno == EPERM)
		*fd = open(path, flags);
	return *fd < 0 ? errno : 0;
}

static int time_of_change(int fd, uint64_t *out)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_MTIME, &st) != 0)
		return errno;
	*out = (uint64_t)st.stx_mtime.tv_sec * 1000000000u + st.stx_mtime.tv_nsec;
	return 0;
}

static bool is_local(const struct statfs *v)
{
	return v->f_type == EXT4_SUPER_MAGIC || v->f_type == XFS_SUPER_MAGIC ||
	       v->f_type == BTRFS_SUPER_MAGIC || v->f_type == TMPFS_MAGIC;
}

int skv_file_look_at(const char *root, const char *path, uint64_t offset, uint64_t length,
		     struct skv_file_bytes *out, struct skv_error *err)
{
	struct skv_file_bytes found = { .zero = false };
	struct statfs v = { 0 };
	int fd, error = open_slab(root, path, &fd);

	if (error != 0)
		return skv_fs_fail(err, error, "cannot open the slab file", path);
	error = fstatfs(fd, &v) == 0 ? time_of_change(fd, &found.changed_ns) : errno;
	if (error == 0 && v.f_type != FUSE_SUPER_MAGIC)
		error = read_zeros(fd, offset, length, &found.zero);
	close(fd);
	if (error != 0)
		return skv_fs_fail(err, error, "cannot look at the slab file", path);
	if (v.f_type == FUSE_SUPER_MAGIC)
		return skv_fail(err, SKV_E_UNSUPPORTED, NULL, "%s is on FUSE", path);
	found.local = is_local(&v);
	*out = found;
	return SKV_OK;
}

int skv_file_glance_at(const char *root, const char *path, uint64_t offset, uint64_t length,
		       struct skv_file_bytes *out, struct skv_error *err)
{
	struct skv_file_bytes found = { .local = true };
	uint8_t bytes[4096];
	struct iovec room = { bytes, next_read(0, length, sizeof bytes) };
	int fd, error = open_slab(root, path, &fd);
	ssize_t got = 0;

	if (error != 0)
		return skv_fs_fail(err, error, "cannot open the slab file", path);
	error = time_of_change(fd, &found.changed_ns);
	if (error == 0)
		got = preadv2(fd, &room, 1, (off_t)offset, RWF_NOWAIT);
	close(fd);
	if (error != 0 || got < 0)
		return skv_fail(err, SKV_E_UNAVAILABLE, NULL, "%s is not in memory", path);
	found.zero = memcmp(bytes, zeros, (size_t)got) == 0;
	*out = found;
	return SKV_OK;
}

int skv_file_looker_open(const char *const *masters, uint32_t n_masters, const char *token_file,
			 struct skv_file_looker **out, struct skv_error *err)
{
	const struct skv_storage_config c = { .name = "page files", .masters = masters,
					      .n_masters = n_masters,
					      .token_file = token_file };
	struct skv_file_looker *l;
	int rc = SKV_OK;

	if (n_masters > SKV_MAX_FS_MASTERS)
		return skv_fail(err, SKV_E_INVALID, "fs_master", "%u at most", SKV_MAX_FS_MASTERS);
	l = skv_calloc(1, sizeof *l);
	if (!l)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	if (n_masters)
		rc = skv_remote_make("file", &c, &l->remote, err);
	if (rc == SKV_OK)
		*out = l;
	else
		skv_free(l);
	return rc;
}

void skv_file_looker_close(struct skv_file_looker *l)
{
	if (l && l->remote)
		skv_remote.close(l->remote);
	skv_free(l);
}

int skv_file_looker_look(struct skv_file_looker *l, const char *dir, const char *path,
			 struct skv_file_look *out, struct skv_error *err)
{
	return l->remote ? skv_remote_look(l->remote, path, out, err)
			 : skv_file_look(-1, dir, path, out, err);
}
