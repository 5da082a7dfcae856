/*
 * test_core_model.c - random calls against a model that only believes what it was answered.
 *
 * The model keeps, for each slot a client was ever told of, who may be touching it: an open
 * session, a committed block, a lease or a grace that still runs. Whenever a start names a slot,
 * nobody may. The core is killed and reopened at random, its store fails at random, its
 * allocations fail at random.
 *
 * The mixed runs also stop it cleanly, let checkpoints replace the journal after a few records,
 * clear the instance, trim by age, set the wall clock and reboot: any durable fact may then come
 * from a checkpoint, from the journal, or from one over the other. `test_core_model SEED COUNT`
 * plays COUNT of them.
 */
#include "core_env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <skv/mem.h>

#define BLOCK 4096u
#define SLOTS 8192u
#define KEYS 600u
#define SESSIONS 12u
#define SPECS 3u
#define UNITS (KEYS * SPECS) /* a unit is one spec of one key: what has a slot */

enum use { NOBODY, OPEN, COMMITTED };

struct mslot {
	enum use use;
	uint32_t unit;
	uint64_t generation;
	uint64_t until; /* a lease or a grace runs until then */
	uint64_t born[2]; /* boot time ms: when its start was sent, and answered */
};

/* A finished session: repeating its calls changes nothing. */
struct mdone {
	char id[33];
	char request[24];
	uint32_t n_keys, n_write;
	struct skv_key keys[32];
	uint32_t want[32];
	bool ok[32];
};

struct msession {
	bool open;
	bool revoked[32]; /* by a delete, while it was written */
	char id[33];
	char request[24];
	uint32_t n_keys, n_write;
	uint32_t n_slots;
	struct skv_key keys[32];
	uint32_t want[32];         /* specs asked for of each key */
	uint32_t row[32 * SPECS];  /* of each slot: which of the written blocks, */
	uint32_t unit[32 * SPECS]; /* unit of each slot, */
	uint32_t slot[32 * SPECS]; /* and where */
	uint64_t generation[32 * SPECS];
	uint64_t deadline;
};

struct model {
	struct env e;
	unsigned seed;
	struct mslot slot[SLOTS];
	uint32_t specs;    /* of the instance: 1, or SPECS with sets of their own for each key */
	bool pinned[KEYS]; /* hard, until it is unpinned: acknowledged, and nothing since */
	bool contended;     /* another instance of the group takes room as well */
	int64_t at[UNITS]; /* slot of a committed unit, -1 = none that we know of */
	struct msession s[SESSIONS];
	uint64_t requests;
	bool nothing_evicted; /* the storage is large enough for all */
	unsigned fault_percent, nomem_percent;
	uint64_t newest_generation;
	bool mixed;
	uint32_t keys;         /* starts, lookups and deletes begin at one of so many */
	uint32_t lease_ms;     /* of lookups that lease */
	struct skv_clock clock;
	int64_t wrong;         /* error of the wall clock, ms */
	bool rebooted;
	struct mdone done[8];
	uint32_t n_done;
	uint64_t counts[8];
};

#define WALL 1700000000000ull /* at boot time 0, while the wall clock is right */
#define HOUR 3600000
#define BORN_MS 1001u /* how exact create times are */

static uint32_t rnd(struct model *m, uint32_t n) { return (uint32_t)rand_r(&m->seed) % n; }
static uint64_t now(const struct model *m) { return skv_now_ms(m->e.o.clock); }

static uint64_t boot_ms(void *self)
{
	const struct model *m = self;

	return skv_now_ms(&m->e.clock.clock);
}

static uint64_t wall_ms(void *self)
{
	const struct model *m = self;

	return WALL + boot_ms(self) + (uint64_t)m->wrong;
}

static uint32_t unit_of(const struct model *m, uint32_t key, uint32_t spec)
{
	return key * m->specs + spec;
}

static struct skv_key key_of(uint32_t no) { return (struct skv_key){ no / 40, no }; }

static uint32_t slot_of(const struct skv_files *files, const struct skv_location *loc)
{
	uint32_t file = (uint32_t)strtoul(files->v[loc->file].path + 5, NULL, 10);
	uint32_t slot = (uint32_t)(file * (16 * 65536 / BLOCK) + loc->offset / BLOCK);

	assert_int_equal(loc->offset % BLOCK, 0);
	assert_true(slot < SLOTS);
	return slot;
}

