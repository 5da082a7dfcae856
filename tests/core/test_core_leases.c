/*
 * test_core_leases.c - leases over restarts, and the cap on them: what a clean stop and a kill -9
 * leave behind, what is journaled for it, how much counts as leased.
 */
#include "core_env.h"

#include <stdlib.h>
#include <string.h>

#include <skv/mem.h>

#include <lock/lock.h>
#include <model/leases.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/queue.h>
#include <journal/record.h>

#define PAGES 20000u
#define BATCH 128u
#define READ_MS 30000u /* the hf3fs API's lease */
#define BOOT_A "aaaaaaaa-0000-4000-8000-000000000001"
#define BOOT_B "bbbbbbbb-0000-4000-8000-000000000002"

/* The leases that readers were told for each page. */
static uint64_t leased_until[PAGES];

/* A manager with its own settings, not those of other tests. */
static void open_as_shipped(struct env *e, uint64_t pages)
{
	struct skv_core_options o;

	env_init(e);
	skv_core_options_init(&o);
	e->o.lease_default_ms = o.lease_default_ms;
	e->o.lease_max_ms = o.lease_max_ms;
	e->o.session_default_ms = o.session_default_ms;
	e->o.session_max_ms = o.session_max_ms;
	e->o.leased_percent = o.leased_percent;
	e->o.open_percent = o.open_percent;
	e->o.free_percent = o.free_percent;
	e->o.boot_id = BOOT_A;
	env_open(e);
	env_make_pages(e, pages);
	memset(leased_until, 0, sizeof leased_until);
}

static uint64_t now_of(const struct env *e) { return skv_now_ms(&e->clock.clock); }

/* Reserves and confirms; returns how many pages were granted. None of them may
 * be promised to a reader. */
static uint32_t put_pages(struct env *e, uint64_t hi, uint64_t first, uint32_t n)
{
	struct skv_key key[BATCH];
	uint64_t page[BATCH];
	struct skv_start_res s;
	struct skv_partial_req q = { .tenant = "t", .instance = "i", .keys = key, .offsets = page };
	struct skv_partial_res r;

	env_keys(key, n, hi, first);
	assert_int_equal(env_start(e,
				   &(struct env_start){ .keys = key, .n = n, .fit = true,
							.anonymous = true }, &s), SKV_OK);
	for (uint32_t i = 0; i < n; i++) {
		if (s.outcome[i] != SKV_START_WRITE)
			continue;
		page[q.n_commit] = s.loc[i].offset;
		key[q.n_commit] = key[i];
		if (leased_until[page[q.n_commit]] > now_of(e))
			fail_msg("page %llu is given away %llu ms before its readers are done",
				 (unsigned long long)page[q.n_commit],
				 (unsigned long long)(leased_until[page[q.n_commit]] - now_of(e)));
		q.n_commit++;
	}
	if (q.n_commit == 0)
		return 0;
	assert_int_equal(env_partial(e, &q, &r), SKV_OK);
	assert_int_equal(r.committed, q.n_commit);
	return q.n_commit;
}

static void fill(struct env *e, uint64_t pages)
{
	for (uint64_t at = 0; at < pages; at += BATCH) {
		put_pages(e, 1, at, (uint32_t)(pages - at < BATCH ? pages - at : BATCH));
		env_advance(e, 1);
	}
}

static uint32_t look(struct env *e, uint64_t hi, uint64_t first, uint32_t n, uint32_t ms)
{
	struct skv_key key[BATCH];
	struct skv_lookup_req q = { .tenant = "t", .instance = "i", .mode = SKV_LOOKUP_BATCH,
				    .keys = key, .n_keys = n,
				    .lease_ms = ms, .only_leased = true };
	struct skv_lookup_res r;

	env_keys(key, n, hi, first);
	assert_int_equal(env_lookup_req(e, &q, &r), SKV_OK);
	for (uint32_t i = 0; i < n; i++)
		if (r.hit[i] && leased_until[r.loc[i].offset] < now_of(e) + r.lease_ms)
			leased_until[r.loc[i].offset] = now_of(e) + r.lease_ms;
	return r.matched;
}

