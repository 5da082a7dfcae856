/*
 * test_core_powerloss.c - the core on SQLite on a disk that loses what was not synced. The power is
 * cut at the n-th write or sync of a scenario that writes, deletes, reuses slots and takes
 * checkpoints; then the machine boots again (another boot id) on what the disk held, for n = 1, 2,
 * 3... until the scenario survives whole.
 *
 *   FULL    every acknowledged block is found; of relaxed pages, what was acknowledged
 *           before the last synced call
 *   both    what is found was never overwritten by a writer that was told of its slot later, and no
 *           slot that a writer may still be at is handed out before its deadline and grace are
 *           over, none that a reader was told of before its lease is
 *
 * With the argument "all" every n is tried (label long), else every few; fewer with a sanitizer.
 */
#include "core_env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "powerloss_vfs.h"

#define BOOT_A "aaaaaaaa-0000-4000-8000-000000000001"
#define BOOT_B "bbbbbbbb-0000-4000-8000-000000000002"
#define SLOTS 4096u
#define CHAIN 16u
#define CHAINS 24u

static bool all;
static bool pages; /* an external storage, whose pages are settled in two goes */
static bool relaxed; /* of pages: told before a sync */
/* of pages: nothing is deleted, and half as many fit, so there is eviction;
 * writers end before readers */
static bool full_up;

#define LEASE_MS 150u
#define STEP_MS 20u /* between two chains, so that syncs come behind now and then */

/* The knowledge of the clients. */
struct world {
	struct env e;
	char dir[64], db[96];
	uint64_t newest[SLOTS]; /* generation that was last told for a slot */
	uint64_t until[SLOTS];  /* until then that writer may be at it */
	uint64_t read_until[SLOTS]; /* until then a reader may be at it */
	bool acknowledged[CHAINS]; /* committed, and not deleted since */
	bool saved[CHAINS];        /* before a call that was synced */
	bool unsure[CHAINS];       /* a delete was asked for whose answer never came */
};

static uint32_t slot_of(const struct skv_files *files, const struct skv_location *loc)
{
	uint32_t slot = pages ? (uint32_t)loc->offset
			      : (uint32_t)strtoul(files->v[loc->file].path + 5, NULL, 10) * 256 +
					(uint32_t)(loc->offset / 4096);

	assert_true(slot < SLOTS);
	return slot;
}

static void world_open(struct world *w, enum skv_durability durability)
{
	memset(w, 0, sizeof *w);
	snprintf(w->dir, sizeof w->dir, "/dev/shm/skv-power-XXXXXX");
	assert_non_null(mkdtemp(w->dir));
	snprintf(w->db, sizeof w->db, "%s/db", w->dir);
	env_init(&w->e);
	w->e.ops = &skv_store_sqlite;
	w->e.store_options = (struct skv_store_options){ .path = w->db, .durability = durability,
							 .vfs = POWERLOSS_VFS };
	w->e.o.boot_id = BOOT_A;
	w->e.o.journal_limit = 32768;
	if (full_up)
		w->e.o.session_default_ms = w->e.o.grace_ms = LEASE_MS / 3;
	w->e.o.relaxed_ms = relaxed ? w->e.o.session_default_ms + w->e.o.grace_ms : 0;
}

static void world_close(struct world *w)
{
	static const char *const names[] = { "db",
					     "db-wal",
					     "db-shm",
					     "db-reserve",
					     "db-checkpoint",
					     "db-checkpoint-wal",
					     "db-checkpoint-shm",
					     "db-journal",
					     "db-checkpoint-journal" };
	char path[160];

	env_destroy(&w->e);
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		snprintf(path, sizeof path, "%s/%s", w->dir, names[i]);
		unlink(path);
	}
	rmdir(w->dir);
}

/* Opens store and core if the power lets it. */
static bool boot(struct world *w)
{
	struct env *e = &w->e;

	if (skv_store_open(e->ops, &e->store_options, &e->store, &e->err) != SKV_OK)
		return false;
	e->o.store = e->store;
	env_create(e);
	for (int i = 0;
	     i < 200 && skv_cluster_state_get(e->cluster) != SKV_CORE_READY && !powerloss_is_cut();
	     i++)
		skv_cluster_tick(e->cluster);
	skv_cluster_tick(e->cluster);
	return skv_cluster_state_get(e->cluster) == SKV_CORE_READY;
}

