/*
 * test_core_specs.c - blocks of several specs: each (key, spec) has one writer, and every key
 * of a start may ask for specs of its own; sessions and their instances. Most scenes go on
 * after a kill in between.
 */
#include "core_env.h"

#include <stdio.h>
#include <string.h>

#define KB 1024ull

enum { A = 1, B = 2, C = 4 };

static int setup(void **state)
{
	static struct env e;
	static const struct skv_spec specs[3] = { { "a", 4 * KB },
						  { "b", 8 * KB },
						  { "c", 12 * KB } };

	env_init(&e);
	env_open(&e);
	assert_int_equal(env_storage(&e, "s", 4096 * KB, 64 * KB), SKV_OK);
	assert_int_equal(env_group(&e, "g", 0, "s"), SKV_OK);
	assert_int_equal(env_instance(&e, "i", "g", specs, 3), SKV_OK);
	assert_int_equal(env_instance(&e, "other", "g", specs, 3), SKV_OK);
	*state = &e;
	return 0;
}

/* Everything adds up, and nothing stays behind once all sessions and holds are over. */
static int teardown(void **state)
{
	struct env *e = *state;
	struct skv_stats st;

	env_check(e);
	env_advance(e, 60000);
	env_advance(e, 60000);
	env_check(e);
	env_stats(e, &st);
	assert_int_equal(st.sessions, 0);
	assert_int_equal(st.storages[0].quarantined_bytes, 0);
	env_destroy(e);
	return 0;
}

static void reopen(struct env *e)
{
	env_check(e);
	env_crash(e);
	env_open(e);
	env_check(e);
}

struct session {
	char id[33];
	uint32_t n_write;
};

/* Starts, and compares the outcome of each key: 'w'rite, 'e'xists, 'b'usy. */
static struct session start(struct env *e, const struct skv_key *k, uint32_t n,
			    const uint32_t *key_specs, const char *outcomes)
{
	struct session s;
	struct skv_start_res r;

	assert_int_equal(env_start(e,
				   &(struct env_start){ .keys = k, .n = n, .key_specs = key_specs },
				   &r), SKV_OK);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal("web"[r.outcome[i]], outcomes[i]);
	memcpy(s.id, r.session, sizeof s.id);
	s.n_write = r.n_write;
	return s;
}

static void finish(struct env *e, const struct session *s)
{
	struct skv_finish_res f;

	assert_int_equal(env_finish(e, s->id, NULL, 0, &f), SKV_OK);
	assert_int_equal(f.committed, s->n_write);
}

/* Specs of the key that a lookup finds. */
static uint32_t has(struct env *e, const struct skv_key *k)
{
	struct skv_lookup_req q = { .tenant = "t", .instance = "i", .mode = SKV_LOOKUP_BATCH,
				    .keys = k, .n_keys = 1,
				    .partial = true, .peek = true };
	struct skv_lookup_res r;
	uint32_t mask = 0;

	assert_int_equal(env_lookup_req(e, &q, &r), SKV_OK);
	for (uint32_t s = 0; r.hit[0] && s < r.n_specs; s++)
		mask |= r.loc[s].length ? 1u << s : 0;
	assert_int_equal(r.hit[0], mask != 0);
	return mask;
}

static void every_key_with_its_own_specs(void **state)
{
	struct env *e = *state;
	const uint32_t want[4] = { A, A | C, C, A };
	struct skv_key k[4];
	struct skv_start_res r;
	struct session s;

	env_keys(k, 4, 1, 1);
	assert_int_equal(env_start(e, &(struct env_start){ .keys = k, .n = 4, .key_specs = want,
							   .request_id = "r" }, &r),
			 SKV_OK);
	assert_int_equal(r.n_write, 4);
	assert_int_equal(r.n_specs, 2); /* a and c: what any key asked for */
	assert_string_equal(r.specs[0], "a");
	assert_string_equal(r.specs[1], "c");
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(r.loc[2 * i].length, want[i] & A ? 4 * KB : 0);
		assert_int_equal(r.loc[2 * i + 1].length, want[i] & C ? 12 * KB : 0);
	}
	memcpy(s.id, r.session, sizeof s.id);
	s.n_write = 4;
	reopen(e); /* the journal knows which */
	assert_int_equal(env_start(e, &(struct env_start){ .keys = k, .n = 4, .key_specs = want,
							   .request_id = "r" }, &r),
			 SKV_OK);
	assert_string_equal(r.session, s.id);
	assert_int_equal(r.loc[2].length, 4 * KB);
	assert_int_equal(r.loc[1].length, 0);
	env_shutdown(e); /* and so does a checkpoint */
	env_open(e);
	finish(e, &s);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(has(e, &k[i]), want[i]);
	reopen(e);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(has(e, &k[i]), want[i]);
}

