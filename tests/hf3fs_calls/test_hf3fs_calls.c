/*
 * test_hf3fs_calls.c - SGLang's operations as calls, without a transport, in both modes: a page's
 * life, spaces made whole, wishes, failures of all kinds, portions, bad input.
 *
 * Jobs of workers run here, by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <skv/mem.h>

#include "calls.h"

#define RESERVE "/0/reserve_and_allocate_page_indices"
#define CONFIRM "/0/confirm_write"
#define EXISTS "/0/exists"
#define GET "/0/get_page_indices"
#define DELETE "/0/delete_keys"

/* The page that a reservation of one key got, or -1. */
static long reserve(const char *key)
{
	char body[256];
	const char *got;

	snprintf(body, sizeof body, "{\"keys\":[[\"%s\",\"\"]]}", key);
	got = ask(RESERVE, body);
	assert_int_equal(status, 200);
	if (strncmp(got, "{\"indices\":[[false,", 19) != 0)
		fail_msg("%s: %s", key, got);
	return strtol(got + 19, NULL, 10);
}

static void confirm(const char *key, long page)
{
	char body[256];

	snprintf(body, sizeof body, "{\"written_keys_to_confirm\":[[\"%s\",%ld]]}", key, page);
	expect(CONFIRM, body, 204, "");
}

static long put(const char *key)
{
	long page = reserve(key);

	assert_true(page >= 0);
	confirm(key, page);
	return page;
}

static void initialize(long n)
{
	char body[64];

	snprintf(body, sizeof body, "{\"num_pages\":%ld}", n);
	expect("/0/initialize", body, 204, "");
}

static void expect_page(const char *key, long page)
{
	char body[256], answer[64];

	snprintf(body, sizeof body, "{\"keys\":[\"%s\"]}", key);
	snprintf(answer, sizeof answer, "{\"indices\":[%ld]}", page);
	expect(GET, body, 200, page < 0 ? "{\"indices\":[null]}" : answer);
}

/* ---- a page's life --------------------------------------------------------------------------- */

static void test_life(void **state)
{
	char answer[128];
	long a, b;

	(void)state;
	initialize(8);
	a = reserve("a");
	assert_true(a >= 0 && a < 8);
	expect(EXISTS, "{\"keys\":[\"a\"]}", 200, "{\"exists\":[false]}");
	expect_page("a", -1);
	expect(RESERVE, "{\"keys\":[[\"a\",\"\"]]}", 200, "{\"indices\":[[true,-1]]}");
	assert_int_equal(counted(HF3FS_in_flight), 1);
	confirm("a", a);
	confirm("a", a);
	assert_int_equal(counted(HF3FS_confirmed), 1);
	assert_int_equal(counted(HF3FS_ignored_confirms), 1);
	b = put("b");
	assert_int_not_equal(a, b);
	snprintf(answer, sizeof answer, "{\"indices\":[%ld,%ld]}", b, a);
	expect(GET, "{\"keys\":[\"b\",\"a\"]}", 200, answer);
	snprintf(answer, sizeof answer, "{\"indices\":[[true,%ld],[true,%ld]]}", a, a);
	expect(RESERVE, "{\"keys\":[[\"a\",\"\"],[\"a\",null]],\"namespace\":\"kv\"}", 200, answer);
	expect(DELETE, "{\"keys\":[\"a\",\"nothing\",\"a\"]}", 204, "");
	expect_page("a", -1);
	expect_page("b", b);
	expect("/0/clear", "{}", 204, "");
	expect_page("b", -1);
	expect("/0/clear", "", 204, "");
}

static void test_missing_keys(void **state)
{
	(void)state;
	initialize(8);
	put("a");
	put("c");
	expect(EXISTS, "{\"keys\":[\"a\",\"b\",\"c\"]}", 200, "{\"exists\":[true,false,false]}");
	expect(GET, "{\"keys\":[\"a\",\"b\",\"c\"]}", 200, "{\"indices\":[null,null,null]}");
	assert_int_equal(counted(HF3FS_get_all_null), 1);
	expect(EXISTS, "{\"keys\":[]}", 200, "{\"exists\":[]}");
	expect(GET, "{\"keys\":[]}", 200, "{\"indices\":[]}");
	expect(RESERVE, "{\"keys\":[]}", 200, "{\"indices\":[]}");
	expect(DELETE, "{\"keys\":[]}", 204, "");
	expect(CONFIRM, "{}", 204, "");
}

