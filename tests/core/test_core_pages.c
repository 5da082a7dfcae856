/*
 * test_core_pages.c - external storages and anonymous sessions: pages that clients reserve, write
 * and settle by key and number, in calls that know no session.
 */
#include "core_env.h"

#include <stdio.h>
#include <string.h>

#include <skv/mem.h>

#define MAX 64u
#define NONE UINT64_MAX

/* The answer to a reserve of keys {hi, first}... */
struct reserved {
	struct skv_key key[MAX];
	uint64_t page[MAX]; /* NONE = not to be written */
	uint8_t outcome[MAX];
	uint32_t n, n_write;
};

static int reserve_as(struct env *e, uint64_t hi, uint32_t n, struct env_start as,
		      struct reserved *r)
{
	struct skv_start_res res;
	int rc;

	memset(r, 0, sizeof *r);
	env_keys(r->key, n, hi, 1);
	as.keys = r->key;
	as.n = n;
	as.anonymous = true;
	rc = env_start(e, &as, &res);
	if (rc != SKV_OK)
		return rc;
	assert_int_equal(res.n_keys, n);
	assert_string_equal(res.session, "");
	for (uint32_t i = 0; i < n; i++) {
		r->outcome[i] = res.outcome[i];
		r->page[i] = NONE;
		if (res.outcome[i] != SKV_START_WRITE &&
		    !(res.outcome[i] == SKV_START_EXISTS && as.want_existing))
			continue;
		assert_int_equal(res.loc[i].length, 1);
		assert_string_equal(res.files.v[res.loc[i].file].type, "external");
		assert_string_equal(res.files.v[res.loc[i].file].path, "");
		r->page[i] = res.loc[i].offset;
	}
	r->n = n;
	r->n_write = res.n_write;
	return SKV_OK;
}

static void reserve(struct env *e, uint64_t hi, uint32_t n, struct reserved *r)
{
	int rc = reserve_as(e, hi, n, (struct env_start){ .fit = true, .want_existing = true }, r);

	if (rc != SKV_OK)
		fail_msg("reserve: %s %s", skv_status_name(rc), e->err.message);
}

/* Commits keys [from, to), gives up [to, end). */
static struct skv_partial_res settle(struct env *e, const struct reserved *r, uint32_t from,
				     uint32_t to, uint32_t end)
{
	struct skv_partial_req q = { .tenant = "t", .instance = "i", .keys = r->key + from,
				     .offsets = r->page + from,
				    .n_commit = to - from, .give_up = r->page + to,
				    .n_give_up = end - to };
	struct skv_partial_res res;

	assert_int_equal(env_partial(e, &q, &res), SKV_OK);
	assert_int_equal(res.committed + res.ignored_commits, q.n_commit);
	assert_int_equal(res.given_up + res.ignored_give_ups, q.n_give_up);
	return res;
}

static uint32_t put(struct env *e, uint64_t hi, uint32_t n)
{
	struct reserved r;
	struct skv_partial_res res;

	reserve(e, hi, n, &r);
	res = settle(e, &r, 0, n, n);
	assert_int_equal(res.committed, r.n_write);
	return r.n_write;
}

static uint32_t found(struct env *e, uint64_t hi, uint32_t n)
{
	struct skv_key k[MAX];

	env_keys(k, n, hi, 1);
	return env_match(e, k, n);
}

static void open_pages(struct env *e, uint64_t pages)
{
	env_init(e);
	e->o.grace_max_ms = 3000;
	env_open(e);
	env_make_pages(e, pages);
}

static void expect_used(struct env *e, uint64_t used, uint64_t held, uint64_t sessions)
{
	struct skv_stats st;

	env_check(e);
	env_stats(e, &st);
	assert_int_equal(st.storages[0].used_bytes, used);
	assert_int_equal(st.storages[0].quarantined_bytes, held);
	assert_int_equal(st.sessions, sessions);
}

/* ---- the storage ----------------------------------------------------------------------------- */

static void any_capacity_will_do(void **state)
{
	struct skv_storage_spec s = { .name = "s", .type = "external", .root = "", .capacity = 5000,
				      .enabled = true };
	struct skv_stats st;
	struct env e;

	(void)state;
	env_init(&e);
	env_open(&e);
	assert_int_equal(skv_cluster_storage_put(e.cluster, &s, SKV_PUT_ANY, NULL, &e.err), SKV_OK);
	env_stats(&e, &st);
	assert_int_equal(st.storages[0].spec.capacity, 5000);
	assert_int_equal(st.storages[0].spec.unit, 0);
	assert_int_equal(st.storages[0].spec.file_size, 0);
	assert_int_equal(st.storages[0].file_bytes, 5000);
	assert_true(st.storages[0].healthy);
	s.unit = 4096;
	assert_int_equal(skv_cluster_storage_put(e.cluster, &s, SKV_PUT_ANY, NULL, &e.err),
			 SKV_E_INVALID);
	assert_string_equal(e.err.field, "unit");
	s.unit = 0;
	s.file_size = 4096;
	assert_int_equal(skv_cluster_storage_put(e.cluster, &s, SKV_PUT_ANY, NULL, &e.err),
			 SKV_E_INVALID);
	assert_string_equal(e.err.field, "file_size");
	s.file_size = 0;
	s.capacity = 1ull << 33;
	assert_int_equal(skv_cluster_storage_put(e.cluster, &s, SKV_PUT_ANY, NULL, &e.err),
			 SKV_E_INVALID);
	s.capacity = 4999;
	assert_int_equal(skv_cluster_storage_put(e.cluster, &s, SKV_PUT_ANY, NULL, &e.err),
			 SKV_E_CONFLICT);
	s.name = "none";
	s.capacity = 0;
	assert_int_equal(skv_cluster_storage_put(e.cluster, &s, SKV_PUT_ANY, NULL, &e.err), SKV_OK);
	assert_int_equal(skv_cluster_storage_delete(e.cluster, "none", &e.err), SKV_OK);
	env_destroy(&e);
}

