/*
 * ring.c - rings: who looks for work, what one job takes, and how it is answered.
 *
 * A watcher for each priority waits for the semaphore that clients post, then looks at all its
 * rings and queues jobs. A job is exactly io_depth requests (> 0), all there are (0), or at most
 * -io_depth of them (< 0); its answers are posted together, when the last of its requests is done.
 * Jobs of one ring run at the same time and end in any order.
 *
 * Kept from 3FS on purpose: without a post of the semaphore nothing is looked at, except that a
 * worker that ends a job takes one more of the same ring; and io_depth < 0 with a timeout waits for
 * more requests, for ever (`stall`).
 */
#include "stand.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define PRIORITIES 3

struct ring {
	struct ring *next;
	uint32_t refs; /* the list's, and one for each job */
	struct iov *iov;
	struct wire_ring w;
	pthread_mutex_t lock; /* protects the following, and the daemon's markers */
	int32_t claimed;      /* where the next job begins */
	int32_t working;      /* requests in jobs */
	struct claim {
		int32_t end;
		bool done;
	} *claims; /* oldest first, a circle of w.slots */
	int32_t first_claim, n_claims;
	bool waits; /* for a full batch: seen once */
};

struct job {
	struct job *next;
	struct ring *ring;
	int32_t first, n, claim;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* rings, their refs, queues */
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static struct ring *rings;
static struct job *queues[PRIORITIES], **ends[PRIORITIES];
static bool stopping;
static sem_t *submits[PRIORITIES];
static char semaphores[PRIORITIES][96]; /* "/dev/shm/sem.hf3fs-submit-ios.UUID" */
static pthread_t watchers[PRIORITIES], *workers;

const char *ring_semaphore(int priority) { return semaphores[priority]; }

static void ring_unref(struct ring *r)
{
	bool last;

	pthread_mutex_lock(&lock);
	last = --r->refs == 0;
	pthread_mutex_unlock(&lock);
	if (!last)
		return;
	iov_unref(r->iov);
	pthread_mutex_destroy(&r->lock);
	free(r->claims);
	free(r);
}

int ring_add(struct iov *v)
{
	struct ring *r = calloc(1, sizeof *r);
	int entries = wire_ring_entries(v->size);

	if (!r || entries < 0 || !(r->claims = calloc((size_t)entries + 1, sizeof *r->claims))) {
		free(r);
		return entries < 0 ? EINVAL : ENOMEM;
	}
	r->iov = v;
	r->refs = 1;
	r->w = wire_ring_at(v->base, entries);
	pthread_mutex_init(&r->lock, NULL);
	sem_init(r->w.done, 1, 0);
	v->ring = r;
	pthread_mutex_lock(&lock);
	r->next = rings;
	rings = r;
	pthread_mutex_unlock(&lock);
	return 0;
}

/* The iov's lock is held, so the last reference to the iov is not given back here:
 * jobs and the list do that. */
void ring_remove(struct iov *v)
{
	struct ring **p = &rings, *r = v->ring;
	bool last;

	pthread_mutex_lock(&lock);
	while (*p != r)
		p = &(*p)->next;
	*p = r->next;
	last = --r->refs == 0;
	pthread_mutex_unlock(&lock);
	if (!last)
		return;
	v->refs--; /* the ring's; the list still has its own */
	pthread_mutex_destroy(&r->lock);
	free(r->claims);
	free(r);
}

/* ---- what one job takes ---- */

static int32_t distance(const struct ring *r, int32_t from, int32_t to)
{
	return (to + r->w.slots - from) % r->w.slots;
}

static bool sane(const struct ring *r, int32_t marker)
{
	return marker >= 0 && marker < r->w.slots;
}

/* How many of `queued` requests go into the next job; 0: none now. */
static int32_t batch_locked(struct ring *r, int32_t queued, int32_t room)
{
	int32_t depth = r->iov->depth, n = queued < room ? queued : room;

	if (depth > 0)
		return depth <= n ? depth : 0;
	if (depth == 0)
		return n;
	if (n < -depth && r->iov->timeout_ms > 0 && (fault_stall() || !r->waits)) {
		r->waits = true;
		return 0;
	}
	r->waits = false;
	return n < -depth ? n : -depth;
}

/* Claims another job of this ring, with a reference; NULL: nothing to do. */
static struct job *claim(struct ring *r)
{
	struct job *j = calloc(1, sizeof *j);
	int32_t head, tail, answered;