/* Before each call: maybe the store or the memory fails under it. */
static void disturb(struct model *m)
{
	static const int statuses[] = { SKV_E_STORE_IO, SKV_E_STORE_FULL };
	struct skv_fault f = { .call = "append", .at = 1 + rnd(m, 3), .times = 1 };

	if (m->mixed && rnd(m, 4) == 0)
		f.call = rnd(m, 2) ? "checkpoint_commit" : "checkpoint_slice";

	if (rnd(m, 100) < m->nomem_percent)
		skv_mem_fail_at(1 + rnd(m, 40));
	if (!m->e.faulty)
		return;
	if (rnd(m, 100) < m->fault_percent) {
		f.kind = (enum skv_fault_kind[]){ SKV_FAULT_ERROR, SKV_FAULT_UNKNOWN_BEFORE,
						  SKV_FAULT_UNKNOWN_AFTER }[rnd(m, 3)];
		f.status = statuses[rnd(m, 2)];
	}
	skv_fault_store_set(m->e.store, &f);
}

static void calm(struct model *m)
{
	struct skv_fault none = { .kind = SKV_FAULT_NONE };

	skv_mem_fail_at(0);
	if (m->e.faulty)
		skv_fault_store_set(m->e.store, &none);
}

/* Errors of a disturbed store or memory: the caller may try again. */
static bool transient(int rc)
{
	switch (rc) {
	case SKV_E_STORE_IO:
	case SKV_E_STORE_FULL:
	case SKV_E_UNKNOWN_OUTCOME:
	case SKV_E_NOT_READY:
	case SKV_E_NOT_OWNER: case SKV_E_NOMEM: return true;
	default: return false;
	}
}

/* A start names a slot to a client that may write until `until`. */
static void told(struct model *m, uint32_t slot, uint32_t unit, uint64_t generation, uint64_t until)
{
	struct mslot *s = &m->slot[slot];

	if (s->until > now(m))
		fail_msg("slot %u is handed out %llu ms before its %s ends", slot,
			 (unsigned long long)(s->until - now(m)),
			 s->use == OPEN ? "session" : "lease or grace");
	if (generation <= m->newest_generation)
		fail_msg("slot %u: generation %llu after %llu", slot,
			 (unsigned long long)generation,
			 (unsigned long long)m->newest_generation);
	if (s->use == COMMITTED) {
		assert_false(m->nothing_evicted);
		if (m->pinned[s->unit / m->specs] && m->at[s->unit] == slot)
			fail_msg("unit %u was evicted, but is pinned", s->unit);
		if (m->at[s->unit] == slot)
			m->at[s->unit] = -1; /* evicted, and not written again since */
	}
	*s = (struct mslot){ .use = OPEN, .unit = unit, .generation = generation, .until = until };
}

static void note_generation(struct model *m, uint64_t generation)
{
	if (m->newest_generation < generation)
		m->newest_generation = generation;
}

static void remember_session(struct model *m, struct msession *s, const struct skv_start_res *r,
			     uint64_t first_sent, uint64_t sent)
{
	s->open = true;
	memset(s->revoked, 0, sizeof s->revoked);
	memcpy(s->id, r->session, sizeof s->id);
	s->n_write = s->n_slots = 0;
	s->deadline = sent + r->deadline_ms;
	for (uint32_t i = 0; i < r->n_keys; i++) {
		if (r->outcome[i] != SKV_START_WRITE)
			continue;
		for (uint32_t c = 0; c < r->n_specs; c++) {
			const struct skv_location *loc = &r->loc[i * r->n_specs + c];
			uint32_t spec = (uint32_t)(r->specs[c][0] - 'a'), n = s->n_slots;

			if (loc->length == 0)
				continue;
			assert_true(s->want[i] >> spec & 1);
			s->row[n] = s->n_write;
			s->unit[n] = unit_of(m, (uint32_t)s->keys[i].lo, spec);
			s->slot[n] = slot_of(&r->files, loc);
			s->generation[n] = loc->generation;
			told(m, s->slot[n], s->unit[n], loc->generation,
			     s->deadline + m->e.o.grace_ms);
			m->slot[s->slot[n]].born[0] = first_sent;
			m->slot[s->slot[n]].born[1] = now(m);
			s->n_slots++;
		}
		assert_true(s->n_slots > 0 && s->row[s->n_slots - 1] == s->n_write);
		s->n_write++;
	}
	assert_int_equal(s->n_write, r->n_write);
	for (uint32_t i = 0; i < s->n_slots; i++)
		note_generation(m, s->generation[i]);
}

static int start_once(struct model *m, struct msession *s, struct skv_start_res *r)
{
	struct env_start es = { .request_id = s->request, .keys = s->keys, .n = s->n_keys,
				.key_specs = m->specs > 1 ? s->want : NULL, .deadline_ms = 5000 };

	return env_start(&m->e, &es, r);
}