/* Readers who got nothing hold nothing up. */
static void test_nulls_lease_nothing(void **state)
{
	(void)state;
	initialize(2);
	put("a");
	put("b");
	expect(GET, "{\"keys\":[\"a\",\"b\",\"x\"]}", 200, "{\"indices\":[null,null,null]}");
	assert_true(reserve("c") >= 0);
	assert_true(reserve("d") >= 0);
}

static void test_repeated_and_long_keys(void **state)
{
	char key[SKV_MAX_BLOCK_NAME + 1], body[3 * sizeof key];

	(void)state;
	initialize(8);
	memset(key, 'k', sizeof key);
	key[sizeof key - 1] = '\0';
	assert_int_equal(HF3FS_refused_full < HF3FS_COUNTERS, 1);
	snprintf(body, sizeof body,
		 "{\"keys\":[[\"a\",\"\"],[\"%s\",\"\"],[\"a\",\"\"],[\"b\",\"\"]]}", key);
	expect_in(RESERVE, body, 200, "],[false,-1],[true,-1],[false,");
	assert_int_equal(counted(HF3FS_reserved), 2);
	assert_int_equal(counted(HF3FS_refused_full), 1);
	snprintf(body, sizeof body, "{\"keys\":[\"%s\"]}", key);
	expect(EXISTS, body, 200, "{\"exists\":[false]}");
	expect(GET, body, 200, "{\"indices\":[null]}");
	expect(DELETE, body, 204, "");
	snprintf(body, sizeof body, "{\"keys\":[[\"%s\",\"\"]]}", key);
	expect(RESERVE, body, 200, "{\"indices\":[[false,-1]]}");
}

static void test_releases(void **state)
{
	char body[128];
	long a, b;

	(void)state;
	initialize(2);
	a = reserve("a");
	b = reserve("b");
	assert_int_equal(reserve("c"), -1);
	snprintf(body, sizeof body, "{\"pages_to_release\":[%ld,777,-1,%ld]}", a, a);
	expect(CONFIRM, body, 204, "");
	assert_int_equal(counted(HF3FS_released), 1);
	assert_int_equal(counted(HF3FS_ignored_releases), 3);
	assert_int_equal(reserve("c"), -1); /* the writer may still be writing */
	confirm("a", a);
	expect_page("a", -1);
	env_advance(&env, 7000);
	assert_int_equal(reserve("c") == a || reserve("d") == a, true);
	(void)b;
}

static void test_full(void **state)
{
	(void)state;
	initialize(2);
	expect_in(RESERVE, "{\"keys\":[[\"a\",\"\"],[\"b\",\"\"],[\"c\",\"\"]]}", 200,
		  "],[false,-1]]}");
	assert_int_equal(counted(HF3FS_refused_full), 1);
	env_advance(&env, 7000);
	put("a");
	put("b");
	assert_true(put("c") >= 0); /* evicts */
}

static void test_leases_hold(void **state)
{
	(void)state;
	initialize(2);
	put("a");
	put("b");
	expect(EXISTS, "{\"keys\":[\"a\",\"b\"]}", 200, "{\"exists\":[true,true]}");
	assert_int_equal(reserve("c"), -1);
	expect(DELETE, "{\"keys\":[\"a\"]}", 204, "");
	assert_int_equal(reserve("c"), -1);
	env_advance(&env, 6000);
	assert_true(reserve("c") >= 0);
}

/* ---- spaces ---------------------------------------------------------------------------------- */