	if (!j)
		return NULL;
	pthread_mutex_lock(&r->lock);
	head = wire_load(&r->w.m->sqe_head);
	tail = wire_load(&r->w.m->cqe_tail);
	answered = wire_load(&r->w.m->cqe_head);
	if (sane(r, head) && sane(r, tail) && sane(r, answered))
		j->n = batch_locked(r, distance(r, r->claimed, head),
				    r->w.slots - 1 - r->working - distance(r, tail, answered));
	if (j->n > 0) {
		j->ring = r;
		j->first = r->claimed;
		r->claimed = (r->claimed + j->n) % r->w.slots;
		r->working += j->n;
		j->claim = (r->first_claim + r->n_claims++) % r->w.slots;
		r->claims[j->claim] = (struct claim){ .end = r->claimed };
	}
	pthread_mutex_unlock(&r->lock);
	if (j->n <= 0) {
		free(j);
		return NULL;
	}
	return j;
}

static void enqueue_locked(struct job *j)
{
	int p = j->ring->iov->priority;

	j->ring->refs++;
	*ends[p] = j;
	ends[p] = &j->next;
	pthread_cond_signal(&work);
}

static void *watch(void *arg)
{
	int priority = (int)(intptr_t)arg;

	for (;;) {
		while (sem_wait(submits[priority]) != 0)
			;
		pthread_mutex_lock(&lock);
		if (stopping)
			break;
		for (struct ring *r = rings; r; r = r->next) {
			struct job *j;

			for (int n = 0; r->iov->priority == priority && n < opt.jobs_per_ring &&
					(j = claim(r));
			     n++)
				enqueue_locked(j);
		}
		pthread_mutex_unlock(&lock);
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* ---- one job ---- */

struct request {
	struct wire_args args;
	int32_t index;
	uint64_t userdata;
	struct iov *iov;
	char *memory;
	int64_t result;
};

/* Two reads into the same bytes fail the whole batch. */
static bool reads_overlap(const struct request *q, int32_t n)
{
	for (int32_t a = 0; a < n; a++)
		for (int32_t b = 0; b < a; b++)
			if (q[a].iov && q[b].iov && q[a].memory < q[b].memory + q[b].args.len &&
			    q[b].memory < q[a].memory + q[a].args.len)
				return true;
	return false;
}

static int64_t move_bytes(const struct ring *r, struct request *q)
{
	struct inode *i = inode_ref(q->args.inode);
	int error = !i ? EBADF : inode_open(i);
	int64_t n;

	if (error != 0) {
		if (i)
			inode_unref(i);
		return -EBADF;
	}
	if (r->iov->for_read)
		n = chunk_read(i, q->args.off, q->args.len, q->memory, r->iov->flags & 2);
	else
		n = chunk_write(i, q->args.off, q->args.len, q->memory);
	inode_close(i);
	inode_unref(i);
	return n;
}

static void take_requests(const struct job *j, struct request *q)
{
	const struct ring *r = j->ring;

	for (int32_t k = 0; k < j->n; k++) {
		const struct wire_sqe *s = &r->w.sqes[(j->first + k) % r->w.slots];
		int error = EINVAL;

		q[k].index = s->index;
		q[k].userdata = s->userdata;
		if (sane(r, q[k].index)) {
			q[k].args = r->w.args[q[k].index];
			error = iov_memory(q[k].args.buf_id, r->iov->uid, q[k].args.buf_off,
					   q[k].args.len, &q[k].iov, &q[k].memory);
		}
		q[k].result = -error;
	}
}

static void count_request(bool read, const struct request *q)
{
	count(read ? N_ring_reads : N_ring_writes, 1);
	if (q->result < 0)
		count(N_ring_errors, 1);
	else
		count(read ? N_ring_read_bytes : N_ring_write_bytes, (uint64_t)q->result);
	if (q->result >= 0 && (uint64_t)q->result < q->args.len)
		count(N_ring_short, 1);
}

static void run(const struct job *j, struct request *q)
{
	bool read = j->ring->iov->for_read, overlap;

	take_requests(j, q);
	count(N_ring_taken, 1);
	fault_before_job();
	overlap = read && reads_overlap(q, j->n);
	for (int32_t k = 0; k < j->n; k++) {
		int error = fault_of_io(read);

		if (q[k].result == 0)
			q[k].result = overlap ? -EIO : error ? -error : move_bytes(j->ring, &q[k]);
		if (q[k].iov)
			iov_unref(q[k].iov);
		count_request(read, &q[k]);
	}
	count(N_ring_jobs, 1);
}

/* All answers of a job at once; the submission tail goes on in order. */
static void answer(const struct job *j, const struct request *q)
{
	struct ring *r = j->ring;

	pthread_mutex_lock(&r->lock);
	r->claims[j->claim].done = true;
	while (r->n_claims > 0 && r->claims[r->first_claim].done) {
		wire_store(&r->w.m->sqe_tail, r->claims[r->first_claim].end);
		r->first_claim = (r->first_claim + 1) % r->w.slots;
		r->n_claims--;
	}
	for (int32_t k = 0; k < j->n; k++) {
		int32_t head = wire_load(&r->w.m->cqe_head);
		struct wire_cqe *c = &r->w.cqes[head];

		c->index = q[k].index;
		c->result = q[k].result;
		c->userdata = q[k].userdata;
		wire_store(&r->w.m->cqe_head, (head + 1) % r->w.slots);
	}
	r->working -= j->n;
	pthread_mutex_unlock(&r->lock);
	sem_post(r->w.done);
}

static struct job *dequeue(void)
{
	struct job *j = NULL;

	pthread_mutex_lock(&lock);
	while (!j && !stopping) {
		for (int p = 0; p < PRIORITIES && !j; p++) {
			j = queues[p];
			if (j && !(queues[p] = j->next))
				ends[p] = &queues[p];
		}
		if (!j)
			pthread_cond_wait(&work, &lock);
	}
	pthread_mutex_unlock(&lock);
	return j;
}

static void *work_on(void *arg)
{
	struct job *j, *more;

	while ((j = dequeue()) != NULL) {
		struct request *q = calloc((size_t)j->n, sizeof *q);

		if (!q)
			abort();
		j->next = NULL;
		run(j, q);
		answer(j, q);
		free(q);
		more = claim(j->ring);
		if (more) {
			pthread_mutex_lock(&lock);
			enqueue_locked(more);
			pthread_mutex_unlock(&lock);
		}
		ring_unref(j->ring);
		free(j);
	}
	return arg;
}

/* ---- start and end ---- */

static int make_semaphore(int priority)
{
	uint8_t u[16];
	char name[80];

	if (getrandom(u, sizeof u, 0) != sizeof u)
		return errno;
	snprintf(name, sizeof name,
		 "/hf3fs-submit-ios.%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-"
		 "%02x%02x%02x%02x%02x%02x",
		 u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12],
		 u[13], u[14], u[15]);
	submits[priority] = sem_open(name, O_CREAT | O_EXCL, 0666, 0);
	if (submits[priority] == SEM_FAILED)
		return errno;
	snprintf(semaphores[priority], sizeof semaphores[priority], "/dev/shm/sem.%s", name + 1);
	return 0;
}

int rings_open(void)
{
	int error = 0;

	workers = calloc((size_t)opt.workers, sizeof *workers);
	if (!workers)
		return ENOMEM;
	for (int p = 0; p < PRIORITIES && error == 0; p++) {
		ends[p] = &queues[p];
		error = make_semaphore(p);
		if (error == 0)
			error = pthread_create(&watchers[p], NULL, watch, (void *)(intptr_t)p);
	}
	for (int k = 0; k < opt.workers && error == 0; k++)
		error = pthread_create(&workers[k], NULL, work_on, NULL);
	return error;
}

void rings_close(void)
{
	char clear[] = "clear";

	fault_command(clear); /* lets held jobs go */
	pthread_mutex_lock(&lock);
	stopping = true;
	pthread_cond_broadcast(&work);
	pthread_mutex_unlock(&lock);
	for (int p = 0; p < PRIORITIES; p++) {
		sem_post(submits[p]);
		pthread_join(watchers[p], NULL);
		sem_close(submits[p]);
		sem_unlink(semaphores[p] + strlen("/dev/shm/sem"));
	}
	for (int k = 0; k < opt.workers; k++)
		pthread_join(workers[k], NULL);
	free(workers);
}
