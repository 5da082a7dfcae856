/*
 * test_spread.c - managers that share partitions: 1 to 5 of them, that join, are killed, stop,
 * drain and come back, each with its own view; what the core and the documents do is modelled.
 *
 * Always: nobody lets go of a partition but to one that follows it, and of one at a time. When
 * nothing has changed for a while all are owned, and nobody has more than its share.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <skv/core.h>
#include <skv/log.h>
#include <skv/mem.h>
#include <skv/spread.h>
#include <skv/store.h>

#define P 16u
#define MANAGERS 5u
#define LEASE_MS 1000u
#define NOBODY UINT32_MAX
#define LOAD_MS 60u   /* a partition that was acquired answers */
#define FOLLOW_MS 400u /* after an owner has changed, others follow it again */

struct skv_cluster { /* a manager */
	uint32_t number, life;
	bool runs, draining, remote; /* remote: that its process is gone cannot be seen */
	uint32_t mask;
	uint64_t beat_at, version;
	uint64_t follows_at[P];
	struct skv_members members;
	struct skv_spread spread;
};

static struct {
	struct skv_cluster m[MANAGERS];
	uint32_t owner[P]; /* manager, or NOBODY */
	uint32_t life[P];
	uint64_t ends_at[P];   /* the lease of who was killed */
	uint64_t ready_at[P];
	uint64_t now;
	bool placed, shares;
	uint32_t moves;
	struct skv_homes homes;
} w;

static uint64_t rng = 88172645463325252ull;

static uint32_t below(uint32_t n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (uint32_t)(rng % n);
}

static void name(const struct skv_cluster *c, uint32_t life, char out[SKV_OWNER_NAME])
{
	snprintf(out, SKV_OWNER_NAME, "host%u:%u.x", (unsigned)c->number, (unsigned)life);
}

/* ---- what the core says ---------------------------------------------------------------------- */

uint32_t skv_cluster_partitions(const struct skv_cluster *c)
{
	(void)c;
	return P;
}

static bool is_owner(const struct skv_cluster *c, uint32_t p)
{
	return w.owner[p] == c->number && w.life[p] == c->life;
}

static bool is_over(uint32_t p)
{
	const struct skv_cluster *c = w.owner[p] == NOBODY ? NULL : &w.m[w.owner[p]];

	return !c || (!(c->runs && c->life == w.life[p]) &&
		      (!c->remote || w.now >= w.ends_at[p]));
}

enum skv_core_state skv_cluster_partition_state(const struct skv_cluster *c, uint32_t p)
{
	if (!is_owner(c, p))
		return SKV_CORE_STANDBY;
	return w.now >= w.ready_at[p] ? SKV_CORE_READY : SKV_CORE_RECOVERING;
}

void skv_cluster_partition_leader(struct skv_cluster *c, uint32_t p, char self[SKV_OWNER_NAME],
				  char leader[SKV_OWNER_NAME], uint64_t *left)
{
	*left = 0;
	name(c, c->life, self);
	*leader = '\0';
	if (!is_over(p))
		name(&w.m[w.owner[p]], w.life[p], leader);
}

void skv_cluster_leader(struct skv_cluster *c, char self[SKV_OWNER_NAME],
			char leader[SKV_OWNER_NAME], uint64_t *left)
{
	skv_cluster_partition_leader(c, 0, self, leader, left);
}

void skv_cluster_partition_get(struct skv_cluster *c, uint32_t p, struct skv_partition_view *out)
{
	*out = (struct skv_partition_view){ .takes = !is_owner(c, p) && !c->draining &&
						     w.now >= c->follows_at[p] };
}

bool skv_cluster_draining(const struct skv_cluster *c) { return c->draining; }

int skv_cluster_placed(struct skv_cluster *c, bool *placed, struct skv_error *err)
{
	(void)c;
	(void)err;
	*placed = w.placed;
	return SKV_OK;
}

