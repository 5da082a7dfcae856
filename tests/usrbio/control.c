/*
 * control.c - see control.h.
 */
#include "control.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "control.c: %s: %s\n", what, strerror(errno));
	abort();
}

static long long epoch_of(const char *text)
{
	const char *epoch = strstr(text, "epoch=");

	return epoch ? strtoll(epoch + 6, NULL, 10) : 1;
}

/* Sets the links as processes that have loaded the library do when they see the control file: the
 * links of the submit semaphores are those of this daemon, or gone. Done here, too, so that it is
 * so at once. */
static void set_links(const char *root, const char *text)
{
	static const char *const names[] = { "submit-ios.ph", "submit-ios", "submit-ios.pl" };
	char iovs[512], path[600], fresh[600], target[128];

	snprintf(iovs, sizeof iovs, "%s/3fs-virt/iovs", root);
	snprintf(target, sizeof target, STANDIN_SEM "%lld", epoch_of(text));
	if (access(iovs, F_OK) != 0)
		return; /* nobody has loaded it yet */
	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof path, "%s/%s", iovs, names[i]);
		snprintf(fresh, sizeof fresh, "%s/.%s.control", iovs, names[i]);
		if (strstr(text, "down=1"))
			(void)unlink(path);
		else if (symlink(target, fresh) != 0 || rename(fresh, path) != 0)
			die(path);
	}
}

/* No daemon comes back: the next one has semaphores of its own, and knows nothing. A client could
 * not tell that requests were lost. */
static void check_return(const char *path, const char *text)
{
	char was[1024] = "";
	FILE *f = fopen(path, "re");

	if (f && !fgets(was, sizeof was, f))
		was[0] = '\0';
	if (f)
		fclose(f);
	if (!strstr(was, "down=1") || strstr(text, "down=1") || epoch_of(was) != epoch_of(text))
		return;
	errno = EEXIST;
	die("after down=1 another daemon has to come, with another epoch");
}

void standin_set(const char *root, const char *text)
{
	char path[512], fresh[512];
	FILE *f;

	snprintf(path, sizeof path, "%s/3fs-virt", root);
	if (mkdir(path, 0777) != 0 && errno != EEXIST)
		die(path);
	snprintf(path, sizeof path, "%s/3fs-virt/standin.conf", root);
	check_return(path, text);
	snprintf(fresh, sizeof fresh, "%s/3fs-virt/standin.conf.%d", root, (int)getpid());
	f = fopen(fresh, "we");
	if (!f || fprintf(f, "%s\n", text) < 0 || fclose(f) != 0 || rename(fresh, path) != 0)
		die(path);
	set_links(root, text);
}

/* Calls `each` for the names in a folder that begin with `prefix`; how many. */
static int walk(const char *path, const char *prefix,
		void (*each)(int dirfd, const char *name, void *arg), void *arg)
{
	DIR *dir = opendir(path);
	struct dirent *d;
	int n = 0;

	if (!dir)
		return 0;
	while ((d = readdir(dir)))
		if (d->d_name[0] != '.' && strncmp(d->d_name, prefix, strlen(prefix)) == 0) {
			n++;
			if (each)
				each(dirfd(dir), d->d_name, arg);
		}
	closedir(dir);
	return n;
}

static bool is_link(const char *name)
{
	return isxdigit((unsigned char)name[0]) && strchr(name, '-'); /* not submit-ios */
}

static void remove_link(int dirfd, const char *name, void *arg)
{
	(void)arg;
	if (is_link(name))
		(void)unlinkat(dirfd, name, 0);
}

void standin_restart(const char *root, int64_t epoch, const char *text)
{
	char all[1024], path[512];

	snprintf(path, sizeof path, "%s/3fs-virt/iovs", root);
	walk(path, "", remove_link, NULL);
	snprintf(path, sizeof path, "%s/3fs-virt/standin.owners", root);
	walk(path, "", remove_link, NULL);
	snprintf(all, sizeof all, "epoch=%lld %s", (long long)epoch, text);
	standin_set(root, all);
}

uint64_t standin_count(const char *root, enum counter_name name)
{
	struct counter c;
	char path[512];
	ssize_t n;
	int fd;

	snprintf(path, sizeof path, "%s/3fs-virt/standin.stats", root);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return 0;
	n = fd < 0 ? -1 : pread(fd, &c, sizeof c, (off_t)name * (off_t)sizeof c);
	if (n != sizeof c)
		die(path);
	close(fd);
	return c.value;
}

void standin_settle(const char *path, uint64_t chunk)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	off_t data = 0, end = 0;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) != 0)
		die(path);
	while ((data = lseek(fd, data, SEEK_DATA)) >= 0 && (data = lseek(fd, data, SEEK_HOLE)) >= 0)
		end = data;
	if ((uint64_t)end / chunk == (uint64_t)st.st_size / chunk && end < st.st_size)
		end = st.st_size; /* the last chunk is there */
	if (ftruncate(fd, end) != 0)
		die(path);
	close(fd);
}

static void count_shm(int dirfd, const char *name, void *arg)
{
	char path[512];

	(void)dirfd;
	snprintf(path, sizeof path, "/dev/shm/hf3fs-iov-%s", name);
	if (access(path, F_OK) == 0)
		++*(int *)arg;
}

int shm_count(const char *root)
{
	char path[512];
	int n = 0;

	snprintf(path, sizeof path, "%s/3fs-virt/standin.shm", root);
	if (access(path, F_OK) != 0) /* 3FS's own library */
		return walk("/dev/shm", "hf3fs-iov-", NULL, NULL);
	walk(path, "", count_shm, &n);
	return n;
}

static void count_link(int dirfd, const char *name, void *arg)
{
	(void)dirfd;
	if (is_link(name))
		++*(int *)arg;
}

int standin_links(const char *root)
{
	char path[512];
	int n = 0;

	snprintf(path, sizeof path, "%s/3fs-virt/iovs", root);
	walk(path, "", count_link, &n);
	return n;
}
