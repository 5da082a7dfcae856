/*
 * test_core.c - the core's behaviours one by one: what each law promises, in small scenes.
 */
#include "core_env.h"

#include <stdio.h>
#include <string.h>

#define KB 1024ull
#define MB (1024 * KB)

static int setup(void **state)
{
	static struct env e;

	env_init(&e);
	env_open(&e);
	env_make(&e, 4 * MB, 64 * KB, 4 * KB); /* 1024 slots less headers */
	*state = &e;
	return 0;
}

static int teardown(void **state)
{
	struct env *e = *state;

	if (e->core)
		env_check(e);
	env_destroy(e);
	return 0;
}

static void reopen(struct env *e)
{
	env_crash(e);
	env_open(e);
}

static void put_then_find(void **state)
{
	struct env *e = *state;
	struct skv_key k[10];
	struct skv_lookup_res r;

	env_keys(k, 10, 1, 1);
	assert_int_equal(env_match(e, k, 10), 0);
	assert_int_equal(env_put(e, k, 8), 8);
	assert_int_equal(env_match(e, k, 10), 8);
	assert_int_equal(env_lookup(e, k, 10, SKV_LOOKUP_PREFIX, SKV_LEASE_DEFAULT, &r), SKV_OK);
	assert_int_equal(r.matched, 8);
	assert_int_equal(r.n_specs, 1);
	assert_string_equal(r.specs[0], "kv");
	assert_true(r.lease_ms > 1900 && r.lease_ms <= 2000);
	assert_int_equal(r.files.n, 1);
	assert_string_equal(r.files.v[0].storage, "s");
	for (int i = 0; i < 8; i++) {
		assert_true(r.hit[i]);
		assert_int_equal(r.loc[i].length, 4 * KB);
		assert_int_equal(r.loc[i].offset % (4 * KB), 0);
		assert_true(r.loc[i].generation > 0);
	}
	for (int i = 1; i < 8; i++) /* a chain lies in neighbouring slots */
		assert_int_equal(r.loc[i].offset, r.loc[i - 1].offset + 4 * KB);
	assert_false(r.hit[8]);
}

static void batch_lookup_has_gaps(void **state)
{
	struct env *e = *state;
	struct skv_key k[5];
	struct skv_lookup_res r;

	env_keys(k, 5, 1, 1);
	env_put(e, &k[1], 1);
	env_put(e, &k[3], 1);
	assert_int_equal(env_lookup(e, k, 5, SKV_LOOKUP_BATCH, 0, &r), SKV_OK);
	assert_int_equal(r.matched, 2);
	assert_int_equal(r.lease_ms, 0);
	assert_true(!r.hit[0] && r.hit[1] && !r.hit[2] && r.hit[3] && !r.hit[4]);
	assert_int_equal(env_lookup(e, k, 5, SKV_LOOKUP_PREFIX, 0, &r), SKV_OK);
	assert_int_equal(r.matched, 0);
}

static void open_blocks_are_a_miss_and_busy(void **state)
{
	struct env *e = *state;
	struct skv_key k[4];
	struct skv_start_res a, b;
	struct skv_finish_res f;
	char session[33];

	env_keys(k, 4, 1, 1);
	assert_int_equal(env_start(e, &(struct env_start){ .keys = k, .n = 3 }, &a), SKV_OK);
	memcpy(session, a.session, sizeof session);
	assert_int_equal(a.n_write, 3);
	assert_int_equal(env_match(e, k, 4), 0);
	assert_int_equal(env_start(e, &(struct env_start){ .keys = k, .n = 4 }, &b), SKV_OK);
	assert_int_equal(b.n_write, 1);
	assert_int_equal(b.outcome[0], SKV_START_BUSY);
	assert_int_equal(b.outcome[2], SKV_START_BUSY);
	assert_int_equal(b.outcome[3], SKV_START_WRITE);
	assert_int_equal(env_finish(e, session, NULL, 0, &f), SKV_OK);
	assert_int_equal(env_match(e, k, 4), 3);
	assert_int_equal(env_start(e, &(struct env_start){ .keys = k, .n = 3 }, &b), SKV_OK);
	assert_int_equal(b.n_write, 0);
	assert_string_equal(b.session, "");
	assert_int_equal(b.outcome[0], SKV_START_EXISTS);
}

