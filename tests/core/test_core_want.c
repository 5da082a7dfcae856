/*
 * test_core_want.c - blocks that are asked for in another storage: which may be, what movers are
 * given of them, that one is where it was asked for, and what bounds and hinders it.
 */
#include "core_env.h"

#include <stdio.h>
#include <string.h>

#include <model/wish.h>

#define BLOCK 4096u
#define UNIT (1ull << 20)
#define SUM 100u /* and SUM + 1, of the second spec */
#define MANY 64u

static int put_group(struct env *e, const char *name, const char *a, const char *b, const char *of,
		     uint32_t promote_after)
{
	const char *storages[] = { a, b };
	struct skv_group_spec g = { .name = name, .storages = storages, .n_storages = 2,
				    .policy = "", .tier_of = of, .promote_after = promote_after };

	return skv_cluster_group_put(e->cluster, &g, SKV_PUT_ANY, NULL, NULL, &e->err);
}

static void put_storage(struct env *e, const char *name, bool enabled)
{
	struct skv_storage_spec s = { .name = name, .type = "null", .root = "",
				      .capacity = 96 * UNIT, .unit = UNIT, .file_size = 2 * UNIT,
				      .enabled = enabled };

	assert_int_equal(skv_cluster_storage_put(e->cluster, &s, SKV_PUT_ANY, NULL, &e->err),
			 SKV_OK);
}

/* "g" on "s" and "t", with instance "i" of two specs; "fast" on "m" and "n". */
static void setup(struct env *e, uint32_t promote_after)
{
	const struct skv_spec specs[] = { { "a", BLOCK }, { "b", BLOCK } };

	env_init(e);
	e->o.session_max_ms = 600000;
	env_open(e);
	for (const char *name = "stmn"; *name; name++)
		put_storage(e, (char[2]){ *name, '\0' }, true);
	assert_int_equal(put_group(e, "g", "s", "t", "", 0), SKV_OK);
	assert_int_equal(env_instance(e, "i", "g", specs, 2), SKV_OK);
	assert_int_equal(put_group(e, "fast", "m", "n", "g", promote_after), SKV_OK);
}

static int ask(struct env *e, const char *from, const char *to, uint32_t first, uint32_t n,
	       struct skv_want_res *res)
{
	struct skv_key keys[MANY];
	struct skv_want_req q = { .tenant = "t", .instance = "i", .from = from, .to = to,
				  .may_move = *from != '\0', .keys = keys, .n_keys = n };

	assert_true(n > 0 && n <= MANY);
	env_keys(keys, n, 1, first);
	memset(&e->err, 0, sizeof e->err);
	return skv_core_want(e->core, &q, res, &e->arena, &e->err);
}

/* How many of n keys are asked for; the outcome of each is `others` or ASKED. */
static uint32_t want(struct env *e, const char *from, const char *to, uint32_t first, uint32_t n,
		     enum skv_want_outcome others)
{
	struct skv_want_res res;

	assert_int_equal(ask(e, from, to, first, n, &res), SKV_OK);
	for (uint32_t i = 0; i < n; i++)
		assert_true(res.outcome[i] == SKV_WANT_ASKED || res.outcome[i] == others);
	if (others != SKV_WANT_ASKED)
		assert_int_equal(res.count[SKV_WANT_ASKED] + res.count[others], n);
	return res.count[SKV_WANT_ASKED];
}

/* Moves or copies all that movers are given, to storage `to` (NULL: any). How many slots. */
static uint32_t work(struct env *e, const char *to)
{
	struct skv_move_take_res r;
	struct skv_move_finish_res f;
	bool moved[128];
	char id[33];
	uint32_t all = 0;

	memset(moved, true, sizeof moved);
	for (uint32_t idle = 0; idle < 20;) {
		assert_int_equal(env_move_take(e, 0, 5000, &r), SKV_OK);
		for (uint32_t i = 0; i < r.n; i++) {
			if (to)
				assert_string_equal(r.files.v[r.to[i].file].storage, to);
			assert_true(r.from[i].has_checksum && r.from[i].checksum - SUM < 2);
			assert_int_equal(r.from[i].checksum, r.to[i].checksum);
		}
		if (r.n == 0) {
			env_advance(e, 100); /* a storage may have to grow */
			idle++;
			continue;
		}
		memcpy(id, r.move, sizeof id);
		const uint32_t n = r.n;
		assert_int_equal(env_move_finish(e, id, moved, n, true, &f), SKV_OK);
		assert_int_equal(f.moved, n);
		all += n;
	}
	return all;
}

