/*
 * test_core_tiers_model.c - random writes, copies, reads, deletions and clears of two tiers that
 * are both too small, against a model that has bytes.
 *
 * The model keeps what lies in each slot: one number, which is also its checksum. Writers of a key
 * write ever new numbers; copies are made of what some lookup told, late, of blocks that have been
 * deleted, evicted or written anew meanwhile, and now and then of anything at all. Every place that
 * a lookup tells, of a block or a copy, must have the block's number, which must be the last that
 * was committed for the key, and keep it until the lease ends. Movers make copies, too, of what was
 * used twice; they are slow, and die. Managers are killed and reopened, appends fail.
 */
#include "core_env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 65536u
#define UNIT (1ull << 20)
#define KEYS 80u
#define NOTES 64u
#define READS 256u
#define MOVES 3u
#define SLOTS 8u /* of one */
#define NOT_WRITTEN 1000 /* no status of the core */
#define PLACES_OF_FILE 256u
#define FILES 64u /* numbers */
#define PLACES (2u * FILES * PLACES_OF_FILE)

struct mread {
	uint32_t place;
	uint64_t content, until;
};

/* A mover's. */
struct mmove {
	bool open, copied;
	char id[33];
	uint64_t deadline;
	uint32_t n;
	uint32_t from[SLOTS], to[SLOTS];
	uint64_t sum[SLOTS];
	bool moved[SLOTS];
};

struct model {
	struct env e;
	unsigned seed;
	uint64_t place[PLACES];
	uint64_t block[KEYS]; /* the newest number that was, or may be, committed; 0 = deleted */
	uint64_t other[KEYS]; /* after a call of unknown outcome this one, too */
	uint64_t newest;
	struct {
		uint32_t key;
		uint64_t content;
	} note[NOTES]; /* blocks that movers have read */
	struct mread read[READS];
	uint32_t n_read;
	struct mmove move[MOVES];
	uint64_t hits, copies, stale, killed, moved;
};

static uint32_t rnd(struct model *m, uint32_t n) { return (uint32_t)rand_r(&m->seed) % n; }
static uint64_t now(const struct model *m) { return skv_now_ms(m->e.o.clock); }

