/*
 * test_core_managers.c - administration when partitions are owned by several managers: the one that
 * leads asks the others, and answers as if it owned all.
 *
 * The others are cores of single partitions; what goes to them is encoded and decoded as between
 * managers.
 */
#include "core_env.h"

#include <stdio.h>
#include <string.h>

#include <skv/asks.h>
#include <skv/find.h>
#include <skv/v1_pb.h>

#include <lock/one.h>
#include <model/rules.h>

#define N 3u
#define BLOCK 65536u
#define UNIT (1ull << 20)
#define NEVER UINT32_MAX

struct managers {
	struct env e; /* the one that leads; partition 0 is its */
	struct skv_core *other[N]; /* NULL: there is none */
	struct skv_store *view[N];
	struct tenant_rules *rules;
	uint32_t asked, changes;
	uint32_t cut; /* changes from this one on are not answered */
	bool before; /* nor done */
};

static int setup(void **state)
{
	struct managers *m = test_calloc(1, sizeof *m);

	env_quiet();
	env_init(&m->e);
	m->e.all.partitions = N;
	m->e.o.owner_lease_ms = 5000;
	m->e.store_options.clock = &m->e.clock.clock;
	m->cut = NEVER;
	m->rules = rules_make();
	*state = m;
	return 0;
}

static void end_other(struct managers *m, uint32_t i)
{
	if (m->other[i])
		one_destroy(m->other[i]);
	if (m->view[i])
		skv_store_close(m->view[i]);
	m->other[i] = NULL;
	m->view[i] = NULL;
}

static int teardown(void **state)
{
	struct managers *m = *state;

	skv_thread_waits = false;
	for (uint32_t i = 1; i < N; i++)
		end_other(m, i);
	rules_free(m->rules);
	env_destroy(&m->e);
	test_free(m);
	return 0;
}

static void tick(struct managers *m, int n, uint64_t ms)
{
	for (int i = 0; i < n; i++) {
		skv_fake_clock_advance(&m->e.clock, ms);
		for (uint32_t k = 1; k < N; k++)
			if (m->other[k])
				one_tick(m->other[k]);
		if (m->e.cluster)
			skv_cluster_tick(m->e.cluster);
	}
}

/* ---- between them ---------------------------------------------------------------------------- */

/* Requests and answers by the names of their schemas. */
static const struct {
	const char *request, *answer;
	bool changes;
} messages[SKV_OP_COUNT] = {
	[SKV_OP_storage_list] = { NULL, "StorageList", false },
	[SKV_OP_storage_get] = { NULL, "StorageView", false },
	[SKV_OP_file_list] = { NULL, "FileList", false },
	[SKV_OP_group_list] = { NULL, "GroupList", false },
	[SKV_OP_group_get] = { NULL, "GroupView", false },
	[SKV_OP_instance_list] = { NULL, "InstanceList", false },
	[SKV_OP_instance_get] = { NULL, "InstanceView", false },
	[SKV_OP_stats] = { NULL, "Stats", false },
	[SKV_OP_storage_put] = { "StorageSpec", NULL, true },
	[SKV_OP_file_put] = { "FileWish", NULL, true },
	[SKV_OP_group_put] = { "GroupSpec", NULL, true },
	[SKV_OP_instance_put] = { "InstanceSpec", NULL, true },
	[SKV_OP_purge] = { "PurgeRequest", "PurgeResult", true },
	[SKV_OP_storage_delete] = { NULL, NULL, true },
	[SKV_OP_group_delete] = { NULL, NULL, true },
	[SKV_OP_instance_delete] = { NULL, NULL, true },
};

union message {
	struct skv_storage_spec storage;
	struct skv_group_spec group;
	struct skv_instance_spec instance;
	struct skv_file_wish file;
	struct skv_purge_req purge;
	struct skv_storage_list storages;
	struct skv_storage_view storage_view;
	struct skv_file_list files;
	struct skv_group_list groups;
	struct skv_group_view group_view;
	struct skv_instance_list instances;
	struct skv_instance_view instance_view;
	struct skv_stats stats;
	struct skv_purge_res purged;
};

static void copy(const char *schema, const void *from, void *to, struct skv_arena *a)
{
	const struct skv_v1_in in = { .arena = a };
	struct skv_buf b = { 0 };
	struct skv_error err;

	skv_pb_write_named(schema, &b, from);
	if (skv_pb_read_named(schema, &in, (const char *)b.data, b.len, to, &err) != SKV_OK)
		fail_msg("%s: %s: %s", schema, err.field, err.message);
	skv_buf_destroy(&b);
}

