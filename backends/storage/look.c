/*
 * look.c - stats files of clients, on a mount here or through fs-masters.
 *
 * A looker owns what it needs to ask fs-masters; without them it holds nothing. No locks;
 * blocks with the file system.
 */
#include "fs.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
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
