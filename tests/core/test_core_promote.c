/*
 * test_core_promote.c - copies that movers make of what is used often: when a block is wanted in
 * the fast tier, what a mover is given, what hinders it, who dies.
 */
#include "core_env.h"

#include <stdio.h>
#include <string.h>

#include <model/wish.h>

#define BLOCK 65536u
#define UNIT (1ull << 20)
#define COPIES "i@fast"
#define SUM 100u /* and SUM + 1, of the second spec */

static int put_tier(struct env *e, uint32_t promote_after)
{
	const char *storage = "m";
	struct skv_group_spec g = { .name = "fast", .storages = &storage, .n_storages = 1,
				    .tier_of = "g", .promote_after = promote_after };

	memset(&e->err, 0, sizeof e->err);
	return skv_cluster_group_put(e->cluster, &g, SKV_PUT_ANY, NULL, NULL, &e->err);
}

/* "g" on storage "s" with instance "i" of two specs, and "fast" on "m". */
static void setup(struct env *e, uint32_t promote_after, uint32_t block)
{
	const struct skv_spec specs[] = { { "a", block }, { "b", block } };

	env_init(e);
	env_open(e);
	assert_int_equal(env_storage(e, "s", 48 * UNIT, UNIT), SKV_OK);
	assert_int_equal(env_storage(e, "m", 48 * UNIT, UNIT), SKV_OK);
	assert_int_equal(env_group(e, "g", 0, "s"), SKV_OK);
	assert_int_equal(env_instance(e, "i", "g", specs, 2), SKV_OK);
	assert_int_equal(put_tier(e, promote_after), SKV_OK);
}

/* Uses the keys once. How many have a copy of both specs, in "m". */
static uint32_t look(struct env *e, uint32_t first, uint32_t n, bool peek)
{
	struct skv_key keys[64];
	struct skv_lookup_req q = { .tenant = "t", .instance = "i", .mode = SKV_LOOKUP_BATCH,
				    .keys = keys, .n_keys = n, .want_copies = true,
				    .peek = peek };
	struct skv_lookup_res r;
	uint32_t copies = 0;

	env_keys(keys, n, 1, first);
	assert_int_equal(env_lookup_req(e, &q, &r), SKV_OK);
	for (uint32_t i = 0; r.copy && i < n; i++) {
		const struct skv_location *c = &r.copy[2 * i];

		if (!r.hit[i] || !c[0].length || !c[1].length)
			continue;
		assert_string_equal(r.files.v[c[0].file].storage, "m");
		copies++;
	}
	return copies;
}

/* Slots that a mover is given; the tier's storage may have to grow first. */
static uint32_t take(struct env *e, uint32_t max, char id[33])
{
	struct skv_move_take_res r;

	assert_int_equal(env_move_take(e, max, 5000, &r), SKV_OK);
	memcpy(id, r.move, 33);
	assert_int_equal(*id != '\0', r.n != 0);
	for (uint32_t i = 0; i < r.n; i++) {
		if (!r.from[i].length)
			continue;
		assert_string_equal(r.files.v[r.from[i].file].storage, "s");
		assert_string_equal(r.files.v[r.to[i].file].storage, "m");
		assert_int_equal(r.from[i].checksum, r.to[i].checksum);
		assert_true(r.from[i].has_checksum && r.from[i].checksum - SUM < 2);
		assert_int_equal(r.deadline_ms, 5000);
	}
	return r.n;
}

/* A move of n slots, of which `copied` were copied. How many count. */
static uint32_t finish(struct env *e, const char *id, uint32_t n, uint32_t copied)
{
	struct skv_move_finish_res res;
	bool moved[128] = { false };

	memset(moved, true, copied);
	assert_int_equal(env_move_finish(e, id, moved, n, true, &res), SKV_OK);
	assert_int_equal(res.moved + res.failed, n);
	return res.moved;
}

