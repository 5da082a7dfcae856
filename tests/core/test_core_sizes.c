/*
 * test_core_sizes.c - blocks of other sizes have room on a full storage: beside blocks that are
 * read or pinned here and there, and hundreds of sizes beside each other.
 */
#include "core_env.h"

#include <stdio.h>
#include <string.h>

#define MIB (1ull << 20)
#define BYTES (4096 * MIB)
#define LARGE MIB
#define BATCH 1024u
#define LATER 160u   /* blocks of 1 MiB written between a write and the next look */
#define PUTS 5216u
#define PUT_MS 10u

static struct env e;

static void make(uint64_t bytes, uint64_t block)
{
	const struct skv_spec small = { "kv", block }, large = { "kv", LARGE };

	env_init(&e);
	e.o.lease_default_ms = 10000;
	env_open(&e);
	assert_int_equal(env_storage(&e, "s", bytes, 0), SKV_OK);
	assert_int_equal(env_group(&e, "g", 0, "s"), SKV_OK);
	assert_int_equal(env_instance(&e, "i", "g", &small, 1), SKV_OK);
	assert_int_equal(env_instance(&e, "l", "g", &large, 1), SKV_OK);
}

static void end(void)
{
	env_check(&e);
	env_destroy(&e);
}

/* sums[n]; NULL: none. */
static int try_put(const char *instance, const struct skv_key *keys, uint32_t n,
		   const uint64_t *sums)
{
	struct skv_start_res s;
	struct skv_finish_res f;
	char session[SKV_SESSION_ID_HEX + 1];
	int rc = env_start(&e, &(struct env_start){ .instance = instance, .keys = keys, .n = n,
						    .independent = true }, &s);

	if (rc != SKV_OK)
		return rc;
	memcpy(session, s.session, sizeof session);
	return env_finish(&e, session, sums, sums ? n : 0, &f);
}

static void put(const char *instance, const struct skv_key *keys, uint32_t n)
{
	int rc = try_put(instance, keys, n, NULL);

	if (rc != SKV_OK)
		fail_msg("put to %s: %s %s", instance, skv_status_name(rc), e.err.message);
}

/* Blocks of "i" fill the storage. Returns how many keys there are. */
static uint32_t fill(uint64_t bytes, uint64_t block)
{
	const uint32_t n = (uint32_t)(bytes / block);
	static struct skv_key keys[BATCH];

	for (uint32_t at = 0; at < n; at += BATCH) {
		env_keys(keys, BATCH, 1, at);
		put("i", keys, BATCH);
		env_advance(&e, 1);
	}
	env_advance(&e, 60000);
	return n;
}

static void pin_every(uint32_t step, uint32_t n)
{
	struct skv_pin_res r;

	for (uint32_t i = step / 2; i < n; i += step) {
		struct skv_key key = { 1, i };

		assert_int_equal(env_pin(&e, &key, 1, SKV_PIN_HARD, 0, &r), SKV_OK);
	}
}

static bool is_there(const char *instance, struct skv_key key)
{
	const struct skv_lookup_req q = { .tenant = "t", .instance = instance, .keys = &key,
					  .n_keys = 1, .mode = SKV_LOOKUP_PREFIX };
	struct skv_lookup_res r;

	assert_int_equal(env_lookup_req(&e, &q, &r), SKV_OK);
	return r.matched == 1;
}

/* A lookup of 100 of n keys of "i". */
static void look(uint32_t n, uint64_t *random)
{
	struct skv_key keys[100];
	struct skv_lookup_res r;

	for (uint32_t i = 0; i < 100; i++) {
		*random = *random * 6364136223846793005ull + 1442695040888963407ull;
		keys[i] = (struct skv_key){ 1, (*random >> 33) % n };
	}
	assert_int_equal(env_lookup(&e, keys, 100, SKV_LOOKUP_BATCH, SKV_LEASE_DEFAULT, &r),
			 SKV_OK);
}

/* Blocks of "l" are written, and each is looked for LATER blocks later, while "i" is read so many
 * times a second. Returns the hits. */
static uint32_t write_large(uint32_t n, uint32_t lookups_per_s)
{
	uint64_t random = 7, due = 0;
	uint32_t hits = 0;

	for (uint32_t i = 0; i < PUTS; i++) {
		put("l", &(struct skv_key){ 2, i }, 1);
		if (i >= LATER)
			hits += is_there("l", (struct skv_key){ 2, i - LATER });
		for (due += lookups_per_s * PUT_MS; due >= 1000; due -= 1000)
			look(n, &random);
		env_advance(&e, PUT_MS);
	}
	return hits;
}