/* How many of the keys lie in the storage, or (`copies`) have their copies there. */
static uint32_t in(struct env *e, const char *storage, uint32_t first, uint32_t n, bool copies)
{
	struct skv_key keys[MANY];
	struct skv_lookup_req q = { .tenant = "t", .instance = "i", .mode = SKV_LOOKUP_BATCH,
				    .keys = keys, .n_keys = n, .want_copies = true, .peek = true };
	struct skv_lookup_res r;
	uint32_t found = 0;

	env_keys(keys, n, 1, first);
	assert_int_equal(env_lookup_req(e, &q, &r), SKV_OK);
	for (uint32_t i = 0; i < n; i++) {
		const struct skv_location *l = copies && r.copy ? &r.copy[2 * i] : &r.loc[2 * i];

		if ((copies && !r.copy) || !l[0].length || !l[1].length)
			continue;
		found += strcmp(r.files.v[l[0].file].storage, storage) == 0 &&
			 strcmp(r.files.v[l[1].file].storage, storage) == 0;
	}
	return found;
}

static void what_is_asked_for_gets_copies(void **state)
{
	struct skv_start_res s;
	struct skv_key key;
	struct env e;

	(void)state;
	setup(&e, 0);
	env_put_pairs(&e, "i", 0, 8, SUM);
	env_put_pairs(&e, "i", 10, 2, 0);
	env_keys(&key, 1, 1, 20);
	assert_int_equal(env_start(&e, &(struct env_start){ .keys = &key, .n = 1 }, &s), SKV_OK);
	assert_int_equal(want(&e, "", "", 0, 4, SKV_WANT_ASKED), 4);
	/* The wishes wait: once is enough. */
	assert_int_equal(want(&e, "", "", 0, 4, SKV_WANT_ASKED), 4);
	assert_int_equal(want(&e, "", "", 10, 2, SKV_WANT_UNSUMMED), 0);
	assert_int_equal(want(&e, "", "", 20, 1, SKV_WANT_BUSY), 0);
	assert_int_equal(want(&e, "", "", 99, 1, SKV_WANT_ABSENT), 0);
	assert_int_equal(want(&e, "t", "m", 0, 4, SKV_WANT_ELSEWHERE), 0);
	assert_int_equal(in(&e, "m", 0, 8, true), 0);
	assert_int_equal(work(&e, "m"), 8);
	assert_int_equal(in(&e, "m", 0, 8, true), 4);
	assert_int_equal(in(&e, "s", 0, 8, false), 8); /* and they lie where they lay */
	/* In the storage that was named: by themselves they would go to "m". */
	assert_int_equal(want(&e, "", "n", 0, 8, SKV_WANT_THERE), 4);
	assert_int_equal(work(&e, "n"), 8);
	assert_int_equal(in(&e, "n", 0, 8, true), 4);
	assert_int_equal(in(&e, "m", 0, 8, true), 4);
	assert_int_equal(want(&e, "s", "n", 0, 8, SKV_WANT_THERE), 0);
	env_check(&e);
	env_destroy(&e);
}

static void what_is_asked_for_moves(void **state)
{
	struct skv_want_res res;
	struct env e;

	(void)state;
	setup(&e, 0);
	env_put_pairs(&e, "i", 0, 40, SUM);
	env_put_pairs(&e, "i", 40, 2, 0);
	assert_int_equal(want(&e, "s", "t", 0, 20, SKV_WANT_ASKED), 20);
	assert_int_equal(want(&e, "s", "t", 40, 2, SKV_WANT_UNSUMMED), 0);
	assert_int_equal(work(&e, "t"), 40);
	assert_int_equal(in(&e, "t", 0, 42, false), 20);
	assert_int_equal(in(&e, "s", 0, 42, false), 22);
	assert_int_equal(want(&e, "s", "t", 0, 20, SKV_WANT_THERE), 0);
	assert_int_equal(want(&e, "t", "s", 20, 20, SKV_WANT_THERE), 0);
	/* Only who says so may move blocks. */
	assert_int_equal(ask(&e, "", "t", 0, 1, &res), SKV_E_INVALID);
	env_crash(&e);
	env_open(&e);
	assert_int_equal(in(&e, "t", 0, 42, false), 20);
	/* Moves and copies that are asked for together: each portion has one kind. */
	assert_int_equal(want(&e, "s", "t", 20, 4, SKV_WANT_ASKED), 4);
	assert_int_equal(work(&e, "t"), 8);
	/* No longer to a storage that left the group, or the tier, or is another one by then. */
	assert_int_equal(want(&e, "s", "t", 30, 4, SKV_WANT_ASKED), 4);
	assert_int_equal(want(&e, "s", "n", 34, 4, SKV_WANT_ASKED), 4);
	put_storage(&e, "u", true);
	assert_int_equal(put_group(&e, "g", "s", "u", "", 0), SKV_OK);
	assert_int_equal(put_group(&e, "fast", "m", "u", "g", 0), SKV_OK);
	assert_int_equal(work(&e, NULL), 0);
	assert_int_equal(in(&e, "s", 30, 8, false), 8);
	env_check(&e);
	env_destroy(&e);
}

