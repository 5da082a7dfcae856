/*
 * fs.c - file system steps for the `file` storage: complete reads and writes, real allocation, and
 * files that appear under their name only when they are complete and on stable media.
 *
 * No state and no locks of its own. Called from whatever thread called the storage; every function
 * can block for as long as the file system does.
 *
 * Never here: a name with a slash, a followed symbolic link, posix_fallocate. Its emulation writes
 * a byte per block where fallocate(2) is missing, which on file systems with large chunks means a
 * read and a rewrite of a chunk each time; plain zeros, written in order, are honest and faster.
 */
#include "fs.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <skv/hash.h>
#include <skv/mem.h>

#define TEMP_PREFIX ".slabkv-tmp-"
#define TEMP_TRIES 100
#define ZEROS ((size_t)1 << 20)

int skv_fs_status(int error)
{
	switch (error) {
	case ENOSPC:
	case EDQUOT:
		return SKV_E_NO_SPACE;
	case ENOMEM:
		return SKV_E_NOMEM;
	case ELOOP:
	case EISDIR:
		return SKV_E_FOREIGN;
	case EFBIG:
	case ENAMETOOLONG:
		return SKV_E_INVALID;
	case EACCES:
	case EPERM:
	case EROFS:
	case ENOENT:
	case ENOTDIR:
	case ENODEV:
	case ENXIO:
	case ESTALE:
	case ENOTCONN:
	case ETIMEDOUT:
	case EHOSTDOWN:
		return SKV_E_UNAVAILABLE;
	default:
		return SKV_E_IO;
	}
}

int skv_fs_fail(struct skv_error *err, int error, const char *what, const char *path)
{
	char text[128];

	return skv_fail(err, skv_fs_status(error), NULL, "%s: %s (%s)", what,
			strerror_r(error, text, sizeof text), path);
}

bool skv_fs_is_component(const char *name)
{
	return name[0] && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

int skv_fs_open_dir(int below, const char *name, int *dir)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

	*dir = below < 0 ? open(name, flags) : openat(below, name, flags | O_NOFOLLOW);
	return *dir < 0 ? errno : 0;
}

int skv_fs_open(int dir, const char *name, int *fd)
{
	assert(skv_fs_is_component(name));
	*fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	return *fd < 0 ? errno : 0;
}

int skv_fs_open_direct(int dir, const char *name, int *fd)
{
	assert(skv_fs_is_component(name));
	*fd = openat(dir, name, O_RDONLY | O_DIRECT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	return *fd >= 0 ? 0 : errno == EINVAL ? skv_fs_open(dir, name, fd) : errno;
}

int skv_fs_read(int fd, uint64_t at, void *out, size_t n, size_t *got)
{
	*got = 0;
	while (*got < n) {
		ssize_t k = pread(fd, (char *)out + *got, n - *got, (off_t)(at + *got));

		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return errno;
		if (k == 0)
			break;
		*got += (size_t)k;
	}
	return 0;
}

int skv_fs_write(int fd, uint64_t at, const void *p, size_t n)
{
	assert(at <= INT64_MAX - n);
	for (size_t done = 0; done < n;) {
		ssize_t k = pwrite(fd, (const char *)p + done, n - done, (off_t)(at + done));

		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return errno;
		if (k == 0)
			return EIO;
		done += (size_t)k;
	}
	return 0;
}

static int write_zeros(int fd, uint64_t length)
{
	void *zeros = skv_calloc(1, ZEROS);
	int error = zeros ? 0 : ENOMEM;

	for (uint64_t at = 0; error == 0 && at < length; at += ZEROS)
		error = skv_fs_write(fd, at, zeros,
				     length - at < ZEROS ? (size_t)(length - at) : ZEROS);
	skv_free(zeros);
	return error;
}

int skv_fs_allocate(int fd, uint64_t length)
{
	int error;

	assert(length > 0 && length <= INT64_MAX);
	do
		error = fallocate(fd, 0, 0, (off_t)length) == 0 ? 0 : errno;
	while (error == EINTR);
	return error == EOPNOTSUPP || error == ENOSYS ? write_zeros(fd, length) : error;
}

int skv_fs_set_length(int fd, uint64_t length)
{
	int error;

	assert(length <= INT64_MAX);
	do
		error = ftruncate(fd, (off_t)length) == 0 ? 0 : errno;
	while (error == EINTR);
	return error;
}

bool skv_fs_is_temp(const char *name)
{
	return strncmp(name, TEMP_PREFIX, sizeof TEMP_PREFIX - 1) == 0;
}

/* File systems without flock(2) return other errors than this one: then we continue without. */
static bool held_by_another(int fd)
{
	return flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

static bool still_has_its_name(int dir, const struct skv_fs_temp *t)
{
	struct stat there, ours;

	return fstatat(dir, t->name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
	       fstat(t->fd, &ours) == 0 && there.st_dev == ours.st_dev &&
	       there.st_ino == ours.st_ino;
}

/* Between making and locking a file, a sweep may take it for a leftover. Then we make another one:
 * waiting for the sweeper instead could be for ever, should it have been stopped. The umask decides
 * whether the group may use the file: clients often run as another user. */
int skv_fs_temp_open(int dir, struct skv_fs_temp *t)
{
	for (int i = 0; i < TEMP_TRIES; i++) {
		uint64_t number;

		skv_random(&number, sizeof number);
		snprintf(t->name, sizeof t->name, "%s%016llx", TEMP_PREFIX,
			 (unsigned long long)number);
		assert(skv_fs_is_temp(t->name) && skv_fs_is_component(t->name));
		t->fd = openat(dir, t->name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			       SKV_FILE_MODE);
		if (t->fd < 0 && errno != EEXIST)
			return errno;
		if (t->fd >= 0 && !held_by_another(t->fd) && still_has_its_name(dir, t))
			return 0;
		if (t->fd >= 0)
			close(t->fd);
	}
	return EBUSY;
}

/* rename(2) that never replaces. Where the file system cannot do that in one step, the check before
 * it is enough: one manager owns a storage. */
static int rename_new(int dir, const char *from, const char *to)
{
	if (renameat2(dir, from, dir, to, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return errno;
	if (faccessat(dir, to, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return EEXIST;
	return renameat(dir, from, dir, to) == 0 ? 0 : errno;
}

int skv_fs_temp_publish(int dir, struct skv_fs_temp *t, const char *name)
{
	int error;

	assert(skv_fs_is_component(name) && !skv_fs_is_temp(name));
	error = fsync(t->fd) == 0 ? 0 : errno;
	if (error == 0)
		error = rename_new(dir, t->name, name);
	if (error != 0) {
		skv_fs_temp_drop(dir, t);
		return error;
	}
	close(t->fd);
	return fsync(dir) == 0 ? 0 : errno;
}

void skv_fs_temp_drop(int dir, struct skv_fs_temp *t)
{
	assert(skv_fs_is_temp(t->name));
	unlinkat(dir, t->name, 0);
	close(t->fd);
}

static void sweep_one(int dir, const char *name)
{
	struct stat st;
	int fd;

	if (skv_fs_open(dir, name, &fd) != 0)
		return;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && !held_by_another(fd))
		unlinkat(dir, name, 0);
	close(fd);
}

void skv_fs_sweep(int dir)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (!d) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((e = readdir(d)) != NULL)
		if (skv_fs_is_temp(e->d_name))
			sweep_one(dir, e->d_name);
	closedir(d);
}
