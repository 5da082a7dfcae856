/*
 * test_core_revoke.c - deletes of blocks being written: held slots, the result of the writer's
 * finish, with restarts, failures and other records of the session around it; pages; starts that
 * wait; purges. Random ones are in test_core_model, test_core_pages_model and test_core_clear.
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

/* The finish says which: n of them, the first is `first`. */
static void expect_deleted(const struct skv_finish_res *f, uint32_t n, uint32_t first)
{
	assert_int_equal(f->n_deleted, n);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(f->deleted[i], first + i);
}

/* Three blocks of one session, the middle one is deleted; the rest is finished. */
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
		assert_int_equal(env_delete_told(e, k + 1, 1, &d), SKV_OK);
		assert_int_equal(d.writing, 1);
		assert_int_equal(d.deleted, 0);
		reopen(e, how);
		expect_slots(e, 2, 1);
		assert_int_equal(env_finish(e, session, NULL, 0, &f), SKV_OK);
		assert_int_equal(f.committed, 2);
		assert_int_equal(f.failed, 0);
		expect_deleted(&f, 1, 1);
		expect_found(e, k, 3, 5);
		reopen(e, how);
		assert_int_equal(env_finish(e, session, NULL, 0, &f), SKV_OK); /* repeated */
		assert_int_equal(f.committed, 2);
		expect_deleted(&f, 1, 1);
		expect_slots(e, 2, 1);
		env_advance(e, 20000);
		expect_slots(e, 2, 0);
		assert_int_equal(env_delete_told(e, k, 3, &d), SKV_OK);
		assert_int_equal(d.deleted, 2);
		assert_int_equal(d.writing, 0);
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
		assert_int_equal(env_delete_told(e, k, 2, &d), SKV_OK);
		assert_int_equal(d.writing, 2);
		assert_int_equal(env_delete_told(e, k, 2, &d), SKV_OK);
		assert_int_equal(d.writing, 0);
		reopen(e, how);
		expect_slots(e, 0, 2);
		if (how == NONE) {
			assert_int_equal(env_finish(e, session, NULL, 0, &f), SKV_OK);
			assert_int_equal(f.committed, 0);
			expect_deleted(&f, 2, 0);
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
	struct skv_delete_req req = { .tenant = "t", .instance = "two", .keys = &k, .n_keys = 1 };
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
	assert_int_equal(d.writing, 1);
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
		skv_cluster_tick(e->cluster);
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
	struct skv_delete_req dreq = { .tenant = "t", .instance = "i", .n_keys = 2 };
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
	struct skv_delete_req dreq = { .tenant = "t", .instance = "i", .n_keys = 1 };
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
	assert_int_equal(env_delete_told(e, k, 2, &d), SKV_E_STORE_IO);
	assert_int_equal(d.writing, 0);
	env_check(e);
	expect_slots(e, 2, 0);
	assert_int_equal(env_finish(e, session, NULL, 0, &f), SKV_OK);
	assert_int_equal(f.committed, 2);
	expect_found(e, k, 2, 3);
}

/* ---- around records in flight ---------------------------------------------------------------- */

/* A session's finish, or start, is on its way when a trim comes. */
static void trim_behind_others(void **state)
{
	struct env *e = *state;
	char session[SKV_SESSION_ID_HEX + 1];
	struct skv_finish_req freq = { .tenant = "t", .session = session };
	struct skv_trim_req treq = { .tenant = "t", .instance = "i", .to_ms = UINT64_MAX };
	struct skv_start_req sreq = { .tenant = "t", .instance = "i", .request_id = "" };
	struct call finish = { 0 }, trim = { 0 }, begun = { 0 };
	struct skv_finish_res f;
	struct skv_start_res s;
	struct skv_trim_res t;
	struct skv_arena a, b, c;
	struct skv_error err = { 0 };
	struct skv_key k[4];

	skv_arena_init(&a);
	skv_arena_init(&b);
	skv_arena_init(&c);
	env_keys(k, 4, 1, 1);
	start(e, k, 2, session);
	sreq.keys = k + 2;
	sreq.n_keys = 2;
	assert_int_equal(skv_core_finish(e->core, &freq, &f, &a, &err,
					 &(struct skv_done){ on_done, &finish }), SKV_PENDING);
	assert_int_equal(skv_core_start(e->core, &sreq, &s, &b, &err,
					&(struct skv_done){ on_done, &begun }), SKV_PENDING);
	assert_int_equal(skv_core_trim(e->core, &treq, &t, &c, &err,
				       &(struct skv_done){ on_done, &trim }), SKV_PENDING);
	partial_both(e, &finish, &begun);
	partial_both(e, &trim, &begun);
	assert_int_equal(finish.status | begun.status | trim.status, SKV_OK);
	assert_int_equal(t.deleted, 2);
	assert_int_equal(t.writing, 2);
	snprintf(session, sizeof session, "%s", s.session);
	assert_int_equal(env_finish(e, session, NULL, 0, &f), SKV_OK);
	expect_deleted(&f, 2, 0);
	expect_found(e, k, 4, 0);
	skv_arena_destroy(&a);
	skv_arena_destroy(&b);
	skv_arena_destroy(&c);
}

