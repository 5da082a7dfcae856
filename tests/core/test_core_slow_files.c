/*
 * test_core_slow_files.c - slab files that take long to make: the storage is used
 * meanwhile, and looked after.
 *
 * Cores with threads on a storage of type `file`, in real time. The test's fallocate(2) stops where
 * it is told to, and goes on, or fails, when it is told to.
 */
#include "core_env.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define KB 1024ull
#define UNIT (64 * KB)
#define LEASE_MS 600000u

static struct {
	struct skv_mutex lock;
	struct skv_cond wake;
	bool armed, inside, go;
	int error;
} gate;

int fallocate(int fd, int mode, off_t offset, off_t length)
{
	int error = 0;

	skv_mutex_lock(&gate.lock);
	if (gate.armed) {
		gate.armed = gate.go = false;
		gate.inside = true;
		while (!gate.go)
			skv_cond_wait_ms(&gate.wake, &gate.lock, 1000);
		gate.inside = false;
		error = gate.error;
	}
	skv_mutex_unlock(&gate.lock);
	errno = error;
	return error ? -1 : (int)syscall(SYS_fallocate, fd, mode, offset, length);
}

static void gate_arm(void)
{
	skv_mutex_lock(&gate.lock);
	gate.armed = true;
	skv_mutex_unlock(&gate.lock);
}

static void gate_open(int error)
{
	skv_mutex_lock(&gate.lock);
	gate.go = true;
	gate.error = error;
	skv_cond_broadcast(&gate.wake);
	skv_mutex_unlock(&gate.lock);
}

static bool gate_inside(void *ctx)
{
	bool inside;

	(void)ctx;
	skv_mutex_lock(&gate.lock);
	inside = gate.inside;
	skv_mutex_unlock(&gate.lock);
	return inside;
}

static void until(bool (*is)(void *ctx), void *ctx)
{
	for (int i = 0; i < 10000 && !is(ctx); i++)
		poll(NULL, 0, 2);
	assert_true(is(ctx));
}

/* ---- a manager ------------------------------------------------------------------------------- */

static char root[64];

static int group_setup(void **state)
{
	(void)state;
	skv_mutex_init(&gate.lock);
	skv_cond_init(&gate.wake);
	return 0;
}

