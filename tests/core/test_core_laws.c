/*
 * test_core_laws.c - scenes in which the core once broke one of its laws. Each says which.
 *
 * A store that calls back in the middle of a call (hook) makes the interleavings of threads happen
 * in one thread: the core holds no lock while it calls the store.
 */
#include "core_env.h"

#include <dirent.h>
#include <signal.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define KB 1024ull
#define MB (1024 * KB)
#define BOOT_A "aaaaaaaa-0000-4000-8000-000000000001"
#define BOOT_B "bbbbbbbb-0000-4000-8000-000000000002"

/* ---- the store with hooks -------------------------------------------------------------------- */

static struct skv_store_ops hooked;
static struct hooks {
	int (*append)(unsigned n); /* SKV_OK = go on; else the call's result */
	void (*slice)(void);
	int (*put)(const char *key, bool after);
	int (*del)(const char *key);
	void (*get)(const char *key);
	unsigned appends;
	bool inside;
} hook;

static int hook_append(void *self, uint32_t partition, uint64_t fence, uint64_t seq,
		       const void *bytes, size_t n, unsigned flags, struct skv_error *err)
{
	if (hook.append && !hook.inside) {
		int rc;

		hook.inside = true;
		rc = hook.append(++hook.appends);
		hook.inside = false;
		if (rc != SKV_OK)
			return skv_fail(err, rc, NULL, "hook");
	}
	return skv_store_memory.append(self, partition, fence, seq, bytes, n, flags, err);
}

static int hook_slice(void *self, uint32_t partition, uint64_t fence, uint64_t id, uint32_t number,
		      const void *bytes, size_t n, struct skv_error *err)
{
	if (hook.slice && !hook.inside) {
		hook.inside = true;
		hook.slice();
		hook.inside = false;
	}
	return skv_store_memory.checkpoint_slice(self, partition, fence, id, number, bytes, n, err);
}

static int hook_put(void *self, const struct skv_fence *fence, const char *key, uint64_t expect,
		    const void *bytes, size_t n, uint64_t *version, struct skv_error *err)
{
	bool mine = hook.put && !hook.inside;
	int rc = SKV_OK;

	if (mine) {
		hook.inside = true;
		rc = hook.put(key, false);
		hook.inside = false;
		if (rc != SKV_OK)
			return skv_fail(err, rc, NULL, "hook");
	}
	rc = skv_store_memory.put(self, fence, key, expect, bytes, n, version, err);
	if (mine && rc == SKV_OK) {
		hook.inside = true;
		hook.put(key, true);
		hook.inside = false;
	}
	return rc;
}

static int hook_del(void *self, const struct skv_fence *fence, const char *key, uint64_t expect,
		    struct skv_error *err)
{
	int rc = hook.del ? hook.del(key) : SKV_OK;

	return rc != SKV_OK ? skv_fail(err, rc, NULL, "hook")
			    : skv_store_memory.del(self, fence, key, expect, err);
}

static int hook_get(void *self, const char *key, struct skv_buf *value, uint64_t *version,
		    struct skv_error *err)
{
	if (hook.get && !hook.inside) {
		hook.inside = true;
		hook.get(key);
		hook.inside = false;
	}
	return skv_store_memory.get(self, key, value, version, err);
}

static bool no_list;

static int hook_list(void *self, const char *prefix, skv_registry_fn fn, void *ctx,
		     struct skv_error *err)
{
	return no_list ? skv_fail(err, SKV_E_STORE_IO, NULL, "hook")
		       : skv_store_memory.list(self, prefix, fn, ctx, err);
}

static struct env *E; /* of the running test, for hooks */

static struct env *begin(void)
{
	static struct env e;

	memset(&hook, 0, sizeof hook);
	hooked = skv_store_memory;
	hooked.append = hook_append;
	hooked.checkpoint_slice = hook_slice;
	hooked.put = hook_put;
	hooked.del = hook_del;
	hooked.get = hook_get;
	hooked.list = hook_list;
	no_list = false;
	env_init(&e);
	e.ops = &hooked;
	E = &e;
	return &e;
}

static void reopen(struct env *e)
{
	env_crash(e);
	env_open(e);
}

/* The ownership of a core that is gone: 1 ms of the store's own clock, which is the real one. */
static void lease_ends(void) { poll(NULL, 0, 5); }

