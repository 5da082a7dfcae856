/*
 * test_core_fenced.c - a demotion in the middle of every call of the core that writes the registry.
 *
 * A generator: each scene is one call of manager A. It is run again and again, and before its n-th
 * call to the store, for n = 1, 2, 3... until it makes no more, another manager B takes the
 * partition over and makes anew what A is about. Then A's call goes on. In four variants: A does
 * not know of it; it has noticed; it has become the owner again meanwhile; or nobody else came, but
 * it has loaded the partition again. Whatever A then still writes must change nothing: the registry
 * is what B left, B's blocks are found, and the next manager loads them.
 */
#include "core_env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <skv/storage.h>

#include <lock/core.h>

#define KB 1024ull
#define HOUR_MS 3600000u
#define LEASE_MS 60000u
#define BLOCKS 8u

enum variant { DEPOSED, NOTICED, BACK, RELOADED, VARIANTS };

static const char *const variant_name[] = { "deposed", "noticed", "owner again", "loaded again" };

struct scene {
	const char *name;
	void (*before)(struct env *a); /* on a store that has everything; may be NULL */
	void (*call)(struct env *a);
	bool background; /* the manager's own work: an owner goes on with it */
};

static struct stage {
	struct env a, b;
	const struct scene *scene;
	enum variant variant;
	bool reached; /* the run had an n-th call */
	unsigned hits; /* and something happened in front of it */
	bool writes;         /* the call that was interrupted was a write of the registry */
	char write[24];      /* the newest one of A: "put file/" */
	struct skv_buf truth; /* the registry when A's call went on */
	uint32_t committed[4]; /* blocks of the instances below, then */
} st;

static const char *const instances[4] = { "i", "x", "xh", "xn" };

/* ---- what is written, and what the disk does ------------------------------------------------- */

/* Each function of the core that writes the registry, what, and the scene in which a demotion comes
 * before it. The test core_fenced_calls compares the functions with those in server/core: a new one
 * needs a row, and a scene. */
static struct written {
	const char *function, *what, *scene;
	bool seen[VARIANTS];
} written[] = {
	{ "one_group_put", "put group/", "a group is made", { 0 } },
	{ "one_group_delete", "del group/", "a group is deleted", { 0 } },
	{ "put_instance_doc", "put instance/", "an instance is changed", { 0 } },
	{ "take_ids", "put next-id", "a storage is made", { 0 } },
	{ "registry_move_to_dropped", "put dropped/", "an instance is deleted", { 0 } },
	{ "registry_move_to_dropped", "del instance/", "an instance is deleted", { 0 } },
	{ "registry_forget_dropped", "del dropped/", "a checkpoint ends a deletion", { 0 } },
	{ "put_storage_doc", "put storage/", "a storage is changed", { 0 } },
	{ "forget_storage", "del storage/", "a storage is deleted", { 0 } },
	{ "forget_storage", "del file/", "a storage with files is deleted", { 0 } },
	{ "one_file_put", "put file/", "a file shall drain", { 0 } },
	{ "give_up", "put file/", "a file is given up", { 0 } },
	{ "make_file", "put file/", "a file is made", { 0 } },
	{ "make_file", "del file/", "a file cannot be made", { 0 } },
	{ "tell_gone", "put file/", "files go", { 0 } },
	{ "remove_gone", "del file/", "files go", { 0 } },
	{ "make_secret", "put secret", "a first load", { 0 } },
	{ "partition_put_behind", "put behind", "a first load", { 0 } },
	{ "new_incarnation", "put incarnation/", "a first load", { 0 } },
	{ "write_version", "put doc/", "a document is put", { 0 } },
	{ "write_version", "del doc/", "a document is deleted", { 0 } },
	{ "idle_store", "put unused", "an hour passes", { 0 } },
	/* Without a scene: what a manager says of itself is not fenced; owner files, which no
	 * storage here has; capacities and places, which several partitions share, of which the
	 * managers here have one; and the mark of a backup, which goes when a manager adopts it,
	 * where no free slot is to be had for as long as the scenes take. */
	{ "write_version", "put doc/", NULL, { 0 } },
	{ "write_version", "del doc/", NULL, { 0 } },
	{ "forget_old", "del incarnation/", NULL, { 0 } },
	{ "capacity_put_total", "put capacity/", NULL, { 0 } },
	{ "capacity_del_total", "del capacity/", NULL, { 0 } },
	{ "put_doc", "put place/", NULL, { 0 } },
	{ "finish", "put placed", NULL, { 0 } },
	{ "sweep", "del place/", NULL, { 0 } },
	{ "load", "del backup", NULL, { 0 } },
};