/* Performs the operation in that one partition. */
static int change_there(struct skv_core *c, struct skv_peer_call *q, union message *req,
			struct skv_error *err)
{
	switch (q->op) {
	case SKV_OP_storage_put:
		req->storage.name = q->name;
		return one_storage_put(c, &req->storage, q->how, &q->created, err);
	case SKV_OP_storage_delete: return one_storage_delete(c, q->name, err);
	case SKV_OP_file_put: return one_file_put(c, q->name, &req->file, err);
	case SKV_OP_group_put:
		req->group.name = q->name;
		return one_group_put(c, &req->group, q->how, q->version, &q->created, err);
	case SKV_OP_group_delete: return one_group_delete(c, q->name, err);
	case SKV_OP_instance_put:
		req->instance.tenant = q->tenant;
		req->instance.id = q->name;
		return one_instance_put(c, &req->instance, q->how, &q->created, err);
	case SKV_OP_instance_delete:
		return one_instance_delete(c, q->tenant, q->name, q->unused, err);
	default: fail_msg("operation %d", q->op); return SKV_E_INVALID;
	}
}

static const struct skv_page first_page = SKV_PAGE;

static int look_there(struct skv_core *c, const struct skv_peer_call *q, union message *req,
		      union message *res, struct skv_error *err)
{
	struct skv_storage_view *s;
	struct skv_group_view *g;
	struct skv_instance_view *i;
	int rc;

	switch (q->op) {
	case SKV_OP_storage_list:
		return one_storage_list(c, q->page, q->arena, &res->storages, err);
	case SKV_OP_storage_get:
		rc = one_storage(c, q->name, q->arena, &s, err);
		res->storage_view = rc == SKV_OK ? *s : res->storage_view;
		return rc;
	case SKV_OP_file_list:
		return one_files(c, q->name, q->arena, &res->files.files, &res->files.n_files,
				 err);
	case SKV_OP_group_list:
		return one_group_list(c, q->page, q->arena, &res->groups, err);
	case SKV_OP_group_get:
		rc = one_group(c, q->name, q->arena, &g, err);
		res->group_view = rc == SKV_OK ? *g : res->group_view;
		return rc;
	case SKV_OP_instance_list:
		return one_instance_list(c, q->page, q->arena, &res->instances, err);
	case SKV_OP_instance_get:
		rc = one_instance(c, q->tenant, q->name, q->arena, &i, err);
		res->instance_view = rc == SKV_OK ? *i : res->instance_view;
		return rc;
	case SKV_OP_stats: return one_stats(c, &first_page, q->arena, &res->stats, err);
	case SKV_OP_purge:
		req->purge.tenant = q->tenant;
		return one_purge(c, &req->purge, &res->purged, q->arena, err);
	default: fail_msg("operation %d", q->op); return SKV_E_INVALID;
	}
}

static int carry(struct managers *m, struct skv_peer_call *q, struct skv_error *err)
{
	struct skv_core *c = m->other[q->partition];
	union message req = { 0 }, res = { 0 };
	struct skv_arena a;
	int rc;

	skv_arena_init(&a);
	if (q->req)
		copy(messages[q->op].request, q->req, &req, &a);
	rc = q->res ? look_there(c, q, &req, &res, err) : change_there(c, q, &req, err);
	if (rc == SKV_OK && q->res)
		copy(messages[q->op].answer, &res, q->res, q->arena);
	skv_arena_destroy(&a);
	return rc;
}

static int ask(void *ctx, struct skv_peer_call *q, struct skv_error *err)
{
	struct managers *m = ctx;
	const bool changes = messages[q->op].changes;
	const uint32_t number = changes ? m->changes++ : 0;
	const bool cut = changes && number >= m->cut;
	int rc;

	assert_in_range(q->partition, 1, N - 1);
	m->asked++;
	if (!m->other[q->partition] || (cut && m->before))
		return skv_fail(err, SKV_E_NETWORK, NULL, "its owner does not answer");
	rc = carry(m, q, err);
	return cut ? skv_fail(err, SKV_E_UNKNOWN_OUTCOME, NULL, "its owner does not answer") : rc;
}

