/*
 * standin_ring.c - see standin.h: the application's side of a ring.
 */
#include "standin.h"

#include <errno.h>
#include <limits.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

size_t hf3fs_ior_size(int entries) { return RING_BYTES(entries); }

static int entries_of(size_t bytes)
{
	size_t n = (bytes - RING_ARGS_AT - 32 - 4096) / 96;

	return (n > INT_MAX ? INT_MAX : (int)n) - 1;
}

int hf3fs_io_entries(const struct hf3fs_ior *ior) { return entries_of(ior->iov.size); }

/* ---- create, destroy ------------------------------------------------------------------------- */

static void suffix_of(char *out, size_t size, bool for_read, int io_depth, int priority,
		      int timeout, const char *flags)
{
	snprintf(out, size, ".%c%d%s.t%d%s%s", for_read ? 'r' : 'w', io_depth,
		 priority == 0  ? ""
		 : priority < 0 ? ".ph"
				: ".pl",
		 timeout, *flags ? ".f" : "", flags);
}

static void binary(char out[65], uint64_t n)
{
	char *p = out;

	for (int bit = 63; bit >= 0; bit--)
		if (n >> bit)
			*p++ = (char)('0' + (n >> bit & 1));
	*p = 0;
}

void ring_put(struct ring *r)
{
	if (!r || atomic_fetch_sub(&r->refs, 1) != 1)
		return;
	for (int i = 0; i < r->places - 1; i++) {
		iov_return(&r->slots[i]);
		iov_put(r->slots[i].iov);
		reg_put(r->slots[i].reg);
	}
	for (struct job *j = r->first, *next; j; j = next) {
		next = j->next;
		free(j);
	}
	pthread_mutex_destroy(&r->lock);
	sem_destroy(r->done);
	iov_put(r->memory);
	free(r->slots);
	free(r);
}

/* A ring in fresh memory. */
static struct ring *ring_new(struct iov *memory, int entries)
{
	struct ring *r = calloc(1, sizeof *r);
	uint8_t *base = memory->base;

	if (!r)
		return NULL;
	r->slots = calloc((size_t)entries, sizeof *r->slots);
	if (!r->slots) {
		free(r);
		return NULL;
	}
	atomic_store(&r->refs, 1);
	r->mount = memory->mount;
	r->epoch = memory->epoch;
	r->places = entries + 1;
	r->memory = memory;
	atomic_fetch_add(&memory->refs, 1);
	r->sqe_head = (_Atomic int32_t *)base;
	r->sqe_tail = (_Atomic int32_t *)(base + 4);
	r->cqe_head = (_Atomic int32_t *)(base + 8);
	r->cqe_tail = (_Atomic int32_t *)(base + 12);
	r->args = (struct ring_args *)(base + RING_ARGS_AT);
	r->cqe = (struct ring_cqe *)(base + RING_CQE_AT(entries));
	r->sqe = (struct ring_sqe *)(base + RING_SQE_AT(entries));
	r->done = (sem_t *)(base + RING_SEM_AT(entries));
	sem_init(r->done, 1, 0);
	pthread_mutex_init(&r->lock, NULL);
	return r;
}

/* Returns the daemon's answer to the link's name. 0 or -errno. */
static int check_depth(const char *mount_point, int entries, int io_depth)
{
	struct mount *m = mount_named(mount_point);

	if (io_depth > entries)
		return -EINVAL;
	if (io_depth < 0 && m && !mount_knobs(m).negative_depth)
		return -EINVAL;
	return 0;
}

/* The semaphore of the priority. 0 or -errno. */
static int find_sem(struct mount *m, int priority)
{
	char target[256];
	int rc = mount_fault(m, ON_SEM, NULL);

	if (rc > 0)
		return -rc;
	if (readlinkat(m->iovs,
		       priority == 0 ? "submit-ios" :
		       priority < 0  ? "submit-ios.ph" :
				       "submit-ios.pl",
		       target, sizeof target) < 0)
		return -errno;
	return 0;
}

