/*
 * standin_iov.c - see standin.h: data memory. Each has a file in /dev/shm and a link to it on the
 * mount; making the link is how the daemon gets to know of it.
 */
#include "standin.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define UUID_TEXT 37

static void uuid_text(const uint8_t id[16], char out[UUID_TEXT])
{
	char *p = out;

	for (int i = 0; i < 16; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*p++ = '-';
		p += snprintf(p, 3, "%02x", id[i]);
	}
}

static void link_name(char *out, size_t size, const uint8_t id[16], size_t block_size,
		      const char *suffix)
{
	char uuid[UUID_TEXT], block[32] = "";

	uuid_text(id, uuid);
	if (block_size)
		snprintf(block, sizeof block, ".b%zu", block_size);
	snprintf(out, size, "%s%s%s", uuid, block, suffix);
}

/* ---- the list of a mount --------------------------------------------------------------------- */

static void list_add(struct mount *m, struct iov *v)
{
	pthread_mutex_lock(&m->lock);
	v->next = m->iov_list;
	m->iov_list = v;
	pthread_mutex_unlock(&m->lock);
}

static void list_remove(struct iov *v)
{
	struct mount *m = v->mount;

	pthread_mutex_lock(&m->lock);
	for (struct iov **p = &m->iov_list; *p; p = &(*p)->next)
		if (*p == v) {
			*p = v->next;
			break;
		}
	pthread_mutex_unlock(&m->lock);
}

void iov_put(struct iov *v)
{
	if (!v || atomic_fetch_sub(&v->refs, 1) != 1)
		return;
	if (v->ours)
		munmap(v->base, v->size);
	free(v);
}

struct iov *iov_get(struct mount *m, const struct hf3fs_iov *iov)
{
	struct iov *v;

	pthread_mutex_lock(&m->lock);
	for (v = m->iov_list; v; v = v->next)
		if (memcmp(v->id, iov->id, 16) == 0 && v->base == iov->base)
			break;
	if (v)
		atomic_fetch_add(&v->refs, 1);
	pthread_mutex_unlock(&m->lock);
	return v;
}

static void lend_locked(struct iov *v, struct slot *s)
{
	bool shared = false;

	for (const struct slot *o = v->lent; o; o = o->next)
		shared |= (o->read || s->read) && o->at < s->at + s->length &&
			  s->at < o->at + o->length;
	if (shared)
		mount_count(v->mount, COUNT_shared_ios, 1);
	if (v->ours && !v->view) {
		v->view = v->base;
	} else if (!v->ours && !v->lent) {
		/* the same pages once more; fails for memory that no daemon could map */
		void *view = mremap(v->base, 0, v->size, MREMAP_MAYMOVE);

		v->view = view == MAP_FAILED ? NULL : view;
	}
	s->next = v->lent;
	v->lent = s;
}

void iov_lend(struct slot *s, uint64_t at, uint64_t length, bool read)
{
	struct iov *v = s->iov;

	if (!v)
		return;
	pthread_mutex_lock(&v->mount->lock);
	s->at = at;
	s->length = length;
	s->read = read;
	lend_locked(v, s);
	pthread_mutex_unlock(&v->mount->lock);
}

void iov_return(struct slot *s)
{
	struct iov *v = s->iov;
	struct slot **p;

	if (!v)
		return;
	pthread_mutex_lock(&v->mount->lock);
	for (p = &v->lent; *p && *p != s; p = &(*p)->next)
		;
	if (*p)
		*p = s->next;
	if (!v->lent && !v->ours && v->view) {
		munmap(v->view, v->size);
		v->view = NULL;
	}
	pthread_mutex_unlock(&v->mount->lock);
}

bool iov_is_linked(const struct iov *v)
{
	char target[PATH_MAX];

	return readlinkat(v->mount->iovs, v->link, target, sizeof target) > 0;
}

/* ---- making ---------------------------------------------------------------------------------- */

/* Ends the process on arguments with which the vendor's library does. */
static void check_arguments(const char *mount_point, size_t size, size_t block_size)
{
	if (!mount_point)
		standin_die("no mount point: the vendor's library reads a null pointer");
	if (size == 0)
		standin_die("memory of no bytes: the vendor's library divides by zero");
	if (block_size > size)
		standin_die("a block of %zu bytes in memory of %zu: the vendor's library throws",
			    block_size, size);
}

