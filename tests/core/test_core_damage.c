/*
 * test_core_damage.c - damaged blocks: reports of readers, findings of movers, and scrubs.
 */
#include "core_env.h"

#include <stdio.h>
#include <string.h>

#define BLOCK 65536u
#define UNIT (1ull << 20)
#define KEYS 20u
#define COPIES "i@fast"

static struct env e;

static void open_plain(void)
{
	env_init(&e);
	env_open(&e);
	env_make(&e, 64 * UNIT, UNIT, BLOCK);
}

/* "i" in storage "s", all KEYS, and copies of them in "m". */
static void open_replicated(void)
{
	const struct skv_spec spec = { "kv", BLOCK };
	const char *fast = "m";
	struct skv_group_spec g = { .name = "fast", .storages = &fast, .n_storages = 1,
				    .tier_of = "g", .replicate = true };

	env_init(&e);
	env_open(&e);
	assert_int_equal(env_storage(&e, "s", 8 * UNIT, UNIT), SKV_OK);
	assert_int_equal(env_storage(&e, "m", 8 * UNIT, UNIT), SKV_OK);
	assert_int_equal(env_group(&e, "g", 0, "s"), SKV_OK);
	assert_int_equal(env_instance(&e, "i", "g", &spec, 1), SKV_OK);
	assert_int_equal(skv_cluster_group_put(e.cluster, &g, SKV_PUT_ANY, NULL, NULL, &e.err),
			 SKV_OK);
	env_put_summed(&e, "i", KEYS, true);
	env_put_summed(&e, COPIES, KEYS, true);
}

static void end(void)
{
	env_check(&e);
	env_destroy(&e);
}

/* Finds one key of the instance. *storage = first letter of where; the generation, 0 = a miss. */
static uint64_t find(const char *instance, uint32_t key, uint32_t lease_ms, char *storage)
{
	struct skv_lookup_req q = { .tenant = "t", .instance = instance, .n_keys = 1,
				    .mode = SKV_LOOKUP_BATCH, .lease_ms = lease_ms,
				    .partial = true };
	struct skv_lookup_res r;
	struct skv_key k;

	env_keys(&k, 1, 1, key);
	q.keys = &k;
	assert_int_equal(env_lookup_req(&e, &q, &r), SKV_OK);
	if (!r.hit[0])
		return 0;
	for (uint32_t s = 0; s < r.n_specs; s++)
		if (r.loc[s].length) {
			if (storage)
				*storage = r.files.v[r.loc[s].file].storage[0];
			return r.loc[s].generation;
		}
	return 0;
}

static struct skv_report_res report_of(const char *instance, uint32_t key, const char *spec,
				       uint64_t generation, bool may_delete)
{
	const struct skv_damage d = { .spec = spec, .generation = generation };
	struct skv_key k;
	struct skv_report_res res;

	env_keys(&k, 1, 1, key);
	assert_int_equal(env_report(&e, &(struct skv_report_req){
					.tenant = "t", .instance = instance, .keys = &k,
					.n_keys = 1, .n_damaged = 1, .damaged = &d,
					.may_delete = may_delete }, &res), SKV_OK);
	assert_int_equal(res.hidden + res.queued + res.stale + res.refused, 1);
	return res;
}

static struct skv_report_res report(uint32_t key, uint64_t generation, bool may_delete)
{
	return report_of("i", key, NULL, generation, may_delete);
}

static struct skv_core_counters counters(void)
{
	struct skv_core_counters c;

	skv_cluster_counters_get(e.cluster, &c);
	return c;
}

static uint64_t quarantined(void)
{
	struct skv_stats st;

	env_stats(&e, &st);
	return st.storages[0].quarantined_bytes;
}

/* ---- reports --------------------------------------------------------------------------------- */

