/*
 * test_usrbio_late.c - the engine "usrbio" when requests do not come back, and when the daemon is
 * another one: what is given up, what is waited for, and whose memory nobody touches any more.
 */
#include "usrbio_place.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

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
static bool comes_back(struct skv_usrbio_conn *g, enum skv_usrbio_way way)
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
		while (!in_use(conn(p), way))
			skv_usrbio_pool_wait(&conn(p)->pools[way], 1);
		while (atomic_load(&conn(p)->orphaned[way]) == 0) {
			skv_fake_clock_advance(&p->clock, p->o.read_timeout_ms);
			skv_usrbio_pool_wait(&conn(p)->pools[way], 1);
		}
		assert_int_equal(pthread_join(thread, NULL), 0);
		assert_int_equal(l.run.status, SKV_E_IO);
		assert_int_equal(l.run.done, 0);
		assert_int_equal(l.run.in_flight, l.write);
		assert_false(l.run.again);
		/* The caller has its memory back: what arrives late does not reach it. */
		memset(data, 0x55, MIB);
		knobs("");
		assert_true(comes_back(conn(p), way));
		assert_true(count(way ? COUNT_write_ios : COUNT_read_ios) > before);
		for (size_t i = 0; i < MIB; i++)
			assert_int_equal(data[i], 0x55);
	}
	free(data);
}

static uint8_t *shared_pool(const char *name, struct slabkv_pool **pool)
{
	struct slabkv_pool_options o;
	struct slabkv_pool_info info = { .size = sizeof(struct slabkv_pool_info) };

	slabkv_pool_options_init(&o, sizeof o);
	o.bytes = o.buffer_bytes = 2 * MIB;
	o.kind = SLABKV_MEMORY_SHARED;
	o.shm_name = name;
	assert_int_equal(slabkv_pool_create(&o, pool, NULL), SLABKV_OK);
	slabkv_pool_info(*pool, &info);
	return info.base;
}

static bool overdue(struct skv_usrbio_conn *g, enum skv_usrbio_way way)
{
	bool some = false;

	for (uint32_t i = 0; i < g->n_rings; i++) {
		struct skv_usrbio_ring *r = &g->rings[way][i];

		skv_mutex_lock(&r->lock);
		for (uint32_t k = 0; k < r->entries; k++)
			some |= r->ios[k].flying && r->ios[k].overdue;
		skv_mutex_unlock(&r->lock);
	}
	return some;
}

static bool flying(struct skv_usrbio_conn *g)
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

/* A transfer in the caller's memory ends only when the I/O has: no bytes arrive later in memory
 * that the caller keeps, nor is that memory written. */
static void in_flight_is_not_finished(struct place *p, enum skv_usrbio_way way)
{
	struct slabkv_pool *pool;
	struct late l = { .p = p, .write = way == SKV_USRBIO_WRITE };
	uint8_t *data = shared_pool("landing", &pool), *want = calloc(1, 2 * MIB),
		*there = calloc(1, 2 * MIB);
	struct skv_error err;
	pthread_t thread;

	assert_non_null(want);
	assert_non_null(there);
	assert_int_equal(skv_engine_map(p->engine, data, 2 * MIB, &err), SKV_OK);
	fill(want, 2 * MIB, 9);
	if (l.write)
		memcpy(data, want, 2 * MIB);
	else
		write_bytes(p, 0, want, 2 * MIB);
	knobs("hold=1");
	l.run = run_of(l.write ? p->w : p->r, 0, data, 2 * MIB, 2 * MIB, 1, l.iov);
	assert_int_equal(pthread_create(&thread, NULL, move_late, &l), 0);
	for (int i = 0; !overdue(conn(p), way) || i < 5; i++) {
		if (atomic_load(&l.done)) {
			memset(data, 0x55, 2 * MIB); /* the caller has it back */
			break;
		}
		skv_fake_clock_advance(&p->clock, p->o.read_timeout_ms + p->o.write_timeout_ms);
		skv_usrbio_pool_wait(&conn(p)->pools[way], 1);
	}
	assert_false(atomic_load(&l.done));
	knobs("");
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(l.run.status, SKV_OK);
	assert_int_equal(l.run.done, 2 * MIB);
	assert_false(l.run.in_flight);
	if (l.write) {
		memset(data, 0x55, 2 * MIB);
		l.run = run_of(p->r, 0, there, 2 * MIB, 2 * MIB, 1, l.iov);
		skv_engine_read(p->engine, &l.run, 1, &p->by);
		assert_int_equal(l.run.done, 2 * MIB);
	}
	assert_memory_equal(l.write ? there : data, want, 2 * MIB);
	skv_engine_unmap(p->engine, data);
	assert_int_equal(slabkv_pool_destroy(pool), SLABKV_OK);
	free(want);
	free(there);
}

static void test_a_read_in_flight_is_not_reported_finished(void **state)
{
	in_flight_is_not_finished(*state, SKV_USRBIO_READ);
}