static void do_start(struct model *m)
{
	struct msession *s = &m->s[rnd(m, SESSIONS)];
	uint32_t first = rnd(m, m->keys), n = 1 + rnd(m, 31);
	struct skv_start_res r;
	uint64_t sent = now(m), first_sent = sent;
	int rc, tries = 0;

	if (s->open)
		return;
	s->n_keys = 0;
	for (uint32_t i = first; i < first + n && i < KEYS; i++) {
		s->want[s->n_keys] = 1 + rnd(m, (1u << m->specs) - 1);
		s->keys[s->n_keys++] = key_of(i);
	}
	snprintf(s->request, sizeof s->request, "r%llu", (unsigned long long)m->requests++);
	disturb(m);
	rc = start_once(m, s, &r);
	calm(m);
	while (transient(rc) && tries++ < 20) {
		env_advance(&m->e, 300);
		sent = now(m);
		rc = start_once(m, s, &r);
	}
	if ((rc == SKV_E_NO_SPACE && !m->nothing_evicted) || (rc == SKV_E_QUOTA && m->contended))
		return;
	if (rc != SKV_OK)
		fail_msg("start: %s: %s", skv_status_name(rc), m->e.err.message);
	if (r.n_write == 0)
		return;
	if (r.state != SKV_SESSION_OPEN)
		return; /* the session ended during the retries */
	remember_session(m, s, &r, first_sent, sent);
	m->counts[0]++;
}

static void end_slots(struct model *m, struct msession *s, const bool *ok, bool quiesced)
{
	for (uint32_t i = 0; i < s->n_slots; i++) {
		struct mslot *slot = &m->slot[s->slot[i]];

		if (s->revoked[s->row[i]]) /* waits for the deadline, whoever is quiesced */
			continue;
		if (slot->generation != s->generation[i]) {
			/* expired long ago, and the slot is somebody else's by now */
			assert_null(ok);
			continue;
		}
		if (ok && ok[s->row[i]]) {
			slot->use = COMMITTED;
			slot->until = 0;
			m->at[s->unit[i]] = s->slot[i];
		} else {
			slot->use = NOBODY;
			slot->until = quiesced ? 0 : s->deadline + m->e.o.grace_ms;
		}
	}
	s->open = false;
}

static void remember_done(struct model *m, const struct msession *s, const bool *ok)
{
	struct mdone *d = &m->done[m->n_done++ % 8];

	*d = (struct mdone){ .n_keys = s->n_keys, .n_write = s->n_write };
	memcpy(d->id, s->id, sizeof d->id);
	memcpy(d->request, s->request, sizeof d->request);
	memcpy(d->keys, s->keys, sizeof d->keys);
	memcpy(d->want, s->want, sizeof d->want);
	memcpy(d->ok, ok, s->n_write * sizeof *ok);
}

/* The finish says which blocks were deleted, of those that were written. */
static void check_outcome(const struct msession *s, const struct skv_finish_res *f)
{
	uint32_t deleted = 0;

	for (uint32_t i = 0; i < s->n_write; i++) {
		if (!s->revoked[i])
			continue;
		assert_true(deleted < f->n_deleted);
		assert_int_equal(f->deleted[deleted++], i);
	}
	assert_int_equal(f->n_deleted, deleted);
	assert_int_equal(f->committed + f->failed + deleted, s->n_write);
}

static void do_finish(struct model *m)
{
	struct msession *s = &m->s[rnd(m, SESSIONS)];
	struct skv_finish_res f;
	bool ok[32], quiesced = rnd(m, 2);
	int rc, tries = 0;

	if (!s->open)
		return;
	for (uint32_t i = 0; i < s->n_write; i++)
		ok[i] = rnd(m, 10) != 0;
	disturb(m);
	rc = env_finish_mask(&m->e, s->id, ok, s->n_write, quiesced, &f);
	calm(m);
	while (transient(rc) && tries++ < 20) {
		env_advance(&m->e, 300);
		rc = env_finish_mask(&m->e, s->id, ok, s->n_write, quiesced, &f);
	}
	if (rc == SKV_E_SESSION_EXPIRED) {
		assert_true(now(m) >= s->deadline);
		end_slots(m, s, NULL, false);
		return;
	}
	if (rc != SKV_OK)
		fail_msg("finish: %s: %s", skv_status_name(rc), m->e.err.message);
	check_outcome(s, &f);
	end_slots(m, s, ok, quiesced);
	m->counts[1]++;
	if (m->mixed && f.state == SKV_SESSION_FINISHED)
		remember_done(m, s, ok);
}

/* A client that did not hear the answers repeats its calls, long after. */
static void do_repeat(struct model *m)
{
	const struct mdone *d = &m->done[rnd(m, 8)];
	struct msession again = { .n_keys = d->n_keys };
	struct skv_start_res r;
	struct skv_finish_res f;
	uint32_t committed = 0;
	int rc;

	if (!d->n_keys || rnd(m, 2))
		return;
	for (uint32_t i = 0; i < d->n_write; i++)
		committed += d->ok[i];
	rc = env_finish_mask(&m->e, d->id, d->ok, d->n_write, rnd(m, 2), &f);
	if (transient(rc))
		return; /* an append for an earlier lookup ended the reign */
	assert_int_equal(rc, SKV_OK);
	assert_int_equal(f.state, SKV_SESSION_FINISHED);
	assert_true(f.committed <= committed); /* a delete may have revoked some of them */
	assert_int_equal(f.committed + f.failed + f.n_deleted, d->n_write);
	memcpy(again.keys, d->keys, sizeof again.keys);
	memcpy(again.want, d->want, sizeof again.want);
	memcpy(again.request, d->request, sizeof again.request);
	assert_int_equal(start_once(m, &again, &r), SKV_OK);
	assert_int_equal(r.state, SKV_SESSION_FINISHED);
	assert_string_equal(r.session, d->id);
}