static void test_spaces_are_apart(void **state)
{
	(void)state;
	initialize(2);
	put("a");
	expect("/007/initialize", "{\"num_pages\":2}", 204, "");
	expect("/0/initialize", "{\"num_pages\":2,\"namespace\":\"mamba\"}", 204, "");
	expect("/t/0/initialize", "{\"num_pages\":2}", 204, "");
	expect("/7/exists", "{\"keys\":[\"a\"]}", 200, "{\"exists\":[false]}");
	expect(EXISTS, "{\"keys\":[\"a\"],\"namespace\":\"mamba\"}", 200, "{\"exists\":[false]}");
	expect("/t/0/exists", "{\"keys\":[\"a\"]}", 200, "{\"exists\":[false]}");
	expect("/default/00/exists", "{\"keys\":[\"a\"],\"namespace\":null}", 200,
	       "{\"exists\":[true]}");
	assert_int_equal(counted(HF3FS_unknown_space), 0);
	expect("/9/exists", "{\"keys\":[\"a\"]}", 200, "{\"exists\":[false]}");
	assert_int_equal(counted(HF3FS_unknown_space), 1);
}

static void test_initialize_again(void **state)
{
	struct skv_storage_view *v;

	(void)state;
	initialize(2);
	put("a");
	initialize(9);
	expect(EXISTS, "{\"keys\":[\"a\"]}", 200, "{\"exists\":[true]}");
	assert_int_equal(skv_cluster_storage(env.cluster, "pages:default:0:kv", &env.arena, &v,
					     &env.err),
			 SKV_OK);
	assert_int_equal(v[0].spec.capacity, 2);
}

/* A crash between two of the space's three objects. */
static void test_half_made_space(void **state)
{
	const struct skv_storage_spec storage = {
		.name = "pages:default:0:kv", .type = "external", .root = "", .client_root = "",
		.client_mount = "",
		.capacity = 3, .enabled = true, .extra = "",
	};

	(void)state;
	assert_int_equal(
		skv_cluster_storage_put(env.cluster, &storage, SKV_PUT_ANY, NULL, &env.err),
		SKV_OK);
	expect(EXISTS, "{\"keys\":[\"a\"]}", 200, "{\"exists\":[false]}");
	assert_true(reserve("a") >= 0); /* the storage reports how many pages it has */
	initialize(9);
	assert_true(reserve("b") >= 0 && reserve("c") >= 0);
	assert_int_equal(reserve("d"), -1);
}

static void test_restart(void **state)
{
	struct skv_hf3fs_api_options o = options();
	long a;

	(void)state;
	initialize(4);
	a = put("a");
	close_api();
	env_crash(&env);
	env_open(&env);
	open_api(&o);
	expect_page("a", a);
}

static void test_no_pages(void **state)
{
	(void)state;
	initialize(0);
	expect("/1/initialize", "{\"num_pages\":-3}", 204, "");
	expect(EXISTS, "{\"keys\":[\"a\"]}", 200, "{\"exists\":[false]}");
	assert_int_equal(reserve("a"), -1);
	go_strict();
	initialize(0);
	expect(EXISTS, "{\"keys\":[\"a\"]}", 200, "{\"exists\":[false]}");
	expect(RESERVE, "{\"keys\":[[\"a\",\"\"]]}", 500, "Internal Server Error");
	assert_true(call.close);
}

static void test_tenants_of_tokens(void **state)
{
	struct skv_hf3fs_api_options o = options();
	char path[] = "/tmp/skv-tokens-XXXXXX";
	int fd = mkstemp(path);
	FILE *f = fdopen(fd, "w");

	(void)state;
	assert_non_null(f);
	fprintf(f, "write team 0123456789abcdef\n");
	fclose(f);
	tokens = path;
	change(&o);
	tokens = "";
	expect_in("/0/initialize", "{\"num_pages\":2}", 401, "{\"detail\":");
	authorization = "Bearer 0123456789abcdef";
	initialize(2);
	put("a");
	expect("/team/0/exists", "{\"keys\":[\"a\"]}", 200, "{\"exists\":[true]}");
	expect("/default/0/exists", "{\"keys\":[\"a\"]}", 403,
	       "{\"detail\":\"this token is not the tenant's\"}");
	authorization = NULL;
	unlink(path);
}