static bool registered(struct world *w)
{
	struct skv_storage_spec s = { .name = "s", .type = "external", .root = "",
				      .capacity = full_up ? 128 : 256, .enabled = true };
	struct skv_spec spec = { "kv", pages ? 1 : 4096 };

	if (pages)
		return skv_cluster_storage_put(w->e.cluster, &s, SKV_PUT_ANY, NULL, &w->e.err) ==
			       SKV_OK &&
		       env_group(&w->e, "g", 0, "s") == SKV_OK &&
		       env_instance(&w->e, "i", "g", &spec, 1) == SKV_OK;
	return env_storage(&w->e, "s", 1 << 20, 65536) == SKV_OK &&
	       env_group(&w->e, "g", 0, "s") == SKV_OK &&
	       env_instance(&w->e, "i", "g", &spec, 1) == SKV_OK;
}

/* Half of the chain, by key and place. */
static bool partial_half(struct world *w, const struct skv_key *k, const uint64_t *page)
{
	struct skv_partial_req q = { .tenant = "t", .instance = "i", .keys = k, .offsets = page,
				     .n_commit = CHAIN / 2,
				    .relaxed = relaxed };
	struct skv_partial_res res;
	int rc = env_partial(&w->e, &q, &res);

	/* A client that settles has written, whatever the result. */
	for (uint32_t i = 0; i < CHAIN / 2; i++)
		w->until[page[i]] = 0;
	if (rc != SKV_OK)
		return false;
	assert_int_equal(res.committed, CHAIN / 2);
	return true;
}

/* Readers are told of it as soon as it is there. */
static bool read_chain(struct world *w, const struct skv_key *k)
{
	struct skv_lookup_res r;

	if (env_lookup(&w->e, k, CHAIN, SKV_LOOKUP_PREFIX, LEASE_MS, &r) != SKV_OK)
		return false;
	for (uint32_t i = 0; i < r.matched; i++)
		w->read_until[slot_of(&r.files, &r.loc[i])] = skv_now_ms(w->e.o.clock) + r.lease_ms;
	return true;
}

static bool put_chain(struct world *w, uint32_t no)
{
	struct skv_key k[CHAIN];
	struct skv_start_res s;
	struct skv_finish_res f;
	uint64_t page[CHAIN];
	uint64_t now = skv_now_ms(w->e.o.clock);
	char session[33];

	env_keys(k, CHAIN, no + 1, 1);
	if (env_start(&w->e, &(struct env_start){ .keys = k, .n = CHAIN, .anonymous = pages,
						  .relaxed = relaxed }, &s) != SKV_OK)
		return false;
	for (uint32_t i = 0; i < CHAIN; i++) {
		uint32_t slot;

		if (s.outcome[i] != SKV_START_WRITE)
			continue;
		slot = slot_of(&s.files, &s.loc[i]);
		page[i] = slot;
		if (w->until[slot] > now)
			fail_msg("slot %u is handed out while a writer may be at it", slot);
		if (w->read_until[slot] > now)
			fail_msg("slot %u is handed out while a reader may be at it", slot);
		w->newest[slot] = s.loc[i].generation;
		w->until[slot] = now + s.deadline_ms + w->e.o.grace_ms;
	}
	memcpy(session, s.session, sizeof session);
	w->unsure[no] = true; /* until all of it is known to be there */
	if (pages &&
	    !(partial_half(w, k, page) && partial_half(w, k + CHAIN / 2, page + CHAIN / 2)))
		return false;
	if (!pages && env_finish(&w->e, session, NULL, 0, &f) != SKV_OK)
		return false;
	for (uint32_t i = 0; i < SLOTS; i++)
		if (w->until[i] >= now + 1) /* the writer is done */
			w->until[i] = 0;
	w->acknowledged[no] = true;
	w->unsure[no] = false;
	return !relaxed || read_chain(w, k);
}

