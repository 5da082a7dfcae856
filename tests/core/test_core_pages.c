/*
 * test_core_pages.c - external storages and anonymous sessions: pages that clients reserve, write and settle by key
 * and number, in calls that know no session.
 */
#include "core_env.h"

#include <stdio.h>
#include <string.h>

#include <kvb/mem.h>

#define MAX 64u
#define NONE UINT64_MAX

/* What a reserve of keys {hi, first}... was answered. */
struct reserved {
	struct kvb_key key[MAX];
	uint64_t page[MAX]; /* NONE = not to be written */
	uint8_t outcome[MAX];
	uint32_t n, n_write;
};

static int reserve_as(struct env *e, uint64_t hi, uint32_t n, struct env_start as, struct reserved *r)
{
	struct kvb_start_res res;
	int rc;

	memset(r, 0, sizeof *r);
	env_keys(r->key, n, hi, 1);
	as.keys = r->key;
	as.n = n;
	as.anonymous = true;
	rc = env_start(e, &as, &res);
	if (rc != KVB_OK)
		return rc;
	assert_int_equal(res.n_keys, n);
	assert_string_equal(res.session, "");
	for (uint32_t i = 0; i < n; i++) {
		r->outcome[i] = res.outcome[i];
		r->page[i] = NONE;
		if (res.outcome[i] != KVB_START_WRITE && !(res.outcome[i] == KVB_START_EXISTS && as.want_existing))
			continue;
		assert_int_equal(res.loc[i].length, 1);
		assert_string_equal(res.files.v[res.loc[i].file].type, "external");
		assert_string_equal(res.files.v[res.loc[i].file].path, "");
		r->page[i] = res.loc[i].offset;
	}
	r->n = n;
	r->n_write = res.n_write;
	return KVB_OK;
}

static void reserve(struct env *e, uint64_t hi, uint32_t n, struct reserved *r)
{
	int rc = reserve_as(e, hi, n, (struct env_start){ .fit = true, .want_existing = true }, r);

	if (rc != KVB_OK)
		fail_msg("reserve: %s %s", kvb_status_name(rc), e->err.message);
}

/* Commits keys [from, to), gives up [to, end). */
static struct kvb_settle_res settle(struct env *e, const struct reserved *r, uint32_t from, uint32_t to, uint32_t end)
{
	struct kvb_settle_req q = { .tenant = "t", .instance = "i", .keys = r->key + from, .offsets = r->page + from,
				    .n_commit = to - from, .give_up = r->page + to, .n_give_up = end - to };
	struct kvb_settle_res res;

	assert_int_equal(env_settle(e, &q, &res), KVB_OK);
	assert_int_equal(res.committed + res.ignored_commits, q.n_commit);
	assert_int_equal(res.given_up + res.ignored_give_ups, q.n_give_up);
	return res;
}

static uint32_t put(struct env *e, uint64_t hi, uint32_t n)
{
	struct reserved r;
	struct kvb_settle_res res;

	reserve(e, hi, n, &r);
	res = settle(e, &r, 0, n, n);
	assert_int_equal(res.committed, r.n_write);
	return r.n_write;
}

static uint32_t found(struct env *e, uint64_t hi, uint32_t n)
{
	struct kvb_key k[MAX];

	env_keys(k, n, hi, 1);
	return env_match(e, k, n);
}

static void open_pages(struct env *e, uint64_t pages)
{
	env_init(e);
	env_open(e);
	env_make_pages(e, pages);
}

static void expect_used(struct env *e, uint64_t used, uint64_t held, uint64_t sessions)
{
	struct kvb_stats st;

	env_check(e);
	env_stats(e, &st);
	assert_int_equal(st.storages[0].used_bytes, used);
	assert_int_equal(st.storages[0].quarantined_bytes, held);
	assert_int_equal(st.sessions, sessions);
}

/* ---- the storage ----------------------------------------------------------------------------------- */

static void any_capacity_will_do(void **state)
{
	struct kvb_storage_spec s = { .name = "s", .type = "external", .root = "", .capacity = 5000, .enabled = true };
	struct kvb_stats st;
	struct env e;

	(void)state;
	env_init(&e);
	env_open(&e);
	assert_int_equal(kvb_core_storage_put(e.core, &s, NULL, &e.err), KVB_OK);
	env_stats(&e, &st);
	assert_int_equal(st.storages[0].spec.capacity, 5000);
	assert_int_equal(st.storages[0].spec.unit, 0);
	assert_int_equal(st.storages[0].spec.file_size, 0);
	assert_int_equal(st.storages[0].file_bytes, 5000);
	assert_true(st.storages[0].healthy);
	s.unit = 4096;
	assert_int_equal(kvb_core_storage_put(e.core, &s, NULL, &e.err), KVB_E_INVALID);
	assert_string_equal(e.err.field, "unit");
	s.unit = 0;
	s.file_size = 4096;
	assert_int_equal(kvb_core_storage_put(e.core, &s, NULL, &e.err), KVB_E_INVALID);
	assert_string_equal(e.err.field, "file_size");
	s.file_size = 0;
	s.capacity = 1ull << 33;
	assert_int_equal(kvb_core_storage_put(e.core, &s, NULL, &e.err), KVB_E_INVALID);
	s.capacity = 4999;
	assert_int_equal(kvb_core_storage_put(e.core, &s, NULL, &e.err), KVB_E_CONFLICT);
	s.name = "none";
	s.capacity = 0;
	assert_int_equal(kvb_core_storage_put(e.core, &s, NULL, &e.err), KVB_OK);
	assert_int_equal(kvb_core_storage_delete(e.core, "none", &e.err), KVB_OK);
	env_destroy(&e);
}

