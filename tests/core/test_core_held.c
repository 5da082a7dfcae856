/*
 * test_core_held.c - leases that keep slots and nothing else: a group that was just read has room,
 * and what its readers were told stays where it was.
 */
#include "core_env.h"

#include <string.h>

#define BLOCK 65536u
#define UNIT (1ull << 20)
#define IN_GROUP 16u
#define LEASE_MS 10000u

static struct env e;

static void put_group(const char *policy, uint64_t reclaim_blocks)
{
	static const char *const one[] = { "s" };
	const struct skv_group_spec g = { .name = "g", .storages = one, .n_storages = 1,
					  .extra = "", .policy = policy,
					  .capacity = IN_GROUP * BLOCK,
					  .reclaim_blocks = reclaim_blocks };

	assert_int_equal(skv_cluster_group_put(e.cluster, &g, SKV_PUT_ANY, NULL, NULL, &e.err),
			 SKV_OK);
}

static void make(const char *policy)
{
	const struct skv_spec spec = { "kv", BLOCK };

	env_quiet();
	env_init(&e);
	e.o.lease_max_ms = 60000;
	env_open(&e);
	assert_int_equal(env_storage(&e, "s", 64 * UNIT, UNIT), SKV_OK);
	put_group(policy, 0);
	assert_int_equal(env_instance(&e, "i", "g", &spec, 1), SKV_OK);
}

static void end(void)
{
	env_check(&e);
	env_destroy(&e);
}

static uint64_t now(void) { return skv_now_ms(&e.clock.clock); }

/* The answers that readers got. */
static struct told {
	uint64_t file, offset, until;
} told[4096];
static uint32_t n_told;

static uint64_t file_of(const struct skv_files *files, const struct skv_location *loc)
{
	const char *path = files->v[loc->file].path;

	return skv_checksum(path, strlen(path));
}

static uint32_t look(uint64_t hi, uint64_t first, uint32_t n, bool slots_only, uint32_t ms)
{
	struct skv_key key[IN_GROUP];
	struct skv_lookup_req q = { .tenant = "t", .instance = "i", .mode = SKV_LOOKUP_PREFIX,
				    .keys = key, .n_keys = n,
				    .lease_ms = ms, .only_leased = true, .slots_only = slots_only };
	struct skv_lookup_res r;

	env_keys(key, n, hi, first);
	assert_int_equal(env_lookup_req(&e, &q, &r), SKV_OK);
	for (uint32_t i = 0; i < r.matched; i++) {
		assert_true(n_told < sizeof told / sizeof told[0]);
		told[n_told++] = (struct told){ file_of(&r.files, &r.loc[i]), r.loc[i].offset,
						now() + r.lease_ms };
	}
	return r.matched;
}

/* Writes n blocks: SKV_OK, or why there is no room. None of their slots is promised to a reader. */
static int put(uint64_t hi, uint64_t first, uint32_t n)
{
	struct skv_key key[IN_GROUP];
	char session[SKV_SESSION_ID_HEX + 1];
	struct skv_start_res s;
	struct skv_finish_res f;
	int rc;

	env_keys(key, n, hi, first);
	rc = env_start(&e, &(struct env_start){ .keys = key, .n = n }, &s);
	if (rc != SKV_OK)
		return rc;
	assert_int_equal(s.n_write, n);
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t t = 0; t < n_told; t++)
			if (told[t].offset == s.loc[i].offset && told[t].until > now() &&
			    told[t].file == file_of(&s.files, &s.loc[i]))
				fail_msg("a slot is given away %llu ms before its readers are done",
					 (unsigned long long)(told[t].until - now()));
	memcpy(session, s.session, sizeof session);
	assert_int_equal(env_finish(&e, session, NULL, 0, &f), SKV_OK);
	return SKV_OK;
}

static uint64_t held(void)
{
	struct skv_stats st;

	env_stats(&e, &st);
	return st.storages[0].quarantined_bytes / BLOCK;
}

/* All of a group, as one chain. */
static void full(const char *policy)
{
	make(policy);
	n_told = 0;
	assert_int_equal(put(1, 0, IN_GROUP), SKV_OK);
}

static uint32_t there(uint64_t hi, uint32_t n)
{
	struct skv_key key[IN_GROUP];

	env_keys(key, n, hi, 0);
	return env_match(&e, key, n);
}

static void a_full_group_that_was_read_has_room(void **state)
{
	static const char *const policies[] = { "lru", "reuse", "s3fifo" };

	(void)state;
	for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
		full(policies[i]);
		assert_int_equal(look(1, 0, IN_GROUP, true, LEASE_MS), IN_GROUP);
		assert_int_equal(put(2, 0, 4), SKV_OK);
		assert_int_equal(there(2, 4), 4);
		assert_in_range(held(), 4, 5); /* a little is kept free */
		env_advance(&e, LEASE_MS + 50);
		assert_int_equal(held(), 0);
		end();
	}
}

