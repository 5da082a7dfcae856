/*
 * shm.c - named shared memory whose name identifies its owner.
 *
 * An object is called slabkv-NAME-NAMESPACE-PID-START: the pid namespace (its inode number), the
 * pid and the start time of its owner (field 22 of /proc/PID/stat), which together name one process
 * of one boot. Objects of a process that is provably gone are removed; their age does not matter: a
 * worker may hold its pool for months, and a crashed one leaves gigabytes within a second.
 *
 * No state. Any thread.
 */
#include "memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX "slabkv-"

struct owner {
	unsigned long long space; /* pid namespace */
	unsigned long long pid;
	unsigned long long start;
};

/* State and start time of a process. False: not available from the kernel. */
static bool read_process(unsigned long long pid, char *state, unsigned long long *start)
{
	char path[64], line[1024];
	const char *p;
	bool ok;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%llu/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	ok = fgets(line, sizeof line, f) != NULL;
	fclose(f);
	p = ok ? strrchr(line, ')') : NULL; /* the name in between may contain any character */
	if (!p || sscanf(p, ") %c", state) != 1)
		return false;
	p += 2;
	for (int field = 3; field < 22 && p; field++) {
		p = strchr(p, ' ');
		p = p ? p + 1 : NULL;
	}
	return p && sscanf(p, "%llu", start) == 1;
}

static bool read_self(struct owner *o)
{
	struct stat st;
	char state;

	o->pid = (unsigned long long)getpid();
	if (stat("/proc/self/ns/pid", &st) != 0)
		return false;
	o->space = (unsigned long long)st.st_ino;
	return read_process(o->pid, &state, &o->start);
}

/* The last number of `text`, which is cut before it. */
static bool cut_number(char *text, unsigned long long *out)
{
	char *dash = strrchr(text, '-'), *end;

	if (!dash || dash[1] < '0' || dash[1] > '9')
		return false;
	errno = 0;
	*out = strtoull(dash + 1, &end, 10);
	if (errno || *end)
		return false;
	*dash = '\0';
	return true;
}

static bool parse(const char *name, struct owner *o)
{
	char text[SKV_SHM_NAME];
	size_t n = strlen(name);

	if (n >= sizeof text || strncmp(name, PREFIX, strlen(PREFIX)) != 0)
		return false;
	memcpy(text, name, n + 1);
	return cut_number(text, &o->start) && cut_number(text, &o->pid) &&
	       cut_number(text, &o->space) && strlen(text) > strlen(PREFIX);
}

/* A process is called a zombie from the moment when its main thread has ended, but lives, with all
 * its memory, as long as it has another thread. False also if the kernel does not say. */
static bool has_no_threads(unsigned long long pid)
{
	const struct dirent *e;
	bool only = true;
	char path[64];
	DIR *d;

	snprintf(path, sizeof path, "/proc/%llu/task", pid);
	d = opendir(path);
	if (!d)
		return errno == ENOENT;
	while (only && (e = readdir(d)) != NULL)
		only = e->d_name[0] == '.' || strtoull(e->d_name, NULL, 10) == pid;
	closedir(d);
	return only;
}

/* Returns true only when certain: no such process, a zombie without threads, or a reused process
 * id. */
static bool is_dead(const struct owner *o)
{
	unsigned long long start;
	char state;

	if (o->pid == 0 || o->pid > INT32_MAX)
		return false; /* no name of ours */
	if (kill((pid_t)o->pid, 0) != 0 && errno == ESRCH)
		return true;
	if (!read_process(o->pid, &state, &start))
		return false;
	if (start != o->start)
		return true;
	return (state == 'Z' || state == 'X') && has_no_threads(o->pid);
}

uint32_t skv_shm_sweep(void)
{
	struct owner self, o;
	const struct dirent *e;
	uint32_t removed = 0;
	DIR *d;

	if (!read_self(&self))
		return 0;
	d = opendir("/dev/shm");
	if (!d)
		return 0;
	while ((e = readdir(d)) != NULL)
		if (parse(e->d_name, &o) && o.space == self.space && is_dead(&o))
			removed += unlinkat(dirfd(d), e->d_name, 0) == 0;
	closedir(d);
	return removed;
}

/* Every page now: a write into a full /dev/shm would be a SIGBUS later. */
static int allocate(int fd, size_t bytes, struct skv_error *err)
{
	int error;

	do
		error = posix_fallocate(fd, 0, (off_t)bytes);
	while (error == EINTR);
	if (error == 0)
		return SKV_OK;
	return skv_fail(err, error == ENOSPC || error == ENOMEM ? SKV_E_NO_SPACE : SKV_E_IO,
			"bytes", "shared memory of %zu bytes: %s", bytes, strerror(error));
}

int skv_shm_make(const char *name, size_t bytes, char full[SKV_SHM_NAME], int *fd,
		 struct skv_error *err)
{
	struct owner self;
	int rc;

	(void)skv_shm_sweep();
	if (!read_self(&self))
		return skv_fail(err, SKV_E_UNSUPPORTED, "kind",
				"/proc does not tell this process's start time");
	snprintf(full, SKV_SHM_NAME, "/" PREFIX "%s-%llu-%llu-%llu", name, self.space, self.pid,
		 self.start);
	*fd = shm_open(full, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (*fd < 0 && errno == EEXIST)
		return skv_fail(err, SKV_E_IN_USE, "shm_name",
				"this process has shared memory of that name");
	if (*fd < 0)
		return skv_fail(err, SKV_E_IO, "shm_name", "shared memory: %s", strerror(errno));
	rc = allocate(*fd, bytes, err);
	if (rc != SKV_OK) {
		close(*fd);
		shm_unlink(full);
	}
	return rc;
}