/* Runs fn in a child: what kills it fails the test, not the program. */
static void survives(void (*fn)(void))
{
	int status = 0;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		fn();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* Calls that do not wait. Their memory goes with the test. */
static struct skv_arena arenas[64];
static unsigned n_arenas;

static void end(struct env *e)
{
	env_destroy(e);
	while (n_arenas)
		skv_arena_destroy(&arenas[--n_arenas]);
}

struct call {
	struct skv_arena *arena;
	struct skv_error err;
	bool over;
	int status;
	struct skv_done done;
	struct skv_start_req start;
	struct skv_start_res started;
	struct skv_finish_res finished;
	struct skv_delete_res deleted;
	struct skv_lookup_res found;
};

static void call_done(void *ctx, int status)
{
	struct call *k = ctx;

	k->over = true;
	k->status = status;
}

static void call_init(struct call *k)
{
	memset(k, 0, sizeof *k);
	assert_true(n_arenas < sizeof arenas / sizeof *arenas);
	k->arena = &arenas[n_arenas++];
	skv_arena_init(k->arena);
	k->done = (struct skv_done){ call_done, k };
}

static void call_over(struct call *k, int rc)
{
	if (rc == SKV_PENDING)
		return;
	k->over = true;
	k->status = rc;
}

static void async_start(struct env *e, struct call *k, const char *request_id,
			const struct skv_key *keys, uint32_t n)
{
	call_init(k);
	k->start = (struct skv_start_req){ .tenant = "t", .instance = "i", .request_id = request_id,
					   .keys = keys,
					   .n_keys = n };
	call_over(k, skv_core_start(e->core, &k->start, &k->started, k->arena, &k->err, &k->done));
}

static void async_delete(struct env *e, struct call *k, const struct skv_key *keys, uint32_t n)
{
	static struct skv_delete_req req;

	call_init(k);
	req = (struct skv_delete_req){ .tenant = "t", .instance = "i", .keys = keys, .n_keys = n };
	call_over(k, skv_core_delete(e->core, &req, &k->deleted, k->arena, &k->err, &k->done));
}

static void async_finish(struct env *e, struct call *k, const char *session)
{
	static struct skv_finish_req req;

	call_init(k);
	req = (struct skv_finish_req){ .tenant = "t", .session = session,
				       .mask_kind = SKV_MASK_ALL };
	call_over(k, skv_core_finish(e->core, &req, &k->finished, k->arena, &k->err, &k->done));
}

static void ticks(struct env *e, int n, uint64_t ms)
{
	for (int i = 0; i < n; i++)
		env_advance(e, ms);
}

/* Fills storage "s" with blocks of "i"; returns how many there are. */
static uint32_t fill(struct env *e, struct skv_key *k, uint32_t max)
{
	uint32_t n = 0;
	struct skv_stats st;

	(void)st;
	while (n < max) {
		struct skv_start_res s;
		struct skv_finish_res f;
		char session[SKV_SESSION_ID_HEX + 1];
		struct skv_core_counters before, after;

		skv_cluster_counters_get(e->cluster, &before);
		env_keys(&k[n], 1, 9, n + 1);
		assert_int_equal(env_start(e, &(struct env_start){ .keys = &k[n], .n = 1 }, &s),
				 SKV_OK);
		memcpy(session, s.session, sizeof session);
		assert_int_equal(env_finish(e, session, NULL, 0, &f), SKV_OK);
		skv_cluster_counters_get(e->cluster, &after);
		n++;
		if (after.evicted_blocks > before.evicted_blocks)
			break;
	}
	return n;
}

/* ---- 1: a storage that was used, emptied and deleted ----------------------------------------- */

/* Law 3: the journal still has starts in the deleted storage. */
static void a_deleted_storage_does_not_stop_the_next_manager(void **state)
{
	struct env *e = begin();
	struct skv_key k[4];
	uint32_t n;
	const char *s2 = "s2";
	struct skv_group_spec g = { .name = "g", .storages = &s2, .n_storages = 1 };
	struct skv_store *below;
	int rc;

	(void)state;
	env_open(e);
	env_make(e, 1 * MB, 64 * KB, 4 * KB);
	env_keys(k, 4, 1, 1);
	assert_int_equal(env_put(e, k, 4), 4);
	assert_int_equal(env_delete(e, k, 4, &n), SKV_OK);
	assert_int_equal(env_storage(e, "s2", 1 * MB, 64 * KB), SKV_OK);
	assert_int_equal(skv_cluster_group_put(e->cluster, &g, SKV_PUT_ANY, NULL, NULL, &e->err),
			 SKV_OK);
	assert_int_equal(skv_cluster_storage_delete(e->cluster, "s", &e->err), SKV_OK);
	assert_int_equal(env_put(e, k, 4), 4);
	env_crash(e);
	lease_ends();
	assert_int_equal(skv_store_open(e->ops, &e->store_options, &below, &e->err), SKV_OK);
	e->store = below;
	e->o.store = below;
	env_create(e);
	rc = SKV_E_TIMEOUT;
	for (int i = 0; i < 20 && rc != SKV_OK; i++) {
		skv_cluster_tick(e->cluster);
		rc = skv_cluster_state_get(e->cluster) == SKV_CORE_READY ? SKV_OK : SKV_E_TIMEOUT;
		skv_fake_clock_advance(&e->clock, 500);
	}
	env_crash(e);
	end(e);
	assert_int_equal(rc, SKV_OK);
}

/* ---- 2: NORMAL, unclean boot, a second restart ----------------------------------------------- */

/* Law 2: after an unclean boot every free slot waits maximum deadline + grace, a
 * restart in between or not. */
static void free_slots_wait_over_a_second_restart(void **state)
{
	struct env *e = begin();
	struct skv_key k[4];
	struct skv_start_res r;
	int first, second;

	(void)state;
	e->store_options.durability = SKV_DURABILITY_NORMAL;
	e->o.boot_id = BOOT_A;
	env_open(e);
	env_make(e, 1 * MB, 64 * KB, 4 * KB);
	env_keys(k, 4, 1, 1);
	assert_int_equal(env_put(e, k, 1), 1); /* the file is there */
	env_crash(e);
	e->o.boot_id = BOOT_B;
	env_open(e);
	e->o.boot_id = BOOT_B;
	reopen(e); /* kill -9 a moment after the boot */
	second = env_start(e, &(struct env_start){ .keys = &k[2], .n = 1 }, &r);
	end(e);

	e = begin(); /* the same with one start only: it waits, as it should */
	e->store_options.durability = SKV_DURABILITY_NORMAL;
	e->o.boot_id = BOOT_A;
	env_open(e);
	env_make(e, 1 * MB, 64 * KB, 4 * KB);
	assert_int_equal(env_put(e, k, 1), 1);
	env_crash(e);
	e->o.boot_id = BOOT_B;
	env_open(e);
	first = skv_cluster_state_get(e->cluster) == SKV_CORE_READY
			? env_start(e, &(struct env_start){ .keys = &k[1], .n = 1 }, &r)
			: 0;
	end(e);
	print_message("one start: %s, restarted: %s\n", skv_status_name(first),
		      skv_status_name(second));
	assert_int_equal(first, SKV_E_NO_SPACE);
	assert_int_equal(second, SKV_E_NO_SPACE);
}

/* ---- 3: blocks without checksum after a power loss ------------------------------------------- */

static char root[64];

static void file_storage(struct env *e)
{
	struct skv_storage_spec s = { .name = "s", .type = "file", .root = root,
				      .capacity = 256 * KB,
				      .unit = 64 * KB, .file_size = 256 * KB, .enabled = true };
	struct skv_spec spec = { "kv", 4 * KB };

	snprintf(root, sizeof root, "/tmp/skv-laws-XXXXXX");
	assert_non_null(mkdtemp(root));
	assert_int_equal(skv_cluster_storage_put(e->cluster, &s, SKV_PUT_ANY, NULL, &e->err),
			 SKV_OK);
	assert_int_equal(env_group(e, "g", 0, "s"), SKV_OK);
	assert_int_equal(env_instance(e, "i", "g", &spec, 1), SKV_OK);
}

static void remove_root(void)
{
	DIR *d = opendir(root);
	struct dirent *f;
	char path[400];

	while (d && (f = readdir(d))) {
		snprintf(path, sizeof path, "%s/%s", root, f->d_name);
		unlink(path);
	}
	if (d)
		closedir(d);
	rmdir(root);
}

static int fail_second(unsigned n) { return n == 1 ? SKV_OK : n == 2 ? SKV_E_STORE_IO : SKV_OK; }
static int unknown_second(unsigned n) { return n == 2 ? SKV_E_UNKNOWN_OUTCOME : SKV_OK; }

static uint32_t after_power_loss(int (*append)(unsigned n))
{
	struct env *e = begin();
	struct skv_key k[4];
	uint32_t seen;

	e->o.boot_id = BOOT_A;
	env_open(e);
	file_storage(e);
	env_keys(k, 4, 1, 1);
	assert_int_equal(env_put(e, k, 4), 4); /* no checksums */
	env_crash(e);
	e->o.boot_id = BOOT_B;
	hook.append = append;
	env_open(e);
	ticks(e, 40, 100);
	seen = env_match(e, k, 4);
	end(e);
	remove_root();
	return seen;
}

/* Law 2: dropped whatever happens to the record that tells so. */
static void unsummed_blocks_stay_dropped_when_the_append_fails(void **state)
{
	(void)state;
	assert_int_equal(after_power_loss(NULL), 0);
	assert_int_equal(after_power_loss(fail_second), 0);
}

static void unsummed_blocks_stay_dropped_over_a_reload(void **state)
{
	(void)state;
	assert_int_equal(after_power_loss(unknown_second), 0);
}

/* Laws 1 and 3: a reader on another host holds a lease on such a block; its
 * slot waits for the horizon. */
static void the_slot_of_a_dropped_block_waits_for_the_horizon(void **state)
{
	struct env *e = begin();
	struct skv_key k[100], x[1];
	struct skv_lookup_res l;
	struct skv_start_res r;
	uint32_t n;
	uint64_t offset, t0;
	int rc;

	(void)state;
	e->o.boot_id = BOOT_A;
	env_open(e);
	file_storage(e);
	n = fill(e, k, 100);
	n--;
	assert_int_equal(env_lookup(e, &k[n], 1, SKV_LOOKUP_BATCH, 10000, &l), SKV_OK);
	assert_int_equal(l.lease_ms, 10000);
	offset = l.loc[0].offset;
	env_crash(e);
	e->o.boot_id = BOOT_B;
	t0 = skv_now_ms(&e->clock.clock);
	env_open(e);
	skv_cluster_tick(e->cluster);
	bool reused = false;
	for (uint32_t i = 0; i < n && !reused; i++) {
		env_keys(x, 1, 77, i + 1);
		rc = env_start(e, &(struct env_start){ .keys = x, .n = 1 }, &r);
		if (rc != SKV_OK)
			break;
		reused = r.loc[0].offset == offset && skv_now_ms(&e->clock.clock) < t0 + 9000;
	}
	end(e);
	remove_root();
	assert_false(reused);
}

/* ---- 4: one request id, twice in line -------------------------------------------------------- */

/* Law 4: the same start gets the same answer, also when the first one waits for room. */
static void a_start_repeated_in_line_gets_the_same_answer(void **state)
{
	struct env *e = begin();
	struct skv_key k[2];
	struct call a, b;

	(void)state;
	env_open(e);
	env_make(e, 1 * MB, 64 * KB, 4 * KB);
	env_keys(k, 2, 1, 1);
	async_start(e, &a, "same", k, 2); /* waits for the first slab file */
	async_start(e, &b, "same", k, 2);
	assert_false(a.over || b.over);
	ticks(e, 10, 1);
	assert_true(a.over && b.over);
	assert_int_equal(a.status, SKV_OK);
	assert_int_equal(b.status, SKV_OK);
	print_message("first: %u to write, second: %u to write\n", a.started.n_write,
		      b.started.n_write);
	assert_string_equal(a.started.session, b.started.session);
	end(e);
}

static void a_request_id_with_another_body_in_line_is_a_conflict(void **state)
{
	struct env *e = begin();
	struct skv_key k[2];
	struct call a, b;

	(void)state;
	env_open(e);
	env_make(e, 1 * MB, 64 * KB, 4 * KB);
	env_keys(k, 2, 1, 1);
	async_start(e, &a, "same", k, 1);
	async_start(e, &b, "same", k + 1, 1);
	ticks(e, 10, 1);
	assert_int_equal(a.status, SKV_OK);
	assert_int_equal(b.status, SKV_E_CONFLICT);
	end(e);
}

/* ---- 5: finish behind an abort --------------------------------------------------------------- */

static void a_finish_behind_an_abort_is_refused(void **state)
{
	struct env *e = begin();
	struct skv_key k[1];
	struct skv_start_res s;
	struct call f, a;
	struct skv_abort_req req = { .tenant = "t" };
	char session[SKV_SESSION_ID_HEX + 1];

	(void)state;
	env_open(e);
	env_make(e, 1 * MB, 64 * KB, 4 * KB);
	env_keys(k, 1, 1, 1);
	assert_int_equal(env_start(e, &(struct env_start){ .keys = k, .n = 1 }, &s), SKV_OK);
	memcpy(session, s.session, sizeof session);
	req.session = session;
	call_init(&a);
	call_over(&a, skv_core_abort(e->core, &req, &a.finished, a.arena, &a.err, &a.done));
	async_finish(e, &f, session);
	ticks(e, 3, 1);
	assert_true(a.over && f.over);
	print_message("finish: %s\n", skv_status_name(f.status));
	assert_int_equal(f.status, SKV_E_SESSION_ENDED);
	end(e);
}

/* ---- 6: two removals of one block ------------------------------------------------------------ */

static struct call del1, del2;
static struct skv_key the_key;
static int step;

static int two_removals(unsigned n)
{
	static struct skv_lookup_req req;
	static const char *b = "b";
	static struct call l;

	(void)n;
	if (++step == 1) /* the finish of spec b is being appended */
		async_delete(E, &del1, &the_key, 1);
	else if (step == 2) { /* the first delete is */
		call_init(&l);
		req = (struct skv_lookup_req){ .tenant = "t", .instance = "i",
					       .mode = SKV_LOOKUP_BATCH,
					       .keys = &the_key, .n_keys = 1, .specs = &b,
					       .n_specs = 1 };
		call_over(&l, skv_core_lookup(E->core, &req, &l.found, l.arena, &l.err, &l.done));
		assert_int_equal(l.found.matched, 1);
		async_delete(E, &del2, &the_key, 1);
	}
	return SKV_OK;
}

static void two_removals_scene(void)
{
	struct env *e = begin();
	struct skv_spec specs[] = { { "a", 4 * KB }, { "b", 4 * KB } };
	const char *a = "a", *b = "b";
	struct skv_start_res s;
	struct skv_finish_res f;
	struct call fin;
	char session[SKV_SESSION_ID_HEX + 1];

	env_open(e);
	assert_int_equal(env_storage(e, "s", 1 * MB, 64 * KB), SKV_OK);
	assert_int_equal(env_group(e, "g", 0, "s"), SKV_OK);
	assert_int_equal(env_instance(e, "i", "g", specs, 2), SKV_OK);
	env_keys(&the_key, 1, 1, 1);
	assert_int_equal(env_start(e, &(struct env_start){ .keys = &the_key, .n = 1, .specs = &a,
							   .n_specs = 1 }, &s), SKV_OK);
	memcpy(session, s.session, sizeof session);
	assert_int_equal(env_finish(e, session, NULL, 0, &f), SKV_OK);
	assert_int_equal(env_start(e, &(struct env_start){ .keys = &the_key, .n = 1, .specs = &b,
							   .n_specs = 1 }, &s), SKV_OK);
	memcpy(session, s.session, sizeof session);
	step = 0;
	async_finish(e, &fin, session);
	hook.append = two_removals;
	ticks(e, 5, 1);
	hook.append = NULL;
	assert_true(del1.over && del2.over);
	env_check(e);
}

static void two_removals_of_one_block(void **state)
{
	(void)state;
	survives(two_removals_scene);
}

/* ---- 7: lost ownership while loading --------------------------------------------------------- */

static void lose_ownership(const char *key)
{
	uint64_t fence;
	char holder[192];
	struct skv_error err = { 0 };

	if (strcmp(key, "secret") != 0)
		return;
	hook.get = NULL;
	lease_ends();
	assert_int_equal(skv_store_acquire(E->store, 0, "other", 100000, &fence, holder,
					   sizeof holder, &err),
			 SKV_OK);
	skv_cluster_tick(E->cluster); /* the owner thread: renewal is fenced */
	skv_cluster_tick(E->cluster); /* and drops the partition */
}

static void lost_while_loading_scene(void)
{
	struct env *e = begin();
	struct skv_key k[2];

	env_open(e);
	env_make(e, 1 * MB, 64 * KB, 4 * KB);
	env_keys(k, 2, 1, 1);
	env_put(e, k, 2);
	env_crash(e);
	lease_ends();
	assert_int_equal(skv_store_open(e->ops, &e->store_options, &e->store, &e->err), SKV_OK);
	e->o.store = e->store;
	env_create(e);
	hook.get = lose_ownership;
	ticks(e, 3, 10);
	assert_null(hook.get); /* the hook was called */
	assert_int_equal(skv_cluster_state_get(e->cluster), SKV_CORE_STANDBY);
	env_crash(e);
}

static void ownership_lost_while_loading(void **state)
{
	(void)state;
	survives(lost_while_loading_scene);
}

/* ---- 8: eviction ----------------------------------------------------------------------------- */

static uint32_t put_spec(struct env *e, const struct skv_key *k, const char *spec)
{
	struct skv_start_res s;
	struct skv_finish_res f;
	char session[SKV_SESSION_ID_HEX + 1];
	int rc =
		env_start(e, &(struct env_start){ .keys = k, .n = 1, .specs = &spec, .n_specs = 1 },
			  &s);

	if (rc != SKV_OK)
		return (uint32_t)rc;
	memcpy(session, s.session, sizeof session);
	return (uint32_t)env_finish(e, session, NULL, 0, &f);
}

/* Law 6: blocks whose first spec lies in another storage are evictable too. */
static void a_second_storage_evicts_what_it_holds(void **state)
{
	struct env *e = begin();
	struct skv_spec specs[] = { { "a", 4 * KB }, { "b", 4 * KB } };
	const char *both[] = { "s1", "s2" };
	struct skv_group_spec g = { .name = "g", .storages = both, .n_storages = 2 };
	struct skv_storage_spec s1 = { .name = "s1", .type = "null", .root = "", .capacity = 1 * MB,
				       .unit = 64 * KB,
				       .file_size = 1 * MB, .enabled = false };
	struct skv_key k;
	uint32_t n = 0;
	int rc;

	(void)state;
	env_open(e);
	assert_int_equal(env_storage(e, "s1", 1 * MB, 64 * KB), SKV_OK);
	assert_int_equal(env_storage(e, "s2", 256 * KB, 64 * KB), SKV_OK);
	assert_int_equal(skv_cluster_group_put(e->cluster, &g, SKV_PUT_ANY, NULL, NULL, &e->err),
			 SKV_OK);
	assert_int_equal(env_instance(e, "i", "g", specs, 2), SKV_OK);
	for (n = 0; n < 80; n++) {
		env_keys(&k, 1, 1, n + 1);
		assert_int_equal(put_spec(e, &k, "a"), SKV_OK);
	}
	assert_int_equal(skv_cluster_storage_put(e->cluster, &s1, SKV_PUT_ANY, NULL, &e->err),
			 SKV_OK);
	for (n = 0; n < 80; n++) {
		env_keys(&k, 1, 1, n + 1);
		rc = (int)put_spec(e, &k, "b");
		if (rc != SKV_OK)
			break;
	}
	print_message("%u blocks have spec b, then: %s: %s\n", n, skv_status_name(rc),
		      e->err.message);
	end(e);
	assert_int_equal(rc, SKV_OK);
}

/* A start that has slots for one spec makes room for the next: its own slots,
 * which nobody owns yet, stay. */
static void placement_for_one_spec_spares_the_slots_of_another(void **state)
{
	struct env *e = begin();
	struct skv_spec specs[] = { { "a", 4 * KB }, { "b", 64 * KB } };
	struct skv_start_res s;
	struct skv_stats st;
	struct skv_key k[8];
	uint32_t n = 0;

	(void)state;
	env_open(e);
	assert_int_equal(env_storage(e, "s", 1 * MB, 64 * KB), SKV_OK);
	assert_int_equal(env_group(e, "g", 0, "s"), SKV_OK);
	assert_int_equal(env_instance(e, "i", "g", specs, 2), SKV_OK);
	do { /* until all of it is full slabs of class a, and something had to go */
		env_keys(k, 1, 1, ++n);
		assert_int_equal(put_spec(e, k, "a"), SKV_OK);
		env_stats(e, &st);
	} while (st.evicted_blocks == 0 && n < 1000);
	assert_true(st.evicted_blocks > 0);
	/* A single slab is emptier than the others: a start takes its slot of a there, and it is
	 * the best slab to empty for b. */
	env_keys(k, 8, 1, 101); /* neighbours */
	assert_int_equal(env_delete(e, k, 8, &n), SKV_OK);
	env_advance(e, 20000);
	for (uint64_t i = 0; i < 20; i++) {
		env_keys(k, 1, 2, i + 1);
		assert_int_equal(env_start(e, &(struct env_start){ .keys = k, .n = 1 }, &s),
				 SKV_OK);
		assert_int_equal(env_abort(e, s.session, true), SKV_OK);
	}
	end(e);
}

/* By bytes needed: blocks that hold nothing of the class stay. */
static void eviction_spares_blocks_without_the_class(void **state)
{
	struct env *e = begin();
	struct skv_spec specs[] = { { "a", 4 * KB }, { "b", 64 * KB } };
	struct skv_core_counters c0, c1;
	struct skv_key k;

	(void)state;
	env_open(e);
	assert_int_equal(env_storage(e, "s", 1 * MB, 64 * KB), SKV_OK);
	assert_int_equal(env_group(e, "g", 0, "s"), SKV_OK);
	assert_int_equal(env_instance(e, "i", "g", specs, 2), SKV_OK);
	for (uint32_t i = 0; i < 60; i++) {
		env_keys(&k, 1, 1, i + 1);
		assert_int_equal(put_spec(e, &k, "a"), SKV_OK);
	}
	skv_cluster_counters_get(e->cluster, &c0);
	for (uint32_t i = 0; i < 40; i++) {
		env_keys(&k, 1, 2, i + 1);
		assert_int_equal(put_spec(e, &k, "b"), SKV_OK);
		skv_cluster_counters_get(e->cluster, &c1);
		if (c1.evicted_blocks > c0.evicted_blocks)
			break;
	}
	print_message("%u blocks evicted for one slot\n",
		      (unsigned)(c1.evicted_blocks - c0.evicted_blocks));
	end(e);
	assert_int_equal(c1.evicted_blocks - c0.evicted_blocks, 1);
}

static int no_files(const char *key, bool after)
{
	return !after && strncmp(key, "file/", 5) == 0 ? SKV_E_STORE_IO : SKV_OK;
}

/* Law 6: a storage that cannot grow (for whatever reason) still evicts. */
static void a_storage_that_cannot_grow_evicts(void **state)
{
	struct env *e = begin();
	static struct skv_key k[1000];
	struct skv_storage_spec s = { .name = "s", .type = "null", .root = "", .capacity = 512 * KB,
				      .unit = 64 * KB,
				      .file_size = 256 * KB, .enabled = true };
	struct skv_spec spec = { "kv", 4 * KB };
	struct skv_start_res r;
	int rc;

	(void)state;
	env_open(e);
	assert_int_equal(skv_cluster_storage_put(e->cluster, &s, SKV_PUT_ANY, NULL, &e->err),
			 SKV_OK);
	assert_int_equal(env_group(e, "g", 0, "s"), SKV_OK);
	assert_int_equal(env_instance(e, "i", "g", &spec, 1), SKV_OK);
	env_keys(k, 40, 1, 1);
	assert_int_equal(env_put(e, k, 40), 40);
	hook.put = no_files;
	env_keys(k, 40, 2, 1);
	rc = env_start(e, &(struct env_start){ .keys = k, .n = 40 }, &r);
	print_message("%s: %s\n", skv_status_name(rc), e->err.message);
	end(e);
	assert_int_equal(rc, SKV_OK);
}

/* 300 commits of others while a slab file is being made. */
static int busy_others(const char *key, bool after)
{
	struct skv_spec spec = { "kv", 4 * KB };
	struct skv_error err = { 0 };
	struct skv_instance_spec j = { .tenant = "t", .id = "j", .group = "g", .specs = &spec,
				       .n_specs = 1, .extra = "" };

	if (after || strncmp(key, "file/", 5) != 0)
		return SKV_OK;
	for (int i = 0; i < 300; i++) {
		assert_int_equal(skv_cluster_instance_put(E->cluster, &j, SKV_PUT_ANY, NULL, &err),
				 SKV_OK);
		assert_int_equal(skv_cluster_instance_delete(E->cluster, "t", "j", NULL, &err),
				 SKV_OK);
	}
	return SKV_OK;
}

static void a_start_outlives_the_commits_of_others(void **state)
{
	struct env *e = begin();
	struct skv_key k[1];
	struct skv_start_res r;
	int rc;

	(void)state;
	env_open(e);
	env_make(e, 1 * MB, 64 * KB, 4 * KB);
	env_keys(k, 1, 1, 1);
	hook.put = busy_others;
	rc = env_start(e, &(struct env_start){ .keys = k, .n = 1 }, &r);
	print_message("%s: %s\n", skv_status_name(rc), e->err.message);
	hook.put = NULL;
	end(e);
	assert_int_equal(rc, SKV_OK);
}

/* A lease that ends within a second is waited for; one that does not is an answer. */
static int start_beside_leases(uint32_t lease_ms)
{
	struct env *e = begin();
	static struct skv_key k[400];
	struct skv_lookup_res l;
	struct skv_start_res r;
	uint32_t n;
	int rc;

	env_open(e);
	env_make(e, 256 * KB, 64 * KB, 4 * KB);
	n = fill(e, k, 400);
	env_advance(e, 20000); /* slots held by the deletions are free */
	assert_int_equal(env_lookup(e, k, n, SKV_LOOKUP_BATCH, lease_ms, &l), SKV_OK);
	assert_int_equal(l.lease_ms, lease_ms);
	env_keys(k, 8, 77, 1);
	rc = env_start(e, &(struct env_start){ .keys = k, .n = 8 }, &r);
	end(e);
	return rc;
}

static void a_start_waits_for_a_lease_that_ends_soon(void **state)
{
	(void)state;
	assert_int_equal(start_beside_leases(500), SKV_OK);
	assert_int_equal(start_beside_leases(9000), SKV_E_NO_SPACE);
}

static int no_files_of_s(const char *key, bool after)
{
	return !after && strncmp(key, "file/00000001", 13) == 0 ? SKV_E_STORE_IO : SKV_OK;
}

/* A start that waits for one storage does not hold up those of another group on another storage. */
static void a_waiting_start_does_not_block_other_storages(void **state)
{
	struct env *e = begin();
	struct skv_spec spec = { "kv", 4 * KB };
	struct skv_key k[2];
	struct call a, b;
	uint64_t t0;

	(void)state;
	env_open(e);
	env_make(e, 1 * MB, 64 * KB, 4 * KB); /* "s" is storage 1 */
	assert_int_equal(env_storage(e, "s2", 1 * MB, 64 * KB), SKV_OK);
	assert_int_equal(env_group(e, "g2", 0, "s2"), SKV_OK);
	assert_int_equal(env_instance(e, "i2", "g2", &spec, 1), SKV_OK);
	env_keys(k, 2, 1, 1);
	hook.put = no_files_of_s;
	async_start(e, &a, "", k, 1);
	call_init(&b);
	b.start = (struct skv_start_req){ .tenant = "t", .instance = "i2", .request_id = "",
					  .keys = k, .n_keys = 1 };
	t0 = skv_now_ms(&e->clock.clock);
	call_over(&b, skv_core_start(e->core, &b.start, &b.started, b.arena, &b.err, &b.done));
	for (int i = 0; i < 2000 && !b.over; i++)
		env_advance(e, 20);
	print_message("the other one waited %d ms (first is %s)\n",
		      (int)(skv_now_ms(&e->clock.clock) - t0), a.over ? "over" : "waiting");
	t0 = skv_now_ms(&e->clock.clock) - t0;
	assert_true(b.over);
	hook.put = NULL;
	end(e);
	assert_true(t0 < 1000);
}

static int reload_in_growth(const char *key, bool after)
{
	static struct call d;
	static struct skv_key k;

	if (!after || strcmp(key, "file/00000001/00000001") != 0)
		return SKV_OK;
	hook.put = NULL;
	env_keys(&k, 1, 9, 1);
	hook.appends = 1;
	hook.append = unknown_second;
	hook.inside = false;
	async_delete(E, &d, &k, 1);
	ticks(E, 5, 600);
	hook.append = NULL;
	assert_int_equal(skv_cluster_state_get(E->cluster), SKV_CORE_READY);
	return SKV_OK;
}

/* A slab file made over a reload counts once. */
static uint64_t bytes_before_eviction(bool reload)
{
	struct env *e = begin();
	static struct skv_key k[400];
	struct skv_storage_spec s = { .name = "s", .type = "null", .root = "",
				      .capacity = 1024 * KB, .unit = 64 * KB,
				      .file_size = 256 * KB, .enabled = true };
	struct skv_spec spec = { "kv", 4 * KB };
	struct skv_storage_view *v;
	uint64_t bytes;

	env_open(e);
	assert_int_equal(skv_cluster_storage_put(e->cluster, &s, SKV_PUT_ANY, NULL, &e->err),
			 SKV_OK);
	assert_int_equal(env_group(e, "g", 0, "s"), SKV_OK);
	assert_int_equal(env_instance(e, "i", "g", &spec, 1), SKV_OK);
	env_keys(k, 1, 8, 1);
	env_put(e, k, 1);
	if (reload)
		hook.put = reload_in_growth;
	env_keys(k, 100, 3, 1);
	{
		struct call a;

		async_start(e, &a, "", k, 100);
		ticks(e, 5, 20);
	}
	assert_null(hook.put);
	fill(e, k, 400);
	skv_arena_reset(&e->arena);
	assert_int_equal(skv_cluster_storage(e->cluster, "s", &e->arena, &v, &e->err), SKV_OK);
	bytes = v->file_bytes;
	end(e);
	return bytes;
}

static void a_file_made_over_a_reload_counts_once(void **state)
{
	uint64_t plain = bytes_before_eviction(false), reloaded = bytes_before_eviction(true);

	(void)state;
	print_message("bytes of files when eviction begins: %u, with a reload %u\n",
		      (unsigned)plain, (unsigned)reloaded);
	assert_int_equal(reloaded, plain);
}

/* ---- 9: administration that fails half-way --------------------------------------------------- */

static int no_del(const char *key) { return key[0] ? SKV_E_STORE_IO : SKV_OK; }

static void a_failed_deletion_leaves_the_storage_usable(void **state)
{
	struct env *e = begin();
	struct skv_key k[1];
	struct skv_start_res r;
	int rc;

	(void)state;
	env_open(e);
	assert_int_equal(env_storage(e, "s", 1 * MB, 64 * KB), SKV_OK);
	hook.del = no_del;
	assert_int_equal(skv_cluster_storage_delete(e->cluster, "s", &e->err), SKV_E_STORE_IO);
	hook.del = NULL;
	{
		struct skv_spec spec = { "kv", 4 * KB };

		assert_int_equal(env_group(e, "g", 0, "s"), SKV_OK);
		assert_int_equal(env_instance(e, "i", "g", &spec, 1), SKV_OK);
	}
	env_keys(k, 1, 1, 1);
	rc = env_start(e, &(struct env_start){ .keys = k, .n = 1 }, &r);
	end(e);
	assert_int_equal(rc, SKV_OK);
}

/* Laws 1 and 3: a leased slot of a dropped instance waits for the horizon, also if the manager dies
 * between the record and the registry. */
static void a_dropped_instance_s_leases_survive_a_crash(void **state)
{
	struct env *e = begin();
	static struct skv_key k[400];
	struct skv_lookup_res l;
	struct skv_start_res r;
	struct skv_spec spec = { "kv", 4 * KB };
	uint32_t n;
	uint64_t t0;
	int rc;

	(void)state;
	env_open(e);
	env_make(e, 256 * KB, 64 * KB, 4 * KB);
	n = fill(e, k, 400) - 1;
	assert_int_equal(env_lookup(e, k, n + 1, SKV_LOOKUP_BATCH, 10000, &l), SKV_OK);
	assert_true(l.matched == n && l.lease_ms == 10000);
	t0 = skv_now_ms(&e->clock.clock);
	hook.del = no_del;
	assert_int_equal(skv_cluster_instance_delete(e->cluster, "t", "i", NULL, &e->err),
			 SKV_E_STORE_IO);
	hook.del = NULL;
	reopen(e);
	assert_int_equal(env_instance(e, "i", "g", &spec, 1), SKV_OK);
	env_keys(k, 1, 77, 1);
	rc = env_start(e, &(struct env_start){ .keys = k, .n = 1 }, &r);
	print_message("%s after %d ms of the lease\n", skv_status_name(rc),
		      (int)(skv_now_ms(&e->clock.clock) - t0));
	end(e);
	assert_int_not_equal(rc, SKV_OK);
}

/* Law 6: deleting an instance costs the others nothing after a restart. */
static void free_space_is_usable_after_a_drop_and_a_crash(void **state)
{
	struct env *e = begin();
	struct skv_spec spec = { "kv", 4 * KB };
	struct skv_key k[8];
	struct skv_start_res r;
	int rc;

	(void)state;
	env_open(e);
	env_make(e, 1 * MB, 64 * KB, 4 * KB);
	env_keys(k, 8, 1, 1);
	assert_int_equal(env_put(e, k, 4), 4);
	assert_int_equal(skv_cluster_instance_delete(e->cluster, "t", "i", NULL, &e->err), SKV_OK);
	assert_int_equal(env_instance(e, "i", "g", &spec, 1), SKV_OK);
	ticks(e, 5, 100000); /* every earlier answer about the instance has expired */
	reopen(e);
	rc = env_start(e, &(struct env_start){ .keys = k, .n = 1 }, &r);
	end(e);
	print_message("%s\n", skv_status_name(rc));
	assert_int_equal(rc, SKV_OK);
}

static int unknown_once(unsigned n) { return n == 1 ? SKV_E_UNKNOWN_OUTCOME : SKV_OK; }

static int reload_meanwhile(const char *key, bool after)
{
	static struct call d;
	static struct skv_key k;

	if (!after || strncmp(key, "storage/", 8) != 0)
		return SKV_OK;
	hook.put = NULL;
	env_keys(&k, 1, 1, 1);
	hook.append = unknown_once;
	hook.appends = 0;
	hook.inside = false;
	async_delete(E, &d, &k, 1);
	ticks(E, 5, 600);
	hook.append = NULL;
	assert_int_equal(skv_cluster_state_get(E->cluster), SKV_CORE_READY);
	return SKV_OK;
}

/* Law 1: a storage that is made while the partition is loaded again is there once. */
static void a_storage_made_over_a_reload_is_there_once(void **state)
{
	struct env *e = begin();
	struct skv_key k[1];
	struct skv_stats st;
	int rc;

	(void)state;
	env_open(e);
	env_make(e, 1 * MB, 64 * KB, 4 * KB);
	env_keys(k, 1, 1, 1);
	env_put(e, k, 1);
	hook.put = reload_meanwhile;
	rc = env_storage(e, "s2", 1 * MB, 64 * KB);
	assert_null(hook.put);
	{
		struct skv_storage_view *v;
		uint32_t n = 0;

		skv_arena_reset(&e->arena);
		assert_int_equal(skv_cluster_every_storage(e->cluster, "", &e->arena, &v, &n,
							   &e->err),
				 SKV_OK);
		print_message("put: %s; %u storages\n", skv_status_name(rc), n);
		(void)st;
		end(e);
		assert_int_equal(n, 2);
	}
}

static int reload_in_instance_put(const char *key, bool after)
{
	return after && strncmp(key, "instance/", 9) == 0 ? reload_meanwhile("storage/", true)
							  : SKV_OK;
}

static void an_instance_made_over_a_reload_is_there_once(void **state)
{
	struct env *e = begin();
	struct skv_spec spec = { "kv", 4 * KB };
	struct skv_instance_view *v;
	struct skv_key k[1];
	uint32_t n = 0;

	(void)state;
	env_open(e);
	env_make(e, 1 * MB, 64 * KB, 4 * KB);
	env_keys(k, 1, 1, 1);
	env_put(e, k, 1);
	hook.put = reload_in_instance_put;
	env_instance(e, "j", "g", &spec, 1);
	assert_null(hook.put);
	skv_arena_reset(&e->arena);
	assert_int_equal(skv_cluster_every_instance(e->cluster, NULL, &e->arena, &v, &n, &e->err),
			 SKV_OK);
	end(e);
	assert_int_equal(n, 2);
}

/* Law 8: a manager died between the claim to a new slab file and making it, and the disk is full
 * now. What is in the other files stays readable. */
static void a_claimed_file_that_cannot_be_made_hides_no_blocks(void **state)
{
	struct env *e = begin();
	struct skv_key k[4];
	struct skv_buf doc = { 0 };
	struct rlimit was;
	uint32_t seen;

	(void)state;
	env_open(e);
	file_storage(e);
	env_keys(k, 4, 1, 1);
	assert_int_equal(env_put(e, k, 4), 4);
	skv_put_u8(&doc, 1);
	skv_put_u64(&doc, 256 * KB);
	skv_put_bytes(&doc, "\0\0", 3); /* drains not, nor is it gone or lost */
	assert_int_equal(skv_store_put(e->store, NULL, "file/00000001/00000001", SKV_VERSION_NONE,
				       doc.data, doc.len, NULL, &e->err),
			 SKV_OK);
	skv_buf_destroy(&doc);
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &was);
	setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 16 * KB, was.rlim_max });
	reopen(e);
	ticks(e, 5, 1000);
	seen = env_match(e, k, 4);
	setrlimit(RLIMIT_FSIZE, &was);
	end(e);
	remove_root();
	assert_int_equal(seen, 4);
}

