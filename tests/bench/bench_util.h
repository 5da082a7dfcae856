/* bench_util.h - for the floors: a clock, latencies, CPU time of a process, memory. */
#ifndef SKV_TESTS_BENCH_UTIL_H
#define SKV_TESTS_BENCH_UTIL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Every latency is kept: floors make few enough calls. All-zero is empty. */
struct bench_times {
	uint64_t *us;
	size_t n, cap;
};

void bench_die(const char *what) __attribute__((noreturn));
uint64_t bench_now_us(void);
/* CPU time of a process's live threads, nanoseconds. */
uint64_t bench_cpu_ns(pid_t pid);
/* Aligned to pages, filled with a pattern; never NULL; the caller frees it. */
void *bench_memory(size_t n);

void bench_times_add(struct bench_times *t, uint64_t us);
void bench_times_merge(struct bench_times *into, const struct bench_times *from);
void bench_times_free(struct bench_times *t);
/* Sorts. 0 when empty. */
uint64_t bench_quantile(struct bench_times *t, double q);

#endif