static void a_reported_block_is_gone_for_good(void **state)
{
	uint64_t generation, next;

	(void)state;
	open_plain();
	env_put_summed(&e, "i", KEYS, true);
	generation = find("i", 3, 5000, NULL);
	assert_int_equal(report(3, generation, true).hidden, 1);
	assert_int_equal(find("i", 3, 0, NULL), 0);
	assert_int_equal(quarantined(), BLOCK); /* the reader's lease runs */
	assert_int_equal(report(3, generation, true).stale, 1); /* again: harmless */
	env_crash(&e);
	env_open(&e);
	assert_int_equal(find("i", 3, 0, NULL), 0);
	assert_int_equal(env_put(&e, &(struct skv_key){ 1, 3 }, 1), 1);
	next = find("i", 3, 0, NULL);
	assert_true(next > generation);
	assert_int_equal(report(3, generation, true).stale, 1); /* of its former life */
	assert_int_equal(find("i", 3, 0, NULL), next);
	env_shutdown(&e);
	env_open(&e);
	assert_int_equal(find("i", 3, 0, NULL), next);
	assert_int_equal(counters().damaged_blocks, 0); /* counts begin with the process */
	end();
}

static void one_part_of_a_block_goes_alone(void **state)
{
	const struct skv_spec specs[] = { { "a", BLOCK }, { "b", BLOCK } };
	const struct skv_key key = { 1, 0 };
	const char *b = "b";
	struct skv_lookup_req q = { .tenant = "t", .instance = "two", .keys = &key, .n_keys = 1,
				    .mode = SKV_LOOKUP_BATCH, .partial = true };
	struct skv_lookup_res r;
	struct skv_start_res s;
	uint64_t of_a, of_b;

	(void)state;
	open_plain();
	assert_int_equal(env_instance(&e, "two", "g", specs, 2), SKV_OK);
	env_put_pairs(&e, "two", 0, 3, 77);
	assert_int_equal(env_lookup_req(&e, &q, &r), SKV_OK);
	of_a = r.loc[0].generation;
	of_b = r.loc[1].generation;
	if (of_a == of_b) /* of one start: then the spec says which */
		assert_int_equal(report_of("two", 1, "a", of_a, true).stale, 1);
	assert_int_equal(report_of("two", 0, "b", of_b, true).hidden, 1);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(env_lookup_req(&e, &q, &r), SKV_OK);
		assert_true(r.hit[0] && r.loc[0].length && !r.loc[1].length);
		env_check(&e);
		env_crash(&e);
		env_open(&e);
	}
	q.partial = false;
	assert_int_equal(env_lookup_req(&e, &q, &r), SKV_OK);
	assert_false(r.hit[0]);
	assert_int_equal(env_start(&e, &(struct env_start){ .instance = "two", .keys = &key, .n = 1,
							    .specs = &b, .n_specs = 1 }, &s),
			 SKV_OK);
	assert_int_equal(s.n_write, 1); /* the spec can be written again, alone */
	end();
}

static void a_block_with_one_part_left_is_evicted_and_deleted(void **state)
{
	const struct skv_spec specs[] = { { "a", BLOCK }, { "b", BLOCK } };
	const struct skv_key key = { 1, 0 };
	struct skv_lookup_req q = { .tenant = "t", .instance = "two", .keys = &key, .n_keys = 1,
				    .mode = SKV_LOOKUP_BATCH, .partial = true };
	struct skv_lookup_res r;
	struct skv_delete_res d;
	struct skv_stats st;

	(void)state;
	for (int deletes = 0; deletes < 2; deletes++) {
		env_init(&e);
		env_open(&e);
		env_make(&e, 4 * UNIT, UNIT, BLOCK);
		assert_int_equal(env_instance(&e, "two", "g", specs, 2), SKV_OK);
		env_put_pairs(&e, "two", 0, 1, 77);
		assert_int_equal(env_lookup_req(&e, &q, &r), SKV_OK);
		assert_int_equal(report_of("two", 0, "a", r.loc[0].generation, true).hidden, 1);
		if (deletes)
			assert_int_equal(env_delete_req(&e, &(struct skv_delete_req){
						.tenant = "t", .instance = "two", .keys = &key,
						.n_keys = 1 }, &d), SKV_OK);
		for (uint32_t i = 1; !deletes && i < 8; i++)
			env_put_pairs(&e, "two", i * 8, 8, 77);
		assert_int_equal(env_lookup_req(&e, &q, &r), SKV_OK);
		assert_false(r.hit[0]);
		env_stats(&e, &st);
		assert_true(st.storages[0].used_bytes <= 4 * UNIT);
		end();
	}
}

