/*
 * test_core_trim.c - trims: blocks deleted by the time when they were made, in portions; and
 * the states of many keys.
 */
#include "core_env.h"

#include <stdio.h>
#include <string.h>

#define KB 1024ull
#define MANY 3000u /* blocks: three portions */
#define BATCH 500u

static int setup(void **state)
{
	static struct env e;

	env_init(&e);
	env_open(&e);
	env_make(&e, 65536 * KB, 64 * KB, 4 * KB);
	*state = &e;
	return 0;
}

static int teardown(void **state)
{
	struct env *e = *state;

	env_check(e);
	env_destroy(e);
	return 0;
}

static uint64_t wall(const struct env *e) { return skv_wall_ms(e->o.clock); }

static void reopen(struct env *e)
{
	env_crash(e);
	env_open(e);
	env_check(e);
}

static uint64_t blocks(struct env *e)
{
	struct skv_stats st;

	env_stats(e, &st);
	return st.blocks;
}

/* MANY blocks in chains of BATCH, each a second after the one before. Returns
 * when the first was made. */
static uint64_t put_many(struct env *e, struct skv_key *keys)
{
	uint64_t first = wall(e);

	for (uint32_t at = 0; at < MANY; at += BATCH) {
		if (at)
			env_advance(e, first + at / BATCH * 1000 - wall(e));
		env_keys(keys + at, BATCH, 1 + at / BATCH, 1);
		assert_int_equal(env_put(e, keys + at, BATCH), BATCH);
	}
	return first;
}

static uint32_t found(struct env *e, const struct skv_key *keys, uint32_t n)
{
	struct skv_lookup_req q = { .tenant = "t", .instance = "i", .mode = SKV_LOOKUP_BATCH,
				    .keys = keys, .n_keys = n };
	uint32_t matched = 0;

	skv_arena_reset(&e->arena);
	assert_int_equal(skv_core_lookup_length(e->core, &q, &matched, &e->arena, &e->err), SKV_OK);
	return matched;
}

static void by_time(void **state)
{
	struct env *e = *state;
	static struct skv_key k[MANY];
	uint64_t first = put_many(e, k), n;

	env_shutdown(e); /* times survive a checkpoint, */
	env_open(e);
	reopen(e); /* and a kill */
	assert_int_equal(env_trim(e, first + 1, first + 999, &n), SKV_OK);
	assert_int_equal(n, 0); /* between two chains */
	assert_int_equal(env_trim(e, 0, first - 1, &n), SKV_OK);
	assert_int_equal(n, 0);
	assert_int_equal(env_trim(e, first + 1000, first + 2000, &n), SKV_OK); /* both ends count */
	assert_int_equal(n, 2 * BATCH);
	for (uint32_t c = 0; c < MANY / BATCH; c++)
		assert_int_equal(found(e, k + c * BATCH, BATCH), c == 1 || c == 2 ? 0 : BATCH);
	assert_int_equal(env_trim(e, first + 1000, first + 2000, &n), SKV_OK); /* again */
	assert_int_equal(n, 0);
	reopen(e);
	assert_int_equal(blocks(e), MANY - 2 * BATCH);
	assert_int_equal(env_trim(e, 0, UINT64_MAX, &n), SKV_OK);
	assert_int_equal(n, MANY - 2 * BATCH);
	assert_int_equal(blocks(e), 0);
	reopen(e);
	assert_int_equal(blocks(e), 0);
}

static void bad_trims_are_refused(void **state)
{
	struct env *e = *state;
	struct skv_trim_req q = { .tenant = "t", .instance = "nobody", .to_ms = 1 };
	struct skv_trim_res r;
	struct skv_done done = { NULL, NULL };
	uint64_t n;

	assert_int_equal(env_trim(e, 2, 1, &n), SKV_E_INVALID);
	assert_string_equal(e->err.field, "from_ms");
	assert_int_equal(skv_core_trim(e->core, &q, &r, &e->arena, &e->err, &done),
			 SKV_E_NOT_FOUND);
	assert_string_equal(e->err.field, "instance");
	assert_int_equal(env_trim(e, 0, UINT64_MAX, &n), SKV_OK); /* of nothing */
	assert_int_equal(n, 0);
}