static void start_is_idempotent(void **state)
{
	struct env *e = *state;
	struct skv_key k[4];
	struct env_start s = { .request_id = "r1", .keys = k, .n = 3 };
	struct skv_start_res a, b;
	struct skv_finish_res f;
	char session[33];
	uint64_t offset;

	env_keys(k, 4, 1, 1);
	assert_int_equal(env_start(e, &s, &a), SKV_OK);
	memcpy(session, a.session, sizeof session);
	offset = a.loc[2].offset;
	assert_int_equal(env_start(e, &s, &b), SKV_OK);
	assert_string_equal(b.session, session);
	assert_int_equal(b.state, SKV_SESSION_OPEN);
	assert_int_equal(b.loc[2].offset, offset);
	reopen(e); /* the same after a crash */
	assert_int_equal(env_start(e, &s, &b), SKV_OK);
	assert_string_equal(b.session, session);
	assert_int_equal(b.loc[2].offset, offset);
	s.n = 4;
	assert_int_equal(env_start(e, &s, &b), SKV_E_CONFLICT);
	assert_string_equal(e->err.field, "request_id");
	s.n = 3;
	assert_int_equal(env_finish(e, session, NULL, 0, &f), SKV_OK);
	assert_int_equal(env_start(e, &s, &b), SKV_OK);
	assert_int_equal(b.state, SKV_SESSION_FINISHED);
	assert_int_equal(b.n_keys, 0);
	reopen(e);
	assert_int_equal(env_start(e, &s, &b), SKV_OK);
	assert_int_equal(b.state, SKV_SESSION_FINISHED);
}

static void finish_and_abort_repeat_harmlessly(void **state)
{
	struct env *e = *state;
	struct skv_key k[4];
	struct skv_start_res a;
	struct skv_finish_res f;
	char s1[33], s2[33];

	env_keys(k, 4, 1, 1);
	assert_int_equal(env_start(e, &(struct env_start){ .keys = k, .n = 2 }, &a), SKV_OK);
	memcpy(s1, a.session, sizeof s1);
	assert_int_equal(env_start(e, &(struct env_start){ .keys = k + 2, .n = 2 }, &a), SKV_OK);
	memcpy(s2, a.session, sizeof s2);
	assert_int_equal(env_finish(e, s1, NULL, 0, &f), SKV_OK);
	assert_int_equal(env_finish(e, s1, NULL, 0, &f), SKV_OK);
	assert_int_equal(f.committed, 2);
	assert_int_equal(env_abort(e, s2, true), SKV_OK);
	assert_int_equal(env_abort(e, s2, true), SKV_OK);
	assert_int_equal(env_finish(e, s2, NULL, 0, &f), SKV_E_SESSION_ENDED);
	assert_int_equal(env_finish(e, "0123456789abcdef0123456789abcdef", NULL, 0, &f),
			 SKV_E_NOT_FOUND);
	assert_string_equal(e->err.field, "session");
	assert_int_equal(env_finish(e, "short", NULL, 0, &f), SKV_E_INVALID);
	assert_int_equal(env_match(e, k, 4), 2);
}

