/*
 * test_core_move_model.c - random writes, reads, deletes and moves between two storages that drain
 * in turn, against a model that has bytes.
 *
 * The model keeps what lies in each slot: one number. Writers and movers put numbers there when
 * they would write, also late, and after the manager was killed, as long as their deadline allows.
 * Every block that a lookup tells must lie in its slot as it was committed; what a lookup leases
 * must lie there until the lease ends. Nothing that was committed may be missing unless it was
 * deleted: there is room for all. Managers are killed and reopened, appends fail.
 */
#include "core_env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 65536u
#define UNIT (1ull << 20)
#define FILES 40u /* of a storage */
#define KEYS 60u
#define SPECS 2u
#define MOVES 4u
#define READS 64u

/* What lies at each place: storage, file, slot. */
#define PLACES_OF_FILE 16u
#define FILE_NUMBERS 4096u
#define PLACES (2u * FILE_NUMBERS * PLACES_OF_FILE)

struct mmove {
	bool open;
	char id[33];
	uint64_t deadline;
	uint32_t n, at; /* the first `at` are copied */
	uint32_t from[SKV_MAX_MOVE_SLOTS], to[SKV_MAX_MOVE_SLOTS];
	uint64_t sum[SKV_MAX_MOVE_SLOTS];
	bool moved[SKV_MAX_MOVE_SLOTS];
};

struct mread {
	uint32_t place;
	uint64_t content, until;
};

struct model {
	struct env e;
	unsigned seed;
	uint64_t place[PLACES];
	uint64_t block[KEYS][SPECS]; /* content, 0 = not there; */
	bool unsure[KEYS];           /* or it may be, or not: a call failed */
	uint64_t newest;
	struct mmove move[MOVES];
	struct mread read[READS];
	uint32_t n_read;
	uint64_t moved, killed;
};

static uint32_t rnd(struct model *m, uint32_t n) { return (uint32_t)rand_r(&m->seed) % n; }
static uint64_t now(const struct model *m) { return skv_now_ms(m->e.o.clock); }

static uint32_t place_of(const struct skv_files *files, const struct skv_location *loc)
{
	const struct skv_file_ref *f = &files->v[loc->file];
	uint32_t file = (uint32_t)strtoul(f->path + 5, NULL, 10);

	assert_true(file < FILE_NUMBERS);
	assert_true(loc->offset / BLOCK < PLACES_OF_FILE);
	return ((f->storage[0] == 't') * FILE_NUMBERS + file) * PLACES_OF_FILE +
	       (uint32_t)(loc->offset / BLOCK);
}

static void drain(struct model *m, const char *name, bool on)
{
	struct skv_storage_spec s = { .name = name, .type = "null", .root = "",
				      .capacity = FILES * UNIT, .unit = UNIT, .file_size = UNIT,
				      .enabled = true, .draining = on, .move = on };

	skv_core_storage_put(m->e.core, &s, NULL, &m->e.err); /* it may fail, and is tried again */
}

static void check_reads(struct model *m)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < m->n_read; i++) {
		const struct mread *r = &m->read[i];

		if (r->until <= now(m))
			continue;
		if (m->place[r->place] != r->content)
			fail_msg("place %u was leased with %llu, and has %llu", r->place,
				 (unsigned long long)r->content,
				 (unsigned long long)m->place[r->place]);
		m->read[n++] = *r;
	}
	m->n_read = n;
}

static void calm(struct model *m, bool on)
{
	struct skv_fault f = { .kind = SKV_FAULT_NONE };

	if (on && rnd(m, 100) < 8) {
		f = (struct skv_fault){ .call = "append", .at = 1 + rnd(m, 2), .times = 1,
					.status = SKV_E_STORE_IO };
		f.kind = (enum skv_fault_kind[]){ SKV_FAULT_ERROR, SKV_FAULT_UNKNOWN_BEFORE,
						  SKV_FAULT_UNKNOWN_AFTER }[rnd(m, 3)];
	}
	skv_fault_store_set(m->e.store, &f);
}