static void what_is_used_often_is_copied(void **state)
{
	struct skv_core_counters before, after;
	char id[33], none[33];
	struct env e;

	(void)state;
	setup(&e, 2, BLOCK);
	env_put_pairs(&e, "i", 0, 4, SUM);
	look(&e, 0, 4, false);
	assert_int_equal(take(&e, 0, id), 0); /* used once */
	look(&e, 0, 4, true);
	assert_int_equal(take(&e, 0, id), 0); /* a peek is no use */
	look(&e, 0, 3, false);
	look(&e, 0, 3, false); /* wanted once more: once is enough */
	skv_cluster_counters_get(e.cluster, &before);
	assert_int_equal(take(&e, 0, id), 6);
	assert_int_equal(take(&e, 0, none), 0);
	assert_int_equal(look(&e, 0, 4, true), 0); /* not before it is finished */
	assert_int_equal(finish(&e, id, 6, 6), 6);
	skv_cluster_counters_get(e.cluster, &after);
	assert_int_equal(after.copied_blocks - before.copied_blocks, 3);
	assert_int_equal(after.copied_bytes - before.copied_bytes, 6 * BLOCK);
	assert_int_equal(look(&e, 0, 4, false), 3);
	assert_int_equal(take(&e, 0, id), 2); /* key 3 has been used twice by now */
	assert_int_equal(finish(&e, id, 2, 1), 0); /* of two specs one was copied: no copy */
	assert_int_equal(look(&e, 0, 4, true), 3);
	look(&e, 3, 1, false);
	assert_int_equal(take(&e, 0, id), 0); /* the block was wanted just now */
	env_advance(&e, WISH_REST_MS + 100);
	look(&e, 3, 1, false);
	assert_int_equal(take(&e, 1, id), 2); /* a whole block, at least */
	assert_int_equal(finish(&e, id, 2, 2), 2);
	assert_int_equal(look(&e, 0, 4, false), 4);
	env_advance(&e, WISH_REST_MS + 100);
	look(&e, 0, 4, false);
	assert_int_equal(take(&e, 0, id), 0); /* all is there */
	env_crash(&e);
	env_open(&e);
	assert_int_equal(look(&e, 0, 4, true), 4);
	env_check(&e);
	env_destroy(&e);
}

static void a_block_that_goes_meanwhile_is_not_copied(void **state)
{
	uint32_t deleted;
	struct skv_key key;
	char id[33];
	struct env e;

	(void)state;
	setup(&e, 1, BLOCK);
	env_put_pairs(&e, "i", 0, 2, SUM);
	look(&e, 0, 2, false);
	assert_int_equal(take(&e, 0, id), 4);
	env_keys(&key, 1, 1, 0);
	assert_int_equal(env_delete(&e, &key, 1, &deleted), SKV_OK);
	env_put_pairs(&e, "i", 0, 1, SUM); /* the same bytes, somewhere else: it cannot know */
	assert_int_equal(finish(&e, id, 4, 4), 2);
	assert_int_equal(look(&e, 0, 2, true), 1);

	/* Gone before it was asked for. */
	env_put_pairs(&e, "i", 10, 2, SUM);
	look(&e, 10, 2, false);
	env_keys(&key, 1, 1, 10);
	assert_int_equal(env_delete(&e, &key, 1, &deleted), SKV_OK);
	assert_int_equal(take(&e, 0, id), 2);
	assert_int_equal(finish(&e, id, 2, 2), 2);

	/* A clear of both: the session of the copies is over, and the mover is told so. */
	env_put_pairs(&e, "i", 20, 2, SUM);
	look(&e, 20, 2, false);
	assert_int_equal(take(&e, 0, id), 4);
	assert_int_equal(env_clear(&e, NULL, &(uint64_t){ 0 }), SKV_OK);
	assert_int_equal(env_move_finish(&e, id, (bool[4]){ true, true, true, true }, 4, true,
					 &(struct skv_move_finish_res){ 0 }),
			 SKV_E_NOT_FOUND);
	assert_int_equal(look(&e, 20, 2, true), 0);
	env_check(&e);
	env_destroy(&e);
}

static void what_has_no_checksum_is_not_copied(void **state)
{
	char id[33];
	struct env e;

	(void)state;
	setup(&e, 1, BLOCK);
	env_put_pairs(&e, "i", 0, 4, 0);
	look(&e, 0, 4, false);
	assert_int_equal(take(&e, 0, id), 0);
	env_put_pairs(&e, "i", 10, 1, SUM);
	assert_int_equal(put_tier(&e, 0), SKV_OK);
	look(&e, 10, 1, false);
	assert_int_equal(take(&e, 0, id), 0); /* never */
	env_destroy(&e);
}