/* Releases a partition to a manager that has announced to follow it, as far as is known here. */
static void let_go(struct skv_cluster *c, uint32_t p)
{
	struct skv_member_seen *v;
	bool followed = false;
	uint32_t n;

	assert_int_equal(skv_members_seen(&c->members, &v, &n), SKV_OK);
	for (uint32_t i = 0; i < n; i++)
		followed |= !v[i].draining && v[i].takes >> p & 1;
	skv_free(v);
	assert_true(followed || !w.shares);
	w.moves++;
	w.owner[p] = NOBODY;
}

void skv_cluster_may_own(struct skv_cluster *c, uint32_t partitions)
{
	uint32_t gone = 0;

	c->mask = partitions;
	for (uint32_t p = 0; p < P; p++) {
		if (!is_owner(c, p) || partitions >> p & 1)
			continue;
		let_go(c, p);
		gone++;
	}
	assert_true(gone <= 1 || !w.shares);
}

bool skv_owner_is_dead(const char *owner)
{
	unsigned number, life;

	assert_int_equal(sscanf(owner, "host%u:%u.x", &number, &life), 2);
	return !w.m[number].remote && !(w.m[number].runs && w.m[number].life == life);
}

/* Not used here. */
int skv_cluster_doc_publish(struct skv_cluster *c, const char *key, const char *text,
			    struct skv_error *err)
{
	(void)c, (void)key, (void)text, (void)err;
	return SKV_OK;
}
int skv_cluster_doc_put(struct skv_cluster *c, const char *key, enum skv_put how, const char *text,
			struct skv_error *err)
{
	(void)c, (void)key, (void)how, (void)text, (void)err;
	return SKV_OK;
}
int skv_cluster_doc_delete(struct skv_cluster *c, const char *key, struct skv_error *err)
{
	(void)c, (void)key, (void)err;
	return SKV_OK;
}
int skv_cluster_doc_retire(struct skv_cluster *c, const char *key, struct skv_error *err)
{
	(void)c, (void)key, (void)err;
	return SKV_OK;
}
int skv_cluster_doc_get(struct skv_cluster *c, const char *key, struct skv_arena *a,
			struct skv_doc *out, struct skv_error *err)
{
	(void)c, (void)key, (void)a, (void)out, (void)err;
	return SKV_E_NOT_FOUND;
}
int skv_cluster_doc_list(struct skv_cluster *c, const char *prefix, struct skv_arena *a,
			 struct skv_doc **out, uint32_t *n, struct skv_error *err)
{
	(void)c, (void)prefix, (void)a, (void)err;
	*out = NULL;
	*n = 0;
	return SKV_OK;
}

/* ---- the world ------------------------------------------------------------------------------- */

static struct {
	char name[SKV_OWNER_NAME], text[80];
	uint64_t version;
} doc[MANAGERS];

static void beat(struct skv_cluster *c)
{
	struct skv_doc docs[MANAGERS];
	struct skv_partition_view v;
	uint32_t takes = 0, n = 0;

	for (uint32_t p = 0; p < P; p++) {
		skv_cluster_partition_get(c, p, &v);
		takes |= (uint32_t)v.takes << p;
	}
	name(c, c->life, doc[c->number].name);
	snprintf(doc[c->number].text, sizeof doc[0].text, "%u %s %x http://host%u", LEASE_MS,
		 c->draining ? "drained" : "up", (unsigned)takes, (unsigned)c->number);
	doc[c->number].version = ++c->version;
	for (uint32_t i = 0; i < MANAGERS; i++)
		if (*doc[i].name)
			docs[n++] = (struct skv_doc){ doc[i].name, doc[i].text, doc[i].version };
	assert_int_equal(skv_members_look(&c->members, docs, n, &w.homes, w.now), SKV_OK);
	c->beat_at = w.now + LEASE_MS / 3;
}

static void forget(struct skv_cluster *c)
{
	skv_free(c->members.seen);
	c->members.seen = NULL;
	c->members.n_seen = 0;
}

