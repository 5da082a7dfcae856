/*
 * test_core_pages_model.c - random calls on an external storage against a model that only
 * believes what it was answered.
 *
 * The model keeps for each page which key was committed there and until when somebody may still be
 * at it: a writer until its deadline and grace, a reader until its lease ends. Whenever a start
 * names a page to be written, nobody may. The core is killed and reopened at random, its store and
 * its allocations fail at random.
 */
#include "core_env.h"

#include <stdlib.h>
#include <string.h>

#include <skv/mem.h>

#define KEYS 200u
#define PAGES 9000u
#define BATCH 24u
#define RESERVATIONS 16u
#define NOWHERE UINT64_MAX

struct reservation {
	bool open;
	bool unsure; /* the deadline may have passed, or a call about the reservation failed */
	struct skv_key key[BATCH];
	uint64_t page[BATCH];
	bool ended[BATCH];
	uint32_t n;
	uint64_t deadline;
};

struct model {
	struct env e;
	unsigned seed;
	uint64_t pages;
	unsigned fault_percent, nomem_percent;
	bool nothing_evicted;
	uint64_t until[PAGES]; /* a writer or a reader may be there until then */
	int64_t key_at[PAGES]; /* committed there, -1 = none that we know of */
	uint64_t at[KEYS];     /* where a key was committed */
	struct reservation r[RESERVATIONS];
	uint64_t reserved, committed, given_up, hits, no_room, restarts, clears;
};

static uint32_t rnd(struct model *m, uint32_t n) { return (uint32_t)rand_r(&m->seed) % n; }
static uint64_t now(const struct model *m) { return skv_now_ms(m->e.o.clock); }
static struct skv_key key_of(uint32_t no) { return (struct skv_key){ no / 30, no }; }

static void disturb(struct model *m)
{
	struct skv_fault f = { .kind = SKV_FAULT_NONE, .at = 1 + rnd(m, 3), .times = 1,
			       .status = rnd(m, 2) ? SKV_E_STORE_IO : SKV_E_STORE_FULL };

	if (rnd(m, 100) < m->nomem_percent)
		skv_mem_fail_at(1 + rnd(m, 30));
	if (!m->e.faulty)
		return;
	if (rnd(m, 100) < m->fault_percent)
		f.kind = (enum skv_fault_kind[]){ SKV_FAULT_ERROR, SKV_FAULT_UNKNOWN_BEFORE,
						  SKV_FAULT_UNKNOWN_AFTER }[rnd(m, 3)];
	skv_fault_store_set(m->e.store, &f);
}

static void calm(struct model *m)
{
	struct skv_fault none = { .kind = SKV_FAULT_NONE };

	skv_mem_fail_at(0);
	if (m->e.faulty)
		skv_fault_store_set(m->e.store, &none);
}

static bool transient(int rc)
{
	return rc == SKV_E_STORE_IO || rc == SKV_E_STORE_FULL || rc == SKV_E_UNKNOWN_OUTCOME ||
	       rc == SKV_E_NOT_READY || rc == SKV_E_NOT_OWNER || rc == SKV_E_NOMEM;
}

