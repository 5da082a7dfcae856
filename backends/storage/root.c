/*
 * root.c - the root directory of a `file` storage and its marker.
 *
 * The marker `slabkv-storage` distinguishes a directory of slabkv from all others. A directory
 * whose marker names another storage is refused. A marker that is missing or damaged is written
 * again where another file proves the directory: an owner file or a slab file of this very storage.
 * Without such a file a directory with any content is never touched. An empty directory that the
 * registry knows is most likely a mount point without its mount: it is refused, because formatting
 * it would hide blocks that exist elsewhere.
 *
 * Owns no state but what file_storage.lock protects. Called from any thread, blocks with the file
 * system. It never removes anything but leftovers of its own crashes, and, when the storage is
 * deleted, its own files.
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
#include <time.h>
#include <unistd.h>

#include <skv/clock.h>
#include <skv/log.h>
#include <skv/mem.h>

#define PROBE_FILE ".slabkv-probe" /* and with a digit, of chunked storages */
#define ROOT_MODE 0770 /* without the bits of the umask */
#define MARKER_LOOKS_MS 200 /* between two looks at a damaged marker */
#define SETTLED_S 2 /* a file changed longer ago has another time after its next change */

static int open_root(const struct file_storage *s, int *dir)
{
	return skv_fs_open_dir(s->below, s->root, dir);
}

static int fail_root(const struct file_storage *s, int error, struct skv_error *err)
{
	switch (error) {
	case ENOENT:
		return skv_fail(err, SKV_E_UNAVAILABLE, "root",
				"the directory of storage '%s' does not exist: is the file system "
				"mounted? (%s)",
				s->name, s->root);
	case ENOTDIR:
	case ELOOP:
		return skv_fail(err, SKV_E_FOREIGN, "root", "the root is not a directory%s (%s)",
				s->below >= 0 ? ", or a symbolic link: refused" : "", s->root);
	case ENOTCONN:
	case ESTALE:
		return skv_fail(
			err, SKV_E_UNAVAILABLE, "root",
			"the mount of storage '%s' is stale, its daemon or server is gone: unmount "
			"it (umount -l) and mount it again (%s)",
			s->name, s->root);
	default:
		return skv_fs_fail(err, error, "cannot open the root directory", s->root);
	}
}

/* ---- the mount of a chunked storage ---------------------------------------------------------- */

static bool chunk_is_good(uint64_t chunk, bool is_3fs)
{
	return (chunk & (chunk - 1)) == 0 && chunk <= SKV_CHUNK_MAX &&
	       chunk >= (is_3fs ? SKV_CHUNK_MIN : FILE_EDGE);
}

/* SKV_OK for a mount that will do. */
static int look_at_mount(const struct file_storage *s, int dir, struct skv_fs_mount *m,
			 struct skv_error *err)
{
	int error = skv_fs_look(dir, m);

	if (error != 0)
		return fail_root(s, error, err);
	if (!m->is_3fs && !s->any_mount)
		return skv_fail(
			err, SKV_E_UNAVAILABLE, "root",
			"storage '%s' is of type hf3fs, but its directory is on a mount of type "
			"%s: mount 3FS there, or register it as type file (%s)",
			s->name, m->type, s->root);
	return SKV_OK;
}

static int judge_chunk(const struct file_storage *s, const struct skv_fs_mount *m,
		       struct skv_error *err)
{
	assert(s->chunk > 0);
	if (!m->is_3fs || m->chunk == s->chunk)
		return SKV_OK;
	return skv_fail(
		err, SKV_E_CONFLICT, "chunk_size",
		"the directory of storage '%s' has chunks of %llu bytes, not of %llu: name the "
		"right directory, or make one with this layout (%s)",
		s->name, (unsigned long long)m->chunk, (unsigned long long)s->chunk, s->root);
}

static int judge_mount(const struct file_storage *s, int dir, struct skv_error *err)
{
	struct skv_fs_mount m;
	int rc = s->chunk ? look_at_mount(s, dir, &m, err) : SKV_OK;

	return rc == SKV_OK && s->chunk ? judge_chunk(s, &m, err) : rc;
}

