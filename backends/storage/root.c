/*
 * root.c - the root directory of a `file` storage and its marker.
 *
 * The marker `kvblock-storage` is what separates our directory from everybody else's. A directory
 * that holds anything without it is never touched; a directory whose marker names another storage is
 * refused; a directory that the registry knows but that has no marker is most likely an empty mount
 * point, and is refused too rather than formatted under blocks that exist elsewhere.
 *
 * Owns no state but dev and ino of the storage (under its lock). Called from any thread, blocks with
 * the file system. It never removes anything but leftovers of its own crashes.
 */
#include "file.h"
#include "fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <kvb/clock.h>
#include <kvb/log.h>
#include <kvb/mem.h>

#define PROBE_FILE ".kvblock-probe"

static int open_root(const struct file_storage *s, int *dir) { return kvb_fs_open_dir(s->below, s->root, dir); }

static int fail_root(const struct file_storage *s, int error, struct kvb_error *err)
{
	switch (error) {
	case ENOENT:
		return kvb_fail(err, KVB_E_UNAVAILABLE, "root",
				"the directory of storage '%s' does not exist: is the file system "
				"mounted? (%s)",
				s->name, s->root);
	case ENOTDIR:
	case ELOOP:
		return kvb_fail(err, KVB_E_FOREIGN, "root", "the root is not a directory%s (%s)",
				s->below >= 0 ? ", or a symbolic link: refused" : "", s->root);
	case ENOTCONN:
	case ESTALE:
		return kvb_fail(err, KVB_E_UNAVAILABLE, "root",
				"the mount of storage '%s' is stale, its daemon or server is gone: unmount it (umount -l) "
				"and mount it again (%s)",
				s->name, s->root);
	default:
		return kvb_fs_fail(err, error, "cannot open the root directory", s->root);
	}
}

/* ---- the mount of a chunked storage ------------------------------------------------------------ */

static bool chunk_is_good(uint64_t chunk, bool is_3fs)
{
	return (chunk & (chunk - 1)) == 0 && chunk <= KVB_CHUNK_MAX && chunk >= (is_3fs ? KVB_CHUNK_MIN : FILE_EDGE);
}

/* KVB_OK for a mount that will do. */
static int look_at_mount(const struct file_storage *s, int dir, struct kvb_fs_mount *m, struct kvb_error *err)
{
	int error = kvb_fs_look(dir, m);

	if (error != 0)
		return fail_root(s, error, err);
	if (!m->is_3fs && !s->any_mount)
		return kvb_fail(err, KVB_E_UNAVAILABLE, "root",
				"storage '%s' was promised 3FS, but its directory lies on a mount of type %s: mount 3FS there, "
				"or register it as type file (%s)",
				s->name, m->type, s->root);
	return KVB_OK;
}

static int judge_chunk(const struct file_storage *s, const struct kvb_fs_mount *m, struct kvb_error *err)
{
	if (!m->is_3fs || m->chunk == s->chunk)
		return KVB_OK;
	return kvb_fail(err, KVB_E_CONFLICT, "chunk_size",
			"the directory of storage '%s' has chunks of %llu bytes, not of %llu: name the right directory, or make "
			"one with this layout (%s)",
			s->name, (unsigned long long)m->chunk, (unsigned long long)s->chunk, s->root);
}

static int judge_mount(const struct file_storage *s, int dir, struct kvb_error *err)
{
	struct kvb_fs_mount m;
	int rc = s->chunk ? look_at_mount(s, dir, &m, err) : KVB_OK;

	return rc == KVB_OK && s->chunk ? judge_chunk(s, &m, err) : rc;
}

int kvb_root_open(const struct file_storage *s, int dir, const char *name, int *fd)
{
	return s->chunked && !s->any_mount ? kvb_fs_open_direct(dir, name, fd) : kvb_fs_open(dir, name, fd);
}

int kvb_superblock_read(int fd, uint64_t at, const char *name, uint8_t raw[KVB_SUPERBLOCK_SIZE],
			struct kvb_superblock *out, struct kvb_error *err)
{
	struct kvb_error why = { 0 };
	size_t got;
	int error = kvb_fs_read(fd, at, raw, KVB_SUPERBLOCK_SIZE, &got);
	int rc;