int __real_skv_store_put(struct skv_store *s, const struct skv_fence *fence, const char *key,
			 uint64_t expect, const void *bytes, size_t n, uint64_t *version,
			 struct skv_error *err);
int __wrap_skv_store_put(struct skv_store *s, const struct skv_fence *fence, const char *key,
			 uint64_t expect, const void *bytes, size_t n, uint64_t *version,
			 struct skv_error *err);
int __real_skv_store_del(struct skv_store *s, const struct skv_fence *fence, const char *key,
			 uint64_t expect, struct skv_error *err);
int __wrap_skv_store_del(struct skv_store *s, const struct skv_fence *fence, const char *key,
			 uint64_t expect, struct skv_error *err);

static void note(const struct skv_store *s, const char *how, const char *key)
{
	if (s == st.a.store)
		snprintf(st.write, sizeof st.write, "%s %.*s", how, (int)(strcspn(key, "/") + 1),
			 key);
}

int __wrap_skv_store_put(struct skv_store *s, const struct skv_fence *fence, const char *key,
			 uint64_t expect, const void *bytes, size_t n, uint64_t *version,
			 struct skv_error *err)
{
	note(s, "put", key);
	return __real_skv_store_put(s, fence, key, expect, bytes, n, version, err);
}

int __wrap_skv_store_del(struct skv_store *s, const struct skv_fence *fence, const char *key,
			 uint64_t expect, struct skv_error *err)
{
	note(s, "del", key);
	return __real_skv_store_del(s, fence, key, expect, err);
}

/* The disk of the storages, which have none: a file that is gone, as long as A is alone, and
 * no room for the next one. */
static struct {
	bool lost, full;
} disk;

int __real_skv_storage_check_file(struct skv_storage *s, uint32_t file, uint64_t length,
				  struct skv_error *err);
int __wrap_skv_storage_check_file(struct skv_storage *s, uint32_t file, uint64_t length,
				  struct skv_error *err);
int __real_skv_storage_create_file(struct skv_storage *s, uint32_t file, uint64_t length,
				   struct skv_error *err);
int __wrap_skv_storage_create_file(struct skv_storage *s, uint32_t file, uint64_t length,
				   struct skv_error *err);

int __wrap_skv_storage_check_file(struct skv_storage *s, uint32_t file, uint64_t length,
				  struct skv_error *err)
{
	if (disk.lost && file == 0)
		return skv_fail(err, SKV_E_NOT_FOUND, NULL, "gone");
	return __real_skv_storage_check_file(s, file, length, err);
}

int __wrap_skv_storage_create_file(struct skv_storage *s, uint32_t file, uint64_t length,
				   struct skv_error *err)
{
	if (disk.full)
		return skv_fail(err, SKV_E_NO_SPACE, NULL, "full");
	return __real_skv_storage_create_file(s, file, length, err);
}

static void note_interrupted(void)
{
	for (size_t i = 0; i < sizeof written / sizeof written[0]; i++)
		if (written[i].scene && strcmp(written[i].what, st.write) == 0 &&
		    strcmp(written[i].scene, st.scene->name) == 0)
			written[i].seen[st.variant] = true;
}

/* ---- what there is --------------------------------------------------------------------------- */

static int list_one(void *ctx, const char *key, const void *bytes, size_t n, uint64_t version)
{
	struct skv_buf *b = ctx;

	if (strncmp(key, "next-id", 7) == 0)
		return SKV_OK; /* numbers that nobody has any more */
	skv_put_bytes(b, key, strlen(key) + 1);
	skv_put_u64(b, version);
	skv_put_varint(b, n);
	skv_put_bytes(b, bytes, n);
	return SKV_OK;
}