static void only_of_its_instance(void **state)
{
	struct env *e = *state;
	struct skv_spec spec = { "kv", 4 * KB };
	struct skv_key k[4];
	struct skv_start_res s;
	struct skv_finish_res f;
	char session[33];
	uint64_t n;

	assert_int_equal(env_instance(e, "other", "g", &spec, 1), SKV_OK);
	env_keys(k, 4, 1, 1);
	env_put(e, k, 4);
	assert_int_equal(env_start(e, &(struct env_start){ .instance = "other", .keys = k, .n = 4 },
				   &s), SKV_OK);
	memcpy(session, s.session, 33);
	assert_int_equal(env_finish(e, session, NULL, 0, &f), SKV_OK);
	assert_int_equal(env_trim(e, 0, UINT64_MAX, &n), SKV_OK);
	assert_int_equal(n, 4);
	assert_int_equal(blocks(e), 4);
}

/* A block that is being written when the trim comes is not published by its session. */
static void what_is_written_goes_too(void **state)
{
	struct env *e = *state;
	struct skv_key k[4];
	struct skv_start_res s;
	struct skv_finish_res f;
	char session[33];
	uint64_t n;

	env_keys(k, 4, 1, 1);
	env_put(e, k, 2);
	assert_int_equal(env_start(e, &(struct env_start){ .keys = k + 2, .n = 2, .parent = &k[1] },
				   &s), SKV_OK);
	memcpy(session, s.session, 33);
	assert_int_equal(env_trim(e, 0, UINT64_MAX, &n), SKV_OK);
	assert_int_equal(n, 2);
	assert_int_equal(env_finish(e, session, NULL, 0, &f), SKV_OK);
	assert_int_equal(f.committed, 0);
	assert_int_equal(f.n_deleted, 2);
	assert_int_equal(found(e, k, 4), 0);
	assert_int_equal(env_put(e, k, 4), 4); /* a new session does */
	assert_int_equal(found(e, k, 4), 4);
}

/* Gone for everybody at once, but nobody else gets the slots before the lease ends. */
static void leased_slots_are_held(void **state)
{
	struct env *e = *state;
	struct skv_key k[4];
	struct skv_lookup_res r;
	struct skv_stats st;
	uint64_t n;

	env_keys(k, 4, 1, 1);
	env_put(e, k, 4);
	assert_int_equal(env_lookup(e, k, 4, SKV_LOOKUP_PREFIX, 5000, &r), SKV_OK);
	assert_int_equal(env_trim(e, 0, UINT64_MAX, &n), SKV_OK);
	assert_int_equal(n, 4);
	assert_int_equal(found(e, k, 4), 0);
	env_stats(e, &st);
	assert_int_equal(st.storages[0].quarantined_bytes, 4 * 4 * KB);
	env_advance(e, 6000);
	env_stats(e, &st);
	assert_int_equal(st.storages[0].quarantined_bytes, 0);
}

/* ---- portions -------------------------------------------------------------------------------- */

struct trim {
	struct skv_trim_req req;
	struct skv_trim_res res;
	struct skv_arena arena;
	struct skv_error err;
	struct skv_done done;
	unsigned answers;
	int status;
};

static void on_done(void *ctx, int status)
{
	struct trim *t = ctx;

	t->answers++;
	t->status = status;
}

static void begin_trim(struct env *e, struct trim *t)
{
	*t = (struct trim){ .req = { .tenant = "t", .instance = "i", .to_ms = UINT64_MAX } };
	t->done = (struct skv_done){ on_done, t };
	skv_arena_init(&t->arena);
	assert_int_equal(skv_core_trim(e->core, &t->req, &t->res, &t->arena, &t->err, &t->done),
			 SKV_PENDING);
}

