/*
 * slow.c - preloaded: storage does what the file named by SKV_SLOW says, before it moves a block:
 * a number is its rate in MB/s, one for all threads, as a device's; "hold" keeps it waiting until
 * the file says something else; empty, 0 or no file: as fast as it is.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { LEAST = 32 << 10 }; /* shorter ones are not blocks */

__attribute__((visibility("default"))) atomic_int slow_held; /* calls that "hold" keeps */

static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;

static void say(char *text, int size)
{
	const char *path = getenv("SKV_SLOW");
	FILE *f = path ? fopen(path, "r") : NULL;

	if (!f || !fgets(text, size, f))
		text[0] = 0;
	if (f)
		fclose(f);
}

static void before(const struct iovec *v, int n)
{
	char text[32];
	size_t bytes = 0;
	double rate;

	for (int i = 0; i < n; i++)
		bytes += v[i].iov_len;
	if (bytes < LEAST)
		return;
	say(text, sizeof text);
	if (strncmp(text, "hold", 4) == 0) {
		atomic_fetch_add(&slow_held, 1);
		for (; strncmp(text, "hold", 4) == 0; say(text, sizeof text))
			poll(NULL, 0, 2);
		atomic_fetch_sub(&slow_held, 1);
	}
	rate = atof(text);
	if (rate <= 0)
		return;
	pthread_mutex_lock(&one);
	poll(NULL, 0, (int)((double)bytes / (rate * 1e3)));
	pthread_mutex_unlock(&one);
}

#define MOVE(name, real_name)                                                       \
	ssize_t name(int fd, const struct iovec *v, int n, off_t at)                \
	{                                                                           \
		static ssize_t (*real)(int, const struct iovec *, int, off_t);      \
		if (!real)                                                          \
			real = dlsym(RTLD_NEXT, real_name);                         \
		before(v, n);                                                       \
		return real(fd, v, n, at);                                          \
	}

MOVE(preadv, "preadv")
MOVE(preadv64, "preadv64")
MOVE(pwritev, "pwritev")
MOVE(pwritev64, "pwritev64")