static void partial_finish(void **state)
{
	struct env *e = *state;
	struct skv_key k[4];
	struct skv_start_res a;
	struct skv_finish_res f;
	struct skv_lookup_res r;
	bool mask[4] = { true, false, true, false };
	char session[33];

	env_keys(k, 4, 1, 1);
	assert_int_equal(env_start(e, &(struct env_start){ .keys = k, .n = 4 }, &a), SKV_OK);
	memcpy(session, a.session, sizeof session);
	assert_int_equal(env_finish_mask(e, session, mask, 3, true, &f), SKV_E_INVALID);
	assert_string_equal(e->err.field, "success.mask");
	assert_int_equal(env_finish_mask(e, session, mask, 4, true, &f), SKV_OK);
	assert_int_equal(f.committed, 2);
	assert_int_equal(f.failed, 2);
	assert_int_equal(env_lookup(e, k, 4, SKV_LOOKUP_BATCH, 0, &r), SKV_OK);
	assert_true(r.hit[0] && !r.hit[1] && r.hit[2] && !r.hit[3]);
}

/* Only what was not written may lack a sum: a reader would take the bytes for damaged. */
static void a_missing_checksum_of_written_bytes_is_refused(void **state)
{
	struct env *e = *state;
	static const bool mask[] = { false, true }, first[] = { true, false },
			  second[] = { false, true };
	const uint64_t sums[2] = { 7, 8 };
	struct skv_finish_req req = { .tenant = "t", .mask_kind = SKV_MASK_BITS, .mask = mask,
				      .mask_count = 2,
				      .checksums = sums, .n_checksums = 2 };
	struct skv_start_res a;
	struct skv_finish_res f;
	struct skv_lookup_res r;
	struct skv_key k[2];
	char session[33];

	env_keys(k, 2, 1, 1);
	assert_int_equal(env_start(e, &(struct env_start){ .keys = k, .n = 2 }, &a), SKV_OK);
	memcpy(session, a.session, sizeof session);
	req.session = session;
	req.no_checksum = second;
	assert_int_equal(env_finish_req(e, &req, &f), SKV_E_INVALID);
	assert_string_equal(e->err.field, "checksums");
	req.no_checksum = first; /* the first block failed */
	assert_int_equal(env_finish_req(e, &req, &f), SKV_OK);
	assert_int_equal(f.committed, 1);
	assert_int_equal(env_lookup(e, k, 2, SKV_LOOKUP_BATCH, 0, &r), SKV_OK);
	assert_true(!r.hit[0] && r.hit[1] && r.loc[1].checksum == sums[1]);
}

static void checksums_come_back(void **state)
{
	struct env *e = *state;
	struct skv_key k[2];
	struct skv_start_res a;
	struct skv_finish_res f;
	struct skv_lookup_res r;
	uint64_t sums[2] = { 0x1122334455667788u, UINT64_MAX };
	char session[33];

	env_keys(k, 2, 1, 1);
	assert_int_equal(env_start(e, &(struct env_start){ .keys = k, .n = 2 }, &a), SKV_OK);
	memcpy(session, a.session, sizeof session);
	assert_int_equal(env_finish(e, session, sums, 1, &f), SKV_E_INVALID);
	assert_string_equal(e->err.field, "checksums");
	assert_int_equal(env_finish(e, session, sums, 2, &f), SKV_OK);
	for (int again = 0; again < 2; again++) {
		assert_int_equal(env_lookup(e, k, 2, SKV_LOOKUP_PREFIX, 0, &r), SKV_OK);
		assert_true(r.loc[0].has_checksum && r.loc[1].has_checksum);
		assert_true(r.loc[0].checksum == sums[0] && r.loc[1].checksum == sums[1]);
		reopen(e);
	}
}

static void session_expires_and_key_is_free(void **state)
{
	struct env *e = *state;
	struct skv_key k[2];
	struct skv_start_res a, b;
	struct skv_finish_res f;
	struct skv_stats st;
	char session[33];

	env_keys(k, 2, 1, 1);
	assert_int_equal(env_start(e, &(struct env_start){ .keys = k, .n = 2, .deadline_ms = 3000 },
				   &a), SKV_OK);
	memcpy(session, a.session, sizeof session);
	assert_true(a.deadline_ms <= 3000 && a.deadline_ms > 2900);
	env_advance(e, 3100);
	assert_int_equal(env_finish(e, session, NULL, 0, &f), SKV_E_SESSION_EXPIRED);
	env_stats(e, &st);
	assert_int_equal(st.storages[0].quarantined_bytes, 8 * KB); /* until the grace is over */
	assert_int_equal(env_start(e, &(struct env_start){ .keys = k, .n = 2 }, &b), SKV_OK);
	assert_int_equal(b.n_write, 2);
	env_advance(e, 1100);
	env_stats(e, &st);
	assert_int_equal(st.storages[0].quarantined_bytes, 0);
}