static void a_storage_grows_and_goes(void **state)
{
	struct kvb_storage_spec s = { .name = "s", .type = "external", .root = "", .capacity = 50, .enabled = true };
	struct reserved r;
	struct env e;

	(void)state;
	open_pages(&e, 10);
	assert_int_equal(put(&e, 1, 10), 10);
	assert_int_equal(kvb_core_storage_put(e.core, &s, NULL, &e.err), KVB_OK);
	reserve(&e, 2, 40, &r);
	assert_int_equal(r.n_write, 40);
	assert_int_equal(found(&e, 1, 10), 10);
	env_crash(&e);
	env_open(&e);
	assert_int_equal(settle(&e, &r, 0, 40, 40).committed, 40);
	assert_int_equal(found(&e, 1, 10), 10);
	expect_used(&e, 50, 0, 0);
	assert_int_equal(kvb_core_instance_delete(e.core, "t", "i", &e.err), KVB_OK);
	assert_int_equal(kvb_core_group_delete(e.core, "g", &e.err), KVB_OK);
	assert_int_equal(kvb_core_storage_delete(e.core, "s", &e.err), KVB_OK);
	env_crash(&e);
	env_open(&e);
	env_check(&e);
	env_destroy(&e);
}

static void pages_have_no_bytes(void **state)
{
	struct kvb_spec big = { "page", 2 }, two[2] = { { "a", 1 }, { "b", 1 } };
	const char *both[2] = { "s", "bytes" };
	struct kvb_group_spec g = { .name = "both", .storages = both, .n_storages = 2 };
	struct kvb_key k = { 1, 1 };
	uint64_t place = 0;
	struct kvb_start_res res;
	struct env e;

	(void)state;
	open_pages(&e, 10);
	assert_int_equal(env_instance(&e, "big", "g", &big, 1), KVB_E_INVALID);
	assert_string_equal(e.err.field, "specs[0].size");
	assert_int_equal(env_storage(&e, "bytes", 1 << 20, 65536), KVB_OK);
	assert_int_equal(kvb_core_group_put(e.core, &g, NULL, NULL, &e.err), KVB_E_INVALID);
	assert_string_equal(e.err.field, "storages");
	assert_int_equal(env_instance(&e, "two", "g", two, 2), KVB_OK);
	assert_int_equal(env_start(&e, &(struct env_start){ .instance = "two", .keys = &k, .n = 1, .fit = true }, &res),
			 KVB_E_UNSUPPORTED);
	assert_int_equal(env_start(&e, &(struct env_start){ .instance = "two", .keys = &k, .n = 1, .places = &place }, &res),
			 KVB_E_UNSUPPORTED);
	assert_int_equal(env_start(&e, &(struct env_start){ .keys = &k, .n = 1, .anonymous = true, .request_id = "r" }, &res),
			 KVB_E_INVALID);
	assert_string_equal(e.err.field, "request_id");
	env_destroy(&e);
}

/* ---- settling -------------------------------------------------------------------------------------- */

static void pages_are_settled_one_by_one(void **state)
{
	struct reserved r, again;
	struct kvb_settle_res s;
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
		assert_int_equal(again.outcome[i], i < 4 ? KVB_START_EXISTS : i < 6 ? KVB_START_WRITE : KVB_START_BUSY);
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
	struct kvb_settle_req q = { .tenant = "t", .instance = "i", .give_up = odd, .n_give_up = 3 };
	struct kvb_settle_res s;
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
	assert_int_equal(env_settle(&e, &q, &s), KVB_OK);
	assert_int_equal(s.given_up, 0);
	wrong = a;
	wrong.page[0] = a.page[3]; /* is a key's page by now */
	assert_int_equal(settle(&e, &wrong, 0, 0, 1).given_up, 0);
	wrong.page[1] = wrong.page[2]; /* twice */
	assert_int_equal(settle(&e, &wrong, 0, 0, 3).given_up, 1);
	q.instance = "nobody";
	assert_int_equal(env_settle(&e, &q, &s), KVB_E_NOT_FOUND);
	q.instance = "i";
	q.n_give_up = KVB_MAX_KEYS + 1;
	assert_int_equal(env_settle(&e, &q, &s), KVB_E_TOO_LARGE);
	assert_string_equal(e.err.field, "give_up");
	q.n_commit = KVB_MAX_KEYS + 1;
	assert_int_equal(env_settle(&e, &q, &s), KVB_E_TOO_LARGE);
	assert_string_equal(e.err.field, "keys");
	env_check(&e);
	env_destroy(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_capacity_will_do),
		cmocka_unit_test(a_storage_grows_and_goes),
		cmocka_unit_test(pages_have_no_bytes),
		cmocka_unit_test(pages_are_settled_one_by_one),
		cmocka_unit_test(what_is_not_as_said_is_ignored),
	};

	env_quiet();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