static void moves_and_copies_take_turns(void **state)
{
	struct env e;

	(void)state;
	setup(&e, 0);
	env_put_pairs(&e, "i", 0, 40, SUM);
	for (uint32_t i = 0; i < 40; i += 4)
		assert_int_equal(want(&e, i % 8 ? "s" : "", i % 8 ? "t" : "m", i, 4,
				      SKV_WANT_ASKED), 4);
	assert_int_equal(work(&e, NULL), 80);
	for (uint32_t i = 0; i < 40; i += 4)
		assert_int_equal(in(&e, i % 8 ? "t" : "m", i, 4, i % 8 == 0), 4);
	env_check(&e);
	env_destroy(&e);
}

static void refused(struct env *e, int rc, int want_rc, const char *field)
{
	assert_int_equal(rc, want_rc);
	assert_string_equal(e->err.field, field);
	assert_true(*e->err.message);
}

static void what_cannot_be_asked_for(void **state)
{
	struct skv_want_req q = { .tenant = "t", .instance = "nobody", .from = "", .to = "" };
	struct skv_want_res res;
	struct env e;

	(void)state;
	setup(&e, 0);
	env_put_pairs(&e, "i", 0, 4, SUM);
	refused(&e, ask(&e, "x", "t", 0, 1, &res), SKV_E_INVALID, "from");
	refused(&e, ask(&e, "s", "x", 0, 1, &res), SKV_E_INVALID, "to");
	refused(&e, ask(&e, "s", "s", 0, 1, &res), SKV_E_INVALID, "to");
	refused(&e, ask(&e, "", "s", 0, 1, &res), SKV_E_INVALID, "to"); /* no move, and no tier */
	put_storage(&e, "t", false);
	refused(&e, ask(&e, "s", "t", 0, 1, &res), SKV_E_UNAVAILABLE, "to");
	put_storage(&e, "t", true);
	q.n_keys = SKV_MAX_KEYS + 1;
	memset(&e.err, 0, sizeof e.err);
	refused(&e, skv_core_want(e.core, &q, &res, &e.arena, &e.err), SKV_E_TOO_LARGE, "keys");
	q.n_keys = 0;
	memset(&e.err, 0, sizeof e.err);
	refused(&e, skv_core_want(e.core, &q, &res, &e.arena, &e.err), SKV_E_NOT_FOUND, "instance");
	assert_int_equal(skv_cluster_group_delete(e.cluster, "fast", &e.err), SKV_OK);
	refused(&e, ask(&e, "", "", 0, 1, &res), SKV_E_UNSUPPORTED, "to");
	refused(&e, ask(&e, "s", "m", 0, 1, &res), SKV_E_UNSUPPORTED, "to");
	assert_int_equal(want(&e, "s", "t", 0, 4, SKV_WANT_ASKED), 4); /* moves need no tier */
	assert_int_equal(work(&e, "t"), 8);
	env_destroy(&e);
}

/* As many as there is room for are taken up, and these are not forgotten for guesses. */
static void asked_ones_are_bounded(void **state)
{
	const uint32_t more = 2 * MANY, all = WISHES + more;
	uint32_t asked = 0;
	struct env e;

	(void)state;
	setup(&e, 1);
	for (uint32_t i = 0; i < all; i += MANY)
		env_put_pairs(&e, "i", i, MANY, SUM);
	for (uint32_t i = 0; i < all; i += MANY)
		asked += want(&e, "s", "t", i, MANY, SKV_WANT_FULL);
	assert_int_equal(asked, WISHES);
	for (uint32_t i = 0; i < all; i += MANY) { /* each is wanted in the fast tier, too */
		struct skv_key keys[MANY];
		struct skv_lookup_res r;

		env_keys(keys, MANY, 1, i);
		assert_int_equal(env_lookup_req(&e, &(struct skv_lookup_req){ .tenant = "t",
				.instance = "i", .mode = SKV_LOOKUP_BATCH, .keys = keys,
				.n_keys = MANY, .want_copies = true }, &r), SKV_OK);
	}
	assert_int_equal(put_group(&e, "fast", "m", "n", "g", 0), SKV_OK);
	env_advance(&e, 60000); /* the blocks' leases end */
	assert_true(work(&e, NULL) >= 2 * WISHES);
	for (uint32_t i = 0; i < WISHES; i += MANY)
		assert_int_equal(in(&e, "t", i, MANY, false), MANY);
	assert_int_equal(want(&e, "s", "t", WISHES, MANY, SKV_WANT_ASKED), MANY);
	env_destroy(&e);
}

