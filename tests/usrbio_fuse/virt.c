/*
 * virt.c - the folder 3fs-virt: `iovs`, whose links are shared memory and whose directory handles
 * stand for living clients; `rm-rf`, where a link to a path removes what is there; and what only
 * this stand-in has: `stats`, the counters, and `control`, which takes commands (faults.c).
 *
 * A client is known by the id of the thread that opened `iovs`: that is what FUSE tells, and what
 * 3FS compares with the thread that made a link. Links made by other threads of a dead client stay.
 */
#include "stand.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	VIRT = 0,
	IOVS,
	RM_RF,
	STATS,
	CONTROL,
	SEMAPHORES,
	KINDS = SEMAPHORES + 3,
	LINKS = 0x1000,
};

static const struct {
	const char *name;
	mode_t mode;
} things[KINDS] = {
	[VIRT] = { "3fs-virt", S_IFDIR | 0555 },
	[IOVS] = { "iovs", S_IFDIR | 0777 },
	[RM_RF] = { "rm-rf", S_IFDIR | 0777 },
	[STATS] = { "stats", S_IFREG | 0444 },
	[CONTROL] = { "control", S_IFREG | 0222 },
	[SEMAPHORES + 0] = { "submit-ios.ph", S_IFLNK | 0666 },
	[SEMAPHORES + 1] = { "submit-ios", S_IFLNK | 0666 },
	[SEMAPHORES + 2] = { "submit-ios.pl", S_IFLNK | 0666 },
};

static bool is(fuse_ino_t n, unsigned kind) { return n == VIRT_FIRST + kind; }
static bool is_thing(fuse_ino_t n) { return n >= VIRT_FIRST && n < VIRT_FIRST + KINDS; }

static void thing_stat(unsigned kind, struct stat *st)
{
	memset(st, 0, sizeof *st);
	st->st_ino = VIRT_FIRST + kind;
	st->st_mode = things[kind].mode;
	st->st_nlink = 1;
	if (S_ISLNK(st->st_mode))
		st->st_size = (off_t)strlen(ring_semaphore((int)kind - SEMAPHORES));
}

static void link_stat(const struct iov *v, struct stat *st)
{
	memset(st, 0, sizeof *st);
	st->st_ino = v->number;
	st->st_mode = S_IFLNK | 0400;
	st->st_nlink = 1;
	st->st_uid = v->uid;
	st->st_gid = v->gid;
	st->st_size = (off_t)strlen(v->target);
}

static void reply_stat_entry(fuse_req_t req, const struct stat *st)
{
	struct fuse_entry_param e = { .ino = st->st_ino, .attr = *st };

	fuse_reply_entry(req, &e);
}

static bool lookup_thing(fuse_req_t req, unsigned first, unsigned end, const char *name)
{
	struct stat st;

	for (unsigned k = first; k < end; k++)
		if (strcmp(things[k].name, name) == 0) {
			thing_stat(k, &st);
			reply_stat_entry(req, &st);
			return true;
		}
	return false;
}

bool virt_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct iov v;
	struct stat st;
	int error;

	if (parent == FUSE_ROOT_ID)
		return lookup_thing(req, VIRT, VIRT + 1, name);
	if (!is_virt(parent))
		return false;
	if (is(parent, VIRT) && lookup_thing(req, IOVS, SEMAPHORES, name))
		return true;
	if (is(parent, IOVS) && lookup_thing(req, SEMAPHORES, KINDS, name))
		return true;
	error = is(parent, IOVS) ? iov_by_key(name, fuse_req_ctx(req)->uid, &v) : ENOENT;
	if (error != 0) {
		fuse_reply_err(req, error);
		return true;
	}
	link_stat(&v, &st);
	reply_stat_entry(req, &st);
	return true;
}

bool virt_getattr(fuse_req_t req, fuse_ino_t n)
{
	struct iov v;
	struct stat st;
	int error;

	if (!is_virt(n))
		return false;
	if (is_thing(n)) {
		thing_stat((unsigned)(n - VIRT_FIRST), &st);
		fuse_reply_attr(req, &st, 0);
		return true;
	}
	error = iov_by_number(n, fuse_req_ctx(req)->uid, &v);
	if (error != 0) {
		fuse_reply_err(req, error);
		return true;
	}
	link_stat(&v, &st);
	fuse_reply_attr(req, &st, 0);
	return true;
}

bool virt_readlink(fuse_req_t req, fuse_ino_t n)
{
	struct iov v;
	int error;

	if (!is_virt(n))
		return false;
	if (is_thing(n)) {
		if (n < VIRT_FIRST + SEMAPHORES)
			fuse_reply_err(req, EINVAL);
		else
			fuse_reply_readlink(req,
					    ring_semaphore((int)(n - VIRT_FIRST) - SEMAPHORES));
		return true;
	}
	error = iov_by_number(n, fuse_req_ctx(req)->uid, &v);
	if (error != 0)
		fuse_reply_err(req, error);
	else
		fuse_reply_readlink(req, v.target);
	return true;
}

