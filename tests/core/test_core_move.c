/*
 * test_core_move.c - blocks that movers copy out of what drains: what a move reserves and swaps,
 * what becomes of it when its block, its mover or its manager goes, and when the store fails.
 */
#include "core_env.h"

#include <stdio.h>
#include <string.h>

#define BLOCK 65536u
#define UNIT (1ull << 20)
#define SLOTS 15u /* of a file of one unit; the others have two */
#define KEYS 20u

static int put_storage(struct env *e, const char *name, uint64_t files, bool draining, bool move)
{
	struct skv_storage_spec s = { .name = name, .type = "null", .root = "",
				      .capacity = files * UNIT, .unit = UNIT,
				      .file_size = files > 1 ? 2 * UNIT : UNIT,
				      .enabled = true, .draining = draining, .move = move };

	return skv_cluster_storage_put(e->cluster, &s, SKV_PUT_ANY, NULL, &e->err);
}

/* Writes key {1, first}... with checksums 1000 + i (0: without any). */
static void put(struct env *e, uint32_t first, uint32_t n, uint64_t sum)
{
	struct skv_key keys[KEYS];
	uint64_t sums[KEYS];
	struct skv_start_res s;
	struct skv_finish_res f;
	char session[33];

	env_keys(keys, n, 1, first);
	assert_int_equal(env_start(e, &(struct env_start){ .keys = keys, .n = n }, &s), SKV_OK);
	assert_int_equal(s.n_write, n);
	memcpy(session, s.session, sizeof session);
	for (uint32_t i = 0; i < n; i++)
		sums[i] = sum + first + i;
	assert_int_equal(env_finish(e, session, sums, sum ? n : 0, &f), SKV_OK);
	assert_int_equal(f.committed, n);
}

/* All blocks in storage "s"; "t" is empty. The group has both, instance "i" is in it. */
static void setup_with(struct env *e, uint64_t t_files)
{
	static const char *const names[] = { "s", "t" };
	struct skv_group_spec g = { .name = "g", .storages = names, .n_storages = 2, .policy = "" };
	struct skv_spec spec = { "kv", BLOCK };

	env_init(e);
	env_open(e);
	assert_int_equal(put_storage(e, "s", 4, false, false), SKV_OK);
	assert_int_equal(put_storage(e, "t", t_files, true, false), SKV_OK);
	assert_int_equal(skv_cluster_group_put(e->cluster, &g, SKV_PUT_ANY, NULL, NULL, &e->err),
			 SKV_OK);
	assert_int_equal(env_instance(e, "i", "g", &spec, 1), SKV_OK);
	put(e, 0, KEYS, 1000);
	assert_int_equal(put_storage(e, "t", t_files, false, false), SKV_OK);
	assert_int_equal(put_storage(e, "s", 4, true, true), SKV_OK);
}

static void setup(struct env *e) { setup_with(e, 4); }

/* Where the key is: "s" or "t", or NULL. Its generation and checksum are those of its write. */
static const char *where(struct env *e, uint32_t key, uint32_t lease_ms)
{
	struct skv_key k;
	struct skv_lookup_res r;
	const struct skv_location *loc;

	env_keys(&k, 1, 1, key);
	assert_int_equal(env_lookup(e, &k, 1, SKV_LOOKUP_BATCH, lease_ms, &r), SKV_OK);
	if (!r.hit[0])
		return NULL;
	loc = &r.loc[0];
	assert_true(loc->has_checksum);
	assert_int_equal(loc->checksum, 1000 + key);
	assert_int_equal(loc->generation, 1 + key);
	return r.files.v[loc->file].storage[0] == 's' ? "s" : "t";
}

static uint32_t count_in(struct env *e, const char *storage)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < KEYS; i++) {
		const char *at = where(e, i, 0);

		n += at && strcmp(at, storage) == 0;
	}
	return n;
}

/* A move of up to `max` slots; the storage may have to grow first. Its id, and how many. */
static uint32_t take(struct env *e, uint32_t max, char id[33])
{
	struct skv_move_take_res r;

	for (int i = 0; i < 20; i++) {
		assert_int_equal(env_move_take(e, max, 5000, &r), SKV_OK);
		memcpy(id, r.move, 33);
		for (uint32_t s = 0; s < r.n; s++) {
			assert_string_equal(r.files.v[r.from[s].file].storage, "s");
			assert_string_equal(r.files.v[r.to[s].file].storage, "t");
			assert_true(r.from[s].has_checksum);
			assert_int_equal(r.from[s].length, BLOCK);
			assert_int_equal(r.to[s].length, BLOCK);
			assert_int_equal(r.from[s].checksum, r.to[s].checksum);
		}
		if (r.n)
			return r.n;
		env_advance(e, 300);
	}
	return 0;
}