static void who_may_not_delete_only_asks_for_a_check(void **state)
{
	struct skv_move_take_res r;
	struct skv_move_finish_res f;
	uint64_t generation[2];
	char id[33];

	(void)state;
	open_plain();
	env_put_summed(&e, "i", KEYS, true);
	for (uint32_t i = 0; i < 2; i++) {
		generation[i] = find("i", i, 0, NULL);
		assert_int_equal(report(i, generation[i], false).queued, 1);
		/* A single request, nevertheless. */
		assert_int_equal(report(i, generation[i], false).queued, 1);
	}
	env_advance(&e, 5000);
	assert_int_equal(find("i", 0, 0, NULL), generation[0]);
	assert_int_equal(env_move_take(&e, 0, 5000, &r), SKV_OK);
	assert_true(r.checks);
	assert_int_equal(r.n, 2);
	memcpy(id, r.move, sizeof id);
	assert_int_equal(env_move_take(&e, 0, 5000, &r), SKV_OK);
	assert_int_equal(r.n, 0); /* a mover has them */
	assert_int_equal(env_check_finish(&e, id, (bool[]){ true, false },
					  (bool[]){ false, true }, 2, &f), SKV_OK);
	assert_int_equal(f.moved, 1);
	assert_int_equal(f.hidden, 1);
	assert_int_equal(find("i", 0, 0, NULL), generation[0]);
	assert_int_equal(find("i", 1, 0, NULL), 0);
	assert_int_equal(counters().damage_refuted, 1);
	assert_int_equal(counters().damaged_blocks, 1);
	assert_int_equal(env_check_finish(&e, id, (bool[]){ true, false },
					  (bool[]){ false, true }, 2, &f), SKV_E_NOT_FOUND);
	end();
}

static void a_check_of_what_was_written_again_hides_nothing(void **state)
{
	struct skv_move_take_res r;
	struct skv_move_finish_res f;
	uint64_t generation;
	uint32_t deleted;
	char id[33];

	(void)state;
	open_plain();
	env_put_summed(&e, "i", 1, true);
	assert_int_equal(report(0, find("i", 0, 0, NULL), false).queued, 1);
	assert_int_equal(env_move_take(&e, 0, 5000, &r), SKV_OK);
	memcpy(id, r.move, sizeof id);
	assert_int_equal(env_delete(&e, &(struct skv_key){ 1, 0 }, 1, &deleted), SKV_OK);
	env_put_summed(&e, "i", 1, true);
	generation = find("i", 0, 0, NULL);
	assert_int_equal(env_check_finish(&e, id, (bool[]){ false }, (bool[]){ true }, 1, &f),
			 SKV_OK);
	assert_int_equal(f.hidden, 0);
	assert_int_equal(find("i", 0, 0, NULL), generation);
	end();
}