static int create(struct hf3fs_ior *ior, const char *mount_point, int entries, bool for_read,
		  int io_depth, int priority, int timeout, uint64_t flags, int numa)
{
	char suffix[128], bits[65];
	struct iov *memory;
	struct ring *r;
	int rc;

	if (!ior || !mount_point || !*mount_point || timeout < 0)
		return -EINVAL;
	rc = check_depth(mount_point, entries, io_depth);
	if (rc != 0)
		return rc;
	binary(bits, flags);
	suffix_of(suffix, sizeof suffix, for_read, io_depth, priority, timeout, bits);
	rc = iov_make(&ior->iov, mount_point, RING_BYTES(entries), 0, suffix, ON_RING);
	if (rc != 0)
		return rc;
	memory = ior->iov.iovh;
	hf3fs_iovunlink(&ior->iov); /* a ring's memory needs no name any more */
	rc = entries == 0 ? -EINVAL : find_sem(memory->mount, priority);
	r = rc == 0 ? ring_new(memory, entries) : NULL;
	if (!r) {
		iov_end(&ior->iov, "", true); /* by a name without the suffix: the link stays */
		return rc ? rc : -EIO;
	}
	r->for_read = for_read;
	r->io_depth = io_depth;
	r->priority = priority < 0 ? 0 : priority > 0 ? 2 : 1;
	r->timeout = timeout;
	r->flags = flags;
	pthread_mutex_lock(&r->mount->lock);
	r->next = r->mount->rings;
	r->mount->rings = r;
	pthread_mutex_unlock(&r->mount->lock);
	mount_count(r->mount, COUNT_ring_creates, 1);
	ior->iov.numa = numa;
	ior->iorh = r;
	snprintf(ior->mount_point, sizeof ior->mount_point, "%s", mount_point);
	ior->for_read = for_read;
	ior->io_depth = io_depth;
	ior->priority = priority;
	ior->timeout = timeout;
	ior->flags = flags;
	return 0;
}

int hf3fs_iorcreate(struct hf3fs_ior *ior, const char *mount_point, int entries, bool for_read,
		    int io_depth, int numa)
{
	return create(ior, mount_point, entries, for_read, io_depth, 0, 0, 0, numa);
}

int hf3fs_iorcreate2(struct hf3fs_ior *ior, const char *mount_point, int entries, bool for_read,
		     int io_depth, int priority, int numa)
{
	return create(ior, mount_point, entries, for_read, io_depth, priority, 0, 0, numa);
}

int hf3fs_iorcreate3(struct hf3fs_ior *ior, const char *mount_point, int entries, bool for_read,
		     int io_depth, int priority, int timeout, int numa)
{
	return create(ior, mount_point, entries, for_read, io_depth, priority, timeout, 0, numa);
}

int hf3fs_iorcreate4(struct hf3fs_ior *ior, const char *mount_point, int entries, bool for_read,
		     int io_depth, int timeout, int numa, uint64_t flags)
{
	return create(ior, mount_point, entries, for_read, io_depth, 0, timeout, flags, numa);
}

void hf3fs_iordestroy(struct hf3fs_ior *ior)
{
	char suffix[128], flags[24] = "";
	struct ring *r;

	if (!ior)
		return;
	/* not in binary: so it is */
	if (ior->flags)
		snprintf(flags, sizeof flags, "%llu", (unsigned long long)ior->flags);
	suffix_of(suffix, sizeof suffix, ior->for_read, ior->io_depth, ior->priority, ior->timeout,
		  flags);
	r = ior->iorh;
	if (r) {
		pthread_mutex_lock(&r->mount->lock);
		for (struct ring **p = &r->mount->rings; *p; p = &(*p)->next)
			if (*p == r) {
				*p = r->next;
				break;
			}
		pthread_mutex_unlock(&r->mount->lock);
		mount_count(r->mount, COUNT_ring_destroys, 1);
	}
	iov_end(&ior->iov, suffix, false);
	ior->iorh = NULL;
	ring_put(r);
}

/* ---- prepare, submit, wait ------------------------------------------------------------------- */

/* -1: all are taken. */
static int slot_take(struct ring *r, struct iov *v, struct reg *reg)
{
	int i;

	pthread_mutex_lock(&r->lock);
	for (i = 0; i < r->places - 1 && r->slots[i].busy; i++)
		;
	if (i == r->places - 1) {
		i = -1;
	} else {
		r->slots[i].busy = true;
		r->slots[i].iov = v;
		r->slots[i].reg = reg;
	}
	pthread_mutex_unlock(&r->lock);
	return i;
}

static void slot_free(struct ring *r, int i)
{
	struct slot was;

	iov_return(&r->slots[i]);
	pthread_mutex_lock(&r->lock);
	was = r->slots[i];
	memset(&r->slots[i], 0, sizeof r->slots[i]);
	pthread_mutex_unlock(&r->lock);
	iov_put(was.iov);
	reg_put(was.reg);
}

