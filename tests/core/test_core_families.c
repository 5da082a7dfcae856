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
	e->o.partitions = N;
	e->o.family = family;
	e->store_options.clock = &e->clock.clock;
	*state = e;
	return 0;
}

static int teardown(void **state)
{
	struct env *e = *state;

	env_destroy(e);
	test_free(e);
	return 0;
}

static int make_storage(struct skv_core *c, const char *name, struct skv_error *err)
{
	const struct skv_storage_spec s = { .name = name, .type = "external", .root = "",
					    .capacity = 100, .enabled = true };

	return skv_core_storage_create(c, &s, err);
}

/* Storage, group and instance of this name. */
static void make(struct env *e, const char *name)
{
	assert_int_equal(make_storage(e->core, name, &e->err), SKV_OK);
	assert_int_equal(env_group(e, name, 0, name), SKV_OK);
	assert_int_equal(env_instance(e, name, name, &page, 1), SKV_OK);
}

static void drop(struct env *e, const char *name)
{
	assert_int_equal(skv_core_instance_delete(e->core, "t", name, &e->err), SKV_OK);
	assert_int_equal(skv_core_group_delete(e->core, name, &e->err), SKV_OK);
	assert_int_equal(skv_core_storage_delete(e->core, name, &e->err), SKV_OK);
}

static uint32_t place_of(struct env *e, const char *name)
{
	const struct skv_target t = { SKV_TARGET_INSTANCE, "t", name, 0 };
	struct skv_door door;

	return skv_find(e->core, &t, &door) == SKV_HERE ? door.partition : UINT32_MAX;
}

static void ticks(struct env *e, int n, uint64_t ms)
{
	for (int i = 0; i < n; i++) {
		skv_fake_clock_advance(&e->clock, ms);
		skv_core_tick(e->core);
	}
}

/* Of a call on all of a family: where they are, or the status. */
static int where(struct env *e, struct skv_core *c, const char *name, struct skv_family *f)
{
	skv_error_clear(&e->err);
	return skv_core_family(c, name, f, &e->err);
}

/* How many there are, or the status. */
static int count(struct env *e, struct skv_core *c, const struct skv_family *f)
{
	struct skv_instance_view *v;
	uint32_t n = 0;
	int rc = skv_core_family_instances(c, f, "t", &e->arena, &v, &n, &e->err);

	return rc == SKV_OK ? (int)n : rc;
}

/* Where the family x is, but for `refused`. */
static struct skv_door find(struct env *e, uint32_t refused)
{
	const struct skv_target t = { SKV_TARGET_FAMILY, NULL, "x", refused };
	struct skv_door door;

	skv_find(e->core, &t, &door);
	return door;
}

static void is_of(struct env *e, int rc, uint32_t number)
{
	assert_int_equal(rc, SKV_E_NOT_OWNER);
	assert_int_equal(e->err.status, SKV_E_NOT_OWNER);
	assert_int_equal(find(e, 0).where, SKV_THERE);
	assert_int_equal(find(e, 0).partition, number);
}

static void those_of_a_family_lie_together(void **state)
{
	struct env *e = *state;
	struct skv_family f;
	uint32_t x, y;

	e->store_options.clock = NULL; /* who has crashed owns nothing for long */
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
		assert_int_equal(where(e, e->core, "x", &f), SKV_OK);
		assert_int_equal(f.partition, SKV_MAX_PARTITIONS); /* all are here */
		assert_int_equal(count(e, e->core, &f), 8 * round + 8);
		if (round == 0)
			env_crash(e);
		else
			env_shutdown(e);
		env_open(e);
	}
	env_check(e);
}

struct maker {
	struct skv_core *core;
	const char *name;
	int rc;
};