/* A reader with broken memory reports all that it reads: most of it is checked first. */
static void reports_are_paced_and_bounded(void **state)
{
	enum { ALL = 5000, SMALL = 4096, MOST = 512, WAIT = 4096 };
	static struct skv_key keys[ALL];
	static uint64_t sums[ALL];
	struct skv_damage d[SKV_MAX_DAMAGED];
	struct skv_report_res sum = { 0 }, res;
	struct skv_lookup_res l;
	struct skv_start_res s;
	struct skv_finish_res f;
	char session[33];

	(void)state;
	env_init(&e);
	env_open(&e);
	env_make(&e, 64 * UNIT, UNIT, SMALL);
	env_keys(keys, ALL, 1, 0);
	for (uint32_t i = 0; i < ALL; i++)
		sums[i] = i;
	assert_int_equal(env_start(&e, &(struct env_start){ .instance = "i", .keys = keys,
							    .n = ALL, .independent = true }, &s),
			 SKV_OK);
	memcpy(session, s.session, sizeof session);
	assert_int_equal(env_finish(&e, session, sums, ALL, &f), SKV_OK);
	for (uint32_t from = 0; from < ALL; from += SKV_MAX_DAMAGED) {
		const uint32_t n = ALL - from < SKV_MAX_DAMAGED ? ALL - from : SKV_MAX_DAMAGED;

		assert_int_equal(env_lookup(&e, keys + from, n, SKV_LOOKUP_BATCH, 0, &l), SKV_OK);
		for (uint32_t i = 0; i < n; i++)
			d[i] = (struct skv_damage){ .key = i, .generation = l.loc[i].generation };
		assert_int_equal(env_report(&e, &(struct skv_report_req){
						.tenant = "t", .instance = "i", .keys = keys + from,
						.n_keys = n, .n_damaged = n, .damaged = d,
						.may_delete = true }, &res), SKV_OK);
		sum.hidden += res.hidden;
		sum.queued += res.queued;
		sum.refused += res.refused;
	}
	assert_in_range(sum.hidden, MOST, MOST + 64); /* each call lets some time pass */
	assert_in_range(sum.queued, 4000, WAIT);
	assert_int_equal(sum.hidden + sum.queued + sum.refused, ALL);
	assert_true(sum.refused > 0);
	assert_int_equal(env_match(&e, keys + ALL - 1, 1), 1);
	end();
}

static void bad_reports_name_what_is_wrong(void **state)
{
	const struct skv_key key = { 1, 0 };
	struct skv_damage d = { .key = 1, .generation = 1 };
	struct skv_report_req q = { .tenant = "t", .instance = "i", .keys = &key, .n_keys = 1,
				    .n_damaged = 1, .damaged = &d, .may_delete = true };
	struct skv_report_res res;

	(void)state;
	open_plain();
	env_put_summed(&e, "i", 1, true);
	assert_int_equal(env_report(&e, &q, &res), SKV_E_INVALID);
	assert_string_equal(e.err.field, "damaged[0].key");
	d = (struct skv_damage){ .spec = "none", .generation = 1 };
	assert_int_equal(env_report(&e, &q, &res), SKV_E_INVALID);
	assert_string_equal(e.err.field, "damaged[0].spec");
	d.spec = "";
	q.tenant = "stranger";
	assert_int_equal(env_report(&e, &q, &res), SKV_E_NOT_FOUND);
	q.tenant = "t";
	q.instance = "none";
	assert_int_equal(env_report(&e, &q, &res), SKV_E_NOT_FOUND);
	end();
}

/* The n-th append fails, or its outcome is unknown: the block is whole, or gone, and a repeat of
 * the report makes it gone. */
static void appends_fail(void **state)
{
	static const enum skv_fault_kind kinds[] = { SKV_FAULT_ERROR, SKV_FAULT_UNKNOWN_BEFORE,
						     SKV_FAULT_UNKNOWN_AFTER };

	(void)state;
	for (uint32_t round = 0; round < 3 * 4; round++) {
		struct skv_fault fault = { .kind = kinds[round % 3], .call = "append",
					   .at = 1 + round / 3, .times = 1,
					   .status = SKV_E_STORE_IO };

		open_plain();
		env_put_summed(&e, "i", KEYS, true);
		env_crash(&e);
		e.faulty = true;
		e.rule = &fault;
		env_open(&e);
		for (uint32_t i = 0; i < KEYS; i += 5) {
			uint64_t generation;

			for (int tries = 0; tries < 9 && (generation = find("i", i, 0, NULL));
			     tries++) {
				const struct skv_damage d = { .generation = generation };
				struct skv_key k = { 1, i };
				struct skv_report_res res;

				env_report(&e, &(struct skv_report_req){
						.tenant = "t", .instance = "i", .keys = &k,
						.n_keys = 1, .n_damaged = 1, .damaged = &d,
						.may_delete = true }, &res);
				for (int t = 0;
				     t < 99 && skv_cluster_state_get(e.cluster) != SKV_CORE_READY;
				     t++)
					env_advance(&e, 700);
			}
			assert_int_equal(find("i", i, 0, NULL), 0);
			assert_true(find("i", i + 1, 0, NULL));
			env_check(&e);
		}
		env_crash(&e);
		env_open(&e);
		for (uint32_t i = 0; i < KEYS; i++)
			assert_int_equal(find("i", i, 0, NULL) != 0, i % 5 != 0);
		end();
	}
}

