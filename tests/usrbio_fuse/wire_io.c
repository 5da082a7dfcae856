/*
 * wire_io.c - libhf3fs_wire_client.so: registered files, requests and answers in a ring, and the
 * two functions that are plain ioctls. One thread prepares and submits on a ring while another one
 * may wait for its answers.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "wire.h"
#include "wire_api.h"

struct wire_client_ring {
	struct wire_ring w;
	sem_t *submit;
	pthread_mutex_t lock; /* slots */
	bool *used;	      /* of w.slots - 1 */
};

/* The daemon tells its semaphore by a link: /dev/shm/sem.NAME. */
static sem_t *open_submit(const char *mount_point, int priority, int *error)
{
	char link[512], target[256];
	ssize_t n;
	sem_t *s;

	snprintf(link, sizeof link, "%s/" WIRE_IOVS "/submit-ios%s", mount_point,
		 priority == 0 ? "" : priority < 0 ? ".ph" : ".pl");
	n = readlink(link, target, sizeof target - 1);
	if (n < 0) {
		*error = -errno;
		return NULL;
	}
	target[n] = '\0';
	if (strncmp(target, WIRE_SHM "sem.", strlen(WIRE_SHM "sem.")) != 0) {
		*error = -EIO;
		return NULL;
	}
	target[strlen(WIRE_SHM "sem.") - 1] = '/';
	s = sem_open(target + strlen(WIRE_SHM "sem.") - 1, 0);
	*error = s == SEM_FAILED ? -errno : 0;
	return s == SEM_FAILED ? NULL : s;
}

struct wire_client_ring *wire_ring_client(void *base, size_t bytes, const char *mount_point,
					  int priority, int *error)
{
	struct wire_client_ring *r = calloc(1, sizeof *r);
	int entries = wire_ring_entries(bytes);

	*error = -ENOMEM;
	if (!r)
		return NULL;
	r->w = wire_ring_at(base, entries);
	r->used = calloc((size_t)entries, sizeof *r->used);
	r->submit = r->used ? open_submit(mount_point, priority, error) : NULL;
	if (!r->submit) {
		free(r->used);
		free(r);
		return NULL;
	}
	pthread_mutex_init(&r->lock, NULL);
	return r;
}

void wire_ring_client_free(struct wire_client_ring *r)
{
	sem_close(r->submit);
	pthread_mutex_destroy(&r->lock);
	free(r->used);
	free(r);
}

/* ---- registered files: found by their own descriptor and by the copy ---- */

static pthread_mutex_t files_lock = PTHREAD_MUTEX_INITIALIZER;
static struct file {
	struct file *next;
	int fd, copy, flags;
	bool by_copy; /* found by the copy, too */
	uint64_t inode;
} *files;

static struct file **find_locked(int fd)
{
	struct file **p = &files;

	while (*p && (*p)->fd != fd && !((*p)->by_copy && (*p)->copy == fd))
		p = &(*p)->next;
	return p;
}

/* -copy, or a positive errno. */
int hf3fs_reg_fd(int fd, uint64_t flags)
{
	struct file *f = calloc(1, sizeof *f);
	struct stat st;
	int error = 0;

	(void)flags;
	if (!hf3fs_is_hf3fs(fd)) {
		free(f);
		return EBADF;
	}
	pthread_mutex_lock(&files_lock);
	if (!f)
		error = ENOMEM;
	else if (*find_locked(fd))
		error = EINVAL;
	else if (fstat(fd, &st) != 0 || (f->copy = dup(fd)) < 0)
		error = errno;
	else if (*find_locked(f->copy)) /* of a number that was closed behind our back */
		error = EINVAL;
	if (error == 0) {
		f->fd = fd;
		f->by_copy = true;
		f->flags = fcntl(fd, F_GETFL);
		f->inode = st.st_ino;
		f->next = files;
		files = f;
	}
	pthread_mutex_unlock(&files_lock);
	if (error != 0 && f && f->copy > 0)
		close(f->copy);
	if (error != 0)
		free(f);
	return error != 0 ? error : -f->copy;
}

