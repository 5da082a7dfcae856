/*
 * test_core_trim.c - trims: blocks deleted by the time when they were made, in portions; and the states of many keys.
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

static uint64_t wall(const struct env *e) { return kvb_wall_ms(e->o.clock); }

static void reopen(struct env *e)
{
	env_crash(e);
	env_open(e);
	env_check(e);
}

static uint64_t blocks(struct env *e)
{
	struct kvb_stats st;

	env_stats(e, &st);
	return st.blocks;
}

/* MANY blocks in chains of BATCH, each a second after the one before. Returns when the first was made. */
static uint64_t put_many(struct env *e, struct kvb_key *keys)
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

static uint32_t found(struct env *e, const struct kvb_key *keys, uint32_t n)
{
	struct kvb_lookup_req q = { .tenant = "t", .instance = "i", .mode = KVB_LOOKUP_BATCH, .keys = keys, .n_keys = n };
	uint32_t matched = 0;

	kvb_arena_reset(&e->arena);
	assert_int_equal(kvb_core_lookup_length(e->core, &q, &matched, &e->arena, &e->err), KVB_OK);
	return matched;
}

static void by_time(void **state)
{
	struct env *e = *state;
	static struct kvb_key k[MANY];
	uint64_t first = put_many(e, k), n;

	env_shutdown(e); /* times survive a checkpoint, */
	env_open(e);
	reopen(e); /* and a kill */
	assert_int_equal(env_trim(e, first + 1, first + 999, &n), KVB_OK);
	assert_int_equal(n, 0); /* between two chains */
	assert_int_equal(env_trim(e, 0, first - 1, &n), KVB_OK);
	assert_int_equal(n, 0);
	assert_int_equal(env_trim(e, first + 1000, first + 2000, &n), KVB_OK); /* both ends count */
	assert_int_equal(n, 2 * BATCH);
	for (uint32_t c = 0; c < MANY / BATCH; c++)
		assert_int_equal(found(e, k + c * BATCH, BATCH), c == 1 || c == 2 ? 0 : BATCH);
	assert_int_equal(env_trim(e, first + 1000, first + 2000, &n), KVB_OK); /* again */
	assert_int_equal(n, 0);
	reopen(e);
	assert_int_equal(blocks(e), MANY - 2 * BATCH);
	assert_int_equal(env_trim(e, 0, UINT64_MAX, &n), KVB_OK);
	assert_int_equal(n, MANY - 2 * BATCH);
	assert_int_equal(blocks(e), 0);
	reopen(e);
	assert_int_equal(blocks(e), 0);
}

static void bad_trims_are_refused(void **state)
{
	struct env *e = *state;
	struct kvb_trim_req q = { .tenant = "t", .instance = "nobody", .to_ms = 1 };
	struct kvb_trim_res r;
	struct kvb_done done = { NULL, NULL };
	uint64_t n;

	assert_int_equal(env_trim(e, 2, 1, &n), KVB_E_INVALID);
	assert_string_equal(e->err.field, "from_ms");
	assert_int_equal(kvb_core_trim(e->core, &q, &r, &e->arena, &e->err, &done), KVB_E_NOT_FOUND);
	assert_string_equal(e->err.field, "instance");
	assert_int_equal(env_trim(e, 0, UINT64_MAX, &n), KVB_OK); /* of nothing */
	assert_int_equal(n, 0);
}

static void only_of_its_instance(void **state)
{
	struct env *e = *state;
	struct kvb_spec spec = { "kv", 4 * KB };
	struct kvb_key k[4];
	struct kvb_start_res s;
	struct kvb_finish_res f;
	char session[33];
	uint64_t n;

	assert_int_equal(env_instance(e, "other", "g", &spec, 1), KVB_OK);
	env_keys(k, 4, 1, 1);
	env_put(e, k, 4);
	assert_int_equal(env_start(e, &(struct env_start){ .instance = "other", .keys = k, .n = 4 }, &s), KVB_OK);
	memcpy(session, s.session, 33);
	assert_int_equal(env_finish(e, session, NULL, 0, &f), KVB_OK);
	assert_int_equal(env_trim(e, 0, UINT64_MAX, &n), KVB_OK);
	assert_int_equal(n, 4);
	assert_int_equal(blocks(e), 4);
}

static void what_is_written_stays(void **state)
{
	struct env *e = *state;
	struct kvb_key k[4];
	struct kvb_start_res s;
	struct kvb_finish_res f;
	char session[33];
	uint64_t n;

	env_keys(k, 4, 1, 1);
	env_put(e, k, 2);
	assert_int_equal(env_start(e, &(struct env_start){ .keys = k + 2, .n = 2, .parent = &k[1] }, &s), KVB_OK);
	memcpy(session, s.session, 33);
	assert_int_equal(env_trim(e, 0, UINT64_MAX, &n), KVB_OK);
	assert_int_equal(n, 2);
	assert_int_equal(env_finish(e, session, NULL, 0, &f), KVB_OK);
	assert_int_equal(f.committed, 2);
	assert_int_equal(found(e, k, 4), 2);
}

