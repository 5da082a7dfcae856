/*
 * test_uring.c - the engine "uring" beside "posix": the same runs must have the same results, with
 * whole and with broken rings, in time and late, on one thread and on more than there are rings.
 *
 * io_uring_submit_and_wait is wrapped (ld --wrap), so that a test can let the kernel
 * refuse, or come back short. Where io_uring is not allowed the tests that need it are
 * skipped with the reason.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <slabkv.h>

#include "engine.h"
#include "uring.h"

#define FILE_BYTES (3u << 20) /* and some, so that the end is not aligned */
#define FILE_TAIL 1234u
#define MEMORY (5u << 20) /* and a bit */
#define MAX_RUNS 12u

/* ---- faults ---------------------------------------------------------------------------------- */

enum fault {
	NO_FAULT,
	REFUSE_SOME,
	REFUSE_ALL,
	DIE,
	HOLD_AND_DIE,
	SHORTEN,
	SAY_EINVAL,
	SAY_EAGAIN,
	SAY_EIO
};
static _Thread_local enum fault fault;
static _Thread_local uint32_t calls;

int __real_io_uring_submit_and_wait(struct io_uring *ring, unsigned int n);
int __wrap_io_uring_submit_and_wait(struct io_uring *ring, unsigned int n);

/* Returns the result that a completion reports instead. Only requests of some bytes come back
 * short: the rest is moved again, to the same place. */
static int other_result(int res)
{
	switch (fault) {
	case SHORTEN:
		if (res > 8192 && calls % 2)
			return res / 2 / 4096 * 4096; /* goes on aligned */
		return res > 1 ? res / 2 : res;
	case SAY_EINVAL:
		return calls == 1 ? -EINVAL : res;
	case SAY_EAGAIN:
		return calls % 2 ? -EAGAIN : res;
	case SAY_EIO:
		return -EIO;
	default:
		return res;
	}
}

/* Calls that wait for a ring: counted under the engine's lock, so who has seen the
 * count finds them waiting. */
static atomic_uint waiting;
static atomic_bool held;

void __real_skv_cond_wait(struct skv_cond *c, struct skv_mutex *m);
void __wrap_skv_cond_wait(struct skv_cond *c, struct skv_mutex *m);

void __wrap_skv_cond_wait(struct skv_cond *c, struct skv_mutex *m)
{
	atomic_fetch_add(&waiting, 1);
	__real_skv_cond_wait(c, m);
}

int __wrap_io_uring_submit_and_wait(struct io_uring *ring, unsigned int n)
{
	struct io_uring_cqe *cqe;
	unsigned int head;
	int rc;

	calls++;
	if ((fault == REFUSE_SOME && calls % 3) || fault == REFUSE_ALL)
		return -EAGAIN;
	if (fault == DIE && calls > 1)
		return -EBADR;
	if (fault == HOLD_AND_DIE) {
		atomic_store(&held, true);
		while (atomic_load(&waiting) < 2)
			sched_yield();
		return -EAGAIN;
	}
	rc = __real_io_uring_submit_and_wait(ring, n);
	if (fault >= SHORTEN)
		io_uring_for_each_cqe(ring, head, cqe)
			cqe->res = other_result(cqe->res);
	return rc;
}

/* ---- place ----------------------------------------------------------------------------------- */

struct place {
	char dir[32];
	int dirfd;
	struct skv_engine *uring, *posix;
	struct skv_engine_file *u, *p; /* two files with the same contents */
	char *memory_u, *memory_p;
	unsigned int seed;
};

static bool allowed(void)
{
	struct skv_engine *e;
	struct skv_error err;

	if (skv_engine_uring.create(NULL, &e, &err) == SKV_OK) {
		e->ops->destroy(e);
		return true;
	}
	print_message("skipped: %s\n", err.message);
	return false;
}

