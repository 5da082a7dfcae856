/*
 * test_core_owner.c - ownership, and a machine that went down without a clean stop.
 */
#include "core_env.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KB 1024ull
#define BOOT_A "aaaaaaaa-0000-4000-8000-000000000001"
#define BOOT_B "bbbbbbbb-0000-4000-8000-000000000002"

/* A second manager on the same store, with a clock of its own reading. */
static void second(struct env *a, struct env *b)
{
	env_init(b);
	b->store_options = a->store_options;
	skv_fake_clock_advance(&b->clock,
			       skv_now_ms(&a->clock.clock) - skv_now_ms(&b->clock.clock));
	assert_int_equal(skv_store_open(b->ops, &b->store_options, &b->store, &b->err), SKV_OK);
	b->o.store = b->store;
	b->o.owner_lease_ms = a->o.owner_lease_ms;
	env_create(b);
}

static void the_stopped_owner_neither_answers_nor_appends(void **state)
{
	struct env a, b;
	struct skv_key k[4];
	struct skv_lookup_res r;
	struct skv_start_res s;
	struct skv_finish_res f;
	char session[33];

	(void)state;
	env_init(&a);
	env_open(&a);
	env_make(&a, 4096 * KB, 64 * KB, 4 * KB);
	env_keys(k, 4, 1, 1);
	env_put(&a, k, 2);
	assert_int_equal(env_start(&a, &(struct env_start){ .keys = k + 2, .n = 2 }, &s), SKV_OK);
	memcpy(session, s.session, sizeof session);

	second(&a, &b); /* and `a` is stopped: nobody ticks it */
	skv_fake_clock_advance(&b.clock, 100);
	assert_int_equal(skv_cluster_wait_ready(b.cluster, 10000), SKV_OK);
	skv_cluster_tick(b.cluster);
	assert_int_equal(env_match(&b, k, 4), 2);
	/* the session of a goes on here */
	assert_int_equal(env_finish(&b, session, NULL, 0, &f), SKV_OK);

	skv_fake_clock_advance(&a.clock, 100); /* `a` wakes up */
	assert_int_equal(skv_cluster_may_answer(a.cluster), SKV_E_NOT_OWNER);
	assert_int_equal(env_lookup(&a, k, 2, SKV_LOOKUP_PREFIX, 0, &r), SKV_E_NOT_OWNER);
	assert_int_equal(env_start(&a, &(struct env_start){ .keys = k, .n = 2 }, &s),
			 SKV_E_NOT_OWNER);
	skv_cluster_tick(a.cluster); /* manager a detects that it was fenced */
	skv_cluster_tick(a.cluster);
	assert_int_not_equal(skv_cluster_state_get(a.cluster), SKV_CORE_STOPPED);
	env_crash(&a);

	env_crash(&b);
	env_open(&b);
	assert_int_equal(env_match(&b, k, 4), 4);
	env_check(&b);
	env_destroy(&b);
	env_destroy(&a);
}

/* The owner's clock says that its lease still runs, but the store knows better. */
static void a_fenced_append_makes_a_standby(void **state)
{
	struct env a;
	struct skv_key k[2];
	struct skv_start_res s;
	int rc;

	(void)state;
	env_init(&a);
	a.o.owner_lease_ms = 60000;
	a.faulty = true;
	env_open(&a);
	env_make(&a, 4096 * KB, 64 * KB, 4 * KB);
	env_keys(k, 2, 1, 1);
	env_put(&a, k, 1);
	{
		struct skv_fault rule = { .kind = SKV_FAULT_ERROR, .call = "append", .at = 1,
					  .times = 1,
					  .status = SKV_E_FENCED };

		skv_fault_store_set(a.store, &rule);
	}
	rc = env_start(&a, &(struct env_start){ .keys = k + 1, .n = 1 }, &s);
	assert_int_equal(rc, SKV_E_NOT_OWNER);
	/* manager a acquires again: nobody else did */
	assert_int_equal(skv_cluster_wait_ready(a.cluster, 10000), SKV_OK);
	skv_cluster_tick(a.cluster);
	assert_int_equal(env_match(&a, k, 2), 1);
	env_check(&a);
	env_destroy(&a);
}

static void note_status(void *ctx, int status) { *(int *)ctx = status; }

/* While the store does not answer, the lease of an owner ends. If nobody has taken over by then,
 * its batch is written, and the partition stays loaded. */