static void a_storage_grows_and_goes(void **state)
{
	struct skv_storage_spec s = { .name = "s", .type = "external", .root = "", .capacity = 50,
				      .enabled = true };
	struct reserved r;
	struct env e;

	(void)state;
	open_pages(&e, 10);
	assert_int_equal(put(&e, 1, 10), 10);
	assert_int_equal(skv_cluster_storage_put(e.cluster, &s, SKV_PUT_ANY, NULL, &e.err), SKV_OK);
	reserve(&e, 2, 40, &r);
	assert_int_equal(r.n_write, 40);
	assert_int_equal(found(&e, 1, 10), 10);
	env_crash(&e);
	env_open(&e);
	assert_int_equal(settle(&e, &r, 0, 40, 40).committed, 40);
	assert_int_equal(found(&e, 1, 10), 10);
	expect_used(&e, 50, 0, 0);
	assert_int_equal(skv_cluster_instance_delete(e.cluster, "t", "i", NULL, &e.err), SKV_OK);
	assert_int_equal(skv_cluster_group_delete(e.cluster, "g", &e.err), SKV_OK);
	assert_int_equal(skv_cluster_storage_delete(e.cluster, "s", &e.err), SKV_OK);
	env_crash(&e);
	env_open(&e);
	env_check(&e);
	env_destroy(&e);
}

static void pages_have_no_bytes(void **state)
{
	struct skv_spec big = { "page", 2 }, two[2] = { { "a", 1 }, { "b", 1 } };
	const char *both[2] = { "s", "bytes" };
	struct skv_group_spec g = { .name = "both", .storages = both, .n_storages = 2 };
	struct skv_key k = { 1, 1 };
	uint64_t place = 0;
	struct skv_start_res res;
	struct env e;

	(void)state;
	open_pages(&e, 10);
	assert_int_equal(env_instance(&e, "big", "g", &big, 1), SKV_E_INVALID);
	assert_string_equal(e.err.field, "specs[0].size");
	assert_int_equal(env_storage(&e, "bytes", 1 << 20, 65536), SKV_OK);
	assert_int_equal(skv_cluster_group_put(e.cluster, &g, SKV_PUT_ANY, NULL, NULL, &e.err),
			 SKV_E_INVALID);
	assert_string_equal(e.err.field, "storages");
	assert_int_equal(env_instance(&e, "two", "g", two, 2), SKV_OK);
	assert_int_equal(env_start(&e, &(struct env_start){ .instance = "two", .keys = &k, .n = 1,
							    .fit = true }, &res),
			 SKV_E_UNSUPPORTED);
	assert_int_equal(env_start(&e, &(struct env_start){ .instance = "two", .keys = &k, .n = 1,
							    .offsets = &place }, &res),
			 SKV_E_UNSUPPORTED);
	env_destroy(&e);
}

/* A manager may run a call again that another one has carried out, and not answered. */
static void a_repeated_reservation_has_the_same_pages(void **state)
{
	struct env_start once = { .n = 3, .anonymous = true, .request_id = "r" };
	struct skv_start_res res;
	struct skv_key k[3];
	uint64_t page[3];
	struct env e;

	(void)state;
	open_pages(&e, 100);
	env_keys(k, 3, 5, 1);
	once.keys = k;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(env_start(&e, &once, &res), SKV_OK);
		assert_int_equal(res.n_write, 3);
		for (uint32_t at = 0; at < 3; at++) {
			assert_int_equal(res.outcome[at], SKV_START_WRITE);
			assert_true(i == 0 || res.loc[at].offset == page[at]);
			page[at] = res.loc[at].offset;
		}
		expect_used(&e, 3, 0, 1);
		if (i == 1) {
			env_crash(&e);
			env_open(&e);
		}
	}
	once.n = 2;
	assert_int_equal(env_start(&e, &once, &res), SKV_E_CONFLICT);
	env_destroy(&e);
}

static void on_done(void *ctx, int status) { *(int *)ctx = status; }

/* ---- partial finish -------------------------------------------------------------------------- */