/* The block is on its way out, by another call: the answer to the second waits until that is
 * durable, so a kill brings nothing back. */
static void behind_a_removal(void **state)
{
	struct env *e = *state;
	struct skv_delete_req dreq = { .tenant = "t", .instance = "i", .n_keys = 1 };
	struct call first = { 0 }, second = { 0 };
	struct skv_delete_res d1, d2;
	struct skv_arena a, b;
	struct skv_error err = { 0 };
	struct skv_key k = { 3, 3 };

	skv_arena_init(&a);
	skv_arena_init(&b);
	assert_int_equal(env_put(e, &k, 1), 1);
	dreq.keys = &k;
	assert_int_equal(skv_core_delete(e->core, &dreq, &d1, &a, &err,
					 &(struct skv_done){ on_done, &first }), SKV_PENDING);
	assert_int_equal(skv_core_delete(e->core, &dreq, &d2, &b, &err,
					 &(struct skv_done){ on_done, &second }), SKV_PENDING);
	assert_false(second.over);
	partial_both(e, &first, &second);
	assert_int_equal(d1.deleted, 1);
	assert_int_equal(d2.deleted, 0);
	reopen(e, CRASH);
	expect_found(e, &k, 1, 0);
	skv_arena_destroy(&a);
	skv_arena_destroy(&b);
}

/* ---- starts that wait for room --------------------------------------------------------------- */

enum deletion { BY_KEY, BY_OTHER_KEY, BY_AGE, BY_CLEAR, BY_DROP, DELETIONS };

static void delete_somehow(struct env *e, enum deletion how, const struct skv_key *k)
{
	const struct skv_key other = { 77, 77 };
	struct skv_delete_res d;
	uint64_t n;

	if (how == BY_KEY || how == BY_OTHER_KEY)
		assert_int_equal(env_delete_told(e, how == BY_KEY ? k : &other, 1, &d), SKV_OK);
	else if (how == BY_AGE)
		assert_int_equal(env_trim(e, 0, UINT64_MAX, &n), SKV_OK);
	else if (how == BY_CLEAR)
		assert_int_equal(env_clear(e, NULL, &n), SKV_OK);
	else
		assert_int_equal(skv_cluster_instance_delete(e->cluster, "t", "i", NULL, &e->err),
				 SKV_OK);
}

/* All slots are leased, so the start waits; what deletes its blocks ends it without slots. */
static void a_start_that_waits(void **state)
{
	struct skv_key k[256], w[2];

	(void)state;
	env_keys(k, 256, 1, 1);
	env_keys(w, 2, 2, 1);
	for (enum deletion how = BY_KEY; how < DELETIONS; how++) {
		struct skv_start_req sreq = { .tenant = "t", .instance = "i", .request_id = "",
					      .keys = w, .n_keys = 2, .independent = true };
		struct call begun = { 0 };
		struct skv_lookup_res r;
		struct skv_start_res s;
		struct skv_arena a;
		struct skv_error err = { 0 };
		struct env e;

		env_init(&e);
		env_open(&e);
		env_make(&e, 256 * BLOCK, 16 * BLOCK, BLOCK);
		skv_arena_init(&a);
		for (uint32_t i = 0; i < 256; i += 32)
			assert_int_equal(env_put(&e, k + i, 32), 32);
		assert_int_equal(env_lookup(&e, k, 256, SKV_LOOKUP_BATCH, 900, &r), SKV_OK);
		assert_int_equal(skv_core_start(e.core, &sreq, &s, &a, &err,
						&(struct skv_done){ on_done, &begun }),
				 SKV_PENDING);
		delete_somehow(&e, how, w);
		for (int i = 0; i < 2000 && !begun.over; i++)
			env_advance(&e, 20);
		assert_int_equal(begun.status, how == BY_OTHER_KEY ? SKV_OK : SKV_E_SESSION_ENDED);
		env_check(&e);
		skv_arena_destroy(&a);
		env_destroy(&e);
	}
}