static void go_up(struct skv_cluster *c)
{
	assert_false(c->runs);
	forget(c);
	c->members.lease_ms = LEASE_MS;
	c->spread = (struct skv_spread){ .cluster = c, .members = &c->members, .shares = w.shares };
	c->runs = true;
	c->draining = false;
	c->life++;
	c->beat_at = w.now;
	for (uint32_t p = 0; p < P; p++)
		c->follows_at[p] = w.now + FOLLOW_MS;
}

static void go_down(struct skv_cluster *c, bool orderly)
{
	c->runs = false;
	for (uint32_t p = 0; p < P; p++)
		if (is_owner(c, p)) {
			w.ends_at[p] = w.now + LEASE_MS;
			if (orderly)
				w.owner[p] = NOBODY;
		}
	if (orderly)
		*doc[c->number].name = '\0';
}

static void drain(struct skv_cluster *c, bool on)
{
	c->draining = on;
	for (uint32_t p = 0; on && p < P; p++)
		if (is_owner(c, p))
			w.owner[p] = NOBODY;
}

static void acquire(struct skv_cluster *c)
{
	for (uint32_t p = 0; p < P; p++) {
		if (!(c->mask >> p & 1) || c->draining || !is_over(p) || is_owner(c, p))
			continue;
		w.owner[p] = c->number;
		w.life[p] = c->life;
		w.ready_at[p] = w.now + LOAD_MS;
		for (uint32_t i = 0; i < MANAGERS; i++)
			w.m[i].follows_at[p] = w.now + FOLLOW_MS;
	}
}

static void pass(uint32_t ms)
{
	for (const uint64_t until = w.now + ms; w.now < until; w.now += 10) {
		const uint32_t first = below(MANAGERS);

		for (uint32_t i = 0; i < MANAGERS; i++) {
			struct skv_cluster *c = &w.m[(first + i) % MANAGERS];

			if (!c->runs)
				continue;
			if (w.now >= c->beat_at)
				beat(c);
			skv_spread_step(&c->spread, w.now);
			if (below(2))
				acquire(c);
		}
	}
}

static uint32_t has(uint32_t number)
{
	uint32_t n = 0;

	for (uint32_t p = 0; p < P; p++)
		n += is_owner(&w.m[number], p) && !is_over(p);
	return n;
}

static uint32_t up(void)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < MANAGERS; i++)
		n += w.m[i].runs && !w.m[i].draining;
	return n;
}

/* All are owned, by whom they should. */
static void check(void)
{
	const uint32_t n = up();
	uint32_t all = 0;

	for (uint32_t i = 0; i < MANAGERS; i++) {
		const bool stays = w.m[i].runs && !w.m[i].draining;

		all += has(i);
		if (w.shares && w.placed)
			assert_in_range(has(i), stays ? P / n : 0, stays ? (P + n - 1) / n : 0);
		else
			assert_true(has(i) == 0 || has(i) == P);
	}
	assert_int_equal(all, n ? P : 0);
}

static void begin(bool shares, bool placed)
{
	memset(&w, 0, sizeof w);
	memset(doc, 0, sizeof doc);
	w.now = 1000;
	w.shares = shares;
	w.placed = placed;
	for (uint32_t p = 0; p < P; p++)
		w.owner[p] = NOBODY;
	for (uint32_t i = 0; i < MANAGERS; i++) {
		w.m[i].number = i;
		skv_mutex_init(&w.m[i].members.lock);
	}
}

static int teardown(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < MANAGERS; i++) {
		forget(&w.m[i]);
		skv_mutex_destroy(&w.m[i].members.lock);
	}
	return 0;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void one_takes_all_at_once(void **state)
{
	(void)state;
	begin(true, true);
	go_up(&w.m[0]);
	pass(100);
	assert_int_equal(has(0), P);
	go_up(&w.m[1]);
	pass(FOLLOW_MS - 100);
	assert_int_equal(has(0), P); /* manager 1 does not follow yet */
	pass(5000);
	assert_int_equal(has(0), P / 2);
	assert_int_equal(has(1), P / 2);
	assert_int_equal(w.moves, P / 2);
	drain(&w.m[0], true);
	pass(1000);
	assert_int_equal(has(1), P);
	drain(&w.m[0], false);
	pass(5000);
	check();
}