static void pages_are_settled_one_by_one(void **state)
{
	struct reserved r, again;
	struct skv_partial_res s;
	struct env e;

	(void)state;
	open_pages(&e, 100);
	reserve(&e, 1, 10, &r);
	assert_int_equal(r.n_write, 10);
	expect_used(&e, 10, 0, 1);
	s = settle(&e, &r, 0, 4, 6);
	assert_int_equal(s.committed, 4);
	assert_int_equal(s.given_up, 2);
	expect_used(&e, 8, 2, 1);
	assert_int_equal(found(&e, 1, 10), 4);
	s = settle(&e, &r, 0, 4, 6); /* a repeat changes nothing */
	assert_int_equal(s.committed + s.given_up, 0);
	reserve(&e, 1, 10, &again);
	for (uint32_t i = 0; i < 10; i++) {
		assert_int_equal(again.outcome[i], i < 4   ? SKV_START_EXISTS
						   : i < 6 ? SKV_START_WRITE
							   : SKV_START_BUSY);
		assert_true(i >= 4 || again.page[i] == r.page[i]);
	}
	s = settle(&e, &r, 6, 10, 10);
	assert_int_equal(s.committed, 4);
	expect_used(&e, 10, 2, 1); /* the first session is over */
	s = settle(&e, &again, 4, 6, 6);
	assert_int_equal(s.committed, 2);
	assert_int_equal(found(&e, 1, 10), 10);
	expect_used(&e, 10, 2, 0);
	env_advance(&e, 6001);
	expect_used(&e, 10, 0, 0);
	env_destroy(&e);
}

static void what_is_not_as_said_is_ignored(void **state)
{
	struct reserved a, b, wrong;
	uint64_t odd[] = { 99, 100, UINT64_MAX };
	struct skv_partial_req q = { .tenant = "t", .instance = "i", .give_up = odd,
				     .n_give_up = 3 };
	struct skv_partial_res s;
	struct env e;

	(void)state;
	open_pages(&e, 100);
	reserve(&e, 1, 4, &a);
	reserve(&e, 2, 4, &b);
	wrong = a;
	memcpy(wrong.page, b.page, sizeof wrong.page);
	assert_int_equal(settle(&e, &wrong, 0, 4, 4).committed, 0); /* other keys' pages */
	wrong.page[0] = 99;
	wrong.page[1] = UINT64_MAX;
	wrong.page[2] = a.page[3];
	wrong.page[3] = a.page[3];
	wrong.key[2] = a.key[3];
	s = settle(&e, &wrong, 0, 4, 4);
	assert_int_equal(s.committed, 1); /* the same twice */
	assert_int_equal(env_partial(&e, &q, &s), SKV_OK);
	assert_int_equal(s.given_up, 0);
	wrong = a;
	wrong.page[0] = a.page[3]; /* is a key's page by now */
	assert_int_equal(settle(&e, &wrong, 0, 0, 1).given_up, 0);
	wrong.page[1] = wrong.page[2]; /* twice */
	assert_int_equal(settle(&e, &wrong, 0, 0, 3).given_up, 1);
	q.instance = "nobody";
	assert_int_equal(env_partial(&e, &q, &s), SKV_E_NOT_FOUND);
	q.instance = "i";
	q.n_give_up = SKV_MAX_KEYS + 1;
	assert_int_equal(env_partial(&e, &q, &s), SKV_E_TOO_LARGE);
	assert_string_equal(e.err.field, "give_up");
	q.n_commit = SKV_MAX_KEYS + 1;
	assert_int_equal(env_partial(&e, &q, &s), SKV_E_TOO_LARGE);
	assert_string_equal(e.err.field, "keys");
	env_check(&e);
	env_destroy(&e);
}

/* The second call comes while the record of the first is on its way. */
static void a_repeat_waits_for_the_first(void **state)
{
	struct call {
		struct skv_partial_res res;
		int status;
	} first, second;
	struct skv_done one = { on_done, &first.status }, two = { on_done, &second.status };
	struct skv_partial_req q = { .tenant = "t", .instance = "i" };
	struct skv_error err = { 0 };
	struct skv_arena arena;
	struct reserved r;
	struct env e;

	(void)state;
	open_pages(&e, 100);
	reserve(&e, 1, 4, &r);
	skv_arena_init(&arena);
	first.status = second.status = 77;
	q.keys = r.key;
	q.offsets = r.page;
	q.n_commit = 2;
	q.give_up = r.page + 2;
	q.n_give_up = 1;
	assert_int_equal(skv_core_finish_partial(e.core, &q, &first.res, &arena, &err, &one),
			 SKV_PENDING);
	assert_int_equal(skv_core_finish_partial(e.core, &q, &second.res, &arena, &err, &two),
			 SKV_PENDING);
	env_check(&e);
	assert_int_equal(found(&e, 1, 4), 0); /* nothing is visible before it is durable */
	while (second.status == 77)
		skv_cluster_tick(e.cluster);
	assert_int_equal(first.status, SKV_OK);
	assert_int_equal(second.status, SKV_OK);
	assert_int_equal(first.res.committed, 2);
	assert_int_equal(first.res.given_up, 1);
	assert_int_equal(second.res.committed + second.res.given_up, 0);
	assert_int_equal(second.res.ignored_commits, 2);
	assert_int_equal(second.res.ignored_give_ups, 1);
	assert_int_equal(found(&e, 1, 4), 2);
	expect_used(&e, 3, 1, 1);
	skv_arena_destroy(&arena);
	env_destroy(&e);
}

