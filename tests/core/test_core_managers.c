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

#include <skv/find.h>
#include <skv/v1_codec.h>

#define N 3u
#define BLOCK 65536u
#define UNIT (1ull << 20)
#define NEVER UINT32_MAX

struct managers {
	struct env e; /* the one that leads; partition 0 is its */
	struct skv_core *other[N]; /* NULL: there is none */
	struct skv_store *view[N];
	struct skv_core_asks asks;
	uint32_t asked, changes;
	uint32_t cut; /* changes from this one on are not answered */
	bool before; /* nor done */
	bool json;
};

static int setup(void **state)
{
	struct managers *m = test_calloc(1, sizeof *m);

	env_quiet();
	env_init(&m->e);
	m->e.o.partitions = N;
	m->e.o.owner_lease_ms = 5000;
	m->e.store_options.clock = &m->e.clock.clock;
	m->cut = NEVER;
	*state = m;
	return 0;
}

static void end_other(struct managers *m, uint32_t i)
{
	if (m->other[i])
		skv_core_destroy(m->other[i]);
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
				skv_core_tick(m->other[k]);
		if (m->e.core)
			skv_core_tick(m->e.core);
	}
}

/* ---- between them ---------------------------------------------------------------------------- */

static const struct skv_v1_codec *codec_of(struct managers *m)
{
	m->json = !m->json;
	return m->json ? &skv_v1_json : &skv_v1_pb;
}

static int carry(struct managers *m, const struct skv_ask *q, struct skv_told *out,
		 struct skv_arena *a, struct skv_error *err)
{
	const struct skv_v1_codec *codec = codec_of(m);
	const struct skv_v1_in in = { .arena = a };
	struct skv_buf b = { 0 };
	struct skv_told t;
	struct skv_ask there;
	int rc;

	codec->write_ask_req(&b, q);
	rc = codec->read_ask_req(&in, (const char *)b.data, b.len, &there, err);
	if (rc != SKV_OK)
		fail_msg("%s: %s", err->field, err->message);
	skv_buf_destroy(&b);
	rc = skv_core_asked(m->other[q->partition], &there, &t, a, err);
	if (rc != SKV_OK)
		return rc;
	skv_buf_init(&b);
	codec->write_told_res(&b, &t);
	rc = codec->read_told_res(&in, (const char *)b.data, b.len, out, err);
	if (rc != SKV_OK)
		fail_msg("%s: %s", err->field, err->message);
	skv_buf_destroy(&b);
	return rc;
}

static bool changes(enum skv_ask_what what)
{
	return what != SKV_ASK_STORAGES && what != SKV_ASK_FILES && what != SKV_ASK_GROUPS &&
	       what != SKV_ASK_INSTANCES && what != SKV_ASK_USE && what != SKV_ASK_STATS;
}

static int ask(void *ctx, const struct skv_ask *q, struct skv_told *out, struct skv_arena *a,
	       struct skv_error *err)
{
	struct managers *m = ctx;
	const uint32_t number = changes(q->what) ? m->changes++ : 0;
	const bool cut = changes(q->what) && number >= m->cut;
	int rc;

	assert_in_range(q->partition, 1, N - 1);
	m->asked++;
	if (!m->other[q->partition] || (cut && m->before))
		return skv_fail(err, SKV_E_NETWORK, NULL, "its owner does not answer");
	rc = carry(m, q, out, a, err);
	return cut ? skv_fail(err, SKV_E_UNKNOWN_OUTCOME, NULL, "its owner does not answer") : rc;
}

static void open_other(struct managers *m, uint32_t i)
{
	struct skv_core_options o = m->e.o;

	assert_int_equal(skv_store_partition(m->e.store, i, "secret", &m->view[i], &m->e.err),
			 SKV_OK);
	o.store = m->view[i];
	o.partitions = 0;
	o.partition = i;
	assert_int_equal(skv_core_create(&o, &m->other[i], &m->e.err), SKV_OK);
	assert_int_equal(skv_core_wait_ready(m->other[i], 10000), SKV_OK);
	skv_core_tick(m->other[i]);
}

