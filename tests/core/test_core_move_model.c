/*
 * test_core_move_model.c - random writes, reads, deletes and moves between two storages that drain
 * in turn, against a model that has bytes.
 *
 * The model keeps what lies in each slot: one number. Writers and movers put numbers there when
 * they would write, also late, and after the manager was killed, as long as their deadline allows.
 * Every block that a lookup tells must lie in its slot as it was committed; what a lookup leases
 * must lie there until the lease ends. Nothing that was committed may be missing unless it was
 * deleted: there is room for all. Managers are killed, stopped and reopened, appends fail,
 * checkpoints replace the journal after a few records or hardly ever. `test_core_move_model SEED
 * COUNT` plays COUNT runs.
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
#define SESSIONS 4u
#define KEYS_AT_ONCE 4u
#define READS 64u

/* The contents of each place: storage, file, slot. */
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

/* Writes until its deadline, also late, and after the manager was killed. */
struct msession {
	bool open;
	char id[33];
	uint64_t deadline;
	uint32_t first, n, n_write;
	uint64_t content[KEYS_AT_ONCE][SPECS]; /* 0 = not written */
	uint32_t place[KEYS_AT_ONCE][SPECS];
	bool deleted[KEYS_AT_ONCE];       /* while it was written: it must not be published */
	bool maybe_deleted[KEYS_AT_ONCE]; /* or it may be: a delete failed */
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
	struct msession session[SESSIONS];
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