static void forget(struct model *m, uint32_t no)
{
	if (m->at[no] != NOWHERE)
		m->key_at[m->at[no]] = -1;
	m->at[no] = NOWHERE;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void told_to_write(struct model *m, struct reservation *r, struct skv_key key, uint64_t page,
			  uint64_t until)
{
	assert_true(page < m->pages);
	if (m->until[page] > now(m))
		fail_msg("page %llu is handed out while somebody may be at it",
			 (unsigned long long)page);
	if (m->key_at[page] >= 0) {
		assert_false(m->nothing_evicted);
		forget(m, (uint32_t)m->key_at[page]);
	}
	if (m->at[key.lo] != NOWHERE) {
		assert_false(m->nothing_evicted);
		forget(m, (uint32_t)key.lo);
	}
	m->until[page] = until;
	r->key[r->n] = key;
	r->page[r->n] = page;
	r->ended[r->n++] = false;
}

static void do_reserve(struct model *m)
{
	struct reservation *r = &m->r[rnd(m, RESERVATIONS)];
	uint32_t first = rnd(m, KEYS), n = 1 + rnd(m, BATCH);
	struct skv_key keys[BATCH];
	uint64_t places[BATCH], sent = now(m);
	struct env_start s = { .keys = keys, .fit = true, .anonymous = true,
			       .want_existing = rnd(m, 4) != 0,
			       .deadline_ms = 2000 + rnd(m, 3000), .grace_ms = rnd(m, 3) * 1500 };
	struct skv_start_res res;
	uint32_t grace = s.grace_ms > m->e.o.grace_ms ? s.grace_ms : m->e.o.grace_ms;
	int rc;

	if (r->open)
		return;
	for (uint32_t i = first; i < KEYS && i < first + n; i++) {
		places[s.n] = rnd(m, (uint32_t)m->pages);
		keys[s.n++] = key_of(i);
	}
	s.offsets = rnd(m, 6) ? NULL : places;
	disturb(m);
	rc = env_start(&m->e, &s, &res);
	calm(m);
	if (transient(rc))
		return;
	if (rc != SKV_OK)
		fail_msg("start: %s: %s", skv_status_name(rc), m->e.err.message);
	*r = (struct reservation){ .deadline = sent + s.deadline_ms };
	for (uint32_t i = 0; i < s.n; i++) {
		uint32_t no = (uint32_t)keys[i].lo;

		if (res.outcome[i] == SKV_START_WRITE)
			told_to_write(m, r, keys[i], res.loc[i].offset,
				      now(m) + res.deadline_ms + grace);
		else if (res.outcome[i] == SKV_START_EXISTS && s.want_existing &&
			 res.loc[i].offset != m->at[no])
			fail_msg("key %u is said to lie in page %llu", no,
				 (unsigned long long)res.loc[i].offset);
		if (res.outcome[i] == SKV_START_WRITE && s.offsets)
			assert_int_equal(res.loc[i].offset, places[i]);
		m->no_room += res.outcome[i] == SKV_START_NO_ROOM;
	}
	assert_int_equal(r->n, res.n_write);
	r->open = r->n > 0;
	m->reserved += r->n;
}

static void is_committed(struct model *m, uint32_t no, uint64_t page)
{
	m->at[no] = page;
	m->key_at[page] = no;
	m->until[page] = 0;
	m->committed++;
}

/* Where the key lies, by the core. */
static uint64_t page_of(struct model *m, uint32_t no)
{
	struct skv_key key = key_of(no);
	struct skv_lookup_req q = { .tenant = "t", .instance = "i", .mode = SKV_LOOKUP_BATCH,
				    .keys = &key, .n_keys = 1,
				    .peek = true };
	struct skv_lookup_res res;
	int rc = env_lookup_req(&m->e, &q, &res);

	for (int i = 0; transient(rc) && i < 20; i++) { /* the partition is being loaded anew */
		env_advance(&m->e, 100);
		rc = env_lookup_req(&m->e, &q, &res);
	}
	assert_int_equal(rc, SKV_OK);
	return res.hit[0] ? res.loc[0].offset : NOWHERE;
}

struct choice {
	struct skv_key key[BATCH + 4];
	uint64_t page[BATCH + 4], give_up[BATCH + 4];
	uint32_t commit_of[BATCH];
	uint32_t n_commit, n_give_up, n_junk;
};

static void choose(struct model *m, struct reservation *r, struct choice *c)
{
	uint32_t most = rnd(m, 3) ? BATCH : 5;

	*c = (struct choice){ 0 };
	for (uint32_t i = 0; i < r->n && c->n_commit + c->n_give_up < most; i++) {
		if (r->ended[i] || rnd(m, 8) == 0)
			continue;
		r->ended[i] = true;
		if (rnd(m, 6) == 0) {
			/* a writer that gives up so late may hit the page's next writer */
			if (now(m) >= r->deadline)
				continue;
			c->give_up[c->n_give_up++] = r->page[i];
			continue;
		}
		c->commit_of[c->n_commit] = i;
		c->key[c->n_commit] = r->key[i];
		c->page[c->n_commit++] = r->page[i];
	}
	for (; rnd(m, 3) == 0 && c->n_junk < 3; c->n_junk++) { /* settled long ago, or nobody's */
		c->key[c->n_commit + c->n_junk] = key_of(rnd(m, KEYS));
		c->page[c->n_commit + c->n_junk] = m->pages + rnd(m, 100);
	}
}

static void do_partial(struct model *m)
{
	struct reservation *r = &m->r[rnd(m, RESERVATIONS)];
	struct skv_partial_req q = { .tenant = "t", .instance = "i" };
	struct skv_partial_res res;
	struct choice c;
	/* later the page may be somebody else's, for the same key */
	uint64_t last = r->deadline + m->e.o.grace_ms;
	int rc;

	r->open &= now(m) < last;
	if (!r->open)
		return;
	choose(m, r, &c);
	q.keys = c.key;
	q.offsets = c.page;
	q.n_commit = c.n_commit + c.n_junk;
	q.give_up = c.give_up;
	q.n_give_up = c.n_give_up;
	disturb(m);
	rc = env_partial(&m->e, &q, &res);
	calm(m);
	while (transient(rc)) {
		r->unsure = true;
		env_advance(&m->e, 300);
		if (now(m) < last)
			rc = env_partial(&m->e, &q, &res);
		else if (skv_cluster_state_get(m->e.cluster) == SKV_CORE_READY)
			break;
	}
	assert_true(rc == SKV_OK || transient(rc));
	r->unsure |= now(m) >= r->deadline;
	if (!r->unsure && (res.committed != c.n_commit || res.given_up != c.n_give_up))
		fail_msg("%u of %u committed, %u of %u given up", res.committed, c.n_commit,
			 res.given_up, c.n_give_up);
	for (uint32_t i = 0; i < c.n_commit; i++) {
		uint32_t no = (uint32_t)c.key[i].lo;

		if (!r->unsure || page_of(m, no) == c.page[i])
			is_committed(m, no, c.page[i]);
	}
	m->given_up += c.n_give_up;
	r->open = !r->unsure && rnd(m, 10) != 0; /* else what is left expires */
}

static void do_lookup(struct model *m)
{
	uint32_t first = rnd(m, KEYS), n = 1 + rnd(m, 40);
	uint64_t sent = now(m);
	struct skv_key keys[40];
	struct skv_lookup_res res;
	int rc;

	n = n < KEYS - first ? n : KEYS - first;
	for (uint32_t i = 0; i < n; i++)
		keys[i] = key_of(first + i);
	disturb(m);
	rc = env_lookup(&m->e, keys, n, SKV_LOOKUP_BATCH, rnd(m, 2) ? 3000 : 0, &res);
	calm(m);
	if (transient(rc))
		return;
	assert_int_equal(rc, SKV_OK);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t page = res.hit[i] ? res.loc[i].offset : NOWHERE;

		if (res.hit[i] && page != m->at[first + i])
			fail_msg("key %u is found in page %llu", first + i,
				 (unsigned long long)page);
		if (res.hit[i] && res.lease_ms && m->until[page] < sent + res.lease_ms)
			m->until[page] = sent + res.lease_ms;
		m->hits += res.hit[i];
	}
}

