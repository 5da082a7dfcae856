/*
 * test_core_storages.c - as many storages as there may be: made, used, loaded again, evicted from
 * and deleted one by one, each with a group and an instance of its own, as page volumes are; and
 * one group over all of them.
 */
#include "core_env.h"

#include <stdio.h>
#include <string.h>

#define BLOCK 65536u
#define UNIT (1ull << 20)
#define SLOTS 15u /* of a file of one unit */
#define MANY 200u
#define MOST 256u

static struct env e;

static int setup(void **state)
{
	(void)state;
	env_quiet();
	env_init(&e);
	e.o.free_percent = 0;
	env_open(&e);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	env_check(&e);
	env_destroy(&e);
	return 0;
}

static const char *name(uint32_t i)
{
	static char text[4][16];
	static unsigned turn;

	snprintf(text[++turn % 4], 16, "s%u", i);
	return text[turn % 4];
}

static void make(uint32_t i)
{
	const struct skv_spec spec = { "page", BLOCK };

	assert_int_equal(env_storage(&e, name(i), UNIT, UNIT), SKV_OK);
	assert_int_equal(env_group(&e, name(i), 0, name(i)), SKV_OK);
	assert_int_equal(env_instance(&e, name(i), name(i), &spec, 1), SKV_OK);
}

static void make_many(void)
{
	for (uint32_t i = 0; i < MANY; i++)
		make(i);
}

/* n blocks {i, first...} into instance `id`. */
static void put(const char *id, uint32_t i, uint32_t first, uint32_t n)
{
	struct skv_key keys[SLOTS];
	struct skv_start_res s;
	struct skv_finish_res f;
	char session[SKV_SESSION_ID_HEX + 1];

	env_keys(keys, n, i, first);
	assert_int_equal(env_start(&e, &(struct env_start){ .instance = id, .keys = keys, .n = n },
				   &s), SKV_OK);
	assert_int_equal(s.n_write, n);
	memcpy(session, s.session, sizeof session);
	assert_int_equal(env_finish(&e, session, NULL, 0, &f), SKV_OK);
}

static uint32_t found(const char *id, uint32_t i, uint32_t first, uint32_t n, bool skip_disabled,
		      struct skv_lookup_res *res)
{
	struct skv_key keys[SLOTS];
	struct skv_lookup_req req = { .tenant = "t", .instance = id, .mode = SKV_LOOKUP_BATCH,
				      .keys = keys, .n_keys = n,
				      .skip_disabled = skip_disabled };

	env_keys(keys, n, i, first);
	assert_int_equal(env_lookup_req(&e, &req, res), SKV_OK);
	return res->matched;
}

static void made_used_and_loaded_again(void **state)
{
	struct skv_lookup_res res;

	(void)state;
	make_many();
	for (uint32_t i = 0; i < MANY; i++)
		put(name(i), i, 0, 4);
	env_crash(&e);
	env_open(&e);
	for (uint32_t i = 0; i < MANY; i++) {
		assert_int_equal(found(name(i), i, 0, 4, false, &res), 4);
		assert_int_equal(res.files.n, 1);
		assert_string_equal(res.files.v[0].storage, name(i));
	}
	env_shutdown(&e); /* from a checkpoint */
	env_open(&e);
	for (uint32_t i = 0; i < MANY; i++)
		assert_int_equal(found(name(i), i, 0, 4, false, &res), 4);
}

static void each_evicts_from_its_own(void **state)
{
	struct skv_lookup_res res;

	(void)state;
	make_many();
	for (uint32_t i = 0; i < MANY; i++)
		put(name(i), i, 0, SLOTS);
	put(name(150), 150, SLOTS, 5);
	assert_int_equal(found(name(150), 150, 0, SLOTS, false, &res), SLOTS - 5);
	assert_int_equal(found(name(150), 150, SLOTS, 5, false, &res), 5);
	for (uint32_t i = 0; i < MANY; i++)
		if (i != 150)
			assert_int_equal(found(name(i), i, 0, SLOTS, false, &res), SLOTS);
}

static void a_disabled_one_is_a_miss_of_its_own(void **state)
{
	struct skv_storage_spec s = { .name = "s170", .type = "null", .root = "", .capacity = UNIT,
				      .unit = UNIT,
				      .file_size = 16 * UNIT };
	struct skv_lookup_res res;

	(void)state;
	make_many();
	for (uint32_t i = 0; i < MANY; i++)
		put(name(i), i, 0, 2);
	assert_int_equal(skv_cluster_storage_put(e.cluster, &s, SKV_PUT_ANY, NULL, &e.err), SKV_OK);
	for (uint32_t i = 0; i < MANY; i++)
		assert_int_equal(found(name(i), i, 0, 2, true, &res), i == 170 ? 0 : 2);
}

/* A group over all: its line counts what is in any of them, and its starts go on to
 * the next one that has room. */