static void *make_one(void *arg)
{
	struct maker *m = arg;
	struct skv_error err;

	m->rc = make_storage(m->core, m->name, &err);
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
		m[i] = (struct maker){ e->core, names[i], -1 };
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
	make(e, "x-3"); /* it was there a moment ago */
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
	struct skv_family f, now;

	env_open(e);
	make(e, "x-0");
	assert_int_equal(where(e, e->core, "x", &f), SKV_OK);
	assert_int_equal(where(e, e->core, "x", &now), SKV_OK);
	assert_int_equal(now.turn, f.turn);
	make(e, "x-1");
	assert_int_equal(where(e, e->core, "x", &now), SKV_OK);
	assert_true(now.turn != f.turn);
	f = now;
	assert_int_equal(skv_core_instance_delete(e->core, "t", "x-1", &e->err), SKV_OK);
	assert_int_equal(where(e, e->core, "x", &now), SKV_OK);
	assert_true(now.turn != f.turn);
	env_shutdown(e);
	env_open(e);
	assert_int_equal(where(e, e->core, "x", &f), SKV_OK);
	assert_int_equal(skv_core_demote(e->core, 100, &e->err), SKV_OK);
	ticks(e, 50, 100);
	assert_int_equal(where(e, e->core, "x", &now), SKV_OK);
	assert_true(now.turn != f.turn);
}

/* ---- several managers ------------------------------------------------------------------------ */