static void do_delete(struct model *m)
{
	uint32_t no = rnd(m, KEYS), n;
	struct skv_key key = key_of(no);
	int rc, tries = 0;

	disturb(m);
	rc = env_delete(&m->e, &key, 1, &n);
	calm(m);
	while (transient(rc) && tries++ < 20) {
		env_advance(&m->e, 300);
		rc = env_delete(&m->e, &key, 1, &n);
	}
	assert_int_equal(rc, SKV_OK);
	forget(m, no);
	for (struct reservation *r = m->r; r < m->r + RESERVATIONS; r++)
		for (uint32_t i = 0; i < r->n; i++) /* a late confirm is ignored */
			r->ended[i] |= skv_key_equal(r->key[i], key);
}

/* All at once; what is being written is given up with it. */
static void do_clear(struct model *m)
{
	uint64_t n;
	int rc, tries = 0;

	disturb(m);
	rc = env_clear(&m->e, "i", &n);
	calm(m);
	while (transient(rc) && tries++ < 20) {
		env_advance(&m->e, 300);
		rc = env_clear(&m->e, "i", &n);
	}
	assert_int_equal(rc, SKV_OK);
	for (uint32_t no = 0; no < KEYS; no++)
		forget(m, no);
	for (uint32_t i = 0; i < RESERVATIONS; i++)
		m->r[i].open = false;
	m->clears++;
}