/* ---- pages ----------------------------------------------------------------------------------- */

/* A page is reserved, its key is deleted, and then it is confirmed. */
static void a_page(void **state)
{
	struct skv_key k[2];
	struct skv_start_res s;
	struct skv_partial_res r;
	struct skv_delete_res d;
	struct env e;

	(void)state;
	env_init(&e);
	env_open(&e);
	env_make_pages(&e, 64);
	env_keys(k, 2, 1, 1);
	for (enum restart how = NONE; how < RESTARTS; how++) {
		struct skv_partial_req confirm = { .tenant = "t", .instance = "i", .keys = k,
						   .n_commit = 2 };
		uint64_t at[2];

		assert_int_equal(env_start(&e, &(struct env_start){ .keys = k, .n = 2,
								    .anonymous = true,
								    .independent = true,
								    .deadline_ms = 5000 }, &s),
				 SKV_OK);
		for (uint32_t i = 0; i < 2; i++)
			at[i] = s.loc[i].offset;
		confirm.offsets = at;
		assert_int_equal(env_delete_told(&e, k, 1, &d), SKV_OK);
		assert_int_equal(d.writing, 1);
		reopen(&e, how);
		assert_int_equal(env_partial(&e, &confirm, &r), SKV_OK);
		assert_int_equal(r.committed, 1);
		assert_int_equal(r.ignored_commits, 1);
		expect_found(&e, k, 2, 2);
		assert_int_equal(env_delete_told(&e, k + 1, 1, &d), SKV_OK);
		env_advance(&e, 20000);
	}
	env_destroy(&e);
}

/* The confirm is on its way when the delete comes. */
static void behind_a_confirm(void **state)
{
	struct skv_partial_req confirm = { .tenant = "t", .instance = "i", .n_commit = 1 };
	struct skv_delete_req dreq = { .tenant = "t", .instance = "i", .n_keys = 1 };
	struct call confirmed = { 0 }, deleted = { 0 };
	struct skv_key k = { 5, 6 };
	struct skv_start_res s;
	struct skv_partial_res r;
	struct skv_delete_res d;
	struct skv_arena a, b;
	struct skv_error err = { 0 };
	uint64_t at;
	struct env e;

	(void)state;
	env_init(&e);
	env_open(&e);
	env_make_pages(&e, 64);
	skv_arena_init(&a);
	skv_arena_init(&b);
	assert_int_equal(env_start(&e, &(struct env_start){ .keys = &k, .n = 1, .anonymous = true },
				   &s), SKV_OK);
	at = s.loc[0].offset;
	confirm.keys = dreq.keys = &k;
	confirm.offsets = &at;
	assert_int_equal(skv_core_finish_partial(e.core, &confirm, &r, &a, &err,
						 &(struct skv_done){ on_done, &confirmed }),
			 SKV_PENDING);
	assert_int_equal(skv_core_delete(e.core, &dreq, &d, &b, &err,
					 &(struct skv_done){ on_done, &deleted }), SKV_PENDING);
	partial_both(&e, &confirmed, &deleted);
	assert_int_equal(r.committed, 1);
	assert_int_equal(d.deleted, 1);
	expect_found(&e, &k, 1, 0);
	env_check(&e);
	skv_arena_destroy(&a);
	skv_arena_destroy(&b);
	env_destroy(&e);
}

/* ---- purges ---------------------------------------------------------------------------------- */

static void purge(struct env *e, struct skv_purge_req q, uint32_t instances, uint64_t blocks,
		  uint64_t sessions)
{
	struct skv_purge_res r;

	q.tenant = q.tenant ? q.tenant : "t";
	q.prefix = q.prefix ? q.prefix : "";
	q.group = q.group ? q.group : "";
	q.whose = q.whose ? q.whose : "";
	skv_arena_reset(&e->arena);
	assert_int_equal(skv_cluster_purge(e->cluster, &q, &r, &e->arena, &e->err), SKV_OK);
	assert_int_equal(r.n_instances, instances);
	assert_int_equal(r.blocks, blocks);
	assert_int_equal(r.sessions, sessions);
}