static void read_registry(struct env *e, struct skv_buf *out)
{
	skv_buf_clear(out);
	assert_int_equal(skv_store_list(e->store, "", list_one, out, &e->err), SKV_OK);
	assert_false(out->failed);
}

/* Blocks of the instance, of the keys that each has here; 0 also if it is not there. */
static uint32_t found(struct env *e, const char *instance)
{
	struct skv_key k[BLOCKS];
	struct skv_match_req req = { .tenant = "t", .instances = &instance, .n_instances = 1,
				     .keys = k, .n_keys = BLOCKS };
	struct skv_match_res res;

	struct skv_arena a; /* the env's may be in use by the call that is interrupted */
	uint32_t n;

	env_keys(k, BLOCKS, 7, 1);
	skv_arena_init(&a);
	n = skv_cluster_match(e->cluster, &req, &res, &a, &e->err) == SKV_OK ? res.matched[0] : 0;
	skv_arena_destroy(&a);
	return n;
}

static int put_blocks(struct env *e, const char *instance)
{
	struct skv_key k[BLOCKS];
	struct skv_start_res s;
	struct skv_finish_res f;
	char session[SKV_SESSION_ID_HEX + 1];
	int rc;

	env_keys(k, BLOCKS, 7, 1);
	rc = env_start(e, &(struct env_start){ .instance = instance, .keys = k, .n = BLOCKS }, &s);
	if (rc != SKV_OK || s.n_write == 0)
		return rc;
	memcpy(session, s.session, sizeof session);
	return env_finish(e, session, NULL, 0, &f);
}

static int storage(struct env *e, const char *name, uint64_t capacity)
{
	struct skv_storage_spec s = { .name = name, .type = "null", .root = "",
				      .capacity = capacity, .unit = 64 * KB,
				      .file_size = 64 * KB, .enabled = true };

	return skv_cluster_storage_put(e->cluster, &s, SKV_PUT_ANY, NULL, &e->err);
}

static int instance(struct env *e, const char *id, const char *group, uint32_t weight)
{
	struct skv_spec spec = { "kv", 16 * KB };
	struct skv_instance_spec i = { .tenant = "t", .id = id, .group = group, .specs = &spec,
				       .n_specs = 1, .extra = "",
				       .weight = weight };

	return skv_cluster_instance_put(e->cluster, &i, SKV_PUT_ANY, NULL, &e->err);
}

static void make_everything(struct env *e)
{
	assert_int_equal(storage(e, "s", 4096 * KB), SKV_OK);
	assert_int_equal(storage(e, "t", 1024 * KB), SKV_OK);
	assert_int_equal(env_group(e, "g", 0, "s"), SKV_OK);
	assert_int_equal(env_group(e, "h", 0, "s"), SKV_OK);
	assert_int_equal(instance(e, "i", "g", 1), SKV_OK);
	assert_int_equal(instance(e, "x", "g", 1), SKV_OK);
	assert_int_equal(put_blocks(e, "x"), SKV_OK);
	assert_int_equal(skv_cluster_doc_put(e->cluster, "account/a", SKV_PUT_NEW, "old", &e->err),
			 SKV_OK);
	skv_cluster_tick(e->cluster);
}

/* Makes the objects of all scenes anew, as the next manager does. Some of them may be absent, or on
 * their way out. */
static void make_anew(struct env *e)
{
	storage(e, "n", 512 * KB);
	skv_cluster_storage_delete(e->cluster, "t", &e->err);
	storage(e, "t", 2048 * KB);
	env_group(e, "gn", 512 * KB, "s");
	skv_cluster_group_delete(e->cluster, "h", &e->err);
	env_group(e, "h", 2048 * KB, "s");
	skv_cluster_instance_delete(e->cluster, "t", "x", NULL, &e->err);
	instance(e, "x", "g", 5);
	instance(e, "xh", "h", 1);
	instance(e, "xn", "g", 1);
	for (uint32_t f = 0; f < 4; f++)
		env_file_drain(e->cluster, "s", f, false, false, &e->err);
	for (unsigned k = 0; k < 4; k++)
		put_blocks(e, instances[k]);
	skv_cluster_doc_delete(e->cluster, "account/a", &e->err);
	skv_cluster_doc_put(e->cluster, "account/a", SKV_PUT_NEW, "new", &e->err);
	/* the last one's files, also where the first was short of them */
	for (unsigned k = 0; k < 4; k++)
		put_blocks(e, instances[k]);
}