/* Unconfirmed pages come back after deadline and grace, the longer of the two graces. */
static void a_reservation_expires(void **state)
{
	struct reserved r;
	struct env e;

	(void)state;
	open_pages(&e, 10);
	assert_int_equal(reserve_as(&e, 1, 10,
				    (struct env_start){ .deadline_ms = 4000, .grace_ms = 60000 },
				    &r), SKV_OK);
	assert_int_equal(settle(&e, &r, 0, 3, 4).given_up, 1);
	expect_used(&e, 9, 1, 1);
	env_advance(&e, 3900);
	expect_used(&e, 9, 1, 1);
	env_advance(&e, 200);
	env_advance(&e, 1);
	expect_used(&e, 3, 7, 0);
	assert_int_equal(settle(&e, &r, 4, 10, 10).committed, 0); /* too late */
	env_advance(&e, 2800);
	expect_used(&e, 3, 7, 0);
	env_advance(&e, 200); /* grace_max_ms after the deadline */
	expect_used(&e, 3, 0, 0);
	assert_int_equal(found(&e, 1, 10), 3);
	env_destroy(&e);
}

/* The reservation's settling is on its way when the deadline comes; a failed settling changes
 * nothing. */
static void ending_keeps_from_expiring(void **state)
{
	struct skv_fault fail = { .kind = SKV_FAULT_ERROR, .call = "append", .at = 1, .times = 1,
				  .status = SKV_E_STORE_IO };
	struct skv_partial_req q = { .tenant = "t", .instance = "i" };
	struct skv_partial_res res;
	struct reserved r;
	struct env e;

	(void)state;
	env_init(&e);
	e.faulty = true;
	env_open(&e);
	env_make_pages(&e, 10);
	reserve(&e, 1, 4, &r);
	q.keys = r.key;
	q.offsets = r.page;
	q.n_commit = 4;
	skv_fault_store_set(e.store, &fail);
	assert_int_equal(env_partial(&e, &q, &res), SKV_E_STORE_IO);
	expect_used(&e, 4, 0, 1);
	skv_fault_store_set(e.store, &fail);
	q.n_commit = 0;
	q.give_up = r.page;
	q.n_give_up = 4;
	assert_int_equal(env_partial(&e, &q, &res), SKV_E_STORE_IO);
	expect_used(&e, 4, 0, 1);
	assert_int_equal(settle(&e, &r, 0, 4, 4).committed, 4);
	expect_used(&e, 4, 0, 0);
	env_destroy(&e);
}

/* ---- room ------------------------------------------------------------------------------------ */

static void what_fits_is_taken(void **state)
{
	struct reserved r;
	struct env e;

	(void)state;
	env_init(&e);
	e.o.open_percent = 50;
	env_open(&e);
	env_make_pages(&e, 40);
	assert_int_equal(reserve_as(&e, 1, 60, (struct env_start){ 0 }, &r), SKV_E_TOO_LARGE);
	reserve(&e, 1, 60, &r); /* more than there are at all */
	assert_int_equal(r.n_write, 20);
	for (uint32_t i = 0; i < 60; i++)
		assert_int_equal(r.outcome[i], i < 20 ? SKV_START_WRITE : SKV_START_NO_ROOM);
	settle(&e, &r, 0, 20, 20);
	reserve(&e, 1, 60, &r);
	assert_int_equal(r.n_write, 20);
	for (uint32_t i = 0; i < 60; i++)
		assert_int_equal(r.outcome[i], i < 20   ? SKV_START_EXISTS
					       : i < 40 ? SKV_START_WRITE
							: SKV_START_NO_ROOM);
	reserve(&e, 2, 1, &r); /* as many are open as may be */
	assert_int_equal(r.n_write, 0);
	assert_int_equal(r.outcome[0], SKV_START_NO_ROOM);
	env_check(&e);
	env_destroy(&e);
}

static void all_is_taken_or_nothing(void **state)
{
	const struct env_start whole = { .fit = true, .whole = true, .want_existing = true };
	struct reserved r;
	struct env e;

	(void)state;
	open_pages(&e, 10);
	put(&e, 1, 2);
	assert_int_equal(reserve_as(&e, 1, 3, whole, &r), SKV_OK);
	assert_int_equal(r.n_write, 1);
	assert_int_equal(reserve_as(&e, 1, 5, whole, &r), SKV_OK); /* the third is being written */
	assert_int_equal(r.n_write, 0);
	assert_int_equal(r.outcome[1], SKV_START_EXISTS);
	assert_int_equal(r.outcome[2], SKV_START_BUSY);
	assert_int_equal(r.outcome[4], SKV_START_NO_ROOM);
	assert_int_equal(reserve_as(&e, 2, 10, whole, &r), SKV_OK); /* nine at most could be had */
	assert_int_equal(r.n_write, 0);
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(r.outcome[i], SKV_START_NO_ROOM);
	assert_int_equal(found(&e, 1, 2), 2);
	expect_used(&e, 3, 0, 1);
	env_destroy(&e);
}

/* The same keys as a chain and independent: the last of them is used, and room is made for
 * three. */
static void independent_keys_go_by_their_own_use(bool independent, bool crash, uint32_t *kept)
{
	struct skv_lookup_res res;
	struct reserved r;
	struct skv_key k[8];
	struct env e;

	open_pages(&e, 8);
	assert_int_equal(reserve_as(&e, 1, 8,
				    (struct env_start){ .fit = true, .independent = independent },
				    &r), SKV_OK);
	if (crash) {
		env_crash(&e);
		env_open(&e);
	}
	assert_int_equal(settle(&e, &r, 0, 8, 8).committed, 8);
	env_keys(k, 8, 1, 1);
	env_advance(&e, 100);
	assert_int_equal(env_lookup(&e, k + 7, 1, SKV_LOOKUP_BATCH, 0, &res), SKV_OK);
	assert_int_equal(res.matched, 1);
	env_advance(&e, 100);
	reserve(&e, 2, 3, &r);
	assert_int_equal(r.n_write, 3);
	*kept = 0;
	for (uint32_t i = 0; i < 8; i++)
		*kept |= env_match(&e, k + i, 1) << i;
	env_destroy(&e);
}