/* A copy of an earlier content is removed, and the block is copied then. */
static void old_copies_are_replaced(void **state)
{
	uint32_t deleted;
	struct skv_key key;
	struct env e;

	(void)state;
	setup(&e, 0);
	env_put_pairs(&e, "i", 0, 2, SUM);
	env_put_pairs(&e, "i@fast", 0, 1, SUM + 50);
	assert_int_equal(want(&e, "", "m", 0, 2, SKV_WANT_ASKED), 2);
	assert_int_equal(work(&e, "m"), 4);
	assert_int_equal(in(&e, "m", 0, 2, true), 2);

	/* A block that goes before a mover comes is not copied, and nothing remains. */
	env_put_pairs(&e, "i", 10, 1, SUM);
	assert_int_equal(want(&e, "", "m", 10, 1, SKV_WANT_ASKED), 1);
	env_keys(&key, 1, 1, 10);
	assert_int_equal(env_delete(&e, &key, 1, &deleted), SKV_OK);
	assert_int_equal(work(&e, "m"), 0);
	env_put_pairs(&e, "i", 10, 1, SUM);
	assert_int_equal(work(&e, "m"), 0);
	env_check(&e);
	env_destroy(&e);
}

/* Wishes do not wait for ever for an obstacle that stays. */
static void waits_end(void **state)
{
	struct skv_core_counters c;
	struct skv_start_res s;
	struct skv_key key;
	struct env e;

	(void)state;
	setup(&e, 0);
	env_put_pairs(&e, "i", 0, 1, SUM);
	assert_int_equal(want(&e, "", "m", 0, 1, SKV_WANT_ASKED), 1);
	env_keys(&key, 1, 1, 0);
	assert_int_equal(env_start(&e, &(struct env_start){ .instance = "i@fast", .keys = &key,
							    .n = 1, .deadline_ms = 600000 }, &s),
			 SKV_OK);
	assert_int_equal(work(&e, "m"), 0);
	skv_cluster_counters_get(e.cluster, &c);
	assert_int_equal(c.copy_wishes - c.copy_wishes_ended, 1);
	env_advance(&e, 61000);
	assert_int_equal(work(&e, "m"), 0);
	skv_cluster_counters_get(e.cluster, &c);
	assert_int_equal(c.copy_wishes, c.copy_wishes_ended);
	env_destroy(&e);
}

static void samples(void **state)
{
	struct skv_want_req q = { .tenant = "t", .instance = "i", .from = "s", .to = "t",
				  .may_move = true, .sample = 10 };
	struct skv_want_res res;
	struct env e;

	(void)state;
	setup(&e, 0);
	env_put_pairs(&e, "i", 0, 30, SUM);
	env_put_pairs(&e, "i@fast", 0, 30, SUM); /* not of this instance */
	for (uint32_t left = 30; left > 0; left -= 10) {
		assert_int_equal(skv_core_want(e.core, &q, &res, &e.arena, &e.err), SKV_OK);
		assert_int_equal(res.count[SKV_WANT_ASKED], 10);
		assert_int_equal(work(&e, "t"), 20);
		assert_int_equal(in(&e, "t", 0, 30, false), 40 - left);
	}
	assert_int_equal(skv_core_want(e.core, &q, &res, &e.arena, &e.err), SKV_OK);
	assert_int_equal(res.count[SKV_WANT_ASKED], 0);
	env_put_pairs(&e, "i", 40, 3, 0);
	assert_int_equal(skv_core_want(e.core, &q, &res, &e.arena, &e.err), SKV_OK);
	assert_int_equal(res.count[SKV_WANT_ASKED], 0);
	assert_int_equal(res.count[SKV_WANT_UNSUMMED], 3);
	env_check(&e);
	env_destroy(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_asked_for_gets_copies),
		cmocka_unit_test(what_is_asked_for_moves),
		cmocka_unit_test(moves_and_copies_take_turns),
		cmocka_unit_test(what_cannot_be_asked_for),
		cmocka_unit_test(asked_ones_are_bounded),
		cmocka_unit_test(old_copies_are_replaced),
		cmocka_unit_test(waits_end),
		cmocka_unit_test(samples),
	};

	env_quiet();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
