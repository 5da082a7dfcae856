/*
 * standin_lib.c - see standin.h: what the library knows of descriptors and paths.
 */
#include "standin.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Tells tests which library they have. */
EXPORTED extern const int hf3fs_standin;
const int hf3fs_standin = 1;

static pthread_rwlock_t regs_lock = PTHREAD_RWLOCK_INITIALIZER;
static struct reg **regs; /* by fd and by dupfd; each place has a reference */
static int n_regs;

/* The vendor's library makes its table when it is loaded, for as many descriptors as
 * the process may ever open, and touches all of it: with a hard limit as containers
 * have it, that takes gigabytes. */
__attribute__((constructor)) static void make_table(void)
{
	const char *env = getenv("HF3FS_STANDIN_NOFILE_MAX");
	rlim_t most = env ? strtoull(env, NULL, 10) : 1 << 24;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_max > most)
		standin_die(
			"the hard limit of open files is %llu when the library is loaded: its "
			"table would need %llu bytes; lower the limit first",
			(unsigned long long)limit.rlim_max, (unsigned long long)limit.rlim_max * 8);
	n_regs = (int)limit.rlim_max;
	regs = calloc((size_t)n_regs, sizeof *regs);
	if (!regs)
		standin_die("no memory for a table of %d descriptors", n_regs);
}

int reg_limit(void) { return n_regs; }

void reg_put(struct reg *r)
{
	if (!r || atomic_fetch_sub(&r->refs, 1) != 1)
		return;
	close(r->dupfd);
	close(r->io);
	free(r);
}

struct reg *reg_get(int fd)
{
	struct reg *r;

	pthread_rwlock_rdlock(&regs_lock);
	r = regs[fd];
	if (r)
		atomic_fetch_add(&r->refs, 1);
	pthread_rwlock_unlock(&regs_lock);
	return r;
}

/* The same open file, not only the same file. */
static bool is_same_open(int a, int b)
{
	return syscall(SYS_kcmp, getpid(), getpid(), KCMP_FILE, a, b) == 0;
}

/* The mount, if its daemon answers for this descriptor: one that was registered with a daemon that
 * is gone belongs to a mount that is gone. Without a daemon a file of 3FS cannot be opened, but
 * here it can: lest anybody takes it for a file of another file system, it is one of 3FS, with
 * which nothing can be done. */
static struct mount *daemon_of(int fd)
{
	struct mount *m = mount_of_fd(fd);
	struct reg *r;
	bool stale;

	if (!m)
		return NULL;
	mount_count(m, COUNT_fd_checks, 1);
	if (fd >= n_regs)
		return m;
	r = reg_get(fd);
	stale = r && r->epoch != atomic_load(&m->epoch) && is_same_open(fd, r->dupfd);
	reg_put(r);
	return stale ? NULL : m;
}

bool hf3fs_is_hf3fs(int fd) { return daemon_of(fd) != NULL; }

int hf3fs_extract_mount_point(char *mount_point, int size, const char *path)
{
	char real[PATH_MAX];
	struct mount *m;
	int n;

	if (!realpath(path, real))
		standin_die(
			"extract_mount_point of '%s', which is not there: the vendor's "
			"library throws",
			path);
	m = mount_of_path(real);
	if (!m || !atomic_load(&m->epoch))
		return -1;
	n = (int)strlen(m->path);
	if (n < size)
		memcpy(mount_point, m->path, (size_t)n + 1);
	return n + 1;
}

/* A registration of fd; not in the table yet. 0 or an errno. */
static int reg_make(struct mount *m, int fd, struct reg **out)
{
	char path[64];
	struct stat st;
	struct reg *r;

	if (fstat(fd, &st) != 0)
		return errno;
	r = calloc(1, sizeof *r);
	if (!r)
		return ENOMEM;
	r->status = fcntl(fd, F_GETFL);
	r->dupfd = dup(fd);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	r->io = open(path, (r->status & O_ACCMODE) | O_CLOEXEC);
	if (r->dupfd < 0 || r->io < 0 || r->dupfd >= n_regs) {
		int error = errno;

		if (r->dupfd >= 0)
			close(r->dupfd);
		if (r->io >= 0)
			close(r->io);
		free(r);
		return error;
	}
	(void)posix_fadvise(r->io, 0, 0, POSIX_FADV_RANDOM); /* read-ahead would fill holes */
	atomic_store(&r->refs, 2);
	r->mount = m;
	r->epoch = atomic_load(&m->epoch);
	r->fd = fd;
	r->dev = st.st_dev;
	r->ino = st.st_ino;
	*out = r;
	return 0;
}

