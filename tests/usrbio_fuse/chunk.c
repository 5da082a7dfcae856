/*
 * chunk.c - reads and writes by 3FS's rules. A file is chunks of one size, and each has so many
 * bytes, or is not there: a hole. A read that begins in a hole is short, even at 0 bytes, and the
 * length of the file has no say in it; a hole before later bytes of the same read is zeros (or
 * ENODATA). What a write costs is counted: 3FS reads and rewrites the whole chunk unless the write
 * replaces all that it has, or goes on at its end.
 *
 * The local file has the bytes, memory says which chunks there are. A daemon that starts anew asks
 * the local file for its holes, which is exact to 4 KiB. Writes of a chunk exclude each other and
 * its reads: 3FS makes them atomic.
 */
#include "stand.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STRIPES 64u
#define PAGE 4096u

static pthread_rwlock_t stripes[STRIPES] = { [0 ... STRIPES - 1] = PTHREAD_RWLOCK_INITIALIZER };

static pthread_rwlock_t *stripe(const struct inode *i, uint64_t chunk)
{
	return &stripes[(i->number * 31 + chunk) % STRIPES];
}

static int grow_locked(struct inode *i, uint64_t n)
{
	uint64_t room = i->n_have ? i->n_have : 16;
	uint32_t *more;

	if (n <= i->n_have)
		return 0;
	while (room < n)
		room *= 2;
	more = realloc(i->have, room * sizeof *more);
	if (!more)
		return ENOMEM;
	memset(more + i->n_have, 0, (room - i->n_have) * sizeof *more);
	i->have = more;
	i->n_have = room;
	return 0;
}

/* Notes the data from `at` to `end`. */
static void note_data(struct inode *i, uint64_t at, uint64_t end)
{
	for (uint64_t c = at / i->chunk; c * i->chunk < end; c++) {
		uint64_t last = end - c * i->chunk;

		i->have[c] = last < i->chunk ? (uint32_t)last : i->chunk;
	}
}

static int load_locked(struct inode *i)
{
	off_t size = lseek(i->fd, 0, SEEK_END), at = 0;
	int error = size < 0 ? errno : grow_locked(i, ((uint64_t)size + i->chunk - 1) / i->chunk);

	while (error == 0 && at < size) {
		off_t data = lseek(i->fd, at, SEEK_DATA);

		if (data < 0 && errno == ENXIO)
			break;
		at = data < 0 ? -1 : lseek(i->fd, data, SEEK_HOLE);
		if (at < 0)
			return errno;
		note_data(i, (uint64_t)data, (uint64_t)at);
	}
	i->loaded = error == 0;
	return error;
}

/* Takes the file's lock for I/O up to chunk n, exclusive of those who change the set of chunks. */
static int enter(struct inode *i, uint64_t n)
{
	int error = 0;

	for (;;) {
		pthread_rwlock_rdlock(&i->lock);
		if (i->loaded && n <= i->n_have)
			return 0;
		pthread_rwlock_unlock(&i->lock);
		pthread_rwlock_wrlock(&i->lock);
		if (!i->loaded)
			error = load_locked(i);
		if (error == 0)
			error = grow_locked(i, n);
		pthread_rwlock_unlock(&i->lock);
		if (error != 0)
			return error;
	}
}

static int enter_alone(struct inode *i)
{
	int error = 0;

	pthread_rwlock_wrlock(&i->lock);
	if (!i->loaded)
		error = load_locked(i);
	if (error != 0)
		pthread_rwlock_unlock(&i->lock);
	return error;
}

/* Reads what chunk c has of [at, at + n); the number of bytes, or -errno. */
static int64_t read_chunk(struct inode *i, uint64_t c, uint64_t at, uint64_t n, char *to)
{
	uint64_t in = at - c * i->chunk, have, done = 0;

	pthread_rwlock_rdlock(stripe(i, c));
	have = c < i->n_have ? i->have[c] : 0;
	if (have < in + n)
		n = have > in ? have - in : 0;
	while (done < n) {
		ssize_t k = pread(i->fd, to + done, n - done, (off_t)(at + done));

		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0) {
			pthread_rwlock_unlock(stripe(i, c));
			return -errno;
		}
		if (k == 0) { /* the chunk is longer than the file: zeros */
			memset(to + done, 0, n - done);
			break;
		}
		done += (uint64_t)k;
	}
	pthread_rwlock_unlock(stripe(i, c));
	return (int64_t)n;
}

int64_t chunk_read(struct inode *i, uint64_t off, uint64_t len, char *to, bool forbid_holes)
{
	uint64_t got = 0, at = off, end = off + len;
	int error;

	fault_of_chain(i->number, off / i->chunk, (end + i->chunk - 1) / i->chunk, true);
	error = enter(i, 0);
	if (error != 0)
		return -error;
	while (at < end) {
		uint64_t c = at / i->chunk, stop = (c + 1) * i->chunk;
		int64_t n;

		if (stop > end)
			stop = end;
		n = read_chunk(i, c, at, stop - at, to + (at - off));
		if (n < 0 || (n > 0 && off + got < at && forbid_holes)) {
			pthread_rwlock_unlock(&i->lock);
			return n < 0 ? n : -ENODATA;
		}
		if (n > 0) {
			memset(to + got, 0, at - off - got);
			got = at - off + (uint64_t)n;
		}
		at = stop;
	}
	pthread_rwlock_unlock(&i->lock);
	return (int64_t)got;
}