static void open_lead(struct managers *m)
{
	m->e.o.store = m->e.store;
	assert_int_equal(skv_core_create(&m->e.o, &m->e.core, &m->e.err), SKV_OK);
	m->asks = (struct skv_core_asks){ .ask = ask, .ctx = m };
	skv_core_ask_by(m->e.core, &m->asks);
	tick(m, 20, 100);
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(skv_core_partition_state(m->e.core, i),
				 i ? SKV_CORE_STANDBY : SKV_CORE_READY);
}

/* One for each partition, over a store that one manager has had. */
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

	return skv_core_storage_put(m->e.core, &s, NULL, &m->e.err);
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

/* Its lease in partition `number`. */
static uint64_t storage_of(struct managers *m, uint32_t number)
{
	struct skv_storage_view *v;
	uint32_t n;

	assert_int_equal(skv_core_storages(m->other[number], "s", &m->e.arena, &v, &n, &m->e.err),
			 SKV_OK);
	return v[0].spec.capacity;
}

/* ---- what is seen ---------------------------------------------------------------------------- */

static uint32_t n_storages(struct managers *m, const char *name)
{
	struct skv_storage_view *v;
	uint32_t n = 0;
	int rc = skv_core_storages(m->e.core, name, &m->e.arena, &v, &n, &m->e.err);

	if (rc == SKV_E_NOT_FOUND)
		return 0;
	assert_int_equal(rc, SKV_OK);
	return n;
}

static uint32_t n_groups(struct managers *m, const char *name)
{
	struct skv_group_view *v;
	uint32_t n = 0;
	int rc = skv_core_groups(m->e.core, name, &m->e.arena, &v, &n, &m->e.err);

	if (rc == SKV_E_NOT_FOUND)
		return 0;
	assert_int_equal(rc, SKV_OK);
	return n;
}

static uint32_t n_instances(struct managers *m, const char *id)
{
	struct skv_instance_view *v;
	uint32_t n = 0;
	int rc = skv_core_instances(m->e.core, "t", id, &m->e.arena, &v, &n, &m->e.err);

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
	uint32_t n;

	assert_int_equal(skv_core_storages(m->e.core, name, &m->e.arena, &v, &n, &m->e.err),
			 SKV_OK);
	assert_int_equal(n, 1);
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
	assert_int_equal(skv_core_files(m->e.core, "s", &m->e.arena, &f, &n, &m->e.err), SKV_OK);
	assert_int_equal(skv_core_files(m->e.core, "no", &m->e.arena, &f, &n, &m->e.err),
			 SKV_E_NOT_FOUND);
	assert_int_equal(skv_core_stats_all(m->e.core, &m->e.arena, &st, &m->e.err), SKV_OK);
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
	assert_int_equal(skv_core_groups(m->e.core, NULL, &m->e.arena, &g, &n, &m->e.err),
			 SKV_E_NOT_OWNER);
	skv_find(m->e.core, &all, &door);
	assert_true(door.unknown);
	skv_error_clear(&m->e.err);
	/* a single name is at one manager, and the call goes there */
	assert_int_equal(skv_core_groups(m->e.core, names[1], &m->e.arena, &g, &n, &m->e.err),
			 SKV_E_NOT_OWNER);
	assert_int_equal(skv_find(m->e.core, &one, &door), SKV_THERE);
	assert_true(door.sure && door.partition == 1);
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
	assert_int_equal(skv_core_group_create(m->e.core, &g, &m->e.err), SKV_E_CONFLICT);
	assert_string_equal(m->e.err.field, "name");
	assert_int_equal(skv_core_group_put(m->e.core, &g, &version, NULL, &m->e.err),
			 SKV_E_CONFLICT);
	assert_string_equal(m->e.err.field, "version");
	version = 0;
	assert_int_equal(skv_core_group_put(m->e.core, &g, &version, NULL, &m->e.err), SKV_OK);
	assert_int_equal(skv_core_group_delete(m->e.core, "c", &m->e.err), SKV_E_IN_USE);
	assert_int_equal(skv_core_storage_delete(m->e.core, "s", &m->e.err), SKV_E_IN_USE);
	assert_int_equal(skv_core_instance_delete_unused(m->e.core, "t", "b", 60000, false,
							 &m->e.err),
			 SKV_E_IN_USE);
	assert_int_equal(skv_core_file_drain(m->e.core, "s", 99, true, false, &m->e.err),
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
		assert_int_equal(skv_core_instance_delete(m->e.core, "t", name, &m->e.err), SKV_OK);
		assert_int_equal(skv_core_group_delete(m->e.core, name, &m->e.err), SKV_OK);
		tick(m, 2, 100);
		assert_int_equal(skv_core_storage_delete(m->e.core, name, &m->e.err), SKV_OK);
		assert_int_equal(n_storages(m, name), 0);
	}
	for (uint32_t i = 0; i < 6; i++) {
		assert_int_equal(skv_core_instance_delete(m->e.core, "t", names[i], &m->e.err),
				 SKV_OK);
		assert_int_equal(skv_core_group_delete(m->e.core, names[i], &m->e.err), SKV_OK);
	}
	assert_int_equal(n_groups(m, NULL), 0);
	tick(m, 2, 100);
	assert_int_equal(put_storage(m, "s", "null", 60 * UNIT), SKV_OK);
	assert_int_equal(capacity(m, "s"), 60 * UNIT);
	assert_int_equal(skv_core_storage_delete(m->e.core, "s", &m->e.err), SKV_OK);
	assert_int_equal(n_storages(m, NULL), 0);
}