static uint64_t check_all(struct model *m)
{
	uint64_t found = 0;

	for (uint32_t no = 0; no < KEYS; no++) {
		uint64_t page = page_of(m, no);

		if (page != NOWHERE && page != m->at[no])
			fail_msg("key %u is found in page %llu", no, (unsigned long long)page);
		if (page == NOWHERE && m->at[no] != NOWHERE && m->nothing_evicted)
			fail_msg("acknowledged key %u is lost", no);
		if (page == NOWHERE)
			forget(m, no);
		found += page != NOWHERE;
	}
	return found;
}

static void do_restart(struct model *m)
{
	if (rnd(m, 2))
		env_shutdown(&m->e);
	else
		env_crash(&m->e);
	env_open(&m->e);
	env_check(&m->e);
	check_all(m);
	m->restarts++;
}

/* ---- runs ------------------------------------------------------------------------------------ */

static void step(struct model *m)
{
	uint32_t dice = rnd(m, 1000);

	if (dice < 350)
		do_reserve(m);
	else if (dice < 700)
		do_partial(m);
	else if (dice < 850)
		do_lookup(m);
	else if (dice < 920)
		do_delete(m);
	else if (dice < 980)
		env_advance(&m->e, rnd(m, 1500));
	else if (dice < 988)
		do_restart(m);
	else if (dice < 990)
		do_clear(m);
}

static void run(unsigned seed, uint64_t pages, unsigned faults, unsigned nomem)
{
	struct model *m = calloc(1, sizeof *m);
	struct skv_stats st;
	uint64_t found;

	assert_non_null(m);
	m->seed = seed;
	m->pages = pages;
	m->fault_percent = faults;
	m->nomem_percent = nomem;
	m->nothing_evicted = pages > KEYS * 6;
	memset(m->at, 0xff, sizeof m->at);
	memset(m->key_at, 0xff, sizeof m->key_at);
	env_init(&m->e);
	m->e.faulty = faults > 0;
	m->e.o.grace_max_ms = 3000;
	m->e.o.journal_limit = 64 * 1024; /* checkpoints come often */
	m->e.store_options.durability = seed % 2 ? SKV_DURABILITY_FULL : SKV_DURABILITY_NORMAL;
	env_open(&m->e);
	env_make_pages(&m->e, pages);
	for (int i = 0; i < 3000; i++) {
		step(m);
		if (i % 50 == 0)
			env_check(&m->e);
	}
	calm(m);
	check_all(m); /* loaded, if the last call had it loaded anew */
	env_advance(&m->e, 60000); /* nothing leaks: all sessions and holds are over */
	env_advance(&m->e, 60000);
	env_check(&m->e);
	found = check_all(m);
	env_stats(&m->e, &st);
	assert_int_equal(st.sessions, 0);
	assert_int_equal(st.storages[0].quarantined_bytes, 0);
	assert_int_equal(st.storages[0].used_bytes, found);
	print_message(
		"seed %u, %llu pages: %llu reserved, %llu committed, %llu given up, %llu without "
		"room, %llu hits, %llu restarts, %llu clears\n",
		seed, (unsigned long long)pages, (unsigned long long)m->reserved,
		(unsigned long long)m->committed, (unsigned long long)m->given_up,
		(unsigned long long)m->no_room, (unsigned long long)m->hits,
		(unsigned long long)m->restarts, (unsigned long long)m->clears);
	env_destroy(&m->e);
	free(m);
}

static void random_calls(void **state)
{
	(void)state;
	for (unsigned seed = 1; seed <= 8; seed++)
		run(seed, seed % 4 < 2 ? 60 + seed : PAGES, 0, 0);
}

static void random_calls_with_a_failing_store(void **state)
{
	(void)state;
	for (unsigned seed = 11; seed <= 18; seed++)
		run(seed, seed % 4 < 2 ? 60 + seed : PAGES, 20, 0);
}

static void random_calls_with_failing_allocations(void **state)
{
	(void)state;
	for (unsigned seed = 21; seed <= 28; seed++)
		run(seed, seed % 4 < 2 ? 60 + seed : PAGES, seed % 3 ? 0 : 10, 30);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_calls),
		cmocka_unit_test(random_calls_with_a_failing_store),
		cmocka_unit_test(random_calls_with_failing_allocations),
	};

	env_quiet();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