static struct iov *iov_new(struct mount *m, const uint8_t id[16], size_t size, size_t block_size,
			   const char *suffix)
{
	struct iov *v = calloc(1, sizeof *v);

	if (!v)
		return NULL;
	atomic_store(&v->refs, 1);
	v->mount = m;
	v->epoch = atomic_load(&m->epoch);
	memcpy(v->id, id, 16);
	v->size = size;
	v->block_size = block_size;
	link_name(v->link, sizeof v->link, id, block_size, suffix);
	return v;
}

/* Maps the shared memory `v->shm`, made if `create`. 0 or -EIO. */
static int map(struct iov *v, bool create)
{
	int fd = shm_open(v->shm, create ? O_RDWR | O_CREAT | O_EXCL : O_RDWR, 0600);
	void *base = MAP_FAILED;

	if (fd < 0)
		return -EIO;
	if (!create || ftruncate(fd, (off_t)v->size) == 0)
		base = mmap(NULL, v->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (base == MAP_FAILED) {
		if (create)
			shm_unlink(v->shm);
		return -EIO;
	}
	v->base = base;
	v->ours = true;
	v->made = create;
	return 0;
}

/* The link: 0 or -errno. */
static int publish(struct iov *v, enum fault_op op)
{
	char target[128], uuid[UUID_TEXT];
	int rc = mount_fault(v->mount, op, NULL);

	if (rc > 0)
		return -rc;
	if (!v->epoch)
		return -ENOTCONN;
	snprintf(target, sizeof target, "/dev/shm%s", v->shm);
	if (symlinkat(target, v->mount->iovs, v->link) != 0)
		return -errno;
	uuid_text(v->id, uuid);
	owner_record(v->mount, uuid, v->link);
	return 0;
}

static void tell(struct hf3fs_iov *iov, struct iov *v, const char *mount_point, int numa)
{
	iov->base = v->base;
	iov->iovh = v;
	memcpy(iov->id, v->id, 16);
	snprintf(iov->mount_point, sizeof iov->mount_point, "%s", mount_point);
	iov->size = v->size;
	iov->block_size = v->block_size;
	iov->numa = numa;
}

/* Kept when the object has gone: so a test finds what is left of its own mount. */
static void record_shm(struct mount *m, const char *uuid)
{
	char path[UUID_TEXT + 16];
	int fd;

	snprintf(path, sizeof path, "standin.shm/%s", uuid);
	fd = openat(m->virt, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0)
		standin_die("%s/3fs-virt/%s: %s", m->path, path, strerror(errno));
	close(fd);
}

int iov_make(struct hf3fs_iov *iov, const char *mount_point, size_t size, size_t block_size,
	     const char *suffix, enum fault_op op)
{
	struct mount *m;
	struct iov *v;
	uint8_t id[16];
	char uuid[UUID_TEXT];
	int rc;

	if (!iov || (mount_point && strlen(mount_point) >= sizeof iov->mount_point))
		return -EINVAL;
	check_arguments(mount_point, size, block_size);
	m = mount_named(mount_point);
	if (!m)
		return -ENOENT;
	if (getrandom(id, sizeof id, 0) != sizeof id)
		return -EIO;
	v = iov_new(m, id, size, block_size, suffix);
	if (!v)
		return -EIO;
	if (getrandom(id, sizeof id, 0) != sizeof id) { /* the memory's name is another UUID */
		iov_put(v);
		return -EIO;
	}
	uuid_text(id, uuid);
	snprintf(v->shm, sizeof v->shm, "/hf3fs-iov-%s", uuid);
	record_shm(m, uuid);
	rc = mount_fault(m, ON_SHM, NULL) >= 0 ? -EIO : map(v, true);
	if (rc == 0) {
		rc = publish(v, op);
		if (rc != 0)
			shm_unlink(v->shm);
	}
	if (rc != 0) {
		iov_put(v);
		return rc;
	}
	list_add(m, v);
	tell(iov, v, mount_point, -1);
	return 0;
}

void iov_end(struct hf3fs_iov *iov, const char *suffix, bool unlink_shm)
{
	struct iov *v = iov->iovh;
	char link[128], uuid[UUID_TEXT];

	if (!v)
		return;
	/* The daemon forgets what has this very name. */
	link_name(link, sizeof link, v->id, iov->block_size, suffix);
	if (unlinkat(v->mount->iovs, link, 0) == 0) {
		uuid_text(v->id, uuid);
		owner_forget(v->mount, uuid);
	}
	if (unlink_shm && v->made)
		shm_unlink(v->shm);
	list_remove(v);
	iov_put(v);
	iov->iovh = NULL;
}

int hf3fs_iovcreate(struct hf3fs_iov *iov, const char *mount_point, size_t size, size_t block_size,
		    int numa)
{
	int rc = iov_make(iov, mount_point, size, block_size, "", ON_IOV);

	if (rc != 0)
		return rc;
	iov->numa = numa;
	mount_count(((struct iov *)iov->iovh)->mount, COUNT_iov_creates, 1);
	return 0;
}

int hf3fs_iovopen(struct hf3fs_iov *iov, const uint8_t id[16], const char *mount_point, size_t size,
		  size_t block_size, int numa)
{
	struct mount *m = mount_named(mount_point);
	char path[PATH_MAX], target[PATH_MAX], link[128];
	struct iov *v;

	if (!m)
		return -ENOENT;
	check_arguments(mount_point, size, block_size);
	link_name(link, sizeof link, id, block_size, "");
	snprintf(path, sizeof path, "%s/3fs-virt/iovs/%s", m->path, link);
	if (!realpath(path, target))
		return -errno;
	if (strncmp(target, "/dev/shm/", 9) != 0)
		return -EINVAL;
	v = iov_new(m, id, size, block_size, "");
	if (!v || strlen(target + 8) >= sizeof v->shm) {
		free(v);
		return -EIO;
	}
	memcpy(v->shm, target + 8, strlen(target + 8) + 1);
	if (map(v, false) != 0) {
		iov_put(v);
		return -EIO;
	}
	list_add(m, v);
	tell(iov, v, mount_point, numa);
	mount_count(m, COUNT_iov_opens, 1);
	return 0;
}

void hf3fs_iovunlink(struct hf3fs_iov *iov)
{
	const struct iov *v = iov->iovh;

	if (!v)
		standin_die("iovunlink of wrapped memory: the vendor's library reads a null "
			    "pointer");
	if (v->made)
		shm_unlink(v->shm);
}

void hf3fs_iovdestroy(struct hf3fs_iov *iov)
{
	if (!iov)
		return;
	if (!iov->iovh) {
		fputs("stand-in for libhf3fs_api_shared.so: wrapped memory cannot be destroyed\n",
		      stderr);
		return;
	}
	mount_count(((struct iov *)iov->iovh)->mount, COUNT_iov_destroys, 1);
	iov_end(iov, "", true);
}

/* Memory of the caller's with this id that was wrapped before, and whose
 * link is gone or which moved. */
static void forget_wrapped(struct mount *m, const uint8_t id[16])
{
	struct iov *dead = NULL;

	pthread_mutex_lock(&m->lock);
	for (struct iov **p = &m->iov_list; *p;) {
		struct iov *v = *p;

		if (!v->ours && (memcmp(v->id, id, 16) == 0 || !iov_is_linked(v))) {
			*p = v->next;
			v->next = dead;
			dead = v;
		} else {
			p = &v->next;
		}
	}
	pthread_mutex_unlock(&m->lock);
	while (dead) {
		struct iov *v = dead;

		dead = v->next;
		iov_put(v);
	}
}

int hf3fs_iovwrap(struct hf3fs_iov *iov, void *base, const uint8_t id[16], const char *mount_point,
		  size_t size, size_t block_size, int numa)
{
	struct mount *m;
	struct iov *v;
	char uuid[UUID_TEXT];

	if (!iov || strlen(mount_point) >= sizeof iov->mount_point)
		return -EINVAL;
	m = mount_named(mount_point);
	v = m ? iov_new(m, id, size, block_size, "") : NULL;
	if (v) {
		forget_wrapped(m, id);
		v->base = base;
		list_add(m, v);
		uuid_text(id, uuid);
		owner_record(m, uuid, v->link); /* the link may come later */
		mount_count(m, COUNT_iov_wraps, 1);
	}
	iov->iovh = NULL;
	iov->base = base;
	memcpy(iov->id, id, 16);
	snprintf(iov->mount_point, sizeof iov->mount_point, "%s", mount_point);
	iov->size = size;
	iov->block_size = block_size;
	iov->numa = numa;
	return 0;
}