static void the_same_id_with_other_specs_is_another_body(void **state)
{
	struct env *e = *state;
	const uint32_t one[2] = { A, B }, two[2] = { A, C };
	struct skv_key k[2];
	struct skv_start_res r;

	env_keys(k, 2, 1, 1);
	assert_int_equal(env_start(e, &(struct env_start){ .keys = k, .n = 2, .key_specs = one,
							   .request_id = "r" }, &r),
			 SKV_OK);
	assert_int_equal(env_start(e, &(struct env_start){ .keys = k, .n = 2, .key_specs = two,
							   .request_id = "r" }, &r),
			 SKV_E_CONFLICT);
	assert_int_equal(env_start(e, &(struct env_start){ .keys = k, .n = 2, .request_id = "r" },
				   &r), SKV_E_CONFLICT);
}

static void bad_spec_sets_are_refused(void **state)
{
	struct env *e = *state;
	static const char *const names[] = { "a" };
	uint32_t want[2] = { A, 0 };
	struct skv_key k[2];
	struct skv_start_res r;

	env_keys(k, 2, 1, 1);
	assert_int_equal(env_start(e, &(struct env_start){ .keys = k, .n = 2, .key_specs = want },
				   &r), SKV_E_INVALID);
	assert_string_equal(e->err.field, "key_specs[1]");
	want[1] = 8;
	assert_int_equal(env_start(e, &(struct env_start){ .keys = k, .n = 2, .key_specs = want },
				   &r), SKV_E_INVALID);
	assert_string_equal(e->err.field, "key_specs[1]");
	want[1] = UINT32_MAX;
	assert_int_equal(env_start(e, &(struct env_start){ .keys = k, .n = 2, .key_specs = want },
				   &r), SKV_E_INVALID);
	want[1] = A;
	assert_int_equal(env_start(e, &(struct env_start){ .keys = k, .n = 2, .key_specs = want,
							   .specs = names, .n_specs = 1 },
				   &r),
			 SKV_E_INVALID);
	assert_string_equal(e->err.field, "specs");
}

static void each_spec_has_one_writer(void **state)
{
	struct env *e = *state;
	uint32_t a = A, ab = A | B, abc = A | B | C;
	struct skv_key k = { 1, 1 };
	struct session sa, sb, sc;

	sa = start(e, &k, 1, &a, "w");
	start(e, &k, 1, &a, "b");
	sb = start(e, &k, 1, &ab, "w"); /* b only: a is being written */
	start(e, &k, 1, &ab, "b");
	sc = start(e, &k, 1, &abc, "w"); /* c only */
	reopen(e);
	start(e, &k, 1, &abc, "b");
	finish(e, &sb);
	assert_int_equal(has(e, &k), B);
	assert_int_equal(env_match(e, &k, 1), 0);
	reopen(e);
	/* The spec comes from the next session. */
	assert_int_equal(env_abort(e, sa.id, true), SKV_OK);
	sa = start(e, &k, 1, &abc, "w");
	/* a block with a committed spec and two that are written, in a checkpoint */
	env_shutdown(e);
	env_open(e);
	finish(e, &sc);
	assert_int_equal(has(e, &k), B | C);
	finish(e, &sa);
	assert_int_equal(has(e, &k), A | B | C);
	assert_int_equal(env_match(e, &k, 1), 1);
	start(e, &k, 1, &abc, "e");
	reopen(e);
	assert_int_equal(has(e, &k), A | B | C);
}