static void in_portions(void **state)
{
	struct env *e = *state;
	static struct skv_key k[MANY];
	struct skv_key fresh = { 99, 1 };
	struct trim t;
	uint64_t before;
	unsigned ticks = 0;

	put_many(e, k);
	begin_trim(e, &t);
	skv_cluster_tick(e->cluster);
	before = blocks(e);
	assert_true(before > 0 && before < MANY); /* others come in between */
	assert_int_equal(t.answers, 0);
	env_put(e, &fresh, 1);
	while (t.answers == 0 && ticks++ < 100)
		skv_cluster_tick(e->cluster);
	assert_int_equal(t.answers, 1);
	assert_int_equal(t.status, SKV_OK);
	assert_int_equal(t.res.deleted, MANY);
	assert_int_equal(blocks(e), 1); /* younger than the call */
	skv_arena_destroy(&t.arena);
}

static void an_end_in_between_is_told(void **state)
{
	struct env *e = *state;
	static struct skv_key k[MANY];
	struct trim t;
	uint64_t n;

	/* The manager stops. */
	put_many(e, k);
	begin_trim(e, &t);
	skv_cluster_tick(e->cluster);
	env_shutdown(e);
	assert_int_equal(t.answers, 1);
	assert_int_equal(t.status, SKV_E_NOT_READY);
	skv_arena_destroy(&t.arena);
	env_open(e);
	env_check(e);
	assert_true(blocks(e) > 0 && blocks(e) < MANY);
	assert_int_equal(env_trim(e, 0, UINT64_MAX, &n), SKV_OK);
	/* The manager dies. */
	put_many(e, k);
	begin_trim(e, &t);
	skv_cluster_tick(e->cluster);
	env_crash(e);
	assert_int_equal(t.answers, 1);
	assert_int_not_equal(t.status, SKV_OK);
	skv_arena_destroy(&t.arena);
	env_open(e);
	env_check(e);
	/* The instance goes. */
	begin_trim(e, &t);
	assert_int_equal(skv_cluster_instance_delete(e->cluster, "t", "i", NULL, &e->err), SKV_OK);
	for (int i = 0; i < 10 && t.answers == 0; i++)
		skv_cluster_tick(e->cluster);
	assert_int_equal(t.answers, 1);
	assert_true(t.status == SKV_E_NOT_FOUND || t.status == SKV_OK);
	skv_arena_destroy(&t.arena);
	assert_int_equal(blocks(e), 0);
}

/* Each append of a trim fails once, or has an unknown outcome; asked again it does the rest. */
static void every_append_fails_once(void **state)
{
	static const enum skv_fault_kind kinds[] = { SKV_FAULT_ERROR, SKV_FAULT_UNKNOWN_BEFORE,
						     SKV_FAULT_UNKNOWN_AFTER };
	static struct skv_key k[MANY];

	(void)state;
	for (uint32_t kind = 0; kind < 3; kind++) {
		for (uint64_t at = 1, seen = 1; seen >= at; at++) {
			struct skv_fault rule = { .kind = kinds[kind], .call = "append", .at = at,
						  .times = 1,
						  .status = at % 2 ? SKV_E_STORE_IO
							  : SKV_E_STORE_FULL };
			struct env e;
			uint64_t n;
			int rc, tries = 0;

			env_init(&e);
			e.faulty = true;
			e.store_options.durability =
				at % 2 ? SKV_DURABILITY_FULL : SKV_DURABILITY_NORMAL;
			env_open(&e);
			env_make(&e, 65536 * KB, 64 * KB, 4 * KB);
			put_many(&e, k);
			skv_fault_store_set(e.store, &rule);
			while ((rc = env_trim(&e, 0, UINT64_MAX, &n)) != SKV_OK && tries++ < 5) {
				env_check(&e);
				env_advance(&e, 2000);
			}
			seen = skv_fault_store_seen(e.store);
			assert_int_equal(rc, SKV_OK);
			assert_int_equal(blocks(&e), 0);
			reopen(&e);
			assert_int_equal(blocks(&e), 0);
			env_destroy(&e);
			if (at > 1)
				assert_true(at < 50);
		}
	}
}