static void open_other(struct managers *m, uint32_t i)
{
	const struct one_place at = { .number = i, .shares = true, .rules = m->rules };
	struct skv_core_options o = m->e.o;

	assert_int_equal(skv_store_partition(m->e.store, i, "secret", &m->view[i], &m->e.err),
			 SKV_OK);
	o.store = m->view[i];
	assert_int_equal(one_create(&o, &at, &m->other[i], &m->e.err), SKV_OK);
	while (one_state_get(m->other[i]) != SKV_CORE_READY)
		one_tick(m->other[i]);
	one_tick(m->other[i]);
}

static void open_lead(struct managers *m)
{
	m->e.o.store = m->e.store;
	env_create(&m->e);
	skv_cluster_ask_by(m->e.cluster, ask, m);
	tick(m, 20, 100);
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(skv_cluster_partition_state(m->e.cluster, i),
				 i ? SKV_CORE_STANDBY : SKV_CORE_READY);
}

/* Makes a manager for each partition, over a store that one manager has had. */
static void part(struct managers *m)
{
	tick(m, 5, 10); /* names get their places */
	env_shutdown(&m->e);
	assert_int_equal(skv_store_open(m->e.ops, &m->e.store_options, &m->e.store, &m->e.err),
			 SKV_OK);
	for (uint32_t i = 1; i < N; i++)
		open_other(m, i);
	open_lead(m);
	skv_thread_waits = true;
}

static int put_storage(struct managers *m, const char *name, const char *type, uint64_t capacity)
{
	const bool pages = strcmp(type, "external") == 0;
	struct skv_storage_spec s = { .name = name, .type = type, .root = "",
				      .capacity = capacity, .unit = pages ? 0 : UNIT,
				      .file_size = pages ? 0 : UNIT, .enabled = true };

	return skv_cluster_storage_put(m->e.cluster, &s, SKV_PUT_ANY, NULL, &m->e.err);
}

static const char *const names[] = { "a", "b", "c", "d", "e", "f" };

/* Groups a, b, c with instances of their names, in partitions 0, 1, 2. */
static void make(struct managers *m)
{
	const struct skv_spec spec = { "kv", BLOCK };

	env_open(&m->e);
	assert_int_equal(put_storage(m, "s", "null", 30 * UNIT), SKV_OK);
	for (uint32_t i = 0; i < N; i++) {
		assert_int_equal(env_group(&m->e, names[i], 0, "s"), SKV_OK);
		assert_int_equal(env_instance(&m->e, names[i], names[i], &spec, 1), SKV_OK);
	}
}

/* Returns the storage's lease in partition `number`. */
static uint64_t storage_of(struct managers *m, uint32_t number)
{
	struct skv_storage_view *v;

	assert_int_equal(one_storage(m->other[number], "s", &m->e.arena, &v, &m->e.err),
			 SKV_OK);
	return v[0].spec.capacity;
}

/* ---- what is seen ---------------------------------------------------------------------------- */

static uint32_t n_storages(struct managers *m, const char *name)
{
	struct skv_storage_view *v;
	uint32_t n = name ? 1 : 0;
	int rc = name ? skv_cluster_storage(m->e.cluster, name, &m->e.arena, &v, &m->e.err)
		      : skv_cluster_every_storage(m->e.cluster, "", &m->e.arena, &v, &n, &m->e.err);

	if (rc == SKV_E_NOT_FOUND)
		return 0;
	assert_int_equal(rc, SKV_OK);
	return n;
}

static uint32_t n_groups(struct managers *m, const char *name)
{
	struct skv_group_view *v;
	uint32_t n = name ? 1 : 0;
	int rc = name ? skv_cluster_group(m->e.cluster, name, &m->e.arena, &v, &m->e.err)
		      : skv_cluster_every_group(m->e.cluster, "", &m->e.arena, &v, &n, &m->e.err);

	if (rc == SKV_E_NOT_FOUND)
		return 0;
	assert_int_equal(rc, SKV_OK);
	return n;
}

static uint32_t n_instances(struct managers *m, const char *id)
{
	struct skv_instance_view *v;
	uint32_t n = id ? 1 : 0;
	int rc = id ? skv_cluster_instance(m->e.cluster, "t", id, &m->e.arena, &v, &m->e.err)
		    : skv_cluster_every_instance(m->e.cluster, "t", &m->e.arena, &v, &n, &m->e.err);

	if (rc == SKV_E_NOT_FOUND)
		return 0;
	assert_int_equal(rc, SKV_OK);
	for (uint32_t i = 0; i < n; i++)
		assert_string_equal(v[i].spec.tenant, "t");
	return n;
}