static void abort_session(struct model *m, struct msession *s)
{
	bool quiesced = rnd(m, 2);
	int rc, tries = 0;

	if (!s->open)
		return;
	rc = env_abort(&m->e, s->id, quiesced);
	while (transient(rc) && tries++ < 20) {
		/* an append for an earlier lookup ended the reign */
		env_advance(&m->e, 300);
		rc = env_abort(&m->e, s->id, quiesced);
	}
	if (rc != SKV_OK && rc != SKV_E_SESSION_EXPIRED)
		fail_msg("abort: %s", skv_status_name(rc));
	end_slots(m, s, NULL, quiesced && rc == SKV_OK);
}

static void do_abort(struct model *m) { abort_session(m, &m->s[rnd(m, SESSIONS)]); }

static void seen(struct model *m, uint32_t unit, const struct skv_files *files,
		 const struct skv_location *loc, uint64_t lease_end)
{
	uint32_t at = slot_of(files, loc);
	struct mslot *s = &m->slot[at];

	if (s->use != COMMITTED || s->unit != unit || s->generation != loc->generation)
		fail_msg("unit %u is said to lie in slot %u, which is not its", unit, at);
	if (m->at[unit] != at)
		fail_msg("unit %u was committed in slot %lld, found in %u", unit,
			 (long long)m->at[unit], at);
	if (lease_end > s->until)
		s->until = lease_end;
}

/* Checks the age of a block. Whatever the wall clock did, the age is exact on this boot; after
 * another one never too early, since a block that seems older than it is would be deleted. */
static void check_born(struct model *m, uint32_t unit, uint64_t created)
{
	const struct mslot *s = &m->slot[m->at[unit]];
	const uint64_t born = created - WALL - (uint64_t)m->wrong;

	if (getenv("NOBORN")) return;
	if (born + BORN_MS < s->born[0] || born > now(m) + BORN_MS ||
	    (!m->rebooted && born > s->born[1] + BORN_MS))
		fail_msg("unit %u was made at %llu to %llu, and is said to be at %lld", unit,
			 (unsigned long long)s->born[0], (unsigned long long)s->born[1],
			 (long long)born);
}

static void seen_key(struct model *m, uint32_t no, const struct skv_lookup_res *r, uint32_t i,
		     uint64_t lease_end)
{
	if (m->mixed && m->specs == 1 && r->hit[i])
		check_born(m, no, r->created_ms[i]);
	for (uint32_t c = 0; r->hit[i] && c < r->n_specs; c++)
		if (r->loc[i * r->n_specs + c].length)
			seen(m, unit_of(m, no, c), &r->files, &r->loc[i * r->n_specs + c],
			     lease_end);
}

static int look(struct model *m, const struct skv_key *keys, uint32_t n, enum skv_lookup_mode mode,
		uint32_t lease_ms, struct skv_lookup_res *r)
{
	struct skv_lookup_req q = { .tenant = "t", .instance = "i", .mode = mode, .keys = keys,
				    .n_keys = n,
				    .lease_ms = lease_ms, .partial = m->specs > 1,
				    .want_created = m->mixed };

	return env_lookup_req(&m->e, &q, r);
}

/* Mostly a short one in mixed runs: long leases must be remembered by themselves. */
static uint32_t draw_lease(struct model *m)
{
	if (!m->mixed || rnd(m, 6) == 0)
		return rnd(m, 2) ? m->lease_ms : 0;
	return rnd(m, 3) * 500;
}

static void do_lookup(struct model *m)
{
	uint32_t first = rnd(m, m->keys), n = 1 + rnd(m, 60);
	struct skv_key keys[64];
	struct skv_lookup_res r;
	uint64_t sent = now(m);
	int rc;

	if (first + n > KEYS)
		n = KEYS - first;
	for (uint32_t i = 0; i < n; i++)
		keys[i] = key_of(first + i);
	disturb(m);
	rc = look(m, keys, n, rnd(m, 2) ? SKV_LOOKUP_BATCH : SKV_LOOKUP_PREFIX,
		  draw_lease(m), &r);
	calm(m);
	if (transient(rc))
		return;
	assert_int_equal(rc, SKV_OK);
	for (uint32_t i = 0; i < n; i++) {
		seen_key(m, first + i, &r, i, r.lease_ms ? sent + r.lease_ms : 0);
		m->counts[2] += r.hit[i];
	}
}