/* ---- states ---------------------------------------------------------------------------------- */

static void states_of_many(void **state)
{
	struct env *e = *state;
	static const struct skv_spec specs[2] = { { "a", 4 * KB }, { "b", 8 * KB } };
	const uint32_t both[2] = { 3, 1 }, b[1] = { 2 };
	struct skv_key k[4];
	struct skv_states_req q = { .tenant = "t", .instance = "two", .keys = k, .n_keys = 4 };
	struct skv_delete_req del = { .tenant = "t", .instance = "two", .keys = k, .n_keys = 1 };
	struct skv_delete_res deleted;
	struct trim answer = { .answers = 0 };
	struct skv_done done = { on_done, &answer };
	struct skv_states_res r;
	struct skv_start_res s;
	struct skv_finish_res f;
	struct skv_error err = { 0 };
	char session[33];
	uint64_t made = wall(e);

	assert_int_equal(env_instance(e, "two", "g", specs, 2), SKV_OK);
	env_keys(k, 4, 1, 1);
	assert_int_equal(env_start(e, &(struct env_start){ .instance = "two", .keys = k, .n = 2,
							   .key_specs = both }, &s), SKV_OK);
	memcpy(session, s.session, 33);
	assert_int_equal(env_finish(e, session, NULL, 0, &f), SKV_OK);
	env_advance(e, 500);
	assert_int_equal(env_start(e, &(struct env_start){ .instance = "two", .keys = &k[1], .n = 1,
							   .key_specs = b }, &s), SKV_OK);
	assert_int_equal(env_start(e, &(struct env_start){ .instance = "two", .keys = &k[3], .n = 1,
							   .key_specs = b }, &s), SKV_OK);
	skv_arena_init(&answer.arena);
	assert_int_equal(skv_core_delete(e->core, &del, &deleted, &answer.arena, &err, &done),
			 SKV_PENDING);
	assert_int_equal(skv_core_states(e->core, &q, &r, &answer.arena, &err), SKV_OK);
	assert_int_equal(r.n_specs, 2);
	assert_string_equal(r.specs[1], "b");
	{
		static const uint8_t want[8] = { SKV_SLOT_REMOVING,  SKV_SLOT_REMOVING,
						 SKV_SLOT_COMMITTED, SKV_SLOT_WRITING,
						 SKV_SLOT_ABSENT,    SKV_SLOT_ABSENT,
						 SKV_SLOT_ABSENT,    SKV_SLOT_WRITING };

		for (uint32_t i = 0; i < 8; i++) {
			assert_int_equal(r.state[i], want[i]);
			assert_int_equal(r.loc[i].length, want[i] == SKV_SLOT_ABSENT ? 0
							  : i % 2                    ? 8 * KB
										     : 4 * KB);
		}
	}
	assert_int_equal(r.files.n, 1);
	assert_int_equal(r.created_ms[0], made);
	assert_int_equal(r.created_ms[1], made); /* the block's oldest spec */
	assert_int_equal(r.created_ms[2], 0);
	assert_true(r.created_ms[3] >= made + 500);
	skv_cluster_tick(e->cluster);
	assert_int_equal(answer.answers, 1);
	q.instance = "nobody";
	assert_int_equal(skv_core_states(e->core, &q, &r, &answer.arena, &err), SKV_E_NOT_FOUND);
	skv_arena_destroy(&answer.arena);
}

int main(void)
{
#define SCENE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		SCENE(by_time),
		SCENE(bad_trims_are_refused),
		SCENE(only_of_its_instance),
		SCENE(what_is_written_goes_too),
		SCENE(leased_slots_are_held),
		SCENE(in_portions),
		SCENE(an_end_in_between_is_told),
		cmocka_unit_test(every_append_fails_once),
		SCENE(states_of_many),
	};

	env_quiet();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