static uint64_t capacity(struct managers *m, const char *name)
{
	struct skv_storage_view *v;

	assert_int_equal(skv_cluster_storage(m->e.cluster, name, &m->e.arena, &v, &m->e.err),
			 SKV_OK);
	return v[0].spec.capacity;
}

static void all_is_seen(void **state)
{
	struct managers *m = *state;
	struct skv_file_view *f;
	struct skv_stats st;
	uint32_t n;

	make(m);
	part(m);
	assert_int_equal(n_storages(m, NULL), 1);
	assert_int_equal(n_storages(m, "s"), 1);
	assert_int_equal(n_storages(m, "nobody"), 0);
	assert_int_equal(capacity(m, "s"), 30 * UNIT);
	assert_int_equal(n_groups(m, NULL), 3);
	assert_int_equal(n_instances(m, NULL), 3);
	for (uint32_t i = 0; i < N; i++) {
		assert_int_equal(n_groups(m, names[i]), 1);
		assert_int_equal(n_instances(m, names[i]), 1);
	}
	assert_int_equal(n_groups(m, "nobody"), 0);
	assert_int_equal(n_instances(m, "nobody"), 0);
	assert_int_equal(skv_cluster_files(m->e.cluster, "s", &m->e.arena, &f, &n, &m->e.err),
			 SKV_OK);
	assert_int_equal(skv_cluster_files(m->e.cluster, "no", &m->e.arena, &f, &n, &m->e.err),
			 SKV_E_NOT_FOUND);
	assert_int_equal(skv_cluster_stats_all(m->e.cluster, &first_page, &m->e.arena, &st,
					       &m->e.err),
			 SKV_OK);
	assert_int_equal(st.n_storages, 1);
	assert_int_equal(st.n_groups, 3);
	assert_int_equal(st.n_instances, 3);
	assert_int_equal(st.storages[0].spec.capacity, 30 * UNIT);
	assert_string_equal(st.state, "ready");
	assert_true(m->asked > 0);
}

/* A thread that may not wait is told so, and nobody is asked. */
static void threads_that_may_not_wait_do_not(void **state)
{
	const struct skv_target all = { .kind = SKV_TARGET_NONE };
	const struct skv_target one = { .kind = SKV_TARGET_GROUP, .name = names[1] };
	struct managers *m = *state;
	struct skv_group_view *g;
	struct skv_door door;
	uint32_t n, asked;

	make(m);
	part(m);
	skv_thread_waits = false;
	asked = m->asked;
	assert_int_equal(skv_cluster_every_group(m->e.cluster, "", &m->e.arena, &g, &n, &m->e.err),
			 SKV_E_NOT_OWNER);
	skv_find(m->e.cluster, &all, &door);
	assert_true(door.unknown);
	skv_error_clear(&m->e.err);
	/* a single name is at one manager, and the call goes there */
	assert_int_equal(skv_cluster_group(m->e.cluster, names[1], &m->e.arena, &g, &m->e.err),
			 SKV_E_NOT_OWNER);
	assert_int_equal(skv_find(m->e.cluster, &one, &door), SKV_THERE);
	assert_int_equal(door.partition, 1);
	assert_int_equal(n_groups(m, names[0]), 1);
	assert_int_equal(m->asked, asked);
}

