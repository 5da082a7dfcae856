/*
 * test_core_relaxed.c - relaxed starts and settles in FULL durability: told when the journal has
 * them, synced a little later; and that those beside them stay full. What a power loss leaves of
 * them: test_core_powerloss.c.
 */
#include "core_env.h"

#include <string.h>

#define N 16u
#define PAGES 64u

/* The calls that a disk has to wait for: appends that sync, and syncs. */
static uint64_t n_syncs;
static bool sync_fails;

static int append(void *self, uint32_t partition, uint64_t fence, uint64_t seq, const void *bytes,
		  size_t n, unsigned flags, struct skv_error *err)
{
	n_syncs += !(flags & SKV_APPEND_LATER);
	return skv_store_memory.append(self, partition, fence, seq, bytes, n, flags, err);
}

static int sync_all(void *self, uint32_t partition, struct skv_error *err)
{
	n_syncs++;
	if (sync_fails)
		return skv_fail(err, SKV_E_STORE_IO, NULL, "the test said so");
	return skv_store_memory.sync(self, partition, err);
}

static struct skv_store_ops counting;

struct disk {
	struct env e;
};

static int setup(void **state)
{
	static struct disk disk;
	struct disk *d = &disk;

	counting = skv_store_memory;
	counting.append = append;
	counting.sync = sync_all;
	sync_fails = false;
	env_init(&d->e);
	d->e.ops = &counting;
	d->e.o.relaxed_ms = d->e.o.session_default_ms + d->e.o.grace_ms;
	env_open(&d->e);
	env_make_pages(&d->e, PAGES);
	*state = d;
	return 0;
}

static int teardown(void **state)
{
	struct disk *d = *state;

	env_check(&d->e);
	env_destroy(&d->e);
	return 0;
}

static uint64_t syncs_of(uint64_t *before)
{
	uint64_t n = n_syncs - *before;

	*before = n_syncs;
	return n;
}

static uint32_t reserve(struct disk *d, uint64_t chain, bool relaxed, struct skv_key *k,
			uint64_t *page)
{
	struct skv_start_res s;

	env_keys(k, N, chain, 1);
	assert_int_equal(env_start(&d->e,
				   &(struct env_start){ .keys = k, .n = N, .fit = true,
							.anonymous = true, .relaxed = relaxed },
				   &s),
			 SKV_OK);
	for (uint32_t i = 0; i < s.n_write; i++)
		page[i] = s.loc[i].offset;
	return s.n_write;
}

static void confirm(struct disk *d, bool relaxed, const struct skv_key *k, const uint64_t *page)
{
	struct skv_partial_req q = { .tenant = "t", .instance = "i", .keys = k, .offsets = page,
				     .n_commit = N, .relaxed = relaxed };
	struct skv_partial_res r;

	assert_int_equal(env_partial(&d->e, &q, &r), SKV_OK);
	assert_int_equal(r.committed, N);
}

static void put(struct disk *d, uint64_t chain, bool relaxed)
{
	struct skv_key k[N];
	uint64_t page[N];

	assert_int_equal(reserve(d, chain, relaxed, k, page), N);
	confirm(d, relaxed, k, page);
}

static void a_relaxed_call_waits_for_no_sync(void **state)
{
	struct disk *d = *state;
	uint64_t at = n_syncs;

	put(d, 1, true);
	put(d, 2, true);
	assert_int_equal(syncs_of(&at), 0);
	env_advance(&d->e, 49);
	assert_int_equal(syncs_of(&at), 0);
	env_advance(&d->e, 1); /* the sync comes behind */
	assert_int_equal(syncs_of(&at), 1);
	env_advance(&d->e, 1000); /* and no more of them while nothing happens */
	skv_cluster_tick(d->e.cluster);
	assert_int_equal(syncs_of(&at), 0);
	put(d, 3, false);
	assert_int_equal(syncs_of(&at), 2);
}