static void make_file(struct place *p, const char *name, struct skv_engine *e,
		      struct skv_engine_file **out)
{
	int fd = openat(p->dirfd, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	size_t bytes = FILE_BYTES + FILE_TAIL;
	uint32_t *text = malloc(bytes + 4);

	assert_true(fd >= 0 && text);
	for (uint32_t i = 0; i < bytes / 4 + 1; i++)
		text[i] = i * 2654435761u;
	assert_int_equal(write(fd, text, bytes), bytes);
	free(text);
	close(fd);
	assert_int_equal(skv_engine_open(e, p->dirfd, name, true, out, NULL), SKV_OK);
}

static int setup_with(void **state, uint32_t depth)
{
	const struct skv_engine_options o = { .depth = depth };
	struct place *p = calloc(1, sizeof *p);

	*state = NULL;
	assert_non_null(p);
	if (!allowed()) {
		free(p);
		return 0;
	}
	snprintf(p->dir, sizeof p->dir, "/tmp/skv-uring-XXXXXX");
	assert_non_null(mkdtemp(p->dir));
	p->dirfd = open(p->dir, O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(skv_engine_uring.create(&o, &p->uring, NULL), SKV_OK);
	assert_int_equal(skv_engine_posix.create(&o, &p->posix, NULL), SKV_OK);
	make_file(p, "u", p->uring, &p->u);
	make_file(p, "p", p->posix, &p->p);
	assert_int_equal(posix_memalign((void **)&p->memory_u, 4096, MEMORY + 8192), 0);
	assert_int_equal(posix_memalign((void **)&p->memory_p, 4096, MEMORY + 8192), 0);
	p->seed = 1;
	fault = NO_FAULT;
	*state = p;
	return 0;
}

static int setup(void **state) { return setup_with(state, 0); }
static int setup_one(void **state) { return setup_with(state, 1); }
static int setup_three(void **state) { return setup_with(state, 3); }

static int teardown(void **state)
{
	struct place *p = *state;

	if (!p)
		return 0;
	fault = NO_FAULT;
	skv_engine_close(p->uring, p->u);
	skv_engine_close(p->posix, p->p);
	p->uring->ops->destroy(p->uring);
	p->posix->ops->destroy(p->posix);
	unlinkat(p->dirfd, "u", 0);
	unlinkat(p->dirfd, "p", 0);
	close(p->dirfd);
	assert_int_equal(rmdir(p->dir), 0);
	free(p->memory_u);
	free(p->memory_p);
	free(p);
	return 0;
}

#define NEED_RING(p)                                                                               \
	do {                                                                                       \
		if (!(p))                                                                          \
			skip();                                                                    \
	} while (0)

static struct skv_io_call never(void)
{
	return (struct skv_io_call){ .clock = &skv_clock_system, .at_ms = UINT64_MAX };
}

/* ---- the same as posix ----------------------------------------------------------------------- */

static uint32_t dice(struct place *p, uint32_t n)
{
	p->seed = p->seed * 1103515245u + 12345u;
	return (p->seed >> 8) % n;
}

struct runs {
	struct skv_io_run run[MAX_RUNS];
	struct iovec iov[MAX_RUNS * SKV_RUN_IOV];
	struct iovec was[MAX_RUNS * SKV_RUN_IOV]; /* as `iov` before the I/O */
	uint32_t n;
	size_t memory; /* used */
};

/* The same random runs for both: places ascend and do not overlap, as in a plan; some end behind
 * the end of the file; some are aligned, some not. */
static void throw_runs(struct place *p, struct runs *u, struct runs *x, bool write)
{
	uint64_t at = dice(p, 3) ? 4096 * dice(p, 8) : dice(p, 5000);

	u->n = u->memory = 0;
	for (uint32_t i = 0; i < 1 + dice(p, MAX_RUNS); i++) {
		bool aligned = dice(p, 2);
		uint32_t n_iov = dice(p, 6) ? 1 + dice(p, 6) : 1 + dice(p, 600);
		uint32_t unit = n_iov > 50 ? (aligned ? 4096 : 700) : 300000;
		struct skv_io_run *r = &u->run[u->n];
		struct iovec *iov = &u->iov[(size_t)u->n * SKV_RUN_IOV];

		at = aligned ? (at + 4095) / 4096 * 4096 : at + dice(p, 3000);
		u->memory = aligned ? (u->memory + 4095) / 4096 * 4096 : u->memory + dice(p, 9);
		*r = (struct skv_io_run){ .file = p->u, .offset = at, .iov = iov };
		for (uint32_t k = 0; k < n_iov; k++) {
			size_t len = aligned ? (1 + dice(p, (unit + 4095) / 4096)) * 4096u
					     : 1 + dice(p, unit);

			if (u->memory + len > MEMORY || (write && at + len > FILE_BYTES))
				break;
			iov[k] = (struct iovec){ p->memory_u + u->memory, len };
			u->memory += len + (dice(p, 4) ? 0 : (aligned ? 4096 : 13));
			at += len;
			r->length += len;
			r->n_iov++;
		}
		if (r->n_iov == 0)
			break;
		u->n++;
	}
	*x = *u;
	for (uint32_t i = 0; i < x->n; i++) {
		x->run[i].file = p->p;
		x->run[i].iov = &x->iov[(size_t)i * SKV_RUN_IOV];
		for (int k = 0; k < x->run[i].n_iov; k++)
			x->run[i].iov[k].iov_base =
				p->memory_p +
				((char *)x->run[i].iov[k].iov_base - p->memory_u);
	}
	memcpy(u->was, u->iov, sizeof u->was);
	memcpy(x->was, x->iov, sizeof x->was);
}

static void assert_same_results(const struct runs *u, const struct runs *x)
{
	for (uint32_t i = 0; i < u->n; i++) {
		assert_int_equal(u->run[i].status, x->run[i].status);
		assert_int_equal(u->run[i].done, x->run[i].done);
		assert_true((u->run[i].ended_ms == UINT64_MAX) ==
			    (x->run[i].ended_ms == UINT64_MAX));
	}
}

/* Clears the bytes after `done`, which may be anything: O_DIRECT fills the last page with zeros. */
static void clear_rest(struct runs *x)
{
	for (uint32_t i = 0; i < x->n; i++) {
		uint64_t done = x->run[i].done;

		/* the engine may have changed the vector of the run, not our copy of it */
		for (int k = 0; k < x->run[i].n_iov; k++) {
			const struct iovec *v = &x->was[(size_t)i * SKV_RUN_IOV + (size_t)k];
			size_t keep = done < v->iov_len ? done : v->iov_len;

			memset((char *)v->iov_base + keep, 0xdd, v->iov_len - keep);
			done -= keep;
		}
	}
}

static void assert_same_files(struct place *p)
{
	char *a = malloc(FILE_BYTES + FILE_TAIL), *b = malloc(FILE_BYTES + FILE_TAIL);

	assert_int_equal(pread(p->u->fd, a, FILE_BYTES + FILE_TAIL, 0), FILE_BYTES + FILE_TAIL);
	assert_int_equal(pread(p->p->fd, b, FILE_BYTES + FILE_TAIL, 0), FILE_BYTES + FILE_TAIL);
	assert_memory_equal(a, b, FILE_BYTES + FILE_TAIL);
	free(a);
	free(b);
}

struct watcher {
	struct runs *u, *x; /* being read; read before, by another engine */
	uint64_t seen[MAX_RUNS];
	uint32_t calls;
};

/* Work while bytes move: what is said to have arrived is compared. */
static bool watch(void *ctx)
{
	struct watcher *w = ctx;

	for (uint32_t i = 0; i < w->u->n; i++) {
		uint64_t at = 0, arrived = w->u->run[i].arrived;

		assert_true(arrived >= w->seen[i] && arrived <= w->u->run[i].length);
		for (int k = 0; k < w->x->run[i].n_iov && at < arrived; k++) {
			const struct iovec *a = &w->u->was[(size_t)i * SKV_RUN_IOV + (size_t)k];
			const struct iovec *b = &w->x->was[(size_t)i * SKV_RUN_IOV + (size_t)k];
			uint64_t n = arrived - at < a->iov_len ? arrived - at : a->iov_len;

			assert_memory_equal(a->iov_base, b->iov_base, n);
			at += a->iov_len;
		}
		w->seen[i] = arrived;
	}
	return ++w->calls % 3 != 0;
}

static void compare(struct place *p, uint32_t rounds)
{
	struct runs *u = malloc(sizeof *u), *x = malloc(sizeof *x);
	struct skv_io_call by = never(), watched = never();
	uint32_t looks = 0;

	assert_true(u && x);
	for (uint32_t round = 0; round < rounds; round++) {
		throw_runs(p, u, x, false);
		memset(p->memory_u, 0xee, u->memory);
		memset(p->memory_p, 0xee, u->memory);
		skv_engine_read(p->posix, x->run, x->n, &by);

		struct watcher w = { .u = u, .x = x };

		watched.work = watch;
		watched.ctx = &w;
		skv_engine_read(p->uring, u->run, u->n, round % 4 ? &watched : &by);
		looks += w.calls;
		assert_same_results(u, x);
		clear_rest(u);
		clear_rest(x);
		assert_memory_equal(p->memory_u, p->memory_p, u->memory);
		throw_runs(p, u, x, true);
		for (uint32_t i = 0; i < u->memory / 4 + 1; i++)
			((uint32_t *)p->memory_u)[i] = (i + round) * 2654435761u;
		memcpy(p->memory_p, p->memory_u, u->memory);
		skv_engine_write(p->uring, u->run, u->n, &by);
		skv_engine_write(p->posix, x->run, x->n, &by);
		assert_same_results(u, x);
		assert_same_files(p);
		assert_int_equal(skv_engine_sync(p->uring, p->u), SKV_OK);
	}
	assert_true(rounds < 20 || looks > 0);
	free(u);
	free(x);
}

static void random_runs_end_as_with_posix(void **state)
{
	struct place *p = *state;

	NEED_RING(p);
	print_message("O_DIRECT here: %s\n",
		      ((struct skv_uring_file *)p->u)->direct >= 0 ? "yes" : "no");
	/* below a page, a buffered neighbour could write back old bytes over direct ones */
	if (((struct skv_uring_file *)p->u)->direct >= 0)
		assert_int_equal(((struct skv_uring_file *)p->u)->align % sysconf(_SC_PAGESIZE), 0);
	compare(p, 40);
}

static void registered_memory_changes_nothing(void **state)
{
	struct place *p = *state;
	struct skv_error err;
	int rc;

	NEED_RING(p);
	rc = skv_engine_map(p->uring, p->memory_u, MEMORY, &err);
	if (rc != SKV_OK)
		print_message("not registered: %s\n", err.message);
	compare(p, 20);
	skv_engine_unmap(p->uring, p->memory_u);
	compare(p, 5);
}

static void short_and_refused_requests_go_on(void **state)
{
	static const enum fault faults[] = { SHORTEN, REFUSE_SOME, SAY_EAGAIN };
	struct place *p = *state;

	NEED_RING(p);
	for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
		calls = 0;
		fault = faults[i];
		compare(p, 5);
	}
}

/* A file system that has rules of its own for O_DIRECT is served through the page cache. */
static void direct_refused_goes_buffered(void **state)
{
	struct place *p = *state;
	struct skv_io_call by = never();
	struct iovec iov = { p ? p->memory_u : NULL, 2 << 20 };
	struct skv_io_run r = { .iov = &iov, .n_iov = 1, .length = 2 << 20 };
	struct skv_uring_file *f;

	NEED_RING(p);
	f = (struct skv_uring_file *)p->u;
	if (f->direct < 0) {
		print_message("skipped: no O_DIRECT in /tmp\n");
		skip();
	}
	r.file = p->u;
	calls = 0;
	fault = SAY_EINVAL;
	skv_engine_read(p->uring, &r, 1, &by);
	fault = NO_FAULT;
	assert_int_equal(r.status, SKV_OK);
	assert_int_equal(r.done, 2 << 20);
	assert_true(f->refused);
	compare(p, 2);
}

static void a_ring_that_dies_ends_the_call_and_is_replaced(void **state)
{
	static const enum fault faults[] = { REFUSE_ALL, DIE, SAY_EIO };
	struct place *p = *state;
	struct skv_io_call by = never();
	struct iovec iov[2], again;
	struct skv_io_run r[2];

	NEED_RING(p);
	for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
		for (int k = 0; k < 2; k++) {
			iov[k] = (struct iovec){ p->memory_u + k * (2 << 20), 1 << 20 };
			r[k] = (struct skv_io_run){ .file = p->u,
						    .offset = (uint64_t)k << 20,
						    .iov = &iov[k],
						    .n_iov = 1,
						    .length = 1 << 20 };
		}
		calls = 0;
		fault = faults[i];
		skv_engine_read(p->uring, r, 2, &by);
		assert_int_equal(r[1].status, SKV_E_IO);
		assert_int_equal(r[1].done, 0);
		fault = NO_FAULT;
		again = (struct iovec){ p->memory_u, 1 << 20 };
		r[0] = (struct skv_io_run){
			.file = p->u, .iov = &again, .n_iov = 1, .length = 1 << 20
		};
		skv_engine_read(p->uring, r, 1, &by);
		assert_int_equal(r[0].status, SKV_OK);
		assert_int_equal(r[0].done, 1 << 20);
	}
}

