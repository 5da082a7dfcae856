/*
 * test_core_route.c - several partitions behind one handle: groups are spread and found again,
 * whoever asks; storages are one to users, and their capacity goes where it is needed.
 */
#include "core_env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <skv/find.h>

#define N 3u
#define BLOCK 65536u
#define UNIT (1ull << 20)
#define PER_FILE 14u /* blocks that fit one of 1 MiB */

static int setup(void **state)
{
	struct env *e = test_calloc(1, sizeof *e);

	env_quiet();
	env_init(e);
	e->all.partitions = N;
	*state = e;
	return 0;
}

static int teardown(void **state)
{
	struct env *e = *state;

	env_destroy(e);
	test_free(e);
	return 0;
}

static int put_storage(struct env *e, const char *type, uint64_t capacity)
{
	struct skv_storage_spec s = { .name = "s", .type = type, .root = "", .capacity = capacity,
				      .unit = strcmp(type, "null") == 0 ? UNIT : 0,
				      .file_size = strcmp(type, "null") == 0 ? UNIT : 0,
				      .enabled = true };

	return skv_cluster_storage_put(e->cluster, &s, SKV_PUT_ANY, NULL, &e->err);
}

static void make_group(struct env *e, const char *name)
{
	const struct skv_spec spec = { "kv", BLOCK };

	assert_int_equal(env_group(e, name, 0, "s"), SKV_OK);
	assert_int_equal(env_instance(e, name, name, &spec, 1), SKV_OK);
}

/* Returns how many were written. */
static uint32_t put(struct env *e, const char *instance, uint64_t first, uint32_t n, char id[33])
{
	struct skv_key k[64];
	struct skv_start_res s;
	struct skv_finish_res f = { 0 };
	char session[SKV_SESSION_ID_HEX + 1];

	env_keys(k, n, 7, first);
	if (env_start(e, &(struct env_start){ .instance = instance, .keys = k, .n = n,
					      .independent = true, .fit = true },
		      &s) != SKV_OK ||
	    s.n_write == 0)
		return 0;
	memcpy(session, s.session, sizeof session);
	if (id)
		memcpy(id, session, sizeof session);
	assert_int_equal(env_finish(e, session, NULL, 0, &f), SKV_OK);
	return f.committed;
}

static uint32_t found(struct env *e, const char *instance, uint64_t first, uint32_t n)
{
	struct skv_key k[64];
	struct skv_match_res r = { 0 };
	struct skv_match_req q = { .tenant = "t", .instances = &instance, .n_instances = 1,
				   .keys = k, .n_keys = n };

	env_keys(k, n, 7, first);
	assert_int_equal(skv_cluster_match(e->cluster, &q, &r, &e->arena, &e->err), SKV_OK);
	return r.matched[0];
}

static const char *const names[] = { "a", "b", "c", "d" };

static void groups_are_spread_and_found(void **state)
{
	struct env *e = *state;
	struct skv_stats st;
	struct skv_core_counters n;
	bool seen[N] = { 0 };

	env_open(e);
	assert_int_equal(skv_cluster_partitions(e->cluster), N);
	assert_int_equal(put_storage(e, "null", 30 * UNIT), SKV_OK);
	for (uint32_t i = 0; i < 4; i++) {
		char id[33];

		make_group(e, names[i]);
		make_group(e, names[i]); /* the same again stays where it is */
		assert_int_equal(put(e, names[i], i * 100, 5, id), 5);
		seen[skv_session_partition(id)] = true;
	}
	assert_true(seen[0] && seen[1] && seen[2]);
	for (int round = 0; round < 3; round++) {
		struct skv_key k[5];
		struct skv_match_res r = { 0 };
		struct skv_match_req q = { .tenant = "t", .instances = names, .n_instances = 4,
					   .keys = k, .n_keys = 5 };

		for (uint32_t i = 0; i < 4; i++) {
			assert_int_equal(found(e, names[i], i * 100, 5), 5);
			assert_int_equal(found(e, names[i], (i + 1) * 100, 5), 0);
		}
		/* of several partitions at once */
		env_keys(k, 5, 7, 200);
		assert_int_equal(skv_cluster_match(e->cluster, &q, &r, &e->arena, &e->err), SKV_OK);
		assert_int_equal(r.matched[1] + r.matched[3], 0);
		assert_int_equal(r.matched[2], 5);
		env_stats(e, &st);
		assert_int_equal(st.blocks, 20);
		assert_int_equal(st.n_storages, 1);
		assert_int_equal(st.storages[0].spec.capacity, 30 * UNIT);
		assert_int_equal(st.storages[0].used_bytes, 20 * BLOCK);
		assert_int_equal(st.n_groups, 4);
		assert_int_equal(st.n_instances, 4);
		assert_string_equal(st.state, "ready");
		env_check(e);
		if (round == 0) {
			skv_cluster_counters_get(e->cluster, &n);
			assert_int_equal(n.committed_blocks, 20);
			env_crash(e);
		} else {
			env_shutdown(e);
		}
		e->all.partitions = 1; /* the store says how many there are */
		env_open(e);
		assert_int_equal(skv_cluster_partitions(e->cluster), N);
	}
}