/* Gone for everybody at once, but nobody else gets the slots before the lease ends. */
static void leased_slots_are_held(void **state)
{
	struct env *e = *state;
	struct kvb_key k[4];
	struct kvb_lookup_res r;
	struct kvb_stats st;
	uint64_t n;

	env_keys(k, 4, 1, 1);
	env_put(e, k, 4);
	assert_int_equal(env_lookup(e, k, 4, KVB_LOOKUP_PREFIX, 5000, &r), KVB_OK);
	assert_int_equal(env_trim(e, 0, UINT64_MAX, &n), KVB_OK);
	assert_int_equal(n, 4);
	assert_int_equal(found(e, k, 4), 0);
	env_stats(e, &st);
	assert_int_equal(st.storages[0].quarantined_bytes, 4 * 4 * KB);
	env_advance(e, 6000);
	env_stats(e, &st);
	assert_int_equal(st.storages[0].quarantined_bytes, 0);
}

/* ---- portions --------------------------------------------------------------------------------------- */

struct trim {
	struct kvb_trim_req req;
	struct kvb_trim_res res;
	struct kvb_arena arena;
	struct kvb_error err;
	struct kvb_done done;
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
	t->done = (struct kvb_done){ on_done, t };
	kvb_arena_init(&t->arena);
	assert_int_equal(kvb_core_trim(e->core, &t->req, &t->res, &t->arena, &t->err, &t->done), KVB_PENDING);
}

static void in_portions(void **state)
{
	struct env *e = *state;
	static struct kvb_key k[MANY];
	struct kvb_key fresh = { 99, 1 };
	struct trim t;
	uint64_t before;
	unsigned ticks = 0;

	put_many(e, k);
	begin_trim(e, &t);
	kvb_core_tick(e->core);
	before = blocks(e);
	assert_true(before > 0 && before < MANY); /* others come in between */
	assert_int_equal(t.answers, 0);
	env_put(e, &fresh, 1);
	while (t.answers == 0 && ticks++ < 100)
		kvb_core_tick(e->core);
	assert_int_equal(t.answers, 1);
	assert_int_equal(t.status, KVB_OK);
	assert_int_equal(t.res.deleted, MANY);
	assert_int_equal(blocks(e), 1); /* younger than the call */
	kvb_arena_destroy(&t.arena);
}

static void an_end_in_between_is_told(void **state)
{
	struct env *e = *state;
	static struct kvb_key k[MANY];
	struct trim t;
	uint64_t n;

	/* The manager stops. */
	put_many(e, k);
	begin_trim(e, &t);
	kvb_core_tick(e->core);
	env_shutdown(e);
	assert_int_equal(t.answers, 1);
	assert_int_equal(t.status, KVB_E_NOT_READY);
	kvb_arena_destroy(&t.arena);
	env_open(e);
	env_check(e);
	assert_true(blocks(e) > 0 && blocks(e) < MANY);
	assert_int_equal(env_trim(e, 0, UINT64_MAX, &n), KVB_OK);
	/* It dies. */
	put_many(e, k);
	begin_trim(e, &t);
	kvb_core_tick(e->core);
	env_crash(e);
	assert_int_equal(t.answers, 1);
	assert_int_not_equal(t.status, KVB_OK);
	kvb_arena_destroy(&t.arena);
	env_open(e);
	env_check(e);
	/* The instance goes. */
	begin_trim(e, &t);
	assert_int_equal(kvb_core_instance_delete(e->core, "t", "i", &e->err), KVB_OK);
	for (int i = 0; i < 10 && t.answers == 0; i++)
		kvb_core_tick(e->core);
	assert_int_equal(t.answers, 1);
	assert_true(t.status == KVB_E_NOT_FOUND || t.status == KVB_OK);
	kvb_arena_destroy(&t.arena);
	assert_int_equal(blocks(e), 0);
}