/* No ring is left and none can be made: the calls go on without. */
static void without_a_ring_posix_moves_the_bytes(void **state)
{
	struct place *p = *state;
	struct skv_io_call by = never();
	struct iovec iov = { p ? p->memory_u : NULL, 1 << 20 };
	struct skv_io_run r = { .iov = &iov, .n_iov = 1, .length = 1 << 20 };
	struct rlimit before, none;

	NEED_RING(p);
	r.file = p->u;
	calls = 0;
	fault = REFUSE_ALL;
	skv_engine_read(p->uring, &r, 1, &by);
	fault = NO_FAULT;
	assert_int_equal(r.status, SKV_E_IO);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 3;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	skv_engine_read(p->uring, &r, 1, &by);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(r.status, SKV_OK);
	assert_int_equal(r.done, 1 << 20);
	assert_int_equal(((struct skv_uring *)p->uring)->n_rings, 0);
	iov = (struct iovec){ p->memory_u, 1 << 20 };
	skv_engine_read(p->uring, &r, 1, &by);
	assert_int_equal(r.done, 1 << 20);
	assert_int_equal(((struct skv_uring *)p->uring)->n_rings, 1);
}

struct reader {
	struct place *p;
	enum fault fault;
	char *memory;
	struct skv_io_run run;
	pthread_t thread;
};