/* A full space whose newest 6,400 keys were looked up, the last of them just now. */
static void full_and_read(struct env *e)
{
	open_as_shipped(e, PAGES);
	fill(e, PAGES);
	for (uint64_t at = PAGES - 50 * BATCH; at < PAGES; at += BATCH) {
		assert_true(look(e, 1, at, BATCH, READ_MS) >= BATCH - 1);
		env_advance(e, 100);
	}
}

static void expect_a_hundred_writes(struct env *e, uint64_t hi)
{
	struct skv_key key[BATCH];

	for (uint64_t i = 0; i < 100; i++) {
		assert_int_equal(put_pages(e, hi, i * BATCH, BATCH), BATCH);
		env_advance(e, 20);
	}
	for (uint64_t i = 0; i < 100; i++) {
		env_keys(key, BATCH, hi, i * BATCH);
		assert_int_equal(env_match(e, key, BATCH), BATCH);
	}
	env_check(e);
}

/* Asserts that pages being read still exist under their lease. */
static void expect_read_stays(struct env *e)
{
	struct skv_key key[BATCH];

	env_keys(key, BATCH, 1, PAGES - BATCH);
	assert_int_equal(env_match(e, key, BATCH), BATCH);
}

static void reopen(struct env *e, bool clean, const char *boot)
{
	if (clean)
		env_shutdown(e);
	else
		env_crash(e);
	e->o.boot_id = boot;
	env_open(e);
}

/* ---- restarts -------------------------------------------------------------------------------- */

static void a_full_space_is_writable_a_second_after_a_clean_stop(void **state)
{
	(void)state;
	for (int boot = 0; boot < 2; boot++) {
		struct env e;

		full_and_read(&e);
		reopen(&e, true, boot ? BOOT_B : BOOT_A);
		env_advance(&e, 1000);
		expect_a_hundred_writes(&e, 2);
		expect_read_stays(&e);
		/* once more: leases that were only handed on */
		reopen(&e, true, boot ? BOOT_B : BOOT_A);
		expect_a_hundred_writes(&e, 3);
		expect_read_stays(&e);
		env_destroy(&e);
	}
}

static void a_full_space_is_writable_after_a_kill_when_its_readers_are_done(void **state)
{
	(void)state;
	for (int boot = 0; boot < 2; boot++) {
		struct skv_key old[BATCH];
		struct env e;

		full_and_read(&e);
		env_keys(old, BATCH, 1, PAGES / 10);
		assert_int_equal(env_match(&e, old, BATCH), BATCH);
		reopen(&e, false, boot ? BOOT_B : BOOT_A);
		for (uint64_t i = 0; i < 3; i++) /* free slots are granted meanwhile */
			assert_int_equal(put_pages(&e, 4, i * BATCH, BATCH), BATCH);
		for (uint64_t i = 3; i < 30; i++) {
			/* and what was written since, but nothing else */
			put_pages(&e, 4, i * BATCH, BATCH);
			env_advance(&e, 900);
		}
		assert_int_equal(env_match(&e, old, BATCH), BATCH);
		env_advance(&e, READ_MS + 3000 - 27 * 900);
		expect_a_hundred_writes(&e, 2);
		env_destroy(&e);
	}
}

/* A kill soon after a clean stop, and a clean stop soon after a kill. */
static void leases_outlive_any_two_restarts(void **state)
{
	(void)state;
	for (int how = 0; how < 4; how++) {
		struct env e;

		full_and_read(&e);
		reopen(&e, how & 1, BOOT_A);
		assert_true(look(&e, 1, PAGES - 60 * BATCH, BATCH, READ_MS) > 0);
		env_advance(&e, 500);
		reopen(&e, how & 2, BOOT_A);
		for (uint64_t i = 0; i < 200; i++) {
			put_pages(&e, 2, i * BATCH, BATCH); /* takes no leased page */
			env_advance(&e, 250);
		}
		for (uint64_t i = 0; i < 100; i++)
			assert_int_equal(put_pages(&e, 3, i * BATCH, BATCH), BATCH);
		env_destroy(&e);
	}
}

static uint64_t checkpoints(const struct env *e)
{
	struct skv_core_counters c;

	skv_cluster_counters_get(e->cluster, &c);
	return c.checkpoints;
}

