/*
 * standin_jobs.c - see standin.h: the daemon's side of rings. One watcher for each priority of a
 * mount takes batches when it is woken by a submit; workers carry them out, any number of one ring
 * at a time, and tell all results of a batch at once.
 */
#include "standin.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORKERS_MAX 64

/* ---- the queue of all mounts ----------------------------------------------------------------- */

static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t queue_filled = PTHREAD_COND_INITIALIZER;
static struct job *queue_first, **queue_end = &queue_first;
static int queued, workers, idle; /* under queue_lock */

static void *worker(void *arg);

int64_t standin_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void start_thread(void *(*run)(void *), void *arg)
{
	sigset_t all, was;
	pthread_attr_t attr;
	pthread_t thread;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &was);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&thread, &attr, run, arg) != 0)
		standin_die("no thread");
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &was, NULL);
}

static void enqueue(struct job *j)
{
	bool more;

	j->after = NULL;
	pthread_mutex_lock(&queue_lock);
	*queue_end = j;
	queue_end = &j->after;
	queued++;
	more = queued > idle && workers < WORKERS_MAX;
	if (more)
		workers++;
	pthread_cond_signal(&queue_filled);
	pthread_mutex_unlock(&queue_lock);
	if (more)
		start_thread(worker, NULL);
}

static struct job *dequeue(void)
{
	struct job *j;

	pthread_mutex_lock(&queue_lock);
	idle++;
	while (!queue_first)
		pthread_cond_wait(&queue_filled, &queue_lock);
	idle--;
	queued--;
	j = queue_first;
	queue_first = j->after;
	if (!queue_first)
		queue_end = &queue_first;
	pthread_mutex_unlock(&queue_lock);
	return j;
}

/* ---- batches --------------------------------------------------------------------------------- */

/* How many of `sqes` the next batch has; 0: none yet. */
static int batch_size(struct ring *r, int sqes, int room, const struct knobs *k)
{
	int n = sqes < room ? sqes : room, depth = -r->io_depth;

	if (r->io_depth > 0)
		return r->io_depth <= n ? r->io_depth : 0;
	if (r->io_depth == 0)
		return n;
	if (n > depth)
		return depth;
	if (n < depth && r->timeout) {
		/* The documents say: wait for more until `timeout` has passed. The daemon compares
		 * a time with itself, and so waits for more. */
		if (!r->waiting || k->stall) {
			if (!r->waiting)
				r->waiting_since_ms = standin_now_ms();
			r->waiting = true;
			return 0;
		}
		if (standin_now_ms() < r->waiting_since_ms + r->timeout)
			return 0;
	}
	r->waiting = false;
	return n;
}

/* The batch that begins where the last one ended; NULL: none. `locked`: the ring. */
static struct job *take_locked(struct ring *r, const struct knobs *k)
{
	int sqes = (atomic_load(r->sqe_head) + r->places - r->taken) % r->places;
	int room = r->places - 1 - r->processing - ring_cqe_count(r);
	int n = sqes ? batch_size(r, sqes, room, k) : 0;
	struct job *j = n > 0 ? calloc(1, sizeof *j) : NULL;

	if (!j)
		return NULL;
	j->ring = r;
	j->from = r->taken;
	j->n = n;
	atomic_fetch_add(&r->refs, 1);
	r->taken = (r->taken + n) % r->places;
	r->processing += n;
	if (r->last)
		r->last->next = j;
	else
		r->first = j;
	r->last = j;
	return j;
}

/* Begins what batches a ring has; how many. */
static int take_jobs(struct ring *r, const struct knobs *k, int most)
{
	int n = 0;

	pthread_mutex_lock(&r->lock);
	while (n < most) {
		struct job *j = take_locked(r, k);

		if (!j)
			break;
		enqueue(j);
		n++;
	}
	pthread_mutex_unlock(&r->lock);
	return n;
}

/* The batch is over, one way or the other. `locked`: the ring. */
static void retire_locked(struct ring *r, struct job *j)
{
	j->over = true;
	r->processing -= j->n;
	while (r->first && r->first->over) {
		struct job *done = r->first;

		atomic_store(r->sqe_tail, (done->from + done->n) % r->places);
		r->first = done->next;
		if (!r->first)
			r->last = NULL;
		free(done);
	}
}

/* ---- one batch ------------------------------------------------------------------------------- */

struct request {
	struct ring_args *args;
	struct slot *slot;
	uint8_t *buf;
	int64_t result;
	int fault; /* -1: none, 0: short, else an errno */
	enum fault_how how;
};

static bool is_alive(const struct ring *r)
{
	int64_t epoch = atomic_load(&r->mount->epoch);

	return epoch && epoch == r->epoch;
}

/* The daemon takes its time. False: it is gone. */
static bool dawdle(struct ring *r)
{
	struct knobs k = mount_knobs(r->mount);
	int64_t us = k.delay_us + (int64_t)mount_random(r->mount, (uint64_t)k.jitter_us + 1);
	struct timespec delay = { us / 1000000, us % 1000000 * 1000 };

	if (us)
		(void)ppoll(NULL, 0, &delay, NULL);
	while (mount_knobs(r->mount).hold && is_alive(r)) {
		poll(NULL, 0, 1);
		mount_reload(r->mount);
	}
	return is_alive(r);
}

