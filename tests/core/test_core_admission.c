/*
 * test_core_admission.c - starts under policies that judge new blocks, where a working set is far
 * larger than the store: under `selective` which blocks get no slot, under `deferred` which stay.
 */
#include "core_env.h"

#include <string.h>

#define BLOCK 65536u
#define UNIT (1ull << 20)
#define ROOM 63u   /* blocks of the store: a slot is its superblock's, */
#define FITS 62u   /* and the last one its trailer's */
#define CHAINS 7u  /* the working set: nearly twice the room */
#define LENGTH 16u
#define ROUNDS 80u

static struct env e;

static const char *const storages[] = { "s" };

static int make(const char *policy)
{
	const struct skv_group_spec g = { .name = "g", .storages = storages, .n_storages = 1,
					  .policy = policy };

	env_quiet();
	env_init(&e);
	e.o.grace_ms = 0;
	env_open(&e);
	env_make(&e, (ROOM + 1) * BLOCK, UNIT, BLOCK);
	return skv_cluster_group_put(e.cluster, &g, SKV_PUT_ANY, NULL, NULL, &e.err);
}

static int setup(void **state)
{
	(void)state;
	return make("selective");
}

static int teardown(void **state)
{
	(void)state;
	env_check(&e);
	env_destroy(&e);
	return 0;
}

static uint32_t not_admitted(const struct skv_start_res *res)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < res->n_keys; i++)
		n += res->outcome[i] == SKV_START_NOT_ADMITTED;
	return n;
}

/* The written keys are the head of the requested ones. */
static void check_head(const struct skv_start_res *res)
{
	bool refused = false;

	for (uint32_t i = 0; i < res->n_keys; i++) {
		refused |= res->outcome[i] == SKV_START_NOT_ADMITTED;
		assert_false(refused && res->outcome[i] == SKV_START_WRITE);
	}
}

/* Looks the chain up and writes what is missing, as an engine does. Returns how many were there. */
static uint32_t use_chain(uint64_t chain, bool selective, uint32_t *refused)
{
	struct skv_key k[LENGTH];
	struct skv_lookup_res found;
	struct skv_start_res res;
	struct skv_finish_res done;
	char session[SKV_SESSION_ID_HEX + 1];
	uint32_t hits;

	env_keys(k, LENGTH, 1 + chain, 1);
	env_advance(&e, 10);
	assert_int_equal(env_lookup(&e, k, LENGTH, SKV_LOOKUP_PREFIX, 0, &found), SKV_OK);
	hits = found.matched;
	if (hits == LENGTH)
		return hits;
	assert_int_equal(env_start(&e, &(struct env_start){
		.keys = k + hits, .n = LENGTH - hits, .parent = hits ? k + hits - 1 : NULL,
		.selective = selective }, &res), SKV_OK);
	check_head(&res);
	*refused += not_admitted(&res);
	assert_int_equal(res.n_write + not_admitted(&res), LENGTH - hits);
	memcpy(session, res.session, sizeof session);
	if (res.n_write) /* else there is no session */
		assert_int_equal(env_finish(&e, session, NULL, 0, &done), SKV_OK);
	else
		assert_string_equal(session, "");
	return hits;
}

static uint32_t use_all(bool selective, uint32_t *refused)
{
	uint32_t hits = 0;

	for (uint32_t round = 0; round < ROUNDS; round++)
		for (uint64_t c = 0; c < CHAINS; c++)
			hits += use_chain(c, selective, refused);
	return hits;
}

/* Chains come round and round. Least recently used finds none of them; a part that stays is found
 * each time. */
static void part_of_a_working_set_stays(void **state)
{
	uint32_t refused = 0, hits = use_all(true, &refused);
	struct skv_core_counters n;

	(void)state;
	assert_true(hits > ROUNDS * CHAINS * LENGTH / 4);
	assert_true(refused > 0);
	skv_cluster_counters_get(e.cluster, &n);
	assert_int_equal(n.start_not_admitted, refused);
}

