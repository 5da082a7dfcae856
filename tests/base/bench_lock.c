/*
 * bench_lock.c - measures a read lock, pthread's against ours, in 1..N threads at a time.
 *
 *	bench_lock [THREADS]	(default: as many as there are processors)
 *
 * No part of the tests: it judges nothing.
 */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <skv/lock.h>

static pthread_rwlock_t theirs = PTHREAD_RWLOCK_INITIALIZER;
static struct skv_rwlock ours;
static atomic_bool stop;
static bool use_ours;

static double seconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void *read_on(void *arg)
{
	double *cost = arg, begin = seconds(CLOCK_THREAD_CPUTIME_ID);
	unsigned long n = 0;

	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		for (int i = 0; i < 100; i++, n++) {
			if (use_ours) {
				skv_rwlock_read(&ours);
				skv_rwlock_read_unlock(&ours);
			} else {
				pthread_rwlock_rdlock(&theirs);
				pthread_rwlock_unlock(&theirs);
			}
		}
	}
	*cost = (seconds(CLOCK_THREAD_CPUTIME_ID) - begin) / (double)n;
	return NULL;
}

static double run(long threads)
{
	pthread_t *t = calloc((size_t)threads, sizeof *t);
	double *cost = calloc((size_t)threads, sizeof *cost), sum = 0;

	atomic_store(&stop, false);
	for (long i = 0; i < threads; i++)
		if (pthread_create(&t[i], NULL, read_on, &cost[i]) != 0)
			exit(1);
	poll(NULL, 0, 1000);
	atomic_store(&stop, true);
	for (long i = 0; i < threads; i++) {
		pthread_join(t[i], NULL);
		sum += cost[i];
	}
	free(t);
	free(cost);
	return sum / (double)threads * 1e9;
}

int main(int argc, char **argv)
{
	long most = argc > 1 ? atol(argv[1]) : sysconf(_SC_NPROCESSORS_ONLN);
	double begin;

	skv_rwlock_init(&ours);
	for (long n = 1; n <= most; n *= 2) {
		use_ours = false;
		printf("%ld threads: pthread %.0f ns of CPU for lock and unlock, ", n, run(n));
		use_ours = true;
		printf("ours %.0f ns\n", run(n));
	}
	begin = seconds(CLOCK_THREAD_CPUTIME_ID);
	for (int i = 0; i < 1000000; i++) {
		skv_rwlock_write(&ours);
		skv_rwlock_write_unlock(&ours);
	}
	printf("write: %.0f ns with %u stripes\n", (seconds(CLOCK_THREAD_CPUTIME_ID) - begin) * 1e3,
	       ours.n);
	skv_rwlock_destroy(&ours);
	return 0;
}