static void all_is_changed(void **state)
{
	struct managers *m = *state;
	const struct skv_spec spec = { "kv", BLOCK };
	const struct skv_spec page = { "page", 1 };
	uint64_t version = 7;
	struct skv_group_spec g = { .name = "b", .storages = &names[0], .n_storages = 1,
				    .loose_storages = true, .version = 8 };

	make(m);
	part(m);
	for (uint32_t i = N; i < 6; i++) {
		assert_int_equal(env_group(&m->e, names[i], 0, "s"), SKV_OK);
		assert_int_equal(env_instance(&m->e, names[i], names[i], &spec, 1), SKV_OK);
		assert_int_equal(env_instance(&m->e, names[i], names[i], &spec, 1), SKV_OK);
	}
	assert_int_equal(n_groups(m, NULL), 6);
	assert_int_equal(n_instances(m, NULL), 6);
	/* errors are those of one */
	assert_int_equal(env_instance(&m->e, "x", "nobody", &spec, 1), SKV_E_NOT_FOUND);
	assert_int_equal(env_instance(&m->e, "a", "b", &spec, 1), SKV_E_CONFLICT);
	assert_int_equal(
		skv_cluster_group_put(m->e.cluster, &g, SKV_PUT_NEW, NULL, NULL, &m->e.err),
		SKV_E_CONFLICT);
	assert_string_equal(m->e.err.field, "name");
	assert_int_equal(
		skv_cluster_group_put(m->e.cluster, &g, SKV_PUT_ANY, &version, NULL, &m->e.err),
		SKV_E_CONFLICT);
	assert_string_equal(m->e.err.field, "version");
	version = 0;
	assert_int_equal(
		skv_cluster_group_put(m->e.cluster, &g, SKV_PUT_ANY, &version, NULL, &m->e.err),
		SKV_OK);
	assert_int_equal(skv_cluster_group_delete(m->e.cluster, "c", &m->e.err), SKV_E_IN_USE);
	assert_int_equal(skv_cluster_storage_delete(m->e.cluster, "s", &m->e.err), SKV_E_IN_USE);
	assert_int_equal(skv_cluster_instance_delete(m->e.cluster, "t", "b",
						     &(struct skv_unused){ 60000, false },
						     &m->e.err),
			 SKV_E_IN_USE);
	assert_int_equal(env_file_drain(m->e.cluster, "s", 99, true, false, &m->e.err),
			 SKV_E_NOT_FOUND);
	/* pages: storage, group and instance are in one partition, whichever */
	for (uint32_t i = 0; i < N; i++) {
		char name[8];

		snprintf(name, sizeof name, "p%u", i);
		assert_int_equal(put_storage(m, name, "external", 100), SKV_OK);
		assert_int_equal(put_storage(m, name, "external", 200), SKV_OK);
		assert_int_equal(env_group(&m->e, name, 0, name), SKV_OK);
		assert_int_equal(env_instance(&m->e, name, name, &page, 1), SKV_OK);
		assert_int_equal(capacity(m, name), 200);
		assert_int_equal(
			skv_cluster_instance_delete(m->e.cluster, "t", name, NULL, &m->e.err),
			SKV_OK);
		assert_int_equal(skv_cluster_group_delete(m->e.cluster, name, &m->e.err), SKV_OK);
		tick(m, 2, 100);
		assert_int_equal(skv_cluster_storage_delete(m->e.cluster, name, &m->e.err), SKV_OK);
		assert_int_equal(n_storages(m, name), 0);
	}
	for (uint32_t i = 0; i < 6; i++) {
		assert_int_equal(
			skv_cluster_instance_delete(m->e.cluster, "t", names[i], NULL, &m->e.err),
			SKV_OK);
		assert_int_equal(skv_cluster_group_delete(m->e.cluster, names[i], &m->e.err),
				 SKV_OK);
	}
	assert_int_equal(n_groups(m, NULL), 0);
	tick(m, 2, 100);
	assert_int_equal(put_storage(m, "s", "null", 60 * UNIT), SKV_OK);
	assert_int_equal(capacity(m, "s"), 60 * UNIT);
	assert_int_equal(skv_cluster_storage_delete(m->e.cluster, "s", &m->e.err), SKV_OK);
	assert_int_equal(n_storages(m, NULL), 0);
}

/* ---- somebody is away ------------------------------------------------------------------------ */

/* The error is a sentence that names the partition; nothing is left out, or made by half
 * permanently. */
static void an_owner_that_is_away_is_named(void **state)
{
	struct managers *m = *state;
	struct skv_group_view *g;
	uint32_t n;

	make(m);
	part(m);
	end_other(m, 2);
	assert_int_equal(skv_cluster_every_group(m->e.cluster, "", &m->e.arena, &g, &n, &m->e.err),
			 SKV_E_UNAVAILABLE);
	assert_non_null(strstr(m->e.err.message, "partition 2"));
	assert_non_null(strstr(m->e.err.message, "does not answer"));
	assert_int_equal(n_groups(m, names[1]), 1);
	assert_int_equal(put_storage(m, "new", "null", 30 * UNIT), SKV_E_UNAVAILABLE);
	tick(m, 100, 100); /* the partition is taken over */
	assert_int_equal(skv_cluster_partition_state(m->e.cluster, 2), SKV_CORE_READY);
	assert_int_equal(n_groups(m, NULL), 3);
	assert_int_equal(put_storage(m, "new", "null", 30 * UNIT), SKV_OK);
	assert_int_equal(capacity(m, "new"), 30 * UNIT);
	assert_int_equal(skv_cluster_storage_delete(m->e.cluster, "new", &m->e.err), SKV_OK);
}