static void recovered_session_has_its_full_time(void **state)
{
	struct env *e = *state;
	struct skv_key k[2];
	struct skv_start_res a;
	struct skv_finish_res f;
	char session[33];

	env_keys(k, 2, 1, 1);
	assert_int_equal(env_start(e, &(struct env_start){ .keys = k, .n = 2, .deadline_ms = 3000 },
				   &a), SKV_OK);
	memcpy(session, a.session, sizeof session);
	env_advance(e, 2500);
	reopen(e);
	env_advance(e, 2500);
	assert_int_equal(env_finish(e, session, NULL, 0, &f), SKV_OK);
	assert_int_equal(env_match(e, k, 2), 2);
}

static void delete_unindexes_at_once_and_holds_leased(void **state)
{
	struct env *e = *state;
	struct skv_key k[2];
	struct skv_lookup_res r;
	struct skv_stats st;
	uint32_t n;

	env_keys(k, 2, 1, 1);
	env_put(e, k, 2);
	assert_int_equal(env_lookup(e, k, 1, SKV_LOOKUP_PREFIX, 5000, &r), SKV_OK);
	assert_int_equal(env_delete(e, k, 2, &n), SKV_OK);
	assert_int_equal(n, 2);
	assert_int_equal(env_match(e, k, 2), 0);
	env_stats(e, &st);
	assert_int_equal(st.storages[0].quarantined_bytes, 4 * KB);
	assert_int_equal(env_delete(e, k, 2, &n), SKV_OK);
	assert_int_equal(n, 0);
	env_advance(e, 5100);
	env_stats(e, &st);
	assert_int_equal(st.storages[0].quarantined_bytes, 0);
	assert_int_equal(st.storages[0].used_bytes, 0);
	assert_int_equal(st.storages[0].assigned_bytes, 0); /* the empty slab is back */
}

static void full_store_evicts_tails_first(void **state)
{
	struct env *e = *state;
	struct skv_key k[100];
	struct skv_stats st;
	uint32_t held = 0;

	for (int chain = 0; chain < 30; chain++) { /* three times what fits */
		env_keys(k, 100, 10 + (uint64_t)chain, 1);
		assert_int_equal(env_put(e, k, 100), 100);
		env_advance(e, 10);
	}
	env_keys(k, 100, 39, 1);
	assert_int_equal(env_match(e, k, 100), 100); /* the newest is whole */
	env_stats(e, &st);
	assert_true(st.evicted_blocks >= 1900);
	for (int chain = 0; chain < 30; chain++) {
		struct skv_lookup_res r;
		uint32_t hits = 0;

		env_keys(k, 100, 10 + (uint64_t)chain, 1);
		assert_int_equal(env_lookup(e, k, 100, SKV_LOOKUP_BATCH, 0, &r), SKV_OK);
		for (int i = 0; i < 100; i++)
			hits += r.hit[i];
		assert_int_equal(env_match(e, k, 100), hits); /* remaining blocks are a prefix */
		held += hits;
	}
	assert_true(held > 900);
}