static void imported_keys_are_no_chain(void **state)
{
	uint32_t kept;

	(void)state;
	independent_keys_go_by_their_own_use(false, false, &kept);
	assert_int_equal(kept, 0x1f); /* tails first */
	for (unsigned crash = 0; crash < 2; crash++) {
		independent_keys_go_by_their_own_use(true, crash, &kept);
		assert_true(kept & 0x80);
		assert_int_equal(__builtin_popcount(kept), 5);
	}
}

/* Keys of the request itself stay while room is made for the others; leased pages stay anyway. */
static void a_full_storage_evicts(void **state)
{
	struct skv_lookup_res l;
	struct reserved r;
	struct env e;
	uint64_t now;

	(void)state;
	open_pages(&e, 30);
	for (uint64_t hi = 1; hi <= 3; hi++) {
		assert_int_equal(put(&e, hi, 10), 10);
		env_advance(&e, 10);
	}
	reserve(&e, 1, 20, &r); /* the oldest ten are asked for again */
	assert_int_equal(r.n_write, 10);
	assert_int_equal(r.outcome[0], SKV_START_EXISTS);
	settle(&e, &r, 10, 20, 20);
	assert_int_equal(found(&e, 1, 20), 20);
	assert_int_equal(found(&e, 2, 10), 0);
	assert_int_equal(found(&e, 3, 10), 10);
	assert_int_equal(env_lookup(&e, r.key, 20, SKV_LOOKUP_PREFIX, 5000, &l), SKV_OK);
	assert_int_equal(l.matched, 20);
	now = skv_now_ms(e.o.clock);
	reserve(&e, 4, 15, &r);
	assert_int_equal(r.n_write, 10); /* and nothing was waited for */
	assert_true(skv_now_ms(e.o.clock) - now < 200);
	assert_int_equal(found(&e, 1, 20), 20);
	reserve(&e, 5, 5, &r);
	assert_int_equal(r.n_write, 0);
	assert_true(skv_now_ms(e.o.clock) - now < 200);
	expect_used(&e, 30, 0, 1);
	env_destroy(&e);
}

/* The start's own hits are no room, even if they are all that exists. */
static void a_start_keeps_what_it_found(void **state)
{
	struct reserved r, other;
	struct env e;

	(void)state;
	open_pages(&e, 4);
	assert_int_equal(put(&e, 1, 2), 2);
	reserve(&e, 2, 2, &other);
	assert_int_equal(other.n_write, 2);
	reserve(&e, 1, 4, &r);
	assert_int_equal(r.n_write, 0);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(r.outcome[i], i < 2 ? SKV_START_EXISTS : SKV_START_NO_ROOM);
	assert_int_equal(found(&e, 1, 2), 2);
	reserve(&e, 3, 2, &r); /* for others they may go */
	assert_int_equal(r.n_write, 2);
	env_check(&e);
	env_destroy(&e);
	open_pages(&e, 100); /* the same with a quota of the group */
	assert_int_equal(env_group(&e, "g", 4, "s"), SKV_OK);
	assert_int_equal(put(&e, 1, 2), 2);
	reserve(&e, 2, 2, &other);
	reserve(&e, 1, 4, &r);
	assert_int_equal(r.n_write, 0);
	assert_int_equal(r.outcome[1], SKV_START_EXISTS);
	env_check(&e);
	env_destroy(&e);
}

/* With the manager's own shares of what may be open, and leased. */
static void the_smallest_storages_work(void **state)
{
	struct skv_lookup_res l;
	struct reserved r;
	struct env e;

	(void)state;
	for (uint64_t pages = 1; pages <= 4; pages++) {
		env_init(&e);
		e.o.open_percent = e.o.leased_percent = 50;
		e.o.free_percent = 2;
		env_open(&e);
		env_make_pages(&e, pages);
		reserve(&e, 1, 4, &r);
		assert_int_equal(r.n_write, (pages + 1) / 2);
		settle(&e, &r, 0, r.n_write, r.n_write);
		assert_int_equal(env_lookup(&e, r.key, 1, SKV_LOOKUP_PREFIX, 5000, &l), SKV_OK);
		assert_int_equal(l.lease_ms, 5000);
		env_destroy(&e);
	}
}

/* However fast it fills: no more is kept free than free_percent says. */
static void a_storage_may_be_full(void **state)
{
	struct env e;

	(void)state;
	env_init(&e);
	e.o.free_percent = 2;
	env_open(&e);
	env_make_pages(&e, 1000);
	for (uint64_t hi = 1; hi <= 19; hi++) {
		assert_int_equal(put(&e, hi, 50), 50);
		env_advance(&e, 25);
	}
	for (uint64_t hi = 1; hi <= 19; hi++)
		assert_int_equal(found(&e, hi, 50), 50);
	env_destroy(&e);
}