/* It owns nothing yet. */
static void open_one(struct env *e)
{
	e->o.assigned = true;
	assert_int_equal(skv_store_open(e->ops, &e->store_options, &e->store, &e->err), SKV_OK);
	e->o.store = e->store;
	assert_int_equal(skv_core_create(&e->o, &e->core, &e->err), SKV_OK);
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
	skv_core_may_own(a->core, of_a);
	skv_core_may_own(b->core, of_b);
	for (int i = 0; i < 60; i++) {
		skv_fake_clock_advance(&a->clock, 20);
		skv_core_tick(a->core);
		skv_core_tick(b->core);
	}
	for (uint32_t i = 0; i < N; i++) {
		assert_int_equal(skv_core_partition_state(a->core, i) == SKV_CORE_READY,
				 of_a >> i & 1);
		assert_int_equal(skv_core_partition_state(b->core, i) == SKV_CORE_READY,
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

/* Partition 0's owner says it; the partition's owner is told, and remembers it while the same one
 * leads. */
static void the_lead_says_where_all_are(void **state)
{
	struct env *a = *state, b;
	struct skv_family f;
	uint64_t name[2];
	uint32_t p;

	env_open(a);
	p = make_two(a);
	ticks(a, 5, 10);
	open_second(a, &b);
	share(a, &b, 7u & ~(1u << p), 1u << p);
	is_of(a, where(a, a->core, "x", &f), p);
	assert_true(find(a, 0).sure);
	assert_int_equal(where(a, a->core, "none", &f), SKV_E_NOT_FOUND);
	/* it has them, but not the word of whoever knows */
	is_of(&b, where(&b, b.core, "x", &f), 0);
	assert_false(find(&b, 0).sure);
	memcpy(name, find(&b, 0).name, sizeof name);
	assert_true(name[0] || name[1]);
	skv_core_learn(b.core, name, p);
	assert_int_equal(where(&b, b.core, "x", &f), SKV_OK);
	assert_int_equal(f.partition, p);
	assert_int_equal(count(&b, b.core, &f), 2);
	/* another one leads: it may have made some elsewhere */
	share(a, &b, 0, 7);
	assert_int_equal(where(&b, b.core, "x", &f), SKV_OK);
	share(a, &b, 7u & ~(1u << p), 1u << p);
	is_of(a, where(a, a->core, "x", &f), p);
	is_of(&b, where(&b, b.core, "x", &f), 0);
	skv_core_learn(b.core, name, p);
	assert_int_equal(where(&b, b.core, "x", &f), SKV_OK);
	env_shutdown(a);
	open_one(a);
	share(a, &b, 7u & ~(1u << p), 1u << p);
	is_of(&b, where(&b, b.core, "x", &f), 0);
	/* a call that was sent with it says it, too */
	assert_int_equal(where(&b, skv_core_alone(b.core, p), "x", &f), SKV_OK);
	assert_int_equal(f.partition, p);
	assert_int_equal(count(&b, skv_core_alone(b.core, p), &f), 2);
	assert_int_equal(where(&b, b.core, "x", &f), SKV_OK);
	assert_int_equal(f.partition, p);
	close_second(&b);
	ticks(a, 50, 100);
}

/* What is remembered ends with the last of them: the family may be elsewhere by then. */
static void an_empty_list_is_asked_about(void **state)
{
	struct env *a = *state, b;
	struct skv_family f;
	uint32_t p;

	env_open(a);
	p = make_two(a);
	ticks(a, 5, 10);
	open_second(a, &b);
	share(a, &b, 7u & ~(1u << p), 1u << p);
	assert_int_equal(where(&b, skv_core_alone(b.core, p), "x", &f), SKV_OK);
	assert_int_equal(where(&b, b.core, "x", &f), SKV_OK);
	assert_int_equal(count(&b, b.core, &f), 2);
	for (int i = 0; i < 2; i++)
		assert_int_equal(skv_core_instance_delete(b.core, "t", i ? "x-0" : "x-1", &b.err),
				 SKV_OK);
	assert_int_equal(where(&b, b.core, "x", &f), SKV_OK);
	assert_int_equal(count(&b, b.core, &f), SKV_E_NOT_OWNER);
	assert_int_equal(find(&b, 0).where, SKV_HERE);
	assert_int_equal(find(&b, 1u << p).partition, 0);
	assert_true(find(&b, 1u << p).name[0]);
	assert_int_equal(where(&b, skv_core_alone(b.core, p), "x", &f), SKV_OK);
	assert_int_equal(count(&b, skv_core_alone(b.core, p), &f), 0);
	close_second(&b);
	ticks(a, 50, 100);
}

/* Made before there were families: never a part of them. Where one has all there is nothing to ask;
 * and when those elsewhere are gone, the rest is all. */
static void those_that_lie_apart_are_not_told_in_part(void **state)
{
	struct env *a = *state, b;
	struct skv_family f;
	uint32_t p;

	a->o.family = NULL;
	env_open(a);
	make(a, "x-0");
	make(a, "x-1");
	assert_true(place_of(a, "x-0") != place_of(a, "x-1"));
	env_shutdown(a);
	a->o.family = family;
	env_open(a);
	ticks(a, 5, 10);
	make(a, "x-2");
	assert_int_equal(where(a, a->core, "x", &f), SKV_OK);
	assert_int_equal(count(a, a->core, &f), 3);
	open_second(a, &b);
	share(a, &b, 1, 6);
	assert_int_equal(where(a, a->core, "x", &f), SKV_E_UNSUPPORTED);
	is_of(&b, where(&b, b.core, "x", &f), 0);
	share(a, &b, 7, 0);
	p = place_of(a, "x-2");
	for (int i = 0; i < 2; i++)
		if (place_of(a, i ? "x-1" : "x-0") != p)
			drop(a, i ? "x-1" : "x-0");
	ticks(a, 500, 2000);
	for (int i = 0; i < 20; i++)
		skv_core_tick(b.core);
	share(a, &b, p ? 7u & ~(1u << p) : 1, p ? 1u << p : 6);
	if (p) {
		is_of(a, where(a, a->core, "x", &f), p);
	} else {
		assert_int_equal(where(a, a->core, "x", &f), SKV_OK);
		assert_int_equal(f.partition, p);
	}
	close_second(&b);
	ticks(a, 50, 100);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest cases[] = {
		CASE(those_of_a_family_lie_together),
		CASE(made_at_once),
		CASE(a_family_ends_with_its_last),
		CASE(what_is_listed_is_known_to_be_new),
		CASE(the_lead_says_where_all_are),
		CASE(an_empty_list_is_asked_about),
		CASE(those_that_lie_apart_are_not_told_in_part),
	};

	return cmocka_run_group_tests_name("families", cases, NULL, NULL);
}