static bool delete_chain(struct world *w, uint32_t no)
{
	struct skv_key k[CHAIN];
	uint32_t n;

	env_keys(k, CHAIN, no + 1, 1);
	w->unsure[no] = true;
	if (env_delete(&w->e, k, CHAIN, &n) != SKV_OK)
		return false;
	w->acknowledged[no] = false;
	if (n > 0) /* else there was nothing to append */
		memcpy(w->saved, w->acknowledged, sizeof w->saved);
	return true;
}

static bool clear(struct world *w)
{
	uint64_t n;

	for (uint32_t c = 0; c < CHAINS; c++)
		w->unsure[c] = w->acknowledged[c];
	if (env_clear(&w->e, NULL, &n) != SKV_OK)
		return false;
	memset(w->acknowledged, 0, sizeof w->acknowledged);
	return true;
}

/* 12 chains fit; each new one is preceded by a deletion, so slots are reused all the time. */
static bool scenario(struct world *w)
{
	if (!boot(w) || !registered(w))
		return false;
	for (uint32_t c = 0; c < CHAINS; c++) {
		if (c >= 10 && !full_up && !(c == CHAINS / 2 ? clear(w) : delete_chain(w, c - 10)))
			return false;
		if (!put_chain(w, c))
			return false;
		if (relaxed)
			skv_fake_clock_advance(&w->e.clock, STEP_MS);
		skv_cluster_tick(w->e.cluster);
	}
	return !powerloss_is_cut();
}

static void check_found(struct world *w, uint32_t no, bool full)
{
	struct skv_key k[CHAIN];
	struct skv_lookup_res r;

	env_keys(k, CHAIN, no + 1, 1);
	assert_int_equal(env_lookup(&w->e, k, CHAIN, SKV_LOOKUP_BATCH, 0, &r), SKV_OK);
	if (full && !w->acknowledged[no] && !w->unsure[no] && r.matched)
		fail_msg("chain %u is back", no);
	if (full && !full_up && (!relaxed || w->saved[no]) && w->acknowledged[no] &&
	    !w->unsure[no] && r.matched != CHAIN)
		fail_msg("acknowledged chain %u is lost", no);
	for (uint32_t i = 0; i < CHAIN; i++) {
		uint32_t slot;

		if (!r.hit[i])
			continue;
		slot = slot_of(&r.files, &r.loc[i]);
		if (r.loc[i].generation < w->newest[slot])
			fail_msg(
				"chain %u block %u is found in slot %u, which was handed to "
				"a later writer",
				no, i, slot);
	}
}

static bool knows_instance(struct world *w)
{
	struct skv_instance_view *v;

	return skv_cluster_instance(w->e.cluster, "t", "i", &w->e.arena, &v, &w->e.err) ==
	       SKV_OK;
}

/* Nothing rests for longer than lost starts and leases could last. */
static void goes_on(struct world *w)
{
	struct skv_key k[CHAIN];
	struct skv_start_res s;

	env_advance(&w->e, w->e.o.relaxed_ms + 2 * w->e.o.lease_max_ms + 1000);
	for (uint32_t i = 0; i < 4; i++) {
		env_keys(k, CHAIN, 2000 + i, 1);
		assert_int_equal(env_start(&w->e, &(struct env_start){ .keys = k, .n = CHAIN }, &s),
				 SKV_OK);
		assert_int_equal(s.n_write, CHAIN);
	}
}

static void check_starts(struct world *w, uint64_t hi)
{
	struct skv_key k[CHAIN];
	struct skv_start_res s;

	for (uint32_t i = 0; i < 6; i++) {
		env_keys(k, CHAIN, hi + i, 1);
		if (env_start(&w->e, &(struct env_start){ .keys = k, .n = CHAIN, .fit = pages },
			      &s) != SKV_OK)
			continue;
		for (uint32_t j = 0; j < s.n_keys; j++) {
			uint64_t now = skv_now_ms(w->e.o.clock);
			uint32_t slot;

			if (s.outcome[j] != SKV_START_WRITE)
				continue;
			slot = slot_of(&s.files, &s.loc[j]);
			if (w->until[slot] > now)
				fail_msg(
					"after the boot slot %u is handed out while a "
					"writer may be at it",
					slot);
			if (w->read_until[slot] > now)
				fail_msg(
					"after the boot slot %u is handed out while a "
					"reader may be at it",
					slot);
		}
	}
	env_check(&w->e);
}

