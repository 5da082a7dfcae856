/*
 * test_core_many.c - many storages, groups and instances: each is found by its name and its number,
 * one costs as little as among few, and tenants have no more than they may.
 */
#include "core_env.h"

#include <stdio.h>
#include <string.h>

#include <skv/find.h>

#define GROUPS 60
#define INSTANCES 1500
#define STEP 37 /* coprime to both: names come in no order */

static struct env e;

static int set_up(void **state)
{
	(void)state;
	env_init(&e);
	env_open(&e);
	assert_int_equal(env_storage(&e, "s", 1 << 24, 1 << 20), SKV_OK);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	env_check(&e);
	env_shutdown(&e);
	env_destroy(&e);
	return 0;
}

static void make(const char *tenant, const char *id, const char *group, int expect)
{
	const struct skv_spec spec = { "kv", 4096 };

	e.tenant = tenant;
	assert_int_equal(env_instance(&e, id, group, &spec, 1), expect);
}

static const char *tenant_of(unsigned i) { return i % 3 ? "a" : "a/b"; }

static void name_of(unsigned i, char id[16], char group[16])
{
	snprintf(id, 16, "i%u", i);
	snprintf(group, 16, "g%u", i % GROUPS);
}

static void make_all(void)
{
	char id[16], group[16];

	for (unsigned i = 0; i < GROUPS; i++) {
		name_of(i * STEP % GROUPS, id, group);
		assert_int_equal(env_group(&e, group, 0, "s"), SKV_OK);
	}
	for (unsigned i = 0; i < INSTANCES; i++) {
		const unsigned k = i * STEP % INSTANCES;

		name_of(k, id, group);
		make(tenant_of(k), id, group, SKV_OK);
	}
}

static int look(unsigned i, struct skv_instance_view **v)
{
	char id[16], group[16];
	int rc;

	name_of(i, id, group);
	skv_arena_reset(&e.arena);
	rc = skv_cluster_instance(e.cluster, tenant_of(i), id, &e.arena, v, &e.err);
	if (rc == SKV_OK)
		assert_string_equal((*v)->spec.group, group);
	return rc;
}

static void is_there(unsigned i, bool there)
{
	const int rc = there ? SKV_OK : SKV_E_NOT_FOUND;
	const char *tenant = tenant_of(i);
	struct skv_instance_view *v;
	char id[16], group[16];

	name_of(i, id, group);
	assert_int_equal(look(i, &v), rc);
	assert_int_equal(skv_cluster_has_instance(e.cluster, tenant, id, NULL), rc);
	assert_int_equal(skv_cluster_has_instance(e.cluster, tenant, id, group), rc);
	assert_int_equal(skv_cluster_has_instance(e.cluster, tenant, id, "other"), SKV_E_NOT_FOUND);
}

static void delete_one(unsigned i)
{
	char id[16], group[16];

	name_of(i, id, group);
	assert_int_equal(skv_cluster_instance_delete(e.cluster, tenant_of(i), id, NULL, &e.err),
			 SKV_OK);
}

/* Every second one is deleted, every fourth one made again; the order holds, also after a kill. */
static void test_found_by_name_and_number(void **state)
{
	char id[16], group[16];

	(void)state;
	make_all();
	env_check(&e);
	for (unsigned i = 0; i < INSTANCES; i += 2)
		delete_one(i);
	env_check(&e);
	for (unsigned i = 0; i < INSTANCES; i += 4) {
		name_of(i, id, group);
		make(tenant_of(i), id, group, SKV_OK);
	}
	for (int round = 0; round < 2; round++) {
		for (unsigned i = 0; i < INSTANCES; i++)
			is_there(i, i % 2 || i % 4 == 0);
		env_check(&e);
		env_crash(&e);
		env_open(&e);
	}
	assert_int_equal(skv_cluster_group_delete(e.cluster, "g1", &e.err), SKV_E_IN_USE);
	for (unsigned i = 1; i < INSTANCES; i += GROUPS)
		delete_one(i);
	assert_int_equal(skv_cluster_group_delete(e.cluster, "g1", &e.err), SKV_OK);
}

/* A single view is held, whatever else exists, and a single document is written. */
static void test_one_costs_as_much_as_alone(void **state)
{
	struct skv_core_store_counters before, after;
	struct skv_group_view *g;
	struct skv_instance_view *v;

	(void)state;
	skv_cluster_store_counters_get(e.cluster, &before);
	make_all();
	skv_cluster_store_counters_get(e.cluster, &after);
	assert_in_range(after.calls - before.calls, INSTANCES + GROUPS,
			INSTANCES + GROUPS + 4 * (INSTANCES / 256 + 1));
	skv_arena_destroy(&e.arena);
	skv_arena_init(&e.arena);
	assert_int_equal(look(1, &v), SKV_OK);
	assert_in_range(e.arena.total, 1, 65536);
	assert_int_equal(skv_cluster_group(e.cluster, "g7", &e.arena, &g, &e.err), SKV_OK);
	assert_in_range(e.arena.total, 1, 65536);
}