static uint32_t hits_beside(uint64_t block, uint32_t lookups_per_s, uint32_t pin_step)
{
	uint32_t n, hits;

	make(BYTES, block);
	n = fill(BYTES, block);
	if (pin_step)
		pin_every(pin_step, n);
	/* The blocks are read for a while. */
	for (uint64_t i = 0, random = 3; i < 10 * lookups_per_s; i++) {
		look(n, &random);
		env_advance(&e, 1000 / lookups_per_s);
	}
	hits = write_large(n, lookups_per_s);
	print_message("blocks of %llu, %u lookups/s, a pin each %u: %u of %u hits\n",
		      (unsigned long long)block, lookups_per_s, pin_step, hits, PUTS - LATER);
	end();
	return hits;
}

static void what_is_read_keeps_no_slab(void **state)
{
	static const uint32_t rates[] = { 1, 5, 50 };
	const uint32_t alone = hits_beside(65536, 0, 0);

	(void)state;
	assert_true(alone > (PUTS - LATER) * 8 / 10);
	for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++)
		assert_true(hits_beside(65536, rates[i], 0) >= alone * 9 / 10);
}

static void what_is_pinned_keeps_little(void **state)
{
	const uint32_t alone = hits_beside(65536, 0, 0);

	(void)state;
	assert_true(hits_beside(65536, 0, 1024) >= alone * 9 / 10);
	assert_true(hits_beside(65536, 5, 1024) >= alone * 9 / 10);
	assert_true(hits_beside(4096, 0, 16384) >= alone * 9 / 10);
}

#define FEW 32u

/* A mover takes what there is, and has copied all of it. */
static void move_some(void)
{
	bool moved[SKV_MAX_MOVE_SLOTS];
	struct skv_move_take_res t;
	struct skv_move_finish_res f;
	char move[sizeof t.move];

	memset(moved, true, sizeof moved);
	assert_int_equal(env_move_take(&e, 0, 0, &t), SKV_OK);
	if (!t.n)
		return;
	memcpy(move, t.move, sizeof move);
	assert_int_equal(env_move_finish(&e, move, moved, t.n, true, &f), SKV_OK);
}

/* A pin in every slab: nothing can go but by moves. */
static void movers_empty_slabs_of_pinned_blocks(void **state)
{
	const uint64_t bytes = 256 * MIB, unit = 4 * MIB;
	const struct skv_spec small = { "kv", 65536 }, large = { "kv", LARGE };
	uint64_t sums[64] = { 0 };
	uint32_t hits = 0, puts = 0;

	(void)state;
	env_init(&e);
	env_open(&e);
	assert_int_equal(env_storage(&e, "s", bytes, unit), SKV_OK);
	assert_int_equal(env_group(&e, "g", 0, "s"), SKV_OK);
	assert_int_equal(env_instance(&e, "i", "g", &small, 1), SKV_OK);
	assert_int_equal(env_instance(&e, "l", "g", &large, 1), SKV_OK);
	for (uint32_t at = 0; at < bytes / 65536; at += 64) {
		struct skv_key keys[64];

		env_keys(keys, 64, 1, at);
		assert_int_equal(try_put("i", keys, 64, sums), SKV_OK);
	}
	pin_every(64, (uint32_t)(bytes / 65536));
	env_advance(&e, 60000);
	assert_int_equal(try_put("l", &(struct skv_key){ 2, 0 }, 1, NULL), SKV_E_NO_SPACE);
	for (uint32_t tries = 0; tries < 2000 && puts < 1000; tries++) {
		move_some();
		if (try_put("l", &(struct skv_key){ 2, puts }, 1, NULL) != SKV_OK)
			continue;
		if (puts >= FEW)
			hits += is_there("l", (struct skv_key){ 2, puts - FEW });
		puts++;
		env_advance(&e, PUT_MS);
	}
	print_message("%u of %u hits with movers\n", hits, puts - FEW);
	assert_int_equal(puts, 1000);
	assert_true(hits >= (puts - FEW) * 8 / 10);
	for (uint32_t i = 32; i < bytes / 65536; i += 64)
		assert_true(is_there("i", (struct skv_key){ 1, i }));
	end();
}

#define SIZES 300u
#define ROUNDS 12u

