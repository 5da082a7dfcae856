/*
 * test_core_partitions.c - several cores of one process, each with a partition of one store, in one
 * slab directory: what is named by the partition, what is apart, who leads.
 *
 * Cores without threads on one SQLite file, one clock, a real directory.
 */
#include "core_env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shell.h>

#define N 3u
#define BLOCK 65536u
#define UNIT (1ull << 20)
#define KEYS 40u /* more than a slab has */

struct scene {
	char top[64], path[96];
	struct env e; /* of the partition in turn: clock, store, arena */
	struct skv_store *base, *view[N];
	struct skv_core *core[N];
	struct skv_core_options o[N];
	const struct skv_store_ops *ops;
};

static void shell(const char *top, const char *what)
{
	char text[256];

	snprintf(text, sizeof text, what, top);
	assert_int_equal(test_shell(text), 0);
}

static void tick(struct scene *s)
{
	for (uint32_t i = 0; i < N; i++)
		skv_core_tick(s->core[i]);
}

static bool all_ready(const struct scene *s)
{
	bool all = true;

	for (uint32_t i = 0; i < N; i++)
		all &= skv_core_state_get(s->core[i]) == SKV_CORE_READY;
	return all;
}

static void open_all(struct scene *s)
{
	struct skv_store_options so = { .path = s->path, .durability = SKV_DURABILITY_FULL,
					.clock = &s->e.clock.clock };

	assert_int_equal(skv_store_open(s->ops, &so, &s->base, &s->e.err), SKV_OK);
	for (uint32_t i = 0; i < N; i++) {
		s->view[i] = s->base;
		if (i)
			assert_int_equal(skv_store_partition(s->base, i, "secret", &s->view[i],
							     &s->e.err),
					 SKV_OK);
		s->o[i] = s->e.o;
		s->o[i].store = s->view[i];
		s->o[i].owner_lease_ms = 1000;
		s->o[i].partition = i;
		s->o[i].lead = i ? s->core[0] : NULL;
		assert_int_equal(skv_core_create(&s->o[i], &s->core[i], &s->e.err), SKV_OK);
	}
	for (int i = 0; i < 20 && !all_ready(s); i++)
		tick(s);
	assert_true(all_ready(s));
}

static void close_all(struct scene *s, bool clean)
{
	for (uint32_t i = N; i-- > 0;) {
		if (clean)
			skv_core_shutdown(s->core[i]);
		skv_core_destroy(s->core[i]);
		s->core[i] = NULL;
	}
	for (uint32_t i = N; i-- > 1;)
		skv_store_close(s->view[i]);
	skv_store_close(s->base);
	skv_fake_clock_advance(&s->e.clock, 1000);
}

/* The env's calls go to this partition. */
static struct env *at(struct scene *s, uint32_t i)
{
	s->e.core = s->core[i];
	s->e.store = s->view[i];
	return &s->e;
}

static int setup(void **state)
{
	struct scene *s = test_calloc(1, sizeof *s);

	env_quiet();
	env_init(&s->e);
	snprintf(s->top, sizeof s->top, "/tmp/skv-partitions-XXXXXX");
	assert_non_null(mkdtemp(s->top));
	snprintf(s->path, sizeof s->path, "%s/slabkv.db", s->top);
	s->ops = &skv_store_sqlite;
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	s->e.core = NULL;
	s->e.store = NULL;
	env_destroy(&s->e);
	shell(s->top, "rm -rf %s");
	test_free(s);
	return 0;
}

static void make(struct scene *s, uint32_t i)
{
	char root[96];
	const struct skv_spec spec = { "kv", BLOCK };
	struct skv_storage_spec d = { .name = "s", .type = "file", .root = root,
				      .capacity = 8 * UNIT, .unit = UNIT, .file_size = 2 * UNIT,
				      .enabled = true };
	struct env *e = at(s, i);

	snprintf(root, sizeof root, "%s/slabs", s->top);
	assert_int_equal(skv_core_storage_put(e->core, &d, NULL, &e->err), SKV_OK);
	assert_int_equal(env_group(e, "g", 0, "s"), SKV_OK);
	assert_int_equal(env_instance(e, "i", "g", &spec, 1), SKV_OK);
}

static void keys_of(struct skv_key *k, uint32_t i) { env_keys(k, KEYS, 7, i * 1000); }

/* Where the blocks of partition i lie: only in files that name it. */
static void check_places(struct scene *s, uint32_t i)
{
	struct skv_key k[KEYS];
	struct skv_lookup_res r;
	struct env *e = at(s, i);

	keys_of(k, i);
	assert_int_equal(env_lookup(e, k, KEYS, SKV_LOOKUP_BATCH, 100, &r), SKV_OK);
	assert_int_equal(r.matched, KEYS);
	assert_true(r.files.n >= 2);
	for (uint32_t f = 0; f < r.files.n; f++) {
		unsigned number;

		assert_int_equal(sscanf(r.files.v[f].path, "slab-%u.kvs", &number), 1);
		assert_int_equal(number >> 24, i);
	}
	keys_of(k, (i + 1) % N);
	assert_int_equal(env_match(e, k, KEYS), 0);
	env_check(e);
}