/* ---- pages ----------------------------------------------------------------------------------- */

/* All, page by page: each once, in order, of any length and size of a page. */
static uint32_t walk(const char *tenant, uint32_t limit, uint32_t bytes)
{
	struct skv_page page = { .limit = limit, .bytes = bytes, .tenant = tenant };
	char last[SKV_MAX_CURSOR + 1] = "", name[SKV_MAX_CURSOR + 1];
	struct skv_instance_list list;
	uint32_t n = 0;

	do {
		skv_arena_reset(&e.arena);
		page.after = last;
		assert_int_equal(skv_cluster_instance_list(e.cluster, &page, &e.arena, &list,
							   &e.err),
				 SKV_OK);
		assert_in_range(list.n_instances, 1, limit);
		for (uint32_t i = 0; i < list.n_instances; i++) {
			const struct skv_instance_spec *s = &list.instances[i].spec;

			snprintf(name, sizeof name, "%s%s%s", tenant ? "" : s->tenant,
				 tenant ? "" : "%", s->id);
			assert_true(strcmp(last, name) < 0);
			memcpy(last, name, sizeof last);
		}
		n += list.n_instances;
		assert_true(!*list.next || strcmp(list.next, last) == 0);
		assert_in_range(e.arena.total, 1,
				65536 + 4 * bytes + limit * sizeof *list.instances);
	} while (*list.next);
	return n;
}

static void test_pages(void **state)
{
	struct skv_page page = SKV_PAGE;
	struct skv_group_list groups;

	(void)state;
	make_all();
	for (unsigned i = 0; i < INSTANCES; i += 5)
		delete_one(i);
	assert_int_equal(walk(NULL, 1000, 1 << 20), INSTANCES * 4 / 5);
	assert_int_equal(walk(NULL, 7, 1 << 20), INSTANCES * 4 / 5);
	assert_int_equal(walk(NULL, 1000, 20000), INSTANCES * 4 / 5);
	assert_int_equal(walk("a", 1, 1 << 20) + walk("a/b", 33, 1 << 20), INSTANCES * 4 / 5);
	page.limit = 10;
	page.after = "g58";
	assert_int_equal(skv_cluster_group_list(e.cluster, &page, &e.arena, &groups, &e.err),
			 SKV_OK);
	assert_int_equal(groups.n_groups, 5); /* g59, g6 to g9 */
	assert_string_equal(groups.groups[0].spec.name, "g59");
	assert_string_equal(groups.next, "");
}

/* A tenant's lists are made of what it sees: others' page spaces are not even viewed. */
static bool sees_some(void *ctx, bool is_storage, const char *name)
{
	(void)ctx;
	return !is_storage && strcmp(name, "g1") == 0;
}

static void test_pages_of_a_tenant(void **state)
{
	struct skv_page page = SKV_PAGE;
	struct skv_group_list groups;
	struct skv_stats stats;
	char group[32], id[16];

	(void)state;
	assert_int_equal(env_group(&e, "g1", 0, "s"), SKV_OK);
	assert_int_equal(env_group(&e, "g2", 0, "s"), SKV_OK);
	for (unsigned i = 0; i < 700; i++) {
		snprintf(id, sizeof id, "%u", i);
		snprintf(group, sizeof group, "pages:%s:%u", i % 350 ? "loud" : "small", i);
		assert_int_equal(env_group(&e, group, 0, "s"), SKV_OK);
		make(i % 350 ? "loud" : "small", id, group, SKV_OK);
	}
	skv_arena_destroy(&e.arena);
	skv_arena_init(&e.arena);
	page.tenant = "small";
	page.sees = sees_some;
	page.limit = 20;
	assert_int_equal(skv_cluster_group_list(e.cluster, &page, &e.arena, &groups, &e.err),
			 SKV_OK);
	assert_int_equal(groups.n_groups, 3);
	assert_string_equal(groups.groups[0].spec.name, "g1");
	assert_string_equal(groups.groups[1].spec.name, "pages:small:0");
	assert_string_equal(groups.groups[2].spec.name, "pages:small:350");
	assert_int_equal(skv_cluster_stats(e.cluster, &page, &e.arena, &stats, &e.err), SKV_OK);
	assert_int_equal(stats.n_groups, 3);
	assert_int_equal(stats.n_instances, 2);
	assert_int_equal(stats.n_storages, 0);
	assert_int_equal(stats.all_groups, 702);
	assert_int_equal(stats.all_instances, 700);
	assert_in_range(e.arena.total, 1, 131072);
	page.tenant = NULL;
	page.brief = true;
	assert_int_equal(skv_cluster_stats(e.cluster, &page, &e.arena, &stats, &e.err), SKV_OK);
	assert_int_equal(stats.n_groups, 20);
	assert_int_equal(stats.n_instances, 20);
}