/* Without eviction every block that was acknowledged must be there, whatever happened since. */
static void check_all_found(struct model *m)
{
	struct skv_key keys[KEYS];
	struct skv_lookup_res r;

	for (uint32_t i = 0; i < KEYS; i++)
		keys[i] = key_of(i);
	assert_int_equal(look(m, keys, KEYS, SKV_LOOKUP_BATCH, 0, &r), SKV_OK);
	for (uint32_t i = 0; i < KEYS; i++) {
		seen_key(m, i, &r, i, 0);
		for (uint32_t c = 0; c < m->specs && (m->nothing_evicted || m->pinned[i]); c++)
			if (m->at[unit_of(m, i, c)] >= 0 &&
			    !(r.hit[i] && r.loc[i * r.n_specs + c].length))
				fail_msg("acknowledged spec %u of key %u is lost", c, i);
	}
}

/* Revokes all writes of the key: their writers may go on until their deadline. */
static void revoke(struct model *m, uint32_t no)
{
	for (struct msession *s = m->s; s < m->s + SESSIONS; s++) {
		for (uint32_t i = 0; s->open && i < s->n_slots; i++) {
			struct mslot *slot = &m->slot[s->slot[i]];

			if (s->unit[i] / m->specs != no || slot->generation != s->generation[i])
				continue;
			s->revoked[s->row[i]] = true;
			slot->use = NOBODY;
			slot->until = s->deadline + m->e.o.grace_ms;
		}
	}
}

/* Forgets a key that was deleted. */
static void forget_key(struct model *m, uint32_t no)
{
	m->pinned[no] = false;
	revoke(m, no);
	for (uint32_t c = 0; c < m->specs; c++) {
		int64_t *at = &m->at[unit_of(m, no, c)];

		if (*at >= 0)
			m->slot[*at].use = NOBODY; /* the lease, if one runs, stays in `until` */
		*at = -1;
	}
}

static void do_delete(struct model *m)
{
	uint32_t no = rnd(m, m->keys);
	struct skv_key key = key_of(no);
	uint32_t n;
	int rc, tries = 0;

	disturb(m);
	rc = env_delete(&m->e, &key, 1, &n);
	calm(m);
	while (transient(rc) && tries++ < 20) {
		env_advance(&m->e, 300);
		rc = env_delete(&m->e, &key, 1, &n);
	}
	assert_int_equal(rc, SKV_OK);
	forget_key(m, no);
	m->counts[3]++;
}

/* All of the instance at once, or by age: sessions of before publish nothing, however they end. */
static void do_purge(struct model *m)
{
	const bool trim = rnd(m, 2);
	uint64_t n;
	int rc, tries = 0;

	disturb(m);
	rc = trim ? env_trim(&m->e, 0, UINT64_MAX, &n) : env_clear(&m->e, "i", &n);
	calm(m);
	while (transient(rc) && tries++ < 20) {
		env_advance(&m->e, 300);
		rc = trim ? env_trim(&m->e, 0, UINT64_MAX, &n) : env_clear(&m->e, "i", &n);
	}
	assert_int_equal(rc, SKV_OK);
	for (uint32_t no = 0; no < KEYS; no++)
		forget_key(m, no);
	m->counts[7]++;
}

/* Removes what is older than some seconds, and nothing else. */
static void do_trim(struct model *m)
{
	const uint64_t age = 2000 + rnd(m, 30000), before = now(m) - age;
	struct skv_key keys[KEYS];
	struct skv_lookup_res r;
	uint64_t n;

	for (struct msession *s = m->s; s < m->s + SESSIONS; s++) {
		abort_session(m, s); /* which of them it means depends on clocks */
		if (s->open)
			return;
	}
	if (env_trim(&m->e, 0, wall_ms(m) - age, &n) != SKV_OK)
		return; /* an append for an earlier lookup ended the reign */
	for (uint32_t i = 0; i < KEYS; i++)
		keys[i] = key_of(i);
	assert_int_equal(look(m, keys, KEYS, SKV_LOOKUP_BATCH, 0, &r), SKV_OK);
	for (uint32_t i = 0; i < KEYS; i++) {
		const int64_t at = m->at[unit_of(m, i, 0)];

		if (r.hit[i])
			continue;
		if (at >= 0 && m->specs == 1 && m->nothing_evicted &&
		    m->slot[at].born[0] > before + BORN_MS)
			fail_msg("key %u is %llu ms old, and gone by a trim of %llu", i,
				 (unsigned long long)(now(m) - m->slot[at].born[0]),
				 (unsigned long long)age);
		forget_key(m, i);
	}
}

/* The wall clock is set, or is right again. */
static void do_set_clock(struct model *m)
{
	m->wrong = rnd(m, 2) ? 0 : (int64_t)rnd(m, 4 * HOUR) - 2 * HOUR;
	env_advance(&m->e, 0);
}