/* The remaining blocks of a chain can be found. */
static void tails_go_first(void **state)
{
	(void)state;
	full("lru");
	assert_int_equal(look(1, 0, IN_GROUP, true, LEASE_MS), IN_GROUP);
	assert_int_equal(put(2, 0, 4), SKV_OK);
	assert_in_range(there(1, IN_GROUP), 11, 12);
	end();
}

/* By last use: what was written after the others were read stays. */
static void the_newest_stay(void **state)
{
	(void)state;
	full("lru");
	assert_int_equal(look(1, 0, IN_GROUP, true, LEASE_MS), IN_GROUP);
	for (uint64_t i = 0; i < 3; i++) {
		env_advance(&e, 100);
		assert_int_equal(put(2 + i, 0, 4), SKV_OK);
	}
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(there(2 + i, 4), 4);
	end();
}

/* Writers turn the group over many times while its readers read. */
static void what_was_told_stays_under_writers(void **state)
{
	struct skv_core_counters c;
	uint64_t most = 0;

	(void)state;
	full("lru");
	for (uint64_t i = 0; i < 200; i++) {
		assert_int_equal(put(2, i * 4, 4), SKV_OK);
		assert_int_equal(look(2, i * 4, 4, true, LEASE_MS), 4);
		env_advance(&e, 250);
		most = held() > most ? held() : most;
	}
	assert_true(most > 4 * IN_GROUP);
	skv_cluster_counters_get(e.cluster, &c);
	/* the storage has room for all of it, whatever the group has */
	assert_int_equal(c.lease_hidden, 0);
	end();
}

/* Slots are the storage's: where all are promised, writers wait. */
static void a_full_storage_waits_for_its_readers(void **state)
{
	uint32_t writes = 0;

	(void)state;
	full("lru");
	while (put(2, writes * 4, 4) == SKV_OK) {
		assert_int_equal(look(2, writes * 4, 4, true, 60000), 4);
		writes++;
		env_advance(&e, 10);
	}
	assert_in_range(writes, 100, 255);
	env_advance(&e, 60000);
	assert_int_equal(put(2, writes * 4, 4), SKV_OK);
	end();
}

/* A reader that asks again at another call needs the block, too. */
static void other_leases_keep_the_block(void **state)
{
	(void)state;
	for (int order = 0; order < 2; order++) {
		full("lru");
		assert_int_equal(look(1, 0, IN_GROUP, order == 0, 3 * LEASE_MS), IN_GROUP);
		assert_int_equal(look(1, 0, IN_GROUP, order == 1, LEASE_MS), IN_GROUP);
		assert_int_equal(put(2, 0, 4), SKV_E_QUOTA);
		assert_int_equal(there(1, IN_GROUP), IN_GROUP);
		env_advance(&e, order == 0 ? LEASE_MS : 3 * LEASE_MS);
		/* the other one runs on, if it was the longer */
		assert_int_equal(put(2, 0, 4), SKV_OK);
		assert_true(order == 0 ? held() >= 4 : held() == 0);
		end();
	}
}

/* A pin is a promise about the block. */
static void what_is_pinned_stays(void **state)
{
	struct skv_key key[IN_GROUP];
	struct skv_pin_res r;

	(void)state;
	full("lru");
	env_keys(key, 4, 1, 0);
	assert_int_equal(env_pin(&e, key, 4, SKV_PIN_HARD, 0, &r), SKV_OK);
	assert_int_equal(look(1, 0, IN_GROUP, true, LEASE_MS), IN_GROUP);
	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(put(2 + i, 0, 6), SKV_OK);
	assert_int_equal(there(1, IN_GROUP), 4);
	end();
}

/* A line that sinks below what is there. */
static void a_line_takes_what_was_read(void **state)
{
	(void)state;
	full("lru");
	assert_int_equal(look(1, 0, IN_GROUP, true, LEASE_MS), IN_GROUP);
	put_group("lru", 4);
	for (int i = 0; i < 20; i++)
		env_advance(&e, 20);
	assert_int_equal(there(1, IN_GROUP), 4);
	end();
}

static void a_kill_forgets_no_lease(void **state)
{
	(void)state;
	full("lru");
	assert_int_equal(look(1, 0, IN_GROUP, true, LEASE_MS), IN_GROUP);
	assert_int_equal(put(2, 0, 4), SKV_OK);
	env_crash(&e);
	env_open(&e);
	assert_true(held() >= 4);
	for (uint64_t i = 0; i < 60; i++) {
		put(3, i * 4, 4);
		env_advance(&e, 250);
	}
	assert_int_equal(put(4, 0, 4), SKV_OK);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_full_group_that_was_read_has_room),
		cmocka_unit_test(tails_go_first),
		cmocka_unit_test(the_newest_stay),
		cmocka_unit_test(what_was_told_stays_under_writers),
		cmocka_unit_test(a_full_storage_waits_for_its_readers),
		cmocka_unit_test(other_leases_keep_the_block),
		cmocka_unit_test(what_is_pinned_stays),
		cmocka_unit_test(a_line_takes_what_was_read),
		cmocka_unit_test(a_kill_forgets_no_lease),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
