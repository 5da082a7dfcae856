/*
 * files.c - operations on files: open, read, write, length, ioctls. As in 3FS, what is written
 * through the kernel without O_DIRECT waits in a buffer of the daemon (1 MiB a file) until it is
 * full, the file is closed or synced, or a write lands elsewhere; rings, and other hosts, do not
 * see it before. Pages read without O_DIRECT stay in the kernel's cache.
 */
#include "stand.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WRITE_BUFFER ((uint64_t)1 << 20)

/* An open file; the inode is referenced and its descriptor in use. */
struct handle {
	struct inode *inode;
	bool direct, writes;
};

static struct handle *handle_of(const struct fuse_file_info *fi)
{
	return (struct handle *)(uintptr_t)fi->fh;
}

static struct handle *handle_new(struct inode *i, int flags, struct fuse_file_info *fi)
{
	struct handle *h = calloc(1, sizeof *h);

	if (!h)
		return NULL;
	*h = (struct handle){ .inode = i, .direct = flags & O_DIRECT,
			      .writes = (flags & O_ACCMODE) != O_RDONLY };
	fi->fh = (uintptr_t)h;
	fi->direct_io = h->direct;
	return h;
}

static int flush_buffer(struct inode *i)
{
	int64_t n = i->buf_len ? chunk_write(i, i->buf_off, i->buf_len, i->buf) : 0;

	i->buf_len = 0;
	return n < 0 ? (int)-n : 0;
}

static int flush_file(struct inode *i)
{
	int error;

	pthread_mutex_lock(&i->buf_lock);
	error = flush_buffer(i);
	pthread_mutex_unlock(&i->buf_lock);
	return error;
}

static int put_in_buffer(struct inode *i, uint64_t off, uint64_t n, const char *from)
{
	int error = 0;

	if (!i->buf && !(i->buf = malloc(WRITE_BUFFER)))
		return ENOMEM;
	if (i->buf_len && i->buf_off + i->buf_len != off)
		error = flush_buffer(i);
	while (n > 0 && error == 0) {
		uint64_t part = WRITE_BUFFER - i->buf_len < n ? WRITE_BUFFER - i->buf_len : n;

		if (i->buf_len == 0)
			i->buf_off = off;
		memcpy(i->buf + i->buf_len, from, part);
		i->buf_len += part;
		off += part;
		from += part;
		n -= part;
		if (i->buf_len == WRITE_BUFFER)
			error = flush_buffer(i);
	}
	return error;
}

static void op_getattr(fuse_req_t req, fuse_ino_t n, struct fuse_file_info *fi)
{
	struct inode *i = inode_of(n);
	struct stat st;
	int error;

	(void)fi;
	if (virt_getattr(req, n))
		return;
	count(N_getattr, 1);
	error = inode_stat(i, &st);
	if (error == 0 && S_ISREG(st.st_mode)) { /* the length knows of what waits in the buffer */
		pthread_mutex_lock(&i->buf_lock);
		if (i->buf_len && (uint64_t)st.st_size < i->buf_off + i->buf_len)
			st.st_size = (off_t)(i->buf_off + i->buf_len);
		pthread_mutex_unlock(&i->buf_lock);
	}
	if (error != 0)
		fuse_reply_err(req, error);
	else
		fuse_reply_attr(req, &st, opt.attr_timeout);
}

static int set_length(struct inode *i, uint64_t length)
{
	int error = inode_open(i);

	if (error != 0)
		return error;
	count(N_truncate, 1);
	error = flush_file(i);
	if (error == 0)
		error = chunk_truncate(i, length);
	inode_close(i);
	return error;
}

static int set_times(const struct inode *i, const struct stat *st, int what)
{
	struct timespec t[2] = { st->st_atim, st->st_mtim };

	t[0].tv_nsec = what & FUSE_SET_ATTR_ATIME_NOW ? UTIME_NOW
		       : what & FUSE_SET_ATTR_ATIME   ? t[0].tv_nsec
						      : UTIME_OMIT;
	t[1].tv_nsec = what & FUSE_SET_ATTR_MTIME_NOW ? UTIME_NOW
		       : what & FUSE_SET_ATTR_MTIME   ? t[1].tv_nsec
						      : UTIME_OMIT;
	return utimensat(i->parent->fd, i->name, t, AT_SYMLINK_NOFOLLOW) == 0 ? 0 : errno;
}