/* Writes and deletes other pages until a checkpoint has replaced the journal. */
static void write_checkpoint(struct env *e)
{
	const uint64_t before = checkpoints(e);
	struct skv_key key[BATCH];
	uint32_t n;

	for (uint64_t i = 0; checkpoints(e) == before; i++) {
		assert_true(i < 1000);
		env_keys(key, BATCH, 3, i * BATCH);
		put_pages(e, 3, i * BATCH, BATCH);
		assert_int_equal(env_delete(e, key, BATCH, &n), SKV_OK);
		env_advance(e, 20);
	}
}

/* The outcome of an append is unknown, so the partition is loaded again in the same process. */
static void fail_append(struct env *e)
{
	struct skv_fault f = { .call = "append", .at = 1, .times = 1, .status = SKV_E_STORE_IO,
			       .kind = SKV_FAULT_UNKNOWN_AFTER };
	struct skv_key key = { 9, 9 };
	struct skv_start_res s;

	skv_fault_store_set(e->store, &f);
	assert_int_equal(env_start(e, &(struct env_start){ .keys = &key, .n = 1 }, &s),
			 SKV_E_UNKNOWN_OUTCOME);
	f.kind = SKV_FAULT_NONE;
	skv_fault_store_set(e->store, &f);
	for (int i = 0; i < 100 && skv_cluster_state_get(e->cluster) != SKV_CORE_READY; i++)
		env_advance(e, 10);
	assert_int_equal(skv_cluster_state_get(e->cluster), SKV_CORE_READY);
}

/* The leases that a clean stop stored of each block are among what the next checkpoint replaces. */
static void a_checkpoint_after_a_clean_stop_keeps_the_leases(void **state)
{
	(void)state;
	for (int how = 0; how < 8; how++) {
		struct skv_key key[BATCH];
		struct env e;
		uint32_t n;

		open_as_shipped(&e, 1000);
		e.o.journal_limit = 16384;
		e.faulty = true;
		fill(&e, BATCH);
		assert_int_equal(look(&e, 1, 0, BATCH, READ_MS), BATCH);
		reopen(&e, true, how & 1 ? BOOT_B : BOOT_A);
		if (how & 2)
			reopen(&e, true, BOOT_A); /* leases that were only handed on */
		write_checkpoint(&e);
		env_check(&e);
		if (how & 4)
			reopen(&e, false, e.o.boot_id);
		else
			fail_append(&e);
		env_keys(key, BATCH, 1, 0);
		assert_int_equal(env_delete(&e, key, BATCH, &n), SKV_OK);
		assert_int_equal(n, BATCH);
		for (uint64_t i = 0; i < 16; i++) /* takes no leased page */
			put_pages(&e, 2, i * BATCH, BATCH);
		env_advance(&e, READ_MS + 3000);
		for (uint64_t i = 0; i < 7; i++) /* and all of them afterwards */
			assert_int_equal(put_pages(&e, 4, i * BATCH, BATCH), BATCH);
		env_destroy(&e);
	}
}

/* A clear just after a clean stop holds what is leased, and nothing else. */
static void a_clear_after_a_clean_stop_knows_the_leases(void **state)
{
	struct skv_stats st;
	struct env e;
	uint64_t n;

	(void)state;
	open_as_shipped(&e, 1000);
	fill(&e, 900);
	assert_int_equal(look(&e, 1, 0, 100, READ_MS), 100);
	reopen(&e, true, BOOT_A);
	assert_int_equal(env_clear(&e, NULL, &n), SKV_OK);
	assert_int_equal(n, 900);
	env_advance(&e, 20);
	env_stats(&e, &st);
	assert_int_equal(st.storages[0].quarantined_bytes, 100);
	reopen(&e, false, BOOT_A);
	env_advance(&e, READ_MS);
	env_stats(&e, &st);
	assert_int_equal(st.storages[0].quarantined_bytes, 0);
	env_destroy(&e);
}

/* A storage of its own, with pages of its own, whose readers are done a
 * second after their lookup. */