static int setup(void **state)
{
	(void)state;
	snprintf(root, sizeof root, "/tmp/slabkv-slow-XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int unlink_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	return remove(path);
}

static int teardown(void **state)
{
	(void)state;
	return nftw(root, unlink_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void open_manager(struct env *e, const struct env *same_store)
{
	struct skv_store_options same =
		same_store ? same_store->store_options : (struct skv_store_options){ 0 };

	env_init(e);
	e->o.manual = false;
	e->o.clock = NULL;
	e->o.owner_lease_ms = LEASE_MS;
	if (same_store)
		e->store_options = same;
	assert_int_equal(skv_store_open(e->ops, &e->store_options, &e->store, &e->err), SKV_OK);
	e->o.store = e->store;
	env_create(e);
}

/* Files of three slots. */
static void make_objects(struct env *e)
{
	struct skv_storage_spec s = { .name = "s", .type = "file", .root = root,
				      .capacity = 64 * UNIT, .unit = UNIT,
				      .file_size = UNIT, .enabled = true };
	struct skv_spec spec = { "kv", 16 * KB };

	assert_int_equal(skv_cluster_wait_ready(e->cluster, 10000), SKV_OK);
	assert_int_equal(skv_cluster_storage_put(e->cluster, &s, SKV_PUT_ANY, NULL, &e->err),
			 SKV_OK);
	assert_int_equal(env_group(e, "g", 0, "s"), SKV_OK);
	assert_int_equal(env_instance(e, "i", "g", &spec, 1), SKV_OK);
}

struct waited {
	struct skv_arena arena;
	struct skv_error err;
	struct skv_start_req req;
	struct skv_start_res res;
	_Atomic int status;
};

static void on_done(void *ctx, int status)
{
	atomic_store(&((struct waited *)ctx)->status, status);
}

static bool is_over(void *ctx)
{
	return atomic_load(&((struct waited *)ctx)->status) != SKV_PENDING;
}

static void begin_start(struct env *e, struct waited *w, const struct skv_key *keys, uint32_t n)
{
	struct skv_done done = { on_done, w };
	int rc;

	memset(w, 0, sizeof *w);
	w->req = (struct skv_start_req){ .tenant = "t", .instance = "i", .request_id = "",
					 .keys = keys, .n_keys = n };
	skv_arena_init(&w->arena);
	atomic_store(&w->status, SKV_PENDING);
	rc = skv_core_start(e->core, &w->req, &w->res, &w->arena, &w->err, &done);
	if (rc != SKV_PENDING)
		atomic_store(&w->status, rc);
}

/* Starts and finishes; *committed may be NULL. */
static void put(struct env *e, const struct skv_key *keys, uint32_t n)
{
	struct skv_finish_req req = { .tenant = "t", .mask_kind = SKV_MASK_ALL };
	struct skv_finish_res res;
	struct waited w, f;
	struct skv_done done = { on_done, &f };
	int rc;

	begin_start(e, &w, keys, n);
	until(is_over, &w);
	assert_int_equal(atomic_load(&w.status), SKV_OK);
	assert_int_equal(w.res.n_write, n);
	memset(&f, 0, sizeof f);
	skv_arena_init(&f.arena);
	atomic_store(&f.status, SKV_PENDING);
	req.session = w.res.session;
	rc = skv_core_finish(e->core, &req, &res, &f.arena, &f.err, &done);
	if (rc != SKV_PENDING)
		atomic_store(&f.status, rc);
	until(is_over, &f);
	assert_int_equal(atomic_load(&f.status), SKV_OK);
	assert_int_equal(res.committed, n);
	skv_arena_destroy(&w.arena);
	skv_arena_destroy(&f.arena);
}

static bool is_ready(void *e)
{
	return skv_cluster_ready(((struct env *)e)->cluster, &((struct env *)e)->err) == SKV_OK;
}

static bool is_not_ready(void *e) { return !is_ready(e); }

/* ---- cases ----------------------------------------------------------------------------------- */

static void a_file_that_takes_long_is_no_hang(void **state)
{
	struct skv_key k[8];
	struct waited w;
	uint64_t begin;
	struct env e;
	char away[80];

	(void)state;
	open_manager(&e, NULL);
	make_objects(&e);
	env_keys(k, 8, 1, 1);
	put(&e, k, 2); /* of three slots */
	gate_arm();
	begin = skv_now_ms(&skv_clock_system);
	begin_start(&e, &w, k + 3, 3);
	until(gate_inside, NULL);
	while (!is_over(&w)) {
		/* five seconds: a start does not wait for it for ever, there is something to
		 * evict */
		uint32_t found = env_match(&e, k, 2);

		assert_true(found == 2 || skv_now_ms(&skv_clock_system) - begin >= 5000);
		assert_true(is_ready(&e));
		poll(NULL, 0, 20);
	}
	assert_true(skv_now_ms(&skv_clock_system) - begin >= 5000);
	/* a call into the file system that takes so long is a hang */
	for (; skv_now_ms(&skv_clock_system) - begin < 6500; poll(NULL, 0, 20))
		assert_true(is_ready(&e));
	assert_int_equal(atomic_load(&w.status), SKV_OK);
	assert_int_equal(w.res.n_write, 3);
	assert_true(is_ready(&e));
	assert_true(gate_inside(NULL));
	/* And the file system is looked at: gone it is unhealthy, back it is well, all the
	 * while. */
	snprintf(away, sizeof away, "%s.away", root);
	assert_int_equal(rename(root, away), 0);
	until(is_not_ready, &e);
	assert_true(gate_inside(NULL));
	assert_int_equal(rename(away, root), 0);
	until(is_ready, &e);
	assert_true(gate_inside(NULL));
	gate_open(0);
	put(&e, k, 3); /* in the new file */
	assert_int_equal(env_match(&e, k, 3), 3);
	env_check(&e);
	skv_arena_destroy(&w.arena);
	skv_cluster_shutdown(e.cluster);
	env_destroy(&e);
}

static bool is_standby(void *e)
{
	return skv_cluster_state_get(((struct env *)e)->cluster) == SKV_CORE_STANDBY;
}

static bool gate_left(void *ctx) { return !gate_inside(ctx); }

/* The first manager's file fails when it is the second one's, and full of its blocks. */
static void a_deposed_managers_failure_takes_nothing(void **state)
{
	struct skv_key k[8];
	struct waited w;
	struct env a, b;

	(void)state;
	open_manager(&a, NULL);
	make_objects(&a);
	env_keys(k, 8, 1, 1);
	put(&a, k, 3);
	gate_arm();
	begin_start(&a, &w, k + 3, 3);
	until(gate_inside, NULL);
	assert_int_equal(skv_cluster_demote(a.cluster, LEASE_MS, &a.err), SKV_OK);
	assert_true(is_standby(&a));
	assert_true(is_over(&w));
	open_manager(&b, &a);
	assert_int_equal(skv_cluster_wait_ready(b.cluster, 10000), SKV_OK);
	until(is_ready, &b);
	put(&b, k + 3, 3); /* in a file of the same number */
	assert_int_equal(env_match(&b, k, 6), 6);
	gate_open(ENOSPC);
	until(gate_left, NULL);
	skv_cluster_shutdown(a.cluster); /* the second thread of a has come back */
	env_destroy(&a);
	assert_int_equal(env_match(&b, k, 6), 6);
	skv_cluster_shutdown(b.cluster);
	env_crash(&b);
	skv_arena_destroy(&b.arena); /* made anew below */
	open_manager(&b, &b);
	/* the file is registered as it was */
	assert_int_equal(skv_cluster_wait_ready(b.cluster, 10000), SKV_OK);
	until(is_ready, &b);
	assert_int_equal(env_match(&b, k, 6), 6);
	env_check(&b);
	skv_arena_destroy(&w.arena);
	skv_cluster_shutdown(b.cluster);
	env_destroy(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_file_that_takes_long_is_no_hang, setup, teardown),
		cmocka_unit_test_setup_teardown(a_deposed_managers_failure_takes_nothing, setup,
						teardown),
	};

	env_quiet();
	return cmocka_run_group_tests(tests, group_setup, NULL);
}
