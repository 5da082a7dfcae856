/*
 * test_core_ownership.c - the ownership state machine: every state with every event, and managers
 * in turned time (pauses, kills, delayed and lost messages, clocks that stand still).
 *
 * The random test has a store of its own: a fence, a counter of renewals, the end of a journal. It
 * checks that reads and writes which managers answer could not come from two owners at once.
 *
 * Usage: test_core_ownership [FIRST_SEED SEEDS]
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <lock/ownership.h>

#define LEASE 1000u

/* ---- every state with every event ------------------------------------------------------------ */

/* A letter for each event in the order of OWN_EVENTS, MAY_OWN off and DRAIN on: the state that
 * follows. '.': the same one. */
static const char letters[OWN_STATE_COUNT + 1] = "sclokgx";
static const char *const expected[OWN_STATE_COUNT] = {
	[OWN_STANDBY] = ".l..............x",  [OWN_CLAIMING] = ".ls...g....ggg..x",
	[OWN_LOADING] = "......gocgcggg..x",  [OWN_OWNING] = "......g..gcggg.kx",
	[OWN_CLOSING] = "......x...x.....x",  [OWN_GIVING_UP] = "..............s.x",
	[OWN_STOPPED] = ".................",
};

static struct ownership machine(enum own_state s)
{
	return (struct ownership){ .state = s, .fence = 7, .owned_until = 900, .may_own = true };
}

static struct own_input input(enum own_event e)
{
	return (struct own_input){ .event = e, .now = 500, .fence = 7, .ms = 50,
				   .lease_ms = LEASE, .on = e == OWN_ON_DRAIN };
}

static bool names_fence(enum own_event e)
{
	return e == OWN_ON_RENEWED || (e >= OWN_ON_FENCED && e <= OWN_ON_RELOAD);
}

static void each_event_in_each_state(void **state)
{
	(void)state;
	for (int s = 0; s < OWN_STATE_COUNT; s++) {
		assert_int_equal(strlen(expected[s]), OWN_EVENT_COUNT);
		for (int e = 0; e < OWN_EVENT_COUNT; e++) {
			struct ownership before = machine((enum own_state)s), o = before;
			struct own_input in = input((enum own_event)e);
			const char to = expected[s][e];
			const bool moves = to != '.', ends = moves && strchr("cgx", to);

			ownership_on(&o, &in);
			if (letters[o.state] != (moves ? to : letters[s]))
				fail_msg("%c, event %d: %c", letters[s], e, letters[o.state]);
			assert_int_equal(o.given_up, before.given_up + ends);
			/* nothing is answered or appended after a loss, or when it has ended */
			if (moves && (strchr("sx", to) || o.end == OWN_END_LOST))
				assert_int_equal(o.owned_until, 0);
			if (moves && to == 'l')
				assert_int_equal(o.owned_until, in.now + LEASE);
		}
	}
}

static void an_event_of_an_earlier_fence_changes_nothing(void **state)
{
	(void)state;
	for (int s = 0; s < OWN_STATE_COUNT; s++)
		for (int e = 0; e < OWN_EVENT_COUNT; e++) {
			struct ownership before = machine((enum own_state)s), o = before;
			struct own_input in = input((enum own_event)e);

			in.fence = 6;
			ownership_on(&o, &in);
			if (names_fence((enum own_event)e))
				assert_memory_equal(&o, &before, sizeof o);
		}
}

static void the_action_follows_from_the_state(void **state)
{
	static const enum own_action due[OWN_STATE_COUNT] = {
		[OWN_STANDBY] = OWN_DO_ACQUIRE,   [OWN_CLAIMING] = OWN_DO_RECLAIM,
		[OWN_LOADING] = OWN_DO_RENEW,     [OWN_OWNING] = OWN_DO_RENEW,
		[OWN_CLOSING] = OWN_DO_RENEW,     [OWN_GIVING_UP] = OWN_DO_GIVE_UP,
		[OWN_STOPPED] = OWN_DO_NOTHING,
	};
	const struct own_input tick = input(OWN_ON_TICK);

	(void)state;
	for (int s = 0; s < OWN_STATE_COUNT; s++) {
		struct ownership o = machine((enum own_state)s);

		assert_int_equal(ownership_on(&o, &tick), due[s]);
	}
	for (int i = 0; i < 3; i++) {
		struct ownership o = machine(OWN_STANDBY);

		o.may_own = i != 0;
		o.draining = i == 1;
		o.out_until = i == 2 ? 501 : 0;
		assert_int_equal(ownership_on(&o, &tick), OWN_DO_LOOK);
	}
}