/* Returns the error that the daemon finds in a request; 0: none. */
static int refusal(struct ring *r, const struct request *q)
{
	const struct iov *v = q->slot->iov;
	uint64_t off = q->args->buf_off, n = q->args->io_len;

	if (!reg_is_known(q->slot->reg))
		return -EBADF;
	if (!v || !v->view || v->epoch != r->epoch || !iov_is_linked(v))
		return -EINVAL; /* no such buffer */
	if (off > v->size || n > v->size - off)
		return -EINVAL;
	if (v->block_size && off % v->block_size + n > v->block_size)
		return -EINVAL;
	return 0;
}

static int by_buffer(const void *a, const void *b)
{
	const struct request *x = *(const struct request *const *)a,
			     *y = *(const struct request *const *)b;

	return x->buf < y->buf ? -1 : x->buf > y->buf;
}

/* Two reads of the batch go to the same bytes. */
static bool overlaps(struct request *q, int n)
{
	struct request **sorted;
	bool found = false;
	int m = 0;

	if (n < 2)
		return false;
	sorted = calloc((size_t)n, sizeof *sorted);
	if (!sorted)
		standin_die("no memory");
	for (int i = 0; i < n; i++)
		if (q[i].result == 0)
			sorted[m++] = &q[i];
	qsort(sorted, (size_t)m, sizeof *sorted, by_buffer);
	for (int i = 1; i < m; i++)
		if (sorted[i - 1]->buf + sorted[i - 1]->args->io_len > sorted[i]->buf)
			found = true;
	free(sorted);
	return found;
}

/* Moves one piece of a request, unless the daemon has died. */
static ssize_t move(struct ring *r, const struct request *q, size_t chunk, uint64_t at, size_t n,
		    bool *alive)
{
	struct mount *m = r->mount;
	ssize_t rc = 0;

	pthread_rwlock_rdlock(&m->alive_lock);
	*alive = is_alive(r);
	if (*alive && r->for_read)
		rc = chunk_read(m, q->slot->reg, chunk, q->args->file_off + at, q->buf + at, n);
	else if (*alive)
		rc = chunk_write(m, q->slot->reg, chunk, q->args->file_off + at, q->buf + at, n);
	pthread_rwlock_unlock(&m->alive_lock);
	return rc;
}

/* A read ends at the first hole that nothing follows; a hole that something
 * follows is zeros, or an error. */
static bool read_request(struct ring *r, struct request *q, size_t chunk)
{
	uint64_t total = q->args->io_len, end = 0;
	bool alive = true;

	for (uint64_t at = 0, n; at < total && alive; at += n) {
		ssize_t rc;

		n = chunk - (q->args->file_off + at) % chunk;
		n = n < total - at ? n : total - at;
		rc = move(r, q, chunk, at, n, &alive);
		if (rc < 0) {
			q->result = rc;
			return alive;
		}
		if (rc > 0 && end < at && (r->flags & HF3FS_FORBID_HOLES)) {
			q->result = -ENODATA;
			return alive;
		}
		if (rc > 0) {
			memset(q->buf + end, 0, at - end);
			end = at + (uint64_t)rc;
		}
	}
	q->result = (int64_t)end;
	return alive;
}

/* Chunk by chunk; each is there wholly or not at all, the write may be torn between them. */
static bool write_request(struct ring *r, struct request *q, size_t chunk)
{
	uint64_t total = q->args->io_len;
	bool alive = true, torn = q->fault > 0 && q->how == HOW_TORN;

	for (uint64_t at = 0, n; at < total && alive; at += n) {
		ssize_t rc;

		n = chunk - (q->args->file_off + at) % chunk;
		n = n < total - at ? n : total - at;
		if (torn && mount_random(r->mount, 2))
			continue;
		rc = move(r, q, chunk, at, n, &alive);
		if (rc < 0 && q->result >= 0)
			q->result = rc;
		else if (q->result >= 0)
			q->result += rc;
	}
	return alive;
}

/* Carries out a batch. False: the daemon died over it. */
static bool run_batch(struct ring *r, struct request *q, int n)
{
	struct knobs k = mount_knobs(r->mount);
	bool batch_fails = false;
	int error = EIO;

	for (int i = 0; i < n; i++) {
		q[i].result = refusal(r, &q[i]);
		q[i].buf = q[i].result == 0 ? q[i].slot->iov->view + q[i].args->buf_off : NULL;
		q[i].fault = mount_fault(r->mount, r->for_read ? ON_READ : ON_WRITE, &q[i].how);
		if (q[i].fault > 0 && q[i].how == HOW_BATCH) {
			batch_fails = true;
			error = q[i].fault;
		}
		if (q[i].result == 0 && k.readonly && !r->for_read)
			q[i].result = -EROFS;
	}
	if (r->for_read && k.overlap_check && overlaps(q, n))
		batch_fails = true;
	for (int i = 0; i < n; i++) {
		bool touch = q[i].fault <= 0 || q[i].how == HOW_TORN || q[i].how == HOW_DONE;

		if (q[i].result < 0)
			continue;
		if (batch_fails)
			q[i].result = -error;
		else if (touch &&
			 !(r->for_read ? read_request : write_request)(r, &q[i], (size_t)k.chunk))
			return false;
		if (q[i].fault > 0)
			q[i].result = -q[i].fault;
		else if (q[i].fault == 0 && q[i].result > 0)
			q[i].result = (int64_t)mount_random(r->mount, (uint64_t)q[i].result);
	}
	return true;
}