/* ---- 10: end --------------------------------------------------------------------------------- */

static void count_call(void *ctx, int why)
{
	assert_int_equal(why, SKV_E_NOT_READY);
	++*(int *)ctx;
}

/* A manager that cannot load what it owns lets another one try, and says so to whoever runs it. */
static void who_cannot_load_gives_way(void **state)
{
	struct env *e = begin();
	struct skv_store *other = NULL;
	struct skv_error err = { 0 };
	char holder[192];
	uint64_t fence;
	int rc, told = 0;

	(void)state;
	env_open(e);
	env_make(e, 1 * MB, 64 * KB, 4 * KB);
	env_crash(e);
	lease_ends();
	e->o.owner_lease_ms = 60000;
	e->o.hopeless = count_call;
	e->o.hopeless_ctx = &told;
	no_list = true;
	assert_int_equal(skv_store_open(e->ops, &e->store_options, &e->store, &e->err), SKV_OK);
	e->o.store = e->store;
	env_create(e);
	assert_int_equal(skv_store_open(e->ops, &e->store_options, &other, &err), SKV_OK);
	ticks(e, 5, 500);
	assert_int_equal(
		skv_store_acquire(other, 0, "other", 1, &fence, holder, sizeof holder, &err),
		SKV_E_NOT_OWNER);
	for (int i = 0; i < 30 && !told; i++)
		skv_cluster_tick(e->cluster);
	rc = skv_store_acquire(other, 0, "other", 60000, &fence, holder, sizeof holder, &err);
	skv_store_close(other);
	end(e);
	assert_int_equal(rc, SKV_OK);
	assert_int_equal(told, 1);
}