static void an_ended_lease_stops_no_batch(void **state)
{
	const struct skv_fault rule = { .kind = SKV_FAULT_ERROR, .call = "renew", .at = 1,
					.times = 1,
					.status = SKV_E_STORE_IO };
	int status = SKV_PENDING;
	const struct skv_done done = { note_status, &status };
	struct skv_start_req req = { .tenant = "t", .instance = "i", .request_id = "",
				     .n_keys = 1 };
	struct skv_start_res s;
	struct skv_core_counters counters;
	struct skv_key k[2];
	struct env a;

	(void)state;
	env_init(&a);
	a.o.owner_lease_ms = 60000;
	a.faulty = true;
	env_open(&a);
	env_make(&a, 4096 * KB, 64 * KB, 4 * KB);
	env_keys(k, 2, 1, 1);
	env_put(&a, k, 1);
	skv_fault_store_set(a.store, &rule);
	req.keys = k + 1;
	assert_int_equal(skv_core_start(a.core, &req, &s, &a.arena, &a.err, &done), SKV_PENDING);
	skv_fake_clock_advance(&a.clock, 60001);
	assert_int_equal(skv_cluster_may_answer(a.cluster), SKV_E_NOT_OWNER);
	skv_cluster_tick(a.cluster);
	assert_int_equal(status, SKV_OK);
	skv_cluster_tick(a.cluster);
	assert_int_equal(skv_cluster_may_answer(a.cluster), SKV_OK);
	skv_cluster_counters_get(a.cluster, &counters);
	assert_int_equal(counters.takeovers, 1);
	assert_int_equal(counters.leases_lost, 1);
	assert_int_equal(counters.lease_failures, 1);
	assert_int_equal(counters.store_refusals, 0);
	env_check(&a);
	env_destroy(&a);
}

static void let_a_second_pass(void *ctx, const char *call)
{
	(void)call;
	skv_fake_clock_advance(ctx, 1000);
}

static void a_slow_append_is_counted(void **state)
{
	struct skv_fault rule = { .kind = SKV_FAULT_CALL, .call = "append", .at = 1, .times = 1,
				  .fn = let_a_second_pass };
	struct skv_core_counters counters;
	struct skv_key k[2];
	struct env a;

	(void)state;
	env_init(&a);
	a.o.owner_lease_ms = 60000;
	a.faulty = true;
	rule.ctx = &a.clock;
	env_open(&a);
	env_make(&a, 4096 * KB, 64 * KB, 4 * KB);
	env_keys(k, 2, 1, 1);
	env_put(&a, k, 1);
	skv_cluster_counters_get(a.cluster, &counters);
	assert_int_equal(counters.commit_stalls, 0);
	skv_fault_store_set(a.store, &rule);
	env_put(&a, k + 1, 1);
	skv_cluster_counters_get(a.cluster, &counters);
	assert_int_equal(counters.commit_stalls, 1);
	env_destroy(&a);
}

static void note_cause(void *ctx, int why) { *(int *)ctx = why; }

/* Ticks of 50 ms, as the owner thread makes them; returns the ms until *told is set. */
static uint32_t tick_until(struct env *a, const int *told)
{
	uint32_t ms = 0;

	for (; !*told && ms < 60000; ms += 50) {
		skv_cluster_tick(a->cluster);
		skv_fake_clock_advance(&a->clock, 50);
	}
	return ms;
}

/* A store that refuses the acquire permanently is not asked for ever, nor for nothing: callers
 * learn that it is the store, whoever runs the manager that a restart does not help, and it goes on
 * when somebody has repaired it. What may pass by itself is waited for. */
static void a_barred_store_is_not_asked_for_ever(void **state)
{
	static const int lasting[] = { SKV_E_UNAVAILABLE, SKV_E_CORRUPT, SKV_E_FORBIDDEN };
	const struct skv_fault none = { .kind = SKV_FAULT_NONE };
	struct skv_fault rule = { .kind = SKV_FAULT_ERROR, .call = "acquire" };
	struct skv_core_counters counters;
	int why;

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct env a;

		env_init(&a);
		a.faulty = true;
		a.o.hopeless = note_cause;
		a.o.hopeless_ctx = &why;
		env_open(&a);
		env_make(&a, 4096 * KB, 64 * KB, 4 * KB);
		rule.status = i < 3 ? lasting[i] : SKV_E_STORE_IO;
		why = 0;
		skv_fault_store_set(a.store, &rule);
		assert_int_equal(skv_cluster_demote(a.cluster, 0, &a.err), SKV_OK);
		tick_until(&a, &why);
		assert_int_equal(why, i < 3 ? SKV_E_UNAVAILABLE : 0);
		skv_cluster_counters_get(a.cluster, &counters);
		assert_int_equal(counters.store_refusals, i < 3 ? 10 : 0);
		assert_true(counters.lease_failures >= 10);
		assert_int_equal(skv_cluster_ready(a.cluster, &a.err),
				 i < 3 ? SKV_E_NOT_READY : SKV_E_NOT_OWNER);
		assert_int_equal(strstr(a.err.message, "metadata store cannot be used") != NULL,
				 i < 3);
		skv_fault_store_set(a.store, &none);
		for (int n = 0; n < 40; n++) {
			skv_cluster_tick(a.cluster);
			skv_fake_clock_advance(&a.clock, a.o.owner_lease_ms / 10);
		}
		assert_int_equal(skv_cluster_ready(a.cluster, &a.err), SKV_OK);
		env_destroy(&a);
	}
}

