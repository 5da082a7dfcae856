/*
 * test_core_health.c - a file system that answers some calls and keeps others: writes and reads are
 * judged apart, each by its own calls.
 *
 * A core with threads on a storage of type `file`, in real time. The test's pread(2) and fsync(2)
 * keep calls on files of some names until they are let go.
 */
#include "core_env.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <shell.h>

#define BLOCK 65536u
#define UNIT (1ull << 20)
#define SLOTS 15u /* of a file of one unit */
#define FILES 6u
#define ALL (FILES * SLOTS)
#define PATIENCE_MS 20000u /* on a busy machine */
#define HANG_MS 5000u

static struct env e;
static char top[64];
static struct skv_key keys[ALL];

/* ---- a file system that keeps calls ---------------------------------------------------------- */

static struct {
	struct skv_mutex lock;
	struct skv_cond wake;
	const char *name[FILES + 1]; /* calls on files whose paths hold one of these wait */
	unsigned n;
	unsigned fsyncs;
	unsigned written; /* blocks; while `moves` a sync returns only after one more */
	bool moves;
} stuck;

ssize_t __real_pread(int fd, void *out, size_t n, off_t at);
ssize_t __wrap_pread(int fd, void *out, size_t n, off_t at);
int __real_fsync(int fd);
int __wrap_fsync(int fd);

static bool is_stuck(const char *path)
{
	for (unsigned i = 0; i < stuck.n; i++)
		if (strstr(path, stuck.name[i]))
			return true;
	return false;
}

static void wait_for(int fd)
{
	char link[64], path[256];
	ssize_t len;

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	len = readlink(link, path, sizeof path - 1);
	path[len < 0 ? 0 : len] = '\0';
	skv_mutex_lock(&stuck.lock);
	while (is_stuck(path))
		skv_cond_wait_ms(&stuck.wake, &stuck.lock, 1000);
	skv_mutex_unlock(&stuck.lock);
}

ssize_t __wrap_pread(int fd, void *out, size_t n, off_t at)
{
	wait_for(fd);
	return __real_pread(fd, out, n, at);
}

int __wrap_fsync(int fd)
{
	unsigned before;

	skv_mutex_lock(&stuck.lock);
	stuck.fsyncs++;
	before = stuck.written;
	while (stuck.moves && stuck.written == before)
		skv_cond_wait_ms(&stuck.wake, &stuck.lock, 1000);
	skv_mutex_unlock(&stuck.lock);
	wait_for(fd);
	return __real_fsync(fd);
}

static void stick(const char *name)
{
	skv_mutex_lock(&stuck.lock);
	assert_true(stuck.n <= FILES);
	stuck.name[stuck.n++] = name;
	skv_mutex_unlock(&stuck.lock);
}

static void let_go(void)
{
	skv_mutex_lock(&stuck.lock);
	stuck.n = 0;
	skv_cond_broadcast(&stuck.wake);
	skv_mutex_unlock(&stuck.lock);
}

/* ---- a manager ------------------------------------------------------------------------------- */

static bool takes(void) { return skv_cluster_ready(e.cluster, &e.err) == SKV_OK; }
static bool serves(void) { return env_match(&e, keys, ALL) == ALL; }
static bool hides(void) { return env_match(&e, keys, ALL) == 0; }

static struct skv_core_counters counted(void)
{
	struct skv_core_counters c;

	skv_cluster_counters_get(e.cluster, &c);
	return c;
}

/* Returns after how many ms it was so. */
static uint64_t until(bool (*is)(void), uint64_t most_ms)
{
	const uint64_t begin = skv_now_ms(&skv_clock_system);
	uint64_t took = 0;

	for (; !is() && took <= most_ms; took = skv_now_ms(&skv_clock_system) - begin)
		poll(NULL, 0, 10);
	assert_true(is());
	return took;
}

static bool is_told(void) { return counted().storage_unread == 1; }