static int count_one(void *ctx, const char *key, const void *bytes, size_t n, uint64_t version)
{
	(void)key;
	(void)bytes;
	(void)n;
	(void)version;
	++*(int *)ctx;
	return SKV_OK;
}

static int count_dropped(struct env *e)
{
	int n = 0;

	assert_int_equal(skv_store_list(e->store, "dropped/", count_one, &n, &e->err), SKV_OK);
	return n;
}

/* The remains of a deleted instance go with the next checkpoint, and its name is free at once. */
static void a_checkpoint_forgets_dropped_instances(void **state)
{
	struct env *e = begin();
	struct skv_spec spec = { "kv", 4 * KB };
	struct skv_key k[4];

	(void)state;
	env_open(e);
	env_make(e, 1 * MB, 64 * KB, 4 * KB);
	env_keys(k, 4, 1, 1);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(env_put(e, k, 4), 4);
		assert_int_equal(skv_cluster_instance_delete(e->cluster, "t", "i", NULL, &e->err),
				 SKV_OK);
		assert_int_equal(env_instance(e, "i", "g", &spec, 1), SKV_OK);
		assert_int_equal(env_match(e, k, 4), 0);
	}
	assert_int_equal(count_dropped(e), 3);
	reopen(e);
	assert_int_equal(count_dropped(e), 3);
	assert_int_equal(env_put(e, k, 4), 4);
	env_shutdown(e);
	env_open(e);
	assert_int_equal(count_dropped(e), 0);
	assert_int_equal(env_match(e, k, 4), 4);
	env_check(e);
	end(e);
}