/* The acquire completed when it was no longer permitted: the ownership is released, not loaded. */
static void an_acquire_that_is_not_wanted_is_given_up(void **state)
{
	static const enum own_state from[] = { OWN_STANDBY, OWN_CLAIMING, OWN_GIVING_UP };
	struct own_input in = input(OWN_ON_ACQUIRED);

	(void)state;
	in.fence = 8;
	for (int i = 0; i < 3; i++) {
		struct ownership o = machine(from[i]);

		o.may_own = false;
		o.end = OWN_END_LOST;
		assert_int_equal(ownership_on(&o, &in), OWN_DO_GIVE_UP);
		assert_int_equal(o.fence, 8); /* which is released */
		assert_int_not_equal(o.end, OWN_END_LOST);
	}
}

static void failed_loads_end_it(void **state)
{
	struct ownership o = machine(OWN_LOADING);
	struct own_input in = input(OWN_ON_LOAD_FAILED), acquired = input(OWN_ON_ACQUIRED);

	(void)state;
	for (uint32_t i = 1; i < OWN_FAILED_LOADS; i++) {
		ownership_on(&o, &in);
		assert_int_equal(o.state, OWN_CLAIMING);
		acquired.fence = ++in.fence;
		ownership_on(&o, &acquired);
		assert_int_equal(o.state, OWN_LOADING);
	}
	ownership_on(&o, &in);
	assert_int_equal(o.state, OWN_GIVING_UP);
	assert_int_equal(o.end, OWN_END_UNLOADABLE);
	in = input(OWN_ON_GIVEN_UP);
	assert_int_equal(ownership_on(&o, &in), OWN_DO_LOOK); /* others first */
	assert_int_equal(o.out_until, in.now + 2 * LEASE);
	in = input(OWN_ON_TICK);
	in.now = o.out_until;
	assert_int_equal(ownership_on(&o, &in), OWN_DO_ACQUIRE);
}

/* Nothing was acquired, so nothing is released; whoever asks learns why. */
static void barred_claims_end_it(void **state)
{
	static const enum own_state from[] = { OWN_STANDBY, OWN_CLAIMING };
	struct own_input in = input(OWN_ON_BARRED), given = input(OWN_ON_GIVEN_UP);

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct ownership o = machine(from[i]);

		for (uint32_t n = 1; n < OWN_BARRED_CLAIMS; n++) {
			ownership_on(&o, &in);
			assert_int_equal(o.state, from[i]);
		}
		assert_int_equal(ownership_on(&o, &in), OWN_DO_GIVE_UP);
		assert_int_equal(o.end, OWN_END_BARRED);
		assert_true(ownership_is_hopeless(&o));
		assert_int_equal(ownership_on(&o, &given), OWN_DO_LOOK);
		assert_int_equal(o.barred, OWN_BARRED_CLAIMS);
		given = input(OWN_ON_TICK);
		given.now = o.out_until;
		assert_int_equal(ownership_on(&o, &given), OWN_DO_ACQUIRE);
		assert_int_equal(ownership_on(&o, &in), OWN_DO_GIVE_UP); /* a single try, then */
		given = input(OWN_ON_REFUSED);
		o.state = OWN_STANDBY;
		ownership_on(&o, &given);
		assert_int_equal(o.barred, 0);
		given = input(OWN_ON_GIVEN_UP);
	}
}

/* ---- managers in turned time ----------------------------------------------------------------- */

#define MANAGERS 3u
#define STEPS 30000u /* ms */

enum call_kind { NO_CALL, ACQUIRE, LOOK, RENEW, RELEASE };

