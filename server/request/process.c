/*
 * process.c - metrics of this process, under the names that Prometheus's own libraries use. Read
 * from /proc at each scrape; what cannot be read is left out. No state.
 */
#include <skv/service.h>

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "expose.h"

struct process {
	double cpu_s, start_s;
	uint64_t virtual_bytes, resident_bytes;
	uint32_t threads;
};

/* Seconds since 1970 when this machine started. */
static double boot_time(void)
{
	FILE *f = fopen("/proc/stat", "re");
	unsigned long long s = 0;
	char line[256];

	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "btime %llu", &s) == 1)
			break;
	if (f)
		fclose(f);
	return (double)s;
}

static bool read_stat(struct process *p)
{
	const double tick = (double)sysconf(_SC_CLK_TCK);
	FILE *f = fopen("/proc/self/stat", "re");
	unsigned long long user, system, start, size;
	char text[1024] = "";
	long threads, pages;
	const char *end;

	if (f) {
		if (!fgets(text, sizeof text, f))
			*text = '\0';
		fclose(f);
	}
	end = strrchr(text, ')'); /* the name before may have anything in it */
	if (!end || sscanf(end, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d "
				"%*d %*d %ld %*d %llu %llu %ld",
			   &user, &system, &threads, &start, &size, &pages) != 6)
		return false;
	*p = (struct process){ .cpu_s = (double)(user + system) / tick,
			       .start_s = boot_time() + (double)start / tick,
			       .virtual_bytes = size,
			       .resident_bytes = (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE),
			       .threads = (uint32_t)threads };
	return true;
}

static uint64_t open_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	uint64_t n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n > 3 ? n - 3 : 0; /* ".", ".." and this one */
}

static void put(struct skv_buf *out, const char *name, const char *type, const char *help,
		double value)
{
	skv_buf_printf(out, "# HELP process_%s %s\n# TYPE process_%s %s\nprocess_%s %.15g\n", name,
		       help, name, type, name, value);
}

void skv_process_write(struct skv_buf *out)
{
	struct rlimit limit;
	struct process p;

	if (read_stat(&p)) {
		put(out, "cpu_seconds_total", "counter", "user and system CPU time", p.cpu_s);
		put(out, "start_time_seconds", "gauge", "when it started, since 1970", p.start_s);
		put(out, "virtual_memory_bytes", "gauge", "address space",
		    (double)p.virtual_bytes);
		put(out, "resident_memory_bytes", "gauge", "memory in use",
		    (double)p.resident_bytes);
		put(out, "threads", "gauge", "threads", p.threads);
	}
	put(out, "open_fds", "gauge", "open descriptors", (double)open_files());
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
		put(out, "max_fds", "gauge", "most descriptors", (double)limit.rlim_cur);
}
