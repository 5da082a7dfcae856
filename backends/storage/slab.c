/*
 * slab.c - slab files of a `file` storage: create, verify, remove.
 *
 * A slab file is a superblock (first 4096 bytes of the header), room for slots, and a trailer that
 * begins with the superblock's bytes again. On 3FS, which allocates nothing in advance, it has its
 * length only: the trailer, which is its last chunk, keeps it. It appears under its name only when
 * all of its space is allocated and both records are on stable media: a crash at any point leaves
 * a temporary file at most.
 *
 * No state, no locks. Called from any thread with the entered root; blocks with the file system,
 * for long where space must be written instead of reserved. A slab file with its final name is
 * opened for writing only to punch holes and to repair a damaged superblock. A file with a foreign
 * superblock is never touched.
 */
#include "file.h"
#include "fs.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <skv/clock.h>

bool skv_slab_number(const char *name, uint32_t *file)
{
	char again[SKV_SLAB_PATH_MAX];

	if (sscanf(name, "slab-%u.kvs", file) != 1)
		return false;
	skv_slab_path(*file, again);
	return strcmp(name, again) == 0;
}

static int fail_not_a_file(struct skv_error *err, const char *what, const char *name)
{
	return skv_fail(err, SKV_E_FOREIGN, NULL, "%s in place of a slab file: refused (%s)", what,
			name);
}

/* Opens an existing slab file and reads its superblock. SKV_E_NOT_FOUND. The caller closes *fd. */
static int open_slab(const struct file_storage *s, int dir, const char *name, int *fd,
		     struct stat *st, uint8_t raw[SKV_SUPERBLOCK_SIZE], struct skv_superblock *sb,
		     struct skv_error *err)
{
	int error = skv_root_open(s, dir, name, fd);
	int rc;

	if (error == ENOENT)
		return skv_fail(err, SKV_E_NOT_FOUND, NULL, "the slab file is missing (%s)", name);
	if (error == ELOOP)
		return fail_not_a_file(err, "a symbolic link", name);
	if (error != 0)
		return skv_fs_fail(err, error, "cannot open the slab file", name);
	if (fstat(*fd, st) != 0)
		rc = skv_fs_fail(err, errno, "cannot stat the slab file", name);
	else if (!S_ISREG(st->st_mode))
		rc = fail_not_a_file(err, "not a regular file", name);
	else
		rc = skv_superblock_read(*fd, 0, name, raw, sb, err);
	if (rc != SKV_OK)
		close(*fd);
	return rc;
}

/* Checks that the file has that number and belongs to this very storage. */
static int judge_owner(const struct file_storage *s, const struct skv_superblock *sb, uint32_t file,
		       const char *name, struct skv_error *err)
{
	char theirs[37];

	assert(file != SKV_NO_FILE);
	if (memcmp(sb->uuid, s->uuid, sizeof sb->uuid) != 0) {
		skv_uuid_to_text(sb->uuid, theirs);
		return skv_fail(err, SKV_E_FOREIGN, NULL,
				"the slab file belongs to storage %s (%s)", theirs, name);
	}
	if (sb->file != file)
		return skv_fail(
			err, SKV_E_FOREIGN, NULL,
			"its superblock says that it is slab file %u: renamed or swapped (%s)",
			sb->file, name);
	return SKV_OK;
}

static int judge_geometry(const struct file_storage *s, const struct skv_superblock *sb,
			  uint64_t length, uint64_t size, const char *name, struct skv_error *err)
{
	if (sb->length != length)
		return skv_fail(err, SKV_E_CORRUPT, NULL,
				"its superblock says %llu bytes, the registry %llu (%s)",
				(unsigned long long)sb->length, (unsigned long long)length, name);
	if (size != length)
		return skv_fail(err, SKV_E_CORRUPT, NULL,
				"it has %llu bytes instead of %llu: %s (%s)",
				(unsigned long long)size, (unsigned long long)length,
				size < length ? "it was cut off" : "something was appended", name);
	if (sb->unit != s->unit || sb->header != s->edge || sb->trailer != s->edge)
		return skv_fail(err, SKV_E_CORRUPT, NULL,
				"its superblock's geometry differs from the registry's (%s)",
				name);
	return SKV_OK;
}

