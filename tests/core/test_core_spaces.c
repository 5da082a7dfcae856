/*
 * test_core_spaces.c - very many storages: slots name them, groups and instances use few
 * of them each; the limits.
 */
#include "core_env.h"

#include <stdio.h>
#include <string.h>

#include <skv/mem.h>

#include <model/block.h>
#include <model/partition.h>

#define SPACES 700u /* slots once named their storage in 8 bits */
#define PAGES 8u

static void name_of(char out[16], uint32_t i) { snprintf(out, 16, "s%06u", i); }

static int make_storage(struct env *e, uint32_t i)
{
	char name[16];
	struct skv_storage_spec s = { .name = name, .type = "external", .root = "",
				      .capacity = PAGES, .enabled = true };

	name_of(name, i);
	return skv_cluster_storage_put(e->cluster, &s, SKV_PUT_NEW, NULL, &e->err);
}

static int make_space(struct env *e, uint32_t i)
{
	static const struct skv_spec page = { "page", 1 };
	char name[16];
	int rc = make_storage(e, i);

	name_of(name, i);
	if (rc == SKV_OK)
		rc = env_group(e, name, 0, name);
	return rc == SKV_OK ? env_instance(e, name, name, &page, 1) : rc;
}

static uint32_t found(struct env *e, uint32_t i)
{
	char name[16];
	const char *id = name;
	struct skv_key k[PAGES];
	struct skv_match_res res;

	name_of(name, i);
	env_keys(k, PAGES, i + 1, 1);
	skv_arena_reset(&e->arena);
	assert_int_equal(skv_cluster_match(e->cluster,
					   &(struct skv_match_req){ .tenant = "t",
								    .instances = &id,
								    .n_instances = 1,
								    .keys = k,
								    .n_keys = PAGES },
					   &res, &e->arena, &e->err),
			 SKV_OK);
	return res.matched[0];
}

/* Three pages of volume i, whose keys begin with `first`. Returns how many were written. */
static uint32_t put(struct env *e, uint32_t i, uint64_t first)
{
	char name[16];
	struct skv_key k[3];
	struct skv_start_res res;
	struct skv_finish_res done;
	uint32_t n;

	name_of(name, i);
	env_keys(k, 3, i + 1, first);
	assert_int_equal(env_start(e, &(struct env_start){ .instance = name, .keys = k, .n = 3 },
				   &res), SKV_OK);
	n = res.n_write;
	for (uint32_t f = 0; f < res.files.n; f++)
		assert_string_equal(res.files.v[f].storage, name);
	if (n)
		assert_int_equal(env_finish(e, res.session, NULL, 0, &done), SKV_OK);
	return n;
}

static void delete_storage(struct env *e, uint32_t i)
{
	char name[16];

	name_of(name, i);
	assert_int_equal(skv_cluster_instance_delete(e->cluster, "t", name, NULL, &e->err), SKV_OK);
	for (int k = 0; k < 4; k++)
		env_advance(e, 1000);
	assert_int_equal(skv_cluster_group_delete(e->cluster, name, &e->err), SKV_OK);
	assert_int_equal(skv_cluster_storage_delete(e->cluster, name, &e->err), SKV_OK);
}

/* Each has its own pages, and none another's: also behind a restart, in the place of one that
 * was deleted, and when full. */
static void thousands_have_pages_of_their_own(void **state)
{
	struct env e;

	(void)state;
	env_init(&e);
	env_open(&e);
	for (uint32_t i = 0; i < SPACES; i++) {
		assert_int_equal(make_space(&e, i), SKV_OK);
		if (i % 7 == 0 || i > SPACES - 300)
			assert_int_equal(put(&e, i, 1), 3);
	}
	env_check(&e);
	for (int round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < SPACES; i++)
			assert_int_equal(found(&e, i), i % 7 == 0 || i > SPACES - 300 ? 3 : 0);
		env_check(&e);
		env_crash(&e);
		env_open(&e);
	}
	delete_storage(&e, 490);
	delete_storage(&e, SPACES - 1);
	assert_int_equal(make_space(&e, SPACES), SKV_OK); /* where 490 was */
	assert_int_equal(make_space(&e, SPACES + 1), SKV_OK);
	assert_int_equal(found(&e, SPACES), 0);
	assert_int_equal(put(&e, SPACES, 1), 3);
	/* existing blocks go, and none of the neighbours */
	for (uint64_t first = 4; first < 40; first += 3)
		assert_int_equal(put(&e, SPACES, first), 3);
	assert_int_equal(found(&e, 497), 3);
	assert_int_equal(found(&e, SPACES - 2), 3);
	env_check(&e);
	env_shutdown(&e);
	env_destroy(&e);
}