int hf3fs_prep_io(const struct hf3fs_ior *ior, const struct hf3fs_iov *iov, bool read, void *ptr,
		  int fd, size_t off, uint64_t len, const void *userdata)
{
	struct ring *r = ior ? ior->iorh : NULL;
	struct reg *reg;
	struct iov *v;
	size_t at;
	int i, head, access;

	if (!r || read != ior->for_read || !iov || !ptr || !iov->base || len == 0 || fd == INT_MIN)
		return -EINVAL;
	at = (uintptr_t)ptr - (uintptr_t)iov->base;
	if ((uintptr_t)ptr < (uintptr_t)iov->base || at > iov->size || len > iov->size - at)
		return -EINVAL;
	fd = abs(fd);
	if (fd >= reg_limit())
		return -EINVAL;
	reg = reg_get(fd);
	if (!reg)
		return -EBADF;
	access = reg->status & O_ACCMODE;
	if (access == (read ? O_WRONLY : O_RDONLY)) {
		reg_put(reg);
		return -EACCES;
	}
	v = iov_get(r->mount, iov);
	i = slot_take(r, v, reg);
	if (i < 0) {
		iov_put(v);
		reg_put(reg);
		return -EAGAIN;
	}
	iov_lend(&r->slots[i], at, len, read);
	memcpy(r->args[i].buf_id, iov->id, 16);
	r->args[i].buf_off = at;
	r->args[i].file_iid = reg->ino;
	r->args[i].file_off = off;
	r->args[i].io_len = len;
	r->args[i].userdata = userdata;
	head = atomic_load(r->sqe_head);
	if ((head + 1) % r->places == atomic_load(r->sqe_tail)) {
		slot_free(r, i);
		return -EAGAIN;
	}
	r->sqe[head].index = i;
	r->sqe[head].userdata = userdata;
	atomic_store(r->sqe_head, (head + 1) % r->places);
	return i;
}

int hf3fs_submit_ios(const struct hf3fs_ior *ior)
{
	struct ring *r = ior ? ior->iorh : NULL;

	if (!r)
		return -EINVAL;
	mount_count(r->mount, COUNT_submits, 1);
	sem_post(&r->mount->submit[r->priority]);
	return 0;
}

int ring_cqe_count(const struct ring *r)
{
	return (atomic_load(r->cqe_head) + r->places - atomic_load(r->cqe_tail)) % r->places;
}

/* Takes completions that are there, up to `most`. */
static int harvest(struct ring *r, struct hf3fs_cqe *out, int most)
{
	int n;

	for (n = 0; n < most; n++) {
		int tail = atomic_load(r->cqe_tail);

		if (tail == atomic_load(r->cqe_head))
			break;
		out[n].index = r->cqe[tail].index;
		out[n].result = r->cqe[tail].result;
		out[n].userdata = r->cqe[tail].userdata;
		if (!atomic_compare_exchange_strong(r->cqe_tail, &tail, (tail + 1) % r->places))
			break; /* another waiter was faster */
		slot_free(r, out[n].index);
	}
	return n;
}

static bool before(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec < b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec < b->tv_nsec);
}

int hf3fs_wait_for_ios(const struct hf3fs_ior *ior, struct hf3fs_cqe *cqes, int cqec,
		       int min_results, const struct timespec *abs_timeout)
{
	struct ring *r = ior ? ior->iorh : NULL;
	const char *env = getenv("HF3FS_USRBIO_WAIT_JITTER_MS");
	int jitter = env && atoi(env) ? atoi(env) : 1, filled = 0;

	if (cqec <= 0 || !r)
		return -EINVAL;
	if (min_results > cqec)
		min_results = cqec;
	mount_count(r->mount, COUNT_waits, 1);
	while (filled < cqec) {
		struct timespec now, until;
		int n = harvest(r, cqes + filled, cqec - filled);

		if (n) {
			filled += n;
			hf3fs_submit_ios(ior); /* completions fit again */
			continue;
		}
		if (filled >= min_results)
			break;
		clock_gettime(CLOCK_REALTIME, &now);
		if (abs_timeout && !before(&now, abs_timeout))
			break;
		until = now;
		until.tv_nsec += jitter * 1000000L;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		if (abs_timeout && before(abs_timeout, &until))
			until = *abs_timeout;
		(void)sem_timedwait(r->done, &until);
	}
	return filled;
}