/* A file keeps the chunk size that its directory had when it was made. */
static int judge_chunk(const struct file_storage *s, int fd, const char *name,
		       struct skv_error *err)
{
	struct skv_fs_mount m;
	int error = s->chunk ? skv_fs_look(fd, &m) : 0;

	if (error != 0)
		return skv_fs_fail(err, error, "cannot stat the slab file", name);
	if (s->chunk && m.is_3fs && m.chunk != s->chunk)
		return skv_fail(
			err, SKV_E_CORRUPT, NULL,
			"it has chunks of %llu bytes, its storage %llu: it was made in another "
			"directory or layout (%s)",
			(unsigned long long)m.chunk, (unsigned long long)s->chunk, name);
	return SKV_OK;
}

static int judge_trailer(const struct file_storage *s, int fd, uint64_t length,
			 const uint8_t head[SKV_SUPERBLOCK_SIZE], const char *name,
			 struct skv_error *err)
{
	SUPERBLOCK_BYTES(tail);
	size_t got;
	int error;

	assert(length > 2 * s->edge);
	error = skv_fs_read(fd, length - s->edge, tail, sizeof tail, &got);
	if (error != 0)
		return skv_fs_fail(err, error, "cannot read the slab file's trailer", name);
	if (got != sizeof tail || memcmp(head, tail, sizeof tail) != 0)
		return skv_fail(
			err, SKV_E_CORRUPT, NULL,
			"its trailer does not repeat its superblock: cut off or overwritten (%s)",
			name);
	return SKV_OK;
}

int skv_slab_check(const struct file_storage *s, int dir, uint32_t file, uint64_t length,
		   struct skv_error *err)
{
	SUPERBLOCK_BYTES(raw);
	char name[SKV_SLAB_PATH_MAX];
	struct skv_superblock sb;
	struct stat st;
	int fd, rc;

	skv_slab_path(file, name);
	rc = open_slab(s, dir, name, &fd, &st, raw, &sb, err);
	if (rc != SKV_OK)
		return rc;
	rc = judge_owner(s, &sb, file, name, err);
	if (rc == SKV_OK)
		rc = judge_geometry(s, &sb, length, (uint64_t)st.st_size, name, err);
	if (rc == SKV_OK)
		rc = judge_chunk(s, fd, name, err);
	if (rc == SKV_OK)
		rc = judge_trailer(s, fd, length, raw, name, err);
	close(fd);
	return rc;
}

static int fill(const struct file_storage *s, int fd, uint32_t file, uint64_t length)
{
	struct skv_superblock sb = { .file = file,
				     .length = length,
				     .unit = s->unit,
				     .header = s->edge,
				     .trailer = s->edge,
				     .created_ms = skv_wall_ms(&skv_clock_system) };
	uint8_t raw[SKV_SUPERBLOCK_SIZE];
	int error;

	assert(length > 2 * s->edge && s->edge >= sizeof raw);
	memcpy(sb.uuid, s->uuid, sizeof sb.uuid);
	skv_superblock_encode(&sb, raw);
	error = s->chunked ? skv_fs_set_length(fd, length) : skv_fs_allocate(fd, length);
	if (error == 0)
		error = skv_fs_write(fd, 0, raw, sizeof raw);
	if (error == 0)
		error = skv_fs_write(fd, length - s->edge, raw, sizeof raw);
	return error;
}

static int make_slab(const struct file_storage *s, int dir, uint32_t file, uint64_t length,
		     const char *name, struct skv_error *err)
{
	struct skv_fs_temp temp;
	int error;

	skv_fs_sweep(dir);
	error = skv_fs_temp_open(dir, &temp);
	if (error == 0) {
		error = fill(s, temp.fd, file, length);
		if (error == 0)
			error = skv_fs_temp_publish(dir, &temp, name);
		else
			skv_fs_temp_drop(dir, &temp);
	}
	if (error == EEXIST)
		return skv_fail(err, SKV_E_IN_USE, NULL,
				"another process created this file meanwhile (%s)", name);
	if (skv_fs_status(error) == SKV_E_NO_SPACE)
		return skv_fail(err, SKV_E_NO_SPACE, NULL,
				"no room for a slab file of %llu bytes (%s)",
				(unsigned long long)length, s->root);
	if (error != 0)
		return skv_fs_fail(err, error, "cannot make the slab file", name);
	return SKV_OK;
}

