/*
 * test_core_partitions.c - several cores of one process, each with a partition of one store, in one
 * slab directory: what is named by the partition, what is apart, that each has
 * an owner of its own.
 *
 * Cores without threads on one SQLite file, one clock, a real directory.
 */
#include "core_env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lock/one.h>
#include <model/rules.h>

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
	struct tenant_rules *rules;
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
		one_tick(s->core[i]);
}

static bool all_ready(const struct scene *s)
{
	bool all = true;

	for (uint32_t i = 0; i < N; i++)
		all &= one_state_get(s->core[i]) == SKV_CORE_READY;
	return all;
}

static void open_all(struct scene *s)
{
	struct skv_store_options so = { .path = s->path, .durability = SKV_DURABILITY_FULL,
					.clock = &s->e.clock.clock };

	assert_int_equal(skv_store_open(s->ops, &so, &s->base, &s->e.err), SKV_OK);
	s->rules = rules_make();
	for (uint32_t i = 0; i < N; i++) {
		const struct one_place at = { .number = i, .shares = true, .rules = s->rules };

		s->view[i] = s->base;
		if (i)
			assert_int_equal(skv_store_partition(s->base, i, "secret", &s->view[i],
							     &s->e.err),
					 SKV_OK);
		s->o[i] = s->e.o;
		s->o[i].store = s->view[i];
		s->o[i].owner_lease_ms = 1000;
		assert_int_equal(one_create(&s->o[i], &at, &s->core[i], &s->e.err), SKV_OK);
	}
	for (int i = 0; i < 20 && !all_ready(s); i++)
		tick(s);
	assert_true(all_ready(s));
}

static void close_all(struct scene *s, bool clean)
{
	for (uint32_t i = N; i-- > 0;) {
		if (clean)
			one_shutdown(s->core[i]);
		one_destroy(s->core[i]);
		s->core[i] = NULL;
	}
	rules_free(s->rules);
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
	assert_int_equal(one_storage_put(e->core, &d, SKV_PUT_ANY, NULL, &e->err), SKV_OK);
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
			secret = *one_secret(s->core[i]);
		}
		assert_string_equal(st.storages[0].uuid, uuid);
		assert_memory_equal(one_secret(s->core[i]), &secret, sizeof secret);
	}
	for (uint32_t i = 0; i < N; i++)
		check_places(s, i);
	/* The partitions' names in the directory do not disturb each other: several looks later. */
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

/* Without the first one, and all of them. */
static void each_is_given_up_alone(void **state)
{
	struct scene *s = *state;
	char holder[192];
	uint64_t fence;

	open_all(s);
	for (uint32_t i = 0; i < N; i++)
		make(s, i);
	for (uint32_t i = 0; i < N; i++) {
		assert_int_equal(one_demote(s->core[i], 3000, &s->e.err), SKV_OK);
		tick(s);
		for (uint32_t k = 0; k < N; k++)
			assert_int_equal(one_state_get(s->core[k]),
					 k <= i ? SKV_CORE_STANDBY : SKV_CORE_READY);
	}
	for (int i = 0; i < 4; i++) {
		skv_fake_clock_advance(&s->e.clock, 400);
		tick(s);
	}
	for (uint32_t i = 0; i < N; i++) {
		assert_int_equal(one_state_get(s->core[i]), SKV_CORE_STANDBY);
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

/* A partition that leaves takes its files along; the marker goes with the last, which is number
 * 0. */
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

		assert_int_equal(one_instance_delete(e->core, "t", "i", NULL, &e->err), SKV_OK);
		assert_int_equal(one_group_delete(e->core, "g", &e->err), SKV_OK);
		shell(s->top, "test -e %s/slabs/slabkv-storage");
		for (int n = 0; n < 20; n++) {
			skv_fake_clock_advance(&s->e.clock, 1000);
			tick(s);
		}
		assert_int_equal(one_storage_delete(e->core, "s", &e->err), SKV_OK);
		if (i)
			check_places(s, i - 1);
	}
	shell(s->top, "test -z \"$(ls %s/slabs)\"");
	close_all(s, true);
}

/* ---- a tenant in several of them ------------------------------------------------------------- */