int skv_root_open(const struct file_storage *s, int dir, const char *name, int *fd)
{
	return s->chunked && !s->any_mount ? skv_fs_open_direct(dir, name, fd)
					   : skv_fs_open(dir, name, fd);
}

int skv_superblock_read(int fd, uint64_t at, const char *name, uint8_t raw[SKV_SUPERBLOCK_SIZE],
			struct skv_superblock *out, struct skv_error *err)
{
	struct skv_error why = { 0 };
	size_t got;
	int error;
	int rc;

	assert((uintptr_t)raw % SKV_SUPERBLOCK_SIZE == 0);
	error = skv_fs_read(fd, at, raw, SKV_SUPERBLOCK_SIZE, &got);

	if (error != 0)
		return skv_fs_fail(err, error, "cannot read the superblock", name);
	if (got != SKV_SUPERBLOCK_SIZE)
		return skv_fail(err, SKV_E_CORRUPT, NULL,
				"too short for a superblock: it was cut off (%s)", name);
	rc = skv_superblock_decode(raw, out, &why);
	return rc == SKV_OK ? rc : skv_fail(err, rc, NULL, "%s: %s", name, why.message);
}

/* ---- making a root --------------------------------------------------------------------------- */

static int open_parent(const struct file_storage *s, int *dir)
{
	char *parent;
	int error;

	if (s->below >= 0)
		return skv_fs_open_dir(s->below, ".", dir);
	assert(s->root[0] == '/');
	parent = skv_strdup(s->root);
	if (!parent)
		return ENOMEM;
	for (size_t n = strlen(parent); n > 1 && parent[n - 1] == '/'; n--)
		parent[n - 1] = '\0';
	*(strrchr(parent, '/') + 1) = '\0';
	error = skv_fs_open_dir(-1, parent, dir);
	skv_free(parent);
	return error;
}

/* Only the last component is made: a missing parent is more likely a missing mount than a wish. */
static int make_root(const struct file_storage *s, bool *made, struct skv_error *err)
{
	int fd, error;

	*made = false;
	if ((s->below < 0 ? mkdir(s->root, ROOT_MODE) : mkdirat(s->below, s->root, ROOT_MODE)) !=
	    0) {
		if (errno == EEXIST)
			return SKV_OK;
		if (errno == ENOENT)
			return skv_fail(
				err, SKV_E_UNAVAILABLE, "root",
				"the parent of the root directory does not exist: is the file "
				"system mounted? (%s)",
				s->root);
		return skv_fs_fail(err, errno, "cannot make the root directory", s->root);
	}
	*made = true;
	error = open_parent(s, &fd);
	if (error == 0) {
		error = fsync(fd) == 0 ? 0 : errno;
		close(fd);
	}
	if (error != 0)
		return skv_fs_fail(err, error, "cannot sync the parent of the root directory",
				   s->root);
	return SKV_OK;
}

/* Whether SKV_STORAGE_LINK is a link to the directory itself, as skv_root_make_link makes it. */
static bool has_link(int dir)
{
	char target[2];

	return readlinkat(dir, SKV_STORAGE_LINK, target, sizeof target) == 1 && target[0] == '.';
}

static bool may_be_there(int dir, const char *name)
{
	if (strcmp(name, SKV_STORAGE_LINK) == 0)
		return has_link(dir);
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
	       strcmp(name, "lost+found") == 0 || skv_fs_is_temp(name);
}

const char *skv_root_probe_name(unsigned n, char out[SKV_PROBE_NAME])
{
	_Static_assert(sizeof PROBE_FILE + 1 <= SKV_PROBE_NAME, "a digit fits");
	assert(n < SKV_PROBE_FILES);
	snprintf(out, SKV_PROBE_NAME, n ? PROBE_FILE "%u" : PROBE_FILE, n);
	return out;
}

static bool is_probe(const char *name)
{
	const size_t n = strlen(PROBE_FILE);

	return strncmp(name, PROBE_FILE, n) == 0 && strlen(name) <= n + 1;
}

