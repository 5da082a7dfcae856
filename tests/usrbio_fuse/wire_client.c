/*
 * wire_client.c - libhf3fs_wire_client.so, a plain C client of USRBIO's shared memory protocol with
 * the names of 3FS's own library, for tests where that library is not to be had: mounts, shared
 * memory, rings. Nothing of it is 3FS's code; where 3FS's ends the process, leaves a link behind or
 * never forgets, this one does, too.
 *
 * Threads: iovs and rings may be made by any thread; one handle is not to be used by two at a time.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "wire.h"
#include "wire_api.h"

/* The target of hf3fs_iov.iovh. */
struct shm {
	struct shm *next, **prev; /* all of the process: what it forgot to destroy goes with it */
	void *base;
	size_t size;
	/* "/hf3fs-iov-UUID", not of the id; "": the name is gone, or belongs to another */
	char name[64];
};

static pthread_mutex_t shms_lock = PTHREAD_MUTEX_INITIALIZER;
static struct shm *shms;

bool hf3fs_is_hf3fs(int fd)
{
	uint32_t magic = 0;

	return ioctl(fd, WIRE_IOC_MAGIC, &magic) == 0 && magic == WIRE_MAGIC;
}

static bool is_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return strncmp(path, dir, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

/* strlen + 1 of the mount that `path` is on, -1: none. Copied only where it fits. A path that does
 * not exist ends the process: an exception that no C caller can catch. */
int hf3fs_extract_mount_point(char *mount_point, int size, const char *path)
{
	char line[4096], real[PATH_MAX], best[PATH_MAX] = "";
	FILE *f;

	if (!realpath(path, real) || !(f = fopen("/proc/self/mountinfo", "re")))
		abort();
	while (fgets(line, sizeof line, f)) {
		char at[PATH_MAX];
		struct stat st;
		char inside[PATH_MAX + 16];

		if (!strstr(line, " - fuse.hf3fs ") ||
		    sscanf(line, "%*s %*s %*s %*s %4095s", at) != 1)
			continue;
		snprintf(inside, sizeof inside, "%s/3fs-virt", at);
		if (is_below(real, at) && strlen(at) > strlen(best) && stat(inside, &st) == 0)
			snprintf(best, sizeof best, "%s", at);
	}
	fclose(f);
	if (best[0] == '\0')
		return -1;
	if ((int)strlen(best) < size)
		memcpy(mount_point, best, strlen(best) + 1);
	return (int)strlen(best) + 1;
}

/* The daemon takes the end of this descriptor for the end of the process. One for each
 * mount, opened by the first iov and never again: after a restart of the daemon it
 * does not know us any more. */
static int stay_known(const char *mount_point)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct known {
		struct known *next;
		char mount_point[256];
	} *mounts;
	char path[512];
	struct known *k;
	int error = 0;

	pthread_mutex_lock(&lock);
	for (k = mounts; k && strcmp(k->mount_point, mount_point) != 0; k = k->next)
		;
	if (!k) {
		snprintf(path, sizeof path, "%s/" WIRE_IOVS, mount_point);
		k = calloc(1, sizeof *k);
		error = !k ? ENOMEM : open(path, O_RDONLY | O_DIRECTORY) < 0 ? errno : 0;
		if (error == 0) {
			snprintf(k->mount_point, sizeof k->mount_point, "%s", mount_point);
			k->next = mounts;
			mounts = k;
		} else {
			free(k);
		}
	}
	pthread_mutex_unlock(&lock);
	return error;
}

