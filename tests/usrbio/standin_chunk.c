/*
 * standin_chunk.c - see standin.h: a local file as 3FS's storage nodes see it. A chunk is there
 * when the file has data in it, and ends where its data ends, to the page. A write within a chunk
 * excludes others, of other processes, too.
 */
#include "standin.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

size_t chunk_length(int fd, uint64_t start, size_t chunk)
{
	off_t end = (off_t)(start + chunk), at = (off_t)start;
	size_t length = 0;

	while (at < end) {
		off_t data = lseek(fd, at, SEEK_DATA);

		if (data < 0 || data >= end)
			break;
		at = lseek(fd, data, SEEK_HOLE);
		if (at < 0)
			break;
		length = (size_t)((at < end ? at : end) - (off_t)start);
	}
	return length;
}

static ssize_t whole_read(int fd, void *buf, size_t n, uint64_t off)
{
	size_t done = 0;

	while (done < n) {
		ssize_t rc = pread(fd, (char *)buf + done, n - done, (off_t)(off + done));

		if (rc < 0 && errno == EINTR)
			continue;
		if (rc < 0)
			return -EIO;
		if (rc == 0)
			break; /* cut meanwhile */
		done += (size_t)rc;
	}
	return (ssize_t)done;
}

static ssize_t whole_write(int fd, const void *buf, size_t n, uint64_t off)
{
	size_t done = 0;

	while (done < n) {
		ssize_t rc = pwrite(fd, (const char *)buf + done, n - done, (off_t)(off + done));

		if (rc < 0 && errno == EINTR)
			continue;
		if (rc < 0)
			return errno == ENOSPC || errno == EDQUOT ? -ENOSPC
			       : errno == EFBIG                   ? -EFBIG
								  : -EIO;
		done += (size_t)rc;
	}
	return (ssize_t)done;
}

/* Between threads a lock in memory, between processes one on the file. */
static pthread_mutex_t chunk_locks[64] = { [0 ... 63] = PTHREAD_MUTEX_INITIALIZER };

static pthread_mutex_t *chunk_lock(int fd, uint64_t ino, uint64_t start, size_t chunk)
{
	struct flock range = { .l_type = F_WRLCK, .l_start = (off_t)start, .l_len = (off_t)chunk };
	pthread_mutex_t *lock = &chunk_locks[(ino * 31 + start / chunk) % 64];

	pthread_mutex_lock(lock);
	while (fcntl(fd, F_OFD_SETLKW, &range) != 0 && errno == EINTR)
		;
	return lock;
}

static void chunk_unlock(int fd, pthread_mutex_t *lock, uint64_t start, size_t chunk)
{
	struct flock range = { .l_type = F_UNLCK, .l_start = (off_t)start, .l_len = (off_t)chunk };

	(void)fcntl(fd, F_OFD_SETLK, &range);
	pthread_mutex_unlock(lock);
}

ssize_t chunk_read(struct mount *m, const struct reg *r, size_t chunk, uint64_t off, void *buf,
		   size_t n)
{
	uint64_t start = off / chunk * chunk;
	size_t length = chunk_length(r->io, start, chunk);

	mount_count(m, COUNT_chunk_reads, 1);
	if (off - start >= length)
		return 0;
	if (n > length - (off - start))
		n = length - (off - start);
	return whole_read(r->io, buf, n, off);
}

/* Zeros from where the chunk ends to where a write begins. */
static ssize_t fill(int fd, uint64_t from, uint64_t to)
{
	static const char zeros[65536];
	ssize_t rc = 0;

	while (from < to && rc >= 0) {
		size_t n = to - from < sizeof zeros ? to - from : sizeof zeros;

		rc = whole_write(fd, zeros, n, from);
		from += n;
	}
	return rc;
}

ssize_t chunk_write(struct mount *m, const struct reg *r, size_t chunk, uint64_t off,
		    const void *buf, size_t n)
{
	uint64_t start = off / chunk * chunk;
	pthread_mutex_t *lock = chunk_lock(r->io, r->ino, start, chunk);
	size_t length = chunk_length(r->io, start, chunk);
	ssize_t rc = 0;

	mount_count(m, COUNT_chunk_writes, 1);
	if (off > start + length) {
		rc = fill(r->io, start + length, off);
	} else if (length && (off > start || n < length) && off < start + length) {
		/* not an append */
		mount_count(m, COUNT_cow_writes, 1);
		mount_count(m, COUNT_cow_bytes, length);
	}
	if (rc >= 0)
		rc = whole_write(r->io, buf, n, off);
	chunk_unlock(r->io, lock, start, chunk);
	return rc;
}

int chunk_punch(struct mount *m, int fd, uint64_t start, uint64_t end, size_t chunk)
{
	for (; start < end; start += chunk) {
		if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)start,
			      (off_t)chunk) != 0)
			return errno;
		mount_count(m, COUNT_punches, 1);
	}
	return 0;
}