static void limit(struct scene *s, const struct skv_tenant_spec *spec)
{
	static const struct skv_tenant_spec nothing;
	const struct skv_tenant_view v = { .name = "t", .spec = *spec };

	assert_int_equal(rules_set(s->rules, &v, 1, &nothing), SKV_OK);
}

static struct skv_tenant_use use(struct scene *s)
{
	const struct tenant_rule *r = rules_find(s->rules, "t");

	return (struct skv_tenant_use){ .bytes = rule_sum(r, TENANT_BYTES),
					.blocks = rule_sum(r, TENANT_BLOCKS),
					.sessions = rule_sum(r, TENANT_SESSIONS),
					.pins = rule_sum(r, TENANT_PINS) };
}

static uint64_t blocks(struct scene *s, uint32_t i)
{
	struct skv_stats st;

	env_stats(at(s, i), &st);
	return st.blocks;
}

/* n blocks from this number on, in partition i. */
static int put(struct scene *s, uint32_t i, uint32_t from, uint32_t n)
{
	struct skv_key k[KEYS];
	struct skv_start_res r;
	struct skv_finish_res f;
	int rc;

	env_keys(k, n, 7, i * 1000 + from);
	rc = env_start(at(s, i), &(struct env_start){ .keys = k, .n = n, .independent = true }, &r);
	return rc == SKV_OK ? env_finish(at(s, i), r.session, NULL, 0, &f) : rc;
}

static void begin_with_tenant(struct scene *s)
{
	open_all(s);
	for (uint32_t i = 0; i < N; i++)
		make(s, i);
}

/* 40 and 20 blocks of 60: what is in one counts in all, and only its own starts evict it. */
static void blocks_of_a_tenant(void **state)
{
	const struct skv_tenant_spec most = { .max_blocks = 60 };
	struct scene *s = *state;
	uint32_t deleted;
	struct skv_key k[8];

	begin_with_tenant(s);
	limit(s, &most);
	assert_int_equal(put(s, 0, 0, 40), SKV_OK);
	assert_int_equal(put(s, 1, 0, 16), SKV_OK);
	assert_int_equal(put(s, 1, 100, 8), SKV_OK);
	assert_int_equal(blocks(s, 0), 40);
	assert_int_equal(blocks(s, 1), 20);
	assert_int_equal(use(s).blocks, 60);
	assert_int_equal(put(s, 2, 0, 1), SKV_E_QUOTA);
	assert_string_equal(s->e.err.field, "max_blocks");
	assert_non_null(strstr(s->e.err.message, "has 60 of the 60"));
	assert_non_null(strstr(s->e.err.message, "in another partition (60)"));
	assert_int_equal(put(s, 1, 200, 21), SKV_E_QUOTA); /* more than is left to it */
	assert_int_equal(put(s, 0, 100, 8), SKV_OK);
	assert_int_equal(blocks(s, 0), 40);
	env_keys(k, 8, 7, 100);
	assert_int_equal(env_delete(at(s, 0), k, 8, &deleted), SKV_OK);
	assert_int_equal(deleted, 8);
	assert_int_equal(put(s, 2, 0, 8), SKV_OK);
	assert_int_equal(use(s).blocks, 60);
	/* counted again when they are loaded */
	close_all(s, false);
	open_all(s);
	assert_int_equal(use(s).blocks, 60);
	limit(s, &most);
	assert_int_equal(put(s, 2, 100, 8), SKV_OK);
	assert_int_equal(blocks(s, 2), 8);
	limit(s, &(struct skv_tenant_spec){ .max_blocks = 0 });
	assert_int_equal(put(s, 2, 200, 8), SKV_OK);
	assert_int_equal(use(s).blocks, 68);
	for (uint32_t i = 0; i < N; i++)
		env_check(at(s, i));
	close_all(s, true);
}

