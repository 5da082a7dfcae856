/*
 * stat.c - inspects any directory of slab files, for display: expects nothing, changes nothing.
 *
 * No state, no locks; blocks with the file system.
 */
#include "file.h"
#include "fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <skv/mem.h>

static int open_dir(int below, const char *dir, int *fd, struct skv_error *err)
{
	int error = skv_fs_is_component(dir) ? skv_fs_open_dir(below, dir, fd) : EINVAL;

	switch (error) {
	case 0:
		return SKV_OK;
	case EINVAL:
		return skv_fail(err, SKV_E_INVALID, "dir", "'%.64s' is not one component of a path",
				dir);
	case ENOENT:
		return skv_fail(err, SKV_E_NOT_FOUND, "dir",
				"there is no directory %.64s: is the file system mounted?", dir);
	case ENOTDIR:
	case ELOOP:
		return skv_fail(err, SKV_E_FOREIGN, "dir",
				"%.64s is not a directory, or a symbolic link: refused", dir);
	default:
		return skv_fs_fail(err, error, "cannot open the directory", dir);
	}
}

static uint64_t bytes(uint64_t blocks, uint64_t size)
{
	return size && blocks > UINT64_MAX / size ? UINT64_MAX : blocks * size;
}

/* `fd` is open, of the name `name`. */
static int stat_file(int fd, const char *name, struct skv_storage_stat *out, struct skv_error *err)
{
	SUPERBLOCK_BYTES(raw);
	struct skv_fs_mount m;
	struct statvfs v;
	struct stat st;
	int error = fstat(fd, &st) == 0 && fstatvfs(fd, &v) == 0 ? 0 : errno;

	if (error == 0)
		error = skv_fs_look(fd, &m);
	if (error != 0)
		return skv_fs_fail(err, error, "cannot stat", name);
	if (!S_ISREG(st.st_mode))
		return skv_fail(err, SKV_E_FOREIGN, NULL, "%s is not a regular file", name);
	out->length = (uint64_t)st.st_size;
	out->block_size = m.chunk;
	out->is_3fs = m.is_3fs;
	out->free_bytes = bytes(v.f_bavail, v.f_frsize);
	out->total_bytes = bytes(v.f_blocks, v.f_frsize);
	return skv_superblock_read(fd, 0, name, raw, &out->superblock, err);
}

int skv_storage_stat(int below, const char *dir, uint32_t file, struct skv_storage_stat *out,
		     struct skv_error *err)
{
	struct skv_storage_stat s = { .length = 0 };
	char name[SKV_SLAB_PATH_MAX] = SKV_STORAGE_MARKER;
	int dirfd, fd, error, rc = open_dir(below, dir, &dirfd, err);

	if (rc != SKV_OK)
		return rc;
	if (file != SKV_NO_FILE)
		skv_slab_path(file, name);
	error = skv_fs_open_direct(dirfd, name, &fd);
	close(dirfd);
	if (error == ENOENT)
		return skv_fail(err, SKV_E_NOT_FOUND, NULL, "there is no %s", name);
	if (error != 0)
		return skv_fs_fail(err, error, "cannot open", name);
	rc = stat_file(fd, name, &s, err);
	close(fd);
	if (file == SKV_NO_FILE)
		s.length = 0;
	if (rc == SKV_OK)
		*out = s;
	return rc;
}

static int in_order(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

int skv_storage_list(int below, const char *dir, uint32_t **files, size_t *n, struct skv_error *err)
{
	int fd, rc = open_dir(below, dir, &fd, err);
	struct dirent *e;
	void *v = NULL;
	size_t cap = 0, count = 0;
	DIR *d;

	if (rc != SKV_OK)
		return rc;
	d = fdopendir(fd);
	if (!d) {
		rc = skv_fs_fail(err, errno, "cannot list the directory", dir);
		close(fd);
		return rc;
	}
	errno = 0;
	while (rc == SKV_OK && (e = readdir(d)) != NULL) {
		uint32_t file;

		if (!skv_slab_number(e->d_name, &file))
			continue;
		rc = skv_grow(&v, &cap, count + 1, sizeof file);
		if (rc == SKV_OK)
			((uint32_t *)v)[count++] = file;
		errno = 0;
	}
	if (rc == SKV_OK && errno != 0)
		rc = skv_fs_fail(err, errno, "cannot list the directory", dir);
	closedir(d);
	if (rc != SKV_OK) {
		skv_free(v);
		return err && err->status == rc ? rc : skv_fail(err, rc, NULL, "out of memory");
	}
	if (count)
		qsort(v, count, sizeof(uint32_t), in_order);
	*files = v;
	*n = count;
	return SKV_OK;
}