/* ---- the middle of a call -------------------------------------------------------------------- */

static void open_b(void)
{
	struct env *b = &st.b;

	env_init(b);
	b->o.owner_lease_ms = LEASE_MS;
	b->store_options = st.a.store_options;
	b->store_options.clock = &b->clock.clock;
	skv_fake_clock_advance(&b->clock, skv_now_ms(&st.a.clock.clock) -
						  skv_now_ms(&b->clock.clock) + HOUR_MS);
	assert_int_equal(skv_store_open(b->ops, &b->store_options, &b->store, &b->err), SKV_OK);
	b->o.store = b->store;
	env_create(b);
	assert_int_equal(skv_cluster_wait_ready(b->cluster, 10000), SKV_OK);
	skv_cluster_tick(b->cluster);
}

/* In the middle of a round of the committer, or of the owner thread's step, the manager
 * cannot have taken another one. */
static bool may_tick(const char *call)
{
	static const char *const own[] = { "append", "sync", "acquire", "renew", "release" };

	for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
		if (strcmp(call, own[i]) == 0)
			return false;
	return true;
}

static void reload(void)
{
	struct env side = st.a; /* another call of the same manager */
	struct skv_fault unknown = { .kind = SKV_FAULT_UNKNOWN_AFTER, .call = "append", .at = 1,
				     .times = 1 };
	struct skv_key k = { 9, 9 };
	struct skv_start_res s;

	skv_arena_init(&side.arena);
	skv_fault_store_set(st.a.store, &unknown);
	env_start(&side, &(struct env_start){ .keys = &k, .n = 1 }, &s);
	skv_fault_store_set(st.a.store, &(struct skv_fault){ .kind = SKV_FAULT_NONE });
	assert_int_equal(skv_cluster_wait_ready(st.a.cluster, 10000), SKV_OK);
	skv_arena_destroy(&side.arena);
}

static void remember(struct env *e)
{
	for (unsigned k = 0; k < 4; k++)
		st.committed[k] = found(e, instances[k]);
	read_registry(&st.a, &st.truth);
}

static void in_the_middle(void *ctx, const char *call)
{
	struct env *a = &st.a;

	(void)ctx;
	st.reached = true;
	skv_fault_store_set(a->store, &(struct skv_fault){ .kind = SKV_FAULT_NONE });
	if (st.variant != DEPOSED && !may_tick(call))
		return;
	st.hits++;
	st.writes = strcmp(call, "put") == 0 || strcmp(call, "del") == 0;
	if (st.writes)
		note_interrupted();
	disk.lost = disk.full = false;
	if (st.variant == RELOADED) {
		reload();
		remember(a);
		return;
	}
	open_b();
	make_anew(&st.b);
	remember(&st.b);
	assert_int_equal(st.committed[0] + st.committed[2], 2 * BLOCKS); /* of "i" and "xh" */
	if (st.variant == BACK)
		assert_int_equal(skv_cluster_demote(st.b.cluster, 2 * HOUR_MS, &st.b.err), SKV_OK);
	for (int i = 0; st.variant != DEPOSED && i < 3; i++)
		skv_cluster_tick(a->cluster);
	if (st.variant != DEPOSED)
		assert_int_equal(skv_cluster_state_get(a->cluster) == SKV_CORE_READY,
				 st.variant == BACK);
	read_registry(a, &st.truth); /* an owner goes on with what is due */
}

/* ---- afterwards ------------------------------------------------------------------------------ */

static void registry_is_as_it_was(void)
{
	struct skv_buf now = { 0 };

	read_registry(&st.a, &now);
	assert_int_equal(now.len, st.truth.len);
	assert_memory_equal(now.data, st.truth.data, now.len);
	skv_buf_destroy(&now);
}