/* ---- copies ---------------------------------------------------------------------------------- */

static void a_copy_is_read_instead(void **state)
{
	const struct skv_key key = { 1, 2 };
	struct skv_delete_res d;
	uint64_t generation;
	char at = 0;

	(void)state;
	open_replicated();
	generation = find("i", 2, 0, &at);
	assert_int_equal(at, 's');
	assert_int_equal(report(2, generation, true).hidden, 1);
	assert_true(find("i", 2, 0, &at) && at == 'm');
	assert_int_equal(report(2, generation, true).hidden, 1); /* again */
	assert_int_equal(counters().damaged_blocks, 1);
	env_advance(&e, 5000);
	assert_true(find("i", 2, 0, &at) && at == 'm');
	/* The copy goes: the block goes with it, and can be written. */
	assert_int_equal(env_delete_req(&e, &(struct skv_delete_req){ .tenant = "t",
						.instance = COPIES, .keys = &key, .n_keys = 1 },
					&d), SKV_OK);
	env_advance(&e, 2000);
	assert_int_equal(find("i", 2, 0, NULL), 0);
	assert_int_equal(env_put(&e, &key, 1), 1);
	assert_true(find("i", 2, 0, &at) && at == 's');
	end();
}

static void a_damaged_copy_goes_alone(void **state)
{
	uint64_t generation;
	char at = 0;

	(void)state;
	open_replicated();
	generation = find(COPIES, 4, 0, &at);
	assert_int_equal(at, 'm');
	assert_int_equal(report(4, generation, true).hidden, 1); /* of the block's instance */
	assert_int_equal(find(COPIES, 4, 0, NULL), 0);
	assert_true(find("i", 4, 0, &at) && at == 's');
	/* Both are damaged: nothing is left to read. */
	assert_int_equal(report(5, find("i", 5, 0, NULL), true).hidden, 1);
	assert_int_equal(report(5, find("i", 5, 0, NULL), true).hidden, 1);
	env_advance(&e, 2000);
	assert_int_equal(find("i", 5, 0, NULL), 0);
	end();
}

/* Makes a round of a mover, which reads right bytes but those of damaged[]. */
static struct skv_move_finish_res mover(bool check, const bool *damaged, uint32_t *n)
{
	struct skv_move_take_req q = { .deadline_ms = 5000, .check = check };
	struct skv_move_finish_res f = { 0 };
	struct skv_move_take_res r;
	bool moved[SKV_MAX_MOVE_SLOTS];
	char id[33];

	assert_int_equal(env_move_take_req(&e, &q, &r), SKV_OK);
	*n = r.n;
	if (!r.n)
		return f;
	memcpy(id, r.move, sizeof id);
	for (uint32_t i = 0; i < r.n; i++)
		moved[i] = !damaged || !damaged[i];
	assert_int_equal(env_check_finish(&e, id, moved, damaged, *n, &f), SKV_OK);
	return f;
}

