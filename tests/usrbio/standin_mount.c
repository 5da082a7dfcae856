/*
 * standin_mount.c - see standin.h: mounts, their control file and counters, and
 * what dead processes left.
 */
#include "standin.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static pthread_mutex_t mounts_lock = PTHREAD_MUTEX_INITIALIZER;
static struct mount *mounts; /* never shorter */

void standin_die(const char *format, ...)
{
	va_list args;

	fputs("stand-in for libhf3fs_api_shared.so: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	abort();
}

/* ---- control file ---------------------------------------------------------------------------- */

static const struct {
	const char *name;
	size_t at;
	int64_t def, min, max;
} knob_table[] = {
#define K(name, def, min, max) { #name, offsetof(struct knobs, name), def, min, max },
	STANDIN_KNOBS(K)
#undef K
};

static const struct {
	const char *name;
	int value;
} errors[] = { { "EIO", EIO },       { "EREMOTEIO", EREMOTEIO },
	       { "ENOSPC", ENOSPC }, { "EACCES", EACCES },
	       { "EINVAL", EINVAL }, { "EBADF", EBADF },
	       { "EFBIG", EFBIG },   { "ENODATA", ENODATA },
	       { "EINTR", EINTR },   { "EPERM", EPERM },
	       { "ENOENT", ENOENT }, { "ENOTCONN", ENOTCONN },
	       { "ENOMEM", ENOMEM }, { "SHORT", 0 } };

static int find_word(const char *word, const char *const *words, int n)
{
	for (int i = 0; i < n; i++)
		if (strcmp(word, words[i]) == 0)
			return i;
	return -1;
}

static void parse_rule(const char *text, struct fault_rule *rule)
{
	static const char *const ops[] = { "read", "write", "iov", "ring", "sem", "shm", "reg" };
	static const char *const hows[] = { "clean", "torn", "done", "batch" };
	char op[16], error[16], when[32], how[16] = "clean", *end = NULL;
	bool known = false;

	memset(rule, 0, sizeof *rule);
	if (sscanf(text, "%15[a-z]:%15[A-Z]:%31[^:]:%15s", op, error, when, how) < 3)
		standin_die("'fault=%s' is not OP:ERROR:WHEN[:HOW]", text);
	if (find_word(op, ops, N_FAULT_OPS) < 0 || find_word(how, hows, 4) < 0)
		standin_die("'fault=%s' names an operation or a manner that there is not", text);
	rule->op = (enum fault_op)find_word(op, ops, N_FAULT_OPS);
	rule->how = (enum fault_how)find_word(how, hows, 4);
	for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
		if (strcmp(error, errors[i].name) == 0) {
			rule->error = errors[i].value;
			known = true;
		}
	if (!known)
		standin_die("'fault=%s' names an error that there is not", text);
	if (when[0] == '@')
		rule->nth = strtoull(when + 1, &end, 10);
	else
		rule->chance = strtod(when, &end);
	if (!end || *end ||
	    (when[0] == '@' ? rule->nth == 0 : rule->chance < 0 || rule->chance > 1))
		standin_die("'fault=%s': WHEN is a chance 0..1, or @N for the Nth", text);
}

static void parse_word(struct mount *m, struct knobs *k, char *word)
{
	char *value = strchr(word, '='), *end;
	int64_t number;

	if (!value)
		standin_die("'%s' is not NAME=VALUE", word);
	*value++ = 0;
	if (strcmp(word, "fault") == 0) {
		if (m->n_rules == MAX_RULES)
			standin_die("more than %d faults", MAX_RULES);
		parse_rule(value, &m->rules[m->n_rules++]);
		return;
	}
	for (size_t i = 0; i < sizeof knob_table / sizeof knob_table[0]; i++) {
		if (strcmp(word, knob_table[i].name) != 0)
			continue;
		number = strtoll(value, &end, 10);
		if (*end || end == value || number < knob_table[i].min ||
		    number > knob_table[i].max)
			standin_die("%s=%s: %lld..%lld", word, value, (long long)knob_table[i].min,
				    (long long)knob_table[i].max);
		memcpy((char *)k + knob_table[i].at, &number, sizeof number);
		return;
	}
	standin_die("there is no knob '%s'", word);
}

static void parse_conf(struct mount *m, FILE *f)
{
	struct knobs k;
	char line[1024], *save, *word;

	for (size_t i = 0; i < sizeof knob_table / sizeof knob_table[0]; i++)
		memcpy((char *)&k + knob_table[i].at, &knob_table[i].def, sizeof(int64_t));
	m->n_rules = 0;
	while (f && fgets(line, sizeof line, f)) {
		line[strcspn(line, "#\n")] = 0;
		for (word = strtok_r(line, " \t", &save); word; word = strtok_r(NULL, " \t", &save))
			parse_word(m, &k, word);
	}
	if (k.chunk & (k.chunk - 1))
		standin_die("chunk=%lld is no power of two", (long long)k.chunk);
	if (k.seed != m->knobs.seed)
		m->rng = (uint64_t)k.seed;
	m->knobs = k;
}

/* The links of the submit semaphores: each daemon has semaphores of its own. Watchers of
 * this process are woken without them, but clients look whether they are there, and
 * whether they are other ones. */
static void make_sem_links(const struct mount *m, int64_t epoch)
{
	static const char *const names[] = { "submit-ios.ph", "submit-ios", "submit-ios.pl" };
	char target[128], now[128], fresh[64];

	snprintf(target, sizeof target, STANDIN_SEM "%lld", (long long)epoch);
	for (int i = 0; i < 3; i++) {
		ssize_t n = readlinkat(m->iovs, names[i], now, sizeof now - 1);

		now[n > 0 ? n : 0] = 0;
		if (epoch && strcmp(now, target) == 0)
			continue;
		(void)unlinkat(m->iovs, names[i], 0);
		snprintf(fresh, sizeof fresh, ".%s.%d", names[i], (int)getpid());
		(void)unlinkat(m->iovs, fresh, 0);
		if (!epoch)
			continue;
		if (symlinkat(target, m->iovs, fresh) != 0 ||
		    renameat(m->iovs, fresh, m->iovs, names[i]) != 0)
			standin_die("%s: %s", names[i], strerror(errno));
	}
}

/* Replaces a daemon by the next, or by none: waits until the old one moves nothing any more. */
static void change_daemon(struct mount *m, int64_t epoch)
{
	if (!m->joins || atomic_load(&m->epoch))
		make_sem_links(m, epoch);
	pthread_rwlock_wrlock(&m->alive_lock);
	atomic_store(&m->epoch, epoch);
	pthread_rwlock_unlock(&m->alive_lock);
	for (int i = 0; i < 3; i++)
		sem_post(&m->submit[i]); /* let the watchers look */
}

void mount_reload(struct mount *m)
{
	struct stat st = { 0 };
	int64_t stamp[3], epoch;
	FILE *f = NULL;
	int fd;

	pthread_mutex_lock(&m->reload_lock);
	/* under the lock: an older look must not undo a newer one */
	(void)fstatat(m->virt, "standin.conf", &st, 0);
	stamp[0] = (int64_t)st.st_ino;
	stamp[1] = st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
	stamp[2] = st.st_size;
	if (memcmp(stamp, m->conf_stamp, sizeof stamp) != 0) {
		memcpy(m->conf_stamp, stamp, sizeof stamp);
		fd = openat(m->virt, "standin.conf", O_RDONLY | O_CLOEXEC);
		if (fd >= 0)
			f = fdopen(fd, "r");
		pthread_mutex_lock(&m->conf_lock);
		parse_conf(m, f);
		pthread_mutex_unlock(&m->conf_lock);
		if (f)
			fclose(f);
	}
	epoch = m->knobs.down ? 0 : m->knobs.epoch; /* written under reload_lock only */
	if (epoch != atomic_load(&m->epoch))
		change_daemon(m, epoch);
	pthread_mutex_unlock(&m->reload_lock);
}

struct knobs mount_knobs(struct mount *m)
{
	struct knobs k;

	pthread_mutex_lock(&m->conf_lock);
	k = m->knobs;
	pthread_mutex_unlock(&m->conf_lock);
	return k;
}

static uint64_t next_random(struct mount *m) /* splitmix64 */
{
	uint64_t z = m->rng += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

uint64_t mount_random(struct mount *m, uint64_t below)
{
	uint64_t n;

	pthread_mutex_lock(&m->conf_lock);
	n = below ? next_random(m) % below : 0;
	pthread_mutex_unlock(&m->conf_lock);
	return n;
}

int mount_fault(struct mount *m, enum fault_op op, enum fault_how *how)
{
	int error = -1;

	pthread_mutex_lock(&m->conf_lock);
	for (int i = 0; i < m->n_rules && error < 0; i++) {
		struct fault_rule *r = &m->rules[i];

		if (r->op != op)
			continue;
		r->seen++;
		if (r->nth ? r->seen != r->nth
			   : (double)(next_random(m) >> 11) * 0x1p-53 >= r->chance)
			continue;
		error = r->error;
		if (how)
			*how = r->how;
	}
	pthread_mutex_unlock(&m->conf_lock);
	if (error >= 0)
		mount_count(m, COUNT_faults, 1);
	return error;
}

/* ---- counters -------------------------------------------------------------------------------- */

static struct counter *map_counters(int virt)
{
	static const char *const names[] = {
#define C(name) #name,
		STANDIN_COUNTERS(C)
#undef C
	};
	size_t bytes = N_COUNTERS * sizeof(struct counter);
	int fd = openat(virt, "standin.stats", O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	struct counter *c;

	if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0)
		standin_die("standin.stats: %s", strerror(errno));
	c = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (c == MAP_FAILED)
		standin_die("standin.stats: %s", strerror(errno));
	close(fd);
	for (int i = 0; i < N_COUNTERS; i++)
		memcpy(c[i].name, names[i], strlen(names[i]) + 1);
	return c;
}

void mount_count(struct mount *m, enum counter_name name, uint64_t n)
{
	atomic_fetch_add_explicit(&m->counters[name].value, n, memory_order_relaxed);
}

/* ---- owners ---------------------------------------------------------------------------------- */

/* When a process was started, in ticks since boot; 0: it is not there. */
static unsigned long long started(int pid)
{
	char path[64], text[1024], *p;
	unsigned long long ticks = 0;
	size_t n;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	n = fread(text, 1, sizeof text - 1, f);
	fclose(f);
	text[n] = 0;
	p = strrchr(text, ')'); /* the name before it may hold anything */
	if (p && p[1] && (p[2] == 'Z' || p[2] == 'X'))
		return 0;
	if (!p ||
	    sscanf(p + 1,
		   " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d "
		   "%*d %*d %*d %llu",
		   &ticks) != 1)
		return 0;
	return ticks;
}

void owner_record(struct mount *m, const char *uuid, const char *link)
{
	char path[128], text[256];

	snprintf(path, sizeof path, "standin.owners/%s", uuid);
	snprintf(text, sizeof text, "%d %llu %s", (int)getpid(), started(getpid()), link);
	if (symlinkat(text, m->virt, path) != 0 && errno != EEXIST)
		standin_die("%s: %s", path, strerror(errno));
}

void owner_forget(struct mount *m, const char *uuid)
{
	char path[128];

	snprintf(path, sizeof path, "standin.owners/%s", uuid);
	(void)unlinkat(m->virt, path, 0);
}

/* The daemon forgets the memory of dead processes. Nobody gives the shared memory itself back: that
 * is how the real one leaks. */
static void sweep(struct mount *m)
{
	int fd = openat(m->virt, "standin.owners", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *d;

	if (!dir)
		standin_die("%s/3fs-virt/standin.owners: %s", m->path, strerror(errno));
	while ((d = readdir(dir))) {
		char text[256], link[128];
		unsigned long long ticks;
		ssize_t n =
			d->d_name[0] == '.' ? -1 : readlinkat(fd, d->d_name, text, sizeof text - 1);
		int pid;

		if (n < 0)
			continue;
		text[n] = 0;
		if (sscanf(text, "%d %llu %127s", &pid, &ticks, link) != 3 || started(pid) == ticks)
			continue;
		if (unlinkat(m->iovs, link, 0) == 0)
			mount_count(m, COUNT_swept_links, 1);
		(void)unlinkat(fd, d->d_name, 0);
	}
	closedir(dir);
}

/* ---- mounts ---------------------------------------------------------------------------------- */

/* The stand-in's chunks are those that the file system says it has data for. */
static void check_holes(const struct mount *m)
{
	int fd = openat(m->virt, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd < 0 || ftruncate(fd, 1 << 20) != 0)
		standin_die("%s: cannot make a file: %s", m->path, strerror(errno));
	if (lseek(fd, 0, SEEK_DATA) >= 0 || errno != ENXIO)
		standin_die("%s is on a file system that does not tell where holes are", m->path);
	close(fd);
}

static int make_dir(int at, const char *name)
{
	int fd;

	if (mkdirat(at, name, 0777) != 0 && errno != EEXIST)
		return -1;
	fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd;
}

static struct mount *mount_make(const char *path)
{
	struct mount *m = calloc(1, sizeof *m);
	pthread_rwlockattr_t attr;
	int root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (!m || root < 0)
		standin_die("%s: %s", path, strerror(errno));
	memcpy(m->path, path, strlen(path) + 1); /* the path fits: the caller has checked */
	m->joins = faccessat(root, "3fs-virt/iovs", F_OK, 0) == 0;
	m->virt = make_dir(root, "3fs-virt");
	m->iovs = m->virt < 0 ? -1 : make_dir(m->virt, "iovs");
	if (m->iovs < 0)
		standin_die("%s/3fs-virt/iovs: %s", path, strerror(errno));
	close(make_dir(m->virt, "standin.owners"));
	close(make_dir(m->virt, "standin.shm"));
	close(root);
	m->counters = map_counters(m->virt);
	check_holes(m);
	sweep(m);
	pthread_mutex_init(&m->reload_lock, NULL);
	pthread_mutex_init(&m->conf_lock, NULL);
	pthread_mutex_init(&m->lock, NULL);
	pthread_rwlockattr_init(&attr);
	pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&m->alive_lock, &attr);
	for (int i = 0; i < 3; i++)
		sem_init(&m->submit[i], 0, 0);
	m->conf_stamp[0] = -1;
	mount_reload(m);
	jobs_start(m);
	return m;
}

/* The mount of the longest root that `path` lies below. */
struct mount *mount_of_path(const char *path)
{
	const char *env = getenv("HF3FS_STANDIN_ROOT");
	char roots[4096], real[PATH_MAX], best[PATH_MAX] = "", *save, *root;
	struct mount *m;

	snprintf(roots, sizeof roots, "%s", env ? env : "");
	for (root = strtok_r(roots, ":", &save); root; root = strtok_r(NULL, ":", &save)) {
		size_t n = realpath(root, real) ? strlen(real) : 0;

		if (n > strlen(best) && strncmp(path, real, n) == 0 &&
		    (path[n] == '/' || path[n] == 0))
			memcpy(best, real, n + 1);
	}
	if (!best[0] || strlen(best) >= sizeof m->path)
		return NULL;
	pthread_mutex_lock(&mounts_lock);
	for (m = mounts; m && strcmp(m->path, best) != 0; m = m->next)
		;
	if (!m) {
		m = mount_make(best);
		m->next = mounts;
		mounts = m;
	}
	pthread_mutex_unlock(&mounts_lock);
	mount_reload(m);
	return m;
}



struct mount *mount_of_fd(int fd)
{
	char path[64], target[PATH_MAX];
	ssize_t n;

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	n = fd < 0 ? -1 : readlink(path, target, sizeof target - 1);
	if (n < 0)
		return NULL;
	target[n] = 0;
	return mount_of_path(target);
}

struct mount *mount_named(const char *mount_point)
{
	char real[PATH_MAX];
	struct mount *m = realpath(mount_point, real) ? mount_of_path(real) : NULL;

	return m && strcmp(m->path, real) == 0 ? m : NULL;
}