/* Removes leftover probe files. A new storage may keep those that cannot be removed. */
static void remove_probes(int dir)
{
	char name[SKV_PROBE_NAME];

	for (unsigned i = 0; i < SKV_PROBE_FILES; i++)
		unlinkat(dir, skv_root_probe_name(i, name), 0);
}

static bool is_root_file(const char *name)
{
	return strcmp(name, SKV_STORAGE_MARKER) == 0 || is_probe(name);
}

static int in_use(const struct file_storage *s, const char *name, struct skv_error *err)
{
	return skv_fail(err, SKV_E_IN_USE, "root",
			"the directory still holds '%.64s': its marker stays (%s)", name, s->root);
}

static int not_empty(const struct file_storage *s, const char *name, struct skv_error *err)
{
	return skv_fail(
		err, SKV_E_FOREIGN, "root",
		"the directory is not empty (it holds '%.64s') and has no marker of slabkv: choose "
		"an empty one (%s)",
		name, s->root);
}

/* With a marker (`leaving`), that and probe files may be there. SKV_E_IN_USE, or without one
 * SKV_E_FOREIGN: there is more. */
static int check_empty(const struct file_storage *s, int dir, bool leaving, struct skv_error *err)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	int rc = SKV_OK;

	if (!d) {
		rc = skv_fs_fail(err, errno, "cannot list the root directory", s->root);
		if (fd >= 0)
			close(fd);
		return rc;
	}
	errno = 0;
	while (rc == SKV_OK && (e = readdir(d)) != NULL)
		if (!may_be_there(dir, e->d_name) && !(leaving && is_root_file(e->d_name)))
			rc = leaving ? in_use(s, e->d_name, err)
				     : not_empty(s, e->d_name, err);
	if (rc == SKV_OK && errno != 0)
		rc = skv_fs_fail(err, errno, "cannot list the root directory", s->root);
	closedir(d);
	return rc;
}

static int write_marker(const struct file_storage *s, int dir, struct skv_error *err)
{
	struct skv_superblock sb = { .file = SKV_NO_FILE,
				     .unit = s->unit,
				     .header = s->edge,
				     .trailer = s->edge,
				     .created_ms = skv_wall_ms(&skv_clock_system) };
	uint8_t raw[SKV_SUPERBLOCK_SIZE];
	struct skv_fs_temp temp;
	int error;

	assert(s->edge >= sizeof raw);
	memcpy(sb.uuid, s->uuid, sizeof sb.uuid);
	skv_superblock_encode(&sb, raw);
	skv_fs_sweep(dir);
	error = skv_fs_temp_open(dir, &temp);
	if (error == 0) {
		error = skv_fs_write(temp.fd, 0, raw, sizeof raw);
		if (error == 0)
			error = skv_fs_temp_publish(dir, &temp, SKV_STORAGE_MARKER);
		else
			skv_fs_temp_drop(dir, &temp);
	}
	/* EEXIST: another manager was faster; skv_root_enter identifies the marker's owner */
	if (error != 0 && error != EEXIST)
		return skv_fs_fail(err, error, "cannot write the marker into the root directory",
				   s->root);
	return SKV_OK;
}

/* Returns true if a file in the directory, beside the marker, names this very storage. */
static bool has_proof(const struct file_storage *s, int dir)
{
	struct skv_storage_owner v[SKV_STORAGE_OWNERS];
	struct skv_error ignored;
	uint32_t n = 0;

	if (skv_owner_list(s, dir, NULL, v, &n, &ignored) == SKV_OK)
		for (uint32_t i = 0; i < n; i++)
			if (!skv_storage_owner_is_damaged(&v[i]))
				return true;
	return skv_slab_proves(s, dir);
}

/* Opens the root, which is made where it is missing. With `m`, if its mount will do; nothing is
 * left behind of one that will not. */
static int open_new_root(const struct file_storage *s, int *dir, struct skv_fs_mount *m,
			 struct skv_error *err)
{
	bool made = false;
	int error = open_root(s, dir);
	int rc = error == ENOENT ? make_root(s, &made, err) : SKV_OK;