	if (error != 0)
		return kvb_fs_fail(err, error, "cannot read the superblock", name);
	if (got != KVB_SUPERBLOCK_SIZE)
		return kvb_fail(err, KVB_E_CORRUPT, NULL, "too short for a superblock: it was cut off (%s)",
				name);
	rc = kvb_superblock_decode(raw, out, &why);
	return rc == KVB_OK ? rc : kvb_fail(err, rc, NULL, "%s (%s)", why.message, name);
}

/* ---- making a root ---------------------------------------------------------------------------- */

static int open_parent(const struct file_storage *s, int *dir)
{
	char *parent;
	int error;

	if (s->below >= 0)
		return kvb_fs_open_dir(s->below, ".", dir);
	parent = kvb_strdup(s->root);
	if (!parent)
		return ENOMEM;
	for (size_t n = strlen(parent); n > 1 && parent[n - 1] == '/'; n--)
		parent[n - 1] = '\0';
	*(strrchr(parent, '/') + 1) = '\0';
	error = kvb_fs_open_dir(-1, parent, dir);
	kvb_free(parent);
	return error;
}

/* Only the last component is made: a missing parent is more likely a missing mount than a wish. */
static int make_root(const struct file_storage *s, bool *made, struct kvb_error *err)
{
	int fd, error;

	*made = false;
	if ((s->below < 0 ? mkdir(s->root, 0777) : mkdirat(s->below, s->root, 0777)) != 0) {
		if (errno == EEXIST)
			return KVB_OK;
		if (errno == ENOENT)
			return kvb_fail(err, KVB_E_UNAVAILABLE, "root",
					"the parent of the root directory does not exist: is the file "
					"system mounted? (%s)",
					s->root);
		return kvb_fs_fail(err, errno, "cannot make the root directory", s->root);
	}
	*made = true;
	error = open_parent(s, &fd);
	if (error == 0) {
		error = fsync(fd) == 0 ? 0 : errno;
		close(fd);
	}
	if (error != 0)
		return kvb_fs_fail(err, error, "cannot sync the parent of the root directory", s->root);
	return KVB_OK;
}

static bool may_be_there(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strcmp(name, "lost+found") == 0 ||
	       kvb_fs_is_temp(name);
}

/* KVB_E_FOREIGN when the directory, which has no marker, holds anything. */
static int check_empty(const struct file_storage *s, int dir, struct kvb_error *err)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	int rc = KVB_OK;

	if (!d) {
		rc = kvb_fs_fail(err, errno, "cannot list the root directory", s->root);
		if (fd >= 0)
			close(fd);
		return rc;
	}
	errno = 0;
	while (rc == KVB_OK && (e = readdir(d)) != NULL)
		if (!may_be_there(e->d_name))
			rc = kvb_fail(err, KVB_E_FOREIGN, "root",
				      "the directory is not empty (it holds '%.64s') and has no marker of "
				      "kvblockd: choose an empty one (%s)",
				      e->d_name, s->root);
	if (rc == KVB_OK && errno != 0)
		rc = kvb_fs_fail(err, errno, "cannot list the root directory", s->root);
	closedir(d);
	return rc;
}

static int write_marker(const struct file_storage *s, int dir, struct kvb_error *err)
{
	struct kvb_superblock sb = { .file = KVB_NO_FILE,
				     .unit = s->unit,
				     .header = s->edge,
				     .trailer = s->edge,
				     .created_ms = kvb_wall_ms(&kvb_clock_system) };
	uint8_t raw[KVB_SUPERBLOCK_SIZE];
	struct kvb_fs_temp temp;
	int error;

	memcpy(sb.uuid, s->uuid, sizeof sb.uuid);
	kvb_superblock_encode(&sb, raw);
	kvb_fs_sweep(dir);
	error = kvb_fs_temp_open(dir, &temp);
	if (error == 0) {
		error = kvb_fs_write(temp.fd, 0, raw, sizeof raw);
		if (error == 0)
			error = kvb_fs_temp_publish(dir, &temp, KVB_STORAGE_MARKER);
		else
			kvb_fs_temp_drop(dir, &temp);
	}
	/* EEXIST: another manager was faster; whose marker it is, kvb_root_enter tells. */
	if (error != 0 && error != EEXIST)
		return kvb_fs_fail(err, error, "cannot write the marker into the root directory", s->root);
	return KVB_OK;
}