static void leased_blocks_stay(void **state)
{
	struct env *e = *state;
	struct skv_key k[100], other[100];
	struct skv_lookup_res r;
	uint64_t offset;

	env_keys(k, 100, 1, 1);
	env_put(e, k, 100);
	assert_int_equal(env_lookup(e, k, 100, SKV_LOOKUP_PREFIX, 10000, &r), SKV_OK);
	assert_int_equal(r.matched, 100);
	offset = r.loc[0].offset;
	for (int i = 0; i < 40; i++) {
		env_keys(other, 100, 50 + (uint64_t)i, 1);
		env_put(e, other, 100);
	}
	assert_int_equal(env_match(e, k, 100), 100);
	env_advance(e, 11000);
	for (int i = 0; i < 40; i++) {
		env_keys(other, 100, 500 + (uint64_t)i, 1);
		env_put(e, other, 100);
	}
	assert_int_equal(env_match(e, k, 100), 0);
	(void)offset;
}

static void everything_leased_is_no_space(void **state)
{
	struct env *e = *state;
	struct skv_key k[1000];
	struct skv_start_res s;
	struct skv_lookup_res r;
	uint32_t n = 0;

	env_keys(k, 1000, 1, 1);
	while (n < 1000 && env_match(e, k, 1000) == n) {
		assert_int_equal(env_start(e, &(struct env_start){ .keys = k + n, .n = 10 }, &s),
				 SKV_OK);
		{
			struct skv_finish_res f;
			char session[33];

			memcpy(session, s.session, sizeof session);
			assert_int_equal(env_finish(e, session, NULL, 0, &f), SKV_OK);
		}
		n += 10;
	}
	assert_int_equal(env_lookup(e, k, 1000, SKV_LOOKUP_BATCH, 10000, &r), SKV_OK);
	env_keys(k, 100, 2, 1);
	assert_int_equal(env_start(e, &(struct env_start){ .keys = k, .n = 100 }, &s),
			 SKV_E_NO_SPACE);
	env_advance(e, 11000);
	assert_int_equal(env_start(e, &(struct env_start){ .keys = k, .n = 100 }, &s), SKV_OK);
}

static void lease_survives_a_crash(void **state)
{
	struct env *e = *state;
	struct skv_key k[900], other[100];
	struct skv_lookup_res r;
	struct skv_start_res s;
	int rc;

	env_keys(k, 900, 1, 1);
	env_put(e, k, 900);
	assert_int_equal(env_lookup(e, k, 900, SKV_LOOKUP_PREFIX, 10000, &r), SKV_OK);
	reopen(e);
	env_keys(other, 100, 2, 1);
	/* either free slots, or none */
	rc = env_start(e, &(struct env_start){ .keys = other, .n = 100 }, &s);
	if (rc == SKV_OK)
		rc =
			env_start(e,
				  &(struct env_start){ .instance = "i",
						       .keys = (struct skv_key[]){ { 3, 1 } },
						       .n = 1 }, &s);
	assert_int_equal(env_match(e, k, 900), 900);
	env_advance(e, 21000); /* the horizon */
	env_keys(other, 100, 4, 1);
	assert_int_equal(env_start(e, &(struct env_start){ .keys = other, .n = 100 }, &s), SKV_OK);
}

static void specs_can_come_later(void **state)
{
	struct env *e = *state;
	struct skv_spec specs[2] = { { "tp0", 4 * KB }, { "tp1", 8 * KB } };
	const char *tp0 = "tp0", *tp1 = "tp1";
	struct skv_key k = { 1, 1 };
	struct skv_start_res s;
	struct skv_finish_res f;
	char session[33];

	assert_int_equal(env_instance(e, "m", "g", specs, 2), SKV_OK);
	assert_int_equal(env_start(e, &(struct env_start){ .instance = "m", .keys = &k, .n = 1,
							   .specs = &tp0, .n_specs = 1 },
				   &s), SKV_OK);
	assert_int_equal(s.n_specs, 1);
	assert_int_equal(s.loc[0].length, 4 * KB);
	memcpy(session, s.session, sizeof session);
	assert_int_equal(env_finish(e, session, NULL, 0, &f), SKV_OK);
	/* another writer may bring the other one, and only it */
	assert_int_equal(env_start(e, &(struct env_start){ .instance = "m", .keys = &k, .n = 1 },
				   &s), SKV_OK);
	assert_int_equal(s.n_write, 1);
	assert_int_equal(s.loc[0].length, 0);
	assert_int_equal(s.loc[1].length, 8 * KB);
	memcpy(session, s.session, sizeof session);
	assert_int_equal(env_start(e, &(struct env_start){ .instance = "m", .keys = &k, .n = 1,
							   .specs = &tp1, .n_specs = 1 },
				   &s), SKV_OK);
	assert_int_equal(s.outcome[0], SKV_START_BUSY);
	reopen(e);
	assert_int_equal(env_finish(e, session, NULL, 0, &f), SKV_OK);
	assert_int_equal(env_start(e, &(struct env_start){ .instance = "m", .keys = &k, .n = 1 },
				   &s), SKV_OK);
	assert_int_equal(s.outcome[0], SKV_START_EXISTS);
}