static void a_quota_of_pages_binds(void **state)
{
	struct skv_type_quota quota = { "external", 15, 0 };
	const char *s = "s";
	struct skv_group_spec g = { .name = "g", .capacity = 20, .storages = &s, .n_storages = 1 };
	struct skv_lookup_res l;
	struct reserved r;
	struct env e;

	(void)state;
	open_pages(&e, 100);
	assert_int_equal(skv_cluster_group_put(e.cluster, &g, SKV_PUT_ANY, NULL, NULL, &e.err),
			 SKV_OK);
	reserve(&e, 1, 30, &r);
	assert_int_equal(r.n_write, 20);
	settle(&e, &r, 0, 20, 20);
	assert_int_equal(put(&e, 2, 12), 12); /* evicts */
	assert_int_equal(env_lookup(&e, r.key, 8, SKV_LOOKUP_BATCH, 5000, &l), SKV_OK);
	assert_int_equal(l.matched, 8);
	reserve(&e, 3, 30, &r);
	assert_int_equal(r.n_write, 12);
	settle(&e, &r, 0, 0, 12);
	g.capacity = 0;
	g.quotas = &quota;
	g.n_quotas = 1;
	assert_int_equal(skv_cluster_group_put(e.cluster, &g, SKV_PUT_ANY, NULL, NULL, &e.err),
			 SKV_OK);
	reserve(&e, 4, 30, &r);
	assert_int_equal(r.n_write, 7);
	settle(&e, &r, 0, 7, 7);
	g.n_quotas = 0;
	g.max_blocks = 18;
	assert_int_equal(skv_cluster_group_put(e.cluster, &g, SKV_PUT_ANY, NULL, NULL, &e.err),
			 SKV_OK);
	reserve(&e, 5, 30, &r);
	assert_int_equal(r.n_write, 3);
	env_check(&e);
	env_destroy(&e);
}

static void a_disabled_storage_is_an_error(void **state)
{
	struct skv_storage_spec s = { .name = "s", .type = "external", .root = "", .capacity = 10 };
	struct reserved r;
	struct env e;

	(void)state;
	open_pages(&e, 10);
	assert_int_equal(skv_cluster_storage_put(e.cluster, &s, SKV_PUT_ANY, NULL, &e.err), SKV_OK);
	assert_int_equal(reserve_as(&e, 1, 4, (struct env_start){ .fit = true }, &r),
			 SKV_E_UNAVAILABLE);
	env_destroy(&e);
}

static void places_are_taken_if_they_are_free(void **state)
{
	const uint64_t places[] = { 7, 3, 3, 10, 0, UINT64_MAX, 9, 5 };
	const uint8_t expect[] = { SKV_START_WRITE,   SKV_START_WRITE, SKV_START_NO_ROOM,
				   SKV_START_NO_ROOM, SKV_START_WRITE, SKV_START_NO_ROOM,
				   SKV_START_WRITE,   SKV_START_WRITE };
	struct reserved r;
	struct env e;

	(void)state;
	open_pages(&e, 10);
	assert_int_equal(reserve_as(&e, 1, 8, (struct env_start){ .offsets = places, .fit = true },
				    &r), SKV_OK);
	assert_int_equal(r.n_write, 5);
	for (uint32_t i = 0; i < 8; i++) {
		assert_int_equal(r.outcome[i], expect[i]);
		assert_true(r.page[i] == (expect[i] == SKV_START_WRITE ? places[i] : NONE));
	}
	settle(&e, &r, 0, 2, 2);
	/* 5 is held now: it does not give way */
	assert_int_equal(settle(&e, &r, 7, 7, 8).given_up, 1);
	assert_int_equal(reserve_as(&e, 2, 8, (struct env_start){ .offsets = places }, &r), SKV_OK);
	assert_int_equal(r.n_write, 0);
	env_crash(&e);
	env_open(&e);
	expect_used(&e, 4, 1, 1);
	env_advance(&e, 20000);
	env_advance(&e, 4000);
	expect_used(&e, 2, 0, 0);
	env_destroy(&e);
}

/* ---- recovery -------------------------------------------------------------------------------- */

static void restart(struct env *e, bool clean)
{
	if (clean)
		env_shutdown(e);
	else
		env_crash(e);
	env_open(e);
	env_check(e);
}

/* Checks the store with fsck while no manager runs on it. */
static void check_offline(struct env *e, uint64_t used, uint64_t held, uint64_t sessions)
{
	struct skv_fsck_report r;
	struct skv_store *s;

	assert_int_equal(skv_store_open(e->ops, &e->store_options, &s, &e->err), SKV_OK);
	assert_int_equal(skv_cluster_fsck(s, true, NULL, NULL, NULL, &r, &e->err), SKV_OK);
	assert_int_equal(r.problems, 0);
	assert_int_equal(r.used_slots, used);
	assert_int_equal(r.held_slots, held);
	assert_int_equal(r.sessions, sessions);
	skv_store_close(s);
}

static void fsck_knows_pages(void **state)
{
	struct reserved r;
	struct env e;

	(void)state;
	open_pages(&e, 30);
	reserve(&e, 1, 12, &r);
	settle(&e, &r, 0, 4, 6);
	env_shutdown(&e);
	check_offline(&e, 10, 2, 1);
	env_open(&e);
	assert_int_equal(settle(&e, &r, 6, 12, 12).committed, 6);
	env_destroy(&e);
}

