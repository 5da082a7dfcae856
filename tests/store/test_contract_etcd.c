/*
 * test_contract_etcd.c - the contract of every store (contract.h), by the store on etcd: with
 * checkpoints inside etcd, and in files. The first argument selects cases. Each case has a prefix
 * of its own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "contract.h"
#include "etcd_servers.h"

static struct etcd_servers servers;
static bool in_files;

static void url(char *out, size_t size)
{
	static int n;

	snprintf(out, size, "etcd://%s/case%d%s%s", etcd_endpoints(&servers, 0), n++,
		 in_files ? "?checkpoints=" : "", in_files ? servers.dir : "");
}

static int start(void **state)
{
	(void)state;
	etcd_start(&servers, 1, false, "--quota-backend-bytes 2147483648");
	return 0;
}

static int stop(void **state)
{
	(void)state;
	etcd_stop(&servers);
	return 0;
}

int main(int argc, char **argv)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, bench_setup, bench_teardown),
	const struct CMUnitTest cases[] = { CONTRACT_CASES(CASE) };
#undef CASE
	static const struct bench_kind kind = { "etcd", &skv_store_etcd, SKV_DURABILITY_FULL,
						false, NULL };
	int failed;

	if (!etcd_is_here())
		return 77;
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	bench_kind = &kind;
	bench_url = url;
	failed = cmocka_run_group_tests_name("checkpoints in etcd", cases, start, stop);
	in_files = true;
	failed += cmocka_run_group_tests_name("checkpoints in files", cases, start, stop);
	return failed != 0;
}