static void next_manager_has_it_all(void)
{
	struct env *a = &st.a;

	if (st.b.core)
		env_crash(&st.b);
	env_crash(a);
	a->faulty = false;
	skv_fake_clock_advance(&a->clock, 2 * HOUR_MS);
	env_open(a);
	for (unsigned k = 0; k < 4; k++)
		assert_int_equal(found(a, instances[k]), st.committed[k]);
	env_check(a);
	for (unsigned k = 0; k < 4; k++) /* and all goes on */
		if (st.committed[k])
			assert_int_equal(put_blocks(a, instances[k]), SKV_OK);
	env_check(a);
}

/* False: the scene has fewer calls than n. */
static bool play(const struct scene *scene, enum variant variant, const char *only, uint64_t n)
{
	struct skv_fault rule = { .kind = SKV_FAULT_CALL, .call = only, .at = n, .times = 1,
				  .fn = in_the_middle };

	memset(&st, 0, sizeof st);
	disk.lost = disk.full = false;
	st.scene = scene;
	st.variant = variant;
	env_init(&st.a);
	st.a.o.owner_lease_ms = LEASE_MS;
	st.a.store_options.clock = &st.a.clock.clock;
	st.a.faulty = true;
	env_open(&st.a);
	make_everything(&st.a);
	if (scene->before)
		scene->before(&st.a);
	if (getenv("SKV_TEST_SCENES"))
		print_message("%s, %s: call %llu%s%s\n", scene->name, variant_name[variant],
			      (unsigned long long)n, only ? " of " : "", only ? only : "");
	skv_fault_store_set(st.a.store, &rule);
	scene->call(&st.a);
	if (st.hits && (variant <= NOTICED || !scene->background))
		registry_is_as_it_was();
	skv_fault_store_set(st.a.store, &(struct skv_fault){ .kind = SKV_FAULT_NONE });
	if (st.hits && variant == RELOADED && skv_cluster_state_get(st.a.cluster) == SKV_CORE_READY)
		remember(&st.a); /* nobody else came: it has gone on */
	for (int i = 0; st.hits && variant <= NOTICED && i < 3; i++) {
		skv_cluster_tick(st.a.cluster); /* the old manager may change nothing any more */
		registry_is_as_it_was();
	}
	if (st.hits)
		next_manager_has_it_all();
	env_destroy(&st.a);
	env_destroy(&st.b); /* crashed already, or never opened: its arena goes */
	skv_buf_destroy(&st.truth);
	return st.reached;
}

/* ---- scenes ---------------------------------------------------------------------------------- */

/* Makes a storage whose number is the first of a portion. */
static void storage_made(struct env *a)
{
	a->core->ids.end = a->core->ids.next;
	storage(a, "n", 1024 * KB);
}

static void storage_changed(struct env *a) { storage(a, "t", 3072 * KB); }
static void storage_deleted(struct env *a) { skv_cluster_storage_delete(a->cluster, "t", &a->err); }
static void group_made(struct env *a) { env_group(a, "gn", 1024 * KB, "s"); }
static void group_changed(struct env *a) { env_group(a, "h", 1024 * KB, "s"); }
static void group_deleted(struct env *a) { skv_cluster_group_delete(a->cluster, "h", &a->err); }
static void instance_made(struct env *a) { instance(a, "xn", "g", 3); }
static void instance_changed(struct env *a) { instance(a, "x", "g", 3); }

static void instance_deleted(struct env *a)
{
	skv_cluster_instance_delete(a->cluster, "t", "x", NULL, &a->err);
}

static void document_put(struct env *a)
{
	skv_cluster_doc_put(a->cluster, "account/a", SKV_PUT_ANY, "mine", &a->err);
}

static void document_deleted(struct env *a)
{
	skv_cluster_doc_delete(a->cluster, "account/a", &a->err);
}
static void drain_asked(struct env *a) { env_file_drain(a->cluster, "s", 0, true, false, &a->err); }

static void drain_ended(struct env *a)
{
	env_file_drain(a->cluster, "s", 0, false, false, &a->err);
}


