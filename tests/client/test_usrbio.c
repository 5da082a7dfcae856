/*
 * test_usrbio.c - the engine "usrbio" on the stand-in for 3FS's client library (tests/usrbio): bytes, holes,
 * errors, deadlines, memory that it may use directly, requests that never come back, a daemon that is restarted,
 * and what it says when it cannot work.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <skv/hash.h>
#include <skv/mem.h>

#include "client.h"
#include "control.h"
#include "support/shell.h"
#include "usrbio.h"

#define MIB (1u << 20)
#define LENGTH (256ull * MIB)

static char root[64]; /* one mount for all tests: the library stays loaded */
static int rootfd;
static int64_t epoch = 1;

struct place {
	struct slabkv_hf3fs o;
	struct skv_engine_options with;
	struct skv_engine *engine;
	struct skv_engine_file *r, *w;
	struct skv_fake_clock clock;
	struct skv_deadline by;
};

static uint64_t count(enum counter_name name) { return standin_count(root, name); }

/* The same daemon, with other knobs. */
static void knobs(const char *text)
{
	char all[256];

	snprintf(all, sizeof all, "epoch=%lld %s", (long long)epoch, text);
	standin_set(root, all);
}

static void restart(void) { standin_restart(root, ++epoch, ""); }

static void make_file(const char *name)
{
	int fd = openat(rootfd, name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)LENGTH), 0);
	close(fd);
}

static void open_files(struct place *p)
{
	struct skv_error err;

	assert_int_equal(skv_engine_open(p->engine, rootfd, "slab", true, &p->w, &err), SKV_OK);
	assert_int_equal(skv_engine_open(p->engine, rootfd, "slab", false, &p->r, &err), SKV_OK);
	assert_int_equal(((struct skv_usrbio_file *)p->r)->kind, SKV_USRBIO_NATIVE);
}

static void close_files(struct place *p)
{
	skv_engine_close(p->engine, p->r);
	skv_engine_close(p->engine, p->w);
	p->r = p->w = NULL;
}

static int setup(void **state)
{
	struct place *p = calloc(1, sizeof *p);
	struct skv_error err;

	assert_non_null(p);
	restart();
	make_file("slab");
	skv_hf3fs_init(&p->o);
	p->o.mount_point = root;
	p->o.read_iov_size = p->o.write_iov_size = 32 * MIB;
	p->o.ior_entries = 128;
	p->with = (struct skv_engine_options){ .depth = 64, .hf3fs = &p->o };
	assert_int_equal(skv_engine_usrbio.create(&p->with, &p->engine, &err), SKV_OK);
	skv_fake_clock_init(&p->clock, 1000);
	p->by = (struct skv_deadline){ &p->clock.clock, UINT64_MAX };
	open_files(p);
	*state = p;
	return 0;
}

/* An object in /dev/shm whose name says that it is this process's. */
static bool left_behind(char name[256])
{
	const struct dirent *e;
	DIR *d = opendir("/dev/shm");
	bool found = false;
	char pid[32];

	assert_non_null(d);
	snprintf(pid, sizeof pid, "-%d-", (int)getpid());
	while (!found && (e = readdir(d)) != NULL) {
		found = strncmp(e->d_name, "slabkv-", 7) == 0 && strstr(e->d_name, pid);
		snprintf(name, 256, "%s", e->d_name);
	}
	closedir(d);
	return found;
}

static int teardown(void **state)
{
	struct place *p = *state;
	char name[256];

	close_files(p);
	p->engine->ops->destroy(p->engine);
	if (left_behind(name))
		fail_msg("left in /dev/shm: %s", name);
	assert_int_equal(standin_links(root), 0);
	free(p);
	return 0;
}

static struct skv_usrbio_ground *ground(const struct place *p)
{
	return ((struct skv_usrbio_file *)p->r)->ground;
}

static bool in_use(struct skv_usrbio_ground *g, enum skv_usrbio_way way)
{
	bool some;

	skv_mutex_lock(&g->pools[way].lock);
	some = g->pools[way].n_used > 0;
	skv_mutex_unlock(&g->pools[way].lock);
	return some;
}

static void fill(uint8_t *data, size_t n, uint64_t seed)
{
	for (size_t i = 0; i + 8 <= n; i += 8) {
		uint64_t v = (seed + i) * 0x9e3779b97f4a7c15u;

		memcpy(data + i, &v, 8);
	}
}