static void each_instance_has_its_own_horizon(void **state)
{
	struct skv_storage_spec s = { .name = "s2", .type = "external", .root = "",
				      .capacity = 1000, .enabled = true };
	struct skv_spec one = { "page", 1 };
	struct skv_key key[BATCH], more[BATCH];
	struct skv_lookup_req q = { .tenant = "t", .instance = "i2", .mode = SKV_LOOKUP_BATCH,
				    .keys = key, .n_keys = BATCH,
				    .lease_ms = 500, .only_leased = true };
	struct skv_lookup_res r;
	struct skv_start_res started;
	struct skv_finish_res f;
	struct env e;

	(void)state;
	open_as_shipped(&e, 1000);
	assert_int_equal(skv_cluster_storage_put(e.cluster, &s, SKV_PUT_ANY, NULL, &e.err), SKV_OK);
	assert_int_equal(env_group(&e, "g2", 0, "s2"), SKV_OK);
	assert_int_equal(env_instance(&e, "i2", "g2", &one, 1), SKV_OK);
	env_keys(key, BATCH, 7, 0);
	for (uint64_t at = 0; at + BATCH <= 1000; at += BATCH) {
		char session[SKV_SESSION_ID_HEX + 1];

		env_keys(key, BATCH, 7, at);
		assert_int_equal(env_start(&e,
					   &(struct env_start){ .instance = "i2", .keys = key,
								.n = BATCH }, &started), SKV_OK);
		memcpy(session, started.session, sizeof session);
		assert_int_equal(env_finish(&e, session, NULL, 0, &f), SKV_OK);
	}
	fill(&e, 900);
	assert_int_equal(look(&e, 1, 0, 100, 60000), 100);
	env_keys(key, BATCH, 7, 0);
	assert_int_equal(env_lookup_req(&e, &q, &r), SKV_OK);
	assert_int_equal(r.matched, BATCH);
	reopen(&e, false, BOOT_A);
	env_advance(&e, 500 + 3000);
	for (uint64_t at = 0; at < 3; at++) { /* more may not be open at a time */
		env_keys(more, BATCH, 8, at * BATCH);
		assert_int_equal(env_start(&e,
					   &(struct env_start){ .instance = "i2", .keys = more,
								.n = BATCH }, &started), SKV_OK);
	}
	env_destroy(&e);
}

/* ---- what is journaled ----------------------------------------------------------------------- */

static uint64_t records(struct env *e)
{
	struct skv_core_counters c;

	skv_cluster_counters_get(e->cluster, &c);
	return c.commit_records;
}

static void lookups_cost_a_record_a_second_at_most(void **state)
{
	struct env e;
	uint64_t before;

	(void)state;
	open_as_shipped(&e, 1000);
	fill(&e, 900);
	assert_int_equal(look(&e, 1, 0, 100, READ_MS), 100);
	before = records(&e);
	for (int i = 0; i < 2000; i++) { /* 20 s */
		assert_int_equal(look(&e, 1, (uint64_t)i % 800, 100, READ_MS), 100);
		env_advance(&e, 10);
	}
	assert_true(records(&e) - before <= 21);
	/* The horizon is kept ready for who comes back soon; nothing is
	 * written where nobody looks. */
	env_advance(&e, 5000);
	before = records(&e);
	assert_int_equal(look(&e, 1, 0, 100, READ_MS), 100);
	assert_true(records(&e) - before <= 1);
	for (int i = 0; i < 700; i++)
		env_advance(&e, 100);
	before = records(&e);
	for (int i = 0; i < 600; i++)
		env_advance(&e, 100);
	assert_int_equal(records(&e), before);
	env_destroy(&e);
}

/* docs/internals/ON_DISK.md: stores must be readable by what comes later. */
static void golden_bytes(void **state)
{
	static const uint8_t horizons[] = { 0x11, 0,    0,    0, 10, 1, 0, 0, 7, 0,   0,
					    0,    0x10, 0x27, 0, 0,  0, 0, 0, 0, 0x58 };
	struct instance inst = { .id = 7 };
	struct horizon h = { &inst, 10000 };
	struct skv_buf b = { 0 };
	uint64_t sum;

	(void)state;
	record_horizons(&b, &h, 1, 10000 - 0x58);
	assert_int_equal(b.len, sizeof horizons + 8);
	assert_memory_equal(b.data, horizons, sizeof horizons);
	sum = skv_checksum(b.data + 4, sizeof horizons - 4);
	assert_memory_equal(b.data + sizeof horizons, &sum, 8);
	skv_buf_destroy(&b);
}