/* Opens the root, which is made where it is missing. With `m`, if its mount will do; nothing is left behind of one that
 * will not. */
static int open_new_root(const struct file_storage *s, int *dir, struct kvb_fs_mount *m, struct kvb_error *err)
{
	bool made = false;
	int error = open_root(s, dir);
	int rc = error == ENOENT ? make_root(s, &made, err) : KVB_OK;

	if (rc != KVB_OK)
		return rc;
	if (error == ENOENT)
		error = open_root(s, dir);
	if (error != 0)
		return fail_root(s, error, err);
	rc = m ? look_at_mount(s, *dir, m, err) : KVB_OK;
	if (rc == KVB_OK)
		return KVB_OK;
	close(*dir);
	if (made)
		unlinkat(s->below < 0 ? AT_FDCWD : s->below, s->root, AT_REMOVEDIR);
	return rc;
}

int kvb_root_measure(struct file_storage *s, struct kvb_error *err)
{
	struct kvb_fs_mount m;
	int dir, rc = open_new_root(s, &dir, &m, err);

	if (rc != KVB_OK)
		return rc;
	close(dir);
	if (!chunk_is_good(m.chunk, m.is_3fs))
		return kvb_fail(err, KVB_E_INVALID, "chunk_size",
				"the directory's chunk size (st_blksize) is %llu bytes; it must be a power of two from 64 KiB to "
				"64 MiB: make a directory with such a layout (%s)",
				(unsigned long long)m.chunk, s->root);
	s->chunk = s->edge = m.chunk;
	return KVB_OK;
}