static void count_batch(struct ring *r, const struct request *q, int n)
{
	struct mount *m = r->mount;
	bool read = r->for_read;

	mount_count(m, read ? COUNT_read_jobs : COUNT_write_jobs, 1);
	for (int i = 0; i < n; i++) {
		mount_count(m, read ? COUNT_read_ios : COUNT_write_ios, 1);
		if (q[i].result < 0)
			mount_count(m, read ? COUNT_read_errors : COUNT_write_errors, 1);
		else
			mount_count(m, read ? COUNT_read_bytes : COUNT_write_bytes,
				    (uint64_t)q[i].result);
		if (read && q[i].result >= 0 && (uint64_t)q[i].result < q[i].args->io_len)
			mount_count(m, COUNT_read_short, 1);
	}
}

/* Tells the results, all at once. */
static void complete(struct ring *r, struct job *j, const struct request *q)
{
	for (int i = 0; i < j->n; i++) {
		const struct ring_sqe *sqe = &r->sqe[(j->from + i) % r->places];
		int head = atomic_load(r->cqe_head);
		struct ring_cqe *cqe = &r->cqe[head];

		cqe->index = sqe->index;
		cqe->result = q[i].result;
		cqe->userdata = sqe->userdata;
		atomic_store(r->cqe_head, (head + 1) % r->places);
	}
}

static void run_job(struct job *j)
{
	struct ring *r = j->ring;
	struct mount *m = r->mount;
	struct request *q = j->n > 0 ? calloc((size_t)j->n, sizeof *q) : NULL;
	bool alive;

	if (!q)
		standin_die("no memory");
	for (int i = 0; i < j->n; i++) {
		int slot = r->sqe[(j->from + i) % r->places].index;

		q[i].args = &r->args[slot];
		q[i].slot = &r->slots[slot];
	}
	alive = dawdle(r) && run_batch(r, q, j->n);
	pthread_rwlock_rdlock(&m->alive_lock);
	alive = alive && is_alive(r);
	pthread_mutex_lock(&r->lock);
	if (alive) {
		complete(r, j, q);
		count_batch(r, q, j->n);
	} else {
		mount_count(m, COUNT_lost_ios, (uint64_t)j->n);
	}
	retire_locked(r, j);
	pthread_mutex_unlock(&r->lock);
	pthread_rwlock_unlock(&m->alive_lock);
	if (alive)
		sem_post(r->done);
	free(q);
}

static void *worker(void *arg)
{
	(void)arg;
	for (;;) {
		struct job *j = dequeue();
		struct ring *r = j->ring;
		struct knobs k;

		run_job(j);
		k = mount_knobs(r->mount);
		if (is_alive(r))
			(void)take_jobs(r, &k, 1);
		ring_put(r);
	}
	return NULL;
}

/* ---- watchers -------------------------------------------------------------------------------- */

struct watch {
	struct mount *mount;
	int priority;
};

/* True: some ring waits for its timeout. */
static bool look(struct mount *m, int priority)
{
	struct knobs k = mount_knobs(m);
	bool waits = false, found;

	do {
		found = false;
		pthread_mutex_lock(&m->lock);
		for (struct ring *r = m->rings; r; r = r->next) {
			if (r->priority != priority || !is_alive(r))
				continue;
			if (take_jobs(r, &k, (int)k.jobs))
				found = true;
			pthread_mutex_lock(&r->lock);
			waits = waits || (r->waiting && !k.stall);
			pthread_mutex_unlock(&r->lock);
		}
		pthread_mutex_unlock(&m->lock);
	} while (found);
	return waits;
}

static void *watcher(void *arg)
{
	struct watch w = *(struct watch *)arg;
	bool waits = false;

	free(arg);
	for (;;) {
		struct timespec soon;

		clock_gettime(CLOCK_REALTIME, &soon);
		soon.tv_nsec += 1000000;
		soon.tv_sec += soon.tv_nsec / 1000000000;
		soon.tv_nsec %= 1000000000;
		if (waits)
			(void)sem_timedwait(&w.mount->submit[w.priority], &soon);
		else if (sem_wait(&w.mount->submit[w.priority]) != 0)
			continue;
		mount_reload(w.mount);
		waits = look(w.mount, w.priority);
	}
	return NULL;
}

void jobs_start(struct mount *m)
{
	for (int i = 0; i < 3; i++) {
		struct watch *w = malloc(sizeof *w);

		if (!w)
			standin_die("no memory");
		w->mount = m;
		w->priority = i;
		start_thread(watcher, w);
	}
}