static int finish(struct env *e, const char *id, uint32_t n, uint32_t copied,
		  struct skv_move_finish_res *res)
{
	bool moved[KEYS] = { false };

	for (uint32_t i = 0; i < copied; i++)
		moved[i] = true;
	return env_move_finish(e, id, moved, n, true, res);
}

static uint64_t used(struct env *e, const char *storage)
{
	struct skv_stats st;

	env_stats(e, &st);
	for (uint32_t i = 0; i < st.n_storages; i++)
		if (strcmp(st.storages[i].spec.name, storage) == 0)
			return st.storages[i].used_bytes + st.storages[i].quarantined_bytes;
	return 0;
}

static void test_a_storage_is_moved_and_empty(void **state)
{
	struct skv_move_finish_res f;
	struct skv_core_counters c;
	struct skv_stats st;
	struct env e;
	char id[33];
	uint32_t left = KEYS;

	(void)state;
	setup(&e);
	for (int i = 0; i < 100; i++)
		env_advance(&e, 20); /* nothing goes by itself, though just written */
	assert_int_equal(count_in(&e, "s"), KEYS);
	while (left) {
		uint32_t n = take(&e, 7, id);

		assert_true(n > 0 && n <= 7);
		assert_int_equal(count_in(&e, "s"), left); /* hits where they were */
		env_check(&e);
		assert_int_equal(finish(&e, id, n, n, &f), SKV_OK);
		assert_int_equal(f.moved, n);
		assert_int_equal(f.failed, 0);
		left -= n;
		assert_int_equal(count_in(&e, "s"), left);
		assert_int_equal(count_in(&e, "t"), KEYS - left);
		env_check(&e);
		assert_int_equal(finish(&e, id, n, n, &f), SKV_E_NOT_FOUND);
	}
	env_crash(&e);
	env_open(&e);
	env_check(&e);
	assert_int_equal(count_in(&e, "t"), KEYS);
	for (int i = 0; i < 1000; i++)
		env_advance(&e, 100); /* the old slots were perhaps leased; then the files go */
	env_stats(&e, &st);
	assert_int_equal(st.storages[0].files, 0);
	assert_int_equal(count_in(&e, "t"), KEYS);
	skv_cluster_counters_get(e.cluster, &c);
	assert_int_equal(c.evicted_blocks, 0);
	env_check(&e);
	env_destroy(&e);
}

static void test_nothing_drains_nothing_moves(void **state)
{
	struct skv_move_take_res r;
	struct env e;

	(void)state;
	setup(&e);
	assert_int_equal(put_storage(&e, "s", 4, false, false), SKV_OK);
	assert_int_equal(env_move_take(&e, 0, 0, &r), SKV_OK);
	assert_int_equal(r.n, 0);
	assert_string_equal(r.move, "");
	assert_int_equal(put_storage(&e, "s", 4, false, true), SKV_E_INVALID);
	assert_string_equal(e.err.field, "move");
	env_destroy(&e);
}

static void test_bad_finishes(void **state)
{
	struct skv_move_finish_res f;
	struct env e;
	char id[33];
	uint32_t n;

	(void)state;
	setup(&e);
	n = take(&e, 4, id);
	assert_int_equal(finish(&e, "12", n, n, &f), SKV_E_INVALID);
	assert_string_equal(e.err.field, "move");
	assert_int_equal(finish(&e, id, n + 1, n, &f), SKV_E_INVALID);
	assert_string_equal(e.err.field, "moved");
	assert_int_equal(finish(&e, "00000000000000000000000000000000", n, n, &f),
			 SKV_E_NOT_FOUND);
	assert_int_equal(finish(&e, id, n, 1, &f), SKV_OK);
	assert_int_equal(f.moved, 1);
	assert_int_equal(f.failed, n - 1);
	assert_int_equal(count_in(&e, "t"), 1);
	env_check(&e);
	env_destroy(&e);
}