/* A call under way. A lost one never arrives; one without an answer does, perhaps late. */
struct call {
	enum call_kind kind;
	uint64_t fence, since, seq, compare;
	uint64_t arrives, ends; /* real time */
	bool lost, answered, arrived, ok, refused, expired;
	uint64_t got;
};

struct manager {
	struct ownership o;
	uint64_t clock;        /* the manager's own clock, ms */
	uint64_t paused_until; /* real time */
	bool stands;           /* the clock stands still meanwhile */
	uint64_t stood;        /* by its clock: when that stood still last */
	uint64_t next_step;
	struct call call, append;
	uint64_t counter, counter_at; /* of renewals: the newest seen, since when by its clock */
	bool has, loading, has_late;
	uint64_t end, loaded_fence, load_fence, load_ends;
	struct call late; /* an append that nobody waits for any more */
};

static struct world {
	uint64_t now, seed, state;
	struct manager m[MANAGERS];
	int owner; /* the store: -1 = nobody */
	uint64_t fence, counter, end, acknowledged;
	uint64_t writes, reads, stale, loads, kills, takeovers;
} w;

static uint64_t roll(uint64_t n)
{
	w.state ^= w.state << 13;
	w.state ^= w.state >> 7;
	w.state ^= w.state << 17;
	return w.state % n;
}

static enum own_action event(struct manager *m, enum own_event e, uint64_t fence, uint64_t at)
{
	struct own_input in = { .event = e, .fence = fence, .now = at, .lease_ms = LEASE,
				.ms = roll(3 * LEASE), .on = roll(3) != 0 };

	return ownership_on(&m->o, &in);
}

static void begin(struct manager *m, struct call *c, enum call_kind kind)
{
	const uint64_t delay = roll(20) ? 1 + roll(20) : roll(4 * LEASE);

	*c = (struct call){ .kind = kind, .fence = m->o.fence, .since = m->clock,
			    .arrives = w.now + delay, .ends = w.now + delay + 1 + roll(20),
			    .lost = roll(40) == 0, .answered = roll(40) != 0 };
	if (c->ends - w.now > LEASE) { /* the caller waits for so long at most */
		c->answered = false;
		c->ends = w.now + LEASE;
	}
	c->expired = m->counter_at && m->clock - m->counter_at > LEASE;
	c->compare = m->counter;
}

/* The store's side. */
static void arrive(struct manager *m, struct call *c)
{
	const int self = (int)(m - w.m);
	const bool mine = w.owner == self && c->fence == w.fence;

	if (c->arrived || c->lost || w.now < c->arrives)
		return;
	c->arrived = true;
	switch (c->kind) {
	case LOOK:
	case ACQUIRE:
		c->got = w.counter;
		c->refused = w.owner >= 0 && w.owner != self &&
			     !(c->expired && c->compare == w.counter);
		c->ok = !c->refused;
		if (c->kind == ACQUIRE && c->ok) {
			w.takeovers += w.owner != self;
			w.owner = self;
			c->got = ++w.fence;
			w.counter++;
		}
		break;
	case RENEW:
		c->ok = mine;
		c->refused = !mine;
		w.counter += mine;
		break;
	case RELEASE:
		if (mine) {
			w.owner = -1;
			w.fence++;
			w.counter++;
		}
		break;
	default: /* an append */
		c->ok = mine && c->seq == w.end + 1;
		c->refused = !mine;
		w.end += c->ok;
	}
}

static void finish_call(struct manager *m)
{
	struct call *c = &m->call;
	const enum call_kind kind = c->kind;

	if (w.now < c->ends)
		return;
	c->kind = NO_CALL;
	m->next_step = m->clock + 50;
	if (kind == RELEASE) {
		event(m, OWN_ON_GIVEN_UP, 0, m->clock);
		return;
	}
	if (!c->arrived || !c->answered)
		return;
	if (kind == RENEW) {
		event(m, c->ok ? OWN_ON_RENEWED : OWN_ON_FENCED, c->fence,
		      c->ok ? c->since : m->clock);
		m->next_step = m->clock + (c->ok ? LEASE / 3 : 0);
	} else if (c->ok && kind == ACQUIRE) {
		event(m, OWN_ON_ACQUIRED, c->got, c->since);
	} else {
		event(m, c->ok ? OWN_ON_FREE : OWN_ON_REFUSED, 0, m->clock);
		if (c->got != m->counter || !m->counter_at) {
			m->counter = c->got;
			m->counter_at = m->clock;
		}
	}
}

