/*
 * test_pool.c - pools of buffers: exhaustion, pins, shared memory that is cleaned up after a crash
 * by its owner's pid and start time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "client.h"

static struct slabkv_pool *make(uint64_t bytes, uint64_t buffer, const char *shm)
{
	struct slabkv_pool_options o;
	struct slabkv_pool *pool;
	struct slabkv_error err;

	slabkv_pool_options_init(&o, sizeof o);
	o.bytes = bytes;
	o.buffer_bytes = buffer;
	o.numa_node = 0;
	if (shm) {
		o.kind = SLABKV_MEMORY_SHARED;
		o.shm_name = shm;
	}
	if (slabkv_pool_create(&o, &pool, &err) != SLABKV_OK)
		fail_msg("%s", err.message);
	return pool;
}

static struct slabkv *open_handle(const char *engine)
{
	struct slabkv_options o;
	struct slabkv *kv;

	slabkv_options_init(&o, sizeof o);
	o.engine = engine;
	assert_int_equal(slabkv_open(&o, &kv, NULL), SLABKV_OK);
	return kv;
}

static bool there(const char *shm)
{
	int fd = shm_open(shm, O_RDONLY, 0);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void a_pool_has_what_it_says(void **state)
{
	struct slabkv_pool *pool = make(10 * 8192 + 4096, 5000, NULL);
	struct slabkv_pool_info info = { .size = sizeof(struct slabkv_pool_info) };
	struct slabkv_buf b[11];

	(void)state;
	slabkv_pool_info(pool, &info);
	assert_int_equal(info.n_buffers, 10);
	assert_int_equal(info.bytes, 10 * 8192);
	assert_int_equal(info.stride, 8192);
	assert_int_equal(info.free, 10);
	for (uint32_t i = 0; i < 10; i++) {
		assert_int_equal(slabkv_pool_get(pool, 0, &b[i]), SLABKV_OK);
		assert_int_equal((uintptr_t)b[i].data % 4096, 0);
		assert_int_equal(b[i].size, 5000);
		memset(b[i].data, (int)i, 5000);
	}
	assert_int_equal(slabkv_pool_get(pool, 0, &b[10]), SLABKV_E_TOO_MANY);
	assert_int_equal(slabkv_pool_get(pool, 20, &b[10]), SLABKV_E_TOO_MANY);
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(((uint8_t *)b[i].data)[4999], i);
	assert_int_equal(slabkv_pool_destroy(pool), SLABKV_E_IN_USE);
	assert_int_equal(slabkv_pool_put(pool, (char *)b[3].data + 1), SLABKV_E_INVALID);
	assert_int_equal(slabkv_pool_put(pool, &info), SLABKV_E_INVALID);
	assert_int_equal(slabkv_pool_put(pool, b[3].data), SLABKV_OK);
	assert_int_equal(slabkv_pool_put(pool, b[3].data), SLABKV_E_INVALID); /* twice */
	assert_int_equal(slabkv_pool_get(pool, 0, &b[10]), SLABKV_OK);
	assert_ptr_equal(b[10].data, b[3].data);
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(slabkv_pool_put(pool, b[i].data), SLABKV_OK);
	assert_int_equal(slabkv_pool_destroy(pool), SLABKV_OK);
	assert_int_equal(slabkv_pool_destroy(NULL), SLABKV_OK);
}

static void options_are_checked(void **state)
{
	struct slabkv_pool_options o;
	struct slabkv_pool *pool;
	struct slabkv_error err;

	(void)state;
#define REFUSED(status, name)                                                                      \
	do {                                                                                       \
		assert_int_equal(slabkv_pool_create(&o, &pool, &err), status);                    \
		assert_string_equal(err.field, name);                                              \
	} while (0)
	slabkv_pool_options_init(&o, sizeof o);
	o.bytes = 1 << 20;
	REFUSED(SLABKV_E_INVALID, "buffer_bytes");
	o.buffer_bytes = UINT64_MAX;
	REFUSED(SLABKV_E_INVALID, "buffer_bytes");
	o.buffer_bytes = 2 << 20;
	REFUSED(SLABKV_E_INVALID, "bytes");
	o.buffer_bytes = 4096;
	o.numa_node = 4711;
	REFUSED(SLABKV_E_INVALID, "numa_node");
	o.numa_node = -1;
	o.kind = SLABKV_MEMORY_DEVICE;
	REFUSED(SLABKV_E_UNSUPPORTED, "kind");
	o.kind = SLABKV_MEMORY_SHARED;
	REFUSED(SLABKV_E_INVALID, "shm_name");
	o.shm_name = "../x";
	REFUSED(SLABKV_E_INVALID, "shm_name");
	o.shm_name = "x";
	o.kind = SLABKV_MEMORY_HOST;
	REFUSED(SLABKV_E_INVALID, "shm_name");
	o.kind = SLABKV_MEMORY_SHARED;
	o.bytes = 1ull << 50; /* more than any /dev/shm: an error, no SIGBUS later */
	o.buffer_bytes = 1ull << 40;
	REFUSED(SLABKV_E_NO_SPACE, "bytes");
#undef REFUSED
}

