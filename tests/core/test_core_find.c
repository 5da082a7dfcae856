/*
 * test_core_find.c - where a call belongs (skv_find), by managers that share the partitions of a
 * store.
 *
 * The model: random owners; groups and instances that are made, deleted and made again elsewhere;
 * calls at random managers, also while partitions move. Every other instance is of one family: a
 * call on all of these finds each that there is, or waits. Time is turned by hand.
 */
#include "core_env.h"

#include <stdio.h>
#include <string.h>

#include <skv/find.h>

#define MANAGERS 3u
#define PARTITIONS 4u
#define NAMES 12u
#define UNIT (1ull << 20)
#define PATIENCE 2000 /* steps of 20 ms */

struct model {
	struct env m[MANAGERS];
	uint64_t random;
	bool exists[NAMES];
	char group[NAMES][8]; /* of an instance that exists */
	uint32_t n_groups;
	uint32_t calls, hops, waits, most_hops, apart;
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

static void open_follower(struct model *x, uint32_t i)
{
	struct env *e = &x->m[i];

	*e = x->m[0];
	memset(&e->arena, 0, sizeof e->arena);
	skv_arena_init(&e->arena);
	e->o.assigned = true;
	assert_int_equal(skv_store_open(e->ops, &e->store_options, &e->store, &e->err), SKV_OK);
	e->o.store = e->store;
	e->o.clock = &x->m[0].clock.clock;
	env_create(e);
}

static int setup(void **state)
{
	struct model *x = test_calloc(1, sizeof *x);
	struct env *e = &x->m[0];

	env_quiet();
	env_init(e);
	e->all.partitions = PARTITIONS;
	e->all.family = family;
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
	uint32_t may[MANAGERS] = { 0 };

	for (uint32_t i = 0; i < PARTITIONS; i++)
		may[roll(x, MANAGERS)] |= 1u << i;
	for (uint32_t i = 0; i < MANAGERS; i++)
		skv_cluster_may_own(x->m[i].cluster, may[i]);
	for (uint32_t i = roll(x, 30); i > 0; i--)
		step(x);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static int match_at(struct env *e, struct skv_cluster *at, const char *name)
{
	const struct skv_key key = { 1, 1 };
	const struct skv_match_req q = { .tenant = "t", .instances = &name, .n_instances = 1,
					 .keys = &key, .n_keys = 1 };
	struct skv_match_res r;

	skv_error_clear(&e->err);
	return skv_cluster_match(at, &q, &r, &e->arena, &e->err);
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

/* All of the family that exist, or SKV_E_NOT_OWNER for a part of them. */
static int count_all(struct model *x, uint32_t at, const struct skv_door *door)
{
	struct env *e = &x->m[at];
	uint32_t n, there = 0, exist = 0;
	struct skv_instance_view *v;
	struct skv_cluster *part;

	part = skv_cluster_part(e->cluster, door->partition);
	assert_int_equal(skv_cluster_every_instance(part, "t", &e->arena, &v, &n, &e->err), SKV_OK);
	for (uint32_t i = 0; i < n; i++)
		there += (v[i].spec.id[strlen(v[i].spec.id) - 1] - '0') % 2;
	for (uint32_t i = 1; i < NAMES; i += 2)
		exist += x->exists[i];
	assert_int_equal(there, exist);
	return there ? SKV_OK : SKV_E_NOT_FOUND;
}

/* One try, from the manager `from`: SKV_E_NOT_READY if it has to wait. */
static int try_call(struct model *x, uint32_t from, const struct skv_target *t)
{
	uint32_t at = from, refused = 0, hops = 0;
	struct skv_target now = *t;
	struct skv_door door;

	for (;;) {
		now.refused = at == from ? refused : UINT32_MAX;
		switch (find_target(&x->m[at], &now, &door)) {
		case SKV_HERE:
			assert_true(has_partition(x, at, door.partition));
			return t->kind == SKV_TARGET_FAMILY
				       ? count_all(x, at, &door)
				       : match_at(&x->m[at], door.part, t->name);
		case SKV_NOWHERE: return SKV_E_NOT_FOUND;
		case SKV_SOON: return SKV_E_NOT_READY;
		case SKV_THERE: break;
		}
		if (at != from) { /* whoever is asked does not send it on */
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

static void call(struct model *x)
{
	const uint32_t n = roll(x, NAMES + 2), at = roll(x, MANAGERS);
	struct skv_target t = { SKV_TARGET_FAMILY, NULL, "odd", 0 };
	int rc = SKV_E_NOT_READY;
	bool exists = false;
	char name[8];

	for (uint32_t i = 1; i < NAMES; i += 2)
		exists |= x->exists[i];
	if (n < NAMES) {
		snprintf(name, sizeof name, "i%u", n);
		t = (struct skv_target){ SKV_TARGET_INSTANCE, "t", name, 0 };
		exists = x->exists[n];
	}
	for (int i = 0; i < PATIENCE && rc == SKV_E_NOT_READY; i++) {
		rc = try_call(x, at, &t);
		if (rc == SKV_E_NOT_READY)
			step(x);
		x->waits += rc == SKV_E_NOT_READY;
	}
	assert_int_equal(rc, exists ? SKV_OK : SKV_E_NOT_FOUND);
	x->calls++;
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

static void no_call_is_lost(void **state)
{
	struct model *x = *state;

	x->random = 1;
	for (int i = 0; i < 3000; i++) {
		const uint32_t what = roll(x, 20);

		if (what == 0)
			move(x);
		else if (what <= 2)
			toggle(x);
		else if (what == 3)
			step(x);
		else
			call(x);
	}
	print_message("%u calls, %u hops, %u at most for one, %u waits, %u refused\n", x->calls,
		      x->hops, x->most_hops, x->waits, x->apart);
	assert_true(x->calls > 2000 && x->hops > 100 && x->most_hops <= 2 && x->apart > 5);
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
	assert_int_equal(skv_find(x->m[1].cluster, &t, &door), SKV_THERE);  /* it is remembered */
	assert_int_equal(find_target(&x->m[1], &nobody, &door), SKV_THERE); /* the lead says so */
	assert_int_equal(door.partition, 0);
	assert_int_equal(skv_find(x->m[0].cluster, &session, &door), SKV_HERE);
	assert_int_equal(skv_find(x->m[1].cluster, &session, &door), SKV_THERE);
	assert_int_equal(door.partition, 3);
	skv_fake_clock_advance(&x->m[0].clock, 600000); /* suspended: the lease is over */
	assert_int_equal(skv_find(x->m[0].cluster, &t, &door), SKV_SOON);
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test_setup_teardown(each_answer_is_given, setup, teardown),
		cmocka_unit_test_setup_teardown(no_call_is_lost, setup, teardown),
	};

	return cmocka_run_group_tests_name("find", cases, NULL, NULL);
}