/* ---- failures -------------------------------------------------------------------------------- */

static const struct skv_fault failing = { .kind = SKV_FAULT_ERROR, .at = 1, .call = "append",
					  .status = SKV_E_STORE_IO };

static void open_faulty(void)
{
	const struct skv_hf3fs_api_options o = options();

	close_api();
	env_shutdown(&env);
	env_destroy(&env);
	env_init(&env);
	env.faulty = true;
	env_open(&env);
	open_api(&o);
}

static void test_store_down(void **state)
{
	struct skv_buf text = { 0 };
	long a;

	(void)state;
	open_faulty();
	initialize(4);
	a = reserve("a");
	skv_fault_store_set(env.store, &failing);
	expect(RESERVE, "{\"keys\":[[\"b\",\"\"]]}", 200, "{\"indices\":[[false,-1]]}");
	assert_int_equal(counted(HF3FS_answered_empty), 1);
	confirm("a", a);
	expect(DELETE, "{\"keys\":[\"a\"]}", 204, "");
	expect("/0/clear", "{}", 204, "");
	assert_int_equal(counted(HF3FS_dropped_confirm), 1);
	assert_int_equal(counted(HF3FS_dropped_clear), 1);
	hf3fs_expose(api, service, &env.arena, &text);
	skv_put_u8(&text, 0);
	assert_non_null(
		strstr((char *)text.data, "\nslabkv_pages_dropped_total{op=\"confirm\"} 1\n"));
	assert_non_null(strstr((char *)text.data, "\nslabkv_pages_answered_empty_total 1\n"));
	skv_buf_destroy(&text);
}

/* Bodies and unread answers of others: repeated a moment later, not an error that
 * outlasts the clients' retries. */
static void test_14_17_too_much_is_held(void **state)
{
	struct skv_hold others = { .tenant = NULL };

	(void)state;
	initialize(8);
	put("a");
	skv_hold_force(&service->holds, &others, service->holds.total + 1);
	expect(EXISTS, "{\"keys\":[\"a\"]}", 503,
	       "{\"detail\":\"too many bodies and answers at a time\"}");
	skv_hold_release(&service->holds, &others);
	expect(EXISTS, "{\"keys\":[\"a\"]}", 200, "{\"exists\":[true]}");
}

static uint64_t held(void) { return skv_metrics_get(&service->metrics, METRIC_calls_held); }

static void test_not_ready(void **state)
{
	struct skv_hf3fs_api_options o = options();

	(void)state;
	initialize(4);
	put("a");
	assert_int_equal(skv_cluster_demote(env.cluster, 600000, &env.err), SKV_OK);
	expect(EXISTS, "{\"keys\":[\"a\"]}", 200, "{\"exists\":[false]}");
	expect(GET, "{\"keys\":[\"a\"]}", 200, "{\"indices\":[null]}");
	expect(RESERVE, "{\"keys\":[[\"a\",\"\"]]}", 200, "{\"indices\":[[false,-1]]}");
	confirm("a", 0);
	expect(EXISTS, "{\"keys\":5}", 422, "{\"detail\":\"keys: must be a list\"}");
	o.retry_ms = 50;
	change(&o);
	expect(EXISTS, "{\"keys\":[\"a\"]}", 200, "{\"exists\":[false]}");
	assert_int_equal(held(), 1);
	expect(EXISTS, "{\"keys\":[\"a\"]}", 200, "{\"exists\":[false]}");
	assert_int_equal(held(), 1); /* the storage has been down for too long already */
}

/* A call that comes while it recovers is answered when it is ready. */
static void test_held_call(void **state)
{
	struct skv_hf3fs_api_options o = options();
	long a;

	(void)state;
	o.retry_ms = 60000;
	initialize(4);
	a = put("a");
	change(&o);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(skv_cluster_demote(env.cluster, 100, &env.err), SKV_OK);
		skv_fake_clock_advance(&env.clock, 200);
		expect_page("a", a);
		assert_int_equal(held(), i + 1);
	}
	assert_int_equal(skv_cluster_demote(env.cluster, 100, &env.err), SKV_OK);
	skv_fake_clock_advance(&env.clock, 200);
	expect("/5/initialize", "{\"num_pages\":2}", 204, "");
	expect("/5/reserve_and_allocate_page_indices", "{\"keys\":[[\"b\",\"\"]]}", 200,
	       "{\"indices\":[[false,0]]}");
}