/* One run of `n` pieces of `size` bytes, each in memory of its own `stride` bytes apart. */
static struct skv_io_run run_of(struct skv_engine_file *f, uint64_t offset, uint8_t *data, size_t size, size_t stride,
				int n, struct iovec *iov)
{
	for (int i = 0; i < n; i++)
		iov[i] = (struct iovec){ data + (size_t)i * stride, size };
	return (struct skv_io_run){ .file = f, .offset = offset, .iov = iov, .n_iov = n, .length = (uint64_t)n * size };
}

static void write_bytes(struct place *p, uint64_t offset, uint8_t *data, size_t n)
{
	struct iovec iov[1];
	struct skv_io_run run = run_of(p->w, offset, data, n, n, 1, iov);

	skv_engine_write(p->engine, &run, 1, &p->by);
	assert_int_equal(run.status, SKV_OK);
	assert_int_equal(run.done, n);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static void test_bytes(void **state)
{
	static const size_t sizes[] = { 1, 4096, 65536, 1u << 20, 4497408, (5u << 20) + 123 };
	struct place *p = *state;

	for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
		size_t n = sizes[s], stride = n + 64;
		uint8_t *out = calloc(7, stride), *in = calloc(7, stride);
		struct iovec iov[7], vio[7];
		struct skv_io_run w = run_of(p->w, 4096 + s * 7, out, n, stride, 7, iov);
		struct skv_io_run r = run_of(p->r, 4096 + s * 7, in, n, stride, 7, vio);

		assert_non_null(out);
		assert_non_null(in);
		for (int i = 0; i < 7; i++)
			fill(out + (size_t)i * stride, n, s * 100 + (size_t)i);
		skv_engine_write(p->engine, &w, 1, &p->by);
		assert_int_equal(w.status, SKV_OK);
		assert_int_equal(w.done, 7 * n);
		assert_false(w.loose);
		skv_engine_read(p->engine, &r, 1, &p->by);
		assert_int_equal(r.status, SKV_OK);
		assert_int_equal(r.done, 7 * n);
		assert_int_equal(r.ended_ms, 1000);
		assert_memory_equal(out, in, 7 * stride);
		free(out);
		free(in);
	}
	assert_int_equal(ground(p)->pools[SKV_USRBIO_READ].n_used, 0);
	assert_int_equal(ground(p)->pools[SKV_USRBIO_WRITE].n_used, 0);
}

/* Neighbouring blocks in memory of their own go in few requests, cut at chunks. */
static void test_requests_are_large(void **state)
{
	enum { N = 512, SIZE = 65536 };
	struct place *p = *state;
	uint8_t *data = calloc(N, SIZE + 4096);
	struct iovec iov[N];
	struct skv_io_run w = run_of(p->w, 4096, data, SIZE, SIZE + 4096, N, iov), r;
	uint64_t before;

	assert_non_null(data);
	skv_engine_write(p->engine, &w, 1, &p->by);
	assert_int_equal(w.status, SKV_OK);
	assert_in_range(w.ios, 8, 9);
	before = count(COUNT_read_ios);
	r = run_of(p->r, 4096, data, SIZE, SIZE + 4096, N, iov);
	skv_engine_read(p->engine, &r, 1, &p->by);
	assert_int_equal(r.done, r.length);
	assert_int_equal(count(COUNT_read_ios) - before, r.ios);
	assert_true(r.ios <= N / 8);
	assert_in_range(r.ios, 4, 5); /* a quarter of 32 MiB each */
	free(data);
}

/* A hole ends a read: what was never written is a miss, not zeros. */
static void test_hole(void **state)
{
	struct place *p = *state;
	uint8_t *data = calloc(1, 4 * MIB);
	struct iovec iov[2];
	struct skv_io_run r;

	assert_non_null(data);
	memset(data, 7, MIB);
	write_bytes(p, 8 * MIB, data, MIB);
	r = run_of(p->r, 8 * MIB, data, 2 * MIB, 2 * MIB, 1, iov);
	skv_engine_read(p->engine, &r, 1, &p->by);
	assert_int_equal(r.status, SKV_OK);
	assert_int_equal(r.done, MIB);
	r = run_of(p->r, 64 * MIB, data, MIB, MIB, 2, iov);
	skv_engine_read(p->engine, &r, 1, &p->by);
	assert_int_equal(r.status, SKV_OK);
	assert_int_equal(r.done, 0);
	free(data);
}

