/*
 * test_core_families.c - families: external storages and instances that lie in one partition,
 * wherever they are made, and who knows where all of them are.
 *
 * Here a family is what is in front of a '-' in the name.
 */
#include "core_env.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <skv/find.h>

#define N 3u

static const struct skv_spec page = { "page", 1 };

static bool family(const char *tenant, const char *name, char out[SKV_MAX_NAME + 1])
{
	const char *end = strchr(name, '-');

	(void)tenant;
	if (end)
		snprintf(out, SKV_MAX_NAME + 1, "%.*s", (int)(end - name), name);
	return end != NULL;
}

static int setup(void **state)
{
	struct env *e = test_calloc(1, sizeof *e);

	env_quiet();
	env_init(e);
	e->all.partitions = N;
	e->all.family = family;
	e->store_options.clock = &e->clock.clock;
	skv_thread_waits = true;
	*state = e;
	return 0;
}

static int teardown(void **state)
{
	struct env *e = *state;

	skv_thread_waits = false;
	env_destroy(e);
	test_free(e);
	return 0;
}

static int make_storage(struct skv_cluster *c, const char *name, struct skv_error *err)
{
	const struct skv_storage_spec s = { .name = name, .type = "external", .root = "",
					    .capacity = 100, .enabled = true };

	return skv_cluster_storage_put(c, &s, SKV_PUT_NEW, NULL, err);
}

/* Storage, group and instance of this name. */
static void make(struct env *e, const char *name)
{
	assert_int_equal(make_storage(e->cluster, name, &e->err), SKV_OK);
	assert_int_equal(env_group(e, name, 0, name), SKV_OK);
	assert_int_equal(env_instance(e, name, name, &page, 1), SKV_OK);
}

static void drop(struct env *e, const char *name)
{
	assert_int_equal(skv_cluster_instance_delete(e->cluster, "t", name, NULL, &e->err), SKV_OK);
	assert_int_equal(skv_cluster_group_delete(e->cluster, name, &e->err), SKV_OK);
	assert_int_equal(skv_cluster_storage_delete(e->cluster, name, &e->err), SKV_OK);
}

static uint32_t place_of(struct env *e, const char *name)
{
	const struct skv_target t = { SKV_TARGET_INSTANCE, "t", name, 0 };
	struct skv_door door;

	return skv_find(e->cluster, &t, &door) == SKV_HERE ? door.partition : UINT32_MAX;
}

static void ticks(struct env *e, int n, uint64_t ms)
{
	for (int i = 0; i < n; i++) {
		skv_fake_clock_advance(&e->clock, ms);
		skv_cluster_tick(e->cluster);
	}
}

/* Where a family is, for a call at this manager, whose owners so far have refused it. */
static struct skv_door look(struct skv_cluster *c, const char *name, uint32_t refused)
{
	const struct skv_target t = { SKV_TARGET_FAMILY, NULL, name, refused };
	struct skv_door door;

	skv_find(c, &t, &door);
	return door;
}

static void is_in(struct skv_cluster *c, const char *name, enum skv_where where, uint32_t number)
{
	const struct skv_door door = look(c, name, 0);

	assert_int_equal(door.where, where);
	assert_int_equal(door.partition, number);
}

static void is_nowhere(struct skv_cluster *c, const char *name)
{
	assert_int_equal(look(c, name, 0).where, SKV_NOWHERE);
}

/* How many instances there are where it is. */
static uint32_t count(struct env *e, const char *name)
{
	const struct skv_door door = look(e->cluster, name, 0);
	struct skv_instance_view *v;
	struct skv_cluster *part;
	uint32_t n = 0;

	assert_int_equal(door.where, SKV_HERE);
	part = skv_cluster_part(e->cluster, door.partition);
	assert_int_equal(skv_cluster_every_instance(part, "t", &e->arena, &v, &n, &e->err), SKV_OK);
	return n;
}

static uint64_t turn(struct env *e, const char *name)
{
	return skv_cluster_partition_turn(e->cluster, look(e->cluster, name, 0).partition);
}