/* A number is claimed, for a file that a start waits for. */
static void file_made(struct env *a) { put_blocks(a, "i"); }

/* Two files are emptied; when nothing durable names them, their documents say that they are gone,
 * then their names go, then the documents. */
static void files_go(struct env *a)
{
	for (int i = 0; i < 40; i++)
		env_advance(a, 100);
}

static void two_files_drain(struct env *a)
{
	assert_int_equal(put_blocks(a, "i"), SKV_OK);
	assert_int_equal(env_file_drain(a->cluster, "s", 0, true, false, &a->err), SKV_OK);
	assert_int_equal(env_file_drain(a->cluster, "s", 1, true, false, &a->err), SKV_OK);
}

static void fail_once(struct env *a, enum skv_fault_kind kind, const char *call)
{
	skv_fault_store_set(a->store, &(struct skv_fault){ .kind = kind, .call = call, .at = 1,
							   .times = 1,
							   .status = SKV_E_STORE_IO });
}

/* The deletion is journaled, but nothing is in the registry. */
static void half_deleted(struct env *a)
{
	fail_once(a, SKV_FAULT_ERROR, "put");
	assert_int_equal(skv_cluster_instance_delete(a->cluster, "t", "x", NULL, &a->err),
			 SKV_E_STORE_IO);
}

/* The document is in both places. */
static void more_than_half_deleted(struct env *a)
{
	fail_once(a, SKV_FAULT_ERROR, "del");
	assert_int_equal(skv_cluster_instance_delete(a->cluster, "t", "x", NULL, &a->err),
			 SKV_E_STORE_IO);
}

/* And the partition is to be loaded again, which ends the deletion. */
static void half_deleted_and_astray(struct env *a)
{
	half_deleted(a);
	fail_once(a, SKV_FAULT_UNKNOWN_AFTER, "put");
	assert_int_equal(storage(a, "t", 1536 * KB), SKV_E_UNKNOWN_OUTCOME);
}

static void load(struct env *a)
{
	for (int i = 0; i < 4; i++)
		skv_cluster_tick(a->cluster);
}

/* How long instances are unused is stored. */
static void an_hour_passes(struct env *a)
{
	env_advance(a, HOUR_MS);
	skv_cluster_tick(a->cluster);
}

/* The journal names it until the next checkpoint. */
static void deleted(struct env *a)
{
	assert_int_equal(skv_cluster_instance_delete(a->cluster, "t", "x", NULL, &a->err), SKV_OK);
}

/* Empty slab files of a storage that nobody uses. */
static void files_of_t(struct env *a)
{
	assert_int_equal(env_group(a, "gt", 0, "t"), SKV_OK);
	assert_int_equal(instance(a, "it", "gt", 1), SKV_OK);
	assert_int_equal(put_blocks(a, "it"), SKV_OK);
	assert_int_equal(skv_cluster_instance_delete(a->cluster, "t", "it", NULL, &a->err), SKV_OK);
	assert_int_equal(skv_cluster_group_delete(a->cluster, "gt", &a->err), SKV_OK);
}

/* The file system is full: the number that was claimed is given back. */
static void file_not_made(struct env *a)
{
	disk.full = true;
	for (int i = 0; i < 5; i++)
		put_blocks(a, "i");
	disk.full = false;
}

static void a_file_is_gone(struct env *a)
{
	assert_int_equal(put_blocks(a, "i"), SKV_OK);
	disk.lost = true;
}

/* For more than a minute. */
static void looked_for(struct env *a)
{
	for (int i = 0; i < 100 && disk.lost; i++)
		env_advance(a, 1000);
}

/* The first load of a manager writes what is not there, or is another's. */
static void not_loaded_yet(struct env *a)
{
	static const uint8_t behind[] = { 1, 7, 0, 0, 0, 0 }; /* another manager's settings */
	struct skv_buf b = { 0 };
	uint64_t version;

	fail_once(a, SKV_FAULT_UNKNOWN_AFTER, "put");
	assert_int_equal(storage(a, "t", 1536 * KB), SKV_E_UNKNOWN_OUTCOME);
	assert_int_equal(skv_store_get(a->store, "secret", &b, &version, &a->err), SKV_OK);
	assert_int_equal(skv_store_del(a->store, NULL, "secret", version, &a->err), SKV_OK);
	atomic_store(&a->core->has_secret, false);
	env_document(a, "behind", behind, sizeof behind);
	skv_buf_destroy(&b);
}