/* ---- pins ------------------------------------------------------------------------------------ */

static void pinned_buffers_come_back_later(void **state)
{
	struct slabkv *kv = open_handle("auto");
	struct slabkv_pool *pool = make(2 * 4096, 4096, NULL);
	struct slabkv_pool_info info = { .size = sizeof(struct slabkv_pool_info) };
	struct slabkv_buf a, b, c;
	struct skv_region *r, *other;

	(void)state;
	assert_null(skv_memory_pin(kv->memory, &info, 1));
	assert_int_equal(slabkv_pool_attach(kv, pool, NULL), SLABKV_OK);
	assert_int_equal(slabkv_pool_attach(kv, pool, NULL), SLABKV_E_CONFLICT);
	assert_int_equal(slabkv_pool_get(pool, 0, &a), SLABKV_OK);
	assert_int_equal(slabkv_pool_get(pool, 0, &b), SLABKV_OK);
	r = skv_memory_pin(kv->memory, (char *)a.data + 10, 4000);
	other = skv_memory_pin(kv->memory, a.data, 8192); /* both, should it come to that */
	assert_non_null(r);
	assert_int_equal(slabkv_pool_put(pool, a.data), SLABKV_OK);
	assert_int_equal(slabkv_pool_get(pool, 0, &c), SLABKV_E_TOO_MANY);
	slabkv_pool_info(pool, &info);
	assert_int_equal(info.leaving, 1);
	assert_int_equal(info.free, 0);
	assert_int_equal(slabkv_pool_detach(kv, pool), SLABKV_E_IN_USE);
	skv_memory_unpin(kv->memory, r, (char *)a.data + 10, 4000);
	assert_int_equal(slabkv_pool_get(pool, 0, &c), SLABKV_E_TOO_MANY);
	skv_memory_unpin(kv->memory, other, a.data, 8192);
	assert_int_equal(slabkv_pool_get(pool, 0, &c), SLABKV_OK);
	assert_ptr_equal(c.data, a.data);
	assert_int_equal(slabkv_pool_put(pool, b.data), SLABKV_OK);
	assert_int_equal(slabkv_pool_put(pool, c.data), SLABKV_OK);
	assert_int_equal(slabkv_pool_destroy(pool), SLABKV_E_IN_USE);
	assert_int_equal(slabkv_pool_detach(kv, pool), SLABKV_OK);
	assert_int_equal(slabkv_pool_detach(kv, pool), SLABKV_E_NOT_FOUND);
	assert_int_equal(slabkv_pool_attach(kv, pool, NULL), SLABKV_OK);
	slabkv_close(kv); /* lets go of it */
	assert_int_equal(slabkv_pool_destroy(pool), SLABKV_OK);
}

static void foreign_memory_is_registered(void **state)
{
	static char memory[3 * 4096];
	struct slabkv *kv = open_handle("auto");
	struct slabkv_error err;

	(void)state;
	assert_int_equal(slabkv_memory_register(kv, memory, 4096, SLABKV_MEMORY_DEVICE, &err),
			 SLABKV_E_UNSUPPORTED);
	assert_int_equal(slabkv_memory_register(kv, NULL, 4096, SLABKV_MEMORY_HOST, &err),
			 SLABKV_E_INVALID);
	assert_int_equal(slabkv_memory_register(kv, memory, 8192, SLABKV_MEMORY_HOST, &err),
			 SLABKV_OK);
	assert_int_equal(slabkv_memory_register(kv, memory + 8191, 1, SLABKV_MEMORY_HOST, &err),
			 SLABKV_E_CONFLICT);
	assert_int_equal(slabkv_memory_register(kv, memory + 8192, 1, SLABKV_MEMORY_HOST, &err),
			 SLABKV_OK);
	assert_int_equal(slabkv_memory_unregister(kv, memory + 1), SLABKV_E_NOT_FOUND);
	assert_int_equal(slabkv_memory_unregister(kv, memory), SLABKV_OK);
	slabkv_close(kv);
}