/* The answer to the second writer names only what is its to write. */
static void a_second_writer_gets_only_the_rest(void **state)
{
	struct env *e = *state;
	uint32_t ab[2] = { A | B, A | B }, c[2] = { A, A | B };
	struct skv_key k[2];
	struct skv_start_res r;
	struct session s1, s2;
	uint64_t sums[4] = { 11, 12, 13, 14 };
	struct skv_finish_res f;
	struct skv_lookup_res l;

	env_keys(k, 2, 1, 1);
	s1 = start(e, k, 1, ab, "w");
	assert_int_equal(env_start(e, &(struct env_start){ .keys = k, .n = 2, .key_specs = c }, &r),
			 SKV_OK);
	assert_int_equal(r.outcome[0], SKV_START_BUSY);
	assert_int_equal(r.outcome[1], SKV_START_WRITE);
	memcpy(s2.id, r.session, 33);
	/* Sums have a row for each written block, a column for each of the session's specs. */
	assert_int_equal(env_finish(e, s2.id, sums, 1, &f), SKV_E_INVALID);
	assert_int_equal(env_finish(e, s2.id, sums, 2, &f), SKV_OK);
	finish(e, &s1);
	assert_int_equal(env_lookup(e, &k[1], 1, SKV_LOOKUP_BATCH, 0, &l), SKV_OK);
	assert_false(l.hit[0]); /* without c it is not whole */
	assert_int_equal(has(e, &k[1]), A | B);
	{
		static const char *const names[] = { "a", "b" };
		struct skv_lookup_req q = { .tenant = "t", .instance = "i", .keys = &k[1],
					    .n_keys = 1, .specs = names,
					    .n_specs = 2 };

		assert_int_equal(env_lookup_req(e, &q, &l), SKV_OK);
		assert_true(l.hit[0] && l.loc[0].has_checksum && l.loc[1].has_checksum);
		assert_int_equal(l.loc[0].checksum, 11);
		assert_int_equal(l.loc[1].checksum, 12);
	}
}

struct answer {
	bool over;
	int status;
};

static void on_done(void *ctx, int status)
{
	struct answer *a = ctx;

	a->over = true;
	a->status = status;
}

/* A spec that is on its way out keeps all others waiting: the block comes back whole. */
static void a_block_on_its_way_out_is_busy(void **state)
{
	struct env *e = *state;
	uint32_t a = A, ab = A | B;
	struct skv_key k = { 1, 1 };
	struct skv_delete_req q = { .tenant = "t", .instance = "i", .keys = &k, .n_keys = 1 };
	struct skv_delete_res deleted;
	struct answer answer = { 0 };
	struct skv_done done = { on_done, &answer };
	struct session s = start(e, &k, 1, &a, "w");
	struct skv_arena arena;
	struct skv_error err = { 0 };

	finish(e, &s);
	skv_arena_init(&arena);
	assert_int_equal(skv_core_delete(e->core, &q, &deleted, &arena, &err, &done), SKV_PENDING);
	start(e, &k, 1, &ab, "b"); /* nothing was committed meanwhile: nobody ticked */
	skv_cluster_tick(e->cluster);
	assert_true(answer.over);
	assert_int_equal(answer.status, SKV_OK);
	skv_arena_destroy(&arena);
	s = start(e, &k, 1, &ab, "w");
	finish(e, &s);
	assert_int_equal(has(e, &k), A | B);
}

static void writers_of_one_key_end_in_any_order(void **state)
{
	struct env *e = *state;

	/* Three sessions write a, b, c of the same chain; each finishes, aborts, or
	 * expires, in every order. */
	for (uint32_t how = 0; how < 27; how++) {
		struct skv_key k[3];
		struct session s[3];
		uint32_t left = 0, h = how;

		env_keys(k, 3, 100 + how, 1);
		for (uint32_t w = 0; w < 3; w++) {
			uint32_t want[3] = { 1u << w, 1u << w, 1u << w };

			s[w] = start(e, k, 3, want, "www");
		}
		if (how % 2)
			reopen(e);
		for (uint32_t i = 0; i < 3; i++, h /= 3) {
			uint32_t w = (i + how) % 3;

			if (h % 3 == 0) {
				finish(e, &s[w]);
				left |= 1u << w;
			} else if (h % 3 == 1) {
				assert_int_equal(env_abort(e, s[w].id, i % 2), SKV_OK);
			}
			env_check(e);
		}
		env_advance(e, 8000); /* the others expire, and their grace is over */
		env_check(e);
		for (uint32_t i = 0; i < 3; i++)
			assert_int_equal(has(e, &k[i]), left);
	}
}

