/* machine.c - this machine, and a process's CPU time, from /proc. Stateless. */
#include "cli.h"

#include <assert.h>
#include <dirent.h>
#include <inttypes.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

static void read_cpu(char *out, size_t n)
{
	char line[256];
	FILE *f = fopen("/proc/cpuinfo", "re");

	snprintf(out, n, "unknown");
	while (f && fgets(line, sizeof line, f)) {
		const char *at = strchr(line, ':');

		if (strncmp(line, "model name", 10) == 0 && at) {
			line[strcspn(line, "\n")] = '\0';
			snprintf(out, n, "%.*s", (int)n - 1, at + 2);
			break;
		}
	}
	if (f)
		fclose(f);
}

void skv_machine_read(struct skv_machine *m)
{
	struct utsname u;

	read_cpu(m->cpu, sizeof m->cpu);
	m->cores = sysconf(_SC_NPROCESSORS_ONLN);
	if (uname(&u) == 0)
		snprintf(m->kernel, sizeof m->kernel, "%.60s %.60s", u.sysname, u.release);
	else
		snprintf(m->kernel, sizeof m->kernel, "unknown");
}

/* Sum over the threads that live: nanoseconds. Threads that have ended are not in it. */
static uint64_t from_schedstat(long pid)
{
	char path[300];
	uint64_t sum = 0, one;
	struct dirent *e;
	DIR *d;

	assert(pid > 0);
	snprintf(path, sizeof path, "/proc/%ld/task", pid);
	d = opendir(path);
	while (d && (e = readdir(d))) {
		FILE *f;

		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof path, "/proc/%ld/task/%.20s/schedstat", pid, e->d_name);
		f = fopen(path, "re");
		if (f && fscanf(f, "%" SCNu64, &one) == 1)
			sum += one;
		if (f)
			fclose(f);
	}
	if (d)
		closedir(d);
	return sum;
}

/* utime + stime, in clock ticks of 10 ms. */
static uint64_t from_stat(long pid)
{
	char path[64], text[1024];
	unsigned long long user, system;
	const char *at;
	FILE *f;
	size_t n;

	snprintf(path, sizeof path, "/proc/%ld/stat", pid);
	f = fopen(path, "re");
	n = f ? fread(text, 1, sizeof text - 1, f) : 0;
	if (f)
		fclose(f);
	text[n] = '\0';
	at = strrchr(text, ')'); /* the name may contain spaces */
	if (!at || sscanf(at + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user,
			  &system) != 2)
		return 0;
	return (user + system) * (1000000000ull / (unsigned long long)sysconf(_SC_CLK_TCK));
}

uint64_t skv_machine_cpu_ns(long pid)
{
	uint64_t ns = from_schedstat(pid);

	assert(pid > 0); /* 0 means "not given", not a process */
	return ns ? ns : from_stat(pid);
}