/* Half of it settled, then the manager ends; twice, so that a checkpoint's tail
 * is read and written again. */
static void half_settled_sessions_survive(void **state)
{
	struct reserved r;
	struct env e;

	(void)state;
	for (unsigned how = 0; how < 8; how++) {
		open_pages(&e, 30);
		assert_int_equal(reserve_as(&e, 1, 12, (struct env_start){ .grace_ms = 2500 }, &r),
				 SKV_OK);
		restart(&e, how & 1);
		assert_int_equal(settle(&e, &r, 0, 3, 5).committed, 3);
		restart(&e, how & 2);
		expect_used(&e, 10, 2, 1);
		assert_int_equal(found(&e, 1, 12), 3);
		assert_int_equal(settle(&e, &r, 0, 3, 5).committed, 0);
		assert_int_equal(settle(&e, &r, 7, 9, 10).committed, 2);
		restart(&e, how & 4);
		expect_used(&e, 9, 3, 1);
		if (how % 3 == 0) {
			assert_int_equal(settle(&e, &r, 5, 7, 7).committed, 2);
			assert_int_equal(settle(&e, &r, 10, 12, 12).committed, 2);
			expect_used(&e, 9, 3, 0);
		} else {
			env_advance(&e, 5001);
			env_advance(&e, 1);
			expect_used(&e, 5, 7, 0);
		}
		restart(&e, how & 1);
		env_advance(&e, 2400);
		env_advance(&e, 5200);
		expect_used(&e, how % 3 == 0 ? 9 : 5, 0, 0);
		assert_int_equal(found(&e, 1, 3), 3);
		env_destroy(&e);
	}
}

static void a_checkpoint_between_record_and_answer(void **state)
{
	struct skv_partial_req q = { .tenant = "t", .instance = "i" };
	struct skv_partial_res res;
	struct skv_error err = { 0 };
	struct skv_arena arena;
	struct reserved r;
	struct env e;
	int status = 77;
	struct skv_done done = { on_done, &status };

	(void)state;
	open_pages(&e, 30);
	reserve(&e, 1, 6, &r);
	skv_arena_init(&arena);
	q.keys = r.key;
	q.offsets = r.page;
	q.n_commit = 4;
	assert_int_equal(skv_core_finish_partial(e.core, &q, &res, &arena, &err, &done),
			 SKV_PENDING);
	assert_int_equal(skv_cluster_storage_delete(e.cluster, "s", &err), SKV_E_IN_USE);
	env_shutdown(&e); /* writes one */
	env_open(&e);
	env_check(&e);
	assert_true(status != 77);
	assert_int_equal(found(&e, 1, 6), status == SKV_OK ? 4 : 0);
	skv_arena_destroy(&arena);
	env_destroy(&e);
}

/* The deadline passes between the record of the deletion and its end. */
static void an_instance_goes_with_its_reservations(void **state)
{
	struct reserved r;
	struct env e;

	(void)state;
	for (unsigned normal = 0; normal < 2; normal++) {
		env_init(&e);
		e.o.grace_max_ms = 3000;
		e.store_options.durability = normal ? SKV_DURABILITY_NORMAL : SKV_DURABILITY_FULL;
		env_open(&e);
		env_make_pages(&e, 30);
		assert_int_equal(put(&e, 1, 4), 4);
		assert_int_equal(reserve_as(&e, 2, 8,
					    (struct env_start){ .grace_ms = 3000,
								.deadline_ms = 20000 }, &r),
				 SKV_OK);
		settle(&e, &r, 0, 2, 4);
		assert_int_equal(skv_cluster_instance_delete(e.cluster, "t", "i", NULL, &e.err),
				 SKV_OK);
		expect_used(&e, 0, 6, 0);
		restart(&e, false);
		expect_used(&e, 0, 6, 0); /* nobody had leased anything */
		env_advance(&e, 22900);
		env_advance(&e, 200);
		expect_used(&e, 0, 0, 0);
		env_destroy(&e);
	}
}

/* ---- each store call, each allocation -------------------------------------------------------- */

static bool transient(int rc)
{
	return rc == SKV_E_STORE_IO || rc == SKV_E_STORE_FULL || rc == SKV_E_UNKNOWN_OUTCOME ||
	       rc == SKV_E_NOT_READY || rc == SKV_E_NOT_OWNER || rc == SKV_E_NOMEM ||
	       rc == SKV_E_UNAVAILABLE;
}

/* The client asks again as theirs do: what was in flight may have become busy. */
static uint32_t put_anyhow(struct env *e, uint64_t hi, uint32_t n)
{
	struct skv_partial_req q = { .tenant = "t", .instance = "i" };
	struct skv_partial_res res;
	struct reserved r = { .n = 0 };
	uint32_t written = 0;
	int rc = SKV_E_NOMEM;

	for (int i = 0; i < 12 && transient(rc); i++) {
		rc =
			reserve_as(e, hi, n,
				   (struct env_start){ .fit = true, .want_existing = true,
						       .grace_ms = 1500 }, &r);
		if (transient(rc))
			env_advance(e, 700);
	}
	assert_int_equal(rc, SKV_OK);
	for (uint32_t i = 0; i < n; i++) {
		if (r.outcome[i] != SKV_START_WRITE)
			continue;
		r.key[written] = r.key[i];
		r.page[written++] = r.page[i];
	}
	q.keys = r.key;
	q.offsets = r.page;
	q.n_commit = written ? written - 1 : 0;
	q.give_up = r.page + q.n_commit;
	q.n_give_up = written ? 1 : 0;
	rc = SKV_E_NOMEM;
	for (int i = 0; i < 12 && transient(rc); i++) {
		rc = env_partial(e, &q, &res);
		if (transient(rc))
			env_advance(e, 300);
	}
	assert_int_equal(rc, SKV_OK);
	return q.n_commit;
}