int hf3fs_reg_fd(int fd, uint64_t flags)
{
	struct mount *m = daemon_of(fd);
	struct reg *r = NULL;
	int rc;

	(void)flags;
	if (!m || fd >= n_regs)
		return EBADF;
	if (!atomic_load(&m->epoch))
		return ENOTCONN;
	mount_count(m, COUNT_fd_regs, 1);
	rc = mount_fault(m, ON_REG, NULL);
	if (rc > 0)
		return rc;
	pthread_rwlock_wrlock(&regs_lock);
	rc = regs[fd] ? EINVAL : reg_make(m, fd, &r);
	if (rc == 0 && regs[r->dupfd])
		rc = EINVAL; /* of one whose number was closed behind our back */
	if (rc == 0)
		regs[fd] = regs[r->dupfd] = r;
	pthread_rwlock_unlock(&regs_lock);
	if (rc != 0) {
		reg_put(r);
		reg_put(r);
		return rc;
	}
	return -r->dupfd;
}

void hf3fs_dereg_fd(int fd)
{
	struct mount *m = daemon_of(fd);
	struct reg *r;

	if (!m || fd >= n_regs)
		return;
	mount_count(m, COUNT_fd_deregs, 1);
	pthread_rwlock_wrlock(&regs_lock);
	r = regs[fd];
	regs[fd] = NULL;
	if (r && fd == r->fd) { /* by its duplicate it loses only that */
		if (regs[r->dupfd] == r) {
			regs[r->dupfd] = NULL;
			atomic_fetch_sub(&r->refs, 1); /* not the last */
		}
		atomic_store(&r->gone, true);
	}
	pthread_rwlock_unlock(&regs_lock);
	reg_put(r);
}

/* Some descriptor of this process, but for our own, is open on the file. */
static bool is_open(const struct reg *r)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *d;
	bool found = false;

	if (!dir)
		return true;
	while (!found && (d = readdir(dir))) {
		int fd = atoi(d->d_name);
		struct stat st;

		found = d->d_name[0] != '.' && fd != r->io && fd != r->dupfd &&
			fstat(fd, &st) == 0 && st.st_dev == r->dev && st.st_ino == r->ino;
	}
	closedir(dir);
	return found;
}

bool reg_is_known(const struct reg *r)
{
	if (r->epoch != atomic_load(&r->mount->epoch))
		return false;
	return !atomic_load(&r->gone) || is_open(r);
}

int hf3fs_hardlink(const char *target, const char *link_name)
{
	int fd = open(target, O_RDONLY | O_CLOEXEC);
	struct mount *m;
	int rc;

	if (fd < 0)
		return errno;
	m = daemon_of(fd);
	if (!m || !atomic_load(&m->epoch))
		rc = m ? ENOTCONN : ENOTTY;
	else
		rc = link(target, link_name) == 0 ? 0 : errno;
	close(fd);
	return rc;
}

int hf3fs_punchhole(int fd, int n, const size_t *start, const size_t *end, size_t flags)
{
	struct mount *m = daemon_of(fd);
	char path[64];
	size_t chunk;
	int io, rc = 0;

	(void)flags;
	if (n > HF3FS_PUNCH_MAX)
		standin_die(
			"punchhole of %d ranges: the vendor's library writes past an array of %d",
			n, HF3FS_PUNCH_MAX);
	if (!m || !atomic_load(&m->epoch))
		return m ? ENOTCONN : ENOTTY;
	chunk = (size_t)mount_knobs(m).chunk;
	for (int i = 0; i < n; i++)
		if (start[i] % chunk || end[i] % chunk)
			return EINVAL;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	io = open(path, O_RDWR | O_CLOEXEC); /* the daemon does not ask how the caller opened it */
	if (io < 0)
		return errno;
	for (int i = 0; i < n && rc == 0; i++)
		rc = chunk_punch(m, io, start[i], end[i], chunk);
	close(io);
	return rc ? EIO : 0;
}