/* The dead mover may still write until its deadline. */
static void test_a_dead_movers_targets_are_held(void **state)
{
	struct skv_move_finish_res f;
	struct env e;
	char id[33];
	uint32_t n;

	(void)state;
	setup(&e);
	n = take(&e, 5, id);
	assert_int_equal(used(&e, "t"), n * BLOCK);
	env_advance(&e, 5100);
	assert_int_equal(finish(&e, id, n, n, &f), SKV_E_NOT_FOUND);
	assert_int_equal(used(&e, "t"), n * BLOCK); /* the grace of the move */
	env_check(&e);
	env_advance(&e, 1000);
	assert_int_equal(used(&e, "t"), 0);
	assert_int_equal(count_in(&e, "s"), KEYS);
	n = take(&e, KEYS, id); /* again: the others, then these */
	assert_int_equal(n + take(&e, KEYS, id), KEYS);
	env_check(&e);
	env_destroy(&e);
}

static void test_a_manager_forgets_a_move_and_holds_its_targets(void **state)
{
	struct skv_move_finish_res f;
	struct env e;
	char id[33];
	uint32_t n;

	(void)state;
	for (int clean = 0; clean < 2; clean++) {
		setup(&e);
		n = take(&e, 5, id);
		if (clean)
			env_shutdown(&e); /* by its checkpoint */
		else
			env_crash(&e); /* by the journal */
		env_open(&e);
		assert_int_equal(used(&e, "t"), n * BLOCK);
		assert_int_equal(finish(&e, id, n, n, &f), SKV_E_NOT_FOUND);
		assert_int_equal(count_in(&e, "s"), KEYS);
		env_check(&e);
		env_advance(&e, 5500);
		assert_int_equal(used(&e, "t"), n * BLOCK);
		env_advance(&e, 1000);
		assert_int_equal(used(&e, "t"), 0);
		env_check(&e);
		env_destroy(&e);
	}
}

static void test_a_deleted_block_is_not_moved(void **state)
{
	struct skv_move_finish_res f;
	struct skv_key keys[3];
	uint32_t deleted, n;
	struct env e;
	char id[33];

	(void)state;
	setup(&e);
	n = take(&e, KEYS, id);
	assert_int_equal(n, KEYS);
	env_keys(keys, 3, 1, 4);
	assert_int_equal(env_delete(&e, keys, 3, &deleted), SKV_OK);
	assert_int_equal(deleted, 3);
	put(&e, 5, 1, 2000); /* a deleted block comes back, with other bytes, in "t" */
	assert_int_equal(finish(&e, id, n, n, &f), SKV_OK);
	assert_int_equal(f.moved, KEYS - 3);
	assert_int_equal(f.failed, 3);
	assert_int_equal(env_match(&e, keys + 1, 1), 1);
	assert_int_equal(env_match(&e, keys, 1), 0);
	assert_int_equal(used(&e, "s"), 0);
	assert_int_equal(used(&e, "t"), (KEYS - 2) * BLOCK);
	env_check(&e);
	env_crash(&e);
	env_open(&e);
	assert_int_equal(env_match(&e, keys + 1, 1), 1);
	assert_int_equal(env_match(&e, keys, 1), 0);
	env_check(&e);
	env_destroy(&e);
}

static void on_done(void *arg, int rc) { *(int *)arg = rc; }

/* A delete whose record follows that of the finish: the block goes at its new place. `restart`: and
 * so it is told by the journal. */