/* Each append of a trim fails once, or has an unknown outcome; asked again it does the rest. */
static void every_append_fails_once(void **state)
{
	static const enum kvb_fault_kind kinds[] = { KVB_FAULT_ERROR, KVB_FAULT_UNKNOWN_BEFORE, KVB_FAULT_UNKNOWN_AFTER };
	static struct kvb_key k[MANY];

	(void)state;
	for (uint32_t kind = 0; kind < 3; kind++) {
		for (uint64_t at = 1, seen = 1; seen >= at; at++) {
			struct kvb_fault rule = { .kind = kinds[kind], .call = "append", .at = at, .times = 1,
						  .status = at % 2 ? KVB_E_STORE_IO : KVB_E_STORE_FULL };
			struct env e;
			uint64_t n;
			int rc, tries = 0;

			env_init(&e);
			e.faulty = true;
			e.store_options.durability = at % 2 ? KVB_DURABILITY_FULL : KVB_DURABILITY_NORMAL;
			env_open(&e);
			env_make(&e, 65536 * KB, 64 * KB, 4 * KB);
			put_many(&e, k);
			kvb_fault_store_set(e.store, &rule);
			while ((rc = env_trim(&e, 0, UINT64_MAX, &n)) != KVB_OK && tries++ < 5) {
				env_check(&e);
				env_advance(&e, 2000);
			}
			seen = kvb_fault_store_seen(e.store);
			assert_int_equal(rc, KVB_OK);
			assert_int_equal(blocks(&e), 0);
			reopen(&e);
			assert_int_equal(blocks(&e), 0);
			env_destroy(&e);
			if (at > 1)
				assert_true(at < 50);
		}
	}
}

/* ---- states ------------------------------------------------------------------------------------------- */

static void states_of_many(void **state)
{
	struct env *e = *state;
	static const struct kvb_spec specs[2] = { { "a", 4 * KB }, { "b", 8 * KB } };
	const uint32_t both[2] = { 3, 1 }, b[1] = { 2 };
	struct kvb_key k[4];
	struct kvb_states_req q = { .tenant = "t", .instance = "two", .keys = k, .n_keys = 4 };
	struct kvb_delete_req del = { .tenant = "t", .instance = "two", .keys = k, .n_keys = 1 };
	struct kvb_delete_res deleted;
	struct trim answer = { .answers = 0 };
	struct kvb_done done = { on_done, &answer };
	struct kvb_states_res r;
	struct kvb_start_res s;
	struct kvb_finish_res f;
	struct kvb_error err = { 0 };
	char session[33];
	uint64_t made = wall(e);

	assert_int_equal(env_instance(e, "two", "g", specs, 2), KVB_OK);
	env_keys(k, 4, 1, 1);
	assert_int_equal(env_start(e, &(struct env_start){ .instance = "two", .keys = k, .n = 2, .key_specs = both }, &s), KVB_OK);
	memcpy(session, s.session, 33);
	assert_int_equal(env_finish(e, session, NULL, 0, &f), KVB_OK);
	env_advance(e, 500);
	assert_int_equal(env_start(e, &(struct env_start){ .instance = "two", .keys = &k[1], .n = 1, .key_specs = b }, &s), KVB_OK);
	assert_int_equal(env_start(e, &(struct env_start){ .instance = "two", .keys = &k[3], .n = 1, .key_specs = b }, &s), KVB_OK);
	kvb_arena_init(&answer.arena);
	assert_int_equal(kvb_core_delete(e->core, &del, &deleted, &answer.arena, &err, &done), KVB_PENDING);
	assert_int_equal(kvb_core_states(e->core, &q, &r, &answer.arena, &err), KVB_OK);
	assert_int_equal(r.n_specs, 2);
	assert_string_equal(r.specs[1], "b");
	{
		static const uint8_t want[8] = { KVB_SLOT_REMOVING, KVB_SLOT_REMOVING, KVB_SLOT_COMMITTED, KVB_SLOT_WRITING,
						 KVB_SLOT_ABSENT,   KVB_SLOT_ABSENT,   KVB_SLOT_ABSENT,    KVB_SLOT_WRITING };

		for (uint32_t i = 0; i < 8; i++) {
			assert_int_equal(r.state[i], want[i]);
			assert_int_equal(r.loc[i].length, want[i] == KVB_SLOT_ABSENT ? 0 : i % 2 ? 8 * KB : 4 * KB);
		}
	}
	assert_int_equal(r.files.n, 1);
	assert_int_equal(r.created_ms[0], made);
	assert_int_equal(r.created_ms[1], made); /* its oldest spec */
	assert_int_equal(r.created_ms[2], 0);
	assert_true(r.created_ms[3] >= made + 500);
	kvb_core_tick(e->core);
	assert_int_equal(answer.answers, 1);
	q.instance = "nobody";
	assert_int_equal(kvb_core_states(e->core, &q, &r, &answer.arena, &err), KVB_E_NOT_FOUND);
	kvb_arena_destroy(&answer.arena);
}

int main(void)
{
#define SCENE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		SCENE(by_time),
		SCENE(bad_trims_are_refused),
		SCENE(only_of_its_instance),
		SCENE(what_is_written_stays),
		SCENE(leased_slots_are_held),
		SCENE(in_portions),
		SCENE(an_end_in_between_is_told),
		cmocka_unit_test(every_append_fails_once),
		SCENE(states_of_many),
	};

	env_quiet();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