static void names_are_unique_and_errors_are_those_of_one(void **state)
{
	struct env *e = *state;
	const char *both[] = { "a", "nobody" };
	const struct skv_spec spec = { "kv", BLOCK };
	struct skv_key k[2];
	struct skv_match_res r = { 0 };
	struct skv_match_req q = { .tenant = "t", .instances = both, .n_instances = 2, .keys = k,
				   .n_keys = 2 };
	struct skv_group_view *g;
	struct skv_finish_res f;

	env_open(e);
	assert_int_equal(put_storage(e, "null", 2 * UNIT), SKV_E_INVALID);
	assert_string_equal(e->err.field, "capacity");
	assert_int_equal(put_storage(e, "null", 30 * UNIT), SKV_OK);
	make_group(e, "a");
	make_group(e, "b");
	env_keys(k, 2, 7, 0);
	assert_int_equal(skv_cluster_match(e->cluster, &q, &r, &e->arena, &e->err),
			 SKV_E_NOT_FOUND);
	assert_string_equal(e->err.field, "instances[1]");
	assert_int_equal(env_instance(e, "x", "nobody", &spec, 1), SKV_E_NOT_FOUND);
	/* an instance stays in its group's partition */
	assert_int_equal(env_instance(e, "a", "b", &spec, 1), SKV_E_CONFLICT);
	assert_int_equal(skv_cluster_group(e->cluster, "nobody", &e->arena, &g, &e->err),
			 SKV_E_NOT_FOUND);
	assert_int_equal(skv_cluster_group(e->cluster, "b", &e->arena, &g, &e->err), SKV_OK);
	assert_int_equal(env_finish(e, "00000000000000000000000000000001", NULL, 0, &f),
			 SKV_E_NOT_FOUND);
	assert_int_equal(env_finish(e, "ff000000000000000000000000000001", NULL, 0, &f),
			 SKV_E_NOT_FOUND);
	assert_int_equal(env_finish(e, "no id", NULL, 0, &f), SKV_E_INVALID);
	assert_int_equal(skv_cluster_group_delete(e->cluster, "b", &e->err), SKV_E_IN_USE);
	assert_int_equal(skv_cluster_instance_delete(e->cluster, "t", "b", NULL, &e->err), SKV_OK);
	assert_int_equal(skv_cluster_storage_delete(e->cluster, "s", &e->err), SKV_E_IN_USE);
	assert_int_equal(skv_cluster_group_delete(e->cluster, "b", &e->err), SKV_OK);
	assert_int_equal(skv_cluster_instance_delete(e->cluster, "t", "a", NULL, &e->err), SKV_OK);
	assert_int_equal(skv_cluster_group_delete(e->cluster, "a", &e->err), SKV_OK);
	env_advance(e, 100);
	assert_int_equal(skv_cluster_storage_delete(e->cluster, "s", &e->err), SKV_OK);
	env_advance(e, 100);
	assert_int_equal(put_storage(e, "null", 30 * UNIT), SKV_OK); /* anew */
}

/* Pages: the storage is in one partition, so are group and instance. */
static void an_external_storage_is_in_one(void **state)
{
	struct env *e = *state;
	const struct skv_spec page = { "page", 1 };
	struct skv_storage_view *v;

	env_open(e);
	assert_int_equal(put_storage(e, "external", 100), SKV_OK);
	assert_int_equal(put_storage(e, "external", 200), SKV_OK);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(env_group(e, names[i], 0, "s"), SKV_OK);
		assert_int_equal(env_instance(e, names[i], names[i], &page, 1), SKV_OK);
		assert_int_equal(put(e, names[i], 0, 5, NULL), 5);
	}
	assert_int_equal(skv_cluster_storage(e->cluster, "s", &e->arena, &v, &e->err), SKV_OK);
	assert_int_equal(v[0].spec.capacity, 200);
	assert_int_equal(v[0].used_bytes, 15);
}

