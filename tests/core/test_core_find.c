/*
 * test_core_find.c - where a call belongs (skv_find), by managers that share the partitions of a
 * store.
 *
 * The model: random owners, managers that are killed or stand still; groups and instances that are
 * made, deleted and made again elsewhere; reads and writes at random managers, also while
 * partitions move, and in the middle of a call. Laws: each call ends with the right answer after at
 * most two hops a try; `not_found` only of an instance that does not exist; every acknowledged
 * block is found; an answer passes its door only while the ownership lasts under which the call was
 * let in. Every other instance is of one family: a call on all of these finds each that there is.
 *
 * Time is turned by hand. In place of HTTP (request/forward.c) a hop is a call in this process,
 * whose answer may be lost; in place of the calls that wait (request/pause.c) a call is tried again
 * after a step of time.
 *
 * Usage: test_core_find [FIRST_SEED SEEDS]
 */
#include "core_env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <skv/find.h>

#define MANAGERS 3u
#define PARTITIONS 4u
#define NAMES 12u
#define UNIT (1ull << 20)
#define PATIENCE 2000 /* steps of 20 ms */
#define LEASE 400u    /* ms, of owners */
#define BLOCKS 4u     /* of an instance, at most */
#define NOBODY UINT32_MAX

struct model {
	struct env m[MANAGERS];
	uint32_t may[MANAGERS]; /* bits of the partitions that each may own */
	uint32_t asleep;        /* this manager stands still; NOBODY: none does */
	uint64_t random;
	bool exists[NAMES];
	char group[NAMES][8];   /* of an instance that exists */
	uint32_t blocks[NAMES]; /* acknowledged, of one that exists */
	uint32_t n_groups, n_requests;
	uint32_t calls, writes, hops, waits, most_hops, apart;
	uint32_t kills, barred, lost; /* answers: not let through a door, lost on their way */
};

static bool family(const char *tenant, const char *name, char out[SKV_MAX_NAME + 1])
{
	unsigned n;
	const bool is = tenant && sscanf(name, "i%u", &n) == 1 && n % 2;

	if (is)
		snprintf(out, SKV_MAX_NAME + 1, "odd");
	return is;
}

static uint32_t roll(struct model *x, uint32_t n)
{
	x->random = x->random * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(x->random >> 33) % n;
}

static void step(struct model *x)
{
	skv_fake_clock_advance(&x->m[0].clock, 20);
	for (uint32_t i = 0; i < MANAGERS; i++)
		if (i != x->asleep)
			skv_cluster_tick(x->m[i].cluster);
}

static bool has_partition(const struct model *x, uint32_t i, uint32_t number)
{
	return skv_cluster_partition_may_answer(x->m[i].cluster, number) == SKV_OK;
}

/* MANAGERS: nobody, now. */
static uint32_t owner_of(const struct model *x, uint32_t number)
{
	uint32_t i = 0;

	while (i < MANAGERS && !has_partition(x, i, number))
		i++;
	return i;
}

/* ---- managers -------------------------------------------------------------------------------- */

static void open_manager(struct model *x, uint32_t i)
{
	struct env *e = &x->m[i];

	assert_int_equal(skv_store_open(e->ops, &e->store_options, &e->store, &e->err), SKV_OK);
	e->o.store = e->store;
	e->o.clock = &x->m[0].clock.clock;
	e->o.assigned = true;
	env_create(e);
}

static void open_follower(struct model *x, uint32_t i)
{
	struct env *e = &x->m[i];

	*e = x->m[0];
	memset(&e->arena, 0, sizeof e->arena);
	skv_arena_init(&e->arena);
	open_manager(x, i);
}

static int setup(void **state)
{
	struct model *x = test_calloc(1, sizeof *x);
	struct env *e = &x->m[0];

	env_quiet();
	env_init(e);
	x->asleep = NOBODY;
	x->may[0] = (1u << PARTITIONS) - 1;
	e->all.partitions = PARTITIONS;
	e->all.family = family;
	e->o.owner_lease_ms = LEASE;
	e->store_options.clock = &e->clock.clock;
	env_open(e);
	assert_int_equal(env_storage(e, "s", 64 * UNIT, UNIT), SKV_OK);
	for (int i = 0; i < 20; i++)
		env_advance(e, 20);
	for (uint32_t i = 1; i < MANAGERS; i++)
		open_follower(x, i);
	for (int i = 0; i < 50; i++)
		step(x);
	*state = x;
	return 0;
}

