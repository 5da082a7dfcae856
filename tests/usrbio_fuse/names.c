/* names.c - operations on names: each one on the local directory, and what
 * it changes of the inodes. */
#include "stand.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Answers with what `name` is now. */
static int find(struct inode *parent, const char *name, struct fuse_entry_param *e,
		struct inode **out)
{
	memset(e, 0, sizeof *e);
	if (fstatat(parent->fd, name, &e->attr, AT_SYMLINK_NOFOLLOW) != 0)
		return errno;
	*out = inode_found(parent, name, &e->attr);
	if (!*out)
		return ENOMEM;
	e->ino = (*out)->number;
	e->attr_timeout = e->entry_timeout = opt.attr_timeout;
	inode_present(*out, &e->attr);
	return 0;
}

static void reply_found(fuse_req_t req, struct inode *parent, const char *name)
{
	struct fuse_entry_param e;
	struct inode *i;
	int error = find(parent, name, &e, &i);

	if (error != 0)
		fuse_reply_err(req, error);
	else
		fuse_reply_entry(req, &e);
}

static bool refused(fuse_req_t req, fuse_ino_t a, fuse_ino_t b)
{
	int error = fault_readonly() ? EROFS : is_virt(a) || is_virt(b) ? EPERM : 0;

	if (error != 0)
		fuse_reply_err(req, error);
	return error != 0;
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	if (virt_lookup(req, parent, name))
		return;
	count(N_lookup, 1);
	reply_found(req, inode_of(parent), name);
}

static void op_forget(fuse_req_t req, fuse_ino_t n, uint64_t lookups)
{
	if (!is_virt(n))
		inode_forget(n, lookups);
	fuse_reply_none(req);
}

static void op_forget_multi(fuse_req_t req, size_t n, struct fuse_forget_data *f)
{
	for (size_t k = 0; k < n; k++)
		if (!is_virt(f[k].ino))
			inode_forget(f[k].ino, f[k].nlookup);
	fuse_reply_none(req);
}

static void op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t dev)
{
	const struct fuse_ctx *who = fuse_req_ctx(req);
	struct inode *dir;

	(void)dev;
	if (refused(req, parent, 0))
		return;
	count(N_create, 1);
	dir = inode_of(parent);
	if (!S_ISREG(mode))
		fuse_reply_err(req, ENOSYS);
	else if (mknodat(dir->fd, name, mode & ~who->umask, 0) != 0)
		fuse_reply_err(req, errno);
	else
		reply_found(req, dir, name);
}

static void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	struct inode *dir;

	if (refused(req, parent, 0))
		return;
	count(N_mkdir, 1);
	dir = inode_of(parent);
	if (mkdirat(dir->fd, name, mode & ~fuse_req_ctx(req)->umask) != 0)
		fuse_reply_err(req, errno);
	else
		reply_found(req, dir, name);
}

static void op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	if (virt_unlink(req, parent, name) || refused(req, parent, 0))
		return;
	count(N_unlink, 1);
	fuse_reply_err(req, remove_name(inode_of(parent)->fd, name, 0));
}

static void op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	if (refused(req, parent, 0))
		return;
	count(N_rmdir, 1);
	fuse_reply_err(req, remove_name(inode_of(parent)->fd, name, AT_REMOVEDIR));
}

/* Also "mv:PATH", which 3FS takes for a rename, is an ordinary link here: nobody of ours uses
 * it. */
static void op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
	struct inode *dir;

	if (virt_symlink(req, target, parent, name) || refused(req, parent, 0))
		return;
	count(N_symlink, 1);
	dir = inode_of(parent);
	if (symlinkat(target, dir->fd, name) != 0)
		fuse_reply_err(req, errno);
	else
		reply_found(req, dir, name);
}

static void op_readlink(fuse_req_t req, fuse_ino_t n)
{
	struct inode *i = inode_of(n);
	char to[4096];
	ssize_t k;

	if (virt_readlink(req, n))
		return;
	count(N_readlink, 1);
	k = i->name ? readlinkat(i->parent->fd, i->name, to, sizeof to - 1) : -1;
	if (k < 0) {
		fuse_reply_err(req, i->name ? errno : ESTALE);
		return;
	}
	to[k] = '\0';
	fuse_reply_readlink(req, to);
}

static void op_rename(fuse_req_t req, fuse_ino_t from, const char *name, fuse_ino_t to,
		      const char *new_name, unsigned flags)
{
	if (refused(req, from, to))
		return;
	if (flags != 0) { /* as 3FS does: no RENAME_NOREPLACE */
		fuse_reply_err(req, ENOSYS);
		return;
	}
	count(N_rename, 1);
	fuse_reply_err(req, rename_name(inode_of(from), name, inode_of(to), new_name));
}

static void op_link(fuse_req_t req, fuse_ino_t n, fuse_ino_t parent, const char *name)
{
	struct inode *i = inode_of(n), *dir;

	if (refused(req, n, parent))
		return;
	count(N_link, 1);
	dir = inode_of(parent);
	if (!i->name || linkat(i->parent->fd, i->name, dir->fd, name, 0) != 0)
		fuse_reply_err(req, i->name ? errno : ESTALE);
	else
		reply_found(req, dir, name);
}