/* After the boot: what is there is right, and writing goes on without touching what it must not. */
static void check_after(struct world *w, bool full)
{
	env_check(&w->e);
	if (!knows_instance(w)) {
		for (uint32_t c = 0; c < CHAINS; c++)
			assert_false(full && w->acknowledged[c] && (!relaxed || w->saved[c]));
		return;
	}
	for (uint32_t c = 0; c < CHAINS; c++)
		check_found(w, c, full);
	check_starts(w, 1000);
	/* sessions that were open are over, where they are short */
	env_advance(&w->e, LEASE_MS * 3 / 4);
	check_starts(w, 1100);
	if (relaxed)
		goes_on(w);
}

/* True when the scenario went through without reaching the n-th step. */
static bool cut_at(enum skv_durability durability, uint64_t n)
{
	struct world w;
	bool survived;

	powerloss_reset();
	world_open(&w, durability);
	powerloss_cut_at(n);
	survived = scenario(&w) && !powerloss_is_cut();
	if (w.e.cluster)
		skv_cluster_destroy(w.e.cluster);
	if (w.e.store)
		skv_store_close(w.e.store);
	w.e.cluster = NULL;
	w.e.core = NULL;
	w.e.store = NULL;
	powerloss_apply(n % 2 ? POWERLOSS_DROP_ALL : POWERLOSS_DROP_SOME, n);
	w.e.o.boot_id = BOOT_B;
	skv_arena_reset(&w.e.arena);
	if (!boot(&w))
		fail_msg("n = %llu: does not boot: %s", (unsigned long long)n, w.e.err.message);
	check_after(&w, durability == SKV_DURABILITY_FULL);
	world_close(&w);
	return survived;
}

static void sweep(enum skv_durability durability, uint64_t stride)
{
	uint64_t n = 1, tried = 0;

	if (getenv("SKV_SANITIZED")) /* the cuts are the other builds' */
		stride *= 4;
	for (;; n += all ? 1 : stride, tried++)
		if (cut_at(durability, n))
			break;
	print_message("%s: power cut at %llu of %llu writes and syncs\n",
		      durability == SKV_DURABILITY_FULL ? "full" : "normal",
		      (unsigned long long)tried, (unsigned long long)n);
	assert_true(n > 50);
}

static void full(void **state)
{
	(void)state;
	sweep(SKV_DURABILITY_FULL, 13);
}

static void normal(void **state)
{
	(void)state;
	sweep(SKV_DURABILITY_NORMAL, 7);
}

static void full_pages(void **state)
{
	(void)state;
	pages = true;
	sweep(SKV_DURABILITY_FULL, 13);
	pages = false;
}

static void normal_pages(void **state)
{
	(void)state;
	pages = true;
	sweep(SKV_DURABILITY_NORMAL, 7);
	pages = false;
}

static void relaxed_pages(void **state)
{
	(void)state;
	pages = relaxed = true;
	sweep(SKV_DURABILITY_FULL, 7);
	sweep(SKV_DURABILITY_NORMAL, 13);
	pages = relaxed = false;
}

static void relaxed_pages_evicted(void **state)
{
	(void)state;
	pages = relaxed = full_up = true;
	sweep(SKV_DURABILITY_FULL, 7);
	pages = relaxed = full_up = false;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(full),
		cmocka_unit_test(normal),
		cmocka_unit_test(full_pages),
		cmocka_unit_test(normal_pages),
		cmocka_unit_test(relaxed_pages),
		cmocka_unit_test(relaxed_pages_evicted),
	};

	all = argc > 1 && strcmp(argv[1], "all") == 0;
	env_quiet();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
