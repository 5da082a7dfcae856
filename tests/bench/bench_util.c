/* bench_util.c - see bench_util.h. */
#include "bench_util.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void bench_die(const char *what)
{
	fprintf(stderr, "bench: %s\n", what);
	exit(1);
}

uint64_t bench_now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

uint64_t bench_cpu_ns(pid_t pid)
{
	char path[300];
	uint64_t sum = 0, one;
	struct dirent *e;
	DIR *d;

	snprintf(path, sizeof path, "/proc/%ld/task", (long)pid);
	d = opendir(path);
	while (d && (e = readdir(d))) {
		FILE *f;

		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof path, "/proc/%ld/task/%.20s/schedstat", (long)pid, e->d_name);
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

void *bench_memory(size_t n)
{
	void *p = aligned_alloc(4096, (n + 4095) / 4096 * 4096);

	if (!p)
		bench_die("out of memory");
	memset(p, 0x61, n);
	return p;
}

void bench_times_add(struct bench_times *t, uint64_t us)
{
	if (t->n == t->cap) {
		t->cap = t->cap ? t->cap * 2 : 1024;
		t->us = realloc(t->us, t->cap * sizeof *t->us);
		if (!t->us)
			bench_die("out of memory");
	}
	t->us[t->n++] = us;
}

void bench_times_merge(struct bench_times *into, const struct bench_times *from)
{
	for (size_t i = 0; i < from->n; i++)
		bench_times_add(into, from->us[i]);
}

void bench_times_free(struct bench_times *t)
{
	free(t->us);
	*t = (struct bench_times){ 0 };
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

uint64_t bench_quantile(struct bench_times *t, double q)
{
	size_t at = (size_t)(q * (double)t->n);

	if (t->n == 0)
		return 0;
	qsort(t->us, t->n, sizeof *t->us, by_value);
	return t->us[at < t->n ? at : t->n - 1];
}