/* A caller that does not announce support for partial starts gets room for all. */
static void only_who_asks(void **state)
{
	uint32_t refused = 0;

	(void)state;
	assert_int_equal(use_all(false, &refused), 0); /* not one hit */
	assert_int_equal(refused, 0);
}

static void only_policies_that_admit(void **state)
{
	uint32_t refused = 0;

	(void)state;
	use_all(true, &refused);
	assert_int_equal(refused, 0);
}

/* A start that some blocks are refused of. */
static void start_refused(const char *id, struct skv_key *k, struct skv_start_res *res)
{
	for (uint64_t chain = 100;; chain++) {
		assert_true(chain < 1000);
		env_keys(k, LENGTH, chain, 1);
		assert_int_equal(env_start(&e, &(struct env_start){ .keys = k, .n = LENGTH,
			.request_id = id, .selective = true }, res), SKV_OK);
		if (not_admitted(res) && res->n_write)
			return;
		if (res->n_write)
			assert_int_equal(env_abort(&e, res->session, true), SKV_OK);
	}
}

/* Free slots are never refused, so it is the end of the chain that is. */
static void free_slots_are_used(void **state)
{
	uint32_t refused = 0, deleted;
	struct skv_key k[LENGTH];
	struct skv_start_res res;

	(void)state;
	use_all(true, &refused);
	for (uint64_t c = 0; c < CHAINS; c++) { /* leaves some slots free */
		env_keys(k, 1, 1 + c, LENGTH);
		env_delete(&e, k, 1, &deleted);
	}
	env_keys(k, 5, 1, 1);
	env_delete(&e, k, 5, &deleted);
	env_keys(k, LENGTH, 99, 1);
	assert_int_equal(env_start(&e, &(struct env_start){ .keys = k, .n = LENGTH,
							    .selective = true }, &res), SKV_OK);
	assert_true(res.n_write > 0);
	check_head(&res);
}

/* The same answer again, also of a manager that was killed meanwhile. */
static void repeated(void **state)
{
	uint32_t refused = 0, n_write, n_refused, deleted;
	struct skv_key k[LENGTH];
	struct skv_start_res res;
	uint8_t outcome[LENGTH];

	(void)state;
	use_all(true, &refused);
	for (uint64_t c = 0, free = 0; c < CHAINS && free < 3; c++, free += deleted) {
		env_keys(k, 1, 1 + c, 1);
		env_delete(&e, k, 1, &deleted);
	}
	start_refused("once", k, &res);
	n_write = res.n_write;
	n_refused = not_admitted(&res);
	memcpy(outcome, res.outcome, LENGTH);
	for (int kill = 0; kill < 2; kill++) {
		assert_int_equal(env_start(&e, &(struct env_start){ .keys = k, .n = LENGTH,
			.request_id = "once", .selective = true }, &res), SKV_OK);
		assert_int_equal(res.n_write, n_write);
		assert_int_equal(not_admitted(&res), n_refused);
		assert_memory_equal(res.outcome, outcome, LENGTH);
		/* another question */
		assert_int_equal(env_start(&e, &(struct env_start){ .keys = k, .n = LENGTH,
			.request_id = "once" }, &res), SKV_E_CONFLICT);
		env_crash(&e);
		env_open(&e);
	}
}

static void not_all_or_nothing(void **state)
{
	struct skv_key k[2];
	struct skv_start_res res;

	(void)state;
	env_keys(k, 2, 1, 1);
	assert_int_equal(env_start(&e, &(struct env_start){ .keys = k, .n = 2, .fit = true,
		.whole = true, .selective = true }, &res), SKV_E_UNSUPPORTED);
	assert_string_equal(e.err.field, "selective");
}

static int setup_lru(void **state)
{
	(void)state;
	return make("lru");
}