/* Asked to step down: the other one leads, sessions and all, and this one stays out
 * as long as it was told to. */
static void a_demoted_owner_stays_out(void **state)
{
	char self[SKV_OWNER_NAME], leader[SKV_OWNER_NAME], other[SKV_OWNER_NAME];
	struct skv_start_res s;
	struct skv_finish_res f;
	struct env a, b;
	struct skv_key k[2];
	char session[33];
	uint64_t left;

	(void)state;
	env_init(&a);
	a.o.owner_lease_ms = 2000;
	env_open(&a);
	env_make(&a, 4096 * KB, 64 * KB, 4 * KB);
	env_keys(k, 2, 1, 1);
	assert_int_equal(env_start(&a, &(struct env_start){ .keys = k, .n = 2 }, &s), SKV_OK);
	memcpy(session, s.session, sizeof session);
	second(&a, &b);
	assert_int_equal(skv_cluster_demote(b.cluster, 1000, &b.err), SKV_E_NOT_OWNER);
	skv_cluster_tick(b.cluster);
	skv_cluster_leader(b.cluster, other, leader, &left);
	assert_int_equal(left, 0);
	skv_cluster_leader(a.cluster, self, other, &left);
	assert_string_equal(self, other);
	assert_string_equal(self, leader);
	assert_in_range(left, 1, 2000);

	assert_int_equal(skv_cluster_demote(a.cluster, 60000, &a.err), SKV_OK);
	assert_int_equal(skv_cluster_may_answer(a.cluster), SKV_E_NOT_OWNER);
	assert_int_equal(skv_cluster_demote(a.cluster, 60000, &a.err), SKV_E_NOT_OWNER);
	skv_cluster_tick(a.cluster);
	skv_cluster_leader(a.cluster, self, leader, &left);
	assert_string_equal(leader, ""); /* nobody yet */
	assert_int_equal(left, 0);
	skv_cluster_tick(b.cluster);
	assert_int_equal(skv_cluster_wait_ready(b.cluster, 10000), SKV_OK);
	assert_int_equal(env_finish(&b, session, NULL, 0, &f), SKV_OK);
	skv_cluster_tick(a.cluster);
	skv_cluster_leader(a.cluster, self, leader, &left);
	skv_cluster_leader(b.cluster, self, other, &left);
	assert_string_equal(leader, other);

	env_shutdown(&b); /* nobody leads now, but `a` still stays out */
	env_destroy(&b);
	skv_cluster_tick(a.cluster);
	assert_int_equal(skv_cluster_state_get(a.cluster), SKV_CORE_STANDBY);
	env_advance(&a, 60000);
	assert_int_equal(skv_cluster_wait_ready(a.cluster, 10000), SKV_OK);
	skv_cluster_tick(a.cluster);
	assert_int_equal(env_match(&a, k, 2), 2);
	assert_int_equal(skv_cluster_owner_seen_ms(a.cluster), skv_wall_ms(&a.clock.clock));
	env_check(&a);
	env_destroy(&a);
}

struct machine {
	struct env e;
	char root[64];
};

/* A machine with a real directory as storage. */
static void boot(struct machine *m, enum skv_durability durability)
{
	struct skv_storage_spec st = { .name = "s", .type = "file", .root = m->root,
				       .capacity = 1024 * KB,
				       .unit = 64 * KB, .file_size = 1024 * KB, .enabled = true };
	struct skv_spec spec = { "kv", 4 * KB };

	snprintf(m->root, sizeof m->root, "/tmp/skv-owner-XXXXXX");
	assert_non_null(mkdtemp(m->root));
	env_init(&m->e);
	m->e.o.boot_id = BOOT_A;
	m->e.store_options.durability = durability;
	env_open(&m->e);
	assert_int_equal(skv_cluster_storage_put(m->e.cluster, &st, SKV_PUT_ANY, NULL, &m->e.err),
			 SKV_OK);
	assert_int_equal(env_group(&m->e, "g", 0, "s"), SKV_OK);
	assert_int_equal(env_instance(&m->e, "i", "g", &spec, 1), SKV_OK);
}

static void power_off(struct machine *m)
{
	DIR *d = opendir(m->root);
	struct dirent *f;
	char path[400];

	env_destroy(&m->e);
	while (d && (f = readdir(d)) != NULL) {
		snprintf(path, sizeof path, "%s/%s", m->root, f->d_name);
		unlink(path);
	}
	closedir(d);
	rmdir(m->root);
}