static int set_attributes(struct inode *i, const struct stat *st, int what)
{
	int error = 0;

	if (what & FUSE_SET_ATTR_SIZE)
		error = set_length(i, (uint64_t)st->st_size);
	if (error != 0 || !(what & ~FUSE_SET_ATTR_SIZE) || !i->parent)
		return error;
	if (!i->name)
		return ESTALE;
	if (what & FUSE_SET_ATTR_MODE &&
	    fchmodat(i->parent->fd, i->name, st->st_mode & 07777, 0) != 0)
		return errno;
	if (what & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID) &&
	    fchownat(i->parent->fd, i->name, what & FUSE_SET_ATTR_UID ? st->st_uid : (uid_t)-1,
		     what & FUSE_SET_ATTR_GID ? st->st_gid : (gid_t)-1, AT_SYMLINK_NOFOLLOW) != 0)
		return errno;
	return what & (FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME) ? set_times(i, st, what) : 0;
}

static void op_setattr(fuse_req_t req, fuse_ino_t n, struct stat *st, int what,
		       struct fuse_file_info *fi)
{
	struct inode *i = inode_of(n);
	struct stat now;
	int error;

	(void)fi;
	if (fault_readonly() || is_virt(n)) {
		fuse_reply_err(req, is_virt(n) ? EPERM : EROFS);
		return;
	}
	count(N_setattr, 1);
	error = set_attributes(i, st, what);
	if (error == 0)
		error = inode_stat(i, &now);
	if (error != 0)
		fuse_reply_err(req, error);
	else
		fuse_reply_attr(req, &now, opt.attr_timeout);
}

static void op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
		      struct fuse_file_info *fi)
{
	struct fuse_entry_param e = { .attr_timeout = opt.attr_timeout,
				      .entry_timeout = opt.attr_timeout };
	struct inode *dir, *i;
	int fd, error = is_virt(parent) ? EPERM : fault_of_create();

	if (error != 0) {
		fuse_reply_err(req, error);
		return;
	}
	count(N_create, 1);
	dir = inode_of(parent);
	fd = openat(dir->fd, name,
		    (fi->flags & (O_EXCL | O_TRUNC)) | O_CREAT | O_RDWR | O_NOFOLLOW | O_CLOEXEC,
		    mode & ~fuse_req_ctx(req)->umask & 07777);
	if (fd < 0 || fstat(fd, &e.attr) != 0) {
		fuse_reply_err(req, errno);
		return;
	}
	i = inode_found(dir, name, &e.attr);
	if (!i) {
		close(fd);
		fuse_reply_err(req, ENOMEM);
		return;
	}
	inode_opened(i, fd);
	e.ino = i->number;
	inode_present(i, &e.attr);
	if (!handle_new(i, fi->flags, fi)) {
		inode_close(i);
		fuse_reply_err(req, ENOMEM);
	} else {
		fuse_reply_create(req, &e, fi);
	}
}

static void op_open(fuse_req_t req, fuse_ino_t n, struct fuse_file_info *fi)
{
	bool writes = (fi->flags & O_ACCMODE) != O_RDONLY || fi->flags & O_TRUNC;
	struct inode *i = inode_of(n);
	int error = writes && fault_readonly() ? EROFS : 0;

	if (virt_open(req, n, fi))
		return;
	count(writes ? N_open_write : N_open_read, 1);
	if (error == 0)
		error = inode_open(i);
	if (error == 0 && fi->flags & O_TRUNC) {
		error = chunk_truncate(i, 0);
		if (error != 0)
			inode_close(i);
	}
	if (error == 0 && !handle_new(i, fi->flags, fi)) {
		inode_close(i);
		error = ENOMEM;
	}
	if (error != 0)
		fuse_reply_err(req, error);
	else
		fuse_reply_open(req, fi);
}