static void always(bool (*is)(void), uint64_t ms)
{
	const uint64_t begin = skv_now_ms(&skv_clock_system);

	for (; skv_now_ms(&skv_clock_system) - begin < ms; poll(NULL, 0, 10))
		assert_true(is());
}

static void wait_done(void *ctx, int status) { atomic_store((_Atomic int *)ctx, status); }

static int settled(int rc, _Atomic int *status)
{
	while (rc == SKV_PENDING && atomic_load(status) == SKV_PENDING)
		poll(NULL, 0, 1);
	return rc == SKV_PENDING ? atomic_load(status) : rc;
}

static void put(const struct skv_key *k, uint32_t n)
{
	struct skv_start_req start = { .tenant = "t", .instance = "i", .request_id = "",
				       .keys = k, .n_keys = n };
	struct skv_finish_req finish = { .tenant = "t", .mask_kind = SKV_MASK_ALL };
	struct skv_start_res started;
	struct skv_finish_res finished;
	_Atomic int status = SKV_PENDING;
	struct skv_done done = { wait_done, &status };

	int rc;

	skv_arena_reset(&e.arena);
	rc = settled(skv_core_start(e.core, &start, &started, &e.arena, &e.err, &done), &status);
	if (rc != SKV_OK)
		print_error("start: %s\n", e.err.message);
	assert_int_equal(rc, SKV_OK);
	assert_int_equal(started.n_write, n);
	finish.session = started.session;
	atomic_store(&status, SKV_PENDING);
	assert_int_equal(settled(skv_core_finish(e.core, &finish, &finished, &e.arena, &e.err,
						 &done),
				 &status),
			 SKV_OK);
	assert_int_equal(finished.committed, n);
}

static int setup(void **state)
{
	char root[80];
	struct skv_storage_spec s = { .name = "s", .type = "file", .root = root,
				      .capacity = FILES * UNIT, .unit = UNIT,
				      .file_size = UNIT, .enabled = true };
	struct skv_spec spec = { "kv", BLOCK };

	(void)state;
	skv_mutex_init(&stuck.lock);
	skv_cond_init(&stuck.wake);
	snprintf(top, sizeof top, "/tmp/skv-health-XXXXXX");
	assert_non_null(mkdtemp(top));
	snprintf(root, sizeof root, "%s/s", top);
	env_init(&e);
	e.o.manual = false;
	e.o.clock = NULL;
	e.o.owner_lease_ms = 600000;
	assert_int_equal(skv_store_open(e.ops, &e.store_options, &e.store, &e.err), SKV_OK);
	e.o.store = e.store;
	env_create(&e);
	assert_int_equal(skv_cluster_wait_ready(e.cluster, 10000), SKV_OK);
	assert_int_equal(skv_cluster_storage_put(e.cluster, &s, SKV_PUT_ANY, NULL, &e.err),
			 SKV_OK);
	assert_int_equal(env_group(&e, "g", 0, "s"), SKV_OK);
	assert_int_equal(env_instance(&e, "i", "g", &spec, 1), SKV_OK);
	env_keys(keys, ALL, 1, 0);
	for (uint32_t i = 0; i < ALL; i += SLOTS)
		put(keys + i, SLOTS);
	return 0;
}

static int teardown(void **state)
{
	char command[96];

	(void)state;
	let_go();
	env_check(&e);
	skv_cluster_shutdown(e.cluster);
	env_destroy(&e);
	snprintf(command, sizeof command, "rm -rf %s", top);
	return test_shell(command);
}

/* ---- scenes ---------------------------------------------------------------------------------- */

static void set_moves(bool on)
{
	skv_mutex_lock(&stuck.lock);
	stuck.moves = on;
	skv_cond_broadcast(&stuck.wake);
	skv_mutex_unlock(&stuck.lock);
}

static void write_one(struct skv_key *fresh)
{
	fresh->lo++;
	put(fresh, 1);
	skv_mutex_lock(&stuck.lock);
	stuck.written++;
	skv_cond_broadcast(&stuck.wake);
	skv_mutex_unlock(&stuck.lock);
}