/* Bytes in files, and leased or in files. */
static uint64_t file_bytes(struct env *e)
{
	struct skv_file_view *v;
	uint64_t sum = 0;
	uint32_t n;

	assert_int_equal(skv_cluster_files(e->cluster, "s", &e->arena, &v, &n, &e->err), SKV_OK);
	for (uint32_t i = 0; i < n; i++) {
		assert_true(i == 0 || v[i].file > v[i - 1].file);
		sum += v[i].length;
	}
	return sum;
}

static void write_until(struct env *e, const char *instance, uint32_t blocks, uint64_t first)
{
	for (uint32_t i = 0; i < blocks; i++) {
		put(e, instance, first + i, 1, NULL);
		env_advance(e, 200);
		assert_true(file_bytes(e) <= 12 * UNIT);
	}
}

static uint32_t blocks_of(struct env *e, const char *instance)
{
	struct skv_instance_view *v;

	assert_int_equal(
		skv_cluster_instance(e->cluster, "t", instance, &e->arena, &v, &e->err),
		SKV_OK);
	return (uint32_t)v[0].blocks;
}

static void capacity_goes_where_it_is_needed(void **state)
{
	struct env *e = *state;

	env_open(e);
	assert_int_equal(put_storage(e, "null", 12 * UNIT), SKV_OK);
	make_group(e, "a");
	make_group(e, "b");
	/* A single group may fill all but what the other partitions keep, a unit each. */
	write_until(e, "a", 12 * PER_FILE, 0);
	assert_true(blocks_of(e, "a") > 9 * PER_FILE);
	/* When another one writes, it gets its half. */
	write_until(e, "b", 12 * PER_FILE, 1000);
	assert_true(blocks_of(e, "b") > 4 * PER_FILE);
	assert_true(blocks_of(e, "a") < 8 * PER_FILE);
	assert_true(blocks_of(e, "a") + blocks_of(e, "b") > 9 * PER_FILE);
	env_check(e);
	/* The group survives, and may shrink and grow. */
	env_crash(e);
	env_open(e);
	assert_true(file_bytes(e) <= 12 * UNIT);
	assert_int_equal(put_storage(e, "null", 6 * UNIT), SKV_OK);
	for (int i = 0; i < 100; i++)
		env_advance(e, 500);
	assert_true(file_bytes(e) <= 6 * UNIT);
	assert_int_equal(put_storage(e, "null", 24 * UNIT), SKV_OK);
	for (uint32_t i = 0; i < 20 * PER_FILE; i++) {
		put(e, "b", 2000 + i, 1, NULL);
		env_advance(e, 200);
	}
	assert_true(blocks_of(e, "b") > 13 * PER_FILE);
	assert_true(file_bytes(e) <= 24 * UNIT);
}

/* A file as large as the storage is more than the even share of a partition: that is given all the
 * same. */
static void files_larger_than_a_share(void **state)
{
	struct skv_storage_spec s = { .name = "s", .type = "null", .root = "",
				      .capacity = 12 * UNIT, .unit = UNIT, .file_size = 12 * UNIT,
				      .enabled = true };
	struct env *e = *state;

	env_open(e);
	assert_int_equal(skv_cluster_storage_put(e->cluster, &s, SKV_PUT_ANY, NULL, &e->err),
			 SKV_OK);
	make_group(e, "a");
	for (uint32_t i = 0; i < 20; i++) { /* all goes to the only one that has a group */
		put(e, "a", i, 1, NULL);
		env_advance(e, 200);
	}
	make_group(e, "b");
	make_group(e, "c");
	write_until(e, "b", 4 * PER_FILE, 1000);
	write_until(e, "c", 4 * PER_FILE, 2000);
	assert_true(blocks_of(e, "b") >= 3 * PER_FILE);
	assert_true(blocks_of(e, "c") >= 3 * PER_FILE);
	assert_int_equal(blocks_of(e, "a"), 20);
	env_check(e);
}

