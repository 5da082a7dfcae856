/*
 * test_hf3fs_vllm.c - vLLM's operations, and those of administrators, as calls without a transport:
 * ranks that come and go, batches of all or nothing, leases on pages that are written again, spaces
 * imported and exported, each allocation failing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <skv/mem.h>

#include "body.h"
#include "calls.h"

#define ALLOCATE "/keys/batch_allocate"
#define CONFIRM "/keys/confirm_write"
#define EXISTS "/keys/batch_exists"
#define LOCATIONS "/keys/get_locations"
#define IMPORT "/v1/pages/import"
#define EXPORT "/v1/pages/export"

static void initialize(int rank, int pages)
{
	char path[64], body[64], answer[96];

	snprintf(path, sizeof path, "/rank/%d/initialize", rank);
	snprintf(body, sizeof body, "{\"num_pages\":%d}", pages);
	snprintf(answer, sizeof answer, "{\"message\":\"Rank %d initialized with %d pages\"}", rank,
		 pages);
	expect(path, body, 200, answer);
}

/* Allocates a page for one key of the rank, which must be this. */
static void allocate(int rank, const char *key, int page)
{
	char body[128], answer[128];

	snprintf(body, sizeof body, "{\"rank\":%d,\"keys\":[[\"%s\",\"\"]]}", rank, key);
	snprintf(answer, sizeof answer, "{\"rank\":%d,\"results\":[[\"%s\",%d]]}", rank, key, page);
	expect(ALLOCATE, body, 200, answer);
}

static void put(int rank, const char *key, int page)
{
	char body[128];

	allocate(rank, key, page);
	snprintf(body, sizeof body, "{\"rank\":%d,\"confirmations\":[[\"%s\",%d]]}", rank, key,
		 page);
	expect(CONFIRM, body, 204, "");
}

/* ---- ranks ----------------------------------------------------------------------------------- */

static void test_all_ranks_or_none(void **state)
{
	(void)state;
	expect(EXISTS, "{\"keys\":[\"a\"]}", 200, "{\"exists\":[false]}"); /* nobody is known */
	initialize(0, 4);
	initialize(1, 4);
	put(0, "a", 0);
	put(0, "b", 1);
	expect(EXISTS, "{\"keys\":[\"a\",\"b\"]}", 200, "{\"exists\":[false,false]}");
	expect(LOCATIONS, "{\"rank\":0,\"keys\":[\"a\",\"b\"]}", 200,
	       "{\"locations\":[null,null]}");
	put(1, "a", 0);
	expect(EXISTS, "{\"keys\":[\"a\",\"b\",\"a\"]}", 200, "{\"exists\":[true,false,false]}");
	expect(LOCATIONS, "{\"rank\":0,\"keys\":[\"b\",\"a\"]}", 200, "{\"locations\":[null,0]}");
	initialize(2, 4); /* another rank: known at once */
	expect(EXISTS, "{\"keys\":[\"a\"]}", 200, "{\"exists\":[false]}");
	expect(LOCATIONS, "{\"rank\":7,\"keys\":[\"a\"]}", 200, "{\"locations\":[null]}");
	expect(EXISTS, "{}", 200, "{\"exists\":[]}");
}

static void test_strict_ranks(void **state)
{
	(void)state;
	go_strict();
	initialize(0, 4);
	put(0, "b", 0);
	expect(EXISTS, "{\"keys\":[\"a\",\"b\"]}", 200, "{\"exists\":[false,true]}");
	expect(ALLOCATE, "{\"rank\":3,\"keys\":[]}", 500,
	       "{\"detail\":\"Allocation failed: Rank 3 not initialized\"}");
	expect(CONFIRM, "{\"rank\":3,\"confirmations\":[]}", 204, "");
	expect(CONFIRM, "{\"rank\":3,\"pages_to_release\":[1]}", 500,
	       "{\"detail\":\"Confirmation failed: 3\"}");
	expect_in(ALLOCATE, "{\"rank\":0,\"keys\":[[\"a\"]]}", 500,
		  "{\"detail\":\"Allocation failed: keys[0]");
	expect(ALLOCATE, "[]", 500, "Internal Server Error");
	expect("/clear", "{}", 204, "");
	expect(ALLOCATE, "{\"rank\":0,\"keys\":[]}", 500,
	       "{\"detail\":\"Allocation failed: Rank 0 not initialized\"}");
	expect("/team/rank/0/initialize", "{\"num_pages\":4}", 404, "{\"detail\":\"Not Found\"}");
}

