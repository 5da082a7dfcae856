/*
 * test_usrbio.c - the engine "usrbio" on the stand-in for 3FS's client library (tests/usrbio):
 * bytes, holes, errors, deadlines, memory that it may use directly, and what it says when it cannot
 * work. What comes late, or never, is in test_usrbio_late.c.
 */
#include "usrbio_place.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <skv/hash.h>
#include <skv/mem.h>

#include "support/shell.h"

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
		assert_false(w.in_flight);
		skv_engine_read(p->engine, &r, 1, &p->by);
		assert_int_equal(r.status, SKV_OK);
		assert_int_equal(r.done, 7 * n);
		assert_int_equal(r.ended_ms, 1000);
		assert_memory_equal(out, in, 7 * stride);
		free(out);
		free(in);
	}
	assert_int_equal(conn(p)->pools[SKV_USRBIO_READ].n_used, 0);
	assert_int_equal(conn(p)->pools[SKV_USRBIO_WRITE].n_used, 0);
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

struct meanwhile {
	const struct skv_io_run *run;
	const uint8_t *text; /* of a read: what arrives */
	uint32_t turns;
};

static bool meanwhile(void *ctx)
{
	struct meanwhile *m = ctx;

	if (m->text) {
		assert_true(m->run->arrived <= m->run->length);
		assert_memory_equal(m->run->iov[0].iov_base, m->text, m->run->arrived);
	}
	return ++m->turns % 3; /* now and then there is none */
}

/* Checksums are computed while requests fly, those of reads over what has arrived so far. */
static void test_work_meanwhile(void **state)
{
	struct place *p = *state;
	const size_t n = 32 * MIB;
	uint8_t *out = malloc(n), *in = calloc(1, n);
	struct iovec iov[1], vio[1];
	struct skv_io_run w = run_of(p->w, 4096, out, n, n, 1, iov);
	struct skv_io_run r = run_of(p->r, 4096, in, n, n, 1, vio);
	struct meanwhile m = { .run = &w };

	assert_true(out && in);
	fill(out, n, 5);
	p->by.work = meanwhile;
	p->by.ctx = &m;
	skv_engine_write(p->engine, &w, 1, &p->by);
	assert_true(w.done == n && m.turns > 0);
	m = (struct meanwhile){ .run = &r, .text = out };
	skv_engine_read(p->engine, &r, 1, &p->by);
	assert_true(r.done == n && r.arrived == n && m.turns > 0);
	p->by.work = NULL;
	free(out);
	free(in);
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
		{ "fault=read:EIO:@2", false, SKV_E_IO },
		{ "fault=read:EREMOTEIO:@2", false, SKV_E_IO },
		{ "fault=write:ENOSPC:@2", true, SKV_E_NO_SPACE },
		{ "fault=write:EREMOTEIO:@2", true, SKV_E_IO },
		{ "fault=write:EIO:@2:torn", true, SKV_E_IO },
		{ "fault=read:EINVAL:@2", false, SKV_E_IO },
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
			run[k] = run_of(cases[i].write ? p->w : p->r, 0, data, 4 * MIB, 4 * MIB, 1,
					iov);
			if (cases[i].write)
				skv_engine_write(p->engine, &run[k], 1, &p->by);
			else
				skv_engine_read(p->engine, &run[k], 1, &p->by);
		}
		assert_int_equal(run[0].status, SKV_OK);
		assert_int_equal(run[0].done, 4 * MIB);
		assert_int_equal(run[1].status, cases[i].status);
		assert_int_equal(run[1].done, 0);
		/* the daemon is the same: nothing would be better a second time */
		assert_false(run[1].again);
		assert_false(run[1].in_flight);
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
	assert_false(run.in_flight);
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
	struct slabkv_pool_info info = { .size = sizeof(struct slabkv_pool_info) };
	struct place *p = *state;
	struct slabkv_pool *pool;
	struct slabkv_error e;
	struct skv_error err;
	struct iovec iov[4];
	struct skv_io_run run[2];
	uint8_t *base;

	slabkv_pool_options_init(&o, sizeof o);
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
	assert_int_equal(conn(p)->pools[SKV_USRBIO_WRITE].next, 0); /* no buffer was ever taken */
	run[0] = run_of(p->r, 4096, base + 8 * MIB, 4 * MIB, 4 * MIB, 2, iov);
	skv_engine_read(p->engine, run, 1, &p->by);
	assert_int_equal(run[0].status, SKV_OK);
	assert_int_equal(run[0].done, 8 * MIB);
	assert_memory_equal(base, base + 8 * MIB, 8 * MIB);
	assert_int_equal(conn(p)->pools[SKV_USRBIO_READ].next, 0);
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

/* ---- many ------------------------------------------------------------------------------------ */

#define THREADS 16

struct mixer {
	struct place *p;
	uint64_t at;
	int good; /* rounds */
};

static void *mix(void *arg)
{
	struct mixer *l = arg;
	struct place *p = l->p;
	uint64_t at = l->at;
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
		if (run.status != SKV_OK || run.done != run.length ||
		    memcmp(in, out, (pieces * n) & ~7ull) != 0)
			break;
		l->good++;
	}
	free(out);
	free(in);
	return NULL;
}

static void test_threads(void **state)
{
	struct place *p = *state;
	struct mixer l[THREADS];
	pthread_t threads[THREADS];

	knobs("delay_us=200 jitter_us=2000");
	for (int i = 0; i < THREADS; i++) {
		l[i] = (struct mixer){ .p = p, .at = (uint64_t)i * 8 * MIB + 4096 };
		assert_int_equal(pthread_create(&threads[i], NULL, mix, &l[i]), 0);
	}
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(l[i].good, 6);
	knobs("");
}

/* The n-th allocation fails, for every n: an error, nothing left behind, and it works
 * afterwards. */
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

static void expect_refusal(struct skv_hf3fs_options *o, int status, const char *field,
			   const char *word)
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
	struct skv_hf3fs_options o = p->o;

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
		cmocka_unit_test_setup_teardown(test_work_meanwhile, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hole, setup, teardown),
		cmocka_unit_test_setup_teardown(test_errors, setup, teardown),
		cmocka_unit_test_setup_teardown(test_deadline, setup, teardown),
		cmocka_unit_test_setup_teardown(test_direct, setup, teardown),
		cmocka_unit_test_setup_teardown(test_threads, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refusals, setup, teardown),
		cmocka_unit_test_setup_teardown(test_depth, setup, teardown),
		cmocka_unit_test_setup_teardown(test_elsewhere, setup, teardown),
	};
	int rc;

	if (place_begin() != 0)
		return 1;
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	place_end();
	return rc;
}