static void test_deleted_between_finish_and_apply(void **state)
{
	bool moved[KEYS];
	struct skv_key keys[2];
	struct env e;
	char id[33];

	(void)state;
	for (int restart = 0; restart < 2; restart++) {
		int finished = SKV_PENDING, deleted = SKV_PENDING;
		struct skv_done f_done = { on_done, &finished }, d_done = { on_done, &deleted };
		struct skv_move_finish_req f = { .move = id, .moved = moved, .n_moved = KEYS };
		struct skv_move_finish_res fr;
		struct skv_delete_req d = { .tenant = "t", .instance = "i", .keys = keys,
					    .n_keys = 2 };
		struct skv_delete_res dr;

		setup(&e);
		memset(moved, true, sizeof moved);
		assert_int_equal(take(&e, KEYS, id), KEYS);
		env_keys(keys, 2, 1, 8);
		skv_arena_reset(&e.arena);
		assert_int_equal(
			skv_core_move_finish(e.core, &f, &fr, &e.arena, &e.err, &f_done),
			SKV_PENDING);
		assert_int_equal(skv_core_delete(e.core, &d, &dr, &e.arena, &e.err, &d_done),
				 SKV_PENDING);
		for (int i = 0; i < 50 && (finished == SKV_PENDING || deleted == SKV_PENDING); i++)
			env_advance(&e, 20);
		assert_int_equal(finished, SKV_OK);
		assert_int_equal(deleted, SKV_OK);
		assert_int_equal(fr.moved, KEYS);
		assert_int_equal(dr.deleted, 2);
		if (restart) {
			env_crash(&e);
			env_open(&e);
		}
		env_check(&e);
		assert_int_equal(count_in(&e, "t"), KEYS - 2);
		assert_int_equal(env_match(&e, keys, 1), 0);
		env_destroy(&e);
	}
}

/* A reader of the old slot has it as long as it was promised. */
static void test_a_leased_slot_is_held(void **state)
{
	struct skv_move_finish_res f;
	struct env e;
	char id[33];
	uint32_t n;

	(void)state;
	setup(&e);
	assert_string_equal(where(&e, 3, 8000), "s");
	n = take(&e, KEYS, id);
	assert_int_equal(finish(&e, id, n, n, &f), SKV_OK);
	assert_int_equal(f.moved, KEYS);
	assert_int_equal(count_in(&e, "t"), KEYS);
	assert_int_equal(used(&e, "s"), BLOCK);
	env_advance(&e, 7000);
	assert_int_equal(used(&e, "s"), BLOCK);
	env_advance(&e, 1500);
	assert_int_equal(used(&e, "s"), 0);
	env_check(&e);
	env_destroy(&e);
}

/* Nobody knows after a kill what was leased until then. */
static void test_a_killed_manager_holds_old_slots(void **state)
{
	struct skv_move_finish_res f;
	struct env e;
	char id[33];
	uint32_t n;

	(void)state;
	setup(&e);
	n = take(&e, KEYS, id);
	assert_string_equal(where(&e, 3, 8000), "s");
	assert_int_equal(finish(&e, id, n, n, &f), SKV_OK);
	env_crash(&e);
	env_open(&e);
	assert_int_equal(used(&e, "s"), KEYS * BLOCK);
	assert_int_equal(used(&e, "t"), KEYS * BLOCK);
	env_advance(&e, 8000);
	assert_int_equal(used(&e, "s"), KEYS * BLOCK);
	env_advance(&e, 60000);
	assert_int_equal(used(&e, "s"), 0);
	env_check(&e);
	env_destroy(&e);
}

/* Meanwhile the block went, and was written again, into the same slot. */
static void test_another_block_in_the_same_slot(void **state)
{
	struct skv_move_finish_res f;
	struct skv_move_take_res r;
	struct skv_lookup_res look;
	struct skv_key keys[1];
	uint64_t offset;
	uint32_t deleted, key;
	struct env e;
	char id[33];

	(void)state;
	setup(&e);
	assert_int_equal(put_storage(&e, "t", 4, false, false), SKV_OK);
	do {
		assert_int_equal(env_move_take(&e, 1, 5000, &r), SKV_OK);
		memcpy(id, r.move, sizeof id);
		key = r.n ? (uint32_t)(r.from[0].checksum - 1000) : KEYS;
		env_advance(&e, 100);
	} while (key == KEYS);
	env_keys(keys, 1, 1, key);
	assert_int_equal(env_lookup(&e, keys, 1, SKV_LOOKUP_BATCH, 0, &look), SKV_OK);
	offset = look.loc[0].offset;
	assert_int_equal(env_delete(&e, keys, 1, &deleted), SKV_OK);
	assert_int_equal(put_storage(&e, "s", 4, false, false), SKV_OK);
	assert_int_equal(put_storage(&e, "t", 4, true, true), SKV_OK);
	put(&e, key, 1, 3000);
	assert_int_equal(env_lookup(&e, keys, 1, SKV_LOOKUP_BATCH, 0, &look), SKV_OK);
	assert_int_equal(look.loc[0].offset, offset);
	assert_string_equal(look.files.v[look.loc[0].file].storage, "s");
	assert_int_equal(finish(&e, id, 1, 1, &f), SKV_OK);
	assert_int_equal(f.moved, 0);
	assert_int_equal(f.failed, 1);
	assert_int_equal(env_lookup(&e, keys, 1, SKV_LOOKUP_BATCH, 0, &look), SKV_OK);
	assert_int_equal(look.loc[0].checksum, 3000 + key);
	assert_string_equal(look.files.v[look.loc[0].file].storage, "s");
	env_check(&e);
	env_destroy(&e);
}