/* Of the 900 pages of the first filling. */
static uint32_t in_place(struct env *e)
{
	struct skv_key key[BATCH];
	uint32_t n = 0;

	for (uint64_t at = 0; at < 900; at += 100) {
		env_keys(key, 100, 1, at);
		n += env_match(e, key, 100);
	}
	return n;
}

/* As the versions before this one wrote: one horizon of all. */
static void an_old_horizon_counts_for_all(void **state)
{
	struct env e;
	struct skv_buf b = { 0 };
	struct partition *p;

	(void)state;
	open_as_shipped(&e, 1000);
	fill(&e, 900);
	p = e.core->partition;
	core_lock(e.core);
	p->old_horizon = now_of(&e) + 120000; /* record_horizon writes it as they did */
	record_link(&b, p, p->end.number);
	record_horizon(&b, p, false);
	core_unlock(e.core);
	assert_int_equal(
		skv_store_append(e.store, 0, p->fence, p->seq + 1, b.data, b.len, 0, &e.err),
		SKV_OK);
	skv_buf_destroy(&b);
	reopen(&e, false, BOOT_A);
	for (uint64_t at = 0; at < 5; at++)
		put_pages(&e, 2, at * BATCH, BATCH);
	env_advance(&e, 110000);
	assert_int_equal(in_place(&e), 900);
	reopen(&e, true, BOOT_A); /* the leases are handed on */
	for (uint64_t at = 5; at < 9; at++)
		put_pages(&e, 2, at * BATCH, BATCH);
	assert_int_equal(in_place(&e), 900);
	env_advance(&e, 10000);
	for (uint64_t at = 0; at < 7; at++)
		assert_int_equal(put_pages(&e, 3, at * BATCH, BATCH), BATCH);
	assert_true(in_place(&e) < 900);
	env_destroy(&e);
}

/* ---- the cap --------------------------------------------------------------------------------- */

/* The ninth reader of a hundred keys each finds them, like the first; and
 * writers find room beside them. */
static void readers_of_nearly_all_find_it(void **state)
{
	struct skv_core_counters c;
	struct env e;

	(void)state;
	open_as_shipped(&e, 1000);
	fill(&e, 900);
	for (int round = 0; round < 40; round++) {
		for (uint64_t i = 0; i < 9; i++)
			assert_int_equal(look(&e, 1, i * 100, 100, READ_MS), 100);
		env_advance(&e, 3000);
		if (round % 10 == 9)
			assert_true(put_pages(&e, 2 + (uint64_t)round, 0, 90) >= 80);
	}
	skv_cluster_counters_get(e.cluster, &c);
	assert_int_equal(c.lease_denied, 0);
	assert_int_equal(c.lease_hidden, 0);
	/* Beyond it keys are told as missing, and counted. */
	for (uint64_t i = 0; i < 9; i++)
		assert_int_equal(look(&e, 1, i * 100, 100, READ_MS), 100);
	assert_true(look(&e, 2 + 39, 0, 90, READ_MS) < 80);
	skv_cluster_counters_get(e.cluster, &c);
	assert_true(c.lease_denied > 0 && c.lease_hidden > 0);
	assert_true(put_pages(&e, 99, 0, 50) > 0); /* the purpose of the limit: writes find room */
	env_destroy(&e);
}