static int teardown(void **state)
{
	struct model *x = *state;

	skv_thread_waits = false;
	for (uint32_t i = 1; i < MANAGERS; i++) {
		env_crash(&x->m[i]);
		skv_arena_destroy(&x->m[i].arena);
	}
	env_destroy(&x->m[0]);
	test_free(x);
	return 0;
}

static void move(struct model *x)
{
	memset(x->may, 0, sizeof x->may);
	for (uint32_t i = 0; i < PARTITIONS; i++)
		x->may[roll(x, MANAGERS)] |= 1u << i;
	for (uint32_t i = 0; i < MANAGERS; i++)
		skv_cluster_may_own(x->m[i].cluster, x->may[i]);
	for (uint32_t i = roll(x, 30); i > 0; i--)
		step(x);
}

/* As kill -9: what it has learned is gone, its partitions are owned until their leases end. */
static void kill_one(struct model *x)
{
	const uint32_t i = roll(x, MANAGERS);

	env_crash(&x->m[i]);
	open_manager(x, i);
	skv_cluster_may_own(x->m[i].cluster, x->may[i]);
	x->kills++;
}

/* Something happens in the middle of a call at that manager: it stands still, for less than its
 * lease or for more, while partitions move. */
static void disturb(struct model *x, uint32_t at)
{
	const uint32_t what = roll(x, 32);

	if (what > 2)
		return;
	x->asleep = what ? at : NOBODY;
	move(x);
	for (uint32_t i = what == 2 ? 2 * LEASE / 20 : 0; i > 0; i--)
		step(x);
	x->asleep = NOBODY;
	if (roll(x, 2))
		step(x);
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* A call: what it is for, what it does where that is, and what it has found out. */
struct asked {
	struct skv_target t;
	int (*run)(struct model *x, uint32_t at, const struct skv_door *door, struct asked *a);
	uint32_t found;
	char request[16]; /* of a start */
	char session[SKV_SESSION_ID_HEX + 1];
};

static void on_done(void *ctx, int status) { *(int *)ctx = status; }

static int await(struct model *x, int rc, const int *status)
{
	for (int i = 0; rc == SKV_PENDING && i < PATIENCE; i++) {
		step(x);
		rc = *status;
	}
	assert_int_not_equal(rc, SKV_PENDING);
	return rc;
}

static int run_match(struct model *x, uint32_t at, const struct skv_door *door, struct asked *a)
{
	struct skv_key keys[BLOCKS];
	struct env *e = &x->m[at];
	const struct skv_match_req q = { .tenant = "t", .instances = &a->t.name, .n_instances = 1,
					 .keys = keys, .n_keys = BLOCKS };
	struct skv_match_res r = { 0 };
	int rc;

	env_keys(keys, BLOCKS, 1, 0);
	rc = skv_cluster_match(door->part, &q, &r, &e->arena, &e->err);
	a->found = rc == SKV_OK ? r.matched[0] : 0;
	return rc;
}

/* All of the family; SKV_E_NOT_FOUND: there is none. */
static int run_list(struct model *x, uint32_t at, const struct skv_door *door, struct asked *a)
{
	struct skv_cluster *part = skv_cluster_part(x->m[at].cluster, door->partition);
	struct env *e = &x->m[at];
	struct skv_instance_view *v;
	uint32_t n = 0;
	int rc = skv_cluster_every_instance(part, "t", &e->arena, &v, &n, &e->err);

	a->found = 0;
	for (uint32_t i = 0; rc == SKV_OK && i < n; i++)
		a->found += (v[i].spec.id[strlen(v[i].spec.id) - 1] - '0') % 2;
	return rc == SKV_OK && a->found == 0 ? SKV_E_NOT_FOUND : rc;
}

/* Writes one more block; found: how many there were. */
static int run_start(struct model *x, uint32_t at, const struct skv_door *door, struct asked *a)
{
	struct env *e = &x->m[at];
	struct skv_key key = { 1, a->found };
	const struct skv_start_req q = { .tenant = "t", .instance = a->t.name, .keys = &key,
					 .n_keys = 1, .request_id = a->request,
					 .deadline_ms = 20000, .independent = true };
	struct skv_start_res r = { 0 };
	int status = SKV_PENDING;
	int rc = await(x, skv_core_start(door->core, &q, &r, &e->arena, &e->err,
					 &(struct skv_done){ on_done, &status }), &status);

	if (rc == SKV_OK)
		memcpy(a->session, r.session, sizeof a->session);
	return rc;
}

static int run_finish(struct model *x, uint32_t at, const struct skv_door *door, struct asked *a)
{
	struct env *e = &x->m[at];
	const struct skv_finish_req q = { .tenant = "t", .session = a->t.name,
					  .mask_kind = SKV_MASK_ALL };
	struct skv_finish_res r = { 0 };
	int status = SKV_PENDING;
	int rc = await(x, skv_core_finish(door->core, &q, &r, &e->arena, &e->err,
					  &(struct skv_done){ on_done, &status }), &status);

	a->found = r.committed;
	return rc;
}

static enum skv_where find_target(struct env *e, const struct skv_target *t, struct skv_door *door)
{
	skv_thread_waits = false;
	if (skv_find(e->cluster, t, door) != SKV_SOON || !door->unknown)
		return door->where;
	skv_thread_waits = true; /* as on a worker */
	skv_find(e->cluster, t, door);
	assert_false(door->unknown);
	skv_thread_waits = false;
	return door->where;
}

/* As request.c: the call runs, and its answer passes the door, or the call runs again. */
static int run_here(struct model *x, uint32_t at, struct skv_door *door, struct asked *a)
{
	struct skv_cluster *cluster = x->m[at].cluster;
	const uint64_t epoch = skv_cluster_partition_epoch(cluster, door->partition);
	struct env *e = &x->m[at];
	int rc = SKV_E_NOT_FOUND;

	skv_arena_reset(&e->arena);
	skv_error_clear(&e->err);
	assert_true(epoch && has_partition(x, at, door->partition));
	disturb(x, at);
	if (door->where == SKV_HERE)
		rc = a->run(x, at, door, a);
	disturb(x, at);
	if (skv_door_check(door) != SKV_OK) {
		x->barred++;
		return SKV_E_NOT_READY;
	}
	assert_int_equal(skv_cluster_partition_epoch(cluster, door->partition), epoch);
	assert_true(has_partition(x, at, door->partition));
	return rc;
}

/* Makes a single try, from the manager `from`: SKV_E_NOT_READY if it has to wait. */
static int try_call(struct model *x, uint32_t from, struct asked *a)
{
	uint32_t at = from, refused = 0, hops = 0;
	struct skv_target now = a->t;
	struct skv_door door;
	int rc;

	for (;;) {
		now.refused = at == from ? refused : UINT32_MAX;
		switch (find_target(&x->m[at], &now, &door)) {
		case SKV_HERE:
		case SKV_NOWHERE:
			rc = run_here(x, at, &door, a);
			if (at == from || roll(x, 16))
				return rc;
			x->lost++;
			return SKV_E_NOT_READY;
		case SKV_SOON: return SKV_E_NOT_READY;
		case SKV_THERE: break;
		}
		if (at != from) { /* the manager that is asked does not forward the call */
			at = from;
			continue;
		}
		assert_false(refused >> door.partition & 1);
		refused |= 1u << door.partition;
		at = owner_of(x, door.partition);
		if (at == MANAGERS)
			return SKV_E_NOT_READY;
		x->hops++;
		if (++hops > x->most_hops)
			x->most_hops = hops;
	}
}

/* As the client that repeats what was not answered. */
static bool may_pass(int rc)
{
	return rc == SKV_E_NOT_READY || rc == SKV_E_NOT_OWNER || rc == SKV_E_FENCED ||
	       rc == SKV_E_UNKNOWN_OUTCOME;
}

static int call(struct model *x, struct asked *a)
{
	const uint32_t from = roll(x, MANAGERS);
	int rc = SKV_E_NOT_READY;

	for (int i = 0; i < PATIENCE && may_pass(rc); i++) {
		rc = try_call(x, from, a);
		if (may_pass(rc))
			step(x);
		x->waits += may_pass(rc);
	}
	return rc;
}

static void read_one(struct model *x)
{
	const uint32_t n = roll(x, NAMES + 2);
	struct asked a = { .t = { SKV_TARGET_FAMILY, NULL, "odd", 0 }, .run = run_list };
	uint32_t expected = 0;
	bool exists = false;
	char name[8];
	int rc;

	for (uint32_t i = 1; i < NAMES; i += 2)
		expected += x->exists[i];
	exists = expected > 0;
	if (n < NAMES) {
		snprintf(name, sizeof name, "i%u", n);
		a = (struct asked){ .t = { SKV_TARGET_INSTANCE, "t", name, 0 }, .run = run_match };
		exists = x->exists[n];
		expected = exists ? x->blocks[n] : 0;
	}
	rc = call(x, &a);
	assert_int_equal(rc, exists ? SKV_OK : SKV_E_NOT_FOUND);
	assert_int_equal(a.found, expected);
	x->calls++;
}

/* A block, by two calls, each at any manager. */
static void write_one(struct model *x)
{
	const uint32_t n = roll(x, NAMES);
	struct asked a = { .run = run_start, .found = x->blocks[n] }, b = { .run = run_finish };
	char name[8];
	int rc;

	if (!x->exists[n] || x->blocks[n] == BLOCKS)
		return;
	snprintf(name, sizeof name, "i%u", n);
	snprintf(a.request, sizeof a.request, "r%u", x->n_requests++);
	a.t = (struct skv_target){ SKV_TARGET_INSTANCE, "t", name, 0 };
	assert_int_equal(call(x, &a), SKV_OK);
	b.t = (struct skv_target){ SKV_TARGET_SESSION, NULL, a.session, 0 };
	rc = call(x, &b);
	assert_int_equal(rc, SKV_OK);
	assert_int_equal(b.found, 1);
	x->blocks[n]++;
	x->writes++;
}

/* ---- administration -------------------------------------------------------------------------- */

/* By the owner of the partition that an attempt names, the first one at a random manager. */
static int change(struct model *x, const struct skv_target *t,
		  int (*fn)(struct skv_cluster *, void *, struct skv_error *), void *arg)
{
	uint32_t at = roll(x, MANAGERS), p;
	struct skv_cluster *cluster = x->m[at].cluster;
	struct skv_door door;
	struct skv_error err = { 0 };
	int rc = SKV_E_NOT_READY;

	for (int i = 0; i < PATIENCE; i++) {
		skv_error_clear(&err);
		skv_thread_waits = true;
		rc = fn(cluster, arg, &err);
		skv_thread_waits = false;
		if (rc != SKV_E_NOT_OWNER && rc != SKV_E_NOT_READY)
			break;
		find_target(&x->m[at], t, &door);
		p = door.where == SKV_NOWHERE ? 0 : door.partition;
		while (owner_of(x, p) == MANAGERS)
			step(x);
		at = owner_of(x, p);
		cluster = x->m[at].cluster;
		step(x);
	}
	if (rc != SKV_OK && rc != SKV_E_CONFLICT)
		print_message("%s: %s\n", err.field, err.message);
	return rc;
}

static int put_group(struct skv_cluster *c, void *arg, struct skv_error *err)
{
	static const char *const storages[] = { "s" };
	const struct skv_group_spec g = { .name = arg, .storages = storages, .n_storages = 1 };

	return skv_cluster_group_put(c, &g, SKV_PUT_ANY, NULL, NULL, err);
}

struct named {
	char id[8];
	const char *group;
};

static int put_instance(struct skv_cluster *c, void *arg, struct skv_error *err)
{
	const struct skv_spec spec = { "kv", 65536 };
	const struct named *n = arg;
	const struct skv_instance_spec i = { .tenant = "t", .id = n->id, .group = n->group,
					     .specs = &spec, .n_specs = 1, .extra = "" };

	return skv_cluster_instance_put(c, &i, SKV_PUT_ANY, NULL, err);
}

static int del_instance(struct skv_cluster *c, void *arg, struct skv_error *err)
{
	return skv_cluster_instance_delete(c, "t", ((struct named *)arg)->id, NULL, err);
}

/* An instance that is not there is made, with its group, unless its family is elsewhere; one that
 * is goes. */
static void toggle(struct model *x)
{
	const uint32_t n = roll(x, NAMES);
	struct named i = { .group = x->group[n] };
	const struct skv_target t = { SKV_TARGET_INSTANCE, "t", i.id, 0 };
	const struct skv_target g = { SKV_TARGET_GROUP, NULL, x->group[n], 0 };
	int rc;

	snprintf(i.id, sizeof i.id, "i%u", n);
	if (x->exists[n]) {
		assert_int_equal(change(x, &t, del_instance, &i), SKV_OK);
		x->exists[n] = false;
		x->blocks[n] = 0;
		return;
	}
	if (!*x->group[n] || roll(x, 2))
		snprintf(x->group[n], sizeof x->group[n], "g%u", x->n_groups++);
	assert_int_equal(change(x, &g, put_group, x->group[n]), SKV_OK);
	rc = change(x, &t, put_instance, &i);
	assert_true(rc == SKV_OK || (rc == SKV_E_CONFLICT && n % 2));
	x->exists[n] = rc == SKV_OK;
	x->apart += rc == SKV_E_CONFLICT;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static uint64_t first_seed = 1, seeds = 2;

static void run_seed(uint64_t seed, struct model *sum)
{
	void *state;
	struct model *x;

	assert_int_equal(setup(&state), 0);
	x = state;
	x->random = seed;
	for (int i = 0; i < 1000; i++) {
		const uint32_t what = roll(x, 20);

		if (what == 0)
			move(x);
		else if (what <= 2)
			toggle(x);
		else if (what == 3)
			step(x);
		else if (what == 4 && roll(x, 4) == 0)
			kill_one(x);
		else if (what <= 7)
			write_one(x);
		else
			read_one(x);
	}
	sum->calls += x->calls;
	sum->writes += x->writes;
	sum->hops += x->hops;
	sum->waits += x->waits;
	sum->apart += x->apart;
	sum->kills += x->kills;
	sum->barred += x->barred;
	sum->lost += x->lost;
	sum->most_hops = x->most_hops > sum->most_hops ? x->most_hops : sum->most_hops;
	teardown(&state);
}

static void no_call_is_lost(void **state)
{
	struct model sum = { .calls = 0 };

	(void)state;
	for (uint64_t i = 0; i < seeds; i++)
		run_seed(first_seed + i, &sum);
	print_message("%u reads, %u writes, %u hops, %u at most for a try, %u waits, %u refused, "
		      "%u kills, %u answers not let through a door, %u lost\n",
		      sum.calls, sum.writes, sum.hops, sum.most_hops, sum.waits, sum.apart,
		      sum.kills, sum.barred, sum.lost);
	assert_in_range(sum.most_hops, 1, 2);
	assert_true(sum.calls > 400 * seeds && sum.writes > 20 * seeds && sum.hops > 50 * seeds);
	assert_true(sum.apart >= seeds && sum.kills >= seeds && sum.barred >= seeds &&
		    sum.lost >= seeds);
}

/* A manager without partitions asks the store, on a thread that may wait for it. */
static void each_answer_is_given(void **state)
{
	struct model *x = *state;
	const struct skv_target session = { .kind = SKV_TARGET_SESSION,
					    .name = "03000000000000000000000000000e00" };
	const struct skv_target t = { SKV_TARGET_INSTANCE, "t", "i", 0 },
				nobody = { SKV_TARGET_INSTANCE, "t", "nobody", 0 };
	struct skv_door door;

	assert_int_equal(env_group(&x->m[0], "g", 0, "s"), SKV_OK);
	assert_int_equal(skv_find(x->m[0].cluster, &t, &door), SKV_NOWHERE);
	assert_int_equal(env_instance(&x->m[0], "i", "g", &(struct skv_spec){ "kv", 65536 }, 1),
			 SKV_OK);
	assert_int_equal(skv_find(x->m[0].cluster, &t, &door), SKV_HERE);
	assert_int_equal(skv_find(x->m[1].cluster, &t, &door), SKV_SOON);
	assert_true(door.unknown);
	assert_int_equal(find_target(&x->m[1], &t, &door), SKV_THERE);
	/* The place is remembered. */
	assert_int_equal(skv_find(x->m[1].cluster, &t, &door), SKV_THERE);
	assert_int_equal(find_target(&x->m[1], &nobody, &door), SKV_THERE); /* the lead says so */
	assert_int_equal(door.partition, 0);
	assert_int_equal(skv_find(x->m[0].cluster, &session, &door), SKV_HERE);
	assert_int_equal(skv_find(x->m[1].cluster, &session, &door), SKV_THERE);
	assert_int_equal(door.partition, 3);
	skv_fake_clock_advance(&x->m[0].clock, 600000); /* suspended: the lease is over */
	assert_int_equal(skv_find(x->m[0].cluster, &t, &door), SKV_SOON);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test_setup_teardown(each_answer_is_given, setup, teardown),
		cmocka_unit_test(no_call_is_lost),
	};

	if (argc > 2) {
		first_seed = strtoull(argv[1], NULL, 10);
		seeds = strtoull(argv[2], NULL, 10);
	}
	return cmocka_run_group_tests_name("find", cases, NULL, NULL);
}