int skv_slab_create(const struct file_storage *s, int dir, uint32_t file, uint64_t length,
		    struct skv_error *err)
{
	struct skv_error why = { 0 };
	char name[SKV_SLAB_PATH_MAX];

	skv_slab_path(file, name);
	switch (skv_slab_check(s, dir, file, length, &why)) {
	case SKV_E_NOT_FOUND:
		return make_slab(s, dir, file, length, name, err);
	case SKV_OK:
		/* An earlier call may have failed in its last step, the sync of the directory. */
		if (fsync(dir) != 0)
			return skv_fs_fail(err, errno, "cannot sync the root directory", s->root);
		return SKV_OK;
	case SKV_E_FOREIGN:
	case SKV_E_CORRUPT:
	case SKV_E_UNSUPPORTED:
		return skv_fail(err, SKV_E_FOREIGN, NULL,
				"another file has this name; it was left alone: %s", why.message);
	default:
		return skv_fail(err, why.status, NULL, "%s", why.message);
	}
}

bool skv_slab_proves(const struct file_storage *s, int dir)
{
	SUPERBLOCK_BYTES(raw);
	int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	bool proved = false;
	struct dirent *e;

	if (!d && copy >= 0)
		close(copy);
	while (d && !proved && (e = readdir(d)) != NULL) {
		struct skv_superblock sb;
		struct skv_error why;
		struct stat st;
		uint32_t file;
		int fd;

		if (!skv_slab_number(e->d_name, &file) ||
		    open_slab(s, dir, e->d_name, &fd, &st, raw, &sb, &why) != SKV_OK)
			continue;
		close(fd);
		proved = judge_owner(s, &sb, file, e->d_name, &why) == SKV_OK &&
			 judge_geometry(s, &sb, sb.length, (uint64_t)st.st_size, e->d_name,
					&why) == SKV_OK;
	}
	if (d)
		closedir(d);
	return proved;
}

int skv_slab_remove(const struct file_storage *s, int dir, uint32_t file, struct skv_error *err)
{
	SUPERBLOCK_BYTES(raw);
	char name[SKV_SLAB_PATH_MAX];
	struct skv_superblock sb;
	struct stat st;
	int fd, rc;

	skv_slab_path(file, name);
	rc = open_slab(s, dir, name, &fd, &st, raw, &sb, err);
	if (rc == SKV_OK) {
		rc = judge_owner(s, &sb, file, name, err);
		close(fd);
		if (rc == SKV_OK && unlinkat(dir, name, 0) != 0 && errno != ENOENT)
			rc = skv_fs_fail(err, errno, "cannot remove the slab file", name);
	}
	if (rc != SKV_OK && rc != SKV_E_NOT_FOUND)
		return rc;
	if (fsync(dir) != 0)
		return skv_fs_fail(err, errno, "cannot sync the root directory", s->root);
	skv_error_clear(err);
	return SKV_OK;
}

/* The file is proved by one descriptor and opened again for writing: it must still be the same
 * one. */
