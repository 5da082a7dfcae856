/*
 * sqlite_files.c - files around the databases: the file system, their creation, and the reserved
 * space.
 *
 * Owns the file <path>-reserve. Any thread; no locks: truncating or filling the reserve twice does
 * no harm. Never opens a database file that exists: closing any descriptor of it would drop the
 * POSIX locks that SQLite holds on it in this process.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <skv/log.h>
#include <skv/mem.h>

#include "sqlite_store.h"

#define ZEROS ((size_t)1 << 20)

static int fail(struct skv_error *err, int status, const char *what, const char *path)
{
	char text[128];

	return skv_fail(err, status, NULL, "%s: %s (%s)", what,
			strerror_r(errno, text, sizeof text), path);
}

/* The folder that holds `path`, to be freed. */
static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *out;

	if (!slash)
		return skv_strdup(".");
	if (slash == path)
		return skv_strdup("/");
	out = skv_strdup(path);
	if (out)
		out[slash - path] = '\0';
	return out;
}

/* From statfs(2), the kernel's magic.h, and the file systems' own sources. */
bool files_type_is_shared(unsigned long type)
{
	static const unsigned long shared[] = {
		0x6969,     /* NFS */
		0x517b,     /* SMB */
		0xff534d42, /* CIFS */
		0xfe534d42, /* SMB2 */
		0x65735546, /* FUSE: may be anything, and most of what serves data is a network */
		0x01021997, /* 9P */
		0x0bd00bd0, /* Lustre */
		0x00c36400, /* Ceph */
		0x5346414f, /* AFS */
		0x6b414653, /* kAFS */
		0x73757245, /* Coda */
		0x564c,     /* NCP */
		0x47504653, /* GPFS */
		0x7461636f, /* OCFS2 */
		0x01161970, /* GFS2 */
		0x19830326, /* BeeGFS */
		0x20030528, /* OrangeFS */
		0x786f4256, /* VirtualBox shared folder */
	};

	for (size_t i = 0; i < sizeof shared / sizeof shared[0]; i++)
		if ((type & 0xffffffff) == shared[i])
			return true;
	return false;
}

int files_check_local(const char *path, struct skv_error *err)
{
	char *folder = folder_of(path);
	struct statfs fs;
	int rc = SKV_OK;

	if (!folder)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	/* The file itself may be mounted from elsewhere; without one, its folder decides. */
	if (statfs(path, &fs) != 0 && statfs(folder, &fs) != 0)
		rc = fail(err, SKV_E_STORE_IO, "cannot reach the folder of the database", folder);
	else if (files_type_is_shared((unsigned long)fs.f_type))
		rc = skv_fail(err, SKV_E_UNSUPPORTED, NULL,
			      "%s lies on a network or shared file system (type 0x%lx), where the "
			      "database's locks and "
			      "shared memory do not work: put the store on a local disk",
			      folder, (unsigned long)fs.f_type & 0xffffffff);
	skv_free(folder);
	return rc;
}

static void sync_folder(const char *path)
{
	char *folder = folder_of(path);
	int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	if (fd >= 0) {
		fsync(fd);
		close(fd);
	}
	skv_free(folder);
}

int files_make(const char *path, struct skv_error *err)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0 && errno == EEXIST)
		return SKV_OK;
	if (fd < 0)
		return fail(err,
			    errno == ENOSPC || errno == EDQUOT ? SKV_E_STORE_FULL : SKV_E_STORE_IO,
			    "cannot make the database file", path);
	close(fd);
	sync_folder(path);
	return SKV_OK;
}

uint64_t files_free_bytes(const char *path)
{
	struct statvfs fs;

	if (statvfs(path, &fs) != 0)
		return UINT64_MAX;
	return (uint64_t)fs.f_bavail * fs.f_frsize;
}

/* ---- the reserve ----------------------------------------------------------------------------- */

static bool write_zeros(int fd, uint64_t length)
{
	char *zeros = skv_calloc(1, ZEROS);
	bool good = zeros != NULL;

	for (uint64_t at = 0; good && at < length;) {
		size_t n = length - at < ZEROS ? (size_t)(length - at) : ZEROS;
		ssize_t k = pwrite(fd, zeros, n, (off_t)at);

		if (k > 0)
			at += (uint64_t)k;
		else
			good = k < 0 && errno == EINTR;
	}
	skv_free(zeros);
	return good;
}

/* fallocate(2) where it works; really written zeros elsewhere. */
static bool fill(int fd, uint64_t length)
{
	if (fallocate(fd, 0, 0, (off_t)length) == 0)
		return true;
	return (errno == EOPNOTSUPP || errno == ENOSYS) && write_zeros(fd, length);
}

void reserve_make(struct sqlite_store *s)
{
	struct stat st;
	uint64_t missing;
	int fd;

	if (s->reserve_bytes == 0)
		return;
	fd = open(s->reserve_path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size < s->reserve_bytes) {
		missing = s->reserve_bytes - (uint64_t)st.st_size;
		/* At most half of the free space: other writers needed what was released. */
		if (files_free_bytes(s->main.path) / 2 >= missing && !fill(fd, s->reserve_bytes) &&
		    ftruncate(fd, 0) != 0)
			skv_log(SKV_LOG_WARN, "store", "cannot reserve space for urgent writes");
	}
	if (fstat(fd, &st) == 0)
		atomic_store(&s->reserve_gone, (uint64_t)st.st_size < s->reserve_bytes);
	close(fd);
}

bool reserve_release(struct sqlite_store *s)
{
	struct stat st;

	if (s->reserve_bytes == 0 || stat(s->reserve_path, &st) != 0 || st.st_size == 0)
		return false;
	atomic_store(&s->reserve_gone, true);
	return truncate(s->reserve_path, 0) == 0;
}

bool reserve_only(struct sqlite_store *s)
{
	return atomic_load(&s->reserve_gone) && files_free_bytes(s->main.path) < s->reserve_bytes;
}