	if (rc != SKV_OK)
		return rc;
	if (error == ENOENT)
		error = open_root(s, dir);
	if (error != 0)
		return fail_root(s, error, err);
	rc = m ? look_at_mount(s, *dir, m, err) : SKV_OK;
	if (rc == SKV_OK)
		return SKV_OK;
	close(*dir);
	if (made)
		unlinkat(s->below < 0 ? AT_FDCWD : s->below, s->root, AT_REMOVEDIR);
	return rc;
}

int skv_root_measure(struct file_storage *s, struct skv_error *err)
{
	struct skv_fs_mount m;
	int dir, rc;

	assert(s->chunked && s->chunk == 0);
	rc = open_new_root(s, &dir, &m, err);

	if (rc != SKV_OK)
		return rc;
	close(dir);
	if (!chunk_is_good(m.chunk, m.is_3fs))
		return skv_fail(
			err, SKV_E_INVALID, "chunk_size",
			"the directory's chunk size (st_blksize) is %llu bytes; it must be a power "
			"of two from 32 KiB to 64 MiB: make a directory with such a layout (%s)",
			(unsigned long long)m.chunk, s->root);
	s->chunk = s->edge = m.chunk;
	return SKV_OK;
}

int skv_root_claim(struct file_storage *s, struct skv_error *err)
{
	struct skv_fs_mount m;
	struct stat st;
	int dir, rc = open_new_root(s, &dir, s->chunk ? &m : NULL, err);

	if (rc != SKV_OK)
		return rc;
	if (fstatat(dir, SKV_STORAGE_MARKER, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		rc = SKV_OK;
	} else if (errno != ENOENT) {
		rc = skv_fs_fail(err, errno, "cannot stat the marker in the root directory",
				 s->root);
	} else {
		rc = s->chunk ? judge_chunk(s, &m, err) : SKV_OK;
		if (rc == SKV_OK && !has_proof(s, dir))
			rc = check_empty(s, dir, false, err);
		if (rc == SKV_OK)
			rc = write_marker(s, dir, err);
	}
	close(dir);
	return rc;
}

/* ---- entering it ----------------------------------------------------------------------------- */

static int judge_marker(const struct file_storage *s, const struct skv_superblock *sb,
			struct skv_error *err)
{
	char theirs[37], ours[37];

	if (sb->file != SKV_NO_FILE)
		return skv_fail(
			err, SKV_E_FOREIGN, "root",
			"the marker of the root is the superblock of slab file %u: somebody copied "
			"it there (%s)",
			sb->file, s->root);
	if (memcmp(sb->uuid, s->uuid, sizeof sb->uuid) != 0) {
		skv_uuid_to_text(sb->uuid, theirs);
		skv_uuid_to_text(s->uuid, ours);
		return skv_fail(err, SKV_E_FOREIGN, "root",
				"the root belongs to storage %s, this one is %s: wrong mount, or a "
				"directory of another database (%s)",
				theirs, ours, s->root);
	}
	if (sb->header != s->edge || sb->trailer != s->edge)
		return skv_fail(
			err, SKV_E_CONFLICT, "chunk_size",
			"the root's marker says a chunk size of %llu bytes, this storage "
			"has %llu: name the right directory (%s)",
			(unsigned long long)sb->header, (unsigned long long)s->edge, s->root);
	if (sb->unit != s->unit)
		return skv_fail(
			err, SKV_E_CORRUPT, "root",
			"the marker's geometry (unit %llu) differs from the registry's "
			"(unit %llu) (%s)",
			(unsigned long long)sb->unit, (unsigned long long)s->unit, s->root);
	return SKV_OK;
}

/* A marker as one look finds it. */
struct marker {
	struct skv_superblock sb; /* unless `known` */
	bool known;     /* not read: it is as it was when it was good */
	bool damaged;   /* missing, or a regular file that is not a whole superblock */
	struct stat st; /* st_ino 0: missing */
};

/* Moving a file to another name leaves these as they are. */
static bool is_unchanged(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* The marker as last found good; st_ino 0: it was not, or it may change unseen. */
static struct stat good_marker(struct file_storage *s)
{
	struct stat st;

	skv_mutex_lock(&s->lock);
	st = s->marker;
	skv_mutex_unlock(&s->lock);
	return st;
}

static void note_marker(struct file_storage *s, const struct stat *st)
{
	skv_mutex_lock(&s->lock);
	s->marker = *st;
	if (time(NULL) - st->st_mtim.tv_sec < SETTLED_S)
		s->marker.st_ino = 0;
	skv_mutex_unlock(&s->lock);
}

/* `good`: as it was when it was good; st_ino 0: read it. */
static int read_marker(const struct file_storage *s, int dir, const struct stat *good,
		       struct marker *m, struct skv_error *err)
{
	SUPERBLOCK_BYTES(raw);
	int fd, rc;
	int error = skv_root_open(s, dir, SKV_STORAGE_MARKER, &fd);

	*m = (struct marker){ .damaged = error == ENOENT };
	if (error == ENOENT)
		return skv_fail(err, SKV_E_UNAVAILABLE, "root",
				"the directory of storage '%s' has lost its marker '%s': is the "
				"file system mounted? (%s)",
				s->name, SKV_STORAGE_MARKER, s->root);
	if (error == ELOOP)
		return skv_fail(err, SKV_E_FOREIGN, "root",
				"the marker '%s' is a symbolic link: refused (%s)",
				SKV_STORAGE_MARKER, s->root);
	if (error != 0)
		return skv_fs_fail(err, error, "cannot open the marker of the root directory",
				   s->root);
	if (fstat(fd, &m->st) != 0)
		rc = skv_fs_fail(err, errno, "cannot stat the marker of the root directory",
				 s->root);
	else if (!S_ISREG(m->st.st_mode))
		rc = skv_fail(err, SKV_E_FOREIGN, "root",
			      "the marker '%s' is not a regular file (%s)", SKV_STORAGE_MARKER,
			      s->root);
	else if (good->st_ino && is_unchanged(good, &m->st)) {
		m->known = true;
		rc = SKV_OK;
	} else {
		rc = skv_superblock_read(fd, 0, SKV_STORAGE_MARKER, raw, &m->sb, err);
		m->damaged = rc == SKV_E_CORRUPT || rc == SKV_E_FOREIGN;
	}
	close(fd);
	return rc;
}

/* Removes the damaged marker that `seen` describes. A file that has taken its name since then is
 * put back. 0 or an errno; EAGAIN: it was put back. */
static int remove_damaged(int dir, const struct stat *seen)
{
	struct skv_fs_temp aside;
	struct stat st;
	int error = skv_fs_temp_open(dir, &aside);

	if (error != 0)
		return error;
	if (renameat(dir, SKV_STORAGE_MARKER, dir, aside.name) != 0)
		error = errno == ENOENT ? 0 : errno;
	else if (fstatat(dir, aside.name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		error = errno;
	else if (!is_unchanged(&st, seen))
		return skv_fs_temp_publish(dir, &aside, SKV_STORAGE_MARKER) == 0 ? EAGAIN : EEXIST;
	skv_fs_temp_drop(dir, &aside);
	return error;
}

/* Replaces the damaged marker that `seen` describes. Managers that do so at once write the same. */
static int repair_marker(const struct file_storage *s, int dir, const struct stat *seen,
			 struct skv_error *err)
{
	struct skv_error why = { 0 };
	int error = seen->st_ino ? remove_damaged(dir, seen) : 0;
	int rc;

	if (error == EAGAIN || error == EEXIST)
		return SKV_OK; /* another one has taken its place: the caller reads it */
	if (error != 0)
		return skv_fs_fail(err, error, "cannot replace the damaged marker", s->root);
	rc = write_marker(s, dir, &why);
	if (rc != SKV_OK)
		return skv_fail(err, rc, NULL, "%s", why.message);
	skv_log(SKV_LOG_WARN, "storage",
		"'%s': the marker of its directory was damaged: written again, since other files "
		"there prove the storage: %s",
		s->name, err->message);
	return SKV_OK;
}

/* A marker that somebody is copying looks damaged. So it is replaced only if a second look finds
 * it as the first one did, and if another file proves the directory. */
static int check_marker(struct file_storage *s, int dir, const struct stat *good,
			struct skv_error *err)
{
	const struct stat none = { .st_ino = 0 };
	const struct timespec between = { .tv_nsec = MARKER_LOOKS_MS * 1000000L };
	struct marker m;
	int rc = read_marker(s, dir, good, &m, err);

	if (m.known)
		return rc;
	if (m.damaged && has_proof(s, dir)) {
		const struct stat first = m.st;

		nanosleep(&between, NULL);
		rc = read_marker(s, dir, &none, &m, err);
		if (m.damaged && is_unchanged(&first, &m.st)) {
			rc = repair_marker(s, dir, &m.st, err);
			if (rc == SKV_OK)
				rc = read_marker(s, dir, &none, &m, err);
		}
	}
	if (rc != SKV_OK)
		return rc;
	skv_error_clear(err);
	rc = judge_marker(s, &m.sb, err);
	if (rc == SKV_OK)
		note_marker(s, &m.st);
	return rc;
}

/* A root with the right marker in another place is a new mount of the same file system, or a copy
 * of it. We cannot tell which, so we continue (a remounted FUSE file system must recover without an
 * operator) and log it. A stale copy costs misses, not wrong bytes: checksums decide. */
static int note_identity(struct file_storage *s, int dir, struct skv_error *err)
{
	struct stat st;
	bool moved;

	if (fstat(dir, &st) != 0)
		return skv_fs_fail(err, errno, "cannot stat the root directory", s->root);
	skv_mutex_lock(&s->lock);
	moved = s->ino != 0 && (s->dev != st.st_dev || s->ino != st.st_ino);
	s->dev = st.st_dev;
	s->ino = st.st_ino;
	skv_mutex_unlock(&s->lock);
	if (moved)
		skv_log(SKV_LOG_WARN, "storage",
			"%s: the root was mounted anew or replaced; its marker is the right one, "
			"so it is used (%s)",
			s->name, s->root);
	return SKV_OK;
}

static int enter(struct file_storage *s, int *dir, const struct stat *good, struct skv_error *err)
{
	int error = open_root(s, dir);
	int rc;

	if (error != 0)
		return fail_root(s, error, err);
	rc = judge_mount(s, *dir, err);
	if (rc == SKV_OK)
		rc = check_marker(s, *dir, good, err);
	if (rc == SKV_OK)
		rc = note_identity(s, *dir, err);
	if (rc != SKV_OK)
		close(*dir);
	return rc;
}

int skv_root_enter(struct file_storage *s, int *dir, struct skv_error *err)
{
	const struct stat good = good_marker(s);

	return enter(s, dir, &good, err);
}


/* Makes SKV_STORAGE_LINK where it is missing; another manager may do the same meanwhile. 0 or an
 * errno; EEXIST: something else has its name. */
int skv_root_make_link(int dir)
{
	int error;

	if (has_link(dir) || symlinkat(".", dir, SKV_STORAGE_LINK) == 0)
		return 0;
	error = errno;
	return error == EEXIST && has_link(dir) ? 0 : error;
}

int skv_root_prove(struct file_storage *s, int *dir, struct skv_error *err)
{
	const struct stat none = { .st_ino = 0 };

	return enter(s, dir, &none, err);
}

int skv_root_leave(const struct file_storage *s, int dir, struct skv_error *err)
{
	int rc = check_empty(s, dir, true, err);

	if (rc != SKV_OK)
		return rc;
	remove_probes(dir);
	if ((has_link(dir) && unlinkat(dir, SKV_STORAGE_LINK, 0) != 0 && errno != ENOENT) ||
	    unlinkat(dir, SKV_STORAGE_MARKER, 0) != 0 || fsync(dir) != 0)
		return skv_fs_fail(err, errno, "cannot take the marker out of the root directory",
				   s->root);
	return SKV_OK;
}