/* SIGTERM: what is held is answered at once, so that nobody waits for it, and is asked
 * again of whoever comes next. */
static void test_held_call_at_the_end(void **state)
{
	struct skv_hf3fs_api_options o = options();

	(void)state;
	o.retry_ms = 2000;
	initialize(4);
	put("a");
	change(&o);
	assert_int_equal(skv_cluster_demote(env.cluster, 600000, &env.err), SKV_OK);
	for (int i = 0; i < 2; i++) {
		atomic_store(i ? &service->draining : &service->leaving, true);
		expect_in(EXISTS, "{\"keys\":[\"a\"]}", 503, "detail");
		assert_int_equal(call.retry_after, 1);
		expect_in("/5/initialize", "{\"num_pages\":2}", 503, "detail");
		assert_int_equal(held(), 0);
		atomic_store(&service->leaving, false);
	}
}

static void test_wishes(void **state)
{
	const struct skv_fault puts = { .kind = SKV_FAULT_ERROR, .at = 1, .call = "put",
					.status = SKV_E_STORE_IO };
	const struct skv_fault none = { .kind = SKV_FAULT_NONE };
	struct skv_storage_view *v;

	(void)state;
	open_faulty();
	skv_fault_store_set(env.store, &puts);
	initialize(4);
	assert_int_equal(counted(HF3FS_wishes), 1);
	initialize(9); /* the first one was told that it has 4 */
	assert_int_equal(counted(HF3FS_wishes), 2);
	expect(EXISTS, "{\"keys\":[\"a\"]}", 200, "{\"exists\":[false]}");
	assert_int_equal(reserve("a"), -1);
	skv_fault_store_set(env.store, &none);
	((struct pages *)api->ctx)->wishes[0].tried_ms = 0;
	assert_in_range(reserve("a"), 0, 3);
	assert_int_equal(((struct pages *)api->ctx)->n_wishes, 0);
	assert_int_equal(skv_cluster_storage(env.cluster, "pages:default:0:kv", &env.arena, &v,
					     &env.err),
			 SKV_OK);
	assert_int_equal(v[0].spec.capacity, 4);
}

/* Every call has an answer, whatever allocation fails, and the next call finds a consistent
 * state. */
static void test_no_memory(void **state)
{
	static const struct {
		const char *path, *body;
	} rows[] = {
		{ EXISTS, "{\"keys\":[\"a\",\"b\"]}" },
		{ GET, "{\"keys\":[\"a\",\"b\"]}" },
		{ RESERVE, "{\"keys\":[[\"a\",\"x\"],[\"c\",\"\"],[\"c\",\"\"]]}" },
		{ CONFIRM, "{\"written_keys_to_confirm\":[[\"b\",1]],\"pages_to_release\":[5,6]}" },
		{ DELETE, "{\"keys\":[\"c\"]}" },
		{ EXISTS, "{\"keys\":[[]]}" },
		{ "/1/initialize", "{\"num_pages\":4}" },
		{ "/1/reserve_and_allocate_page_indices", "{\"keys\":[[\"a\",\"\"]]}" },
		{ "/1/clear", "{}" },
	};

	(void)state;
	initialize(8);
	put("a");
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		for (unsigned long n = 1;; n++) {
			skv_request_destroy(&call);
			memset(&call, 0, sizeof call);
			skv_mem_fail_at(n);
			ask(rows[i].path, rows[i].body);
			if (skv_mem_count() < n)
				break;
			assert_true(status == 200 || status == 204 || status == 422 ||
				    status == 503);
		}
		skv_mem_fail_at(0);
		assert_int_equal(skv_cluster_wait_ready(env.cluster, 10000), SKV_OK);
	}
	env_check(&env);
	expect(EXISTS, "{\"keys\":[\"a\"]}", 200, "{\"exists\":[true]}");
	env_advance(&env, 8000);
	assert_true(put("n") >= 0);
}

