/*
 * test_contract.c - the contract of every store, as one table of cases (contract.h) run against
 * each kind of store: memory, SQLite in both modes and in memory, a fault store without a rule on
 * SQLite. A case gets a bench with an empty store. Tests of a single backend are in other files.
 */
#include "contract.h"

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, bench_setup, bench_teardown),
	const struct CMUnitTest cases[] = { CONTRACT_CASES(CASE) };
#undef CASE
	int failed = 0;

	bench_base = "/dev/shm"; /* no power is lost here, so nobody need wait for a disk */
	for (size_t i = 0; i < sizeof bench_kinds / sizeof bench_kinds[0]; i++) {
		bench_kind = &bench_kinds[i];
		failed += cmocka_run_group_tests_name(bench_kind->name, cases, NULL, NULL);
	}
	return failed != 0;
}