static void those_of_a_family_lie_together(void **state)
{
	struct env *e = *state;
	uint32_t x, y;

	e->store_options.clock = NULL; /* a crashed manager owns nothing for long */
	env_open(e);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 4; i++) {
			char name[16];

			snprintf(name, sizeof name, "x-%d", 4 * round + i);
			make(e, name);
			snprintf(name, sizeof name, "y-%d", 4 * round + i);
			make(e, name);
		}
		x = place_of(e, "x-0");
		y = place_of(e, "y-0");
		assert_true(x < N && y < N && x != y);
		for (int i = 0; i < 4 * round + 4; i++) {
			char name[16];

			snprintf(name, sizeof name, "x-%d", i);
			assert_int_equal(place_of(e, name), x);
			snprintf(name, sizeof name, "y-%d", i);
			assert_int_equal(place_of(e, name), y);
		}
		is_in(e->cluster, "x", SKV_HERE, x);
		is_in(e->cluster, "y", SKV_HERE, y);
		is_nowhere(e->cluster, "z");
		assert_int_equal(count(e, "x"), 4 * round + 4);
		if (round == 0)
			env_crash(e);
		else
			env_shutdown(e);
		env_open(e);
	}
	env_check(e);
}

struct maker {
	struct skv_cluster *cluster;
	const char *name;
	int rc;
};

static void *make_one(void *arg)
{
	struct maker *m = arg;
	struct skv_error err;

	m->rc = make_storage(m->cluster, m->name, &err);
	return NULL;
}

static void made_at_once(void **state)
{
	static const char *const names[] = { "x-0", "x-1", "x-2", "x-3", "x-4", "x-5" };
	struct env *e = *state;
	pthread_t thread[6];
	struct maker m[6];

	e->o.manual = false;
	e->o.clock = NULL;
	e->o.owner_lease_ms = 5000;
	e->store_options.clock = NULL;
	env_open(e);
	for (int i = 0; i < 6; i++) {
		m[i] = (struct maker){ e->cluster, names[i], -1 };
		assert_int_equal(pthread_create(&thread[i], NULL, make_one, &m[i]), 0);
	}
	for (int i = 0; i < 6; i++) {
		pthread_join(thread[i], NULL);
		assert_int_equal(m[i].rc, SKV_OK);
		assert_int_equal(env_group(e, names[i], 0, names[i]), SKV_OK);
		assert_int_equal(env_instance(e, names[i], names[i], &page, 1), SKV_OK);
		assert_int_equal(place_of(e, names[i]), place_of(e, names[0]));
	}
}

/* Until the last one is gone, for long, a family stays where it is; then it may begin anew. */
static void a_family_ends_with_its_last(void **state)
{
	struct env *e = *state;
	uint32_t x;

	env_open(e);
	ticks(e, 5, 10);
	make(e, "x-0");
	make(e, "x-1");
	x = place_of(e, "x-0");
	for (int i = 0; i < 2; i++) { /* where it is there is least room now */
		char name[16];

		snprintf(name, sizeof name, "%c", 'a' + i);
		make(e, name);
		assert_true(place_of(e, name) != x);
	}
	drop(e, "x-0");
	ticks(e, 500, 2000);
	make(e, "x-2");
	assert_int_equal(place_of(e, "x-2"), x);
	drop(e, "x-1");
	drop(e, "x-2");
	make(e, "x-3"); /* the family was there a moment ago */
	assert_int_equal(place_of(e, "x-3"), x);
	drop(e, "x-3");
	ticks(e, 500, 2000);
	make(e, "b-1");
	make(e, "b-2");
	make(e, "x-4");
	assert_int_equal(place_of(e, "b-2"), x);
	assert_true(place_of(e, "x-4") != x);
}

/* A list is as old as the last change. */
static void what_is_listed_is_known_to_be_new(void **state)
{
	struct env *e = *state;
	uint64_t was;

	env_open(e);
	make(e, "x-0");
	was = turn(e, "x");
	assert_true(was == turn(e, "x"));
	make(e, "x-1");
	assert_true(was != turn(e, "x"));
	was = turn(e, "x");
	assert_int_equal(skv_cluster_instance_delete(e->cluster, "t", "x-1", NULL, &e->err),
			 SKV_OK);
	assert_true(was != turn(e, "x"));
	assert_int_equal(count(e, "x"), 1);
	assert_int_equal(skv_cluster_instance_delete(e->cluster, "t", "x-0", NULL, &e->err),
			 SKV_OK);
	is_nowhere(e->cluster, "x");
	assert_int_equal(env_instance(e, "x-0", "x-0", &page, 1), SKV_OK);
	assert_int_equal(count(e, "x"), 1);
	env_shutdown(e);
	env_open(e);
	was = turn(e, "x");
	assert_int_equal(skv_cluster_demote(e->cluster, 100, &e->err), SKV_OK);
	ticks(e, 50, 100);
	assert_true(was != turn(e, "x"));
	assert_int_equal(count(e, "x"), 1);
}