/* Repeats it while store or memory are disturbed. A call that failed may
 * have been done all the same. */
static int pin_or_not(struct model *m, bool on, const struct skv_key *keys, uint32_t n,
		      enum skv_pin_kind kind, struct skv_pin_res *res)
{
	uint64_t ended;
	int rc = SKV_E_NOMEM;

	for (int tries = 0; transient(rc) && tries < 20; tries++) {
		disturb(m);
		rc = on ? env_pin(&m->e, keys, n, kind,
				  kind == SKV_PIN_SOFT || rnd(m, 2) ? 1000000 : 0, res)
			: env_unpin(&m->e, keys, n, &ended);
		calm(m);
		if (transient(rc))
			env_advance(&m->e, 300);
	}
	return rc;
}

static void do_pin(struct model *m)
{
	uint32_t first = rnd(m, m->keys - 4), n = 1 + rnd(m, 4);
	enum skv_pin_kind kind = rnd(m, 3) ? SKV_PIN_HARD : SKV_PIN_SOFT;
	struct skv_pin_res res = { 0 };
	struct skv_key keys[4];
	bool on = rnd(m, 3) > 0;
	int rc;

	for (uint32_t i = 0; i < n; i++)
		keys[i] = key_of(first + i);
	rc = pin_or_not(m, on, keys, n, kind, &res);
	if (rc == SKV_E_QUOTA) {
		assert_string_equal(m->e.err.field, "pinned_bytes");
		return;
	}
	assert_int_equal(rc, SKV_OK);
	for (uint32_t i = 0; i < n; i++) {
		if (!on)
			m->pinned[first + i] = false;
		else if (kind == SKV_PIN_HARD)
			m->pinned[first + i] |= !res.missing[i];
	}
	m->counts[5] += res.pinned;
}

static void put_shares(struct model *m)
{
	static const char *const one[] = { "s" };
	static const struct skv_spec spec = { "a", BLOCK };
	const struct skv_group_spec g = { .name = "g", .storages = one, .n_storages = 1,
					  .share = rnd(m, 3) };
	const struct skv_instance_spec j = { .tenant = "t", .id = "j", .group = "g", .specs = &spec,
					     .n_specs = 1, .extra = "",
					     .weight = rnd(m, 4),
					     .capacity = rnd(m, 2) * (1 + rnd(m, 100)) * BLOCK };

	assert_int_equal(
		skv_cluster_group_put(m->e.cluster, &g, SKV_PUT_ANY, NULL, NULL, &m->e.err),
		SKV_OK);
	assert_int_equal(skv_cluster_instance_put(m->e.cluster, &j, SKV_PUT_ANY, NULL, &m->e.err),
			 SKV_OK);
}

/* Blocks of another instance come, of which the model only knows that they are not ours. */
static void do_contend(struct model *m)
{
	struct skv_key keys[8];
	struct skv_start_res r;
	struct skv_finish_res f;
	char session[33];

	if (!m->contended)
		return;
	if (rnd(m, 20) == 0)
		put_shares(m);
	env_keys(keys, 8, 1000, 8 * rnd(m, KEYS));
	if (env_start(&m->e,
		      &(struct env_start){ .instance = "j", .keys = keys, .n = 1 + rnd(m, 8) },
		      &r) != SKV_OK || r.n_write == 0)
		return;
	for (uint32_t i = 0; i < r.n_keys; i++) {
		if (r.outcome[i] != SKV_START_WRITE)
			continue;
		told(m, slot_of(&r.files, &r.loc[i]), 0, r.loc[i].generation, 0);
		m->slot[slot_of(&r.files, &r.loc[i])].use = NOBODY;
	}
	for (uint32_t i = 0; i < r.n_keys; i++)
		if (r.outcome[i] == SKV_START_WRITE)
			note_generation(m, r.loc[i].generation);
	m->counts[6] += r.n_write;
	memcpy(session, r.session, sizeof session);
	assert_int_equal(env_finish(&m->e, session, NULL, 0, &f), SKV_OK);
}

#define BOOT_A "aaaaaaaa-0000-4000-8000-000000000001"
#define BOOT_B "bbbbbbbb-0000-4000-8000-000000000002"

static void reboot(struct model *m)
{
	m->e.o.boot_id = m->e.o.boot_id == (const char *)BOOT_A ? BOOT_B : BOOT_A;
	m->rebooted = true;
	m->wrong = 0; /* ages over a reboot are as right as the clock then is */
}

static void do_restart(struct model *m, bool clean)
{
	if (m->mixed)
		disturb(m); /* the checkpoint of a clean stop, too */
	if (clean)
		env_shutdown(&m->e);
	else
		env_crash(&m->e);
	skv_mem_fail_at(0);
	if (m->mixed && m->e.store_options.durability == SKV_DURABILITY_FULL && rnd(m, 8) == 0)
		reboot(m);
	env_open(&m->e);
	env_check(&m->e);
	check_all_found(m);
	m->counts[4]++;
}