/* A repeat completes the operation, whichever change was the last to be answered. */
static void what_was_cut_is_completed_by_a_repeat(void **state)
{
	struct managers *m = *state;
	uint32_t rounds = 0;

	make(m);
	part(m);
	for (uint32_t i = 0; i < 2 * N; i++) {
		m->before = i % 2;
		m->changes = 0;
		m->cut = i / 2;
		rounds += put_storage(m, "new", "null", 30 * UNIT) != SKV_OK;
		m->cut = NEVER;
		assert_int_equal(put_storage(m, "new", "null", 30 * UNIT), SKV_OK);
		tick(m, 10, 100);
		assert_int_equal(capacity(m, "new"), 30 * UNIT);
		m->changes = 0;
		m->cut = i / 2;
		rounds += skv_cluster_storage_delete(m->e.cluster, "new", &m->e.err) != SKV_OK;
		m->cut = NEVER;
		tick(m, 10, 100);
		if (n_storages(m, "new"))
			assert_int_equal(skv_cluster_storage_delete(m->e.cluster, "new", &m->e.err),
					 SKV_OK);
		assert_int_equal(n_storages(m, "new"), 0);
	}
	assert_true(rounds > N);
}

/* So many blocks more, at the owner of its partition. */
static void put(struct managers *m, uint32_t partition, uint64_t first, uint32_t n)
{
	struct env there = m->e;
	struct skv_finish_res f = { 0 };
	struct skv_start_res s;
	struct skv_key k[16];
	char session[SKV_SESSION_ID_HEX + 1];

	there.cluster = NULL;
	there.core = m->other[partition];
	skv_arena_init(&there.arena);
	env_keys(k, n, 7, first);
	assert_int_equal(env_start(&there, &(struct env_start){ .instance = names[partition],
								.keys = k, .n = n,
								.independent = true },
				   &s),
			 SKV_OK);
	memcpy(session, s.session, sizeof session);
	assert_int_equal(env_finish(&there, session, NULL, 0, &f), SKV_OK);
	assert_int_equal(f.committed, n);
	skv_arena_destroy(&there.arena);
}

/* Capacity that one owner needs comes from others: nothing is evicted while there is room
 * anywhere. */
static void capacity_goes_to_who_needs_it(void **state)
{
	enum { EACH = 10, MORE = 24 }; /* units of 16 blocks */
	struct managers *m = *state;
	struct skv_stats st;

	make(m);
	part(m);
	assert_int_equal(capacity(m, "s"), 30 * UNIT);
	assert_int_equal(storage_of(m, 2), EACH * UNIT);
	for (uint32_t i = 0; i < 8 * MORE; i++) {
		put(m, 2, 2 * i, 2);
		tick(m, 4, 20);
	}
	assert_int_equal(capacity(m, "s"), 30 * UNIT);
	assert_in_range(storage_of(m, 2), MORE * UNIT, 28 * UNIT);
	assert_int_equal(skv_cluster_stats_all(m->e.cluster, &first_page, &m->e.arena, &st,
					       &m->e.err),
			 SKV_OK);
	assert_int_equal(st.evicted_blocks, 0);
	assert_int_equal(st.blocks, 16 * MORE);
	m->asked = 0;
	tick(m, 100, 20);
	assert_in_range(m->asked, 1, 2 * 100); /* a single question each time */
	end_other(m, 1); /* while one is away nothing moves, and nothing is lost */
	tick(m, 10, 20);
	assert_in_range(storage_of(m, 2), MORE * UNIT, 28 * UNIT);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest cases[] = {
		CASE(all_is_seen),
		CASE(threads_that_may_not_wait_do_not),
		CASE(all_is_changed),
		CASE(an_owner_that_is_away_is_named),
		CASE(what_was_cut_is_completed_by_a_repeat),
		CASE(capacity_goes_to_who_needs_it),
	};

	return cmocka_run_group_tests_name("managers", cases, NULL, NULL);
}