void hf3fs_dereg_fd(int fd)
{
	struct file **p, *f;

	if (!hf3fs_is_hf3fs(fd))
		return;
	pthread_mutex_lock(&files_lock);
	p = find_locked(fd);
	f = *p;
	if (f && f->fd != fd) {
		f->by_copy = false; /* the copy stays open until the other one goes */
		f = NULL;
	} else if (f) {
		*p = f->next;
	}
	pthread_mutex_unlock(&files_lock);
	if (f)
		close(f->copy);
	free(f);
}

/* 3FS's library has a table of so many. */
static int descriptors(void)
{
	struct rlimit l;

	return getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_max < INT_MAX ? (int)l.rlim_max
									 : INT_MAX;
}

static bool registered(int fd, struct file *out)
{
	const struct file *f;

	pthread_mutex_lock(&files_lock);
	f = *find_locked(fd);
	if (f)
		*out = *f;
	pthread_mutex_unlock(&files_lock);
	return f != NULL;
}

/* ---- requests ---- */

int hf3fs_io_entries(const struct hf3fs_ior *ior) { return wire_ring_entries(ior->iov.size); }

static int take_slot(struct wire_client_ring *r)
{
	int slot = -EAGAIN;

	pthread_mutex_lock(&r->lock);
	for (int i = 0; i < r->w.slots - 1 && slot < 0; i++)
		if (!r->used[i])
			slot = i;
	if (slot >= 0)
		r->used[slot] = true;
	pthread_mutex_unlock(&r->lock);
	return slot;
}

static void give_slot(struct wire_client_ring *r, int32_t slot)
{
	pthread_mutex_lock(&r->lock);
	if (slot >= 0 && slot < r->w.slots - 1)
		r->used[slot] = false;
	pthread_mutex_unlock(&r->lock);
}

static int judge(const struct hf3fs_ior *ior, const struct hf3fs_iov *iov, bool read,
		 const void *ptr, int fd, uint64_t len)
{
	uintptr_t at = (uintptr_t)ptr, base = iov ? (uintptr_t)iov->base : 0;
	struct file f;

	if (!ior || !ior->iorh || read != ior->for_read || !iov || !ptr || !iov->base || len == 0 ||
	    fd == INT_MIN)
		return -EINVAL;
	if (at < base || at - base > iov->size || len > iov->size - (at - base))
		return -EINVAL;
	if (abs(fd) >= descriptors())
		return -EINVAL;
	if (!registered(abs(fd), &f))
		return -EBADF;
	if ((f.flags & O_ACCMODE) == (read ? O_WRONLY : O_RDONLY))
		return -EACCES;
	return 0;
}

/* The index of the slot, or -errno. */
int hf3fs_prep_io(const struct hf3fs_ior *ior, const struct hf3fs_iov *iov, bool read, void *ptr,
		  int fd, size_t off, uint64_t len, const void *userdata)
{
	int error = judge(ior, iov, read, ptr, fd, len), slot;
	struct wire_client_ring *r;
	struct wire_args *a;
	struct file f;
	int32_t head;

	if (error != 0)
		return error;
	r = ior->iorh;
	if (!registered(abs(fd), &f))
		return -EBADF;
	slot = take_slot(r);
	if (slot < 0)
		return slot;
	a = &r->w.args[slot];
	memcpy(a->buf_id, iov->id, sizeof a->buf_id);
	a->buf_off = (uint64_t)((uint8_t *)ptr - iov->base);
	a->inode = f.inode;
	a->off = off;
	a->len = len;
	a->userdata = (uintptr_t)userdata;
	head = wire_load(&r->w.m->sqe_head);
	if ((head + 1) % r->w.slots == wire_load(&r->w.m->sqe_tail)) {
		give_slot(r, slot);
		return -EAGAIN;
	}
	r->w.sqes[head].index = slot;
	r->w.sqes[head].userdata = (uintptr_t)userdata;
	wire_store(&r->w.m->sqe_head, (head + 1) % r->w.slots);
	return slot;
}