/* A store of one partition is given more. */
static void a_store_is_given_more(void **state)
{
	struct env *e = *state;
	struct skv_storage_view *v;
	char id[33];
	uint64_t epoch;

	e->all.partitions = 0;
	env_open(e);
	assert_int_equal(put_storage(e, "null", 12 * UNIT), SKV_OK);
	make_group(e, "a");
	assert_int_equal(put(e, "a", 0, 40, NULL), 40);
	epoch = skv_cluster_partition_epoch(e->cluster, 0);
	env_shutdown(e);
	e->all.partitions = N;
	env_open(e);
	assert_true(skv_cluster_partition_epoch(e->cluster, 0) > epoch && epoch > 0);
	for (int i = 0; i < 10; i++)
		env_advance(e, 200);
	assert_int_equal(found(e, "a", 0, 40), 40);
	make_group(e, "b");
	assert_int_equal(put(e, "b", 0, 5, id), 5);
	assert_int_not_equal(skv_session_partition(id), 0);
	assert_int_equal(skv_cluster_storage(e->cluster, "s", &e->arena, &v, &e->err), SKV_OK);
	assert_int_equal(v[0].spec.capacity, 12 * UNIT);
	env_check(e);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

/* Without waiting until all partitions are there. */
static void open_without(struct env *e, uint32_t number)
{
	char holder[SKV_OWNER_NAME];
	uint64_t fence;

	assert_int_equal(skv_store_open(e->ops, &e->store_options, &e->store, &e->err), SKV_OK);
	assert_int_equal(skv_store_acquire(e->store, number, "other", 60000, &fence, holder,
					   sizeof holder, &e->err),
			 SKV_OK);
	e->o.store = e->store;
	env_create(e);
	for (int i = 0; i < 20; i++) {
		skv_fake_clock_advance(&e->clock, 100);
		skv_cluster_tick(e->cluster);
	}
}

static enum skv_where find(struct env *e, enum skv_target_kind kind, const char *name,
			   struct skv_door *door)
{
	const struct skv_target t = { kind, "t", name, 0 };

	return skv_find(e->cluster, &t, door);
}

static void is_of(struct env *e, int rc, enum skv_target_kind kind, const char *name,
		  uint32_t number)
{
	struct skv_door door;

	assert_int_equal(rc, SKV_E_NOT_OWNER);
	assert_int_equal(e->err.status, SKV_E_NOT_OWNER);
	assert_int_equal(find(e, kind, name, &door), SKV_THERE);
	assert_int_equal(door.partition, number);
	skv_error_clear(&e->err);
}

static void is_of_all(struct env *e, int rc, uint32_t missing)
{
	is_of(e, rc, SKV_TARGET_NONE, NULL, missing);
}

/* An operation on all partitions names the missing partition, and changes nothing. */
static void nothing_is_left_out(struct env *e, uint32_t missing)
{
	struct skv_storage_view *s;
	struct skv_group_view *g;
	struct skv_instance_view *i;
	struct skv_file_view *f;
	uint32_t n;

	is_of_all(e, put_storage(e, "null", 60 * UNIT), missing);
	is_of_all(e, skv_cluster_storage_delete(e->cluster, "s", &e->err), missing);
	is_of_all(e, env_file_drain(e->cluster, "s", 1, true, false, &e->err), missing);
	is_of_all(e, env_file_forget(e->cluster, "s", 1, &e->err), missing);
	is_of_all(e, skv_cluster_files(e->cluster, "s", &e->arena, &f, &n, &e->err), missing);
	is_of_all(e, skv_cluster_every_storage(e->cluster, "", &e->arena, &s, &n, &e->err),
		  missing);
	is_of_all(e, skv_cluster_every_group(e->cluster, "", &e->arena, &g, &n, &e->err), missing);
	is_of_all(e, skv_cluster_every_instance(e->cluster, "t", &e->arena, &i, &n, &e->err),
		  missing);
}

/* Each call is for a partition: those that are here answer. */
static void a_partition_that_is_elsewhere(void **state)
{
	enum { MISSING = 2 };
	struct env *e = *state;
	char self[SKV_OWNER_NAME], owner[SKV_OWNER_NAME];
	uint32_t place[4], there = 0;
	struct skv_door all;
	uint64_t left;

	e->store_options.clock = &e->clock.clock;
	env_open(e);
	assert_int_equal(put_storage(e, "null", 30 * UNIT), SKV_OK);
	for (uint32_t i = 0; i < 4; i++) {
		char id[33];

		make_group(e, names[i]);
		assert_int_equal(put(e, names[i], i * 100, 5, id), 5);
		place[i] = skv_session_partition(id);
	}
	env_shutdown(e);
	open_without(e, MISSING);
	assert_int_equal(skv_cluster_state_get(e->cluster), SKV_CORE_READY);
	assert_int_equal(skv_cluster_may_answer(e->cluster), SKV_E_NOT_OWNER);
	assert_true(skv_cluster_may_begin(e->cluster));
	find(e, SKV_TARGET_NONE, NULL, &all);
	assert_int_equal(skv_door_check(&all), SKV_OK);
	for (uint32_t p = 0; p < N; p++) {
		assert_int_equal(skv_cluster_partition_state(e->cluster, p),
				 p == MISSING ? SKV_CORE_STANDBY : SKV_CORE_READY);
		assert_int_equal(skv_cluster_partition_may_answer(e->cluster, p),
				 p == MISSING ? SKV_E_NOT_OWNER : SKV_OK);
		skv_cluster_partition_leader(e->cluster, p, self, owner, &left);
		assert_string_equal(owner, p == MISSING ? "other" : self);
		assert_int_equal(skv_cluster_partition_epoch(e->cluster, p) > 0, p != MISSING);
	}
	for (uint32_t i = 0; i < 4; i++) {
		struct skv_door door;

		assert_int_equal(find(e, SKV_TARGET_INSTANCE, names[i], &door),
				 place[i] == MISSING ? SKV_THERE : SKV_HERE);
		assert_int_equal(door.partition, place[i]);
	}
	for (uint32_t i = 0; i < 4; i++) {
		struct skv_match_res r;
		struct skv_key k[5];
		struct skv_match_req q = { .tenant = "t", .instances = &names[i], .n_instances = 1,
					   .keys = k, .n_keys = 5 };

		env_keys(k, 5, 7, i * 100);
		if (place[i] != MISSING) {
			assert_int_equal(found(e, names[i], i * 100, 5), 5);
			there++;
		} else {
			is_of(e, skv_cluster_match(e->cluster, &q, &r, &e->arena, &e->err),
			      SKV_TARGET_INSTANCE, names[i], MISSING);
		}
	}
	assert_in_range(there, 1, 3);
	nothing_is_left_out(e, MISSING);
	for (int i = 0; i < 200 && skv_cluster_may_answer(e->cluster) != SKV_OK; i++) {
		skv_fake_clock_advance(&e->clock, 1000);
		skv_cluster_tick(e->cluster);
	}
	assert_int_equal(skv_cluster_may_answer(e->cluster), SKV_OK);
	assert_int_equal(skv_door_check(&all), SKV_OK); /* a partition came, none went */
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(found(e, names[i], i * 100, 5), 5);
	assert_int_equal(put_storage(e, "null", 30 * UNIT), SKV_OK); /* as it was */
	env_check(e);
}

static int match_one(struct env *e, struct skv_cluster *c, const char *instance)
{
	struct skv_match_res r;
	struct skv_key k[5];
	const struct skv_match_req q = { .tenant = "t", .instances = &instance, .n_instances = 1,
					 .keys = k, .n_keys = 5 };
	int rc;

	skv_error_clear(&e->err);
	env_keys(k, 5, 7, 0);
	rc = skv_cluster_match(c, &q, &r, &e->arena, &e->err);
	return rc == SKV_OK ? (int)r.matched[0] : rc;
}

static bool has_document(struct env *e, const char *key)
{
	struct skv_buf b = { 0 };
	int rc = skv_store_get(e->store, key, &b, NULL, &e->err);

	skv_buf_destroy(&b);
	assert_true(rc == SKV_OK || rc == SKV_E_NOT_FOUND);
	skv_error_clear(&e->err);
	return rc == SKV_OK;
}

static void remove_document(struct env *e, const char *key)
{
	struct skv_buf b = { 0 };
	uint64_t version;

	assert_int_equal(skv_store_get(e->store, key, &b, &version, &e->err), SKV_OK);
	assert_int_equal(skv_store_del(e->store, NULL, key, version, &e->err), SKV_OK);
	skv_buf_destroy(&b);
}

static void ticks(struct env *e, int n, uint64_t ms)
{
	for (int i = 0; i < n; i++) {
		skv_fake_clock_advance(&e->clock, ms);
		skv_cluster_tick(e->cluster);
	}
}

/* Groups a, b, c, in partitions 0, 1, 2. */
static void make_three(struct env *e)
{
	e->store_options.clock = &e->clock.clock;
	env_open(e);
	assert_int_equal(put_storage(e, "null", 30 * UNIT), SKV_OK);
	for (uint32_t i = 0; i < N; i++) {
		char id[33];

		make_group(e, names[i]);
		assert_int_equal(put(e, names[i], 0, 5, id), 5);
		assert_int_equal(skv_session_partition(id), i);
	}
	ticks(e, 5, 10);
	assert_true(has_document(e, "placed"));
}

/* The owner of partition 0 knows which names are elsewhere, and which nowhere. */
static void the_lead_knows_where_names_are(void **state)
{
	enum { MISSING = 2 };
	struct env *e = *state;
	const struct skv_spec spec = { "kv", BLOCK };
	struct skv_door door;

	make_three(e);
	env_shutdown(e);
	open_without(e, MISSING);
	for (uint32_t i = 0; i < N; i++) {
		int rc = match_one(e, e->cluster, names[i]);

		assert_int_equal(rc, i == MISSING ? SKV_E_NOT_OWNER : 5);
		assert_int_equal(find(e, SKV_TARGET_INSTANCE, names[i], &door),
				 i == MISSING ? SKV_THERE : SKV_HERE);
		assert_int_equal(door.partition, i);
	}
	assert_int_equal(match_one(e, e->cluster, "nobody"), SKV_E_NOT_FOUND);
	assert_int_equal(skv_cluster_group_delete(e->cluster, "nobody", &e->err), SKV_E_NOT_FOUND);
	assert_int_equal(env_instance(e, "x", "nobody", &spec, 1), SKV_E_NOT_FOUND);
	/* made where few are, and permanently: its owner does it */
	assert_int_equal(env_group(e, "d", 0, "s"), SKV_OK);
	assert_int_equal(env_group(e, "e", 0, "s"), SKV_OK);
	is_of(e, env_group(e, "f", 0, "s"), SKV_TARGET_GROUP, "f", MISSING);
	is_of(e, env_group(e, "f", 0, "s"), SKV_TARGET_GROUP, "f", MISSING);
	assert_true(has_document(e, "place/group/f"));
	is_of(e, env_instance(e, "x", names[MISSING], &spec, 1), SKV_TARGET_INSTANCE, "x", MISSING);
	assert_true(has_document(e, "place/instance/t/x"));
	/* the instance was not made there, and another group is here */
	assert_int_equal(env_instance(e, "x", "d", &spec, 1), SKV_OK);
	assert_int_equal(match_one(e, e->cluster, "x"), 0);
	for (int i = 0; i < 200 && skv_cluster_may_answer(e->cluster) != SKV_OK; i++)
		ticks(e, 1, 1000);
	assert_int_equal(match_one(e, e->cluster, names[MISSING]), 5);
	assert_int_equal(env_group(e, "f", 0, "s"), SKV_OK);
	env_check(e);
}

/* An instance is deleted and made again in another partition while a call on it begins: the call
 * ends in the partition where it was found, under the lease of that one. */
static void a_call_stays_where_it_was_found(void **state)
{
	const struct skv_key key = { 7, 0 };
	const struct skv_spec spec = { "kv", BLOCK };
	struct skv_lookup_req q = { .tenant = "t", .keys = &key, .n_keys = 1 };
	struct env *e = *state;
	struct skv_instance_view *v;
	struct skv_door door;
	uint32_t n;

	make_three(e);
	for (uint32_t i = 0; i < N; i++) {
		q.instance = names[i];
		find(e, SKV_TARGET_INSTANCE, names[i], &door);
		assert_true(door.where == SKV_HERE && door.alone && door.partition == i);
		assert_int_equal(skv_cluster_instance_delete(e->cluster, "t", names[i], NULL,
							     &e->err),
				 SKV_OK);
		assert_int_equal(env_instance(e, names[i], names[(i + 1) % N], &spec, 1), SKV_OK);
		assert_int_equal(match_one(e, e->cluster, names[i]), 0);
		assert_int_equal(match_one(e, door.part, names[i]), SKV_E_NOT_FOUND);
		assert_int_equal(
			skv_core_lookup_length(door.core, &q, &n, &e->arena, &e->err),
			SKV_E_NOT_FOUND);
		assert_int_equal(skv_cluster_instance(door.part, "t", names[i], &e->arena, &v,
						      &e->err),
				 SKV_E_NOT_FOUND);
		assert_int_equal(skv_door_check(&door), SKV_OK);
	}
}

/* Others ask the store, and remember what it said. */
static void others_learn_where_names_are(void **state)
{
	struct env *e = *state;
	struct skv_door door;

	make_three(e);
	env_shutdown(e);
	e->o.assigned = true; /* nothing, for now */
	open_without(e, 0);
	assert_int_equal(skv_cluster_state_get(e->cluster), SKV_CORE_STANDBY);
	is_of(e, match_one(e, e->cluster, names[1]), SKV_TARGET_NONE, NULL, 0);
	find(e, SKV_TARGET_INSTANCE, names[1], &door);
	assert_true(door.unknown && door.partition == 0);
	skv_thread_waits = true;
	find(e, SKV_TARGET_INSTANCE, names[1], &door);
	skv_thread_waits = false;
	assert_true(door.where == SKV_THERE && door.partition == 1);
	is_of(e, match_one(e, e->cluster, names[1]), SKV_TARGET_INSTANCE, names[1], 1);
	is_of(e, match_one(e, e->cluster, names[2]), SKV_TARGET_NONE, NULL, 0);
	/* where it was said to be, it is or it is not */
	assert_int_equal(env_group(e, "new", 0, "s"), SKV_E_NOT_OWNER);
	assert_false(has_document(e, "place/group/new"));
	is_of(e, env_group(e, names[2], 0, "s"), SKV_TARGET_GROUP, names[2], 2);
	skv_error_clear(&e->err);
	skv_cluster_may_own(e->cluster, UINT32_MAX);
	for (int i = 0; i < 200 && skv_cluster_may_answer(e->cluster) != SKV_OK; i++)
		ticks(e, 1, 1000);
	for (uint32_t i = 0; i < N; i++) {
		assert_int_equal(match_one(e, e->cluster, names[i]), 5);
		assert_int_equal(match_one(e, skv_cluster_part(e->cluster, i), names[i]), 5);
	}
	assert_int_equal(match_one(e, skv_cluster_part(e->cluster, 1), names[2]), SKV_E_NOT_FOUND);
	assert_int_equal(env_group(e, names[2], 0, "s"), SKV_OK);
}

/* Of a store from before there were places; and those of what was deleted go. */
static void places_come_and_go(void **state)
{
	struct env *e = *state;

	make_three(e);
	assert_int_equal(put_storage(e, "null", 30 * UNIT), SKV_OK);
	remove_document(e, "placed");
	for (uint32_t i = 0; i < N; i++) {
		char key[64];

		snprintf(key, sizeof key, "place/group/%s", names[i]);
		remove_document(e, key);
		snprintf(key, sizeof key, "place/instance/t/%s", names[i]);
		remove_document(e, key);
	}
	env_shutdown(e);
	env_open(e);
	ticks(e, 5, 10);
	assert_true(has_document(e, "placed"));
	assert_true(has_document(e, "place/group/b"));
	assert_true(has_document(e, "place/instance/t/b"));
	assert_int_equal(skv_cluster_instance_delete(e->cluster, "t", "b", NULL, &e->err), SKV_OK);
	assert_int_equal(skv_cluster_group_delete(e->cluster, "b", &e->err), SKV_OK);
	ticks(e, 200, 100);
	assert_true(has_document(e, "place/group/b")); /* the group may be on its way */
	ticks(e, 400, 2000);
	assert_false(has_document(e, "place/group/b"));
	assert_false(has_document(e, "place/instance/t/b"));
	assert_true(has_document(e, "place/group/a"));
	assert_true(has_document(e, "place/instance/t/c"));
	make_group(e, "b");
	assert_true(has_document(e, "place/group/b"));
}

/* A call whose record did not become durable names its partition, too. */
static void what_was_under_way_names_its_partition(void **state)
{
	static const struct skv_fault taken_over = { .kind = SKV_FAULT_ERROR, .call = "append",
						     .at = 1, .times = 1,
						     .status = SKV_E_FENCED };
	struct env *e = *state;
	struct skv_start_res s;
	struct skv_key k[5];

	e->faulty = true;
	env_open(e);
	assert_int_equal(put_storage(e, "null", 30 * UNIT), SKV_OK);
	for (uint32_t i = 0; i < N; i++) {
		const struct env_start q = { .instance = names[i], .keys = k, .n = 5 };
		char id[33];
		int rc;

		make_group(e, names[i]);
		assert_int_equal(put(e, names[i], 100, 5, id), 5);
		env_keys(k, 5, 7, 200);
		skv_fault_store_set(e->store, &taken_over);
		rc = env_start(e, &q, &s);
		assert_int_equal(rc, SKV_E_NOT_OWNER);
		assert_int_equal(skv_cluster_wait_ready(e->cluster, 10000), SKV_OK);
		assert_int_equal(found(e, names[i], 100, 5), 5);
	}
}

/* A result that was found before a partition was given up is not returned after. */
static void a_door_ends_with_what_is_given_up(void **state)
{
	struct env *e = *state;
	struct skv_door door;

	env_open(e);
	find(e, SKV_TARGET_NONE, NULL, &door);
	assert_int_equal(skv_door_check(&door), SKV_OK);
	skv_fake_clock_advance(&e->clock, 5000); /* stopped for a lease */
	assert_int_equal(skv_door_check(&door), SKV_E_NOT_OWNER);
	skv_cluster_tick(e->cluster);
	assert_int_equal(skv_cluster_wait_ready(e->cluster, 10000), SKV_OK);
	find(e, SKV_TARGET_NONE, NULL, &door);
	assert_int_equal(skv_door_check(&door), SKV_OK);
	assert_int_equal(skv_cluster_demote(e->cluster, 100, &e->err), SKV_OK);
	assert_int_equal(skv_door_check(&door), SKV_E_NOT_OWNER);
	for (int i = 0; i < 20; i++) {
		skv_fake_clock_advance(&e->clock, 100);
		skv_cluster_tick(e->cluster);
	}
	assert_int_equal(skv_cluster_may_answer(e->cluster), SKV_OK);
	assert_int_equal(skv_door_check(&door), SKV_E_NOT_OWNER);
	find(e, SKV_TARGET_NONE, NULL, &door);
	assert_int_equal(skv_door_check(&door), SKV_OK);
}

/* An answer of one partition may leave when another was given up. */
static void a_door_is_of_the_partition_of_the_call(void **state)
{
	struct env *e = *state;
	struct skv_door all, own, other;
	uint32_t number;

	env_open(e);
	assert_int_equal(put_storage(e, "null", 30 * UNIT), SKV_OK);
	make_group(e, "g");
	find(e, SKV_TARGET_NONE, NULL, &all);
	find(e, SKV_TARGET_INSTANCE, "g", &own);
	find(e, SKV_TARGET_GROUP, "g", &other);
	assert_true(own.alone && !other.alone && !all.alone);
	assert_int_equal(other.partition, own.partition);
	number = own.partition == 1 ? 2 : 1; /* the first one's handle is that of all */
	assert_int_equal(skv_cluster_demote(skv_cluster_part(e->cluster, number), 100, &e->err),
			 SKV_OK);
	assert_int_equal(skv_door_check(&own), SKV_OK);
	assert_int_equal(skv_door_check(&all), SKV_E_NOT_OWNER);
	assert_int_equal(skv_door_check(&other), SKV_E_NOT_OWNER);
	skv_fake_clock_advance(&e->clock, 5000); /* stopped for a lease */
	assert_int_equal(skv_door_check(&own), SKV_E_NOT_OWNER);
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		CASE(groups_are_spread_and_found),
		CASE(names_are_unique_and_errors_are_those_of_one),
		CASE(an_external_storage_is_in_one),
		CASE(capacity_goes_where_it_is_needed),
		CASE(files_larger_than_a_share),
		CASE(a_store_is_given_more),
		CASE(a_partition_that_is_elsewhere),
		CASE(the_lead_knows_where_names_are),
		CASE(a_call_stays_where_it_was_found),
		CASE(others_learn_where_names_are),
		CASE(places_come_and_go),
		CASE(what_was_under_way_names_its_partition),
		CASE(a_door_ends_with_what_is_given_up),
		CASE(a_door_is_of_the_partition_of_the_call),
	};

	return cmocka_run_group_tests_name("route", cases, NULL, NULL);
}
