/*
 * test_core_demote.c - an owner that gives the ownership back, the one that takes over,
 * and who knows who leads.
 *
 * With a clock of the test's first, then with threads and real time.
 */
#include "core_env.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#define KB 1024ull
#define LEASE_MS 20000u /* nobody takes over in these scenes because a lease ran out */

/* A manager on the store of `a` (NULL: the first one). Not ready yet. */
static void manager(struct env *e, const struct env *a)
{
	env_init(e);
	e->o.owner_lease_ms = LEASE_MS;
	if (!a)
		return;
	e->store_options = a->store_options;
	skv_fake_clock_advance(&e->clock,
			       skv_now_ms(&a->clock.clock) - skv_now_ms(&e->clock.clock));
	assert_int_equal(skv_store_open(e->ops, &e->store_options, &e->store, &e->err), SKV_OK);
	e->o.store = e->store;
	env_create(e);
}

struct lead {
	char self[SKV_OWNER_NAME], leader[SKV_OWNER_NAME];
	uint64_t left;
};

static struct lead lead(struct env *e)
{
	struct lead l;

	skv_cluster_leader(e->cluster, l.self, l.leader, &l.left);
	return l;
}

static void demotion_hands_over(void **state)
{
	struct env a, b;
	struct skv_key k[4];
	struct skv_start_res s;
	struct skv_finish_res f;
	struct lead la, lb;
	char session[33];

	(void)state;
	manager(&a, NULL);
	env_open(&a);
	env_make(&a, 4096 * KB, 64 * KB, 4 * KB);
	env_keys(k, 4, 1, 1);
	env_put(&a, k, 2);
	assert_int_equal(env_start(&a, &(struct env_start){ .keys = k + 2, .n = 2 }, &s), SKV_OK);
	memcpy(session, s.session, sizeof session);
	la = lead(&a);
	assert_string_equal(la.leader, la.self);
	assert_true(la.left > 0 && la.left <= LEASE_MS);

	manager(&b, &a);
	assert_string_equal(lead(&b).leader, ""); /* manager b has not looked yet */
	skv_cluster_tick(b.cluster);
	lb = lead(&b);
	assert_string_not_equal(lb.self, la.self);
	assert_string_equal(lb.leader, la.self);
	assert_int_equal(skv_cluster_demote(b.cluster, 5000, &b.err), SKV_E_NOT_OWNER);

	assert_int_equal(skv_cluster_demote(a.cluster, 5000, &a.err), SKV_OK);
	assert_int_equal(skv_cluster_state_get(a.cluster), SKV_CORE_STANDBY);
	assert_int_equal(skv_cluster_may_answer(a.cluster), SKV_E_NOT_OWNER);
	assert_int_equal(env_start(&a, &(struct env_start){ .keys = k, .n = 1 }, &s),
			 SKV_E_NOT_OWNER);
	skv_cluster_tick(a.cluster);
	assert_string_equal(lead(&a).leader, "");
	/* manager a stays out, though nobody leads */
	assert_int_equal(skv_cluster_state_get(a.cluster), SKV_CORE_STANDBY);
	assert_int_equal(skv_cluster_demote(a.cluster, 5000, &a.err), SKV_E_NOT_OWNER);

	/* the lease is free: nothing to wait for */
	assert_int_equal(skv_cluster_wait_ready(b.cluster, 10000), SKV_OK);
	skv_cluster_tick(b.cluster);
	assert_int_equal(env_match(&b, k, 4), 2);
	/* The sessions of a go on. */
	assert_int_equal(env_finish(&b, session, NULL, 0, &f), SKV_OK);
	assert_int_equal(env_match(&b, k, 4), 4);
	skv_cluster_tick(a.cluster);
	assert_string_equal(lead(&a).leader, lb.self);

	/* And back: not before its time is over. */
	assert_int_equal(skv_cluster_demote(b.cluster, 60000, &b.err), SKV_OK);
	skv_cluster_tick(a.cluster);
	assert_int_equal(skv_cluster_state_get(a.cluster), SKV_CORE_STANDBY);
	env_advance(&a, 4999);
	assert_int_equal(skv_cluster_state_get(a.cluster), SKV_CORE_STANDBY);
	skv_fake_clock_advance(&a.clock, 1);
	assert_int_equal(skv_cluster_wait_ready(a.cluster, 10000), SKV_OK);
	skv_cluster_tick(a.cluster);
	assert_int_equal(env_match(&a, k, 4), 4);
	env_check(&a);
	skv_cluster_tick(b.cluster);
	env_destroy(&b);
	env_destroy(&a);
}

struct call {
	struct skv_arena arena;
	struct skv_error err;
	struct skv_done done;
	unsigned answers;
	int status;
};

static void on_done(void *ctx, int status)
{
	struct call *k = ctx;

	k->answers++;
	k->status = status;
}