/* Writes `n` keys below `parent` (NULL = none). Returns how many were left out. */
static uint32_t write_keys(struct skv_key *k, uint32_t n, struct skv_key *parent, bool selective)
{
	struct skv_start_res res;
	struct skv_finish_res done;
	char session[SKV_SESSION_ID_HEX + 1];
	uint32_t left;

	env_advance(&e, 10);
	assert_int_equal(env_start(&e, &(struct env_start){ .keys = k, .n = n, .parent = parent,
		.selective = selective }, &res), SKV_OK);
	check_head(&res);
	left = not_admitted(&res);
	assert_int_equal(res.n_write + left, n);
	memcpy(session, res.session, sizeof session);
	assert_int_equal(env_finish(&e, session, NULL, 0, &done), SKV_OK);
	return left;
}

static uint32_t prefix(struct skv_key *k, uint32_t n)
{
	struct skv_lookup_res found;

	assert_int_equal(env_lookup(&e, k, n, SKV_LOOKUP_PREFIX, 0, &found), SKV_OK);
	return found.matched;
}

/* A chain that grows beyond the room evicts others, and not its own head: with `selective` its last
 * blocks are left out, without its tail goes, which is of the least use. */
static void a_chain_does_not_evict_its_head(void **state)
{
	static const char *const policies[] = { "lru", "reuse", "deferred", "selective", "s3fifo" };
	enum { HEAD = 40, OTHERS = FITS - HEAD, MORE = OTHERS + 7, ALL = HEAD + MORE };

	(void)state;
	for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
		for (int selective = 0; selective < 2; selective++) {
			struct skv_key k[ALL], other[OTHERS];

			assert_int_equal(make(policies[i]), SKV_OK);
			env_keys(k, ALL, 1, 1);
			env_keys(other, OTHERS, 2, 1);
			write_keys(k, HEAD, NULL, false);
			write_keys(other, OTHERS, NULL, false);
			assert_int_equal(prefix(k, ALL), HEAD);
			assert_int_equal(write_keys(k + HEAD, MORE, &k[HEAD - 1], selective),
					 selective ? 7 : 0);
			assert_int_equal(prefix(other, OTHERS), 0);
			if (selective)
				assert_int_equal(prefix(k, ALL), FITS);
			else if (strcmp(policies[i], "s3fifo") != 0)
				assert_int_equal(prefix(k, ALL), HEAD - 7);
			teardown(NULL);
		}
	}
}

/* A request that is larger than the store: its first blocks are stored. */
static void the_first_blocks_of_a_request_are_stored(void **state)
{
	struct skv_key k[FITS + 20];

	(void)state;
	env_keys(k, FITS + 20, 1, 1);
	assert_int_equal(write_keys(k, FITS + 20, NULL, true), 20);
	assert_int_equal(prefix(k, FITS + 20), FITS);
}

static int setup_deferred(void **state)
{
	(void)state;
	return make("deferred");
}

/* All blocks are stored, and a part of the working set stays once the policy has learned. */
static void a_part_stays_where_all_is_stored(void **state)
{
	uint32_t refused = 0;

	(void)state;
	use_all(true, &refused);
	assert_true(use_all(true, &refused) > ROUNDS * CHAINS * LENGTH / 4);
	assert_int_equal(refused, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(part_of_a_working_set_stays, setup, teardown),
		cmocka_unit_test_setup_teardown(a_part_stays_where_all_is_stored, setup_deferred,
						teardown),
		cmocka_unit_test_setup_teardown(only_who_asks, setup, teardown),
		cmocka_unit_test_setup_teardown(only_policies_that_admit, setup_lru, teardown),
		cmocka_unit_test(a_chain_does_not_evict_its_head),
		cmocka_unit_test_setup_teardown(the_first_blocks_of_a_request_are_stored, setup_lru,
						teardown),
		cmocka_unit_test_setup_teardown(free_slots_are_used, setup, teardown),
		cmocka_unit_test_setup_teardown(repeated, setup, teardown),
		cmocka_unit_test_setup_teardown(not_all_or_nothing, setup, teardown),
	};

	return cmocka_run_group_tests_name("core_admission", tests, NULL, NULL);
}