/* ---- what tenants may have ------------------------------------------------------------------- */

static void limit(void)
{
	const struct skv_tenant_spec others = { .max_instances = 3, .max_spaces = 2 };
	const struct skv_tenant_view v[] = { { .name = "operator" },
					     { .name = "few", .spec.max_instances = 1 } };

	assert_int_equal(skv_cluster_tenants_set(e.cluster, v, 2, &others), SKV_OK);
}

static void refused(const char *tenant, const char *id, const char *group, const char *field,
		    const char *message)
{
	make(tenant, id, group, SKV_E_QUOTA);
	assert_string_equal(e.err.field, field);
	assert_string_equal(e.err.message, message);
}

static void has(const char *tenant, uint64_t instances, uint64_t spaces)
{
	struct skv_tenant_use use;

	skv_cluster_tenant_use(e.cluster, tenant, &use);
	assert_int_equal(use.instances, instances);
	assert_int_equal(use.spaces, spaces);
}

static void test_tenants_have_a_number(void **state)
{
	char id[16];

	(void)state;
	limit();
	assert_int_equal(env_group(&e, "g", 0, "s"), SKV_OK);
	assert_int_equal(env_group(&e, "pages:t:1", 0, "s"), SKV_OK);
	assert_int_equal(env_group(&e, "pages:t:2", 0, "s"), SKV_OK);
	for (int i = 0; i < 3; i++) {
		snprintf(id, sizeof id, "i%d", i);
		make("t", id, "g", SKV_OK);
	}
	refused("t", "i3", "g", "max_instances", "tenant 't' has 3 instances, the most");
	make("t", "i2", "g", SKV_OK); /* the instance exists already */
	make("t", "1", "pages:t:1", SKV_OK);
	make("t", "2", "pages:t:2", SKV_OK);
	refused("t", "3", "pages:t:2", "max_spaces", "tenant 't' has 2 page spaces, the most");
	make("few", "i0", "g", SKV_OK);
	refused("few", "i1", "g", "max_instances", "tenant 'few' has 1 instances, the most");
	for (int i = 0; i < 20; i++) {
		snprintf(id, sizeof id, "i%d", i);
		make("operator", id, "g", SKV_OK);
	}
	for (int round = 0; round < 2; round++) {
		has("t", 3, 2);
		has("few", 1, 0);
		has("operator", 20, 0);
		refused("t", "i3", "g", "max_instances", "tenant 't' has 3 instances, the most");
		env_crash(&e);
		env_open(&e);
		limit();
	}
	assert_int_equal(skv_cluster_instance_delete(e.cluster, "t", "i0", NULL, &e.err), SKV_OK);
	has("t", 2, 2);
	make("t", "i3", "g", SKV_OK);
	has("t", 3, 2);
}

/* Copies in a fast tier are no registrations of the tenant's. */
static void test_copies_do_not_count(void **state)
{
	const char *const storages[] = { "s" };
	const struct skv_group_spec fast = { .name = "fast", .storages = storages, .n_storages = 1,
					     .tier_of = "g", .extra = "", .policy = "" };

	(void)state;
	limit();
	assert_int_equal(env_group(&e, "g", 0, "s"), SKV_OK);
	make("t", "i0", "g", SKV_OK);
	make("t", "i1", "g", SKV_OK);
	assert_int_equal(skv_cluster_group_put(e.cluster, &fast, SKV_PUT_NEW, NULL, NULL, &e.err),
			 SKV_OK);
	make("t", "i2", "g", SKV_OK);
	has("t", 3, 0);
	refused("t", "i3", "g", "max_instances", "tenant 't' has 3 instances, the most");
	assert_int_equal(skv_cluster_instance_delete(e.cluster, "t", "i2", NULL, &e.err), SKV_OK);
	has("t", 2, 0);
}

int main(void)
{
#define SCENE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		SCENE(test_found_by_name_and_number),
		SCENE(test_one_costs_as_much_as_alone),
		SCENE(test_pages),
		SCENE(test_pages_of_a_tenant),
		SCENE(test_tenants_have_a_number),
		SCENE(test_copies_do_not_count),
	};

	env_quiet();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