/* A mask of 32 specs is the widest there is. */
static void thirty_two_specs(void **state)
{
	struct env *e = *state;
	static char names[32][8];
	struct skv_spec specs[32];
	uint32_t want[2] = { 1u << 31, UINT32_MAX };
	struct skv_key k[2];
	struct skv_start_res r;
	struct skv_finish_res f;
	struct skv_lookup_res l;
	char session[33];

	for (uint32_t i = 0; i < 32; i++) {
		snprintf(names[i], sizeof names[i], "s%u", i);
		specs[i] = (struct skv_spec){ names[i], 4 * KB };
	}
	assert_int_equal(env_instance(e, "wide", "g", specs, 32), SKV_OK);
	env_keys(k, 2, 1, 1);
	assert_int_equal(env_start(e, &(struct env_start){ .instance = "wide", .keys = k, .n = 2,
							   .key_specs = want }, &r),
			 SKV_OK);
	assert_int_equal(r.n_specs, 32);
	assert_int_equal(r.loc[30].length, 0);
	assert_int_equal(r.loc[31].length, 4 * KB);
	memcpy(session, r.session, 33);
	reopen(e);
	assert_int_equal(env_finish(e, session, NULL, 0, &f), SKV_OK);
	reopen(e);
	{
		struct skv_lookup_req lq = { .tenant = "t", .instance = "wide",
					     .mode = SKV_LOOKUP_BATCH, .keys = k,
					     .n_keys = 2, .lease_ms = 0 };

		assert_int_equal(env_lookup_req(e, &lq, &l), SKV_OK);
		assert_true(!l.hit[0] && l.hit[1]);
		lq.partial = true;
		assert_int_equal(env_lookup_req(e, &lq, &l), SKV_OK);
		assert_true(l.hit[0] && l.hit[1]);
		assert_int_equal(l.loc[30].length, 0);
		assert_int_equal(l.loc[31].length, 4 * KB);
	}
	assert_int_equal(env_start(e, &(struct env_start){ .instance = "wide", .keys = k, .n = 2 },
				   &r), SKV_OK);
	assert_int_equal(r.n_write, 1);
	assert_int_equal(r.loc[31].length, 0);
	assert_int_equal(env_abort(e, r.session, true), SKV_OK);
}

/* ---- sessions and their instances ------------------------------------------------------------ */

static int finish_as(struct env *e, const char *instance, const char *session,
		     struct skv_finish_res *f)
{
	return env_finish_req(e, &(struct skv_finish_req){ .tenant = "t", .instance = instance,
							   .session = session }, f);
}

static void a_session_belongs_to_its_instance(void **state)
{
	struct env *e = *state;
	struct skv_key k = { 1, 1 };
	struct skv_finish_res f;
	struct session s = start(e, &k, 1, NULL, "w");

	assert_int_equal(finish_as(e, "other", s.id, &f), SKV_E_NOT_FOUND);
	assert_string_equal(e->err.field, "session");
	assert_int_equal(finish_as(e, "nowhere", s.id, &f), SKV_E_NOT_FOUND);
	assert_string_equal(e->err.field, "instance");
	reopen(e);
	assert_int_equal(finish_as(e, "other", s.id, &f), SKV_E_NOT_FOUND);
	assert_int_equal(finish_as(e, "i", s.id, &f), SKV_OK);
	assert_int_equal(f.committed, 1);
	assert_int_equal(finish_as(e, "other", s.id, &f), SKV_E_NOT_FOUND); /* an ended one too, */
	reopen(e);
	assert_int_equal(finish_as(e, "other", s.id, &f), SKV_E_NOT_FOUND);
	env_shutdown(e); /* from the journal and from a checkpoint */
	env_open(e);
	assert_int_equal(finish_as(e, "other", s.id, &f), SKV_E_NOT_FOUND);
	assert_int_equal(finish_as(e, "i", s.id, &f), SKV_OK);
	assert_int_equal(f.committed, 1);
	assert_int_equal(env_finish(e, s.id, NULL, 0, &f), SKV_OK); /* without one nobody asks */
}

int main(void)
{
#define SCENE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		SCENE(every_key_with_its_own_specs),
		SCENE(the_same_id_with_other_specs_is_another_body),
		SCENE(bad_spec_sets_are_refused),
		SCENE(each_spec_has_one_writer),
		SCENE(a_second_writer_gets_only_the_rest),
		SCENE(a_block_on_its_way_out_is_busy),
		SCENE(writers_of_one_key_end_in_any_order),
		SCENE(thirty_two_specs),
		SCENE(a_session_belongs_to_its_instance),
	};

	env_quiet();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