static void op_read(fuse_req_t req, fuse_ino_t n, size_t size, off_t off, struct fuse_file_info *fi)
{
	struct handle *h = handle_of(fi);
	int64_t got;
	char *to;

	if (virt_read(req, n, size, off, fi))
		return;
	count(N_read, 1);
	to = malloc(size ? size : 1);
	got = to ? -flush_file(h->inode) : -ENOMEM;
	if (got == 0)
		got = chunk_read(h->inode, (uint64_t)off, size, to, false);
	if (got < 0) {
		fuse_reply_err(req, (int)-got);
	} else {
		count(N_read_bytes, (uint64_t)got);
		fuse_reply_buf(req, to, (size_t)got);
	}
	free(to);
}

static void op_write(fuse_req_t req, fuse_ino_t n, const char *from, size_t size, off_t off,
		     struct fuse_file_info *fi)
{
	struct handle *h = handle_of(fi);
	int error = 0;

	if (virt_write(req, n, from, size))
		return;
	count(N_write, 1);
	count(N_write_bytes, size);
	pthread_mutex_lock(&h->inode->buf_lock);
	if (fault_readonly()) {
		error = EROFS;
	} else if (!h->direct) {
		error = put_in_buffer(h->inode, (uint64_t)off, size, from);
	} else {
		error = flush_buffer(h->inode);
		if (error == 0) {
			int64_t done = chunk_write(h->inode, (uint64_t)off, size, from);

			error = done < 0 ? (int)-done : 0;
		}
	}
	pthread_mutex_unlock(&h->inode->buf_lock);
	if (error != 0)
		fuse_reply_err(req, error);
	else
		fuse_reply_write(req, size);
}

static int sync_file(struct inode *i, bool data_only)
{
	int error = flush_file(i);

	return error != 0 || data_only ? error : chunk_settle(i, false);
}

static void op_flush(fuse_req_t req, fuse_ino_t n, struct fuse_file_info *fi)
{
	if (is_virt(n)) {
		fuse_reply_err(req, 0);
		return;
	}
	count(N_flush, 1);
	fuse_reply_err(req, sync_file(handle_of(fi)->inode, false));
}

static void op_fsync(fuse_req_t req, fuse_ino_t n, int data_only, struct fuse_file_info *fi)
{
	if (is_virt(n)) {
		fuse_reply_err(req, 0);
		return;
	}
	count(data_only ? N_fdatasync : N_fsync, 1);
	fuse_reply_err(req, sync_file(handle_of(fi)->inode, data_only));
}

static void op_release(fuse_req_t req, fuse_ino_t n, struct fuse_file_info *fi)
{
	struct handle *h = handle_of(fi);
	int error = 0;

	if (virt_release(req, n, fi))
		return;
	count(N_release, 1);
	if (h->writes) {
		/* ends the write session; the length is settled if anything was
		 * written since the last time */
		count(N_close_write, 1);
		error = chunk_settle(h->inode, false);
	}
	inode_close(h->inode);
	free(h);
	fuse_reply_err(req, error);
}

static void op_fallocate(fuse_req_t req, fuse_ino_t n, int mode, off_t off, off_t len,
			 struct fuse_file_info *fi)
{
	(void)n, (void)mode, (void)off, (void)len, (void)fi;
	count(N_fallocate, 1);
	fuse_reply_err(req, EOPNOTSUPP);
}

/* ---- ioctls ---- */

static int ioctl_file(struct inode *i, unsigned cmd, const void *in)
{
	int error = inode_open(i);

	if (error != 0)
		return error;
	if (cmd == WIRE_IOC_FSYNC) {
		error = flush_file(i);
		if (error == 0)
			error = chunk_settle(i, true);
	} else {
		error = chunk_punch(i, in);
	}
	inode_close(i);
	return error;
}