static void step(struct model *m)
{
	uint32_t dice = rnd(m, 1000);

	if (dice < 300)
		do_start(m);
	else if (dice < 550)
		do_finish(m);
	else if (dice < 600)
		do_abort(m);
	else if (dice < 850)
		do_lookup(m);
	else if (dice < 930)
		do_delete(m);
	else if (dice < 980)
		env_advance(&m->e, rnd(m, 1500));
	else if (dice < 984)
		do_restart(m, dice == 983);
	else if (dice < 993)
		do_pin(m);
	else if (dice < 995)
		do_purge(m);
	else
		do_contend(m);
}

static void mixed_step(struct model *m)
{
	uint32_t dice = rnd(m, 1000);

	if (dice < 40)
		do_restart(m, dice % 2);
	else if (dice < 44)
		do_purge(m);
	else if (dice < 48)
		do_trim(m);
	else if (dice < 76)
		do_set_clock(m);
	else if (dice < 126)
		do_repeat(m);
	else if (dice < 146)
		env_advance(&m->e, rnd(m, 8000));
	else
		step(m);
}

static void make_instance(struct model *m, uint64_t capacity)
{
	static const struct skv_spec specs[SPECS] = { { "a", BLOCK },
						      { "b", BLOCK },
						      { "c", BLOCK } };

	assert_int_equal(env_storage(&m->e, "s", capacity, 65536), SKV_OK);
	assert_int_equal(env_group(&m->e, "g", 0, "s"), SKV_OK);
	assert_int_equal(env_instance(&m->e, "i", "g", specs, m->specs), SKV_OK);
}

static uint64_t units_found(struct model *m)
{
	struct skv_key keys[KEYS];
	struct skv_lookup_res r;
	uint64_t n = 0;

	for (uint32_t i = 0; i < KEYS; i++)
		keys[i] = key_of(i);
	assert_int_equal(look(m, keys, KEYS, SKV_LOOKUP_BATCH, 0, &r), SKV_OK);
	for (uint32_t i = 0; i < KEYS; i++)
		for (uint32_t c = 0; r.hit[i] && c < r.n_specs; c++)
			n += r.loc[i * r.n_specs + c].length > 0;
	return n;
}

static uint32_t specs = 1; /* of the next runs */
static bool contended;
static bool mixed;

static void mix(struct model *m)
{
	m->mixed = true;
	m->keys = 40 + rnd(m, 200);
	m->lease_ms = 500 + rnd(m, 60000);
	m->e.o.lease_max_ms = 60000;
	m->clock = (struct skv_clock){ boot_ms, wall_ms, m };
	m->e.o.clock = &m->clock;
	m->e.o.boot_id = BOOT_A;
	m->e.o.journal_limit = 2048u << rnd(m, 8); /* many checkpoints, or hardly any */
}

static void run(unsigned seed, uint64_t capacity, unsigned faults, unsigned nomem,
		enum skv_durability durability, int steps)
{
	struct model *m = calloc(1, sizeof *m);

	assert_non_null(m);
	m->specs = specs;
	m->contended = contended;
	m->seed = seed;
	m->fault_percent = faults;
	m->nomem_percent = nomem;
	m->nothing_evicted = capacity > KEYS * 4 * BLOCK;
	m->lease_ms = 3000;
	m->keys = KEYS;
	memset(m->at, 0xff, sizeof m->at);
	env_init(&m->e);
	m->e.faulty = faults > 0;
	m->e.o.journal_limit = 256 * 1024; /* checkpoints come often */
	m->e.store_options.durability = durability;
	if (mixed)
		mix(m);
	env_open(&m->e);
	make_instance(m, capacity);
	if (contended)
		put_shares(m);
	for (int i = 0; i < steps; i++) {
		if (m->mixed)
			mixed_step(m);
		else
			step(m);
		if (i % 50 == 0)
			env_check(&m->e);
	}
	calm(m);
	env_advance(&m->e, 300); /* an append may have ended the reign */
	check_all_found(m);
	env_check(&m->e);
	env_advance(&m->e, 60000); /* nothing leaks: all sessions and holds are over */
	env_advance(&m->e, 60000);
	{
		uint64_t units = units_found(m);
		struct skv_stats st;

		env_stats(&m->e, &st);
		assert_int_equal(st.sessions, 0);
		assert_int_equal(st.storages[0].quarantined_bytes, 0);
		assert_int_equal(st.instances[0].used_bytes, units * BLOCK);
		assert_true(m->contended || st.storages[0].used_bytes == units * BLOCK);
	}
	print_message(
		"seed %u, %u specs: %llu starts, %llu finishes, %llu hits, %llu deletes, %llu "
		"restarts, %llu pins, %llu stolen, %llu purges\n",
		seed, m->specs, (unsigned long long)m->counts[0], (unsigned long long)m->counts[1],
		(unsigned long long)m->counts[2], (unsigned long long)m->counts[3],
		(unsigned long long)m->counts[4], (unsigned long long)m->counts[5],
		(unsigned long long)m->counts[6], (unsigned long long)m->counts[7]);
	env_destroy(&m->e);
	free(m);
}