static uint32_t found_anyhow(struct env *e, uint64_t hi, uint32_t n)
{
	struct skv_lookup_res res = { 0 };
	struct skv_key k[MAX];
	int rc = SKV_E_NOMEM;

	env_keys(k, n, hi, 1);
	for (int i = 0; i < 12 && transient(rc); i++)
		rc = env_lookup(e, k, n, SKV_LOOKUP_PREFIX, 0, &res);
	assert_int_equal(rc, SKV_OK);
	return res.matched;
}

static void scenario(struct env *e)
{
	uint32_t n[3];

	for (uint32_t i = 0; i < 3; i++)
		n[i] = put_anyhow(e, i + 1, 12);
	for (uint32_t i = 0; i < 3; i++) {
		uint32_t there = found_anyhow(e, i + 1, 12);

		if (there < n[i] && there != 0) /* acknowledged, unless its deadline came first */
			fail_msg("%u of %u pages are there", there, n[i]);
	}
	skv_cluster_tick(e->cluster);
}

static void leaks_nothing(struct env *e)
{
	struct skv_stats st;

	env_check(e);
	env_advance(e, 30000);
	env_advance(e, 30000);
	env_stats(e, &st);
	expect_used(e, st.blocks, 0, 0);
}

static void every_store_call(void **state)
{
	static const struct {
		enum skv_fault_kind kind;
		int status;
	} faults[] = { { SKV_FAULT_ERROR, SKV_E_STORE_IO }, { SKV_FAULT_ERROR, SKV_E_STORE_FULL },
		       { SKV_FAULT_UNKNOWN_BEFORE, 0 }, { SKV_FAULT_UNKNOWN_AFTER, 0 } };

	(void)state;
	for (size_t f = 0; f < 8; f++) {
		uint64_t n = 1, seen;

		do {
			struct skv_fault rule = { .kind = faults[f / 2].kind, .at = n, .times = 1,
						  .status = faults[f / 2].status };
			struct env e;

			env_init(&e);
			e.faulty = true;
			e.store_options.durability =
				f % 2 ? SKV_DURABILITY_NORMAL : SKV_DURABILITY_FULL;
			e.o.grace_max_ms = 3000;
			e.o.journal_limit = 4096; /* a checkpoint happens on the way */
			env_open(&e);
			env_make_pages(&e, 40);
			skv_fault_store_set(e.store, &rule);
			scenario(&e);
			seen = skv_fault_store_seen(e.store);
			leaks_nothing(&e);
			restart(&e, n % 2);
			leaks_nothing(&e);
			env_destroy(&e);
		} while (seen >= n++);
		assert_true(n > 6);
	}
}

static void every_allocation(void **state)
{
	unsigned long n = 1;
	bool reached = true;

	(void)state;
	for (; reached; n++) {
		struct env e;

		open_pages(&e, 40);
		skv_mem_fail_at(n);
		scenario(&e);
		reached = skv_mem_count() >= n;
		skv_mem_fail_at(0);
		leaks_nothing(&e);
		restart(&e, false);
		leaks_nothing(&e);
		env_destroy(&e);
	}
	assert_true(n > 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_capacity_will_do),
		cmocka_unit_test(a_storage_grows_and_goes),
		cmocka_unit_test(pages_have_no_bytes),
		cmocka_unit_test(a_repeated_reservation_has_the_same_pages),
		cmocka_unit_test(pages_are_settled_one_by_one),
		cmocka_unit_test(what_is_not_as_said_is_ignored),
		cmocka_unit_test(a_repeat_waits_for_the_first),
		cmocka_unit_test(a_reservation_expires),
		cmocka_unit_test(ending_keeps_from_expiring),
		cmocka_unit_test(what_fits_is_taken),
		cmocka_unit_test(all_is_taken_or_nothing),
		cmocka_unit_test(imported_keys_are_no_chain),
		cmocka_unit_test(a_full_storage_evicts),
		cmocka_unit_test(a_start_keeps_what_it_found),
		cmocka_unit_test(the_smallest_storages_work),
		cmocka_unit_test(a_storage_may_be_full),
		cmocka_unit_test(a_quota_of_pages_binds),
		cmocka_unit_test(a_disabled_storage_is_an_error),
		cmocka_unit_test(places_are_taken_if_they_are_free),
		cmocka_unit_test(fsck_knows_pages),
		cmocka_unit_test(half_settled_sessions_survive),
		cmocka_unit_test(a_checkpoint_between_record_and_answer),
		cmocka_unit_test(an_instance_goes_with_its_reservations),
		cmocka_unit_test(every_store_call),
		cmocka_unit_test(every_allocation),
	};

	env_quiet();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