/* The owner thread. */
static void step(struct manager *m)
{
	const bool due = m->o.state == OWN_CLAIMING || m->o.state == OWN_GIVING_UP ||
			 m->clock >= m->next_step;

	if (m->call.kind != NO_CALL)
		finish_call(m);
	else if (due)
		switch (event(m, OWN_ON_TICK, 0, m->clock)) {
		case OWN_DO_LOOK: begin(m, &m->call, LOOK); break;
		case OWN_DO_RECLAIM: m->has = false; begin(m, &m->call, ACQUIRE); break;
		case OWN_DO_ACQUIRE: begin(m, &m->call, ACQUIRE); break;
		case OWN_DO_RENEW: begin(m, &m->call, RENEW); break;
		case OWN_DO_GIVE_UP:
			m->has = false;
			if (m->o.end == OWN_END_LOST)
				event(m, OWN_ON_GIVEN_UP, 0, m->clock);
			else
				begin(m, &m->call, RELEASE);
			break;
		default: break;
		}
}

/* The ticker. */
static void load(struct manager *m)
{
	if (!m->loading && m->o.state == OWN_LOADING && !m->has) {
		m->loading = true;
		m->load_fence = m->o.fence;
		m->load_ends = w.now + 1 + roll(100);
		w.loads++;
		assert_int_not_equal(m->load_fence, m->loaded_fence);
		m->loaded_fence = m->load_fence;
	}
	if (!m->loading || w.now < m->load_ends)
		return;
	m->loading = false;
	if (m->o.state != OWN_LOADING || m->o.fence != m->load_fence)
		return;
	if (roll(10) == 0) {
		event(m, OWN_ON_LOAD_FAILED, m->load_fence, m->clock);
		return;
	}
	m->has = true;
	m->end = w.end;
	event(m, OWN_ON_LOADED, m->load_fence, m->clock);
}

static bool may_answer(const struct manager *m)
{
	return m->o.state == OWN_OWNING && m->clock < m->o.owned_until;
}

/* The committer. */
static void append(struct manager *m)
{
	struct call *c = &m->append;

	if (c->kind == NO_CALL) {
		if (!m->has || m->o.state != OWN_OWNING || roll(20)) /* the fence decides */
			return;
		begin(m, c, RENEW);
		c->kind = (enum call_kind)99;
		c->seq = m->end + 1;
		return;
	}
	if (w.now < c->ends)
		return;
	c->kind = NO_CALL;
	if (!c->arrived && !c->lost) {
		m->late = *c; /* the answer may still arrive */
		m->late.kind = (enum call_kind)99;
		m->has_late = true;
	}
	if (!c->arrived || !c->answered) {
		event(m, OWN_ON_RELOAD, c->fence, m->clock);
	} else if (c->refused) {
		event(m, OWN_ON_FENCED, c->fence, m->clock);
	} else if (!m->has || m->o.fence != c->fence) {
		return; /* the partition went meanwhile: its callers were told so */
	} else {
		assert_true(c->ok); /* nobody else appended: memory has the store's end */
		m->end = c->seq;
		if (!may_answer(m))
			return;
		if (w.acknowledged < c->seq) /* else a later owner has gone on behind it */
			w.acknowledged = c->seq;
		w.writes++;
	}
}

static void look_up(struct manager *m)
{
	if (!m->has || !may_answer(m))
		return;
	w.reads++;
	if (m->end < w.acknowledged) {
		w.stale++;
		if (!m->stood || m->stood + LEASE < m->o.owned_until)
			fail_msg("seed %llu, ms %llu: manager %d answers reads from record %llu, "
				 "%llu is acknowledged",
				 (unsigned long long)w.seed, (unsigned long long)w.now,
				 (int)(m - w.m), (unsigned long long)m->end,
				 (unsigned long long)w.acknowledged);
	}
}