static void one_group_over_all(void **state)
{
	const struct skv_spec spec = { "page", BLOCK };
	const char *names[MANY];
	char text[MANY][16];
	struct skv_group_spec g = { .name = "all", .storages = names, .n_storages = MANY };
	struct skv_lookup_res res;
	uint32_t left = 0;

	(void)state;
	for (uint32_t i = 0; i < MANY; i++) {
		assert_int_equal(env_storage(&e, name(i), UNIT, UNIT), SKV_OK);
		snprintf(text[i], sizeof text[i], "s%u", i);
		names[i] = text[i];
	}
	assert_int_equal(skv_cluster_group_put(e.cluster, &g, SKV_PUT_ANY, NULL, NULL, &e.err),
			 SKV_OK);
	assert_int_equal(env_instance(&e, "wide", "all", &spec, 1), SKV_OK);
	for (uint32_t i = 0; i < MANY; i++)
		put("wide", i, 0, SLOTS);
	assert_int_equal(found("wide", MANY - 1, 0, 1, false, &res), 1);
	assert_string_equal(res.files.v[0].storage, name(MANY - 1));
	g.capacity = (uint64_t)(MANY - 1) * SLOTS * BLOCK; /* the oldest 15 are too many */
	assert_int_equal(skv_cluster_group_put(e.cluster, &g, SKV_PUT_ANY, NULL, NULL, &e.err),
			 SKV_OK);
	for (unsigned t = 0; t < 20; t++)
		env_advance(&e, 20);
	assert_int_equal(found("wide", 0, 0, SLOTS, false, &res), 0);
	for (uint32_t i = 1; i < MANY; i++)
		left += found("wide", i, 0, SLOTS, false, &res);
	assert_int_equal(left, (MANY - 1) * SLOTS);
}

static void no_more_than_the_most(void **state)
{
	const struct skv_spec spec = { "page", BLOCK };

	(void)state;
	for (uint32_t i = 0; i < MOST; i++)
		assert_int_equal(env_storage(&e, name(i), UNIT, UNIT), SKV_OK);
	assert_int_equal(env_storage(&e, "more", UNIT, UNIT), SKV_E_TOO_MANY);
	skv_error_clear(&e.err);
	assert_int_equal(skv_cluster_storage_delete(e.cluster, "s255", &e.err), SKV_OK);
	assert_int_equal(skv_cluster_storage_delete(e.cluster, "s100", &e.err), SKV_OK);
	assert_int_equal(env_storage(&e, "more", UNIT, UNIT), SKV_OK);
	assert_int_equal(env_storage(&e, "and-more", UNIT, UNIT), SKV_OK);
	assert_int_equal(env_storage(&e, "too-many", UNIT, UNIT), SKV_E_TOO_MANY);
	skv_error_clear(&e.err);
	assert_int_equal(env_group(&e, "g", 0, "and-more"), SKV_OK);
	assert_int_equal(env_instance(&e, "i", "g", &spec, 1), SKV_OK);
	put("i", 0, 0, SLOTS);
	env_crash(&e);
	env_open(&e);
	put("i", 1, 0, SLOTS);
}

/* A start takes no slots of the storages that it names, and does not wait for others if there are
 * none. */
static void a_start_avoids_some(void **state)
{
	static const char *const names[] = { "a", "b", "c" };
	const struct skv_spec spec = { "page", BLOCK };
	const struct skv_group_spec g = { .name = "g", .storages = names, .n_storages = 3 };
	struct skv_start_res res;

	(void)state;
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(env_storage(&e, names[i], UNIT, UNIT), SKV_OK);
	assert_int_equal(skv_cluster_group_put(e.cluster, &g, SKV_PUT_ANY, NULL, NULL, &e.err),
			 SKV_OK);
	assert_int_equal(env_instance(&e, "i", "g", &spec, 1), SKV_OK);
	env_advance(&e, 100);
	for (uint32_t n = 0; n <= 3; n++) {
		const struct skv_key key = { 1, n };
		const struct env_start s = { .keys = &key, .n = 1, .avoid = names, .n_avoid = n };

		assert_int_equal(env_start(&e, &s, &res), n < 3 ? SKV_OK : SKV_E_UNAVAILABLE);
		if (n < 3)
			assert_string_equal(res.files.v[res.loc[0].file].storage, names[n]);
	}
	assert_non_null(strstr(e.err.message, "but for those to avoid"));
	skv_error_clear(&e.err);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(made_used_and_loaded_again, setup, teardown),
		cmocka_unit_test_setup_teardown(each_evicts_from_its_own, setup, teardown),
		cmocka_unit_test_setup_teardown(a_disabled_one_is_a_miss_of_its_own, setup,
						teardown),
		cmocka_unit_test_setup_teardown(one_group_over_all, setup, teardown),
		cmocka_unit_test_setup_teardown(no_more_than_the_most, setup, teardown),
		cmocka_unit_test_setup_teardown(a_start_avoids_some, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