static void each_has_its_own(void **state)
{
	struct scene *s = *state;
	char uuid[37] = "";
	struct skv_secret secret = { 0 };

	open_all(s);
	for (uint32_t i = 0; i < N; i++)
		make(s, i);
	for (uint32_t i = 0; i < N; i++) {
		struct skv_key k[KEYS];
		struct skv_stats st;

		keys_of(k, i);
		assert_int_equal(env_put(at(s, i), k, KEYS), KEYS);
		env_stats(at(s, i), &st);
		assert_int_equal(st.blocks, KEYS);
		/* clients know one directory, and one way to hash keys */
		if (i == 0) {
			memcpy(uuid, st.storages[0].uuid, sizeof uuid);
			secret = *skv_core_secret(s->core[i]);
		}
		assert_string_equal(st.storages[0].uuid, uuid);
		assert_memory_equal(skv_core_secret(s->core[i]), &secret, sizeof secret);
	}
	for (uint32_t i = 0; i < N; i++)
		check_places(s, i);
	/* Their names in the directory do not disturb each other: several looks later. */
	for (int i = 0; i < 5; i++) {
		skv_fake_clock_advance(&s->e.clock, 300);
		tick(s);
	}
	assert_true(all_ready(s));
	for (int clean = 0; clean < 2; clean++) {
		close_all(s, clean);
		open_all(s);
		for (uint32_t i = 0; i < N; i++)
			check_places(s, i);
	}
	close_all(s, true);
}

static void sessions_name_their_partition(void **state)
{
	struct scene *s = *state;

	open_all(s);
	for (uint32_t i = 0; i < N; i++) {
		struct skv_key k[KEYS];
		struct skv_start_res r;
		struct skv_finish_res f;
		char id[SKV_SESSION_ID_HEX + 1];

		make(s, i);
		keys_of(k, i);
		assert_int_equal(
			env_start(at(s, i), &(struct env_start){ .keys = k, .n = 4 }, &r), SKV_OK);
		memcpy(id, r.session, sizeof id);
		assert_int_equal(skv_session_partition(id), i);
		assert_int_equal(env_finish(at(s, (i + 1) % N), id, NULL, 0, &f), SKV_E_NOT_FOUND);
		assert_int_equal(env_finish(at(s, i), id, NULL, 0, &f), SKV_OK);
		assert_int_equal(f.committed, 4);
	}
	assert_true(skv_session_partition("no id") == UINT32_MAX);
	close_all(s, true);
}

/* The others are taken after the first, and given up with it. */
static void the_first_leads(void **state)
{
	struct scene *s = *state;
	char holder[192];
	uint64_t fence;

	open_all(s);
	for (uint32_t i = 0; i < N; i++)
		make(s, i);
	assert_int_equal(skv_core_demote(s->core[0], 3000, &s->e.err), SKV_OK);
	for (int i = 0; i < 4; i++) {
		skv_fake_clock_advance(&s->e.clock, 400);
		tick(s);
	}
	for (uint32_t i = 0; i < N; i++) {
		assert_int_equal(skv_core_state_get(s->core[i]), SKV_CORE_STANDBY);
		/* another manager can have them */
		assert_int_equal(skv_store_acquire(s->view[i], 0, "other", 0, &fence, holder,
						   sizeof holder, &s->e.err),
				 SKV_OK);
	}
	for (int i = 0; i < 20 && !all_ready(s); i++) {
		skv_fake_clock_advance(&s->e.clock, 400);
		tick(s);
	}
	assert_true(all_ready(s));
	close_all(s, true);
}

/* One that leaves takes its files along; the marker goes with the last, which is number 0. */
static void a_storage_goes(void **state)
{
	struct scene *s = *state;

	open_all(s);
	for (uint32_t i = 0; i < N; i++) {
		struct skv_key k[KEYS];

		make(s, i);
		keys_of(k, i);
		assert_int_equal(env_put(at(s, i), k, KEYS), KEYS);
	}
	for (uint32_t i = N; i-- > 0;) {
		struct env *e = at(s, i);

		assert_int_equal(skv_core_instance_delete(e->core, "t", "i", &e->err), SKV_OK);
		assert_int_equal(skv_core_group_delete(e->core, "g", &e->err), SKV_OK);
		shell(s->top, "test -e %s/slabs/slabkv-storage");
		for (int n = 0; n < 20; n++) {
			skv_fake_clock_advance(&s->e.clock, 1000);
			tick(s);
		}
		assert_int_equal(skv_core_storage_delete(e->core, "s", &e->err), SKV_OK);
		if (i)
			check_places(s, i - 1);
	}
	shell(s->top, "test -z \"$(ls %s/slabs)\"");
	close_all(s, true);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest cases[] = {
		CASE(each_has_its_own),
		CASE(sessions_name_their_partition),
		CASE(the_first_leads),
		CASE(a_storage_goes),
	};

	return cmocka_run_group_tests_name("partitions", cases, NULL, NULL);
}