static unsigned fsyncs(void)
{
	unsigned n;

	skv_mutex_lock(&stuck.lock);
	n = stuck.fsyncs;
	skv_mutex_unlock(&stuck.lock);
	return n;
}

/* A step of the storage is a probe and, where the journal moves, a note of its end: a few syncs.
 * One is due each second, and one when the ticker asks for a note. No step follows from a step. */
static void steps_do_not_chase_each_other(void **state)
{
	const struct { bool writes; unsigned most; } cases[] = { { false, 4 }, { true, 12 } };
	struct skv_key fresh = { 9, 0 };

	(void)state;
	until(takes, PATIENCE_MS);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		const uint64_t begin = skv_now_ms(&skv_clock_system);
		const unsigned before = fsyncs();
		uint64_t took;

		set_moves(cases[i].writes);
		while ((took = skv_now_ms(&skv_clock_system) - begin) < 2000) {
			if (cases[i].writes)
				write_one(&fresh);
			else
				poll(NULL, 0, 10);
		}
		set_moves(false);
		assert_in_range(fsyncs() - before, 1, cases[i].most * (1 + took / 1000));
	}
}

/* Half of the slab files, and the write that is tried. More files than are checked at a time. */
static void lost_nodes_stop_writes_alone(void **state)
{
	(void)state;
	until(takes, PATIENCE_MS);
	stick(".slabkv-probe");
	stick("slab-00000001.kvs");
	stick("slab-00000002.kvs");
	stick("slab-00000003.kvs");
	stick("slab-00000004.kvs");
	always(serves, HANG_MS + 3000);
	assert_false(takes());
	assert_string_equal(e.err.message[0] ? "told" : "", "told");
	let_go();
	printf("healthy %llu ms after its answers came\n",
	       (unsigned long long)until(takes, PATIENCE_MS));
	assert_true(serves());
	assert_int_equal(counted().storage_hung, 1);
	assert_int_equal(counted().storage_unread, 0);
}

/* The superblocks of all slab files, but not the marker: other bytes of them may be read. */
static void slab_files_that_wait_hide_nothing(void **state)
{
	(void)state;
	until(takes, PATIENCE_MS);
	stick("slab-");
	always(serves, HANG_MS + 2000);
	let_go();
	printf("healthy %llu ms after its answers came\n",
	       (unsigned long long)until(takes, PATIENCE_MS));
	assert_int_equal(counted().storage_unread, 0);
}

static void reads_stop_when_no_file_can_be_read(void **state)
{
	uint64_t took;

	(void)state;
	until(takes, PATIENCE_MS);
	stick("slab-");
	stick("slabkv-storage");
	took = until(hides, HANG_MS + PATIENCE_MS);
	assert_true(took >= HANG_MS - 100);
	until(is_told, PATIENCE_MS);
	assert_false(takes());
	let_go();
	until(serves, PATIENCE_MS);
	until(takes, PATIENCE_MS);
}

/* The handle of a call that never returns is kept for it; all else goes on with another one. */
static void a_stuck_read_does_not_keep_the_root(void **state)
{
	char away[80], root[80];

	(void)state;
	snprintf(root, sizeof root, "%s/s", top);
	snprintf(away, sizeof away, "%s/away", top);
	until(takes, PATIENCE_MS);
	stick("slab-00000002.kvs");
	poll(NULL, 0, FILES * 1000 + 500); /* until it was its turn */
	assert_int_equal(rename(root, away), 0);
	until(hides, PATIENCE_MS);
	assert_int_equal(rename(away, root), 0);
	until(serves, PATIENCE_MS);
	until(takes, PATIENCE_MS);
	always(serves, HANG_MS);
}

int main(void)
{
#define SCENE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		SCENE(steps_do_not_chase_each_other),
		SCENE(lost_nodes_stop_writes_alone),
		SCENE(slab_files_that_wait_hide_nothing),
		SCENE(reads_stop_when_no_file_can_be_read),
		SCENE(a_stuck_read_does_not_keep_the_root),
	};

	env_quiet();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