static void put_summed(struct env *e, const struct skv_key *k)
{
	struct skv_start_res s;
	struct skv_finish_res f;
	uint64_t sum = 7;
	char session[33];

	assert_int_equal(env_start(e, &(struct env_start){ .keys = k, .n = 1 }, &s), SKV_OK);
	memcpy(session, s.session, sizeof session);
	assert_int_equal(env_finish(e, session, &sum, 1, &f), SKV_OK);
}

static void power_loss_drops_blocks_without_checksum(void **state)
{
	struct machine m;
	struct skv_key k[2];
	struct skv_lookup_res r;

	(void)state;
	boot(&m, SKV_DURABILITY_FULL);
	env_keys(k, 2, 1, 1);
	put_summed(&m.e, &k[0]);
	env_put(&m.e, &k[1], 1);
	env_crash(&m.e); /* of the process: nothing is lost */
	env_open(&m.e);
	assert_int_equal(env_match(&m.e, k, 2), 2);
	env_crash(&m.e); /* of the machine */
	m.e.o.boot_id = BOOT_B;
	env_open(&m.e);
	assert_int_equal(env_lookup(&m.e, k, 2, SKV_LOOKUP_BATCH, 0, &r), SKV_OK);
	assert_true(r.hit[0] && !r.hit[1]);
	env_check(&m.e);
	env_shutdown(&m.e); /* a clean stop, then a boot: nothing is dropped */
	m.e.o.boot_id = BOOT_A;
	env_open(&m.e);
	assert_int_equal(env_match(&m.e, k, 1), 1);
	power_off(&m);
}

/* FULL: what a client was told is in the journal, so free slots are free. NORMAL: the journal may
 * end early, and a writer that we forgot may still write into a slot that looks free. */
static void power_loss_in_normal_freezes_free_slots(void **state)
{
	struct skv_key k[2];
	struct skv_start_res s;

	(void)state;
	for (int normal = 0; normal <= 1; normal++) {
		struct machine m;
		int rc;

		boot(&m, normal ? SKV_DURABILITY_NORMAL : SKV_DURABILITY_FULL);
		env_keys(k, 2, 1, 1);
		put_summed(&m.e, &k[0]);
		env_crash(&m.e);
		m.e.o.boot_id = BOOT_B;
		env_open(&m.e);
		rc = env_start(&m.e, &(struct env_start){ .keys = k + 1, .n = 1 }, &s);
		if (normal)
			assert_int_equal(rc, SKV_E_NO_SPACE);
		else
			assert_int_equal(rc, SKV_OK);
		env_advance(&m.e, m.e.o.session_max_ms + m.e.o.grace_ms + 1);
		if (normal)
			assert_int_equal(env_start(&m.e,
						   &(struct env_start){ .keys = k + 1, .n = 1 },
						   &s), SKV_OK);
		power_off(&m);
	}
}

/* Another boot's clock says nothing: the whole horizon counts again. */
static void leases_outlive_a_reboot(void **state)
{
	struct machine m;
	struct skv_key k[240], more;
	struct skv_lookup_res r;
	struct skv_start_res s;

	(void)state;
	boot(&m, SKV_DURABILITY_FULL);
	env_keys(k, 240, 1, 1);
	for (int i = 0; i < 240; i++)
		put_summed(&m.e, &k[i]);
	assert_int_equal(env_lookup(&m.e, k, 240, SKV_LOOKUP_PREFIX, 10000, &r), SKV_OK);
	env_crash(&m.e);
	m.e.o.boot_id = BOOT_B;
	env_open(&m.e);
	for (int i = 0; i < 20; i++) {
		/* free slots are soon gone; leased ones are not given */
		more = (struct skv_key){ 9, 100 + (uint64_t)i };
		if (env_start(&m.e, &(struct env_start){ .keys = &more, .n = 1 }, &s) != SKV_OK)
			break;
	}
	assert_int_equal(env_match(&m.e, k, 240), 240);
	env_advance(&m.e, 21000);
	more = (struct skv_key){ 9, 200 };
	assert_int_equal(env_start(&m.e, &(struct env_start){ .keys = &more, .n = 1 }, &s), SKV_OK);
	power_off(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_stopped_owner_neither_answers_nor_appends),
		cmocka_unit_test(a_fenced_append_makes_a_standby),
		cmocka_unit_test(an_ended_lease_stops_no_batch),
		cmocka_unit_test(a_slow_append_is_counted),
		cmocka_unit_test(a_barred_store_is_not_asked_for_ever),
		cmocka_unit_test(a_demoted_owner_stays_out),
		cmocka_unit_test(power_loss_drops_blocks_without_checksum),
		cmocka_unit_test(power_loss_in_normal_freezes_free_slots),
		cmocka_unit_test(leases_outlive_a_reboot),
	};

	env_quiet();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