static void count_write(uint32_t have, uint64_t in, uint64_t n)
{
	if (have == 0) {
		count(N_chunk_fresh, 1);
	} else if (in == 0 && n >= have) {
		count(N_chunk_whole, 1);
	} else if (in == have && in % PAGE == 0) {
		count(N_chunk_append, 1);
	} else {
		count(N_chunk_copied, 1);
		count(N_chunk_copied_bytes, have);
	}
}

static int write_chunk(struct inode *i, uint64_t c, uint64_t at, uint64_t n, const char *from)
{
	uint64_t in = at - c * i->chunk, done = 0;
	int error = 0;

	pthread_rwlock_wrlock(stripe(i, c));
	while (error == 0 && done < n) {
		ssize_t k = pwrite(i->fd, from + done, n - done, (off_t)(at + done));

		if (k > 0)
			done += (uint64_t)k;
		else if (k == 0 || errno != EINTR)
			error = k == 0 ? EIO : errno;
	}
	if (error == 0) {
		count_write(i->have[c], in, n);
		if (i->have[c] < in + n)
			i->have[c] = (uint32_t)(in + n);
	}
	pthread_rwlock_unlock(stripe(i, c));
	return error;
}

int64_t chunk_write(struct inode *i, uint64_t off, uint64_t len, const char *from)
{
	uint64_t at = off, end = off + len;
	int error;

	if (end < off || end / i->chunk > UINT32_MAX)
		return -EFBIG;
	fault_of_chain(i->number, off / i->chunk, (end + i->chunk - 1) / i->chunk, false);
	error = enter(i, (end + i->chunk - 1) / i->chunk);
	if (error != 0)
		return -error;
	while (error == 0 && at < end) {
		uint64_t c = at / i->chunk, stop = (c + 1) * i->chunk;

		if (stop > end)
			stop = end;
		error = fault_of_chunk(c - off / i->chunk);
		if (error == 0)
			error = fault_of_targets(i->chunk);
		if (error == 0)
			error = write_chunk(i, c, at, stop - at, from + (at - off));
		at = stop;
	}
	__atomic_store_n(&i->dirty, true, __ATOMIC_RELAXED);
	pthread_rwlock_unlock(&i->lock);
	return error != 0 ? -error : (int64_t)len;
}

/* The last chunk gets all bytes up to the new length: that is how 3FS keeps a length that
 * nothing was written for. */
static int extend_locked(struct inode *i, uint64_t length)
{
	uint64_t c = (length - 1) / i->chunk;
	uint32_t needs = (uint32_t)(length - c * i->chunk);
	int error = grow_locked(i, c + 1);

	if (error != 0 || i->have[c] >= needs)
		return error;
	if (pwrite(i->fd, "", 1, (off_t)length - 1) != 1)
		return errno;
	i->have[c] = needs;
	return 0;
}

static void cut_locked(struct inode *i, uint64_t length)
{
	for (uint64_t c = length / i->chunk; c < i->n_have; c++) {
		uint64_t keeps = c * i->chunk < length ? length - c * i->chunk : 0;

		if (i->have[c] > keeps) {
			count(N_chunk_removed, keeps == 0);
			i->have[c] = (uint32_t)keeps;
		}
	}
}

int chunk_truncate(struct inode *i, uint64_t length)
{
	int error = length / i->chunk > UINT32_MAX ? EFBIG : enter_alone(i);

	if (error != 0)
		return error;
	cut_locked(i, length);
	if (ftruncate(i->fd, (off_t)length) != 0)
		error = errno;
	else if (length > 0)
		error = extend_locked(i, length);
	pthread_rwlock_unlock(&i->lock);
	return error;
}

static int punch_locked(struct inode *i, uint64_t c)
{
	if (c >= i->n_have || i->have[c] == 0)
		return 0;
	if (fallocate(i->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)(c * i->chunk),
		      i->chunk) != 0)
		return EIO;
	i->have[c] = 0;
	count(N_chunk_removed, 1);
	return 0;
}

int chunk_punch(struct inode *i, const struct wire_punch *p)
{
	int error;

	if (p->n < 0 || p->n > WIRE_PUNCH_MAX)
		return EINVAL;
	for (int k = 0; k < p->n; k++)
		if (p->start[k] % i->chunk != 0 || p->end[k] % i->chunk != 0)
			return EINVAL;
	error = enter_alone(i);
	if (error != 0)
		return error;
	for (int k = 0; k < p->n && error == 0; k++)
		for (uint64_t c = p->start[k] / i->chunk;
		     c < p->end[k] / i->chunk && c < i->n_have && error == 0; c++)
			error = punch_locked(i, c);
	pthread_rwlock_unlock(&i->lock);
	return error;
}

int chunk_settle(struct inode *i, bool force)
{
	uint64_t c, length = 0;
	int error;

	if (!force && !__atomic_load_n(&i->dirty, __ATOMIC_RELAXED))
		return 0;
	error = enter_alone(i);
	if (error != 0)
		return error;
	count(N_settle, 1);
	for (c = i->n_have; c > 0 && i->have[c - 1] == 0; c--)
		;
	if (c > 0)
		length = (c - 1) * i->chunk + i->have[c - 1];
	i->dirty = false;
	if (ftruncate(i->fd, (off_t)length) != 0)
		error = errno;
	pthread_rwlock_unlock(&i->lock);
	return error;
}