static void call_init(struct call *k)
{
	memset(k, 0, sizeof *k);
	skv_arena_init(&k->arena);
	k->done = (struct skv_done){ on_done, k };
}

/* Calls that wait for a record, or for the next portion of a trim, get an error; the manager comes
 * back when it is alone. */
static void what_waits_is_told(void **state)
{
	static struct skv_key k[1500], more = { 9, 9 };
	struct skv_trim_req trim = { .tenant = "t", .instance = "i", .to_ms = UINT64_MAX };
	struct skv_trim_res trimmed;
	struct skv_start_req start = { .tenant = "t", .instance = "i", .request_id = "",
				       .keys = &more, .n_keys = 1 };
	struct skv_start_res started;
	struct call one, two;
	struct env a;
	uint64_t n;

	(void)state;
	call_init(&one);
	call_init(&two);
	manager(&a, NULL);
	env_open(&a);
	env_make(&a, 16384 * KB, 64 * KB, 4 * KB);
	env_keys(k, 1500, 1, 1);
	env_put(&a, k, 1500);
	assert_int_equal(skv_core_trim(a.core, &trim, &trimmed, &one.arena, &one.err, &one.done),
			 SKV_PENDING);
	skv_cluster_tick(a.cluster); /* the first portion is durable, the second has not begun */
	assert_int_equal(one.answers, 0);
	assert_int_equal(skv_core_start(a.core, &start, &started, &two.arena, &two.err, &two.done),
			 SKV_PENDING);
	assert_int_equal(skv_cluster_demote(a.cluster, 3000, &a.err), SKV_OK);
	assert_int_equal(one.answers, 1);
	assert_int_equal(one.status, SKV_E_NOT_OWNER);
	assert_int_equal(two.answers, 1);
	assert_int_equal(two.status, SKV_E_NOT_OWNER);
	env_advance(&a, 2999);
	assert_int_equal(skv_cluster_state_get(a.cluster), SKV_CORE_STANDBY);
	env_advance(&a, 1);
	assert_int_equal(skv_cluster_wait_ready(a.cluster, 10000), SKV_OK);
	skv_cluster_tick(a.cluster);
	assert_int_equal(env_match(&a, &more, 1), 0);
	assert_int_equal(env_trim(&a, 0, UINT64_MAX, &n), SKV_OK);
	assert_true(n > 0 && n < 1500); /* the rest */
	env_check(&a);
	env_destroy(&a);
	skv_arena_destroy(&one.arena);
	skv_arena_destroy(&two.arena);
}

/* ---- with threads ---------------------------------------------------------------------------- */

static void threaded(struct env *e, const struct env *a)
{
	env_init(e);
	skv_core_options_init(&e->o);
	e->o.owner_lease_ms = LEASE_MS;
	if (a)
		e->store_options = a->store_options;
	assert_int_equal(skv_store_open(e->ops, &e->store_options, &e->store, &e->err), SKV_OK);
	e->o.store = e->store;
	env_create(e);
}

/* Polls: the standby looks each 200 ms. */
static void sees(struct env *e, const char *leader)
{
	for (int i = 0; i < 500 && strcmp(lead(e).leader, leader) != 0; i++)
		poll(NULL, 0, 10);
	assert_string_equal(lead(e).leader, leader);
}

static void two_managers_change_places(void **state)
{
	struct env a, b;
	char name_a[SKV_OWNER_NAME], name_b[SKV_OWNER_NAME];

	(void)state;
	threaded(&a, NULL);
	assert_int_equal(skv_cluster_wait_ready(a.cluster, 10000), SKV_OK);
	threaded(&b, &a);
	memcpy(name_a, lead(&a).self, sizeof name_a);
	memcpy(name_b, lead(&b).self, sizeof name_b);
	sees(&b, name_a);
	for (int turn = 0; turn < 2; turn++) {
		struct env *from = turn ? &b : &a, *to = turn ? &a : &b;

		assert_int_equal(skv_cluster_demote(from->cluster, 1000, &from->err), SKV_OK);
		assert_int_equal(skv_cluster_may_answer(from->cluster), SKV_E_NOT_OWNER);
		/* a fraction of the lease */
		assert_int_equal(skv_cluster_wait_ready(to->cluster, 5000), SKV_OK);
		sees(from, turn ? name_a : name_b);
		assert_int_equal(skv_cluster_state_get(from->cluster), SKV_CORE_STANDBY);
	}
	skv_cluster_shutdown(b.cluster);
	skv_cluster_shutdown(a.cluster);
	env_destroy(&b);
	env_destroy(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(demotion_hands_over),
		cmocka_unit_test(what_waits_is_told),
		cmocka_unit_test(two_managers_change_places),
	};

	env_quiet();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