/* ---- several managers ------------------------------------------------------------------------ */

/* Opens a manager that owns nothing yet. */
static void open_one(struct env *e)
{
	e->o.assigned = true;
	assert_int_equal(skv_store_open(e->ops, &e->store_options, &e->store, &e->err), SKV_OK);
	e->o.store = e->store;
	env_create(e);
}

static void open_second(const struct env *e, struct env *b)
{
	*b = *e; /* with its clock */
	memset(&b->arena, 0, sizeof b->arena);
	skv_arena_init(&b->arena);
	open_one(b);
}

static void close_second(struct env *b)
{
	env_shutdown(b);
	skv_arena_destroy(&b->arena);
}

/* Each of them owns these then. */
static void share(struct env *a, struct env *b, uint32_t of_a, uint32_t of_b)
{
	skv_cluster_may_own(a->cluster, of_a);
	skv_cluster_may_own(b->cluster, of_b);
	for (int i = 0; i < 60; i++) {
		skv_fake_clock_advance(&a->clock, 20);
		skv_cluster_tick(a->cluster);
		skv_cluster_tick(b->cluster);
	}
	for (uint32_t i = 0; i < N; i++) {
		assert_int_equal(skv_cluster_partition_state(a->cluster, i) == SKV_CORE_READY,
				 of_a >> i & 1);
		assert_int_equal(skv_cluster_partition_state(b->cluster, i) == SKV_CORE_READY,
				 of_b >> i & 1);
	}
}

/* Two of x in partition p, which is not the first. */
static uint32_t make_two(struct env *e)
{
	make(e, "a");
	make(e, "x-0");
	make(e, "x-1");
	assert_true(place_of(e, "x-0") > 0);
	return place_of(e, "x-0");
}

static bool has_document(struct env *e, const char *key)
{
	struct skv_buf b = { 0 };
	int rc = skv_store_get(e->store, key, &b, NULL, &e->err);

	skv_buf_destroy(&b);
	skv_error_clear(&e->err);
	return rc == SKV_OK;
}

/* Any manager finds it, whoever else is there: the store says where it is. */
static void everybody_knows_where_all_are(void **state)
{
	struct env *a = *state, b;
	uint32_t p;

	env_open(a);
	p = make_two(a);
	ticks(a, 5, 10);
	assert_true(has_document(a, "place/family/x"));
	open_second(a, &b);
	share(a, &b, 7u & ~(1u << p), 1u << p);
	is_in(a->cluster, "x", SKV_THERE, p);
	is_nowhere(a->cluster, "none");
	is_in(b.cluster, "x", SKV_HERE, p); /* manager b was not informed */
	assert_int_equal(count(&b, "x"), 2);
	is_nowhere(b.cluster, "none");
	share(a, &b, 1u << p, 7u & ~(1u << p));
	is_in(b.cluster, "x", SKV_THERE, p);
	is_in(a->cluster, "x", SKV_HERE, p);
	close_second(&b);
	ticks(a, 50, 100);
}

/* Partition 0's owner is gone, and nobody has followed: who has the family answers, others know
 * that. */
static void partition_0_may_be_away(void **state)
{
	struct env *a = *state, b, c;
	uint32_t p;

	env_open(a);
	p = make_two(a);
	ticks(a, 5, 10);
	open_second(a, &b);
	open_second(a, &c);
	share(a, &b, 7u & ~(1u << p), 1u << p);
	env_crash(a);
	skv_cluster_may_own(b.cluster, 1u << p);
	skv_cluster_may_own(c.cluster, 0);
	skv_cluster_tick(b.cluster);
	skv_cluster_tick(c.cluster);
	assert_int_equal(skv_cluster_partition_state(b.cluster, 0), SKV_CORE_STANDBY);
	is_in(b.cluster, "x", SKV_HERE, p);
	assert_int_equal(count(&b, "x"), 2);
	is_in(c.cluster, "x", SKV_THERE, p);
	is_nowhere(b.cluster, "none");
	close_second(&c);
	close_second(&b);
	env_open(a);
}

/* A thread that may not wait leaves it to one that may ask the store; what that has learned, all
 * know. */