static void do_write(struct model *m)
{
	uint32_t first = rnd(m, KEYS - 4), n = 1 + rnd(m, 4), done = 0;
	struct skv_key keys[4];
	uint64_t sums[4 * SPECS] = { 0 }, content[4][SPECS] = { { 0 } };
	struct skv_start_res s;
	struct skv_finish_res f;
	char session[33];
	int rc;

	env_keys(keys, n, 1, first);
	rc = env_start(&m->e, &(struct env_start){ .keys = keys, .n = n, .deadline_ms = 3000 },
		       &s);
	if (rc != SKV_OK || s.n_write == 0)
		return;
	memcpy(session, s.session, sizeof session);
	for (uint32_t i = 0; i < n; i++) {
		if (s.outcome[i] != SKV_START_WRITE)
			continue;
		for (uint32_t c = 0; c < SPECS; c++) {
			const struct skv_location *loc = &s.loc[i * SPECS + c];

			if (!loc->length)
				continue;
			content[i][c] = ++m->newest;
			sums[done * SPECS + c] = m->newest;
			m->place[place_of(&s.files, loc)] = m->newest;
		}
		done++;
	}
	check_reads(m);
	rc = env_finish(&m->e, session, sums, done * SPECS, &f);
	for (uint32_t i = 0; i < n; i++) {
		if (!content[i][0])
			continue;
		m->unsure[first + i] = rc != SKV_OK;
		if (rc == SKV_OK)
			memcpy(m->block[first + i], content[i], sizeof content[i]);
	}
}

static void do_delete(struct model *m)
{
	uint32_t key = rnd(m, KEYS), deleted;
	struct skv_key k;

	env_keys(&k, 1, 1, key);
	if (env_delete(&m->e, &k, 1, &deleted) != SKV_OK) {
		m->unsure[key] = true;
		return;
	}
	memset(m->block[key], 0, sizeof m->block[key]);
	m->unsure[key] = false;
}

static void look(struct model *m, uint32_t key, uint32_t lease_ms)
{
	struct skv_key k;
	struct skv_lookup_res r;
	int rc;

	env_keys(&k, 1, 1, key);
	rc = env_lookup(&m->e, &k, 1, SKV_LOOKUP_BATCH, lease_ms, &r);
	if (rc != SKV_OK)
		return;
	if (!r.hit[0]) {
		if (m->block[key][0] && !m->unsure[key])
			fail_msg("key %u is gone", key);
		return;
	}
	for (uint32_t c = 0; c < SPECS; c++) {
		uint32_t place = place_of(&r.files, &r.loc[c]);

		assert_true(r.loc[c].has_checksum);
		if (m->place[place] != r.loc[c].checksum)
			fail_msg("key %u spec %u: %llu lies there, %llu was committed", key, c,
				 (unsigned long long)m->place[place],
				 (unsigned long long)r.loc[c].checksum);
		if (!m->unsure[key])
			assert_int_equal(r.loc[c].checksum, m->block[key][c]);
		if (r.lease_ms && m->n_read < READS)
			m->read[m->n_read++] = (struct mread){ place, r.loc[c].checksum,
							       now(m) + r.lease_ms };
	}
}

static void do_take(struct model *m)
{
	struct mmove *v = &m->move[rnd(m, MOVES)];
	struct skv_move_take_res r;

	if (v->open || env_move_take(&m->e, 1 + rnd(m, 20), 1000 + rnd(m, 4000), &r) != SKV_OK ||
	    r.n == 0)
		return;
	*v = (struct mmove){ .open = true, .n = r.n, .deadline = now(m) + r.deadline_ms };
	memcpy(v->id, r.move, sizeof v->id);
	for (uint32_t i = 0; i < r.n; i++) {
		v->from[i] = v->to[i] = PLACES;
		if (!r.from[i].length)
			continue;
		v->from[i] = place_of(&r.files, &r.from[i]);
		v->to[i] = place_of(&r.files, &r.to[i]);
		v->sum[i] = r.from[i].checksum;
	}
}

/* A mover goes on, whether or not its manager lives: it copies what it reads there now. */
static void do_copy(struct model *m)
{
	struct mmove *v = &m->move[rnd(m, MOVES)];

	if (!v->open)
		return;
	if (v->deadline <= now(m)) {
		v->open = false;
		return;
	}
	for (uint32_t n = 1 + rnd(m, 8); n-- > 0 && v->at < v->n; v->at++) {
		if (v->to[v->at] == PLACES)
			continue;
		v->moved[v->at] = m->place[v->from[v->at]] == v->sum[v->at];
		/* read into memory before, and written in any case */
		m->place[v->to[v->at]] = m->place[v->from[v->at]];
	}
	check_reads(m);
}

