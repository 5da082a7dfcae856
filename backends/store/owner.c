/*
 * owner.c - names of owners, and the proof that an owner's process is gone.
 *
 * A name is "<host>:<pid>:<start time>:<boot id>:<pid namespace>.<random>". Death counts as proven
 * only on the same boot of the same host and in the same pid namespace: elsewhere a missing pid
 * says nothing. The start time distinguishes a reused pid from the named process. An unreadable or
 * malformed value means "not proven": the lease must then expire.
 *
 * State: a descriptor for each of a few processes that were found running, so that the next check
 * is a poll: each partition checks its owner many times a second, and a line of /proc adds up all
 * threads of the process. Any thread.
 */
#include <assert.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <skv/hash.h>

#include "internal.h"

#define HOST_MAX 64
#define MAX_RUNNING 8u /* managers of one host, in all but tests */

struct owner {
	char host[HOST_MAX + 1];
	long pid;
	uint64_t start_time;
	char boot_id[37];
	uint64_t pid_space;
};

static void host_name(char out[HOST_MAX + 1])
{
	if (gethostname(out, HOST_MAX + 1) != 0)
		snprintf(out, HOST_MAX + 1, "localhost");
	out[HOST_MAX] = '\0';
	for (char *p = out; *p; p++)
		if (*p == ':' || isspace((unsigned char)*p))
			*p = '_';
}

static uint64_t pid_space(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) == 0 ? (uint64_t)st.st_ino : 0;
}

/* State and start time (clock ticks since boot, field 22) of a process. 0 or an errno. */
static int read_process(long pid, char *state, uint64_t *start_time)
{
	char path[64], line[1024];
	const char *p;
	FILE *f;
	size_t n;

	snprintf(path, sizeof path, "/proc/%ld/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return errno;
	n = fread(line, 1, sizeof line - 1, f);
	line[n] = '\0';
	fclose(f);
	p = strrchr(line, ')'); /* the name before it may hold anything */
	if (!p)
		return n == 0 ? ESRCH : EIO; /* empty: it ended between open and read */
	if (sscanf(p + 1,
		   " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d "
		   "%" SCNu64,
		   state, start_time) != 2)
		return EIO;
	return 0;
}

/* A zombie whose main thread ended early may still have others that run. */
static bool has_other_threads(long pid)
{
	char path[64];
	unsigned threads = 0;
	const struct dirent *e;
	DIR *d;

	snprintf(path, sizeof path, "/proc/%ld/task", pid);
	d = opendir(path);
	if (!d)
		return errno != ENOENT;
	while ((e = readdir(d)) != NULL)
		threads += e->d_name[0] != '.';
	closedir(d);
	return threads > 1;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects the following variables */
static struct owner self; /* read again in a child */
static struct {
	long pid; /* 0: free */
	uint64_t start_time;
	int fd; /* of the process: readable once all its threads have ended */
} running[MAX_RUNNING];
static unsigned n_seen; /* the newest replaces the oldest */

static struct owner this_process(void)
{
	struct owner o;
	char state;

	pthread_mutex_lock(&lock);
	if (self.pid != (long)getpid()) {
		memset(running, 0, sizeof running); /* the parent's: a child may have closed them */
		host_name(self.host);
		skv_boot_id(self.boot_id);
		self.pid_space = pid_space();
		self.pid = (long)getpid();
		if (read_process(self.pid, &state, &self.start_time) != 0)
			self.start_time = 0;
	}
	o = self;
	pthread_mutex_unlock(&lock);
	return o;
}

void skv_owner_name(char out[192])
{
	const struct owner o = this_process();
	uint64_t random;
	int n;

	skv_random(&random, sizeof random);
	n = snprintf(out, 192, "%s:%ld:%" PRIu64 ":%s:%" PRIu64 ".%016" PRIx64, o.host, o.pid,
		     o.start_time, o.boot_id, o.pid_space, random);
	assert(n > 0 && n < 192);
}

static bool parse_owner(const char *text, struct owner *o)
{
	char random;

	return sscanf(text, "%64[^:]:%ld:%" SCNu64 ":%36[^:]:%" SCNu64 ".%c", o->host, &o->pid,
		      &o->start_time, o->boot_id, &o->pid_space, &random) == 6 &&
	       o->pid > 0 && strlen(o->boot_id) == 36;
}

size_t owner_host(const char *owner)
{
	struct owner o;

	return parse_owner(owner, &o) ? strlen(o.host) : 0;
}

/* By /proc. */
static bool is_gone(const struct owner *o)
{
	char state;
	uint64_t start_time;
	const int error = read_process(o->pid, &state, &start_time);

	/* Without our own entry /proc is not mounted (or hides), and a missing one proves nothing.
	 */
	if (error != 0)
		return (error == ENOENT || error == ESRCH) &&
		       read_process((long)getpid(), &state, &start_time) == 0;
	if (start_time != o->start_time)
		return o->start_time != 0;
	return (state == 'Z' || state == 'X') && !has_other_threads(o->pid);
}

/* Returns true if a process that was found running still runs. False proves nothing: /proc does. */
static bool still_runs(const struct owner *o)
{
	unsigned i = 0;
	bool runs;

	pthread_mutex_lock(&lock);
	while (i < MAX_RUNNING &&
	       (running[i].pid != o->pid || running[i].start_time != o->start_time))
		i++;
	runs = i < MAX_RUNNING &&
	       poll(&(struct pollfd){ .fd = running[i].fd, .events = POLLIN }, 1, 0) == 0;
	if (i < MAX_RUNNING && !runs) {
		close(running[i].fd);
		running[i].pid = 0;
	}
	pthread_mutex_unlock(&lock);
	return runs;
}

static void remember(const struct owner *o, int fd)
{
	unsigned i;

	assert(fd >= 0 && o->pid > 0);
	pthread_mutex_lock(&lock);
	i = n_seen++ % MAX_RUNNING;
	if (running[i].pid)
		close(running[i].fd);
	running[i].pid = o->pid;
	running[i].start_time = o->start_time;
	running[i].fd = fd;
	pthread_mutex_unlock(&lock);
}

bool skv_owner_is_dead(const char *owner)
{
	const struct owner me = this_process();
	struct owner o;
	bool gone;
	int fd;

	/* Zeros mean "unknown", which is equal to nothing. */
	if (!parse_owner(owner, &o) || strcmp(o.host, me.host) != 0 ||
	    strcmp(o.boot_id, me.boot_id) != 0 || strspn(me.boot_id, "0") == 36 ||
	    o.pid_space == 0 || o.pid_space != me.pid_space)
		return false;
	if (still_runs(&o))
		return false;
	fd = (int)syscall(SYS_pidfd_open, (pid_t)o.pid, 0u);
	/* After that: a pid that is another process's by now has another start time. */
	gone = is_gone(&o);
	if (fd >= 0 && !gone && o.start_time != 0)
		remember(&o, fd);
	else if (fd >= 0)
		close(fd);
	return gone;
}