#define LARGE (32ull << 20)
#define SMALL (1ull << 20) /* 256 slots for 600 keys */

static void random_calls_with_room(void **state)
{
	(void)state;
	for (unsigned seed = 1; seed <= 6; seed++)
		run(seed, LARGE, 0, 0, seed % 2 ? SKV_DURABILITY_FULL : SKV_DURABILITY_NORMAL,
		    3000);
}

static void random_calls_with_eviction(void **state)
{
	(void)state;
	for (unsigned seed = 11; seed <= 16; seed++)
		run(seed, SMALL, 0, 0, seed % 2 ? SKV_DURABILITY_FULL : SKV_DURABILITY_NORMAL,
		    3000);
}

static void random_calls_with_a_failing_store(void **state)
{
	(void)state;
	for (unsigned seed = 21; seed <= 26; seed++)
		run(seed, seed % 2 ? LARGE : SMALL, 20, 0,
		    seed % 3 ? SKV_DURABILITY_FULL : SKV_DURABILITY_NORMAL, 3000);
}

static void random_calls_with_failing_allocations(void **state)
{
	(void)state;
	for (unsigned seed = 31; seed <= 36; seed++)
		run(seed, seed % 2 ? LARGE : SMALL, seed % 3 ? 0 : 10, 30, SKV_DURABILITY_FULL,
		    3000);
}

/* The same, with a set of specs for each key, so that blocks have several writers at a time. */
static void random_specs_for_each_key(void **state)
{
	(void)state;
	specs = SPECS;
	for (unsigned seed = 41; seed <= 44; seed++)
		run(seed, seed % 2 ? LARGE : 3 * SMALL, 0, 0,
		    seed % 3 ? SKV_DURABILITY_FULL : SKV_DURABILITY_NORMAL, 2500);
	for (unsigned seed = 51; seed <= 54; seed++)
		run(seed, seed % 2 ? LARGE : 3 * SMALL, 20, 0,
		    seed % 3 ? SKV_DURABILITY_FULL : SKV_DURABILITY_NORMAL, 2500);
	for (unsigned seed = 61; seed <= 64; seed++)
		run(seed, seed % 2 ? LARGE : 3 * SMALL, 10, 30, SKV_DURABILITY_FULL, 2500);
	specs = 1;
}

/* Two instances, with parts that change, and pins of one. */
static void random_shares(void **state)
{
	(void)state;
	contended = true;
	for (unsigned seed = 71; seed <= 76; seed++)
		run(seed, SMALL, seed % 3 ? 0 : 20, seed % 2 ? 0 : 30,
		    seed % 2 ? SKV_DURABILITY_FULL : SKV_DURABILITY_NORMAL, 4000);
	contended = false;
}

static unsigned playing; /* 0 = none */

static int tell_seed(void **state)
{
	(void)state;
	if (playing)
		print_error("test_core_model %u 1 does it again\n", playing);
	return 0;
}

/* Plays seeds first.. of the mixed runs. */
static void play_mixed(unsigned first, unsigned count)
{
	mixed = true;
	for (unsigned seed = first; seed < first + count; seed++) {
		specs = seed % 4 ? 1 : SPECS;
		contended = seed % 5 == 0;
		playing = seed;
		run(seed, seed % 3 ? LARGE : specs * SMALL, seed % 2 ? 0 : 10, 0,
		    seed % 7 ? SKV_DURABILITY_FULL : SKV_DURABILITY_NORMAL, 1500);
	}
	mixed = contended = false;
	specs = 1;
	playing = 0;
}

static unsigned first_seed = 101, n_seeds = 12;

static void random_mixed_calls(void **state)
{
	(void)state;
	play_mixed(first_seed, n_seeds);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest mixed_test[] = {
		cmocka_unit_test_teardown(random_mixed_calls, tell_seed),
	};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(random_mixed_calls, tell_seed),
		cmocka_unit_test(random_calls_with_room),
		cmocka_unit_test(random_calls_with_eviction),
		cmocka_unit_test(random_calls_with_a_failing_store),
		cmocka_unit_test(random_calls_with_failing_allocations),
		cmocka_unit_test(random_specs_for_each_key),
		cmocka_unit_test(random_shares),
	};

	env_quiet();
	if (argc == 3) {
		first_seed = (unsigned)strtoul(argv[1], NULL, 10);
		n_seeds = (unsigned)strtoul(argv[2], NULL, 10);
		return cmocka_run_group_tests(mixed_test, NULL, NULL);
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