/* ---- somebody is away ------------------------------------------------------------------------ */

/* One sentence that names the partition; nothing is left out, or made by half for good. */
static void an_owner_that_is_away_is_named(void **state)
{
	struct managers *m = *state;
	struct skv_group_view *g;
	uint32_t n;

	make(m);
	part(m);
	end_other(m, 2);
	assert_int_equal(skv_core_groups(m->e.core, NULL, &m->e.arena, &g, &n, &m->e.err),
			 SKV_E_UNAVAILABLE);
	assert_non_null(strstr(m->e.err.message, "partition 2"));
	assert_non_null(strstr(m->e.err.message, "does not answer"));
	assert_int_equal(n_groups(m, names[1]), 1);
	assert_int_equal(put_storage(m, "new", "null", 30 * UNIT), SKV_E_UNAVAILABLE);
	tick(m, 100, 100); /* it is taken over */
	assert_int_equal(skv_core_partition_state(m->e.core, 2), SKV_CORE_READY);
	assert_int_equal(n_groups(m, NULL), 3);
	assert_int_equal(put_storage(m, "new", "null", 30 * UNIT), SKV_OK);
	assert_int_equal(capacity(m, "new"), 30 * UNIT);
	assert_int_equal(skv_core_storage_delete(m->e.core, "new", &m->e.err), SKV_OK);
}

/* Whichever change is the last one that is answered, the same again completes it. */
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
		rounds += skv_core_storage_delete(m->e.core, "new", &m->e.err) != SKV_OK;
		m->cut = NEVER;
		tick(m, 10, 100);
		if (n_storages(m, "new"))
			assert_int_equal(skv_core_storage_delete(m->e.core, "new", &m->e.err),
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

/* What one owner needs, others have: nothing is evicted while there is room anywhere. */
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
	assert_int_equal(skv_core_stats_all(m->e.core, &m->e.arena, &st, &m->e.err), SKV_OK);
	assert_int_equal(st.evicted_blocks, 0);
	assert_int_equal(st.blocks, 16 * MORE);
	m->asked = 0;
	tick(m, 100, 20);
	assert_in_range(m->asked, 1, 2 * 100); /* one question each time */
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