/* Each selector: what is stored goes, what is open ends as deleted, also after a restart; what is
 * not meant stays, and a repeated call finds nothing. */
static void by_selector(void **state)
{
	static const char *const both[] = { "i", "i2" };
	static const struct skv_spec kv = { "kv", BLOCK };
	const struct skv_purge_req selectors[] = {
		{ .instances = both, .n_instances = 2 }, { .prefix = "i" }, { .group = "g" },
		{ .tenant = "", .group = "g" }, { .whose = "t" },
	};
	const struct skv_key other = { 9, 9 };
	const struct env_start beside = { .instance = "other", .keys = &other, .n = 1 };
	struct env *e = *state;
	struct skv_key stored, written;
	char session[SKV_SESSION_ID_HEX + 1];
	struct skv_finish_res f;
	struct skv_start_res s;

	assert_int_equal(env_instance(e, "i2", "g", &kv, 1), SKV_OK);
	assert_int_equal(env_instance(e, "other", "g", &kv, 1), SKV_OK);
	assert_int_equal(env_instance(e, "i3", "g", &kv, 1), SKV_OK);
	assert_int_equal(skv_cluster_instance_delete(e->cluster, "t", "i3", NULL, &e->err), SKV_OK);
	for (uint32_t i = 0; i < sizeof selectors / sizeof selectors[0]; i++) {
		const bool all = selectors[i].group || selectors[i].whose;

		stored = (struct skv_key){ 20, i };
		written = (struct skv_key){ 30, i };
		assert_int_equal(env_put(e, &stored, 1), 1);
		assert_int_equal(env_start(e, &beside, &s), SKV_OK);
		if (s.n_write) {
			snprintf(session, sizeof session, "%s", s.session);
			assert_int_equal(env_finish(e, session, NULL, 0, &f), SKV_OK);
		}
		start(e, &written, 1, session);
		purge(e, selectors[i], all ? 3 : 2, all ? 2 : 1, 1);
		reopen(e, (enum restart)(i % RESTARTS));
		assert_int_equal(env_finish(e, session, NULL, 0, &f), SKV_OK);
		assert_int_equal(f.state, SKV_SESSION_DELETED);
		expect_deleted(&f, 1, 0);
		expect_found(e, &stored, 1, 0);
		expect_found(e, &written, 1, 0);
		purge(e, selectors[i], all ? 3 : 2, 0, 0);
	}
}

static void bad_purges(void **state)
{
	static const char *const names[] = { "i", "nobody" };
	struct env *e = *state;
	struct skv_purge_req q = { .tenant = "t", .prefix = "", .group = "", .whose = "" };
	struct skv_key k = { 1, 1 };
	struct skv_purge_res r;

	assert_int_equal(skv_cluster_purge(e->cluster, &q, &r, &e->arena, &e->err), SKV_E_INVALID);
	q.prefix = q.group = "i";
	assert_int_equal(skv_cluster_purge(e->cluster, &q, &r, &e->arena, &e->err), SKV_E_INVALID);
	q.prefix = q.group = "";
	q.instances = names;
	q.n_instances = 2;
	assert_int_equal(env_put(e, &k, 1), 1);
	skv_arena_reset(&e->arena);
	assert_int_equal(skv_cluster_purge(e->cluster, &q, &r, &e->arena, &e->err),
			 SKV_E_NOT_FOUND);
	assert_string_equal(e->err.field, "instances[1]");
	expect_found(e, &k, 1, 0);
	q.tenant = "u"; /* a tenant that does not own the instance */
	q.n_instances = 1;
	assert_int_equal(env_put(e, &k, 1), 1);
	skv_arena_reset(&e->arena);
	assert_int_equal(skv_cluster_purge(e->cluster, &q, &r, &e->arena, &e->err),
			 SKV_E_NOT_FOUND);
	expect_found(e, &k, 1, 1);
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
		cmocka_unit_test_setup_teardown(trim_behind_others, setup, teardown),
		cmocka_unit_test_setup_teardown(behind_a_removal, setup, teardown),
		cmocka_unit_test(a_start_that_waits),
		cmocka_unit_test(a_page),
		cmocka_unit_test(behind_a_confirm),
		cmocka_unit_test_setup_teardown(by_selector, setup, teardown),
		cmocka_unit_test_setup_teardown(bad_purges, setup, teardown),
	};

	env_quiet();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