static void test_ranks_that_are_dropped(void **state)
{
	(void)state;
	initialize(0, 4);
	initialize(1, 4);
	put(0, "a", 0);
	put(1, "a", 0);
	expect("/clear", "", 204, "");
	expect(EXISTS, "{\"keys\":[\"a\"]}", 200, "{\"exists\":[false]}");
	env_advance(&env, 10000);
	allocate(0, "a", 0); /* made good: with the same pages */
	expect(CONFIRM, "{\"rank\":0,\"confirmations\":[[\"a\",0]]}", 204, "");
	/* the other has not come back */
	expect(EXISTS, "{\"keys\":[\"a\"]}", 200, "{\"exists\":[true]}");
	expect("/team/rank/0/initialize", "{\"num_pages\":4}", 200,
	       "{\"message\":\"Rank 0 initialized with 4 pages\"}");
	expect_in("/team/keys/batch_allocate", "{\"rank\":0,\"keys\":[[\"t\",\"\"]]}", 200,
		  "[\"t\",0]");
	expect("/team/keys/confirm_write", "{\"rank\":0,\"confirmations\":[[\"t\",0]]}", 204, "");
	expect("/team/clear", "{}", 204, "");
	expect("/team/keys/batch_exists", "{\"keys\":[\"t\"]}", 200, "{\"exists\":[false]}");
	expect(EXISTS, "{\"keys\":[\"a\"]}", 200, "{\"exists\":[true]}");
}

/* An answer repeats keys of any type as they are in the request. */
static void test_repeated_keys(void **state)
{
	struct skv_json_doc doc;
	const char *answer;

	(void)state;
	initialize(0, 4);
	answer = ask(ALLOCATE, "{\"rank\":0,\"keys\":[[null,1],[\"ey\\u0000keys\\u000f\",\"\"],"
			       "[18446744073709551615,\"\"]]}");
	assert_string_equal(answer, "{\"rank\":0,\"results\":[[null,0],"
				    "[\"ey\\u0000keys\\u000f\",1],[18446744073709551615,2]]}");
	assert_true(skv_json_parse(&doc, &call.arena, answer, strlen(answer), &body_limits));
}

/* ---- batches --------------------------------------------------------------------------------- */

static void test_all_or_nothing(void **state)
{
	(void)state;
	initialize(0, 4);
	allocate(0, "a", 0);
	expect(ALLOCATE,
	       "{\"rank\":0,\"keys\":[[\"b\",\"\"],[\"c\",\"\"],[\"d\",\"\"],[\"e\",\"\"]]}", 200,
	       "{\"rank\":0,\"results\":[[\"b\",-1],[\"c\",-1],[\"d\",-1],[\"e\",-1]]}");
	expect(CONFIRM, "{\"rank\":0,\"confirmations\":[[\"a\",0]]}", 204, "");
	expect(ALLOCATE,
	       "{\"rank\":0,\"keys\":[[\"a\",\"\"],[\"b\",\"a\"],[\"a\",\"\"],[1,null],"
	       "[\"\\u0000\\\"\",\"\"]]}",
	       200, "{\"rank\":0,\"results\":[[\"a\",0],[\"b\",1],[1,2],[\"\\u0000\\\"\",3]]}");
	expect(ALLOCATE, "{\"rank\":9,\"keys\":[[\"b\",\"\"],[null,\"\"],[1.5,\"\"]]}", 200,
	       "{\"rank\":9,\"results\":[[\"b\",-1],[null,-1],[1.5,-1]]}");
}