static void test_a_write_in_flight_is_not_reported_finished(void **state)
{
	in_flight_is_not_finished(*state, SKV_USRBIO_WRITE);
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
		assert_true(atomic_load(&conn(p)->lost));
		/* The next connection has room, although files of the last one are still open. */
		assert_int_equal(skv_engine_open(p->engine, rootfd, "slab", false, &other, NULL),
				 SKV_OK);
		assert_int_equal(conn(p)->users, 0);
		skv_engine_close(p->engine, other);
		close_files(p);
		open_files(p);
		assert_false(atomic_load(&conn(p)->lost));
		run = run_of(p->r, MIB, in, 3 * MIB, 3 * MIB, 1, iov);
		skv_engine_read(p->engine, &run, 1, &p->by);
		assert_int_equal(run.status, SKV_OK);
		assert_memory_equal(in, out, 3 * MIB);
	}
	free(out);
	free(in);
}

/* A restart that nobody has noticed: a file of the new daemon gets a connection to that one. With
 * the old one its writes would be waited for as long as the new daemon lives. */
static void test_opened_after_a_restart(void **state)
{
	struct place *p = *state;
	struct slabkv_pool *pool;
	uint8_t *data = shared_pool("opened", &pool), *want = calloc(1, 2 * MIB);
	struct skv_engine_file *other;
	struct skv_usrbio_conn *g;
	struct skv_io_run run;
	struct skv_error err;
	struct iovec iov[1];

	assert_non_null(want);
	fill(want, 2 * MIB, 11);
	assert_int_equal(skv_engine_map(p->engine, data, 2 * MIB, &err), SKV_OK);
	assert_false(atomic_load(&conn(p)->lost));
	restart();
	assert_int_equal(skv_engine_open(p->engine, rootfd, "slab", true, &other, &err), SKV_OK);
	g = ((struct skv_usrbio_file *)other)->conn;
	assert_ptr_not_equal(g, conn(p));
	assert_true(atomic_load(&conn(p)->lost));
	memcpy(data, want, 2 * MIB);
	run = run_of(other, 0, data, 2 * MIB, 2 * MIB, 1, iov);
	skv_engine_write(p->engine, &run, 1, &p->by);
	assert_int_equal(run.status, SKV_OK);
	skv_engine_close(p->engine, other);
	close_files(p);
	open_files(p);
	memset(data, 0, 2 * MIB);
	run = run_of(p->r, 0, data, 2 * MIB, 2 * MIB, 1, iov);
	skv_engine_read(p->engine, &run, 1, &p->by);
	assert_int_equal(run.status, SKV_OK);
	assert_memory_equal(data, want, 2 * MIB);
	skv_engine_unmap(p->engine, data);
	assert_int_equal(slabkv_pool_destroy(pool), SLABKV_OK);
	free(want);
}

/* The daemon goes while requests are in flight: no caller waits until their time is over. */
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
		while (!in_use(conn(p), way))
			skv_usrbio_pool_wait(&conn(p)->pools[way], 1);
		restart();
		assert_int_equal(pthread_join(thread, NULL), 0);
		assert_int_equal(l.run.status, SKV_E_IO);
		if (!l.write)
			assert_true(l.run.again);
		else /* sent before or after: only the first may still be carried out */
			assert_true(l.run.again != l.run.in_flight);
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

/* Another daemon over an old one that lives on, and may still write into the caller's memory:
 * nobody tries once more there before that has ended. */
static void test_not_read_again_where_the_old_daemon_may_write(void **state)
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
	while (!flying(conn(&old)))
		skv_usrbio_pool_wait(&conn(&old)->pools[SKV_USRBIO_READ], 1);
	atomic_store(&old_lives, true);
	restart();
	while (!atomic_load(&conn(&old)->lost))
		skv_usrbio_pool_wait(&conn(&old)->pools[SKV_USRBIO_READ], 1);
	for (unsigned before = atomic_load(&questions);
	     atomic_load(&questions) < before + 2 && !atomic_load(&l.done);)
		skv_usrbio_pool_wait(&conn(&old)->pools[SKV_USRBIO_READ], 1);
	assert_false(atomic_load(&l.done)); /* the thread has looked, and waits */
	atomic_store(&old_lives, false);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(l.run.status, SKV_E_IO);
	assert_true(l.run.again);
	skv_engine_unmap(old.engine, data);
	close_files(&old);
	old.engine->ops->destroy(old.engine);
	assert_int_equal(slabkv_pool_destroy(pool), SLABKV_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_no_answer, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_read_in_flight_is_not_reported_finished,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_write_in_flight_is_not_reported_finished,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_not_read_again_where_the_old_daemon_may_write,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_restart, setup, teardown),
		cmocka_unit_test_setup_teardown(test_opened_after_a_restart, setup, teardown),
		cmocka_unit_test_setup_teardown(test_restart_in_flight, setup, teardown),
	};
	int rc;

	if (place_begin() != 0)
		return 1;
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	place_end();
	return rc;
}