static void space_moves_between_classes(void **state)
{
	struct env *e = *state;
	struct skv_spec big = { "kv", 200 * KB };
	struct skv_key k[100];
	struct skv_start_res s;
	struct skv_stats st;

	assert_int_equal(env_instance(e, "big", "g", &big, 1), SKV_OK);
	for (int chain = 0; chain < 12; chain++) {
		env_keys(k, 100, 10 + (uint64_t)chain, 1);
		env_put(e, k, 100);
	}
	/* full of small blocks: the big ones still get room */
	for (int i = 0; i < 5; i++) {
		env_keys(k, 1, 1000 + (uint64_t)i, 1);
		int rc = env_start(e, &(struct env_start){ .instance = "big", .keys = k, .n = 1 },
				   &s);

		if (rc != SKV_OK)
			print_error("%s\n", e->err.message);
		assert_int_equal(rc, SKV_OK);
	}
	env_stats(e, &st);
	assert_true(st.evicted_blocks >= 5 * 50);
}

static void group_quota_evicts_within_the_group(void **state)
{
	struct env *e = *state;
	struct skv_spec spec = { "kv", 4 * KB };
	struct skv_key k[50];
	struct skv_stats st;
	struct skv_start_res s;
	struct skv_finish_res f;
	char session[33];

	assert_int_equal(env_group(e, "small", 40 * 4 * KB, "s"), SKV_OK);
	assert_int_equal(env_instance(e, "q", "small", &spec, 1), SKV_OK);
	env_keys(k, 50, 1, 1);
	env_put(e, k, 50);
	for (int i = 0; i < 10; i++) {
		env_keys(k, 20, 100 + (uint64_t)i, 1);
		assert_int_equal(env_start(e,
					   &(struct env_start){ .instance = "q", .keys = k,
								.n = 20 }, &s), SKV_OK);
		memcpy(session, s.session, sizeof session);
		assert_int_equal(env_finish(e, session, NULL, 0, &f), SKV_OK);
	}
	env_stats(e, &st);
	for (uint32_t g = 0; g < st.n_groups; g++)
		if (strcmp(st.groups[g].spec.name, "small") == 0)
			assert_true(st.groups[g].used_bytes <= 40 * 4 * KB);
	env_keys(k, 50, 1, 1);
	assert_int_equal(env_match(e, k, 50), 50); /* the other group lost nothing */
	env_keys(k, 41, 7, 1);
	assert_int_equal(env_start(e, &(struct env_start){ .instance = "q", .keys = k, .n = 41 },
				   &s), SKV_E_TOO_LARGE);
}