static void restart(struct manager *m)
{
	const uint64_t clock = m->clock;

	if (m->append.kind != NO_CALL && !m->append.arrived && !m->append.lost) {
		m->late = m->append;
		m->has_late = true;
	}
	*m = (struct manager){ .o = { .may_own = true }, .clock = clock, .late = m->late,
			       .has_late = m->has_late };
	w.kills++;
}

static void mishap(struct manager *m)
{
	switch (roll(8)) {
	case 0:
	case 1: /* stopped, with or without its clock */
		m->paused_until = w.now + roll(5 * LEASE);
		m->stands = roll(2);
		break;
	case 2: restart(m); break;
	case 3: event(m, OWN_ON_DEMOTE, 0, m->clock); break;
	case 4: event(m, OWN_ON_DRAIN, 0, m->clock); break;
	case 5: event(m, OWN_ON_MAY_OWN, 0, m->clock); break;
	case 6: event(m, OWN_ON_TURNED_AWAY, m->o.fence, m->clock); break;
	default:
		event(m, OWN_ON_CLOSE, 0, m->clock);
		if (roll(2))
			restart(m);
	}
}

static void turn(struct manager *m)
{
	const bool paused = w.now < m->paused_until;

	arrive(m, &m->call);
	arrive(m, &m->append);
	if (m->has_late)
		arrive(m, &m->late);
	if (paused && m->stands)
		m->stood = m->clock;
	m->clock += !(paused && m->stands);
	if (paused)
		return;
	step(m);
	load(m);
	append(m);
	look_up(m);
	if (roll(3000) == 0)
		mishap(m);
	if (m->o.state == OWN_STOPPED || (m->o.state == OWN_CLOSING && roll(500) == 0))
		restart(m);
}

static void run_seed(uint64_t seed)
{
	w = (struct world){ .seed = seed, .state = seed * 0x9e3779b97f4a7c15ull | 1, .owner = -1 };
	for (uint32_t i = 0; i < MANAGERS; i++)
		w.m[i] = (struct manager){ .o = { .may_own = true }, .clock = 1 + roll(100000) };
	for (w.now = 1; w.now <= STEPS; w.now++)
		for (uint32_t i = 0; i < MANAGERS; i++)
			turn(&w.m[i]);
	assert_true(w.acknowledged <= w.end);
}

static uint64_t first_seed = 1, seeds = 300;

static void no_two_owners_answer_at_once(void **state)
{
	uint64_t writes = 0, reads = 0, stale = 0, takeovers = 0, kills = 0;

	(void)state;
	for (uint64_t i = 0; i < seeds; i++) {
		run_seed(first_seed + i);
		writes += w.writes;
		reads += w.reads;
		stale += w.stale;
		takeovers += w.takeovers;
		kills += w.kills;
	}
	printf("%llu seeds: %llu writes, %llu reads (%llu stale beside a clock that stood still), "
	       "%llu takeovers, %llu restarts\n",
	       (unsigned long long)seeds, (unsigned long long)writes, (unsigned long long)reads,
	       (unsigned long long)stale, (unsigned long long)takeovers, (unsigned long long)kills);
	assert_true(writes > 100 * seeds && takeovers > 2 * seeds && kills > seeds);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test(each_event_in_each_state),
		cmocka_unit_test(an_event_of_an_earlier_fence_changes_nothing),
		cmocka_unit_test(the_action_follows_from_the_state),
		cmocka_unit_test(an_acquire_that_is_not_wanted_is_given_up),
		cmocka_unit_test(failed_loads_end_it),
		cmocka_unit_test(barred_claims_end_it),
		cmocka_unit_test(no_two_owners_answer_at_once),
	};

	if (argc > 2) {
		first_seed = strtoull(argv[1], NULL, 10);
		seeds = strtoull(argv[2], NULL, 10);
	}
	return cmocka_run_group_tests_name("ownership", cases, NULL, NULL);
}