/* A copy of an earlier content is in the way of the next one. */
static void old_copies_go(void **state)
{
	char id[33];
	struct env e;

	(void)state;
	setup(&e, 1, BLOCK);
	env_put_pairs(&e, "i", 0, 2, SUM);
	env_put_pairs(&e, COPIES, 0, 1, SUM + 10);
	assert_int_equal(look(&e, 0, 2, false), 0);
	assert_int_equal(take(&e, 0, id), 2); /* the other one */
	assert_int_equal(finish(&e, id, 2, 2), 2);
	env_advance(&e, WISH_REST_MS + 100);
	assert_int_equal(look(&e, 0, 2, false), 1);
	assert_int_equal(take(&e, 0, id), 2);
	assert_int_equal(finish(&e, id, 2, 2), 2);
	assert_int_equal(look(&e, 0, 2, false), 2);
	env_destroy(&e);
}

static uint64_t used(struct env *e, const char *storage, uint64_t *held)
{
	struct skv_stats st;
	uint64_t bytes = 0;

	env_stats(e, &st);
	for (uint32_t i = 0; i < st.n_storages; i++)
		if (strcmp(st.storages[i].spec.name, storage) == 0) {
			bytes = st.storages[i].used_bytes;
			*held = st.storages[i].quarantined_bytes;
		}
	return bytes;
}

/* The promotion is done once more, whichever process dies. */
static void killed(void **state)
{
	struct skv_move_finish_res res;
	uint64_t held = 0;
	char id[33];
	struct env e;

	(void)state;
	setup(&e, 1, BLOCK);
	env_put_pairs(&e, "i", 0, 2, SUM);
	look(&e, 0, 2, false);
	assert_int_equal(take(&e, 0, id), 4); /* the mover dies */
	assert_int_equal(used(&e, "m", &held), 4 * BLOCK);
	env_advance(&e, 5100);
	assert_int_equal(env_move_finish(&e, id, (bool[4]){ true, true, true, true }, 4, true,
					 &res), SKV_E_NOT_FOUND);
	assert_int_equal(used(&e, "m", &held), 0);
	assert_int_equal(held, 4 * BLOCK); /* the mover may still be writing */
	env_advance(&e, 60000);
	assert_int_equal(used(&e, "m", &held), 0);
	assert_int_equal(held, 0);

	look(&e, 0, 2, false);
	assert_int_equal(take(&e, 0, id), 4); /* the manager dies */
	env_crash(&e);
	env_open(&e);
	assert_int_equal(env_move_finish(&e, id, (bool[4]){ true, true, true, true }, 4, true,
					 &res), SKV_E_NOT_FOUND);
	look(&e, 0, 2, false);
	assert_int_equal(take(&e, 0, id), 0); /* the session is open: who is in it may write */
	env_advance(&e, 60000);
	look(&e, 0, 2, false);
	assert_int_equal(take(&e, 0, id), 4);
	assert_int_equal(finish(&e, id, 4, 4), 4);
	assert_int_equal(look(&e, 0, 2, false), 2);
	env_check(&e);
	env_destroy(&e);
}

/* No more than so many are remembered, the newest of them. */
static void wishes_are_bounded(void **state)
{
	const uint32_t more = 128, all = WISHES + more;
	uint32_t n, took = 0;
	char id[33];
	struct env e;

	(void)state;
	setup(&e, 1, 4096);
	for (uint32_t i = 0; i < all; i += 64)
		env_put_pairs(&e, "i", i, 64, SUM);
	for (uint32_t i = 0; i < all; i += 64)
		look(&e, i, 64, false);
	while ((n = take(&e, 0, id)) > 0) {
		assert_int_equal(finish(&e, id, n, n), n);
		took += n / 2;
	}
	/* Two that fall on one place are told apart, but are both noted. */
	assert_int_equal(took, WISHES);
	assert_int_equal(look(&e, 0, 64, true), 0);
	assert_int_equal(look(&e, 64, 64, true), 0);
	for (uint32_t i = more; i < all; i += 64)
		assert_int_equal(look(&e, i, 64, true), 64);
	env_destroy(&e);
}

