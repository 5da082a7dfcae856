/*
 * test_core_replicas.c - copies whose blocks cannot be read: storages and slab files that go, and
 * what is found then. Real directories.
 */
#include "core_env.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 65536u
#define UNIT (1ull << 20)
#define COPIES "i@fast"
#define KEYS 20u /* more than fit one file */

static struct env e;
static char top[64];

static void move(const char *from, const char *to)
{
	char a[128], b[128];

	snprintf(a, sizeof a, "%s/%s", top, from);
	snprintf(b, sizeof b, "%s/%s", top, to);
	assert_int_equal(rename(a, b), 0);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

static void add_storage(const char *name)
{
	char root[80];
	struct skv_storage_spec s = { .name = name, .type = "file", .root = root,
				      .capacity = 8 * UNIT, .unit = UNIT, .file_size = UNIT,
				      .enabled = true };

	snprintf(root, sizeof root, "%s/%s", top, name);
	assert_int_equal(skv_cluster_storage_put(e.cluster, &s, SKV_PUT_ANY, NULL, &e.err), SKV_OK);
}

/* "i" on storage "s", all KEYS, and copies of all but the last on "m". */
static int setup(void **state)
{
	const struct skv_spec spec = { "kv", BLOCK };
	const char *fast = "m";
	struct skv_group_spec g = { .name = "fast", .storages = &fast, .n_storages = 1,
				    .tier_of = "g" };

	(void)state;
	env_quiet();
	snprintf(top, sizeof top, "/tmp/skv-replicas-XXXXXX");
	assert_non_null(mkdtemp(top));
	env_init(&e);
	env_open(&e);
	add_storage("s");
	add_storage("m");
	assert_int_equal(env_group(&e, "g", 0, "s"), SKV_OK);
	assert_int_equal(env_instance(&e, "i", "g", &spec, 1), SKV_OK);
	assert_int_equal(skv_cluster_group_put(e.cluster, &g, SKV_PUT_ANY, NULL, NULL, &e.err),
			 SKV_OK);
	env_put_summed(&e, "i", KEYS, false);
	env_put_summed(&e, COPIES, KEYS - 1, false);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	env_check(&e);
	env_destroy(&e);
	assert_int_equal(nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
	return 0;
}

/* So that storages and files are looked at. */
static void look_around(void)
{
	for (int i = 0; i < 8; i++)
		env_advance(&e, 1000);
}

/* All keys: how many are hits; of these in *s and *m: whose blocks' place is there; and in *copies:
 * which have a copy besides. */
static uint32_t find(const struct skv_lookup_req *more, uint32_t *s, uint32_t *m, uint32_t *copies)
{
	struct skv_lookup_req q = *more;
	struct skv_key keys[KEYS];
	struct skv_lookup_res r;

	env_keys(keys, KEYS, 1, 0);
	q.tenant = "t";
	q.instance = "i";
	q.keys = keys;
	q.n_keys = KEYS;
	*s = *m = *copies = 0;
	assert_int_equal(env_lookup_req(&e, &q, &r), SKV_OK);
	for (uint32_t i = 0; i < KEYS; i++) {
		if (!r.hit[i])
			continue;
		assert_true(r.loc[i].has_checksum && r.loc[i].length == BLOCK);
		assert_int_equal(r.loc[i].checksum, 1000 + i);
		*s += r.files.v[r.loc[i].file].storage[0] == 's';
		*m += r.files.v[r.loc[i].file].storage[0] == 'm';
		*copies += r.copy && r.copy[i].length;
	}
	assert_true(*s + *m <= r.matched); /* others are in "t" */
	return r.matched;
}

static void expect(enum skv_lookup_mode mode, uint32_t hits, uint32_t in_s, uint32_t beside)
{
	struct skv_lookup_req q = { .mode = mode, .want_copies = true };
	uint32_t s, m, copies;

	assert_int_equal(find(&q, &s, &m, &copies), hits);
	assert_int_equal(s, in_s);
	assert_int_equal(copies, beside);
	q.want_copies = false; /* the answer contains only readable locations, for every caller */
	assert_int_equal(find(&q, &s, &m, &copies), hits);
	assert_int_equal(s, in_s);
	assert_int_equal(copies, 0);
}

static uint32_t matched(void)
{
	struct skv_key keys[KEYS];

	env_keys(keys, KEYS, 1, 0);
	return env_match(&e, keys, KEYS);
}

static void of_a_storage_that_is_gone(void **state)
{
	(void)state;
	expect(SKV_LOOKUP_BATCH, KEYS, KEYS, KEYS - 1);
	move("s", "away");
	look_around();
	expect(SKV_LOOKUP_BATCH, KEYS - 1, 0, 0);
	expect(SKV_LOOKUP_PREFIX, KEYS - 1, 0, 0);
	assert_int_equal(matched(), KEYS - 1);
	move("m", "away-too");
	look_around();
	expect(SKV_LOOKUP_BATCH, 0, 0, 0);
	assert_int_equal(matched(), 0);
	move("away", "s");
	look_around();
	expect(SKV_LOOKUP_BATCH, KEYS, KEYS, 0);
	move("away-too", "m");
	look_around();
	expect(SKV_LOOKUP_BATCH, KEYS, KEYS, KEYS - 1);
}

static void of_a_file_that_is_gone(void **state)
{
	struct skv_lookup_req q = { .mode = SKV_LOOKUP_BATCH, .want_copies = true };
	uint32_t s, m, copies;

	(void)state;
	move("s/slab-00000000.kvs", "away");
	look_around();
	assert_int_equal(find(&q, &s, &m, &copies), KEYS); /* the last is in another file */
	assert_true(m > 0 && s > 0 && copies == KEYS - 1 - m);
	assert_int_equal(matched(), KEYS);
	move("away", "s/slab-00000000.kvs");
	look_around();
	expect(SKV_LOOKUP_BATCH, KEYS, KEYS, KEYS - 1);
}

/* A copy of other bytes is none, whatever is gone. */
static void of_a_block_that_was_written_again(void **state)
{
	struct skv_key key;
	uint32_t deleted;
	uint64_t sum = 7;
	struct skv_start_res s;
	struct skv_finish_res f;
	char session[33];

	(void)state;
	env_keys(&key, 1, 1, 0);
	assert_int_equal(env_delete(&e, &key, 1, &deleted), SKV_OK);
	assert_int_equal(env_start(&e, &(struct env_start){ .keys = &key, .n = 1 }, &s), SKV_OK);
	memcpy(session, s.session, sizeof session);
	assert_int_equal(env_finish(&e, session, &sum, 1, &f), SKV_OK);
	assert_int_equal(env_start(&e, &(struct env_start){ .instance = COPIES, .keys = &key,
							    .n = 1 }, &s), SKV_OK);
	memcpy(session, s.session, sizeof session);
	sum = 1000;
	assert_int_equal(env_finish(&e, session, &sum, 1, &f), SKV_OK);
	move("s", "away");
	look_around();
	expect(SKV_LOOKUP_BATCH, KEYS - 2, 0, 0);
	expect(SKV_LOOKUP_PREFIX, 0, 0, 0);
	assert_int_equal(matched(), 0);
}

/* The slots that are told are those that rest. */
static void what_is_told_is_leased(void **state)
{
	struct skv_lookup_req q = { .mode = SKV_LOOKUP_PREFIX, .lease_ms = 3000 };
	uint32_t s, m, copies;
	struct skv_stats st;

	(void)state;
	move("s", "away");
	look_around();
	assert_int_equal(find(&q, &s, &m, &copies), KEYS - 1);
	assert_int_equal(env_clear(&e, COPIES, &(uint64_t){ 0 }), SKV_OK);
	expect(SKV_LOOKUP_BATCH, 0, 0, 0);
	env_advance(&e, 100);
	env_stats(&e, &st);
	for (uint32_t i = 0; i < st.n_storages; i++)
		if (st.storages[i].spec.name[0] == 'm')
			assert_int_equal(st.storages[i].quarantined_bytes, (KEYS - 1) * BLOCK);
}

/* A location that cannot be leased is not returned: nothing else could be read. */
static void what_cannot_be_leased_is_a_miss(void **state)
{
	const char *fast = "m";
	struct skv_group_spec g = { .name = "fast", .storages = &fast, .n_storages = 1,
				    .tier_of = "g", .capacity = 10 * BLOCK };
	struct skv_lookup_req q = { .mode = SKV_LOOKUP_PREFIX, .lease_ms = 3000 };
	uint32_t s, m, copies;

	(void)state;
	move("s", "away");
	look_around();
	assert_int_equal(find(&q, &s, &m, &copies), KEYS - 1); /* the horizon is far enough now */
	env_advance(&e, 3100);
	assert_int_equal(skv_cluster_group_put(e.cluster, &g, SKV_PUT_ANY, NULL, NULL, &e.err),
			 SKV_OK);
	expect(SKV_LOOKUP_BATCH, KEYS - 1, 0, 0);
	assert_int_equal(find(&q, &s, &m, &copies), 10);
	q.mode = SKV_LOOKUP_BATCH;
	assert_int_equal(find(&q, &s, &m, &copies), 10);
	q.mode = SKV_LOOKUP_WINDOW;
	q.window = KEYS - 2;
	assert_int_equal(find(&q, &s, &m, &copies), 0);
}

/* ---- movers ---------------------------------------------------------------------------------- */

static void put_groups_of(uint32_t n, bool replicate)
{
	const char *slow[] = { "s", "t" }, *fast = "m";
	struct skv_group_spec g = { .name = "g", .storages = slow, .n_storages = n };
	struct skv_group_spec f = { .name = "fast", .storages = &fast, .n_storages = 1,
				    .tier_of = "g", .replicate = replicate };

	assert_int_equal(skv_cluster_group_put(e.cluster, &g, SKV_PUT_ANY, NULL, NULL, &e.err),
			 SKV_OK);
	assert_int_equal(skv_cluster_group_put(e.cluster, &f, SKV_PUT_ANY, NULL, NULL, &e.err),
			 SKV_OK);
}

static void put_groups(bool replicate) { put_groups_of(2, replicate); }

static void drain(const char *name)
{
	char root[80];
	struct skv_storage_spec s = { .name = name, .type = "file", .root = root,
				      .capacity = 8 * UNIT, .unit = UNIT, .file_size = UNIT,
				      .enabled = true, .draining = true };

	snprintf(root, sizeof root, "%s/%s", top, name);
	assert_int_equal(skv_cluster_storage_put(e.cluster, &s, SKV_PUT_ANY, NULL, &e.err), SKV_OK);
}

/* A mover's work, until there is none for some seconds. What it copied, from storages `from` to
 * storages `to`, "" = nothing. */
static uint32_t work(char *from, char *to)
{
	uint32_t all = 0;

	*from = *to = '\0';
	for (int idle = 0; idle < 30; idle++) {
		struct skv_move_finish_res f;
		struct skv_move_take_res r;
		bool moved[128];
		char id[33];

		env_advance(&e, 200);
		assert_int_equal(env_move_take(&e, 7, 5000, &r), SKV_OK);
		if (!r.n)
			continue;
		idle = 0;
		memcpy(id, r.move, sizeof id);
		for (uint32_t i = 0; i < r.n; i++) {
			moved[i] = r.from[i].length != 0;
			if (!moved[i])
				continue;
			assert_int_equal(r.from[i].checksum, r.to[i].checksum);
			from[0] = r.files.v[r.from[i].file].storage[0];
			to[0] = r.files.v[r.to[i].file].storage[0];
			from[1] = to[1] = '\0';
		}
		assert_int_equal(env_move_finish(&e, id, moved, r.n, true, &f), SKV_OK);
		all += f.moved;
	}
	return all;
}

static void all_blocks_get_copies(void **state)
{
	char from[2], to[2];

	(void)state;
	add_storage("t");
	put_groups(true);
	assert_int_equal(work(from, to), 1); /* the last one */
	assert_string_equal(from, "s");
	assert_string_equal(to, "m");
	expect(SKV_LOOKUP_BATCH, KEYS, KEYS, KEYS);
	assert_int_equal(env_clear(&e, COPIES, &(uint64_t){ 0 }), SKV_OK);
	assert_int_equal(work(from, to), KEYS);
	expect(SKV_LOOKUP_BATCH, KEYS, KEYS, KEYS);
	put_groups(false);
	assert_int_equal(env_clear(&e, COPIES, &(uint64_t){ 0 }), SKV_OK);
	assert_int_equal(work(from, to), 0);
}

/* Where is no room for all, nothing is pushed out for the rest. */
static void copies_take_free_room_alone(void **state)
{
	const char *fast = "m";
	struct skv_group_spec f = { .name = "fast", .storages = &fast, .n_storages = 1,
				    .tier_of = "g", .replicate = true, .capacity = 12 * BLOCK };
	struct skv_core_counters before, after;
	char from[2], to[2];
	uint32_t n;

	(void)state;
	assert_int_equal(env_clear(&e, COPIES, &(uint64_t){ 0 }), SKV_OK);
	assert_int_equal(skv_cluster_group_put(e.cluster, &f, SKV_PUT_ANY, NULL, NULL, &e.err),
			 SKV_OK);
	skv_cluster_counters_get(e.cluster, &before);
	n = work(from, to);
	assert_in_range(n, 6, 12);
	assert_int_equal(work(from, to), 0);
	skv_cluster_counters_get(e.cluster, &after);
	assert_int_equal(after.evicted_blocks, before.evicted_blocks);
}

static void a_drain_waits_for_what_is_replicated(void **state)
{
	struct skv_file_view *v;
	char from[2], to[2];
	uint32_t n;

	(void)state;
	add_storage("t");
	put_groups(true);
	drain("s");
	for (int i = 0; i < 40; i++) {
		env_advance(&e, 200);
		if (i > 5) /* the one without a copy has gone */
			expect(SKV_LOOKUP_BATCH, KEYS - 1, KEYS - 1, KEYS - 1);
	}
	assert_int_equal(work(from, to), KEYS - 1);
	assert_string_equal(from, "s");
	assert_string_equal(to, "t");
	expect(SKV_LOOKUP_BATCH, KEYS - 1, 0, KEYS - 1);
	for (int i = 0; i < 100; i++)
		env_advance(&e, 200);
	assert_int_equal(skv_cluster_files(e.cluster, "s", &e.arena, &v, &n, &e.err), SKV_OK);
	assert_int_equal(n, 0);
}

static void less_capacity_is_for_fewer_blocks(void **state)
{
	struct skv_storage_spec s = { .name = "s", .type = "file", .capacity = UNIT, .unit = UNIT,
				      .file_size = UNIT, .enabled = true };
	struct skv_file_view *v;
	char root[80];
	uint32_t n;

	(void)state;
	snprintf(root, sizeof root, "%s/s", top);
	s.root = root;
	put_groups_of(1, true);
	assert_int_equal(skv_cluster_files(e.cluster, "s", &e.arena, &v, &n, &e.err), SKV_OK);
	assert_int_equal(n, 2);
	assert_int_equal(skv_cluster_storage_put(e.cluster, &s, SKV_PUT_ANY, NULL, &e.err), SKV_OK);
	for (int i = 0; i < 100; i++)
		env_advance(&e, 200);
	assert_int_equal(skv_cluster_files(e.cluster, "s", &e.arena, &v, &n, &e.err), SKV_OK);
	assert_int_equal(n, 1);
}

static void blocks_of_a_dead_storage_are_healed(void **state)
{
	char from[2], to[2];

	(void)state;
	add_storage("t");
	put_groups(true);
	assert_int_equal(work(from, to), 1);
	move("s", "away");
	look_around();
	expect(SKV_LOOKUP_BATCH, KEYS, 0, 0);
	env_crash(&e); /* a crash at any point */
	env_open(&e);
	look_around();
	expect(SKV_LOOKUP_BATCH, KEYS, 0, 0);
	assert_int_equal(work(from, to), 0); /* perhaps it comes back */
	env_advance(&e, 5000);
	assert_int_equal(work(from, to), KEYS);
	assert_string_equal(from, "m");
	assert_string_equal(to, "t");
	expect(SKV_LOOKUP_BATCH, KEYS, 0, KEYS);
	env_crash(&e);
	env_open(&e);
	expect(SKV_LOOKUP_BATCH, KEYS, 0, KEYS);
	move("away", "s"); /* storage "away" comes back, and has no blocks any more */
	look_around();
	expect(SKV_LOOKUP_BATCH, KEYS, 0, KEYS);
}

static void blocks_of_a_bad_file_are_healed(void **state)
{
	char from[2], to[2];

	(void)state;
	add_storage("t");
	put_groups(true);
	assert_int_equal(work(from, to), 1);
	move("s/slab-00000000.kvs", "away");
	look_around();
	assert_in_range(work(from, to), 8, KEYS - 1);
	assert_string_equal(from, "m");
	for (int i = 0; i < 100; i++) /* the storage is given up */
		env_advance(&e, 1000);
	assert_int_equal(matched(), KEYS);
}

int main(void)
{
#define SCENE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		SCENE(of_a_storage_that_is_gone),
		SCENE(of_a_file_that_is_gone),
		SCENE(of_a_block_that_was_written_again),
		SCENE(what_is_told_is_leased),
		SCENE(what_cannot_be_leased_is_a_miss),
		SCENE(all_blocks_get_copies),
		SCENE(copies_take_free_room_alone),
		SCENE(a_drain_waits_for_what_is_replicated),
		SCENE(less_capacity_is_for_fewer_blocks),
		SCENE(blocks_of_a_dead_storage_are_healed),
		SCENE(blocks_of_a_bad_file_are_healed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