static void only_threads_that_may_wait_ask(void **state)
{
	struct env *a = *state, b;
	uint32_t p;

	env_open(a);
	p = make_two(a);
	ticks(a, 5, 10);
	open_second(a, &b);
	share(a, &b, 7, 0);
	skv_thread_waits = false;
	assert_true(look(b.cluster, "x", 0).unknown);
	assert_int_equal(look(b.cluster, "x", 0).where, SKV_SOON);
	skv_thread_waits = true;
	is_in(b.cluster, "x", SKV_THERE, p);
	skv_thread_waits = false;
	assert_false(look(b.cluster, "x", 0).unknown);
	assert_true(look(b.cluster, "x", 1u << p).unknown); /* the owner did not have the name */
	skv_thread_waits = true;
	close_second(&b);
	ticks(a, 50, 100);
}

/* A remembered place ends with the family's last instance: the family may begin anew elsewhere. */
static void what_is_remembered_is_compared(void **state)
{
	struct env *a = *state, b;
	uint32_t p;

	env_open(a);
	p = make_two(a);
	ticks(a, 5, 10);
	open_second(a, &b);
	share(a, &b, 7u & ~(1u << p), 1u << p);
	is_in(b.cluster, "x", SKV_HERE, p);
	for (int i = 0; i < 2; i++)
		assert_int_equal(skv_cluster_instance_delete(b.cluster, "t", i ? "x-0" : "x-1",
							     NULL, &b.err),
				 SKV_OK);
	is_nowhere(b.cluster, "x");
	share(a, &b, 7, 0);
	is_in(b.cluster, "x", SKV_THERE, p); /* the place is remembered */
	for (int i = 0; i < 2; i++) {
		const char *name = i ? "x-1" : "x-0";

		assert_int_equal(skv_cluster_group_delete(a->cluster, name, &a->err), SKV_OK);
		assert_int_equal(skv_cluster_storage_delete(a->cluster, name, &a->err), SKV_OK);
	}
	ticks(a, 900, 2000);
	assert_false(has_document(a, "place/family/x"));
	make(a, "b");
	make(a, "c");
	make(a, "x-7");
	assert_true(place_of(a, "x-7") != p);
	for (int i = 0; i < 20; i++)
		skv_cluster_tick(b.cluster);
	is_in(b.cluster, "x", SKV_THERE, p);
	assert_int_equal(look(b.cluster, "x", 1u << p).partition, place_of(a, "x-7"));
	is_in(b.cluster, "x", SKV_THERE, place_of(a, "x-7"));
	close_second(&b);
	ticks(a, 50, 100);
}

/* A manual put that would lie apart is refused, so a part is never taken for all. */
static void none_lies_apart(void **state)
{
	struct env *e = *state;
	uint32_t p;

	env_open(e);
	make(e, "x-0");
	make(e, "g");
	p = place_of(e, "x-0");
	assert_true(place_of(e, "g") != p);
	assert_int_equal(env_instance(e, "x-1", "g", &page, 1), SKV_E_CONFLICT);
	assert_string_equal(e->err.field, "group");
	assert_int_equal(place_of(e, "x-1"), UINT32_MAX);
	assert_int_equal(env_instance(e, "x-1", "x-0", &page, 1), SKV_OK);
	assert_int_equal(env_instance(e, "y-1", "g", &page, 1), SKV_OK); /* the first of its own */
	assert_int_equal(place_of(e, "y-1"), place_of(e, "g"));
	assert_int_equal(count(e, "x"), 2);
	assert_int_equal(make_storage(e->cluster, "y-2", &e->err), SKV_OK);
	assert_int_equal(env_group(e, "y-2", 0, "y-2"), SKV_OK);
	assert_int_equal(env_instance(e, "y-2", "y-2", &page, 1), SKV_OK);
	assert_int_equal(place_of(e, "y-2"), place_of(e, "g"));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest cases[] = {
		CASE(those_of_a_family_lie_together),
		CASE(made_at_once),
		CASE(a_family_ends_with_its_last),
		CASE(what_is_listed_is_known_to_be_new),
		CASE(everybody_knows_where_all_are),
		CASE(partition_0_may_be_away),
		CASE(only_threads_that_may_wait_ask),
		CASE(what_is_remembered_is_compared),
		CASE(none_lies_apart),
	};

	return cmocka_run_group_tests_name("families", cases, NULL, NULL);
}
