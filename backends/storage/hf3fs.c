/*
 * hf3fs.c - 3FS specifics: detecting its mounts, chunk size, hole punching.
 *
 * Numbers and layouts are those of 3FS's src/lib/api/fuse.h, which the mounts of all clients
 * answer. No state, no locks; blocks with the file system.
 */
#include "fs.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <skv/mem.h>

#define IOC_MAGIC 0x80046802u /* gives IS_3FS */
#define IS_3FS 0x8f3f5fffu
#define TYPE_3FS "fuse.hf3fs"
#define IOC_PUNCH 0x7e90680du

struct punch {
	uint64_t n;
	uint64_t flags;
	uint64_t start[SKV_PUNCH_MAX];
	uint64_t end[SKV_PUNCH_MAX];
};
_Static_assert(sizeof(struct punch) == 16016, "the size is part of the ioctl's number");

static bool answers_magic(int fd)
{
	uint32_t magic = 0;

	return ioctl(fd, IOC_MAGIC, &magic) == 0 && magic == IS_3FS;
}

/* A line of mountinfo (proc(5)): its device is the third field, its type the first one after " -
 * ". */
static bool line_is_of(const char *line, dev_t dev, char type[32])
{
	const char *dash = strstr(line, " - ");
	unsigned number, parent, major, minor;

	return sscanf(line, "%u %u %u:%u", &number, &parent, &major, &minor) == 4 &&
	       major == major(dev) && minor == minor(dev) && dash &&
	       sscanf(dash, " - %31s", type) == 1;
}

static void find_type(dev_t dev, char type[32])
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char *line = NULL;
	size_t size = 0;

	snprintf(type, 32, "?");
	while (f && getline(&line, &size, f) >= 0)
		if (line_is_of(line, dev, type))
			break;
	free(line); /* getline's own */
	if (f)
		fclose(f);
}

int skv_fs_look(int fd, struct skv_fs_mount *out)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return errno;
	out->chunk = (uint64_t)st.st_blksize;
	out->is_3fs = answers_magic(fd);
	snprintf(out->type, sizeof out->type, TYPE_3FS);
	if (out->is_3fs)
		return 0;
	find_type(st.st_dev, out->type);
	out->is_3fs = strcmp(out->type, TYPE_3FS) == 0;
	return 0;
}

static int punch_3fs(int fd, const struct skv_storage_range *v, uint32_t n)
{
	struct punch *p = skv_calloc(1, sizeof *p);
	int error;

	if (!p)
		return ENOMEM;
	p->n = n;
	for (uint32_t i = 0; i < n; i++) {
		p->start[i] = v[i].begin;
		p->end[i] = v[i].end;
	}
	error = ioctl(fd, IOC_PUNCH, p) == 0 ? 0 : errno;
	skv_free(p);
	return error;
}

int skv_fs_punch(int fd, bool is_3fs, const struct skv_storage_range *v, uint32_t n)
{
	int error;

	assert(n > 0 && n <= SKV_PUNCH_MAX);
	error = is_3fs ? punch_3fs(fd, v, n) : 0;
	for (uint32_t i = 0; !is_3fs && error == 0 && i < n; i++) {
		const int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;

		assert(v[i].begin < v[i].end && v[i].end <= INT64_MAX);
		if (fallocate(fd, mode, (off_t)v[i].begin, (off_t)(v[i].end - v[i].begin)) != 0)
			error = errno;
	}
	return error;
}