static const char *waits_for(struct env *e)
{
	struct skv_file_view *v;
	uint32_t n;

	skv_arena_reset(&e->arena);
	assert_int_equal(skv_cluster_files(e->cluster, "s", &e->arena, &v, &n, &e->err), SKV_OK);
	return n ? v[0].waits_for : "gone";
}

/* Movers mint no checksums: it stays, and drained without move it goes. */
static void test_blocks_without_checksum_stay(void **state)
{
	struct skv_move_finish_res f;
	struct skv_key key;
	struct env e;
	char id[33];
	uint32_t n;

	(void)state;
	setup(&e);
	assert_string_equal(waits_for(&e), "a mover: slabkv mover");
	assert_int_equal(put_storage(&e, "s", 4, false, false), SKV_OK);
	assert_int_equal(put_storage(&e, "t", 4, true, false), SKV_OK);
	put(&e, KEYS, 1, 0);
	assert_int_equal(put_storage(&e, "t", 4, false, false), SKV_OK);
	assert_int_equal(put_storage(&e, "s", 4, true, true), SKV_OK);
	n = take(&e, KEYS + 1, id);
	assert_int_equal(n, KEYS);
	assert_int_equal(finish(&e, id, n, n, &f), SKV_OK);
	assert_int_equal(take(&e, 1, id), 0);
	env_keys(&key, 1, 1, KEYS);
	assert_int_equal(env_match(&e, &key, 1), 1);
	for (int i = 0; i < 100; i++)
		env_advance(&e, 100);
	assert_int_equal(env_match(&e, &key, 1), 1);
	assert_non_null(strstr(waits_for(&e), "without checksum"));
	assert_int_equal(put_storage(&e, "s", 4, true, false), SKV_OK);
	for (int i = 0; i < 1000; i++)
		env_advance(&e, 50);
	assert_int_equal(env_match(&e, &key, 1), 0);
	assert_string_equal(waits_for(&e), "gone");
	assert_int_equal(count_in(&e, "t"), KEYS);
	env_check(&e);
	env_destroy(&e);
}

/* A single file of 15 slots for 20 blocks. */
static void test_without_room_blocks_stay(void **state)
{
	struct skv_move_finish_res f;
	struct env e;
	char id[33];
	uint32_t n, moved = 0;

	(void)state;
	setup_with(&e, 1);
	while ((n = take(&e, KEYS, id)) != 0) {
		assert_int_equal(finish(&e, id, n, n, &f), SKV_OK);
		moved += f.moved;
		assert_true(moved <= SLOTS);
		if (moved == SLOTS)
			break;
	}
	assert_int_equal(moved, SLOTS);
	assert_int_equal(take(&e, KEYS, id), 0);
	assert_int_equal(count_in(&e, "s") + count_in(&e, "t"), KEYS);
	assert_non_null(strstr(waits_for(&e), "room"));
	env_check(&e);
	env_destroy(&e);
}

/* A single file is drained: its blocks go to the others of the storage. */
static void test_a_file_is_moved(void **state)
{
	struct skv_move_finish_res f;
	struct skv_move_take_res r;
	struct skv_file_view *v;
	struct env e;
	char id[33];
	uint32_t n;

	(void)state;
	setup(&e);
	assert_int_equal(put_storage(&e, "s", 4, false, false), SKV_OK);
	assert_int_equal(put_storage(&e, "t", 4, true, false), SKV_OK);
	assert_int_equal(env_file_drain(e.cluster, "s", 0, false, true, &e.err), SKV_E_INVALID);
	assert_string_equal(e.err.field, "move");
	assert_int_equal(env_file_drain(e.cluster, "s", 0, true, true, &e.err), SKV_OK);
	env_crash(&e); /* the drain is durable */
	env_open(&e);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(env_move_take(&e, KEYS, 5000, &r), SKV_OK);
		n = r.n;
		memcpy(id, r.move, sizeof id);
		if (n)
			assert_int_equal(finish(&e, id, n, n, &f), SKV_OK);
		env_advance(&e, 300);
	}
	for (int i = 0; i < 1000; i++)
		env_advance(&e, 100);
	assert_int_equal(count_in(&e, "s"), KEYS);
	skv_arena_reset(&e.arena);
	assert_int_equal(skv_cluster_files(e.cluster, "s", &e.arena, &v, &n, &e.err), SKV_OK);
	assert_true(n > 0 && v[0].file != 0);
	env_check(&e);
	env_destroy(&e);
}