/* The key's copy goes to a page of its own, and nowhere. */
static void test_a_key_that_somebody_writes(void **state)
{
	struct skv_hf3fs_api_options o = options();

	(void)state;
	o.reserve_ms = 3000;
	o.grace_ms = 2000;
	change(&o);
	initialize(0, 4);
	allocate(0, "a", 0);
	expect(ALLOCATE, "{\"rank\":0,\"keys\":[[\"b\",\"\"],[\"a\",\"\"],[\"c\",\"\"]]}", 200,
	       "{\"rank\":0,\"results\":[[\"b\",1],[\"a\",3],[\"c\",2]]}");
	assert_int_equal(counted(HF3FS_in_flight), 1);
	assert_int_equal(counted(HF3FS_spare), 1);
	assert_int_equal(counted(HF3FS_reserved), 3);
	expect(CONFIRM, "{\"rank\":0,\"confirmations\":[[\"b\",1],[\"a\",3],[\"c\",2]]}", 204, "");
	expect(EXISTS, "{\"keys\":[\"b\",\"a\"]}", 200, "{\"exists\":[true,false]}");
	expect(LOCATIONS, "{\"rank\":0,\"keys\":[\"a\",\"b\",\"c\"]}", 200,
	       "{\"locations\":[null,1,2]}");
	/* all are taken: none for a spare */
	expect(ALLOCATE, "{\"rank\":0,\"keys\":[[\"a\",\"\"]]}", 200,
	       "{\"rank\":0,\"results\":[[\"a\",-1]]}");
	expect(CONFIRM, "{\"rank\":0,\"confirmations\":[[\"a\",0]]}", 204, "");
	expect(LOCATIONS, "{\"rank\":0,\"keys\":[\"a\",\"b\",\"c\"]}", 200,
	       "{\"locations\":[0,1,2]}");
	env_advance(&env, 6000);
	allocate(0, "d", 3); /* the spare has come back */
}

/* The key's page is written once more: nobody else gets the page meanwhile. */
static void test_a_page_that_is_written_again(void **state)
{
	struct skv_hf3fs_api_options o = options();

	(void)state;
	o.lease_ms = 0;
	o.reserve_ms = 3000;
	o.grace_ms = 2000;
	change(&o);
	initialize(0, 2);
	put(0, "a", 0);
	put(0, "b", 1);
	env_advance(&env, 10000);
	allocate(0, "a", 0);
	allocate(0, "c", 1);
	allocate(0, "d", -1);
	env_advance(&env, 3500); /* the reservation of c waits for its grace time */
	allocate(0, "d", -1);
	env_advance(&env, 1000);
	allocate(0, "d", 1);
	allocate(0, "e", -1);
	env_advance(&env, 1000);
	allocate(0, "e", 0);
}

