/*
 * test_core_revoke.c - deletes that mean what is being written, too: what is held, what the
 * writer's finish gives, with restarts, failures and other records of the session around it. Random
 * ones are in test_core_model.
 */
#include "core_env.h"

#include <stdio.h>

#define BLOCK 4096u

enum restart { NONE, CRASH, CLEAN, RESTARTS };

static int setup(void **state)
{
	static struct env e;

	env_init(&e);
	e.faulty = true;
	env_open(&e);
	env_make(&e, 256 * BLOCK, 16 * BLOCK, BLOCK);
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

static void reopen(struct env *e, enum restart how)
{
	if (how == NONE)
		return;
	if (how == CLEAN)
		env_shutdown(e);
	else
		env_crash(e);
	env_open(e);
	env_check(e);
}

static void start(struct env *e, const struct skv_key *k, uint32_t n,
		  char session[SKV_SESSION_ID_HEX + 1])
{
	struct env_start s = { .keys = k, .n = n, .deadline_ms = 5000 };
	struct skv_start_res r;

	assert_int_equal(env_start(e, &s, &r), SKV_OK);
	assert_int_equal(r.n_write, n);
	snprintf(session, SKV_SESSION_ID_HEX + 1, "%s", r.session);
}

static void expect_slots(struct env *e, uint64_t used, uint64_t held)
{
	struct skv_stats st;

	env_stats(e, &st);
	assert_int_equal(st.storages[0].used_bytes / BLOCK, used);
	assert_int_equal(st.storages[0].quarantined_bytes / BLOCK, held);
}

static void expect_found(struct env *e, const struct skv_key *k, uint32_t n, uint32_t mask)
{
	struct skv_lookup_res r;

	assert_int_equal(env_lookup(e, k, n, SKV_LOOKUP_BATCH, 0, &r), SKV_OK);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(r.hit[i], mask >> i & 1);
}

/* Three blocks of one session, the middle one is revoked; the rest is finished. */
static void one_of_a_session(void **state)
{
	struct env *e = *state;
	char session[SKV_SESSION_ID_HEX + 1];
	struct skv_delete_res d;
	struct skv_finish_res f;
	struct skv_key k[3];

	for (enum restart how = NONE; how < RESTARTS; how++) {
		env_keys(k, 3, 1 + how, 0);
		start(e, k, 3, session);
		expect_slots(e, 3, 0);
		assert_int_equal(env_delete_writing(e, k + 1, 1, &d), SKV_OK);
		assert_int_equal(d.revoked, 1);
		assert_int_equal(d.deleted, 0);
		reopen(e, how);
		expect_slots(e, 2, 1);
		assert_int_equal(env_finish(e, session, NULL, 0, &f), SKV_OK);
		assert_int_equal(f.committed, 2);
		assert_int_equal(f.failed, 1);
		expect_found(e, k, 3, 5);
		reopen(e, how);
		assert_int_equal(env_finish(e, session, NULL, 0, &f), SKV_OK); /* repeated */
		assert_int_equal(f.committed, 2);
		expect_slots(e, 2, 1);
		env_advance(e, 20000);
		expect_slots(e, 2, 0);
		assert_int_equal(env_delete_writing(e, k, 3, &d), SKV_OK);
		assert_int_equal(d.deleted, 2);
		assert_int_equal(d.revoked, 0);
		expect_slots(e, 0, 0);
	}
}

/* All of it: the session is open still, expires or is aborted as ever, and
 * holds until its own deadline. */
static void all_of_a_session(void **state)
{
	struct env *e = *state;
	char session[SKV_SESSION_ID_HEX + 1];
	struct skv_delete_res d;
	struct skv_finish_res f;
	struct skv_key k[2];

	for (enum restart how = NONE; how < RESTARTS; how++) {
		env_keys(k, 2, 11 + how, 0);
		start(e, k, 2, session);
		assert_int_equal(env_delete_writing(e, k, 2, &d), SKV_OK);
		assert_int_equal(d.revoked, 2);
		assert_int_equal(env_delete_writing(e, k, 2, &d), SKV_OK);
		assert_int_equal(d.revoked, 0);
		reopen(e, how);
		expect_slots(e, 0, 2);
		if (how == NONE) {
			assert_int_equal(env_finish(e, session, NULL, 0, &f), SKV_OK);
			assert_int_equal(f.committed, 0);
		} else if (how == CRASH) {
			assert_int_equal(env_abort(e, session, true), SKV_OK);
		}
		/* quiesced is too late: the slots were given up by somebody else */
		expect_slots(e, 0, 2);
		env_advance(e, 4000);
		expect_slots(e, 0, 2);
		env_advance(e, 20000);
		expect_slots(e, 0, 0);
	}
}

/* A spec of a block that has others: all of it goes. */
static void written_beside_what_is_there(void **state)
{
	static const struct skv_spec specs[] = { { "a", BLOCK }, { "b", BLOCK } };
	static const char *const a = "a";
	struct env *e = *state;
	struct skv_key k = { 5, 5 };
	struct env_start s = { .instance = "two", .keys = &k, .n = 1, .specs = &a, .n_specs = 1,
			       .deadline_ms = 5000 };
	struct skv_delete_req req = { .tenant = "t", .instance = "two", .keys = &k, .n_keys = 1,
				      .writing = true };
	struct skv_start_res r;
	struct skv_finish_res f;
	char session[SKV_SESSION_ID_HEX + 1];
	struct skv_delete_res d = { 0 };

	assert_int_equal(env_instance(e, "two", "g", specs, 2), SKV_OK);
	assert_int_equal(env_start(e, &s, &r), SKV_OK);
	assert_int_equal(env_finish(e, r.session, NULL, 0, &f), SKV_OK);
	s.specs = NULL;
	s.n_specs = 0;
	assert_int_equal(env_start(e, &s, &r), SKV_OK);
	assert_int_equal(r.n_write, 1);
	snprintf(session, sizeof session, "%s", r.session);
	assert_int_equal(env_delete_req(e, &req, &d), SKV_OK);
	assert_int_equal(d.deleted, 1);
	assert_int_equal(d.revoked, 1);
	expect_slots(e, 0, 1);
	assert_int_equal(env_finish(e, session, NULL, 0, &f), SKV_OK);
	assert_int_equal(f.committed, 0);
	expect_slots(e, 0, 1);
}

struct call {
	bool over;
	int status;
};

static void on_done(void *ctx, int status)
{
	*(struct call *)ctx = (struct call){ true, status };
}

static void partial_both(struct env *e, struct call *a, struct call *b)
{
	for (int i = 0; i < 2000 && !(a->over && b->over); i++) {
		skv_core_tick(e->core);
		if (i > 2)
			skv_fake_clock_advance(&e->clock, 20);
	}
	assert_true(a->over && b->over);
}

/* A finish is on its way when the delete comes: the block is committed, and then deleted;
 * it is never found again. */
static void behind_a_finish(void **state)
{
	struct env *e = *state;
	char session[SKV_SESSION_ID_HEX + 1];
	struct skv_finish_req freq = { .tenant = "t", .session = session };
	struct skv_delete_req dreq = { .tenant = "t", .instance = "i", .n_keys = 2,
				       .writing = true };
	struct skv_finish_res f;
	struct skv_delete_res d;
	struct skv_arena a, b;
	struct skv_error err = { 0 };
	struct skv_key k[2];

	for (enum skv_durability how = SKV_DURABILITY_FULL; how <= SKV_DURABILITY_NORMAL; how++) {
		struct call finish = { 0 }, delete = { 0 };

		env_crash(e);
		e->store_options.durability = how;
		env_open(e);
		skv_arena_init(&a);
		skv_arena_init(&b);
		env_keys(k, 2, 20 + how, 0);
		dreq.keys = k;
		start(e, k, 2, session);
		assert_int_equal(skv_core_finish(e->core, &freq, &f, &a, &err,
						 &(struct skv_done){ on_done, &finish }),
				 SKV_PENDING);
		assert_int_equal(skv_core_delete(e->core, &dreq, &d, &b, &err,
						 &(struct skv_done){ on_done, &delete }),
				 SKV_PENDING);
		partial_both(e, &finish, &delete);
		assert_int_equal(finish.status, SKV_OK);
		assert_int_equal(delete.status, SKV_OK);
		assert_int_equal(d.deleted, 2);
		expect_found(e, k, 2, 0);
		env_check(e);
		skv_arena_destroy(&a);
		skv_arena_destroy(&b);
	}
}

/* The other order: the finish comes when the delete is on its way, and commits nothing of it. */
static void before_a_finish(void **state)
{
	struct env *e = *state;
	char session[SKV_SESSION_ID_HEX + 1];
	struct skv_finish_req freq = { .tenant = "t", .session = session };
	struct skv_delete_req dreq = { .tenant = "t", .instance = "i", .n_keys = 1,
				       .writing = true };
	struct skv_finish_res f;
	struct skv_delete_res d;
	struct skv_arena a, b;
	struct skv_error err = { 0 };
	struct skv_key k[2];

	for (enum skv_durability how = SKV_DURABILITY_FULL; how <= SKV_DURABILITY_NORMAL; how++) {
		struct call finish = { 0 }, delete = { 0 };

		env_crash(e);
		e->store_options.durability = how;
		env_open(e);
		skv_arena_init(&a);
		skv_arena_init(&b);
		env_keys(k, 2, 30 + how, 0);
		dreq.keys = k;
		start(e, k, 2, session);
		assert_int_equal(skv_core_delete(e->core, &dreq, &d, &b, &err,
						 &(struct skv_done){ on_done, &delete }),
				 SKV_PENDING);
		assert_int_equal(skv_core_finish(e->core, &freq, &f, &a, &err,
						 &(struct skv_done){ on_done, &finish }),
				 SKV_PENDING);
		partial_both(e, &finish, &delete);
		assert_int_equal(finish.status, SKV_OK);
		assert_int_equal(delete.status, SKV_OK);
		assert_int_equal(f.committed, 1);
		expect_found(e, k, 2, 2);
		env_check(e);
		skv_arena_destroy(&a);
		skv_arena_destroy(&b);
	}
}

/* The record cannot be written: all is as before. */
static void undone(void **state)
{
	static const struct skv_fault fail = { .kind = SKV_FAULT_ERROR, .call = "append", .at = 1,
					       .times = 1,
					       .status = SKV_E_STORE_IO };
	struct env *e = *state;
	char session[SKV_SESSION_ID_HEX + 1];
	struct skv_delete_res d;
	struct skv_finish_res f;
	struct skv_key k[2];

	env_keys(k, 2, 40, 0);
	start(e, k, 2, session);
	skv_fault_store_set(e->store, &fail);
	assert_int_equal(env_delete_writing(e, k, 2, &d), SKV_E_STORE_IO);
	assert_int_equal(d.revoked, 0);
	env_check(e);
	expect_slots(e, 2, 0);
	assert_int_equal(env_finish(e, session, NULL, 0, &f), SKV_OK);
	assert_int_equal(f.committed, 2);
	expect_found(e, k, 2, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(one_of_a_session, setup, teardown),
		cmocka_unit_test_setup_teardown(all_of_a_session, setup, teardown),
		cmocka_unit_test_setup_teardown(written_beside_what_is_there, setup, teardown),
		cmocka_unit_test_setup_teardown(behind_a_finish, setup, teardown),
		cmocka_unit_test_setup_teardown(before_a_finish, setup, teardown),
		cmocka_unit_test_setup_teardown(undone, setup, teardown),
	};

	env_quiet();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