static void bytes_of_a_tenant(void **state)
{
	struct scene *s = *state;

	begin_with_tenant(s);
	limit(s, &(struct skv_tenant_spec){ .max_bytes = 40ull * BLOCK });
	assert_int_equal(put(s, 0, 0, 30), SKV_OK);
	assert_int_equal(put(s, 1, 0, 10), SKV_OK);
	assert_int_equal(put(s, 1, 100, 8), SKV_OK);
	assert_int_equal(use(s).bytes, 40ull * BLOCK);
	assert_int_equal(blocks(s, 0), 30);
	assert_int_equal(blocks(s, 1), 10);
	assert_int_equal(put(s, 2, 0, 1), SKV_E_QUOTA);
	assert_string_equal(s->e.err.field, "max_bytes");
	assert_non_null(strstr(s->e.err.message, "in another partition"));
	close_all(s, true);
}

static void sessions_and_pins_of_a_tenant(void **state)
{
	struct scene *s = *state;
	struct skv_start_res r;
	struct skv_finish_res f;
	struct skv_pin_res pinned;
	struct skv_key k[KEYS];
	char first[SKV_SESSION_ID_HEX + 1];

	begin_with_tenant(s);
	limit(s, &(struct skv_tenant_spec){ .max_sessions = 2, .max_pins = 5 });
	for (uint32_t i = 0; i < N; i++) {
		env_keys(k, 8, 7, i * 1000);
		assert_int_equal(env_start(at(s, i), &(struct env_start){ .keys = k, .n = 8 }, &r),
				 i < 2 ? SKV_OK : SKV_E_TOO_MANY);
		if (i == 0)
			memcpy(first, r.session, sizeof first);
	}
	assert_string_equal(s->e.err.field, "max_sessions");
	assert_int_equal(use(s).sessions, 2);
	assert_int_equal(env_finish(at(s, 0), first, NULL, 0, &f), SKV_OK);
	assert_int_equal(put(s, 2, 0, 8), SKV_OK);
	assert_int_equal(use(s).sessions, 1);

	env_keys(k, 8, 7, 0);
	assert_int_equal(env_pin(at(s, 0), k, 3, SKV_PIN_HARD, 0, &pinned), SKV_OK);
	env_keys(k, 8, 7, 2000);
	assert_int_equal(env_pin(at(s, 2), k, 3, SKV_PIN_SOFT, 9000, &pinned), SKV_E_QUOTA);
	assert_string_equal(s->e.err.field, "max_pins");
	assert_int_equal(env_pin(at(s, 2), k, 2, SKV_PIN_SOFT, 9000, &pinned), SKV_OK);
	assert_int_equal(use(s).pins, 5);
	/* a clear's pins count no more, at once */
	assert_int_equal(one_instance_delete(at(s, 0)->core, "t", "i", NULL, &s->e.err), SKV_OK);
	assert_int_equal(use(s).pins, 2);
	env_keys(k, 8, 7, 2000);
	assert_int_equal(env_pin(at(s, 2), k, 5, SKV_PIN_SOFT, 9000, &pinned), SKV_OK);
	for (uint32_t i = 0; i < N; i++)
		env_check(at(s, i));
	close_all(s, false);
}

/* A partition that was given up counts no more here. */
static void a_tenant_of_nobody(void **state)
{
	struct scene *s = *state;

	begin_with_tenant(s);
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(put(s, i, 0, 10), SKV_OK);
	assert_int_equal(use(s).blocks, 10 * N);
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(one_demote(s->core[i], 3000, &s->e.err), SKV_OK);
	for (int i = 0; i < 4; i++) {
		skv_fake_clock_advance(&s->e.clock, 400);
		tick(s);
	}
	assert_int_equal(use(s).blocks, 0);
	assert_int_equal(use(s).bytes, 0);
	for (int i = 0; i < 20 && !all_ready(s); i++) {
		skv_fake_clock_advance(&s->e.clock, 400);
		tick(s);
	}
	assert_true(all_ready(s));
	assert_int_equal(use(s).blocks, 10 * N);
	close_all(s, true);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest cases[] = {
		CASE(each_has_its_own),
		CASE(sessions_name_their_partition),
		CASE(each_is_given_up_alone),
		CASE(a_storage_goes),
		CASE(blocks_of_a_tenant),
		CASE(bytes_of_a_tenant),
		CASE(sessions_and_pins_of_a_tenant),
		CASE(a_tenant_of_nobody),
	};

	return cmocka_run_group_tests_name("partitions", cases, NULL, NULL);
}