static void bad_requests_change_nothing(void **state)
{
	struct env *e = *state;
	struct skv_key k[3] = { { 1, 1 }, { 1, 2 }, { 1, 1 } };
	struct skv_start_res s;
	struct skv_stats st;
	const char *nope = "nope";

	assert_int_equal(env_start(e, &(struct env_start){ .keys = k, .n = 3 }, &s), SKV_E_INVALID);
	assert_string_equal(e->err.field, "keys[2]");
	assert_int_equal(env_start(e, &(struct env_start){ .keys = k, .n = 0 }, &s), SKV_E_INVALID);
	assert_int_equal(env_start(e,
				   &(struct env_start){ .keys = k, .n = 2, .parent = &k[2],
							.independent = true }, &s),
			 SKV_E_INVALID);
	assert_string_equal(e->err.field, "parent");
	assert_int_equal(env_start(e, &(struct env_start){ .instance = "x", .keys = k, .n = 2 },
				   &s), SKV_E_NOT_FOUND);
	assert_string_equal(e->err.field, "instance");
	assert_int_equal(env_start(e,
				   &(struct env_start){ .keys = k, .n = 2, .specs = &nope,
							.n_specs = 1 }, &s),
			 SKV_E_INVALID);
	assert_string_equal(e->err.field, "specs[0]");
	env_stats(e, &st);
	assert_int_equal(st.storages[0].used_bytes, 0);
	assert_int_equal(st.sessions, 0);
}

static void instance_goes_with_its_blocks(void **state)
{
	struct env *e = *state;
	struct skv_key k[20];
	struct skv_start_res s;
	struct skv_stats st;

	env_keys(k, 20, 1, 1);
	env_put(e, k, 10);
	assert_int_equal(env_start(e, &(struct env_start){ .keys = k + 10, .n = 10 }, &s), SKV_OK);
	assert_int_equal(skv_cluster_group_delete(e->cluster, "g", &e->err), SKV_E_IN_USE);
	assert_int_equal(skv_cluster_instance_delete(e->cluster, "t", "i", NULL, &e->err), SKV_OK);
	assert_int_equal(skv_cluster_instance_delete(e->cluster, "t", "i", NULL, &e->err),
			 SKV_E_NOT_FOUND);
	env_stats(e, &st);
	assert_int_equal(st.n_instances, 0);
	assert_int_equal(st.blocks, 0);
	assert_int_equal(st.storages[0].used_bytes, 0);
	/* a writer may still be at it */
	assert_int_equal(st.storages[0].quarantined_bytes, 10 * 4 * KB);
	reopen(e);
	env_stats(e, &st);
	assert_int_equal(st.n_instances, 0);
	assert_int_equal(st.blocks, 0);
	env_advance(e, 30000);
	assert_int_equal(skv_cluster_group_delete(e->cluster, "g", &e->err), SKV_OK);
	assert_int_equal(skv_cluster_storage_delete(e->cluster, "s", &e->err), SKV_OK);
	env_make(e, 4 * MB, 64 * KB, 4 * KB);
	assert_int_equal(env_put(e, k, 10), 10);
}

static void registration_is_fixed(void **state)
{
	struct env *e = *state;
	struct skv_spec same = { "kv", 4 * KB }, other = { "kv", 8 * KB },
			huge = { "kv", 1024 * MB };

	assert_int_equal(env_instance(e, "i", "g", &same, 1), SKV_OK);
	assert_int_equal(env_instance(e, "i", "g", &other, 1), SKV_E_CONFLICT);
	assert_string_equal(e->err.field, "specs");
	assert_int_equal(env_instance(e, "j", "nope", &same, 1), SKV_E_NOT_FOUND);
	assert_string_equal(e->err.field, "group");
	assert_int_equal(env_instance(e, "j", "g", &huge, 1), SKV_E_INVALID);
	assert_string_equal(e->err.field, "specs[0].size");
	/* files that do not fit are drained */
	assert_int_equal(env_storage(e, "s", 2 * MB, 64 * KB), SKV_OK);
	assert_int_equal(env_storage(e, "s", 8 * MB, 64 * KB), SKV_OK);
	assert_int_equal(env_storage(e, "s2", 8 * MB, 65537), SKV_E_INVALID);
	assert_string_equal(e->err.field, "unit");
	assert_int_equal(env_group(e, "h", 0, "nope"), SKV_E_NOT_FOUND);
}