static void *read_once(void *ctx)
{
	struct reader *r = ctx;
	struct skv_io_call by = never();
	struct iovec iov = { r->memory, 1 << 16 };

	fault = r->fault;
	r->run = (struct skv_io_run){ .file = r->p->u, .iov = &iov, .n_iov = 1, .length = 1 << 16 };
	skv_engine_read(r->p->uring, &r->run, 1, &by);
	return NULL;
}

/* The last ring dies while several calls wait for it, and no other one can be
 * made: all of them go on. */
static void no_waiter_is_left_when_the_last_ring_dies(void **state)
{
	struct place *p = *state;
	struct reader r[3];
	struct timespec until;
	struct rlimit before, none;

	NEED_RING(p);
	atomic_store(&waiting, 0);
	atomic_store(&held, false);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 3;
	for (int i = 0; i < 3; i++) {
		r[i] = (struct reader){ .p = p, .fault = i ? NO_FAULT : HOLD_AND_DIE,
					.memory = p->memory_u + i * (1 << 16) };
		assert_int_equal(pthread_create(&r[i].thread, NULL, read_once, &r[i]), 0);
		while (!atomic_load(&held))
			sched_yield();
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	}
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 60; /* a call that is left behind waits for ever */
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_timedjoin_np(r[i].thread, NULL, &until), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(r[0].run.status, SKV_E_IO);
	for (int i = 1; i < 3; i++)
		assert_true(r[i].run.status == SKV_OK && r[i].run.done == 1 << 16);
}

