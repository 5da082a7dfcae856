/*
 * usrbio_lib.c - loads 3FS's client library (see usrbio_lib.h).
 *
 * Owns the one loaded table of the process. Its functions are C by name, but C++ inside.
 */
#include "usrbio_lib.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <skv/lock.h>
#include <skv/log.h>
#include <skv/mem.h>

/* A loaded library. Never freed. */
struct loaded {
	char *name;
	struct skv_usrbio_lib lib;
	struct loaded *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects `all` */
static struct loaded *all;

void skv_usrbio_bound_files(uint64_t most)
{
	struct rlimit l, with;

	if (getrlimit(RLIMIT_NOFILE, &l) != 0 || l.rlim_max <= most)
		return;
	with.rlim_max = most;
	with.rlim_cur = l.rlim_cur < with.rlim_max ? l.rlim_cur : with.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &with) != 0)
		skv_log(SKV_LOG_WARN, "client",
			"the hard limit of open files cannot be lowered: %s", strerror(errno));
	else
		skv_log(SKV_LOG_INFO, "client",
			"the hard limit of open files is lowered to %llu: 3FS's library takes "
			"memory for each",
			(unsigned long long)most);
}

static int find_symbols(void *handle, const char *name, struct skv_usrbio_lib *lib,
			struct skv_error *err)
{
	void *p;

#define FIND(symbol, type, parameters)                                       \
	p = dlsym(handle, "hf3fs_" #symbol);                                 \
	if (!p)                                                              \
		return skv_fail(err, SKV_E_UNSUPPORTED, "hf3fs_lib",         \
				"%s has no function hf3fs_%s: is it 3FS's?", \
				name, #symbol);                              \
	memcpy(&lib->symbol, &p, sizeof p);
	SKV_HF3FS_FUNCTIONS(FIND)
#undef FIND
	return SKV_OK;
}

static int load_locked(const char *name, struct loaded **out, struct skv_error *err)
{
	struct loaded *l = skv_calloc(1, sizeof *l);
	void *handle;
	int rc;

	if (l)
		l->name = skv_strdup(name);
	if (!l || !l->name) {
		skv_free(l);
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	}
	skv_usrbio_bound_files(SKV_USRBIO_NOFILE);
	handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (handle)
		rc = find_symbols(handle, name, &l->lib, err);
	else
		rc = skv_fail(err, SKV_E_UNSUPPORTED, "hf3fs_lib",
			      "no client library of 3FS: %s (install it, or name it with "
			      "hf3fs_lib or " SKV_USRBIO_LIB_ENV ")",
			      dlerror());
	if (rc == SKV_OK) {
		l->next = all;
		all = l;
		*out = l;
		return SKV_OK;
	}
	skv_free(l->name);
	skv_free(l);
	return rc;
}

int skv_usrbio_load(const char *path, const struct skv_usrbio_lib **out, struct skv_error *err)
{
	const char *env = getenv(SKV_USRBIO_LIB_ENV);
	const char *name = path && path[0] ? path : env && env[0] ? env : SKV_USRBIO_LIB;
	struct loaded *l;
	int rc = SKV_OK;

	pthread_mutex_lock(&lock);
	for (l = all; l && strcmp(l->name, name) != 0; l = l->next)
		;
	if (!l)
		rc = load_locked(name, &l, err);
	pthread_mutex_unlock(&lock);
	if (rc == SKV_OK)
		*out = &l->lib;
	return rc;
}

bool skv_usrbio_is_3fs(int fd)
{
	uint32_t magic = 0;

	return ioctl(fd, SKV_HF3FS_IOC_MAGIC, &magic) == 0 && magic == SKV_HF3FS_MAGIC;
}

int skv_usrbio_mount_point(const struct skv_usrbio_lib *lib, const char *path, char *out,
			   size_t size, struct skv_error *err)
{
	char at[PATH_MAX], virt[PATH_MAX + sizeof SKV_USRBIO_VIRT];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	const bool ours = fd >= 0 && lib->is_hf3fs(fd);
	const bool known = fd >= 0 && realpath(path, at);
	const int error = errno;
	size_t n = 0;

	if (fd >= 0)
		close(fd);
	if (!known)
		return skv_fail(err, SKV_E_UNAVAILABLE, "hf3fs_mount_point", "%s: %s", path,
				strerror(error));
	for (char *end = at + strlen(at); ours && n == 0 && end && at[0]; end = strrchr(at, '/')) {
		*end = '\0';
		snprintf(virt, sizeof virt, "%s/" SKV_USRBIO_VIRT, at);
		if (access(virt, F_OK) == 0)
			n = strlen(at) + 1;
	}
	if (n == 0 || n > size)
		return skv_fail(err, SKV_E_FOREIGN, "hf3fs_mount_point",
				n ? "%s: its mount point is too long"
				  : "%s does not lie on a mounted 3FS",
				path);
	memcpy(out, at, n);
	return SKV_OK;
}