static void chains_keep_their_links(void **state)
{
	struct env *e = *state;
	struct skv_key k[6];
	struct skv_block_view v;
	struct skv_arena a;
	uint32_t n;

	env_keys(k, 6, 1, 1);
	env_put(e, k, 6);
	skv_arena_init(&a);
	for (int again = 0; again < 2; again++) {
		assert_int_equal(skv_core_block(e->core, "t", "i", k[3], &v, &a, &e->err), SKV_OK);
		assert_true(v.has_parent && skv_key_equal(v.parent, k[2]));
		assert_int_equal(v.children, 1);
		assert_string_equal(v.state[0], "committed");
		if (!again)
			reopen(e);
	}
	/* an inner block may be deleted; its entry keeps the chain linked, but it is a miss */
	assert_int_equal(env_delete(e, &k[3], 1, &n), SKV_OK);
	assert_int_equal(env_match(e, k, 6), 3);
	assert_int_equal(skv_core_block(e->core, "t", "i", k[3], &v, &a, &e->err), SKV_E_NOT_FOUND);
	env_check(e);
	reopen(e);
	env_check(e);
	assert_int_equal(env_put(e, k, 6), 1);
	assert_int_equal(env_match(e, k, 6), 6);
	skv_arena_destroy(&a);
}

static void shutdown_is_clean_and_complete(void **state)
{
	struct env *e = *state;
	struct skv_key k[200];
	struct skv_start_res s;
	struct skv_finish_res f;
	struct skv_stats st;
	char session[33];

	env_keys(k, 200, 1, 1);
	env_put(e, k, 100);
	assert_int_equal(env_start(e,
				   &(struct env_start){ .request_id = "x", .keys = k + 100,
							.n = 100 }, &s), SKV_OK);
	memcpy(session, s.session, sizeof session);
	env_shutdown(e);
	env_open(e);
	env_stats(e, &st);
	assert_true(st.journal_bytes < 200); /* the checkpoint took it all */
	assert_int_equal(env_match(e, k, 200), 100);
	assert_int_equal(env_finish(e, session, NULL, 0, &f), SKV_OK);
	assert_int_equal(env_match(e, k, 200), 200);
}

static void journal_is_bounded(void **state)
{
	struct env *e = *state;
	struct skv_core_counters n;
	struct skv_stats st;
	struct skv_key k[50];

	env_crash(e);
	e->o.journal_limit = 64 * KB;
	env_open(e);
	for (int i = 0; i < 200; i++) {
		env_keys(k, 50, 100 + (uint64_t)i, 1);
		env_put(e, k, 50);
		env_stats(e, &st);
		assert_true(st.journal_bytes < 64 * KB);
	}
	skv_cluster_counters_get(e->cluster, &n);
	assert_true(n.checkpoints > 2);
	assert_int_equal(n.checkpoint_failures, 0);
	reopen(e);
	env_check(e);
	assert_int_equal(env_match(e, k, 50), 50);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(put_then_find),
		T(batch_lookup_has_gaps),
		T(open_blocks_are_a_miss_and_busy),
		T(start_is_idempotent),
		T(finish_and_abort_repeat_harmlessly),
		T(partial_finish),
		T(checksums_come_back),
		T(a_missing_checksum_of_written_bytes_is_refused),
		T(session_expires_and_key_is_free),
		T(recovered_session_has_its_full_time),
		T(delete_unindexes_at_once_and_holds_leased),
		T(full_store_evicts_tails_first),
		T(leased_blocks_stay),
		T(everything_leased_is_no_space),
		T(lease_survives_a_crash),
		T(specs_can_come_later),
		T(space_moves_between_classes),
		T(group_quota_evicts_within_the_group),
		T(bad_requests_change_nothing),
		T(instance_goes_with_its_blocks),
		T(registration_is_fixed),
		T(chains_keep_their_links),
		T(shutdown_is_clean_and_complete),
		T(journal_is_bounded),
	};

	env_quiet();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