/* A longer one could outlive the rest that free slots have after a power loss. */
static void only_as_long_as_the_store_knows(void **state)
{
	struct disk *d = *state;
	uint64_t at = n_syncs;
	struct skv_start_res s;
	struct skv_key k[N];

	env_keys(k, N, 1, 1);
	assert_int_equal(env_start(&d->e, &(struct env_start){ .keys = k, .n = N, .anonymous = true,
							       .relaxed = true,
							       .deadline_ms =
								       d->e.o.session_default_ms +
								       1 }, &s), SKV_OK);
	assert_int_equal(syncs_of(&at), 1);
	env_keys(k, N, 2, 1); /* nor one that is no anonymous one */
	assert_int_equal(env_start(&d->e, &(struct env_start){ .keys = k, .n = N, .relaxed = true },
				   &s), SKV_OK);
	assert_int_equal(syncs_of(&at), 1);
}

struct answer {
	bool over;
	int status;
};

static void on_done(void *ctx, int status)
{
	*(struct answer *)ctx = (struct answer){ true, status };
}

/* In one group commit. */
static void others_stay_full(void **state)
{
	struct disk *d = *state;
	struct answer a[2] = { 0 };
	struct skv_start_res s[2] = { 0 };
	struct skv_key k[2][N];
	uint64_t at = n_syncs;
	struct skv_arena arena = { 0 };

	for (uint32_t i = 0; i < 2; i++) {
		static struct skv_start_req q[2];
		struct skv_done done = { on_done, &a[i] };

		env_keys(k[i], N, 1 + i, 1);
		q[i] = (struct skv_start_req){ .tenant = "t", .instance = "i", .request_id = "",
					       .keys = k[i], .n_keys = N,
					       .anonymous = true, .relaxed = i == 0 };
		assert_int_equal(skv_core_start(d->e.core, &q[i], &s[i], &arena, &d->e.err, &done),
				 SKV_PENDING);
	}
	assert_int_equal(syncs_of(&at), 0);
	skv_cluster_tick(d->e.cluster);
	assert_true(a[0].over && a[1].over);
	assert_int_equal(syncs_of(&at), 1);
	env_advance(&d->e, 1000); /* the sync has covered both */
	assert_int_equal(syncs_of(&at), 0);
	skv_arena_destroy(&arena);
}

/* Room is made by eviction: its record is synced before a page of it is given away. */
static void a_page_that_was_evicted_waits_for_a_sync(void **state)
{
	struct disk *d = *state;
	struct skv_key k[N];
	uint64_t page[N], at;

	for (uint32_t i = 0; i < PAGES / N; i++)
		put(d, 1 + i, true);
	env_advance(&d->e, 50);
	for (uint32_t i = 0; i < 3; i++) {
		at = n_syncs;
		assert_int_equal(reserve(d, 100 + i, true, k, page), N);
		assert_true(syncs_of(&at) >= 1);
		confirm(d, true, k, page);
	}
}

static void a_page_that_was_given_up_is_told_after_a_sync(void **state)
{
	struct disk *d = *state;
	struct skv_partial_req q = { .tenant = "t", .instance = "i", .relaxed = true };
	struct skv_partial_res r;
	struct skv_key k[N];
	uint64_t page[N], at;

	assert_int_equal(reserve(d, 1, true, k, page), N);
	q.give_up = page;
	q.n_give_up = N;
	at = n_syncs;
	assert_int_equal(env_partial(&d->e, &q, &r), SKV_OK);
	assert_int_equal(r.given_up, N);
	assert_int_equal(syncs_of(&at), 1);
}

/* Nobody knows what the disk has: everything is loaded from it again. */
static void a_sync_that_fails_stops_the_partition(void **state)
{
	struct disk *d = *state;
	struct skv_key k[N];

	put(d, 1, true);
	sync_fails = true;
	env_advance(&d->e, 50);
	assert_int_not_equal(skv_cluster_state_get(d->e.cluster), SKV_CORE_READY);
	sync_fails = false;
	for (int i = 0; i < 100 && skv_cluster_state_get(d->e.cluster) != SKV_CORE_READY; i++)
		env_advance(&d->e, 100);
	assert_int_equal(skv_cluster_state_get(d->e.cluster), SKV_CORE_READY);
	env_keys(k, N, 1, 1);
	assert_int_equal(env_match(&d->e, k, N), N);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_relaxed_call_waits_for_no_sync),
		CASE(only_as_long_as_the_store_knows),
		CASE(others_stay_full),
		CASE(a_page_that_was_evicted_waits_for_a_sync),
		CASE(a_page_that_was_given_up_is_told_after_a_sync),
		CASE(a_sync_that_fails_stops_the_partition),
	};

	env_quiet();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
