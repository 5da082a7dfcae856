/*
 * owner.c - names of owners, and the proof that an owner's process is gone.
 *
 * A name is "<host>:<pid>:<start time>:<boot id>:<pid namespace>.<random>". Death counts as proven
 * only on the same boot of the same host and in the same pid namespace: elsewhere a missing pid
 * says nothing. The start time tells a reused pid from the process that was meant. Whatever cannot
 * be read or parsed means "not proven": the lease is then waited out.
 *
 * No state; any thread. Reads /proc only.
 */
#include <assert.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <skv/hash.h>

#include "internal.h"

#define HOST_MAX 64

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

void skv_owner_name(char out[192])
{
	char host[HOST_MAX + 1], boot_id[37], state;
	uint64_t start_time = 0, random;
	int n;

	host_name(host);
	skv_boot_id(boot_id);
	skv_random(&random, sizeof random);
	if (read_process((long)getpid(), &state, &start_time) != 0)
		start_time = 0;
	n = snprintf(out, 192, "%s:%ld:%" PRIu64 ":%s:%" PRIu64 ".%016" PRIx64, host,
		     (long)getpid(), start_time, boot_id, pid_space(), random);
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

bool skv_owner_is_dead(const char *owner)
{
	char host[HOST_MAX + 1], boot_id[37], state;
	uint64_t start_time;
	struct owner o;
	int error;

	if (!parse_owner(owner, &o))
		return false;
	host_name(host);
	skv_boot_id(boot_id);
	/* Zeros stand for "unknown", which is equal to nothing. */
	if (strcmp(o.host, host) != 0 || strcmp(o.boot_id, boot_id) != 0 || boot_id[0] == '\0' ||
	    strspn(boot_id, "0") == 36 || o.pid_space == 0 || o.pid_space != pid_space())
		return false;
	/* Without our own entry /proc is not mounted (or hides), and a missing one proves nothing.
	 */
	if (read_process((long)getpid(), &state, &start_time) != 0)
		return false;
	error = read_process(o.pid, &state, &start_time);
	if (error != 0)
		return error == ENOENT || error == ESRCH;
	if (start_time != o.start_time)
		return o.start_time != 0;
	return (state == 'Z' || state == 'X') && !has_other_threads(o.pid);
}