/* A tick looks at some hundreds of them: what others' reservations held comes back,
 * too, at one of the next. */
static void each_has_its_turn(void **state)
{
	struct env e;
	struct skv_key k[PAGES];
	struct skv_start_res res;
	char name[16];

	(void)state;
	env_init(&e);
	e.o.open_percent = 100;
	env_open(&e);
	for (uint32_t i = 0; i < SPACES; i++)
		assert_int_equal(make_space(&e, i), SKV_OK);
	for (uint32_t i = 0; i < SPACES; i += 60) {
		name_of(name, i);
		env_keys(k, PAGES, i + 1, 1);
		assert_int_equal(env_start(&e,
					   &(struct env_start){ .instance = name, .keys = k,
								.n = PAGES }, &res), SKV_OK);
		assert_int_equal(env_abort(&e, res.session, false), SKV_OK);
	}
	for (int i = 0; i < 30; i++)
		env_advance(&e, 30000);
	for (uint32_t i = 0; i < SPACES; i += 60) {
		struct skv_storage_view *v;

		name_of(name, i);
		assert_int_equal(skv_cluster_storage(e.cluster, name, &e.arena, &v, &e.err),
				 SKV_OK);
		assert_int_equal(v->quarantined_bytes, 0);
		assert_int_equal(put(&e, i, 1), 3);
	}
	env_check(&e);
	env_shutdown(&e);
	env_destroy(&e);
}

/* Of those with slab files there are fewer: each has threads. */
static void one_storage_with_files_too_many(void **state)
{
	struct env e;
	char name[16];

	(void)state;
	env_init(&e);
	env_open(&e);
	for (uint32_t i = 0; i < 256; i++) {
		name_of(name, i);
		assert_int_equal(env_storage(&e, name, 1 << 22, 1 << 20), SKV_OK);
	}
	assert_int_equal(env_storage(&e, "more", 1 << 22, 1 << 20), SKV_E_TOO_MANY);
	assert_string_equal(e.err.message, "256 storages with slab files at most");
	assert_int_equal(make_space(&e, 256), SKV_OK);
	assert_int_equal(put(&e, 256, 1), 3);
	env_check(&e);
	env_shutdown(&e);
	env_destroy(&e);
}

/* So many volumes, as if others had been there and were deleted. */
static void pretend(struct partition *p, uint32_t n)
{
	void *volume = p->volume;
	uint32_t had = p->n_volume;

	assert_int_equal(skv_grow(&volume, &p->cap_volume, n, sizeof *p->volume), SKV_OK);
	p->volume = volume;
	memset(p->volume + had, 0, (n - had) * sizeof *p->volume);
	p->n_volume = n;
}

/* As many as a slot can name; then one is refused, and nothing else. */
static void one_storage_too_many(void **state)
{
	struct partition *p;
	struct env e;

	(void)state;
	env_init(&e);
	env_open(&e);
	p = e.core->partition;
	assert_int_equal(make_space(&e, 0), SKV_OK);
	pretend(p, MAX_VOLUMES - 1);
	assert_int_equal(make_space(&e, 1), SKV_OK);
	assert_int_equal(put(&e, 1, 1), 3);
	assert_int_equal(p->volume[MAX_VOLUMES - 1].used_bytes, 3);
	assert_int_equal(make_storage(&e, 2), SKV_E_TOO_MANY);
	assert_string_equal(e.err.message, "131072 storages at most, page spaces included");
	assert_int_equal(put(&e, 0, 1), 3);
	assert_int_equal(found(&e, 1), 3);
	env_check(&e);
	p->n_gap = MAX_VOLUMES - 2;
	assert_int_equal(make_space(&e, 2), SKV_OK);
	assert_int_equal(put(&e, 2, 1), 3);
	assert_int_equal(p->n_gap, MAX_VOLUMES - 3);
	env_check(&e);
	env_crash(&e);
	env_open(&e);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(found(&e, i), 3);
	env_shutdown(&e);
	env_destroy(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(thousands_have_pages_of_their_own),
		cmocka_unit_test(each_has_its_turn),
		cmocka_unit_test(one_storage_with_files_too_many),
		cmocka_unit_test(one_storage_too_many),
	};

	env_quiet();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