static int open_to_write(int dir, const char *name, const struct stat *proved, int *fd)
{
	struct stat st;

	*fd = openat(dir, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (*fd < 0)
		return errno;
	if (fstat(*fd, &st) == 0 && st.st_dev == proved->st_dev && st.st_ino == proved->st_ino)
		return 0;
	close(*fd);
	return ESTALE;
}

/* The superblock at `at`: SKV_OK if it is this file's; SKV_E_FOREIGN if it is whole and
 * another's. */
static int read_copy(const struct file_storage *s, int fd, uint64_t at, uint32_t file,
		     uint64_t length, const char *name, uint8_t raw[SKV_SUPERBLOCK_SIZE],
		     struct skv_error *err)
{
	struct skv_superblock sb;
	struct skv_error why = { 0 };
	int rc = skv_superblock_read(fd, at, name, raw, &sb, &why);

	if (rc == SKV_E_FOREIGN || rc == SKV_E_CORRUPT || rc == SKV_E_UNSUPPORTED)
		return skv_fail(err, SKV_E_CORRUPT, NULL, "%s", why.message);
	if (rc != SKV_OK)
		return skv_fail(err, rc, NULL, "%s", why.message);
	rc = judge_owner(s, &sb, file, name, err);
	if (rc == SKV_OK && judge_geometry(s, &sb, length, length, name, err) != SKV_OK)
		rc = SKV_E_FOREIGN;
	return rc;
}

static int write_copy(int dir, const char *name, const struct stat *proved, uint64_t at,
		      const uint8_t *raw, struct skv_error *err)
{
	int fd, error;

	assert(at <= (uint64_t)proved->st_size - SKV_SUPERBLOCK_SIZE);
	error = open_to_write(dir, name, proved, &fd);

	if (error == 0) {
		error = skv_fs_write(fd, at, raw, SKV_SUPERBLOCK_SIZE);
		if (error == 0 && fsync(fd) != 0)
			error = errno;
		close(fd);
	}
	return error == 0 ? SKV_OK : skv_fs_fail(err, error, "cannot repair the slab file", name);
}

/* Finds the good one of the two copies, and writes it over the other if they differ. */
static int mend_open(const struct file_storage *s, int dir, int fd, const struct stat *st,
		     uint32_t file, uint64_t length, const char *name, struct skv_error *err)
{
	SUPERBLOCK_BYTES(head);
	SUPERBLOCK_BYTES(tail);
	const uint64_t end = length - s->edge;
	struct skv_error why = { 0 };
	int front, back;

	if ((uint64_t)st->st_size != length)
		return skv_fail(err, SKV_E_FOREIGN, NULL, "it has %llu bytes instead of %llu (%s)",
				(unsigned long long)st->st_size, (unsigned long long)length, name);
	front = read_copy(s, fd, 0, file, length, name, head, err);
	back = read_copy(s, fd, end, file, length, name, tail, &why);
	if (front == SKV_OK && back == SKV_OK && memcmp(head, tail, sizeof head) == 0)
		return SKV_OK;
	if (front == SKV_OK && (back == SKV_OK || back == SKV_E_CORRUPT))
		return write_copy(dir, name, st, end, head, err);
	if (front == SKV_E_CORRUPT && back == SKV_OK)
		return write_copy(dir, name, st, 0, tail, err);
	return front != SKV_OK ? front : skv_fail(err, back, NULL, "%s", why.message);
}

int skv_slab_mend(const struct file_storage *s, int dir, uint32_t file, uint64_t length,
		  struct skv_error *err)
{
	char name[SKV_SLAB_PATH_MAX];
	struct stat st;
	int fd, error, rc;

	skv_slab_path(file, name);
	error = skv_root_open(s, dir, name, &fd);
	if (error == ENOENT)
		return skv_fail(err, SKV_E_NOT_FOUND, NULL, "the slab file is missing (%s)", name);
	if (error != 0)
		return skv_fs_fail(err, error, "cannot open the slab file", name);
	if (fstat(fd, &st) != 0)
		rc = skv_fs_fail(err, errno, "cannot stat the slab file", name);
	else if (!S_ISREG(st.st_mode))
		rc = fail_not_a_file(err, "not a regular file", name);
	else
		rc = mend_open(s, dir, fd, &st, file, length, name, err);
	close(fd);
	return rc;
}

int skv_slab_punch(const struct file_storage *s, int dir, uint32_t file, uint64_t length,
		   const struct skv_storage_range *v, uint32_t n, struct skv_error *err)
{
	SUPERBLOCK_BYTES(raw);
	char name[SKV_SLAB_PATH_MAX];
	struct skv_superblock sb;
	struct skv_fs_mount m;
	struct stat st;
	int fd, error, rc;

	assert(v[0].begin >= s->edge && v[n - 1].end <= length - s->edge);
	skv_slab_path(file, name);
	rc = open_slab(s, dir, name, &fd, &st, raw, &sb, err);
	if (rc != SKV_OK)
		return rc;
	rc = judge_owner(s, &sb, file, name, err);
	if (rc == SKV_OK)
		rc = judge_geometry(s, &sb, length, (uint64_t)st.st_size, name, err);
	close(fd);
	if (rc != SKV_OK)
		return rc;
	error = open_to_write(dir, name, &st, &fd);
	if (error != 0)
		return skv_fs_fail(err, error, "cannot open the slab file for writing", name);
	error = skv_fs_look(fd, &m);
	if (error == 0)
		error = skv_fs_punch(fd, m.is_3fs, v, n);
	close(fd);
	return error == 0 ? SKV_OK
			  : skv_fs_fail(err, error, "cannot punch holes into the slab file", name);
}