static void hundreds_of_sizes_have_room(void **state)
{
	uint32_t found = 0;
	struct skv_stats st;
	char name[8];

	(void)state;
	env_init(&e);
	env_open(&e);
	assert_int_equal(env_storage(&e, "s", BYTES, 0), SKV_OK);
	assert_int_equal(env_group(&e, "g", 0, "s"), SKV_OK);
	for (uint32_t i = 0; i < SIZES; i++) {
		const struct skv_spec spec = { "kv", (i + 1) * 24576ull };

		snprintf(name, sizeof name, "i%u", i);
		assert_int_equal(env_instance(&e, name, "g", &spec, 1), SKV_OK);
	}
	for (uint32_t round = 0; round < ROUNDS; round++) {
		for (uint32_t i = 0; i < SIZES; i++) {
			snprintf(name, sizeof name, "i%u", i);
			put(name, &(struct skv_key){ 1, round }, 1);
			env_advance(&e, 10);
		}
	}
	for (uint32_t i = 0; i < SIZES; i++) {
		snprintf(name, sizeof name, "i%u", i);
		found += is_there(name, (struct skv_key){ 1, ROUNDS - 1 });
	}
	env_stats(&e, &st);
	print_message("%u of %u found, %llu MiB used\n", found, SIZES,
		      (unsigned long long)(st.storages[0].used_bytes / MIB));
	assert_true(found >= 250);
	assert_true(st.storages[0].used_bytes >= BYTES / 10 * 6);
	end();
}

/* The view of an instance of "kv" of `bytes`, registered now. */
static struct skv_instance_view *registered(const char *name, const char *group, uint64_t bytes)
{
	const struct skv_spec spec = { "kv", bytes };
	struct skv_instance_view *v;

	assert_int_equal(env_instance(&e, name, group, &spec, 1), SKV_OK);
	assert_int_equal(skv_cluster_instance(e.cluster, "t", name, &e.arena, &v, &e.err),
			 SKV_OK);
	return v;
}

/* 64 MiB are 64 units; each size but the last begins with one. */
static void registration_says_how_many_sizes_have_room(void **state)
{
	const struct skv_instance_view *v = NULL;
	char name[8];

	(void)state;
	env_init(&e);
	env_open(&e);
	assert_int_equal(env_storage(&e, "s", 64 * MIB, 0), SKV_OK);
	assert_int_equal(env_storage(&e, "other", 64 * MIB, 0), SKV_OK);
	assert_int_equal(env_group(&e, "g", 0, "s"), SKV_OK);
	assert_int_equal(env_group(&e, "h", 0, "s"), SKV_OK);
	for (uint32_t i = 0; i < 65; i++) {
		snprintf(name, sizeof name, "i%u", i);
		v = registered(name, i % 2 ? "g" : "h", (i + 1) * 4096);
		assert_int_equal(v->layouts, i + 1);
		assert_int_equal(v->layouts_left, i < 64 ? 63 - i : 0);
		assert_int_equal(*v->warning != '\0', i >= 32);
	}
	assert_non_null(strstr(v->warning, "some of them find no room"));
	/* the same size again is no other layout; a large one takes several units */
	assert_int_equal(registered("same", "g", 4096)->layouts, 65);
	v = registered("large", "g", 6 * MIB);
	assert_int_equal(v->layouts, 66);
	for (uint32_t i = 0; i < 60; i++) {
		snprintf(name, sizeof name, "i%u", i);
		assert_int_equal(skv_cluster_instance_delete(e.cluster, "t", name, NULL, &e.err),
				 SKV_OK);
	}
	v = registered("large", "g", 6 * MIB);
	assert_int_equal(v->layouts, 5 + 2); /* "same" has the size of i0, which is gone */
	assert_int_equal(v->layouts_left, (64 - 5 - 1 - 8) / 8);
	assert_string_equal(v->warning, "");
	env_shutdown(&e);
	env_open(&e);
	assert_int_equal(registered("large", "g", 6 * MIB)->layouts, 5 + 2);
	/* the group goes elsewhere, with its instances */
	assert_int_equal(env_group(&e, "g", 0, "other"), SKV_OK);
	assert_int_equal(registered("large", "g", 6 * MIB)->layouts, 2 + 2);
	assert_int_equal(registered("i60", "h", 61 * 4096)->layouts, 3);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_read_keeps_no_slab),
		cmocka_unit_test(what_is_pinned_keeps_little),
		cmocka_unit_test(movers_empty_slabs_of_pinned_blocks),
		cmocka_unit_test(hundreds_of_sizes_have_room),
		cmocka_unit_test(registration_says_how_many_sizes_have_room),
	};

	env_quiet();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