static void a_mover_restores_a_block_from_its_copy(void **state)
{
	uint64_t generation;
	uint32_t n;
	char at = 0;

	(void)state;
	open_replicated();
	generation = find("i", 7, 0, NULL);
	assert_int_equal(report(7, generation, true).hidden, 1);
	for (int i = 0; i < 20 && !counters().damage_healed; i++) {
		mover(false, NULL, &n);
		env_advance(&e, 300);
	}
	assert_int_equal(counters().damage_healed, 1);
	assert_int_equal(find("i", 7, 0, &at), generation); /* the same bytes, in another slot */
	assert_int_equal(at, 's');
	/* A mover that reads a damaged copy: this one goes, and its block. */
	assert_int_equal(report(8, find("i", 8, 0, NULL), true).hidden, 1);
	for (int i = 0; i < 20 && find("i", 8, 0, NULL); i++) {
		mover(false, (const bool[SKV_MAX_MOVE_SLOTS]){ true }, &n);
		env_advance(&e, 1100);
	}
	assert_int_equal(find("i", 8, 0, NULL), 0);
	assert_int_equal(find(COPIES, 8, 0, NULL), 0);
	end();
}

/* ---- scrubs ---------------------------------------------------------------------------------- */

static struct skv_storage_view storage(void)
{
	struct skv_stats st;

	env_stats(&e, &st);
	return st.storages[0];
}

/* Takes a portion of `max` slots of what was last checked before. */
static uint32_t take(uint32_t max, uint64_t before_ms, char id[33], struct skv_scrub_progress *p)
{
	struct skv_move_take_req q = { .max = max, .deadline_ms = 5000, .check = true,
				       .check_before_ms = before_ms };
	struct skv_move_take_res r;

	assert_int_equal(env_move_take_req(&e, &q, &r), SKV_OK);
	memcpy(id, r.move, 33);
	*p = r.scrub;
	assert_true(!r.n || r.checks);
	for (uint32_t i = 0; i < r.n; i++)
		assert_true(r.from[i].has_checksum && r.from[i].length == BLOCK);
	return r.n;
}

static void right(const char *id, uint32_t n)
{
	bool all[SKV_MAX_MOVE_SLOTS];
	struct skv_move_finish_res f;

	memset(all, true, sizeof all);
	assert_int_equal(env_check_finish(&e, id, all, NULL, n, &f), SKV_OK);
	assert_int_equal(f.moved, n);
}

/* All that was last checked before; how many slots. */
static uint32_t scrub(uint32_t max, uint64_t before_ms)
{
	struct skv_scrub_progress p = { .more = true };
	uint32_t all = 0, n = 1;
	char id[33];

	for (int i = 0; i < 1000 && (n || p.more); i++) {
		n = take(max, before_ms, id, &p);
		before_ms = before_ms ? before_ms : p.now_ms;
		if (n)
			right(id, n);
		all += n;
	}
	assert_false(p.more);
	return all;
}

static void a_scrub_checks_all_once(void **state)
{
	(void)state;
	open_plain();
	env_put_summed(&e, "i", KEYS, true);
	assert_true(storage().scrub_unchecked_files > 0);
	assert_int_equal(scrub(3, 0), KEYS);
	assert_int_equal(counters().scrubbed_blocks, KEYS);
	assert_int_equal(counters().scrubbed_bytes, KEYS * BLOCK);
	assert_int_equal(storage().scrub_unchecked_files, 0);
	assert_int_equal(storage().scrub_slots, KEYS);
	assert_int_equal(storage().scrub_unsummed_slots, 0);
	env_advance(&e, 60000);
	assert_in_range(storage().scrub_oldest_ms, 60000, 61000);
	assert_int_equal(scrub(3, skv_wall_ms(&e.clock.clock) - 100000), 0); /* all is newer */
	assert_int_equal(scrub(7, 0), KEYS);
	end();
}

static void slots_without_checksum_are_counted(void **state)
{
	struct skv_key keys[KEYS];

	(void)state;
	open_plain();
	env_put_summed(&e, "i", 4, true);
	env_keys(keys, 6, 2, 0);
	assert_int_equal(env_put(&e, keys, 6), 6);
	assert_int_equal(scrub(3, 0), 4);
	assert_int_equal(storage().scrub_slots, 10);
	assert_int_equal(storage().scrub_unsummed_slots, 6);
	end();
}

