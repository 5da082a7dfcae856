/*
 * mirror.c - mirror DIR OPTION... FUSE-ARGUMENT...: mounts DIR elsewhere, with a page cache that is
 * not told what others change in DIR: a host of its own. One folder of files.
 *
 *	--aligned    refuses direct reads and writes that are not aligned to pages
 *	--writeback  writes reach DIR when the kernel likes, in whole pages
 */
#define FUSE_USE_VERSION 35
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int dir;
static bool aligned, writeback;

static const char *below(const char *path) { return path[1] ? path + 1 : "."; }

static int check(long rc) { return rc < 0 ? -errno : (int)rc; }

static void *start(struct fuse_conn_info *conn, struct fuse_config *config)
{
	config->kernel_cache = 1;
	conn->want &= ~(unsigned)FUSE_CAP_AUTO_INVAL_DATA;
	if (writeback)
		conn->want |= FUSE_CAP_WRITEBACK_CACHE;
	return NULL;
}

static int get_attributes(const char *path, struct stat *st, struct fuse_file_info *fi)
{
	(void)fi;
	return check(fstatat(dir, below(path), st, AT_SYMLINK_NOFOLLOW));
}

static int list(const char *path, void *out, fuse_fill_dir_t add, off_t offset,
		struct fuse_file_info *fi, enum fuse_readdir_flags flags)
{
	DIR *d = fdopendir(openat(dir, below(path), O_RDONLY | O_DIRECTORY));
	const struct dirent *e;

	(void)offset, (void)fi, (void)flags;
	while (d && (e = readdir(d)))
		add(out, e->d_name, NULL, 0, 0);
	return d ? check(closedir(d)) : -errno;
}

static int open_file(const char *path, struct fuse_file_info *fi)
{
	const bool write = (fi->flags & O_ACCMODE) != O_RDONLY;
	int fd = openat(dir, below(path), write ? O_RDWR : O_RDONLY);

	fi->fh = (uint64_t)fd;
	return fd < 0 ? -errno : 0;
}

static int release(const char *path, struct fuse_file_info *fi)
{
	(void)path;
	return check(close((int)fi->fh));
}

static bool is_refused(const struct fuse_file_info *fi, size_t n, off_t at)
{
	return aligned && fi->flags & O_DIRECT && (n % 4096 || at % 4096);
}

static int read_bytes(const char *path, char *to, size_t n, off_t at, struct fuse_file_info *fi)
{
	(void)path;
	return is_refused(fi, n, at) ? -EINVAL : check(pread((int)fi->fh, to, n, at));
}

static int write_bytes(const char *path, const char *from, size_t n, off_t at,
		       struct fuse_file_info *fi)
{
	(void)path;
	return is_refused(fi, n, at) ? -EINVAL : check(pwrite((int)fi->fh, from, n, at));
}

static int sync_file(const char *path, int data, struct fuse_file_info *fi)
{
	(void)path, (void)data, (void)fi;
	return 0; /* this test's power never fails */
}

/* Ignores times: the kernel's memory of cached writes is of no use here. */
static int set_times(const char *path, const struct timespec times[2], struct fuse_file_info *fi)
{
	(void)path, (void)times, (void)fi;
	return 0;
}

int main(int argc, char **argv)
{
	static const struct fuse_operations operations = {
		.init = start, .getattr = get_attributes, .readdir = list, .open = open_file,
		.release = release, .read = read_bytes, .write = write_bytes, .fsync = sync_file,
		.utimens = set_times,
	};
	int n = 1;

	dir = argc > 1 ? open(argv[1], O_RDONLY | O_DIRECTORY) : -1;
	if (dir < 0) {
		perror("mirror: DIR");
		return 2;
	}
	for (int i = 2; i < argc; i++) {
		if (strcmp(argv[i], "--aligned") == 0)
			aligned = true;
		else if (strcmp(argv[i], "--writeback") == 0)
			writeback = true;
		else
			argv[n++] = argv[i];
	}
	return fuse_main(n, argv, &operations, NULL);
}
