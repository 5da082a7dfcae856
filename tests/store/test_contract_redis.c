/*
 * test_contract_redis.c - what every store must do (contract.h), by the store on Redis: on a
 * primary with two replicas, and on a cluster of three masters with a replica each; with the first
 * argument "tls" over TLS. The second one selects cases. Each has a prefix of its own.
 */
#include <stdio.h>
#include <string.h>

#include "contract.h"
#include "redis_servers.h"

static struct servers servers;

static void url(char *out, size_t size)
{
	static int n;
	char prefix[64];

	snprintf(prefix, sizeof prefix, "case%d?timeout_ms=120000", n++);
	servers_url(&servers, prefix, out, size);
}

/* Nobody dies here: no server takes one that is slow for dead. */
static void be_patient(bool cluster)
{
	for (int i = 0; i < servers.n; i++) {
		assert_string_equal(servers_ask(&servers, i, "CONFIG SET repl-timeout 120"), "OK");
		if (cluster)
			assert_string_equal(
				servers_ask(&servers, i, "CONFIG SET cluster-node-timeout 120000"),
				"OK");
	}
}

static int start_replicated(void **state)
{
	(void)state;
	servers_start(&servers, 2, NULL);
	be_patient(false);
	return 0;
}

static int start_cluster(void **state)
{
	(void)state;
	servers_start_cluster(&servers, 5000);
	be_patient(true);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	servers_stop(&servers);
	return 0;
}

int main(int argc, char **argv)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, bench_setup, bench_teardown),
	const struct CMUnitTest cases[] = { CONTRACT_CASES(CASE) };
#undef CASE
	static const struct bench_kind kind = { "redis", &skv_store_redis, SKV_DURABILITY_FULL,
						false };
	int failed;

	if (!servers_available())
		return 77;
	servers_use_tls(argc > 1 && strcmp(argv[1], "tls") == 0);
	if (argc > 2)
		cmocka_set_test_filter(argv[2]);
	bench_kind = &kind;
	bench_url = url;
	failed = cmocka_run_group_tests_name("a primary and two replicas", cases, start_replicated,
					     stop);
	failed += cmocka_run_group_tests_name("a cluster", cases, start_cluster, stop);
	return failed != 0;
}