static void uuid_text(const uint8_t u[16], char text[37])
{
	int n = 0;

	for (int i = 0; i < 16; i++)
		n += snprintf(text + n, 37 - (size_t)n, "%s%02x",
			      i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", u[i]);
}

/* The words in a ring's name. */
struct ring_words {
	bool for_read;
	int depth, priority, timeout;
	uint64_t flags;
	/* Flags are binary in the link that is made, decimal in the one that is removed. */
	bool decimal;
};

static void link_path(char out[640], const struct hf3fs_iov *iov, const char *mount_point,
		      const struct ring_words *r)
{
	char id[37];
	int n;

	uuid_text(iov->id, id);
	n = snprintf(out, 640, "%s/" WIRE_IOVS "/%s", mount_point, id);
	if (iov->block_size)
		n += snprintf(out + n, 640 - (size_t)n, ".b%zu", iov->block_size);
	if (!r)
		return;
	n += snprintf(out + n, 640 - (size_t)n, ".%c%d", r->for_read ? 'r' : 'w', r->depth);
	if (r->priority != 0)
		n += snprintf(out + n, 640 - (size_t)n, ".p%c", r->priority < 0 ? 'h' : 'l');
	n += snprintf(out + n, 640 - (size_t)n, ".t%d", r->timeout);
	if (r->flags && r->decimal) {
		snprintf(out + n, 640 - (size_t)n, ".f%llu", (unsigned long long)r->flags);
	} else if (r->flags) {
		char bits[65];
		int k = 64;

		bits[k] = '\0';
		for (uint64_t f = r->flags; f; f >>= 1)
			bits[--k] = (char)('0' + (f & 1));
		snprintf(out + n, 640 - (size_t)n, ".f%s", bits + k);
	}
}

static struct shm *shm_map(const char *name, size_t size, bool make)
{
	struct shm *s = calloc(1, sizeof *s);
	int fd = shm_open(name, O_RDWR | O_CLOEXEC | (make ? O_CREAT | O_EXCL : 0), 0666);

	if (s && fd >= 0 && (!make || ftruncate(fd, (off_t)size) == 0)) {
		s->size = size;
		s->base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		snprintf(s->name, sizeof s->name, "%s", make ? name : "");
	}
	if (fd >= 0)
		close(fd);
	if (s && s->base && s->base != MAP_FAILED) {
		pthread_mutex_lock(&shms_lock);
		s->next = shms;
		s->prev = &shms;
		if (shms)
			shms->prev = &s->next;
		shms = s;
		pthread_mutex_unlock(&shms_lock);
		return s;
	}
	if (fd >= 0 && make)
		shm_unlink(name);
	free(s);
	return NULL;
}

static void shm_unname(struct shm *s)
{
	if (s->name[0])
		shm_unlink(s->name);
	s->name[0] = '\0';
}

static void shm_free(struct shm *s)
{
	shm_unname(s);
	pthread_mutex_lock(&shms_lock);
	*s->prev = s->next;
	if (s->next)
		s->next->prev = s->prev;
	pthread_mutex_unlock(&shms_lock);
	munmap(s->base, s->size);
	free(s);
}

static void check_arguments(const char *mount_point, size_t size, size_t block)
{
	if (!mount_point || size == 0 || block > size)
		abort(); /* a null pointer is read; a division by zero; an exception, again */
}

static void fill(struct hf3fs_iov *iov, void *base, struct shm *s, const char *mount_point,
		 size_t size, size_t block, int numa)
{
	iov->base = base;
	iov->iovh = s;
	snprintf(iov->mount_point, sizeof iov->mount_point, "%s", mount_point);
	iov->size = size;
	iov->block_size = block;
	iov->numa = numa;
}

static int create(struct hf3fs_iov *iov, const char *mount_point, size_t size, size_t block,
		  int numa, const struct ring_words *ring)
{
	struct hf3fs_iov made;
	uint8_t other[16];
	char uuid[37], name[64], target[80], link[640];
	struct shm *s;
	int error;

	if (!iov || (mount_point && strlen(mount_point) >= sizeof iov->mount_point))
		return -EINVAL;
	check_arguments(mount_point, size, block);
	if (getrandom(made.id, sizeof made.id, 0) != sizeof made.id ||
	    getrandom(other, sizeof other, 0) != sizeof other)
		return -EIO;
	uuid_text(other, uuid); /* the memory's name is not the id */
	snprintf(name, sizeof name, "/hf3fs-iov-%s", uuid);
	s = shm_map(name, size, true);
	if (!s)
		return -EIO;
	fill(&made, s->base, s, mount_point, size, block, numa);
	snprintf(target, sizeof target, "/dev/shm%s", name);
	link_path(link, &made, mount_point, ring);
	error = stay_known(mount_point);
	if (error == 0 && symlink(target, link) != 0)
		error = errno;
	if (error != 0) {
		shm_free(s);
		return -error;
	}
	if (ring)
		shm_unname(s);
	*iov = made;
	return 0;
}

int hf3fs_iovcreate(struct hf3fs_iov *iov, const char *mount_point, size_t size, size_t block_size,
		    int numa)
{
	return create(iov, mount_point, size, block_size, numa, NULL);
}

int hf3fs_iovopen(struct hf3fs_iov *iov, const uint8_t id[16], const char *mount_point, size_t size,
		  size_t block_size, int numa)
{
	char link[640], target[PATH_MAX];
	struct shm *s;

	check_arguments(mount_point, size, block_size);
	memcpy(iov->id, id, sizeof iov->id);
	iov->block_size = block_size;
	link_path(link, iov, mount_point, NULL);
	if (!realpath(link, target))
		return -errno;
	if (strncmp(target, WIRE_SHM, strlen(WIRE_SHM)) != 0)
		return -EINVAL;
	s = shm_map(target + strlen(WIRE_SHM) - 1, size, false);
	if (!s)
		return -EIO;
	fill(iov, s->base, s, mount_point, size, block_size, numa);
	return 0;
}

void hf3fs_iovunlink(struct hf3fs_iov *iov)
{
	if (!iov->iovh)
		abort(); /* wrapped: a null pointer is read */
	shm_unname(iov->iovh);
}

static void destroy(struct hf3fs_iov *iov, const struct ring_words *ring)
{
	char link[640];

	if (!iov || !iov->iovh)
		return;
	link_path(link, iov, iov->mount_point, ring);
	unlink(link);
	shm_free(iov->iovh);
	iov->iovh = NULL;
}

void hf3fs_iovdestroy(struct hf3fs_iov *iov) { destroy(iov, NULL); }

int hf3fs_iovwrap(struct hf3fs_iov *iov, void *base, const uint8_t id[16], const char *mount_point,
		  size_t size, size_t block_size, int numa)
{
	if (!iov || strlen(mount_point) >= sizeof iov->mount_point)
		return -EINVAL;
	memcpy(iov->id, id, sizeof iov->id);
	fill(iov, base, NULL, mount_point, size, block_size, numa);
	return 0;
}

/* ---- rings ---- */

size_t hf3fs_ior_size(int entries) { return wire_ring_bytes(entries); }

static int create_ring(struct hf3fs_ior *ior, const char *mount_point, int entries,
		       const struct ring_words *r, int numa)
{
	int rc;

	if (!ior || !mount_point || !*mount_point || r->timeout < 0)
		return -EINVAL;
	rc = create(&ior->iov, mount_point, wire_ring_bytes(entries), 0, numa, r);
	if (rc < 0)
		return rc;
	rc = -EINVAL;
	ior->iorh = entries == 0 ? NULL
				 : wire_ring_client(ior->iov.base, ior->iov.size, mount_point,
						    r->priority, &rc);
	if (!ior->iorh) {
		destroy(&ior->iov, NULL); /* by the name of an iov: the ring's link stays */
		return rc;
	}
	snprintf(ior->mount_point, sizeof ior->mount_point, "%s", mount_point);
	ior->for_read = r->for_read;
	ior->io_depth = r->depth;
	ior->priority = r->priority;
	ior->timeout = r->timeout;
	ior->flags = r->flags;
	return 0;
}

int hf3fs_iorcreate(struct hf3fs_ior *ior, const char *mount_point, int entries, bool for_read,
		    int io_depth, int numa)
{
	return hf3fs_iorcreate3(ior, mount_point, entries, for_read, io_depth, 0, 0, numa);
}

int hf3fs_iorcreate2(struct hf3fs_ior *ior, const char *mount_point, int entries, bool for_read,
		     int io_depth, int priority, int numa)
{
	return hf3fs_iorcreate3(ior, mount_point, entries, for_read, io_depth, priority, 0, numa);
}

int hf3fs_iorcreate3(struct hf3fs_ior *ior, const char *mount_point, int entries, bool for_read,
		     int io_depth, int priority, int timeout, int numa)
{
	struct ring_words r = { for_read, io_depth, priority, timeout, 0, false };

	return create_ring(ior, mount_point, entries, &r, numa);
}

int hf3fs_iorcreate4(struct hf3fs_ior *ior, const char *mount_point, int entries, bool for_read,
		     int io_depth, int timeout, int numa, uint64_t flags)
{
	struct ring_words r = { for_read, io_depth, 0, timeout, flags, false };

	return create_ring(ior, mount_point, entries, &r, numa);
}

void hf3fs_iordestroy(struct hf3fs_ior *ior)
{
	struct ring_words r;

	if (!ior)
		return;
	r = (struct ring_words){ ior->for_read, ior->io_depth, ior->priority,
				 ior->timeout,  ior->flags,    true };
	if (ior->iorh)
		wire_ring_client_free(ior->iorh);
	ior->iorh = NULL;
	destroy(&ior->iov, &r);
}