/* Of several partitions each has its own. */
static void every_partition_is_asked(void **state)
{
	const struct skv_spec spec = { "kv", BLOCK };
	const char *storage = "s";
	char name[16], fast[16], id[16];
	uint32_t n, took = 0;
	struct env e;

	(void)state;
	env_init(&e);
	e.all.partitions = 4;
	env_open(&e);
	assert_int_equal(env_storage(&e, "s", 64 * UNIT, UNIT), SKV_OK);
	for (int i = 0; i < 6; i++) {
		struct skv_group_spec g = { .name = fast, .storages = &storage, .n_storages = 1,
					    .tier_of = name, .promote_after = 1 };
		const uint64_t sum = SUM;
		struct skv_lookup_res r;
		struct skv_start_res s;
		struct skv_finish_res f;
		struct skv_key key;
		char session[33];

		snprintf(name, sizeof name, "g%d", i);
		snprintf(fast, sizeof fast, "f%d", i);
		snprintf(id, sizeof id, "i%d", i);
		assert_int_equal(env_group(&e, name, 0, "s"), SKV_OK);
		assert_int_equal(
			skv_cluster_group_put(e.cluster, &g, SKV_PUT_ANY, NULL, NULL, &e.err),
			SKV_OK);
		assert_int_equal(env_instance(&e, id, name, &spec, 1), SKV_OK);
		env_keys(&key, 1, 1, 0);
		assert_int_equal(env_start(&e, &(struct env_start){ .instance = id, .keys = &key,
								    .n = 1 }, &s), SKV_OK);
		memcpy(session, s.session, sizeof session);
		assert_int_equal(env_finish(&e, session, &sum, 1, &f), SKV_OK);
		assert_int_equal(env_lookup_req(&e, &(struct skv_lookup_req){
					.tenant = "t", .instance = id, .mode = SKV_LOOKUP_BATCH,
					.keys = &key, .n_keys = 1, .want_copies = true }, &r),
				 SKV_OK);
	}
	for (int i = 0; i < 40; i++) {
		struct skv_move_take_res r;
		char move[33];

		assert_int_equal(env_move_take(&e, 0, 5000, &r), SKV_OK);
		n = r.n;
		memcpy(move, r.move, sizeof move);
		if (n)
			took += finish(&e, move, n, n);
		env_advance(&e, 100);
	}
	assert_int_equal(took, 6);
	env_destroy(&e);
}

static void refused(struct env *e, int rc, const char *field)
{
	assert_int_equal(rc, SKV_E_INVALID);
	assert_string_equal(e->err.field, field);
	assert_true(*e->err.message);
}

static void which_groups_may_promote(void **state)
{
	const char *storage = "s";
	struct skv_group_spec g = { .name = "g", .storages = &storage, .n_storages = 1,
				    .promote_after = 1 };
	struct env e;

	(void)state;
	setup(&e, SKV_MAX_PROMOTE, BLOCK);
	refused(&e, put_tier(&e, SKV_MAX_PROMOTE + 1), "promote_after");
	memset(&e.err, 0, sizeof e.err);
	refused(&e, skv_cluster_group_put(e.cluster, &g, SKV_PUT_ANY, NULL, NULL, &e.err),
		"promote_after");
	env_crash(&e);
	env_open(&e);
	env_put_pairs(&e, "i", 0, 1, SUM);
	for (uint32_t i = 0; i < SKV_MAX_PROMOTE; i++) {
		char id[33];

		assert_int_equal(take(&e, 0, id), 0);
		look(&e, 0, 1, false);
	}
	assert_int_equal(take(&e, 0, (char[33]){ "" }), 2); /* as it was told before the crash */
	env_destroy(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_used_often_is_copied),
		cmocka_unit_test(a_block_that_goes_meanwhile_is_not_copied),
		cmocka_unit_test(what_has_no_checksum_is_not_copied),
		cmocka_unit_test(old_copies_go),
		cmocka_unit_test(killed),
		cmocka_unit_test(wishes_are_bounded),
		cmocka_unit_test(every_partition_is_asked),
		cmocka_unit_test(which_groups_may_promote),
	};

	env_quiet();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