static int ioctl_link(const struct inode *i, const struct wire_hardlink *a)
{
	struct inode *dir = inode_of(a->parent);

	if (!dir || !dir->is_dir || !memchr(a->name, 0, sizeof a->name) || strchr(a->name, '/'))
		return EINVAL;
	if (!i->name)
		return ESTALE;
	return linkat(i->parent->fd, i->name, dir->fd, a->name, 0) == 0 ? 0 : errno;
}

static int ioctl_move(struct inode *i, const struct wire_move *a)
{
	struct inode *dir = inode_of(a->to_parent);

	if (a->from_parent != i->number || !i->is_dir || !dir || !dir->is_dir ||
	    !memchr(a->from_name, 0, sizeof a->from_name) ||
	    !memchr(a->to_name, 0, sizeof a->to_name) || strchr(a->from_name, '/') ||
	    strchr(a->to_name, '/'))
		return EINVAL;
	return rename_name(i, a->from_name, dir, a->to_name);
}

static int ioctl_remove(const struct inode *i, const struct wire_remove *a)
{
	if (a->parent != i->number || !i->is_dir || !memchr(a->name, 0, sizeof a->name) ||
	    strchr(a->name, '/'))
		return EINVAL;
	if (a->recursive)
		return remove_tree(i->fd, a->name);
	return remove_name(i->fd, a->name, 0) == 0 ? 0 : remove_name(i->fd, a->name, AT_REMOVEDIR);
}

static int change(struct inode *i, unsigned cmd, const void *in)
{
	switch (cmd) {
	case WIRE_IOC_FSYNC:
	case WIRE_IOC_PUNCH:
		return ioctl_file(i, cmd, in);
	case WIRE_IOC_HARDLINK:
		return ioctl_link(i, in);
	case WIRE_IOC_MOVE:
		return ioctl_move(i, in);
	case WIRE_IOC_REMOVE:
		return ioctl_remove(i, in);
	case WIRE_IOC_RECURSIVE_RM:
		return i->name && i->parent ? remove_tree(i->parent->fd, i->name) : EINVAL;
	default:
		return EINVAL;
	}
}

static void op_ioctl(fuse_req_t req, fuse_ino_t n, unsigned cmd, void *arg,
		     struct fuse_file_info *fi, unsigned flags, const void *in, size_t in_size,
		     size_t out_size)
{
	struct wire_mount_name name = { "" };
	uint32_t number = cmd == WIRE_IOC_MAGIC     ? WIRE_MAGIC
			  : cmd == WIRE_IOC_VERSION ? 1
						    : (uint32_t)strlen(opt.mount);

	(void)arg, (void)fi;
	count(N_ioctl, 1);
	if (flags & FUSE_IOCTL_COMPAT) {
		fuse_reply_err(req, ENOSYS);
	} else if (cmd == WIRE_IOC_MOUNT_NAME && out_size >= sizeof name) {
		memcpy(name.name, opt.name, sizeof name.name);
		fuse_reply_ioctl(req, 0, &name, sizeof name);
	} else if ((cmd == WIRE_IOC_MAGIC || cmd == WIRE_IOC_VERSION ||
		    cmd == WIRE_IOC_PATH_OFFSET) &&
		   out_size >= 4) {
		fuse_reply_ioctl(req, 0, &number, sizeof number);
	} else if (is_virt(n) || (_IOC_DIR(cmd) == _IOC_WRITE && in_size < _IOC_SIZE(cmd))) {
		fuse_reply_err(req, EINVAL);
	} else {
		int error = change(inode_of(n), cmd, in);

		if (error != 0)
			fuse_reply_err(req, error);
		else
			fuse_reply_ioctl(req, 0, NULL, 0);
	}
}

void file_operations(struct fuse_lowlevel_ops *o)
{
	o->getattr = op_getattr;
	o->setattr = op_setattr;
	o->create = op_create;
	o->open = op_open;
	o->read = op_read;
	o->write = op_write;
	o->flush = op_flush;
	o->fsync = op_fsync;
	o->release = op_release;
	o->fallocate = op_fallocate;
	o->ioctl = op_ioctl;
}