/* Against a list of all leases: never less than is leased, and no more than ended a moment ago. */
static void what_counts_as_leased_is_leased(void **state)
{
	static uint64_t until[900];
	unsigned seed = 5;
	struct env e;

	(void)state;
	open_as_shipped(&e, 1000);
	fill(&e, 900);
	memset(until, 0, sizeof until);
	for (int i = 0; i < 5000; i++) {
		uint32_t first = (uint32_t)rand_r(&seed) % 880,
			 n = 1 + (uint32_t)rand_r(&seed) % 20;
		uint32_t ms = 1500 + (uint32_t)rand_r(&seed) % 50000;
		uint64_t least = 0, most = 0, told;

		if (rand_r(&seed) % 4 == 0 && look(&e, 1, first, n, ms) == n)
			for (uint32_t k = first; k < first + n; k++)
				until[k] = until[k] > now_of(&e) + ms ? until[k] : now_of(&e) + ms;
		env_advance(&e, (uint64_t)rand_r(&seed) % 800);
		if (rand_r(&seed) % 500 == 0)
			env_advance(&e, 200000);
		core_lock(e.core);
		told = leased_bytes(e.core->partition, e.core->partition->inst[0], now_of(&e));
		core_unlock(e.core);
		for (uint32_t k = 0; k < 900; k++) {
			least += until[k] > now_of(&e);
			most += until[k] + (2ull << e.core->partition->lease_shift) > now_of(&e);
		}
		assert_true(told >= least && told <= most);
	}
	env_destroy(&e);
}

/* Blocks of "i" in eviction queues. */
static uint32_t queued(struct env *e)
{
	const struct instance *inst;
	uint32_t n = 0;

	core_lock(e->core);
	inst = e->core->partition->inst[0];
	for (size_t i = 0; i < inst->n_queue; i++)
		for (uint32_t w = 0; w < inst->queue[i]->heaps.n_heaps; w++)
			n += skv_heap_count(&inst->queue[i]->heaps, w);
	core_unlock(e->core);
	return n;
}

#define CHAIN 600u

/* After a restart the tail of a chain waits for the assumed leases, and stands for what is above
 * it; one above that is leased for longer, or less long than its tail, is seen for itself. */
static void a_chain_waits_by_its_tail_after_a_restart(void **state)
{
	static struct skv_key old[CHAIN], fresh[CHAIN];
	struct skv_lookup_res found;
	struct env e;

	(void)state;
	for (int clean = 0; clean < 2; clean++) {
		env_init(&e);
		env_open(&e);
		env_make(&e, 4 << 20, 65536, 4096);
		env_keys(old, CHAIN, 1, 1);
		env_keys(fresh, CHAIN, 2, 1);
		assert_int_equal(env_put(&e, old, CHAIN), CHAIN);
		assert_int_equal(env_lookup(&e, old, 1, SKV_LOOKUP_PREFIX, 5000, &found), SKV_OK);
		if (clean)
			env_shutdown(&e);
		else
			env_crash(&e);
		env_open(&e);
		env_check(&e);
		assert_in_range(queued(&e), 1, 2);
		assert_int_equal(
			env_lookup(&e, old + CHAIN - 1, 1, SKV_LOOKUP_PREFIX, 9000, &found),
			SKV_OK);
		assert_int_equal(found.matched, 1);
		for (int i = 0; i < 30; i++) {
			env_advance(&e, 1000);
			env_check(&e);
		}
		/* None of them is leased any more, all may go: the tail first. */
		assert_int_equal(env_put(&e, fresh, CHAIN), CHAIN);
		env_check(&e);
		assert_int_equal(env_match(&e, fresh, CHAIN), CHAIN);
		assert_in_range(env_match(&e, old, CHAIN), 1, CHAIN - 1);
		env_destroy(&e);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_full_space_is_writable_a_second_after_a_clean_stop),
		cmocka_unit_test(a_full_space_is_writable_after_a_kill_when_its_readers_are_done),
		cmocka_unit_test(leases_outlive_any_two_restarts),
		cmocka_unit_test(a_checkpoint_after_a_clean_stop_keeps_the_leases),
		cmocka_unit_test(a_clear_after_a_clean_stop_knows_the_leases),
		cmocka_unit_test(each_instance_has_its_own_horizon),
		cmocka_unit_test(lookups_cost_a_record_a_second_at_most),
		cmocka_unit_test(golden_bytes),
		cmocka_unit_test(an_old_horizon_counts_for_all),
		cmocka_unit_test(readers_of_nearly_all_find_it),
		cmocka_unit_test(what_counts_as_leased_is_leased),
		cmocka_unit_test(a_chain_waits_by_its_tail_after_a_restart),
	};

	env_quiet();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