struct trader {
	struct slabkv_pool *pool;
	pthread_t thread;
	uint32_t wrong;
};

static void *trade(void *ctx)
{
	struct trader *t = ctx;
	struct slabkv_buf b;

	for (uint32_t i = 0; i < 3000; i++) {
		uint64_t mark = (uint64_t)(uintptr_t)t + i;

		if (slabkv_pool_get(t->pool, 10000, &b) != SLABKV_OK) {
			t->wrong++;
			continue;
		}
		memcpy(b.data, &mark, sizeof mark); /* nobody else has it */
		t->wrong += memcmp(b.data, &mark, sizeof mark) != 0;
		t->wrong += slabkv_pool_put(t->pool, b.data) != SLABKV_OK;
	}
	return NULL;
}

static void threads_wait_for_one_another(void **state)
{
	struct trader t[6];

	(void)state;
	t[0].pool = make(3 * 4096, 4096, NULL);
	for (int i = 0; i < 6; i++) {
		t[i] = (struct trader){ .pool = t[0].pool };
		assert_int_equal(pthread_create(&t[i].thread, NULL, trade, &t[i]), 0);
	}
	for (int i = 0; i < 6; i++) {
		pthread_join(t[i].thread, NULL);
		assert_int_equal(t[i].wrong, 0);
	}
	assert_int_equal(slabkv_pool_destroy(t[0].pool), SLABKV_OK);
}

/* ---- shared memory --------------------------------------------------------------------------- */

static void shared_pools_are_seen_by_name(void **state)
{
	struct slabkv_pool *pool = make(2 * 4096, 4096, "test-pool.1");
	struct slabkv_pool_options o;
	struct slabkv_pool_info info = { .size = sizeof(struct slabkv_pool_info) };
	struct slabkv_pool *twin;
	struct slabkv_buf b;
	const char *seen;
	int fd;

	(void)state;
	slabkv_pool_info(pool, &info);
	assert_int_equal(slabkv_pool_get(pool, 0, &b), SLABKV_OK);
	memcpy(b.data, "hello", 6);
	fd = shm_open(info.shm, O_RDONLY, 0);
	assert_true(fd >= 0);
	seen = mmap(NULL, info.bytes, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	assert_true(seen != MAP_FAILED);
	assert_string_equal(seen + ((char *)b.data - (char *)info.base), "hello");
	munmap((void *)(uintptr_t)seen, info.bytes);
	slabkv_pool_options_init(&o, sizeof o);
	o.bytes = o.buffer_bytes = 4096;
	o.kind = SLABKV_MEMORY_SHARED;
	o.shm_name = "test-pool.1";
	assert_int_equal(slabkv_pool_create(&o, &twin, NULL), SLABKV_E_IN_USE);
	assert_true(there(info.shm));
	assert_int_equal(slabkv_pool_put(pool, b.data), SLABKV_OK);
	assert_int_equal(slabkv_pool_destroy(pool), SLABKV_OK);
	assert_false(there(info.shm));
}

/* Crashes once and sweeps once: returns the sweep's result. */
static uint32_t crash_and_sweep(void)
{
	char name[200];
	int ends[2], status;
	siginfo_t dead;
	uint32_t removed;
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct slabkv_pool_info info = { .size = sizeof(struct slabkv_pool_info) };

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		slabkv_pool_info(make(1 << 20, 4096, "crash"), &info);
		if (write(ends[1], info.shm, sizeof info.shm) == (ssize_t)sizeof info.shm)
			pause();
		_exit(1);
	}
	assert_int_equal(read(ends[0], name, sizeof name), sizeof name);
	close(ends[0]);
	close(ends[1]);
	(void)slabkv_pool_sweep();
	assert_true(there(name)); /* the owner lives */
	assert_int_equal(kill(child, SIGKILL), 0);
	/* dead, but not reaped: its number is still taken */
	assert_int_equal(waitid(P_PID, (id_t)child, &dead, WEXITED | WNOWAIT), 0);
	removed = slabkv_pool_sweep();
	assert_false(there(name));
	assert_int_equal(waitpid(child, &status, 0), child);
	return removed;
}