static void do_finish(struct model *m)
{
	struct mmove *v = &m->move[rnd(m, MOVES)];
	struct skv_move_finish_res f;
	int rc;

	if (!v->open || (v->at < v->n && rnd(m, 3)))
		return;
	rc = env_move_finish(&m->e, v->id, v->moved, v->n, true, &f);
	if (rc == SKV_OK)
		m->moved += f.moved;
	if (rc == SKV_OK || rc == SKV_E_NOT_FOUND || rc == SKV_E_SESSION_EXPIRED)
		v->open = false; /* it has written all that it will */
}

static void wait_ready(struct model *m)
{
	calm(m, false);
	for (int i = 0; i < 200 && skv_core_state_get(m->e.core) != SKV_CORE_READY; i++)
		env_advance(&m->e, 100);
	assert_int_equal(skv_core_state_get(m->e.core), SKV_CORE_READY);
}

static void do_restart(struct model *m)
{
	calm(m, false);
	if (rnd(m, 3)) {
		env_crash(&m->e);
	} else {
		wait_ready(m);
		env_shutdown(&m->e);
	}
	env_open(&m->e);
	m->killed++;
}

static void look_at_all(struct model *m)
{
	wait_ready(m);
	for (uint32_t key = 0; key < KEYS; key++)
		look(m, key, 0);
	check_reads(m);
	env_check(&m->e);
}

static void step(struct model *m)
{
	uint32_t what = rnd(m, 100);

	calm(m, true);
	if (what < 15)
		do_write(m);
	else if (what < 20)
		do_delete(m);
	else if (what < 35)
		look(m, rnd(m, KEYS), rnd(m, 2) * (500 + rnd(m, 4000)));
	else if (what < 50)
		do_take(m);
	else if (what < 75)
		do_copy(m);
	else if (what < 88)
		do_finish(m);
	else if (what < 94)
		env_advance(&m->e, rnd(m, 3) ? rnd(m, 300) : rnd(m, 3000));
	else if (what < 96)
		do_restart(m);
	else
		look_at_all(m);
	check_reads(m);
}

static void run(unsigned seed, uint32_t steps)
{
	static const char *const names[] = { "s", "t" };
	struct skv_group_spec g = { .name = "g", .storages = names, .n_storages = 2, .policy = "" };
	struct skv_spec specs[SPECS] = { { "a", BLOCK }, { "b", BLOCK } };
	struct model *m = calloc(1, sizeof *m);
	struct skv_core_counters c;

	assert_non_null(m);
	m->seed = seed;
	env_init(&m->e);
	m->e.faulty = true;
	env_open(&m->e);
	drain(m, "s", false);
	drain(m, "t", true);
	assert_int_equal(skv_core_group_put(m->e.core, &g, NULL, NULL, &m->e.err), SKV_OK);
	assert_int_equal(env_instance(&m->e, "i", "g", specs, SPECS), SKV_OK);
	for (uint32_t i = 0; i < steps; i++) {
		step(m);
		if (i % 400 == 399) {
			const bool to_t = i / 400 % 2 == 0;

			wait_ready(m);
			drain(m, "t", !to_t);
			drain(m, "s", to_t);
		}
	}
	look_at_all(m);
	skv_core_counters_get(m->e.core, &c);
	assert_int_equal(c.evicted_blocks, 0); /* of the last manager */
	print_message("seed %u: %llu slots moved, %llu restarts\n", seed,
		      (unsigned long long)m->moved, (unsigned long long)m->killed);
	assert_true(m->moved > 0);
	env_destroy(&m->e);
	free(m);
}

static void test_model(void **state)
{
	const char *seed = getenv("SKV_TEST_SEED");

	(void)state;
	if (seed) {
		run((unsigned)strtoul(seed, NULL, 10), 4000);
		return;
	}
	for (unsigned i = 1; i <= 12; i++)
		run(i, 4000);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_model) };

	env_quiet();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
