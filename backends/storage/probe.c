/*
 * probe.c - small files in the root that are written and read to see whether that works.
 *
 * Chunked storages have several, since the bytes of each may lie on another host. No state but
 * whose turn it is (under the storage's lock). Called from any thread, blocks with the file system.
 */
#include "file.h"
#include "fs.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <skv/clock.h>

#define PROBE_TRIES 8

/* Only a regular file that has no other name is written: a hard link would carry the write to
 * another's file. One that is not so is replaced (but a symbolic link is refused); somebody else
 * may do the same meanwhile. 0 or an errno. */
static int open_probe(int dir, const char *name, int *fd)
{
	for (int i = 0; i < PROBE_TRIES; i++) {
		struct stat st;

		*fd = openat(dir, name,
			     O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
			     SKV_FILE_MODE);
		if (*fd >= 0 && fstat(*fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1)
			return 0;
		if (*fd < 0)
			return errno;
		close(*fd);
		if (unlinkat(dir, name, 0) != 0 && errno != ENOENT)
			return errno;
	}
	*fd = -1;
	return EBUSY;
}

int skv_probe_write(const struct file_storage *s, int dir, unsigned turn, struct skv_error *err)
{
	char name[SKV_PROBE_NAME];
	uint64_t now = skv_wall_ms(&skv_clock_system);
	char text[32];
	int n = snprintf(text, sizeof text, "%020llu\n", (unsigned long long)now);
	int fd = -1;
	int error = open_probe(dir, skv_root_probe_name(s->chunked ? turn % SKV_PROBE_FILES : 0,
						       name), &fd);

	assert(n > 0 && (size_t)n < sizeof text);
	if (error == 0)
		error = skv_fs_write(fd, 0, text, (size_t)n);

	if (error == 0 && fsync(fd) != 0)
		error = errno;
	if (fd >= 0)
		close(fd);
	if (error == 0 && !s->chunked)
		error = skv_root_make_link(dir);
	if (error == EEXIST)
		return skv_fail(err, SKV_E_FOREIGN, "root",
				"'" SKV_STORAGE_LINK "' in the directory of storage '%s' must be a "
				"symbolic link to '.': remove it (%s)",
				s->name, s->root);
	if (error == EROFS)
		return skv_fail(
			err, SKV_E_UNAVAILABLE, "root",
			"the file system of storage '%s' is mounted read-only: mount it "
			"writable (%s)",
			s->name, s->root);
	if (error != 0)
		return skv_fs_fail(err, error, "cannot write into the root directory", s->root);
	return SKV_OK;
}

/* Reads the probe file. Returns an errno; ENOENT: there is none yet. */
static int read_probe_file(const struct file_storage *s, int dir, unsigned n)
{
	SUPERBLOCK_BYTES(raw);
	char name[SKV_PROBE_NAME];
	size_t got;
	int fd, error = skv_root_open(s, dir, skv_root_probe_name(n, name), &fd);

	if (error != 0)
		return error;
	error = skv_fs_read(fd, 0, raw, sizeof raw, &got);
	close(fd);
	return error;
}

/* A call that does not return, or fails, leaves the turn to the next file. */
int skv_probe_read(struct file_storage *s, int *dir, struct skv_error *err)
{
	unsigned turn;
	int error = ENOENT, rc;

	skv_mutex_lock(&s->lock);
	turn = s->chunked ? s->read_turn++ % (1 + SKV_PROBE_FILES) : 0;
	skv_mutex_unlock(&s->lock);
	if (turn > 0) {
		rc = skv_root_enter(s, dir, err);
		if (rc != SKV_OK)
			return rc;
		error = read_probe_file(s, *dir, turn - 1);
		if (error != 0)
			close(*dir);
	}
	if (error == ENOENT)
		rc = skv_root_prove(s, dir, err);
	else if (error != 0)
		rc = skv_fs_fail(err, error, "cannot read a probe file", s->root);
	if (rc == SKV_OK) {
		skv_mutex_lock(&s->lock);
		s->read_turn = turn;
		skv_mutex_unlock(&s->lock);
	}
	return rc;
}