static int remove_path(const char *path)
{
	size_t n = strlen(opt.mount);
	const struct inode *root = inode_of(FUSE_ROOT_ID);

	if (strncmp(path, opt.mount, n) != 0 || path[n] != '/' || path[n + 1] == '\0' ||
	    strstr(path, ".."))
		return EINVAL;
	return remove_tree(root->fd, path + n + 1);
}

bool virt_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
	struct iov v = { .number = VIRT_FIRST + LINKS - 1 };
	struct stat st;
	int error;

	if (!is_virt(parent))
		return false;
	if (is(parent, IOVS))
		error = iov_add(name, target, fuse_req_ctx(req), &v);
	else
		error = is(parent, RM_RF) ? remove_path(target) : EPERM;
	if (error != 0) {
		fuse_reply_err(req, error);
		return true;
	}
	link_stat(&v, &st);
	reply_stat_entry(req, &st);
	return true;
}

bool virt_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	if (!is_virt(parent))
		return false;
	if (!is(parent, IOVS) || strncmp(name, "submit-ios", 10) == 0)
		fuse_reply_err(req, EPERM);
	else
		fuse_reply_err(req, iov_remove(name, fuse_req_ctx(req)->uid));
	return true;
}

/* The text of `stats` as of its open. */
struct text {
	char *text;
	size_t length;
};

bool virt_open(fuse_req_t req, fuse_ino_t n, struct fuse_file_info *fi)
{
	struct text *t;

	if (!is_virt(n))
		return false;
	t = calloc(1, sizeof *t);
	if (t && is(n, STATS))
		t->text = stats_text(&t->length);
	if (!t || (is(n, STATS) && !t->text)) {
		free(t);
		fuse_reply_err(req, ENOMEM);
		return true;
	}
	fi->fh = (uintptr_t)t;
	fi->direct_io = 1;
	fuse_reply_open(req, fi);
	return true;
}

/* A copy is sent: what was read may be released by another thread before the reply
 * is back from the kernel. */
bool virt_read(fuse_req_t req, fuse_ino_t n, size_t size, off_t off, struct fuse_file_info *fi)
{
	const struct text *t = (const struct text *)(uintptr_t)fi->fh;
	char *copy;

	if (!is_virt(n))
		return false;
	copy = t->text && (size_t)off < t->length ? strndup(t->text + off, size) : NULL;
	fuse_reply_buf(req, copy, copy ? strlen(copy) : 0);
	free(copy);
	return true;
}

bool virt_write(fuse_req_t req, fuse_ino_t n, const char *text, size_t size)
{
	char *copy;
	int error;

	if (!is_virt(n))
		return false;
	copy = strndup(text, size);
	error = !copy ? ENOMEM : is(n, CONTROL) ? fault_command(copy) : EPERM;
	free(copy);
	if (error != 0)
		fuse_reply_err(req, error);
	else
		fuse_reply_write(req, size);
	return true;
}

bool virt_release(fuse_req_t req, fuse_ino_t n, struct fuse_file_info *fi)
{
	struct text *t = (struct text *)(uintptr_t)fi->fh;

	if (!is_virt(n))
		return false;
	free(t->text);
	free(t);
	fuse_reply_err(req, 0);
	return true;
}

bool virt_opendir(fuse_req_t req, fuse_ino_t n, struct fuse_file_info *fi)
{
	if (!is_virt(n))
		return false;
	fi->fh = (uint64_t)fuse_req_ctx(req)->pid;
	fuse_reply_open(req, fi);
	return true;
}

bool virt_readdir(fuse_req_t req, fuse_ino_t n, size_t size, off_t off)
{
	unsigned first = is(n, VIRT) ? IOVS : SEMAPHORES, end = is(n, VIRT) ? SEMAPHORES : KINDS;
	size_t used = 0;
	struct iov v;
	char *text;

	if (!is_virt(n))
		return false;
	text = malloc(size);
	if (!text) {
		fuse_reply_err(req, ENOMEM);
		return true;
	}
	for (; !is(n, RM_RF) && first + (unsigned)off < end; off++) {
		unsigned k = first + (unsigned)off;

		if (!add_name(req, text, size, &used, things[k].name, VIRT_FIRST + k,
			      things[k].mode, off + 1))
			break;
	}
	for (; is(n, IOVS) && iov_nth((int)off - 3, fuse_req_ctx(req)->uid, &v); off++)
		if (!add_name(req, text, size, &used, v.key, v.number, S_IFLNK, off + 1))
			break;
	fuse_reply_buf(req, text, used);
	free(text);
	return true;
}

/* Comes when the last process that has the handle closed it or died. */
bool virt_releasedir(fuse_req_t req, fuse_ino_t n, struct fuse_file_info *fi)
{
	if (!is_virt(n))
		return false;
	if (is(n, IOVS))
		iov_remove_of((pid_t)fi->fh);
	fuse_reply_err(req, 0);
	return true;
}