/* In a child without privileges and with little RLIMIT_MEMLOCK: refused in words. */
static void memory_beyond_the_limit_is_not_registered(void **state)
{
	struct place *p = *state;
	const struct rlimit little = { 1 << 16, 1 << 16 };
	int status;
	pid_t child;

	NEED_RING(p);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct skv_engine *e;
		struct skv_error err;

		if (setrlimit(RLIMIT_MEMLOCK, &little) != 0 ||
		    (getuid() == 0 && setresuid(65534, 65534, 65534) != 0))
			_exit(77);
		if (skv_engine_uring.create(NULL, &e, NULL) != SKV_OK)
			_exit(77);
		if (skv_engine_map(e, p->memory_u, 1 << 20, &err) != SKV_E_UNSUPPORTED ||
		    !strstr(err.message, "RLIMIT_MEMLOCK"))
			_exit(1);
		if (skv_engine_map(e, p->memory_u, 4096, &err) != SKV_OK)
			_exit(2);
		skv_engine_unmap(e, p->memory_u);
		e->ops->destroy(e);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void errors_stop_one_run_only(void **state)
{
	struct place *p = *state;
	struct skv_engine_file *ro;
	struct skv_io_call by = never();
	char x = 'x';
	struct iovec iov[2] = { { &x, 1 }, { &x, 1 } };
	struct skv_io_run w[2];

	NEED_RING(p);
	assert_int_equal(skv_engine_open(p->uring, p->dirfd, "u", false, &ro, NULL), SKV_OK);
	w[0] = (struct skv_io_run){ .file = ro, .iov = &iov[0], .n_iov = 1, .length = 1 };
	w[1] = (struct skv_io_run){ .file = p->u, .iov = &iov[1], .n_iov = 1, .length = 1 };
	skv_engine_write(p->uring, w, 2, &by);
	assert_int_equal(w[0].status, SKV_E_IO);
	assert_int_equal(w[0].done, 0);
	assert_int_equal(w[1].status, SKV_OK);
	assert_int_equal(w[1].done, 1);
	skv_engine_close(p->uring, ro);
}

/* ---- deadlines ------------------------------------------------------------------------------- */

/* A clock that moves on by one millisecond each time it is read. */
static uint64_t tick(void *self) { return (*(uint64_t *)self)++; }

/* A single request at a time: the clock is read before and after each. */
static void nothing_is_submitted_after_the_deadline(void **state)
{
	struct place *p = *state;
	uint64_t now = 0;
	const struct skv_clock clock = { tick, tick, &now };
	struct skv_io_call by = { .clock = &clock, .at_ms = 2 };
	struct iovec iov[2];
	struct skv_io_run w[2];
	char before, after;

	NEED_RING(p);
	for (uint32_t k = 0; k < 2; k++) {
		iov[k] = (struct iovec){ p->memory_u, 1 };
		w[k] = (struct skv_io_run){
			.file = p->u, .offset = k, .iov = &iov[k], .n_iov = 1, .length = 1
		};
	}
	p->memory_u[0] = 'W';
	assert_int_equal(pread(p->u->fd, &before, 1, 1), 1);
	skv_engine_write(p->uring, w, 2, &by);
	assert_int_equal(w[0].status, SKV_OK);
	assert_int_equal(w[0].ended_ms, 1);
	assert_int_equal(w[1].status, SKV_E_TIMEOUT);
	assert_int_equal(w[1].done, 0);
	assert_int_equal(pread(p->u->fd, &after, 1, 1), 1);
	assert_int_equal(after, before);
}

/* A run of several requests stops in its middle; a refused submission is not repeated late. */
static void late_in_the_middle(void **state)
{
	struct place *p = *state;
	uint64_t now = 0;
	const struct skv_clock clock = { tick, tick, &now };
	struct skv_io_call by = { .clock = &clock, .at_ms = 4 };
	struct iovec iov = { p ? p->memory_u : NULL, FILE_BYTES };
	struct skv_io_run r = { .iov = &iov, .n_iov = 1, .length = FILE_BYTES };

	NEED_RING(p);
	r.file = p->u;
	skv_engine_read(p->uring, &r, 1, &by);
	assert_int_equal(r.status, SKV_E_TIMEOUT);
	assert_int_equal(r.done, 2 * SKV_URING_READ);
	now = calls = 0;
	fault = REFUSE_SOME; /* the first two tries */
	by.at_ms = 1;
	skv_engine_read(p->uring, &r, 1, &by);
	assert_int_equal(r.status, SKV_E_TIMEOUT);
	assert_int_equal(r.done, 0);
	assert_int_equal(calls, 1);
	fault = NO_FAULT;
	by = never();
	skv_engine_read(p->uring, &r, 1, &by);
	assert_int_equal(r.done, FILE_BYTES);
}

/* Fresh places cost for each write; what is read is summed while the rest arrives. */
static void writes_are_larger_than_reads(void **state)
{
	struct place *p = *state;
	struct skv_io_call by = never();
	struct iovec iov = { p ? p->memory_u : NULL, FILE_BYTES };
	struct skv_io_run r = { .iov = &iov, .n_iov = 1, .length = FILE_BYTES };

	NEED_RING(p);
	r.file = p->u;
	calls = 0;
	skv_engine_read(p->uring, &r, 1, &by);
	assert_int_equal(r.done, FILE_BYTES);
	assert_int_equal(calls, (FILE_BYTES + SKV_URING_READ - 1) / SKV_URING_READ);
	calls = 0;
	skv_engine_write(p->uring, &r, 1, &by);
	assert_int_equal(r.done, FILE_BYTES);
	assert_int_equal(calls, (FILE_BYTES + SKV_URING_WRITE - 1) / SKV_URING_WRITE);
}

/* ---- threads --------------------------------------------------------------------------------- */

struct worker {
	struct place *p;
	pthread_t thread;
	uint32_t number;
	uint32_t wrong;
};

/* Each writes and reads its own part, unaligned and aligned, and opens and closes files. */
static void *work(void *ctx)
{
	struct worker *w = ctx;
	struct skv_io_call by = never();
	size_t part = 64 << 10;
	char *mine = aligned_alloc(4096, part), *back = aligned_alloc(4096, part);

	for (uint32_t round = 0; round < 30; round++) {
		size_t skew = round % 3 ? 0 : 17, n = part - (round % 3 ? 0 : 100);
		struct iovec out = { mine, n }, in = { back, n };
		struct skv_io_run r = { .file = w->p->u,
					.offset = w->number * part + skew,
					.iov = &out,
					.n_iov = 1,
					.length = n };
		struct skv_engine_file *f;

		memset(mine, (int)(w->number * 31 + round), part);
		skv_engine_write(w->p->uring, &r, 1, &by);
		w->wrong += r.status != SKV_OK;
		w->wrong +=
			skv_engine_open(w->p->uring, w->p->dirfd, "u", false, &f, NULL) != SKV_OK;
		r.iov = &in;
		r.file = f;
		skv_engine_read(w->p->uring, &r, 1, &by);
		w->wrong += r.done != n || memcmp(mine, back, n) != 0;
		skv_engine_close(w->p->uring, f);
	}
	free(mine);
	free(back);
	return NULL;
}

static void more_threads_than_rings(void **state)
{
	struct place *p = *state;
	struct worker w[SKV_URING_RINGS + 8];
	uint32_t n = SKV_URING_RINGS + 8;

	NEED_RING(p);
	for (uint32_t i = 0; i < n; i++) {
		w[i] = (struct worker){ .p = p, .number = i };
		assert_int_equal(pthread_create(&w[i].thread, NULL, work, &w[i]), 0);
	}
	for (uint32_t i = 0; i < 20; i++) { /* memory comes and goes meanwhile */
		(void)skv_engine_map(p->uring, p->memory_u, 1 << 20, NULL);
		skv_engine_unmap(p->uring, p->memory_u);
	}
	for (uint32_t i = 0; i < n; i++) {
		pthread_join(w[i].thread, NULL);
		assert_int_equal(w[i].wrong, 0);
	}
}

/* A closed file is really closed: no table of a ring holds it (it could not be executed then). */
static void closed_files_are_let_go(void **state)
{
	struct place *p = *state;
	struct skv_engine_file *f;
	char path[64];
	pid_t child;
	int status, fd;

	NEED_RING(p);
	snprintf(path, sizeof path, "%s/x", p->dir);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0700);
	assert_int_equal(write(fd, "#!/bin/true\n", 12), 12);
	close(fd);
	assert_int_equal(skv_engine_open(p->uring, p->dirfd, "x", true, &f, NULL), SKV_OK);
	assert_true(((struct skv_uring_file *)f)->index != SKV_URING_NONE);
	skv_engine_close(p->uring, f);
	for (int i = 0; i < 200; i++) { /* the kernel lets go a moment later */
		child = fork();
		assert_true(child >= 0);
		if (child == 0) {
			execl(path, path, (char *)NULL);
			_exit(errno == ETXTBSY ? 26 : 27);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		if (WEXITSTATUS(status) != 26)
			break;
	}
	assert_int_equal(WEXITSTATUS(status), 0);
	unlinkat(p->dirfd, "x", 0);
}

/* ---- made before they are needed ------------------------------------------------------------- */

static void rings_are_ready_with_all_tables(void **state)
{
	struct place *p = *state;
	struct skv_uring *u = (struct skv_uring *)p->uring;
	uint32_t found = 0;

	NEED_RING(p);
	if (skv_engine_map(p->uring, p->memory_u, MEMORY, NULL) != SKV_OK)
		skip();
	skv_engine_ready(p->uring, 8);
	assert_int_equal(u->n_rings, 8);
	for (const struct skv_uring_ring *r = u->idle; r; r = r->next_idle, found++)
		assert_ptr_equal(r->table[0].base, p->memory_u);
	assert_int_equal(found, 8);
	for (uint32_t i = 0; i < 8; i++) { /* each in turn */
		struct skv_uring_ring **last = &u->idle->next_idle, *first = u->idle;

		compare(p, 2);
		while (*last)
			last = &(*last)->next_idle;
		u->idle = first->next_idle;
		first->next_idle = NULL;
		*last = first;
	}
	assert_int_equal(u->n_rings, 8);
	skv_engine_unmap(p->uring, p->memory_u);
	for (const struct skv_uring_ring *r = u->all; r; r = r->next)
		assert_null(r->table[0].base);
	compare(p, 5);
	skv_engine_ready(p->uring, 1000);
	assert_int_equal(u->n_rings, SKV_URING_RINGS);
}

static uint32_t rings_of_this_process(void)
{
	char path[64], to[64];
	uint32_t n = 0;

	for (int fd = 0; fd < 256; fd++) {
		ssize_t length;

		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
		length = readlink(path, to, sizeof to - 1);
		to[length > 0 ? length : 0] = 0;
		n += strstr(to, "[io_uring]") != NULL;
	}
	return n;
}

static void a_queue_has_its_rings(void **state)
{
	struct slabkv_async_options with;
	struct slabkv_async *a, *b;
	struct slabkv *kv;
	uint32_t before = rings_of_this_process();

	(void)state;
	if (!allowed())
		skip();
	unsetenv("SLABKV_ENGINE");
	assert_int_equal(slabkv_open(NULL, &kv, NULL), SLABKV_OK);
	slabkv_async_options_init(&with, sizeof with);
	with.threads = 3;
	assert_int_equal(slabkv_async_open(kv, &with, &a, NULL), SLABKV_OK);
	assert_int_equal(rings_of_this_process() - before, 3);
	with.threads = 2;
	assert_int_equal(slabkv_async_open(kv, &with, &b, NULL), SLABKV_OK);
	assert_int_equal(rings_of_this_process() - before, 5);
	slabkv_async_close(a);
	slabkv_async_close(b);
	slabkv_close(kv);
}

/* ---- choice ---------------------------------------------------------------------------------- */

/* io_uring_setup answers `error` from now on, in this process. */
static bool forbid(int error)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), /* seccomp_data.nr */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_io_uring_setup, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ((uint32_t)error & SECCOMP_RET_DATA)),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof code / sizeof code[0], code };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* In a child: 0 when `name` gives posix with a reason that has `word` in it. 77: no seccomp. */
static int fall_back(const char *name, int error, const char *word)
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0) {
		struct slabkv_options o;
		struct slabkv *kv;
		const char *why;
		int bad;

		if (!forbid(error))
			_exit(77);
		slabkv_options_init(&o, sizeof o);
		o.engine = name;
		if (slabkv_open(&o, &kv, NULL) != SLABKV_OK)
			_exit(1);
		bad = strcmp(slabkv_engine(kv, &why), "posix") != 0 || !strstr(why, word);
		slabkv_close(kv);
		_exit(bad ? 2 : 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WEXITSTATUS(status);
}

static void without_io_uring_posix_takes_over(void **state)
{
	int first = fall_back("uring", EPERM, "not permitted");

	(void)state;
	if (first == 77) {
		print_message("skipped: no seccomp filters here\n");
		skip();
	}
	assert_int_equal(first, 0);
	assert_int_equal(fall_back("auto", ENOSYS, "kernel"), 0);
	assert_int_equal(fall_back(NULL, ENOMEM, "RLIMIT_MEMLOCK"), 0);
	assert_int_equal(fall_back("uring", EMFILE, "Too many open files"), 0);
}

static void options_choose(void **state)
{
	bool can = allowed();
	struct slabkv_options o;
	struct slabkv_error err;
	struct slabkv *kv;
	const char *why;

	(void)state;
	slabkv_options_init(&o, sizeof o);
	unsetenv("SLABKV_ENGINE");
	assert_int_equal(slabkv_open(&o, &kv, NULL), SLABKV_OK);
	assert_string_equal(slabkv_engine(kv, NULL), can ? "uring" : "posix");
	slabkv_close(kv);
	setenv("SLABKV_ENGINE", "posix", 1);
	assert_int_equal(slabkv_open(&o, &kv, NULL), SLABKV_OK);
	assert_string_equal(slabkv_engine(kv, &why), "posix");
	assert_string_equal(why, "");
	slabkv_close(kv);
	o.engine = "auto"; /* the option wins */
	assert_int_equal(slabkv_open(&o, &kv, NULL), SLABKV_OK);
	assert_string_equal(slabkv_engine(kv, NULL), can ? "uring" : "posix");
	slabkv_close(kv);
	unsetenv("SLABKV_ENGINE");
	o.engine = "warp";
	assert_int_equal(slabkv_open(&o, &kv, &err), SLABKV_E_INVALID);
	assert_string_equal(err.field, "engine");
	o.engine = NULL;
	o.depth = 1025;
	assert_int_equal(slabkv_open(&o, &kv, &err), SLABKV_E_INVALID);
	assert_string_equal(err.field, "depth");
}

int main(void)
{
#define T(fn, up) cmocka_unit_test_setup_teardown(fn, up, teardown)
	const struct CMUnitTest tests[] = {
		T(random_runs_end_as_with_posix, setup),
		T(random_runs_end_as_with_posix, setup_three),
		T(registered_memory_changes_nothing, setup),
		T(short_and_refused_requests_go_on, setup),
		T(short_and_refused_requests_go_on, setup_three),
		T(direct_refused_goes_buffered, setup),
		T(a_ring_that_dies_ends_the_call_and_is_replaced, setup_one),
		T(without_a_ring_posix_moves_the_bytes, setup),
		T(no_waiter_is_left_when_the_last_ring_dies, setup),
		T(memory_beyond_the_limit_is_not_registered, setup),
		T(errors_stop_one_run_only, setup),
		T(nothing_is_submitted_after_the_deadline, setup_one),
		T(late_in_the_middle, setup_one),
		T(writes_are_larger_than_reads, setup_one),
		T(more_threads_than_rings, setup),
		T(closed_files_are_let_go, setup),
		T(rings_are_ready_with_all_tables, setup),
		cmocka_unit_test(a_queue_has_its_rings),
		cmocka_unit_test(without_io_uring_posix_takes_over),
		cmocka_unit_test(options_choose),
	};
#undef T

	unsetenv("SLABKV_ENGINE"); /* some tests choose by name */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