/* ---- the mode of upstream -------------------------------------------------------------------- */

#define UNKNOWN                                                                 \
	"{\"detail\":\"Rank 5 namespace 'x\\\"y' not initialized. Please call " \
	"/5/initialize first.\"}"
#define RAISED 500, "Internal Server Error"

static void test_strict_spaces(void **state)
{
	(void)state;
	go_strict();
	expect("/5/exists", "{\"keys\":[\"a\"],\"namespace\":\"x\\\"y\"}", 404, UNKNOWN);
	expect("/5/exists", "{\"namespace\":\"x\\\"y\"}", RAISED);
	expect("/5/get_page_indices", "{\"namespace\":\"x\\\"y\"}", 404, UNKNOWN);
	expect("/5/confirm_write", "{\"namespace\":\"x\\\"y\",\"pages_to_release\":5}", 404,
	       UNKNOWN);
	expect("/5/clear", "{\"namespace\":\"x\\\"y\"}", 404, UNKNOWN);
	expect_in("/5/clear", "{\"namespace\":null}", 404, "namespace 'None' not");
	expect_in("/5/clear", "{\"namespace\":7}", 404, "namespace '7' not");
	expect("/-1/initialize", "{\"num_pages\":3}", 204, "");
	expect("/-01/exists", "{\"keys\":[\"a\"]}", 200, "{\"exists\":[false]}");
	expect("/t/0/exists", "{\"keys\":[\"a\"]}", 404, "{\"detail\":\"Not Found\"}");
	expect("/x/exists", "{\"keys\":[\"a\"]}", 422,
	       "{\"detail\":[{\"type\":\"int_parsing\",\"loc\":[\"path\",\"rank\"],\"msg\":\"Input "
	       "should be a valid integer, unable to parse string as an integer\","
	       "\"input\":\"x\"}]}");
}

static void test_strict_lists(void **state)
{
	char answer[64];
	long a;

	(void)state;
	go_strict();
	initialize(4);
	a = put("a");
	expect(EXISTS, "{\"keys\":\"xa\xc3\xbc\"}", 200, "{\"exists\":[false,true,false]}");
	expect(EXISTS, "{\"keys\":{\"b\":[1,2],\"a\":1}}", 200, "{\"exists\":[false,true]}");
	snprintf(answer, sizeof answer, "{\"indices\":[null,%ld]}", a);
	expect(GET, "{\"keys\":[\"b\",\"a\"]}", 200, answer);
	snprintf(answer, sizeof answer, "{\"indices\":[[true,%ld],[true,%ld]]}", a, a);
	expect(RESERVE, "{\"keys\":[\"a1\",[\"a\",{}]]}", 200, answer);
	expect(RESERVE, "{\"keys\":[[\"a\"]]}", RAISED);
	expect(RESERVE, "{\"keys\":\"ab\"}", RAISED);
	expect(RESERVE, "{\"keys\":[[[],\"\"]]}", RAISED);
	expect(EXISTS, "{\"keys\":[[]]}", RAISED);
	expect(EXISTS, "{\"keys\":null}", RAISED);
	expect(EXISTS, "[]", RAISED);
	expect("/0/clear", "", RAISED);
	expect(CONFIRM, "{\"pages_to_release\":null}", RAISED);
	expect(CONFIRM,
	       "{\"written_keys_to_confirm\":[[\"a\",\"x\"]],\"pages_to_release\":[[],1.5]}", 204,
	       "");
	expect("/0/initialize", "{\"num_pages\":\"4\"}", 204, "");
	expect("/1/initialize", "{\"num_pages\":\"4\"}", RAISED);
	expect("/0/initialize", "{}", RAISED);
	expect("/1/initialize", "{\"num_pages\":true}", 204, "");
}