static void scrubs_share_the_work(void **state)
{
	struct skv_scrub_progress p;
	char a[33], b[33], c[33];
	uint64_t before;
	uint32_t n, m;

	(void)state;
	open_plain();
	env_put_summed(&e, "i", KEYS, true);
	n = take(KEYS - 5, 0, a, &p);
	before = p.now_ms;
	m = take(KEYS, before, b, &p);
	assert_int_equal(n + m, KEYS); /* no slot twice */
	assert_int_equal(take(KEYS, before, c, &p), 0);
	assert_true(p.more); /* until these two have ended */
	right(b, m);
	assert_true(storage().scrub_unchecked_files > 0);
	env_advance(&e, 6000); /* the first one never does: it is done again */
	n = take(KEYS, before, a, &p);
	assert_int_equal(n, KEYS);
	right(a, n);
	assert_int_equal(scrub(KEYS, before), 0);
	assert_int_equal(storage().scrub_unchecked_files, 0);
	end();
}

static void a_scrub_goes_on_after_a_restart(void **state)
{
	(void)state;
	for (int clean = 0; clean < 2; clean++) {
		struct skv_scrub_progress p;
		char id[33];
		uint64_t before;

		open_plain();
		env_put_summed(&e, "i", KEYS, true);
		assert_int_equal(take(6, 0, id, &p), 6);
		before = p.now_ms;
		right(id, 6);
		env_advance(&e, 100); /* the report's record follows the answer */
		assert_int_equal(take(6, before, id, &p), 6); /* nobody finishes it */
		clean ? env_shutdown(&e) : env_crash(&e);
		env_open(&e);
		assert_int_equal(scrub(6, before), KEYS - 6);
		env_advance(&e, 100);
		clean ? env_shutdown(&e) : env_crash(&e);
		env_open(&e);
		assert_int_equal(storage().scrub_unchecked_files, 0);
		assert_int_equal(scrub(6, before), 0);
		env_check(&e);
		env_destroy(&e);
	}
}

static void what_a_scrub_finds_is_gone(void **state)
{
	bool damaged[SKV_MAX_MOVE_SLOTS] = { [2] = true, [5] = true };
	struct skv_move_finish_res f;
	uint32_t n, hits = 0;

	(void)state;
	open_plain();
	env_put_summed(&e, "i", KEYS, true);
	f = mover(true, damaged, &n);
	assert_int_equal(n, KEYS);
	assert_int_equal(f.moved, KEYS - 2);
	assert_int_equal(f.failed, 2);
	assert_int_equal(f.hidden, 2);
	env_crash(&e);
	env_open(&e);
	for (uint32_t i = 0; i < KEYS; i++)
		hits += find("i", i, 0, NULL) != 0;
	assert_int_equal(hits, KEYS - 2);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_reported_block_is_gone_for_good),
		cmocka_unit_test(one_part_of_a_block_goes_alone),
		cmocka_unit_test(a_block_with_one_part_left_is_evicted_and_deleted),
		cmocka_unit_test(who_may_not_delete_only_asks_for_a_check),
		cmocka_unit_test(a_check_of_what_was_written_again_hides_nothing),
		cmocka_unit_test(reports_are_paced_and_bounded),
		cmocka_unit_test(bad_reports_name_what_is_wrong),
		cmocka_unit_test(appends_fail),
		cmocka_unit_test(a_copy_is_read_instead),
		cmocka_unit_test(a_damaged_copy_goes_alone),
		cmocka_unit_test(a_mover_restores_a_block_from_its_copy),
		cmocka_unit_test(a_scrub_checks_all_once),
		cmocka_unit_test(slots_without_checksum_are_counted),
		cmocka_unit_test(scrubs_share_the_work),
		cmocka_unit_test(a_scrub_goes_on_after_a_restart),
		cmocka_unit_test(what_a_scrub_finds_is_gone),
	};

	env_quiet();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