static uint32_t place_of(const struct skv_files *files, const struct skv_location *loc)
{
	const struct skv_file_ref *f = &files->v[loc->file];
	uint32_t file = (uint32_t)strtoul(f->path + 5, NULL, 10);

	assert_true(file < FILES && loc->offset / BLOCK < PLACES_OF_FILE);
	return ((f->storage[0] == 'm') * FILES + file) * PLACES_OF_FILE +
	       (uint32_t)(loc->offset / BLOCK);
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

static void upset(struct model *m, bool on)
{
	struct skv_fault f = { .kind = SKV_FAULT_NONE };

	if (on && rnd(m, 100) < 4) {
		f = (struct skv_fault){ .call = "append", .at = 1 + rnd(m, 2), .times = 1,
					.status = SKV_E_STORE_IO };
		f.kind = (enum skv_fault_kind[]){ SKV_FAULT_ERROR, SKV_FAULT_UNKNOWN_BEFORE,
						  SKV_FAULT_UNKNOWN_AFTER }[rnd(m, 3)];
	}
	skv_fault_store_set(m->e.store, &f);
}

/* Writes one key; false: it was there, or there was no room. */
static int write_one(struct model *m, const char *instance, uint32_t key, uint64_t content)
{
	struct skv_start_res s;
	struct skv_finish_res f;
	struct skv_key k;
	char session[33];
	int rc;

	env_keys(&k, 1, 1, key);
	rc = env_start(&m->e, &(struct env_start){ .instance = instance, .keys = &k, .n = 1,
						   .deadline_ms = 2000 }, &s);
	if (rc != SKV_OK || s.n_write == 0)
		return NOT_WRITTEN;
	m->place[place_of(&s.files, &s.loc[0])] = content;
	check_reads(m);
	memcpy(session, s.session, sizeof session);
	if (rnd(m, 20) == 0) { /* a writer that fails */
		env_abort(&m->e, session, rnd(m, 2));
		return NOT_WRITTEN;
	}
	return env_finish(&m->e, session, &content, 1, &f);
}

static void do_write(struct model *m)
{
	uint32_t key = rnd(m, KEYS);
	uint64_t content = ++m->newest;
	int rc = write_one(m, "i", key, content);

	if (rc == SKV_OK) {
		m->block[key] = content;
		m->other[key] = 0;
	} else if (rc != NOT_WRITTEN) {
		m->other[key] = content; /* perhaps */
	}
}

/* Of what was read some time ago; sometimes by somebody who made it up. */
static void do_copy(struct model *m)
{
	uint32_t i = rnd(m, NOTES);

	if (rnd(m, 10) == 0)
		write_one(m, "i@fast", rnd(m, KEYS), ++m->newest);
	else if (m->note[i].content)
		write_one(m, "i@fast", m->note[i].key, m->note[i].content);
}

static void lease(struct model *m, uint32_t place, uint64_t content, uint32_t lease_ms)
{
	if (lease_ms && m->n_read < READS)
		m->read[m->n_read++] = (struct mread){ place, content, now(m) + lease_ms };
}

static void check_hit(struct model *m, const struct skv_lookup_res *r, uint32_t i, uint32_t key)
{
	const struct skv_location *loc = &r->loc[i], *copy = r->copy ? &r->copy[i] : NULL;
	uint32_t at = place_of(&r->files, loc), note = rnd(m, NOTES);

	m->hits++;
	if (m->place[at] != loc->checksum)
		fail_msg("key %u: wrong bytes", key);
	if (loc->checksum != m->block[key] && loc->checksum != m->other[key])
		fail_msg("key %u: old bytes", key);
	lease(m, at, loc->checksum, r->lease_ms);
	m->note[note].key = key;
	m->note[note].content = loc->checksum;
	if (!copy || !copy->length)
		return;
	m->copies++;
	at = place_of(&r->files, copy);
	if (m->place[at] != loc->checksum || copy->checksum != loc->checksum)
		fail_msg("key %u: a copy of something else", key);
	lease(m, at, loc->checksum, r->lease_ms);
}

static void do_read(struct model *m)
{
	uint32_t first = rnd(m, KEYS - 8);
	struct skv_key keys[8];
	struct skv_lookup_req q = { .tenant = "t", .instance = "i", .mode = SKV_LOOKUP_BATCH,
				    .keys = keys, .n_keys = 8, .want_copies = true,
				    .lease_ms = rnd(m, 2) ? 1 + rnd(m, 3000) : 0 };
	struct skv_lookup_res r;

	env_keys(keys, 8, 1, first);
	if (env_lookup_req(&m->e, &q, &r) != SKV_OK)
		return;
	for (uint32_t i = 0; i < 8; i++)
		if (r.hit[i])
			check_hit(m, &r, i, first + i);
}

static void do_take(struct model *m)
{
	struct mmove *v = &m->move[rnd(m, MOVES)];
	struct skv_move_take_res r;

	if (v->open || env_move_take(&m->e, 1 + rnd(m, SLOTS), 1000 + rnd(m, 4000), &r) != SKV_OK ||
	    r.n == 0)
		return;
	assert_true(r.n <= SLOTS);
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
static void do_move(struct model *m)
{
	struct mmove *v = &m->move[rnd(m, MOVES)];

	if (!v->open || v->copied)
		return;
	if (v->deadline <= now(m) || rnd(m, 12) == 0) { /* or it dies */
		v->open = false;
		return;
	}
	for (uint32_t i = 0; i < v->n; i++) {
		if (v->to[i] == PLACES)
			continue;
		v->moved[i] = m->place[v->from[i]] == v->sum[i];
		/* read before, and written in any case */
		m->place[v->to[i]] = m->place[v->from[i]];
	}
	v->copied = true;
	check_reads(m);
}

static void do_finish(struct model *m)
{
	struct mmove *v = &m->move[rnd(m, MOVES)];
	struct skv_move_finish_res f;

	if (!v->open || !v->copied)
		return;
	if (env_move_finish(&m->e, v->id, v->moved, v->n, true, &f) == SKV_OK)
		m->moved += f.moved;
	v->open = false; /* the mover has finished writing */
}

static void do_delete(struct model *m)
{
	uint32_t key = rnd(m, KEYS), deleted;
	struct skv_key k;

	env_keys(&k, 1, 1, key);
	if (env_delete(&m->e, &k, 1, &deleted) == SKV_OK)
		m->block[key] = m->other[key] = 0;
}

static void do_clear(struct model *m)
{
	uint64_t deleted;

	if (rnd(m, 20) == 0 && env_clear(&m->e, "i", &deleted) == SKV_OK) {
		memset(m->block, 0, sizeof m->block);
		memset(m->other, 0, sizeof m->other);
	}
}

static void do_kill(struct model *m)
{
	if (rnd(m, 4))
		return;
	if (rnd(m, 3))
		env_crash(&m->e);
	else
		env_shutdown(&m->e);
	env_open(&m->e);
	m->killed++;
}

static void do_wait(struct model *m) { env_advance(&m->e, 1 + rnd(m, 400)); }

static void setup(struct model *m)
{
	const struct skv_spec spec = { "kv", BLOCK };
	const char *fast = "m";
	struct skv_group_spec g = { .name = "fast", .storages = &fast, .n_storages = 1,
				    .tier_of = "g", .write_through = true,
				    .promote_after = 2, .replicate = m->seed % 2 };

	env_init(&m->e);
	m->e.faulty = true;
	m->e.o.journal_limit = 1024u << m->seed % 10;
	env_open(&m->e);
	assert_int_equal(env_storage(&m->e, "s", 4 * UNIT, UNIT), SKV_OK); /* for 60 of 80 */
	assert_int_equal(env_storage(&m->e, "m", 2 * UNIT, UNIT), SKV_OK); /* for 30 */
	assert_int_equal(env_group(&m->e, "g", 0, "s"), SKV_OK);
	assert_int_equal(
		skv_cluster_group_put(m->e.cluster, &g, SKV_PUT_ANY, NULL, NULL, &m->e.err),
		SKV_OK);
	assert_int_equal(env_instance(&m->e, "i", "g", &spec, 1), SKV_OK);
}

static void run(unsigned seed, uint32_t steps, uint64_t *hits, uint64_t *copies,
		uint64_t *moved)
{
	static struct model m;
	static void (*const does[])(struct model *) = { do_write, do_write, do_write, do_copy,
							do_copy,  do_copy,  do_read,  do_read,
							do_read,  do_delete, do_clear, do_kill,
							do_wait,  do_take,   do_move,  do_finish,
							do_take,  do_move,   do_finish };

	memset(&m, 0, sizeof m);
	m.seed = seed;
	setup(&m);
	for (uint32_t i = 0; i < steps; i++) {
		upset(&m, true);
		does[rnd(&m, sizeof does / sizeof does[0])](&m);
		upset(&m, false);
		check_reads(&m);
	}
	env_advance(&m.e, 60000);
	env_check(&m.e);
	*hits += m.hits;
	*copies += m.copies;
	*moved += m.moved;
	assert_true(m.killed > 0);
	env_destroy(&m.e);
}

static void right_bytes_or_a_miss(void **state)
{
	const char *one = getenv("SKV_SEED"), *turns = getenv("SKV_TURNS");
	uint32_t n = turns ? (uint32_t)atoi(turns) : 12;
	uint64_t hits = 0, copies = 0, moved = 0;

	(void)state;
	for (uint32_t i = 0; i < n; i++) {
		unsigned seed = one ? (unsigned)atoi(one) : i + 1;

		print_message("seed %u\n", seed);
		run(seed, 2500, &hits, &copies, &moved);
	}
	print_message("%llu hits, %llu copies, %llu by movers\n", (unsigned long long)hits,
		      (unsigned long long)copies, (unsigned long long)moved);
	assert_true(copies > hits / 50 && moved > 10 * n);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(right_bytes_or_a_miss) };

	env_quiet();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