static void test_strict_full(void **state)
{
	(void)state;
	go_strict();
	initialize(1);
	assert_int_equal(reserve("a"), 0);
	expect(RESERVE, "{\"keys\":[[\"b\",\"\"]]}", RAISED);
	confirm("a", 0);
	expect(EXISTS, "{\"keys\":[\"a\"]}", 200, "{\"exists\":[true]}");
	assert_int_equal(reserve("b"), -1); /* upstream would take a reader's page */
}

/* ---- bad input ------------------------------------------------------------------------------- */

static void test_bad_input(void **state)
{
	static const struct {
		const char *path, *body;
		unsigned code;
		const char *part;
	} rows[] = {
		{ EXISTS, "", 400, "not JSON" },
		{ EXISTS, "{\"keys\":[\"a\"", 400, "not JSON" },
		{ EXISTS, "{\"keys\":[\"\xff\"]}", 400, "not UTF-8 at byte 10" },
		{ EXISTS, "{\"keys\":[],\"keys\":[]}", 400, "a name given twice" },
		{ EXISTS, "{\"keys\":[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]}", 400, "too deep" },
		{ EXISTS, "{\"keys\":[99999999999999999999]}", 400, "too large a number" },
		{ EXISTS, "[1]", 400, "must be an object" },
		{ EXISTS, "{}", 422, "keys: must be a list" },
		{ EXISTS, "{\"keys\":\"ab\"}", 422, "keys: " },
		{ EXISTS, "{\"keys\":[\"a\",[]]}", 422, "keys[1]: " },
		{ EXISTS, "{\"keys\":[\"a\"],\"namespace\":5}", 422, "namespace: " },
		{ RESERVE, "{\"keys\":[\"a\"]}", 422, "keys[0]: " },
		{ RESERVE, "{\"keys\":[[\"a\",\"\"],[\"a\",\"\",\"\"]]}", 422, "keys[1]: " },
		{ CONFIRM, "{\"written_keys_to_confirm\":[[\"a\",1.5]]}", 422,
		  "written_keys_to_confirm[0]: " },
		{ CONFIRM, "{\"written_keys_to_confirm\":[[{},1]]}", 422,
		  "written_keys_to_confirm[0]: " },
		{ CONFIRM, "{\"written_keys_to_confirm\":null}", 422, "written_keys_to_confirm: " },
		{ CONFIRM, "{\"pages_to_release\":[\"1\"]}", 422, "pages_to_release[0]: " },
		{ "/0/initialize", "{}", 422, "num_pages: " },
		{ "/0/initialize", "{\"num_pages\":true}", 422, "num_pages: " },
		{ "/0/initialize", "{\"num_pages\":9223372036854775807}", 422, "num_pages: " },
		{ "/-1/exists", "{\"keys\":[\"a\"]}", 422, "rank: " },
		{ "/x/exists", "{\"keys\":[\"a\"]}", 422, "rank: " },
		{ "/99999999999999999999/exists", "{\"keys\":[\"a\"]}", 422, "rank: " },
		{ "/v1/0/exists", "{\"keys\":[\"a\"]}", 404, "Not Found" },
		{ "/7/0/exists", "{\"keys\":[\"a\"]}", 404, "Not Found" },
		{ "/a%20b/0/exists", "{\"keys\":[\"a\"]}", 404, "Not Found" },
		{ "/0/nothing", "{}", 404, "{\"detail\":\"Not Found\"}" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		expect_in(rows[i].path, rows[i].body, rows[i].code, rows[i].part);
	initialize(2);
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (strcmp(rows[i].body, "{\"num_pages\":9223372036854775807}") != 0)
			expect_in(rows[i].path, rows[i].body, rows[i].code, rows[i].part);
	assert_true(counted(HF3FS_malformed) > 20);
	assert_true(reserve("a") >= 0 && reserve("b") >= 0); /* nothing has changed */
	expect(EXISTS, "{\"keys\":[\"\\u0000\",1,1.5,null,true],\"keyz\":{}}", 200,
	       "{\"exists\":[false,false,false,false,false]}");
}

/* ---- portions -------------------------------------------------------------------------------- */

#define MANY (2 * SKV_MAX_KEYS + 7)

/* {"keys":[...]} with `many` elements; format of one, of its number. */
static void make_keys(struct skv_buf *b, const char *format, unsigned from, unsigned to)
{
	char one[64];

	skv_buf_printf(b, "{\"keys\":[");
	for (unsigned i = from; i < to; i++) {
		int n = snprintf(one, sizeof one, "%s", i > from ? "," : "");

		n += snprintf(one + n, sizeof one - (size_t)n, format, i);
		skv_put_bytes(b, one, (size_t)n);
	}
	skv_buf_printf(b, "]}");
}

static void test_portions(void **state)
{
	struct skv_buf b = { 0 }, c = { 0 };
	const char *got, *p;
	unsigned n = 0;

	(void)state;
	initialize(MANY + 100);
	make_keys(&b, "[\"k%u\",\"\"]", 0, MANY);
	got = ask_n(RESERVE, (const char *)b.data, b.len);
	assert_int_equal(status, 200);
	skv_buf_printf(&c, "{\"written_keys_to_confirm\":[");
	for (p = strstr(got, "[false,"); p; p = strstr(p, "[false,"), n++) {
		char one[64];
		int len = snprintf(one, sizeof one, "%s[\"k%u\",%ld]", n ? "," : "", n,
				   strtol(p += 7, NULL, 10));

		skv_put_bytes(&c, one, (size_t)len);
	}
	skv_buf_printf(&c, "]}");
	assert_int_equal(n, MANY);
	ask_n(CONFIRM, (const char *)c.data, c.len);
	assert_int_equal(status, 204);
	assert_int_equal(counted(HF3FS_confirmed), MANY);
	skv_buf_clear(&b);
	make_keys(&b, "\"k%u\"", 0, MANY);
	got = ask_n(EXISTS, (const char *)b.data, b.len);
	assert_int_equal(status, 200);
	skv_buf_clear(&b);
	make_keys(&b, "\"k%u\"", 0, MANY);
	ask_n(DELETE, (const char *)b.data, b.len);
	assert_int_equal(status, 204);
	expect_page("k0", -1);
	skv_buf_destroy(&b);
	skv_buf_destroy(&c);
}

/* A miss in the second portion is found, and everything behind it too. */
static void test_portions_with_a_miss(void **state)
{
	struct skv_hf3fs_api_options o = options();
	struct skv_buf b = { 0 };
	const char *got;

	(void)state;
	o.lease_ms = 0;
	change(&o);
	initialize(4);
	put("k0");
	make_keys(&b, "\"k0\"", 0, SKV_MAX_KEYS + 1);
	b.len -= 2;
	skv_buf_printf(&b, ",\"x\",\"k0\"]}");
	got = ask_n(EXISTS, (const char *)b.data, b.len);
	assert_int_equal(status, 200);
	assert_string_equal(got + strlen(got) - 18, "true,false,false]}");
	got = ask_n(GET, (const char *)b.data, b.len);
	assert_int_equal(status, 200);
	assert_int_equal(strlen(got), strlen("{\"indices\":[]}") + 5 * (SKV_MAX_KEYS + 3) - 1);
	assert_int_equal(strncmp(got, "{\"indices\":[null,null,", 22), 0);
	skv_buf_destroy(&b);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)
	const struct CMUnitTest tests[] = {
		T(test_life), T(test_missing_keys), T(test_nulls_lease_nothing),
		T(test_repeated_and_long_keys), T(test_releases),
		T(test_full), T(test_leases_hold), T(test_spaces_are_apart),
		T(test_initialize_again),
		T(test_half_made_space), T(test_restart), T(test_tenants_of_tokens),
		T(test_no_memory), T(test_no_pages), T(test_store_down), T(test_not_ready),
		T(test_14_17_too_much_is_held), T(test_held_call), T(test_held_call_at_the_end),
		T(test_wishes), T(test_strict_spaces), T(test_strict_lists), T(test_strict_full),
		T(test_bad_input),
		T(test_portions), T(test_portions_with_a_miss),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