/* ---- directories ---- */

struct listing {
	DIR *dir;
	/* Entries told so far: the offsets of the kernel; what it asks again begins anew. */
	off_t at;
};

static void op_opendir(fuse_req_t req, fuse_ino_t n, struct fuse_file_info *fi)
{
	struct listing *l;
	int fd;

	if (virt_opendir(req, n, fi))
		return;
	count(N_opendir, 1);
	l = calloc(1, sizeof *l);
	fd = openat(inode_of(n)->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (l && fd >= 0)
		l->dir = fdopendir(fd);
	if (!l || !l->dir) {
		int error = l ? errno : ENOMEM;

		if (fd >= 0)
			close(fd);
		free(l);
		fuse_reply_err(req, error);
		return;
	}
	fi->fh = (uintptr_t)l;
	if (fuse_reply_open(req, fi) != 0) {
		closedir(l->dir);
		free(l);
	}
}

bool add_name(fuse_req_t req, char *to, size_t size, size_t *used, const char *name,
	      uint64_t number, mode_t type, off_t next)
{
	struct stat st = { .st_ino = number, .st_mode = type };
	size_t n = fuse_add_direntry(req, to + *used, size - *used, name, &st, next);

	if (n > size - *used)
		return false;
	*used += n;
	return true;
}

static void list(fuse_req_t req, struct listing *l, char *text, size_t size, size_t *used)
{
	for (;;) {
		long here = telldir(l->dir);
		const struct dirent *e = readdir(l->dir);

		if (!e)
			return;
		if (!add_name(req, text, size, used, e->d_name, e->d_ino, DTTOIF(e->d_type),
			      l->at + 1)) {
			seekdir(l->dir, here);
			return;
		}
		l->at++;
	}
}

/* 3fs-virt is the first entry of the root. */
static void op_readdir(fuse_req_t req, fuse_ino_t n, size_t size, off_t off,
		       struct fuse_file_info *fi)
{
	struct listing *l = (struct listing *)(uintptr_t)fi->fh;
	bool root = n == FUSE_ROOT_ID;
	size_t used = 0;
	char *text;

	if (virt_readdir(req, n, size, off))
		return;
	count(N_readdir, 1);
	text = malloc(size);
	if (!text) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	if (off != l->at || off == 0) {
		rewinddir(l->dir);
		for (l->at = root; l->at < off && readdir(l->dir); l->at++)
			;
	}
	if (root && off == 0)
		add_name(req, text, size, &used, "3fs-virt", VIRT_FIRST, S_IFDIR, 1);
	list(req, l, text, size, &used);
	fuse_reply_buf(req, text, used);
	free(text);
}

static void op_releasedir(fuse_req_t req, fuse_ino_t n, struct fuse_file_info *fi)
{
	struct listing *l = (struct listing *)(uintptr_t)fi->fh;

	if (virt_releasedir(req, n, fi))
		return;
	closedir(l->dir);
	free(l);
	fuse_reply_err(req, 0);
}

static void op_fsyncdir(fuse_req_t req, fuse_ino_t n, int datasync, struct fuse_file_info *fi)
{
	(void)n, (void)datasync, (void)fi;
	fuse_reply_err(req, 0);
}

static void op_statfs(fuse_req_t req, fuse_ino_t n)
{
	struct statvfs v;

	(void)n;
	count(N_statfs, 1);
	if (statvfs(opt.root, &v) != 0) {
		fuse_reply_err(req, errno);
		return;
	}
	if (!fault_space(&v)) { /* in units of 2 MiB, as 3FS tells it */
		v.f_blocks = v.f_blocks * v.f_frsize >> 21;
		v.f_bavail = v.f_bfree = v.f_bavail * v.f_frsize >> 21;
	}
	v.f_bsize = v.f_frsize = 2u << 20;
	v.f_namemax = 255;
	fuse_reply_statfs(req, &v);
}

/* ---- used by ioctls and 3fs-virt/rm-rf ---- */

static int remove_below(int dir, const char *name)
{
	int error = 0, fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (!d) {
		if (fd >= 0)
			close(fd);
		return errno;
	}
	while (error == 0 && (e = readdir(d)) != NULL)
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			error = remove_tree(fd, e->d_name);
	closedir(d);
	return error;
}

int remove_tree(int dir, const char *name)
{
	int error = remove_name(dir, name, 0);

	if (error != EISDIR && error != EPERM)
		return error;
	error = remove_below(dir, name);
	return error != 0 ? error : remove_name(dir, name, AT_REMOVEDIR);
}

void name_operations(struct fuse_lowlevel_ops *o)
{
	o->lookup = op_lookup;
	o->forget = op_forget;
	o->forget_multi = op_forget_multi;
	o->mknod = op_mknod;
	o->mkdir = op_mkdir;
	o->unlink = op_unlink;
	o->rmdir = op_rmdir;
	o->symlink = op_symlink;
	o->readlink = op_readlink;
	o->rename = op_rename;
	o->link = op_link;
	o->opendir = op_opendir;
	o->readdir = op_readdir;
	o->releasedir = op_releasedir;
	o->fsyncdir = op_fsyncdir;
	o->statfs = op_statfs;
}