static void shut_down(void)
{
	hook.slice = NULL;
	skv_cluster_shutdown(E->cluster); /* from the main thread, while the checkpointer writes */
}

static void shutdown_in_checkpoint_scene(void)
{
	struct env *e = begin();
	struct skv_key k[64];

	e->o.journal_limit = 4096;
	env_open(e);
	env_make(e, 1 * MB, 64 * KB, 4 * KB);
	hook.slice = shut_down;
	env_keys(k, 64, 1, 1);
	env_put(e, k, 32);
	env_put(e, k + 32, 32);
	ticks(e, 3, 20);
	assert_null(hook.slice);
	env_crash(e);
}

static void shutdown_during_a_checkpoint(void **state)
{
	(void)state;
	survives(shutdown_in_checkpoint_scene);
}

static void nothing_remembered_scene(void)
{
	struct env *e = begin();
	struct skv_key k[2];

	e->o.max_remembered = 0;
	env_open(e);
	env_make(e, 1 * MB, 64 * KB, 4 * KB);
	env_keys(k, 2, 1, 1);
	env_put(e, k, 2);
	env_crash(e);
}

static void no_session_need_be_remembered(void **state)
{
	(void)state;
	survives(nothing_remembered_scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_deleted_storage_does_not_stop_the_next_manager),
		cmocka_unit_test(free_slots_wait_over_a_second_restart),
		cmocka_unit_test(unsummed_blocks_stay_dropped_when_the_append_fails),
		cmocka_unit_test(unsummed_blocks_stay_dropped_over_a_reload),
		cmocka_unit_test(the_slot_of_a_dropped_block_waits_for_the_horizon),
		cmocka_unit_test(a_start_repeated_in_line_gets_the_same_answer),
		cmocka_unit_test(a_request_id_with_another_body_in_line_is_a_conflict),
		cmocka_unit_test(a_finish_behind_an_abort_is_refused),
		cmocka_unit_test(two_removals_of_one_block),
		cmocka_unit_test(ownership_lost_while_loading),
		cmocka_unit_test(a_second_storage_evicts_what_it_holds),
		cmocka_unit_test(placement_for_one_spec_spares_the_slots_of_another),
		cmocka_unit_test(eviction_spares_blocks_without_the_class),
		cmocka_unit_test(a_storage_that_cannot_grow_evicts),
		cmocka_unit_test(a_start_outlives_the_commits_of_others),
		cmocka_unit_test(a_start_waits_for_a_lease_that_ends_soon),
		cmocka_unit_test(a_waiting_start_does_not_block_other_storages),
		cmocka_unit_test(a_file_made_over_a_reload_counts_once),
		cmocka_unit_test(a_failed_deletion_leaves_the_storage_usable),
		cmocka_unit_test(a_dropped_instance_s_leases_survive_a_crash),
		cmocka_unit_test(free_space_is_usable_after_a_drop_and_a_crash),
		cmocka_unit_test(a_storage_made_over_a_reload_is_there_once),
		cmocka_unit_test(an_instance_made_over_a_reload_is_there_once),
		cmocka_unit_test(a_claimed_file_that_cannot_be_made_hides_no_blocks),
		cmocka_unit_test(who_cannot_load_gives_way),
		cmocka_unit_test(a_checkpoint_forgets_dropped_instances),
		cmocka_unit_test(shutdown_during_a_checkpoint),
		cmocka_unit_test(no_session_need_be_remembered),
	};

	env_quiet();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