static void test_bad_input(void **state)
{
	static const struct {
		const char *path, *body;
		unsigned code;
		const char *part;
	} rows[] = {
		{ ALLOCATE, "{\"keys\":[]}", 400, "need 'rank' and 'keys'" },
		{ ALLOCATE, "{\"rank\":null,\"keys\":[]}", 400, "need 'rank' and 'keys'" },
		{ ALLOCATE, "{\"rank\":0,\"keys\":{}}", 400, "need 'rank' and 'keys'" },
		{ ALLOCATE, "{\"rank\":\"0\",\"keys\":[]}", 422, "rank: " },
		{ ALLOCATE, "{\"rank\":-1,\"keys\":[]}", 422, "rank: " },
		{ ALLOCATE, "{\"rank\":true,\"keys\":[]}", 422, "rank: " },
		{ ALLOCATE, "{\"rank\":0,\"keys\":[[\"a\"]]}", 422, "keys[0]: " },
		{ ALLOCATE, "{\"rank\":0,\"keys\":[[{},\"\"]]}", 422, "keys[0]: " },
		{ ALLOCATE, "[]", 400, "must be an object" },
		{ CONFIRM, "{\"rank\":0,\"confirmations\":5}", 400,
		  "need 'rank' and 'confirmations'" },
		{ CONFIRM, "{\"rank\":0,\"confirmations\":[[\"a\",\"1\"]]}", 422,
		  "confirmations[0]: " },
		{ CONFIRM, "{\"rank\":0,\"pages_to_release\":[[]]}", 422, "pages_to_release[0]: " },
		{ EXISTS, "{\"keys\":\"a\"}", 400, "Invalid keys format" },
		{ EXISTS, "{\"keys\":[[]]}", 422, "keys[0]: " },
		{ LOCATIONS, "{\"rank\":0,\"keys\":5}", 400, "need 'rank' and 'keys'" },
		{ "/rank/x/initialize", "{\"num_pages\":4}", 422, "rank: " },
		{ "/rank/0/initialize", "{\"num_pages\":\"4\"}", 422, "num_pages: " },
		{ "/rank/0/initialize", "{\"num_pages\":4,\"role\":\"boss\"}", 400,
		  "Invalid initialization parameters" },
		{ "/rank/0/initialize", "{}", 400, "Invalid initialization parameters" },
		{ "/rank/0/initialize", "{\"num_pages\":-3}", 400,
		  "Invalid initialization parameters" },
		{ "/v1/clear", "{}", 422, "rank: " },
		{ "/v1/keys/batch_exists", "{}", 404, "Not Found" },
		{ EXPORT, "{}", 400, "\"field\":\"rank\"" },
		{ EXPORT, "[]", 400, "not a JSON object" },
		{ EXPORT, "{\"rank\":0}", 404, "not_found" },
		{ EXPORT, "{\"rank\":0,\"max\":16385}", 400, "\"field\":\"max\"" },
		{ EXPORT, "{\"rank\":0,\"tenant\":\"a b\"}", 400, "\"field\":\"tenant\"" },
		{ EXPORT, "{\"rank\":0,\"namespace\":1}", 400, "\"field\":\"namespace\"" },
		{ IMPORT, "{\"rank\":0,\"keys\":[]}", 400, "\"field\":\"num_pages\"" },
		{ IMPORT, "{\"rank\":0,\"num_pages\":4,\"keys\":{}}", 400, "\"field\":\"keys\"" },
		{ IMPORT, "{\"rank\":0,\"num_pages\":4,\"keys\":[[1]]}", 400,
		  "\"field\":\"keys\"" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		expect_in(rows[i].path, rows[i].body, rows[i].code, rows[i].part);
	expect("/v1/pages", NULL, 200, "{\"pages\":[]}"); /* nothing was made */
	expect("/rank/0/initialize", "{\"role\":\"scheduler\"}", 200,
	       "{\"message\":\"Scheduler role does not require initialization\"}");
	expect("/v1/pages", NULL, 200, "{\"pages\":[]}");
}

/* ---- administrators -------------------------------------------------------------------------- */

static void test_there_and_back(void **state)
{
	(void)state;
	expect(IMPORT,
	       "{\"rank\":3,\"namespace\":\"x\",\"num_pages\":8,\"keys\":[[\"a\",7],[\"b\",0],"
	       "[\"a\",1],[\"c\",8],[\"d\",7],[\"e\",-1],[2,3]]}",
	       200,
	       "{\"num_pages\":8,\"imported\":3,\"skipped\":4,\"there\":1,\"taken\":1,"
	       "\"outside\":2,\"unfit\":0}");
	expect("/3/get_page_indices", "{\"keys\":[\"a\",\"b\",2],\"namespace\":\"x\"}", 200,
	       "{\"indices\":[7,0,3]}");
	expect("/v1/pages", NULL, 200,
	       "{\"pages\":[{\"tenant\":\"default\",\"rank\":3,\"namespace\":\"x\",\"num_pages\":8,"
	       "\"used\":3,\"keys\":3}]}");
	env_crash(&env);
	env_open(&env);
	service->cluster = env.cluster;
	expect_in(EXPORT, "{\"rank\":3,\"namespace\":\"x\"}", 200, "[\"b\",0,");
	expect_in(EXPORT, "{\"rank\":3,\"namespace\":\"x\"}", 200, "[2,3,");
	expect_in(EXPORT, "{\"rank\":3,\"namespace\":\"x\"}", 200, "\"next\":0}");
	expect(IMPORT, "{\"rank\":3,\"namespace\":\"x\",\"keys\":[]}", 200,
	       "{\"num_pages\":8,\"imported\":0,\"skipped\":0,\"there\":0,\"taken\":0,"
	       "\"outside\":0,\"unfit\":0}");
}

/* An administrator sees and changes the spaces of his tenant, others none. */
static void test_roles_and_tenants(void **state)
{
	struct skv_hf3fs_api_options o = options();
	char path[] = "/tmp/skv-tokens-XXXXXX";
	int fd = mkstemp(path);
	FILE *f = fdopen(fd, "w");

	(void)state;
	assert_non_null(f);
	fprintf(f,
		"write team 0123456789abcdef\nadmin team fedcba9876543210\n"
		"admin other 00112233445566778899\n");
	fclose(f);
	tokens = path;
	change(&o);
	tokens = "";
	expect_in(IMPORT, "{\"rank\":0,\"num_pages\":4,\"keys\":[[\"a\",1]]}", 401,
		  "unauthenticated");
	authorization = "Bearer 0123456789abcdef";
	expect_in(IMPORT, "{\"rank\":0,\"num_pages\":4,\"keys\":[[\"a\",1]]}", 403, "forbidden");
	expect_in("/v1/pages", NULL, 403, "forbidden");
	authorization = "Bearer fedcba9876543210";
	expect_in(IMPORT, "{\"rank\":0,\"num_pages\":4,\"keys\":[[\"a\",1]]}", 200,
		  "\"imported\":1");
	expect_in("/v1/pages", NULL, 200, "\"tenant\":\"team\"");
	expect_in(EXPORT, "{\"rank\":0,\"tenant\":\"team\"}", 200, "[\"a\",1,");
	authorization = "Bearer 00112233445566778899";
	expect("/v1/pages", NULL, 200, "{\"pages\":[]}");
	expect_in(EXPORT, "{\"rank\":0,\"tenant\":\"team\"}", 403, "forbidden");
	expect_in(EXPORT, "{\"rank\":0}", 404, "not_found");
	authorization = NULL;
	unlink(path);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Every call has an answer, whatever allocation fails, and the next call finds a consistent
 * state. */
static void test_no_memory(void **state)
{
	static const struct {
		const char *path, *body;
	} rows[] = {
		{ ALLOCATE, "{\"rank\":0,\"keys\":[[\"a\",\"x\"],[\"c\",\"\"],[\"c\",\"\"]]}" },
		{ CONFIRM,
		  "{\"rank\":0,\"confirmations\":[[\"b\",1]],\"pages_to_release\":[5,6]}" },
		{ EXISTS, "{\"keys\":[\"a\",\"b\"]}" },
		{ LOCATIONS, "{\"rank\":1,\"keys\":[\"a\",\"b\"]}" },
		{ "/rank/2/initialize", "{\"num_pages\":4}" },
		{ "/clear", "{}" },
		{ IMPORT, "{\"rank\":5,\"num_pages\":4,\"keys\":[[\"a\",1],[\"b\",2]]}" },
		{ EXPORT, "{\"rank\":5}" },
		{ "/v1/pages", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		initialize(0, 8);
		initialize(1, 8);
		for (unsigned long n = 1;; n++) {
			skv_request_destroy(&call);
			memset(&call, 0, sizeof call);
			skv_mem_fail_at(n);
			ask(rows[i].path, rows[i].body);
			if (skv_mem_count() < n)
				break;
			if (status != 200 && status != 204 && status < 500)
				fail_msg("%s at %lu: %u", rows[i].path, n, status);
		}
		skv_mem_fail_at(0);
		assert_int_equal(skv_cluster_wait_ready(env.cluster, 10000), SKV_OK);
		env_check(&env);
	}
	env_advance(&env, 10000);
	initialize(4, 2);
	put(4, "n", 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)
	const struct CMUnitTest tests[] = {
		T(test_all_ranks_or_none), T(test_strict_ranks), T(test_ranks_that_are_dropped),
		T(test_repeated_keys),
		T(test_all_or_nothing),
		T(test_a_key_that_somebody_writes), T(test_a_page_that_is_written_again),
		T(test_bad_input), T(test_there_and_back),
		T(test_roles_and_tenants), T(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