static void test_errors(void **state)
{
	static const struct {
		const char *fault;
		bool write;
		int status;
	} cases[] = {
		{ "fault=read:EIO:@2", false, SKV_E_IO },	  { "fault=read:EREMOTEIO:@2", false, SKV_E_IO },
		{ "fault=write:ENOSPC:@2", true, SKV_E_NO_SPACE }, { "fault=write:EREMOTEIO:@2", true, SKV_E_IO },
		{ "fault=write:EIO:@2:torn", true, SKV_E_IO },	  { "fault=read:EINVAL:@2", false, SKV_E_IO },
		{ "fault=read:EACCES:@2", false, SKV_E_IO },
	};
	struct place *p = *state;
	uint8_t *data = calloc(1, 6 * MIB);
	struct iovec iov[1];

	assert_non_null(data);
	write_bytes(p, 0, data, 6 * MIB);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct skv_io_run run[2];

		knobs(cases[i].fault);
		for (int k = 0; k < 2; k++) {
			run[k] = run_of(cases[i].write ? p->w : p->r, 0, data, 4 * MIB, 4 * MIB, 1, iov);
			if (cases[i].write)
				skv_engine_write(p->engine, &run[k], 1, &p->by);
			else
				skv_engine_read(p->engine, &run[k], 1, &p->by);
		}
		assert_int_equal(run[0].status, SKV_OK);
		assert_int_equal(run[0].done, 4 * MIB);
		assert_int_equal(run[1].status, cases[i].status);
		assert_int_equal(run[1].done, 0);
		assert_false(run[1].again); /* the daemon is the same: nothing would be better a second time */
		assert_false(run[1].loose);
	}
	knobs("fault=read:SHORT:@1");
	{
		struct skv_io_run run = run_of(p->r, 0, data, 4 * MIB, 4 * MIB, 1, iov);

		skv_engine_read(p->engine, &run, 1, &p->by);
		assert_int_equal(run.status, SKV_OK);
		assert_true(run.done < run.length);
	}
	knobs("");
	free(data);
}

static void test_deadline(void **state)
{
	struct place *p = *state;
	static uint8_t data[4096];
	struct iovec iov[1];
	struct skv_io_run run = run_of(p->w, 0, data, sizeof data, sizeof data, 1, iov);
	uint64_t before = count(COUNT_write_ios);

	p->by.at_ms = 1000; /* now */
	skv_engine_write(p->engine, &run, 1, &p->by);
	assert_int_equal(run.status, SKV_E_TIMEOUT);
	assert_int_equal(run.done, 0);
	assert_false(run.loose);
	assert_int_equal(count(COUNT_write_ios), before);
	p->by.at_ms = 1001;
	run = run_of(p->w, 0, data, sizeof data, sizeof data, 1, iov);
	skv_engine_write(p->engine, &run, 1, &p->by);
	assert_int_equal(run.status, SKV_OK);
}

/* ---- memory that is used directly ------------------------------------------------------------ */

static void test_direct(void **state)
{
	struct slabkv_pool_options o;
	struct slabkv_pool_info info;
	struct place *p = *state;
	struct slabkv_pool *pool;
	struct slabkv_error e;
	struct skv_error err;
	struct iovec iov[4];
	struct skv_io_run run[2];
	uint8_t *base;

	slabkv_pool_options_init(&o);
	o.bytes = 16 * MIB;
	o.buffer_bytes = 4 * MIB;
	o.kind = SLABKV_MEMORY_SHARED;
	o.shm_name = "direct";
	assert_int_equal(slabkv_pool_create(&o, &pool, &e), SLABKV_OK);
	slabkv_pool_info(pool, &info);
	base = info.base;
	assert_int_equal(skv_engine_map(p->engine, base, info.bytes, &err), SKV_OK);
	fill(base, 8 * MIB, 3);
	run[0] = run_of(p->w, 4096, base, 4 * MIB, 4 * MIB, 2, iov);
	skv_engine_write(p->engine, run, 1, &p->by);
	assert_int_equal(run[0].status, SKV_OK);
	assert_int_equal(ground(p)->pools[SKV_USRBIO_WRITE].next, 0); /* no buffer was ever taken */
	run[0] = run_of(p->r, 4096, base + 8 * MIB, 4 * MIB, 4 * MIB, 2, iov);
	skv_engine_read(p->engine, run, 1, &p->by);
	assert_int_equal(run[0].status, SKV_OK);
	assert_int_equal(run[0].done, 8 * MIB);
	assert_memory_equal(base, base + 8 * MIB, 8 * MIB);
	assert_int_equal(ground(p)->pools[SKV_USRBIO_READ].next, 0);
	/* Two reads into the same bytes: 3FS would fail the whole batch. */
	run[0] = run_of(p->r, 4096, base + 8 * MIB, 4 * MIB, 4 * MIB, 1, iov);
	run[1] = run_of(p->r, 4096, base + 10 * MIB, 4 * MIB, 4 * MIB, 1, iov + 1);
	skv_engine_read(p->engine, run, 2, &p->by);
	assert_int_equal(run[0].status, SKV_OK);
	assert_int_equal(run[1].status, SKV_OK);
	skv_engine_unmap(p->engine, base);
	assert_int_equal(slabkv_pool_destroy(pool), SLABKV_OK);
	/* Memory without a name works too, by copies. */
	base = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_int_equal(skv_engine_map(p->engine, base, MIB, &err), SKV_E_UNSUPPORTED);
	run[0] = run_of(p->r, 4096, base, MIB, MIB, 1, iov);
	skv_engine_read(p->engine, run, 1, &p->by);
	assert_int_equal(run[0].done, MIB);
	skv_engine_unmap(p->engine, base);
	munmap(base, MIB);
}