/* Survivors have all within half a second; of another host, after its lease. */
static void one_is_killed(void **state)
{
	(void)state;
	for (uint32_t round = 0; round < 40; round++) {
		const uint32_t victim = round % 3;

		if (round)
			teardown(NULL);
		begin(true, true);
		for (uint32_t i = 0; i < 3; i++) {
			w.m[i].remote = round >= 20;
			go_up(&w.m[i]);
			pass(below(3) * 200);
		}
		pass(8000);
		check();
		w.moves = 0;
		go_down(&w.m[victim], false);
		pass(500 + (w.m[victim].remote ? LEASE_MS : 0));
		for (uint32_t i = 0; i < 3; i++)
			assert_true(i == victim ? has(i) == 0 : has(i) <= P / 2 + 1);
		assert_int_equal(has((victim + 1) % 3) + has((victim + 2) % 3), P);
		pass(8000);
		check();
		assert_in_range(w.moves, 0, 1);
	}
}

static void move(uint32_t p, uint32_t number)
{
	snprintf(w.homes.peer[p], SKV_URL_MAX, "http://host%u", (unsigned)number);
}

/* An administrator's moves last: what was moved comes back whenever its home does. */
static void they_are_moved(void **state)
{
	(void)state;
	begin(true, true);
	for (uint32_t i = 0; i < 3; i++) {
		w.m[i].remote = i == 1;
		go_up(&w.m[i]);
	}
	pass(8000);
	check();
	for (uint32_t p = 0; p < 10; p++)
		move(p, 1);
	for (uint32_t round = 0; round < 4; round++) {
		pass(12000);
		for (uint32_t p = 0; p < 10; p++)
			assert_true(is_owner(&w.m[1], p));
		assert_int_equal(has(0), 3);
		assert_int_equal(has(1), 10);
		assert_int_equal(has(2), 3);
		w.moves = 0;
		pass(5000);
		assert_int_equal(w.moves, 0); /* the partitions stay */
		if (round % 2)
			drain(&w.m[1], true);
		else
			go_down(&w.m[1], round == 0);
		pass(8000);
		assert_int_equal(has(0), P / 2);
		assert_int_equal(has(2), P / 2);
		if (round % 2)
			drain(&w.m[1], false);
		else
			go_up(&w.m[1]);
	}
	memset(&w.homes, 0, sizeof w.homes);
	pass(20000);
	check();
}

static void they_come_and_go(void **state)
{
	(void)state;
	begin(true, true);
	for (uint32_t i = 0; i < 150; i++) {
		struct skv_cluster *c = &w.m[below(MANAGERS)];

		if (!c->runs) {
			c->remote = below(2);
			go_up(c);
		} else if (below(3)) {
			go_down(c, below(2));
		} else {
			drain(c, !c->draining);
		}
		if (below(3)) { /* else there is another change first */
			pass(10000);
			check();
		} else {
			pass(below(800));
		}
	}
}

/* In a file, or before all objects have places. */
static void one_has_all(void **state)
{
	(void)state;
	for (uint32_t round = 0; round < 2; round++) {
		if (round)
			teardown(NULL);
		begin(round, !round);
		for (uint32_t i = 0; i < 100; i++) {
			struct skv_cluster *c = &w.m[below(MANAGERS)];

			if (!c->runs)
				go_up(c);
			else if (below(3))
				go_down(c, below(2));
			else
				drain(c, !c->draining);
			pass(below(3) ? 3000 : below(800));
		}
		pass(3000);
		check();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(one_takes_all_at_once, teardown),
		cmocka_unit_test_teardown(one_is_killed, teardown),
		cmocka_unit_test_teardown(they_are_moved, teardown),
		cmocka_unit_test_teardown(they_come_and_go, teardown),
		cmocka_unit_test_teardown(one_has_all, teardown),
	};

	skv_log_level_set(SKV_LOG_WARN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
