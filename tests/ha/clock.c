/*
 * clock.c - clocks of one process that a test sets. Preloaded, it adds two int64_t of the file
 * SKV_TEST_CLOCK: seconds to the wall clock, milliseconds to CLOCK_BOOTTIME, which counts leases.
 * CLOCK_MONOTONIC, by which threads sleep, is left alone.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *ahead; /* seconds, milliseconds */

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("SKV_TEST_CLOCK");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *at = MAP_FAILED;

	if (fd >= 0)
		at = mmap(NULL, 2 * sizeof *ahead, PROT_READ, MAP_SHARED, fd, 0);
	if (fd >= 0)
		close(fd);
	if (at == MAP_FAILED)
		abort();
	ahead = at;
}

static void add_ms(struct timespec *t, int64_t ms)
{
	const int64_t ns = t->tv_nsec + ms % 1000 * 1000000 + 1000000000;

	t->tv_sec += (time_t)(ms / 1000 + ns / 1000000000 - 1);
	t->tv_nsec = (long)(ns % 1000000000);
}

__attribute__((visibility("default"))) int clock_gettime(clockid_t id, struct timespec *t)
{
	long rc = syscall(SYS_clock_gettime, id, t);

	if (rc == 0 && ahead && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
		t->tv_sec += (time_t)ahead[0];
	if (rc == 0 && ahead && id == CLOCK_BOOTTIME)
		add_ms(t, ahead[1]);
	return (int)rc;
}

__attribute__((visibility("default"))) time_t time(time_t *out)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	if (out)
		*out = t.tv_sec;
	return t.tv_sec;
}

__attribute__((visibility("default"))) int gettimeofday(struct timeval *restrict out,
							void *restrict zone)
{
	struct timespec t;

	(void)zone;
	clock_gettime(CLOCK_REALTIME, &t);
	*out = (struct timeval){ t.tv_sec, t.tv_nsec / 1000 };
	return 0;
}