/* ---- requests that do not come back ---------------------------------------------------------- */

struct late {
	struct place *p;
	struct skv_io_run run;
	struct iovec iov[1];
	bool write;
	atomic_bool done;
};

static void *move_late(void *arg)
{
	struct late *l = arg;

	if (l->write)
		skv_engine_write(l->p->engine, &l->run, 1, &l->p->by);
	else
		skv_engine_read(l->p->engine, &l->run, 1, &l->p->by);
	atomic_store(&l->done, true);
	return NULL;
}

/* Waits, with a bound, until nothing of the pool is taken. */
static bool comes_back(struct skv_usrbio_ground *g, enum skv_usrbio_way way)
{
	for (int i = 0; i < 3000; i++) {
		for (uint32_t k = 0; k < g->n_rings; k++)
			skv_usrbio_ring_poll(&g->rings[way][k]);
		if (!in_use(g, way))
			return true;
		skv_usrbio_pool_wait(&g->pools[way], 10);
	}
	return false;
}

static void test_no_answer(void **state)
{
	struct place *p = *state;
	uint8_t *data = calloc(1, MIB);

	assert_non_null(data);
	write_bytes(p, 0, data, MIB);
	for (int way = 0; way < 2; way++) {
		struct late l = { .p = p, .write = way == SKV_USRBIO_WRITE };
		uint64_t before = count(way ? COUNT_write_ios : COUNT_read_ios);
		pthread_t thread;

		knobs("hold=1");
		memset(data, 0x11 + way, MIB);
		l.run = run_of(way ? p->w : p->r, 0, data, MIB, MIB, 1, l.iov);
		assert_int_equal(pthread_create(&thread, NULL, move_late, &l), 0);
		while (!in_use(ground(p), way))
			skv_usrbio_pool_wait(&ground(p)->pools[way], 1);
		while (atomic_load(&ground(p)->adrift[way]) == 0) {
			skv_fake_clock_advance(&p->clock, p->o.read_timeout_ms);
			skv_usrbio_pool_wait(&ground(p)->pools[way], 1);
		}
		assert_int_equal(pthread_join(thread, NULL), 0);
		assert_int_equal(l.run.status, SKV_E_IO);
		assert_int_equal(l.run.done, 0);
		assert_int_equal(l.run.loose, l.write);
		assert_false(l.run.again);
		/* The caller has its memory back: what arrives late does not reach it. */
		memset(data, 0x55, MIB);
		knobs("");
		assert_true(comes_back(ground(p), way));
		assert_true(count(way ? COUNT_write_ios : COUNT_read_ios) > before);
		for (size_t i = 0; i < MIB; i++)
			assert_int_equal(data[i], 0x55);
	}
	free(data);
}

static bool adrift(struct skv_usrbio_ground *g, enum skv_usrbio_way way)
{
	bool some = false;

	for (uint32_t i = 0; i < g->n_rings; i++) {
		struct skv_usrbio_ring *r = &g->rings[way][i];

		skv_usrbio_ring_poll(r);
		skv_mutex_lock(&r->lock);
		some |= r->adrift > 0;
		skv_mutex_unlock(&r->lock);
	}
	return some;
}

static struct {
	atomic_uint kept, gone;
	uint8_t *data;
	size_t length;
} keeping;

static void *keep(void *ctx, void *data, size_t length)
{
	atomic_fetch_add(&keeping.kept, 1);
	keeping.data = data;
	keeping.length = length;
	return ctx;
}

static void let_go(void *ctx, void *kept, void *data, size_t length)
{
	assert_ptr_equal(kept, ctx);
	assert_ptr_equal(data, keeping.data);
	assert_int_equal(length, keeping.length);
	atomic_fetch_add(&keeping.gone, 1);
}