/* Each process that makes shared memory on this machine sweeps first. So another process may have
 * been faster than this one, but not every time. */
static void what_a_crash_leaves_is_swept(void **state)
{
	int tries = 100;

	(void)state;
	while (crash_and_sweep() == 0)
		assert_true(--tries > 0);
}

static char state_of(pid_t pid)
{
	char path[64], line[512] = "";
	const char *p;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	assert_non_null(f);
	p = fgets(line, sizeof line, f) ? strrchr(line, ')') : NULL;
	fclose(f);
	assert_non_null(p);
	return p[2];
}

static int told[2];

static void *outlive(void *arg)
{
	struct slabkv_pool_info *info = arg;

	if (write(told[1], info->shm, sizeof info->shm) == (ssize_t)sizeof info->shm)
		pause();
	_exit(1);
}

/* The process's main thread has ended, so the kernel calls it a zombie; but another thread goes on
 * using the pool. */
static void a_process_without_its_main_thread_lives(void **state)
{
	static struct slabkv_pool_info info = { .size = sizeof(struct slabkv_pool_info) };
	pthread_t thread;
	char name[200];
	int status;
	pid_t child;

	(void)state;
	assert_int_equal(pipe(told), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		slabkv_pool_info(make(1 << 20, 4096, "headless"), &info);
		if (pthread_create(&thread, NULL, outlive, &info) == 0)
			pthread_exit(NULL);
		_exit(1);
	}
	assert_int_equal(read(told[0], name, sizeof name), sizeof name);
	while (state_of(child) != 'Z')
		sched_yield();
	(void)slabkv_pool_sweep();
	assert_true(there(name));
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	(void)slabkv_pool_sweep(); /* another process's may have been first */
	assert_false(there(name));
	close(told[0]);
	close(told[1]);
}

static void make_object(const char *name)
{
	int fd = shm_open(name, O_CREAT | O_RDWR | O_EXCL, 0600);

	assert_true(fd >= 0);
	close(fd);
}

/* Names made by hand: another start time, another namespace, old, no name of ours. */
static void only_the_owner_counts(void **state)
{
	struct slabkv_pool *pool = make(4096, 4096, "mine");
	const struct timespec old[2] = { { 1000, 0 }, { 1000, 0 } };
	unsigned long long space, pid, start;
	struct slabkv_pool_info info = { .size = sizeof(struct slabkv_pool_info) };
	char other[200], foreign[200], strange[200];
	int fd;

	(void)state;
	slabkv_pool_info(pool, &info);
	assert_int_equal(sscanf(info.shm, "/slabkv-mine-%llu-%llu-%llu", &space, &pid, &start), 3);
	assert_int_equal(pid, getpid());
	snprintf(other, sizeof other, "/slabkv-mine-%llu-%llu-%llu", space, pid, start - 1);
	snprintf(foreign, sizeof foreign, "/slabkv-mine-%llu-%llu-%llu", space + 1, pid, start - 1);
	snprintf(strange, sizeof strange, "/slabkv-mine-%llu-%llu-x%d", space, pid, getpid());
	make_object(other);
	make_object(foreign);
	make_object(strange);
	fd = shm_open(info.shm, O_RDWR, 0);
	assert_int_equal(futimens(fd, old), 0);
	close(fd);
	(void)slabkv_pool_sweep();
	assert_false(there(other)); /* the process is gone, its number is used again */
	assert_true(there(foreign) && there(strange) && there(info.shm));
	shm_unlink(foreign);
	shm_unlink(strange);
	assert_int_equal(slabkv_pool_destroy(pool), SLABKV_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pool_has_what_it_says),
		cmocka_unit_test(options_are_checked),
		cmocka_unit_test(pinned_buffers_come_back_later),
		cmocka_unit_test(foreign_memory_is_registered),
		cmocka_unit_test(threads_wait_for_one_another),
		cmocka_unit_test(shared_pools_are_seen_by_name),
		cmocka_unit_test(what_a_crash_leaves_is_swept),
		cmocka_unit_test(a_process_without_its_main_thread_lives),
		cmocka_unit_test(only_the_owner_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
