/*
 * steps.c - the counted system calls of steps.h. State: a few plain variables, for tests of one
 * thread. Dying is _exit(2): nothing is cleaned up, as after kill -9.
 */
#include "steps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static unsigned at, seen;
static int with, fallocate_error;
static char trace[256];
static void (*before_rename)(void *ctx);
static void *before_rename_ctx;

int __real_openat(int dir, const char *name, int flags, mode_t mode);
int __real_fallocate(int fd, int mode, off_t offset, off_t length);
int __real_ftruncate(int fd, off_t length);
ssize_t __real_pwrite(int fd, const void *p, size_t n, off_t offset);
int __real_fsync(int fd);
int __real_renameat2(int d1, const char *from, int d2, const char *to, unsigned flags);
int __real_flock(int fd, int op);

int __wrap_openat(int dir, const char *name, int flags, ...);
int __wrap_fallocate(int fd, int mode, off_t offset, off_t length);
int __wrap_ftruncate(int fd, off_t length);
ssize_t __wrap_pwrite(int fd, const void *p, size_t n, off_t offset);
int __wrap_fsync(int fd);
int __wrap_renameat2(int d1, const char *from, int d2, const char *to, unsigned flags);
int __wrap_flock(int fd, int op);

void steps_fail_at(unsigned n, int error)
{
	at = n;
	with = error;
	seen = 0;
	trace[0] = '\0';
}

void steps_no_fallocate(int error) { fallocate_error = error; }

void steps_before_rename(void (*fn)(void *ctx), void *ctx)
{
	before_rename = fn;
	before_rename_ctx = ctx;
}

unsigned steps_stop(void)
{
	at = 0;
	return seen;
}

const char *steps_trace(void) { return trace; }

static bool fails(char letter)
{
	size_t n = strlen(trace);

	if (n == sizeof trace - 1)
		memmove(trace, trace + 1, n--);
	trace[n] = letter;
	trace[n + 1] = '\0';
	if (++seen != at)
		return false;
	if (with == 0)
		_exit(99);
	errno = with;
	return true;
}

int __wrap_openat(int dir, const char *name, int flags, ...)
{
	va_list ap;
	mode_t mode;

	va_start(ap, flags);
	mode = flags & O_CREAT ? va_arg(ap, mode_t) : 0;
	va_end(ap);
	return fails('o') ? -1 : __real_openat(dir, name, flags, mode);
}

int __wrap_fallocate(int fd, int mode, off_t offset, off_t length)
{
	if (fails('a'))
		return -1;
	if (fallocate_error == 0)
		return __real_fallocate(fd, mode, offset, length);
	errno = fallocate_error;
	return -1;
}

int __wrap_ftruncate(int fd, off_t length)
{
	return fails('t') ? -1 : __real_ftruncate(fd, length);
}

ssize_t __wrap_pwrite(int fd, const void *p, size_t n, off_t offset)
{
	return fails('w') ? -1 : __real_pwrite(fd, p, n, offset);
}

int __wrap_fsync(int fd)
{
	struct stat st;
	bool dir = fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);

	return fails(dir ? 'd' : 's') ? -1 : __real_fsync(fd);
}

int __wrap_renameat2(int d1, const char *from, int d2, const char *to, unsigned flags)
{
	void (*fn)(void *ctx) = before_rename;

	before_rename = NULL;
	if (fn)
		fn(before_rename_ctx);
	return fails('r') ? -1 : __real_renameat2(d1, from, d2, to, flags);
}

int __wrap_flock(int fd, int op) { return fails('l') ? -1 : __real_flock(fd, op); }