static uint8_t *shared_pool(const char *name, struct slabkv_pool **pool)
{
	struct slabkv_pool_options o;
	struct slabkv_pool_info info;

	slabkv_pool_options_init(&o);
	o.bytes = o.buffer_bytes = 2 * MIB;
	o.kind = SLABKV_MEMORY_SHARED;
	o.shm_name = name;
	assert_int_equal(slabkv_pool_create(&o, pool, NULL), SLABKV_OK);
	slabkv_pool_info(*pool, &info);
	return info.base;
}

/* Memory of the caller's stays away until a write from it that was given up comes back. */
static void test_no_answer_direct(void **state)
{
	struct place *p = *state;
	struct slabkv_pool *pool;
	struct late l = { .p = p, .write = true };
	uint8_t *data = shared_pool("held", &pool);
	struct skv_error err;
	pthread_t thread;

	assert_int_equal(skv_engine_map(p->engine, data, 2 * MIB, &err), SKV_OK);
	p->engine->keeper = (struct skv_engine_keeper){ p, keep, let_go };
	fill(data, 2 * MIB, 9);
	knobs("hold=1");
	l.run = run_of(p->w, 0, data, 2 * MIB, 2 * MIB, 1, l.iov);
	assert_int_equal(pthread_create(&thread, NULL, move_late, &l), 0);
	while (!adrift(ground(p), SKV_USRBIO_WRITE)) {
		skv_fake_clock_advance(&p->clock, p->o.write_timeout_ms);
		skv_usrbio_pool_wait(&ground(p)->pools[SKV_USRBIO_WRITE], 1);
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(l.run.status, SKV_E_IO);
	assert_true(l.run.loose);
	assert_true(atomic_load(&keeping.kept) > 0);
	assert_int_equal(atomic_load(&keeping.gone), 0);
	knobs("");
	while (adrift(ground(p), SKV_USRBIO_WRITE))
		skv_usrbio_pool_wait(&ground(p)->pools[SKV_USRBIO_WRITE], 1);
	assert_int_equal(atomic_load(&keeping.gone), atomic_load(&keeping.kept));
	p->engine->keeper = (struct skv_engine_keeper){ 0 };
	skv_engine_unmap(p->engine, data);
	assert_int_equal(slabkv_pool_destroy(pool), SLABKV_OK);
}

static bool overdue(struct skv_usrbio_ground *g)
{
	bool some = false;

	for (uint32_t i = 0; i < g->n_rings; i++) {
		struct skv_usrbio_ring *r = &g->rings[SKV_USRBIO_READ][i];

		skv_mutex_lock(&r->lock);
		for (uint32_t k = 0; k < r->entries; k++)
			some |= r->ios[k].flying && r->ios[k].overdue;
		skv_mutex_unlock(&r->lock);
	}
	return some;
}

static bool flying(struct skv_usrbio_ground *g)
{
	bool some = false;

	for (uint32_t i = 0; i < g->n_rings; i++) {
		struct skv_usrbio_ring *r = &g->rings[SKV_USRBIO_READ][i];

		skv_mutex_lock(&r->lock);
		some |= r->flying > 0;
		skv_mutex_unlock(&r->lock);
	}
	return some;
}

/* A read into the caller's memory is not over before it is: nothing lands in what the caller keeps there later. */
static void test_a_read_in_flight_is_not_reported_finished(void **state)
{
	struct place *p = *state;
	struct slabkv_pool *pool;
	struct late l = { .p = p };
	uint8_t *data = shared_pool("landing", &pool), *out = calloc(1, 2 * MIB);
	struct skv_error err;
	pthread_t thread;

	assert_non_null(out);
	assert_int_equal(skv_engine_map(p->engine, data, 2 * MIB, &err), SKV_OK);
	fill(out, 2 * MIB, 9);
	write_bytes(p, 0, out, 2 * MIB);
	knobs("hold=1");
	l.run = run_of(p->r, 0, data, 2 * MIB, 2 * MIB, 1, l.iov);
	assert_int_equal(pthread_create(&thread, NULL, move_late, &l), 0);
	while (!overdue(ground(p))) {
		assert_false(atomic_load(&l.done));
		skv_fake_clock_advance(&p->clock, p->o.read_timeout_ms);
		skv_usrbio_pool_wait(&ground(p)->pools[SKV_USRBIO_READ], 1);
	}
	assert_false(atomic_load(&l.done));
	knobs("");
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(l.run.status, SKV_OK);
	assert_int_equal(l.run.done, 2 * MIB);
	assert_memory_equal(data, out, 2 * MIB);
	skv_engine_unmap(p->engine, data);
	assert_int_equal(slabkv_pool_destroy(pool), SLABKV_OK);
	free(out);
}

/* ---- another daemon -------------------------------------------------------------------------- */

static void test_restart(void **state)
{
	struct place *p = *state;
	uint8_t *out = calloc(1, 3 * MIB), *in = calloc(1, 3 * MIB);
	struct skv_engine_file *other;
	struct iovec iov[1];
	struct skv_io_run run;

	assert_non_null(out);
	assert_non_null(in);
	fill(out, 3 * MIB, 1);
	write_bytes(p, MIB, out, 3 * MIB);
	for (int round = 0; round < 3; round++) {
		restart();
		run = run_of(p->r, MIB, in, 3 * MIB, 3 * MIB, 1, iov);
		skv_engine_read(p->engine, &run, 1, &p->by);
		assert_int_equal(run.status, SKV_E_IO);
		assert_true(run.again);
		run = run_of(p->w, MIB, out, 3 * MIB, 3 * MIB, 1, iov);
		skv_engine_write(p->engine, &run, 1, &p->by);
		assert_int_equal(run.status, SKV_E_IO);
		assert_true(run.again); /* nothing of it was carried out */
		assert_true(atomic_load(&ground(p)->lost));
		/* The next ground has room, although files of the last one are still open. */
		assert_int_equal(skv_engine_open(p->engine, rootfd, "slab", false, &other, NULL), SKV_OK);
		assert_int_equal(ground(p)->users, 0);
		skv_engine_close(p->engine, other);
		close_files(p);
		open_files(p);
		assert_false(atomic_load(&ground(p)->lost));
		run = run_of(p->r, MIB, in, 3 * MIB, 3 * MIB, 1, iov);
		skv_engine_read(p->engine, &run, 1, &p->by);
		assert_int_equal(run.status, SKV_OK);
		assert_memory_equal(in, out, 3 * MIB);
	}
	free(out);
	free(in);
}

/* It goes while requests fly: nobody waits until their time is over. */
static void test_restart_in_flight(void **state)
{
	struct place *p = *state;
	uint8_t *data = calloc(1, MIB);

	assert_non_null(data);
	write_bytes(p, 0, data, MIB);
	for (int way = 0; way < 2; way++) {
		struct late l = { .p = p, .write = way == SKV_USRBIO_WRITE };
		pthread_t thread;

		knobs("hold=1");
		l.run = run_of(way ? p->w : p->r, 0, data, MIB, MIB, 1, l.iov);
		assert_int_equal(pthread_create(&thread, NULL, move_late, &l), 0);
		while (!in_use(ground(p), way))
			skv_usrbio_pool_wait(&ground(p)->pools[way], 1);
		restart();
		assert_int_equal(pthread_join(thread, NULL), 0);
		assert_int_equal(l.run.status, SKV_E_IO);
		if (!l.write)
			assert_true(l.run.again);
		else /* sent before or after: only the first may still be carried out */
			assert_true(l.run.again != l.run.loose);
		close_files(p);
		open_files(p);
	}
	free(data);
}

static const struct skv_usrbio_lib *true_lib;
static atomic_bool old_lives;
static atomic_uint questions;

static bool is_hf3fs(int fd)
{
	atomic_fetch_add(&questions, 1);
	return atomic_load(&old_lives) || true_lib->is_hf3fs(fd);
}

/* Another daemon over an old one that lives on, and may still write into the caller's memory: nobody tries once more
 * there before that has ended. */
static void test_nothing_is_read_again_where_the_old_daemon_may_write(void **state)
{
	struct place *p = *state, old = { .o = p->o, .by = p->by };
	struct skv_usrbio_lib lib;
	struct slabkv_pool *pool;
	struct late l = { .p = &old };
	uint8_t *data = shared_pool("contested", &pool);
	struct skv_error err;
	pthread_t thread;

	assert_int_equal(skv_usrbio_load(NULL, &true_lib, &err), SKV_OK);
	lib = *true_lib;
	lib.is_hf3fs = is_hf3fs;
	old.with = (struct skv_engine_options){ .depth = 64, .hf3fs = &p->o, .usrbio = &lib };
	assert_int_equal(skv_engine_usrbio.create(&old.with, &old.engine, &err), SKV_OK);
	open_files(&old);
	assert_int_equal(skv_engine_map(old.engine, data, 2 * MIB, &err), SKV_OK);
	write_bytes(&old, 0, data, 2 * MIB);
	knobs("hold=1");
	l.run = run_of(old.r, 0, data, 2 * MIB, 2 * MIB, 1, l.iov);
	assert_int_equal(pthread_create(&thread, NULL, move_late, &l), 0);
	while (!flying(ground(&old)))
		skv_usrbio_pool_wait(&ground(&old)->pools[SKV_USRBIO_READ], 1);
	atomic_store(&old_lives, true);
	restart();
	while (!atomic_load(&ground(&old)->lost))
		skv_usrbio_pool_wait(&ground(&old)->pools[SKV_USRBIO_READ], 1);
	for (unsigned before = atomic_load(&questions); atomic_load(&questions) < before + 2;)
		skv_usrbio_pool_wait(&ground(&old)->pools[SKV_USRBIO_READ], 1);
	assert_false(atomic_load(&l.done)); /* it has looked, and waits */
	atomic_store(&old_lives, false);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(l.run.status, SKV_E_IO);
	assert_true(l.run.again);
	skv_engine_unmap(old.engine, data);
	close_files(&old);
	old.engine->ops->destroy(old.engine);
	assert_int_equal(slabkv_pool_destroy(pool), SLABKV_OK);
}

/* ---- many ------------------------------------------------------------------------------------ */

#define THREADS 16

static void *mix(void *arg)
{
	struct late *l = arg;
	struct place *p = l->p;
	uint64_t at = l->run.offset;
	uint8_t *out = malloc(6 * MIB), *in = malloc(6 * MIB);
	struct iovec iov[8];

	for (int round = 0; round < 6; round++) {
		size_t n = round % 2 ? 700000 : MIB;
		int pieces = round % 3 + 1;
		struct skv_io_run run;

		fill(out, pieces * n, at + (uint64_t)round);
		run = run_of(p->w, at, out, n, n, pieces, iov);
		skv_engine_write(p->engine, &run, 1, &p->by);
		if (run.status != SKV_OK)
			break;
		run = run_of(p->r, at, in, n, n, pieces, iov);
		skv_engine_read(p->engine, &run, 1, &p->by);
		if (run.status != SKV_OK || run.done != run.length || memcmp(in, out, (pieces * n) & ~7ull) != 0)
			break;
		l->iov[0].iov_len++;
	}
	free(out);
	free(in);
	return NULL;
}

static void test_threads(void **state)
{
	struct place *p = *state;
	struct late l[THREADS];
	pthread_t threads[THREADS];

	knobs("delay_us=200 jitter_us=2000");
	for (int i = 0; i < THREADS; i++) {
		l[i] = (struct late){ .p = p, .run = { .offset = (uint64_t)i * 8 * MIB + 4096 } };
		assert_int_equal(pthread_create(&threads[i], NULL, mix, &l[i]), 0);
	}
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(l[i].iov[0].iov_len, 6);
	knobs("");
}

/* The n-th allocation fails, for every n: an error, nothing left behind, and it works afterwards. */
static void test_no_memory(void **state)
{
	struct place *p = *state;
	const struct skv_engine_options with = { .hf3fs = &p->o };
	static uint8_t data[65536];
	unsigned long n = 0, asked = 0;

	do {
		struct skv_engine_file *f = NULL;
		struct skv_engine *e = NULL;
		struct iovec iov[1];
		struct skv_io_run run = { 0 };

		skv_mem_fail_at(++n);
		if (skv_engine_usrbio.create(&with, &e, NULL) == SKV_OK &&
		    skv_engine_open(e, rootfd, "slab", true, &f, NULL) == SKV_OK) {
			run = run_of(f, 4096, data, sizeof data, sizeof data, 1, iov);
			skv_engine_write(e, &run, 1, &p->by);
			assert_int_equal(run.status, SKV_OK);
			skv_engine_read(e, &run, 1, &p->by);
			assert_int_equal(run.status, SKV_OK);
		}
		asked = skv_mem_count();
		skv_mem_fail_at(0);
		skv_engine_close(e, f);
		if (e)
			e->ops->destroy(e);
		if (asked < n)
			assert_int_equal(run.done, sizeof data);
	} while (asked >= n);
	assert_true(n > 10);
}

/* ---- what it says ---------------------------------------------------------------------------- */

static void expect_refusal(struct slabkv_hf3fs *o, int status, const char *field, const char *word)
{
	const struct skv_engine_options with = { .hf3fs = o };
	struct skv_engine *engine;
	struct skv_error err;

	assert_int_equal(skv_engine_usrbio.create(&with, &engine, &err), status);
	assert_string_equal(err.field, field);
	if (!strstr(err.message, word))
		fail_msg("'%s' is not in: %s", word, err.message);
}

static void test_refusals(void **state)
{
	struct place *p = *state;
	struct slabkv_hf3fs o = p->o;

	o.mount_point = "/nowhere/3fs";
	expect_refusal(&o, SKV_E_UNAVAILABLE, "hf3fs_mount_point", "/nowhere/3fs: No such file");
	o.mount_point = "/proc";
	expect_refusal(&o, SKV_E_FOREIGN, "hf3fs_mount_point", "does not lie on a mounted 3FS");
	o.mount_point = root;
	o.read_iov_size = 64ull << 40;
	expect_refusal(&o, SKV_E_NO_SPACE, "hf3fs_iov_size", "/dev/shm has");
	o.read_iov_size = 32 * MIB;
	knobs("fault=ring:ENOMEM:@3");
	expect_refusal(&o, SKV_E_UNAVAILABLE, "", "refused a ring");
	knobs("fault=shm:ENOMEM:@1");
	expect_refusal(&o, SKV_E_UNAVAILABLE, "", "refused a ring");
	knobs("");
}

/* Newer daemons take no negative depth: then everything queued is executed at once. */
static void test_depth(void **state)
{
	struct place *p = *state;
	const struct skv_engine_options with = { .hf3fs = &p->o };
	struct skv_engine *engine;
	struct skv_error err;

	knobs("negative_depth=0");
	assert_int_equal(skv_engine_usrbio.create(&with, &engine, &err), SKV_OK);
	engine->ops->destroy(engine);
	knobs("");
}

/* Not on 3FS: by the engine behind, and that is told. */
static void test_elsewhere(void **state)
{
	struct place *p = *state;
	char dir[] = "/tmp/skv-usrbio-XXXXXX", path[64];
	static uint8_t out[8192], in[8192];
	struct skv_engine *any;
	struct skv_engine_file *f;
	struct skv_error err, unused;
	struct iovec iov[1];
	struct skv_io_run run;
	const char *why;
	int other, fd;

	assert_non_null(mkdtemp(dir));
	other = open(dir, O_DIRECTORY | O_CLOEXEC);
	fd = openat(other, "plain", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(ftruncate(fd, 65536), 0);
	close(fd);
	assert_int_equal(skv_engine_make("auto", &p->with, &any, &unused, &err), SKV_OK);
	assert_string_not_equal(any->ops->told(any, &why), "usrbio");
	assert_int_equal(skv_engine_open(any, other, "plain", true, &f, &err), SKV_OK);
	fill(out, sizeof out, 5);
	run = run_of(f, 4096, out, sizeof out, sizeof out, 1, iov);
	skv_engine_write(any, &run, 1, &p->by);
	assert_int_equal(run.status, SKV_OK);
	assert_int_equal(skv_engine_sync(any, f), SKV_OK);
	run = run_of(f, 4096, in, sizeof in, sizeof in, 1, iov);
	skv_engine_read(any, &run, 1, &p->by);
	assert_int_equal(run.done, sizeof in);
	assert_memory_equal(in, out, sizeof in);
	skv_engine_close(any, f);
	assert_string_not_equal(any->ops->told(any, &why), "usrbio");
	/* The first file on 3FS makes it native. */
	assert_int_equal(skv_engine_open(any, rootfd, "slab", false, &f, &err), SKV_OK);
	assert_string_equal(any->ops->told(any, &why), "usrbio");
	assert_string_equal(why, "");
	skv_engine_close(any, f);
	any->ops->destroy(any);
	snprintf(path, sizeof path, "%s/plain", dir);
	unlink(path);
	rmdir(dir);
	close(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_bytes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_requests_are_large, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hole, setup, teardown),
		cmocka_unit_test_setup_teardown(test_errors, setup, teardown),
		cmocka_unit_test_setup_teardown(test_deadline, setup, teardown),
		cmocka_unit_test_setup_teardown(test_direct, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_answer, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_answer_direct, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_read_in_flight_is_not_reported_finished, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nothing_is_read_again_where_the_old_daemon_may_write, setup, teardown),
		cmocka_unit_test_setup_teardown(test_restart, setup, teardown),
		cmocka_unit_test_setup_teardown(test_restart_in_flight, setup, teardown),
		cmocka_unit_test_setup_teardown(test_threads, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refusals, setup, teardown),
		cmocka_unit_test_setup_teardown(test_depth, setup, teardown),
		cmocka_unit_test_setup_teardown(test_elsewhere, setup, teardown),
	};
	char command[128];
	int rc;

	snprintf(root, sizeof root, "/tmp/skv-3fs-XXXXXX");
	if (!mkdtemp(root))
		return 1;
	setenv("HF3FS_STANDIN_ROOT", root, 1);
	setenv("HF3FS_LIB", HF3FS_STANDIN, 1);
	rootfd = open(root, O_DIRECTORY | O_CLOEXEC);
	knobs("");
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	close(rootfd);
	snprintf(command, sizeof command, "rm -rf %s", root);
	(void)test_shell(command);
	return rc;
}