int kvb_root_claim(struct file_storage *s, struct kvb_error *err)
{
	struct kvb_fs_mount m;
	struct stat st;
	int dir, rc = open_new_root(s, &dir, s->chunk ? &m : NULL, err);

	if (rc != KVB_OK)
		return rc;
	if (fstatat(dir, KVB_STORAGE_MARKER, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		rc = KVB_OK;
	} else if (errno != ENOENT) {
		rc = kvb_fs_fail(err, errno, "cannot look for the marker in the root directory", s->root);
	} else {
		rc = s->chunk ? judge_chunk(s, &m, err) : KVB_OK;
		if (rc == KVB_OK)
			rc = check_empty(s, dir, err);
		if (rc == KVB_OK)
			rc = write_marker(s, dir, err);
	}
	close(dir);
	return rc;
}

/* ---- entering it ------------------------------------------------------------------------------ */

static int judge_marker(const struct file_storage *s, const struct kvb_superblock *sb,
			struct kvb_error *err)
{
	char theirs[37], ours[37];

	if (sb->file != KVB_NO_FILE)
		return kvb_fail(err, KVB_E_FOREIGN, "root",
				"the marker of the root is the superblock of slab file %u: somebody copied "
				"it there (%s)",
				sb->file, s->root);
	if (memcmp(sb->uuid, s->uuid, sizeof sb->uuid) != 0) {
		kvb_uuid_to_text(sb->uuid, theirs);
		kvb_uuid_to_text(s->uuid, ours);
		return kvb_fail(err, KVB_E_FOREIGN, "root",
				"the root belongs to storage %s, this one is %s: wrong mount, or a "
				"directory of another database (%s)",
				theirs, ours, s->root);
	}
	if (sb->header != s->edge || sb->trailer != s->edge)
		return kvb_fail(err, KVB_E_CONFLICT, "chunk_size",
				"the marker of the root tells a chunk size of %llu bytes, this storage has %llu: name the right "
				"directory (%s)",
				(unsigned long long)sb->header, (unsigned long long)s->edge, s->root);
	if (sb->unit != s->unit)
		return kvb_fail(err, KVB_E_CORRUPT, "root",
				"the marker tells another geometry (unit %llu) than the registry (unit "
				"%llu) (%s)",
				(unsigned long long)sb->unit, (unsigned long long)s->unit, s->root);
	return KVB_OK;
}

static int check_marker(const struct file_storage *s, int dir, struct kvb_error *err)
{
	SUPERBLOCK_BYTES(raw);
	struct kvb_superblock sb;
	struct stat st;
	int fd, rc;
	int error = kvb_root_open(s, dir, KVB_STORAGE_MARKER, &fd);

	if (error == ENOENT)
		return kvb_fail(err, KVB_E_UNAVAILABLE, "root",
				"the directory of storage '%s' has lost its marker '%s': is the file "
				"system mounted? (%s)",
				s->name, KVB_STORAGE_MARKER, s->root);
	if (error == ELOOP)
		return kvb_fail(err, KVB_E_FOREIGN, "root",
				"the marker '%s' is a symbolic link: refused (%s)", KVB_STORAGE_MARKER, s->root);
	if (error != 0)
		return kvb_fs_fail(err, error, "cannot open the marker of the root directory", s->root);
	if (fstat(fd, &st) != 0)
		rc = kvb_fs_fail(err, errno, "cannot stat the marker of the root directory", s->root);
	else if (!S_ISREG(st.st_mode))
		rc = kvb_fail(err, KVB_E_FOREIGN, "root", "the marker '%s' is not a regular file (%s)",
			      KVB_STORAGE_MARKER, s->root);
	else
		rc = kvb_superblock_read(fd, 0, KVB_STORAGE_MARKER, raw, &sb, err);
	close(fd);
	return rc == KVB_OK ? judge_marker(s, &sb, err) : rc;
}

/* A root with the right marker in another place is a new mount of the same file system, or a copy of
 * it. We cannot tell which, so we go on (a remounted FUSE file system must come back by itself) and
 * tell the operator. A stale copy costs misses, not wrong bytes: checksums decide. */
static int note_identity(struct file_storage *s, int dir, struct kvb_error *err)
{
	struct stat st;
	bool moved;

	if (fstat(dir, &st) != 0)
		return kvb_fs_fail(err, errno, "cannot stat the root directory", s->root);
	kvb_mutex_lock(&s->lock);
	moved = s->ino != 0 && (s->dev != st.st_dev || s->ino != st.st_ino);
	s->dev = st.st_dev;
	s->ino = st.st_ino;
	kvb_mutex_unlock(&s->lock);
	if (moved)
		kvb_log(KVB_LOG_WARN, "storage",
			"%s: the root was mounted anew or replaced; its marker is the right one, so it is "
			"used (%s)",
			s->name, s->root);
	return KVB_OK;
}

int kvb_root_enter(struct file_storage *s, int *dir, struct kvb_error *err)
{
	int error = open_root(s, dir);
	int rc;

	if (error != 0)
		return fail_root(s, error, err);
	rc = judge_mount(s, *dir, err);
	if (rc == KVB_OK)
		rc = check_marker(s, *dir, err);
	if (rc == KVB_OK)
		rc = note_identity(s, *dir, err);
	if (rc != KVB_OK)
		close(*dir);
	return rc;
}

int kvb_root_try_write(const struct file_storage *s, int dir, struct kvb_error *err)
{
	uint64_t now = kvb_wall_ms(&kvb_clock_system);
	char text[32];
	int n = snprintf(text, sizeof text, "%020llu\n", (unsigned long long)now);
	int fd = openat(dir, PROBE_FILE, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
	int error = fd < 0 ? errno : kvb_fs_write(fd, 0, text, (size_t)n);

	if (error == 0 && fsync(fd) != 0)
		error = errno;
	if (fd >= 0)
		close(fd);
	if (error == EROFS)
		return kvb_fail(err, KVB_E_UNAVAILABLE, "root",
				"the file system of storage '%s' is mounted read-only: mount it writable (%s)", s->name, s->root);
	if (error != 0)
		return kvb_fs_fail(err, error, "cannot write into the root directory", s->root);
	return KVB_OK;
}