int hf3fs_submit_ios(const struct hf3fs_ior *ior)
{
	struct wire_client_ring *r = ior ? ior->iorh : NULL;

	if (!r)
		return -EINVAL;
	sem_post(r->submit);
	return 0;
}

/* Takes an answer; false when there is none. */
static bool reap(struct wire_client_ring *r, struct hf3fs_cqe *out)
{
	int32_t tail = wire_load(&r->w.m->cqe_tail);
	const struct wire_cqe *c = &r->w.cqes[tail];

	if (tail == wire_load(&r->w.m->cqe_head))
		return false;
	*out = (struct hf3fs_cqe){ .index = c->index, .result = c->result,
				   .userdata = (void *)(uintptr_t)c->userdata };
	if (!__atomic_compare_exchange_n(&r->w.m->cqe_tail, &tail, (tail + 1) % r->w.slots, false,
					 __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		return false; /* another one took it */
	give_slot(r, out->index);
	return true;
}

static bool before(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

/* How many; fewer than asked for when the time is over (CLOCK_REALTIME; NULL:
 * never), which is no error. */
int hf3fs_wait_for_ios(const struct hf3fs_ior *ior, struct hf3fs_cqe *cqes, int cqec,
		       int min_results, const struct timespec *abs_timeout)
{
	struct wire_client_ring *r = ior ? ior->iorh : NULL;
	int filled = 0;

	if (cqec <= 0 || !r)
		return -EINVAL;
	if (min_results > cqec)
		min_results = cqec;
	for (;;) {
		int had = filled;
		struct timespec now, until;

		while (filled < cqec && reap(r, &cqes[filled]))
			filled++;
		if (filled > had)
			sem_post(r->submit); /* answers fit again */
		if (filled >= min_results)
			return filled;
		clock_gettime(CLOCK_REALTIME, &now);
		if (abs_timeout && !before(&now, abs_timeout))
			return filled;
		until = now;
		until.tv_nsec += 1000000;
		if (until.tv_nsec >= 1000000000) {
			until.tv_nsec -= 1000000000;
			until.tv_sec++;
		}
		if (abs_timeout && before(abs_timeout, &until))
			until = *abs_timeout;
		sem_timedwait(r->w.done, &until);
	}
}

/* ---- ioctls: 0 or a positive errno ---- */

int hf3fs_hardlink(const char *target, const char *name)
{
	char parent[PATH_MAX];
	const char *slash = strrchr(name, '/');
	struct wire_hardlink a = { 0 };
	struct stat st;
	int fd, error;

	if (!slash || strlen(slash + 1) >= sizeof a.name || (size_t)(slash - name) >= sizeof parent)
		return EINVAL;
	snprintf(parent, sizeof parent, "%.*s", (int)(slash - name), name);
	fd = open(target, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno;
	error = stat(parent, &st) == 0 ? 0 : errno;
	a.parent = st.st_ino;
	snprintf(a.name, sizeof a.name, "%s", slash + 1);
	if (error == 0 && ioctl(fd, WIRE_IOC_HARDLINK, &a) != 0)
		error = errno;
	close(fd);
	return error;
}

int hf3fs_punchhole(int fd, int n, const size_t *start, const size_t *end, size_t flags)
{
	struct wire_punch *a;
	int error;

	if (n < 0 || n > WIRE_PUNCH_MAX)
		return EINVAL;
	a = calloc(1, sizeof *a);
	if (!a)
		return ENOMEM;
	a->n = n;
	a->flags = flags;
	for (int i = 0; i < n; i++) {
		a->start[i] = start[i];
		a->end[i] = end[i];
	}
	error = ioctl(fd, WIRE_IOC_PUNCH, a) == 0 ? 0 : errno;
	free(a);
	return error;
}