	/* the put may fail, and is tried again */
	skv_cluster_storage_put(m->e.cluster, &s, SKV_PUT_ANY, NULL, &m->e.err);
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

/* Puts its bytes where it was told to, once more. */
static void write_bytes(struct model *m, const struct msession *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		for (uint32_t c = 0; c < SPECS; c++)
			if (s->content[i][c])
				m->place[s->place[i][c]] = s->content[i][c];
	check_reads(m);
}

/* The finish that worked reports block i, the written one number `write`. */
static void note_finished(struct model *m, const struct msession *s, uint32_t i, uint32_t write,
			  const struct skv_finish_res *f)
{
	bool deleted = false;

	for (uint32_t at = 0; at < f->n_deleted; at++)
		deleted |= f->deleted[at] == write;
	assert_true(deleted || !s->deleted[i]);
	assert_true(!deleted || s->deleted[i] || s->maybe_deleted[i]);
	if (deleted)
		return; /* the key may have been written again since */
	m->unsure[s->first + i] = false;
	memcpy(m->block[s->first + i], s->content[i], sizeof s->content[i]);
}

static void end_session(struct model *m, struct msession *s)
{
	uint64_t sums[KEYS_AT_ONCE * SPECS] = { 0 };
	struct skv_finish_res f;
	uint32_t done = 0;
	int rc;

	for (uint32_t i = 0; i < s->n; i++)
		if (s->content[i][0] || s->content[i][1])
			memcpy(sums + SPECS * done++, s->content[i], sizeof s->content[i]);
	assert_int_equal(done, s->n_write);
	s->open = false;
	if (s->deadline > now(m))
		write_bytes(m, s);
	rc = env_finish(&m->e, s->id, sums, done * SPECS, &f);
	for (uint32_t i = 0, write = 0; i < s->n; i++) {
		if (!s->content[i][0])
			continue;
		if (rc == SKV_OK)
			note_finished(m, s, i, write++, &f);
		else
			m->unsure[s->first + i] |= !s->deleted[i];
	}
}

static void start_session(struct model *m, struct msession *s)
{
	struct skv_key keys[KEYS_AT_ONCE];
	struct skv_start_res r;

	*s = (struct msession){ .first = rnd(m, KEYS - KEYS_AT_ONCE),
				.n = 1 + rnd(m, KEYS_AT_ONCE) };
	env_keys(keys, s->n, 1, s->first);
	s->deadline = now(m) + 3000;
	if (env_start(&m->e, &(struct env_start){ .keys = keys, .n = s->n, .deadline_ms = 3000 },
		      &r) != SKV_OK || r.n_write == 0)
		return;
	s->open = true;
	s->n_write = r.n_write;
	memcpy(s->id, r.session, sizeof s->id);
	for (uint32_t i = 0; i < s->n; i++) {
		for (uint32_t c = 0; c < SPECS && r.outcome[i] == SKV_START_WRITE; c++) {
			const struct skv_location *loc = &r.loc[i * SPECS + c];

			if (!loc->length)
				continue;
			s->content[i][c] = ++m->newest;
			s->place[i][c] = place_of(&r.files, loc);
		}
	}
	write_bytes(m, s);
}

/* Half of the sessions stay open for a while. */
static void do_write(struct model *m)
{
	struct msession *s = &m->session[rnd(m, SESSIONS)];

	if (!s->open) {
		start_session(m, s);
		if (rnd(m, 2))
			return;
	}
	if (s->open)
		end_session(m, s);
}

static void write_late(struct model *m)
{
	const struct msession *s = &m->session[rnd(m, SESSIONS)];

	if (s->open && s->deadline > now(m))
		write_bytes(m, s);
}

/* A call that deletes the key answered `rc`. Sessions that write the key go on. */
static void note_deleted(struct model *m, uint32_t key, int rc)
{
	m->unsure[key] = rc != SKV_OK;
	if (rc == SKV_OK)
		memset(m->block[key], 0, sizeof m->block[key]);
	for (struct msession *s = m->session; s < m->session + SESSIONS; s++) {
		if (!s->open || key < s->first || key >= s->first + s->n)
			continue;
		s->deleted[key - s->first] |= rc == SKV_OK;
		s->maybe_deleted[key - s->first] |= rc != SKV_OK;
	}
}

static void do_clear(struct model *m)
{
	uint64_t n;
	int rc = env_clear(&m->e, NULL, &n);

	for (uint32_t key = 0; key < KEYS; key++)
		note_deleted(m, key, rc);
}

static void do_delete(struct model *m)
{
	uint32_t key = rnd(m, KEYS), deleted;
	struct skv_key k;

	env_keys(&k, 1, 1, key);
	note_deleted(m, key, env_delete(&m->e, &k, 1, &deleted));
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

/* Mostly a short one: long leases must be remembered by themselves. */
static uint32_t draw_lease(struct model *m)
{
	return rnd(m, 6) ? rnd(m, 3) * 500 : 500 + rnd(m, 20000);
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
		v->open = false; /* the mover has finished writing */
}

static void wait_ready(struct model *m)
{
	calm(m, false);
	for (int i = 0; i < 200 && skv_cluster_state_get(m->e.cluster) != SKV_CORE_READY; i++)
		env_advance(&m->e, 100);
	assert_int_equal(skv_cluster_state_get(m->e.cluster), SKV_CORE_READY);
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
	if (rnd(m, 500) == 0)
		do_clear(m);
	if (what < 2)
		write_late(m);
	else if (what < 15)
		do_write(m);
	else if (what < 20)
		do_delete(m);
	else if (what < 35)
		look(m, rnd(m, KEYS), draw_lease(m));
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
	m->e.o.lease_max_ms = 60000;
	m->e.o.journal_limit = 1024u << rnd(m, 10);
	env_open(&m->e);
	drain(m, "s", false);
	drain(m, "t", true);
	assert_int_equal(
		skv_cluster_group_put(m->e.cluster, &g, SKV_PUT_ANY, NULL, NULL, &m->e.err),
		SKV_OK);
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
	skv_cluster_counters_get(m->e.cluster, &c);
	assert_int_equal(c.evicted_blocks, 0); /* of the last manager */
	print_message("seed %u: %llu slots moved, %llu restarts\n", seed,
		      (unsigned long long)m->moved, (unsigned long long)m->killed);
	assert_true(m->moved > 0);
	env_destroy(&m->e);
	free(m);
}

static unsigned first_seed = 1, n_seeds = 12, playing;

static int tell_seed(void **state)
{
	(void)state;
	if (playing)
		print_error("test_core_move_model %u 1 does it again\n", playing);
	return 0;
}

static void test_model(void **state)
{
	(void)state;
	for (unsigned i = 0; i < n_seeds; i++) {
		playing = first_seed + i;
		run(playing, 4000);
	}
	playing = 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test_teardown(test_model, tell_seed) };

	env_quiet();
	if (argc == 3) {
		first_seed = (unsigned)strtoul(argv[1], NULL, 10);
		n_seeds = (unsigned)strtoul(argv[2], NULL, 10);
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