/* Two movers share the blocks. */
static void test_two_movers(void **state)
{
	struct skv_move_finish_res f;
	struct skv_move_take_res r;
	struct env e;
	char a[33], b[33];
	uint32_t n, m;

	(void)state;
	setup(&e);
	n = take(&e, 12, a);
	m = take(&e, KEYS, b);
	assert_int_equal(n + m, KEYS);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(env_move_take(&e, KEYS, 5000, &r), SKV_OK);
		assert_int_equal(r.n, 0);
		env_advance(&e, 500);
	}
	env_check(&e);
	assert_int_equal(finish(&e, b, m, m, &f), SKV_OK);
	assert_int_equal(finish(&e, a, n, n, &f), SKV_OK);
	assert_int_equal(count_in(&e, "t"), KEYS);
	env_check(&e);
	env_destroy(&e);
}

/* The n-th append fails, or its outcome is unknown, for n = 1, 2...: nothing is lost, and a repeat
 * moves it. */
static void test_appends_fail(void **state)
{
	static const enum skv_fault_kind kinds[] = { SKV_FAULT_ERROR, SKV_FAULT_UNKNOWN_BEFORE,
						     SKV_FAULT_UNKNOWN_AFTER };

	(void)state;
	for (uint32_t round = 0; round < 3 * 12; round++) {
		struct skv_fault fault = { .kind = kinds[round % 3], .call = "append",
					   .at = 1 + round / 3, .times = 1,
					   .status = SKV_E_STORE_IO };
		struct skv_move_finish_res f;
		struct skv_move_take_res r;
		struct env e;
		char id[33];
		bool moved[KEYS];

		memset(moved, true, sizeof moved);
		env_init(&e);
		env_destroy(&e);
		setup(&e);
		env_crash(&e);
		e.faulty = true;
		e.rule = &fault;
		env_open(&e);
		for (int tries = 0; tries < 60 && count_in(&e, "t") < KEYS; tries++) {
			int rc = env_move_take(&e, 6, 5000, &r);
			uint32_t n = r.n;

			memcpy(id, r.move, sizeof id);
			if (rc == SKV_OK && n)
				env_move_finish(&e, id, moved, n, true, &f);
			env_advance(&e, 700);
			for (int i = 0;
			     i < 99 && skv_cluster_state_get(e.cluster) != SKV_CORE_READY; i++)
				env_advance(&e, 700);
			env_check(&e);
		}
		assert_int_equal(count_in(&e, "t"), KEYS);
		env_crash(&e);
		env_open(&e);
		assert_int_equal(count_in(&e, "t"), KEYS);
		env_check(&e);
		env_destroy(&e);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_storage_is_moved_and_empty),
		cmocka_unit_test(test_nothing_drains_nothing_moves),
		cmocka_unit_test(test_bad_finishes),
		cmocka_unit_test(test_a_dead_movers_targets_are_held),
		cmocka_unit_test(test_a_manager_forgets_a_move_and_holds_its_targets),
		cmocka_unit_test(test_a_deleted_block_is_not_moved),
		cmocka_unit_test(test_deleted_between_finish_and_apply),
		cmocka_unit_test(test_a_leased_slot_is_held),
		cmocka_unit_test(test_a_killed_manager_holds_old_slots),
		cmocka_unit_test(test_another_block_in_the_same_slot),
		cmocka_unit_test(test_blocks_without_checksum_stay),
		cmocka_unit_test(test_without_room_blocks_stay),
		cmocka_unit_test(test_a_file_is_moved),
		cmocka_unit_test(test_two_movers),
		cmocka_unit_test(test_appends_fail),
	};

	env_quiet();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