static const struct scene scenes[] = {
	{ "a storage is made", NULL, storage_made, false },
	{ "a storage is changed", NULL, storage_changed, false },
	{ "a storage is deleted", NULL, storage_deleted, false },
	{ "a storage with files is deleted", files_of_t, storage_deleted, false },
	{ "a file cannot be made", NULL, file_not_made, true },
	{ "a file is given up", a_file_is_gone, looked_for, true },
	{ "a first load", not_loaded_yet, load, true },
	{ "a group is made", NULL, group_made, false },
	{ "a group is changed", NULL, group_changed, false },
	{ "a group is deleted", NULL, group_deleted, false },
	{ "an instance is made", NULL, instance_made, false },
	{ "an instance is changed", NULL, instance_changed, false },
	{ "an instance is deleted", NULL, instance_deleted, false },
	{ "an instance's deletion is ended", half_deleted, instance_deleted, false },
	{ "an instance's deletion is ended, its document is there twice", more_than_half_deleted,
	  instance_deleted, false },
	{ "a document is put", NULL, document_put, false },
	{ "a document is deleted", NULL, document_deleted, false },
	{ "a file shall drain", NULL, drain_asked, false },
	{ "a file shall not drain any more", drain_asked, drain_ended, false },
	{ "a file is made", NULL, file_made, true },
	{ "files go", two_files_drain, files_go, true },
	{ "an hour passes", NULL, an_hour_passes, true },
	{ "a load ends a deletion", half_deleted_and_astray, load, true },
	{ "a checkpoint ends a deletion", deleted, storage_deleted, false },
};

/* Returns how many of the interrupted calls were writes. */
static unsigned play_scene(const struct scene *scene, enum variant variant, const char *only)
{
	unsigned writes = 0, n = 1;

	for (; play(scene, variant, only, n); n++) {
		assert_true(n < 400);
		writes += st.hits && st.writes;
	}
	return writes;
}

static void play_all(enum variant variant)
{
	for (size_t i = 0; i < sizeof scenes / sizeof scenes[0]; i++) {
		const struct scene *s = &scenes[i];
		unsigned writes = s->background ? play_scene(s, variant, "put") +
							  play_scene(s, variant, "del")
						: play_scene(s, variant, NULL);

		if (writes == 0)
			print_error("%s, %s: nothing was written\n", s->name,
				    variant_name[variant]);
		assert_true(writes > 0);
	}
}

static void the_deposed_owner_changes_nothing(void **state)
{
	(void)state;
	play_all(DEPOSED);
}

static void who_has_noticed_changes_nothing(void **state)
{
	(void)state;
	play_all(NOTICED);
}

/* The manager owns the partition, the call does not. */
static void a_call_of_an_earlier_ownership_changes_nothing(void **state)
{
	(void)state;
	play_all(BACK);
}

static void a_call_from_before_a_reload_changes_nothing(void **state)
{
	(void)state;
	play_all(RELOADED);
}

/* In each way; the tests before this one have played them all. */
static void every_write_has_its_scene(void **state)
{
	unsigned missed = 0;

	(void)state;
	for (size_t i = 0; i < sizeof written / sizeof written[0]; i++)
		for (unsigned v = 0; written[i].scene && v < VARIANTS; v++) {
			if (written[i].seen[v])
				continue;
			print_error("%s, %s: not in front of the '%s' of %s\n", written[i].scene,
				    variant_name[v], written[i].what, written[i].function);
			missed++;
		}
	assert_int_equal(missed, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_deposed_owner_changes_nothing),
		cmocka_unit_test(who_has_noticed_changes_nothing),
		cmocka_unit_test(a_call_of_an_earlier_ownership_changes_nothing),
		cmocka_unit_test(a_call_from_before_a_reload_changes_nothing),
		cmocka_unit_test(every_write_has_its_scene),
	};

	env_quiet();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
